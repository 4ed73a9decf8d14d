//! What a scenario must be beyond its types: names that exist, geometry that is possible, hosts with addresses.

use super::model::{
    ApplicationEntry, CellEntry, HostEntry, LinkEntry, MobileSection, Pattern, RouterEntry, ScenarioFile,
};
use super::schemes::Scheme;
use crate::mobility::Point;
use segue_proto::Duration;
use segue_proto::app::Transport;
use segue_proto::l2::Latency;
use segue_proto::units::{Coordinate, QueueLimit};
use segue_wire::ilnp::{Locator, Nid};
use std::collections::{BTreeMap, BTreeSet};

/// A key with what was expected of it.
pub(super) struct Problem {
    pub key: String,
    pub expected: String,
}

pub(super) fn problem<T>(key: impl Into<String>, expected: impl Into<String>) -> Result<T, Problem> {
    Err(Problem {
        key: key.into(),
        expected: expected.into(),
    })
}

/// A duration as whoever writes scenarios writes it.
pub(super) fn written(duration: Duration) -> String {
    let value = toml::Value::try_from(duration);
    let text = value.as_ref().ok().and_then(toml::Value::as_str);
    text.map_or_else(|| duration.to_string(), str::to_owned)
}

/// Most hosts, routers and links: what the plan of addresses has room for, and memory.
const MOST_HOSTS: usize = 20_000;
const MOST_ROUTERS: usize = 2_000;
const MOST_LINKS: usize = 60_000;

/// Longest simulated time: far below the range of the clock.
const LONGEST: Duration = Duration::from_secs(1_000_000);

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    names(s)?;
    wires(s)?;
    radio(s)?;
    cells(s)?;
    super::access::check(s)?;
    super::sharing::check(s)?;
    sites(s)?;
    super::events::check_readdressing(s)?;
    shims(s)?;
    mobile(s)?;
    super::plan::check(s)?;
    hosts(s)?;
    connected(s)?;
    forgeries(s)?;
    if let Err(message) = s.handover.check() {
        let key = message.split_whitespace().next().unwrap_or_default();
        return problem(format!("handover.{key}"), message.clone());
    }
    super::timers::check(s)?;
    multihomed(s)?;
    handed_over(s)?;
    sctp(s)?;
    super::tcp::check(s)?;
    super::remedy::check(s)?;
    super::location::check(s)?;
    super::processing::check(s)?;
    super::applications::check(s)?;
    built(s)
}

/// What every host says of its parts, so that a run does not fail on what a scenario could have been refused for.
fn built(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, host) in s.host.iter().enumerate() {
        if let Err(error) = crate::build::host_config(s, host, i as u32, s.seed).check() {
            return problem(format!("host[{i}]"), error.to_string());
        }
    }
    Ok(())
}

fn names(s: &ScenarioFile) -> Result<(), Problem> {
    let hosts = s
        .host
        .iter()
        .enumerate()
        .map(|(i, h)| (format!("host[{i}].name"), &h.name));
    let routers = s
        .router
        .iter()
        .enumerate()
        .map(|(i, r)| (format!("router[{i}].name"), &r.name));
    let mut seen: BTreeSet<&String> = BTreeSet::new();
    for (key, name) in hosts.chain(routers) {
        if !is_plain(name) {
            return problem(key, format!("`{name}`: {PLAIN}"));
        }
        if !seen.insert(name) {
            return problem(
                key,
                format!("`{name}` is taken: expected a name of its own for every node"),
            );
        }
    }
    if !is_short_text(&s.name) {
        return problem("name", "expected 1 to 100 printable characters");
    }
    if s.host.len() > MOST_HOSTS || s.router.len() > MOST_ROUTERS {
        return problem(
            "host",
            format!("expected at most {MOST_HOSTS} hosts and {MOST_ROUTERS} routers"),
        );
    }
    if s.host.is_empty() {
        return problem("host", "expected at least one [[host]]");
    }
    Ok(())
}

/// What names of things must be that are shown only.
fn is_short_text(text: &str) -> bool {
    (1..=100).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// What names of nodes and cells must be: they name files too.
const PLAIN: &str =
    "expected 1 to 60 letters, digits, `-`, `_`, blanks or dots, the first of them a letter or digit";

fn is_plain(name: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    name.chars().next().is_some_and(char::is_alphanumeric)
        && name.chars().all(allowed)
        && name.chars().count() <= 60
}

fn known(s: &ScenarioFile, name: &str) -> bool {
    is_host(s, name) || is_router(s, name)
}

pub(super) fn is_host(s: &ScenarioFile, name: &str) -> bool {
    s.host.number(name).is_some()
}

fn is_router(s: &ScenarioFile, name: &str) -> bool {
    s.router.number(name).is_some()
}

fn wires(s: &ScenarioFile) -> Result<(), Problem> {
    if s.link.len() > MOST_LINKS {
        return problem("link", format!("expected at most {MOST_LINKS} links"));
    }
    for (i, link) in s.link.iter().enumerate() {
        let key = |k: &str| format!("link[{i}].{k}");
        for name in &link.between {
            if !known(s, name) {
                return problem(
                    key("between"),
                    format!("`{name}`: expected the name of a host or router"),
                );
            }
        }
        if link.between[0] == link.between[1] {
            return problem(key("between"), "expected two different nodes");
        }
        let room = match link.queue {
            QueueLimit::Packets(n) => n.count() > 0,
            QueueLimit::Bytes(n) => n.bytes() >= 1500,
        };
        if !room {
            return problem(
                key("queue"),
                "expected room for a packet: at least 1 packet or 1500 B",
            );
        }
        outages(link, &key)?;
        silences(&link.silences, &key)?;
    }
    Ok(())
}

/// Outages come one after the other.
fn silences(silences: &[super::events::Silence], key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    for (n, silence) in silences.iter().enumerate() {
        let key = |k: &str| key(&format!("silences[{n}].{k}"));
        if silence.to.is_some_and(|to| to <= silence.from) {
            return problem(key("to"), "expected a time after its beginning");
        }
    }
    Ok(())
}

fn outages(link: &LinkEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    let mut up_since = Some(Duration::ZERO);
    for (n, outage) in link.outages.iter().enumerate() {
        let key = |k: &str| key(&format!("outages[{n}].{k}"));
        if up_since.is_none_or(|up| outage.from < up) || outage.from > LONGEST {
            return problem(
                key("from"),
                "expected outages in order, none of which begins before the one before it has ended",
            );
        }
        if outage.to.is_some_and(|to| to < outage.from || to > LONGEST) {
            return problem(
                key("to"),
                "expected a time not before `from`, and at most 1000000 s",
            );
        }
        up_since = outage.to;
    }
    if !link.outages.is_empty() && link.reorder {
        return problem(key("reorder"), "expected false on a link with outages");
    }
    Ok(())
}

fn cells(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, cell) in s.cell.iter().enumerate() {
        let key = |k: &str| format!("cell[{i}].{k}");
        if !is_plain(&cell.name) {
            return problem(key("name"), format!("`{}`: {PLAIN}", cell.name));
        }
        if !is_near(cell.position) {
            return problem(key("position"), FAR);
        }
        if !is_router(s, &cell.router) {
            return problem(
                key("router"),
                format!("`{}`: expected the name of a router", cell.router),
            );
        }
        for other in &s.cell[..i] {
            if cell.name == other.name {
                return problem(
                    key("name"),
                    format!("`{}` is taken: expected a name of its own", cell.name),
                );
            }
            if cell.router == other.router {
                return problem(
                    key("router"),
                    format!("`{}` has a cell: expected one cell a router", cell.router),
                );
            }
            let apart = centre(cell).distance(centre(other));
            if !super::access::told_apart(cell, other)
                && apart + cell.radius.metres().min(other.radius.metres())
                    <= cell.radius.metres().max(other.radius.metres())
            {
                return problem(
                    key("position"),
                    format!(
                        "cells `{}` and `{}` lie within each other: expected cells of which each covers ground of its own, or `overlaid = true`",
                        other.name, cell.name
                    ),
                );
            }
        }
    }
    super::access::beacons_fit(s)?;
    let longest = match s.l2.latency {
        Latency::Single(whole) => whole.max(),
        Latency::Phases(p) => {
            p.detection.max() + p.probe.max() + p.authentication.max() + p.reassociation.max()
        }
    };
    if longest > Duration::from_secs(3600) {
        return problem("l2.latency", "expected at most 3600 s");
    }
    let second = Duration::from_secs(1).as_nanos();
    // 32 bits of seconds, all of them set for ever (RFC 4861 section 4.6.2)
    let fits = |l: Duration| {
        l.as_nanos().is_multiple_of(second) && (1..u64::from(u32::MAX)).contains(&(l.as_nanos() / second))
    };
    if s.address.valid_lifetime.is_some_and(|l| !fits(l)) {
        return problem(
            "address.valid_lifetime",
            "expected whole seconds, 1 s to 4294967294 s: options count them (RFC 4861 section 4.6.2)",
        );
    }
    Ok(())
}

/// Borders of sites: a prefix that is nobody's.
fn sites(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, router) in s.router.iter().enumerate() {
        let Some(prefix) = router.rewrites_to else {
            continue;
        };
        let key = format!("router[{i}].rewrites_to");
        let locator = Locator::of(prefix);
        if locator.address(Nid(0)) != prefix || !locator.is_routable() {
            return problem(key, "expected a prefix of 64 bits such as \"2001:db8:100::\"");
        }
        if s.cell.iter().all(|c| c.router != router.name) {
            return problem(key, "expected a router with a [[cell]]: the cell is the site");
        }
        let other = |r: &RouterEntry| r.rewrites_to == Some(prefix);
        if s.router.iter().take(i).any(other) || crate::build::is_taken(s, prefix) {
            return problem(key, format!("{prefix} is taken: expected a prefix of its own"));
        }
    }
    Ok(())
}

/// Shims' own settings, and names in them.
fn shims(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, mobile) in s.mobile.iter().enumerate() {
        if let Some(home) = &mobile.home
            && s.cell.iter().all(|c| c.name != *home)
        {
            let key = format!("{}.home", s.mobile.key(i));
            return problem(key, format!("`{home}`: expected the name of a cell"));
        }
    }
    if let Err(message) = s.mip6.home_agent.check_limits() {
        return problem("mip6.home_agent", message);
    }
    for host in &s.host {
        if let Err(message) = crate::build::shim_config(s, host).check() {
            let section = if s.scheme.is_ilnp() { "ilnp" } else { "mip6" };
            return problem(section, message);
        }
    }
    Ok(())
}

/// Forgers and their victims are on wires: where they are is then known from the start.
fn forgeries(s: &ScenarioFile) -> Result<(), Problem> {
    let wired = |host: &str| is_host(s, host) && s.link.iter().any(|l| l.between.iter().any(|b| b == host));
    for (i, f) in s.forgery.iter().enumerate() {
        for (key, host) in [("from", &f.from), ("to", &f.to)] {
            if !wired(host) {
                let expected = format!("`{host}`: expected the name of a host on a [[link]]");
                return problem(format!("forgery[{i}].{key}"), expected);
            }
        }
        if !is_host(s, &f.about) {
            let expected = format!("`{}`: expected the name of a host", f.about);
            return problem(format!("forgery[{i}].about"), expected);
        }
    }
    Ok(())
}

fn radio(s: &ScenarioFile) -> Result<(), Problem> {
    super::access::channel("radio", &s.radio)
}

fn hosts(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, host) in s.host.iter().enumerate() {
        let wired = s.link.iter().filter(|l| l.between.contains(&host.name)).count();
        if wired == 0 && host.radios == 0 {
            return problem(
                format!("host[{i}]"),
                format!(
                    "`{}` has no address: expected a [[link]] to it or `radios`",
                    host.name
                ),
            );
        }
        if host.radios > 0 && s.cell.is_empty() {
            return problem(
                format!("host[{i}].radios"),
                format!(
                    "`{}` has no address: expected a [[cell]] for its radios",
                    host.name
                ),
            );
        }
        if host
            .population
            .as_deref()
            .is_some_and(|name| !is_short_text(name))
        {
            return problem(
                format!("host[{i}].population"),
                "expected 1 to 100 printable characters",
            );
        }
        if wired + usize::from(host.radios) > 200 {
            return problem(format!("host[{i}]"), "expected at most 200 interfaces");
        }
        if host.plain && crate::build::moves(s, &host.name) {
            return problem(
                format!("host[{i}].plain"),
                format!("`{}` moves: expected a host that stays", host.name),
            );
        }
        if host.radios > 0 && s.mobile.of(&host.name).is_none() {
            return problem(
                format!("host[{i}].radios"),
                format!(
                    "where is `{}`? expected [mobile] with host = \"{}\"",
                    host.name, host.name
                ),
            );
        }
    }
    Ok(())
}

/// Every node must be reachable by wire from every other that has one, through routers: there is no way otherwise.
fn connected(s: &ScenarioFile) -> Result<(), Problem> {
    let wired = |name: &str| s.link.iter().any(|l| l.between.iter().any(|b| b == name));
    let routers = s
        .router
        .iter()
        .enumerate()
        .map(|(i, r)| (format!("router[{i}]"), &r.name));
    let hosts = s
        .host
        .iter()
        .enumerate()
        .map(|(i, h)| (format!("host[{i}]"), &h.name));
    let hosts = hosts.filter(|(_, name)| wired(name));
    let mut nodes = routers.chain(hosts);
    let Some((_, first)) = nodes.next() else {
        return Ok(());
    };
    let mut neighbors: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for [a, b] in s.link.iter().map(|l| &l.between) {
        neighbors.entry(a).or_default().push(b);
        neighbors.entry(b).or_default().push(a);
    }
    let (mut reached, mut open) = (BTreeSet::from([first]), vec![first]);
    while let Some(at) = open.pop() {
        let next = neighbors.get(at).into_iter().flatten();
        open.extend(next.filter(|to| reached.insert(to)));
    }
    match nodes.find(|(_, name)| !reached.contains(name)) {
        Some((key, name)) => problem(
            key,
            format!("no way from `{name}` to `{first}`: expected a [[link]]"),
        ),
        None => Ok(()),
    }
}

fn mobile(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, m) in s.mobile.iter().enumerate() {
        let key = |k: &str| format!("{}.{k}", s.mobile.key(i));
        let Some(host) = s.host.named(&m.host) else {
            return problem(key("host"), format!("`{}`: expected the name of a host", m.host));
        };
        if !s.mobile.is_first(i) {
            return problem(key("host"), format!("`{}` moves already", m.host));
        }
        if host.radios == 0 {
            return problem(
                key("host"),
                format!(
                    "`{}` has no address to move with: expected radios = 1 or more",
                    m.host
                ),
            );
        }
        if m.pattern != Pattern::Still && m.speed.metres_per_second() <= 0.0 {
            return problem(
                key("speed"),
                "expected a speed above 0 m/s; a host that stays has pattern = \"still\"",
            );
        }
        if m.pattern != Pattern::Still && m.speed.metres_per_second() > 3.0e8 {
            return problem(key("speed"), "expected a speed below that of light");
        }
        let places = [Some(m.from), m.to];
        if !places.iter().flatten().chain(&m.points).all(|p| is_near(*p)) {
            return problem(s.mobile.key(i), FAR);
        }
        match (m.pattern, m.to) {
            (Pattern::BackAndForth, None) => return problem(key("to"), "expected a point to move to"),
            (Pattern::BackAndForth, Some(to)) if point(to).distance(point(m.from)) < 0.01 => {
                return problem(
                    key("to"),
                    format!("expected a point at least 0.01 m away from `{}`", key("from")),
                );
            }
            (Pattern::Waypoints, _) if m.points.is_empty() => {
                return problem(key("points"), "expected at least one point to move to");
            }
            _ => {}
        }
        // one whose way is drawn comes to a cell sooner or later
        if super::mobility::model_of(m).is_none() && first_cell(s, m).is_none() {
            // It has no address otherwise, and nothing to hand over.
            return problem(
                key("from"),
                "out of reach of every cell: expected a point within the radius of one",
            );
        }
    }
    Ok(())
}

/// The first cell in whose reach a mobile host begins.
pub(crate) fn first_cell(s: &ScenarioFile, m: &MobileSection) -> Option<usize> {
    let start = point(m.from);
    let reaches = |c: &CellEntry| match &c.present {
        Some(presence) => presence.at_the_beginning(),
        None => centre(c).distance(start) <= c.radius.metres(),
    };
    s.cell.iter().position(reaches)
}

/// The schemes of paper 003 are about a host with links that come and go.
fn multihomed(s: &ScenarioFile) -> Result<(), Problem> {
    if let Err((key, expected)) = s.cmt.check() {
        return problem(format!("cmt.{key}"), expected);
    }
    let moves = |h: &HostEntry| h.radios > 0 || crate::build::comes_and_goes(s, &h.name);
    if s.scheme.is_multihomed() && !s.host.iter().any(moves) {
        return problem(
            "scheme",
            "expected a host that moves with this scheme: one with radios, or with a [[link]] that has outages",
        );
    }
    // in the lab an association carries TCP as well
    let has_association = |a: &ApplicationEntry| {
        a.transport == Transport::Sctp || (s.scheme == Scheme::Cmt && a.transport == Transport::Tcp)
    };
    let over_sctp = s.application.iter().any(has_association);
    if s.scheme.is_multihomed() && !over_sctp && !s.application.is_empty() {
        return problem(
            "scheme",
            "changes the addresses of SCTP associations: expected an [[application]] with transport = \"sctp\"",
        );
    }
    Ok(())
}

/// A shim takes its host from cell to cell; of links that come and go it knows nothing.
fn handed_over(s: &ScenarioFile) -> Result<(), Problem> {
    let on_links = |h: &HostEntry| h.radios == 0 && crate::build::comes_and_goes(s, &h.name);
    if s.scheme.has_shim() && s.mobile.is_empty() && s.host.iter().any(on_links) {
        return problem(
            "scheme",
            "moves hosts from [[cell]] to [[cell]]: expected [mobile], not a [[link]] with outages",
        );
    }
    Ok(())
}

fn sctp(s: &ScenarioFile) -> Result<(), Problem> {
    let mtu = s.sctp.mtu.map_or(1500, |m| m.bytes());
    let headers = if s.sctp.udp_encapsulation { 76 } else { 68 };
    if let Some(size) = s.sctp.chunk_data
        && !(1..=mtu - headers).contains(&size.bytes())
    {
        return problem(
            "sctp.chunk_data",
            format!("expected 1 B to {} B: the MTU less headers", mtu - headers),
        );
    }
    let config = crate::build::sctp_config(s);
    if let (Some(pfmr), Some(psmr)) = (config.pf_max_retrans, config.primary_switchover_max_retrans)
        && psmr < pfmr
    {
        return problem(
            "sctp.primary_switchover_max_retrans",
            "expected at least pf_max_retrans (RFC 7829 section 5)",
        );
    }
    super::timers::bounds(
        "sctp",
        config.rto_max,
        [
            ("rto_min", config.rto_min, s.sctp.rto_min.is_some()),
            ("rto_initial", config.rto_initial, s.sctp.rto_initial.is_some()),
        ],
    )
}

/// Greatest coordinate, metres: a kilometre means little beyond that to a radio cell.
const FARTHEST_M: f64 = 1.0e7;
pub(super) const FAR: &str = "expected coordinates within 10000 km";

pub(super) fn is_near(p: [Coordinate; 2]) -> bool {
    p.iter().all(|c| c.metres().abs() <= FARTHEST_M)
}

pub(crate) fn point(p: [Coordinate; 2]) -> Point {
    Point {
        x: p[0].metres(),
        y: p[1].metres(),
    }
}

fn centre(cell: &CellEntry) -> Point {
    point(cell.position)
}
