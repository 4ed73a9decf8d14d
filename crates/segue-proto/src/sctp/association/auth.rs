//! Chunk authentication in an association (RFC 4895): its user's keys, and what arrives.

use super::Association;
use crate::sctp::Event;
use crate::sctp::auth::{AuthError, AuthFailure, Authentication, SharedKey};
use crate::sctp::handshake::Cookie;
use bytes::Bytes;
use segue_wire::sctp::{ErrorCause, SctpPacket};

impl Association {
    /// Whether both ends support authentication.
    #[must_use]
    pub fn is_authentication_negotiated(&self) -> bool {
        self.auth.is_negotiated()
    }

    /// Adds an endpoint pair shared key, or replaces the one with this identifier. AUTH chunks that name it are accepted
    /// from now on; for sending see [`set_active_key`](Self::set_active_key).
    ///
    /// # Errors
    /// [`AuthError::NotOffered`].
    pub fn set_shared_key(&mut self, id: u16, key: impl Into<Bytes>) -> Result<(), AuthError> {
        self.auth.add_key(SharedKey { id, key: key.into() })
    }

    /// Authenticates with this key from now on, retransmissions included. The peer must know it already.
    ///
    /// # Errors
    /// [`AuthError::NoSuchKey`].
    pub fn set_active_key(&mut self, id: u16) -> Result<(), AuthError> {
        self.auth.activate_key(id)
    }

    /// Forgets a key: AUTH chunks that name it are refused from now on. Identifier 0 is the empty key, unless it was
    /// replaced.
    ///
    /// # Errors
    /// [`AuthError::NoSuchKey`] and [`AuthError::ActiveKey`].
    pub fn delete_shared_key(&mut self, id: u16) -> Result<(), AuthError> {
        self.auth.delete_key(id)
    }

    /// The shared key identifier that this end authenticates with.
    #[must_use]
    pub fn active_key(&self) -> u16 {
        self.auth.active_key()
    }
}

impl Association {
    /// Takes out of a packet what may not be acted on (section 6.3).
    #[inline]
    pub(in crate::sctp) fn authenticate(&mut self, packet: &mut SctpPacket) {
        if !self.auth.is_plain(&packet.chunks) {
            self.sift(packet);
        }
    }

    #[inline(never)]
    fn sift(&mut self, packet: &mut SctpPacket) {
        let sifted = self.auth.sift(packet);
        if let Some(key) = sifted.new_key {
            // RFC 6458 section 6.1.8, SCTP_AUTH_NEW_KEY
            self.out.tell(Event::PeerKeyChanged(key));
        }
        if let Some(failure) = sifted.failure {
            self.out.counters.refused.bad_auth += 1;
            if let AuthFailure::UnsupportedHmac(hmac_id) = failure
                && self.is_up()
            {
                self.replies
                    .report(ErrorCause::UnsupportedHmacIdentifier(hmac_id));
            }
        }
        self.out.counters.refused.unauthenticated += sifted.unauthenticated;
    }

    /// What a COOKIE ECHO with this cookie has to be authenticated by (section 6.3), so that nobody restarts the association
    /// who does not know its key; nothing where the cookie is of the same handshake, and may name another RANDOM of the
    /// peer's.
    pub(in crate::sctp) fn guard_against_restart(&self, cookie: &Cookie) -> Option<&Authentication> {
        let restarts = !self.is_in_handshake() && self.identity.local_tag() != cookie.local_tag;
        restarts.then_some(&self.auth)
    }
}
