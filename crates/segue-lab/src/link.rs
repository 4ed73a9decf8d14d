//! `segue-lab link`: a link of the simulator between two TUN devices, in real time.

use crate::capture::Capture;
use crate::commands::Commands;
use crate::options::LinkCommand;
use crate::report::say;
use anyhow::Context as _;
use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use segue_lab::wire::{End, Wire, WireCounters};
use segue_live::{Clock, Tun, raise_priority};
use segue_proto::Duration;
use serde_json::json;
use std::os::fd::AsFd;

/// Packets that one device may send before the others have their turn.
pub(crate) const RECEIVES_PER_TURN: usize = 64;
/// Longest packet of a TUN device.
pub(crate) const LONGEST_PACKET: usize = 65_535 + 40;

/// Runs the link until the standard input ends. It says `ready` once the devices are there, obeys `cut` and `mend`, a line
/// each, and sums up at the end.
pub(crate) fn run(options: &LinkCommand) -> anyhow::Result<u8> {
    let clock = Clock::new();
    let tuns = [options.a.open()?, options.b.open()?];
    let capture = match &options.pcap {
        Some(path) => Some(Capture::new(path, &["a", "b"], clock)?),
        None => None,
    };
    let mut link = RealLink {
        clock,
        tuns,
        wire: options.emulated.wire(),
        capture,
        refused: [0; 2],
        late: Duration::ZERO,
        latest: Duration::ZERO,
        buffer: vec![0; LONGEST_PACKET],
    };
    // without the privilege, the link is as exact as the machine is idle
    let prompt = raise_priority().is_ok();
    say(clock.now(), "ready", json!({ "real_time_priority": prompt }))?;
    link.carry()?;
    link.finish()
}

struct RealLink {
    clock: Clock,
    tuns: [Tun; 2],
    wire: Wire<Bytes>,
    capture: Option<Capture>,
    /// Packets that the kernel did not take, by end.
    refused: [u64; 2],
    /// The time by which arrivals were late, all together and at most.
    late: Duration,
    latest: Duration,
    buffer: Vec<u8>,
}

impl RealLink {
    /// The loop: what is due is delivered, then everybody waits for the first of a packet, a deadline or a command.
    fn carry(&mut self) -> anyhow::Result<()> {
        let mut commands = Commands::new().context("standard input")?;
        loop {
            self.deliver()?;
            let deadline = self.wire.poll_timeout();
            let ready = wait(
                &[commands.as_fd(), self.tuns[0].as_fd(), self.tuns[1].as_fd()],
                deadline.map(|at| at.since(self.clock.now())),
            )?;
            self.deliver()?;
            for end in [End::A, End::B] {
                if ready[1 + end as usize] {
                    self.receive(end)?;
                }
            }
            if ready[0] && !commands.obey(|command| self.command(command))? {
                return Ok(());
            }
        }
    }

    fn command(&mut self, command: &str) -> anyhow::Result<()> {
        match command {
            "cut" => self.wire.set_cut(true),
            "mend" => self.wire.set_cut(false),
            _ => anyhow::bail!("unknown command `{command}`: expected `cut` or `mend`"),
        }
        Ok(say(self.clock.now(), command, json!({}))?)
    }

    fn receive(&mut self, end: End) -> anyhow::Result<()> {
        for _ in 0..RECEIVES_PER_TURN {
            let tun = &self.tuns[end as usize];
            let received = tun.receive(&mut self.buffer).context("TUN device")?;
            let Some(length) = received else {
                return Ok(());
            };
            let now = self.clock.now();
            let packet = &self.buffer[..length];
            if packet.first().is_none_or(|b| b >> 4 != 6) {
                continue;
            }
            if let Some(capture) = &mut self.capture {
                capture.received(now, end as usize, packet);
            }
            // a packet too many is a packet lost
            let _ = self
                .wire
                .offer(now, end, Bytes::copy_from_slice(packet), length as u32);
        }
        Ok(())
    }

    fn deliver(&mut self) -> anyhow::Result<()> {
        let now = self.clock.now();
        while let Some(arrival) = self.wire.poll_arrival(now) {
            let late = now.since(arrival.at);
            self.late += late;
            self.latest = self.latest.max(late);
            let end = arrival.end as usize;
            if !self.tuns[end].send(&arrival.packet).context("TUN device")? {
                self.refused[end] += 1;
            }
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<u8> {
        let of = |end: End| counters(self.wire.counters(end), self.refused[end.other() as usize]);
        let summary = json!({
            "a_to_b": of(End::A),
            "b_to_a": of(End::B),
            "late_ns": self.late.as_nanos(),
            "latest_ns": self.latest.as_nanos(),
        });
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        say(self.clock.now(), "summary", summary)?;
        Ok(0)
    }
}

/// Waits until one of the descriptors can be read or `timeout` is over; says which can.
pub(crate) fn wait(
    descriptors: &[std::os::fd::BorrowedFd<'_>],
    timeout: Option<Duration>,
) -> anyhow::Result<Vec<bool>> {
    let descriptors: Vec<_> = descriptors.iter().map(|fd| (*fd, PollFlags::POLLIN)).collect();
    wait_for(&descriptors, timeout)
}

/// The same, for what each is to be ready for.
pub(crate) fn wait_for(
    descriptors: &[(std::os::fd::BorrowedFd<'_>, PollFlags)],
    timeout: Option<Duration>,
) -> anyhow::Result<Vec<bool>> {
    let mut fds: Vec<PollFd<'_>> = descriptors
        .iter()
        .map(|(fd, flags)| PollFd::new(*fd, *flags))
        .collect();
    let timeout = timeout.map(|t| TimeSpec::from_duration(std::time::Duration::from_nanos(t.as_nanos())));
    match ppoll(&mut fds, timeout, None) {
        Ok(_) => Ok(fds
            .iter()
            .map(|fd| fd.revents().is_some_and(|r| !r.is_empty()))
            .collect()),
        Err(Errno::EINTR) => Ok(vec![false; descriptors.len()]),
        Err(error) => Err(error).context("waiting for packets"),
    }
}

/// What became of the packets of one direction.
pub(crate) fn counters(counters: WireCounters, refused_at_arrival: u64) -> serde_json::Value {
    json!({
        "offered": counters.offered,
        "offered_bytes": counters.offered_bytes,
        "refused": counters.refused,
        "lost": counters.lost,
        "arrived": counters.arrived,
        "arrived_bytes": counters.arrived_bytes,
        "refused_at_arrival": refused_at_arrival,
    })
}
