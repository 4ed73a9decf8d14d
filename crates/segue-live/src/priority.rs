//! What a process needs whose packets have to leave at a time, not after it.

use nix::errno::Errno;
use nix::libc::{
    PRIO_PROCESS, SCHED_FIFO, SCHED_IDLE, SCHED_OTHER, SCHED_RESET_ON_FORK, sched_param, sched_setscheduler,
    setpriority,
};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl::set_timerslack;
use nix::unistd::Pid;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The calling thread.
const THIS: Pid = Pid::from_raw(0);

/// Has this thread run before all ordinary ones as soon as it has something to do (`SCHED_FIFO`), and its timers expire when
/// they are due, not up to 50 us later. For a thread that waits most of the time: the kernel stops one that does not for 50 ms
/// of every second.
///
/// # Errors
/// Without `CAP_SYS_NICE`.
pub fn raise_priority() -> io::Result<()> {
    set_timerslack(1)?;
    set_policy(SCHED_FIFO, 10)
}

/// Has this thread run before those that [`raise_priority`] has run before all others: for one that hardly does anything.
///
/// # Errors
/// Without `CAP_SYS_NICE`.
pub(crate) fn raise_priority_above_all() -> io::Result<()> {
    set_timerslack(1)?;
    set_policy(SCHED_FIFO, 20)
}

/// Has this thread run on this processor alone.
///
/// # Errors
/// Where this process may not run on it.
pub(crate) fn only_on(place: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(place)?;
    Ok(sched_setaffinity(THIS, &only)?)
}

/// The processors that this process may run on, by number.
pub(crate) fn processors() -> impl Iterator<Item = usize> + Clone {
    let allowed = sched_getaffinity(THIS).unwrap_or_default();
    (0..CpuSet::count()).filter(move |&place| allowed.is_set(place).unwrap_or(false))
}

/// Has this thread run as all ordinary ones do, again.
pub fn ordinary_priority() {
    // what asks for less is not refused
    let _ = set_policy(SCHED_OTHER, 0);
}

/// Has this thread, and the programs and threads that it starts, run before ordinary work, as `nice` has it: from -20, before all
/// others, to 19.
///
/// # Errors
/// One that is less than the present one, without `CAP_SYS_NICE`.
#[allow(unsafe_code, reason = "setpriority(2) is of the C library")]
pub fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: it takes numbers alone.
    Errno::result(unsafe { setpriority(PRIO_PROCESS, 0, nice) })?;
    Ok(())
}

/// A processor is kept awake for so long, and may sleep for so long then. A virtual machine has a share of the processors of its
/// host; one that is never idle has used it up with whatever its host does for it, and stands still for milliseconds then.
const AWAKE: Duration = Duration::from_millis(5);
const ASLEEP: Duration = Duration::from_micros(500);

/// Processors that hardly sleep while this lives. One that sleeps takes its time to wake: tens of microseconds for a machine, and
/// milliseconds for a virtual one whose host has something else to do by then.
#[derive(Debug)]
pub struct Awake {
    over: Arc<AtomicBool>,
    threads: usize,
}

impl Awake {
    /// Has as many processors as this process may run on stay awake, at most `most`: a thread on each has something to do whenever
    /// nobody else has (`SCHED_IDLE`), and is in nobody's way. None do where this process may have less of their time than there is
    /// (a quota of its control group): it would be theirs.
    #[must_use]
    pub fn keep(most: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let places = processors();
        let has_quota =
            std::thread::available_parallelism().is_ok_and(|own| own.get() < places.clone().count());
        let most = if has_quota { 0 } else { most };
        let threads = places.take(most).filter_map(|place| {
            let over = Arc::clone(&over);
            let awake = std::thread::Builder::new().name(format!("awake-{place}"));
            awake.spawn(move || stay_on(place, &over)).ok()
        });
        // nobody waits for them in the end: they may not have had a turn for long
        Self {
            threads: threads.count(),
            over,
        }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.threads
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.threads == 0
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Nothing of the kind where the thread would be in the way of others.
#[expect(clippy::disallowed_methods, reason = "a thread of its own naps")]
fn stay_on(place: usize, over: &AtomicBool) {
    if only_on(place).is_err() || set_policy(SCHED_IDLE, 0).is_err() {
        return;
    }
    let mut since = Instant::now();
    while !over.load(Ordering::Relaxed) {
        core::hint::spin_loop();
        if since.elapsed() >= AWAKE {
            std::thread::sleep(ASLEEP);
            since = Instant::now();
        }
    }
}

#[allow(unsafe_code, reason = "sched_setscheduler(2) takes a pointer")]
pub(crate) fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameter = sched_param {
        sched_priority: priority,
    };
    // SAFETY: the kernel reads one sched_param, which lives throughout the call.
    let result = unsafe { sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &raw const parameter) };
    Errno::result(result)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_a_thread_starts_have_its_niceness() {
        let said = std::thread::spawn(|| {
            set_nice(19).unwrap();
            let done = std::process::Command::new("nice").output().unwrap();
            String::from_utf8(done.stdout).unwrap()
        });
        assert_eq!(said.join().unwrap(), "19\n");
    }

    #[test]
    fn as_many_processors_stay_awake_as_there_are_and_may() {
        let there = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(Awake::keep(0).is_empty());
        let all = Awake::keep(usize::MAX).len();
        assert!(
            all == there || all == 0,
            "{all} of {there}, all but where there is a quota"
        );
        assert_eq!(Awake::keep(1).len(), all.min(1));
    }
}
