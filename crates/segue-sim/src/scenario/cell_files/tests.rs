//! Rows that are kept, rows that are refused, and what becomes of them.

use super::*;
use crate::scenario::Scenario;

const CITY: &str = include_str!("../../../../../scenarios/populations/city.toml");
const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../scenarios/populations/city.toml"
);

fn city(set: &[(&str, &str)]) -> Result<Scenario, String> {
    let set: Vec<_> = set
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    Scenario::from_toml(CITY, FILE, &set).map_err(|e| e.to_string().replace(FILE, "city.toml"))
}

#[test]
fn each_row_that_is_kept_is_a_cell_with_a_router_behind_that_of_its_area() {
    let scenario = city(&[]).unwrap();
    let s = scenario.file();
    let names: Vec<&str> = s.cell.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), 9, "{names:?}");
    assert_eq!([names[0], names[8]], ["LTE-1-1-101-256001", "LTE-1-1-102-256261"]);
    assert!(
        s.cell
            .iter()
            .all(|c| c.router == c.name && c.bearer.is_some() && c.overlaid)
    );
    let metres = |n: usize| (point(&s.cell[n]), s.cell[n].radius.metres());
    // at the origin
    assert_eq!(metres(8), ([0.0, 0.0], 2900.0));
    let ([x, y], radius) = metres(0);
    // 0.0062 degrees of longitude west, 0.0003 of latitude south
    assert!((x + 468.28).abs() < 0.1 && (y + 33.35).abs() < 0.1, "{x} {y}");
    assert_eq!(radius, 620.0);
    let routers: Vec<&str> = s.router.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(routers.len(), 1 + 2 + 9);
    let between = |a: &str, b: &str| {
        let link = s.link.iter().find(|l| l.between == [a, b]);
        link.unwrap_or_else(|| panic!("no link from {a} to {b}"))
            .rate
            .bits_per_second()
    };
    assert_eq!(between("core", "LTE-1-1-102"), 10_000_000_000);
    assert_eq!(between("LTE-1-1-102", "LTE-1-1-102-256261"), 1_000_000_000);
    assert_eq!(s.link.len(), 1 + 2 + 9);
}

fn point(cell: &crate::scenario::model::CellEntry) -> [f64; 2] {
    cell.position.map(|c| c.metres())
}

#[test]
fn the_scenario_as_run_needs_no_file() {
    let scenario = city(&[]).unwrap();
    let again = Scenario::from_toml(&scenario.to_toml(), "elsewhere/again.toml", &[]).unwrap();
    assert_eq!(again.file(), scenario.file());
}

#[test]
fn rows_are_chosen_by_radio_network_box_and_samples() {
    let count = |set: &[(&str, &str)]| city(set).map(|s| s.file().cell.len());
    let key = |key: &str| format!("cell.0.from_csv.{key}");
    assert_eq!(count(&[(&key("net"), "[2]")]), Ok(2));
    assert_eq!(count(&[(&key("net"), "[1, 2]")]), Ok(11));
    assert_eq!(count(&[(&key("radio"), "[\"UMTS\", \"GSM\"]")]), Ok(2));
    assert_eq!(count(&[(&key("samples_at_least"), "200")]), Ok(6));
    assert_eq!(count(&[(&key("within.north"), "47.3712 deg")]), Ok(6));
    let all = [
        (&key("samples_at_least")[..], "0"),
        (&key("radius_at_least"), "300 m"),
    ];
    assert_eq!(count(&all), Ok(10));
    let least = city(&all).unwrap();
    assert_eq!(least.file().cell[9].radius.metres(), 300.0);
    let most = city(&[(&key("radius_at_most"), "600 m")]).unwrap();
    assert_eq!(most.file().cell[8].radius.metres(), 600.0);
}

#[test]
fn technologies_follow_from_radios_and_the_mean_is_the_origin_where_none_is_given() {
    let text = CITY
        .replace("radio = [\"LTE\"]\n", "")
        .replace("origin = { lat = \"47.3705 deg\", lon = \"8.5460 deg\" }\n", "")
        .replace(
            "area_link = { rate = \"10 Gbit/s\", delay = \"3 ms\", queue = \"1000 packets\" }\n",
            "",
        );
    let scenario = Scenario::from_toml(&text, FILE, &[]).unwrap();
    let cells = &scenario.file().cell;
    let technology = |n: usize| Value::try_from(cells[n].technology.unwrap()).unwrap();
    assert_eq!(
        [8, 9, 10].map(|n| technology(n).as_str().unwrap().to_owned()),
        ["lte", "umts", "gprs"]
    );
    for axis in 0..2 {
        let sum: f64 = cells.iter().map(|cell| point(cell)[axis]).sum();
        assert!(sum.abs() < 0.1, "{sum}");
    }
    assert_eq!(scenario.file().router.len(), 1 + 11);
}

#[test]
fn what_is_wrong_with_the_entry_is_said_with_its_key() {
    for (from, to, expected) in [
        (
            "radio = [\"LTE\"]",
            "radio = [\"NR\"]",
            "city.toml: cell[0].from_csv: 0 rows of `city.csv` are kept: expected 1 to",
        ),
        (
            "file = \"city.csv\"",
            "file = \"town.csv\"",
            "city.toml: cell[0].from_csv.file: `town.csv`: cannot be read",
        ),
        (
            "file = \"city.csv\"",
            "",
            "city.toml: cell[0].from_csv: expected the key `file` too",
        ),
        (
            "net = [1]",
            "nets = [1]",
            "city.toml: cell[0].from_csv.nets: unknown key: did you mean `net`?",
        ),
        (
            "net = [1]",
            "net = [\"one\"]",
            "city.toml: cell[0].from_csv.net[0]: ",
        ),
        (
            "south = \"47.36 deg\"",
            "south = 47.36",
            "city.toml: cell[0].from_csv.within.south: `47.36` has no unit: expected an angle",
        ),
        (
            "lat = \"47.3705 deg\"",
            "lat = \"95 deg\"",
            "city.toml: cell[0].from_csv.origin: expected a latitude from -89 deg",
        ),
        (
            "[[cell]]\nrouter = \"core\"",
            "[[cell]]",
            "city.toml: cell[0].router: expected the name of the router that",
        ),
        (
            "[[cell]]\nrouter = \"core\"",
            "[[cell]]\nrouter = \"cor\"",
            "city.toml: cell[0].from_csv: `cor`: expected the name of a host or router",
        ),
        (
            "[[cell]]\nrouter",
            "[[cell]]\nname = \"x\"\nrouter",
            "city.toml: cell[0].name: the cells are those of `from_csv`: expected nothing here",
        ),
        (
            "[[cell]]\nrouter",
            "[[cell]]\nra_interval_min = \"x\"\nrouter",
            "city.toml: cell[0].ra_interval_min: ",
        ),
        (
            "rate = \"1 Gbit/s\", delay = \"2 ms\"",
            "rate = \"1 Gbit/s\"",
            "city.toml: cell[0].from_csv: expected the key `delay` too",
        ),
    ] {
        assert!(CITY.contains(from), "{from}");
        let error = Scenario::from_toml(&CITY.replacen(from, to, 1), FILE, &[]).expect_err(to);
        let error = error.to_string().replace(FILE, "city.toml");
        assert!(error.starts_with(expected) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn what_is_wrong_with_a_row_is_said_with_its_line_and_column() {
    let section: FromCsv = "file = \"a\"\nlink = {}"
        .parse::<Table>()
        .unwrap()
        .try_into()
        .unwrap();
    let good = "LTE,1,1,101,256001,11,8.5,47.3,620,812,1,1459813819,1761813819,0\n";
    assert_eq!(rows_of(good, &section).map(|rows| rows.len()), Ok(1));
    let heading = "lat,lon,range,radio,mcc,net,area,cell,samples\n";
    let rows = rows_of(
        &format!("{heading}47.5,8.5,10,NR,1,2,3,68719476735,7\n"),
        &section,
    )
    .unwrap();
    assert_eq!(
        (rows[0].name().as_str(), rows[0].at.lat_deg),
        ("NR-1-2-3-68719476735", 47.5)
    );
    for (text, place, expected) in [
        (
            good.replace("47.3", "97.3"),
            "line 1: lat",
            "`97.3`: expected degrees from -90 to 90",
        ),
        (
            format!("{good}{}", good.replace("8.5", "east")),
            "line 2: lon",
            "`east`: expected degrees",
        ),
        (
            good.replace("LTE", "lte"),
            "line 1: radio",
            "`lte`: expected one of GSM, UMTS, CDMA, LTE, NR",
        ),
        (
            good.replace("256001", "-1"),
            "line 1: cell",
            "`-1`: expected a whole number",
        ),
        (
            good.replace(",620,", ",far,"),
            "line 1: range",
            "`far`: expected metres",
        ),
        (
            good.replace(",620,", ",0,"),
            "line 1: range",
            "`0`: expected more than 0 m, or a `radius_at_least`",
        ),
        (
            good.replace(",812,", ",,"),
            "line 1: samples",
            "``: expected a whole number",
        ),
        (
            format!("# comment\n{good}\n{good}"),
            "line 4",
            "the cell of line 2 again",
        ),
        (
            "LTE,1,1,101\n".to_owned(),
            "line 1",
            "4 columns: expected radio,mcc,net",
        ),
        (heading.replace("net,", ""), "line 1", "`net` is not there"),
    ] {
        let (at, problem) = rows_of(&text, &section).expect_err(&text);
        assert!(at == place && problem.contains(expected), "{at}: {problem}");
    }
}
