//! Captures that tshark reads. One binary, so that it is linked once.

mod common;
mod tshark_chunks;
mod tshark_mobility;
