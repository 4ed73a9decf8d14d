//! What the agent asks of the kernel once it is set up, and nothing else: a filter of system calls (seccomp) that it puts upon
//! itself for good. A call that is not on the list fails (EPERM), and the agent says what failed; one that whoever has taken
//! over the process would want first, to become another program or to get into another process, ends it (SIGSYS), which the kernel
//! logs.
//!
//! No file is opened and none made but for sockets. Whoever adds a call to the daemon's loop adds it here, with what it is for.

use anyhow::Context as _;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// Confines this thread, and those that it makes, for good.
///
/// # Errors
/// If the kernel has no filters of system calls, or the machine is none of x86-64, aarch64 and riscv64.
pub(crate) fn confine() -> anyhow::Result<()> {
    for program in [
        program(deadly(), Otherwise::Allowed)?,
        program(allowed()?, Otherwise::Refused)?,
    ] {
        apply_filter(&program).context("the kernel takes no filter of system calls")?;
    }
    Ok(())
}

type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

/// What becomes of what no rule names.
enum Otherwise {
    Allowed,
    Refused,
}

fn program(rules: Rules, otherwise: Otherwise) -> anyhow::Result<BpfProgram> {
    let arch: TargetArch = std::env::consts::ARCH
        .try_into()
        .context("no filter of system calls for this machine")?;
    let (mismatch, matching) = match otherwise {
        Otherwise::Allowed => (SeccompAction::Allow, SeccompAction::KillProcess),
        Otherwise::Refused => (SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow),
    };
    let filter = SeccompFilter::new(rules, mismatch, matching, arch).context("filter of system calls")?;
    filter.try_into().context("filter of system calls")
}

fn deadly() -> Rules {
    DEADLY.iter().map(|call| (*call, Vec::new())).collect()
}

fn allowed() -> anyhow::Result<Rules> {
    let mut rules: Rules = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let equal = |argument, value: libc::c_int| -> anyhow::Result<SeccompRule> {
        let op = SeccompCmpOp::Eq;
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value as u64)?;
        Ok(SeccompRule::new(vec![condition])?)
    };
    let families = FAMILIES.iter().map(|family| equal(0, *family));
    rules.insert(libc::SYS_socket, families.collect::<anyhow::Result<_>>()?);
    // what the programs in the kernel know, and where they are; none is loaded
    let commands = BPF_COMMANDS.iter().map(|command| equal(0, *command));
    rules.insert(libc::SYS_bpf, commands.collect::<anyhow::Result<_>>()?);
    // no code is made: what is written is never run
    let no_code = SeccompCondition::new(
        2,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64),
        0,
    )?;
    let no_code = SeccompRule::new(vec![no_code])?;
    rules.insert(libc::SYS_mmap, vec![no_code.clone()]);
    rules.insert(libc::SYS_mprotect, vec![no_code]);
    Ok(rules)
}

/// Another program, or another process.
const DEADLY: [libc::c_long; 5] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
];

/// Of sockets: control and systemd; interfaces by name; packets by the kernel's routes; rtnetlink and nftables; frames.
const FAMILIES: [libc::c_int; 5] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
    libc::AF_PACKET,
];

/// linux/bpf.h: `BPF_MAP_LOOKUP_ELEM`, `BPF_MAP_UPDATE_ELEM`, `BPF_MAP_DELETE_ELEM`, `BPF_LINK_CREATE`.
const BPF_COMMANDS: [libc::c_int; 4] = [1, 2, 3, 28];

#[rustfmt::skip]
const ALLOWED: &[libc::c_long] = &[
    // packets, messages and requests
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_close,
    libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg,
    libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg,
    // sockets of interfaces that come; of those that ask
    libc::SYS_bind, libc::SYS_connect, libc::SYS_accept, libc::SYS_accept4, libc::SYS_shutdown,
    libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_setsockopt, libc::SYS_getsockopt,
    libc::SYS_fcntl,
    // names of interfaces
    libc::SYS_ioctl,
    // waiting, and time
    libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait,
    libc::SYS_timerfd_settime, libc::SYS_timerfd_gettime,
    libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_clock_nanosleep, libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    // nonces and keys
    libc::SYS_getrandom,
    // the control socket goes at the end
    libc::SYS_unlinkat,
    // memory
    libc::SYS_brk, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise,
    // the run-time library: locks, signals, the end of a thread and of the process
    libc::SYS_futex, libc::SYS_sched_yield, libc::SYS_sched_getaffinity, libc::SYS_rseq, libc::SYS_set_robust_list,
    libc::SYS_rt_sigreturn, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigaction, libc::SYS_sigaltstack,
    libc::SYS_getpid, libc::SYS_gettid, libc::SYS_tgkill, libc::SYS_exit, libc::SYS_exit_group,
    libc::SYS_fstat,
    #[cfg(target_arch = "x86_64")] libc::SYS_poll,
    #[cfg(target_arch = "x86_64")] libc::SYS_select,
    #[cfg(target_arch = "x86_64")] libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")] libc::SYS_unlink,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::UdpSocket;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    /// In a thread of its own, which the filter is upon.
    fn confined<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
        let thread = std::thread::spawn(|| {
            confine().unwrap();
            act()
        });
        thread.join().unwrap()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is to be refused")]
    fn files_are_not_opened_nor_made_and_sockets_are() {
        let (passwd, made, bound, directory) = confined(|| {
            let passwd = std::fs::File::open("/etc/passwd").map(drop);
            let made = std::fs::File::create("/tmp/segue-seccomp").map(drop);
            (
                passwd,
                made,
                UdpSocket::bind("[::1]:0").map(drop),
                std::fs::create_dir("/tmp/segue-dir"),
            )
        });
        for refused in [passwd, made, directory] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
        }
        bound.unwrap();
    }

    #[test]
    fn sockets_of_other_families_and_threads_are_refused() {
        use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
        let refused =
            confined(|| socket(AddressFamily::Vsock, SockType::Stream, SockFlag::empty(), None).map(drop));
        assert_eq!(refused, Err(nix::errno::Errno::EPERM));
        let refused = confined(|| std::thread::Builder::new().spawn(|| {}).map(drop));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    #[ignore = "it is killed: run by the test below"]
    fn becomes_another_program() {
        confine().unwrap();
        use std::os::unix::process::CommandExt as _;
        // in its own place, without another process before
        let _ = Command::new("/bin/true").exec();
    }

    #[test]
    fn who_becomes_another_program_is_killed() {
        let own = std::env::current_exe().unwrap();
        let mut child = Command::new(own);
        child.args(["--exact", "--ignored", "seccomp::tests::becomes_another_program"]);
        let ended = child
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(ended.signal(), Some(libc::SIGSYS), "{ended}");
    }
}
