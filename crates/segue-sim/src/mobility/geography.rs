//! From latitude and longitude to metres.

use super::Point;

/// A point on the WGS 84 ellipsoid.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Geodetic {
    /// Latitude, degrees north.
    pub lat_deg: f64,
    /// Longitude, degrees east.
    pub lon_deg: f64,
}

/// A plane around an origin: a local equirectangular projection, with the ellipsoid's radii of curvature there.
///
/// A difference of latitude is a length north by the meridian's radius M, one of longitude a length east by that of the parallel,
/// N cos(latitude), both of the origin's latitude (Snyder, "Map Projections: A Working Manual", USGS Professional Paper 1395, 1987,
/// equations 4-18 and 4-20). Around the origin it is exact. Away from it a length from west to east is wrong by the ratio of the
/// cosines: some tan(latitude) times the difference of latitude in radians. At 50 degrees that is 0.2 % at 10 km north or south of the
/// origin, so 19 m at the corner of a square of 20 km, and 0.9 % at 50 km; at 65 degrees 0.3 % and 1.7 %.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plane {
    origin: Geodetic,
    /// Metres a degree, east and north.
    metres: [f64; 2],
}

/// Semi-major axis of WGS 84, metres, and the square of its eccentricity.
const AXIS: f64 = 6_378_137.0;
const ECCENTRICITY_2: f64 = 6.694_379_990_14e-3;
/// Closer to a pole there is no east.
const GREATEST_LATITUDE: f64 = 89.0;
/// What is said of a point that [`Plane::around`] has no plane for.
pub(crate) const NOWHERE: &str =
    "expected a latitude from -89 deg to 89 deg and a longitude from -180 deg to 180 deg";

impl Plane {
    /// The plane around a point; none near a pole, or where there is no such point.
    #[must_use]
    pub fn around(origin: Geodetic) -> Option<Self> {
        let there_is = origin.lat_deg.abs() <= GREATEST_LATITUDE && origin.lon_deg.abs() <= 180.0;
        if !there_is {
            return None;
        }
        let degree = core::f64::consts::PI / 180.0;
        let (sin, cos) = (
            libm::sin(origin.lat_deg * degree),
            libm::cos(origin.lat_deg * degree),
        );
        let flattened = 1.0 - ECCENTRICITY_2 * sin * sin;
        let normal = AXIS / libm::sqrt(flattened);
        let meridian = normal * (1.0 - ECCENTRICITY_2) / flattened;
        Some(Self {
            origin,
            metres: [normal * cos * degree, meridian * degree],
        })
    }

    /// Where a point is: x metres east of the origin, y north.
    #[must_use]
    pub fn point(&self, at: Geodetic) -> Point {
        let mut east = at.lon_deg - self.origin.lon_deg;
        // the other way round is shorter
        if east > 180.0 {
            east -= 360.0;
        } else if east < -180.0 {
            east += 360.0;
        }
        Point {
            x: east * self.metres[0],
            y: (at.lat_deg - self.origin.lat_deg) * self.metres[1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(lat_deg: f64, lon_deg: f64) -> Geodetic {
        Geodetic { lat_deg, lon_deg }
    }

    #[test]
    fn a_degree_is_as_long_as_tables_of_the_ellipsoid_have_it() {
        // metres of a degree of latitude and of longitude
        for (lat, north, east) in [
            (0.0, 110_574.3, 111_319.5),
            (15.0, 110_649.4, 107_550.5),
            (45.0, 111_131.7, 78_846.8),
            (60.0, 111_412.2, 55_800.0),
            (75.0, 111_618.4, 28_902.2),
        ] {
            let plane = Plane::around(at(lat, 20.0)).unwrap();
            // a degree is not short: half of it on each side
            let [a, b] = [-0.005, 0.005].map(|d| plane.point(at(lat + d, 20.0 + d)));
            assert!((100.0 * (b.y - a.y) - north).abs() < 1.0, "{lat}: {}", b.y - a.y);
            assert!((100.0 * (b.x - a.x) - east).abs() < 1.0, "{lat}: {}", b.x - a.x);
        }
    }

    #[test]
    fn what_is_away_from_the_origin_is_wrong_by_no_more_than_is_said() {
        for (lat, km, said) in [
            (50.0, 10.0, 0.002),
            (50.0, 50.0, 0.0097),
            (65.0, 10.0, 0.0035),
            (65.0, 50.0, 0.0175),
        ] {
            let here = Plane::around(at(lat, 5.0)).unwrap();
            let north = lat + km * 1000.0 / here.metres[1];
            let there = Plane::around(at(north, 5.0)).unwrap();
            let wrong = (here.metres[0] / there.metres[0] - 1.0).abs();
            assert!(wrong < said && wrong > 0.8 * said, "{lat}, {km} km: {wrong}");
        }
    }

    #[test]
    fn east_is_the_shorter_way_round() {
        let plane = Plane::around(at(0.0, 179.9)).unwrap();
        assert!((plane.point(at(0.0, -179.9)).x - 22_263.9).abs() < 1.0);
        assert_eq!(Plane::around(at(89.5, 0.0)), None);
        assert_eq!(Plane::around(at(f64::NAN, 0.0)).map(|_| ()), None);
    }
}
