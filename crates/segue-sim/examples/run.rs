//! Runs a scenario file and prints its metrics: `run FILE [key=value]...`. The command line proper is `segue run`.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use segue_sim::{RunOptions, Scenario, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("expected a scenario file")?;
    let text = std::fs::read_to_string(&file)?;
    let overrides: Vec<(String, String)> = arguments
        .filter_map(|a| a.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
        .collect();
    let scenario = Scenario::from_toml(&text, &file, &overrides)?;
    let start = std::time::Instant::now();
    let output = run(&scenario, RunOptions::default())?;
    let wall = start.elapsed().as_secs_f64();
    let m = &output.metrics;
    println!("{}", serde_json::to_string_pretty(m)?);
    println!(
        "wall {wall:.3} s, {:.2} million hops/s",
        m.packet_hops as f64 / wall / 1e6
    );
    Ok(())
}
