//! Addresses of either end are added, deleted and made primary while the association goes on (RFC 5061).
//!
//! [`Asconf`] knows what was asked and answered. What that makes of an address of ours is for
//! [`LocalAddresses`](super::local::LocalAddresses), and `association/asconf.rs` lets the one know of the other, and does
//! what the peer asks for.

mod answers;
pub(super) mod deactivation;
mod replacement;
mod requests;

pub(super) use answers::{Asked, quote, responses};
pub(super) use replacement::MAX_REPLACED;
pub(super) use requests::{Acknowledged, Settled};

use super::{AddressError, AddressRequest};
use crate::contract::LocalAddress;
use crate::sctp::ids::DestinationId;
use crate::time::Instant;
use answers::AsconfAnswers;
use core::net::Ipv6Addr;
use replacement::Replacement;
use requests::AsconfRequests;
use segue_wire::sctp::{Asconf as AsconfChunk, AsconfAck, ErrorCause};
use segue_wire::{AsconfSerial, Tsn};

/// The address changes of both ends.
#[derive(Debug)]
pub(super) struct Asconf {
    requests: AsconfRequests,
    answers: AsconfAnswers,
    /// What the deletion of addresses that another one replaced waits for.
    replacement: Option<Replacement>,
}

impl Asconf {
    /// Section 5.1, A2: our first serial number is our initial TSN.
    pub(super) fn new(initial_tsn: Tsn) -> Self {
        Self {
            requests: AsconfRequests::new(initial_tsn),
            answers: AsconfAnswers::default(),
            replacement: None,
        }
    }

    /// Section 5.2: the peer's first serial number is its initial TSN.
    pub(super) fn begin(&mut self, peer_initial_tsn: Tsn) {
        self.answers.begin(peer_initial_tsn);
    }

    /// The association has ended: nothing is asked for any more.
    pub(super) fn end(&mut self) {
        self.requests.clear();
        self.replacement = None;
    }

    /// Whether an ASCONF waits for its answer, or requests wait for their turn.
    pub(super) fn is_busy(&self) -> bool {
        self.requests.is_busy()
    }

    /// T4-RTO; `None` while nothing is outstanding, or no address of ours can send it.
    pub(super) fn t4_rto(&self) -> Option<Instant> {
        self.requests.t4_rto()
    }

    /// T4-RTO stops: nothing can be sent.
    pub(super) fn suspend(&mut self) {
        self.requests.suspend();
    }

    /// Whether the peer has not said that it does not understand ASCONF (A9).
    pub(super) fn peer_understands_asconf(&self) -> bool {
        self.requests.peer_understands_asconf()
    }

    /// Whether the peer has not said that it does not understand deactivation (F3).
    pub(super) fn peer_understands_deactivation(&self) -> bool {
        self.requests.peer_understands_deactivation()
    }

    /// Whether the peer has not said that it does not understand `request` (F3).
    ///
    /// # Errors
    /// [`AddressError::NotPossible`].
    pub(super) fn check(&self, request: AddressRequest) -> Result<(), AddressError> {
        self.requests.check(request)
    }

    /// Queues requests.
    pub(super) fn ask(&mut self, requests: &[AddressRequest]) {
        self.requests.push(requests);
    }

    /// Takes back an Add IP Address that was not sent yet, and what else was to be asked about that address: it failed
    /// without having been asked. `None`: there is none.
    pub(super) fn withdraw_add(&mut self, address: Ipv6Addr) -> Option<Settled> {
        self.requests.withdraw_add(address)
    }

    /// Section 5.1.1: one ASCONF is outstanding at a time. If there is none, all requests that wait go into the next one,
    /// as far as they fit a packet. `address` is one that the peer knows already: it finds the association by it
    /// (sections 5.2, D2, and 5.3.2). Gives whether there is one now that is to be transmitted.
    pub(super) fn begin_request(&mut self, mtu: u32, address: Ipv6Addr, destination: DestinationId) -> bool {
        self.requests.begin(mtu, address, destination)
    }

    /// Where the outstanding ASCONF was last sent to, or will be first.
    pub(super) fn destination(&self) -> Option<DestinationId> {
        self.requests.destination()
    }

    /// The outstanding ASCONF, to be sent, and again when T4-RTO expires.
    pub(super) fn transmit(
        &mut self,
        source: LocalAddress,
        destination: DestinationId,
        t4_rto: Instant,
    ) -> Option<AsconfChunk> {
        self.requests.transmit(source, destination, t4_rto)
    }

    /// Whether an ASCONF left from an address that is no longer ours, or could not leave.
    pub(super) fn cannot_be_answered(&self, is_ours: impl FnOnce(LocalAddress) -> bool) -> bool {
        self.requests.cannot_be_answered(is_ours)
    }

    /// The ASCONF, if it is outstanding and was not asked again, that adds `address`.
    pub(super) fn awaited_for(&self, address: Ipv6Addr) -> Option<AsconfSerial> {
        self.requests.awaited_for(address)
    }

    /// The answer to the ASCONF `serial` seems to be lost; once. Gives whether it is still outstanding.
    pub(super) fn hasten(&mut self, serial: AsconfSerial) -> bool {
        self.requests.hasten(serial)
    }

    pub(super) fn on_ack(&mut self, ack: &AsconfAck) -> Acknowledged {
        self.requests.on_ack(ack)
    }

    /// The peer reports an ASCONF as an unknown chunk (section 5.1, A9): it does not support it, and all that was
    /// asked, or was to be, fails. ERROR is not authenticated: it counts only if it quotes the ASCONF that waits for
    /// its answer, so that nobody who did not see that one can turn address changes off. `None`: it does not count.
    pub(super) fn on_unknown(&mut self, cause: &ErrorCause, quoted: &[u8]) -> Option<Settled> {
        self.requests.on_unknown(cause, quoted)
    }

    /// A packet arrived.
    pub(super) fn begin_packet(&mut self) {
        self.answers.begin_packet();
    }

    /// Section 5.2: the peer's ASCONFs are worked off in serial order, each once; one that was answered is answered
    /// again.
    pub(super) fn on_asconf(&mut self, serial: AsconfSerial) -> Asked {
        self.answers.on_asconf(serial)
    }

    /// Keeps the answer to the ASCONF that was new, should that come again.
    pub(super) fn answer(&mut self, answer: &AsconfAck) {
        self.answers.answer(answer);
    }

    /// The association goes on from an address that took the place of others, until `due` without deleting those.
    pub(super) fn await_data(&mut self, cumulative_tsn_ack: Option<Tsn>, due: Instant) {
        self.replacement = Some(Replacement {
            cumulative_tsn_ack,
            due,
        });
    }

    /// There is nothing to be deleted any more.
    pub(super) fn end_replacement(&mut self) {
        self.replacement = None;
    }

    /// When addresses that were replaced are deleted, data or not.
    pub(super) fn replacement_due(&self) -> Option<Instant> {
        self.replacement.map(|r| r.due)
    }

    /// Data has come to an address that there is: whether it shows that the addresses that were replaced may be deleted.
    pub(super) fn may_delete_replaced(&self, cumulative_tsn_ack: Tsn, has_gap: bool) -> bool {
        self.replacement
            .is_some_and(|r| r.is_over(cumulative_tsn_ack, has_gap))
    }
}

#[cfg(test)]
mod tests;
