//! One address takes the place of others (RFC 5061 section 5.3.2), at either end: see [`asconf`](crate::sctp::asconf).

use super::Association;
use crate::congestion::RttEstimator;
use crate::sctp::AddressRequest;
use crate::sctp::asconf::MAX_REPLACED;
use crate::sctp::path::DestinationId;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use smallvec::SmallVec;

impl Association {
    /// All addresses in use are gone and another one is to take their place. Returns those that wait for their deletion
    /// already and are too many.
    pub(super) fn replace_absent(&mut self) -> SmallVec<[Ipv6Addr; 4]> {
        self.local.replace_absent();
        let replaced: SmallVec<[Ipv6Addr; 4]> = self.local.replaced().collect();
        let surplus = replaced.len().saturating_sub(MAX_REPLACED);
        replaced[..surplus].into()
    }

    /// The association moves again, from an address that there is.
    pub(super) fn await_peer_data(&mut self, now: Instant) {
        if self.local.replaced().next().is_some() {
            let due = now + self.config.rto_max;
            self.asconf.await_data(self.receiver.cumulative_tsn_ack(), due);
        } else {
            self.asconf.end_replacement();
        }
    }

    /// Stands still with the association.
    pub(in crate::sctp) fn replacement_timer(&self) -> Option<Instant> {
        self.asconf.replacement_due().filter(|_| !self.is_stranded())
    }

    /// DATA arrived, at an address.
    pub(in crate::sctp) fn on_data_after_replacement(&mut self, now: Instant, at: Ipv6Addr) {
        let has_gap = self.receiver.has_gap();
        let shown = self
            .receiver
            .cumulative_tsn_ack()
            .is_some_and(|cumulative| self.asconf.may_delete_replaced(cumulative, has_gap));
        if shown && self.local.is_present(at) {
            self.delete_replaced(now);
        }
    }

    pub(in crate::sctp) fn delete_replaced(&mut self, now: Instant) {
        self.asconf.end_replacement();
        let requests: SmallVec<[AddressRequest; 4]> =
            self.local.replaced().map(AddressRequest::Delete).collect();
        if !requests.is_empty() {
            // refused only where the peer does not know Delete IP Address, or the association is about to end
            let _ = self.request_changes(now, &requests);
        }
    }

    /// The peer asks for another primary path: notes which of the others are silent now. An answer to what went there
    /// earlier may come over the new path before data may go there, and says nothing of the old one.
    pub(in crate::sctp) fn note_silent_paths(&mut self, now: Instant) {
        for index in self.destinations.ids() {
            self.destinations[index].silent = index != self.primary && self.is_silent(now, index);
        }
    }

    /// Data may go to the primary path that the peer asked for: what is outstanding on paths that have fallen silent goes
    /// out again there, with no penalty to any window.
    pub(in crate::sctp) fn leave_silent_paths(&mut self, now: Instant) {
        for index in self.destinations.ids() {
            let noted = core::mem::take(&mut self.destinations[index].silent);
            if index == self.primary {
                continue;
            }
            if !noted && !self.is_silent(now, index) {
                continue;
            }
            self.move_outstanding_from(index);
            // wherever retransmissions go as a rule, these follow the new data
            let left = self.paths_to(index);
            self.flight.leave_paths(|path| left.contains(&path));
            self.open_burst();
        }
    }

    /// Whether something outstanding at a destination should have been acknowledged by now.
    fn is_silent(&self, now: Instant, index: DestinationId) -> bool {
        let destination = &self.destinations[index];
        let failing = destination.error_count > 0;
        let delay = self.config.sack_delay;
        let to_there = self.paths.iter().filter(|(_, p)| p.destination == index);
        let mut timers = to_there.filter_map(|(id, p)| Some((p, self.flight.t3_rtx(id)?)));
        timers.any(|(p, t3_rtx)| failing || is_overdue(&p.rtt, t3_rtx, now, delay))
    }
}

fn is_overdue(rtt: &RttEstimator, t3_rtx: Instant, now: Instant, sack_delay: Duration) -> bool {
    // T3-rtx was started an RTO before it expires: with the last acknowledgement, or the first packet since
    let overdue = |measured| now + rtt.rto() > t3_rtx + measured + sack_delay;
    rtt.measured_rto().is_some_and(overdue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sctp::tests::ms;

    #[test]
    fn overdue_is_what_was_not_acknowledged_within_the_measured_rto_and_a_delayed_ack() {
        let second = Duration::from_secs(1);
        let mut rtt = RttEstimator::new(second, second, Duration::from_secs(60));
        let delay = Duration::from_millis(200);
        assert!(
            !is_overdue(&rtt, ms(2000), ms(9000), delay),
            "nothing was measured"
        );
        // 100 + 4 x 50: T3-rtx was started at 1000
        rtt.measure(Duration::from_millis(100));
        assert!(!is_overdue(&rtt, ms(2000), ms(1500), delay));
        let later = ms(1500) + Duration::from_nanos(1);
        assert!(is_overdue(&rtt, ms(2000), later, delay));
    }
}
