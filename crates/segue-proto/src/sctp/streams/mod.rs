//! Streams are reset and added while the association goes on (RFC 6525), at our wish and at the peer's.
//!
//! [`StreamChanges`] knows what was asked and answered, on both sides, for the two get in each other's way. It changes no
//! stream itself: it says what is to be sent, held back or reset, and `association/streams.rs` does it.

mod answers;
mod requests;

pub(super) use answers::{Numbers, Standing, Verdict};
pub(super) use requests::When;

use super::StreamRequest;
use crate::sctp::ids::DestinationId;
use crate::time::Instant;
use answers::{Deferred, StreamAnswers};
use core::net::Ipv6Addr;
use requests::{Answered, Expired, NextRequest, StreamRequests};
use segue_wire::sctp::{ReConfig, ReConfigParameter, ReConfigResult};
use segue_wire::{ReConfigSerial, Tsn};

/// The requests of both ends.
#[derive(Debug)]
pub(super) struct StreamChanges {
    requests: StreamRequests,
    answers: StreamAnswers,
}

impl StreamChanges {
    /// Section 4.1: our first sequence number is our initial TSN.
    pub(super) fn new(initial_tsn: Tsn) -> Self {
        Self {
            requests: StreamRequests::new(initial_tsn),
            answers: StreamAnswers::default(),
        }
    }

    /// The peer's first sequence number is its initial TSN.
    pub(super) fn begin(&mut self, peer_initial_tsn: Tsn) {
        self.answers = StreamAnswers::new(peer_initial_tsn);
    }

    /// The association has ended: nothing is asked for any more.
    pub(super) fn end(&mut self) {
        self.requests.clear();
    }

    /// Whether a request of ours waits or is outstanding, or one of the peer's is not carried out yet.
    pub(super) fn is_busy(&self) -> bool {
        self.requests.is_busy() || self.answers.is_busy()
    }

    /// Whether a request of the peer's waits for a TSN or a SACK.
    pub(super) fn awaits_transfer(&self) -> bool {
        self.answers.is_busy()
    }

    /// T-reconfig; `None` while nothing is outstanding, or nothing can be sent.
    pub(super) fn t_reconfig(&self) -> Option<Instant> {
        self.requests.t_reconfig()
    }

    /// T-reconfig stops: nothing can be sent.
    pub(super) fn suspend(&mut self) {
        self.requests.suspend();
    }

    /// Queues a request of ours; `answers`: the peer's request that it carries out.
    pub(super) fn ask(&mut self, request: StreamRequest, answers: Option<ReConfigSerial>) {
        self.requests.push(request, answers);
    }

    /// The request that is next, if none is outstanding. Only the first call for one says what is to be held back for it.
    pub(super) fn next_request(&mut self) -> Option<NextRequest<'_>> {
        if self.answers.resets_association() {
            return None;
        }
        self.requests.next()
    }

    /// The next request goes out: what was sent so far ends with `last_assigned_tsn`. [`transmit`](Self::transmit) gives
    /// the chunk.
    pub(super) fn begin_request(&mut self, last_assigned_tsn: Tsn, destination: DestinationId) {
        if let Some(last_answered) = self.answers.last_serial() {
            self.requests.begin(last_answered, last_assigned_tsn, destination);
        }
    }

    /// The outstanding request, to be sent to `destination` and again when T-reconfig expires.
    pub(super) fn transmit(&mut self, destination: DestinationId, t_reconfig: Instant) -> Option<ReConfig> {
        self.requests.transmit(destination, t_reconfig)
    }

    /// What T-reconfig means that expires.
    pub(super) fn on_t_reconfig(&self) -> Option<Expired> {
        self.requests.expired()
    }

    /// The peer answered a request. `None`: it is not outstanding, since answers may come twice.
    pub(super) fn on_response(
        &mut self,
        response: ReConfigSerial,
        result: ReConfigResult,
    ) -> Option<Answered> {
        self.requests.on_response(response, result)
    }

    /// The outstanding request, which has its outcome now.
    pub(super) fn settle(&mut self) -> Option<StreamRequest> {
        self.requests.settle()
    }

    /// What to make of a request of the peer's, by its sequence number (section 5.2.1).
    pub(super) fn on_request(&mut self, serial: ReConfigSerial) -> Standing {
        self.answers.on_request(serial)
    }

    /// What is to be done about a new request. Nothing has been done then.
    pub(super) fn judge(&self, request: &ReConfigParameter, numbers: &Numbers) -> Verdict {
        answers::judge(request, numbers, &self.requests, &self.answers)
    }

    /// The reset of `streams` that the peer asked for waits for the data up to `last_assigned_tsn`.
    pub(super) fn defer_reset(
        &mut self,
        serial: ReConfigSerial,
        from: Ipv6Addr,
        last_assigned_tsn: Tsn,
        streams: Vec<u16>,
    ) {
        self.answers.defer(Deferred {
            serial,
            from,
            last_assigned_tsn,
            streams,
        });
    }

    /// The deferred reset whose data has come: its streams, the answer, and where that goes.
    pub(super) fn take_deferred_reset(
        &mut self,
        cumulative_tsn_ack: Tsn,
    ) -> Option<(Vec<u16>, ReConfigParameter, Ipv6Addr)> {
        self.answers.take_deferred(cumulative_tsn_ack)
    }

    /// The reset of the association that the peer asked for waits for our data to be acknowledged.
    pub(super) fn defer_association_reset(&mut self, serial: ReConfigSerial, from: Ipv6Addr) {
        self.answers.defer_association_reset(serial, from);
    }

    /// The reset of the association that waits: its request, and where that came from.
    pub(super) fn deferred_association_reset(&self) -> Option<(ReConfigSerial, Ipv6Addr)> {
        self.answers.deferred_association_reset()
    }

    /// The association is reset: the answer, which names the numbers that the two ends go on with.
    pub(super) fn association_was_reset(
        &mut self,
        serial: ReConfigSerial,
        next_tsns: (Tsn, Tsn),
    ) -> ReConfigParameter {
        self.answers.association_was_reset(serial, next_tsns)
    }

    /// The answer to a request that is new, to be repeated should it come again.
    pub(super) fn answer(&mut self, serial: ReConfigSerial, result: ReConfigResult) -> ReConfigParameter {
        self.answers.answer(serial, result)
    }
}

#[cfg(test)]
mod tests;
