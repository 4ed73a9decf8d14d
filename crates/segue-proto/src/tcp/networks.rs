//! What a sender remembers of the networks that its peers were in, and what it does with that when one of them moves:
//! remedies for the time that TCP takes to adapt (Cottingham and Vidales, section 7), and their modern form.
//!
//! A network is known by the prefix of the care-of address. The shim tells of a move ([`Endpoint::network_changed`]); without
//! a shim that knows, nothing is done.
//!
//! - *RTT injection*: "a guessed value for the new interface's RTT [...] the last RTT seen on that particular type of
//!   interface, possibly with a small fraction added on for safety".
//! - *Careful resume* (draft-ietf-tsvwg-careful-resume): besides, nothing that belongs to the other network is kept (no
//!   undo, at most an initial window, ssthresh at what this one carried), and the window goes at once to half of what the network was
//!   seen to carry, as soon as the first acknowledgement over it shows that it is as far away as remembered; what was sent on
//!   credit is then validated, or the window retreats.

use super::connection::Connection;
use super::endpoint::Endpoint;
use super::recovery::Phase;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a sender does when its peer comes back to a network that it knows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Remedy {
    /// The RTT estimate is the last of that network.
    pub rtt_injection: bool,
    /// "Possibly with a small fraction added on for safety": this one.
    pub rtt_margin: f64,
    /// Careful resume.
    pub careful_resume: bool,
}

impl Remedy {
    /// Whether there is anything to be remembered.
    #[must_use]
    pub const fn remembers(&self) -> bool {
        self.rtt_injection || self.careful_resume
    }
}

/// A network as it was when it was last used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remembered {
    /// SRTT.
    pub srtt: Duration,
    /// What the timeout was longer than SRTT.
    pub variation: Duration,
    /// Shortest round trip: saved_rtt.
    pub shortest: Duration,
    /// Bytes that it carries in the shortest round trip, by the rate of the last round without loss: saved_cwnd.
    pub capacity: Option<u32>,
}

/// Networks by their prefixes, and where each peer is.
#[derive(Debug, Default)]
pub(super) struct Networks {
    known: BTreeMap<u64, Remembered>,
    peers: BTreeMap<Ipv6Addr, u64>,
}

/// What a connection sees of the network that its peer is in, and how it resumes there.
#[derive(Debug, Default)]
pub(super) struct OnNetwork {
    /// When the peer came; nothing if it has been there from the beginning.
    since: Option<Instant>,
    shortest: Option<Duration>,
    /// Begin of the round at hand, and the bytes delivered in it.
    round: Option<Instant>,
    delivered: u64,
    capacity: Option<u32>,
    resume: Option<Resume>,
}

#[derive(Clone, Copy, Debug)]
enum Resume {
    /// Reconnaissance: no acknowledgement has come over the network yet.
    Reconnaissance(Remembered),
    /// Unvalidated and Validating: data up to here was sent on credit; so many timeouts had been before, and so much was
    /// delivered since.
    Validating { end: u64, timeouts: u64, delivered: u64 },
}

impl Endpoint {
    /// Packets to `peer` take another way from now on: to an address with this prefix.
    pub fn network_changed(&mut self, now: Instant, peer: Ipv6Addr, prefix: u64) {
        let remedy = self.config().remedy;
        if !remedy.remembers() {
            return;
        }
        let ids: Vec<_> = self
            .connections()
            .filter(|(_, c)| c.remote().0 == peer)
            .map(|(id, _)| id)
            .collect();
        let at_home = (peer.to_bits() >> 64) as u64;
        let left = self.networks.peers.insert(peer, prefix).unwrap_or(at_home);
        if left == prefix {
            return;
        }
        for id in ids {
            let known = self.networks.known.get(&prefix).copied();
            let Some(connection) = self.connection_mut(id) else {
                continue;
            };
            let seen = connection.change_network(now, known, &remedy);
            if let Some(seen) = seen {
                self.networks.known.insert(left, seen);
            }
        }
    }

    /// What is remembered of the network with this prefix.
    #[must_use]
    pub fn remembered(&self, prefix: u64) -> Option<Remembered> {
        self.networks.known.get(&prefix).copied()
    }
}

impl Connection {
    /// The peer is in another network: gives what was seen of the one that it left.
    fn change_network(
        &mut self,
        now: Instant,
        known: Option<Remembered>,
        remedy: &Remedy,
    ) -> Option<Remembered> {
        let left = self.network.take().unwrap_or_default();
        let seen = left
            .shortest
            .zip(self.rtt.estimate())
            .map(|(shortest, (srtt, variation))| Remembered {
                srtt,
                variation,
                shortest,
                capacity: left.capacity,
            });
        let mut entered = OnNetwork {
            since: Some(now),
            ..OnNetwork::default()
        };
        if let Some(known) = known {
            let margin = known.srtt.as_secs_f64() * remedy.rtt_margin.max(0.0);
            self.rtt
                .assume(known.srtt + Duration::from_secs_f64(margin), known.variation);
            if let Some(armed) = self.rto_at {
                // what is under way has as long as anything has in that network; what a timeout has found lost waits no
                // longer than it would have
                let there = now + self.rtt.rto();
                self.rto_at = Some(if self.retries == 0 {
                    there
                } else {
                    there.min(armed)
                });
            }
            if remedy.careful_resume {
                entered.resume = Some(Resume::Reconnaissance(known));
                // what the other network carried is nothing to return to
                self.recovery.forget_prior(self.snd_nxt);
                let initial = INITIAL_WINDOW * self.mss;
                self.window.set_cwnd(self.window.cwnd().min(initial));
                if let Some(capacity) = known.capacity {
                    self.window.set_ssthresh(capacity.max(2 * self.mss));
                }
            }
        }
        self.network = Some(Box::new(entered));
        seen
    }

    /// An acknowledgement measured a round trip. What was sent before the peer came tells nothing of this network, though
    /// its acknowledgement came over it.
    pub(super) fn note_round_trip(&mut self, now: Instant, rtt: Duration) {
        if let Some(network) = &mut self.network
            && network.since.is_none_or(|since| now.since(since) >= rtt)
        {
            network.shortest = Some(network.shortest.map_or(rtt, |s| s.min(rtt)));
        }
    }

    /// An acknowledgement has had its effect: so many bytes left the network, and a round begins, or not.
    #[inline]
    pub(super) fn note_delivery(&mut self, now: Instant, bytes: u32, round_start: bool) {
        if self.config.remedy.remembers() {
            self.remember_delivery(now, bytes, round_start);
        }
    }

    #[inline(never)]
    fn remember_delivery(&mut self, now: Instant, bytes: u32, round_start: bool) {
        let calm = matches!(self.recovery.phase, Phase::Open | Phase::Disorder);
        let network = self.network.get_or_insert_default();
        network.delivered += u64::from(bytes);
        if round_start {
            if let (Some(begun), Some(shortest), true) = (network.round, network.shortest, calm) {
                let lasted = now.since(begun).max(shortest);
                let share = shortest.as_nanos() as f64 / (lasted.as_nanos() as f64).max(1.0);
                network.capacity = Some((network.delivered as f64 * share) as u32);
            }
            network.round = Some(now);
            network.delivered = 0;
        }
        self.resume(bytes);
    }

    fn resume(&mut self, bytes: u32) {
        let Some(network) = &mut self.network else { return };
        match network.resume {
            None => {}
            Some(Resume::Reconnaissance(known)) => {
                let Some(rtt) = network.shortest else { return };
                // the draft, section 3.3: a path that is much nearer or farther than remembered is another one
                let same = rtt >= known.shortest / 2 && rtt <= known.shortest * 10;
                network.resume = None;
                let Some(capacity) = known.capacity.filter(|_| same) else {
                    return;
                };
                // half of what was saved; beyond an initial window it would have to be paced, so it is cut to that
                let jump = (capacity / 2).min(INITIAL_WINDOW * self.mss);
                let cwnd = self.window.cwnd();
                if jump > cwnd {
                    network.resume = Some(Resume::Validating {
                        end: self.snd_una + u64::from(jump),
                        timeouts: self.counters.timeouts,
                        delivered: 0,
                    });
                    self.window.set_cwnd(jump);
                }
            }
            Some(Resume::Validating {
                end,
                timeouts,
                delivered,
            }) => {
                let delivered = delivered + u64::from(bytes);
                network.resume = (self.snd_una < end).then_some(Resume::Validating {
                    end,
                    timeouts,
                    delivered,
                });
                if self.recovery.phase == Phase::Recovery || self.counters.timeouts > timeouts {
                    // Safe Retreat, section 3.6: half of what is known to have arrived
                    network.resume = None;
                    let pipe = (delivered.min(u64::from(u32::MAX / 2)) as u32).max(4 * self.mss);
                    self.window.set_ssthresh(pipe / 2);
                    self.window.set_cwnd(self.window.cwnd().min(pipe / 2));
                }
            }
        }
    }
}

/// Segments that may go without pacing (RFC 6928).
const INITIAL_WINDOW: u32 = 10;
