//! Round-trip estimation and congestion windows, shared by the transports.

pub mod rtt;
pub mod sctp;

pub use rtt::RttEstimator;
pub use sctp::{SctpWindow, WindowRules};

/// What one acknowledgement did to one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acked {
    /// Bytes newly acknowledged that were last sent on the path.
    pub bytes: u32,
    /// Whether the cumulative acknowledgement advanced.
    pub cumulative_advanced: bool,
    /// Whether cwnd was fully used when the acknowledgement arrived.
    pub window_was_full: bool,
    /// Whether the sender is in fast recovery.
    pub in_fast_recovery: bool,
    /// Whether nothing is outstanding on the path any more.
    pub flight_empty: bool,
}

/// The window arithmetic of one path. Sizes in bytes.
pub trait CongestionControl {
    /// Bytes that may be outstanding.
    fn cwnd(&self) -> u32;
    /// Slow-start threshold.
    fn ssthresh(&self) -> u32;
    /// Whether the window is in slow start.
    fn in_slow_start(&self) -> bool {
        self.cwnd() <= self.ssthresh()
    }
    /// Data was acknowledged.
    fn on_ack(&mut self, acked: Acked);
    /// A loss was inferred from missing reports or duplicate acknowledgements.
    fn on_loss(&mut self);
    /// The retransmission timer expired.
    fn on_rto(&mut self);
    /// Nothing was sent for `periods` retransmission timeouts.
    fn on_idle(&mut self, periods: u64);
    /// The path is used again after it was taken for failed: one segment.
    fn restart(&mut self);
    /// Opens the window by one segment in slow start, without data acknowledged.
    fn on_credit(&mut self);
}
