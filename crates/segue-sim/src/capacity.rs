//! What the links and cells between two hosts can carry at best.

use crate::scenario::model::{CellEntry, HostEntry, LinkEntry, ScenarioFile};
use segue_proto::units::BitRate;
use std::collections::{BTreeMap, BinaryHeap};

/// A way between two nodes, one way.
type Edge<'a> = (&'a str, &'a str, u64);

/// The rate of the slowest link or cell on the best way from a host to another, whatever else there is on it and wherever
/// they are; nothing without a way, or where a rate varies.
pub(crate) fn of_way(s: &ScenarioFile, from: &str, to: &str) -> Option<BitRate> {
    let mut edges = Vec::new();
    // nobody sends through another host
    let other = |name: &str| name != from && name != to && s.host.number(name).is_some();
    for link in s.link.iter().filter(|l| !l.between.iter().any(|n| other(n))) {
        edges.extend(of_link(link)?);
    }
    for host in [from, to].into_iter().filter_map(|name| s.host.named(name)) {
        edges.extend(of_cells(s, host)?);
    }
    let mut ways: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for (a, b, rate) in edges {
        ways.entry(a).or_default().push((b, rate));
    }
    // the widest way to a node is known once no wider one is left to follow
    let mut known: BTreeMap<&str, u64> = BTreeMap::new();
    let mut to_follow = BinaryHeap::from([(u64::MAX, from)]);
    while let Some((rate, node)) = to_follow.pop() {
        if known.contains_key(node) {
            continue;
        }
        known.insert(node, rate);
        for (next, of_edge) in ways.get(node).into_iter().flatten() {
            to_follow.push((rate.min(*of_edge), *next));
        }
    }
    let widest = known.get(to).copied().filter(|rate| *rate > 0);
    widest.map(BitRate::from_bits_per_second)
}

/// The least rate of any link or cell that has one, bit/s: no way carries less.
pub(crate) fn least(s: &ScenarioFile) -> u64 {
    let links = s.link.iter().filter_map(of_link).flatten();
    let cells = s.cell.iter().filter_map(|cell| of_cell(s, cell));
    let rates = links.map(|(_, _, rate)| rate).chain(cells.flatten());
    rates.min().unwrap_or(0)
}

/// The rate of a link towards one of its ends; nothing where a rate of it varies.
pub(crate) fn towards(link: &LinkEntry, end: &str) -> Option<BitRate> {
    let mut directions = of_link(link)?.into_iter();
    let (_, _, rate) = directions.find(|(_, to, _)| *to == end)?;
    Some(BitRate::from_bits_per_second(rate))
}

/// How many links and radios a host has.
pub(crate) fn interfaces(s: &ScenarioFile, host: &str) -> u64 {
    let links = s.link.iter().filter(|l| l.between.iter().any(|n| n == host));
    let radios = s.host.named(host).map_or(0, |host| u64::from(host.radios));
    links.count() as u64 + radios
}

fn of_link(link: &LinkEntry) -> Option<[Edge<'_>; 2]> {
    let up = link.up.as_ref();
    if link.trace.is_some() || up.is_some_and(|up| up.trace.is_some()) {
        return None;
    }
    let [first, second] = &link.between;
    let rate = link.rate.bits_per_second();
    let back = up.map_or(rate, |up| up.rate.bits_per_second());
    Some([(first, second, rate), (second, first, back)])
}

/// The cells that a host has radios for.
fn of_cells<'a>(s: &'a ScenarioFile, host: &'a HostEntry) -> Option<Vec<Edge<'a>>> {
    let mut edges = Vec::new();
    for cell in s.cell.iter().filter(|_| host.radios > 0) {
        let [down, up] = of_cell(s, cell)?;
        edges.push((cell.router.as_str(), host.name.as_str(), down));
        edges.push((host.name.as_str(), cell.router.as_str(), up));
    }
    Some(edges)
}

/// Down and up.
fn of_cell(s: &ScenarioFile, cell: &CellEntry) -> Option<[u64; 2]> {
    let rates = match &cell.bearer {
        Some(b) if b.down.trace.is_some() || b.up.trace.is_some() => return None,
        Some(b) => [b.down.rate, b.up.rate],
        None => [cell.radio.as_ref().unwrap_or(&s.radio).rate; 2],
    };
    Some(rates.map(BitRate::bits_per_second))
}
