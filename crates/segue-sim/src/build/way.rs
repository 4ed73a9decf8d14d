//! The ways of mobile hosts, and the places on it where something happens.

use super::cell_prefix;
use crate::mobility::models::Walk;
use crate::mobility::{Point, Stay, Trajectory};
use crate::network::Mover;
use crate::network::cells::{Place, PlaceKind};
use crate::network::ground::{Foresight, Ground, Reach};
use crate::network::walks::{Walker, Way};
use crate::scenario::mobility::{model_of, stream_of};
use crate::scenario::model::{CellEntry, MobileSection, Pattern, ScenarioFile};
use crate::scenario::plan;
use crate::scenario::point;
use crate::scenario::presence::{Presence, Window};
use segue_proto::{Instant, sigma};

/// How a host moves in a run with this seed.
pub(super) fn of(m: &MobileSection, end: Instant, seed: u64) -> Way {
    match model_of(m) {
        Some(model) => Way::Drawn(Box::new(Walker::new(Walk::new(&model, stream_of(m, seed))))),
        None => Way::Known(trajectory(m, end)),
    }
}

fn trajectory(m: &MobileSection, end: Instant) -> Trajectory {
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

/// The cells, to those whose way is drawn.
pub(super) fn ground(s: &ScenarioFile, end: Instant) -> Ground {
    let reach = |c: &CellEntry| match &c.present {
        Some(presence) => Reach::Windows(windows(presence, end)),
        None => Reach::Circle(point(c.position), c.radius.metres()),
    };
    let foresight = match s.handover.policy {
        sigma::Policy::LastMoment => Foresight::Margin(s.handover.margin),
        sigma::Policy::Overlap => Foresight::Overlap(s.handover.fraction),
        _ => Foresight::None,
    };
    Ground::new(s.cell.iter().map(reach).collect(), foresight, end)
}

/// The moments at which reach changes or a policy wants to be told, in order, on ways that are known.
pub(super) fn places(s: &ScenarioFile, ground: &Ground, movers: &[Mover]) -> Vec<Place> {
    let mut places = Vec::new();
    for (number, (mover, section)) in movers.iter().zip(s.mobile.iter()).enumerate() {
        let Way::Known(trajectory) = &mover.way else {
            continue;
        };
        let own = ground.places_on(trajectory).into_iter();
        places.extend(own.chain(told(s, section)).map(|(time, kind)| Place {
            time,
            mover: number as u32,
            kind,
        }));
    }
    places.retain(|p| p.time <= ground.end);
    places.sort_by_key(|p| (p.time, p.kind.order()));
    places
}

/// When a host is told what of the network's plan.
fn told<'a>(s: &'a ScenarioFile, m: &'a MobileSection) -> impl Iterator<Item = (Instant, PlaceKind)> + 'a {
    let cell = |name: &str| s.cell.iter().position(|c| c.name == name);
    plan::told(m).filter_map(move |(time, from, to, after)| {
        let (from, to) = (cell(from)?, cell(to)?);
        let kind = PlaceKind::Planned {
            from: from as u32,
            to: to as u32,
            prefix: cell_prefix(to),
            after,
        };
        Some((Instant::ZERO + time, kind))
    })
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
