//! The sending side of an association: what waits ([`queue`]), what is under way ([`flight`]), what is lost of it ([`loss`]), and what the peer has room for ([`credit`]).

mod book;
pub(super) mod chunk;
mod credit;
mod cuc;
pub(super) mod flight;
pub(super) mod loss;
pub(super) mod messages;
#[cfg(test)]
mod model;
pub(super) mod queue;
mod recovery;
#[cfg(test)]
mod tests;
mod transmission;

pub(super) use chunk::{Cause, ChunkState, DATA_HEADER, Sent, chunk_size};
pub(super) use credit::Credit;
pub(super) use flight::{Acknowledged, Flight, Passed};
pub(super) use queue::SendQueue;
pub(super) use recovery::Recovery;
