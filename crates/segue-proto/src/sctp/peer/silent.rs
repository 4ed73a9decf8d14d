//! A peer that asks for another primary path (RFC 5061 section 5.4), as one does that has lost the address before (section
//! 5.3.2), may have left the others: which of them have fallen silent.

use super::Peer;
use crate::congestion::RttEstimator;
use crate::sctp::Config;
use crate::sctp::ids::{DestinationId, PathId};
use crate::time::{Duration, Instant};

impl Peer {
    /// The peer asks for another primary path: notes which of the others are silent now. An answer to what went there
    /// earlier may come over the new path before data may go there, and says nothing of the old one. `t3_rtx` tells when that
    /// of a path expires.
    pub(in crate::sctp) fn note_silent_paths(
        &mut self,
        now: Instant,
        config: &Config,
        t3_rtx: impl Fn(PathId) -> Option<Instant>,
    ) {
        for index in self.destinations.ids() {
            let is_silent = index != self.primary && self.is_silent(now, index, config, &t3_rtx);
            self.destinations[index].note_silence(is_silent);
        }
    }

    /// Whether a destination is to be left, now that data may go to the primary path that the peer asked for: it has fallen
    /// silent, or was when that was asked for, which is forgotten with it.
    pub(in crate::sctp) fn has_fallen_silent(
        &mut self,
        now: Instant,
        index: DestinationId,
        config: &Config,
        t3_rtx: impl Fn(PathId) -> Option<Instant>,
    ) -> bool {
        let noted = self.destinations[index].take_silence();
        index != self.primary && (noted || self.is_silent(now, index, config, &t3_rtx))
    }

    /// Whether something outstanding at a destination should have been acknowledged by now.
    fn is_silent(
        &self,
        now: Instant,
        index: DestinationId,
        config: &Config,
        t3_rtx: &impl Fn(PathId) -> Option<Instant>,
    ) -> bool {
        let failing = self.destinations[index].error_count() > 0;
        let to_there = self.paths.iter().filter(|(_, p)| p.destination() == index);
        let mut timers = to_there.filter_map(|(id, p)| Some((p, t3_rtx(id)?)));
        timers.any(|(p, t3_rtx)| failing || is_overdue(p.rtt(), t3_rtx, now, config.sack_delay))
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
    use crate::sctp::testing::ms;

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
