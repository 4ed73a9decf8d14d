//! What a peer, or many, can make of a host's memory and of its packets: no more than is meant.

use crate::common::*;
use segue_proto::app;
use segue_proto::contract::LocalAddress;
use segue_proto::host::{Addressing, Host, HostConfig, InterfaceConfig, LocationConfig, ShimConfig};
use segue_proto::random::Stream;
use segue_proto::sctp::{AsconfAuth, Config, Endpoint, Event};
use segue_proto::units::Bytes;
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::AsconfSerial;
use segue_wire::icmpv6::nd::LinkLayerAddress;
use segue_wire::sctp::{Asconf, AsconfParameter, Chunk, ErrorCause};

#[test]
fn a_packet_is_answered_by_one_packet_however_much_in_it_asks_for_an_answer() {
    let mut net = Net::established(Config::default(), [1, 1]);
    let mut chunks = Vec::new();
    for n in 0..100u8 {
        chunks.push(Chunk::Heartbeat(vec![n; 4].into()));
        chunks.push(Chunk::Unknown {
            chunk_type: 0xfe,
            flags: n % 7,
            value: vec![].into(),
        });
    }
    let packet = net.forge(B, address(A, 1), chunks);
    let received = packet.buffer_len();
    net.log.clear();
    net.rule = Box::new(|_| vec![]);
    net.inject(B, packet);
    assert_eq!(net.log.len(), 1);
    let answer = net.log[0].sctp();
    assert!(net.log[0].packet.buffer_len() <= 1500.min(received + 64));
    let Some(Chunk::Error(causes)) = answer.chunks.first() else {
        panic!("no ERROR")
    };
    assert_eq!(causes.len(), 7, "each once");
    assert!(
        causes
            .iter()
            .all(|c| matches!(c, ErrorCause::UnrecognizedChunkType(_)))
    );
    let acks = answer
        .chunks
        .iter()
        .filter(|c| matches!(c, Chunk::HeartbeatAck(_)))
        .count();
    assert_eq!(acks, 100);
}

#[test]
fn hundreds_of_sources_with_data_outstanding_from_each_are_kept_apart() {
    let config = Config {
        rto_initial: Duration::from_secs(600),
        rto_min: Duration::from_secs(600),
        rto_max: Duration::from_secs(600),
        hb_interval: None,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.rule = Box::new(|d| {
        if d.from == A && d.data().next().is_some() {
            vec![]
        } else {
            vec![ms(1)]
        }
    });
    let count = 300u16;
    for n in 2..2 + count {
        net.owned[A].push(address(A, n));
        let new = LocalAddress {
            interface: InterfaceId(0),
            address: address(A, n),
        };
        net.command(A, |a, now| a.add_address(now, new)).expect("add");
        net.run_for(ms(20));
        net.command(A, |a, now| a.set_route(now, address(A, n)))
            .expect("route");
        net.command(A, |a, now| a.delete_address(now, address(A, n - 1)))
            .expect("delete");
        net.run_for(ms(20));
        net.send(A, 0, synthetic(u64::from(n), 4));
        net.run_for(ms(20));
    }
    let paths: Vec<_> = net.association(A).paths().collect();
    assert!(paths.len() > 200 && paths.len() <= 255, "{} paths", paths.len());
    let flight: u32 = paths.iter().map(|p| p.flightsize).sum();
    assert_eq!(flight, 20 * net.association(A).outstanding_bytes() / 4);
    net.rule = Box::new(|_| vec![ms(1)]);
    net.run_for(Duration::from_secs(3000));
    assert_eq!(net.messages[B].len(), usize::from(count));
    assert!(net.association(A).is_sender_dry());
    assert_eq!(net.association(A).outstanding_bytes(), 0);
}

#[test]
fn an_asconf_that_comes_when_only_shutdown_complete_is_missing_changes_nothing() {
    let config = Config {
        asconf_auth: AsconfAuth::None,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.rule = Box::new(|d| match names(d.sctp())[..] {
        ["SHUTDOWN-COMPLETE"] => vec![],
        _ => vec![ms(10)],
    });
    let initial_tsn = {
        net.send(A, 0, synthetic(0, 10));
        net.run_for(ms(500));
        net.log
            .iter()
            .find_map(|d| d.data().next().map(|c| c.tsn))
            .expect("DATA")
    };
    let tag = net.tag_of(B);
    net.command(A, |a, now| a.shutdown(now));
    net.run_for(ms(100));
    net.log.clear();
    let asconf = Chunk::Asconf(Box::new(Asconf {
        serial_number: AsconfSerial(initial_tsn.0),
        address: address(A, 1),
        parameters: vec![AsconfParameter::AddIpAddress {
            correlation_id: 1,
            address: address(A, 2),
        }],
    }));
    let before = net.association(B).counters().refused.unexpected;
    let packet = net.forge_with_tag(B, address(A, 1), tag, [asconf]);
    net.inject(B, packet);
    assert_eq!(net.association(B).counters().refused.unexpected, before + 1);
    assert!(net.log.is_empty());
    assert_eq!(net.association(B).paths().count(), 1);
}

#[test]
fn a_peer_that_never_stops_sending_cannot_hold_up_the_end() {
    // section 9.2: T5-shutdown-guard
    let config = Config {
        rto_max: Duration::from_secs(2),
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.rule = Box::new(|d| match names(d.sctp())[..] {
        [.., "SHUTDOWN"] => vec![],
        _ => vec![ms(10)],
    });
    net.command(A, |a, now| a.shutdown(now));
    let start = net.now;
    while net.now < start + Duration::from_secs(12) && !net.has_event(B, &Event::Lost) {
        if net.association(B).is_closed() {
            break;
        }
        net.send(B, 0, synthetic(0, 10));
        net.run_for(ms(100));
    }
    let aborted = net.events[A]
        .iter()
        .find(|(_, e)| matches!(e, Event::Aborted { .. }))
        .expect("T5");
    assert_eq!(aborted.0, start + Duration::from_secs(10));
}

#[test]
fn an_endpoint_forgets_associations_that_have_ended() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    for n in 0..50 {
        net.ends[A] = Endpoint::new(
            Config::default(),
            PORT,
            Box::new(Stream::new(n, "another client")),
        );
        net.ends[A].add_local_address(local(A, 1));
        net.connect();
        net.run_for(ms(100));
        net.send(A, 0, synthetic(0, 10));
        net.run_for(ms(500));
        // the last of them is left unread
        net.reading[B] = n % 2 == 0;
        net.send(A, 0, synthetic(0, 10));
        net.run_for(ms(500));
        net.command(A, |a, now| a.shutdown(now));
        net.run_for(ms(100));
        let id = net.ids[B].expect("association");
        if n % 2 == 1 {
            assert!(net.ends[B].forget(id));
        }
        assert!(net.ends[B].associations().count() <= 1);
    }
    assert_eq!(net.ends[B].counters().inits_answered, 50);
}

fn host(name: &str, role: app::Role, kind: app::Kind) -> Host {
    let n = if name == "client" { A } else { B };
    let config = HostConfig {
        name: name.to_owned(),
        interfaces: vec![InterfaceConfig {
            link_layer: LinkLayerAddress([2, 0, 0, 0, 0, n as u8]),
            addressing: Addressing::Static(vec![address(n, 1)]),
        }],
        sctp: Config::default(),
        tcp: segue_proto::tcp::Config::default(),
        port: PORT,
        applications: vec![app::Config {
            transport: app::Transport::Sctp,
            role,
            kind,
        }],
        sigma: None,
        shim: ShimConfig::None,
        location: LocationConfig::default(),
    };
    Host::new(config, 1, Box::new(Stream::new(1, name))).expect("host")
}

#[test]
fn a_server_host_keeps_no_more_than_its_connections_at_a_time() {
    let mut server = host("server", app::Role::Listen, app::Kind::Sink);
    let mut now = Instant::ZERO;
    let mut bytes = 0;
    for _ in 0..20 {
        let kind = app::Kind::Bulk {
            total: Some(Bytes::new(5000)),
            message: None,
        };
        let role = app::Role::Connect {
            peer: vec![address(B, 1)],
            port: PORT,
            start: now.since(Instant::ZERO),
        };
        let mut client = host("client", role, kind);
        client.handle_timeout(now);
        for _ in 0..200 {
            let mut quiet = true;
            while let Some(t) = client.poll_transmit(now) {
                quiet = false;
                server.handle_packet(now, t.interface, t.packet);
            }
            while let Some(t) = server.poll_transmit(now) {
                quiet = false;
                client.handle_packet(now, t.interface, t.packet);
            }
            while client.poll_event().is_some() || server.poll_event().is_some() {}
            if quiet {
                now += ms(100);
                client.handle_timeout(now);
                server.handle_timeout(now);
            }
        }
        bytes += 5000;
        let received: u64 = server.applications().map(|s| s.bytes_received).sum();
        assert_eq!(received, bytes);
        assert_eq!(server.applications().map(|s| s.messages_corrupt).sum::<u64>(), 0);
        assert!(server.applications().count() <= 2);
        assert!(server.endpoint().associations().count() <= 1);
    }
}
