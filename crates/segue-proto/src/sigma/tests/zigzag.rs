//! Deactivation and reuse, steps in one ASCONF, and a host that is nowhere for a while.

use super::*;

fn deactivating(bundle: Bundle) -> Config {
    Config {
        delete: Delete::Deactivate,
        bundle,
        ..Config::default()
    }
}

/// The host has switched to cell 2 and lost cell 1; everything is answered.
fn moved_over(config: Config) -> Mobile {
    let mut mobile = Mobile::new(config);
    mobile.sigma.set_can_deactivate(true);
    mobile.beacon(100, IF1, NEW, -80.0);
    mobile.up(200, IF1, NEW);
    mobile.address(700, L3);
    mobile.answer(800, AddressRequest::Add(A3), true);
    mobile.beacons(2000, -70.0, -60.0);
    mobile.answer(2100, AddressRequest::SetPrimary(A3), true);
    mobile.trail();
    mobile.down(3000, IF0, OLD);
    mobile
}

#[test]
fn the_old_address_is_deactivated_and_used_again_without_a_new_add() {
    let mut mobile = moved_over(deactivating(Bundle::None));
    assert_eq!(mobile.trail(), ["link-down", "deactivate-sent", "deactivate 2"]);
    assert_eq!(mobile.gone, [A2]);
    mobile.answer(3100, AddressRequest::Deactivate(A2), true);
    assert_eq!(mobile.trail(), ["deactivate-acknowledged"]);
    // back in the overlap
    mobile.beacon(9000, IF0, OLD, -80.0);
    mobile.up(9100, IF0, OLD);
    mobile.trail();
    mobile.address(9200, L2);
    assert_eq!(mobile.trail(), ["obtained", "address-reused"]);
    assert_eq!(mobile.gone, Vec::<Ipv6Addr>::new());
    mobile.beacons(10_000, -60.0, -70.0);
    assert_eq!(
        mobile.trail(),
        [
            "decision-point",
            "route-changed",
            "location-updated",
            "activate-sent",
            "set-primary-sent",
            "route 2",
            "location 2",
            "activate 2 + primary 2"
        ]
    );
    mobile.answer(10_100, AddressRequest::Activate(A2), true);
    mobile.answer(10_100, AddressRequest::SetPrimary(A2), true);
    assert_eq!(
        mobile.trail(),
        ["activate-acknowledged", "set-primary-acknowledged"]
    );
    mobile.down(11_000, IF1, NEW);
    assert_eq!(mobile.trail(), ["link-down", "deactivate-sent", "deactivate 3"]);
}

#[test]
fn a_host_that_turns_back_in_the_overlap_leaves_a_deactivated_address_as_it_is() {
    let mut mobile = moved_over(deactivating(Bundle::None));
    mobile.answer(3100, AddressRequest::Deactivate(A2), true);
    mobile.beacon(9000, IF0, OLD, -80.0);
    mobile.up(9100, IF0, OLD);
    mobile.address(9200, L2);
    mobile.trail();
    mobile.down(9500, IF0, OLD);
    assert_eq!(mobile.trail(), ["link-down"]);
}

#[test]
fn a_peer_that_cannot_deactivate_is_asked_to_delete() {
    let mut mobile = Mobile::until_ready(deactivating(Bundle::None));
    mobile.beacons(2000, -70.0, -60.0);
    mobile.answer(2100, AddressRequest::SetPrimary(A3), true);
    mobile.trail();
    mobile.down(3000, IF0, OLD);
    assert_eq!(mobile.trail(), ["link-down", "delete-sent", "delete 2"]);
}

#[test]
fn a_deactivated_address_whose_lifetime_is_over_is_deleted() {
    let mut mobile = moved_over(deactivating(Bundle::None));
    mobile.answer(3100, AddressRequest::Deactivate(A2), true);
    mobile.trail();
    mobile.step(60_000);
    mobile.sigma.handle_address_expired(at(60_000), A2);
    assert_eq!(mobile.trail(), ["delete-sent", "delete 2"]);
    mobile.answer(60_100, AddressRequest::Delete(A2), true);
    mobile.trail();
    // coming back it is a new one
    mobile.beacon(61_000, IF0, OLD, -80.0);
    mobile.up(61_100, IF0, OLD);
    mobile.address(61_200, L2);
    assert_eq!(mobile.trail().last().unwrap(), "add 2");
}

#[test]
fn the_peer_keeps_no_more_deactivated_addresses_than_configured() {
    let config = Config {
        deactivated_limit: 0,
        ..deactivating(Bundle::None)
    };
    let mut mobile = moved_over(config);
    assert_eq!(mobile.trail(), ["link-down", "delete-sent", "delete 2"]);
}

#[test]
fn primary_and_delete_go_in_one_asconf_at_the_switch() {
    for (delete, last) in [
        (Delete::OnLinkDown, "delete 2"),
        (Delete::Deactivate, "deactivate 2"),
    ] {
        let config = Config {
            delete,
            bundle: Bundle::PrimaryDelete,
            ..Config::default()
        };
        let mut mobile = Mobile::until_ready(config);
        mobile.sigma.set_can_deactivate(true);
        mobile.beacons(2000, -70.0, -60.0);
        let trail = mobile.trail();
        assert_eq!(trail.last().unwrap(), &format!("primary 3 + {last}"));
        assert_eq!(
            trail[trail.len() - 3],
            "route 3",
            "it leaves from the new address (RFC 5061 5.3, F6)"
        );
    }
}

#[test]
fn add_and_primary_go_in_one_asconf_where_the_switch_is_decided() {
    let config = Config {
        bundle: Bundle::AddPrimary,
        ..Config::default()
    };
    // not decided yet: on its own
    let mut mobile = Mobile::until_add_sent(config.clone());
    mobile.answer(800, AddressRequest::Add(A3), true);
    mobile.trail();
    // decided before the address was there
    let mut mobile = Mobile::new(config.clone());
    mobile.beacon(100, IF1, NEW, -80.0);
    mobile.up(200, IF1, NEW);
    mobile.beacons(600, -70.0, -60.0);
    mobile.trail();
    mobile.address(700, L3);
    assert_eq!(
        mobile.trail(),
        ["obtained", "add-sent", "set-primary-sent", "add 3 + primary 3"]
    );
    mobile.answer(800, AddressRequest::Add(A3), true);
    assert_eq!(mobile.trail(), ["add-acknowledged"]);
    mobile.answer(800, AddressRequest::SetPrimary(A3), true);
    assert_eq!(
        mobile.trail(),
        [
            "set-primary-acknowledged",
            "route-changed",
            "location-updated",
            "route 3",
            "location 3"
        ]
    );
    // a policy that goes at once
    let mut mobile = Mobile::new(Config {
        policy: Policy::FirstReady,
        ..config
    });
    mobile.beacon(100, IF1, NEW, -80.0);
    mobile.up(200, IF1, NEW);
    mobile.trail();
    mobile.address(700, L3);
    assert_eq!(mobile.trail().last().unwrap(), "add 3 + primary 3");
}

#[test]
fn across_a_gap_one_asconf_from_the_new_address_does_everything() {
    let mut mobile = Mobile::new(Config {
        bundle: Bundle::All,
        ..Config::default()
    });
    mobile.down(1000, IF0, OLD);
    assert_eq!(mobile.trail(), ["link-down"]);
    assert_eq!(mobile.gone, [A2]);
    mobile.beacon(5000, IF1, NEW, -80.0);
    mobile.up(5100, IF1, NEW);
    mobile.trail();
    mobile.address(5600, L3);
    assert_eq!(
        mobile.trail(),
        [
            "obtained",
            "add-sent",
            "set-primary-sent",
            "delete-sent",
            "route-changed",
            "location-updated",
            "add 3 + primary 3 + delete 2",
            "route 3",
            "location 3"
        ]
    );
    mobile.answer(5700, AddressRequest::Add(A3), true);
    mobile.answer(5700, AddressRequest::SetPrimary(A3), true);
    mobile.answer(5700, AddressRequest::Delete(A2), true);
    assert_eq!(
        mobile.trail(),
        [
            "add-acknowledged",
            "set-primary-acknowledged",
            "delete-acknowledged"
        ]
    );
}

#[test]
fn across_a_gap_and_back_the_same_address_needs_nothing() {
    let mut mobile = Mobile::new(deactivating(Bundle::All));
    mobile.sigma.set_can_deactivate(true);
    mobile.down(1000, IF0, OLD);
    mobile.beacon(5000, IF0, OLD, -80.0);
    mobile.up(5100, IF0, OLD);
    mobile.trail();
    mobile.address(5600, L2);
    assert_eq!(mobile.trail(), ["obtained"]);
    assert_eq!(mobile.gone, Vec::<Ipv6Addr>::new(), "SCTP knows that it is back");
}
