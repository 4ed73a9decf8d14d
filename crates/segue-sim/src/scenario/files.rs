//! Files that a scenario names: ways of mobile hosts, and what links do over time. They are read once, with the scenario.

use super::ScenarioError;
use super::mobiles::Mobiles;
use super::mobility::Source;
use super::model::ScenarioFile;
use crate::link_trace::{LinkTrace, Own};
use crate::mobility::files::{self, MobilityFormat, Timed};
use crate::mobility::geography::Plane;
use schemars::JsonSchema;
use segue_proto::units::Coordinate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Format of a link's trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// Mahimahi's `.up` and `.down`.
    Mahimahi,
    /// Time, rate, round trip or distance, loss.
    Csv,
}

/// `trace = { file = "umts.down", format = "mahimahi" }` of a link, or of one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSection {
    /// The file, from the scenario's directory on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What would be in the file, in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
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
        let own = Own::of(link.rate, link.delay);
        trace(
            link.trace.as_mut(),
            own,
            &format!("link[{i}].trace"),
            file,
            &directory,
        )?;
        if let Some(up) = &mut link.up {
            let own = Own::of(up.rate, up.delay);
            trace(
                up.trace.as_mut(),
                own,
                &format!("link[{i}].up.trace"),
                file,
                &directory,
            )?;
        }
    }
    for (i, cell) in s.cell.iter_mut().enumerate() {
        let Some(bearer) = &mut cell.bearer else { continue };
        for (name, direction) in [("down", &mut bearer.down), ("up", &mut bearer.up)] {
            let key = format!("cell[{i}].bearer.{name}.trace");
            let own = Own::of(direction.rate, direction.delay);
            trace(direction.trace.as_mut(), own, &key, file, &directory)?;
        }
    }
    Ok(())
}

/// What the hosts of one file are given.
struct Nodes<'a> {
    file: &'a str,
    format: MobilityFormat,
    plane: Option<Plane>,
    /// Their numbers, and nodes.
    of: Vec<(usize, &'a str)>,
}

fn mobiles(all: &Mobiles, file: &str, directory: &Path) -> Result<Mobiles, ScenarioError> {
    // a file is read once, however many hosts are in it
    let mut files: Vec<Nodes<'_>> = Vec::new();
    let sections = all.iter().enumerate();
    for (i, section) in sections.filter_map(|(i, m)| Some((i, m.mobility.as_ref()?))) {
        let Ok(Source::File {
            file,
            format,
            node,
            plane,
        }) = section.source()
        else {
            continue;
        };
        let same = |f: &&mut Nodes<'_>| (f.file, f.format, f.plane) == (file, format, plane);
        match files.iter_mut().find(same) {
            Some(there) => there.of.push((i, node)),
            None => files.push(Nodes {
                file,
                format,
                plane,
                of: vec![(i, node)],
            }),
        }
    }
    let mut ways: BTreeMap<usize, Timed> = BTreeMap::new();
    for f in files {
        let key = format!("{}.mobility.file", all.key(f.of[0].0));
        let text = text(f.file, &key, file, directory)?;
        let nodes: Vec<&str> = f.of.iter().map(|(_, node)| *node).collect();
        let read = files::read(f.format, &text, &nodes, f.plane.as_ref())
            .map_err(|(line, problem)| ScenarioError::new(f.file, &format!("line {line}"), problem))?;
        ways.extend(f.of.iter().map(|(i, _)| *i).zip(read));
    }
    let mut read = all.clone();
    for (i, mobile) in read.iter_mut().enumerate() {
        let (Some(section), Some(points)) = (&mut mobile.mobility, ways.remove(&i)) else {
            continue;
        };
        if let Some((_, first)) = points.first() {
            mobile.from = [first.x, first.y].map(Coordinate::from_metres);
        }
        section.points = Arc::new(points);
    }
    Ok(read)
}

fn trace(
    section: Option<&mut TraceSection>,
    own: Own,
    key: &str,
    file: &str,
    directory: &Path,
) -> Result<(), ScenarioError> {
    let Some(section) = section else { return Ok(()) };
    let (named, written) = match (&section.file, &section.text) {
        (Some(named), None) => (Some(named), text(named, &format!("{key}.file"), file, directory)?),
        (None, Some(written)) => (None, written.clone()),
        _ => return Err(ScenarioError::new(file, key, "expected either `file` or `text`")),
    };
    let read = match section.format {
        TraceFormat::Mahimahi => LinkTrace::mahimahi(&written),
        TraceFormat::Csv => LinkTrace::csv(&written, own),
    };
    let read = read.map_err(|(line, problem)| match named {
        Some(named) => ScenarioError::new(named, &format!("line {line}"), problem),
        None => ScenarioError::new(file, &format!("{key}.text"), format!("line {line}: {problem}")),
    })?;
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
