//! What an association tells its user, and what it shows of itself.

use crate::contract::LocalAddress;
use crate::time::Duration;
use core::net::Ipv6Addr;
use segue_wire::sctp::{AsconfParameter, ErrorCause};
use segue_wire::{AsconfSerial, Data, Tsn};
use smallvec::SmallVec;

/// An association of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssociationId(pub u64);

/// A notification (RFC 9260 section 11.2).
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// COMMUNICATION UP: the association is established.
    Connected,
    /// Messages can be received. Not repeated until `recv` has returned `None`.
    Readable,
    /// There is room in the send buffer again after `send` refused.
    Writable,
    /// A chunk was sent again because it was reported missing; only with `Config::tell_fast_retransmissions`.
    FastRetransmitted {
        /// Its TSN.
        tsn: Tsn,
        /// Verification tag of the packets to the peer.
        peer_tag: u32,
    },
    /// All data sent so far has been acknowledged.
    SendersDry,
    /// A message was abandoned, as its [`Reliability`](super::Reliability) asked.
    MessageAbandoned {
        /// Its stream.
        stream_id: u16,
        /// Its payload protocol identifier.
        payload_protocol_id: u32,
        /// Whether any of it was sent: then it may have been delivered all the same.
        sent: bool,
    },
    /// The peer added one of its addresses by ASCONF.
    PeerAddressAdded(Ipv6Addr),
    /// A peer address was confirmed by a heartbeat (RFC 9260 section 5.4).
    PeerAddressConfirmed(Ipv6Addr),
    /// The peer deleted one of its addresses.
    PeerAddressDeleted(Ipv6Addr),
    /// The peer wants nothing at this address until it activates it again.
    PeerAddressDeactivated(Ipv6Addr),
    /// The peer wants data at this address again.
    PeerAddressActivated(Ipv6Addr),
    /// No address of ours may be the source of a packet: the association stands still.
    Stranded,
    /// There is an address again: the association goes on.
    Resumed,
    /// The primary path changed, by the peer's Set Primary Address or by command.
    PrimaryChanged(Ipv6Addr),
    /// A path changed its state (NETWORK STATUS CHANGE).
    PathStateChanged {
        /// Destination.
        address: Ipv6Addr,
        /// New state.
        state: PathState,
    },
    /// The peer authenticates with another shared key than before (RFC 6458 section 6.1.8, SCTP_AUTH_NEW_KEY): its shared
    /// key identifier.
    PeerKeyChanged(u16),
    /// This end offered authentication, and the peer does not support it (SCTP_AUTH_NO_AUTH).
    AuthenticationNotSupported,
    /// Our ASCONF was answered.
    AsconfAnswered {
        /// Its serial number.
        serial: AsconfSerial,
        /// Every request with its outcome.
        results: SmallVec<[AsconfResult; 1]>,
    },
    /// A router reported that an address of the peer cannot be reached (RFC 9260 section 10).
    Unreachable {
        /// Destination.
        address: Ipv6Addr,
        /// What the router said.
        reason: Unreachable,
    },
    /// RESTART: the peer lost its state and began anew (RFC 9260 section 5.2.4, action A). The association is established,
    /// with new TSNs, streams and paths; nothing of what was exchanged before is continued, and requests for addresses or
    /// streams that wait for an answer get none.
    Restarted(Box<Restarted>),
    /// A request for streams of ours was answered, or failed.
    StreamRequestAnswered {
        /// What was asked.
        request: StreamRequest,
        /// Whether it was done.
        outcome: Result<(), StreamRefused>,
    },
    /// The message of this stream that was being delivered in pieces will not be completed: its sender gave it up.
    PartialDeliveryAborted(u16),
    /// The peer begins again at stream sequence number 0 in these streams; in all, if none is named.
    IncomingStreamsReset(Vec<u16>),
    /// The peer has that many more streams to send on.
    IncomingStreamsAdded(u16),
    /// The peer had all streams begin again, and the TSNs.
    AssociationReset,
    /// The association was shut down gracefully (SHUTDOWN COMPLETE).
    Closed,
    /// COMMUNICATION LOST: the peer is unreachable.
    Lost,
    /// The association was aborted by the peer or by us.
    Aborted {
        /// Causes that the ABORT carried.
        causes: Vec<ErrorCause>,
    },
}

/// What became of the user's data when the peer restarted (SEND FAILURE, RFC 9260 section 11.2.2).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Restarted {
    /// Messages given to `send` of which nothing was sent.
    pub unsent: Vec<Message>,
    /// Messages sent in part or in whole and not acknowledged in whole: of each what is not known to have arrived in
    /// order. One of which the peer had promised to keep a part (NR-SACK) comes without that, in pieces that are not `first`
    /// or not `last`.
    pub unacknowledged: Vec<Message>,
    /// Messages that arrived in whole before the restart and were not taken by `recv`.
    pub unread: Vec<Message>,
}

/// A request of an ASCONF of ours with its outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsconfResult {
    /// What was asked.
    pub request: AddressRequest,
    /// `Ok`, or the causes for which the peer refused; none if it gave none, or was not asked because the address went
    /// away before.
    pub outcome: Result<(), Vec<ErrorCause>>,
}

/// A change of addresses to ask of the peer (RFC 5061 section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressRequest {
    /// Add IP Address.
    Add(Ipv6Addr),
    /// Delete IP Address.
    Delete(Ipv6Addr),
    /// Set Primary IP Address.
    SetPrimary(Ipv6Addr),
    /// Deactivate Address, of the private extension.
    Deactivate(Ipv6Addr),
    /// Activate Address, of the private extension.
    Activate(Ipv6Addr),
}

/// A change of addresses of ours, for [`Association::change_addresses`](super::Association::change_addresses).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressChange {
    /// Add this one.
    Add(LocalAddress),
    /// Delete this one.
    Delete(Ipv6Addr),
    /// Make this one the peer's primary path.
    SetPrimary(Ipv6Addr),
    /// Have nothing sent to this one for now.
    Deactivate(Ipv6Addr),
    /// Have data sent to this one again.
    Activate(Ipv6Addr),
}

/// A change of streams to ask of the peer (RFC 6525 section 4). Streams are named; none stands for all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamRequest {
    /// Outgoing SSN Reset.
    ResetOutgoing(Vec<u16>),
    /// Incoming SSN Reset.
    ResetIncoming(Vec<u16>),
    /// SSN/TSN Reset.
    ResetAssociation,
    /// Add Outgoing Streams: that many.
    AddOutgoing(u16),
    /// Add Incoming Streams: that many.
    AddIncoming(u16),
}

/// Why a change of streams was not carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamRefused {
    /// The peer does not want it.
    #[error("denied")]
    Denied,
    /// The peer has a request of its own under way.
    #[error("another request is in progress")]
    Busy,
    /// The peer could make nothing of it.
    #[error("error")]
    Error,
}

/// Why a change of streams was not asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    /// No such stream.
    #[error("no such stream")]
    NoSuchStream,
    /// More streams than can be, or than one request can name.
    #[error("too many streams")]
    TooMany,
    /// The association is not established, or one of the ends does not support RE-CONFIG.
    #[error("association cannot change streams")]
    NotPossible,
}

/// State of a destination (RFC 9260 sections 5.4 and 8.2, RFC 7829 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Not yet confirmed by a heartbeat: no data may be sent there.
    Unconfirmed,
    /// Usable.
    Active,
    /// Error count passed PFMR (RFC 7829), but not yet Path.Max.Retrans: used only where none is active.
    PotentiallyFailed,
    /// Error count passed Path.Max.Retrans.
    Inactive,
}

/// A user message received.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// Stream.
    pub stream_id: u16,
    /// Payload protocol identifier.
    pub payload_protocol_id: u32,
    /// Sent unordered.
    pub unordered: bool,
    /// Whether it begins with these parts.
    pub first: bool,
    /// Whether it ends with them. A message longer than `Config::partial_delivery_point` may come in several pieces
    /// (RFC 6458 section 6.1.7): of one message at a time, so that a piece that is not `first` continues the last one
    /// that was not `last`. Between them whole messages may come.
    pub last: bool,
    /// The message's data in order, one part per DATA chunk.
    pub parts: SmallVec<[Data; 1]>,
}

impl Message {
    /// Whether this is all of it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.first && self.last
    }
}

/// One destination as seen now: for traces, figures and status output.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathSnapshot {
    /// Source address of packets sent on it.
    pub source: Ipv6Addr,
    /// Destination.
    pub destination: Ipv6Addr,
    /// Whether it is the primary path.
    pub primary: bool,
    /// State.
    pub state: PathState,
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Slow-start threshold, bytes.
    pub ssthresh: u32,
    /// Bytes outstanding on it.
    pub flightsize: u32,
    /// Smoothed round-trip time, if measured.
    pub srtt: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Consecutive errors.
    pub error_count: u32,
}

/// Why a destination cannot be reached, as a router says (RFC 4443 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreachable {
    /// No route to destination.
    NoRoute,
    /// Communication administratively prohibited, or refused by a policy of the source's.
    Prohibited,
    /// Beyond scope of source address.
    BeyondScope,
    /// Address unreachable, or for no reason that is given.
    Address,
    /// Nothing takes packets at its UDP port (RFC 6951 section 5.5).
    Port,
}

impl Unreachable {
    pub(super) fn of_code(code: u8) -> Self {
        match code {
            0 | 6 => Self::NoRoute,
            1 | 5 => Self::Prohibited,
            2 => Self::BeyondScope,
            _ => Self::Address,
        }
    }
}

/// Why `send` took nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// No such stream.
    #[error("no such stream")]
    NoSuchStream,
    /// The message is empty: a DATA chunk carries at least one byte.
    #[error("empty message")]
    Empty,
    /// The send buffer is full; an `Event::Writable` follows.
    #[error("send buffer full")]
    BufferFull,
    /// The message is longer than the whole send buffer.
    #[error("message longer than the send buffer")]
    TooLong,
    /// The association is closing or closed.
    #[error("association is closing")]
    Closing,
}

/// Why a request for an address change was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressError {
    /// The address is not an address of ours, or already is one.
    #[error("address is not (or is already) part of the association")]
    BadAddress,
    /// It is the last one.
    #[error("last remaining address")]
    LastAddress,
    /// The association is not established, or the peer does not support ASCONF.
    #[error("association cannot change addresses")]
    NotPossible,
}

impl AddressRequest {
    /// The address that it is about.
    #[must_use]
    pub const fn address(&self) -> Ipv6Addr {
        match *self {
            Self::Add(address)
            | Self::Delete(address)
            | Self::SetPrimary(address)
            | Self::Deactivate(address)
            | Self::Activate(address) => address,
        }
    }

    /// What asks for it in an ASCONF.
    pub(super) fn parameter(self, correlation_id: u32) -> AsconfParameter {
        match self {
            Self::Add(address) => AsconfParameter::AddIpAddress {
                correlation_id,
                address,
            },
            Self::Delete(address) => AsconfParameter::DeleteIpAddress {
                correlation_id,
                address,
            },
            Self::SetPrimary(address) => AsconfParameter::SetPrimaryAddress {
                correlation_id,
                address,
            },
            Self::Deactivate(address) => AsconfParameter::DeactivateAddress {
                correlation_id,
                address,
            },
            Self::Activate(address) => AsconfParameter::ActivateAddress {
                correlation_id,
                address,
            },
        }
    }
}

impl AddressChange {
    /// The request that the peer gets.
    #[must_use]
    pub const fn request(&self) -> AddressRequest {
        match *self {
            Self::Add(local) => AddressRequest::Add(local.address),
            Self::Delete(address) => AddressRequest::Delete(address),
            Self::SetPrimary(address) => AddressRequest::SetPrimary(address),
            Self::Deactivate(address) => AddressRequest::Deactivate(address),
            Self::Activate(address) => AddressRequest::Activate(address),
        }
    }
}
