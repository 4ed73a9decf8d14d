//! The sessions of the cache, and which of them a packet belongs to (RFC 6741 section 5.4).
//!
//! Packets that arrive are looked up by the peer's identifier and the nonce, as the RFC has it: whoever uses an
//! identifier with another nonce is another peer, since nodes may share an identifier and strangers may forge it.
//! What is sent has no nonce yet, and transports see no more of a peer than its identity. There the flow decides: it belongs
//! to the session that it began in.

use super::correspondent::Correspondent;
use super::flow::Flow;
use super::session_key::SessionKey;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::ilnp::{Nid, Nonce};
use std::collections::BTreeMap;

/// The sessions with one identifier, and their flows.
#[derive(Debug, Default)]
struct Node {
    sessions: Vec<Correspondent>,
    /// Each flow with what transports call the peer.
    flows: BTreeMap<(Flow, Ipv6Addr), Known>,
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The number of its session.
    owner: u64,
    used: Instant,
    /// The last call in it was repeated because nothing was heard.
    in_vain: bool,
}

impl Node {
    fn forget_flows_of(&mut self, key: SessionKey) {
        self.flows.retain(|_, known| known.owner != key.number());
    }

    /// Gives `flow` to a session, and takes the one that was used least lately from it if it has too many.
    fn claim(&mut self, number: u64, flow: Flow, now: Instant) {
        let Some(session) = self.sessions.iter().find(|c| c.key().number() == number) else {
            return;
        };
        let flow = (flow, session.identity());
        let mine = |(_, known): &(&(Flow, Ipv6Addr), &Known)| known.owner == number;
        if !self.flows.contains_key(&flow)
            && self.flows.len() >= MAX_FLOWS
            && self.flows.iter().filter(mine).count() >= MAX_FLOWS
        {
            let oldest = self.flows.iter().filter(mine).min_by_key(|(_, known)| known.used);
            if let Some(oldest) = oldest.map(|(flow, _)| *flow) {
                self.flows.remove(&oldest);
            }
        }
        let known = Known {
            owner: number,
            used: now,
            in_vain: false,
        };
        self.flows.insert(flow, known);
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
        let Some(node) = self.nodes.get_mut(&Nid::of(identity)) else {
            return;
        };
        if let Some(known) = node.flows.get_mut(&(flow, identity)) {
            let session = node.sessions.iter().find(|c| c.key().number() == known.owner);
            let is_unheard = session.is_some_and(|c| c.contact().has_unheard(1));
            known.in_vain = is_unheard && now.since(known.used) >= IN_VAIN;
        }
    }

    /// Whether the last call of a flow of a session was one that was repeated because nothing was heard.
    pub fn is_called_in_vain(&self, key: SessionKey, flow: Flow) -> bool {
        let Some(node) = self.nodes.get(&key.nid()) else {
            return false;
        };
        let session = node.sessions.iter().find(|c| c.key() == key);
        let known = session.and_then(|c| node.flows.get(&(flow, c.identity())));
        known.is_some_and(|known| known.owner == key.number() && known.in_vain)
    }

    /// Flows of a session, by protocol and ports, have been used without being seen here.
    pub fn refresh(
        &mut self,
        now: Instant,
        key: SessionKey,
        identity: Ipv6Addr,
        flows: impl Iterator<Item = Flow>,
    ) {
        let Some(node) = self.nodes.get_mut(&key.nid()) else {
            return;
        };
        for flow in flows {
            if let Some(known) = node
                .flows
                .get_mut(&(flow, identity))
                .filter(|f| f.owner == key.number())
            {
                known.used = now;
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
        let identity = node
            .sessions
            .iter()
            .find(|c| c.key() == key)
            .map(Correspondent::identity);
        let owner = identity.and_then(|identity| node.flows.get_mut(&(flow, identity)));
        match owner {
            Some(known) if known.owner == key.number() => {
                (known.used, known.in_vain) = (now, false);
                Ok(())
            }
            Some(known) => Err(SessionKey::new(key.nid(), known.owner)),
            None => {
                node.claim(key.number(), flow, now);
                Ok(())
            }
        }
    }

    /// The session to which `flow` with this identity belongs.
    pub fn owner_of(&self, identity: Ipv6Addr, flow: Flow) -> Option<SessionKey> {
        let nid = Nid::of(identity);
        let known = self.nodes.get(&nid)?.flows.get(&(flow, identity))?;
        Some(SessionKey::new(nid, known.owner))
    }

    /// A session with this identifier to which `flow` belongs, by whatever identity: one that waits for an answer first.
    pub fn owner(&self, nid: Nid, flow: Flow) -> Option<SessionKey> {
        let node = self.nodes.get(&nid)?;
        let owns = |c: &&Correspondent| {
            let owner = node.flows.get(&(flow, c.identity()));
            owner.is_some_and(|known| known.owner == c.key().number())
        };
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
        is_call: impl FnOnce() -> bool,
    ) -> Option<&mut Correspondent> {
        let node = self.nodes.get_mut(&Nid::of(identity))?;
        let known = node.flows.get_mut(&(flow, identity))?;
        known.used = now;
        let session = node
            .sessions
            .iter_mut()
            .find(|c| c.key().number() == known.owner)?;
        (session.is_called() || !is_call()).then_some(session)
    }

    /// Has `flow` belong to a session.
    pub fn claim(&mut self, key: SessionKey, flow: Flow, now: Instant) {
        if let Some(node) = self.nodes.get_mut(&key.nid()) {
            node.claim(key.number(), flow, now);
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
        let flows = node.flows.values_mut();
        for known in flows.filter(|known| known.owner == other.number()) {
            known.owner = session.number();
        }
        Some(gone)
    }

    /// Forgets those that were last used before `since`.
    pub fn forget_idle(&mut self, since: Instant) -> Vec<Forgotten> {
        let mut gone = Vec::new();
        self.nodes.retain(|_, node| {
            let before = gone.len();
            let idle = node.sessions.extract_if(.., |c| c.contact().used() <= since);
            gone.extend(idle.map(|c| Forgotten::of(&c)));
            for Forgotten { key, .. } in &gone[before..] {
                node.forget_flows_of(*key);
            }
            !node.sessions.is_empty()
        });
        self.len -= gone.len();
        gone
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
        node.forget_flows_of(key);
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

/// A little less than the second after which TCP repeats a SYN (RFC 6298 section 2.1).
const IN_VAIN: Duration = Duration::from_millis(900);
/// Flows of one session: of more, the one that was used least lately is nobody's.
const MAX_FLOWS: usize = 256;
/// Sessions that peers began with one identifier.
const MAX_UNINVITED: usize = 8;
/// Sessions that peers began and did not carry on.
const MAX_STRANGERS: usize = 256;
