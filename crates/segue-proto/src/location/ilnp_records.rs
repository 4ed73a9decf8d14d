//! The records of ILNP (RFC 6742): NID, L64 and LP. The `domain` crate knows their names and not their data.

use super::Name;
use super::message::Rdata;
use bytes::{BufMut, Bytes, BytesMut};
use domain::base::iana::Rtype;
use segue_wire::ilnp::{Locator, Nid};

pub use segue_wire::ilnp::PreferredLocator;

/// NID record data (RFC 6742 section 2.1): preference and node identifier.
pub fn nid(preference: u16, nid: Nid) -> Rdata {
    pair(preference, nid.0)
}

/// L64 record data (RFC 6742 section 2.3): preference and locator.
pub fn l64((locator, preference): PreferredLocator) -> Rdata {
    pair(preference, locator.0)
}

/// The locator in L64 record data.
pub fn read_l64(data: &Rdata) -> Option<PreferredLocator> {
    read_pair(data).map(|(preference, value)| (Locator(value), preference))
}

/// The name in LP record data (RFC 6742 section 2.4), at which there are L64 records: a network that moves changes
/// those of one name for all its nodes.
pub fn read_lp(data: &Rdata) -> Option<(Name, u16)> {
    let (preference, name) = data.bytes.split_first_chunk::<2>()?;
    let name = Name::from_octets(Bytes::copy_from_slice(name)).ok()?;
    Some((name, u16::from_be_bytes(*preference)))
}

/// Whether the data fits its type, as far as that is one of ILNP's.
pub fn is_well_formed(rtype: Rtype, data: &Rdata) -> bool {
    match rtype {
        Rtype::NID | Rtype::L64 => read_pair(data).is_some(),
        Rtype::L32 => data.bytes.len() == 6,
        Rtype::LP => read_lp(data).is_some(),
        _ => true,
    }
}

fn pair(preference: u16, value: u64) -> Rdata {
    let mut bytes = BytesMut::with_capacity(10);
    bytes.put_u16(preference);
    bytes.put_u64(value);
    Rdata::opaque(bytes.freeze())
}

fn read_pair(data: &Rdata) -> Option<(u16, u64)> {
    let (preference, value) = data.bytes.split_first_chunk::<2>()?;
    let value = u64::from_be_bytes(value.try_into().ok()?);
    Some((u16::from_be_bytes(*preference), value))
}
