//! The peer by itself: which of its addresses is used, and what errors do to them.

use super::*;
use crate::sctp::outbox::Outbox;
use crate::sctp::testing::{FIRST, SECOND, address, concurrently, destination, ends, ms, own};
use crate::sctp::{Event, MultipathConfig, PathState};
use crate::time::{Duration, Instant};

/// A peer, and what it works with.
pub(super) struct Rig {
    pub config: Config,
    pub local: LocalAddresses,
    pub peer: Peer,
    pub out: Outbox,
}

impl Rig {
    /// With so many destinations, all confirmed.
    pub(super) fn new(config: Config, destinations: u16) -> Self {
        let (local, peer) = ends(&config, destinations);
        let out = Outbox::default();
        Self {
            config,
            local,
            peer,
            out,
        }
    }

    fn add(&mut self, address: Ipv6Addr, confirmed: bool) -> Option<u8> {
        let added = self.peer.add(address, confirmed, &self.config, &self.local);
        added.map(DestinationId::place)
    }

    fn count_error(&mut self, place: u8) -> bool {
        self.peer
            .count_error(destination(place), &self.config, &mut self.out)
    }

    fn clear_errors(&mut self, place: u8) {
        self.peer
            .clear_errors(destination(place), &self.config, &mut self.out);
    }

    fn set_state(&mut self, place: u8, state: PathState) {
        self.peer.destinations[destination(place)].set_state(state);
    }

    /// The peer wants nothing at a destination, or wants data there again.
    fn deactivate(&mut self, place: u8, deactivated: bool) {
        let d = &mut self.peer.destinations[destination(place)];
        if deactivated {
            d.deactivate();
        } else {
            assert!(d.activate());
        }
    }

    /// The place of the destination that new data goes to now.
    fn choose(&mut self) -> u8 {
        self.peer.choose_current();
        self.peer.current.place()
    }

    fn next_destination(&self, place: u8) -> Option<u8> {
        let next = self.peer.next_destination(destination(place));
        next.map(DestinationId::place)
    }

    fn usable_destination(&self, other_than: Option<u8>) -> Option<u8> {
        let usable = self.peer.usable_destination(other_than.map(destination));
        usable.map(DestinationId::place)
    }

    fn least_failed(&self) -> Option<u8> {
        self.peer.least_failed().map(DestinationId::place)
    }

    fn places(&self) -> (u8, u8) {
        (self.peer.primary.place(), self.peer.current.place())
    }
}

/// What tests elsewhere set and look at.
impl Peer {
    pub(in crate::sctp) fn path_mut(&mut self, id: PathId) -> &mut Path {
        &mut self.paths[id]
    }

    pub(in crate::sctp) fn destination_mut(&mut self, id: DestinationId) -> &mut Destination {
        &mut self.destinations[id]
    }

    /// A heartbeat is due at a destination.
    pub(in crate::sctp) fn expect_heartbeat(&mut self, id: DestinationId, due: Instant) {
        self.destinations[id].schedule_heartbeat(Some(due));
    }

    /// Errors in a row, wherever.
    pub(in crate::sctp) fn errors_in_a_row(&self) -> u32 {
        self.error_count
    }

    /// PMTU of a path, and the next timer of the search for it.
    pub(in crate::sctp) fn pmtu_and_timer(&self, id: PathId) -> (u32, Option<Instant>) {
        (self.paths[id].pmtu(), self.paths[id].pmtu_timer())
    }

    /// States of the destinations.
    pub(in crate::sctp) fn states(&self) -> Vec<PathState> {
        self.destinations.values().map(Destination::state).collect()
    }
}

#[test]
fn a_window_decays_by_whole_rtos_without_data() {
    let mut rig = Rig::new(Config::default(), 1);
    let path = rig.peer.path_mut(FIRST);
    path.set_cwnd(100_000);
    path.decay_idle(ms(90_000));
    assert_eq!(path.cwnd(), 100_000, "nothing was sent yet");
    path.note_sent(ms(0));
    path.decay_idle(ms(1000) - Duration::from_nanos(1));
    assert_eq!(path.cwnd(), 100_000);
    path.decay_idle(ms(1000));
    assert_eq!(path.cwnd(), 50_000);
    path.decay_idle(ms(3999));
    assert_eq!(path.cwnd(), 12_500);
    assert_eq!(
        path.new_data_sent(),
        Some(ms(0)),
        "for heartbeats the path is idle since then"
    );
    path.note_sent_again(ms(4000));
    path.decay_idle(ms(4999));
    assert_eq!((path.cwnd(), path.new_data_sent()), (12_500, Some(ms(0))));
}

#[test]
fn new_data_goes_to_the_primary_else_to_the_next_that_is_active() {
    let mut rig = Rig::new(Config::default(), 4);
    rig.set_state(0, PathState::Inactive);
    assert_eq!(rig.choose(), 1);
    // as long as it is active
    rig.deactivate(1, true);
    assert_eq!(rig.choose(), 2);
    rig.deactivate(1, false);
    assert_eq!(rig.choose(), 2);
    rig.set_state(2, PathState::Inactive);
    rig.set_state(3, PathState::PotentiallyFailed);
    assert_eq!(rig.choose(), 1, "around the end");
    rig.set_state(1, PathState::Inactive);
    assert_eq!(rig.choose(), 3);
    rig.set_state(3, PathState::Inactive);
    assert_eq!(rig.choose(), 3, "dormant");
    rig.deactivate(3, true);
    assert_eq!(rig.choose(), 0);
    assert_eq!(rig.peer.current_path(), Some(FIRST));
    rig.set_state(0, PathState::Unconfirmed);
    assert_eq!(rig.peer.current_path(), None);
}

#[test]
fn the_next_destination_comes_around_and_passes_over_what_is_gone() {
    let mut rig = Rig::new(Config::default(), 4);
    assert_eq!(
        [0, 1, 2, 3].map(|i| rig.next_destination(i)),
        [1, 2, 3, 0].map(Some)
    );
    rig.peer.destinations.remove(destination(1));
    rig.deactivate(3, true);
    assert_eq!([0, 2].map(|i| rig.next_destination(i)), [Some(2), Some(0)]);
    rig.peer.destinations.remove(destination(2));
    assert_eq!(rig.next_destination(0), None);
    assert_eq!(rig.peer.len(), 2);
    // a slot that is free is used again
    assert_eq!(rig.add(address(9), true), Some(1));
}

#[test]
fn usable_is_the_primary_or_the_next_behind_the_other_one() {
    let mut rig = Rig::new(Config::default(), 4);
    assert_eq!(rig.usable_destination(None), Some(0));
    assert_eq!(rig.usable_destination(Some(0)), Some(1));
    assert_eq!(rig.usable_destination(Some(2)), Some(0));
    rig.set_state(0, PathState::PotentiallyFailed);
    assert_eq!(rig.usable_destination(Some(1)), Some(2));
    assert_eq!(rig.usable_destination(Some(3)), Some(1));
    rig.deactivate(1, true);
    rig.peer.destinations.remove(destination(2));
    assert_eq!(rig.usable_destination(Some(3)), None);
    assert_eq!(rig.usable_destination(None), Some(3));
}

#[test]
fn no_more_destinations_are_kept_than_there_are_slots() {
    let most = MAX_DESTINATIONS as u16;
    let mut rig = Rig::new(Config::default(), most - 1);
    assert_eq!(rig.add(address(most - 1), false), Some(31));
    assert_eq!(rig.add(address(most), true), None);
    assert_eq!(rig.peer.len(), MAX_DESTINATIONS);
    let last = address(most - 1);
    assert!(rig.peer.has(last) && !rig.peer.has_confirmed_address(last));
    assert!(rig.peer.confirm(destination(31), &mut rig.out));
    assert!(rig.peer.has_confirmed_address(last));
}

#[test]
fn a_destination_fails_potentially_beyond_pfmr_and_for_good_beyond_path_max_retrans() {
    let config = Config {
        pf_max_retrans: Some(2),
        association_max_retrans: 100,
        ..Config::default()
    };
    let mut rig = Rig::new(config, 2);
    use PathState as S;
    for (errors, state, current) in [
        (1, S::Active, 0),
        (2, S::Active, 0),
        (3, S::PotentiallyFailed, 1),
        (4, S::PotentiallyFailed, 1),
        (5, S::PotentiallyFailed, 1),
        (6, S::Inactive, 1),
        (7, S::Inactive, 1),
    ] {
        assert!(rig.count_error(0));
        assert_eq!(rig.peer.error_count, errors);
        assert_eq!(
            (rig.peer.states(), rig.peer.current.place()),
            (vec![state, S::Active], current)
        );
        let due = rig.peer.destinations[0].heartbeat_due();
        assert_eq!(due, (errors > 2).then_some(Instant::ZERO), "{errors}");
    }
    let changes: Vec<_> = core::iter::from_fn(|| rig.out.next_event()).collect();
    let changed = |state| Event::PathStateChanged {
        address: address(0),
        state,
    };
    assert_eq!(changes, [changed(S::PotentiallyFailed), changed(S::Inactive)]);
    assert_eq!(rig.places(), (0, 1));
    rig.clear_errors(0);
    assert_eq!((rig.peer.current.place(), rig.peer.error_count), (0, 0));
    assert_eq!(rig.peer.destinations[0].error_count(), 0);
}

#[test]
fn the_primary_is_switched_over_beyond_the_larger_of_psmr_and_pfmr() {
    for (psmr, pfmr, limit) in [(1, 3, 3), (4, 1, 4)] {
        let config = Config {
            pf_max_retrans: Some(pfmr),
            primary_switchover_max_retrans: Some(psmr),
            ..Config::default()
        };
        let mut rig = Rig::new(config, 2);
        for _ in 0..limit {
            assert!(rig.count_error(0));
        }
        assert_eq!(rig.peer.primary.place(), 0);
        assert!(rig.count_error(0));
        assert_eq!(rig.peer.primary.place(), 1);
    }
}

#[test]
fn errors_count_against_the_association_but_for_addresses_that_nobody_has_answered_from() {
    let config = Config {
        association_max_retrans: 2,
        ..Config::default()
    };
    let mut rig = Rig::new(config, 2);
    assert!(rig.count_error(0) && rig.count_error(1));
    rig.set_state(1, PathState::Unconfirmed);
    assert!(rig.count_error(1));
    assert!(!rig.count_error(0));
}

#[test]
fn of_those_that_failed_potentially_the_one_with_the_fewest_errors_is_used() {
    let mut rig = Rig::new(Config::default(), 4);
    for (d, errors) in rig.peer.destinations.values_mut().zip([3, 2, 2, 1]) {
        d.set_state(PathState::PotentiallyFailed);
        for _ in 0..errors {
            d.count_error();
        }
    }
    assert_eq!(rig.least_failed(), Some(3));
    rig.deactivate(3, true);
    assert_eq!(rig.least_failed(), Some(1));
    rig.peer.current = destination(2);
    assert_eq!(rig.least_failed(), Some(2), "that which is in use");
    (rig.peer.current, rig.peer.primary) = (destination(0), destination(2));
    assert_eq!(rig.least_failed(), Some(2), "the primary");
    rig.peer.destinations.remove(destination(2));
    rig.set_state(1, PathState::Inactive);
    assert_eq!(rig.least_failed(), Some(0));
}

#[test]
fn windows_that_begin_anew_have_the_segments_of_cmt_pf() {
    for segments in [1, 2] {
        let config = concurrently(MultipathConfig {
            pf_recovery: segments,
            ..MultipathConfig::default()
        });
        let mut rig = Rig::new(config, 2);
        for path in rig.peer.paths.values_mut() {
            path.set_cwnd(40_000);
        }
        rig.clear_errors(1);
        assert_eq!(rig.peer[SECOND].cwnd(), 40_000, "it had not failed");
        rig.set_state(1, PathState::PotentiallyFailed);
        rig.clear_errors(1);
        let segment = rig.peer[SECOND].segment();
        assert_eq!(rig.peer[SECOND].cwnd(), segment * u32::from(segments));
        assert_eq!(rig.peer[FIRST].cwnd(), 40_000);
    }
}

#[test]
fn paths_from_an_address_that_is_gone_stay_while_something_is_outstanding_on_them() {
    let mut rig = Rig::new(Config::default(), 2);
    rig.peer.retire_paths_from(address(9));
    assert!(!rig.peer.has_retired_paths(), "none begins there");
    rig.peer.retire_paths_from(own().address);
    assert!(rig.peer.has_retired_paths());
    let outstanding = |path| u32::from(path == FIRST);
    assert_eq!(
        rig.peer.drop_retired_paths(&rig.config, outstanding)[..],
        [SECOND]
    );
    assert!(rig.peer.has_retired_paths());
    // the address is back before what was outstanding came
    rig.peer.follow_route_to(destination(0), &rig.config, &rig.local);
    assert!(!rig.peer.has_retired_paths());
    assert!(rig.peer.drop_retired_paths(&rig.config, |_| 0).is_empty());
    assert_eq!(rig.peer[FIRST].source(), own());
}
