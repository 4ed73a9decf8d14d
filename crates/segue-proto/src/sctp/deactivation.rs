//! Deactivation of an address: the gentle form of SIGMA's step 5 (Fu, Atiquzzaman and Ivancic 2005, section II-A).
//!
//! The paper has a mobile host that leaves a cell advertise "a zero receiver window (corresponding to IP1)" instead of
//! deleting the address, so that a host that zigzags can use it again. But a_rwnd belongs to the association (RFC 9260
//! section 3.3.4): no SACK can close it for one address. So this is a private extension:
//!
//! | what | type | value |
//! |---|---|---|
//! | INIT, INIT ACK parameter *Address Deactivation Supported* | 0xBF01 | four bytes, "Seg" and version 1 |
//! | ASCONF parameter *Deactivate Address* | 0xFF01 | correlation id and address parameter, as Delete IP Address |
//! | ASCONF parameter *Activate Address* | 0xFF02 | the same |
//!
//! IANA assigned none of these. Their two highest bits make a peer that does not know them skip the first without a word
//! and report the other two (RFC 9260 section 3.2.1); they are sent only to a peer that offered the first. A peer that
//! did not is asked to delete the address.
//!
//! # What the peer of the mobile host does
//! A deactivated address gets no data, no retransmissions and no heartbeats. It stays a part of the association: packets
//! from it are taken, answers to them (SACK, HEARTBEAT ACK, ASCONF-ACK) go there, and its state, error count, RTT and RTO
//! are kept. What is outstanding there goes out again elsewhere at once, as after a deletion (RFC 5061 section 5.3), with
//! no penalty to any window; its own cwnd is kept and decays as that of an idle path (RFC 9260 section 7.2.1). If it was
//! the primary path, another address is. The last active address cannot be deactivated, nor the source of the ASCONF.
//!
//! An address that is activated may be used at once if it was Active: it was confirmed when it was added (RFC 9260
//! section 5.4), and whoever could answer from it then, and hold the association's keys now, is the same. One that was
//! Inactive or Unconfirmed gets a heartbeat first.

use super::association::Association;
use super::{AddressChange, AddressError, Event, PathState};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::sctp::ErrorCause;

impl Association {
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
        self.config.address_deactivation && self.peer_extensions.deactivation
    }

    /// The peer's Deactivate Address.
    pub(super) fn deactivate_destination(
        &mut self,
        from: Ipv6Addr,
        address: Ipv6Addr,
        refusal: impl FnOnce(Refusal) -> ErrorCause,
    ) -> Result<(), ErrorCause> {
        let Some(index) = self.destination_index(address) else {
            return Err(refusal(Refusal::Unknown));
        };
        if address == from {
            return Err(refusal(Refusal::Source));
        }
        if self.destinations[index].deactivated {
            return Ok(());
        }
        let others = self.destinations.after(index).any(|(_, d)| !d.deactivated);
        if !others {
            return Err(refusal(Refusal::Last));
        }
        let d = &mut self.destinations[index];
        d.deactivated = true;
        d.heartbeat = None;
        d.heartbeat_due = None;
        self.out.counters.deactivations += 1;
        self.out.tell(Event::PeerAddressDeactivated(address));
        let marked = self.move_outstanding_from(index);
        self.leave_primary(index);
        if self.reply_to == address {
            self.reply_to = self.destinations[self.primary].address;
        }
        self.choose_current();
        self.open_burst();
        self.quit_path(marked);
        Ok(())
    }

    /// The peer's Activate Address.
    pub(super) fn activate_destination(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        refusal: impl FnOnce(Refusal) -> ErrorCause,
    ) -> Result<(), ErrorCause> {
        let Some(index) = self.destination_index(address) else {
            return Err(refusal(Refusal::Unknown));
        };
        if !core::mem::take(&mut self.destinations[index].deactivated) {
            return Ok(());
        }
        self.out.counters.activations += 1;
        self.out.tell(Event::PeerAddressActivated(address));
        if self.destinations[index].state == PathState::Active {
            self.start_heartbeats(now, index);
        } else {
            self.send_heartbeat(now, index);
        }
        self.choose_current();
        self.open_burst();
        Ok(())
    }
}

/// Why a deactivation or activation is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// The peer has no such address.
    Unknown,
    /// It is the source of the ASCONF.
    Source,
    /// Data could go nowhere.
    Last,
}
