//! What takes a whole association, whose state the tests set.

use super::*;
use crate::InterfaceId;
use crate::congestion::RttEstimator;
use crate::random::Stream;
use crate::sctp::ids::MAX_DESTINATIONS;
use crate::sctp::ids::PathId;
use crate::sctp::testing::{FIRST, SECOND, address, concurrently, destination, ms, own};
use crate::sctp::{MultipathConfig, PathState};
use crate::time::Duration;
use bytes::Bytes;
use segue_wire::sctp::Init;

/// The peer's initial TSN.
const PEER_TSN: Tsn = Tsn(0);

/// An association that is about to be opened, with so many destinations, all confirmed; the first chunk will have the TSN 1.
pub(in crate::sctp) fn begun(config: &Config, destinations: u16) -> Association {
    begun_at(&[own()], config, destinations)
}

/// The same from these addresses of ours, of which the first is the route.
fn begun_at(local: &[LocalAddress], config: &Config, destinations: u16) -> Association {
    let addresses: Vec<_> = (0..destinations).map(address).collect();
    let setup = Setup {
        config: &Arc::new(config.clone()),
        identity: Identity::new(1, 2, 3),
        local_initial_tsn: Tsn(1),
        local_random: None,
        local,
        route: local[0],
        peer_addresses: &addresses,
        confirmed: addresses.len(),
    };
    let mut association = Association::new(Instant::ZERO, &setup, &mut Stream::new(1, "unit"));
    association.sender.begin(config.outbound_streams, 100_000);
    association.open_burst();
    association
}

/// The same, established and without heartbeats.
pub(in crate::sctp) fn up(config: Config, destinations: u16) -> Association {
    up_at(&[own()], config, destinations)
}

fn up_at(local: &[LocalAddress], config: Config, destinations: u16) -> Association {
    let config = Config {
        hb_interval: None,
        ..config
    };
    let mut association = begun_at(local, &config, destinations);
    association
        .receiver
        .begin(PEER_TSN, config.max_inbound_streams, address(0), &config);
    association.phase.establish();
    association
}

/// Sends a message of `len` bytes in one chunk on `path`, and books it.
fn send_on(a: &mut Association, now: Instant, path: PathId, len: u32) -> Tsn {
    let (sender, mut cx) = a.sending(now);
    sender.send_on(&mut cx, path, len)
}

/// What tests elsewhere set.
impl Association {
    pub(in crate::sctp) fn identity_mut(&mut self) -> &mut Identity {
        &mut self.identity
    }

    pub(in crate::sctp) fn peer_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }

    pub(in crate::sctp) fn phase_mut(&mut self) -> &mut Phase {
        &mut self.phase
    }

    pub(in crate::sctp) fn tell(&mut self, event: Event) {
        self.out.tell(event);
    }

    /// A packet with DATA has come.
    pub(in crate::sctp) fn owe_sack(&mut self, now: Instant) {
        self.receiver.owe(now, false, false, &self.config, &mut self.out);
    }
}

#[test]
fn the_first_of_all_timers_is_the_next() {
    let config = Config {
        sack_delay: Duration::from_millis(60),
        quick_sacks: 0,
        ..Config::default()
    };
    let mut a = up(config, 2);
    assert_eq!(a.poll_timeout(), None);
    let mut opening = begun(&Config::default(), 1);
    opening.phase.opening_chunk_sent(ms(0), ms(90));
    assert_eq!(opening.poll_timeout(), Some(ms(90)));
    let mut ending = up(Config::default(), 1);
    assert!(ending.phase.begin_shutdown());
    ending.phase.on_all_acknowledged(ms(0), Duration::from_millis(80));
    assert_eq!(ending.poll_timeout(), Some(ms(80)));
    ending.phase.shutdown_chunk_sent(ms(70));
    assert_eq!(ending.poll_timeout(), Some(ms(70)));
    a.receiver.owe(ms(0), false, false, &a.config, &mut a.out);
    assert_eq!(a.poll_timeout(), Some(ms(60)));
    let credit = a.sender.credit_mut();
    assert!(!credit.admits(ms(0), 1, 0, false, Duration::from_millis(50)));
    assert_eq!(a.poll_timeout(), Some(ms(50)));
    a.sender.guard_forward_tsn(ms(0), Duration::from_millis(40));
    assert_eq!(a.poll_timeout(), Some(ms(40)));
    let rtt = RttEstimator::new(Duration::from_millis(30), Duration::ZERO, Duration::MAX);
    a.peer.path_mut(SECOND).set_rtt(rtt);
    send_on(&mut a, ms(0), SECOND, 1000);
    assert_eq!(a.poll_timeout(), Some(ms(30)));
    a.peer.expect_heartbeat(destination(1), ms(20));
    assert_eq!(a.poll_timeout(), Some(ms(20)));
    a.peer.deactivate(destination(1), &a.config, &mut a.out);
    a.peer.expect_heartbeat(destination(1), ms(20));
    assert_eq!(a.poll_timeout(), Some(ms(30)));
    a.sender.forget_forward_tsn();
    a.sender.flight_mut().take();
    // a delayed SACK is due at its time and not before
    a.handle_timeout(ms(60) - Duration::from_nanos(1));
    let admitted = a.sender.credit_mut().admits(ms(59), 1, 0, false, Duration::ZERO);
    assert!(!a.receiver.sack_is_due() && admitted);
    a.handle_timeout(ms(60));
    assert!(a.receiver.sack_is_due() && a.receiver.sack_timer().is_none());
}

#[test]
fn t3_rtx_is_an_error_of_the_destination_and_of_the_association() {
    let mut a = up(Config::default(), 2);
    send_on(&mut a, ms(0), FIRST, 1000);
    let errors = |a: &Association| {
        let of = |place| a.peer[destination(place)].error_count();
        ([of(0), of(1)], a.peer.errors_in_a_row())
    };
    a.handle_timeout(ms(999));
    assert_eq!((errors(&a), a.out.counters.t3_expiries), (([0, 0], 0), 0));
    a.handle_timeout(ms(1000));
    assert_eq!((errors(&a), a.out.counters.t3_expiries), (([1, 0], 1), 1));
    // but not where the peer answers, and has no room
    let mut a = up(Config::default(), 2);
    let tsn = send_on(&mut a, ms(0), FIRST, 500);
    a.sender.credit_mut().on_probe_sent(tsn);
    a.sender.credit_mut().on_sack(0, Some(500), Tsn(0));
    a.handle_timeout(ms(1000));
    assert_eq!((errors(&a), a.out.counters.t3_expiries), (([0, 0], 0), 1));
    assert_eq!(a.sender.flight().marked(), 1);
}

#[test]
fn an_address_that_is_known_is_no_destination_more_and_one_too_many_is_none() {
    let most = MAX_DESTINATIONS as u16;
    let mut a = up(Config::default(), most - 1);
    let known = a.add_destination(ms(0), address(0), true);
    assert_eq!(
        (known, a.peer.len()),
        (Some(destination(0)), MAX_DESTINATIONS - 1)
    );
    let last = a.add_destination(ms(0), address(most - 1), false);
    assert_eq!(last, Some(destination(31)));
    assert_eq!(a.add_destination(ms(0), address(most), true), None);
    assert_eq!(a.peer.len(), MAX_DESTINATIONS);
    assert!(a.has_peer_address(address(most - 1)));
    assert!(!a.has_peer_address(address(most)));
}

#[test]
fn what_was_under_way_to_a_destination_that_goes_is_sent_elsewhere_without_penalty() {
    let mut a = up(concurrently(MultipathConfig::default()), 2);
    for path in [FIRST, SECOND, FIRST] {
        send_on(&mut a, ms(0), path, 1000);
    }
    a.peer.path_mut(SECOND).set_cwnd(30_000);
    a.remove_destination(destination(0));
    let flight = a.sender.flight();
    assert_eq!((flight.marked(), a.peer_rwnd()), (2, 99_000));
    assert_eq!(
        (a.peer.primary().place(), a.peer.current().place(), a.peer.len()),
        (1, 1, 1)
    );
    let of = |tsn| flight.get(Tsn(tsn)).and_then(|sent| sent.path());
    let there_is = [1, 2, 3].map(|tsn| of(tsn).is_some_and(|path| a.peer.path(path).is_some()));
    assert_eq!((there_is, of(2)), ([false, true, false], Some(SECOND)));
    assert_eq!((a.peer[SECOND].cwnd(), flight.size_on(SECOND)), (30_000, 1016));
    let counters = a.out.counters.multipath;
    assert_eq!((counters.paths_left, counters.chunks_moved), (1, 2));
}

#[test]
fn addresses_of_an_init_ack_that_cannot_be_the_peers_are_counted() {
    let mut a = begun(&Config::default(), 1);
    let named = [address(5), Ipv6Addr::LOCALHOST, own().address].map(Parameter::Ipv6Address);
    let mut parameters = named.to_vec();
    parameters.push(Parameter::StateCookie(Bytes::from_static(b"cookie")));
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
    assert_eq!((a.outbound_streams(), a.inbound_streams()), (3, 4));
    assert_eq!((a.peer_verification_tag(), a.peer_rwnd()), (Some(77), 50_000));
    assert_eq!(a.receiver.cumulative_tsn_ack(), Some(Tsn(999)));
    assert_eq!(a.peer.states(), [PathState::Active, PathState::Unconfirmed]);
    // another one comes too late
    a.on_init_ack(ms(11), address(0), &init_ack);
    assert_eq!(a.out.counters.refused.unexpected, 1);
}

#[test]
fn the_association_is_lost_beyond_its_limit() {
    let config = Config {
        association_max_retrans: 2,
        ..Config::default()
    };
    let mut a = up(config, 2);
    assert!(a.count_error(destination(0)) && a.count_error(destination(1)));
    // what was never confirmed counts only for itself
    a.peer
        .destination_mut(destination(1))
        .set_state(PathState::Unconfirmed);
    assert!(a.count_error(destination(1)));
    assert!(!a.is_closed());
    assert!(!a.count_error(destination(0)));
    assert!(a.is_closed());
}

#[test]
fn packet_too_big_marks_what_does_not_fit() {
    let mut a = up(Config::default(), 2);
    // with headers: 1400 and 1404 bytes, and on the other path
    for (path, len) in [(FIRST, 1332), (FIRST, 1336), (SECOND, 1336)] {
        send_on(&mut a, ms(0), path, len);
    }
    let told = |a: &mut Association, mtu| a.on_packet_too_big(ms(5), own().address, address(0), mtu);
    assert!(!told(&mut a, 1500) && !told(&mut a, 1279));
    assert!(!a.on_packet_too_big(ms(5), address(9), address(0), 1400));
    assert!(told(&mut a, 1400));
    assert_eq!(a.peer.pmtu_and_timer(FIRST), (1400, Some(ms(600_005))));
    assert_eq!(a.peer.pmtu_and_timer(SECOND).0, 1500);
    let flight = a.sender.flight();
    assert_eq!((flight.marked(), flight.size_on(FIRST)), (1, 1348));
    assert_eq!(a.peer_rwnd(), 100_000 - 1332 - 1336);
    assert_eq!(
        (a.peer.sizes().mtu(), flight.watched(FIRST)),
        (1400, Some((1, ms(1000))))
    );
    assert_eq!(a.reduced_mtu(address(0)), Some(1400));
    assert_eq!(a.reduced_mtu(address(1)), None);
    assert!(!told(&mut a, 1400), "known");
    assert!(told(&mut a, 1280));
    let flight = a.sender.flight();
    assert_eq!((flight.size_on(FIRST), flight.t3_rtx(FIRST)), (0, None));
    a.peer.on_pmtu_timers(ms(600_004), &a.config);
    assert_eq!(a.peer.pmtu_and_timer(FIRST).0, 1280);
    a.peer.on_pmtu_timers(ms(600_005), &a.config);
    let pmtu = a.peer.pmtu_and_timer(FIRST).0;
    assert_eq!((pmtu, a.peer.sizes().mtu()), (1500, 1500));
}

#[test]
fn a_path_from_an_address_that_is_back_is_built_anew_whole() {
    let mut a = up(concurrently(MultipathConfig::default()), 1);
    let first = a.peer[a.peer.current()].path();
    assert!(a.on_packet_too_big(ms(0), own().address, address(0), 1300));
    let concurrent = a.sender.concurrent();
    (0..100).for_each(|_| concurrent.note_sent(first));
    concurrent.note_lost(first, 5);
    assert_eq!(concurrent.loss_rate_on(first), 50_000);
    let path = a.peer.path_mut(first);
    path.measure(Duration::from_millis(80));
    path.set_cwnd(90_000);
    assert_eq!(a.peer.sizes().mtu(), 1300);
    a.local_address_removed(ms(1), own().address);
    assert!(a.is_stranded());
    let back = LocalAddress {
        interface: InterfaceId(7),
        ..own()
    };
    a.local_address_added(ms(2), back);
    let now = a.peer[a.peer.current()].path();
    let path = &a.peer[now];
    assert_eq!((path.source(), a.peer.pmtu_and_timer(now)), (back, (1500, None)));
    assert_eq!((path.srtt(), path.cwnd()), (None, 4404));
    assert_eq!(a.sender.concurrent().loss_rate_on(now), 0);
    assert_eq!(a.peer.sizes().mtu(), 1500);
}

#[test]
fn with_several_paths_the_peer_is_told_at_once_what_arrived_when_an_address_is_gone() {
    let other = LocalAddress {
        interface: InterfaceId(1),
        address: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1),
    };
    for (config, tells) in [
        (concurrently(MultipathConfig::default()), true),
        (Config::default(), false),
    ] {
        let mut a = up_at(&[own(), other], config, 2);
        a.local_address_removed(ms(1), own().address);
        assert!(!a.is_stranded());
        assert_eq!(a.receiver.sack_is_due(), tells);
    }
}
