//! Which packets the kernel carries by itself: those of sessions in which nothing is to be thought about. The programs that carry
//! them are `fast_path/packets.bpf.c`; here is what they are told.
//!
//! A flow is told to them when a packet of it has passed the agent, either way, and its session is one whose packets all go the same way ([`Direct`]).
//! A session is taken back when that is no longer so, or when nothing was carried of it for [`IDLE`]; all are when somebody wants to
//! see every packet. What the programs have carried is looked at whenever the agent wakes, and once a second while there is
//! something: the shim learns that the peer was heard, and sent to.
//!
//! The programs leave to the agent what begins or ends something, what is longer than the way takes, and what is sent when nothing was
//! heard for ten milliseconds: silence is noticed as it is without them.

use crate::stack::Stack;
use segue_proto::contract::InterfaceId;
use segue_proto::ilnp::{Direct, SessionKey};
use segue_proto::shim::Count;
use segue_proto::{Duration, Instant};
use segue_wire::{Packet, Payload};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv6Addr;

/// The programs, or what stands for them in a test.
pub trait Carrier {
    /// From now on packets of a session are carried, of those flows that are named after this. `most` is the length of an IPv6 packet on
    /// the wire.
    ///
    /// # Errors
    /// As the kernel has them: it is not carried then.
    fn begin(&mut self, direct: &Direct, most: u32, leaves: Leaves) -> io::Result<()>;

    /// A flow of a session is carried.
    ///
    /// # Errors
    /// As the kernel has them: it is not carried then.
    fn add(&mut self, session: SessionKey, flow: Flow) -> io::Result<()>;

    /// A flow of a session is carried no more.
    fn forget(&mut self, session: SessionKey, flow: Flow);

    /// A session is carried no more, and neither are these flows of it; says what was carried of it since it began.
    fn end(&mut self, direct: &Direct, flows: &BTreeSet<Flow>) -> Carried;

    /// How often a packet was not carried to its end, since another program of this machine took it or the kernel could not shorten it.
    fn missed(&self) -> u64;

    /// What was carried of a session since [`begin`](Self::begin).
    fn carried(&mut self, session: SessionKey) -> Carried;
}

/// Where packets leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaves {
    /// The number of the interface in the kernel.
    pub index: u32,
    /// The router or the peer itself, on its link.
    pub next_hop: Ipv6Addr,
}

/// TCP or UDP with a peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flow {
    /// The peer's identity.
    pub peer: Ipv6Addr,
    /// Protocol number.
    pub protocol: u8,
    /// This host's port.
    pub own_port: u16,
    /// The peer's.
    pub peers_port: u16,
}

impl Flow {
    /// That of an IPv6 packet of TCP or UDP to a peer, and whether it neither begins nor ends something.
    #[must_use]
    pub fn of_sent(packet: &[u8]) -> Option<(Self, bool)> {
        let (header, transport) = packet.split_first_chunk::<40>()?;
        let peer = Ipv6Addr::from(*header.last_chunk::<16>()?);
        let ([own_port, peers_port], goes_on) = look_at(header[6], transport)?;
        let flow = Self {
            peer,
            protocol: header[6],
            own_port,
            peers_port,
        };
        Some((flow, goes_on))
    }

    /// The same of one from a peer, as it goes up.
    #[must_use]
    pub fn of_received(packet: &Packet) -> Option<(Self, bool)> {
        let Payload::Raw(raw) = &packet.payload else {
            return None;
        };
        if !packet.extensions.is_empty() {
            return None;
        }
        let ([peers_port, own_port], goes_on) = look_at(raw.next_header, &raw.bytes)?;
        let flow = Self {
            peer: packet.ip.source,
            protocol: raw.next_header,
            own_port,
            peers_port,
        };
        Some((flow, goes_on))
    }
}

/// Source and destination, and whether a packet neither begins nor ends something.
fn look_at(protocol: u8, transport: &[u8]) -> Option<([u16; 2], bool)> {
    let goes_on = match protocol {
        TCP => *transport.get(FLAGS_AT)? & (FIN | SYN | RST) == 0,
        UDP => true,
        _ => return None,
    };
    let ([source, destination], _) = transport.first_chunk::<4>()?.as_chunks::<2>() else {
        return None;
    };
    Some((
        [u16::from_be_bytes(*source), u16::from_be_bytes(*destination)],
        goes_on,
    ))
}

/// Packets and bytes that were carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Packets from peers; a super-packet is one.
    pub received: u64,
    /// Their bytes on the wire.
    pub received_bytes: u64,
    /// Packets to peers.
    pub sent: u64,
    /// Their bytes on the wire.
    pub sent_bytes: u64,
}

impl Carried {
    fn add(&mut self, more: Self) {
        self.received += more.received;
        self.received_bytes += more.received_bytes;
        self.sent += more.sent;
        self.sent_bytes += more.sent_bytes;
    }
}

/// A session that is carried.
#[derive(Debug)]
struct Session {
    direct: Direct,
    most: u32,
    flows: BTreeSet<Flow>,
    carried: Carried,
    /// When something was last carried of it.
    used: Instant,
}

/// What the programs know.
#[derive(Debug)]
pub struct FastPath<C> {
    carrier: C,
    sessions: BTreeMap<SessionKey, Session>,
    flows: usize,
    looked: Instant,
    /// Of sessions that are carried no more.
    before: Carried,
    begun: u64,
}

impl<C: Carrier> FastPath<C> {
    /// Nothing is carried yet.
    pub const fn new(carrier: C) -> Self {
        Self {
            carrier,
            sessions: BTreeMap::new(),
            flows: 0,
            looked: Instant::ZERO,
            before: Carried {
                received: 0,
                received_bytes: 0,
                sent: 0,
                sent_bytes: 0,
            },
            begun: 0,
        }
    }

    /// The programs.
    pub const fn carrier_mut(&mut self) -> &mut C {
        &mut self.carrier
    }

    /// A packet of a flow has passed the stack: those to come are carried, if they may be and it `goes_on`. `leaves` says where packets of an
    /// interface to an address leave, if that is known.
    pub fn offer(
        &mut self,
        now: Instant,
        stack: &Stack,
        (flow, goes_on): (Flow, bool),
        leaves: impl Fn(InterfaceId, Ipv6Addr) -> Option<Leaves>,
    ) {
        if !goes_on {
            return self.forget(flow);
        }
        let ports = (flow.protocol, flow.own_port, flow.peers_port);
        let Some((direct, most)) = stack.direct(now, flow.peer, ports) else {
            return;
        };
        let known = self.sessions.get(&direct.session);
        if known.is_some_and(|s| s.flows.contains(&flow)) || self.flows >= MOST_FLOWS {
            return;
        }
        if known.is_none() && !self.begin(now, direct, most, leaves(direct.interface, direct.there)) {
            return;
        }
        // what was another session's is not any more
        self.forget(flow);
        if let Some(session) = self.sessions.get_mut(&direct.session)
            && session.flows.len() < MOST_FLOWS_OF_ONE
            && self.carrier.add(direct.session, flow).is_ok()
        {
            session.flows.insert(flow);
            self.flows += 1;
        }
    }

    fn begin(&mut self, now: Instant, direct: Direct, most: u32, leaves: Option<Leaves>) -> bool {
        let Some(leaves) = leaves.filter(|_| self.sessions.len() < MOST_SESSIONS) else {
            return false;
        };
        if self.carrier.begin(&direct, most, leaves).is_err() {
            return false;
        }
        self.begun += 1;
        let session = Session {
            direct,
            most,
            flows: BTreeSet::new(),
            carried: Carried::default(),
            used: now,
        };
        self.sessions.insert(direct.session, session);
        true
    }

    /// A flow begins or ends: it is not carried until it goes on.
    fn forget(&mut self, flow: Flow) {
        for (key, session) in &mut self.sessions {
            if session.flows.remove(&flow) {
                self.flows -= 1;
                self.carrier.forget(*key, flow);
            }
        }
    }

    /// Looks at what was carried, if it was not looked at just now, and tells the stack.
    pub fn look(&mut self, now: Instant, stack: &mut Stack) {
        if !self.sessions.is_empty() && now.since(self.looked) >= BETWEEN_LOOKS {
            self.look_now(now, stack);
        }
    }

    fn look_now(&mut self, now: Instant, stack: &mut Stack) {
        self.looked = now;
        let mut idle = Vec::new();
        for (key, session) in &mut self.sessions {
            let carried = self.carrier.carried(*key);
            let heard = carried.received > session.carried.received;
            let sent = carried.sent > session.carried.sent;
            if heard || sent {
                (session.carried, session.used) = (carried, now);
                note(now, stack, session, (heard, sent));
            } else if now.since(session.used) >= IDLE {
                idle.push(*key);
            }
        }
        for key in idle {
            self.end(now, stack, key);
        }
    }

    /// Takes back the sessions whose packets are not to go as they do.
    pub fn check(&mut self, now: Instant, stack: &mut Stack) {
        if self.changed(now, stack).next().is_none() {
            return;
        }
        // many packets that nothing was heard of may have been answered meanwhile
        self.look_now(now, stack);
        let changed: Vec<SessionKey> = self.changed(now, stack).collect();
        for key in changed {
            self.end(now, stack, key);
        }
    }

    /// Those that go another way now, or have to be thought about.
    fn changed(&self, now: Instant, stack: &Stack) -> impl Iterator<Item = SessionKey> {
        let changed = move |s: &&Session| stack.direct_of(now, s.direct.session) != Some((s.direct, s.most));
        self.sessions.values().filter(changed).map(|s| s.direct.session)
    }

    /// Takes everything back: the agent sees every packet again.
    pub fn end_all(&mut self, now: Instant, stack: &mut Stack) {
        while let Some(key) = self.sessions.keys().next().copied() {
            self.end(now, stack, key);
        }
    }

    fn end(&mut self, now: Instant, stack: &mut Stack, key: SessionKey) {
        let Some(session) = self.sessions.remove(&key) else {
            return;
        };
        let last = self.carrier.end(&session.direct, &session.flows);
        self.flows -= session.flows.len();
        let heard = last.received > session.carried.received;
        let sent = last.sent > session.carried.sent;
        if heard || sent {
            note(now, stack, &session, (heard, sent));
        }
        self.before.add(last);
    }

    /// When [`look`](Self::look) must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.sessions.is_empty()).then(|| self.looked + LOOK_EVERY)
    }

    /// By name.
    #[must_use]
    pub fn counters(&self) -> Vec<Count> {
        let mut all = self.before;
        for session in self.sessions.values() {
            all.add(session.carried);
        }
        vec![
            ("sessions_now", self.sessions.len() as u64),
            ("flows_now", self.flows as u64),
            ("sessions_begun", self.begun),
            ("received", all.received),
            ("received_bytes", all.received_bytes),
            ("sent", all.sent),
            ("sent_bytes", all.sent_bytes),
            ("taken_by_others", self.carrier.missed()),
        ]
    }
}

/// What was carried of a session is part of it.
fn note(now: Instant, stack: &mut Stack, session: &Session, what: (bool, bool)) {
    let flows = session.flows.iter();
    let flows = flows.map(|flow| (flow.protocol, flow.own_port, flow.peers_port));
    stack.note_carried(now, &session.direct, what, flows);
}

const TCP: u8 = 6;
const UDP: u8 = 17;
/// RFC 9293 section 3.1.
const FLAGS_AT: usize = 13;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;

/// Sessions that are carried at a time: each is looked at whenever the agent wakes.
const MOST_SESSIONS: usize = 32;
/// Flows, of all and of one: as many as the programs have room for, and as the shim knows of a session.
const MOST_FLOWS: usize = 4096;
const MOST_FLOWS_OF_ONE: usize = 256;
/// A session of which nothing is carried for so long makes room for others.
const IDLE: Duration = Duration::from_secs(2);
/// What was carried is looked at no more often, and no less.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
const LOOK_EVERY: Duration = Duration::from_secs(1);
