//! The sessions of the cache, and which of them a packet belongs to (RFC 6741 section 5.4).
//!
//! Packets that arrive are looked up by the peer's identifier and the nonce, as the RFC has it: whoever uses an
//! identifier with another nonce is another peer, since nodes may share an identifier and strangers may forge it.
//! What is sent has no nonce yet, and transports see no more of a peer than its identity. There the flow decides: it belongs
//! to the session that it began in.

use super::correspondent::Correspondent;
use super::flow::{Flow, answers_call, is_call, may_be_first};
use super::flows::{Flows, QUIET};
use super::session_key::SessionKey;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::ilnp::{Nid, Nonce};
use std::collections::BTreeMap;

/// The sessions with one identifier, and their flows.
#[derive(Debug, Default)]
struct Node {
    sessions: Vec<Correspondent>,
    flows: Flows,
}

impl Node {
    fn session(&self, number: u64) -> Option<&Correspondent> {
        self.sessions.iter().find(|c| c.key().number() == number)
    }

    /// The identity by which transports know the peer of a session.
    fn identity(&self, key: SessionKey) -> Option<Ipv6Addr> {
        self.session(key.number()).map(Correspondent::identity)
    }
}

/// The cache.
#[derive(Debug, Default)]
pub(super) struct Ilcc {
    nodes: BTreeMap<Nid, Node>,
    len: usize,
    numbers: u64,
}

impl Ilcc {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn by_key_mut(&mut self, key: SessionKey) -> Option<&mut Correspondent> {
        let node = self.nodes.get_mut(&key.nid())?;
        node.sessions.iter_mut().find(|c| c.key() == key)
    }

    pub fn by_key(&self, key: SessionKey) -> Option<&Correspondent> {
        self.of_nid(key.nid()).iter().find(|c| c.key() == key)
    }

    /// Every session with an identifier.
    pub fn of_nid(&self, nid: Nid) -> &[Correspondent] {
        self.nodes.get(&nid).map_or(&[], |node| &node.sessions)
    }

    /// The sessions between two identifiers.
    pub fn between(&self, nid: Nid, local_nid: Nid) -> impl Iterator<Item = &Correspondent> {
        self.of_nid(nid)
            .iter()
            .filter(move |c| c.local_nid() == local_nid)
    }

    /// The sessions with an identity.
    pub fn of_identity(&self, identity: Ipv6Addr) -> impl Iterator<Item = &Correspondent> {
        let all = self.of_nid(Nid::of(identity)).iter();
        all.filter(move |c| c.identity() == identity)
    }

    /// The session of this host's calls to `identity`: the last, if its peer has begun anew.
    pub fn called(&self, identity: Ipv6Addr) -> Option<&Correspondent> {
        let called = self.of_identity(identity).filter(|c| c.is_called());
        called.max_by_key(|c| c.key().number())
    }

    /// A call goes to `identity`: the first of its flow, or one that is repeated because nothing was heard since.
    pub fn note_call(&mut self, now: Instant, identity: Ipv6Addr, flow: Flow) {
        let Some(Node { sessions, flows }) = self.nodes.get_mut(&Nid::of(identity)) else {
            return;
        };
        flows.on_call(now, flow, identity, |owner| {
            let session = sessions.iter().find(|c| c.key().number() == owner);
            session.is_some_and(|c| c.contact().has_unheard(1))
        });
    }

    /// Whether what was sent last in a flow of a session may be answered by a peer that has been started again.
    pub fn may_be_answered_anew(&self, key: SessionKey, flow: Flow) -> bool {
        let node = self.nodes.get(&key.nid());
        let known = node.and_then(|node| Some((node, node.identity(key)?)));
        known.is_some_and(|(node, identity)| node.flows.may_be_answered_anew(flow, identity, key.number()))
    }

    /// Flows of a session, by protocol and ports, have been used without being seen here.
    pub fn refresh(
        &mut self,
        now: Instant,
        key: SessionKey,
        identity: Ipv6Addr,
        flows: impl Iterator<Item = Flow>,
    ) {
        if let Some(node) = self.nodes.get_mut(&key.nid()) {
            for flow in flows {
                node.flows.refresh(now, flow, identity, key.number());
            }
        }
    }

    /// The session of the peer's that uses `nonce`.
    pub fn by_nonce(&self, nid: Nid, local_nid: Nid, nonce: Nonce) -> Option<SessionKey> {
        let mut sessions = self.between(nid, local_nid);
        sessions
            .find(|c| c.remote_nonce() == Some(nonce))
            .map(Correspondent::key)
    }

    /// Whether `flow` is a session's own, which it becomes if it is nobody's. If not, whose it is.
    pub fn use_flow(&mut self, now: Instant, key: SessionKey, flow: Flow) -> Result<(), SessionKey> {
        let Some(node) = self.nodes.get_mut(&key.nid()) else {
            return Ok(());
        };
        let Some(identity) = node.identity(key) else {
            return Ok(());
        };
        match node.flows.on_heard(now, flow, identity, key.number()) {
            Ok(()) => Ok(()),
            Err(Some(owner)) => Err(SessionKey::new(key.nid(), owner)),
            Err(None) => {
                node.flows.claim(now, flow, identity, key.number());
                Ok(())
            }
        }
    }

    /// A session begins something in a flow of a quiet one's.
    pub fn begin_in(&mut self, now: Instant, key: SessionKey, flow: Flow, is_call: bool) {
        if let Some(node) = self.nodes.get_mut(&key.nid())
            && let Some(identity) = node.identity(key)
        {
            node.flows.begin(now, flow, identity, key.number(), is_call);
        }
    }

    /// Whether a call of a session's came in `flow`, which is another's, and was not answered.
    pub fn is_called_by(&self, key: SessionKey, flow: Flow) -> bool {
        let node = self.nodes.get(&key.nid());
        let known = node.and_then(|node| Some((node, node.identity(key)?)));
        known.is_some_and(|(node, identity)| node.flows.is_called_by(flow, identity, key.number()))
    }

    /// The session to which `flow` with this identity belongs.
    pub fn owner_of(&self, identity: Ipv6Addr, flow: Flow) -> Option<SessionKey> {
        let nid = Nid::of(identity);
        let owner = self.nodes.get(&nid)?.flows.owner(flow, identity)?;
        Some(SessionKey::new(nid, owner))
    }

    /// A session with this identifier to which `flow` belongs, by whatever identity: one that waits for an answer first.
    pub fn owner(&self, nid: Nid, flow: Flow) -> Option<SessionKey> {
        let node = self.nodes.get(&nid)?;
        let owns = |c: &&Correspondent| node.flows.owner(flow, c.identity()) == Some(c.key().number());
        let owners = node.sessions.iter().filter(owns);
        owners
            .min_by_key(|c| c.remote_nonce().is_some())
            .map(Correspondent::key)
    }

    /// The session that a packet to `identity` goes to without another thought: that of its flow, unless it is a
    /// call, which no session takes that the peer began.
    pub fn on_the_way_to(
        &mut self,
        now: Instant,
        identity: Ipv6Addr,
        flow: Flow,
        packet: &Packet,
    ) -> Option<&mut Correspondent> {
        let Node { sessions, flows } = self.nodes.get_mut(&Nid::of(identity))?;
        let owner = flows.on_sent(now, (flow, identity), || answers_call(packet))?;
        let session = sessions.iter_mut().find(|c| c.key().number() == owner)?;
        if session.contact().is_quiet(now) && may_be_first(packet) {
            flows.on_first_after_quiet(flow, identity);
            session.begins_after_quiet();
        }
        (session.is_called() || !is_call(packet)).then_some(session)
    }

    /// The session of a packet that no flow leads to: the one of this host's calls. But one that calls nobody is of a connection of which
    /// the flow was forgotten: of the one session that has so many that it forgets them; or, where this host has called
    /// nobody, of the one that there is. With two, nobody knows.
    pub fn without_flow(&self, identity: Ipv6Addr, calls_nobody: bool) -> Option<SessionKey> {
        let called = self.called(identity).map(Correspondent::key);
        let node = self.nodes.get(&Nid::of(identity)).filter(|_| calls_nobody);
        let Some(node) = node else { return called };
        let living = || self.of_identity(identity).filter(|c| c.remote_nonce().is_some());
        let full = living().filter(|c| node.flows.is_full(c.key().number()));
        let living = living().map(Correspondent::key);
        only(full.map(Correspondent::key))
            .or(called)
            .or_else(|| only(living))
    }

    /// Has `flow` begin in a session, with what may begin something or not.
    pub fn claim_for(&mut self, now: Instant, key: SessionKey, flow: Flow, may_be_first: bool) {
        self.claim(key, flow, now);
        let Some(Node { sessions, flows }) = self.nodes.get_mut(&key.nid()) else {
            return;
        };
        let quiet = sessions
            .iter_mut()
            .find(|c| c.key() == key && c.contact().is_quiet(now));
        if let Some(session) = quiet.filter(|_| may_be_first) {
            flows.on_first_after_quiet(flow, session.identity());
            session.begins_after_quiet();
        }
    }

    /// Has `flow` belong to a session.
    pub fn claim(&mut self, key: SessionKey, flow: Flow, now: Instant) {
        if let Some(node) = self.nodes.get_mut(&key.nid())
            && let Some(identity) = node.identity(key)
        {
            node.flows.claim(now, flow, identity, key.number());
        }
    }

    /// Adds a session, which begins as `begin` says.
    pub fn insert(&mut self, nid: Nid, begin: impl FnOnce(SessionKey) -> Correspondent) -> SessionKey {
        self.numbers += 1;
        self.len += 1;
        let key = SessionKey::new(nid, self.numbers);
        let node = self.nodes.entry(nid).or_default();
        node.sessions.push(begin(key));
        key
    }

    pub fn iter(&self) -> impl Iterator<Item = &Correspondent> {
        self.nodes.values().flat_map(|node| &node.sessions)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Correspondent> {
        self.nodes.values_mut().flat_map(|node| &mut node.sessions)
    }

    /// Two sessions turn out to be one: the peer called while it was called. That of this host's call, `called`, goes on with
    /// the nonces of the peer's, `other`.
    pub fn join(&mut self, called: SessionKey, other: SessionKey) {
        if let Some(gone) = self.merge(called, other)
            && let Some(session) = self.by_key_mut(called)
        {
            session.join(gone);
        }
    }

    /// The flows of `other` are those of `session` from now on. What `other` was.
    pub fn merge(&mut self, session: SessionKey, other: SessionKey) -> Option<Correspondent> {
        let node = self.nodes.get_mut(&session.nid())?;
        let at = node.sessions.iter().position(|c| c.key() == other)?;
        let gone = node.sessions.remove(at);
        self.len -= 1;
        node.flows.give(other.number(), session.number());
        Some(gone)
    }

    /// Forgets those that were not used for `idle`, or for [`QUIET`] if nothing lasting has come of them.
    pub fn forget_idle(&mut self, now: Instant, idle: Duration) -> Vec<Forgotten> {
        let mut gone = Vec::new();
        self.nodes.retain(|_, node| {
            let before = gone.len();
            let idle = node.sessions.extract_if(.., |c| forgotten_at(c, idle) <= now);
            gone.extend(idle.map(|c| Forgotten::of(&c)));
            for Forgotten { key, .. } in &gone[before..] {
                node.flows.forget(key.number());
            }
            !node.sessions.is_empty()
        });
        self.len -= gone.len();
        gone
    }

    /// When the first of them is to be forgotten, if it is not used.
    pub fn idle_at(&self, idle: Duration) -> Option<Instant> {
        self.iter().map(|c| forgotten_at(c, idle)).min()
    }

    /// Forgets the one that is missed least (see [`Worth`]); of those that are worth the same, the one that was used least
    /// lately.
    pub fn forget_oldest(&mut self) -> Option<Forgotten> {
        let oldest = self.iter().min_by_key(|c| (Worth::of(c), c.contact().used()))?;
        let key = oldest.key();
        self.forget(key)
    }

    /// Forgets one of the sessions that peers began with this identifier, if there are too many of them: whoever forges
    /// it gets no more room than that.
    pub fn forget_one_of(&mut self, nid: Nid) -> Option<Forgotten> {
        let uninvited = || self.of_nid(nid).iter().filter(|c| !c.is_called());
        if uninvited().count() < MAX_UNINVITED {
            return None;
        }
        let key = uninvited()
            .min_by_key(|c| (Worth::of(c), c.contact().used()))?
            .key();
        self.forget(key)
    }

    /// Forgets one of the sessions that peers began with a packet and did not carry on, if there are too many of them: every timer
    /// and every handoff looks at all sessions, and whoever makes up identifiers has as many as he likes.
    pub fn forget_stranger(&mut self) -> Option<Forgotten> {
        let strangers = || self.iter().filter(|c| Worth::of(c) <= Worth::OnePacket);
        if strangers().count() < MAX_STRANGERS {
            return None;
        }
        let key = strangers()
            .min_by_key(|c| (Worth::of(c), c.contact().used()))?
            .key();
        self.forget(key)
    }

    fn forget(&mut self, key: SessionKey) -> Option<Forgotten> {
        let node = self.nodes.get_mut(&key.nid())?;
        let at = node.sessions.iter().position(|c| c.key() == key)?;
        let gone = node.sessions.remove(at);
        node.flows.forget(key.number());
        if node.sessions.is_empty() {
            self.nodes.remove(&key.nid());
        }
        self.len -= 1;
        Some(Forgotten::of(&gone))
    }
}

/// What a session is worth when the cache is full, the least first. Whoever makes up identifiers has as many sessions as he
/// likes, and answers to them too: a SYN or an echo request is answered at once. But of most he sends one packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Worth {
    /// The peer began it, and has had no answer.
    Unanswered,
    /// The peer began it, and was not heard again.
    OnePacket,
    /// The peer began it, and carries on.
    Uninvited,
    /// A call of this host's.
    Called,
    /// A call whose packets wait for a look-up: nothing can be heard of it yet.
    Waiting,
}

impl Worth {
    fn of(session: &Correspondent) -> Self {
        match session {
            c if c.is_called() && (c.is_asked() || c.held() > 0) => Self::Waiting,
            c if c.is_called() => Self::Called,
            c if c.contact().carries_on() => Self::Uninvited,
            c if c.contact().is_contacted() => Self::OnePacket,
            _ => Self::Unanswered,
        }
    }
}

/// When a session is forgotten, if it is not used until then. Transports may go on in one in which both ends were heard; of a call
/// that was not answered and a stranger that did not carry on there is nothing to go on with.
fn forgotten_at(session: &Correspondent, idle: Duration) -> Instant {
    let lasts = session.is_answered() && Worth::of(session) > Worth::OnePacket;
    session.contact().used() + if lasts { idle } else { idle.min(QUIET) }
}

/// What there is, if there is one.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next();
    first.filter(|_| all.next().is_none())
}

/// What is left of a session that is no longer in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forgotten {
    key: SessionKey,
    /// The identifier of ours that it knew.
    pub local_nid: Nid,
    /// Packets that waited for a look-up.
    pub held: usize,
}

impl Forgotten {
    fn of(correspondent: &Correspondent) -> Self {
        Self {
            key: correspondent.key(),
            local_nid: correspondent.local_nid(),
            held: correspondent.held(),
        }
    }
}

/// Sessions that peers began with one identifier.
const MAX_UNINVITED: usize = 8;
/// Sessions that peers began and did not carry on.
const MAX_STRANGERS: usize = 256;
