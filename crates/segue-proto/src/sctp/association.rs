//! One association: its user's interface.

use super::{AddressError, Counters, Message, PathSnapshot, SendError};
use crate::contract::LocalAddress;
use crate::time::Instant;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::Data;

/// An association with a peer.
pub struct Association {
    route: LocalAddress,
    primary: Ipv6Addr,
}

impl Association {
    /// Whether data can be exchanged.
    #[must_use]
    pub fn is_established(&self) -> bool {
        false
    }
    /// Sends a user message.
    ///
    /// # Errors
    /// [`SendError`]: nothing was taken.
    pub fn send(
        &mut self,
        now: Instant,
        stream_id: u16,
        payload_protocol_id: u32,
        unordered: bool,
        data: Data,
    ) -> Result<(), SendError> {
        let _ = (now, stream_id, payload_protocol_id, unordered, data);
        Err(SendError::Closing)
    }
    /// Room in the send buffer, bytes.
    #[must_use]
    pub fn send_space(&self) -> usize {
        0
    }
    /// User bytes that fit one DATA chunk.
    #[must_use]
    pub fn max_message_in_one_chunk(&self) -> u32 {
        0
    }
    /// The next message received; opens the receive window again.
    pub fn recv(&mut self) -> Option<Message> {
        None
    }
    /// Closes gracefully once everything sent was acknowledged.
    pub fn shutdown(&mut self, now: Instant) {
        let _ = now;
    }
    /// Ends the association at once.
    pub fn abort(&mut self, now: Instant, reason: Bytes) {
        let _ = (now, reason);
    }
    /// Asks the peer to add an address of ours.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn add_address(&mut self, now: Instant, address: LocalAddress) -> Result<(), AddressError> {
        let _ = (now, address);
        Err(AddressError::NotPossible)
    }
    /// Asks the peer to delete an address of ours.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn delete_address(&mut self, now: Instant, address: Ipv6Addr) -> Result<(), AddressError> {
        let _ = (now, address);
        Err(AddressError::NotPossible)
    }
    /// Asks the peer to make an address of ours its primary path.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn request_set_primary(&mut self, now: Instant, address: Ipv6Addr) -> Result<(), AddressError> {
        let _ = (now, address);
        Err(AddressError::NotPossible)
    }
    /// Whether an ASCONF waits for its answer, or requests wait for their turn.
    #[must_use]
    pub fn asconf_outstanding(&self) -> bool {
        false
    }
    /// Sends from `address` from now on.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn set_route(&mut self, now: Instant, address: Ipv6Addr) -> Result<(), AddressError> {
        let _ = (now, address);
        Err(AddressError::NotPossible)
    }
    /// The local address that packets are sent from.
    #[must_use]
    pub fn route(&self) -> LocalAddress {
        self.route
    }
    /// Makes `destination` the primary path.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn set_primary_path(&mut self, now: Instant, destination: Ipv6Addr) -> Result<(), AddressError> {
        let _ = (now, destination);
        Err(AddressError::NotPossible)
    }
    /// The primary path's destination.
    #[must_use]
    pub fn primary_path(&self) -> Ipv6Addr {
        self.primary
    }
    /// All paths as they are now.
    pub fn paths(&self) -> impl Iterator<Item = PathSnapshot> {
        core::iter::empty()
    }
    /// Counters since the association began.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters::default()
    }
    /// Addresses of ours.
    pub fn local_addresses(&self) -> impl Iterator<Item = LocalAddress> {
        core::iter::once(self.route)
    }
    /// Receive window offered now, bytes.
    #[must_use]
    pub fn a_rwnd(&self) -> u32 {
        0
    }
    /// Room left in the peer's receive window, bytes.
    #[must_use]
    pub fn peer_rwnd(&self) -> u32 {
        0
    }
    /// Bytes sent and not yet acknowledged.
    #[must_use]
    pub fn outstanding_bytes(&self) -> u32 {
        0
    }
}
