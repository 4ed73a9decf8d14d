//! Proofs about the protocols of Segue.
//!
//! - [`script`]: one endpoint against a scripted peer. `tests/rfc*.rs` use it, a file per group of RFC sections, and read
//!   like packet traces.
//! - [`world`]: two endpoints and a network between them that does whatever it is told, on real bytes.
//! - [`ledger`]: which messages were sent, and whether each came out once, in order and unharmed.
//! - [`shims`]: ILNPv6 shims and a network of locators between them. `tests/rfc674*.rs` use it.
//! - [`ordeal`]: a seed becomes two hosts, an adverse network and two users; `tests/seeds.rs` runs a thousand of them.
//! - [`renewal`]: the same of streams that begin anew while messages are given up.
//! - [`exercise`]: seeds for what neither has; [`transcript`]: what endpoints send as digests, to see whether a change
//!   changes anything.
//! - [`mip6`]: mobile nodes, correspondents and home agents of Mobile IPv6 on real bytes; `tests/rfc6275_*.rs` use it.
//! - [`crowd`]: an endpoint with thousands of associations; `tests/amplification.rs` counts what spoofed packets cost it.
//! - [`drill`]: a player of packetdrill scripts. `tests/drill*.rs` play the suites of others and scripts of ours.
//! - [`fuzz`]: the bodies of the fuzz targets, shared with the tests that replay the seeds they found.

pub mod crowd;
pub mod drill;
pub mod exercise;
pub mod fuzz;
pub mod ledger;
pub mod mip6;
pub mod ordeal;
pub mod renewal;
pub mod script;
pub mod shims;
pub mod transcript;
pub mod world;
