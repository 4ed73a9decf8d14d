//! Correspondent node operation (RFC 6275 section 9): return routability from the side that is asked, the binding cache,
//! the type 2 routing header on the way out and the Home Address option on the way in.

use super::binding_cache::{Binding, BindingCache};
use super::config::{CorrespondentConfig, LIFETIME_UNIT, is_routable_unicast};
use super::direct_error::DirectError;
use super::reply::Reply;
use super::return_routability::{BindingManagementKey, Nonces, TokenKind};
use super::{Counters, is_newer, lifetime_units, mobility_packet, packet, place_of};
use crate::random::SecretRng;
use crate::shim::ShimEvent;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ipv6::{HEADER_LEN, Ipv6Option};
use segue_wire::mobility::{
    BindingUpdate, MobilityHeader, MobilityMessage, MobilityOption, Test, binding_error, binding_status,
};
use segue_wire::{ExtensionHeader, Packet, Payload};
use std::collections::VecDeque;

/// What every correspondent does, mobile itself or not. Packets that come out have its own address as their source.
#[derive(Debug)]
pub(super) struct Correspondent {
    /// The address that mobile nodes know it by.
    own: Ipv6Addr,
    config: CorrespondentConfig,
    cache: BindingCache,
    nonces: Nonces,
    transmits: VecDeque<Packet>,
    events: VecDeque<ShimEvent>,
    last_error: Option<Instant>,
}

impl Correspondent {
    pub(super) fn new(own: Ipv6Addr, config: CorrespondentConfig, secrets: Box<dyn SecretRng>) -> Self {
        Self {
            own,
            cache: BindingCache::new(config.max_bindings as usize, config.refresh_before),
            nonces: Nonces::new(config.nonce_interval, config.nonce_lifetime, secrets),
            config,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            last_error: None,
        }
    }

    /// The address that mobile nodes know it by.
    pub(super) fn own(&self) -> Ipv6Addr {
        self.own
    }

    /// The bindings that mobile nodes have left here.
    pub(super) fn binding_cache(&self) -> &BindingCache {
        &self.cache
    }

    /// Whether it takes part in route optimisation.
    pub(super) fn optimizes(&self) -> bool {
        self.config.route_optimization
    }

    pub(super) fn poll_transmit(&mut self) -> Option<Packet> {
        self.transmits.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<ShimEvent> {
        self.events.pop_front()
    }

    /// A packet of a transport on its way out: to the care-of address of its destination, if there is a binding (section
    /// 9.3.2). Whether there was.
    pub(super) fn route(&mut self, now: Instant, packet: &mut Packet, counters: &mut Counters) -> bool {
        let home_address = packet.ip.destination;
        let Some(care_of_address) = self.cache.way_to(now, home_address) else {
            return false;
        };
        packet.ip.destination = care_of_address;
        let at = place_of(&packet.extensions, false);
        packet
            .extensions
            .insert(at, ExtensionHeader::type_2_routing(home_address));
        counters.optimized_out += 1;
        true
    }

    /// A packet that came with a Home Address option and no mobility header: the option's address becomes its source, if
    /// there is a binding that says so (section 9.3.1). If not, it is to be dropped, and its sender told.
    pub(super) fn replace_source(
        &mut self,
        now: Instant,
        packet: &mut Packet,
        counters: &mut Counters,
    ) -> bool {
        let Some(home_address) = packet.home_address() else {
            return true;
        };
        let care_of_address = packet.ip.source;
        if !self.config.route_optimization {
            counters.no_binding += 1;
            self.report_unknown_option(now, packet);
            return false;
        }
        if !is_routable_unicast(home_address) {
            counters.malformed += 1;
            return false;
        }
        let bound = self
            .cache
            .get(home_address)
            .is_some_and(|b| b.expires > now && b.care_of_address == care_of_address);
        if !bound {
            counters.no_binding += 1;
            self.send_error(now, packet, binding_error::UNKNOWN_BINDING, home_address);
            return false;
        }
        packet.ip.source = home_address;
        // other options in the same header are for whoever comes next
        packet.extensions.retain_mut(|extension| {
            let ExtensionHeader::DestinationOptions(options) = extension else {
                return true;
            };
            let before = options.len();
            options.retain(|option| !matches!(option, Ipv6Option::HomeAddress(_)));
            options.len() == before || !options.is_empty()
        });
        counters.optimized_in += 1;
        true
    }

    /// An error about a packet that this node has sent to a care-of address: one to which it has a binding, of the home address
    /// that the routing header has (section 9.3.2). Nothing, if errors are not to be translated.
    pub(super) fn error_about_direct_way(&self, now: Instant, message: &Icmpv6) -> Option<DirectError> {
        if !self.config.translate_errors || !message.is_error() {
            return None;
        }
        let error = DirectError::parse(message)?;
        let bound = self.cache.get(error.routed_to?)?;
        let ours = error.source == self.own && error.home_address.is_none();
        let there = bound.expires > now && bound.care_of_address == error.destination;
        (ours && there).then_some(error)
    }

    /// A mobility header for a correspondent: tests, and Binding Updates that do not ask for a home agent.
    pub(super) fn handle_mobility(&mut self, now: Instant, packet: &Packet, counters: &mut Counters) {
        let Payload::Mobility(header) = &packet.payload else {
            return;
        };
        if !self.config.route_optimization {
            // as a node that does not know protocol 135 (RFC 4443 section 3.4)
            counters.unknown_message += 1;
            self.report(now, packet, 1, 6);
            return;
        }
        let source = packet.ip.source;
        match header.message {
            MobilityMessage::HomeTestInit { cookie } | MobilityMessage::CareOfTestInit { cookie } => {
                let kind = match header.message {
                    MobilityMessage::HomeTestInit { .. } => TokenKind::Home,
                    _ => TokenKind::CareOf,
                };
                // sections 9.4.1 and 9.4.2
                if packet.home_address().is_some() || !is_routable_unicast(source) {
                    counters.malformed += 1;
                    return;
                }
                self.answer_test(now, source, cookie, kind);
            }
            MobilityMessage::BindingUpdate(update) => {
                self.handle_update(now, packet, header, update, counters)
            }
            MobilityMessage::Unknown { .. } => {
                counters.unknown_message += 1;
                let home_address = packet.home_address().unwrap_or(Ipv6Addr::UNSPECIFIED);
                self.send_error(now, packet, binding_error::UNRECOGNIZED_MH_TYPE, home_address);
            }
            _ => counters.unexpected += 1,
        }
    }

    /// Deletes the binding of `home_address`.
    pub(super) fn forget(&mut self, now: Instant, home_address: Ipv6Addr) {
        if self
            .cache
            .remove(home_address, None, now + self.config.nonce_lifetime)
        {
            self.forget_retired(now);
            self.events.push_back(ShimEvent::RouteChanged {
                peer: home_address,
                to: home_address,
            });
        }
    }

    /// Forgets what is no longer needed of bindings that are gone; all of it, with the nonces that authorised them, if it is
    /// more than there may be bindings (section 5.2.8).
    pub(super) fn forget_retired(&mut self, now: Instant) {
        if self.cache.forget_retired(now) {
            self.nonces.invalidate();
            self.cache.clear_retired();
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, counters: &mut Counters) {
        let over = self.cache.expire(now, self.config.nonce_lifetime);
        if !over.is_empty() {
            self.forget_retired(now);
        }
        for home_address in over {
            counters.bindings_expired += 1;
            self.events.push_back(ShimEvent::RouteChanged {
                peer: home_address,
                to: home_address,
            });
        }
        // in active use: within the time before the end for which refreshes are asked for (section 9.5.5)
        for home_address in self.cache.take_refreshes(now) {
            let request = MobilityHeader::new(MobilityMessage::BindingRefreshRequest, Vec::new());
            self.transmits
                .push_back(mobility_packet(self.own, home_address, request));
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.cache.next_deadline()
    }

    /// Sections 9.4.3 and 9.4.4.
    fn answer_test(&mut self, now: Instant, to: Ipv6Addr, cookie: u64, kind: TokenKind) {
        let (nonce_index, keygen_token) = self.nonces.issue(now, to, kind);
        let test = Test {
            nonce_index,
            cookie,
            keygen_token,
        };
        let message = match kind {
            TokenKind::Home => MobilityMessage::HomeTest(test),
            TokenKind::CareOf => MobilityMessage::CareOfTest(test),
        };
        let header = MobilityHeader::new(message, Vec::new());
        self.transmits.push_back(mobility_packet(self.own, to, header));
    }

    /// Sections 9.5.1 to 9.5.3.
    fn handle_update(
        &mut self,
        now: Instant,
        packet: &Packet,
        header: &MobilityHeader,
        update: BindingUpdate,
        counters: &mut Counters,
    ) {
        let source = packet.ip.source;
        let home_address = packet.home_address().unwrap_or(source);
        let care_of_address = alternate(header).unwrap_or(source);
        let deletes = update.lifetime == 0 || care_of_address == home_address;
        let reply = Reply {
            own: self.own,
            source,
            home_address,
            // what authenticators cover (section 6.2.7)
            covered: if deletes { home_address } else { care_of_address },
            sequence: update.sequence,
        };
        if !is_routable_unicast(home_address) || !is_routable_unicast(care_of_address) {
            counters.malformed += 1;
            return;
        }
        if update.home_registration {
            counters.not_home_agent += 1;
            let status = binding_status::HOME_REGISTRATION_NOT_SUPPORTED;
            self.transmits.push_back(acknowledgement(&reply, status, 0, None));
            return;
        }
        let Some(key) = self.authorize(now, header, &reply, care_of_address, counters) else {
            return;
        };
        let last = self.cache.last_sequence(now, home_address);
        if let Some(last) = last.filter(|last| !is_newer(update.sequence, *last)) {
            counters.bad_sequence += 1;
            let refused = Reply {
                sequence: last,
                ..reply
            };
            let status = binding_status::SEQUENCE_OUT_OF_WINDOW;
            self.transmits
                .push_back(acknowledgement(&refused, status, 0, Some(key)));
            return;
        }
        // a binding that would lead back to the home address (section 6.1.7)
        if self
            .cache
            .get(care_of_address)
            .is_some_and(|b| b.care_of_address == home_address)
        {
            counters.malformed += 1;
            return;
        }
        if !deletes && !self.cache.has_room_for(home_address) {
            counters.cache_full += 1;
            let status = binding_status::INSUFFICIENT_RESOURCES;
            self.transmits
                .push_back(acknowledgement(&reply, status, 0, Some(key)));
            return;
        }
        counters.bindings_accepted += 1;
        let granted = self.bind(now, &reply, care_of_address, &update, deletes);
        if update.acknowledge {
            let acknowledgement = acknowledgement(&reply, binding_status::ACCEPTED, granted, Some(key));
            self.transmits.push_back(acknowledgement);
        }
    }

    /// What authorises an update: the tokens of which it names the nonces (section 5.2.5). One whose nonces have expired is
    /// answered; one that is not authentic is not.
    fn authorize(
        &mut self,
        now: Instant,
        header: &MobilityHeader,
        reply: &Reply,
        care_of_address: Ipv6Addr,
        counters: &mut Counters,
    ) -> Option<BindingManagementKey> {
        let deletes = reply.covered == reply.home_address;
        let Some((home_index, care_of_index)) = nonce_indices(header) else {
            counters.malformed += 1;
            return None;
        };
        let (Some(authenticator), Some(mh_data)) = (header.authenticator(), header.authorized_bytes()) else {
            counters.unauthenticated += 1;
            return None;
        };
        let home_token = self
            .nonces
            .token(now, home_index, reply.home_address, TokenKind::Home);
        let care_of_token = self
            .nonces
            .token(now, care_of_index, care_of_address, TokenKind::CareOf);
        let key = match (home_token, care_of_token) {
            (Some(home), _) if deletes => BindingManagementKey::new(home, None),
            (Some(home), Some(care_of)) => BindingManagementKey::new(home, Some(care_of)),
            (home, care_of) => {
                counters.expired_nonce += 1;
                let status = match (home.is_some(), care_of.is_some() || deletes) {
                    (false, false) => binding_status::EXPIRED_NONCES,
                    (false, true) => binding_status::EXPIRED_HOME_NONCE,
                    (true, _) => binding_status::EXPIRED_CARE_OF_NONCE,
                };
                self.transmits.push_back(acknowledgement(reply, status, 0, None));
                return None;
            }
        };
        if !key.verify(reply.covered, self.own, &mh_data, authenticator) {
            counters.unauthenticated += 1;
            return None;
        }
        Some(key)
    }

    /// The binding is made or deleted. For how long it is granted.
    pub(super) fn bind(
        &mut self,
        now: Instant,
        reply: &Reply,
        care_of_address: Ipv6Addr,
        update: &BindingUpdate,
        deletes: bool,
    ) -> u16 {
        let home_address = reply.home_address;
        let granted = update.lifetime.min(lifetime_units(self.config.max_lifetime));
        let to = if deletes {
            let keep = now + self.config.nonce_lifetime;
            let was = self.cache.remove(home_address, Some(update.sequence), keep);
            self.forget_retired(now);
            was.then_some(home_address)
        } else {
            let binding = Binding {
                care_of_address,
                expires: now + LIFETIME_UNIT * u64::from(granted),
                sequence: update.sequence,
            };
            let before = self.cache.insert(home_address, binding);
            let moved = before.is_none_or(|b| b.care_of_address != care_of_address);
            moved.then_some(care_of_address)
        };
        self.events.extend(to.map(|to| ShimEvent::RouteChanged {
            peer: home_address,
            to,
        }));
        if deletes { 0 } else { granted }
    }

    /// Section 9.3.3: to the source of the packet, at a limited rate, and never about a packet to a group.
    fn send_error(&mut self, now: Instant, about: &Packet, status: u8, home_address: Ipv6Addr) {
        let to = about.ip.source;
        if !is_routable_unicast(to) || about.ip.destination.is_multicast() || !self.may_report(now) {
            return;
        }
        let message = MobilityMessage::BindingError { status, home_address };
        let header = MobilityHeader::new(message, Vec::new());
        self.transmits.push_back(mobility_packet(self.own, to, header));
    }

    /// A Home Address option that this node is told not to know (RFC 8200 section 4.2, RFC 4443 section 3.4).
    fn report_unknown_option(&mut self, now: Instant, about: &Packet) {
        let mut pointer = HEADER_LEN;
        for extension in &about.extensions {
            if matches!(extension, ExtensionHeader::DestinationOptions(_)) {
                // next header, length, padding to 8n+6
                pointer += 6;
                break;
            }
            pointer += extension.buffer_len();
        }
        self.report(now, about, 2, pointer as u32);
    }

    fn report(&mut self, now: Instant, about: &Packet, code: u8, pointer: u32) {
        if !Icmpv6::may_report(about) || !self.may_report(now) {
            return;
        }
        let problem = Icmpv6::ParameterProblem {
            code,
            pointer,
            invoking: Icmpv6::quote(about),
        };
        let to = about.ip.source;
        self.transmits
            .push_back(packet(self.own, to, Vec::new(), Payload::Icmpv6(problem)));
    }

    fn may_report(&mut self, now: Instant) -> bool {
        let may = self
            .last_error
            .is_none_or(|at| now.since(at) >= self.config.binding_error_interval);
        if may {
            self.last_error = Some(now);
        }
        may
    }
}

/// A Binding Acknowledgement, with an authenticator where there is a key (section 9.5.4).
fn acknowledgement(reply: &Reply, status: u8, lifetime: u16, key: Option<BindingManagementKey>) -> Packet {
    let mut header = reply.header(status, lifetime);
    if let Some(key) = key {
        header.options.push(MobilityOption::blank_authorization());
        if let Some(mh_data) = header.authorized_bytes() {
            header.authenticate(key.authenticator(reply.covered, reply.own, &mh_data));
        }
    }
    reply.packet(header)
}

/// The Alternate Care-of Address option.
pub(super) fn alternate(header: &MobilityHeader) -> Option<Ipv6Addr> {
    header.options.iter().find_map(|option| match option {
        MobilityOption::AlternateCareOfAddress(address) => Some(*address),
        _ => None,
    })
}

fn nonce_indices(header: &MobilityHeader) -> Option<(u16, u16)> {
    header.options.iter().find_map(|option| match option {
        MobilityOption::NonceIndices { home, care_of } => Some((*home, *care_of)),
        _ => None,
    })
}
