//! Streams are reset and added (RFC 6525): what [`StreamChanges`](crate::sctp::streams::StreamChanges) says is done to
//! the messages and chunks of both directions.

use super::Association;
use crate::sctp::ids::DestinationId;
use crate::sctp::lengths::PACKET_HEADERS;
use crate::sctp::outbox::ControlPacket;
use crate::sctp::streams::{Numbers, Standing, Verdict, When};
use crate::sctp::{Event, StreamError, StreamRefused, StreamRequest};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::sctp::{Chunk, ReConfig, ReConfigParameter, ReConfigResult};
use segue_wire::{ReConfigSerial, Tsn};

impl Association {
    /// Has the streams named, or all if none is, begin again at stream sequence number 0. What is sent on them
    /// meanwhile waits. [`Event::StreamRequestAnswered`] tells the outcome, of this and of the other requests.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn reset_streams(&mut self, now: Instant, streams: &[u16]) -> Result<(), StreamError> {
        self.check_streams(streams, self.sender.outbound_streams())?;
        self.ask(now, StreamRequest::ResetOutgoing(streams.to_vec()))
    }

    /// Asks the peer to reset streams that it sends on; all if none is named.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn reset_incoming_streams(&mut self, now: Instant, streams: &[u16]) -> Result<(), StreamError> {
        self.check_streams(streams, self.receiver.inbound_streams())?;
        self.ask(now, StreamRequest::ResetIncoming(streams.to_vec()))
    }

    /// Has all streams of both directions begin again at 0, and the TSNs anew, once everything sent so far is
    /// acknowledged.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn reset_association(&mut self, now: Instant) -> Result<(), StreamError> {
        self.ask(now, StreamRequest::ResetAssociation)
    }

    /// Adds streams to send on, and asks the peer to add some that it sends on.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn add_streams(&mut self, now: Instant, outgoing: u16, incoming: u16) -> Result<(), StreamError> {
        let most = |old: u16, new: u16| old.checked_add(new).ok_or(StreamError::TooMany);
        most(self.sender.outbound_streams(), outgoing)?;
        most(self.receiver.inbound_streams(), incoming)?;
        if outgoing > 0 {
            self.ask(now, StreamRequest::AddOutgoing(outgoing))?;
        }
        if incoming > 0 {
            self.ask(now, StreamRequest::AddIncoming(incoming))?;
        }
        Ok(())
    }

    /// Whether both ends offered RE-CONFIG.
    pub(in crate::sctp) fn may_re_config(&self) -> bool {
        self.config.stream_reconfiguration && self.extensions.re_config()
    }

    fn check_streams(&self, streams: &[u16], known: u16) -> Result<(), StreamError> {
        if streams.iter().any(|&s| s >= known) {
            return Err(StreamError::NoSuchStream);
        }
        // chunk and parameter headers take at most 24 bytes, an AUTH chunk 40
        let most = (self.peer.sizes().mtu().saturating_sub(PACKET_HEADERS + 24 + 40) / 2) as usize;
        if streams.len() > most {
            return Err(StreamError::TooMany);
        }
        Ok(())
    }

    fn ask(&mut self, now: Instant, request: StreamRequest) -> Result<(), StreamError> {
        if !self.is_established() || !self.may_re_config() {
            return Err(StreamError::NotPossible);
        }
        self.streams.ask(request, None);
        self.send_stream_request(now);
        Ok(())
    }

    /// Sends the next request, if none is outstanding and nothing keeps it from going (section 5.1.2 A1 and 5.1.4: what
    /// would get a new number waits).
    pub(in crate::sctp) fn send_stream_request(&mut self, now: Instant) {
        if !self.is_up() {
            return;
        }
        let peer_waits = self.streams.awaits_transfer();
        let Some(next) = self.streams.next_request() else {
            return;
        };
        if let Some(streams) = next.hold {
            self.sender.hold(streams.to_vec());
        }
        match next.when {
            When::Now => {}
            When::NotAmid(streams) => {
                if self.sender.is_amid_message_of(streams) {
                    return;
                }
            }
            When::AllAcknowledged => {
                if self.sender.is_busy() || peer_waits {
                    return;
                }
                self.receiver.await_association_reset(&mut self.out);
            }
        }
        let last_assigned_tsn = self.sender.flight().next_tsn().previous();
        let current = self.peer.current();
        self.streams.begin_request(last_assigned_tsn, current);
        self.transmit_stream_request(now, current);
    }

    fn transmit_stream_request(&mut self, now: Instant, destination: DestinationId) {
        let rto = self.peer.rto_to(destination, &self.config);
        let address = self.peer[destination].address();
        if let Some(chunk) = self.streams.transmit(destination, now + rto) {
            let chunk = Chunk::ReConfig(Box::new(chunk));
            self.out.send(ControlPacket::of(address, chunk));
        }
    }

    /// Packets can leave again: the outstanding request goes out once more.
    pub(in crate::sctp) fn resend_stream_request(&mut self, now: Instant) {
        self.transmit_stream_request(now, self.peer.current());
    }

    /// T-reconfig expired (section 5.1.1): as for DATA, unless the peer said that it is at it.
    pub(in crate::sctp) fn on_t_reconfig(&mut self, now: Instant) {
        let Some(expired) = self.streams.on_t_reconfig() else {
            return;
        };
        let mut destination = expired.destination;
        let is_gone = self.peer.get(destination).is_none();
        if expired.is_error && !self.not_answered(destination) {
            return;
        }
        if expired.is_error || is_gone {
            let alternate = self.peer.usable_destination(Some(destination));
            destination = alternate.unwrap_or(self.peer.current());
        }
        self.transmit_stream_request(now, destination);
    }

    fn on_stream_response(
        &mut self,
        now: Instant,
        response: ReConfigSerial,
        result: ReConfigResult,
        next_tsns: Option<(Tsn, Tsn)>,
    ) {
        let Some(answered) = self.streams.on_response(response, result) else {
            return;
        };
        let destination = self.peer.get(answered.destination);
        if destination.is_some_and(|d| d.error_count() > 0) {
            self.peer
                .clear_errors(answered.destination, &self.config, &mut self.out);
        }
        if let Some(outcome) = answered.outcome {
            self.settle_stream_request(now, outcome, next_tsns);
        }
    }

    /// The outstanding request has its outcome (section 5.2.7).
    fn settle_stream_request(
        &mut self,
        now: Instant,
        mut outcome: Result<(), StreamRefused>,
        next_tsns: Option<(Tsn, Tsn)>,
    ) {
        let Some(request) = self.streams.settle() else {
            return;
        };
        match &request {
            StreamRequest::ResetOutgoing(streams) => {
                if outcome.is_ok() {
                    self.sender.reset_ssns(streams);
                }
                self.sender.release();
            }
            StreamRequest::ResetAssociation => {
                match next_tsns.filter(|_| outcome.is_ok()) {
                    Some((senders_next, receivers_next)) => self.go_on_at(senders_next, receivers_next),
                    None => {
                        self.receiver.go_on_without_reset(&mut self.out);
                        // success without the TSNs to go on with is none
                        outcome = outcome.and(Err(StreamRefused::Error));
                    }
                }
                self.sender.release();
            }
            StreamRequest::AddOutgoing(new_streams) => {
                if outcome.is_ok() {
                    self.sender.add_streams(*new_streams);
                }
            }
            StreamRequest::ResetIncoming(_) | StreamRequest::AddIncoming(_) => {}
        }
        self.out.tell(Event::StreamRequestAnswered { request, outcome });
        self.open_burst();
        self.send_stream_request(now);
    }

    /// The peer has reset the association: it goes on with `senders_next`, and this end with `receivers_next`.
    fn go_on_at(&mut self, senders_next: Tsn, receivers_next: Tsn) {
        self.receiver.association_was_reset(senders_next, &mut self.out);
        self.sender.restart_tsns(receivers_next);
    }

    pub(in crate::sctp) fn on_re_config(&mut self, now: Instant, from: Ipv6Addr, chunk: &ReConfig) {
        // section 3.1: one parameter, or two
        if chunk.parameters.is_empty() || chunk.parameters.len() > 2 {
            self.out.counters.refused.unexpected += 1;
            return;
        }
        let (behind, mut answers) = (self.out.waiting(), Vec::new());
        for parameter in &chunk.parameters {
            if let ReConfigParameter::Response {
                response,
                result,
                next_tsns,
            } = parameter
            {
                self.on_stream_response(now, *response, *result, *next_tsns);
                continue;
            }
            let Some(serial) = parameter.request() else {
                self.out.counters.refused.unknown += 1;
                if parameter.unrecognized_action().stops() {
                    break;
                }
                continue;
            };
            answers.push(match self.streams.on_request(serial) {
                Standing::New => {
                    let result = self.carry_out(now, from, serial, parameter);
                    self.streams.answer(serial, result)
                }
                Standing::Answered(answer) => answer,
            });
        }
        if !answers.is_empty() {
            let answer = Chunk::ReConfig(Box::new(ReConfig { parameters: answers }));
            let to = self.answers_go_to(from);
            if to == from {
                self.replies.answer(behind, answer);
            } else {
                self.out.send_behind(behind, ControlPacket::of(to, answer));
            }
        }
        // a request of ours that the answer makes room for goes behind it
        self.send_stream_request(now);
    }

    /// DATA, a FORWARD TSN or a SACK arrived: what waited for it may go on.
    pub(in crate::sctp) fn continue_stream_changes(&mut self, now: Instant) {
        if let Some(cumulative) = self.receiver.cumulative_tsn_ack()
            && let Some((streams, answer, to)) = self.streams.take_deferred_reset(cumulative)
        {
            self.receiver.reset_streams(streams, &mut self.out);
            self.answer_streams(to, answer);
        }
        if let Some((serial, from)) = self.streams.deferred_association_reset()
            && !self.sender.is_busy()
            && let Some(answer) = self.perform_association_reset(serial)
        {
            self.answer_streams(from, answer);
        }
        self.send_stream_request(now);
    }

    fn answer_streams(&mut self, to: Ipv6Addr, answer: ReConfigParameter) {
        let parameters = vec![answer];
        let chunk = Chunk::ReConfig(Box::new(ReConfig { parameters }));
        let to = self.answers_go_to(to);
        self.out.send(ControlPacket::of(to, chunk));
    }

    /// Where a request that came from an address is answered: there (RFC 9260 section 6.4), unless nobody has proven to hear us
    /// there, for then nothing but heartbeats and their answers may go there (section 5.4). RFC 6525 does not say where; an answer
    /// that did not go out would have the peer ask again, and count that as an error of the address that it asks.
    fn answers_go_to(&self, from: Ipv6Addr) -> Ipv6Addr {
        let current = self.peer[self.peer.current()].address();
        let hears = |address: Ipv6Addr| self.peer.has_confirmed_address(address);
        if hears(from) || !hears(current) {
            from
        } else {
            current
        }
    }

    /// A request that is new.
    fn carry_out(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        serial: ReConfigSerial,
        request: &ReConfigParameter,
    ) -> ReConfigResult {
        let Some(cumulative_tsn_ack) = self.receiver.cumulative_tsn_ack() else {
            return ReConfigResult::Denied;
        };
        let numbers = Numbers {
            established: self.is_established(),
            inbound_streams: self.receiver.inbound_streams(),
            max_inbound_streams: self.config.max_inbound_streams,
            outbound_streams: self.sender.outbound_streams(),
            cumulative_tsn_ack,
        };
        match self.streams.judge(request, &numbers) {
            Verdict::Refuse(result) => result,
            Verdict::ResetIncoming { streams, settles } => {
                if settles {
                    self.settle_stream_request(now, Ok(()), None);
                }
                self.receiver.reset_streams(streams, &mut self.out);
                ReConfigResult::Performed
            }
            Verdict::Defer {
                last_assigned_tsn,
                streams,
                settles,
            } => {
                if settles {
                    self.settle_stream_request(now, Ok(()), None);
                }
                self.receiver
                    .defer_stream_reset(last_assigned_tsn, streams.clone(), &mut self.out);
                self.streams.defer_reset(serial, from, last_assigned_tsn, streams);
                ReConfigResult::InProgress
            }
            Verdict::Ask(request) => {
                self.streams.ask(request, Some(serial));
                self.send_stream_request(now);
                ReConfigResult::Performed
            }
            Verdict::ResetAssociation => {
                // what of ours is under way would be lost: first it is acknowledged
                self.sender.hold(Vec::new());
                if self.sender.is_busy() {
                    self.streams.defer_association_reset(serial, from);
                    return ReConfigResult::InProgress;
                }
                self.perform_association_reset(serial);
                ReConfigResult::Performed
            }
            Verdict::AddIncoming { new_streams } => {
                self.receiver.add_streams(new_streams);
                self.out.tell(Event::IncomingStreamsAdded(new_streams));
                ReConfigResult::Performed
            }
        }
    }

    /// Section 5.2.4, G1 to G5; gives the answer.
    fn perform_association_reset(&mut self, serial: ReConfigSerial) -> Option<ReConfigParameter> {
        let senders_next = self.sender.flight().next_tsn();
        let receivers_next = self.receiver.reset_association(&mut self.out)?;
        self.sender.reset_streams();
        self.open_burst();
        let next_tsns = (senders_next, receivers_next);
        Some(self.streams.association_was_reset(serial, next_tsns))
    }
}
