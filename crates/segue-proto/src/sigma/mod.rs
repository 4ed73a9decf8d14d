//! SIGMA: handover at the transport layer in five steps (Fu, Atiquzzaman and Ivancic 2005, section II).
//!
//! 1. obtain an address from the new access router;
//! 2. add it to the association (ASCONF Add IP Address, RFC 5061);
//! 3. redirect the data to it (ASCONF Set Primary Address) and send over it oneself, both at the same time;
//! 4. update the location manager;
//! 5. delete the old address (ASCONF Delete IP Address), or deactivate it, so that a host that comes back while the address
//!    is valid needs neither a new one nor step 2 ([`Delete::Deactivate`]).
//!
//! [`Sigma`] is the state machine of the mobile host. It is told of link events, of addresses won and lost and of the
//! peer's answers, and gives [`Command`]s; *when* step 3 is taken is decided by a [`HandoverPolicy`], and what happens
//! when that moment finds the new address not ready by [`WhenMissed`].
//!
//! Steps 2 and 3, and 3 and 5, may go in one ASCONF ([`Bundle`]), as the paper on mSCTP-CMT (section II) suggests for some
//! policies. Without any usable address the association stands still until there is one; with [`Bundle::All`] one
//! ASCONF from there then does steps 2, 3 and 5.
//!
//! One `Sigma` drives one association. A host that has several has one for each: [`Sigma::for_another`].

mod config;
mod event;
mod known;
mod machine;
mod policy;

pub use config::{Bundle, Config, Delete, Policy, WhenMissed};
pub use event::{Changes, Command, MissReason, SigmaEvent, SigmaEventKind};
pub use machine::Sigma;
pub use policy::{
    Decision, FirstReady, HandoverPolicy, LastMoment, LinkLoss, Overlap, PeerTimeouts, Planned, Signal,
};

#[cfg(test)]
mod tests;
