//! The mobile host's way, and the places on it where something happens.

use crate::mobility::{Point, Trajectory};
use crate::network::cells::{Place, PlaceKind};
use crate::scenario::model::{MobileSection, Pattern, ScenarioFile};
use crate::scenario::point;
use segue_proto::{Duration, Instant, sigma};

pub(super) fn trajectory(m: &MobileSection, end: Instant) -> Trajectory {
    let (from, start, speed) = (
        point(m.from),
        Instant::ZERO + m.start,
        m.speed.metres_per_second(),
    );
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
pub(super) fn places(s: &ScenarioFile, trajectory: &Trajectory, end: Instant) -> Vec<Place> {
    if s.mobile.is_none() {
        return Vec::new();
    }
    let stays: Vec<_> = s
        .cell
        .iter()
        .map(|c| trajectory.stays_within(point(c.position), c.radius.metres(), end))
        .collect();
    let mut places = Vec::new();
    let margin = s.handover.margin;
    for (cell, own) in stays.iter().enumerate() {
        for stay in own {
            let cell = cell as u32;
            places.push(Place {
                time: stay.enter,
                kind: PlaceKind::Enters(cell),
            });
            if stay.leave == Instant::MAX {
                continue;
            }
            places.push(Place {
                time: stay.leave,
                kind: PlaceKind::Leaves(cell),
            });
            if s.handover.policy == sigma::Policy::LastMoment {
                let warning = (stay.leave - margin).max(stay.enter);
                places.push(Place {
                    time: warning,
                    kind: PlaceKind::WillLeave(cell, stay.leave - warning),
                });
            }
        }
    }
    if s.handover.policy == sigma::Policy::Overlap {
        places.extend(overlap_points(&stays, s.handover.fraction));
    }
    places.retain(|p| p.time <= end);
    places.sort_by_key(|p| (p.time, place_order(p.kind)));
    places
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
fn overlap_points(stays: &[Vec<crate::mobility::Stay>], fraction: f64) -> Vec<Place> {
    let mut points = Vec::new();
    for (from, old) in stays.iter().enumerate() {
        for (to, new) in stays.iter().enumerate() {
            for (a, b) in old.iter().flat_map(|a| new.iter().map(move |b| (a, b))) {
                let crosses = from != to && a.enter < b.enter && b.enter < a.leave && a.leave < b.leave;
                if crosses {
                    let whole = a.leave.since(b.enter).as_secs_f64();
                    points.push(Place {
                        time: b.enter + Duration::from_secs_f64(whole * fraction),
                        kind: PlaceKind::Overlap {
                            from: from as u32,
                            to: to as u32,
                            fraction,
                        },
                    });
                }
            }
        }
    }
    points
}
