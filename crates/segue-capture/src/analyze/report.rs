//! From flows that have ended to what is reported of them.

use super::endings::{self, Ending};
use super::flows::conn::{Conn, Half};
use super::flows::ends::Ends;
use super::flows::item::Settings;
use super::flows::moved::Moved;
use super::flows::mover::SETTLING_NS;
use super::flows::shares::Moves;
use super::flows::view::View;
use super::found::Found;
use super::kinds::{describe, direction_of, kind, layer, mobility, rate};
use super::model::{
    DirectionReport, EndCounts, Endpoint, Flow, Handover, HandoverKind, Interruption, Path, PathShare, Share,
    Vantage,
};
use crate::record::{FlowEnd, FlowState, HandoverRecord, Layer, Parts};

/// Handovers reported.
const MAX_HANDOVERS: usize = 20_000;

/// Interruptions reported.
const MAX_INTERRUPTIONS: usize = 1000;

/// Directions reported that used several paths.
const MAX_SHARES: usize = 10_000;

/// What has been found so far.
pub(super) struct Results {
    pub flows: Vec<Flow>,
    pub handovers: Vec<Found>,
    pub interruptions: Vec<Interruption>,
    pub shares: Vec<Share>,
    pub handovers_dropped: u64,
    max_flows: usize,
}

impl Results {
    pub(super) const fn new(max_flows: usize) -> Self {
        Self {
            flows: Vec::new(),
            handovers: Vec::new(),
            interruptions: Vec::new(),
            shares: Vec::new(),
            handovers_dropped: 0,
            max_flows,
        }
    }

    /// Numbers all flows from here on.
    pub(super) fn renumber(&mut self, from: u64) {
        for flow in &mut self.flows {
            flow.id += from;
            flow.parent = flow.parent.map(|n| n + from);
        }
        let handovers = self
            .handovers
            .iter_mut()
            .filter_map(|h| h.handover.record.flow.as_mut());
        let others = self.interruptions.iter_mut().map(|i| &mut i.flow);
        let shares = self.shares.iter_mut().map(|s| &mut s.flow);
        handovers.chain(others).chain(shares).for_each(|n| *n += from);
    }

    /// Takes over what was found elsewhere.
    pub(super) fn absorb(&mut self, other: Self) {
        self.flows.extend(other.flows);
        self.handovers.extend(other.handovers);
        self.interruptions.extend(other.interruptions);
        self.shares.extend(other.shares);
        self.handovers_dropped += other.handovers_dropped;
    }

    /// A flow has ended; `end_ns` is the time up to which the captures have been read.
    pub(super) fn add(&mut self, mut conn: Conn, settings: &Settings, end_ns: u64) {
        let seconds = |ns: u64| ns.saturating_sub(settings.start_ns) as f64 / 1e9;
        let mut reports = Vec::with_capacity(2);
        let mut places = [0; 2];
        let mut senders = Vec::new();
        let mut endings = endings::of(&conn, end_ns);
        for (number, chosen) in places.iter_mut().enumerate() {
            let half = core::mem::take(&mut conn.halves[number]);
            let has_data = |view: &Option<Box<View>>| view.as_ref().is_some_and(|v| v.data_packets > 0);
            *chosen = usize::from(has_data(&half.at[1]) || (half.packets[0] == 0 && half.packets[1] > 0));
            let ending = core::mem::take(&mut endings[number]);
            let observed = Observed {
                number,
                place: *chosen,
                end_ns,
            };
            let (report, of_sender) = self.direction(&conn, observed, half, ending, settings);
            reports.push(report);
            senders.extend(of_sender);
        }
        let paths = (0u16..).zip(&conn.paths).filter_map(|(id, p)| {
            let place = places[p.direction];
            if p.data_packets[place] > 0 {
                return Some((id, p, place));
            }
            senders.contains(&id).then_some((id, p, 0))
        });
        let paths = paths.map(|(id, p, place)| Path {
            id,
            direction: direction_of(p.direction),
            source: p.outer.0.ip(),
            destination: p.outer.1.ip(),
            source_port: p.ports.0,
            destination_port: p.ports.1,
            tunnelled: p.tunnelled,
            interface: None,
            seen_at: p.seen_at,
            first_s: seconds(p.first_ns),
            last_s: seconds(p.last_ns),
            data_packets: p.data_packets[place],
            data_bytes: p.data_bytes[place],
        });
        let paths: Vec<Path> = paths.collect();
        let (Some(reverse), Some(forward)) = (reports.pop(), reports.pop()) else {
            return;
        };
        self.flows.push(Flow {
            id: conn.id,
            protocol: conn.protocol,
            mobility: mobility(&conn),
            a: Endpoint {
                address: conn.shown.0.ip(),
                port: conn.a.1,
            },
            b: Endpoint {
                address: conn.shown.1.ip(),
                port: conn.b.1,
            },
            parent: conn.parent().map(|p| p.id),
            begin_s: seconds(conn.begin_ns),
            end_s: seconds(conn.last_ns),
            end: worse(&forward, &reverse),
            forward,
            reverse,
            paths,
        });
        if self.flows.len() >= self.max_flows.saturating_mul(2).max(16) {
            self.keep_most();
        }
    }

    /// Those with handovers, those that died, and those with most data.
    pub(super) fn keep_most(&mut self) {
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
        conn: &Conn,
        observed: Observed,
        mut half: Half,
        ending: Ending,
        settings: &Settings,
    ) -> (DirectionReport, Vec<u16>) {
        let Observed {
            number,
            place,
            end_ns,
        } = observed;
        let ends = half.ends.take().filter(|e| e.matched);
        let certain = half.certain[place];
        let mut view = half.at[place].take().map(|v| *v).unwrap_or_default();
        let mut moves = view.moved(settings.window_ns);
        moves.judge(conn.choice(), &conn.told_ns, view.last_data_ns);
        moves.note_switches(conn.choice(), view.switches);
        self.share(conn, number, place, &moves);
        let mut moved = moves.moved;
        let mut senders = match (&ends, &mut half.at[0]) {
            (Some(ends), Some(sender)) => beyond(ends, sender, &moved, settings.window_ns),
            _ => Vec::new(),
        };
        ending.leave_out_vain(&mut senders);
        if place == 0 {
            ending.leave_out_vain(&mut moved);
        }
        let counts = ends.map(|e| e.finish(end_ns));
        let (counts, around) = counts.map_or((None, Vec::new()), |(c, a)| (Some(c), a));
        let sender_rtt = half.at[0]
            .as_ref()
            .and_then(|v| v.detail.as_ref()?.round_trips.spread());
        self.interruptions(conn.id, number, &view, &moved, settings);
        self.silence(conn, number, &ending, settings);
        let mut outages = half.progress.outages.clone();
        moved.iter().for_each(|m| outages.account_for(m, place == 1));
        senders.iter().for_each(|m| outages.account_for(m, false));
        let any = !moved.is_empty();
        for m in moved {
            let m = Moved {
                received: place == 1,
                ..m
            };
            self.handover(conn, number, &m, &around, view.first_data_ns, settings);
        }
        if let (Some((from, to, tried_ns)), Some((since_ns, until_ns))) = (ending.moved, ending.silent_ns) {
            let mut m = Moved::in_vain(from, to, tried_ns, since_ns, until_ns);
            m.bytes_before = view.recent_bytes();
            self.handover(conn, number, &m, &[], view.first_data_ns, settings);
        }
        let mut senders_paths: Vec<u16> = ending.moved.iter().flat_map(|m| [m.0, m.1]).collect();
        let first_sent_ns = half.at[0].as_ref().map_or(0, |v| v.first_data_ns);
        for m in senders {
            self.handover(conn, number, &m, &[], first_sent_ns, settings);
            senders_paths.extend([m.from, m.to]);
        }
        let lasted_ns = ending
            .lasts_until_ns(&view, end_ns)
            .saturating_sub(view.first_data_ns);
        let receiver_rtt = view.detail.as_ref().and_then(|d| d.round_trips.spread());
        let report = DirectionReport {
            vantage: vantage(counts.is_some(), place, certain),
            packets: half.packets[place],
            data_packets: view.data_packets,
            data_bytes: view.data_bytes,
            useful_bytes: view.useful_bytes,
            throughput_bps: rate(view.useful_bytes, lasted_ns),
            duplicate_packets: view.duplicates,
            out_of_order_packets: view.out_of_order,
            retransmissions: counts.map_or(view.retransmissions, |c| c.retransmissions),
            attempts: u64::from(ending.attempts),
            end: ending.record(&view, &outages, settings.start_ns),
            rtt_s: sender_rtt.or(receiver_rtt),
            ends: counts,
            series: view.series().filter(|_| any || view.data_packets > 1),
        };
        (report, senders_paths)
    }

    /// Several paths in use, as long as none is left.
    fn share(&mut self, conn: &Conn, number: usize, place: usize, moves: &Moves) {
        if moves.changes == 0 || self.shares.len() >= MAX_SHARES {
            return;
        }
        let own = (0u16..)
            .zip(&conn.paths)
            .filter(|(_, p)| p.direction == number && p.data_bytes[place] > 0);
        let total: u64 = own.clone().map(|(_, p)| p.data_bytes[place]).sum();
        let paths = own.map(|(path, p)| PathShare {
            path,
            data_bytes: p.data_bytes[place],
            share: p.data_bytes[place] as f64 / total as f64,
        });
        self.shares.push(Share {
            flow: conn.id,
            direction: direction_of(number),
            changes: moves.changes,
            paths: paths.collect(),
        });
    }

    /// Pauses that no handover explains.
    fn interruptions(&mut self, flow: u64, number: usize, view: &View, moved: &[Moved], settings: &Settings) {
        let gaps = view.detail.iter().flat_map(|d| &d.gaps);
        for gap in gaps {
            let end_ns = gap.begin_ns + gap.duration_ns;
            let explained = moved.iter().any(|m| {
                let settled_ns = m.first_new_ns.max(m.last_old_ns) + SETTLING_NS;
                gap.begin_ns <= settled_ns && end_ns >= m.last_old_ns.min(m.first_new_ns)
            });
            if explained {
                continue;
            }
            self.interruptions.push(Interruption {
                flow,
                direction: direction_of(number),
                begin_s: gap.begin_ns.saturating_sub(settings.start_ns) as f64 / 1e9,
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
    fn silence(&mut self, conn: &Conn, number: usize, ending: &Ending, settings: &Settings) {
        if let (Some((since_ns, until_ns)), None) = (ending.silent_ns, ending.moved) {
            self.interruptions.push(Interruption {
                flow: conn.id,
                direction: direction_of(number),
                begin_s: since_ns.saturating_sub(settings.start_ns) as f64 / 1e9,
                duration_s: until_ns.saturating_sub(since_ns) as f64 / 1e9,
                ended_by_retransmission: false,
                retransmissions: u64::from(ending.attempts),
                censored: true,
            });
        }
    }

    /// Those that did not end first, then by length, as many as are reported.
    pub(super) fn longest_interruptions(&mut self) {
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

    fn handover(
        &mut self,
        conn: &Conn,
        number: usize,
        m: &Moved,
        around: &[EndCounts],
        first_data_ns: u64,
        settings: &Settings,
    ) {
        let (Some(from), Some(to)) = (
            conn.paths.get(usize::from(m.from)),
            conn.paths.get(usize::from(m.to)),
        ) else {
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
            .min(settings.window_ns);
        let shown = [conn.shown.0, conn.shown.1];
        let identities = [shown[number], shown[1 - number]];
        let kind = kind(conn, from, to);
        let ends = m.ends.and_then(|n| around.get(n).copied());
        let record = record(conn, m, kind, ends, settings);
        let handover = Handover {
            record,
            direction: direction_of(number),
            kind,
            from_path: m.from,
            to_path: m.to,
            from_text: describe(from),
            to_text: describe(to),
            settling_gap_s: m.settling_gap_ns as f64 / 1e9,
            adaptation: m.adaptation,
            throughput_before_bps: rate(m.bytes_before, before_ns),
            throughput_after_bps: rate(m.bytes_after, m.after_ns),
            rtt_before_s: m.rtt_before_s,
            rtt_after_s: m.rtt_after_s,
            out_of_order_packets: m.out_of_order,
            ends,
            signals: Vec::new(),
        };
        let new = [to.outer.0, to.outer.1];
        let mut found = Found {
            handover,
            last_old_ns: m.last_old_ns,
            first_new_ns: m.first_new_ns,
            new_addresses: new
                .into_iter()
                .filter(|a| *a != from.outer.0 && *a != from.outer.1)
                .collect(),
            old: from.outer,
            new: to.outer,
            identities,
        };
        // without a change of address, the host is the one whose interfaces were captured
        found.moves(usize::from(
            from.outer.0 == to.outer.0 && (from.outer.1 != to.outer.1 || m.received),
        ));
        self.handovers.push(found);
    }
}

/// The record of a handover, as far as it is known without its signalling.
fn record(
    conn: &Conn,
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
        flow: Some(conn.id),
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

/// What is known of a direction when it is reported.
#[derive(Clone, Copy)]
struct Observed {
    number: usize,
    place: usize,
    end_ns: u64,
}

/// Handovers that show at the sender while the receiver's capture had not begun or had ended, and are not among those that
/// it shows.
fn beyond(ends: &Ends, sender: &mut View, known: &[Moved], window_ns: u64) -> Vec<Moved> {
    let longest_ns = ends.longest_ns();
    let same = |m: &Moved, k: &Moved| m.first_new_ns.abs_diff(k.first_new_ns) <= longest_ns;
    let mut moved = sender.moved(window_ns).moved;
    moved.retain(|m| ends.may_miss(m.first_new_ns) && !known.iter().any(|k| same(m, k)));
    moved
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
