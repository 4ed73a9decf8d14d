//! SACK chunk (RFC 9260 section 3.3.4).

use crate::Tsn;
use smallvec::SmallVec;

/// SACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sack {
    /// Cumulative TSN ack.
    pub cumulative_tsn_ack: Tsn,
    /// Advertised receiver window credit, bytes.
    pub a_rwnd: u32,
    /// Gap ack blocks, ascending.
    pub gap_ack_blocks: SmallVec<[GapAckBlock; 4]>,
    /// TSNs received more than once since the last SACK.
    pub duplicate_tsns: Vec<Tsn>,
}

/// A gap ack block: offsets from the cumulative TSN ack, both inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapAckBlock {
    /// Offset of the first TSN.
    pub start: u16,
    /// Offset of the last TSN.
    pub end: u16,
}
