//! The machines of the applications.

use super::config::Kind;
use super::connection::{Connection, SendRefused};
use super::{AppEvent, Stats};
use crate::time::{Duration, Instant};
use core::hint::cold_path;
use segue_wire::Data;
use std::collections::VecDeque;

/// An application on one connection.
///
/// Its host calls it when the connection is established, readable, writable or gone, and at `poll_timeout`; it acts
/// on the connection it is given then.
#[derive(Debug)]
pub struct Application {
    kind: Kind,
    machine: Machine,
    outgoing: Outgoing,
    stats: Stats,
    position: Position,
    connected: bool,
    /// Everything was sent, and answered where there are answers.
    finished: bool,
    events: VecDeque<AppEvent>,
}

/// How far the connection at hand is: what `Stats` counts of all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    sent: u64,
    received: u64,
    responses: u64,
    /// The message of which the end is still to come has a wrong byte.
    corrupt: bool,
}

#[derive(Debug)]
enum Machine {
    Bulk,
    Sink,
    ConstantRate {
        message: u64,
        interval: Duration,
        total: Option<u64>,
        next: Option<Instant>,
    },
    Client(Client),
    Server {
        request: u64,
        response: u64,
    },
}

#[derive(Debug)]
struct Client {
    request: u64,
    response: u64,
    think: Duration,
    left: Option<u64>,
    /// When the next request is sent.
    next: Option<Instant>,
    /// When the current one was.
    asked: Option<Instant>,
}

/// Bytes that wait for room in the send buffer.
#[derive(Debug)]
struct Outgoing {
    /// Bytes to send; `None` for no end.
    left: Option<u64>,
    /// Bytes per message; `None` for what travels in one piece.
    message: Option<u64>,
}

impl Application {
    /// An application that is not connected yet.
    #[must_use]
    pub fn new(kind: &Kind) -> Self {
        let (machine, outgoing) = Self::beginning(kind);
        Self {
            kind: kind.clone(),
            machine,
            outgoing,
            stats: Stats::default(),
            position: Position::default(),
            connected: false,
            finished: false,
            events: VecDeque::new(),
        }
    }

    fn beginning(kind: &Kind) -> (Machine, Outgoing) {
        let bytes = |b: &crate::units::Bytes| b.bytes();
        let mut outgoing = Outgoing {
            left: Some(0),
            message: None,
        };
        let machine = match kind {
            Kind::Bulk { total, message } => {
                outgoing = Outgoing {
                    left: total.as_ref().map(bytes),
                    message: message.as_ref().map(bytes),
                };
                Machine::Bulk
            }
            Kind::Sink => Machine::Sink,
            Kind::ConstantRate { rate, message, total } => Machine::ConstantRate {
                message: message.bytes(),
                interval: rate.time_for(message.bytes()),
                total: total.as_ref().map(bytes),
                next: None,
            },
            Kind::RequestClient {
                request,
                response,
                think,
                count,
            } => Machine::Client(Client {
                request: request.bytes(),
                response: response.bytes(),
                think: *think,
                left: *count,
                next: None,
                asked: None,
            }),
            Kind::RequestServer { request, response } => Machine::Server {
                request: request.bytes(),
                response: response.bytes(),
            },
        };
        (machine, outgoing)
    }

    /// Whether it sends nothing, and waits for what its peer sends.
    #[must_use]
    pub const fn only_receives(&self) -> bool {
        matches!(self.machine, Machine::Sink)
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The peer restarted: that connection is over, and the one that takes its place begins with nothing sent or
    /// received.
    pub fn on_restarted(&mut self, now: Instant, connection: &mut impl Connection) {
        self.on_closed(now);
        self.begin_anew();
        self.on_connected(now, connection);
    }

    /// The next connection is another one; what was counted stays.
    pub fn begin_anew(&mut self) {
        (self.machine, self.outgoing) = Self::beginning(&self.kind);
        self.position = Position::default();
        self.finished = false;
    }

    /// The connection is established.
    pub fn on_connected(&mut self, now: Instant, connection: &mut impl Connection) {
        self.connected = true;
        self.events.push_back(AppEvent::Connected);
        match &mut self.machine {
            Machine::ConstantRate { next, .. } => *next = Some(now),
            Machine::Client(client) => client.next = Some(now),
            _ => {}
        }
        self.on_timeout(now, connection);
        self.flush(now, connection);
    }

    /// Messages can be received: takes all there are.
    pub fn on_readable<C: Connection>(&mut self, now: Instant, connection: &mut C) {
        while connection.recv(|parts, last| self.take(now, parts, last, C::IN_ORDER)) {}
        self.on_timeout(now, connection);
        self.flush(now, connection);
    }

    /// There is room in the send buffer again.
    pub fn on_writable(&mut self, now: Instant, connection: &mut impl Connection) {
        self.flush(now, connection);
    }

    /// Everything sent so far has arrived.
    pub fn on_dry(&mut self, now: Instant, connection: &mut impl Connection) {
        self.flush(now, connection);
        if self.outgoing.left != Some(0) {
            return;
        }
        cold_path();
        let complete = match &self.machine {
            Machine::Bulk => true,
            Machine::ConstantRate { next, total, .. } => next.is_none() && total.is_some(),
            _ => false,
        };
        if complete {
            self.finish(now, connection);
        }
    }

    /// The connection is gone.
    pub fn on_closed(&mut self, _now: Instant) {
        if core::mem::take(&mut self.connected) {
            self.events.push_back(AppEvent::Disconnected);
        }
        match &mut self.machine {
            Machine::ConstantRate { next, .. } => *next = None,
            Machine::Client(client) => client.next = None,
            _ => {}
        }
    }

    /// Does what is due.
    #[inline]
    pub fn on_timeout(&mut self, now: Instant, connection: &mut impl Connection) {
        if let Machine::ConstantRate { .. } | Machine::Client(_) = self.machine {
            self.do_what_is_due(now, connection);
        }
    }

    #[inline(never)]
    fn do_what_is_due(&mut self, now: Instant, connection: &mut impl Connection) {
        match &mut self.machine {
            Machine::ConstantRate {
                message,
                interval,
                total,
                next,
            } => {
                while let Some(at) = next.filter(|at| *at <= now) {
                    let left = total.map_or(*message, |t| t - self.position.sent);
                    let len = left.min(*message);
                    match send(now, connection, (len, true), &mut self.position, &mut self.stats) {
                        Ok(_) => {}
                        Err(SendRefused::Full) => self.stats.messages_skipped += 1,
                        Err(SendRefused::Closed) => {
                            *next = None;
                            return;
                        }
                    }
                    let finished = total.is_some_and(|t| t == self.position.sent);
                    *next = (!finished).then_some(at + *interval);
                }
            }
            Machine::Client(client) => {
                if client.next.take_if(|at| *at <= now).is_some() {
                    client.asked = Some(now);
                    client.left = client.left.map(|l| l.saturating_sub(1));
                    self.outgoing.left = self.outgoing.left.map(|l| l + client.request);
                    self.outgoing
                        .flush(now, connection, &mut self.position, &mut self.stats);
                } else if client.is_finished() {
                    self.finish(now, connection);
                }
            }
            _ => {}
        }
    }

    /// When `on_timeout` must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.machine {
            Machine::ConstantRate { next, .. } => *next,
            Machine::Client(client) => client.next,
            _ => None,
        }
    }

    /// Whether [`poll_event`](Self::poll_event) has something to give.
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<AppEvent> {
        self.events.pop_front()
    }

    /// A message is received, or a piece of one, the last or not.
    fn take(&mut self, now: Instant, parts: &[Data], last: bool, in_order: bool) {
        if self.position.received == 0 {
            cold_path();
            self.note_first_byte(now);
        }
        self.stats.last_received = Some(now);
        for part in parts {
            self.position.corrupt |= if in_order {
                !part.is_synthetic_at(self.position.received)
            } else {
                part.synthetic_offset().is_none()
            };
            self.position.received += part.len() as u64;
            self.stats.bytes_received += part.len() as u64;
        }
        if last {
            self.stats.messages_received += 1;
            self.stats.messages_corrupt += u64::from(core::mem::take(&mut self.position.corrupt));
        }
        if let Machine::Client(_) | Machine::Server { .. } = self.machine {
            self.count_messages(now);
        }
    }

    #[inline(never)]
    fn note_first_byte(&mut self, now: Instant) {
        self.stats.first_received = self.stats.first_received.or(Some(now));
        self.events.push_back(AppEvent::FirstByte);
    }

    /// Requests and responses that have arrived whole.
    #[inline(never)]
    fn count_messages(&mut self, now: Instant) {
        match &mut self.machine {
            Machine::Client(client) => {
                let latency = client.on_received(now, &mut self.position, &mut self.stats);
                self.events
                    .extend(latency.map(|latency| AppEvent::ResponseReceived { latency }));
            }
            Machine::Server { request, response } => {
                let asked = self.position.received / *request;
                let answered = core::mem::replace(&mut self.position.responses, asked);
                self.stats.responses += asked - answered;
                self.outgoing.left = self.outgoing.left.map(|l| l + (asked - answered) * *response);
            }
            _ => {}
        }
    }

    #[inline]
    fn flush(&mut self, now: Instant, connection: &mut impl Connection) {
        if self.outgoing.left != Some(0) {
            self.outgoing
                .flush(now, connection, &mut self.position, &mut self.stats);
        }
    }

    fn finish(&mut self, now: Instant, connection: &mut impl Connection) {
        if !core::mem::replace(&mut self.finished, true) {
            self.events.push_back(AppEvent::TransferComplete {
                bytes: self.position.sent,
            });
            connection.close(now);
        }
    }
}

impl Client {
    /// Counts the response if it is complete, and returns its latency.
    fn on_received(&mut self, now: Instant, position: &mut Position, stats: &mut Stats) -> Option<Duration> {
        if position.received < (position.responses + 1) * self.response {
            return None;
        }
        let latency = now - self.asked.take()?;
        position.responses += 1;
        stats.responses += 1;
        stats.response_time += latency;
        if self.left != Some(0) {
            self.next = Some(now + self.think);
        }
        Some(latency)
    }

    fn is_finished(&self) -> bool {
        self.left == Some(0) && self.asked.is_none() && self.next.is_none()
    }
}

impl Outgoing {
    /// Sends as much as there is room for.
    fn flush(
        &mut self,
        now: Instant,
        connection: &mut impl Connection,
        position: &mut Position,
        stats: &mut Stats,
    ) {
        let whole = self.message.is_some();
        let size = self
            .message
            .unwrap_or_else(|| u64::from(connection.max_message()));
        while self.left != Some(0) {
            let len = self.left.map_or(size, |left| left.min(size));
            match send(now, connection, (len, whole), position, stats) {
                Ok(taken) => {
                    self.left = self.left.map(|left| left - taken);
                    if taken < len {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}

/// Sends one message of the synthetic sequence of that length; as a whole, or as much as there is room for. Returns the
/// bytes taken.
fn send(
    now: Instant,
    connection: &mut impl Connection,
    (len, whole): (u64, bool),
    position: &mut Position,
    stats: &mut Stats,
) -> Result<u64, SendRefused> {
    let len = u32::try_from(len).map_err(|_| SendRefused::Closed)?;
    let data = Data::Synthetic {
        offset: position.sent,
        len,
    };
    let taken = if whole {
        connection.send(now, data).map(|()| len)
    } else {
        connection.send_some(now, data)
    }?;
    let taken = u64::from(taken);
    position.sent += taken;
    stats.bytes_sent += taken;
    stats.messages_sent += 1;
    Ok(taken)
}
