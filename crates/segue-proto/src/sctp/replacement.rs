//! When one address takes the place of others (RFC 5061 section 5.3.2): what the two ends do about the data that is
//! outstanding towards the old ones.
//!
//! # The host that moved
//! It asks for the deletion of addresses that are gone only when the peer's data comes to an address that there is, in
//! order: what the peer had sent to the old ones was then sent again. A peer may retransmit to an address that it was
//! asked to delete as long as it knows no better: usrsctp 0.9.5 does until the association fails. Nothing is lost by
//! waiting: the new address is the primary path, and one that is back before it was deleted is simply there again.
//!
//! A peer without data to send is not waited for longer than RTO.Max: whatever it had outstanding has timed out by then,
//! and gone elsewhere. For ever would be too long, since the address may become another host's, whose answer to a stray
//! packet ends the association (RFC 9260 section 8.4).
//!
//! # Its peer
//! A peer that makes another address primary has reasons. Where the paths used so far are silent, that is where more
//! was not acknowledged in time than round trips and a delayed SACK explain, what is outstanding goes to the new path at
//! once, without waiting for T3-rtx. A path that still answers is left alone.

use super::AddressRequest;
use super::association::Association;
use super::path::{DestinationId, Path};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use smallvec::SmallVec;

/// Addresses that were replaced, and not deleted yet, for which one more replacement does not wait: a host that moves
/// often must not fill the peer's table of addresses.
const MAX_REPLACED: usize = 4;

/// What the deletion waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replacement {
    /// The cumulative TSN ack when the new address was granted.
    cumulative_tsn_ack: Tsn,
    due: Instant,
}

impl Association {
    /// All addresses in use are gone and another one is to take their place. Returns those that wait for their deletion
    /// already and are too many.
    pub(super) fn replace_absent(&mut self) -> SmallVec<[Ipv6Addr; 4]> {
        self.local.replace_absent();
        let replaced = self.replaced();
        let surplus = replaced.len().saturating_sub(MAX_REPLACED);
        replaced[..surplus].into()
    }

    /// The association moves again, from an address that there is.
    pub(super) fn await_peer_data(&mut self, now: Instant) {
        self.replacement = (!self.replaced().is_empty()).then(|| Replacement {
            cumulative_tsn_ack: self.received.cumulative_tsn_ack(),
            due: now + self.config.rto_max,
        });
    }

    /// Stands still with the association.
    pub(super) fn replacement_timer(&self) -> Option<Instant> {
        let replacement = self.replacement?;
        (!self.is_stranded()).then_some(replacement.due)
    }

    /// DATA arrived, at `arrived_at`.
    pub(super) fn on_data_after_replacement(&mut self, now: Instant) {
        let Some(replacement) = self.replacement else {
            return;
        };
        let at = self.arrived_at;
        let here = self.local.is_present(at);
        let advanced = replacement
            .cumulative_tsn_ack
            .before(self.received.cumulative_tsn_ack());
        if here && advanced && !self.received.has_gap() {
            self.delete_replaced(now);
        }
    }

    pub(super) fn delete_replaced(&mut self, now: Instant) {
        self.replacement = None;
        let requests: SmallVec<[AddressRequest; 4]> =
            self.replaced().into_iter().map(AddressRequest::Delete).collect();
        if !requests.is_empty() {
            // refused only where the peer does not know Delete IP Address, or the association is about to end
            let _ = self.request_changes(now, &requests);
        }
    }

    /// The peer asks for another primary path: notes which of the others are silent now. An answer to what went there
    /// earlier may come over the new path before data may go there, and says nothing of the old one.
    pub(super) fn note_silent_paths(&mut self, now: Instant) {
        for index in self.destinations.ids() {
            self.destinations[index].silent = index != self.primary && self.is_silent(now, index);
        }
    }

    /// Data may go to the primary path that the peer asked for: what is outstanding on paths that have fallen silent goes
    /// out again there, with no penalty to any window.
    pub(super) fn leave_silent_paths(&mut self, now: Instant) {
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
            let paths = &self.paths;
            self.outbound.forget_paths(|p| {
                let path = paths.get(p);
                path.is_some_and(|p| p.destination == index)
            });
            self.open_burst();
        }
    }

    /// Whether something outstanding at a destination should have been acknowledged by now.
    fn is_silent(&self, now: Instant, index: DestinationId) -> bool {
        let destination = &self.destinations[index];
        let failing = destination.error_count > 0;
        let outstanding = |p: &&Path| p.destination == index && p.flightsize > 0;
        self.paths
            .values()
            .filter(outstanding)
            .any(|p| failing || is_overdue(p, now, self.config.sack_delay))
    }

    fn replaced(&self) -> SmallVec<[Ipv6Addr; 4]> {
        self.local.replaced().collect()
    }
}

fn is_overdue(path: &Path, now: Instant, sack_delay: Duration) -> bool {
    let (Some(t3_rtx), Some(measured)) = (path.t3_rtx, path.rtt.measured_rto()) else {
        return false;
    };
    // T3-rtx was started an RTO before it expires: with the last acknowledgement, or the first packet since
    now + path.rto() > t3_rtx + measured + sack_delay
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::tests::{ms, up};
    use super::*;

    #[test]
    fn overdue_is_what_was_not_acknowledged_within_the_measured_rto_and_a_delayed_ack() {
        let mut a = up(Config::default(), 1);
        let delay = Duration::from_millis(200);
        let path = &mut a.paths[0];
        path.t3_rtx = Some(ms(2000));
        assert!(!is_overdue(path, ms(9000), delay), "nothing was measured");
        // 100 + 4 x 50: T3-rtx was started at 1000
        path.rtt.measure(Duration::from_millis(100));
        assert!(!is_overdue(path, ms(1500), delay));
        assert!(is_overdue(path, ms(1500) + Duration::from_nanos(1), delay));
        path.t3_rtx = None;
        assert!(!is_overdue(path, ms(9000), delay));
    }
}
