//! Handovers of a run: what each flow's data shows, joined with the signalling of the host that moved. See
//! [`segue_capture::record::HandoverRecord`].
//!
//! A handoff that no flow's data shows has a record without a flow. A flow of its host that never got data again has one
//! that is censored.

use super::connections::{Connections, Mobility};
use super::flow::{Move, Paths};
use super::handoffs::{Handoff, Handoffs};
use super::ledger::ticks;
use super::vertical::HandoffParts;
use segue_capture::record::{FlowEnd, FlowState, HandoverRecord, Layer, Parts};
use segue_proto::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// Retransmissions belong to a handover if they were sent so long before the last data that came before it, or after the
/// first that came by the new way: the window of `segue_capture::analyze`.
const WINDOW: Duration = Duration::from_secs(2);

/// What is lost up to so long after the first data over the new way is lost to this handover, and not to the next.
const SETTLING: Duration = Duration::from_secs(1);

/// All handovers, in order of time; nodes are named by `names`, and flows by `ids`, and they ended as `ends` says.
pub(crate) fn records(
    c: &Connections,
    ends: &[FlowEnd],
    ids: &[u64],
    names: &[String],
    end: Instant,
) -> Vec<HandoverRecord> {
    let mut table = Table {
        connections: c,
        names,
        end,
        rows: Vec::new(),
        shown: BTreeSet::new(),
    };
    for (number, flow) in c.flows().iter().enumerate() {
        let moves = flow.moves();
        let mut taken = BTreeSet::new();
        let mut settled = Instant::ZERO;
        for moved in &moves {
            settled = table.moved(number, moved, settled, &mut taken);
        }
        if ends[number].state == FlowState::Dead {
            table.never_came_back(number, settled, &taken);
        }
    }
    table.idle();
    table.count();
    let mut records: Vec<HandoverRecord> = table.rows.into_iter().map(|row| row.record).collect();
    for flow in records.iter_mut().filter_map(|record| record.flow.as_mut()) {
        *flow = ids[*flow as usize];
    }
    records.sort_by(|a, b| a.time.total_cmp(&b.time).then(a.flow.cmp(&b.flow)));
    records
}

struct Row {
    record: HandoverRecord,
    /// When what counts for it was sent, in the ledger's ticks: retransmissions, and losses where data has not told them.
    repeats: (u32, u32),
    losses: Option<(u32, u32)>,
}

/// Handoffs of a host's associations that follow each other and lead to one address: the host moves once.
#[derive(Debug, Default)]
struct JointMove {
    to: Option<Ipv6Addr>,
    associations: Vec<(u32, u32)>,
    /// The first that was asked for.
    asked: Option<u32>,
    is_shown: bool,
}

impl JointMove {
    /// Whether this can be one of them: an association moves once.
    fn has_room_for(&self, h: &Handoff) -> bool {
        self.to == Some(h.to) && h.tags.is_some_and(|tags| !self.associations.contains(&tags))
    }

    fn add(&mut self, number: u32, h: &Handoff, is_shown: bool) {
        self.to = Some(h.to);
        self.associations.extend(h.tags);
        self.asked = self.asked.or(h.asked.then_some(number));
        self.is_shown |= is_shown;
    }

    /// The one that stands for all if no flow's data shows any.
    fn idle(&self) -> Option<u32> {
        self.asked.filter(|_| !self.is_shown)
    }
}

struct Table<'a> {
    connections: &'a Connections,
    names: &'a [String],
    end: Instant,
    rows: Vec<Row>,
    /// Handoffs that the data of some flow shows.
    shown: BTreeSet<u32>,
}

impl Table<'_> {
    /// The signalling that moves hosts in this run.
    fn handoffs(&self) -> &Handoffs {
        match self.connections.mobility() {
            Mobility::Shim => self.connections.shims(),
            Mobility::Transport | Mobility::Concurrent => self.connections.transports(),
        }
    }

    /// A flow's data moved. Gives from when on losses belong to the next handover.
    fn moved(&mut self, number: usize, moved: &Move, settled: Instant, taken: &mut BTreeSet<u32>) -> Instant {
        let flow = &self.connections.flows()[number];
        let data = &moved.data;
        let first_new = Instant::from_nanos((data.time_s * 1e9).round() as u64);
        let last_before = first_new - Duration::from_secs_f64(data.latency_s.max(0.0));
        let network = flow.paths() == Paths::Network;
        let (from, to) = (&moved.from, &moved.to);
        let sender = if network {
            (from.origin != to.origin).then_some((from.origin.0, to.origin.0))
        } else {
            (from.source != to.source).then_some((from.source, to.source))
        };
        let there = from.destination != to.destination || from.interface != to.interface;
        let receiver = (there || sender.is_none()).then_some((from.destination, to.destination));
        let hosts = [(Some(flow.sender()), sender), (flow.receiver(), receiver)];
        for (node, addresses) in hosts {
            let (Some(node), Some((from, to))) = (node, addresses) else {
                continue;
            };
            let handoff = self.handoff_of(number, node, to, first_new, taken);
            taken.extend(handoff);
            self.shown.extend(handoff);
            let layer = match (network, self.connections.mobility()) {
                (true, Mobility::Shim) => Layer::Network,
                (true, _) => Layer::Link,
                (false, _) => Layer::Transport,
            };
            let mut record = self.signalled(node, handoff);
            record.flow = Some(number as u64);
            record.layer = Some(layer);
            (record.from, record.to) = (Some(from.into()), Some(to.into()));
            record.time = data.time_s;
            record.interruption_s = Some(data.interruption_s);
            record.latency_s = Some(data.latency_s);
            record.lost_packets = Some(data.lost_packets);
            self.rows.push(Row {
                record,
                repeats: between(last_before - WINDOW, first_new + WINDOW),
                losses: network.then(|| between(settled, first_new + SETTLING)),
            });
        }
        first_new + SETTLING
    }

    /// A flow that is dead: if one of its hosts was moving, that was its last handover. Of several it is the first that began
    /// once nothing new came, or else the last before.
    fn never_came_back(&mut self, number: usize, settled: Instant, taken: &BTreeSet<u32>) {
        let flow = &self.connections.flows()[number];
        let since = flow.silent_since(self.end);
        let handoffs = self.handoffs();
        let own = [Some(flow.sender()), flow.receiver()].into_iter().flatten();
        let own = own.flat_map(|node| handoffs.of(node).iter());
        let moving = |n: &u32| {
            let Some(h) = handoffs.get(*n) else { return false };
            let is_own = h.is_of(self.connections.ledger.key(number)) && !taken.contains(n);
            (h.asked || h.begin >= since) && is_own && h.is_within(since, self.end)
        };
        let (after, before): (Vec<u32>, Vec<u32>) = own
            .filter(moving)
            .partition(|n| handoffs.get(*n).is_some_and(|h| h.begin >= since));
        // they are numbered as they began
        let Some(handoff) = after.into_iter().min().or(before.into_iter().max()) else {
            return;
        };
        let Some(node) = handoffs.get(handoff).map(|h| h.node) else {
            return;
        };
        self.shown.insert(handoff);
        let layer = match self.connections.mobility() {
            Mobility::Shim => Layer::Network,
            Mobility::Transport | Mobility::Concurrent => Layer::Transport,
        };
        let mut record = self.signalled(node, Some(handoff));
        record.flow = Some(number as u64);
        record.layer = Some(layer);
        record.interruption_s = Some(self.end.since(since).as_secs_f64());
        record.censored = true;
        record.lost_packets = Some(0);
        self.rows.push(Row {
            record,
            repeats: between(since - WINDOW, self.end),
            losses: Some(between(settled, self.end)),
        });
    }

    /// Moves of hosts that no flow's data shows: one row of each, however many associations were moved.
    fn idle(&mut self) {
        let layer = match self.connections.mobility() {
            Mobility::Shim => Layer::Network,
            Mobility::Transport | Mobility::Concurrent => Layer::Transport,
        };
        for (number, node) in self.not_shown() {
            let mut record = self.signalled(node, Some(number));
            record.layer = Some(layer);
            self.rows.push(Row {
                record,
                repeats: (1, 0),
                losses: None,
            });
        }
    }

    /// Of each move of a host that no flow's data shows the first handoff that was asked for, and its node. A host that
    /// registers for the first time has not moved.
    fn not_shown(&self) -> Vec<(u32, u32)> {
        let mut last: BTreeMap<u32, JointMove> = BTreeMap::new();
        let mut idle = Vec::new();
        let shim = self.connections.mobility() == Mobility::Shim;
        let all = (0..).zip(self.handoffs().all().iter());
        for (number, h) in all.filter(|(_, h)| !shim || h.from.is_some()) {
            let joint = last.entry(h.node).or_default();
            if !joint.has_room_for(&h) {
                idle.extend(core::mem::take(joint).idle().map(|number| (number, h.node)));
            }
            joint.add(number, &h, self.shown.contains(&number));
        }
        let of_last = last
            .iter()
            .filter_map(|(node, joint)| Some((joint.idle()?, *node)));
        idle.extend(of_last);
        idle.sort_unstable();
        idle
    }

    /// The handoff of a host, in which a flow took part, to an address that its data shows at `first_new`: the last that had
    /// begun by then.
    fn handoff_of(
        &self,
        flow: usize,
        node: u32,
        to: Ipv6Addr,
        first_new: Instant,
        taken: &BTreeSet<u32>,
    ) -> Option<u32> {
        let flow = self.connections.ledger.key(flow);
        let handoffs = self.handoffs();
        let own = handoffs.of(node).backwards();
        let own = own.filter_map(|n| Some((n, handoffs.get(n)?)));
        let mut begun = own.filter(|(_, h)| h.begin <= first_new && h.is_of(flow));
        begun
            .find(|(_, h)| prefix(h.to) == prefix(to))
            .map(|(n, _)| n)
            .filter(|n| !taken.contains(n))
    }

    /// What signalling says of a handover: times, and whom it failed to reach.
    fn signalled(&self, node: u32, handoff: Option<u32>) -> HandoverRecord {
        let h = handoff.and_then(|n| self.handoffs().get(n));
        let shim = self.connections.mobility() == Mobility::Shim;
        let done = h.and_then(|h| h.done());
        let failed = handoff.map_or(&[][..], |n| self.handoffs().failed(n));
        let parts = handoff.filter(|_| shim).and_then(|n| {
            let parts = self
                .connections
                .vertical
                .parts(n as usize, done.map(|(at, _)| at));
            parts.map(|p: HandoffParts| Parts::from(p))
        });
        HandoverRecord {
            host: self.names.get(node as usize).cloned().unwrap_or_default(),
            flow: None,
            layer: None,
            from: h.and_then(|h| h.from).map(IpAddr::from),
            to: h.map(|h| h.to.into()),
            time: h.map_or(0.0, |h| seconds(h.begin)),
            interruption_s: None,
            censored: false,
            latency_s: None,
            handoff_delay_s: done.map(|(_, delay)| delay.as_secs_f64()),
            begin_s: h.map(|h| seconds(h.begin)),
            end_s: done.map(|(at, _)| seconds(at)),
            failed: failed.iter().map(|a| IpAddr::from(*a)).collect(),
            parts,
            lost_packets: None,
            retransmissions: None,
            spurious_retransmissions: None,
        }
    }

    /// Counts retransmissions, and losses, by the ledger.
    fn count(&mut self) {
        let ledger = &self.connections.ledger;
        let mut by_flow: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (at, row) in self.rows.iter_mut().enumerate() {
            let Some(flow) = row.record.flow else { continue };
            (row.record.retransmissions, row.record.spurious_retransmissions) = (Some(0), Some(0));
            if row.losses.is_some() {
                row.record.lost_packets = Some(0);
            }
            by_flow.entry(flow).or_default().push(at);
        }
        for (flow, mark) in ledger.marks() {
            let Some(rows) = by_flow.get(&(flow as u64)) else {
                continue;
            };
            let within = |(from, until): (u32, u32)| (from..=until).contains(&mark.sent_ticks);
            for &at in rows {
                let row = &mut self.rows[at];
                if mark.is_retransmission && within(row.repeats) {
                    add(&mut row.record.retransmissions, 1);
                    add(
                        &mut row.record.spurious_retransmissions,
                        u64::from(mark.is_spurious),
                    );
                }
                if mark.is_lost_to_handover && row.losses.is_some_and(within) {
                    add(&mut row.record.lost_packets, 1);
                }
            }
        }
    }
}

fn add(count: &mut Option<u64>, more: u64) {
    *count = count.map(|known| known + more);
}

/// What the network routes by.
fn prefix(address: Ipv6Addr) -> u64 {
    (u128::from(address) >> 64) as u64
}

fn between(from: Instant, until: Instant) -> (u32, u32) {
    (ticks(from.as_nanos()), ticks(until.as_nanos()))
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}
