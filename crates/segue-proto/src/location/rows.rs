//! What a server keeps, as rows of a table: a driver stores them and does not need to know what is in them.
//!
//! ```text
//! key                                             value
//! 'N' | length of the zone's | zone | name        the records there, as the update that would add them to an empty zone
//! 'K' | TSIG key                                  greatest Time Signed of an update (8)
//! 'M' | length of the TSIG key's | TSIG key | MAC what an update with that time and MAC was answered
//! ```
//!
//! Zone, name and TSIG key are labels from the root on, each with its length, in lower case.

use super::Name;
use super::message::{DnsMessage, Header, Question, Record};
use super::place::Place;
use bytes::Bytes;
use domain::base::iana::{Class, Opcode, Rcode, Rtype};

/// A row that was written or has gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// What it is found by: of two rows with the same key there is only the later.
    pub key: Vec<u8>,
    /// What is there; nothing if it has gone.
    pub value: Option<Vec<u8>>,
}

/// A row, read.
pub enum Kept {
    Records {
        zone: Name,
        records: Vec<Record>,
    },
    /// Of the updates that were signed with this key.
    OfKey {
        key: Place,
        taken: Taken,
    },
}

/// What is kept of the updates that were signed with a key.
pub enum Taken {
    /// The greatest time of one.
    Latest(u64),
    /// One of that time, and what it was answered.
    Update { mac: Bytes, rcode: Rcode },
}

const NODE: u8 = b'N';
const KEY: u8 = b'K';
const MAC: u8 = b'M';

/// The records of a name.
pub fn node(zone: &Name, top: &Place, place: &Place, records: Vec<Record>) -> Row {
    let message = DnsMessage {
        questions: vec![Question {
            name: zone.clone(),
            rtype: Rtype::SOA,
            class: Class::IN,
        }],
        authority: records,
        ..DnsMessage::new(Header::request(0, Opcode::UPDATE))
    };
    Row {
        key: prefixed(NODE, top, place.as_bytes()),
        value: if message.authority.is_empty() {
            None
        } else {
            message.emit(usize::from(u16::MAX))
        },
    }
}

/// The greatest time of a key.
pub fn latest(key: &Place, time: u64) -> Row {
    let mut row = vec![KEY];
    row.extend_from_slice(key.as_bytes());
    Row {
        key: row,
        value: Some(time.to_be_bytes().to_vec()),
    }
}

/// What an update was answered; nothing once there is a later one.
pub fn seen(key: &Place, mac: &[u8], rcode: Option<Rcode>) -> Row {
    Row {
        key: prefixed(MAC, key, mac),
        value: rcode.map(|r| vec![r.to_int()]),
    }
}

/// Reads a row; `None` if it is none.
pub fn read(key: &[u8], value: &[u8]) -> Option<Kept> {
    let (kind, rest) = key.split_first()?;
    match *kind {
        NODE => {
            let message = DnsMessage::parse(&Bytes::copy_from_slice(value)).ok()?.message;
            let [Question { name, .. }] = &message.questions[..] else {
                return None;
            };
            Some(Kept::Records {
                zone: name.clone(),
                records: message.authority,
            })
        }
        KEY => Some(Kept::OfKey {
            key: Place::from_bytes(rest),
            taken: Taken::Latest(u64::from_be_bytes(value.try_into().ok()?)),
        }),
        MAC => {
            let (len, rest) = rest.split_first()?;
            let (name, mac) = rest.split_at_checked(usize::from(*len))?;
            let [rcode] = *value else { return None };
            Some(Kept::OfKey {
                key: Place::from_bytes(name),
                taken: Taken::Update {
                    mac: Bytes::copy_from_slice(mac),
                    rcode: Rcode::checked_from_int(rcode)?,
                },
            })
        }
        _ => None,
    }
}

fn prefixed(kind: u8, first: &Place, second: &[u8]) -> Vec<u8> {
    let first = first.as_bytes();
    // A name has at most 255 bytes (RFC 1035 section 2.3.4).
    let mut key = vec![kind, first.len() as u8];
    key.extend_from_slice(first);
    key.extend_from_slice(second);
    key
}
