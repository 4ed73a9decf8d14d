//! Requests of one size, one after the other, and their responses, of another.

use super::account::{Account, Outgoing};
use crate::time::{Duration, Instant};
use crate::units::Bytes;

/// Who asks.
#[derive(Debug)]
pub(super) struct Client {
    request: u64,
    response: u64,
    think: Duration,
    left: Option<u64>,
    /// When the next request is sent.
    next: Option<Instant>,
    /// When the current one was.
    asked: Option<Instant>,
}

/// Who answers.
#[derive(Debug)]
pub(super) struct Server {
    request: u64,
    response: u64,
}

impl Client {
    pub fn new(request: Bytes, response: Bytes, think: Duration, count: Option<u64>) -> Self {
        Self {
            request: request.bytes(),
            response: response.bytes(),
            think,
            left: count,
            next: None,
            asked: None,
        }
    }

    pub fn on_connected(&mut self, now: Instant) {
        self.next = Some(now);
    }

    pub fn on_closed(&mut self) {
        self.next = None;
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Adds a request to what is to be sent, if one is due.
    pub fn on_timeout(&mut self, now: Instant, outgoing: &mut Outgoing) {
        if self.next.take_if(|at| *at <= now).is_some() {
            self.asked = Some(now);
            self.left = self.left.map(|l| l.saturating_sub(1));
            outgoing.add(self.request);
        }
    }

    /// Counts the response if it is complete, and returns its latency.
    pub fn on_received(&mut self, now: Instant, account: &mut Account) -> Option<Duration> {
        let Account { position, stats } = account;
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

    /// Whether every request was answered.
    pub fn is_complete(&self) -> bool {
        self.left == Some(0) && self.asked.is_none() && self.next.is_none()
    }
}

impl Server {
    pub fn new(request: Bytes, response: Bytes) -> Self {
        Self {
            request: request.bytes(),
            response: response.bytes(),
        }
    }

    /// Adds the responses to whole requests that have arrived to what is to be sent.
    pub fn on_received(&mut self, account: &mut Account, outgoing: &mut Outgoing) {
        let asked = account.position.received / self.request;
        let answered = core::mem::replace(&mut account.position.responses, asked);
        account.stats.responses += asked - answered;
        outgoing.add((asked - answered) * self.response);
    }
}
