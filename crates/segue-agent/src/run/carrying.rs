//! The fast path, where there is one: what it is told of packets that pass here, and what it says of those that did not.

use super::Running;
use crate::kernel::Programs;
use segue_agent::fast_path::{FastPath, Seen};
use segue_proto::Instant;
use std::net::Ipv6Addr;
use tracing::{info, warn};

/// Loads the programs, if the kernel takes them.
pub(super) fn load(identity: Option<Ipv6Addr>, device: (&str, u32)) -> Option<FastPath<Programs>> {
    match Programs::load(identity?, device) {
        Ok(programs) => {
            info!("fast path: the kernel carries what needs no thought");
            Some(FastPath::new(programs))
        }
        Err(error) => {
            info!(
                error = format!("{error:#}"),
                "no fast path: the agent carries every packet"
            );
            None
        }
    }
}

impl Running {
    /// Interfaces that have been opened have the programs as well.
    pub(super) fn attach_programs(&mut self) {
        let opened = self.interfaces.take_opened();
        let Some(fast_path) = &mut self.fast_path else {
            return;
        };
        for number in opened {
            let Some(port) = self.interfaces.port(number) else {
                continue;
            };
            let interface = self.interfaces.name(number);
            if let Err(error) = fast_path.carrier_mut().attach(interface, port) {
                warn!(interface, error = format!("{error:#}"), "no fast path there");
            }
        }
    }

    /// A packet of a flow has passed: more of it may be carried, unless somebody wants to see them.
    pub(super) fn offer(&mut self, now: Instant, seen: Seen) {
        if let Some(fast_path) = self.fast_path.as_mut().filter(|_| self.traces.is_idle()) {
            fast_path.offer(now, &self.stack, seen, |interface, to| {
                self.interfaces.leaves_by(interface, to)
            });
        }
    }

    /// What was carried while the agent waited.
    pub(super) fn look_at_carried(&mut self, now: Instant) {
        if let Some(fast_path) = &mut self.fast_path {
            fast_path.look(now, &mut self.stack);
        }
    }

    /// What has happened may have changed the way of packets that are carried.
    pub(super) fn check_carried(&mut self, now: Instant) {
        if let Some(fast_path) = &mut self.fast_path {
            if self.traces.is_idle() {
                fast_path.check(now, &mut self.stack);
            } else {
                fast_path.end_all(now, &mut self.stack);
            }
        }
    }

    /// Nothing was left to be read of an interface or the device, by its number in the kernel, at this time.
    pub(super) fn note_drained(&mut self, index: u32, at: Instant) {
        if let Some(fast_path) = &mut self.fast_path {
            fast_path.drained(index, at);
        }
    }

    /// Interfaces or routes have changed.
    pub(super) fn check_ways_of_carried(&mut self, now: Instant) {
        if let Some(fast_path) = &mut self.fast_path {
            fast_path.check_ways(now, &mut self.stack, |interface, to| {
                self.interfaces.leaves_again(interface, to)
            });
        }
    }
}
