//! Ways from files: movements that other tools made.

use super::Point;
use super::geography::{Geodetic, Plane};
use crate::link_trace::{lines, short};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use schemars::JsonSchema;
use segue_proto::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a node is when: between two of them it moves in a straight line.
pub type Timed = Vec<(Instant, Point)>;

/// The line, from 1, and what is wrong there.
pub type Wrong = (usize, String);

/// Format of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MobilityFormat {
    /// Tcl of ns-2, as its `setdest` writes it; nodes are numbers.
    Setdest,
    /// BonnMotion's native format, a line per node: time, x, y, time, x, y and so on. Nodes are numbers from 0.
    Bonnmotion,
    /// Floating car data of SUMO (XML); nodes are ids of vehicles or persons.
    SumoFcd,
}

/// Longest file, points of a node.
const MOST_POINTS: usize = 1_000_000;

/// The ways of `nodes` in a file, in their order: it is read once for all of them. Places of floating car data are longitude and
/// latitude where there is a `plane` to put them on.
///
/// # Errors
/// The line, from 1, and what is wrong there.
pub fn read(
    format: MobilityFormat,
    text: &str,
    nodes: &[&str],
    plane: Option<&Plane>,
) -> Result<Vec<Timed>, Wrong> {
    let ways = match format {
        MobilityFormat::Setdest => setdest(text, nodes)?,
        MobilityFormat::Bonnmotion => bonnmotion(text, nodes)?,
        MobilityFormat::SumoFcd => sumo_fcd(text, nodes, plane)?,
    };
    match ways.iter().position(|way| way.len() > MOST_POINTS) {
        Some(at) => Err((
            1,
            format!("more than {MOST_POINTS} points of node `{}`", short(nodes[at])),
        )),
        None => Ok(ways),
    }
}

/// Of names, which number each has; of two alike the first.
fn numbers<'a>(names: &[&'a str]) -> BTreeMap<&'a str, usize> {
    let mut numbers = BTreeMap::new();
    for (number, name) in names.iter().enumerate() {
        numbers.entry(*name).or_insert(number);
    }
    numbers
}

/// Of each name what the first with that name has.
fn for_each<T: Clone>(names: &[&str], of_first: &[T]) -> Vec<T> {
    let numbers = numbers(names);
    names.iter().map(|name| of_first[numbers[name]].clone()).collect()
}

/// `$node_(3) set X_ 10.0`, and `$ns_ at 2.0 "$node_(3) setdest 20.0 30.0 1.5"`: from that time on towards a point, at
/// metres per second. A new order comes in the middle of the way of the last.
fn setdest(text: &str, nodes: &[&str]) -> Result<Vec<Timed>, Wrong> {
    let numbers = numbers(nodes);
    let number_of = |who: &str| {
        let name = who.strip_prefix("$node_(")?.strip_suffix(')')?;
        numbers.get(name).copied()
    };
    let mut all = vec![Orders::default(); nodes.len()];
    for (number, line) in lines(text) {
        let words: Vec<&str> = line
            .split_whitespace()
            .map(|w| w.trim_matches('"'))
            .filter(|w| !w.is_empty())
            .collect();
        let wrong = |expected: &str| (number, format!("`{}`: expected {expected}", short(line)));
        match words[..] {
            [who, "set", axis @ ("X_" | "Y_" | "Z_"), value] => {
                let value = metres(value).ok_or_else(|| wrong("a coordinate in metres"))?;
                match (number_of(who), axis) {
                    (Some(node), "X_") => all[node].at[0] = Some(value),
                    (Some(node), "Y_") => all[node].at[1] = Some(value),
                    _ => {}
                }
            }
            [_, "at", time, who, "setdest", x, y, speed] => {
                let order = || {
                    Some((
                        seconds(time)?,
                        metres(x)?,
                        metres(y)?,
                        metres(speed).filter(|s| *s >= 0.0)?,
                    ))
                };
                let (time, x, y, speed) = order()
                    .ok_or_else(|| wrong("`$ns_ at TIME \"$node_(N) setdest X Y SPEED\"` with numbers"))?;
                if let Some(node) = number_of(who) {
                    all[node].orders.push((number, time, Point { x, y }, speed));
                }
            }
            // setdest also writes what its god object knows of distances
            [first, ..] if first.starts_with("$god_") => {}
            [_, "at", _, object, ..] if object.starts_with("$god_") => {}
            _ => {
                return Err(wrong(
                    "`$node_(N) set X_ ...` or `$ns_ at TIME \"$node_(N) setdest X Y SPEED\"`",
                ));
            }
        }
    }
    let ways: Result<Vec<Timed>, Wrong> = for_each(nodes, &all)
        .iter()
        .zip(nodes)
        .map(|(orders, node)| orders.followed(node))
        .collect();
    ways
}

/// Where a node of ns-2 begins, and where it is sent.
#[derive(Clone, Debug, Default)]
struct Orders {
    at: [Option<f64>; 2],
    /// Line, time, destination, speed.
    orders: Vec<(usize, f64, Point, f64)>,
}

impl Orders {
    fn followed(&self, node: &str) -> Result<Timed, Wrong> {
        let [Some(x), Some(y)] = self.at else {
            return Err((
                1,
                format!(
                    "no `$node_({0}) set X_` and `set Y_`: expected where node `{0}` begins",
                    short(node)
                ),
            ));
        };
        let mut here = Point { x, y };
        let mut points = vec![(Instant::ZERO, here)];
        for (index, (number, time, to, speed)) in self.orders.iter().enumerate() {
            if index > 0 && *time < self.orders[index - 1].1 {
                return Err((
                    *number,
                    "expected orders of a node in the order of time".to_owned(),
                ));
            }
            let until = self.orders.get(index + 1).map_or(f64::INFINITY, |next| next.1);
            push(&mut points, *time, here);
            let distance = here.distance(*to);
            if *speed <= 0.0 || distance <= 0.0 {
                continue;
            }
            let arrival = time + distance / speed;
            if arrival <= until {
                here = *to;
                push(&mut points, arrival, here);
            } else {
                let part = (until - time) / (arrival - time);
                here = Point {
                    x: here.x + part * (to.x - here.x),
                    y: here.y + part * (to.y - here.y),
                };
                push(&mut points, until, here);
            }
        }
        Ok(points)
    }
}

fn bonnmotion(text: &str, nodes: &[&str]) -> Result<Vec<Timed>, Wrong> {
    let all: Vec<(usize, &str)> = lines(text).collect();
    let way = |node: &&str| {
        let wanted: usize = node.parse().map_err(|_| {
            let problem = format!(
                "node `{}`: expected a number, from 0: lines are nodes",
                short(node)
            );
            (1, problem)
        })?;
        let (number, line) = all.get(wanted).ok_or_else(|| {
            (
                all.len().max(1),
                format!(
                    "node {wanted}: expected less than {}, the number of nodes",
                    all.len()
                ),
            )
        })?;
        line_of_bonnmotion(*number, line)
    };
    nodes.iter().map(way).collect()
}

fn line_of_bonnmotion(number: usize, line: &str) -> Result<Timed, Wrong> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(3) {
        let problem = format!("{} numbers: expected time, x and y for each point", words.len());
        return Err((number, problem));
    }
    let mut points = Timed::new();
    for triple in words.chunks(3) {
        let point = || Some((seconds(triple[0])?, metres(triple[1])?, metres(triple[2])?));
        let (time, x, y) = point().ok_or_else(|| {
            (
                number,
                format!("`{}`: expected time, x and y", short(&triple.join(" "))),
            )
        })?;
        in_order(&points, time).map_err(|problem| (number, problem))?;
        push(&mut points, time, Point { x, y });
    }
    Ok(points)
}

/// `<timestep time="1.00"><vehicle id="a" x="1.0" y="2.0" .../></timestep>`
fn sumo_fcd(text: &str, nodes: &[&str], plane: Option<&Plane>) -> Result<Vec<Timed>, Wrong> {
    let numbers = numbers(nodes);
    let mut reader = Reader::from_str(text);
    let mut ways = vec![Timed::new(); nodes.len()];
    let mut time: Option<f64> = None;
    // how far lines have been counted
    let (mut counted, mut newlines) = (0, 0);
    let mut line_at = |position: u64| {
        let end = (position as usize).min(text.len());
        let more = text.as_bytes().get(counted..end).unwrap_or_default();
        newlines += more.iter().filter(|b| **b == b'\n').count();
        counted = end.max(counted);
        newlines + 1
    };
    loop {
        let event = reader.read_event();
        let event = event.map_err(|e| (line_at(reader.error_position()), format!("no XML: {e}")))?;
        let element = match &event {
            Event::Start(element) | Event::Empty(element) => element,
            Event::Eof => break,
            _ => continue,
        };
        let line = line_at(reader.buffer_position());
        match element.name().as_ref() {
            "timestep" => {
                let value = attribute(element, "time").and_then(|t| seconds(&t));
                time = Some(value.ok_or((line, "timestep: expected time=\"SECONDS\"".to_owned()))?);
            }
            "vehicle" | "person" => {
                let id = attribute(element, "id").unwrap_or_default();
                let Some(&number) = numbers.get(id.as_str()) else {
                    continue;
                };
                let time = time.ok_or((line, "expected it within a timestep".to_owned()))?;
                let place = |name: &str, unit: &str, most: f64| {
                    let value = attribute(element, name).and_then(|v| metres(&v));
                    value
                        .filter(|v| v.abs() <= most)
                        .ok_or_else(|| (line, format!("`{}`: expected {name}=\"{unit}\"", short(&id))))
                };
                let at = match plane {
                    Some(plane) => plane.point(Geodetic {
                        lon_deg: place("x", "LONGITUDE", 180.0)?,
                        lat_deg: place("y", "LATITUDE", 90.0)?,
                    }),
                    None => Point {
                        x: place("x", "METRES", f64::INFINITY)?,
                        y: place("y", "METRES", f64::INFINITY)?,
                    },
                };
                in_order(&ways[number], time).map_err(|problem| (line, problem))?;
                push(&mut ways[number], time, at);
            }
            _ => {}
        }
    }
    if let Some((node, _)) = numbers.iter().find(|(_, number)| ways[**number].is_empty()) {
        let problem = format!("no vehicle or person `{}`", short(node));
        return Err((line_at(text.len() as u64), problem));
    }
    Ok(for_each(nodes, &ways))
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok()??;
    Some(attribute.value.into_owned())
}

fn in_order(points: &Timed, time: f64) -> Result<(), String> {
    let at = Instant::ZERO + Duration::from_secs_f64(time);
    match points.last() {
        Some((last, _)) if *last > at => Err(format!("time {time}: expected no less than before")),
        _ => Ok(()),
    }
}

fn push(points: &mut Timed, time: f64, point: Point) {
    points.push((Instant::ZERO + Duration::from_secs_f64(time), point));
}

/// A time of a run.
fn seconds(word: &str) -> Option<f64> {
    word.parse().ok().filter(|t| (0.0..=1e6).contains(t))
}

/// A coordinate, or a speed.
fn metres(word: &str) -> Option<f64> {
    word.parse().ok().filter(|x: &f64| x.abs() <= 1e7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use MobilityFormat::{Bonnmotion, Setdest, SumoFcd};

    fn read(format: MobilityFormat, text: &str, node: &str) -> Result<Timed, Wrong> {
        super::read(format, text, &[node], None).map(|ways| ways[0].clone())
    }

    fn point(s: f64, x: f64, y: f64) -> (Instant, Point) {
        (Instant::ZERO + Duration::from_secs_f64(s), Point { x, y })
    }

    const TCL: &str = r#"# nodes: 2, pause: 1.00
$node_(0) set X_ 10.0
$node_(0) set Y_ 20.0
$node_(0) set Z_ 0.0
$node_(1) set X_ 0.0
$node_(1) set Y_ 0.0
$god_ set-dist 0 1 1
$ns_ at 1.0 "$node_(1) setdest 10.0 0.0 2.0"
$ns_ at 3.0 "$node_(1) setdest 4.0 30.0 5.0"
$ns_ at 4.0 "$god_ set-dist 0 1 2"
"#;

    #[test]
    fn orders_of_ns_2_are_followed_and_overtaken() {
        assert_eq!(read(Setdest, TCL, "0").unwrap(), [point(0.0, 10.0, 20.0)]);
        let way = read(Setdest, TCL, "1").unwrap();
        // the second order comes when 4 of 10 m are done, and takes 6 s
        let expected = [
            point(0.0, 0.0, 0.0),
            point(1.0, 0.0, 0.0),
            point(3.0, 4.0, 0.0),
            point(3.0, 4.0, 0.0),
            point(9.0, 4.0, 30.0),
        ];
        assert_eq!(way, expected);
    }

    #[test]
    fn a_line_of_bonnmotion_is_a_node() {
        let text = "0.0 1.0 2.0 5.0 3.0 4.0\n0.0 7.0 7.0\n";
        assert_eq!(
            read(Bonnmotion, text, "0").unwrap(),
            [point(0.0, 1.0, 2.0), point(5.0, 3.0, 4.0)]
        );
        assert_eq!(read(Bonnmotion, text, "1").unwrap(), [point(0.0, 7.0, 7.0)]);
    }

    #[test]
    fn a_vehicle_of_sumo_is_where_its_timesteps_say() {
        let text = "<?xml version=\"1.0\"?>\n<fcd-export>\n<timestep time=\"1.00\">\n<vehicle id=\"a\" x=\"1\" y=\"2\" speed=\"3\"/>\n\
                    <vehicle id=\"b\" x=\"5\" y=\"6\"/>\n</timestep>\n<timestep time=\"2.00\">\n<vehicle id=\"a\" x=\"4\" y=\"2\"></vehicle>\n\
                    </timestep>\n</fcd-export>\n";
        assert_eq!(
            read(SumoFcd, text, "a").unwrap(),
            [point(1.0, 1.0, 2.0), point(2.0, 4.0, 2.0)]
        );
        assert_eq!(read(SumoFcd, text, "b").unwrap(), [point(1.0, 5.0, 6.0)]);
        assert!(read(SumoFcd, text, "c").unwrap_err().1.contains("`c`"));
    }

    #[test]
    fn several_nodes_are_read_at_once_in_the_order_in_which_they_are_asked_for() {
        let bonnmotion = "0.0 1.0 2.0\n0.0 7.0 7.0\n0.0 3.0 3.0\n";
        let fcd = "<fcd-export><timestep time=\"1\"><person id=\"0\" x=\"1\" y=\"2\"/><vehicle id=\"1\" x=\"5\" y=\"6\"/></timestep>\n\
                   <timestep time=\"2\"><vehicle id=\"1\" x=\"4\" y=\"2\"/></timestep></fcd-export>\n";
        for (format, text, nodes) in [
            (Setdest, TCL, &["1", "0", "1"][..]),
            (Bonnmotion, bonnmotion, &["2", "0", "2"]),
            (SumoFcd, fcd, &["1", "0", "1"]),
        ] {
            let alone: Vec<Timed> = nodes
                .iter()
                .map(|node| read(format, text, node).unwrap())
                .collect();
            assert_ne!(alone[0], alone[1]);
            assert_eq!(
                super::read(format, text, nodes, None).unwrap(),
                alone,
                "{format:?}"
            );
        }
    }

    #[test]
    fn longitude_and_latitude_of_sumo_are_put_on_a_plane() {
        let text = "<timestep time=\"1\"><person id=\"a\" x=\"10.01\" y=\"50.01\"/></timestep>";
        let origin = Geodetic {
            lat_deg: 50.0,
            lon_deg: 10.0,
        };
        let plane = Plane::around(origin);
        let ways = super::read(SumoFcd, text, &["a"], plane.as_ref()).unwrap();
        let (_, at) = ways[0][0];
        assert!(
            (at.x - 716.96).abs() < 0.01 && (at.y - 1112.29).abs() < 0.01,
            "{at:?}"
        );
        let far = text.replace("50.01", "500.1");
        let error = super::read(SumoFcd, &far, &["a"], plane.as_ref()).unwrap_err();
        assert_eq!(error, (1, "`a`: expected y=\"LATITUDE\"".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (format, text, node, line) in [
            (Setdest, "$node_(0) set X_ 1\n", "0", 1),
            (Setdest, "$node_(0) set X_ 1\n$node_(0) set Y_ east\n", "0", 2),
            (
                Setdest,
                "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at 2 \"$node_(0) setdest 1 2\"\n",
                "0",
                3,
            ),
            (Setdest, "puts hello\n", "0", 1),
            (Bonnmotion, "0 1 2 3\n", "0", 1),
            (Bonnmotion, "# head\n0 1 2\n0 1 x\n", "1", 3),
            (Bonnmotion, "5 1 2 4 1 2\n", "0", 1),
            (Bonnmotion, "0 1 2\n", "1", 1),
            (Bonnmotion, "0 1 2\n", "a", 1),
            (SumoFcd, "<fcd-export>\n<timestep time=\"x\">\n", "a", 2),
            (
                SumoFcd,
                "<fcd-export>\n<timestep time=\"1\">\n<vehicle id=\"a\" x=\"1\"/>\n",
                "a",
                3,
            ),
            (SumoFcd, "<fcd-export>\n<timestep time=\"1\"></wrong>\n", "a", 2),
            (SumoFcd, "<vehicle id=\"a\" x=\"1\" y=\"1\"/>", "a", 1),
        ] {
            let error = read(format, text, node).expect_err(text);
            assert_eq!(error.0, line, "{text:?}: {}", error.1);
            assert!(!error.1.is_empty());
        }
    }
}
