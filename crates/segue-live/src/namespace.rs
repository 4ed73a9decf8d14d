//! Network namespaces: something is opened in one, and then used from wherever this process is.

use nix::sched::{CloneFlags, setns};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// Where `ip netns add` keeps the namespaces that have a name.
const NAMED: &str = "/run/netns";

/// A network namespace, by the file that stands for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Namespace(PathBuf);

impl Namespace {
    /// A namespace by name, as `ip netns` has them, or by path (`/proc/PID/ns/net`).
    #[must_use]
    pub fn new(name: &str) -> Self {
        // joining an absolute path gives that path
        Self(Path::new(NAMED).join(name))
    }

    /// Does `task` on a thread of its own that is in this namespace; the rest of the process stays where it is.
    ///
    /// A socket or TUN device belongs for good to the namespace of the thread that opened it. So this is all that is
    /// needed to be in several at once.
    ///
    /// # Errors
    /// If there is no such namespace, it may not be entered (`CAP_SYS_ADMIN`), there may be no more threads, or as `task` has them.
    pub fn within<T: Send>(&self, task: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let file = OpenOptions::new().read(true).open(&self.0).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("network namespace {}: {error}", self.0.display()),
            )
        })?;
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new();
            let entered = thread.spawn_scoped(scope, || {
                setns(file, CloneFlags::CLONE_NEWNET)?;
                task()
            });
            let no_thread = |error: io::Error| io::Error::new(error.kind(), format!("a thread: {error}"));
            entered
                .map_err(no_thread)?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
