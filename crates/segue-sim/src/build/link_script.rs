//! When links go down and come up.

use crate::network::link_script::{Change, ChangeKind};
use crate::scenario::model::{LinkEntry, ScenarioFile};
use segue_proto::{Duration, Instant, sigma};
use std::collections::BTreeSet;

/// Whether a host is on a wire that comes and goes.
pub(crate) fn comes_and_goes(s: &ScenarioFile, host: &str) -> bool {
    let wires = s.link.iter().filter(|l| l.between.iter().any(|b| b == host));
    wires.into_iter().any(|l| !l.outages.is_empty())
}

/// All changes of all links, in order. A link that is up at the beginning says so, if it or another of its host comes and goes: where
/// some links of a host are told of, all are, or its policy would not know of one that is always there.
pub(super) fn changes(s: &ScenarioFile) -> Vec<Change> {
    let warns = super::hosts::handover(s).policy == sigma::Policy::LastMoment;
    let margin = warns.then_some(s.handover.margin);
    let come_and_go = s.link.iter().filter(|l| !l.outages.is_empty());
    let told: BTreeSet<&String> = come_and_go
        .flat_map(|l| &l.between)
        .filter(|name| s.host.named(name).is_some())
        .collect();
    let mut all = Vec::new();
    for (number, link) in s.link.iter().enumerate() {
        let segment = (s.cell.len() + number) as u16;
        let is_told_of = link.between.iter().any(|name| told.contains(name));
        let own = if link.outages.is_empty() && is_told_of {
            vec![(Instant::ZERO, ChangeKind::Up)]
        } else {
            of_link(link, margin)
        };
        all.extend(own.into_iter().map(|(time, kind)| Change {
            time,
            link: number as u32,
            kind,
            segment,
        }));
    }
    // a link that comes up goes before one that goes down at the same moment: there is no gap between them
    all.sort_by_key(|c| (c.time, core::cmp::Reverse(c.kind), c.link));
    all
}

fn of_link(link: &LinkEntry, margin: Option<Duration>) -> Vec<(Instant, ChangeKind)> {
    let mut changes = Vec::new();
    if link.outages.is_empty() {
        return changes;
    }
    let outages = || link.outages.iter().filter(|o| o.to.is_none_or(|to| to > o.from));
    if outages().next().is_none_or(|o| !o.from.is_zero()) {
        changes.push((Instant::ZERO, ChangeKind::Up));
    }
    let mut up_since = Instant::ZERO;
    for outage in outages() {
        let down = Instant::ZERO + outage.from;
        if let Some(margin) = margin.filter(|_| !outage.from.is_zero()) {
            let warning = (down - margin).max(up_since);
            changes.push((warning, ChangeKind::WillGoDown(down - warning)));
        }
        changes.push((down, ChangeKind::Down));
        if let Some(to) = outage.to {
            up_since = Instant::ZERO + to;
            changes.push((up_since, ChangeKind::Up));
        }
    }
    changes
}
