//! Finding out what a name says of a node: its identifiers, and where it is (RFC 6742).

use super::message::{Records, Said, question, read_answer};
use bytes::Bytes;
use domain::base::iana::Rtype;
use segue_proto::location::{Name, PreferredLocator};
use segue_wire::ilnp::{Locator, Nid};

/// Identifiers of one name that are used, the best.
const MOST_NIDS: usize = 8;
/// Locators of one name that are used, the best: as many as the shim keeps of a peer.
const MOST_LOCATORS: usize = 64;

/// What a name says of a node.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Node {
    /// The name that has the records: the one that was asked for, or what that is an alias of.
    pub name: Name,
    /// Its identifiers, the best first; none where only locators were asked for.
    pub nids: Vec<Nid>,
    /// How long these may be believed, seconds.
    pub nids_ttl: u32,
    /// Where it is, the best first; at least one.
    pub locators: Vec<PreferredLocator>,
    /// How long these may be believed, seconds.
    pub locators_ttl: u32,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Outcome {
    /// It is a node of ILNP.
    Node(Node),
    /// It is not, which may be believed for so many seconds.
    Absent { ttl: u32 },
    /// No server said.
    Unknown,
}

/// What is to be done next.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Step {
    /// This question is to be asked.
    Ask(Vec<u8>),
    /// It is over.
    Done(Outcome),
}

/// A name that is looked at, question by question: NID, L64, and LP with the L64 of another name where it has none of its own.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Finding {
    /// What is asked now.
    name: Name,
    rtype: Rtype,
    /// The name that has the identifiers, or the locators where only these were asked for.
    owner: Name,
    nids: Vec<Nid>,
    nids_ttl: u32,
    /// An LP record has led here: it is not to lead elsewhere.
    pointed: bool,
    /// How long what led here may be believed, seconds: where it leads to is not true for longer.
    pointer_ttl: u32,
    malformed: u64,
}

impl Finding {
    /// Everything of a name, and the first question.
    pub fn node(name: &Name) -> (Self, Vec<u8>) {
        Self::begin(name, Rtype::NID)
    }

    /// Only where it is.
    pub fn locators(name: &Name) -> (Self, Vec<u8>) {
        Self::begin(name, Rtype::L64)
    }

    fn begin(name: &Name, rtype: Rtype) -> (Self, Vec<u8>) {
        let finding = Self {
            name: name.clone(),
            rtype,
            owner: name.clone(),
            nids: Vec::new(),
            nids_ttl: u32::MAX,
            pointed: false,
            pointer_ttl: u32::MAX,
            malformed: 0,
        };
        (finding, question(name, rtype))
    }

    /// Records that were not understood.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// A server's answer to the last question; nothing if none has answered. `identity_prefix` is no place.
    pub fn on_answer(&mut self, answer: Option<&[u8]>, identity_prefix: Locator) -> Step {
        let Some(answer) = answer else {
            return Step::Done(Outcome::Unknown);
        };
        let absent = |ttl| Step::Done(Outcome::Absent { ttl });
        let records = match (read_answer(answer, &self.name, self.rtype), self.rtype) {
            (Said::Records(records), _) => records,
            (Said::Refused, _) => return Step::Done(Outcome::Unknown),
            // RFC 6742 section 2.4: a network that moves changes the L64 records of one name for all its nodes
            (Said::Nothing { .. }, Rtype::L64) if !self.pointed => {
                return self.ask(self.name.clone(), Rtype::LP);
            }
            (Said::Nothing { ttl }, _) => return absent(ttl.min(self.pointer_ttl)),
        };
        match self.rtype {
            Rtype::NID => {
                let ttl = records.ttl;
                self.owner = records.name.clone();
                self.nids = self.read(&records, read_nid);
                self.nids_ttl = ttl;
                if self.nids.is_empty() {
                    return absent(ttl);
                }
                // RFC 6742 section 2.1: what was an alias for one type is one for all
                self.ask(records.name, Rtype::L64)
            }
            Rtype::LP => {
                let targets = self.read(&records, read_lp);
                self.pointed = true;
                // RFC 1035 section 3.2.1: a record may be believed for its own time, whatever it points at
                self.pointer_ttl = records.ttl;
                match targets.into_iter().next() {
                    Some(target) => self.ask(target, Rtype::L64),
                    None => absent(records.ttl),
                }
            }
            _ => {
                let ttl = records.ttl.min(self.pointer_ttl);
                let usable = |data: &[u8]| read_l64(data).filter(|(_, l)| *l != identity_prefix);
                let mut locators = self.read(&records, |data| {
                    usable(data).map(|(preference, l)| (preference, (l, preference)))
                });
                locators.truncate(MOST_LOCATORS);
                if locators.is_empty() {
                    return absent(ttl);
                }
                if self.nids.is_empty() && !self.pointed {
                    self.owner = records.name;
                }
                Step::Done(Outcome::Node(Node {
                    name: self.owner.clone(),
                    nids: self.nids.iter().take(MOST_NIDS).copied().collect(),
                    nids_ttl: self.nids_ttl,
                    locators,
                    locators_ttl: ttl,
                }))
            }
        }
    }

    fn ask(&mut self, name: Name, rtype: Rtype) -> Step {
        (self.name, self.rtype) = (name, rtype);
        Step::Ask(question(&self.name, rtype))
    }

    /// The data of records that is well formed, by preference: lower is better (RFC 6742 section 2.1.1).
    fn read<T>(&mut self, records: &Records, read: impl Fn(&[u8]) -> Option<(u16, T)>) -> Vec<T> {
        let mut all: Vec<(u16, T)> = records
            .data
            .iter()
            .filter_map(|data: &Bytes| read(data))
            .collect();
        self.malformed += (records.data.len() - all.len()) as u64;
        all.sort_by_key(|(preference, _)| *preference);
        all.into_iter().map(|(_, value)| value).collect()
    }
}

/// NID record data (RFC 6742 section 2.1.1). Zero is no node's.
fn read_nid(data: &[u8]) -> Option<(u16, Nid)> {
    let (preference, value) = read_pair(data)?;
    (value != 0).then_some((preference, Nid(value)))
}

/// L64 record data (RFC 6742 section 2.3.1).
fn read_l64(data: &[u8]) -> Option<(u16, Locator)> {
    let (preference, value) = read_pair(data)?;
    Some((preference, Locator(value))).filter(|(_, locator)| locator.is_routable())
}

/// LP record data (RFC 6742 section 2.4.1): its name is not compressed.
fn read_lp(data: &[u8]) -> Option<(u16, Name)> {
    let (preference, name) = data.split_first_chunk::<2>()?;
    let name = Name::from_octets(Bytes::copy_from_slice(name)).ok()?;
    Some((u16::from_be_bytes(*preference), name))
}

fn read_pair(data: &[u8]) -> Option<(u16, u64)> {
    let (preference, value) = data.split_first_chunk::<2>()?;
    let value = u64::from_be_bytes(value.try_into().ok()?);
    Some((u16::from_be_bytes(*preference), value))
}
