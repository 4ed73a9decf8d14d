//! The hosts that change their networks, and the prefixes of those.

use super::{Numbers, cell_prefixes, moves, wire_address};
use crate::carried;
use crate::network::routes::prefix_of;
use crate::recorder::networks::Networks;
use crate::scenario::model::{HostEntry, ScenarioFile};
use crate::scenario::schemes::Scheme;
use segue_proto::app::Transport;

/// Cells by their numbers, and behind them wires, as hosts call them.
pub(super) fn all(s: &ScenarioFile, numbers: &Numbers<'_>, kernels: bool) -> Networks {
    let moving = s.host.iter().filter(|host| moves(s, &host.name));
    let hosts = moving.map(|host| (numbers.of(&host.name), tells(s, host, kernels)));
    let of_cells =
        (0..s.cell.len()).flat_map(|cell| cell_prefixes(s, cell).map(move |prefix| (prefix, cell)));
    let of_wires = (0..s.link.len()).map(|link| (wire_address(link, 0), s.cell.len() + link));
    let prefixes = of_cells.chain(of_wires);
    Networks::new(
        s.metrics.minimum_time_of_stay,
        hosts,
        prefixes.map(|(prefix, network)| (prefix_of(prefix), network as u32)),
    )
}

/// Whether others are told by a host where it is: its handovers are then complete when they know.
fn tells(s: &ScenarioFile, host: &HostEntry, kernels: bool) -> bool {
    let over_sctp = || {
        s.application
            .of(&host.name)
            .any(|(_, a)| a.transport == Transport::Sctp)
    };
    let is_carried = || kernels && carried::role(s, &host.name).is_some();
    match s.scheme {
        scheme if scheme.has_shim() => !host.plain,
        // addresses are added, and nobody is asked to use them
        Scheme::Single | Scheme::Failover => false,
        scheme => scheme.changes_addresses() && (over_sctp() || is_carried()),
    }
}
