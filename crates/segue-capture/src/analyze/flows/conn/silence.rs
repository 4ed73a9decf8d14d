//! Since when nothing gets to the receiver of a direction.

use super::half::Half;
use crate::analyze::model::Protocol;

/// A WireGuard peer that gets data and has none to send says so after 10 s, and who hears nothing asks for new keys after
/// 5 more (KEEPALIVE-TIMEOUT and REKEY-TIMEOUT of its paper, sections 6.2 and 6.5).
const WIREGUARD_SILENT_NS: u64 = 15_000_000_000;

/// Datagrams of nobody knows what must have been answered so often for an answer to be expected.
const ANSWERS_EXPECTED: u32 = 4;

/// Since when nothing new has got to the receiver, if the direction is dead, or would be if it ended at `end_ns`, of a flow
/// that has carried data.
pub(super) fn dead_since(protocol: Protocol, half: &Half, end_ns: u64) -> Option<u64> {
    let progress = half.progress();
    let patience_ns = half.patience_ns();
    let (data, probes) = (progress.data(), progress.probes_alone());
    let (answers, longest_answer_ns) = progress.answers();
    let is_acknowledged = protocol.is_acknowledged();
    let tried = match protocol {
        Protocol::Tcp | Protocol::Mptcp | Protocol::Sctp => {
            // FIN again and again of one whose data has arrived is no attempt: it is closed
            data.and(probes).span_ns() > patience_ns
        }
        Protocol::Wireguard => probes.span_ns() > patience_ns || data.span_ns() > WIREGUARD_SILENT_NS,
        Protocol::Quic => data.span_ns() > patience_ns.max(2 * longest_answer_ns),
        Protocol::Udp => {
            let matched = half.ends().is_some_and(|e| e.is_matched());
            (matched || answers >= ANSWERS_EXPECTED)
                && data.span_ns() > patience_ns.max(2 * longest_answer_ns)
        }
    };
    if !tried {
        return None;
    }
    // a receiver's capture that had ended says nothing, unless the sender heard of him before and then did not
    if progress.heard_ns().is_none() && half.ends().is_none_or(|e| e.ends_early(end_ns)) {
        return None;
    }
    let known_ns = progress.last_ns()?;
    let Some(view) = half.arrivals().filter(|_| half.has_left()) else {
        return Some(known_ns);
    };
    // the sender may know of more than a receiver's capture that ended before
    let more = is_acknowledged && progress.acked().is_some_and(|acked| view.falls_short_of(acked));
    Some(if more { known_ns } else { view.last_new_ns() })
}
