//! Messages of one size at a constant rate.

use super::account::Account;
use super::connection::{Connection, SendRefused};
use crate::time::{Duration, Instant};
use crate::units::{BitRate, Bytes};

/// The sender. What is due while there is no room is not sent.
#[derive(Debug)]
pub(super) struct ConstantRate {
    message: u64,
    interval: Duration,
    total: Option<u64>,
    /// When the next message is due.
    next: Option<Instant>,
}

impl ConstantRate {
    pub fn new(rate: BitRate, message: Bytes, total: Option<Bytes>) -> Self {
        Self {
            message: message.bytes(),
            interval: rate.time_for(message.bytes()),
            total: total.map(|total| total.bytes()),
            next: None,
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

    /// Whether all of it was sent.
    pub fn is_complete(&self) -> bool {
        self.next.is_none() && self.total.is_some()
    }

    /// Sends what is due.
    pub fn on_timeout(&mut self, now: Instant, connection: &mut impl Connection, account: &mut Account) {
        while let Some(at) = self.next.filter(|at| *at <= now) {
            let left = self
                .total
                .map_or(self.message, |total| total - account.position.sent);
            connection.made_since(at - self.interval);
            match account.send(now, connection, left.min(self.message), true) {
                Ok(_) => {}
                Err(SendRefused::Full) => account.stats.messages_skipped += 1,
                Err(SendRefused::Closed) => {
                    self.next = None;
                    return;
                }
            }
            let finished = self.total.is_some_and(|total| total == account.position.sent);
            self.next = (!finished).then_some(at + self.interval);
        }
    }
}
