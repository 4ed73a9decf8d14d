//! SIGMA: handover at the transport layer in five steps (Fu, Atiquzzaman and Ivancic 2005, section II).
//!
//! 1. obtain an address from the new access router;
//! 2. add it to the association (ASCONF Add IP Address, RFC 5061);
//! 3. redirect the data to it (ASCONF Set Primary Address) and send over it oneself, both at the same time;
//! 4. update the location manager;
//! 5. delete the old address (ASCONF Delete IP Address).
//!
//! [`Sigma`] is the state machine of the mobile host. It is told of link events, of addresses won and lost and of the
//! peer's answers, and gives [`Command`]s; *when* step 3 is taken is decided by a [`HandoverPolicy`], and what happens
//! when that moment finds the new address not ready by [`WhenMissed`].
//!
//! One `Sigma` drives one association.

mod config;
mod event;
mod machine;
mod policy;

pub use config::{Config, Delete, Policy, WhenMissed};
pub use event::{Command, MissReason, SigmaEvent, SigmaEventKind};
pub use machine::Sigma;
pub use policy::{Decision, FirstReady, HandoverPolicy, LastMoment, Overlap, Signal};

#[cfg(test)]
mod tests;
