//! Destinations of the peer, and the send state of every (source, destination) pair.

use super::PathState;
use super::multipath::PathShare;
use super::pmtu::Pmtu;
use super::slots::Id;
use crate::congestion::{CongestionControl, RttEstimator, SctpWindow};
use crate::contract::LocalAddress;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;

/// Names a destination.
pub(super) type DestinationId = Id<Destination>;

/// Names a path.
pub(super) type PathId = Id<Path>;

/// Most destinations kept: more are not taken from an INIT, and an ASCONF that adds one more is refused.
pub(super) const MAX_DESTINATIONS: usize = 32;

/// A transport address of the peer. State and error count are per destination (RFC 9260 section 8.2).
#[derive(Debug)]
pub(super) struct Destination {
    pub address: Ipv6Addr,
    pub state: PathState,
    pub error_count: u32,
    /// UDP port it is reached at; `None` without UDP (RFC 6951 section 5.1).
    pub encapsulation: Option<u16>,
    /// The path from the current source address.
    pub path: PathId,
    /// When the next heartbeat is due.
    pub heartbeat_due: Option<Instant>,
    pub heartbeat: Option<HeartbeatSent>,
    /// When a router last reported that it cannot be reached.
    pub unreachable_at: Option<Instant>,
    /// The peer wants nothing there for now (see `deactivation`).
    pub deactivated: bool,
    /// It did not answer when the peer asked for another primary path (see `replacement`).
    pub silent: bool,
}

/// A heartbeat that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeartbeatSent {
    pub nonce: u64,
    pub path: PathId,
    pub sent_at: Instant,
    /// One RTO after `sent_at`: then it counts as an error (section 8.2).
    pub expires: Instant,
    /// Data was acknowledged since, and the destination is in use again: it need not be answered.
    pub moot: bool,
}

/// Send state of a (source, destination) pair.
#[derive(Debug)]
pub(super) struct Path {
    pub source: LocalAddress,
    pub destination: DestinationId,
    pub rtt: RttEstimator,
    pub window: SctpWindow,
    pub pmtu: Pmtu,
    pub last_data_sent: Option<Instant>,
    /// Its part in concurrent multipath transfer.
    pub share: PathShare,
    /// Its source is no longer ours: dropped as soon as nothing is outstanding on it.
    pub retired: bool,
}

impl Path {
    pub(super) fn new(
        source: LocalAddress,
        destination: DestinationId,
        rtt: RttEstimator,
        window: SctpWindow,
        pmtu: Pmtu,
    ) -> Self {
        Self {
            source,
            destination,
            rtt,
            window,
            pmtu,
            last_data_sent: None,
            share: PathShare::default(),
            retired: false,
        }
    }

    /// A chunk is sent on it.
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.last_data_sent = Some(now);
        self.share.sent = self.share.sent.saturating_add(1);
    }

    /// Section 7.2.1: what idle RTOs have done to cwnd, worked out when data is about to be sent
    /// again while nothing is under way.
    pub(super) fn decay_idle(&mut self, now: Instant) {
        let Some(last) = self.last_data_sent else { return };
        let idle = now.since(last);
        let rto = self.rtt.rto();
        if idle >= rto {
            self.window.on_idle(idle.as_nanos() / rto.as_nanos().max(1));
            self.last_data_sent = Some(now);
        }
    }

    pub(super) fn rto(&self) -> Duration {
        self.rtt.rto()
    }
}
