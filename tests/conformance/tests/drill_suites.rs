//! The suites that others wrote: every script passes, or is listed with a reason in `judges.toml`.

use segue_conformance::drill::files;
use segue_conformance::drill::play::Settings;
use segue_conformance::drill::suite::{SUITES, document, judge, reasons, unexplained};
use segue_conformance::drill::verdict::Verdict;
use std::path::PathBuf;

/// The folder of the suites, or `None` with the reason printed.
fn folder() -> Option<PathBuf> {
    files::judges()
        .inspect_err(|reason| eprintln!("skipped: {reason}"))
        .ok()
}

#[test]
fn every_script_passes_or_is_explained() {
    let Some(folder) = folder() else { return };
    let mut all = Vec::new();
    for suite in SUITES {
        let judged = judge(&folder, suite, &Settings::default()).expect("a suite that can be played");
        let passed = judged.iter().filter(|s| s.played.verdict == Verdict::Passed);
        eprintln!("{}: {} of {} pass", suite.folder, passed.count(), judged.len());
        all.extend(judged);
    }
    let unexplained = unexplained(&all, &reasons());
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
}

#[test]
fn the_table_in_the_documentation_is_the_players() {
    let Some(folder) = folder() else { return };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/judges.md");
    let written = files::read(&path).expect("docs/judges.md");
    let played = document(&folder, &Settings::default()).expect("suites that can be played");
    assert!(
        written == played.text && played.unexplained.is_empty(),
        "docs/judges.md is old: cargo run -p segue-conformance --bin drill -- --table docs/judges.md {}",
        folder.display()
    );
}
