//! Partial reliability (RFC 3758), the sender's side: which messages are abandoned, and the FORWARD TSN that tells the
//! peer not to wait for them. The policies are those of RFC 3758 section 4.1 and RFC 7496 section 3.
//!
//! Nothing here runs before a message with a policy was sent.

use super::association::Association;
use super::options::Policy;
use super::path::DestinationId;
use super::sender::{ChunkState, Sent};
use super::{Event, Reliability};
use crate::contract::InterfaceId;
use crate::time::Instant;
use segue_wire::sctp::{Chunk, ForwardTsn};
use segue_wire::{Packet, Ssn, Tsn};
use smallvec::SmallVec;

/// What the sender remembers of abandoned TSNs.
#[derive(Debug, Default)]
pub(super) struct PartialReliability {
    /// A message with a policy was sent.
    pub in_use: bool,
    /// Advanced.Peer.Ack.Point, while it is beyond the cumulative TSN ack.
    point: Option<Tsn>,
    /// A FORWARD TSN is to be sent.
    pub due: bool,
    /// The last FORWARD TSN: its TSN, when it left, and the destination it left for.
    sent: Option<(Tsn, Instant, DestinationId)>,
    /// Guards the last FORWARD TSN as T3-rtx guards DATA (rule C5).
    pub t3_rtx: Option<Instant>,
}

impl PartialReliability {
    pub(super) fn clear(&mut self) {
        self.point = None;
        self.due = false;
        self.sent = None;
        self.t3_rtx = None;
    }
}

impl Association {
    /// Makes ready for a message of `len` bytes: where the send buffer is full, what is too late or of lower priority
    /// goes.
    pub(super) fn make_room(&mut self, now: Instant, len: usize, reliability: Reliability) {
        if !self.partial.in_use {
            return;
        }
        self.abandon_expired_unsent(now);
        let policy = Policy::new(now, reliability);
        let can_tell = self.may_forward_tsn();
        let reach = self.send_space() + self.bytes_below(policy, can_tell);
        if reach < len {
            return;
        }
        while self.send_space() < len {
            if let Some(index) = self.queue.lowest_below(policy) {
                self.abandon_unsent(index);
            } else if let Some(tsn) = self.lowest_sent_below(policy).filter(|_| can_tell) {
                self.abandon_sent(tsn);
            } else {
                break;
            }
        }
        self.advance_peer_ack_point(now);
        self.note_emptied(now);
    }

    /// Abandons what its policy says before anything is sent (RFC 3758 section 4.1, TR2 and TR3).
    #[inline(never)]
    pub(super) fn abandon_overdue(&mut self, now: Instant) {
        let former = self.held_to_send();
        if self.may_forward_tsn() {
            while let Some(tsn) = self.flight.next_marked(None)
                && self.is_given_up(now, tsn)
            {
                self.abandon_sent(tsn);
            }
            if self.queue.partly_sent().is_some_and(|p| p.is_expired(now)) {
                self.abandon_partly_sent();
            }
        }
        while self.queue.next_unsent().is_some_and(|p| p.is_expired(now)) {
            self.abandon_unsent(0);
        }
        if self.held_to_send() != former {
            self.advance_peer_ack_point(now);
            self.note_emptied(now);
        }
    }

    /// Whether a chunk that waits to be sent again is abandoned instead.
    pub(super) fn is_given_up(&self, now: Instant, tsn: Tsn) -> bool {
        self.may_forward_tsn() && self.flight.get(tsn).is_some_and(|s| s.is_given_up(now))
    }

    /// Rules C1 to C3, after a SACK or when something was abandoned.
    pub(super) fn advance_peer_ack_point(&mut self, now: Instant) {
        let cumulative = self.flight.cumulative_tsn_ack();
        let from = match self.partial.point {
            Some(point) if cumulative.before(point) => point,
            _ => cumulative,
        };
        let mut point = from;
        while self
            .flight
            .get(point.next())
            .is_some_and(|s| s.state() == ChunkState::Abandoned)
        {
            point = point.next();
        }
        if point == cumulative {
            self.partial.clear();
            return;
        }
        self.partial.point = Some(point);
        // rule F2's note: the same one again only after a round trip; T3-rtx sees to it that it is
        self.partial.due |= match self.partial.sent {
            Some((tsn, at, destination)) if tsn == point => {
                let path = self.paths.get(self.destinations[destination].path);
                let wait = path.and_then(|p| p.rtt.srtt()).unwrap_or(self.config.rto_initial);
                now.since(at) >= wait
            }
            _ => true,
        };
    }

    /// The FORWARD TSN that is due, of at most `room` bytes, as sent to the destination of new data.
    #[inline(never)]
    pub(super) fn take_forward_tsn(&mut self, now: Instant, room: u32) -> Option<Chunk> {
        self.partial.due = false;
        let point = self.partial.point?;
        let limit = (room as usize).saturating_sub(ForwardTsn::HEADER_LEN) / ForwardTsn::SKIPPED_LEN;
        let mut skipped: Vec<(u16, Ssn)> = Vec::new();
        let mut new_cumulative_tsn = self.flight.cumulative_tsn_ack();
        while new_cumulative_tsn != point {
            let tsn = new_cumulative_tsn.next();
            let sent = self.flight.get(tsn)?.content();
            if !sent.unordered {
                // rule C4: the highest of each stream
                let known = skipped.iter().position(|s| s.0 == sent.stream_id);
                if known.is_none() && skipped.len() == limit {
                    break;
                }
                match known.and_then(|i| skipped.get_mut(i)) {
                    Some(entry) => entry.1 = sent.ssn,
                    None => skipped.push((sent.stream_id, sent.ssn)),
                }
            }
            new_cumulative_tsn = tsn;
        }
        let destination = self.current;
        let path = self.paths.get(self.destinations[destination].path);
        let rto = path.map_or(self.config.rto_initial, |p| p.rto());
        self.partial.point = Some(new_cumulative_tsn);
        self.partial.sent = Some((new_cumulative_tsn, now, destination));
        self.partial.t3_rtx = Some(now + rto);
        self.out.counters.forward_tsns_sent += 1;
        Some(Chunk::ForwardTsn(Box::new(ForwardTsn {
            new_cumulative_tsn,
            skipped,
        })))
    }

    /// The FORWARD TSN that is due, with the SACK that is owed, as a packet of its own.
    #[inline(never)]
    pub(super) fn forward_tsn_packet(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        let path = &self.paths[self.current_path()?];
        let destination = self.destinations[self.current].address;
        let source = path.source;
        let room = self.sizes.room();
        let chunk = self.take_forward_tsn(now, room)?;
        let chunks = SmallVec::from_buf([chunk]);
        Some(self.write(packet, source, destination, chunks))
    }

    /// The peer has not acknowledged a FORWARD TSN (rule A5). If DATA is in flight its own timers judge the path.
    pub(super) fn on_forward_tsn_t3(&mut self, now: Instant) {
        self.partial.t3_rtx = None;
        let Some((_, _, destination)) = self.partial.sent.take() else {
            return;
        };
        if !self.flight.has_outstanding() && self.destinations.contains(destination) {
            let path = self.destinations[destination].path;
            if let Some(path) = self.paths.get_mut(path) {
                path.rtt.back_off();
            }
            if !self.count_error(destination) {
                return;
            }
        }
        self.advance_peer_ack_point(now);
        self.open_burst();
    }

    /// Packets can leave again: the last FORWARD TSN goes out once more.
    pub(super) fn repeat_forward_tsn(&mut self, now: Instant) {
        self.partial.sent = None;
        self.advance_peer_ack_point(now);
    }

    /// The peer's cumulative TSN ack passed abandoned chunks: the FORWARD TSN arrived, and so did nothing else.
    pub(super) fn on_forward_tsn_acked(&mut self) {
        if let Some((_, _, destination)) = self.partial.sent
            && let Some(d) = self.destinations.get(destination)
            && (d.error_count > 0 || self.association_error_count > 0)
        {
            self.clear_errors(destination);
        }
    }

    fn abandon_expired_unsent(&mut self, now: Instant) {
        let mut index = 0;
        while let Some(policy) = self.queue.unsent_policy(index) {
            if policy.is_expired(now) {
                self.abandon_unsent(index);
            } else {
                index += 1;
            }
        }
    }

    /// Drops the unsent message at `index` of those of which nothing was sent.
    fn abandon_unsent(&mut self, index: usize) {
        if let Some((stream_id, payload_protocol_id)) = self.queue.remove_unsent(index) {
            self.out.counters.messages_abandoned_unsent += 1;
            self.tell_abandoned(stream_id, payload_protocol_id, false);
        }
    }

    /// Abandons the message that the chunk with `tsn` belongs to, with all its chunks (rule A3) and what of it is yet
    /// unsent.
    fn abandon_sent(&mut self, tsn: Tsn) {
        let Some((first, last, ends)) = self.flight.message_around(tsn) else {
            return;
        };
        let content = self.flight.get(first).map(Sent::content);
        let about = content.map(|c| (c.stream_id, c.payload_protocol_id));
        for offset in 0..=last.distance_from(first) {
            if let Some(len) = self.flight.abandon(first.add(offset)) {
                self.credit.give_back(len);
            }
        }
        if !ends && let Some(end) = self.queue.end_partly_sent() {
            self.flight.skip(end);
        }
        if let Some((stream_id, payload_protocol_id)) = about {
            self.out.counters.messages_abandoned_sent += 1;
            self.tell_abandoned(stream_id, payload_protocol_id, true);
        }
    }

    /// Abandons the message that is being sent.
    fn abandon_partly_sent(&mut self) {
        let last = self.flight.next_tsn().previous();
        let in_flight = self.flight.get(last).is_some_and(|s| !s.content().ending);
        if in_flight {
            self.abandon_sent(last);
        } else if let Some(end) = self.queue.end_partly_sent() {
            // all that was sent of it is acknowledged
            let (stream_id, payload_protocol_id) = (end.stream_id, end.payload_protocol_id);
            self.flight.skip(end);
            self.out.counters.messages_abandoned_sent += 1;
            self.tell_abandoned(stream_id, payload_protocol_id, true);
        }
    }

    /// User bytes of the messages whose priority is below that of `policy`; `sent`: those among them of which some
    /// was sent, too.
    fn bytes_below(&self, policy: Policy, sent: bool) -> usize {
        let under_way = self
            .flight
            .to_arrive()
            .filter(|_| sent)
            .flat_map(|(_, chunks)| chunks);
        let below = |s: &&Sent| !s.is_released() && s.content().policy.priority_below(policy).is_some();
        let under_way: usize = under_way.filter(below).map(|s| s.len() as usize).sum();
        self.queue.bytes_below(policy) + under_way
    }

    /// Of the messages of which some was sent and something has not arrived, that of the lowest priority below that of
    /// `policy`: the oldest.
    fn lowest_sent_below(&self, policy: Policy) -> Option<Tsn> {
        let messages = self.flight.to_arrive().enumerate();
        let candidates = messages.filter_map(|(at, (tsn, mut chunks))| {
            let priority = chunks.next()?.content().policy.priority_below(policy)?;
            Some((priority, core::cmp::Reverse(at), tsn))
        });
        candidates.max_by_key(|c| (c.0, c.1)).map(|c| c.2)
    }

    fn tell_abandoned(&mut self, stream_id: u16, payload_protocol_id: u32, sent: bool) {
        self.out.tell(Event::MessageAbandoned {
            stream_id,
            payload_protocol_id,
            sent,
        });
    }

    /// The send queue may have become shorter without a SACK.
    fn note_emptied(&mut self, now: Instant) {
        self.announce_space();
        if self.is_sender_dry() {
            self.out.tell(Event::SendersDry);
            self.continue_shutdown(now);
        }
    }
}
