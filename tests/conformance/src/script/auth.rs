//! The peer's side of chunk authentication (RFC 4895), written a second time, so that the endpoint's is not its own judge.

use bytes::Bytes;
use hmac::{Hmac, Mac};
use segue_wire::sctp::{Auth, Chunk, Parameter};
use sha1::Sha1;
use sha2::Sha256;

/// HMAC identifier of SHA-1.
pub const SHA1: u16 = 1;
/// HMAC identifier of SHA-256.
pub const SHA256: u16 = 3;

/// What the peer's INIT says of authentication: ASCONF and ASCONF-ACK are to be authenticated, by SHA-256 if possible.
#[must_use]
pub fn parameters() -> Vec<Parameter> {
    vec![
        Parameter::Random(Bytes::from((0..32).collect::<Vec<u8>>())),
        Parameter::Chunks(Bytes::from_static(&[0xc1, 0x80])),
        Parameter::HmacAlgo([SHA256, SHA1].into_iter().collect()),
        super::chunks::extensions(&[0xc1, 0x80, 0x0f]),
    ]
}

/// The key of an association.
#[derive(Clone, Debug)]
pub struct PeerAuth {
    key: Vec<u8>,
}

impl PeerAuth {
    /// The association shared key from the parameters of the two ends and the endpoint pair shared key (section 6.1);
    /// `None` unless both sent a RANDOM.
    #[must_use]
    pub fn new(ours: &[Parameter], theirs: &[Parameter], shared_key: &[u8]) -> Option<Self> {
        let (a, b) = (vector(ours)?, vector(theirs)?);
        // compared as numbers: the shorter one padded with zeros in front; equal ones by length
        let width = a.len().max(b.len());
        let number = |v: &[u8]| [vec![0; width - v.len()], v.to_vec()].concat();
        let (first, second) = if (number(&a), a.len()) <= (number(&b), b.len()) {
            (a, b)
        } else {
            (b, a)
        };
        Some(Self {
            key: [shared_key.to_vec(), first, second].concat(),
        })
    }

    /// Chunks behind an AUTH chunk with key 0 and SHA-256.
    #[must_use]
    pub fn sign(&self, chunks: impl IntoIterator<Item = Chunk>) -> Vec<Chunk> {
        self.sign_with(0, SHA256, chunks)
    }

    /// The same with a key identifier and an HMAC of one's choice; an HMAC that does not exist is taken as SHA-256.
    ///
    /// # Panics
    /// Never: HMAC takes keys of any length.
    #[must_use]
    pub fn sign_with(
        &self,
        shared_key_id: u16,
        hmac_id: u16,
        chunks: impl IntoIterator<Item = Chunk>,
    ) -> Vec<Chunk> {
        let mut out: Vec<Chunk> = chunks.into_iter().collect();
        let hmac = self.hmac(shared_key_id, hmac_id, &out);
        out.insert(0, Chunk::Auth(Box::new(Auth::new(shared_key_id, hmac_id, hmac))));
        out
    }

    /// Whether the first chunk is an AUTH chunk that covers the others.
    #[must_use]
    pub fn covers(&self, chunks: &[Chunk]) -> bool {
        match chunks {
            [Chunk::Auth(auth), following @ ..] => {
                self.hmac(auth.shared_key_id, auth.hmac_id, following) == auth.hmac
            }
            _ => false,
        }
    }

    fn hmac(&self, shared_key_id: u16, hmac_id: u16, following: &[Chunk]) -> Bytes {
        let len = if hmac_id == SHA1 { 20 } else { 32 };
        // section 6.2: the AUTH chunk with a zero HMAC, and everything behind it, padding included
        let mut covered = vec![0x0f, 0];
        covered.extend((8 + len as u16).to_be_bytes());
        covered.extend(shared_key_id.to_be_bytes());
        covered.extend(hmac_id.to_be_bytes());
        covered.resize(8 + len, 0);
        for chunk in following {
            chunk.emit(&mut covered);
        }
        if hmac_id == SHA1 {
            let mut mac = Hmac::<Sha1>::new_from_slice(&self.key).expect("HMAC takes any key");
            mac.update(&covered);
            Bytes::copy_from_slice(&mac.finalize().into_bytes())
        } else {
            let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes any key");
            mac.update(&covered);
            Bytes::copy_from_slice(&mac.finalize().into_bytes())
        }
    }
}

/// RANDOM, CHUNKS and HMAC-ALGO with their headers and without padding, in this order (section 6.1).
fn vector(parameters: &[Parameter]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut append = |wanted: fn(&Parameter) -> bool| {
        let found = parameters.iter().find(|p| wanted(p));
        if let Some(parameter) = found {
            let start = out.len();
            parameter.emit(&mut out);
            let length = usize::from(u16::from_be_bytes([out[start + 2], out[start + 3]]));
            out.truncate(start + length);
        }
        found.is_some()
    };
    let has_random = append(|p| matches!(p, Parameter::Random(_)));
    append(|p| matches!(p, Parameter::Chunks(_)));
    append(|p| matches!(p, Parameter::HmacAlgo(_)));
    has_random.then_some(out)
}
