//! The peer's addresses: their states, error counts, and which of them is used (RFC 9260 sections 5.4, 6.4, 8.1, 8.2).

use super::association::{Association, State};
use super::path::{Destination, DestinationId, MAX_DESTINATIONS, Path, PathId};
use super::{Event, PathState, Profile};
use crate::congestion::{RttEstimator, SctpWindow};
use crate::time::Instant;
use core::net::Ipv6Addr;

impl Association {
    pub(super) fn destination_index(&self, address: Ipv6Addr) -> Option<usize> {
        self.destinations
            .iter()
            .position(|d| d.in_use && d.address == address)
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
            .iter()
            .any(|d| d.in_use && !d.deactivated && d.state != PathState::Unconfirmed)
    }

    pub(super) fn destination_count(&self) -> usize {
        self.destinations.iter().filter(|d| d.in_use).count()
    }

    /// Adds a destination; `None` if there are too many. An address that nobody has vouched for is Unconfirmed
    /// (section 5.4) and gets a heartbeat at once when the association is up. Path verification came with RFC 4460:
    /// for RFC 2960 every address is usable at once.
    pub(super) fn add_destination(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        confirmed: bool,
    ) -> Option<usize> {
        if let Some(index) = self.destination_index(address) {
            return Some(index);
        }
        if self.destination_count() >= MAX_DESTINATIONS {
            return None;
        }
        let usable = confirmed || self.config.profile == Profile::Rfc2960;
        let free = self.destinations.iter().position(|d| !d.in_use);
        let index = free.unwrap_or(self.destinations.len());
        let destination = Destination {
            in_use: true,
            address,
            state: if usable {
                PathState::Active
            } else {
                PathState::Unconfirmed
            },
            error_count: 0,
            encapsulation: self.peer_encapsulation,
            path: PathId::NONE,
            heartbeat_due: None,
            heartbeat: None,
            unreachable_at: None,
            deactivated: false,
            silent: false,
        };
        match free {
            Some(i) => self.destinations[i] = destination,
            None => self.destinations.push(destination),
        }
        self.destinations[index].path = self.find_or_make_path(index);
        if self.is_up() {
            self.start_heartbeats(now, index);
        }
        Some(index)
    }

    /// Removes a destination: what is outstanding there is to be retransmitted elsewhere at once, with no penalty to
    /// another path's window (RFC 5061 section 5.3).
    pub(super) fn remove_destination(&mut self, index: usize) {
        let marked = self.move_outstanding_from(index);
        let paths = &mut self.paths;
        self.outbound.forget_paths(|p| {
            paths
                .get(usize::from(p.0))
                .is_some_and(|p| usize::from(p.destination.0) == index)
        });
        for path in paths.iter_mut().filter(|p| usize::from(p.destination.0) == index) {
            path.in_use = false;
        }
        self.destinations[index].in_use = false;
        self.former_addresses.add(self.destinations[index].address);
        self.local.forget_destination(self.destinations[index].address);
        self.destinations[index].heartbeat = None;
        self.destinations[index].heartbeat_due = None;
        self.leave_primary(index);
        if !self.has_peer_address(self.reply_to) {
            self.reply_to = self.destinations[self.primary].address;
        }
        self.follow_pmtu();
        self.choose_current();
        self.quit_path(marked);
    }

    /// What is outstanding at a destination is to be sent again elsewhere. Gives the number of its chunks.
    pub(super) fn move_outstanding_from(&mut self, index: usize) -> u32 {
        let before = self.outbound.marked;
        let paths = &mut self.paths;
        let marked = self.outbound.mark_where(|sent| {
            paths
                .get(usize::from(sent.path.0))
                .is_some_and(|p| usize::from(p.destination.0) == index)
        });
        self.peer_rwnd = self.peer_rwnd.saturating_add(marked);
        for path in paths.iter_mut().filter(|p| usize::from(p.destination.0) == index) {
            path.clear_flight();
        }
        self.outbound.marked - before
    }

    /// The destination can no longer be the primary: another one is.
    pub(super) fn leave_primary(&mut self, index: usize) {
        if self.primary != index {
            return;
        }
        let next = self
            .usable_destination(Some(index))
            .or_else(|| self.destinations.iter().position(|d| d.in_use && !d.deactivated))
            .or_else(|| self.destinations.iter().position(|d| d.in_use));
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
    pub(super) fn make_primary(&mut self, index: usize) {
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
        let active = |d: &Destination| d.in_use && !d.deactivated && d.state == PathState::Active;
        if active(&self.destinations[self.primary]) {
            self.current = self.primary;
        } else if !active(&self.destinations[self.current])
            && let Some(next) = self.usable_destination(Some(self.current))
        {
            self.current = next;
        } else if !active(&self.destinations[self.current])
            && let Some(next) = self.least_failed()
        {
            self.current = next;
        } else if !self.destinations[self.current].in_use || self.destinations[self.current].deactivated {
            self.current = self.primary;
        }
    }

    /// An active destination other than `other_than`: the primary if it is one, else the next in order.
    pub(super) fn usable_destination(&self, other_than: Option<usize>) -> Option<usize> {
        let usable = |i: usize| {
            let d = &self.destinations[i];
            d.in_use && !d.deactivated && d.state == PathState::Active && Some(i) != other_than
        };
        if usable(self.primary) {
            return Some(self.primary);
        }
        let n = self.destinations.len();
        let start = other_than.map_or(0, |i| i + 1);
        (0..n).map(|k| (start + k) % n).find(|&i| usable(i))
    }

    /// The destination after `index` in order, whatever its state.
    pub(super) fn next_destination(&self, index: usize) -> Option<usize> {
        let n = self.destinations.len();
        let usable = |i: &usize| self.destinations[*i].in_use && !self.destinations[*i].deactivated;
        (1..n).map(|k| (index + k) % n).find(usable)
    }

    /// The path of new data; `None` while it may go nowhere.
    pub(super) fn current_path(&self) -> Option<PathId> {
        let d = &self.destinations[self.current];
        (d.in_use && !d.deactivated && d.state != PathState::Unconfirmed).then_some(d.path)
    }

    /// Something sent to `index` was not answered in time (section 8.1, 8.2). Returns false if the association was
    /// lost with it.
    pub(super) fn count_error(&mut self, index: usize) -> bool {
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
    pub(super) fn clear_errors(&mut self, index: usize) {
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
    pub(super) fn confirm(&mut self, index: usize) {
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
        for path in self
            .paths
            .iter_mut()
            .filter(|p| p.in_use && p.source.address == source)
        {
            path.retired = true;
        }
        self.drop_retired_paths();
    }

    /// Frees the slots of retired paths that are empty.
    pub(super) fn drop_retired_paths(&mut self) {
        for i in 0..self.paths.len() {
            let path = &mut self.paths[i];
            if !(path.in_use && path.retired && path.flightsize == 0) {
                continue;
            }
            let id = PathId(i as u8);
            path.clear_flight();
            path.in_use = false;
            self.outbound.forget_paths(|p| p == id);
            Self::lose_heartbeats(&mut self.destinations, |path| path == id);
        }
        self.follow_pmtu();
    }

    /// The path from the current source of packets for a destination to it.
    pub(super) fn find_or_make_path(&mut self, index: usize) -> PathId {
        let destination = DestinationId(index as u8);
        let source = self.source_towards(self.destinations[index].address);
        if let Some(i) = self
            .paths
            .iter()
            .position(|p| p.in_use && p.source == source && p.destination == destination)
        {
            self.paths[i].retired = false;
            return PathId(i as u8);
        }
        let rtt = RttEstimator::new(self.config.rto_initial, self.config.rto_min, self.config.rto_max);
        let window = SctpWindow::new(self.rules, self.initial_ssthresh);
        let mut path = Path::new(source, destination, rtt, window, self.new_pmtu());
        path.share.t3_by_order = self.multipath.is_some();
        // a slot is used again only when no chunk remembers it
        let free = self.paths.iter().position(|p| !p.in_use);
        let id = match free {
            Some(i) => {
                self.paths[i] = path;
                PathId(i as u8)
            }
            None if self.paths.len() < usize::from(PathId::NONE.0) => {
                self.paths.push(path);
                PathId((self.paths.len() - 1) as u8)
            }
            // hundreds of sources, with something outstanding from each
            None => self.evict_path(path),
        };
        self.follow_pmtu();
        id
    }

    /// Puts `path` in the place of one that no destination uses now: the one with the least outstanding, and that goes
    /// out again elsewhere. There are more slots than destinations, so there is one.
    fn evict_path(&mut self, path: Path) -> PathId {
        let current = |i: usize| self.destinations.iter().any(|d| usize::from(d.path.0) == i);
        let index = (0..self.paths.len())
            .filter(|&i| !current(i))
            .min_by_key(|&i| self.paths[i].flightsize)
            .unwrap_or(0);
        let id = PathId(index as u8);
        let marked = self.outbound.mark_where(|sent| sent.path == id);
        self.peer_rwnd = self.peer_rwnd.saturating_add(marked);
        self.outbound.forget_paths(|p| p == id);
        Self::lose_heartbeats(&mut self.destinations, |path| path == id);
        self.paths[index] = path;
        id
    }

    /// Whether HEARTBEATs may be sent: once the association is up, until a SHUTDOWN or SHUTDOWN ACK was (section 8.3).
    pub(super) fn may_heartbeat(&self) -> bool {
        self.is_up() && !matches!(self.state, State::ShutdownSent | State::ShutdownAckSent)
    }

    pub(super) fn is_up(&self) -> bool {
        self.state != State::Closed && !self.is_in_handshake()
    }
}
