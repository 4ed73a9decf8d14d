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
