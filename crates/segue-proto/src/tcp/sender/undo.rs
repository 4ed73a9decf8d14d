//! What a reduction of the window can be taken back by, when what it was made for turns out needless: Eifel (RFC 3522,
//! RFC 4015), DSACK (RFC 3708), F-RTO (RFC 5682).

use crate::congestion::Prior;
use crate::tcp::timestamps::is_before;

/// What is known of the last reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// SND.UNA when the reduction at hand was made; `None` if there is none to take back.
    marker: Option<u64>,
    /// Retransmissions that no DSACK has reported as duplicates; `None` before the first.
    unreported: Option<u32>,
    /// Where the window stood before the last reduction.
    prior: Option<Prior>,
    /// What was sent before this position is of no use to judge a reduction by.
    not_before: u64,
    /// F-RTO may take the last timeout back, whatever else may not.
    by_frto: bool,
    /// Timestamp of the first retransmission.
    first_retransmission: Option<u32>,
}

/// A timeout, as far as it can be taken back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeout {
    /// SND.UNA.
    pub una: u64,
    /// Where the window stood; `None` if it had been cut already.
    pub prior: Option<Prior>,
    /// Something of what is outstanding was retransmitted before.
    pub had_retransmitted: bool,
    /// Retransmissions under way.
    pub under_way: u32,
}

impl Undo {
    /// A retransmission goes out.
    pub fn on_retransmit(&mut self, ts: u32) {
        self.first_retransmission.get_or_insert(ts);
        if self.marker.is_some() {
            self.unreported = Some(self.unreported.unwrap_or(0) + 1);
        }
    }

    /// A fast recovery begins.
    pub fn on_fast_recovery(&mut self, enabled: bool, una: u64, prior: Prior) {
        self.marker = (enabled && una >= self.not_before).then_some(una);
        self.unreported = None;
        self.prior = Some(prior);
    }

    /// A timeout. `repeated` says that timeouts can be taken back also where data had been retransmitted before.
    pub fn on_timeout(&mut self, enabled: bool, repeated: bool, timeout: Timeout) {
        let again = timeout.prior.is_none();
        self.prior = timeout.prior.or(self.prior);
        if !timeout.had_retransmitted {
            self.first_retransmission = None;
        }
        self.by_frto = enabled && timeout.una >= self.not_before;
        if !self.by_frto {
            self.marker = None;
        } else if !repeated {
            self.marker = (!timeout.had_retransmitted).then_some(timeout.una);
            self.unreported = None;
        } else if !again {
            self.marker = Some(timeout.una);
            // those may be reported as duplicates later
            self.unreported = (timeout.under_way > 0).then_some(timeout.under_way);
        }
    }

    /// The peer is in another network: no reduction that is made for what was sent until then, up to `next`, is taken back.
    /// Where the window stood says nothing of the way that is taken now, and what was under way to the other network is no
    /// more to be waited for.
    pub fn on_other_network(&mut self, next: u64) {
        self.forget();
        self.not_before = next;
    }

    /// There is nothing to take back.
    pub fn forget(&mut self) {
        self.marker = None;
        self.unreported = None;
        self.by_frto = false;
    }

    /// What arrived twice was perhaps retransmitted in this recovery.
    pub fn on_dsack(&mut self, right: u64, una: u64) {
        if let (Some(marker), Some(count @ 1..)) = (self.marker, self.unreported)
            && right > marker
            && right <= una
        {
            self.unreported = Some(count - 1);
        }
    }

    /// The recovery is over.
    pub fn on_recovered(&mut self) {
        self.first_retransmission = None;
    }

    /// Whether there is a reduction to take back.
    pub fn is_possible(&self) -> bool {
        self.marker.is_some()
    }

    /// Every retransmission of this recovery was reported as a duplicate (RFC 3708).
    pub fn all_were_duplicates(&self) -> bool {
        self.marker.is_some() && self.unreported == Some(0)
    }

    /// Whether an acknowledgement with this timestamp is for a transmission before the first retransmission (Eifel,
    /// RFC 3522 section 3.2).
    pub fn is_before_retransmission(&self, echo: Option<u32>) -> bool {
        match (self.first_retransmission, echo) {
            (Some(ts), Some(echo)) => is_before(echo, ts),
            _ => false,
        }
    }

    /// Takes the last reduction back, if it may be: gives where the window stood before it.
    pub fn take(&mut self) -> Option<Prior> {
        self.marker.take().and(self.prior)
    }

    /// The same for a timeout that F-RTO found spurious, unless it was for another network.
    pub fn take_timeout(&mut self) -> Option<Prior> {
        if !self.by_frto {
            return None;
        }
        self.marker = None;
        self.prior
    }
}
