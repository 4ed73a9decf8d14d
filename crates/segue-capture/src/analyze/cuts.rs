//! What a snap length cut off of the headers that the analysis reads, and which flows nothing can be said of therefore.
//!
//! Lengths are those that headers tell, so that data that was not captured counts as what it was. What a header would have said
//! that was not captured is not known: which chunks of SCTP there were, whether a SYN asked for MPTCP, which connection ID or counter
//! a datagram carried. A flow with such a packet is not reported with numbers that would be others, had all been captured.

use super::decode::Address;
use super::flows::conn::Conn;
use super::protocol::Protocol;
use std::collections::BTreeMap;

/// Pairs of addresses that are remembered.
const MAX_PAIRS: usize = 4096;

/// What was cut off of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct CutOff {
    /// Packets whose headers are not all there.
    pub packets: u64,
    /// Those whose selective acknowledgement is not there: it matters only where the flow seems to have stood still.
    pub acknowledgements: u64,
    /// So much of a packet has to be captured, at least.
    pub needed_bytes: u32,
}

impl CutOff {
    /// A packet whose headers are not all there.
    const fn packet(needed_bytes: u32) -> Self {
        Self {
            packets: 1,
            acknowledgements: 0,
            needed_bytes,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            acknowledgements: self.acknowledgements + other.acknowledgements,
            needed_bytes: self.needed_bytes.max(other.needed_bytes),
        }
    }
}

/// What was cut off of the headers of all packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Cuts {
    /// By number of the flow, while it lives.
    flows: BTreeMap<u64, CutOff>,
    /// Of packets between two hosts whose transport header is cut off.
    pairs: BTreeMap<(Address, Address), CutOff>,
    /// Of all packets, by what of them is cut off.
    whole: [CutOff; 4],
    /// Packets between more hosts than are remembered.
    beyond: u64,
}

/// What of a packet is cut off, of which it is not known of which flow it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Extension headers, what is in a tunnel, or signalling of mobility: any flow may have gone that way.
    Network,
    /// The transport's header.
    Tcp,
    Udp,
    Sctp,
}

impl Cuts {
    /// A packet of this flow is cut off within its headers.
    #[cold]
    pub(super) fn flow(&mut self, id: u64, needed_bytes: u32) {
        self.note(id, CutOff::packet(needed_bytes));
    }

    /// Only what it acknowledges selectively is.
    #[cold]
    pub(super) fn acknowledgement(&mut self, id: u64, needed_bytes: u32) {
        let cut = CutOff {
            packets: 0,
            acknowledgements: 1,
            needed_bytes,
        };
        self.note(id, cut);
    }

    fn note(&mut self, id: u64, cut: CutOff) {
        let known = self.flows.entry(id).or_default();
        *known = known.and(cut);
    }

    /// A packet between these, of whatever flow, is cut off within its headers.
    #[cold]
    pub(super) fn packet(
        &mut self,
        part: Part,
        (source, destination): (Address, Address),
        needed_bytes: u32,
    ) {
        let cut = CutOff::packet(needed_bytes);
        // what goes to many is of no flow that moves
        if destination.ip().is_multicast() {
            return;
        }
        let whole = &mut self.whole[part as usize];
        *whole = whole.and(cut);
        let key = (source.min(destination), source.max(destination));
        if self.pairs.len() < MAX_PAIRS || self.pairs.contains_key(&key) {
            let known = self.pairs.entry(key).or_default();
            *known = known.and(cut);
        } else {
            self.beyond += 1;
        }
    }

    /// Packets between more hosts than are remembered.
    pub(super) const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// What of a flow, which has got so far by `end_ns`, is missing; nothing if all that is said of it holds.
    pub(super) fn of(&self, id: u64, conn: &Conn, end_ns: u64) -> Option<CutOff> {
        if self.flows.is_empty() && self.pairs.is_empty() {
            return None;
        }
        let own = self.flows.get(&id).copied().unwrap_or_default();
        let between = |(source, destination): (Address, Address)| {
            let key = (source.min(destination), source.max(destination));
            self.pairs.get(&key).copied()
        };
        let ways = (0..).map_while(|number| conn.paths().way(number));
        let [a, b] = conn.parties().shown();
        let mut pairs: Vec<_> = ways.map(|way| way.outer).chain([(a, b)]).collect();
        pairs.sort_unstable();
        pairs.dedup_by_key(|(a, b)| (*a.min(b), *a.max(b)));
        let cut = pairs.into_iter().filter_map(between).fold(own, CutOff::and);
        let cut = self.elsewhere(conn).fold(cut, CutOff::and);
        // a selective acknowledgement would have shown that something got there after all
        let stood_still = |direction: usize| {
            conn.dead_since(direction, end_ns).is_some()
                || conn.half(direction).progress().outages().longest().is_some()
        };
        let matters = cut.packets > 0 || cut.acknowledgements > 0 && (stood_still(0) || stood_still(1));
        matters.then_some(cut)
    }

    /// What may be of this flow, although it went between others than it is known to.
    fn elsewhere(&self, conn: &Conn) -> impl Iterator<Item = CutOff> {
        let own = match conn.protocol() {
            Protocol::Mptcp => Some(Part::Tcp),
            Protocol::Tcp => conn.subflow().map(|_| Part::Tcp),
            Protocol::Quic | Protocol::Wireguard => Some(Part::Udp),
            Protocol::Sctp => Some(Part::Sctp),
            Protocol::Udp => None,
        };
        let parts = [Some(Part::Network), own].into_iter().flatten();
        parts.map(|part| self.whole[part as usize])
    }

    /// The flow has ended.
    pub(super) fn forget(&mut self, id: u64) {
        self.flows.remove(&id);
    }
}
