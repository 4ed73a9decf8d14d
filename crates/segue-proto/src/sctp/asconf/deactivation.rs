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

use super::answers::quote;
use segue_wire::sctp::{AsconfParameter, ErrorCause};

/// Why a deactivation or activation is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum Refusal {
    /// The peer has no such address.
    Unknown,
    /// It is the source of the ASCONF.
    Source,
    /// Data could go nowhere.
    Last,
}

impl Refusal {
    /// What the peer is told, which asked by `parameter`.
    pub(in crate::sctp) fn cause(self, parameter: &AsconfParameter) -> ErrorCause {
        let quoted = quote(parameter);
        match self {
            Self::Unknown => ErrorCause::UnresolvableAddress(quoted),
            Self::Source => ErrorCause::DeleteSourceAddress(quoted),
            Self::Last => ErrorCause::DeleteLastRemainingAddress(quoted),
        }
    }
}
