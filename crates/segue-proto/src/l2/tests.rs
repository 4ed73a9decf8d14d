use super::*;
use crate::contract::{CellId, InterfaceId, LinkEvent};
use crate::random::Stream;
use crate::time::{Duration, Instant};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, MapDeserializer, StrDeserializer};

const IF: InterfaceId = InterfaceId(1);
const CELL: CellId = CellId(2);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn machine(latency: Latency, loss_detection: LossDetection) -> Layer2 {
    let config = Config {
        latency,
        loss_detection,
        beacon_period: Duration::from_millis(20),
        beacon_loss: 3,
    };
    Layer2::new(IF, config, Stream::new(1, "l2"))
}

fn up() -> L2Event {
    L2Event::Link(LinkEvent::Up {
        interface: IF,
        cell: CELL,
    })
}

fn down() -> L2Event {
    L2Event::Link(LinkEvent::Down {
        interface: IF,
        cell: CELL,
    })
}

/// All events there are.
fn events(l2: &mut Layer2) -> Vec<L2Event> {
    core::iter::from_fn(|| l2.poll_event()).collect()
}

#[test]
fn link_comes_up_after_the_latency_and_not_before() {
    let mut l2 = machine(
        Latency::fixed(Duration::from_millis(200)),
        LossDetection::Immediate,
    );
    l2.attach(at(1000), CELL);
    assert_eq!(
        events(&mut l2),
        [L2Event::PhaseStarted {
            cell: CELL,
            phase: Phase::Whole
        }]
    );
    assert_eq!(l2.poll_timeout(), Some(at(1200)));
    l2.handle_timeout(at(1199));
    assert_eq!(events(&mut l2), []);
    assert_eq!(l2.attached_cell(), None);
    l2.handle_timeout(at(1200));
    assert_eq!(events(&mut l2), [up()]);
    assert_eq!(l2.attached_cell(), Some(CELL));
    assert_eq!(l2.poll_timeout(), None);
}

#[test]
fn no_latency_is_up_at_once() {
    let mut l2 = machine(Latency::default(), LossDetection::Immediate);
    l2.attach(at(5), CELL);
    assert_eq!(events(&mut l2), [up()]);
}

#[test]
fn phases_add_up_and_are_shown_one_by_one() {
    let ms = |n| DurationRange::fixed(Duration::from_millis(n));
    let phases = Phases {
        detection: ms(100),
        probe: ms(300),
        authentication: ms(0),
        reassociation: ms(5),
    };
    let mut l2 = machine(Latency::Phases(phases), LossDetection::Immediate);
    l2.attach(at(0), CELL);
    let mut seen = Vec::new();
    while let Some(time) = l2.poll_timeout() {
        l2.handle_timeout(time);
        seen.push(time);
    }
    assert_eq!(seen, [at(100), at(400), at(405)]);
    let phase = |phase| L2Event::PhaseStarted { cell: CELL, phase };
    assert_eq!(
        events(&mut l2),
        [
            phase(Phase::Detection),
            phase(Phase::Probe),
            phase(Phase::Reassociation),
            up()
        ]
    );
}

#[test]
fn a_late_driver_passes_every_phase_at_its_own_time() {
    let ms = |n| DurationRange::fixed(Duration::from_millis(n));
    let phases = Phases {
        detection: ms(10),
        probe: ms(10),
        authentication: ms(10),
        ..Phases::default()
    };
    let mut l2 = machine(Latency::Phases(phases), LossDetection::Immediate);
    l2.attach(at(0), CELL);
    l2.handle_timeout(at(25));
    assert_eq!(l2.poll_timeout(), Some(at(30)));
}

#[test]
fn leaving_the_cell_while_attaching_aborts() {
    let mut l2 = machine(
        Latency::fixed(Duration::from_millis(500)),
        LossDetection::MissedBeacons,
    );
    l2.attach(at(0), CELL);
    events(&mut l2);
    l2.handle_out_of_reach(at(100), CellId(9));
    assert_eq!(events(&mut l2), []);
    l2.handle_out_of_reach(at(300), CELL);
    assert_eq!(events(&mut l2), [L2Event::Aborted { cell: CELL }, down()]);
    l2.handle_timeout(at(500));
    assert_eq!(events(&mut l2), []);
    assert_eq!(l2.state(), State::Detached);
}

#[test]
fn loss_is_noticed_at_once_when_configured_so() {
    let mut l2 = machine(Latency::default(), LossDetection::Immediate);
    l2.attach(at(0), CELL);
    l2.handle_out_of_reach(at(50), CELL);
    assert_eq!(events(&mut l2), [up(), down()]);
}

#[test]
fn loss_is_noticed_when_three_beacons_did_not_come() {
    let mut l2 = machine(Latency::default(), LossDetection::MissedBeacons);
    l2.attach(at(0), CELL);
    l2.handle_beacon(at(20), CELL, -60.0);
    l2.handle_beacon(at(40), CellId(7), -50.0);
    l2.handle_out_of_reach(at(41), CELL);
    // The third beacon after 20 ms is due at 80 ms, and counts as missed half a period later.
    assert_eq!(l2.poll_timeout(), Some(at(90)));
    events(&mut l2);
    l2.handle_timeout(at(89));
    assert_eq!(events(&mut l2), []);
    l2.handle_timeout(at(90));
    assert_eq!(events(&mut l2), [down()]);
}

#[test]
fn one_radio_gives_up_a_cell_to_attach_to_another() {
    let mut l2 = machine(Latency::default(), LossDetection::Immediate);
    l2.attach(at(0), CELL);
    l2.attach(at(1), CELL);
    assert_eq!(events(&mut l2), [up()]);
    l2.attach(at(2), CellId(3));
    assert_eq!(
        events(&mut l2),
        [
            down(),
            L2Event::Link(LinkEvent::Up {
                interface: IF,
                cell: CellId(3)
            })
        ]
    );
}

#[test]
fn a_range_is_drawn_within_its_ends_and_reaches_both_halves() {
    let range: DurationRange = "40 ms..50 ms".parse().unwrap();
    let mut stream = Stream::new(3, "range");
    let drawn: Vec<_> = (0..200).map(|_| range.draw(&mut stream)).collect();
    assert!(drawn.iter().all(|d| (range.min()..=range.max()).contains(d)));
    assert!(drawn.iter().any(|d| *d < Duration::from_millis(45)));
    assert!(drawn.iter().any(|d| *d > Duration::from_millis(45)));
}

#[test]
fn latency_is_read_from_a_text_or_a_table() {
    let text: StrDeserializer<'_, ValueError> = "200 ms".into_deserializer();
    assert_eq!(
        Latency::deserialize(text),
        Ok(Latency::fixed(Duration::from_millis(200)))
    );
    let table = |entries: &[(&'static str, &'static str)]| {
        let map: MapDeserializer<'_, _, ValueError> = MapDeserializer::new(entries.iter().copied());
        Latency::deserialize(map)
    };
    let phases = Phases {
        probe: "40 ms..350 ms".parse().unwrap(),
        reassociation: DurationRange::fixed(Duration::from_millis(5)),
        ..Phases::default()
    };
    assert_eq!(
        table(&[("probe", "40 ms..350 ms"), ("reassociation", "5 ms")]),
        Ok(Latency::Phases(phases))
    );
    assert!(
        table(&[("proba", "40 ms")])
            .unwrap_err()
            .to_string()
            .contains("unknown field `proba`")
    );
    assert!(
        table(&[("probe", "50 ms..40 ms")])
            .unwrap_err()
            .to_string()
            .contains("shorter duration first")
    );
    let number: serde::de::value::U64Deserializer<ValueError> = 200_u64.into_deserializer();
    assert!(
        Latency::deserialize(number)
            .unwrap_err()
            .to_string()
            .contains("has no unit")
    );
}
