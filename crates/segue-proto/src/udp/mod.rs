//! UDP (RFC 768) for the applications of a host: sockets between two pairs of address and port.
//!
//! A [`Socket`] is what a connected socket is to a program: it keeps the addresses that it began with. Datagrams are
//! neither repeated nor put in order. A receiver can have its socket report to the sender what arrived: once a second
//! until the first data does, and every five seconds after that, as the receivers of RTP do (RFC 3550 section 6.2). So the sender learns where to send to, and the layers below both ends that there is a peer: a network layer that
//! sees packets one way only cannot tell whether the other end knows its protocol. What is left out: fragments (a datagram is at most [`MAX_DATA`] bytes), sockets
//! that are not connected, and errors of ICMPv6, which a program may as well not read.

use crate::contract::{Departure, InterfaceId, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::payload::PLACEABLE_LEN;
use segue_wire::udp::{HEADER_LEN, UdpDatagram};
use segue_wire::{Data, Ipv6Header, Packet, Payload};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of data that every way carries in one datagram: the least MTU of IPv6 (RFC 8200 section 5) less its header and
/// UDP's.
pub const MAX_DATA: u32 = 1280 - 40 - HEADER_LEN as u32;

/// Peers that one port serves; what further ones send is dropped.
pub const MAX_PEERS: usize = 10_000;

/// Between two reports to a peer that has not sent anything yet.
const CALL_AGAIN: Duration = Duration::from_secs(1);
/// Between two reports later (RFC 3550 section 6.2).
const REPORT_AGAIN: Duration = Duration::from_secs(5);
/// Reports after the last data: then the sender has left (RFC 3550 section 6.3.5).
const LAST_REPORTS: u32 = 5;

/// Bytes of a report: fewer than any data has.
const REPORT_LEN: usize = 12;
const _: () = assert!(REPORT_LEN < PLACEABLE_LEN);

/// Whether a datagram is its receiver's report.
fn is_report(data: &Data) -> bool {
    data.len() < PLACEABLE_LEN
}

/// RFC 6335 section 6.
const FIRST_EPHEMERAL_PORT: u16 = 49_152;

/// Names a socket of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SocketId(u32);

/// What an endpoint tells its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A peer called at the port that is listened to, and has a socket now.
    Accepted,
    /// Datagrams arrived.
    Readable,
}

/// Datagrams that came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Nobody has the port.
    pub no_port: u64,
    /// [`MAX_PEERS`] are served already.
    pub too_many_peers: u64,
}

/// Both ends of a socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Ends {
    local: Ipv6Addr,
    local_port: u16,
    remote: Ipv6Addr,
    remote_port: u16,
}

/// A socket that is connected to a peer.
#[derive(Debug)]
pub struct Socket {
    ends: Ends,
    interface: InterfaceId,
    received: VecDeque<Data>,
    to_send: VecDeque<Data>,
    /// Since when the first of them has been in the making, where that is not when it was given.
    made_since: Option<Instant>,
    /// Datagrams with data that arrived.
    arrived: u64,
    /// Reports sent.
    reported: u32,
    reports: Reports,
}

/// What a socket reports to its peer, from whom it has data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reports {
    /// Nothing: this end sends data itself.
    No,
    /// Nothing: the peer has left.
    Left,
    /// Nothing has arrived yet; the next report is due then.
    Calling(Instant),
    /// The next is due then; the last so many were sent since data last arrived.
    Receiving(Instant, u32),
}

impl Reports {
    const fn due(self) -> Option<Instant> {
        match self {
            Self::No | Self::Left => None,
            Self::Calling(at) | Self::Receiving(at, _) => Some(at),
        }
    }
}

impl Socket {
    /// Port of this end.
    #[must_use]
    pub const fn local_port(&self) -> u16 {
        self.ends.local_port
    }

    /// Address and port of this end, and of the peer.
    #[must_use]
    pub const fn ends(&self) -> [(Ipv6Addr, u16); 2] {
        let ends = &self.ends;
        [(ends.local, ends.local_port), (ends.remote, ends.remote_port)]
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// [`TooLong`] for more than [`MAX_DATA`] bytes.
    pub fn send(&mut self, data: Data) -> Result<(), TooLong> {
        if data.len() > MAX_DATA as usize {
            return Err(TooLong);
        }
        self.to_send.push_back(data);
        Ok(())
    }

    /// What is sent next has been in the making since then.
    pub fn made_since(&mut self, since: Instant) {
        self.made_since.get_or_insert(since);
    }

    /// The next report: its number, and how many datagrams arrived, in network byte order.
    fn report(&mut self) -> Data {
        let mut bytes = [0; REPORT_LEN];
        let (number, arrived) = bytes.split_at_mut(4);
        number.copy_from_slice(&self.reported.to_be_bytes());
        arrived.copy_from_slice(&self.arrived.to_be_bytes());
        self.reported = self.reported.wrapping_add(1);
        Data::Bytes(Bytes::copy_from_slice(&bytes))
    }

    /// The next datagram received.
    pub fn recv(&mut self) -> Option<Data> {
        self.received.pop_front()
    }
}

/// A datagram is longer than [`MAX_DATA`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("longer than {MAX_DATA} bytes")]
pub struct TooLong;

/// The sockets of a host.
pub struct Endpoint {
    secrets: Box<dyn SecretRng>,
    local: Vec<LocalAddress>,
    listening: Option<u16>,
    sockets: BTreeMap<SocketId, Socket>,
    by_ends: BTreeMap<Ends, SocketId>,
    /// Those with something to send, in the order in which they came by it.
    sending: VecDeque<SocketId>,
    /// When the reports of which are due.
    reports: BTreeSet<(Instant, SocketId)>,
    accepted: usize,
    next: u32,
    events: VecDeque<(SocketId, Event)>,
    counters: Counters,
}

impl Endpoint {
    /// An endpoint without addresses and sockets. `secrets` chooses ports (RFC 6056 section 3.3.1).
    #[must_use]
    pub fn new(secrets: Box<dyn SecretRng>) -> Self {
        Self {
            secrets,
            local: Vec::new(),
            listening: None,
            sockets: BTreeMap::new(),
            by_ends: BTreeMap::new(),
            sending: VecDeque::new(),
            reports: BTreeSet::new(),
            accepted: 0,
            next: 0,
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Adds an address that sockets begin from, and datagrams are taken at.
    pub fn add_local_address(&mut self, address: LocalAddress) {
        self.remove_local_address(address.address);
        self.local.push(address);
    }

    /// Removes an address from those that sockets begin from; those that have it keep it.
    pub fn remove_local_address(&mut self, address: Ipv6Addr) {
        self.local.retain(|l| l.address != address);
    }

    /// Gives every peer that sends to `port` a socket of its own.
    pub fn listen(&mut self, port: u16) {
        self.listening = Some(port);
    }

    /// Opens a socket from the first address there is; nothing without one, or without a peer that can be sent to.
    pub fn connect(&mut self, remote: Ipv6Addr, remote_port: u16) -> Option<SocketId> {
        let local = *self.local.first()?;
        if remote.is_multicast() || remote.is_unspecified() || remote_port == 0 {
            return None;
        }
        let first = self.secrets.secret_u32();
        let span = u32::from(u16::MAX - FIRST_EPHEMERAL_PORT) + 1;
        let ends = (0..span)
            .map(|n| Ends {
                local: local.address,
                local_port: FIRST_EPHEMERAL_PORT + (first.wrapping_add(n) % span) as u16,
                remote,
                remote_port,
            })
            .find(|ends| !self.by_ends.contains_key(ends))?;
        Some(self.insert(ends, local.interface))
    }

    /// Has a socket report to its peer, from now on.
    pub fn report(&mut self, now: Instant, id: SocketId) {
        self.set_reports(id, Reports::Calling(now));
        self.send_reports(now);
    }

    /// A socket.
    #[must_use]
    pub fn socket(&self, id: SocketId) -> Option<&Socket> {
        self.sockets.get(&id)
    }

    /// Has `act` use a socket; nothing if there is none of this id.
    pub fn command<T>(&mut self, id: SocketId, act: impl FnOnce(&mut Socket) -> T) -> Option<T> {
        let socket = self.sockets.get_mut(&id)?;
        let before = socket.to_send.len();
        let result = act(socket);
        let more = socket.to_send.len() - before;
        self.sending.extend(core::iter::repeat_n(id, more));
        Some(result)
    }

    /// Takes a datagram from `source` to `destination`, an address of the host. Whether there is a socket for it.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        datagram: &UdpDatagram,
    ) -> bool {
        let ends = Ends {
            local: destination,
            local_port: datagram.destination_port,
            remote: source,
            remote_port: datagram.source_port,
        };
        let Some(id) = self
            .by_ends
            .get(&ends)
            .copied()
            .or_else(|| self.accept(ends, interface))
        else {
            return false;
        };
        if let Some(socket) = self.sockets.get_mut(&id) {
            if is_report(&datagram.data) {
                return true;
            }
            socket.arrived += 1;
            socket.received.push_back(datagram.data.clone());
            self.events.push_back((id, Event::Readable));
            match socket.reports {
                Reports::Receiving(at, sent) if sent > 0 => self.set_reports(id, Reports::Receiving(at, 0)),
                Reports::Calling(_) | Reports::Left => {
                    self.set_reports(id, Reports::Receiving(now + REPORT_AGAIN, 0));
                }
                Reports::Receiving(..) | Reports::No => {}
            }
        }
        true
    }

    /// A socket for a peer that is new at the port listened to.
    fn accept(&mut self, ends: Ends, interface: InterfaceId) -> Option<SocketId> {
        if self.listening != Some(ends.local_port) || ends.remote_port == 0 {
            self.counters.no_port += 1;
            return None;
        }
        if self.accepted >= MAX_PEERS {
            self.counters.too_many_peers += 1;
            return None;
        }
        self.accepted += 1;
        let id = self.insert(ends, interface);
        self.events.push_back((id, Event::Accepted));
        Some(id)
    }

    fn insert(&mut self, ends: Ends, interface: InterfaceId) -> SocketId {
        let id = SocketId(self.next);
        self.next += 1;
        self.by_ends.insert(ends, id);
        self.sockets.insert(
            id,
            Socket {
                ends,
                interface,
                received: VecDeque::new(),
                to_send: VecDeque::new(),
                made_since: None,
                arrived: 0,
                reported: 0,
                reports: Reports::No,
            },
        );
        id
    }

    fn set_reports(&mut self, id: SocketId, reports: Reports) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let before = core::mem::replace(&mut socket.reports, reports);
        if let Some(at) = before.due() {
            self.reports.remove(&(at, id));
        }
        if let Some(at) = reports.due() {
            self.reports.insert((at, id));
        }
    }

    /// Sends the reports that are due.
    fn send_reports(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.reports.first()
            && at <= now
        {
            let Some(socket) = self.sockets.get_mut(&id) else {
                self.reports.remove(&(at, id));
                continue;
            };
            let next = match socket.reports {
                Reports::Calling(_) => Reports::Calling(now + CALL_AGAIN),
                Reports::Receiving(_, sent) if sent < LAST_REPORTS => {
                    Reports::Receiving(now + REPORT_AGAIN, sent + 1)
                }
                Reports::Receiving(..) | Reports::Left | Reports::No => Reports::Left,
            };
            if next != Reports::Left {
                let report = socket.report();
                socket.to_send.push_back(report);
                self.sending.push_back(id);
            }
            self.set_reports(id, next);
        }
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.send_reports(now);
    }

    /// When `handle_timeout` must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.reports.first().map(|(at, _)| *at)
    }

    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.next_datagram().map(|(transmit, _)| transmit)
    }

    /// The same, written to `packet`, where its driver wants it.
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        let (transmit, made_since) = self.next_datagram()?;
        Some(Departure {
            busy_since: made_since.or(Some(now)),
            ..transmit.write_to(packet)
        })
    }

    /// The next packet to send, and since when it has been in the making.
    fn next_datagram(&mut self) -> Option<(Transmit, Option<Instant>)> {
        let socket = loop {
            let id = self.sending.pop_front()?;
            if let Some(socket) = self.sockets.get_mut(&id) {
                break socket;
            }
        };
        let data = socket.to_send.pop_front()?;
        let ends = socket.ends;
        let transmit = Transmit {
            interface: socket.interface,
            packet: Packet {
                ip: Ipv6Header {
                    source: ends.local,
                    destination: ends.remote,
                    traffic_class: 0,
                    hop_limit: 64,
                    flow_label: 0,
                },
                extensions: Vec::new(),
                payload: Payload::Udp(UdpDatagram {
                    source_port: ends.local_port,
                    destination_port: ends.remote_port,
                    data,
                }),
            },
        };
        Some((transmit, socket.made_since.take()))
    }

    /// Whether [`poll_event`](Self::poll_event) has something to give.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<(SocketId, Event)> {
        self.events.pop_front()
    }

    /// Datagrams that came to nothing.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests;
