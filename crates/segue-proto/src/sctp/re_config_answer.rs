//! Streams are reset and added at the peer's wish (RFC 6525 section 5.2).

use super::association::Association;
use super::inbound::Received;
use super::{Event, StreamRequest};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::sctp::{Chunk, ReConfig, ReConfigParameter, ReConfigResult};
use segue_wire::{ReConfigSerial, Tsn};

/// What was answered, and what is still to be done.
#[derive(Debug)]
pub(super) struct StreamAnswers {
    /// Sequence number of the peer's next request.
    expected: ReConfigSerial,
    /// The answers to its last two requests, to be repeated: as many as travel in one chunk.
    last: [Option<ReConfigParameter>; 2],
    /// A reset of incoming streams that waits for data sent before it (deferred reset processing).
    deferred: Option<Deferred>,
    /// A reset of the association that waits for our data to be acknowledged.
    association_reset: Option<(ReConfigSerial, Ipv6Addr)>,
}

#[derive(Debug)]
struct Deferred {
    serial: ReConfigSerial,
    last_assigned_tsn: Tsn,
    streams: Vec<u16>,
    from: Ipv6Addr,
}

impl StreamAnswers {
    /// Section 4.1: the peer's first sequence number is its initial TSN.
    pub(super) fn new(initial_tsn: Tsn) -> Self {
        Self {
            expected: ReConfigSerial(initial_tsn.0),
            last: [None, None],
            deferred: None,
            association_reset: None,
        }
    }

    /// Sequence number of the peer's last request.
    pub(super) fn last_serial(&self) -> ReConfigSerial {
        self.expected.previous()
    }

    /// Whether a reset of the association waits.
    pub(super) fn resets_association(&self) -> bool {
        self.association_reset.is_some()
    }

    /// Whether something waits for a TSN or a SACK.
    pub(super) fn is_busy(&self) -> bool {
        self.deferred.is_some() || self.association_reset.is_some()
    }

    fn repeat(&self, serial: ReConfigSerial) -> Option<ReConfigParameter> {
        let is_it = |p: &&ReConfigParameter| matches!(p, ReConfigParameter::Response { response, .. } if *response == serial);
        self.last.iter().flatten().find(is_it).cloned()
    }

    /// Keeps an answer for the case that the request comes again; one to the same request is replaced.
    fn keep(&mut self, serial: ReConfigSerial, answer: &ReConfigParameter) {
        let same = |p: &ReConfigParameter| matches!(p, ReConfigParameter::Response { response, .. } if *response == serial);
        if let Some(old) = self.last.iter_mut().flatten().find(|p| same(p)) {
            *old = answer.clone();
        } else {
            self.last.swap(0, 1);
            self.last[0] = Some(answer.clone());
        }
    }
}

impl Association {
    pub(super) fn on_re_config(&mut self, now: Instant, from: Ipv6Addr, chunk: &ReConfig) {
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
            let answer = if serial == self.stream_answers.expected {
                self.stream_answers.expected = serial.next();
                let result = self.carry_out(now, from, serial, parameter);
                let answer = self
                    .stream_answers
                    .repeat(serial)
                    .unwrap_or(response(serial, result));
                self.stream_answers.keep(serial, &answer);
                answer
            } else {
                let bad = response(serial, ReConfigResult::BadSequenceNumber);
                self.stream_answers.repeat(serial).unwrap_or(bad)
            };
            answers.push(answer);
        }
        if !answers.is_empty() {
            let answer = ReConfig { parameters: answers };
            self.replies.answer(behind, Chunk::ReConfig(Box::new(answer)));
        }
        // a request of ours that the answer makes room for goes behind it
        self.send_stream_request(now);
    }

    /// DATA, a FORWARD TSN or a SACK arrived: what waited for it may go on.
    pub(super) fn continue_stream_changes(&mut self, now: Instant) {
        let cumulative = self.received.cumulative_tsn_ack();
        if let Some(deferred) = self
            .stream_answers
            .deferred
            .take_if(|d| d.last_assigned_tsn.at_or_before(cumulative))
        {
            self.reset_incoming(deferred.streams);
            let answer = response(deferred.serial, ReConfigResult::Performed);
            self.stream_answers.keep(deferred.serial, &answer);
            self.answer_streams(deferred.from, vec![answer]);
        }
        if let Some((serial, from)) = self.stream_answers.association_reset
            && !self.outbound.has_sent()
            && !self.outbound.has_unsent()
        {
            let answer = self.perform_association_reset(serial);
            self.answer_streams(from, vec![answer]);
        }
        self.send_stream_request(now);
    }

    fn answer_streams(&mut self, to: Ipv6Addr, parameters: Vec<ReConfigParameter>) {
        self.queue_control(to, Chunk::ReConfig(Box::new(ReConfig { parameters })));
    }

    /// A request that is new.
    fn carry_out(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        serial: ReConfigSerial,
        request: &ReConfigParameter,
    ) -> ReConfigResult {
        match request {
            ReConfigParameter::OutgoingSsnReset {
                response,
                last_assigned_tsn,
                streams,
                ..
            } => {
                if streams.iter().any(|&s| s >= self.inbound_streams) {
                    return ReConfigResult::WrongSsn;
                }
                if self.stream_answers.is_busy() || self.stream_requests.resets_association() {
                    return ReConfigResult::RequestInProgress;
                }
                if self.stream_requests.awaits_reset(*response) {
                    self.settle_stream_request(now, Ok(()), None);
                }
                if last_assigned_tsn.at_or_before(self.received.cumulative_tsn_ack()) {
                    self.reset_incoming(streams.clone());
                    return ReConfigResult::Performed;
                }
                // E2: deferred reset processing
                self.reassembly.hold(*last_assigned_tsn, streams.clone());
                self.stream_answers.deferred = Some(Deferred {
                    serial,
                    last_assigned_tsn: *last_assigned_tsn,
                    streams: streams.clone(),
                    from,
                });
                ReConfigResult::InProgress
            }
            ReConfigParameter::IncomingSsnReset { streams, .. } => {
                if streams.iter().any(|&s| s >= self.outbound_streams) {
                    return ReConfigResult::WrongSsn;
                }
                if self.stream_requests.is_busy() {
                    return ReConfigResult::RequestInProgress;
                }
                if !self.is_established() {
                    return ReConfigResult::Denied;
                }
                let request = StreamRequest::ResetOutgoing(streams.clone());
                self.queue_stream_request(now, request, Some(serial));
                ReConfigResult::Performed
            }
            ReConfigParameter::SsnTsnReset { .. } => {
                if self.stream_requests.is_busy() || self.stream_answers.is_busy() {
                    return ReConfigResult::RequestInProgress;
                }
                if !self.is_established() {
                    return ReConfigResult::Denied;
                }
                // what of ours is under way would be lost: first it is acknowledged
                self.outbound.hold(Vec::new());
                if self.outbound.has_sent() || self.outbound.has_unsent() {
                    self.stream_answers.association_reset = Some((serial, from));
                    return ReConfigResult::InProgress;
                }
                self.perform_association_reset(serial);
                ReConfigResult::Performed
            }
            ReConfigParameter::AddOutgoingStreams { new_streams, .. } => {
                match self.inbound_streams.checked_add(*new_streams) {
                    Some(total) if total <= self.config.max_inbound_streams => {
                        self.inbound_streams = total;
                        self.out.tell(Event::IncomingStreamsAdded(*new_streams));
                        ReConfigResult::Performed
                    }
                    _ => ReConfigResult::Denied,
                }
            }
            ReConfigParameter::AddIncomingStreams { new_streams, .. } => {
                if self.stream_requests.is_busy() {
                    return ReConfigResult::RequestInProgress;
                }
                if !self.is_established() || self.outbound_streams.checked_add(*new_streams).is_none() {
                    return ReConfigResult::Denied;
                }
                self.queue_stream_request(now, StreamRequest::AddOutgoing(*new_streams), Some(serial));
                ReConfigResult::Performed
            }
            ReConfigParameter::Response { .. } | ReConfigParameter::Unknown { .. } => ReConfigResult::Denied,
        }
    }

    /// E3 and E4: the streams begin again, and what was held goes on.
    fn reset_incoming(&mut self, streams: Vec<u16>) {
        self.reassembly.reset_streams(&streams);
        self.reassembly.release();
        self.out.tell(Event::IncomingStreamsReset(streams));
        self.announce_readable();
    }

    /// Section 5.2.4, G1 to G5; the answer is kept.
    fn perform_association_reset(&mut self, serial: ReConfigSerial) -> ReConfigParameter {
        self.stream_answers.association_reset = None;
        let senders_next = self.outbound.next_tsn();
        let receivers_next = self.received.cumulative_tsn_ack().next().add(1 << 31);
        self.received = Received::new(receivers_next);
        self.reassembly.begin_anew(receivers_next);
        self.outbound.reset_ssns(&[]);
        self.outbound.release();
        self.partial.clear();
        self.out.tell(Event::AssociationReset);
        self.announce_readable();
        self.open_burst();
        let answer = ReConfigParameter::Response {
            response: serial,
            result: ReConfigResult::Performed,
            next_tsns: Some((senders_next, receivers_next)),
        };
        self.stream_answers.keep(serial, &answer);
        answer
    }
}

fn response(serial: ReConfigSerial, result: ReConfigResult) -> ReConfigParameter {
    ReConfigParameter::Response {
        response: serial,
        result,
        next_tsns: None,
    }
}
