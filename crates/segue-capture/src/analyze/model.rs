//! What an analysis gives back.
//!
//! Times that end in `_s` are seconds since [`Analysis::start_time_ns`], which is the first packet of all captures, on
//! the clock of the first capture.

use super::adaptation::AdaptationTime;
pub use super::fates::EndCounts;
use super::flows::paths::Spot;
pub use super::protocol::Protocol;
pub use super::signal::{Signal, SignalKind};
use crate::record::{FlowEnd, HandoverRecord};
use core::net::IpAddr;
use serde::Serialize;
use std::collections::BTreeMap;

/// What to look at, and how much of it to keep. The defaults keep memory under 200 MB for captures of any size.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keep the points of figures for the flows that are reported ([`DirectionReport::series`]).
    pub series: bool,
    /// Flows followed at the same time, half as many with two captures; the one that was silent longest makes room for
    /// the next.
    pub max_live_flows: usize,
    /// Flows reported: those with handovers first, then those with most bytes. The others are counted.
    pub max_reported_flows: usize,
    /// Pauses of received data from this length on are candidates for interruptions, seconds.
    pub min_gap_s: f64,
    /// Time over which throughput before and after a handover is taken, seconds.
    pub throughput_window_s: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            series: false,
            max_live_flows: 40_000,
            max_reported_flows: 10_000,
            min_gap_s: 0.2,
            throughput_window_s: 2.0,
        }
    }
}

/// Everything that one or two captures say.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Analysis {
    /// Of this structure: 2.
    pub format: u32,
    /// First packet of all captures on the clock of the first one, nanoseconds since 1970 (of a simulated capture: since
    /// the beginning of the run).
    pub start_time_ns: u64,
    /// From there to the last packet, seconds.
    pub duration_s: f64,
    /// What was read.
    pub captures: Vec<CaptureReport>,
    /// How the clock of the second capture differs from the first one's; nothing with one capture.
    pub clock_offset: Option<ClockOffset>,
    /// Flows in the order of their first packet. Subflows of MPTCP come beside their connection.
    pub flows: Vec<Flow>,
    /// Flows that were seen, reported or not.
    pub flows_total: u64,
    /// Flows that ended because too many were live, and were counted as two if they went on.
    pub flows_evicted: u64,
    /// Handovers of all flows in order of time.
    pub handovers: Vec<Handover>,
    /// Flows of which nothing more is said, because the snap length cut off what their headers say; those with most packets first.
    pub cut_flows: Vec<CutFlow>,
    /// Pauses of data without a change of path: those that never ended first, then by length.
    pub interruptions: Vec<Interruption>,
    /// Directions of flows that used several paths at once, or in turn.
    pub shares: Vec<Share>,
    /// Signalling of mobility in order of time.
    pub signals: Vec<Signal>,
    /// Limits that were hit, by name: anything here means that something was not followed to its end.
    pub limits: BTreeMap<&'static str, u64>,
    /// What a reader has to know before he believes the rest.
    pub warnings: Vec<Warning>,
}

/// What a warning is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// Two captures of one host: they say nothing of losses.
    SameEnd,
    /// Two captures without a packet in common.
    NothingInCommon,
    /// Times go back by more than captures of several interfaces explain.
    TimeWentBack,
    /// The snap length cut off headers: nothing is said of the flows of these packets.
    HeadersCutOff,
}

/// What a reader has to know before he believes the rest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Warning {
    /// What of.
    pub kind: WarningKind,
    /// The host concerned, if it is one.
    pub host: Option<String>,
    /// Number of the flow concerned, if it is one.
    pub flow: Option<u64>,
    /// In a line.
    pub text: String,
}

/// A direction of a flow that used several paths at once or in turn: no handover, as long as none of them is left.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Share {
    /// [`Flow::id`].
    pub flow: u64,
    /// Which direction.
    pub direction: Direction,
    /// Times that its data went on over another of them.
    pub changes: u64,
    /// What each carried, in the order of first use.
    pub paths: Vec<PathShare>,
}

/// What one of several paths carried.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PathShare {
    /// [`Path::id`].
    pub path: u16,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Of all that the direction carried, 0 to 1.
    pub share: f64,
}

/// One capture file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CaptureReport {
    /// File name as given.
    pub file: String,
    /// "pcap" or "pcapng".
    pub format: &'static str,
    /// Its interfaces.
    pub interfaces: Vec<CaptureInterface>,
    /// Packets read.
    pub packets: u64,
    /// Their bytes on the wire.
    pub wire_bytes: u64,
    /// Packets that the snap length cut short.
    pub truncated_packets: u64,
    /// First packet, nanoseconds since 1970 on its own clock.
    pub first_time_ns: Option<u64>,
    /// Last packet.
    pub last_time_ns: Option<u64>,
    /// Packets whose time is before that of the packet before them.
    pub time_went_back: u64,
    /// What was not followed, and packets of every kind, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// The file ended where it should not have: what came before was analysed.
    pub partial: Option<Partial>,
}

/// Where and why a file could not be read on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Partial {
    /// Byte of the file at which the record begins that could not be read.
    pub offset: u64,
    /// Why.
    pub reason: String,
}

/// An interface of a capture.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CaptureInterface {
    /// Its name, if the file says so.
    pub name: Option<String>,
    /// Link type as a number (LINKTYPE_*).
    pub link_type: u16,
    /// And by name, where it is one that is understood.
    pub link: Option<&'static str>,
    /// Snap length, bytes; zero for none.
    pub snap_length: u32,
    /// Packets.
    pub packets: u64,
}

/// How two clocks differ, by packets that both captures have: a packet can only arrive after it was sent, so the
/// smallest difference of each direction bounds the offset from one side.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ClockOffset {
    /// What the second clock shows more than the first, seconds: the middle of the bounds.
    pub offset_s: f64,
    /// Half of what is between the bounds, which is half of the smallest round trip; the offset is certain up to this.
    /// Nothing if packets of only one direction are in both captures: then the offset takes the path to cost no time.
    pub uncertainty_s: Option<f64>,
    /// How much the second clock gains on the first, parts per million; nothing where the captures are too short to tell.
    pub drift_ppm: Option<f64>,
    /// Packets in both captures that it was worked out from.
    pub matched_packets: u64,
}

/// Who makes a flow survive a change of address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mobility {
    /// Nobody that is visible.
    None,
    /// Mobile IPv6, packets through the home agent (RFC 6275).
    Mip6,
    /// Mobile IPv6 with route optimisation at least part of the time.
    Mip6Ro,
    /// ILNPv6 (RFC 6740).
    Ilnp,
    /// The transport itself.
    Transport,
}

/// One end of a flow, by what stays: a home address, a node identifier behind a locator, else the first address seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Endpoint {
    /// Address.
    pub address: IpAddr,
    /// Port.
    pub port: u16,
}

/// A flow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Flow {
    /// Number, to which handovers and interruptions refer.
    pub id: u64,
    /// What it is.
    pub protocol: Protocol,
    /// What keeps it alive.
    pub mobility: Mobility,
    /// The end that sent the first packet seen.
    pub a: Endpoint,
    /// The other.
    pub b: Endpoint,
    /// The MPTCP connection that it is a subflow of.
    pub parent: Option<u64>,
    /// First packet, seconds.
    pub begin_s: f64,
    /// Last packet, seconds.
    pub end_s: f64,
    /// From `a` to `b`.
    pub forward: DirectionReport,
    /// From `b` to `a`.
    pub reverse: DirectionReport,
    /// How it ended: the end of its worse direction.
    #[serde(flatten)]
    pub end: FlowEnd,
    /// The ways that its packets took, in the order in which they were first seen.
    pub paths: Vec<Path>,
}

/// A flow whose packets a snap length cut off within what the analysis reads of their headers. All numbers of it might be others,
/// so that there are none but these.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CutFlow {
    /// What it seems to be.
    pub protocol: Protocol,
    /// The end that sent the first packet seen.
    pub a: Endpoint,
    /// The other.
    pub b: Endpoint,
    /// First packet, seconds.
    pub begin_s: f64,
    /// Last packet, seconds.
    pub end_s: f64,
    /// Packets that are cut off, of it or of whatever goes between the same addresses.
    pub cut_packets: u64,
    /// So much of a packet has to be captured for them to be whole, at least, bytes.
    pub needed_bytes: u32,
}

/// A way that packets of a flow took, one direction of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Path {
    /// Number within the flow.
    pub id: u16,
    /// "forward" or "reverse".
    pub direction: Direction,
    /// Source of the outermost header.
    pub source: IpAddr,
    /// Destination of the outermost header.
    pub destination: IpAddr,
    /// Source port, where it may differ between paths.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Through a tunnel.
    pub tunnelled: bool,
    /// Interface of the capture at the data's receiver, or of the only capture; its number, where a Linux cooked capture (v2)
    /// has no more of it.
    pub interface: Option<String>,
    /// Where the first packet was captured.
    #[serde(skip)]
    pub(super) seen_at: Spot,
    /// First packet, seconds.
    pub first_s: f64,
    /// Last packet, seconds.
    pub last_s: f64,
    /// Packets with data.
    pub data_packets: u64,
    /// Bytes of data.
    pub data_bytes: u64,
}

/// One of the two directions of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From `a` to `b`.
    Forward,
    /// From `b` to `a`.
    Reverse,
}

/// Where the packets of a direction were seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vantage {
    /// At one place, and nothing says at which.
    Unknown,
    /// At the sender: retransmissions are known, losses are not.
    Sender,
    /// At the receiver: interruptions are exact, retransmissions of what was lost before are not seen as such.
    Receiver,
    /// At both.
    Both,
}

/// What one direction of a flow carried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DirectionReport {
    /// Where it was seen. With [`Vantage::Both`], what follows is the receiver's view unless it says otherwise.
    pub vantage: Vantage,
    /// Packets, those without data included.
    pub packets: u64,
    /// Packets with data (of SCTP: DATA chunks).
    pub data_packets: u64,
    /// Bytes of data, repeated ones included.
    pub data_bytes: u64,
    /// Bytes of data, each counted once.
    pub useful_bytes: u64,
    /// Those, in bits, by the life of the direction: from its first data to its last new byte if it is closed or idle, to
    /// the end of the captures if it is dead or that cannot be told, bit/s.
    pub throughput_bps: f64,
    /// Packets whose data had all been seen before.
    pub duplicate_packets: u64,
    /// Packets with data not seen before that came after later data: reordered, or repaired.
    pub out_of_order_packets: u64,
    /// Packets with data that had been sent before (its first byte), at the sender; at another place, those that repeat
    /// or repair.
    pub retransmissions: u64,
    /// How it ended, and its longest pause between two arrivals of data not seen before.
    #[serde(flatten)]
    pub end: FlowEnd,
    /// Of a dead one: data, repeated data and probes that its sender sent into the silence.
    pub attempts: u64,
    /// Round trip times, at the place of the sender if it was captured, seconds.
    pub rtt_s: Option<Spread>,
    /// By matching both ends.
    pub ends: Option<EndCounts>,
    /// Points for figures, if asked for.
    pub series: Option<Series>,
}

/// Median, extremes and count.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Median of the last samples at most [`super::RTT_KEPT`].
    pub median: f64,
    /// Smallest of all.
    pub min: f64,
    /// Largest of all.
    pub max: f64,
    /// Samples.
    pub count: u64,
}

/// How a handover shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandoverKind {
    /// An address of the packets changed, and nothing tells why.
    Address,
    /// The interface changed, the addresses did not.
    Interface,
    /// A care-of address of Mobile IPv6 changed, or the way by the home agent was left or taken.
    CareOfAddress,
    /// A locator of ILNPv6 changed.
    Locator,
    /// SCTP went to another address of an association.
    SctpPath,
    /// MPTCP went to another subflow.
    MptcpSubflow,
    /// QUIC went to another path under the same connection ID.
    QuicPath,
    /// A WireGuard peer's endpoint changed.
    WireguardEndpoint,
}

/// A handover of one direction of a flow. The definitions of latency and interruption are those of [`crate::handover`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Handover {
    /// What every handover has, here or in a simulation. Its `flow` is [`Flow::id`], its `host` the identity of the end that
    /// moved.
    #[serde(flatten)]
    pub record: HandoverRecord,
    /// Which direction's data moved.
    pub direction: Direction,
    /// How it shows.
    pub kind: HandoverKind,
    /// The old path, [`Path::id`].
    pub from_path: u16,
    /// The new path.
    pub to_path: u16,
    /// In words: what of the path changed.
    pub from_text: String,
    /// The same of the new path.
    pub to_text: String,
    /// Longest time without new data that began no later than a second after the first data over the new path, seconds:
    /// what was lost may be repaired only by a timeout.
    pub settling_gap_s: f64,
    /// t_a (002, section 5); nothing where the new path carried too little to tell.
    pub adaptation: Option<AdaptationTime>,
    /// What the old path gave, and the new one.
    #[serde(flatten)]
    pub around: Around,
    /// Packets out of order within [`Options::throughput_window_s`] after the first data over the new path.
    pub out_of_order_packets: u64,
    /// Of the packets sent from [`Options::throughput_window_s`] before the last data that came before the new path to as
    /// long after the first over it.
    pub ends: Option<EndCounts>,
    /// Numbers of the signals that belong to it, in [`Analysis::signals`].
    pub signals: Vec<u32>,
}

/// Throughput and round trip times before a handover and after it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Around {
    /// Useful bits by time in the window before the last data over the old path, or from the first data on if that was
    /// later, bit/s.
    pub throughput_before_bps: f64,
    /// Useful bits by time in the window from the first data over the new path on, bit/s.
    pub throughput_after_bps: f64,
    /// Round trip times before, median of the last samples, seconds.
    pub rtt_before_s: Option<f64>,
    /// Round trip times after, median of the first samples, seconds.
    pub rtt_after_s: Option<f64>,
}

/// A pause in data that no change of path explains.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Interruption {
    /// [`Flow::id`].
    pub flow: u64,
    /// Which direction's data paused.
    pub direction: Direction,
    /// Last data before, seconds.
    pub begin_s: f64,
    /// How long, seconds.
    pub duration_s: f64,
    /// The data that ended it repaired or repeated earlier data: the sender had something to send.
    pub ended_by_retransmission: bool,
    /// Packets during it that repeat earlier data, the one that ended it included: with any, it was the network that held the
    /// data up, wherever it was captured. Zero where the sender fell quiet for longer than it had repeated anything: it may
    /// have had nothing more to send. Of a pause that did not end, all that was tried in vain.
    pub retransmissions: u64,
    /// It did not end: the direction is dead, and `duration_s` is a lower bound.
    pub censored: bool,
}

/// Points for figures of one direction, each list bounded. Of `segments`, every second of those that are next in order is dropped
/// when there are too many, and from then on only every second is taken; the same of all others.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Series {
    /// Width of the bins of `throughput`, seconds.
    pub bin_s: f64,
    /// Useful bytes by bin and path: (bin number from [`Analysis::start_time_ns`], path, bytes).
    pub throughput: Vec<(u32, u16, u64)>,
    /// (seconds, offset of the first byte from the flow's first, path, what it was).
    pub segments: Vec<(f64, u64, u16, SegmentMark)>,
    /// Times between arrivals of data, new or not, of so many in a row the longest: (seconds at which it ended, seconds).
    pub gaps: Vec<(f64, f64)>,
    /// Arrivals of which one of `gaps` is the longest.
    pub arrivals_per_gap: u32,
}

/// What a point of [`Series::segments`] was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentMark {
    /// Next in order.
    New,
    /// Later than the next in order: something is missing before it.
    Ahead,
    /// Fills what was missing.
    Fills,
    /// Repeats what was there.
    Repeats,
}
