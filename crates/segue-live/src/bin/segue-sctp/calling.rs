//! Waiting for a peer that is called: a hint when it is late, an end when it is too late.

use crate::options::Calling;
use crate::report::Report;
use anyhow::Result;
use segue_live::Driver;
use segue_proto::sctp::Unreachable;
use segue_proto::{Duration, Instant};
use serde_json::json;
use std::net::Ipv6Addr;

/// Time until a person is told that nobody has answered.
const PATIENCE: Duration = Duration::from_secs(3);

/// A call that is not answered yet.
#[derive(Debug)]
pub(crate) struct Call {
    peer: Ipv6Addr,
    /// What the peer is reached through, for messages.
    over: String,
    hint: Option<Instant>,
    end: Instant,
    timeout: Duration,
}

impl Call {
    pub(crate) fn new(now: Instant, calling: &Calling, driver: &Driver, remote_udp_port: u16) -> Self {
        Self {
            peer: calling.peer.first().copied().unwrap_or(Ipv6Addr::UNSPECIFIED),
            over: match driver.udp_port() {
                Some(_) => format!("UDP port {remote_udp_port}"),
                None => "IPv6 protocol 132".to_owned(),
            },
            hint: Some(now + PATIENCE).filter(|_| calling.timeout > PATIENCE),
            end: now + calling.timeout,
            timeout: calling.timeout,
        }
    }

    /// When something is to be said.
    pub(crate) fn next_at(&self) -> Instant {
        self.hint.unwrap_or(self.end)
    }

    /// Whether it has been tried for long enough. Says so, or at first that it takes long.
    pub(crate) fn is_over(&mut self, now: Instant, report: &Report) -> Result<bool> {
        if self.hint.is_some_and(|at| now >= at) {
            self.hint = None;
            eprintln!(
                "segue-sctp: no answer from {} over {} yet: trying for {} in all (--timeout)",
                self.peer, self.over, self.timeout
            );
        }
        if now < self.end {
            return Ok(false);
        }
        let text = format!(
            "no answer from {} over {} in {}: given up (--timeout)",
            self.peer, self.over, self.timeout
        );
        report.say(now, "timed_out", json!({"peer": self.peer}), &text)?;
        Ok(true)
    }
}

/// Why a destination cannot be reached, in words.
pub(crate) const fn in_words(reason: Unreachable) -> &'static str {
    match reason {
        Unreachable::NoRoute => "no route",
        Unreachable::Prohibited => "prohibited on the way",
        Unreachable::BeyondScope => "beyond the scope of the source address",
        Unreachable::Address => "address unreachable",
        Unreachable::Port => "nothing takes packets at its UDP port",
    }
}
