//! What a mobile host is known by, and the domain name that stands for it.

use super::{Name, parse_name};
use core::fmt::Write as _;
use core::net::Ipv6Addr;
use sha2::{Digest, Sha256};

/// The identity of a mobile host: "home address like MIP, or domain name, or a public key" (000 section II-A, step 4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Identity {
    /// A domain name stands for itself.
    Domain(Name),
    /// A home address is the label `home-` and its 32 hexadecimal digits, below the zone of the location manager:
    /// `home-20010db8000000000000000000000001.zone`.
    HomeAddress(Ipv6Addr),
    /// A public key is the label `key-` and its SHA-256 hash in base32hex without padding (RFC 4648 section 7, 52
    /// characters), below the zone. Hashed is the DER encoding of its SubjectPublicKeyInfo (RFC 5280 section 4.1), as
    /// in the fingerprints of RFC 7858.
    PublicKey([u8; 32]),
}

/// Why an identity has no name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IdentityError {
    /// The text is none of the forms.
    #[error("{0}")]
    Malformed(String),
    /// A domain name that the zone does not contain.
    #[error("{name} is not in the zone {zone}")]
    NotInZone {
        /// The name.
        name: String,
        /// The zone.
        zone: String,
    },
}

impl Identity {
    /// The identity of the holder of a public key, from the DER encoding of its SubjectPublicKeyInfo.
    #[must_use]
    pub fn of_public_key(subject_public_key_info: &[u8]) -> Self {
        Self::PublicKey(Sha256::digest(subject_public_key_info).into())
    }

    /// From text: `mh.example.org`, `home:2001:db8::1`, or `key:` and the SHA-256 hash in 64 hexadecimal digits.
    ///
    /// ```
    /// # use segue_proto::location::{Identity, parse_name};
    /// let zone = parse_name("loc.example").unwrap();
    /// let home = Identity::parse("home:2001:db8::1").unwrap();
    /// assert_eq!(home.name(&zone).unwrap().to_string(), "home-20010db8000000000000000000000001.loc.example");
    /// ```
    ///
    /// # Errors
    /// [`IdentityError::Malformed`]: what was expected.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        let malformed = |expected: &str| IdentityError::Malformed(format!("`{text}`: expected {expected}"));
        if let Some(address) = text.strip_prefix("home:") {
            return address
                .parse()
                .map(Self::HomeAddress)
                .map_err(|_| malformed("home: and an IPv6 address"));
        }
        if let Some(hash) = text.strip_prefix("key:") {
            return hash_from_hex(hash).map(Self::PublicKey).ok_or_else(|| {
                malformed("key: and 64 hexadecimal digits, the SHA-256 hash of a public key")
            });
        }
        parse_name(text)
            .map(Self::Domain)
            .map_err(IdentityError::Malformed)
    }

    /// The domain name at which the zone `zone` has this identity's address.
    ///
    /// # Errors
    /// If it is a domain name outside the zone, or the zone's own name leaves no room for the label.
    pub fn name(&self, zone: &Name) -> Result<Name, IdentityError> {
        let label = match self {
            Self::Domain(name) if name.ends_with(zone) => return Ok(name.clone()),
            Self::Domain(name) => {
                return Err(IdentityError::NotInZone {
                    name: name.to_string(),
                    zone: zone.to_string(),
                });
            }
            Self::HomeAddress(address) => {
                let mut label = "home-".to_owned();
                for octet in address.octets() {
                    // Writing to a string cannot fail.
                    let _ = write!(label, "{octet:02x}");
                }
                label
            }
            Self::PublicKey(hash) => format!("key-{}", base32hex(hash)),
        };
        let mut wire = vec![label.len() as u8];
        wire.extend_from_slice(label.as_bytes());
        wire.extend_from_slice(zone.as_slice());
        Name::from_octets(wire.into())
            .map_err(|_| IdentityError::Malformed(format!("{label} is too long below {zone}")))
    }
}

/// Whether `name` is `zone` or below it.
pub(super) fn in_zone(name: &Name, zone: &Name) -> bool {
    name.ends_with(zone)
}

fn hash_from_hex(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (octet, digits) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *octet = u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(hash)
}

/// RFC 4648 section 7, lower case, without padding.
fn base32hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let (mut out, mut bits, mut count) = (String::new(), 0_u32, 0);
    for &octet in bytes {
        bits = bits << 8 | u32::from(octet);
        count += 8;
        while count >= 5 {
            count -= 5;
            out.push(char::from(DIGITS[(bits >> count) as usize & 31]));
        }
    }
    if count > 0 {
        out.push(char::from(DIGITS[(bits << (5 - count)) as usize & 31]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32hex_is_that_of_rfc_4648_section_10() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "co"),
            ("fo", "cpng"),
            ("foo", "cpnmu"),
            ("foob", "cpnmuog"),
            ("fooba", "cpnmuoj1"),
            ("foobar", "cpnmuoj1e8"),
        ] {
            assert_eq!(base32hex(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn identities_map_to_names_below_the_zone() {
        let zone = parse_name("loc.example").expect("a name");
        let name = |text: &str| {
            Identity::parse(text)
                .and_then(|i| i.name(&zone))
                .map(|n| n.to_string())
        };
        assert_eq!(name("mh.loc.example").as_deref(), Ok("mh.loc.example"));
        assert_eq!(name("MH.Loc.Example.").as_deref(), Ok("MH.Loc.Example"));
        assert!(matches!(
            name("mh.other.example"),
            Err(IdentityError::NotInZone { .. })
        ));
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            Identity::parse(&format!("key:{hash}")),
            Ok(Identity::of_public_key(b"abc"))
        );
        assert_eq!(
            name(&format!("key:{hash}")).as_deref(),
            Ok("key-n9s1dfsf077ukga183f5rbh24eo06od3iobnl75k23vm3sg02mmg.loc.example")
        );
        for bad in ["home:fe80", "key:00", "", ".", "a b.example", "key:zz"] {
            assert!(matches!(name(bad), Err(IdentityError::Malformed(_))), "{bad}");
        }
    }
}
