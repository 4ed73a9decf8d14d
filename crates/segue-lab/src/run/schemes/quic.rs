//! QUIC (RFC 9000): the built-in applications as programs over aioquic, `python/segue/programs/quic.py`. An optional extra of the
//! Python package (`segue[quic]`).

use segue_sim::scenario::Scenario;
use std::process::{Command, Stdio};

/// The interpreter that has it, where `python3` has not.
const VARIABLE: &str = "SEGUE_PYTHON";
const MODULE: &str = "segue.programs.quic";

/// What our own programs are in its place.
pub(super) fn program() -> Vec<String> {
    vec![interpreter(), "-m".to_owned(), MODULE.to_owned()]
}

fn interpreter() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| "python3".to_owned())
}

/// What is not installed; or a program of somebody else's, which would not go over it.
pub(super) fn missing(scenario: &Scenario) -> Option<(String, String)> {
    let applications = scenario.file().application.iter();
    if let Some(number) = applications.into_iter().position(|a| !a.command.is_empty()) {
        let why = "with this scheme the lab runs programs of its own, over QUIC: expected no command";
        return Some((format!("application[{number}].command"), why.to_owned()));
    }
    let has_it = Command::new(interpreter())
        .args(["-c", &format!("import {MODULE}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    (!has_it).then(|| {
        let why = format!(
            "`{}` has no segue with aioquic: expected `pip install aioquic`, or ${VARIABLE} to name a Python that has",
            interpreter()
        );
        ("scheme".to_owned(), why)
    })
}
