//! Addresses of either end are changed by ASCONF (RFC 5061): [`Asconf`](crate::sctp::asconf::Asconf) knows what was asked
//! and answered, and here it is done.

use super::Association;
use crate::contract::LocalAddress;
use crate::sctp::asconf::deactivation::Refusal;
use crate::sctp::asconf::{self, Acknowledged, Asked, Settled, quote};
use crate::sctp::ids::{DestinationId, MAX_DESTINATIONS};
use crate::sctp::local::address_rules::may_be_of_peer;
use crate::sctp::outbox::ControlPacket;
use crate::sctp::peer::Destination;
use crate::sctp::{AddressChange, AddressError, AddressRequest, Event};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::AsconfSerial;
use segue_wire::sctp::{Asconf as AsconfChunk, AsconfAck, AsconfParameter, Chunk, ErrorCause};
use smallvec::SmallVec;

impl Association {
    /// Asks the peer to add an address of ours. The ASCONF goes out over the route; if that is the new address
    /// itself, from there.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn add_address(&mut self, now: Instant, address: LocalAddress) -> Result<(), AddressError> {
        self.change_addresses(now, &[AddressChange::Add(address)])
    }

    /// Asks the peer to delete an address of ours. It is no source from now on.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn delete_address(&mut self, now: Instant, address: Ipv6Addr) -> Result<(), AddressError> {
        self.change_addresses(now, &[AddressChange::Delete(address)])
    }

    /// Asks the peer to make an address of ours its primary path.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn request_set_primary(&mut self, now: Instant, address: Ipv6Addr) -> Result<(), AddressError> {
        self.change_addresses(now, &[AddressChange::SetPrimary(address)])
    }

    /// Whether an ASCONF waits for its answer, or requests wait for their turn.
    #[must_use]
    pub fn asconf_outstanding(&self) -> bool {
        self.asconf.is_busy()
    }

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

    /// Asks the peer to send nothing to an address of ours until [`activate_address`](Self::activate_address); a peer
    /// that cannot is asked to delete it.
    ///
    /// # Errors
    /// See [`AddressError`]. The last active address stays.
    pub fn deactivate_address(&mut self, now: Instant, address: Ipv6Addr) -> Result<(), AddressError> {
        let change = if self.can_deactivate() {
            AddressChange::Deactivate(address)
        } else {
            AddressChange::Delete(address)
        };
        self.change_addresses(now, &[change])
    }

    /// Asks the peer to send data to a deactivated address of ours again.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn activate_address(&mut self, now: Instant, address: Ipv6Addr) -> Result<(), AddressError> {
        self.change_addresses(now, &[AddressChange::Activate(address)])
    }

    /// Whether both ends know how to deactivate an address.
    #[must_use]
    pub fn can_deactivate(&self) -> bool {
        self.config.address_deactivation && self.peer_deactivates()
    }

    fn peer_deactivates(&self) -> bool {
        self.extensions.deactivation() && self.asconf.peer_understands_deactivation()
    }

    /// The same as [`change_addresses`](Self::change_addresses), of addresses that are known already.
    pub(in crate::sctp) fn request_changes(
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
        for (i, &request) in requests.iter().enumerate() {
            let deactivation = matches!(
                request,
                AddressRequest::Deactivate(_) | AddressRequest::Activate(_)
            );
            if deactivation && !self.peer_deactivates() {
                return Err(AddressError::NotPossible);
            }
            self.asconf.check(request)?;
            self.local.check(&requests[..i], request)?;
        }
        Ok(())
    }

    fn take_requests(&mut self, now: Instant, requests: &[AddressRequest]) {
        let was_stranded = self.is_stranded();
        self.asconf.ask(requests);
        self.local.ask(requests);
        self.after_address_change(now, was_stranded);
        self.send_waiting_asconf(now);
    }

    pub(in crate::sctp) fn can_change_addresses(&self) -> Result<(), AddressError> {
        let authentic = self.config.dynamic_addresses && self.auth.allows_asconf();
        let peer_can = authentic && self.extensions.asconf() && self.asconf.peer_understands_asconf();
        if self.is_established() && peer_can {
            Ok(())
        } else {
            Err(AddressError::NotPossible)
        }
    }

    fn send_waiting_asconf(&mut self, now: Instant) {
        let known = self.local.source().address;
        let current = self.peer.current();
        if self.asconf.begin_request(self.peer.sizes().mtu(), known, current) {
            self.transmit_asconf(now, current);
        }
    }

    /// Sends the outstanding ASCONF, if there is an address that can, `towards` a destination if that is there.
    fn transmit_asconf(&mut self, now: Instant, towards: DestinationId) {
        let Some(source) = self.local.asconf_source() else {
            self.asconf.suspend();
            return;
        };
        let stranded = self.is_stranded();
        let serves = self.peer.get(towards).is_some_and(|d| !d.is_deactivated());
        let mut towards = if serves { towards } else { self.peer.current() };
        if stranded {
            towards = self.reached_from(source, towards);
        }
        // A4: the RTO of the destination, which is that of the path it takes
        let rto = if stranded {
            self.config.rto_initial
        } else {
            self.peer.rto_to(towards, &self.config)
        };
        let destination = self.peer[towards].address();
        // among addresses that serve as well, the one that the routing table has for the destination
        let source = if self.local.source_at(source.address) == Some(source) {
            self.local.source_towards(destination)
        } else {
            source
        };
        if let Some(chunk) = self.asconf.transmit(source, towards, now + rto) {
            self.out.counters.asconfs_sent += 1;
            let chunks = SmallVec::from_buf([Chunk::Asconf(Box::new(chunk))]);
            self.out
                .send(ControlPacket::new(destination, chunks).sent_from(source));
        }
    }

    /// `index`, unless the routing table is known not to reach it from `source`, but another destination.
    fn reached_from(&self, source: LocalAddress, index: DestinationId) -> DestinationId {
        let reached = |d: &Destination| !d.is_deactivated() && self.local.reaches(source, d.address());
        if reached(&self.peer[index]) {
            return index;
        }
        let other = self.peer.destinations().find(|(_, d)| reached(d));
        other.map_or(index, |(id, _)| id)
    }

    /// Our addresses changed: an ASCONF that left from one that is gone, or could not leave, goes out again at once,
    /// without waiting for T4-RTO. The path it took is not to blame.
    pub(in crate::sctp) fn asconf_route_changed(&mut self, now: Instant) {
        let is_ours = |source| self.local.is_on_interface(source);
        if self.asconf.cannot_be_answered(is_ours)
            && let Some(destination) = self.asconf.destination()
        {
            self.transmit_asconf(now, destination);
        }
    }

    /// T4-RTO expired (section 5.1, B1 to B5): errors are counted, the RTO doubles, the same ASCONF goes out again, to
    /// an alternate if there is one.
    pub(in crate::sctp) fn on_t4(&mut self, now: Instant) {
        let Some(last) = self.asconf.destination() else {
            return;
        };
        if !self.not_answered(last) {
            return;
        }
        let next = self.peer.another_than(last);
        self.transmit_asconf(now, next.unwrap_or(last));
    }

    /// The ASCONF whose answer is to end our being stranded by adding `address`, if it may still come by itself.
    pub(in crate::sctp) fn awaited_for(&self, address: Ipv6Addr) -> Option<AsconfSerial> {
        self.asconf.awaited_for(address).filter(|_| self.is_stranded())
    }

    /// A packet without the answer arrived at the address that the ASCONF `serial` adds: the peer has added it, and sent
    /// the answer elsewhere. usrsctp 0.9.5 sends it to the address that the ASCONF names; the answer to one that comes
    /// again, to where that came from. So it is asked again at once, instead of with T4-RTO; once.
    pub(in crate::sctp) fn ask_again(&mut self, now: Instant, serial: AsconfSerial) {
        if self.asconf.hasten(serial)
            && let Some(destination) = self.asconf.destination()
        {
            self.transmit_asconf(now, destination);
        }
    }

    /// Our ASCONF was answered.
    pub(in crate::sctp) fn on_asconf_ack(&mut self, now: Instant, ack: &AsconfAck) {
        let (settled, destination) = match self.asconf.on_ack(ack) {
            Acknowledged::Settled { settled, destination } => (settled, destination),
            Acknowledged::Again => {
                self.out.counters.refused.bad_asconf_serial += 1;
                return;
            }
            Acknowledged::NeverAsked => {
                self.out.counters.refused.bad_asconf_serial += 1;
                self.abort_with(ErrorCause::IllegalAsconfAck);
                return;
            }
        };
        // A5
        let asked = self.peer.get(destination);
        if asked.is_some_and(Destination::is_confirmed) {
            self.peer.clear_errors(destination, &self.config, &mut self.out);
        }
        let was_stranded = self.is_stranded();
        self.settle_addresses(&settled);
        self.out.tell(settled.into_event());
        self.after_address_change(now, was_stranded);
        self.send_waiting_asconf(now);
        self.find_a_way(now);
    }

    /// The peer does not know ASCONF, as an ERROR says that quotes a chunk.
    pub(in crate::sctp) fn on_asconf_unknown(&mut self, cause: &ErrorCause, quoted: &[u8]) {
        let Some(settled) = self.asconf.on_unknown(cause, quoted) else {
            self.out.counters.refused.unexpected += 1;
            return;
        };
        self.settle_addresses(&settled);
        self.follow_source();
        self.out.tell(settled.into_event());
    }

    /// What the peer granted comes into force; what it refused is as it was.
    fn settle_addresses(&mut self, settled: &Settled) {
        for result in &settled.results {
            if self.local.settle(result.request, result.outcome.is_ok()) {
                self.peer.retire_paths_from(result.request.address());
                self.drop_retired_paths();
            }
        }
    }

    /// The peer's ASCONF. The answer goes to the address that it came from (section 5.2, E6).
    pub(in crate::sctp) fn on_asconf(&mut self, now: Instant, from: Ipv6Addr, asconf: &AsconfChunk) {
        // the answer goes before the heartbeat to an address just added, which its owner may use only once it has it
        let behind = self.out.waiting();
        let answer = match self.asconf.on_asconf(asconf.serial_number) {
            Asked::Again(answer) => answer,
            Asked::OutOfOrder => {
                self.out.counters.refused.bad_asconf_serial += 1;
                return;
            }
            Asked::New => {
                let work_off = |p: &AsconfParameter| self.apply_asconf(now, from, p);
                let answer = AsconfAck {
                    serial_number: asconf.serial_number,
                    responses: asconf::responses(&asconf.parameters, work_off),
                };
                self.asconf.answer(&answer);
                answer
            }
        };
        self.out.counters.asconf_acks_sent += 1;
        self.replies.answer(behind, Chunk::AsconfAck(Box::new(answer)));
    }

    fn apply_asconf(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        parameter: &AsconfParameter,
    ) -> Result<(), ErrorCause> {
        let refuse = |refusal: Refusal| refusal.cause(parameter);
        match *parameter {
            AsconfParameter::AddIpAddress { address, .. } => {
                let wanted = if address.is_unspecified() { from } else { address };
                self.add_peer_address(now, from, wanted, parameter)
            }
            AsconfParameter::DeleteIpAddress { address, .. } if address.is_unspecified() => {
                self.delete_all_but(from, parameter)
            }
            AsconfParameter::DeleteIpAddress { address, .. } => {
                let Some(index) = self.peer.find(address) else {
                    // gone already: that is what was asked for
                    return Ok(());
                };
                if self.peer.len() == 1 {
                    return Err(ErrorCause::DeleteLastRemainingAddress(quote(parameter)));
                }
                if address == from {
                    return Err(ErrorCause::DeleteSourceAddress(quote(parameter)));
                }
                self.delete_peer_address(index);
                Ok(())
            }
            AsconfParameter::SetPrimaryAddress { address, .. } => {
                let wanted = if address.is_unspecified() { from } else { address };
                let Some(index) = self.peer.find(wanted) else {
                    return Err(ErrorCause::UnresolvableAddress(quote(parameter)));
                };
                // the primary path is where data is wanted
                self.activate_destination(now, index);
                self.peer.make_primary(index, &mut self.out);
                self.note_silent_paths(now);
                if self.peer.current() == index {
                    self.leave_silent_paths(now);
                }
                Ok(())
            }
            AsconfParameter::DeactivateAddress { address, .. } if self.can_deactivate() => {
                self.deactivate_peer_address(from, address).map_err(refuse)
            }
            AsconfParameter::ActivateAddress { address, .. } if self.can_deactivate() => {
                let index = self.peer.find(address);
                let index = index.ok_or(Refusal::Unknown).map_err(refuse)?;
                self.activate_destination(now, index);
                Ok(())
            }
            AsconfParameter::DeactivateAddress { .. }
            | AsconfParameter::ActivateAddress { .. }
            | AsconfParameter::Unknown { .. } => Err(ErrorCause::UnrecognizedParameters(quote(parameter))),
        }
    }

    fn add_peer_address(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        wanted: Ipv6Addr,
        parameter: &AsconfParameter,
    ) -> Result<(), ErrorCause> {
        if self.has_peer_address(wanted) {
            return Ok(());
        }
        if !may_be_of_peer(wanted, from, |address| self.local.is_own(address)) {
            return Err(ErrorCause::RequestRefusedNoAuthorization(quote(parameter)));
        }
        if self.peer.len() >= MAX_DESTINATIONS {
            return Err(ErrorCause::OperationRefusedResourceShortage(quote(parameter)));
        }
        // section 5.3, F1: the address may be used once path verification has confirmed it: a heartbeat goes there at
        // once, behind the answer
        self.add_destination(now, wanted, false);
        self.out.tell(Event::PeerAddressAdded(wanted));
        Ok(())
    }

    /// Section 5.2 and 4.2.2: the wildcard deletes every address but the one the ASCONF came from.
    fn delete_all_but(&mut self, from: Ipv6Addr, parameter: &AsconfParameter) -> Result<(), ErrorCause> {
        if !self.has_peer_address(from) {
            return Err(ErrorCause::DeleteLastRemainingAddress(quote(parameter)));
        }
        for index in self.peer.ids() {
            if self.peer[index].address() != from {
                self.delete_peer_address(index);
            }
        }
        Ok(())
    }

    fn delete_peer_address(&mut self, index: DestinationId) {
        let address = self.peer[index].address();
        self.out.tell(Event::PeerAddressDeleted(address));
        self.remove_destination(index);
    }

    /// The peer's Deactivate Address.
    fn deactivate_peer_address(&mut self, from: Ipv6Addr, address: Ipv6Addr) -> Result<(), Refusal> {
        let index = self.peer.find(address).ok_or(Refusal::Unknown)?;
        if address == from {
            return Err(Refusal::Source);
        }
        if self.peer[index].is_deactivated() {
            return Ok(());
        }
        if !self.peer.has_another_than(index) {
            return Err(Refusal::Last);
        }
        self.deactivate_destination(index);
        Ok(())
    }
}
