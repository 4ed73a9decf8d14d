//! A handover, with what was around it.

use super::rates::Lately;
use crate::analyze::adaptation::AdaptationTime;

/// A path that is used beside others is lost when it has been silent for this long.
pub(in super::super) const SILENT_NS: u64 = 1_000_000_000;

/// What went over the old path just before, and over the new one just after.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Around {
    /// Useful bytes in the window before.
    pub before: Lately,
    /// Useful bytes in the window after.
    pub bytes_after: u64,
    /// Of that window, what passed before the direction ended or moved on.
    pub after_ns: u64,
    pub rtt_before_s: Option<f64>,
    pub rtt_after_s: Option<f64>,
    pub out_of_order: u64,
}

impl Around {
    /// Nothing did.
    pub(super) const NOTHING: Self = Self {
        before: Lately { bytes: 0, ns: 0 },
        bytes_after: 0,
        after_ns: 0,
        rtt_before_s: None,
        rtt_after_s: None,
        out_of_order: 0,
    };
}

/// A handover with what was around it.
#[derive(Clone, Debug)]
pub(in super::super) struct Moved {
    pub from: u16,
    pub to: u16,
    pub last_old_ns: u64,
    pub first_new_ns: u64,
    pub interruption_ns: u64,
    pub settling_gap_ns: u64,
    pub adaptation: Option<AdaptationTime>,
    pub around: Around,
    /// Number of its counts in the two ends' account.
    pub ends: Option<usize>,
    /// The new path was tried, and nothing new ever came: the interruption goes on.
    pub in_vain: bool,
    /// As it shows at the receiver.
    pub received: bool,
    /// Packets over the new path until the next handover.
    pub packets_over: u64,
}

impl Moved {
    /// A move to a path that was tried from `tried_ns` on; nothing new came from `since_ns` until `until_ns`.
    pub(in super::super) const fn in_vain(
        from: u16,
        to: u16,
        tried_ns: u64,
        since_ns: u64,
        until_ns: u64,
    ) -> Self {
        let silence_ns = until_ns.saturating_sub(since_ns);
        Self {
            from,
            to,
            last_old_ns: since_ns,
            first_new_ns: tried_ns,
            interruption_ns: silence_ns,
            settling_gap_ns: silence_ns,
            adaptation: None,
            around: Around::NOTHING,
            ends: None,
            in_vain: true,
            received: false,
            packets_over: 0,
        }
    }
}
