//! AUTH chunk (RFC 4895 section 5.1).
//!
//! Its HMAC covers bytes: the AUTH chunk itself with its HMAC field zero, and all that follows it in the packet. A chunk
//! that was parsed keeps those bytes as they came, because another implementation may encode what follows otherwise
//! than it would be emitted here (padding, order, what parsing passes over). One that was not parsed is taken at its
//! emission. For packets emitted by this crate the two are the same.

use super::Chunk;
use super::tlv::TLV_HEADER_LEN;
use crate::ParseError;
use crate::reader::Reader;
use bytes::{BufMut, Bytes};

/// Length of the chunk without the HMAC, bytes.
const FIXED_LEN: usize = TLV_HEADER_LEN + 4;

/// An AUTH chunk.
#[derive(Clone, Debug)]
pub struct Auth {
    /// Shared key identifier: which endpoint pair shared key is used.
    pub shared_key_id: u16,
    /// HMAC identifier: 1 for SHA-1, 3 for SHA-256.
    pub hmac_id: u16,
    /// The HMAC.
    pub hmac: Bytes,
    /// From this chunk to the end of the packet that it was parsed from.
    received: Option<Bytes>,
}

/// Equal are chunks that say the same, wherever they come from.
impl PartialEq for Auth {
    fn eq(&self, other: &Self) -> bool {
        (self.shared_key_id, self.hmac_id, &self.hmac) == (other.shared_key_id, other.hmac_id, &other.hmac)
    }
}

impl Eq for Auth {}

impl Auth {
    /// A chunk with this HMAC.
    #[must_use]
    pub const fn new(shared_key_id: u16, hmac_id: u16, hmac: Bytes) -> Self {
        Self {
            shared_key_id,
            hmac_id,
            hmac,
            received: None,
        }
    }

    /// Parses the chunk's value; `received` begins with the chunk and ends with the packet.
    ///
    /// # Errors
    /// If it is truncated.
    pub(super) fn parse(mut value: Reader<'_>, mut received: Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            shared_key_id: value.u16()?,
            hmac_id: value.u16()?,
            hmac: value.rest(),
            received: Some(received.rest()),
        })
    }

    /// What the HMAC is computed over (section 6.2, figure 6): this chunk with its HMAC field zero, and `following`, the
    /// chunks after it to the end of the packet.
    ///
    /// Of a parsed chunk, the bytes as they came, whatever `following` says: whoever changes chunks of a parsed packet
    /// must put a [`new`](Self::new) AUTH chunk in, or what is verified is not what is acted on.
    #[must_use]
    pub fn authenticated_bytes(&self, following: &[Chunk]) -> Vec<u8> {
        if let Some(received) = &self.received {
            let mut out = received.to_vec();
            if let Some(hmac) = out.get_mut(FIXED_LEN..FIXED_LEN + self.hmac.len()) {
                hmac.fill(0);
            }
            return out;
        }
        let blank = Self::new(
            self.shared_key_id,
            self.hmac_id,
            Bytes::from(vec![0; self.hmac.len()]),
        );
        let mut out = Vec::new();
        Chunk::Auth(Box::new(blank)).emit(&mut out);
        for chunk in following {
            chunk.emit(&mut out);
        }
        out
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        FIXED_LEN - TLV_HEADER_LEN + self.hmac.len()
    }

    /// Appends the chunk's value, without padding.
    ///
    /// ```text
    /// |    Shared Key Identifier      |        HMAC Identifier        |
    /// |                             HMAC ...                          |
    /// ```
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(self.shared_key_id);
        out.put_u16(self.hmac_id);
        out.put_slice(&self.hmac);
    }
}
