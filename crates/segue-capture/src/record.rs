//! One record of a handover and one account of a flow's end, for what a simulation is told and for what captures show.
//!
//! A **handover record** is one move of one host as one direction of one flow went through it. A host that moves with three
//! flows has three records; one that moves with none has one, whose `flow` is `None`. What a scheme has not is `None`, and
//! `null` in JSON, never absent.
//!
//! A flow that never comes back is the longest interruption of all. Its silence is a lower bound: `censored` says so, and
//! it is counted wherever interruptions are.

use core::net::IpAddr;
use serde::Serialize;

/// Sender's attempts must go unanswered for longer than this, or than its RTO if that is longer, before a flow counts as
/// dead, nanoseconds.
pub const DEAD_AFTER_NS: u64 = 1_000_000_000;

/// The layer that moved a flow to another path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The interface changed, the addresses did not.
    Link,
    /// A shim below the transport: Mobile IPv6, ILNPv6.
    Network,
    /// The transport itself: SCTP, MPTCP, QUIC, a WireGuard endpoint.
    Transport,
}

/// One handover. Times are seconds since the beginning of the observation.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HandoverRecord {
    /// Host that moved: its name, or in a capture the identity by which its end of the flow is known.
    pub host: String,
    /// Number of the flow; nothing if the host moved without one.
    pub flow: Option<u64>,
    /// Layer that moved it; nothing where that cannot be told.
    pub layer: Option<Layer>,
    /// Address of the moved host before, if there was one.
    pub from: Option<IpAddr>,
    /// Address of the moved host after.
    pub to: Option<IpAddr>,
    /// First data over the new path; without any, when the move began.
    pub time: f64,
    /// Longest time without new data around it, seconds (see [`crate::handover`]); nothing without a flow. In a simulation while
    /// there was some to come; a capture does not show that.
    pub interruption_s: Option<f64>,
    /// The data never came back: `interruption_s` is a lower bound, to the end of the observation.
    pub censored: bool,
    /// Last data over the old path to the first over the new one, seconds (000 section VI-A); negative while the old path
    /// still drains.
    pub latency_s: Option<f64>,
    /// The time that the host needed to tell others of the new address, seconds (004 section 5.4, "the time that the MN
    /// needs to complete the handoff process", whose least is one round trip): for so long some message of it waited for
    /// its acknowledgement. Those are BU and LU, and what goes before a BU to a correspondent; of SCTP the ASCONF that adds
    /// the address and the one that has it used (Set Primary), in the flow's association, from when each first left. Nothing
    /// is waited for between the two while a host has not decided to move, and taking back the old address (Delete) is no
    /// part of it.
    pub handoff_delay_s: Option<f64>,
    /// When the first of those messages left.
    pub begin_s: Option<f64>,
    /// When the last of them was acknowledged. Without a wait in between, `handoff_delay_s` is from `begin_s` to here.
    pub end_s: Option<f64>,
    /// Those who could not be told.
    pub failed: Vec<IpAddr>,
    /// Parts of T_n, and t_a (002 section 4, equations 1 to 4, and section 5). They are of the network layer: nothing where
    /// another layer moved the flow.
    pub parts: Option<Parts>,
    /// Data packets lost to it.
    pub lost_packets: Option<u64>,
    /// Data packets sent again because of it (004 section 6.1.2).
    pub retransmissions: Option<u64>,
    /// Of them, those of which an earlier copy arrived (004 section 6.1.3).
    pub spurious_retransmissions: Option<u64>,
}

/// What a handover consists of, seconds (002 sections 4 and 5).
///
/// T_n begins when the old network goes out of reach, or, if it stays in reach, when the new one comes into it. A capture does
/// not show that: there it begins with the last data over the old path.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Parts {
    /// Whether the old network was still in reach when others were told of the new address; nothing if it cannot be told.
    pub soft: Option<bool>,
    /// When T_n begins, seconds since the beginning of the observation.
    pub since_s: f64,
    /// Detection: from there until the router advertisement from which the new address was formed, or, if the address was
    /// there before, until the decision to use it.
    pub t_d_s: Option<f64>,
    /// Configuration (equation 3): from there until the first message that tells of the new address leaves.
    pub t_c_s: Option<f64>,
    /// Registration (equation 4: t_RR + t_BU): from there until the last correspondent that is told has the new address,
    /// which after return routability are the paper's 1.5 round trips, and half of one for a locator update. Where no
    /// correspondent is told, until the home agent's acknowledgement. Nothing if it did not come to that. A capture without
    /// the correspondent's end does not show when it had it: there, until its acknowledgement arrives, half a round trip
    /// later, or the first data over the new path.
    pub t_r_s: Option<f64>,
    /// Their sum (equation 1).
    pub t_n_s: Option<f64>,
    /// From `since_s` to the first data over the new path.
    pub first_data_s: Option<f64>,
    /// Adaptation (section 5), from there.
    pub t_a_s: Option<f64>,
    /// Mean throughput of the new path by the same method, bit/s: its threshold.
    pub threshold_bps: Option<f64>,
}

/// How a direction of a flow ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowState {
    /// Its ends said that it was over.
    Closed,
    /// All that was seen sent was acknowledged or arrived, and nothing new had arrived for [`DEAD_AFTER_NS`].
    Idle,
    /// It was getting there when the observation ended: data was under way and the flow was not dead, or something new had
    /// arrived within the last [`DEAD_AFTER_NS`].
    Active,
    /// Its sender went on sending for longer than max([`DEAD_AFTER_NS`], RTO), and nothing new arrived.
    Dead,
    /// It cannot be told, from captures; a run always can.
    #[default]
    Unknown,
}

/// A time without new data through which a sender went on trying, so long that the flow would have been dead had it ended
/// there, and that no handover of the flow accounts for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Outage {
    /// Arrival of the last new byte before, seconds since the beginning of the observation; in a simulation, if there was nothing
    /// to come then, when there was again; of a flow of which nothing ever arrived, its sender's first attempt.
    pub since_s: f64,
    /// Until the next new byte, or else the end of the observation, seconds.
    pub duration_s: f64,
    /// No new byte came: `duration_s` is a lower bound.
    pub censored: bool,
}

/// The end of one direction of a flow.
///
/// A flow whose sender tried, and of which nothing ever arrived, is dead since its first attempt.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FlowEnd {
    /// How.
    pub state: FlowState,
    /// Of a dead one: arrival of its last new byte, seconds since the beginning of the observation; in a simulation, if there
    /// was nothing to come then, when there was again.
    pub dead_since_s: Option<f64>,
    /// Of a dead one: from `dead_since_s` to the end of the observation, seconds: a lower bound.
    pub silence_s: Option<f64>,
    /// Longest time without new data, seconds, in a simulation while there was some to come; of a dead flow, its silence to the
    /// end included.
    pub longest_gap_s: f64,
    /// When that time began, seconds since the beginning of the observation; nothing if there was none.
    pub longest_gap_at_s: Option<f64>,
    /// `longest_gap_s` is the silence at the end: a lower bound.
    pub censored: bool,
    /// Outages that no handover accounts for, in order of time; the silence of a dead flow is the last of them, unless its
    /// last handover has it (a record with `censored`).
    pub outages: Vec<Outage>,
    /// Of a dead one, in words: the last packets before the silence and the first into it.
    pub last_packets: Vec<String>,
}
