//! An endpoint with many associations, and packets that anybody can send it without having seen one: what they cost must
//! not grow with the number of associations.

use crate::script::chunks::init;
use crate::script::{PORT, ours};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_proto::contract::LocalAddress;
use segue_proto::random::Stream;
use segue_proto::sctp::{Config, Endpoint};
use segue_proto::{Instant, InterfaceId};
use segue_wire::sctp::{Asconf, Chunk, Init, Parameter, SctpPacket};
use segue_wire::{AsconfSerial, Ipv6Header, Packet, Payload};

/// An endpoint and its peers, one address each.
pub struct Crowd {
    /// The endpoint.
    pub end: Endpoint,
    /// The last cookie that came back.
    pub cookie: Bytes,
    /// The tag that it came back under.
    pub cookie_tag: u32,
}

/// The address of peer `n`.
#[must_use]
pub fn member(n: u32) -> Ipv6Addr {
    Ipv6Addr::from((0x2001_0db8_000c_u128 << 80) | u128::from(n))
}

/// An address of nobody.
pub const STRANGER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 2, 0, 0, 0, 1);

fn packet(from: Ipv6Addr, tag: u32, chunks: Vec<Chunk>) -> Packet {
    Packet {
        ip: Ipv6Header {
            source: from,
            destination: ours(1),
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Sctp(SctpPacket {
            source_port: PORT,
            destination_port: PORT,
            verification_tag: tag,
            chunks: chunks.into_iter().collect(),
        }),
    }
}

impl Crowd {
    /// An endpoint with `count` associations, each of which a peer has opened.
    ///
    /// # Panics
    /// If a handshake fails.
    #[must_use]
    pub fn new(count: u32) -> Self {
        let config = Config {
            hb_interval: None,
            ..Config::default()
        };
        let mut end = Endpoint::new(config, PORT, Box::new(Stream::new(1, "secrets")));
        end.add_local_address(LocalAddress {
            interface: InterfaceId(1),
            address: ours(1),
        });
        end.listen();
        let mut crowd = Self {
            end,
            cookie: Bytes::new(),
            cookie_tag: 0,
        };
        for n in 0..count {
            crowd.join(n);
        }
        assert_eq!(crowd.end.associations().count(), count as usize);
        crowd
    }

    fn join(&mut self, n: u32) {
        let chunk = Init {
            // one tag for all: a peer is free to choose
            parameters: vec![
                Parameter::Ipv6Address(member(n)),
                Parameter::Ipv6Address(STRANGER),
            ],
            ..init()
        };
        let answers = self.take(packet(member(n), 0, vec![Chunk::Init(Box::new(chunk))]));
        let [Chunk::InitAck(ack)] = answers[0].chunks.as_slice() else {
            panic!("no INIT ACK: {answers:?}")
        };
        let cookie = ack.parameters.iter().find_map(|p| match p {
            Parameter::StateCookie(cookie) => Some(cookie.clone()),
            _ => None,
        });
        self.cookie = cookie.expect("state cookie");
        self.cookie_tag = ack.initiate_tag;
        let echo = Chunk::CookieEcho(self.cookie.clone());
        let answers = self.take(packet(member(n), self.cookie_tag, vec![echo]));
        assert!(matches!(answers[0].chunks[0], Chunk::CookieAck), "{answers:?}");
    }

    /// Hands the endpoint a packet, as one does: everything is polled behind it. Gives what it sends.
    pub fn take(&mut self, packet: Packet) -> Vec<SctpPacket> {
        self.end.handle_packet(Instant::ZERO, InterfaceId(1), packet);
        let mut sent = Vec::new();
        while let Some(transmit) = self.end.poll_transmit(Instant::ZERO) {
            if let Payload::Sctp(sctp) = transmit.packet.payload {
                sent.push(sctp);
            }
        }
        while self.end.poll_event().is_some() {}
        let _ = self.end.poll_timeout();
        sent
    }

    /// Packets that change nothing, by name.
    #[must_use]
    pub fn spoofed(&self) -> Vec<(&'static str, Packet)> {
        let init_with = |parameters| {
            let parameters = Init { parameters, ..init() };
            vec![Chunk::Init(Box::new(parameters))]
        };
        let all = (0..32).map(|n| Parameter::Ipv6Address(member(n))).collect();
        let asconf = |address| {
            vec![Chunk::Asconf(Box::new(Asconf {
                serial_number: AsconfSerial(1),
                address,
                parameters: Vec::new(),
            }))]
        };
        let reflected = |reflected_tag| {
            vec![Chunk::Abort {
                reflected_tag,
                causes: Vec::new(),
            }]
        };
        let heartbeat = || vec![Chunk::Heartbeat("x".into())];
        let echo = |cookie: &Bytes| vec![Chunk::CookieEcho(cookie.clone())];
        let elsewhere = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 3, 0, 0, 0, 1);
        vec![
            ("INIT of a stranger", packet(elsewhere, 0, init_with(Vec::new()))),
            ("INIT that names 32 peers", packet(elsewhere, 0, init_with(all))),
            ("INIT of a peer", packet(member(5), 0, init_with(Vec::new()))),
            ("wrong tag, a stranger", packet(elsewhere, 7, heartbeat())),
            ("wrong tag, a peer", packet(member(5), 7, heartbeat())),
            (
                "wrong tag, an address that all have named",
                packet(STRANGER, 7, heartbeat()),
            ),
            (
                "ABORT with a peer's tag, a stranger",
                packet(elsewhere, init().initiate_tag, reflected(true)),
            ),
            (
                "ABORT with a wrong tag, a peer",
                packet(member(5), 7, reflected(true)),
            ),
            (
                "ASCONF with a wrong tag, a stranger",
                packet(elsewhere, 7, asconf(elsewhere)),
            ),
            (
                "ASCONF with a wrong tag about an address that all have named",
                packet(elsewhere, 7, asconf(STRANGER)),
            ),
            (
                "INIT ACK",
                packet(member(5), 7, vec![Chunk::InitAck(Box::new(init()))]),
            ),
            (
                "forged COOKIE ECHO",
                packet(elsewhere, 7, echo(&Bytes::from_static(&[0; 200]))),
            ),
            (
                "old COOKIE ECHO, a stranger",
                packet(elsewhere, self.cookie_tag, echo(&self.cookie)),
            ),
        ]
    }
}
