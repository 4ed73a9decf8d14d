//! Digests of what the SCTP endpoints send, over all seeds and all tests against a scripted peer: see
//! [`segue_conformance::transcript`].

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a tool that reads files and prints"
)]

use clap::Parser;
use segue_conformance::exercise;
use segue_conformance::ordeal::{self, FIRST_MULTIPATH};
use segue_conformance::renewal;
use segue_conformance::transcript::Transcript;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Digests of every packet that the SCTP endpoints send, over all seeds and scripted tests.
#[derive(Parser)]
#[command(name = "digests")]
struct Arguments {
    /// Compare with this file.
    file: PathBuf,
    /// Write the file instead.
    #[arg(long)]
    update: bool,
    /// The folder in which the tests left theirs, run with SEGUE_TRANSCRIPTS naming it.
    #[arg(long)]
    tests: Option<PathBuf>,
    /// Print every packet of a seed instead: `ordeal-17`, `exercise-3`, `renewal-5`.
    #[arg(long)]
    show: Option<String>,
}

/// Seeds of ordeals: a thousand, and those with data on all paths at once.
const ORDEALS: u64 = FIRST_MULTIPATH + 400;

fn play(name: &str, transcript: Transcript) -> Option<Transcript> {
    let (kind, seed) = name.split_once('-')?;
    let seed = seed.parse().ok()?;
    match kind {
        "ordeal" => Some(ordeal::transcribe(seed, transcript)),
        "exercise" => Some(exercise::play(seed, transcript)),
        "renewal" => Some(renewal::transcribe(seed, transcript)),
        _ => None,
    }
}

fn seeds() -> Vec<String> {
    let ordeals = (0..ORDEALS).map(|seed| format!("ordeal-{seed:04}"));
    let exercises = (0..exercise::SEEDS).map(|seed| format!("exercise-{seed:04}"));
    let renewals = (0..renewal::SEEDS).map(|seed| format!("renewal-{seed:04}"));
    ordeals.chain(exercises).chain(renewals).collect()
}

/// Digests of all seeds, on all processors.
fn of_seeds() -> BTreeMap<String, String> {
    let names = seeds();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut own = Vec::new();
        while let Some(name) = names.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            let transcript = play(name, Transcript::default()).unwrap_or_default();
            own.push((name.clone(), transcript.digest()));
        }
        own
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter()
            .flat_map(|thread| thread.join().expect("an endpoint broke an invariant"))
            .collect()
    })
}

/// Digests that the tests left in a folder: a line for each endpoint, in the order in which they ended.
fn of_tests(folder: &Path) -> std::io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path)?;
        for (number, line) in text.lines().enumerate() {
            found.insert(format!("{name}#{number}"), line.to_owned());
        }
    }
    Ok(found)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(name) = &arguments.show {
        let Some(transcript) = play(name, Transcript::in_full()) else {
            eprintln!("{name}: expected ordeal-N, exercise-N or renewal-N");
            return ExitCode::from(2);
        };
        let _ = std::io::stdout().write_all(transcript.lines().as_bytes());
        return ExitCode::SUCCESS;
    }
    let mut now = of_seeds();
    if let Some(folder) = &arguments.tests {
        match of_tests(folder) {
            Ok(more) => now.extend(more),
            Err(error) => {
                eprintln!("{}: {error}", folder.display());
                return ExitCode::from(2);
            }
        }
    }
    let file = arguments.file.display();
    if arguments.update {
        let text: String = now
            .iter()
            .map(|(name, digest)| format!("{name} {digest}\n"))
            .collect();
        return match std::fs::write(&arguments.file, text) {
            Ok(()) => {
                println!("{file}: {} digests", now.len());
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{file}: {error}");
                ExitCode::from(2)
            }
        };
    }
    let text = match std::fs::read_to_string(&arguments.file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::from(2);
        }
    };
    let before: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let mut different = 0;
    for (name, digest) in &now {
        let known = before.get(name.as_str()).copied();
        if known != Some(digest) {
            different += 1;
            println!("{name}: {digest}, {file} has {}", known.unwrap_or("none"));
        }
    }
    let seeds_only = arguments.tests.is_none();
    for name in before.keys().filter(|name| !now.contains_key(**name)) {
        if !(seeds_only && name.contains('#')) {
            different += 1;
            println!("{name}: only in {file}");
        }
    }
    println!("{} digests, {different} of them different", now.len());
    if different == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}
