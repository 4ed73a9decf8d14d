//! What an association does when the addresses of this host change, and when those that the peer knows and those that an
//! interface has have nothing in common (RFC 5061 sections 5.3 and 5.3.2).
//!
//! # Break before make
//! A host may lose its last address before it has another. The association is *stranded* then: no address of ours may be
//! the source of a packet. Nothing is sent, no timer of the transfer runs and no error is counted, for an interface that
//! is down says nothing of the peer or of the network; the association lasts until the user ends it, or the peer does.
//! What was outstanding is marked for retransmission, without a penalty to any window.
//!
//! With the next address that an interface has, the association goes on:
//! - if the peer knows the address, with everything that waits;
//! - if not, with an ASCONF from that very address (section 5.3, F1 permits that) which adds it and makes it primary
//!   (section 5.3.2). Its address parameter names an address that the peer knows. An ASCONF that was outstanding goes out
//!   again first, and at once. Those that are gone are deleted later, see below.
//!
//! Data follows as soon as the answer is there, over a path that is new: initial cwnd, RTO.Initial.

use super::Association;
use crate::contract::LocalAddress;
use crate::sctp::asconf::MAX_REPLACED;
use crate::sctp::local::{Found, Lost};
use crate::sctp::{AddressError, AddressRequest, Event};
use crate::time::Instant;
use core::net::Ipv6Addr;
use smallvec::SmallVec;

impl Association {
    /// Sends from `address` from now on. An address that is still being added carries ASCONF only, until the peer has
    /// granted it (RFC 5061 section 5.3, F1); everything else goes on from the former one until then.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn set_route(&mut self, now: Instant, address: Ipv6Addr) -> Result<(), AddressError> {
        self.local.lead_over(address)?;
        self.follow_source();
        self.asconf_route_changed(now);
        Ok(())
    }

    /// The local address that packets are sent from.
    #[must_use]
    pub fn route(&self) -> LocalAddress {
        self.local.route()
    }

    /// Addresses of ours that are part of the association, or on their way in or out.
    pub fn local_addresses(&self) -> impl Iterator<Item = LocalAddress> {
        self.local.known_to_peer()
    }

    /// An interface no longer has `address`: it is no source from now on, even if it is the last. What was sent from it
    /// and is outstanding goes out again from another address at once, an ASCONF that waits for its answer included.
    /// The peer is not told: see [`delete_address`](Self::delete_address).
    ///
    /// Without any other address the association stands still until
    /// [`local_address_added`](Self::local_address_added) or [`add_address`](Self::add_address): see
    /// [`is_stranded`](Self::is_stranded).
    pub fn local_address_removed(&mut self, now: Instant, address: Ipv6Addr) {
        let was_stranded = self.is_stranded();
        let Some(lost) = self.local.lose(address) else {
            return;
        };
        if lost == Lost::Adding
            && let Some(withdrawn) = self.asconf.withdraw_add(address)
        {
            self.local.settle(AddressRequest::Add(address), false);
            self.out.tell(withdrawn.into_event());
        }
        self.follow_source();
        let gone = self.peer.paths_from(address);
        self.sender.leave_source(&gone, &mut self.out.counters.multipath);
        self.peer.lose_heartbeats(|path| gone.contains(&path));
        if self.is_stranded() {
            self.stand_still(was_stranded);
        } else {
            if self.config.multipath.is_some() && self.is_up() {
                // SACKs that left from there may be lost with it, and the peer, which is about to move what it had in flight
                // there, had better know what arrived
                self.receiver.hurry_sack();
            }
            self.open_burst();
        }
        self.asconf_route_changed(now);
        self.find_a_way(now);
    }

    /// An interface has `address`. If the association has it too, it may be a source again, over paths that are new. If
    /// not, it is kept in mind; should every address of the association be gone, now or later, it takes their place (RFC
    /// 5061 section 5.3.2): an ASCONF from it adds it and makes it primary, and a later one deletes the others, unless they
    /// come back before. To have it beside an address that works, call [`add_address`](Self::add_address).
    pub fn local_address_added(&mut self, now: Instant, address: LocalAddress) {
        let was_stranded = self.is_stranded();
        match self.local.find_present(address) {
            Some(Found::Back(former)) => {
                let flight = self.sender.flight();
                let in_flight = |path| flight.size_on(path);
                let gone = self
                    .peer
                    .renew_paths_from(former, address, &self.config, in_flight);
                self.sender.forget_paths(&gone);
            }
            Some(Found::Spare) => {}
            None => return,
        }
        self.after_address_change(now, was_stranded);
        self.asconf_route_changed(now);
        self.find_a_way(now);
    }

    /// Whether no address of ours may be the source of a packet: the association stands still. Errors are not counted
    /// and timers of the transfer do not run.
    #[must_use]
    #[inline]
    pub fn is_stranded(&self) -> bool {
        !self.is_closed() && self.local.is_stranded()
    }

    /// Stranded, with an address that the peer does not know and nothing asked for yet: asks for it. With none but
    /// deactivated addresses: activates one.
    pub(in crate::sctp) fn find_a_way(&mut self, now: Instant) {
        if !self.config.auto_asconf || self.is_closed() || self.asconf.is_busy() {
            return;
        }
        if !self.is_stranded() {
            self.activate_the_only_one(now);
            return;
        }
        if self.is_in_handshake() {
            self.begin_again_from_spare(now);
            return;
        }
        if self.can_change_addresses().is_err() {
            return;
        }
        let Some(spare) = self.local.spare() else {
            return;
        };
        let mut requests: SmallVec<[AddressRequest; 4]> = SmallVec::new();
        requests.push(AddressRequest::Add(spare));
        requests.push(AddressRequest::SetPrimary(spare));
        requests.extend(self.replace_absent().into_iter().map(AddressRequest::Delete));
        // what is asked for here was checked here
        let _ = self.request_changes(now, &requests);
    }

    /// Nothing was agreed with the peer yet: the handshake begins again from an address that there is.
    fn begin_again_from_spare(&mut self, now: Instant) {
        if !self.local.replace_all_by_spares() {
            return;
        }
        self.phase.begin_again();
        self.after_address_change(now, true);
    }

    /// The peer was told to leave alone every address that there still is.
    fn activate_the_only_one(&mut self, now: Instant) {
        let Some(address) = self.local.only_deactivated() else {
            return;
        };
        // what is asked for here was checked here
        let _ = self.request_changes(
            now,
            &[
                AddressRequest::Activate(address),
                AddressRequest::SetPrimary(address),
            ],
        );
    }

    /// After the answer to an ASCONF, or a change of addresses: the association may move again, or can no more, as where the
    /// only one that it could send from is to be deleted (F6).
    pub(in crate::sctp) fn after_address_change(&mut self, now: Instant, was_stranded: bool) {
        self.follow_source();
        match (was_stranded, self.is_stranded()) {
            (true, false) => self.go_on(now),
            (false, true) => {
                for index in self.peer.ids() {
                    let counters = &mut self.out.counters.multipath;
                    self.sender.leave_source(&self.peer.paths_to(index), counters);
                }
                self.stand_still(false);
            }
            _ => {}
        }
    }

    /// No packet can leave: the timers that wait for answers stop, and those that only packets start do not run.
    pub(in crate::sctp) fn stop_timers(&mut self) {
        self.phase.stop_timers();
        self.peer.stop_heartbeats();
        self.sender.suspend();
        self.receiver.suspend_sack();
        self.streams.suspend();
    }

    fn stand_still(&mut self, was_stranded: bool) {
        if !was_stranded {
            self.out.tell(Event::Stranded);
        }
        self.stop_timers();
        self.asconf.suspend();
        // what waits to be sent would be stale by the time that it can be; only ABORT still says something then
        self.out.retain_packets(|_, packet| {
            packet
                .chunks
                .iter()
                .any(|c| matches!(c, segue_wire::sctp::Chunk::Abort { .. }))
        });
    }

    /// Packets can leave again: what waits goes out at once, from windows of new paths.
    fn go_on(&mut self, now: Instant) {
        self.out.tell(Event::Resumed);
        self.await_peer_data(now);
        self.send_opening_chunk(now);
        self.resend_shutdown_chunk(now);
        if self.is_up() {
            self.start_heartbeats(now);
        }
        self.resend_stream_request(now);
        let (sender, cx) = self.sending(now);
        sender.repeat_forward_tsn(&cx);
        self.receiver.resume_sack();
        self.open_burst();
    }

    /// Sends to `destination` from `source`, as the host's routing table has it; from the route if `None`. It holds
    /// while `source` is an address that may be sent from. Says nothing of other destinations, and nothing at all once
    /// [`set_route`](Self::set_route) was called. Addresses that the peer does not have are ignored.
    pub fn set_source(&mut self, destination: Ipv6Addr, source: Option<Ipv6Addr>) {
        if let Some(index) = self.peer.find(destination)
            && self.local.reach(destination, source)
        {
            self.follow_route_to(index);
        }
    }
}

/// One address takes the place of others (section 5.3.2): see [`asconf`](crate::sctp::asconf).
impl Association {
    /// All addresses in use are gone and another one is to take their place. Returns those that wait for their deletion
    /// already and are too many.
    fn replace_absent(&mut self) -> SmallVec<[Ipv6Addr; 4]> {
        self.local.replace_absent();
        let replaced: SmallVec<[Ipv6Addr; 4]> = self.local.replaced().collect();
        let surplus = replaced.len().saturating_sub(MAX_REPLACED);
        replaced[..surplus].into()
    }

    /// The association moves again, from an address that there is.
    fn await_peer_data(&mut self, now: Instant) {
        if self.local.replaced().next().is_some() {
            let due = now + self.config.rto_max;
            self.asconf.await_data(self.receiver.cumulative_tsn_ack(), due);
        } else {
            self.asconf.end_replacement();
        }
    }

    /// Stands still with the association.
    pub(super) fn replacement_timer(&self) -> Option<Instant> {
        self.asconf.replacement_due().filter(|_| !self.is_stranded())
    }

    /// DATA arrived, at an address.
    pub(super) fn on_data_after_replacement(&mut self, now: Instant, at: Ipv6Addr) {
        let has_gap = self.receiver.has_gap();
        let shown = self
            .receiver
            .cumulative_tsn_ack()
            .is_some_and(|cumulative| self.asconf.may_delete_replaced(cumulative, has_gap));
        if shown && self.local.is_present(at) {
            self.delete_replaced(now);
        }
    }

    pub(super) fn delete_replaced(&mut self, now: Instant) {
        self.asconf.end_replacement();
        let requests: SmallVec<[AddressRequest; 4]> =
            self.local.replaced().map(AddressRequest::Delete).collect();
        if !requests.is_empty() {
            // refused only where the peer does not know Delete IP Address, or the association is about to end
            let _ = self.request_changes(now, &requests);
        }
    }
}
