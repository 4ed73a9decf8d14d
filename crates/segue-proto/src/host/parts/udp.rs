//! UDP on a host: its endpoint, who listens, and what a socket is to an application.

use super::listener::{self, Listener};
use crate::app::{self, Connection, SendRefused, Transport};
use crate::contract::{Departure, InterfaceId, LocalAddress};
use crate::random::SecretRng;
use crate::time::Instant;
use crate::udp::{Endpoint, Event, MAX_DATA, Socket, SocketId};
use core::net::Ipv6Addr;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Packet, Payload};
use std::collections::BTreeMap;

/// The part of a host that is UDP's.
pub(in crate::host) struct Udp {
    endpoint: Endpoint,
    listener: Option<Listener>,
    /// When the first datagram of those was handed over that a shim did not let go since it last did.
    held_back: BTreeMap<DatagramEnds, Instant>,
}

/// What tells whose datagram a packet is, before a shim sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::host) struct DatagramEnds {
    source_port: u16,
    destination: Ipv6Addr,
    destination_port: u16,
}

impl DatagramEnds {
    /// Those of a datagram; nothing of other packets.
    pub fn of(packet: &Packet) -> Option<Self> {
        match &packet.payload {
            Payload::Udp(datagram) => Some(Self {
                source_port: datagram.source_port,
                destination: packet.ip.destination,
                destination_port: datagram.destination_port,
            }),
            _ => None,
        }
    }
}

impl Udp {
    /// UDP, if an application wants it: its secrets come from a generator of its own, keyed by its host's.
    pub fn for_applications(
        port: u16,
        applications: &[app::Config],
        secrets: &mut dyn SecretRng,
    ) -> Option<Box<Self>> {
        let (random, listener) = listener::begin(Transport::Udp, applications, secrets)?;
        let mut endpoint = Endpoint::new(random);
        if listener.is_some() {
            endpoint.listen(port);
        }
        Some(Box::new(Self {
            endpoint,
            listener,
            held_back: BTreeMap::new(),
        }))
    }

    pub fn add_local_address(&mut self, local: LocalAddress) {
        self.endpoint.add_local_address(local);
    }

    pub fn remove_local_address(&mut self, address: Ipv6Addr) {
        self.endpoint.remove_local_address(address);
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        self.endpoint.poll_transmit_into(now, packet)
    }

    /// A shim lets a datagram go, or does not, that there has been since `busy_since`. Of one that goes, since when its socket
    /// has had some to send.
    pub fn passes(&mut self, ends: DatagramEnds, busy_since: Option<Instant>, goes: bool) -> Option<Instant> {
        if goes {
            return self.held_back.remove(&ends).or(busy_since);
        }
        if let Some(since) = busy_since {
            self.held_back.entry(ends).or_insert(since);
        }
        None
    }

    pub fn has_events(&self) -> bool {
        self.endpoint.has_events()
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The listening application: its number and what it does.
    pub fn listener(&self) -> Option<(usize, app::Kind)> {
        self.listener.clone()
    }

    /// Takes a datagram. Whether there was a socket that it is for.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        ends: (Ipv6Addr, Ipv6Addr),
        datagram: &UdpDatagram,
    ) -> bool {
        self.endpoint.handle_datagram(now, interface, ends, datagram)
    }

    pub fn connect(&mut self, peer: Ipv6Addr, port: u16) -> Option<SocketId> {
        self.endpoint.connect(peer, port)
    }

    /// A socket that only receives reports to its peer.
    pub fn report(&mut self, now: Instant, id: SocketId) {
        self.endpoint.report(now, id);
    }

    /// Has `act` command a socket.
    pub fn command(&mut self, id: SocketId, act: impl FnOnce(&mut Socket)) {
        self.endpoint.command(id, act);
    }

    pub fn poll_event(&mut self) -> Option<(SocketId, Event)> {
        self.endpoint.poll_event()
    }
}

impl Connection for Socket {
    const IN_ORDER: bool = false;

    fn send(&mut self, _now: Instant, data: Data) -> Result<(), SendRefused> {
        Self::send(self, data).map_err(|_| SendRefused::Closed)
    }

    fn made_since(&mut self, since: Instant) {
        Self::made_since(self, since);
    }

    fn max_message(&self) -> u32 {
        MAX_DATA
    }

    fn recv(&mut self, take: impl FnOnce(&[Data], bool)) -> bool {
        let data = Self::recv(self);
        if let Some(data) = &data {
            take(core::slice::from_ref(data), true);
        }
        data.is_some()
    }

    /// Nobody is told.
    fn close(&mut self, _now: Instant) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn what_a_shim_did_not_let_go_counts_until_something_of_its_socket_goes() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut udp = Udp {
            endpoint: Endpoint::new(Box::new(Stream::new(1, "udp"))),
            listener: None,
            held_back: BTreeMap::new(),
        };
        let of = |source_port: u16| DatagramEnds {
            source_port,
            destination: Ipv6Addr::LOCALHOST,
            destination_port: 9,
        };
        assert_eq!(udp.passes(of(1), Some(at(0)), true), Some(at(0)));
        assert_eq!(udp.passes(of(1), Some(at(10)), false), None);
        assert_eq!(udp.passes(of(1), Some(at(20)), false), None);
        assert_eq!(udp.passes(of(2), Some(at(25)), true), Some(at(25)), "another's");
        assert_eq!(udp.passes(of(1), Some(at(30)), true), Some(at(10)));
        assert_eq!(udp.passes(of(1), Some(at(40)), true), Some(at(40)));
    }
}
