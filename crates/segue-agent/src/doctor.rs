//! `segue-agent doctor`: what the agent needs of the machine, tried in a network namespace of its own.

use crate::kernel::{Guard, NextHops, Programs, Rules};
use crate::seccomp;
use nix::sched::{CloneFlags, unshare};
use segue_live::{PacketSocket, Select, SuperTun, Takes};
use std::io::{self, Write as _};
use std::net::Ipv6Addr;

/// Tries everything, and says a line of each. 1 if something is missing.
pub(crate) fn look() -> anyhow::Result<u8> {
    let apart = unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
    let mut missing = 0;
    let mut out = io::stdout();
    let mut say = |what: &str, done: io::Result<()>, remedy: &str| match done {
        Ok(()) => writeln!(out, "ok       {what}"),
        Err(error) => {
            missing += 1;
            writeln!(out, "missing  {what}: {error}: {remedy}")
        }
    };
    if let Err(error) = apart {
        say("root", Err(error), "run it as root, or with CAP_SYS_ADMIN")?;
        return Ok(1);
    }
    let remedy = "expected a kernel with CONFIG_TUN, and /dev/net/tun that may be opened";
    say(
        "TUN devices with offloads",
        SuperTun::open("segue-try").map(drop),
        remedy,
    )?;
    let remedy = "expected CAP_NET_RAW and a kernel with CONFIG_PACKET";
    say(
        "packet sockets that see an identifier alone",
        PacketSocket::open("lo", Takes::Selected(&[Select::Identifier(1)])).map(drop),
        remedy,
    )?;
    let guard = Guard::new("segue-try").and_then(|mut guard| guard.watch("lo", &[Select::Identifier(1)]));
    let remedy = "expected nftables with filters at ingress and tables with an owner (Linux 5.12, CONFIG_NF_TABLES_NETDEV)";
    say("filters at ingress that go with the agent", guard, remedy)?;
    let remedy = "expected IPv6 and rtnetlink";
    say("routes and neighbours", NextHops::new(0).map(drop), remedy)?;
    let remedy =
        "expected a kernel with CONFIG_IPV6_MULTIPLE_TABLES; only a mobile node of Mobile IPv6 needs it";
    say(
        "rules of routing for a home address",
        Rules::set_up(Ipv6Addr::LOCALHOST).map(drop),
        remedy,
    )?;
    let remedy = "expected Linux 6.6 with BPF, CAP_BPF, and an agent that was built with clang; without it the agent carries every packet itself";
    let programs = Programs::load(Ipv6Addr::LOCALHOST, ("lo", 1)).map(drop);
    say(
        "programs for the fast path of an ILNPv6 host",
        programs.map_err(|error| io::Error::other(format!("{error:#}"))),
        remedy,
    )?;
    // the last, for it is upon this process from then on
    let remedy = "expected a kernel with CONFIG_SECCOMP_FILTER; the agent runs without it, and says so";
    say(
        "a filter of its own system calls",
        seccomp::confine().map_err(io::Error::other),
        remedy,
    )?;
    Ok(u8::from(missing > 0))
}
