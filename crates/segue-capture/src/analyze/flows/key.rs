//! What packets of a flow have in common, and where the flow is.

use crate::analyze::decode::Address;

/// What a key is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum KeyKind {
    Tcp,
    Udp,
    Sctp,
    /// Verification tag and ports of one direction of an association.
    SctpTag,
    /// Token of an MPTCP connection.
    MptcpToken,
    /// Connection ID of QUIC.
    QuicId,
    /// Index that a WireGuard peer chose, with its address.
    WireguardIndex,
}

/// What packets of a flow have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Key {
    pub kind: KeyKind,
    pub a: u128,
    pub b: u128,
    pub ports: u32,
}

impl Key {
    /// Of two ends, whatever their order.
    pub(in super::super) fn of_ends(kind: KeyKind, x: (Address, u16), y: (Address, u16)) -> Self {
        let (low, high) = if x <= y { (x, y) } else { (y, x) };
        Self {
            kind,
            a: low.0.0,
            b: high.0.0,
            ports: u32::from(low.1) << 16 | u32::from(high.1),
        }
    }

    /// Folded multiplication: one round for every word of the key.
    pub(super) fn hash(&self, seed: u64) -> u64 {
        let fold = |x: u64, y: u64| {
            let wide = u128::from(x) * u128::from(y);
            wide as u64 ^ (wide >> 64) as u64
        };
        let a = fold(
            self.a as u64 ^ seed,
            (self.a >> 64) as u64 ^ 0x9e37_79b9_7f4a_7c15,
        );
        let b = fold(self.b as u64 ^ a, (self.b >> 64) as u64 ^ 0xd1b5_4a32_d192_ed03);
        fold(b ^ u64::from(self.ports) ^ (self.kind as u64) << 40, seed | 1)
    }
}

/// A place in the table. It may be taken by another flow once its own has ended: see [`Table::get`](super::table::Table::get).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Slot {
    pub index: u32,
    /// Number of the flow.
    pub id: u64,
}
