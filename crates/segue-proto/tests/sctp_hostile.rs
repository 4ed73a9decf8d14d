//! Peers that break the rules, claim what is not theirs, or fall silent at the worst moment.

use crate::common::*;
use core::net::Ipv6Addr;
use segue_proto::sctp::{AddressRequest, AsconfAuth, Config, Event, PathState, Profile, SendOptions};
use segue_proto::{Duration, InterfaceId};
use segue_wire::AsconfSerial;
use segue_wire::sctp::{
    Asconf, AsconfParameter, Chunk, DataChunk, ErrorCause, Init, Parameter, SctpPacket, UnrecognizedAction,
};
use segue_wire::{Packet, Payload, Ssn, Tsn};

/// An address of neither host.
const STRANGER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 1, 0, 0, 0, 1);

fn init(tag: u32, parameters: Vec<Parameter>) -> Chunk {
    Chunk::Init(Box::new(Init {
        initiate_tag: tag,
        a_rwnd: 100_000,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(1),
        parameters,
    }))
}

/// What B answers to a packet, without the network.
fn answers(net: &mut Net, packet: Packet) -> Vec<SctpPacket> {
    let now = net.now;
    net.ends[B].handle_packet(now, InterfaceId(0), packet);
    let mut out = Vec::new();
    while let Some(transmit) = net.ends[B].poll_transmit(now) {
        if let Payload::Sctp(sctp) = transmit.packet.payload {
            out.push(sctp);
        }
    }
    out
}

/// A stranger, listing `claimed` as its own too, brings up an association with B; gives B's tag for it.
fn handshake_of_a_stranger(net: &mut Net, claimed: Ipv6Addr) -> u32 {
    let packet = net.forge_with_tag(B, STRANGER, 0, [init(77, vec![Parameter::Ipv6Address(claimed)])]);
    let answered = answers(net, packet);
    let Some(Chunk::InitAck(ack)) = answered.first().map(|a| &a.chunks[0]) else {
        panic!("no INIT ACK: {answered:?}")
    };
    let (tag, cookie) = (
        ack.initiate_tag,
        ack.parameters
            .iter()
            .find_map(|p| match p {
                Parameter::StateCookie(cookie) => Some(cookie.clone()),
                _ => None,
            })
            .expect("cookie"),
    );
    let packet = net.forge_with_tag(B, STRANGER, tag, [Chunk::CookieEcho(cookie)]);
    assert!(names(&answers(net, packet)[0]).contains(&"COOKIE-ACK"));
    tag
}

#[test]
fn an_address_that_a_stranger_claims_still_serves_its_owner() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    let tag = handshake_of_a_stranger(&mut net, address(A, 1));
    net.drain();
    net.ids[B] = None;
    net.connect();
    net.run_for(ms(100));
    let (owner, tag_of_owner) = (net.ids[B], net.tag_of(B));
    assert_ne!(tag, tag_of_owner);
    net.drain();
    // the stranger's association is now the one last heard of
    let packet = net.forge_with_tag(B, STRANGER, tag, [Chunk::Heartbeat(vec![1; 8].into())]);
    net.inject(B, packet);
    net.ids[B] = owner;
    net.send(A, 0, synthetic(0, 10));
    net.run_for(ms(500));
    assert!(
        net.association(A).is_sender_dry(),
        "the owner's data was not taken"
    );
}

#[test]
fn an_address_that_a_stranger_claims_does_not_keep_its_owner_from_connecting() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    handshake_of_a_stranger(&mut net, address(A, 1));
    net.drain();
    net.ids[B] = None;
    net.connect();
    net.run_for(ms(500));
    assert!(net.association(A).is_established());
    assert_eq!(net.ends[B].associations().count(), 2);
}

#[test]
fn a_cookie_that_comes_again_from_elsewhere_makes_no_second_association() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    net.connect();
    net.run_for(ms(500));
    let mut echo = net
        .log
        .iter()
        .find(|d| names(d.sctp()) == ["COOKIE-ECHO"])
        .expect("COOKIE ECHO")
        .packet
        .clone();
    echo.ip.source = STRANGER;
    net.inject(B, echo);
    assert_eq!(net.ends[B].associations().count(), 1);
}

#[test]
fn a_peer_with_only_unconfirmed_addresses_that_falls_silent_is_lost() {
    for hb_interval in [Some(Duration::from_secs(30)), None] {
        let config = Config {
            hb_interval,
            // the ASCONF is forged
            asconf_auth: AsconfAuth::None,
            ..Config::default()
        };
        let mut net = Net::established(config, [1, 1]);
        net.send(B, 0, synthetic(0, 4));
        let serial = AsconfSerial(first_tsn(&net).0);
        net.run_for(ms(500));
        let move_to_new = Asconf {
            serial_number: serial,
            address: address(B, 1),
            parameters: vec![
                AsconfParameter::AddIpAddress {
                    correlation_id: 1,
                    address: address(B, 2),
                },
                AsconfParameter::DeleteIpAddress {
                    correlation_id: 2,
                    address: address(B, 1),
                },
            ],
        };
        let packet = net.forge(A, address(B, 2), [Chunk::Asconf(Box::new(move_to_new))]);
        net.rule = Box::new(|_| vec![]);
        net.inject(A, packet);
        net.send(A, 0, synthetic(0, 10));
        let id = net.ids[A].expect("association");
        assert_eq!(
            net.ends[A]
                .association(id)
                .and_then(|a| a.paths().next())
                .map(|p| p.state),
            Some(PathState::Unconfirmed)
        );
        net.run_for(Duration::from_secs(2000));
        assert!(net.has_event(A, &Event::Lost), "hb_interval {hb_interval:?}");
    }
}

#[test]
fn a_client_that_missed_the_end_of_the_shutdown_connects_again_at_once() {
    // RFC 9260 sections 9.2 and 8.5.1: the server is in SHUTDOWN-ACK-SENT
    let mut net = Net::established(Config::default(), [1, 1]);
    net.rule = Box::new(|d| match names(d.sctp())[..] {
        ["SHUTDOWN-COMPLETE"] => vec![],
        _ => vec![ms(10)],
    });
    net.command(A, |a, now| a.shutdown(now));
    net.run_for(ms(100));
    assert!(net.has_event(A, &Event::Closed) && !net.has_event(B, &Event::Closed));
    net.rule = Box::new(|_| vec![ms(10)]);
    net.connect();
    net.run_for(Duration::from_secs(5));
    assert!(net.has_event(B, &Event::Closed));
    assert!(net.association(A).is_established() && net.association(B).is_established());
}

#[test]
fn a_cookie_life_below_the_round_trip_ends_the_attempt() {
    let config = Config {
        valid_cookie_life: ms(1),
        ..Config::default()
    };
    let mut net = Net::symmetric(config, [1, 1], 1);
    net.connect();
    net.run_for(Duration::from_secs(60));
    assert!(net.has_event(A, &Event::Lost));
    assert_eq!(
        net.log.iter().filter(|d| names(d.sctp()) == ["INIT"]).count(),
        1 + Config::new(Profile::Rfc9260).max_init_retransmits as usize
    );
}

#[test]
fn an_init_with_tag_zero_is_not_answered_and_one_with_a_tiny_window_is_refused() {
    // RFC 9260 section 3.3.2
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    let packet = net.forge_with_tag(B, STRANGER, 0, [init(0, vec![])]);
    assert!(answers(&mut net, packet).is_empty());
    let Chunk::Init(mut small) = init(7, vec![]) else {
        unreachable!()
    };
    small.a_rwnd = 1499;
    let packet = net.forge_with_tag(B, STRANGER, 0, [Chunk::Init(small)]);
    assert_eq!(names(&answers(&mut net, packet)[0]), ["ABORT"]);
}

#[test]
fn an_init_ack_reports_no_more_unknown_parameters_than_fit_a_packet() {
    let config = Config::default();
    let mut net = Net::symmetric(config.clone(), [1, 1], 1);
    let unknown = Parameter::Unknown {
        parameter_type: 0xc0ff,
        value: bytes::Bytes::new(),
    };
    assert!(UnrecognizedAction::of_parameter_type(0xc0ff).reports());
    let packet = net.forge_with_tag(B, STRANGER, 0, [init(7, vec![unknown; 16_000])]);
    let answer = &answers(&mut net, packet)[0];
    assert_eq!(names(answer), ["INIT-ACK"]);
    let len = 40 + answer.buffer_len();
    assert!(len <= config.mtu as usize, "{len} bytes");
    let Chunk::InitAck(ack) = &answer.chunks[0] else {
        unreachable!()
    };
    let reported = |p: &&Parameter| matches!(p, Parameter::UnrecognizedParameter(_));
    assert!(ack.parameters.iter().filter(reported).count() > 100);
}

#[test]
fn data_on_a_stream_that_the_peer_turns_out_not_to_take_ends_the_attempt() {
    // RFC 9260 section 5.1.1; sent, it would be acknowledged, reported and dropped (section 6.5)
    let few = Config {
        max_inbound_streams: 2,
        ..Config::default()
    };
    for unordered in [false, true] {
        let mut net = Net::new([Config::default(), few.clone()], [1, 1], ms(10), 1);
        net.connect();
        net.command(A, |a, now| {
            a.send(
                now,
                2,
                synthetic(0, 10),
                SendOptions {
                    unordered,
                    ..SendOptions::default()
                },
            )
        })
        .expect("send");
        net.run_for(ms(500));
        let aborted = net.events[A]
            .iter()
            .any(|(_, e)| matches!(e, Event::Aborted { .. }));
        assert!(aborted, "{:?}", net.events[A]);
        assert!(
            net.events[B]
                .iter()
                .any(|(_, e)| matches!(e, Event::Aborted { .. }))
        );
    }
}

#[test]
fn requests_to_a_peer_that_reports_asconf_as_unknown_fail() {
    // RFC 5061 section 4.1.1
    let mut net = Net::established(Config::default(), [1, 2]);
    net.rule = Box::new(|_| vec![]);
    net.command(B, |b, now| b.add_address(now, local(B, 3)))
        .expect("add");
    net.command(B, |b, now| b.delete_address(now, address(B, 2)))
        .expect("delete");
    net.command(B, |b, now| b.set_route(now, address(B, 3)))
        .expect("route");
    let asconf = net.log.iter().rev().flat_map(|d| &d.sctp().chunks);
    let mut whole = Vec::new();
    asconf
        .filter(|c| matches!(c, Chunk::Asconf(_)))
        .for_each(|c| c.emit(&mut whole));
    let report = |net: &mut Net, quoted: &[u8]| {
        let unknown = ErrorCause::UnrecognizedChunkType(quoted.to_vec().into());
        let packet = net.forge(B, address(A, 1), [Chunk::Error(vec![unknown])]);
        net.inject(B, packet);
    };
    // ERROR is not authenticated: one that does not quote what was sent is from somebody who did not see it
    let mut other = whole.clone();
    other[7] ^= 1;
    for quoted in [&[0xc1, 0, 0, 4], &whole[..4], &other[..]] {
        report(&mut net, quoted);
    }
    assert!(net.events[B].is_empty() && net.association(B).asconf_outstanding());
    assert_eq!(net.association(B).counters().refused.unexpected, 3);
    report(&mut net, &whole);
    let failed: Vec<_> = net.events[B]
        .iter()
        .filter_map(|(_, e)| match e {
            Event::AsconfAnswered { results, .. } => Some(results),
            _ => None,
        })
        .flatten()
        .map(|r| (r.request, r.outcome.is_ok()))
        .collect();
    assert_eq!(
        failed,
        [
            (AddressRequest::Add(address(B, 3)), false),
            (AddressRequest::Delete(address(B, 2)), false)
        ]
    );
    let b = net.association(B);
    assert_eq!(
        b.local_addresses().map(|l| l.address).collect::<Vec<_>>(),
        [address(B, 1), address(B, 2)]
    );
    assert_eq!(b.route().address, address(B, 1));
}

#[test]
fn an_error_about_an_asconf_that_was_never_sent_does_not_turn_address_changes_off() {
    // RFC 5061 section 4.1.1
    let mut net = Net::established(Config::default(), [1, 1]);
    let unknown = ErrorCause::UnrecognizedChunkType(vec![0xc1, 0, 0, 8, 0, 0, 0, 1].into());
    let packet = net.forge(B, address(A, 1), [Chunk::Error(vec![unknown])]);
    net.inject(B, packet);
    net.owned[B].push(address(B, 2));
    net.command(B, |b, now| b.add_address(now, local(B, 2)))
        .expect("add");
    net.run_for(ms(100));
    assert_eq!(net.association(B).local_addresses().count(), 2);
}

#[test]
fn a_heartbeat_that_is_late_counts_even_if_the_next_is_due_before() {
    // HB.interval below half the RTO: the next heartbeat is due before the last one has timed out
    let config = Config {
        hb_interval: Some(ms(50)),
        association_max_retrans: 1000,
        path_max_retrans: 3,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.rule = Box::new(|_| vec![]);
    net.run_for(Duration::from_secs(1 + 2 + 4 + 8 + 16 + 4));
    let sent = net
        .log
        .iter()
        .filter(|d| d.from == A && names(d.sctp()) == ["HEARTBEAT"])
        .count();
    let errors = net
        .association(A)
        .paths()
        .next()
        .map_or(0, |p| p.error_count as usize);
    assert!(sent <= errors + 1, "{sent} heartbeats sent, {errors} counted");
    assert!(errors > 3);
}

#[test]
fn a_sack_with_many_gaps_and_its_shutdown_fit_a_packet() {
    let config = Config::default();
    let mut net = Net::established(config.clone(), [1, 1]);
    net.send(A, 0, synthetic(0, 4));
    let next = net
        .log
        .iter()
        .flat_map(Departure::data)
        .next()
        .expect("DATA")
        .tsn
        .next();
    net.run_for(ms(500));
    net.rule = Box::new(|_| vec![]);
    net.command(B, |b, now| b.shutdown(now));
    for n in 0..400 {
        let data = DataChunk {
            tsn: next.add(1 + 2 * n),
            stream_id: 0,
            ssn: Ssn(0),
            payload_protocol_id: 0,
            unordered: true,
            beginning: true,
            ending: true,
            immediate: false,
            data: synthetic(0, 4),
        };
        let packet = net.forge(B, address(A, 1), [Chunk::Data(data)]);
        net.inject(B, packet);
    }
    let last = net.log.last().expect("an answer");
    assert_eq!(names(last.sctp()), ["SACK", "SHUTDOWN"]);
    let longest = net.log.iter().map(|d| d.packet.buffer_len()).max();
    assert!(longest <= Some(config.mtu as usize), "{longest:?}");
}

#[test]
fn an_asconf_from_no_single_host_is_not_taken() {
    for from in [Ipv6Addr::UNSPECIFIED, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)] {
        // it is to be refused for where it comes from, not for what it lacks
        let config = Config {
            asconf_auth: AsconfAuth::None,
            ..Config::default()
        };
        let mut net = Net::established(config, [1, 1]);
        net.send(A, 0, synthetic(0, 4));
        let serial = AsconfSerial(first_tsn(&net).0);
        net.run_for(ms(500));
        // the wildcard stands for the packet's source (RFC 5061 section 4.2.1)
        let asconf = Asconf {
            serial_number: serial,
            address: address(A, 1),
            parameters: vec![AsconfParameter::AddIpAddress {
                correlation_id: 1,
                address: Ipv6Addr::UNSPECIFIED,
            }],
        };
        let packet = net.forge(B, from, [Chunk::Asconf(Box::new(asconf))]);
        net.log.clear();
        net.inject(B, packet);
        assert_eq!(net.trace(), [""; 0], "{from}");
        assert!(!net.has_event(B, &Event::PeerAddressAdded(from)));
    }
}
