//! Fragments that a host receives, and those that it sends (RFC 8200 section 4.5).

use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::fragment::{Fragment, fragment, reassembled};
use std::collections::VecDeque;

/// Packets of which some fragments have arrived. Memory is bounded: the oldest gives way to the newest.
#[derive(Debug, Default)]
pub(in crate::host) struct Reassembler {
    partial: VecDeque<Partial>,
}

#[derive(Debug)]
struct Partial {
    key: (Ipv6Addr, Ipv6Addr, u32),
    /// By offset.
    fragments: Vec<Fragment>,
    since: Instant,
}

/// What a host sends in fragments.
#[derive(Debug)]
pub(in crate::host) struct Fragmenter {
    /// Of the last packet.
    identification: u32,
    /// That packet.
    last: Option<Box<Packet>>,
}

impl Fragmenter {
    /// The first packet has the identification behind this one.
    pub(in crate::host) fn new(identification: u32) -> Self {
        Self {
            identification,
            last: None,
        }
    }

    /// Cuts a packet.
    pub(in crate::host) fn cut(&mut self, packet: Packet, mtu: usize) -> Vec<Packet> {
        self.identification = self.identification.wrapping_add(1);
        self.last = Some(Box::new(packet.clone()));
        fragment(packet, mtu, self.identification)
    }

    /// The packet that was last cut, if its fragments have this identification.
    pub(in crate::host) fn last(&self, identification: u32) -> Option<&Packet> {
        self.last
            .as_deref()
            .filter(|_| self.identification == identification)
    }
}

/// What came of a fragment.
#[derive(Debug)]
pub(in crate::host) enum Outcome {
    /// The packet is whole.
    Whole(Box<Packet>),
    /// More are missing.
    Waits,
    /// The packet is given up: fragments overlap (RFC 5722), or the whole does not parse.
    Bad,
}

impl Reassembler {
    pub(in crate::host) fn take(&mut self, now: Instant, fragment: Fragment) -> Outcome {
        // 60 seconds; what is too old is found when something new comes, for the number is bounded
        self.partial.retain(|p| now.since(p.since) < LIFE);
        let key = (
            fragment.ip.source,
            fragment.ip.destination,
            fragment.identification,
        );
        let index = match self.partial.iter().position(|p| p.key == key) {
            Some(index) => index,
            None => {
                if self.partial.len() == MOST {
                    self.partial.pop_front();
                }
                self.partial.push_back(Partial {
                    key,
                    fragments: Vec::new(),
                    since: now,
                });
                self.partial.len() - 1
            }
        };
        let partial = &mut self.partial[index];
        // an exact duplicate may be ignored
        if partial.fragments.contains(&fragment) {
            return Outcome::Waits;
        }
        let at = partial.fragments.partition_point(|f| f.offset < fragment.offset);
        partial.fragments.insert(at, fragment);
        if partial.overlaps() {
            self.partial.remove(index);
            return Outcome::Bad;
        }
        if !partial.is_whole() {
            return Outcome::Waits;
        }
        let Some(partial) = self.partial.remove(index) else {
            return Outcome::Bad;
        };
        let first = &partial.fragments[0];
        let bytes: Vec<u8> = partial
            .fragments
            .iter()
            .flat_map(|f| f.bytes.iter().copied())
            .collect();
        match reassembled(&first.ip, first.next_header, &bytes) {
            Ok(packet) => Outcome::Whole(Box::new(packet)),
            Err(_) => Outcome::Bad,
        }
    }
}

impl Partial {
    fn overlaps(&self) -> bool {
        self.fragments
            .windows(2)
            .any(|w| !w[0].more || w[0].offset + w[0].bytes.len() > w[1].offset)
    }

    fn is_whole(&self) -> bool {
        let mut end = 0;
        for fragment in &self.fragments {
            if fragment.offset != end {
                return false;
            }
            end += fragment.bytes.len();
        }
        self.fragments.last().is_some_and(|f| !f.more)
    }
}

const LIFE: Duration = Duration::from_secs(60);
/// Packets in reassembly at a time.
const MOST: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use segue_wire::fragment::fragment;
    use segue_wire::sctp::{Chunk, SctpPacket};
    use segue_wire::{ExtensionHeader, Ipv6Header, Payload};

    fn packet() -> Packet {
        Packet {
            ip: Ipv6Header {
                source: "2001:db8::1".parse().unwrap(),
                destination: "2001:db8::2".parse().unwrap(),
                traffic_class: 0,
                hop_limit: 64,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload: Payload::Sctp(SctpPacket {
                source_port: 1,
                destination_port: 2,
                verification_tag: 3,
                chunks: [Chunk::CookieEcho((0..3000u32).map(|n| n as u8).collect())]
                    .into_iter()
                    .collect(),
            }),
        }
    }

    fn fragments(identification: u32) -> Vec<Fragment> {
        fragment(packet(), 1280, identification)
            .iter()
            .map(|p| Fragment::of(p).unwrap())
            .collect()
    }

    #[test]
    fn fragments_in_any_order_and_twice_give_the_packet_once() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut r = Reassembler::default();
            for (n, i) in order.into_iter().enumerate() {
                let fragment = fragments(7)[i].clone();
                let outcome = r.take(Instant::ZERO, fragment.clone());
                if n < 2 {
                    assert!(matches!(outcome, Outcome::Waits));
                    assert!(matches!(r.take(Instant::ZERO, fragment), Outcome::Waits));
                } else {
                    assert!(matches!(outcome, Outcome::Whole(p) if *p == packet()));
                }
            }
        }
    }

    #[test]
    fn overlapping_fragments_give_nothing() {
        // RFC 5722 section 4
        let mut r = Reassembler::default();
        let [first, second, _] = &fragments(7)[..] else {
            panic!("three")
        };
        assert!(matches!(r.take(Instant::ZERO, first.clone()), Outcome::Waits));
        let mut over = second.clone();
        over.offset -= 8;
        assert!(matches!(r.take(Instant::ZERO, over), Outcome::Bad));
        assert!(r.partial.is_empty());
    }

    #[test]
    fn memory_is_bounded_and_old_fragments_are_forgotten() {
        let mut r = Reassembler::default();
        for identification in 0..1000 {
            let first = fragments(identification)[0].clone();
            assert!(matches!(r.take(Instant::ZERO, first), Outcome::Waits));
        }
        assert_eq!(r.partial.len(), MOST);
        let late = Instant::ZERO + LIFE;
        let rest = fragments(999)[1].clone();
        assert!(matches!(r.take(late, rest), Outcome::Waits));
        assert_eq!(r.partial.len(), 1);
    }

    #[test]
    fn an_atomic_fragment_is_no_fragment() {
        let mut atomic = packet();
        atomic.extensions.push(ExtensionHeader::Fragment {
            offset: 0,
            more: false,
            identification: 1,
        });
        assert_eq!(Fragment::of(&atomic), None);
    }
}
