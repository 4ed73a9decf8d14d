//! The plan of a constellation: which satellites serve a place, slot by slot.

use super::orbit::{Place, Satellite, Shell};
use core::cmp::Reverse;
use segue_proto::Duration;

/// When slots begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rhythm {
    /// The first of them, after the beginning of the run; before it, one is under way.
    pub first: Duration,
    /// Length of a slot.
    pub slot: Duration,
}

/// A slot of the plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Slot {
    /// When it begins, time of the run.
    pub from: Duration,
    /// When the next one does, or the run ends.
    pub until: Duration,
    /// The satellites that serve, the one that was highest in its middle first.
    pub satellites: Vec<Satellite>,
}

/// Who serves a place on the ground, which has a gateway: satellites are relays between the two, so that they must see both.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// The satellites.
    pub shell: Shell,
    /// The time of [`Shell::sight`] at which the run begins, seconds.
    pub begins_s: f64,
    /// The place.
    pub user: Place,
    /// Its gateway.
    pub gateway: Place,
    /// Radians above the horizon, below which no satellite serves either.
    pub least_elevation: f64,
    /// How many serve at once.
    pub at_once: usize,
}

impl Plan {
    /// The slots of a run that lasts so long. In each those serve that stand highest in its middle, of all that are high enough from its
    /// beginning to its end: Starlink's scheduler prefers high elevations (Tanveer et al., "Making Sense of Constellations", CoNEXT
    /// Companion 2023). What else it prefers (satellites to the north, in sunlight, young ones), and load, is left out.
    #[must_use]
    pub fn slots(&self, rhythm: Rhythm, duration: Duration) -> Vec<Slot> {
        let mut from = Duration::ZERO;
        let mut next = rhythm.first;
        let mut slots = Vec::new();
        while from < duration {
            let until = next.min(duration);
            if until > from {
                // one under way began before the run
                let whole = next.as_secs_f64() - rhythm.slot.as_secs_f64();
                slots.push(Slot {
                    from,
                    until,
                    satellites: self.best([whole, next.as_secs_f64()]),
                });
            }
            from = until;
            next += rhythm.slot;
        }
        slots
    }

    /// Those that serve from one time of the run to another, seconds.
    fn best(&self, [from, until]: [f64; 2]) -> Vec<Satellite> {
        let height = |satellite, at: f64, place| {
            let sight = self.shell.sight(satellite, place, self.begins_s + at);
            sight.elevation
        };
        // in less than half a revolution a satellite rises, then sets: it is lowest at an end
        let serves = |satellite: &Satellite| {
            [self.user, self.gateway].into_iter().all(|place| {
                let lowest = height(*satellite, from, place).min(height(*satellite, until, place));
                lowest >= self.least_elevation
            })
        };
        let mut all: Vec<Satellite> = self.shell.satellites().filter(serves).collect();
        let middle = f64::midpoint(from, until);
        let order = |s: &Satellite| Reverse(ordered(height(*s, middle, self.user)));
        all.sort_by_cached_key(|s| (order(s), *s));
        all.truncate(self.at_once);
        all
    }

    /// The ways from a satellite to the place and to its gateway at a time of the run, metres.
    #[must_use]
    pub fn ways_m(&self, satellite: Satellite, at: Duration) -> [f64; 2] {
        let time = self.begins_s + at.as_secs_f64();
        [self.user, self.gateway].map(|place| self.shell.sight(satellite, place, time).range_m)
    }
}

/// An angle as a number that sorts as it does: there is no NaN among them.
fn ordered(angle: f64) -> i64 {
    (angle * 1e12) as i64
}
