//! Which interface is used, and when that changes.
//!
//! The first of the list is used where there is a choice: make before break. A better one is moved to once it has been usable
//! for a while, so that a network at the edge of its reach does not draw the host to and fro; one that is lost is left at
//! once. A network that costs is used only where no other can be. Who asks for an interface by hand has it until it is lost.

use segue_proto::{Duration, Instant};

/// An interface.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    /// Since when a locator of it can be used.
    usable_since: Option<Instant>,
    /// Nothing got through its network, and it is not moved to until then while there is another.
    silent_until: Option<Instant>,
    /// Its network costs.
    metered: bool,
}

/// A network through which nothing got is not moved to for so long.
const SILENT_FOR: Duration = Duration::from_secs(60);

impl Port {
    /// From when on it may be moved to from a worse one.
    fn held_from(&self, hold_down: Duration) -> Option<Instant> {
        let held = self.usable_since? + hold_down;
        Some(self.silent_until.map_or(held, |until| until.max(held)))
    }
}

/// The decision. Interfaces are known by their place in the list.
#[derive(Debug)]
pub struct Moves {
    ports: Vec<Port>,
    hold_down: Duration,
    in_use: Option<usize>,
    /// The one in use was asked for.
    asked: bool,
}

/// Why an interface that was asked for is not moved to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotUsable;

impl Moves {
    /// So many interfaces, none of which can be used.
    #[must_use]
    pub fn new(interfaces: usize, hold_down: Duration) -> Self {
        Self {
            ports: vec![Port::default(); interfaces],
            hold_down,
            in_use: None,
            asked: false,
        }
    }

    /// The interface in use.
    #[must_use]
    pub const fn in_use(&self) -> Option<usize> {
        self.in_use
    }

    /// Which interfaces can be used, all at once: what is lost together is left together. The one to be used from now on, if that
    /// changes.
    pub fn handle_usable(&mut self, now: Instant, usable: &[bool]) -> Option<usize> {
        for (port, usable) in self.ports.iter_mut().zip(usable) {
            port.usable_since = usable.then(|| port.usable_since.unwrap_or(now));
            // who is back may have come back elsewhere
            port.silent_until = port.silent_until.filter(|_| *usable);
        }
        self.decide(now)
    }

    /// Which networks cost: these are used only where no other can be. It counts from the next decision on.
    pub fn note_metered(&mut self, metered: &[bool]) {
        for (port, metered) in self.ports.iter_mut().zip(metered) {
            port.metered = *metered;
        }
    }

    /// Works off the timer. The interface to be used from now on, if that changes.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<usize> {
        self.decide(now)
    }

    /// Nothing got through the network of the interface in use, and the shim has moved to this one already.
    pub fn handle_silence(&mut self, now: Instant, to: usize) {
        let left = self.in_use.replace(to).and_then(|left| self.ports.get_mut(left));
        if let Some(left) = left {
            left.silent_until = Some(now + SILENT_FOR);
        }
        self.asked = false;
    }

    /// Somebody asks for an interface. Whether that changes anything.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn ask(&mut self, port: usize) -> Result<bool, NotUsable> {
        if !self.is_usable(port) {
            return Err(NotUsable);
        }
        self.asked = true;
        self.ports[port].silent_until = None;
        Ok(self.in_use.replace(port) != Some(port))
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let in_use = self.in_use.filter(|_| !self.asked)?;
        let better = self.ports_in_order().take_while(|port| *port != in_use);
        better
            .filter_map(|port| self.ports[port].held_from(self.hold_down))
            .min()
    }

    /// The best one first: what costs comes last, else the list decides.
    fn ports_in_order(&self) -> impl Iterator<Item = usize> {
        let those = |metered: bool| {
            let all = self.ports.iter().enumerate();
            all.filter(move |(_, port)| port.metered == metered)
                .map(|(number, _)| number)
        };
        those(false).chain(those(true))
    }

    fn is_usable(&self, port: usize) -> bool {
        self.ports.get(port).is_some_and(|p| p.usable_since.is_some())
    }

    fn decide(&mut self, now: Instant) -> Option<usize> {
        let before = self.in_use.filter(|port| self.is_usable(*port));
        self.asked &= before.is_some();
        let held = |port: &Port| port.held_from(self.hold_down).is_some_and(|from| from <= now);
        let first = |silent: bool| {
            let is_silent = |port: &Port| port.silent_until.is_some_and(|until| until > now);
            let usable = |port: &Port| port.usable_since.is_some() && (silent || !is_silent(port));
            self.ports_in_order().find(|port| usable(&self.ports[*port]))
        };
        let chosen = match before {
            Some(port) if self.asked => Some(port),
            Some(port) => {
                let mut better = self.ports_in_order().take_while(|better| *better != port);
                better.find(|better| held(&self.ports[*better])).or(Some(port))
            }
            // there is nothing to hold on to
            None => first(false).or_else(|| first(true)),
        };
        if chosen == self.in_use {
            return None;
        }
        self.in_use = chosen;
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn moves() -> Moves {
        Moves::new(3, Duration::from_secs(2))
    }

    #[test]
    fn the_first_that_comes_is_used_and_a_better_one_only_when_it_has_stayed() {
        let mut moves = moves();
        assert_eq!((moves.in_use(), moves.poll_timeout()), (None, None));
        assert_eq!(moves.handle_usable(at(0), &[false, false, true]), Some(2));
        assert_eq!(moves.handle_usable(at(100), &[true, false, true]), None);
        assert_eq!(moves.poll_timeout(), Some(at(2100)));
        assert_eq!(moves.handle_timeout(at(2099)), None);
        assert_eq!(moves.handle_timeout(at(2100)), Some(0));
        // a worse one changes nothing, and there is nothing to wait for
        assert_eq!(moves.handle_usable(at(2200), &[true; 3]), None);
        assert_eq!((moves.in_use(), moves.poll_timeout()), (Some(0), None));
    }

    #[test]
    fn an_interface_that_comes_and_goes_is_not_moved_to() {
        let mut moves = moves();
        moves.handle_usable(at(0), &[false, true, false]);
        for n in 0..10 {
            let begin = 1000 * n;
            assert_eq!(moves.handle_usable(at(begin), &[true, true, false]), None);
            assert_eq!(moves.handle_timeout(at(begin + 900)), None);
            assert_eq!(moves.handle_usable(at(begin + 999), &[false, true, false]), None);
        }
        assert_eq!((moves.in_use(), moves.poll_timeout()), (Some(1), None));
    }

    #[test]
    fn one_that_is_lost_is_left_at_once_for_the_best() {
        let mut moves = moves();
        moves.handle_usable(at(0), &[true; 3]);
        assert_eq!(moves.handle_usable(at(10), &[false, true, true]), Some(1));
        assert_eq!(moves.handle_usable(at(11), &[false, false, true]), Some(2));
        // there is none, and so nothing to move to
        assert_eq!(moves.handle_usable(at(12), &[false; 3]), None);
        assert_eq!(moves.in_use(), None);
        assert_eq!(moves.handle_usable(at(13), &[false, true, false]), Some(1));
        // two that are lost at once are one move
        moves.handle_usable(at(14), &[false, true, true]);
        moves.handle_usable(at(15), &[true; 3]);
        assert_eq!(moves.handle_usable(at(16), &[false, false, true]), Some(2));
    }

    #[test]
    fn what_costs_is_used_only_where_nothing_else_is() {
        let mut moves = moves();
        moves.note_metered(&[true, false, false]);
        assert_eq!(moves.handle_usable(at(0), &[true, false, false]), Some(0));
        // a later one of the list is better, once it has stayed
        assert_eq!(moves.handle_usable(at(10), &[true, false, true]), None);
        assert_eq!(moves.poll_timeout(), Some(at(2010)));
        assert_eq!(moves.handle_timeout(at(2010)), Some(2));
        // the one that costs is no reason to move, and is moved to when there is no other
        assert_eq!((moves.in_use(), moves.poll_timeout()), (Some(2), None));
        assert_eq!(moves.handle_usable(at(3000), &[true, false, false]), Some(0));
        // it is another network now, which does not cost: nothing is to be waited for
        moves.note_metered(&[false; 3]);
        assert_eq!(moves.handle_usable(at(4000), &[true, false, true]), None);
        assert_eq!((moves.in_use(), moves.poll_timeout()), (Some(0), None));
        // who asks has what costs, too
        moves.note_metered(&[true, false, false]);
        assert_eq!(moves.handle_timeout(at(9000)), Some(2));
        assert_eq!(moves.ask(0), Ok(true));
        assert_eq!(moves.handle_timeout(at(20_000)), None);
    }

    #[test]
    fn who_asks_has_it_until_it_is_lost() {
        let mut moves = moves();
        assert_eq!(moves.ask(1), Err(NotUsable));
        assert_eq!(moves.ask(9), Err(NotUsable));
        moves.handle_usable(at(0), &[true, true, false]);
        assert_eq!(moves.ask(1), Ok(true));
        assert_eq!(moves.ask(1), Ok(false));
        assert_eq!((moves.in_use(), moves.poll_timeout()), (Some(1), None));
        assert_eq!(moves.handle_timeout(at(10_000)), None);
        assert_eq!(moves.handle_usable(at(10_000), &[true, false, false]), Some(0));
        assert_eq!(moves.handle_usable(at(10_001), &[true, true, false]), None);
        assert_eq!(moves.in_use(), Some(0));
    }

    #[test]
    fn a_network_through_which_nothing_gets_is_not_moved_back_to_for_a_minute() {
        let mut moves = moves();
        moves.handle_usable(at(0), &[true, true, false]);
        moves.handle_silence(at(5000), 1);
        assert_eq!(
            (moves.in_use(), moves.poll_timeout()),
            (Some(1), Some(at(65_000)))
        );
        assert_eq!(moves.handle_timeout(at(64_999)), None);
        assert_eq!(moves.handle_timeout(at(65_000)), Some(0));
        // unless somebody asks for it, or there is no other, or it goes and comes back
        moves.handle_silence(at(70_000), 1);
        assert_eq!(moves.ask(0), Ok(true));
        moves.handle_silence(at(80_000), 1);
        assert_eq!(moves.handle_usable(at(81_000), &[true, false, false]), Some(0));
        moves.handle_silence(at(90_000), 1);
        moves.handle_usable(at(91_000), &[false, true, false]);
        moves.handle_usable(at(92_000), &[true, true, false]);
        assert_eq!(moves.poll_timeout(), Some(at(94_000)));
    }
}
