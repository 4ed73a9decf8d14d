//! Asking servers: over UDP from ports and with numbers that cannot be guessed (RFC 5452), over TCP where an answer does not fit.
//!
//! An answer is one if it comes from a server that was asked, to the port that it was asked from, with the number and the question
//! in the letters that it was asked with. All else is counted, and changes nothing.

use super::config::Server;
use super::message::{HEADER, question_name};
use bytes::Bytes;
use segue_proto::location::Datagram;
use segue_proto::random::SecretRng;
use segue_proto::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// How long each transmission waits for its answer.
const PATIENCE: [Duration; 3] = [
    Duration::from_millis(700),
    Duration::from_millis(1400),
    Duration::from_millis(2800),
];
/// A port that was not to be had: another, soon.
const SOON: Duration = Duration::from_millis(10);
/// First of the ports that are asked from (RFC 6335 section 6: the dynamic ones).
const FIRST_PORT: u16 = 49_152;

/// A question under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AskId(u64);

/// A question for a server over TCP.
#[derive(Clone, PartialEq, Debug)]
pub struct StreamQuestion {
    /// Which.
    pub id: AskId,
    /// The server.
    pub server: Server,
    /// The message.
    pub message: Bytes,
}

/// What is asked, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Over UDP; an answer that says that it is truncated is an answer.
    Datagram,
    /// Over UDP, and over TCP where the answer says that it is truncated.
    Whole,
    /// Over TCP.
    Stream,
}

/// Packets that came to nothing, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct UpstreamCounters {
    /// Questions sent, repeated ones too.
    pub sent: u64,
    /// Questions sent over TCP.
    pub sent_over_tcp: u64,
    /// Answers taken.
    pub answers: u64,
    /// Questions that no server answered.
    pub unanswered: u64,
    /// To a port from which nothing is asked any more.
    pub late: u64,
    /// From somebody who was not asked.
    pub wrong_source: u64,
    /// With another number or question, or no answer at all.
    pub wrong_answer: u64,
    /// In other letters than it was asked with, by a server that keeps them from now on.
    pub other_letters: u64,
}

struct ServerState {
    at: Server,
    /// It answers with the letters of the question as they were: capitals are part of what a forger has to guess.
    keeps_letters: bool,
}

struct Transaction {
    /// As it was asked for.
    message: Vec<u8>,
    /// Its end in the message.
    question_end: usize,
    way: Way,
    /// As it was sent.
    sent: Vec<u8>,
    port: u16,
    server: usize,
    /// Servers that were asked, a bit each: one may answer after the next was asked.
    asked: u16,
    attempts: usize,
    deadline: Instant,
}

/// What is asked of the servers. `ask` begins, `poll_done` gives the answer; the rest is the driver's.
pub(super) struct Upstream {
    servers: Vec<ServerState>,
    secrets: Box<dyn SecretRng>,
    transactions: BTreeMap<AskId, Transaction>,
    next: u64,
    datagrams: VecDeque<Datagram>,
    streams: VecDeque<StreamQuestion>,
    done: VecDeque<(AskId, Option<Bytes>)>,
    counters: UpstreamCounters,
}

/// What an answer is to a question.
enum Fit {
    Answer,
    OtherLetters,
    None,
}

impl Upstream {
    /// Of these servers, with numbers and ports from `secrets`.
    pub fn new(servers: &[Server], secrets: Box<dyn SecretRng>) -> Self {
        let state = |at: &Server| ServerState {
            at: *at,
            keeps_letters: true,
        };
        Self {
            servers: servers.iter().map(state).collect(),
            secrets,
            transactions: BTreeMap::new(),
            next: 0,
            datagrams: VecDeque::new(),
            streams: VecDeque::new(),
            done: VecDeque::new(),
            counters: UpstreamCounters::default(),
        }
    }

    /// Whether there is nobody to ask.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Everything counted.
    pub fn counters(&self) -> UpstreamCounters {
        self.counters
    }

    /// Asks a message with one question. Nothing if it has none.
    pub fn ask(&mut self, now: Instant, message: Vec<u8>, way: Way) -> Option<AskId> {
        let (_, question_end) = question_name(&message)?;
        let id = AskId(self.next);
        self.next += 1;
        let transaction = Transaction {
            message,
            question_end,
            way,
            sent: Vec::new(),
            port: 0,
            server: 0,
            asked: 0,
            attempts: 0,
            deadline: now,
        };
        self.transactions.insert(id, transaction);
        self.compose(id);
        self.send(now, id);
        Some(id)
    }

    /// Nobody waits for the answer any more.
    pub fn cancel(&mut self, id: AskId) {
        self.transactions.remove(&id);
    }

    /// Ports from which questions are under way over UDP.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        let all = self.transactions.values();
        all.filter(|t| t.way != Way::Stream).map(|t| t.port)
    }

    /// Has every question at this port.
    #[cfg(test)]
    pub fn have_port(&mut self, port: u16) {
        for transaction in self.transactions.values_mut() {
            transaction.port = port;
        }
    }

    /// Whether an answer over TCP is waited for.
    pub fn waits_for(&self, id: AskId) -> bool {
        self.transactions.get(&id).is_some_and(|t| t.way == Way::Stream)
    }

    /// Whether a question was asked from this port.
    pub fn owns(&self, port: u16) -> bool {
        self.ports().any(|own| own == port)
    }

    /// A datagram came to one of the ports.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Datagram) {
        let all = self.transactions.iter();
        let mut of_port = all.filter(|(_, t)| t.way != Way::Stream && t.port == datagram.local_port);
        let Some((&id, transaction)) = of_port.next() else {
            self.counters.late += 1;
            return;
        };
        let from = Server {
            address: datagram.peer,
            port: datagram.peer_port,
        };
        let server = self.servers.iter().position(|s| s.at == from);
        let Some(server) = server.filter(|n| transaction.asked & (1 << n) != 0) else {
            self.counters.wrong_source += 1;
            return;
        };
        match fit(transaction, &datagram.data) {
            Fit::Answer => self.on_answer(now, id, &datagram.data),
            Fit::OtherLetters => {
                // whoever can say this could have given a wrong answer
                self.counters.other_letters += 1;
                self.servers[server].keeps_letters = false;
                self.compose(id);
                self.send(now, id);
            }
            Fit::None => self.counters.wrong_answer += 1,
        }
    }

    /// What came of a question over TCP: a message, or nothing.
    pub fn handle_stream(&mut self, now: Instant, id: AskId, answer: Option<&Bytes>) {
        let Some(transaction) = self.transactions.get_mut(&id).filter(|t| t.way == Way::Stream) else {
            self.counters.late += 1;
            return;
        };
        match answer.map(|answer| (answer, fit(transaction, answer))) {
            Some((answer, Fit::Answer | Fit::OtherLetters)) => self.on_answer(now, id, answer),
            Some((_, Fit::None)) => {
                self.counters.wrong_answer += 1;
                self.again(now, id);
            }
            None => self.again(now, id),
        }
    }

    /// A datagram could not be sent from its port: another is tried.
    pub fn handle_port_taken(&mut self, now: Instant, port: u16) {
        let all = self.transactions.iter();
        let of_port = all.filter(|(_, t)| t.way != Way::Stream && t.port == port);
        let Some(id) = of_port.map(|(id, _)| *id).next() else {
            return;
        };
        self.compose(id);
        if let Some(transaction) = self.transactions.get_mut(&id) {
            transaction.deadline = now + SOON;
        }
    }

    /// Sends again what was not answered in time, and gives up what never was.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = self.transactions.iter().filter(|(_, t)| t.deadline <= now);
        let due: Vec<AskId> = due.map(|(id, _)| *id).collect();
        for id in due {
            self.again(now, id);
        }
    }

    /// The next datagram for a server.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.datagrams.pop_front()
    }

    /// The next question for a server over TCP.
    pub fn poll_stream(&mut self) -> Option<StreamQuestion> {
        self.streams.pop_front()
    }

    /// The next question that is over, with its answer.
    pub fn poll_done(&mut self) -> Option<(AskId, Option<Bytes>)> {
        self.done.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.transactions.values().map(|t| t.deadline).min()
    }

    fn on_answer(&mut self, now: Instant, id: AskId, answer: &Bytes) {
        let Some(transaction) = self.transactions.get_mut(&id) else {
            return;
        };
        let (truncated, rcode) = (answer[2] & 0x02 != 0, answer[3] & 0x0f);
        if truncated && transaction.way == Way::Whole {
            transaction.way = Way::Stream;
            self.send(now, id);
            return;
        }
        // SERVFAIL, REFUSED: this server cannot or does not want to
        let others = self.servers.len() > transaction.asked.count_ones() as usize;
        if matches!(rcode, 2 | 5) && others && transaction.attempts < PATIENCE.len() {
            self.again(now, id);
            return;
        }
        self.counters.answers += 1;
        self.transactions.remove(&id);
        self.done.push_back((id, Some(answer.clone())));
    }

    fn again(&mut self, now: Instant, id: AskId) {
        let Some(transaction) = self.transactions.get_mut(&id) else {
            return;
        };
        if transaction.attempts >= PATIENCE.len() {
            self.counters.unanswered += 1;
            self.transactions.remove(&id);
            self.done.push_back((id, None));
            return;
        }
        transaction.server = (transaction.server + 1) % self.servers.len();
        self.send(now, id);
    }

    /// Gives a question a number, a port and letters that nobody can know. All its transmissions have them: a late answer to
    /// an early one is as good.
    fn compose(&mut self, id: AskId) {
        let mut port = self.port();
        while self.transactions.values().any(|t| t.port == port) {
            port = self.port();
        }
        let (number, letters) = (self.secrets.secret_u32() as u16, self.secrets.secret_u64());
        let Some(transaction) = self.transactions.get_mut(&id) else {
            return;
        };
        transaction.port = port;
        transaction.asked = 0;
        transaction.sent.clone_from(&transaction.message);
        transaction.sent[..2].copy_from_slice(&number.to_be_bytes());
        if self.servers.iter().all(|s| s.keeps_letters) {
            let name = &mut transaction.sent[HEADER..transaction.question_end - 5];
            for (place, byte) in name.iter_mut().enumerate() {
                // lengths of labels are no letters
                if byte.is_ascii_alphabetic() && letters >> (place % 64) & 1 == 1 {
                    *byte ^= 0x20;
                }
            }
        }
    }

    fn port(&mut self) -> u16 {
        FIRST_PORT | self.secrets.secret_u32() as u16
    }

    fn send(&mut self, now: Instant, id: AskId) {
        let Some(transaction) = self.transactions.get_mut(&id) else {
            return;
        };
        let Some(server) = self.servers.get(transaction.server).map(|s| s.at) else {
            return;
        };
        let patience = PATIENCE[transaction.attempts.min(PATIENCE.len() - 1)];
        transaction.attempts += 1;
        transaction.deadline = now + patience;
        transaction.asked |= 1 << transaction.server;
        let message = Bytes::copy_from_slice(&transaction.sent);
        if transaction.way == Way::Stream {
            self.counters.sent_over_tcp += 1;
            self.streams.push_back(StreamQuestion { id, server, message });
            return;
        }
        self.counters.sent += 1;
        self.datagrams.push_back(Datagram {
            peer: server.address,
            peer_port: server.port,
            local_port: transaction.port,
            data: message,
        });
    }
}

/// Whether a message answers a question: its number, and the question itself, which may be left out only by who could not read it.
fn fit(transaction: &Transaction, answer: &[u8]) -> Fit {
    let sent = &transaction.sent;
    if answer.len() < HEADER || answer[..2] != sent[..2] || answer[2] & 0xf8 != 0x80 {
        return Fit::None;
    }
    let rcode = answer[3] & 0x0f;
    if answer[4..6] == [0, 0] {
        return if rcode == 0 { Fit::None } else { Fit::Answer };
    }
    let place = HEADER..transaction.question_end;
    match answer.get(place.clone()) {
        _ if answer[4..6] != [0, 1] => Fit::None,
        Some(question) if question == &sent[place.clone()] => Fit::Answer,
        Some(question) if question.eq_ignore_ascii_case(&sent[place]) => Fit::OtherLetters,
        _ => Fit::None,
    }
}
