//! The host's side.

mod inbound;

use super::config::HostConfig;
use super::{ALL_ROUTERS, interface_identifier, link_local, nd_packet, solicited_node};
use crate::contract::{InterfaceId, Transmit};
use crate::random::Stream;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::nd::{
    LinkLayerAddress, NdOption, NeighborSolicitation, PrefixInformation, RouterSolicitation,
};
use segue_wire::{Packet, Payload};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// State of an address (RFC 4862 section 2, RFC 4429 section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressState {
    /// Duplicate address detection runs; not to be used.
    Tentative,
    /// Duplicate address detection runs; may be used with care.
    Optimistic,
    /// May be used.
    Preferred,
    /// Its preferred lifetime is over: for connections that already use it.
    Deprecated,
}

/// What neighbour discovery tells its host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NdEvent {
    /// An address can be used (also told of the link-local one).
    AddressReady(Ipv6Addr),
    /// Another node has the address: it is not used.
    AddressRefused(Ipv6Addr),
    /// The preferred lifetime of an address is over.
    AddressDeprecated(Ipv6Addr),
    /// An address can no longer be used: its valid lifetime is over, or the link is down.
    AddressLost(Ipv6Addr),
    /// An address is no longer this host's, on whatever link: its valid lifetime is over.
    AddressExpired(Ipv6Addr),
    /// A valid router advertisement was heard.
    RouterAdvertised {
        /// Link-local address of the router.
        router: Ipv6Addr,
        /// M flag.
        managed: bool,
        /// Prefixes for autoconfiguration (RFC 4862 section 5.5.3 a to c).
        prefixes: SmallVec<[PrefixInformation; 1]>,
    },
}

/// Messages dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NdCounters {
    /// Messages that are not valid by RFC 4861 section 6.1 or 7.1.
    pub invalid: u64,
    /// Duplicate addresses found.
    pub duplicates: u64,
}

#[derive(Debug)]
struct Entry {
    address: Ipv6Addr,
    state: AddressState,
    /// Running duplicate address detection.
    dad: Option<Dad>,
    /// `None` for ever.
    preferred_until: Option<Instant>,
    valid_until: Option<Instant>,
}

#[derive(Debug)]
struct Dad {
    solicitations_left: u32,
    next: Instant,
    /// RFC 7527: recognises our own solicitation if the link loops it back.
    nonce: [u8; 6],
}

/// Neighbour discovery of one interface of a host.
#[derive(Debug)]
pub struct HostNd {
    interface: InterfaceId,
    link_layer: LinkLayerAddress,
    /// Interface identifier of addresses of advertised prefixes.
    identifier: [u8; 8],
    config: HostConfig,
    /// Whether addresses are formed from advertised prefixes.
    autoconfigure: bool,
    stream: Stream,
    up: bool,
    /// The link-local address is taken: the interface is disabled (RFC 4862 section 5.4.5).
    disabled: bool,
    /// No packet has been sent since the link came up.
    silent: bool,
    entries: Vec<Entry>,
    /// Addresses of links that were lost.
    retained: Vec<Entry>,
    /// Default routers with the end of their lifetimes.
    routers: Vec<(Ipv6Addr, Instant)>,
    solicitations_left: u32,
    next_solicitation: Option<Instant>,
    retrans_timer: Duration,
    cur_hop_limit: u8,
    link_mtu: Option<u32>,
    timeout: Option<Instant>,
    transmits: VecDeque<Packet>,
    events: VecDeque<NdEvent>,
    counters: NdCounters,
}

impl HostNd {
    /// An interface whose link is down. With `autoconfigure`, addresses are formed from advertised prefixes.
    #[must_use]
    pub fn new(
        interface: InterfaceId,
        link_layer: LinkLayerAddress,
        config: HostConfig,
        autoconfigure: bool,
        stream: Stream,
    ) -> Self {
        let retrans_timer = config.retrans_timer;
        Self {
            interface,
            link_layer,
            identifier: interface_identifier(link_layer),
            config,
            autoconfigure,
            stream,
            up: false,
            disabled: false,
            silent: true,
            entries: Vec::new(),
            retained: Vec::new(),
            routers: Vec::new(),
            solicitations_left: 0,
            next_solicitation: None,
            retrans_timer,
            cur_hop_limit: 64,
            link_mtu: None,
            timeout: None,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: NdCounters::default(),
        }
    }

    /// Forms the addresses of advertised prefixes with this interface identifier from now on, instead of the one of the
    /// link-layer address: a node identifier is the same on all interfaces (RFC 6740 section 3.1). The link-local
    /// address keeps the link layer's.
    pub fn set_interface_identifier(&mut self, identifier: [u8; 8]) {
        self.identifier = identifier;
    }

    /// The interface identifier of addresses to come.
    #[must_use]
    pub fn interface_identifier(&self) -> [u8; 8] {
        self.identifier
    }

    /// The link came up: forms the link-local address and solicits routers.
    pub fn handle_link_up(&mut self, now: Instant) {
        if self.up {
            return;
        }
        self.up = true;
        self.disabled = false;
        self.silent = true;
        self.retrans_timer = self.config.retrans_timer;
        self.solicitations_left = self.config.max_rtr_solicitations;
        self.add_address(now, link_local(self.link_layer), None, None, false);
        if self.solicitations_left > 0 {
            self.next_solicitation = Some(now + self.random_delay());
        }
        self.handle_timeout(now);
    }

    /// The link went down: addresses, routers and everything under way are gone; addresses to be used again are kept if
    /// so configured.
    pub fn handle_link_down(&mut self, _now: Instant) {
        self.up = false;
        self.routers.clear();
        self.next_solicitation = None;
        self.transmits.clear();
        for entry in core::mem::take(&mut self.entries) {
            if entry.state != AddressState::Tentative {
                self.events.push_back(NdEvent::AddressLost(entry.address));
            }
            self.retain(entry);
        }
        self.update_timeout();
    }

    /// Adds an address that came from elsewhere (or of an advertised prefix); `preferred` and `valid` lifetimes of
    /// `None` are for ever. `announced` is set if a multicast advertisement is the cause, which many hosts heard at
    /// the same time. Duplicate address detection runs first, unless `dup_addr_detect_transmits` is 0.
    pub fn add_address(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        preferred: Option<Duration>,
        valid: Option<Duration>,
        announced: bool,
    ) {
        if !self.takes(address) {
            return;
        }
        let mut entry = Entry {
            address,
            state: AddressState::Preferred,
            dad: None,
            preferred_until: preferred.map(|d| now + d),
            valid_until: valid.map(|d| now + d),
        };
        if self.config.dup_addr_detect_transmits > 0 {
            // RFC 4862 section 5.4.2: before the first packet, or after a multicast advertisement.
            let delay = if self.silent || announced {
                self.random_delay()
            } else {
                Duration::ZERO
            };
            let nonce = self.stream.next_u64().to_le_bytes();
            entry.dad = Some(Dad {
                solicitations_left: self.config.dup_addr_detect_transmits,
                next: now + delay,
                nonce: [nonce[0], nonce[1], nonce[2], nonce[3], nonce[4], nonce[5]],
            });
            entry.state = if self.config.optimistic {
                AddressState::Optimistic
            } else {
                AddressState::Tentative
            };
        }
        if entry.state != AddressState::Tentative {
            self.events.push_back(NdEvent::AddressReady(address));
        }
        self.entries.push(entry);
        self.update_timeout();
    }

    /// Adds an address for ever, without duplicate address detection: nobody else can have it.
    pub fn assign_address(&mut self, address: Ipv6Addr) {
        if self.takes(address) {
            self.events.push_back(NdEvent::AddressReady(address));
            self.entries.push(Entry {
                address,
                state: AddressState::Preferred,
                dad: None,
                preferred_until: None,
                valid_until: None,
            });
        }
    }

    /// Whether another address can be had.
    fn takes(&self, address: Ipv6Addr) -> bool {
        let full = self.entries.len() >= MAX_ADDRESSES;
        !self.disabled && self.up && !full && self.entries.iter().all(|e| e.address != address)
    }

    /// Removes an address, of which nothing more is heard then but that it is lost.
    pub fn remove_address(&mut self, address: Ipv6Addr) {
        if let Some(at) = self.entries.iter().position(|e| e.address == address) {
            let entry = self.entries.remove(at);
            if entry.state != AddressState::Tentative {
                self.events.push_back(NdEvent::AddressLost(address));
            }
            self.update_timeout();
        }
    }

    /// New lifetimes of an address that there is; `None` for ever.
    pub fn extend_address(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        preferred: Option<Duration>,
        valid: Option<Duration>,
    ) {
        if let Some(entry) = self.entries.iter_mut().find(|e| e.address == address) {
            entry.preferred_until = preferred.map(|d| now + d);
            entry.valid_until = valid.map(|d| now + d);
        }
        self.handle_timeout(now);
    }

    /// Takes a packet that arrived over the interface; anything but neighbour discovery is ignored.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        let Payload::Icmpv6(message) = &packet.payload else {
            return;
        };
        if !self.up {
            return;
        }
        let valid = packet.nd_is_valid();
        match message {
            Icmpv6::RouterAdvertisement(ra) if valid => self.handle_advertisement(now, packet, ra),
            Icmpv6::NeighborSolicitation(ns) if valid => self.handle_solicitation(packet, ns),
            Icmpv6::NeighborAdvertisement(na) if valid => self.handle_neighbor(na),
            Icmpv6::RouterAdvertisement(_)
            | Icmpv6::NeighborSolicitation(_)
            | Icmpv6::NeighborAdvertisement(_) => self.counters.invalid += 1,
            _ => {}
        }
        self.handle_timeout(now);
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.solicit_routers(now);
        self.detect_duplicates(now);
        self.expire(now);
        self.update_timeout();
    }

    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit> {
        let packet = self.transmits.pop_front()?;
        self.silent = false;
        Some(Transmit {
            interface: self.interface,
            packet,
        })
    }

    /// When `handle_timeout` must be called next. Poll again after every other call.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timeout
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<NdEvent> {
        self.events.pop_front()
    }

    /// The addresses with their states.
    pub fn addresses(&self) -> impl Iterator<Item = (Ipv6Addr, AddressState)> {
        self.entries.iter().map(|e| (e.address, e.state))
    }

    /// The link-local address, if it can be used.
    #[must_use]
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        let own = link_local(self.link_layer);
        self.addresses()
            .find(|a| a.0 == own && a.1 != AddressState::Tentative)
            .map(|a| a.0)
    }

    /// Default routers, the one heard first at the front.
    pub fn default_routers(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.routers.iter().map(|r| r.0)
    }

    /// Hop limit for packets of this host (CurHopLimit).
    #[must_use]
    pub fn cur_hop_limit(&self) -> u8 {
        self.cur_hop_limit
    }

    /// MTU that a router advertised, bytes.
    #[must_use]
    pub fn link_mtu(&self) -> Option<u32> {
        self.link_mtu
    }

    /// Messages dropped.
    #[must_use]
    pub fn counters(&self) -> NdCounters {
        self.counters
    }

    fn random_delay(&mut self) -> Duration {
        let max = self.config.max_rtr_solicitation_delay.as_nanos();
        if max == 0 {
            Duration::ZERO
        } else {
            Duration::from_nanos(self.stream.below(max))
        }
    }

    fn solicit_routers(&mut self, now: Instant) {
        let Some(at) = self.next_solicitation.filter(|at| *at <= now) else {
            return;
        };
        self.solicitations_left -= 1;
        self.next_solicitation =
            (self.solicitations_left > 0).then(|| at + self.config.rtr_solicitation_interval);
        let source = self.link_local();
        // Without an address, or with one that is only optimistic, no link-layer address (RFC 4429 section 3.2).
        let certain = self
            .entries
            .iter()
            .any(|e| Some(e.address) == source && e.state == AddressState::Preferred);
        let mut options = Vec::new();
        if certain {
            options.push(NdOption::SourceLinkLayerAddress(self.link_layer));
        }
        let source = if certain { source } else { None }.unwrap_or(Ipv6Addr::UNSPECIFIED);
        let message = Icmpv6::RouterSolicitation(RouterSolicitation { options });
        self.transmits.push_back(nd_packet(source, ALL_ROUTERS, message));
    }

    /// RFC 4862 section 5.4.2, 5.4.5.
    fn detect_duplicates(&mut self, now: Instant) {
        for entry in &mut self.entries {
            let Some(dad) = entry.dad.as_mut().filter(|dad| dad.next <= now) else {
                continue;
            };
            if dad.solicitations_left == 0 {
                entry.dad = None;
                if entry.state == AddressState::Tentative {
                    self.events.push_back(NdEvent::AddressReady(entry.address));
                }
                if entry.state != AddressState::Deprecated {
                    entry.state = AddressState::Preferred;
                }
                continue;
            }
            dad.solicitations_left -= 1;
            dad.next += self.retrans_timer;
            let message = Icmpv6::NeighborSolicitation(NeighborSolicitation {
                target: entry.address,
                options: vec![NdOption::Nonce(Bytes::copy_from_slice(&dad.nonce))],
            });
            let destination = solicited_node(entry.address);
            self.transmits
                .push_back(nd_packet(Ipv6Addr::UNSPECIFIED, destination, message));
        }
    }

    /// RFC 4862 section 5.5.4, RFC 4861 section 6.3.5.
    fn expire(&mut self, now: Instant) {
        self.routers.retain(|r| r.1 > now);
        self.expire_retained(now);
        let events = &mut self.events;
        self.entries.retain_mut(|entry| {
            if entry.valid_until.is_some_and(|t| t <= now) {
                if entry.state != AddressState::Tentative {
                    events.push_back(NdEvent::AddressLost(entry.address));
                    events.push_back(NdEvent::AddressExpired(entry.address));
                }
                return false;
            }
            let over = entry.preferred_until.is_some_and(|t| t <= now);
            match (over, entry.state) {
                (true, AddressState::Preferred) => {
                    entry.state = AddressState::Deprecated;
                    events.push_back(NdEvent::AddressDeprecated(entry.address));
                }
                (false, AddressState::Deprecated) => {
                    entry.state = AddressState::Preferred;
                    events.push_back(NdEvent::AddressReady(entry.address));
                }
                _ => {}
            }
            true
        });
    }

    fn update_timeout(&mut self) {
        let entries = self.entries.iter().flat_map(|e| {
            let preferred = if e.state == AddressState::Preferred {
                e.preferred_until
            } else {
                None
            };
            [e.dad.as_ref().map(|d| d.next), e.valid_until, preferred]
        });
        let routers = self.routers.iter().map(|r| Some(r.1));
        let retained = self.retained.iter().map(|e| e.valid_until);
        self.timeout = entries
            .chain(retained)
            .chain(routers)
            .chain([self.next_solicitation])
            .flatten()
            .min();
    }
}

/// Addresses of an interface, default routers of its list: whoever is on the link can advertise any number of either.
const MAX_ADDRESSES: usize = 16;
