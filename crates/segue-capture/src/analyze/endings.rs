//! How each direction of a flow ended, and since when a dead one was.
//!
//! - **Closed**: FIN and all data acknowledged, FIN both ways, RST; SHUTDOWN, ABORT.
//! - **Active**: something new arrived within the last [`DEAD_AFTER_NS`], or, where acknowledgements can be seen, the sender, who
//!   is not dead and has got something there before, has just been trying.
//! - **Idle**: all that was seen sent was acknowledged, or arrived.
//! - **Dead**: its sender tried for longer than max([`DEAD_AFTER_NS`], RTO) since something last got there (see
//!   [`super::flows::progress`]). RTO is what RFC 6298 makes of the round trips seen, with neither a floor nor backing off.
//!   A RST or ABORT of the one who tried is his giving up, and no end that both agreed upon.
//! - **Unknown**: the capture cannot tell. At the receiver alone nothing shows what does not arrive: there, a direction is
//!   dead only if its receiver's own attempts were not answered either. Where no acknowledgement can be seen, silence counts
//!   from the last that the sender heard of its receiver, and has to be longer than any that was broken before; nothing is
//!   known of a sender that never heard anything.

use super::flows::conn::{Conn, Half};
use super::flows::moved::Moved;
use super::flows::paths::Way;
use super::flows::progress::{Note, Outages, What};
use super::flows::view::Overview;
use super::model::Protocol;
use crate::record::{DEAD_AFTER_NS, FlowEnd, FlowState, Outage};

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
    /// Of one that would be dead had its receiver not refused it: when something last got there, and when he did.
    pub refused_ns: Option<(u64, u64)>,
}

impl Ending {
    /// Until when the direction had something to say, as far as `end_ns` was read.
    pub(super) fn lasts_until_ns(&self, seen: &Overview, end_ns: u64) -> u64 {
        match self.state {
            FlowState::Closed | FlowState::Idle => seen.last_new_ns,
            FlowState::Dead | FlowState::Active | FlowState::Unknown => {
                self.silent_ns.map_or(end_ns, |silent| silent.1)
            }
        }
    }

    /// What a sender tried in vain is no handover that went well.
    pub(super) fn leave_out_vain(&self, moved: &mut Vec<Moved>) {
        if let Some((since_ns, _)) = self.silent_ns {
            moved.retain(|m| m.first_new_ns <= since_ns);
        }
    }

    /// For the report, with the longest of its pauses, and with the outages before it.
    pub(super) fn record(self, seen: &Overview, healed: &Outages, start_ns: u64) -> FlowEnd {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let since_start = |ns: u64| seconds(ns.saturating_sub(start_ns));
        let length = |(since, until): (u64, u64)| until.saturating_sub(since);
        let ended = [healed.longest(), self.refused_ns, Some(seen.longest_gap_ns)]
            .into_iter()
            .flatten();
        let ended = ended.max_by_key(|o| length(*o)).unwrap_or_default();
        let silent = self.silent_ns.filter(|s| length(*s) >= length(ended));
        let longest = silent.unwrap_or(ended);
        let never = self
            .refused_ns
            .or(self.silent_ns.filter(|_| self.moved.is_none()));
        let healed = healed.unaccounted().map(|o| (o, false));
        let mut outages: Vec<((u64, u64), bool)> = healed.chain(never.map(|o| (o, true))).collect();
        outages.sort_unstable();
        FlowEnd {
            state: self.state,
            dead_since_s: self.silent_ns.map(|(since, _)| since_start(since)),
            silence_s: self.silent_ns.map(|o| seconds(length(o))),
            longest_gap_s: seconds(length(longest)),
            longest_gap_at_s: (length(longest) > 0).then(|| since_start(longest.0)),
            censored: silent.is_some(),
            outages: outages
                .into_iter()
                .map(|(o, censored)| Outage {
                    since_s: since_start(o.0),
                    duration_s: seconds(length(o)),
                    censored,
                })
                .collect(),
            last_packets: self
                .last_packets
                .into_iter()
                .map(|(at, text)| format!("{:.6} s: {text}", since_start(at)))
                .collect(),
        }
    }
}

/// Both directions of a flow; `end_ns` is the time up to which the captures have been read.
pub(super) fn of(conn: &Conn, end_ns: u64) -> [Ending; 2] {
    let mut endings = [alone(conn, 0, end_ns), alone(conn, 1, end_ns)];
    for direction in 0..2 {
        let other = &endings[1 - direction];
        if endings[direction].state == FlowState::Unknown
            && other.state == FlowState::Dead
            && !conn.half(direction).has_left()
            && let Some(view) = conn.half(direction).arrivals()
            // nothing of this direction came any more when the other was tried
            && let heard_ns = conn.half(1 - direction).progress().heard_ns()
            && heard_ns.is_none_or(|heard| heard <= other.tried_ns.0)
        {
            let silent_ns = other.silent_ns.map(|(_, end)| (view.last_new_ns(), end));
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
    let half = conn.half(direction);
    let progress = half.progress();
    let closing = conn.closing();
    let mut ending = Ending::default();
    let dead_since = conn.dead_since(direction, end_ns);
    if let (Some(since_ns), Some(at_ns)) = (dead_since, closing.refused_ns(direction)) {
        ending.refused_ns = Some((since_ns, at_ns.max(since_ns)));
    } else if let Some(since_ns) = dead_since {
        let all = progress.attempts();
        let end_ns = if closing.is_given_up(direction) {
            conn.heard_ns().1
        } else {
            end_ns
        };
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
    let is_outstanding = progress.is_outstanding() && !half.has_arrived_whole();
    let all_arrived = half.has_left() && conn.is_acknowledged() && !is_outstanding;
    ending.state = if closing.is_complete() || (closing.is_closed(direction) && all_arrived) {
        FlowState::Closed
    } else if is_active(conn, half, end_ns) {
        FlowState::Active
    } else if all_arrived {
        FlowState::Idle
    } else {
        FlowState::Unknown
    };
    ending
}

/// Whether something new had just arrived, or was under way to somebody who is known to get it.
fn is_active(conn: &Conn, half: &Half, end_ns: u64) -> bool {
    let within = |at_ns: u64, span_ns: u64| end_ns.saturating_sub(at_ns) <= span_ns;
    let progress = half.progress();
    let arrived_ns = half.arrivals().map(|v| v.last_new_ns());
    let known_ns = progress.last_ns().filter(|_| half.departures().is_some());
    let data = progress.data();
    let tries = conn.is_acknowledged() && known_ns.is_some() && data.count > 0;
    arrived_ns
        .or(known_ns)
        .is_some_and(|at| within(at, DEAD_AFTER_NS))
        || tries && within(data.last_ns, half.patience_ns())
}

/// A packet in words.
fn told(conn: &Conn, direction: usize, note: &Note) -> String {
    let ends = |way: &Way| format!("{} to {}", way.outer.0.ip(), way.outer.1.ip());
    let by = || conn.paths().way(note.path).map(ends).unwrap_or_default();
    let receiver = conn.parties().shown()[1 - direction];
    let counted = match conn.protocol() {
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
