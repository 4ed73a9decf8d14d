//! What is to be remembered of a packet while it is worked off, and taken from.

use segue_wire::sctp::{COMMON_HEADER_LEN, Chunk, SctpPacket};

/// What a packet was like as it came.
#[derive(Clone, Copy, Debug)]
pub(in crate::sctp) struct Came {
    /// Its length, bytes.
    pub len: usize,
    /// Bytes of SCTP that it may be answered with, if they are limited.
    pub limit: Option<usize>,
}

impl Came {
    /// Of a packet as it was parsed: nobody knows what was passed over in chunks other than DATA.
    #[inline]
    pub(super) fn of(packet: &SctpPacket, limit: Option<usize>) -> Self {
        let mut len = COMMON_HEADER_LEN;
        for chunk in &packet.chunks {
            let Chunk::Data(_) = chunk else {
                return Self::unknown(limit);
            };
            len += chunk.buffer_len();
        }
        Self { len, limit }
    }

    /// Of one of which nobody knows how long it was.
    #[inline]
    pub(in crate::sctp) fn unknown(limit: Option<usize>) -> Self {
        Self {
            len: usize::MAX,
            limit,
        }
    }
}
