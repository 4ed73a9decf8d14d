//! What programs of ours read, or a proxy gave to others, and when: figures of what reached somebody, whatever carried it.

use super::directory::Directory;
use super::plan::{Receiver, server_port};
use crate::app::Reads;
use segue_proto::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A gap that is shorter is not listed, and neither is one that is no longer than the time between two messages.
const LEAST_GAP_NS: u64 = 1_000_000;

/// What an application's receiver got. Times are seconds of the run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Received {
    application: usize,
    host: String,
    bytes: u64,
    /// Nothing where nobody has looked: of a program of others.
    wrong_bytes: Option<u64>,
    /// When the first data was read.
    begin_s: Option<f64>,
    /// When the last was.
    end_s: Option<f64>,
    bytes_by_second: Vec<u64>,
    /// Times without data between two reads, as beginning and end: those that are longer than the time between two messages.
    gaps_s: Vec<[f64; 2]>,
    /// Why the connection ended, if nobody wanted it to.
    failed: Option<String>,
}

/// The line that `segue-lab app` ends with.
#[derive(Deserialize)]
struct Said {
    wrong_bytes: Option<u64>,
    failed: Option<String>,
    reads: Vec<[u64; 3]>,
}

/// Of each receiver that has said it; of a program of others, what a proxy has `given` it, by host and port.
pub(super) fn received(
    directory: &Directory,
    receivers: &[Receiver],
    begin: Instant,
    given: &BTreeMap<(u32, u16), Reads>,
) -> Vec<Received> {
    let of = |receiver: &Receiver| match &receiver.output {
        Some(output) => {
            let text = directory.read(output).ok()?;
            let said = text.lines().find_map(|line| serde_json::from_str(line).ok())?;
            Some(account(receiver, &said, begin.as_nanos()))
        }
        None => {
            let reads = given.get(&(receiver.host.0, server_port(receiver.application)))?;
            let said = Said {
                wrong_bytes: None,
                failed: None,
                reads: reads.in_numbers(),
            };
            // these are times of the run
            Some(account(receiver, &said, 0))
        }
    };
    receivers.iter().filter_map(of).collect()
}

fn account(receiver: &Receiver, said: &Said, begin_ns: u64) -> Received {
    let seconds = |ns: u64| (i128::from(ns) - i128::from(begin_ns)) as f64 / 1e9;
    let least = receiver.pacing.as_nanos().max(LEAST_GAP_NS);
    let mut by_second = Vec::new();
    for [_, last, bytes] in &said.reads {
        let second = (last.saturating_sub(begin_ns) / 1_000_000_000) as usize;
        if by_second.len() <= second {
            by_second.resize(second + 1, 0);
        }
        by_second[second] += bytes;
    }
    Received {
        application: receiver.application,
        host: receiver.host.1.clone(),
        bytes: said.reads.iter().map(|burst| burst[2]).sum(),
        wrong_bytes: said.wrong_bytes,
        begin_s: said.reads.first().map(|burst| seconds(burst[0])),
        end_s: said.reads.last().map(|burst| seconds(burst[1])),
        bytes_by_second: by_second,
        gaps_s: said
            .reads
            .windows(2)
            .filter(|pair| pair[1][0].saturating_sub(pair[0][1]) > least)
            .map(|pair| [seconds(pair[0][1]), seconds(pair[1][0])])
            .collect(),
        failed: said.failed.clone(),
    }
}

impl Received {
    pub(super) fn describe(&self) -> String {
        let longest = self
            .gaps_s
            .iter()
            .max_by(|a, b| (a[1] - a[0]).total_cmp(&(b[1] - b[0])));
        let gap = longest.map_or_else(
            || "none without".to_owned(),
            |[from, to]| format!("{:.1} ms without from {from:.3} s on at most", (to - from) * 1e3),
        );
        let last = self.end_s.map_or_else(|| "-".to_owned(), |s| format!("{s:.3} s"));
        format!(
            "{} at {}: {} B read, {gap}, the last at {last}",
            self.application, self.host, self.bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::Duration;

    #[test]
    fn gaps_longer_than_the_pacing_are_listed_in_seconds_of_the_run() {
        let receiver = Receiver {
            application: 3,
            host: (0, "cn".to_owned()),
            output: Some("app3-server.out".to_owned()),
            pacing: Duration::from_millis(50),
        };
        let ms = |ms: u64| 7_000_000_000 + ms * 1_000_000;
        let said = Said {
            wrong_bytes: Some(0),
            failed: None,
            reads: vec![
                [ms(900), ms(901), 100],
                [ms(951), ms(951), 100],
                [ms(1251), ms(1252), 200],
            ],
        };
        let account = account(&receiver, &said, 7_000_000_000);
        assert_eq!(account.bytes_by_second, [200, 200]);
        assert_eq!(account.gaps_s, [[0.951, 1.251]]);
        assert_eq!((account.begin_s, account.end_s), (Some(0.9), Some(1.252)));
        assert_eq!(account.bytes, 400);
    }
}
