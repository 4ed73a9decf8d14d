//! What a run says of itself that its figures do not: what had no effect, was never served, or was out of reach.

use crate::network::cells::PlaceKind;
use crate::network::walks::Way;
use crate::network::{Mover, Network, Node};
use crate::scenario::Scenario;
use crate::scenario::model::{ApplicationEntry, ApplicationKind, ScenarioFile};
use crate::scenario::schemes::Scheme;
use crate::{build, capacity, carried};
use core::net::Ipv6Addr;
use segue_proto::Instant;
use segue_proto::app::Transport;
use segue_proto::host::Host;
use segue_proto::shim::ShimEvent;
use segue_proto::units::BitRate;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is warned of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// An application never moved a byte.
    NeverServed,
    /// The scheme does nothing for a flow.
    SchemeWithoutEffect,
    /// A key that nothing of this run reads.
    KeyWithoutEffect,
    /// A host was out of reach of every cell.
    OutOfCoverage,
    /// A scheme fell back to what works without it.
    Fallback,
    /// A queue dropped much of what came, a channel was nearly always busy, or an application asks for more than there is.
    Overload,
    /// Packets for which no router knew a way.
    NoRoute,
    /// Packets that no figure counts.
    NotCounted,
}

impl WarningKind {
    /// Name in JSON and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeverServed => "never-served",
            Self::SchemeWithoutEffect => "scheme-without-effect",
            Self::KeyWithoutEffect => "key-without-effect",
            Self::OutOfCoverage => "out-of-coverage",
            Self::Fallback => "fallback",
            Self::Overload => "overload",
            Self::NoRoute => "no-route",
            Self::NotCounted => "not-counted",
        }
    }
}

/// A warning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Warning {
    /// What of.
    pub kind: WarningKind,
    /// The host concerned, if it is one.
    pub host: Option<String>,
    /// Number of the flow concerned, if it is one.
    pub flow: Option<u64>,
    /// In a line.
    pub text: String,
}

/// Warnings of one kind that are given one by one; more are counted.
const MOST_OF_A_KIND: usize = 4;

/// Share of the packets for a queue that it drops because it is full from which on it is overloaded. Senders that yield
/// to loss keep below it: at 5 %, TCP is all but in timeouts (Padhye et al. 1998).
const OVERLOAD: f64 = 0.05;

/// With fewer drops than this nothing is overloaded: a burst at the start of a short run.
const LEAST_DROPS: u64 = 100;

/// So many times what a way carries is more than an application can have meant.
const TOO_MUCH: f64 = 2.0;

/// What a network notes for warnings while it runs.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Hosts that fell back for a peer, and when they first did.
    pub fallen_back: BTreeMap<(u32, Ipv6Addr), Instant>,
    /// Hosts that could not tell a peer where they are, and when they first could not.
    pub told_in_vain: BTreeMap<(u32, Ipv6Addr), Instant>,
    /// Packets without a route, by router: how many, and the first of them.
    pub no_route: BTreeMap<u32, (u64, Instant, Ipv6Addr)>,
    /// Queues in front of radio channels, by channel.
    channels: Vec<Load>,
}

/// What a queue was given, and what of it did not fit.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Load {
    pub offered: u64,
    pub refused: u64,
}

impl Load {
    /// Counts a packet that was taken or not.
    pub fn count(&mut self, taken: bool) {
        self.offered += 1;
        self.refused += u64::from(!taken);
    }

    fn is_over(self) -> bool {
        self.refused >= LEAST_DROPS && self.refused as f64 > OVERLOAD * self.offered as f64
    }
}

impl Notes {
    /// A host's shim reports.
    pub fn shim_event(&mut self, now: Instant, node: u32, event: &ShimEvent) {
        match *event {
            ShimEvent::FellBack { peer } => self.fallen_back.entry((node, peer)).or_insert(now),
            ShimEvent::HandoffFailed { peer } => self.told_in_vain.entry((node, peer)).or_insert(now),
            _ => return,
        };
    }

    /// A packet came to the queue in front of a radio channel, and was taken or not.
    pub fn count_on_channel(&mut self, channel: u32, taken: bool) {
        let channel = channel as usize;
        if self.channels.len() <= channel {
            self.channels.resize(channel + 1, Load::default());
        }
        self.channels[channel].count(taken);
    }

    /// A router knew no way for a packet.
    pub fn no_route(&mut self, now: Instant, node: u32, destination: Ipv6Addr) {
        self.no_route.entry(node).or_insert((0, now, destination)).0 += 1;
    }
}

/// Everything that there is to say of a run that is over, at most [`MOST_OF_A_KIND`] lines of each kind and one that
/// counts the rest.
pub(crate) fn of_run(scenario: &Scenario, network: &Network) -> Vec<Warning> {
    let file = scenario.file();
    let about = About {
        file,
        network,
        names: scenario.node_names(),
    };
    let mut all = about.never_served();
    all.extend(about.scheme_without_effect());
    all.extend(
        scenario
            .warnings()
            .iter()
            .filter(|w| !about.is_wrong_in_lab(w))
            .cloned(),
    );
    all.extend(about.fallbacks());
    all.extend(about.out_of_coverage());
    all.extend(about.asked_too_much());
    all.extend(about.overloads());
    all.extend(about.no_routes());
    all.extend(not_counted(network.recorder.in_fragments()));
    bounded(all)
}

/// Of a kernel's fragments, only the first says whose they are, and none how many there are.
fn not_counted(in_fragments: u64) -> Option<Warning> {
    let text = format!("{in_fragments} datagrams that a kernel sent in fragments are in no figure");
    (in_fragments > 0).then(|| Warning::new(WarningKind::NotCounted, None, text))
}

fn bounded(all: Vec<Warning>) -> Vec<Warning> {
    let mut counts: BTreeMap<WarningKind, usize> = BTreeMap::new();
    let mut kept = Vec::new();
    for warning in all {
        let count = counts.entry(warning.kind).or_default();
        *count += 1;
        if *count <= MOST_OF_A_KIND {
            kept.push(warning);
        }
    }
    for (kind, count) in counts {
        if count > MOST_OF_A_KIND {
            let more = count - MOST_OF_A_KIND;
            kept.push(Warning::new(kind, None, format!("{more} more of this kind")));
        }
    }
    kept
}

impl Warning {
    pub(crate) fn new(kind: WarningKind, host: Option<&str>, text: String) -> Self {
        Self {
            kind,
            host: host.map(str::to_owned),
            flow: None,
            text,
        }
    }
}

/// A run that is over.
struct About<'a> {
    file: &'a ScenarioFile,
    network: &'a Network,
    names: Vec<String>,
}

impl About<'_> {
    fn name(&self, node: u32) -> &str {
        self.names.get(node as usize).map_or("", String::as_str)
    }

    /// Name of the host that has this address or identity, or else the address.
    fn peer(&self, address: Ipv6Addr) -> String {
        let has = |host: &&str| build::shim_identity(self.file, host) == Some(address);
        let hosts = self.file.host.iter().map(|h| h.name.as_str());
        hosts
            .into_iter()
            .find(has)
            .map_or_else(|| address.to_string(), |name| format!("`{name}`"))
    }

    fn moves(&self, host: &str) -> bool {
        self.file.mobile.of(host).is_some() || build::comes_and_goes(self.file, host)
    }

    /// Applications that were opened, and never moved a byte.
    fn never_served(&self) -> Vec<Warning> {
        // programs say themselves what they came to
        if self.network.kernels.is_some() {
            return Vec::new();
        }
        let has_received = |name: &str| {
            let host = self.host(name);
            let stats = (0..).map_while(|index| host?.application(index));
            stats.into_iter().any(|s| s.bytes_received > 0)
        };
        let parts = build::opening_parts(self.file);
        let idle = |number: usize, a: &ApplicationEntry| {
            let opener = build::opener(self.file, a);
            let stats = self.host(opener).and_then(|host| host.application(parts[number]));
            let moved = stats.map_or(0, |s| s.bytes_sent + s.bytes_received);
            moved == 0 || !(has_received(&a.from) || has_received(&a.to))
        };
        let all = self.file.application.iter().enumerate();
        all.filter(|(number, a)| idle(*number, a))
            .map(|(number, a)| {
                let text = format!(
                    "application[{number}], from `{}` to `{}`, was never served: not a byte of it arrived",
                    a.from, a.to
                );
                Warning::new(WarningKind::NeverServed, Some(build::opener(self.file, a)), text)
            })
            .collect()
    }

    fn host(&self, name: &str) -> Option<&Host> {
        let number = self.file.host.number(name)?;
        match &self.network.nodes[number] {
            Node::Host(node) => Some(&node.host),
            Node::Router(_) => None,
        }
    }

    /// Whether a proxy of the lab carries it, or leaves it out and says so.
    fn is_for_proxy(&self, a: &ApplicationEntry) -> bool {
        self.network.kernels.is_some()
            && (carried::is_carried(self.file, a) || carried::is_left_out(self.file, a))
    }

    /// What is said of a scenario where nobody carries its TCP over SCTP.
    fn is_wrong_in_lab(&self, warning: &Warning) -> bool {
        warning.kind == WarningKind::KeyWithoutEffect
            && warning.text.starts_with("[sctp]")
            && self.file.application.iter().any(|a| self.is_for_proxy(a))
    }

    /// Connections of hosts that move, for which the scheme does nothing.
    fn scheme_without_effect(&self) -> Vec<Warning> {
        let scheme = self.file.scheme;
        if !scheme.changes_addresses() {
            return Vec::new();
        }
        let named = toml::Value::try_from(scheme).map_or_else(|_| String::new(), |v| v.to_string());
        let mut warnings = Vec::new();
        for a in self.file.application.iter().filter(|a| !self.is_for_proxy(a)) {
            let Some(host) = [&a.to, &a.from].into_iter().find(|name| self.moves(name)) else {
                continue;
            };
            let over = match a.transport {
                Transport::Sctp => continue,
                Transport::Tcp => "TCP",
                Transport::Udp => "UDP",
            };
            let text = format!(
                "scheme = {named} has no effect on the flow from `{}` to `{}`, which fares as with \"none\": it moves associations of SCTP, and this is {over}",
                a.from, a.to
            );
            warnings.push(Warning::new(WarningKind::SchemeWithoutEffect, Some(host), text));
        }
        warnings
    }

    fn fallbacks(&self) -> Vec<Warning> {
        let scheme = self.file.scheme;
        let notes = &self.network.notes;
        let mut warnings = Vec::new();
        let mut warn = |node: u32, text: String| {
            warnings.push(Warning::new(WarningKind::Fallback, Some(self.name(node)), text));
        };
        for (&(node, peer), &at) in &notes.fallen_back {
            let text = format!(
                "`{}` fell back to plain IPv6 with {} at {}: a flow between them does not survive a move",
                self.name(node),
                self.peer(peer),
                seconds(at)
            );
            warn(node, text);
        }
        if scheme == Scheme::Mip6Ro {
            for (&(node, peer), &at) in &notes.told_in_vain {
                let text = format!(
                    "{} did not answer `{}` at {}: no route optimisation, packets go by the home agent",
                    self.peer(peer),
                    self.name(node),
                    seconds(at)
                );
                warn(node, text);
            }
        }
        warnings
    }

    /// One line for each host, whatever it went through.
    fn out_of_coverage(&self) -> Vec<Warning> {
        let network = self.network;
        let movers = network.movers.iter().enumerate();
        let mut known = vec![Coverage::default(); network.movers.len()];
        for place in network.places.iter().filter(|p| p.time <= network.end) {
            let radios = &network.attachments[radios(&network.movers[place.mover as usize])];
            let hears = |cell: u32| radios.iter().any(|a| a.hears(&network.cells[cell as usize]));
            known[place.mover as usize].place(place.time, place.kind, hears);
        }
        movers
            .filter_map(|(mover, m)| {
                let coverage = match &m.way {
                    Way::Known(_) => &known[mover],
                    Way::Drawn(walker) => walker.coverage(),
                };
                let Gaps { count, together_s: together, longest } = coverage.clone().until(network.end);
                let name = self.name(m.node);
                let (lasted, from) = (longest.1.since(longest.0).as_secs_f64(), seconds(longest.0));
                let text = match count {
                    0 => return None,
                    _ if m.radios.is_empty() => return None,
                    1 => format!("`{name}` was out of reach of every cell for {lasted:.3} s from {from} on"),
                    n => format!(
                        "`{name}` was out of reach of every cell {n} times, {together:.3} s together, the longest {lasted:.3} s from \
                         {from} on"
                    ),
                };
                Some(Warning::new(WarningKind::OutOfCoverage, Some(name), text))
            })
            .collect()
    }

    /// Applications whose rate is beyond all that there is between their hosts.
    fn asked_too_much(&self) -> Vec<Warning> {
        let times = |rate: BitRate, carries: u64| rate.bits_per_second() as f64 / carries as f64;
        // the way of each is looked for only where there may be too little: there may be thousands
        let least = capacity::least(self.file);
        let warning = |(number, a): (usize, &ApplicationEntry)| {
            let rate = a.rate.filter(|_| a.kind == ApplicationKind::ConstantRate)?;
            if times(rate, least) < TOO_MUCH {
                return None;
            }
            let best = capacity::of_way(self.file, &a.from, &a.to)?.bits_per_second();
            // several paths at once carry more than the best of them
            let paths = match self.file.scheme {
                Scheme::Cmt => capacity::interfaces(self.file, &a.to),
                _ => 1,
            };
            let carries = BitRate::from_bits_per_second(best.saturating_mul(paths));
            let times = times(rate, carries.bits_per_second());
            let text = format!(
                "application[{number}], from `{}` to `{}`, asks for {rate}, {times:.0} times what the way between them carries at \
                 best, {carries}: what does not fit is never sent",
                a.from, a.to
            );
            (times >= TOO_MUCH).then(|| Warning::new(WarningKind::Overload, Some(&a.from), text))
        };
        let all = self.file.application.iter().enumerate();
        all.filter_map(warning).collect()
    }

    fn overloads(&self) -> Vec<Warning> {
        let network = self.network;
        let over = |load: Load, what: String| {
            let share = load.refused as f64 / load.offered.max(1) as f64 * 100.0;
            let text = format!(
                "{what} was overloaded: {share:.1} % of {} packets found it full",
                load.offered
            );
            load.is_over()
                .then(|| Warning::new(WarningKind::Overload, None, text))
        };
        let links = network.bearers.links_in_order().filter_map(|number| {
            let number = number as usize;
            let ends = (network.link_ends[number ^ 1].node, network.link_ends[number].node);
            let what = format!(
                "the queue of the link from `{}` to `{}`",
                self.name(ends.0),
                self.name(ends.1)
            );
            over(network.links[number].load(), what)
        });
        let channels = network.notes.channels.iter().enumerate();
        let channels = channels.filter_map(|(channel, &load)| {
            let on = |i: &usize| {
                network.cells[*i]
                    .medium
                    .is_some_and(|m| m.channel as usize == channel)
            };
            let cells: Vec<String> = (0..network.cells.len())
                .filter(on)
                .map(|i| format!("`{}`", self.file.cell[i].name))
                .collect();
            over(
                load,
                format!("a queue of the radio channel of {}", cells.join(", ")),
            )
        });
        links.chain(channels).collect()
    }

    fn no_routes(&self) -> Vec<Warning> {
        let routers = self.network.notes.no_route.iter();
        routers
            .map(|(&node, &(count, at, destination))| {
                let packets = if count == 1 { "packet" } else { "packets" };
                let name = self.name(node);
                let text = format!(
                    "`{name}` had no route for {count} {packets}, the first to {destination} at {}",
                    seconds(at)
                );
                Warning::new(WarningKind::NoRoute, Some(name), text)
            })
            .collect()
    }
}

/// What a host was in reach of, of cells that it hears.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Coverage {
    reached: u32,
    /// When it went out of reach of all, if it is.
    since: Option<Instant>,
    gaps: Gaps,
}

/// The times without a cell.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Gaps {
    count: u32,
    together_s: f64,
    /// From when until when.
    longest: (Instant, Instant),
}

impl Default for Coverage {
    /// Before the first place it is in reach of nothing.
    fn default() -> Self {
        Self {
            reached: 0,
            since: Some(Instant::ZERO),
            gaps: Gaps::default(),
        }
    }
}

impl Coverage {
    /// The host comes to a place of its way.
    pub fn place(&mut self, now: Instant, kind: PlaceKind, hears: impl Fn(u32) -> bool) {
        match kind {
            PlaceKind::Enters(cell) if hears(cell) => {
                self.reached += 1;
                self.covered(now);
            }
            PlaceKind::Leaves(cell) if hears(cell) => {
                self.reached = self.reached.saturating_sub(1);
                if self.reached == 0 {
                    self.since = Some(now);
                }
            }
            _ => {}
        }
    }

    /// A gap ends, if there is one.
    fn covered(&mut self, now: Instant) {
        let Some(since) = self.since.take().filter(|since| *since < now) else {
            return;
        };
        let (from, until) = self.gaps.longest;
        self.gaps.count += 1;
        self.gaps.together_s += now.since(since).as_secs_f64();
        if now.since(since) >= until.since(from) {
            self.gaps.longest = (since, now);
        }
    }

    /// All gaps of a run that ends then.
    fn until(mut self, end: Instant) -> Gaps {
        self.covered(end);
        self.gaps
    }
}

fn radios(mover: &Mover) -> core::ops::Range<usize> {
    mover.radios.start as usize..mover.radios.end as usize
}

fn seconds(at: Instant) -> String {
    format!("{:.3} s", at.as_nanos() as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::Duration;

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    #[test]
    fn gaps_are_where_no_cell_that_is_heard_is_in_reach() {
        let places = [
            (0, PlaceKind::Enters(0)),
            (5, PlaceKind::Enters(1)),
            (10, PlaceKind::Leaves(0)),
            (20, PlaceKind::Leaves(1)),
            (25, PlaceKind::Enters(2)),
            (30, PlaceKind::Enters(0)),
            (40, PlaceKind::Leaves(0)),
        ];
        let gaps = |places: &[(u64, PlaceKind)], hears: fn(u32) -> bool| {
            let mut coverage = Coverage::default();
            for &(s, kind) in places {
                coverage.place(at(s), kind, hears);
            }
            coverage.until(at(50))
        };
        let expected = |count, together_s, longest: (u64, u64)| Gaps {
            count,
            together_s,
            longest: (at(longest.0), at(longest.1)),
        };
        assert_eq!(gaps(&places, |cell| cell != 2), expected(2, 20.0, (40, 50)));
        assert_eq!(gaps(&places, |_| true), expected(1, 5.0, (20, 25)));
        assert_eq!(gaps(&[], |_| true), expected(1, 50.0, (0, 50)));
    }

    #[test]
    fn many_of_a_kind_are_counted() {
        let all: Vec<Warning> = (0..100)
            .map(|n| Warning::new(WarningKind::NoRoute, None, n.to_string()))
            .chain([Warning::new(WarningKind::Fallback, None, "one".to_owned())])
            .collect();
        let texts: Vec<String> = bounded(all).into_iter().map(|w| w.text).collect();
        assert_eq!(texts, ["0", "1", "2", "3", "one", "96 more of this kind"]);
    }

    #[test]
    fn a_queue_is_overloaded_by_its_share_of_drops_not_by_their_number() {
        let load = |offered, refused| Load { offered, refused };
        assert!(load(1000, 100).is_over());
        assert!(!load(1000, 99).is_over(), "few");
        assert!(!load(100_000, 5000).is_over(), "5 % and no more");
        assert!(load(100_000, 5001).is_over());
    }
}
