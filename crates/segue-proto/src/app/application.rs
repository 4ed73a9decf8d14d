//! What all applications have in common: their connection, what they report, and which machine does what is its kind's.

use super::account::{Account, Outgoing, Position};
use super::config::Kind;
use super::connection::Connection;
use super::machine::Machine;
use super::{AppEvent, Record, Stats};
use crate::random::Stream;
use crate::time::Instant;
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
    account: Account,
    connected: bool,
    /// Everything was sent, and answered where there are answers.
    finished: bool,
    events: VecDeque<AppEvent>,
}

impl Application {
    /// An application that is not connected yet. One whose kind leaves something to chance draws from `random`, a stream of
    /// its own.
    #[must_use]
    pub fn new(kind: &Kind, random: impl FnOnce() -> Stream) -> Self {
        let (machine, outgoing) = Machine::new(kind, random);
        Self {
            kind: kind.clone(),
            machine,
            outgoing,
            account: Account::default(),
            connected: false,
            finished: false,
            events: VecDeque::new(),
        }
    }

    /// Whether it sends nothing, and waits for what its peer sends.
    #[must_use]
    pub const fn only_receives(&self) -> bool {
        matches!(self.kind, Kind::Sink | Kind::VoiceReceiver)
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.account.stats
    }

    /// What its kind alone keeps an account of.
    #[must_use]
    pub fn record(&self) -> Option<Record<'_>> {
        self.machine.record()
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
        if self.machine.goes_on() {
            self.outgoing = Outgoing::default();
        } else {
            let unused = || Stream::new(0, "of a kind that leaves nothing to chance");
            (self.machine, self.outgoing) = Machine::new(&self.kind, unused);
        }
        self.account.position = Position::default();
        self.finished = false;
    }

    /// The connection is established.
    pub fn on_connected(&mut self, now: Instant, connection: &mut impl Connection) {
        self.connected = true;
        self.events.push_back(AppEvent::Connected);
        self.machine.on_connected(now);
        self.on_timeout(now, connection);
        self.flush(now, connection);
    }

    /// Messages can be received: takes all there are.
    pub fn on_readable<C: Connection>(&mut self, now: Instant, connection: &mut C) {
        if let Machine::Telephone(_) = self.machine {
            cold_path();
            while connection.recv(|parts, last| self.hear(now, parts, last)) {}
        } else if let Machine::ObjectServer(_) = self.machine {
            cold_path();
            while connection.recv(|parts, last| self.serve(now, parts, last)) {}
        } else {
            while connection.recv(|parts, last| self.take(now, parts, last, C::IN_ORDER)) {}
        }
        self.on_timeout(now, connection);
        self.flush(now, connection);
    }

    /// There is room in the send buffer again.
    pub fn on_writable(&mut self, now: Instant, connection: &mut impl Connection) {
        self.flush(now, connection);
        match &mut self.machine {
            Machine::Web(web) => web.flush(now, connection, &mut self.account),
            Machine::Video(video) => video.flush(now, connection, &mut self.account),
            _ => {}
        }
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
            Machine::ConstantRate(sender) => sender.is_complete(),
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
        self.machine.on_closed();
    }

    /// Does what is due.
    #[inline]
    pub fn on_timeout(&mut self, now: Instant, connection: &mut impl Connection) {
        if self.machine.has_timers() {
            self.do_what_is_due(now, connection);
        }
    }

    #[inline(never)]
    fn do_what_is_due(&mut self, now: Instant, connection: &mut impl Connection) {
        match &mut self.machine {
            Machine::ConstantRate(sender) => sender.on_timeout(now, connection, &mut self.account),
            Machine::OnOff(source) => source.on_timeout(now, connection, &mut self.account),
            Machine::Web(web) => {
                web.on_timeout(now);
                web.flush(now, connection, &mut self.account);
            }
            Machine::Video(video) => {
                video.on_timeout(now);
                video.flush(now, connection, &mut self.account);
                if video.is_complete() {
                    self.finish(now, connection);
                }
            }
            Machine::Telephone(telephone) => {
                if let Some(speaker) = &mut telephone.speaker {
                    speaker.on_timeout(now, connection, &mut self.account);
                }
            }
            Machine::Client(client) => {
                client.on_timeout(now, &mut self.outgoing);
                let complete = client.is_complete();
                self.flush(now, connection);
                if complete {
                    self.finish(now, connection);
                }
            }
            _ => {}
        }
    }

    /// When `on_timeout` must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
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
        if self.account.position.received == 0 {
            cold_path();
            self.note_first_byte(now);
        }
        let Account { position, stats } = &mut self.account;
        stats.last_received = Some(now);
        for part in parts {
            position.corrupt |= if in_order {
                !part.is_synthetic_at(position.received)
            } else {
                part.synthetic_offset().is_none()
            };
            position.received += part.len() as u64;
            stats.bytes_received += part.len() as u64;
        }
        if last {
            stats.messages_received += 1;
            stats.messages_corrupt += u64::from(core::mem::take(&mut position.corrupt));
        }
        if let Machine::Client(_) | Machine::Server(_) | Machine::Web(_) | Machine::Video(_) = self.machine {
            self.count_messages(now);
        }
    }

    /// A message of a call is received, or a piece of one. Each says by itself where it belongs.
    fn hear(&mut self, now: Instant, parts: &[Data], last: bool) {
        if self.account.position.received == 0 {
            self.note_first_byte(now);
        }
        let Account { position, stats } = &mut self.account;
        stats.last_received = Some(now);
        for part in parts {
            position.corrupt |= part.synthetic_offset().is_none();
            position.received += part.len() as u64;
            stats.bytes_received += part.len() as u64;
        }
        if last {
            stats.messages_received += 1;
            let corrupt = core::mem::take(&mut position.corrupt);
            stats.messages_corrupt += u64::from(corrupt);
            let offset = parts.first().and_then(Data::synthetic_offset);
            if let (Machine::Telephone(telephone), Some(offset), false) = (&mut self.machine, offset, corrupt)
            {
                telephone.hearing.on_message(now, offset);
            }
        }
    }

    /// A message of a client is received that asks for objects, or a piece of one.
    fn serve(&mut self, now: Instant, parts: &[Data], last: bool) {
        if self.account.position.received == 0 {
            self.note_first_byte(now);
        }
        let Account { position, stats } = &mut self.account;
        stats.last_received = Some(now);
        stats.messages_received += u64::from(last);
        for part in parts {
            position.received += part.len() as u64;
            stats.bytes_received += part.len() as u64;
        }
        if let Machine::ObjectServer(server) = &mut self.machine {
            for part in parts {
                server.on_received(part, &mut self.account, &mut self.outgoing);
            }
        }
    }

    #[inline(never)]
    fn note_first_byte(&mut self, now: Instant) {
        let stats = &mut self.account.stats;
        stats.first_received = stats.first_received.or(Some(now));
        self.events.push_back(AppEvent::FirstByte);
    }

    /// Requests and responses that have arrived whole.
    #[inline(never)]
    fn count_messages(&mut self, now: Instant) {
        match &mut self.machine {
            Machine::Client(client) => {
                let latency = client.on_received(now, &mut self.account);
                self.events
                    .extend(latency.map(|latency| AppEvent::ResponseReceived { latency }));
            }
            Machine::Web(web) => {
                let latency = web.on_received(now, &mut self.account);
                self.events
                    .extend(latency.map(|latency| AppEvent::ResponseReceived { latency }));
            }
            Machine::Video(video) => {
                let latency = video.on_received(now, &mut self.account);
                self.events
                    .extend(latency.map(|latency| AppEvent::ResponseReceived { latency }));
            }
            Machine::Server(server) => server.on_received(&mut self.account, &mut self.outgoing),
            _ => {}
        }
    }

    #[inline]
    fn flush(&mut self, now: Instant, connection: &mut impl Connection) {
        if self.outgoing.left != Some(0) {
            self.outgoing.flush(now, connection, &mut self.account);
        }
    }

    fn finish(&mut self, now: Instant, connection: &mut impl Connection) {
        if !core::mem::replace(&mut self.finished, true) {
            self.events.push_back(AppEvent::TransferComplete {
                bytes: self.account.position.sent,
            });
            connection.close(now);
        }
    }
}
