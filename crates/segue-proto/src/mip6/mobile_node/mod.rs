//! Mobile node operation (RFC 6275 section 11).

mod home;
mod inbound;
mod route_optimization;

use super::binding_cache::BindingCache;
use super::binding_update_list::{HomeEntry, Peer, Peers, Registered};
use super::config::{MobileNodeConfig, Registration, ReplayProtection, is_routable_unicast};
use super::correspondent::Correspondent;
use super::movement::{Attachment, Movement};
use super::ntp::NtpClock;
use super::silence::Silence;
use super::tunnel::encapsulate;
use super::{Counters, EXTENSION_OVERHEAD, TUNNEL_OVERHEAD, count_sent, is_signalling, place_of};
use crate::address::AddressEvent;
use crate::contract::{InterfaceId, LinkEvent, LocalAddress, Transmit};
use crate::random::{SecretRng, Stream};
use crate::reachability::Step;
use crate::shim::{Count, Shim, ShimEvent};
use crate::time::{Duration, Instant};
use core::fmt;
use core::net::Ipv6Addr;
use segue_wire::{ExtensionHeader, Packet};
use std::collections::VecDeque;

/// The shim of a host that moves.
///
/// Its events: [`HandoffBegun`](ShimEvent::HandoffBegun) with the first Binding Update of a handoff, to the home agent;
/// [`HandoffDone`](ShimEvent::HandoffDone) when the home agent and, with route optimisation, every correspondent has
/// acknowledged or was given up; [`RouteChanged`](ShimEvent::RouteChanged) when the direct way to a peer begins (`to` is
/// the peer) or ends (`to` is the home agent); [`FellBack`](ShimEvent::FellBack) when a peer turns out not to know
/// Mobile IPv6.
pub struct MobileNode {
    config: MobileNodeConfig,
    /// How the home agent is kept from replays (RFC 4285): as configured, until it asks for timestamps.
    replay_protection: ReplayProtection,
    movement: Movement,
    attachment: Attachment,
    /// Address of the attachment that was used last: of whom correspondents and home agent know.
    last_address: Option<Ipv6Addr>,
    correspondent: Correspondent,
    /// What the home agent was told, and what correspondents were (RFC 6275 section 11.1).
    home: HomeEntry,
    peers: Peers,
    handoff: Option<Handoff>,
    /// That of timestamps.
    clock: NtpClock,
    cookies: Stream,
    /// Whether anything gets through, if that is watched.
    silence: Option<Silence>,
    transmits: VecDeque<Transmit>,
    events: VecDeque<ShimEvent>,
    counters: Counters,
}

/// A handoff under way.
#[derive(Clone, Copy, Debug)]
struct Handoff {
    begun: Instant,
    to: Ipv6Addr,
}

impl fmt::Debug for MobileNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MobileNode")
            .field("home_address", &self.config.home_address)
            .field("attachment", &self.attachment)
            .field("home", &self.home)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}

impl MobileNode {
    /// A mobile node without any address but its home address. Cookies, node key and nonces come from `secrets`.
    #[must_use]
    pub fn new(config: MobileNodeConfig, mut secrets: Box<dyn SecretRng>) -> Self {
        let mut cookies = Stream::from_key(key_of(&mut *secrets));
        let silence = config
            .detect_silence
            .then(|| Silence::new(config.home_agent, Stream::from_key(key_of(&mut cookies))));
        Self {
            replay_protection: config.security.replay_protection,
            movement: Movement::new(&config),
            attachment: Attachment::Nowhere,
            last_address: None,
            correspondent: Correspondent::new(config.home_address, config.correspondent.clone(), secrets),
            home: HomeEntry::default(),
            peers: Peers::default(),
            handoff: None,
            clock: NtpClock::default(),
            cookies,
            silence,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// The care-of address in use, if the node is away from home.
    #[must_use]
    pub fn care_of_address(&self) -> Option<Ipv6Addr> {
        match self.attachment {
            Attachment::Away(local) => Some(local.address),
            _ => None,
        }
    }

    /// Unix time at the driver's zero, nanoseconds, by the calendar clock, which may have been set since. A home agent whose clock
    /// is another says so, and then its own goes (RFC 4285 section 6).
    pub fn handle_clock(&mut self, unix_ns_at_zero: u64) {
        self.clock.set(unix_ns_at_zero);
    }

    /// The home agent's address.
    #[must_use]
    pub fn home_agent(&self) -> Ipv6Addr {
        self.config.home_agent
    }

    /// The interface of the address in use.
    #[must_use]
    pub fn interface(&self) -> Option<InterfaceId> {
        match self.attachment {
            Attachment::Nowhere => None,
            Attachment::Home(interface) => Some(interface),
            Attachment::Away(local) => Some(local.interface),
        }
    }

    /// Whether the node is on its home link.
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        matches!(self.attachment, Attachment::Home(_))
    }

    /// The care-of address that the home agent acknowledged last; `None` if it has no binding of us that we know of.
    #[must_use]
    pub fn registered(&self) -> Option<Ipv6Addr> {
        self.home.registered().map(Registered::care_of_address)
    }

    /// When the binding ends that the home agent acknowledged last.
    #[must_use]
    pub fn registered_until(&self) -> Option<Instant> {
        self.home.registered().map(Registered::expires)
    }

    /// Whether the home agent is being told where the node is, and has not acknowledged that yet.
    #[must_use]
    pub fn is_registering(&self) -> bool {
        self.home.pending().is_some()
    }

    /// The correspondents that the node has sent packets to, and whether those take the direct way now.
    pub fn correspondents(&self) -> impl Iterator<Item = (Ipv6Addr, bool)> {
        self.peers
            .iter()
            .map(|(peer, entry)| (peer, entry.is_optimized()))
    }

    /// Whether there is anything with who has this address: the home agent, a correspondent, or a mobile node with a binding here.
    #[must_use]
    pub fn knows(&self, address: Ipv6Addr) -> bool {
        address == self.config.home_agent
            || self.peers.get(address).is_some()
            || self.binding_cache().get(address).is_some()
    }

    /// Whether an address of the node's own is a care-of address that it can use.
    #[must_use]
    pub fn is_assigned(&self, address: Ipv6Addr) -> bool {
        self.movement.is_assigned(address)
    }

    /// The node would rather be at `interface` from now on: its addresses, as far as they can be used, are chosen before all
    /// others until another is preferred or they are lost.
    pub fn prefer(&mut self, now: Instant, interface: InterfaceId) {
        self.movement.prefer(interface);
        self.follow(now);
    }

    /// Whether packets to `peer` take the direct way.
    #[must_use]
    pub fn is_optimized(&self, peer: Ipv6Addr) -> bool {
        self.peers.get(peer).is_some_and(Peer::is_optimized)
    }

    /// The bindings that other mobile nodes have left here.
    #[must_use]
    pub fn binding_cache(&self) -> &BindingCache {
        self.correspondent.binding_cache()
    }

    /// Everything counted.
    #[must_use]
    pub fn counts(&self) -> Counters {
        self.counters
    }

    /// Follows the decision of movement detection, if there is a new one.
    fn follow(&mut self, now: Instant) {
        let new = self.movement.attachment();
        let moved = new != self.attachment;
        self.attachment = new;
        self.place_home_address();
        if !moved {
            return;
        }
        if let Some(silence) = &mut self.silence {
            silence.on_moved();
        }
        let Some(address) = self.own_address() else {
            return;
        };
        // back where it was, and the home agent knows or is being told
        if !self.home.knows(address, self.is_at_home()) {
            self.begin_handoff(now, address);
        } else if self.home.is_refresh_due(now) {
            // while it could not be (section 11.7.1)
            self.begin_home_registration(now);
        }
        self.last_address = Some(address);
    }

    fn begin_handoff(&mut self, now: Instant, to: Ipv6Addr) {
        self.counters.handoffs_begun += 1;
        self.events.push_back(ShimEvent::HandoffBegun {
            from: self.last_address,
            to,
        });
        self.handoff = Some(Handoff { begun: now, to });
        self.leave_direct_ways();
        self.home.on_handoff();
        self.begin_home_registration(now);
        if self.config.registration == Registration::Simultaneous {
            self.tell_correspondents(now);
        }
    }

    /// Reports the end of a handoff, if everybody who had to be told has answered or was given up.
    fn check_handoff(&mut self, now: Instant) {
        let Some(handoff) = self.handoff else { return };
        if self.home.pending().is_some() || self.peers.iter().any(|(_, p)| p.is_busy()) {
            return;
        }
        self.handoff = None;
        self.counters.handoffs_done += 1;
        self.events.push_back(ShimEvent::HandoffDone {
            to: handoff.to,
            delay: now.since(handoff.begun),
        });
    }

    /// The address that the node tells of: its care-of address, or its home address on the home link.
    fn own_address(&self) -> Option<Ipv6Addr> {
        match self.attachment {
            Attachment::Nowhere => None,
            Attachment::Home(_) => Some(self.config.home_address),
            Attachment::Away(local) => Some(local.address),
        }
    }

    /// Sends a packet of our own making. What comes from the home address takes the tunnel if the node is away.
    fn send(&mut self, mut packet: Packet) {
        let interface = if packet.ip.source == self.config.home_address {
            self.sent_from_home(&mut packet)
        } else {
            self.over(&packet)
        };
        if let Some(interface) = interface {
            if is_signalling(&packet) {
                count_sent(&mut self.counters, &packet);
            }
            self.transmits.push_back(Transmit { interface, packet });
        }
    }

    /// Over the home link, or through the tunnel (section 11.3.1).
    fn sent_from_home(&mut self, packet: &mut Packet) -> Option<InterfaceId> {
        match self.attachment {
            Attachment::Home(interface) => Some(interface),
            Attachment::Away(local) => {
                let signalling = is_signalling(packet);
                let inner = core::mem::replace(packet, Packet::EMPTY);
                let Some(outer) = encapsulate(local.address, self.config.home_agent, inner) else {
                    self.counters.tunnel_limit += 1;
                    return None;
                };
                *packet = outer;
                self.counters.tunnelled_out += u64::from(!signalling);
                Some(local.interface)
            }
            Attachment::Nowhere => {
                self.counters.no_care_of_address += 1;
                None
            }
        }
    }

    /// Over the interface that the packet's source is on.
    fn over(&mut self, packet: &Packet) -> Option<InterfaceId> {
        let interface = self.movement.interface_of(packet.ip.source);
        if interface.is_none() {
            self.counters.no_interface += 1;
        }
        interface
    }

    /// A packet came. Whether it is the answer to a probe, and is taken.
    pub(super) fn note_heard(&mut self, now: Instant, packet: &Packet) -> bool {
        let own_address = self.own_address();
        let Some(silence) = &mut self.silence else {
            return false;
        };
        if own_address != Some(packet.ip.destination) {
            return false;
        }
        silence.on_heard(now);
        let is_answer = silence.take_reply(now, packet);
        self.counters.probes_answered += u64::from(is_answer);
        is_answer
    }

    /// Probes the way that packets take, and leaves the address in use if nothing gets through. Without another nothing would
    /// come of knowing, and without any there is no way.
    pub(super) fn look_for_silence(&mut self, now: Instant) {
        let own_address = self.own_address();
        let has_another = self.movement.has_another();
        let Some(silence) = &mut self.silence else {
            return;
        };
        let (Some(source), true) = (own_address, has_another) else {
            silence.stop();
            return;
        };
        match silence.handle_timeout(now) {
            Step::Nothing => {}
            Step::Probe => {
                let request = silence.request(source);
                self.counters.probes_sent += 1;
                if let Some(interface) = self.over(&request) {
                    self.transmits.push_back(Transmit {
                        interface,
                        packet: request,
                    });
                }
            }
            Step::Silent { .. } => {
                self.counters.networks_silent += 1;
                self.movement.silent(now);
                self.follow(now);
            }
        }
    }

    /// Sends what the node says as a correspondent of others.
    fn flush_correspondent(&mut self) {
        while let Some(packet) = self.correspondent.poll_transmit() {
            self.send(packet);
        }
        while let Some(event) = self.correspondent.poll_event() {
            self.events.push_back(event);
        }
    }

    /// A transport's packet from the home address (section 11.3.1).
    fn outbound_from_home(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        let peer = packet.ip.destination;
        let direct = self.note_use(now, peer);
        if let Some(silence) = &mut self.silence {
            silence.on_sent(now, if direct { peer } else { self.config.home_agent });
        }
        self.correspondent.route(now, packet, &mut self.counters);
        let (true, Attachment::Away(local)) = (direct, self.attachment) else {
            return self.sent_from_home(packet);
        };
        packet.ip.source = local.address;
        let at = place_of(&packet.extensions, true);
        let option = ExtensionHeader::home_address(self.config.home_address);
        packet.extensions.insert(at, option);
        self.counters.optimized_out += 1;
        Some(local.interface)
    }
}

/// The key of a stream of its own.
fn key_of(secrets: &mut dyn SecretRng) -> [u8; 32] {
    let mut key = [0; 32];
    secrets.fill(&mut key);
    key
}

impl Shim for MobileNode {
    fn identity(&self) -> Ipv6Addr {
        self.config.home_address
    }

    fn inbound_in_place(&mut self, now: Instant, interface: InterfaceId, packet: &mut Packet) -> bool {
        if self.note_heard(now, packet) {
            return false;
        }
        let goes_up = self.take(now, interface, packet);
        self.flush_correspondent();
        goes_up
    }

    fn outbound_in_place(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        if packet.ip.source == self.config.home_address {
            self.outbound_from_home(now, packet)
        } else {
            self.over(packet)
        }
    }

    fn handle_address(&mut self, now: Instant, event: &AddressEvent) {
        let fits = |local: &LocalAddress| is_routable_unicast(local.address);
        match event {
            AddressEvent::Ready(local) if fits(local) => self.movement.address_ready(*local),
            AddressEvent::Lost(local) => self.movement.address_lost(*local),
            AddressEvent::Deprecated(local) => self.movement.address_deprecated(*local),
            _ => return,
        }
        self.follow(now);
    }

    fn handle_link(&mut self, now: Instant, event: &LinkEvent) {
        self.movement.handle_link(event);
        self.follow(now);
    }

    fn handle_found(&mut self, _now: Instant, _peer: Ipv6Addr, _addresses: &[Ipv6Addr]) {}

    fn handle_timeout(&mut self, now: Instant) {
        self.movement.handle_timeout(now);
        self.follow(now);
        self.look_for_silence(now);
        self.handle_home_timeout(now);
        self.handle_peer_timeouts(now);
        self.correspondent.handle_timeout(now, &mut self.counters);
        self.flush_correspondent();
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [
            self.movement.poll_timeout(),
            self.home.poll_timeout(),
            self.peers.poll_timeout(),
            self.correspondent.poll_timeout(),
            self.silence.as_ref().and_then(Silence::poll_timeout),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn poll_event(&mut self) -> Option<ShimEvent> {
        self.events.pop_front()
    }

    fn overhead(&self, _peer: Ipv6Addr) -> u32 {
        // the tunnel, and in it a routing header to a peer that is mobile too
        if self.config.correspondent.route_optimization {
            TUNNEL_OVERHEAD + EXTENSION_OVERHEAD
        } else {
            TUNNEL_OVERHEAD
        }
    }

    /// A tunnel is not reassembled by the home agent, and Home Address option and routing header stand in front of a fragment
    /// header (RFC 6275 section 6.3).
    fn takes_fragments(&self) -> bool {
        true
    }

    fn counters(&self) -> Vec<Count> {
        self.counters.list()
    }
}

/// How long a correspondent counts as one that the node talks to.
const ACTIVE: Duration = Duration::from_secs(60);
