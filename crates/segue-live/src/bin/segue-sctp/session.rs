//! One association of `listen` and `connect`, what is done with it, and how all of them end.

use crate::receiver::{Mismatch, Receiver};
use crate::script::Script;
use crate::sender::Sender;
use crate::setup::{Ending, Output};
use anyhow::Result;
use segue_proto::sctp::{Association, AssociationId, Counters};
use segue_proto::{Duration, Instant};

/// An association and what is done with it.
pub(crate) struct Session {
    pub(crate) id: AssociationId,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) script: Script,
    pub(crate) next_step: usize,
    pub(crate) connected: Option<Instant>,
    /// When the first message was given to the association.
    pub(crate) first_sent: Option<Instant>,
    /// Bytes that the peer has acknowledged, and when it last did.
    pub(crate) acknowledged: (u64, Instant),
    /// When everything to be sent had been acknowledged.
    pub(crate) finished: Option<Instant>,
    pub(crate) closing: bool,
    /// A step of the script was not done, or the peer refused it; or what came is not what was to come.
    pub(crate) failed: bool,
    pub(crate) counters: Counters,
}

impl Session {
    /// Takes what has arrived; `false` if it is not what was to come, which is said: the others go on.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        association: &mut Association,
        log: Option<&mut Output>,
    ) -> Result<bool> {
        let taken = self.receiver.take(now, association, log);
        self.counters = association.counters();
        match taken {
            Ok(()) => Ok(true),
            Err(error) if error.is::<Mismatch>() => {
                eprintln!("segue-sctp: association {}: {error}", self.id.0);
                self.failed = true;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Since when there has been nothing to send and nothing has arrived.
    pub(crate) fn quiet_since(&self) -> Option<Instant> {
        let finished = self.finished?;
        Some(self.receiver.last().map_or(finished, |last| finished.max(last)))
    }

    /// When the peer last acknowledged something new, or something arrived.
    pub(crate) fn got_on(&self) -> Instant {
        let acknowledged = self.acknowledged.1;
        self.receiver
            .last()
            .map_or(acknowledged, |last| acknowledged.max(last))
    }

    /// Bytes given to the association, echoes included.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sender.sent_bytes() + self.receiver.echoed().0
    }

    /// Notes when the first byte was sent and the last acknowledged.
    pub(crate) fn note_sent(&mut self, now: Instant, association: &Association, send_buffer: u64) {
        let sent = self.sent_bytes();
        if sent > 0 {
            self.first_sent.get_or_insert(now);
        }
        let waiting = send_buffer.saturating_sub(association.send_space() as u64);
        let acknowledged = sent.saturating_sub(waiting);
        if acknowledged > self.acknowledged.0 {
            self.acknowledged = (acknowledged, now);
        }
    }

    /// Bytes that were acknowledged, and how long that took from the first one sent.
    pub(crate) fn sent_flow(&self) -> (u64, Duration) {
        let (bytes, last) = self.acknowledged;
        (
            bytes,
            self.first_sent.map_or(Duration::ZERO, |first| last.since(first)),
        )
    }
}

/// A signal has asked for the end: associations are shut down, and each is aborted when it does not get on any more.
#[derive(Clone, Copy)]
pub(crate) struct Shutdown {
    pub(crate) cause: Ending,
    pub(crate) since: Instant,
}

/// How long a peer that does not answer is waited for at the end.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(3);

impl Shutdown {
    /// When a peer that does not answer is not waited for any longer; it last `got_on` then.
    pub(crate) fn over_at(&self, got_on: Instant) -> Instant {
        self.since.max(got_on) + SHUTDOWN_PATIENCE
    }
}

/// Bit/s; 0 of what took no time that could be measured.
pub(crate) fn rate((bytes, time): (u64, Duration)) -> f64 {
    if time == Duration::ZERO {
        0.0
    } else {
        8.0 * bytes as f64 / time.as_secs_f64()
    }
}
