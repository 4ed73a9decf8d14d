//! What can be set, and three generations of TCP.

use crate::congestion::{Algorithm, Credit, CubicCurve, RenoFriendliness, SlowStart};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Whose TCP. Each is a set of values of [`Config`]; every one of them can be set apart from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Profile {
    /// A Linux of today, as from 6.1 on: CUBIC with HyStart, RACK-TLP, PRR, F-RTO, byte counting.
    #[default]
    #[serde(rename = "modern")]
    Modern,
    /// Linux 3.9 (2013): CUBIC with HyStart, an initial window of 10, SACK with FACK until reordering is seen and the
    /// rule of RFC 6675 from then on, early retransmit, PRR, F-RTO. No RACK, and no tail loss probe, which came in
    /// 3.10.
    #[serde(rename = "linux-3.9")]
    Linux39,
    /// Linux 2.4 (2001): NewReno, an initial window of 2, SACK with FACK, DSACK, rate halving, undo, an initial timeout
    /// of 3 s.
    #[serde(rename = "linux-2.4")]
    Linux24,
}

/// How it is decided that a segment is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// As many segments above it as DupThresh were SACKed (RFC 6675 section 4, IsLost).
    Rfc6675,
    /// The highest SACKed segment is at least DupThresh segments above it (Mathis and Mahdavi, "Forward
    /// acknowledgement", 1996), until reordering is seen: then RFC 6675's. Linux 2.4 to 4.14.
    Fack,
    /// It was sent a reordering window before something that has arrived (RFC 8985 section 6).
    #[default]
    Rack,
}

/// How cwnd comes down to ssthresh in fast recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// At once (RFC 5681 section 3.2, RFC 6675 section 5).
    Immediate,
    /// By a segment for every two acknowledgements (Linux 2.2 to 3.1).
    RateHalving,
    /// In proportion to what is delivered (RFC 6937), and below ssthresh by a segment more than that for every
    /// acknowledgement. Linux 3.2 to 4.2.
    #[serde(rename = "prr-rfc-6937")]
    PrrRfc6937,
    /// In proportion to what is delivered (RFC 9937), and below ssthresh by a segment more than that only for an
    /// acknowledgement that goes forward and shows no further loss. Linux from 4.3 on.
    #[default]
    Prr,
}

/// When the window counts as used, so that an acknowledgement opens it (RFC 7661 has the reasons).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WindowUse {
    /// As much was in the network as it allows. Linux 2.4: where the receiver's window is the lesser one, cwnd ends there.
    Full,
    /// But for what may be held back to be sent in one piece: three segments, or less than a third of it and 64 KiB
    /// (`tcp_is_cwnd_limited` with segmentation offload). Linux 2.6.27 to 3.15.
    ButForBursts,
    /// It kept something back within the last window of data; in slow start it is enough that half of it was used
    /// (`tcp_is_cwnd_limited`). Linux from 3.16 on.
    #[default]
    LastWindow,
}

/// How it is found out whether a timeout was spurious, and what is done then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FrtoRule {
    /// By two acknowledgements that go forward (RFC 4138 appendix B); then cwnd comes down to ssthresh. Linux 2.6.24 to
    /// 3.9.
    #[serde(rename = "rfc-4138")]
    Rfc4138,
    /// By anything that arrives and was sent once (RFC 5682 section 3.1); then the window is taken back. Linux from 3.10 on.
    #[default]
    #[serde(rename = "rfc-5682")]
    Rfc5682,
}

/// What Nagle's algorithm waits for before it lets a segment go that is not full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NagleRule {
    /// That everything sent is acknowledged (RFC 9293 section 3.7.4).
    #[serde(rename = "rfc-9293")]
    Rfc9293,
    /// That the last segment that was not full is acknowledged: what a user writes at a time goes at once, however long it
    /// is (draft-minshall-nagle-01 section 2). Linux, since 2.2.
    #[default]
    Minshall,
}

/// How the retransmission timeout is worked out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RtoRule {
    /// RFC 6298: SRTT + 4 RTTVAR, `rto_min` at least.
    Rfc6298,
    /// As Linux: SRTT + the greatest 4 RTTVAR of this round trip or the last ones, which is never taken as less than
    /// `rto_min`; a round trip that is shorter than expected raises RTTVAR less.
    #[default]
    Linux,
}

/// The initial window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum InitialWindow {
    /// 2 segments (RFC 2581 section 3.1).
    Rfc2581,
    /// min(4 MSS, max(2 MSS, 4380 bytes)) (RFC 3390 section 1, RFC 5681 section 3.1).
    Rfc3390,
    /// min(10 MSS, max(2 MSS, 14600 bytes)) (RFC 6928 section 2).
    #[default]
    Rfc6928,
}

impl InitialWindow {
    /// Bytes, for segments of `mss` bytes.
    #[must_use]
    pub fn bytes(self, mss: u32) -> u32 {
        match self {
            Self::Rfc2581 => 2 * mss,
            Self::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
            Self::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
        }
    }
}

/// Configuration of a connection.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Where the values come from.
    pub profile: Profile,
    /// Congestion control algorithm.
    pub congestion_control: Algorithm,
    /// How much an acknowledgement opens the window.
    pub credit: Credit,
    /// Slow start of CUBIC.
    pub slow_start: SlowStart,
    /// CUBIC's curve.
    pub cubic_curve: CubicCurve,
    /// CUBIC where it is no faster than Reno.
    pub reno_friendliness: RenoFriendliness,
    /// Initial window.
    pub initial_window: InitialWindow,
    /// Largest IPv6 packet that the interfaces carry, bytes.
    pub mtu: u32,
    /// Most data per segment, bytes, where the MTU leaves room for more.
    pub max_segment: Option<u32>,
    /// Receive buffer, bytes: the greatest window offered.
    pub receive_buffer: u32,
    /// Send buffer, bytes taken from the application and not yet acknowledged.
    pub send_buffer: u32,
    /// Offer window scaling (RFC 7323 section 2).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 section 3), and use them for PAWS, round trips and undo.
    pub timestamps: bool,
    /// Offer SACK (RFC 2018). Without it loss recovery is NewReno's (RFC 6582).
    pub sack: bool,
    /// Report duplicates by SACK (RFC 2883).
    pub dsack: bool,
    /// How losses are noticed.
    pub loss_detection: LossDetection,
    /// How the window comes down.
    pub reduction: Reduction,
    /// DupThresh grows to the reordering that was seen, up to 127 segments, and is 3 again after a timeout (Linux).
    pub adaptive_reordering: bool,
    /// A retransmission counts as lost when something that was sent after it is SACKed (Linux, with FACK). RACK needs no
    /// such rule.
    pub lost_retransmissions: bool,
    /// With fewer than four segments outstanding and nothing new to send, fewer duplicate acknowledgements will do
    /// (RFC 5827).
    pub early_retransmit: bool,
    /// New data for the first duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Tail loss probe (RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// Find out whether a timeout was spurious by sending new data.
    pub frto: bool,
    /// How.
    pub frto_rule: FrtoRule,
    /// Take a reduction back if timestamps (Eifel, RFC 3522) or DSACKs (RFC 3708) show that the retransmissions were
    /// needless.
    pub undo: bool,
    /// That includes timeouts while something that was retransmitted before is outstanding. Linux 2.4 to 3.10 takes those for
    /// proven: of several timeouts in a row none but the first can be taken back.
    pub undo_repeated: bool,
    /// Rule of the retransmission timeout.
    pub rto_rule: RtoRule,
    /// Before the first measurement.
    pub rto_initial: Duration,
    /// RFC 6298 section 2.4 says a second; Linux has 200 ms.
    pub rto_min: Duration,
    /// RFC 6298 section 2.5.
    pub rto_max: Duration,
    /// Timeouts of one segment until the connection is given up: R2 (RFC 9293 section 3.8.3).
    pub max_retransmits: u32,
    /// Timeouts of a SYN until it is given up.
    pub max_syn_retransmits: u32,
    /// Time that an acknowledgement waits for data or another segment (RFC 9293 section 3.8.6.3): 500 ms at most.
    pub ack_delay: Duration,
    /// Full-sized segments that are acknowledged together: 2 by RFC 5681 section 4.2.
    pub ack_frequency: u32,
    /// Acknowledgements that are not delayed: at the start, and after a pause or a duplicate (Linux). They let slow start
    /// begin sooner.
    pub quick_acks: u32,
    /// Nagle's algorithm (RFC 9293 section 3.7.4).
    pub nagle: bool,
    /// What it waits for.
    pub nagle_rule: NagleRule,
    /// When cwnd counts as used.
    pub window_use: WindowUse,
    /// cwnd falls back towards the initial window when nothing was sent for RTOs (RFC 5681 section 4.1, RFC 2861).
    pub idle_restart: bool,
    /// cwnd falls when it was not used for an RTO (RFC 2861 section 3.2).
    pub cwnd_validation: bool,
    /// Time in TIME-WAIT. RFC 9293 section 3.4.2 has 2 MSL, four minutes; Linux a minute.
    pub time_wait: Duration,
    /// Silence in FIN-WAIT-2 after which the peer's FIN is no longer awaited (Linux; RFC 9293 has no limit).
    pub fin_wait_2: Duration,
    /// What is done with what is known of networks.
    pub remedy: Remedy,
    /// Challenge ACKs per second (RFC 5961 section 7).
    pub challenge_acks: u32,
    /// Connections that an endpoint holds before it accepts no more. Those that the user opens are not limited.
    pub max_connections: usize,
}

impl Config {
    /// The values of `profile`.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        let modern = Self::modern(profile);
        match profile {
            Profile::Modern => modern,
            Profile::Linux39 => Self {
                credit: Credit::Acks,
                slow_start: SlowStart::Hystart,
                cubic_curve: CubicCurve::Rfc9438,
                loss_detection: LossDetection::Fack,
                reduction: Reduction::PrrRfc6937,
                lost_retransmissions: true,
                early_retransmit: true,
                tail_loss_probe: false,
                frto_rule: FrtoRule::Rfc4138,
                undo_repeated: false,
                window_use: WindowUse::ButForBursts,
                ..modern
            },
            Profile::Linux24 => Self {
                congestion_control: Algorithm::Reno,
                credit: Credit::Acks,
                slow_start: SlowStart::Standard,
                cubic_curve: CubicCurve::Rfc9438,
                initial_window: InitialWindow::Rfc2581,
                receive_buffer: 65_535,
                send_buffer: 131_072,
                loss_detection: LossDetection::Fack,
                reduction: Reduction::RateHalving,
                lost_retransmissions: true,
                tail_loss_probe: false,
                frto: false,
                undo_repeated: false,
                window_use: WindowUse::Full,
                rto_initial: Duration::from_secs(3),
                max_syn_retransmits: 5,
                ..modern
            },
        }
    }

    /// What Linux has today; the other profiles say in what they differ.
    fn modern(profile: Profile) -> Self {
        Self {
            profile,
            congestion_control: Algorithm::Cubic,
            credit: Credit::Bytes,
            slow_start: SlowStart::Hystart58,
            cubic_curve: CubicCurve::Linux,
            reno_friendliness: RenoFriendliness::Linux,
            initial_window: InitialWindow::Rfc6928,
            mtu: 1500,
            max_segment: None,
            // half of the 6 MB that Linux's buffer grows to, since the other half is for its own needs
            receive_buffer: 3 << 20,
            send_buffer: 4 << 20,
            window_scaling: true,
            timestamps: true,
            sack: true,
            dsack: true,
            loss_detection: LossDetection::Rack,
            reduction: Reduction::Prr,
            adaptive_reordering: true,
            lost_retransmissions: false,
            early_retransmit: false,
            limited_transmit: true,
            tail_loss_probe: true,
            frto: true,
            frto_rule: FrtoRule::Rfc5682,
            undo: true,
            undo_repeated: true,
            rto_rule: RtoRule::Linux,
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(120),
            max_retransmits: 15,
            max_syn_retransmits: 6,
            ack_delay: Duration::from_millis(40),
            ack_frequency: 2,
            quick_acks: 16,
            nagle: true,
            nagle_rule: NagleRule::Minshall,
            window_use: WindowUse::LastWindow,
            idle_restart: true,
            cwnd_validation: true,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            remedy: Remedy::default(),
            challenge_acks: 100,
            max_connections: 65_536,
        }
    }

    /// With buffers as `setsockopt` makes them for a window of so many bytes, as `iperf -w` asks: the window offered is
    /// never greater. Linux doubles what it is asked for; of the receive buffer one half is for its own needs, of the
    /// send buffer all is there.
    #[must_use]
    pub fn with_window_clamp(self, bytes: u32) -> Self {
        Self {
            receive_buffer: bytes,
            send_buffer: bytes.saturating_mul(2),
            ..self
        }
    }

    /// Shift count of the windows that are offered: as small as the receive buffer allows (RFC 7323 section 2.2).
    #[must_use]
    pub fn window_scale(&self) -> u8 {
        (0..MAX_WINDOW_SCALE)
            .find(|shift| self.receive_buffer >> shift <= u32::from(u16::MAX))
            .unwrap_or(MAX_WINDOW_SCALE)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}

/// What a sender does when its peer comes back to a network that it knows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Remedy {
    /// The RTT estimate is the last of that network.
    pub rtt_injection: bool,
    /// "Possibly with a small fraction added on for safety": this one.
    pub rtt_margin: f64,
    /// Careful resume.
    pub careful_resume: bool,
}

impl Remedy {
    /// Whether there is anything to be remembered.
    #[must_use]
    pub const fn remembers(&self) -> bool {
        self.rtt_injection || self.careful_resume
    }
}

/// RFC 7323 section 2.3.
pub(super) const MAX_WINDOW_SCALE: u8 = 14;
