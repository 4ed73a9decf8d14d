//! Destinations and the state of their paths.

use super::*;
use crate::congestion::CongestionControl;
use crate::sctp::path::MAX_DESTINATIONS;
use crate::sctp::slots::Id;
use segue_wire::sctp::{Init, Parameter};

#[test]
fn a_window_decays_by_whole_rtos_without_data() {
    let mut a = up(Config::default(), 1);
    let path = &mut a.paths[0];
    path.window.set_cwnd(100_000);
    path.decay_idle(ms(90_000));
    assert_eq!(path.window.cwnd(), 100_000, "nothing was sent yet");
    path.last_data_sent = Some(ms(0));
    path.decay_idle(ms(1000) - Duration::from_nanos(1));
    assert_eq!(path.window.cwnd(), 100_000);
    path.decay_idle(ms(1000));
    assert_eq!(
        (path.window.cwnd(), path.last_data_sent),
        (50_000, Some(ms(1000)))
    );
    path.decay_idle(ms(3999));
    assert_eq!(path.window.cwnd(), 12_500);
    // but not while something is out
    send_on(&mut a, ms(4000), FIRST, 1000);
    a.decay_idle(ms(90_000), FIRST);
    assert_eq!(
        (a.paths[0].window.cwnd(), a.flight.size_on(FIRST)),
        (12_500, 1016)
    );
    a.paths[0].window.set_cwnd(1017);
    assert!(a.has_window(FIRST));
    a.paths[0].window.set_cwnd(1016);
    assert!(!a.has_window(FIRST));
}

#[test]
fn new_data_goes_to_the_primary_else_to_the_next_that_is_active() {
    let mut a = up(Config::default(), 4);
    a.destinations[0].state = PathState::Inactive;
    a.choose_current();
    assert_eq!(a.current.place(), 1);
    // as long as it is active
    a.destinations[1].deactivated = true;
    a.choose_current();
    assert_eq!(a.current.place(), 2);
    a.destinations[1].deactivated = false;
    a.choose_current();
    assert_eq!(a.current.place(), 2);
    a.destinations[2].state = PathState::Inactive;
    a.destinations[3].state = PathState::PotentiallyFailed;
    a.choose_current();
    assert_eq!(a.current.place(), 1, "around the end");
    a.destinations[1].state = PathState::Inactive;
    a.choose_current();
    assert_eq!(a.current.place(), 3);
    a.destinations[3].state = PathState::Inactive;
    a.choose_current();
    assert_eq!(a.current.place(), 3, "dormant");
    a.destinations[3].deactivated = true;
    a.choose_current();
    assert_eq!(a.current.place(), 0);
    assert_eq!(a.current_path(), Some(FIRST));
    a.destinations[0].state = PathState::Unconfirmed;
    assert_eq!(a.current_path(), None);
}

#[test]
fn the_next_destination_comes_around_and_passes_over_what_is_gone() {
    let mut a = up(Config::default(), 4);
    assert_eq!(
        [0, 1, 2, 3].map(|i| a.next_destination(Id::first_at(i)).map(Id::place)),
        [1, 2, 3, 0].map(Some)
    );
    a.destinations.remove(Id::first_at(1));
    a.destinations[3].deactivated = true;
    assert_eq!(
        [0, 2].map(|i| a.next_destination(Id::first_at(i)).map(Id::place)),
        [Some(2), Some(0)]
    );
    a.destinations.remove(Id::first_at(2));
    assert_eq!(a.next_destination(Id::first_at(0)), None);
    assert_eq!(a.destination_count(), 2);
    // a slot that is free is used again
    assert_eq!(a.add_destination(ms(0), address(9), true).map(Id::place), Some(1));
}

#[test]
fn usable_is_the_primary_or_the_next_behind_the_other_one() {
    let mut a = up(Config::default(), 4);
    assert_eq!(a.usable_destination(None).map(Id::place), Some(0));
    assert_eq!(
        a.usable_destination(Some(Id::first_at(0))).map(Id::place),
        Some(1)
    );
    assert_eq!(
        a.usable_destination(Some(Id::first_at(2))).map(Id::place),
        Some(0)
    );
    a.destinations[0].state = PathState::PotentiallyFailed;
    assert_eq!(
        a.usable_destination(Some(Id::first_at(1))).map(Id::place),
        Some(2)
    );
    assert_eq!(
        a.usable_destination(Some(Id::first_at(3))).map(Id::place),
        Some(1)
    );
    a.destinations[1].deactivated = true;
    a.destinations.remove(Id::first_at(2));
    assert_eq!(a.usable_destination(Some(Id::first_at(3))), None);
    assert_eq!(a.usable_destination(None).map(Id::place), Some(3));
}

#[test]
fn no_more_destinations_are_kept_than_there_are_slots() {
    let most = MAX_DESTINATIONS as u16;
    let mut a = up(Config::default(), most - 1);
    assert_eq!(
        a.add_destination(ms(0), address(0), true).map(Id::place),
        Some(0),
        "known already"
    );
    assert_eq!(
        a.add_destination(ms(0), address(most - 1), false).map(Id::place),
        Some(31)
    );
    assert_eq!(a.add_destination(ms(0), address(most), true), None);
    assert_eq!(a.destination_count(), MAX_DESTINATIONS);
    assert!(a.has_peer_address(address(most - 1)) && !a.has_confirmed_address(address(most - 1)));
    a.confirm(Id::first_at(31));
    assert!(a.has_confirmed_address(address(most - 1)));
}

#[test]
fn what_was_under_way_to_a_destination_that_goes_is_sent_elsewhere_without_penalty() {
    let mut a = cmt(MultipathConfig::default(), 2);
    for path in [FIRST, SECOND, FIRST] {
        send_on(&mut a, ms(0), path, 1000);
    }
    a.paths[1].window.set_cwnd(30_000);
    a.remove_destination(Id::first_at(0));
    assert_eq!((a.flight.marked(), a.peer_rwnd()), (2, 99_000));
    assert_eq!(
        (a.primary.place(), a.current.place(), a.destination_count()),
        (1, 1, 1)
    );
    let of = |tsn| a.flight.get(Tsn(tsn)).and_then(|sent| sent.path());
    let there_is = [1, 2, 3].map(|tsn| of(tsn).is_some_and(|path| a.paths.contains(path)));
    assert_eq!((there_is, of(2)), ([false, true, false], Some(SECOND)));
    assert_eq!(
        (a.paths[1].window.cwnd(), a.flight.size_on(SECOND)),
        (30_000, 1016)
    );
    let counters = a.out.counters.multipath;
    assert_eq!((counters.paths_left, counters.chunks_moved), (1, 2));
}

#[test]
fn addresses_of_an_init_ack_that_cannot_be_the_peers_are_counted() {
    let mut a = begun(&Config::default(), 1);
    let named = [address(5), Ipv6Addr::LOCALHOST, own().address].map(Parameter::Ipv6Address);
    let mut parameters = named.to_vec();
    parameters.push(Parameter::StateCookie(bytes::Bytes::from_static(b"cookie")));
    let init_ack = Init {
        initiate_tag: 77,
        a_rwnd: 50_000,
        outbound_streams: 4,
        inbound_streams: 3,
        initial_tsn: Tsn(1000),
        parameters,
    };
    a.on_init_ack(ms(10), address(0), &init_ack);
    assert!(a.state() == State::CookieEchoed);
    assert_eq!(a.out.counters.addresses_ignored, 2);
    assert_eq!((a.outbound_streams, a.inbound_streams()), (3, 4));
    assert_eq!((a.peer_verification_tag(), a.peer_rwnd()), (Some(77), 50_000));
    assert_eq!(a.receiver.cumulative_tsn_ack(), Some(Tsn(999)));
    assert_eq!(states(&a), [PathState::Active, PathState::Unconfirmed]);
    // another one comes too late
    a.on_init_ack(ms(11), address(0), &init_ack);
    assert_eq!(a.out.counters.refused.unexpected, 1);
}
