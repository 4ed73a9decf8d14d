//! How cwnd comes down to ssthresh in fast recovery: at once, by rate halving, or in proportion (RFC 6937, RFC 9937).

use super::ack::Report;
use super::config::Reduction;
use super::connection::Connection;

/// What the way down is counted by (RFC 6937 section 3, RFC 9937 section 5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WayDown {
    /// RecoverFS.
    recover_fs: u32,
    prr_delivered: u32,
    prr_out: u32,
}

impl WayDown {
    /// So many bytes were sent.
    pub fn note_sent(&mut self, bytes: u32) {
        self.prr_out += bytes;
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

impl Connection {
    /// What the way down to ssthresh is counted from.
    pub(super) fn begin_reduction(&mut self, report: &Report) {
        let r = &mut self.recovery;
        r.way_down = WayDown {
            recover_fs: self.board.flightsize() + report.acked,
            prr_delivered: 0,
            prr_out: 0,
        };
        r.rescued = false;
        r.forward_from = 0;
        r.probe = None;
    }

    /// A loss has set cwnd to ssthresh: unless it comes down at once, it begins where it stood.
    pub(super) fn keep_cwnd_for_the_way_down(&mut self, cwnd: u32) {
        if self.config.reduction != Reduction::Immediate {
            self.window.set_cwnd(cwnd);
        }
    }

    /// cwnd on its way to ssthresh.
    #[inline(never)]
    pub(super) fn reduce(&mut self, report: &Report) {
        let ssthresh = self.window.ssthresh();
        let pipe = self.pipe();
        let delivered = report.delivered();
        self.recovery.way_down.prr_delivered += delivered;
        let down = self.recovery.way_down;
        match self.config.reduction {
            Reduction::Immediate => {}
            Reduction::RateHalving => {
                let cwnd = self.window.cwnd();
                let down = cwnd.saturating_sub(self.mss / 2).max(ssthresh.min(cwnd));
                self.window.set_cwnd(down.min(pipe + self.mss));
            }
            Reduction::PrrRfc6937 => {
                let send = down.send_count(pipe, ssthresh, delivered, self.mss);
                self.window.set_cwnd(pipe + send);
            }
            Reduction::Prr => {
                // one more only while the recovery makes good progress: nothing more is found lost
                let progress = report.advanced && !report.found_lost;
                let bonus = if progress { self.mss } else { 0 };
                let mut send = down.send_count(pipe, ssthresh, delivered, bonus);
                if send == 0 && down.prr_out == 0 {
                    // the fast retransmission goes whatever is in the network
                    send = self.mss;
                }
                self.window.set_cwnd(pipe + send);
            }
        }
    }

    pub(super) fn finish_reduction(&mut self) {
        let ssthresh = self.window.ssthresh();
        match self.config.reduction {
            // RFC 6582 section 3.2, step 3: no burst when much was lost
            Reduction::Immediate => {
                let pipe = self.pipe() + 3 * self.mss;
                self.window.set_cwnd(ssthresh.min(pipe.max(2 * self.mss)));
            }
            Reduction::RateHalving => self.window.set_cwnd(ssthresh.min(self.window.cwnd())),
            Reduction::Prr | Reduction::PrrRfc6937 => self.window.set_cwnd(ssthresh),
        }
    }
}
