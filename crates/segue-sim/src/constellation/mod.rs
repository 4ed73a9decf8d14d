//! Satellites in low Earth orbits over a place on the ground: where they are, and which of them serves when.
//!
//! The Earth is a sphere, and orbits are circles that keep their planes: over the minutes of a run what that leaves out (flattening,
//! drag, the precession of nodes, some 5 degrees a day) moves a satellite by less than what a constellation is kept to.

mod orbit;
mod plan;

pub use orbit::{Place, Satellite, Shell, Sight};
pub use plan::{Plan, Rhythm, Slot};

/// Mean radius of the Earth (IUGG), metres.
pub const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// Speed of light in vacuum (BIPM, The International System of Units), m/s.
pub const LIGHT_M_PER_S: f64 = 299_792_458.0;

/// Distance to a satellite that is seen at an elevation (radians), metres: what the triangle of satellite, place and centre of the
/// Earth comes to.
#[must_use]
pub fn slant_range_m(altitude_m: f64, elevation: f64) -> f64 {
    let ratio = (EARTH_RADIUS_M + altitude_m) / EARTH_RADIUS_M;
    let (sin, cos) = (libm::sin(elevation), libm::cos(elevation));
    EARTH_RADIUS_M * (libm::sqrt(ratio * ratio - cos * cos) - sin)
}

#[cfg(test)]
mod tests;
