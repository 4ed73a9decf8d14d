//! Handovers of a flow whose data takes all paths at once.
//!
//! No moment can be told at which the data moved from one path to the other: it used both as long as there were both.
//! What can be told is that the sender left one of them, which shows when its primary path changes; and the
//! definitions of 000 hold as they do for a path that still drains. Latency, from the last data over the old path to
//! the first over the new one, is the length of the overlap, negative. First and last data are those of a stay: a path that was
//! left begins another with the first data over it after the sender made it its primary again, or after a second of silence on
//! it, whichever comes first.

use super::pauses::Gap;
use segue_capture::handover::Handover;
use segue_capture::rows::{Row, Rows, Spill};
use smallvec::SmallVec;
use std::net::Ipv6Addr;

/// Gaps that begin so long after the last data over a path still belong to its end, ns: what was lost with it may be
/// repaired only later.
const SETTLING_NS: u64 = 1_000_000_000;

/// What is kept of a flow.
#[derive(Debug, Default)]
pub struct Overlaps {
    /// The stays that are going on, or have not been followed by another on their path.
    stays: SmallVec<[Stay; 2]>,
    /// Changes of the primary path, in order.
    changes: Rows<Change>,
    /// Paths of which the next data is the first of a stay, each with the number of the change to it.
    awaited: SmallVec<[(Ipv6Addr, usize); 2]>,
    primary: Option<Ipv6Addr>,
}

/// The time in which data came over a path.
#[derive(Clone, Copy, Debug)]
struct Stay {
    address: Ipv6Addr,
    first_ns: u64,
    end: End,
    /// The number of the change by which the sender left the path.
    left: Option<usize>,
}

/// How a stay ended.
#[derive(Clone, Copy, PartialEq, Debug)]
struct End {
    /// When the last data came over the path.
    last_ns: u64,
    /// Longest time without new data of the flow that ended with that, or began not much later.
    gap_ns: u64,
    lost: u64,
}

/// The sender made another path its primary.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Change {
    from: Ipv6Addr,
    to: Ipv6Addr,
    /// When the first data of the stay on the new path came.
    first_ns: Option<u64>,
    /// How the stay on the old path ended, once there is another on it.
    end: Option<End>,
}

impl Row for End {
    const BYTES: usize = 3 * 8;

    fn put(self, to: &mut Vec<u8>) {
        for value in [self.last_ns, self.gap_ns, self.lost] {
            value.put(to);
        }
    }

    fn read(from: &mut &[u8]) -> Self {
        Self {
            last_ns: Row::read(from),
            gap_ns: Row::read(from),
            lost: Row::read(from),
        }
    }
}

impl Row for Change {
    const BYTES: usize = 2 * 16 + 9 + 1 + End::BYTES;

    fn put(self, to: &mut Vec<u8>) {
        self.from.put(to);
        self.to.put(to);
        self.first_ns.put(to);
        self.end.put(to);
    }

    fn read(from: &mut &[u8]) -> Self {
        Self {
            from: Row::read(from),
            to: Row::read(from),
            first_ns: Row::read(from),
            end: Row::read(from),
        }
    }
}

impl Overlaps {
    /// Leaves all but the last changes of the primary path in this store.
    pub fn keep_in(&mut self, spill: &Spill) {
        self.changes.keep_in(spill);
    }

    /// Has all of them in memory again: the run is over.
    pub fn recall(&mut self) {
        self.changes.recall();
    }

    /// New data arrives over a path, and ends a time without any, that before the first not counted.
    pub fn received(&mut self, gap: Gap, address: Ipv6Addr) {
        let now_ns = gap.until.as_nanos();
        let is_first = self.stays.is_empty();
        let began = if is_first { now_ns } else { gap.since.as_nanos() };
        let gap_ns = now_ns - began;
        self.primary.get_or_insert(address);
        for stay in self.stays.iter_mut().filter(|s| s.address != address) {
            if began <= stay.end.last_ns + SETTLING_NS {
                stay.end.gap_ns = stay.end.gap_ns.max(gap_ns);
            }
        }
        let end = End {
            last_ns: now_ns,
            gap_ns,
            lost: 0,
        };
        let awaited = self.awaited.iter().position(|(path, _)| *path == address);
        let begun = Stay {
            address,
            first_ns: now_ns,
            end,
            left: None,
        };
        match self.stays.iter_mut().find(|s| s.address == address) {
            Some(stay) => match stay.left {
                Some(number) if awaited.is_some() || now_ns > stay.end.last_ns + SETTLING_NS => {
                    let end = stay.end;
                    self.changes.update(number, |change| change.end = Some(end));
                    *stay = begun;
                }
                _ => (stay.end.last_ns, stay.end.gap_ns) = (now_ns, gap_ns),
            },
            None => self.stays.push(begun),
        }
        if let Some(at) = awaited {
            let (_, number) = self.awaited.remove(at);
            self.changes
                .update(number, |change| change.first_ns = Some(now_ns));
        }
    }

    /// A data packet is lost because the mobile host is not, or not yet, where it was sent to.
    pub fn lost(&mut self, address: Ipv6Addr) {
        if let Some(stay) = self.stay_mut(address) {
            stay.end.lost += 1;
        }
    }

    /// The sender made another path its primary.
    pub fn primary_changed(&mut self, address: Ipv6Addr) {
        let Some(from) = self.primary.replace(address).filter(|old| *old != address) else {
            return;
        };
        let number = self.changes.len();
        self.awaited.retain(|(path, _)| *path != from);
        if let Some(stay) = self.stay_mut(from) {
            stay.left.get_or_insert(number);
        }
        let stay = self.stay_mut(address).filter(|stay| stay.left.is_none());
        let first_ns = stay.map(|stay| stay.first_ns);
        if first_ns.is_none() {
            self.awaited.push((address, number));
        }
        self.changes.push(Change {
            from,
            to: address,
            first_ns,
            end: None,
        });
    }

    fn stay_mut(&mut self, address: Ipv6Addr) -> Option<&mut Stay> {
        self.stays.iter_mut().find(|s| s.address == address)
    }

    /// The handovers, in order.
    pub fn finish(&self) -> Vec<Handover> {
        let handover = |(number, change): (usize, Change)| {
            let going_on = self.stays.iter().find(|s| s.left == Some(number));
            let end = change.end.or(going_on.map(|stay| stay.end))?;
            let first_ns = change.first_ns?;
            Some(Handover {
                time_s: first_ns as f64 / 1e9,
                from: change.from,
                to: change.to,
                latency_s: (first_ns as f64 - end.last_ns as f64) / 1e9,
                interruption_s: end.gap_ns as f64 / 1e9,
                lost_packets: end.lost,
            })
        };
        self.changes.iter().enumerate().filter_map(handover).collect()
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
    fn a_path_that_is_used_again_has_a_stay_of_its_own() {
        let mut flow = Busy::default();
        let both = |flow: &mut Busy, from: u64, to: u64, paths: &[u16]| {
            for ms in (from..to).step_by(10) {
                for path_number in paths {
                    flow.receives(ms + u64::from(*path_number), path(*path_number));
                }
            }
        };
        // from the first path to the second and back, with two overlaps, and losses at each end
        both(&mut flow, 0, 1000, &[1]);
        both(&mut flow, 1000, 2000, &[1, 2]);
        flow.overlaps.primary_changed(path(2));
        flow.overlaps.lost(path(1));
        both(&mut flow, 2000, 9000, &[2]);
        both(&mut flow, 9000, 9500, &[1, 2]);
        flow.overlaps.primary_changed(path(1));
        flow.overlaps.lost(path(2));
        flow.overlaps.lost(path(2));
        both(&mut flow, 9500, 20_000, &[1]);
        let found = flow.overlaps.finish();
        let rows: Vec<_> = found
            .iter()
            .map(|h| {
                (
                    h.from,
                    h.to,
                    h.time_s,
                    (h.latency_s * 1e3).round(),
                    h.lost_packets,
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                (path(1), path(2), 1.002, -989.0, 1),
                (path(2), path(1), 9.001, -491.0, 2)
            ]
        );
    }

    #[test]
    fn a_path_that_becomes_the_primary_again_while_it_still_drains_begins_anew_there() {
        let mut flow = Busy::default();
        flow.receives(0, path(1));
        flow.receives(10, path(2));
        flow.receives(20, path(1));
        flow.overlaps.primary_changed(path(2));
        flow.receives(30, path(1));
        flow.receives(40, path(2));
        flow.overlaps.primary_changed(path(1));
        flow.receives(50, path(1));
        flow.receives(60, path(2));
        let found = flow.overlaps.finish();
        let rows: Vec<_> = found
            .iter()
            .map(|h| (h.from, h.time_s, (h.latency_s * 1e3).round()))
            .collect();
        assert_eq!(rows, [(path(1), 0.01, -20.0), (path(2), 0.05, -10.0)]);
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
