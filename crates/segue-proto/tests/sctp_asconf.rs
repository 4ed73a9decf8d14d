//! Dynamic address reconfiguration (RFC 5061).

use crate::common::*;
use segue_proto::Duration;
use segue_proto::sctp::{AddressError, AddressRequest, AsconfAuth, Config, Event, PathState, Profile};
use segue_wire::AsconfSerial;
use segue_wire::sctp::{Asconf, AsconfAck, AsconfParameter, AsconfResponse, Chunk, ErrorCause};
use std::net::Ipv6Addr;

fn add(net: &mut Net, n: u16) {
    net.owned[B].push(address(B, n));
    net.command(B, |b, now| b.add_address(now, local(B, n))).unwrap();
}

fn state_at_a(net: &Net, n: u16) -> Option<PathState> {
    net.association(A)
        .paths()
        .find(|p| p.destination == address(B, n))
        .map(|p| p.state)
}

/// For tests that forge an ASCONF: one that need not be authenticated. What authentication does is tested in `sctp_auth`.
fn unauthenticated() -> Config {
    Config {
        asconf_auth: AsconfAuth::None,
        ..Config::default()
    }
}

/// An ASCONF to A as B would send it next, with these requests, from `from`; gives the answer.
fn ask(
    net: &mut Net,
    from: Ipv6Addr,
    serial: AsconfSerial,
    parameters: Vec<AsconfParameter>,
) -> Option<AsconfAck> {
    let asconf = Asconf {
        serial_number: serial,
        address: address(B, 1),
        parameters,
    };
    let packet = net.forge(A, from, [Chunk::Asconf(Box::new(asconf))]);
    net.log.clear();
    net.inject(A, packet);
    net.log.iter().find_map(|d| match &d.sctp().chunks[0] {
        Chunk::AsconfAck(ack) => Some((**ack).clone()),
        _ => None,
    })
}

/// The serial number that B's first ASCONF would have: its initial TSN.
fn first_serial(net: &mut Net) -> AsconfSerial {
    net.send(B, 0, synthetic(0, 4));
    let tsn = net
        .log
        .iter()
        .find(|d| d.from == B)
        .unwrap()
        .data()
        .next()
        .unwrap()
        .tsn;
    net.run_for(ms(300));
    AsconfSerial(tsn.0)
}

#[test]
fn added_address_is_confirmed_by_a_heartbeat_then_made_primary_then_the_old_one_deleted() {
    let mut net = Net::established(Config::default(), [1, 1]);
    add(&mut net, 2);
    assert!(net.association(B).asconf_outstanding());
    net.run_for(ms(100));
    assert_eq!(
        net.trace(),
        [
            "B AUTH ASCONF",
            "A AUTH ASCONF-ACK",
            "A HEARTBEAT",
            "B HEARTBEAT-ACK"
        ]
    );
    assert_eq!(net.log[2].packet.ip.destination, address(B, 2));
    assert_eq!(state_at_a(&net, 2), Some(PathState::Active));
    let events: Vec<_> = net.events[A].iter().map(|e| e.1.clone()).collect();
    assert_eq!(
        events,
        [
            Event::PeerAddressAdded(address(B, 2)),
            Event::PeerAddressConfirmed(address(B, 2)),
            Event::PathStateChanged {
                address: address(B, 2),
                state: PathState::Active
            },
        ]
    );
    net.command(B, |b, now| b.request_set_primary(now, address(B, 2)))
        .unwrap();
    net.run_for(ms(100));
    assert!(net.has_event(A, &Event::PrimaryChanged(address(B, 2))));
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    net.command(B, |b, now| b.delete_address(now, address(B, 1)))
        .unwrap();
    net.run_for(ms(100));
    assert!(net.has_event(A, &Event::PeerAddressDeleted(address(B, 1))));
    assert_eq!(state_at_a(&net, 1), None);
    assert_eq!(
        net.association(B)
            .local_addresses()
            .map(|l| l.address)
            .collect::<Vec<_>>(),
        [address(B, 2)]
    );
    assert_eq!(
        answered(&net),
        [
            (AddressRequest::Add(address(B, 2)), true),
            (AddressRequest::SetPrimary(address(B, 2)), true),
            (AddressRequest::Delete(address(B, 1)), true),
        ]
    );
    net.log.clear();
    net.send(A, 0, synthetic(0, 100));
    net.send(B, 0, synthetic(0, 100));
    assert_eq!(net.log[0].packet.ip.destination, address(B, 2));
    assert_eq!(net.log[1].packet.ip.source, address(B, 2));
}

#[test]
fn no_data_goes_to_an_unconfirmed_primary() {
    // RFC 9260 section 5.4; B's new address does not work yet
    for (profile, expected) in [
        (Profile::Rfc9260, 1),
        (Profile::Rfc4960, 1),
        (Profile::Rfc2960, 2),
    ] {
        let mut net = Net::established(Config::new(profile), [1, 1]);
        net.rule = Box::new(|d| {
            if d.packet.ip.destination == address(B, 2) {
                vec![]
            } else {
                vec![ms(10)]
            }
        });
        add(&mut net, 2);
        net.command(B, |b, now| b.request_set_primary(now, address(B, 2)))
            .unwrap();
        net.run_for(ms(200));
        assert_eq!(net.association(A).primary_path(), address(B, 2));
        net.log.clear();
        net.send(A, 0, synthetic(0, 100));
        assert_eq!(
            net.log[0].packet.ip.destination,
            address(B, expected),
            "{profile:?}"
        );
    }
}

#[test]
fn an_unconfirmed_address_is_probed_every_rto_and_its_silence_does_not_end_the_association() {
    // RFC 9260 section 5.4
    let mut net = Net::established(Config::default(), [1, 1]);
    net.rule = Box::new(|d| {
        if d.packet.ip.destination == address(B, 2) {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    let start = net.now;
    add(&mut net, 2);
    net.run_for(Duration::from_secs(20));
    let probes: Vec<_> = net
        .log
        .iter()
        .filter(|d| d.packet.ip.destination == address(B, 2))
        .map(|d| (d.at - start).as_millis() - 10)
        .collect();
    assert_eq!(probes, [0, 1000, 3000, 7000, 15_000]);
    net.run_for(Duration::from_secs(2000));
    assert!(net.association(A).is_established());
    assert_eq!(state_at_a(&net, 2), Some(PathState::Unconfirmed));
}

#[test]
fn an_address_being_added_is_a_source_for_asconf_only() {
    // RFC 5061 section 5.3, F1
    let mut net = Net::established(Config::default(), [1, 1]);
    let mut lost = 1;
    net.rule = Box::new(move |d| {
        if names(d.sctp()).contains(&"ASCONF-ACK") && lost > 0 {
            lost -= 1;
            return vec![];
        }
        vec![ms(10)]
    });
    net.log.clear();
    add(&mut net, 2);
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    net.send(B, 0, synthetic(0, 100));
    net.run_for(ms(100));
    let sources = |net: &Net, name: &str| {
        net.log
            .iter()
            .filter(|d| d.from == B && names(d.sctp()).contains(&name))
            .map(|d| d.packet.ip.source.segments()[3])
            .collect::<Vec<_>>()
    };
    assert_eq!(sources(&net, "DATA"), [1]);
    // the retransmission comes from the new route; A finds the association by the address in the chunk
    net.run_for(Duration::from_secs(2));
    assert_eq!(sources(&net, "ASCONF"), [1, 2]);
    assert_eq!(answered(&net), [(AddressRequest::Add(address(B, 2)), true)]);
    net.log.clear();
    net.send(B, 0, synthetic(0, 100));
    assert_eq!(net.log[0].packet.ip.source, address(B, 2));
}

#[test]
fn asconf_from_an_unknown_source_is_found_by_its_address_parameter() {
    // RFC 5061 section 4.1.1; the old path is gone before the new address is known
    let mut net = Net::established(Config::default(), [1, 1]);
    net.rule = Box::new(|d| {
        let dead = address(B, 1);
        if d.packet.ip.source == dead || d.packet.ip.destination == dead {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    net.owned[B].push(address(B, 2));
    net.command(B, |b, now| {
        b.add_address(now, local(B, 2)).unwrap();
        b.set_route(now, address(B, 2)).unwrap();
    });
    net.run_for(Duration::from_secs(2));
    assert_eq!(answered(&net), [(AddressRequest::Add(address(B, 2)), true)]);
    assert_eq!(state_at_a(&net, 2), Some(PathState::Active));
}

#[test]
fn one_asconf_is_outstanding_and_the_rest_waits_for_its_answer() {
    // RFC 5061 section 5.1, C4
    let mut net = Net::established(Config::default(), [1, 1]);
    net.rule = Box::new(|_| vec![]);
    for n in 2..5 {
        add(&mut net, n);
    }
    assert_eq!(net.trace(), ["B AUTH ASCONF"]);
    net.rule = Box::new(|_| vec![ms(10)]);
    net.run_for(Duration::from_secs(3));
    let asconfs: Vec<_> = net
        .log
        .iter()
        .flat_map(|d| &d.sctp().chunks)
        .filter_map(|chunk| match chunk {
            Chunk::Asconf(a) => Some((a.serial_number, a.parameters.len())),
            _ => None,
        })
        .collect();
    let first = asconfs[0].0;
    assert_eq!(asconfs, [(first, 1), (first, 1), (first.next(), 2)]);
    assert_eq!(answered(&net).len(), 3);
}

#[test]
fn t4_doubles_and_the_association_is_lost_when_nobody_answers() {
    // RFC 5061 section 5.1, B1 to B5
    let mut net = Net::established(
        Config {
            association_max_retrans: 3,
            ..Config::default()
        },
        [1, 1],
    );
    net.rule = Box::new(|_| vec![]);
    let start = net.now;
    add(&mut net, 2);
    net.run_for(Duration::from_secs(60));
    let times: Vec<_> = net
        .log
        .iter()
        .filter(|d| names(d.sctp()) == ["AUTH", "ASCONF"])
        .map(|d| (d.at - start).as_millis() / 1000)
        .collect();
    assert_eq!(times, [0, 1, 3, 7]);
    assert!(net.has_event(B, &Event::Lost));
}

#[test]
fn duplicate_asconf_is_answered_from_the_cache_and_not_applied_again() {
    // RFC 5061 section 5.2, E2
    let mut net = Net::established(unauthenticated(), [1, 1]);
    let serial = first_serial(&mut net);
    let request = vec![AsconfParameter::AddIpAddress {
        correlation_id: 7,
        address: address(B, 9),
    }];
    let first = ask(&mut net, address(B, 1), serial, request.clone()).unwrap();
    assert_eq!(
        first,
        AsconfAck {
            serial_number: serial,
            responses: vec![]
        }
    );
    net.events[A].clear();
    assert_eq!(ask(&mut net, address(B, 1), serial, request.clone()), Some(first));
    assert!(net.events[A].is_empty());
    // one that is neither the next nor the last is dropped
    assert_eq!(ask(&mut net, address(B, 1), serial.add(5), request.clone()), None);
    assert_eq!(ask(&mut net, address(B, 1), serial.previous(), request), None);
}

#[test]
fn asconfs_sent_again_in_one_packet_are_all_answered_again() {
    // RFC 5061 sections 5.2, E2 and E3, and 5.5
    let mut net = Net::established(unauthenticated(), [1, 1]);
    let serial = first_serial(&mut net);
    let chunks = [9, 10].map(|n| {
        let address_added = AsconfParameter::AddIpAddress {
            correlation_id: u32::from(n),
            address: address(B, n),
        };
        Chunk::Asconf(Box::new(Asconf {
            serial_number: serial.add(u32::from(n) - 9),
            address: address(B, 1),
            parameters: vec![address_added],
        }))
    });
    let acked = |net: &mut Net| {
        net.log.clear();
        let packet = net.forge(A, address(B, 1), chunks.clone());
        net.inject(A, packet);
        let chunks = net.log.iter().flat_map(|d| &d.sctp().chunks);
        let serials = chunks.filter_map(|c| match c {
            Chunk::AsconfAck(ack) => Some(ack.serial_number),
            _ => None,
        });
        serials.collect::<Vec<_>>()
    };
    let both = [serial, serial.next()];
    assert_eq!(acked(&mut net), both);
    assert_eq!(net.association(A).paths().count(), 3);
    assert_eq!(acked(&mut net), both);
    assert_eq!(net.association(A).paths().count(), 3);
    assert_eq!(net.association(A).counters().refused.bad_asconf_serial, 0);
}

#[test]
fn an_asconf_that_is_not_authenticated_takes_the_rest_of_its_packet_with_it() {
    // RFC 5061 section 5.2, D5
    let mut net = Net::established(Config::default(), [1, 1]);
    let serial_number = first_serial(&mut net);
    let asconf = Chunk::Asconf(Box::new(Asconf {
        serial_number,
        address: address(B, 1),
        parameters: vec![],
    }));
    let heartbeat = |info: &'static [u8]| Chunk::Heartbeat(info.into());
    let packet = net.forge(
        A,
        address(B, 1),
        [heartbeat(b"before"), asconf, heartbeat(b"after")],
    );
    net.log.clear();
    net.inject(A, packet);
    let said: Vec<_> = net.log.iter().flat_map(|d| &d.sctp().chunks).collect();
    assert_eq!(said, [&Chunk::HeartbeatAck(b"before"[..].into())]);
    assert_eq!(net.association(A).counters().refused.unauthenticated, 1);
}

fn abort(reflected_tag: bool) -> Chunk {
    Chunk::Abort {
        reflected_tag,
        causes: vec![],
    }
}

/// B ignores an ABORT that comes to its first address; to any other it is what it says.
fn only_to_the_other_address_does_it_abort(mut net: Net, packet: segue_wire::Packet) {
    net.inject(B, packet.clone());
    assert!(net.association(B).is_established());
    assert_eq!(net.association(B).counters().refused.unexpected, 1);
    let mut elsewhere = packet;
    elsewhere.ip.destination = address(B, 2);
    net.inject(B, elsewhere);
    assert!(net.has_event(B, &Event::Aborted { causes: vec![] }));
}

#[test]
fn an_abort_to_an_address_that_is_being_deleted_is_ignored() {
    // RFC 5061 sections 5.3, F4, and 5.3.1
    let mut net = Net::established(Config::default(), [1, 2]);
    let packet = net.forge(B, address(A, 1), [abort(false)]);
    net.rule = Box::new(|_| vec![]);
    net.command(B, |b, now| b.delete_address(now, address(B, 1)))
        .unwrap();
    only_to_the_other_address_does_it_abort(net, packet);
}

#[test]
fn an_abort_that_comes_to_an_address_after_its_deletion_is_ignored() {
    // RFC 5061 sections 5.3, F4, and 5.3.1: what left that address before may reach the peer after the ASCONF; the answer to
    // it, out of the blue with our tag reflected (RFC 9260 section 8.4), after the ASCONF ACK
    let mut net = Net::established(Config::default(), [1, 2]);
    let tag = net.tag_of(A);
    let packet = net.forge_with_tag(B, address(A, 1), tag, [abort(true)]);
    net.command(B, |b, now| b.delete_address(now, address(B, 1)))
        .unwrap();
    net.run_for(Duration::from_secs(1));
    assert!(net.has_event(A, &Event::PeerAddressDeleted(address(B, 1))));
    only_to_the_other_address_does_it_abort(net, packet);
}

fn refusal(ack: Option<AsconfAck>) -> Vec<ErrorCause> {
    match ack.unwrap().responses.pop() {
        Some(AsconfResponse::ErrorCauseIndication { causes, .. }) => causes,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn asconf_delete_of_last_address_is_refused() {
    let mut net = Net::established(unauthenticated(), [1, 1]);
    let serial = first_serial(&mut net);
    let delete = vec![AsconfParameter::DeleteIpAddress {
        correlation_id: 1,
        address: address(B, 1),
    }];
    let causes = refusal(ask(&mut net, address(B, 1), serial, delete));
    let [ErrorCause::DeleteLastRemainingAddress(whole)] = &causes[..] else {
        panic!("{causes:?}")
    };
    assert_eq!(whole[..8], [0xc0, 0x02, 0, 28, 0, 0, 0, 1]);
    assert_eq!(whole[12..], address(B, 1).octets());
    assert_eq!(
        net.command(B, |b, now| b.delete_address(now, address(B, 1))),
        Err(AddressError::LastAddress),
        "our own side refuses it too"
    );
}

#[test]
fn asconf_delete_of_its_source_address_is_refused() {
    let mut net = Net::established(unauthenticated(), [1, 2]);
    let serial = first_serial(&mut net);
    let delete = vec![AsconfParameter::DeleteIpAddress {
        correlation_id: 1,
        address: address(B, 1),
    }];
    let causes = refusal(ask(&mut net, address(B, 1), serial, delete.clone()));
    assert!(
        matches!(causes[..], [ErrorCause::DeleteSourceAddress(_)]),
        "{causes:?}"
    );
    assert_eq!(
        ask(&mut net, address(B, 2), serial.next(), delete)
            .unwrap()
            .responses,
        []
    );
}

#[test]
fn a_request_after_a_refused_one_is_not_processed_and_one_before_is_named() {
    // RFC 5061 section 5.2
    let mut net = Net::established(unauthenticated(), [1, 1]);
    let serial = first_serial(&mut net);
    let requests = vec![
        AsconfParameter::AddIpAddress {
            correlation_id: 1,
            address: address(B, 2),
        },
        AsconfParameter::SetPrimaryAddress {
            correlation_id: 2,
            address: address(B, 77),
        },
        AsconfParameter::AddIpAddress {
            correlation_id: 3,
            address: address(B, 3),
        },
    ];
    let ack = ask(&mut net, address(B, 1), serial, requests).unwrap();
    assert_eq!(
        ack.responses[0],
        AsconfResponse::SuccessIndication { correlation_id: 1 }
    );
    assert!(matches!(
        ack.responses[1],
        AsconfResponse::ErrorCauseIndication {
            correlation_id: 2,
            ..
        }
    ));
    assert_eq!(ack.responses.len(), 2);
    assert!(state_at_a(&net, 2).is_some() && state_at_a(&net, 3).is_none());
}

#[test]
fn wildcard_address_stands_for_the_source_or_for_all_but_it() {
    let mut net = Net::established(unauthenticated(), [1, 2]);
    let serial = first_serial(&mut net);
    let any = Ipv6Addr::UNSPECIFIED;
    let add = vec![AsconfParameter::AddIpAddress {
        correlation_id: 1,
        address: any,
    }];
    assert!(
        ask(&mut net, address(B, 5), serial, add)
            .unwrap()
            .responses
            .is_empty()
    );
    assert_eq!(state_at_a(&net, 5), Some(PathState::Unconfirmed));
    let delete = vec![AsconfParameter::DeleteIpAddress {
        correlation_id: 2,
        address: any,
    }];
    assert!(
        ask(&mut net, address(B, 2), serial.next(), delete)
            .unwrap()
            .responses
            .is_empty()
    );
    assert_eq!(
        net.association(A)
            .paths()
            .map(|p| p.destination)
            .collect::<Vec<_>>(),
        [address(B, 2)]
    );
    assert_eq!(net.association(A).primary_path(), address(B, 2));
}

#[test]
fn deleting_an_address_moves_its_outstanding_data_at_once_without_a_penalty() {
    let mut net = Net::established(
        Config {
            max_burst: None,
            ..Config::default()
        },
        [1, 2],
    );
    net.rule = Box::new(|d| {
        if d.packet.ip.destination == address(B, 1) {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    for i in 0..3 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    net.command(B, |b, now| b.delete_address(now, address(B, 1)))
        .unwrap();
    let cwnd = net
        .association(A)
        .paths()
        .find(|p| p.destination == address(B, 2))
        .unwrap()
        .cwnd;
    let asked = net.now;
    net.run_for(ms(25));
    assert_eq!(net.messages[B].len(), 3);
    let data: Vec<_> = net
        .log
        .iter()
        .filter(|d| d.from == A && d.at > asked && d.data().next().is_some())
        .collect();
    assert!(
        data.iter()
            .all(|d| d.at == asked + ms(10) && d.packet.ip.destination == address(B, 2))
    );
    assert_eq!(data.len(), 3);
    let after = net
        .association(A)
        .paths()
        .find(|p| p.destination == address(B, 2))
        .unwrap();
    assert!(after.cwnd >= cwnd);
    assert_eq!(net.association(A).counters().t3_expiries, 0);
}

#[test]
fn an_answer_to_nothing_aborts() {
    // RFC 5061 section 5.1: association aborted due to illegal ASCONF-ACK
    let mut net = Net::established(unauthenticated(), [1, 1]);
    let ack = AsconfAck {
        serial_number: first_serial(&mut net).add(1000),
        responses: vec![],
    };
    let packet = net.forge(A, address(B, 1), [Chunk::AsconfAck(Box::new(ack))]);
    net.inject(A, packet);
    assert!(net.has_event(
        A,
        &Event::Aborted {
            causes: vec![ErrorCause::IllegalAsconfAck]
        }
    ));
}

#[test]
fn a_packet_overtaken_by_the_deletion_of_its_source_is_dropped_and_aborts_nothing() {
    // RFC 9260 section 8.4 answers what is out of the blue with an ABORT of the reflected tag, and B would take it
    let mut net = Net::established(Config::default(), [1, 2]);
    net.rule = Box::new(|d| {
        if d.packet.ip.source == address(B, 1) {
            vec![ms(200)]
        } else {
            vec![ms(10)]
        }
    });
    net.send(B, 0, synthetic(0, 100));
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    net.command(B, |b, now| b.delete_address(now, address(B, 1)))
        .unwrap();
    net.run_for(ms(3000));
    assert!(net.association(A).is_established() && net.association(B).is_established());
    assert_eq!(net.messages[A].len(), 1);
    assert_eq!(net.ends[A].counters().refused.foreign_address, 1);
    assert!(net.trace().iter().all(|line| !line.contains("ABORT")));
}
