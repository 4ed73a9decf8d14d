//! Chunks of the scripted peer.

use bytes::Bytes;
use segue_wire::sctp::{Chunk, DataChunk, GapAckBlock, Init, Sack};
use segue_wire::{Data, Ssn, Tsn};

/// The peer's tag.
pub const PEER_TAG: u32 = 0x5e9e_0001;

/// TSN `n` of the peer, counted from its initial one, which is 0.
#[must_use]
pub fn peer_tsn(n: u32) -> Tsn {
    // near the end of the number space, so that every trace wraps
    Tsn(u32::MAX - 1).add(n)
}

/// The peer's INIT, without parameters.
#[must_use]
pub fn init() -> Init {
    Init {
        initiate_tag: PEER_TAG,
        a_rwnd: 100_000,
        outbound_streams: 8,
        inbound_streams: 8,
        initial_tsn: peer_tsn(0),
        parameters: Vec::new(),
    }
}

/// A whole message in one chunk with TSN `n`: message `n` of stream 0, four bytes.
#[must_use]
pub fn data_chunk(n: u32) -> DataChunk {
    DataChunk {
        tsn: peer_tsn(n),
        stream_id: 0,
        ssn: Ssn(n as u16),
        payload_protocol_id: n,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: false,
        data: Data::Bytes(Bytes::from_static(b"data")),
    }
}

/// [`data_chunk`] as a chunk.
#[must_use]
pub fn data(n: u32) -> Chunk {
    Chunk::Data(data_chunk(n))
}

/// A DATA chunk of `len` bytes with TSN `n`.
#[must_use]
pub fn data_of(n: u32, len: usize) -> Chunk {
    Chunk::Data(DataChunk {
        data: Data::Bytes(vec![0xa5; len].into()),
        ..data_chunk(n)
    })
}

/// A SACK of everything up to `cumulative_tsn_ack`.
#[must_use]
pub fn sack(cumulative_tsn_ack: Tsn) -> Chunk {
    sack_with_gaps(cumulative_tsn_ack, 100_000, &[])
}

/// A SACK with gap ack blocks, as offsets from the cumulative TSN ack.
#[must_use]
pub fn sack_with_gaps(cumulative_tsn_ack: Tsn, a_rwnd: u32, gaps: &[(u16, u16)]) -> Chunk {
    Chunk::Sack(Sack {
        cumulative_tsn_ack,
        a_rwnd,
        gap_ack_blocks: gaps
            .iter()
            .map(|&(start, end)| GapAckBlock { start, end })
            .collect(),
        duplicate_tsns: Box::default(),
        data_packets: 0,
    })
}

/// An ABORT without causes.
#[must_use]
pub fn abort(reflected_tag: bool) -> Chunk {
    Chunk::Abort {
        reflected_tag,
        causes: Vec::new(),
    }
}

/// Parameters that a peer with extension chunk types `types` adds to its INIT.
#[must_use]
pub fn extensions(types: &'static [u8]) -> segue_wire::sctp::Parameter {
    segue_wire::sctp::Parameter::SupportedExtensions(Bytes::from_static(types))
}
