//! Our requests (RFC 6525 sections 5.1 and 5.2.7): one at a time, sent again by T-reconfig until it is answered.

use crate::sctp::ids::DestinationId;
use crate::sctp::{StreamRefused, StreamRequest};
use crate::time::Instant;
use segue_wire::sctp::{ReConfig, ReConfigParameter, ReConfigResult};
use segue_wire::{ReConfigSerial, Tsn};
use std::collections::VecDeque;

/// Requests waiting and the one at hand.
#[derive(Debug)]
pub(super) struct StreamRequests {
    waiting: VecDeque<Waiting>,
    stage: Stage,
    next_serial: ReConfigSerial,
}

#[derive(Debug)]
struct Waiting {
    request: StreamRequest,
    /// The request of the peer's that it carries out.
    answers: Option<ReConfigSerial>,
}

/// Where the request at hand is.
#[derive(Debug)]
enum Stage {
    /// There is none.
    Idle,
    /// It is next, and what it concerns is no longer sent.
    Next(Waiting),
    Outstanding(Outstanding),
}

#[derive(Debug)]
struct Outstanding {
    request: StreamRequest,
    serial: ReConfigSerial,
    chunk: ReConfig,
    destination: DestinationId,
    /// T-reconfig; none while nothing can be sent.
    t_reconfig: Option<Instant>,
    peer: Peer,
}

/// What the peer said so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Peer {
    Silent,
    /// It is at it: silence is no error.
    InProgress,
}

/// The request that goes next.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::sctp) struct NextRequest<'a> {
    /// Messages of these streams, of all if none is named, are to be held back from now on.
    pub hold: Option<&'a [u16]>,
    pub when: When<'a>,
}

/// When a request may go.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::sctp) enum When<'a> {
    Now,
    /// When no message of these streams, of any if none is named, is being sent (section 5.1.2, A1).
    NotAmid(&'a [u16]),
    /// When everything sent is acknowledged (section 5.1.4); what comes from then on is held back.
    AllAcknowledged,
}

/// What a response says of the outstanding request.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Answered {
    /// Where the request was last sent to: it arrived.
    pub destination: DestinationId,
    /// `None`: the peer is at it.
    pub outcome: Option<Result<(), StreamRefused>>,
}

/// A request that was not answered in time.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Expired {
    /// Where it was last sent to.
    pub destination: DestinationId,
    /// Whether that is an error (section 5.1.1): not if the peer said that it is at it.
    pub is_error: bool,
}

impl StreamRequests {
    pub(super) fn new(initial_tsn: Tsn) -> Self {
        Self {
            waiting: VecDeque::new(),
            stage: Stage::Idle,
            next_serial: ReConfigSerial(initial_tsn.0),
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.stage, Stage::Idle) || !self.waiting.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.stage = Stage::Idle;
    }

    /// Whether a reset of the association is outstanding.
    pub(super) fn resets_association(&self) -> bool {
        self.outstanding()
            .is_some_and(|o| o.request == StreamRequest::ResetAssociation)
    }

    /// Whether the outstanding request is the incoming SSN reset request `serial`.
    pub(super) fn awaits_reset(&self, serial: ReConfigSerial) -> bool {
        self.outstanding()
            .is_some_and(|o| o.serial == serial && matches!(o.request, StreamRequest::ResetIncoming(_)))
    }

    pub(super) fn t_reconfig(&self) -> Option<Instant> {
        self.outstanding().and_then(|o| o.t_reconfig)
    }

    pub(super) fn suspend(&mut self) {
        if let Stage::Outstanding(outstanding) = &mut self.stage {
            outstanding.t_reconfig = None;
        }
    }

    pub(super) fn push(&mut self, request: StreamRequest, answers: Option<ReConfigSerial>) {
        self.waiting.push_back(Waiting { request, answers });
    }

    pub(super) fn next(&mut self) -> Option<NextRequest<'_>> {
        let is_new = match self.stage {
            Stage::Idle => {
                self.stage = Stage::Next(self.waiting.pop_front()?);
                true
            }
            Stage::Next(_) | Stage::Outstanding(_) => false,
        };
        let Stage::Next(next) = &self.stage else {
            return None;
        };
        let (hold, when) = match &next.request {
            StreamRequest::ResetOutgoing(streams) => (Some(&streams[..]), When::NotAmid(streams)),
            StreamRequest::ResetAssociation => (Some(&[][..]), When::AllAcknowledged),
            _ => (None, When::Now),
        };
        let hold = hold.filter(|_| is_new);
        Some(NextRequest { hold, when })
    }

    pub(super) fn begin(
        &mut self,
        last_answered: ReConfigSerial,
        last_assigned_tsn: Tsn,
        destination: DestinationId,
    ) {
        let Waiting { request, answers } = match core::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Next(next) => next,
            other => {
                self.stage = other;
                return;
            }
        };
        let serial = self.next_serial;
        self.next_serial = serial.next();
        let parameter = match request.clone() {
            StreamRequest::ResetOutgoing(streams) => ReConfigParameter::OutgoingSsnReset {
                request: serial,
                response: answers.unwrap_or(last_answered),
                last_assigned_tsn,
                streams,
            },
            StreamRequest::ResetIncoming(streams) => ReConfigParameter::IncomingSsnReset {
                request: serial,
                streams,
            },
            StreamRequest::ResetAssociation => ReConfigParameter::SsnTsnReset { request: serial },
            StreamRequest::AddOutgoing(new_streams) => ReConfigParameter::AddOutgoingStreams {
                request: serial,
                new_streams,
            },
            StreamRequest::AddIncoming(new_streams) => ReConfigParameter::AddIncomingStreams {
                request: serial,
                new_streams,
            },
        };
        self.stage = Stage::Outstanding(Outstanding {
            request,
            serial,
            chunk: ReConfig {
                parameters: vec![parameter],
            },
            destination,
            t_reconfig: None,
            peer: Peer::Silent,
        });
    }

    pub(super) fn transmit(&mut self, destination: DestinationId, t_reconfig: Instant) -> Option<ReConfig> {
        let Stage::Outstanding(outstanding) = &mut self.stage else {
            return None;
        };
        outstanding.destination = destination;
        outstanding.t_reconfig = Some(t_reconfig);
        Some(outstanding.chunk.clone())
    }

    pub(super) fn expired(&self) -> Option<Expired> {
        self.outstanding().map(|o| Expired {
            destination: o.destination,
            is_error: o.peer == Peer::Silent,
        })
    }

    pub(super) fn on_response(
        &mut self,
        response: ReConfigSerial,
        result: ReConfigResult,
    ) -> Option<Answered> {
        let Stage::Outstanding(outstanding) = &mut self.stage else {
            return None;
        };
        if outstanding.serial != response {
            return None;
        }
        let outcome = match result {
            ReConfigResult::InProgress => {
                outstanding.peer = Peer::InProgress;
                None
            }
            ReConfigResult::NothingToDo | ReConfigResult::Performed => Some(Ok(())),
            ReConfigResult::Denied => Some(Err(StreamRefused::Denied)),
            ReConfigResult::RequestInProgress => Some(Err(StreamRefused::Busy)),
            ReConfigResult::WrongSsn | ReConfigResult::BadSequenceNumber | ReConfigResult::Other(_) => {
                Some(Err(StreamRefused::Error))
            }
        };
        Some(Answered {
            destination: outstanding.destination,
            outcome,
        })
    }

    pub(super) fn settle(&mut self) -> Option<StreamRequest> {
        match core::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Outstanding(outstanding) => Some(outstanding.request),
            other => {
                self.stage = other;
                None
            }
        }
    }

    fn outstanding(&self) -> Option<&Outstanding> {
        match &self.stage {
            Stage::Outstanding(outstanding) => Some(outstanding),
            Stage::Idle | Stage::Next(_) => None,
        }
    }
}
