//! The source address of each packet.
//!
//! A host whose links are networks of their own reaches each address of the peer over one of them: its routing table
//! decides by destination, and the source has to follow, or a link that fails takes the paths of all others with it. A
//! mobile host that moves between links wants the opposite: everything from one address, whatever the destination.
//! The first is [`Association::set_source`], the second [`Association::set_route`], which wins.

use super::association::Association;
use super::path::Destination;
use crate::contract::LocalAddress;
use core::net::Ipv6Addr;
use smallvec::SmallVec;

/// What the host's routing table says of the peer's addresses.
#[derive(Debug, Default)]
pub(super) struct Sources {
    of: SmallVec<[(Ipv6Addr, Ipv6Addr); 2]>,
    /// The route was chosen for all destinations.
    pinned: bool,
}

impl Sources {
    /// The route is for all destinations from now on.
    pub(super) fn pin(&mut self) {
        self.pinned = true;
        self.of.clear();
    }

    /// A destination is gone.
    pub(super) fn forget(&mut self, destination: Ipv6Addr) {
        self.of.retain(|(of, _)| *of != destination);
    }

    /// `index`, unless the routing table is known not to reach it from `source`, but another destination.
    pub(super) fn reached_from(&self, source: Ipv6Addr, destinations: &[Destination], index: usize) -> usize {
        let reached = |d: &Destination| d.in_use && !d.deactivated && self.of(d.address) == Some(source);
        if destinations.get(index).is_some_and(reached) {
            return index;
        }
        destinations.iter().position(reached).unwrap_or(index)
    }

    fn of(&self, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        self.of
            .iter()
            .find(|(of, _)| *of == destination)
            .map(|(_, source)| *source)
    }
}

impl Association {
    /// Sends to `destination` from `source`, as the host's routing table has it; from the route if `None`. It holds
    /// while `source` is an address that may be sent from. Says nothing of other destinations, and nothing at all once
    /// [`set_route`](Self::set_route) was called. Addresses that the peer does not have are ignored.
    pub fn set_source(&mut self, destination: Ipv6Addr, source: Option<Ipv6Addr>) {
        if self.sources.pinned {
            return;
        }
        let Some(index) = self.destination_index(destination) else {
            return;
        };
        self.sources.forget(destination);
        if let Some(source) = source {
            self.sources.of.push((destination, source));
        }
        self.destinations[index].path = self.find_or_make_path(index);
    }

    /// The address that a packet for `destination` is sent from.
    pub(super) fn source_towards(&self, destination: Ipv6Addr) -> LocalAddress {
        let wanted = self.sources.of(destination);
        wanted
            .and_then(|wanted| {
                self.local
                    .iter()
                    .find(|l| l.address.address == wanted && l.is_source())
            })
            .map_or(self.source, |l| l.address)
    }
}
