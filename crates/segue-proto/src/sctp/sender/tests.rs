//! The sender by itself. What is under way, and what waits, are tested with nothing else; the rest with a [`Rig`](rig::Rig).

mod cuc;
mod fast_retransmit;
mod flight;
mod messages;
mod model;
mod probes;
pub(in crate::sctp) mod rig;
mod sack;
mod timeouts;
mod transmit;

use super::chunk::Cause;
use super::loss_detection::LossDetector;
use super::*;
use crate::sctp::ids::PathId;
use crate::sctp::multipath::Cuc;
use crate::sctp::testing::{FIRST, SECOND, ms};
use crate::sctp::{Config, Reliability, SendOptions};
use crate::time::{Duration, Instant};
use rig::Rig;
use segue_wire::{Data, Tsn};

const RTO: Duration = Duration::from_secs(1);

/// A queue, and what was sent of it.
struct Sending {
    queue: SendQueue,
    flight: Flight,
    detector: LossDetector,
}

impl Sending {
    fn new() -> Self {
        Self::with(false, Cuc::Off)
    }

    fn with(by_order: bool, cuc: Cuc) -> Self {
        Self {
            queue: SendQueue::default(),
            flight: Flight::with(Tsn(1), by_order, cuc),
            detector: LossDetector::new(&Config::default()),
        }
    }

    fn push(&mut self, stream: u16, len: u32, options: SendOptions) {
        let data = Data::Synthetic { offset: 0, len };
        self.queue.push(ms(0), stream, data, options);
    }

    fn send(&mut self, path: PathId) -> (u32, u32, u16, bool, bool) {
        self.send_at(ms(0), path)
    }

    fn send_at(&mut self, at: Instant, path: PathId) -> (u32, u32, u16, bool, bool) {
        let transmission = self.detector.on_sent(at);
        let content = self.queue.cut(1000, false).expect("it waits");
        let (tsn, s) = self.flight.send(at, content, path, RTO, transmission);
        let c = s.about();
        (tsn.0, s.len(), c.ssn.0, c.beginning, c.ending)
    }

    fn resend(&mut self, at: Instant, tsn: u32, path: PathId) -> bool {
        let again = |former, moves| self.detector.on_sent_again(at, former, moves);
        self.flight.resend(at, Tsn(tsn), path, RTO, again).is_some()
    }

    /// Chunks of 100 bytes on these paths, a millisecond apart.
    fn flight(paths: &[PathId]) -> Self {
        let mut s = Self::new();
        s.fly(paths);
        s
    }

    fn fly(&mut self, paths: &[PathId]) {
        for (n, &path) in (0..).zip(paths) {
            self.push(0, 100, SendOptions::default());
            self.send_at(ms(n), path);
        }
    }

    fn buffered(&self) -> usize {
        self.queue.buffered() + self.flight.held()
    }
}
