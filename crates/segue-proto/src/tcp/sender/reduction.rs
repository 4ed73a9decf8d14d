//! How cwnd comes down to ssthresh in fast recovery: at once, by rate halving, or in proportion (RFC 6937, RFC 9937).

use super::report::Effect;
use crate::tcp::config::Reduction;

/// What the way down is counted by (RFC 6937 section 3, RFC 9937 section 5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WayDown {
    /// RecoverFS.
    recover_fs: u32,
    prr_delivered: u32,
    prr_out: u32,
}

/// Where the window stands: sizes in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Level {
    pub mss: u32,
    /// What is thought to be in the network.
    pub pipe: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
}

impl WayDown {
    /// A way down that begins with so much outstanding.
    pub fn begin(flightsize: u32) -> Self {
        Self {
            recover_fs: flightsize,
            prr_delivered: 0,
            prr_out: 0,
        }
    }

    /// So many bytes were sent.
    pub fn note_sent(&mut self, bytes: u32) {
        self.prr_out += bytes;
    }

    /// cwnd after an acknowledgement on the way to ssthresh; `None` where it is there from the beginning.
    pub fn on_ack(&mut self, rule: Reduction, effect: Effect, level: Level) -> Option<u32> {
        let Level {
            mss,
            pipe,
            cwnd,
            ssthresh,
        } = level;
        let delivered = effect.delivered;
        self.prr_delivered += delivered;
        match rule {
            Reduction::Immediate => None,
            Reduction::RateHalving => {
                let down = cwnd.saturating_sub(mss / 2).max(ssthresh.min(cwnd));
                Some(down.min(pipe + mss))
            }
            Reduction::PrrRfc6937 => Some(pipe + self.send_count(pipe, ssthresh, delivered, mss)),
            Reduction::Prr => {
                // one more only while the recovery makes good progress: nothing more is found lost
                let progress = effect.advanced && !effect.found_lost;
                let bonus = if progress { mss } else { 0 };
                let mut send = self.send_count(pipe, ssthresh, delivered, bonus);
                if send == 0 && self.prr_out == 0 {
                    // the fast retransmission goes whatever is in the network
                    send = mss;
                }
                Some(pipe + send)
            }
        }
    }

    /// SndCnt, with `pipe` in the network: what may be sent now.
    fn send_count(&self, pipe: u32, ssthresh: u32, delivered: u32, bonus: u32) -> u32 {
        if pipe > ssthresh {
            let share = u64::from(self.prr_delivered) * u64::from(ssthresh);
            let share = share.div_ceil(u64::from(self.recover_fs.max(1))) as u32;
            share.saturating_sub(self.prr_out)
        } else {
            let bound = self.prr_delivered.saturating_sub(self.prr_out).max(delivered) + bonus;
            (ssthresh - pipe).min(bound)
        }
    }
}

/// cwnd at the end of the recovery.
pub(super) fn at_the_end(rule: Reduction, level: Level) -> u32 {
    let Level {
        mss,
        pipe,
        cwnd,
        ssthresh,
    } = level;
    match rule {
        // RFC 6582 section 3.2, step 3: no burst when much was lost
        Reduction::Immediate => ssthresh.min((pipe + 3 * mss).max(2 * mss)),
        Reduction::RateHalving => ssthresh.min(cwnd),
        Reduction::Prr | Reduction::PrrRfc6937 => ssthresh,
    }
}
