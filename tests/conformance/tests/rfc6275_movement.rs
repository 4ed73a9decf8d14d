//! RFC 6275 section 11.5: movement detection, and the three rules by which a mobile node hands off.

use segue_conformance::mip6::*;
use segue_proto::Duration;
use segue_proto::mip6::{HandoffPolicy, MobileNodeConfig};
use segue_proto::shim::ShimEvent;

const INTERVAL: Duration = Duration::from_millis(100);

/// Away on interface 1, without route optimisation.
fn away(change: impl Fn(&mut MobileNodeConfig)) -> Net {
    let mut config = mobile_config(HOME, HOME_AGENT);
    config.route_optimization = false;
    change(&mut config);
    let mut net = Net::of(config, correspondent_config(), agent_config(HOME_AGENT, HOME));
    net.attach(MN, 1, CARE_OF);
    net.run(ms(500));
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF));
    net.take_events(MN);
    net
}

fn with(policy: HandoffPolicy) -> Net {
    away(|config| config.handoff = policy)
}

/// Milliseconds until the mobile node uses `address`, at most 10 s; interface 2 hears its router all the time.
fn time_until_used(net: &mut Net, address: core::net::Ipv6Addr) -> Option<u64> {
    for n in 0..1000 {
        if net.mobile(MN).care_of_address() == Some(address) {
            return Some(n * 10);
        }
        if n % 7 == 0 {
            net.advertise(MN, 2, 3, INTERVAL);
        }
        net.run(ms(10));
    }
    None
}

#[test]
fn on_link_loss_a_new_router_is_waited_with_until_the_old_link_is_gone() {
    let mut net = with(HandoffPolicy::OnLinkLoss);
    net.link_up(MN, 2);
    net.attach(MN, 2, CARE_OF_2);
    net.run(secs(20));
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF));
    assert_eq!(net.take_events(MN), []);
    net.detach(MN, 1);
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF_2));
    let begun = ShimEvent::HandoffBegun {
        from: Some(CARE_OF),
        to: CARE_OF_2,
    };
    assert_eq!(net.take_events(MN), [begun]);
}

#[test]
fn on_new_router_the_new_address_is_taken_at_once() {
    let mut net = with(HandoffPolicy::OnNewRouter);
    net.attach(MN, 2, CARE_OF_2);
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF_2));
    net.run(secs(1));
    // what comes to the old address is still taken, and its loss is nothing
    net.detach(MN, 1);
    net.run(secs(1));
    assert_eq!(net.counts(MN).handoffs_begun, 2);
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF_2));
    // another address of the same router is no reason
    net.attach(MN, 2, address(3, 10));
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF_2));
}

/// Section 11.5.1 with MIPL's rule: two advertisements in a row; layer 2 is not listened to.
#[test]
fn on_lost_advertisements_two_in_a_row() {
    for (lost, expected) in [(1, 100), (2, 200), (5, 500)] {
        let mut net = away(|config| {
            config.handoff = HandoffPolicy::OnLostAdvertisements;
            config.lost_advertisements = lost;
        });
        net.attach(MN, 2, CARE_OF_2);
        for _ in 0..50 {
            net.advertise(MN, 1, 2, INTERVAL);
            net.run(ms(95));
        }
        assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF), "{lost}");
        net.advertise(MN, 1, 2, INTERVAL);
        net.silence(MN, 1);
        let at = time_until_used(&mut net, CARE_OF_2);
        assert_eq!(at, Some(expected), "{lost} lost");
    }
}

#[test]
fn on_lost_advertisements_a_link_down_alone_changes_nothing() {
    let mut net = with(HandoffPolicy::OnLostAdvertisements);
    net.attach(MN, 2, CARE_OF_2);
    net.advertise(MN, 1, 2, INTERVAL);
    net.detach(MN, 1);
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF));
    assert_eq!(time_until_used(&mut net, CARE_OF_2), Some(200));
}

/// Where the router says nothing of its interval, the configured one counts; without either, layer 2 does.
#[test]
fn on_lost_advertisements_a_router_may_not_say_how_often() {
    let mut net = away(|config| {
        config.handoff = HandoffPolicy::OnLostAdvertisements;
        config.advertisement_interval = Some(ms(300));
    });
    net.attach(MN, 2, CARE_OF_2);
    net.advertise(MN, 1, 2, Duration::ZERO);
    assert_eq!(time_until_used(&mut net, CARE_OF_2), Some(600));
    let mut net = with(HandoffPolicy::OnLostAdvertisements);
    net.attach(MN, 2, CARE_OF_2);
    net.advertise(MN, 1, 2, Duration::ZERO);
    net.run(secs(30));
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF));
    net.detach(MN, 1);
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF_2));
}

/// Claim I14: advertisements that are late, not lost, make a false handoff; the old router is heard again, and what it
/// cost is a handoff.
#[test]
fn late_advertisements_make_a_false_handoff() {
    let mut net = with(HandoffPolicy::OnLostAdvertisements);
    net.attach(MN, 2, CARE_OF_2);
    net.advertise(MN, 1, 2, INTERVAL);
    net.run(ms(199));
    net.advertise(MN, 2, 3, INTERVAL);
    assert_eq!(net.counts(MN).handoffs_begun, 1);
    net.run(ms(2));
    assert_eq!(net.counts(MN).handoffs_begun, 2);
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF_2));
    // heard again: no reason to go back
    net.advertise(MN, 1, 2, INTERVAL);
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF_2));
}

/// When no router is heard any more, the node stays where it is, and moves as soon as one is heard elsewhere.
#[test]
fn on_lost_advertisements_a_silent_router_is_better_than_none() {
    let mut net = with(HandoffPolicy::OnLostAdvertisements);
    net.attach(MN, 2, CARE_OF_2);
    net.advertise(MN, 1, 2, INTERVAL);
    net.advertise(MN, 2, 3, INTERVAL);
    net.run(secs(1));
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF));
    net.send(CN, HOME, b"in");
    net.run(secs(1));
    assert_eq!(net.take_received(MN).len(), 1);
    net.advertise(MN, 2, 3, INTERVAL);
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF_2));
}

/// Section 11.5.3: without any address there is none to tell of; the next one is used at once, whatever the rule.
#[test]
fn without_an_address_the_next_one_is_taken() {
    for policy in [
        HandoffPolicy::OnLinkLoss,
        HandoffPolicy::OnLostAdvertisements,
        HandoffPolicy::OnNewRouter,
    ] {
        let mut net = with(policy);
        net.detach(MN, 1);
        assert_eq!(net.mobile(MN).care_of_address(), None);
        let sent = net.sent.len();
        net.send(MN, CORRESPONDENT, b"nowhere");
        assert_eq!(net.sent.len(), sent);
        assert_eq!(net.counts(MN).no_care_of_address, 1);
        net.run(secs(5));
        net.link_up(MN, 2);
        net.attach(MN, 2, CARE_OF_2);
        net.run(secs(1));
        assert_eq!(net.mobile(MN).registered(), Some(CARE_OF_2), "{policy:?}");
    }
}

/// A link that comes back with its address while the home agent still has the binding: nothing to be said.
#[test]
fn back_on_the_same_link_nothing_is_signalled() {
    let mut net = with(HandoffPolicy::OnLinkLoss);
    let before = net.counts(MN).signalling_packets_sent;
    net.detach(MN, 1);
    net.run(secs(1));
    net.link_up(MN, 1);
    net.attach(MN, 1, CARE_OF);
    net.run(secs(1));
    assert_eq!(net.counts(MN).signalling_packets_sent, before);
    net.send(CN, HOME, b"in");
    net.run(secs(1));
    assert_eq!(net.take_received(MN).len(), 1);
}

/// Vertical handoffs (002): up to the overlay when the small cell is lost, down as soon as it is back.
#[test]
fn a_preferred_interface_is_moved_to_as_soon_as_it_has_an_address() {
    for policy in [HandoffPolicy::OnLinkLoss, HandoffPolicy::OnNewRouter] {
        let mut net = away(|config| {
            config.handoff = policy;
            config.interface_preference = vec![1, 2];
        });
        // the overlay comes, and is not used
        net.attach(MN, 2, CARE_OF_2);
        assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF), "{policy:?}");
        net.detach(MN, 1);
        assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF_2), "{policy:?}");
        net.run(secs(1));
        net.link_up(MN, 1);
        net.attach(MN, 1, CARE_OF);
        assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF), "{policy:?}");
        net.run(secs(1));
        assert_eq!(net.mobile(MN).registered(), Some(CARE_OF));
    }
}

/// A handoff before the last one is done: the new one counts, and late acknowledgements of the old one do not.
#[test]
fn a_handoff_is_overtaken_by_the_next() {
    let mut net = with(HandoffPolicy::OnNewRouter);
    net.attach(MN, 2, CARE_OF_2);
    net.run(DELAY);
    net.attach(MN, 3, address(8, 9));
    net.run(secs(1));
    let events = net.take_events(MN);
    assert!(
        matches!(events[..], [
            ShimEvent::HandoffBegun { to: CARE_OF_2, .. },
            ShimEvent::HandoffBegun { from: Some(CARE_OF_2), .. },
            ShimEvent::HandoffDone { to, .. },
        ] if to == address(8, 9)),
        "{events:?}"
    );
    assert_eq!(net.counts(MN).bad_sequence, 1);
    assert_eq!(
        net.agents[0].binding_cache().get(HOME).map(|b| b.care_of_address),
        Some(address(8, 9))
    );
}
