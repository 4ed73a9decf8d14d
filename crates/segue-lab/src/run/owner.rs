//! Whose a network namespace is: its name has the process that made it, by number and by when that began, so that what a
//! killed run has left behind can be told from what a living one needs, and from what is none of ours.

use anyhow::{Context as _, bail};
use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

const MARK: &str = "segue-lab";
const NAMED: &str = "/run/netns";

/// A process, for as long as the machine runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    process: u32,
    /// Clock ticks since the boot of the machine.
    began: u64,
}

impl Owner {
    /// This process.
    pub(super) fn this() -> anyhow::Result<Self> {
        let process = std::process::id();
        let began = began(process).context("/proc is not mounted: expected to find this process there")?;
        Ok(Self { process, began })
    }

    /// What its namespace number `number` is called.
    pub(super) fn name(self, number: usize) -> String {
        format!("{MARK}.{}.{}.{number}", self.process, self.began)
    }

    /// The owner that a name gives.
    pub(super) fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(MARK)?.strip_prefix('.')?.split('.');
        let owner = Self {
            process: parts.next()?.parse().ok()?,
            began: parts.next()?.parse().ok()?,
        };
        parts.next()?.parse::<usize>().ok()?;
        parts.next().is_none().then_some(owner)
    }

    /// Whether it is still there.
    pub(super) fn lives(self) -> bool {
        began(self.process) == Some(self.began)
    }
}

/// When a process began (`starttime` of proc(5)).
fn began(process: u32) -> Option<u64> {
    let mut stat = String::new();
    let mut file = fs::OpenOptions::new()
        .read(true)
        .open(format!("/proc/{process}/stat"))
        .ok()?;
    file.read_to_string(&mut stat).ok()?;
    // the second field is a name in parentheses, which may have anything in it
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// Removes the namespaces of runs that are no more, and what still runs in them. Gives their names.
pub(super) fn remove_abandoned() -> Vec<String> {
    let Ok(names) = fs::read_dir(NAMED) else {
        return Vec::new();
    };
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let abandoned: Vec<String> = names
        .filter(|name| Owner::of(name).is_some_and(|owner| !owner.lives()))
        .collect();
    for name in &abandoned {
        remove(name);
    }
    abandoned
}

/// Makes a namespace.
pub(super) fn make(name: &str) -> anyhow::Result<()> {
    let made = Command::new("ip")
        .args(["netns", "add", name])
        .stdin(Stdio::null())
        .output()
        .context("ip is missing: expected iproute2 to be installed")?;
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr);
        bail!(
            "network namespaces cannot be made here, which takes root: {}",
            why.lines().next().unwrap_or_default()
        );
    }
    Ok(())
}

/// Ends what runs in a namespace of ours, and removes it.
pub(super) fn remove(name: &str) {
    let pids = Command::new("ip").args(["netns", "pids", name]).output();
    let pids = pids.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    for pid in pids.unwrap_or_default().split_whitespace() {
        if let Ok(pid) = pid.parse() {
            let pid = nix::unistd::Pid::from_raw(pid);
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    }
    let _ = Command::new("ip")
        .args(["netns", "delete", name])
        .stdin(Stdio::null())
        .output();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_its_names_say_so() {
        let this = Owner::this().unwrap();
        assert_eq!(Owner::of(&this.name(3)), Some(this));
        assert!(this.lives());
        // another process had the number before
        let earlier = Owner {
            began: this.began - 1,
            ..this
        };
        assert!(!earlier.lives());
    }

    #[test]
    fn names_that_are_not_ours_have_no_owner() {
        for name in [
            "blue",
            "segue-lab",
            "segue-lab.1.2",
            "segue-lab.1.2.x",
            "segue-lab.1.2.3.4",
            "my-segue-lab.1.2.3",
        ] {
            assert_eq!(Owner::of(name), None, "{name}");
        }
    }
}
