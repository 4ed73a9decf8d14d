//! A proxy that knows the links to mobile hosts and keeps senders from filling their queues (Cottingham and Vidales,
//! section 7, after Chakravorty et al., "Practical experience with TCP over GPRS", GLOBECOM 2002): TCP has no field for
//! cwnd, so it lowers the window that the mobile host offers in its acknowledgements.
//!
//! Windows are scaled (RFC 7323 section 2): the proxy must have seen both SYNs to know by how much, and leaves a connection
//! alone of which it has not. It rounds down, but never to zero. In raw packets it adjusts the checksum by difference (RFC
//! 1624); typed ones get theirs when they are emitted.

use core::net::Ipv6Addr;
use segue_wire::raw::ChecksumState;
use segue_wire::tcp::{NEXT_HEADER, TcpFlags};
use segue_wire::{Packet, Payload, checksum};
use std::collections::{BTreeMap, VecDeque};

/// A proxy.
#[derive(Debug, Default)]
pub struct WindowClamp {
    limits: Vec<(u64, u32)>,
    /// Of everybody else.
    others: Option<u32>,
    shifts: BTreeMap<Direction, Offered>,
    /// The oldest connection is forgotten first.
    order: VecDeque<Direction>,
    counters: ClampCounters,
}

/// What a proxy did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClampCounters {
    /// Segments whose window was lowered.
    pub clamped: u64,
    /// Segments left alone since the scale of their windows is not known.
    pub unknown_scale: u64,
}

/// A sender's end, its port, and the other's.
type Direction = (Ipv6Addr, u16, Ipv6Addr, u16);

/// The window scale of a SYN, if it had one.
#[derive(Clone, Copy, Debug)]
struct Offered(Option<u8>);

/// Most connections kept.
const MOST_CONNECTIONS: usize = 65_536;

impl WindowClamp {
    /// A proxy that lets nobody in the networks with these prefixes (the upper 64 bits of care-of addresses) offer more
    /// than so many bytes.
    #[must_use]
    pub fn new(limits: Vec<(u64, u32)>) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// A proxy that lets nobody at all offer more than so many bytes.
    #[must_use]
    pub fn for_all(limit: u32) -> Self {
        Self {
            others: Some(limit),
            ..Self::default()
        }
    }

    /// From now on nobody else may offer more than so many bytes, or anybody what he likes.
    pub fn limit_all(&mut self, limit: Option<u32>) {
        self.others = limit;
    }

    /// What it did.
    #[must_use]
    pub const fn counters(&self) -> ClampCounters {
        self.counters
    }

    /// A packet passes.
    pub fn handle_packet(&mut self, packet: &mut Packet) {
        let prefix = (packet.ip.source.to_bits() >> 64) as u64;
        let own = self.limits.iter().find(|(p, _)| *p == prefix).map(|(_, l)| *l);
        self.pass(packet, own.or(self.others));
    }

    fn pass(&mut self, packet: &mut Packet, limit: Option<u32>) {
        if let Payload::Ipv6(inner) = &mut packet.payload {
            return self.pass(inner, limit);
        }
        let from = packet.home_address().unwrap_or(packet.ip.source);
        let to = packet.final_destination();
        match &mut packet.payload {
            Payload::Tcp(segment) => {
                let direction = (from, segment.source_port, to, segment.destination_port);
                if segment.flags.contains(TcpFlags::SYN) {
                    self.note_syn(direction, segment.options.window_scale());
                } else if let Some(window) = self.lowered(direction, segment.window, limit) {
                    segment.window = window;
                }
            }
            Payload::Raw(raw) if raw.next_header == NEXT_HEADER => {
                let Some(header) = raw.bytes.first_chunk::<20>() else {
                    return;
                };
                let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
                let direction = (from, port(0), to, port(2));
                let syn = header[13] & 0x02 != 0;
                let window = port(14);
                let old = [header[14], header[15]];
                let sum = port(16);
                if syn {
                    let end = (usize::from(header[12] >> 4) * 4).clamp(20, raw.bytes.len().max(20));
                    let scale = window_scale(raw.bytes.get(20..end).unwrap_or_default());
                    self.note_syn(direction, scale);
                } else if let Some(window) = self.lowered(direction, window, limit) {
                    let new = window.to_be_bytes();
                    let mut changed = raw.bytes.to_vec();
                    changed[14..16].copy_from_slice(&new);
                    // a partial sum is of the pseudo-header alone
                    if raw.checksum != ChecksumState::Partial {
                        let sum = checksum::adjust(sum, &old, &new);
                        changed[16..18].copy_from_slice(&sum.to_be_bytes());
                    }
                    raw.bytes = changed.into();
                }
            }
            _ => {}
        }
    }

    fn note_syn(&mut self, direction: Direction, scale: Option<u8>) {
        let offered = Offered(scale.map(|s| s.min(14)));
        if self.shifts.insert(direction, offered).is_none() {
            self.order.push_back(direction);
            if self.order.len() > MOST_CONNECTIONS
                && let Some(oldest) = self.order.pop_front()
            {
                self.shifts.remove(&oldest);
            }
        }
    }

    /// The window field that a segment is to have, if another than it has.
    fn lowered(&mut self, direction: Direction, window: u16, limit: Option<u32>) -> Option<u16> {
        let limit = limit?;
        let (a, a_port, b, b_port) = direction;
        let ours = self.shifts.get(&direction);
        let (Some(ours), Some(theirs)) = (ours, self.shifts.get(&(b, b_port, a, a_port))) else {
            self.counters.unknown_scale += 1;
            return None;
        };
        // RFC 7323 section 2.2: both or neither
        let shift = ours.0.filter(|_| theirs.0.is_some()).unwrap_or(0);
        let most = (limit >> shift).clamp(1, u32::from(u16::MAX)) as u16;
        if window <= most {
            return None;
        }
        self.counters.clamped += 1;
        Some(most)
    }
}

/// The shift count among the options of a raw SYN.
fn window_scale(mut options: &[u8]) -> Option<u8> {
    loop {
        match options {
            [] | [0, ..] => return None,
            [1, rest @ ..] => options = rest,
            [3, 3, shift, ..] => return Some(*shift),
            [_, length, ..] => options = options.get(usize::from((*length).max(2))..)?,
            [_] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use segue_wire::tcp::{TcpOptions, TcpSegment};
    use segue_wire::{Data, ExtensionHeader, Ipv6Header, SeqNumber};

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
    const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 4, 0, 0, 0, 0, 9);
    const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff00, 0, 0, 0, 0, 1);
    const LIMIT: u32 = 8000;

    fn header(source: Ipv6Addr, destination: Ipv6Addr) -> Ipv6Header {
        Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        }
    }

    fn segment(from: Ipv6Addr, to: Ipv6Addr, flags: TcpFlags, window: u16, scale: Option<u8>) -> Packet {
        let (source_port, destination_port) = if to == PEER { (9, 4000) } else { (4000, 9) };
        let mut options = TcpOptions::default();
        if let Some(shift) = scale {
            options.set_window_scale(shift);
        }
        Packet {
            ip: header(from, to),
            extensions: Vec::new(),
            payload: Payload::Tcp(TcpSegment {
                source_port,
                destination_port,
                seq: SeqNumber(7),
                ack: SeqNumber(8),
                flags,
                window,
                options,
                data: Data::Synthetic { offset: 0, len: 0 },
            }),
        }
    }

    fn window(packet: &Packet) -> u16 {
        match &packet.payload {
            Payload::Tcp(segment) => segment.window,
            Payload::Ipv6(inner) => window(inner),
            _ => unreachable!(),
        }
    }

    fn proxy(scales: [Option<u8>; 2]) -> WindowClamp {
        let mut proxy = WindowClamp::new(vec![((CARE_OF.to_bits() >> 64) as u64, LIMIT)]);
        let syns = [
            (PEER, HOME, TcpFlags::SYN),
            (HOME, PEER, TcpFlags::SYN | TcpFlags::ACK),
        ];
        for ((from, to, flags), scale) in syns.into_iter().zip(scales) {
            let mut syn = segment(from, to, flags, 65_535, scale);
            proxy.handle_packet(&mut syn);
            assert_eq!(
                window(&syn),
                65_535,
                "windows of SYNs are not scaled, and left alone"
            );
        }
        proxy
    }

    fn direct(window: u16) -> Packet {
        let mut packet = segment(CARE_OF, PEER, TcpFlags::ACK, window, None);
        packet.extensions.push(ExtensionHeader::home_address(HOME));
        packet
    }

    #[test]
    fn the_window_is_lowered_in_units_of_its_scale() {
        for (scales, expected) in [
            ([None, None], 8000),
            ([Some(7), Some(3)], 1000),
            ([Some(7), None], 8000),
            ([None, Some(3)], 8000),
            ([Some(0), Some(14)], 1),
        ] {
            let mut proxy = proxy(scales);
            let mut ack = direct(60_000);
            proxy.handle_packet(&mut ack);
            assert_eq!(window(&ack), expected, "{scales:?}");
            assert_eq!(proxy.counters().clamped, 1);
        }
    }

    #[test]
    fn what_is_less_or_elsewhere_or_unknown_is_left_alone() {
        let mut proxy = proxy([None, None]);
        let mut small = direct(7000);
        proxy.handle_packet(&mut small);
        let mut at_home = segment(HOME, PEER, TcpFlags::ACK, 60_000, None);
        proxy.handle_packet(&mut at_home);
        let mut other = direct(60_000);
        if let Payload::Tcp(segment) = &mut other.payload {
            segment.source_port = 10;
        }
        proxy.handle_packet(&mut other);
        let windows = [window(&small), window(&at_home), window(&other)];
        assert_eq!(windows, [7000, 60_000, 60_000]);
        let counters = proxy.counters();
        assert_eq!((counters.clamped, counters.unknown_scale), (0, 1));
    }

    #[test]
    fn one_for_all_knows_no_networks() {
        let mut proxy = WindowClamp::for_all(LIMIT);
        for (from, to, flags) in [
            (PEER, HOME, TcpFlags::SYN),
            (HOME, PEER, TcpFlags::SYN | TcpFlags::ACK),
        ] {
            proxy.handle_packet(&mut segment(from, to, flags, 65_535, Some(1)));
        }
        for (from, to) in [(HOME, PEER), (PEER, HOME)] {
            let mut ack = segment(from, to, TcpFlags::ACK, 60_000, None);
            proxy.handle_packet(&mut ack);
            assert_eq!(u32::from(window(&ack)) << 1, LIMIT);
        }
    }

    #[test]
    fn a_limit_that_comes_later_holds_for_connections_that_there_are() {
        let mut proxy = WindowClamp::default();
        for (from, to, flags) in [
            (PEER, HOME, TcpFlags::SYN),
            (HOME, PEER, TcpFlags::SYN | TcpFlags::ACK),
        ] {
            proxy.handle_packet(&mut segment(from, to, flags, 65_535, Some(1)));
        }
        let mut passes = || {
            let mut ack = segment(HOME, PEER, TcpFlags::ACK, 60_000, None);
            proxy.handle_packet(&mut ack);
            proxy.limit_all(if window(&ack) == 60_000 { Some(LIMIT) } else { None });
            window(&ack)
        };
        assert_eq!([passes(), passes(), passes()], [60_000, 4000, 60_000]);
    }

    #[test]
    fn in_a_tunnel_too() {
        let mut proxy = proxy([None, None]);
        let inner = segment(HOME, PEER, TcpFlags::ACK, 60_000, None);
        let mut packet = Packet {
            ip: header(CARE_OF, HOME),
            extensions: Vec::new(),
            payload: Payload::Ipv6(Box::new(inner)),
        };
        proxy.handle_packet(&mut packet);
        assert_eq!(u32::from(window(&packet)), LIMIT);
    }

    #[test]
    fn raw_segments_keep_a_right_checksum() {
        let mut proxy = proxy([Some(2), Some(3)]);
        let mut emitted = Vec::new();
        direct(50_000).emit(&mut emitted);
        let mut raw = Packet::parse_raw(&Bytes::from(emitted), ChecksumState::Complete, None).unwrap();
        assert!(matches!(raw.payload, Payload::Raw(_)));
        proxy.handle_packet(&mut raw);
        let mut again = Vec::new();
        raw.emit(&mut again);
        // parsing verifies the checksum
        let parsed = Packet::parse(&Bytes::from(again)).unwrap();
        assert_eq!(window(&parsed), 1000);
    }
}
