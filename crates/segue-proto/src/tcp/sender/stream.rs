//! The stream that is sent: SND.UNA and SND.NXT, what the user has given, and what it waits for.
//!
//! Numbers are *positions*, 64 bits wide and counted from the SYN, which is position 0: they never wrap. A sequence number
//! is a position plus ISS, modulo 2^32.

use crate::tcp::event::SendError;
use crate::tcp::send_buffer::SendBuffer;
use crate::time::{Duration, Instant};
use segue_wire::{Data, SeqNumber};

/// The stream of a sender.
#[derive(Debug)]
pub(super) struct Stream {
    iss: SeqNumber,
    /// SND.UNA.
    una: u64,
    /// SND.NXT.
    next: u64,
    buffer: SendBuffer,
    /// Bytes that the buffer takes.
    capacity: u32,
    /// A FIN goes behind the last byte.
    fin_queued: bool,
    /// Data up to here belongs to the round at hand.
    round_end: u64,
    /// Position behind the last segment that was not full.
    short_end: u64,
    /// Last time that data was sent.
    last_sent: Option<Instant>,
    /// Room that the user waits for.
    wanted: Option<u32>,
    /// The user is to be told when everything has arrived.
    dry_pending: bool,
    /// Since when it has never been empty, or what is in it in the making.
    busy_since: Option<Instant>,
}

/// What the user is to be told of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::tcp) struct Progress {
    /// There is the room again that the user waits for.
    pub writable: bool,
    /// Everything has arrived.
    pub dry: bool,
}

impl Stream {
    pub fn new(iss: SeqNumber, capacity: u32) -> Self {
        Self {
            iss,
            una: 0,
            next: 1,
            buffer: SendBuffer::new(1),
            capacity,
            fin_queued: false,
            round_end: 0,
            short_end: 0,
            last_sent: None,
            wanted: None,
            dry_pending: false,
            busy_since: None,
        }
    }

    /// SND.UNA.
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }

    /// SND.NXT.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Position behind the last byte of the user.
    #[inline]
    pub fn data_end(&self) -> u64 {
        self.buffer.end()
    }

    /// Position behind everything that is to be sent, FIN included.
    #[inline]
    pub fn end(&self) -> u64 {
        self.buffer.end() + u64::from(self.fin_queued)
    }

    /// A segment up to `end` has been sent that was not full.
    pub fn note_short(&mut self, end: u64) {
        self.short_end = end;
    }

    /// Whether a segment that was not full is not acknowledged.
    pub fn is_short_outstanding(&self) -> bool {
        self.short_end > self.una
    }

    /// Bytes of the user that were not sent.
    pub fn unsent_bytes(&self) -> u64 {
        self.buffer.end().saturating_sub(self.next)
    }

    /// Whether there is a FIN that was not sent.
    pub fn is_fin_unsent(&self) -> bool {
        self.fin_queued && self.next <= self.buffer.end()
    }

    /// Whether everything that is to be sent is acknowledged, FIN included.
    pub fn is_fin_acked(&self) -> bool {
        self.fin_queued && self.una == self.end()
    }

    /// Whether the user has closed.
    pub fn is_closing(&self) -> bool {
        self.fin_queued
    }

    /// Bytes that are held for the user.
    pub fn len(&self) -> u64 {
        self.buffer.len()
    }

    /// Bytes that there is room for.
    pub fn room(&self) -> u64 {
        u64::from(self.capacity).saturating_sub(self.buffer.len())
    }

    pub fn seq_of(&self, position: u64) -> SeqNumber {
        self.iss.add(position as u32)
    }

    /// Position of a sequence number of ours, near SND.UNA.
    pub fn position_of(&self, seq: SeqNumber) -> i64 {
        let distance = seq.distance_from(self.seq_of(self.una)) as i32;
        self.una as i64 + i64::from(distance)
    }

    /// Takes as much as there is room for. Returns the bytes taken.
    pub fn push(&mut self, data: &Data) -> Result<u32, SendError> {
        let len = (data.len() as u64).min(self.room()) as u32;
        if len < data.len() as u32 {
            self.wanted = Some(1);
        }
        if len == 0 {
            return if data.is_empty() {
                Ok(0)
            } else {
                Err(SendError::BufferFull)
            };
        }
        self.buffer.push(data.slice(0, len as usize));
        self.dry_pending = true;
        Ok(len)
    }

    /// Takes all of it or nothing. What is longer than the buffer is taken when that is empty.
    pub fn push_all(&mut self, data: Data) -> Result<(), SendError> {
        if data.len() as u64 > self.room() && self.buffer.len() > 0 {
            self.wanted = Some((data.len() as u32).min(self.capacity));
            return Err(SendError::BufferFull);
        }
        self.dry_pending |= !data.is_empty();
        self.buffer.push(data);
        Ok(())
    }

    /// A FIN goes behind what is there.
    pub fn close(&mut self) {
        self.fin_queued = true;
    }

    /// Everything before `ack` has arrived.
    pub fn acknowledge(&mut self, ack: u64) {
        self.una = ack;
        self.buffer.release(ack);
        if self.buffer.len() == 0 {
            self.busy_since = None;
        }
    }

    /// What the user gives next has been in the making since then.
    pub fn busy_from(&mut self, since: Instant) {
        self.busy_since.get_or_insert(since);
    }

    /// What the user has given may be sent from `now` on.
    #[inline]
    pub fn note_busy(&mut self, now: Instant) {
        if self.busy_since.is_none() && self.buffer.len() > 0 {
            self.busy_since = Some(now);
        }
    }

    /// Since when there has always been data that was not acknowledged.
    #[inline]
    pub fn busy_since(&self) -> Option<Instant> {
        self.busy_since
    }

    /// Everything before `end` is sent. Gives where that begins which was not.
    pub fn advance(&mut self, end: u64) -> u64 {
        core::mem::replace(&mut self.next, end)
    }

    /// Whether the user waits for room.
    pub fn is_room_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// What the user is to be told now: of room when a third of the buffer is free, as Linux does, so that it is not woken
    /// for every acknowledgement.
    pub fn progress(&mut self) -> Progress {
        let writable = self
            .wanted
            .is_some_and(|wanted| self.room() >= u64::from(wanted.max(self.capacity / 3)));
        if writable {
            self.wanted = None;
        }
        let dry = self.dry_pending && self.una >= self.buffer.end();
        if dry {
            self.dry_pending = false;
        }
        Progress { writable, dry }
    }

    /// A round begins with what is sent from now on.
    pub fn begin_round(&mut self) {
        self.round_end = self.next;
    }

    /// Whether the round at hand has arrived.
    pub fn is_round_over(&self) -> bool {
        self.una > self.round_end
    }

    /// Data is sent, and counts as use of the path.
    pub fn note_sent(&mut self, now: Instant) {
        self.last_sent = Some(now);
    }

    /// Last time that data was sent.
    pub fn last_sent(&self) -> Option<Instant> {
        self.last_sent
    }

    /// Since when nothing was sent.
    pub fn idle(&self, now: Instant) -> Option<Duration> {
        self.last_sent.map(|last| now.since(last))
    }

    /// See [`SendBuffer::synthetic_offset`].
    #[inline]
    pub fn synthetic_offset(&self, from: u64, len: u32) -> Option<u64> {
        self.buffer.synthetic_offset(from, len)
    }

    /// `len` bytes from position `from` on.
    pub fn slice(&self, from: u64, len: u32) -> Data {
        self.buffer.slice(from, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_busy_from_the_first_byte_until_all_is_acknowledged() {
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        let bytes = |offset: u64| Data::Synthetic { offset, len: 100 };
        let mut stream = Stream::new(SeqNumber(0), 1000);
        stream.note_busy(at(1));
        assert_eq!(stream.busy_since(), None, "nothing was given");
        stream.push_all(bytes(0)).unwrap();
        stream.note_busy(at(2));
        stream.push_all(bytes(100)).unwrap();
        stream.note_busy(at(3));
        stream.acknowledge(101);
        assert_eq!(stream.busy_since(), Some(at(2)));
        stream.acknowledge(201);
        assert_eq!(stream.busy_since(), None);
        // in the making since 4 s
        stream.busy_from(at(4));
        stream.push_all(bytes(200)).unwrap();
        stream.note_busy(at(5));
        assert_eq!(stream.busy_since(), Some(at(4)));
    }
}
