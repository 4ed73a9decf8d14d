//! `[tcp]`: TCP on every host.

use super::keys::range::{at_least, at_most, within};
use super::model::ScenarioFile;
use super::validate::{Problem, problem};
use schemars::JsonSchema;
use segue_proto::Duration;
use segue_proto::congestion::{Algorithm, Credit, CubicCurve, RenoFriendliness, SlowStart};
use segue_proto::tcp::{
    Config, FrtoRule, InitialWindow, LossDetection, NagleRule, Profile, Reduction, RtoRule, WindowUse,
};
use segue_proto::units::Bytes;
use serde::{Deserialize, Serialize};

/// `[tcp]`: what is not set is the profile's.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpSection {
    /// Whose TCP.
    pub profile: Profile,
    /// Congestion control algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<Algorithm>,
    /// Greatest window, by buffers as `iperf -w` asks for: sets `receive_buffer`, and `send_buffer` to twice as much.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_least("2048 B").below("1 GiB").by("RFC 7323 section 2.3")))]
    pub window_clamp: Option<Bytes>,
    /// Receive buffer: the greatest window offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_least("2048 B").below("1 GiB").by("RFC 7323 section 2.3")))]
    pub receive_buffer: Option<Bytes>,
    /// Send buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_least("2048 B").below("1 GiB").by("RFC 7323 section 2.3")))]
    pub send_buffer: Option<Bytes>,
    /// Longest IPv6 packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1280 B", "65535 B").by("RFC 8200 section 5")))]
    pub mtu: Option<Bytes>,
    /// Most data per segment; what the MTU leaves room for, if that is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("88 B", "65475 B")))]
    pub max_segment: Option<Bytes>,
    /// Initial window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<InitialWindow>,
    /// How much an acknowledgement opens the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<Credit>,
    /// Slow start of CUBIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_start: Option<SlowStart>,
    /// CUBIC's curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cubic_curve: Option<CubicCurve>,
    /// CUBIC where it is no faster than Reno.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reno_friendliness: Option<RenoFriendliness>,
    /// How losses are noticed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_detection: Option<LossDetection>,
    /// How the window comes down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduction: Option<Reduction>,
    /// Whether SACK is offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Whether duplicates are reported by SACK.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsack: Option<bool>,
    /// Whether timestamps are offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Whether windows are scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_scaling: Option<bool>,
    /// Whether DupThresh adapts to reordering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_reordering: Option<bool>,
    /// Early retransmit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_retransmit: Option<bool>,
    /// Tail loss probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_loss_probe: Option<bool>,
    /// F-RTO.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frto: Option<bool>,
    /// How.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frto_rule: Option<FrtoRule>,
    /// Whether needless reductions are taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<bool>,
    /// Whether those of repeated timeouts are, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_repeated: Option<bool>,
    /// When the window counts as used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_use: Option<WindowUse>,
    /// Rule of the retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_rule: Option<RtoRule>,
    /// Timeout before the first measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub rto_initial: Option<Duration>,
    /// Least timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub rto_min: Option<Duration>,
    /// Greatest timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub rto_max: Option<Duration>,
    /// Time that an acknowledgement may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_most("500 ms").by("RFC 9293 section 3.8.6.3")))]
    pub ack_delay: Option<Duration>,
    /// Full-sized segments per acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_least("1")))]
    pub ack_frequency: Option<u32>,
    /// Acknowledgements that are not delayed, at the start and after a pause or a duplicate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_acks: Option<u32>,
    /// Nagle's algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nagle: Option<bool>,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nagle_rule: Option<NagleRule>,
}

/// The TCP configuration of a scenario: its profile's, with what it sets.
pub(crate) fn config(s: &ScenarioFile) -> Config {
    let set = &s.tcp;
    let mut c = Config::new(set.profile);
    if let Some(clamp) = set.window_clamp {
        c = c.with_window_clamp(clamp.bytes() as u32);
    }
    let put = |to: &mut u32, from: Option<Bytes>| *to = from.map_or(*to, |b| b.bytes() as u32);
    put(&mut c.receive_buffer, set.receive_buffer);
    put(&mut c.send_buffer, set.send_buffer);
    put(&mut c.mtu, set.mtu);
    c.max_segment = set.max_segment.map(|b| b.bytes() as u32);
    c.congestion_control = set.congestion_control.unwrap_or(c.congestion_control);
    c.initial_window = set.initial_window.unwrap_or(c.initial_window);
    c.credit = set.credit.unwrap_or(c.credit);
    c.slow_start = set.slow_start.unwrap_or(c.slow_start);
    c.cubic_curve = set.cubic_curve.unwrap_or(c.cubic_curve);
    c.reno_friendliness = set.reno_friendliness.unwrap_or(c.reno_friendliness);
    c.loss_detection = set.loss_detection.unwrap_or(c.loss_detection);
    c.reduction = set.reduction.unwrap_or(c.reduction);
    c.sack = set.sack.unwrap_or(c.sack);
    c.dsack = set.dsack.unwrap_or(c.dsack);
    c.timestamps = set.timestamps.unwrap_or(c.timestamps);
    c.window_scaling = set.window_scaling.unwrap_or(c.window_scaling);
    c.adaptive_reordering = set.adaptive_reordering.unwrap_or(c.adaptive_reordering);
    c.early_retransmit = set.early_retransmit.unwrap_or(c.early_retransmit);
    c.tail_loss_probe = set.tail_loss_probe.unwrap_or(c.tail_loss_probe);
    c.frto = set.frto.unwrap_or(c.frto);
    c.frto_rule = set.frto_rule.unwrap_or(c.frto_rule);
    c.undo = set.undo.unwrap_or(c.undo);
    c.undo_repeated = set.undo_repeated.unwrap_or(c.undo_repeated);
    c.window_use = set.window_use.unwrap_or(c.window_use);
    c.rto_rule = set.rto_rule.unwrap_or(c.rto_rule);
    c.rto_initial = set.rto_initial.unwrap_or(c.rto_initial);
    c.rto_min = set.rto_min.unwrap_or(c.rto_min);
    c.rto_max = set.rto_max.unwrap_or(c.rto_max);
    c.ack_delay = set.ack_delay.unwrap_or(c.ack_delay);
    c.ack_frequency = set.ack_frequency.unwrap_or(c.ack_frequency);
    c.quick_acks = set.quick_acks.unwrap_or(c.quick_acks);
    c.nagle = set.nagle.unwrap_or(c.nagle);
    c.nagle_rule = set.nagle_rule.unwrap_or(c.nagle_rule);
    c.remedy = super::remedy::of_senders(s);
    c
}

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    let set = &s.tcp;
    if set.window_clamp.is_some() && (set.receive_buffer.is_some() || set.send_buffer.is_some()) {
        return problem(
            "tcp.window_clamp",
            "sets receive_buffer and send_buffer: expected those to be left out",
        );
    }
    let config = config(s);
    super::timers::bounds(
        "tcp",
        config.rto_max,
        [
            ("rto_min", config.rto_min, set.rto_min.is_some()),
            ("rto_initial", config.rto_initial, set.rto_initial.is_some()),
        ],
    )?;
    if config.loss_detection == LossDetection::Rack && !config.sack && set.loss_detection.is_some() {
        return problem(
            "tcp.loss_detection",
            "\"rack\" needs SACK (RFC 8985 section 4): expected sack = true",
        );
    }
    Ok(())
}
