//! SCTP in UDP (RFC 6951): where encapsulated packets go, and what changes that.

use crate::common::*;
use segue_proto::sctp::{Config, Event, UdpEncapsulation, Unreachable};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::sctp::{Chunk, Init};
use segue_wire::{Packet, Payload, Tsn};

const CLIENT_PORT: u16 = 40_000;
const SERVER_PORT: u16 = 9899;

fn config(local_port: u16, remote_port: u16) -> Config {
    Config {
        udp_encapsulation: Some(UdpEncapsulation {
            local_port,
            remote_port,
        }),
        ..Config::default()
    }
}

/// A client behind a port of its own, and a server that has to learn it.
fn net() -> Net {
    let configs = [config(CLIENT_PORT, SERVER_PORT), config(SERVER_PORT, SERVER_PORT)];
    Net::new(configs, [1, 1], ms(10), 1)
}

fn established() -> Net {
    let mut net = net();
    net.connect();
    net.run_for(ms(500));
    assert!(net.association(A).is_established() && net.association(B).is_established());
    // both tags are on record
    net.tag_of(A);
    net.tag_of(B);
    net.run_for(ms(500));
    net
}

fn udp_ports(packet: &Packet) -> Option<(u16, u16)> {
    match packet.payload {
        Payload::SctpOverUdp {
            source_port,
            destination_port,
            ..
        } => Some((source_port, destination_port)),
        _ => None,
    }
}

/// The packet in UDP from `source_port` to the server.
fn in_udp(mut packet: Packet, source_port: u16) -> Packet {
    if let Payload::Sctp(sctp) = packet.payload {
        packet.payload = Payload::SctpOverUdp {
            source_port,
            destination_port: SERVER_PORT,
            packet: sctp,
        };
    }
    packet
}

fn heartbeat() -> Chunk {
    Chunk::Heartbeat(bytes::Bytes::from_static(b"who is there"))
}

/// UDP ports of what the server sends to the client now.
fn ports_of_server_data(net: &mut Net) -> Option<(u16, u16)> {
    net.log.clear();
    net.send(B, 0, synthetic(0, 100));
    let sent = net.log.iter().find(|d| d.from == B && d.data().next().is_some());
    udp_ports(&sent.expect("data was sent").packet)
}

#[test]
fn both_ends_send_everything_between_the_ports_that_the_server_learned() {
    let mut net = net();
    net.connect();
    net.run_for(ms(100));
    for i in 0..200 {
        net.send(A, 0, synthetic(i * 1000, 1000));
        net.send(B, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(ms(5000));
    assert_eq!((net.messages[A].len(), net.messages[B].len()), (200, 200));
    for departure in &net.log {
        let expected = if departure.from == A {
            (CLIENT_PORT, SERVER_PORT)
        } else {
            (SERVER_PORT, CLIENT_PORT)
        };
        assert_eq!(udp_ports(&departure.packet), Some(expected));
    }
}

#[test]
fn the_udp_header_is_within_the_mtu() {
    // RFC 6951 section 5.6
    let mut net = established();
    net.log.clear();
    net.send(A, 0, synthetic(0, 100_000));
    net.run_for(ms(5000));
    let longest = net.log.iter().map(|d| d.packet.buffer_len()).max();
    assert_eq!(longest, Some(1500));
    // in pieces: it is longer than the partial delivery point
    let received: usize = net.messages[B]
        .iter()
        .map(|m| m.parts.iter().map(|p| p.len()).sum::<usize>())
        .sum();
    assert_eq!(received, 100_000);
}

#[test]
fn a_packet_with_the_right_tag_moves_the_port() {
    // RFC 6951 section 5.4: a NAT has given the client another port
    let mut net = established();
    let packet = net.forge(B, address(A, 1), [heartbeat()]);
    net.log.clear();
    net.inject(B, in_udp(packet, 50_000));
    let answer = net.log.iter().find(|d| d.from == B).expect("HEARTBEAT ACK");
    assert_eq!(udp_ports(&answer.packet), Some((SERVER_PORT, 50_000)));
    assert_eq!(ports_of_server_data(&mut net), Some((SERVER_PORT, 50_000)));
}

#[test]
fn a_packet_with_the_right_tag_and_without_udp_ends_the_encapsulation() {
    // RFC 6951 section 5.4
    let mut net = established();
    let packet = net.forge(B, address(A, 1), [heartbeat()]);
    net.inject(B, packet);
    assert_eq!(ports_of_server_data(&mut net), None);
}

#[test]
fn a_packet_with_a_wrong_tag_changes_nothing() {
    let mut net = established();
    let tag = net.tag_of(B).wrapping_add(1);
    for port in [Some(50_000), None] {
        let packet = net.forge_with_tag(B, address(A, 1), tag, [heartbeat()]);
        let packet = match port {
            Some(port) => in_udp(packet, port),
            None => packet,
        };
        net.inject(B, packet);
        assert_eq!(
            ports_of_server_data(&mut net),
            Some((SERVER_PORT, CLIENT_PORT)),
            "{port:?}"
        );
    }
}

#[test]
fn an_init_is_answered_where_it_came_from_and_moves_nothing() {
    // an INIT proves nothing: anyone could have sent it
    let mut net = established();
    let init = Chunk::Init(Box::new(Init {
        initiate_tag: 77,
        a_rwnd: 100_000,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(1),
        parameters: Vec::new(),
    }));
    let packet = net.forge_with_tag(B, address(A, 1), 0, [init]);
    net.log.clear();
    net.inject(B, in_udp(packet, 50_000));
    let answer = net.log.iter().find(|d| d.from == B).expect("an answer");
    assert_eq!(names(answer.sctp()), ["INIT-ACK"]);
    assert_eq!(udp_ports(&answer.packet), Some((SERVER_PORT, 50_000)));
    assert_eq!(ports_of_server_data(&mut net), Some((SERVER_PORT, CLIENT_PORT)));
}

#[test]
fn every_address_of_the_peer_keeps_its_own_port() {
    let configs = [config(CLIENT_PORT, SERVER_PORT), config(SERVER_PORT, SERVER_PORT)];
    let mut net = Net::new(configs, [2, 1], ms(10), 1);
    net.connect();
    net.run_for(ms(1000));
    net.tag_of(B);
    // the second address comes through another NAT
    let packet = net.forge(B, address(A, 2), [heartbeat()]);
    net.inject(B, in_udp(packet, 50_000));
    assert_eq!(ports_of_server_data(&mut net), Some((SERVER_PORT, CLIENT_PORT)));
    net.command(B, |a, now| a.set_primary_path(now, address(A, 2)))
        .unwrap();
    assert_eq!(ports_of_server_data(&mut net), Some((SERVER_PORT, 50_000)));
}

#[test]
fn who_does_not_encapsulate_refuses_udp_and_so_does_another_port() {
    for (server, port) in [
        (Config::default(), SERVER_PORT),
        (config(9900, 9900), SERVER_PORT),
    ] {
        let mut net = Net::new([config(CLIENT_PORT, port), server], [1, 1], ms(10), 1);
        net.connect();
        net.run_for(ms(2000));
        assert!(!net.association(A).is_established());
        assert!(net.log.iter().all(|d| d.from == A), "nothing was answered");
        assert!(net.ends[B].counters().refused.total() >= 2);
    }
}

#[test]
fn a_server_that_encapsulates_also_takes_plain_packets() {
    let mut net = Net::new(
        [Config::default(), config(SERVER_PORT, SERVER_PORT)],
        [1, 1],
        ms(10),
        1,
    );
    net.connect();
    net.run_for(ms(500));
    assert!(net.association(A).is_established() && net.association(B).is_established());
    assert!(net.log.iter().all(|d| udp_ports(&d.packet).is_none()));
}

fn port_unreachable(about: &Packet) -> Icmpv6 {
    Icmpv6::DestinationUnreachable {
        code: 4,
        invoking: Icmpv6::quote(about),
    }
}

#[test]
fn port_unreachable_about_the_init_ends_the_attempt_and_nothing_later() {
    // section 5.5: as if SCTP were unknown there
    let mut net = net();
    net.rule = Box::new(|_| vec![]);
    net.connect();
    let init = net.log[0].packet.clone();
    let now = net.now;
    net.ends[A].handle_icmp(now, &port_unreachable(&init));
    net.drain();
    let reason = Unreachable::Port;
    let address = address(B, 1);
    assert!(net.has_event(A, &Event::Unreachable { address, reason }));
    assert!(net.has_event(A, &Event::Aborted { causes: vec![] }));
    // the address of a peer that is there may become another host's
    let mut net = established();
    net.log.clear();
    net.send(A, 0, synthetic(0, 100));
    let data = net.log[0].packet.clone();
    let now = net.now;
    net.ends[A].handle_icmp(now, &port_unreachable(&data));
    net.drain();
    assert!(net.association(A).is_established());
    assert_eq!(net.ends[A].counters().icmp.ignored, 1);
}

#[test]
fn a_peer_with_another_address_is_asked_there() {
    let configs = [config(CLIENT_PORT, SERVER_PORT), config(SERVER_PORT, SERVER_PORT)];
    let mut net = Net::new(configs, [1, 2], ms(10), 1);
    net.rule = Box::new(|d| match d.packet.ip.destination == address(B, 1) {
        true => vec![],
        false => vec![ms(10)],
    });
    let now = net.now;
    net.ids[A] = net.ends[A].connect(now, &[address(B, 1), address(B, 2)], PORT);
    net.drain();
    let init = net.log[0].packet.clone();
    assert_eq!(init.ip.destination, address(B, 1));
    net.ends[A].handle_icmp(now, &port_unreachable(&init));
    net.drain();
    net.run_for(ms(5000));
    assert!(net.association(A).is_established());
}
