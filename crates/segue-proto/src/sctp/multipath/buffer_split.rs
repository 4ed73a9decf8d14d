//! Buffer splitting (Adhari, Dreibholz, Becke, Rathgeb and Tüxen 2011; Dreibholz, Becke, Pulinthanath and Rathgeb 2010): no
//! path may fill a buffer that others need as well.
//!
//! With n paths, a path gets an n-th of the buffer. What counts is what was sent on it and is not acknowledged
//! cumulatively: the sender keeps it for a retransmission, and the receiver, if it came out of order, until the gap before it is
//! closed. A path with nothing of the kind may always send one chunk.

use super::{BufferSplit, Concurrent};
use crate::sctp::ids::PathId;
use crate::sctp::sender::chunk::ChunkState;
use crate::sctp::sender::flight::Flight;
use crate::sctp::sender::strategy::lent::Lent;

impl BufferSplit {
    /// Whether one of `paths` paths may send `len` more bytes, with these send and receive buffers.
    fn allows(self, held: &Held, len: u64, (send_buffer, receive_buffer): (u64, u64), paths: u64) -> bool {
        let fits = |used: u64, buffer: u64| used == 0 || used + len <= buffer / paths;
        let sender = matches!(self, Self::Sender | Self::Both);
        let receiver = matches!(self, Self::Receiver | Self::Both);
        (!sender || fits(held.on_path, send_buffer))
            && (!receiver || fits(held.on_path_at_peer, receive_buffer))
    }
}

/// User data that was sent and is not acknowledged cumulatively, bytes.
#[derive(Clone, Copy, Default)]
struct Held {
    /// Of the path in question.
    on_path: u64,
    /// Of the same, what is under way or in the receive buffer.
    on_path_at_peer: u64,
    /// Of all paths, what the peer holds out of order.
    gap_acked: u64,
}

impl Held {
    /// That of `path`.
    fn of(flight: &Flight, path: PathId) -> Self {
        let mut held = Self::default();
        for (_, sent) in flight.iter() {
            let len = u64::from(sent.len());
            let mine = if sent.path() == Some(path) { len } else { 0 };
            match sent.state() {
                ChunkState::Abandoned => {}
                ChunkState::Marked(_) => held.on_path += mine,
                ChunkState::Outstanding { .. } | ChunkState::GapAcked { .. } => {
                    if sent.is_gap_acked() {
                        held.gap_acked += len;
                    }
                    held.on_path += mine;
                    held.on_path_at_peer += mine;
                }
            }
        }
        held
    }
}

impl Concurrent {
    /// Whether `path` may send `len` more bytes of new user data as far as its part of the buffers goes.
    pub(super) fn fits_its_share(&self, lent: &Lent<'_>, path: PathId, len: u32) -> bool {
        let split = self.settings.buffer_split;
        if split == BufferSplit::None {
            return true;
        }
        let paths = lent.peer.usable_paths().count() as u64;
        if paths < 2 {
            return true;
        }
        let held = Held::of(lent.flight, path);
        let outstanding = u64::from(lent.flight.outstanding_bytes());
        let receive_buffer = u64::from(lent.flight.peer_rwnd()) + outstanding + held.gap_acked;
        let buffers = (u64::from(lent.config.send_buffer), receive_buffer);
        split.allows(&held, u64::from(len), buffers, paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_its_part_of_the_buffers_that_are_split_and_always_one_chunk() {
        let held = |on_path, on_path_at_peer| Held {
            on_path,
            on_path_at_peer,
            gap_acked: 0,
        };
        let allows = |split: BufferSplit, held: &Held, len| split.allows(held, len, (40_000, 20_000), 2);
        use BufferSplit as S;
        // marked for retransmission: in the send buffer alone
        let much = held(19_000, 9000);
        for (split, most) in [
            (S::None, 1 << 20),
            (S::Sender, 1000),
            (S::Receiver, 1000),
            (S::Both, 1000),
        ] {
            assert!(allows(split, &much, most), "{split:?}");
            assert!(split == S::None || !allows(split, &much, most + 1), "{split:?}");
        }
        let little_at_peer = held(19_500, 0);
        assert!(allows(S::Receiver, &little_at_peer, 15_000));
        assert!(!allows(S::Both, &little_at_peer, 1000));
        assert!(allows(S::Both, &held(0, 0), 1 << 20));
    }
}
