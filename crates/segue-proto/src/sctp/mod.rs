//! SCTP (RFC 9260) with dynamic address reconfiguration (RFC 5061).

mod ack;
mod asconf_answer;
mod asconf_request;
mod association;
pub mod config;
mod cookie;
mod destinations;
mod endpoint;
pub mod event;
mod handshake;
mod heartbeat;
mod inbound;
mod outbound;
mod path;
mod reassembly;
mod receive;
mod retransmission;
mod shutdown;
mod transmit;

pub use association::Association;
pub use config::{Config, CwndCredit, Profile, RetransmitTo, SackRoute};
pub use endpoint::{Endpoint, EndpointCounters};
pub use event::{
    AddressError, AddressRequest, AsconfResult, AssociationId, Counters, Event, Message, PathSnapshot,
    PathState, SendError,
};
