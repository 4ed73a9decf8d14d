//! Handovers of a flow whose data takes all paths at once.
//!
//! No moment can be told at which the data moved from one path to the other: it used both as long as there were both.
//! What can be told is that the sender left one of them, which shows when its primary path changes; and the
//! definitions of 000 hold as they do for a path that still drains. Latency, from the last data over the old path to
//! the first over the new one, is the length of the overlap, negative. First and last data are those of a path in the
//! whole run: a sender that comes back to a path it has left has its stays there taken for one.

use super::pauses::Gap;
use segue_capture::handover::Handover;
use segue_capture::rows::{Rows, Spill};
use smallvec::SmallVec;
use std::net::Ipv6Addr;

/// Gaps that begin so long after the last data over a path still belong to its end, ns: what was lost with it may be
/// repaired only later.
const SETTLING_NS: u64 = 1_000_000_000;

/// What is kept of a flow.
#[derive(Debug, Default)]
pub struct Overlaps {
    paths: SmallVec<[PathUse; 2]>,
    /// Old and new primary path, in order.
    left: Rows<(Ipv6Addr, Ipv6Addr)>,
    primary: Option<Ipv6Addr>,
}

#[derive(Debug)]
struct PathUse {
    address: Ipv6Addr,
    first_ns: u64,
    last_ns: u64,
    /// Longest time without new data of the flow that ended with the last data over this path, or began not much later.
    gap_ns: u64,
    lost: u64,
}

impl Overlaps {
    /// Leaves all but the last changes of the primary path in this store.
    pub fn keep_in(&mut self, spill: &Spill) {
        self.left.keep_in(spill);
    }

    /// Has all of them in memory again: the run is over.
    pub fn recall(&mut self) {
        self.left.recall();
    }

    /// New data arrives over a path, and ends a time without any, that before the first not counted.
    pub fn received(&mut self, gap: Gap, address: Ipv6Addr) {
        let now_ns = gap.until.as_nanos();
        let is_first = self.paths.is_empty();
        let began = if is_first { now_ns } else { gap.since.as_nanos() };
        let gap_ns = now_ns - began;
        self.primary.get_or_insert(address);
        for path in self.paths.iter_mut().filter(|p| p.address != address) {
            if began <= path.last_ns + SETTLING_NS {
                path.gap_ns = path.gap_ns.max(gap_ns);
            }
        }
        match self.paths.iter_mut().find(|p| p.address == address) {
            Some(path) => (path.last_ns, path.gap_ns) = (now_ns, gap_ns),
            None => self.paths.push(PathUse {
                address,
                first_ns: now_ns,
                last_ns: now_ns,
                gap_ns,
                lost: 0,
            }),
        }
    }

    /// A data packet is lost because the mobile host is not, or not yet, where it was sent to.
    pub fn lost(&mut self, address: Ipv6Addr) {
        if let Some(path) = self.paths.iter_mut().find(|p| p.address == address) {
            path.lost += 1;
        }
    }

    /// The sender made another path its primary.
    pub fn primary_changed(&mut self, address: Ipv6Addr) {
        if let Some(old) = self.primary.replace(address).filter(|old| *old != address) {
            self.left.push((old, address));
        }
    }

    /// The handovers, in order.
    pub fn finish(&self) -> Vec<Handover> {
        let find = |address: Ipv6Addr| self.paths.iter().find(|p| p.address == address);
        let handover = |(from, to): (Ipv6Addr, Ipv6Addr)| {
            let (old, new) = (find(from)?, find(to)?);
            Some(Handover {
                time_s: new.first_ns as f64 / 1e9,
                from,
                to,
                latency_s: (new.first_ns as f64 - old.last_ns as f64) / 1e9,
                interruption_s: old.gap_ns as f64 / 1e9,
                lost_packets: old.lost,
            })
        };
        self.left.iter().filter_map(handover).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::{Duration, Instant};

    fn path(n: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd, 0, 0, 0, 0, 0, 0, n)
    }

    /// A flow that always has something to send.
    #[derive(Default)]
    struct Busy {
        overlaps: Overlaps,
        last: Option<Instant>,
    }

    impl Busy {
        fn receives(&mut self, ms: u64, address: Ipv6Addr) {
            let until = Instant::ZERO + Duration::from_millis(ms);
            let since = self.last.replace(until).unwrap_or_default();
            self.overlaps.received(Gap { since, until }, address);
        }
    }

    #[test]
    fn a_path_that_is_left_ends_an_overlap() {
        let mut flow = Busy::default();
        for at in 0..100 {
            flow.receives(at * 10, path(1));
            if at >= 40 {
                flow.receives(at * 10 + 5, path(2));
            }
        }
        // 70 ms from what came before that to what comes after it
        for _ in 0..3 {
            flow.overlaps.lost(path(1));
        }
        flow.overlaps.primary_changed(path(2));
        for at in (1065..=2000).step_by(5).chain([2200]) {
            flow.receives(at, path(2));
        }
        let found = flow.overlaps.finish();
        let [handover] = &found[..] else {
            panic!("{:?}", flow.overlaps);
        };
        assert_eq!((handover.from, handover.to), (path(1), path(2)));
        assert!((handover.time_s - 0.405).abs() < 1e-9);
        assert!(
            (handover.latency_s + 0.585).abs() < 1e-9,
            "{}",
            handover.latency_s
        );
        // the gap before 2200 ms begins more than a second after 990 ms
        assert!(
            (handover.interruption_s - 0.070).abs() < 1e-9,
            "{}",
            handover.interruption_s
        );
        assert_eq!(handover.lost_packets, 3);
    }

    #[test]
    fn a_time_in_which_nothing_was_to_come_interrupts_nothing() {
        let mut flow = Busy::default();
        flow.receives(0, path(1));
        flow.receives(10, path(2));
        flow.receives(20, path(1));
        flow.overlaps.primary_changed(path(2));
        // there since 30 s
        flow.last = Some(Instant::ZERO + Duration::from_secs(30));
        flow.receives(30_040, path(2));
        assert_eq!(flow.overlaps.finish()[0].interruption_s, 0.01);
    }

    #[test]
    fn nothing_is_handed_over_while_both_paths_last_or_where_the_other_carries_nothing() {
        let mut flow = Busy::default();
        flow.receives(0, path(1));
        flow.receives(1, path(2));
        assert_eq!(flow.overlaps.finish(), []);
        flow.overlaps.primary_changed(path(3));
        assert_eq!(flow.overlaps.finish(), []);
    }
}
