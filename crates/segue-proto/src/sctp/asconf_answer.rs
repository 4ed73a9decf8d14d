//! The peer's address changes: ASCONF received and answered (RFC 5061 sections 4.2, 4.3 and 5.2).

use super::Event;
use super::association::Association;
use super::deactivation::Refusal;
use super::local::address_rules::may_be_of_peer;
use super::path::{DestinationId, MAX_DESTINATIONS};
use crate::time::Instant;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::sctp::{Asconf, AsconfAck, AsconfParameter, AsconfResponse, Chunk, ErrorCause};
use segue_wire::{AsconfSerial, Tsn};
use std::collections::VecDeque;

/// Serial number of the peer's ASCONF last answered, and the answers to those of the packet that it came in: a peer may
/// send several again in one packet (section 5.5).
#[derive(Debug, Default)]
pub(super) struct AsconfAnswers {
    last_serial: AsconfSerial,
    answers: VecDeque<AsconfAck>,
    /// An ASCONF of the packet at hand was seen.
    amid_packet: bool,
}

/// Most answers kept.
const MAX_ANSWERS: usize = 4;

impl AsconfAnswers {
    /// Section 5.2: the peer's first serial number is its initial TSN.
    pub(super) fn start(&mut self, peer_initial_tsn: Tsn) {
        self.last_serial = AsconfSerial(peer_initial_tsn.0).previous();
        self.answers.clear();
    }

    /// A packet arrived.
    pub(super) fn begin_packet(&mut self) {
        self.amid_packet = false;
    }
}

impl Association {
    /// Section 5.2: in serial order, each once; one that was answered is answered again from the cache. The answer goes
    /// to the address that the ASCONF came from (E6).
    pub(super) fn on_asconf(&mut self, now: Instant, from: Ipv6Addr, asconf: &Asconf) {
        let serial = asconf.serial_number;
        let behind = self.out.waiting();
        let amid_packet = core::mem::replace(&mut self.asconf_answers.amid_packet, true);
        let mut answers = self.asconf_answers.answers.iter();
        if let Some(answer) = answers.find(|a| a.serial_number == serial).cloned() {
            self.out.counters.asconf_acks_sent += 1;
            self.replies.answer(behind, Chunk::AsconfAck(Box::new(answer)));
            return;
        }
        if serial != self.asconf_answers.last_serial.next() {
            self.out.counters.refused.bad_asconf_serial += 1;
            return;
        }
        let mut responses = Vec::new();
        for parameter in &asconf.parameters {
            match self.apply_asconf(now, from, parameter) {
                Ok(()) => {}
                // on an error the rest is not processed, as the sender takes it (section 5.1, A7)
                Err(response) => {
                    responses.push(response);
                    break;
                }
            }
        }
        if responses
            .iter()
            .any(|r| matches!(r, AsconfResponse::ErrorCauseIndication { .. }))
        {
            self.name_successes(&asconf.parameters, &mut responses);
        }
        let answer = AsconfAck {
            serial_number: serial,
            responses,
        };
        self.asconf_answers.last_serial = serial;
        let answers = &mut self.asconf_answers.answers;
        if !amid_packet {
            // E1: the peer has the former ones
            answers.clear();
        }
        if answers.len() == MAX_ANSWERS {
            answers.pop_front();
        }
        answers.push_back(answer.clone());
        // before the heartbeat to an address just added, which its owner may use only once it has the answer
        self.out.counters.asconf_acks_sent += 1;
        self.replies.answer(behind, Chunk::AsconfAck(Box::new(answer)));
    }

    /// With an error in the answer, what went before it is named as a success (section 4.2.5: only then is it needed).
    fn name_successes(&self, parameters: &[AsconfParameter], responses: &mut Vec<AsconfResponse>) {
        let Some(AsconfResponse::ErrorCauseIndication {
            correlation_id: failed,
            ..
        }) = responses.first()
        else {
            return;
        };
        let failed = *failed;
        let successes: Vec<_> = parameters
            .iter()
            .map(AsconfParameter::correlation_id)
            .take_while(|&id| id != failed)
            .map(|correlation_id| AsconfResponse::SuccessIndication { correlation_id })
            .collect();
        responses.splice(0..0, successes);
    }

    fn apply_asconf(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        parameter: &AsconfParameter,
    ) -> Result<(), AsconfResponse> {
        let refuse = |correlation_id: u32, cause: ErrorCause| {
            Err(AsconfResponse::ErrorCauseIndication {
                correlation_id,
                causes: vec![cause],
            })
        };
        match *parameter {
            AsconfParameter::AddIpAddress {
                correlation_id,
                address,
            } => {
                let wanted = if address.is_unspecified() { from } else { address };
                if self.has_peer_address(wanted) {
                    return Ok(());
                }
                let own = |address| self.local.is_own(address);
                if !may_be_of_peer(wanted, from, own) {
                    return refuse(
                        correlation_id,
                        ErrorCause::RequestRefusedNoAuthorization(whole(parameter)),
                    );
                }
                if self.destination_count() >= MAX_DESTINATIONS {
                    return refuse(
                        correlation_id,
                        ErrorCause::OperationRefusedResourceShortage(whole(parameter)),
                    );
                }
                // section 5.3, F1: the address may be used once path verification has confirmed it: a heartbeat
                // goes there at once, behind the answer
                self.add_destination(now, wanted, false);
                self.out.tell(Event::PeerAddressAdded(wanted));
                Ok(())
            }
            AsconfParameter::DeleteIpAddress {
                correlation_id,
                address,
            } => {
                if address.is_unspecified() {
                    return self.delete_all_but(parameter, from);
                }
                let Some(index) = self.destination_index(address) else {
                    // gone already: that is what was asked for
                    return Ok(());
                };
                if self.destination_count() == 1 {
                    return refuse(
                        correlation_id,
                        ErrorCause::DeleteLastRemainingAddress(whole(parameter)),
                    );
                }
                if address == from {
                    return refuse(correlation_id, ErrorCause::DeleteSourceAddress(whole(parameter)));
                }
                self.delete_peer_address(index);
                Ok(())
            }
            AsconfParameter::SetPrimaryAddress {
                correlation_id,
                address,
            } => {
                let wanted = if address.is_unspecified() { from } else { address };
                match self.destination_index(wanted) {
                    Some(index) => {
                        if self.destinations[index].deactivated {
                            // the primary path is where data is wanted
                            let cause = |r| deactivation_cause(r, parameter);
                            self.activate_destination(now, wanted, cause)
                                .or_else(|cause| refuse(correlation_id, cause))?;
                        }
                        self.make_primary(index);
                        self.note_silent_paths(now);
                        if self.current == index {
                            self.leave_silent_paths(now);
                        }
                        Ok(())
                    }
                    None => refuse(correlation_id, ErrorCause::UnresolvableAddress(whole(parameter))),
                }
            }
            AsconfParameter::DeactivateAddress {
                correlation_id,
                address,
            } if self.can_deactivate() => self
                .deactivate_destination(from, address, |r| deactivation_cause(r, parameter))
                .or_else(|cause| refuse(correlation_id, cause)),
            AsconfParameter::ActivateAddress {
                correlation_id,
                address,
            } if self.can_deactivate() => self
                .activate_destination(now, address, |r| deactivation_cause(r, parameter))
                .or_else(|cause| refuse(correlation_id, cause)),
            AsconfParameter::DeactivateAddress { correlation_id, .. }
            | AsconfParameter::ActivateAddress { correlation_id, .. }
            | AsconfParameter::Unknown { correlation_id, .. } => refuse(
                correlation_id,
                ErrorCause::UnrecognizedParameters(whole(parameter)),
            ),
        }
    }

    /// Section 5.2 and 4.2.2: the wildcard deletes every address but the one the ASCONF came from.
    fn delete_all_but(&mut self, parameter: &AsconfParameter, from: Ipv6Addr) -> Result<(), AsconfResponse> {
        if !self.has_peer_address(from) {
            return Err(AsconfResponse::ErrorCauseIndication {
                correlation_id: parameter.correlation_id(),
                causes: vec![ErrorCause::DeleteLastRemainingAddress(whole(parameter))],
            });
        }
        for index in self.destinations.ids() {
            if self.destinations[index].address != from {
                self.delete_peer_address(index);
            }
        }
        Ok(())
    }

    fn delete_peer_address(&mut self, index: DestinationId) {
        let address = self.destinations[index].address;
        self.out.tell(Event::PeerAddressDeleted(address));
        self.remove_destination(index);
        self.open_burst();
    }
}

fn deactivation_cause(refusal: Refusal, parameter: &AsconfParameter) -> ErrorCause {
    let whole = whole(parameter);
    match refusal {
        Refusal::Unknown => ErrorCause::UnresolvableAddress(whole),
        Refusal::Source => ErrorCause::DeleteSourceAddress(whole),
        Refusal::Last => ErrorCause::DeleteLastRemainingAddress(whole),
    }
}

/// A request's bytes, as an error cause quotes them.
fn whole(parameter: &AsconfParameter) -> Bytes {
    let mut out = Vec::with_capacity(parameter.buffer_len());
    parameter.emit(&mut out);
    out.into()
}
