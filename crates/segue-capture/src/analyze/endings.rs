//! How each direction of a flow ended, and since when a dead one was.
//!
//! - **Closed**: FIN and all data acknowledged, FIN both ways, RST; SHUTDOWN, ABORT.
//! - **Idle**: all that was seen sent was acknowledged.
//! - **Dead**: its sender tried for longer than max([`DEAD_AFTER_NS`], RTO) since something last got there (see
//!   [`super::flows::progress`]). RTO is what RFC 6298 makes of the round trips seen, with neither a floor nor backing off.
//!   A RST or ABORT of the one who tried is his giving up, and no end that both agreed upon.
//! - **Unknown**: the capture cannot tell. At the receiver alone nothing shows what does not arrive: there, a direction is
//!   dead only if its receiver's own attempts were not answered either. Where no acknowledgement can be seen, silence counts
//!   from the last that the sender heard of its receiver, and has to be longer than any that was broken before; nothing is
//!   known of a sender that never heard anything.

use super::flows::conn::{Conn, PathState};
use super::flows::progress::{Note, What};
use super::model::Protocol;
use crate::record::{DEAD_AFTER_NS, FlowState};

/// A WireGuard peer that gets data and has none to send says so after 10 s, and who hears nothing asks for new keys after
/// 5 more (KEEPALIVE-TIMEOUT and REKEY-TIMEOUT of its paper, sections 6.2 and 6.5).
const WIREGUARD_SILENT_NS: u64 = 15_000_000_000;

/// Datagrams of nobody knows what must have been answered so often for an answer to be expected.
const ANSWERS_EXPECTED: u32 = 4;

/// How one direction ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending {
    pub state: FlowState,
    /// Of a dead one: when something last got there, and the end of the silence that is known of.
    pub silent_ns: Option<(u64, u64)>,
    /// Of a dead one: what its sender did about it.
    pub attempts: u32,
    pub tried_ns: (u64, u64),
    pub last_packets: Vec<(u64, String)>,
    /// Of a dead one that was tried over another path: from, to, when first.
    pub moved: Option<(u16, u16, u64)>,
}

/// Both directions of a flow; `end_ns` is the time up to which the captures have been read.
pub(super) fn of(conn: &Conn, end_ns: u64) -> [Ending; 2] {
    let mut endings = [alone(conn, 0, end_ns), alone(conn, 1, end_ns)];
    for direction in 0..2 {
        let other = &endings[1 - direction];
        if endings[direction].state == FlowState::Unknown
            && other.state == FlowState::Dead
            && conn.halves[direction].packets[0] == 0
            && let Some(view) = conn.halves[direction].at[1].as_ref().filter(|v| v.data_packets > 0)
            // nothing of this direction came any more when the other was tried
            && conn.halves[1 - direction].progress.heard_ns.is_none_or(|heard| heard <= other.tried_ns.0)
        {
            let silent_ns = other.silent_ns.map(|(_, end)| (view.last_new_ns, end));
            endings[direction] = Ending {
                state: FlowState::Dead,
                silent_ns,
                moved: None,
                ..other.clone()
            };
        }
    }
    endings
}

fn alone(conn: &Conn, direction: usize, end_ns: u64) -> Ending {
    let half = &conn.halves[direction];
    let progress = &half.progress;
    let given_up = conn.reset_by == Some(direction);
    let refused = conn.reset_by == Some(1 - direction);
    let mut ending = Ending::default();
    if !refused && let Some(since_ns) = dead_since(conn, direction, end_ns) {
        let all = progress.data.and(progress.probes);
        let end_ns = if given_up { conn.last_ns } else { end_ns };
        ending.state = FlowState::Dead;
        ending.silent_ns = Some((since_ns, end_ns.max(since_ns)));
        ending.attempts = all.count;
        ending.tried_ns = (all.first_ns, all.last_ns);
        ending.last_packets = progress
            .notes()
            .map(|n| (n.time_ns, told(conn, direction, &n)))
            .collect();
        ending.last_packets.sort_by_key(|p| p.0);
        ending.moved = progress.move_tried();
        return ending;
    }
    let all_acknowledged = conn.is_acknowledged() && half.packets[0] > 0 && !progress.is_outstanding();
    let all_closed = conn.closed == [true; 2];
    ending.state = if all_closed || (conn.closed[direction] && all_acknowledged) {
        FlowState::Closed
    } else if all_acknowledged {
        FlowState::Idle
    } else {
        FlowState::Unknown
    };
    ending
}

/// Since when nothing new has got to the receiver, if the direction is dead.
fn dead_since(conn: &Conn, direction: usize, end_ns: u64) -> Option<u64> {
    let half = &conn.halves[direction];
    let progress = &half.progress;
    let trips = |place: usize| {
        let detail = half.at[place].as_ref()?.detail.as_ref()?;
        (detail.round_trips.count() > 0).then(|| detail.round_trips.rto_ns())
    };
    let rto_ns = trips(0).or_else(|| trips(1)).unwrap_or(DEAD_AFTER_NS);
    let patience_ns = DEAD_AFTER_NS.max(rto_ns);
    let (data, probes) = (progress.data, progress.probes);
    let tried = match conn.protocol {
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
    let has_data = conn
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
        (Some(acked), Some(end)) if conn.is_acknowledged() => acked.wrapping_sub(end) as i32 > 0,
        _ => false,
    };
    Some(if more { known_ns } else { view.last_new_ns })
}

/// A packet in words.
fn told(conn: &Conn, direction: usize, note: &Note) -> String {
    let ends = |p: &PathState| format!("{} to {}", p.outer.0.ip(), p.outer.1.ip());
    let by = || {
        conn.paths
            .get(usize::from(note.path))
            .map(ends)
            .unwrap_or_default()
    };
    let receiver = if direction == 0 {
        conn.shown.1
    } else {
        conn.shown.0
    };
    let counted = match conn.protocol {
        Protocol::Tcp => format!(" at {}", note.number),
        Protocol::Mptcp => format!(" at {} of the connection", note.number),
        Protocol::Sctp => format!(", TSN {}", note.number),
        Protocol::Quic | Protocol::Udp | Protocol::Wireguard => String::new(),
    };
    match note.what {
        What::Data => format!("{} bytes{counted}, {}", note.bytes, by()),
        What::Again => format!("{} bytes{counted} again, {}", note.bytes, by()),
        What::Keepalive => format!("a keepalive or window probe, {}", by()),
        What::Heartbeat => format!("HEARTBEAT, {}", by()),
        What::Asconf => format!("ASCONF, {}", by()),
        What::Handshake => format!("a handshake initiation, {}", by()),
        What::Acknowledged => format!("{} acknowledged all before {}", receiver.ip(), note.number),
        What::Arrived if conn.is_acknowledged() => format!("data{counted} arrived"),
        What::Arrived => "data arrived".to_owned(),
        What::Heard => format!("{} was heard of", receiver.ip()),
    }
}
