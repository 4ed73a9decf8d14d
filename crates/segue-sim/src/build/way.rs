//! The ways of mobile hosts, and the places on it where something happens.

use crate::mobility::{Point, Stay, Trajectory};
use crate::network::Mover;
use crate::network::cells::{Place, PlaceKind};
use crate::scenario::model::{MobileSection, Pattern, ScenarioFile};
use crate::scenario::point;
use crate::scenario::presence::{Presence, Window};
use segue_proto::{Duration, Instant, sigma};

pub(super) fn trajectory(m: &MobileSection, end: Instant) -> Trajectory {
    let (from, start, speed) = (
        point(m.from),
        Instant::ZERO + m.start,
        m.speed.metres_per_second(),
    );
    if let Some(section) = &m.mobility {
        return Trajectory::timed(&section.points);
    }
    match m.pattern {
        Pattern::Still => Trajectory::fixed(from),
        Pattern::BackAndForth => {
            Trajectory::back_and_forth(from, m.to.map_or(from, point), speed, start, end)
        }
        Pattern::Waypoints => {
            let points: Vec<Point> = m.points.iter().copied().map(point).collect();
            Trajectory::waypoints(from, &points, speed, start)
        }
    }
}

/// The moments at which reach changes or a policy wants to be told, in order.
pub(super) fn places(s: &ScenarioFile, movers: &[Mover], end: Instant) -> Vec<Place> {
    let mut places = Vec::new();
    for (number, mover) in movers.iter().enumerate() {
        let own = kinds(s, &mover.trajectory, end);
        places.extend(own.into_iter().map(|(time, kind)| Place {
            time,
            mover: number as u32,
            kind,
        }));
    }
    places.retain(|p| p.time <= end);
    places.sort_by_key(|p| (p.time, place_order(p.kind)));
    places
}

/// What happens when on one way.
fn kinds(s: &ScenarioFile, trajectory: &Trajectory, end: Instant) -> Vec<(Instant, PlaceKind)> {
    let stays: Vec<_> = s
        .cell
        .iter()
        .map(|c| match &c.present {
            Some(presence) => windows(presence, end),
            None => trajectory.stays_within(point(c.position), c.radius.metres(), end),
        })
        .collect();
    let mut kinds = Vec::new();
    let margin = s.handover.margin;
    for (cell, own) in stays.iter().enumerate() {
        for stay in own {
            let cell = cell as u32;
            kinds.push((stay.enter, PlaceKind::Enters(cell)));
            if stay.leave == Instant::MAX {
                continue;
            }
            kinds.push((stay.leave, PlaceKind::Leaves(cell)));
            if s.handover.policy == sigma::Policy::LastMoment {
                let warning = (stay.leave - margin).max(stay.enter);
                kinds.push((warning, PlaceKind::WillLeave(cell, stay.leave - warning)));
            }
        }
    }
    if s.handover.policy == sigma::Policy::Overlap {
        kinds.extend(overlap_points(&stays, s.handover.fraction));
    }
    kinds
}

/// Stays by the clock.
fn windows(presence: &Presence, end: Instant) -> Vec<Stay> {
    let stay = |w: &Window| Stay {
        enter: Instant::ZERO + w.from,
        leave: w.until.map_or(Instant::MAX, |until| Instant::ZERO + until),
    };
    let stays = presence.windows().iter().map(stay);
    stays.filter(|s| s.enter <= end).collect()
}

/// Entering comes before leaving at the same moment: cells that touch leave no gap.
fn place_order(kind: PlaceKind) -> u8 {
    match kind {
        PlaceKind::Enters(_) => 0,
        PlaceKind::WillLeave(..) | PlaceKind::Overlap { .. } => 1,
        PlaceKind::Leaves(_) => 2,
    }
}

/// The overlap of two cells is crossed by a stay in each that begin and end in the same order.
fn overlap_points(stays: &[Vec<Stay>], fraction: f64) -> Vec<(Instant, PlaceKind)> {
    let mut points = Vec::new();
    for (from, old) in stays.iter().enumerate() {
        for (to, new) in stays.iter().enumerate() {
            for (a, b) in old.iter().flat_map(|a| new.iter().map(move |b| (a, b))) {
                let crosses = from != to && a.enter < b.enter && b.enter < a.leave && a.leave < b.leave;
                if crosses {
                    let whole = a.leave.since(b.enter).as_secs_f64();
                    let kind = PlaceKind::Overlap {
                        from: from as u32,
                        to: to as u32,
                        fraction,
                    };
                    points.push((b.enter + Duration::from_secs_f64(whole * fraction), kind));
                }
            }
        }
    }
    points
}
