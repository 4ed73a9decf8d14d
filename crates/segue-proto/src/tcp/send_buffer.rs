//! What the application has given and the peer has not acknowledged.
//!
//! Synthetic data that continues what is there already costs nothing, so that a bulk sender's whole buffer is one piece.

use bytes::Bytes;
use segue_wire::Data;
use std::collections::VecDeque;

/// The bytes from [`start`](Self::start) to [`end`](Self::end) of the stream.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// In order and without gaps.
    pieces: VecDeque<Piece>,
    start: u64,
    end: u64,
}

#[derive(Debug)]
struct Piece {
    /// Position of its first byte in the stream.
    at: u64,
    len: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Bytes(Bytes),
    /// Of the synthetic sequence, from this offset on.
    Synthetic(u64),
}

impl Piece {
    fn end(&self) -> u64 {
        self.at + self.len
    }

    /// `len` bytes from position `from` on, which it has.
    fn slice(&self, from: u64, len: u64) -> Data {
        let skip = from - self.at;
        match &self.content {
            Content::Bytes(bytes) => Data::Bytes(bytes.slice(skip as usize..(skip + len) as usize)),
            Content::Synthetic(offset) => Data::Synthetic {
                offset: offset.wrapping_add(skip),
                len: len as u32,
            },
        }
    }
}

impl SendBuffer {
    /// Empty, at a position of the stream.
    pub fn new(start: u64) -> Self {
        Self {
            pieces: VecDeque::new(),
            start,
            end: start,
        }
    }

    /// Position behind the last byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Bytes held.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Appends data.
    pub fn push(&mut self, data: Data) {
        let len = data.len() as u64;
        if len == 0 {
            return;
        }
        let at = self.end;
        self.end += len;
        let content = match data {
            Data::Bytes(bytes) => Content::Bytes(bytes),
            Data::Synthetic { offset, .. } => {
                if let Some(Piece {
                    len: own,
                    content: Content::Synthetic(from),
                    ..
                }) = self.pieces.back_mut()
                    && from.wrapping_add(*own) == offset
                {
                    *own += len;
                    return;
                }
                Content::Synthetic(offset)
            }
        };
        self.pieces.push_back(Piece { at, len, content });
    }

    /// Everything before `position` has arrived.
    pub fn release(&mut self, position: u64) {
        self.start = position.clamp(self.start, self.end);
        while self.pieces.front().is_some_and(|p| p.end() <= self.start) {
            self.pieces.pop_front();
        }
    }

    /// The offset in the synthetic sequence of the `len` bytes from position `from` on, if that is what they are and all
    /// that the buffer holds, as in a bulk transfer. Of no bytes it is zero.
    #[inline]
    pub fn synthetic_offset(&self, from: u64, len: u32) -> Option<u64> {
        if len == 0 {
            return Some(0);
        }
        match self.pieces.front() {
            Some(Piece {
                at,
                content: Content::Synthetic(offset),
                ..
            }) if self.pieces.len() == 1 => Some(offset.wrapping_add(from - at)),
            _ => None,
        }
    }

    /// The `len` bytes from position `from` on.
    ///
    /// # Panics
    /// If it does not have them.
    pub fn slice(&self, from: u64, len: u32) -> Data {
        let len = u64::from(len);
        if len == 0 {
            return Data::Bytes(Bytes::new());
        }
        let index = match self.pieces.len() {
            1 => 0,
            _ => self.pieces.partition_point(|p| p.end() <= from),
        };
        let piece = &self.pieces[index];
        if from + len <= piece.end() {
            return piece.slice(from, len);
        }
        let mut bytes = Vec::with_capacity(len as usize);
        let mut at = from;
        for piece in self.pieces.range(index..) {
            let part = (from + len).min(piece.end()) - at;
            piece.slice(at, part).emit(&mut bytes);
            at += part;
            if at == from + len {
                break;
            }
        }
        Data::Bytes(Bytes::from(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn synthetic(offset: u64, len: u32) -> Data {
        Data::Synthetic { offset, len }
    }

    #[test]
    fn a_bulk_transfer_is_one_piece() {
        let mut buffer = SendBuffer::new(1);
        for n in 0..1000 {
            buffer.push(synthetic(n * 100, 100));
        }
        assert_eq!(
            (buffer.pieces.len(), buffer.len(), buffer.end()),
            (1, 100_000, 100_001)
        );
        buffer.release(50_001);
        assert_eq!(buffer.slice(50_001, 1440), synthetic(50_000, 1440));
        assert_eq!(buffer.len(), 50_000);
        buffer.release(100_001);
        assert!(buffer.pieces.is_empty());
    }

    #[test]
    fn a_segment_over_several_pieces_has_the_bytes_of_all() {
        let mut buffer = SendBuffer::new(1);
        buffer.push(Data::Bytes(Bytes::from_static(b"abc")));
        buffer.push(synthetic(0, 4));
        buffer.push(Data::Bytes(Bytes::from_static(b"xyz")));
        let mut expected = b"bc".to_vec();
        synthetic(0, 4).emit(&mut expected);
        expected.push(b'x');
        assert_eq!(buffer.slice(2, 7), Data::Bytes(Bytes::from(expected)));
        buffer.release(9);
        assert_eq!(buffer.slice(9, 2), Data::Bytes(Bytes::from_static(b"yz")));
    }
}
