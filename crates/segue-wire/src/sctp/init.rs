//! INIT and INIT ACK chunks (RFC 9260 sections 3.3.2 and 3.3.3).

use crate::Tsn;
use crate::sctp::Parameter;

/// INIT or INIT ACK: the same fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Init {
    /// Initiate tag.
    pub initiate_tag: u32,
    /// Advertised receiver window credit, bytes.
    pub a_rwnd: u32,
    /// Number of outbound streams.
    pub outbound_streams: u16,
    /// Number of inbound streams.
    pub inbound_streams: u16,
    /// Initial TSN.
    pub initial_tsn: Tsn,
    /// Variable-length parameters.
    pub parameters: Vec<Parameter>,
}
