//! A peer whose receive window is closed (RFC 9260 section 6.1 rule A).
//!
//! The first probe goes out an RTO after the window closed; T3-rtx then repeats it, and so the interval doubles up to
//! RTO.Max. As long as the peer answers, neither the path nor the association is blamed, however long it lasts, and the
//! congestion window stays: what the peer has no room for was not lost to congestion.

use super::association::Association;
use super::path::PathId;
use super::sender::{Cause, Sent};
use segue_wire::Tsn;

/// Probing of a closed peer window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct WindowProbe {
    /// The last SACK left no room for what is to be sent next.
    pub closed: bool,
    /// A probe may be sent now.
    pub allowed: bool,
    /// The probe that is out: the first chunk of the packet, new or not.
    pub tsn: Option<Tsn>,
    /// A SACK arrived while it was out: the peer is alive.
    pub answered: bool,
}

impl WindowProbe {
    /// A chunk goes out that the peer has no room for.
    pub(super) fn on_sent(&mut self, tsn: Tsn) {
        self.allowed = false;
        self.tsn = Some(tsn);
        self.answered = false;
    }
}

impl Association {
    /// Keeps the state of window probing in step with the window advertised.
    pub(super) fn note_window(&mut self, a_rwnd: u32) {
        let next = self.flight.cumulative_tsn_ack().next();
        let len = self
            .flight
            .get(next)
            .map(Sent::len)
            .or_else(|| self.queue.next_len());
        self.window_probe.closed = a_rwnd == 0 || len.is_some_and(|len| len > a_rwnd);
        if a_rwnd > 0 {
            self.window_probe.allowed = false;
            self.window_probe_timer = None;
        }
        let Some(tsn) = self.window_probe.tsn else { return };
        if tsn.at_or_before(self.flight.cumulative_tsn_ack()) {
            self.window_probe.tsn = None;
            return;
        }
        let refused = core::mem::replace(&mut self.window_probe.answered, true);
        if refused && !self.window_probe.closed {
            self.repeat_probe(tsn);
        }
    }

    /// The window opened again, and the probe had been answered without being taken: it goes out again now, and not
    /// when T3-rtx expires, which may be RTO.Max away.
    fn repeat_probe(&mut self, tsn: Tsn) {
        self.window_probe.tsn = None;
        if let Some((_, len)) = self.flight.lose_one(Cause::ProbeRefused, tsn) {
            self.peer_rwnd = self.peer_rwnd.saturating_add(len);
        }
    }

    /// Whether the probe is out on `path`, and was answered.
    pub(super) fn probe_was_answered(&self, path: PathId) -> bool {
        self.window_probe.answered
            && self
                .window_probe
                .tsn
                .and_then(|tsn| self.flight.get(tsn))
                .is_some_and(|probe| probe.path() == Some(path))
    }
}
