//! All timers of an association: which is the earliest, and what is due.

use super::Association;
use crate::sctp::handshake::PhaseTimer;
use crate::sctp::path::Destination;
use crate::time::Instant;

impl Association {
    /// The earliest timer.
    pub(in crate::sctp) fn poll_timeout(&self) -> Option<Instant> {
        if self.is_closed() {
            return None;
        }
        // asked for after every packet: without branches, a timer that does not run is at the end of time
        let at = |timer: Option<Instant>| timer.unwrap_or(Instant::MAX);
        let own = at(self.phase.next_timer())
            .min(at(self.receiver.sack_timer()))
            .min(at(self.credit.timer()))
            .min(at(self.partial.t3_rtx));
        let mut earliest = own
            .min(at(self.streams.t_reconfig()))
            .min(at(self.asconf.t4_rto()))
            .min(at(self.replacement_timer()));
        earliest = earliest.min(at(self.flight.next_timer()));
        for path in self.paths.values() {
            earliest = earliest.min(at(path.pmtu.timer()));
        }
        let heartbeats = self.may_heartbeat();
        let watched = |d: &&Destination| heartbeats && !d.deactivated;
        for destination in self.destinations.values().filter(watched) {
            if let Some(sent) = &destination.heartbeat {
                earliest = earliest.min(sent.expires);
            }
            earliest = earliest.min(at(destination.heartbeat_due));
        }
        (earliest != Instant::MAX).then_some(earliest)
    }

    /// Works off the timers that are due.
    pub(in crate::sctp) fn handle_timeout(&mut self, now: Instant) {
        if self.is_stranded() {
            // what was asked for meanwhile may have started some
            self.stop_timers();
        }
        let due = |timer: Option<Instant>| timer.is_some_and(|at| at <= now);
        match self.phase.due(now) {
            Some(PhaseTimer::T1) => self.on_t1(now),
            Some(PhaseTimer::T5ShutdownGuard) => self.on_t5(now),
            Some(PhaseTimer::T2Shutdown) => self.on_t2(now),
            None => {}
        }
        self.receiver.on_timeout(now);
        if due(self.credit.timer()) {
            self.credit.on_timer();
            self.open_burst();
        }
        self.on_pmtu_timers(now);
        for i in self.paths.ids() {
            if !self.is_closed() && due(self.flight.t3_rtx(i)) {
                self.on_t3(now, i);
            }
        }
        if !self.is_closed() && due(self.partial.t3_rtx) {
            self.on_forward_tsn_t3(now);
        }
        if !self.is_closed() && due(self.streams.t_reconfig()) {
            self.on_t_reconfig(now);
        }
        if !self.is_closed() && due(self.asconf.t4_rto()) {
            self.on_t4(now);
        }
        if !self.is_closed() && due(self.replacement_timer()) {
            self.delete_replaced(now);
        }
        for i in self.destinations.ids() {
            if self.is_closed() {
                return;
            }
            self.on_heartbeat_timers(now, i);
        }
    }
}
