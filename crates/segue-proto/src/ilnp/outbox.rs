//! What comes out of the machine.

use super::counters::Counters;
use crate::contract::Transmit;
use crate::shim::ShimEvent;
use std::collections::VecDeque;

/// Packets and events that wait to be taken, and what is counted.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    transmits: VecDeque<Transmit>,
    events: VecDeque<ShimEvent>,
    pub counters: Counters,
}

impl Outbox {
    /// A packet is to be sent.
    pub fn send(&mut self, transmit: Transmit) {
        self.transmits.push_back(transmit);
    }

    /// The host is told.
    pub fn tell(&mut self, event: ShimEvent) {
        self.events.push_back(event);
    }

    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    pub fn poll_event(&mut self) -> Option<ShimEvent> {
        self.events.pop_front()
    }
}
