use super::*;
use crate::mobility::geography::Geodetic;
use core::f64::consts::{PI, TAU};
use segue_proto::Duration;

const SHELL: Shell = Shell {
    altitude_m: 550e3,
    inclination_deg: 53.0,
    planes: 72,
    satellites_per_plane: 22,
    phasing: 1,
};

fn degrees(angle: f64) -> f64 {
    angle * 360.0 / TAU
}

fn at(lat_deg: f64, lon_deg: f64) -> Place {
    Place::at(Geodetic { lat_deg, lon_deg })
}

fn plan() -> Plan {
    Plan {
        shell: SHELL,
        begins_s: 0.0,
        user: at(48.1, 11.6),
        gateway: at(50.1, 8.7),
        least_elevation: 25.0 * PI / 180.0,
        at_once: 2,
    }
}

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// SpaceX's own figure for beams down to 25 degrees from 550 km is a radius of 940.7 km on the ground (SAT-MOD-20181108-00083,
/// as Hypatia's `main_starlink_550.py` quotes it). The slant range follows from it by the law of sines.
#[test]
fn slant_range_of_550_km() {
    assert!((slant_range_m(550e3, PI / 2.0) - 550e3).abs() < 1.0);
    let low = 25.0 * PI / 180.0;
    let range = slant_range_m(550e3, low);
    assert!((range - 1123.3e3).abs() < 0.5e3, "{range}");
    let sine = range * libm::cos(low) / (EARTH_RADIUS_M + 550e3);
    let on_ground = EARTH_RADIUS_M * libm::asin(sine);
    assert!((on_ground - 940.7e3).abs() < 0.5e3, "{on_ground}");
    let horizon = slant_range_m(550e3, 0.0);
    let tangent = libm::sqrt((EARTH_RADIUS_M + 550e3).powi(2) - EARTH_RADIUS_M.powi(2));
    assert!((horizon - tangent).abs() < 1.0);
}

/// Kepler's third law: 95.6 minutes, 15 revolutions a day, as catalogues have Starlink's first shell; the Earth turns under it.
#[test]
fn period_of_550_km() {
    let minutes = SHELL.period_s() / 60.0;
    assert!((minutes - 95.5).abs() < 0.1, "{minutes}");
    let geostationary = Shell {
        altitude_m: 42_164_172.4 - EARTH_RADIUS_M,
        inclination_deg: 0.0,
        planes: 1,
        satellites_per_plane: 1,
        phasing: 0,
    };
    // a sidereal day, in which it stays over its place
    assert!((geostationary.period_s() - 86_164.1).abs() < 0.5);
    let [first, later] = [0.0, 40_000.0].map(|t| {
        let one = Satellite { plane: 0, number: 0 };
        geostationary.sight(one, at(0.0, 0.0), t).elevation
    });
    assert!((first - PI / 2.0).abs() < 1e-6 && (later - PI / 2.0).abs() < 1e-3);
}

#[test]
fn a_satellite_passes_overhead_and_its_range_fits_its_elevation() {
    let first = Satellite { plane: 0, number: 0 };
    let above = SHELL.sight(first, at(0.0, 0.0), 0.0);
    assert!((above.elevation - PI / 2.0).abs() < 1e-6 && (above.range_m - 550e3).abs() < 1e-3);
    for t in 0..200 {
        let seen = SHELL.sight(first, at(3.0, 5.0), f64::from(t));
        let range = slant_range_m(550e3, seen.elevation);
        assert!((seen.range_m - range).abs() < 1e-3, "{t} s: {seen:?}, {range}");
    }
    // from 25 degrees up to 25 degrees again: 2 * 8.46 degrees of a circle, at the speed of the orbit, less or more the Earth's
    let over_the_equator = Shell {
        inclination_deg: 90.0,
        ..SHELL
    };
    let seen = (-400..400).filter(|t| {
        let seen = over_the_equator.sight(first, at(0.0, 0.0), f64::from(*t));
        degrees(seen.elevation) >= 25.0
    });
    let pass = seen.count() as f64;
    let expected = SHELL.period_s() * 2.0 * 8.46 / 360.0;
    assert!((pass - expected).abs() < 4.0, "{pass} s, {expected} s");
}

/// Walker 4/2/1: a plane has two satellites half a circle apart, and the second plane is a quarter ahead.
#[test]
fn satellites_of_a_shell_are_spread_as_walker_has_them() {
    let shell = Shell {
        inclination_deg: 90.0,
        planes: 2,
        satellites_per_plane: 2,
        ..SHELL
    };
    assert_eq!(shell.satellites().count(), 4);
    for (plane, number, lat, lon) in [
        (0, 0, 0.0, 0.0),
        (0, 1, 0.0, 180.0),
        (1, 0, 90.0, 0.0),
        (1, 1, -90.0, 0.0),
    ] {
        let seen = shell.sight(Satellite { plane, number }, at(lat, lon), 0.0);
        assert!(
            (seen.elevation - PI / 2.0).abs() < 1e-6,
            "{plane}, {number}: {seen:?}"
        );
    }
}

#[test]
fn slots_keep_the_rhythm_and_have_the_highest_satellites() {
    let rhythm = Rhythm {
        first: seconds(12),
        slot: seconds(15),
    };
    let slots = plan().slots(rhythm, seconds(60));
    let times: Vec<_> = slots.iter().map(|s| (s.from, s.until)).collect();
    let expected = [(0, 12), (12, 27), (27, 42), (42, 57), (57, 60)];
    assert_eq!(times, expected.map(|(a, b)| (seconds(a), seconds(b))));
    for slot in &slots {
        let [best, second] = slot.satellites[..] else {
            panic!("two serve: {slot:?}")
        };
        let height = |s| {
            let middle = match slot.from {
                Duration::ZERO => 4.5,
                from => from.as_secs_f64() + 7.5,
            };
            degrees(SHELL.sight(s, plan().user, middle).elevation)
        };
        assert!(height(best) >= height(second), "{slot:?}");
        assert!(height(second) > 25.0);
        let higher = SHELL.satellites().filter(|s| height(*s) > height(best));
        // one may be higher that the gateway does not see, or not to the end
        assert!(higher.count() <= 1, "{slot:?}");
        let [to_user, to_gateway] = plan().ways_m(best, slot.from);
        assert!((550e3..1123.5e3).contains(&to_user) && (550e3..1123.5e3).contains(&to_gateway));
    }
    let served: std::collections::BTreeSet<_> = slots.iter().map(|s| s.satellites[0]).collect();
    assert!(served.len() >= 2, "{served:?}");
}

#[test]
fn where_no_satellite_passes_none_serves() {
    let north = Plan {
        user: at(75.0, 0.0),
        gateway: at(75.0, 0.0),
        ..plan()
    };
    let rhythm = Rhythm {
        first: seconds(15),
        slot: seconds(15),
    };
    let slots = north.slots(rhythm, seconds(300));
    assert_eq!(slots.len(), 20);
    assert!(slots.iter().all(|s| s.satellites.is_empty()));
}
