//! Streams are reset and added at our wish (RFC 6525 sections 5.1 and 5.2.7): one request at a time, sent again by
//! T-reconfig until it is answered.

use super::association::{Association, ControlPacket};
use super::inbound::Received;
use super::{Event, StreamError, StreamRefused, StreamRequest};
use crate::time::Instant;
use segue_wire::sctp::{Chunk, ReConfig, ReConfigParameter, ReConfigResult};
use segue_wire::{ReConfigSerial, Tsn};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Requests waiting and the one outstanding.
#[derive(Debug)]
pub(super) struct StreamRequests {
    waiting: VecDeque<Waiting>,
    outstanding: Option<Outstanding>,
    next_serial: ReConfigSerial,
}

#[derive(Debug)]
struct Waiting {
    request: StreamRequest,
    /// The request of the peer's that it carries out.
    answers: Option<ReConfigSerial>,
    /// What it concerns is no longer sent.
    held: bool,
}

#[derive(Debug)]
struct Outstanding {
    request: StreamRequest,
    serial: ReConfigSerial,
    chunk: ReConfig,
    destination: usize,
    /// T-reconfig; none while nothing can be sent.
    t_reconfig: Option<Instant>,
    /// The peer is at it: silence is no error.
    in_progress: bool,
}

impl StreamRequests {
    /// Section 4.1: the first sequence number is the initial TSN.
    pub(super) fn new(initial_tsn: Tsn) -> Self {
        Self {
            waiting: VecDeque::new(),
            outstanding: None,
            next_serial: ReConfigSerial(initial_tsn.0),
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.outstanding.is_some() || !self.waiting.is_empty()
    }

    /// Whether a reset of the association is outstanding.
    pub(super) fn resets_association(&self) -> bool {
        let outstanding = self.outstanding.as_ref();
        outstanding.is_some_and(|o| o.request == StreamRequest::ResetAssociation)
    }

    pub(super) fn t_reconfig(&self) -> Option<Instant> {
        self.outstanding.as_ref().and_then(|o| o.t_reconfig)
    }

    /// T-reconfig stops: nothing can be sent.
    pub(super) fn suspend(&mut self) {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.t_reconfig = None;
        }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.outstanding = None;
    }

    /// Whether the outstanding request is the incoming SSN reset request `serial`.
    pub(super) fn awaits_reset(&self, serial: ReConfigSerial) -> bool {
        let outstanding = self.outstanding.as_ref();
        outstanding
            .is_some_and(|o| o.serial == serial && matches!(o.request, StreamRequest::ResetIncoming(_)))
    }
}

impl Association {
    /// Has the streams named, or all if none is, begin again at stream sequence number 0. What is sent on them
    /// meanwhile waits. [`Event::StreamRequestAnswered`] tells the outcome, of this and of the other requests.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn reset_streams(&mut self, now: Instant, streams: &[u16]) -> Result<(), StreamError> {
        self.check_streams(streams, self.outbound_streams)?;
        self.ask(now, StreamRequest::ResetOutgoing(streams.to_vec()))
    }

    /// Asks the peer to reset streams that it sends on; all if none is named.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn reset_incoming_streams(&mut self, now: Instant, streams: &[u16]) -> Result<(), StreamError> {
        self.check_streams(streams, self.inbound_streams)?;
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
        most(self.outbound_streams, outgoing)?;
        most(self.inbound_streams, incoming)?;
        if outgoing > 0 {
            self.ask(now, StreamRequest::AddOutgoing(outgoing))?;
        }
        if incoming > 0 {
            self.ask(now, StreamRequest::AddIncoming(incoming))?;
        }
        Ok(())
    }

    /// Whether both ends offered RE-CONFIG.
    pub(super) fn may_re_config(&self) -> bool {
        self.config.stream_reconfiguration && self.peer_extensions.re_config
    }

    fn check_streams(&self, streams: &[u16], known: u16) -> Result<(), StreamError> {
        if streams.iter().any(|&s| s >= known) {
            return Err(StreamError::NoSuchStream);
        }
        // chunk and parameter headers take at most 24 bytes, an AUTH chunk 40
        let most = (self
            .config
            .mtu
            .saturating_sub(super::association::PACKET_HEADERS + 24 + 40)
            / 2) as usize;
        if streams.len() > most {
            return Err(StreamError::TooMany);
        }
        Ok(())
    }

    fn ask(&mut self, now: Instant, request: StreamRequest) -> Result<(), StreamError> {
        if !self.is_established() || !self.may_re_config() {
            return Err(StreamError::NotPossible);
        }
        self.queue_stream_request(now, request, None);
        Ok(())
    }

    /// Queues a request; `answers`: the peer's request that it carries out.
    pub(super) fn queue_stream_request(
        &mut self,
        now: Instant,
        request: StreamRequest,
        answers: Option<ReConfigSerial>,
    ) {
        self.stream_requests.waiting.push_back(Waiting {
            request,
            answers,
            held: false,
        });
        self.send_stream_request(now);
    }

    /// Sends the next request, if none is outstanding and nothing keeps it from going.
    pub(super) fn send_stream_request(&mut self, now: Instant) {
        if self.stream_requests.outstanding.is_some()
            || self.stream_answers.resets_association()
            || !self.is_up()
        {
            return;
        }
        let Some(next) = self.stream_requests.waiting.front_mut() else {
            return;
        };
        // section 5.1.2 A1 and 5.1.4: what would get a new number waits
        match &next.request {
            StreamRequest::ResetOutgoing(streams) => {
                if !next.held {
                    next.held = true;
                    self.outbound.hold(streams.clone());
                }
                if self.outbound.is_amid_message_of(streams) {
                    return;
                }
            }
            StreamRequest::ResetAssociation => {
                if !next.held {
                    next.held = true;
                    self.outbound.hold(Vec::new());
                }
                if self.outbound.has_sent() || self.outbound.has_unsent() || self.stream_answers.is_busy() {
                    return;
                }
                self.reassembly
                    .hold(self.received.cumulative_tsn_ack(), Vec::new());
            }
            _ => {}
        }
        let Some(Waiting { request, answers, .. }) = self.stream_requests.waiting.pop_front() else {
            return;
        };
        let serial = self.stream_requests.next_serial;
        self.stream_requests.next_serial = serial.next();
        let parameter = match &request {
            StreamRequest::ResetOutgoing(streams) => ReConfigParameter::OutgoingSsnReset {
                request: serial,
                response: answers.unwrap_or_else(|| self.stream_answers.last_serial()),
                last_assigned_tsn: self.outbound.next_tsn().previous(),
                streams: streams.clone(),
            },
            StreamRequest::ResetIncoming(streams) => ReConfigParameter::IncomingSsnReset {
                request: serial,
                streams: streams.clone(),
            },
            StreamRequest::ResetAssociation => ReConfigParameter::SsnTsnReset { request: serial },
            StreamRequest::AddOutgoing(new_streams) => ReConfigParameter::AddOutgoingStreams {
                request: serial,
                new_streams: *new_streams,
            },
            StreamRequest::AddIncoming(new_streams) => ReConfigParameter::AddIncomingStreams {
                request: serial,
                new_streams: *new_streams,
            },
        };
        let chunk = ReConfig {
            parameters: vec![parameter],
        };
        let destination = self.current;
        self.stream_requests.outstanding = Some(Outstanding {
            request,
            serial,
            chunk,
            destination,
            t_reconfig: None,
            in_progress: false,
        });
        self.transmit_stream_request(now, destination);
    }

    fn transmit_stream_request(&mut self, now: Instant, destination: usize) {
        let d = &self.destinations[destination];
        let rto = self.paths.get(usize::from(d.path.0));
        let rto = rto.map_or(self.config.rto_initial, |p| p.rto());
        let address = d.address;
        let Some(outstanding) = &mut self.stream_requests.outstanding else {
            return;
        };
        outstanding.destination = destination;
        outstanding.t_reconfig = Some(now + rto);
        let chunks = SmallVec::from_buf([Chunk::ReConfig(Box::new(outstanding.chunk.clone()))]);
        self.out.send(ControlPacket::new(address, chunks));
    }

    /// Packets can leave again: the outstanding request goes out once more.
    pub(super) fn resend_stream_request(&mut self, now: Instant) {
        if self.stream_requests.outstanding.is_some() {
            self.transmit_stream_request(now, self.current);
        }
    }

    /// T-reconfig expired (section 5.1.1): as for DATA, unless the peer said that it is at it.
    pub(super) fn on_t_reconfig(&mut self, now: Instant) {
        let Some(outstanding) = &self.stream_requests.outstanding else {
            return;
        };
        let (mut destination, silent) = (outstanding.destination, !outstanding.in_progress);
        if silent && self.destinations[destination].in_use {
            let path = self.destinations[destination].path;
            if let Some(path) = self.paths.get_mut(usize::from(path.0)) {
                path.rtt.back_off();
            }
            if !self.count_error(destination) {
                return;
            }
        }
        if silent || !self.destinations[destination].in_use {
            destination = self.usable_destination(Some(destination)).unwrap_or(self.current);
        }
        self.transmit_stream_request(now, destination);
    }

    pub(super) fn on_stream_response(
        &mut self,
        now: Instant,
        response: ReConfigSerial,
        result: ReConfigResult,
        next_tsns: Option<(Tsn, Tsn)>,
    ) {
        let Some(outstanding) = self
            .stream_requests
            .outstanding
            .as_mut()
            .filter(|o| o.serial == response)
        else {
            return; // the answer to one that is settled came twice
        };
        let destination = outstanding.destination;
        if result == ReConfigResult::InProgress {
            outstanding.in_progress = true;
        }
        if self.destinations[destination].in_use && self.destinations[destination].error_count > 0 {
            self.clear_errors(destination);
        }
        let outcome = match result {
            ReConfigResult::InProgress => return,
            ReConfigResult::NothingToDo | ReConfigResult::Performed => Ok(()),
            ReConfigResult::Denied => Err(StreamRefused::Denied),
            ReConfigResult::RequestInProgress => Err(StreamRefused::Busy),
            ReConfigResult::WrongSsn | ReConfigResult::BadSequenceNumber | ReConfigResult::Other(_) => {
                Err(StreamRefused::Error)
            }
        };
        self.settle_stream_request(now, outcome, next_tsns);
    }

    /// The outstanding request has its outcome (section 5.2.7).
    pub(super) fn settle_stream_request(
        &mut self,
        now: Instant,
        mut outcome: Result<(), StreamRefused>,
        next_tsns: Option<(Tsn, Tsn)>,
    ) {
        let Some(Outstanding { request, .. }) = self.stream_requests.outstanding.take() else {
            return;
        };
        match &request {
            StreamRequest::ResetOutgoing(streams) => {
                if outcome.is_ok() {
                    self.outbound.reset_ssns(streams);
                }
                self.outbound.release();
            }
            StreamRequest::ResetAssociation => {
                match next_tsns.filter(|_| outcome.is_ok()) {
                    Some((senders_next, receivers_next)) => {
                        self.reassembly.release_around(senders_next);
                        if self.received.cumulative_tsn_ack().next().before(senders_next) {
                            self.received = Received::new(senders_next);
                            self.reassembly.begin_anew(senders_next);
                        }
                        self.outbound.begin_anew(receivers_next);
                        self.partial.clear();
                        self.fast_recovery_exit = None;
                        self.window_probe.tsn = None;
                        self.announce_readable();
                    }
                    None => {
                        self.reassembly.release();
                        self.announce_readable();
                        // success without the TSNs to go on with is none
                        outcome = outcome.and(Err(StreamRefused::Error));
                    }
                }
                self.outbound.release();
            }
            StreamRequest::AddOutgoing(new_streams) => {
                if outcome.is_ok() {
                    self.outbound_streams = self.outbound_streams.saturating_add(*new_streams);
                }
            }
            StreamRequest::ResetIncoming(_) | StreamRequest::AddIncoming(_) => {}
        }
        self.out.tell(Event::StreamRequestAnswered { request, outcome });
        self.open_burst();
        self.send_stream_request(now);
    }
}
