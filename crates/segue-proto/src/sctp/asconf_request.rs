//! Our own address changes: ASCONF sent, retransmitted, answered (RFC 5061 sections 5.1 and 5.3).

use super::association::{Association, ControlPacket};
use super::path::{Destination, DestinationId};
use super::{AddressChange, AddressError, AddressRequest, AsconfResult, Event, PathState};
use crate::contract::LocalAddress;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::sctp::{Asconf, AsconfAck, AsconfResponse, Chunk, ErrorCause};
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
    /// The peer does not understand Add and Delete IP Address (F3).
    no_add_delete: bool,
    /// The peer does not understand Set Primary IP Address (F3).
    no_set_primary: bool,
}

#[derive(Debug)]
struct Outstanding {
    chunk: Asconf,
    requests: SmallVec<[(u32, AddressRequest); 1]>,
    /// Destination it was last sent to.
    destination: DestinationId,
    /// Address it was last sent from; none if it could not be sent yet.
    source: Option<LocalAddress>,
    /// T4-RTO; none while no address of ours can send it.
    t4_rto: Option<Instant>,
    /// It was asked again because the answer seemed to be lost.
    hastened: bool,
}

impl AsconfRequests {
    /// Section 5.1, A2: the first serial number is the initial TSN.
    pub(super) fn new(initial_tsn: Tsn) -> Self {
        Self {
            waiting: VecDeque::new(),
            outstanding: None,
            next_serial: AsconfSerial(initial_tsn.0),
            next_correlation_id: 1,
            no_add_delete: false,
            no_set_primary: false,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.outstanding.is_some() || !self.waiting.is_empty()
    }

    pub(super) fn t4_rto(&self) -> Option<Instant> {
        self.outstanding.as_ref().and_then(|o| o.t4_rto)
    }

    /// T4-RTO stops: nothing can be sent.
    pub(super) fn suspend(&mut self) {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.t4_rto = None;
        }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.outstanding = None;
    }
}

/// Bytes of a packet that an ASCONF cannot have for itself: IPv6 and SCTP headers, chunk header, serial number and
/// address parameter, and an AUTH chunk before it (RFC 4895 section 5.1, with 32 bytes of HMAC).
const BESIDE_REQUESTS: usize = 40 + 12 + 4 + 4 + 20 + 40;
/// Bytes of an ASCONF that tell it from others: chunk header and serial number.
const QUOTED_AT_LEAST: usize = 8;
/// Bytes of a request about an IPv6 address.
const REQUEST: usize = 28;

impl Association {
    /// Asks the peer for several changes at once: they go into one ASCONF, which the peer works off in their order.
    /// What section 5.3 forbids is refused here: deleting the last address without adding one before it (F5).
    ///
    /// # Errors
    /// See [`AddressError`]. Nothing has been asked for then.
    pub fn change_addresses(&mut self, now: Instant, changes: &[AddressChange]) -> Result<(), AddressError> {
        let requests: SmallVec<[AddressRequest; 4]> = changes.iter().map(AddressChange::request).collect();
        self.check_requests(&requests)?;
        for change in changes {
            if let AddressChange::Add(address) = *change {
                self.local.offer(address);
            }
        }
        self.take_requests(now, &requests);
        Ok(())
    }

    /// The same, of addresses that are known already.
    pub(super) fn request_changes(
        &mut self,
        now: Instant,
        requests: &[AddressRequest],
    ) -> Result<(), AddressError> {
        self.check_requests(requests)?;
        self.take_requests(now, requests);
        Ok(())
    }

    fn check_requests(&self, requests: &[AddressRequest]) -> Result<(), AddressError> {
        self.can_change_addresses()?;
        for (i, request) in requests.iter().enumerate() {
            match *request {
                AddressRequest::Add(_) | AddressRequest::Delete(_) if self.asconf.no_add_delete => {
                    return Err(AddressError::NotPossible);
                }
                AddressRequest::SetPrimary(_) if self.asconf.no_set_primary => {
                    return Err(AddressError::NotPossible);
                }
                AddressRequest::Deactivate(_) | AddressRequest::Activate(_)
                    if !self.peer_extensions.deactivation =>
                {
                    return Err(AddressError::NotPossible);
                }
                _ => self.local.check(&requests[..i], *request)?,
            }
        }
        Ok(())
    }

    fn take_requests(&mut self, now: Instant, requests: &[AddressRequest]) {
        self.asconf.waiting.extend(requests);
        self.local.ask(requests);
        self.follow_source();
        self.send_waiting_asconf(now);
    }

    pub(super) fn can_change_addresses(&self) -> Result<(), AddressError> {
        let possible = self.is_established() && self.peer_extensions.asconf;
        if possible {
            Ok(())
        } else {
            Err(AddressError::NotPossible)
        }
    }

    /// Takes back an Add IP Address that was not sent yet, and what else was to be asked about that address: it failed
    /// without having been asked.
    pub(super) fn withdraw_add(&mut self, address: Ipv6Addr) -> bool {
        if !self.asconf.waiting.contains(&AddressRequest::Add(address)) {
            return false;
        }
        let about = |r: &AddressRequest| r.address() == address;
        let results: SmallVec<[AsconfResult; 1]> = self
            .asconf
            .waiting
            .iter()
            .filter(|r| about(r))
            .map(|&request| AsconfResult {
                request,
                outcome: Err(Vec::new()),
            })
            .collect();
        self.asconf.waiting.retain(|r| !about(r));
        let serial = self.asconf.next_serial;
        self.out.tell(Event::AsconfAnswered { serial, results });
        true
    }

    /// Section 5.1.1: one ASCONF is outstanding at a time. All requests that wait go into the next one, as far as they
    /// fit a packet.
    pub(super) fn send_waiting_asconf(&mut self, now: Instant) {
        if self.asconf.outstanding.is_some() || self.asconf.waiting.is_empty() {
            return;
        }
        let most = ((self.config.mtu as usize).saturating_sub(BESIDE_REQUESTS) / REQUEST).max(1);
        let mut requests = SmallVec::new();
        let mut parameters = Vec::new();
        while parameters.len() < most
            && let Some(request) = self.asconf.waiting.pop_front()
        {
            let correlation_id = self.asconf.next_correlation_id;
            self.asconf.next_correlation_id = correlation_id.wrapping_add(1);
            requests.push((correlation_id, request));
            parameters.push(request.parameter(correlation_id));
        }
        let chunk = Asconf {
            serial_number: self.asconf.next_serial,
            // an address that the peer knows already: it finds the association by it (sections 5.2, D2, and 5.3.2)
            address: self.local.source().address,
            parameters,
        };
        self.asconf.next_serial = self.asconf.next_serial.next();
        let destination = self.current;
        self.asconf.outstanding = Some(Outstanding {
            chunk,
            requests,
            destination,
            source: None,
            t4_rto: None,
            hastened: false,
        });
        self.transmit_asconf(now);
    }

    /// Sends the outstanding ASCONF, if there is an address that can.
    fn transmit_asconf(&mut self, now: Instant) {
        let (source, stranded) = (self.local.asconf_source(), self.is_stranded());
        let Some(outstanding) = &mut self.asconf.outstanding else {
            return;
        };
        let Some(source) = source else {
            outstanding.t4_rto = None;
            return;
        };
        let d = self.destinations.get(outstanding.destination);
        if d.is_none_or(|d| d.deactivated) {
            outstanding.destination = self.current;
        }
        if stranded {
            let towards = outstanding.destination;
            // unless the routing table is known not to reach it from there, but another one
            let reached = |d: &Destination| !d.deactivated && self.local.reaches(source, d.address);
            outstanding.destination = if reached(&self.destinations[towards]) {
                towards
            } else {
                let other = self.destinations.iter().find(|(_, d)| reached(d));
                other.map_or(towards, |(id, _)| id)
            };
        }
        let d = &self.destinations[outstanding.destination];
        // A4: the RTO of the destination, which is that of the path it takes
        let path = self.paths.get(d.path).filter(|_| !stranded);
        let rto = path.map_or(self.config.rto_initial, |p| p.rto());
        outstanding.t4_rto = Some(now + rto);
        let (destination, chunk) = (d.address, outstanding.chunk.clone());
        // among addresses that serve as well, the one that the routing table has for the destination
        let source = if self.local.source_at(source.address) == Some(source) {
            self.source_towards(destination)
        } else {
            source
        };
        if let Some(outstanding) = &mut self.asconf.outstanding {
            outstanding.source = Some(source);
        }
        self.out.counters.asconfs_sent += 1;
        let chunks = SmallVec::from_buf([Chunk::Asconf(Box::new(chunk))]);
        self.out
            .send(ControlPacket::new(destination, chunks).sent_from(source));
    }

    /// Our addresses changed: an ASCONF that left from one that is gone, or could not leave, goes out again at once,
    /// without waiting for T4-RTO. The path it took is not to blame.
    pub(super) fn asconf_route_changed(&mut self, now: Instant) {
        let Some(outstanding) = &self.asconf.outstanding else {
            return;
        };
        let former = outstanding.source;
        let lost = former.is_none_or(|s| !self.local.is_on_interface(s));
        if lost || outstanding.t4_rto.is_none() {
            self.transmit_asconf(now);
        }
    }

    /// T4-RTO expired (section 5.1, B1 to B5): errors are counted, the RTO doubles, the same ASCONF goes out again, to
    /// an alternate if there is one.
    pub(super) fn on_t4(&mut self, now: Instant) {
        let Some(outstanding) = &self.asconf.outstanding else {
            return;
        };
        let last = outstanding.destination;
        if self.destinations.contains(last) {
            let path = self.destinations[last].path;
            if let Some(path) = self.paths.get_mut(path) {
                path.rtt.back_off();
            }
            if !self.count_error(last) {
                return;
            }
        }
        let next = self
            .usable_destination(Some(last))
            .or_else(|| self.next_destination(last));
        if let Some(outstanding) = &mut self.asconf.outstanding
            && let Some(next) = next
        {
            outstanding.destination = next;
        }
        self.transmit_asconf(now);
    }

    /// The ASCONF, if it is outstanding and was not asked again, whose answer is to end our being stranded by adding
    /// `address`.
    pub(super) fn awaited_for(&self, address: Ipv6Addr) -> Option<AsconfSerial> {
        let outstanding = self.asconf.outstanding.as_ref()?;
        let asks = |r: &(u32, AddressRequest)| r.1 == AddressRequest::Add(address);
        let waits = outstanding.t4_rto.is_some() && !outstanding.hastened;
        (waits && self.is_stranded() && outstanding.requests.iter().any(asks))
            .then_some(outstanding.chunk.serial_number)
    }

    /// A packet without the answer arrived at the address that the ASCONF `serial` adds: the peer has added it, and sent
    /// the answer elsewhere. usrsctp 0.9.5 sends it to the address that the ASCONF names; the answer to one that comes
    /// again, to where that came from. So it is asked again at once, instead of with T4-RTO; once.
    pub(super) fn ask_again(&mut self, now: Instant, serial: AsconfSerial) {
        let Some(outstanding) = &mut self.asconf.outstanding else {
            return;
        };
        if outstanding.chunk.serial_number == serial {
            outstanding.hastened = true;
            self.transmit_asconf(now);
        }
    }

    pub(super) fn on_asconf_ack(&mut self, now: Instant, ack: &AsconfAck) {
        let Some(outstanding) = &self.asconf.outstanding else {
            // section 5.3, F0: an answer to something never asked
            self.out.counters.refused.bad_asconf_serial += 1;
            if !ack.serial_number.before(self.asconf.next_serial) {
                self.abort_with(ErrorCause::IllegalAsconfAck);
            }
            return;
        };
        let serial = outstanding.chunk.serial_number;
        if ack.serial_number != serial {
            self.out.counters.refused.bad_asconf_serial += 1;
            if !ack.serial_number.before(self.asconf.next_serial) {
                self.abort_with(ErrorCause::IllegalAsconfAck);
            }
            return;
        }
        let Some(outstanding) = self.asconf.outstanding.take() else {
            return;
        };
        // A5
        let asked = self.destinations.get(outstanding.destination);
        if asked.is_some_and(|d| d.state != PathState::Unconfirmed) {
            self.clear_errors(outstanding.destination);
        }
        let was_stranded = self.is_stranded();
        let mut results: SmallVec<[AsconfResult; 1]> = SmallVec::new();
        let mut failed = false;
        for (correlation_id, request) in outstanding.requests {
            let outcome = outcome_of(correlation_id, &ack.responses, failed);
            failed |= outcome.is_err();
            if let Err(causes) = &outcome {
                self.note_not_understood(request, causes);
            }
            self.apply_outcome(request, outcome.is_ok());
            results.push(AsconfResult { request, outcome });
        }
        self.out.tell(Event::AsconfAnswered { serial, results });
        self.after_address_change(now, was_stranded);
        self.send_waiting_asconf(now);
        self.find_a_way(now);
    }

    /// F3: a request that the peer does not understand is not made again.
    fn note_not_understood(&mut self, request: AddressRequest, causes: &[ErrorCause]) {
        if !causes
            .iter()
            .any(|c| matches!(c, ErrorCause::UnrecognizedParameters(_)))
        {
            return;
        }
        match request {
            AddressRequest::Add(_) | AddressRequest::Delete(_) => self.asconf.no_add_delete = true,
            AddressRequest::SetPrimary(_) => self.asconf.no_set_primary = true,
            AddressRequest::Deactivate(_) | AddressRequest::Activate(_) => {
                self.peer_extensions.deactivation = false;
            }
        }
    }

    /// The peer reports an ASCONF as an unknown chunk (section 5.1, A9): it does not support it, and all that was
    /// asked, or was to be, fails. ERROR is not authenticated: it counts only if it quotes the ASCONF that waits for
    /// its answer, so that nobody who did not see that one can turn address changes off.
    pub(super) fn on_asconf_unknown(&mut self, cause: &ErrorCause, quoted: &[u8]) {
        let is_quoted = |outstanding: &mut Outstanding| {
            let mut whole = Vec::new();
            Chunk::Asconf(Box::new(outstanding.chunk.clone())).emit(&mut whole);
            // the end of it may have been cut off
            quoted.len() >= QUOTED_AT_LEAST && whole.starts_with(quoted)
        };
        let Some(outstanding) = self.asconf.outstanding.take_if(is_quoted) else {
            self.out.counters.refused.unexpected += 1;
            return;
        };
        self.peer_extensions.asconf = false;
        let asked = outstanding.requests.into_iter().map(|r| r.1);
        let results: SmallVec<[AsconfResult; 1]> = asked
            .chain(self.asconf.waiting.drain(..))
            .map(|request| AsconfResult {
                request,
                outcome: Err(vec![cause.clone()]),
            })
            .collect();
        for result in &results {
            self.apply_outcome(result.request, false);
        }
        self.follow_source();
        self.out.tell(Event::AsconfAnswered {
            serial: outstanding.chunk.serial_number,
            results,
        });
    }

    /// What the peer granted comes into force; what it refused is as it was.
    fn apply_outcome(&mut self, request: AddressRequest, granted: bool) {
        if self.local.settle(request, granted) {
            self.retire_paths_from(request.address());
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
