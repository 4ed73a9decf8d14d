//! Routes.

use super::shims::outside_prefix;
use super::{Numbers, cell_prefix, wire_address};
use crate::network::routes::{Way, prefix_of};
use crate::scenario::model::{LinkEntry, ScenarioFile};

/// Which links lead from where to where: of each node, its links by number, with the direction away from it, and the nodes at
/// their other ends.
pub(super) struct Wires {
    ends: Vec<[u32; 2]>,
    from: Vec<Vec<(u32, u32)>>,
}

impl Wires {
    pub fn of(s: &ScenarioFile, numbers: &Numbers<'_>) -> Self {
        let ends = |link: &LinkEntry| [numbers.of(&link.between[0]), numbers.of(&link.between[1])];
        let ends: Vec<[u32; 2]> = s.link.iter().map(ends).collect();
        let mut from = vec![Vec::new(); s.host.len() + s.router.len()];
        for (number, [a, b]) in (0..).zip(&ends) {
            from[*a as usize].push((2 * number, *b));
            from[*b as usize].push((2 * number + 1, *a));
        }
        Self { ends, from }
    }
}

/// Ways from a router to every prefix: fewest hops, lowest link number among equals.
pub(super) fn routes(s: &ScenarioFile, numbers: &Numbers<'_>, wires: &Wires, router: u32) -> Vec<(u64, Way)> {
    let nodes = s.host.len() + s.router.len();
    // First link on the way to every node that routers lead to.
    let mut first: Vec<Option<u32>> = vec![None; nodes];
    // How many were found before it.
    let mut rank: Vec<Option<u32>> = vec![None; nodes];
    rank[router as usize] = Some(0);
    let mut queue = std::collections::VecDeque::from([router]);
    let mut found = 1;
    while let Some(at) = queue.pop_front() {
        let is_host = (at as usize) < s.host.len();
        if is_host {
            continue;
        }
        for &(link, to) in &wires.from[at as usize] {
            if rank[to as usize].is_none() {
                rank[to as usize] = Some(found);
                found += 1;
                first[to as usize] = first[at as usize].or(Some(link));
                queue.push_back(to);
            }
        }
    }
    let mut routes = Vec::new();
    for (number, cell) in s.cell.iter().enumerate() {
        let at = numbers.of(&cell.router);
        let way = if at == router {
            Some(Way::Cell(number as u32))
        } else {
            first[at as usize].map(Way::Link)
        };
        routes.extend(way.map(|w| (prefix_of(cell_prefix(number)), w)));
        let outside = outside_prefix(s, number);
        if outside != cell_prefix(number) {
            routes.extend(way.map(|w| (prefix_of(outside), w)));
        }
    }
    for (number, ends) in wires.ends.iter().enumerate() {
        let own = ends.iter().position(|e| *e == router);
        let way = match own {
            Some(end) => Some((2 * number + end) as u32),
            // The end that the search came by first is the nearer one.
            None => {
                let nearer = ends.iter().filter_map(|end| Some((rank[*end as usize]?, *end)));
                nearer.min().and_then(|(_, end)| first[end as usize])
            }
        };
        routes.extend(way.map(|w| (prefix_of(wire_address(number, 0)), Way::Link(w))));
    }
    routes
}
