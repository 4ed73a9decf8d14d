//! Routes.

use super::shims::outside_prefix;
use super::{Numbers, cell_prefix, wire_address};
use crate::network::routers::{Way, prefix_of};
use crate::scenario::model::ScenarioFile;

/// Ways from a router to every prefix: fewest hops, lowest link number among equals.
pub(super) fn routes(s: &ScenarioFile, numbers: &Numbers<'_>, router: u32) -> Vec<(u64, Way)> {
    let nodes = s.host.len() + s.router.len();
    // First link on the way to every node that routers lead to.
    let mut first: Vec<Option<u32>> = vec![None; nodes];
    let mut seen = vec![false; nodes];
    seen[router as usize] = true;
    let mut queue = std::collections::VecDeque::from([router]);
    let mut order = vec![router];
    while let Some(at) = queue.pop_front() {
        let is_host = (at as usize) < s.host.len();
        if is_host {
            continue;
        }
        for (number, link) in s.link.iter().enumerate() {
            for direction in 0..2 {
                let (from, to) = (
                    numbers.of(&link.between[direction]),
                    numbers.of(&link.between[1 - direction]),
                );
                if from == at && !seen[to as usize] {
                    seen[to as usize] = true;
                    first[to as usize] = first[at as usize].or(Some((2 * number + direction) as u32));
                    queue.push_back(to);
                    order.push(to);
                }
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
    for (number, link) in s.link.iter().enumerate() {
        let ends = [numbers.of(&link.between[0]), numbers.of(&link.between[1])];
        let own = ends.iter().position(|e| *e == router);
        let way = match own {
            Some(end) => Some((2 * number + end) as u32),
            // The end that the search came by first is the nearer one.
            None => order
                .iter()
                .find(|n| ends.contains(n))
                .and_then(|n| first[*n as usize]),
        };
        routes.extend(way.map(|w| (prefix_of(wire_address(number, 0)), Way::Link(w))));
    }
    routes
}
