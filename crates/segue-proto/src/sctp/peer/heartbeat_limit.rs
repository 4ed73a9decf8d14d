//! HB.Max.Burst: how many HEARTBEATs may go, in one RTO, to addresses that nobody has answered from (RFC 9260 section
//! 5.4). A peer names what addresses it likes, and as often as it likes by ASCONF: without a limit one packet of its would
//! have dozens sent to whom it pleases. One that is no more, with the answer, than came from the address itself is not
//! counted: a host that moves again within an RTO does not wait.

use crate::time::{Duration, Instant};

/// What has gone to unconfirmed addresses since the RTO at hand began.
#[derive(Debug, Default)]
pub(super) struct HeartbeatLimit {
    sent: u32,
    /// When the RTO ends.
    ends: Instant,
}

impl HeartbeatLimit {
    /// When the RTO ends.
    pub(super) fn ends(&self) -> Instant {
        self.ends
    }

    /// One more may go, and is noted as sent; or when the next may.
    pub(super) fn take(&mut self, now: Instant, rto: Duration, hb_max_burst: u32) -> Result<(), Instant> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

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
}
