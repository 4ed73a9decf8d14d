//! Suites of scripts that others wrote: which of them pass, and why the others do not.

use super::SyntaxError;
use super::files;
use super::play::{Played, Settings, play};
use super::verdict::Verdict;
use core::fmt::Write;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A suite in the folder of suites.
#[derive(Debug)]
pub struct Suite {
    /// Its folder.
    pub folder: &'static str,
    /// What it is, for the head of its table.
    pub title: &'static str,
}

/// The suites that are played.
pub const SUITES: &[Suite] = &[
    Suite {
        folder: "etsi-sctp",
        title: "ETSI TS 102 369: conformance of SCTP",
    },
    Suite {
        folder: "linux-tcp",
        title: "Google's packetdrill: what Linux's TCP does",
    },
];

/// Why scripts do not pass: `judges.toml`.
const REASONS: &str = include_str!("../../judges.toml");

/// Why a script does not pass.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The script, from the folder of suites on.
    pub name: String,
    /// What kind of reason it is.
    pub kind: Kind,
    /// The reason.
    pub reason: String,
}

/// A kind of reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The RFC wants something else.
    Standard,
    /// The RFC leaves it open, and we chose otherwise: it is among the deviations of `ARCHITECTURE.md`.
    Choice,
    /// The script asks for what it does not say, or for what cannot be mapped.
    Script,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reasons {
    script: Vec<Reason>,
}

/// The reasons listed for scripts that do not pass.
///
/// # Panics
/// If `judges.toml` is not what it should be: a test of ours.
#[must_use]
pub fn reasons() -> Vec<Reason> {
    let reasons: Reasons = toml::from_str(REASONS).unwrap_or_else(|error| panic!("judges.toml: {error}"));
    reasons.script
}

/// A script of a suite that was played.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Its path from the folder of suites on, `/` between the parts.
    pub name: String,
    /// What it tests: as the README beside it says, or in the words of its name.
    pub purpose: String,
    /// What playing it came to.
    pub played: Played,
}

/// Why a suite could not be played.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A file cannot be read.
    #[error("{0}: {1}")]
    Unreadable(String, io::Error),
    /// A script is not the language.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
}

/// Plays all scripts of a suite in the folder of suites, by name.
///
/// # Errors
/// If one cannot be read or parsed.
pub fn judge(folder: &Path, suite: &Suite, settings: &Settings) -> Result<Vec<Judged>, SuiteError> {
    let unreadable = |path: &Path, error| SuiteError::Unreadable(path.display().to_string(), error);
    let root = folder.join(suite.folder);
    let paths = files::scripts(&root).map_err(|error| unreadable(&root, error))?;
    let mut judged = Vec::new();
    let mut purposes = BTreeMap::new();
    for path in paths {
        let source = files::read(&path).map_err(|error| unreadable(&path, error))?;
        let played = play(&path.display().to_string(), &source, settings)?;
        let parts: Vec<_> = path
            .strip_prefix(folder)
            .unwrap_or(&path)
            .iter()
            .map(|part| part.to_string_lossy())
            .collect();
        let name = parts.join("/");
        if let Some(readme) = path.parent().map(|parent| parent.join("README.md"))
            && !purposes.contains_key(&readme)
        {
            purposes.insert(readme.clone(), titles(&files::read(&readme).unwrap_or_default()));
        }
        let file = parts.last().map_or("", |part| part);
        let purpose = path
            .parent()
            .and_then(|parent| purposes.get(&parent.join("README.md"))?.get(file).cloned())
            .unwrap_or_else(|| words(&name));
        judged.push(Judged {
            name,
            purpose,
            played,
        });
    }
    Ok(judged)
}

/// The titles of links to scripts, `[name](name.pkt "title")`, by file.
fn titles(readme: &str) -> BTreeMap<String, String> {
    let mut titles = BTreeMap::new();
    for link in readme.split("](").skip(1) {
        let Some((file, rest)) = link.split_once(".pkt") else {
            continue;
        };
        let mut quoted = rest.split('"');
        if let (Some(blank), Some(title)) = (quoted.next(), quoted.next())
            && blank.trim().is_empty()
        {
            titles.insert(format!("{file}.pkt"), title.to_owned());
        }
    }
    titles
}

/// The words of a file's name, the ending aside.
fn words(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.trim_end_matches(".pkt").replace(['-', '_'], " ")
}

/// What is not as it is listed: scripts that do not pass without a reason, and reasons for scripts that pass or do not
/// exist.
#[must_use]
pub fn unexplained(judged: &[Judged], reasons: &[Reason]) -> Vec<String> {
    let mut out = Vec::new();
    for script in judged {
        let reason = reasons.iter().find(|r| r.name == script.name);
        match (&script.played.verdict, reason) {
            (Verdict::Passed, Some(_)) => out.push(format!("{}: passes, and is listed", script.name)),
            (Verdict::Passed, None) | (_, Some(_)) => {}
            (verdict, None) => {
                let report = super::verdict::Report {
                    file: &script.name,
                    verdict,
                };
                out.push(format!("{report}\n    and is not listed"));
            }
        }
    }
    for reason in reasons {
        if !judged.iter().any(|script| script.name == reason.name) {
            out.push(format!("{}: listed, and not among the scripts", reason.name));
        }
    }
    out
}

/// The verdicts on a suite as a Markdown table.
#[must_use]
pub fn table(suite: &Suite, judged: &[Judged], reasons: &[Reason]) -> String {
    let mut out = String::new();
    let passed = judged
        .iter()
        .filter(|s| s.played.verdict == Verdict::Passed)
        .count();
    let _ = write!(
        out,
        "## {}\n\n{passed} of {} scripts pass.\n\n| script | tests | verdict | why |\n|---|---|---|---|\n",
        suite.title,
        judged.len()
    );
    for script in judged {
        let reason = reasons.iter().find(|r| r.name == script.name);
        let verdict = match &script.played.verdict {
            Verdict::Passed => match &script.played.platform {
                Some(platform) => format!("passes, as {platform} does"),
                None => "passes".to_owned(),
            },
            Verdict::Failed(failure) => format!("fails in line {}", failure.line),
            Verdict::Unmappable { line, what } => format!("cannot be mapped, line {line}: {what}"),
        };
        let why = reason.map_or(String::new(), |r| {
            let kind = match r.kind {
                Kind::Standard => "the RFC differs",
                Kind::Choice => "ours by choice",
                Kind::Script => "not mappable",
            };
            format!("{kind}: {}", r.reason)
        });
        let file = script.name.rsplit('/').next().unwrap_or(&script.name);
        let file = file.trim_end_matches(".pkt");
        let cells = [file, &script.purpose, &verdict, &why].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

/// The verdicts on all suites.
#[derive(Clone, Debug)]
pub struct Document {
    /// As Markdown.
    pub text: String,
    /// See [`unexplained`].
    pub unexplained: Vec<String>,
}

/// The document of the verdicts on all suites.
///
/// # Errors
/// As [`judge`].
pub fn document(folder: &Path, settings: &Settings) -> Result<Document, SuiteError> {
    let mut out = Document {
        text: String::from(HEAD),
        unexplained: Vec::new(),
    };
    let reasons = reasons();
    let mut all = Vec::new();
    for suite in SUITES {
        let judged = judge(folder, suite, settings)?;
        out.text.push('\n');
        out.text.push_str(&table(suite, &judged, &reasons));
        all.extend(judged);
    }
    out.unexplained = unexplained(&all, &reasons);
    Ok(out)
}

const HEAD: &str = "# Judged by strangers

Test suites that others wrote, played on the machines of Segue. This file is made by
`cargo run -p segue-conformance --bin drill -- --table docs/judges.md ../shared/judges`, and a test compares the two. The suites are
not part of this repository: `SEGUE_JUDGES` names their folder, and without it they are looked for in `../shared/judges`.
How a script is played, and what is mapped how, is in [drill.md](drill.md). Where a script has what several implementations
do, each between an `#ifdef` and its `#endif`, it passes if it passes with one of them, which the table names.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drill::verdict::Failure;

    fn judged(name: &str, verdict: Verdict) -> Judged {
        Judged {
            name: name.to_owned(),
            purpose: words(name),
            played: Played {
                verdict,
                platform: None,
            },
        }
    }

    fn reason(name: &str) -> Reason {
        Reason {
            name: name.to_owned(),
            kind: Kind::Choice,
            reason: "why".to_owned(),
        }
    }

    fn failed() -> Verdict {
        Verdict::Failed(Failure {
            line: 7,
            due: "a".to_owned(),
            came: "b".to_owned(),
            difference: None,
        })
    }

    #[test]
    fn what_does_not_pass_must_be_listed_and_what_is_listed_must_not_pass() {
        let scripts = [judged("s/a.pkt", Verdict::Passed), judged("s/b.pkt", failed())];
        assert_eq!(unexplained(&scripts, &[reason("s/b.pkt")]), Vec::<String>::new());
        let [missing] = &unexplained(&scripts, &[])[..] else {
            panic!()
        };
        assert!(missing.starts_with("s/b.pkt:7: failed"), "{missing}");
        let passes = unexplained(&scripts, &[reason("s/a.pkt"), reason("s/b.pkt")]);
        assert_eq!(passes, ["s/a.pkt: passes, and is listed"]);
        let unknown = unexplained(&scripts, &[reason("s/b.pkt"), reason("s/c.pkt")]);
        assert_eq!(unknown, ["s/c.pkt: listed, and not among the scripts"]);
    }

    #[test]
    fn a_table_has_a_row_for_each_script() {
        let suite = Suite {
            folder: "s",
            title: "S",
        };
        let scripts = [
            judged("s/x/a-1.pkt", Verdict::Passed),
            judged("s/b.pkt", failed()),
        ];
        let table = table(&suite, &scripts, &[reason("s/b.pkt")]);
        assert!(table.starts_with("## S\n\n1 of 2 scripts pass.\n"));
        assert!(
            table.ends_with("| a-1 | a 1 | passes |  |\n| b | b | fails in line 7 | ours by choice: why |\n")
        );
    }

    #[test]
    fn purposes_are_the_titles_of_links() {
        let titles = titles("|[a](a.pkt   \"Doing A\") | [b](b.pkt) [c](c.pkt \"C\")");
        assert_eq!(titles["a.pkt"], "Doing A");
        assert_eq!(titles["c.pkt"], "C");
        assert!(!titles.contains_key("b.pkt"));
    }
}
