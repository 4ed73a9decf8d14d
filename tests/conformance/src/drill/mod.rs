//! A player of packetdrill scripts: what a script says is done to a machine of ours in virtual time, and what it expects is
//! compared with what the machine does.
//!
//! The language is that of packetdrill, both of Google's (TCP) and of nplab's (SCTP), and of `docs/drill.md`, which adds
//! addresses to packet lines. [`parse`](parse::parse) turns text into an [`ast::Script`], [`run`](runner::run) plays it on a
//! [`Stack`](stack::Stack), one for each protocol, and comes to a [`Verdict`](verdict::Verdict).

mod arguments;
pub mod ast;
mod display;
mod error;
pub mod files;
pub mod layout;
mod lexer;
pub mod parse;
pub mod play;
pub mod runner;
mod sctp;
pub mod stack;
pub mod suite;
mod tables;
pub mod tcp;
pub mod verdict;

pub use error::SyntaxError;
