//! Sequence numbers of WireGuard, whose counters begin anew with every key.

/// Packets that may have overtaken the first one of a key that is seen: as many as a receiver keeps account of (WireGuard's
/// window is of 8192).
const OVERTAKING: u64 = 8192;

/// A key that a direction uses.
#[derive(Clone, Copy, Debug)]
struct Key {
    /// What the receiver calls it.
    index: u32,
    /// Sequence number of its counter's zero.
    base: u32,
}

/// One direction's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyCounters {
    /// The newest key, and the one before: of that, packets are under way when the next is in use at the sender, and what
    /// is captured at both ends shows both keys by turns.
    keys: [Option<Key>; 2],
    /// The first sequence number that is free.
    free: u32,
}

impl KeyCounters {
    /// Sequence number of a packet, the same wherever it is seen: those of one key go on behind those of the key before.
    pub(super) fn seq(&mut self, index: u32, counter: u64) -> u32 {
        let known = self.keys.iter().flatten().find(|key| key.index == index);
        let base = match known {
            Some(key) => key.base,
            None => self.begin(index, counter),
        };
        let seq = base.wrapping_add(counter as u32);
        let after = seq.wrapping_add(1);
        if after.wrapping_sub(self.free) as i32 > 0 {
            self.free = after;
        }
        seq
    }

    /// A key comes into use: gives the sequence number of its counter's zero.
    fn begin(&mut self, index: u32, counter: u64) -> u32 {
        let [newest, _] = self.keys;
        // those that the first one seen has overtaken have room before it, unless it is the capture that begins late
        let base = if newest.is_some() && counter < OVERTAKING {
            self.free
        } else {
            self.free.wrapping_sub(counter as u32)
        };
        self.keys = [Some(Key { index, base }), newest];
        base
    }
}
