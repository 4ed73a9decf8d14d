//! Which packets the kernel carries by itself: those of sessions in which nothing is to be thought about. The programs that carry
//! them are `fast_path/packets.bpf.c`; here is what they are told.
//!
//! A flow is told to them when a packet of it has passed the agent, either way, and its session is one whose packets all go the same way ([`Direct`]).
//! It is taken back when it ends, or when nothing was carried of it for [`IDLE`]; a session, when its packets go another way, or all its flows
//! are idle; all are when somebody wants to see every packet. What the programs have carried is looked at whenever the agent wakes, and while
//! there is something each [`LOOK_EVERY`]: the shim learns when the peer was heard, and when it was first sent to after that.
//!
//! The programs leave to the agent what begins or ends something, what is longer than the way takes, and what is sent when nothing was
//! heard for ten milliseconds: silence is noticed as it is without them. No packet overtakes those of its flow that wait for the agent, as
//! long as it reads all that waits now and then: it says when ([`FastPath::drained`]).

use crate::stack::Stack;
use segue_proto::contract::InterfaceId;
use segue_proto::ilnp::{Direct, Past, SessionKey};
use segue_proto::shim::Count;
use segue_proto::{Duration, Instant};
use segue_wire::{Packet, Payload};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv6Addr;

/// The programs, or what stands for them in a test.
pub trait Carrier {
    /// From now on packets of a session are carried, of those flows that are named after this. `path_mtu` is the length of an IPv6 packet
    /// on the wire.
    ///
    /// # Errors
    /// As the kernel has them: it is not carried then.
    fn begin(&mut self, direct: &Direct, path_mtu: u32, leaves: Leaves) -> io::Result<()>;

    /// A flow of a session is carried. A packet of it may be on its way to the agent at `now`.
    ///
    /// # Errors
    /// As the kernel has them: it is not carried then.
    fn add(&mut self, now: Instant, session: SessionKey, flow: Flow) -> io::Result<()>;

    /// A flow of a session is carried no more.
    fn forget(&mut self, session: SessionKey, flow: Flow);

    /// A session is carried no more, of which no flow is left; says what was carried of it since it began.
    fn end(&mut self, direct: &Direct) -> Carried;

    /// What was carried of a session since [`begin`](Self::begin).
    fn carried(&self, session: SessionKey) -> Carried;

    /// Packets that were carried of a flow since [`add`](Self::add).
    fn packets(&self, flow: Flow) -> u64;

    /// At this time nothing was left to be read of what this interface, or the device, has for the agent.
    fn drained(&mut self, index: u32, at: Instant);

    /// How many packets were not carried to their end: another program of this machine took them, or the kernel could not change them.
    /// If they were many of late, nothing that arrives is carried any more.
    fn lost(&self) -> u64;

    /// Those that were lost until now are not of late.
    fn forgive(&mut self);
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

/// A packet of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Of which.
    pub flow: Flow,
    /// What it does to it.
    pub step: Step,
}

/// What a packet does to its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It opens a connection.
    Begins,
    /// Neither.
    GoesOn,
    /// It closes a connection, in one direction or both.
    Ends,
}

impl Seen {
    /// An IPv6 packet of TCP or UDP to a peer.
    #[must_use]
    pub fn sent(packet: &[u8]) -> Option<Self> {
        let (header, transport) = packet.split_first_chunk::<40>()?;
        let peer = Ipv6Addr::from(*header.last_chunk::<16>()?);
        let ([own_port, peers_port], step) = look_at(header[6], transport)?;
        let flow = Flow {
            peer,
            protocol: header[6],
            own_port,
            peers_port,
        };
        Some(Self { flow, step })
    }

    /// The same of one from a peer, as it goes up.
    #[must_use]
    pub fn received(packet: &Packet) -> Option<Self> {
        let Payload::Raw(raw) = &packet.payload else {
            return None;
        };
        if !packet.extensions.is_empty() {
            return None;
        }
        let ([peers_port, own_port], step) = look_at(raw.next_header, &raw.bytes)?;
        let flow = Flow {
            peer: packet.ip.source,
            protocol: raw.next_header,
            own_port,
            peers_port,
        };
        Some(Self { flow, step })
    }
}

/// Source and destination, and what the packet does to its flow.
fn look_at(protocol: u8, transport: &[u8]) -> Option<([u16; 2], Step)> {
    let step = match protocol {
        TCP => match *transport.get(FLAGS_AT)? {
            flags if flags & (FIN | RST) != 0 => Step::Ends,
            flags if flags & SYN != 0 => Step::Begins,
            _ => Step::GoesOn,
        },
        UDP => Step::GoesOn,
        _ => return None,
    };
    let ([source, destination], _) = transport.first_chunk::<4>()?.as_chunks::<2>() else {
        return None;
    };
    Some((
        [u16::from_be_bytes(*source), u16::from_be_bytes(*destination)],
        step,
    ))
}

/// What was carried of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Packets from the peer; a super-packet is one.
    pub received: u64,
    /// Their bytes, of IPv6 packets on the wire.
    pub received_bytes: u64,
    /// Packets to the peer.
    pub sent: u64,
    /// Their bytes, of IPv6 packets on the wire.
    pub sent_bytes: u64,
    /// When the last came from the peer.
    pub heard: Instant,
    /// When the first went to the peer after that; before it, if none has.
    pub first_sent: Instant,
}

impl Carried {
    /// Nothing.
    pub const NONE: Self = Self {
        received: 0,
        received_bytes: 0,
        sent: 0,
        sent_bytes: 0,
        heard: Instant::ZERO,
        first_sent: Instant::ZERO,
    };

    /// What is new since that was `before`, by when it is known now.
    fn since(&self, now: Instant, before: &Self) -> Past {
        let sent = if self.first_sent > self.heard && self.first_sent == before.first_sent {
            now
        } else {
            self.first_sent
        };
        Past {
            heard: (self.received > before.received || self.heard > before.heard).then_some(self.heard),
            sent: (self.sent > before.sent).then_some(sent),
        }
    }

    const fn packets(&self) -> u64 {
        self.received + self.sent
    }

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
    path_mtu: u32,
    leaves: Leaves,
    flows: BTreeMap<Flow, Used>,
    carried: Carried,
    /// Packets until the last sweep, and from one to the next: those it has lived to see.
    swept: u64,
    busy: Option<u64>,
}

/// Packets of a flow, and when there was a new one.
#[derive(Clone, Copy, Debug)]
struct Used {
    packets: u64,
    at: Instant,
}

/// What the programs know.
#[derive(Debug)]
pub struct FastPath<C> {
    carrier: C,
    sessions: BTreeMap<SessionKey, Session>,
    flows: usize,
    /// Connections that are closed, in one direction at least, and when: what still comes of them is not worth it.
    closed: BTreeMap<Flow, Instant>,
    looked: Instant,
    /// When a look last found something.
    found: Instant,
    swept: Instant,
    forgiven: Instant,
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
            closed: BTreeMap::new(),
            looked: Instant::ZERO,
            found: Instant::ZERO,
            swept: Instant::ZERO,
            forgiven: Instant::ZERO,
            before: Carried::NONE,
            begun: 0,
        }
    }

    /// The programs.
    pub const fn carrier_mut(&mut self) -> &mut C {
        &mut self.carrier
    }

    /// A packet of a flow has passed the stack: those to come are carried, if they may be. `leaves` says where packets of an
    /// interface to an address leave, if that is known.
    pub fn offer(
        &mut self,
        now: Instant,
        stack: &Stack,
        seen: Seen,
        leaves: impl Fn(InterfaceId, Ipv6Addr) -> Option<Leaves>,
    ) {
        let flow = seen.flow;
        match seen.step {
            Step::Begins => {
                self.closed.remove(&flow);
                return self.forget(flow);
            }
            Step::Ends => {
                if self.closed.len() < MOST_FLOWS {
                    self.closed.insert(flow, now);
                }
                return self.forget(flow);
            }
            Step::GoesOn if self.closed.contains_key(&flow) => return,
            Step::GoesOn => {}
        }
        let ports = (flow.protocol, flow.own_port, flow.peers_port);
        let Some((direct, path_mtu)) = stack.direct(now, flow.peer, ports) else {
            return;
        };
        let known = self.sessions.get(&direct.session);
        if known.is_some_and(|s| s.flows.contains_key(&flow)) || self.flows >= MOST_FLOWS {
            return;
        }
        let by = || leaves(direct.interface, direct.there);
        if known.is_none() && !by().is_some_and(|by| self.begin(direct, path_mtu, by)) {
            return;
        }
        // what was another session's is not any more
        self.forget(flow);
        if let Some(session) = self.sessions.get_mut(&direct.session)
            && session.flows.len() < MOST_FLOWS_OF_ONE
            && self.carrier.add(now, direct.session, flow).is_ok()
        {
            session.flows.insert(flow, Used { packets: 0, at: now });
            self.flows += 1;
        }
    }

    fn begin(&mut self, direct: Direct, path_mtu: u32, leaves: Leaves) -> bool {
        if self.sessions.len() >= MOST_SESSIONS && !self.make_room() {
            return false;
        }
        if self.carrier.begin(&direct, path_mtu, leaves).is_err() {
            return false;
        }
        self.begun += 1;
        let session = Session {
            direct,
            path_mtu,
            leaves,
            flows: BTreeMap::new(),
            carried: Carried::NONE,
            swept: 0,
            busy: None,
        };
        self.sessions.insert(direct.session, session);
        true
    }

    /// The session that has carried least, if that is little, is carried no more. What was carried of it since it was looked at is
    /// not told: it is looked at whenever the agent wakes.
    fn make_room(&mut self) -> bool {
        let measured = self.sessions.iter().filter_map(|(key, s)| Some((s.busy?, *key)));
        match measured.min() {
            Some((busy, key)) if busy <= LITTLE => {
                let _ = self.take_out(key);
                true
            }
            _ => false,
        }
    }

    /// A flow begins or ends: it is not carried until it goes on.
    fn forget(&mut self, flow: Flow) {
        for (key, session) in &mut self.sessions {
            if session.flows.remove(&flow).is_some() {
                self.flows -= 1;
                self.carrier.forget(*key, flow);
            }
        }
    }

    /// At this time nothing was left to be read of what this interface, or the device, has for the agent, by its number in the kernel.
    pub fn drained(&mut self, index: u32, at: Instant) {
        if !self.sessions.is_empty() {
            self.carrier.drained(index, at);
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
        for (key, session) in &mut self.sessions {
            let carried = self.carrier.carried(*key);
            let past = carried.since(now, &session.carried);
            if past != Past::NOTHING {
                session.carried = carried;
                stack.note_carried(now, &session.direct, past, core::iter::empty());
                self.found = now;
            }
        }
        if now.since(self.swept) >= SWEEP_EVERY {
            self.sweep(now, stack);
        }
    }

    /// What is idle makes room for others; flows that are not are in use.
    fn sweep(&mut self, now: Instant, stack: &mut Stack) {
        self.swept = now;
        for (key, session) in &mut self.sessions {
            session.busy = Some(session.carried.packets() - session.swept);
            session.swept = session.carried.packets();
            let mut moved = Vec::new();
            for (flow, used) in &mut session.flows {
                let packets = self.carrier.packets(*flow);
                if packets > used.packets {
                    *used = Used { packets, at: now };
                    moved.push((flow.protocol, flow.own_port, flow.peers_port));
                }
            }
            stack.note_carried(now, &session.direct, Past::NOTHING, moved.into_iter());
            let idle = session.flows.extract_if(.., |_, used| now.since(used.at) >= IDLE);
            for (flow, _) in idle {
                self.carrier.forget(*key, flow);
                self.flows -= 1;
            }
        }
        let idle = self.sessions.iter().filter(|(_, s)| s.flows.is_empty());
        let idle: Vec<SessionKey> = idle.map(|(key, _)| *key).collect();
        for key in idle {
            self.end(now, stack, key);
        }
        self.closed.retain(|_, since| now.since(*since) < CLOSED);
        if now.since(self.forgiven) >= FORGIVEN_EVERY {
            self.forgiven = now;
            self.carrier.forgive();
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
        let changed =
            move |s: &&Session| stack.direct_of(now, s.direct.session) != Some((s.direct, s.path_mtu));
        self.sessions.values().filter(changed).map(|s| s.direct.session)
    }

    /// Interfaces or routes have changed: takes back the sessions whose packets are to leave elsewhere.
    pub fn check_ways(
        &mut self,
        now: Instant,
        stack: &mut Stack,
        mut leaves: impl FnMut(InterfaceId, Ipv6Addr) -> Option<Leaves>,
    ) {
        let mut changed = Vec::new();
        for (key, session) in &self.sessions {
            if leaves(session.direct.interface, session.direct.there) != Some(session.leaves) {
                changed.push(*key);
            }
        }
        for key in changed {
            self.end(now, stack, key);
        }
    }

    /// Takes everything back: the agent sees every packet again.
    pub fn end_all(&mut self, now: Instant, stack: &mut Stack) {
        while let Some(key) = self.sessions.keys().next().copied() {
            self.end(now, stack, key);
        }
    }

    fn end(&mut self, now: Instant, stack: &mut Stack, key: SessionKey) {
        let Some((session, last)) = self.take_out(key) else {
            return;
        };
        let past = last.since(now, &session.carried);
        if past != Past::NOTHING {
            stack.note_carried(now, &session.direct, past, core::iter::empty());
        }
    }

    /// A session as it was known, and what was carried of it.
    fn take_out(&mut self, key: SessionKey) -> Option<(Session, Carried)> {
        let session = self.sessions.remove(&key)?;
        for flow in session.flows.keys() {
            self.carrier.forget(key, *flow);
        }
        self.flows -= session.flows.len();
        let last = self.carrier.end(&session.direct);
        self.before.add(last);
        Some((session, last))
    }

    /// When [`look`](Self::look) must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let idle = self.looked.since(self.found) >= SWEEP_EVERY;
        let every = if idle { SWEEP_EVERY } else { LOOK_EVERY };
        (!self.sessions.is_empty()).then(|| self.looked + every)
    }

    /// By name.
    #[must_use]
    pub fn counters(&self) -> Vec<Count> {
        let mut all = self.before;
        for session in self.sessions.values() {
            all.add(session.carried);
        }
        vec![
            // Sessions that are carried.
            ("sessions_now", self.sessions.len() as u64),
            // Their flows that are.
            ("flows_now", self.flows as u64),
            // How often a session began to be carried.
            ("sessions_begun", self.begun),
            ("received", all.received),
            ("received_bytes", all.received_bytes),
            ("sent", all.sent),
            ("sent_bytes", all.sent_bytes),
            // Packets that were not carried to their end: another program of this machine took them, or the kernel could not change them.
            ("lost", self.carrier.lost()),
        ]
    }
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
/// A session with no more packets than that from one sweep to the next makes room for another.
const LITTLE: u64 = 100;
/// Flows, of all and of one: as many as the programs have room for, and as the shim knows of a session.
const MOST_FLOWS: usize = 4096;
const MOST_FLOWS_OF_ONE: usize = 256;
/// A flow of which nothing is carried for so long makes room for others.
const IDLE: Duration = Duration::from_secs(2);
/// A connection is closed for so long, unless another begins between the same ports.
const CLOSED: Duration = Duration::from_secs(60);
/// What was carried is looked at no more often; and no less while there is something, so that what is sent and not answered is probed for
/// in time: the shim does so after as long.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
const LOOK_EVERY: Duration = Duration::from_millis(40);
/// Flows are looked at so often.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const FORGIVEN_EVERY: Duration = Duration::from_secs(60);
