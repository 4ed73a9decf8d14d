//! What the sender shows its strategy, and lends it while it looks for something to send.

use crate::sctp::ids::PathId;
use crate::sctp::peer::Peer;
use crate::sctp::sender::credit::Credit;
use crate::sctp::sender::flight::Flight;
use crate::sctp::sender::plan::Plan;
use crate::sctp::sender::queue::SendQueue;
use crate::sctp::sender::recovery::Recovery;
use crate::sctp::{Config, MultipathCounters};
use crate::time::Instant;
use segue_wire::Tsn;

/// What is under way, and where it could go.
#[derive(Clone, Copy)]
pub(in crate::sctp) struct View<'a> {
    pub config: &'a Config,
    pub peer: &'a Peer,
    pub flight: &'a Flight,
}

impl View<'_> {
    /// Section 6.1 rule B: whether cwnd of a path lets another packet go.
    #[inline]
    pub(in crate::sctp) fn has_window(&self, path: PathId) -> bool {
        self.flight.size_on(path) < self.peer[path].cwnd()
    }
}

/// What a strategy works with while it looks for something to send.
pub(in crate::sctp) struct Lent<'a> {
    pub now: Instant,
    pub config: &'a Config,
    pub peer: &'a mut Peer,
    pub queue: &'a SendQueue,
    pub flight: &'a mut Flight,
    pub credit: &'a mut Credit,
    pub recovery: &'a mut Recovery,
    pub counters: &'a mut MultipathCounters,
    /// Both ends offered FORWARD TSN: what is too late is not sent again.
    pub may_forward_tsn: bool,
    /// A SACK or a FORWARD TSN may go first, as a packet of its own.
    pub something_goes_first: bool,
}

impl Lent<'_> {
    #[inline]
    pub(in crate::sctp) fn view(&self) -> View<'_> {
        View {
            config: self.config,
            peer: self.peer,
            flight: self.flight,
        }
    }

    /// User bytes of the next new chunk.
    #[inline]
    pub(in crate::sctp) fn next_len(&self) -> Option<u32> {
        self.queue.next_len(self.peer.sizes().max_data())
    }

    /// Whether a chunk is abandoned when it is next, instead of sent again.
    pub(in crate::sctp) fn is_given_up(&self, tsn: Tsn) -> bool {
        self.may_forward_tsn && self.flight.get(tsn).is_some_and(|s| s.is_given_up(self.now))
    }

    /// Whether cwnd of a path lets another packet go, after what idle RTOs have done to it.
    #[inline]
    pub(in crate::sctp) fn has_window_after_idle(&mut self, path: PathId) -> bool {
        if self.flight.size_on(path) == 0 {
            self.peer.decay_idle(self.now, path);
        }
        self.view().has_window(path)
    }

    /// Section 7.2.1 for what is sent again: wherever it may go, idle RTOs have brought cwnd down first.
    pub(in crate::sctp) fn decay_idle_paths(&mut self) {
        let flight = &*self.flight;
        self.peer
            .decay_idle_paths(self.now, |path| flight.size_on(path) == 0);
    }

    /// One packet at a time goes into a closed window.
    pub(in crate::sctp) fn is_held(&self) -> bool {
        self.credit.is_closed() && self.flight.has_outstanding()
    }

    /// New data of `len` bytes on a path whose window has room, if the peer's has (section 6.1 rule A).
    #[inline]
    pub(in crate::sctp) fn plan_new(&mut self, path: PathId, len: u32) -> Option<Plan> {
        let (room, is_under_way) = (self.flight.peer_rwnd(), self.flight.has_outstanding());
        let rto = self.peer.rto(path);
        let admitted = self.credit.admits(self.now, len, room, is_under_way, rto);
        admitted.then_some(Plan::New { path, len })
    }
}
