//! The host's IPv6 addresses as they come and go, over rtnetlink.

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

/// Multicast group of changes to IPv6 addresses (`RTNLGRP_IPV6_IFADDR`), as a bit.
const GROUP_IPV6_IFADDR: u32 = 1 << 8;

/// An address of the host that may be a source: neither tentative nor refused by duplicate address detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostAddress {
    /// Index of its interface.
    pub interface_index: u32,
    /// The address.
    pub address: Ipv6Addr,
    /// Bits of it that are the prefix of its link.
    pub prefix_length: u8,
    /// Whether its scope is global, unique local addresses included.
    pub global: bool,
    /// Deprecated (RFC 4862 section 5.5.4): not to be used by new associations.
    pub deprecated: bool,
}

/// A change of the host's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressChange {
    /// An address can be used from now on.
    Appeared(HostAddress),
    /// An address can no longer be used.
    Vanished(HostAddress),
}

/// Watches the host's IPv6 addresses.
pub struct AddressWatch {
    socket: Socket,
    addresses: Vec<HostAddress>,
}

impl AddressWatch {
    /// Reads the addresses there are and begins to watch.
    ///
    /// # Errors
    /// If the kernel offers no rtnetlink.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, GROUP_IPV6_IFADDR))?;
        let mut watch = Self {
            socket,
            addresses: Vec::new(),
        };
        watch.addresses = dump()?;
        watch.socket.set_non_blocking(true)?;
        Ok(watch)
    }

    /// The addresses that can be used now.
    #[must_use]
    pub fn addresses(&self) -> &[HostAddress] {
        &self.addresses
    }

    /// An address of the host.
    #[must_use]
    pub fn find(&self, address: Ipv6Addr) -> Option<&HostAddress> {
        self.addresses.iter().find(|a| a.address == address)
    }

    /// What has changed since the last call. Never waits.
    ///
    /// # Errors
    /// If reading fails; messages that were lost are made up for by reading all addresses again.
    pub fn changes(&mut self) -> io::Result<Vec<AddressChange>> {
        let mut changes = Vec::new();
        loop {
            match self.socket.recv_from_full() {
                Ok((bytes, from)) => {
                    // only the kernel is believed
                    if from.port_number() == 0 {
                        for_each_message(&bytes, |message| self.apply(&message, &mut changes));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(changes),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.raw_os_error() == Some(nix::libc::ENOBUFS) => {
                    let now = dump()?;
                    self.replace(now, &mut changes);
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn apply(&mut self, message: &RouteNetlinkMessage, changes: &mut Vec<AddressChange>) {
        match message {
            RouteNetlinkMessage::NewAddress(message) => match usable(message) {
                Some(new) => match self.position(&new) {
                    Some(index) => self.addresses[index] = new,
                    None => {
                        self.addresses.push(new);
                        changes.push(AddressChange::Appeared(new));
                    }
                },
                None => self.remove(message, changes),
            },
            RouteNetlinkMessage::DelAddress(message) => self.remove(message, changes),
            _ => {}
        }
    }

    fn remove(&mut self, message: &AddressMessage, changes: &mut Vec<AddressChange>) {
        let Some(gone) = read(message) else { return };
        if let Some(index) = self.position(&gone) {
            changes.push(AddressChange::Vanished(self.addresses.remove(index)));
        }
    }

    fn position(&self, of: &HostAddress) -> Option<usize> {
        self.addresses
            .iter()
            .position(|a| a.address == of.address && a.interface_index == of.interface_index)
    }

    fn replace(&mut self, now: Vec<HostAddress>, changes: &mut Vec<AddressChange>) {
        let before = core::mem::replace(&mut self.addresses, now);
        for gone in before.iter().filter(|a| self.position(a).is_none()) {
            changes.push(AddressChange::Vanished(*gone));
        }
        for new in &self.addresses {
            let known =
                |a: &HostAddress| a.address == new.address && a.interface_index == new.interface_index;
            if !before.iter().any(known) {
                changes.push(AddressChange::Appeared(*new));
            }
        }
    }
}

impl AsFd for AddressWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// All usable addresses, over a socket of their own.
fn dump() -> io::Result<Vec<HostAddress>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut request = AddressMessage::default();
    request.header.family = AddressFamily::Inet6;
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::GetAddress(request));
    request.header.flags = NLM_F_DUMP | NLM_F_REQUEST;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut addresses = Vec::new();
    loop {
        let (bytes, _) = socket.recv_from_full()?;
        let done = for_each_message(&bytes, |message| {
            if let RouteNetlinkMessage::NewAddress(message) = &message {
                addresses.extend(usable(message));
            }
        });
        if done {
            return Ok(addresses);
        }
    }
}

/// Hands every message of a datagram to `act`. Whether a dump ends here.
pub(crate) fn for_each_message(mut bytes: &[u8], mut act: impl FnMut(RouteNetlinkMessage)) -> bool {
    while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
        let length = message.header.length as usize;
        match message.payload {
            NetlinkPayload::InnerMessage(inner) => act(inner),
            NetlinkPayload::Done(_) | NetlinkPayload::Error(_) => return true,
            _ => {}
        }
        match bytes.get(length.next_multiple_of(4)..) {
            Some(rest) if length > 0 && !rest.is_empty() => bytes = rest,
            _ => break,
        }
    }
    false
}

/// The address of a message, if it may be a source.
fn usable(message: &AddressMessage) -> Option<HostAddress> {
    let flags = flags(message);
    let unusable = flags.intersects(AddressFlags::Tentative | AddressFlags::Dadfailed)
        && !flags.contains(AddressFlags::Optimistic);
    read(message).filter(|_| !unusable)
}

fn read(message: &AddressMessage) -> Option<HostAddress> {
    let address = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Address(IpAddr::V6(address)) => Some(*address),
        _ => None,
    })?;
    Some(HostAddress {
        interface_index: message.header.index,
        address,
        prefix_length: message.header.prefix_len,
        global: message.header.scope == AddressScope::Universe,
        deprecated: flags(message).contains(AddressFlags::Deprecated),
    })
}

fn flags(message: &AddressMessage) -> AddressFlags {
    let wide = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Flags(flags) => Some(*flags),
        _ => None,
    });
    wide.unwrap_or(AddressFlags::from_bits_retain(u32::from(
        message.header.flags.bits(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_address_is_there_and_not_global() {
        let watch = AddressWatch::new().unwrap();
        let loopback = watch.find(Ipv6Addr::LOCALHOST).expect("::1");
        assert!(!loopback.global && !loopback.deprecated);
    }

    #[test]
    fn a_list_read_again_gives_what_came_and_what_went() {
        let address = |n: u16| HostAddress {
            interface_index: 1,
            address: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n),
            prefix_length: 64,
            global: true,
            deprecated: false,
        };
        let mut watch = AddressWatch::new().unwrap();
        watch.addresses = vec![address(1), address(2)];
        let mut changes = Vec::new();
        watch.replace(vec![address(2), address(3)], &mut changes);
        assert_eq!(
            changes,
            [
                AddressChange::Vanished(address(1)),
                AddressChange::Appeared(address(3))
            ]
        );
    }
}
