//! Sequence numbers of WireGuard, whose counters begin anew with every key.

/// One direction's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyCounters {
    /// Index of the keys in use.
    index: u32,
    /// Sequence number of their counter's zero.
    base: u32,
    /// The first sequence number that is free.
    free: u32,
}

impl KeyCounters {
    /// Sequence number of a packet: those of one key go on behind those of the key before.
    pub(super) fn seq(&mut self, index: u32, counter: u64) -> u32 {
        if self.index != index {
            self.index = index;
            self.base = self.free.wrapping_sub(counter as u32);
        }
        let seq = self.base.wrapping_add(counter as u32);
        let after = seq.wrapping_add(1);
        if after.wrapping_sub(self.free) as i32 > 0 {
            self.free = after;
        }
        seq
    }
}
