//! Packets that a capture has twice: on another interface, or inside a tunnel and outside of it.

use super::item::Item;
use super::paths::Sight;
use std::collections::VecDeque;

/// Packets remembered to notice that.
const RECENT: usize = 8;

/// Copies of a packet that one host captures are no further apart than this.
const CAPTURED_TWICE_NS: u64 = 1_000_000;

/// A packet: what it was, when, by which path.
type Packet = (u64, u64, u16);

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
        let same =
            |r: &Packet| r.0 == what && r.2 != path && sight.time_ns.saturating_sub(r.1) < CAPTURED_TWICE_NS;
        if several {
            if same(&self.last) || self.recent.iter().any(same) {
                self.count += 1;
                return true;
            }
            if self.recent.len() >= RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(self.last);
        }
        self.last = (what, sight.time_ns, path);
        false
    }

    /// How many were.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}
