//! What can be set on SIGMA.

use super::policy::{
    FirstReady, HandoverPolicy, LastMoment, LinkLoss, Overlap, PeerTimeouts, Planned, Signal,
};
use crate::time::Duration;
use crate::units::{Dbm, Decibel};
use serde::{Deserialize, Serialize};

/// Which handover decision is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The new cell's beacon is stronger than the old one's by more than `hysteresis`. With equal radios and no
    /// hysteresis that is the middle of the overlap, seen at the next beacon.
    #[default]
    Signal,
    /// The host has come across the part `fraction` of the overlap, as a positioning service reports it
    /// ([`LinkEvent::Overlap`](crate::LinkEvent::Overlap)).
    Overlap,
    /// As soon as the peer has acknowledged the new address. There is nothing to miss.
    FirstReady,
    /// `margin` before the old link is lost, as Link_Going_Down predicts it.
    LastMoment,
    /// `margin` before the next cell serves in the place of the old one, as the network's plan has it
    /// ([`LinkEvent::Planned`](crate::LinkEvent::Planned)).
    Planned,
    /// When the loss of the old link is noticed.
    LinkLoss,
    /// Never: an address is added when there is one, and the rest is left to the peer's timeouts (failover, RFC 9260
    /// section 8.2). No address is made primary, and none deleted.
    PeerTimeouts,
}

/// What is done when the decision falls on a moment at which the new address is not ready, that is, the peer has not
/// yet acknowledged it (step 2).
///
/// Whatever is set here, once the old link's loss was noticed ([`LinkEvent::Down`](crate::LinkEvent::Down)) the host
/// switches to a ready address at once (except `RetransmittedAsconf`), and if the Add IP Address is still
/// unanswered it is routed over the new link, so that its T4-RTO retransmissions do not go down the dead one.
///
/// About the trace of figure 8 (data lost at t; retransmission at t+1 s delivered to the new address, its
/// acknowledgement lost over the old route; t+4 s to the old address, lost; t+6 s repaired). The mobile host's route
/// must still be the old one at t+1, though the peer knows the new address, and must have changed by t+6. What gives
/// that:
/// - [`LinkLoss`](Self::LinkLoss), if the loss of the old link is noticed more than 1 s after it (many missed
///   beacons): the data flows again when the Set Primary Address that is sent then arrives, or at the next T3-rtx to
///   the new address if the sender is one that a new primary path does not make send;
/// - [`RetransmittedAsconf`](Self::RetransmittedAsconf), if the mobile host's RTO towards the peer is still the
///   initial 3 s of RFC 2960 (it sends no data, hence measures no RTT): repaired at t+3 s, or t+6 s for such a
///   sender;
/// - any policy, where the *answer* to Add IP Address is lost, for instance because it waits behind a window of data
///   in the old access router's queue until the coverage ends: the host is then not ready for reasons no policy
///   can help, and T4-RTO repairs step 2.
///
/// [`WhenReady`](Self::WhenReady) does not: with 1000 ms of preparation and 2 s of overlap it switches some 200 ms
/// late and loses nothing. The difference between it and the others is what the policy costs, not the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WhenMissed {
    /// Switch as soon as the address is ready, unless the policy has changed its mind by then. The better choice.
    #[default]
    WhenReady,
    /// Stay until the loss of the old link is noticed.
    LinkLoss,
    /// Stay until the policy decides again: for `signal` the next beacon that shows the new cell ahead, for the
    /// others the next time the host comes by that point.
    NextDecision,
    /// Queue Set Primary Address behind the unanswered Add IP Address, sent over the *old* route like it; the route
    /// changes only when the peer has answered, as the mobile host of figure 8 "still" routes over the old path
    /// while "the SIGMA handover has not finished". If the old link is lost before the answer, the route changes
    /// after one T4-RTO, so that the retransmitted ASCONF goes over the new link.
    QueuedAsconf,
    /// Send Set Primary Address at the last possible moment, the noticed end of the old coverage, over the *old*
    /// route: it is lost. The route changes after one T4-RTO, and the retransmitted ASCONF repairs the association.
    RetransmittedAsconf,
}

/// When the old address is deleted (step 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Delete {
    /// When the loss of the old link was noticed, but not before the peer has answered Set Primary Address.
    #[default]
    OnLinkDown,
    /// `delete_delay` after the peer has answered Set Primary Address, or when the old link is lost, if sooner.
    AfterSwitch,
    /// `delete_delay` after the peer has answered Set Primary Address, even if the old link is lost before: the peer
    /// goes on knowing an address that no longer works, and may retransmit to it.
    AfterDelay,
    /// When the loss of the old link was noticed it is deactivated instead: the peer keeps it, sends nothing there, and
    /// the host uses it again if it comes back while the address is valid (the paper's section II-A, "less aggressive
    /// way"). A peer that does not know how is asked to delete it.
    Deactivate,
}

/// Which steps go in one ASCONF (RFC 5061 section 5.1: requests are worked off in their order).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Bundle {
    /// Each on its own, as the paper has it.
    #[default]
    None,
    /// Set Primary Address with Add IP Address, where the switch is decided by the time that the address is there: with
    /// `first-ready`, after a missed decision that waits for the address, and when no other address works.
    #[serde(rename = "add+primary")]
    AddPrimary,
    /// Set Primary Address with Delete IP Address (or Deactivate) of the address left behind: a hard handover.
    #[serde(rename = "primary+delete")]
    PrimaryDelete,
    /// Both.
    All,
}

impl Bundle {
    pub(super) fn add_and_primary(self) -> bool {
        matches!(self, Self::AddPrimary | Self::All)
    }

    pub(super) fn primary_and_delete(self) -> bool {
        matches!(self, Self::PrimaryDelete | Self::All)
    }
}

/// Configuration of SIGMA. Parameters of policies that are not chosen are ignored, so that a policy can be
/// overridden alone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Handover decision.
    pub policy: Policy,
    /// `signal`: by how much the new cell must be stronger.
    pub hysteresis: Decibel,
    /// `overlap`: part of the overlap at which to switch, 0 to 1.
    pub fraction: f64,
    /// `last-moment`: time before the old link's loss. `planned`: time before the next cell serves.
    pub margin: Duration,
    /// What is done when the decision finds the new address not ready.
    pub when_missed: WhenMissed,
    /// When the old address is deleted.
    pub delete: Delete,
    /// `after-switch` and `after-delay`: time between the answer to Set Primary Address and the deletion.
    pub delete_delay: Duration,
    /// Steps that go in one ASCONF.
    pub bundle: Bundle,
    /// `deactivate`: most addresses of links that are lost which the peer keeps; the oldest beyond are deleted.
    pub deactivated_limit: u32,
    /// Whether the host goes to another address, if the peer knows one, when the path has become potentially failed (RFC 7829 section 3)
    /// or inactive: another source address for what timed out (RFC 9260 section 6.4.1).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub leave_failed_paths: bool,
    /// Weakest beacon at which a cell is attached to; nothing for any beacon heard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attach_threshold: Option<Dbm>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            hysteresis: Decibel::default(),
            fraction: 0.5,
            margin: Duration::from_millis(100),
            when_missed: WhenMissed::default(),
            delete: Delete::default(),
            delete_delay: Duration::from_secs(1),
            bundle: Bundle::default(),
            deactivated_limit: 4,
            leave_failed_paths: false,
            attach_threshold: None,
        }
    }
}

impl Config {
    /// The policy configured.
    #[must_use]
    pub fn policy(&self) -> Box<dyn HandoverPolicy> {
        match self.policy {
            Policy::Signal => Box::new(Signal::new(self.hysteresis)),
            Policy::Overlap => Box::new(Overlap::new(self.fraction)),
            Policy::FirstReady => Box::new(FirstReady),
            Policy::LastMoment => Box::new(LastMoment::new(self.margin)),
            Policy::Planned => Box::new(Planned::new(self.margin)),
            Policy::LinkLoss => Box::new(LinkLoss),
            Policy::PeerTimeouts => Box::new(PeerTimeouts),
        }
    }

    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check(&self) -> Result<(), String> {
        if self.deactivated_limit > 16 {
            return Err(format!(
                "deactivated_limit = {}: expected at most 16, for a peer keeps 32 addresses",
                self.deactivated_limit
            ));
        }
        if (0.0..=1.0).contains(&self.fraction) {
            Ok(())
        } else {
            Err(format!(
                "fraction = {}: expected a part of the overlap from 0 to 1",
                self.fraction
            ))
        }
    }
}
