//! Networks whose prefix is replaced: the same cell, another address.

use super::*;

const A4: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 4, 0, 0, 0, 0, 1);
const L4: LocalAddress = LocalAddress {
    interface: IF0,
    address: A4,
};

#[test]
fn an_association_leaves_a_deprecated_address_for_another_of_the_same_cell() {
    let mut m = Mobile::new(Config::default());
    m.step(1000);
    m.sigma.handle_address_deprecated(at(1000), A2);
    assert_eq!(m.trail(), nothing(), "there is no other");
    m.address(1020, L4);
    // the ASCONF goes from the new address: what answers to the old one may not come back
    assert_eq!(m.trail(), ["obtained", "add-sent", "add 4", "route 4"]);
    m.answer(1030, AddressRequest::Add(A4), true);
    assert_eq!(m.trail(), with("add-acknowledged", switch_to(4)));
    m.answer(1040, AddressRequest::SetPrimary(A4), true);
    assert_eq!(m.trail(), ["set-primary-acknowledged", "delete-sent", "delete 2"]);
    m.answer(1050, AddressRequest::Delete(A2), true);
    assert_eq!(m.trail(), ["delete-acknowledged"]);
    assert_eq!(m.sigma.serving(), Some(A4));
}

#[test]
fn a_deprecated_address_is_left_at_once_for_one_that_is_ready() {
    let mut m = Mobile::until_ready(Config::default());
    m.sigma.handle_address_deprecated(at(900), A2);
    m.now = at(900);
    assert_eq!(m.trail(), switch_to(3));
    m.answer(950, AddressRequest::SetPrimary(A3), true);
    assert_eq!(m.trail(), ["set-primary-acknowledged", "delete-sent", "delete 2"]);
}

#[test]
fn a_deprecated_address_that_is_not_in_use_is_deleted() {
    let mut m = Mobile::until_ready(Config::default());
    m.sigma.handle_address_deprecated(at(900), A3);
    m.now = at(900);
    assert_eq!(m.trail(), ["delete-sent", "delete 3"]);
    assert_eq!(m.sigma.serving(), Some(A2));
}

#[test]
fn a_host_that_leaves_all_to_its_peer_goes_on_from_a_deprecated_address() {
    let mut m = Mobile::until_ready(Config {
        policy: Policy::PeerTimeouts,
        ..Config::default()
    });
    m.sigma.handle_address_deprecated(at(900), A2);
    m.now = at(900);
    assert_eq!(m.trail(), nothing());
    assert_eq!(m.sigma.serving(), Some(A2));
}
