//! What it takes to make network namespaces: root, or a user namespace in which this process is root.
//!
//! An ordinary user may make a user namespace where the kernel allows it (user_namespaces(7)), and in it what only root may
//! outside: network namespaces and the devices in them. `ip netns` keeps names in `/run/netns`, so this process gets a mount
//! namespace too, with a folder of its own there. All of it is gone with the last process that is in it. So what a killed run
//! leaves are its programs, which are known by a variable of their environment.

use anyhow::{Context as _, anyhow};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// The variable that says to which run a program belongs.
pub(super) const RUN: &str = "SEGUE_LAB_RUN";

/// What TUN devices are made with.
const TUN: &str = "/dev/net/tun";
const NAMED: &str = "/run/netns";

/// By what right namespaces are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Privileges {
    /// This is root.
    Root,
    /// Root of a user namespace, which has no real-time priority.
    UserNamespace,
}

impl Privileges {
    /// Those of root, or else a user namespace is made, and this process is in it from now on. It must have no other threads.
    ///
    /// # Errors
    /// Not allowed here.
    pub(super) fn gain() -> anyhow::Result<Self> {
        if geteuid().is_root() {
            return Ok(Self::Root);
        }
        let tun = fs::OpenOptions::new().read(true).write(true).open(TUN);
        tun.map_err(|error| {
            anyhow!("{TUN}: {error}: expected root, or that this user may read and write it")
        })?;
        enter().map_err(|error| {
            anyhow!(
                "network namespaces cannot be made here: expected root, or a kernel on which a user may make a user namespace \
                 (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns): {error:#}"
            )
        })?;
        Ok(Self::UserNamespace)
    }

    /// As the document has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::UserNamespace => "user namespace",
        }
    }
}

fn enter() -> anyhow::Result<()> {
    let (user, group) = (geteuid(), getegid());
    // a network namespace too: ip(8) returns to the one that it came from, which has to be this user namespace's
    let namespaces = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET;
    unshare(namespaces).context("user namespace")?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))?;
    let none: Option<&Path> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).context("mount namespace")?;
    let place = match Path::new(NAMED).is_dir() {
        true => NAMED,
        false => "/run",
    };
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("segue-lab"), place, Some("tmpfs"), flags, none).context(place)?;
    fs::create_dir_all(NAMED).context(NAMED)
}

fn write(path: &str, text: &str) -> anyhow::Result<()> {
    let file = fs::OpenOptions::new().write(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .context(path.to_owned())
}

/// Leaves the run that this process was started in, if it was in one: for others to see, too, what it was started with has to have
/// no such variable. So it is started again, as the same process.
pub(super) fn leave_run() -> anyhow::Result<()> {
    if std::env::var_os(RUN).is_none() {
        return Ok(());
    }
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let error = Command::new("/proc/self/exe")
        .arg0(name)
        .args(words)
        .env_remove(RUN)
        .exec();
    Err(anyhow!("/proc/self/exe: {error}"))
}
