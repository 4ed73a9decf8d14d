//! What the sender remembers of abandoned TSNs (RFC 3758).

use crate::sctp::Reliability;
use crate::sctp::ids::DestinationId;
use crate::time::{Duration, Instant};
use segue_wire::Tsn;
use smallvec::SmallVec;

/// A FORWARD TSN that was sent.
#[derive(Clone, Copy, Debug)]
struct ForwardTsnSent {
    tsn: Tsn,
    at: Instant,
    destination: DestinationId,
}

/// What the sender remembers of abandoned TSNs.
#[derive(Debug, Default)]
pub(super) struct Abandoned {
    /// A message with a policy was sent.
    in_use: bool,
    /// Advanced.Peer.Ack.Point, while it is beyond the cumulative TSN ack.
    point: Option<Tsn>,
    /// A FORWARD TSN is to be sent.
    due: bool,
    /// The last one.
    sent: Option<ForwardTsnSent>,
    /// Guards the last FORWARD TSN as T3-rtx guards DATA (RFC 3758 section 3.5, rule C5).
    t3_rtx: Option<Instant>,
    /// Streams that have begun again, all if none is named, each with the last TSN before that.
    begun_again: SmallVec<[(Option<u16>, Tsn); 1]>,
}

impl Abandoned {
    /// A message is sent that is to be given up by this policy.
    #[inline]
    pub(super) fn note_policy(&mut self, reliability: Reliability) {
        self.in_use |= reliability != Reliability::Full;
    }

    #[inline]
    pub(super) fn in_use(&self) -> bool {
        self.in_use
    }

    /// Whether a FORWARD TSN is to be sent.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    #[inline]
    pub(super) fn t3_rtx(&self) -> Option<Instant> {
        self.t3_rtx
    }

    /// The destination that the last FORWARD TSN went to.
    pub(super) fn destination(&self) -> Option<DestinationId> {
        self.sent.map(|sent| sent.destination)
    }

    /// Advanced.Peer.Ack.Point, or the cumulative TSN ack where that is beyond it.
    pub(super) fn point_from(&self, cumulative: Tsn) -> Tsn {
        self.point
            .filter(|point| cumulative.before(*point))
            .unwrap_or(cumulative)
    }

    /// Streams have begun again, all if none is named, behind `last`, which the peer has passed. `cumulative` is its last ack.
    pub(super) fn streams_begin_again(&mut self, streams: &[u16], last: Tsn, cumulative: Tsn) {
        self.begun_again
            .retain(|(stream, at)| cumulative.before(*at) && !stream.is_some_and(|s| streams.contains(&s)));
        if cumulative.before(last) {
            if streams.is_empty() {
                self.begun_again.clear();
                self.begun_again.push((None, last));
            } else {
                self.begun_again.extend(streams.iter().map(|s| (Some(*s), last)));
            }
        }
    }

    /// Whether a chunk of a stream was sent before that began again: of its SSN the peer knows nothing any more (RFC 6525
    /// section 5.2.2, E2 and E4).
    pub(super) fn is_of_former(&self, stream: u16, tsn: Tsn) -> bool {
        self.begun_again
            .iter()
            .any(|(begun, last)| begun.is_none_or(|b| b == stream) && tsn.at_or_before(*last))
    }

    /// Rules C1 to C3: the point is at `point`, which is beyond the cumulative TSN ack. `wait` tells how long the same FORWARD
    /// TSN is not repeated: rule F2's note has it go again only after a round trip; T3-rtx sees to it that it does.
    pub(super) fn advance(&mut self, now: Instant, point: Tsn, wait: impl FnOnce(DestinationId) -> Duration) {
        self.point = Some(point);
        self.due |= match self.sent {
            Some(sent) if sent.tsn == point => now.since(sent.at) >= wait(sent.destination),
            _ => true,
        };
    }

    /// A FORWARD TSN is made; returns how far it may go.
    pub(super) fn take_due(&mut self) -> Option<Tsn> {
        self.due = false;
        self.point
    }

    /// It goes as far as `tsn`, to a destination whose RTO is `rto`.
    pub(super) fn forward_tsn_sent(
        &mut self,
        now: Instant,
        tsn: Tsn,
        destination: DestinationId,
        rto: Duration,
    ) {
        self.point = Some(tsn);
        let at = now;
        self.sent = Some(ForwardTsnSent { tsn, at, destination });
        self.t3_rtx = Some(now + rto);
    }

    /// The timer expired; returns the destination that did not answer.
    pub(super) fn expire(&mut self) -> Option<DestinationId> {
        self.t3_rtx = None;
        self.sent.take().map(|sent| sent.destination)
    }

    /// The last FORWARD TSN is to go once more.
    pub(super) fn repeat(&mut self) {
        self.sent = None;
    }

    pub(super) fn stop_timer(&mut self) {
        self.t3_rtx = None;
    }

    /// TSNs begin anew: those of before mean nothing.
    pub(super) fn restart(&mut self) {
        self.clear();
        self.begun_again.clear();
    }

    /// Nothing abandoned is left that the peer does not know of.
    pub(super) fn clear(&mut self) {
        self.point = None;
        self.due = false;
        self.sent = None;
        self.t3_rtx = None;
    }
}
