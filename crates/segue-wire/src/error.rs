//! Why bytes are not a packet.

use thiserror::Error;

/// Why parsing failed. A peer's bad packet becomes one of these and a counted drop, never a panic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ParseError {
    /// Fewer bytes than the format needs.
    #[error("{0}: truncated")]
    Truncated(&'static str),
    /// A length field that contradicts the bytes or the format.
    #[error("{0}: bad length")]
    BadLength(&'static str),
    /// A checksum that does not match.
    #[error("{0}: bad checksum")]
    BadChecksum(&'static str),
    /// Not version 6, or another fixed field with a wrong value.
    #[error("{0}: bad value")]
    BadValue(&'static str),
}
