//! Whose a network namespace is: its name has the process that made it, by number and by when that began, so that what a
//! killed run has left behind can be told from what a living one needs, and from what is none of ours. The numbers are those of a
//! PID namespace, which the name has too: of runs in others (a container that shares `/run`) nothing is known here.

use super::privileges::RUN;
use anyhow::{Context as _, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const MARK: &str = "segue-lab";
const NAMED: &str = "/run/netns";

/// How often it is looked for what still runs, and for how long there is a pause between: two seconds at most.
const MOST_LOOKS: usize = 400;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// A process, for as long as the machine runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    process: u32,
    /// Clock ticks since the boot of the machine.
    began: u64,
    /// The PID namespace that has the number, by its inode.
    numbered_in: u64,
}

impl Owner {
    /// This process.
    pub(super) fn this() -> anyhow::Result<Self> {
        let process = std::process::id();
        let here = || Some((began(process)?, pid_namespace()?));
        let (began, numbered_in) =
            here().context("/proc is not mounted: expected to find this process there")?;
        Ok(Self {
            process,
            began,
            numbered_in,
        })
    }

    /// What its namespace number `number` is called.
    pub(super) fn name(self, number: usize) -> String {
        let Self {
            process,
            began,
            numbered_in,
        } = self;
        format!("{MARK}.{process}.{began}.{numbered_in}.{number}")
    }

    /// The owner that a name gives.
    pub(super) fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(MARK)?.strip_prefix('.')?.split('.');
        let owner = Self {
            process: parts.next()?.parse().ok()?,
            began: parts.next()?.parse().ok()?,
            numbered_in: parts.next()?.parse().ok()?,
        };
        parts.next()?.parse::<usize>().ok()?;
        parts.next().is_none().then_some(owner)
    }

    /// Whether it is known to be no more.
    pub(super) fn is_gone(self) -> bool {
        pid_namespace() == Some(self.numbered_in) && began(self.process) != Some(self.began)
    }
}

/// The PID namespace of this process.
fn pid_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid")
        .ok()
        .map(|namespace| namespace.ino())
}

/// When a process began (`starttime` of proc(5)).
fn began(process: u32) -> Option<u64> {
    stat(process, 19)
}

/// A number that proc(5) has of a process, counted from the field behind its name.
fn stat(process: u32, field: usize) -> Option<u64> {
    let mut stat = String::new();
    let mut file = fs::OpenOptions::new()
        .read(true)
        .open(format!("/proc/{process}/stat"))
        .ok()?;
    file.read_to_string(&mut stat).ok()?;
    // the second field is a name in parentheses, which may have anything in it
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(field)?.parse().ok()
}

/// This process and those that it comes from.
fn lineage() -> BTreeSet<u32> {
    let parent = |process: &u32| stat(*process, 1).map(|parent| parent as u32);
    core::iter::successors(Some(std::process::id()), parent)
        .take_while(|process| *process != 0)
        .collect()
}

/// Kills what belongs to something that is no more, until twice nothing is found: it may make others meanwhile. Gives their
/// numbers. This process and those that it comes from never belong to it.
fn end_all(belongs: impl Fn(u32) -> bool) -> BTreeSet<u32> {
    let spared = lineage();
    let mut ended = BTreeSet::new();
    let mut clean = 0;
    for _ in 0..MOST_LOOKS {
        let Ok(processes) = fs::read_dir("/proc") else {
            break;
        };
        let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let mut found = false;
        for number in numbers.filter(|number| !spared.contains(number)) {
            if belongs(number) && kill(Pid::from_raw(number as i32), Signal::SIGKILL).is_ok() {
                ended.insert(number);
                found = true;
            }
        }
        clean = if found { 0 } else { clean + 1 };
        if clean == 2 {
            break;
        }
        if found {
            pause();
        }
    }
    ended
}

#[expect(clippy::disallowed_methods, reason = "what was killed takes a moment to end")]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// Ends the programs of runs that are no more, which are known by a variable of their environment, wherever they have gone. Gives
/// what they are called. Without root it is to be called before [`super::privileges::Privileges::gain`]: from within a user
/// namespace, those of others cannot be looked into.
pub(super) fn end_abandoned() -> Vec<String> {
    let gone = |run: String| Owner::of(&run).is_some_and(Owner::is_gone);
    let ended = end_all(|process| run_of(process).ok().flatten().is_some_and(gone));
    ended.iter().map(|number| format!("process {number}")).collect()
}

/// The programs of a run. They end when this is dropped, wherever they have gone.
pub(super) struct ProgramsOf(pub(super) Owner);

impl Drop for ProgramsOf {
    fn drop(&mut self) {
        let own = self.0.name(0);
        end_all(|process| run_of(process).ok().flatten().as_ref() == Some(&own));
    }
}

/// The run that a process belongs to.
fn run_of(process: u32) -> io::Result<Option<String>> {
    let mut environment = Vec::new();
    fs::OpenOptions::new()
        .read(true)
        .open(format!("/proc/{process}/environ"))?
        .read_to_end(&mut environment)?;
    let mut variables = environment.split(|byte| *byte == 0);
    Ok(variables.find_map(|variable| {
        let value = variable.strip_prefix(RUN.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    }))
}

/// Removes the namespaces of runs that are no more, and what still runs in them. Gives their names.
pub(super) fn remove_abandoned() -> Vec<String> {
    let Ok(names) = fs::read_dir(NAMED) else {
        return Vec::new();
    };
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let abandoned: Vec<String> = names
        .filter(|name| Owner::of(name).is_some_and(Owner::is_gone))
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
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => anyhow!("ip is missing: expected iproute2 to be installed"),
            _ => anyhow!("ip: {error}"),
        })?;
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
    let inode = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    if let Some(namespace) = inode(&Path::new(NAMED).join(name)) {
        end_all(|process| inode(Path::new(&format!("/proc/{process}/ns/net"))) == Some(namespace));
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
        assert!(!this.is_gone());
        // another process had the number before
        let earlier = Owner {
            began: this.began - 1,
            ..this
        };
        assert!(earlier.is_gone());
        // one of another PID namespace may be there
        let elsewhere = Owner {
            numbered_in: this.numbered_in + 1,
            ..earlier
        };
        assert!(!elsewhere.is_gone());
    }

    #[test]
    fn a_process_comes_from_its_parent() {
        let lineage = lineage();
        assert!(lineage.contains(&std::process::id()));
        assert!(lineage.contains(&std::os::unix::process::parent_id()));
    }

    #[test]
    fn a_program_ends_with_its_run_wherever_it_has_gone() {
        let owner = Owner {
            numbered_in: 0,
            ..Owner::this().unwrap()
        };
        // it begins another as soon as it is there, and ends
        let hop = "sleep 0.002; setsid sh -c \"$HOP\" & exit";
        let mut first = Command::new("sh")
            .args(["-c", hop])
            .env("HOP", hop)
            .env(RUN, owner.name(0))
            .spawn()
            .unwrap();
        first.wait().unwrap();
        let belongs = |process| run_of(process).ok().flatten() == Some(owner.name(0));
        let there = || {
            let processes = fs::read_dir("/proc").unwrap();
            processes
                .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                .any(belongs)
        };
        assert!((0..1000).any(|_| there()));
        drop(ProgramsOf(owner));
        assert!((0..20).all(|_| !there()));
    }

    #[test]
    fn names_that_are_not_ours_have_no_owner() {
        for name in [
            "blue",
            "segue-lab",
            "segue-lab.1.2",
            "segue-lab.1.2.3",
            "segue-lab.1.2.3.x",
            "segue-lab.1.2.3.4.5",
            "my-segue-lab.1.2.3.4",
        ] {
            assert_eq!(Owner::of(name), None, "{name}");
        }
    }
}
