//! Associations that meet one that exists already: restarts, collisions, late and repeated cookies, and the limits on
//! all of them (RFC 9260 section 5.2).

use crate::common::*;
use core::net::Ipv6Addr;
use segue_proto::random::Stream;
use segue_proto::sctp::{Config, Endpoint, Event, MultipathConfig, PathState, Restarted};
use segue_proto::{Duration, InterfaceId};
use segue_wire::sctp::{Chunk, ErrorCause, GapAckBlock, Init, NrSack, Parameter, Sack, SctpPacket};
use segue_wire::{Data, Packet, Payload, Tsn};

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The peer loses everything it knew: a new endpoint with the same addresses and other secrets.
fn lose_memory(net: &mut Net, host: usize, addresses: u16, seed: u64) {
    let name = format!("secrets after the crash of {host}");
    net.ends[host] = Endpoint::new(Config::default(), PORT, Box::new(Stream::new(seed, &name)));
    for n in 1..=addresses {
        net.ends[host].add_local_address(local(host, n));
    }
    if host == B {
        net.ends[host].listen();
    }
    net.ids[host] = None;
}

fn init(tag: u32, parameters: Vec<Parameter>) -> Chunk {
    Chunk::Init(Box::new(Init {
        initiate_tag: tag,
        a_rwnd: 100_000,
        outbound_streams: 3,
        inbound_streams: 3,
        initial_tsn: Tsn(1000),
        parameters,
    }))
}

/// What `host` answers to a packet, without the network.
fn answers(net: &mut Net, host: usize, packet: Packet) -> Vec<Packet> {
    let now = net.now;
    net.ends[host].handle_packet(now, InterfaceId(1), packet);
    core::iter::from_fn(|| net.ends[host].poll_transmit(now))
        .map(|t| t.packet)
        .collect()
}

fn sctp(packet: &Packet) -> &SctpPacket {
    match &packet.payload {
        Payload::Sctp(sctp) => sctp,
        other => panic!("not SCTP: {other:?}"),
    }
}

/// The INIT ACK of B to an INIT from `from`, and the cookie in it.
fn init_ack(net: &mut Net, from: Ipv6Addr, tag: u32, parameters: Vec<Parameter>) -> (Init, bytes::Bytes) {
    let packet = net.forge_with_tag(B, from, 0, [init(tag, parameters)]);
    let answered = answers(net, B, packet);
    let Some(Chunk::InitAck(ack)) = answered.first().map(|a| &sctp(a).chunks[0]) else {
        panic!("no INIT ACK: {answered:?}")
    };
    let cookie = ack.parameters.iter().find_map(|p| match p {
        Parameter::StateCookie(cookie) => Some(cookie.clone()),
        _ => None,
    });
    (*ack.clone(), cookie.expect("cookie"))
}

fn echo(net: &mut Net, from: Ipv6Addr, tag: u32, cookie: bytes::Bytes) -> Vec<Packet> {
    let packet = net.forge_with_tag(B, from, tag, [Chunk::CookieEcho(cookie)]);
    answers(net, B, packet)
}

fn restarts(net: &Net, host: usize) -> Vec<Restarted> {
    net.events[host]
        .iter()
        .filter_map(|(_, e)| match e {
            Event::Restarted(r) => Some((**r).clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_peer_that_restarts_takes_the_place_of_its_former_self() {
    // section 5.2.4, action A
    let mut net = Net::established(Config::default(), [2, 2]);
    let id = net.ids[B];
    net.send(A, 0, synthetic(0, 3000));
    net.send(B, 0, synthetic(0, 3000));
    net.run_for(seconds(1));
    // A goes down while data of B's is on its way, more than fits a window, and one message has not been read
    net.reading[B] = false;
    net.send(A, 0, synthetic(3000, 700));
    net.run_for(ms(300));
    net.rule = Box::new(|_| vec![]);
    net.send(B, 3, synthetic(9000, 20_000));
    for _ in 0..10 {
        net.send(B, 2, synthetic(500, 1000));
    }
    lose_memory(&mut net, A, 2, 7);
    net.rule = Box::new(|_| vec![ms(10)]);
    net.connect();
    net.run_for(seconds(1));
    assert!(net.association(A).is_established());
    assert_eq!(net.ids[B], id, "the association keeps its identity");
    assert_eq!(net.ends[B].associations().count(), 1);
    assert_eq!(net.ends[B].counters().restarts, 1);
    let told = restarts(&net, B);
    assert_eq!(told.len(), 1);
    let len = |parts: &[Data]| parts.iter().map(Data::len).sum::<usize>();
    assert_eq!(told[0].unacknowledged.len(), 1, "the long message was begun");
    assert_eq!(told[0].unacknowledged[0].stream_id, 3);
    assert_eq!(len(&told[0].unacknowledged[0].parts), 20_000);
    assert_eq!(told[0].unsent.len(), 10);
    assert!(
        told[0]
            .unsent
            .iter()
            .all(|m| m.stream_id == 2 && len(&m.parts) == 1000)
    );
    assert_eq!(told[0].unread.len(), 1);
    assert_eq!(told[0].unread[0].parts[..], [synthetic(3000, 700)]);
    assert!(net.association(B).is_sender_dry());

    // both directions work, from the first stream sequence number on
    net.reading[B] = true;
    net.messages = [Vec::new(), Vec::new()];
    net.send(A, 0, synthetic(0, 5000));
    net.send(B, 0, synthetic(0, 5000));
    net.run_for(seconds(2));
    for host in [A, B] {
        assert_eq!(net.messages[host].len(), 1, "host {host}");
        assert!(net.association(host).is_sender_dry());
    }
    // paths begin anew, and the second address must be confirmed again
    assert!(net.association(B).paths().all(|p| p.error_count == 0));
}

/// What the peer had promised to keep is no longer there to be given back, and nothing is put in its place.
#[test]
fn what_a_restarted_peer_had_promised_to_keep_is_left_out() {
    let config = Config {
        multipath: Some(MultipathConfig {
            nr_sack: true,
            ..MultipathConfig::default()
        }),
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    let tag = net.tag_of(B);
    net.run_for(seconds(1));
    net.log.clear();
    net.rule = Box::new(|_| vec![]);
    // a message in five chunks, of which two or more go out at once, and two in one chunk
    net.send(B, 3, synthetic(9000, 6500));
    net.send(B, 2, synthetic(500, 1000));
    let sent: Vec<_> = net
        .log
        .iter()
        .flat_map(Departure::data)
        .map(|d| (d.tsn, d.data.clone()))
        .collect();
    assert!(sent.len() >= 3, "{sent:?}");
    let nr_sack = NrSack {
        sack: Sack {
            cumulative_tsn_ack: sent[0].0.previous(),
            a_rwnd: 100_000,
            gap_ack_blocks: Default::default(),
            duplicate_tsns: Box::default(),
            data_packets: 0,
        },
        nr_gap_ack_blocks: [GapAckBlock { start: 2, end: 2 }].into_iter().collect(),
    };
    let packet = net.forge_with_tag(B, address(A, 1), tag, [Chunk::NrSack(Box::new(nr_sack))]);
    net.inject(B, packet);
    lose_memory(&mut net, A, 1, 7);
    net.rule = Box::new(|_| vec![ms(10)]);
    net.connect();
    net.run_for(seconds(1));
    let told = restarts(&net, B);
    let pieces: Vec<_> = told[0]
        .unacknowledged
        .iter()
        .chain(&told[0].unsent)
        .map(|m| {
            let mut bytes = Vec::new();
            for part in &m.parts {
                part.emit(&mut bytes);
            }
            (m.stream_id, m.first, m.last, bytes)
        })
        .collect();
    let (_, missing) = &sent[1];
    let Data::Synthetic { offset, len } = *missing else {
        panic!("{missing:?}")
    };
    let behind = offset + u64::from(len);
    let bytes = |from: u64, to: u64| {
        let mut bytes = Vec::new();
        synthetic(from, (to - from) as u32).emit(&mut bytes);
        bytes
    };
    let expected = [
        (3, true, false, bytes(9000, offset)),
        (3, false, true, bytes(behind, 9000 + 6500)),
        (2, true, true, bytes(500, 1500)),
    ];
    assert_eq!(pieces, expected);
}

#[test]
fn a_restart_resets_paths_and_windows() {
    let mut net = Net::established(Config::default(), [1, 1]);
    let begin = net.association(B).paths().next().expect("path").cwnd;
    for n in 0..10 {
        net.send(B, 0, synthetic(10_000 * n, 10_000));
    }
    net.run_for(seconds(3));
    assert!(net.association(B).paths().next().expect("path").cwnd > begin);
    let (ack, cookie) = init_ack(&mut net, address(A, 1), 4713, vec![]);
    let answered = echo(&mut net, address(A, 1), ack.initiate_tag, cookie);
    assert_eq!(names(sctp(&answered[0])), ["COOKIE-ACK"]);
    assert_eq!(sctp(&answered[0]).verification_tag, 4713);
    let path = net.association(B).paths().next().expect("path");
    assert_eq!(
        (path.cwnd, path.srtt, path.state),
        (begin, None, PathState::Active)
    );
}

#[test]
fn a_restart_that_adds_addresses_is_refused_and_changes_nothing() {
    // section 5.2.2
    let stranger = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 1, 0, 0, 0, 1);
    for (from, named) in [
        (address(A, 1), vec![Parameter::Ipv6Address(stranger)]),
        (stranger, vec![Parameter::Ipv6Address(address(A, 1))]),
    ] {
        let mut net = Net::established(Config::default(), [1, 1]);
        let packet = net.forge_with_tag(B, from, 0, [init(99, named)]);
        let answered = answers(&mut net, B, packet);
        assert_eq!(answered.len(), 1);
        assert_eq!(answered[0].ip.destination, from);
        assert_eq!(sctp(&answered[0]).verification_tag, 99);
        let Chunk::Abort { causes, .. } = &sctp(&answered[0]).chunks[0] else {
            panic!("no ABORT: {answered:?}")
        };
        let mut listed = Vec::new();
        Parameter::Ipv6Address(stranger).emit(&mut listed);
        assert_eq!(causes[..], [ErrorCause::RestartWithNewAddresses(listed.into())]);
        assert_eq!(net.ends[B].counters().refused.new_addresses, 1);
        net.send(A, 0, synthetic(0, 100));
        net.run_for(ms(500));
        assert_eq!(net.messages[B].len(), 1, "the association goes on");
    }
}

#[test]
fn a_restart_from_fewer_addresses_is_one() {
    let mut net = Net::established(Config::default(), [2, 1]);
    net.run_for(seconds(2));
    lose_memory(&mut net, A, 1, 5);
    net.connect();
    net.run_for(seconds(1));
    assert_eq!(restarts(&net, B).len(), 1);
    let destinations: Vec<_> = net.association(B).paths().map(|p| p.destination).collect();
    assert_eq!(destinations, [address(A, 1)]);
}

#[test]
fn rows_b_to_d_and_what_is_not_in_the_table() {
    // section 5.2.4, table 12, at an endpoint in ESTABLISHED
    let from = address(A, 1);
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    // two INITs before there is an association: no tie-tags in either cookie
    let (first, first_cookie) = init_ack(&mut net, from, 21, vec![]);
    let (second, second_cookie) = init_ack(&mut net, from, 22, vec![]);
    let (late, late_cookie) = init_ack(&mut net, from, 21, vec![]);
    let answered = echo(&mut net, from, first.initiate_tag, first_cookie.clone());
    assert_eq!(names(sctp(&answered[0])), ["COOKIE-ACK"]);
    net.drain();
    net.events[B].clear();
    // D, repeated, at once and long after the cookie's life has ended
    for _ in 0..2 {
        let answered = echo(&mut net, from, first.initiate_tag, first_cookie.clone());
        assert_eq!(names(sctp(&answered[0])), ["COOKIE-ACK"]);
        assert_eq!(sctp(&answered[0]).verification_tag, 21);
        net.now = at(61.0);
    }
    net.now = at(30.0);
    // X X 0 0: not in the table; C: X M 0 0
    for (ack, cookie) in [(second, second_cookie), (late, late_cookie)] {
        assert!(echo(&mut net, from, ack.initiate_tag, cookie).is_empty());
    }
    assert_eq!(net.ends[B].counters().refused.unexpected_cookies, 2);
    assert_eq!(restarts(&net, B).len(), 0);
    assert_eq!(net.ends[B].associations().count(), 1);
}

#[test]
fn a_cookie_of_an_earlier_restart_is_not_one_of_this_association() {
    // X X with tie-tags that are no longer those of the association
    let from = address(A, 1);
    let mut net = Net::established(Config::default(), [1, 1]);
    let (one, cookie_of_one) = init_ack(&mut net, from, 31, vec![]);
    let (two, cookie_of_two) = init_ack(&mut net, from, 32, vec![]);
    assert_ne!(one.initiate_tag, two.initiate_tag, "every INIT gets another tag");
    assert_eq!(echo(&mut net, from, one.initiate_tag, cookie_of_one).len(), 1);
    net.drain();
    assert_eq!(restarts(&net, B).len(), 1);
    assert!(echo(&mut net, from, two.initiate_tag, cookie_of_two).is_empty());
    assert_eq!(net.ends[B].counters().restarts, 1);
}

#[test]
fn row_b_takes_the_tag_of_the_peers_later_init() {
    // B opens; A answers its INIT and then, having forgotten it, sends one of its own
    let mut net = Net::symmetric(Config::default(), [1, 1], 3);
    net.ends[A].listen();
    net.rule = Box::new(|_| vec![]);
    net.ids[B] = net.ends[B].connect(net.now, &[address(A, 1)], PORT);
    net.drain();
    // COOKIE-WAIT: "M 0 A A"
    let own_tag = match &net.log[0].sctp().chunks[0] {
        Chunk::Init(init) => init.initiate_tag,
        other => panic!("{other:?}"),
    };
    let from = address(A, 1);
    let (ack, cookie) = init_ack(&mut net, from, 41, vec![]);
    assert_eq!(ack.initiate_tag, own_tag, "section 5.2.1: unchanged");
    let (_, later) = init_ack(&mut net, from, 42, vec![]);
    let answered = echo(&mut net, from, own_tag, cookie);
    assert_eq!(sctp(&answered[0]).verification_tag, 41);
    net.drain();
    assert!(net.association(B).is_established());
    // ESTABLISHED, nothing received: "M X A A"
    let answered = echo(&mut net, from, own_tag, later.clone());
    assert_eq!(names(sctp(&answered[0])), ["COOKIE-ACK"]);
    assert_eq!(sctp(&answered[0]).verification_tag, 42);
    assert!(net.association(B).is_established());
    assert_eq!(restarts(&net, B).len(), 0);
    assert_eq!(net.ends[B].associations().count(), 1);
}

#[test]
fn both_ends_open_at_once_from_addresses_that_the_other_did_not_call() {
    // section 5.2.1: A calls B's first address, B calls from its second
    for (swap_a, swap_b) in [(false, true), (true, true)] {
        let mut net = Net::symmetric(Config::default(), [2, 2], 4);
        net.ends[A].listen();
        for (host, swap) in [(A, swap_a), (B, swap_b)] {
            if swap {
                net.ends[host].remove_local_address(address(host, 1));
                net.ends[host].add_local_address(local(host, 1));
            }
        }
        net.ids[A] = net.ends[A].connect(net.now, &[address(B, 1)], PORT);
        net.ids[B] = net.ends[B].connect(net.now, &[address(A, 1)], PORT);
        net.drain();
        net.run_for(seconds(5));
        for host in [A, B] {
            assert_eq!(net.ends[host].associations().count(), 1, "host {host}");
            assert!(net.association(host).is_established(), "host {host}");
        }
        net.send(A, 0, synthetic(0, 100));
        net.send(B, 0, synthetic(0, 100));
        net.run_for(seconds(5));
        assert_eq!([net.messages[A].len(), net.messages[B].len()], [1, 1]);
    }
}

#[test]
fn a_cookie_from_before_this_end_called_makes_no_second_association() {
    // B answers A's INIT, then calls A itself; the COOKIE ECHO comes from an address of A's that B did not call
    let (called, from) = (address(A, 1), address(A, 2));
    let mut net = Net::symmetric(Config::default(), [2, 1], 6);
    let (ack, cookie) = init_ack(&mut net, called, 61, vec![Parameter::Ipv6Address(from)]);
    net.rule = Box::new(|_| vec![]);
    net.ids[B] = net.ends[B].connect(net.now, &[called], PORT);
    net.drain();
    assert_ne!(init_of(&net, B).initiate_tag, ack.initiate_tag);
    // "X 0 0 0" is in no row of table 12
    assert!(echo(&mut net, from, ack.initiate_tag, cookie).is_empty());
    assert_eq!(net.ends[B].counters().refused.unexpected_cookies, 1);
    assert_eq!(net.ends[B].associations().count(), 1);
}

#[test]
fn an_init_in_cookie_echoed_may_not_add_addresses() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 5);
    net.ends[A].listen();
    net.rule = Box::new(|d| match names(d.sctp())[..] {
        ["COOKIE-ECHO"] => vec![],
        _ => vec![ms(10)],
    });
    net.ids[B] = net.ends[B].connect(net.now, &[address(A, 1)], PORT);
    net.drain();
    net.run_for(ms(100));
    let packet = net.forge_with_tag(
        B,
        address(A, 1),
        0,
        [init(51, vec![Parameter::Ipv6Address(address(A, 2))])],
    );
    let answered = answers(&mut net, B, packet);
    assert_eq!(names(sctp(&answered[0])), ["ABORT"]);
    // without the new address it is answered, and the handshake goes on as it was
    let (ack, _) = init_ack(&mut net, address(A, 1), 52, vec![]);
    assert_eq!(ack.initial_tsn, init_of(&net, B).initial_tsn);
    net.rule = Box::new(|_| vec![ms(10)]);
    net.run_for(seconds(5));
    assert!(net.association(A).is_established() && net.association(B).is_established());
}

/// The first INIT that `host` sent.
fn init_of(net: &Net, host: usize) -> Init {
    net.log
        .iter()
        .filter(|d| d.from == host)
        .find_map(|d| match &d.sctp().chunks[0] {
            Chunk::Init(init) => Some((**init).clone()),
            _ => None,
        })
        .expect("INIT")
}

#[test]
fn an_unexpected_init_ack_is_discarded() {
    // section 5.2.3
    let mut net = Net::established(Config::default(), [1, 1]);
    let Chunk::Init(body) = init(1, vec![Parameter::StateCookie(vec![1].into())]) else {
        unreachable!()
    };
    let packet = net.forge(A, address(B, 1), [Chunk::InitAck(body)]);
    assert!(answers(&mut net, A, packet).is_empty());
    assert_eq!(net.association(A).counters().refused.unexpected, 1);
    assert!(net.association(A).is_established());
}

#[test]
fn a_restart_during_the_end_of_a_shutdown_waits_for_it() {
    // action A in SHUTDOWN-ACK-SENT: the INIT ACK went out before
    let mut net = Net::established(Config::default(), [1, 1]);
    let (ack, cookie) = init_ack(&mut net, address(A, 1), 61, vec![]);
    net.rule = Box::new(|d| match names(d.sctp())[..] {
        ["SHUTDOWN-COMPLETE"] => vec![],
        _ => vec![ms(10)],
    });
    let tag_of_a = net.tag_of(A);
    net.command(A, |a, now| a.shutdown(now));
    net.run_for(ms(100));
    net.log.clear();
    let answered = echo(&mut net, address(A, 1), ack.initiate_tag, cookie.clone());
    assert_eq!(names(sctp(&answered[0])), ["SHUTDOWN-ACK", "ERROR"]);
    assert_eq!(
        sctp(&answered[0]).chunks[1],
        Chunk::Error(vec![ErrorCause::CookieReceivedWhileShuttingDown])
    );
    assert_eq!(sctp(&answered[0]).verification_tag, tag_of_a);
    assert_eq!(answered.len(), 1, "no COOKIE ACK");
    // the restarted peer answers what is out of the blue to it, and then its COOKIE ECHO is good
    let complete = net.forge_with_tag(
        B,
        address(A, 1),
        tag_of_a,
        [Chunk::ShutdownComplete { reflected_tag: true }],
    );
    net.inject(B, complete);
    assert!(net.has_event(B, &Event::Closed));
    let answered = echo(&mut net, address(A, 1), ack.initiate_tag, cookie);
    assert_eq!(names(sctp(&answered[0])), ["COOKIE-ACK"]);
}

#[test]
fn a_restart_during_the_shutdown_of_the_other_end_ends_in_a_new_association() {
    let mut net = Net::established(Config::default(), [1, 1]);
    net.rule = Box::new(|_| vec![]);
    net.send(B, 0, synthetic(0, 100));
    net.command(B, |a, now| a.shutdown(now));
    lose_memory(&mut net, A, 1, 8);
    net.rule = Box::new(|_| vec![ms(10)]);
    net.connect();
    net.run_for(seconds(1));
    assert_eq!(restarts(&net, B).len(), 1);
    assert!(net.association(B).is_established());
}

#[test]
fn associations_beyond_the_maximum_are_refused_and_room_comes_back() {
    let config = Config {
        max_associations: 1,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    let stranger = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 1, 0, 0, 0, 1);
    let packet = net.forge_with_tag(B, stranger, 0, [init(71, vec![])]);
    let answered = answers(&mut net, B, packet);
    assert_eq!(
        sctp(&answered[0]).chunks[0],
        Chunk::Abort {
            reflected_tag: false,
            causes: vec![ErrorCause::OutOfResource]
        }
    );
    assert_eq!(net.ends[B].counters().refused.too_many_associations, 1);
    // a restart is not one more
    let (ack, cookie) = init_ack(&mut net, address(A, 1), 72, vec![]);
    assert_eq!(echo(&mut net, address(A, 1), ack.initiate_tag, cookie).len(), 1);
    net.drain();
    net.command(B, |a, now| a.abort(now, "enough".into()));
    let (ack, cookie) = init_ack(&mut net, stranger, 73, vec![]);
    // two cookies for one place
    let other = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 2, 0, 0, 0, 1);
    let (ack_of_other, cookie_of_other) = init_ack(&mut net, other, 74, vec![]);
    assert_eq!(
        names(sctp(&echo(&mut net, stranger, ack.initiate_tag, cookie)[0])),
        ["COOKIE-ACK"]
    );
    let answered = echo(&mut net, other, ack_of_other.initiate_tag, cookie_of_other);
    assert_eq!(names(sctp(&answered[0])), ["ABORT"]);
    assert_eq!(sctp(&answered[0]).verification_tag, 74);
}

#[test]
fn addresses_that_cannot_be_the_peers_are_not_taken_from_an_init() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 6);
    let good: Ipv6Addr = "fd00::7".parse().expect("address");
    let named = ["::1", "::", "ff0e::1", "fe80::5", "::ffff:192.0.2.1", "fd00::7"]
        .map(|text| Parameter::Ipv6Address(text.parse().expect("address")));
    let mut parameters = named.to_vec();
    parameters.push(Parameter::Ipv6Address(address(B, 1)));
    // section 5.1.2: another family is passed over without a word, and this one is understood whatever is listed
    parameters.push(Parameter::Ipv4Address([192, 0, 2, 1].into()));
    parameters.push(Parameter::SupportedAddressTypes(vec![5]));
    let (ack, cookie) = init_ack(&mut net, address(A, 1), 81, parameters);
    assert!(
        !ack.parameters
            .iter()
            .any(|p| matches!(p, Parameter::UnrecognizedParameter(_)))
    );
    echo(&mut net, address(A, 1), ack.initiate_tag, cookie);
    net.drain();
    let mut taken: Vec<_> = net.association(B).paths().map(|p| p.destination).collect();
    taken.sort();
    assert_eq!(taken, [address(A, 1), good]);
    assert_eq!(net.ends[B].counters().addresses_ignored, 4);
}

#[test]
fn an_init_with_thousands_of_addresses_takes_no_more_than_any() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 6);
    let many = (0..3000u16)
        .map(|n| Parameter::Ipv6Address(address(A, n + 2)))
        .collect();
    let (ack, cookie) = init_ack(&mut net, address(A, 1), 91, many);
    assert!(cookie.len() < 1000, "{} bytes of cookie", cookie.len());
    let packet = net.forge_with_tag(B, address(A, 1), ack.initiate_tag, [Chunk::CookieEcho(cookie)]);
    let answered = answers(&mut net, B, packet);
    // COOKIE ACK, and as many heartbeats as HB.Max.Burst allows
    assert_eq!(answered.len(), 1 + 1);
    net.drain();
    assert_eq!(net.association(B).paths().count(), 32);
}

#[test]
fn the_cookie_preservative_asks_for_the_round_trip_and_no_more_than_a_second_beyond() {
    // section 5.2.6
    let config = Config {
        valid_cookie_life: ms(100),
        ..Config::default()
    };
    let mut net = Net::new([config.clone(), config], [1, 1], ms(70), 1);
    net.connect();
    net.run_for(seconds(2));
    assert!(net.association(A).is_established());
    let asked: Vec<u32> = net
        .log
        .iter()
        .filter_map(|d| match &d.sctp().chunks[0] {
            Chunk::Init(init) => init.parameters.iter().find_map(|p| match p {
                Parameter::CookiePreservative(ms) => Some(*ms),
                _ => None,
            }),
            _ => None,
        })
        .collect();
    // round trip 140 ms, 40 ms too late
    assert_eq!(asked, [181]);
}

#[test]
fn a_preservative_cannot_make_a_cookie_live_longer_than_twice() {
    let config = Config {
        valid_cookie_life: seconds(10),
        ..Config::default()
    };
    for (after, good) in [(19, true), (21, false)] {
        let mut net = Net::symmetric(config.clone(), [1, 1], 1);
        let wish = vec![Parameter::CookiePreservative(u32::MAX)];
        let (ack, cookie) = init_ack(&mut net, address(A, 1), 95, wish);
        net.now = at(f64::from(after));
        let answered = echo(&mut net, address(A, 1), ack.initiate_tag, cookie);
        let expected = if good { "COOKIE-ACK" } else { "ERROR" };
        assert_eq!(names(sctp(&answered[0])), [expected]);
    }
}

#[test]
fn a_restart_keeps_what_is_known_of_the_host_itself() {
    let mut net = Net::established(Config::default(), [2, 2]);
    net.command(B, |b, now| {
        // the routing table, and an address that the association does not have
        b.set_source(address(A, 1), Some(address(B, 2)));
        b.local_address_added(now, local(B, 3));
    });
    net.owned[B].push(address(B, 3));
    lose_memory(&mut net, A, 2, 7);
    net.connect();
    net.run_for(seconds(1));
    assert_eq!(restarts(&net, B).len(), 1);
    let sources = |net: &Net| {
        let paths = net.association(B).paths();
        paths
            .filter(|p| p.destination == address(A, 1))
            .map(|p| p.source)
            .collect::<Vec<_>>()
    };
    assert!(sources(&net).contains(&address(B, 2)));
    net.log.clear();
    net.send(B, 0, synthetic(0, 100));
    assert_eq!(net.log[0].packet.ip.source, address(B, 2));
    net.run_for(seconds(1));
    // the spare takes the place of those that go
    for n in [1, 2] {
        net.owned[B].retain(|a| *a != address(B, n));
        net.command(B, |b, now| b.local_address_removed(now, address(B, n)));
    }
    net.run_for(seconds(1));
    assert!(!net.association(B).is_stranded());
    // those that it replaced are deleted within RTO.Max
    net.run_for(seconds(61));
    let left: Vec<_> = net.association(B).local_addresses().map(|l| l.address).collect();
    assert_eq!(left, [address(B, 3)]);
}

#[test]
fn inits_do_not_keep_an_association_that_waits_for_the_end_of_its_shutdown() {
    // RFC 9260 section 9.2: the SHUTDOWN ACK again, and no more than that; anybody can send an INIT
    let mut net = Net::established(Config::default(), [1, 1]);
    net.run_for(ms(100));
    net.command(B, |b, now| b.shutdown(now));
    net.rule = Box::new(|_| vec![]);
    // the SHUTDOWN has arrived, and nothing does any more
    let shutdown = net.log.last().expect("a SHUTDOWN").packet.clone();
    net.inject(A, shutdown);
    net.log.clear();
    let mut answered = 0;
    while !net.has_event(A, &Event::Lost) && net.now < at(600.0) {
        let packet = net.forge_with_tag(A, address(B, 1), 0, [init(77, Vec::new())]);
        let before = net.log.len();
        net.inject(A, packet);
        answered += net.log.len() - before;
        net.run_for(ms(300));
    }
    assert!(net.has_event(A, &Event::Lost), "kept for as long as INITs come");
    assert!(answered > 10, "{answered}");
}
