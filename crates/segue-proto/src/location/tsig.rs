//! Transaction signatures (TSIG, RFC 8945): HMAC over a message and the time it was signed at.

use super::Name;
use crate::mac::of_parts as finish;
use bytes::{BufMut, Bytes, BytesMut};
use core::fmt;
use domain::base::ParsedRecord;
use domain::base::iana::{Class, Rtype};
use domain::base::name::{ParsedName, ToName};
use domain::rdata::tsig::Tsig;
use hmac::{Hmac, Mac};
use sha2::{Sha256, Sha384, Sha512};

/// TSIG errors (RFC 8945 section 3): the key or MAC is wrong, ...
pub const BADSIG: u16 = 16;
/// ... the key is unknown, ...
pub const BADKEY: u16 = 17;
/// ... the time is outside the fudge, or older than one seen, ...
pub const BADTIME: u16 = 18;
/// ... or the MAC is shorter than local policy takes.
pub const BADTRUNC: u16 = 22;

/// Fudge that RFC 8945 section 10 recommends, seconds.
pub const FUDGE: u16 = 300;

/// Lengths of the fixed fields of the record: type, class, TTL and length; time, fudge, MAC size, original id, error
/// and other size.
const FIXED_LEN: usize = 10 + 6 + 2 + 2 + 2 + 2 + 2;

/// Algorithms of RFC 8945 section 6 that are strong enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// hmac-sha256: mandatory to implement.
    #[default]
    HmacSha256,
    /// hmac-sha384.
    HmacSha384,
    /// hmac-sha512.
    HmacSha512,
}

impl Algorithm {
    /// From its name in RFC 8945 section 6.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::HmacSha256, Self::HmacSha384, Self::HmacSha512]
            .into_iter()
            .find(|a| a.name() == name.trim_end_matches('.').to_ascii_lowercase())
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::HmacSha384 => "hmac-sha384",
            Self::HmacSha512 => "hmac-sha512",
        }
    }

    /// Length of its MAC, bytes.
    #[must_use]
    pub const fn mac_len(self) -> usize {
        match self {
            Self::HmacSha256 => 32,
            Self::HmacSha384 => 48,
            Self::HmacSha512 => 64,
        }
    }

    /// The name in wire form: one label and the root.
    fn wire(self) -> Vec<u8> {
        let name = self.name().as_bytes();
        let mut wire = vec![name.len() as u8];
        wire.extend_from_slice(name);
        wire.push(0);
        wire
    }
}

/// A secret shared by a client and a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    name: Name,
    algorithm: Algorithm,
    secret: Vec<u8>,
}

impl Key {
    /// A key. RFC 8945 section 8 wants secrets of the length of the MAC, 32 bytes for HMAC-SHA-256.
    #[must_use]
    pub fn new(name: Name, algorithm: Algorithm, secret: Vec<u8>) -> Self {
        Self {
            name,
            algorithm,
            secret,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Its algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Length of a record with a MAC of it, without other data, bytes.
    pub(super) fn record_len(&self) -> usize {
        self.name.as_slice().len() + FIXED_LEN + self.algorithm.wire().len() + self.algorithm.mac_len()
    }

    fn mac(&self, parts: &[&[u8]]) -> Vec<u8> {
        match self.algorithm {
            Algorithm::HmacSha256 => finish::<Hmac<Sha256>>(&self.secret, parts)
                .finalize()
                .into_bytes()
                .to_vec(),
            Algorithm::HmacSha384 => finish::<Hmac<Sha384>>(&self.secret, parts)
                .finalize()
                .into_bytes()
                .to_vec(),
            Algorithm::HmacSha512 => finish::<Hmac<Sha512>>(&self.secret, parts)
                .finalize()
                .into_bytes()
                .to_vec(),
        }
    }

    /// Whether `mac` is the left part of the parts' MAC, or all of it, in constant time.
    fn verify(&self, parts: &[&[u8]], mac: &[u8]) -> bool {
        match self.algorithm {
            Algorithm::HmacSha256 => finish::<Hmac<Sha256>>(&self.secret, parts)
                .verify_truncated_left(mac)
                .is_ok(),
            Algorithm::HmacSha384 => finish::<Hmac<Sha384>>(&self.secret, parts)
                .verify_truncated_left(mac)
                .is_ok(),
            Algorithm::HmacSha512 => finish::<Hmac<Sha512>>(&self.secret, parts)
                .verify_truncated_left(mac)
                .is_ok(),
        }
    }
}

/// The secret stays out of logs.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, {})", self.name, self.algorithm.name())
    }
}

/// The TSIG record of a message (RFC 8945 section 4.2), and the message without it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TsigRecord {
    /// Name of the key.
    pub key: Name,
    /// Name of the algorithm.
    pub algorithm: Name,
    /// Time Signed, Unix seconds.
    pub time_signed: u64,
    /// Fudge, seconds.
    pub fudge: u16,
    /// MAC.
    pub mac: Bytes,
    /// Error.
    pub error: u16,
    /// Other Data.
    pub other: Bytes,
    /// The message as it was when it was signed: without the record, with one additional record less, with the
    /// original id (RFC 8945 section 4.3.2).
    signed: Bytes,
}

impl TsigRecord {
    /// Reads the record at `position` of a message. `None`: malformed.
    pub(super) fn read(message: &Bytes, position: usize, record: &ParsedRecord<'_, Bytes>) -> Option<Self> {
        if record.class() != Class::ANY || record.ttl().as_secs() != 0 {
            return None;
        }
        let typed = record.to_record::<Tsig<Bytes, ParsedName<Bytes>>>().ok()??;
        let data = typed.data();
        let mut signed = BytesMut::from(message.get(..position)?);
        let count = u16::from_be_bytes([*signed.get(10)?, *signed.get(11)?]).checked_sub(1)?;
        signed
            .get_mut(..2)?
            .copy_from_slice(&data.original_id().to_be_bytes());
        signed.get_mut(10..12)?.copy_from_slice(&count.to_be_bytes());
        let time = data.time_signed().into_octets();
        Some(Self {
            key: record.owner().to_bytes(),
            algorithm: data.algorithm().to_bytes(),
            time_signed: time.into_iter().fold(0, |t, octet| t << 8 | u64::from(octet)),
            fudge: data.fudge(),
            mac: data.mac().clone(),
            error: data.error().to_int(),
            other: data.other().clone(),
            signed: signed.freeze(),
        })
    }

    /// Whether this is a MAC of `key`; a response's covers the request's MAC too (RFC 8945 section 4.3.1).
    #[must_use]
    pub fn is_signed_with(&self, key: &Key, request_mac: Option<&[u8]>) -> bool {
        let prefix = request_mac.map(prefixed).unwrap_or_default();
        let variables = variables(key, self.time_signed, self.fudge, self.error, &self.other);
        self.mac.len() == key.algorithm.mac_len()
            && key.verify(&[&prefix, &self.signed, &variables], &self.mac)
    }

    /// Whether this is a MAC of `key` over a request, or the left part of one (RFC 8945 section 5.2.2.1).
    #[must_use]
    pub fn is_truncated_mac_of(&self, key: &Key) -> bool {
        let variables = variables(key, self.time_signed, self.fudge, self.error, &self.other);
        key.verify(&[&self.signed, &variables], &self.mac)
    }

    /// Whether it names `key` and its algorithm.
    #[must_use]
    pub fn names(&self, key: &Key) -> bool {
        self.key == key.name && canonical(&self.algorithm) == key.algorithm.wire()
    }

    /// Time of the server that Other Data of a BADTIME has, Unix seconds (RFC 8945 section 5.2.3).
    #[must_use]
    pub fn server_time(&self) -> Option<u64> {
        (self.error == BADTIME && self.other.len() == 6)
            .then(|| self.other.iter().fold(0, |t, octet| t << 8 | u64::from(*octet)))
    }

    /// Whether the message was signed within the fudge around `unix`.
    #[must_use]
    pub fn is_timely(&self, unix: u64) -> bool {
        self.time_signed.abs_diff(unix) <= u64::from(self.fudge)
    }
}

/// What a signature says beside the MAC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signing<'a> {
    /// The request's MAC, for a response to a signed request.
    pub request_mac: Option<&'a [u8]>,
    /// Time Signed, Unix seconds.
    pub time_signed: u64,
    /// Fudge, seconds.
    pub fudge: u16,
    /// Error.
    pub error: u16,
    /// Other Data.
    pub other: &'a [u8],
}

/// Appends the TSIG record to `message` and returns its MAC.
pub fn sign(message: &mut Vec<u8>, key: &Key, signing: &Signing<'_>) -> Vec<u8> {
    let prefix = signing.request_mac.map(prefixed).unwrap_or_default();
    let variables = variables(
        key,
        signing.time_signed,
        signing.fudge,
        signing.error,
        signing.other,
    );
    let mac = key.mac(&[&prefix, message, &variables]);
    append(message, key.name(), &key.algorithm.wire(), signing, &mac);
    mac
}

/// Appends a TSIG record without a MAC: the answer to a request whose key or MAC is wrong (RFC 8945 section 5.3.2).
pub fn append_unsigned(message: &mut Vec<u8>, request: &TsigRecord, error: u16) {
    let signing = Signing {
        request_mac: None,
        time_signed: request.time_signed,
        fudge: request.fudge,
        error,
        other: &[],
    };
    append(message, &request.key, request.algorithm.as_slice(), &signing, &[]);
}

/// What has no header is no message: nothing is appended to it.
fn append(message: &mut Vec<u8>, key: &Name, algorithm: &[u8], signing: &Signing<'_>, mac: &[u8]) {
    let Some([id @ .., _, _, _, _, _, _, _, _, c0, c1]) = message.first_chunk_mut::<12>() else {
        return;
    };
    let original_id: [u8; 2] = *id;
    [*c0, *c1] = u16::from_be_bytes([*c0, *c1]).wrapping_add(1).to_be_bytes();
    message.extend_from_slice(key.as_slice());
    message.put_u16(Rtype::TSIG.to_int());
    message.put_u16(Class::ANY.to_int());
    message.put_u32(0);
    let rdlen = algorithm.len() + 16 + mac.len() + signing.other.len();
    message.put_u16(rdlen as u16);
    message.extend_from_slice(algorithm);
    message.extend_from_slice(&signing.time_signed.to_be_bytes()[2..]);
    message.put_u16(signing.fudge);
    message.put_u16(mac.len() as u16);
    message.extend_from_slice(mac);
    message.extend_from_slice(&original_id);
    message.put_u16(signing.error);
    message.put_u16(signing.other.len() as u16);
    message.extend_from_slice(signing.other);
}

/// RFC 8945 section 4.3.3.
fn variables(key: &Key, time_signed: u64, fudge: u16, error: u16, other: &[u8]) -> Vec<u8> {
    let mut out = canonical(&key.name);
    out.put_u16(Class::ANY.to_int());
    out.put_u32(0);
    out.extend_from_slice(&key.algorithm.wire());
    out.extend_from_slice(&time_signed.to_be_bytes()[2..]);
    out.put_u16(fudge);
    out.put_u16(error);
    out.put_u16(other.len() as u16);
    out.extend_from_slice(other);
    out
}

/// A name in wire form and lower case (RFC 4034 section 6.2). Length octets are below the letters.
fn canonical(name: &Name) -> Vec<u8> {
    name.as_slice().to_ascii_lowercase()
}

/// The request's MAC with its length before it (RFC 8945 section 4.3.1).
fn prefixed(mac: &[u8]) -> Vec<u8> {
    let mut out = (mac.len() as u16).to_be_bytes().to_vec();
    out.extend_from_slice(mac);
    out
}
