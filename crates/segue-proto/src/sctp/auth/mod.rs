//! Chunk authentication (RFC 4895), and ASCONF's demand for it (RFC 5061 section 4.1).
//!
//! Both ends send a random number (RANDOM), the chunk types that they accept only authenticated (CHUNKS) and the HMACs
//! that they take (HMAC-ALGO). These parameters and the endpoint pair shared keys, if there are any, make the association
//! shared keys (`keys`). Whoever sends a chunk that the other end lists puts an AUTH chunk before it.
//!
//! What it protects from: without endpoint pair shared keys, from everybody who did not see the handshake; with them, from
//! everybody who does not know them.

mod authentication;
mod chunk_types;
mod keys;
mod offer;

pub(super) use authentication::{AuthFailure, Authentication, verify_cookie_echo};
pub use keys::{HmacIdentifier, SharedKey};
pub(super) use offer::{concerns, is_offered, own_parameters, refusal};

use segue_wire::sctp::{Chunk, SctpPacket};
use serde::{Deserialize, Serialize};

/// Whether ASCONF and ASCONF-ACK must be authenticated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AsconfAuth {
    /// Yes (RFC 5061 section 4.1.1): without authentication they are neither sent nor acted on, and with a peer that does
    /// not support it addresses cannot be changed.
    #[default]
    Required,
    /// No: as in the drafts before RFC 4895. Whoever knows or guesses the verification tag can move the association.
    /// Authentication is then offered only if [`AuthConfig`] asks for it, and peers that follow RFC 5061 refuse the
    /// association.
    None,
}

/// Chunk authentication, apart from what ASCONF needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthConfig {
    /// Chunk types that the peer must authenticate, besides ASCONF and ASCONF-ACK. INIT, INIT ACK, SHUTDOWN COMPLETE and
    /// AUTH cannot be authenticated and are passed over. A peer without authentication is refused at set-up if there are
    /// any.
    pub required_chunks: Vec<u8>,
    /// HMACs accepted, the preferred one first. SHA-1 is added if it is missing: every endpoint must accept it (section
    /// 6.1).
    pub hmac_identifiers: Vec<HmacIdentifier>,
    /// Endpoint pair shared keys of new associations. If there are none, the empty key under identifier 0 (section 6.2);
    /// if there are any, only these: a peer that may also use an empty key need not know one (section 9).
    pub shared_keys: Vec<SharedKey>,
    /// The shared key that new associations send with; the first of `shared_keys` if it is none of them.
    pub active_key: u16,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            required_chunks: Vec::new(),
            hmac_identifiers: vec![HmacIdentifier::Sha256, HmacIdentifier::Sha1],
            shared_keys: Vec::new(),
            active_key: 0,
        }
    }
}

/// Why a change of keys was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuthError {
    /// This end did not offer authentication when the association was set up.
    #[error("the association was set up without authentication")]
    NotOffered,
    /// No key has this identifier.
    #[error("no such shared key")]
    NoSuchKey,
    /// The active key cannot be deleted.
    #[error("the shared key is the active one")]
    ActiveKey,
}

/// The random number that RANDOM carries (section 6.1).
pub(super) type Random = [u8; RANDOM_LEN];
const RANDOM_LEN: usize = 32;

/// The first chunk of a packet but for AUTH: what decides for which association a packet is (section 6.3).
#[inline]
pub(super) fn first_chunk(packet: &SctpPacket) -> Option<&Chunk> {
    packet.chunks.iter().find(|c| !matches!(c, Chunk::Auth(_)))
}
