//! Prefixes of cells and addresses of hosts that change at times that the scenario gives.

use super::routes::prefix_of;
use super::{Network, Node};
use crate::scheduler::Event;
use core::net::Ipv6Addr;
use segue_proto::nd::AdvertisedPrefix;
use segue_proto::{CellId, Duration, Instant, InterfaceId};

/// What changes, and when.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Readdressing {
    pub time: Instant,
    pub kind: ReaddressingKind,
}

/// What changes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ReaddressingKind {
    /// A prefix is routed to a cell beside those that are, and its router advertises these.
    Prefix {
        cell: u32,
        former: Ipv6Addr,
        new: Ipv6Addr,
        advertised: Vec<AdvertisedPrefix>,
    },
    /// A prefix is no longer routed, and the router of the cell advertises these.
    Unrouted {
        cell: u32,
        prefix: Ipv6Addr,
        advertised: Vec<AdvertisedPrefix>,
    },
    /// A host has another interface identifier: in this cell, or in all that it is in, but for its home. What it had is valid
    /// for so long.
    Identifier {
        node: u32,
        cell: Option<CellId>,
        home: Option<CellId>,
        identifier: [u8; 8],
        keep: Option<Duration>,
    },
}

impl Network {
    /// The first change is scheduled; each schedules the next.
    pub fn start_readdressing(&mut self) {
        if let Some(first) = self.readdressing.first() {
            self.scheduler.at(first.time, Event::Readdressing(0));
        }
    }

    /// The next change is due.
    pub fn readdressing_due(&mut self, number: usize) {
        let change = self.readdressing[number].kind.clone();
        if let Some(next) = self.readdressing.get(number + 1) {
            self.scheduler
                .at(next.time, Event::Readdressing(number as u32 + 1));
        }
        match change {
            ReaddressingKind::Prefix {
                cell,
                former,
                new,
                advertised,
            } => {
                for node in &mut self.nodes {
                    if let Node::Router(router) = node {
                        router.routes.add_beside(former, new);
                    }
                }
                let node = self.cells[cell as usize].router;
                if let Node::Router(router) = &mut self.nodes[node as usize] {
                    router.addresses.push(Ipv6Addr::from_bits(new.to_bits() | 1));
                }
                self.advertise(node, advertised);
            }
            ReaddressingKind::Unrouted {
                cell,
                prefix,
                advertised,
            } => {
                for node in &mut self.nodes {
                    if let Node::Router(router) = node {
                        router.routes.remove(prefix);
                        router.addresses.retain(|a| prefix_of(*a) != prefix_of(prefix));
                    }
                }
                let node = self.cells[cell as usize].router;
                self.advertise(node, advertised);
            }
            ReaddressingKind::Identifier {
                node,
                cell,
                home,
                identifier,
                keep,
            } => {
                let is_there =
                    |at: Option<CellId>| at.is_some() && at != home && (cell.is_none() || at == cell);
                let own: Vec<InterfaceId> = self
                    .attachments
                    .iter()
                    .filter(|a| a.node == node && is_there(a.layer2.attached_cell()))
                    .map(|a| a.interface)
                    .collect();
                for interface in own {
                    self.replace_addresses(node, interface, identifier, keep);
                }
            }
        }
    }
}
