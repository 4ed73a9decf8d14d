//! The ways that packets of a flow take, and where they are seen.

use crate::analyze::decode::{Address, Marks};

/// Paths of a flow that are told apart; packets of further ones count as of the last.
pub(super) const MAX_PATHS: usize = 64;

/// Where a packet was captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Role {
    /// Nothing is known of it.
    Somewhere,
    /// At the host that sent it.
    Sender,
    /// At the host that it is for.
    Receiver,
}

impl Role {
    /// Index of the view.
    pub(in super::super) const fn place(self) -> usize {
        match self {
            Self::Somewhere | Self::Sender => 0,
            Self::Receiver => 1,
        }
    }
}

/// A packet, as far as its flow is concerned.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Sight {
    pub time_ns: u64,
    pub capture: u8,
    pub interface: u32,
    pub role: Role,
    /// Source and destination of the outermost header.
    pub outer: (Address, Address),
    pub ports: (u16, u16),
    pub marks: Marks,
    /// Identification of the fragments that it comes in.
    pub fragments: Option<u32>,
    /// The receiver takes it: not so what comes to a locator that it has left.
    pub taken: bool,
    /// The other end was captured as well, as far as that is known.
    pub both: bool,
}

/// A way that packets take.
#[derive(Clone, Debug)]
pub(in super::super) struct PathState {
    pub direction: usize,
    pub outer: (Address, Address),
    pub ports: (u16, u16),
    pub tunnelled: bool,
    /// Capture and interface, where they tell paths apart.
    pub interface: Option<(u8, u32)>,
    /// Those of the first packet.
    pub seen_at: (u8, u32),
    pub place: usize,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Last data that left or arrived by it.
    pub last_data_ns: Option<u64>,
    /// By place.
    pub data_packets: [u64; 2],
    pub data_bytes: [u64; 2],
}
