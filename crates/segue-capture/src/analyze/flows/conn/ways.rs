//! Which of its paths a packet of a flow takes, and whether it was captured before on another.

use super::Conn;
use crate::analyze::decode::{Address, Marks};
use crate::analyze::flows::item::Item;
use crate::analyze::flows::paths::{MAX_PATHS, PathState, Sight};

/// Packets remembered to notice that a capture has them twice.
const RECENT: usize = 8;

/// Copies of a packet that one host captures are no further apart than this.
const CAPTURED_TWICE_NS: u64 = 1_000_000;

impl Conn {
    /// Number of the path that a packet takes.
    pub(in crate::analyze) fn path(&mut self, direction: usize, sight: &Sight) -> u16 {
        let senders = self.path_is_the_senders();
        let place = if senders { 0 } else { sight.role.place() };
        let interface = if senders {
            None
        } else {
            Some((sight.capture, sight.interface))
        };
        let is = |p: &PathState| {
            p.outer == sight.outer
                && p.direction == direction
                && p.place == place
                && p.interface == interface
                && p.ports == sight.ports
                && p.tunnelled == sight.marks.tunnelled
        };
        let last = self.halves[direction].last_path[place];
        let number = if self.paths.get(usize::from(last)).is_some_and(is) {
            last
        } else if let Some(known) = self.paths.iter().position(is) {
            known as u16
        } else if self.paths.len() < MAX_PATHS {
            // most flows have one path in each direction
            if self.paths.len() < 2 {
                self.paths.reserve_exact(1);
            }
            self.paths.push(PathState {
                direction,
                outer: sight.outer,
                ports: sight.ports,
                tunnelled: sight.marks.tunnelled,
                interface,
                seen_at: (sight.capture, sight.interface),
                place,
                first_ns: sight.time_ns,
                last_ns: sight.time_ns,
                last_data_ns: None,
                data_packets: [0; 2],
                data_bytes: [0; 2],
            });
            self.paths.len() as u16 - 1
        } else {
            self.paths_beyond += 1;
            MAX_PATHS as u16 - 1
        };
        self.halves[direction].last_path[place] = number;
        if let Some(path) = self.paths.get_mut(usize::from(number)) {
            path.last_ns = sight.time_ns;
        }
        number
    }

    /// The path of this direction to an address, from the source used last.
    pub(in crate::analyze) fn path_to(&mut self, direction: usize, to: Address, sight: &Sight) -> u16 {
        let last = self.halves[direction].last_path[0];
        let known = self
            .paths
            .get(usize::from(last))
            .filter(|p| p.direction == direction);
        let (source, ports) = known.map_or((sight.outer.1, (sight.ports.1, sight.ports.0)), |p| {
            (p.outer.0, p.ports)
        });
        let there = Sight {
            outer: (source, to),
            ports,
            marks: Marks::default(),
            ..*sight
        };
        let number = self.path(direction, &there);
        self.halves[direction].last_path[0] = last;
        number
    }

    /// Whether the same packet was captured on another interface, or inside a tunnel, a moment ago.
    pub(super) fn is_captured_twice(
        &mut self,
        direction: usize,
        sight: &Sight,
        path: u16,
        item: Item,
        identification: u16,
    ) -> bool {
        if item.stamp.is_none() && identification == 0 || self.path_is_the_senders() {
            return false;
        }
        let half = &mut self.halves[direction];
        let what = u64::from(item.seq) << 32 | u64::from(item.stamp.unwrap_or_default());
        let what = what.rotate_left(7)
            ^ u64::from(identification) << 24
            ^ u64::from(item.span)
            ^ u64::from(sight.capture) << 60;
        let same = |r: &(u64, u64, u16)| {
            r.0 == what && r.2 != path && sight.time_ns.saturating_sub(r.1) < CAPTURED_TWICE_NS
        };
        if self.paths.len() > 1 {
            let recent = &mut half.recent;
            if same(&half.last_packet) || recent.iter().any(same) {
                return true;
            }
            if recent.len() >= RECENT {
                recent.pop_front();
            }
            recent.push_back(half.last_packet);
        }
        half.last_packet = (what, sight.time_ns, path);
        false
    }
}
