//! Error causes (RFC 9260 section 3.3.10, RFC 5061 section 4.3).

use crate::Tsn;
use bytes::Bytes;

/// An error cause of an ABORT, ERROR or ASCONF-ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ErrorCause {
    /// Invalid stream identifier (1).
    InvalidStreamIdentifier(u16),
    /// Missing mandatory parameter (2): parameter types.
    MissingMandatoryParameter(Vec<u16>),
    /// Stale cookie (3): measure of staleness, microseconds.
    StaleCookie(u32),
    /// Out of resource (4).
    OutOfResource,
    /// Unresolvable address (5): the address parameter, whole.
    UnresolvableAddress(Bytes),
    /// Unrecognized chunk type (6): the chunk, whole.
    UnrecognizedChunkType(Bytes),
    /// Invalid mandatory parameter (7).
    InvalidMandatoryParameter,
    /// Unrecognized parameters (8): the parameters, whole.
    UnrecognizedParameters(Bytes),
    /// No user data (9): TSN of the empty DATA chunk.
    NoUserData(Tsn),
    /// Cookie received while shutting down (10).
    CookieReceivedWhileShuttingDown,
    /// Restart of an association with new addresses (11): the address parameters, whole.
    RestartWithNewAddresses(Bytes),
    /// User-initiated abort (12): upper-layer reason.
    UserInitiatedAbort(Bytes),
    /// Protocol violation (13): additional information.
    ProtocolViolation(Bytes),
    /// Request to delete last remaining IP address (0x00A0): the parameter, whole.
    DeleteLastRemainingAddress(Bytes),
    /// Operation refused due to resource shortage (0x00A1): the parameter, whole.
    OperationRefusedResourceShortage(Bytes),
    /// Request to delete source IP address (0x00A2): the parameter, whole.
    DeleteSourceAddress(Bytes),
    /// Association aborted due to illegal ASCONF-ACK (0x00A3).
    IllegalAsconfAck,
    /// Request refused, no authorization (0x00A4): the parameter, whole.
    RequestRefusedNoAuthorization(Bytes),
    /// Any other cause.
    Unknown {
        /// Cause code.
        code: u16,
        /// Cause-specific information.
        value: Bytes,
    },
}
