//! The binding update list of a mobile node (RFC 6275 section 11.1): what it told its home agent and correspondents, and
//! what it waits for.

use super::config::MAX_TOKEN_LIFETIME;
use super::return_routability::BindingManagementKey;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Everything a mobile node told.
#[derive(Debug, Default)]
pub(super) struct BindingUpdateList {
    pub(super) home: HomeEntry,
    pub(super) peers: BTreeMap<Ipv6Addr, Peer>,
}

/// The home registration.
#[derive(Debug, Default)]
pub(super) struct HomeEntry {
    /// Of the last Binding Update sent.
    pub(super) sequence: u16,
    /// What the home agent acknowledged last.
    pub(super) registered: Option<Registered>,
    /// A Binding Update that has not been acknowledged.
    pub(super) pending: Option<PendingUpdate>,
    /// Binding Updates in a row that were refused for what another could do better.
    pub(super) refusals: u32,
    pub(super) updates: UpdateRate,
}

/// A binding that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registered {
    pub(super) care_of_address: Ipv6Addr,
    pub(super) since: Instant,
    pub(super) expires: Instant,
    pub(super) refresh: Instant,
}

/// A Binding Update that has not been acknowledged, with its retransmissions.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingUpdate {
    /// The care-of address that it names, the home address if it deletes.
    pub(super) care_of_address: Ipv6Addr,
    /// In units of 4 seconds; zero deletes.
    pub(super) lifetime: u16,
    /// Sequence number of the first transmission.
    pub(super) first_sequence: u16,
    /// When that was.
    pub(super) first_sent: Instant,
    pub(super) retransmission: Retransmission,
    /// What authenticates it at a correspondent.
    pub(super) key: Option<BindingManagementKey>,
    pub(super) nonce_indices: (u16, u16),
    /// It was reported that no answer comes.
    pub(super) reported: bool,
}

impl PendingUpdate {
    /// Whether an acknowledgement with `sequence` answers one of the transmissions, of which `last` was the last.
    pub(super) fn answers(&self, sequence: u16, last: u16) -> bool {
        sequence.wrapping_sub(self.first_sequence) <= last.wrapping_sub(self.first_sequence)
    }
}

/// The timer of something that is sent until it is answered (section 11.8).
#[derive(Clone, Copy, Debug)]
pub(super) struct Retransmission {
    pub(super) next: Instant,
    pub(super) timeout: Duration,
    /// Transmissions so far.
    pub(super) attempts: u32,
}

impl Retransmission {
    pub(super) fn begin(now: Instant, initial: Duration) -> Self {
        Self {
            next: now + initial,
            timeout: initial,
            attempts: 1,
        }
    }

    /// The transmission that was counted last has to wait until then: see [`UpdateRate`].
    pub(super) fn postpone(&mut self, until: Instant) {
        self.attempts = self.attempts.saturating_sub(1);
        self.next = until;
    }

    /// Another transmission at `now`; the next comes after twice the time, at most `max`. After the first, if that had to
    /// wait, it comes after the time itself.
    pub(super) fn again(&mut self, now: Instant, max: Duration) {
        if self.attempts > 0 {
            self.timeout = (self.timeout * 2).min(max);
        }
        self.next = now + self.timeout;
        self.attempts += 1;
    }
}

/// Mobility messages of one type to one node: at most [`MAX_UPDATE_RATE`] within a second (section 11.8).
#[derive(Debug, Default)]
pub(super) struct UpdateRate {
    /// The last ones, the earliest first.
    sent: SmallVec<[Instant; MAX_UPDATE_RATE]>,
}

impl UpdateRate {
    /// Counts one that is sent now.
    ///
    /// # Errors
    /// It may not be sent before then.
    pub(super) fn send(&mut self, now: Instant) -> Result<(), Instant> {
        if self.sent.len() < MAX_UPDATE_RATE {
            self.sent.push(now);
            return Ok(());
        }
        let earliest = self.sent[0] + Duration::from_secs(1);
        if earliest > now {
            return Err(earliest);
        }
        self.sent.remove(0);
        self.sent.push(now);
        Ok(())
    }
}

/// A keygen token that was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) nonce_index: u16,
    pub(super) value: u64,
    pub(super) received: Instant,
    /// The address that it is for.
    pub(super) address: Ipv6Addr,
}

impl Token {
    pub(super) fn is_valid(&self, now: Instant, address: Ipv6Addr) -> bool {
        self.address == address && now.since(self.received) < MAX_TOKEN_LIFETIME
    }
}

/// A correspondent.
#[derive(Debug)]
pub(super) struct Peer {
    /// When a packet was last sent to it.
    pub(super) last_used: Instant,
    /// When a packet last came from it by the direct way.
    pub(super) last_direct: Option<Instant>,
    /// Of the last Binding Update sent.
    pub(super) sequence: u16,
    pub(super) home_token: Option<Token>,
    pub(super) care_of_token: Option<Token>,
    /// Cookies of the tests under way: the retransmissions each have their own (section 11.8), and an answer to an
    /// earlier one is as good a proof.
    pub(super) home_cookies: SmallVec<[u64; 4]>,
    pub(super) care_of_cookies: SmallVec<[u64; 4]>,
    /// Tests under way.
    pub(super) testing: Option<Retransmission>,
    /// A Binding Update under way.
    pub(super) pending: Option<PendingUpdate>,
    /// Binding Updates in a row that it refused for what another could do better: their nonces have expired, or their
    /// sequence number is out of window.
    pub(super) refusals: u32,
    /// The binding that it has of us.
    pub(super) registered: Option<Registered>,
    /// Packets to it take the direct way.
    pub(super) optimized: bool,
    /// Not tried again before.
    pub(super) suspended_until: Option<Instant>,
    /// It does not know Mobile IPv6.
    pub(super) unsupported: bool,
    pub(super) updates: UpdateRate,
    /// Of tests: of each type, no more than that.
    pub(super) tests: UpdateRate,
}

impl Peer {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            last_used: now,
            last_direct: None,
            sequence: 0,
            home_token: None,
            care_of_token: None,
            home_cookies: SmallVec::new(),
            care_of_cookies: SmallVec::new(),
            testing: None,
            pending: None,
            refusals: 0,
            registered: None,
            optimized: false,
            suspended_until: None,
            unsupported: false,
            updates: UpdateRate::default(),
            tests: UpdateRate::default(),
        }
    }

    /// Whether something is under way that a handoff waits for.
    pub(super) fn is_busy(&self) -> bool {
        self.testing.is_some() || self.pending.is_some_and(|p| !p.reported)
    }

    /// Nothing is under way any more.
    pub(super) fn stop(&mut self) {
        self.testing = None;
        self.pending = None;
        self.home_cookies.clear();
        self.care_of_cookies.clear();
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let registered = self.registered.map(|r| r.refresh.min(r.expires));
        [
            self.testing.map(|t| t.next),
            self.pending.map(|p| p.retransmission.next),
            registered,
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

impl BindingUpdateList {
    /// The entry of `peer`, made if there is room for it: one that is of no use any more makes way.
    pub(super) fn peer(&mut self, now: Instant, peer: Ipv6Addr) -> Option<&mut Peer> {
        if !self.peers.contains_key(&peer) && self.peers.len() >= MAX_PEERS {
            let idle = self
                .peers
                .iter()
                .filter(|(_, p)| !p.is_busy() && p.registered.is_none())
                .min_by_key(|(_, p)| p.last_used)
                .map(|(address, _)| *address)?;
            self.peers.remove(&idle);
        }
        Some(self.peers.entry(peer).or_insert_with(|| Peer::new(now)))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let home = [
            self.home.pending.map(|p| p.retransmission.next),
            self.home.registered.map(|r| r.refresh.min(r.expires)),
        ];
        let peers = self.peers.values().filter_map(Peer::poll_timeout);
        home.into_iter().flatten().chain(peers).min()
    }
}

/// Section 12.
pub(super) const MAX_UPDATE_RATE: usize = 3;
/// Correspondents kept in mind.
const MAX_PEERS: usize = 64;
