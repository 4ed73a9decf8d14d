//! All timers of an association: which is the earliest, and what is due.

use super::Association;
use crate::sctp::handshake::PhaseTimer;
use crate::sctp::ids::PathId;
use crate::time::Instant;
use smallvec::SmallVec;

impl Association {
    /// The earliest timer.
    pub(in crate::sctp) fn poll_timeout(&self) -> Option<Instant> {
        if self.is_closed() {
            return None;
        }
        // asked for after every packet: without branches, a timer that does not run is at the end of time
        let at = |timer: Option<Instant>| timer.unwrap_or(Instant::MAX);
        let earliest = at(self.phase.next_timer())
            .min(at(self.receiver.sack_timer()))
            .min(self.sender.next_timer())
            .min(at(self.streams.t_reconfig()))
            .min(at(self.asconf.t4_rto()))
            .min(at(self.replacement_timer()))
            .min(self.peer.next_timer(self.may_heartbeat()));
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
        if self.sender.on_probe_timer(now) {
            self.open_burst();
        }
        self.peer.on_pmtu_timers(now, &self.config);
        let paths: SmallVec<[PathId; 4]> = self.peer.paths().map(|(id, _)| id).collect();
        for path in paths {
            if !self.is_closed() && self.sender.has_expired(now, path) {
                self.on_t3(now, path);
            }
        }
        if !self.is_closed() && self.sender.forward_tsn_is_overdue(now) {
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
        for index in self.peer.ids() {
            if self.is_closed() {
                return;
            }
            let (peer, mut probing) = self.probing();
            if !peer.on_heartbeat_timers(now, index, &mut probing) {
                self.give_up_peer();
            }
        }
    }

    /// T3-rtx of a path expired (RFC 9260 section 6.3.3).
    fn on_t3(&mut self, now: Instant, path: PathId) {
        let (sender, mut cx) = self.sending(now);
        if let Some(destination) = sender.on_t3(&mut cx, path)
            && !self.count_error(destination)
        {
            return;
        }
        self.sender.force_retransmission();
        self.open_burst();
        self.drop_retired_paths();
    }

    /// The peer has not acknowledged a FORWARD TSN (RFC 3758 section 3.5, rule A5).
    fn on_forward_tsn_t3(&mut self, now: Instant) {
        let Some((destination, is_error)) = self.sender.on_forward_tsn_t3() else {
            return;
        };
        if is_error && !self.not_answered(destination) {
            return;
        }
        let (sender, cx) = self.sending(now);
        sender.repeat_forward_tsn(&cx);
        self.open_burst();
    }
}
