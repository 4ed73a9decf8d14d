//! Subflows that are seen before the connection that they join.

use crate::analyze::decode::Address;
use crate::analyze::flows::key::Slot;

/// A subflow whose connection has not been seen yet. A capture of several interfaces may hold the packets of one of them
/// before earlier ones of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyJoin {
    token: u32,
    slot: Slot,
    ends: (Address, Address),
}

/// Those that wait.
#[derive(Debug, Default)]
pub(super) struct EarlyJoins {
    waiting: Vec<EarlyJoin>,
}

impl EarlyJoins {
    /// A subflow waits for the connection of this token. Whether one that has waited longer no longer does.
    pub fn add(&mut self, slot: Slot, token: u32, ends: (Address, Address)) -> bool {
        // a SYN may come more than once
        if self.waiting.iter().any(|e| e.token == token && e.slot == slot) {
            return false;
        }
        let full = self.waiting.len() == MAX_EARLY_JOINS;
        if full {
            self.waiting.remove(0);
        }
        self.waiting.push(EarlyJoin { token, slot, ends });
        full
    }

    /// Takes those that wait for the connection of this token: each with its ends.
    pub fn take(&mut self, token: u32) -> Vec<(Slot, (Address, Address))> {
        let known = self.waiting.extract_if(.., |early| early.token == token);
        known.map(|early| (early.slot, early.ends)).collect()
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}

const MAX_EARLY_JOINS: usize = 64;

/// The limit that counts subflows whose connection is not in the capture.
pub(super) const UNKNOWN: &str = "mptcp-joins-of-unknown-connections";
