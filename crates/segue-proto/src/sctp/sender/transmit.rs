//! What is sent next: retransmissions and new data, bundled into packets (RFC 9260 sections 6.1, 6.10).

use super::Sender;
use super::chunk::Sent;
use super::context::Context;
use super::plan::Plan;
use super::strategy::lent::{Lent, View};
use crate::sctp::ids::PathId;
use crate::sctp::lengths::chunk_size;
use crate::sctp::{Event, SackImmediately};
use crate::time::Duration;
use core::hint::cold_path;
use segue_wire::Tsn;
use segue_wire::sctp::Chunk;
use smallvec::SmallVec;

/// How a packet of data is made.
#[derive(Clone, Copy, Debug)]
pub(in crate::sctp) struct Packing {
    /// Bytes of chunks that it still holds.
    pub room: u32,
    /// The association is to end when all is acknowledged.
    pub closing: bool,
    /// The peer's verification tag, for events.
    pub peer_tag: u32,
}

impl Sender {
    /// What the next packet of data is to begin with. `may_send`: the association is in a state for it; `sack_is_due`: a SACK
    /// may go first.
    #[inline]
    pub(in crate::sctp) fn plan(
        &mut self,
        cx: &mut Context<'_>,
        may_send: bool,
        sack_is_due: bool,
    ) -> Option<Plan> {
        let blocked_since = self.credit.look_again();
        let plan = if may_send {
            self.look(cx, sack_is_due)
        } else {
            None
        };
        if let Some(since) = blocked_since {
            let ended = self.credit.go_on_from_blocking(cx.now, since);
            cx.out.counters.rwnd_blocked_ns += ended.map_or(0, Duration::as_nanos);
        }
        plan
    }

    #[inline]
    fn look(&mut self, cx: &mut Context<'_>, sack_is_due: bool) -> Option<Plan> {
        let mut lent = Lent {
            now: cx.now,
            config: cx.config,
            peer: cx.peer,
            queue: &self.queue,
            flight: &mut self.flight,
            credit: &mut self.credit,
            recovery: &mut self.recovery,
            counters: &mut cx.out.counters.multipath,
            may_forward_tsn: cx.may_forward_tsn,
            something_goes_first: sack_is_due || self.abandoned.is_due(),
        };
        self.strategy.plan(&mut lent)
    }

    /// Bytes of the chunk that a packet begins with, header and padding included; `None` if there is none.
    #[inline]
    pub(in crate::sctp) fn first_size(&self, plan: &Plan) -> Option<u32> {
        match *plan {
            Plan::Retransmit { tsn, .. } => self.flight.get(tsn).map(Sent::size),
            Plan::New { len, .. } => Some(chunk_size(len)),
        }
    }

    /// The chunks of a packet are sent, behind those that it has.
    #[inline]
    pub(in crate::sctp) fn bundle(
        &mut self,
        cx: &mut Context<'_>,
        plan: Plan,
        packing: Packing,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) {
        match plan {
            Plan::Retransmit { tsn, path, forced } => {
                self.bundle_retransmissions(cx, (tsn, path, forced), packing, chunks);
            }
            Plan::New { path, .. } => self.bundle_new(cx, path, packing, chunks),
        }
    }

    #[inline(never)]
    fn bundle_retransmissions(
        &mut self,
        cx: &mut Context<'_>,
        (first, path, forced): (Tsn, PathId, bool),
        packing: Packing,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) {
        let was_forced = forced && self.recovery.use_forced();
        self.strategy.retransmissions_go(path, was_forced);
        if self.credit.is_closed() {
            self.credit.on_probe_sent(first);
        }
        let mut room = packing.room;
        let mut next = Some(first);
        while let Some(tsn) = next {
            // the plan has decided on the first
            if (tsn != first && self.strategy.retransmission_path(self.view(cx), tsn) != Some(path))
                || (self.abandoned.in_use() && self.is_given_up(cx, tsn))
            {
                break;
            }
            let Some((size, fast)) = self.flight.get(tsn).map(|s| (s.size(), s.is_fast_marked())) else {
                break;
            };
            // what was cut for a larger PMTU goes alone: IPv6 fragments it (section 6.9)
            if (size > room && tsn != first) || !(forced || self.view(cx).has_window(path)) {
                break;
            }
            let loss = &mut self.loss;
            let numbered = |former, moves| loss.on_sent_again(cx.now, former, moves);
            let rto = cx.peer.rto(path);
            let Some(sent) = self.flight.resend(cx.now, tsn, path, rto, numbered) else {
                break;
            };
            let mut chunk = sent.chunk(tsn);
            chunk.immediate |= self.credit.probe() == Some(tsn)
                && cx.config.sack_immediately == SackImmediately::WhenBlocked;
            self.credit.on_sent_again(tsn);
            room = room.saturating_sub(size);
            chunks.push(Chunk::Data(chunk));
            cx.peer.note_sent_again(cx.now, path);
            self.strategy.note_sent(path);
            count_retransmission(cx, fast, tsn, packing.peer_tag);
            next = self.flight.next_marked(Some(tsn.next()));
        }
    }

    #[inline]
    fn bundle_new(
        &mut self,
        cx: &mut Context<'_>,
        path: PathId,
        packing: Packing,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) {
        self.strategy.new_data_goes(cx.now, path);
        let max_data = cx.peer.sizes().max_data();
        let mut room = packing.room;
        let mut first = true;
        while let Some(len) = self.queue.next_len(max_data) {
            if !first && self.next_is_expired(cx.now) {
                break;
            }
            let size = chunk_size(len);
            let admitted = len <= self.peer_rwnd();
            let goes = first || (admitted && self.view(cx).has_window(path));
            if size > room || !goes {
                break;
            }
            if !admitted {
                cold_path();
                self.credit.on_probe_sent(self.flight.next_tsn());
            }
            first = false;
            let immediate = self.asks_for_sack(cx, path, len, packing.closing);
            let Some(content) = self.queue.cut(max_data, immediate) else {
                break;
            };
            let transmission = self.loss.on_sent(cx.now);
            let rto = cx.peer.rto(path);
            let (tsn, sent) = self.flight.send(cx.now, content, path, rto, transmission);
            chunks.push(Chunk::Data(sent.chunk(tsn)));
            cx.peer.note_sent(cx.now, path);
            self.strategy.note_sent(path);
            cx.out.counters.data_chunks_sent += 1;
            room -= size;
        }
    }

    /// RFC 7053 section 4: whether a new chunk of `len` user bytes asks for its SACK at once.
    #[inline]
    fn asks_for_sack(&self, cx: &Context<'_>, path: PathId, len: u32, closing: bool) -> bool {
        match cx.config.sack_immediately {
            SackImmediately::Never => false,
            SackImmediately::OnRequest => closing && self.queue.is_last(len),
            SackImmediately::WhenBlocked => {
                let room = self.peer_rwnd();
                let fills = self.flight.size_on(path) + chunk_size(len) >= cx.peer[path].cwnd();
                let blocks = len >= room || fills;
                let last = self.queue.is_last(len);
                len > room || (blocks && !last) || (closing && last)
            }
        }
    }

    #[inline]
    fn view<'a>(&'a self, cx: &'a Context<'_>) -> View<'a> {
        View {
            config: cx.config,
            peer: cx.peer,
            flight: &self.flight,
        }
    }
}

fn count_retransmission(cx: &mut Context<'_>, fast: bool, tsn: Tsn, peer_tag: u32) {
    if fast {
        cx.out.counters.fast_retransmits += 1;
        if cx.config.tell_fast_retransmissions {
            cx.out.tell(Event::FastRetransmitted { tsn, peer_tag });
        }
    }
    cx.out.counters.data_chunks_sent += 1;
    cx.out.counters.data_chunks_retransmitted += 1;
}
