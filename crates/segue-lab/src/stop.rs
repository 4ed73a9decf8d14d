//! SIGINT and SIGTERM end a program in order.

use nix::libc::c_int;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// From now on these signals only [ask](asked) to stop; system calls that wait are interrupted by them. One that whoever started this
/// program has it ignore, as nohup(1) does, stays ignored.
#[allow(unsafe_code, reason = "sigaction(2) takes a function")]
pub(crate) fn catch_signals() -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        let former = unsafe { sigaction(signal, &action) }?;
        if matches!(former.handler(), SigHandler::SigIgn) {
            // SAFETY: there is no handler.
            unsafe { sigaction(signal, &former) }?;
        }
    }
    Ok(())
}

/// Whether one of them has come.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
