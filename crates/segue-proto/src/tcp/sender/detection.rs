//! What is taken for lost: by reports of what was sent later (RFC 6675, forward acknowledgement) or by time (RACK). How far
//! out of order segments arrive is put up with.

use super::rack::{Overdue, Rack};
use crate::tcp::config::{Config, LossDetection};
use crate::tcp::rtt::Rtt;
use crate::tcp::scoreboard::{Scoreboard, Sent};
use crate::time::Instant;

/// How a connection finds losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detection {
    rule: LossDetection,
    /// Both ends know SACK.
    sack: bool,
    /// Reordering that is seen is adapted to.
    adaptive: bool,
    /// DupThresh, segments.
    dup_thresh: u32,
    /// Count from the highest SACKed segment: until reordering is seen.
    forward: bool,
    reordering_seen: bool,
    rack: Rack,
}

/// What finds losses now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Finder {
    /// Duplicate acknowledgements are counted.
    Duplicates(u32),
    /// Time.
    Rack,
    /// So many segments below the highest SACKed one.
    Forward(u32),
    /// So many SACKed segments above.
    Sacked(u32),
}

impl Detection {
    /// How losses are found where both ends know SACK, or not.
    pub fn new(config: &Config, sack: bool) -> Self {
        Self {
            rule: config.loss_detection,
            sack,
            adaptive: config.adaptive_reordering,
            dup_thresh: DUP_THRESH,
            forward: config.loss_detection == LossDetection::Fack,
            reordering_seen: false,
            rack: Rack::default(),
        }
    }

    /// Both ends know SACK.
    #[inline]
    pub fn has_sack(&self) -> bool {
        self.sack
    }

    pub fn uses_rack(&self) -> bool {
        self.sack && self.rule == LossDetection::Rack
    }

    pub fn dup_thresh(&self) -> u32 {
        self.dup_thresh
    }

    /// Whether reordering was seen, and is adapted to.
    pub fn adapts(&self) -> bool {
        self.reordering_seen
    }

    /// How losses are found.
    pub fn finder(&self) -> Finder {
        if !self.sack {
            return Finder::Duplicates(self.dup_thresh);
        }
        match self.rule {
            LossDetection::Rack => Finder::Rack,
            LossDetection::Fack if self.forward => Finder::Forward(self.dup_thresh),
            _ => Finder::Sacked(self.dup_thresh),
        }
    }

    /// What reordering explains of a retransmission that was overtaken by something sent after it, bytes.
    pub fn slack(&self, mss: u32) -> u64 {
        if self.forward {
            0
        } else {
            u64::from(self.dup_thresh * mss)
        }
    }

    /// Segments arrived that far out of order.
    pub fn on_reordering(&mut self, distance: u32) {
        self.rack.on_reordering();
        if !self.adaptive {
            return;
        }
        self.reordering_seen = true;
        if distance > self.dup_thresh {
            self.dup_thresh = distance.min(MOST_DUP_THRESH);
            self.forward = false;
        }
    }

    /// See [`Rack::on_delivered`].
    pub fn on_delivered(&mut self, now: Instant, sent: &Sent, rtt: &Rtt, is_older: bool) {
        self.rack.on_delivered(now, sent, rtt.shortest(), is_older);
    }

    /// An acknowledgement up to `una` has a DSACK, with `next` to be sent next.
    pub fn on_dsack(&mut self, una: u64, next: u64) {
        self.rack.on_dsack(una, next);
    }

    /// A recovery is over.
    pub fn on_recovered(&mut self) {
        self.rack.on_recovered();
    }

    /// The retransmission timer expired.
    pub fn on_timeout(&mut self) {
        self.dup_thresh = self.dup_thresh.min(DUP_THRESH);
    }

    /// What RACK takes for lost; `None` if it can take nothing for lost.
    pub fn overdue(&self, board: &Scoreboard, rtt: &Rtt, recovering: bool) -> Option<Overdue> {
        if board.sacked_segments() == 0 && !board.has_retransmissions() && !board.has_lost() {
            return None;
        }
        let impatient = recovering || board.sacked_segments() >= self.dup_thresh;
        self.rack.overdue(impatient, rtt.shortest(), rtt.srtt())
    }
}

/// DupThresh (RFC 5681 section 3.2).
const DUP_THRESH: u32 = 3;
/// The most that it adapts to.
const MOST_DUP_THRESH: u32 = 127;
