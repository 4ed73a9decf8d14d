//! Names: what applications ask for, where peers are, and what is published of this host (RFC 6742).
//!
//! ```text
//!   applications      handle_query() | poll_answer()          the shim      handle_look_up() | poll_found()
//!   ------------------------------------------------------------------------------------------------------
//!   Names             queries, what is found out (Finding), Cache, Directory, Publisher
//!   ------------------------------------------------------------------------------------------------------
//!   servers           poll_datagram(), poll_stream() | handle_datagram(), handle_stream()
//! ```
//!
//! A question for addresses of IPv6 (AAAA) goes to the servers as it came, and beside it one for the name's node identifier (NID).
//! Where there is one, and locators (L64, or LP that leads to them), the answer is the identity: the identity prefix and the
//! identifier. Where there is none, and for every other type, the servers' answer is passed on as it is. A server that does not answer
//! questions for NID holds nothing up: after [`NODE_PATIENCE`] the answer that is there is given.
//!
//! The shim asks where an identity is. What its name has just said is told once; every later question, by somebody who did not get
//! there, goes to the servers.

mod cache;
pub mod config;
mod counters;
mod directory;
mod finding;
mod message;
mod publisher;
mod queries;
mod upstream;

pub use directory::{Learnt, Source};
pub use publisher::{Progress, Records};
pub use upstream::{AskId, StreamQuestion};

use crate::names::queries::{Plain, Queries};
use bytes::Bytes;
use cache::Cache;
use config::NamesConfig;
use counters::Counters;
use directory::Directory;
use domain::base::iana::Rcode;
use finding::{Finding, Node, Outcome, Step};
use message::{Query, Unreadable, is_of_update};
use publisher::Publisher;
use segue_proto::ilnp::PeerConfig;
use segue_proto::location::{Datagram, Name, PreferredLocator, parse_name};
use segue_proto::random::SecretRng;
use segue_proto::shim::Count;
use segue_proto::{Duration, Instant};
use segue_wire::ilnp::{Locator, Nid};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv6Addr, SocketAddr};
use std::rc::Rc;
use upstream::{Upstream, Way};

/// For how long an answer that is there waits for what the name says of a node.
pub const NODE_PATIENCE: Duration = Duration::from_millis(1000);
/// Servers that have not answered so many questions for nodes, one after the other ...
const MOST_SILENCES: u32 = 3;
/// ... are not asked any more for so long.
const PAUSE: Duration = Duration::from_secs(60);
/// Names that are looked at.
const MOST_FINDINGS: usize = 256;
/// Time to live of an identity of the file, seconds.
const FILE_TTL: u32 = 60;
/// Applications forget an identity after so long, whatever the records say, seconds.
const LONGEST_TTL: u32 = 3600;
/// Identities that nobody uses are looked for so often.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Preference of a place where a peer may be, by the file, but was not heard.
pub const ELSEWHERE: u16 = 1000;

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Asker {
    /// Somebody at this address and port, over UDP to a place that is listened at.
    Datagram {
        /// Place in the list of [`NamesConfig::listen`].
        listener: usize,
        /// Where the answer goes.
        from: SocketAddr,
    },
    /// Somebody over TCP, by a number of the driver's.
    Stream(u64),
}

/// An answer to somebody who asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// To whom.
    pub to: Asker,
    /// The message.
    pub message: Vec<u8>,
}

/// An answer to the shim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The identity.
    pub peer: Ipv6Addr,
    /// Where it is, the best first; nothing if nobody knows.
    pub locators: Vec<PreferredLocator>,
}

/// Why something is found out.
#[derive(Clone, PartialEq, Debug)]
enum Purpose {
    /// Applications have asked for a name.
    Name(Name),
    /// The shim has asked where an identity is.
    Peer(Ipv6Addr),
}

/// What an answer of the servers belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Query(u64),
    Finding(u64),
}

/// Who this host is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Own {
    /// Its node identifier.
    pub nid: Nid,
    /// The prefix of identities.
    pub identity_prefix: Locator,
}

/// The machine.
pub struct Names {
    own: Own,
    upstream: Upstream,
    uses: BTreeMap<AskId, Use>,
    findings: BTreeMap<u64, (Finding, Purpose)>,
    next_finding: u64,
    queries: Queries,
    cache: Cache,
    directory: Directory,
    publisher: Option<Publisher>,
    answers: VecDeque<Answer>,
    found: VecDeque<Found>,
    /// Questions for nodes that were not answered, one after the other, and until when none is asked.
    silences: (u32, Instant),
    sweep_at: Instant,
    counters: Counters,
}

impl Names {
    /// A machine that knows what is in the file. Two sources of secrets: for questions, and for updates.
    ///
    /// # Errors
    /// One line, if something in the file is wrong.
    pub fn new(
        config: Option<&NamesConfig>,
        own: Own,
        peers: &[PeerConfig],
        secrets: [Box<dyn SecretRng>; 2],
    ) -> Result<Self, String> {
        let mut directory = Directory::default();
        for peer in peers {
            let name = peer.name.as_deref().map(parse_name).transpose();
            let name = name.map_err(|error| format!("ilnp.peers.name: {error}"))?;
            directory.add(own.identity_prefix.address(peer.nid), name, &peer.locators);
        }
        let [for_questions, for_updates] = secrets;
        let servers = config.map_or(&[][..], |config| &config.upstream);
        let publish = config.and_then(|config| config.publish.as_ref());
        let publisher = publish.map(|publish| Publisher::new(publish, own.nid, for_updates));
        Ok(Self {
            own,
            upstream: Upstream::new(servers, for_questions),
            uses: BTreeMap::new(),
            findings: BTreeMap::new(),
            next_finding: 0,
            queries: Queries::default(),
            cache: Cache::default(),
            directory,
            publisher: publisher
                .transpose()
                .map_err(|error| format!("names.publish: {error}"))?,
            answers: VecDeque::new(),
            found: VecDeque::new(),
            silences: (0, Instant::ZERO),
            sweep_at: Instant::ZERO,
            counters: Counters::default(),
        })
    }

    /// Identities and their names.
    pub fn learnt(&self) -> impl Iterator<Item = (Ipv6Addr, &Learnt)> {
        self.directory.iter()
    }

    /// The name of this host, what it is to have, and how far that is.
    #[must_use]
    pub fn published(&self) -> Option<(&Name, &Records, &Progress)> {
        let publisher = self.publisher.as_ref()?;
        Some((publisher.name(), publisher.wanted(), publisher.progress()))
    }

    /// An application asks.
    pub fn handle_query(&mut self, now: Instant, asker: Asker, bytes: &[u8]) {
        self.counters.queries += 1;
        if let Asker::Datagram { from, .. } = asker
            && !from.ip().to_canonical().is_loopback()
        {
            self.counters.not_from_here += 1;
            return;
        }
        let query = match Query::read(bytes) {
            Ok(query) => query,
            Err(unreadable) => {
                self.counters.malformed += 1;
                if let Unreadable::Answer(message) = unreadable {
                    self.answers.push_back(Answer { to: asker, message });
                }
                return;
            }
        };
        if let Some(message) = query.unanswerable() {
            self.counters.malformed += 1;
            self.answers.push_back(Answer { to: asker, message });
            return;
        }
        if let Some(message) = self.answer_at_once(now, &query) {
            self.answers.push_back(Answer { to: asker, message });
            return;
        }
        if self.queries.is_repeated(asker, &query) {
            self.counters.repeated += 1;
            return;
        }
        if self.upstream.is_empty() || !self.queries.has_room(asker, &query) {
            // whoever asked turns to the next resolver, if he has one
            let full = !self.upstream.is_empty();
            self.counters.too_many += u64::from(full);
            let message = query.refused(if full { Rcode::SERVFAIL } else { Rcode::REFUSED });
            self.answers.push_back(Answer { to: asker, message });
            return;
        }
        self.forward(now, asker, query);
        self.settle(now);
    }

    /// What the file, this host's own name or the cache says.
    fn answer_at_once(&mut self, now: Instant, query: &Query) -> Option<Vec<u8>> {
        let mut identities: Vec<Ipv6Addr> = self.directory.of_file(query.name()).collect();
        if self.publisher.as_ref().is_some_and(|p| p.name() == query.name()) && query.is_for_addresses() {
            identities.push(self.own.identity_prefix.address(self.own.nid));
        }
        if !identities.is_empty() {
            if !query.is_for_addresses() {
                identities.clear();
            }
            self.counters.identities += u64::from(query.is_for_addresses());
            return Some(query.answered(&identities, FILE_TTL));
        }
        if !asks_for_a_node(query) {
            return None;
        }
        let known = self.cache.find(now, query.name())?;
        let node = Rc::clone(known.node.as_ref()?);
        let left = (known.until - now).as_nanos() / 1_000_000_000;
        for identity in self.identities(&node) {
            self.directory.extend(now, identity);
        }
        self.counters.identities += 1;
        let ttl = node.nids_ttl.min(LONGEST_TTL).min(left.max(1) as u32);
        Some(query.answered(&self.identities(&node), ttl))
    }

    /// Asks the servers what was asked, and whether the name is a node's.
    fn forward(&mut self, now: Instant, asker: Asker, query: Query) {
        let way = if matches!(asker, Asker::Stream(_)) {
            Way::Stream
        } else {
            Way::Datagram
        };
        let Some(ask) = self.upstream.ask(now, query.forwarded(), way) else {
            return;
        };
        let may_be_a_node = asks_for_a_node(&query)
            && self.cache.find(now, query.name()).is_none()
            && self.findings.len() < MOST_FINDINGS
            && (self.silences.0 < MOST_SILENCES || self.silences.1 <= now);
        let finding = may_be_a_node.then(|| {
            let name = Purpose::Name(query.name().clone());
            let under_way = self.findings.iter().find(|(_, (_, purpose))| *purpose == name);
            let under_way = under_way.map(|(number, _)| *number);
            under_way.unwrap_or_else(|| self.find_out(now, Finding::node(query.name()), name))
        });
        let number = self.queries.add(asker, query, ask, finding);
        self.uses.insert(ask, Use::Query(number));
    }

    /// Begins to find something out.
    fn find_out(&mut self, now: Instant, (finding, question): (Finding, Vec<u8>), purpose: Purpose) -> u64 {
        let number = self.next_finding;
        self.next_finding += 1;
        self.findings.insert(number, (finding, purpose));
        if let Some(ask) = self.upstream.ask(now, question, Way::Whole) {
            self.uses.insert(ask, Use::Finding(number));
        }
        number
    }

    /// The shim asks where an identity is.
    pub fn handle_look_up(&mut self, now: Instant, peer: Ipv6Addr) {
        self.counters.look_ups += 1;
        if let Some(locators) = self.directory.take_fresh(now, peer) {
            self.found.push_back(Found { peer, locators });
            return;
        }
        let known = self.directory.find(peer).and_then(|learnt| learnt.name.clone());
        match known.filter(|_| !self.upstream.is_empty()) {
            Some(name) => {
                let purpose = Purpose::Peer(peer);
                if !self.findings.values().any(|(_, other)| *other == purpose) {
                    self.find_out(now, Finding::locators(&name), purpose);
                }
            }
            None => self.say_where(peer, None),
        }
    }

    /// What was found out of where an identity is; where nobody has said, it may be at every place of the file.
    fn say_where(&mut self, peer: Ipv6Addr, said: Option<Vec<PreferredLocator>>) {
        let locators: Vec<PreferredLocator> = said.unwrap_or_else(|| {
            let places = self.directory.places(peer).iter();
            places.map(|place| (*place, ELSEWHERE)).collect()
        });
        self.counters.look_ups_in_vain += u64::from(locators.is_empty());
        self.found.push_back(Found { peer, locators });
    }

    /// This host is there now; see [`Records`]. `unix_at_zero`: Unix time at the zero of `now`, seconds, by a clock that may have
    /// been set since.
    pub fn handle_locators(&mut self, now: Instant, records: Records, unix_at_zero: u64) {
        if let Some(publisher) = &mut self.publisher {
            publisher.publish(now, records, unix_at_zero);
        }
    }

    /// A datagram came to a port that something was asked from.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Datagram) {
        let port = datagram.local_port;
        // both draw from the same ports: where a question has that of the update, the answer says what it is (RFC 2136 section 2.2)
        let of_question = self.upstream.owns(port) && !is_of_update(&datagram.data);
        let publisher = self.publisher.as_mut();
        let of_update = publisher.filter(|p| p.port() == Some(port) && !of_question);
        match of_update {
            Some(publisher) => publisher.handle_datagram(now, datagram),
            None => self.upstream.handle_datagram(now, datagram),
        }
        self.settle(now);
    }

    /// What came of a question over TCP: a message, or nothing.
    pub fn handle_stream(&mut self, now: Instant, id: AskId, answer: Option<&Bytes>) {
        self.upstream.handle_stream(now, id, answer);
        self.settle(now);
    }

    /// A port is not to be had.
    pub fn handle_port_taken(&mut self, now: Instant, port: u16) {
        self.upstream.handle_port_taken(now, port);
    }

    /// Somebody who asked over TCP is gone.
    pub fn handle_gone(&mut self, asker: Asker) {
        for ask in self.queries.forget(asker) {
            self.uses.remove(&ask);
            self.upstream.cancel(ask);
        }
    }

    /// Works off what is due. `unix_at_zero` as in [`handle_locators`](Self::handle_locators); `in_use` are identities that
    /// something goes to.
    pub fn handle_timeout(&mut self, now: Instant, unix_at_zero: u64, in_use: impl Fn(Ipv6Addr) -> bool) {
        self.upstream.handle_timeout(now);
        if let Some(publisher) = &mut self.publisher {
            publisher.handle_timeout(now, unix_at_zero);
        }
        if self.sweep_at <= now {
            self.sweep_at = now + SWEEP_EVERY;
            self.directory.forget(now, in_use);
        }
        self.settle(now);
    }

    /// The next answer to an application. Poll until `None` after every other call.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// The next answer to the shim. Poll until `None` after every other call.
    pub fn poll_found(&mut self) -> Option<Found> {
        self.found.pop_front()
    }

    /// The next datagram for a server. Poll until `None` after every other call.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        let question = self.upstream.poll_datagram();
        question.or_else(|| self.publisher.as_mut()?.poll_datagram())
    }

    /// The next question for a server over TCP. Poll until `None` after every other call.
    pub fn poll_stream(&mut self) -> Option<StreamQuestion> {
        self.upstream.poll_stream()
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let publisher = self.publisher.as_ref().and_then(Publisher::poll_timeout);
        let learnt = self
            .directory
            .iter()
            .any(|(_, learnt)| learnt.source == Source::Dns);
        [
            self.upstream.poll_timeout(),
            self.queries.poll_timeout(),
            publisher,
            learnt.then_some(self.sweep_at),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether an answer is waited for at a port.
    #[must_use]
    pub fn waits_at(&self, port: u16) -> bool {
        let for_update = self.publisher.as_ref().and_then(Publisher::port);
        for_update == Some(port) || self.upstream.owns(port)
    }

    /// Whether an answer over TCP is waited for.
    #[must_use]
    pub fn waits_for(&self, id: AskId) -> bool {
        self.upstream.waits_for(id)
    }

    /// Everything counted.
    #[must_use]
    pub fn counters(&self) -> Vec<Count> {
        let updates = self
            .publisher
            .as_ref()
            .map(Publisher::counters)
            .unwrap_or_default();
        self.counters.list(&self.upstream.counters(), &updates)
    }

    /// What the servers have said is given to who asked.
    fn settle(&mut self, now: Instant) {
        while let Some((ask, answer)) = self.upstream.poll_done() {
            match self.uses.remove(&ask) {
                Some(Use::Query(number)) => {
                    let plain = answer.map_or(Plain::None, Plain::Here);
                    self.queries.on_answer(now, number, plain);
                }
                Some(Use::Finding(number)) => self.on_finding(now, number, answer.as_deref()),
                None => {}
            }
        }
        for done in self.queries.take_done(now) {
            let message = match done.plain {
                Plain::Here(answer) => {
                    self.counters.passed += 1;
                    done.query.passed(&answer, matches!(done.asker, Asker::Stream(_)))
                }
                Plain::Waiting(_) | Plain::None => {
                    self.counters.failed += 1;
                    done.query.refused(Rcode::SERVFAIL)
                }
            };
            let to = done.asker;
            self.answers.push_back(Answer { to, message });
        }
    }

    fn on_finding(&mut self, now: Instant, number: u64, answer: Option<&[u8]>) {
        let prefix = self.own.identity_prefix;
        let Some((finding, _)) = self.findings.get_mut(&number) else {
            return;
        };
        let outcome = match finding.on_answer(answer, prefix) {
            Step::Ask(question) => {
                if let Some(ask) = self.upstream.ask(now, question, Way::Whole) {
                    self.uses.insert(ask, Use::Finding(number));
                }
                return;
            }
            Step::Done(outcome) => outcome,
        };
        let Some((finding, purpose)) = self.findings.remove(&number) else {
            return;
        };
        self.counters.bad_records += finding.malformed();
        match purpose {
            Purpose::Peer(peer) => {
                let said = match outcome {
                    Outcome::Node(node) => Some(node.locators),
                    _ => None,
                };
                if let Some(name) = self.directory.find(peer).and_then(|learnt| learnt.name.clone()) {
                    self.cache.forget(&name);
                }
                if let Some(locators) = &said {
                    self.directory.note(peer, locators);
                }
                self.say_where(peer, said);
            }
            Purpose::Name(name) => {
                let silent = outcome == Outcome::Unknown;
                self.counters.undecided += u64::from(silent);
                self.silences = if silent {
                    (self.silences.0 + 1, now + PAUSE)
                } else {
                    (0, now)
                };
                self.on_name(now, number, &name, outcome);
            }
        }
    }

    fn on_name(&mut self, now: Instant, number: u64, name: &Name, outcome: Outcome) {
        let node = match outcome {
            Outcome::Node(node) => self.admit(now, node),
            Outcome::Absent { ttl } => {
                self.cache.keep(now, name, None, ttl);
                None
            }
            Outcome::Unknown => None,
        };
        let Some(node) = node else {
            self.queries.on_no_node(number);
            return;
        };
        let identities = self.identities(&node);
        for identity in &identities {
            if *identity != self.own.identity_prefix.address(self.own.nid) {
                self.directory
                    .learn(now, *identity, &node.name, &node.locators, node.locators_ttl);
            }
        }
        let ttl = node.nids_ttl.min(LONGEST_TTL);
        for (asker, query, ask) in self.queries.take_of_node(number) {
            if let Some(ask) = ask {
                self.uses.remove(&ask);
                self.upstream.cancel(ask);
            }
            self.counters.identities += 1;
            let message = query.answered(&identities, ttl);
            self.answers.push_back(Answer { to: asker, message });
        }
        let believed = node.nids_ttl.min(node.locators_ttl);
        self.cache.keep(now, name, Some(Rc::new(node)), believed);
    }

    /// A node, with those of its identifiers that are no other name's; nothing if none is left.
    fn admit(&mut self, now: Instant, mut node: Node) -> Option<Node> {
        let Own {
            nid: own,
            identity_prefix,
        } = self.own;
        let is_own_name = self.publisher.as_ref().is_some_and(|p| *p.name() == node.name);
        let before = node.nids.len();
        node.nids.retain(|nid| {
            let may_be = self
                .directory
                .may_be(now, identity_prefix.address(*nid), &node.name);
            may_be.is_ok() && (*nid != own || is_own_name)
        });
        self.counters.taken += (before - node.nids.len()) as u64;
        (!node.nids.is_empty()).then_some(node)
    }

    fn identities(&self, node: &Node) -> Vec<Ipv6Addr> {
        let prefix = self.own.identity_prefix;
        node.nids.iter().map(|nid| prefix.address(*nid)).collect()
    }
}

/// Whether the answer is an identity if the name is a node's.
fn asks_for_a_node(query: &Query) -> bool {
    query.is_for_addresses() && !query.is_validating()
}

#[cfg(test)]
mod tests;
