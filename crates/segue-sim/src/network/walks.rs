//! Hosts whose way is drawn while they walk it: of the way no more is there than has to be known, and of the places on it those
//! that come next.

use super::Network;
use super::cells::PlaceKind;
use super::ground::{Foresight, Ground, overlap_point};
use crate::mobility::models::Walk;
use crate::mobility::{Leg, Point, Trajectory};
use crate::scheduler::Event;
use crate::warnings::Coverage;
use segue_proto::Instant;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// How a host moves.
#[derive(Debug)]
pub(crate) enum Way {
    /// It is known from the beginning.
    Known(Trajectory),
    /// It is drawn.
    Drawn(Box<Walker>),
}

impl Way {
    /// Position at the time of the run, metres.
    pub fn position(&self, now: Instant) -> Point {
        match self {
            Self::Known(trajectory) => trajectory.position(now),
            Self::Drawn(walker) => walker.position(now),
        }
    }
}

/// A cell that is in reach as far as the way is known.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Open {
    cell: u32,
    enter: Instant,
}

/// A place that will be reached.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Ahead {
    time: Instant,
    kind: PlaceKind,
}

/// A cell comes into reach on a leg, or goes out of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Change {
    time: Instant,
    /// Entering comes before leaving at the same moment: cells that touch leave no gap.
    leaves: bool,
    cell: u32,
}

/// A host on a way that is drawn.
#[derive(Debug)]
pub(crate) struct Walker {
    walk: Walk,
    /// What is known of the way, from where the host is on.
    legs: VecDeque<Leg>,
    open: SmallVec<[Open; 4]>,
    /// The next is the last.
    ahead: Vec<Ahead>,
    coverage: Coverage,
}

impl Walker {
    pub fn new(walk: Walk) -> Self {
        Self {
            walk,
            legs: VecDeque::new(),
            open: SmallVec::new(),
            ahead: Vec::new(),
            coverage: Coverage::default(),
        }
    }

    /// What it was out of reach of.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    fn position(&self, now: Instant) -> Point {
        let here = self.legs.iter().find(|leg| now < leg.end);
        match here {
            Some(leg) => leg.position(now),
            None => self.walk.at(),
        }
    }

    /// The next place that it has reached by now.
    fn place(&mut self, now: Instant, ground: &Ground) -> Option<Ahead> {
        while self.settled_until(ground) <= now {
            self.go_on(ground);
        }
        while self.legs.len() > 1 && self.legs[0].end <= now {
            self.legs.pop_front();
        }
        self.ahead.pop_if(|next| next.time <= now)
    }

    /// When it has to be asked again for a place; never, if not before the end. Only after [`Self::place`] has given nothing.
    fn next(&self, ground: &Ground) -> Option<Instant> {
        let settled = self.settled_until(ground);
        let place = self.ahead.last().map_or(settled, |next| next.time.min(settled));
        (place <= ground.end).then_some(place)
    }

    /// Places before this time are known, and none will be added.
    fn settled_until(&self, ground: &Ground) -> Instant {
        let known = self.legs.back().map_or(Instant::ZERO, |leg| leg.end);
        match ground.foresight {
            Foresight::Margin(margin) if known <= ground.end + margin => known - margin,
            _ if known > ground.end => Instant::MAX,
            Foresight::None | Foresight::Margin(_) => known,
            Foresight::Overlap(fraction) => {
                let first = self.open.iter().map(|o| o.enter).min();
                // an older cell may be left at any time from now on
                let younger = self.open.iter().filter(|o| Some(o.enter) != first);
                let told = younger.map(|o| overlap_point(o.enter, known, fraction));
                told.fold(known, Instant::min)
            }
        }
    }

    /// Draws the next leg of the way, and finds the places on it.
    fn go_on(&mut self, ground: &Ground) {
        let leg = self.walk.next_leg();
        let crossings = ground.crossings(&leg);
        let mut changes: Vec<Change> = Vec::new();
        let mut change = |time, leaves, cell| changes.push(Change { time, leaves, cell });
        // a stay goes on across the joint of two legs
        let goes_on = |cell: u32| {
            let mut there = crossings.iter().filter(|c| c.enter == leg.start);
            there.any(|c| c.cell == cell)
        };
        for open in self.open.iter().filter(|open| !goes_on(open.cell)) {
            change(leg.start, true, open.cell);
        }
        for crossing in &crossings {
            let open = self.open.iter().any(|open| open.cell == crossing.cell);
            if !open || crossing.enter > leg.start {
                change(crossing.enter, false, crossing.cell);
            }
            if crossing.leave < leg.end {
                change(crossing.leave, true, crossing.cell);
            }
        }
        changes.sort_unstable();
        for at_once in changes.chunk_by(|a, b| (a.time, a.leaves) == (b.time, b.leaves)) {
            self.change(at_once, ground.foresight);
        }
        self.ahead.sort_by_key(|next| {
            let order = (next.time, next.kind.order(), next.kind.cell());
            core::cmp::Reverse(order)
        });
        self.legs.push_back(leg);
    }

    /// Cells come into reach at a moment, or go out of it.
    fn change(&mut self, changes: &[Change], foresight: Foresight) {
        let is_left = |open: &Open| changes.iter().any(|c| c.leaves && c.cell == open.cell);
        let left: SmallVec<[Open; 4]> = self.open.iter().copied().filter(is_left).collect();
        self.open.retain(|open| !is_left(open));
        for &Change { time, cell, leaves } in changes {
            let kind = if leaves {
                PlaceKind::Leaves(cell)
            } else {
                self.open.push(Open { cell, enter: time });
                PlaceKind::Enters(cell)
            };
            self.ahead.push(Ahead { time, kind });
        }
        let Some(&Change { time, .. }) = changes.first() else {
            return;
        };
        for old in left {
            match foresight {
                Foresight::None => {}
                Foresight::Margin(margin) => {
                    let warning = (time - margin).max(old.enter);
                    let kind = PlaceKind::WillLeave(old.cell, time - warning);
                    self.ahead.push(Ahead { time: warning, kind });
                }
                Foresight::Overlap(fraction) => {
                    let crosses = |new: &&Open| old.enter < new.enter && new.enter < time;
                    let points = self.open.iter().filter(crosses).map(|new| Ahead {
                        time: overlap_point(new.enter, time, fraction),
                        kind: PlaceKind::Overlap {
                            from: old.cell,
                            to: new.cell,
                            fraction,
                        },
                    });
                    self.ahead.extend(points);
                }
            }
        }
    }
}

impl Network {
    /// A host on a way that is drawn has reached a place, or the end of what is known of the way.
    pub fn walk(&mut self, mover: u32) {
        loop {
            let Way::Drawn(walker) = &mut self.movers[mover as usize].way else {
                return;
            };
            let Some(Ahead { time, kind }) = walker.place(self.now, &self.ground) else {
                if let Some(next) = walker.next(&self.ground) {
                    self.scheduler.at(next, Event::Walk(mover));
                }
                return;
            };
            let radios = self.movers[mover as usize].radios.clone();
            let radios = &self.attachments[radios.start as usize..radios.end as usize];
            let hears = |cell: u32| radios.iter().any(|a| a.hears(&self.cells[cell as usize]));
            if let Way::Drawn(walker) = &mut self.movers[mover as usize].way {
                walker.coverage.place(time, kind, hears);
            }
            self.reach_place(mover, kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ground::Reach;
    use super::*;
    use crate::mobility::Stay;
    use crate::mobility::models::{Area, Model, gauss_markov, manhattan, random_waypoint};
    use segue_proto::Duration;
    use segue_proto::l2::DurationRange;
    use segue_proto::random::Stream;

    const END: Instant = Instant::from_nanos(3_000_000_000_000);

    fn models() -> Vec<Model> {
        let area = Area {
            least: Point { x: -100.0, y: 0.0 },
            greatest: Point { x: 900.0, y: 500.0 },
        };
        let pause = DurationRange::uniform(Duration::ZERO, Duration::from_secs(20)).unwrap();
        let random_waypoint = random_waypoint::Parameters {
            area,
            speed: [1.0, 20.0],
            pause,
        };
        let gauss_markov = gauss_markov::Parameters {
            area,
            alpha: 0.8,
            speed: 8.0,
            speed_deviation: 2.0,
            direction: None,
            direction_deviation: 1.0,
            step: Duration::from_secs(1),
        };
        let manhattan = manhattan::Parameters {
            area,
            spacing: [80.0, 50.0],
            speed: 8.0,
            speed_deviation: 2.0,
            speed_change: 0.2,
            update: 5.0,
            turns: [0.5, 0.25, 0.25],
        };
        vec![
            Model::RandomWaypoint(random_waypoint),
            Model::GaussMarkov(gauss_markov),
            Model::Manhattan(manhattan),
        ]
    }

    /// Forty circles, small and large, some of which touch nothing, and a cell by the clock.
    fn ground(foresight: Foresight, end: Instant) -> Ground {
        let mut stream = Stream::new(1, "circles");
        let circle = |_| {
            let at = Point {
                x: stream.uniform() * 1500.0 - 300.0,
                y: stream.uniform() * 900.0 - 200.0,
            };
            Reach::Circle(at, 10.0 + stream.uniform() * stream.uniform() * 300.0)
        };
        let mut reaches: Vec<Reach> = (0..40).map(circle).collect();
        let second = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        reaches.push(Reach::Windows(vec![
            Stay {
                enter: second(0),
                leave: second(7),
            },
            Stay {
                enter: second(9),
                leave: second(2000),
            },
        ]));
        Ground::new(reaches, foresight, end)
    }

    /// The places that a walker comes to, when it is asked as seldom as it wants to be; where it is then is where it should be.
    fn walked(walk: Walk, ground: &Ground, known: &Trajectory) -> Vec<(Instant, PlaceKind)> {
        let (mut walker, mut now, mut places) = (Walker::new(walk), Instant::ZERO, Vec::new());
        loop {
            while let Some(place) = walker.place(now, ground) {
                assert_eq!(place.time, now, "{:?} comes late", place.kind);
                places.push((place.time, place.kind));
            }
            assert_eq!(walker.position(now), known.position(now));
            match walker.next(ground) {
                Some(next) if next > now => now = next,
                Some(next) => panic!("{next} again at {now}"),
                None => return places,
            }
        }
    }

    /// The same way, known from the beginning as far as a walker looks.
    fn known(mut walk: Walk, until: Instant) -> Trajectory {
        let mut points = vec![(Instant::ZERO, walk.at())];
        while points.last().is_some_and(|(time, _)| *time <= until) {
            let leg = walk.next_leg();
            points.push((leg.end, leg.to));
        }
        Trajectory::timed(&points)
    }

    #[test]
    fn places_on_a_way_that_is_drawn_are_those_of_the_same_way_known_from_the_beginning() {
        let margin = Duration::from_secs(3);
        for model in models() {
            for foresight in [
                Foresight::None,
                Foresight::Margin(margin),
                Foresight::Overlap(0.5),
                Foresight::Overlap(0.0),
                Foresight::Overlap(1.0),
            ] {
                let (ground, and_beyond) = (ground(foresight, END), ground(foresight, Instant::MAX));
                let mut of_a_kind = [0; 3];
                for host in 0..20 {
                    let walk = Walk::new(&model, Stream::new(host, "walk"));
                    let looks_to = match foresight {
                        Foresight::Margin(margin) => END + margin,
                        _ => END,
                    };
                    let known = known(walk.clone(), looks_to);
                    let mut expected = and_beyond.places_on(&known);
                    expected.retain(|(time, _)| *time <= END);
                    let mut places = walked(walk, &ground, &known);
                    let key = |(time, kind): &(Instant, PlaceKind)| {
                        let from = match kind {
                            PlaceKind::Overlap { from, .. } => *from,
                            _ => 0,
                        };
                        (*time, kind.order(), kind.cell(), from)
                    };
                    expected.sort_by_key(key);
                    places.sort_by_key(key);
                    let differ = places.iter().zip(&expected).find(|(a, b)| a != b);
                    assert_eq!(differ, None, "{model:?}, {foresight:?}, host {host}");
                    assert_eq!(
                        places.len(),
                        expected.len(),
                        "{model:?}, {foresight:?}, host {host}"
                    );
                    for (_, kind) in places {
                        of_a_kind[usize::from(kind.order())] += 1;
                    }
                }
                assert!(of_a_kind[0] > 1000 && of_a_kind[2] > 1000, "{of_a_kind:?}");
                assert_eq!(of_a_kind[1] > 100, foresight != Foresight::None, "{of_a_kind:?}");
            }
        }
    }

    #[test]
    fn no_more_of_a_way_is_kept_than_is_needed() {
        for model in models() {
            let ground = ground(Foresight::None, END);
            let mut walker = Walker::new(Walk::new(&model, Stream::new(1, "walk")));
            let mut now = Instant::ZERO;
            loop {
                while walker.place(now, &ground).is_some() {}
                assert!(walker.legs.len() <= 2, "{} legs", walker.legs.len());
                match walker.next(&ground) {
                    Some(next) => now = next,
                    None => break,
                }
            }
            assert!(now > END - Duration::from_secs(2000));
        }
    }
}
