//! Plays packetdrill scripts on the machines of Segue: see `docs/drill.md`.

use clap::{Parser, ValueEnum};
use segue_conformance::drill::play::{Settings, play};
use segue_conformance::drill::verdict::{Report, Verdict};
use segue_conformance::drill::{files, suite};
use segue_proto::{sctp, tcp};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Plays packetdrill scripts (SCTP, TCP) on the protocol machines of Segue, in virtual time.
///
/// Exit status: 0 if every script passes, 1 if one does not or cannot be mapped, 2 if something cannot be read.
#[derive(Parser)]
#[command(name = "drill", version)]
struct Arguments {
    /// Scripts, or folders of them (`*.pkt`, folders below included)
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// The specification whose constants SCTP has
    #[arg(long, value_enum, default_value = "rfc9260")]
    sctp: SctpProfile,
    /// Whose TCP
    #[arg(long, value_enum, default_value = "modern")]
    profile: TcpProfile,
    /// A name that `#ifdef` finds; without it each name that a script asks for is tried alone until the script passes
    #[arg(long, value_name = "NAME")]
    define: Vec<String>,
    /// Write the verdicts on the suites in a folder, the only path, as Markdown
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Say nothing of scripts that pass
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum SctpProfile {
    Rfc2960,
    Rfc4960,
    Rfc9260,
}

#[derive(Clone, Copy, ValueEnum)]
enum TcpProfile {
    Modern,
    #[value(name = "linux-3.9")]
    Linux39,
    #[value(name = "linux-2.4")]
    Linux24,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            complain(&error);
            ExitCode::from(2)
        }
    }
}

/// Whether all scripts pass.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let settings = Settings {
        defined: arguments.define.clone(),
        sctp: match arguments.sctp {
            SctpProfile::Rfc2960 => sctp::Profile::Rfc2960,
            SctpProfile::Rfc4960 => sctp::Profile::Rfc4960,
            SctpProfile::Rfc9260 => sctp::Profile::Rfc9260,
        },
        tcp: match arguments.profile {
            TcpProfile::Modern => tcp::Profile::Modern,
            TcpProfile::Linux39 => tcp::Profile::Linux39,
            TcpProfile::Linux24 => tcp::Profile::Linux24,
        },
    };
    if let Some(table) = &arguments.table {
        return write_table(table, &arguments.paths, &settings);
    }
    let mut out = std::io::stdout().lock();
    let (mut passed, mut failed, mut unmappable, mut unreadable) = (0, 0, 0, 0);
    for path in &arguments.paths {
        let scripts = match files::scripts(path) {
            Ok(scripts) if scripts.is_empty() => Err(format!("{}: no script (*.pkt) in it", path.display())),
            Ok(scripts) => Ok(scripts),
            Err(error) => Err(format!("{}: {error}", path.display())),
        };
        let scripts = scripts.unwrap_or_else(|error| {
            complain(&error);
            unreadable += 1;
            Vec::new()
        });
        for path in scripts {
            let file = path.display().to_string();
            let source = files::read(&path).map_err(|e| format!("{file}: {e}"));
            let played = source.and_then(|source| play(&file, &source, &settings).map_err(|e| e.to_string()));
            let played = match played {
                Ok(played) => played,
                Err(error) => {
                    complain(&error);
                    unreadable += 1;
                    continue;
                }
            };
            match played.verdict {
                Verdict::Passed => passed += 1,
                Verdict::Failed(_) => failed += 1,
                Verdict::Unmappable { .. } => unmappable += 1,
            }
            if played.verdict != Verdict::Passed || !arguments.quiet {
                let report = Report {
                    file: &file,
                    verdict: &played.verdict,
                };
                say(&mut out, &report.to_string())?;
            }
        }
    }
    let summary = format!("{passed} passed, {failed} failed, {unmappable} cannot be mapped");
    say(&mut out, &summary)?;
    if unreadable > 0 {
        return Err(format!("{unreadable} could not be read"));
    }
    Ok(failed + unmappable == 0)
}

/// Writes the verdicts on the suites; whether every script passes or is explained.
#[expect(clippy::disallowed_methods, reason = "a driver: the table is a file")]
fn write_table(table: &Path, paths: &[PathBuf], settings: &Settings) -> Result<bool, String> {
    let [folder] = paths else {
        return Err("--table takes one path: the folder of the suites".to_owned());
    };
    let document = suite::document(folder, settings).map_err(|e| e.to_string())?;
    std::fs::write(table, document.text).map_err(|e| format!("{}: {e}", table.display()))?;
    for line in &document.unexplained {
        say(&mut std::io::stdout().lock(), line)?;
    }
    Ok(document.unexplained.is_empty())
}

fn complain(error: &str) {
    let _ = writeln!(std::io::stderr(), "drill: {error}");
}

fn say(out: &mut impl Write, line: &str) -> Result<(), String> {
    writeln!(out, "{line}").map_err(|e| format!("standard output: {e}"))
}
