//! The other end: its addresses, and the paths to them.
//!
//! A [`Destination`] is an address of the peer, with its state and its errors; a [`Path`] is a pair of an address of ours and
//! a destination, with round trips, window and PMTU. [`Peer`] keeps both, and what concerns all of them:
//!
//! | rule | file |
//! |---|---|
//! | which destination is used (RFC 9260 section 6.4) | `choice` |
//! | errors and answers (section 8.1, 8.2; RFC 7829) | `errors` |
//! | heartbeats (sections 5.4 and 8.3) | `heartbeat`, `heartbeat_limit` |
//! | PMTU, and what follows from it (section 7.3, RFC 8899) | `mtu`, `pmtu`, `sizes` |
//! | what happens on a path (section 7) | `paths`, `path` |
//! | a peer that asks for another primary path (RFC 5061 section 5.4) | `silent` |
//! | UDP ports (RFC 6951) | `encapsulation` |

mod choice;
mod destination;
mod encapsulation;
mod errors;
mod former_addresses;
mod heartbeat;
mod heartbeat_limit;
mod mtu;
mod path;
mod paths;
mod pmtu;
mod probing;
mod silent;
mod sizes;
#[cfg(test)]
mod tests;

pub(in crate::sctp) use destination::Destination;
pub(in crate::sctp) use former_addresses::MOST_NOT_TAKEN;
pub(in crate::sctp) use path::Path;
pub(in crate::sctp) use probing::{HeartbeatAck, Probing};
pub(in crate::sctp) use sizes::PacketSizes;

use super::ids::{DestinationId, Destinations, MAX_DESTINATIONS, PathId, Paths};
use super::local::LocalAddresses;
use super::outbox::Outbox;
use super::slots::Slots;
use super::{Config, PathSnapshot, Profile};
use core::net::Ipv6Addr;
use core::ops::Index;
use former_addresses::FormerAddresses;
use heartbeat_limit::HeartbeatLimit;
use smallvec::SmallVec;

/// The peer's addresses and the paths to them.
#[derive(Debug)]
pub(in crate::sctp) struct Peer {
    destinations: Slots<Destinations, Destination>,
    paths: Slots<Paths, Path>,
    primary: DestinationId,
    /// Destination that new data goes to: the primary while it is usable.
    current: DestinationId,
    /// Errors in a row, wherever (section 8.1).
    error_count: u32,
    /// How long packets are on these paths.
    sizes: PacketSizes,
    /// ssthresh of a path that begins: the peer's window as its INIT or INIT ACK advertised it.
    initial_ssthresh: u32,
    /// UDP port that the peer's last packet came from: new destinations start with it.
    encapsulation: Option<u16>,
    former_addresses: FormerAddresses,
    /// HEARTBEATs that may still go to addresses that nobody has answered from.
    heartbeat_limit: HeartbeatLimit,
    /// What an endpoint lists of the peer is as it was when it was listed.
    is_as_listed: bool,
}

impl Peer {
    /// One without an address; its first is to be [added](Self::add) before anything else, and is the primary.
    pub(in crate::sctp) fn new(config: &Config) -> Self {
        let destinations = Slots::default();
        // the name that the peer's first address will have
        let first = destinations.next_id().expect("there are none yet");
        Self {
            destinations,
            paths: Slots::default(),
            primary: first,
            current: first,
            error_count: 0,
            sizes: PacketSizes::new(config),
            initial_ssthresh: 0,
            encapsulation: config.udp_encapsulation.map(|udp| udp.remote_port),
            former_addresses: FormerAddresses::default(),
            heartbeat_limit: HeartbeatLimit::default(),
            is_as_listed: false,
        }
    }

    /// Whether all that an endpoint lists of the peer is as it was at [`note_listed`](Self::note_listed): its addresses, and
    /// which of them are confirmed, where else it may send from, whether some path carries less than the interfaces do; and
    /// the tags, whose changes [`note_other_tag`](Self::note_other_tag) tells of.
    #[inline]
    pub(in crate::sctp) fn is_as_listed(&self) -> bool {
        self.is_as_listed
    }

    /// An endpoint has listed these.
    pub(in crate::sctp) fn note_listed(&mut self) {
        self.is_as_listed = true;
    }

    /// The peer is known by another tag.
    pub(in crate::sctp) fn note_other_tag(&mut self) {
        self.is_as_listed = false;
    }

    /// The destination with this address.
    pub(in crate::sctp) fn find(&self, address: Ipv6Addr) -> Option<DestinationId> {
        let mut all = self.destinations.iter();
        let found = all.find(|(_, d)| d.address() == address);
        found.map(|(id, _)| id)
    }

    /// Whether `address` is an address of the peer.
    pub(in crate::sctp) fn has(&self, address: Ipv6Addr) -> bool {
        self.find(address).is_some()
    }

    /// Whether `address` is an address of the peer that has been confirmed (section 5.4).
    pub(in crate::sctp) fn has_confirmed_address(&self, address: Ipv6Addr) -> bool {
        let known = self.find(address);
        known.is_some_and(|index| self.destinations[index].is_confirmed())
    }

    /// Whether any address that the peer wants data at has been confirmed.
    pub(in crate::sctp) fn has_confirmed(&self) -> bool {
        let mut all = self.destinations.values();
        all.any(|d| !d.is_deactivated() && d.is_confirmed())
    }

    /// How many addresses it has.
    pub(in crate::sctp) fn len(&self) -> usize {
        self.destinations.len()
    }

    /// How much packets hold on these paths.
    #[inline]
    pub(in crate::sctp) fn sizes(&self) -> &PacketSizes {
        &self.sizes
    }

    pub(in crate::sctp) fn get(&self, id: DestinationId) -> Option<&Destination> {
        self.destinations.get(id)
    }

    /// Names of all destinations, in order.
    pub(in crate::sctp) fn ids(&self) -> SmallVec<[DestinationId; 4]> {
        self.destinations.ids()
    }

    /// All destinations, in order.
    pub(in crate::sctp) fn destinations(
        &self,
    ) -> impl DoubleEndedIterator<Item = (DestinationId, &Destination)> + Clone {
        self.destinations.iter()
    }

    #[inline]
    pub(in crate::sctp) fn path(&self, id: PathId) -> Option<&Path> {
        self.paths.get(id)
    }

    /// All paths, in order.
    pub(in crate::sctp) fn paths(&self) -> impl DoubleEndedIterator<Item = (PathId, &Path)> + Clone {
        self.paths.iter()
    }

    /// A path as it is now, with what is under way on it.
    pub(in crate::sctp) fn snapshot(
        &self,
        id: PathId,
        flightsize: u32,
        local: &LocalAddresses,
    ) -> PathSnapshot {
        let path = &self.paths[id];
        let destination = &self.destinations[path.destination()];
        let address = destination.address();
        let is_primary = path.destination() == self.primary;
        PathSnapshot {
            source: path.source().address,
            destination: address,
            primary: is_primary && path.source() == local.source_towards(address),
            state: destination.state(),
            cwnd: path.cwnd(),
            ssthresh: path.ssthresh(),
            flightsize,
            srtt: path.srtt(),
            rto: path.rto(),
            error_count: destination.error_count(),
        }
    }

    /// The paths to a destination.
    pub(in crate::sctp) fn paths_to(&self, index: DestinationId) -> SmallVec<[PathId; 4]> {
        let paths = self.paths.iter().filter(|(_, p)| p.destination() == index);
        paths.map(|(id, _)| id).collect()
    }

    /// The paths from an address of ours.
    pub(in crate::sctp) fn paths_from(&self, source: Ipv6Addr) -> SmallVec<[PathId; 4]> {
        let paths = self.paths.iter().filter(|(_, p)| p.source().address == source);
        paths.map(|(id, _)| id).collect()
    }

    /// Addresses that it may send from although they are not its.
    pub(in crate::sctp) fn former_addresses(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.former_addresses.iter()
    }

    /// It named an address that it cannot have here.
    pub(in crate::sctp) fn note_not_taken(&mut self, address: Ipv6Addr) {
        self.is_as_listed = false;
        self.former_addresses.add(address);
    }

    /// Adds a destination; `None` if there are too many. An address that nobody has vouched for is Unconfirmed (section
    /// 5.4). Path verification came with RFC 4460: for RFC 2960 every address is usable at once. There must be room for a path
    /// more ([`path_to_evict`](Self::path_to_evict)).
    pub(in crate::sctp) fn add(
        &mut self,
        address: Ipv6Addr,
        confirmed: bool,
        config: &Config,
        local: &LocalAddresses,
    ) -> Option<DestinationId> {
        if self.len() >= MAX_DESTINATIONS {
            return None;
        }
        let usable = confirmed || config.profile == Profile::Rfc2960;
        let index = self.destinations.next_id()?;
        self.is_as_listed = false;
        let path = self.find_or_make_path(index, address, config, local);
        let destination = Destination::new(address, usable, self.encapsulation, path);
        Some(self.destinations.insert(destination))
    }

    /// Removes a destination and the paths to it; if need be another one is primary then. Returns its address.
    pub(in crate::sctp) fn remove(
        &mut self,
        index: DestinationId,
        config: &Config,
        out: &mut Outbox,
    ) -> Option<Ipv6Addr> {
        for id in self.paths_to(index) {
            self.paths.remove(id);
        }
        let removed = self.destinations.remove(index)?.address();
        self.is_as_listed = false;
        self.former_addresses.add(removed);
        self.leave(index, config, out);
        self.follow_pmtu(config);
        Some(removed)
    }

    /// What must hold.
    ///
    /// # Errors
    /// What does not, in words.
    pub(in crate::sctp) fn check_invariants(&self) -> Result<(), String> {
        if self.len() > MAX_DESTINATIONS {
            return Err(format!("{} destinations", self.len()));
        }
        if !self.destinations.contains(self.primary) {
            return Err("the primary path's destination is gone".into());
        }
        if !self.destinations.contains(self.current) {
            return Err("the current destination is gone".into());
        }
        match self.paths.iter().find(|(_, path)| path.cwnd() == 0) {
            Some((id, _)) => Err(format!("path {id:?}: cwnd is 0")),
            None => Ok(()),
        }
    }
}

impl Index<DestinationId> for Peer {
    type Output = Destination;

    #[inline]
    #[track_caller]
    fn index(&self, id: DestinationId) -> &Destination {
        &self.destinations[id]
    }
}

impl Index<PathId> for Peer {
    type Output = Path;

    #[inline]
    #[track_caller]
    fn index(&self, id: PathId) -> &Path {
        &self.paths[id]
    }
}
