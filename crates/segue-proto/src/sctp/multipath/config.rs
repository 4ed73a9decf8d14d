//! What can be set on concurrent multipath transfer.

use super::SchedulerKind;
use crate::congestion::Coupling;
use serde::{Deserialize, Serialize};

/// Concurrent multipath transfer (CMT). Each part may be switched off alone, to see what it is good for; the default is all
/// of them, as the experiments of the paper on mSCTP-CMT have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MultipathConfig {
    /// When a cwnd grows.
    pub cuc: Cuc,
    /// Split fast retransmit: a chunk is reported missing only by what was sent later on its own path.
    pub sfr: bool,
    /// Delayed acknowledgements although data arrives out of order.
    pub dac: bool,
    /// Where retransmissions go.
    pub rtx_policy: RtxPolicy,
    /// Multiple fast retransmit (Caro, Amer and Stewart 2004): a chunk that was fast retransmitted is so again when three
    /// packets that were new after that are reported and it is not. RFC 9260 section 7.2.4 has it wait for T3-rtx.
    pub mfr: bool,
    /// A T3-rtx that expires does not mark what was sent on its path within the last smoothed round trip (Iyengar, Amer and
    /// Stewart 2004).
    pub spare_recent: bool,
    /// CMT-PF: a path whose T3-rtx expires is probed by heartbeats before it gets data again. Sets
    /// [`Config::pf_max_retrans`](crate::sctp::Config::pf_max_retrans) to 0, where that is not set.
    pub pf: bool,
    /// Segments in cwnd of a path that has answered after it had potentially failed: 1 or 2.
    pub pf_recovery: u8,
    /// A SACK that another one overtook on a faster path changes nothing, instead of being taken for a receiver that
    /// reneged.
    pub ignore_stale_sacks: bool,
    /// Round trips are measured by the SACKs that come over the path they are measured of.
    pub own_rtt: bool,
    /// Which of the paths with room gets the next packet of new data.
    pub scheduler: SchedulerKind,
    /// Which buffer is split among the paths.
    pub buffer_split: BufferSplit,
    /// Opportunistic retransmission, and a penalty for the path that holds the others up.
    pub opportunistic: bool,
    /// NR-SACKs instead of SACKs, if the peer has them too.
    pub nr_sack: bool,
    /// How the windows of the paths depend on one another.
    pub congestion: Coupling,
}

impl Default for MultipathConfig {
    fn default() -> Self {
        Self {
            cuc: Cuc::default(),
            sfr: true,
            dac: true,
            rtx_policy: RtxPolicy::default(),
            mfr: false,
            spare_recent: true,
            pf: true,
            pf_recovery: 1,
            ignore_stale_sacks: true,
            own_rtt: true,
            scheduler: SchedulerKind::default(),
            buffer_split: BufferSplit::default(),
            opportunistic: false,
            nr_sack: false,
            congestion: Coupling::default(),
        }
    }
}

impl MultipathConfig {
    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// The key, and what was expected.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if (1..=2).contains(&self.pf_recovery) {
            Ok(())
        } else {
            Err(("pf_recovery", "expected 1 or 2 segments"))
        }
    }
}

/// Cwnd update for CMT (Iyengar, Amer and Stewart 2006).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cuc {
    /// When the association's cumulative TSN ack advances, as RFC 9260 section 7.2 has it.
    Off,
    /// When the earliest outstanding TSN of the path is acknowledged.
    V1,
    /// When the earliest outstanding TSN of those sent once, or of those sent again, is acknowledged.
    #[default]
    V2,
}

/// Where retransmissions go, after missing reports and after timeouts (Iyengar, Amer and Stewart 2006).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RtxPolicy {
    /// Wherever a window has room.
    Asap,
    /// To where the data was last sent, as long as that is usable.
    Same,
    /// Where cwnd is largest.
    #[default]
    Cwnd,
    /// Where ssthresh is largest.
    Ssthresh,
    /// Where the least share of data was lost.
    LossRate,
}

/// Which buffer is split among the paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BufferSplit {
    /// Neither: whoever comes first has it.
    #[default]
    None,
    /// The send buffer.
    Sender,
    /// The receive buffer, as the sender knows it: what the peer advertises and what it holds already.
    Receiver,
    /// Both.
    Both,
}
