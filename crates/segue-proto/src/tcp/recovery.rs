//! Loss recovery: fast retransmit (RFC 5681 section 3.2, RFC 6675; RFC 6582 without SACK), the retransmission timer
//! (RFC 6298 section 5), and taking back what was needless (Eifel, RFC 3522 and 4015; DSACK, RFC 3708). F-RTO is in
//! [`super::frto`].
//!
//! The phases are Linux's. *Open*: all is well. *Disorder*: something was SACKed or acknowledged twice. *Recovery*: fast
//! retransmit. *Loss*: after a timeout. Without SACK, every duplicate acknowledgement counts as if it SACKed a segment.

use super::ack::Report;
use super::config::{FrtoRule, LossDetection};
use super::connection::Connection;
use super::event::{Event, State};
use super::frto::Frto;
use super::reduction::WayDown;
use crate::congestion::{Loss, Prior};
use crate::time::{Duration, Instant};

/// Where loss recovery is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// All is well.
    Open,
    /// Something was SACKed or acknowledged twice.
    Disorder,
    /// Fast retransmit.
    Recovery,
    /// After a timeout.
    Loss,
}

/// The state of loss recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    pub phase: Phase,
    /// RecoveryPoint of RFC 6675, recover of RFC 6582: SND.NXT when the recovery began.
    pub high: u64,
    /// DupThresh, segments.
    pub dup_thresh: u32,
    /// Count from the highest SACKed segment: until reordering is seen.
    pub forward: bool,
    reordering_seen: bool,
    /// Duplicate acknowledgements, without SACK.
    pub duplicates: u32,
    /// SND.UNA when the reduction at hand was made; `None` if there is none to take back.
    undo_marker: Option<u64>,
    /// Retransmissions that no DSACK has reported as duplicates; `None` before the first.
    undo_retransmissions: Option<u32>,
    prior: Prior,
    /// What was sent before this position is of no use to judge a reduction by.
    no_undo_before: u64,
    /// F-RTO may take the last timeout back, whatever else may not.
    frto_undo: bool,
    /// Timestamp of the first retransmission.
    pub first_retransmission: Option<u32>,
    pub frto: Frto,
    /// F-RTO: new data goes before retransmissions.
    pub new_data_first: bool,
    pub way_down: WayDown,
    /// The last segment was retransmitted for rule 4 of RFC 6675's NextSeg.
    pub rescued: bool,
    /// Where forward retransmissions (rule 3) have come to.
    pub forward_from: u64,
    /// SND.NXT when a tail loss probe was sent, and whether it was a retransmission.
    pub probe: Option<(u64, bool)>,
}

impl Recovery {
    pub fn new(forward: bool) -> Self {
        Self {
            phase: Phase::Open,
            high: 0,
            dup_thresh: DUP_THRESH,
            forward,
            reordering_seen: false,
            duplicates: 0,
            undo_marker: None,
            undo_retransmissions: None,
            prior: Prior { cwnd: 0, ssthresh: 0 },
            no_undo_before: 0,
            frto_undo: false,
            first_retransmission: None,
            frto: Frto::default(),
            new_data_first: false,
            way_down: WayDown::default(),
            rescued: false,
            forward_from: 0,
            probe: None,
        }
    }

    /// A retransmission goes out.
    pub fn on_retransmit(&mut self, ts: u32) {
        self.first_retransmission.get_or_insert(ts);
        if self.undo_marker.is_some() {
            self.undo_retransmissions = Some(self.undo_retransmissions.unwrap_or(0) + 1);
        }
    }

    /// The peer is in another network: no reduction that is made for what was sent until then, up to `next`, is taken back.
    /// Where the window stood says nothing of the way that is taken now, and what was under way to the other network is no
    /// more to be waited for.
    pub fn forget_prior(&mut self, next: u64) {
        self.undo_marker = None;
        self.undo_retransmissions = None;
        self.frto_undo = false;
        self.no_undo_before = next;
    }

    /// What arrived twice was perhaps retransmitted in this recovery.
    pub fn note_dsack(&mut self, right: u64, una: u64) {
        if let (Some(marker), Some(count @ 1..)) = (self.undo_marker, self.undo_retransmissions)
            && right > marker
            && right <= una
        {
            self.undo_retransmissions = Some(count - 1);
        }
    }
}

impl Connection {
    /// Bytes thought to be in the network; without SACK, duplicate acknowledgements have taken a segment out each
    /// (RFC 5681 section 3.2, step 4).
    pub(super) fn pipe(&self) -> u32 {
        let pipe = self.board.pipe();
        match self.recovery.duplicates {
            0 => pipe,
            n => pipe.saturating_sub(n * self.mss),
        }
    }

    /// What the acknowledgement means for recovery.
    pub(super) fn recover(&mut self, now: Instant, report: &Report) {
        if self.has_reneged() {
            self.on_reneging(now);
        }
        if report.advanced && self.recovery.duplicates > 0 && self.recovery.phase != Phase::Loss {
            self.forget_duplicates(report);
        }
        match self.recovery.phase {
            Phase::Open if report.sacked == 0 && !report.duplicate && self.board.sacked_segments() == 0 => {
                if report.dsack {
                    self.undo_by_dsack();
                }
            }
            Phase::Open | Phase::Disorder => self.in_disorder(now, report),
            Phase::Recovery => self.in_recovery(now, report),
            Phase::Loss => self.in_loss(now, report),
        }
    }

    #[inline(never)]
    pub(super) fn in_disorder(&mut self, now: Instant, report: &Report) {
        if report.duplicate && !self.sack {
            self.add_duplicate();
        }
        if report.dsack {
            self.undo_by_dsack();
        }
        self.detect(now);
        if self.board.has_lost() {
            self.enter_recovery(now, report);
            return;
        }
        let calm = self.board.sacked_segments() == 0 && self.recovery.duplicates == 0;
        if calm && self.recovery.phase == Phase::Disorder {
            self.become_open();
        } else if !calm {
            self.recovery.phase = Phase::Disorder;
            self.recovery.high = self.snd_nxt;
            self.probe_at = None;
        }
    }

    #[inline(never)]
    fn in_recovery(&mut self, now: Instant, report: &Report) {
        let over = if self.sack {
            self.snd_una >= self.recovery.high
        } else {
            // RFC 6582 section 6.1: not at `recover` exactly, since duplicates of what was sent before may follow
            self.snd_una > self.recovery.high || (self.snd_una == self.recovery.high && self.board.is_empty())
        };
        if over {
            if !self.undo_by_any(report) {
                self.finish_reduction();
            }
            self.become_open();
            self.in_disorder(now, report);
            return;
        }
        if report.advanced && self.recovery.undo_marker.is_some() && self.is_before_retransmission(report) {
            // the acknowledgement of an original: what fills the gap was late, not lost
            let distance = self.board.segments().min(report.acked / self.mss.max(1) + 1);
            self.on_reordering(distance);
            if !self.board.has_retransmissions() || self.config.undo {
                self.undo(true);
                self.recovery.phase = Phase::Disorder;
                self.recovery.high = self.snd_nxt;
                return;
            }
        }
        if !self.sack {
            if report.advanced {
                // a partial acknowledgement: the next segment was lost too
                self.board.mark_lost(0);
                self.forced = true;
            } else if report.duplicate {
                self.add_duplicate();
            }
            return;
        }
        self.detect(now);
    }

    /// After a timeout: RFC 5682 section 3.1, and slow start.
    #[inline(never)]
    fn in_loss(&mut self, now: Instant, report: &Report) {
        if self.finds_spurious_timeout(now, report) {
            return;
        }
        let recovered = self.snd_una >= self.recovery.high;
        if recovered {
            self.undo_by_any(report);
            self.become_open();
            self.in_disorder(now, report);
            return;
        }
        if report.advanced && self.is_before_retransmission(report) && self.undo(true) {
            self.become_open();
            return;
        }
        if !self.sack && report.advanced {
            self.recovery.duplicates = 0;
        }
        self.detect(now);
    }

    /// Marks what is lost by now.
    fn detect(&mut self, now: Instant) {
        if !self.sack {
            let enough = self.recovery.duplicates >= self.dup_thresh();
            if enough && matches!(self.recovery.phase, Phase::Open | Phase::Disorder) {
                self.board.mark_lost(0);
            }
            return;
        }
        match self.config.loss_detection {
            LossDetection::Rack => self.rack_detect(now),
            LossDetection::Fack if self.recovery.forward => {
                let thresh = self.dup_thresh();
                self.board.mark_below_forward(thresh);
            }
            _ => {
                let thresh = self.dup_thresh();
                self.board.mark_below_sacked(thresh);
            }
        }
        if self.config.early_retransmit {
            self.consider_early_retransmit(now);
        }
    }

    fn dup_thresh(&self) -> u32 {
        self.recovery.dup_thresh
    }

    /// RFC 5827 section 3.2, delayed by a quarter of a round trip, and not after reordering was seen, as Linux has it.
    fn consider_early_retransmit(&mut self, now: Instant) {
        let outstanding = self.board.segments();
        let sacked = self.board.sacked_segments();
        let due = matches!(self.recovery.phase, Phase::Open | Phase::Disorder)
            && !self.recovery.reordering_seen
            && sacked > 0
            && outstanding < 4
            && sacked + 1 >= outstanding
            && !self.board.has_lost()
            && !self.may_send_new_data();
        if !due {
            self.reorder_at = None;
        } else if self.reorder_at.is_none() {
            let wait = self.rtt.srtt().unwrap_or(Duration::ZERO) / 4;
            self.reorder_at = Some(now + wait.max(Duration::from_millis(2)));
        }
    }

    /// The timer of early retransmit, or of RACK.
    pub(super) fn on_reorder_timer(&mut self, now: Instant) {
        self.reorder_at = None;
        if self.uses_rack() {
            self.rack_detect(now);
        } else {
            self.board.mark_lost(0);
        }
        let fast = matches!(self.recovery.phase, Phase::Open | Phase::Disorder);
        if self.board.has_lost() && fast {
            self.enter_recovery(now, &Report::default());
            if self.uses_rack() {
                // no acknowledgement will bring the window down before something is sent
                self.reduce(&Report::default());
            }
        }
    }

    fn add_duplicate(&mut self) {
        // as many as there are segments behind the first (RFC 5681 section 3.2: cwnd inflation has its bounds)
        let most = self.board.segments().saturating_sub(1);
        self.recovery.duplicates = (self.recovery.duplicates + 1).min(most);
    }

    fn enter_recovery(&mut self, now: Instant, report: &Report) {
        self.counters.fast_recoveries += 1;
        let r = &mut self.recovery;
        r.phase = Phase::Recovery;
        r.high = self.snd_nxt;
        r.undo_marker = (self.config.undo && self.snd_una >= r.no_undo_before).then_some(self.snd_una);
        r.undo_retransmissions = None;
        r.prior = Prior {
            cwnd: self.window.cwnd(),
            ssthresh: self.window.ssthresh(),
        };
        self.begin_reduction(report);
        self.window.on_loss(Loss {
            now,
            flightsize: self.board.flightsize(),
            cut_already: false,
        });
        self.keep_cwnd_for_the_way_down(self.recovery.prior.cwnd);
        self.forced = true;
        self.probe_at = None;
    }

    pub(super) fn become_open(&mut self) {
        if matches!(self.recovery.phase, Phase::Recovery | Phase::Loss) {
            self.rack.on_recovered();
        }
        let r = &mut self.recovery;
        r.phase = Phase::Open;
        r.frto.stop();
        r.new_data_first = false;
        r.duplicates = 0;
        r.first_retransmission = None;
        self.reorder_at = None;
    }

    /// The retransmission timer expired: RFC 6298 section 5.4 to 5.6.
    pub(super) fn on_retransmission_timeout(&mut self, now: Instant) {
        self.counters.timeouts += 1;
        self.rto_at = None;
        if self.retries >= self.most_retries() {
            self.end(Event::TimedOut);
            return;
        }
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.retries += 1;
            self.rtt.back_off();
            self.syn_pending = true;
            return;
        }
        if self.has_reneged() {
            self.board.forget_sacks();
        }
        self.enter_loss(now);
        self.retries += 1;
        self.rtt.back_off();
        self.forced = true;
    }

    fn most_retries(&self) -> u32 {
        match self.state {
            State::SynSent | State::SynReceived => self.config.max_syn_retransmits,
            _ => self.config.max_retransmits,
        }
    }

    #[inline(never)]
    fn enter_loss(&mut self, now: Instant) {
        let again = self.recovery.phase == Phase::Loss && self.retries > 0;
        let in_recovery = matches!(self.recovery.phase, Phase::Recovery | Phase::Loss);
        let new = !in_recovery || self.snd_una >= self.recovery.high;
        // ssthresh is cut once per window (RFC 5681 section 3.1)
        let cut_already = in_recovery && !new && (again || self.recovery.phase == Phase::Recovery);
        if !cut_already {
            self.recovery.prior = Prior {
                cwnd: self.window.cwnd(),
                ssthresh: self.window.ssthresh(),
            };
        }
        self.window.on_rto(Loss {
            now,
            flightsize: self.board.flightsize(),
            cut_already,
        });
        self.mark_undo(cut_already);
        let head_only = !self.board.iter().skip(1).any(|sent| sent.was_retransmitted());
        self.board.mark_all_lost();
        let r = &mut self.recovery;
        r.phase = Phase::Loss;
        let former_high = r.high;
        r.high = self.snd_nxt;
        r.duplicates = 0;
        r.dup_thresh = r.dup_thresh.min(DUP_THRESH);
        let asks = match self.config.frto_rule {
            // RFC 5682 section 2.1, step 1: not where a recovery was under way already
            FrtoRule::Rfc5682 => new || self.retries > 0,
            FrtoRule::Rfc4138 => self.sack || head_only,
        };
        r.frto.stop();
        if self.config.frto && asks {
            r.frto.begin(if new { self.snd_nxt } else { former_high });
        }
        r.new_data_first = false;
        r.probe = None;
        self.reorder_at = None;
        self.probe_at = None;
    }

    /// Without SACK: new data is acknowledged after duplicates.
    #[inline(never)]
    fn forget_duplicates(&mut self, report: &Report) {
        let gone = (report.acked / self.mss.max(1)).saturating_sub(1);
        self.recovery.duplicates = match self.recovery.phase {
            // RFC 6582 section 3.2, step 3: partial window deflation
            Phase::Recovery => self.recovery.duplicates.saturating_sub(gone),
            _ => 0,
        };
    }

    /// RFC 2018 section 8: what the peer had SACKed it no longer has.
    #[inline(never)]
    fn on_reneging(&mut self, now: Instant) {
        self.board.forget_sacks();
        self.enter_loss(now);
        self.forced = true;
    }

    /// Notes what a timeout can be taken back by, before everything outstanding is marked as lost. `again` says that it is
    /// of a window that was cut before.
    fn mark_undo(&mut self, again: bool) {
        let (mut ever, mut under_way) = (false, 0);
        for sent in self.board.iter() {
            ever |= sent.was_retransmitted();
            under_way += u32::from(sent.is_retransmitted());
        }
        let r = &mut self.recovery;
        if !ever {
            r.first_retransmission = None;
        }
        r.frto_undo = self.config.undo && self.snd_una >= r.no_undo_before;
        if !r.frto_undo {
            r.undo_marker = None;
        } else if !self.config.undo_repeated {
            r.undo_marker = (!ever).then_some(self.snd_una);
            r.undo_retransmissions = None;
        } else if !again {
            r.undo_marker = Some(self.snd_una);
            // those may be reported as duplicates later
            r.undo_retransmissions = (under_way > 0).then_some(under_way);
        }
    }

    /// Whether the first segment outstanding is marked as SACKed: then SND.UNA would be beyond it.
    fn has_reneged(&self) -> bool {
        self.board.first().is_some_and(|s| s.is_sacked())
    }

    /// Segments arrived that far out of order.
    pub(super) fn on_reordering(&mut self, distance: u32) {
        self.rack.reordering_seen = true;
        if !self.config.adaptive_reordering {
            return;
        }
        self.recovery.reordering_seen = true;
        if distance > self.recovery.dup_thresh {
            self.recovery.dup_thresh = distance.min(MOST_DUP_THRESH);
            self.recovery.forward = false;
        }
    }

    /// A retransmission counts as lost too if something that was sent after it has arrived: the acknowledgement of new
    /// data sent later says so, less what reordering explains.
    pub(super) fn mark_lost_retransmissions(&mut self, arrived: u64) {
        let slack = if self.recovery.forward {
            0
        } else {
            u64::from(self.recovery.dup_thresh * self.mss)
        };
        let lost: smallvec::SmallVec<[usize; 8]> = self
            .board
            .iter()
            .enumerate()
            .take_while(|(_, s)| s.end <= self.recovery.high)
            .filter(|(_, s)| s.is_retransmitted() && arrived > s.next_at_retransmission + slack)
            .map(|(index, _)| index)
            .collect();
        for index in lost {
            self.board.mark_lost(index);
        }
    }

    /// Every retransmission of this recovery was reported as a duplicate (RFC 3708).
    fn all_were_duplicates(&self) -> bool {
        self.recovery.undo_marker.is_some() && self.recovery.undo_retransmissions == Some(0)
    }

    fn undo_by_dsack(&mut self) {
        if self.all_were_duplicates() {
            self.undo(false);
        }
    }

    fn undo_by_any(&mut self, report: &Report) -> bool {
        let needless = self.all_were_duplicates() || self.is_before_retransmission(report);
        needless && self.undo(false)
    }

    /// Takes the last reduction back, if it may be.
    fn undo(&mut self, unmark: bool) -> bool {
        let may = self.recovery.undo_marker.is_some();
        if may {
            self.take_back(unmark);
        }
        may
    }

    /// What F-RTO found spurious, unless it was for another network.
    pub(super) fn take_timeout_back(&mut self) {
        if self.recovery.frto_undo {
            self.take_back(true);
        }
    }

    fn take_back(&mut self, unmark: bool) {
        self.recovery.undo_marker = None;
        if unmark {
            self.board.unmark_lost();
        }
        self.counters.undone += 1;
        self.window.on_undo(self.recovery.prior);
    }
}

/// DupThresh (RFC 5681 section 3.2).
const DUP_THRESH: u32 = 3;
/// The most that it adapts to.
const MOST_DUP_THRESH: u32 = 127;
