//! Heartbeats: they watch idle destinations and confirm new ones (RFC 9260 sections 5.4 and 8.3).

use super::probing::{HeartbeatAck, Probing};
use super::{Destination, Path, Peer};
use crate::sctp::ids::{DestinationId, PathId};
use crate::sctp::outbox::ControlPacket;
use crate::sctp::{Config, PathState};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use rand_core::RngCore;
use segue_wire::sctp::Chunk;
use smallvec::SmallVec;

impl Peer {
    /// The association came up, or a destination was added while it was: one that is not to be used before it answers
    /// is probed at once.
    pub(in crate::sctp) fn start_heartbeats(
        &mut self,
        now: Instant,
        index: DestinationId,
        probing: &mut Probing<'_>,
    ) {
        if self.destinations[index].is_to_be_probed() {
            self.send_heartbeat(now, index, probing);
        } else {
            self.schedule_heartbeat(now, index, probing);
        }
    }

    /// A destination that the peer had wanted nothing at is in use again: one that is not known to be well is probed at once.
    pub(in crate::sctp) fn resume_heartbeats(
        &mut self,
        now: Instant,
        index: DestinationId,
        probing: &mut Probing<'_>,
    ) {
        if self.destinations[index].state() == PathState::Active {
            self.start_heartbeats(now, index, probing);
        } else {
            self.send_heartbeat(now, index, probing);
        }
    }

    /// No packet can leave.
    pub(in crate::sctp) fn stop_heartbeats(&mut self) {
        for destination in self.destinations.values_mut() {
            destination.stop_heartbeats();
        }
    }

    /// The first timer of paths, and of destinations where `heartbeats` may be sent; [`Instant::MAX`] if none runs.
    #[inline]
    pub(in crate::sctp) fn next_timer(&self, heartbeats: bool) -> Instant {
        let mut earliest = Instant::MAX;
        for path in self.paths.values() {
            earliest = earliest.min(path.pmtu_timer().unwrap_or(Instant::MAX));
        }
        let watched = self.destinations.values();
        for destination in watched.filter(|d| heartbeats && !d.is_deactivated()) {
            earliest = earliest.min(destination.heartbeat_timer());
        }
        earliest
    }

    /// Timers of a destination. Returns false if the association is lost with it.
    #[must_use]
    pub(in crate::sctp) fn on_heartbeat_timers(
        &mut self,
        now: Instant,
        index: DestinationId,
        probing: &mut Probing<'_>,
    ) -> bool {
        let Some(d) = self.destinations.get_mut(index) else {
            return true;
        };
        if d.is_deactivated() || !probing.allowed {
            return true;
        }
        if let Some(expired) = d.heartbeat_expired(now) {
            // section 8.2: not acknowledged within an RTO; section 8.3: the RTO backs off
            let was_unconfirmed = !d.is_confirmed();
            self.back_off(expired.path());
            if !self.count_error(index, probing.config, probing.out) {
                return false;
            }
            let d = &self.destinations[index];
            // section 5.4: an unconfirmed address is probed every RTO, until Path.Max.Retrans is passed; after that at
            // the normal interval, unless the peer can be reached nowhere else
            let few = d.error_count() <= probing.config.path_max_retrans;
            // RFC 7829 section 3.2: so is one that has potentially failed
            let failing = d.state() == PathState::PotentiallyFailed;
            if failing || (was_unconfirmed && (few || !self.has_confirmed())) {
                self.send_heartbeat(now, index, probing);
                return true;
            }
            if d.heartbeat_due().is_none() {
                self.schedule_heartbeat(now, index, probing);
            }
        }
        let d = &self.destinations[index];
        if d.heartbeat_due().is_some_and(|at| at <= now) {
            // one at a time: the one that is out is to be answered, or counted
            let failing = d.state() == PathState::PotentiallyFailed;
            if !d.awaits_heartbeat_ack() && (failing || self.is_idle(now, index, probing.config)) {
                self.send_heartbeat(now, index, probing);
            } else {
                self.schedule_heartbeat(now, index, probing);
            }
        }
        true
    }

    pub(in crate::sctp) fn on_heartbeat_ack(
        &mut self,
        now: Instant,
        info: &[u8],
        probing: &mut Probing<'_>,
    ) -> HeartbeatAck {
        let Some((nonce, address)) = read_info(info) else {
            return HeartbeatAck::Refused;
        };
        if self.pmtu_probe_answered(nonce, probing.config) {
            return HeartbeatAck::Probe;
        }
        let Some(index) = self.find(address) else {
            return HeartbeatAck::Refused;
        };
        let Some(sent) = self.destinations[index].heartbeat_answered(nonce) else {
            return HeartbeatAck::Refused;
        };
        self.measure_heartbeat(sent.path(), now.since(sent.sent_at()));
        self.clear_errors(index, probing.config, probing.out);
        let confirmed = self.confirm(index, probing.out);
        self.schedule_heartbeat(now, index, probing);
        HeartbeatAck::Answer {
            confirms: confirmed.then_some(index),
        }
    }

    /// Heartbeats that left over paths that are `gone` are not answered. A destination that is not to be used before it
    /// answers gets another at once.
    pub(in crate::sctp) fn lose_heartbeats(&mut self, gone: impl Fn(PathId) -> bool) {
        for d in self.destinations.values_mut() {
            d.lose_heartbeat(&gone);
        }
    }

    fn send_heartbeat(&mut self, now: Instant, index: DestinationId, probing: &mut Probing<'_>) {
        let rto = self.rto_to(index, probing.config);
        if !probing.allowed || !self.may_send_heartbeat(now, index, rto, probing) {
            return;
        }
        let nonce = probing.rng.next_u64();
        let d = &mut self.destinations[index];
        d.heartbeat_sent(now, nonce, rto);
        let address = d.address();
        self.schedule_heartbeat(now, index, probing);
        let heartbeat = Chunk::Heartbeat(write_info(nonce, address));
        let chunks = SmallVec::from_buf([heartbeat]);
        probing.out.send(ControlPacket::new(address, chunks));
    }

    /// The next one in RTO + HB.interval, jittered by half an RTO either way (section 8.3).
    fn schedule_heartbeat(&mut self, now: Instant, index: DestinationId, probing: &mut Probing<'_>) {
        let due = probing.config.hb_interval.map(|interval| {
            let rto = self.rto_to(index, probing.config);
            let jitter = Duration::from_nanos(probing.rng.next_u64() % rto.as_nanos().max(1));
            now + interval + rto / 2 + jitter
        });
        self.destinations[index].schedule_heartbeat(due);
    }

    /// Whether nothing that measures the round trip was sent there within the last HB.interval (section 8.3: "no new chunk that
    /// can be used for updating path RTT"). What is sent again does not (Karn's algorithm, section 6.3.1 rule C5).
    fn is_idle(&self, now: Instant, index: DestinationId, config: &Config) -> bool {
        let interval = config.hb_interval.unwrap_or(Duration::ZERO);
        self.paths
            .get(self.destinations[index].path())
            .and_then(Path::new_data_sent)
            .is_none_or(|last| now.since(last) >= interval)
    }
}

/// HB.Max.Burst (section 5.4).
impl Peer {
    /// Whether a HEARTBEAT may go to a destination now; if not, it will be due when it may.
    pub(super) fn may_send_heartbeat(
        &mut self,
        now: Instant,
        index: DestinationId,
        rto: Duration,
        probing: &mut Probing<'_>,
    ) -> bool {
        let d = &self.destinations[index];
        if d.is_confirmed() || probing.replies.spend_on_heartbeat(d.address(), probing.auth_len) {
            return true;
        }
        let later = if self.is_preceded(now, index) {
            self.heartbeat_limit.ends()
        } else {
            let most = probing.config.hb_max_burst.max(1);
            match self.heartbeat_limit.take(now, rto, most) {
                Ok(()) => return true,
                Err(later) => later,
            }
        };
        let due = later.max(now + MIN_DELAY);
        self.destinations[index].schedule_heartbeat(Some(due));
        false
    }

    /// Whether another unconfirmed destination waits for its HEARTBEAT too, and comes first: so that one that is not
    /// there does not keep the others waiting.
    fn is_preceded(&self, now: Instant, index: DestinationId) -> bool {
        let rank = |i: DestinationId, d: &Destination| (d.error_count(), i != self.primary, i.place());
        let own = rank(index, &self.destinations[index]);
        self.destinations.iter().any(|(i, d)| {
            let waits = !d.is_deactivated()
                && !d.is_confirmed()
                && !d.awaits_heartbeat_ack()
                && d.heartbeat_due().is_some_and(|due| due <= now);
            i != index && waits && rank(i, d) < own
        })
    }
}

/// So that what comes after another is asked for again after that was sent.
const MIN_DELAY: Duration = Duration::from_nanos(1);

/// Heartbeat information: nonce, then the destination.
pub(super) fn write_info(nonce: u64, address: Ipv6Addr) -> Bytes {
    let mut info = Vec::with_capacity(24);
    info.extend(nonce.to_be_bytes());
    info.extend(address.octets());
    info.into()
}

fn read_info(info: &[u8]) -> Option<(u64, Ipv6Addr)> {
    let (nonce, rest) = info.split_first_chunk::<8>()?;
    let address: [u8; 16] = rest.try_into().ok()?;
    Some((u64::from_be_bytes(*nonce), address.into()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::Rig;
    use super::*;
    use crate::sctp::replies::Replies;
    use crate::sctp::testing::{destination, ms};
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    #[test]
    fn those_with_fewer_errors_come_first() {
        let rto = Duration::from_secs(1);
        let mut rig = Rig::new(Config::default(), 3);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut replies = Replies::default();
        let mut probing = Probing {
            config: &rig.config,
            rng: &mut rng,
            out: &mut rig.out,
            replies: &mut replies,
            auth_len: 0,
            allowed: true,
        };
        let peer = &mut rig.peer;
        let [second, third] = [1, 2].map(destination);
        let mut may = |peer: &mut Peer, at, index| peer.may_send_heartbeat(ms(at), index, rto, &mut probing);
        assert!(may(peer, 5, second), "confirmed");
        for d in peer.destinations.values_mut().skip(1) {
            d.set_state(PathState::Unconfirmed);
            d.schedule_heartbeat(Some(ms(5)));
        }
        peer.destinations[1].count_error();
        assert!(!may(peer, 5, second));
        assert_eq!(peer.destinations[1].heartbeat_due(), Some(ms(5) + MIN_DELAY));
        assert!(may(peer, 5, third));
        // one in an RTO
        peer.destinations[2].schedule_heartbeat(Some(ms(9)));
        peer.destinations[1].schedule_heartbeat(Some(ms(6)));
        assert!(!may(peer, 6, second));
        assert_eq!(peer.destinations[1].heartbeat_due(), Some(ms(1005)));
        assert!(!peer.is_preceded(ms(8), second) && peer.is_preceded(ms(9), second));
        peer.destinations[1].answers();
        assert!(!peer.is_preceded(ms(9), second), "the first of equals");
    }
}
