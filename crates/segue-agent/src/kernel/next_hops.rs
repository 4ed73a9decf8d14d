//! Whom on the link a packet goes to, as the kernel has it: its routes, and its neighbour cache.
//!
//! What the kernel knows is used and not kept longer than it is true: routes are forgotten when any of them changes, neighbours
//! as the kernel tells. Where it knows nobody, it is given the packet itself, and finds out.

use super::netlink::Requests;
use netlink_packet_core::{NLM_F_CREATE, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use segue_live::Mac;
use segue_proto::{Duration, Instant};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd};

/// Multicast groups (`RTNLGRP_NEIGH`, `RTNLGRP_IPV6_ROUTE`), as bits.
const GROUPS: u32 = 1 << 2 | 1 << 10;
/// Peers whose next hops are remembered; all are forgotten when there are more.
const MOST_ROUTES: usize = 4096;
/// So often the kernel is given a packet itself, though the neighbour is known: it then goes on finding out whether the neighbour
/// is still there (RFC 4861 section 7.3), and keeps it.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// Where packets of an interface to an address go.
#[derive(Clone, Copy, Debug)]
struct Route {
    next_hop: Ipv6Addr,
    /// When the kernel was last given a packet.
    shown: Instant,
}

/// Next hops of all interfaces.
pub(crate) struct NextHops {
    watch: Socket,
    requests: Requests,
    /// The agent's own, routes to which say nothing of where packets of interfaces go.
    device: u32,
    routes: BTreeMap<(u32, Ipv6Addr), Route>,
    neighbors: BTreeMap<(u32, Ipv6Addr), Mac>,
}

impl NextHops {
    /// Begins to watch, without routes to the agent's own device.
    ///
    /// # Errors
    /// If the kernel offers no rtnetlink.
    pub fn new(device: u32) -> io::Result<Self> {
        let mut watch = Socket::new(NETLINK_ROUTE)?;
        watch.bind(&SocketAddr::new(0, GROUPS))?;
        watch.set_non_blocking(true)?;
        let mut hops = Self {
            watch,
            requests: Requests::new()?,
            device,
            routes: BTreeMap::new(),
            neighbors: BTreeMap::new(),
        };
        hops.read_neighbors()?;
        Ok(hops)
    }

    /// The link-layer address of the next hop, or nothing if the packet is to be given to the kernel.
    pub fn find(&mut self, now: Instant, interface: u32, destination: Ipv6Addr) -> Option<Mac> {
        let key = (interface, destination);
        if !self.routes.contains_key(&key) {
            let next_hop = self.ask(interface, destination)?;
            if self.routes.len() >= MOST_ROUTES {
                self.routes.clear();
            }
            self.routes.insert(key, Route { next_hop, shown: now });
            return None;
        }
        let route = self.routes.get_mut(&key)?;
        if now >= route.shown + SHOWN_EVERY {
            route.shown = now;
            return None;
        }
        self.neighbors.get(&(interface, route.next_hop)).copied()
    }

    /// The next hop of the last packet to a destination, if that is still the way and the neighbour is there.
    pub fn next_hop(&self, interface: u32, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        let next_hop = self.routes.get(&(interface, destination))?.next_hop;
        self.neighbors
            .contains_key(&(interface, next_hop))
            .then_some(next_hop)
    }

    /// The next hop of packets to a destination, if the kernel knows one; it is asked if routes have changed, or the neighbour is gone.
    pub fn next_hop_again(&mut self, interface: u32, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        if let Some(known) = self.next_hop(interface, destination) {
            return Some(known);
        }
        let next_hop = self.ask(interface, destination)?;
        if self.routes.len() < MOST_ROUTES {
            let shown = Instant::ZERO;
            self.routes
                .insert((interface, destination), Route { next_hop, shown });
        }
        Some(next_hop)
    }

    /// Whether an interface leads beyond its link: there is a route of it to the addresses that the world has (RFC 4291 section
    /// 2.4), and its router has been heard. The kernel is asked to look for one that has not.
    pub fn leads_on(&mut self, interface: u32) -> bool {
        const SOMEWHERE: Ipv6Addr = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 1);
        let Some(router) = self.ask(interface, SOMEWHERE) else {
            return false;
        };
        let heard = self.neighbors.contains_key(&(interface, router));
        if !heard {
            let mut message = NeighbourMessage::default();
            message.header.family = AddressFamily::Inet6;
            message.header.ifindex = interface;
            message.header.flags = NeighbourFlags::Use;
            let router = NeighbourAttribute::Destination(NeighbourAddress::Inet6(router));
            message.attributes.push(router);
            // where that is refused, a packet will have it found
            let _ = self
                .requests
                .order(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE);
        }
        heard
    }

    /// Learns what has changed. Whether there are other routes or other neighbours than before.
    ///
    /// # Errors
    /// If reading fails; messages that were lost are made up for by reading everything again.
    pub fn take_changes(&mut self) -> io::Result<bool> {
        let mut changed = false;
        loop {
            match self.watch.recv_from_full() {
                Ok((bytes, from)) if from.port_number() == 0 => changed |= self.apply(&bytes),
                // only the kernel is believed
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(changed),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.raw_os_error() == Some(nix::libc::ENOBUFS) => {
                    changed = true;
                    self.routes.clear();
                    self.neighbors.clear();
                    self.read_neighbors()?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn apply(&mut self, mut bytes: &[u8]) -> bool {
        let mut changed = false;
        while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
            let length = (message.header.length as usize).next_multiple_of(4);
            if let NetlinkPayload::InnerMessage(inner) = message.payload {
                match inner {
                    RouteNetlinkMessage::NewNeighbour(neighbor) => changed |= self.note(&neighbor, true),
                    RouteNetlinkMessage::DelNeighbour(neighbor) => changed |= self.note(&neighbor, false),
                    RouteNetlinkMessage::NewRoute(route) | RouteNetlinkMessage::DelRoute(route)
                        if !route.attributes.contains(&RouteAttribute::Oif(self.device)) =>
                    {
                        changed = true;
                        self.routes.clear();
                    }
                    _ => {}
                }
            }
            match bytes.get(length..) {
                Some(rest) if length > 0 && !rest.is_empty() => bytes = rest,
                _ => break,
            }
        }
        changed
    }

    fn read_neighbors(&mut self) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet6;
        let mut found = Vec::new();
        self.requests
            .dump(RouteNetlinkMessage::GetNeighbour(message), |message| {
                if let RouteNetlinkMessage::NewNeighbour(neighbor) = message {
                    found.push(neighbor);
                }
            })?;
        for neighbor in found {
            self.note(&neighbor, true);
        }
        Ok(())
    }

    /// Whether that is news.
    fn note(&mut self, message: &NeighbourMessage, there: bool) -> bool {
        let mut address = None;
        let mut mac: Option<Mac> = None;
        for attribute in &message.attributes {
            match attribute {
                NeighbourAttribute::Destination(NeighbourAddress::Inet6(found)) => address = Some(*found),
                NeighbourAttribute::LinkLayerAddress(found) => mac = found.as_slice().try_into().ok(),
                _ => {}
            }
        }
        let Some(address) = address else {
            return false;
        };
        let key = (message.header.ifindex, address);
        let usable = there
            && !matches!(
                message.header.state,
                NeighbourState::Incomplete | NeighbourState::Failed | NeighbourState::None
            );
        match mac.filter(|_| usable) {
            Some(mac) => self.neighbors.insert(key, mac) != Some(mac),
            None => self.neighbors.remove(&key).is_some(),
        }
    }

    /// The kernel's own answer: the router, or the destination where it is on the link.
    fn ask(&mut self, interface: u32, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet6;
        message.header.destination_prefix_length = 128;
        message
            .attributes
            .push(RouteAttribute::Destination(RouteAddress::Inet6(destination)));
        message.attributes.push(RouteAttribute::Oif(interface));
        let answer = self.requests.ask(RouteNetlinkMessage::GetRoute(message)).ok()??;
        let RouteNetlinkMessage::NewRoute(route) = answer else {
            return None;
        };
        let gateway = route.attributes.iter().find_map(|a| match a {
            RouteAttribute::Gateway(RouteAddress::Inet6(gateway)) => Some(*gateway),
            _ => None,
        });
        Some(gateway.unwrap_or(destination))
    }
}

impl AsFd for NextHops {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}
