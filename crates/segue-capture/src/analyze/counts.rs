//! What was counted of one capture.

use super::decode::{self, Decoded, Skip};
use std::collections::BTreeMap;

/// What was counted of one capture.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    skipped: [u64; Skip::ALL.len()],
    fragments: u64,
    tcp: u64,
    udp: u64,
    sctp: u64,
    icmpv6: u64,
    mobility: u64,
    other: u64,
}

impl Counts {
    /// A packet is taken apart.
    pub(super) const fn packet(&mut self, packet: &Decoded<'_>) {
        self.fragments += packet.fragment as u64;
        let kind = match packet.protocol {
            decode::TCP => &mut self.tcp,
            decode::UDP => &mut self.udp,
            decode::SCTP => &mut self.sctp,
            decode::ICMPV6 => &mut self.icmpv6,
            decode::MOBILITY => &mut self.mobility,
            _ => &mut self.other,
        };
        *kind += 1;
    }

    /// A packet, or what is in it, is not followed.
    pub(super) const fn skipped(&mut self, skip: Skip) {
        self.skipped[skip as usize] += 1;
    }

    /// Both together.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.skipped
            .iter_mut()
            .zip(other.skipped)
            .for_each(|(own, n)| *own += n);
        self.fragments += other.fragments;
        self.tcp += other.tcp;
        self.udp += other.udp;
        self.sctp += other.sctp;
        self.icmpv6 += other.icmpv6;
        self.mobility += other.mobility;
        self.other += other.other;
        self
    }

    /// By name, without those that are zero.
    pub(super) fn by_name(&self) -> BTreeMap<&'static str, u64> {
        let skipped = Skip::ALL.iter().zip(self.skipped).map(|(s, n)| (s.name(), n));
        let kinds = [
            ("first-fragments", self.fragments),
            ("tcp", self.tcp),
            ("udp", self.udp),
            ("sctp", self.sctp),
            ("icmpv6", self.icmpv6),
            ("mobility-header", self.mobility),
            ("other-protocols", self.other),
        ];
        skipped.chain(kinds).filter(|(_, n)| *n > 0).collect()
    }
}
