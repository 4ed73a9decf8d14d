//! What a flow is.

use serde::Serialize;

/// What a flow is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// A TCP connection; of MPTCP, a subflow.
    Tcp,
    /// An MPTCP connection, all subflows together (RFC 8684, RFC 6824).
    Mptcp,
    /// An SCTP association (RFC 9260).
    Sctp,
    /// UDP between two pairs of address and port.
    Udp,
    /// QUIC (RFC 9000).
    Quic,
    /// WireGuard.
    Wireguard,
}

impl Protocol {
    /// Whether its acknowledgements can be seen.
    pub(super) const fn is_acknowledged(self) -> bool {
        matches!(self, Self::Tcp | Self::Mptcp | Self::Sctp)
    }
}
