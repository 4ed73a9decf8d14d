//! Coupled congestion control: how the windows of one association's paths grow and shrink together.
//!
//! Where the paths of an association meet in a bottleneck, a window for each of them takes as many shares as there are
//! paths. The algorithms here leave the window of a path where it is ([`SctpWindow`](super::SctpWindow)) and change by
//! how much it opens when acknowledged, and for some of them how far it is cut:
//!
//! | algorithm | opens | cut | source |
//! |---|---|---|---|
//! | [`Lia`](Coupling::Lia) | by alpha of the total window, no faster than alone | as alone | RFC 6356 |
//! | [`Olia`](Coupling::Olia) | by the share of the rate, with window moved to the paths that lose least | as alone | Khalili et al. 2012, draft-khalili-mptcp-congestion-control-05 |
//! | [`Balia`](Coupling::Balia) | between the two | by up to three quarters | Peng, Walid, Low 2013, draft-walid-mptcp-congestion-control |
//! | [`Rp1`](Coupling::Rp1) | by the path's share of ssthresh | by half of the *total* window | Dreibholz et al. 2010 (CMT/RP) |
//! | [`Rp2`](Coupling::Rp2) | by the path's share of the rate | by half of the *total* rate | Becke et al. 2011, Dreibholz 2012 (CMT/RPv2) |
//!
//! The papers state increases per acknowledgement; SCTP opens the window by a segment once a whole window has been
//! acknowledged (RFC 9260 section 7.2.2), so the same is said here as a [`Gain`]: the share of that segment. For an increase
//! of `d` bytes per byte acknowledged it is `d * cwnd / segment`.

use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// A coupling of the windows of an association's paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// Each path by itself, as CMT has it (Iyengar et al. 2006): fair only if no bottleneck is shared.
    #[default]
    Uncoupled,
    /// Linked increases (RFC 6356).
    Lia,
    /// Opportunistic linked increases.
    Olia,
    /// Balanced linked adaptation.
    Balia,
    /// CMT/RP, resource pooling by slow-start thresholds.
    Rp1,
    /// CMT/RPv2, resource pooling by rates.
    Rp2,
}

/// What coupling must know of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathShare {
    /// cwnd, bytes.
    pub cwnd: u32,
    /// ssthresh, bytes.
    pub ssthresh: u32,
    /// Unit of increase, bytes.
    pub segment: u32,
    /// Smoothed round-trip time; a path without one stands with its RTO.
    pub rtt: Duration,
    /// How much gets through between losses (OLIA).
    pub inter_loss: InterLoss,
}

impl PathShare {
    /// cwnd per round trip, bytes per second.
    fn rate(&self) -> f64 {
        f64::from(self.cwnd) / self.rtt_s()
    }

    fn rtt_s(&self) -> f64 {
        self.rtt.as_secs_f64().max(1e-6)
    }
}

/// Bytes acknowledged since the last loss of a path, and between its last two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InterLoss {
    since_last: u64,
    between_last_two: u64,
}

impl InterLoss {
    /// `bytes` were acknowledged.
    pub fn on_ack(&mut self, bytes: u32) {
        self.since_last += u64::from(bytes);
    }

    /// Something was lost.
    pub fn on_loss(&mut self) {
        self.between_last_two = self.since_last;
        self.since_last = 0;
    }

    /// l_r of OLIA: the greater of the two.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.since_last.max(self.between_last_two)
    }
}

/// Which share of what a path's window would open by alone it opens by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    /// In slow start, of the bytes acknowledged: 0 to 1.
    pub slow_start: f64,
    /// In congestion avoidance, of a segment per window acknowledged; below zero the window shrinks (OLIA).
    pub avoidance: f64,
}

impl Gain {
    /// As alone.
    pub const WHOLE: Self = Self {
        slow_start: 1.0,
        avoidance: 1.0,
    };

    fn avoiding(avoidance: f64) -> Self {
        Self {
            slow_start: 1.0,
            avoidance,
        }
    }

    fn both(share: f64) -> Self {
        Self {
            slow_start: share,
            avoidance: share,
        }
    }
}

impl Coupling {
    /// By how much the window of `paths[of]` opens. `paths` are those that carry data; a path that is not among them, or
    /// alone, opens as it always did.
    #[must_use]
    pub fn gain(self, paths: &[PathShare], of: usize) -> Gain {
        let Some(path) = paths.get(of) else {
            return Gain::WHOLE;
        };
        if paths.len() < 2 {
            return Gain::WHOLE;
        }
        match self {
            Self::Uncoupled => Gain::WHOLE,
            Self::Lia => Gain::avoiding(lia(paths, path)),
            Self::Olia => Gain::avoiding(olia(paths, of)),
            Self::Balia => Gain::avoiding(balia(paths, path)),
            Self::Rp1 => Gain::both(threshold_share(paths, path)),
            Self::Rp2 => Gain::both(path.rate() / total_rate(paths)),
        }
    }

    /// ssthresh of `paths[of]` after a loss, bytes; `None` where it is what SCTP makes it: half of cwnd.
    #[must_use]
    pub fn ssthresh_after_loss(self, paths: &[PathShare], of: usize) -> Option<u32> {
        let path = paths.get(of).filter(|_| paths.len() > 1)?;
        let cwnd = f64::from(path.cwnd);
        let left = |cut: f64, floor: f64| Some(libm::ceil((cwnd - cut).max(floor)) as u32);
        let segment = f64::from(path.segment);
        match self {
            Self::Uncoupled | Self::Lia | Self::Olia => None,
            // w_r / 2 x min(alpha_r, 1.5); one segment at least
            Self::Balia => left(cwnd / 2.0 * balia_alpha(paths, path).min(1.5), segment),
            Self::Rp1 => {
                let total: f64 = paths.iter().map(|p| f64::from(p.cwnd)).sum();
                left(total / 2.0, segment)
            }
            Self::Rp2 => {
                let share = total_rate(paths) / 2.0 / path.rate().max(f64::MIN_POSITIVE);
                left(cwnd * share.max(0.5), segment)
            }
        }
    }
}

/// RFC 6356 section 3: per byte acknowledged, min(alpha x MSS / cwnd_total, MSS / cwnd_i), with equation 2,
/// alpha = cwnd_total x max(cwnd_i / rtt_i^2) / (sum of cwnd_i / rtt_i)^2.
fn lia(paths: &[PathShare], path: &PathShare) -> f64 {
    let best = paths.iter().map(|p| p.rate() / p.rtt_s()).fold(0.0, f64::max);
    let rates = total_rate(paths);
    // cwnd_total cancels
    (f64::from(path.cwnd) * best / (rates * rates)).min(1.0)
}

/// draft-khalili-mptcp-congestion-control section 3: per acknowledgement of a segment,
/// w_r / rtt_r^2 / (sum of w_p / rtt_p)^2 + alpha_r / w_r.
fn olia(paths: &[PathShare], of: usize) -> f64 {
    let path = &paths[of];
    let share = path.rate() / total_rate(paths);
    share * share + olia_alpha(paths, of)
}

/// alpha_r: 1 / n is taken from the paths with the largest windows (M), and given to those that lose least (B) and have
/// smaller ones, in equal parts; zero where all of B are in M.
fn olia_alpha(paths: &[PathShare], of: usize) -> f64 {
    // l_r^2 / rtt_r
    let quality = |p: &PathShare| {
        let bytes = p.inter_loss.bytes() as f64;
        bytes * bytes / p.rtt_s()
    };
    let best = paths.iter().map(quality).fold(0.0, f64::max);
    let largest = paths.iter().map(|p| p.cwnd).max().unwrap_or(0);
    let in_largest = |p: &PathShare| p.cwnd == largest;
    let collected = |p: &PathShare| quality(p) >= best && !in_largest(p);
    let paths_collected = paths.iter().filter(|p| collected(p)).count();
    if paths_collected == 0 {
        return 0.0;
    }
    let part = 1.0 / paths.len() as f64;
    let path = &paths[of];
    if collected(path) {
        part / paths_collected as f64
    } else if in_largest(path) {
        -part / paths.iter().filter(|p| in_largest(p)).count() as f64
    } else {
        0.0
    }
}

/// draft-walid-mptcp-congestion-control section 3: per acknowledgement of a segment, with x_r = w_r / rtt_r,
/// x_r / rtt_r / (sum of x_k)^2 x (1 + alpha_r) / 2 x (4 + alpha_r) / 5.
fn balia(paths: &[PathShare], path: &PathShare) -> f64 {
    let share = path.rate() / total_rate(paths);
    let alpha = balia_alpha(paths, path);
    share * share * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
}

/// alpha_r = max(x_k) / x_r.
fn balia_alpha(paths: &[PathShare], path: &PathShare) -> f64 {
    let greatest = paths.iter().map(PathShare::rate).fold(0.0, f64::max);
    greatest / path.rate().max(f64::MIN_POSITIVE)
}

fn threshold_share(paths: &[PathShare], path: &PathShare) -> f64 {
    let total: f64 = paths.iter().map(|p| f64::from(p.ssthresh)).sum();
    f64::from(path.ssthresh) / total.max(1.0)
}

fn total_rate(paths: &[PathShare]) -> f64 {
    paths
        .iter()
        .map(PathShare::rate)
        .sum::<f64>()
        .max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests;
