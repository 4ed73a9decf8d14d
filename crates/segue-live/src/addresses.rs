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
    /// An address that can be used is deprecated from now on, or no longer.
    PreferenceChanged(HostAddress),
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
        let mut lost = false;
        loop {
            match self.socket.recv_from_full() {
                // older than what is read then
                Ok(_) if lost => {}
                Ok((bytes, from)) if from.port_number() == 0 => {
                    for_each_message(&bytes, |message| self.apply(&message, &mut changes))?;
                }
                // only the kernel is believed
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if lost {
                        self.replace(dump()?, &mut changes);
                    }
                    return Ok(changes);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.raw_os_error() == Some(nix::libc::ENOBUFS) => lost = true,
                Err(e) => return Err(e),
            }
        }
    }

    fn apply(&mut self, message: &RouteNetlinkMessage, changes: &mut Vec<AddressChange>) {
        match message {
            RouteNetlinkMessage::NewAddress(message) => match usable(message) {
                Some(new) => match self.position(&new) {
                    Some(index) => {
                        let before = core::mem::replace(&mut self.addresses[index], new);
                        if before.deprecated != new.deprecated {
                            changes.push(AddressChange::PreferenceChanged(new));
                        }
                    }
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
                |a: &&HostAddress| a.address == new.address && a.interface_index == new.interface_index;
            match before.iter().find(known) {
                None => changes.push(AddressChange::Appeared(*new)),
                Some(known) if known.deprecated != new.deprecated => {
                    changes.push(AddressChange::PreferenceChanged(*new));
                }
                Some(_) => {}
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
        })?;
        if done {
            return Ok(addresses);
        }
    }
}

/// Hands every message of a datagram to `act`. Whether a dump ends here.
///
/// # Errors
/// What the kernel answers in its place.
pub(crate) fn for_each_message(
    mut bytes: &[u8],
    mut act: impl FnMut(RouteNetlinkMessage),
) -> io::Result<bool> {
    while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
        let length = message.header.length as usize;
        match message.payload {
            NetlinkPayload::InnerMessage(inner) => act(inner),
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            _ => {}
        }
        match bytes.get(length.next_multiple_of(4)..) {
            Some(rest) if length > 0 && !rest.is_empty() => bytes = rest,
            _ => break,
        }
    }
    Ok(false)
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
pub(crate) mod tests {
    use super::*;
    use netlink_packet_core::ErrorMessage;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sched::{CloneFlags, unshare};
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    #[test]
    fn the_loopback_address_is_there_and_not_global() {
        let watch = AddressWatch::new().unwrap();
        let loopback = watch.find(Ipv6Addr::LOCALHOST).expect("::1");
        assert!(!loopback.global && !loopback.deprecated);
    }

    /// Does something in a network namespace of its own; says so where there is none to be had.
    pub(crate) fn alone(what: impl FnOnce() + Send + 'static) {
        let tried = std::thread::spawn(|| {
            if unshare(CloneFlags::CLONE_NEWNET).is_err() {
                eprintln!("SKIPPED: no network namespace can be made here (it takes root)");
                return;
            }
            what();
        });
        tried.join().unwrap();
    }

    /// Has ip(8) do what these lines say.
    pub(crate) fn ip(lines: &str) {
        let mut child = Command::new("ip")
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// What changes until an address is there: the kernel has one usable a little after it was added.
    fn changes_until(watch: &mut AddressWatch, there: Ipv6Addr) -> Vec<AddressChange> {
        let mut changes = Vec::new();
        while watch.find(there).is_none() {
            let mut fds = [PollFd::new(watch.as_fd(), PollFlags::POLLIN)];
            assert_eq!(poll(&mut fds, PollTimeout::from(5000u16)), Ok(1), "{changes:?}");
            changes.extend(watch.changes().unwrap());
        }
        changes
    }

    #[test]
    fn what_is_older_than_messages_that_were_lost_is_not_believed() {
        alone(|| {
            let mut watch = AddressWatch::new().unwrap();
            let address = |n: u16| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n);
            let add = |n: u16| format!("address add {}/128 dev lo nodad\n", address(n));
            let delete = |n: u16| format!("address delete {}/128 dev lo\n", address(n));
            for n in 1..=2 {
                ip(&add(n));
                changes_until(&mut watch, address(n));
            }
            // more than the kernel keeps for who does not read; what comes after that is lost
            watch.socket.set_rx_buf_sz(4096_i32).unwrap();
            let churn: String = (100..200).map(|n| add(n) + &delete(n)).collect();
            ip(&(delete(1) + &add(1) + &churn + &delete(1) + &add(3)));
            let changes = changes_until(&mut watch, address(3));
            assert!(watch.find(address(1)).is_none(), "{changes:?}");
            assert!(watch.find(address(2)).is_some(), "{changes:?}");
            // and it was told like that
            let told = |n: u16| {
                changes.iter().rev().find_map(|change| match change {
                    AddressChange::Appeared(a) if a.address == address(n) => Some(true),
                    AddressChange::Vanished(a) if a.address == address(n) => Some(false),
                    _ => None,
                })
            };
            assert_eq!([told(1), told(2)], [Some(false), None], "{changes:?}");
        });
    }

    #[test]
    fn an_error_is_not_the_end_of_a_list() {
        let mut error = ErrorMessage::default();
        error.code = core::num::NonZeroI32::new(-16);
        let mut message = NetlinkMessage::new(
            netlink_packet_core::NetlinkHeader::default(),
            NetlinkPayload::<RouteNetlinkMessage>::Error(error),
        );
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let error = for_each_message(&bytes, |_| panic!("no message")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(nix::libc::EBUSY));
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
        let deprecated = |n: u16| HostAddress {
            deprecated: true,
            ..address(n)
        };
        watch.addresses = vec![address(1), address(2), address(4)];
        let mut changes = Vec::new();
        watch.replace(vec![address(2), address(3), deprecated(4)], &mut changes);
        assert_eq!(
            changes,
            [
                AddressChange::Vanished(address(1)),
                AddressChange::Appeared(address(3)),
                AddressChange::PreferenceChanged(deprecated(4))
            ]
        );
    }
}
