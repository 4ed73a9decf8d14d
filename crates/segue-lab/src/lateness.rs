//! How late packets were delivered, against when they were due.

use segue_proto::Duration;
use serde::Serialize;

/// Width of a class.
const CLASS_NS: u64 = 10_000;
/// Number of classes; what is later than all of them is in the last.
const CLASSES: usize = 20_000;
/// A packet that is later than this counts as late.
const LATE: Duration = Duration::from_millis(1);
/// Share of late packets from which a run says nothing of the network any more.
const MOST_LATE: f64 = 0.01;

/// Lateness of all packets so far, in classes of 10 us.
#[derive(Clone, Debug)]
pub struct Lateness {
    classes: Vec<u64>,
    packets: u64,
    late: u64,
    most: Duration,
}

/// What there is to say of it; times in milliseconds, each the upper end of its class.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LatenessReport {
    /// Packets delivered.
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
    /// So many were late that the figures are the machine's, not the network's.
    pub too_late: bool,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            classes: vec![0; CLASSES],
            packets: 0,
            late: 0,
            most: Duration::ZERO,
        }
    }
}

impl Lateness {
    /// A packet was delivered so much after it was due.
    pub fn note(&mut self, late: Duration) {
        let class = (late.as_nanos() / CLASS_NS) as usize;
        self.classes[class.min(CLASSES - 1)] += 1;
        self.packets += 1;
        self.late += u64::from(late > LATE);
        self.most = self.most.max(late);
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
            too_late: share_late > MOST_LATE,
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
}
