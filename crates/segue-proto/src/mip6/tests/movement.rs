//! Movement detection (RFC 6275 section 11.5.1), an event at a time.

use super::super::movement::{Attachment, Movement};
use super::*;
use crate::contract::{InterfaceId, LinkEvent, LocalAddress};
use crate::time::Instant;
use segue_wire::icmpv6::nd::{NdOption, RouterAdvertisement};

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// The address of an interface in a network; network 1 is home.
fn local(interface: u8, network: u16) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(interface),
        address: Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, 9),
    }
}

fn movement(handoff: HandoffPolicy, preference: &[u8]) -> Movement {
    Movement::new(&MobileNodeConfig {
        home_address: local(0, 1).address,
        home_agent: "2001:db8:1::1".parse().expect("address"),
        handoff,
        interface_preference: preference.to_vec(),
        ..MobileNodeConfig::default()
    })
}

fn advertisement(interval_ms: Option<u32>, router_lifetime_s: u16) -> RouterAdvertisement {
    RouterAdvertisement {
        router_lifetime_s,
        options: interval_ms
            .map(NdOption::AdvertisementInterval)
            .into_iter()
            .collect(),
        ..RouterAdvertisement::default()
    }
}

#[test]
fn home_is_the_network_of_the_home_address() {
    let mut m = movement(HandoffPolicy::OnLinkLoss, &[]);
    assert_eq!(m.attachment(), Attachment::Nowhere);
    m.address_ready(local(0, 1));
    assert_eq!(m.attachment(), Attachment::Home(InterfaceId(0)));
    m.address_ready(local(1, 2));
    assert_eq!(
        m.attachment(),
        Attachment::Home(InterfaceId(0)),
        "nothing was lost"
    );
    m.address_lost(local(0, 1));
    assert_eq!(m.attachment(), Attachment::Away(local(1, 2)));
    assert!(!m.is_assigned(local(0, 1).address) && m.is_assigned(local(1, 2).address));
    assert_eq!(m.interface_of(local(1, 2).address), Some(InterfaceId(1)));
    m.address_lost(local(1, 2));
    assert_eq!(m.attachment(), Attachment::Nowhere);
}

#[test]
fn a_better_interface_is_moved_to_at_once_and_a_worse_one_when_nothing_else_is_left() {
    let mut m = movement(HandoffPolicy::OnLinkLoss, &[1, 0]);
    m.address_ready(local(0, 2));
    m.address_ready(local(2, 4));
    assert_eq!(
        m.attachment(),
        Attachment::Away(local(0, 2)),
        "one without a rank is the worst"
    );
    m.address_ready(local(1, 3));
    assert_eq!(m.attachment(), Attachment::Away(local(1, 3)));
    let link = |up: bool, interface| {
        let interface = InterfaceId(interface);
        if up {
            LinkEvent::Up {
                interface,
                cell: crate::CellId(1),
            }
        } else {
            LinkEvent::Down {
                interface,
                cell: crate::CellId(1),
            }
        }
    };
    m.handle_link(&link(false, 1));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 2)));
    m.handle_link(&link(false, 0));
    assert_eq!(m.attachment(), Attachment::Away(local(2, 4)));
    m.handle_link(&link(false, 2));
    assert_eq!(m.attachment(), Attachment::Nowhere);
    m.handle_link(&link(true, 0));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 2)));
}

#[test]
fn the_newest_address_is_the_best_and_a_deprecated_one_the_last() {
    let mut m = movement(HandoffPolicy::OnLinkLoss, &[]);
    for network in [2, 3, 4] {
        m.address_ready(local(network as u8, network));
    }
    m.address_lost(local(2, 2));
    assert_eq!(m.attachment(), Attachment::Away(local(4, 4)));
    m.address_ready(local(5, 5));
    m.address_deprecated(local(5, 5));
    m.address_lost(local(4, 4));
    assert_eq!(m.attachment(), Attachment::Away(local(3, 3)));
    m.address_lost(local(3, 3));
    assert_eq!(m.attachment(), Attachment::Away(local(5, 5)), "better than none");
}

#[test]
fn an_eager_node_moves_to_every_new_network_of_no_worse_an_interface() {
    // RFC 6275 section 11.5.1, "eager cell switching" of its literature
    let mut m = movement(HandoffPolicy::OnNewRouter, &[0, 1]);
    m.address_ready(local(1, 2));
    m.address_ready(local(1, 3));
    assert_eq!(m.attachment(), Attachment::Away(local(1, 3)));
    m.address_ready(local(0, 4));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 4)));
    m.address_ready(local(1, 5));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 4)), "a worse interface");
    let again = LocalAddress {
        address: Ipv6Addr::new(0x2001, 0xdb8, 4, 0, 0, 0, 0, 77),
        ..local(0, 4)
    };
    m.address_ready(again);
    assert_eq!(m.attachment(), Attachment::Away(local(0, 4)), "the same network");
}

#[test]
fn a_router_is_lost_when_so_many_of_its_advertisements_are() {
    // RFC 6275 section 11.5.1, with the advertisement interval option of section 7.3
    let mut m = movement(HandoffPolicy::OnLostAdvertisements, &[]);
    m.address_ready(local(0, 2));
    m.address_ready(local(1, 3));
    assert_eq!(m.poll_timeout(), None, "nothing says when they are due");
    m.handle_advertisement(at(0), InterfaceId(0), ROUTER, &advertisement(None, 1800));
    assert_eq!(m.poll_timeout(), None);
    m.handle_advertisement(at(0), InterfaceId(0), ROUTER, &advertisement(Some(0), 1800));
    assert_eq!(m.poll_timeout(), None);
    m.handle_advertisement(at(0), InterfaceId(0), ROUTER, &advertisement(Some(100), 1800));
    m.handle_advertisement(at(50), InterfaceId(1), ROUTER, &advertisement(Some(100), 1800));
    assert_eq!(m.poll_timeout(), Some(at(200)), "two");
    m.handle_advertisement(at(100), InterfaceId(0), ROUTER, &advertisement(Some(100), 1800));
    m.handle_advertisement(at(150), InterfaceId(0), ROUTER, &advertisement(Some(100), 0));
    assert_eq!(
        m.poll_timeout(),
        Some(at(300)),
        "who is no default router is not listened to"
    );
    m.handle_advertisement(at(250), InterfaceId(1), ROUTER, &advertisement(Some(100), 1800));
    m.handle_timeout(at(299));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 2)));
    m.handle_timeout(at(300));
    assert_eq!(m.attachment(), Attachment::Away(local(1, 3)));
    assert_eq!(m.poll_timeout(), Some(at(450)));
    // no better one is there when this one is missed as well
    m.handle_timeout(at(450));
    assert_eq!(m.attachment(), Attachment::Away(local(1, 3)), "better than none");
    assert_eq!(m.poll_timeout(), None);
    m.handle_advertisement(at(500), InterfaceId(0), ROUTER, &advertisement(Some(100), 1800));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 2)), "heard again");
}

#[test]
fn the_interval_of_advertisements_that_do_not_say_may_be_set() {
    let mut m = Movement::new(&MobileNodeConfig {
        home_address: local(0, 1).address,
        handoff: HandoffPolicy::OnLostAdvertisements,
        lost_advertisements: 3,
        advertisement_interval: Some(Duration::from_millis(40)),
        ..MobileNodeConfig::default()
    });
    m.address_ready(local(0, 2));
    m.handle_advertisement(at(10), InterfaceId(0), ROUTER, &advertisement(None, 1800));
    assert_eq!(m.poll_timeout(), Some(at(130)));
    m.handle_advertisement(at(10), InterfaceId(0), ROUTER, &advertisement(Some(100), 1800));
    assert_eq!(m.poll_timeout(), Some(at(310)), "what the router says goes first");
}

/// RFC 4862 section 5.5.4: what is deprecated is used as long as there is nothing else.
#[test]
fn a_deprecated_care_of_address_is_left_for_another_of_the_same_link() {
    for policy in [HandoffPolicy::OnLinkLoss, HandoffPolicy::OnNewRouter] {
        let mut m = movement(policy, &[]);
        m.address_ready(local(0, 2));
        m.address_deprecated(local(0, 2));
        assert_eq!(m.attachment(), Attachment::Away(local(0, 2)));
        m.address_ready(local(0, 3));
        assert_eq!(m.attachment(), Attachment::Away(local(0, 3)));
        m.address_deprecated(local(0, 3));
        assert_eq!(m.attachment(), Attachment::Away(local(0, 3)), "neither is better");
    }
}

#[test]
fn a_home_link_with_another_prefix_is_not_left() {
    for policy in [HandoffPolicy::OnLinkLoss, HandoffPolicy::OnNewRouter] {
        let mut m = movement(policy, &[]);
        m.address_ready(local(0, 1));
        m.address_deprecated(local(0, 1));
        m.address_ready(local(0, 2));
        assert_eq!(m.attachment(), Attachment::Home(InterfaceId(0)));
    }
}

#[test]
fn an_interface_that_is_asked_for_is_used_until_it_is_lost() {
    let mut m = movement(HandoffPolicy::OnLinkLoss, &[]);
    m.prefer(InterfaceId(1));
    m.address_ready(local(0, 2));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 2)), "there is no other");
    m.address_ready(local(1, 3));
    assert_eq!(m.attachment(), Attachment::Away(local(1, 3)));
    m.prefer(InterfaceId(0));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 2)));
    // nothing got through, and who asks for it tries again
    m.silent(at(0));
    assert_eq!(m.attachment(), Attachment::Away(local(1, 3)));
    m.prefer(InterfaceId(0));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 2)));
    // one without an address changes nothing
    m.prefer(InterfaceId(2));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 2)));
    // nor does one whose addresses are all deprecated, where there is another
    m.address_deprecated(local(1, 3));
    m.prefer(InterfaceId(1));
    assert_eq!(m.attachment(), Attachment::Away(local(0, 2)));
    m.address_lost(local(0, 2));
    assert_eq!(m.attachment(), Attachment::Away(local(1, 3)));
}
