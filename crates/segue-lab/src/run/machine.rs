//! What a machine does besides the run, and takes of its time.

use crate::text::read_text;
use nix::unistd::{SysconfVar, syncfs, sysconf};
use segue_proto::Duration;
use std::fs::OpenOptions;
use std::path::Path;

/// Has everything written that waits to be, on the file system of this folder: what earlier runs left would be written while this
/// one measures, and a virtual machine whose disk works meanwhile is held up for milliseconds by the machine that it runs on, which
/// counts that work as its own.
///
/// Where it cannot be done, runs are as exact as the disk lets them be.
pub(super) fn settle(folder: &Path) {
    if let Ok(folder) = OpenOptions::new().read(true).open(folder) {
        let _ = syncfs(&folder);
    }
}

/// Processor time, of all processors since the machine was started, that the machine below this virtual one had for others although
/// it was wanted here (`steal` of proc(5)): programs and the kernel stood still. Exact to a tick of 10 ms.
pub(super) fn steal() -> Option<Duration> {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    steal_of(
        &read_text(Path::new("/proc/stat")).ok()?,
        per_second.try_into().ok()?,
    )
}

fn steal_of(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user nice system idle iowait irq softirq steal
    let ticks: u64 = all.split_whitespace().nth(7)?.parse().ok()?;
    Some(Duration::from_nanos(ticks * 1_000_000_000 / ticks_per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_figure_of_all_processors() {
        let stat = "cpu  99686 0 7949 50481 938 1 202 340 5 6\ncpu0 50838 0 2973 25675 106 0 57 164 0 0\n";
        assert_eq!(steal_of(stat, 100), Some(Duration::from_millis(3400)));
        assert_eq!(steal_of("cpu  1 2 3 4 5 6 7\n", 100), None);
        assert_eq!(steal_of("cpu0 1 2 3 4 5 6 7 8\n", 100), None);
    }

    #[test]
    fn steal_of_this_machine_does_not_go_back() {
        let before = steal().unwrap();
        assert!(steal().unwrap() >= before);
    }
}
