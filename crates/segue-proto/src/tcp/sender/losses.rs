//! Loss recovery: fast retransmit (RFC 5681 section 3.2, RFC 6675; RFC 6582 without SACK), the retransmission timer
//! (RFC 6298 section 5), RACK's timer and the probe of the tail (RFC 8985), and taking back what was needless (Eifel,
//! RFC 3522 and 4015; DSACK, RFC 3708; F-RTO).

use super::Sender;
use super::detection::Finder;
use super::frto::{Sight, Verdict};
use super::reduction;
use super::report::{Effect, Report};
use super::timers::Timer;
use super::undo::Timeout;
use crate::congestion::{Loss, Prior};
use crate::tcp::config::{FrtoRule, Reduction};
use crate::tcp::event::Phase;
use crate::time::{Duration, Instant};

/// What the timers of a sender have come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum Expiry {
    /// What is to be done the sender does when it is asked what to send.
    Goes,
    /// The SYN is to be sent again.
    Syn,
    /// The peer does not answer.
    GivesUp,
}

impl Sender {
    /// What the acknowledgement means for recovery. Whether cwnd is what F-RTO makes it.
    pub(super) fn recover(&mut self, now: Instant, report: &Report) -> bool {
        if self.has_reneged() {
            self.on_reneging(now);
        }
        if report.advanced && self.recovery.duplicates() > 0 {
            self.forget_duplicates(report);
        }
        match self.recovery.phase() {
            Phase::Open if report.sacked == 0 && !report.duplicate && self.board.sacked_segments() == 0 => {
                if report.dsack {
                    self.undo_by_dsack();
                }
                false
            }
            Phase::Open | Phase::Disorder => {
                self.in_disorder(now, report);
                false
            }
            Phase::Recovery => {
                self.in_recovery(now, report);
                false
            }
            Phase::Loss => self.in_loss(now, report),
        }
    }

    #[inline(never)]
    fn in_disorder(&mut self, now: Instant, report: &Report) {
        if report.duplicate && !self.has_sack() {
            self.recovery.add_duplicate(self.board.segments());
        }
        if report.dsack {
            self.undo_by_dsack();
        }
        self.detect(now);
        if self.board.has_lost() {
            self.enter_recovery(now, report);
            return;
        }
        let calm = self.board.sacked_segments() == 0 && self.recovery.duplicates() == 0;
        if !calm {
            self.recovery.disorder(self.stream.next());
            self.timers.stop(Timer::Probe);
        } else if self.recovery.phase() == Phase::Disorder {
            self.become_open();
        }
    }

    #[inline(never)]
    fn in_recovery(&mut self, now: Instant, report: &Report) {
        let (una, high) = (self.stream.una(), self.recovery.high());
        let over = if self.has_sack() {
            una >= high
        } else {
            // RFC 6582 section 6.1: not at `recover` exactly, since duplicates of what was sent before may follow
            una > high || (una == high && self.board.is_empty())
        };
        if over {
            if !self.undo_by_any(report) {
                let cwnd = reduction::at_the_end(self.config.reduction, self.level());
                self.window.set_cwnd(cwnd);
            }
            self.become_open();
            self.in_disorder(now, report);
            return;
        }
        if report.advanced && self.recovery.may_undo() && self.recovery.is_before_retransmission(report) {
            // the acknowledgement of an original: what fills the gap was late, not lost
            let distance = self
                .board
                .segments()
                .min(report.acked / self.size.mss().max(1) + 1);
            self.detection.on_reordering(distance);
            if !self.board.has_retransmissions() || self.config.undo {
                self.undo(true);
                self.recovery.disorder(self.stream.next());
                return;
            }
        }
        if self.has_sack() {
            self.detect(now);
        } else if report.advanced {
            // a partial acknowledgement: the next segment was lost too
            self.board.mark_lost(0);
            self.pending.demand_retransmission();
        } else if report.duplicate {
            self.recovery.add_duplicate(self.board.segments());
        }
    }

    /// After a timeout: RFC 5682 section 3.1, and slow start. Whether cwnd is what F-RTO makes it.
    #[inline(never)]
    fn in_loss(&mut self, now: Instant, report: &Report) -> bool {
        let sight = Sight {
            una: self.stream.una(),
            next: self.stream.next(),
            may_send_new: self.may_send_new_data(),
        };
        let verdict = self.recovery.judge_timeout(self.config.frto_rule, report, sight);
        if self.follow(verdict, now, report) {
            return verdict.sets_window();
        }
        if self.stream.una() >= self.recovery.high() {
            self.undo_by_any(report);
            self.become_open();
            self.in_disorder(now, report);
        } else if report.advanced && self.recovery.is_before_retransmission(report) && self.undo(true) {
            self.become_open();
        } else {
            if !self.has_sack() && report.advanced {
                self.recovery.forget_duplicates();
            }
            self.detect(now);
        }
        verdict.sets_window()
    }

    /// Does what F-RTO says of the timeout. Whether the acknowledgement is dealt with; otherwise it is as after any timeout.
    fn follow(&mut self, verdict: Verdict, now: Instant, report: &Report) -> bool {
        match verdict {
            Verdict::Open => false,
            Verdict::Asks | Verdict::Waits => true,
            Verdict::AsksWithTwo => {
                self.window.set_cwnd(self.pipe() + 2 * self.size.mss());
                true
            }
            Verdict::Spurious => {
                self.counters.spurious_timeouts += 1;
                if let Some(prior) = self.recovery.undo_timeout() {
                    self.take_back(prior, true);
                }
                self.become_open();
                self.in_disorder(now, report);
                true
            }
            Verdict::SpuriousButReduced => {
                self.counters.spurious_timeouts += 1;
                self.board.unmark_lost();
                self.become_open();
                let flightsize = self.board.flightsize() + report.acked;
                self.recovery.begin_reduction(self.stream.next(), flightsize);
                true
            }
            Verdict::Lost { segments } => {
                // `tcp_enter_frto_loss`
                self.board.mark_all_lost();
                self.window.set_cwnd(segments * self.size.mss());
                self.recovery.prolong_loss(self.stream.next());
                false
            }
        }
    }

    /// Marks what is lost by now.
    fn detect(&mut self, now: Instant) {
        match self.detection.finder() {
            Finder::Duplicates(thresh) => {
                if self.recovery.duplicates() >= thresh && self.recovery.is_calm() {
                    self.board.mark_lost(0);
                }
                return;
            }
            Finder::Rack => self.rack_detect(now),
            Finder::Forward(thresh) => self.board.mark_below_forward(thresh),
            Finder::Sacked(thresh) => {
                self.board.mark_below_sacked(thresh);
            }
        }
        if self.config.early_retransmit {
            self.consider_early_retransmit(now);
        }
    }

    /// RFC 8985 section 6.2, step 5: RACK_detect_loss, with the timer of section 6.3.
    fn rack_detect(&mut self, now: Instant) {
        self.timers.stop(Timer::Reorder);
        let recovering = self.recovery.is_recovering();
        let Some(overdue) = self.detection.overdue(&self.board, &self.rtt, recovering) else {
            return;
        };
        let next = self.board.mark_overdue(overdue.arrived, |sent| {
            let due = sent + overdue.after;
            if due <= now { Ok(()) } else { Err(due) }
        });
        if let Some(at) = next {
            self.timers.start(Timer::Reorder, at);
        }
    }

    /// RFC 5827 section 3.2, delayed by a quarter of a round trip, and not after reordering was seen, as Linux has it.
    fn consider_early_retransmit(&mut self, now: Instant) {
        let outstanding = self.board.segments();
        let sacked = self.board.sacked_segments();
        let due = self.recovery.is_calm()
            && !self.detection.adapts()
            && sacked > 0
            && outstanding < 4
            && sacked + 1 >= outstanding
            && !self.board.has_lost()
            && !self.may_send_new_data();
        if due {
            let wait = self.rtt.srtt().unwrap_or(Duration::ZERO) / 4;
            let at = now + wait.max(Duration::from_millis(2));
            self.timers.ensure(Timer::Reorder, at);
        } else {
            self.timers.stop(Timer::Reorder);
        }
    }

    fn enter_recovery(&mut self, now: Instant, report: &Report) {
        self.counters.fast_recoveries += 1;
        let prior = self.prior();
        let flightsize = self.board.flightsize();
        self.recovery.begin(
            &self.config,
            self.stream.una(),
            self.stream.next(),
            flightsize + report.acked,
            prior,
        );
        self.window.on_loss(Loss {
            now,
            flightsize,
            cut_already: false,
        });
        if self.config.reduction != Reduction::Immediate {
            // cwnd is at ssthresh: unless it comes down at once, it begins where it stood
            self.window.set_cwnd(prior.cwnd);
        }
        self.pending.demand_retransmission();
        self.timers.stop(Timer::Probe);
    }

    fn become_open(&mut self) {
        if self.recovery.open() {
            self.detection.on_recovered();
        }
        self.timers.stop(Timer::Reorder);
    }

    /// cwnd on its way to ssthresh.
    #[inline(never)]
    pub(super) fn reduce(&mut self, effect: Effect) {
        let level = self.level();
        if let Some(cwnd) = self.recovery.reduce(self.config.reduction, effect, level) {
            self.window.set_cwnd(cwnd);
        }
    }

    fn prior(&self) -> Prior {
        Prior {
            cwnd: self.window.cwnd(),
            ssthresh: self.window.ssthresh(),
        }
    }

    /// Works off the timers that are due. `opening` says that our SYN is not acknowledged.
    pub fn handle_timeout(&mut self, now: Instant, opening: bool) -> Expiry {
        if self.timers.take_due(Timer::Reorder, now) {
            self.on_reorder_timer(now);
        }
        if self.timers.take_due(Timer::Probe, now) {
            self.on_probe_timer(now);
        }
        if self.timers.take_due(Timer::Persist, now) {
            // a peer that answers keeps the connection, however long its window stays closed
            if self.timers.unanswered() >= self.config.max_retransmits {
                return Expiry::GivesUp;
            }
            self.timers.count_retry();
            self.timers.back_off_persist();
            self.pending.demand_window_probe();
        }
        if self.timers.take_due(Timer::Retransmission, now) {
            return self.on_retransmission_timeout(now, opening);
        }
        Expiry::Goes
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next; [`Instant::MAX`] if never.
    pub fn poll_timeout(&self) -> Instant {
        self.timers.earliest()
    }

    /// The timer of early retransmit, or of RACK.
    fn on_reorder_timer(&mut self, now: Instant) {
        if self.detection.uses_rack() {
            self.rack_detect(now);
        } else {
            self.board.mark_lost(0);
        }
        if self.board.has_lost() && self.recovery.is_calm() {
            self.enter_recovery(now, &Report::default());
            if self.detection.uses_rack() {
                // no acknowledgement will bring the window down before something is sent
                self.reduce(Effect::default());
            }
        }
    }

    /// RFC 8985 section 7.3: TLP_send_probe.
    fn on_probe_timer(&mut self, now: Instant) {
        if self.board.is_empty() {
            return;
        }
        self.counters.loss_probes += 1;
        self.pending.demand_loss_probe();
        // the retransmission timer begins anew with the probe
        self.timers.start(Timer::Retransmission, now + self.rtt.rto());
    }

    /// RFC 8985 section 7.2, TLP_calc_PTO: the probe timeout. It takes the place of the retransmission timer where that
    /// would expire sooner, and that begins anew with the probe.
    pub(super) fn arm_probe(&mut self, now: Instant) {
        let armed = self.config.tail_loss_probe
            && self.has_sack()
            && self.recovery.phase() == Phase::Open
            && !self.recovery.is_probing()
            && self.board.sacked_segments() == 0
            && !self.board.is_empty();
        if !armed {
            self.timers.stop(Timer::Probe);
            return;
        }
        let timeout = match self.rtt.srtt() {
            Some(srtt) => {
                let alone = self.board.segments() == 1;
                srtt * 2 + if alone { MOST_ACK_DELAY } else { Duration::ZERO }
            }
            None => Duration::from_secs(1),
        };
        let latest = self.timers.at(Timer::Retransmission).unwrap_or(Instant::MAX);
        self.timers.start(Timer::Probe, (now + timeout).min(latest));
    }

    /// The retransmission timer expired: RFC 6298 section 5.4 to 5.6.
    fn on_retransmission_timeout(&mut self, now: Instant, opening: bool) -> Expiry {
        self.counters.timeouts += 1;
        if let Some(network) = &mut self.network {
            network.on_timeout();
        }
        let most = if opening {
            self.config.max_syn_retransmits
        } else {
            self.config.max_retransmits
        };
        if self.timers.unanswered() >= most {
            return Expiry::GivesUp;
        }
        if !opening {
            if self.has_reneged() {
                self.board.forget_sacks();
            }
            self.enter_loss(now);
            self.pending.demand_retransmission();
        }
        self.timers.count_retry();
        self.rtt.back_off();
        if opening { Expiry::Syn } else { Expiry::Goes }
    }

    #[inline(never)]
    fn enter_loss(&mut self, now: Instant) {
        let retried = self.timers.retries() > 0;
        let again = self.recovery.phase() == Phase::Loss && retried;
        let recovering = self.recovery.is_recovering();
        let new = !recovering || self.stream.una() >= self.recovery.high();
        // ssthresh is cut once per window (RFC 5681 section 3.1)
        let cut_already = recovering && !new && (again || self.recovery.phase() == Phase::Recovery);
        let prior = (!cut_already).then(|| self.prior());
        self.window.on_rto(Loss {
            now,
            flightsize: self.board.flightsize(),
            cut_already,
        });
        // before everything outstanding is marked as lost
        let (mut had_retransmitted, mut under_way) = (false, 0);
        for sent in self.board.iter() {
            had_retransmitted |= sent.was_retransmitted();
            under_way += u32::from(sent.is_retransmitted());
        }
        let head_only = !self.board.iter().skip(1).any(|sent| sent.was_retransmitted());
        self.board.mark_all_lost();
        let asks = match self.config.frto_rule {
            // RFC 5682 section 2.1, step 1: not where a recovery was under way already
            FrtoRule::Rfc5682 => new || retried,
            FrtoRule::Rfc4138 => self.has_sack() || head_only,
        };
        let timeout = Timeout {
            una: self.stream.una(),
            prior,
            had_retransmitted,
            under_way,
        };
        self.recovery
            .begin_loss(&self.config, self.stream.next(), timeout, asks, new);
        self.detection.on_timeout();
        self.timers.stop(Timer::Reorder);
        self.timers.stop(Timer::Probe);
    }

    /// Without SACK: new data is acknowledged after duplicates.
    #[inline(never)]
    fn forget_duplicates(&mut self, report: &Report) {
        let gone = (report.acked / self.size.mss().max(1)).saturating_sub(1);
        self.recovery.on_advance(gone);
    }

    /// RFC 2018 section 8: what the peer had SACKed it no longer has.
    #[inline(never)]
    fn on_reneging(&mut self, now: Instant) {
        self.board.forget_sacks();
        self.enter_loss(now);
        self.pending.demand_retransmission();
    }

    /// Whether the first segment outstanding is marked as SACKed: then SND.UNA would be beyond it.
    fn has_reneged(&self) -> bool {
        self.board.first().is_some_and(|s| s.is_sacked())
    }

    /// A retransmission counts as lost too if something that was sent after it has arrived: the acknowledgement of new
    /// data sent later says so, less what reordering explains.
    pub(super) fn mark_lost_retransmissions(&mut self, arrived: u64) {
        let slack = self.detection.slack(self.size.mss());
        let high = self.recovery.high();
        let lost: smallvec::SmallVec<[usize; 8]> = self
            .board
            .iter()
            .enumerate()
            .take_while(|(_, s)| s.end() <= high)
            .filter(|(_, s)| s.is_retransmitted() && arrived > s.next_at_retransmission() + slack)
            .map(|(index, _)| index)
            .collect();
        for index in lost {
            self.board.mark_lost(index);
        }
    }

    fn undo_by_dsack(&mut self) {
        if self.recovery.all_were_duplicates() {
            self.undo(false);
        }
    }

    fn undo_by_any(&mut self, report: &Report) -> bool {
        let needless = self.recovery.all_were_duplicates() || self.recovery.is_before_retransmission(report);
        needless && self.undo(false)
    }

    /// Takes the last reduction back, if it may be.
    fn undo(&mut self, unmark: bool) -> bool {
        let prior = self.recovery.undo();
        if let Some(prior) = prior {
            self.take_back(prior, unmark);
        }
        prior.is_some()
    }

    fn take_back(&mut self, prior: Prior, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        self.counters.undone += 1;
        self.window.on_undo(prior);
    }
}

/// TLP.max_ack_delay (RFC 8985 section 7.2).
const MOST_ACK_DELAY: Duration = Duration::from_millis(200);
