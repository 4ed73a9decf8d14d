//! Deactivation of an address: a private extension, the gentle form of SIGMA's step 5.

use crate::common::*;
use segue_proto::Duration;
use segue_proto::sctp::{AddressChange, AddressError, AddressRequest, Config, Event, RetransmitTo};
use segue_wire::sctp::{Chunk, Parameter};
use std::net::Ipv6Addr;

fn config() -> Config {
    Config {
        address_deactivation: true,
        hb_interval: Some(Duration::from_secs(5)),
        ..Config::default()
    }
}

fn change(net: &mut Net, changes: &[AddressChange]) -> Result<(), AddressError> {
    net.command(B, |b, now| b.change_addresses(now, changes))
}

/// B is reached at 2 from now on, and wants nothing at 1.
fn moved_over() -> Net {
    let mut net = Net::established(config(), [1, 2]);
    net.run_for(ms(200));
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    change(
        &mut net,
        &[
            AddressChange::SetPrimary(address(B, 2)),
            AddressChange::Deactivate(address(B, 1)),
        ],
    )
    .unwrap();
    net.run_for(ms(200));
    net
}

fn destinations_of(net: &Net, host: usize) -> Vec<Ipv6Addr> {
    let mut all: Vec<_> = net
        .log
        .iter()
        .filter(|d| d.from == host)
        .map(|d| d.packet.ip.destination)
        .collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn a_deactivated_address_gets_no_data_no_retransmissions_and_no_heartbeats() {
    let mut net = moved_over();
    assert_eq!(
        answered(&net),
        [
            (AddressRequest::SetPrimary(address(B, 2)), true),
            (AddressRequest::Deactivate(address(B, 1)), true)
        ]
    );
    assert!(net.has_event(A, &Event::PeerAddressDeactivated(address(B, 1))));
    net.log.clear();
    // everything is lost: retransmissions would go to an alternate if there were one
    net.rule = Box::new(|d| if d.from == A { vec![] } else { vec![ms(10)] });
    for i in 0..4 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(Duration::from_secs(40));
    assert!(net.association(A).counters().t3_expiries >= 3);
    assert_eq!(destinations_of(&net, A), [address(B, 2)]);
    net.rule = Box::new(|_| vec![ms(10)]);
    net.run_for(Duration::from_secs(120));
    assert_eq!(net.messages[B].len(), 4);
    assert!(net.trace().iter().filter(|t| *t == "A HEARTBEAT").count() > 5);
    assert_eq!(destinations_of(&net, A), [address(B, 2)]);
}

#[test]
fn an_activated_address_is_used_at_once_and_as_it_was() {
    let mut net = moved_over();
    let before = net
        .association(A)
        .paths()
        .find(|p| p.destination == address(B, 1))
        .unwrap();
    net.run_for(Duration::from_secs(60));
    net.log.clear();
    let start = net.now;
    net.command(B, |b, now| b.set_route(now, address(B, 1))).unwrap();
    change(
        &mut net,
        &[
            AddressChange::Activate(address(B, 1)),
            AddressChange::SetPrimary(address(B, 1)),
        ],
    )
    .unwrap();
    net.run_for(ms(10));
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(ms(100));
    // no Add, no path verification: ASCONF, answer, data
    assert_eq!(
        &net.trace()[..3],
        ["B AUTH ASCONF", "A AUTH ASCONF-ACK", "A DATA"]
    );
    assert_eq!(
        (net.log[2].at, net.log[2].packet.ip.destination),
        (start + ms(10), address(B, 1))
    );
    let after = net
        .association(A)
        .paths()
        .find(|p| p.destination == address(B, 1))
        .unwrap();
    assert_eq!((after.rto, after.state), (before.rto, before.state));
    assert!(net.has_event(A, &Event::PeerAddressActivated(address(B, 1))));
    let counters = net.association(A).counters();
    assert_eq!((counters.deactivations, counters.activations), (1, 1));
}

#[test]
fn what_is_outstanding_moves_at_once_when_its_address_is_deactivated() {
    let mut net = Net::established(config(), [1, 2]);
    net.run_for(ms(200));
    net.rule = Box::new(|d| {
        let lost = d.packet.ip.destination == address(B, 1);
        if lost { vec![] } else { vec![ms(10)] }
    });
    for i in 0..3 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    change(&mut net, &[AddressChange::Deactivate(address(B, 1))]).unwrap();
    net.run_for(ms(25));
    assert_eq!(net.messages[B].len(), 3);
    assert_eq!(net.association(A).primary_path(), address(B, 2));
    assert_eq!(net.association(A).counters().t3_expiries, 0);
}

#[test]
fn the_last_active_address_cannot_be_deactivated() {
    let mut net = moved_over();
    assert_eq!(
        change(&mut net, &[AddressChange::Deactivate(address(B, 2))]),
        Err(AddressError::LastAddress)
    );
}

#[test]
fn deleting_the_last_active_address_activates_another() {
    let mut net = moved_over();
    net.command(B, |b, now| b.set_route(now, address(B, 1))).unwrap();
    net.command(B, |b, now| b.delete_address(now, address(B, 2)))
        .unwrap();
    net.run_for(ms(100));
    assert!(net.has_event(A, &Event::PeerAddressActivated(address(B, 1))));
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(ms(100));
    assert_eq!(net.messages[B].len(), 1);
}

#[test]
fn a_peer_without_the_extension_is_asked_to_delete() {
    let without = Config {
        address_deactivation: false,
        ..config()
    };
    let mut net = Net::new([without, config()], [1, 2], ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    assert!(!net.association(B).can_deactivate());
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    assert_eq!(
        change(&mut net, &[AddressChange::Deactivate(address(B, 1))]),
        Err(AddressError::NotPossible)
    );
    net.command(B, |b, now| b.deactivate_address(now, address(B, 1)))
        .unwrap();
    net.run_for(ms(100));
    assert_eq!(answered(&net), [(AddressRequest::Delete(address(B, 1)), true)]);
    assert!(net.has_event(A, &Event::PeerAddressDeleted(address(B, 1))));
}

#[test]
fn it_is_offered_only_where_it_is_configured() {
    for offers in [false, true] {
        let config = Config {
            address_deactivation: offers,
            ..Config::default()
        };
        let mut net = Net::symmetric(config, [1, 1], 1);
        net.connect();
        net.run_for(ms(100));
        let offered = |d: &Departure| match &d.sctp().chunks[0] {
            Chunk::Init(init) | Chunk::InitAck(init) => {
                Some(init.parameters.contains(&Parameter::AddressDeactivationSupported))
            }
            _ => None,
        };
        let said: Vec<_> = net.log.iter().filter_map(offered).collect();
        assert_eq!(said, [offers, offers]);
        assert_eq!(net.association(A).can_deactivate(), offers);
    }
}

#[test]
fn the_only_address_left_is_activated_when_the_others_are_gone() {
    let mut net = moved_over();
    net.owned[B].retain(|a| *a != address(B, 2));
    let start = net.now;
    net.command(B, |b, now| b.local_address_removed(now, address(B, 2)));
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(Duration::from_secs(3));
    assert!(net.has_event(A, &Event::PeerAddressActivated(address(B, 1))));
    assert!(
        net.events[A]
            .iter()
            .any(|(at, e)| *e == Event::PrimaryChanged(address(B, 1)) && *at < start + ms(20))
    );
    assert_eq!(net.messages[B].len(), 1);
}

#[test]
fn what_was_outstanding_at_a_deactivated_address_goes_elsewhere_though_retransmissions_stay() {
    let stay = Config {
        retransmit_to: RetransmitTo::SamePath,
        ..config()
    };
    let mut net = Net::established(stay, [1, 2]);
    net.run_for(ms(200));
    net.rule = Box::new(|d| {
        if d.data().next().is_some() && d.packet.ip.destination == address(B, 1) {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    net.send(A, 0, synthetic(0, 1000));
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    net.log.clear();
    change(&mut net, &[AddressChange::Deactivate(address(B, 1))]).unwrap();
    net.run_for(ms(300));
    assert_eq!(destinations_of(&net, A), [address(B, 2)]);
    assert_eq!(net.messages[B].len(), 1);
}

#[test]
fn a_peer_that_wants_data_only_where_nothing_answers_is_lost() {
    // RFC 9260 section 5.4: no data goes to an address that is not confirmed, so no T3-rtx would ever tell
    let impatient = Config {
        association_max_retrans: 3,
        ..config()
    };
    let mut net = Net::new([impatient, config()], [1, 1], ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    net.rule = Box::new(|d| {
        let heartbeat = matches!(d.sctp().chunks[0], Chunk::Heartbeat(_));
        if heartbeat && d.packet.ip.destination == address(B, 2) {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    net.owned[B].push(address(B, 2));
    change(&mut net, &[AddressChange::Add(local(B, 2))]).unwrap();
    net.run_for(ms(100));
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    change(&mut net, &[AddressChange::Deactivate(address(B, 1))]).unwrap();
    net.run_for(ms(100));
    assert_eq!(
        answered(&net),
        [
            (AddressRequest::Add(address(B, 2)), true),
            (AddressRequest::Deactivate(address(B, 1)), true)
        ]
    );
    net.send(A, 0, synthetic(0, 100));
    net.run_for(Duration::from_secs(60));
    assert!(net.has_event(A, &Event::Lost));
}

#[test]
fn an_address_that_is_activated_because_the_other_is_deleted_gets_heartbeats_again() {
    let mut net = moved_over();
    net.command(B, |b, now| b.set_route(now, address(B, 1))).unwrap();
    change(&mut net, &[AddressChange::Delete(address(B, 2))]).unwrap();
    net.run_for(ms(100));
    assert!(net.has_event(A, &Event::PeerAddressActivated(address(B, 1))));
    net.log.clear();
    net.run_for(Duration::from_secs(20));
    let heartbeats = net.log.iter().filter(|d| {
        let heartbeat = matches!(d.sctp().chunks[0], Chunk::Heartbeat(_));
        d.from == A && heartbeat && d.packet.ip.destination == address(B, 1)
    });
    assert!(heartbeats.count() >= 2);
}
