//! When a processor stood still: when it ran not even what runs before all programs.

use crate::clock::Clock;
use crate::priority::{only_on, processors, raise_priority_above_all};
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use segue_proto::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// Each processor is asked for a moment so often.
const EACH: Duration = Duration::from_micros(500);
/// One that comes later than this by so much stood still.
const LATER: Duration = Duration::from_micros(500);
/// Of one processor so many are kept.
const MOST: usize = 10_000;

/// A time in which a processor stood still. It began up to half a millisecond before `from`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standstill {
    /// What was to run then did not.
    pub from: Instant,
    /// It ran.
    pub until: Instant,
}

/// Looks, on each processor, whether what is to run before everything else runs when it is to (`SCHED_FIFO`): programs cannot keep
/// it from that. The host of a virtual machine can, which has given the processor to something else; and the kernel, in what it does
/// not interrupt.
#[derive(Debug)]
pub struct StandstillWatch {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Standstill>>>,
}

impl StandstillWatch {
    /// On as many processors as this process may run on, at most `most`; `None` without `CAP_SYS_NICE`.
    #[must_use]
    pub fn begin(most: usize) -> Option<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let over_all = Arc::clone(&over);
        let (allowed, answers) = std::sync::mpsc::channel();
        let mut threads = Vec::new();
        for place in processors().take(most) {
            let (over, allowed) = (Arc::clone(&over), allowed.clone());
            let thread = Builder::new().name(format!("watch-{place}")).spawn(move || {
                let able = only_on(place).and_then(|()| raise_priority_above_all());
                let _ = allowed.send(able.is_ok());
                drop(allowed);
                able.map_or_else(|_| Vec::new(), |()| look(&over))
            });
            let Ok(thread) = thread else {
                over_all.store(true, Ordering::Relaxed);
                return None;
            };
            threads.push(thread);
        }
        drop(allowed);
        let watch = Self { over, threads };
        // where one may not, those that may end
        (!watch.threads.is_empty() && answers.iter().all(|able| able)).then_some(watch)
    }

    /// All of them since the beginning, those of one processor after those of another.
    #[must_use]
    pub fn end(mut self) -> Vec<Standstill> {
        self.over.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut self.threads).into_iter();
        threads
            .flat_map(|thread| thread.join().unwrap_or_default())
            .collect()
    }
}

impl Drop for StandstillWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn look(over: &AtomicBool) -> Vec<Standstill> {
    let clock = Clock::new();
    let mut found = Vec::new();
    let mut next = clock.now() + EACH;
    while !over.load(Ordering::Relaxed) {
        let at = TimeSpec::from(core::time::Duration::from_nanos(next.as_nanos()));
        match clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &at) {
            Ok(_) => {}
            // a signal wakes it before its time: then it sleeps on
            Err(Errno::EINTR) => continue,
            Err(_) => break,
        }
        let woke = clock.now();
        if woke.since(next) > LATER && found.len() < MOST {
            found.push(Standstill {
                from: next,
                until: woke,
            });
        }
        next = woke.max(next) + EACH;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priority::set_policy;
    use nix::libc::SCHED_FIFO;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a thread of its own waits")]
    fn a_processor_that_something_else_has_is_seen() {
        let Some(watch) = StandstillWatch::begin(1) else {
            eprintln!("SKIPPED: nothing is seen without CAP_SYS_NICE");
            return;
        };
        let place = processors().next().unwrap();
        let taken = std::thread::spawn(move || {
            only_on(place).unwrap();
            set_policy(SCHED_FIFO, 30).unwrap();
            let from = Clock::new().now();
            while Clock::new().now().since(from) < Duration::from_millis(10) {}
            from
        });
        let from = taken.join().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let found = watch.end();
        let is_it = |s: &Standstill| {
            s.from < from + Duration::from_millis(1) && s.until >= from + Duration::from_millis(10)
        };
        assert!(found.iter().any(is_it), "{from:?}: {found:?}");
    }

    #[test]
    fn none_is_looked_at_where_none_is_wanted() {
        assert!(StandstillWatch::begin(0).is_none());
    }
}
