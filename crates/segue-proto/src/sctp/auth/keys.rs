//! Keys and HMACs of chunk authentication (RFC 4895 sections 3.3 and 6.1).

use bytes::Bytes;
use core::cmp::Ordering;
use core::fmt;
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use segue_wire::sctp::Parameter;
use serde::{Deserialize, Serialize};
use sha1::Sha1;
use sha2::Sha256;

/// A message digest algorithm (RFC 4895 section 3.3, table 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HmacIdentifier {
    /// HMAC-SHA-1 (1), which every endpoint supports.
    Sha1,
    /// HMAC-SHA-256 (3).
    Sha256,
}

impl HmacIdentifier {
    /// The identifier on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Sha1 => 1,
            Self::Sha256 => 3,
        }
    }

    pub(super) const fn from_number(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::Sha1),
            3 => Some(Self::Sha256),
            _ => None,
        }
    }

    /// Length of the HMAC, bytes.
    pub(super) const fn hmac_len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// An endpoint pair shared key (section 6.1): bytes that both ends know beforehand, under the identifier that AUTH chunks
/// name it by.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey {
    /// Shared key identifier.
    pub id: u16,
    /// The key.
    pub key: Bytes,
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A key vector: RANDOM, CHUNKS and HMAC-ALGO as they were sent, without padding. `parameters` are in this order, those
/// that were not sent left out.
pub(super) fn key_vector(parameters: &[Parameter]) -> Vec<u8> {
    let mut out = Vec::new();
    for parameter in parameters {
        parameter.emit(&mut out);
    }
    out
}

/// An association shared key: the endpoint pair shared key, the smaller key vector, the larger one.
pub(super) fn association_shared_key(shared_key: &[u8], vectors: [&[u8]; 2]) -> Vec<u8> {
    let [a, b] = vectors;
    let (first, second) = if compare(a, b) == Ordering::Greater {
        (b, a)
    } else {
        (a, b)
    };
    [shared_key, first, second].concat()
}

/// Key vectors compared as numbers in network byte order; of equal numbers the shorter vector is the lesser.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let significant = |v: &[u8]| v.len() - v.iter().take_while(|&&byte| byte == 0).count();
    let (a_digits, b_digits) = (significant(a), significant(b));
    a_digits
        .cmp(&b_digits)
        .then_with(|| a[a.len() - a_digits..].cmp(&b[b.len() - b_digits..]))
        .then_with(|| a.len().cmp(&b.len()))
}

/// An association shared key, ready for either HMAC.
#[derive(Clone)]
pub(super) struct AssociationKey {
    sha1: Hmac<Sha1>,
    sha256: Hmac<Sha256>,
}

impl AssociationKey {
    pub(super) fn new(key: &[u8]) -> Self {
        Self {
            sha1: keyed(key),
            sha256: keyed(key),
        }
    }

    pub(super) fn sign(&self, hmac: HmacIdentifier, bytes: &[u8]) -> Bytes {
        match hmac {
            HmacIdentifier::Sha1 => sign(&self.sha1, bytes),
            HmacIdentifier::Sha256 => sign(&self.sha256, bytes),
        }
    }

    /// Whether `tag` is the HMAC of `bytes`, compared in constant time.
    pub(super) fn verify(&self, hmac: HmacIdentifier, bytes: &[u8], tag: &[u8]) -> bool {
        match hmac {
            HmacIdentifier::Sha1 => verify(&self.sha1, bytes, tag),
            HmacIdentifier::Sha256 => verify(&self.sha256, bytes, tag),
        }
    }
}

impl fmt::Debug for AssociationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssociationKey").finish_non_exhaustive()
    }
}

fn keyed<M: Mac + KeyInit>(key: &[u8]) -> M {
    <M as Mac>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"))
}

fn sign<M: Mac + Clone>(keyed: &M, bytes: &[u8]) -> Bytes {
    let mut mac = keyed.clone();
    mac.update(bytes);
    Bytes::copy_from_slice(&mac.finalize().into_bytes())
}

fn verify<M: Mac + Clone>(keyed: &M, bytes: &[u8], tag: &[u8]) -> bool {
    let mut mac = keyed.clone();
    mac.update(bytes);
    mac.verify_slice(tag).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rising() -> Bytes {
        (0..32).collect()
    }

    fn falling() -> Bytes {
        (224..=255).rev().collect()
    }

    /// RANDOM, CHUNKS and HMAC-ALGO of one end: 50 bytes.
    fn long() -> Vec<u8> {
        key_vector(&[
            Parameter::Random(rising()),
            Parameter::Chunks(Bytes::from_static(&[0xc1, 0x80])),
            Parameter::HmacAlgo(vec![3, 1]),
        ])
    }

    /// Of an end that sent no CHUNKS: 42 bytes.
    fn short() -> Vec<u8> {
        key_vector(&[Parameter::Random(falling()), Parameter::HmacAlgo(vec![1])])
    }

    /// Worked out with the `hmac` module of Python from the words of section 6.1: parameters packed by `struct`, vectors
    /// ordered by `int.from_bytes(v, "big")`, message `b"authenticated"`.
    #[test]
    fn hmacs_by_another_program() {
        let cases: [(&[u8], Vec<u8>, &str, &str); 3] = [
            (
                b"",
                short(),
                "f62e5905490b0eb18a63f71d06a2a4b24016cfec",
                "c0fac7dc3b698c511ce39740fabcd84c8f55f617cc5217f80804f9d08f9b6873",
            ),
            (
                b"open sesame",
                short(),
                "d893f42220b3c669a5c19f380cdb7034aa86b691",
                "040c3a7c38d706b421d203693cf96348a90155d22d47b7798baab37c5d4e33f0",
            ),
            (
                b"",
                key_vector(&[
                    Parameter::Random(falling()),
                    Parameter::Chunks(Bytes::from_static(&[0, 7])),
                    Parameter::HmacAlgo(vec![3, 1]),
                ]),
                "",
                "a8f8b301f627c86013ad29535e9a25b2706459f6620b08be0b25dacb1a3f9946",
            ),
        ];
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        for (shared_key, other, sha1, sha256) in cases {
            // whichever end it is
            for vectors in [[&long()[..], &other[..]], [&other[..], &long()[..]]] {
                let key = AssociationKey::new(&association_shared_key(shared_key, vectors));
                for (hmac, expected) in [(HmacIdentifier::Sha1, sha1), (HmacIdentifier::Sha256, sha256)] {
                    let tag = key.sign(hmac, b"authenticated");
                    assert_eq!(tag.len(), hmac.hmac_len());
                    assert!(expected.is_empty() || hex(&tag) == expected, "{hmac:?}");
                    assert!(key.verify(hmac, b"authenticated", &tag));
                    assert!(!key.verify(hmac, b"authenticates", &tag));
                    assert!(!key.verify(hmac, b"authenticated", &tag[1..]));
                    assert!(!key.verify(hmac, b"authenticated", b""));
                }
            }
        }
    }

    #[test]
    fn vectors_are_compared_as_numbers_and_the_shorter_of_equal_ones_comes_first() {
        use Ordering::{Equal, Greater, Less};
        let cases: [(&[u8], &[u8], Ordering); 7] = [
            (&[1, 2, 3], &[1, 2, 4], Less),
            (&[2], &[1, 0], Less),
            (&[0, 0, 2], &[1, 0], Less),
            (&[0, 3], &[2], Greater),
            (&[0, 0, 5], &[5], Greater),
            (&[0], &[0, 0], Less),
            (&[7, 7], &[7, 7], Equal),
        ];
        for (a, b, expected) in cases {
            assert_eq!(compare(a, b), expected, "{a:?} {b:?}");
            assert_eq!(compare(b, a), expected.reverse(), "{b:?} {a:?}");
        }
        assert_eq!(association_shared_key(&[9], [&[0, 5], &[5]]), [9, 5, 0, 5]);
        assert_eq!(association_shared_key(&[9], [&[5], &[0, 5]]), [9, 5, 0, 5]);
    }

    #[test]
    fn keys_are_not_shown() {
        let shared = SharedKey {
            id: 4,
            key: Bytes::from_static(b"secret"),
        };
        let shown = format!("{shared:?} {:?}", AssociationKey::new(b"secret"));
        assert!(shown.contains('4') && !shown.contains("secret"), "{shown}");
    }
}
