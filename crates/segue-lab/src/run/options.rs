//! The command line of `segue-lab run`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct RunCommand {
    /// The scenario: a file as for `segue run`
    #[arg(value_name = "FILE.toml")]
    pub scenario: PathBuf,
    /// Override a key, as in --set l2.latency='200 ms'; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Seed of all that is random about the network; the scenario's if left out
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print everything as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where captures and the output of programs go; a new folder for temporary files if left out
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run the simulator on the same file too, and print both
    #[arg(long)]
    pub predict: bool,
    /// Write a report in one file, which `segue lab run` makes of what --record writes
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write what a report is made of: document.json, tables.jsonl and scenario.toml
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// What has to be so, as in --assert "interruption < 50 ms"; may be repeated
    #[arg(long = "assert", value_name = "CONDITION")]
    pub asserts: Vec<String>,
    /// Write the conditions, the programs and the emulation as test cases of a JUnit file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected KEY=VALUE, as in l2.latency='200 ms'".to_owned()),
    }
}
