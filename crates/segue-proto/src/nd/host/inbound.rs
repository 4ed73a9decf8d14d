//! What a host makes of advertisements and solicitations, and of addresses that it had on a link before.

use super::{AddressState, Entry, HostNd, NdEvent};
use crate::nd::config::INFINITE_LIFETIME_S;
use crate::nd::{ALL_NODES, form_address_with, link_local, nd_packet};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::nd::{
    NdOption, NeighborAdvertisement, NeighborSolicitation, PrefixInformation, RouterAdvertisement,
};
use smallvec::SmallVec;

/// Addresses kept over the loss of their link, to be used again on coming back to it while they are valid.
///
/// A host that is connected to a link again hears from a router whether it is the one that it was on before: the prefix of
/// a retained address is among those advertised. Then the address is usable at once. Duplicate address detection is not
/// repeated: the address was unique on that link, and a node that took it meanwhile is one that took the same interface
/// identifier (compare RFC 6059, whose host asks its former routers by unicast instead of waiting for an advertisement).
/// Lifetimes go on while the link is away (RFC 4862 section 5.5.4).
impl HostNd {
    /// The link is gone: keeps what may be used again.
    pub(super) fn retain(&mut self, entry: Entry) {
        let certain = matches!(entry.state, AddressState::Preferred | AddressState::Deprecated);
        if !self.config.retain || !certain || entry.address.is_unicast_link_local() {
            return;
        }
        if self.retained.len() >= MAX_RETAINED {
            let given_up = self.retained.remove(0);
            self.events.push_back(NdEvent::AddressExpired(given_up.address));
        }
        self.retained.push(entry);
    }

    /// A router of this link advertises `prefix`: addresses of it that were kept are usable again.
    pub(super) fn use_retained(&mut self, now: Instant, prefix: &PrefixInformation) {
        self.expire_retained(now);
        let bits = u32::from(prefix.prefix_length.min(128));
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        let on_link = |a: Ipv6Addr| (a.to_bits() ^ prefix.prefix.to_bits()) & mask == 0;
        if prefix.valid_lifetime_s == 0 {
            return;
        }
        while let Some(at) = self.retained.iter().position(|e| on_link(e.address)) {
            let entry = self.retained.remove(at);
            if !self.entries.iter().any(|e| e.address == entry.address) {
                self.events.push_back(NdEvent::AddressReady(entry.address));
                if entry.state == AddressState::Deprecated {
                    self.events.push_back(NdEvent::AddressDeprecated(entry.address));
                }
                self.entries.push(entry);
            }
        }
    }

    /// Addresses that were kept and are no longer valid.
    pub(super) fn expire_retained(&mut self, now: Instant) {
        let events = &mut self.events;
        self.retained.retain(|entry| {
            let over = entry.valid_until.is_some_and(|t| t <= now);
            if over {
                events.push_back(NdEvent::AddressExpired(entry.address));
            }
            !over
        });
    }

    /// The addresses kept for links that the interface is not on now.
    pub fn retained(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.retained.iter().map(|e| e.address)
    }
}

/// Advertisements and solicitations.
impl HostNd {
    /// Tells all nodes on the link, unasked, that an address is this interface's, if it can be used: what their neighbour caches
    /// have is overridden (RFC 4861 section 7.2.6).
    pub fn announce_address(&mut self, address: Ipv6Addr) {
        let ready = |(own, state)| own == address && state != AddressState::Tentative;
        if self.addresses().any(ready) {
            let message = Icmpv6::NeighborAdvertisement(NeighborAdvertisement {
                target: address,
                router: false,
                solicited: false,
                override_flag: true,
                options: vec![NdOption::TargetLinkLayerAddress(self.link_layer)],
            });
            self.transmits.push_back(nd_packet(address, ALL_NODES, message));
        }
    }

    /// RFC 4861 section 6.3.4.
    pub(super) fn handle_advertisement(&mut self, now: Instant, packet: &Packet, ra: &RouterAdvertisement) {
        let router = packet.ip.source;
        if ra.cur_hop_limit != 0 {
            self.cur_hop_limit = ra.cur_hop_limit;
        }
        if ra.retrans_timer_ms != 0 {
            self.retrans_timer = Duration::from_millis(u64::from(ra.retrans_timer_ms));
        }
        let until = now + Duration::from_secs(u64::from(ra.router_lifetime_s));
        match self.routers.iter().position(|r| r.0 == router) {
            Some(at) if ra.router_lifetime_s == 0 => drop(self.routers.remove(at)),
            Some(at) => self.routers[at].1 = until,
            None if ra.router_lifetime_s != 0 && self.routers.len() < MAX_ROUTERS => {
                self.routers.push((router, until));
            }
            None => {}
        }
        if ra.router_lifetime_s != 0 {
            // Section 6.3.7: one is enough.
            self.next_solicitation = None;
        }
        let mut prefixes = SmallVec::new();
        for option in &ra.options {
            match option {
                NdOption::Mtu(mtu) if *mtu >= 1280 => self.link_mtu = Some(*mtu),
                NdOption::PrefixInformation(prefix) if !self.retained.is_empty() => {
                    self.use_retained(now, prefix);
                    if is_for_autoconfiguration(prefix) {
                        prefixes.push(*prefix);
                    }
                }
                NdOption::PrefixInformation(prefix) if is_for_autoconfiguration(prefix) => {
                    prefixes.push(*prefix);
                }
                _ => {}
            }
        }
        for prefix in &prefixes {
            self.handle_prefix(now, prefix, packet.ip.destination.is_multicast());
        }
        self.events.push_back(NdEvent::RouterAdvertised {
            router,
            managed: ra.managed,
            prefixes,
        });
    }

    /// RFC 4862 section 5.5.3 d and e.
    fn handle_prefix(&mut self, now: Instant, prefix: &PrefixInformation, announced: bool) {
        let address = form_address_with(prefix.prefix, self.identifier);
        let preferred = lifetime(prefix.preferred_lifetime_s);
        let valid = lifetime(prefix.valid_lifetime_s);
        if !self.autoconfigure {
            // the lifetimes of an address that came from elsewhere come from there too
            return;
        }
        let Some(entry) = self.entries.iter_mut().find(|e| e.address == address) else {
            // d) allows one that nothing may begin from (section 5.5.4), and RFC 8981 section 3.4 forbids it: who has none of
            // this prefix has no use for it
            if prefix.valid_lifetime_s != 0 && prefix.preferred_lifetime_s != 0 {
                self.add_address(now, address, preferred, valid, announced);
            }
            return;
        };
        entry.refresh(now, preferred, valid);
    }

    /// A router advertises `prefix` as one that is not to be used any more: an address of it that came by another way than
    /// autoconfiguration is deprecated too, and does not outlive what section 5.5.3 e leaves it.
    pub(crate) fn withdraw_prefix(&mut self, now: Instant, prefix: &PrefixInformation) {
        let address = form_address_with(prefix.prefix, self.identifier);
        let valid = lifetime(prefix.valid_lifetime_s);
        if let Some(entry) = self.entries.iter_mut().find(|e| e.address == address) {
            entry.refresh(now, Some(Duration::ZERO), valid);
        }
        self.handle_timeout(now);
    }

    /// Forms the addresses of advertised prefixes with this interface identifier from now on. Those with the former one are
    /// deprecated and valid for `keep`, if that is less than they would have been, and where addresses are autoconfigured
    /// others are formed of their prefixes. Gives these prefixes, the one whose address came last at the front.
    pub fn replace_identifier(
        &mut self,
        now: Instant,
        identifier: [u8; 8],
        keep: Option<Duration>,
    ) -> SmallVec<[Ipv6Addr; 1]> {
        let former = core::mem::replace(&mut self.identifier, identifier);
        let mut replaced: SmallVec<[_; 1]> = SmallVec::new();
        for entry in &mut self.entries {
            let is_formed = form_address_with(entry.address, former) == entry.address;
            if !is_formed || entry.address.is_unicast_link_local() {
                continue;
            }
            let deprecated = entry.preferred_until.is_some_and(|t| t <= now);
            if !deprecated {
                replaced.push((entry.address, entry.preferred_until, entry.valid_until));
            }
            entry.preferred_until = Some(now);
            let ends = keep.map(|keep| now + keep);
            entry.valid_until = entry.valid_until.into_iter().chain(ends).min();
        }
        replaced.reverse();
        self.expire(now);
        if self.autoconfigure {
            for (address, preferred, valid) in &replaced {
                let left = |until: Option<Instant>| until.map(|until| until.since(now));
                let address = form_address_with(*address, identifier);
                self.add_address(now, address, left(*preferred), left(*valid), false);
            }
        }
        self.handle_timeout(now);
        replaced.into_iter().map(|(address, ..)| address).collect()
    }

    /// RFC 4861 section 7.2.3; RFC 4862 section 5.4.3.
    pub(super) fn handle_solicitation(&mut self, packet: &Packet, ns: &NeighborSolicitation) {
        let from_unspecified = packet.ip.source.is_unspecified();
        let Some(entry) = self.entries.iter().find(|e| e.address == ns.target) else {
            return;
        };
        if let Some(dad) = &entry.dad {
            if from_unspecified {
                let own = ns
                    .options
                    .iter()
                    .any(|o| matches!(o, NdOption::Nonce(n) if n[..] == dad.nonce));
                if !own {
                    self.refuse(ns.target);
                }
                return;
            }
            if entry.state == AddressState::Tentative {
                return;
            }
        }
        let optimistic = entry.dad.is_some();
        let answer = Icmpv6::NeighborAdvertisement(NeighborAdvertisement {
            target: ns.target,
            router: false,
            solicited: !from_unspecified,
            override_flag: !optimistic,
            options: vec![NdOption::TargetLinkLayerAddress(self.link_layer)],
        });
        let destination = if from_unspecified {
            ALL_NODES
        } else {
            packet.ip.source
        };
        self.transmits
            .push_back(nd_packet(ns.target, destination, answer));
    }

    /// RFC 4862 section 5.4.4.
    pub(super) fn handle_neighbor(&mut self, na: &NeighborAdvertisement) {
        if self
            .entries
            .iter()
            .any(|e| e.address == na.target && e.dad.is_some())
        {
            self.refuse(na.target);
        }
    }

    /// RFC 4862 section 5.4.5.
    fn refuse(&mut self, address: Ipv6Addr) {
        self.counters.duplicates += 1;
        if let Some(at) = self.entries.iter().position(|e| e.address == address) {
            let entry = self.entries.remove(at);
            if entry.state != AddressState::Tentative {
                self.events.push_back(NdEvent::AddressLost(address));
            }
        }
        self.events.push_back(NdEvent::AddressRefused(address));
        if address == link_local(self.link_layer) {
            // The identifier comes from the hardware address: no other address formed from it is safe.
            self.disabled = true;
            self.next_solicitation = None;
            for entry in core::mem::take(&mut self.entries) {
                if entry.state != AddressState::Tentative {
                    self.events.push_back(NdEvent::AddressLost(entry.address));
                }
            }
        }
    }
}

impl Entry {
    /// Lifetimes as a router advertises them, `None` for ever (RFC 4862 section 5.5.3 e).
    fn refresh(&mut self, now: Instant, preferred: Option<Duration>, valid: Option<Duration>) {
        self.preferred_until = preferred.map(|d| now + d);
        let remaining = self.valid_until.map(|t| t - now);
        let longer = match (valid, remaining) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(new), Some(old)) => new > old,
        };
        if longer || valid.is_none_or(|v| v > TWO_HOURS) {
            self.valid_until = valid.map(|d| now + d);
        } else if remaining.is_none_or(|r| r > TWO_HOURS) {
            self.valid_until = Some(now + TWO_HOURS);
        }
    }
}

/// Default routers kept: whoever is on the link can advertise any number.
const MAX_ROUTERS: usize = 16;

/// Bound on how far an unauthenticated advertisement may shorten a valid lifetime (RFC 4862 section 5.5.3 e).
const TWO_HOURS: Duration = Duration::from_secs(7200);

fn is_for_autoconfiguration(prefix: &PrefixInformation) -> bool {
    prefix.autonomous
        && prefix.prefix_length == 64
        && !prefix.prefix.is_unicast_link_local()
        && !prefix.prefix.is_multicast()
        && prefix.preferred_lifetime_s <= prefix.valid_lifetime_s
}

/// A lifetime field; `None` for ever.
fn lifetime(seconds: u32) -> Option<Duration> {
    (seconds != INFINITE_LIFETIME_S).then(|| Duration::from_secs(u64::from(seconds)))
}

/// Most addresses kept, the oldest are given up: as many links can a host come back to.
const MAX_RETAINED: usize = 16;
