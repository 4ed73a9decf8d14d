//! One path at a time (RFC 9260 sections 6.1, 6.4 and 7.2.4).

use super::lent::{Lent, View};
use crate::sctp::ids::PathId;
use crate::sctp::sender::context::Context;
use crate::sctp::sender::flight::Flight;
use crate::sctp::sender::plan::Plan;
use crate::sctp::sender::progress::Progress;
use crate::sctp::sender::recovery::Recovery;
use crate::sctp::{PathState, Profile, RetransmitTo};
use segue_wire::Tsn;

/// What an association keeps that sends on one path at a time.
#[derive(Debug, Default)]
pub(in crate::sctp) struct SinglePath {
    /// Packets that may still be sent at this opportunity (Max.Burst).
    burst: u32,
}

impl SinglePath {
    /// A new opportunity to send, of so many packets if they are limited.
    pub(super) fn open_burst(&mut self, max_burst: Option<u32>) {
        self.burst = max_burst.unwrap_or(u32::MAX);
    }

    /// A packet of this opportunity goes out.
    #[inline]
    pub(super) fn use_burst(&mut self) {
        self.burst = self.burst.saturating_sub(1);
    }

    /// What the next packet of data is to begin with.
    #[inline]
    pub(super) fn plan(&self, lent: &mut Lent<'_>) -> Option<Plan> {
        if lent.flight.marked() > 0 {
            return self.plan_retransmission(lent);
        }
        lent.recovery.nothing_is_marked();
        let len = lent.next_len()?;
        if self.burst == 0 {
            return None;
        }
        let path = lent.peer.current_path()?;
        if !lent.has_window_after_idle(path) {
            return None;
        }
        lent.plan_new(path, len)
    }

    /// Section 6.1 rule C: chunks marked for retransmission go before new ones, within cwnd.
    #[inline(never)]
    fn plan_retransmission(&self, lent: &mut Lent<'_>) -> Option<Plan> {
        lent.decay_idle_paths();
        let tsn = lent.flight.next_marked(None)?;
        let path = retransmission_path(lent.view(), tsn)?;
        let forced = lent.recovery.forces();
        if !forced && lent.is_held() {
            return None;
        }
        let may_go = forced || (self.burst > 0 && lent.view().has_window(path));
        may_go.then_some(Plan::Retransmit { tsn, path, forced })
    }
}

/// Where a marked chunk goes. Where its path was left: where new data goes, for the destination is not to blame if an address of
/// ours is gone. After a timeout: to an active alternate (section 6.4.1), if so configured. After
/// missing reports: to where it was (RFC 4960 and 9260 section 6.4), but in RFC 2960 section 6.4 to an alternate.
pub(super) fn retransmission_path(view: View<'_>, tsn: Tsn) -> Option<PathId> {
    let View { config, peer, flight } = view;
    let sent = flight.get(tsn)?;
    let Some(path) = sent.path() else {
        return peer.current_path();
    };
    let last = peer[path].destination();
    let stay = config.retransmit_to == RetransmitTo::SamePath
        || (sent.is_fast_marked() && config.profile != Profile::Rfc2960);
    let active = peer[last].state() == PathState::Active;
    let target = if stay && active {
        last
    } else {
        let alternate = peer.usable_destination(Some(last));
        let least_failed = || if active { None } else { peer.least_failed() };
        alternate.or_else(least_failed).unwrap_or(last)
    };
    Some(peer[target].path())
}

/// Rules 2 and 3 of section 7.2.4: the windows are cut once per loss episode, and one packet goes out whatever cwnd
/// says. RFC 2960 knows no episode and cuts each time.
pub(super) fn recover(cx: &mut Context<'_>, flight: &Flight, recovery: &mut Recovery, progress: &Progress) {
    let rfc2960 = cx.config.profile == Profile::Rfc2960;
    if recovery.is_on() && !rfc2960 {
        return;
    }
    for progress in progress.iter().filter(|p| p.has_lost()) {
        let loss = flight.loss_on(cx.now, progress.path());
        cx.peer.on_loss(progress.path(), loss, None);
    }
    if !rfc2960 {
        recovery.begin(flight.next_tsn().previous());
    }
    recovery.force_one();
}

/// Whether the ack point advances for the growth of cwnd, and whether losses are being made good.
#[inline]
pub(super) fn window_state(recovery: &Recovery, cumulative_advanced: bool) -> (bool, bool) {
    (cumulative_advanced, recovery.is_on())
}
