//! Numbers of associations and connections in tables, told apart by what stays when addresses change.

use super::names;
use super::segments::{KernelSegment, innermost};
use segue_proto::app::Transport;
use segue_wire::sctp::{Chunk, SctpPacket};
use segue_wire::{Packet, Payload};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Associations and connections in the order in which they were begun.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// By either verification tag: the INIT ACK has both (RFC 9260 section 5.1).
    associations: BTreeMap<u32, u32>,
    /// By the ends of a TCP connection or of two sockets of UDP, the lesser first.
    connections: BTreeMap<(Transport, [(Ipv6Addr, u16); 2]), u32>,
    /// Addresses are locators and identifiers, and a connection is between identifiers (RFC 6741).
    by_identifiers: bool,
    next: u32,
}

impl Numbers {
    /// Numbers of a run with ILNPv6, if so.
    pub(super) fn new(by_identifiers: bool) -> Self {
        Self {
            by_identifiers,
            ..Self::default()
        }
    }

    /// The number of the association or connection that a packet belongs to, in tunnels too; an INIT's is not known yet.
    pub(super) fn of(&mut self, packet: &Packet) -> Option<u32> {
        let inner = innermost(packet);
        match &inner.payload {
            Payload::Sctp(sctp) | Payload::SctpOverUdp { packet: sctp, .. } => self.of_sctp(sctp),
            Payload::Tcp(tcp) => {
                Some(self.between(Transport::Tcp, inner, (tcp.source_port, tcp.destination_port)))
            }
            // what a connection is to TCP, the pair of its ends is to an application's datagrams
            Payload::Udp(udp) if names::udp(udp) == "DATA" => {
                Some(self.between(Transport::Udp, inner, (udp.source_port, udp.destination_port)))
            }
            Payload::Raw(raw) => {
                let segment = KernelSegment::of(raw)?;
                Some(self.between(segment.transport, inner, segment.ports))
            }
            _ => None,
        }
    }

    /// The number of the association with this verification tag.
    pub(super) fn of_tag(&self, tag: u32) -> Option<u32> {
        self.associations.get(&tag).copied()
    }

    /// The number of the TCP connection between these ends.
    pub(super) fn of_tcp(&mut self, a: (Ipv6Addr, u16), b: (Ipv6Addr, u16)) -> u32 {
        self.of_ends(Transport::Tcp, a, b)
    }

    /// The number of that between the ends of a packet outside all tunnels.
    fn between(&mut self, over: Transport, inner: &Packet, ports: (u16, u16)) -> u32 {
        let source = inner.home_address().unwrap_or(inner.ip.source);
        self.of_ends(over, (source, ports.0), (inner.final_destination(), ports.1))
    }

    fn of_ends(&mut self, over: Transport, a: (Ipv6Addr, u16), b: (Ipv6Addr, u16)) -> u32 {
        let [a, b] = [a, b].map(|(address, port)| (self.identity(address), port));
        let next = &mut self.next;
        *self
            .connections
            .entry((over, [a.min(b), a.max(b)]))
            .or_insert_with(|| take(next))
    }

    fn of_sctp(&mut self, packet: &SctpPacket) -> Option<u32> {
        if let [Chunk::InitAck(init), ..] = packet.chunks.as_slice() {
            let known = self.of_tag(packet.verification_tag);
            let number = known.unwrap_or_else(|| take(&mut self.next));
            for tag in [packet.verification_tag, init.initiate_tag] {
                self.associations.insert(tag, number);
            }
        }
        self.of_tag(packet.verification_tag)
    }

    /// What of an address stays when its host moves: of ILNPv6 the identifier, otherwise all of it.
    fn identity(&self, address: Ipv6Addr) -> Ipv6Addr {
        let kept = if self.by_identifiers {
            u128::from(u64::MAX)
        } else {
            u128::MAX
        };
        (u128::from(address) & kept).into()
    }
}

fn take(next: &mut u32) -> u32 {
    *next += 1;
    *next - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_one_both_ways_and_over_every_locator() {
        let end = |prefix: u16, port| (Ipv6Addr::new(prefix, 0, 0, 0, 0, 0, 0, port), port);
        let mut plain = Numbers::new(false);
        assert_eq!(plain.of_tcp(end(1, 5), end(2, 6)), 0);
        assert_eq!(plain.of_tcp(end(2, 6), end(1, 5)), 0);
        assert_eq!(
            plain.of_tcp(end(3, 5), end(2, 6)),
            1,
            "another host, with the same interface identifier"
        );
        let mut ilnp = Numbers::new(true);
        assert_eq!(ilnp.of_tcp(end(1, 5), end(2, 6)), 0);
        assert_eq!(ilnp.of_tcp(end(2, 6), end(3, 5)), 0);
    }
}
