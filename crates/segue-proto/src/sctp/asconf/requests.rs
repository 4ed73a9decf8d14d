//! Our address changes: ASCONF sent, repeated and answered (RFC 5061 sections 5.1 and 5.3).

use crate::contract::LocalAddress;
use crate::sctp::ids::DestinationId;
use crate::sctp::{AddressError, AddressRequest, AsconfResult, Event};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::sctp::{Asconf as AsconfChunk, AsconfAck, AsconfResponse, Chunk, ErrorCause};
use segue_wire::{AsconfSerial, Tsn};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Requests waiting and the one ASCONF outstanding.
#[derive(Debug)]
pub(super) struct AsconfRequests {
    waiting: VecDeque<AddressRequest>,
    outstanding: Option<Outstanding>,
    next_serial: AsconfSerial,
    next_correlation_id: u32,
    understood: Understood,
}

/// What the peer has not yet said that it does not understand (F3): that is asked for no more.
#[derive(Clone, Copy, Debug)]
struct Understood {
    /// ASCONF at all.
    asconf: bool,
    add_delete: bool,
    set_primary: bool,
    /// Of addresses (see [`deactivation`](super::deactivation)).
    deactivation: bool,
}

#[derive(Debug)]
struct Outstanding {
    chunk: AsconfChunk,
    requests: SmallVec<[(u32, AddressRequest); 1]>,
    /// Destination it was last sent to, or will be.
    destination: DestinationId,
    sent: Sent,
    /// It was asked again because the answer seemed to be lost.
    hastened: bool,
}

/// Whether the answer may come.
#[derive(Clone, Copy, Debug)]
enum Sent {
    /// It cannot: no address of ours could send it, or none is left that did.
    Suspended,
    /// It was last sent from `source`, and goes again at `t4_rto`.
    From { source: LocalAddress, t4_rto: Instant },
}

/// An ASCONF that has its answer, or will never have one.
#[derive(PartialEq, Debug)]
pub(in crate::sctp) struct Settled {
    pub serial: AsconfSerial,
    /// Every request with its outcome.
    pub results: SmallVec<[AsconfResult; 1]>,
}

impl Settled {
    /// What the user is told.
    pub(in crate::sctp) fn into_event(self) -> Event {
        Event::AsconfAnswered {
            serial: self.serial,
            results: self.results,
        }
    }
}

/// What an ASCONF-ACK is.
#[derive(PartialEq, Debug)]
pub(in crate::sctp) enum Acknowledged {
    /// The answer to the outstanding ASCONF, which was last sent to `destination`.
    Settled {
        settled: Settled,
        destination: DestinationId,
    },
    /// One that came before.
    Again,
    /// The answer to something never asked (section 5.3, F0).
    NeverAsked,
}

/// Bytes of a packet that an ASCONF cannot have for itself: IPv6 and SCTP headers, chunk header, serial number and
/// address parameter, and an AUTH chunk before it (RFC 4895 section 5.1, with 32 bytes of HMAC).
const BESIDE_REQUESTS: usize = 40 + 12 + 4 + 4 + 20 + 40;
/// Bytes of an ASCONF that tell it from others: chunk header and serial number.
const QUOTED_AT_LEAST: usize = 8;
/// Bytes of a request about an IPv6 address.
const REQUEST: usize = 28;

impl AsconfRequests {
    /// Section 5.1, A2: the first serial number is the initial TSN.
    pub(super) fn new(initial_tsn: Tsn) -> Self {
        Self {
            waiting: VecDeque::new(),
            outstanding: None,
            next_serial: AsconfSerial(initial_tsn.0),
            next_correlation_id: 1,
            understood: Understood {
                asconf: true,
                add_delete: true,
                set_primary: true,
                deactivation: true,
            },
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.outstanding.is_some() || !self.waiting.is_empty()
    }

    pub(super) fn t4_rto(&self) -> Option<Instant> {
        match self.outstanding.as_ref()?.sent {
            Sent::Suspended => None,
            Sent::From { t4_rto, .. } => Some(t4_rto),
        }
    }

    pub(super) fn suspend(&mut self) {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.sent = Sent::Suspended;
        }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.outstanding = None;
    }

    pub(super) fn peer_understands_asconf(&self) -> bool {
        self.understood.asconf
    }

    pub(super) fn peer_understands_deactivation(&self) -> bool {
        self.understood.deactivation
    }

    pub(super) fn check(&self, request: AddressRequest) -> Result<(), AddressError> {
        let understood = match request {
            AddressRequest::Add(_) | AddressRequest::Delete(_) => self.understood.add_delete,
            AddressRequest::SetPrimary(_) => self.understood.set_primary,
            AddressRequest::Deactivate(_) | AddressRequest::Activate(_) => self.understood.deactivation,
        };
        understood.then_some(()).ok_or(AddressError::NotPossible)
    }

    pub(super) fn push(&mut self, requests: &[AddressRequest]) {
        self.waiting.extend(requests);
    }

    pub(super) fn withdraw_add(&mut self, address: Ipv6Addr) -> Option<Settled> {
        if !self.waiting.contains(&AddressRequest::Add(address)) {
            return None;
        }
        let about = |r: &AddressRequest| r.address() == address;
        let withdrawn = self.waiting.iter().filter(|r| about(r));
        let failed = |&request: &AddressRequest| AsconfResult {
            request,
            outcome: Err(Vec::new()),
        };
        let results = withdrawn.map(failed).collect();
        self.waiting.retain(|r| !about(r));
        Some(Settled {
            serial: self.next_serial,
            results,
        })
    }

    pub(super) fn begin(&mut self, mtu: u32, address: Ipv6Addr, destination: DestinationId) -> bool {
        if self.outstanding.is_some() || self.waiting.is_empty() {
            return false;
        }
        let most = ((mtu as usize).saturating_sub(BESIDE_REQUESTS) / REQUEST).max(1);
        let mut requests = SmallVec::new();
        let mut parameters = Vec::new();
        while parameters.len() < most
            && let Some(request) = self.waiting.pop_front()
        {
            let correlation_id = self.next_correlation_id;
            self.next_correlation_id = correlation_id.wrapping_add(1);
            requests.push((correlation_id, request));
            parameters.push(request.parameter(correlation_id));
        }
        let chunk = AsconfChunk {
            serial_number: self.next_serial,
            address,
            parameters,
        };
        self.next_serial = self.next_serial.next();
        self.outstanding = Some(Outstanding {
            chunk,
            requests,
            destination,
            sent: Sent::Suspended,
            hastened: false,
        });
        true
    }

    pub(super) fn destination(&self) -> Option<DestinationId> {
        self.outstanding.as_ref().map(|o| o.destination)
    }

    pub(super) fn transmit(
        &mut self,
        source: LocalAddress,
        destination: DestinationId,
        t4_rto: Instant,
    ) -> Option<AsconfChunk> {
        let outstanding = self.outstanding.as_mut()?;
        outstanding.destination = destination;
        outstanding.sent = Sent::From { source, t4_rto };
        Some(outstanding.chunk.clone())
    }

    pub(super) fn cannot_be_answered(&self, is_ours: impl FnOnce(LocalAddress) -> bool) -> bool {
        match self.outstanding.as_ref().map(|o| o.sent) {
            None => false,
            Some(Sent::Suspended) => true,
            Some(Sent::From { source, .. }) => !is_ours(source),
        }
    }

    pub(super) fn awaited_for(&self, address: Ipv6Addr) -> Option<AsconfSerial> {
        let outstanding = self.outstanding.as_ref()?;
        let asks = |r: &(u32, AddressRequest)| r.1 == AddressRequest::Add(address);
        let waits = matches!(outstanding.sent, Sent::From { .. }) && !outstanding.hastened;
        (waits && outstanding.requests.iter().any(asks)).then_some(outstanding.chunk.serial_number)
    }

    pub(super) fn hasten(&mut self, serial: AsconfSerial) -> bool {
        let outstanding = self.outstanding.as_mut();
        let Some(outstanding) = outstanding.filter(|o| o.chunk.serial_number == serial) else {
            return false;
        };
        outstanding.hastened = true;
        true
    }

    pub(super) fn on_ack(&mut self, ack: &AsconfAck) -> Acknowledged {
        let is_its = |o: &mut Outstanding| o.chunk.serial_number == ack.serial_number;
        let Some(outstanding) = self.outstanding.take_if(is_its) else {
            return if ack.serial_number.before(self.next_serial) {
                Acknowledged::Again
            } else {
                Acknowledged::NeverAsked
            };
        };
        let mut results: SmallVec<[AsconfResult; 1]> = SmallVec::new();
        let mut failed = false;
        for (correlation_id, request) in outstanding.requests {
            let outcome = outcome_of(correlation_id, &ack.responses, failed);
            failed |= outcome.is_err();
            if let Err(causes) = &outcome {
                self.understood.note(request, causes);
            }
            results.push(AsconfResult { request, outcome });
        }
        Acknowledged::Settled {
            settled: Settled {
                serial: ack.serial_number,
                results,
            },
            destination: outstanding.destination,
        }
    }

    pub(super) fn on_unknown(&mut self, cause: &ErrorCause, quoted: &[u8]) -> Option<Settled> {
        let is_quoted = |outstanding: &mut Outstanding| {
            let mut whole = Vec::new();
            Chunk::Asconf(Box::new(outstanding.chunk.clone())).emit(&mut whole);
            // the end of it may have been cut off
            quoted.len() >= QUOTED_AT_LEAST && whole.starts_with(quoted)
        };
        let outstanding = self.outstanding.take_if(is_quoted)?;
        self.understood.asconf = false;
        let asked = outstanding.requests.into_iter().map(|r| r.1);
        let failed = |request| AsconfResult {
            request,
            outcome: Err(vec![cause.clone()]),
        };
        Some(Settled {
            serial: outstanding.chunk.serial_number,
            results: asked.chain(self.waiting.drain(..)).map(failed).collect(),
        })
    }
}

impl Understood {
    /// F3: a request that the peer does not understand is not made again.
    fn note(&mut self, request: AddressRequest, causes: &[ErrorCause]) {
        let unknown = |c: &ErrorCause| matches!(c, ErrorCause::UnrecognizedParameters(_));
        if !causes.iter().any(unknown) {
            return;
        }
        match request {
            AddressRequest::Add(_) | AddressRequest::Delete(_) => self.add_delete = false,
            AddressRequest::SetPrimary(_) => self.set_primary = false,
            AddressRequest::Deactivate(_) | AddressRequest::Activate(_) => self.deactivation = false,
        }
    }
}

/// Section 5.1, A7 and A8: a request named succeeded or failed as it says; one not named succeeded, unless one
/// before it failed.
fn outcome_of(
    correlation_id: u32,
    responses: &[AsconfResponse],
    failed_before: bool,
) -> Result<(), Vec<ErrorCause>> {
    for response in responses {
        match response {
            AsconfResponse::SuccessIndication { correlation_id: id } if *id == correlation_id => {
                return Ok(());
            }
            AsconfResponse::ErrorCauseIndication {
                correlation_id: id,
                causes,
            } if *id == correlation_id => {
                return Err(causes.clone());
            }
            _ => {}
        }
    }
    if failed_before { Err(Vec::new()) } else { Ok(()) }
}
