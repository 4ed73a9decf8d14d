//! A router's table. Longest match is exact match here, because every prefix is a /64.

use crate::hints::hash;
use core::net::Ipv6Addr;

/// A way out of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Over a link.
    Link(u32),
    /// Into its cell.
    Cell(u32),
}

/// The routes of a router, found by the prefix of a destination.
#[derive(Debug)]
pub(crate) struct Routes {
    entries: Vec<Route>,
    /// Where each is among `entries`, one more than that: at the place that the hash of its prefix names, or the next that was
    /// free. A power of two of them, of which no more than half are taken; 0 is free.
    places: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Route {
    /// Upper 64 bits of the addresses that it is for.
    prefix: u64,
    /// Lower 64 bits of the router's own address among them, if it has one.
    own: Option<u64>,
    way: Way,
}

impl Routes {
    /// Those of a router that has these addresses, from ways by prefix. Of two for one prefix the first counts.
    pub fn new(ways: Vec<(u64, Way)>, addresses: &[Ipv6Addr]) -> Self {
        let own = |prefix| {
            let mut own = addresses.iter().filter(|own| prefix_of(**own) == prefix);
            let one = own.next().map(|own| u128::from(*own) as u64);
            debug_assert_eq!(own.next(), None, "one address of a router for each of its links");
            one
        };
        let route = |(prefix, way)| Route {
            prefix,
            own: own(prefix),
            way,
        };
        let mut routes = Self {
            entries: ways.into_iter().map(route).collect(),
            places: Vec::new(),
        };
        routes.list();
        routes
    }

    /// The way towards `destination`.
    #[inline]
    pub fn way(&self, destination: Ipv6Addr) -> Option<Way> {
        self.find(prefix_of(destination)).map(|route| route.way)
    }

    /// The way towards `destination`, unless that is the router itself.
    #[inline]
    pub fn way_on(&self, destination: Ipv6Addr) -> Option<Way> {
        let route = self.find(prefix_of(destination))?;
        (route.own != Some(u128::from(destination) as u64)).then_some(route.way)
    }

    /// There is a way to `new` if there is one to `former`, and it is the same.
    pub fn add_beside(&mut self, former: Ipv6Addr, new: Ipv6Addr) {
        let route = self.find(prefix_of(former)).copied();
        self.entries.extend(route.map(|route| Route {
            prefix: prefix_of(new),
            ..route
        }));
        self.list();
    }

    /// There is no way to `prefix` any more.
    pub fn remove(&mut self, prefix: Ipv6Addr) {
        self.entries.retain(|route| route.prefix != prefix_of(prefix));
        self.list();
    }

    #[inline]
    fn find(&self, prefix: u64) -> Option<&Route> {
        let mut place = self.first_place(prefix);
        loop {
            let number = *self.places.get(place)?;
            // 0 wraps around, and is no entry
            let route = self.entries.get(number.wrapping_sub(1) as usize)?;
            if route.prefix == prefix {
                return Some(route);
            }
            place = (place + 1) & (self.places.len() - 1);
        }
    }

    fn first_place(&self, prefix: u64) -> usize {
        hash(prefix, 0) as usize & self.places.len().wrapping_sub(1)
    }

    /// Makes `places` anew.
    fn list(&mut self) {
        self.places = vec![0; (2 * self.entries.len() + 1).next_power_of_two()];
        for index in 0..self.entries.len() {
            let mut place = self.first_place(self.entries[index].prefix);
            while self.places[place] != 0 {
                place = (place + 1) & (self.places.len() - 1);
            }
            self.places[place] = index as u32 + 1;
        }
    }
}

/// Upper 64 bits of an address.
pub(crate) fn prefix_of(address: Ipv6Addr) -> u64 {
    (u128::from(address) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(prefix: u64, interface: u64) -> Ipv6Addr {
        Ipv6Addr::from_bits(u128::from(prefix) << 64 | u128::from(interface))
    }

    #[test]
    fn each_prefix_has_its_way_and_no_other_has_one() {
        for count in [0, 1, 2, 3, 48, 1000] {
            let ways = (0..count).map(|n| (n * 7, Way::Link(n as u32))).collect();
            let routes = Routes::new(ways, &[]);
            for n in 0..7 * count + 7 {
                let expected = (n % 7 == 0 && n < 7 * count).then_some(Way::Link((n / 7) as u32));
                assert_eq!(routes.way(address(n, 5)), expected, "{n} of {count}");
            }
        }
    }

    #[test]
    fn what_is_for_the_router_itself_does_not_go_on() {
        let own = address(2, 1);
        let routes = Routes::new(vec![(1, Way::Link(0)), (2, Way::Cell(3))], &[own]);
        assert_eq!((routes.way(own), routes.way_on(own)), (Some(Way::Cell(3)), None));
        assert_eq!(routes.way_on(address(2, 2)), Some(Way::Cell(3)));
        assert_eq!(routes.way_on(address(1, 1)), Some(Way::Link(0)));
    }

    #[test]
    fn routes_come_and_go() {
        let mut routes = Routes::new(vec![(1, Way::Link(4)), (1, Way::Link(5))], &[address(1, 1)]);
        assert_eq!(routes.way(address(1, 9)), Some(Way::Link(4)), "the first counts");
        routes.add_beside(address(1, 0), address(8, 0));
        routes.add_beside(address(3, 0), address(9, 0));
        assert_eq!(routes.way_on(address(8, 1)), None, "the router is there too");
        assert_eq!(
            (routes.way(address(8, 9)), routes.way(address(9, 9))),
            (Some(Way::Link(4)), None)
        );
        routes.remove(address(1, 0));
        assert_eq!(
            (routes.way(address(1, 9)), routes.way(address(8, 9))),
            (None, Some(Way::Link(4)))
        );
    }
}
