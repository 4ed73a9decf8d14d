//! The fast recovery of an association that sends on one path at a time (RFC 9260 section 7.2.4), and what of the marked chunks
//! goes whatever cwnd says.
//!
//! An episode of losses cuts a window once. With concurrent multipath transfer each path has episodes of its own.

use segue_wire::Tsn;

/// Where an association is in an episode of losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::sctp) struct Recovery {
    /// In fast recovery until all that was sent up to this TSN is acknowledged.
    exit: Option<Tsn>,
    /// Packets of marked chunks to be sent whatever cwnd says (E3 and section 7.2.4).
    forced: u32,
}

impl Recovery {
    pub(in crate::sctp) fn is_on(&self) -> bool {
        self.exit.is_some()
    }

    /// An episode begins: it lasts until what was sent up to `last_sent` is acknowledged.
    pub(in crate::sctp) fn begin(&mut self, last_sent: Tsn) {
        self.exit = Some(last_sent);
    }

    /// The cumulative TSN ack is `cumulative`.
    pub(in crate::sctp) fn on_acknowledged(&mut self, cumulative: Tsn) {
        self.exit.take_if(|exit| exit.at_or_before(cumulative));
    }

    /// A timeout, another route or other TSNs: the episode is over.
    pub(in crate::sctp) fn end(&mut self) {
        self.exit = None;
    }

    /// Whether the next packet of marked chunks goes whatever cwnd says.
    pub(in crate::sctp) fn forces(&self) -> bool {
        self.forced > 0
    }

    /// One packet goes whatever cwnd says.
    pub(in crate::sctp) fn force_one(&mut self) {
        self.forced = 1;
    }

    /// At least one packet goes whatever cwnd says.
    pub(in crate::sctp) fn force_any(&mut self) {
        self.forced = self.forced.max(1);
    }

    /// One packet more goes whatever cwnd says, if there are so many of `marked` chunks.
    pub(in crate::sctp) fn force_more(&mut self, marked: u32) {
        self.forced = (self.forced + 1).min(marked);
    }

    /// A packet of marked chunks goes out; whether because it was forced.
    pub(in crate::sctp) fn use_forced(&mut self) -> bool {
        let forced = self.forces();
        self.forced = self.forced.saturating_sub(1);
        forced
    }

    /// No chunk is marked any more.
    pub(in crate::sctp) fn nothing_is_marked(&mut self) {
        self.forced = 0;
    }

    /// What tests look at: the end of the episode, and the packets forced.
    #[cfg(test)]
    pub(in crate::sctp) fn episode(&self) -> (Option<u32>, u32) {
        (self.exit.map(|tsn| tsn.0), self.forced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_ends_with_what_was_sent_when_it_began_or_with_what_ends_it() {
        let mut recovery = Recovery::default();
        recovery.begin(Tsn(7));
        recovery.on_acknowledged(Tsn(6));
        assert_eq!(recovery.episode().0, Some(7));
        recovery.on_acknowledged(Tsn(7));
        assert!(!recovery.is_on());
        recovery.begin(Tsn(9));
        recovery.end();
        assert!(!recovery.is_on());
    }

    #[test]
    fn forced_are_no_more_packets_than_chunks_are_marked() {
        let mut recovery = Recovery::default();
        recovery.force_more(2);
        recovery.force_more(2);
        recovery.force_more(2);
        assert_eq!(recovery.episode().1, 2);
        recovery.force_any();
        assert!(recovery.use_forced() && recovery.use_forced() && !recovery.use_forced());
        recovery.force_any();
        recovery.force_one();
        assert_eq!(recovery.episode().1, 1);
        recovery.nothing_is_marked();
        assert!(!recovery.forces());
    }
}
