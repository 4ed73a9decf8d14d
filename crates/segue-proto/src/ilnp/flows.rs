//! The flows of one identifier's sessions, and to which of them each belongs.
//!
//! A flow stays with the session that it began in, since nothing but that session's nonce shows who is at its other end. A peer
//! that has been started again knows that nonce no longer. So once a session was quiet for [`QUIET`] (RFC 4787 section 4.3:
//! the time for which a NAT keeps what is not used) and a packet comes that may begin something, in a flow of the session
//! but with another nonce, it is believed as far as this:
//! - a call (TCP, SCTP, echo) goes up, from wherever it comes, and this host's transport decides. If it answers, there was
//!   nothing left of the flow, which is the caller's from then on. A connection that lives answers no call, and its packets go on in
//!   the session that they are of.
//! - of protocols that show no call, it is believed from where the session has the peer confirmed, and the flow is its own.
//!
//! In either case a packet with the nonce of the session that had the flow before has it back: whoever has forged the addresses of
//! the peer, off the path, keeps nothing of what the peer itself goes on with.

use super::flow::Flow;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use std::collections::BTreeMap;

/// The flows of the sessions with one identifier.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// Each with what transports call the peer.
    known: BTreeMap<(Flow, Ipv6Addr), Known>,
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The number of its session.
    owner: u64,
    used: Instant,
    unanswered: Unanswered,
    rival: Option<Rival>,
}

/// Why what was sent last in a flow may be answered by a peer that has been started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unanswered {
    /// It may not.
    No,
    /// It is a call that was repeated because nothing was heard.
    Repeated,
    /// It, or one before it, may begin something, and was the first packet after the session was quiet.
    AfterQuiet,
}

/// Another session that has to do with a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rival {
    /// It had the flow before, and has it again with its nonce.
    Before(u64),
    /// A call of its came in the flow, and was not answered.
    Calls(u64),
}

impl Rival {
    const fn number(self) -> u64 {
        let (Self::Before(number) | Self::Calls(number)) = self;
        number
    }
}

impl Flows {
    /// The number of the session to which a flow belongs.
    pub fn owner(&self, flow: Flow, identity: Ipv6Addr) -> Option<u64> {
        Some(self.known.get(&(flow, identity))?.owner)
    }

    /// A packet goes in it, which `answers` what begins something: to the session with this number.
    pub fn on_sent(
        &mut self,
        now: Instant,
        (flow, identity): (Flow, Ipv6Addr),
        answers: impl FnOnce() -> bool,
    ) -> Option<u64> {
        let known = self.known.get_mut(&(flow, identity))?;
        known.used = now;
        if let Some(Rival::Calls(caller)) = known.rival
            && answers()
        {
            known.rival = Some(Rival::Before(known.owner));
            known.owner = caller;
        }
        Some(known.owner)
    }

    /// A call goes in it: the first, or one that is repeated because nothing was heard of its session.
    pub fn on_call(
        &mut self,
        now: Instant,
        flow: Flow,
        identity: Ipv6Addr,
        is_unheard: impl FnOnce(u64) -> bool,
    ) {
        let Some(known) = self.known.get_mut(&(flow, identity)) else {
            return;
        };
        let is_repeated = is_unheard(known.owner) && now.since(known.used) >= REPEATED;
        known.unanswered = match known.unanswered {
            Unanswered::AfterQuiet => Unanswered::AfterQuiet,
            _ if is_repeated => Unanswered::Repeated,
            _ => Unanswered::No,
        };
    }

    /// What may begin something goes in it, as the first packet after its session was quiet.
    pub fn on_first_after_quiet(&mut self, flow: Flow, identity: Ipv6Addr) {
        if let Some(known) = self.known.get_mut(&(flow, identity)) {
            known.unanswered = Unanswered::AfterQuiet;
        }
    }

    /// Whether what was sent last in a flow of this session may be answered by a peer that has been started again.
    pub fn may_be_answered_anew(&self, flow: Flow, identity: Ipv6Addr, number: u64) -> bool {
        let known = self.known.get(&(flow, identity));
        known.is_some_and(|known| known.owner == number && known.unanswered != Unanswered::No)
    }

    /// A packet of this session came in it. Whether it is the session's own; if not, whose it is, and nothing if it is nobody's.
    pub fn on_heard(
        &mut self,
        now: Instant,
        flow: Flow,
        identity: Ipv6Addr,
        number: u64,
    ) -> Result<(), Option<u64>> {
        let known = self.known.get_mut(&(flow, identity)).ok_or(None)?;
        if known.rival == Some(Rival::Before(number)) {
            (known.owner, known.rival) = (number, None);
        }
        if known.owner != number {
            return Err(Some(known.owner));
        }
        (known.used, known.unanswered) = (now, Unanswered::No);
        Ok(())
    }

    /// Whether a call of this session's came in it, that was not answered.
    pub fn is_called_by(&self, flow: Flow, identity: Ipv6Addr, number: u64) -> bool {
        let known = self.known.get(&(flow, identity));
        known.is_some_and(|known| known.rival == Some(Rival::Calls(number)))
    }

    /// Used without being seen here, in this session.
    pub fn refresh(&mut self, now: Instant, flow: Flow, identity: Ipv6Addr, number: u64) {
        let known = self.known.get_mut(&(flow, identity));
        if let Some(known) = known.filter(|known| known.owner == number) {
            known.used = now;
        }
    }

    /// Whether a session has as many flows as it may, so that it has lost others perhaps.
    pub fn is_full(&self, number: u64) -> bool {
        let mine = self.known.values().filter(|known| known.owner == number);
        self.known.len() >= MAX_FLOWS && mine.count() >= MAX_FLOWS
    }

    /// Gives a flow to a session, and takes the one that was used least lately from it if it has too many.
    pub fn claim(&mut self, now: Instant, flow: Flow, identity: Ipv6Addr, number: u64) {
        let flow = (flow, identity);
        if !self.known.contains_key(&flow) && self.is_full(number) {
            let mine = |(_, known): &(&(Flow, Ipv6Addr), &Known)| known.owner == number;
            let oldest = self.known.iter().filter(mine).min_by_key(|(_, known)| known.used);
            if let Some(oldest) = oldest.map(|(flow, _)| *flow) {
                self.known.remove(&oldest);
            }
        }
        let known = Known {
            owner: number,
            used: now,
            unanswered: Unanswered::No,
            rival: None,
        };
        self.known.insert(flow, known);
    }

    /// A session begins something in a flow of a quiet one's: with a call, or with what shows nothing.
    pub fn begin(&mut self, now: Instant, flow: Flow, identity: Ipv6Addr, number: u64, is_call: bool) {
        match self.known.get_mut(&(flow, identity)) {
            Some(known) if known.owner == number => {}
            Some(known) if is_call => known.rival = Some(Rival::Calls(number)),
            known => {
                let before = known.map(|known| known.owner);
                self.claim(now, flow, identity, number);
                if let Some(known) = self.known.get_mut(&(flow, identity)) {
                    known.rival = before.map(Rival::Before);
                }
            }
        }
    }

    /// What was `other`'s is `number`'s.
    pub fn give(&mut self, other: u64, number: u64) {
        for known in self.known.values_mut() {
            if known.owner == other {
                known.owner = number;
            }
            known.rival = known.rival.filter(|rival| rival.number() != other);
        }
    }

    /// A session is forgotten. What it had from another is that one's again.
    pub fn forget(&mut self, number: u64) {
        self.known.retain(|_, known| {
            if known.owner == number
                && let Some(Rival::Before(before)) = known.rival
            {
                known.owner = before;
                known.rival = None;
            }
            known.rival = known.rival.filter(|rival| rival.number() != number);
            known.owner != number
        });
    }
}

/// A session is quiet when nothing was sent or heard in it for so long.
pub(super) const QUIET: Duration = Duration::from_secs(300);
/// A little less than the second after which TCP repeats a SYN (RFC 6298 section 2.1).
pub(super) const REPEATED: Duration = Duration::from_millis(900);
/// Flows of one session: of more, the one that was used least lately is nobody's.
const MAX_FLOWS: usize = 256;
