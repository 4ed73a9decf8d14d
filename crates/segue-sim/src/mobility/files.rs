//! Ways from files: movements that other tools made.

use super::Point;
use crate::link_trace::{lines, short};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use segue_proto::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Where a node is when: between two of them it moves in a straight line.
pub type Timed = Vec<(Instant, Point)>;

/// The line, from 1, and what is wrong there.
pub type Wrong = (usize, String);

/// Format of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
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

/// The way of `node` in a file.
///
/// # Errors
/// The line, from 1, and what is wrong there.
pub fn read(format: MobilityFormat, text: &str, node: &str) -> Result<Timed, Wrong> {
    let points = match format {
        MobilityFormat::Setdest => setdest(text, node)?,
        MobilityFormat::Bonnmotion => bonnmotion(text, node)?,
        MobilityFormat::SumoFcd => sumo_fcd(text, node)?,
    };
    if points.len() > MOST_POINTS {
        return Err((
            1,
            format!("more than {MOST_POINTS} points of node `{}`", short(node)),
        ));
    }
    Ok(points)
}

/// `$node_(3) set X_ 10.0`, and `$ns_ at 2.0 "$node_(3) setdest 20.0 30.0 1.5"`: from that time on towards a point, at
/// metres per second. A new order comes in the middle of the way of the last.
fn setdest(text: &str, node: &str) -> Result<Timed, Wrong> {
    let name = format!("$node_({node})");
    let mut at = [None, None];
    let mut orders: Vec<(usize, f64, Point, f64)> = Vec::new();
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
                match axis {
                    _ if who != name => {}
                    "X_" => at[0] = Some(value),
                    "Y_" => at[1] = Some(value),
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
                if who == name {
                    orders.push((number, time, Point { x, y }, speed));
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
    let [Some(x), Some(y)] = at else {
        return Err((
            1,
            format!(
                "no `{name} set X_` and `set Y_`: expected where node `{}` begins",
                short(node)
            ),
        ));
    };
    let mut here = Point { x, y };
    let mut points = vec![(Instant::ZERO, here)];
    for (index, (number, time, to, speed)) in orders.iter().enumerate() {
        if index > 0 && *time < orders[index - 1].1 {
            return Err((
                *number,
                "expected orders of a node in the order of time".to_owned(),
            ));
        }
        let until = orders.get(index + 1).map_or(f64::INFINITY, |next| next.1);
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

fn bonnmotion(text: &str, node: &str) -> Result<Timed, Wrong> {
    let wanted: usize = node.parse().map_err(|_| {
        let problem = format!(
            "node `{}`: expected a number, from 0: lines are nodes",
            short(node)
        );
        (1, problem)
    })?;
    let all = lines(text).count();
    let (number, line) = lines(text).nth(wanted).ok_or_else(|| {
        (
            all.max(1),
            format!("node {wanted}: expected less than {all}, the number of nodes"),
        )
    })?;
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
fn sumo_fcd(text: &str, node: &str) -> Result<Timed, Wrong> {
    let mut reader = Reader::from_str(text);
    let mut points = Timed::new();
    let mut time: Option<f64> = None;
    let line_at = |position: u64| {
        let end = (position as usize).min(text.len());
        text.as_bytes()[..end].iter().filter(|b| **b == b'\n').count() + 1
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
            "vehicle" | "person" if attribute(element, "id").as_deref() == Some(node) => {
                let time = time.ok_or((line, "expected it within a timestep".to_owned()))?;
                let place = |name: &str| {
                    let value = attribute(element, name).and_then(|v| metres(&v));
                    value.ok_or_else(|| (line, format!("`{}`: expected {name}=\"METRES\"", short(node))))
                };
                let at = Point {
                    x: place("x")?,
                    y: place("y")?,
                };
                in_order(&points, time).map_err(|problem| (line, problem))?;
                push(&mut points, time, at);
            }
            _ => {}
        }
    }
    if points.is_empty() {
        let problem = format!("no vehicle or person `{}`", short(node));
        return Err((line_at(text.len() as u64), problem));
    }
    Ok(points)
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
