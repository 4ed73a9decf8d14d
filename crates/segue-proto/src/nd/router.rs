//! The router's side: advertisements, and defence of its own addresses.

use super::config::{AdvertisedPrefix, INFINITE_LIFETIME_S, RouterConfig};
use super::{ALL_NODES, link_local, nd_packet};
use crate::contract::{InterfaceId, Transmit};
use crate::random::Stream;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::nd::{
    LinkLayerAddress, NdOption, NeighborAdvertisement, NeighborSolicitation, PrefixInformation,
    RouterAdvertisement,
};
use segue_wire::{Packet, Payload};
use smallvec::{SmallVec, smallvec};
use std::collections::VecDeque;

/// Neighbour discovery of one router interface.
#[derive(Debug)]
pub struct RouterNd {
    interface: InterfaceId,
    link_layer: LinkLayerAddress,
    config: RouterConfig,
    stream: Stream,
    /// Addresses defended, the link-local one first.
    addresses: SmallVec<[Ipv6Addr; 2]>,
    advertisement: RouterAdvertisement,
    initial_left: u32,
    /// When the next multicast advertisement is sent.
    next_multicast: Instant,
    last_multicast: Option<Instant>,
    /// Answers to single hosts with their times.
    unicast: Vec<(Instant, Ipv6Addr)>,
    transmits: VecDeque<Packet>,
    invalid: u64,
}

impl RouterNd {
    /// An interface that advertises from `start` on: the first time after an interval. `stream` is drawn from for
    /// intervals and delays.
    #[must_use]
    pub fn new(
        start: Instant,
        interface: InterfaceId,
        link_layer: LinkLayerAddress,
        config: RouterConfig,
        stream: Stream,
    ) -> Self {
        let mut router = Self {
            interface,
            link_layer,
            advertisement: advertisement(&config, link_layer),
            initial_left: config.max_initial_rtr_advertisements,
            config,
            stream,
            addresses: smallvec![link_local(link_layer)],
            next_multicast: start,
            last_multicast: None,
            unicast: Vec::new(),
            transmits: VecDeque::new(),
            invalid: 0,
        };
        router.next_multicast = start + router.interval();
        router
    }

    /// Has another address of the router defended.
    pub fn add_address(&mut self, address: Ipv6Addr) {
        self.addresses.push(address);
    }

    /// Advertises these prefixes from now on: soon, and at first as often as a router that begins to advertise (RFC 4861
    /// section 6.2.4).
    pub fn advertise(&mut self, now: Instant, prefixes: Vec<AdvertisedPrefix>) {
        self.config = RouterConfig {
            prefixes,
            ..self.config.clone()
        };
        self.advertisement = advertisement(&self.config, self.link_layer);
        self.initial_left = self.config.max_initial_rtr_advertisements;
        let soonest = self
            .last_multicast
            .map_or(now, |last| last + self.config.min_delay_between_ras);
        self.next_multicast = soonest.max(now);
        self.handle_timeout(now);
    }

    /// The link-local address, from which advertisements come.
    #[must_use]
    pub fn link_local(&self) -> Ipv6Addr {
        self.addresses[0]
    }

    /// Messages dropped because they are not valid by RFC 4861 section 6.1 or 7.1.
    #[must_use]
    pub fn invalid(&self) -> u64 {
        self.invalid
    }

    /// Takes an ICMPv6 packet that arrived over the interface; anything but neighbour discovery is ignored.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        let Payload::Icmpv6(message) = &packet.payload else {
            return;
        };
        let valid = packet.nd_is_valid();
        match message {
            Icmpv6::RouterSolicitation(_) if valid => self.handle_router_solicitation(now, packet.ip.source),
            Icmpv6::NeighborSolicitation(ns) if valid => self.handle_solicitation(packet.ip.source, ns),
            Icmpv6::RouterSolicitation(_) | Icmpv6::NeighborSolicitation(_) => self.invalid += 1,
            _ => {}
        }
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let (own, all) = (self.link_local(), &self.advertisement);
        let transmits = &mut self.transmits;
        self.unicast.retain(|(at, host)| {
            if *at <= now {
                transmits.push_back(nd_packet(own, *host, Icmpv6::RouterAdvertisement(all.clone())));
            }
            *at > now
        });
        if self.next_multicast <= now {
            let message = Icmpv6::RouterAdvertisement(self.advertisement.clone());
            self.transmits.push_back(nd_packet(own, ALL_NODES, message));
            self.last_multicast = Some(now);
            self.initial_left = self.initial_left.saturating_sub(1);
            // From its own time on, not from `now`: a driver that comes late does not make the interval drift.
            let interval = self.interval();
            self.next_multicast = if self.next_multicast + interval > now {
                self.next_multicast
            } else {
                now
            } + interval;
        }
    }

    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit> {
        let packet = self.transmits.pop_front()?;
        Some(Transmit {
            interface: self.interface,
            packet,
        })
    }

    /// When `handle_timeout` must be called next. Poll after `poll_transmit` has returned `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.unicast
            .iter()
            .map(|u| u.0)
            .chain([self.next_multicast])
            .min()
    }

    /// A random time from MinRtrAdvInterval to MaxRtrAdvInterval (RFC 4861 section 6.2.4).
    fn interval(&mut self) -> Duration {
        let (min, max) = (self.config.min_rtr_adv_interval, self.config.max_rtr_adv_interval);
        let interval = min + self.random(max - min);
        if self.initial_left > 0 {
            interval.clamp(Duration::ZERO, self.config.max_initial_rtr_advert_interval)
        } else {
            interval
        }
    }

    /// A random duration up to `max`.
    fn random(&mut self, max: Duration) -> Duration {
        if max.is_zero() {
            return max;
        }
        Duration::from_nanos(self.stream.below(max.as_nanos().saturating_add(1)))
    }

    /// RFC 4861 section 6.2.6.
    fn handle_router_solicitation(&mut self, now: Instant, host: Ipv6Addr) {
        let delay = self.random(self.config.max_ra_delay_time);
        if self.config.unicast_solicited && !host.is_unspecified() {
            if !self.unicast.iter().any(|u| u.1 == host) {
                self.unicast.push((now + delay, host));
            }
        } else {
            let soonest = self
                .last_multicast
                .map_or(now, |last| last + self.config.min_delay_between_ras);
            self.next_multicast = self.next_multicast.min(soonest.max(now) + delay);
        }
        self.handle_timeout(now);
    }

    /// RFC 4861 section 7.2.4.
    fn handle_solicitation(&mut self, from: Ipv6Addr, ns: &NeighborSolicitation) {
        let from_unspecified = from.is_unspecified();
        if self.addresses.contains(&ns.target) {
            let answer = Icmpv6::NeighborAdvertisement(NeighborAdvertisement {
                target: ns.target,
                router: true,
                solicited: !from_unspecified,
                override_flag: true,
                options: vec![NdOption::TargetLinkLayerAddress(self.link_layer)],
            });
            let destination = if from_unspecified { ALL_NODES } else { from };
            self.transmits
                .push_back(nd_packet(ns.target, destination, answer));
        }
    }
}

/// The advertisement that `config` describes (RFC 4861 section 6.2.3).
fn advertisement(config: &RouterConfig, link_layer: LinkLayerAddress) -> RouterAdvertisement {
    let mut options = vec![NdOption::SourceLinkLayerAddress(link_layer)];
    // RFC 6275 section 7.2
    let own_address = |p: &AdvertisedPrefix| {
        let address = config.home_agent?.address?;
        let differing = (address.to_bits() ^ p.prefix.to_bits()).leading_zeros();
        (differing >= u32::from(p.prefix_length)).then_some(address)
    };
    options.extend(config.link_mtu.map(NdOption::Mtu));
    options.extend(config.prefixes.iter().map(|p| {
        NdOption::PrefixInformation(PrefixInformation {
            prefix: own_address(p).unwrap_or(p.prefix),
            prefix_length: p.prefix_length,
            on_link: p.on_link,
            autonomous: p.autonomous,
            router_address: own_address(p).is_some(),
            valid_lifetime_s: seconds(p.valid_lifetime),
            preferred_lifetime_s: seconds(p.preferred_lifetime),
        })
    }));
    let whole = |d: Duration| d.as_millis() / 1000;
    if config.advertise_interval {
        let most = config.max_rtr_adv_interval.as_millis();
        options.push(NdOption::AdvertisementInterval(
            u32::try_from(most).unwrap_or(u32::MAX),
        ));
    }
    options.extend(config.home_agent.map(|agent| {
        let lifetime = agent.lifetime.unwrap_or(config.default_lifetime);
        NdOption::HomeAgentInformation {
            preference: agent.preference,
            lifetime_s: u16::try_from(whole(lifetime)).unwrap_or(u16::MAX),
        }
    }));
    RouterAdvertisement {
        cur_hop_limit: config.cur_hop_limit,
        managed: config.managed,
        home_agent: config.home_agent.is_some(),
        router_lifetime_s: u16::try_from(whole(config.default_lifetime)).unwrap_or(u16::MAX),
        retrans_timer_ms: config
            .retrans_timer
            .map_or(0, |d| u32::try_from(d.as_millis()).unwrap_or(u32::MAX)),
        options,
        ..RouterAdvertisement::default()
    }
}

/// A lifetime field.
fn seconds(lifetime: Option<Duration>) -> u32 {
    lifetime.map_or(INFINITE_LIFETIME_S, |d| {
        u32::try_from(d.as_millis() / 1000)
            .unwrap_or(u32::MAX)
            .min(INFINITE_LIFETIME_S - 1)
    })
}
