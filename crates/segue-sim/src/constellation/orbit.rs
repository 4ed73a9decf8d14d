//! Satellites of a Walker shell, and how they are seen from the ground.

use super::EARTH_RADIUS_M;
use crate::mobility::geography::Geodetic;
use core::f64::consts::TAU;

/// Geocentric gravitational constant (WGS 84), m^3/s^2.
const GM: f64 = 3.986_004_418e14;
/// Rotation of the Earth (WGS 84), rad/s.
const ROTATION: f64 = 7.292_115e-5;
const DEGREE: f64 = TAU / 360.0;

/// A shell of satellites in Walker's notation i: T/P/F (Walker, "Satellite constellations", Journal of the British Interplanetary
/// Society, 1984): T satellites in P planes, whose nodes are spread evenly around the equator, in circles with the inclination i; a
/// satellite is F / T of a circle ahead of its neighbour in the plane to the west.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shell {
    /// Height above ground, metres.
    pub altitude_m: f64,
    /// Degrees.
    pub inclination_deg: f64,
    /// P.
    pub planes: u32,
    /// T / P.
    pub satellites_per_plane: u32,
    /// F.
    pub phasing: u32,
}

/// A satellite of a shell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Satellite {
    /// Number of its plane, from 0.
    pub plane: u32,
    /// Number in its plane, from 0.
    pub number: u32,
}

/// A place on the ground.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Place {
    /// From the centre of the Earth, of length 1.
    up: [f64; 3],
}

/// How a satellite is seen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sight {
    /// Above the horizon, radians.
    pub elevation: f64,
    /// Slant range, metres.
    pub range_m: f64,
}

impl Shell {
    /// All of its satellites.
    pub fn satellites(self) -> impl Iterator<Item = Satellite> {
        let of_plane =
            move |plane| (0..self.satellites_per_plane).map(move |number| Satellite { plane, number });
        (0..self.planes).flat_map(of_plane)
    }

    /// Time of a revolution, by Kepler's third law, seconds.
    #[must_use]
    pub fn period_s(self) -> f64 {
        TAU / self.motion()
    }

    /// rad/s.
    fn motion(self) -> f64 {
        let axis = EARTH_RADIUS_M + self.altitude_m;
        libm::sqrt(GM / (axis * axis * axis))
    }

    /// Where a satellite is at a time, seconds, in axes that turn with the Earth, metres. At zero the first one crosses the equator
    /// northwards at the prime meridian.
    fn position(self, satellite: Satellite, time_s: f64) -> [f64; 3] {
        let (planes, per_plane) = (f64::from(self.planes), f64::from(self.satellites_per_plane));
        let plane = f64::from(satellite.plane);
        let node = TAU * plane / planes - ROTATION * time_s;
        let apart =
            f64::from(satellite.number) / per_plane + f64::from(self.phasing) * plane / (planes * per_plane);
        let along = TAU * apart + self.motion() * time_s;
        let inclination = self.inclination_deg * DEGREE;
        let (sin_u, cos_u) = (libm::sin(along), libm::cos(along));
        let (sin_n, cos_n) = (libm::sin(node), libm::cos(node));
        let (sin_i, cos_i) = (libm::sin(inclination), libm::cos(inclination));
        let radius = EARTH_RADIUS_M + self.altitude_m;
        [
            radius * (cos_n * cos_u - sin_n * sin_u * cos_i),
            radius * (sin_n * cos_u + cos_n * sin_u * cos_i),
            radius * sin_u * sin_i,
        ]
    }

    /// How a satellite is seen from a place at a time, seconds.
    #[must_use]
    pub fn sight(self, satellite: Satellite, from: Place, time_s: f64) -> Sight {
        let at = self.position(satellite, time_s);
        let way: [f64; 3] = core::array::from_fn(|i| at[i] - EARTH_RADIUS_M * from.up[i]);
        let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let range_m = libm::sqrt(dot(way, way));
        Sight {
            elevation: libm::asin(dot(way, from.up) / range_m),
            range_m,
        }
    }
}

impl Place {
    /// The place at a latitude and longitude.
    #[must_use]
    pub fn at(point: Geodetic) -> Self {
        let (lat, lon) = (point.lat_deg * DEGREE, point.lon_deg * DEGREE);
        let cos = libm::cos(lat);
        Self {
            up: [cos * libm::cos(lon), cos * libm::sin(lon), libm::sin(lat)],
        }
    }
}
