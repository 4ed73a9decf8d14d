//! How flows ended: see [`segue_capture::record::FlowEnd`]. The simulator knows more than a capture can: what was lost and
//! never came, though its sender says nothing more.

use super::flow::Data;
use super::ledger::{Entry, Ledger, PacketFate, Transport, ticks};
use super::pauses::Gap;
use segue_capture::record::{DEAD_AFTER_NS, FlowEnd, FlowState, HandoverRecord, Outage};
use segue_proto::{Duration, Instant};
use std::collections::BTreeMap;

/// Packets told of before the silence of a dead flow, and into it.
const TOLD: (usize, usize) = (2, 4);

/// The ends of all flows, by their numbers in the ledger; without their outages.
pub(crate) fn ends(ledger: &Ledger, flows: &[Data], end: Instant) -> Vec<FlowEnd> {
    let mut ends: Vec<FlowEnd> = (0..).zip(flows).map(|(n, f)| of(ledger, n, f, end)).collect();
    let doubtful: Vec<usize> = (0..flows.len())
        .filter(|&n| {
            ends[n].state == FlowState::Active && silence(&flows[n], end) > flows[n].pauses().dead_after()
        })
        .collect();
    for number in gone(ledger, flows, &doubtful) {
        ends[number].state = FlowState::Dead;
    }
    let dead: Vec<usize> = (0..flows.len())
        .filter(|&n| ends[n].state == FlowState::Dead)
        .collect();
    let mut told = last_packets(ledger, flows, &dead);
    for number in dead {
        let (flow, own) = (&flows[number], &mut ends[number]);
        died(own, flow.silent_since(end), end);
        own.last_packets = told.remove(&number).unwrap_or_default();
    }
    ends
}

/// The end of a flow of which nothing ever left, let alone arrived, although its application has tried since then.
pub(crate) fn never_begun(since: Instant, end: Instant) -> FlowEnd {
    let mut own = FlowEnd {
        state: FlowState::Active,
        ..FlowEnd::default()
    };
    if end.since(since).as_nanos() > DEAD_AFTER_NS {
        own.state = FlowState::Dead;
        died(&mut own, since, end);
    }
    own
}

/// Nothing new came from then on.
fn died(own: &mut FlowEnd, since: Instant, end: Instant) {
    let silence_s = end.since(since).as_secs_f64();
    own.dead_since_s = Some(seconds(since));
    own.silence_s = Some(silence_s);
    own.censored = silence_s >= own.longest_gap_s;
    if own.censored {
        (own.longest_gap_s, own.longest_gap_at_s) = (silence_s, own.dead_since_s);
    }
}

/// Outages of a flow that ended so, which none of these handovers of its accounts for.
pub(crate) fn outages(flow: Option<&Data>, own: &FlowEnd, handovers: &[&HandoverRecord]) -> Vec<Outage> {
    let gaps = flow.map(|flow| flow.pauses().outages()).unwrap_or_default();
    let known = gaps
        .iter()
        .filter(|gap| !handovers.iter().any(|h| accounts_for(h, &gaps, **gap)));
    let mut outages: Vec<Outage> = known
        .map(|gap| Outage {
            since_s: seconds(gap.since),
            duration_s: gap.lasted().as_secs_f64(),
            censored: false,
        })
        .collect();
    if let (Some(since_s), Some(duration_s)) = (own.dead_since_s, own.silence_s)
        && !handovers.iter().any(|h| h.censored)
    {
        outages.push(Outage {
            since_s,
            duration_s,
            censored: true,
        });
    }
    outages
}

/// Whether a gap is the interruption by this handover: of those that are as long as that, it is the next to it.
fn accounts_for(handover: &HandoverRecord, gaps: &[Gap], gap: Gap) -> bool {
    let Some(interruption_s) = handover.interruption_s.filter(|_| !handover.censored) else {
        return false;
    };
    // both are differences of the same nanoseconds
    let is_it = |gap: &&Gap| (gap.lasted().as_secs_f64() - interruption_s).abs() < 1e-9;
    let away = |gap: &Gap| (seconds(gap.until) - handover.time).abs();
    let nearest = gaps
        .iter()
        .filter(is_it)
        .min_by(|a, b| away(a).total_cmp(&away(b)));
    nearest == Some(&gap)
}

fn of(ledger: &Ledger, number: usize, flow: &Data, end: Instant) -> FlowEnd {
    let all_arrived = ledger.ends_at(number, flow.cumulative());
    let recent = |at: Instant| end.since(at).as_nanos() <= DEAD_AFTER_NS;
    let state = if flow.pauses().is_tried_in_vain() {
        FlowState::Dead
    } else if ledger.key(number).transport == Transport::Udp {
        // of what was lost nothing will come, and nobody says that it was over
        let rests = [flow.last_new(), flow.pauses().tried_last()];
        if rests.into_iter().flatten().any(recent) {
            FlowState::Active
        } else {
            FlowState::Idle
        }
    } else if flow.is_closed() && (all_arrived || silence(flow, end) <= flow.pauses().dead_after()) {
        FlowState::Closed
    } else if all_arrived && !flow.last_new().is_some_and(recent) {
        FlowState::Idle
    } else {
        FlowState::Active
    };
    let longest = flow.pauses().longest();
    FlowEnd {
        state,
        longest_gap_s: longest.map_or(0.0, |gap| gap.lasted().as_secs_f64()),
        longest_gap_at_s: longest.map(|gap| seconds(gap.since)),
        ..FlowEnd::default()
    }
}

/// For how long there has been something to come, and nothing came.
fn silence(flow: &Data, end: Instant) -> Duration {
    end.since(flow.tried_since())
}

/// Of these flows, those of which something was lost, while nothing of them is under way: their senders have nowhere to
/// send from, or have given up.
fn gone(ledger: &Ledger, flows: &[Data], doubtful: &[usize]) -> Vec<usize> {
    let forgotten = |n: usize| {
        let lost = ledger.lost_last(n);
        lost.is_some_and(|offset| offset >= flows[n].cumulative())
    };
    let mut seen: BTreeMap<usize, (bool, bool)> =
        doubtful.iter().map(|n| (*n, (forgotten(*n), false))).collect();
    if seen.is_empty() {
        return Vec::new();
    }
    for (_, entry) in ledger.entries().filter(|(_, e)| e.fate != PacketFate::Delivered) {
        let number = entry.flow as usize;
        if let Some((lost, under_way)) = seen.get_mut(&number)
            && entry.offset >= flows[number].cumulative()
        {
            *lost |= entry.fate.is_lost();
            *under_way |= entry.fate == PacketFate::InFlight;
        }
    }
    let is_gone = |(number, (lost, under_way)): (usize, (bool, bool))| (lost && !under_way).then_some(number);
    seen.into_iter().filter_map(is_gone).collect()
}

/// What is told of one dead flow.
#[derive(Default)]
struct Told {
    before: Vec<u32>,
    into: Vec<u32>,
    /// Further ones, and the last of them.
    further: u64,
    last: Option<u32>,
}

/// The last packets that arrived before the silence of these flows, and the first into it.
fn last_packets(ledger: &Ledger, flows: &[Data], dead: &[usize]) -> BTreeMap<usize, Vec<String>> {
    let mut told: BTreeMap<usize, Told> = dead.iter().map(|n| (*n, Told::default())).collect();
    if told.is_empty() {
        return BTreeMap::new();
    }
    for (id, entry) in ledger.entries() {
        let number = entry.flow as usize;
        let Some(own) = told.get_mut(&number) else {
            continue;
        };
        let silent_from = flows[number].last_new().map_or(0, |at| ticks(at.as_nanos()));
        if entry.fate == PacketFate::Delivered && entry.sent_ticks <= silent_from {
            own.before.push(id);
            if own.before.len() > TOLD.0 {
                own.before.remove(0);
            }
            (own.into, own.further, own.last) = (Vec::new(), 0, None);
        } else if own.into.len() < TOLD.1 {
            own.into.push(id);
        } else {
            own.further += 1;
            own.last = Some(id);
        }
    }
    let words = |number: usize, told: Told| {
        let flow = &flows[number];
        let transport = ledger.flows().nth(number).map_or(Transport::Tcp, |k| k.transport);
        let say = |id: u32| Some(in_words(ledger, flow, transport, id, ledger.entry(id)?));
        let told_first = told.before.iter().chain(&told.into);
        let mut lines: Vec<String> = told_first.filter_map(|id| say(*id)).collect();
        if let Some(last) = told.last {
            if told.further > 1 {
                lines.push(format!("{} more", told.further - 1));
            }
            lines.extend(say(last));
        }
        (number, lines)
    };
    told.into_iter().map(|(n, t)| words(n, t)).collect()
}

fn in_words(ledger: &Ledger, flow: &Data, transport: Transport, id: u32, entry: &Entry) -> String {
    let at = f64::from(entry.sent_ticks) * super::ledger::TICK_NS as f64 / 1e9;
    let what = match transport {
        Transport::Sctp => format!("DATA {}", ledger.seq_of(entry)),
        Transport::Tcp => format!("segment {}", ledger.seq_of(entry)),
        Transport::Udp => format!("datagram {}", ledger.seq_of(entry)),
    };
    let again = if entry.is_retransmission() { " again" } else { "" };
    let to = flow
        .destination_of(id)
        .map(|a| format!(" to {a}"))
        .unwrap_or_default();
    let became = match entry.fate {
        PacketFate::Delivered => "arrived".to_owned(),
        PacketFate::InFlight => "under way at the end".to_owned(),
        PacketFate::Stale => "arrived where the host no longer was".to_owned(),
        PacketFate::Dropped(cause) => format!("dropped: {}", cause.name()),
    };
    format!("{at:.3} s {what}{again}{to}, {became}")
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}
