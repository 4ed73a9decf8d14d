//! Two endpoints and the network between them, in virtual time and on real bytes: every packet is emitted and parsed.

use crate::transcript::Transcript;
use core::net::Ipv6Addr;
use segue_proto::contract::LocalAddress;
use segue_proto::random::Stream;
use segue_proto::sctp::{Association, AssociationId, Config, Endpoint, Event, Message};
use segue_proto::{Duration, Instant, InterfaceId, Transmit};
use segue_wire::Packet;
use std::collections::{BTreeMap, VecDeque};

/// The first host, which connects.
pub const A: usize = 0;
/// The second host, which listens.
pub const B: usize = 1;
/// Port of both.
pub const PORT: u16 = 5000;

/// Most packets that one input may bring out of the two endpoints. A window of the largest send buffer in packets of one
/// small chunk each is far below it; two endpoints that keep each other busy for ever are not.
const MOST_PACKETS_PER_INPUT: usize = 20_000;

/// Address `n` of host `host`.
#[must_use]
pub fn address(host: usize, n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, host as u16, n, 0, 0, 0, 1)
}

/// The same, with an interface of its own.
#[must_use]
pub fn local(host: usize, n: u16) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(n as u8),
        address: address(host, n),
    }
}

/// What the network does to packets.
pub trait Network {
    /// Copies of a packet's bytes with their delays: none is a loss. `from` is the sending host.
    fn carry(&mut self, now: Instant, from: usize, packet: &Packet) -> Vec<(Duration, Vec<u8>)>;
}

/// Every packet arrives once, after the same delay.
pub struct Quiet(pub Duration);

impl Network for Quiet {
    fn carry(&mut self, _now: Instant, _from: usize, packet: &Packet) -> Vec<(Duration, Vec<u8>)> {
        vec![(self.0, packet.to_vec())]
    }
}

/// Two hosts joined by a network.
pub struct World<N> {
    /// The time.
    pub now: Instant,
    /// The endpoints.
    pub ends: [Endpoint; 2],
    /// The association of each, once there is one.
    pub ids: [Option<AssociationId>; 2],
    /// The network.
    pub network: N,
    /// Addresses of each host: its IP layer takes nothing else.
    pub owned: [Vec<Ipv6Addr>; 2],
    /// Events not yet looked at.
    pub events: [VecDeque<Event>; 2],
    /// Messages received and not yet looked at.
    pub messages: [VecDeque<Message>; 2],
    /// Whether messages are taken as they come.
    pub reading: [bool; 2],
    /// Packets that did not parse: harm done on the way.
    pub unparsed: u64,
    /// Packets that left.
    pub sent: u64,
    /// What both ends send, if that is written down.
    pub transcript: Option<Transcript>,
    in_flight: BTreeMap<(Instant, u64), (usize, InterfaceId, Vec<u8>)>,
    sequence: u64,
    readable: [bool; 2],
}

impl<N: Network> World<N> {
    /// Hosts with `addresses` addresses each; the second listens.
    pub fn new(config: [Config; 2], addresses: [u16; 2], network: N, seed: u64) -> Self {
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
            ids: [None, None],
            network,
            owned: [A, B].map(|host| (1..=addresses[host]).map(|n| address(host, n)).collect()),
            events: Default::default(),
            messages: Default::default(),
            reading: [true, true],
            unparsed: 0,
            sent: 0,
            transcript: None,
            in_flight: BTreeMap::new(),
            sequence: 0,
            readable: [false; 2],
        }
    }

    /// The first host connects to the second's first address.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn connect(&mut self) {
        self.ids[A] = self.ends[A].connect(self.now, &[address(B, 1)], PORT);
        self.drain();
    }

    /// The association of a host, if it has one that is not over and forgotten.
    #[must_use]
    pub fn association(&self, host: usize) -> Option<&Association> {
        self.ends[host].association(self.ids[host]?)
    }

    /// Commands an association, then drains.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn command<R>(&mut self, host: usize, f: impl FnOnce(&mut Association, Instant) -> R) -> Option<R> {
        let now = self.now;
        let result = f(self.ends[host].association_mut(self.ids[host]?)?, now);
        self.drain();
        Some(result)
    }

    /// Hands a packet to a host at once, whoever made it.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn inject(&mut self, host: usize, packet: Packet) {
        self.ends[host].handle_packet(self.now, InterfaceId(1), packet);
        self.drain();
    }

    /// When the next packet arrives or timer is due.
    pub fn next_at(&mut self) -> Option<Instant> {
        let arrival = self.in_flight.first_key_value().map(|(k, _)| k.0);
        let timers = [self.ends[A].poll_timeout(), self.ends[B].poll_timeout()];
        [arrival, timers[A], timers[B]].into_iter().flatten().min()
    }

    /// Handles the next packet or timer if it is due by `end`; else time passes until then.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn step(&mut self, end: Instant) -> bool {
        let Some(next) = self.next_at().filter(|&at| at <= end) else {
            self.now = self.now.max(end);
            return false;
        };
        self.now = self.now.max(next);
        let due = self.in_flight.first_key_value().is_some_and(|(k, _)| k.0 == next);
        if due && let Some((_, (host, interface, bytes))) = self.in_flight.pop_first() {
            match Packet::parse(&bytes) {
                Ok(packet) if self.owned[host].contains(&packet.ip.destination) => {
                    self.ends[host].handle_packet(self.now, interface, packet);
                    self.drain_after([host == A, host == B]);
                }
                Ok(_) => {}
                Err(_) => self.unparsed += 1,
            }
        } else {
            let now = self.now;
            let mut called = [false; 2];
            for (end, called) in self.ends.iter_mut().zip(&mut called) {
                if end.poll_timeout().is_some_and(|at| at <= now) {
                    end.handle_timeout(now);
                    *called = true;
                }
            }
            self.drain_after(called);
            for end in &mut self.ends {
                // a timer that was due has moved on, or a driver would spin
                let timer = end.poll_timeout();
                assert!(timer.is_none_or(|at| at > now), "a timer stands still at {now:?}");
            }
        }
        true
    }

    /// Runs until `end`.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
    }

    /// Takes everything out of both ends, to the fixpoint, and checks what must then hold.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn drain(&mut self) {
        self.drain_after([true; 2]);
    }

    /// The same after calls to some of the ends: what must hold of the other held before, and still does unless it had
    /// something to give.
    fn drain_after(&mut self, called: [bool; 2]) {
        let before = self.sent;
        let mut changed = called;
        loop {
            let mut quiet = true;
            for host in [A, B] {
                let this = self.drain_one(host);
                changed[host] |= !this;
                quiet &= this;
            }
            let packets = (self.sent - before) as usize;
            assert!(
                packets < MOST_PACKETS_PER_INPUT,
                "{packets} packets from one input"
            );
            if quiet {
                break;
            }
        }
        for (host, end) in self.ends.iter().enumerate() {
            if changed[host]
                && let Err(what) = end.check_invariants()
            {
                panic!("host {host} at {:?}: {what}", self.now);
            }
        }
    }

    fn drain_one(&mut self, host: usize) -> bool {
        let mut quiet = true;
        // sending may have something to tell, even where nothing is sent
        while let Some(Transmit { interface, packet }) = self.ends[host].poll_transmit(self.now) {
            quiet = false;
            self.sent += 1;
            if let Some(transcript) = &mut self.transcript {
                transcript.packet(self.now, host, interface.0, &packet.to_vec());
            }
            for (delay, bytes) in self.network.carry(self.now, host, &packet) {
                self.sequence += 1;
                let key = (self.now + delay, self.sequence);
                self.in_flight.insert(key, (1 - host, interface, bytes));
            }
        }
        while let Some((id, event)) = self.ends[host].poll_event() {
            quiet = false;
            // the association that came up is the one that counts: one before it may still be ending
            if event == Event::Connected || self.ids[host].is_none() {
                self.ids[host] = Some(id);
            }
            self.readable[host] |= event == Event::Readable;
            if self.ids[host] == Some(id) {
                self.events[host].push_back(event);
            }
        }
        if self.reading[host]
            && core::mem::take(&mut self.readable[host])
            && let Some(id) = self.ids[host]
            && let Some(association) = self.ends[host].association_mut(id)
        {
            quiet = false;
            while let Some(message) = association.recv() {
                self.messages[host].push_back(message);
            }
        }
        quiet
    }
}
