//! An analysis that is looked at while it goes on: of a capture that is still being made.

use super::glance::Glance;
use super::input::{Error, Input};
use super::lane::Run;
use super::model::{Analysis, Options};
use super::offset::Common;
use super::reader::{Next, Reader};
use super::stream::Stream;
use super::watch::Watch;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// From one look to the next, at least.
const INTERVAL: Duration = Duration::from_millis(250);

/// And at least so many times as long as a look takes.
const REST: u32 = 10;

/// Analyses a capture that is still being made, and gives what has been found by then to `told`, four times a second at most. The
/// capture is over when it ends or when the watch ends it ([`Watch::end`]); then the result is as that of
/// [`analyze_inputs`](super::analyze_inputs).
///
/// What has been found is made from what the analysis keeps of its flows, and not from the packets: how long a look takes
/// depends on how many flows there are, and is never more than a tenth of the time.
///
/// # Errors
/// As [`analyze_inputs`](super::analyze_inputs).
pub fn analyze_live(
    input: &Input,
    options: &Options,
    watch: &Arc<Watch>,
    mut told: impl FnMut(&Glance),
) -> Result<Analysis, Error> {
    let input = input.clone().watched(watch);
    let reader = Reader::open_live(&input, watch)?;
    let common = Common::default();
    let stream = Stream::new(reader, input.name(), 0, common.clocks);
    let mut run = Run::new(vec![stream], common, options);
    let mut pace = Pace::new(now());
    loop {
        let next = run.step();
        let now = now();
        if matches!(next, Next::Packet(_)) {
            pace.heard(now);
        }
        if pace.is_due(now) {
            if let Some(glance) = run.glance() {
                told(&Glance {
                    quiet_s: pace.quiet(now).as_secs_f64(),
                    ..glance
                });
            }
            pace.looked(now, self::now());
        }
        if next == Next::End {
            break;
        }
    }
    let mut analysis = run.finish()?;
    if watch.is_ended() {
        // where in a packet that was makes no difference
        analysis.captures.iter_mut().for_each(|c| c.partial = None);
    }
    Ok(analysis)
}

#[expect(
    clippy::disallowed_methods,
    reason = "who watches a capture that is being made has a clock"
)]
fn now() -> Instant {
    Instant::now()
}

/// When it is time for another look.
#[derive(Clone, Copy, Debug)]
struct Pace {
    due: Instant,
    heard: Instant,
}

impl Pace {
    /// The first look is due at once: it shows that something is there.
    const fn new(now: Instant) -> Self {
        Self { due: now, heard: now }
    }

    /// A packet came.
    const fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// For how long no packet has come.
    fn quiet(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.heard)
    }

    /// A look took from `begin` to `end`.
    fn looked(&mut self, begin: Instant, end: Instant) {
        let took = end.saturating_duration_since(begin);
        self.due = end + INTERVAL.max(took.saturating_mul(REST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_take_a_tenth_of_the_time_at_most() {
        let begin = now();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let mut pace = Pace::new(begin);
        assert!(pace.is_due(begin));
        pace.looked(begin, at(1));
        assert!(!pace.is_due(at(250)) && pace.is_due(at(251)));
        pace.looked(at(300), at(400));
        assert!(!pace.is_due(at(1399)) && pace.is_due(at(1400)));
        pace.heard(at(500));
        assert_eq!(pace.quiet(at(1700)), Duration::from_millis(1200));
    }
}
