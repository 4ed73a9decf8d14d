//! The source address of each packet.
//!
//! A host whose links are networks of their own reaches each address of the peer over one of them: its routing table
//! decides by destination, and the source has to follow, or a link that fails takes the paths of all others with it. A
//! mobile host that moves between links wants the opposite: everything from one address, whatever the destination.
//! The first is [`Association::set_source`](super::super::Association::set_source), the second
//! [`Association::set_route`](super::super::Association::set_route), which wins.

use core::net::Ipv6Addr;
use smallvec::SmallVec;

/// What the host's routing table says of the peer's addresses.
#[derive(Clone, Debug)]
pub(super) enum Sources {
    /// Destinations, and the addresses that they are reached from; the others are reached from the route.
    ByDestination(SmallVec<[(Ipv6Addr, Ipv6Addr); 2]>),
    /// The route was chosen for all destinations, and for good.
    Pinned,
}

impl Default for Sources {
    fn default() -> Self {
        Self::ByDestination(SmallVec::new())
    }
}

impl Sources {
    /// Sends to `destination` from `source`, or from the route if `None`. Gives whether that is heeded.
    pub(super) fn set(&mut self, destination: Ipv6Addr, source: Option<Ipv6Addr>) -> bool {
        let Self::ByDestination(of) = self else {
            return false;
        };
        of.retain(|(of, _)| *of != destination);
        of.extend(source.map(|source| (destination, source)));
        true
    }

    /// The address that `destination` is reached from, if the routing table said so.
    pub(super) fn of(&self, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        let Self::ByDestination(of) = self else {
            return None;
        };
        of.iter()
            .find(|(of, _)| *of == destination)
            .map(|(_, source)| *source)
    }
}
