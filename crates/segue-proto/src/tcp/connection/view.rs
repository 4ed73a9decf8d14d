//! What a connection shows of itself.

use super::Connection;
use crate::contract::LocalAddress;
use crate::tcp::counters::Counters;
use crate::tcp::event::{Outstanding, Snapshot, State};
use crate::time::Instant;
use core::net::Ipv6Addr;

impl Connection {
    /// State.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            recovery: *self.sender.counters(),
            ..self.counters
        }
    }

    /// Local address.
    #[must_use]
    pub fn local(&self) -> LocalAddress {
        LocalAddress {
            interface: self.interface,
            address: self.ends.local,
        }
    }

    /// Local port.
    #[must_use]
    pub fn local_port(&self) -> u16 {
        self.ends.local_port
    }

    /// Address and port of the peer.
    #[must_use]
    pub fn remote(&self) -> (Ipv6Addr, u16) {
        (self.ends.remote, self.ends.remote_port)
    }

    /// Since when there has always been data to be sent or acknowledged; nothing if there is none.
    #[must_use]
    #[inline]
    pub fn busy_since(&self) -> Option<Instant> {
        self.sender.busy_since()
    }

    /// What is given to `send` next has been in the making since then: if it is all there is, the connection has been
    /// [busy](Self::busy_since) since.
    pub fn busy_from(&mut self, since: Instant) {
        self.sender.busy_from(since);
    }

    /// How it does now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.sender.snapshot(self.state)
    }

    /// Bytes of data per segment that the peer was told to send at most.
    #[must_use]
    pub fn announced_mss(&self) -> u32 {
        self.sender.announced_mss()
    }

    /// What is outstanding, by segment; each is looked at.
    #[must_use]
    pub fn outstanding(&self) -> Outstanding {
        self.sender.outstanding()
    }

    /// Bytes that [`recv`](Self::recv) would give.
    #[must_use]
    pub fn readable_bytes(&self) -> u64 {
        self.receiver.ready_bytes()
    }
}
