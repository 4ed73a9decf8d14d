//! Partial reliability (RFC 3758), the sender's side: which messages are abandoned, and the FORWARD TSN that tells the
//! peer not to wait for them. The policies are those of RFC 3758 section 4.1 and RFC 7496 section 3.
//!
//! Nothing here runs before a message with a policy was sent.

use super::Sender;
use super::chunk::{ChunkState, Sent};
use super::context::Context;
use crate::sctp::Event;
use crate::sctp::ids::DestinationId;
use crate::sctp::options::Policy;
use crate::time::Instant;
use segue_wire::sctp::{Chunk, ForwardTsn};
use segue_wire::{Ssn, Tsn};

/// Which messages are abandoned.
impl Sender {
    /// Makes ready for a message of `len` bytes. Returns whether nothing is left.
    pub(super) fn make_room_for(&mut self, cx: &mut Context<'_>, len: usize, policy: Policy) -> bool {
        self.abandon_expired_unsent(cx);
        let can_tell = cx.may_forward_tsn;
        let reach = self.space(cx.config) + self.bytes_below(policy, can_tell);
        if reach < len {
            return false;
        }
        while self.space(cx.config) < len {
            if let Some(index) = self.queue.lowest_below(policy) {
                self.abandon_unsent(cx, index);
            } else if let Some(tsn) = self.lowest_sent_below(policy).filter(|_| can_tell) {
                self.abandon_sent(cx, tsn);
            } else {
                break;
            }
        }
        self.advance_peer_ack_point(cx);
        self.note_emptied(cx)
    }

    /// Whether anything was sent that may be given up.
    #[inline]
    pub(in crate::sctp) fn gives_up(&self) -> bool {
        self.abandoned.in_use()
    }

    /// Abandons what its policy says before anything is sent (RFC 3758 section 4.1, TR2 and TR3). Returns whether nothing is left
    /// for it.
    pub(in crate::sctp) fn abandon_overdue(&mut self, cx: &mut Context<'_>) -> bool {
        let former = self.held();
        if cx.may_forward_tsn {
            while let Some(tsn) = self.flight.next_marked(None)
                && self.is_given_up(cx, tsn)
            {
                self.abandon_sent(cx, tsn);
            }
            if self.queue.partly_sent().is_some_and(|p| p.is_expired(cx.now)) {
                self.abandon_partly_sent(cx);
            }
        }
        while self.queue.next_unsent().is_some_and(|p| p.is_expired(cx.now)) {
            self.abandon_unsent(cx, 0);
        }
        if self.held() == former {
            return false;
        }
        self.advance_peer_ack_point(cx);
        self.note_emptied(cx)
    }

    /// Whether a chunk that waits to be sent again is abandoned instead.
    pub(super) fn is_given_up(&self, cx: &Context<'_>, tsn: Tsn) -> bool {
        cx.may_forward_tsn && self.flight.get(tsn).is_some_and(|s| s.is_given_up(cx.now))
    }

    /// Whether the next message is too late.
    pub(super) fn next_is_expired(&self, now: Instant) -> bool {
        self.abandoned.in_use() && self.queue.next_unsent().is_some_and(|p| p.is_expired(now))
    }

    fn abandon_expired_unsent(&mut self, cx: &mut Context<'_>) {
        let mut index = 0;
        while let Some(policy) = self.queue.unsent_policy(index) {
            if policy.is_expired(cx.now) {
                self.abandon_unsent(cx, index);
            } else {
                index += 1;
            }
        }
    }

    /// Drops the unsent message at `index` of those of which nothing was sent.
    fn abandon_unsent(&mut self, cx: &mut Context<'_>, index: usize) {
        if let Some(dropped) = self.queue.remove_unsent(index) {
            cx.out.counters.messages_abandoned_unsent += 1;
            tell_abandoned(cx, dropped, false);
        }
    }

    /// Abandons the message that the chunk with `tsn` belongs to, with all its chunks (rule A3) and what of it is yet
    /// unsent.
    fn abandon_sent(&mut self, cx: &mut Context<'_>, tsn: Tsn) {
        let Some((first, last, ends)) = self.flight.message_around(tsn) else {
            return;
        };
        let about = self.flight.get(first).map(Sent::about);
        let about = about.map(|about| (about.stream_id, about.payload_protocol_id));
        for offset in 0..=last.distance_from(first) {
            self.flight.abandon(first.add(offset));
        }
        if !ends && let Some(end) = self.queue.end_partly_sent() {
            self.flight.skip(end);
        }
        if let Some(about) = about {
            cx.out.counters.messages_abandoned_sent += 1;
            tell_abandoned(cx, about, true);
        }
    }

    /// Abandons the message that is being sent.
    fn abandon_partly_sent(&mut self, cx: &mut Context<'_>) {
        let last = self.flight.next_tsn().previous();
        let in_flight = self.flight.get(last).is_some_and(|s| !s.about().ending);
        if in_flight {
            self.abandon_sent(cx, last);
        } else if let Some(end) = self.queue.end_partly_sent() {
            // all that was sent of it is acknowledged
            self.flight.skip(end);
            cx.out.counters.messages_abandoned_sent += 1;
            tell_abandoned(cx, (end.stream_id, end.payload_protocol_id), true);
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
        let below = |s: &&Sent| !s.is_released() && s.about().policy.priority_below(policy).is_some();
        let under_way: usize = under_way.filter(below).map(|s| s.len() as usize).sum();
        self.queue.bytes_below(policy) + under_way
    }

    /// Of the messages of which some was sent and something has not arrived, that of the lowest priority below that of
    /// `policy`: the oldest.
    fn lowest_sent_below(&self, policy: Policy) -> Option<Tsn> {
        let messages = self.flight.to_arrive().enumerate();
        let candidates = messages.filter_map(|(at, (tsn, mut chunks))| {
            let priority = chunks.next()?.about().policy.priority_below(policy)?;
            Some((priority, core::cmp::Reverse(at), tsn))
        });
        candidates.max_by_key(|c| (c.0, c.1)).map(|c| c.2)
    }

    /// The send queue may have become shorter without a SACK. Returns whether nothing is left.
    fn note_emptied(&mut self, cx: &mut Context<'_>) -> bool {
        self.announce_space(cx);
        let is_dry = self.is_dry();
        if is_dry {
            cx.out.tell(Event::SendersDry);
        }
        is_dry
    }
}

/// What the peer is told of them.
impl Sender {
    /// Rules C1 to C3, after a SACK or when something was abandoned.
    pub(in crate::sctp) fn advance_peer_ack_point(&mut self, cx: &Context<'_>) {
        let cumulative = self.flight.cumulative_tsn_ack();
        let mut point = self.abandoned.point_from(cumulative);
        let is_abandoned = |s: &Sent| s.state() == ChunkState::Abandoned;
        while self.flight.get(point.next()).is_some_and(is_abandoned) {
            point = point.next();
        }
        if point == cumulative {
            self.abandoned.clear();
            return;
        }
        self.abandoned.advance(cx.now, point, |destination| {
            let path = cx.peer.get(destination).and_then(|d| cx.peer.path(d.path()));
            path.and_then(|p| p.srtt()).unwrap_or(cx.config.rto_initial)
        });
    }

    /// Whether a FORWARD TSN is to be sent.
    #[inline]
    pub(in crate::sctp) fn owes_forward_tsn(&self) -> bool {
        self.abandoned.is_due()
    }

    /// The FORWARD TSN that is due, of at most `room` bytes, as sent to the destination of new data.
    ///
    /// One that names a stream which is to begin again goes no farther than that stream's last chunk. All of those were sent
    /// before the request (RFC 6525 section 5.1.2, A1), so that a peer who has carried it out, and whose answer was lost, has
    /// passed that TSN: the FORWARD TSN is out of date for him, and does not move the stream that has begun again. When his answer
    /// is there the stream is not named for chunks of before, although his SACK may still be under way.
    #[inline(never)]
    pub(in crate::sctp) fn take_forward_tsn(&mut self, cx: &mut Context<'_>, room: u32) -> Option<Chunk> {
        let point = self.abandoned.take_due()?;
        let limit = (room as usize).saturating_sub(ForwardTsn::HEADER_LEN) / ForwardTsn::SKIPPED_LEN;
        let mut skipped: Vec<(u16, Ssn)> = Vec::new();
        let mut new_cumulative_tsn = self.flight.cumulative_tsn_ack();
        let mut of_held = None;
        while new_cumulative_tsn != point {
            let tsn = new_cumulative_tsn.next();
            let sent = self.flight.get(tsn)?.about();
            if !sent.unordered && !self.abandoned.is_of_former(sent.stream_id, tsn) {
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
            if !sent.unordered && self.queue.is_held(sent.stream_id) {
                of_held = Some((tsn, skipped.clone()));
            }
        }
        (new_cumulative_tsn, skipped) = of_held.unwrap_or((new_cumulative_tsn, skipped));
        let destination = cx.peer.current();
        let rto = cx.peer.rto_to(destination, cx.config);
        self.abandoned
            .forward_tsn_sent(cx.now, new_cumulative_tsn, destination, rto);
        cx.out.counters.forward_tsns_sent += 1;
        Some(Chunk::ForwardTsn(Box::new(ForwardTsn {
            new_cumulative_tsn,
            skipped,
        })))
    }

    /// Whether the peer has not acknowledged a FORWARD TSN in time (rule A5).
    pub(in crate::sctp) fn forward_tsn_is_overdue(&self, now: Instant) -> bool {
        self.abandoned.t3_rtx().is_some_and(|at| at <= now)
    }

    /// The peer has not acknowledged a FORWARD TSN: it goes again ([`repeat_forward_tsn`](Self::repeat_forward_tsn)). Returns the
    /// destination that did not answer, and whether that is an error: if DATA is in flight its own timers judge the path.
    pub(in crate::sctp) fn on_forward_tsn_t3(&mut self) -> Option<(DestinationId, bool)> {
        let destination = self.abandoned.expire()?;
        Some((destination, !self.flight.has_outstanding()))
    }

    /// The last FORWARD TSN goes out once more: it was not acknowledged, or packets can leave again.
    pub(in crate::sctp) fn repeat_forward_tsn(&mut self, cx: &Context<'_>) {
        if self.abandoned.in_use() {
            self.abandoned.repeat();
            self.advance_peer_ack_point(cx);
        }
    }

    /// The peer's cumulative TSN ack passed abandoned chunks: the FORWARD TSN arrived, or a copy of them that was late. So it is
    /// no proof that the destination of the FORWARD TSN is there.
    pub(super) fn on_forward_tsn_acked(&mut self, cx: &mut Context<'_>) {
        if let Some(destination) = self.abandoned.destination()
            && cx.peer.get(destination).is_some()
        {
            cx.peer.acknowledges(destination, false, cx.config, cx.out);
        }
    }
}

fn tell_abandoned(cx: &mut Context<'_>, (stream_id, payload_protocol_id): (u16, u32), sent: bool) {
    cx.out.tell(Event::MessageAbandoned {
        stream_id,
        payload_protocol_id,
        sent,
    });
}
