//! RFC 5061: addresses that come, go and are preferred while an association is up. Every ASCONF and its answer is
//! authenticated, as section 4.1 asks.

use segue_conformance::expect;
use segue_conformance::script::chunks::{init, sack};
use segue_conformance::script::{Script, ms, ours, peer, quiet};
use segue_proto::contract::LocalAddress;
use segue_proto::sctp::{AddressError, AddressRequest, Event, PathState};
use segue_proto::{Instant, InterfaceId};
use segue_wire::AsconfSerial;
use segue_wire::sctp::{Asconf, AsconfAck, AsconfParameter, AsconfResponse, Chunk, ErrorCause};
use std::net::Ipv6Addr;

fn serial(n: u32) -> AsconfSerial {
    // section 5.1 A2 and 5.2: the first one is the initial TSN
    AsconfSerial(init().initial_tsn.0).add(n)
}

fn add(correlation_id: u32, address: Ipv6Addr) -> AsconfParameter {
    AsconfParameter::AddIpAddress {
        correlation_id,
        address,
    }
}

fn delete(correlation_id: u32, address: Ipv6Addr) -> AsconfParameter {
    AsconfParameter::DeleteIpAddress {
        correlation_id,
        address,
    }
}

fn set_primary(correlation_id: u32, address: Ipv6Addr) -> AsconfParameter {
    AsconfParameter::SetPrimaryAddress {
        correlation_id,
        address,
    }
}

fn asconf(n: u32, parameters: Vec<AsconfParameter>) -> Chunk {
    Chunk::Asconf(Box::new(Asconf {
        serial_number: serial(n),
        address: peer(1),
        parameters,
    }))
}

/// The peer asks, from its address `from`, and gets its answer.
fn ask(t: &mut Script, from: Ipv6Addr, n: u32, parameters: Vec<AsconfParameter>) -> AsconfAck {
    let signed = t.signed([asconf(n, parameters)]);
    t.send_from(from, signed);
    let ack = expect!(t, Chunk::Auth(_), Chunk::AsconfAck(ack) => ack.clone());
    let last = t.last.clone().expect("packet");
    assert!(t.auth.as_ref().expect("auth").covers(&last.chunks));
    // section 5.2 E6: it goes back to where the ASCONF came from
    assert_eq!(last.destination, from);
    assert_eq!(ack.serial_number, serial(n));
    *ack
}

fn causes(ack: &AsconfAck) -> Vec<ErrorCause> {
    ack.responses
        .iter()
        .flat_map(|r| match r {
            AsconfResponse::ErrorCauseIndication { causes, .. } => causes.clone(),
            AsconfResponse::SuccessIndication { .. } => Vec::new(),
        })
        .collect()
}

fn destinations(t: &Script) -> Vec<Ipv6Addr> {
    t.association().paths().map(|p| p.destination).collect()
}

/// The next ASCONF of the endpoint, which must be authenticated.
fn asconf_of(t: &mut Script) -> Asconf {
    let asconf = expect!(t, Chunk::Auth(_), Chunk::Asconf(asconf) => asconf.clone());
    let last = t.last.as_ref().expect("packet");
    assert!(t.auth.as_ref().expect("auth").covers(&last.chunks));
    *asconf
}

/// The peer grants everything.
fn grant(t: &mut Script, asconf: &Asconf) {
    let ack = AsconfAck {
        serial_number: asconf.serial_number,
        responses: Vec::new(),
    };
    let signed = t.signed([Chunk::AsconfAck(Box::new(ack))]);
    t.send(signed);
}

fn local(n: u16) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(n as u8),
        address: ours(n),
    }
}

#[test]
fn s4_2_1_an_added_address_is_unconfirmed_until_its_heartbeat_is_answered() {
    // section 5.3 F1, RFC 9260 section 5.4
    let mut t = Script::authenticated(quiet(), 1);
    let ack = ask(&mut t, peer(1), 0, vec![add(1, peer(2))]);
    assert!(causes(&ack).is_empty());
    t.expect_event(&Event::PeerAddressAdded(peer(2)));
    let info = expect!(t, Chunk::Heartbeat(info) => info.clone());
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(2)));
    let state = |t: &Script| {
        t.association()
            .paths()
            .find(|p| p.destination == peer(2))
            .map(|p| p.state)
    };
    assert_eq!(state(&t), Some(PathState::Unconfirmed));
    t.send_from(peer(2), [Chunk::HeartbeatAck(info)]);
    assert_eq!(state(&t), Some(PathState::Active));
}

#[test]
fn s4_2_2_a_deleted_address_is_no_destination_any_more() {
    let mut t = Script::authenticated(quiet(), 1);
    ask(&mut t, peer(1), 0, vec![add(1, peer(2))]);
    t.forget();
    ask(&mut t, peer(1), 1, vec![delete(1, peer(2))]);
    assert_eq!(destinations(&t), [peer(1)]);
    t.expect_event(&Event::PeerAddressDeleted(peer(2)));
    t.silence(ms(60_000));
}

#[test]
fn s4_2_4_set_primary_moves_new_data_to_a_confirmed_address() {
    let mut t = Script::authenticated(quiet(), 1);
    ask(&mut t, peer(1), 0, vec![add(1, peer(2))]);
    let info = expect!(t, Chunk::Heartbeat(info) => info.clone());
    t.send_from(peer(2), [Chunk::HeartbeatAck(info)]);
    ask(&mut t, peer(1), 1, vec![set_primary(1, peer(2))]);
    assert_eq!(t.association().primary_path(), peer(2));
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(2)));
}

#[test]
fn s5_2_requests_are_worked_off_in_order_and_each_once() {
    let mut t = Script::authenticated(quiet(), 1);
    let first = ask(
        &mut t,
        peer(1),
        0,
        vec![add(1, peer(2)), add(2, peer(3)), delete(3, peer(2))],
    );
    assert_eq!(destinations(&t), [peer(1), peer(3)]);
    t.forget();
    // E3: the same once more is answered from the cache
    assert_eq!(ask(&mut t, peer(1), 0, vec![add(1, peer(9))]), first);
    assert_eq!(destinations(&t), [peer(1), peer(3)]);
    // E4: anything but the next is dropped
    for n in [2, 7] {
        let signed = t.signed([asconf(n, vec![add(1, peer(9))])]);
        t.send(signed);
    }
    t.wait(ms(100));
    assert!(
        t.take_all()
            .iter()
            .all(|p| !matches!(p.chunks.last(), Some(Chunk::AsconfAck(_))))
    );
    assert_eq!(t.association().counters().refused.bad_asconf_serial, 2);
}

#[test]
fn s5_3_f7_the_last_address_cannot_be_deleted() {
    let mut t = Script::authenticated(quiet(), 1);
    let ack = ask(&mut t, peer(1), 0, vec![delete(5, peer(1))]);
    assert!(matches!(
        causes(&ack)[..],
        [ErrorCause::DeleteLastRemainingAddress(_)]
    ));
    assert_eq!(ack.responses[0].correlation_id(), 5);
    assert_eq!(destinations(&t), [peer(1)]);
}

#[test]
fn s5_3_f8_the_source_address_cannot_be_deleted() {
    let mut t = Script::authenticated(quiet(), 1);
    ask(&mut t, peer(1), 0, vec![add(1, peer(2))]);
    t.forget();
    let ack = ask(&mut t, peer(1), 1, vec![delete(5, peer(1))]);
    assert!(matches!(causes(&ack)[..], [ErrorCause::DeleteSourceAddress(_)]));
    assert_eq!(destinations(&t), [peer(1), peer(2)]);
}

#[test]
fn s4_2_1_the_wildcard_adds_the_source_address_and_s4_2_2_deletes_all_but_it() {
    let mut t = Script::authenticated(quiet(), 1);
    // section 4.1.1: the association is found by the address parameter
    ask(&mut t, peer(4), 0, vec![add(1, Ipv6Addr::UNSPECIFIED)]);
    assert!(destinations(&t).contains(&peer(4)));
    t.forget();
    ask(&mut t, peer(4), 1, vec![delete(1, Ipv6Addr::UNSPECIFIED)]);
    assert_eq!(destinations(&t), [peer(4)]);
}

#[test]
fn s4_2_4_set_primary_of_an_address_that_is_none_is_an_error() {
    let mut t = Script::authenticated(quiet(), 1);
    let ack = ask(&mut t, peer(1), 0, vec![set_primary(1, peer(9))]);
    assert!(
        matches!(causes(&ack)[..], [ErrorCause::UnresolvableAddress(_)]),
        "{ack:?}"
    );
    assert_eq!(t.association().primary_path(), peer(1));
}

#[test]
fn s5_1_after_an_error_nothing_more_is_done_and_what_went_before_is_named() {
    let mut t = Script::authenticated(quiet(), 1);
    let ack = ask(
        &mut t,
        peer(1),
        0,
        vec![add(1, peer(2)), delete(2, peer(1)), add(3, peer(3))],
    );
    let ids: Vec<_> = ack.responses.iter().map(AsconfResponse::correlation_id).collect();
    assert_eq!(ids, [1, 2]);
    assert!(matches!(
        ack.responses[0],
        AsconfResponse::SuccessIndication { .. }
    ));
    assert!(!destinations(&t).contains(&peer(3)));
}

#[test]
fn s5_1_a_request_of_an_unknown_type_is_reported() {
    let mut t = Script::authenticated(quiet(), 1);
    let unknown = AsconfParameter::Unknown {
        parameter_type: 0xc0ff,
        correlation_id: 9,
        value: b"what"[..].into(),
    };
    let ack = ask(&mut t, peer(1), 0, vec![unknown]);
    assert!(
        matches!(causes(&ack)[..], [ErrorCause::UnrecognizedParameters(_)]),
        "{ack:?}"
    );
}

#[test]
fn s5_1_an_address_of_ours_is_a_source_of_asconf_only_until_it_is_granted() {
    // section 5.3 F1
    let mut t = Script::authenticated(quiet(), 1);
    t.command(|a, now| a.add_address(now, local(2))).expect("add");
    let first = asconf_of(&mut t);
    assert_eq!(first.serial_number.0, t.our_tsn.0);
    assert_eq!(first.address, ours(1));
    t.command(|a, now| a.set_route(now, ours(2))).expect("route");
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.source), Some(ours(1)));
    t.send([sack(t.our_tsn)]);
    grant(&mut t, &first);
    assert!(t.events.iter().any(
        |e| matches!(e, Event::AsconfAnswered { results, .. } if results[0].request == AddressRequest::Add(ours(2)) && results[0].outcome.is_ok())
    ));
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.source), Some(ours(2)));
}

#[test]
fn s5_1_c1_one_asconf_is_outstanding_at_a_time() {
    let mut t = Script::authenticated(quiet(), 1);
    t.command(|a, now| a.add_address(now, local(2))).expect("add");
    t.command(|a, now| a.add_address(now, local(3))).expect("add");
    let first = asconf_of(&mut t);
    assert_eq!(first.parameters.len(), 1);
    t.silence(ms(500));
    grant(&mut t, &first);
    let second = asconf_of(&mut t);
    assert_eq!(second.serial_number, first.serial_number.next());
    // correlation ids are not used twice
    assert_ne!(
        second.parameters[0].correlation_id(),
        first.parameters[0].correlation_id()
    );
}

#[test]
fn s5_1_b_t4_repeats_the_same_asconf_with_the_rto_doubling() {
    let mut t = Script::authenticated(quiet(), 1);
    t.command(|a, now| a.add_address(now, local(2))).expect("add");
    let first = asconf_of(&mut t);
    for seconds in [1, 3, 7] {
        assert_eq!(asconf_of(&mut t), first);
        assert_eq!(t.now, Instant::ZERO + ms(1000 * seconds));
    }
}

#[test]
fn s5_1_d_an_error_in_the_answer_leaves_things_as_they_were() {
    let mut t = Script::authenticated(quiet(), 1);
    t.command(|a, now| a.add_address(now, local(2))).expect("add");
    let asked = asconf_of(&mut t);
    let ack = AsconfAck {
        serial_number: asked.serial_number,
        responses: vec![AsconfResponse::ErrorCauseIndication {
            correlation_id: asked.parameters[0].correlation_id(),
            causes: vec![ErrorCause::OperationRefusedResourceShortage(Default::default())],
        }],
    };
    let signed = t.signed([Chunk::AsconfAck(Box::new(ack))]);
    t.send(signed);
    assert!(
        t.events
            .iter()
            .any(|e| matches!(e, Event::AsconfAnswered { results, .. } if results[0].outcome.is_err()))
    );
    assert_eq!(t.association().local_addresses().count(), 1);
}

#[test]
fn s5_1_d0_an_answer_to_what_was_never_asked_aborts() {
    let mut t = Script::authenticated(quiet(), 1);
    let ack = AsconfAck {
        serial_number: AsconfSerial(t.our_tsn.0).add(10),
        responses: Vec::new(),
    };
    let signed = t.signed([Chunk::AsconfAck(Box::new(ack))]);
    t.send(signed);
    assert!(!t.is_alive());
    let abort = t.receive();
    assert!(
        matches!(abort.chunks.last(), Some(Chunk::Abort { causes, .. }) if causes == &[ErrorCause::IllegalAsconfAck])
    );
}

#[test]
fn s4_2_7_a_peer_that_cannot_authenticate_is_never_sent_an_asconf() {
    let parameters = vec![segue_conformance::script::chunks::extensions(&[0xc1, 0x80])];
    let mut t = Script::established_with(quiet(), 2, parameters);
    let refused = t.command(|a, now| a.add_address(now, local(3)));
    assert_eq!(refused, Err(AddressError::NotPossible));
    t.silence(ms(1000));
}

#[test]
fn s5_3_what_is_outstanding_to_a_deleted_address_goes_elsewhere_at_once() {
    let mut t = Script::authenticated(quiet(), 1);
    ask(&mut t, peer(1), 0, vec![add(1, peer(2))]);
    let info = expect!(t, Chunk::Heartbeat(info) => info.clone());
    t.send_from(peer(2), [Chunk::HeartbeatAck(info)]);
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(1)));
    let before = t.now;
    ask(&mut t, peer(2), 1, vec![delete(1, peer(1))]);
    expect!(t, Chunk::Data(chunk) if chunk.tsn == t.our_tsn);
    let last = t.last.as_ref().expect("packet");
    assert_eq!((last.destination, last.at), (peer(2), before));
}
