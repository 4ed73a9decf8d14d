//! `segue-lab app`: one end of a built-in application of a scenario, over the kernel's sockets.
//!
//! Data is what the simulator's applications send, a function of its offset, and is checked where it arrives. At the end it
//! says in one line what it came to.

mod datagrams;
mod reads;
mod stream;

pub(crate) use stream::mptcp_socket;

use crate::report::say;
use crate::stop;
use clap::{ArgGroup, Args};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
pub(crate) use reads::Reads;
use segue_live::Clock;
use segue_proto::{Duration, Instant};
use serde_json::json;
use std::net::SocketAddrV6;

#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("end").required(true).args(["listen", "connect"]),
    group = ArgGroup::new("transport").required(true).args(["tcp", "udp"]),
    group = ArgGroup::new("part").required(true).args(["send", "receive", "ask", "answer"])
)]
pub(crate) struct AppCommand {
    /// Wait for a peer at this port
    #[arg(long)]
    pub listen: Option<u16>,
    /// Connect to a peer
    #[arg(long)]
    pub connect: Option<SocketAddrV6>,
    /// Port to connect from
    #[arg(long, default_value_t = 0)]
    pub from_port: u16,
    /// Over TCP
    #[arg(long)]
    pub tcp: bool,
    /// Over UDP
    #[arg(long)]
    pub udp: bool,
    /// Over TCP as Multipath TCP (RFC 8684), if the peer has it too
    #[arg(long, requires = "tcp")]
    pub mptcp: bool,
    /// Send data
    #[arg(long)]
    pub send: bool,
    /// Receive data
    #[arg(long)]
    pub receive: bool,
    /// Send requests, one after the other
    #[arg(long)]
    pub ask: bool,
    /// Answer them
    #[arg(long)]
    pub answer: bool,
    /// Bytes of a message, or of a request
    #[arg(long, default_value_t = 1000)]
    pub message: usize,
    /// Bytes of a response
    #[arg(long, default_value_t = 1000)]
    pub response: usize,
    /// Bits of messages to send per second; without it as fast as it goes
    #[arg(long)]
    pub rate: Option<u64>,
    /// Over TCP: what is written goes at once (TCP_NODELAY)
    #[arg(long)]
    pub no_delay: bool,
    /// When to begin, nanoseconds of the machine's monotonic clock; without it at once
    #[arg(long, default_value_t = 0)]
    pub begin_at: u64,
    /// Bytes to send; without it to the end
    #[arg(long)]
    pub size: Option<u64>,
}

/// Runs it until its work is done, its peer has gone, or it is asked to stop.
pub(crate) fn run(options: &AppCommand) -> anyhow::Result<u8> {
    stop::catch_signals()?;
    sleep_until(Instant::from_nanos(options.begin_at));
    let done = if options.udp {
        datagrams::run(options)?
    } else {
        stream::run(options)?
    };
    let fields = json!({
        "sent_bytes": done.sent,
        "received_bytes": done.received,
        "wrong_bytes": done.wrong,
        "answers": done.answers,
        "longest_gap_ns": done.reads.longest_gap().as_nanos(),
        "reads": done.reads.bursts(),
        "failed": done.failed,
    });
    say(Clock::new().now(), "app", fields)?;
    Ok(u8::from(done.failed.is_some()))
}

/// What an end has done.
#[derive(Debug, Default)]
struct Done {
    sent: u64,
    received: u64,
    /// Bytes that were not what was sent.
    wrong: u64,
    answers: u64,
    reads: Reads,
    /// Why the connection ended, if nobody wanted it to.
    failed: Option<String>,
}

/// When the messages of a constant rate are due.
struct Pace {
    begin: Instant,
    interval: Duration,
    sent: u64,
}

impl Pace {
    fn new(now: Instant, rate: u64, message: usize) -> Self {
        let interval_ns = (message as u128 * 8 * 1_000_000_000 / u128::from(rate.max(1))) as u64;
        Self {
            begin: now,
            interval: Duration::from_nanos(interval_ns),
            sent: 0,
        }
    }

    /// When the next is due.
    fn due(&self) -> Instant {
        self.begin + self.interval * self.sent
    }

    fn sent(&mut self) {
        self.sent += 1;
    }
}

/// Sleeps until then, or until a signal comes.
fn sleep_until(at: Instant) {
    let at = TimeSpec::from_duration(std::time::Duration::from_nanos(at.as_nanos()));
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_rate_are_due_at_even_times() {
        let begin = Instant::from_nanos(1_000_000_000);
        // a line each 50 ms
        let mut pace = Pace::new(begin, 16_000, 100);
        assert_eq!(pace.due(), begin);
        for _ in 0..3 {
            pace.sent();
        }
        assert_eq!(pace.due(), begin + Duration::from_millis(150));
    }
}
