//! The peer's addresses: their states, error counts, and which of them is used (RFC 9260 sections 5.4, 6.4, 8.1, 8.2).

use super::association::Association;
use super::path::{Destination, DestinationId, MAX_DESTINATIONS, Path, PathId};
use super::sender::Cause;
use super::{Event, PathState, Profile};
use crate::congestion::{RttEstimator, SctpWindow};
use crate::contract::LocalAddress;
use crate::time::Instant;
use core::net::Ipv6Addr;
use smallvec::SmallVec;

impl Association {
    pub(super) fn destination_index(&self, address: Ipv6Addr) -> Option<DestinationId> {
        let found = self.destinations.iter().find(|(_, d)| d.address == address);
        found.map(|(id, _)| id)
    }

    /// Whether `address` is an address of the peer.
    pub(super) fn has_peer_address(&self, address: Ipv6Addr) -> bool {
        self.destination_index(address).is_some()
    }

    /// Whether `address` is an address of the peer that has been confirmed (section 5.4).
    pub(super) fn has_confirmed_address(&self, address: Ipv6Addr) -> bool {
        self.destination_index(address)
            .is_some_and(|index| self.destinations[index].state != PathState::Unconfirmed)
    }

    /// Whether any address that the peer wants data at has been confirmed.
    pub(super) fn has_confirmed(&self) -> bool {
        self.destinations
            .values()
            .any(|d| !d.deactivated && d.state != PathState::Unconfirmed)
    }

    pub(super) fn destination_count(&self) -> usize {
        self.destinations.len()
    }

    /// Adds a destination; `None` if there are too many. An address that nobody has vouched for is Unconfirmed
    /// (section 5.4) and gets a heartbeat at once when the association is up. Path verification came with RFC 4460:
    /// for RFC 2960 every address is usable at once.
    pub(super) fn add_destination(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        confirmed: bool,
    ) -> Option<DestinationId> {
        if let Some(index) = self.destination_index(address) {
            return Some(index);
        }
        if self.destination_count() >= MAX_DESTINATIONS {
            return None;
        }
        let usable = confirmed || self.config.profile == Profile::Rfc2960;
        let index = self.destinations.next_id()?;
        let destination = Destination {
            address,
            state: if usable {
                PathState::Active
            } else {
                PathState::Unconfirmed
            },
            error_count: 0,
            encapsulation: self.peer_encapsulation,
            path: self.find_or_make_path(index, address),
            heartbeat_due: None,
            heartbeat: None,
            unreachable_at: None,
            deactivated: false,
            silent: false,
        };
        self.destinations.insert(destination);
        if self.is_up() {
            self.start_heartbeats(now, index);
        }
        Some(index)
    }

    /// Removes a destination: what is outstanding there is to be retransmitted elsewhere at once, with no penalty to
    /// another path's window (RFC 5061 section 5.3).
    pub(super) fn remove_destination(&mut self, index: DestinationId) {
        let marked = self.move_outstanding_from(index);
        for id in self.paths_to(index) {
            self.paths.remove(id);
        }
        let Some(removed) = self.destinations.remove(index) else {
            return;
        };
        self.former_addresses.add(removed.address);
        self.local.forget_destination(removed.address);
        self.leave_primary(index);
        self.receiver
            .leave_address(removed.address, self.destinations[self.primary].address);
        self.follow_pmtu();
        self.choose_current();
        self.quit_path(marked);
    }

    /// The paths to a destination.
    pub(super) fn paths_to(&self, index: DestinationId) -> SmallVec<[PathId; 4]> {
        let paths = self.paths.iter().filter(|(_, p)| p.destination == index);
        paths.map(|(id, _)| id).collect()
    }

    /// What is outstanding at a destination is to be sent again elsewhere. Gives the number of its chunks.
    pub(super) fn move_outstanding_from(&mut self, index: DestinationId) -> u32 {
        let there = self.paths_to(index);
        let left = self.flight.lose(Cause::PathGone, |sent| {
            sent.path().is_some_and(|path| there.contains(&path))
        });
        self.credit.give_back(left.bytes);
        left.chunks
    }

    /// The destination can no longer be the primary: another one is.
    pub(super) fn leave_primary(&mut self, index: DestinationId) {
        if self.primary != index {
            return;
        }
        let first = |of: &mut dyn Iterator<Item = (DestinationId, &Destination)>| of.next().map(|(id, _)| id);
        let next = self
            .usable_destination(Some(index))
            .or_else(|| first(&mut self.destinations.iter().filter(|(_, d)| !d.deactivated)))
            .or_else(|| first(&mut self.destinations.iter()));
        if let Some(next) = next {
            if core::mem::take(&mut self.destinations[next].deactivated) {
                // there is no other any more
                if self.config.hb_interval.is_some() {
                    self.destinations[next].heartbeat_due = Some(Instant::ZERO);
                }
                let address = self.destinations[next].address;
                self.out.counters.activations += 1;
                self.out.tell(Event::PeerAddressActivated(address));
            }
            self.primary = next;
            self.out
                .tell(Event::PrimaryChanged(self.destinations[next].address));
        }
    }

    /// Makes a destination the primary. While it is Unconfirmed no data goes there (section 5.4): it stays where it
    /// is until the heartbeat is answered.
    pub(super) fn make_primary(&mut self, index: DestinationId) {
        if self.primary != index {
            self.primary = index;
            self.out
                .tell(Event::PrimaryChanged(self.destinations[index].address));
        }
        self.choose_current();
    }

    /// Section 6.4: new data goes to the primary if it is active, else to an active alternate, else to one that has
    /// only potentially failed (RFC 7829), else (dormant) it stays where it was.
    pub(super) fn choose_current(&mut self) {
        let active = |d: &Destination| !d.deactivated && d.state == PathState::Active;
        let current = self.destinations.get(self.current);
        if active(&self.destinations[self.primary]) {
            self.current = self.primary;
        } else if !current.is_some_and(active) {
            let alternate = self.usable_destination(Some(self.current));
            if let Some(next) = alternate.or_else(|| self.least_failed()) {
                self.current = next;
            } else if current.is_none_or(|d| d.deactivated) {
                self.current = self.primary;
            }
        }
    }

    /// An active destination other than `other_than`: the primary if it is one, else the next in order.
    pub(super) fn usable_destination(&self, other_than: Option<DestinationId>) -> Option<DestinationId> {
        let usable = |id: DestinationId, d: &Destination| {
            !d.deactivated && d.state == PathState::Active && Some(id) != other_than
        };
        let primary = self.destinations.get(self.primary);
        if primary.is_some_and(|d| usable(self.primary, d)) {
            return Some(self.primary);
        }
        let next = match other_than {
            Some(id) => self.destinations.after(id).find(|&(id, d)| usable(id, d)),
            None => self.destinations.iter().find(|&(id, d)| usable(id, d)),
        };
        next.map(|(id, _)| id)
    }

    /// The destination after `index` in order, whatever its state.
    pub(super) fn next_destination(&self, index: DestinationId) -> Option<DestinationId> {
        let next = self.destinations.after(index).find(|(_, d)| !d.deactivated);
        next.map(|(id, _)| id)
    }

    /// The path of new data; `None` while it may go nowhere.
    pub(super) fn current_path(&self) -> Option<PathId> {
        let d = &self.destinations[self.current];
        (!d.deactivated && d.state != PathState::Unconfirmed).then_some(d.path)
    }

    /// Something sent to `index` was not answered in time (section 8.1, 8.2). Returns false if the association was
    /// lost with it.
    pub(super) fn count_error(&mut self, index: DestinationId) -> bool {
        // section 5.4: heartbeats to unconfirmed addresses do not count against the association, unless the peer has
        // no others: nothing else would ever find out that it is gone
        let counts = self.destinations[index].state != PathState::Unconfirmed || !self.has_confirmed();
        self.destinations[index].error_count += 1;
        self.degrade(index);
        if counts {
            self.association_error_count += 1;
            if self.association_error_count > self.config.association_max_retrans {
                self.give_up_peer();
                return false;
            }
        }
        true
    }

    /// The peer answered what was sent to `index`.
    pub(super) fn clear_errors(&mut self, index: DestinationId) {
        self.association_error_count = 0;
        let d = &mut self.destinations[index];
        d.error_count = 0;
        let former = d.state;
        if matches!(former, PathState::Inactive | PathState::PotentiallyFailed) {
            d.state = PathState::Active;
            if let Some(sent) = &mut d.heartbeat {
                sent.moot = true;
            }
            let address = d.address;
            if former == PathState::PotentiallyFailed {
                self.restart_windows(index);
            }
            self.out.tell(Event::PathStateChanged {
                address,
                state: PathState::Active,
            });
            self.choose_current();
        }
    }

    /// A heartbeat with the right nonce came back from an unconfirmed address (section 5.4).
    pub(super) fn confirm(&mut self, index: DestinationId) {
        let d = &mut self.destinations[index];
        if d.state != PathState::Unconfirmed {
            return;
        }
        d.state = PathState::Active;
        let address = d.address;
        self.out.tell(Event::PeerAddressConfirmed(address));
        self.out.tell(Event::PathStateChanged {
            address,
            state: PathState::Active,
        });
        self.choose_current();
        // it may be the only one: what waits goes out at once
        self.open_burst();
    }

    /// Paths from an address that is no longer ours are kept only while something is outstanding on them.
    pub(super) fn retire_paths_from(&mut self, source: Ipv6Addr) {
        for path in self.paths.values_mut().filter(|p| p.source.address == source) {
            path.retired = true;
        }
        self.drop_retired_paths();
    }

    /// Lets go of retired paths that are empty.
    pub(super) fn drop_retired_paths(&mut self) {
        for id in self.paths.ids() {
            let path = &self.paths[id];
            if path.retired && self.flight.size_on(id) == 0 {
                self.paths.remove(id);
                self.lose_heartbeats(|path| path == id);
            }
        }
        self.follow_pmtu();
    }

    /// A destination is reached over the path from where packets for it leave now.
    pub(super) fn follow_route_to(&mut self, index: DestinationId) {
        let Some(destination) = self.destinations.get(index) else {
            return;
        };
        let path = self.find_or_make_path(index, destination.address);
        self.destinations[index].path = path;
    }

    /// The path from the current source of packets for a destination to it.
    fn find_or_make_path(&mut self, destination: DestinationId, address: Ipv6Addr) -> PathId {
        let source = self.source_towards(address);
        let same = |p: &&mut Path| p.source == source && p.destination == destination;
        let mut paths = self.paths.iter_mut();
        if let Some((id, path)) = paths.find(|(_, p)| same(p)) {
            path.retired = false;
            return id;
        }
        drop(paths);
        let path = self.new_path(source, destination);
        if self.paths.next_id().is_none() {
            // hundreds of sources, with something outstanding from each
            self.evict_path();
        }
        let id = self.paths.insert(path);
        self.follow_pmtu();
        id
    }

    /// A path of which nothing is known.
    pub(super) fn new_path(&self, source: LocalAddress, destination: DestinationId) -> Path {
        let rtt = RttEstimator::new(self.config.rto_initial, self.config.rto_min, self.config.rto_max);
        let window = SctpWindow::new(self.sizes.rules(), self.initial_ssthresh);
        Path::new(source, destination, rtt, window, self.new_pmtu())
    }

    /// Gives up a path that no destination uses now: the one with the least outstanding, and that goes out again elsewhere.
    /// There are more places than destinations, so there is one.
    fn evict_path(&mut self) {
        let current = |id: PathId| self.destinations.values().any(|d| d.path == id);
        let unused = self.paths.iter().filter(|(id, _)| !current(*id));
        let Some((evicted, _)) = unused.min_by_key(|(id, _)| self.flight.size_on(*id)) else {
            return;
        };
        let left = self
            .flight
            .lose(Cause::PathGone, |sent| sent.path() == Some(evicted));
        self.credit.give_back(left.bytes);
        self.lose_heartbeats(|path| path == evicted);
        self.paths.remove(evicted);
    }

    /// Whether HEARTBEATs may be sent: once the association is up, until a SHUTDOWN or SHUTDOWN ACK was (section 8.3).
    pub(super) fn may_heartbeat(&self) -> bool {
        self.is_up() && self.phase.shutdown_chunk().is_none()
    }
}
