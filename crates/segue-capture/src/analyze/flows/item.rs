//! What flows are given: items of data, and what is asked of them.

use super::ends::Listens;

/// What the engine was asked for, in the units that it works with.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Settings {
    pub window_ns: u64,
    pub min_gap_ns: u64,
    pub series: bool,
    pub start_ns: u64,
}

/// What an engine allows its flows.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Limits {
    pub settings: Settings,
    /// Copies of one direction that may be followed at a time.
    pub copies: usize,
    /// When each capture has packets.
    pub listens: [Listens; 2],
}

/// An item of data: a segment, a chunk, a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Item {
    pub seq: u32,
    /// Sequence numbers that it takes.
    pub span: u32,
    pub bytes: u32,
    /// TSval.
    pub stamp: Option<u32>,
    /// What it is in the account of both ends; nothing if the sender's capture does not know it.
    pub number: Option<u32>,
}

impl Item {
    /// One with sequence numbers of its own.
    pub(in super::super) const fn new(seq: u32, span: u32, bytes: u32, stamp: Option<u32>) -> Self {
        Self {
            seq,
            span,
            bytes,
            stamp,
            number: Some(seq),
        }
    }
}
