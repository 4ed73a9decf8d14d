//! When one address takes the place of others (RFC 5061 section 5.3.2): what the two ends do about the data that is
//! outstanding towards the old ones.
//!
//! # The host that moved
//! It asks for the deletion of addresses that are gone only when the peer's data comes to an address that there is, in
//! order: what the peer had sent to the old ones was then sent again. A peer may retransmit to an address that it was
//! asked to delete as long as it knows no better: usrsctp 0.9.5 does until the association fails. Nothing is lost by
//! waiting: the new address is the primary path, and one that is back before it was deleted is simply there again.
//!
//! A peer without data to send is not waited for longer than RTO.Max: whatever it had outstanding has timed out by then,
//! and gone elsewhere. For ever would be too long, since the address may become another host's, whose answer to a stray
//! packet ends the association (RFC 9260 section 8.4).
//!
//! # Its peer
//! A peer that makes another address primary has reasons. Where the paths used so far are silent, that is where more
//! was not acknowledged in time than round trips and a delayed SACK explain, what is outstanding goes to the new path at
//! once, without waiting for T3-rtx. A path that still answers is left alone.

use crate::time::Instant;
use segue_wire::Tsn;

/// Addresses that were replaced, and not deleted yet, for which one more replacement does not wait: a host that moves
/// often must not fill the peer's table of addresses.
pub(in crate::sctp) const MAX_REPLACED: usize = 4;

/// What the deletion of addresses that another one replaced waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Replacement {
    /// The cumulative TSN ack when the new address was granted; `None` if the peer's TSNs were not known yet.
    pub cumulative_tsn_ack: Option<Tsn>,
    /// When it waits no longer.
    pub due: Instant,
}

impl Replacement {
    /// Whether data has come, in order, that was sent since.
    pub(super) fn is_over(&self, cumulative_tsn_ack: Tsn, has_gap: bool) -> bool {
        let then = self.cumulative_tsn_ack;
        !has_gap && then.is_none_or(|then| then.before(cumulative_tsn_ack))
    }
}
