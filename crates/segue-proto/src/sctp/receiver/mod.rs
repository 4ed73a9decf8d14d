//! What an association receives (RFC 9260 section 6.2): which TSNs have come, the messages that they make, the room that
//! is left, and the acknowledgement that is owed for it.

mod acknowledgement;
mod cut_short;
mod memory;
mod reassembly;
mod room;
mod stream_reset;
#[cfg(test)]
mod tests;
mod tsns;

pub(super) use acknowledgement::SackForm;
pub(super) use memory::keep_nothing_else;

use super::outbox::Outbox;
use super::{Config, Event, Message};
use crate::time::Instant;
use acknowledgement::{Acknowledgement, Route, data_packets, delays_with_gap};
use core::hint::cold_path;
use core::net::Ipv6Addr;
use cut_short::tell_cut_short;
use memory::keep_no_packet;
use reassembly::Reassembly;
use room::{Room, Use};
use segue_wire::Tsn;
use segue_wire::sctp::{Chunk, DataChunk, ForwardTsn, NrSack};
use smallvec::SmallVec;
use tsns::{Arrival, ReceivedTsns};

/// The receiving side of an association.
#[derive(Debug)]
pub(super) struct Receiver {
    /// None before the peer's initial TSN is known.
    tsns: Option<ReceivedTsns>,
    reassembly: Reassembly,
    acknowledgement: Acknowledgement,
    /// Where acknowledgements go; nowhere before there is a peer.
    route: Option<Route>,
    /// a_rwnd last advertised, less what arrived since.
    advertised_rwnd: u32,
    inbound_streams: u16,
    /// DATA has come since the peer's TSNs began.
    has_received: bool,
    /// The user knows that there is something to take, and has not taken it all.
    readable_told: bool,
}

/// What became of a DATA chunk or a FORWARD TSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// It is new, and was taken.
    Taken,
    /// It is new and counts as received, but there is no such stream (RFC 9260 section 6.5).
    NoSuchStream,
    /// What it brings has come before; perhaps the SACK was lost.
    Duplicate,
    /// It has no room, or no gap ack block could report it.
    NoRoom,
    /// There is no data in it (section 6.2).
    NoUserData,
    /// It has no room, and there will never be any: the user has nothing to take, and nothing that is missing would fit. The
    /// peer has sent a message longer than the buffer, or has not kept to the window.
    OutOfResource,
    /// The peer's initial TSN is not known.
    Unexpected,
}

impl Outcome {
    /// Whether the peer is to be told at once what has arrived.
    pub(super) fn asks_for_sack(self) -> bool {
        matches!(self, Self::Duplicate | Self::NoRoom | Self::OutOfResource)
    }
}

impl Receiver {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            tsns: None,
            reassembly: Reassembly::new(config),
            acknowledgement: Acknowledgement::new(config),
            route: None,
            advertised_rwnd: config.receive_buffer,
            inbound_streams: config.max_inbound_streams,
            has_received: false,
            readable_told: false,
        }
    }

    /// The peer is known by its INIT ACK or its cookie: where its TSNs begin, the streams that it may send on, and an address
    /// of its.
    pub(super) fn begin(&mut self, initial_tsn: Tsn, inbound_streams: u16, to: Ipv6Addr, config: &Config) {
        self.begin_tsns(initial_tsn, config);
        self.inbound_streams = inbound_streams;
        self.route = Some(Route::new(to));
    }

    /// The peer's TSNs begin elsewhere; nothing has come yet.
    pub(super) fn begin_tsns(&mut self, initial_tsn: Tsn, config: &Config) {
        self.tsns = Some(ReceivedTsns::new(initial_tsn));
        self.reassembly = Reassembly::new(config);
        self.has_received = false;
    }

    /// Whether DATA has come since the peer's TSNs began.
    pub(super) fn has_received(&self) -> bool {
        self.has_received
    }

    /// Streams that the peer may send on.
    pub(super) fn inbound_streams(&self) -> u16 {
        self.inbound_streams
    }

    /// The peer's cumulative TSN ack, once its initial TSN is known.
    pub(super) fn cumulative_tsn_ack(&self) -> Option<Tsn> {
        self.tsns.as_ref().map(ReceivedTsns::cumulative_tsn_ack)
    }

    /// Whether something is missing before what has come.
    pub(super) fn has_gap(&self) -> bool {
        self.tsns.as_ref().is_some_and(ReceivedTsns::has_gap)
    }
}

/// Arrivals.
impl Receiver {
    /// A DATA chunk of a packet of `packet_len` bytes. What is left of the chunk is of no use. `form` is asked for only where
    /// a duplicate is noted for the next SACK.
    #[inline]
    pub(super) fn on_data(
        &mut self,
        chunk: &mut DataChunk,
        packet_len: usize,
        config: &Config,
        form: impl FnOnce() -> SackForm,
        out: &mut Outbox,
    ) -> Outcome {
        let Some(tsns) = &mut self.tsns else {
            cold_path();
            out.counters.refused.unexpected += 1;
            return Outcome::Unexpected;
        };
        if chunk.data.is_empty() {
            cold_path();
            return Outcome::NoUserData;
        }
        let tsn = chunk.tsn;
        match tsns.classify(tsn) {
            Arrival::InOrder | Arrival::OutOfOrder => {}
            Arrival::Duplicate => {
                cold_path();
                out.counters.duplicate_data_chunks += 1;
                let limit = form().most_entries(self.route.and_then(Route::limit));
                tsns.note_duplicate(tsn, limit);
                return Outcome::Duplicate;
            }
            Arrival::TooFar => {
                cold_path();
                out.counters.refused.beyond_window += 1;
                return Outcome::NoRoom;
            }
        }
        if self.held(config).is_full() {
            cold_path();
            match self.room_beyond_buffer(tsn, chunk.data.len(), config, out) {
                Room::Enough => {}
                full => {
                    out.counters.refused.beyond_window += 1;
                    return if matches!(full, Room::Never) {
                        Outcome::OutOfResource
                    } else {
                        Outcome::NoRoom
                    };
                }
            }
        }
        if let Some(tsns) = &mut self.tsns {
            tsns.record(tsn);
        }
        out.counters.data_chunks_received += 1;
        self.has_received = true;
        self.advertised_rwnd = self.advertised_rwnd.saturating_sub(chunk.data.len() as u32);
        if chunk.stream_id >= self.inbound_streams {
            cold_path();
            // acknowledged, reported and dropped
            out.counters.refused.bad_stream += 1;
            return Outcome::NoSuchStream;
        }
        let mut taken = chunk.take();
        keep_no_packet(&mut taken.data, packet_len);
        self.reassembly.insert(taken);
        self.tell_readable(out);
        Outcome::Taken
    }

    /// Section 6.2: with the window closed, a TSN beyond all received is dropped; one that fills a gap is taken, up to
    /// twice the buffer, because what is held may wait for it, and nothing that was reported is dropped for it. What is next in
    /// order while the user has nothing to take is [taken beyond that](Use::has_room_for_next), or never fits; unless it is a
    /// reset of the association that keeps what came, until the peer has carried it out.
    fn room_beyond_buffer(&mut self, tsn: Tsn, len: usize, config: &Config, out: &mut Outbox) -> Room {
        let Some(tsns) = &self.tsns else {
            return Room::None;
        };
        if tsn.before(tsns.highest()) && self.held(config).has_room_in_gaps(len) {
            return Room::Enough;
        }
        let cumulative = tsns.cumulative_tsn_ack();
        if tsn != cumulative.next() || self.reassembly.has_ready() {
            return Room::None;
        }
        let has_gap = tsns.has_gap();
        let resets = self.reassembly.awaits_association_reset();
        let waits = resets && {
            let (waits, cut_short) = self.reassembly.take_what_goes_on(cumulative);
            tell_cut_short(cut_short, out);
            waits
        };
        if self.reassembly.has_ready() || self.reassembly.deliver_in_parts() {
            self.tell_readable(out);
            return Room::None;
        }
        if waits {
            return Room::None;
        }
        self.reassembly.join_parts();
        if self.held(config).has_room_for_next(len, has_gap) {
            Room::Enough
        } else {
            Room::Never
        }
    }

    /// A FORWARD TSN (RFC 3758 section 3.6): the peer has given up what is missing up to a TSN.
    pub(super) fn on_forward_tsn(&mut self, chunk: &ForwardTsn, out: &mut Outbox) -> Outcome {
        let Some(tsns) = &mut self.tsns else {
            out.counters.refused.unexpected += 1;
            return Outcome::Unexpected;
        };
        out.counters.forward_tsns_received += 1;
        let new = chunk.new_cumulative_tsn;
        // one from before the association was reset is as far ahead as behind (RFC 6525 section 5.2.4, G3)
        if new.at_or_before(tsns.cumulative_tsn_ack()) || tsns.is_too_far(new) {
            return Outcome::Duplicate;
        }
        tsns.advance_to(new);
        let known = self.inbound_streams;
        let skipped = chunk.skipped.iter().copied().filter(|s| s.0 < known);
        tell_cut_short(self.reassembly.forward(new, skipped), out);
        self.tell_readable(out);
        Outcome::Taken
    }

    /// A packet with DATA, or a FORWARD TSN, is worked off. `had_gap`: something was missing before it came; `immediate`:
    /// something in it asks for a SACK at once.
    pub(super) fn owe(
        &mut self,
        now: Instant,
        had_gap: bool,
        immediate: bool,
        config: &Config,
        out: &mut Outbox,
    ) {
        let gap = had_gap || self.has_gap();
        let delays = delays_with_gap(config);
        if gap && delays {
            out.counters.multipath.sacks_delayed += 1;
        }
        self.acknowledgement
            .on_packet(now, immediate || (gap && !delays), config);
    }

    /// A packet with DATA has come, to `at`: acknowledgements go back to where it came from, as long as that is an address
    /// of the peer's; `from` has what a packet there may have, if it is limited, beside it.
    pub(super) fn arrived(&mut self, from: Option<(Ipv6Addr, Option<usize>)>, at: Ipv6Addr) {
        if let Some(route) = &mut self.route {
            route.on_packet(from, at);
        }
    }
}

/// What the user takes.
impl Receiver {
    /// The next message.
    pub(super) fn take_message(&mut self) -> Option<Message> {
        let Some(message) = self.reassembly.pop() else {
            self.readable_told = false;
            return None;
        };
        Some(message)
    }

    /// Whether there are messages to take.
    pub(super) fn has_message(&self) -> bool {
        self.reassembly.has_ready()
    }

    /// All messages that there are to take.
    pub(super) fn into_messages(mut self) -> Vec<Message> {
        core::iter::from_fn(|| self.reassembly.pop()).collect()
    }

    /// Nobody wants the messages.
    pub(super) fn drop_messages(&mut self) {
        while self.reassembly.pop().is_some() {}
    }

    /// Receive window offered now, bytes.
    pub(super) fn a_rwnd(&self, config: &Config) -> u32 {
        let held = u32::try_from(self.held(config).counted).unwrap_or(u32::MAX);
        config.receive_buffer.saturating_sub(held)
    }

    /// The user took a message: the peer is told of the room if that may matter to it, that is when the window it
    /// knows of is nearly used up and has grown by two segments, or has grown by half the buffer.
    pub(super) fn consider_window_update(&mut self, mtu: u32, config: &Config) {
        let (known, now) = (self.advertised_rwnd, self.rwnd_to_advertise(mtu, config));
        let buffer = config.receive_buffer;
        let grown = now.saturating_sub(known);
        let segments = 2 * mtu;
        if grown >= buffer / 2 || (known < segments && grown >= segments.min(buffer / 2)) {
            self.acknowledgement.hurry();
        }
    }

    /// Tells the user of messages that can be taken, once until it has taken them all.
    #[inline]
    fn tell_readable(&mut self, out: &mut Outbox) {
        if !self.readable_told && self.reassembly.has_ready() {
            self.readable_told = true;
            out.tell(Event::Readable);
        }
    }

    /// Advertised window: what is free; nothing, if that is less than a segment (RFC 1122 section 4.2.3.3).
    fn rwnd_to_advertise(&self, mtu: u32, config: &Config) -> u32 {
        let free = self.a_rwnd(config);
        if free < mtu.min(config.receive_buffer / 2) {
            0
        } else {
            free
        }
    }

    /// What is held of the receive buffer.
    #[inline]
    fn held(&self, config: &Config) -> Use {
        let buffer = config.receive_buffer as usize;
        Use {
            buffer,
            user: self.reassembly.user_bytes(),
            counted: self.reassembly.held_bytes(buffer),
        }
    }
}

/// Acknowledgements.
impl Receiver {
    /// Where they go, once there is a peer.
    pub(super) fn reply_to(&self) -> Option<Ipv6Addr> {
        self.route.map(Route::to)
    }

    /// Where the last DATA came to.
    pub(super) fn arrived_at(&self) -> Option<Ipv6Addr> {
        self.route?.arrived_at()
    }

    /// `gone` is no address to send to any more; what went there goes to `other`.
    pub(super) fn leave_address(&mut self, gone: Ipv6Addr, other: Ipv6Addr) {
        if let Some(route) = &mut self.route {
            route.leave(gone, other);
        }
    }

    /// Whether anything is owed.
    pub(super) fn owes_sack(&self) -> bool {
        self.acknowledgement.is_owed()
    }

    /// Whether an acknowledgement is to be sent by itself.
    pub(super) fn sack_is_due(&self) -> bool {
        self.acknowledgement.is_due()
    }

    /// The peer is to be told at once what has arrived.
    pub(super) fn hurry_sack(&mut self) {
        self.acknowledgement.hurry();
    }

    /// When a delayed acknowledgement is due.
    #[inline]
    pub(super) fn sack_timer(&self) -> Option<Instant> {
        self.acknowledgement.timer()
    }

    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.acknowledgement.on_timeout(now);
    }

    /// No packet can leave, or none ever will.
    pub(super) fn suspend_sack(&mut self) {
        self.acknowledgement.suspend();
    }

    /// Packets can leave again: whatever the peer sent meanwhile was lost, and it learns at once what is missing.
    pub(super) fn resume_sack(&mut self) {
        self.acknowledgement.resume();
    }

    /// Bytes of the next acknowledgement, at least: without gaps and duplicates it is exact.
    pub(super) fn sack_len(&self, form: SackForm) -> u32 {
        form.len(self.tsns.as_ref().map_or(0, ReceivedTsns::entries))
    }

    /// The acknowledgement, SACK or NR-SACK; with it nothing is owed any more.
    pub(super) fn take_sack(&mut self, form: SackForm, config: &Config, out: &mut Outbox) -> Option<Chunk> {
        let a_rwnd = self.rwnd_to_advertise(form.mtu, config);
        let limit = self.route.and_then(Route::limit);
        let mut sack = self.tsns.as_mut()?.sack(a_rwnd, form.most_entries(limit));
        self.advertised_rwnd = a_rwnd;
        sack.data_packets = data_packets(self.acknowledgement.settle(), config);
        out.counters.sacks_sent += 1;
        if !form.non_renegable {
            return Some(Chunk::Sack(sack));
        }
        let nr_gap_ack_blocks = core::mem::take(&mut sack.gap_ack_blocks);
        Some(Chunk::NrSack(Box::new(NrSack {
            sack,
            nr_gap_ack_blocks,
        })))
    }

    /// A SHUTDOWN, which acknowledges DATA that still arrives (RFC 9260 section 9.2). A SACK goes before it only if it has more
    /// to say: of gaps, of duplicates, or of a window that the peer has nearly used up.
    pub(super) fn take_shutdown(
        &mut self,
        form: SackForm,
        config: &Config,
        out: &mut Outbox,
    ) -> Option<SmallVec<[Chunk; 1]>> {
        let tsns = self.tsns.as_ref()?;
        let cumulative_tsn_ack = tsns.cumulative_tsn_ack();
        let window_is_short = self.advertised_rwnd < config.receive_buffer / 2;
        let says_more = tsns.has_gap() || tsns.has_duplicates() || window_is_short;
        let mut chunks = SmallVec::new();
        if self.owes_sack() && says_more {
            chunks.extend(self.take_sack(form, config, out));
        }
        self.acknowledgement.settle();
        chunks.push(Chunk::Shutdown { cumulative_tsn_ack });
        Some(chunks)
    }
}

impl Receiver {
    /// Checks that what is counted is held, that it can still be taken, and that it is within what the configuration allows.
    pub(super) fn check_invariants(&self, config: &Config) -> Result<(), String> {
        self.reassembly.check()?;
        let waits = self.has_gap() && !self.has_message();
        self.held(config).check(waits)
    }
}
