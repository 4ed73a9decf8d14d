//! How a film was seen.

use segue_proto::app::{Stall, Viewing};
use segue_proto::units::BitRate;
use segue_proto::{Duration, Instant};
use serde::Serialize;

/// A film, as it was seen.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct VideoMetrics {
    /// Segments that were there.
    pub segments: u64,
    /// From the connection until the film began, seconds; nothing if it never did.
    pub startup_delay_s: Option<f64>,
    /// Times that it stood still after that, because there was no more of it.
    pub stalls: u64,
    /// How long, together, seconds. If it stood still as the run ended, a lower bound.
    pub stalled_s: f64,
    /// It stood still, or had not begun, as the run ended.
    pub stalled_at_end: bool,
    /// How long it was seen, seconds.
    pub played_s: f64,
    /// Times that a segment had another rate than the one before.
    pub rate_switches: u64,
    /// Mean rate of the segments, bit/s.
    pub mean_rate_bps: Option<f64>,
    /// Each stall, in order.
    pub stall_times: Vec<StallMetrics>,
}

/// A time in which the film stood still.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct StallMetrics {
    /// When it began, seconds.
    pub since_s: f64,
    /// How long it took, seconds.
    pub duration_s: f64,
    /// Until the end of the run: a lower bound.
    pub censored: bool,
}

/// A film in a run that ended then.
pub(super) fn metrics(viewing: &Viewing, end: Instant) -> VideoMetrics {
    let mut stalls = viewing.stalls.clone();
    let dry = viewing.dry.filter(|dry| *dry < end);
    // the film ran out, and the segment that would have told was never there
    stalls.extend(
        dry.filter(|_| !viewing.is_complete)
            .map(|since| Stall { since, until: None }),
    );
    let begun = stalls.first().and_then(|beginning| beginning.until);
    let beginning = stalls.first().map(|beginning| beginning.since);
    let stall = |stall: &Stall| StallMetrics {
        since_s: stall.since.since(Instant::ZERO).as_secs_f64(),
        duration_s: stall.until.unwrap_or(end).since(stall.since).as_secs_f64(),
        censored: stall.until.is_none(),
    };
    let stall_times: Vec<StallMetrics> = stalls.iter().skip(1).map(stall).collect();
    let stalled_s = stall_times.iter().fold(0.0, |sum, s| sum + s.duration_s);
    let until = dry.filter(|_| viewing.is_complete).unwrap_or(end);
    let seen = begun.map_or(Duration::ZERO, |begun| until.since(begun));
    let rates = || viewing.segments.iter().map(|s| s.rate);
    let sum: f64 = rates().map(|rate| rate.bits_per_second() as f64).sum();
    let pairs = rates().zip(rates().skip(1));
    VideoMetrics {
        segments: viewing.segments.len() as u64,
        startup_delay_s: begun
            .zip(beginning)
            .map(|(begun, since)| begun.since(since).as_secs_f64()),
        stalls: stall_times.len() as u64,
        stalled_s,
        stalled_at_end: stalls.last().is_none_or(|stall| stall.until.is_none()),
        played_s: (seen.as_secs_f64() - stalled_s).max(0.0),
        rate_switches: pairs
            .filter(|(one, next): &(BitRate, BitRate)| one != next)
            .count() as u64,
        mean_rate_bps: (!viewing.segments.is_empty()).then(|| sum / viewing.segments.len() as f64),
        stall_times,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::app::Segment;

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    fn viewing(stalls: &[(u64, Option<u64>)], dry: Option<u64>, is_complete: bool) -> Viewing {
        let rates = [200_000, 400_000, 400_000, 200_000];
        Viewing {
            segments: rates
                .map(|bps| Segment {
                    asked: at(0),
                    arrived: at(0),
                    rate: BitRate::from_bits_per_second(bps),
                })
                .to_vec(),
            stalls: stalls
                .iter()
                .map(|(since, until)| Stall {
                    since: at(*since),
                    until: until.map(at),
                })
                .collect(),
            dry: dry.map(at),
            is_complete,
        }
    }

    #[test]
    fn waiting_for_the_beginning_is_no_stall_and_running_out_at_the_end_is_one() {
        let m = metrics(&viewing(&[(2, Some(5)), (20, Some(24))], Some(50), false), at(60));
        assert_eq!((m.startup_delay_s, m.stalls, m.stalled_s), (Some(3.0), 2, 14.0));
        assert_eq!((m.played_s, m.stalled_at_end), (41.0, true));
        assert!(m.stall_times[1].censored && !m.stall_times[0].censored);
        assert_eq!((m.rate_switches, m.mean_rate_bps), (2, Some(300_000.0)));
    }

    #[test]
    fn a_film_that_is_over_has_not_run_out() {
        let m = metrics(&viewing(&[(2, Some(5))], Some(50), true), at(60));
        assert_eq!((m.stalls, m.played_s, m.stalled_at_end), (0, 45.0, false));
    }

    #[test]
    fn a_film_that_never_began_has_no_delay() {
        let m = metrics(&viewing(&[(2, None)], None, false), at(60));
        assert_eq!(
            (m.startup_delay_s, m.played_s, m.stalled_at_end),
            (None, 0.0, true)
        );
        let m = metrics(&Viewing::default(), at(60));
        assert_eq!((m.segments, m.mean_rate_bps, m.stalled_at_end), (0, None, true));
    }
}
