//! DATA chunk (RFC 9260 section 3.3.1).

use crate::payload::Data;
use crate::{Ssn, Tsn};

/// DATA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataChunk {
    /// Transmission sequence number.
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream_id: u16,
    /// Stream sequence number; meaningless if unordered.
    pub ssn: Ssn,
    /// Payload protocol identifier.
    pub payload_protocol_id: u32,
    /// U bit.
    pub unordered: bool,
    /// B bit: first fragment of a user message.
    pub beginning: bool,
    /// E bit: last fragment of a user message.
    pub ending: bool,
    /// I bit: the receiver should acknowledge at once (RFC 7053).
    pub immediate: bool,
    /// User data, at least one byte.
    pub data: Data,
}
