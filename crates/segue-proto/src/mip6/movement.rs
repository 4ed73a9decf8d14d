//! Movement detection (RFC 6275 section 11.5.1) and the choice of the address to use (section 11.5.3).

use super::config::{HandoffPolicy, MobileNodeConfig, prefix};
use crate::contract::{InterfaceId, LinkEvent, LocalAddress};
use crate::time::{Duration, Instant};
use core::cmp::Reverse;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::nd::{NdOption, RouterAdvertisement};
use std::collections::BTreeMap;

/// Where a mobile node is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attachment {
    /// It has no address.
    Nowhere,
    /// To its home link.
    Home(InterfaceId),
    /// Elsewhere, with this care-of address.
    Away(LocalAddress),
}

/// What becomes of the home address on the interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HomeAddressPlaces {
    /// It was asked for there, and is not needed there any more.
    pub no_longer: Option<LocalAddress>,
    /// It is to be asked for there.
    pub from_now_on: Option<LocalAddress>,
}

/// Which addresses there are, which routers are heard, and which address is used.
#[derive(Debug)]
pub(super) struct Movement {
    policy: HandoffPolicy,
    lost_advertisements: u32,
    default_interval: Option<Duration>,
    preference: Vec<u8>,
    home_address: Ipv6Addr,
    /// Where the host was asked for the home address, if it does not acquire it there by itself.
    home_address_at: Option<LocalAddress>,
    assigned: Vec<Assigned>,
    links: BTreeMap<InterfaceId, Link>,
    current: Option<LocalAddress>,
    order: u64,
}

#[derive(Debug)]
struct Assigned {
    local: LocalAddress,
    /// The later an address came, the larger.
    order: u64,
    deprecated: bool,
    /// Nothing gets through its network, and until then another is preferred.
    silent_until: Option<Instant>,
}

#[derive(Debug, Default)]
struct Link {
    down: bool,
    /// The router last heard, and when.
    heard: Option<(Ipv6Addr, Instant)>,
    /// How often it advertises.
    interval: Option<Duration>,
    /// Too many of its advertisements are missing.
    lost: bool,
}

impl Link {
    /// When this many advertisements in a row did not come.
    fn missed_at(&self, lost_advertisements: u32) -> Option<Instant> {
        let (_, heard) = self.heard?;
        Some(heard + self.interval? * u64::from(lost_advertisements))
    }
}

impl Movement {
    pub(super) fn new(config: &MobileNodeConfig) -> Self {
        Self {
            policy: config.handoff,
            lost_advertisements: config.lost_advertisements,
            default_interval: config.advertisement_interval,
            preference: config.interface_preference.clone(),
            home_address: config.home_address,
            home_address_at: None,
            assigned: Vec::new(),
            links: BTreeMap::new(),
            current: None,
            order: 0,
        }
    }

    /// Where the node is attached now.
    pub(super) fn attachment(&self) -> Attachment {
        match self.current {
            None => Attachment::Nowhere,
            Some(local) if prefix(local.address) == prefix(self.home_address) => {
                Attachment::Home(local.interface)
            }
            Some(local) => Attachment::Away(local),
        }
    }

    /// Where the host is to have the home address from now on: on the interface that is on the home link, unless it is somewhere
    /// already.
    pub(super) fn place_home_address(&mut self) -> HomeAddressPlaces {
        let address = self.home_address;
        let at_home = match self.attachment() {
            Attachment::Home(interface) => Some(LocalAddress { interface, address }),
            _ => None,
        };
        let no_longer = self.home_address_at.take_if(|at| Some(*at) != at_home);
        let is_there = self.home_address_at.is_some() || self.is_assigned(address);
        let from_now_on = at_home.filter(|_| !is_there);
        self.home_address_at = self.home_address_at.or(from_now_on);
        HomeAddressPlaces {
            no_longer,
            from_now_on,
        }
    }

    /// Whether packets to `address` are this node's: soft reception goes by what is assigned, not by what is in use.
    pub(super) fn is_assigned(&self, address: Ipv6Addr) -> bool {
        self.assigned.iter().any(|a| a.local.address == address)
    }

    /// The interface that `address` is on.
    pub(super) fn interface_of(&self, address: Ipv6Addr) -> Option<InterfaceId> {
        self.assigned
            .iter()
            .find(|a| a.local.address == address)
            .map(|a| a.local.interface)
    }

    /// An address can be used.
    pub(super) fn address_ready(&mut self, local: LocalAddress) {
        self.order += 1;
        self.assigned.retain(|a| a.local.address != local.address);
        self.assigned.push(Assigned {
            local,
            order: self.order,
            deprecated: false,
            silent_until: None,
        });
        self.decide(Some(local));
    }

    /// An address can no longer be used.
    pub(super) fn address_lost(&mut self, local: LocalAddress) {
        self.assigned.retain(|a| a.local != local);
        self.home_address_at.take_if(|at| *at == local);
        self.decide(None);
    }

    /// An address is not to be chosen any more if there is another.
    pub(super) fn address_deprecated(&mut self, local: LocalAddress) {
        for assigned in self.assigned.iter_mut().filter(|a| a.local == local) {
            assigned.deprecated = true;
        }
        self.decide(None);
    }

    /// The addresses of an interface are chosen before all others from now on, those that can be used. One through whose
    /// network nothing got is tried again.
    pub(super) fn prefer(&mut self, interface: InterfaceId) {
        self.preference = vec![interface.0];
        for assigned in self
            .assigned
            .iter_mut()
            .filter(|a| a.local.interface == interface)
        {
            assigned.silent_until = None;
        }
        let there = self.current.is_some_and(|c| c.interface == interface);
        if let Some(best) = self.best().filter(|b| !there && b.interface == interface) {
            self.current = Some(best);
        }
    }

    /// Whether there is a choice.
    pub(super) fn has_another(&self) -> bool {
        self.assigned.len() > 1
    }

    /// Nothing gets through the network of the address in use: another is used if there is one. If nothing gets through any,
    /// they are tried in turn.
    pub(super) fn silent(&mut self, now: Instant) {
        let current = self.current;
        for assigned in &mut self.assigned {
            if current == Some(assigned.local) {
                assigned.silent_until = Some(now + SILENT_FOR);
            } else {
                assigned.silent_until.take_if(|until| *until <= now);
            }
        }
        if self.assigned.iter().all(|a| a.silent_until.is_some()) {
            for assigned in self.assigned.iter_mut().filter(|a| current != Some(a.local)) {
                assigned.silent_until = None;
            }
        }
        self.decide(None);
    }

    /// A link came or went.
    pub(super) fn handle_link(&mut self, event: &LinkEvent) {
        match *event {
            LinkEvent::Up { interface, .. } => {
                let link = self.links.entry(interface).or_default();
                link.down = false;
                // what was heard before was heard on another link, perhaps: it must show itself again to be missed
                if link.lost {
                    *link = Link::default();
                }
            }
            LinkEvent::Down { interface, .. } => {
                self.links.entry(interface).or_default().down = true;
            }
            _ => return,
        }
        self.decide(None);
    }

    /// A router advertisement was heard.
    pub(super) fn handle_advertisement(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        router: Ipv6Addr,
        advertisement: &RouterAdvertisement,
    ) {
        if advertisement.router_lifetime_s == 0 {
            return;
        }
        let interval = advertisement.options.iter().find_map(|option| match option {
            NdOption::AdvertisementInterval(ms) if *ms > 0 => Some(Duration::from_millis(u64::from(*ms))),
            _ => None,
        });
        let default_interval = self.default_interval;
        let link = self.links.entry(interface).or_default();
        link.heard = Some((router, now));
        link.interval = interval.or(default_interval);
        if core::mem::take(&mut link.lost) {
            self.decide(None);
        }
    }

    /// Works off the timers that are due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            // of all links, or one whose router is no better would be moved to
            for link in self.links.values_mut() {
                link.lost |= link
                    .missed_at(self.lost_advertisements)
                    .is_some_and(|at| at <= now);
            }
            self.decide(None);
        }
    }

    /// When the advertisements of the router in use count as lost.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.policy != HandoffPolicy::OnLostAdvertisements {
            return None;
        }
        let link = self.links.get(&self.current?.interface)?;
        if link.lost {
            return None;
        }
        link.missed_at(self.lost_advertisements)
    }

    /// Chooses the address to use; `arrived` has just come.
    fn decide(&mut self, arrived: Option<LocalAddress>) {
        let kept = |c: &LocalAddress| self.is_kept(*c) && !self.is_silent(*c) && !self.is_superseded(*c);
        let Some(current) = self.current.filter(kept) else {
            // a router that is not heard is better than none
            self.current = self.best().or(self.current.filter(|c| self.is_usable(*c)));
            return;
        };
        let Some(arrived) = arrived else { return };
        let (old, new) = (self.rank(current.interface), self.rank(arrived.interface));
        // another prefix of the home link is no reason to leave home (section 11.5.2)
        let at_home = self.is_home(current) && arrived.interface == current.interface;
        let eager = self.policy == HandoffPolicy::OnNewRouter
            && prefix(arrived.address) != prefix(current.address)
            && !at_home
            && new <= old;
        if new < old || eager {
            self.current = Some(arrived);
        }
    }

    /// Whether the policy stays with this address.
    fn is_kept(&self, current: LocalAddress) -> bool {
        let link = self.links.get(&current.interface);
        let by_advertisements = self.policy == HandoffPolicy::OnLostAdvertisements
            && link.is_some_and(|l| l.heard.is_some() && l.interval.is_some());
        if by_advertisements {
            link.is_some_and(|l| !l.lost)
        } else {
            self.is_usable(current)
        }
    }

    /// Whether packets can be sent from this address.
    fn is_usable(&self, local: LocalAddress) -> bool {
        let down = self.links.get(&local.interface).is_some_and(|l| l.down);
        !down && self.is_assigned(local.address)
    }

    fn is_home(&self, local: LocalAddress) -> bool {
        prefix(local.address) == prefix(self.home_address)
    }

    /// Whether this address is deprecated and another is not, as after its network was renumbered (RFC 4862 section 5.5.4). A
    /// home address is used as long as it is valid.
    fn is_superseded(&self, current: LocalAddress) -> bool {
        let is_current = |a: &&Assigned| a.local == current;
        let deprecated = self
            .assigned
            .iter()
            .find(is_current)
            .is_some_and(|a| a.deprecated);
        deprecated
            && !self.is_home(current)
            && self
                .assigned
                .iter()
                .any(|a| !a.deprecated && a.silent_until.is_none() && self.is_usable(a.local))
    }

    /// Whether nothing gets through the network of this address.
    fn is_silent(&self, local: LocalAddress) -> bool {
        let own = |a: &&Assigned| a.local == local;
        self.assigned
            .iter()
            .find(own)
            .is_some_and(|a| a.silent_until.is_some())
    }

    /// The address to change to: on the preferred interface, the last that came.
    fn best(&self) -> Option<LocalAddress> {
        self.assigned
            .iter()
            .filter(|a| {
                let link = self.links.get(&a.local.interface);
                link.is_none_or(|l| !l.down && !l.lost)
            })
            .min_by_key(|a| {
                let silent = a.silent_until.is_some();
                (
                    silent,
                    a.deprecated,
                    self.rank(a.local.interface),
                    Reverse(a.order),
                )
            })
            .map(|a| a.local)
    }

    /// The place of an interface in the preferences.
    fn rank(&self, interface: InterfaceId) -> usize {
        self.preference
            .iter()
            .position(|n| *n == interface.0)
            .unwrap_or(self.preference.len())
    }
}

/// An address through whose network nothing got is not used again for so long, where there is another.
const SILENT_FOR: Duration = Duration::from_secs(60);
