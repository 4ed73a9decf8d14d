//! The addresses of this host by themselves.

use super::*;
use crate::InterfaceId;
use AddressRequest::{Activate, Add, Deactivate, Delete, SetPrimary};
use proptest::prelude::*;

fn a(index: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, index, 0, 0, 0, 0, 1)
}

/// The peer's.
fn peer(index: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, index)
}

fn on(interface: u8, index: u16) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(interface),
        address: a(index),
    }
}

fn l(index: u16) -> LocalAddress {
    on(0, index)
}

/// An association that was begun with so many addresses, from the first.
fn with(addresses: u16) -> LocalAddresses {
    let addresses: Vec<_> = (1..=addresses).map(l).collect();
    LocalAddresses::new(&addresses, l(1))
}

fn ask(local: &mut LocalAddresses, requests: &[AddressRequest]) {
    for (i, request) in requests.iter().enumerate() {
        assert_eq!(local.check(&requests[..i], *request), Ok(()), "{request:?}");
    }
    local.ask(requests);
}

fn known(local: &LocalAddresses) -> Vec<Ipv6Addr> {
    local.known_to_peer().map(|l| l.address).collect()
}

#[test]
fn the_source_follows_the_route_and_leaves_an_address_that_is_gone() {
    let mut local = with(3);
    assert_eq!((local.route(), local.source()), (l(1), l(1)));
    assert_eq!(local.lead_over(a(2)), Ok(()));
    assert_eq!(local.source(), l(2));
    assert_eq!(local.lead_over(a(9)), Err(AddressError::BadAddress));
    assert_eq!(local.lose(a(2)), Some(Lost::Member));
    assert_eq!((local.route(), local.source()), (l(1), l(1)));
    assert_eq!(local.lead_over(a(2)), Err(AddressError::BadAddress));
    assert_eq!(local.lose(a(2)), None, "known");
    assert_eq!(local.lose(a(9)), None, "not ours");
    // back, on another interface; the route stays
    assert_eq!(local.find_present(on(7, 2)), Some(Found::Back(l(2))));
    assert_eq!(local.find_present(on(7, 2)), None);
    assert_eq!(local.source(), l(1));
    assert_eq!(local.source_at(a(2)), Some(on(7, 2)));
    assert!(local.is_on_interface(on(7, 2)) && !local.is_on_interface(l(2)));
    // the one that it leads over moves to another interface
    assert_eq!(local.find_present(on(7, 1)), Some(Found::Back(l(1))));
    assert_eq!((local.route(), local.source()), (on(7, 1), on(7, 1)));
}

#[test]
fn without_a_source_the_last_one_is_kept_in_mind() {
    let mut local = with(2);
    local.lose(a(1));
    assert!(!local.is_stranded());
    local.lose(a(2));
    assert!(local.is_stranded());
    assert_eq!((local.route(), local.source()), (l(2), l(2)));
    assert_eq!(local.asconf_source(), None);
    assert_eq!((local.only_deactivated(), local.spare()), (None, None));
    local.find_present(l(1));
    assert_eq!((local.is_stranded(), local.source()), (false, l(1)));
}

#[test]
fn an_address_that_is_being_added_is_a_source_of_asconf_only() {
    let mut local = with(1);
    local.offer(l(5));
    assert_eq!(known(&local), [a(1)]);
    assert_eq!(local.spare(), Some(a(5)));
    ask(&mut local, &[Add(a(5)), SetPrimary(a(5))]);
    assert_eq!((known(&local), local.spare()), (vec![a(1), a(5)], None));
    assert_eq!((local.source_at(a(5)), local.asconf_source()), (None, Some(l(1))));
    assert_eq!(local.lead_over(a(5)), Ok(()));
    assert_eq!((local.source(), local.asconf_source()), (l(1), Some(l(5))));
    assert!(!local.settle(Add(a(5)), true));
    local.follow_route();
    assert_eq!(local.source(), l(5));
    // refused, it is none of ours, and no route leads over it
    local.offer(l(6));
    ask(&mut local, &[Add(a(6))]);
    assert_eq!(local.lead_over(a(6)), Ok(()));
    assert!(!local.settle(Add(a(6)), false));
    assert_eq!((local.is_own(a(6)), local.route()), (false, l(5)));
}

#[test]
fn an_asconf_leaves_from_the_best_that_there_is() {
    let mut local = with(2);
    local.find_present(l(8));
    local.offer(l(5));
    ask(&mut local, &[Add(a(5)), Delete(a(1))]);
    // the route is no longer that which is deleted
    assert_eq!((local.route(), local.asconf_source()), (l(2), Some(l(2))));
    local.lose(a(2));
    assert_eq!(local.asconf_source(), Some(l(5)), "being added");
    local.lose(a(5));
    assert_eq!(local.asconf_source(), Some(l(8)), "a spare one");
    local.lose(a(8));
    assert_eq!(local.asconf_source(), Some(l(1)), "being deleted");
    local.lose(a(1));
    assert_eq!(local.asconf_source(), None);
}

#[test]
fn what_the_peer_may_be_asked_for() {
    let bad = Err(AddressError::BadAddress);
    let last = Err(AddressError::LastAddress);
    let mut local = with(2);
    local.find_present(l(5));
    local.offer(l(6));
    ask(&mut local, &[Add(a(6))]);
    for (before, request, answer) in [
        (&[] as &[_], Add(a(5)), Ok(())),
        (&[], Add(a(9)), Ok(())),
        (&[Add(a(9))], Add(a(9)), bad),
        (&[], Add(a(1)), bad),
        (&[], Add(a(6)), bad),
        (&[], Delete(a(1)), Ok(())),
        (&[Delete(a(1))], Delete(a(1)), bad),
        (&[Delete(a(1))], Delete(a(2)), last),
        (&[Add(a(5)), Delete(a(1))], Delete(a(2)), Ok(())),
        (&[], Delete(a(5)), bad),
        (&[], Delete(a(6)), bad),
        (&[], SetPrimary(a(1)), Ok(())),
        (&[], SetPrimary(a(6)), Ok(())),
        (&[], SetPrimary(a(5)), bad),
        (&[Add(a(5))], SetPrimary(a(5)), Ok(())),
        (&[Delete(a(1))], SetPrimary(a(1)), bad),
        (&[], Deactivate(a(1)), Ok(())),
        (&[Deactivate(a(1))], Deactivate(a(1)), bad),
        (&[], Deactivate(a(5)), bad),
        (&[], Activate(a(1)), Ok(())),
        (&[Activate(a(1))], Activate(a(1)), bad),
        (&[], Activate(a(9)), bad),
    ] {
        assert_eq!(local.check(before, request), answer, "{request:?}");
    }
    ask(&mut local, &[Deactivate(a(1))]);
    assert_eq!(local.check(&[], Deactivate(a(2))), last);
    assert_eq!(local.check(&[Activate(a(1))], Deactivate(a(2))), Ok(()));
    assert_eq!(local.check(&[Add(a(5))], Deactivate(a(2))), Ok(()));
}

#[test]
fn an_address_that_came_back_before_its_deletion_was_granted_is_spare() {
    let mut local = with(2);
    ask(&mut local, &[Delete(a(2))]);
    assert!(local.is_staying(a(1)) && !local.is_staying(a(2)) && !local.is_staying(a(9)));
    local.lose(a(2));
    assert_eq!(local.find_present(l(2)), Some(Found::Back(l(2))));
    assert!(local.settle(Delete(a(2)), true), "paths from it retire");
    assert!(!local.is_staying(a(2)), "the peer knows it no more");
    let mut adding = with(1);
    adding.offer(l(2));
    ask(&mut adding, &[Add(a(2))]);
    assert!(adding.is_staying(a(2)));
    assert_eq!((known(&local), local.spare()), (vec![a(1)], Some(a(2))));
    assert!(!local.settle(Delete(a(2)), true), "settled");
    // the one that stayed away is forgotten, as is one that is back and gone once more
    for back in [false, true] {
        let mut local = with(2);
        ask(&mut local, &[Delete(a(2))]);
        local.lose(a(2));
        if back {
            local.find_present(l(2));
            local.lose(a(2));
        }
        assert!(local.settle(Delete(a(2)), true));
        assert!(!local.is_own(a(2)));
    }
    // refused, it is what it was
    let mut local = with(2);
    ask(&mut local, &[Delete(a(2))]);
    assert_eq!(local.source_at(a(2)), None);
    assert!(!local.settle(Delete(a(2)), false));
    assert_eq!(local.source_at(a(2)), Some(l(2)));
}

#[test]
fn what_another_address_took_the_place_of_waits_for_its_deletion() {
    let mut local = with(3);
    for gone in 1..=3 {
        local.lose(a(gone));
    }
    local.find_present(l(5));
    ask(&mut local, &[Add(a(5))]);
    assert_eq!(local.route(), l(5), "there is no other");
    local.replace_absent();
    let replaced = |local: &LocalAddresses| local.replaced().collect::<Vec<_>>();
    assert_eq!(replaced(&local), [a(1), a(2), a(3)]);
    local.settle(Add(a(5)), true);
    local.find_present(l(2));
    assert_eq!(replaced(&local), [a(1), a(3)], "back");
    ask(&mut local, &[Delete(a(3))]);
    assert_eq!(replaced(&local), [a(1)]);
    local.settle(Delete(a(3)), false);
    assert_eq!(replaced(&local), [a(1), a(3)]);
}

#[test]
fn only_deactivated_addresses_are_told_of() {
    let mut local = with(2);
    assert_eq!(local.only_deactivated(), None);
    ask(&mut local, &[Deactivate(a(1))]);
    local.settle(Deactivate(a(1)), true);
    assert_eq!(local.only_deactivated(), None);
    local.lose(a(2));
    assert_eq!(local.only_deactivated(), Some(a(1)));
    ask(&mut local, &[Activate(a(1))]);
    assert_eq!(local.only_deactivated(), Some(a(1)), "not before it is granted");
    local.settle(Activate(a(1)), true);
    assert_eq!(local.only_deactivated(), None);
}

#[test]
fn a_destination_is_sent_to_from_where_the_routing_table_has_it() {
    let mut local = with(2);
    assert!(local.reach(peer(1), Some(a(2))));
    assert_eq!(
        [1, 2].map(|i| local.source_towards(peer(i))),
        [l(2), l(1)],
        "says nothing of others"
    );
    assert!(local.reaches(l(2), peer(1)) && !local.reaches(l(1), peer(1)));
    // while it is a source
    local.lose(a(2));
    assert_eq!(local.source_towards(peer(1)), l(1));
    local.find_present(l(2));
    assert_eq!(local.source_towards(peer(1)), l(2));
    local.forget_destination(peer(1));
    assert_eq!(local.source_towards(peer(1)), l(1));
    // a route for all destinations wins, for good
    local.reach(peer(1), Some(a(2)));
    assert_eq!(local.lead_over(a(1)), Ok(()));
    assert_eq!(local.source_towards(peer(1)), l(1));
    assert!(!local.reach(peer(1), Some(a(2))));
    assert_eq!(local.source_towards(peer(1)), l(1));
}

#[test]
fn a_handshake_begins_anew_from_what_there_is() {
    let mut local = with(2);
    assert!(
        !local.replace_all_by_spares(),
        "nothing but what the peer was named"
    );
    local.lose(a(1));
    local.lose(a(2));
    assert!(!local.replace_all_by_spares());
    local.find_present(l(5));
    local.find_present(l(6));
    assert!(local.replace_all_by_spares());
    assert_eq!(known(&local), [a(5), a(6)]);
    assert_eq!((local.route(), local.source()), (l(5), l(5)));
}

#[test]
fn a_restarted_association_knows_of_the_host_what_the_former_one_knew() {
    let mut former = with(3);
    former.find_present(l(4));
    former.offer(l(5));
    former.offer(l(6));
    ask(&mut former, &[Add(a(5)), Add(a(6)), Delete(a(2)), Delete(a(3))]);
    former.lose(a(6));
    former.lose(a(3));
    former.find_present(l(3));
    former.reach(peer(1), Some(a(1)));
    let mut local = LocalAddresses::new(&[l(1)], l(1));
    local.inherit(former);
    assert_eq!(known(&local), [a(1)]);
    let spares = [2, 3, 4, 5, 6].map(|i| local.is_own(a(i)));
    assert_eq!(spares, [false, true, true, true, false]);
    assert!(local.reaches(l(1), peer(1)));
}

#[test]
fn spare_addresses_are_bounded() {
    let mut local = with(1);
    for index in 2..2 + MAX_SPARES as u16 {
        assert_eq!(local.find_present(l(index)), Some(Found::Spare));
    }
    assert_eq!(local.find_present(l(99)), None);
    local.lose(a(2));
    assert_eq!(local.find_present(l(99)), Some(Found::Spare));
}

/// A move of the host, its user or the peer.
#[derive(Clone, Debug)]
enum Move {
    Lose(u16),
    Find(u8, u16),
    LeadOver(u16),
    Reach(u16, Option<u16>),
    Ask(AddressRequest),
    /// The peer answers the first request that waits.
    Answer(bool),
    Replace,
    BeginAnew,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let index = || 1..6_u16;
    let request = (0..5_u8, index()).prop_map(|(kind, i)| match kind {
        0 => Add(a(i)),
        1 => Delete(a(i)),
        2 => SetPrimary(a(i)),
        3 => Deactivate(a(i)),
        _ => Activate(a(i)),
    });
    let one = prop_oneof![
        3 => index().prop_map(Move::Lose),
        3 => (0..2_u8, index()).prop_map(|(interface, i)| Move::Find(interface, i)),
        1 => index().prop_map(Move::LeadOver),
        1 => (index(), proptest::option::of(index())).prop_map(|(to, from)| Move::Reach(to, from)),
        4 => request.prop_map(Move::Ask),
        4 => any::<bool>().prop_map(Move::Answer),
        1 => Just(Move::Replace),
        1 => Just(Move::BeginAnew),
    ];
    proptest::collection::vec(one, 0..40)
}

#[test]
fn an_address_that_is_deleted_and_added_again_on_another_interface_is_the_route_there() {
    let mut local = with(2);
    local.find_present(on(1, 1));
    local.lose(a(2));
    ask(&mut local, &[Delete(a(1))]);
    local.find_present(l(2));
    local.settle(Delete(a(1)), true);
    local.follow_route();
    assert_eq!(local.source(), l(2));
    local.offer(l(1));
    ask(&mut local, &[Add(a(1))]);
    local.settle(Add(a(1)), true);
    local.follow_route();
    assert_eq!(local.check_invariants(), Ok(()));
    assert_eq!((local.route(), local.source()), (l(1), l(1)));
}

proptest! {
    #[test]
    fn packets_leave_from_an_address_that_an_interface_and_the_peer_have(moves in moves()) {
        let mut local = with(2);
        // what an interface has, and what was asked
        let mut present = vec![a(1), a(2)];
        let mut asked = std::collections::VecDeque::new();
        for one in moves {
            match one {
                Move::Lose(i) => {
                    local.lose(a(i));
                    present.retain(|&p| p != a(i));
                }
                Move::Find(interface, i) => {
                    let known = local.is_own(a(i));
                    local.find_present(on(interface, i));
                    if !present.contains(&a(i)) {
                        present.push(a(i));
                    }
                    prop_assert!(known || local.is_own(a(i)));
                }
                Move::LeadOver(i) => {
                    let may = local.lead_over(a(i)).is_ok();
                    prop_assert!(!may || present.contains(&a(i)));
                }
                Move::Reach(to, from) => {
                    local.reach(peer(to), from.map(a));
                }
                Move::Ask(request) => {
                    // an interface has what the user asks to be added
                    let is_new = matches!(request, Add(_)) && !present.contains(&request.address());
                    if !is_new && local.check(&[], request).is_ok() {
                        if let Add(address) = request
                            && !local.is_own(address)
                        {
                            local.offer(LocalAddress { interface: InterfaceId(0), address });
                        }
                        local.ask(&[request]);
                        asked.push_back(request);
                    }
                }
                Move::Answer(granted) => {
                    if let Some(request) = asked.pop_front() {
                        local.settle(request, granted);
                        local.follow_route();
                    }
                }
                Move::Replace if local.is_stranded() => local.replace_absent(),
                Move::BeginAnew if local.is_stranded() && asked.is_empty() => {
                    local.replace_all_by_spares();
                }
                Move::Replace | Move::BeginAnew => {}
            }
            prop_assert_eq!(local.check_invariants(), Ok(()));
            let usable: Vec<_> = local.usable().map(|l| l.address).collect();
            let known = known(&local);
            prop_assert!(usable.iter().all(|u| present.contains(u) && known.contains(u)));
            for to in 1..6 {
                let from = local.source_towards(peer(to)).address;
                prop_assert!(local.is_stranded() || usable.contains(&from));
            }
            let any_present = present.iter().any(|&p| local.is_present(p));
            prop_assert_eq!(local.asconf_source().is_some(), any_present);
            for l in local.replaced() {
                prop_assert!(!present.contains(&l));
            }
        }
    }
}
