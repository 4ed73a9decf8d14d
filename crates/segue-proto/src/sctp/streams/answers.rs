//! The peer's requests (RFC 6525 section 5.2): what is answered, and what is carried out later.

use super::requests::StreamRequests;
use crate::sctp::StreamRequest;
use core::net::Ipv6Addr;
use segue_wire::sctp::{ReConfigParameter, ReConfigResult};
use segue_wire::{ReConfigSerial, Tsn};

/// What was answered, and what is still to be done.
#[derive(Debug, Default)]
pub(super) struct StreamAnswers {
    /// Sequence number of the peer's next request; none while nothing was heard of the peer.
    expected: Option<ReConfigSerial>,
    /// The answers to its last two requests, to be repeated: as many as travel in one chunk.
    last: [Option<ReConfigParameter>; 2],
    pending: Pending,
}

/// A request that is answered with "in progress".
#[derive(Debug, Default)]
enum Pending {
    #[default]
    None,
    /// A reset of incoming streams that waits for data sent before it (deferred reset processing).
    Streams(Deferred),
    /// A reset of the association that waits for our data to be acknowledged.
    Association(ReConfigSerial, Ipv6Addr),
}

/// A reset of incoming streams.
#[derive(Debug)]
pub(super) struct Deferred {
    pub serial: ReConfigSerial,
    pub from: Ipv6Addr,
    pub last_assigned_tsn: Tsn,
    pub streams: Vec<u16>,
}

/// What a request is, by its sequence number.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::sctp) enum Standing {
    /// The next one.
    New,
    /// One that was answered, with this; or one that is out of sequence.
    Answered(ReConfigParameter),
}

/// What the association has that requests are judged by.
#[derive(Clone, Copy, Debug)]
pub(in crate::sctp) struct Numbers {
    /// Whether the association is established, and not about to end.
    pub established: bool,
    pub inbound_streams: u16,
    /// Most streams that the peer may have.
    pub max_inbound_streams: u16,
    pub outbound_streams: u16,
    pub cumulative_tsn_ack: Tsn,
}

/// What is to be done about a request.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::sctp) enum Verdict {
    /// Nothing.
    Refuse(ReConfigResult),
    /// The streams, or all if none is named, are reset (section 5.2.2, E3 and E4).
    ResetIncoming {
        streams: Vec<u16>,
        /// It carries out the request of ours that is outstanding.
        settles: bool,
    },
    /// They are, when the data up to a TSN has come (E2): what comes behind it is held back.
    Defer {
        last_assigned_tsn: Tsn,
        streams: Vec<u16>,
        /// As above.
        settles: bool,
    },
    /// A request of ours carries it out.
    Ask(StreamRequest),
    /// The association is reset, when everything that was sent is acknowledged: new messages are held back.
    ResetAssociation,
    /// The peer has so many more streams, which makes `total`.
    AddIncoming { new_streams: u16 },
}

impl StreamAnswers {
    pub(super) fn new(peer_initial_tsn: Tsn) -> Self {
        Self {
            expected: Some(ReConfigSerial(peer_initial_tsn.0)),
            ..Self::default()
        }
    }

    /// Sequence number of the peer's last request.
    pub(super) fn last_serial(&self) -> Option<ReConfigSerial> {
        self.expected.map(ReConfigSerial::previous)
    }

    /// Whether a reset of the association waits.
    pub(super) fn resets_association(&self) -> bool {
        matches!(self.pending, Pending::Association(..))
    }

    /// Whether something waits for a TSN or a SACK.
    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.pending, Pending::None)
    }

    pub(super) fn on_request(&mut self, serial: ReConfigSerial) -> Standing {
        if self.expected == Some(serial) {
            self.expected = Some(serial.next());
            return Standing::New;
        }
        let bad = || response(serial, ReConfigResult::BadSequenceNumber, None);
        Standing::Answered(self.answer_to(serial).cloned().unwrap_or_else(bad))
    }

    pub(super) fn defer(&mut self, deferred: Deferred) {
        self.pending = Pending::Streams(deferred);
    }

    pub(super) fn take_deferred(
        &mut self,
        cumulative_tsn_ack: Tsn,
    ) -> Option<(Vec<u16>, ReConfigParameter, Ipv6Addr)> {
        match core::mem::take(&mut self.pending) {
            Pending::Streams(d) if d.last_assigned_tsn.at_or_before(cumulative_tsn_ack) => {
                let answer = response(d.serial, ReConfigResult::Performed, None);
                self.keep(d.serial, &answer);
                Some((d.streams, answer, d.from))
            }
            other => {
                self.pending = other;
                None
            }
        }
    }

    pub(super) fn defer_association_reset(&mut self, serial: ReConfigSerial, from: Ipv6Addr) {
        self.pending = Pending::Association(serial, from);
    }

    pub(super) fn deferred_association_reset(&self) -> Option<(ReConfigSerial, Ipv6Addr)> {
        match self.pending {
            Pending::Association(serial, from) => Some((serial, from)),
            Pending::None | Pending::Streams(_) => None,
        }
    }

    pub(super) fn association_was_reset(
        &mut self,
        serial: ReConfigSerial,
        next_tsns: (Tsn, Tsn),
    ) -> ReConfigParameter {
        self.pending = Pending::None;
        let answer = response(serial, ReConfigResult::Performed, Some(next_tsns));
        self.keep(serial, &answer);
        answer
    }

    /// What was done may have answered the request already.
    pub(super) fn answer(&mut self, serial: ReConfigSerial, result: ReConfigResult) -> ReConfigParameter {
        if let Some(answer) = self.answer_to(serial) {
            return answer.clone();
        }
        let answer = response(serial, result, None);
        self.keep(serial, &answer);
        answer
    }

    fn answer_to(&self, serial: ReConfigSerial) -> Option<&ReConfigParameter> {
        self.last.iter().flatten().find(|p| answers(p, serial))
    }

    /// Keeps an answer for the case that the request comes again; one to the same request is replaced.
    fn keep(&mut self, serial: ReConfigSerial, answer: &ReConfigParameter) {
        if let Some(old) = self.last.iter_mut().flatten().find(|p| answers(p, serial)) {
            *old = answer.clone();
        } else {
            self.last.swap(0, 1);
            self.last[0] = Some(answer.clone());
        }
    }
}

/// Sections 5.2.2 to 5.2.6.
pub(super) fn judge(
    request: &ReConfigParameter,
    numbers: &Numbers,
    requests: &StreamRequests,
    answers: &StreamAnswers,
) -> Verdict {
    let unknown = |streams: &[u16], known: u16| streams.iter().any(|&s| s >= known);
    match request {
        ReConfigParameter::OutgoingSsnReset {
            response,
            last_assigned_tsn,
            streams,
            ..
        } => {
            if unknown(streams, numbers.inbound_streams) {
                return Verdict::Refuse(ReConfigResult::WrongSsn);
            }
            if answers.is_busy() || requests.resets_association() {
                return Verdict::Refuse(ReConfigResult::RequestInProgress);
            }
            let (streams, settles) = (streams.clone(), requests.awaits_reset(*response));
            if last_assigned_tsn.at_or_before(numbers.cumulative_tsn_ack) {
                return Verdict::ResetIncoming { streams, settles };
            }
            Verdict::Defer {
                last_assigned_tsn: *last_assigned_tsn,
                streams,
                settles,
            }
        }
        ReConfigParameter::IncomingSsnReset { streams, .. } => {
            if unknown(streams, numbers.outbound_streams) {
                return Verdict::Refuse(ReConfigResult::WrongSsn);
            }
            if requests.is_busy() {
                return Verdict::Refuse(ReConfigResult::RequestInProgress);
            }
            if !numbers.established {
                return Verdict::Refuse(ReConfigResult::Denied);
            }
            Verdict::Ask(StreamRequest::ResetOutgoing(streams.clone()))
        }
        ReConfigParameter::SsnTsnReset { .. } => {
            if requests.is_busy() || answers.is_busy() {
                return Verdict::Refuse(ReConfigResult::RequestInProgress);
            }
            if !numbers.established {
                return Verdict::Refuse(ReConfigResult::Denied);
            }
            Verdict::ResetAssociation
        }
        ReConfigParameter::AddOutgoingStreams { new_streams, .. } => {
            let total = numbers.inbound_streams.checked_add(*new_streams);
            match total.filter(|&total| total <= numbers.max_inbound_streams) {
                Some(_) => Verdict::AddIncoming {
                    new_streams: *new_streams,
                },
                None => Verdict::Refuse(ReConfigResult::Denied),
            }
        }
        ReConfigParameter::AddIncomingStreams { new_streams, .. } => {
            if requests.is_busy() {
                return Verdict::Refuse(ReConfigResult::RequestInProgress);
            }
            if !numbers.established || numbers.outbound_streams.checked_add(*new_streams).is_none() {
                return Verdict::Refuse(ReConfigResult::Denied);
            }
            Verdict::Ask(StreamRequest::AddOutgoing(*new_streams))
        }
        ReConfigParameter::Response { .. } | ReConfigParameter::Unknown { .. } => {
            Verdict::Refuse(ReConfigResult::Denied)
        }
    }
}

fn answers(answer: &ReConfigParameter, serial: ReConfigSerial) -> bool {
    matches!(answer, ReConfigParameter::Response { response, .. } if *response == serial)
}

fn response(
    serial: ReConfigSerial,
    result: ReConfigResult,
    next_tsns: Option<(Tsn, Tsn)>,
) -> ReConfigParameter {
    ReConfigParameter::Response {
        response: serial,
        result,
        next_tsns,
    }
}
