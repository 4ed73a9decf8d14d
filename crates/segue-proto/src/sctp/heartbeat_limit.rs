//! HB.Max.Burst: how many HEARTBEATs may go, in one RTO, to addresses that nobody has answered from (RFC 9260 section
//! 5.4). A peer names what addresses it likes, and as often as it likes by ASCONF: without a limit one packet of its would
//! have dozens sent to whom it pleases. One that is no more, with the answer, than came from the address itself is not
//! counted: a host that moves again within an RTO does not wait.

use super::PathState;
use super::association::Association;
use super::path::{Destination, DestinationId};
use crate::time::{Duration, Instant};
use segue_wire::sctp::chunk_type::ASCONF_ACK;

/// What has gone to unconfirmed addresses since the RTO at hand began.
#[derive(Debug, Default)]
pub(super) struct HeartbeatLimit {
    sent: u32,
    /// When the RTO ends.
    ends: Instant,
}

impl HeartbeatLimit {
    /// One more may go, and is noted as sent; or when the next may.
    fn take(&mut self, now: Instant, rto: Duration, hb_max_burst: u32) -> Result<(), Instant> {
        if now >= self.ends {
            self.sent = 0;
        }
        if self.sent >= hb_max_burst {
            return Err(self.ends);
        }
        if self.sent == 0 {
            self.ends = now + rto;
        }
        self.sent += 1;
        Ok(())
    }
}

impl Association {
    /// Whether a HEARTBEAT may go to a destination now; if not, it will be due when it may.
    pub(super) fn may_send_heartbeat(&mut self, now: Instant, index: DestinationId, rto: Duration) -> bool {
        if self.destinations[index].state != PathState::Unconfirmed {
            return true;
        }
        let auth_len = self.auth.overhead(&[ASCONF_ACK]);
        if self
            .replies
            .spend_on_heartbeat(self.destinations[index].address, auth_len)
        {
            return true;
        }
        let later = if self.is_preceded(now, index) {
            self.heartbeat_limit.ends
        } else {
            match self
                .heartbeat_limit
                .take(now, rto, self.config.hb_max_burst.max(1))
            {
                Ok(()) => return true,
                Err(later) => later,
            }
        };
        self.destinations[index].heartbeat_due = Some(later.max(now + MIN_DELAY));
        false
    }

    /// Whether another unconfirmed destination waits for its HEARTBEAT too, and comes first: so that one that is not
    /// there does not keep the others waiting.
    fn is_preceded(&self, now: Instant, index: DestinationId) -> bool {
        let rank = |i: DestinationId, d: &Destination| (d.error_count, i != self.primary, i.place());
        let own = rank(index, &self.destinations[index]);
        self.destinations.iter().any(|(i, d)| {
            let waits = !d.deactivated
                && d.state == PathState::Unconfirmed
                && d.heartbeat.is_none()
                && d.heartbeat_due.is_some_and(|due| due <= now);
            i != index && waits && rank(i, d) < own
        })
    }
}

/// So that what comes after another is asked for again after that was sent.
const MIN_DELAY: Duration = Duration::from_nanos(1);

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::tests::{ms, up};
    use super::*;
    use crate::sctp::slots::Id;

    #[test]
    fn so_many_go_in_an_rto_that_begins_with_the_first() {
        let rto = Duration::from_secs(1);
        let mut limit = HeartbeatLimit::default();
        assert_eq!(limit.take(ms(100), rto, 2), Ok(()));
        assert_eq!(limit.take(ms(900), rto, 2), Ok(()));
        assert_eq!(limit.take(ms(901), rto, 2), Err(ms(1100)));
        let before = ms(1100) - Duration::from_nanos(1);
        assert_eq!(limit.take(before, rto, 2), Err(ms(1100)));
        assert_eq!(limit.take(ms(1100), rto, 2), Ok(()));
        assert_eq!(limit.take(ms(1100), rto, 1), Err(ms(2100)));
    }

    #[test]
    fn those_with_fewer_errors_come_first() {
        let rto = Duration::from_secs(1);
        let mut a = up(Config::default(), 3);
        assert!(a.may_send_heartbeat(ms(5), Id::first_at(1), rto), "confirmed");
        for d in a.destinations.values_mut().skip(1) {
            d.state = PathState::Unconfirmed;
            d.heartbeat_due = Some(ms(5));
        }
        a.destinations[1].error_count = 1;
        assert!(!a.may_send_heartbeat(ms(5), Id::first_at(1), rto));
        assert_eq!(a.destinations[1].heartbeat_due, Some(ms(5) + MIN_DELAY));
        assert!(a.may_send_heartbeat(ms(5), Id::first_at(2), rto));
        // one in an RTO
        a.destinations[2].heartbeat_due = Some(ms(9));
        a.destinations[1].heartbeat_due = Some(ms(6));
        assert!(!a.may_send_heartbeat(ms(6), Id::first_at(1), rto));
        assert_eq!(a.destinations[1].heartbeat_due, Some(ms(1005)));
        assert!(!a.is_preceded(ms(8), Id::first_at(1)) && a.is_preceded(ms(9), Id::first_at(1)));
        a.destinations[1].error_count = 0;
        assert!(!a.is_preceded(ms(9), Id::first_at(1)), "the first of equals");
    }
}
