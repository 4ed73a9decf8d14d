//! The agent's addresses, as the kernel holds them: beside its own, and for a time only.

use super::netlink::Requests;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope, CacheInfo,
};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::libc::{EADDRNOTAVAIL, ENODEV};
use segue_proto::Duration;
use std::io;
use std::net::{IpAddr, Ipv6Addr};

/// The kernel forgets the agent's addresses by itself when they have not been asked for again for so long: those of an agent
/// that was killed.
pub(crate) const VALID_FOR: Duration = Duration::from_secs(60);

/// Packets that wait in the device while the agent is busy or has no processor, at most: of small ones, the usual 500 are fifty
/// milliseconds of 100 Mbit/s.
const WAITING: u32 = 2000;

/// Has the kernel hold an address, or hold it for longer. It is deprecated from the start: nothing that does not ask for it uses
/// it (RFC 6724 section 5, rule 3). Of one that `is_held_elsewhere`, at another interface of this machine, it looks for no duplicates
/// (RFC 4862 section 5.4): it would find itself.
///
/// # Errors
/// As the kernel has them.
pub(crate) fn add(
    requests: &mut Requests,
    interface: u32,
    address: Ipv6Addr,
    is_held_elsewhere: bool,
) -> io::Result<()> {
    let mut message = message(interface, address, 128);
    let mut lifetimes = CacheInfo::default();
    (lifetimes.ifa_preferred, lifetimes.ifa_valid) = (0, VALID_FOR.as_secs_f64() as u32);
    message.attributes.push(AddressAttribute::CacheInfo(lifetimes));
    let mut flags = AddressFlags::Noprefixroute;
    if is_held_elsewhere {
        flags |= AddressFlags::Nodad;
        message.header.flags = AddressHeaderFlags::Nodad;
    }
    message.attributes.push(AddressAttribute::Flags(flags));
    requests.order(
        RouteNetlinkMessage::NewAddress(message),
        NLM_F_CREATE | NLM_F_REPLACE,
    )
}

/// Has the kernel give up an address. One that it does not have is given up.
///
/// # Errors
/// As the kernel has them otherwise.
pub(crate) fn remove(requests: &mut Requests, interface: u32, address: Ipv6Addr) -> io::Result<()> {
    let message = message(interface, address, 128);
    match requests.order(RouteNetlinkMessage::DelAddress(message), 0) {
        Err(error) if matches!(error.raw_os_error(), Some(EADDRNOTAVAIL | ENODEV)) => Ok(()),
        done => done,
    }
}

/// Longest packet that an interface takes, bytes; nothing if it is not there.
pub(crate) fn mtu_of(requests: &mut Requests, interface: u32) -> Option<u32> {
    let mut message = LinkMessage::default();
    message.header.index = interface;
    let answer = requests.ask(RouteNetlinkMessage::GetLink(message)).ok()??;
    let RouteNetlinkMessage::NewLink(link) = answer else {
        return None;
    };
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Mtu(mtu) => Some(*mtu),
        _ => None,
    })
}

/// Sets the TUN device up.
///
/// # Errors
/// As the kernel has them.
pub(crate) fn set_up_device(requests: &mut Requests, device: u32, mtu: u32) -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = device;
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    link.attributes.push(LinkAttribute::Mtu(mtu));
    link.attributes.push(LinkAttribute::TxQueueLen(WAITING));
    requests.order(RouteNetlinkMessage::SetLink(link), 0)
}

/// Has the TUN device hold an address that applications use, which goes with it; says whether it had none.
///
/// # Errors
/// As the kernel has them.
pub(crate) fn hold_at_device(requests: &mut Requests, device: u32, address: Ipv6Addr) -> io::Result<bool> {
    let mut own = message(device, address, 128);
    own.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    own.header.flags = AddressHeaderFlags::Nodad;
    requests.add(RouteNetlinkMessage::NewAddress(own))
}

fn message(interface: u32, address: Ipv6Addr, prefix_length: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet6;
    message.header.prefix_len = prefix_length;
    message.header.scope = AddressScope::Universe;
    message.header.index = interface;
    message
        .attributes
        .push(AddressAttribute::Address(IpAddr::V6(address)));
    message
        .attributes
        .push(AddressAttribute::Local(IpAddr::V6(address)));
    message
}
