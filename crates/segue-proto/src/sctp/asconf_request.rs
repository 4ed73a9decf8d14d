//! Our own address changes: ASCONF sent, retransmitted, answered (RFC 5061 sections 5.1 and 5.3).

use super::association::{Association, ControlPacket, Local, LocalState};
use super::{AddressError, AddressRequest, AsconfResult, Event, PathState};
use crate::contract::LocalAddress;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::sctp::{Asconf, AsconfAck, AsconfParameter, AsconfResponse, Chunk, ErrorCause};
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
}

#[derive(Debug)]
struct Outstanding {
    chunk: Asconf,
    requests: SmallVec<[(u32, AddressRequest); 1]>,
    /// Destination it was last sent to.
    destination: usize,
    t4_rto: Instant,
}

impl AsconfRequests {
    /// Section 5.1, A2: the first serial number is the initial TSN.
    pub(super) fn new(initial_tsn: Tsn) -> Self {
        Self {
            waiting: VecDeque::new(),
            outstanding: None,
            next_serial: AsconfSerial(initial_tsn.0),
            next_correlation_id: 1,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.outstanding.is_some() || !self.waiting.is_empty()
    }

    pub(super) fn t4_rto(&self) -> Option<Instant> {
        self.outstanding.as_ref().map(|o| o.t4_rto)
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.outstanding = None;
    }
}

impl Association {
    pub(super) fn request_add(&mut self, now: Instant, address: LocalAddress) -> Result<(), AddressError> {
        self.can_change_addresses()?;
        if self.local.iter().any(|l| l.address.address == address.address) {
            return Err(AddressError::BadAddress);
        }
        self.local.push(Local {
            address,
            state: LocalState::Adding,
        });
        self.request(now, AddressRequest::Add(address.address));
        Ok(())
    }

    pub(super) fn request_delete(&mut self, now: Instant, address: Ipv6Addr) -> Result<(), AddressError> {
        self.can_change_addresses()?;
        let index = self
            .local_index(address, LocalState::InUse)
            .ok_or(AddressError::BadAddress)?;
        if self.local.iter().filter(|l| l.state == LocalState::InUse).count() < 2 {
            return Err(AddressError::LastAddress);
        }
        self.local[index].state = LocalState::Deleting;
        self.update_source();
        if self.route.address == address {
            self.route = self.source;
        }
        self.request(now, AddressRequest::Delete(address));
        Ok(())
    }

    pub(super) fn request_primary(&mut self, now: Instant, address: Ipv6Addr) -> Result<(), AddressError> {
        self.can_change_addresses()?;
        if !self
            .local
            .iter()
            .any(|l| l.address.address == address && l.state != LocalState::Deleting)
        {
            return Err(AddressError::BadAddress);
        }
        self.request(now, AddressRequest::SetPrimary(address));
        Ok(())
    }

    fn can_change_addresses(&self) -> Result<(), AddressError> {
        let possible = self.is_established() && self.peer_extensions.asconf;
        if possible {
            Ok(())
        } else {
            Err(AddressError::NotPossible)
        }
    }

    fn local_index(&self, address: Ipv6Addr, state: LocalState) -> Option<usize> {
        self.local
            .iter()
            .position(|l| l.address.address == address && l.state == state)
    }

    fn request(&mut self, now: Instant, request: AddressRequest) {
        self.asconf.waiting.push_back(request);
        self.send_waiting_asconf(now);
    }

    /// Section 5.1.1, C1: one ASCONF at a time. All requests that wait go into the next one.
    fn send_waiting_asconf(&mut self, now: Instant) {
        if self.asconf.outstanding.is_some() || self.asconf.waiting.is_empty() {
            return;
        }
        let mut requests = SmallVec::new();
        let mut parameters = Vec::new();
        while let Some(request) = self.asconf.waiting.pop_front() {
            let correlation_id = self.asconf.next_correlation_id;
            self.asconf.next_correlation_id = correlation_id.wrapping_add(1);
            requests.push((correlation_id, request));
            parameters.push(match request {
                AddressRequest::Add(address) => AsconfParameter::AddIpAddress {
                    correlation_id,
                    address,
                },
                AddressRequest::Delete(address) => AsconfParameter::DeleteIpAddress {
                    correlation_id,
                    address,
                },
                AddressRequest::SetPrimary(address) => AsconfParameter::SetPrimaryAddress {
                    correlation_id,
                    address,
                },
            });
        }
        let chunk = Asconf {
            serial_number: self.asconf.next_serial,
            // an address that the peer knows already: it finds the association by it (section 4.1.1)
            address: self.source.address,
            parameters,
        };
        self.asconf.next_serial = self.asconf.next_serial.next();
        let destination = self.current;
        self.asconf.outstanding = Some(Outstanding {
            chunk,
            requests,
            destination,
            t4_rto: now,
        });
        self.transmit_asconf(now);
    }

    /// Sends the outstanding ASCONF from the route: that may be the very address being added (section 5.3, F1).
    fn transmit_asconf(&mut self, now: Instant) {
        let Some(outstanding) = &mut self.asconf.outstanding else {
            return;
        };
        let deleting = outstanding
            .requests
            .iter()
            .any(|r| r.1 == AddressRequest::Delete(self.route.address));
        if !self.destinations[outstanding.destination].in_use {
            outstanding.destination = self.current;
        }
        let d = &self.destinations[outstanding.destination];
        let rto = self
            .paths
            .get(usize::from(d.path.0))
            .map_or(self.config.rto_initial, |p| p.rto());
        outstanding.t4_rto = now + rto;
        let (destination, chunk) = (d.address, outstanding.chunk.clone());
        // a route that is no source yet is an address being added
        let source = if self.route == self.source || deleting {
            self.source_towards(destination)
        } else {
            self.route
        };
        self.control.push_back(ControlPacket {
            source: Some(source),
            destination,
            verification_tag: self.peer_tag,
            chunks: SmallVec::from_buf([Chunk::Asconf(Box::new(chunk))]),
        });
    }

    /// T4-RTO expired (section 5.1, B1 to B5): errors are counted, the RTO doubles, the same ASCONF goes out again, to
    /// an alternate if there is one.
    pub(super) fn on_t4(&mut self, now: Instant) {
        let Some(outstanding) = &self.asconf.outstanding else {
            return;
        };
        let last = outstanding.destination;
        if self.destinations[last].in_use {
            let path = self.destinations[last].path;
            if let Some(path) = self.paths.get_mut(usize::from(path.0)) {
                path.rtt.back_off();
            }
            if !self.count_error(last) {
                return;
            }
        }
        let next = self.usable_destination(Some(last));
        if let Some(outstanding) = &mut self.asconf.outstanding
            && let Some(next) = next
        {
            outstanding.destination = next;
        }
        self.transmit_asconf(now);
    }

    pub(super) fn on_asconf_ack(&mut self, now: Instant, ack: &AsconfAck) {
        let Some(outstanding) = &self.asconf.outstanding else {
            // section 5.1, D0: an answer to something never asked
            self.counters.refused.bad_asconf_serial += 1;
            if !ack.serial_number.before(self.asconf.next_serial) {
                self.abort_with(ErrorCause::IllegalAsconfAck);
            }
            return;
        };
        let serial = outstanding.chunk.serial_number;
        if ack.serial_number != serial {
            self.counters.refused.bad_asconf_serial += 1;
            if !ack.serial_number.before(self.asconf.next_serial) {
                self.abort_with(ErrorCause::IllegalAsconfAck);
            }
            return;
        }
        let Some(outstanding) = self.asconf.outstanding.take() else {
            return;
        };
        if self.destinations[outstanding.destination].in_use
            && self.destinations[outstanding.destination].state != PathState::Unconfirmed
        {
            self.clear_errors(outstanding.destination);
        }
        let mut results: SmallVec<[AsconfResult; 1]> = SmallVec::new();
        let mut failed = false;
        for (correlation_id, request) in outstanding.requests {
            let outcome = outcome_of(correlation_id, &ack.responses, failed);
            failed |= outcome.is_err();
            self.apply_outcome(request, outcome.is_ok());
            results.push(AsconfResult { request, outcome });
        }
        self.update_source();
        self.events.push_back(Event::AsconfAnswered { serial, results });
        self.send_waiting_asconf(now);
    }

    /// The peer does not know ASCONF (RFC 5061 section 4.1.1): all that was asked, or was to be, fails.
    pub(super) fn fail_requests(&mut self, cause: &ErrorCause) {
        let Some(outstanding) = self.asconf.outstanding.take() else {
            return;
        };
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
        self.update_source();
        self.events.push_back(Event::AsconfAnswered {
            serial: outstanding.chunk.serial_number,
            results,
        });
    }

    /// What the peer granted comes into force; what it refused is as it was.
    fn apply_outcome(&mut self, request: AddressRequest, granted: bool) {
        match request {
            AddressRequest::Add(address) => {
                let Some(index) = self.local_index(address, LocalState::Adding) else {
                    return;
                };
                if granted {
                    self.local[index].state = LocalState::InUse;
                } else {
                    self.local.remove(index);
                    if self.route.address == address {
                        self.route = self.source;
                    }
                }
            }
            AddressRequest::Delete(address) => {
                let Some(index) = self.local_index(address, LocalState::Deleting) else {
                    return;
                };
                if granted {
                    self.local.remove(index);
                    self.retire_paths_from(address);
                } else {
                    self.local[index].state = LocalState::InUse;
                }
            }
            AddressRequest::SetPrimary(_) => {}
        }
    }
}

/// Section 5.1, D3 and D4: a request named succeeded or failed as it says; one not named succeeded, unless one
/// before it failed, since the peer stops there.
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
