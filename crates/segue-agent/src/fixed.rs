//! The roles of a machine that stays: home agent, correspondent, or both.
//!
//! ```text
//!   kernel      forwards; applications at the kernel's own addresses
//!   TUN         packets to home addresses that are bound, by a route for each while that is so
//!   -------------------------------------------------------------------------------------------
//!   Fixed       correspondents first (the direct way), then the home agent (the tunnel)
//!   -------------------------------------------------------------------------------------------
//!   interfaces  packets to the home agent's address; of those to the kernel's own, what is of Mobile IPv6
//! ```
//!
//! A correspondent is one for each address of the kernel's, since a mobile node binds its home address at an address.

use crate::packets::{ALL, cut, understand};
use segue_proto::address::AddressEvent;
use segue_proto::contract::{LocalAddress, Transmit};
use segue_proto::mip6::{CorrespondentConfig, CorrespondentNode, HomeAgent, HomeAgentEvent};
use segue_proto::random::{SecretRng, Stream};
use segue_proto::shim::{Count, Inbound, Shim as _, ShimEvent};
use segue_proto::{Instant, InterfaceId};
use segue_wire::{Packet, Payload};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;

/// A machine that stays.
pub struct Fixed {
    home_agent: Option<HomeAgent>,
    correspondents: Option<Correspondents>,
    /// By which what is none of the agent's business leaves: it came only because of a route.
    uplink: Option<InterfaceId>,
    /// Bindings have come or gone since somebody asked.
    changed: bool,
    to_kernel: VecDeque<Packet>,
    to_interfaces: VecDeque<Transmit>,
    to_routes: VecDeque<Packet>,
    events: VecDeque<ShimEvent>,
    counters: FixedCounters,
}

/// What goes nowhere.
#[derive(Clone, Copy, Debug, Default)]
struct FixedCounters {
    /// A mobility header or tunnel that does not parse.
    malformed: u64,
    /// For an address that is not the agent's.
    not_ours: u64,
    /// To the home agent's address, and neither ICMPv6 nor of Mobile IPv6: nothing else is offered there.
    no_service: u64,
    /// From the kernel, to where no interface leads.
    no_uplink: u64,
}

/// A correspondent at each address.
struct Correspondents {
    config: CorrespondentConfig,
    secrets: Box<dyn SecretRng>,
    nodes: BTreeMap<Ipv6Addr, CorrespondentNode>,
    /// Counted at addresses that are gone.
    former: BTreeMap<&'static str, u64>,
}

/// A binding, as it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BindingState {
    /// Whose.
    pub home_address: Ipv6Addr,
    /// Where the mobile node is.
    pub care_of_address: Ipv6Addr,
    /// When it ends.
    pub expires: Instant,
    /// The address here that it was made with: the home agent's, or a correspondent's.
    pub at: Ipv6Addr,
}

impl Fixed {
    /// One or both, without bindings. Keys and nonces come from `secrets`.
    #[must_use]
    pub fn new(
        home_agent: Option<HomeAgent>,
        correspondent: Option<CorrespondentConfig>,
        secrets: Box<dyn SecretRng>,
    ) -> Self {
        Self {
            home_agent,
            correspondents: correspondent.map(|config| Correspondents {
                config,
                secrets,
                nodes: BTreeMap::new(),
                former: BTreeMap::new(),
            }),
            uplink: None,
            changed: false,
            to_kernel: VecDeque::new(),
            to_interfaces: VecDeque::new(),
            to_routes: VecDeque::new(),
            events: VecDeque::new(),
            counters: FixedCounters::default(),
        }
    }

    /// The home agent's address.
    #[must_use]
    pub fn home_agent_address(&self) -> Option<Ipv6Addr> {
        self.home_agent.as_ref().map(HomeAgent::address)
    }

    /// Addresses of the kernel's at which there is a correspondent.
    pub fn correspondent_addresses(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.nodes().map(|(address, _)| *address)
    }

    /// Whether the address `at` has a binding of `home_address` that says that its node is at `source`, or comes from there itself.
    #[must_use]
    pub fn knows(&self, at: Ipv6Addr, home_address: Ipv6Addr, source: Ipv6Addr) -> bool {
        let node = self.correspondents.as_ref().and_then(|all| all.nodes.get(&at));
        let binding = node.and_then(|node| node.binding_cache().get(home_address));
        binding.is_some_and(|b| source == b.care_of_address || source == home_address)
    }

    /// Whether there is a correspondent at all.
    #[must_use]
    pub fn is_correspondent(&self) -> bool {
        self.correspondents.is_some()
    }

    /// All bindings.
    pub fn bindings(&self) -> impl Iterator<Item = BindingState> {
        let of = |at, cache: &segue_proto::mip6::BindingCache| {
            let all = cache.iter().map(|(home_address, binding)| BindingState {
                home_address,
                care_of_address: binding.care_of_address,
                expires: binding.expires,
                at,
            });
            all.collect::<Vec<_>>()
        };
        let home = self
            .home_agent
            .iter()
            .flat_map(move |h| of(h.address(), h.binding_cache()));
        home.chain(
            self.nodes()
                .flat_map(move |(at, node)| of(*at, node.binding_cache())),
        )
    }

    /// Whether bindings have come or gone since the last call: packets to home addresses that are bound are to come here.
    pub fn take_change(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }

    /// What the kernel has for addresses of its own.
    pub fn handle_own_addresses(&mut self, now: Instant, held: &[LocalAddress]) {
        let Some(Correspondents {
            config,
            secrets,
            nodes,
            former,
        }) = &mut self.correspondents
        else {
            return;
        };
        let wanted = |address: Ipv6Addr| config.address.is_unspecified() || address == config.address;
        let gone: Vec<Ipv6Addr> = nodes
            .keys()
            .filter(|address| !held.iter().any(|h| h.address == **address))
            .copied()
            .collect();
        for node in gone.iter().filter_map(|address| nodes.remove(address)) {
            self.changed = true;
            for (name, number) in node.counters() {
                *former.entry(name).or_default() += number;
            }
        }
        for local in held.iter().filter(|h| wanted(h.address)) {
            if nodes.len() >= MOST_CORRESPONDENTS && !nodes.contains_key(&local.address) {
                continue;
            }
            let node = nodes.entry(local.address).or_insert_with(|| {
                let mut key = [0; 32];
                secrets.fill(&mut key);
                let config = CorrespondentConfig {
                    address: local.address,
                    ..config.clone()
                };
                CorrespondentNode::new(config, Box::new(Stream::from_key(key)))
            });
            node.handle_address(now, &AddressEvent::Ready(*local));
        }
    }

    /// What is none of the agent's business leaves by this interface.
    pub fn prefer(&mut self, interface: InterfaceId) {
        self.uplink = Some(interface);
    }

    /// The interface by which that leaves.
    #[must_use]
    pub fn uplink(&self) -> Option<InterfaceId> {
        self.uplink
    }

    /// Takes a packet that the kernel sends to a home address that is bound: its own, or one that it forwards.
    pub fn handle_kernel(&mut self, now: Instant, packet: Packet) {
        let destination = packet.ip.destination;
        if let Some(node) = node_of(&mut self.correspondents, packet.ip.source)
            && node
                .binding_cache()
                .get(destination)
                .is_some_and(|b| b.expires > now)
        {
            let transmit = node.outbound(now, packet);
            self.to_interfaces.extend(transmit);
        } else if let Some(agent) = self
            .home_agent
            .as_mut()
            .filter(|h| h.intercepts(now, destination))
        {
            for one in cut(packet) {
                // it intercepts that: nothing comes back
                let _ = agent.handle_packet(now, one);
            }
        } else if let Some(interface) = self.uplink {
            // the binding has just ended, or is with another address of this machine
            self.to_interfaces.push_back(Transmit { interface, packet });
        } else {
            self.counters.no_uplink += 1;
        }
        self.settle(now);
    }

    /// Takes a packet that arrived over an interface.
    pub fn handle_wire(&mut self, now: Instant, packet: Packet) {
        let destination = packet.ip.destination;
        if let Some(agent) = self.home_agent.as_mut().filter(|h| h.address() == destination) {
            // what is in its tunnel is forwarded as it came
            match understand(packet, 1).map(|packet| agent.handle_packet(now, packet)) {
                Ok(None) => {}
                // the kernel answers those who look whether it is there
                Ok(Some(packet)) if matches!(packet.payload, Payload::Icmpv6(_)) => {
                    self.to_kernel.push_back(packet);
                }
                // a firewall that goes by interfaces would not know it again
                Ok(Some(_)) => self.counters.no_service += 1,
                Err(_) => self.counters.malformed += 1,
            }
        } else if node_of(&mut self.correspondents, destination).is_some() {
            self.forward(now, packet);
        } else {
            self.counters.not_ours += 1;
        }
        self.settle(now);
    }

    /// Unix time at the zero of the agent's clock, nanoseconds, for timestamps of the home agent's.
    pub fn handle_clock(&mut self, unix_ns_at_zero: u64) {
        if let Some(agent) = &mut self.home_agent {
            agent.handle_clock(unix_ns_at_zero);
        }
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(agent) = &mut self.home_agent {
            agent.handle_timeout(now);
        }
        for node in self
            .correspondents
            .iter_mut()
            .flat_map(|all| all.nodes.values_mut())
        {
            node.handle_timeout(now);
        }
        self.settle(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let home = self.home_agent.as_ref().and_then(HomeAgent::poll_timeout);
        self.nodes()
            .filter_map(|(_, node)| node.poll_timeout())
            .chain(home)
            .min()
    }

    /// The next packet for the kernel: to receive, or to forward. Poll until `None` after every other call.
    pub fn poll_kernel(&mut self) -> Option<Packet> {
        self.to_kernel.pop_front()
    }

    /// The next packet for an interface. Poll until `None` after every other call.
    pub fn poll_interface(&mut self) -> Option<Transmit> {
        self.to_interfaces.pop_front()
    }

    /// The next packet for wherever the kernel's routes lead. Poll until `None` after every other call.
    pub fn poll_routed(&mut self) -> Option<Packet> {
        self.to_routes.pop_front()
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<ShimEvent> {
        self.events.pop_front()
    }

    /// Everything counted, by the part that counted it.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, Vec<Count>)> {
        let home = self.home_agent.iter().map(|h| ("home-agent", h.counters()));
        let of_correspondents = self.correspondents.iter().map(|all| {
            let mut sums = all.former.clone();
            for (name, number) in all.nodes.values().flat_map(|node| node.counters()) {
                *sums.entry(name).or_default() += number;
            }
            ("correspondent", sums.into_iter().collect())
        });
        let own = vec![
            ("malformed_inside", self.counters.malformed),
            ("not_ours", self.counters.not_ours),
            ("no_service", self.counters.no_service),
            ("no_uplink", self.counters.no_uplink),
        ];
        home.chain(of_correspondents).chain([("packets", own)]).collect()
    }

    fn nodes(&self) -> impl Iterator<Item = (&Ipv6Addr, &CorrespondentNode)> {
        self.correspondents.iter().flat_map(|all| all.nodes.iter())
    }

    /// What the machines have to say goes to where it belongs, until they have nothing more to say.
    fn settle(&mut self, now: Instant) {
        loop {
            let mut quiet = true;
            while let Some(packet) = self.home_agent.as_mut().and_then(HomeAgent::poll_transmit) {
                quiet = false;
                if Some(packet.ip.source) == self.home_agent_address() {
                    self.to_routes.push_back(packet);
                } else {
                    self.forward(now, packet);
                }
            }
            let mut transmits = Vec::new();
            for node in self
                .correspondents
                .iter_mut()
                .flat_map(|all| all.nodes.values_mut())
            {
                transmits.extend(core::iter::from_fn(|| node.poll_transmit(now)));
            }
            for transmit in transmits {
                quiet = false;
                // what goes to a home address goes by its home agent, which may be here
                let destination = transmit.packet.ip.destination;
                match self
                    .home_agent
                    .as_mut()
                    .filter(|h| h.intercepts(now, destination))
                {
                    Some(agent) => drop(agent.handle_packet(now, transmit.packet)),
                    None => self.to_interfaces.push_back(transmit),
                }
            }
            if quiet {
                break;
            }
        }
        self.settle_events();
    }

    /// A packet to an address of the kernel's, or one to be forwarded that came out of the tunnel: the kernel's, but for what is of
    /// Mobile IPv6 and for a correspondent here.
    fn forward(&mut self, now: Instant, packet: Packet) {
        let Some(node) = node_of(&mut self.correspondents, packet.ip.destination) else {
            self.to_kernel.push_back(packet);
            return;
        };
        match understand(packet, ALL).map(|packet| node.inbound(now, InterfaceId::default(), packet)) {
            Ok(Inbound::Up(packet)) => self.to_kernel.push_back(packet),
            Ok(Inbound::Taken) => {}
            Err(_) => self.counters.malformed += 1,
        }
    }

    fn settle_events(&mut self) {
        if let Some(agent) = &mut self.home_agent {
            while let Some(event) = agent.poll_event() {
                self.changed = true;
                let (peer, to) = match event {
                    HomeAgentEvent::Bound {
                        home_address,
                        care_of_address,
                    } => (home_address, care_of_address),
                    HomeAgentEvent::Unbound { home_address } => (home_address, home_address),
                };
                self.events.push_back(ShimEvent::RouteChanged { peer, to });
            }
        }
        for node in self
            .correspondents
            .iter_mut()
            .flat_map(|all| all.nodes.values_mut())
        {
            while let Some(event) = node.poll_event() {
                self.changed = true;
                self.events.push_back(event);
            }
        }
    }
}

fn node_of(all: &mut Option<Correspondents>, address: Ipv6Addr) -> Option<&mut CorrespondentNode> {
    all.as_mut()?.nodes.get_mut(&address)
}

/// Addresses of the kernel's at which there is a correspondent, at most: interfaces have 16 each as the kernel forms them.
const MOST_CORRESPONDENTS: usize = 64;

#[cfg(test)]
mod tests;
