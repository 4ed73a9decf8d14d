//! What a run gives back: metrics always, a trace and captures when asked for.

use crate::load::NodeLoad;
use crate::population::{HostMetrics, PopulationMetrics, Spread};
use crate::quality::ApplicationMetrics;
use crate::recorder::{FlowMetrics, HandoffMetrics, Signalling};
use crate::scenario::events::ScenarioEvent;
use crate::warnings::Warning;
use segue_capture::record::HandoverRecord;
use segue_proto::sctp::MultipathCounters;
use serde::Serialize;
use std::collections::BTreeMap;

/// What to record beside the metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunOptions {
    /// Seed; `None` takes the scenario's.
    pub seed: Option<u64>,
    /// Record the tables of [`Trace`].
    pub trace: bool,
    /// Record a pcapng file per host.
    pub pcap: bool,
}

/// Name and content of a pcapng file.
pub type CaptureFile = (String, Vec<u8>);

/// Result of a run.
#[derive(Debug)]
pub struct RunOutput {
    /// Metrics.
    pub metrics: Metrics,
    /// Tables, if asked for.
    pub trace: Option<Trace>,
    /// pcapng files as (file name, bytes), if asked for.
    pub captures: Vec<CaptureFile>,
    /// The scenario as run, overrides applied, as canonical TOML.
    pub scenario_toml: String,
}

/// Metrics of a run; definitions in `segue_capture::handover` and `segue_capture::record`. What is said of all handovers,
/// all packets and all bytes is made from the tables `handovers` and `flows`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Metrics {
    /// Scenario name.
    pub scenario: String,
    /// Seed used.
    pub seed: u64,
    /// Simulated time, seconds.
    pub duration_s: f64,
    /// Every handover in order of time: of every host, as each of its flows went through it, whatever made it.
    pub handovers: Vec<HandoverRecord>,
    /// Handover latency over all handovers, seconds (000 section VI-A); `None` without handovers.
    pub handover_latency_s: Option<Spread>,
    /// Interruption over all handovers, and over all outages of flows that none accounts for, seconds.
    pub interruption_s: Option<Spread>,
    /// Longest time without new data of any flow, handover or not, seconds; the silence of a dead one included.
    pub longest_gap_s: f64,
    /// Data packets lost to handover / data packets sent by the correspondent node (000 section VI-B).
    pub loss_rate: f64,
    /// Useful bits that arrived, by the time from the first data of any flow to the end of the last flow's life, bit/s.
    pub throughput_bps: f64,
    /// Useful bytes that arrived, of all flows.
    pub delivered_bytes: u64,
    /// Messages whose content was not what was sent: must be zero.
    pub corrupt_messages: u64,
    /// Data packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Of them, retransmissions.
    pub packets_retransmitted: u64,
    /// Of them, lost to handover: sent to a place where the mobile host no longer was.
    pub packets_lost_to_handover: u64,
    /// Of them, lost to a full queue.
    pub packets_lost_to_queue: u64,
    /// Of them, lost otherwise (random loss, corruption, contention).
    pub packets_lost_otherwise: u64,
    /// Data packets that arrived and carried nothing new.
    pub duplicate_packets: u64,
    /// T3-rtx expiries of the data sender.
    pub timeouts: u64,
    /// Time from the first data of the first application with a size to the arrival of its last byte, seconds (003); nothing
    /// if it did not all arrive.
    pub transfer_time_s: Option<f64>,
    /// If it did not all arrive: from that first data to the end of the run, seconds, a lower bound of the time.
    pub unfinished_transfer_s: Option<f64>,
    /// What equations (3) to (5) of 003 give for it, within the file's end: see [`crate::theory`]. Nothing with other
    /// schemes.
    pub theory_s: Option<f64>,
    /// DATA chunks sent again because of missing reports; counted with the schemes of 003.
    pub fast_retransmits: u64,
    /// Of them, those of which an earlier copy arrived, by the ledger of what became of each.
    pub spurious_fast_retransmits: u64,
    /// Time for which an SCTP sender's cwnd had room for data that waited, and the peer's receive window had none,
    /// seconds.
    pub rbuf_blocked_s: f64,
    /// Bytes of SCTP that arrived, each counted once, by the receiver's link, or address if it has no name; of the flow
    /// that carried most.
    pub bytes_per_path: BTreeMap<String, u64>,
    /// SACKs that SCTP sent.
    pub sacks_sent: u64,
    /// What concurrent multipath transfer counted; with scheme `cmt`.
    pub multipath: Option<MultipathMetrics>,
    /// Every handoff of a mobility shim, in order: what `handovers` has too, as it was written before.
    pub handoffs: Vec<HandoffMetrics>,
    /// Every direction of a TCP connection or an SCTP association in which data was sent, and every application that never
    /// sent any: in the order of the scenario's applications, data before answers.
    pub flows: Vec<FlowMetrics>,
    /// What applications were to people whose kind says: how calls sounded.
    pub applications: Vec<ApplicationMetrics>,
    /// What the scenario has happen, in order of time.
    pub scenario_events: Vec<ScenarioEvent>,
    /// Populations: all hosts that an entry with `count` stands for, each, and all hosts that move, if they are several.
    pub populations: Vec<PopulationMetrics>,
    /// Every host that has a flow or moved.
    pub hosts: Vec<HostMetrics>,
    /// Signalling of mobility that hosts and routers sent.
    pub signalling: Signalling,
    /// What came to home agents, the location manager, and nodes that take time for packets.
    pub loads: Vec<NodeLoad>,
    /// What these figures do not say, or what they must not be taken for.
    pub warnings: Vec<Warning>,
    /// XXH3-128 over the event log, hexadecimal.
    pub event_log_hash: String,
    /// Events in the log.
    pub events: u64,
    /// Packet hops: links and radio channels crossed, by all packets.
    pub packet_hops: u64,
}

impl Metrics {
    /// Whether [`longest_gap_s`](Self::longest_gap_s) is a lower bound: the silence of a dead flow may become longer than it.
    #[must_use]
    pub fn longest_gap_is_bound(&self) -> bool {
        self.flows.iter().any(|flow| flow.end.silence_s.is_some())
    }
}

/// Counters of concurrent multipath transfer, of all hosts together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MultipathMetrics {
    /// SACKs that an other one with the same cumulative TSN ack overtook (003 section III-A, second problem).
    pub stale_sacks: u64,
    /// SACKs that one with a later cumulative TSN ack overtook.
    pub overtaken_sacks: u64,
    /// Round trips that ended with a SACK over another path (003 section III-A, third problem).
    pub ambiguous_round_trips: u64,
    /// Of them, those that were not taken for a measurement.
    pub round_trips_refused: u64,
    /// Times that a cwnd could grow while the cumulative TSN ack stood still (CUC).
    pub pseudo_cumulative_acks: u64,
    /// Missing reports that were not counted (SFR).
    pub missing_reports_withheld: u64,
    /// Fast retransmissions found lost in their turn (MFR).
    pub retransmissions_lost: u64,
    /// Chunks that a T3-rtx that expired left alone, because they were sent within the last round trip.
    pub chunks_spared: u64,
    /// Packets out of order whose SACK was delayed (DAC).
    pub sacks_delayed: u64,
    /// Paths left while others went on.
    pub paths_left: u64,
    /// Chunks in flight there that moved at once.
    pub chunks_moved: u64,
    /// Chunks sent again on another path because the peer's window waited for them (opportunistic retransmission).
    pub chunks_rescheduled: u64,
    /// Times that a path was penalised for that.
    pub penalties: u64,
    /// Times that a path with room got nothing because it had used up its part of a buffer (buffer splitting).
    pub shares_used_up: u64,
    /// Times that data waited for a faster path although a slower one had room (BLEST, ECF).
    pub waits: u64,
}

impl From<MultipathCounters> for MultipathMetrics {
    fn from(c: MultipathCounters) -> Self {
        Self {
            stale_sacks: c.stale_sacks,
            overtaken_sacks: c.overtaken_sacks,
            ambiguous_round_trips: c.ambiguous_round_trips,
            round_trips_refused: c.round_trips_refused,
            pseudo_cumulative_acks: c.pseudo_cumulative_acks,
            missing_reports_withheld: c.missing_reports_withheld,
            retransmissions_lost: c.retransmissions_lost,
            chunks_spared: c.chunks_spared,
            sacks_delayed: c.sacks_delayed,
            paths_left: c.paths_left,
            chunks_moved: c.chunks_moved,
            chunks_rescheduled: c.chunks_rescheduled,
            penalties: c.penalties,
            shares_used_up: c.shares_used_up,
            waits: c.waits,
        }
    }
}

/// Tables of a run, in columns of equal length each. Times are nanoseconds of simulated time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Trace {
    /// Names that `*_node` columns index.
    pub nodes: Vec<String>,
    /// Packets at the hosts, and every drop anywhere.
    pub packets: PacketTable,
    /// Congestion windows of the data sender, a row whenever one changed.
    pub windows: WindowTable,
    /// Signalling: link events, address events, the five steps.
    pub signalling: SignallingTable,
    /// Positions of moving nodes, sampled.
    pub positions: PositionTable,
    /// Radio cells.
    pub cells: Vec<CellReach>,
}

/// Where, or when, a cell is in reach.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CellReach {
    /// Name.
    pub name: String,
    /// Its middle, metres.
    pub x_m: f64,
    /// The same, across.
    pub y_m: f64,
    /// Radius, metres.
    pub radius_m: f64,
    /// Where it comes and goes by the clock, whatever the place: from when until when, seconds of the run.
    pub present_s: Option<Vec<(f64, f64)>>,
}

/// A row per packet event and chunk; packets without a DATA chunk have one row.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PacketTable {
    /// When.
    pub time_ns: Vec<u64>,
    /// Where: index into `Trace::nodes`.
    pub node: Vec<u16>,
    /// "sent", "received" or "dropped".
    pub action: Vec<&'static str>,
    /// Cause of a drop, else empty.
    pub cause: Vec<&'static str>,
    /// Interface of the node.
    pub interface: Vec<u8>,
    /// Packet number within the run, the same at every node.
    pub packet_id: Vec<u64>,
    /// Number of the association or connection, in the order in which they began; none of an INIT or of other packets.
    pub connection: Vec<Option<u32>>,
    /// Source address.
    pub source: Vec<std::net::Ipv6Addr>,
    /// Destination address.
    pub destination: Vec<std::net::Ipv6Addr>,
    /// Chunk or message name: "DATA", "SACK", "ASCONF", "RA" and so on; bundled names joined by "+".
    pub kind: Vec<&'static str>,
    /// TSN of a DATA chunk, or the cumulative TSN ack of a SACK, else `None`.
    pub tsn: Vec<Option<u32>>,
    /// IPv6 packet length, bytes.
    pub length_bytes: Vec<u32>,
    /// DATA that had been sent before.
    pub retransmission: Vec<bool>,
}

/// A row per change of a path.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WindowTable {
    /// When.
    pub time_ns: Vec<u64>,
    /// Sender.
    pub node: Vec<u16>,
    /// Number of the association or connection, as in [`PacketTable`].
    pub connection: Vec<u32>,
    /// Source address of the path.
    pub source: Vec<std::net::Ipv6Addr>,
    /// Destination address of the path.
    pub destination: Vec<std::net::Ipv6Addr>,
    /// cwnd, bytes.
    pub cwnd_bytes: Vec<u32>,
    /// ssthresh, bytes.
    pub ssthresh_bytes: Vec<u32>,
    /// Outstanding bytes.
    pub flightsize_bytes: Vec<u32>,
    /// RTO, nanoseconds.
    pub rto_ns: Vec<u64>,
    /// Primary path.
    pub primary: Vec<bool>,
}

/// A row per signalling event.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SignallingTable {
    /// When.
    pub time_ns: Vec<u64>,
    /// Host.
    pub node: Vec<u16>,
    /// SIGMA step 1 to 5; 0 for link-layer and other events.
    pub step: Vec<u8>,
    /// Event, such as "beacon-heard", "link-up", "address-ready", "add-sent", "add-acked", "decision", "missed".
    pub event: Vec<String>,
    /// Address or cell concerned, else empty.
    pub detail: Vec<String>,
}

/// Sampled positions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PositionTable {
    /// When.
    pub time_ns: Vec<u64>,
    /// Node.
    pub node: Vec<u16>,
    /// Metres.
    pub x_m: Vec<f64>,
    /// Metres.
    pub y_m: Vec<f64>,
}

impl Trace {
    /// Adds the rows of a later part of the same run.
    pub(crate) fn append(&mut self, rows: Self) {
        self.cells.extend(rows.cells);
        self.packets.append(rows.packets);
        self.windows.append(rows.windows);
        self.signalling.append(rows.signalling);
        self.positions.append(rows.positions);
    }
}

impl PacketTable {
    /// Adds later rows; every column is named, so that none is forgotten.
    fn append(&mut self, rows: Self) {
        let Self {
            time_ns,
            node,
            action,
            cause,
            interface,
            packet_id,
            connection,
            source,
            destination,
            kind,
            tsn,
            length_bytes,
            retransmission,
        } = rows;
        self.time_ns.extend(time_ns);
        self.node.extend(node);
        self.action.extend(action);
        self.cause.extend(cause);
        self.interface.extend(interface);
        self.packet_id.extend(packet_id);
        self.connection.extend(connection);
        self.source.extend(source);
        self.destination.extend(destination);
        self.kind.extend(kind);
        self.tsn.extend(tsn);
        self.length_bytes.extend(length_bytes);
        self.retransmission.extend(retransmission);
    }
}

impl WindowTable {
    /// Adds later rows; every column is named, so that none is forgotten.
    fn append(&mut self, rows: Self) {
        let Self {
            time_ns,
            node,
            connection,
            source,
            destination,
            cwnd_bytes,
            ssthresh_bytes,
            flightsize_bytes,
            rto_ns,
            primary,
        } = rows;
        self.time_ns.extend(time_ns);
        self.node.extend(node);
        self.connection.extend(connection);
        self.source.extend(source);
        self.destination.extend(destination);
        self.cwnd_bytes.extend(cwnd_bytes);
        self.ssthresh_bytes.extend(ssthresh_bytes);
        self.flightsize_bytes.extend(flightsize_bytes);
        self.rto_ns.extend(rto_ns);
        self.primary.extend(primary);
    }
}

impl SignallingTable {
    /// Adds later rows; every column is named, so that none is forgotten.
    fn append(&mut self, rows: Self) {
        let Self {
            time_ns,
            node,
            step,
            event,
            detail,
        } = rows;
        self.time_ns.extend(time_ns);
        self.node.extend(node);
        self.step.extend(step);
        self.event.extend(event);
        self.detail.extend(detail);
    }
}

impl PositionTable {
    /// Adds later rows; every column is named, so that none is forgotten.
    fn append(&mut self, rows: Self) {
        let Self {
            time_ns,
            node,
            x_m,
            y_m,
        } = rows;
        self.time_ns.extend(time_ns);
        self.node.extend(node);
        self.x_m.extend(x_m);
        self.y_m.extend(y_m);
    }
}
