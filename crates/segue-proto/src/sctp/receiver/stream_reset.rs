//! Streams that are reset and added (RFC 6525): what it means for what has come and what comes.

use super::Receiver;
use super::cut_short::tell_cut_short;
use super::reassembly::Until;
use super::tsns::ReceivedTsns;
use crate::sctp::Event;
use crate::sctp::outbox::Outbox;
use segue_wire::Tsn;

impl Receiver {
    /// The peer adds streams that it sends on, which it may.
    pub(in crate::sctp) fn add_streams(&mut self, new_streams: u16) {
        self.inbound_streams = self.inbound_streams.saturating_add(new_streams);
    }

    /// Section 5.2.2, E2: what the peer sent on these streams, or on all if none is named, after `last_assigned_tsn` waits for
    /// their reset.
    pub(in crate::sctp) fn defer_stream_reset(
        &mut self,
        last_assigned_tsn: Tsn,
        streams: Vec<u16>,
        out: &mut Outbox,
    ) {
        let until = Until::StreamsReset(streams);
        tell_cut_short(self.reassembly.hold(last_assigned_tsn, until), out);
    }

    /// E3 and E4: the streams begin again, and what was held goes on.
    pub(in crate::sctp) fn reset_streams(&mut self, streams: Vec<u16>, out: &mut Outbox) {
        self.reassembly.reset_streams(&streams);
        tell_cut_short(self.reassembly.release(), out);
        out.tell(Event::IncomingStreamsReset(streams));
        self.tell_readable(out);
    }

    /// The peer is about to be asked to reset the association: what it sends from here on may be sent after that.
    pub(in crate::sctp) fn await_association_reset(&mut self, out: &mut Outbox) {
        if let Some(after) = self.cumulative_tsn_ack() {
            tell_cut_short(self.reassembly.hold(after, Until::AssociationReset), out);
        }
    }

    /// The peer has not reset the association.
    pub(in crate::sctp) fn go_on_without_reset(&mut self, out: &mut Outbox) {
        tell_cut_short(self.reassembly.release(), out);
        self.tell_readable(out);
    }

    /// The peer has reset the association, and goes on with `next_tsn`.
    pub(in crate::sctp) fn association_was_reset(&mut self, next_tsn: Tsn, out: &mut Outbox) {
        let cut_short = self.reassembly.release_around(next_tsn);
        tell_cut_short(cut_short.into_iter().flatten(), out);
        let cumulative = self.cumulative_tsn_ack();
        if cumulative.is_none_or(|ack| ack.next().before(next_tsn)) {
            self.tsns = Some(ReceivedTsns::new(next_tsn));
            tell_cut_short(self.reassembly.begin_anew(), out);
        }
        self.tell_readable(out);
    }

    /// Resets the association at the peer's wish (section 5.2.4, G1 to G5): the TSN that the peer is to go on with.
    pub(in crate::sctp) fn reset_association(&mut self, out: &mut Outbox) -> Option<Tsn> {
        let next_tsn = self.cumulative_tsn_ack()?.next().add(1 << 31);
        self.tsns = Some(ReceivedTsns::new(next_tsn));
        tell_cut_short(self.reassembly.begin_anew(), out);
        out.tell(Event::AssociationReset);
        self.tell_readable(out);
        Some(next_tsn)
    }
}
