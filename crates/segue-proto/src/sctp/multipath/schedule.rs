//! What to send next, and where: as soon as a cwnd has room (Iyengar et al. 2006, section II).
//!
//! Retransmissions go before new data, each where the policy has it. A path without room holds back neither what goes
//! elsewhere nor new data there.
//!
//! RFC 9260 section 7.2.4 has one packet of what was reported missing go at once, whatever cwnd says (rule 3). There it goes
//! where it was lost, and takes the place of packets that have arrived. On another path nothing has left the queue for it:
//! if that one's window is full, it is as likely as not to be lost again. So the rule holds for each path that lost
//! something, for a packet that goes there (`PathShare::fast_retransmission_due`); what goes elsewhere waits for room. ns-2's
//! agent, by the authors of CMT, does the same.
//!
//! Which of several paths with room gets new data is the
//! scheduler's to say. Max.Burst counts by path: a SACK is for all of them, and what one path sends must not be missing
//! on another.

use super::scheduler::{Backlog, Candidate};
use crate::congestion::CongestionControl;
use crate::sctp::PathState;
use crate::sctp::association::Association;
use crate::sctp::path::PathId;
use crate::sctp::transmit::Plan;
use crate::time::{Duration, Instant};
use smallvec::SmallVec;

impl Association {
    /// The paths that new data may go on: to active destinations, from where packets for them leave now.
    pub(in crate::sctp) fn usable_paths(&self) -> impl Iterator<Item = PathId> {
        let usable = self
            .destinations
            .values()
            .filter(|d| !d.deactivated && d.state == PathState::Active);
        usable.map(|d| d.path)
    }

    /// What the next packet of data is to begin with.
    pub(in crate::sctp) fn plan_multipath(&mut self, now: Instant) -> Option<Plan> {
        if self.flight.marked() == 0 {
            self.recovery.nothing_is_marked();
        } else if let Some(plan) = self.plan_retransmission() {
            return Some(plan);
        }
        let len = self.queue.next_len()?;
        let path = self.next_path(now, len)?;
        if let Some(plan) = self.plan_new(now, path, len) {
            return Some(plan);
        }
        if let Some(multipath) = &mut self.multipath {
            multipath.was_blocked = true;
        }
        self.plan_opportunistic(now)
    }

    /// Of the usable paths that have room, the one with the least SRTT.
    pub(in crate::sctp) fn fastest_with_room(&mut self, now: Instant) -> Option<PathId> {
        let usable: SmallVec<[PathId; 4]> = self.usable_paths().collect();
        let with_room = usable.into_iter().filter(|&p| self.has_room_on(now, p));
        let with_room: SmallVec<[PathId; 4]> = with_room.collect();
        with_room.into_iter().min_by_key(|&p| self.srtt_of(p))
    }

    /// The first marked chunk that may be sent where it is to go.
    fn plan_retransmission(&mut self) -> Option<Plan> {
        let forced = |association: &Self, path: PathId| {
            association.recovery.forces() || association.paths[path].share.fast_retransmission_due
        };
        // one packet at a time into a closed window
        let held = self.credit.is_closed() && self.flight.has_outstanding();
        let may_go = |association: &Self, path: PathId| {
            forced(association, path) || (!held && association.may_send_on(path))
        };
        if self.usable_paths().next().is_some() && !self.usable_paths().any(|p| may_go(self, p)) {
            return None;
        }
        let mut next = self.flight.next_marked(None);
        while let Some(tsn) = next {
            let path = self.retransmission_path(tsn)?;
            if may_go(self, path) {
                let forced = forced(self, path);
                return Some(Plan::Retransmit { tsn, path, forced });
            }
            next = self.flight.next_marked(Some(tsn.next()));
        }
        None
    }

    /// The path that the scheduler chooses, of those whose cwnd has room. Where no destination is active, the one that RFC
    /// 9260 section 6.4 and RFC 7829 section 3.2 leave.
    fn next_path(&mut self, now: Instant, len: u32) -> Option<PathId> {
        let usable: SmallVec<[PathId; 4]> = self.usable_paths().collect();
        if usable.is_empty() {
            return self.current_path().filter(|&path| self.has_room_on(now, path));
        }
        let mut any_room = false;
        let mut candidates: SmallVec<[Candidate; 4]> = SmallVec::new();
        for &path in &usable {
            let mut has_room = self.has_room_on(now, path);
            if has_room && !self.fits_its_share(path, len) {
                has_room = false;
                self.out.counters.multipath.shares_used_up += 1;
            }
            any_room |= has_room;
            candidates.push(self.candidate(path, has_room));
        }
        if !any_room {
            return None;
        }
        presume_unmeasured(&mut candidates);
        let counts_unsent = self
            .multipath
            .as_ref()
            .is_some_and(|m| m.scheduler.counts_unsent());
        let backlog = Backlog {
            now,
            unsent: if counts_unsent {
                self.queue.unsent_bytes() as u64
            } else {
                0
            },
            peer_rwnd: self.credit.peer_rwnd(),
            outstanding: u64::from(self.flight.outstanding_bytes()),
            was_blocked: self
                .multipath
                .as_mut()
                .is_some_and(|m| core::mem::take(&mut m.was_blocked)),
        };
        let chosen = self.multipath.as_mut()?.scheduler.choose(&candidates, &backlog);
        if chosen.is_none() {
            self.out.counters.multipath.waits += 1;
        }
        chosen.and_then(|i| usable.get(i).copied())
    }

    fn candidate(&self, path: PathId, has_room: bool) -> Candidate {
        let state = &self.paths[path];
        Candidate {
            id: path.place(),
            cwnd: state.window.cwnd(),
            flightsize: self.flight.size_on(path),
            segment: state.window.segment(),
            srtt: state.rtt.srtt().unwrap_or(UNMEASURED),
            rttvar: state.rtt.rttvar(),
            has_room,
        }
    }

    fn has_room_on(&mut self, now: Instant, path: PathId) -> bool {
        if !self.paths.contains(path) {
            return false;
        }
        self.decay_idle(now, path);
        self.may_send_on(path)
    }

    /// Whether cwnd and Max.Burst of a path let another packet go.
    fn may_send_on(&self, path: PathId) -> bool {
        self.has_window(path) && self.paths[path].share.burst > 0
    }

    /// A new opportunity to send, on every path.
    pub(in crate::sctp) fn open_bursts(&mut self) {
        for path in self.paths.values_mut() {
            path.share.burst = self.burst;
        }
    }
}

/// Stands for a round-trip time that was not measured yet.
const UNMEASURED: Duration = Duration::from_nanos(u64::MAX);

/// A path whose round trip was never measured counts as fast as the fastest that was, so that it is tried.
fn presume_unmeasured(candidates: &mut [Candidate]) {
    let fastest = candidates.iter().map(|c| c.srtt).min().unwrap_or(UNMEASURED);
    let presumed = if fastest == UNMEASURED {
        Duration::from_secs(1)
    } else {
        fastest
    };
    for candidate in candidates.iter_mut().filter(|c| c.srtt == UNMEASURED) {
        candidate.srtt = presumed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_counts_as_the_fastest_that_was() {
        let presumed = |round_trips: &[Duration]| -> Vec<Duration> {
            let mut candidates: Vec<Candidate> = round_trips
                .iter()
                .map(|&srtt| Candidate {
                    id: 0,
                    cwnd: 1,
                    flightsize: 0,
                    segment: 1,
                    srtt,
                    rttvar: Duration::ZERO,
                    has_room: true,
                })
                .collect();
            presume_unmeasured(&mut candidates);
            candidates.iter().map(|c| c.srtt).collect()
        };
        let [short, long] = [20, 90].map(Duration::from_millis);
        assert_eq!(presumed(&[long, UNMEASURED, short]), [long, short, short]);
        assert_eq!(presumed(&[UNMEASURED; 2]), [Duration::from_secs(1); 2]);
        assert_eq!(presumed(&[]), []);
    }
}
