//! What to send next, and where: as soon as a cwnd has room (Iyengar et al. 2006, section II).
//!
//! Retransmissions go before new data, each where the policy has it. A path without room holds back neither what goes
//! elsewhere nor new data there.
//!
//! RFC 9260 section 7.2.4 has one packet of what was reported missing go at once, whatever cwnd says (rule 3). There it goes
//! where it was lost, and takes the place of packets that have arrived. On another path nothing has left the queue for it:
//! if that one's window is full, it is as likely as not to be lost again. So the rule holds for each path that lost
//! something, for a packet that goes there (`CmtPath::forces`); what goes elsewhere waits for room. ns-2's
//! agent, by the authors of CMT, does the same.
//!
//! Which of several paths with room gets new data is the
//! scheduler's to say. Max.Burst counts by path: a SACK is for all of them, and what one path sends must not be missing
//! on another.

use super::Concurrent;
use super::scheduler::{Backlog, Candidate};
use crate::sctp::ids::PathId;
use crate::sctp::peer::Peer;
use crate::sctp::sender::plan::Plan;
use crate::sctp::sender::strategy::lent::{Lent, View};
use crate::time::{Duration, Instant};
use smallvec::SmallVec;

impl Concurrent {
    /// What the next packet of data is to begin with.
    pub(in crate::sctp) fn plan(&mut self, lent: &mut Lent<'_>) -> Option<Plan> {
        if lent.flight.marked() == 0 {
            lent.recovery.nothing_is_marked();
        } else if let Some(plan) = self.plan_retransmission(lent) {
            return Some(plan);
        }
        let len = lent.next_len()?;
        let path = self.next_path(lent, len)?;
        if let Some(plan) = lent.plan_new(path, len) {
            return Some(plan);
        }
        self.was_blocked = true;
        self.plan_opportunistic(lent)
    }

    /// Of the usable paths that have room, the one with the least SRTT.
    pub(super) fn fastest_with_room(&self, lent: &mut Lent<'_>) -> Option<PathId> {
        let usable: SmallVec<[PathId; 4]> = lent.peer.usable_paths().collect();
        let mut with_room = usable;
        with_room.retain(|path| self.has_room_on(lent, *path));
        with_room.into_iter().min_by_key(|&p| lent.peer[p].srtt_or_rto())
    }

    /// The first marked chunk that may be sent where it is to go.
    fn plan_retransmission(&self, lent: &mut Lent<'_>) -> Option<Plan> {
        let forces = lent.recovery.forces();
        let forced = |path: PathId| forces || self.share(path).forces();
        let held = lent.is_held();
        lent.decay_idle_paths();
        let may_go = |view: View<'_>, path: PathId| forced(path) || (!held && self.may_send_on(view, path));
        let view = lent.view();
        let mut usable = view.peer.usable_paths().peekable();
        if usable.peek().is_some() && !usable.any(|p| may_go(view, p)) {
            return None;
        }
        drop(usable);
        let mut next = lent.flight.next_marked(None);
        while let Some(tsn) = next {
            let path = self.retransmission_path(lent.view(), tsn)?;
            // one that is given up is abandoned when all before it have gone
            if may_go(lent.view(), path) && !lent.is_given_up(tsn) {
                let forced = forced(path);
                return Some(Plan::Retransmit { tsn, path, forced });
            }
            next = lent.flight.next_marked(Some(tsn.next()));
        }
        None
    }

    /// The path that the scheduler chooses, of those whose cwnd has room. Where no destination is active, the one that RFC
    /// 9260 section 6.4 and RFC 7829 section 3.2 leave.
    fn next_path(&mut self, lent: &mut Lent<'_>, len: u32) -> Option<PathId> {
        let usable: SmallVec<[PathId; 4]> = lent.peer.usable_paths().collect();
        if usable.is_empty() {
            let current = lent.peer.current_path();
            return current.filter(|&path| self.has_room_on(lent, path));
        }
        let mut with_room: SmallVec<[bool; 4]> = SmallVec::new();
        for &path in &usable {
            let mut has_room = self.has_room_on(lent, path);
            if has_room && !self.fits_its_share(lent, path, len) {
                has_room = false;
                lent.counters.shares_used_up += 1;
            }
            with_room.push(has_room);
        }
        if !with_room.contains(&true) {
            return None;
        }
        let presumed = presumed_round_trip(usable.iter().filter_map(|&path| lent.peer[path].srtt()));
        let candidates: SmallVec<[Candidate; 4]> = usable
            .iter()
            .zip(with_room)
            .map(|(&path, has_room)| candidate(lent.view(), path, presumed, has_room))
            .collect();
        let backlog = Backlog {
            now: lent.now,
            unsent: if self.scheduler.counts_unsent() {
                lent.queue.unsent_bytes() as u64
            } else {
                0
            },
            peer_rwnd: lent.flight.peer_rwnd(),
            outstanding: u64::from(lent.flight.outstanding_bytes()),
            was_blocked: core::mem::take(&mut self.was_blocked),
        };
        let chosen = self.scheduler.choose(&candidates, &backlog);
        if chosen.is_none() {
            lent.counters.waits += 1;
        }
        chosen.and_then(|i| usable.get(i).copied())
    }

    fn has_room_on(&self, lent: &mut Lent<'_>, path: PathId) -> bool {
        if lent.peer.path(path).is_none() {
            return false;
        }
        lent.has_window_after_idle(path) && self.share(path).has_burst()
    }

    /// Whether cwnd and Max.Burst of a path let another packet go.
    fn may_send_on(&self, view: View<'_>, path: PathId) -> bool {
        view.has_window(path) && self.share(path).has_burst()
    }

    /// A new opportunity to send, on every path.
    pub(in crate::sctp) fn open_bursts(&mut self, max_burst: Option<u32>, peer: &Peer) {
        for (path, _) in peer.paths() {
            self.shares.open(path).open_burst(max_burst);
        }
    }

    /// A packet of new data goes out.
    pub(in crate::sctp) fn new_data_goes(&mut self, now: Instant, path: PathId) {
        self.shares.open(path).use_burst();
        self.scheduler.on_sent(now, path.place());
    }

    /// A packet of retransmissions goes out; `was_forced`: it has used up what was forced wherever it goes. What may go on any
    /// path is spent first: if it were left, the next chunk would go beyond cwnd on a path that lost nothing.
    pub(in crate::sctp) fn retransmissions_go(&mut self, path: PathId, was_forced: bool) {
        self.shares.open(path).retransmissions_go(was_forced);
    }
}

fn candidate(view: View<'_>, id: PathId, presumed: Duration, has_room: bool) -> Candidate {
    let path = &view.peer[id];
    Candidate {
        id: id.place(),
        cwnd: path.cwnd(),
        flightsize: view.flight.size_on(id),
        segment: path.segment(),
        srtt: path.srtt().unwrap_or(presumed),
        rttvar: path.rtt().rttvar(),
        has_room,
    }
}

/// That of a path whose round trip was never measured: it counts as fast as the fastest that was, so that it is tried.
fn presumed_round_trip(measured: impl Iterator<Item = Duration>) -> Duration {
    measured.min().unwrap_or(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_counts_as_the_fastest_that_was() {
        let [short, long] = [20, 90].map(Duration::from_millis);
        assert_eq!(presumed_round_trip([long, short].into_iter()), short);
        assert_eq!(presumed_round_trip(core::iter::empty()), Duration::from_secs(1));
    }
}
