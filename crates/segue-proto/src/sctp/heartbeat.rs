//! Heartbeats: they watch idle destinations and confirm new ones (RFC 9260 sections 5.4 and 8.3).

use super::PathState;
use super::association::Association;
use super::path::{DestinationId, HeartbeatSent, PathId};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use rand_core::RngCore;
use segue_wire::sctp::Chunk;

impl Association {
    /// The association came up, or a destination was added while it was: one that is not to be used before it answers
    /// is probed at once.
    pub(super) fn start_heartbeats(&mut self, now: Instant, index: DestinationId) {
        if awaits_answer(self.destinations[index].state) {
            self.send_heartbeat(now, index);
        } else {
            self.schedule_heartbeat(now, index);
        }
    }

    pub(super) fn on_heartbeat_timers(&mut self, now: Instant, index: DestinationId) {
        let watched = self.destinations.get(index).is_some_and(|d| !d.deactivated);
        if !watched || !self.may_heartbeat() {
            return;
        }
        let d = &mut self.destinations[index];
        if let Some(sent) = d.heartbeat
            && sent.expires <= now
            && sent.moot
        {
            d.heartbeat = None;
            // the path may have failed anew since data showed it to be well
            if awaits_answer(d.state) {
                d.heartbeat_due = Some(now);
            }
        }
        if let Some(sent) = d.heartbeat
            && sent.expires <= now
        {
            // section 8.2: not acknowledged within an RTO; section 8.3: the RTO backs off
            d.heartbeat = None;
            let unconfirmed = d.state == PathState::Unconfirmed;
            if let Some(path) = self.paths.get_mut(sent.path) {
                path.rtt.back_off();
            }
            if !self.count_error(index) {
                return;
            }
            // section 5.4: an unconfirmed address is probed every RTO, until Path.Max.Retrans is passed; after that at
            // the normal interval, unless the peer can be reached nowhere else
            let few = self.destinations[index].error_count <= self.config.path_max_retrans;
            // RFC 7829 section 3.2: so is one that has potentially failed
            let failing = self.destinations[index].state == PathState::PotentiallyFailed;
            if failing || (unconfirmed && (few || !self.has_confirmed())) {
                self.send_heartbeat(now, index);
                return;
            }
            if self.destinations[index].heartbeat_due.is_none() {
                self.schedule_heartbeat(now, index);
            }
        }
        if self.destinations[index].heartbeat_due.is_some_and(|at| at <= now) {
            // one at a time: the one that is out is to be answered, or counted
            let failing = self.destinations[index].state == PathState::PotentiallyFailed;
            if self.destinations[index].heartbeat.is_none() && (failing || self.is_idle(now, index)) {
                self.send_heartbeat(now, index);
            } else {
                self.schedule_heartbeat(now, index);
            }
        }
    }

    pub(super) fn on_heartbeat_ack(&mut self, now: Instant, info: &[u8]) {
        if read_info(info).is_some_and(|(nonce, _)| self.on_pmtu_probe_answered(nonce)) {
            return;
        }
        let Some((index, sent)) = self.heartbeat_answered(info) else {
            self.out.counters.refused.bad_heartbeat_acks += 1;
            return;
        };
        self.destinations[index].heartbeat = None;
        if let Some(path) = self.paths.get_mut(sent.path) {
            path.rtt.measure(now.since(sent.sent_at));
        }
        self.clear_errors(index);
        let verified = self.destinations[index].state == PathState::Unconfirmed;
        self.confirm(index);
        if verified && index == self.primary {
            self.leave_silent_paths(now);
        }
        self.schedule_heartbeat(now, index);
    }

    /// Heartbeats that left over paths that are `gone` are not answered. A destination that is not to be used before it
    /// answers gets another at once.
    pub(super) fn lose_heartbeats(&mut self, gone: impl Fn(PathId) -> bool) {
        for d in self.destinations.values_mut() {
            if d.heartbeat.take_if(|sent| gone(sent.path)).is_some() && awaits_answer(d.state) {
                d.heartbeat_due = Some(Instant::ZERO);
            }
        }
    }

    /// The destination whose heartbeat this answers, and when it was sent.
    fn heartbeat_answered(&self, info: &[u8]) -> Option<(DestinationId, HeartbeatSent)> {
        let (nonce, address) = read_info(info)?;
        let index = self.destination_index(address)?;
        let sent = self.destinations[index].heartbeat?;
        (sent.nonce == nonce).then_some((index, sent))
    }

    pub(super) fn send_heartbeat(&mut self, now: Instant, index: DestinationId) {
        let d = &self.destinations[index];
        let (address, path) = (d.address, d.path);
        let rto = self.paths.get(path).map_or(self.config.rto_initial, |p| p.rto());
        if !self.may_heartbeat() || !self.may_send_heartbeat(now, index, rto) {
            return;
        }
        let nonce = self.secret_u64();
        self.destinations[index].heartbeat = Some(HeartbeatSent {
            nonce,
            path,
            sent_at: now,
            expires: now + rto,
            moot: false,
        });
        self.schedule_heartbeat(now, index);
        self.queue_control(address, Chunk::Heartbeat(write_info(nonce, address)));
    }

    /// The next one in RTO + HB.interval, jittered by half an RTO either way (section 8.3).
    fn schedule_heartbeat(&mut self, now: Instant, index: DestinationId) {
        let Some(interval) = self.config.hb_interval else {
            self.destinations[index].heartbeat_due = None;
            return;
        };
        let path = self.destinations[index].path;
        let rto = self.paths.get(path).map_or(self.config.rto_initial, |p| p.rto());
        let jitter = Duration::from_nanos(self.rng.next_u64() % rto.as_nanos().max(1));
        self.destinations[index].heartbeat_due = Some(now + interval + rto / 2 + jitter);
    }

    /// Whether nothing that measures the round trip was sent there within the last HB.interval.
    fn is_idle(&self, now: Instant, index: DestinationId) -> bool {
        let d = &self.destinations[index];
        let interval = self.config.hb_interval.unwrap_or(Duration::ZERO);
        self.paths
            .get(d.path)
            .and_then(|p| p.last_data_sent)
            .is_none_or(|last| now.since(last) >= interval)
    }
}

/// Whether a destination in this state is used only once it has answered, where there is another (RFC 9260 section 5.4,
/// RFC 7829 section 3.2).
fn awaits_answer(state: PathState) -> bool {
    matches!(state, PathState::Unconfirmed | PathState::PotentiallyFailed)
}

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
