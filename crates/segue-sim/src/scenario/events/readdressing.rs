//! Prefixes of cells and addresses of hosts that are replaced.

use super::super::model::{AddressMethod, RouterEntry, ScenarioFile};
use super::super::validate::{Problem, problem, written};
use super::places::Place;
use super::{EventEntry, EventKind};
use core::net::Ipv6Addr;
use schemars::JsonSchema;
use segue_proto::Duration;
use segue_wire::ilnp::{Locator, Nid};
use serde::{Deserialize, Serialize};

/// The prefix of a cell is replaced by another (RFC 4192): its router advertises the new one, and the old one as deprecated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Renumbering {
    /// When.
    pub at: Duration,
    /// The prefix that it has from then on, of 64 bits.
    pub prefix: Ipv6Addr,
    /// Until when the one before is routed; to the end if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
}

/// The addresses of a host are replaced by others of the same prefixes, as temporary ones are (RFC 8981).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddressChange {
    /// When.
    pub at: Duration,
    /// The cell in which it has them; wherever it is, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// How long those before are valid, deprecated; as long as they would be if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Duration>,
}

/// The first of the prefixes that cells get where the event names none.
const FIRST_PREFIX: u16 = 0x8000;

/// Renumberings of a cell: an advertisement has each of its prefixes, and a host so many addresses.
const MOST_RENUMBERINGS: usize = 8;

/// Changes of the addresses of a host that leave the former ones valid: it has room for so many, beside those of renumberings.
const MOST_ADDRESS_CHANGES: usize = 6;

/// Writes down that a prefix or an address is replaced.
pub(super) fn write(
    s: &mut ScenarioFile,
    place: Place,
    event: &EventEntry,
    key: &impl Fn(&str) -> String,
) -> Result<(), Problem> {
    match place {
        Place::Cell(cell) => renumber(s, cell, event, key),
        Place::Host(host) => {
            let change = AddressChange {
                at: event.at,
                network: event.network.clone(),
                keep: event.lasts,
            };
            refuse(key("network"), no_network(s, &change))?;
            s.host[host].address_changes.push(change);
            refuse(key("on"), keeps_addresses(s, host))
        }
        Place::Link(_) | Place::Router(_) => unreachable!("neither a cell nor a host"),
    }
}

fn renumber(
    s: &mut ScenarioFile,
    cell: usize,
    event: &EventEntry,
    key: &impl Fn(&str) -> String,
) -> Result<(), Problem> {
    refuse(key("on"), keeps_prefix(s, cell))?;
    if let Some(prefix) = event.prefix {
        refuse(key("prefix"), unfit(s, prefix))?;
    }
    let renumbering = Renumbering {
        at: event.at,
        prefix: event.prefix.unwrap_or_else(|| free_prefix(s)),
        until: event.lasts.map(|lasts| event.at + lasts),
    };
    let all = &mut s.cell[cell].renumberings;
    all.push(renumbering);
    all.sort_by_key(|r| r.at);
    refuse(key("at"), out_of_order(all))
}

fn refuse(key: String, expected: Option<String>) -> Result<(), Problem> {
    expected.map_or(Ok(()), |expected| problem(key, expected))
}

/// A prefix that nobody has.
fn free_prefix(s: &ScenarioFile) -> Ipv6Addr {
    let prefix = |number| Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0);
    let own = |prefix| {
        s.cell
            .iter()
            .flat_map(|c| &c.renumberings)
            .any(|r| r.prefix == prefix)
    };
    let mut all = (FIRST_PREFIX..).map(prefix);
    let free = all.find(|p| !own(*p) && !crate::build::is_taken(s, *p));
    free.expect("there are fewer networks than prefixes")
}

/// What is wrong with renumberings and changes of addresses that are written as such.
pub(in crate::scenario) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    let late = |at: Duration| {
        (at >= s.duration).then(|| format!("expected a time before `duration`, {}", written(s.duration)))
    };
    for (i, cell) in s
        .cell
        .iter()
        .enumerate()
        .filter(|(_, c)| !c.renumberings.is_empty())
    {
        let list = format!("cell[{i}].renumberings");
        refuse(list.clone(), keeps_prefix(s, i))?;
        refuse(list.clone(), out_of_order(&cell.renumberings))?;
        for (n, renumbering) in cell.renumberings.iter().enumerate() {
            let key = |k: &str| format!("{list}[{n}].{k}");
            refuse(key("at"), late(renumbering.at))?;
            if renumbering.until.is_some_and(|until| until < renumbering.at) {
                return problem(key("until"), "expected no time before `at`");
            }
            let mut others = s.clone();
            others.cell[i].renumberings.remove(n);
            refuse(key("prefix"), unfit(&others, renumbering.prefix))?;
        }
    }
    for (i, host) in s.host.iter().enumerate() {
        for (n, change) in host.address_changes.iter().enumerate() {
            let key = |k: &str| format!("host[{i}].address_changes[{n}].{k}");
            refuse(key("at"), late(change.at))?;
            refuse(key("network"), no_network(s, change))?;
            refuse(format!("host[{i}].address_changes"), keeps_addresses(s, i))?;
        }
    }
    Ok(())
}

/// Why a prefix cannot be a cell's.
fn unfit(s: &ScenarioFile, prefix: Ipv6Addr) -> Option<String> {
    let locator = Locator::of(prefix);
    if locator.address(Nid(0)) != prefix || !locator.is_routable() {
        return Some(format!(
            "`{prefix}`: expected a prefix of 64 bits such as \"2001:db8:100::\""
        ));
    }
    let outside = s.router.iter().any(|r| r.rewrites_to == Some(prefix));
    (outside || crate::build::is_taken(s, prefix))
        .then(|| format!("{prefix} is taken: expected a prefix of its own"))
}

fn out_of_order(all: &[Renumbering]) -> Option<String> {
    if all.len() > MOST_RENUMBERINGS {
        return Some(format!("expected at most {MOST_RENUMBERINGS} of a cell"));
    }
    let in_order = all.windows(2).all(|pair| pair[0].at < pair[1].at);
    (!in_order).then(|| "expected renumberings of a cell one after the other".to_owned())
}

/// Why the prefix of a cell cannot be replaced.
fn keeps_prefix(s: &ScenarioFile, cell: usize) -> Option<String> {
    let cell = &s.cell[cell];
    let is_border = |r: &RouterEntry| r.name == cell.router && r.rewrites_to.is_some();
    if s.router.iter().any(is_border) {
        return Some(format!(
            "cell `{}` is a site whose locator is rewritten: expected another",
            cell.name
        ));
    }
    leases(s)
}

/// Why the addresses of a host cannot be replaced.
fn keeps_addresses(s: &ScenarioFile, host: usize) -> Option<String> {
    let host = &s.host[host];
    if host.radios == 0 {
        return Some(format!(
            "`{}` has no radio, and its addresses stay: expected a host that gets them in a [[cell]]",
            host.name
        ));
    }
    let lasting = host
        .address_changes
        .iter()
        .filter(|c| c.keep.is_none_or(|keep| !keep.is_zero()));
    if lasting.count() > MOST_ADDRESS_CHANGES {
        return Some(format!(
            "expected at most {MOST_ADDRESS_CHANGES} after which the former addresses stay valid, others with for = \"0 s\""
        ));
    }
    leases(s)
}

/// A client does not ask for another address before half of its lease is over (RFC 8415 section 18.2.4), and what it is told
/// then is not modelled.
fn leases(s: &ScenarioFile) -> Option<String> {
    let leased = s.address.method == AddressMethod::Dhcpv6;
    leased.then(|| {
        "addresses are leased, and leases last: expected address.method = \"slaac\" or \"fixed\"".to_owned()
    })
}

fn no_network(s: &ScenarioFile, change: &AddressChange) -> Option<String> {
    let network = change.network.as_ref()?;
    let unknown = s.cell.iter().all(|c| c.name != *network);
    unknown.then(|| format!("`{network}`: expected the name of a [[cell]]"))
}

/// Which keys of an event its kind does not take, of those that are about addresses.
pub(super) fn keys(event: &EventEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    let unread = [
        (
            "prefix",
            event.prefix.is_some() && event.kind != EventKind::Renumber,
        ),
        (
            "network",
            event.network.is_some() && event.kind != EventKind::AddressChange,
        ),
    ];
    match unread.into_iter().find(|(_, unread)| *unread) {
        Some((name, _)) => problem(
            key(name),
            "has no effect with this kind: expected it to be left out",
        ),
        None => Ok(()),
    }
}
