//! Home agent operation (RFC 6275 section 10): home registrations, interception, the tunnel.

use super::binding_cache::{Binding, BindingCache};
use super::config::{
    HomeAgentConfig, LIFETIME_UNIT, MAX_DELETE_BCE_TIMEOUT, ReplayProtection, SecurityAssociation,
    ServedNode, is_routable_unicast,
};
use super::correspondent::alternate;
use super::ntp::{NtpClock, is_after};
use super::reply::Reply;
use super::return_routability::{mn_ha_code, verify_mn_ha_code};
use super::tunnel::{TunnelError, encapsulate};
use super::{Counters, TUNNEL_OVERHEAD, count_sent, is_newer, is_signalling, lifetime_units, packet};
use crate::error_budget::ErrorBudget;
use crate::shim::Count;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::mobility::{
    AuthenticationSubtype, BindingUpdate, MobilityHeader, MobilityMessage, MobilityOption, binding_status,
};
use segue_wire::{Packet, Payload};
use std::collections::{BTreeMap, VecDeque};

/// What a home agent tells its router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HomeAgentEvent {
    /// A mobile node's packets are intercepted and go to this care-of address from now on.
    Bound {
        /// Home address.
        home_address: Ipv6Addr,
        /// Care-of address.
        care_of_address: Ipv6Addr,
    },
    /// A mobile node's packets are no longer intercepted: it is at home, or its binding expired.
    Unbound {
        /// Home address.
        home_address: Ipv6Addr,
    },
}

/// A home agent, beside the forwarding of a router on the home link.
///
/// The router hands over every packet whose destination is [`address`](Self::address) or that
/// [`intercepts`](Self::intercepts) names, and forwards what [`poll_transmit`](Self::poll_transmit) yields as it would any
/// packet, which may lead back here. The contract is that of every machine ([`crate::contract`]), but for interfaces: a
/// router knows its ways by itself.
#[derive(Debug)]
pub struct HomeAgent {
    config: HomeAgentConfig,
    /// Places in the list of mobile nodes by home address.
    places: BTreeMap<Ipv6Addr, usize>,
    cache: BindingCache,
    /// What was last accepted of each mobile node, kept beyond the end of its binding so that nobody brings an old one
    /// back.
    last_accepted: BTreeMap<Ipv6Addr, Accepted>,
    /// Binding Updates being worked off, in the order of their times.
    pending: VecDeque<(Instant, Registration)>,
    transmits: VecDeque<Packet>,
    events: VecDeque<HomeAgentEvent>,
    /// That of timestamps.
    clock: NtpClock,
    /// For errors of its own and those that it relays.
    errors: ErrorBudget,
    /// For refusals, of each mobile node: an update that was authentic once can be sent again by whoever saw it, from wherever.
    refusals: BTreeMap<Ipv6Addr, ErrorBudget>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug)]
struct Accepted {
    sequence: u16,
    timestamp: u64,
}

/// A Binding Update that was found good.
#[derive(Clone, Copy, Debug)]
struct Registration {
    reply: Reply,
    care_of_address: Ipv6Addr,
    /// Zero deletes.
    lifetime: u16,
    acknowledge: bool,
}

impl HomeAgent {
    /// A home agent without bindings.
    #[must_use]
    pub fn new(config: HomeAgentConfig) -> Self {
        let mut places = BTreeMap::new();
        for (place, node) in config.mobile_nodes.iter().enumerate() {
            places.entry(node.home_address).or_insert(place);
        }
        Self {
            places,
            cache: BindingCache::new(config.mobile_nodes.len(), Duration::ZERO),
            last_accepted: BTreeMap::new(),
            pending: VecDeque::new(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            clock: NtpClock::default(),
            errors: ErrorBudget::default(),
            refusals: BTreeMap::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// Unix time at the driver's zero, nanoseconds, by the calendar clock, which may have been set since. Without it timestamps
    /// are known from replays only while this lives (RFC 4285 section 6 has them in NTP's time).
    pub fn handle_clock(&mut self, unix_ns_at_zero: u64) {
        self.clock.set(unix_ns_at_zero);
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> Ipv6Addr {
        self.config.address
    }

    /// Whether packets to `address` are to be handed over instead of being forwarded: it is the home address of a mobile
    /// node that is away (section 10.4.1).
    #[must_use]
    pub fn intercepts(&self, now: Instant, address: Ipv6Addr) -> bool {
        self.cache.get(address).is_some_and(|b| b.expires > now)
    }

    /// The bindings of mobile nodes that are away.
    #[must_use]
    pub fn binding_cache(&self) -> &BindingCache {
        &self.cache
    }

    /// Takes a packet to the home agent's address or to one that it intercepts. Hands it back if it is neither
    /// intercepted nor of Mobile IPv6.
    pub fn handle_packet(&mut self, now: Instant, packet: Packet) -> Option<Packet> {
        if packet.ip.destination != self.config.address {
            return self.tunnel(now, packet);
        }
        let source = packet.ip.source;
        match packet.payload {
            Payload::Ipv6(inner) => {
                self.forward_from_tunnel(now, source, *inner);
                None
            }
            Payload::Mobility(_) => {
                self.handle_mobility(now, &packet);
                None
            }
            Payload::Icmpv6(ref message) => match TunnelError::parse(message) {
                Some(error) => {
                    self.relay_error(now, error);
                    None
                }
                None => Some(packet),
            },
            _ => Some(packet),
        }
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.pending.front().is_some_and(|p| p.0 <= now)
            && let Some((_, registration)) = self.pending.pop_front()
        {
            self.register(now, registration);
        }
        for home_address in self.cache.expire(now, Duration::ZERO) {
            self.counters.bindings_expired += 1;
            self.events.push_back(HomeAgentEvent::Unbound { home_address });
        }
    }

    /// The next packet to forward. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.transmits.pop_front()
    }

    /// When `handle_timeout` must be called next. Poll after `poll_transmit` has returned `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let expiry = self.cache.next_deadline();
        self.pending.front().map(|p| p.0).into_iter().chain(expiry).min()
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<HomeAgentEvent> {
        self.events.pop_front()
    }

    /// Everything counted.
    #[must_use]
    pub fn counts(&self) -> Counters {
        self.counters
    }

    /// Everything counted, by name.
    #[must_use]
    pub fn counters(&self) -> Vec<Count> {
        self.counters.list()
    }

    /// A packet to a mobile node that is away (section 10.4.2).
    fn tunnel(&mut self, now: Instant, mut packet: Packet) -> Option<Packet> {
        let Some(care_of_address) = self.cache.way_to(now, packet.ip.destination) else {
            return Some(packet);
        };
        // the tunnel's entry is a hop (RFC 2473 section 3.1), and says so if it is the last (RFC 4443 section 3.3)
        if packet.ip.hop_limit <= 1 {
            self.counters.tunnel_limit += 1;
            self.report(now, &packet, |invoking| Icmpv6::TimeExceeded {
                code: 0,
                invoking,
            });
            return None;
        }
        packet.ip.hop_limit -= 1;
        let mtu = self.config.path_mtu.bytes() as usize - TUNNEL_OVERHEAD as usize;
        if packet.buffer_len() > mtu.max(MIN_MTU) {
            self.counters.too_big += 1;
            // RFC 2473 section 7.1 a
            let mtu = mtu.max(MIN_MTU) as u32;
            self.report(now, &packet, |invoking| Icmpv6::PacketTooBig { mtu, invoking });
            return None;
        }
        let signalling = is_signalling(&packet);
        let Some(outer) = encapsulate(self.config.address, care_of_address, packet) else {
            self.counters.tunnel_limit += 1;
            return None;
        };
        self.counters.tunnelled_out += u64::from(!signalling);
        self.transmits.push_back(outer);
        None
    }

    /// Tells the source of a packet why it is dropped.
    fn report(&mut self, now: Instant, about: &Packet, message: impl FnOnce(Bytes) -> Icmpv6) {
        if Icmpv6::may_report(about) {
            self.send_error(now, about.ip.source, message(Icmpv6::quote(about)));
        }
    }

    /// Sends an error, if it is not one too many. Whether it was not.
    fn send_error(&mut self, now: Instant, to: Ipv6Addr, message: Icmpv6) -> bool {
        let may = self.errors.take(now);
        if may {
            let payload = Payload::Icmpv6(message);
            self.transmits
                .push_back(packet(self.config.address, to, Vec::new(), payload));
        } else {
            self.counters.errors_withheld += 1;
        }
        may
    }

    /// An error about a packet that this home agent has sent through a tunnel (RFC 2473 section 8).
    fn relay_error(&mut self, now: Instant, error: TunnelError) {
        let binding = self.cache.get(error.destination);
        let ours = error.entry == self.config.address
            && binding.is_some_and(|b| b.care_of_address == error.exit && b.expires > now);
        let Some(message) = error.relayed.filter(|_| ours) else {
            self.counters.tunnel_errors_dropped += 1;
            return;
        };
        let sent = self.send_error(now, error.source, message);
        self.counters.tunnel_errors_relayed += u64::from(sent);
    }

    /// A packet that came through the tunnel from `source`: it goes on if that is where its mobile node is (section
    /// 10.4.5).
    fn forward_from_tunnel(&mut self, now: Instant, source: Ipv6Addr, inner: Packet) {
        let bound = self
            .cache
            .get(inner.ip.source)
            .is_some_and(|b| b.care_of_address == source && b.expires > now);
        if !bound {
            self.counters.tunnel_source_mismatch += 1;
            return;
        }
        self.counters.tunnelled_in += u64::from(!is_signalling(&inner));
        self.transmits.push_back(inner);
    }

    fn handle_mobility(&mut self, now: Instant, packet: &Packet) {
        let Payload::Mobility(header) = &packet.payload else {
            return;
        };
        match header.message {
            MobilityMessage::BindingUpdate(update) if update.home_registration => {
                self.handle_update(now, packet, header, update);
            }
            // it is nobody's correspondent
            MobilityMessage::Unknown { .. } => self.counters.unknown_message += 1,
            _ => self.counters.unexpected += 1,
        }
    }

    /// Sections 10.3.1 and 10.3.2, with the authentication of RFC 4285. Nothing that is not authentic is answered.
    fn handle_update(
        &mut self,
        now: Instant,
        packet: &Packet,
        header: &MobilityHeader,
        update: BindingUpdate,
    ) {
        let source = packet.ip.source;
        let home_address = packet.home_address().unwrap_or(source);
        let care_of_address = alternate(header).unwrap_or(source);
        let deletes = update.lifetime == 0 || care_of_address == home_address;
        let reply = Reply {
            own: self.config.address,
            source,
            home_address,
            covered: care_of_address,
            sequence: update.sequence,
        };
        let Some(node) = self.served(home_address) else {
            self.counters.not_home_agent += 1;
            return;
        };
        let security = &node.security;
        let authentic = is_authentic(security, header, care_of_address, home_address);
        if !authentic {
            self.counters.unauthenticated += 1;
            return;
        }
        let timestamp = timestamp(header);
        let last = self.last_accepted.get(&home_address).copied();
        if security.replay_protection == ReplayProtection::Timestamp
            && let Some(status) = self.refuse_timestamp(now, timestamp, last)
        {
            self.counters.bad_timestamp += 1;
            return self.refuse(now, reply, status);
        }
        if let Some(last) = last.filter(|last| !is_newer(update.sequence, last.sequence)) {
            self.counters.bad_sequence += 1;
            let reply = Reply {
                sequence: last.sequence,
                ..reply
            };
            return self.refuse(now, reply, binding_status::SEQUENCE_OUT_OF_WINDOW);
        }
        if !deletes && !is_routable_unicast(care_of_address) {
            self.counters.malformed += 1;
            return self.acknowledge(now, reply, binding_status::INVALID_CARE_OF_ADDRESS, 0);
        }
        self.last_accepted.insert(
            home_address,
            Accepted {
                sequence: update.sequence,
                timestamp: timestamp.unwrap_or_default(),
            },
        );
        let registration = Registration {
            reply,
            care_of_address,
            lifetime: if deletes { 0 } else { update.lifetime },
            acknowledge: update.acknowledge,
        };
        let detection = if deletes || self.cache.get(home_address).is_some() {
            Duration::ZERO
        } else {
            self.config.duplicate_address_detection
        };
        // one at a time and in order: a retransmission does not overtake what it repeats
        let at = now + self.config.home_agent_delay + detection;
        let at = self.pending.back().map_or(at, |last| last.0.max(at));
        self.pending.push_back((at, registration));
        self.handle_timeout(now);
    }

    /// A registration takes effect.
    fn register(&mut self, now: Instant, registration: Registration) {
        let Registration {
            reply,
            care_of_address,
            ..
        } = registration;
        let home_address = reply.home_address;
        let granted = registration
            .lifetime
            .min(lifetime_units(self.config.max_lifetime));
        // section 10.3.2: what was deleted just now may be deleted again, for the sake of what is sent twice
        if registration.lifetime == 0 && self.cache.last_sequence(now, home_address).is_none() {
            self.counters.not_registered += 1;
            return self.acknowledge(now, reply, binding_status::NOT_HOME_AGENT, 0);
        }
        self.counters.bindings_accepted += 1;
        if granted == 0 {
            let keep = now + MAX_DELETE_BCE_TIMEOUT;
            if self.cache.remove(home_address, Some(reply.sequence), keep) {
                self.events.push_back(HomeAgentEvent::Unbound { home_address });
            }
        } else {
            let binding = Binding {
                care_of_address,
                expires: now + LIFETIME_UNIT * u64::from(granted),
                sequence: reply.sequence,
            };
            let before = self.cache.insert(home_address, binding);
            if before.is_none_or(|b| b.care_of_address != care_of_address) {
                self.events.push_back(HomeAgentEvent::Bound {
                    home_address,
                    care_of_address,
                });
            }
        }
        if registration.acknowledge {
            self.acknowledge(now, reply, binding_status::ACCEPTED, granted);
        }
    }

    /// RFC 4285 section 6: the timestamp must be close to our time and newer than the last one.
    fn refuse_timestamp(&self, now: Instant, timestamp: Option<u64>, last: Option<Accepted>) -> Option<u8> {
        let Some(timestamp) = timestamp else {
            return Some(binding_status::MESSAGE_ID_REQUIRED);
        };
        let close = self.clock.is_close(now, timestamp, self.config.timestamp_window);
        let newer = last.is_none_or(|last| is_after(timestamp, last.timestamp));
        (!close || !newer).then_some(binding_status::ID_MISMATCH)
    }

    /// An update that may be a replay is refused, unless there were too many of them lately.
    fn refuse(&mut self, now: Instant, reply: Reply, status: u8) {
        if self.refusals.entry(reply.home_address).or_default().take(now) {
            self.acknowledge(now, reply, status, 0);
        } else {
            self.counters.errors_withheld += 1;
        }
    }

    /// Sections 10.3.1 and 10.3.2.
    fn acknowledge(&mut self, now: Instant, reply: Reply, status: u8, lifetime: u16) {
        let Some(node) = self.served(reply.home_address) else {
            return;
        };
        let mut header = reply.header(status, lifetime);
        let options = &mut header.options;
        let accepted = status < binding_status::UNSPECIFIED && lifetime > 0;
        if let Some(advice) = self.config.refresh_advice.filter(|_| accepted) {
            let interval = lifetime_units(advice).min(lifetime);
            options.push(MobilityOption::BindingRefreshAdvice(interval));
        }
        if node.security.replay_protection == ReplayProtection::Timestamp {
            // a mobile node whose clock is off sets it by this
            options.push(MobilityOption::ReplayProtection(self.clock.at(now)));
        }
        options.push(MobilityOption::blank_authentication(node.security.spi));
        if let Some(mh_data) = header.authenticated_bytes() {
            let key = node.security.key.as_bytes();
            header.authenticate(mn_ha_code(key, reply.covered, reply.home_address, &mh_data));
        }
        let packet = reply.packet(header);
        count_sent(&mut self.counters, &packet);
        self.transmits.push_back(packet);
    }

    fn served(&self, home_address: Ipv6Addr) -> Option<&ServedNode> {
        let place = self.places.get(&home_address)?;
        self.config.mobile_nodes.get(*place)
    }
}

/// The least MTU of IPv6.
const MIN_MTU: usize = 1280;

pub(super) fn timestamp(header: &MobilityHeader) -> Option<u64> {
    header.options.iter().find_map(|option| match option {
        MobilityOption::ReplayProtection(timestamp) => Some(*timestamp),
        _ => None,
    })
}

/// RFC 4285 section 5.1.
fn is_authentic(
    security: &SecurityAssociation,
    header: &MobilityHeader,
    care_of_address: Ipv6Addr,
    home_address: Ipv6Addr,
) -> bool {
    header
        .message_authentication()
        .zip(header.authenticated_bytes())
        .is_some_and(|(option, mh_data)| {
            option.spi == security.spi
                && option.subtype == AuthenticationSubtype::MnHa
                && verify_mn_ha_code(
                    security.key.as_bytes(),
                    care_of_address,
                    home_address,
                    &mh_data,
                    &option.data,
                )
        })
}
