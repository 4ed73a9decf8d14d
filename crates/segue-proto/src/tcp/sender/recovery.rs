//! Where loss recovery is, and what it has to remember: the phase and where it ends, what it can be taken back by, the
//! way down of the window, a tail loss probe. What the sender does for it is in `losses`.
//!
//! The phases are Linux's. *Open*: all is well. *Disorder*: something was SACKed or acknowledged twice. *Recovery*: fast
//! retransmit. *Loss*: after a timeout. Without SACK, every duplicate acknowledgement counts as if it SACKed a segment.

use super::frto::{Frto, Sight, Verdict};
use super::reduction::{Level, WayDown};
use super::report::{Effect, Report};
use super::undo::{Timeout, Undo};
use crate::congestion::Prior;
use crate::tcp::config::{Config, FrtoRule, Reduction};
use crate::tcp::event::Phase;
use crate::tcp::scoreboard::Scoreboard;

/// The state of loss recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    phase: Phase,
    /// RecoveryPoint of RFC 6675, recover of RFC 6582: SND.NXT when the recovery began.
    high: u64,
    /// Duplicate acknowledgements, without SACK.
    duplicates: u32,
    undo: Undo,
    frto: Frto,
    way_down: WayDown,
    /// The last segment was retransmitted for rule 4 of RFC 6675's NextSeg.
    rescued: bool,
    /// Where forward retransmissions (rule 3) have come to.
    forward_from: u64,
    probe: Option<Probe>,
}

/// A tail loss probe (RFC 8985 section 7.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Probe {
    /// SND.NXT when it was sent.
    high: u64,
    /// It was a retransmission.
    retransmitted: bool,
}

impl Recovery {
    pub fn new() -> Self {
        Self {
            phase: Phase::Open,
            high: 0,
            duplicates: 0,
            undo: Undo::default(),
            frto: Frto::default(),
            way_down: WayDown::default(),
            rescued: false,
            forward_from: 0,
            probe: None,
        }
    }

    #[inline]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// No recovery is under way.
    pub fn is_calm(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Disorder)
    }

    /// Something is being repaired.
    pub fn is_recovering(&self) -> bool {
        !self.is_calm()
    }

    /// Where it ends.
    pub fn high(&self) -> u64 {
        self.high
    }

    /// Nothing is repaired, probed or doubted.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Open && self.duplicates == 0 && self.probe.is_none()
    }

    /// All is well again. Whether something was being repaired.
    pub fn open(&mut self) -> bool {
        let recovered = self.is_recovering();
        self.phase = Phase::Open;
        self.frto.stop();
        self.duplicates = 0;
        self.undo.on_recovered();
        recovered
    }

    /// Something is out of order, of what was sent up to `next`.
    pub fn disorder(&mut self, next: u64) {
        self.phase = Phase::Disorder;
        self.high = next;
    }

    /// Fast recovery begins. `prior` is where the window stood, and `flightsize` what was outstanding before the
    /// acknowledgement.
    pub fn begin(&mut self, config: &Config, una: u64, next: u64, flightsize: u32, prior: Prior) {
        self.begin_reduction(next, flightsize);
        self.undo.on_fast_recovery(config.undo, una, prior);
    }

    /// cwnd comes down to ssthresh as in a fast recovery that has nothing to repair (`tcp_enter_cwr`).
    pub fn begin_reduction(&mut self, next: u64, flightsize: u32) {
        self.phase = Phase::Recovery;
        self.high = next;
        self.way_down = WayDown::begin(flightsize);
        self.rescued = false;
        self.forward_from = 0;
        self.probe = None;
    }

    /// The retransmission timer expired, or the peer has reneged: Loss begins. `asks` says that F-RTO may ask whether it was
    /// right; `new` that it is no part of a recovery that was under way.
    pub fn begin_loss(&mut self, config: &Config, next: u64, timeout: Timeout, asks: bool, new: bool) {
        self.undo.on_timeout(config.undo, config.undo_repeated, timeout);
        let former_high = core::mem::replace(&mut self.high, next);
        self.phase = Phase::Loss;
        self.duplicates = 0;
        self.frto.stop();
        if config.frto && asks {
            self.frto.begin(if new { next } else { former_high });
        }
        self.probe = None;
    }

    /// Loss begins without a reduction, so that there is none to take back: what was sent up to `next` is repaired.
    pub fn begin_repair(&mut self, next: u64) {
        self.undo.forget();
        self.high = next;
        self.phase = Phase::Loss;
        self.duplicates = 0;
        self.frto.stop();
        self.probe = None;
    }

    /// Everything outstanding is taken for lost: Loss ends where that ends.
    pub fn prolong_loss(&mut self, next: u64) {
        self.frto.stop();
        self.high = next;
    }

    /// The peer is in another network.
    pub fn on_other_network(&mut self, next: u64) {
        self.undo.on_other_network(next);
    }
}

/// Duplicate acknowledgements, where there is no SACK.
impl Recovery {
    pub fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Another one; with so many segments outstanding there are as many as lie behind the first (RFC 5681 section 3.2:
    /// cwnd inflation has its bounds).
    pub fn add_duplicate(&mut self, segments: u32) {
        self.duplicates = (self.duplicates + 1).min(segments.saturating_sub(1));
    }

    /// New data is acknowledged after duplicates: so many segments beside the first.
    pub fn on_advance(&mut self, gone: u32) {
        match self.phase {
            // RFC 6582 section 3.2, step 3: partial window deflation
            Phase::Recovery => self.duplicates = self.duplicates.saturating_sub(gone),
            Phase::Open | Phase::Disorder => self.duplicates = 0,
            Phase::Loss => {}
        }
    }

    pub fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }
}

/// What is sent.
impl Recovery {
    /// New data of so many bytes goes out.
    pub fn on_transmit(&mut self, bytes: u32) {
        self.way_down.note_sent(bytes);
    }

    /// So many bytes are retransmitted, with this timestamp.
    pub fn on_retransmit(&mut self, ts: u32, bytes: u32) {
        self.undo.on_retransmit(ts);
        self.way_down.note_sent(bytes);
    }

    /// Whether new data goes before retransmissions.
    #[inline]
    pub fn is_new_data_first(&self) -> bool {
        self.frto.is_new_data_first()
    }

    /// Rule 3 of NextSeg (RFC 6675 section 4): the next segment to send again although nothing says that it is lost.
    pub fn next_forward(&mut self, board: &Scoreboard) -> Option<usize> {
        let index = board.next_below_sacked(self.forward_from)?;
        self.forward_from = board.at(index)?.end();
        Some(index)
    }

    /// Whether the last segment was retransmitted (rule 4).
    pub fn is_rescued(&self) -> bool {
        self.rescued
    }

    /// The last segment is retransmitted.
    pub fn on_rescue(&mut self) {
        self.rescued = true;
    }

    /// cwnd after an acknowledgement on the way down; `None` where it stays.
    pub fn reduce(&mut self, rule: Reduction, effect: Effect, level: Level) -> Option<u32> {
        self.way_down.on_ack(rule, effect, level)
    }
}

/// Tail loss probes.
impl Recovery {
    pub fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    /// A probe is sent when so much had been.
    pub fn on_probe(&mut self, high: u64, retransmitted: bool) {
        self.probe = Some(Probe { high, retransmitted });
    }

    /// RFC 8985 section 7.4: whether the probe made good a loss, which costs as any other does.
    #[inline]
    pub fn end_probe(&mut self, una: u64, report: &Report) -> bool {
        match self.probe {
            Some(probe) => self.judge_probe(probe, una, report),
            None => false,
        }
    }

    #[inline(never)]
    fn judge_probe(&mut self, probe: Probe, una: u64, report: &Report) -> bool {
        let Probe { high, retransmitted } = probe;
        if report.dsack && una >= high {
            // both arrived: nothing was lost
            self.probe = None;
        } else if una > high || (una == high && !retransmitted) {
            self.probe = None;
            return retransmitted;
        } else if report.duplicate && report.sacked == 0 && una == high {
            self.probe = None;
        }
        false
    }
}

/// What was needless.
impl Recovery {
    /// What arrived twice was perhaps retransmitted in this recovery.
    pub fn on_dsack(&mut self, right: u64, una: u64) {
        self.undo.on_dsack(right, una);
    }

    /// Whether there is a reduction to take back.
    pub fn may_undo(&self) -> bool {
        self.undo.is_possible()
    }

    /// Every retransmission was reported as a duplicate (RFC 3708).
    pub fn all_were_duplicates(&self) -> bool {
        self.undo.all_were_duplicates()
    }

    /// Whether the acknowledgement is for a transmission before the first retransmission (Eifel, RFC 3522 section 3.2).
    pub fn is_before_retransmission(&self, report: &Report) -> bool {
        self.undo.is_before_retransmission(report.echo)
    }

    /// Takes the last reduction back, if it may be: gives where the window stood before it.
    pub fn undo(&mut self) -> Option<Prior> {
        self.undo.take()
    }

    /// The same for a timeout that F-RTO found spurious.
    pub fn undo_timeout(&mut self) -> Option<Prior> {
        self.undo.take_timeout()
    }

    /// What the acknowledgement says of the last timeout, if F-RTO asks.
    #[inline(never)]
    pub fn judge_timeout(&mut self, rule: FrtoRule, report: &Report, sight: Sight) -> Verdict {
        let Some(awaited) = self.frto.awaited() else {
            return Verdict::Open;
        };
        match rule {
            FrtoRule::Rfc5682 => self.by_rfc_5682(report, sight),
            FrtoRule::Rfc4138 => self.frto.by_rfc_4138(awaited, report, sight),
        }
    }

    fn by_rfc_5682(&mut self, report: &Report, sight: Sight) -> Verdict {
        // step 3b: something arrived that was sent once only
        if report.arrivals.has_original() {
            return Verdict::Spurious;
        }
        if sight.next > self.high {
            // step 3a: the loss was real
            if report.sacked > 0 || report.duplicate {
                self.frto.stop();
            }
        } else if report.advanced && sight.una < self.high {
            // step 2b: new data, if there is any
            self.high = sight.next;
            if sight.may_send_new {
                self.frto.send_new_data();
                return Verdict::Asks;
            }
            self.frto.give_up();
        }
        Verdict::Open
    }
}
