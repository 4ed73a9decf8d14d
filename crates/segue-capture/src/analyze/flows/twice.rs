//! Packets that a capture has twice: on another interface, or inside a tunnel and outside of it.

use super::item::Item;
use super::paths::Sight;
use std::collections::VecDeque;

/// Packets remembered to notice that.
const RECENT: usize = 8;

/// Copies of a packet that one host captures are no further apart than this.
pub(in super::super) const CAPTURED_TWICE_NS: u64 = 1_000_000;

/// A packet: what it was, when, and where it was seen.
type Packet = (u64, u64, u64);

/// One direction's.
#[derive(Clone, Debug, Default)]
pub(super) struct CapturedTwice {
    /// The last packet, and those before it where there are several paths.
    last: Packet,
    recent: VecDeque<Packet>,
    count: u64,
}

impl CapturedTwice {
    /// An item of data is seen by a path of those that the flow has, which are `several` or one. Whether the same packet was
    /// captured by another a moment ago; then it is counted here.
    pub(super) fn notes(
        &mut self,
        sight: &Sight,
        item: &Item,
        identification: u16,
        path: u16,
        several: bool,
    ) -> bool {
        let what = u64::from(item.seq) << 32 | u64::from(item.stamp.unwrap_or_default());
        let what = what.rotate_left(7)
            ^ u64::from(identification) << 24
            ^ u64::from(item.span)
            ^ u64::from(sight.capture) << 60;
        self.note(what, sight.time_ns, u64::from(path), several)
    }

    /// The same of a packet that is known by what it carries, of a flow whose paths look the same wherever they are captured
    /// if they are `the_senders`: then one between other addresses is another packet. Where it left a host and where it
    /// came to one are two things to know of it.
    pub(super) fn notes_packet(
        &mut self,
        sight: &Sight,
        what: u64,
        the_senders: bool,
        several: bool,
    ) -> bool {
        let Sight { outer, marks, .. } = sight;
        let way = mixed(mixed(outer.0.0, outer.1.0), u128::from(marks.tunnelled));
        let spot = mixed(u128::from(sight.interface), u128::from(sight.device));
        let what = mixed(what.into(), u128::from(sight.capture) << 8 | sight.role as u128);
        let (what, spot) = if the_senders {
            (mixed(what, way), spot)
        } else {
            (what, mixed(spot, way))
        };
        self.note(what as u64, sight.time_ns, spot as u64, several)
    }

    fn note(&mut self, what: u64, time_ns: u64, spot: u64, several: bool) -> bool {
        let same = |r: &Packet| r.0 == what && r.2 != spot && time_ns.saturating_sub(r.1) < CAPTURED_TWICE_NS;
        if same(&self.last) || (several && self.recent.iter().any(same)) {
            self.count += 1;
            return true;
        }
        if several {
            if self.recent.len() >= RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(self.last);
        }
        self.last = (what, time_ns, spot);
        false
    }

    /// How many were.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}

/// One number of two.
const fn mixed(x: u128, y: u128) -> u128 {
    let folded = (x ^ x >> 64) as u64 as u128 ^ 0x9e37_79b9_7f4a_7c15;
    let wide = (folded * 0xd1b5_4a32_d192_ed03) ^ y;
    wide ^ wide >> 61
}
