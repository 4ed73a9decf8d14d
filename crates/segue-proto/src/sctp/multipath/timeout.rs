//! Timeouts, where retransmissions change paths.
//!
//! # For which chunk T3-rtx runs
//! RFC 9260 section 6.3.2 has it run for the lowest TSN that is outstanding on the path (R3). A chunk that comes from
//! another path has a lower TSN than what has been under way here for long: T3-rtx would stop following those, and
//! expire an RTO after this one was sent, although acknowledgements arrive all the while; in a queue that fills, a
//! round trip takes longer than the RTO that was worked out when it was shorter. So T3-rtx runs for the chunk that
//! was sent first, which on one path and without retransmissions is the same. One that is lost is in its turn the
//! first.
//!
//! # What is marked
//! What was sent shortly before T3-rtx expires is not taken for lost (Iyengar, Amer and Stewart, "Retransmission
//! policies for concurrent multipath transfer using SCTP multihoming", ICON 2004).
//!
//! RFC 9260 section 6.3.3 has everything that is outstanding on the path marked. With several paths T3-rtx often
//! expires for one chunk, a retransmission that was lost, while the rest of the window is in the queue of a path that
//! is well. All of it would go out a second time, on a path with a larger window, before its acknowledgement can be
//! there. What was sent less than a smoothed round trip ago stays outstanding, and T3-rtx runs on for it.

use super::Concurrent;
use crate::sctp::ids::PathId;
use crate::sctp::peer::Peer;
use crate::time::{Duration, Instant};

impl Concurrent {
    /// T3-rtx of a path expired; `lost`: and not because the peer's window is closed. Returns ssthresh, where coupling has a
    /// say in it.
    pub(in crate::sctp) fn on_t3(&mut self, path: PathId, lost: bool, peer: &Peer) -> Option<u32> {
        let coupled = self.coupled_ssthresh(path, peer);
        self.shares.open(path).on_t3(lost);
        coupled
    }

    /// The time from which on chunks that were sent on a path with this smoothed round trip are left alone by its T3-rtx.
    pub(in crate::sctp) fn spared_from(&self, now: Instant, srtt: Option<Duration>) -> Instant {
        match srtt {
            Some(srtt) if self.settings.spare_recent => now - srtt,
            _ => Instant::MAX,
        }
    }
}
