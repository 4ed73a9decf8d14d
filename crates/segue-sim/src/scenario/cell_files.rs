//! Cells from a file: where the cells of mobile networks are, as OpenCelliD has it.
//!
//! ```toml
//! [[cell]]
//! router = "core"                     # what their access routers are linked to
//!
//! [cell.from_csv]
//! file = "244.csv"                    # radio,mcc,net,area,cell,unit,lon,lat,range,samples,...
//! radio = ["LTE"]                     # left out: all
//! within = { south = "61.49 deg", west = "23.74 deg", north = "61.51 deg", east = "23.80 deg" }
//! link = { rate = "1 Gbit/s", delay = "5 ms" }
//! ```
//!
//! Each row that is kept becomes a cell with an access router of its own, both with the name `RADIO-MCC-NET-AREA-CELL`, and a link
//! from that to `router`, or, with `area_link`, to a router for the cells of its area, which has a link to `router`. What else the
//! entry has, each of its cells has. So the scenario as run names them all, and needs no file.

use super::ScenarioError;
use super::files::text;
use super::mobility::{Angle, Origin};
use crate::link_trace::{lines, short};
use crate::mobility::geography::{Geodetic, NOWHERE, Plane};
use schemars::JsonSchema;
use segue_proto::units::Metres;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::{Table, Value};

const FROM_CSV: &str = "from_csv";
/// Most cells of a file.
const MOST: usize = 1_900;

/// `from_csv` of a `[[cell]]`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FromCsv {
    /// The file, from the scenario's directory on.
    file: String,
    /// The point that becomes x = 0 and y = 0; the mean of the cells that are kept, if left out.
    #[serde(default)]
    origin: Option<Origin>,
    /// Radio technologies of the rows that are kept.
    #[serde(default)]
    radio: Option<Vec<String>>,
    /// Mobile country codes of those that are kept.
    #[serde(default)]
    mcc: Option<Vec<u32>>,
    /// Mobile network codes of those that are kept.
    #[serde(default)]
    net: Option<Vec<u32>>,
    /// Where those are that are kept.
    #[serde(default)]
    within: Option<Within>,
    /// Measurements that a row that is kept has come from.
    #[serde(default)]
    samples_at_least: u64,
    /// A range below this is taken for it.
    #[serde(default)]
    radius_at_least: Option<Metres>,
    /// A range above this is taken for it.
    #[serde(default)]
    radius_at_most: Option<Metres>,
    /// Keys of the link to each access router.
    #[schemars(schema_with = "super::keys::texts::any_table")]
    link: Table,
    /// Keys of the link to the router of an area.
    #[serde(default)]
    #[schemars(schema_with = "super::keys::texts::any_table")]
    area_link: Option<Table>,
}

#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Within {
    south: Angle,
    west: Angle,
    north: Angle,
    east: Angle,
}

impl Within {
    fn contains(&self, at: Geodetic) -> bool {
        (self.south.degrees()..=self.north.degrees()).contains(&at.lat_deg)
            && (self.west.degrees()..=self.east.degrees()).contains(&at.lon_deg)
    }
}

/// A key, and what is wrong with it.
type Wrong = (String, String);

/// Which entries of the file those are that have been written out.
#[derive(Debug, Default)]
pub(super) struct CellFiles {
    /// Of each cell, its entry in the file; nothing where no entry has a file of cells.
    cells: Vec<usize>,
    /// Of routers and links that the file does not have: how many it has, and the entry of `cell` that each is from.
    routers: (usize, Vec<usize>),
    links: (usize, Vec<usize>),
}

impl CellFiles {
    /// The key of the file that `key`, which may be of a cell from a file, comes from.
    pub(super) fn entry_of(&self, key: &str) -> String {
        let parts = |list: &str| {
            let rest = key.strip_prefix(list)?;
            let rest = rest.strip_prefix('[').or_else(|| rest.strip_prefix('.'))?;
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let number: usize = rest[..end].parse().ok()?;
            Some((number, rest[end..].trim_start_matches(']').to_owned()))
        };
        let of_cell = || {
            let (number, rest) = parts("cell")?;
            Some(format!("cell[{}]{rest}", self.cells.get(number)?))
        };
        let made = |list: &str, (written, made): &(usize, Vec<usize>)| {
            let (number, _) = parts(list)?;
            let entry = made.get(number.checked_sub(*written)?)?;
            Some(format!("cell[{entry}].{FROM_CSV}"))
        };
        of_cell()
            .or_else(|| made("router", &self.routers))
            .or_else(|| made("link", &self.links))
            .unwrap_or_else(|| key.to_owned())
    }
}

/// Writes out the entries of `cell` that have a file of cells.
pub(super) fn expand(
    table: &mut Table,
    file: &str,
    source: &dyn Fn(&str) -> String,
) -> Result<CellFiles, ScenarioError> {
    let of_file = |entry: &Value| entry.get(FROM_CSV).is_some();
    let entries = match table.get("cell") {
        Some(Value::Array(entries)) if entries.iter().any(of_file) => entries.clone(),
        _ => return Ok(CellFiles::default()),
    };
    let length = |list: &str| table.get(list).and_then(Value::as_array).map_or(0, Vec::len);
    let mut origins = CellFiles {
        cells: Vec::new(),
        routers: (length("router"), Vec::new()),
        links: (length("link"), Vec::new()),
    };
    let (mut cells, mut routers, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for (number, entry) in entries.into_iter().enumerate() {
        let key = format!("cell[{number}].{FROM_CSV}");
        let Value::Table(mut template) = entry else {
            cells.push(entry);
            origins.cells.push(number);
            continue;
        };
        let Some(section) = template.remove(FROM_CSV) else {
            cells.push(Value::Table(template));
            origins.cells.push(number);
            continue;
        };
        let refuse = |(of, problem): Wrong| {
            let key = if of.is_empty() {
                key.clone()
            } else {
                format!("{key}.{of}")
            };
            ScenarioError::new(&source(&key), &key, problem)
        };
        let section: FromCsv = read(section, &key, source)?;
        let router = router_of(&template, number)
            .map_err(|(key, problem)| ScenarioError::new(&source(&key), &key, problem))?;
        let directory = Path::new(file).parent().map(Path::to_owned).unwrap_or_default();
        let rows = text(&section.file, &format!("{key}.file"), file, &directory)?;
        let rows = rows_of(&rows, &section)
            .map_err(|(place, problem)| ScenarioError::new(&section.file, &place, problem))?;
        if rows.is_empty() || rows.len() > MOST {
            let problem = format!(
                "{} rows of `{}` are kept: expected 1 to {MOST}, chosen by radio, mcc, net, within and samples_at_least",
                rows.len(),
                section.file
            );
            return Err(refuse((String::new(), problem)));
        }
        let plane = section.plane(&rows).map_err(refuse)?;
        let mut areas = BTreeSet::new();
        for row in &rows {
            cells.push(Value::Table(section.cell(&template, row, &plane)));
            origins.cells.push(number);
            let (mut above, area) = (router.clone(), row.area_name());
            if let Some(keys) = &section.area_link {
                if areas.insert(area.clone()) {
                    routers.push(named(&area));
                    links.push(link(keys, &router, &area));
                }
                above = area;
            }
            routers.push(named(&row.name()));
            links.push(link(&section.link, &above, &row.name()));
        }
        origins.routers.1.resize(routers.len(), number);
        origins.links.1.resize(links.len(), number);
    }
    for (list, more) in [("router", routers), ("link", links)] {
        let there = table
            .entry(list.to_owned())
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(there) = there {
            there.extend(more);
        }
    }
    table.insert("cell".to_owned(), Value::Array(cells));
    Ok(origins)
}

/// A table of the file at `key`, with what is wrong in it.
pub(super) fn read<T: DeserializeOwned>(
    section: Value,
    key: &str,
    source: &dyn Fn(&str) -> String,
) -> Result<T, ScenarioError> {
    serde_path_to_error::deserialize(section.clone()).map_err(|e| {
        let path = e.path().to_string();
        let key = if path == "." {
            key.to_owned()
        } else {
            format!("{key}.{path}")
        };
        let value = path
            .split('.')
            .try_fold(&section, |at, part| at.get(part.split('[').next()?));
        let error = e.into_inner();
        ScenarioError::key(&source(&key), &key, value, &super::Choices::None, None, &error)
    })
}

/// The router that access routers are linked to.
fn router_of(template: &Table, number: usize) -> Result<String, Wrong> {
    for key in ["name", "position", "count"] {
        if template.contains_key(key) {
            let problem = "the cells are those of `from_csv`: expected nothing here";
            return Err((format!("cell[{number}].{key}"), problem.to_owned()));
        }
    }
    let router = template.get("router").and_then(Value::as_str);
    router.map(str::to_owned).ok_or_else(|| {
        let problem = "expected the name of the router that those of the cells are linked to";
        (format!("cell[{number}].router"), problem.to_owned())
    })
}

fn named(name: &str) -> Value {
    let name = ("name".to_owned(), Value::String(name.to_owned()));
    Value::Table([name].into_iter().collect())
}

fn link(keys: &Table, from: &str, to: &str) -> Value {
    let mut link = keys.clone();
    let between = [from, to].map(|end| Value::String(end.to_owned()));
    link.insert("between".to_owned(), Value::Array(between.to_vec()));
    Value::Table(link)
}

/// A row that is kept.
#[derive(Clone, PartialEq, Debug)]
struct Row {
    radio: String,
    /// mcc, net, area, cell.
    id: [u64; 4],
    at: Geodetic,
    radius_m: f64,
}

impl Row {
    fn name(&self) -> String {
        let [mcc, net, area, cell] = self.id;
        format!("{}-{mcc}-{net}-{area}-{cell}", self.radio)
    }

    fn area_name(&self) -> String {
        let [mcc, net, area, _] = self.id;
        format!("{}-{mcc}-{net}-{area}", self.radio)
    }

    /// The technology of this simulator that is the radio's.
    fn technology(&self) -> &'static str {
        match self.radio.as_str() {
            "GSM" => "gprs",
            "UMTS" | "CDMA" => "umts",
            "LTE" => "lte",
            _ => "5g",
        }
    }
}

impl FromCsv {
    /// The plane that the cells are put on.
    fn plane(&self, rows: &[Row]) -> Result<Plane, Wrong> {
        let mean =
            |of: fn(&Geodetic) -> f64| rows.iter().map(|row| of(&row.at)).sum::<f64>() / rows.len() as f64;
        let mean = || Geodetic {
            lat_deg: mean(|at| at.lat_deg),
            lon_deg: mean(|at| at.lon_deg),
        };
        let origin = self.origin.map_or_else(mean, Origin::geodetic);
        Plane::around(origin).ok_or_else(|| ("origin".to_owned(), NOWHERE.to_owned()))
    }

    /// The cell of a row.
    fn cell(&self, template: &Table, row: &Row, plane: &Plane) -> Table {
        let mut cell = template.clone();
        let at = plane.point(row.at);
        // to a centimetre: positions are known to tens of metres
        let metres = |value: f64| Value::String(format!("{:.2} m", value + 0.0));
        cell.insert("name".to_owned(), Value::String(row.name()));
        cell.insert("router".to_owned(), Value::String(row.name()));
        cell.insert(
            "position".to_owned(),
            Value::Array(vec![metres(at.x), metres(at.y)]),
        );
        cell.entry("radius").or_insert_with(|| metres(row.radius_m));
        cell.entry("overlaid").or_insert(Value::Boolean(true));
        if !["technology", "radio", "bearer"]
            .iter()
            .any(|key| template.contains_key(*key))
        {
            let technology = Value::String(row.technology().to_owned());
            cell.insert("technology".to_owned(), technology);
        }
        cell
    }

    fn keeps(&self, radio: &str, id: [u64; 4], at: Geodetic, samples: u64) -> bool {
        let is_one = |all: &Option<Vec<u32>>, one: u64| {
            all.as_ref()
                .is_none_or(|all| all.iter().any(|n| u64::from(*n) == one))
        };
        let radios = self.radio.as_ref();
        radios.is_none_or(|all| all.iter().any(|r| r == radio))
            && is_one(&self.mcc, id[0])
            && is_one(&self.net, id[1])
            && self.within.is_none_or(|within| within.contains(at))
            && samples >= self.samples_at_least
    }

    fn radius(&self, range_m: f64) -> f64 {
        let least = self.radius_at_least.map_or(0.0, Metres::metres);
        let most = self.radius_at_most.map_or(f64::INFINITY, Metres::metres);
        range_m.max(least).min(most)
    }
}

/// Columns of a file without a heading.
const COLUMNS: [&str; 10] = [
    "radio", "mcc", "net", "area", "cell", "unit", "lon", "lat", "range", "samples",
];
/// Those that are read.
const NEEDED: [&str; 9] = [
    "radio", "mcc", "net", "area", "cell", "lon", "lat", "range", "samples",
];
/// Radio technologies that OpenCelliD has.
const RADIOS: [&str; 5] = ["GSM", "UMTS", "CDMA", "LTE", "NR"];

/// The rows that are kept, or the line and column, and what is wrong there.
fn rows_of(text: &str, section: &FromCsv) -> Result<Vec<Row>, Wrong> {
    let mut names: Vec<&str> = COLUMNS.to_vec();
    let mut rows: Vec<Row> = Vec::new();
    let mut lines_of: BTreeMap<(String, [u64; 4]), usize> = BTreeMap::new();
    for (at, (number, line)) in lines(text).enumerate() {
        let values: Vec<&str> = line.split(',').map(str::trim).collect();
        let here = format!("line {number}");
        if at == 0 && values.contains(&"lat") {
            names = values;
            if let Some(missing) = NEEDED.iter().find(|name| !names.contains(name)) {
                let problem = format!(
                    "expected a heading with {}: `{missing}` is not there",
                    NEEDED.join(", ")
                );
                return Err((here, problem));
            }
            continue;
        }
        if values.len() < names.len() {
            let problem = format!("{} columns: expected {}", values.len(), names.join(","));
            return Err((here, problem));
        }
        let value = |name: &str| names.iter().position(|n| *n == name).map_or("", |at| values[at]);
        let wrong = |name: &str, expected: &str| {
            let place = format!("{here}: {name}");
            (place, format!("`{}`: expected {expected}", short(value(name))))
        };
        let whole = |name: &str| {
            value(name)
                .parse::<u64>()
                .map_err(|_| wrong(name, "a whole number"))
        };
        let real = |name: &str, least: f64, most: f64, expected: &str| {
            let number = value(name).parse().ok();
            number
                .filter(|n| (least..=most).contains(n))
                .ok_or_else(|| wrong(name, expected))
        };
        let radio = value("radio");
        if !RADIOS.contains(&radio) {
            return Err(wrong("radio", &format!("one of {}", RADIOS.join(", "))));
        }
        let id = [whole("mcc")?, whole("net")?, whole("area")?, whole("cell")?];
        let place = Geodetic {
            lat_deg: real("lat", -90.0, 90.0, "degrees from -90 to 90")?,
            lon_deg: real("lon", -180.0, 180.0, "degrees from -180 to 180")?,
        };
        let range_m = real("range", 0.0, 1e6, "metres from 0 to 1000000")?;
        if !section.keeps(radio, id, place, whole("samples")?) {
            continue;
        }
        let radius_m = section.radius(range_m);
        if radius_m <= 0.0 {
            return Err(wrong("range", "more than 0 m, or a `radius_at_least`"));
        }
        if let Some(first) = lines_of.insert((radio.to_owned(), id), number) {
            return Err((
                here,
                format!("the cell of line {first} again: expected each once"),
            ));
        }
        rows.push(Row {
            radio: radio.to_owned(),
            id,
            at: place,
            radius_m,
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
