//! Scenario texts for tests.

use segue_sim::{Metrics, RunOptions, Scenario, run};

/// A bulk transfer over one link; `link` and `rest` are further lines of TOML.
pub fn one_link(rate: &str, delay: &str, link: &str, sctp: &str, application: &str) -> String {
    format!(
        r#"
name = "one link"
duration = "100 s"

[sctp]
{sctp}

[[host]]
name = "a"

[[host]]
name = "b"

[[link]]
between = ["a", "b"]
rate = "{rate}"
delay = "{delay}"
{link}

[[application]]
kind = "bulk"
from = "a"
to = "b"
{application}
"#
    )
}

/// Runs a scenario text with overrides.
pub fn metrics(text: &str, overrides: &[(&str, &str)], seed: u64) -> Metrics {
    metrics_of("test", text, overrides, seed)
}

/// Runs the text of a scenario file, which may name others beside it.
pub fn metrics_of(path: &str, text: &str, overrides: &[(&str, &str)], seed: u64) -> Metrics {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let scenario = Scenario::from_toml(text, path, &overrides).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions {
        seed: Some(seed),
        ..RunOptions::default()
    };
    run(&scenario, options).unwrap_or_else(|e| panic!("{e}")).metrics
}

/// Every scenario file of the repository that has a model, not only real hosts: path and text.
pub fn all_scenarios() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios"
    ))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the scenarios folder exists") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "toml") {
                let text = std::fs::read_to_string(&path).expect("readable");
                let path = path.display().to_string();
                let scenario = Scenario::from_toml(&text, &path, &[]).unwrap_or_else(|e| panic!("{e}"));
                if !scenario.file().scheme.is_of_others() {
                    found.push((path, text));
                }
            }
        }
    }
    found.sort();
    found
}

/// The text of a scenario file of the repository, by its name.
pub fn scenario_text(name: &str) -> String {
    let all = all_scenarios();
    let found = all.into_iter().find(|(path, _)| path.ends_with(name));
    found.unwrap_or_else(|| panic!("no scenario {name}")).1
}
