//! Partial reliability (RFC 3758), the receiver's side: a FORWARD TSN arrives (section 3.6).

use super::Event;
use super::association::Association;
use super::handshake::State;
use super::receive::DataSeen;
use segue_wire::sctp::{Chunk, ForwardTsn};

impl Association {
    /// Whether both ends offered FORWARD TSN.
    pub(super) fn may_forward_tsn(&self) -> bool {
        self.config.partial_reliability && self.peer_extensions.forward_tsn()
    }

    pub(super) fn on_forward_tsn(&mut self, chunk: &ForwardTsn, seen: &mut DataSeen) {
        if !matches!(
            self.state(),
            State::Established | State::ShutdownPending | State::ShutdownSent
        ) {
            self.out.counters.refused.unexpected += 1;
            return;
        }
        self.out.counters.forward_tsns_received += 1;
        // as for DATA, a SACK is owed
        seen.any = true;
        seen.immediate |= self.state() == State::ShutdownSent;
        let new = chunk.new_cumulative_tsn;
        if new.at_or_before(self.received.cumulative_tsn_ack()) {
            // out of date: perhaps the SACK was lost
            seen.immediate = true;
            return;
        }
        self.received.advance_to(new);
        let known = self.inbound_streams;
        let skipped = chunk.skipped.iter().copied().filter(|s| s.0 < known);
        if let Some(stream_id) = self.reassembly.forward(new, skipped) {
            self.out.tell(Event::PartialDeliveryAborted(stream_id));
        }
        self.announce_readable();
    }

    /// Tells the user of messages that can be taken, once until it has taken them all.
    pub(super) fn announce_readable(&mut self) {
        if !self.readable_announced && self.reassembly.has_ready() {
            self.readable_announced = true;
            self.out.tell(Event::Readable);
        }
    }

    /// A chunk of an extension that was not agreed on is one of an unknown type (RFC 3758 section 3.3.1, RFC 6525
    /// section 5.2).
    pub(super) fn on_unagreed_chunk(&mut self, chunk: &Chunk) -> bool {
        let mut whole = Vec::with_capacity(chunk.buffer_len());
        chunk.emit(&mut whole);
        let value = whole.get(4..).unwrap_or_default();
        self.on_unknown_chunk(chunk.chunk_type(), chunk.flags(), value)
    }
}
