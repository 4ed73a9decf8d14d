//! Names of the peer's addresses and of the paths to them.

use super::slots::Id;

/// Destinations, as what an [`Id`] names.
#[derive(Debug)]
pub(in crate::sctp) enum Destinations {}

/// Paths, as what an [`Id`] names.
#[derive(Debug)]
pub(in crate::sctp) enum Paths {}

/// Names a transport address of the peer.
pub(in crate::sctp) type DestinationId = Id<Destinations>;

/// Names a pair of an address of ours and one of the peer's.
pub(in crate::sctp) type PathId = Id<Paths>;

/// Most destinations kept: more are not taken from an INIT, and an ASCONF that adds one more is refused.
pub(in crate::sctp) const MAX_DESTINATIONS: usize = 32;
