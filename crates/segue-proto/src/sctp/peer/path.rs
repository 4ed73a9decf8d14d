//! What is known of a pair of an address of ours and one of the peer's: round trips, window, PMTU.

use super::pmtu::{Pmtu, TooBig};
use super::sizes::PacketSizes;
use crate::congestion::{Acked, CongestionControl, Gain, Loss, RttEstimator, SctpWindow, WindowRules};
use crate::contract::LocalAddress;
use crate::sctp::Config;
use crate::sctp::ids::DestinationId;
use crate::time::{Duration, Instant};

/// A path. It is built whole where one begins or begins anew, so that nothing outlives the network it was learnt in.
#[derive(Debug)]
pub(in crate::sctp) struct Path {
    source: LocalAddress,
    destination: DestinationId,
    rtt: RttEstimator,
    /// Shortest round trip of data.
    least_round_trip: Option<Duration>,
    window: SctpWindow,
    pmtu: Pmtu,
    /// Since when nothing was sent on it, as far as cwnd has not yet come down for it.
    idle_since: Option<Instant>,
    /// When a new chunk was last sent on it, whose acknowledgement measures the round trip.
    new_data_sent: Option<Instant>,
    /// Its source is no longer ours: dropped as soon as nothing is outstanding on it.
    retired: bool,
}

impl Path {
    /// One of which nothing is known. `ssthresh`: the peer's window as its INIT or INIT ACK advertised it.
    pub(super) fn new(
        source: LocalAddress,
        destination: DestinationId,
        config: &Config,
        sizes: &PacketSizes,
        ssthresh: u32,
    ) -> Self {
        Self {
            source,
            destination,
            rtt: RttEstimator::new(config.rto_initial, config.rto_min, config.rto_max),
            least_round_trip: None,
            window: SctpWindow::new(sizes.rules(), ssthresh),
            pmtu: Pmtu::new(config, sizes.interface_mtu()),
            idle_since: None,
            new_data_sent: None,
            retired: false,
        }
    }

    pub(in crate::sctp) fn source(&self) -> LocalAddress {
        self.source
    }

    pub(in crate::sctp) fn destination(&self) -> DestinationId {
        self.destination
    }

    #[inline]
    pub(in crate::sctp) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    pub(in crate::sctp) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Smoothed round-trip time, if any was measured.
    pub(in crate::sctp) fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// What is taken for the smoothed round-trip time; where none was measured, the RTO.
    pub(in crate::sctp) fn srtt_or_rto(&self) -> Duration {
        self.rtt.srtt().unwrap_or_else(|| self.rtt.rto())
    }

    /// Shortest round trip of data; if there was none, the smoothed one of the heartbeats.
    pub(in crate::sctp) fn least_round_trip(&self) -> Option<Duration> {
        self.least_round_trip.or(self.rtt.srtt())
    }

    #[inline]
    pub(in crate::sctp) fn cwnd(&self) -> u32 {
        self.window.cwnd()
    }

    pub(in crate::sctp) fn ssthresh(&self) -> u32 {
        self.window.ssthresh()
    }

    /// Bytes by which the window opens.
    pub(in crate::sctp) fn segment(&self) -> u32 {
        self.window.segment()
    }

    /// When a new chunk was last sent on it.
    pub(super) fn new_data_sent(&self) -> Option<Instant> {
        self.new_data_sent
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired
    }

    /// Packets of this size are taken to pass.
    pub(super) fn pmtu(&self) -> u32 {
        self.pmtu.value()
    }

    /// The next timer of the search for its PMTU.
    pub(super) fn pmtu_timer(&self) -> Option<Instant> {
        self.pmtu.timer()
    }
}

/// What happens on it.
impl Path {
    /// A chunk is sent on it again.
    pub(super) fn note_sent_again(&mut self, now: Instant) {
        self.idle_since = Some(now);
    }

    /// A new chunk is sent on it.
    #[inline]
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.idle_since = Some(now);
        self.new_data_sent = Some(now);
    }

    /// Something sent on it was acknowledged: packets of this size pass.
    pub(super) fn note_arrival(&mut self) {
        self.pmtu.note_arrival();
    }

    /// Data took so long there and back.
    pub(super) fn measure_data(&mut self, round_trip: Duration) {
        self.rtt.measure(round_trip);
        let least = &mut self.least_round_trip;
        *least = Some(least.map_or(round_trip, |l| l.min(round_trip)));
    }

    /// A heartbeat took so long there and back (section 8.3).
    pub(super) fn measure_heartbeat(&mut self, round_trip: Duration) {
        self.rtt.measure(round_trip);
    }

    /// Something sent on it was not answered in time: the RTO doubles (rule E2).
    pub(super) fn back_off(&mut self) {
        self.rtt.back_off();
    }

    pub(super) fn on_ack(&mut self, acked: Acked, gain: Gain) {
        self.window.on_ack_coupled(acked, gain);
    }

    /// A loss that missing reports tell of cuts the window: to `ssthresh`, if that is coupled to others.
    pub(super) fn on_loss(&mut self, loss: Loss, ssthresh: Option<u32>) {
        match ssthresh {
            Some(ssthresh) => self.window.cut_to(ssthresh),
            None => self.window.on_loss(loss),
        }
    }

    /// T3-rtx expired: one segment is left of the window. `ssthresh`: if that is coupled to others.
    pub(super) fn on_rto(&mut self, loss: Loss, ssthresh: Option<u32>) {
        self.window.on_rto(loss);
        if let Some(ssthresh) = ssthresh {
            self.window.set_ssthresh(ssthresh);
        }
    }

    /// See [`CwndCredit::AckPath`](crate::sctp::CwndCredit::AckPath).
    pub(super) fn on_credit(&mut self) {
        self.window.on_credit();
    }

    /// It holds others up: half of its window is left.
    pub(super) fn halve_window(&mut self) {
        self.window.cut_to(self.window.cwnd() / 2);
    }

    /// It has answered after it had potentially failed: its window begins with so many segments.
    pub(super) fn restart_window(&mut self, segments: u32) {
        self.window.restart();
        let one = self.window.cwnd();
        if segments > 1 {
            self.window.set_cwnd(one * segments);
        }
    }

    /// The peer's window is known: its own begins, of which nothing has been used.
    pub(super) fn begin_window(&mut self, rules: WindowRules, ssthresh: u32) {
        self.window = SctpWindow::new(rules, ssthresh);
    }

    /// Packets have another length.
    pub(super) fn follow_rules(&mut self, rules: WindowRules) {
        self.window.set_rules(rules);
    }

    /// Section 7.2.1: what idle RTOs have done to cwnd, worked out when data is about to be sent
    /// again while nothing is under way.
    pub(super) fn decay_idle(&mut self, now: Instant) {
        let Some(since) = self.idle_since else { return };
        let idle = now.since(since);
        let rto = self.rtt.rto();
        if idle >= rto {
            self.window.on_idle(idle.as_nanos() / rto.as_nanos().max(1));
            self.idle_since = Some(now);
        }
    }

    /// A router says that packets must not exceed `mtu`.
    pub(super) fn on_packet_too_big(&mut self, now: Instant, mtu: u32) -> TooBig {
        self.pmtu.on_packet_too_big(now, mtu)
    }

    /// The size of the probe that the search asks for now, if any.
    pub(super) fn next_probe(&mut self, now: Instant, interface_mtu: u32) -> Option<u32> {
        self.pmtu.next_probe(now, interface_mtu)
    }

    /// That probe goes out.
    pub(super) fn probe_sent(&mut self, now: Instant, nonce: u64, size: u32) {
        self.pmtu.probe_sent(now, nonce, size, self.rtt.rto());
    }

    /// Whether a HEARTBEAT ACK with this nonce answers a probe; what was probed then passes.
    pub(super) fn probe_answered(&mut self, nonce: u64) -> bool {
        self.pmtu.answered(nonce)
    }

    /// The timers of the search; returns whether the PMTU is another one.
    pub(super) fn on_pmtu_timers(&mut self, now: Instant, interface_mtu: u32) -> bool {
        self.pmtu.on_timers(now, interface_mtu)
    }

    /// T3-rtx expired; returns whether the PMTU is another one for it.
    pub(super) fn suspect_black_hole(&mut self, interface_mtu: u32) -> bool {
        self.pmtu.suspect_black_hole(interface_mtu)
    }

    /// Its source is no longer ours.
    pub(super) fn retire(&mut self) {
        self.retired = true;
    }

    /// Its source is ours again.
    pub(super) fn take_back(&mut self) {
        self.retired = false;
    }
}

/// Tests give it a window and round trips.
#[cfg(test)]
impl Path {
    pub(in crate::sctp) fn set_cwnd(&mut self, cwnd: u32) {
        self.window.set_cwnd(cwnd);
    }

    pub(in crate::sctp) fn set_ssthresh(&mut self, ssthresh: u32) {
        self.window.set_ssthresh(ssthresh);
    }

    pub(in crate::sctp) fn measure(&mut self, round_trip: Duration) {
        self.rtt.measure(round_trip);
    }

    pub(in crate::sctp) fn set_rtt(&mut self, rtt: RttEstimator) {
        self.rtt = rtt;
    }

    pub(super) fn pmtu_mut(&mut self) -> &mut Pmtu {
        &mut self.pmtu
    }
}
