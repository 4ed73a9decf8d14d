//! The machine of one interface.

use super::client::{Client, SuspendedLease};
use super::config::Method;
use super::message_to;
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::nd::{AddressState, HostConfig, HostNd, NdEvent, form_address_with};
use crate::random::Stream;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::dhcpv6::CLIENT_PORT;
use segue_wire::icmpv6::nd::{LinkLayerAddress, PrefixInformation};
use segue_wire::{Packet, Payload};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// What acquisition tells its host. Link-local addresses are not told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressEvent {
    /// A valid router advertisement was heard from this router.
    RouterHeard {
        /// Interface.
        interface: InterfaceId,
        /// Link-local address of the router.
        router: Ipv6Addr,
    },
    /// The address can be used.
    Ready(LocalAddress),
    /// The address can no longer be used.
    Lost(LocalAddress),
    /// The address is no longer this host's, on whatever link: its valid lifetime is over.
    Expired(LocalAddress),
    /// Duplicate address detection found the address taken.
    Refused(LocalAddress),
    /// The address is for connections that already use it.
    Deprecated(LocalAddress),
}

/// Address acquisition of one interface, neighbour discovery included.
#[derive(Debug)]
pub struct Acquisition {
    interface: InterfaceId,
    nd: HostNd,
    way: Way,
    stream: Stream,
    events: VecDeque<AddressEvent>,
}

#[derive(Debug)]
enum Way {
    Slaac,
    Dhcpv6 {
        client: Client,
        /// Leases of links that were lost and whose addresses were kept.
        suspended: Vec<SuspendedLease>,
        /// A router has told that addresses come from DHCPv6.
        managed: bool,
    },
    Fixed {
        latency: Duration,
        lifetime: Option<Duration>,
        /// An address that will be ready at this time.
        pending: Option<(Instant, Ipv6Addr)>,
    },
}

impl Acquisition {
    /// An interface whose link is down.
    #[must_use]
    pub fn new(
        interface: InterfaceId,
        link_layer: LinkLayerAddress,
        method: &Method,
        stream: &Stream,
    ) -> Self {
        let (config, way) = match method {
            Method::Slaac { nd } => (nd.clone(), Way::Slaac),
            Method::Dhcpv6 { nd, client } => {
                let client = Client::new(client.clone(), link_layer, u32::from(interface.0));
                (
                    nd.clone(),
                    Way::Dhcpv6 {
                        client,
                        suspended: Vec::new(),
                        managed: false,
                    },
                )
            }
            Method::Fixed {
                latency,
                solicit,
                lifetime,
                retain,
            } => {
                let mut config = HostConfig {
                    dup_addr_detect_transmits: 0,
                    max_rtr_solicitation_delay: Duration::ZERO,
                    retain: *retain,
                    ..HostConfig::default()
                };
                if !solicit {
                    config.max_rtr_solicitations = 0;
                }
                (
                    config,
                    Way::Fixed {
                        latency: *latency,
                        lifetime: *lifetime,
                        pending: None,
                    },
                )
            }
        };
        let autoconfigure = matches!(way, Way::Slaac);
        // Two streams from one, so that DHCPv6 does not disturb the delays of neighbour discovery.
        let mut stream = stream.clone();
        let nd_stream = Stream::new(stream.next_u64(), "nd");
        let own_stream = Stream::new(stream.next_u64(), "address");
        Self {
            interface,
            nd: HostNd::new(interface, link_layer, config, autoconfigure, nd_stream),
            way,
            stream: own_stream,
            events: VecDeque::new(),
        }
    }

    /// Forms addresses with this interface identifier from now on, whatever the link layer's is: for a shim whose node
    /// identifier is the same on every interface. A DHCPv6 server chooses its own.
    pub fn set_interface_identifier(&mut self, identifier: [u8; 8]) {
        self.nd.set_interface_identifier(identifier);
    }

    /// Adds an address beside those of the method: duplicate address detection runs as for any other, and it lasts as
    /// long as the link.
    pub fn add_address(&mut self, now: Instant, address: Ipv6Addr) {
        self.nd.add_address(now, address, None, None, false);
        self.advance(now);
    }

    /// Adds an address that no other node of the link has, so that it can be used at once: without duplicate address detection.
    pub fn assign_address(&mut self, now: Instant, address: Ipv6Addr) {
        self.nd.assign_address(address);
        self.advance(now);
    }

    /// The same for the address that the interface forms of a prefix, a /64.
    pub fn assign_address_of(&mut self, now: Instant, prefix: Ipv6Addr) {
        self.assign_address(now, form_address_with(prefix, self.nd.interface_identifier()));
    }

    /// Tells everybody on the link that an address is this interface's, if it can be used: see [`HostNd::announce_address`].
    pub fn announce_address(&mut self, address: Ipv6Addr) {
        self.nd.announce_address(address);
    }

    /// Takes away an address that [`add_address`](Self::add_address) or [`assign_address`](Self::assign_address) added.
    pub fn remove_address(&mut self, now: Instant, address: Ipv6Addr) {
        self.nd.remove_address(address);
        self.advance(now);
    }

    /// Forms addresses with another interface identifier from now on, as when a temporary address takes the place of another
    /// (RFC 8981 section 3.4): anew of each prefix that the interface has an address of, and the way it is formed anyhow,
    /// duplicate address detection or latency included. What it had is deprecated, and its valid lifetime ends after `keep`,
    /// at once if that is zero, or when it would have. An address that a DHCPv6 server chose stays.
    pub fn replace_addresses(&mut self, now: Instant, identifier: [u8; 8], keep: Option<Duration>) {
        let prefixes = self.nd.replace_identifier(now, identifier, keep);
        if let Way::Fixed { latency, pending, .. } = &mut self.way {
            match prefixes.first() {
                Some(prefix) => *pending = Some((now + *latency, form_address_with(*prefix, identifier))),
                // what is waited for is formed with the new one
                None => *pending = pending.map(|(at, waits)| (at, form_address_with(waits, identifier))),
            }
        }
        self.handle_timeout(now);
    }

    /// Layer 2 is connected.
    pub fn handle_link_up(&mut self, now: Instant) {
        self.nd.handle_link_up(now);
        self.advance(now);
    }

    /// Layer 2 is no longer connected: everything is forgotten.
    pub fn handle_link_down(&mut self, now: Instant) {
        self.nd.handle_link_down(now);
        match &mut self.way {
            Way::Slaac => {}
            Way::Dhcpv6 {
                client,
                suspended,
                managed,
            } => {
                let lease = client.suspend();
                suspended.extend(lease.filter(|l| self.nd.retained().any(|a| a == l.address())));
                *managed = false;
            }
            Way::Fixed { pending, .. } => *pending = None,
        }
        self.advance(now);
    }

    /// Takes a packet that arrived over the interface; anything but neighbour discovery and DHCPv6 is ignored.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        match (&packet.payload, &mut self.way) {
            (Payload::Icmpv6(_), _) => self.nd.handle_packet(now, packet),
            (Payload::Udp(_), Way::Dhcpv6 { client, .. }) => {
                if let Some(message) = message_to(packet, CLIENT_PORT) {
                    client.handle_message(now, &message, &mut self.stream);
                }
            }
            _ => return,
        }
        self.advance(now);
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.nd.handle_timeout(now);
        match &mut self.way {
            Way::Slaac => {}
            Way::Dhcpv6 { client, .. } => client.handle_timeout(now, &mut self.stream),
            Way::Fixed {
                pending, lifetime, ..
            } => {
                if let Some((_, address)) = pending.take_if(|p| p.0 <= now) {
                    self.nd.add_address(now, address, *lifetime, *lifetime, false);
                }
            }
        }
        self.advance(now);
    }

    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(transmit) = self.nd.poll_transmit(now) {
            return Some(transmit);
        }
        let Way::Dhcpv6 { client, .. } = &mut self.way else {
            return None;
        };
        client.poll_transmit().map(|packet| Transmit {
            interface: self.interface,
            packet,
        })
    }

    /// When `handle_timeout` must be called next. Poll after `poll_transmit` has returned `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = match &self.way {
            Way::Slaac => None,
            Way::Dhcpv6 { client, .. } => client.poll_timeout(),
            Way::Fixed { pending, .. } => pending.map(|p| p.0),
        };
        self.nd.poll_timeout().into_iter().chain(own).min()
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<AddressEvent> {
        self.events.pop_front()
    }

    /// Neighbour discovery of the interface.
    #[must_use]
    pub fn nd(&self) -> &HostNd {
        &self.nd
    }

    /// Whether packets to `address` are for this interface, the link-local address included.
    #[must_use]
    pub fn owns(&self, address: Ipv6Addr) -> bool {
        self.nd
            .addresses()
            .any(|a| a.0 == address && a.1 != AddressState::Tentative)
    }

    /// Passes events between the parts until there are none.
    fn advance(&mut self, now: Instant) {
        loop {
            while let Some(event) = self.nd.poll_event() {
                self.on_nd(now, event);
            }
            let Way::Dhcpv6 { client, .. } = &mut self.way else {
                return;
            };
            let Some(lease) = client.poll_leased() else { return };
            let again = self.nd.addresses().any(|a| a.0 == lease.address);
            let lifetime = |s: u32| (s != u32::MAX).then(|| Duration::from_secs(u64::from(s)));
            let (preferred, valid) = (
                lifetime(lease.preferred_lifetime_s),
                lifetime(lease.valid_lifetime_s),
            );
            if again {
                self.nd.extend_address(now, lease.address, preferred, valid);
            } else {
                self.nd.add_address(now, lease.address, preferred, valid, false);
            }
        }
    }

    fn on_nd(&mut self, now: Instant, event: NdEvent) {
        let interface = self.interface;
        let local = |address| LocalAddress { interface, address };
        let told = match event {
            NdEvent::RouterAdvertised {
                router,
                managed,
                prefixes,
            } => {
                self.on_router(now, managed, &prefixes);
                Some(AddressEvent::RouterHeard { interface, router })
            }
            NdEvent::AddressReady(address) if address.is_unicast_link_local() => {
                self.start_client(now);
                None
            }
            NdEvent::AddressRefused(address) => {
                if let Way::Dhcpv6 { client, .. } = &mut self.way {
                    if address.is_unicast_link_local() {
                        // RFC 4862 section 5.4.5: there is nothing left to speak from
                        client.stop();
                    } else if client.is_for(address) {
                        client.decline(now, address, &mut self.stream);
                    }
                }
                Some(AddressEvent::Refused(local(address)))
            }
            NdEvent::AddressLost(address)
            | NdEvent::AddressExpired(address)
            | NdEvent::AddressDeprecated(address)
                if address.is_unicast_link_local() =>
            {
                None
            }
            NdEvent::AddressReady(address) => {
                self.resume_lease(address);
                Some(AddressEvent::Ready(local(address)))
            }
            NdEvent::AddressLost(address) => Some(AddressEvent::Lost(local(address))),
            NdEvent::AddressExpired(address) => {
                self.ask_again(now, address);
                Some(AddressEvent::Expired(local(address)))
            }
            NdEvent::AddressDeprecated(address) => Some(AddressEvent::Deprecated(local(address))),
        };
        self.events.extend(told);
    }

    fn on_router(&mut self, now: Instant, router_managed: bool, prefixes: &SmallVec<[PrefixInformation; 1]>) {
        match &mut self.way {
            Way::Slaac => {}
            Way::Dhcpv6 { managed, .. } => {
                *managed |= router_managed;
                self.start_client(now);
            }
            Way::Fixed {
                latency,
                lifetime,
                pending,
            } => {
                let is_stale = |prefix: &&PrefixInformation| prefix.preferred_lifetime_s == 0;
                for stale in prefixes.iter().filter(is_stale) {
                    let address = form_address_with(stale.prefix, self.nd.interface_identifier());
                    pending.take_if(|(_, waits)| *waits == address);
                    self.nd.withdraw_prefix(now, stale);
                }
                let Some(prefix) = prefixes.iter().find(|p| !is_stale(p)) else {
                    return;
                };
                let address = form_address_with(prefix.prefix, self.nd.interface_identifier());
                if pending.is_none() && !self.nd.addresses().any(|a| a.0 == address) {
                    *pending = Some((now + *latency, address));
                    if latency.is_zero() {
                        *pending = None;
                        self.nd.add_address(now, address, *lifetime, *lifetime, false);
                    }
                }
            }
        }
    }

    /// The host is back on the link of a lease.
    fn resume_lease(&mut self, address: Ipv6Addr) {
        if let Way::Dhcpv6 {
            client, suspended, ..
        } = &mut self.way
            && let Some(at) = suspended.iter().position(|l| l.address() == address)
        {
            client.resume(suspended.remove(at));
        }
    }

    /// The valid lifetime of `address` is over. A lease that was not extended in time is asked for anew (RFC 8415
    /// section 18.2.5).
    fn ask_again(&mut self, now: Instant, address: Ipv6Addr) {
        let Way::Dhcpv6 {
            client, suspended, ..
        } = &mut self.way
        else {
            return;
        };
        suspended.retain(|l| l.address() != address);
        if client.is_for(address) {
            client.stop();
            self.start_client(now);
        }
    }

    /// The client needs a link-local address to speak from, and a router that says there is DHCPv6.
    fn start_client(&mut self, now: Instant) {
        if let Way::Dhcpv6 {
            client,
            managed: true,
            ..
        } = &mut self.way
            && self.nd.link_local().is_some()
        {
            client.start(now, &mut self.stream);
        }
    }
}
