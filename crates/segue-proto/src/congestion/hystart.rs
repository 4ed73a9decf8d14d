//! When slow start has gone far enough: HyStart (Ha and Rhee, "Taming the elephants: new TCP slow start", Computer
//! Networks 55, 2011) as Linux has it, and HyStart++ (RFC 9406).

use super::{Acked, SlowStart};
use crate::time::{Duration, Instant};

/// What slow start does after an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Goes on.
    Full,
    /// Conservative slow start: a quarter of the growth (RFC 9406 section 4.2).
    Quarter,
    /// It is over: ssthresh becomes cwnd.
    Stop,
}

/// The detector.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HyStart {
    kind: SlowStart,
    round_start: Option<Instant>,
    last_ack: Instant,
    shortest: Option<Duration>,
    last_round: Option<Duration>,
    this_round: Option<Duration>,
    samples: u32,
    /// Linux 5.8: the round lasts until this is acknowledged.
    round_end: u64,
    /// Conservative slow start: the shortest round trip of the round that it began after, and its rounds.
    conservative: Option<(Duration, u32)>,
    /// It has ended slow start: RFC 9406 section 4.2 has it in the initial slow start only; Linux 5.8 once until a timeout.
    over: bool,
}

impl HyStart {
    /// A detector of this kind.
    #[must_use]
    pub const fn new(kind: SlowStart) -> Self {
        Self {
            kind,
            round_start: None,
            last_ack: Instant::ZERO,
            shortest: None,
            last_round: None,
            this_round: None,
            samples: 0,
            round_end: 0,
            conservative: None,
            over: false,
        }
    }

    /// Slow start begins anew after a timeout. Linux's HyStart watches it again; HyStart++ does not. From 5.8 on Linux knows
    /// nothing of the round trip then.
    pub fn restart(&mut self) {
        let over = self.kind == SlowStart::HystartPlusPlus;
        *self = Self {
            over: over && (self.over || self.round_start.is_some()),
            shortest: self.shortest.filter(|_| self.kind != SlowStart::Hystart58),
            ..Self::new(self.kind)
        };
    }

    /// Takes an acknowledgement in slow start, at a window of that many segments.
    pub fn on_ack(&mut self, acked: &Acked, segments: f64) -> Pace {
        if let Some(rtt) = acked.rtt {
            self.shortest = Some(self.shortest.map_or(rtt, |s| s.min(rtt)));
        }
        if self.over {
            return Pace::Full;
        }
        let pace = match self.kind {
            SlowStart::Standard => Pace::Full,
            SlowStart::Hystart => self.linux(acked, segments),
            SlowStart::Hystart58 => self.linux_58(acked, segments),
            SlowStart::HystartPlusPlus => self.plus_plus(acked),
        };
        self.over |= pace == Pace::Stop && self.kind != SlowStart::Hystart;
        pace
    }

    /// Either of the two heuristics: the acknowledgements of a round, each within 2 ms of the one before, go on for half
    /// the shortest round trip; or the first eight round trips of a round are all longer than the shortest by a
    /// sixteenth of it (4 to 16 ms).
    fn linux(&mut self, acked: &Acked, segments: f64) -> Pace {
        if acked.round_start || self.round_start.is_none() {
            self.round_start = Some(acked.now);
            self.last_ack = acked.now;
            self.this_round = None;
            self.samples = 0;
        }
        if segments < LOW_WINDOW {
            return Pace::Full;
        }
        let (Some(start), Some(shortest)) = (self.round_start, self.shortest) else {
            return Pace::Full;
        };
        if acked.now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = acked.now;
            if acked.now.since(start) > shortest / 2 {
                return Pace::Stop;
            }
        }
        if let Some(rtt) = acked.rtt.filter(|_| self.samples < N_RTT_SAMPLE) {
            self.this_round = Some(self.this_round.map_or(rtt, |r| r.min(rtt)));
            self.samples += 1;
        }
        let long = |r: Duration| r > shortest + (shortest / 16).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        if self.samples >= N_RTT_SAMPLE && self.this_round.is_some_and(long) {
            return Pace::Stop;
        }
        Pace::Full
    }

    /// As [`linux`](Self::linux), but the train may be a millisecond longer (what aggregation of acknowledgements explains),
    /// the round trip may grow by an eighth, the ninth measurement of a round is the first that decides, and what it and
    /// later ones are belongs to the round as well. Rounds begin when the window is large enough to be watched.
    fn linux_58(&mut self, acked: &Acked, segments: f64) -> Pace {
        let (Some(shortest), Some(rtt)) = (self.shortest, acked.rtt) else {
            return Pace::Full;
        };
        if segments < LOW_WINDOW {
            return Pace::Full;
        }
        if self.round_start.is_none() || acked.una > self.round_end {
            self.round_start = Some(acked.now);
            self.round_end = acked.next;
            self.last_ack = acked.now;
            self.this_round = None;
            self.samples = 0;
        }
        let mut pace = Pace::Full;
        if acked.now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = acked.now;
            let train = self
                .round_start
                .map_or(Duration::ZERO, |start| acked.now.since(start));
            if train > (shortest + AGGREGATION) / 2 {
                pace = Pace::Stop;
            }
        }
        let least = self.this_round.map_or(rtt, |r| r.min(rtt));
        self.this_round = Some(least);
        if self.samples < N_RTT_SAMPLE {
            self.samples += 1;
        } else if least > shortest + (shortest / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH) {
            pace = Pace::Stop;
        }
        pace
    }

    /// RFC 9406 section 4.2.
    fn plus_plus(&mut self, acked: &Acked) -> Pace {
        if acked.round_start || self.round_start.is_none() {
            self.round_start = Some(acked.now);
            self.last_round = self.this_round.take().or(self.last_round);
            self.samples = 0;
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
                if *rounds > CSS_ROUNDS {
                    return Pace::Stop;
                }
            }
        }
        if let Some(rtt) = acked.rtt {
            self.this_round = Some(self.this_round.map_or(rtt, |r| r.min(rtt)));
            self.samples += 1;
        }
        let enough = self.samples >= N_RTT_SAMPLE;
        match (self.conservative, self.this_round, self.last_round) {
            (None, Some(this), Some(last)) if enough => {
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if this >= last + threshold {
                    self.conservative = Some((this, 1));
                }
            }
            // the growth was no queue's
            (Some((baseline, _)), Some(this), _) if enough && this < baseline => self.conservative = None,
            _ => {}
        }
        if self.conservative.is_some() {
            Pace::Quarter
        } else {
            Pace::Full
        }
    }
}

/// Segments from which on Linux's HyStart looks.
const LOW_WINDOW: f64 = 16.0;
/// Acknowledgements so far apart are of one train.
const ACK_DELTA: Duration = Duration::from_millis(2);
/// What aggregation may add to a train: Linux counts a millisecond at the rates that are usual.
const AGGREGATION: Duration = Duration::from_millis(1);
/// RFC 9406 section 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_ROUNDS: u32 = 5;
