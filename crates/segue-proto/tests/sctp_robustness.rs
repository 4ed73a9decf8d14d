//! No sequence of chunks from a peer can make an association panic.

use crate::common::*;
use bytes::Bytes;
use proptest::prelude::*;
use segue_proto::sctp::{AsconfAuth, Config, Profile, SendOptions};
use segue_wire::sctp::*;
use segue_wire::{AsconfSerial, Data, Ssn, Tsn};
use std::net::Ipv6Addr;

/// Numbers near those in use, or any.
fn near(base: u32) -> impl Strategy<Value = u32> {
    prop_oneof![6 => (0u32..12).prop_map(move |n| base.wrapping_sub(4).wrapping_add(n)), 1 => any::<u32>()]
}

fn some_address() -> impl Strategy<Value = Ipv6Addr> {
    prop_oneof![
        (1u16..5).prop_map(|n| address(A, n)),
        (1u16..3).prop_map(|n| address(B, n)),
        Just(Ipv6Addr::UNSPECIFIED),
        Just("ff02::1".parse().unwrap()),
    ]
}

fn some_bytes() -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn init() -> impl Strategy<Value = Box<Init>> {
    (
        any::<[u32; 3]>(),
        0u16..3,
        0u16..3,
        some_address(),
        some_bytes(),
        any::<u16>(),
    )
        .prop_map(
            |([tag, rwnd, tsn], outbound, inbound, address, bytes, parameter_type)| {
                Box::new(Init {
                    initiate_tag: tag,
                    a_rwnd: rwnd,
                    outbound_streams: outbound,
                    inbound_streams: inbound,
                    initial_tsn: Tsn(tsn),
                    parameters: vec![
                        Parameter::Ipv6Address(address),
                        Parameter::Unknown {
                            parameter_type,
                            value: bytes.clone(),
                        },
                        Parameter::StateCookie(bytes),
                    ],
                })
            },
        )
}

fn data(tsn: u32) -> impl Strategy<Value = Chunk> {
    (
        near(tsn),
        0u16..12,
        0u16..4,
        any::<[bool; 4]>(),
        prop_oneof![1 => Just(0u32), 200 => 1u32..3000],
    )
        .prop_map(|(tsn, stream_id, ssn, flags, len)| {
            Chunk::Data(DataChunk {
                tsn: Tsn(tsn),
                stream_id,
                ssn: Ssn(ssn),
                payload_protocol_id: 0,
                unordered: flags[0],
                beginning: flags[1],
                ending: flags[2],
                immediate: flags[3],
                data: Data::Synthetic {
                    offset: u64::MAX / 2,
                    len,
                },
            })
        })
}

fn sack(tsn: u32) -> impl Strategy<Value = Sack> {
    (
        near(tsn),
        prop_oneof![3 => Just(100_000), 2 => Just(0), 1 => Just(u32::MAX), 1 => 1u32..5000],
        proptest::collection::vec((0u16..14, 0u16..14), 0..4),
        near(tsn),
    )
        .prop_map(|(cumulative, a_rwnd, blocks, duplicate)| Sack {
            cumulative_tsn_ack: Tsn(cumulative),
            a_rwnd,
            gap_ack_blocks: blocks
                .into_iter()
                .map(|(start, end)| GapAckBlock { start, end })
                .collect(),
            duplicate_tsns: [Tsn(duplicate)].into(),
            data_packets: 0,
        })
}

fn asconf(serial: u32) -> impl Strategy<Value = Chunk> {
    let parameter =
        (0u8..4, any::<u32>(), some_address()).prop_map(|(kind, correlation_id, address)| match kind {
            0 => AsconfParameter::AddIpAddress {
                correlation_id,
                address,
            },
            1 => AsconfParameter::DeleteIpAddress {
                correlation_id,
                address,
            },
            2 => AsconfParameter::SetPrimaryAddress {
                correlation_id,
                address,
            },
            _ => AsconfParameter::Unknown {
                parameter_type: 0xc077,
                correlation_id,
                value: Bytes::new(),
            },
        });
    (
        near(serial),
        some_address(),
        proptest::collection::vec(parameter, 0..5),
    )
        .prop_map(|(serial, address, parameters)| {
            Chunk::Asconf(Box::new(Asconf {
                serial_number: AsconfSerial(serial),
                address,
                parameters,
            }))
        })
}

/// A chunk, given the peer's and our own next TSN.
fn chunk(peer_tsn: u32, own_tsn: u32) -> impl Strategy<Value = Chunk> {
    prop_oneof![
        8 => data(peer_tsn),
        8 => sack(own_tsn).prop_map(Chunk::Sack),
        3 => asconf(peer_tsn),
        1 => near(own_tsn).prop_map(|serial| Chunk::AsconfAck(Box::new(AsconfAck {
            serial_number: AsconfSerial(serial),
            responses: vec![AsconfResponse::SuccessIndication { correlation_id: 1 }],
        }))),
        1 => init().prop_map(Chunk::Init),
        1 => init().prop_map(Chunk::InitAck),
        2 => some_bytes().prop_map(Chunk::Heartbeat),
        2 => some_bytes().prop_map(Chunk::HeartbeatAck),
        1 => some_bytes().prop_map(Chunk::CookieEcho),
        1 => near(own_tsn).prop_map(|t| Chunk::Shutdown { cumulative_tsn_ack: Tsn(t) }),
        1 => any::<u8>().prop_map(|n| match n % 6 {
            0 => Chunk::ShutdownAck,
            1 => Chunk::CookieAck,
            2 => Chunk::ShutdownComplete { reflected_tag: false },
            3 => Chunk::Ecne(Tsn(0)),
            4 => Chunk::Error(vec![ErrorCause::StaleCookie(u32::MAX), ErrorCause::UnrecognizedChunkType(Bytes::from_static(&[0xc1, 0, 0, 4]))]),
            _ => Chunk::Cwr(Tsn(0)),
        }),
        1 => (0u16..3, 0u16..5, some_bytes())
            .prop_map(|(key, hmac_id, hmac)| Chunk::Auth(Box::new(Auth::new(key, hmac_id, hmac)))),
        1 => (any::<u8>(), some_bytes()).prop_map(|(chunk_type, value)| Chunk::Unknown { chunk_type, flags: 0, value }),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Packet(Ipv6Addr, Vec<u64>),
    Send(u32),
    Wait(u64),
    Command(u8, u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (some_address(), proptest::collection::vec(any::<u64>(), 1..4)).prop_map(|(a, s)| Step::Packet(a, s)),
        2 => (1u32..5000).prop_map(Step::Send),
        2 => (0u64..5000).prop_map(Step::Wait),
        1 => (any::<u8>(), 1u16..4).prop_map(|(c, n)| Step::Command(c, n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// B is attacked by packets that bear its tag and numbers near those in use, while it sends and changes addresses.
    #[test]
    fn arbitrary_chunks_never_panic(steps in proptest::collection::vec(step(), 1..200), profile in 0usize..3, authenticated: bool) {
        use proptest::strategy::ValueTree;
        use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
        let profile = [Profile::Rfc2960, Profile::Rfc4960, Profile::Rfc9260][profile];
        let asconf_auth = if authenticated { AsconfAuth::Required } else { AsconfAuth::None };
        let config = Config { receive_buffer: 8000, asconf_auth, ..Config::new(profile) };
        let mut net = Net::established(config, [2, 2]);
        net.send(A, 0, synthetic(0, 4));
        net.send(B, 0, synthetic(0, 4));
        let next = |net: &Net, host| net.log.iter().find(|d| d.from == host).unwrap().data().next().unwrap().tsn.next().0;
        let (peer_tsn, own_tsn) = (next(&net, A), next(&net, B));
        let tag = net.tag_of(B);
        net.run_for(ms(300));
        net.rule = Box::new(|_| vec![]);
        net.keep_log = false;
        let id = net.ids[B].unwrap();
        for step in steps {
            let now = net.now;
            match step {
                Step::Packet(from, seeds) => {
                    let chunks: Vec<_> = seeds.iter().map(|seed| {
                        let mut bytes = [0; 32];
                        bytes[..8].copy_from_slice(&seed.to_le_bytes());
                        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
                        let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
                        chunk(peer_tsn, own_tsn).new_tree(&mut runner).unwrap().current()
                    }).collect();
                    let mut packet = net.forge_with_tag(B, from, tag, chunks);
                    if let segue_wire::Payload::Sctp(sctp) = &mut packet.payload
                        && matches!(sctp.chunks[0], Chunk::Init(_)) {
                        sctp.verification_tag = 0;
                    }
                    net.inject(B, packet);
                }
                Step::Send(len) => {
                    if let Some(b) = net.ends[B].association_mut(id) {
                        let _ = b.send(now, 0, synthetic(0, len), SendOptions { unordered: len % 3 == 0, ..SendOptions::default() });
                    }
                    net.drain();
                }
                Step::Wait(n) => net.run_for(ms(n)),
                Step::Command(c, n) => {
                    if let Some(b) = net.ends[B].association_mut(id) {
                        match c % 6 {
                            0 => drop(b.add_address(now, local(B, n))),
                            1 => drop(b.delete_address(now, address(B, n))),
                            2 => drop(b.set_route(now, address(B, n))),
                            3 => drop(b.request_set_primary(now, address(B, n))),
                            4 => drop(b.set_primary_path(now, address(A, n))),
                            _ if c > 250 => b.shutdown(now),
                            _ => {}
                        }
                    }
                    net.drain();
                }
            }
        }
    }
}
