//! T3-rtx (RFC 9260 section 6.3.3).

use super::Sender;
use super::context::Context;
use crate::sctp::ids::{DestinationId, PathId};
use crate::time::Instant;

impl Sender {
    /// Whether T3-rtx of a path is due.
    pub(in crate::sctp) fn has_expired(&self, now: Instant, path: PathId) -> bool {
        self.flight.t3_rtx(path).is_some_and(|at| at <= now)
    }

    /// T3-rtx of a path expired.
    ///
    /// E1 and E2 cut the window and double the RTO. E3: the earliest outstanding chunks, as many as fit one packet, go
    /// out at once, the rest is marked and follows as cwnd allows. All are marked here, and one packet is forced, by
    /// [`force_retransmission`](Self::force_retransmission). Returns the destination that did not answer: none for the probe of a closed window that
    /// was answered but not taken, which is no error of the path (section 6.1 rule A).
    pub(in crate::sctp) fn on_t3(&mut self, cx: &mut Context<'_>, id: PathId) -> Option<DestinationId> {
        cx.out.counters.t3_expiries += 1;
        let probe_answered = self.probe_was_answered(id);
        let coupled = self.strategy.on_t3(id, !probe_answered, cx.peer);
        if !probe_answered {
            let loss = self.flight.loss_on(cx.now, id);
            cx.peer.on_rto(id, loss, coupled);
        }
        cx.peer.back_off(id);
        let path = &cx.peer[id];
        let (srtt, rto, destination) = (path.srtt(), path.rto(), path.destination());
        if !probe_answered {
            cx.peer.suspect_black_hole(id, cx.config);
        }
        let spared = self.strategy.spared_from(cx.now, srtt);
        let (lost, spared) = self.flight.expire(cx.now, id, spared, rto);
        cx.out.counters.multipath.chunks_spared += u64::from(spared);
        self.strategy.note_lost(id, lost);
        self.recovery.end();
        (!probe_answered).then_some(destination)
    }

    /// What T3-rtx marked goes out: one packet whatever cwnd says.
    pub(in crate::sctp) fn force_retransmission(&mut self) {
        self.recovery.force_more(self.flight.marked());
    }

    /// Whether the probe of a closed window is out on `path`, and was answered.
    pub(super) fn probe_was_answered(&self, path: PathId) -> bool {
        let probe = self.credit.answered_probe().and_then(|tsn| self.flight.get(tsn));
        probe.is_some_and(|probe| probe.path() == Some(path))
    }
}
