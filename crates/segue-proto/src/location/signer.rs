//! A key of the server's, and the updates that were signed with it last.

use super::Name;
use super::config::{Grant, KeyConfig};
use super::place::Place;
use super::rows::{self, Row, Taken};
use super::tsig::{Key, TsigRecord};
use bytes::Bytes;
use domain::base::iana::Rcode;
use std::collections::BTreeMap;

/// Updates of one key within one second that are told apart. A key whose holder needs more shall be given several.
const MOST_UPDATES_PER_SECOND: usize = 4096;

/// A key, and what was signed with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signer {
    key: Key,
    place: Place,
    grants: Vec<Grant>,
    /// Greatest Time Signed of an update taken (RFC 8945 section 5.2.3).
    latest: u64,
    /// MACs of the updates with that time, and their answers.
    seen: BTreeMap<Bytes, Rcode>,
}

/// What there is to be said to an update before it is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Nothing: it is new.
    New,
    /// It came before one that was taken.
    Late,
    /// It is a retransmission, or a replay: the answer to the first.
    Repeated(Rcode),
    /// It is one too many for its second.
    TooMany,
}

impl Signer {
    pub fn new(config: &KeyConfig) -> Self {
        Self {
            place: Place::of(config.key.name()),
            key: config.key.clone(),
            grants: config.grants.clone(),
            latest: 0,
            seen: BTreeMap::new(),
        }
    }

    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Whether records at `name` may be changed.
    pub fn may_change(&self, name: &Name) -> bool {
        self.grants.iter().any(|g| g.covers(name))
    }

    /// Where an update stands among those of its key (RFC 8945 section 5.2.3).
    pub fn order(&self, tsig: &TsigRecord) -> Order {
        if tsig.time_signed < self.latest {
            return Order::Late;
        }
        if tsig.time_signed > self.latest {
            return Order::New;
        }
        match self.seen.get(&tsig.mac) {
            Some(rcode) => Order::Repeated(*rcode),
            None if self.seen.len() >= MOST_UPDATES_PER_SECOND => Order::TooMany,
            None => Order::New,
        }
    }

    /// An update was answered. What is to be kept of it.
    pub fn remember(&mut self, tsig: &TsigRecord, rcode: Rcode) -> Vec<Row> {
        let mut out = Vec::new();
        if tsig.time_signed > self.latest {
            self.latest = tsig.time_signed;
            let old = core::mem::take(&mut self.seen);
            out.extend(old.keys().map(|mac| rows::seen(&self.place, mac, None)));
            out.push(rows::latest(&self.place, self.latest));
        }
        out.push(rows::seen(&self.place, &tsig.mac, Some(rcode)));
        // A copy: what came is a part of the whole message.
        self.seen.insert(Bytes::copy_from_slice(&tsig.mac), rcode);
        out
    }

    /// All that is kept.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        let latest = (self.latest > 0).then(|| rows::latest(&self.place, self.latest));
        let seen = self.seen.iter();
        latest
            .into_iter()
            .chain(seen.map(|(mac, rcode)| rows::seen(&self.place, mac, Some(*rcode))))
    }

    /// What was kept, row by row.
    pub fn restore(&mut self, taken: Taken) {
        match taken {
            Taken::Latest(time) => self.latest = time,
            Taken::Update { mac, rcode } => {
                self.seen.insert(mac, rcode);
            }
        }
    }
}
