//! Quick failover (RFC 7829): destinations that have potentially failed, and primary path switchover.
//!
//! A destination whose error count passes PFMR is potentially failed (PF) until it passes Path.Max.Retrans or answers.
//! New data and retransmissions keep away from it while another destination is active, and a heartbeat goes there every
//! RTO. With PFMR 0 the first timeout moves the data, so that the gap that a dead link leaves is about one RTO. See
//! [`Config::pf_max_retrans`](super::Config::pf_max_retrans) for settings.

use super::association::Association;
use super::path::DestinationId;
use super::{Event, PathState};
use crate::time::Instant;

impl Association {
    /// The error count of a destination was raised: it may fail, potentially or for good (RFC 9260 section 8.2, RFC
    /// 7829 section 3.2 item 1).
    pub(super) fn degrade(&mut self, index: DestinationId) {
        let pf_max_retrans = self.config.pf_max_retrans;
        let d = &mut self.destinations[index];
        let errors = d.error_count;
        let state = match d.state {
            PathState::Active | PathState::PotentiallyFailed if errors > self.config.path_max_retrans => {
                PathState::Inactive
            }
            PathState::Active if pf_max_retrans.is_some_and(|limit| errors > limit) => {
                PathState::PotentiallyFailed
            }
            state => state,
        };
        if state == d.state {
            if state == PathState::PotentiallyFailed {
                // another may have fewer errors now
                self.choose_current();
            }
        } else {
            d.state = state;
            if state == PathState::PotentiallyFailed {
                // item 4: the first heartbeat goes at once
                d.heartbeat_due = Some(Instant::ZERO);
            }
            let address = d.address;
            self.out.tell(Event::PathStateChanged { address, state });
            self.choose_current();
        }
        self.switch_primary_over(index);
    }

    /// The destination to use where none is active: of those potentially failed the one with the lowest error count,
    /// at a tie the one in use (RFC 7829 section 3.2 item 3).
    pub(super) fn least_failed(&self) -> Option<DestinationId> {
        let candidates = self.destinations.iter();
        candidates
            .filter(|(_, d)| !d.deactivated && d.state == PathState::PotentiallyFailed)
            .min_by_key(|&(i, d)| (d.error_count, i != self.current, i != self.primary))
            .map(|(i, _)| i)
    }

    /// Primary path switchover (RFC 7829 section 5): the primary has failed more than PSMR times, and an active
    /// destination takes its place for good.
    fn switch_primary_over(&mut self, index: DestinationId) {
        let Some(limit) = self.config.primary_switchover_max_retrans else {
            return;
        };
        // PSMR is never less than PFMR
        let limit = limit.max(self.config.pf_max_retrans.unwrap_or(0));
        if index == self.primary
            && self.destinations[index].error_count > limit
            && let Some(next) = self.usable_destination(Some(index))
        {
            self.make_primary(next);
        }
    }

    /// A destination that had potentially failed answered: its windows begin anew with one segment.
    pub(super) fn restart_windows(&mut self, index: DestinationId) {
        let segments = self.recovery_segments();
        for path in self.paths.values_mut().filter(|p| p.destination == index) {
            Self::recovered_window(path, segments);
        }
    }
}
