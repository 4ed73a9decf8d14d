//! Two TCP endpoints and a path between them.

use segue_proto::contract::{InterfaceId, LocalAddress};
use segue_proto::random::Stream;
use segue_proto::tcp::{Config, Connection, ConnectionId, Endpoint, Event};
use segue_proto::{Duration, Instant};
use segue_wire::tcp::TcpSegment;
use segue_wire::{Data, Packet, Payload};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;

pub const PORT: u16 = 5001;
pub const A: usize = 0;
pub const B: usize = 1;

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn address(end: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1 + end as u16)
}

pub fn segment(packet: &Packet) -> &TcpSegment {
    match &packet.payload {
        Payload::Tcp(segment) => segment,
        other => panic!("{other:?}"),
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Arrives,
    Lost,
    Late(Duration),
    Twice,
}

/// A packet that was sent.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub from: usize,
    pub seq: u32,
    pub len: u32,
    pub fate: Fate,
}

pub type Filter = Box<dyn FnMut(usize, &TcpSegment) -> Fate>;

/// Two endpoints; A connects to B.
pub struct World {
    pub now: Instant,
    pub ends: [Endpoint; 2],
    pub ids: [Option<ConnectionId>; 2],
    pub events: [Vec<Event>; 2],
    /// Bytes received and checked.
    pub received: [u64; 2],
    /// Whether what arrives is read.
    pub reads: [bool; 2],
    /// Bytes that this end has still to give to its connection: synthetic, from where it is on.
    pub to_send: [u64; 2],
    pub given: [u64; 2],
    /// Closes when everything was given, or the peer has closed.
    pub closes: [bool; 2],
    pub delay: Duration,
    /// Bits per second from A to B and back, and packets that wait at most.
    pub rate: Option<u64>,
    pub queue_packets: usize,
    pub filter: Filter,
    pub seen: Vec<Seen>,
    pub record: bool,
    departures: [VecDeque<Instant>; 2],
    in_flight: BTreeMap<(Instant, u64), (usize, Packet)>,
    order: u64,
}

impl World {
    pub fn new(config: &Config) -> Self {
        Self::with_configs([config.clone(), config.clone()])
    }

    pub fn with_configs(configs: [Config; 2]) -> Self {
        let mut number = 0;
        let ends = configs.map(|config| {
            let mut endpoint = Endpoint::new(config, Box::new(Stream::new(7, &format!("end {number}"))));
            endpoint.add_local_address(LocalAddress {
                interface: InterfaceId(0),
                address: address(number),
            });
            number += 1;
            endpoint
        });
        let mut world = Self {
            now: Instant::ZERO,
            ends,
            ids: [None; 2],
            events: Default::default(),
            received: [0; 2],
            reads: [true; 2],
            to_send: [0; 2],
            given: [0; 2],
            closes: [true; 2],
            delay: ms(20),
            rate: None,
            queue_packets: usize::MAX,
            filter: Box::new(|_, _| Fate::Arrives),
            seen: Vec::new(),
            record: true,
            departures: Default::default(),
            in_flight: BTreeMap::new(),
            order: 0,
        };
        world.ends[B].listen(PORT);
        world
    }

    pub fn connect(&mut self) {
        let id = self.ends[A].connect(self.now, address(B), PORT, 0);
        self.ids[A] = Some(id.expect("an address and a port"));
        self.drain();
    }

    pub fn connection(&self, end: usize) -> &Connection {
        let id = self.ids[end].expect("a connection");
        self.ends[end].connection(id).expect("not forgotten")
    }

    pub fn command<T>(&mut self, end: usize, act: impl FnOnce(&mut Connection) -> T) -> T {
        let id = self.ids[end].expect("a connection");
        let result = self.ends[end].command(id, act).expect("not forgotten");
        self.drain();
        result
    }

    /// Runs until nothing happens any more, or to `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
        self.now = self.now.max(end);
    }

    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Runs until nothing happens any more, or for an hour.
    pub fn run(&mut self) {
        self.run_for(Duration::from_secs(3600));
    }

    fn step(&mut self, end: Instant) -> bool {
        let arrival = self.in_flight.keys().next().map(|k| k.0);
        let timers = [self.ends[A].poll_timeout(), self.ends[B].poll_timeout()];
        let timer = timers.iter().flatten().min().copied();
        let Some(at) = [arrival, timer]
            .into_iter()
            .flatten()
            .min()
            .filter(|at| *at <= end)
        else {
            return false;
        };
        self.now = self.now.max(at);
        if arrival.is_some_and(|a| a <= at) {
            let (_, (to, packet)) = self.in_flight.pop_first().expect("looked");
            self.ends[to].handle_packet(self.now, InterfaceId(0), packet);
        } else {
            for end in &mut self.ends {
                end.handle_timeout(self.now);
            }
        }
        self.drain();
        true
    }

    pub fn drain(&mut self) {
        for end in [A, B] {
            loop {
                let mut moved = false;
                while let Some((id, event)) = self.ends[end].poll_event() {
                    moved = true;
                    self.on_event(end, id, event);
                }
                while let Some(transmit) = self.ends[end].poll_transmit(self.now) {
                    moved = true;
                    self.send(end, transmit.packet);
                }
                if !moved {
                    break;
                }
            }
        }
    }

    fn on_event(&mut self, end: usize, id: ConnectionId, event: Event) {
        self.events[end].push(event);
        if event == Event::Connected {
            self.ids[end] = Some(id);
        }
        let (received, given, to_send) = (
            &mut self.received[end],
            &mut self.given[end],
            &mut self.to_send[end],
        );
        let (reads, closes) = (self.reads[end], self.closes[end]);
        self.ends[end].command(id, |connection| {
            if matches!(event, Event::Readable | Event::PeerClosed) && reads {
                while let Some(data) = connection.recv() {
                    assert!(data.is_synthetic_at(*received), "byte {received}");
                    *received += data.len() as u64;
                }
            }
            if matches!(event, Event::Connected | Event::Writable) {
                while *to_send > 0 {
                    let data = Data::Synthetic {
                        offset: *given,
                        len: (*to_send).min(1 << 30) as u32,
                    };
                    let Ok(taken) = connection.send(&data) else { break };
                    *given += u64::from(taken);
                    *to_send -= u64::from(taken);
                }
            }
            let finished = *to_send == 0 && (*given > 0 || event == Event::PeerClosed);
            if closes && finished && !event.is_end() {
                connection.close();
            }
        });
    }

    /// Reads what has arrived at an end that does not read by itself.
    pub fn read(&mut self, end: usize) {
        let id = self.ids[end].expect("a connection");
        let received = &mut self.received[end];
        let read = |connection: &mut Connection| {
            while let Some(data) = connection.recv() {
                assert!(data.is_synthetic_at(*received));
                *received += data.len() as u64;
            }
        };
        self.ends[end].command(id, read).expect("not forgotten");
        self.drain();
    }

    fn send(&mut self, from: usize, packet: Packet) {
        let tcp = segment(&packet);
        let mut fate = (self.filter)(from, tcp);
        let now = self.now;
        let mut at = now + self.delay;
        if let Some(rate) = self.rate {
            let departures = &mut self.departures[from];
            while departures.front().is_some_and(|d| *d <= now) {
                departures.pop_front();
            }
            if departures.len() >= self.queue_packets {
                fate = Fate::Lost;
            } else if fate != Fate::Lost {
                let time = Duration::from_nanos(packet.buffer_len() as u64 * 8 * 1_000_000_000 / rate);
                let departure = departures.back().copied().unwrap_or(now).max(now) + time;
                departures.push_back(departure);
                at = departure + self.delay;
            }
        }
        if self.record {
            self.seen.push(Seen {
                at: now,
                from,
                seq: tcp.seq.0,
                len: tcp.data.len() as u32,
                fate,
            });
        }
        match fate {
            Fate::Lost => return,
            Fate::Late(more) => at += more,
            Fate::Twice => self.put(at, 1 - from, packet.clone()),
            Fate::Arrives => {}
        }
        self.put(at, 1 - from, packet);
    }

    fn put(&mut self, at: Instant, to: usize, packet: Packet) {
        self.order += 1;
        self.in_flight.insert((at, self.order), (to, packet));
    }
}
