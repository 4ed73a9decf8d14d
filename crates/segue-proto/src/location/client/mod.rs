//! The mobile host's and the correspondent's side.

mod answers;
mod event;

pub use event::{ClientCounters, ClientEvent, Failure, LookupId};

use super::config::{ClientConfig, ConfigError};
use super::ilnp_records::{self, PreferredLocator};
use super::message::{DnsMessage, Edns, Header, Question, Rdata, Received, Record, UDP_PAYLOAD};
use super::tsig::{self, Signing};
use super::{Datagram, Name};
use crate::random::SecretRng;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use segue_wire::ilnp::Nid;
use std::collections::{BTreeMap, VecDeque};

/// Names that the cache keeps.
const CACHE_NAMES: usize = 1024;

/// A client: one name kept at the host's address, any number looked up.
///
/// In: `update`, `withdraw`, `look_up`, `handle_datagram`, `handle_timeout`. Out: `poll_transmit` and `poll_event`
/// until both return `None`, then `poll_timeout`.
pub struct Client {
    config: ClientConfig,
    secrets: Box<dyn SecretRng>,
    update: Option<(Target, Transaction)>,
    lookups: BTreeMap<LookupId, (Name, Transaction)>,
    cache: BTreeMap<Name, Cached>,
    next_lookup: u64,
    /// Time Signed of the last update: servers refuse an earlier one (RFC 8945 section 5.2.3), and that is what keeps
    /// a delayed or replayed update from undoing a later one. So every update is signed a second later at least.
    last_signed: u64,
    /// Unix time at the driver's zero, seconds.
    unix_at_zero: u64,
    transmits: VecDeque<Datagram>,
    events: VecDeque<ClientEvent>,
    counters: ClientCounters,
}

/// What a name is to have.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Target {
    /// This address, or none.
    Address(Option<Ipv6Addr>),
    /// This node identifier at these locators, and these addresses or whatever addresses there are.
    Locators(Nid, Vec<PreferredLocator>, Option<Vec<Ipv6Addr>>),
}

impl Target {
    fn failed(&self, failure: Failure) -> ClientEvent {
        match self {
            Self::Address(address) => ClientEvent::UpdateFailed {
                address: *address,
                failure,
            },
            Self::Locators(..) => ClientEvent::LocatorsUpdateFailed { failure },
        }
    }

    /// The records, and the types of the sets that they replace.
    fn records(&self) -> (Vec<Rtype>, Vec<(Rtype, Rdata)>) {
        match self {
            Self::Address(address) => (vec![Rtype::AAAA], address.iter().map(|a| aaaa(*a)).collect()),
            Self::Locators(nid, locators, addresses) => {
                let l64 = locators.iter().map(|l| (Rtype::L64, ilnp_records::l64(*l)));
                let nid = (Rtype::NID, ilnp_records::nid(NID_PREFERENCE, *nid));
                let aaaa = addresses.iter().flatten().map(|a| aaaa(*a));
                let mut replaced = vec![Rtype::NID, Rtype::L64];
                replaced.extend(addresses.as_ref().map(|_| Rtype::AAAA));
                (replaced, [nid].into_iter().chain(l64).chain(aaaa).collect())
            }
        }
    }
}

fn aaaa(address: Ipv6Addr) -> (Rtype, Rdata) {
    (Rtype::AAAA, Rdata::opaque(address.octets().to_vec()))
}

/// Of the one identifier that a name has: it says nothing.
const NID_PREFERENCE: u16 = 10;

struct Transaction {
    request: DnsMessage,
    /// Number and port that it is sent with.
    id: u16,
    port: u16,
    bytes: Bytes,
    mac: Option<Vec<u8>>,
    time_signed: u64,
    started: Instant,
    sent: u32,
    /// Index of the server asked last.
    server: usize,
    /// Servers that refused since the last time-out.
    refusals: usize,
    timeout: Duration,
    deadline: Instant,
    /// What is reported if no better answer comes.
    failure: Failure,
    /// The name is one that an LP record gave: it is not to give another.
    pointed: bool,
}

impl Transaction {
    fn asks_for(&self, rtype: Rtype) -> bool {
        self.request.questions.iter().any(|q| q.rtype == rtype)
    }
}

struct Cached {
    addresses: Vec<Ipv6Addr>,
    until: Instant,
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client. `secrets` makes ids and ports that cannot be guessed (RFC 5452 section 4).
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: ClientConfig, secrets: Box<dyn SecretRng>) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            unix_at_zero: config.unix_at_zero,
            config,
            secrets,
            update: None,
            lookups: BTreeMap::new(),
            cache: BTreeMap::new(),
            next_lookup: 0,
            last_signed: 0,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: ClientCounters::default(),
        })
    }

    /// Makes `address` the name's only one. An update that is not answered yet is given up for it: its address is
    /// wrong already.
    pub fn update(&mut self, now: Instant, address: Ipv6Addr) {
        self.change(now, Target::Address(Some(address)));
    }

    /// Takes the name's addresses away.
    pub fn withdraw(&mut self, now: Instant) {
        self.change(now, Target::Address(None));
    }

    /// Makes `nid` the name's only node identifier and `locators` all its locators (RFC 6742): what a node does after a
    /// handoff. An update that is not answered yet is given up for it.
    pub fn update_locators(&mut self, now: Instant, nid: Nid, locators: &[PreferredLocator]) {
        self.update_node(now, nid, locators, None);
    }

    /// As [`update_locators`](Self::update_locators), and makes `addresses`, if given, all the addresses of the name (AAAA): those of
    /// a node that also speaks plain IPv6.
    pub fn update_node(
        &mut self,
        now: Instant,
        nid: Nid,
        locators: &[PreferredLocator],
        addresses: Option<&[Ipv6Addr]>,
    ) {
        let addresses = addresses.map(<[_]>::to_vec);
        self.change(now, Target::Locators(nid, locators.to_vec(), addresses));
    }

    /// The calendar clock may have been set: this is the Unix time at the driver's zero now, seconds. Updates to come are signed by it,
    /// but none earlier than one before.
    pub fn handle_clock(&mut self, unix_at_zero: u64) {
        self.unix_at_zero = unix_at_zero;
    }

    /// Asks for the locators of `name` (L64). They are never taken from the cache: who asks suspects that they have changed.
    pub fn look_up_locators(&mut self, now: Instant, name: &Name) -> LookupId {
        let id = LookupId(self.next_lookup);
        self.next_lookup += 1;
        let transaction = self.ask(now, name, Rtype::L64);
        self.lookups.insert(id, (name.clone(), transaction));
        id
    }

    /// Asks for the addresses of `name`.
    pub fn look_up(&mut self, now: Instant, name: &Name) -> LookupId {
        let id = LookupId(self.next_lookup);
        self.next_lookup += 1;
        if let Some(cached) = self.cache.get(name).filter(|c| c.until > now) {
            self.events.push_back(ClientEvent::Resolved {
                id,
                addresses: cached.addresses.clone(),
                ttl: cached.until - now,
                latency: Duration::ZERO,
            });
            return id;
        }
        self.cache.remove(name);
        let transaction = self.ask(now, name, Rtype::AAAA);
        self.lookups.insert(id, (name.clone(), transaction));
        id
    }

    fn ask(&mut self, now: Instant, name: &Name, rtype: Rtype) -> Transaction {
        let mut request = DnsMessage::new(Header {
            recursion_desired: true,
            ..Header::request(0, Opcode::QUERY)
        });
        request.questions.push(Question {
            name: name.clone(),
            rtype,
            class: Class::IN,
        });
        request.edns = Some(Edns {
            udp_payload: UDP_PAYLOAD,
            version: 0,
            bad_version: false,
        });
        self.begin(now, request)
    }

    /// Whether an update is under way.
    #[must_use]
    pub fn is_updating(&self) -> bool {
        self.update.is_some()
    }

    /// Whether a request that is not answered yet was sent from this port.
    #[must_use]
    pub fn is_asking_from(&self, port: u16) -> bool {
        let update = self.update.iter().map(|(_, t)| t);
        let lookups = self.lookups.values().map(|(_, t)| t);
        update.chain(lookups).any(|t| t.port == port)
    }

    /// Takes a datagram that came to one of this client's ports.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Datagram) {
        let Ok(received) = DnsMessage::parse(&datagram.data) else {
            self.counters.malformed += 1;
            return;
        };
        let servers = &self.config.servers;
        let answers = |t: &Transaction| {
            let Header {
                id, opcode, response, ..
            } = received.message.header;
            let asked = servers.get(t.server) == Some(&(datagram.peer, datagram.peer_port));
            // The question comes back, unless the server could not read it; the zone of an update may be left out (RFC
            // 2136 section 3.8).
            let may_be_left_out = opcode == Opcode::UPDATE || received.message.header.rcode != Rcode::NOERROR;
            let same = received.message.questions == t.request.questions
                || (received.message.questions.is_empty() && may_be_left_out);
            response
                && asked
                && same
                && datagram.local_port == t.port
                && id == t.id
                && opcode == t.request.header.opcode
        };
        if let Some((target, transaction)) = self.update.take_if(|(_, t)| answers(t)) {
            self.on_update_answered(now, target, transaction, &received);
        } else if let Some(id) = self
            .lookups
            .iter()
            .find(|(_, (_, t))| answers(t))
            .map(|(id, _)| *id)
            && let Some((name, transaction)) = self.lookups.remove(&id)
        {
            self.on_lookup_answered(now, id, name, transaction, &received);
        } else {
            self.counters.unexpected += 1;
        }
    }

    /// Sends again what was not answered in time, to the next server.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some((target, mut transaction)) = self.update.take_if(|(_, t)| t.deadline <= now) {
            if self.retry(now, &mut transaction) {
                self.update = Some((target, transaction));
            } else {
                self.events.push_back(target.failed(transaction.failure));
            }
        }
        let due: Vec<LookupId> = self
            .lookups
            .iter()
            .filter(|(_, (_, t))| t.deadline <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            let Some((name, mut transaction)) = self.lookups.remove(&id) else {
                continue;
            };
            if self.retry(now, &mut transaction) {
                self.lookups.insert(id, (name, transaction));
            } else {
                let failure = transaction.failure;
                self.events.push_back(ClientEvent::LookupFailed { id, failure });
            }
        }
    }

    /// The next datagram. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self) -> Option<Datagram> {
        self.transmits.pop_front()
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// When `handle_timeout` must be called next. Poll after the others have returned `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let update = self.update.iter().map(|(_, t)| t.deadline);
        update.chain(self.lookups.values().map(|(_, t)| t.deadline)).min()
    }

    /// Packets that came to nothing.
    #[must_use]
    pub fn counters(&self) -> ClientCounters {
        self.counters
    }

    /// RFC 2136 section 2.5: delete the RRset (2.5.2), then add to it (2.5.1).
    fn change(&mut self, now: Instant, target: Target) {
        let Some((zone, name)) = self.config.record.clone() else {
            return;
        };
        if self.update.as_ref().is_some_and(|(old, _)| *old == target) {
            return;
        }
        self.counters.superseded += u64::from(self.update.take().is_some());
        let mut request = DnsMessage::new(Header::request(0, Opcode::UPDATE));
        request.questions.push(Question {
            name: zone,
            rtype: Rtype::SOA,
            class: Class::IN,
        });
        let (replaced, records) = target.records();
        request.authority.extend(replaced.into_iter().map(|rtype| Record {
            name: name.clone(),
            rtype,
            class: Class::ANY,
            ttl: 0,
            rdata: Rdata::default(),
        }));
        let ttl = u32::try_from(self.config.ttl.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX);
        request
            .authority
            .extend(records.into_iter().map(|(rtype, rdata)| Record {
                name: name.clone(),
                rtype,
                class: Class::IN,
                ttl,
                rdata,
            }));
        let transaction = self.begin(now, request);
        self.update = Some((target, transaction));
    }

    fn begin(&mut self, now: Instant, request: DnsMessage) -> Transaction {
        let mut transaction = Transaction {
            request,
            id: 0,
            port: 0,
            bytes: Bytes::new(),
            mac: None,
            time_signed: 0,
            started: now,
            sent: 0,
            server: 0,
            refusals: 0,
            timeout: self.config.retry_initial,
            deadline: now,
            failure: Failure::NoAnswer,
            pointed: false,
        };
        self.compose(now, &mut transaction);
        self.send(now, &mut transaction);
        transaction
    }

    /// Gives the request an id, a port and a signature.
    fn compose(&mut self, now: Instant, t: &mut Transaction) {
        let random = self.secrets.secret_u32();
        t.id = random as u16;
        t.port = 49_152 + (random >> 16) as u16 % 16_384;
        let message = DnsMessage {
            header: Header {
                id: t.id,
                ..t.request.header
            },
            ..t.request.clone()
        };
        let bytes = message.emit(usize::from(u16::MAX));
        let mut bytes = bytes.unwrap_or_else(|| unreachable!("a request with one question can be written"));
        if let Some(key) = &self.config.key {
            t.time_signed = self.unix_at_zero + now.as_nanos() / 1_000_000_000;
            if t.request.header.opcode == Opcode::UPDATE {
                t.time_signed = t.time_signed.max(self.last_signed + 1);
                self.last_signed = t.time_signed;
            }
            let signing = Signing {
                request_mac: None,
                time_signed: t.time_signed,
                fudge: tsig::FUDGE,
                error: 0,
                other: &[],
            };
            t.mac = Some(tsig::sign(&mut bytes, key, &signing));
        }
        t.bytes = bytes.into();
    }

    fn send(&mut self, now: Instant, t: &mut Transaction) {
        let unix = self.unix_at_zero + now.as_nanos() / 1_000_000_000;
        if t.mac.is_some() && unix > t.time_signed + u64::from(tsig::FUDGE / 2) {
            self.compose(now, t);
        }
        t.sent += 1;
        t.deadline = now + t.timeout;
        let (peer, peer_port) = self.config.servers[t.server];
        self.transmits.push_back(Datagram {
            peer,
            peer_port,
            local_port: t.port,
            data: t.bytes.clone(),
        });
    }

    /// Whether there is another try.
    fn retry(&mut self, now: Instant, t: &mut Transaction) -> bool {
        if self.config.attempts.is_some_and(|most| t.sent >= most) {
            return false;
        }
        t.server = (t.server + 1) % self.config.servers.len();
        t.refusals = 0;
        t.timeout = (t.timeout * 2).clamp(Duration::ZERO, self.config.retry_max);
        self.send(now, t);
        true
    }

    /// The answer's signature (RFC 8945 section 5.4): `Err` if the answer must be ignored.
    fn authenticate(&mut self, t: &mut Transaction, received: &Received) -> Result<(), ()> {
        let (Some(key), Some(mac)) = (&self.config.key, &t.mac) else {
            return Ok(());
        };
        match &received.tsig {
            Some(tsig) if tsig.names(key) && tsig.is_signed_with(key, Some(mac)) => return Ok(()),
            Some(tsig) if tsig.mac.is_empty() && matches!(tsig.error, tsig::BADKEY | tsig::BADSIG) => {
                // Anybody could say so: wait for a signed answer, and report it if none comes.
                t.failure = Failure::KeyRefused(tsig.error);
            }
            _ => {}
        }
        self.counters.not_authentic += 1;
        Err(())
    }

    fn keep(&mut self, now: Instant, name: Name, addresses: Vec<Ipv6Addr>, ttl: Duration) {
        if self.cache.len() >= CACHE_NAMES {
            self.cache.retain(|_, cached| cached.until > now);
            if self.cache.len() >= CACHE_NAMES {
                self.cache.pop_first();
            }
        }
        let until = now + ttl;
        self.cache.insert(name, Cached { addresses, until });
    }
}
