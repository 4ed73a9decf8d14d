//! One endpoint against a scripted peer: the peer says what the test says, the endpoint runs by itself, and what it sends
//! is taken off one packet after the other. Everything crosses the wire: packets are emitted and parsed both ways.
//!
//! ```
//! use segue_conformance::script::{Script, chunks::*, quiet};
//! use segue_conformance::expect;
//! use segue_wire::sctp::{Chunk, Sack};
//!
//! let mut t = Script::established(quiet());
//! t.send([data(0)]);
//! expect!(t, Chunk::Sack(_));
//! t.send([data(1), data(2)]);
//! expect!(t, Chunk::Sack(Sack { cumulative_tsn_ack, .. }) if *cumulative_tsn_ack == peer_tsn(2));
//! ```

use crate::transcript::OfTest;
use bytes::Bytes;
use chunks::{PEER_TAG, init};
use core::fmt::Write;
use core::net::Ipv6Addr;
use segue_proto::contract::LocalAddress;
use segue_proto::random::Stream;
use segue_proto::sctp::{Association, AssociationId, Config, Endpoint, Event, Message, SendOptions};
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::sctp::{Chunk, Parameter, SctpPacket};
use segue_wire::{Ipv6Header, Packet, Payload, Tsn};
use std::collections::VecDeque;

pub mod auth;
pub mod chunks;

/// Port of both ends.
pub const PORT: u16 = 5000;
/// Longest wait for a packet that must come.
const LONGEST_WAIT: Duration = Duration::from_secs(130);

/// Address `n` of the endpoint under test, from 1.
#[must_use]
pub fn ours(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xa, n, 0, 0, 0, 1)
}

/// Address `n` of the scripted peer, from 1.
#[must_use]
pub fn peer(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xb, n, 0, 0, 0, 1)
}

/// The recommended configuration, without the heartbeats of idle paths.
#[must_use]
pub fn quiet() -> Config {
    Config {
        hb_interval: None,
        ..Config::default()
    }
}

/// Milliseconds.
#[must_use]
pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A packet that the endpoint sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// From which of its addresses.
    pub source: Ipv6Addr,
    /// To which of the peer's.
    pub destination: Ipv6Addr,
    /// Verification tag.
    pub tag: u32,
    /// Chunks.
    pub chunks: Vec<Chunk>,
    /// UDP ports, source first, if the packet was encapsulated (RFC 6951).
    pub udp: Option<(u16, u16)>,
    /// Length of the IPv6 packet, bytes.
    pub len: usize,
}

/// An endpoint and what is known of its association.
pub struct Script {
    /// The time.
    pub now: Instant,
    /// The endpoint under test.
    pub end: Endpoint,
    /// Its association, once there is one.
    pub id: Option<AssociationId>,
    /// Its tag: that of packets sent to it.
    pub our_tag: u32,
    /// Its initial TSN.
    pub our_tsn: Tsn,
    /// Events not yet looked at.
    pub events: VecDeque<Event>,
    /// Whether the user takes messages as they come.
    pub reading: bool,
    /// Messages taken.
    pub messages: VecDeque<Message>,
    /// The packet last received.
    pub last: Option<Sent>,
    /// What the peer authenticates with, if both ends do.
    pub auth: Option<auth::PeerAuth>,
    out: VecDeque<Sent>,
    readable: bool,
    transcript: OfTest,
}

impl Script {
    /// An endpoint with `addresses` addresses that does nothing.
    #[must_use]
    pub fn new(config: Config, addresses: u16) -> Self {
        let mut end = Endpoint::new(config, PORT, Box::new(Stream::new(1, "secrets")));
        for n in 1..=addresses {
            end.add_local_address(LocalAddress {
                interface: InterfaceId(n as u8),
                address: ours(n),
            });
        }
        Self {
            now: Instant::ZERO,
            end,
            id: None,
            our_tag: 0,
            our_tsn: Tsn(0),
            events: VecDeque::new(),
            reading: true,
            messages: VecDeque::new(),
            last: None,
            auth: None,
            out: VecDeque::new(),
            readable: false,
            transcript: OfTest::begin(),
        }
    }

    /// An endpoint that accepts associations.
    #[must_use]
    pub fn listening(config: Config) -> Self {
        let mut script = Self::new(config, 1);
        script.end.listen();
        script
    }

    /// An endpoint that has sent its INIT to the peer's first address.
    ///
    /// # Panics
    /// If it did not.
    #[must_use]
    pub fn connecting(config: Config) -> Self {
        let mut script = Self::new(config, 1);
        script.id = script.end.connect(script.now, &[peer(1)], PORT);
        script.settle();
        script
    }

    /// An association that the peer has opened.
    ///
    /// # Panics
    /// If the handshake fails.
    #[must_use]
    pub fn established(config: Config) -> Self {
        Self::established_with(config, 1, Vec::new())
    }

    /// An association that the peer has opened with these parameters in its INIT, of an endpoint with `addresses`
    /// addresses.
    ///
    /// # Panics
    /// If the handshake fails.
    #[must_use]
    pub fn established_with(config: Config, addresses: u16, parameters: Vec<Parameter>) -> Self {
        let mut script = Self::new(config, addresses);
        script.end.listen();
        script.shake_hands(parameters);
        script
    }

    /// The peer opens an association.
    ///
    /// # Panics
    /// If the handshake fails.
    pub fn shake_hands(&mut self, parameters: Vec<Parameter>) {
        let mut chunk = init();
        chunk.parameters.extend(parameters);
        self.send_with_tag(0, [Chunk::Init(Box::new(chunk.clone()))]);
        let answer = self.receive();
        let [Chunk::InitAck(ack)] = &answer.chunks[..] else {
            panic!("no INIT ACK: {answer:?}")
        };
        self.our_tag = ack.initiate_tag;
        self.our_tsn = ack.initial_tsn;
        self.auth = auth::PeerAuth::new(&chunk.parameters, &ack.parameters, b"");
        let cookie = ack
            .parameters
            .iter()
            .find_map(|p| match p {
                Parameter::StateCookie(cookie) => Some(cookie.clone()),
                _ => None,
            })
            .expect("state cookie");
        self.send([Chunk::CookieEcho(cookie)]);
        let answer = self.receive();
        assert!(matches!(answer.chunks[0], Chunk::CookieAck), "{answer:?}");
        assert!(self.association().is_established());
        self.events.clear();
    }

    /// The association.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn association(&self) -> &Association {
        self.end
            .association(self.id.expect("no association"))
            .expect("the association is gone")
    }

    /// Whether there still is an association that is not over.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.id
            .and_then(|id| self.end.association(id))
            .is_some_and(|a| !a.is_closed())
    }

    /// The endpoint's user does something.
    ///
    /// # Panics
    /// If there is no association.
    pub fn command<R>(&mut self, f: impl FnOnce(&mut Association, Instant) -> R) -> R {
        let now = self.now;
        let id = self.id.expect("no association");
        let result = f(
            self.end.association_mut(id).expect("the association is gone"),
            now,
        );
        self.settle();
        result
    }

    /// The user sends a message of `len` bytes on stream 0.
    ///
    /// # Panics
    /// If it is not taken.
    pub fn user_sends(&mut self, len: usize) {
        let data = segue_wire::Data::Bytes(vec![0x5a; len].into());
        self.command(|a, now| a.send(now, 0, data, SendOptions::default()))
            .expect("send");
    }

    /// The peer sends a packet of these chunks.
    ///
    /// # Panics
    /// If an invariant breaks.
    pub fn send(&mut self, chunks: impl IntoIterator<Item = Chunk>) {
        self.send_with_tag(self.our_tag, chunks);
    }

    /// An association whose peer authenticates, and asks for authenticated ASCONF and ASCONF-ACK, of an endpoint with
    /// `addresses` addresses.
    ///
    /// # Panics
    /// If the handshake fails.
    #[must_use]
    pub fn authenticated(config: Config, addresses: u16) -> Self {
        let script = Self::established_with(config, addresses, auth::parameters());
        assert!(script.auth.is_some(), "authentication was not negotiated");
        script
    }

    /// Chunks, behind an AUTH chunk that covers them.
    ///
    /// # Panics
    /// If nothing was negotiated.
    #[must_use]
    pub fn signed(&self, chunks: impl IntoIterator<Item = Chunk>) -> Vec<Chunk> {
        self.auth
            .as_ref()
            .expect("authentication was not negotiated")
            .sign(chunks)
    }

    /// The peer sends from its address `from`.
    ///
    /// # Panics
    /// If an invariant breaks.
    pub fn send_from(&mut self, from: Ipv6Addr, chunks: impl IntoIterator<Item = Chunk>) {
        let sctp = sctp(self.our_tag, chunks);
        self.send_sctp(from, ours(1), sctp);
    }

    /// The peer sends under another verification tag.
    ///
    /// # Panics
    /// If an invariant breaks.
    pub fn send_with_tag(&mut self, tag: u32, chunks: impl IntoIterator<Item = Chunk>) {
        self.send_sctp(peer(1), ours(1), sctp(tag, chunks));
    }

    /// Somebody sends an SCTP packet.
    ///
    /// # Panics
    /// If an invariant breaks.
    pub fn send_sctp(&mut self, from: Ipv6Addr, to: Ipv6Addr, sctp: SctpPacket) {
        self.send_payload(from, to, Payload::Sctp(sctp));
    }

    /// The peer sends in UDP, between these ports, its own first.
    ///
    /// # Panics
    /// If an invariant breaks.
    pub fn send_in_udp(&mut self, ports: (u16, u16), tag: u32, chunks: impl IntoIterator<Item = Chunk>) {
        let payload = Payload::SctpOverUdp {
            source_port: ports.0,
            destination_port: ports.1,
            packet: sctp(tag, chunks),
        };
        self.send_payload(peer(1), ours(1), payload);
    }

    /// The peer sends from its address `from` a packet that was parsed already: what the endpoint keeps of it keeps the
    /// bytes that it was parsed from.
    ///
    /// # Panics
    /// If an invariant breaks.
    pub fn send_parsed(&mut self, from: Ipv6Addr, sctp: SctpPacket) {
        let packet = packet(from, ours(1), Payload::Sctp(sctp));
        self.end.handle_packet(self.now, InterfaceId(1), packet);
        self.settle();
    }

    fn send_payload(&mut self, from: Ipv6Addr, to: Ipv6Addr, payload: Payload) {
        let bytes = packet(from, to, payload).to_vec();
        let packet = Packet::parse(&bytes).expect("a packet that parses");
        self.end.handle_packet(self.now, InterfaceId(1), packet);
        self.settle();
    }

    /// The peer sends chunks as bytes, with tag and checksum put right. Returns whether they are a packet at all: what is
    /// not, never reaches an endpoint.
    ///
    /// # Panics
    /// If an invariant breaks.
    pub fn send_bytes(&mut self, chunks: &[u8]) -> bool {
        let mut sctp = Vec::new();
        SctpPacket {
            source_port: PORT,
            destination_port: PORT,
            verification_tag: self.our_tag,
            chunks: Default::default(),
        }
        .emit(&mut sctp);
        sctp.extend(chunks);
        sctp[8..12].fill(0);
        let crc = segue_wire::checksum::sctp_crc32c(&sctp);
        sctp[8..12].copy_from_slice(&crc);
        match SctpPacket::parse(&Bytes::from(sctp)) {
            Ok(sctp) => {
                self.send_sctp(peer(1), ours(1), sctp);
                true
            }
            Err(_) => false,
        }
    }

    /// The next packet that the endpoint sends, now or when its timers make it.
    ///
    /// # Panics
    /// If none comes within two minutes.
    pub fn receive(&mut self) -> Sent {
        let end = self.now + LONGEST_WAIT;
        while self.out.is_empty() {
            assert!(self.step(end), "no packet comes; events: {:?}", self.events);
        }
        let sent = self.out.pop_front().expect("a packet");
        self.last = Some(sent.clone());
        sent
    }

    /// Time passes; what the endpoint sends meanwhile waits to be received.
    ///
    /// # Panics
    /// If an invariant breaks.
    pub fn wait(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.step(end) {}
    }

    /// Time passes, and the endpoint sends nothing.
    ///
    /// # Panics
    /// If it does.
    pub fn silence(&mut self, duration: Duration) {
        self.wait(duration);
        assert!(self.out.is_empty(), "expected silence, got {}", self.pending());
    }

    /// Forgets what the endpoint has sent and was not yet received.
    pub fn forget(&mut self) {
        self.out.clear();
    }

    /// The packets sent and not yet received.
    pub fn take_all(&mut self) -> Vec<Sent> {
        self.out.drain(..).collect()
    }

    /// Whether an event has occurred; those before it are forgotten.
    ///
    /// # Panics
    /// If it has not.
    pub fn expect_event(&mut self, expected: &Event) {
        let all = self.events.clone();
        while let Some(event) = self.events.pop_front() {
            if event == *expected {
                return;
            }
        }
        panic!("no {expected:?} among {all:?}");
    }

    fn pending(&self) -> String {
        let mut out = String::new();
        for sent in &self.out {
            let _ = write!(
                out,
                "\n  {:?} to {}: {:?}",
                sent.at, sent.destination, sent.chunks
            );
        }
        out
    }

    /// The next timer, if it is due by `end`.
    fn step(&mut self, end: Instant) -> bool {
        let Some(at) = self.end.poll_timeout().filter(|&at| at <= end) else {
            self.now = self.now.max(end);
            return false;
        };
        self.now = self.now.max(at);
        self.end.handle_timeout(self.now);
        self.settle();
        true
    }

    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            while let Some((id, event)) = self.end.poll_event() {
                quiet = false;
                self.id = Some(id);
                self.readable |= event == Event::Readable;
                self.events.push_back(event);
            }
            if self.reading
                && core::mem::take(&mut self.readable)
                && let Some(association) = self.id.and_then(|id| self.end.association_mut(id))
            {
                quiet = false;
                while let Some(message) = association.recv() {
                    self.messages.push_back(message);
                }
            }
            while let Some(transmit) = self.end.poll_transmit(self.now) {
                quiet = false;
                let bytes = transmit.packet.to_vec();
                self.transcript.packet(self.now, transmit.interface.0, &bytes);
                let packet = Packet::parse(&bytes).expect("what is sent parses");
                let (sctp, udp) = match packet.payload {
                    Payload::Sctp(sctp) => (sctp, None),
                    Payload::SctpOverUdp {
                        source_port,
                        destination_port,
                        packet,
                    } => (packet, Some((source_port, destination_port))),
                    other => panic!("not SCTP: {other:?}"),
                };
                self.out.push_back(Sent {
                    at: self.now,
                    source: packet.ip.source,
                    destination: packet.ip.destination,
                    tag: sctp.verification_tag,
                    chunks: sctp.chunks.into_vec(),
                    udp,
                    len: bytes.len(),
                });
            }
            if quiet {
                break;
            }
        }
        self.end.check_invariants().expect("invariants");
    }
}

/// Receives the next packet and holds its chunks, all of them, against patterns. With `=> expression` the value of the
/// expression is what is returned.
#[macro_export]
macro_rules! expect {
    ($script:expr, $($chunk:pat),+ $(,)? $(if $guard:expr)? => $value:expr) => {{
        let packet = $script.receive();
        match &packet.chunks[..] {
            [$($chunk),+] $(if $guard)? => $value,
            other => panic!(
                "at {:?}: expected {}, got {:#?}",
                packet.at,
                stringify!($($chunk),+ $(if $guard)?),
                other
            ),
        }
    }};
    ($script:expr, $($chunk:pat),+ $(,)? $(if $guard:expr)?) => {
        $crate::expect!($script, $($chunk),+ $(if $guard)? => ())
    };
}

fn sctp(tag: u32, chunks: impl IntoIterator<Item = Chunk>) -> SctpPacket {
    SctpPacket {
        source_port: PORT,
        destination_port: PORT,
        verification_tag: tag,
        chunks: chunks.into_iter().collect(),
    }
}

fn packet(source: Ipv6Addr, destination: Ipv6Addr, payload: Payload) -> Packet {
    Packet {
        ip: Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload,
    }
}

/// The tag that packets to the peer carry, once it has told it.
#[must_use]
pub fn peer_tag() -> u32 {
    PEER_TAG
}
