//! A thousand seeds: whatever the network and the hosts do, every message is delivered exactly once, in order within its
//! stream and without a wrong byte, or an end reports failure; and nothing stalls while paths are alive.

use segue_conformance::ordeal::{FIRST_MULTIPATH, Report, run, trials_of};
use segue_conformance::renewal;
use std::panic::{UnwindSafe, catch_unwind};

const SEEDS: u64 = 1000;

/// What a seed comes to; a panic is an error.
fn caught<R>(run: impl FnOnce() -> Result<R, String> + UnwindSafe) -> Result<R, String> {
    catch_unwind(run).unwrap_or_else(|panic| {
        Err(panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_default())
    })
}

/// Runs a seed; what it says of a failure is the command that repeats it.
fn ordeal(seed: u64) -> Result<Report, String> {
    caught(|| run(seed)).map_err(|what| {
        format!(
            "seed {seed} ({:?}): {what}\nrepeat with: SEED={seed} cargo test --profile checked --package segue-conformance \
             --test conformance one_seed -- --nocapture",
            trials_of(seed)
        )
    })
}

/// Runs the seeds `from`, `from + step` and so on.
fn every(step: u64, from: u64) -> (Report, u64) {
    all((from..SEEDS).step_by(step as usize))
}

fn all(seeds: impl Iterator<Item = u64>) -> (Report, u64) {
    let (mut sum, mut failed, mut wrong) = (Report::default(), 0, Vec::new());
    for seed in seeds {
        match ordeal(seed) {
            Ok(report) => {
                failed += u64::from(report.failed);
                sum.messages += report.messages;
                sum.packets += report.packets;
                sum.corrupted += report.corrupted;
                sum.moves += report.moves;
                sum.outages += report.outages;
                sum.t3_expiries += report.t3_expiries;
            }
            Err(what) => wrong.push(what),
        }
    }
    let shown = wrong.len().min(5);
    assert!(
        wrong.is_empty(),
        "{} seeds failed\n{}",
        wrong.len(),
        wrong[..shown].join("\n")
    );
    (sum, failed)
}

#[test]
fn steady_links_and_addresses() {
    let (sum, failed) = every(4, 0);
    assert_eq!(failed, 0);
    assert!(
        sum.messages > 10_000 && sum.corrupted > 1000 && sum.t3_expiries > 100,
        "{sum:?}"
    );
}

#[test]
fn hosts_that_move() {
    let (sum, failed) = every(4, 1);
    assert!(failed < 10, "{failed} of 250 associations failed");
    assert!(sum.moves > 1000, "{sum:?}");
}

#[test]
fn links_that_flap() {
    let (sum, failed) = every(4, 2);
    assert!(failed < 50, "{failed} of 250 associations failed");
    assert!(sum.outages > 250, "{sum:?}");
}

#[test]
fn hosts_that_move_and_links_that_flap() {
    let (sum, failed) = every(4, 3);
    assert!(failed < 75, "{failed} of 250 associations failed");
    assert!(sum.moves > 500 && sum.outages > 250, "{sum:?}");
}

/// Concurrent multipath transfer, its parts on and off at random, through all four kinds of trials.
#[test]
fn data_on_all_paths_at_once() {
    let (sum, failed) = all(FIRST_MULTIPATH..FIRST_MULTIPATH + 400);
    assert!(failed < 60, "{failed} of 400 associations failed");
    assert!(
        sum.messages > 10_000 && sum.moves > 500 && sum.outages > 250,
        "{sum:?}"
    );
}

/// Streams and associations that begin anew while messages are given up.
#[test]
fn resets_while_messages_are_given_up() {
    let (mut sum, mut wrong) = (renewal::Report::default(), Vec::new());
    for seed in 0..renewal::SEEDS {
        match caught(|| renewal::run(seed)) {
            Ok(report) => {
                sum.messages += report.messages;
                sum.given_up += report.given_up;
                sum.association_resets += report.association_resets;
                sum.stream_resets += report.stream_resets;
            }
            Err(what) => wrong.push(format!("renewal-{seed:04}: {what}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} seeds failed\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        sum.messages > 10_000
            && sum.given_up > 1000
            && sum.association_resets > 100
            && sum.stream_resets > 100,
        "{sum:?}"
    );
}

/// The seed named by the environment, for the command that a failure prints.
#[test]
fn one_seed() {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(0);
    let report = ordeal(seed).unwrap_or_else(|what| panic!("{what}"));
    assert!(report.packets > 0, "{report:?}");
}
