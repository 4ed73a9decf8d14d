//! Since when nothing gets to the receiver of a direction.

use super::conn::{Conn, Half};
use crate::analyze::model::Protocol;
use crate::record::DEAD_AFTER_NS;

/// A WireGuard peer that gets data and has none to send says so after 10 s, and who hears nothing asks for new keys after
/// 5 more (KEEPALIVE-TIMEOUT and REKEY-TIMEOUT of its paper, sections 6.2 and 6.5).
const WIREGUARD_SILENT_NS: u64 = 15_000_000_000;

/// Datagrams of nobody knows what must have been answered so often for an answer to be expected.
const ANSWERS_EXPECTED: u32 = 4;

impl Conn {
    /// Since when nothing new has got to the receiver, if the direction is dead, or would be if it ended at `end_ns`.
    pub(in crate::analyze) fn dead_since(&self, direction: usize, end_ns: u64) -> Option<u64> {
        let half = &self.halves[direction];
        let progress = &half.progress;
        let patience_ns = patience_ns(half);
        let (data, probes) = (progress.data, progress.probes);
        let tried = match self.protocol {
            Protocol::Tcp | Protocol::Mptcp | Protocol::Sctp => {
                // FIN again and again of one whose data has arrived is no attempt: it is closed
                data.and(probes).span_ns() > patience_ns
            }
            Protocol::Wireguard => probes.span_ns() > patience_ns || data.span_ns() > WIREGUARD_SILENT_NS,
            Protocol::Quic => data.span_ns() > patience_ns.max(2 * progress.longest_answer_ns),
            Protocol::Udp => {
                let matched = half.ends.as_ref().is_some_and(|e| e.matched);
                (matched || progress.answers >= ANSWERS_EXPECTED)
                    && data.span_ns() > patience_ns.max(2 * progress.longest_answer_ns)
            }
        };
        let has_data = self
            .halves
            .iter()
            .any(|h| h.at.iter().flatten().any(|v| v.data_packets > 0));
        if !tried || !has_data {
            return None;
        }
        // a receiver's capture that had ended says nothing, unless the sender heard of him before and then did not
        if progress.heard_ns.is_none() && half.ends.as_ref().is_none_or(|e| e.ends_early(end_ns)) {
            return None;
        }
        let known_ns = progress.last_ns?;
        let arrived = half.at[1]
            .as_ref()
            .filter(|v| v.data_packets > 0 && half.packets[0] > 0);
        let Some(view) = arrived else {
            return Some(known_ns);
        };
        // the sender may know of more than a receiver's capture that ended before
        let more = match (progress.acked, view.sequence.end()) {
            (Some(acked), Some(end)) if self.is_acknowledged() => acked.wrapping_sub(end) as i32 > 0,
            _ => false,
        };
        Some(if more { known_ns } else { view.last_new_ns })
    }
}

/// Attempts are in vain after this.
pub(in crate::analyze) fn patience_ns(half: &Half) -> u64 {
    let trips = |place: usize| {
        let detail = half.at[place].as_ref()?.detail.as_ref()?;
        (detail.round_trips.count() > 0).then(|| detail.round_trips.rto_ns())
    };
    let rto_ns = trips(0).or_else(|| trips(1)).unwrap_or(DEAD_AFTER_NS);
    DEAD_AFTER_NS.max(rto_ns)
}
