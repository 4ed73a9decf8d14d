//! What to send next, and where: as soon as a cwnd has room (Iyengar et al. 2006, section II).
//!
//! Retransmissions go before new data, each where the policy has it. A path without room holds back neither what goes
//! elsewhere nor new data there. Where several paths have room, they take turns.

use crate::sctp::PathState;
use crate::sctp::association::Association;
use crate::sctp::path::PathId;
use crate::sctp::transmit::Plan;
use crate::time::Instant;

impl Association {
    /// The paths that new data may go on: to active destinations, from where packets for them leave now.
    pub(in crate::sctp) fn usable_paths(&self) -> impl Iterator<Item = PathId> {
        let usable = self
            .destinations
            .iter()
            .filter(|d| d.in_use && !d.deactivated && d.state == PathState::Active);
        usable.map(|d| d.path).filter(|p| *p != PathId::NONE)
    }

    /// What the next packet of data is to begin with.
    pub(in crate::sctp) fn plan_multipath(&mut self, now: Instant) -> Option<Plan> {
        if self.outbound.marked == 0 {
            self.forced_retransmissions = 0;
        } else if let Some(plan) = self.plan_retransmission() {
            return Some(plan);
        }
        let len = self.outbound.next_len()?;
        if self.burst == 0 {
            return None;
        }
        let path = self.next_path(now)?;
        self.plan_new(now, path, len)
    }

    /// The first marked chunk that may be sent where it is to go.
    fn plan_retransmission(&mut self) -> Option<Plan> {
        let forced = self.forced_retransmissions > 0;
        // one packet at a time into a closed window
        if !forced && (self.burst == 0 || (self.window_probe.closed && self.outbound.outstanding_chunks > 0))
        {
            return None;
        }
        let has_room = |association: &Self, path: PathId| association.paths[usize::from(path.0)].has_window();
        if !forced && !self.usable_paths().any(|p| has_room(self, p)) && self.usable_paths().next().is_some()
        {
            return None;
        }
        let mut next = self.outbound.next_marked(None);
        while let Some(tsn) = next {
            let path = self.retransmission_path(tsn)?;
            if forced || has_room(self, path) {
                return Some(Plan::Retransmit { tsn, path, forced });
            }
            next = self.outbound.next_marked(Some(tsn.next()));
        }
        None
    }

    /// The path whose turn it is, of those whose cwnd has room. Where no destination is active, the one that RFC 9260
    /// section 6.4 and RFC 7829 section 3.2 leave.
    fn next_path(&mut self, now: Instant) -> Option<PathId> {
        let n = self.destinations.len();
        let last = self.multipath.as_ref().map_or(0, |m| m.last_destination);
        let mut any = false;
        for k in 1..=n {
            let index = (last + k) % n;
            let d = &self.destinations[index];
            if !d.in_use || d.deactivated || d.state != PathState::Active {
                continue;
            }
            any = true;
            let path = d.path;
            if self.has_room_on(now, path) {
                if let Some(multipath) = &mut self.multipath {
                    multipath.last_destination = index;
                }
                return Some(path);
            }
        }
        if any {
            return None;
        }
        self.current_path().filter(|&path| self.has_room_on(now, path))
    }

    fn has_room_on(&mut self, now: Instant, path: PathId) -> bool {
        let Some(state) = self.paths.get_mut(usize::from(path.0)) else {
            return false;
        };
        state.decay_idle(now);
        state.has_window()
    }
}
