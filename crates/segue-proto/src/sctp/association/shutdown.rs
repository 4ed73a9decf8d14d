//! Graceful and abortive end (RFC 9260 section 9).

use super::{Association, State};
use crate::sctp::Event;
use crate::sctp::handshake::{OnShutdown, ShutdownChunk};
use crate::sctp::outbox::ControlPacket;
use crate::sctp::sender::sack::Via;
use crate::time::Instant;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use segue_wire::sctp::{Chunk, ErrorCause};
use smallvec::SmallVec;

impl Association {
    /// Closes gracefully once everything sent was acknowledged.
    pub fn shutdown(&mut self, now: Instant) {
        if self.is_in_handshake() {
            // nothing is agreed yet: give up
            self.close(Event::Closed);
        } else if self.phase.begin_shutdown() {
            self.continue_shutdown(now);
        }
    }

    /// Ends the association at once.
    pub fn abort(&mut self, now: Instant, reason: Bytes) {
        let _ = now;
        self.abort_with(ErrorCause::UserInitiatedAbort(reason));
    }

    pub(in crate::sctp) fn abort_with(&mut self, cause: ErrorCause) {
        if self.is_closed() {
            return;
        }
        self.queue_abort(vec![cause.clone()]);
        self.close(Event::Aborted { causes: vec![cause] });
    }

    /// The peer cannot be reached (section 8.1). It is told all the same: that it does not answer need not mean that it does
    /// not hear.
    pub(in crate::sctp) fn give_up_peer(&mut self) {
        self.queue_abort(Vec::new());
        self.close(Event::Lost);
    }

    /// An ABORT to the current destination. Before the INIT ACK the peer has no association to abort.
    fn queue_abort(&mut self, causes: Vec<ErrorCause>) {
        if self.state() == State::CookieWait {
            return;
        }
        let destination = self.peer[self.peer.current()].address();
        let reflected_tag = false;
        let abort = Chunk::Abort {
            reflected_tag,
            causes,
        };
        self.out.send(ControlPacket::of(destination, abort));
    }

    /// Ends the association: timers stop and queues are dropped; control packets already queued still go out.
    pub(in crate::sctp) fn close(&mut self, event: Event) {
        if !self.phase.close() {
            return;
        }
        self.sender.end();
        self.streams.end();
        self.asconf.end();
        self.receiver.suspend_sack();
        self.out.tell(event);
    }

    /// Section 9.2: with everything acknowledged, the next chunk of the shutdown goes out.
    pub(in crate::sctp) fn continue_shutdown(&mut self, now: Instant) {
        if self.sender.is_dry() {
            let chunk = self.phase.on_all_acknowledged(now, self.config.rto_max * 5);
            self.send_shutdown_chunk(now, chunk);
        }
    }

    /// SHUTDOWN or SHUTDOWN ACK again, of a shutdown that had stood still.
    pub(in crate::sctp) fn resend_shutdown_chunk(&mut self, now: Instant) {
        self.send_shutdown_chunk(now, self.phase.shutdown_chunk());
    }

    fn send_shutdown_chunk(&mut self, now: Instant, chunk: Option<ShutdownChunk>) {
        match chunk {
            Some(ShutdownChunk::Shutdown) => self.send_shutdown(now),
            Some(ShutdownChunk::ShutdownAck) => self.send_shutdown_ack(now),
            None => {}
        }
    }

    pub(super) fn on_shutdown(&mut self, now: Instant, via: Via, cumulative_tsn_ack: Tsn) {
        let is_possible = cumulative_tsn_ack.before(self.sender.flight().next_tsn());
        match self.phase.on_shutdown(is_possible) {
            OnShutdown::Acknowledges => {
                let sack = self.sender.sack_of_shutdown(cumulative_tsn_ack);
                let (sender, mut cx) = self.sending(now);
                let outcome = sender.handle_sack(&mut cx, via, &sack);
                self.after_sack(now, outcome);
                self.continue_shutdown(now);
            }
            OnShutdown::Impossible => self.out.counters.refused.impossible_acks += 1,
            OnShutdown::Crosses => self.send_shutdown_ack(now),
            // once more, to where the SHUTDOWN came from (section 6.4), since the addresses that T2-shutdown tries may all
            // be gone
            OnShutdown::Repeats => {
                if !self.shutdown_ack_waits() {
                    self.replies.answer(self.out.waiting(), Chunk::ShutdownAck);
                }
            }
            OnShutdown::Unexpected => self.out.counters.refused.unexpected += 1,
        }
    }

    /// An INIT or a COOKIE ECHO: the SHUTDOWN ACK goes once more (section 9.2). T2-shutdown goes on as it was, for an INIT anybody
    /// may have sent, and would keep the association for as long as he sends more.
    pub(in crate::sctp) fn send_shutdown_ack_again(&mut self) {
        if !self.shutdown_ack_waits() {
            let address = self.peer[self.peer.current()].address();
            self.out.send(ControlPacket::new(
                address,
                SmallVec::from_buf([Chunk::ShutdownAck]),
            ));
        }
    }

    fn shutdown_ack_waits(&self) -> bool {
        self.out.packets().any(|c| c.chunks.contains(&Chunk::ShutdownAck))
    }

    /// The answer goes to where the SHUTDOWN ACK came from (section 6.4): where data last came from may be gone.
    pub(in crate::sctp) fn on_shutdown_ack(&mut self, from: Ipv6Addr) {
        if self.phase.shutdown_chunk().is_some() {
            let complete = Chunk::ShutdownComplete { reflected_tag: false };
            self.out.send(ControlPacket::of(from, complete));
            self.close(Event::Closed);
        } else {
            self.out.counters.refused.unexpected += 1;
        }
    }

    pub(in crate::sctp) fn on_shutdown_complete(&mut self) {
        if self.state() == State::ShutdownAckSent {
            self.close(Event::Closed);
        } else {
            self.out.counters.refused.unexpected += 1;
        }
    }

    pub(in crate::sctp) fn on_t2(&mut self, now: Instant) {
        let destination = self.peer.current();
        if !self.not_answered(destination) {
            return;
        }
        // with none active, each in turn
        if let Some(next) = self.peer.another_than(destination) {
            self.peer.go_on_to(next);
        }
        self.resend_shutdown_chunk(now);
    }

    /// The shutdown takes too long: five times RTO.Max.
    pub(in crate::sctp) fn on_t5(&mut self, now: Instant) {
        self.abort(now, Bytes::from_static(b"shutdown guard timer"));
    }

    /// SHUTDOWN, which acknowledges DATA that still arrives (section 9.2), with a SACK before it if that has more to say.
    pub(in crate::sctp) fn send_shutdown(&mut self, now: Instant) {
        let form = self.sack_form();
        let chunks = self.receiver.take_shutdown(form, &self.config, &mut self.out);
        if let Some(chunks) = chunks {
            self.send_and_start_t2(now, chunks);
        }
    }

    pub(in crate::sctp) fn send_shutdown_ack(&mut self, now: Instant) {
        self.send_and_start_t2(now, SmallVec::from_buf([Chunk::ShutdownAck]));
    }

    fn send_and_start_t2(&mut self, now: Instant, chunks: SmallVec<[Chunk; 1]>) {
        let current = self.peer.current();
        let rto = self.peer.rto_to(current, &self.config);
        let address = self.peer[current].address();
        self.out.send(ControlPacket::new(address, chunks));
        self.phase.shutdown_chunk_sent(now + rto);
    }
}
