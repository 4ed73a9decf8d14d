//! How much of what comes is held (RFC 9260 section 6.2).
//!
//! A peer that keeps to the window counts its user bytes alone (section 6.2.1). It sends them in chunks of as few bytes as it
//! likes, and does not know what a chunk costs here: of a window of so many bytes, that many chunks. What goes beyond what is
//! offered may be dropped, to be sent again; but for what such a peer did nobody is aborted.

use super::reassembly::CHUNK_OVERHEAD;

/// Whether there is room for a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    Enough,
    None,
    /// Nor will there be any.
    Never,
}

/// What is held of a receive buffer, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub buffer: usize,
    /// Of the user.
    pub user: usize,
    /// As the receive window counts it: with what the chunks cost beyond as much as the buffer.
    pub counted: usize,
}

impl Use {
    /// Whether the window is closed.
    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.counted >= self.buffer
    }

    /// Whether what fills a gap is taken though the window is closed.
    pub(super) fn has_room_in_gaps(self, len: usize) -> bool {
        self.counted + len <= 2 * self.buffer
    }

    /// Whether what is next in order is taken, without which the user has nothing to take: if no more is missing, while the window
    /// is open, for then a message is longer than the buffer; if more is missing, while user bytes fit as what fills a gap
    /// does, and up to [`MOST_HELD`] times the buffer in all.
    ///
    /// Of a peer that keeps to the window that is always so, if fragments that adjoin are joined: before what is next there is but
    /// one message that is not complete, and behind it no more was taken than twice the buffer.
    pub(super) fn has_room_for_next(self, len: usize, has_gap: bool) -> bool {
        if has_gap {
            self.user + len <= 2 * self.buffer && self.counted + len <= MOST_HELD * self.buffer
        } else {
            !self.is_full()
        }
    }

    /// Checks that it is within its limits, and that nobody who kept to the window has no room for what is next, without which
    /// the user has nothing to take if `waits` says so.
    pub(super) fn check(self, waits: bool) -> Result<(), String> {
        let Self {
            buffer,
            user,
            counted,
        } = self;
        if user > 2 * buffer + LONGEST_CHUNK || counted > MOST_HELD * buffer + LONGEST_CHUNK {
            return Err(format!(
                "{user} bytes held, counted as {counted}, in a receive buffer of {buffer}"
            ));
        }
        let kept_to_window = user <= buffer && counted <= 2 * buffer + CHUNK_OVERHEAD;
        if kept_to_window && waits && !self.has_room_for_next(1, true) {
            return Err(format!(
                "no room for what is next with {user} bytes held, counted as {counted}"
            ));
        }
        Ok(())
    }
}

/// Times the receive buffer that is held, as the receive window counts it, whatever a peer does; beside the buffer that the
/// chunks' costs are forgiven, and the chunk that came last.
const MOST_HELD: usize = 4;
/// Bytes that a chunk is counted with, at most.
const LONGEST_CHUNK: usize = u16::MAX as usize + CHUNK_OVERHEAD;
