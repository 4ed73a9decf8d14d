//! What the agent is, between the TUN device and the interfaces of a machine whose kernel keeps everything else.
//!
//! ```text
//!   kernel's TCP     identity <-> identity
//!   TUN device       handle_kernel() | poll_kernel()
//!   ------------------------------------------------
//!   Role             a shim, or what a machine that stays does
//!   ------------------------------------------------
//!   interfaces       handle_wire() | poll_wire(), poll_routed()
//! ```
//!
//! Addresses, routers and neighbours are the kernel's business. Packets are carried in bytes, without understanding
//! ([`Payload::Raw`](segue_wire::Payload::Raw)), as long as the kernel made them: up to 64 kB of TCP at once. The contract is that
//! of every machine (see [`segue_proto::contract`]).

use crate::fixed::Fixed;
use crate::names::ELSEWHERE;
use crate::packets::{ALL, cut, understand};
use crate::paths::{Arrived, Carriage, Carriages, Heard, Outcome, Paths, Quotation, Sent};
use crate::strangers::Strangers;
use bytes::Bytes;
use segue_proto::address::AddressEvent;
use segue_proto::contract::{LocalAddress, Transmit};
use segue_proto::ilnp::{Direct, Ilnp, LocatorState, Past, SessionKey};
use segue_proto::mip6::MobileNode;
use segue_proto::shim::{Count, Inbound, Shim, ShimEvent};
use segue_proto::tcp::WindowClamp;
use segue_proto::{Instant, InterfaceId};
use segue_wire::ilnp::PreferredLocator;
use segue_wire::ilnp::{Locator, Nid};
use segue_wire::ilnp_udp::LONGER_BY;
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, ParseError, Payload};
use std::collections::VecDeque;
use std::net::Ipv6Addr;

/// What the agent is.
pub enum Role {
    /// A host that speaks ILNPv6.
    Ilnp(Box<Ilnp>),
    /// A mobile node of Mobile IPv6.
    MobileNode(Box<MobileNode>),
    /// A machine that stays: home agent, correspondent, or both.
    Fixed(Box<Fixed>),
}

impl Role {
    /// The shim, of those that are under applications of this machine.
    fn shim(&self) -> Option<&dyn Shim> {
        match self {
            Self::Ilnp(shim) => Some(&**shim),
            Self::MobileNode(shim) => Some(&**shim),
            Self::Fixed(_) => None,
        }
    }

    fn shim_mut(&mut self) -> Result<&mut dyn Shim, &mut Fixed> {
        match self {
            Self::Ilnp(shim) => Ok(&mut **shim),
            Self::MobileNode(shim) => Ok(&mut **shim),
            Self::Fixed(fixed) => Err(fixed),
        }
    }
}

/// Packets, and those that went nowhere by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StackCounters {
    /// Packets that the kernel sent; a super-packet is one.
    pub from_kernel: u64,
    /// Packets given to the kernel.
    pub to_kernel: u64,
    /// Packets received over interfaces.
    pub received: u64,
    /// Packets sent over interfaces.
    pub sent: u64,
    /// From the kernel, but not from the identity: its own multicast on the device, say.
    pub not_from_identity: u64,
    /// Up from the shim, but not for the identity: nobody has these addresses.
    pub not_for_identity: u64,
    /// What does not parse, bad checksums of ICMPv6 included.
    pub malformed: u64,
    /// Dropped: what nobody's peer began, or may have begun, where there was too much of it lately.
    pub too_many_strangers: u64,
}

impl StackCounters {
    /// By name.
    #[must_use]
    pub fn list(&self) -> [(&'static str, u64); 8] {
        [
            ("from_kernel", self.from_kernel),
            ("to_kernel", self.to_kernel),
            ("received", self.received),
            ("sent", self.sent),
            ("not_from_identity", self.not_from_identity),
            ("not_for_identity", self.not_for_identity),
            ("malformed", self.malformed),
            ("too_many_strangers", self.too_many_strangers),
        ]
    }
}

/// The machine.
pub struct Stack {
    role: Role,
    to_kernel: VecDeque<Packet>,
    to_wire: VecDeque<Transmit>,
    events: VecDeque<ShimEvent>,
    /// Identities that the shim asks the directory for.
    look_ups: VecDeque<Ipv6Addr>,
    counters: StackCounters,
    strangers: Strangers,
    paths: Paths,
    /// The nonce in UDP, where the role has one and the file does not forbid it.
    carriages: Option<Carriages>,
    /// What has just arrived, for what goes up because of it.
    arrived: (InterfaceId, Option<Quotation>),
    /// A mobile node's home agent had a binding when somebody last asked.
    registered: bool,
    /// Lowers windows of connections, if some network has one; it has to see how they begin.
    clamp: Option<WindowClamp>,
}

impl Stack {
    /// With a role that has no addresses yet.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self {
            role,
            to_kernel: VecDeque::new(),
            to_wire: VecDeque::new(),
            events: VecDeque::new(),
            look_ups: VecDeque::new(),
            counters: StackCounters::default(),
            strangers: Strangers::default(),
            paths: Paths::default(),
            carriages: None,
            arrived: (InterfaceId::default(), None),
            registered: false,
            clamp: None,
        }
    }

    /// The windows of connections that begin from now on can be lowered.
    #[must_use]
    pub fn with_windows_watched(self) -> Self {
        Self {
            clamp: Some(WindowClamp::default()),
            ..self
        }
    }

    /// Either end of a connection is offered no more than so many bytes at once from now on; what it likes if there is no limit.
    pub fn limit_windows(&mut self, limit: Option<u32>) {
        if let Some(clamp) = &mut self.clamp {
            clamp.limit_all(limit);
        }
    }

    /// From now on, an ILNP nonce travels in UDP between hosts that both understand it, where options are dropped: at `port`.
    pub fn carry_in_udp(&mut self, port: u16) {
        self.carriages = Some(Carriages::new(port));
    }

    /// The MTU of an interface.
    pub fn set_mtu(&mut self, interface: InterfaceId, mtu: u32) {
        self.paths.set_interface_mtu(interface, mtu);
    }

    /// Where the nonces of a peer are that is at one of these locators; nothing if it has not been heard.
    #[must_use]
    pub fn carriage_of(&self, nid: Nid, locators: impl Iterator<Item = Locator>) -> Option<Carriage> {
        self.carriages.as_ref()?.carriage_of(nid, locators)
    }

    /// This host's networks that are known to drop destination options.
    pub fn networks_without_options(&self, now: Instant) -> impl Iterator<Item = Locator> {
        self.carriages.iter().flat_map(move |c| c.networks(now))
    }

    /// What applications of this machine are known by, if the agent gives them an address.
    #[must_use]
    pub fn identity(&self) -> Option<Ipv6Addr> {
        self.role.shim().map(Shim::identity)
    }

    /// What the agent is.
    #[must_use]
    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// Everything counted.
    #[must_use]
    pub const fn counters(&self) -> StackCounters {
        self.counters
    }

    /// Everything that the role has counted, by its parts.
    #[must_use]
    pub fn role_counters(&self) -> Vec<(&'static str, Vec<Count>)> {
        let mut all = match &self.role {
            Role::Ilnp(shim) => vec![("ilnp", shim.counters())],
            Role::MobileNode(shim) => vec![("mobile-node", shim.counters())],
            Role::Fixed(fixed) => fixed.counters(),
        };
        all.push(("paths", self.paths.counters()));
        all.extend(self.carriages.iter().map(|c| ("udp", c.counters())));
        all
    }

    /// Segments whose windows were lowered, and those that were left alone since the beginning of their connection was not seen.
    #[must_use]
    pub fn window_counters(&self) -> [(&'static str, u64); 2] {
        let counters = self.clamp.as_ref().map(WindowClamp::counters).unwrap_or_default();
        [
            ("windows_lowered", counters.clamped),
            ("windows_unknown", counters.unknown_scale),
        ]
    }

    /// Whether there is to be a correspondent, and the kernel has no address for one.
    #[must_use]
    pub fn misses_own_address(&self) -> bool {
        match &self.role {
            Role::Fixed(fixed) => {
                fixed.is_correspondent() && fixed.correspondent_addresses().next().is_none()
            }
            _ => false,
        }
    }

    /// Whether an interface can be used only where the agent has an address of its own.
    #[must_use]
    pub const fn needs_address(&self) -> bool {
        !matches!(self.role, Role::Fixed(_))
    }

    /// The interface that the role uses.
    #[must_use]
    pub fn interface(&self) -> Option<InterfaceId> {
        match &self.role {
            Role::Ilnp(shim) => {
                let active = shim.locators().find(|l| l.state == LocatorState::Active);
                active.map(|l| l.interface)
            }
            Role::MobileNode(shim) => shim.interface(),
            Role::Fixed(fixed) => fixed.uplink(),
        }
    }

    /// Takes a packet that the kernel sent over the TUN device.
    pub fn handle_kernel(
        &mut self,
        now: Instant,
        bytes: Bytes,
        checksum: ChecksumState,
        segment_size: Option<u16>,
    ) {
        self.counters.from_kernel += 1;
        let length = bytes.len();
        let Ok(mut packet) = parse(bytes, checksum, segment_size) else {
            self.counters.malformed += 1;
            return;
        };
        let link_local = packet.ip.source.is_unicast_link_local() || packet.ip.source.is_unspecified();
        let strange = self.identity().map_or(link_local, |own| packet.ip.source != own);
        if strange || packet.ip.destination.is_multicast() {
            self.counters.not_from_identity += 1;
            return;
        }
        if let Some(clamp) = &mut self.clamp {
            clamp.handle_packet(&mut packet);
        }
        let sent = Sent::new(&packet, length);
        match self.role.shim_mut() {
            Ok(shim) => {
                if let Some(transmit) = shim.outbound(now, packet) {
                    self.send(now, transmit, Some(&sent));
                }
            }
            Err(fixed) => {
                fixed.handle_kernel(now, packet);
                return self.settle_of(now, Some(&sent));
            }
        }
        self.settle(now);
    }

    /// Takes a packet that is the agent's and arrived over an interface.
    pub fn handle_wire(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        bytes: Bytes,
        checksum: ChecksumState,
        segment_size: Option<u16>,
    ) {
        self.counters.received += 1;
        let port = self.carriages.as_ref().map(Carriages::port);
        if !self.strangers.admit(now, &self.role, port, &bytes) {
            self.counters.too_many_strangers += 1;
            return;
        }
        let parsed = parse(bytes, checksum, segment_size).and_then(|packet| match self.role {
            Role::MobileNode(_) => understand(packet, ALL),
            _ => Ok(packet),
        });
        let Ok(packet) = parsed else {
            self.counters.malformed += 1;
            return;
        };
        // a kernel joins datagrams of the same ports, and all that is carried in UDP has these
        if self.carriages.as_ref().is_some_and(|c| c.are_joined(&packet)) {
            for packet in cut(packet) {
                self.take_in(now, interface, packet);
            }
        } else {
            self.take_in(now, interface, packet);
        }
    }

    /// A packet that arrived, by itself.
    fn take_in(&mut self, now: Instant, interface: InterfaceId, packet: Packet) {
        // what a router quotes is as it was on the wire
        self.arrived = (interface, Quotation::of(&packet));
        let (packet, heard) = match self.unwrap(now, packet) {
            (Arrived::Packet(packet), heard) => (packet, heard),
            (Arrived::Taken, heard) => {
                self.learn(now, heard);
                self.arrived.1 = None;
                return;
            }
        };
        match self.role.shim_mut() {
            Ok(shim) => {
                let (inbound, identity) = (shim.inbound(now, interface, packet), shim.identity());
                if let Inbound::Up(mut packet) = inbound {
                    if packet.ip.destination == identity {
                        if let Some(clamp) = &mut self.clamp {
                            clamp.handle_packet(&mut packet);
                        }
                        self.give(now, packet);
                    } else {
                        self.counters.not_for_identity += 1;
                    }
                }
            }
            Err(fixed) => fixed.handle_wire(now, packet),
        }
        self.learn(now, heard);
        self.settle(now);
        self.arrived.1 = None;
    }

    /// How packets of TCP and UDP of a flow go, by its peer's identity and its ports, this host's first, and how long they may be; nothing if
    /// there is anything to think about.
    #[must_use]
    pub fn direct(&self, now: Instant, peer: Ipv6Addr, flow: (u8, u16, u16)) -> Option<(Direct, u32)> {
        self.settled(now, self.ilnp()?.direct(now, peer, flow)?)
    }

    /// The same of the flows of a session.
    #[must_use]
    pub fn direct_of(&self, now: Instant, session: SessionKey) -> Option<(Direct, u32)> {
        self.settled(now, self.ilnp()?.direct_of(now, session)?)
    }

    /// Somebody has carried packets of a session past this, since he said so last; these flows of it are in use.
    pub fn note_carried(
        &mut self,
        now: Instant,
        direct: &Direct,
        past: Past,
        flows: impl Iterator<Item = (u8, u16, u16)>,
    ) {
        if let Role::Ilnp(shim) = &mut self.role {
            shim.note_carried(now, direct, past, flows);
        }
        if let (Some(carriages), Some(heard)) = (self.carriages.as_mut(), past.heard) {
            carriages.note_carried(heard, (direct.here, direct.there));
        }
    }

    fn ilnp(&self) -> Option<&Ilnp> {
        match &self.role {
            Role::Ilnp(shim) => Some(shim),
            _ => None,
        }
    }

    /// If nothing else here has to see the packets.
    fn settled(&self, now: Instant, direct: Direct) -> Option<(Direct, u32)> {
        let by_option = |c: &Carriages| c.is_settled(now, (direct.here, direct.there));
        if self.clamp.is_some() || !self.carriages.as_ref().is_none_or(by_option) {
            return None;
        }
        let most = self.paths.most(now, direct.interface, direct.there)?;
        Some((direct, most))
    }

    /// An address of the agent's came, went, or is not to be used any more.
    pub fn handle_address(&mut self, now: Instant, event: &AddressEvent) {
        // a machine that stays goes by what the kernel has for its own
        if let Ok(shim) = self.role.shim_mut() {
            shim.handle_address(now, event);
        }
        self.settle(now);
    }

    /// The global addresses that the kernel has for its own.
    pub fn handle_own_addresses(&mut self, now: Instant, held: &[LocalAddress]) {
        if let Role::Fixed(fixed) = &mut self.role {
            fixed.handle_own_addresses(now, held);
        }
        self.settle(now);
    }

    /// Another interface is to be used.
    pub fn prefer(&mut self, now: Instant, interface: InterfaceId) {
        match &mut self.role {
            Role::Ilnp(shim) => shim.prefer(now, interface),
            Role::MobileNode(shim) => shim.prefer(now, interface),
            Role::Fixed(fixed) => fixed.prefer(interface),
        }
        self.settle(now);
    }

    /// Unix time at the zero of the clock that `now` is of, nanoseconds: that zero is another after each boot, and what is known
    /// from replays by its time has to outlive one.
    pub fn handle_clock(&mut self, unix_ns_at_zero: u64) {
        match &mut self.role {
            Role::MobileNode(shim) => shim.handle_clock(unix_ns_at_zero),
            Role::Fixed(fixed) => fixed.handle_clock(unix_ns_at_zero),
            Role::Ilnp(_) => {}
        }
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.role.shim_mut() {
            Ok(shim) => shim.handle_timeout(now),
            Err(fixed) => fixed.handle_timeout(now),
        }
        self.settle(now);
    }

    /// The next packet for the kernel. Poll until `None` after every other call.
    pub fn poll_kernel(&mut self) -> Option<Packet> {
        self.to_kernel.pop_front()
    }

    /// The next packet for an interface. Poll until `None` after every other call.
    pub fn poll_wire(&mut self) -> Option<Transmit> {
        self.to_wire.pop_front()
    }

    /// The next packet for wherever the kernel's routes lead. Poll until `None` after every other call.
    pub fn poll_routed(&mut self) -> Option<Packet> {
        let Role::Fixed(fixed) = &mut self.role else {
            return None;
        };
        let packet = fixed.poll_routed()?;
        self.counters.sent += 1;
        Some(packet)
    }

    /// Whether what is to come here has changed since the last call: a mobile node has a binding with its home agent or none any
    /// more, or others have bindings here.
    pub fn take_change(&mut self) -> bool {
        match &mut self.role {
            Role::Ilnp(_) => false,
            Role::MobileNode(shim) => {
                let registered = shim.registered().is_some();
                core::mem::replace(&mut self.registered, registered) != registered
            }
            Role::Fixed(fixed) => fixed.take_change(),
        }
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<ShimEvent> {
        self.events.pop_front()
    }

    /// The next identity that the shim wants to know the place of: [`handle_found`](Self::handle_found) answers. Poll until `None`
    /// after every other call.
    pub fn poll_look_up(&mut self) -> Option<Ipv6Addr> {
        self.look_ups.pop_front()
    }

    /// Where a peer is, or may be (with [`ELSEWHERE`] for its preference), by the directory. Where it may be it is tried after where
    /// it is.
    pub fn handle_found(&mut self, now: Instant, peer: Ipv6Addr, found: &[PreferredLocator]) {
        let Role::Ilnp(shim) = &mut self.role else { return };
        let mut found = found.to_vec();
        let sessions = shim.correspondents().filter(|c| c.identity() == peer);
        let now_at = sessions.flat_map(|c| c.locators().iter().filter(|l| !l.withdrawn));
        for at in now_at {
            let told = found.iter_mut().find(|(locator, _)| *locator == at.locator);
            if let Some((_, preference)) = told.filter(|(_, preference)| *preference == ELSEWHERE) {
                *preference = at.preference;
            }
        }
        shim.handle_locators(now, peer, &found);
        self.settle(now);
    }

    /// What others who look this host up are to find, the best first.
    #[must_use]
    pub fn advertised(&self) -> Option<Vec<PreferredLocator>> {
        match &self.role {
            Role::Ilnp(shim) => Some(shim.advertised().to_vec()),
            _ => None,
        }
    }

    /// Whether there is a session with an identity.
    #[must_use]
    pub fn has_session_with(&self, peer: Ipv6Addr) -> bool {
        match &self.role {
            Role::Ilnp(shim) => shim.correspondents().any(|c| c.identity() == peer),
            _ => false,
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.role {
            Role::Ilnp(shim) => shim.poll_timeout(),
            Role::MobileNode(shim) => shim.poll_timeout(),
            Role::Fixed(fixed) => fixed.poll_timeout(),
        }
    }

    fn settle(&mut self, now: Instant) {
        self.settle_of(now, None);
    }

    /// Takes what the role has to say because of what happened, or of what the kernel `sent`.
    fn settle_of(&mut self, now: Instant, sent: Option<&Sent>) {
        loop {
            let (transmit, packet, event) = match self.role.shim_mut() {
                Ok(shim) => (shim.poll_transmit(now), None, shim.poll_event()),
                Err(fixed) => (fixed.poll_interface(), fixed.poll_kernel(), fixed.poll_event()),
            };
            if transmit.is_none() && packet.is_none() && event.is_none() {
                return;
            }
            if let Some(transmit) = transmit {
                let sent = sent.filter(|sent| sent.is_to(transmit.packet.final_destination()));
                self.send(now, transmit, sent);
            }
            if let Some(packet) = packet {
                self.give(now, packet);
            }
            if let Some(ShimEvent::LookUp { peer }) = event {
                match &mut self.role {
                    Role::Ilnp(_) => self.look_ups.push_back(peer),
                    // its correspondents do not move from the address that they are called at
                    Role::MobileNode(shim) => shim.handle_found(now, peer, &[]),
                    Role::Fixed(_) => {}
                }
            }
            self.events.extend(event);
        }
    }

    /// A packet in UDP, if that is what it is; an ILNP host's alone.
    fn unwrap(&mut self, now: Instant, packet: Packet) -> (Arrived, Option<Heard>) {
        match &mut self.carriages {
            Some(carriages) => carriages.arrived(now, packet),
            None => (Arrived::Packet(packet), None),
        }
    }

    /// What was heard is of a session, or not.
    fn learn(&mut self, now: Instant, heard: Option<Heard>) {
        let (Some(heard), Some(carriages), Role::Ilnp(shim)) = (heard, &mut self.carriages, &self.role)
        else {
            return;
        };
        if let Some(Transmit { interface, packet }) = carriages.settle(now, heard, shim) {
            self.push(interface, packet);
        }
    }

    /// A packet goes up to the kernel.
    fn give(&mut self, now: Instant, mut packet: Packet) {
        let (interface, before) = self.arrived;
        let by_udp = self.carriages.as_ref().map_or(0, |_| LONGER_BY);
        let grown = self.role.shim().map_or(0, |shim| shim.overhead(packet.ip.source)) as usize + by_udp;
        if self.paths.up(now, interface, before, &mut packet, grown) {
            self.counters.to_kernel += 1;
            self.to_kernel.push_back(packet);
        }
    }

    /// A packet goes down, in one form or two, and in pieces if it has to. `sent` is as the kernel sent it.
    fn send(&mut self, now: Instant, transmit: Transmit, sent: Option<&Sent>) {
        let by = self.carriages.as_mut().map(|c| c.choose(now, &transmit));
        match by.unwrap_or((true, false)) {
            (option, true) => {
                let copy = option.then(|| transmit.clone());
                self.fit(now, transmit, sent, Carriage::Udp);
                if let Some(transmit) = copy {
                    self.fit(now, transmit, sent, Carriage::Option);
                }
            }
            (true, false) => self.fit(now, transmit, sent, Carriage::Option),
            (false, false) => {}
        }
    }

    /// A packet goes down in one form. It is the form with the option that is looked at and cut up, and what there is of it then goes
    /// in UDP: each piece has its nonce, and is known to be of its session.
    fn fit(&mut self, now: Instant, mut transmit: Transmit, sent: Option<&Sent>, by: Carriage) {
        let in_udp = by == Carriage::Udp;
        let later = if in_udp { LONGER_BY } else { 0 };
        let grown = match sent {
            Some(sent) => sent.growth_of(&transmit.packet),
            // it waited for a look-up, or is the role's own: what it may have grown by
            None => {
                let peer = transmit.packet.final_destination();
                self.role.shim().map_or(0, |shim| shim.overhead(peer)) as usize
            }
        };
        let limit = self.paths.exceeds(now, &mut transmit, grown, later);
        let Transmit { interface, packet } = transmit;
        let pieces = match limit {
            // no device cuts up what is in a tunnel or in UDP
            None if in_udp || matches!(packet.payload, Payload::Ipv6(_)) => cut(packet),
            None => return self.push(interface, packet),
            Some(limit) => {
                let sent = sent.map(|sent| (sent, grown));
                let Outcome { pieces, answer } = self.paths.too_long(now, packet, limit, sent);
                if let Some(answer) = answer {
                    self.counters.to_kernel += 1;
                    self.to_kernel.push_back(answer);
                }
                pieces
            }
        };
        for piece in pieces {
            let piece = match &self.carriages {
                Some(carriages) if in_udp => carriages.in_udp(&piece),
                _ => Some(piece),
            };
            if let Some(packet) = piece {
                self.push(interface, packet);
            }
        }
    }

    fn push(&mut self, interface: InterfaceId, packet: Packet) {
        self.counters.sent += 1;
        self.to_wire.push_back(Transmit { interface, packet });
    }
}

/// Parses a packet, which has its bytes to itself then: a shim changes checksums in place.
fn parse(bytes: Bytes, checksum: ChecksumState, segment_size: Option<u16>) -> Result<Packet, ParseError> {
    let parsed = Packet::parse_raw(&bytes, checksum, segment_size);
    drop(bytes);
    parsed
}
