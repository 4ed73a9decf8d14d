//! DNS messages as far as a stub resolver has to understand them (RFC 1035 section 4, RFC 6891): what is passed on stays the bytes
//! that came.

use bytes::Bytes;
use domain::base::iana::{Class, Opcode, OptRcode, Rcode, Rtype};
use domain::base::name::ToName as _;
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message, MessageBuilder, ParsedName, Ttl};
use domain::rdata::{Aaaa, Cname, Soa};
use segue_proto::location::Name;
use std::net::Ipv6Addr;

/// Octets of a header.
pub(super) const HEADER: usize = 12;
/// UDP payload that is asked for: what crosses a path of 1280 bytes unfragmented, as RFC 9715 advises.
pub(super) const UDP_PAYLOAD: u16 = 1232;
/// UDP payload without EDNS (RFC 1035 section 2.3.4).
const UDP_PAYLOAD_WITHOUT_EDNS: u16 = 512;
/// Records of an answer that are looked at.
const MOST_RECORDS: usize = 256;
/// Aliases followed in one answer (a loop would be a server's fault).
const MOST_ALIASES: usize = 8;

/// An application's question, with the message that it came in.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Query {
    bytes: Vec<u8>,
    name: Name,
    rtype: Rtype,
    class: Class,
    /// Where the question ends.
    end: usize,
    edns: Option<Edns>,
    /// There is a signature over all of it (RFC 8945).
    is_signed: bool,
}

/// The OPT record of a query (RFC 6891 section 6.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Edns {
    /// Where it begins.
    at: usize,
    version: u8,
    udp_payload: u16,
    dnssec_ok: bool,
}

/// Why a query is not looked into.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Unreadable {
    /// No header, or a response: there is nobody to answer.
    NoQuery,
    /// It is answered with this.
    Answer(Vec<u8>),
}

impl Query {
    /// Reads a query: one question (RFC 9619), nothing else but additional records.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let message = Message::from_octets(bytes).map_err(|_| Unreadable::NoQuery)?;
        let header = message.header();
        if header.qr() {
            return Err(Unreadable::NoQuery);
        }
        if header.opcode() != Opcode::QUERY {
            return Err(Unreadable::Answer(refuse(bytes, Rcode::NOTIMP)));
        }
        Self::read_body(bytes, &message).ok_or_else(|| Unreadable::Answer(refuse(bytes, Rcode::FORMERR)))
    }

    fn read_body(bytes: &[u8], message: &Message<&[u8]>) -> Option<Self> {
        let counts = message.header_counts();
        if (counts.qdcount(), counts.ancount(), counts.nscount()) != (1, 0, 0) {
            return None;
        }
        let (name, end) = question_name(bytes)?;
        let question = message.sole_question().ok()?;
        let (mut edns, mut is_signed) = (None, false);
        let mut section = message.additional().ok()?;
        loop {
            let at = section.pos();
            let Some(record) = section.next() else { break };
            let record = record.ok()?;
            is_signed |= record.rtype() == Rtype::TSIG;
            if record.rtype() == Rtype::OPT {
                // RFC 6891 section 6.1.1: there is one, owned by the root
                if edns.is_some() || bytes.get(at) != Some(&0) {
                    return None;
                }
                edns = Some(Edns {
                    at,
                    version: (record.ttl().as_secs() >> 16) as u8,
                    udp_payload: record.class().to_int(),
                    dnssec_ok: record.ttl().as_secs() & 0x8000 != 0,
                });
            }
        }
        Some(Self {
            bytes: bytes.to_vec(),
            name,
            rtype: question.qtype(),
            class: question.qclass(),
            end,
            edns,
            is_signed,
        })
    }

    /// The name that is asked for.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Its number.
    pub fn id(&self) -> u16 {
        u16::from_be_bytes([self.bytes[0], self.bytes[1]])
    }

    /// Whether it asks for addresses of IPv6.
    pub fn is_for_addresses(&self) -> bool {
        (self.rtype, self.class) == (Rtype::AAAA, Class::IN)
    }

    /// Whether who asks validates signatures by himself: what nobody has signed is of no use to him (as RFC 6147 section 5.5 has
    /// it of answers that are made up).
    pub fn is_validating(&self) -> bool {
        let checking_disabled = self.bytes[3] & 0x10 != 0;
        checking_disabled && self.edns.is_some_and(|edns| edns.dnssec_ok)
    }

    /// Whether another asks for the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.rtype == other.rtype && self.class == other.class && self.name == other.name
    }

    /// The answer to what is neither answered here nor passed on.
    pub fn unanswerable(&self) -> Option<Vec<u8>> {
        if self.is_signed {
            // RFC 8945 section 5.5: without the key it is passed on unchanged or not at all, and here its number and letters change
            return Some(self.refused(Rcode::REFUSED));
        }
        // RFC 6891 section 6.1.3: BADVERS, of which the header has the lower bits, all of them zero
        let is_of_later_version = self.edns.is_some_and(|edns| edns.version > 0);
        is_of_later_version.then(|| self.refused(Rcode::NOERROR))
    }

    /// What goes to a server in its place: the same, with no more room for the answer than crosses any path in one piece.
    pub fn forwarded(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if let Some(edns) = self.edns {
            let room = edns.udp_payload.clamp(UDP_PAYLOAD_WITHOUT_EDNS, UDP_PAYLOAD);
            bytes[edns.at + 3..edns.at + 5].copy_from_slice(&room.to_be_bytes());
        }
        bytes
    }

    /// A server's answer to what was [forwarded](Self::forwarded), as the answer to this: its number, and the question as it was
    /// written. Over UDP, no more than there is room for.
    pub fn passed(&self, answer: &[u8], stream: bool) -> Vec<u8> {
        let room = self.edns.map_or(UDP_PAYLOAD_WITHOUT_EDNS, |edns| {
            edns.udp_payload.max(UDP_PAYLOAD_WITHOUT_EDNS)
        });
        if !stream && answer.len() > usize::from(room) {
            return self.truncated();
        }
        let mut answer = answer.to_vec();
        answer[..2].copy_from_slice(&self.bytes[..2]);
        if answer.len() >= self.end && answer[4..6] == [0, 1] {
            answer[HEADER..self.end].copy_from_slice(&self.bytes[HEADER..self.end]);
        }
        answer
    }

    /// Addresses as the answer; none if there is no other record of the name.
    pub fn answered(&self, addresses: &[Ipv6Addr], ttl: u32) -> Vec<u8> {
        self.compose(Rcode::NOERROR, false, addresses, ttl)
    }

    /// An answer without records.
    pub fn refused(&self, rcode: Rcode) -> Vec<u8> {
        self.compose(rcode, false, &[], 0)
    }

    /// RFC 2181 section 9: it is to be asked for over TCP.
    fn truncated(&self) -> Vec<u8> {
        self.compose(Rcode::NOERROR, true, &[], 0)
    }

    fn compose(&self, rcode: Rcode, truncated: bool, addresses: &[Ipv6Addr], ttl: u32) -> Vec<u8> {
        let composed = || {
            let query = Message::from_octets(&self.bytes[..]).ok()?;
            let mut answer = MessageBuilder::new_bytes().start_answer(&query, rcode).ok()?;
            answer.header_mut().set_ra(true);
            answer.header_mut().set_tc(truncated);
            for address in addresses {
                let data = Aaaa::new(address.octets().into());
                answer.push((&self.name, Ttl::from_secs(ttl), data)).ok()?;
            }
            let mut additional = answer.additional();
            if let Some(edns) = self.edns {
                let opt = additional.opt(|opt| {
                    opt.set_udp_payload_size(UDP_PAYLOAD);
                    if edns.version > 0 && !self.is_signed {
                        opt.set_rcode(OptRcode::BADVERS);
                    }
                    Ok(())
                });
                opt.ok()?;
            }
            Some(additional.finish().to_vec())
        };
        composed().unwrap_or_else(|| refuse(&self.bytes, Rcode::SERVFAIL))
    }
}

/// A header, with nothing behind it, that answers a message that has one.
fn refuse(bytes: &[u8], rcode: Rcode) -> Vec<u8> {
    let Ok(message) = Message::from_octets(bytes) else {
        return Vec::new();
    };
    let mut builder = MessageBuilder::new_bytes();
    let header = builder.header_mut();
    header.set_id(message.header().id());
    header.set_qr(true);
    header.set_opcode(message.header().opcode());
    header.set_rd(message.header().rd());
    header.set_rcode(rcode);
    builder.finish().to_vec()
}

/// Whether a message says that it is about an update (RFC 2136 section 2.2).
pub(super) fn is_of_update(message: &[u8]) -> bool {
    message.get(2).is_some_and(|flags| flags >> 3 & 0xf == 5)
}

/// A question of the agent's own, by any number.
pub(super) fn question(name: &Name, rtype: Rtype) -> Vec<u8> {
    let mut builder = MessageBuilder::new_bytes();
    builder.header_mut().set_rd(true);
    let mut question = builder.question();
    // a header, a name, and an OPT record fit every message
    let _ = question.push((name, rtype, Class::IN));
    let mut additional = question.additional();
    let _ = additional.opt(|opt| {
        opt.set_udp_payload_size(UDP_PAYLOAD);
        Ok(())
    });
    additional.finish().to_vec()
}

/// The name of the first question, written out as in every question, and where the question ends.
pub(super) fn question_name(bytes: &[u8]) -> Option<(Name, usize)> {
    let mut at = HEADER;
    loop {
        match *bytes.get(at)? {
            0 => break,
            length @ 1..=63 => at += 1 + usize::from(length),
            _ => return None,
        }
    }
    let name = Name::from_octets(Bytes::copy_from_slice(bytes.get(HEADER..=at)?)).ok()?;
    let end = at + 5;
    (end <= bytes.len()).then_some((name, end))
}

/// Records of one type.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Records {
    /// Whose they are: the name that was asked for, or what it is an alias of (RFC 1034 section 3.6.2).
    pub name: Name,
    /// The least time to live of them and of the aliases, seconds.
    pub ttl: u32,
    /// Their data.
    pub data: Vec<Bytes>,
}

/// What a server said.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Said {
    /// There are such records.
    Records(Records),
    /// There are none, which may be believed for so many seconds (RFC 2308 section 5).
    Nothing { ttl: u32 },
    /// It did not say.
    Refused,
}

/// What an answer says of the records of `name` that are of `rtype`, a type without names in its data.
pub(super) fn read_answer(bytes: &[u8], name: &Name, rtype: Rtype) -> Said {
    let Ok(message) = Message::from_octets(bytes) else {
        return Said::Refused;
    };
    match message.header().rcode() {
        Rcode::NOERROR => read_records(&message, name, rtype).unwrap_or(Said::Refused),
        Rcode::NXDOMAIN => Said::Nothing {
            ttl: negative_ttl(&message),
        },
        _ => Said::Refused,
    }
}

fn read_records(message: &Message<&[u8]>, name: &Name, rtype: Rtype) -> Option<Said> {
    let mut of_interest = Vec::new();
    let mut aliases = Vec::new();
    for record in message.answer().ok()?.take(MOST_RECORDS) {
        let record = record.ok()?;
        if record.class() != Class::IN {
            continue;
        }
        let (owner, ttl) = (record.owner().to_bytes(), record.ttl().as_secs());
        if record.rtype() == rtype {
            let data = record.to_record::<UnknownRecordData<_>>().ok()??;
            of_interest.push((owner, ttl, Bytes::copy_from_slice(data.data().data())));
        } else if let Some(alias) = record.to_record::<Cname<ParsedName<_>>>().ok()? {
            aliases.push((owner, ttl, alias.data().cname().to_bytes()));
        }
    }
    let (mut name, mut least) = (name.clone(), u32::MAX);
    for _ in 0..=MOST_ALIASES {
        let found = of_interest.iter().filter(|(owner, ..)| *owner == name);
        let ttl = found.clone().map(|(_, ttl, _)| *ttl).min();
        if let Some(ttl) = ttl {
            return Some(Said::Records(Records {
                data: found.map(|(.., data)| data.clone()).collect(),
                ttl: ttl.min(least),
                name,
            }));
        }
        let Some((_, ttl, target)) = aliases.iter().find(|(owner, ..)| *owner == name) else {
            break;
        };
        least = least.min(*ttl);
        name = target.clone();
    }
    Some(Said::Nothing {
        ttl: negative_ttl(message).min(least),
    })
}

/// RFC 2308 section 5: the lesser of the SOA record's time to live and its MINIMUM; nothing is believed where there is none.
fn negative_ttl(message: &Message<&[u8]>) -> u32 {
    let Ok(authority) = message.authority() else {
        return 0;
    };
    let mut soas = authority.limit_to_in::<Soa<ParsedName<_>>>().take(MOST_RECORDS);
    let soa = soas.find_map(Result::ok);
    soa.map_or(0, |soa| soa.ttl().as_secs().min(soa.data().minimum().as_secs()))
}
