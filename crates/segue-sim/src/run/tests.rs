//! That a run is what it would be if its rows had stayed in memory.

use super::conclude;
use crate::sink::Memory;
use crate::{RunOptions, Scenario, build};
use segue_capture::rows::{Spill, Store};
use std::sync::Mutex;

const EACH_SECOND: &str = include_str!("../../../../scenarios/lab/handover-each-second.toml");

#[derive(Debug, Default)]
struct Bytes(Mutex<Vec<u8>>);

impl Store for Bytes {
    fn reserve(&self, bytes: u64) -> u64 {
        let mut all = self.0.lock().unwrap();
        let at = all.len();
        all.resize(at + bytes as usize, 0xff);
        at as u64
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        self.0.lock().unwrap()[at as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), String> {
        bytes.copy_from_slice(&self.0.lock().unwrap()[at as usize..][..bytes.len()]);
        Ok(())
    }
}

/// The document of a run, with so many rows at a time in a store.
fn document(scenario: &Scenario, block: Option<usize>) -> String {
    let mut network = build::network(scenario, 1, &RunOptions::default()).unwrap();
    if let Some(block) = block {
        let spill = Spill::new(Bytes::default(), block);
        network.recorder.connections.keep_in(&spill);
    }
    network.run(None, &mut Memory::default()).unwrap();
    let output = conclude(scenario, 1, network).unwrap();
    serde_json::to_string(&output.metrics).unwrap()
}

#[test]
fn rows_that_were_away_make_the_same_document() {
    let short = [("duration", "30 s")];
    let hard = [("duration", "30 s"), ("scheme", "ilnp-hard")];
    for (text, set) in [
        (include_str!("../../../../scenarios/zigzag.toml"), &[][..]),
        (include_str!("../../../../scenarios/coverage-gap.toml"), &[]),
        (EACH_SECOND, &short),
        (EACH_SECOND, &hard),
        (include_str!("../../../../scenarios/handoff/both-move.toml"), &[]),
        (include_str!("../../../../scenarios/lab/both-ends-move.toml"), &[]),
        (include_str!("../../../../scenarios/lab/sigma-lan.toml"), &[]),
        (include_str!("../../../../scenarios/lab/cmt-lan.toml"), &[]),
    ] {
        let set: Vec<_> = set
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let scenario = Scenario::from_toml(text, "test.toml", &set).unwrap();
        let kept = document(&scenario, None);
        for block in [1, 3] {
            assert!(
                document(&scenario, Some(block)) == kept,
                "{} {set:?}: {block} rows at a time",
                scenario.name()
            );
        }
    }
}
