//! What is not answered, and what is (RFC 9260 sections 8.1 and 8.2), and quick failover (RFC 7829): destinations that have
//! potentially failed, and primary path switchover.
//!
//! A destination whose error count passes PFMR is potentially failed (PF) until it passes Path.Max.Retrans or answers.
//! New data and retransmissions keep away from it while another destination is active, and a heartbeat goes there every
//! RTO. With PFMR 0 the first timeout moves the data, so that the gap that a dead link leaves is about one RTO. See
//! [`Config::pf_max_retrans`] for settings.
//!
//! # With concurrent multipath transfer
//! CMT-PF (Natarajan et al. 2006): a path whose T3-rtx expires once has potentially failed, and gets no data until it has
//! answered a heartbeat. An acknowledgement of what T3-rtx marked, or of what was sent again, is no answer: the first may
//! have been on its way when the path died, the second may be for the transmission on another path (RFC 7829 section 3.2,
//! too, leaves chunks out that went to several addresses). Where no other destination is active, data goes there all the
//! same, and any acknowledgement will do.
//!
//! The state is that of RFC 7829 with PFMR 0; heartbeats go every RTO, which backs off. What is added: cwnd of a path that
//! answered may begin with two segments instead of one, so that a receiver that delays its SACKs answers the first flight at
//! once.

use super::Peer;
use crate::sctp::ids::DestinationId;
use crate::sctp::outbox::Outbox;
use crate::sctp::{Config, Event, PathState, Unreachable};
use crate::time::Instant;
use core::hint::cold_path;
use core::net::Ipv6Addr;

impl Peer {
    /// Something sent to `index` was not answered in time (section 8.1, 8.2). Returns false if the association is lost
    /// with it.
    #[must_use]
    pub(in crate::sctp) fn count_error(
        &mut self,
        index: DestinationId,
        config: &Config,
        out: &mut Outbox,
    ) -> bool {
        // section 5.4: heartbeats to unconfirmed addresses do not count against the association, unless the peer has
        // no others: nothing else would ever find out that it is gone
        let counts = self.destinations[index].is_confirmed() || !self.has_confirmed();
        self.destinations[index].count_error();
        self.degrade(index, config, out);
        if counts {
            self.error_count += 1;
        }
        !counts || self.error_count <= config.association_max_retrans
    }

    /// A control chunk that was sent to `index` was not answered in time: as for DATA, the RTO of its path doubles, and that
    /// is an error. Returns false if the association is lost with it.
    #[must_use]
    pub(in crate::sctp) fn not_answered(
        &mut self,
        index: DestinationId,
        config: &Config,
        out: &mut Outbox,
    ) -> bool {
        let path = self.destinations[index].path();
        self.back_off(path);
        self.count_error(index, config, out)
    }

    /// An acknowledgement arrived of what was sent to `index`. `is_proof`: it can be for nothing else; otherwise a destination
    /// that CMT-PF keeps data from goes on waiting for the answer to a heartbeat.
    #[inline]
    pub(in crate::sctp) fn acknowledges(
        &mut self,
        index: DestinationId,
        is_proof: bool,
        config: &Config,
        out: &mut Outbox,
    ) {
        if self.destinations[index].error_count() == 0 && self.error_count == 0 {
            return;
        }
        cold_path();
        if is_proof || !self.awaits_heartbeat_ack(index, config) {
            self.clear_errors(index, config, out);
        } else {
            self.error_count = 0;
        }
    }

    /// Whether a destination is left alone until it has answered a heartbeat, or what T3-rtx did not take for lost.
    fn awaits_heartbeat_ack(&self, index: DestinationId, config: &Config) -> bool {
        config.multipath.is_some_and(|m| m.pf)
            && self.destinations[index].state() == PathState::PotentiallyFailed
            && self.usable_paths().next().is_some()
    }

    /// The peer answered what was sent to `index`.
    pub(in crate::sctp) fn clear_errors(&mut self, index: DestinationId, config: &Config, out: &mut Outbox) {
        self.error_count = 0;
        let d = &mut self.destinations[index];
        let Some(former) = d.answers() else { return };
        let address = d.address();
        if former == PathState::PotentiallyFailed {
            self.restart_windows(index, config);
        }
        out.tell(Event::PathStateChanged {
            address,
            state: PathState::Active,
        });
        self.choose_current();
    }

    /// The peer has answered something, and no destination is concerned: the association has no errors (section 8.1).
    pub(in crate::sctp) fn is_there(&mut self) {
        self.error_count = 0;
    }

    /// A heartbeat with the right nonce came back from an unconfirmed address (section 5.4). Returns whether it was one.
    pub(super) fn confirm(&mut self, index: DestinationId, out: &mut Outbox) -> bool {
        let d = &mut self.destinations[index];
        if !d.confirm() {
            return false;
        }
        let address = d.address();
        self.is_as_listed = false;
        out.tell(Event::PeerAddressConfirmed(address));
        out.tell(Event::PathStateChanged {
            address,
            state: PathState::Active,
        });
        self.choose_current();
        true
    }

    /// ICMP9 (section 10): it counts as an error of the path, once per RTO, so that a router that reports every packet takes
    /// no path down sooner than silence would; the association's own count leaves it out, because a router may be wrong
    /// for a while (section 8.1 counts what was not answered). Returns whether anything came of it. `up`: the association is.
    pub(in crate::sctp) fn on_unreachable(
        &mut self,
        now: Instant,
        (address, reason): (Ipv6Addr, Unreachable),
        up: bool,
        config: &Config,
        out: &mut Outbox,
    ) -> bool {
        let Some(index) = self.find(address) else {
            return false;
        };
        let rto = self.rto_to(index, config);
        let d = &mut self.destinations[index];
        if !d.note_unreachable(now, rto) {
            return false;
        }
        out.tell(Event::Unreachable { address, reason });
        if up && d.is_confirmed() {
            d.count_error();
            self.degrade(index, config, out);
        }
        true
    }

    /// The error count of a destination was raised: it may fail, potentially or for good (RFC 9260 section 8.2, RFC
    /// 7829 section 3.2 item 1).
    fn degrade(&mut self, index: DestinationId, config: &Config, out: &mut Outbox) {
        let d = &mut self.destinations[index];
        let address = d.address();
        if let Some(state) = d.degrade(config) {
            out.tell(Event::PathStateChanged { address, state });
            self.choose_current();
        } else if d.state() == PathState::PotentiallyFailed {
            // another may have fewer errors now
            self.choose_current();
        }
        self.switch_primary_over(index, config, out);
    }

    /// Primary path switchover (RFC 7829 section 5): the primary has failed more than PSMR times, and an active
    /// destination takes its place for good.
    fn switch_primary_over(&mut self, index: DestinationId, config: &Config, out: &mut Outbox) {
        let Some(limit) = config.primary_switchover_max_retrans else {
            return;
        };
        // PSMR is never less than PFMR
        let limit = limit.max(config.potentially_failed_after().unwrap_or(0));
        if index == self.primary
            && self.destinations[index].error_count() > limit
            && let Some(next) = self.usable_destination(Some(index))
        {
            self.make_primary(next, out);
        }
    }

    /// A destination that had potentially failed answered: its windows begin anew, with one segment or with what CMT-PF has.
    fn restart_windows(&mut self, index: DestinationId, config: &Config) {
        let segments = config.multipath.map_or(1, |m| u32::from(m.pf_recovery));
        for path in self.paths.values_mut().filter(|p| p.destination() == index) {
            path.restart_window(segments);
        }
    }
}
