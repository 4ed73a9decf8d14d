//! Mobility shims of hosts, and what routers do for them.

use super::{cell_prefix, cell_router_address, link_layer, wire_address, wired_ends};
use crate::network::forgeries::Parties;
use crate::scenario::first_cell;
use crate::scenario::model::{ForgeryEntry, HostEntry, MobileSection, ScenarioFile};
use crate::scenario::schemes::Scheme;
use core::net::Ipv6Addr;
use segue_proto::host::ShimConfig;
use segue_proto::ilnp::{self, LocatorMapping, Rewriter, RewriterConfig};
use segue_proto::mip6::{
    CorrespondentConfig, HomeAgent, HomeAgentConfig, MobileNodeConfig, SecurityAssociation, ServedNode,
};
use segue_proto::nd::{form_address_with, interface_identifier};
use segue_proto::random::{SecretRng as _, Stream};
use segue_wire::ilnp::{Locator, Nid};
use std::collections::BTreeSet;

/// SPI of all security associations between mobile nodes and home agents: each has its own key.
const SPI: u32 = 256;

/// The shim of a host.
pub(super) fn config(s: &ScenarioFile, host: &HostEntry, seed: u64) -> ShimConfig {
    match s.scheme {
        _ if host.plain => ShimConfig::None,
        scheme if scheme.is_mip6() => mobile_ipv6(s, host, seed),
        scheme if scheme.is_ilnp() => ShimConfig::Ilnp(Box::new(ilnp_config(s, host))),
        _ => ShimConfig::None,
    }
}

/// The address that transports of `host` are bound to; nothing where there is no shim.
pub(crate) fn identity(s: &ScenarioFile, host: &str) -> Option<Ipv6Addr> {
    if is_plain(s, host) {
        return None;
    }
    if s.scheme.is_ilnp() {
        return Some(s.ilnp.identity_prefix.address(nid(s, host)));
    }
    match s.mobile.of(host) {
        Some(mobile) if s.scheme.is_mip6() => Some(home_address(s, mobile)),
        _ if s.scheme.is_mip6() => fixed_address(s, host),
        _ => None,
    }
}

/// Whether a host speaks IPv6 alone.
pub(super) fn is_plain(s: &ScenarioFile, host: &str) -> bool {
    s.host.named(host).is_some_and(|h| h.plain)
}

/// The home agent of an access router, if a mobile host has its home in its cell.
pub(super) fn home_agent(s: &ScenarioFile, cell: usize, seed: u64) -> Option<Box<HomeAgent>> {
    if !s.scheme.is_mip6() {
        return None;
    }
    let at_home = s.mobile.iter().filter(|m| home_cell(s, m) == cell);
    let mobile_nodes: Vec<ServedNode> = at_home
        .map(|m| ServedNode {
            home_address: home_address(s, m),
            security: security(&m.host, seed),
        })
        .collect();
    if mobile_nodes.is_empty() {
        return None;
    }
    Some(Box::new(HomeAgent::new(HomeAgentConfig {
        address: cell_router_address(cell),
        mobile_nodes,
        ..s.mip6.home_agent.clone()
    })))
}

/// The prefix that a cell has for the world: its own, or the one that stands for it beyond the border of its site.
pub(super) fn outside_prefix(s: &ScenarioFile, cell: usize) -> Ipv6Addr {
    let router = s.router.named(&s.cell[cell].router);
    router
        .and_then(|r| r.rewrites_to)
        .unwrap_or_else(|| cell_prefix(cell))
}

/// What rewrites locators at the border of a cell's site, if its router is one.
pub(super) fn rewriter(s: &ScenarioFile, cell: usize) -> Option<Box<Rewriter>> {
    let (inside, outside) = (cell_prefix(cell), outside_prefix(s, cell));
    let mappings = vec![LocatorMapping { inside, outside }];
    (inside != outside).then(|| {
        let rewriter = Rewriter::new(&RewriterConfig { mappings });
        Box::new(rewriter.expect("prefixes were checked"))
    })
}

/// The addresses that a forged message is made of. Of a host that moves, its first locator is spoofed, or its home address
/// named.
pub(super) fn parties(s: &ScenarioFile, entry: &ForgeryEntry) -> Parties {
    let wired = |host: &str| {
        let first = wired_ends(s, host).next();
        let (link, end) = first.expect("forgers and their victims were checked");
        super::hosts::host_wire_address(s, host, link, end)
    };
    let identity = identity(s, &entry.about).unwrap_or(Ipv6Addr::UNSPECIFIED);
    let locator = first_locators(s, &entry.about);
    let about = match locator.first() {
        Some(locator) if s.scheme.is_ilnp() => locator.address(Nid::of(identity)),
        _ => identity,
    };
    Parties {
        forger: wired(&entry.from),
        victim: wired(&entry.to),
        about,
    }
}

/// The node identifier of a host: the interface identifier of its first interface, whichever that is.
pub(super) fn nid(s: &ScenarioFile, host: &str) -> Nid {
    Nid(u64::from_be_bytes(interface_identifier(link_layer(
        number(s, host),
        0,
    ))))
}

/// An address of `prefix` for a host that has one identifier on all its interfaces.
pub(super) fn with_nid(s: &ScenarioFile, host: &str, prefix: Ipv6Addr) -> Ipv6Addr {
    Locator::of(prefix).address(nid(s, host))
}

fn mobile_ipv6(s: &ScenarioFile, host: &HostEntry, seed: u64) -> ShimConfig {
    let route_optimization = s.scheme == Scheme::Mip6Ro;
    let correspondent = CorrespondentConfig {
        route_optimization,
        ..s.mip6.correspondent.clone()
    };
    let Some(mobile) = s.mobile.of(&host.name) else {
        let Some(address) = fixed_address(s, &host.name).filter(|_| route_optimization) else {
            // A correspondent without route optimisation is any IPv6 host.
            return ShimConfig::None;
        };
        return ShimConfig::MobileIpv6Correspondent(Box::new(CorrespondentConfig {
            address,
            ..correspondent
        }));
    };
    ShimConfig::MobileIpv6(Box::new(MobileNodeConfig {
        home_address: home_address(s, mobile),
        home_agent: cell_router_address(home_cell(s, mobile)),
        security: security(&mobile.host, seed),
        route_optimization,
        correspondent,
        ..s.mip6.mobile_node.clone()
    }))
}

fn ilnp_config(s: &ScenarioFile, host: &HostEntry) -> ilnp::Config {
    // whom it has something to do with, in the order of the file
    let partners = s.application.of(&host.name).flat_map(|(_, a)| [&a.from, &a.to]);
    let forgers = s
        .forgery
        .iter()
        .filter(|f| [&f.from, &f.to].contains(&&host.name));
    let partners = partners.chain(forgers.flat_map(|f| [&f.from, &f.to, &f.about]));
    let numbers: BTreeSet<usize> = partners.filter_map(|name| s.host.number(name)).collect();
    let peers = numbers.into_iter().map(|number| &s.host[number]);
    let peers = peers.filter(|h| h.name != host.name && !h.plain);
    let known = peers.filter_map(|peer| {
        let locators = first_locators(s, &peer.name);
        let nid = nid(s, &peer.name);
        (!locators.is_empty()).then_some(ilnp::PeerConfig {
            nid,
            locators,
            name: None,
        })
    });
    ilnp::Config {
        nid: nid(s, &host.name),
        handoff: match s.scheme {
            Scheme::IlnpHard => ilnp::Handoff::Hard,
            Scheme::IlnpMultihomed => ilnp::Handoff::Multihomed,
            _ => ilnp::Handoff::Soft,
        },
        peers: if s.location.is_some() {
            Vec::new()
        } else {
            known.collect()
        },
        ..s.ilnp.clone()
    }
}

/// Where a host is when the run begins: what others know of it who do not ask a directory.
fn first_locators(s: &ScenarioFile, host: &str) -> Vec<Locator> {
    let wired = wired_ends(s, host).map(|(link, _)| Locator::of(wire_address(link, 0)));
    let cell = s.mobile.of(host).and_then(|m| first_cell(s, m));
    wired
        .chain(cell.map(|cell| Locator::of(cell_prefix(cell))))
        .collect()
}

/// The cell of a mobile host's home network.
fn home_cell(s: &ScenarioFile, mobile: &MobileSection) -> usize {
    let named = mobile
        .home
        .as_ref()
        .and_then(|home| s.cell.iter().position(|c| c.name == *home));
    named.or_else(|| first_cell(s, mobile)).unwrap_or_default()
}

/// The cell of the home network of a host, if it moves.
pub(super) fn home_cell_of(s: &ScenarioFile, host: &str) -> Option<usize> {
    s.mobile.of(host).map(|mobile| home_cell(s, mobile))
}

/// The address that the first radio of a mobile host has at home.
fn home_address(s: &ScenarioFile, mobile: &MobileSection) -> Ipv6Addr {
    let wired = wired_ends(s, &mobile.host).count() as u8;
    let first_radio = link_layer(number(s, &mobile.host), wired);
    form_address_with(
        cell_prefix(home_cell(s, mobile)),
        interface_identifier(first_radio),
    )
}

/// The address of a host that does not move.
fn fixed_address(s: &ScenarioFile, host: &str) -> Option<Ipv6Addr> {
    wired_ends(s, host)
        .map(|(link, end)| wire_address(link, end))
        .next()
}

fn number(s: &ScenarioFile, host: &str) -> u32 {
    s.host.number(host).unwrap_or_default() as u32
}

/// What a mobile host and its home agent share.
fn security(host: &str, seed: u64) -> SecurityAssociation {
    let mut secret = [0; 16];
    Stream::new(seed, &format!("{host}/home agent")).fill(&mut secret);
    let key: String = secret.iter().map(|b| format!("{b:02x}")).collect();
    SecurityAssociation::new(SPI, &key)
}
