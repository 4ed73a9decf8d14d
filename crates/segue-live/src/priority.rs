//! What a process needs whose packets have to leave at a time, not after it.

use nix::errno::Errno;
use nix::libc::{SCHED_FIFO, SCHED_RESET_ON_FORK, sched_param, sched_setscheduler};
use nix::sys::prctl::set_timerslack;
use std::io;

/// Has this thread run before all ordinary ones as soon as it has something to do (`SCHED_FIFO`), and its timers expire when
/// they are due, not up to 50 us later. For a thread that waits most of the time: the kernel stops one that does not for 50 ms
/// of every second.
///
/// # Errors
/// Without `CAP_SYS_NICE`.
#[allow(unsafe_code, reason = "sched_setscheduler(2) takes a pointer")]
pub fn raise_priority() -> io::Result<()> {
    set_timerslack(1)?;
    let mut parameter = sched_param { sched_priority: 10 };
    // SAFETY: the kernel reads one sched_param, which lives throughout the call.
    let result = unsafe { sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &raw mut parameter) };
    Errno::result(result)?;
    Ok(())
}
