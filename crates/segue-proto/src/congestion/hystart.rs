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
    /// Conservative slow start: the shortest round trip of the round that it began after, and its rounds.
    conservative: Option<(Duration, u32)>,
    /// There was slow start once, and it ended: RFC 9406 section 4.2 has it in the initial slow start only.
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
            conservative: None,
            over: false,
        }
    }

    /// Slow start begins anew after a timeout. Linux's HyStart watches it again; HyStart++ does not.
    pub fn restart(&mut self) {
        let over = self.kind == SlowStart::HystartPlusPlus;
        *self = Self {
            over: over && (self.over || self.round_start.is_some()),
            shortest: self.shortest,
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
            SlowStart::HystartPlusPlus => self.plus_plus(acked),
        };
        self.over |= pace == Pace::Stop && self.kind == SlowStart::HystartPlusPlus;
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
/// RFC 9406 section 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_ROUNDS: u32 = 5;
