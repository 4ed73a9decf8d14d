//! The server's side: authoritative for its zones, changed by authenticated updates.

mod answer;

pub use answer::{Answer, JournalEntry, RestoreError, ServerCounters, Transport};

use super::config::{ConfigError, ServerConfig};
use super::identity::in_zone;
use super::message::{
    DnsMessage, Edns, Header, Malformed, Question, Skimmed, UDP_PAYLOAD, UDP_PAYLOAD_WITHOUT_EDNS, is_meta,
    signature_len,
};
use super::place::Place;
use super::rows::{self, Kept, Row};
use super::signer::{Order, Signer};
use super::tsig::{self, Signing, TsigRecord};
use super::zone::Zone;
use super::{Datagram, Name};
use crate::time::Instant;
use bytes::Bytes;
use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An authoritative server.
///
/// In: `handle_message`, `handle_durable`. Out: `poll_journal` and `poll_answer`, until both return `None`. It has no
/// timers.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    zones: Vec<Zone>,
    signers: Vec<Signer>,
    /// Where the key of a name is among them.
    signer_of: BTreeMap<Place, usize>,
    /// Number of the last change.
    written: u64,
    /// Number up to which changes are durable.
    durable: u64,
    journal: VecDeque<JournalEntry>,
    /// Answers, each with the number of the last change that it can tell of: nobody learns what could still be lost.
    answers: VecDeque<(u64, Answer)>,
    counters: ServerCounters,
}

impl Server {
    /// A server with its zones as configured. With a journal, they are the first change in it.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: ServerConfig) -> Result<Self, ConfigError> {
        let mut server = Self::unwritten(config)?;
        let rows = server.zones.iter().flat_map(zone_rows).collect();
        server.write_down(rows);
        Ok(server)
    }

    /// A server that goes on from the rows (key and value) that the one before it had written down, in any order. Zones
    /// of which there is none are as configured, and are the first change in the journal.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub fn restored<E: From<RestoreError>>(
        config: ServerConfig,
        rows: impl IntoIterator<Item = Result<(Vec<u8>, Vec<u8>), E>>,
    ) -> Result<Self, E> {
        let mut server = Self::unwritten(config).map_err(RestoreError::from)?;
        let mut kept: Vec<Option<Zone>> = vec![None; server.zones.len()];
        for row in rows {
            let (key, value) = row?;
            match rows::read(&key, &value).ok_or(RestoreError::Malformed)? {
                Kept::Records { zone, records } => {
                    let at = server.zones.iter().position(|z| *z.name() == zone);
                    let unknown = || RestoreError::UnknownZone(zone.to_string());
                    let zone_kept = at.and_then(|i| kept.get_mut(i)).ok_or_else(unknown)?;
                    let zone_kept = zone_kept.get_or_insert_with(|| Zone::empty(zone.clone()));
                    zone_kept.restore(records).ok_or(RestoreError::Malformed)?;
                }
                // A key that was taken out of the configuration does not need to be remembered.
                Kept::OfKey { key, taken } => {
                    if let Some(signer) = server.signer_at(&key) {
                        signer.restore(taken);
                    }
                }
            }
        }
        let mut new = Vec::new();
        for (zone, kept) in server.zones.iter_mut().zip(kept) {
            match kept {
                Some(kept) => {
                    kept.serial().ok_or(RestoreError::Malformed)?;
                    *zone = kept;
                }
                None => new.extend(zone_rows(zone)),
            }
        }
        if !new.is_empty() {
            server.write_down(new);
        }
        Ok(server)
    }

    fn unwritten(config: ServerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let signers: Vec<Signer> = config.keys.iter().map(Signer::new).collect();
        let places = signers.iter().map(|s| Place::of(s.key().name()));
        Ok(Self {
            zones: config.zones.iter().map(Zone::new).collect(),
            signer_of: places.enumerate().map(|(i, place)| (place, i)).collect(),
            signers,
            config,
            written: 0,
            durable: 0,
            journal: VecDeque::new(),
            answers: VecDeque::new(),
            counters: ServerCounters::default(),
        })
    }

    fn signer_at(&mut self, key: &Place) -> Option<&mut Signer> {
        self.signers.get_mut(*self.signer_of.get(key)?)
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

    /// All that is kept, in a certain order: what [`restored`](Self::restored) makes the same server of.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        let zones = self.zones.iter().flat_map(zone_rows);
        zones.chain(self.signers.iter().flat_map(Signer::rows))
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

    /// The answer to a message; `None` for what must not or cannot be answered.
    fn answer(&mut self, unix: u64, transport: Transport, data: &Bytes) -> Option<Vec<u8>> {
        let request = match Skimmed::read(data) {
            Ok(request) if request.header.response => return None,
            Ok(request) => request,
            Err(Malformed::Body(header)) if !header.response => {
                self.counters.malformed += 1;
                return DnsMessage::new(header.answering(Rcode::FORMERR)).emit(512);
            }
            Err(_) => return None,
        };
        let signed = match request.tsig.as_ref().map(|t| self.verify(unix, t)).transpose() {
            Ok(signer) => signer.zip(request.tsig.as_ref()),
            Err(refusal) => {
                let tsig = request.tsig.as_ref()?;
                return self.answer_tsig_error(unix, &request, tsig, refusal, data.len());
            }
        };
        let response = match request.header.opcode {
            _ if request.edns.is_some_and(|e| e.version > 0) => {
                // RFC 6891 section 6.1.3: BADVERS; the builder has it from the version.
                reply(&request, Rcode::NOERROR)
            }
            Opcode::QUERY => self.query(&request, transport, signed.is_some()),
            Opcode::UPDATE => match self.update(&request, signed, data) {
                Ok(response) => response,
                Err(refusal) => {
                    let tsig = request.tsig.as_ref()?;
                    return self.answer_tsig_error(unix, &request, tsig, refusal, data.len());
                }
            },
            _ => reply(&request, Rcode::NOTIMP),
        };
        let limit = match (transport, request.edns) {
            (Transport::Tcp(_), _) => u16::MAX,
            (Transport::Udp, Some(edns)) => edns.udp_payload.clamp(UDP_PAYLOAD_WITHOUT_EDNS, UDP_PAYLOAD),
            (Transport::Udp, None) => UDP_PAYLOAD_WITHOUT_EDNS,
        };
        let Some((index, tsig)) = signed else {
            let bytes = response.emit(usize::from(limit))?;
            return no_larger(bytes, &response, data.len());
        };
        let key = self.signers.get(index)?.key();
        let mut bytes = response.emit(usize::from(limit).saturating_sub(signature_len(key)))?;
        let signing = Signing {
            request_mac: Some(&tsig.mac),
            time_signed: unix,
            fudge: tsig::FUDGE,
            error: 0,
            other: &[],
        };
        tsig::sign(&mut bytes, key, &signing);
        Some(bytes)
    }

    /// RFC 8945 section 5.2: which key signed it.
    fn verify(&mut self, unix: u64, tsig: &TsigRecord) -> Result<usize, TsigRefusal> {
        let index = self.signer_of.get(&Place::of(&tsig.key)).copied();
        let signer = index.and_then(|i| Some((i, self.signers.get(i)?)));
        let Some((index, signer)) = signer.filter(|(_, s)| tsig.names(s.key())) else {
            self.counters.bad_key += 1;
            return Err(TsigRefusal::Unsigned(tsig::BADKEY));
        };
        let key = signer.key();
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

    /// RFC 8945 section 5.3.2. `asked`: length of the request, which an answer to somebody unknown does not exceed.
    fn answer_tsig_error(
        &self,
        unix: u64,
        request: &Skimmed,
        tsig: &TsigRecord,
        refusal: TsigRefusal,
        asked: usize,
    ) -> Option<Vec<u8>> {
        let response = reply(request, Rcode::NOTAUTH);
        let mut bytes = response.emit(512)?;
        match refusal {
            TsigRefusal::Malformed => {
                let response = reply(request, Rcode::FORMERR);
                bytes = response.emit(512)?;
                no_larger(bytes, &response, asked)
            }
            TsigRefusal::Unsigned(error) => {
                tsig::append_unsigned(&mut bytes, tsig, error);
                no_larger(bytes, &response, asked)
            }
            TsigRefusal::Signed(index, error) => {
                let time = unix.to_be_bytes();
                let signing = Signing {
                    request_mac: Some(&tsig.mac),
                    time_signed: tsig.time_signed,
                    fudge: tsig.fudge,
                    error,
                    other: if error == tsig::BADTIME { &time[2..] } else { &[] },
                };
                tsig::sign(&mut bytes, self.signers.get(index)?.key(), &signing);
                Some(bytes)
            }
        }
    }

    fn query(&mut self, request: &Skimmed, transport: Transport, known: bool) -> DnsMessage {
        let Some(question) = &request.question else {
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
        if question.rtype == Rtype::ANY && transport == Transport::Udp && !known {
            // All at once, to an address that may be forged: over TCP (RFC 8482 section 4.4).
            let response = reply(request, Rcode::NOERROR);
            return DnsMessage {
                header: Header {
                    truncated: true,
                    ..response.header
                },
                ..response
            };
        }
        let found = zone.respond(&question.name, question.rtype);
        let rcode = if found.no_such_name {
            Rcode::NXDOMAIN
        } else {
            Rcode::NOERROR
        };
        let response = reply(request, rcode);
        DnsMessage {
            header: Header {
                authoritative: found.authoritative,
                ..response.header
            },
            answer: found.answer,
            authority: found.authority,
            additional: found.additional,
            ..response
        }
    }

    /// RFC 2136 section 3. `signed`: the number of the key, and the signature. `data`: the whole message.
    fn update(
        &mut self,
        request: &Skimmed,
        signed: Option<(usize, &TsigRecord)>,
        data: &Bytes,
    ) -> Result<DnsMessage, TsigRefusal> {
        let Some((index, tsig)) = signed else {
            self.counters.refused += 1;
            return Ok(reply(request, Rcode::REFUSED));
        };
        match self.signers[index].order(tsig) {
            Order::New => {}
            Order::Late => {
                self.counters.bad_time += 1;
                return Err(TsigRefusal::Signed(index, tsig::BADTIME));
            }
            Order::Repeated(rcode) => {
                self.counters.repeated += 1;
                return Ok(reply(request, rcode));
            }
            Order::TooMany => {
                self.counters.refused += 1;
                return Ok(reply(request, Rcode::SERVFAIL));
            }
        }
        let (rcode, mut rows) = match self.carry_out(data, index) {
            Ok((zone, changed)) => {
                self.counters.updates += u64::from(!changed.is_empty());
                let zone = &self.zones[zone];
                let rows = changed.iter().map(|place| node_row(zone, place));
                (
                    Rcode::NOERROR,
                    if self.config.journal {
                        rows.collect()
                    } else {
                        vec![]
                    },
                )
            }
            Err(rcode) => {
                self.counters.refused += u64::from(rcode == Rcode::REFUSED);
                self.counters.malformed += u64::from(rcode == Rcode::FORMERR);
                (rcode, Vec::new())
            }
        };
        // What was refused is written down too: it must not be taken when it is played again.
        rows.extend(self.signers[index].remember(tsig, rcode));
        self.write_down(rows);
        Ok(reply(request, rcode))
    }

    /// RFC 2136 sections 3.1 to 3.4: the zone and where it has changed, or why it has not.
    fn carry_out(&mut self, data: &Bytes, signer: usize) -> Result<(usize, BTreeSet<Place>), Rcode> {
        let request = DnsMessage::parse(data).map_err(|_| Rcode::FORMERR)?.message;
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
        let mut zones = self.zones.iter_mut().enumerate();
        let zone = zones.find(|(_, z)| z.name() == name && *class == Class::IN);
        let (index, zone) = zone.ok_or(Rcode::NOTAUTH)?;
        zone.check_prerequisites(&request.answer)?;
        let signer = &self.signers[signer];
        if !request.authority.iter().all(|r| signer.may_change(&r.name)) {
            return Err(Rcode::REFUSED);
        }
        zone.prescan(&request.authority)?;
        Ok((index, zone.apply(&request.authority, &self.config.room)?))
    }

    fn write_down(&mut self, rows: Vec<Row>) {
        self.written += 1;
        if !self.config.journal {
            self.durable = self.written;
            return;
        }
        self.journal.push_back(JournalEntry {
            number: self.written,
            rows,
        });
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

/// An answer without records. The first section comes back, and EDNS if it was used (RFC 6891 section 6.1.1).
fn reply(request: &Skimmed, rcode: Rcode) -> DnsMessage {
    DnsMessage {
        questions: request.question.iter().cloned().collect(),
        edns: request.edns.map(|asked| Edns {
            udp_payload: UDP_PAYLOAD,
            version: 0,
            bad_version: asked.version > 0,
        }),
        ..DnsMessage::new(request.header.answering(rcode))
    }
}

/// What somebody unknown is told, no longer than what he asked if it is not about records: names that were pointers in the
/// request are not written out to an address that may be forged.
fn no_larger(bytes: Vec<u8>, response: &DnsMessage, asked: usize) -> Option<Vec<u8>> {
    let has_records = !(response.answer.is_empty() && response.authority.is_empty());
    if has_records || bytes.len() <= asked {
        return Some(bytes);
    }
    DnsMessage::new(response.header).emit(512)
}

fn zone_rows(zone: &Zone) -> impl Iterator<Item = Row> {
    zone.places().map(|place| node_row(zone, place))
}

fn node_row(zone: &Zone, place: &Place) -> Row {
    rows::node(zone.name(), zone.top(), place, zone.records_at(place))
}

#[cfg(test)]
impl Server {
    pub(super) fn zones_for_test(&self) -> &[Zone] {
        &self.zones
    }
}
