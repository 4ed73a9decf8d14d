//! What is received and kept must not keep the memory of all that it came in.

use bytes::Bytes;
use segue_wire::Data;
use segue_wire::sctp::{Chunk, SctpPacket};

/// Gives the data of a packet memory of its own: what carried it had more than SCTP in it.
pub(in crate::sctp) fn keep_nothing_else(packet: &mut SctpPacket) {
    for chunk in &mut packet.chunks {
        if let Chunk::Data(data) = chunk {
            keep_no_packet(&mut data.data, usize::MAX);
        }
    }
}

/// What is kept of a packet must not keep all of it: data that is less than half of its packet gets memory of its own, so
/// that what is held is at most twice what the receive window counts.
pub(super) fn keep_no_packet(data: &mut Data, packet_len: usize) {
    if let Data::Bytes(bytes) = data
        && bytes.len().saturating_mul(2) < packet_len
    {
        *bytes = Bytes::copy_from_slice(bytes);
    }
}
