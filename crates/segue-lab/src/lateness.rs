//! How late packets were: delivered after they were due, or read after they had waited for whoever carries them.

use segue_live::Standstill;
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

/// Of so many late packets it is known when they were.
const MOST_REMEMBERED: usize = 100_000;

/// Lateness of all packets so far.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    all: Classes,
    /// Until when, and how much, those were that were late.
    remembered: Vec<(Instant, Duration)>,
    longest_stall: Duration,
    missed: bool,
}

/// Lateness of packets in classes of 10 us.
#[derive(Clone, Debug)]
struct Classes {
    classes: Vec<u64>,
    packets: u64,
    late: u64,
    most: Duration,
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
    /// What of it was the machine's, where that was looked at.
    pub machine: Option<MachineReport>,
}

/// Times in which a processor stood still, and how late packets were but for these: of each, its lateness less the time in which one
/// stood still while it waited. Times in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct MachineReport {
    /// So many, of more than half a millisecond; of several processors at once, once.
    pub standstills: usize,
    /// The longest.
    pub longest_ms: f64,
    /// All of them.
    pub total_ms: f64,
    /// Share of packets that was more than 1 ms late but for these.
    pub share_late: f64,
    /// But for these, 99 % were no later.
    pub p99_ms: f64,
    /// But for these, 99.9 % were no later.
    pub p999_ms: f64,
    /// But for these, the latest.
    pub most_ms: f64,
}

impl Default for Classes {
    fn default() -> Self {
        Self {
            classes: vec![0; CLASSES],
            packets: 0,
            late: 0,
            most: Duration::ZERO,
        }
    }
}

impl Classes {
    fn add(&mut self, late: Duration) {
        self.classes[class_of(late)] += 1;
        self.packets += 1;
        self.late += u64::from(late > LATE);
        self.most = self.most.max(late);
    }

    fn share_late(&self) -> f64 {
        self.late as f64 / self.packets.max(1) as f64
    }

    fn most_ms(&self) -> f64 {
        self.most.as_secs_f64() * 1e3
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

    /// The same packets, these late ones less late.
    fn with(&self, changed: impl Iterator<Item = (Duration, Duration)>) -> Self {
        let mut new = Self {
            most: Duration::ZERO,
            ..self.clone()
        };
        for (was, is) in changed {
            new.classes[class_of(was)] -= 1;
            new.packets -= 1;
            new.late -= 1;
            new.add(is);
        }
        let latest = new.classes.iter().rposition(|count| *count > 0);
        let end = latest.map_or(0, |class| (class as u64 + 1) * CLASS_NS);
        // of those that stayed as they were only the class is known
        new.most = match latest {
            Some(class) if class + 1 == CLASSES => self.most,
            _ => Duration::from_nanos(end).min(self.most),
        };
        new
    }
}

fn class_of(late: Duration) -> usize {
    ((late.as_nanos() / CLASS_NS) as usize).min(CLASSES - 1)
}

impl Lateness {
    /// A packet was delivered at this time, so much after it was due, or read after it had waited so long.
    pub fn note(&mut self, now: Instant, late: Duration) {
        self.all.add(late);
        if late > LATE && self.remembered.len() < MOST_REMEMBERED {
            self.remembered.push((now, late));
        }
    }

    /// A packet was read after it had waited so long, at most: it counts if that is late. On time it counts once it is delivered.
    pub fn note_wait(&mut self, now: Instant, waited: Duration) {
        if waited > LATE {
            self.note(now, waited);
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

    /// All in all. `standstills` are those of the processors meanwhile, in the time of the run, if they were looked at.
    #[must_use]
    pub fn report(&self, standstills: Option<&[Standstill]>) -> LatenessReport {
        let share_late = self.all.share_late();
        LatenessReport {
            packets: self.all.packets,
            share_late,
            median_ms: self.all.quantile_ms(0.5),
            p99_ms: self.all.quantile_ms(0.99),
            p999_ms: self.all.quantile_ms(0.999),
            most_ms: self.all.most_ms(),
            longest_stall_s: self.longest_stall.as_secs_f64(),
            too_late: share_late > MOST_LATE || self.all.most > LONGEST_WAIT || self.missed,
            machine: standstills.map(|standstills| self.of_machine(standstills)),
        }
    }

    fn of_machine(&self, standstills: &[Standstill]) -> MachineReport {
        let stood = united(standstills);
        let changed = self.remembered.iter().map(|&(until, late)| {
            let due = Instant::from_nanos(until.as_nanos().saturating_sub(late.as_nanos()));
            (late, late.saturating_sub(within(&stood, due, until)))
        });
        let own = self.all.with(changed);
        let lengths = stood.iter().map(|s| s.until.since(s.from));
        let total = lengths.clone().fold(Duration::ZERO, |sum, length| sum + length);
        MachineReport {
            standstills: stood.len(),
            longest_ms: lengths.max().unwrap_or_default().as_secs_f64() * 1e3,
            total_ms: total.as_secs_f64() * 1e3,
            share_late: own.share_late(),
            p99_ms: own.quantile_ms(0.99),
            p999_ms: own.quantile_ms(0.999),
            most_ms: own.most_ms(),
        }
    }
}

/// The times in which any of them lasted, one after the other.
fn united(standstills: &[Standstill]) -> Vec<Standstill> {
    let mut sorted = standstills.to_vec();
    sorted.sort_by_key(|s| s.from);
    let mut united: Vec<Standstill> = Vec::new();
    for next in sorted {
        match united.last_mut() {
            Some(last) if next.from <= last.until => last.until = last.until.max(next.until),
            _ => united.push(next),
        }
    }
    united
}

/// How much of the time from `from` to `until` is in these, which are one after the other.
fn within(stood: &[Standstill], from: Instant, until: Instant) -> Duration {
    let first = stood.partition_point(|s| s.until <= from);
    let those = stood[first..].iter().take_while(|s| s.from < until);
    those
        .map(|s| s.until.min(until).since(s.from.max(from)))
        .fold(Duration::ZERO, |sum, part| sum + part)
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
            lateness.note(at(0), Duration::from_micros(us));
        }
        let report = lateness.report(None);
        assert_eq!((report.packets, report.share_late), (1000, 0.0));
        assert!((report.median_ms - 0.5).abs() < 0.011, "{report:?}");
        assert!((report.p99_ms - 0.99).abs() < 0.011, "{report:?}");
        assert!((report.most_ms - 1.0).abs() < 1e-9 && !report.too_late);
    }

    #[test]
    fn one_late_packet_in_fifty_is_too_many() {
        let mut lateness = Lateness::default();
        for number in 0..50 {
            lateness.note(at(0), Duration::from_millis(if number == 0 { 900 } else { 0 }));
        }
        let report = lateness.report(None);
        assert!(report.too_late);
        assert_eq!(
            (report.share_late, report.most_ms, report.p999_ms),
            (0.02, 900.0, 900.0)
        );
        assert!(report.median_ms <= 0.01);
    }

    #[test]
    fn a_run_without_packets_was_not_late() {
        assert!(!Lateness::default().report(None).too_late);
    }
    #[test]
    fn one_packet_of_many_that_waited_longer_than_50_ms_is_too_late() {
        let mut lateness = Lateness::default();
        for _ in 0..10_000 {
            lateness.note(at(0), Duration::ZERO);
        }
        lateness.note_wait(at(0), Duration::from_millis(50));
        assert!(!lateness.report(None).too_late);
        lateness.note_wait(at(0), Duration::from_millis(51));
        let report = lateness.report(None);
        assert!(report.too_late && report.share_late < 0.001, "{report:?}");
    }

    #[test]
    fn what_waited_less_than_a_millisecond_counts_once_it_is_delivered() {
        let mut lateness = Lateness::default();
        lateness.note_wait(at(0), Duration::from_millis(1));
        assert_eq!(lateness.report(None).packets, 0);
    }

    #[test]
    fn a_stall_in_which_nothing_waited_is_said_and_no_more() {
        let mut lateness = Lateness::default();
        lateness.note_stall(Duration::from_millis(300));
        lateness.note_stall(Duration::from_millis(200));
        let report = lateness.report(None);
        assert!(!report.too_late);
        assert!((report.longest_stall_s - 0.3).abs() < 1e-9);
    }

    #[test]
    fn a_run_that_was_over_before_it_began_is_too_late() {
        let mut lateness = Lateness::default();
        lateness.note_missed();
        assert!(lateness.report(None).too_late);
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn what_a_processor_stood_still_for_is_the_machines() {
        let ms = Duration::from_millis;
        let mut lateness = Lateness::default();
        for _ in 0..997 {
            lateness.note(at(0), Duration::ZERO);
        }
        // due at 100, 104 and 200 ms
        lateness.note(at(110), ms(10));
        lateness.note(at(111), ms(7));
        lateness.note(at(203), ms(3));
        // one processor after the other, and one at a time when nothing was late
        let stood = [(105, 110), (101, 106), (300, 320)].map(|(from, until)| Standstill {
            from: at(from),
            until: at(until),
        });
        let report = lateness.report(Some(&stood));
        assert_eq!((report.share_late, report.p999_ms), (0.003, 7.01));
        let machine = report.machine.unwrap();
        assert_eq!(
            (machine.standstills, machine.longest_ms, machine.total_ms),
            (2, 20.0, 29.0)
        );
        // 10 - 9, 7 - 6 and 3 - 0
        assert_eq!(machine.share_late, 0.001);
        assert_eq!(machine.p999_ms, 1.01);
        assert!((machine.most_ms - 3.01).abs() < 1e-9, "{machine:?}");
        let none = lateness.report(Some(&[])).machine.unwrap();
        assert_eq!((none.share_late, none.p999_ms, none.total_ms), (0.003, 7.01, 0.0));
        assert_eq!(lateness.report(None).machine, None);
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
