//! How late packets were: delivered after they were due, or read after they had waited for whoever carries them.

use segue_proto::{Duration, Instant};
use serde::Serialize;

/// Width of a class.
const CLASS_NS: u64 = 10_000;
/// Number of classes; what is later than all of them is in the last.
const CLASSES: usize = 20_000;
/// A packet that is later than this counts as late.
const LATE: Duration = Duration::from_millis(1);
/// Share of late packets from which a run says nothing of the network any more.
const MOST_LATE: f64 = 0.01;
/// What waited longer shows an interruption that is the machine's: handovers of the lab are of this size.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Lateness of all packets so far, in classes of 10 us.
#[derive(Clone, Debug)]
pub struct Lateness {
    classes: Vec<u64>,
    packets: u64,
    late: u64,
    most: Duration,
    longest_stall: Duration,
    missed: bool,
}

/// What there is to say of it; times in milliseconds, each the upper end of its class.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LatenessReport {
    /// Packets delivered, and those that were read late.
    pub packets: u64,
    /// Share of them that was more than 1 ms late.
    pub share_late: f64,
    /// Half of them were no later than this.
    pub median_ms: f64,
    /// 99 % were no later.
    pub p99_ms: f64,
    /// 99.9 % were no later.
    pub p999_ms: f64,
    /// The latest.
    pub most_ms: f64,
    /// The longest time that the loop which carries them stood still, in seconds.
    pub longest_stall_s: f64,
    /// So many were late, or one so much (50 ms), that the figures are the machine's, not the network's.
    pub too_late: bool,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            classes: vec![0; CLASSES],
            packets: 0,
            late: 0,
            most: Duration::ZERO,
            longest_stall: Duration::ZERO,
            missed: false,
        }
    }
}

impl Lateness {
    /// A packet was delivered so much after it was due, or read after it had waited so long.
    pub fn note(&mut self, late: Duration) {
        let class = (late.as_nanos() / CLASS_NS) as usize;
        self.classes[class.min(CLASSES - 1)] += 1;
        self.packets += 1;
        self.late += u64::from(late > LATE);
        self.most = self.most.max(late);
    }

    /// A packet was read after it had waited so long, at most: it counts if that is late. On time it counts once it is delivered.
    pub fn note_wait(&mut self, waited: Duration) {
        if waited > LATE {
            self.note(waited);
        }
    }

    /// The loop stood still for so long, whether or not something waited.
    pub fn note_stall(&mut self, stood: Duration) {
        self.longest_stall = self.longest_stall.max(stood);
    }

    /// The run was over before anything could be carried.
    pub fn note_missed(&mut self) {
        self.missed = true;
    }

    /// All in all.
    #[must_use]
    pub fn report(&self) -> LatenessReport {
        let share_late = self.late as f64 / self.packets.max(1) as f64;
        LatenessReport {
            packets: self.packets,
            share_late,
            median_ms: self.quantile_ms(0.5),
            p99_ms: self.quantile_ms(0.99),
            p999_ms: self.quantile_ms(0.999),
            most_ms: self.most.as_secs_f64() * 1e3,
            longest_stall_s: self.longest_stall.as_secs_f64(),
            too_late: share_late > MOST_LATE || self.most > LONGEST_WAIT || self.missed,
        }
    }

    fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = (share * self.packets as f64).ceil() as u64;
        let mut so_far = 0;
        let class = self.classes.iter().position(|count| {
            so_far += count;
            so_far >= wanted
        });
        let end = class.map_or(0, |class| (class as u64 + 1) * CLASS_NS);
        // of the last class nothing is known but the latest
        let most = self.most.as_nanos();
        let all_known = class.is_some_and(|class| class + 1 < CLASSES);
        (if all_known { end.min(most) } else { most }) as f64 / 1e6
    }
}

/// Whether a loop keeps time. Between two readings of the clock it does little, or waits no longer than it said.
///
/// What is found in a queue may have come just after the queue was last seen empty: it has waited for the longest time that the
/// loop stood still since.
#[derive(Clone, Debug)]
pub struct Pulse {
    /// The next reading is to be no later, but for the little that is done.
    expected: Instant,
    /// The longest that it stood still since the queues were last seen empty.
    behind: Duration,
    /// The longest of that since the queues are being read.
    in_turn: Duration,
}

impl Pulse {
    /// Of a loop that is to begin at this time.
    #[must_use]
    pub const fn new(begin: Instant) -> Self {
        Self {
            expected: begin,
            behind: Duration::ZERO,
            in_turn: Duration::ZERO,
        }
    }

    /// The clock is read: for how long the loop stood still.
    pub fn beat(&mut self, now: Instant) -> Duration {
        let stood = now.since(self.expected);
        self.expected = now;
        if stood > LATE {
            self.behind = self.behind.max(stood);
            self.in_turn = self.in_turn.max(stood);
        }
        stood
    }

    /// From now on it waits, until then at most.
    pub fn waits_until(&mut self, next: Instant) {
        self.expected = self.expected.max(next);
    }

    /// It begins to read the queues.
    pub fn begins_to_read(&mut self) {
        self.in_turn = Duration::ZERO;
    }

    /// All of them are empty. What comes into the first while the last is read has waited since then.
    pub fn has_read_all(&mut self) {
        self.behind = self.in_turn;
    }

    /// How long what is read now may have waited; nothing if that is not late.
    #[must_use]
    pub const fn behind(&self) -> Duration {
        self.behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_quantiles_are_those_of_the_packets() {
        let mut lateness = Lateness::default();
        for us in 1..=1000 {
            lateness.note(Duration::from_micros(us));
        }
        let report = lateness.report();
        assert_eq!((report.packets, report.share_late), (1000, 0.0));
        assert!((report.median_ms - 0.5).abs() < 0.011, "{report:?}");
        assert!((report.p99_ms - 0.99).abs() < 0.011, "{report:?}");
        assert!((report.most_ms - 1.0).abs() < 1e-9 && !report.too_late);
    }

    #[test]
    fn one_late_packet_in_fifty_is_too_many() {
        let mut lateness = Lateness::default();
        for number in 0..50 {
            lateness.note(Duration::from_millis(if number == 0 { 900 } else { 0 }));
        }
        let report = lateness.report();
        assert!(report.too_late);
        assert_eq!(
            (report.share_late, report.most_ms, report.p999_ms),
            (0.02, 900.0, 900.0)
        );
        assert!(report.median_ms <= 0.01);
    }

    #[test]
    fn a_run_without_packets_was_not_late() {
        assert!(!Lateness::default().report().too_late);
    }
    #[test]
    fn one_packet_of_many_that_waited_longer_than_50_ms_is_too_late() {
        let mut lateness = Lateness::default();
        for _ in 0..10_000 {
            lateness.note(Duration::ZERO);
        }
        lateness.note_wait(Duration::from_millis(50));
        assert!(!lateness.report().too_late);
        lateness.note_wait(Duration::from_millis(51));
        let report = lateness.report();
        assert!(report.too_late && report.share_late < 0.001, "{report:?}");
    }

    #[test]
    fn what_waited_less_than_a_millisecond_counts_once_it_is_delivered() {
        let mut lateness = Lateness::default();
        lateness.note_wait(Duration::from_millis(1));
        assert_eq!(lateness.report().packets, 0);
    }

    #[test]
    fn a_stall_in_which_nothing_waited_is_said_and_no_more() {
        let mut lateness = Lateness::default();
        lateness.note_stall(Duration::from_millis(300));
        lateness.note_stall(Duration::from_millis(200));
        let report = lateness.report();
        assert!(!report.too_late);
        assert!((report.longest_stall_s - 0.3).abs() < 1e-9);
    }

    #[test]
    fn a_run_that_was_over_before_it_began_is_too_late() {
        let mut lateness = Lateness::default();
        lateness.note_missed();
        assert!(lateness.report().too_late);
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_loop_that_wakes_when_it_said_is_not_behind() {
        let mut pulse = Pulse::new(at(0));
        pulse.beat(at(0));
        pulse.waits_until(at(10));
        assert_eq!(pulse.beat(at(4)), Duration::ZERO);
        pulse.waits_until(at(20));
        assert_eq!(pulse.beat(at(21)), Duration::from_millis(1));
        assert_eq!(pulse.behind(), Duration::ZERO);
    }

    #[test]
    fn what_is_read_has_waited_for_the_stall_until_all_queues_were_empty() {
        let mut pulse = Pulse::new(at(0));
        pulse.waits_until(at(10));
        assert_eq!(pulse.beat(at(210)), Duration::from_millis(200));
        pulse.begins_to_read();
        pulse.beat(at(210));
        assert_eq!(pulse.behind(), Duration::from_millis(200));
        // there was more than a turn reads
        pulse.begins_to_read();
        assert_eq!(pulse.behind(), Duration::from_millis(200));
        pulse.has_read_all();
        assert_eq!(pulse.behind(), Duration::ZERO);
    }

    #[test]
    fn a_stall_between_two_queues_is_of_what_is_read_next() {
        let mut pulse = Pulse::new(at(0));
        pulse.beat(at(0));
        pulse.begins_to_read();
        pulse.beat(at(80));
        pulse.has_read_all();
        assert_eq!(pulse.behind(), Duration::from_millis(80));
        pulse.begins_to_read();
        pulse.beat(at(80));
        pulse.has_read_all();
        assert_eq!(pulse.behind(), Duration::ZERO);
    }

    #[test]
    fn a_late_beginning_is_a_stall() {
        assert_eq!(Pulse::new(at(500)).beat(at(700)), Duration::from_millis(200));
    }
}
