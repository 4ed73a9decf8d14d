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
use segue_wire::{Data, Ssn, Tsn};
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

    /// User bytes held, counted anew: [`user_bytes`](Self::user_bytes) says the same.
    pub(super) fn recount(&self) -> usize {
        let messages = self.delivery.messages().flat_map(|m| &m.parts);
        let held = self.held.iter().flat_map(|h| h.chunks()).map(|c| &c.data);
        messages
            .chain(self.fragments.parts())
            .chain(held)
            .map(Data::len)
            .sum()
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

    /// The peer gave up what is missing up to `new_cumulative_tsn` (RFC 3758 section 3.6): parts of messages that lack
    /// it go, and the order of each stream in `skipped` goes on after the stream sequence number given with it.
    ///
    /// Returns the stream of the message that was being delivered in parts, if it went.
    pub(super) fn forward(
        &mut self,
        new_cumulative_tsn: Tsn,
        skipped: impl Iterator<Item = (u16, Ssn)>,
    ) -> Option<u16> {
        let given_up = self.fragments.give_up_to(new_cumulative_tsn);
        self.load -= given_up.load;
        for (stream_id, ssn) in skipped {
            self.delivery.skip_to(stream_id, ssn);
        }
        given_up.cut_short
    }

    /// Keeps what comes after a TSN and is to wait, until [`release`](Self::release). What was kept until now is kept on,
    /// or taken in, as this has it.
    pub(super) fn hold(&mut self, after: Tsn, until: Until) {
        let former = self.held.replace(Box::new(Held::new(after, until)));
        self.insert_again(former.into_iter().flat_map(|held| held.into_chunks()));
    }

    /// Whether chunks wait for a reset of the association.
    pub(super) fn awaits_association_reset(&self) -> bool {
        self.held.as_ref().is_some_and(|h| h.awaits_association_reset())
    }

    /// Takes in what was kept.
    pub(super) fn release(&mut self) {
        let held = self.held.take();
        self.insert_again(held.into_iter().flat_map(|held| held.into_chunks()));
    }

    /// The buffer is full of what waits for a reset of the association, and the peer may carry that out only when all that
    /// it has sent is acknowledged (RFC 6525 section 5.2.4): takes in, in order and up to `cumulative`, before which nothing is
    /// missing, what goes on where its stream is. A stream that begins at 0 where it is at something else was reset. Of one
    /// that is at 0 nobody knows, but it goes on at 1 in both cases.
    ///
    /// Returns whether something still waits.
    pub(super) fn take_what_goes_on(&mut self, cumulative: Tsn) -> bool {
        let Some(mut held) = self.held.take() else {
            return false;
        };
        while let Some(chunk) = held.take_what_goes_on(cumulative, |id| self.delivery.next_ssn(id)) {
            self.insert_again(core::iter::once(chunk));
        }
        let waits = held.chunks().next().is_some();
        self.held = Some(held);
        waits
    }

    /// Takes in what was kept, and has all streams begin again between what was sent before `next_tsn` and the rest.
    pub(super) fn release_around(&mut self, next_tsn: Tsn) {
        let Some(held) = self.held.take() else {
            self.delivery.reset_streams(&[]);
            return;
        };
        let around = held.split_at(next_tsn);
        self.insert_again(around.before.into_iter());
        self.delivery.reset_streams_but(around.begun.into_iter());
        self.insert_again(around.after.into_iter());
    }

    /// The streams named, or all if none is, begin again at 0; what still waits for their old order is delivered.
    pub(super) fn reset_streams(&mut self, streams: &[u16]) {
        self.delivery.reset_streams(streams);
    }

    /// All streams and the TSNs begin again; parts of messages go.
    pub(super) fn begin_anew(&mut self) {
        // what was kept was sent after a reset of its streams, and before this one
        if let Some(held) = &self.held {
            self.delivery.reset_streams(held.streams());
        }
        self.release();
        self.delivery.reset_streams(&[]);
        self.load -= self.fragments.give_up_all();
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
const CHUNK_OVERHEAD: usize = 128;
