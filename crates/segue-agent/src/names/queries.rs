//! Questions of applications that wait for servers.

use super::message::Query;
use super::upstream::AskId;
use super::{Asker, NODE_PATIENCE};
use bytes::Bytes;
use segue_proto::Instant;
use std::collections::BTreeMap;

/// Questions under way.
const MOST: usize = 256;
/// The same question under way: a server that asks this resolver in turn ends here.
const MOST_OF_ONE: usize = 16;
/// Questions under way of one connection: an answer may be 64 KiB, and who does not read has as many kept for him.
const MOST_OF_CONNECTION: usize = 16;

/// What the servers have said to the question itself.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Plain {
    /// Nothing yet.
    Waiting(AskId),
    /// This.
    Here(Bytes),
    /// None has answered.
    None,
}

/// A question that waits.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Waiting {
    pub asker: Asker,
    pub query: Query,
    pub plain: Plain,
    /// What is found out of the name, as long as that decides.
    finding: Option<u64>,
    /// When the answer that is there is given, whatever the name is.
    until: Option<Instant>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Queries {
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
}

impl Queries {
    /// Whether somebody has asked this before, by the same number: he sent it again.
    pub fn is_repeated(&self, asker: Asker, query: &Query) -> bool {
        let same = |w: &Waiting| w.asker == asker && w.query.id() == query.id() && w.query.is_same(query);
        self.waiting.values().any(same)
    }

    /// Whether one more may wait.
    pub fn has_room(&self, asker: Asker, query: &Query) -> bool {
        let same = self.waiting.values().filter(|w| w.query.is_same(query));
        let is_his = |w: &&Waiting| w.asker == asker && matches!(asker, Asker::Stream(_));
        let his = self.waiting.values().filter(is_his);
        self.waiting.len() < MOST && same.count() < MOST_OF_ONE && his.count() < MOST_OF_CONNECTION
    }

    /// Adds one.
    pub fn add(&mut self, asker: Asker, query: Query, ask: AskId, finding: Option<u64>) -> u64 {
        let number = self.next;
        self.next += 1;
        let waiting = Waiting {
            asker,
            query,
            plain: Plain::Waiting(ask),
            finding,
            until: None,
        };
        self.waiting.insert(number, waiting);
        number
    }

    /// The servers have answered the question itself, or none has.
    pub fn on_answer(&mut self, now: Instant, number: u64, plain: Plain) {
        if let Some(waiting) = self.waiting.get_mut(&number) {
            waiting.plain = plain;
            waiting.until = Some(now + NODE_PATIENCE);
        }
    }

    /// What was found out: the name is no node's, or nobody knows.
    pub fn on_no_node(&mut self, finding: u64) {
        for waiting in self.waiting.values_mut().filter(|w| w.finding == Some(finding)) {
            waiting.finding = None;
        }
    }

    /// What was found out: the name is a node's. Those who asked for it, and what is still asked for them.
    pub fn take_of_node(&mut self, finding: u64) -> Vec<(Asker, Query, Option<AskId>)> {
        let all = self.waiting.extract_if(.., |_, w| w.finding == Some(finding));
        let taken = all.map(|(_, w)| match w.plain {
            Plain::Waiting(ask) => (w.asker, w.query, Some(ask)),
            _ => (w.asker, w.query, None),
        });
        taken.collect()
    }

    /// Those that wait for nothing more.
    pub fn take_done(&mut self, now: Instant) -> Vec<Waiting> {
        let is_done = |w: &mut Waiting| {
            let answered = !matches!(w.plain, Plain::Waiting(_));
            answered && (w.finding.is_none() || w.until.is_some_and(|until| until <= now))
        };
        let done = self.waiting.extract_if(.., |_, w| is_done(w));
        done.map(|(_, waiting)| waiting).collect()
    }

    /// Somebody is gone. What was asked for him.
    pub fn forget(&mut self, asker: Asker) -> Vec<AskId> {
        let of_his = self.waiting.extract_if(.., |_, w| w.asker == asker);
        let asks = of_his.filter_map(|(_, w)| match w.plain {
            Plain::Waiting(ask) => Some(ask),
            _ => None,
        });
        asks.collect()
    }

    /// When the next answer is given that is there.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let all = self.waiting.values().filter(|w| w.finding.is_some());
        all.filter_map(|w| w.until).min()
    }
}
