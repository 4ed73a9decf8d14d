//! The server's side: authoritative for its zones, changed by authenticated updates.

use super::config::{ConfigError, Grant, KeyConfig, ServerConfig};
use super::identity::in_zone;
use super::message::{
    DnsMessage, Edns, Header, Malformed, Question, Record, UDP_PAYLOAD, UDP_PAYLOAD_WITHOUT_EDNS, is_meta,
    signature_len,
};
use super::tsig::{self, Key, Signing, TsigRecord};
use super::zone::Zone;
use super::{Datagram, Name};
use crate::time::Instant;
use bytes::Bytes;
use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use std::collections::VecDeque;

/// Updates of one key within one second that are told apart. A key whose holder needs more shall be given several.
const MOST_UPDATES_PER_SECOND: usize = 4096;

/// Size up to which records are gathered into one entry of a snapshot, bytes: half of a message, so that one more
/// record of any likely size fits.
const SNAPSHOT_CHUNK: usize = 16 * 1024;

/// What a message came over, and its answer goes back over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// UDP: answers are truncated to what the requestor takes.
    Udp,
    /// TCP (RFC 7766), with the driver's number for the connection.
    Tcp(u64),
}

/// An answer to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// How.
    pub transport: Transport,
    /// Whereto, and what.
    pub datagram: Datagram,
}

/// A change to be made durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalEntry {
    /// Its number, by which it is confirmed; one more than the last.
    pub number: u64,
    /// What [`Server::replay`] takes.
    pub bytes: Vec<u8>,
}

/// Why an entry of a journal or snapshot cannot be taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// It is none.
    #[error("not an entry of a location server's journal")]
    Malformed,
    /// It is about a zone that the configuration does not have.
    #[error("it has changes of {0}, which is not among the zones")]
    UnknownZone(String),
}

/// Messages by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerCounters {
    /// Queries answered.
    pub queries: u64,
    /// Updates that changed something.
    pub updates: u64,
    /// Updates that came again and were answered as before.
    pub repeated: u64,
    /// Requests refused: not for us, not permitted, not authenticated.
    pub refused: u64,
    /// Requests whose key is unknown.
    pub bad_key: u64,
    /// Requests whose MAC is wrong.
    pub bad_signature: u64,
    /// Requests signed too long ago or ahead, or before one that was taken: replays among them.
    pub bad_time: u64,
    /// Requests that cannot be read.
    pub malformed: u64,
    /// Messages dropped without an answer: no header, or answers themselves.
    pub dropped: u64,
}

/// An authoritative server.
///
/// In: `handle_message`, `handle_durable`. Out: `poll_journal` and `poll_answer`, until both return `None`. It has no
/// timers.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    zones: Vec<Zone>,
    keys: Vec<KeyState>,
    /// Number of the last change.
    written: u64,
    /// Number up to which changes are durable.
    durable: u64,
    journal: VecDeque<JournalEntry>,
    /// Answers, each with the number of the last change that it can tell of: nobody learns what could still be lost.
    answers: VecDeque<(u64, Answer)>,
    counters: ServerCounters,
}

/// A key, and the updates that were signed with it last.
#[derive(Clone, PartialEq, Eq, Debug)]
struct KeyState {
    key: Key,
    grants: Vec<Grant>,
    /// Greatest Time Signed of an update taken (RFC 8945 section 5.2.3).
    latest: u64,
    /// MACs of the updates with that time, and their answers.
    seen: Vec<(Bytes, Rcode)>,
}

/// Kinds of journal entries.
const UPDATE: u8 = b'U';
const ZONE_BEGIN: u8 = b'Z';
const ZONE_MORE: u8 = b'z';
const KEY: u8 = b'K';

impl Server {
    /// A server with its zones as configured.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: ServerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let state = |k: &KeyConfig| KeyState {
            key: k.key.clone(),
            grants: k.grants.clone(),
            latest: 0,
            seen: Vec::new(),
        };
        Ok(Self {
            zones: config.zones.iter().map(Zone::new).collect(),
            keys: config.keys.iter().map(state).collect(),
            config,
            written: 0,
            durable: 0,
            journal: VecDeque::new(),
            answers: VecDeque::new(),
            counters: ServerCounters::default(),
        })
    }

    /// Port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.config.port
    }

    /// Takes a message. Whether there will be an answer to it; answers come in the order of their requests.
    pub fn handle_message(&mut self, now: Instant, transport: Transport, datagram: &Datagram) -> bool {
        let unix = self.config.unix_at_zero + now.as_nanos() / 1_000_000_000;
        let Some(data) = self.answer(unix, transport, &datagram.data) else {
            self.counters.dropped += 1;
            return false;
        };
        let datagram = Datagram {
            data: data.into(),
            ..datagram.clone()
        };
        self.answers
            .push_back((self.written, Answer { transport, datagram }));
        true
    }

    /// All changes up to `number` are durable.
    pub fn handle_durable(&mut self, number: u64) {
        self.durable = self.durable.max(number.min(self.written));
    }

    /// The next change to be made durable. Poll until `None` after `handle_message`; confirm with `handle_durable`.
    /// There are none if the configuration wants no journal.
    pub fn poll_journal(&mut self) -> Option<JournalEntry> {
        self.journal.pop_front()
    }

    /// The next answer. Poll until `None` after `handle_message` and `handle_durable`.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        let (needed, _) = self.answers.front()?;
        if *needed > self.durable {
            return None;
        }
        self.answers.pop_front().map(|(_, answer)| answer)
    }

    /// Takes an entry of a snapshot or journal, in their order, before any message.
    ///
    /// # Errors
    /// [`ReplayError`]: nothing was taken of it.
    pub fn replay(&mut self, entry: &[u8]) -> Result<(), ReplayError> {
        let (kind, body) = entry.split_first().ok_or(ReplayError::Malformed)?;
        if *kind == KEY {
            return self.replay_key(body);
        }
        let received =
            DnsMessage::parse(&Bytes::copy_from_slice(body)).map_err(|_| ReplayError::Malformed)?;
        let [Question { name, .. }] = &received.message.questions[..] else {
            return Err(ReplayError::Malformed);
        };
        let Some(zone) = self.zones.iter_mut().find(|z| z.name() == name) else {
            return Err(ReplayError::UnknownZone(name.to_string()));
        };
        let records = received.message.authority;
        match *kind {
            UPDATE => {
                zone.prescan(&records).map_err(|_| ReplayError::Malformed)?;
                zone.apply(&records);
                if let Some(tsig) = received.tsig
                    && let Some(key) = self.keys.iter_mut().find(|k| tsig.names(&k.key))
                {
                    key.remember(&tsig, Rcode::NOERROR);
                }
            }
            ZONE_BEGIN => *zone = Zone::from_records(name.clone(), records).ok_or(ReplayError::Malformed)?,
            ZONE_MORE => {
                let all = zone.records().chain(records).collect::<Vec<_>>();
                *zone = Zone::from_records(name.clone(), all).ok_or(ReplayError::Malformed)?;
            }
            _ => return Err(ReplayError::Malformed),
        }
        Ok(())
    }

    /// The whole state, as entries for `replay`.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Vec<u8>> {
        let mut entries = Vec::new();
        for zone in &self.zones {
            let mut kind = ZONE_BEGIN;
            let mut chunk: Vec<Record> = Vec::new();
            let mut size = 0;
            // The SOA first: it makes a zone of the first chunk.
            let (soa, others): (Vec<_>, Vec<_>) = zone.records().partition(|r| r.rtype == Rtype::SOA);
            for record in soa.into_iter().chain(others) {
                let len = record.name.as_slice().len() + 10 + record.rdata.bytes.len();
                if size + len > SNAPSHOT_CHUNK && !chunk.is_empty() {
                    entries.push(zone_entry(kind, zone.name(), core::mem::take(&mut chunk)));
                    (kind, size) = (ZONE_MORE, 0);
                }
                size += len;
                chunk.push(record);
            }
            entries.push(zone_entry(kind, zone.name(), chunk));
        }
        entries.extend(self.keys.iter().filter(|k| k.latest > 0).map(KeyState::entry));
        entries
    }

    /// Serial number of a zone.
    #[must_use]
    pub fn serial(&self, zone: &Name) -> Option<u32> {
        self.zones.iter().find(|z| z.name() == zone)?.serial()
    }

    /// Messages by what became of them.
    #[must_use]
    pub fn counters(&self) -> ServerCounters {
        self.counters
    }

    /// The answer to a message; `None` for what must not be answered.
    fn answer(&mut self, unix: u64, transport: Transport, data: &Bytes) -> Option<Vec<u8>> {
        let received = match DnsMessage::parse(data) {
            Ok(received) if received.message.header.response => return None,
            Ok(received) => received,
            Err(Malformed::Body(header)) if !header.response => {
                self.counters.malformed += 1;
                return Some(DnsMessage::new(header.answering(Rcode::FORMERR)).emit(512));
            }
            Err(_) => return None,
        };
        let request = received.message;
        let signer = match received.tsig.as_ref().map(|t| self.verify(unix, t)).transpose() {
            Ok(signer) => signer,
            Err(refusal) => {
                let tsig = received.tsig?;
                return Some(self.answer_tsig_error(unix, &request, &tsig, refusal));
            }
        };
        let response = match request.header.opcode {
            _ if request.edns.is_some_and(|e| e.version > 0) => {
                // RFC 6891 section 6.1.3: BADVERS; the builder has it from the version.
                reply(&request, Rcode::NOERROR)
            }
            Opcode::QUERY => self.query(&request),
            Opcode::UPDATE => {
                let signed = signer.zip(received.tsig.as_ref());
                match self.update(&request, signed, data) {
                    Ok(response) => response,
                    Err(refusal) => {
                        let tsig = received.tsig?;
                        return Some(self.answer_tsig_error(unix, &request, &tsig, refusal));
                    }
                }
            }
            _ => reply(&request, Rcode::NOTIMP),
        };
        let key = signer.map(|index| &self.keys[index].key);
        let limit = match (transport, request.edns) {
            (Transport::Tcp(_), _) => u16::MAX,
            (Transport::Udp, Some(edns)) => edns.udp_payload.clamp(UDP_PAYLOAD_WITHOUT_EDNS, UDP_PAYLOAD),
            (Transport::Udp, None) => UDP_PAYLOAD_WITHOUT_EDNS,
        };
        let mut bytes = response.emit(usize::from(limit) - key.map_or(0, signature_len));
        if let Some(key) = key {
            let signing = Signing {
                request_mac: received.tsig.as_ref().map(|t| &t.mac[..]),
                time_signed: unix,
                fudge: tsig::FUDGE,
                error: 0,
                other: &[],
            };
            tsig::sign(&mut bytes, key, &signing);
        }
        Some(bytes)
    }

    /// RFC 8945 section 5.2: which key signed it.
    fn verify(&mut self, unix: u64, tsig: &TsigRecord) -> Result<usize, TsigRefusal> {
        let Some(index) = self.keys.iter().position(|k| tsig.names(&k.key)) else {
            self.counters.bad_key += 1;
            return Err(TsigRefusal::Unsigned(tsig::BADKEY));
        };
        let key = &self.keys[index].key;
        let full = key.algorithm().mac_len();
        if tsig.mac.len() > full || tsig.mac.len() < (full / 2).max(10) {
            self.counters.malformed += 1;
            return Err(TsigRefusal::Malformed);
        }
        if !tsig.is_truncated_mac_of(key) {
            self.counters.bad_signature += 1;
            return Err(TsigRefusal::Unsigned(tsig::BADSIG));
        }
        if !tsig.is_timely(unix) {
            self.counters.bad_time += 1;
            return Err(TsigRefusal::Signed(index, tsig::BADTIME));
        }
        if tsig.mac.len() < full {
            self.counters.bad_signature += 1;
            return Err(TsigRefusal::Signed(index, tsig::BADTRUNC));
        }
        Ok(index)
    }

    /// RFC 8945 section 5.3.2.
    fn answer_tsig_error(
        &self,
        unix: u64,
        request: &DnsMessage,
        tsig: &TsigRecord,
        refusal: TsigRefusal,
    ) -> Vec<u8> {
        let mut bytes = reply(request, Rcode::NOTAUTH).emit(512);
        match refusal {
            TsigRefusal::Malformed => return reply(request, Rcode::FORMERR).emit(512),
            TsigRefusal::Unsigned(error) => tsig::append_unsigned(&mut bytes, tsig, error),
            TsigRefusal::Signed(index, error) => {
                let time = unix.to_be_bytes();
                let signing = Signing {
                    request_mac: Some(&tsig.mac),
                    time_signed: tsig.time_signed,
                    fudge: tsig.fudge,
                    error,
                    other: if error == tsig::BADTIME { &time[2..] } else { &[] },
                };
                tsig::sign(&mut bytes, &self.keys[index].key, &signing);
            }
        }
        bytes
    }

    fn query(&mut self, request: &DnsMessage) -> DnsMessage {
        let [question] = &request.questions[..] else {
            self.counters.malformed += 1;
            return reply(request, Rcode::FORMERR);
        };
        // The longest match: a zone may lie within another.
        let zone = self.zones.iter().filter(|z| in_zone(&question.name, z.name()));
        let zone = zone.max_by_key(|z| z.name().as_slice().len());
        let Some(zone) = zone.filter(|_| matches!(question.class, Class::IN | Class::ANY)) else {
            self.counters.refused += 1;
            return reply(request, Rcode::REFUSED);
        };
        if is_meta(question.rtype) && question.rtype != Rtype::ANY {
            self.counters.refused += 1;
            let transfer = matches!(question.rtype, Rtype::AXFR | Rtype::IXFR);
            return reply(request, if transfer { Rcode::REFUSED } else { Rcode::NOTIMP });
        }
        self.counters.queries += 1;
        let found = zone.respond(&question.name, question.rtype);
        let rcode = if found.no_such_name {
            Rcode::NXDOMAIN
        } else {
            Rcode::NOERROR
        };
        let mut response = reply(request, rcode);
        response.header.authoritative = found.authoritative;
        response.answer = found.answer;
        response.authority = found.authority;
        response.additional = found.additional;
        response
    }

    /// RFC 2136 section 3. `signed`: the number of the key, and the signature. `data`: the whole message.
    fn update(
        &mut self,
        request: &DnsMessage,
        signed: Option<(usize, &TsigRecord)>,
        data: &Bytes,
    ) -> Result<DnsMessage, TsigRefusal> {
        let Some((index, tsig)) = signed else {
            self.counters.refused += 1;
            return Ok(reply(request, Rcode::REFUSED));
        };
        let key = &mut self.keys[index];
        if tsig.time_signed < key.latest {
            self.counters.bad_time += 1;
            return Err(TsigRefusal::Signed(index, tsig::BADTIME));
        }
        // A retransmission, or a replay: the answer to the first.
        if let Some((_, rcode)) = key.seen.iter().find(|(mac, _)| *mac == tsig.mac)
            && tsig.time_signed == key.latest
        {
            self.counters.repeated += 1;
            return Ok(reply(request, *rcode));
        }
        if tsig.time_signed == key.latest && key.seen.len() >= MOST_UPDATES_PER_SECOND {
            self.counters.refused += 1;
            return Ok(reply(request, Rcode::SERVFAIL));
        }
        let rcode = match self.carry_out(request, index) {
            Ok(changed) => {
                if changed {
                    self.counters.updates += 1;
                    self.write_down(data);
                }
                Rcode::NOERROR
            }
            Err(rcode) => {
                self.counters.refused += u64::from(rcode == Rcode::REFUSED);
                rcode
            }
        };
        self.keys[index].remember(tsig, rcode);
        Ok(reply(request, rcode))
    }

    /// RFC 2136 sections 3.1 to 3.4: whether something changed, or why nothing did.
    fn carry_out(&mut self, request: &DnsMessage, key: usize) -> Result<bool, Rcode> {
        let [
            Question {
                name,
                rtype: Rtype::SOA,
                class,
            },
        ] = &request.questions[..]
        else {
            return Err(Rcode::FORMERR);
        };
        let zone = self
            .zones
            .iter_mut()
            .find(|z| z.name() == name && *class == Class::IN);
        let zone = zone.ok_or(Rcode::NOTAUTH)?;
        zone.check_prerequisites(&request.answer)?;
        let grants = &self.keys[key].grants;
        if !request
            .authority
            .iter()
            .all(|r| grants.iter().any(|g| g.covers(&r.name)))
        {
            return Err(Rcode::REFUSED);
        }
        zone.prescan(&request.authority)?;
        if zone.names() + request.authority.len() > self.config.most_names {
            return Err(Rcode::REFUSED);
        }
        Ok(zone.apply(&request.authority))
    }

    fn write_down(&mut self, data: &Bytes) {
        self.written += 1;
        if !self.config.journal {
            self.durable = self.written;
            return;
        }
        let mut bytes = vec![UPDATE];
        bytes.extend_from_slice(data);
        self.journal.push_back(JournalEntry {
            number: self.written,
            bytes,
        });
    }

    fn replay_key(&mut self, body: &[u8]) -> Result<(), ReplayError> {
        let saved = SavedKey::parse(body).ok_or(ReplayError::Malformed)?;
        // A key that was taken out of the configuration does not need to be remembered.
        if let Some(state) = self.keys.iter_mut().find(|k| *k.key.name() == saved.name) {
            state.latest = saved.latest;
            state.seen = saved.seen;
        }
        Ok(())
    }
}

/// Why a signature is refused, and how that is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TsigRefusal {
    /// FORMERR.
    Malformed,
    /// With this TSIG error, unsigned.
    Unsigned(u16),
    /// With this TSIG error, signed with this key.
    Signed(usize, u16),
}

impl KeyState {
    fn remember(&mut self, tsig: &TsigRecord, rcode: Rcode) {
        if tsig.time_signed > self.latest {
            self.latest = tsig.time_signed;
            self.seen.clear();
        }
        self.seen.push((tsig.mac.clone(), rcode));
    }

    /// Name, latest time, and for each update its rcode and MAC.
    fn entry(&self) -> Vec<u8> {
        let name = self.key.name().as_slice();
        let mut out = vec![KEY, name.len() as u8];
        out.extend_from_slice(name);
        out.extend_from_slice(&self.latest.to_be_bytes());
        for (mac, rcode) in &self.seen {
            out.push(rcode.to_int());
            out.push(mac.len() as u8);
            out.extend_from_slice(mac);
        }
        out
    }
}

/// A key's entry, read.
struct SavedKey {
    name: Name,
    latest: u64,
    seen: Vec<(Bytes, Rcode)>,
}

impl SavedKey {
    fn parse(body: &[u8]) -> Option<Self> {
        let (len, rest) = body.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*len))?;
        let (latest, mut rest) = rest.split_first_chunk::<8>()?;
        let mut seen = Vec::new();
        while let [rcode, len, more @ ..] = rest {
            let (mac, left) = more.split_at_checked(usize::from(*len))?;
            seen.push((Bytes::copy_from_slice(mac), Rcode::checked_from_int(*rcode)?));
            rest = left;
        }
        let name = Name::from_octets(Bytes::copy_from_slice(name)).ok()?;
        let latest = u64::from_be_bytes(*latest);
        rest.is_empty().then_some(Self { name, latest, seen })
    }
}

/// An answer without records. The first section comes back, and EDNS if it was used (RFC 6891 section 6.1.1).
fn reply(request: &DnsMessage, rcode: Rcode) -> DnsMessage {
    DnsMessage {
        questions: request.questions.clone(),
        edns: request.edns.map(|asked| Edns {
            udp_payload: UDP_PAYLOAD,
            version: 0,
            bad_version: asked.version > 0,
        }),
        ..DnsMessage::new(request.header.answering(rcode))
    }
}

fn zone_entry(kind: u8, zone: &Name, records: Vec<Record>) -> Vec<u8> {
    let question = Question {
        name: zone.clone(),
        rtype: Rtype::SOA,
        class: Class::IN,
    };
    let message = DnsMessage {
        questions: vec![question],
        authority: records,
        ..DnsMessage::new(Header::request(0, Opcode::UPDATE))
    };
    let mut entry = vec![kind];
    entry.extend_from_slice(&message.emit(usize::from(u16::MAX)));
    entry
}

#[cfg(test)]
impl Server {
    pub(super) fn zones_for_test(&self) -> &[Zone] {
        &self.zones
    }
}
