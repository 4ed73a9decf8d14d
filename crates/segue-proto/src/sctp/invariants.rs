//! What must hold of an endpoint whenever its polls have been drained. Tests and fuzzing ask after every input; nothing
//! in production does.

use super::association::Association;
use super::endpoint::Endpoint;
use super::outbound::{ChunkState, Sent};
use super::path::{MAX_DESTINATIONS, PathId};
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
        self.check_inbound()?;
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
                self.outbound.is_empty(), "a closed association has data";
            }
        } else if self.is_stranded() {
            // nothing can be done until there is an address again
        } else if self.is_in_handshake() || !self.outbound.is_empty() || self.asconf_outstanding() {
            hold! {
                self.poll_timeout().is_some(), "something waits and no timer runs, state {:?}", self.state();
            }
        }
        Ok(())
    }

    fn check_outbound(&self) -> Result<(), String> {
        let (mut bytes, mut chunks, mut marked, mut held, mut released) = (0, 0, 0, 0, 0);
        for (_, sent) in self.outbound.all_sent() {
            held += sent.data.len();
            if sent.released {
                released += sent.data.len();
            }
            match sent.state {
                ChunkState::Outstanding => {
                    bytes += sent.len();
                    chunks += 1;
                }
                ChunkState::Marked => marked += 1,
                _ => {}
            }
        }
        let out = &self.outbound;
        hold! {
            bytes == out.outstanding_bytes, "{} bytes outstanding, counted as {}", bytes, out.outstanding_bytes;
            chunks == out.outstanding_chunks, "{} chunks outstanding, counted as {}", chunks, out.outstanding_chunks;
            marked == out.marked, "{} chunks marked, counted as {}", marked, out.marked;
            held <= out.buffered, "{} bytes sent and held, buffered counted as {}", held, out.buffered;
            released == out.released, "{} bytes released, counted as {}", released, out.released;
            out.buffered - out.released <= self.config.send_buffer as usize, "{} bytes in a send buffer of {}", out.buffered, self.config.send_buffer;
        }
        Ok(())
    }

    fn check_paths(&self) -> Result<(), String> {
        let in_flight = |on: PathId| -> u32 {
            let own = self.outbound.all_sent().map(|(_, sent)| sent);
            let own = own.filter(|s| s.state == ChunkState::Outstanding && s.path == Some(on));
            own.map(Sent::size).sum()
        };
        let mut booked = 0;
        for (id, path) in self.paths.iter() {
            let flight = in_flight(id);
            booked += flight;
            hold! {
                path.flightsize == flight, "path {:?}: {} bytes in flight, flightsize {}", id, flight, path.flightsize;
                self.is_closed() || path.t3_rtx.is_some() == (flight > 0),
                    "path {:?}: T3-rtx {:?} with {} bytes in flight", id, path.t3_rtx, flight;
                path.window.cwnd() > 0, "path {:?}: cwnd is 0", id;
            }
        }
        let all = self.outbound.all_sent().map(|(_, sent)| sent);
        let all: u32 = all
            .filter(|s| s.state == ChunkState::Outstanding)
            .map(Sent::size)
            .sum();
        hold! {
            all == booked, "{} bytes are outstanding on no path", all - booked;
        }
        Ok(())
    }

    fn check_inbound(&self) -> Result<(), String> {
        let held = self.reassembly.held();
        let most = 2 * self.config.receive_buffer as usize + usize::from(u16::MAX);
        hold! {
            held == self.reassembly.buffered, "{} bytes received and held, counted as {}", held, self.reassembly.buffered;
            held <= most, "{} bytes held in a receive buffer of {}", held, self.config.receive_buffer;
        }
        Ok(())
    }
}
