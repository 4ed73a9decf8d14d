//! What must hold of an endpoint whenever its polls have been drained. Tests and fuzzing ask after every input; nothing
//! in production does.

use super::association::Association;
use super::endpoint::Endpoint;
use super::path::MAX_DESTINATIONS;
use crate::congestion::CongestionControl;

/// Returns the first of the claims that does not hold.
macro_rules! hold {
    ($($condition:expr, $what:literal $(, $value:expr)*;)*) => {
        $(if !$condition {
            return Err(format!($what $(, $value)*));
        })*
    };
}

impl Endpoint {
    /// Checks the invariants of the endpoint and of all its associations. To be called after the polls were drained.
    ///
    /// # Errors
    /// What does not hold, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        hold! {
            self.is_drained(), "packets or notifications are left after draining";
            self.index_is_complete(), "associations are not found by the addresses and tags that they have";
        }
        for (id, association) in self.associations() {
            association
                .check_invariants()
                .map_err(|what| format!("association {}: {what}", id.0))?;
        }
        Ok(())
    }
}

impl Association {
    /// Checks that the books balance: what is outstanding, marked and held is what the counts and timers say, queues
    /// are within what the configuration allows, and something will happen next if something must.
    ///
    /// # Errors
    /// What does not hold, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.check_outbound()?;
        self.check_paths()?;
        self.receiver.check_invariants(&self.config)?;
        self.local.check_invariants()?;
        hold! {
            self.destination_count() <= MAX_DESTINATIONS, "{} destinations", self.destination_count();
            self.destinations.contains(self.primary), "the primary path's destination is gone";
            self.destinations.contains(self.current), "the current destination is gone";
            self.out.waiting() == 0 || self.is_stranded(), "{} control packets are left after draining", self.out.waiting();
        }
        if self.is_closed() {
            hold! {
                self.poll_timeout().is_none(), "a closed association has timers";
                self.is_sender_dry(), "a closed association has data";
            }
        } else if self.is_stranded() {
            // nothing can be done until there is an address again
        } else if self.is_in_handshake() || !self.is_sender_dry() || self.asconf_outstanding() {
            hold! {
                self.poll_timeout().is_some(), "something waits and no timer runs, state {:?}", self.state();
            }
        }
        Ok(())
    }

    fn check_outbound(&self) -> Result<(), String> {
        self.flight.check()?;
        let buffered = self.queue.buffered() + self.flight.buffered();
        hold! {
            buffered <= self.config.send_buffer as usize, "{} bytes in a send buffer of {}", buffered, self.config.send_buffer;
        }
        Ok(())
    }

    fn check_paths(&self) -> Result<(), String> {
        for (id, size) in self.flight.sizes() {
            hold! {
                size == 0 || self.paths.contains(id), "{} bytes in flight on path {:?}, which is gone", size, id;
            }
        }
        for (id, path) in self.paths.iter() {
            hold! {
                path.window.cwnd() > 0, "path {:?}: cwnd is 0", id;
            }
        }
        Ok(())
    }
}
