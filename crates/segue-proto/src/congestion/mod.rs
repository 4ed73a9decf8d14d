//! Round-trip estimation and congestion control, shared by the transports.
//!
//! [`CongestionControl`] is the arithmetic of one path's window. The transport decides when data was lost, and how fast
//! a window that was cut comes down (SCTP at once, TCP by one of the ways of `tcp::Reduction`); the algorithm
//! decides by how much, and how the window opens again.

pub mod coupled;
pub mod cubic;
mod cubic_steps;
pub mod hybla;
pub mod hystart;
pub mod reno;
pub mod rtt;
#[cfg(feature = "sctp")]
pub mod sctp;
pub mod veno;
mod window;

pub use coupled::{Coupling, Gain, InterLoss, PathShare};
pub use cubic::Cubic;
pub use hybla::Hybla;
pub use hystart::HyStart;
pub use reno::Reno;
pub use rtt::RttEstimator;
#[cfg(feature = "sctp")]
pub use sctp::{SctpWindow, WindowRules};
pub use veno::Veno;

use crate::time::{Duration, Instant};
use core::fmt::Debug;
use serde::{Deserialize, Serialize};

/// What one acknowledgement did to one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acked {
    /// When it came.
    pub now: Instant,
    /// Bytes newly acknowledged that were last sent on the path.
    pub bytes: u32,
    /// Whether the cumulative acknowledgement advanced.
    pub cumulative_advanced: bool,
    /// Whether cwnd was fully used when the acknowledgement arrived.
    pub window_was_full: bool,
    /// Whether the sender is in fast recovery.
    pub in_fast_recovery: bool,
    /// Whether nothing that is outstanding was lost, and nothing beyond SND.UNA has arrived: Linux's open state, in which
    /// alone Hybla and Veno are themselves. TCP only.
    pub open: bool,
    /// Whether nothing is outstanding on the path any more.
    pub flight_empty: bool,
    /// Whether it begins a round: whatever was outstanding when the last one began has been acknowledged. TCP only.
    pub round_start: bool,
    /// SND.UNA and SND.NXT, as positions that do not wrap. TCP only.
    pub una: u64,
    /// See [`una`](Self::una).
    pub next: u64,
    /// Round-trip time that it measured of data sent once. TCP only.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time. TCP only.
    pub srtt: Option<Duration>,
}

/// A loss that was noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// When.
    pub now: Instant,
    /// Bytes outstanding on the path just before.
    pub flightsize: u32,
    /// ssthresh was cut for this window of data already: it stays (RFC 5681 section 3.1, for a timeout of data that was
    /// retransmitted).
    pub cut_already: bool,
}

/// Where a window stood before it was cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prior {
    /// cwnd, bytes.
    pub cwnd: u32,
    /// ssthresh, bytes.
    pub ssthresh: u32,
}

/// The window arithmetic of one path. Sizes in bytes.
pub trait CongestionControl: Debug + Send {
    /// Bytes that may be outstanding.
    fn cwnd(&self) -> u32;
    /// Slow-start threshold.
    fn ssthresh(&self) -> u32;
    /// Whether the window is in slow start.
    fn in_slow_start(&self) -> bool {
        self.cwnd() <= self.ssthresh()
    }
    /// Data was acknowledged. TCP does not tell of it while it recovers from a loss by fast retransmit.
    fn on_ack(&mut self, acked: Acked);
    /// A loss was inferred from missing reports or duplicate acknowledgements: ssthresh is cut, and cwnd set to it.
    fn on_loss(&mut self, loss: Loss);
    /// The retransmission timer expired: ssthresh is cut, and cwnd is one segment.
    fn on_rto(&mut self, loss: Loss);
    /// Something is sent after `idle` without anything outstanding.
    fn on_transmit_start(&mut self, _now: Instant, _idle: Duration) {}
    /// Nothing was sent for `periods` retransmission timeouts.
    fn on_idle(&mut self, periods: u64);
    /// The path is used again after it was taken for failed: one segment.
    fn restart(&mut self);
    /// Opens the window by one segment in slow start, without data acknowledged.
    fn on_credit(&mut self);
    /// The loss turned out to be none: the window is what it was before it was cut, or more.
    fn on_undo(&mut self, prior: Prior);
    /// The transport sets cwnd: on the way down in recovery, or since less was used than allowed.
    fn set_cwnd(&mut self, cwnd: u32);
    /// The transport sets ssthresh: since it has seen how much the path carries.
    fn set_ssthresh(&mut self, ssthresh: u32);
    /// The size of a segment changed.
    fn set_segment(&mut self, segment: u32);
}

/// A congestion control algorithm of TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    #[default]
    Cubic,
    /// Caini and Firrincieli 2004.
    Hybla,
    /// Fu and Liew 2003.
    Veno,
}

/// How much an acknowledgement counts for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Credit {
    /// Each acknowledgement opens the window as if it were for one segment, so that delayed ones open it more slowly:
    /// RFC 5681 section 3.1 before byte counting, Linux before 3.14.
    Acks,
    /// The bytes acknowledged count (RFC 3465, without its limit in slow start; Linux since 3.14).
    #[default]
    Bytes,
}

/// Which slow start an algorithm has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SlowStart {
    /// Until something is lost.
    Standard,
    /// HyStart as Linux has it in CUBIC since 2.6.29 (Ha and Rhee 2011): until the train of acknowledgements is as long
    /// as half a round trip, or the round trip grows.
    Hystart,
    /// HyStart as Linux has it since 5.8 (June 2020): the round trip may grow by an eighth before it stops, and all
    /// measurements of a round are looked at.
    #[default]
    #[serde(rename = "hystart-5.8")]
    Hystart58,
    /// HyStart++ (RFC 9406).
    HystartPlusPlus,
}

/// How CUBIC's curve is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CubicCurve {
    /// One smoothed round trip ahead (RFC 9438 section 4.2).
    #[serde(rename = "rfc-9438")]
    Rfc9438,
    /// The least round trip ahead; and before the first loss, and after a timeout, when nothing is known of what the path
    /// carries, the window grows by a twentieth per round trip at least (Linux).
    #[default]
    Linux,
}

/// What CUBIC does in its Reno-friendly region (RFC 9438 section 4.3) once it is back where it was cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RenoFriendliness {
    /// W_est goes on growing by alpha, 0.53 segments per round trip. Where losses are frequent this is less than Reno gets.
    #[default]
    Linux,
    /// W_est grows by a segment per round trip from there, as the RFC recommends.
    #[serde(rename = "rfc-9438")]
    Rfc9438,
}

/// What a TCP connection's algorithm begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// Segment size, bytes.
    pub segment: u32,
    /// Initial window, bytes.
    pub initial_window: u32,
    /// How much an acknowledgement counts for.
    pub credit: Credit,
    /// The slow start of CUBIC; the others have the standard one.
    pub slow_start: SlowStart,
    /// CUBIC's.
    pub cubic_curve: CubicCurve,
    /// CUBIC's.
    pub reno_friendliness: RenoFriendliness,
    /// Round-trip time of the handshake, if measured.
    pub rtt: Option<Duration>,
}

impl Algorithm {
    /// The algorithm, at its start.
    #[must_use]
    pub fn begin(self, start: &Start) -> Box<dyn CongestionControl> {
        match self {
            Self::Reno => Box::new(Reno::new(start)),
            Self::Cubic => Box::new(Cubic::new(start)),
            Self::Hybla => Box::new(Hybla::new(start)),
            Self::Veno => Box::new(Veno::new(start)),
        }
    }
}

#[cfg(test)]
mod tests;
