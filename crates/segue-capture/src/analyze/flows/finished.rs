//! What there is to say of a flow once it has ended.

use super::moved::Moved;
use super::paths::Taken;
use super::progress::Outages;
use super::shares::Moves;
use super::view::Overview;
use crate::analyze::decode::{Address, Marks};
use crate::analyze::model::{EndCounts, Protocol, Spread};

/// A flow that has ended.
#[derive(Clone, Debug)]
pub(in super::super) struct Finished {
    pub protocol: Protocol,
    pub marks: Marks,
    /// The transport's sender chooses the path, not the network layer.
    pub path_is_the_senders: bool,
    /// The ends' addresses as first seen, and their ports.
    pub shown: [Address; 2],
    pub ports: [u16; 2],
    /// It is one of IPv4.
    pub is_v4: bool,
    /// Number of the MPTCP connection that it is a subflow of.
    pub parent: Option<u64>,
    pub begin_ns: u64,
    pub last_ns: u64,
    pub paths: Vec<Taken>,
}

/// One direction of it.
#[derive(Clone, Debug)]
pub(in super::super) struct Observed {
    /// Where it was seen, [`Role::place`](super::paths::Role::place); and whether that is certain.
    pub place: usize,
    pub certain: bool,
    /// All packets there.
    pub packets: u64,
    pub seen: Overview,
    /// Of what was seen there, what are handovers and what are changes of share.
    pub moves: Moves,
    /// Handovers that the sender's capture alone has, and its first data.
    pub senders: Vec<Moved>,
    pub first_sent_ns: u64,
    /// As the sender measured them, or else where it was seen.
    pub rtt: Option<Spread>,
    /// What became of each packet, where both ends were seen.
    pub at_both: Option<AtBoth>,
    pub outages: Outages,
}

/// What became of the packets of a direction, and of those around each handover.
#[derive(Clone, Debug)]
pub(in super::super) struct AtBoth {
    pub counts: EndCounts,
    pub around: Vec<EndCounts>,
}
