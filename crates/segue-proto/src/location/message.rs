//! DNS messages, from bytes to owned records and back, by the `domain` crate.
//!
//! RFC 1035 section 4, RFC 2136 section 2, RFC 3597 (unknown types), RFC 6891 (EDNS).

use super::Name;
use super::compressor::Compressor;
use super::tsig::{self, TsigRecord};
use bytes::{Bytes, BytesMut};
use domain::base::iana::{Class, Opcode, OptRcode, Rcode, Rtype};
use domain::base::message::{QuestionSection, RecordSection};
use domain::base::message_builder::PushError;
use domain::base::name::ToName;
use domain::base::rdata::{ComposeRecordData, UnknownRecordData};
use domain::base::{Message, MessageBuilder, ParsedName, ParsedRecord, Record as DomainRecord, Ttl};
use domain::dep::octseq::Parser;
use domain::rdata::AllRecordData;

/// Greatest UDP payload that is asked for and answered with: what crosses a path of 1280 bytes unfragmented, as
/// RFC 9715 advises.
pub const UDP_PAYLOAD: u16 = 1232;

/// Greatest UDP payload towards a requestor without EDNS (RFC 1035 section 2.3.4).
pub const UDP_PAYLOAD_WITHOUT_EDNS: u16 = 512;

/// The data of a record, with the names in it uncompressed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rdata {
    /// As it was given.
    pub bytes: Bytes,
    /// In canonical form (RFC 4034 section 6.2): what is compared.
    pub canonical: Bytes,
}

impl Rdata {
    /// Data in which there is no name.
    pub fn opaque(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            canonical: bytes.clone(),
            bytes,
        }
    }

    /// From typed data.
    pub fn compose(data: &impl ComposeRecordData) -> Self {
        let (mut bytes, mut canonical) = (BytesMut::new(), BytesMut::new());
        let Ok(()) = data.compose_rdata(&mut bytes);
        let Ok(()) = data.compose_canonical_rdata(&mut canonical);
        Self {
            bytes: bytes.freeze(),
            canonical: canonical.freeze(),
        }
    }
}

/// A record, or in an update what stands in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub name: Name,
    pub rtype: Rtype,
    pub class: Class,
    pub ttl: u32,
    pub rdata: Rdata,
}

/// The first section: a question, or the zone of an update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    pub name: Name,
    pub rtype: Rtype,
    pub class: Class,
}

/// What an OPT record says (RFC 6891 section 6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edns {
    pub udp_payload: u16,
    pub version: u8,
    /// The request's version is not known here: BADVERS (section 6.1.3).
    pub bad_version: bool,
}

/// Flags and codes of a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub id: u16,
    pub response: bool,
    pub opcode: Opcode,
    pub authoritative: bool,
    pub truncated: bool,
    pub recursion_desired: bool,
    pub rcode: Rcode,
}

impl Header {
    /// A request's.
    pub fn request(id: u16, opcode: Opcode) -> Self {
        Self {
            id,
            response: false,
            opcode,
            authoritative: false,
            truncated: false,
            recursion_desired: false,
            rcode: Rcode::NOERROR,
        }
    }

    /// The response to a request with this header.
    pub fn answering(&self, rcode: Rcode) -> Self {
        Self {
            response: true,
            authoritative: false,
            truncated: false,
            rcode,
            ..*self
        }
    }
}

/// A message. The sections of an update (RFC 2136 section 2) are: zone = questions, prerequisites = answer,
/// updates = authority.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DnsMessage {
    pub header: Header,
    pub questions: Vec<Question>,
    pub answer: Vec<Record>,
    pub authority: Vec<Record>,
    /// Neither OPT nor TSIG among them.
    pub additional: Vec<Record>,
    pub edns: Option<Edns>,
}

/// A message as received.
#[derive(Clone, Debug)]
pub struct Received {
    pub message: DnsMessage,
    /// Its signature, not yet verified.
    pub tsig: Option<TsigRecord>,
}

/// A request, as far as it is read before it is known who sent it: of the other records only how long they are, so that
/// nobody unknown makes names be followed from pointer to pointer.
#[derive(Clone, Debug)]
pub struct Skimmed {
    pub header: Header,
    pub question: Option<Question>,
    pub edns: Option<Edns>,
    /// Its signature, not yet verified.
    pub tsig: Option<TsigRecord>,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Not even a header: there is nobody to answer.
    NoHeader,
    /// The header was read.
    Body(Header),
}

impl DnsMessage {
    /// A message with nothing but a header.
    pub fn new(header: Header) -> Self {
        Self {
            header,
            questions: Vec::new(),
            answer: Vec::new(),
            authority: Vec::new(),
            additional: Vec::new(),
            edns: None,
        }
    }

    /// Parses a whole message.
    pub fn parse(bytes: &Bytes) -> Result<Received, Malformed> {
        let message = Message::from_octets(bytes.clone()).map_err(|_| Malformed::NoHeader)?;
        let header = read_header(&message);
        read_body(bytes, &message, header).ok_or(Malformed::Body(header))
    }

    /// The bytes, of which there may be `limit`. If they are more, all sections but the first are left out and the
    /// message says so (RFC 2181 section 9). `None` if even that cannot be written.
    pub fn emit(&self, limit: usize) -> Option<Vec<u8>> {
        self.build(limit)
            .or_else(|_| {
                let truncated = Self {
                    header: Header {
                        truncated: true,
                        ..self.header
                    },
                    questions: self.questions.clone(),
                    edns: self.edns,
                    ..Self::new(self.header)
                };
                // A question and OPT fit everything that a message may be limited to.
                truncated.build(usize::from(u16::MAX))
            })
            .ok()
    }

    fn build(&self, limit: usize) -> Result<Vec<u8>, PushError> {
        let mut builder = MessageBuilder::from_target(Compressor::new()).map_err(|_| PushError::ShortBuf)?;
        builder.set_push_limit(limit);
        let header = builder.header_mut();
        header.set_id(self.header.id);
        header.set_qr(self.header.response);
        header.set_opcode(self.header.opcode);
        header.set_aa(self.header.authoritative);
        header.set_tc(self.header.truncated);
        header.set_rd(self.header.recursion_desired);
        header.set_rcode(self.header.rcode);
        let mut question = builder.question();
        for q in &self.questions {
            question.push((&q.name, q.rtype, q.class))?;
        }
        let mut answer = question.answer();
        for r in &self.answer {
            answer.push(domain_record(r))?;
        }
        let mut authority = answer.authority();
        for r in &self.authority {
            authority.push(domain_record(r))?;
        }
        let mut additional = authority.additional();
        for r in &self.additional {
            additional.push(domain_record(r))?;
        }
        if let Some(edns) = self.edns {
            additional.opt(|opt| {
                opt.set_udp_payload_size(edns.udp_payload);
                opt.set_version(edns.version);
                if edns.bad_version {
                    opt.set_rcode(OptRcode::BADVERS);
                }
                Ok(())
            })?;
        }
        Ok(additional.finish().into_bytes())
    }
}

impl Skimmed {
    /// Reads what a request begins and ends with.
    pub fn read(bytes: &Bytes) -> Result<Self, Malformed> {
        let message = Message::from_octets(bytes.clone()).map_err(|_| Malformed::NoHeader)?;
        let header = read_header(&message);
        skim(bytes, &message, header).ok_or(Malformed::Body(header))
    }
}

fn skim(bytes: &Bytes, message: &Message<Bytes>, header: Header) -> Option<Skimmed> {
    let mut section = message.question();
    let mut skimmed = Skimmed {
        header,
        question: read_question(&mut section)?,
        edns: None,
        tsig: None,
    };
    let counts = message.header_counts();
    let in_front = usize::from(counts.ancount()) + usize::from(counts.nscount());
    let all = in_front + usize::from(counts.arcount());
    let mut at = section.answer().ok()?.pos();
    for n in 0..all {
        let fixed = skip_name(bytes, at)?;
        let [t0, t1, c0, c1, _, version, _, _, len @ ..] = *bytes.get(fixed..)?.first_chunk::<10>()?;
        let rtype = Rtype::from_int(u16::from_be_bytes([t0, t1]));
        match rtype {
            // RFC 8945 section 5.1: TSIG is the last record and there is one.
            Rtype::TSIG if n + 1 < all || n < in_front => return None,
            Rtype::TSIG => {
                let mut parser = Parser::from_ref(bytes);
                parser.advance(at).ok()?;
                let record = ParsedRecord::parse(&mut parser).ok()?;
                skimmed.tsig = Some(TsigRecord::read(bytes, at, &record)?);
            }
            // RFC 6891 section 6.1.1: there is one, among the additional records, owned by the root.
            Rtype::OPT if n < in_front || skimmed.edns.is_some() || fixed != at + 1 => return None,
            Rtype::OPT => {
                skimmed.edns = Some(Edns {
                    udp_payload: u16::from_be_bytes([c0, c1]),
                    version,
                    bad_version: false,
                });
            }
            _ => {}
        }
        at = fixed + 10 + usize::from(u16::from_be_bytes(len));
        if at > bytes.len() {
            return None;
        }
    }
    Some(skimmed)
}

/// Where what follows the name at `at` begins.
fn skip_name(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            len @ 1..=63 => at += 1 + usize::from(len),
            // A pointer ends a name (RFC 1035 section 4.1.4).
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
    }
}

/// The first section: one question or none. RFC 9619 has no more in a query, RFC 2136 section 3.1.1 in an update.
fn read_question(section: &mut QuestionSection<'_, Bytes>) -> Option<Option<Question>> {
    let first = section.next().transpose().ok()?;
    if section.next().is_some() {
        return None;
    }
    Some(first.map(|question| Question {
        name: question.qname().to_bytes(),
        rtype: question.qtype(),
        class: question.qclass(),
    }))
}

fn domain_record(r: &Record) -> DomainRecord<&Name, UnknownRecordData<Bytes>> {
    let data = UnknownRecordData::from_octets(r.rtype, r.rdata.bytes.clone());
    // Record data comes from messages, whose length field bounds it, or is composed here and short.
    let data = data.unwrap_or_else(|_| unreachable!("record data of more than 65535 bytes"));
    DomainRecord::new(&r.name, r.class, Ttl::from_secs(r.ttl), data)
}

fn read_header(message: &Message<Bytes>) -> Header {
    let header = message.header();
    Header {
        id: header.id(),
        response: header.qr(),
        opcode: header.opcode(),
        authoritative: header.aa(),
        truncated: header.tc(),
        recursion_desired: header.rd(),
        rcode: header.rcode(),
    }
}

fn read_body(bytes: &Bytes, message: &Message<Bytes>, header: Header) -> Option<Received> {
    let mut section = message.question();
    let questions = read_question(&mut section)?.into_iter().collect();
    let answer = section.answer().ok()?;
    let authority = answer.next_section().ok()??;
    let additional = authority.next_section().ok()??;
    let mut parsed = DnsMessage {
        questions,
        answer: records(answer)?,
        authority: records(authority)?,
        ..DnsMessage::new(header)
    };
    let mut signature = None;
    let mut section = additional;
    loop {
        let position = section.pos();
        let Some(record) = section.next() else { break };
        let record = record.ok()?;
        // RFC 8945 section 5.1: TSIG is the last record and there is one.
        if signature.is_some() {
            return None;
        }
        match record.rtype() {
            Rtype::TSIG => signature = Some(TsigRecord::read(bytes, position, &record)?),
            Rtype::OPT => {
                // RFC 6891 section 6.1.1: there is one, owned by the root.
                if parsed.edns.is_some() || !record.owner().is_root() {
                    return None;
                }
                let [_, version, ..] = record.ttl().as_secs().to_be_bytes();
                parsed.edns = Some(Edns {
                    udp_payload: record.class().to_int(),
                    version,
                    bad_version: false,
                });
            }
            _ => parsed.additional.push(read_record(&record)?),
        }
    }
    Some(Received {
        message: parsed,
        tsig: signature,
    })
}

fn records(section: RecordSection<'_, Bytes>) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    for record in section {
        let record = record.ok()?;
        if record.rtype() == Rtype::TSIG || record.rtype() == Rtype::OPT {
            return None;
        }
        records.push(read_record(&record)?);
    }
    Some(records)
}

fn read_record(record: &ParsedRecord<'_, Bytes>) -> Option<Record> {
    // In an update, a record without data stands for a set or for all of them (RFC 2136 sections 2.4 and 2.5).
    let rdata = if record.rdlen() == 0 {
        Rdata::default()
    } else {
        let typed = record
            .to_any_record::<AllRecordData<Bytes, ParsedName<Bytes>>>()
            .ok()?;
        Rdata::compose(typed.data())
    };
    Some(Record {
        name: record.owner().to_bytes(),
        rtype: record.rtype(),
        class: record.class(),
        ttl: record.ttl().as_secs(),
        rdata,
    })
}

/// Whether a type stands for something else than data of a zone: OPT, TSIG and the others of RFC 6895 section 3.1.
pub fn is_meta(rtype: Rtype) -> bool {
    rtype == Rtype::OPT || (128..=255).contains(&rtype.to_int()) || rtype.to_int() == 0
}

/// Room that a signature with `key` will take.
pub fn signature_len(key: &tsig::Key) -> usize {
    key.record_len()
}
