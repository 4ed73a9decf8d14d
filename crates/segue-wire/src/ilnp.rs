//! ILNPv6 on the wire: locators and node identifiers (RFC 6741 section 3), the nonce (RFC 6744) and the ICMPv6 Locator
//! Update message (RFC 6743).

use crate::ParseError;
use crate::reader::Reader;
use crate::writer::length_u8;
use bytes::BufMut;
use core::fmt;
use core::net::Ipv6Addr;

/// A locator, L64: the routing prefix of a subnetwork, the first half of an ILNPv6 address (RFC 6741 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Locator(pub u64);

/// A node identifier, NID: a node by name, not by place, the second half of an ILNPv6 address (RFC 6741 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nid(pub u64);

/// A locator with its preference: lower is better (RFC 6742 section 2.3).
pub type PreferredLocator = (Locator, u16);

impl Locator {
    /// The locator of an address.
    #[must_use]
    pub const fn of(address: Ipv6Addr) -> Self {
        Self((address.to_bits() >> 64) as u64)
    }

    /// The address at which `nid` is here: the identifier-locator vector (RFC 6740 section 3.3).
    #[must_use]
    pub const fn address(self, nid: Nid) -> Ipv6Addr {
        Ipv6Addr::from_bits((self.0 as u128) << 64 | nid.0 as u128)
    }

    /// Whether packets can be routed to it: neither zero, nor multicast, nor of link-local scope.
    #[must_use]
    pub const fn is_routable(self) -> bool {
        let address = self.address(Nid(0));
        self.0 != 0 && !address.is_multicast() && !address.is_unicast_link_local()
    }
}

impl Nid {
    /// The node identifier of an address.
    #[must_use]
    pub const fn of(address: Ipv6Addr) -> Self {
        Self(address.to_bits() as u64)
    }
}

/// Four groups of 16 bits, as in [RFC 6742 section 2.1.2](https://www.rfc-editor.org/rfc/rfc6742).
fn write_groups(value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [a, b, c, d] = [48, 32, 16, 0].map(|shift| value >> shift & 0xffff);
    write!(f, "{a:x}:{b:x}:{c:x}:{d:x}")
}

fn parse_groups(text: &str) -> Option<u64> {
    let mut value = 0;
    let mut groups = 0;
    for group in text.split(':') {
        let digits = group.len() <= 4 && group.chars().all(|c| c.is_ascii_hexdigit());
        value = value << 16 | u64::from(u16::from_str_radix(group, 16).ok().filter(|_| digits)?);
        groups += 1;
    }
    (groups == 4).then_some(value)
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_groups(self.0, f)
    }
}

impl fmt::Display for Nid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_groups(self.0, f)
    }
}

impl fmt::Debug for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locator({self})")
    }
}

impl fmt::Debug for Nid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nid({self})")
    }
}

impl core::str::FromStr for Locator {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse_groups(text)
            .map(Self)
            .ok_or(ParseError::BadValue("locator"))
    }
}

impl core::str::FromStr for Nid {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse_groups(text)
            .map(Self)
            .ok_or(ParseError::BadValue("node identifier"))
    }
}

/// A nonce (RFC 6744 section 2): an unpredictable value, one per session and direction, that shows that a packet does
/// not come from somebody off the path. It is 32 or 96 bits long, so that the option fills its header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Nonce {
    /// 32 bits: the header with the option takes 8 bytes.
    Bits32([u8; 4]),
    /// 96 bits: it takes 16.
    Bits96([u8; 12]),
}

impl Nonce {
    /// Its bytes in network order.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bits32(bytes) => bytes,
            Self::Bits96(bytes) => bytes,
        }
    }

    /// Bytes by which a packet grows that carries this nonce and had no destination options.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        4 + self.as_bytes().len()
    }
}

/// Nonces are secrets.
impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nonce({} bits)", 8 * self.as_bytes().len())
    }
}

/// ICMPv6 Locator Update (type 156, RFC 6743 section 2): the locators at which its sender is from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocatorUpdate {
    /// Advertisement or acknowledgement.
    pub operation: LocatorOperation,
    /// 1 to 255 locators.
    pub locators: Vec<LocatorEntry>,
}

/// What a locator update is for (RFC 6743 section 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocatorOperation {
    /// 1: Locator Update Advertisement.
    Advertisement,
    /// 2: Locator Update Acknowledgement.
    Acknowledgement,
}

/// A locator in an update (RFC 6743 section 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocatorEntry {
    /// The locator.
    pub locator: Locator,
    /// Preference: lower is better, as in L64 records (RFC 6742 section 2.3).
    pub preference: u16,
    /// Seconds for which it may be considered valid.
    pub lifetime_s: u16,
}

impl LocatorUpdate {
    /// Most locators in a message.
    pub const MAX_LOCATORS: usize = 255;

    /// Parses what follows the checksum.
    ///
    /// ```text
    /// |  Num of Locs  |   Operation   |           RESERVED            |
    /// |                   Locator [1]  (64 bits)                      |
    /// |        Preference [1]         |         Lifetime [1]          | ...
    /// ```
    ///
    /// # Errors
    /// If there is no locator, or not as many bytes as there are said to be locators; if the code is not zero, or the
    /// operation none that is known. The reserved field is ignored.
    pub(crate) fn parse(code: u8, mut reader: Reader<'_>) -> Result<Self, ParseError> {
        let count = reader.u8()?;
        let operation = reader.u8()?;
        reader.skip(2)?;
        if code != 0 {
            return Err(ParseError::BadValue("locator update code"));
        }
        if count == 0 {
            return Err(ParseError::BadValue("locator update without locators"));
        }
        let operation = match operation {
            1 => LocatorOperation::Advertisement,
            2 => LocatorOperation::Acknowledgement,
            _ => return Err(ParseError::BadValue("locator update operation")),
        };
        let mut locators = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            locators.push(LocatorEntry {
                locator: Locator(u64::from_be_bytes(reader.array()?)),
                preference: reader.u16()?,
                lifetime_s: reader.u16()?,
            });
        }
        reader.finish()?;
        Ok(Self { operation, locators })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub(crate) fn buffer_len(&self) -> usize {
        4 + ENTRY_LEN * self.locators.len()
    }

    /// Appends what follows the checksum.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let operation = match self.operation {
            LocatorOperation::Advertisement => 1,
            LocatorOperation::Acknowledgement => 2,
        };
        out.put_slice(&[length_u8(self.locators.len()), operation, 0, 0]);
        for entry in &self.locators {
            out.put_u64(entry.locator.0);
            out.put_u16(entry.preference);
            out.put_u16(entry.lifetime_s);
        }
    }
}

/// Locator, preference and lifetime, bytes.
const ENTRY_LEN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locators_and_identifiers_are_the_halves_of_an_address() {
        let address: Ipv6Addr = "2001:db8:1140:1000:14:4fff:ff20:ee64".parse().unwrap();
        let (locator, nid) = (Locator::of(address), Nid::of(address));
        // the examples of RFC 6742 sections 2.1.3 and 2.3.3
        assert_eq!(nid.to_string(), "14:4fff:ff20:ee64");
        assert_eq!("0014:4fff:ff20:ee64".parse(), Ok(nid));
        assert_eq!("2001:0DB8:1140:1000".parse(), Ok(locator));
        assert_eq!(locator.address(nid), address);
        for bad in [
            "",
            "1:2:3",
            "1:2:3:4:5",
            "1:2:3:",
            "1:2:3:12345",
            "1:2:3:+4",
            "g:0:0:0",
        ] {
            assert!(bad.parse::<Nid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn only_unicast_prefixes_can_be_routed_to() {
        for (prefix, routable) in [
            ("2001:db8::", true),
            ("fd00:1::", true),
            ("::", false),
            ("ff02::", false),
            ("fe80::", false),
        ] {
            assert_eq!(
                Locator::of(prefix.parse().unwrap()).is_routable(),
                routable,
                "{prefix}"
            );
        }
    }
}
