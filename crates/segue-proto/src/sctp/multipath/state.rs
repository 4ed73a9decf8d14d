//! What is kept for an association, and for each of its paths.

use super::{Cuc, MultipathConfig, Scheduler};
use crate::congestion::InterLoss;
use crate::sctp::path::PathId;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Tsn;

/// State of an association with concurrent multipath transfer.
#[derive(Debug)]
pub(in crate::sctp) struct Multipath {
    pub config: MultipathConfig,
    /// Source and destination address of the packet at hand.
    pub packet: (Ipv6Addr, Ipv6Addr),
    pub scheduler: Box<dyn Scheduler>,
    /// The peer's window stopped a path with room since the scheduler was asked last.
    pub was_blocked: bool,
    /// The path that the SACK at hand came over.
    pub sack_path: Option<PathId>,
}

/// What is kept of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sctp) struct PathShare {
    /// Shortest round trip of data.
    pub least_round_trip: Option<Duration>,
    /// In fast recovery until all that was sent on the path up to this TSN is acknowledged.
    pub fast_recovery_exit: Option<Tsn>,
    /// The SACK at hand began it: a packet of retransmissions may go on this path whatever its cwnd says.
    pub fast_retransmission_due: bool,
    /// Round trips refused since the last one that was taken.
    pub refused_in_a_row: u8,
    /// Packets that may still be sent on it at this opportunity (Max.Burst).
    pub burst: u32,
    /// Chunks sent, and of them lost; the past counts for half every now and then.
    pub sent: u32,
    pub lost: u32,
    /// How much gets through between losses.
    pub inter_loss: InterLoss,
    /// When it was last penalised for holding others up.
    pub penalised: Option<Instant>,
}

/// Chunks sent after which the past of a loss rate fades with the next loss.
const MEMORY: u32 = 1000;

impl Multipath {
    pub(in crate::sctp) fn new(config: MultipathConfig) -> Self {
        Self {
            config,
            packet: (Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED),
            scheduler: config.scheduler.begin(),
            was_blocked: false,
            sack_path: None,
        }
    }
}

impl PathShare {
    /// For the growth of cwnd: whether the ack point of the path advanced (`pseudo`, with CUC), and whether it is in fast recovery.
    pub(in crate::sctp) fn window_state(
        &self,
        cuc: Cuc,
        cumulative_advanced: bool,
        pseudo: bool,
    ) -> (bool, bool) {
        let advanced = match cuc {
            Cuc::Off => cumulative_advanced,
            Cuc::V1 | Cuc::V2 => pseudo,
        };
        (advanced, self.fast_recovery_exit.is_some())
    }

    /// Chunks of this path were found lost.
    pub(in crate::sctp) fn on_lost(&mut self, chunks: u32) {
        if self.sent > MEMORY {
            self.sent /= 2;
            self.lost /= 2;
        }
        self.lost = self.lost.saturating_add(chunks);
    }

    /// Share of the chunks sent that was lost, in millionths.
    pub(in crate::sctp) fn loss_rate(&self) -> u64 {
        u64::from(self.lost) * 1_000_000 / u64::from(self.sent.max(1))
    }
}
