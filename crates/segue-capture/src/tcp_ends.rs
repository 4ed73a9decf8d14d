//! Loss and retransmission of TCP from what its two ends saw: the packets that left the sender and those that reached
//! the receiver, matched by TCP sequence number (Phoomikiattisak and Bhatti 2019, sections 6.1.2 and 6.1.3).
//!
//! - A **retransmission** is a packet sent whose first byte had been sent before.
//! - A packet is **lost** if no packet received matches it; one that was received and is not taken by the receiver,
//!   because it came to a locator that the receiver no longer has, is lost as well.
//! - A retransmission is **spurious** if an earlier copy of it was received, even afterwards.
//! - A packet is **in flight** if it is not received, was sent after the last one that was received by its way, and
//!   no longer before the end than any packet took.
//!
//! Copies of a segment are told apart by their timestamps (RFC 7323); where they have none, or the same, they arrive in
//! the order in which they were sent.
//!
//! ```
//! use segue_capture::tcp_ends::{FlowPorts, Seen, compare};
//! let flow = FlowPorts { source: 5001, destination: 40000 };
//! let way = [0; 16].into();
//! let seen = |time_ns, seq, tsval| Seen { time_ns, flow, seq, length: 100, timestamp: Some(tsval), way, taken: true };
//! let sent = [seen(0, 0, 0), seen(1, 100, 1), seen(2, 200, 2), seen(9, 100, 9)];
//! let received = [seen(5, 0, 0), seen(7, 200, 2), seen(14, 100, 9)];
//! let counts = compare(&sent, &received)[&flow];
//! assert_eq!((counts.retransmissions, counts.lost_packets, counts.spurious_retransmissions), (1, 1, 0));
//! ```

use crate::pcapng::{Direction, PcapngFile};
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, LocatorOperation};
use segue_wire::{Packet, Payload};
use std::collections::{BTreeMap, VecDeque};

/// A TCP packet with data, as one end saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Nanoseconds.
    pub time_ns: u64,
    /// Which flow.
    pub flow: FlowPorts,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Bytes of data.
    pub length: u32,
    /// TSval, if there is one.
    pub timestamp: Option<u32>,
    /// The address that it went to.
    pub way: Ipv6Addr,
    /// Its receiver took it.
    pub taken: bool,
}

/// The ports of a flow: addresses change under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowPorts {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
}

/// Counts of a flow, packets with data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndCounts {
    /// Packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Of them, retransmissions.
    pub retransmissions: u64,
    /// Of them, lost.
    pub lost_packets: u64,
    /// Of the retransmissions, spurious ones.
    pub spurious_retransmissions: u64,
    /// Packets that were in flight when the captures ended.
    pub in_flight_packets: u64,
}

/// Counts by flow from what the sender sent and the receiver received, each in order of time.
#[must_use]
pub fn compare(sent: &[Seen], received: &[Seen]) -> BTreeMap<FlowPorts, EndCounts> {
    let mut flows: BTreeMap<FlowPorts, (Vec<&Seen>, Vec<&Seen>)> = BTreeMap::new();
    for packet in sent {
        flows.entry(packet.flow).or_default().0.push(packet);
    }
    for packet in received {
        if let Some((_, arrived)) = flows.get_mut(&packet.flow) {
            arrived.push(packet);
        }
    }
    let count =
        |(flow, (sent, received)): (FlowPorts, (Vec<&Seen>, Vec<&Seen>))| (flow, one(&sent, &received));
    flows.into_iter().map(count).collect()
}

/// The packets with data that left the host of this capture.
#[must_use]
pub fn sent_by(capture: &PcapngFile) -> Vec<Seen> {
    seen(capture, Direction::Outbound)
}

/// The packets with data that reached the host of this capture. Its own Locator Updates in the capture tell which
/// locators it has (RFC 6743): what comes to another under ILNP is not taken.
#[must_use]
pub fn received_by(capture: &PcapngFile) -> Vec<Seen> {
    seen(capture, Direction::Inbound)
}

fn seen(capture: &PcapngFile, wanted: Direction) -> Vec<Seen> {
    let mut all = Vec::new();
    let mut locators: Option<Vec<Locator>> = None;
    for captured in &capture.packets {
        let Ok(packet) = Packet::parse(&captured.bytes) else {
            continue;
        };
        if captured.direction == Some(Direction::Outbound)
            && let Some(new) = announced(&packet)
        {
            locators = Some(new);
        }
        if captured.direction != Some(wanted) {
            continue;
        }
        let inner = innermost(&packet);
        let Payload::Tcp(segment) = &inner.payload else {
            continue;
        };
        if segment.data.is_empty() {
            continue;
        }
        let way = inner.ip.destination;
        let has = |locators: &Vec<Locator>| locators.contains(&Locator::of(way));
        let stale = inner.ilnp_nonce().is_some() && !locators.as_ref().is_none_or(has);
        all.push(Seen {
            time_ns: captured.time_ns,
            flow: FlowPorts {
                source: segment.source_port,
                destination: segment.destination_port,
            },
            seq: segment.seq.0,
            length: segment.data.len() as u32,
            timestamp: segment.options.timestamps.map(|t| t.value),
            way,
            taken: !stale,
        });
    }
    all
}

/// The packet in all tunnels.
fn innermost(packet: &Packet) -> &Packet {
    match &packet.payload {
        Payload::Ipv6(inner) => innermost(inner),
        _ => packet,
    }
}

/// The locators that a Locator Update announces.
fn announced(packet: &Packet) -> Option<Vec<Locator>> {
    match &packet.payload {
        Payload::Icmpv6(Icmpv6::LocatorUpdate(update))
            if update.operation == LocatorOperation::Advertisement =>
        {
            let valid = update.locators.iter().filter(|e| e.lifetime_s > 0);
            Some(valid.map(|e| e.locator).collect())
        }
        _ => None,
    }
}

/// A packet sent, in the light of the receiver's capture.
struct Copy {
    /// First byte, counted from the first that was sent.
    offset: u64,
    end: u64,
    way: Ipv6Addr,
    sent_ns: u64,
    retransmission: bool,
    /// Received, and taken or not.
    received: Option<bool>,
}

/// Counts of one flow.
fn one(sent: &[&Seen], received: &[&Seen]) -> EndCounts {
    let Some(origin) = sent.first().map(|p| p.seq) else {
        return EndCounts::default();
    };
    let mut copies: Vec<Copy> = Vec::with_capacity(sent.len());
    let mut waiting: BTreeMap<(u32, u32, Option<u32>), VecDeque<usize>> = BTreeMap::new();
    let mut next = 0u64;
    for packet in sent {
        // the offset nearest to what is expected next: sequence numbers wrap
        let ahead = packet.seq.wrapping_sub(origin.wrapping_add(next as u32)) as i32;
        let offset = next.saturating_add_signed(i64::from(ahead));
        let key = (packet.seq, packet.length, packet.timestamp);
        waiting.entry(key).or_default().push_back(copies.len());
        copies.push(Copy {
            offset,
            end: offset + u64::from(packet.length),
            way: packet.way,
            sent_ns: packet.time_ns,
            retransmission: offset < next,
            received: None,
        });
        next = next.max(offset + u64::from(packet.length));
    }
    let mut longest_ns = 0;
    for packet in received {
        let key = (packet.seq, packet.length, packet.timestamp);
        if let Some(at) = waiting.get_mut(&key).and_then(VecDeque::pop_front) {
            copies[at].received = Some(packet.taken);
            longest_ns = longest_ns.max(packet.time_ns.saturating_sub(copies[at].sent_ns));
        }
    }
    let ends = sent.iter().chain(received).map(|p| p.time_ns).max();
    count(&copies, ends.unwrap_or_default().saturating_sub(longest_ns))
}

/// Counts what became of the copies; those sent at or after `recent_ns` may be under way.
fn count(copies: &[Copy], recent_ns: u64) -> EndCounts {
    let mut last_received: BTreeMap<Ipv6Addr, usize> = BTreeMap::new();
    for (number, copy) in copies.iter().enumerate() {
        if copy.received.is_some() {
            last_received.insert(copy.way, number);
        }
    }
    let mut counts = EndCounts {
        packets_sent: copies.len() as u64,
        ..EndCounts::default()
    };
    // by first byte: end, and whether a copy was taken
    let mut earlier: BTreeMap<u64, (u64, bool)> = BTreeMap::new();
    for (number, copy) in copies.iter().enumerate() {
        let taken = copy.received == Some(true);
        if copy.retransmission {
            counts.retransmissions += 1;
            let covering = earlier.range(..=copy.offset).next_back();
            let was_taken = covering.is_some_and(|(_, (end, taken))| *end > copy.offset && *taken);
            counts.spurious_retransmissions += u64::from(was_taken);
        }
        let known = earlier.entry(copy.offset).or_insert((copy.end, false));
        *known = (known.0.max(copy.end), known.1 | taken);
        let behind = last_received.get(&copy.way).is_some_and(|last| number < *last);
        match copy.received {
            Some(true) => {}
            Some(false) => counts.lost_packets += 1,
            None if behind || copy.sent_ns < recent_ns => counts.lost_packets += 1,
            None => counts.in_flight_packets += 1,
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowPorts = FlowPorts {
        source: 5001,
        destination: 40_000,
    };

    fn seen(time: u64, seq: u32, timestamp: u32) -> Seen {
        Seen {
            time_ns: time,
            flow: FLOW,
            seq,
            length: 100,
            timestamp: Some(timestamp),
            way: Ipv6Addr::LOCALHOST,
            taken: true,
        }
    }

    #[test]
    fn copies_are_told_apart_by_their_timestamps() {
        let sent = [seen(0, 0, 1), seen(1, 100, 1), seen(5, 0, 5), seen(6, 200, 6)];
        let first_arrives = [seen(9, 100, 1), seen(9, 0, 1), seen(9, 200, 6)];
        let counts = compare(&sent, &first_arrives)[&FLOW];
        assert_eq!((counts.lost_packets, counts.spurious_retransmissions), (1, 1));
        let second_arrives = [seen(9, 100, 1), seen(9, 0, 5), seen(9, 200, 6)];
        let counts = compare(&sent, &second_arrives)[&FLOW];
        assert_eq!((counts.lost_packets, counts.spurious_retransmissions), (1, 0));
    }

    #[test]
    fn a_packet_that_its_receiver_does_not_take_is_lost() {
        let sent = [seen(0, 0, 1), seen(1, 100, 1), seen(5, 0, 5)];
        let stale = Seen {
            taken: false,
            ..seen(3, 0, 1)
        };
        let counts = compare(&sent, &[stale, seen(4, 100, 1), seen(9, 0, 5)])[&FLOW];
        assert_eq!((counts.retransmissions, counts.lost_packets), (1, 1));
        assert_eq!(counts.spurious_retransmissions, 0);
    }

    #[test]
    fn what_was_sent_after_the_last_packet_that_arrived_by_its_way_is_in_flight() {
        let mut sent: Vec<Seen> = (0..6).map(|n| seen(u64::from(n), n * 100, n)).collect();
        sent[1].way = Ipv6Addr::UNSPECIFIED;
        sent[3].way = Ipv6Addr::UNSPECIFIED;
        let received = [seen(6, 0, 0), seen(8, 400, 4)];
        let counts = compare(&sent, &received)[&FLOW];
        // 2 was overtaken, 1 has been under way for longer than any packet was; 3 and 5 may come yet
        assert_eq!((counts.lost_packets, counts.in_flight_packets), (2, 2));
    }

    #[test]
    fn sequence_numbers_wrap() {
        let start = u32::MAX - 150;
        let sent = [
            seen(0, start, 1),
            seen(1, start.wrapping_add(100), 1),
            seen(2, start.wrapping_add(200), 1),
            seen(3, start.wrapping_add(100), 9),
        ];
        let counts = compare(&sent, &sent)[&FLOW];
        assert_eq!((counts.retransmissions, counts.spurious_retransmissions), (1, 1));
        assert_eq!(counts.lost_packets, 0);
    }
}
