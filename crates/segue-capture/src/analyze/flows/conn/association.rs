//! What a flow of SCTP knows of itself by its verification tags.

use super::Conn;
use crate::analyze::decode::Address;
use crate::analyze::flows::parties::{End, Parties};
use crate::analyze::flows::tags::Asked;

impl Conn {
    /// A packet of an association with this tag goes between these; gives its direction.
    pub(in crate::analyze) fn tagged(&mut self, tag: u32, source: End, destination: End) -> usize {
        let by_tag = self.tags.direction(tag);
        let direction = by_tag.unwrap_or_else(|| self.direction(source, destination));
        self.parties.learn(direction, source, destination);
        self.tags.carry(direction, tag);
        direction
    }

    /// INIT or INIT ACK of this direction, which carries a tag or none, asks for one, and says its first TSN. Whether it is the
    /// association's own: of another, nothing more is known of whether it will come to be.
    pub(in crate::analyze) fn initiates(
        &mut self,
        direction: usize,
        carries: u32,
        (tag, tsn): (u32, u32),
        now_ns: u64,
    ) -> bool {
        let asks = Asked { tag, tsn: Some(tsn) };
        if self.has_data() && self.tags.are_asked_anew(direction, carries, asks, now_ns) {
            return false;
        }
        self.tags.asked_for(direction, tag);
        self.begins(direction, tsn);
        true
    }

    /// The association that a packet between these, which are `shown` so, proves to have taken this one's place: an end that
    /// has lost all it knew of this one has begun another (RFC 9260 section 5.2).
    pub(in crate::analyze) fn restarted(
        &self,
        tag: u32,
        echoes_cookie: bool,
        ends: [End; 2],
        shown: [Address; 2],
    ) -> Option<Box<Self>> {
        let [source, destination] = ends;
        let direction = self.direction(source, destination);
        let restarted = self.tags.restart(direction, tag, echoes_cookie)?;
        let parties = if direction == restarted.by {
            Parties::new(ends, shown)
        } else {
            Parties::new([destination, source], [shown[1], shown[0]])
        };
        let mut next = Self::new(self.protocol, parties, restarted.since_ns);
        next.tags = restarted.tags;
        for (half, tsn) in next.halves.iter_mut().zip(restarted.tsns) {
            if let Some(tsn) = tsn {
                half.begin(tsn);
            }
        }
        Some(next)
    }

    /// Verification tags, by direction; zero where none is known.
    pub(in crate::analyze) const fn tags(&self) -> [u32; 2] {
        self.tags.carried()
    }

    /// Whether a packet between these is of a handshake that may come to nothing, or of the association before this one.
    pub(in crate::analyze) fn is_none_of(&self, tag: u32, source: End, destination: End) -> bool {
        let direction = self.direction(source, destination);
        self.tags.are_not(direction, tag)
    }

    /// Whether an INIT of this direction, which asks for this tag, begins another association between the same ends.
    pub(in crate::analyze) fn is_replaced_by_init(&self, direction: usize, tag: Option<u32>) -> bool {
        self.closing.has_begun() && self.tags.are_replaced(direction, tag)
    }
}
