//! From flows that have ended to what is reported of them.

mod cut;
mod glance;

use super::cuts::CutOff;
use super::endings::{self, Ending};
use super::flows::conn::Conn;
use super::flows::finished::{Finished, Observed};
use super::flows::item::Settings;
use super::flows::moved::Moved;
use super::flows::mover::SETTLING_NS;
use super::flows::shares::Moves;
use super::flows::view::Overview;
use super::found::Found;
use super::heard::Heard;
use super::kinds::{describe, direction_of, kind, layer, mobility, rate};
use super::model::{
    Around, Direction, DirectionReport, EndCounts, Endpoint, Flow, Handover, HandoverKind, Interruption,
    Path, PathShare, Share, Vantage,
};
use crate::record::{FlowEnd, FlowState, HandoverRecord, Layer, Parts};
use cut::CutFlows;
use std::collections::BTreeMap;

/// Handovers reported.
const MAX_HANDOVERS: usize = 20_000;

/// Interruptions reported.
const MAX_INTERRUPTIONS: usize = 1000;

/// Directions reported that used several paths.
const MAX_SHARES: usize = 10_000;

/// What has been found so far.
pub(super) struct Results {
    flows: Vec<Flow>,
    handovers: Vec<Found>,
    interruptions: Vec<Interruption>,
    shares: Vec<Share>,
    cut: CutFlows,
    handovers_dropped: u64,
    max_flows: usize,
}

/// What was found by the end.
pub(super) struct Reported {
    pub flows: Vec<Flow>,
    pub handovers: Vec<Handover>,
    pub interruptions: Vec<Interruption>,
    pub shares: Vec<Share>,
    /// Flows of which nothing more is said.
    pub cut: CutFlows,
    /// Handovers beyond what is reported.
    pub handovers_dropped: u64,
}

impl Results {
    pub(super) fn new(max_flows: usize) -> Self {
        Self {
            flows: Vec::new(),
            handovers: Vec::new(),
            interruptions: Vec::new(),
            shares: Vec::new(),
            cut: CutFlows::default(),
            handovers_dropped: 0,
            max_flows,
        }
    }

    /// Takes over what was found elsewhere, with its flows numbered from `first` on.
    pub(super) fn absorb(&mut self, other: Self, first: u64) {
        let flows = other.flows.into_iter().map(|f| Flow {
            id: f.id + first,
            parent: f.parent.map(|n| n + first),
            ..f
        });
        self.flows.extend(flows);
        let handovers = other.handovers.into_iter().map(|h| h.numbered_from(first));
        self.handovers.extend(handovers);
        let interruptions = other.interruptions.into_iter().map(|i| Interruption {
            flow: i.flow + first,
            ..i
        });
        self.interruptions.extend(interruptions);
        let shares = other.shares.into_iter().map(|s| Share {
            flow: s.flow + first,
            ..s
        });
        self.shares.extend(shares);
        self.handovers_dropped += other.handovers_dropped;
        self.cut.absorb(other.cut);
    }

    /// What is worth to be reported, in order, with the signalling of each handover.
    pub(super) fn finish(mut self, signals: &[Heard], start_ns: u64) -> Reported {
        self.keep_most();
        self.longest_interruptions();
        self.flows.sort_by_key(|f| f.id);
        self.handovers.sort_by_key(|h| (h.first_new_ns(), h.flow()));
        let mut before: BTreeMap<(u64, Direction), u64> = BTreeMap::new();
        let handovers = self.handovers.into_iter().map(|found| {
            let key = (found.flow(), found.direction());
            let since_ns = before.insert(key, found.first_new_ns()).unwrap_or_default();
            found.finish(signals, since_ns, start_ns)
        });
        Reported {
            handovers: handovers.collect(),
            flows: self.flows,
            interruptions: self.interruptions,
            shares: self.shares,
            cut: self.cut,
            handovers_dropped: self.handovers_dropped,
        }
    }

    /// The flow of this number has ended; `end_ns` is the time up to which the captures have been read.
    pub(super) fn add(&mut self, id: u64, conn: Conn, settings: &Settings, end_ns: u64) {
        let seconds = |ns: u64| ns.saturating_sub(settings.start_ns) as f64 / 1e9;
        let endings = endings::of(&conn, end_ns);
        let (flow, observed) = conn.finish(settings.window_ns, end_ns);
        let places = observed.each_ref().map(|o| o.place);
        let mut reports = Vec::with_capacity(2);
        let mut senders = Vec::new();
        for (number, (observed, ending)) in observed.into_iter().zip(endings).enumerate() {
            let which = Which {
                id,
                number,
                flow: &flow,
                settings,
            };
            let (report, of_sender) = self.direction(which, observed, ending, end_ns);
            reports.push(report);
            senders.extend(of_sender);
        }
        let paths = (0u16..).zip(&flow.paths).filter_map(|(id, p)| {
            let place = places[p.way.direction];
            if p.data[place].0 > 0 {
                return Some((id, p, place));
            }
            senders.contains(&id).then_some((id, p, 0))
        });
        let paths = paths.map(|(id, p, place)| Path {
            id,
            direction: direction_of(p.way.direction),
            source: p.way.outer.0.ip(),
            destination: p.way.outer.1.ip(),
            source_port: p.way.ports.0,
            destination_port: p.way.ports.1,
            tunnelled: p.way.tunnelled,
            interface: None,
            seen_at: p.seen_at,
            first_s: seconds(p.first_ns),
            last_s: seconds(p.last_ns),
            data_packets: p.data[place].0,
            data_bytes: p.data[place].1,
        });
        let paths: Vec<Path> = paths.collect();
        let (Some(reverse), Some(forward)) = (reports.pop(), reports.pop()) else {
            return;
        };
        let end = |number: usize| Endpoint {
            address: flow.shown[number].ip(),
            port: flow.ports[number],
        };
        self.flows.push(Flow {
            id,
            protocol: flow.protocol,
            mobility: mobility(&flow),
            a: end(0),
            b: end(1),
            parent: flow.parent,
            begin_s: seconds(flow.begin_ns),
            end_s: seconds(flow.last_ns),
            end: worse(&forward, &reverse),
            forward,
            reverse,
            paths,
        });
        if self.flows.len() >= self.max_flows.saturating_mul(2).max(16) {
            self.keep_most();
        }
    }

    /// The flow has ended, and nothing more can be said of it than that so much was cut off.
    pub(super) fn add_cut(&mut self, conn: &Conn, cut: CutOff, settings: &Settings) {
        self.cut.add(conn, cut, settings);
    }

    /// Those with handovers, those that died, and those with most data.
    fn keep_most(&mut self) {
        if self.flows.len() <= self.max_flows {
            return;
        }
        let mut moved: Vec<u64> = self.handovers.iter().map(Found::flow).collect();
        moved.sort_unstable();
        let weight = |f: &Flow| {
            let bytes = f.forward.data_bytes + f.reverse.data_bytes;
            (
                f.end.state == FlowState::Dead || moved.binary_search(&f.id).is_ok(),
                bytes,
                core::cmp::Reverse(f.id),
            )
        };
        self.flows.sort_by_key(|f| core::cmp::Reverse(weight(f)));
        self.flows.truncate(self.max_flows);
    }

    /// The report, and the paths of handovers that the sender's capture alone has.
    fn direction(
        &mut self,
        which: Which<'_>,
        observed: Observed,
        ending: Ending,
        end_ns: u64,
    ) -> (DirectionReport, Vec<u16>) {
        let Observed {
            place,
            seen,
            moves,
            mut senders,
            at_both,
            mut outages,
            ..
        } = observed;
        self.share(which, place, &moves);
        let mut moved = moves.moved;
        ending.leave_out_vain(&mut senders);
        if place == 0 {
            ending.leave_out_vain(&mut moved);
        }
        let (counts, around) = at_both.map_or((None, Vec::new()), |both| (Some(both.counts), both.around));
        self.interruptions(which, &seen, &moved);
        self.silence(which, &ending);
        moved.iter().for_each(|m| outages.account_for(m, place == 1));
        senders.iter().for_each(|m| outages.account_for(m, false));
        let any = !moved.is_empty();
        for m in moved {
            let m = Moved {
                received: place == 1,
                ..m
            };
            self.handover(which, &m, &around, seen.first_data_ns);
        }
        if let (Some((from, to, tried_ns)), Some((since_ns, until_ns))) = (ending.moved, ending.silent_ns) {
            let mut m = Moved::in_vain(from, to, tried_ns, since_ns, until_ns);
            m.around.before = seen.lately;
            self.handover(which, &m, &[], seen.first_data_ns);
        }
        let mut senders_paths: Vec<u16> = ending.moved.iter().flat_map(|m| [m.0, m.1]).collect();
        for m in senders {
            self.handover(which, &m, &[], observed.first_sent_ns);
            senders_paths.extend([m.from, m.to]);
        }
        let lasted_ns = ending
            .lasts_until_ns(&seen, end_ns)
            .saturating_sub(seen.first_data_ns);
        let tally = seen.tally;
        let report = DirectionReport {
            vantage: vantage(counts.is_some(), place, observed.certain),
            packets: observed.packets,
            data_packets: tally.data_packets,
            data_bytes: tally.data_bytes,
            useful_bytes: tally.useful_bytes,
            throughput_bps: rate(tally.useful_bytes, lasted_ns),
            duplicate_packets: tally.duplicates,
            out_of_order_packets: tally.out_of_order,
            retransmissions: counts.map_or(tally.retransmissions, |c| c.retransmissions),
            attempts: u64::from(ending.attempts),
            end: ending.record(&seen, &outages, which.settings.start_ns),
            rtt_s: observed.rtt,
            ends: counts,
            series: seen.series.filter(|_| any || tally.data_packets > 1),
        };
        (report, senders_paths)
    }

    /// Several paths in use, as long as none is left.
    fn share(&mut self, which: Which<'_>, place: usize, moves: &Moves) {
        if moves.changes == 0 || self.shares.len() >= MAX_SHARES {
            return;
        }
        let own = (0u16..)
            .zip(&which.flow.paths)
            .filter(|(_, p)| p.way.direction == which.number)
            .map(|(path, p)| (path, p.data[place].1))
            .filter(|(_, bytes)| *bytes > 0);
        let total: u64 = own.clone().map(|(_, bytes)| bytes).sum();
        let paths = own.map(|(path, data_bytes)| PathShare {
            path,
            data_bytes,
            share: data_bytes as f64 / total as f64,
        });
        self.shares.push(Share {
            flow: which.id,
            direction: direction_of(which.number),
            changes: moves.changes,
            paths: paths.collect(),
        });
    }

    /// Pauses that no handover explains.
    fn interruptions(&mut self, which: Which<'_>, seen: &Overview, moved: &[Moved]) {
        for gap in &seen.gaps {
            let end_ns = gap.begin_ns + gap.duration_ns;
            let explained = moved.iter().any(|m| {
                let settled_ns = m.first_new_ns.max(m.last_old_ns) + SETTLING_NS;
                gap.begin_ns <= settled_ns && end_ns >= m.last_old_ns.min(m.first_new_ns)
            });
            if explained {
                continue;
            }
            self.interruptions.push(Interruption {
                flow: which.id,
                direction: direction_of(which.number),
                begin_s: gap.begin_ns.saturating_sub(which.settings.start_ns) as f64 / 1e9,
                duration_s: gap.duration_ns as f64 / 1e9,
                ended_by_retransmission: gap.repaired,
                retransmissions: u64::from(gap.repeats),
                censored: false,
            });
        }
        if self.interruptions.len() > 4 * MAX_INTERRUPTIONS {
            self.longest_interruptions();
        }
    }

    /// A silence that did not end, if no move explains it.
    fn silence(&mut self, which: Which<'_>, ending: &Ending) {
        if let (Some((since_ns, until_ns)), None) = (ending.silent_ns, ending.moved) {
            self.interruptions.push(Interruption {
                flow: which.id,
                direction: direction_of(which.number),
                begin_s: since_ns.saturating_sub(which.settings.start_ns) as f64 / 1e9,
                duration_s: until_ns.saturating_sub(since_ns) as f64 / 1e9,
                ended_by_retransmission: false,
                retransmissions: u64::from(ending.attempts),
                censored: true,
            });
        }
    }

    /// Those that did not end first, then by length, as many as are reported.
    fn longest_interruptions(&mut self) {
        let order = |a: &Interruption, b: &Interruption| {
            let by_length = b.duration_s.total_cmp(&a.duration_s);
            b.censored
                .cmp(&a.censored)
                .then(by_length)
                .then(a.flow.cmp(&b.flow))
        };
        self.interruptions.sort_by(order);
        self.interruptions.truncate(MAX_INTERRUPTIONS);
    }

    fn handover(&mut self, which: Which<'_>, m: &Moved, around: &[EndCounts], first_data_ns: u64) {
        let (flow, settings) = (which.flow, which.settings);
        let way = |number: u16| flow.paths.get(usize::from(number)).map(|p| &p.way);
        let (Some(from), Some(to)) = (way(m.from), way(m.to)) else {
            return;
        };
        if self.handovers.len() >= MAX_HANDOVERS {
            self.handovers_dropped += 1;
            return;
        }
        // a flow that is younger than the window had less time for its bytes
        let before_ns = m
            .last_old_ns
            .saturating_sub(first_data_ns)
            .min(m.around.before.ns);
        let kind = kind(flow, from, to);
        let ends = m.ends.and_then(|n| around.get(n).copied());
        let handover = Handover {
            record: record(which.id, m, kind, ends, settings),
            direction: direction_of(which.number),
            kind,
            from_path: m.from,
            to_path: m.to,
            from_text: describe(from),
            to_text: describe(to),
            settling_gap_s: m.settling_gap_ns as f64 / 1e9,
            adaptation: m.adaptation,
            around: Around {
                throughput_before_bps: rate(m.around.before.bytes, before_ns),
                throughput_after_bps: rate(m.around.bytes_after, m.around.after_ns),
                rtt_before_s: m.around.rtt_before_s,
                rtt_after_s: m.around.rtt_after_s,
            },
            out_of_order_packets: m.around.out_of_order,
            ends,
            signals: Vec::new(),
        };
        let identities = [flow.shown[which.number], flow.shown[1 - which.number]];
        self.handovers
            .push(Found::new(handover, m, (from, to), identities));
    }
}

/// The record of a handover, as far as it is known without its signalling.
fn record(
    flow: u64,
    m: &Moved,
    kind: HandoverKind,
    ends: Option<EndCounts>,
    settings: &Settings,
) -> HandoverRecord {
    let latency_ns = m.first_new_ns as i128 - i128::from(m.last_old_ns);
    let seconds = |ns: u64| ns.saturating_sub(settings.start_ns) as f64 / 1e9;
    let latency_s = (!m.in_vain).then_some(latency_ns as f64 / 1e9);
    HandoverRecord {
        host: String::new(),
        flow: Some(flow),
        layer: layer(kind),
        from: None,
        to: None,
        time: seconds(m.first_new_ns),
        interruption_s: Some(m.interruption_ns as f64 / 1e9),
        censored: m.in_vain,
        latency_s,
        handoff_delay_s: None,
        begin_s: None,
        end_s: None,
        failed: Vec::new(),
        parts: m
            .adaptation
            .filter(|_| layer(kind) == Some(Layer::Network))
            .map(|a| Parts {
                since_s: seconds(m.last_old_ns),
                first_data_s: latency_s,
                t_a_s: Some(a.adaptation_time_s),
                threshold_bps: Some(a.threshold_bps),
                ..Parts::default()
            }),
        lost_packets: ends.map(|e| e.lost_packets),
        retransmissions: ends.map(|e| e.retransmissions),
        spurious_retransmissions: ends.map(|e| e.spurious_retransmissions),
    }
}

/// Where a direction was captured.
const fn vantage(at_both: bool, place: usize, certain: bool) -> Vantage {
    match (at_both, place, certain) {
        (true, ..) => Vantage::Both,
        (false, 1, _) => Vantage::Receiver,
        (false, _, true) => Vantage::Sender,
        _ => Vantage::Unknown,
    }
}

/// A direction of a flow that is reported.
#[derive(Clone, Copy)]
struct Which<'a> {
    /// Number of the flow, and of the direction.
    id: u64,
    number: usize,
    flow: &'a Finished,
    settings: &'a Settings,
}

/// The end of the direction that ended worse, of those that carried something or died.
fn worse(forward: &DirectionReport, reverse: &DirectionReport) -> FlowEnd {
    let rank = |d: &&DirectionReport| {
        let weight = match d.end.state {
            FlowState::Dead => 5,
            _ if d.data_packets == 0 => 0,
            FlowState::Unknown => 4,
            FlowState::Active => 3,
            FlowState::Idle => 2,
            FlowState::Closed => 1,
        };
        (weight, (d.end.longest_gap_s * 1e9) as u64)
    };
    let ways = [reverse, forward];
    ways.iter()
        .copied()
        .max_by_key(rank)
        .map(|d| d.end.clone())
        .unwrap_or_default()
}
