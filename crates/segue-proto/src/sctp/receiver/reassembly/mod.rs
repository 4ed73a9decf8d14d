//! Messages from chunks: reassembly of fragments and order within streams (RFC 9260 sections 6.5, 6.6 and 6.9).

mod delivery;
mod fragments;
mod hold;
mod load;
#[cfg(test)]
mod tests;

pub(in crate::sctp) use hold::Until;

use crate::sctp::{Config, Message};
use core::hint::cold_path;
use delivery::Delivery;
use fragments::{Fragments, Place};
use hold::Held;
use load::Load;
use segue_wire::sctp::DataChunk;
use segue_wire::{Ssn, Tsn};
use smallvec::SmallVec;

/// Everything received and not yet taken by the user.
#[derive(Debug)]
pub(super) struct Reassembly {
    delivery: Delivery,
    fragments: Fragments,
    /// Chunks that wait for streams to be reset.
    held: Option<Box<Held>>,
    /// All that is in the three.
    load: Load,
}

impl Reassembly {
    pub(super) fn new(config: &Config) -> Self {
        let half = config.receive_buffer / 2;
        Self {
            delivery: Delivery::default(),
            fragments: Fragments::new(config.partial_delivery_point.unwrap_or(half) as usize),
            held: None,
            load: Load::default(),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.delivery.pop()?;
        self.load -= Load::of(&message.parts);
        Some(message)
    }

    pub(super) fn has_ready(&self) -> bool {
        self.delivery.has_ready()
    }

    /// What is held of a receive buffer: user bytes, and what the chunks cost beyond their user bytes as far as it exceeds
    /// as much again, so that a peer cannot have much memory kept by few bytes.
    pub(super) fn held_bytes(&self, buffer: usize) -> usize {
        self.load.bytes() + (self.load.chunks() * CHUNK_OVERHEAD).saturating_sub(buffer)
    }

    /// User bytes held, as they are counted.
    pub(super) fn user_bytes(&self) -> usize {
        self.load.bytes()
    }

    /// What is held, counted anew.
    fn recount(&self) -> Load {
        let messages = self.delivery.messages().flat_map(|m| &m.parts);
        let held = self.held.iter().flat_map(|h| h.chunks()).map(|c| &c.data);
        Load::of(messages.chain(self.fragments.parts()).chain(held))
    }

    /// Checks that what is held is what is counted, that it is something that can still be taken, and that no stream has gone
    /// on beyond chunks that wait for a reset.
    pub(super) fn check(&self) -> Result<(), String> {
        let (held, counted) = (self.recount(), self.load);
        if held != counted {
            return Err(format!("{held:?} received and held, counted as {counted:?}"));
        }
        self.delivery.check()?;
        self.fragments
            .check(self.held.as_ref().and_then(|held| held.first()))
    }

    /// Takes a chunk whose TSN is new.
    #[inline]
    pub(super) fn insert(&mut self, chunk: DataChunk) {
        self.load += Load::of([&chunk.data]);
        let chunk = match &mut self.held {
            None => chunk,
            Some(held) => {
                cold_path();
                match held.keep(chunk) {
                    Some(chunk) => chunk,
                    None => return,
                }
            }
        };
        if !(chunk.beginning && chunk.ending) {
            self.insert_fragment(chunk);
            return;
        }
        let message = Message {
            stream_id: chunk.stream_id,
            payload_protocol_id: chunk.payload_protocol_id,
            unordered: chunk.unordered,
            first: true,
            last: true,
            parts: SmallVec::from_buf([chunk.data]),
        };
        self.deliver(chunk.ssn, message);
    }

    /// Begins to deliver an incomplete message, whatever its length: the buffer is full and nothing else can make room.
    /// Returns whether there was one.
    pub(super) fn deliver_in_parts(&mut self) -> bool {
        let delivery = &self.delivery;
        let part = self
            .fragments
            .begin_delivery_in_parts(|place| is_in_turn(delivery, place));
        let begins = part.is_some();
        if let Some(part) = part {
            self.delivery.deliver_part(part);
        }
        begins
    }

    /// Has the fragments that are held cost as little as they can: those that adjoin become one.
    pub(super) fn join_parts(&mut self) {
        self.load -= Load::of_chunks(self.fragments.join_parts());
    }

    /// The peer gave up what is missing up to `new_cumulative_tsn` (RFC 3758 section 3.6): parts of messages that lack
    /// it go, and the order of each stream in `skipped` goes on after the stream sequence number given with it. While chunks
    /// wait that come before it in their streams, so does this.
    ///
    /// Returns the stream of the message that was being delivered in parts, if it went.
    pub(super) fn forward(
        &mut self,
        new_cumulative_tsn: Tsn,
        skipped: impl Iterator<Item = (u16, Ssn)>,
    ) -> Option<u16> {
        let Some(held) = &mut self.held else {
            return self.pass_over(new_cumulative_tsn, skipped);
        };
        let skipped = held.forward(new_cumulative_tsn, skipped)?;
        self.pass_over(new_cumulative_tsn, skipped)
    }

    /// Keeps what comes after a TSN and is to wait, until [`release`](Self::release). What was kept until now is kept on,
    /// or taken in, as this has it.
    ///
    /// This, and what takes in what was kept, return as [`forward`](Self::forward) does.
    pub(super) fn hold(&mut self, after: Tsn, until: Until) -> Option<u16> {
        let former = self.held.replace(Box::new(Held::new(after, until)))?;
        let (chunks, forwarded) = former.into_parts();
        self.insert_again(chunks);
        forwarded.and_then(|f| self.forward(f.up_to(), f.skipped()))
    }

    /// Whether chunks wait for a reset of the association.
    pub(super) fn awaits_association_reset(&self) -> bool {
        self.held.as_ref().is_some_and(|h| h.awaits_association_reset())
    }

    /// Takes in what was kept.
    pub(super) fn release(&mut self) -> Option<u16> {
        let (chunks, forwarded) = self.held.take()?.into_parts();
        self.insert_again(chunks);
        forwarded.and_then(|f| self.pass_over(f.up_to(), f.skipped()))
    }

    /// The buffer is full of what waits for a reset of the association, and the peer may carry that out only when all that
    /// it has sent is acknowledged (RFC 6525 section 5.2.4): takes in, in order and up to `cumulative`, before which nothing is
    /// missing, what goes on where its stream is. A stream that begins at 0 where it is at something else was reset. Of one
    /// that is at 0 nobody knows, but it goes on at 1 in both cases.
    ///
    /// Returns whether something still waits, and as [`forward`](Self::forward) does.
    pub(super) fn take_what_goes_on(&mut self, cumulative: Tsn) -> (bool, Option<u16>) {
        let Some(mut held) = self.held.take() else {
            return (false, None);
        };
        while let Some(chunk) = held.take_what_goes_on(cumulative, |id| self.delivery.next_ssn(id)) {
            if !chunk.unordered {
                // nothing, but where it goes on behind what was given up
                self.delivery.skip_to(chunk.stream_id, chunk.ssn.previous());
            }
            self.insert_again(core::iter::once(chunk));
        }
        let waits = held.chunks().next().is_some();
        let settled = held.settled();
        self.held = Some(held);
        (waits, settled.and_then(|tsn| self.give_up_to(tsn)))
    }

    /// Takes in what was kept, and has all streams begin again between what was sent before `next_tsn` and the rest.
    pub(super) fn release_around(&mut self, next_tsn: Tsn) -> [Option<u16>; 2] {
        let Some(held) = self.held.take() else {
            self.delivery.reset_streams(&[]);
            return [None; 2];
        };
        let around = held.split_at(next_tsn);
        self.insert_again(around.before.into_iter());
        let before = around.forwarded_before.and_then(|tsn| self.give_up_to(tsn));
        self.delivery.reset_streams_but(around.begun.into_iter());
        self.insert_again(around.after.into_iter());
        let forwarded = around.forwarded_after;
        let after = forwarded.and_then(|f| self.pass_over(f.up_to(), f.skipped()));
        [before, after]
    }

    /// The streams named, or all if none is, begin again at 0; what still waits for their old order is delivered.
    pub(super) fn reset_streams(&mut self, streams: &[u16]) {
        self.delivery.reset_streams(streams);
    }

    /// All streams and the TSNs begin again; parts of messages go.
    pub(super) fn begin_anew(&mut self) -> Option<u16> {
        // what was kept was sent after a reset of its streams, and before this one
        if let Some(held) = &self.held {
            self.delivery.reset_streams(held.streams());
        }
        let cut_short = self.release();
        self.delivery.reset_streams(&[]);
        self.load -= self.fragments.give_up_all();
        cut_short
    }

    /// Parts of messages that lack something up to a TSN go, and the order of streams goes on.
    fn pass_over(&mut self, up_to: Tsn, skipped: impl Iterator<Item = (u16, Ssn)>) -> Option<u16> {
        let cut_short = self.give_up_to(up_to);
        for (stream_id, ssn) in skipped {
            self.delivery.skip_to(stream_id, ssn);
        }
        cut_short
    }

    fn give_up_to(&mut self, tsn: Tsn) -> Option<u16> {
        let given_up = self.fragments.give_up_to(tsn);
        self.load -= given_up.load;
        given_up.cut_short
    }

    fn insert_fragment(&mut self, chunk: DataChunk) {
        let delivery = &self.delivery;
        let message = self.fragments.insert(chunk, |place| is_in_turn(delivery, place));
        match message {
            Some((ssn, message)) if message.last => self.deliver(ssn, message),
            Some((_, part)) => self.delivery.deliver_part(part),
            None => {}
        }
    }

    #[inline]
    fn deliver(&mut self, ssn: Ssn, message: Message) {
        if let Some(replaced) = self.delivery.deliver(ssn, message) {
            self.load -= Load::of(&replaced.parts);
        }
    }

    /// Takes in chunks that were kept, and are counted as held.
    fn insert_again(&mut self, chunks: impl Iterator<Item = DataChunk>) {
        for chunk in chunks {
            self.load -= Load::of([&chunk.data]);
            self.insert(chunk);
        }
    }
}

/// Whether a message is the next of its stream.
fn is_in_turn(delivery: &Delivery, place: Place) -> bool {
    place.unordered || delivery.next_ssn(place.stream_id) == place.ssn
}

/// Bytes by which the record of a chunk held is larger than its user data, about.
pub(super) const CHUNK_OVERHEAD: usize = 128;
