//! SCTP (RFC 9260) with dynamic address reconfiguration (RFC 5061).

pub mod config;
pub mod event;

pub use config::{Config, CwndCredit, Profile, RetransmitTo, SackRoute};
pub use event::{
    AddressError, AddressRequest, AsconfResult, AssociationId, Counters, Event, Message, PathSnapshot,
    PathState, SendError,
};
