//! Whole simulations against closed forms, other records and themselves. One binary, so that it is linked once.
#![allow(clippy::disallowed_methods, reason = "tests read and write files")]

mod address_changes;
mod analyze;
mod common;
mod crowd;
mod delivery;
mod determinism;
mod handoffs;
mod leo;
mod loads;
mod location;
mod multipath;
mod networks;
mod objects;
mod path_mtu;
mod pauses;
mod people;
mod populations;
mod readdressing;
mod saturation;
mod sctp_goodput;
mod several_mobiles;
mod sharing;
mod silence;
mod sinks;
mod tcp;
mod two_ends;
mod udp;
mod warnings;
