//! Chunk authentication (RFC 4895), and what RFC 5061 makes of it.

mod common;
#[path = "common/auth.rs"]
mod peer;

use bytes::Bytes;
use common::*;
use peer::{association_key, authenticated, is_authentic};
use segue_proto::sctp::{Config, Event};
use segue_wire::sctp::{Asconf, AsconfParameter, Auth, Chunk, Parameter};
use segue_wire::{AsconfSerial, Packet};

/// As [`Net::established`], with the handshake still in the log.
fn connected(config: [Config; 2], addresses: [u16; 2]) -> Net {
    let mut net = Net::new(config, addresses, ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    assert!(net.association(A).is_established() && net.association(B).is_established());
    net
}

fn both(config: Config, addresses: [u16; 2]) -> Net {
    connected([config.clone(), config], addresses)
}

fn parameters(net: &Net, host: usize) -> Vec<Parameter> {
    net.log
        .iter()
        .find_map(|d| match &d.sctp().chunks[0] {
            Chunk::Init(init) | Chunk::InitAck(init) if d.from == host => Some(init.parameters.clone()),
            _ => None,
        })
        .expect("no INIT")
}

/// Serial number of the first ASCONF of `host`: its initial TSN.
fn first_serial(net: &Net, host: usize) -> AsconfSerial {
    net.log
        .iter()
        .find_map(|d| match &d.sctp().chunks[0] {
            Chunk::Init(init) | Chunk::InitAck(init) if d.from == host => {
                Some(AsconfSerial(init.initial_tsn.0))
            }
            _ => None,
        })
        .expect("no INIT")
}

/// An ASCONF of B that adds its address `n`.
fn asconf(serial: AsconfSerial, n: u16) -> Chunk {
    Chunk::Asconf(Box::new(Asconf {
        serial_number: serial,
        address: address(B, 1),
        parameters: vec![AsconfParameter::AddIpAddress {
            correlation_id: 1,
            address: address(B, n),
        }],
    }))
}

fn destinations(net: &Net, host: usize) -> Vec<std::net::Ipv6Addr> {
    net.association(host).paths().map(|p| p.destination).collect()
}

/// The packet as it comes off a wire.
fn through_bytes(packet: &Packet) -> Packet {
    Packet::parse(&packet.to_vec()).expect("parse")
}

#[test]
fn both_ends_offer_authentication_and_demand_it_of_asconf() {
    // RFC 4895 section 6.1, RFC 5061 section 4.2.7
    let net = both(Config::default(), [1, 1]);
    let mut randoms = Vec::new();
    for host in [A, B] {
        let sent = parameters(&net, host);
        assert!(sent.contains(&Parameter::Chunks(Bytes::from_static(&[0xc1, 0x80]))));
        assert!(sent.contains(&Parameter::HmacAlgo(vec![3, 1])));
        assert!(sent.iter().any(|p| matches!(p,
            Parameter::SupportedExtensions(types) if [0xc1, 0x80, 0x0f].iter().all(|t| types.contains(t)))));
        randoms.extend(sent.into_iter().filter_map(|p| match p {
            Parameter::Random(random) => Some(random),
            _ => None,
        }));
        assert!(net.association(host).is_authentication_negotiated());
        assert!(!net.has_event(host, &Event::AuthenticationNotSupported));
    }
    assert_eq!(randoms.iter().map(Bytes::len).collect::<Vec<_>>(), [32, 32]);
    assert_ne!(randoms[0], randoms[1]);
}

#[test]
fn an_asconf_and_its_answer_are_authenticated_by_the_key_of_the_handshake() {
    let mut net = both(Config::default(), [1, 1]);
    let key = association_key(&net, b"");
    net.log.clear();
    net.owned[B].push(address(B, 2));
    net.command(B, |b, now| b.add_address(now, local(B, 2))).unwrap();
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
    assert!(net.log[..2].iter().all(|d| is_authentic(&key, d.sctp())));
    let Chunk::Auth(auth) = &net.log[0].sctp().chunks[0] else {
        panic!("no AUTH")
    };
    assert_eq!(
        (auth.shared_key_id, auth.hmac_id, auth.hmac.len()),
        (0, 3, 32),
        "SHA-256 is what both prefer"
    );
    assert_eq!(destinations(&net, A), [address(B, 1), address(B, 2)]);
    assert_eq!(net.association(A).counters().refused.total(), 0);
}

#[test]
fn an_asconf_without_authentication_or_with_a_wrong_one_changes_nothing_and_is_counted() {
    // RFC 5061 section 4.1.1, RFC 4895 section 6.3
    let mut net = both(Config::default(), [1, 1]);
    let key = association_key(&net, b"");
    let serial = first_serial(&net, B);
    let flipped = |mut chunks: Vec<Chunk>| {
        let Chunk::Auth(auth) = &mut chunks[0] else {
            panic!()
        };
        let mut hmac = auth.hmac.to_vec();
        hmac[31] ^= 1;
        auth.hmac = hmac.into();
        chunks
    };
    let add = || [asconf(serial, 2)];
    let forged: [(Vec<Chunk>, u64, u64); 7] = [
        (add().to_vec(), 1, 0),
        (authenticated(b"another key", (0, 3), add()), 0, 1),
        (flipped(authenticated(&key, (0, 3), add())), 0, 1),
        // right, but for another ASCONF
        (
            vec![
                authenticated(&key, (0, 3), [asconf(serial, 3)])[0].clone(),
                asconf(serial, 2),
            ],
            0,
            1,
        ),
        // a key that does not exist, and an HMAC cut short
        (authenticated(&key, (1, 3), add()), 0, 1),
        (
            vec![
                Chunk::Auth(Box::new(Auth::new(0, 3, Bytes::new()))),
                asconf(serial, 2),
            ],
            0,
            1,
        ),
        // before the AUTH chunk it is not authenticated (section 5.1)
        (
            [
                add().to_vec(),
                authenticated(&key, (0, 3), [Chunk::Heartbeat(Bytes::from_static(b"x"))]),
            ]
            .concat(),
            1,
            0,
        ),
    ];
    for (i, (chunks, unauthenticated, bad_auth)) in forged.into_iter().enumerate() {
        // from an address of the peer, and from one that A would find the association of by what the ASCONF says
        for from in [address(B, 1), address(B, 7)] {
            let before = net.association(A).counters().refused;
            let packet = net.forge(A, from, chunks.clone());
            for packet in [through_bytes(&packet), packet] {
                net.log.clear();
                net.inject(A, packet);
                let answers = net.trace();
                assert!(
                    answers.is_empty() || (i == 6 && answers == ["A HEARTBEAT-ACK"] && from == address(B, 1)),
                    "{i} {answers:?}"
                );
            }
            let after = net.association(A).counters().refused;
            assert_eq!(
                after.unauthenticated - before.unauthenticated,
                2 * unauthenticated,
                "{i}"
            );
            assert_eq!(after.bad_auth - before.bad_auth, 2 * bad_auth, "{i}");
            assert_eq!(destinations(&net, A), [address(B, 1)]);
            net.log.clear();
        }
    }
    // and it was not for the serial number
    let packet = net.forge(A, address(B, 1), authenticated(&key, (0, 1), add()));
    net.inject(A, packet);
    assert_eq!(destinations(&net, A), [address(B, 1), address(B, 2)]);
}
