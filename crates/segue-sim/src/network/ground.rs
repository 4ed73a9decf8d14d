//! Where cells reach: found for a piece of a way without looking at every cell.

use super::cells::PlaceKind;
use crate::mobility::{Leg, Point, Stay, Trajectory};
use segue_proto::{Duration, Instant};

/// Where, or when, a cell is in reach.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Reach {
    /// Within so many metres of a point.
    Circle(Point, f64),
    /// By the clock, wherever a host is: in order, none of which touches another.
    Windows(Vec<Stay>),
}

/// How far a policy that knows the way looks ahead.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Foresight {
    /// It does not.
    None,
    /// It is told so long before a cell is left.
    Margin(Duration),
    /// It is told at this part of the way through the overlap of two cells.
    Overlap(f64),
}

/// A time in which a cell is in reach on one leg: from its beginning on, or to its end, if it is so there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Crossing {
    pub cell: u32,
    pub enter: Instant,
    pub leave: Instant,
}

/// The cells of a network, to those who walk about in it.
#[derive(Debug)]
pub(crate) struct Ground {
    reaches: Vec<Reach>,
    squares: Squares,
    /// Those that are there by the clock.
    by_the_clock: Vec<u32>,
    pub foresight: Foresight,
    /// The end of the run: what lies beyond it is not looked at.
    pub end: Instant,
}

impl Ground {
    pub fn new(reaches: Vec<Reach>, foresight: Foresight, end: Instant) -> Self {
        let windows = |(_, reach): &(u32, &Reach)| matches!(reach, Reach::Windows(_));
        let by_the_clock = (0..).zip(&reaches).filter(windows).map(|(cell, _)| cell);
        Self {
            by_the_clock: by_the_clock.collect(),
            squares: Squares::of(&reaches),
            reaches,
            foresight,
            end,
        }
    }

    /// What happens when on a way that is known, up to the end of the run and somewhat beyond, cell by cell.
    pub fn places_on(&self, trajectory: &Trajectory) -> Vec<(Instant, PlaceKind)> {
        let stays = |reach: &Reach| match reach {
            Reach::Windows(windows) => windows.clone(),
            Reach::Circle(centre, radius) => trajectory.stays_within(*centre, *radius, self.end),
        };
        let stays: Vec<Vec<Stay>> = self.reaches.iter().map(stays).collect();
        let mut kinds = Vec::new();
        for (cell, own) in (0..).zip(&stays) {
            for stay in own {
                kinds.push((stay.enter, PlaceKind::Enters(cell)));
                if stay.leave == Instant::MAX {
                    continue;
                }
                kinds.push((stay.leave, PlaceKind::Leaves(cell)));
                if let Foresight::Margin(margin) = self.foresight {
                    let warning = (stay.leave - margin).max(stay.enter);
                    kinds.push((warning, PlaceKind::WillLeave(cell, stay.leave - warning)));
                }
            }
        }
        if let Foresight::Overlap(fraction) = self.foresight {
            kinds.extend(overlap_points(&stays, fraction));
        }
        kinds
    }

    /// When which cells are in reach on a leg, in the order of cells.
    pub fn crossings(&self, leg: &Leg) -> Vec<Crossing> {
        let mut cells = self.squares.touched_by(leg);
        cells.extend(&self.by_the_clock);
        cells.sort_unstable();
        cells.dedup();
        let mut crossings = Vec::new();
        for cell in cells {
            match &self.reaches[cell as usize] {
                Reach::Circle(centre, radius) => {
                    let within = leg.time_within(*centre, *radius);
                    // what is touched at the end is for the next leg to find
                    let within = within.filter(|(enter, _)| *enter < leg.end);
                    crossings.extend(within.map(|(enter, leave)| Crossing { cell, enter, leave }));
                }
                Reach::Windows(windows) => {
                    let during = windows
                        .iter()
                        .filter(|w| w.leave > leg.start && w.enter < leg.end);
                    crossings.extend(during.map(|w| Crossing {
                        cell,
                        enter: w.enter.max(leg.start),
                        leave: w.leave.min(leg.end),
                    }));
                }
            }
        }
        crossings
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
                    let kind = PlaceKind::Overlap {
                        from: from as u32,
                        to: to as u32,
                        fraction,
                    };
                    points.push((overlap_point(b.enter, a.leave, fraction), kind));
                }
            }
        }
    }
    points
}

/// The moment at this part of the way through an overlap.
pub(crate) fn overlap_point(enter: Instant, leave: Instant, fraction: f64) -> Instant {
    let whole = leave.since(enter).as_secs_f64();
    enter + Duration::from_secs_f64(whole * fraction)
}

/// Most squares in a row, and rows.
const MOST: usize = 256;
/// A circle is taken for so much wider, so that rounding hides it from nobody, metres.
const ROUNDING: f64 = 1e-3;

/// The plane in squares, each with the circles that touch it: about as many as there are circles.
#[derive(Debug)]
struct Squares {
    origin: Point,
    /// Width and height of one, metres.
    side: [f64; 2],
    /// In a row; as many rows.
    count: usize,
    circles: Vec<Vec<u32>>,
}

impl Squares {
    fn of(reaches: &[Reach]) -> Self {
        let bounds = |reach: &Reach| match reach {
            Reach::Circle(at, radius) => {
                let r = radius + ROUNDING;
                Some([at.x - r, at.x + r, at.y - r, at.y + r])
            }
            Reach::Windows(_) => None,
        };
        let mut whole = [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY];
        for [west, east, south, north] in reaches.iter().filter_map(bounds) {
            whole = [
                whole[0].min(west),
                whole[1].max(east),
                whole[2].min(south),
                whole[3].max(north),
            ];
        }
        if whole[0] > whole[1] {
            whole = [0.0; 4];
        }
        let count = (libm::sqrt(reaches.len() as f64) as usize).clamp(1, MOST);
        let side = |length: f64| (length / count as f64).max(ROUNDING);
        let mut squares = Self {
            origin: Point {
                x: whole[0],
                y: whole[2],
            },
            side: [side(whole[1] - whole[0]), side(whole[3] - whole[2])],
            count,
            circles: vec![Vec::new(); count * count],
        };
        for (cell, reach) in (0..).zip(reaches) {
            let Some([west, east, south, north]) = bounds(reach) else {
                continue;
            };
            for row in squares.row(south)..=squares.row(north) {
                for column in squares.column(west)..=squares.column(east) {
                    squares.circles[row * count + column].push(cell);
                }
            }
        }
        squares
    }

    fn column(&self, x: f64) -> usize {
        self.number((x - self.origin.x) / self.side[0])
    }

    fn row(&self, y: f64) -> usize {
        self.number((y - self.origin.y) / self.side[1])
    }

    /// Beyond the border is what is at the border: there are no circles, and looking finds that out.
    fn number(&self, at: f64) -> usize {
        (libm::floor(at).max(0.0) as usize).min(self.count - 1)
    }

    /// Circles that a leg may pass through, some of them several times.
    fn touched_by(&self, leg: &Leg) -> Vec<u32> {
        let (dx, dy) = (leg.to.x - leg.from.x, leg.to.y - leg.from.y);
        let (south, north) = (leg.from.y.min(leg.to.y), leg.from.y.max(leg.to.y));
        let mut circles = Vec::new();
        for row in self.row(south)..=self.row(north) {
            let border = |row: usize| self.origin.y + row as f64 * self.side[1];
            // the part of the leg in this row, or in what lies beyond the border
            let below = if row == 0 { south } else { border(row) };
            let above = if row + 1 == self.count {
                north
            } else {
                border(row + 1)
            };
            let x_at = |y: f64| {
                let part = if dy == 0.0 { 0.0 } else { (y - leg.from.y) / dy };
                leg.from.x + part.clamp(0.0, 1.0) * dx
            };
            let ends = if dy == 0.0 {
                [leg.from.x, leg.to.x]
            } else {
                [x_at(below), x_at(above)]
            };
            let (west, east) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            for column in self.column(west)..=self.column(east) {
                circles.extend(&self.circles[row * self.count + column]);
            }
        }
        circles
    }
}
