//! What a packet of data is to begin with.

use crate::sctp::ids::PathId;
use segue_wire::Tsn;

/// What a packet of data is to begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum Plan {
    /// A chunk that is sent again; `forced`: whatever cwnd says.
    Retransmit { tsn: Tsn, path: PathId, forced: bool },
    /// A new chunk of `len` user bytes.
    New { path: PathId, len: u32 },
}

impl Plan {
    /// The path that the packet takes.
    pub(in crate::sctp) fn path(&self) -> PathId {
        match *self {
            Self::Retransmit { path, .. } | Self::New { path, .. } => path,
        }
    }
}
