//! The sending side of an association: what waits ([`queue`]), what is under way ([`flight`]) and what is lost of it ([`loss`]).

mod book;
pub(super) mod chunk;
mod cuc;
pub(super) mod flight;
mod hold;
pub(super) mod loss;
pub(super) mod messages;
pub(super) mod queue;
#[cfg(test)]
mod tests;
mod transmission;

pub(super) use chunk::{Cause, ChunkState, DATA_HEADER, Sent, chunk_size};
pub(super) use flight::{Acknowledged, Flight, Passed};
pub(super) use hold::concerns;
pub(super) use queue::SendQueue;
