//! What is refused of a way, and what is drawn.

use super::*;
use crate::scenario::Scenario;

const WALKERS: &str = include_str!("../../../../../scenarios/populations/walkers.toml");

fn with(mobility: &str, more: &[(&str, &str)]) -> Result<Scenario, String> {
    let set = [("mobile.0.mobility", mobility), ("thirds", "1")];
    let set = set.iter().chain(more);
    let set: Vec<_> = set.map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Scenario::from_toml(WALKERS, "walkers.toml", &set).map_err(crate::scenario::tests::line)
}

const AREA: &str = "area = [[\"0 m\", \"0 m\"], [\"600 m\", \"400 m\"]]";

#[test]
fn what_a_model_cannot_do_with_is_refused_by_its_key() {
    for (mobility, expected) in [
        ("{ }", ": expected the key `file` or the key `model`"),
        (
            "{ file = \"a\", model = \"random-waypoint\" }",
            "model: expected either `file` or `model`",
        ),
        (
            "{ file = \"a\", node = \"0\" }",
            ": expected the key `format` too",
        ),
        (
            "{ file = \"a\", format = \"setdest\", node = \"0\", pause = \"1 s\" }",
            "pause: a file does not read it",
        ),
        (
            "{ file = \"a\", format = \"setdest\", node = \"0\", origin = { lat = \"1 deg\", lon = \"1 deg\" } }",
            "origin: is of format \"sumo-fcd\"",
        ),
        (
            "{ file = \"a\", format = \"sumo-fcd\", node = \"0\", origin = { lat = \"1 deg\", lon = \"181 deg\" } }",
            "origin: expected a latitude from -89 deg",
        ),
        (
            "{ model = \"random-waypont\" }",
            "mobility.model: `random-waypont`: expected one of random-waypoint",
        ),
        (
            "{ model = \"random-waypoint\", speed = \"1 m/s\" }",
            ": expected the key `area` too",
        ),
        (
            "{ model = \"random-waypoint\", AREA }",
            ": expected the key `speed` too",
        ),
        (
            "{ model = \"random-waypoint\", AREA, speed = \"1 m/s\", pase = \"1 s\" }",
            "unknown key: did you mean `pause`?",
        ),
        (
            "{ model = \"random-waypoint\", AREA, speed = \"1 m/s\", node = \"1\" }",
            "node: model \"random-waypoint\" does not read it",
        ),
        (
            "{ model = \"random-waypoint\", AREA, speed = \"0 m/s..1 m/s\" }",
            "speed: expected speeds from 0.001 m/s",
        ),
        (
            "{ model = \"random-waypoint\", AREA, speed = \"2 m/s..1 m/s\" }",
            "expected a range with the lower speed first",
        ),
        (
            "{ model = \"random-waypoint\", AREA, speed = 1.4 }",
            "speed: `1.4` has no unit",
        ),
        (
            "{ model = \"random-waypoint\", AREA, speed = \"1 m/s\", pause = 3 }",
            "pause: `3` has no unit",
        ),
        (
            "{ model = \"random-waypoint\", area = [[\"0 m\", \"0 m\"], [\"600 m\", \"0 m\"]], speed = \"1 m/s\" }",
            "area: expected two opposite corners",
        ),
        (
            "{ model = \"random-waypoint\", area = [[\"0 m\", \"0 m\"], [\"60000 km\", \"1 m\"]], speed = \"1 m/s\" }",
            "area: expected coordinates within",
        ),
        (
            "{ model = \"gauss-markov\", AREA, speed = \"1 m/s\", speed_deviation = \"0.2 m/s\", direction_deviation = \"30 deg\", }",
            ": expected the key `alpha` too",
        ),
        (
            "{ model = \"gauss-markov\", AREA, speed = \"1 m/s\", speed_deviation = \"0.2 m/s\", direction_deviation = \"30 deg\", alpha = 1.5 }",
            "alpha: expected 0 to 1",
        ),
        (
            "{ model = \"gauss-markov\", AREA, speed = \"1 m/s\", speed_deviation = \"0.2 m/s\", direction_deviation = \"30 deg\", alpha = 0.5, step = \"1 ms\" }",
            "step: expected 10 ms to 3600 s",
        ),
        (
            "{ model = \"gauss-markov\", AREA, speed = \"1 m/s\", speed_deviation = \"0.2 m/s\", direction_deviation = \"30 deg\", alpha = 0.5, direction = 90 }",
            "direction: `90` has no unit: expected an angle",
        ),
        (
            "{ model = \"gauss-markov\", AREA, speed = \"1 m/s\", speed_deviation = \"0.2 m/s\", direction_deviation = \"30 deg\", alpha = 0.5, direction = \"north\" }",
            "direction: `north` is not a number with a unit: expected an angle",
        ),
        (
            "{ model = \"gauss-markov\", AREA, speed = \"1 m/s\", speed_deviation = \"0.2 m/s\", direction_deviation = \"30 deg\", alpha = 0.5, direction = \"400 deg\" }",
            "direction: expected -360 deg to 360 deg",
        ),
        (
            "{ model = \"gauss-markov\", AREA, speed = \"1 m/s\", speed_deviation = \"0.2 m/s\", direction_deviation = \"-30 deg\", alpha = 0.5 }",
            "direction_deviation: expected 0 deg to 360 deg",
        ),
        (
            "{ model = \"gauss-markov\", AREA, speed = \"1 m/s..2 m/s\", speed_deviation = \"0.2 m/s\", direction_deviation = \"30 deg\", alpha = 0.5 }",
            "speed: a range: expected the mean",
        ),
        (
            "{ model = \"gauss-markov\", AREA, speed = \"1 m/s\", speed_deviation = \"0.2 m/s\", direction_deviation = \"30 deg\", alpha = 0.5, pause = \"1 s\" }",
            "pause: model \"gauss-markov\" does not read it",
        ),
        (
            "{ model = \"manhattan\", AREA, speed = \"1 m/s\", roads = [\"100 m\", \"50 m\"], }",
            "unknown key",
        ),
        (
            "{ model = \"manhattan\", AREA, speed = \"1 m/s\", streets = [\"100 m\", \"50 m\"], turns = [0.5, 0.5, 0.5] }",
            "turns: expected shares of straight on, left and right",
        ),
        (
            "{ model = \"manhattan\", AREA, speed = \"1 m/s\", streets = [\"100 m\", \"50 m\"], turns = [1.5, -0.5, 0.0] }",
            "turns: expected 0 to 1",
        ),
        (
            "{ model = \"manhattan\", AREA, speed = \"1 m/s\", streets = [\"100 m\", \"50 m\"], turns = [0.5, 0.5] }",
            "turns: a list of 2",
        ),
        (
            "{ model = \"manhattan\", AREA, speed = \"1 m/s\", streets = [\"700 m\", \"50 m\"], }",
            "streets: expected distances of at least 1 m",
        ),
        (
            "{ model = \"manhattan\", AREA, speed = \"1 m/s\", streets = [\"100 m\", \"50 m\"], update = \"0 m\" }",
            "update: expected at least 0.1 m",
        ),
        (
            "{ model = \"manhattan\", AREA, speed = \"1 m/s\", streets = [\"100 m\", \"50 m\"], speed_change = -1.0 }",
            "speed_change: expected 0 to 1",
        ),
        (
            "{ model = \"random-waypoint\", area = [[\"5 km\", \"0 m\"], [\"6 km\", \"1 km\"]], speed = \"1 m/s\" }",
            "area: out of reach of every cell",
        ),
    ] {
        let error = with(&mobility.replace("AREA", AREA), &[]).expect_err(mobility);
        assert!(error.contains(expected), "{mobility}: {error}");
        let of_key = error.starts_with("--set: mobile[0].mobility");
        assert!(of_key && !error.contains('\n'), "{error}");
    }
    let model = format!("{{ model = \"random-waypoint\", {AREA}, speed = \"1 m/s\" }}");
    for (key, value) in [("to", "[\"1 m\", \"1 m\"]"), ("start", "3 s"), ("speed", "1 m/s")] {
        let error = with(&model, &[(&format!("mobile.0.{key}"), value)]).expect_err(key);
        assert!(error.contains("expected nothing here"), "{error}");
    }
}

#[test]
fn a_scenario_with_a_model_is_read_again_as_it_was_run() {
    for model in [
        "\"random-waypoint\", AREA, speed = \"3 km/h..2 m/s\", pause = \"0 s..30 s\"",
        "\"gauss-markov\", AREA, speed = \"1 m/s\", speed_deviation = \"0.1 m/s\", direction = \"-90.5 deg\", \
         direction_deviation = \"30 deg\", alpha = 0.9, step = \"500 ms\"",
        "\"manhattan\", AREA, streets = [\"60 m\", \"0.05 km\"], speed = \"3 km/h\", speed_deviation = \"0.3 m/s\", update = \"4 m\", \
         speed_change = 0.1, turns = [0.4, 0.3, 0.3]",
    ] {
        let scenario = with(&format!("{{ model = {} }}", model.replace("AREA", AREA)), &[]).unwrap();
        let again = Scenario::from_toml(&scenario.to_toml(), "again.toml", &[]).unwrap();
        assert_eq!(again.file().mobile, scenario.file().mobile);
    }
}

#[test]
fn a_population_draws_parameters_of_a_model_for_each_host() {
    let model = format!("{{ model = \"random-waypoint\", {AREA}, speed = \"normal(1.4 m/s, 0.2 m/s)\" }}");
    let scenario = with(&model, &[("thirds", "3")]).unwrap();
    let speed = |n: usize| match model_of(scenario.file().mobile.iter().nth(n).unwrap()) {
        Some(Model::RandomWaypoint(p)) => p.speed,
        other => panic!("{other:?}"),
    };
    let speeds = [speed(0), speed(1), speed(2)];
    assert!(
        speeds
            .iter()
            .all(|[least, greatest]| least == greatest && (0.5..2.3).contains(least))
    );
    assert!(speeds[0] != speeds[1] && speeds[1] != speeds[2]);
}

#[test]
fn hosts_begin_where_the_seed_and_their_names_say() {
    let scenario = with(
        &format!("{{ model = \"random-waypoint\", {AREA}, speed = \"1 m/s\" }}"),
        &[],
    )
    .unwrap();
    let places = |seed| {
        let begun = begun(scenario.file(), seed).expect("a model");
        begun.mobile.iter().map(|m| m.from).collect::<Vec<_>>()
    };
    let own: Vec<_> = scenario.file().mobile.iter().map(|m| m.from).collect();
    assert_eq!(places(1), own);
    let [first, second] = [places(1), places(2)];
    assert!(first[0] != first[1] && first[1] != first[2]);
    assert!((0..3).all(|host| first[host] != second[host]));
}
