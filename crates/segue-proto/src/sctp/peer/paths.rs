//! Paths begin, are taken, and end; and what happens on them.

use super::{Path, Peer};
use crate::congestion::{Acked, Gain, Loss};
use crate::contract::LocalAddress;
use crate::sctp::Config;
use crate::sctp::ids::{DestinationId, MAX_DESTINATIONS, PathId};
use crate::sctp::local::LocalAddresses;
use crate::sctp::slots::Slots;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use smallvec::SmallVec;

/// They begin and end.
impl Peer {
    /// The path from the current source of packets for a destination to it.
    pub(super) fn find_or_make_path(
        &mut self,
        destination: DestinationId,
        address: Ipv6Addr,
        config: &Config,
        local: &LocalAddresses,
    ) -> PathId {
        let source = local.source_towards(address);
        if let Some(known) = self.path_between(source, destination) {
            self.paths[known].take_back();
            return known;
        }
        let id = self.paths.insert(self.new_path(source, destination, config));
        self.follow_pmtu(config);
        id
    }

    fn path_between(&self, source: LocalAddress, destination: DestinationId) -> Option<PathId> {
        let same = |p: &Path| p.source() == source && p.destination() == destination;
        let found = self.paths.iter().find(|(_, p)| same(p));
        found.map(|(id, _)| id)
    }

    /// A path of which nothing is known.
    fn new_path(&self, source: LocalAddress, destination: DestinationId, config: &Config) -> Path {
        Path::new(source, destination, config, &self.sizes, self.initial_ssthresh)
    }

    /// Where there is no room for a path more, as after hundreds of sources with something outstanding from each: one that no
    /// destination uses now, with the least outstanding, which `in_flight` tells. There are more places than destinations, so
    /// there is one.
    pub(in crate::sctp) fn path_to_evict(&self, in_flight: impl Fn(PathId) -> u32) -> Option<PathId> {
        if self.paths.next_id().is_some() {
            return None;
        }
        let current = |id: PathId| self.destinations.values().any(|d| d.path() == id);
        let unused = self.paths.iter().filter(|(id, _)| !current(*id));
        unused.min_by_key(|(id, _)| in_flight(*id)).map(|(id, _)| id)
    }

    /// A path is given up.
    pub(in crate::sctp) fn evict(&mut self, path: PathId) {
        self.lose_heartbeats(|lost| lost == path);
        self.paths.remove(path);
    }

    /// A destination is reached over the path from where packets for it leave now. There must be room for a path more.
    pub(in crate::sctp) fn follow_route_to(
        &mut self,
        index: DestinationId,
        config: &Config,
        local: &LocalAddresses,
    ) {
        if let Some(destination) = self.destinations.get(index) {
            let path = self.find_or_make_path(index, destination.address(), config, local);
            self.destinations[index].follow(path);
        }
    }

    /// Whether a destination is to be reached from where no path to it begins.
    pub(in crate::sctp) fn needs_path_to(&self, index: DestinationId, local: &LocalAddresses) -> bool {
        self.destinations.get(index).is_some_and(|destination| {
            let source = local.source_towards(destination.address());
            self.path_between(source, index).is_none()
        })
    }

    /// Paths from an address that is no longer ours are kept only while something is outstanding on them.
    pub(in crate::sctp) fn retire_paths_from(&mut self, source: Ipv6Addr) {
        let from_there = |p: &&mut Path| p.source().address == source;
        for path in self.paths.values_mut().filter(from_there) {
            path.retire();
        }
    }

    /// Whether there are paths that are to go.
    #[inline]
    pub(in crate::sctp) fn has_retired_paths(&self) -> bool {
        self.paths.values().any(Path::is_retired)
    }

    /// Lets go of retired paths that are empty, as `in_flight` tells; returns which.
    pub(in crate::sctp) fn drop_retired_paths(
        &mut self,
        config: &Config,
        in_flight: impl Fn(PathId) -> u32,
    ) -> SmallVec<[PathId; 4]> {
        let empty = |(id, path): &(PathId, &Path)| path.is_retired() && in_flight(*id) == 0;
        let dropped: SmallVec<[PathId; 4]> = self.paths.iter().filter(empty).map(|(id, _)| id).collect();
        for &id in &dropped {
            self.paths.remove(id);
        }
        self.lose_heartbeats(|path| dropped.contains(&path));
        self.follow_pmtu(config);
        dropped
    }

    /// An address that was gone is back as `source`, perhaps on another interface and in another network: in the place of each
    /// path from it that is empty, as `in_flight` tells, there is another one, of which nothing is known. Returns those that
    /// are gone.
    pub(in crate::sctp) fn renew_paths_from(
        &mut self,
        former: LocalAddress,
        source: LocalAddress,
        config: &Config,
        in_flight: impl Fn(PathId) -> u32,
    ) -> SmallVec<[PathId; 4]> {
        let mut gone = SmallVec::new();
        for id in self.paths_from(former.address) {
            let path = &self.paths[id];
            if path.source() != former || in_flight(id) > 0 {
                continue;
            }
            let another = self.new_path(source, path.destination(), config);
            let Some(another) = self.paths.replace(id, another) else {
                continue;
            };
            gone.push(id);
            for destination in self.destinations.values_mut().filter(|d| d.path() == id) {
                destination.follow(another);
            }
        }
        self.lose_heartbeats(|path| gone.contains(&path));
        self.follow_pmtu(config);
        gone
    }

    /// Whether there has never been another path than the first.
    pub(in crate::sctp) fn has_had_one_path(&self) -> bool {
        self.paths.has_had_one()
    }

    /// The peer's window as its INIT or INIT ACK advertised it: windows begin.
    pub(in crate::sctp) fn begin_windows(&mut self, rwnd: u32) {
        self.initial_ssthresh = rwnd;
        let rules = self.sizes.rules();
        for path in self.paths.values_mut() {
            path.begin_window(rules, rwnd);
        }
    }
}

/// What happens on one of them; of a path that is gone nothing does.
impl Peer {
    /// RTO of a path.
    #[inline]
    pub(in crate::sctp) fn rto(&self, path: PathId) -> Duration {
        self.paths[path].rto()
    }

    /// RTO of the path to a destination.
    pub(in crate::sctp) fn rto_to(&self, index: DestinationId, config: &Config) -> Duration {
        let path = self.destinations.get(index).map(super::Destination::path);
        let path = path.and_then(|path| self.paths.get(path));
        path.map_or(config.rto_initial, Path::rto)
    }

    /// A chunk is sent on it again.
    pub(in crate::sctp) fn note_sent_again(&mut self, now: Instant, path: PathId) {
        self.paths[path].note_sent_again(now);
    }

    /// A new chunk is sent on it.
    #[inline]
    pub(in crate::sctp) fn note_sent(&mut self, now: Instant, path: PathId) {
        self.paths[path].note_sent(now);
    }

    /// Something sent on it was acknowledged.
    #[inline]
    pub(in crate::sctp) fn note_arrival(&mut self, path: PathId) {
        self.on(path, Path::note_arrival);
    }

    /// Data took so long there and back.
    pub(in crate::sctp) fn measure_data(&mut self, path: PathId, round_trip: Duration) {
        self.on(path, |p| p.measure_data(round_trip));
    }

    /// A heartbeat took so long there and back.
    pub(super) fn measure_heartbeat(&mut self, path: PathId, round_trip: Duration) {
        self.on(path, |p| p.measure_heartbeat(round_trip));
    }

    /// Something sent on it was not answered in time.
    pub(in crate::sctp) fn back_off(&mut self, path: PathId) {
        self.on(path, Path::back_off);
    }

    /// The handshake was not answered in time.
    pub(in crate::sctp) fn back_off_everywhere(&mut self) {
        self.paths.values_mut().for_each(Path::back_off);
    }

    /// Its window opens.
    #[inline]
    pub(in crate::sctp) fn on_ack(&mut self, path: PathId, acked: Acked, gain: Gain) {
        self.on(path, |p| p.on_ack(acked, gain));
    }

    /// Missing reports tell of a loss: to `ssthresh`, if its window is coupled to others.
    pub(in crate::sctp) fn on_loss(&mut self, path: PathId, loss: Loss, ssthresh: Option<u32>) {
        self.on(path, |p| p.on_loss(loss, ssthresh));
    }

    /// T3-rtx expired.
    pub(in crate::sctp) fn on_rto(&mut self, path: PathId, loss: Loss, ssthresh: Option<u32>) {
        self.on(path, |p| p.on_rto(loss, ssthresh));
    }

    /// See [`CwndCredit::AckPath`](crate::sctp::CwndCredit::AckPath).
    pub(in crate::sctp) fn on_credit(&mut self, path: PathId) {
        self.on(path, Path::on_credit);
    }

    /// It holds others up.
    pub(in crate::sctp) fn halve_window(&mut self, path: PathId) {
        self.on(path, Path::halve_window);
    }

    /// Data is about to be sent on any of them: those on which `is_empty` says that nothing is under way have been idle.
    pub(in crate::sctp) fn decay_idle_paths(&mut self, now: Instant, is_empty: impl Fn(PathId) -> bool) {
        for (id, path) in self.paths.iter_mut() {
            if is_empty(id) {
                path.decay_idle(now);
            }
        }
    }

    /// Data is about to be sent, and nothing is under way.
    #[inline]
    pub(in crate::sctp) fn decay_idle(&mut self, now: Instant, path: PathId) {
        self.on(path, |p| p.decay_idle(now));
    }

    #[inline(always)]
    fn on(&mut self, path: PathId, happens: impl FnOnce(&mut Path)) {
        if let Some(path) = self.paths.get_mut(path) {
            happens(path);
        }
    }
}

/// So that whoever asks for [room](Peer::path_to_evict) gets it.
const _: () = assert!(MAX_DESTINATIONS < Slots::<(), ()>::MOST);
