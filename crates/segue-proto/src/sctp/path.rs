//! Destinations of the peer, and the send state of every (source, destination) pair.

use super::PathState;
use super::multipath::PathShare;
use super::pmtu::Pmtu;
use super::slots::Id;
use crate::congestion::{CongestionControl, RttEstimator, SctpWindow};
use crate::contract::LocalAddress;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Tsn;

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
    /// DATA chunks outstanding, bytes with header and padding.
    pub flightsize: u32,
    pub t3_rtx: Option<Instant>,
    /// Lowest TSN outstanding on this path, or that which was sent first (`PathShare::t3_by_order`); meaningless without
    /// flight.
    pub earliest: Tsn,
    /// The one TSN whose round trip is being measured.
    pub timed: Option<(Tsn, Instant)>,
    pub last_data_sent: Option<Instant>,
    /// Its part in concurrent multipath transfer.
    pub share: PathShare,
    /// Its source is no longer ours: dropped as soon as nothing is outstanding on it.
    pub retired: bool,
    // what the SACK at hand does, reset with each
    pub acked_bytes: u32,
    pub flight_before: u32,
    pub earliest_acked: bool,
    pub lost: bool,
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
            flightsize: 0,
            t3_rtx: None,
            earliest: Tsn(0),
            timed: None,
            last_data_sent: None,
            share: PathShare::default(),
            retired: false,
            acked_bytes: 0,
            flight_before: 0,
            earliest_acked: false,
            lost: false,
        }
    }

    /// Section 6.1 rule B: whether cwnd lets another packet go.
    pub(super) fn has_window(&self) -> bool {
        self.flightsize < self.window.cwnd()
    }

    /// Books a chunk of `size` bytes sent now.
    pub(super) fn on_sent(&mut self, now: Instant, tsn: Tsn, size: u32, first_transmission: bool) {
        if self.flightsize == 0 || (tsn.before(self.earliest) && !self.share.t3_by_order) {
            self.earliest = tsn;
        }
        self.flightsize += size;
        self.last_data_sent = Some(now);
        self.share.sent = self.share.sent.saturating_add(1);
        if self.timed.is_none() && first_transmission {
            self.timed = Some((tsn, now));
        }
        // R1
        if self.t3_rtx.is_none() {
            self.t3_rtx = Some(now + self.rtt.rto());
        }
    }

    /// Section 7.2.1: what idle RTOs have done to cwnd, worked out when data is about to be sent again.
    pub(super) fn decay_idle(&mut self, now: Instant) {
        if self.flightsize != 0 {
            return;
        }
        let Some(last) = self.last_data_sent else { return };
        let idle = now.since(last);
        let rto = self.rtt.rto();
        if idle >= rto {
            self.window.on_idle(idle.as_nanos() / rto.as_nanos().max(1));
            self.last_data_sent = Some(now);
        }
    }

    /// Nothing of it is outstanding any more.
    pub(super) fn clear_flight(&mut self) {
        self.flightsize = 0;
        self.t3_rtx = None;
        self.timed = None;
    }

    pub(super) fn rto(&self) -> Duration {
        self.rtt.rto()
    }
}
