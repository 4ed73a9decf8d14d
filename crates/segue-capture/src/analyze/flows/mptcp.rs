//! MPTCP (RFC 8684; version 0: RFC 6824): which connection a subflow is of, and where its bytes are in the connection's.

use super::key::{Key, KeyKind, Slot};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// What a TCP connection is to MPTCP.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Subflow {
    /// The connection, once it is known.
    parent: Option<Slot>,
    /// Its `a` is the connection's `b`.
    reversed: bool,
    /// Sequence number of the SYN, by direction.
    isn: [Option<u32>; 2],
    mappings: [[Option<Mapping>; 2]; 2],
}

/// A stretch of the subflow's bytes, and where they are in the connection's (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mapping {
    seq: u32,
    dsn: u32,
    len: u32,
}

impl Subflow {
    /// A SYN of this direction.
    pub(super) const fn syn(&mut self, direction: usize, seq: u32) {
        self.isn[direction] = Some(seq);
    }

    /// It is the first of this connection.
    pub(super) const fn begins(&mut self, connection: Slot) {
        self.parent = Some(connection);
    }

    /// It is a further one of this connection, the other way round or not. Whether that is new.
    pub(super) const fn joins(&mut self, connection: Slot, reversed: bool) -> bool {
        let is_new = self.parent.replace(connection).is_none();
        if is_new {
            self.reversed = reversed;
        }
        is_new
    }

    /// The connection, once it is known.
    pub(super) const fn connection(&self) -> Option<Slot> {
        self.parent
    }

    /// The connection and the direction of it that one of the subflow is.
    pub(in super::super) fn whole(&self, direction: usize) -> Option<(Slot, usize)> {
        let direction = if self.reversed { 1 - direction } else { direction };
        Some((self.parent?, direction))
    }

    /// A mapping arrived on a segment that begins with `seq`; `ssn` counts from the SYN.
    pub(in super::super) fn map(
        &mut self,
        direction: usize,
        seq: u32,
        dsn: u64,
        ssn: u32,
        len: u16,
        fin: bool,
    ) {
        // the length covers a DATA_FIN, which is no data
        let len = u32::from(len).saturating_sub(u32::from(fin));
        if len == 0 {
            return;
        }
        let isn = *self.isn[direction].get_or_insert(seq.wrapping_sub(ssn));
        let mapping = Mapping {
            seq: isn.wrapping_add(ssn),
            dsn: dsn as u32,
            len,
        };
        let [last, before] = &mut self.mappings[direction];
        if *last != Some(mapping) {
            *before = last.replace(mapping);
        }
    }

    /// Data sequence number, modulo 2^32, of a segment's first byte.
    pub(in super::super) fn dsn(&self, direction: usize, seq: u32) -> Option<u32> {
        let covering = self.mappings[direction].iter().flatten();
        let mut covering = covering.map(|m| (m, seq.wrapping_sub(m.seq)));
        let (mapping, into) = covering.find(|(m, into)| *into < m.len)?;
        Some(mapping.dsn.wrapping_add(into))
    }
}

/// Token of a key: the first 32 bits of its digest (RFC 8684 section 3.2; SHA-1 in version 0).
pub(in super::super) fn token(key: u64, version: u8) -> u32 {
    let bytes = key.to_be_bytes();
    let first = |digest: &[u8]| digest.first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
    if version == 0 {
        first(&Sha1::digest(bytes))
    } else {
        first(&Sha256::digest(bytes))
    }
}

/// Under which a connection is known to those who join it: the token, and which end's it is.
pub(in super::super) fn token_key(token: u32) -> Key {
    Key {
        kind: KeyKind::MptcpToken,
        a: u128::from(token),
        b: 0,
        ports: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_covers_the_segments_after_the_one_that_carries_it() {
        let mut subflow = Subflow::default();
        subflow.syn(0, 999);
        subflow.map(0, 1000, 77, 1, 3000, false);
        assert_eq!(subflow.dsn(0, 1000), Some(77));
        assert_eq!(subflow.dsn(0, 3999), Some(3076));
        assert_eq!(subflow.dsn(0, 4000), None);
        subflow.map(0, 4000, 5_000_000_000, 3001, 101, true);
        assert_eq!(subflow.dsn(0, 4099), Some(5_000_000_099u64 as u32));
        assert_eq!(subflow.dsn(0, 4100), None);
        // a retransmission under the mapping before
        assert_eq!(subflow.dsn(0, 1500), Some(577));
        assert_eq!(subflow.dsn(1, 1500), None);
    }

    #[test]
    fn tokens_are_the_digests_of_keys() {
        // sha256 and sha1 of eight zero bytes begin with these
        assert_eq!(token(0, 1), 0xaf55_70f5);
        assert_eq!(token(0, 0), 0x05fe_4057);
    }
}
