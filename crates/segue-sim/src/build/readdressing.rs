//! When prefixes of cells and addresses of hosts change.

use super::{Numbers, advertised, cell_prefix, cell_prefixes, shims};
use crate::network::readdressing::{Readdressing, ReaddressingKind};
use crate::scenario::events::AddressChange;
use crate::scenario::model::ScenarioFile;
use segue_proto::nd::AdvertisedPrefix;
use segue_proto::random::Stream;
use segue_proto::{CellId, Duration, Instant};

/// Valid lifetime of a prefix that is to be used no more, where no end of it is known: as far as an advertisement may shorten
/// that of an address (RFC 4862 section 5.5.3 e).
const STALE_LIFETIME: Duration = Duration::from_secs(7200);

/// All changes, in order.
pub(super) fn changes(
    s: &ScenarioFile,
    numbers: &Numbers<'_>,
    stream: &impl Fn(&str) -> Stream,
) -> Vec<Readdressing> {
    let cells = (0..s.cell.len()).flat_map(|cell| of_cell(s, cell));
    let hosts = s.host.iter().flat_map(|host| {
        // an ILNPv6 session keeps its identifier, whatever addresses are formed with (RFC 6740 section 3.1)
        let changes = host
            .address_changes
            .iter()
            .filter(|_| host.plain || !s.scheme.is_ilnp());
        changes.enumerate().map(|(number, change)| {
            let mut random = stream(&format!("{}/address change {number}", host.name));
            of_host(s, (numbers.of(&host.name), &host.name), change, random.next_u64())
        })
    });
    let mut all: Vec<Readdressing> = cells.chain(hosts).collect();
    all.sort_by_key(|change| change.time);
    all
}

fn of_cell(s: &ScenarioFile, cell: usize) -> Vec<Readdressing> {
    let all = &s.cell[cell].renumberings;
    let mut changes = Vec::new();
    for (renumbering, former) in all.iter().zip(cell_prefixes(s, cell)) {
        changes.push(Readdressing {
            time: Instant::ZERO + renumbering.at,
            kind: ReaddressingKind::Prefix {
                cell: cell as u32,
                former,
                new: renumbering.prefix,
                advertised: advertised_at(s, cell, renumbering.at),
            },
        });
        changes.extend(renumbering.until.map(|until| Readdressing {
            time: Instant::ZERO + until,
            kind: ReaddressingKind::Unrouted {
                cell: cell as u32,
                prefix: former,
                advertised: advertised_at(s, cell, until),
            },
        }));
    }
    changes
}

/// What the router of a cell advertises from some time on: the prefix of the last renumbering, and those before as deprecated
/// (RFC 9096 section 3.5), valid from each advertisement on for as long as they are routed from then on: routers here advertise
/// constant lifetimes (RFC 4861 section 6.2.1).
fn advertised_at(s: &ScenarioFile, cell: usize, now: Duration) -> Vec<AdvertisedPrefix> {
    let all = &s.cell[cell].renumberings;
    let begun = all
        .iter()
        .zip(cell_prefixes(s, cell))
        .filter(|(r, _)| r.at <= now);
    let stale = begun.clone().map(|(renumbering, former)| AdvertisedPrefix {
        valid_lifetime: Some(match renumbering.until {
            Some(until) => until.saturating_sub(now),
            None => STALE_LIFETIME,
        }),
        preferred_lifetime: Some(Duration::ZERO),
        ..advertised(s, former)
    });
    let last = begun.clone().last().map_or(cell_prefix(cell), |(r, _)| r.prefix);
    core::iter::once(advertised(s, last)).chain(stale).collect()
}

fn of_host(
    s: &ScenarioFile,
    (node, name): (u32, &str),
    change: &AddressChange,
    identifier: u64,
) -> Readdressing {
    let cell = |name: &String| s.cell.iter().position(|c| c.name == *name);
    let number = |cell: usize| CellId(cell as u16);
    Readdressing {
        time: Instant::ZERO + change.at,
        kind: ReaddressingKind::Identifier {
            node,
            cell: change.network.as_ref().and_then(cell).map(number),
            // a home address is no lease: it is who the host is (RFC 6275 section 4.1)
            home: s
                .scheme
                .is_mip6()
                .then(|| shims::home_cell_of(s, name))
                .flatten()
                .map(number),
            identifier: identifier.to_be_bytes(),
            keep: change.keep,
        },
    }
}
