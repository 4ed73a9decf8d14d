//! A look at flows that have not ended.

use super::Results;
use crate::analyze::cuts::Cuts;
use crate::analyze::flows::conn::Conn;
use crate::analyze::flows::item::Settings;
use crate::analyze::found::Found;
use crate::analyze::glance::{Glance, GlancedFlow};
use crate::analyze::heard::Heard;
use crate::analyze::model::{Flow, Handover};
use crate::record::FlowState;

/// Flows that are shown.
const SHOWN: usize = 16;

/// A flow as its result would be.
struct Glanced {
    flow: Flow,
    handovers: u64,
    last: Option<Found>,
    silent_ns: u64,
}

impl Glanced {
    /// Those that died, those that handed over, those with most data, the oldest of those.
    fn weight(&self) -> impl Ord + use<> {
        (
            self.flow.end.state == FlowState::Dead,
            self.handovers > 0,
            self.flow.forward.useful_bytes + self.flow.reverse.useful_bytes,
            core::cmp::Reverse(self.flow.id),
        )
    }
}

impl Results {
    /// What was found up to `end_ns`, of flows that have ended and of those that `go_on`: each is ended as it is, and forgotten.
    pub(in crate::analyze) fn glance<'a>(
        &self,
        go_on: impl Iterator<Item = (u64, &'a Conn)>,
        cuts: &Cuts,
        signals: &[Heard],
        settings: &Settings,
        end_ns: u64,
    ) -> Glance {
        let told = |found: &Found| found.clone().finish(signals, 0, settings.start_ns);
        let mut handovers = self.handovers.len() as u64 + self.handovers_dropped;
        let mut last = self.handovers.iter().max_by_key(|h| h.first_new_ns()).cloned();
        let mut shown: Vec<Glanced> = Vec::new();
        for (id, conn) in go_on {
            if cuts.of(id, conn, end_ns).is_some() {
                continue;
            }
            let Some(glanced) = glanced(id, conn, settings, end_ns) else {
                continue;
            };
            handovers += glanced.handovers;
            last = later(last, &glanced.last);
            // subflows are seen in their connection
            if glanced.flow.parent.is_none() {
                shown.push(glanced);
            }
            if shown.len() >= 8 * SHOWN {
                keep(&mut shown);
            }
        }
        keep(&mut shown);
        shown.sort_by_key(|g| g.flow.id);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let row = |g: Glanced| GlancedFlow {
            last_handover: g.last.as_ref().map(told),
            flow: g.flow,
            silent_s: seconds(g.silent_ns),
            handovers: g.handovers,
        };
        let last_handover: Option<Handover> = last.as_ref().map(told);
        Glance {
            start_time_ns: settings.start_ns,
            time_s: seconds(end_ns.saturating_sub(settings.start_ns)),
            quiet_s: 0.0,
            packets: 0,
            flows_total: 0,
            handovers,
            last_handover,
            flows: shown.into_iter().map(row).collect(),
        }
    }
}

/// A flow as it would be reported if it ended here.
fn glanced(id: u64, conn: &Conn, settings: &Settings, end_ns: u64) -> Option<Glanced> {
    let halves = [conn.half(0), conn.half(1)];
    let views = halves.iter().filter_map(|h| h.arrivals().or(h.departures()));
    let new_ns = views.map(|v| v.last_new_ns()).max();
    let mut results = Results::new(1);
    results.add(id, conn.clone(), settings, end_ns);
    let handovers = results.handovers;
    Some(Glanced {
        flow: results.flows.pop()?,
        handovers: handovers.len() as u64 + results.handovers_dropped,
        last: handovers.into_iter().max_by_key(Found::first_new_ns),
        silent_ns: new_ns.map_or(0, |at| end_ns.saturating_sub(at)),
    })
}

fn later(one: Option<Found>, other: &Option<Found>) -> Option<Found> {
    match (&one, other) {
        (Some(a), Some(b)) if b.first_new_ns() >= a.first_new_ns() => other.clone(),
        (None, Some(_)) => other.clone(),
        _ => one,
    }
}

/// Keeps as many as are shown.
fn keep(shown: &mut Vec<Glanced>) {
    shown.sort_by_cached_key(|g| core::cmp::Reverse(g.weight()));
    shown.truncate(SHOWN);
}
