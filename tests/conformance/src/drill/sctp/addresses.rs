//! Addresses of a script and of the endpoint, which has IPv6 alone.
//!
//! The rule: the unicast address a.b.c.d of a script is 64:ff9b::a.b.c.d (RFC 6052), a multicast one ff0e::a.b.c.d, and
//! 0.0.0.0 is `::`. So are the addresses in IPv4 address parameters, which become IPv6 ones, if the script's hosts have IPv4
//! addresses; in Supported Address Types the two families change places then. What is shown is mapped back.

use crate::drill::ast::{Action, Packet, Script};
use crate::drill::layout::{Class, Item, Shape, Value};
use crate::drill::stack::Refusal;
use crate::drill::tables::by_name;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The family of a script's hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4: mapped.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// IPv4 unless an option or an address on a packet line says IPv6.
    pub fn of(script: &Script) -> Self {
        let option = |name: &str, is: fn(&str) -> bool| {
            let mut options = script.options.iter();
            options.any(|o| o.name == name && o.value.as_deref().is_some_and(is))
        };
        let packet = |packet: &Packet| packet.addresses.is_some_and(|(from, _)| from.is_ipv6());
        let named = script.events.iter().any(|event| match &event.action {
            Action::Packet(p) => packet(p),
            _ => false,
        });
        if named || option("ip_version", |v| v == "ipv6") || option("local_ip", |v| v.contains(':')) {
            Self::V6
        } else {
            Self::V4
        }
    }

    /// The addresses that packetdrill gives its two hosts, the stack's first.
    pub fn hosts(self) -> (Ipv6Addr, Ipv6Addr) {
        match self {
            Self::V4 => (
                unicast(Ipv4Addr::new(192, 168, 0, 1)),
                unicast(Ipv4Addr::new(192, 0, 2, 1)),
            ),
            Self::V6 => (
                Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
            ),
        }
    }

    /// How much longer the mapped packet's IP header is.
    pub const fn longer_header(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 0,
        }
    }

    /// Chunks of a script as the endpoint has them.
    pub fn map(self, items: &mut [Item]) -> Result<(), Refusal> {
        if self == Self::V6 {
            return Ok(());
        }
        for item in items {
            if item.layout.name == "IPV4_ADDRESS"
                && let Some(layout) = by_name(Class::Parameter, "IPV6_ADDRESS")
            {
                item.layout = layout;
            }
            let address_types = item
                .layout
                .visible()
                .any(|field| field.shape == Shape::AddressTypes);
            for value in &mut item.values {
                match value {
                    Value::Address(address @ IpAddr::V4(_)) => *address = to_ipv6(*address)?.into(),
                    Value::Items(items) => self.map(items)?,
                    Value::Numbers(types) if address_types => types.iter_mut().for_each(|t| *t = other(*t)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Chunks of the endpoint as the script would have them.
    pub fn map_back(self, items: &mut [Item]) {
        if self == Self::V6 {
            return;
        }
        for item in items {
            let mut is_ipv4 = false;
            for value in &mut item.values {
                match value {
                    Value::Address(address) => {
                        *address = self.shown(*address);
                        is_ipv4 = address.is_ipv4();
                    }
                    Value::Items(items) => self.map_back(items),
                    _ => {}
                }
            }
            if is_ipv4
                && item.layout.name == "IPV6_ADDRESS"
                && let Some(layout) = by_name(Class::Parameter, "IPV4_ADDRESS")
            {
                item.layout = layout;
            }
        }
    }

    /// An address of the endpoint as the script would have it.
    pub fn shown(self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V6(v6) if self == Self::V4 && v6.segments()[..6] == PREFIX => {
                let [.., a, b, c, d] = v6.octets();
                Ipv4Addr::new(a, b, c, d).into()
            }
            other => other,
        }
    }
}

/// 64:ff9b::/96 (RFC 6052 section 2.1).
const PREFIX: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

fn unicast(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets();
    let [high, low] = [[a, b], [c, d]].map(u16::from_be_bytes);
    Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low)
}

/// An address of a script as the endpoint has it.
///
/// # Errors
/// If IPv6 has nothing like it.
pub fn to_ipv6(address: IpAddr) -> Result<Ipv6Addr, Refusal> {
    let IpAddr::V4(v4) = address else {
        let IpAddr::V6(v6) = address else { unreachable!() };
        return Ok(v6);
    };
    if v4.is_broadcast() {
        return Refusal::new("a broadcast address, which IPv6 has not");
    }
    Ok(if v4.is_unspecified() {
        Ipv6Addr::UNSPECIFIED
    } else if v4.is_multicast() {
        let [.., high, low] = unicast(v4).segments();
        Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, high, low)
    } else {
        unicast(v4)
    })
}

/// The other family, among address types.
const fn other(address_type: u64) -> u64 {
    match address_type {
        5 => 6,
        6 => 5,
        same => same,
    }
}
