//! A transport address of the peer: whether it may be used, and how often it did not answer (RFC 9260 sections 5.4 and
//! 8.2, RFC 7829 section 3.2).
//!
//! | from | by | to |
//! |---|---|---|
//! | Unconfirmed | a heartbeat that is answered | Active |
//! | Active | more errors than PFMR | PotentiallyFailed |
//! | Active, PotentiallyFailed | more errors than Path.Max.Retrans | Inactive |
//! | PotentiallyFailed, Inactive | an answer | Active |
//!
//! Beside that the peer may want nothing there for now: it is deactivated (see [`Asconf`](crate::sctp::asconf::Asconf)).

use crate::sctp::ids::PathId;
use crate::sctp::{Config, PathState};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;

/// A heartbeat that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeartbeatSent {
    nonce: u64,
    path: PathId,
    sent_at: Instant,
    /// One RTO after `sent_at`: then it counts as an error (section 8.2).
    expires: Instant,
    /// Data was acknowledged since, and the destination is in use again: it need not be answered.
    moot: bool,
}

impl HeartbeatSent {
    /// The path that it left over.
    pub(super) fn path(&self) -> PathId {
        self.path
    }

    pub(super) fn sent_at(&self) -> Instant {
        self.sent_at
    }
}

/// A transport address of the peer.
#[derive(Debug)]
pub(in crate::sctp) struct Destination {
    address: Ipv6Addr,
    state: PathState,
    /// Errors in a row.
    error_count: u32,
    /// UDP port it is reached at; `None` without UDP (RFC 6951 section 5.1).
    encapsulation: Option<u16>,
    /// The path from the current source address.
    path: PathId,
    /// When the next heartbeat is due.
    heartbeat_due: Option<Instant>,
    heartbeat: Option<HeartbeatSent>,
    /// When a router last reported that it cannot be reached.
    unreachable_at: Option<Instant>,
    /// The peer wants nothing there for now.
    deactivated: bool,
    /// It did not answer when the peer asked for another primary path (see `silent`).
    silent: bool,
}

impl Destination {
    /// One of which nothing is known but whether it may be used at once.
    pub(super) fn new(address: Ipv6Addr, usable: bool, encapsulation: Option<u16>, path: PathId) -> Self {
        Self {
            address,
            state: if usable {
                PathState::Active
            } else {
                PathState::Unconfirmed
            },
            error_count: 0,
            encapsulation,
            path,
            heartbeat_due: None,
            heartbeat: None,
            unreachable_at: None,
            deactivated: false,
            silent: false,
        }
    }

    pub(in crate::sctp) fn address(&self) -> Ipv6Addr {
        self.address
    }

    pub(in crate::sctp) fn state(&self) -> PathState {
        self.state
    }

    pub(in crate::sctp) fn error_count(&self) -> u32 {
        self.error_count
    }

    pub(super) fn encapsulation(&self) -> Option<u16> {
        self.encapsulation
    }

    /// The path from the current source address.
    pub(in crate::sctp) fn path(&self) -> PathId {
        self.path
    }

    pub(in crate::sctp) fn is_deactivated(&self) -> bool {
        self.deactivated
    }

    pub(in crate::sctp) fn is_confirmed(&self) -> bool {
        self.state != PathState::Unconfirmed
    }

    /// Whether new data goes there without a second thought.
    pub(in crate::sctp) fn is_usable(&self) -> bool {
        !self.deactivated && self.state == PathState::Active
    }

    /// Packets for it take this path from now on.
    pub(super) fn follow(&mut self, path: PathId) {
        self.path = path;
    }

    /// It is reached at this UDP port, or without UDP.
    pub(super) fn note_udp_port(&mut self, port: Option<u16>) {
        self.encapsulation = port;
    }

    /// Something sent there was not answered, or a router says that it cannot be reached.
    pub(super) fn count_error(&mut self) {
        self.error_count += 1;
    }

    /// The errors counted may be too many: returns the state if it is another one now.
    pub(super) fn degrade(&mut self, config: &Config) -> Option<PathState> {
        let errors = self.error_count;
        let state = match self.state {
            PathState::Active | PathState::PotentiallyFailed if errors > config.path_max_retrans => {
                PathState::Inactive
            }
            PathState::Active
                if config
                    .potentially_failed_after()
                    .is_some_and(|limit| errors > limit) =>
            {
                PathState::PotentiallyFailed
            }
            state => state,
        };
        if state == self.state {
            return None;
        }
        self.state = state;
        if state == PathState::PotentiallyFailed {
            // RFC 7829 section 3.2 item 4: the first heartbeat goes at once
            self.heartbeat_due = Some(Instant::ZERO);
        }
        Some(state)
    }

    /// It answered: its errors are forgotten. Returns the state that it had if it is in use again.
    pub(super) fn answers(&mut self) -> Option<PathState> {
        self.error_count = 0;
        let former = self.state;
        if !matches!(former, PathState::Inactive | PathState::PotentiallyFailed) {
            return None;
        }
        self.state = PathState::Active;
        if let Some(sent) = &mut self.heartbeat {
            sent.moot = true;
        }
        Some(former)
    }

    /// A heartbeat with the right nonce came back from it (section 5.4). Returns whether that was awaited.
    pub(super) fn confirm(&mut self) -> bool {
        let awaited = self.state == PathState::Unconfirmed;
        if awaited {
            self.state = PathState::Active;
        }
        awaited
    }

    /// A router says that it cannot be reached; returns whether that is to count, once per RTO.
    pub(super) fn note_unreachable(&mut self, now: Instant, rto: Duration) -> bool {
        if self.unreachable_at.is_some_and(|at| now < at + rto) {
            return false;
        }
        self.unreachable_at = Some(now);
        true
    }

    /// The peer wants nothing there for now.
    pub(super) fn deactivate(&mut self) {
        self.deactivated = true;
        self.stop_heartbeats();
    }

    /// The peer wants data there again; returns whether it had not.
    pub(super) fn activate(&mut self) -> bool {
        core::mem::take(&mut self.deactivated)
    }

    /// Whether it was silent when the peer asked for another primary path.
    pub(super) fn note_silence(&mut self, is_silent: bool) {
        self.silent = is_silent;
    }

    /// Whether it was noted as silent, which is forgotten with it.
    pub(super) fn take_silence(&mut self) -> bool {
        core::mem::take(&mut self.silent)
    }
}

/// Its heartbeats (section 8.3).
impl Destination {
    /// When the next is due.
    pub(super) fn heartbeat_due(&self) -> Option<Instant> {
        self.heartbeat_due
    }

    /// Whether one waits for its answer.
    pub(super) fn awaits_heartbeat_ack(&self) -> bool {
        self.heartbeat.is_some()
    }

    /// Whether it is not to be used before it answers, where there is another (section 5.4, RFC 7829 section 3.2).
    pub(super) fn is_to_be_probed(&self) -> bool {
        matches!(self.state, PathState::Unconfirmed | PathState::PotentiallyFailed)
    }

    /// The next timer of its heartbeats, [`Instant::MAX`] if none runs.
    pub(super) fn heartbeat_timer(&self) -> Instant {
        let expires = self.heartbeat.map_or(Instant::MAX, |sent| sent.expires);
        expires.min(self.heartbeat_due.unwrap_or(Instant::MAX))
    }

    /// The next heartbeat goes at `due`, or none.
    pub(super) fn schedule_heartbeat(&mut self, due: Option<Instant>) {
        self.heartbeat_due = due;
    }

    /// A heartbeat goes there, over the path that packets take now.
    pub(super) fn heartbeat_sent(&mut self, now: Instant, nonce: u64, rto: Duration) {
        self.heartbeat = Some(HeartbeatSent {
            nonce,
            path: self.path,
            sent_at: now,
            expires: now + rto,
            moot: false,
        });
    }

    /// The heartbeat with this nonce came back.
    pub(super) fn heartbeat_answered(&mut self, nonce: u64) -> Option<HeartbeatSent> {
        self.heartbeat.take_if(|sent| sent.nonce == nonce)
    }

    /// The heartbeat that was not answered in time, if that is an error.
    pub(super) fn heartbeat_expired(&mut self, now: Instant) -> Option<HeartbeatSent> {
        let expired = self.heartbeat.take_if(|sent| sent.expires <= now)?;
        if !expired.moot {
            return Some(expired);
        }
        // the path may have failed anew since data showed it to be well
        if self.is_to_be_probed() {
            self.heartbeat_due = Some(now);
        }
        None
    }

    /// A heartbeat that left over a path for which `gone` holds is not answered: if the destination is to be probed, another goes
    /// at once.
    pub(super) fn lose_heartbeat(&mut self, gone: impl Fn(PathId) -> bool) {
        let lost = self.heartbeat.take_if(|sent| gone(sent.path));
        if lost.is_some() && self.is_to_be_probed() {
            self.heartbeat_due = Some(Instant::ZERO);
        }
    }

    /// None waits, and none is due.
    pub(super) fn stop_heartbeats(&mut self) {
        self.heartbeat = None;
        self.heartbeat_due = None;
    }
}

/// Tests put it where it would have come by itself.
#[cfg(test)]
impl Destination {
    pub(in crate::sctp) fn set_state(&mut self, state: PathState) {
        self.state = state;
    }
}
