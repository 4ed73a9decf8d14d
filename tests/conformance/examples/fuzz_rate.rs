//! Runs per second of a fuzz target's body on given inputs, without a fuzzer: what to look at before and after a change
//! to a target.
//!
//! ```text
//! cargo run --release -p segue-conformance --example fuzz_rate association fuzz/seeds/association
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads files and a clock, and prints"
)]

use segue_conformance::fuzz::TARGETS;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| TARGETS.iter().find(|t| t.name == name);
    let (Some(target), [_, folders @ ..]) = (arguments.first().and_then(|n| named(n)), arguments.as_slice())
    else {
        eprintln!("fuzz_rate: expected the name of a target, and folders of inputs");
        std::process::exit(2);
    };
    let mut times = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{folder}: {e}"));
        for entry in entries {
            let path = entry.expect("an entry").path();
            let bytes = std::fs::read(&path).expect("an input");
            let start = Instant::now();
            (target.body)(&bytes);
            times.push((start.elapsed(), path));
        }
    }
    times.sort();
    let whole: f64 = times.iter().map(|(t, _)| t.as_secs_f64()).sum();
    println!(
        "{} inputs of {} in {whole:.2} s: {:.1} runs/s",
        times.len(),
        target.name,
        times.len() as f64 / whole
    );
    for (time, path) in times.iter().rev().take(5) {
        println!("{:10.1} ms {}", time.as_secs_f64() * 1e3, path.display());
    }
}
