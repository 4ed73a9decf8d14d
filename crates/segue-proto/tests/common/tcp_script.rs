//! One TCP endpoint against a scripted peer, whose segments are made by hand.

use segue_proto::contract::{InterfaceId, LocalAddress};
use segue_proto::random::Stream;
use segue_proto::tcp::{Config, Connection, ConnectionId, Endpoint, Event, State};
use segue_proto::{Duration, Instant};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::tcp::{TcpFlags, TcpOptions, TcpSegment, Timestamps};
use segue_wire::{Data, Ipv6Header, Packet, Payload, SeqNumber};
use std::net::Ipv6Addr;

pub const OWN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
pub const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
/// Port that the endpoint listens on, and the peer's.
pub const OWN_PORT: u16 = 80;
pub const PEER_PORT: u16 = 4000;
/// The peer's initial sequence number.
pub const IRS: u32 = 5000;

pub const SYN: TcpFlags = TcpFlags::SYN;
pub const ACK: TcpFlags = TcpFlags::ACK;
pub const FIN: TcpFlags = TcpFlags::FIN;
pub const RST: TcpFlags = TcpFlags::RST;

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Without options that change what segments look like.
pub fn plain() -> Config {
    Config {
        timestamps: false,
        window_scaling: false,
        sack: false,
        quick_acks: 0,
        nagle: false,
        receive_buffer: 60_000,
        ..Config::default()
    }
}

pub struct Script {
    pub now: Instant,
    pub endpoint: Endpoint,
    pub id: ConnectionId,
    pub events: Vec<Event>,
    /// The endpoint's initial sequence number.
    pub iss: u32,
    pub own_port: u16,
    pub window: u16,
    /// What the peer's segments have as timestamps.
    pub timestamps: Option<Timestamps>,
}

impl Script {
    fn bare(config: Config) -> Self {
        let mut endpoint = Endpoint::new(config, Box::new(Stream::new(1, "script")));
        endpoint.add_local_address(LocalAddress {
            interface: InterfaceId(0),
            address: OWN,
        });
        Self {
            now: Instant::ZERO + Duration::from_secs(1),
            endpoint,
            id: ConnectionId(0),
            events: Vec::new(),
            iss: 0,
            own_port: OWN_PORT,
            window: 60_000,
            timestamps: None,
        }
    }

    pub fn listening(config: Config) -> Self {
        let mut script = Self::bare(config);
        script.endpoint.listen(OWN_PORT);
        script
    }

    /// Has sent its SYN, which is returned.
    pub fn connecting(config: Config) -> (Self, TcpSegment) {
        let mut script = Self::bare(config);
        let id = script.endpoint.connect(script.now, PEER, PEER_PORT, 0);
        script.id = id.expect("an address and a port");
        let syn = script.only();
        script.iss = syn.seq.0;
        script.own_port = syn.source_port;
        (script, syn)
    }

    /// The peer connected.
    pub fn accepted(config: Config) -> Self {
        let mut options = TcpOptions::default();
        options.set_mss(1000);
        Self::accepted_with(config, options)
    }

    pub fn accepted_with(config: Config, options: TcpOptions) -> Self {
        let mut s = Self::listening(config);
        s.timestamps = options.timestamps;
        let mut syn = s.segment(SYN, 0, 0, 0);
        syn.options = options;
        s.give(syn);
        let answer = s.only();
        assert_eq!(answer.flags, SYN | ACK);
        s.iss = answer.seq.0;
        s.give(s.segment(ACK, 1, 1, 0));
        assert_eq!(s.sent(), []);
        assert_eq!(s.events, [Event::Connected]);
        s.events.clear();
        s
    }

    /// A segment of the peer's: numbers are counted from the initial ones.
    pub fn segment(&self, flags: TcpFlags, seq: u32, ack: u32, len: u32) -> TcpSegment {
        TcpSegment {
            source_port: PEER_PORT,
            destination_port: self.own_port,
            seq: SeqNumber(IRS.wrapping_add(seq)),
            ack: SeqNumber(self.iss.wrapping_add(ack)),
            flags,
            window: self.window,
            options: TcpOptions::with_timestamps(self.timestamps),
            data: Data::Synthetic {
                offset: u64::from(seq.wrapping_sub(1)),
                len,
            },
        }
    }

    pub fn give(&mut self, segment: TcpSegment) {
        self.give_between(PEER, OWN, segment);
    }

    /// From and to other addresses.
    pub fn give_between(&mut self, source: Ipv6Addr, destination: Ipv6Addr, segment: TcpSegment) {
        let packet = Packet {
            ip: Ipv6Header {
                source,
                destination,
                traffic_class: 0,
                hop_limit: 64,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload: Payload::Tcp(segment),
        };
        self.endpoint.handle_packet(self.now, InterfaceId(0), packet);
        self.collect();
    }

    fn collect(&mut self) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.id = id;
            self.events.push(event);
        }
    }

    /// Everything sent since it was last asked.
    pub fn sent(&mut self) -> Vec<TcpSegment> {
        let mut sent = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(self.now) {
            assert_eq!(
                (transmit.packet.ip.source, transmit.packet.ip.destination),
                (OWN, PEER)
            );
            match transmit.packet.payload {
                Payload::Tcp(segment) => sent.push(segment),
                other => panic!("{other:?}"),
            }
        }
        self.collect();
        sent
    }

    /// The one segment sent since it was last asked.
    pub fn only(&mut self) -> TcpSegment {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// Gives a segment; the one that answers it: flags, and numbers counted from the initial ones.
    pub fn exchange(&mut self, segment: TcpSegment) -> (TcpFlags, u32, u32) {
        self.give(segment);
        let answer = self.only();
        self.numbers(&answer)
    }

    pub fn numbers(&self, segment: &TcpSegment) -> (TcpFlags, u32, u32) {
        let seq = segment.seq.0.wrapping_sub(self.iss);
        let ack = if segment.flags.contains(ACK) {
            segment.ack.0.wrapping_sub(IRS)
        } else {
            0
        };
        (segment.flags, seq, ack)
    }

    /// Lets time pass, timers included.
    pub fn wait(&mut self, time: Duration) -> Vec<TcpSegment> {
        let end = self.now + time;
        let mut sent = Vec::new();
        while let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.endpoint.handle_timeout(self.now);
            self.collect();
            sent.extend(self.sent());
        }
        self.now = end;
        sent
    }

    pub fn command<T>(&mut self, act: impl FnOnce(&mut Connection) -> T) -> T {
        let result = self.endpoint.command(self.id, act).expect("a connection");
        self.collect();
        result
    }

    pub fn connection(&self) -> &Connection {
        self.endpoint.connection(self.id).expect("a connection")
    }

    pub fn state(&self) -> State {
        self.connection().state()
    }

    /// A router says that a segment of the endpoint's from this number on was longer than `mtu`. Whether it is believed.
    pub fn packet_too_big(&mut self, seq: u32, mtu: u32) -> bool {
        let mut quoted = self.segment(ACK, 0, 0, 0);
        // as the endpoint sent it
        (quoted.source_port, quoted.destination_port) = (self.own_port, PEER_PORT);
        quoted.seq = SeqNumber(self.iss.wrapping_add(seq));
        let packet = Packet {
            ip: Ipv6Header {
                source: OWN,
                destination: PEER,
                traffic_class: 0,
                hop_limit: 60,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload: Payload::Tcp(quoted),
        };
        self.endpoint.handle_icmp(&Icmpv6::PacketTooBig {
            mtu,
            invoking: packet.to_vec().into(),
        })
    }

    /// Sends so many bytes of the synthetic sequence.
    pub fn write(&mut self, offset: u64, len: u32) {
        let data = Data::Synthetic { offset, len };
        assert_eq!(self.command(|c| c.send(&data)), Ok(len));
    }
}
