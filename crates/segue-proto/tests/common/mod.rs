//! Two endpoints and the network between them, in virtual time.

pub mod auth;
pub mod tcp;
pub mod tcp_script;
pub mod tcp_sender;

use core::net::Ipv6Addr;
use segue_proto::contract::LocalAddress;
use segue_proto::random::Stream;
use segue_proto::sctp::{
    AddressRequest, Association, AssociationId, Config, Endpoint, Event, Message, SendOptions,
};
use segue_proto::{Duration, Instant, InterfaceId, Transmit};
use segue_wire::sctp::{Chunk, DataChunk, SctpPacket};
use segue_wire::{Data, Packet, Payload, Tsn};
use std::collections::BTreeMap;

pub const A: usize = 0;
pub const B: usize = 1;
pub const PORT: u16 = 5000;

/// Address `n` of host `host`.
pub fn address(host: usize, n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, host as u16, n, 0, 0, 0, 1)
}

pub fn local(host: usize, n: u16) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(n as u8),
        address: address(host, n),
    }
}

pub fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Synthetic user data: byte `i` of message at `offset`.
pub fn synthetic(offset: u64, len: u32) -> Data {
    Data::Synthetic { offset, len }
}

/// What the network does to a packet: the delays after which copies of it arrive. None is a loss.
pub type Fate = Vec<Duration>;

/// A packet as it left.
pub struct Departure {
    pub at: Instant,
    pub from: usize,
    pub packet: Packet,
}

impl Departure {
    pub fn sctp(&self) -> &SctpPacket {
        self.packet.payload.sctp().expect("not SCTP")
    }
    pub fn data(&self) -> impl Iterator<Item = &DataChunk> {
        self.sctp().chunks.iter().filter_map(|c| match c {
            Chunk::Data(d) => Some(d),
            _ => None,
        })
    }
}

type Rule = Box<dyn FnMut(&Departure) -> Fate>;
type Corrupt = Box<dyn FnMut(&mut Vec<u8>)>;

pub struct Net {
    pub now: Instant,
    pub ends: [Endpoint; 2],
    pub rule: Rule,
    /// With it every packet is emitted, changed by it, and parsed again; what does not parse is lost.
    pub corrupt: Option<Corrupt>,
    pub unparsed: u64,
    /// Addresses of each host: its IP layer takes nothing else.
    pub owned: [Vec<Ipv6Addr>; 2],
    in_flight: BTreeMap<(Instant, u64), (usize, InterfaceId, Packet)>,
    sequence: u64,
    pub log: Vec<Departure>,
    pub keep_log: bool,
    pub events: [Vec<(Instant, Event)>; 2],
    pub messages: [Vec<Message>; 2],
    /// Messages are taken as they come.
    pub reading: [bool; 2],
    pub ids: [Option<AssociationId>; 2],
}

impl Net {
    /// Hosts with `addresses` addresses each; every packet takes `delay`.
    pub fn new(config: [Config; 2], addresses: [u16; 2], delay: Duration, seed: u64) -> Self {
        let [a, b] = config;
        let mut ends = [
            Endpoint::new(a, PORT, Box::new(Stream::new(seed, "secrets a"))),
            Endpoint::new(b, PORT, Box::new(Stream::new(seed, "secrets b"))),
        ];
        for (host, n) in addresses.into_iter().enumerate() {
            for i in 1..=n {
                ends[host].add_local_address(local(host, i));
            }
        }
        ends[B].listen();
        Self {
            now: Instant::ZERO,
            ends,
            rule: Box::new(move |_| vec![delay]),
            corrupt: None,
            unparsed: 0,
            owned: [A, B].map(|host| (1..=addresses[host]).map(|n| address(host, n)).collect()),
            in_flight: BTreeMap::new(),
            sequence: 0,
            log: Vec::new(),
            keep_log: true,
            events: [Vec::new(), Vec::new()],
            messages: [Vec::new(), Vec::new()],
            reading: [true, true],
            ids: [None, None],
        }
    }

    pub fn symmetric(config: Config, addresses: [u16; 2], seed: u64) -> Self {
        Self::new([config.clone(), config], addresses, ms(10), seed)
    }

    pub fn connect(&mut self) {
        let peer = [address(B, 1)];
        self.ids[A] = self.ends[A].connect(self.now, &peer, PORT);
        self.drain();
    }

    /// A network on which both ends are up, with an empty log.
    pub fn established(config: Config, addresses: [u16; 2]) -> Self {
        let mut net = Self::symmetric(config, addresses, 1);
        net.connect();
        net.run_for(ms(500));
        assert!(net.association(A).is_established() && net.association(B).is_established());
        net.log.clear();
        net.events = [Vec::new(), Vec::new()];
        net
    }

    pub fn association(&self, host: usize) -> &Association {
        self.ends[host]
            .association(self.ids[host].expect("no association"))
            .expect("association gone")
    }

    pub fn command<R>(&mut self, host: usize, f: impl FnOnce(&mut Association, Instant) -> R) -> R {
        let id = self.ids[host].expect("no association");
        let now = self.now;
        let result = f(
            self.ends[host].association_mut(id).expect("association gone"),
            now,
        );
        self.drain();
        result
    }

    pub fn send(&mut self, host: usize, stream: u16, data: Data) {
        self.command(host, |a, now| a.send(now, stream, data, SendOptions::default()))
            .expect("send");
    }

    pub fn inject(&mut self, host: usize, packet: Packet) {
        let now = self.now;
        self.ends[host].handle_packet(now, InterfaceId(0), packet);
        self.drain();
    }

    /// Takes everything out of both ends, to the fixpoint.
    pub fn drain(&mut self) {
        loop {
            let mut quiet = true;
            for host in [A, B] {
                while let Some((id, event)) = self.ends[host].poll_event() {
                    quiet = false;
                    self.ids[host] = Some(id);
                    self.events[host].push((self.now, event));
                }
                if let Some(id) = self.ids[host]
                    && self.reading[host]
                    && let Some(association) = self.ends[host].association_mut(id)
                {
                    while let Some(message) = association.recv() {
                        quiet = false;
                        self.messages[host].push(message);
                    }
                }
                while let Some(transmit) = self.ends[host].poll_transmit(self.now) {
                    quiet = false;
                    self.depart(host, transmit);
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn depart(&mut self, from: usize, transmit: Transmit) {
        let mut departure = Departure {
            at: self.now,
            from,
            packet: transmit.packet,
        };
        let fate = (self.rule)(&departure);
        for delay in fate {
            let packet = match &mut self.corrupt {
                None => departure.packet.clone(),
                Some(corrupt) => {
                    let mut bytes = departure.packet.to_vec();
                    corrupt(&mut bytes);
                    match Packet::parse(&bytes) {
                        Ok(packet) => packet,
                        Err(_) => {
                            self.unparsed += 1;
                            continue;
                        }
                    }
                }
            };
            self.sequence += 1;
            self.in_flight.insert(
                (self.now + delay, self.sequence),
                (1 - from, transmit.interface, packet),
            );
        }
        if self.keep_log {
            departure.at = self.now;
            self.log.push(departure);
        }
    }

    /// Handles the next packet or timer, if it is due by `end`.
    pub fn step(&mut self, end: Instant) -> bool {
        let arrival = self.in_flight.first_key_value().map(|(k, _)| k.0);
        let timers = [self.ends[A].poll_timeout(), self.ends[B].poll_timeout()];
        let next = [arrival, timers[A], timers[B]].into_iter().flatten().min();
        let Some(next) = next.filter(|&at| at <= end) else {
            self.now = self.now.max(end);
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let (_, (host, interface, packet)) = self.in_flight.pop_first().expect("arrival");
            if self.owned[host].contains(&packet.ip.destination) {
                let now = self.now;
                self.ends[host].handle_packet(now, interface, packet);
            }
        } else {
            for host in [A, B] {
                if timers[host] == Some(next) {
                    let now = self.now;
                    self.ends[host].handle_timeout(now);
                }
            }
        }
        self.drain();
        true
    }

    /// Checks what must hold of both ends when nothing is left to be asked for.
    pub fn check_invariants(&mut self) {
        self.drain();
        for end in &mut self.ends {
            // to lend an association is to have it asked again
            assert!(end.poll_transmit(self.now).is_none() && end.poll_event().is_none());
            end.check_invariants().unwrap();
        }
    }

    pub fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
    }

    pub fn run_for(&mut self, duration: Duration) {
        self.run_until(self.now + duration);
    }

    pub fn has_event(&self, host: usize, event: &Event) -> bool {
        self.events[host].iter().any(|(_, e)| e == event)
    }

    /// The chunk names of every packet that left, with its sender.
    pub fn trace(&self) -> Vec<String> {
        self.log
            .iter()
            .map(|d| format!("{} {}", ["A", "B"][d.from], names(d.sctp()).join(" ")))
            .collect()
    }
}

pub fn names(packet: &SctpPacket) -> Vec<&'static str> {
    packet
        .chunks
        .iter()
        .map(|c| match c {
            Chunk::Data(_) => "DATA",
            Chunk::Sack(_) => "SACK",
            Chunk::Init(_) => "INIT",
            Chunk::InitAck(_) => "INIT-ACK",
            Chunk::Heartbeat(_) => "HEARTBEAT",
            Chunk::HeartbeatAck(_) => "HEARTBEAT-ACK",
            Chunk::Abort { .. } => "ABORT",
            Chunk::Shutdown { .. } => "SHUTDOWN",
            Chunk::ShutdownAck => "SHUTDOWN-ACK",
            Chunk::Error(_) => "ERROR",
            Chunk::CookieEcho(_) => "COOKIE-ECHO",
            Chunk::CookieAck => "COOKIE-ACK",
            Chunk::ShutdownComplete { .. } => "SHUTDOWN-COMPLETE",
            Chunk::Asconf(_) => "ASCONF",
            Chunk::AsconfAck(_) => "ASCONF-ACK",
            Chunk::Auth(_) => "AUTH",
            Chunk::ReConfig(_) => "RE-CONFIG",
            Chunk::ForwardTsn(_) => "FORWARD-TSN",
            _ => "OTHER",
        })
        .collect()
}

impl Net {
    /// A packet to `host` with the tag that it expects, from address `from` of the other host.
    pub fn forge(&mut self, host: usize, from: Ipv6Addr, chunks: impl IntoIterator<Item = Chunk>) -> Packet {
        let tag = self.tag_of(host);
        self.forge_with_tag(host, from, tag, chunks)
    }

    pub fn forge_with_tag(
        &self,
        host: usize,
        from: Ipv6Addr,
        tag: u32,
        chunks: impl IntoIterator<Item = Chunk>,
    ) -> Packet {
        Packet {
            ip: segue_wire::Ipv6Header {
                source: from,
                destination: address(host, 1),
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

    /// The verification tag that packets to `host` carry, seen on the wire: the other end is made to say something.
    pub fn tag_of(&mut self, host: usize) -> u32 {
        let other = 1 - host;
        let seen = |net: &Self| {
            net.log
                .iter()
                .rev()
                .find(|d| d.from == other && d.sctp().verification_tag != 0)
                .map(|d| d.sctp().verification_tag)
        };
        if let Some(tag) = seen(self) {
            return tag;
        }
        let id = self.ids[other].expect("no association");
        let now = self.now;
        self.ends[other]
            .association_mut(id)
            .expect("association")
            .send(now, 0, synthetic(0, 4), SendOptions::default())
            .expect("send");
        self.drain();
        seen(self).expect("nothing seen")
    }

    /// When DATA with `tsn` left `host`, and to which address.
    pub fn transmissions_of(&self, host: usize, tsn: Tsn) -> Vec<(Instant, Ipv6Addr)> {
        self.log
            .iter()
            .filter(|d| d.from == host && d.data().any(|c| c.tsn == tsn))
            .map(|d| (d.at, d.packet.ip.destination))
            .collect()
    }
}

/// What host B asked its peer by ASCONF, in order, and whether it was granted.
pub fn answered(net: &Net) -> Vec<(AddressRequest, bool)> {
    net.events[B]
        .iter()
        .filter_map(|(_, e)| match e {
            Event::AsconfAnswered { results, .. } => Some(results),
            _ => None,
        })
        .flatten()
        .map(|r| (r.request, r.outcome.is_ok()))
        .collect()
}

/// TSN of the first DATA that was sent: the initial TSN of its sender, if only that has sent any.
pub fn first_tsn(net: &Net) -> Tsn {
    net.log.iter().flat_map(Departure::data).next().expect("DATA").tsn
}
