//! Files that a scenario names: ways of mobile hosts, and what links do over time. They are read once, with the scenario.

use super::ScenarioError;
use super::mobiles::Mobiles;
use super::mobility::Source;
use super::model::ScenarioFile;
use crate::link_trace::LinkTrace;
use crate::mobility::files;
use segue_proto::units::Coordinate;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Format of a link's trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// Mahimahi's `.up` and `.down`.
    Mahimahi,
    /// Time, rate, round trip, loss.
    Csv,
}

/// `trace = { file = "umts.down", format = "mahimahi" }` of a link, or of one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSection {
    /// The file, from the scenario's directory on.
    pub file: String,
    /// Its format.
    pub format: TraceFormat,
    /// What was read.
    #[serde(skip)]
    pub trace: Option<Arc<LinkTrace>>,
}

/// Longest file, bytes.
const LONGEST: u64 = 256 << 20;

/// Reads all files that the scenario in `file` names.
pub(super) fn load(s: &mut ScenarioFile, file: &str) -> Result<(), ScenarioError> {
    let directory = Path::new(file).parent().map(Path::to_owned).unwrap_or_default();
    s.mobile = mobiles(&s.mobile, file, &directory)?;
    for (i, link) in s.link.iter_mut().enumerate() {
        trace(link.trace.as_mut(), &format!("link[{i}].trace"), file, &directory)?;
        let up = link.up.as_mut().and_then(|up| up.trace.as_mut());
        trace(up, &format!("link[{i}].up.trace"), file, &directory)?;
    }
    for (i, cell) in s.cell.iter_mut().enumerate() {
        let Some(bearer) = &mut cell.bearer else { continue };
        for (name, direction) in [("down", &mut bearer.down), ("up", &mut bearer.up)] {
            let key = format!("cell[{i}].bearer.{name}.trace");
            trace(direction.trace.as_mut(), &key, file, &directory)?;
        }
    }
    Ok(())
}

fn mobiles(all: &Mobiles, file: &str, directory: &Path) -> Result<Mobiles, ScenarioError> {
    let mut read = all.clone();
    for (i, mobile) in read.iter_mut().enumerate() {
        let Some(section) = &mut mobile.mobility else {
            continue;
        };
        let Ok(Source::File {
            file: named,
            format,
            node,
        }) = section.source()
        else {
            continue;
        };
        let text = text(named, &format!("{}.mobility.file", all.key(i)), file, directory)?;
        let points = files::read(format, &text, node)
            .map_err(|(line, problem)| ScenarioError::new(named, &format!("line {line}"), problem))?;
        if let Some((_, first)) = points.first() {
            mobile.from = [first.x, first.y].map(Coordinate::from_metres);
        }
        section.points = Arc::new(points);
    }
    Ok(read)
}

fn trace(
    section: Option<&mut TraceSection>,
    key: &str,
    file: &str,
    directory: &Path,
) -> Result<(), ScenarioError> {
    let Some(section) = section else { return Ok(()) };
    let text = text(&section.file, &format!("{key}.file"), file, directory)?;
    let read = match section.format {
        TraceFormat::Mahimahi => LinkTrace::mahimahi(&text),
        TraceFormat::Csv => LinkTrace::csv(&text),
    };
    let read =
        read.map_err(|(line, problem)| ScenarioError::new(&section.file, &format!("line {line}"), problem))?;
    section.trace = Some(Arc::new(read));
    Ok(())
}

/// What the operating system says, without its number for it.
fn unread(error: &std::io::Error) -> String {
    let text = error.to_string();
    format!(
        "cannot be read: {}",
        text.split(" (os error").next().unwrap_or_default()
    )
}

/// The text of a file that `key` of the scenario names.
#[expect(
    clippy::disallowed_methods,
    reason = "a scenario is read before it runs, with the files that it names"
)]
pub(super) fn text(named: &str, key: &str, file: &str, directory: &Path) -> Result<String, ScenarioError> {
    let path: PathBuf = directory.join(named);
    let refuse = |problem: String| ScenarioError::new(file, key, format!("`{named}`: {problem}"));
    let length = std::fs::metadata(&path).map_err(|e| refuse(unread(&e)))?;
    if !length.is_file() {
        return Err(refuse("expected a file".to_owned()));
    }
    if length.len() > LONGEST {
        return Err(refuse("expected at most 256 MiB".to_owned()));
    }
    let bytes = std::fs::read(&path).map_err(|e| refuse(unread(&e)))?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(refuse(
            "is compressed: expected text, as gunzip gives it".to_owned(),
        ));
    }
    String::from_utf8(bytes).map_err(|_| refuse("expected text in UTF-8".to_owned()))
}
