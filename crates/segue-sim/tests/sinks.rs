//! What a run records goes to its sink in pieces, and the run ends where that cannot be.

use segue_sim::output::Trace;
use segue_sim::sink::Memory;
use segue_sim::{RunError, RunOptions, Scenario, Sink, SinkError, run, run_into};

const BULK: &str = include_str!("../../../scenarios/bench/bulk.toml");

/// Counts what it is given, and refuses what comes after `takes` pieces.
#[derive(Default)]
struct Counting {
    memory: Memory,
    longest_capture: usize,
    most_rows: usize,
    pieces: usize,
    takes: Option<usize>,
}

impl Counting {
    fn count(&mut self) -> Result<(), SinkError> {
        self.pieces += 1;
        if self.takes.is_some_and(|takes| self.pieces > takes) {
            return Err(SinkError("cn.pcapng: No space left on device".to_owned()));
        }
        Ok(())
    }
}

impl Sink for Counting {
    fn capture(&mut self, file: &str, bytes: &[u8]) -> Result<(), SinkError> {
        self.count()?;
        self.longest_capture = self.longest_capture.max(bytes.len());
        self.memory.capture(file, bytes)
    }

    fn rows(&mut self, rows: Trace) -> Result<(), SinkError> {
        self.count()?;
        self.most_rows = self.most_rows.max(rows.packets.time_ns.len());
        self.memory.rows(rows)
    }
}

fn lasting(duration: &str) -> Scenario {
    let set = [("duration".to_owned(), duration.to_owned())];
    Scenario::from_toml(BULK, "bulk.toml", &set).unwrap()
}

const RECORDS: RunOptions = RunOptions {
    seed: None,
    trace: true,
    pcap: true,
};

#[test]
fn captures_and_tables_come_in_pieces_that_do_not_grow_with_the_run() {
    let scenario = lasting("5 s");
    let mut sink = Counting::default();
    let output = run_into(&scenario, RECORDS, None, &mut sink).unwrap();
    assert!(output.captures.is_empty() && output.trace.is_none());
    let whole = run(&scenario, RECORDS).unwrap();
    let total: usize = whole.captures.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(total > 40 << 20, "{total} B are no test");
    assert!(
        sink.longest_capture < 8 << 20,
        "{} B at once",
        sink.longest_capture
    );
    let (pieces, at_once) = (sink.memory.trace.unwrap(), whole.trace.unwrap());
    let total = at_once.packets.time_ns.len();
    assert!(total > 100_000, "{total} rows are no test");
    assert!(sink.most_rows < 80_000, "{} rows at once", sink.most_rows);
    // the same bytes and rows, however they come
    assert_eq!(sink.memory.captures, whole.captures);
    assert_eq!(format!("{:?}", pieces.packets), format!("{:?}", at_once.packets));
    assert_eq!(pieces.windows.cwnd_bytes, at_once.windows.cwnd_bytes);
    let parsed = segue_capture::pcapng::PcapngFile::parse(&whole.captures[0].1).unwrap();
    assert!(!parsed.packets.is_empty());
}

#[test]
fn a_run_ends_where_its_sink_takes_no_more() {
    let scenario = lasting("1000 s");
    let mut sink = Counting {
        takes: Some(3),
        ..Counting::default()
    };
    let refused = run_into(&scenario, RECORDS, None, &mut sink).unwrap_err();
    let line = "cn.pcapng: No space left on device";
    assert_eq!(refused, RunError::Sink(SinkError(line.to_owned())));
    assert_eq!(refused.to_string(), line);
    assert_eq!(sink.pieces, 4, "nothing was offered after the refusal");
}

#[test]
fn cells_keep_their_names_when_the_first_rows_are_gone() {
    let text = include_str!("../../../scenarios/papers/sigma.toml");
    let scenario = Scenario::from_toml(text, "sigma.toml", &[("duration".to_owned(), "300 s".to_owned())]);
    let mut sink = Counting::default();
    let records = RunOptions {
        pcap: false,
        ..RECORDS
    };
    run_into(&scenario.unwrap(), records, None, &mut sink).unwrap();
    assert!(sink.pieces > 1, "one piece is no test");
    let trace = sink.memory.trace.unwrap();
    let named = trace.signalling.event.iter().zip(&trace.signalling.detail);
    let decided: Vec<_> = named.filter(|(event, _)| *event == "decision-point").collect();
    assert!(decided.len() > 6);
    for (_, detail) in decided {
        let (from, to) = detail.split_once(" to ").unwrap();
        assert!(
            trace.cells.iter().any(|cell| cell.name == from)
                && trace.cells.iter().any(|cell| cell.name == to)
        );
    }
}
