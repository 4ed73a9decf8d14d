//! The parts of a host that are its own, each by itself: what they keep nobody else writes.

pub(super) mod applications;
pub(super) mod driven;
pub(super) mod fragments;
pub(super) mod interfaces;
pub(super) mod kernel;
mod listener;
pub(super) mod location;
pub(super) mod movers;
pub(super) mod shims;
pub(super) mod tcp;
pub(super) mod udp;
