//! The binding cache of a correspondent or home agent (RFC 6275 section 9.1).

use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use std::collections::{BTreeMap, BTreeSet};

/// Where a mobile node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// Its care-of address.
    pub care_of_address: Ipv6Addr,
    /// When the binding ends.
    pub expires: Instant,
    /// Sequence number of the last Binding Update that was accepted.
    pub sequence: u16,
}

/// A binding with what has been made of it since it was last accepted.
#[derive(Debug)]
struct Entry {
    binding: Binding,
    /// When a packet last took its way.
    last_used: Option<Instant>,
    /// Refreshes asked for.
    refresh_requests: u32,
}

impl Entry {
    /// When the next refresh is to be asked for: at equal intervals within `before` of its end.
    fn refresh_at(&self, before: Duration) -> Option<Instant> {
        let left = MAX_REFRESH_REQUESTS.checked_sub(self.refresh_requests)?;
        if left == 0 || before.is_zero() {
            return None;
        }
        Some(self.binding.expires - before * u64::from(left) / u64::from(MAX_REFRESH_REQUESTS))
    }
}

/// Bindings of mobile nodes by home address; one cache for each address of the node that keeps it.
#[derive(Debug)]
pub struct BindingCache {
    bindings: BTreeMap<Ipv6Addr, Entry>,
    /// Sequence numbers of bindings that were deleted, and until when: as long as the nonces that authorised them may be
    /// valid (section 5.2.8).
    retired: BTreeMap<Ipv6Addr, (u16, Instant)>,
    limit: usize,
    /// Time before the end of a binding within which refreshes are asked for; zero for none.
    refresh_before: Duration,
    /// The ends of all bindings in order.
    ends: BTreeSet<(Instant, Ipv6Addr)>,
    /// When refreshes are to be asked for, in order.
    refreshes: BTreeSet<(Instant, Ipv6Addr)>,
}

impl BindingCache {
    /// An empty cache for at most `limit` bindings, which are to be refreshed within `refresh_before` of their ends; zero for
    /// no such refreshes.
    #[must_use]
    pub fn new(limit: usize, refresh_before: Duration) -> Self {
        Self {
            bindings: BTreeMap::new(),
            retired: BTreeMap::new(),
            limit,
            refresh_before,
            ends: BTreeSet::new(),
            refreshes: BTreeSet::new(),
        }
    }

    /// The binding of `home_address`.
    #[must_use]
    pub fn get(&self, home_address: Ipv6Addr) -> Option<&Binding> {
        self.bindings.get(&home_address).map(|entry| &entry.binding)
    }

    /// Where a packet to `home_address` goes now, which is noted as a use of its binding.
    pub fn way_to(&mut self, now: Instant, home_address: Ipv6Addr) -> Option<Ipv6Addr> {
        let entry = self.bindings.get_mut(&home_address)?;
        if entry.binding.expires <= now {
            return None;
        }
        entry.last_used = Some(now);
        Some(entry.binding.care_of_address)
    }

    /// Takes the refreshes out that are due, and gives those of bindings that were used within the time before their ends for
    /// which refreshes are asked for: these are to be asked for. In the order of home addresses.
    pub fn take_refreshes(&mut self, now: Instant) -> Vec<Ipv6Addr> {
        let mut due: Vec<Ipv6Addr> = Vec::new();
        while let Some((_, home)) = self.refreshes.first().filter(|next| next.0 <= now).copied() {
            self.refreshes.pop_first();
            due.push(home);
        }
        due.sort_unstable();
        due.retain(|home| self.take_refresh(now, *home));
        due
    }

    /// A refresh of the binding of `home_address` is due, which is counted. Whether it is to be asked for.
    fn take_refresh(&mut self, now: Instant, home_address: Ipv6Addr) -> bool {
        let Some(entry) = self.bindings.get_mut(&home_address) else {
            return false;
        };
        entry.refresh_requests += 1;
        let next = entry.refresh_at(self.refresh_before);
        self.refreshes.extend(next.map(|at| (at, home_address)));
        entry
            .last_used
            .is_some_and(|at| now.since(at) <= self.refresh_before)
    }

    /// When the next binding ends or is to be refreshed.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let (end, refresh) = (self.ends.first(), self.refreshes.first());
        end.into_iter().chain(refresh).map(|next| next.0).min()
    }

    /// All bindings with their home addresses.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv6Addr, &Binding)> {
        self.bindings.iter().map(|(home, entry)| (*home, &entry.binding))
    }

    /// Whether a binding for `home_address` could be kept.
    #[must_use]
    pub fn has_room_for(&self, home_address: Ipv6Addr) -> bool {
        self.bindings.len() < self.limit || self.bindings.contains_key(&home_address)
    }

    /// Adds or changes a binding. What it was before, if there was one.
    pub fn insert(&mut self, home_address: Ipv6Addr, binding: Binding) -> Option<Binding> {
        self.retired.remove(&home_address);
        let before = self.take(home_address);
        let entry = Entry {
            binding,
            last_used: None,
            refresh_requests: 0,
        };
        self.ends.insert((binding.expires, home_address));
        let refresh = entry.refresh_at(self.refresh_before);
        self.refreshes.extend(refresh.map(|at| (at, home_address)));
        self.bindings.insert(home_address, entry);
        before
    }

    /// Takes a binding out.
    fn take(&mut self, home_address: Ipv6Addr) -> Option<Binding> {
        let entry = self.bindings.remove(&home_address)?;
        self.ends.remove(&(entry.binding.expires, home_address));
        if let Some(at) = entry.refresh_at(self.refresh_before) {
            self.refreshes.remove(&(at, home_address));
        }
        Some(entry.binding)
    }

    /// Deletes a binding; its sequence number is remembered until `keep`. Whether there was one.
    pub fn remove(&mut self, home_address: Ipv6Addr, sequence: Option<u16>, keep: Instant) -> bool {
        let removed = self.take(home_address);
        if let Some(sequence) = sequence.or(removed.map(|binding| binding.sequence)) {
            self.retired.insert(home_address, (sequence, keep));
        }
        removed.is_some()
    }

    /// The last sequence number accepted for `home_address`, while it is known.
    #[must_use]
    pub fn last_sequence(&self, now: Instant, home_address: Ipv6Addr) -> Option<u16> {
        let retired = || self.retired.get(&home_address).filter(|r| r.1 > now).map(|r| r.0);
        self.get(home_address).map(|b| b.sequence).or_else(retired)
    }

    /// Takes the bindings out whose lifetime is over, and remembers their sequence numbers for `keep`. In the order of home
    /// addresses.
    pub fn expire(&mut self, now: Instant, keep: Duration) -> Vec<Ipv6Addr> {
        let ended = self.ends.iter().take_while(|(at, _)| *at <= now);
        let mut over: Vec<Ipv6Addr> = ended.map(|(_, home)| *home).collect();
        over.sort_unstable();
        for home in &over {
            self.remove(*home, None, now + keep);
        }
        over
    }

    /// How many sequence numbers of bindings that are gone are remembered.
    #[must_use]
    pub fn retired(&self) -> usize {
        self.retired.len()
    }

    /// Forgets sequence numbers that are no longer needed. Whether so many are left that more cannot be kept: then the
    /// nonces must go (section 5.2.8).
    pub fn forget_retired(&mut self, now: Instant) -> bool {
        self.retired.retain(|_, r| r.1 > now);
        self.retired.len() > self.limit
    }

    /// Forgets all sequence numbers of deleted bindings.
    pub fn clear_retired(&mut self) {
        self.retired.clear();
    }
}

/// Refreshes asked for at most, at equal intervals before the end of a binding.
const MAX_REFRESH_REQUESTS: u32 = 3;
