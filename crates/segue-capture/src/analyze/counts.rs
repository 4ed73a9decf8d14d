//! What was counted of one capture.

use super::decode::Skip;
use std::collections::BTreeMap;

/// What was counted of one capture.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub skipped: [u64; Skip::ALL.len()],
    pub fragments: u64,
    pub tcp: u64,
    pub udp: u64,
    pub sctp: u64,
    pub icmpv6: u64,
    pub mobility: u64,
    pub other: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
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
