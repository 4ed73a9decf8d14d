//! SCTP (RFC 9260) with dynamic address reconfiguration (RFC 5061).

mod association;
pub mod config;
mod endpoint;
pub mod event;

pub use association::Association;
pub use config::{Config, CwndCredit, Profile, RetransmitTo, SackRoute};
pub use endpoint::{Endpoint, EndpointCounters};
pub use event::{
    AddressError, AddressRequest, AsconfResult, AssociationId, Counters, Event, Message, PathSnapshot,
    PathState, SendError,
};
