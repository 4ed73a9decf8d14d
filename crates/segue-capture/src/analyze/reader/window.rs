//! A stretch of a file in memory, and what both formats read in it.

use crate::analyze::ahead::{Ahead, Chunk, ROOM};
use crate::analyze::source::{Source, words};
use crate::analyze::unpack::Bomb;
use crate::pcapng::Direction;
use std::io::ErrorKind;

/// Most bytes that a record may take: beyond it, a length field is taken to be damaged. Packets of captures with segment
/// offload are up to 512 kB.
pub(super) const MAX_RECORD: usize = 16 << 20;

/// Read at a time.
const CHUNK: usize = 1 << 20;

/// Interfaces that a file may describe.
pub(super) const MAX_INTERFACES: usize = 4096;

/// Where a packet lies in the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Located {
    pub interface: u32,
    pub time_ns: u64,
    pub direction: Option<Direction>,
    pub start: usize,
    pub end: usize,
    pub wire_len: u32,
}

/// What a format's reader found next.
pub(super) enum Step {
    Packet(Located),
    /// Something that is no packet; the buffer is past it.
    Other,
    End,
}

/// Why a format's reader finds nothing next.
#[derive(Debug)]
pub(super) enum Stop {
    /// There is nothing more for now: the same is asked again later.
    Pending,
    /// The file cannot be read on: what was read before is worth having.
    Broken(String),
    /// It is not to be read at all.
    Refused(String),
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

impl From<&str> for Stop {
    fn from(reason: &str) -> Self {
        Self::Broken(reason.to_owned())
    }
}

impl From<&std::io::Error> for Stop {
    fn from(error: &std::io::Error) -> Self {
        if error.kind() == ErrorKind::WouldBlock {
            return Self::Pending;
        }
        match error.get_ref().and_then(|e| e.downcast_ref::<Bomb>()) {
            Some(bomb) => Self::Refused(bomb.to_string()),
            None => Self::Broken(words(error)),
        }
    }
}

/// Where the bytes come from.
pub(in crate::analyze) enum Bytes {
    /// They are read when they are needed.
    Here(Source),
    /// A thread has read them by then.
    Ahead(Ahead),
}

/// A stretch of the file in memory.
pub(super) struct Window {
    source: Bytes,
    buffer: Vec<u8>,
    /// Unread bytes are `buffer[begin..end]`.
    begin: usize,
    end: usize,
    /// Of `begin` in the file.
    offset: u64,
    at_end: bool,
}

impl Window {
    pub(super) fn new(source: Bytes) -> Self {
        let buffer = match &source {
            Bytes::Here(_) => vec![0; CHUNK],
            Bytes::Ahead(_) => Vec::new(),
        };
        Self {
            source,
            buffer,
            begin: 0,
            end: 0,
            offset: 0,
            at_end: false,
        }
    }

    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) const fn available(&self) -> usize {
        self.end - self.begin
    }

    /// Tries to have `len` unread bytes in memory; there are fewer only where the file ends.
    pub(super) fn want(&mut self, len: usize) -> Result<(), Stop> {
        if self.available() >= len {
            return Ok(());
        }
        self.fill(len)
    }

    #[cold]
    fn fill(&mut self, len: usize) -> Result<(), Stop> {
        while self.available() < len && !self.at_end {
            let read = match &self.source {
                Bytes::Here(_) => self.read(len),
                Bytes::Ahead(ahead) => match ahead.next() {
                    Ok(Some(chunk)) => {
                        self.take(chunk);
                        Ok(())
                    }
                    Ok(None) => {
                        self.at_end = true;
                        Ok(())
                    }
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = read
                && error.kind() != ErrorKind::Interrupted
            {
                self.at_end = error.kind() != ErrorKind::WouldBlock;
                return Err(Stop::from(&error));
            }
        }
        Ok(())
    }

    /// Reads more behind what there is, of which there are to be `len` bytes in the end.
    fn read(&mut self, len: usize) -> std::io::Result<()> {
        self.move_to_front(len);
        let Bytes::Here(source) = &mut self.source else {
            return Ok(());
        };
        let count = source.read(&mut self.buffer[self.end..])?;
        self.end += count;
        self.at_end = count == 0;
        Ok(())
    }

    /// Takes a chunk that was read ahead: what is left of the one before is put before it, if that is not too much.
    fn take(&mut self, mut chunk: Chunk) {
        let left = self.available();
        if left > ROOM {
            self.move_to_front(left + chunk.len);
            let new = &chunk.buffer[ROOM..ROOM + chunk.len];
            self.buffer[left..left + chunk.len].copy_from_slice(new);
            self.end = left + chunk.len;
        } else {
            chunk.buffer[ROOM - left..ROOM].copy_from_slice(&self.buffer[self.begin..self.end]);
            core::mem::swap(&mut self.buffer, &mut chunk.buffer);
            (self.begin, self.end) = (ROOM - left, ROOM + chunk.len);
        }
        if let Bytes::Ahead(ahead) = &self.source {
            ahead.give_back(chunk.buffer);
        }
    }

    /// Moves what is unread to the front of the buffer, which has room for so much then.
    fn move_to_front(&mut self, len: usize) {
        if self.begin > 0 {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        if len > self.buffer.len() {
            self.buffer.resize(len.next_multiple_of(CHUNK), 0);
        }
    }

    /// Unread bytes, if they are in memory.
    pub(super) fn peek(&self, at: usize, len: usize) -> Option<&[u8]> {
        let start = self.begin.checked_add(at)?;
        let end = start.checked_add(len)?;
        if end > self.end {
            None
        } else {
            self.buffer.get(start..end)
        }
    }

    /// Takes bytes that are in memory; gives where they begin.
    pub(super) fn skip(&mut self, len: usize) -> usize {
        let start = self.begin;
        let len = len.min(self.available());
        self.begin += len;
        self.offset += len as u64;
        start
    }

    /// Passes over bytes that need not fit into memory: `left` is how many are left. Whether there are as many.
    pub(super) fn pass_over(&mut self, left: &mut u64) -> Result<bool, Stop> {
        loop {
            let step = (self.available() as u64).min(*left) as usize;
            self.skip(step);
            *left -= step as u64;
            if *left == 0 {
                return Ok(true);
            }
            self.want(1)?;
            if self.available() == 0 {
                return Ok(false);
            }
        }
    }

    /// Bytes taken before, as long as nothing was read since.
    pub(super) fn taken(&self, start: usize, end: usize) -> &[u8] {
        self.buffer.get(start..end).unwrap_or_default()
    }
}

/// No time is later, in nanoseconds: the year 2262. So the difference of any two has room in 64 bits with a sign, and
/// their sum, or that of one and a window, without.
pub(in crate::analyze) const LATEST_NS: u64 = i64::MAX as u64;

/// Time in nanoseconds of a count of units, and of what a second has of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resolution {
    /// A unit is so many nanoseconds.
    Nanoseconds(u64),
    /// A second has so many units, 10^n or 2^n.
    PerSecond(u64),
}

impl Resolution {
    pub(super) const MICROSECONDS: Self = Self::Nanoseconds(1000);

    pub(super) fn nanoseconds(self, units: u64, offset_s: i64) -> u64 {
        let since = match self {
            Self::Nanoseconds(each) => units.checked_mul(each),
            Self::PerSecond(per_second) => {
                let wide = u128::from(units) * 1_000_000_000 / u128::from(per_second.max(1));
                u64::try_from(wide).ok()
            }
        };
        let offset = offset_s.saturating_mul(1_000_000_000);
        let time = since.unwrap_or(u64::MAX).saturating_add_signed(offset);
        time.min(LATEST_NS)
    }
}

pub(super) fn u16_at(bytes: &[u8], at: usize, big: bool) -> Option<u16> {
    let b = bytes.get(at..)?.first_chunk()?;
    Some(if big {
        u16::from_be_bytes(*b)
    } else {
        u16::from_le_bytes(*b)
    })
}

pub(super) fn u32_at(bytes: &[u8], at: usize, big: bool) -> Option<u32> {
    let b = bytes.get(at..)?.first_chunk()?;
    Some(if big {
        u32::from_be_bytes(*b)
    } else {
        u32::from_le_bytes(*b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_time_are_nanoseconds_with_an_offset() {
        assert_eq!(Resolution::MICROSECONDS.nanoseconds(7, 0), 7000);
        assert_eq!(Resolution::Nanoseconds(1).nanoseconds(7, 2), 2_000_000_007);
        assert_eq!(
            Resolution::Nanoseconds(1000).nanoseconds(3_000_000, -1),
            2_000_000_000
        );
        assert_eq!(Resolution::Nanoseconds(1).nanoseconds(7, -1), 0);
        assert_eq!(Resolution::PerSecond(1024).nanoseconds(512, 0), 500_000_000);
        assert_eq!(
            Resolution::PerSecond(1 << 40).nanoseconds(3 << 40, 1),
            4_000_000_000
        );
        assert_eq!(Resolution::PerSecond(0).nanoseconds(2, 0), 2_000_000_000);
        for late in [Resolution::Nanoseconds(1000), Resolution::PerSecond(1)] {
            assert_eq!(late.nanoseconds(u64::MAX, 0), LATEST_NS);
        }
        assert_eq!(Resolution::Nanoseconds(1).nanoseconds(1, i64::MAX), LATEST_NS);
    }

    #[test]
    fn numbers_are_read_in_either_byte_order() {
        let bytes = [1, 2, 3, 4, 5];
        assert_eq!(
            (u16_at(&bytes, 1, true), u16_at(&bytes, 1, false)),
            (Some(0x203), Some(0x302))
        );
        assert_eq!(u32_at(&bytes, 1, true), Some(0x0203_0405));
        assert_eq!(u32_at(&bytes, 1, false), Some(0x0504_0302));
        assert_eq!((u16_at(&bytes, 4, true), u32_at(&bytes, 2, true)), (None, None));
    }
}
