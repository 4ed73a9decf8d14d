//! What a run reports of its handoffs and flows.

use super::connections::Connections;
use super::ends::ends;
use super::flow::Data;
use super::handoffs::Handoff;
use super::handovers::records;
use super::ledger::{FlowCounts, FlowKey, Transport};
use super::vertical::HandoffParts;
use segue_capture::record::{FlowEnd, FlowState, HandoverRecord};
use segue_proto::{Duration, Instant};
use serde::Serialize;
use std::net::Ipv6Addr;

/// A handoff of a mobility shim, from telling the first to being acknowledged by the last.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HandoffMetrics {
    /// The host.
    pub host: String,
    /// When the first message left that tells of the new address, seconds of simulated time.
    pub begin_s: f64,
    /// When the last was acknowledged; nothing if the handoff did not end.
    pub end_s: Option<f64>,
    /// The time in between (004 section 5.4): without layer 2, router discovery and duplicate address detection.
    pub handoff_delay_s: Option<f64>,
    /// Address used before, if there was one.
    pub from: Option<Ipv6Addr>,
    /// Address used after.
    pub to: Ipv6Addr,
    /// Those who could not be told.
    pub failed: Vec<Ipv6Addr>,
    /// Longest time without new data around it, in the flow that carried most of those that it concerns, seconds.
    pub interruption_s: Option<f64>,
    /// Its parts by 002 section 4.
    pub parts: Option<HandoffParts>,
}

/// One direction of a TCP connection or of an SCTP association.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowMetrics {
    /// Number, to which handovers refer.
    pub id: u64,
    /// Host that sends.
    pub from: String,
    /// Host that receives; empty if nothing arrived.
    pub to: String,
    /// Over what.
    pub transport: Transport,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// When its first data was sent, seconds of simulated time.
    pub begin_s: f64,
    /// When its life ended: with its last new byte if it is closed or idle, else with the run, seconds.
    pub end_s: f64,
    /// Bytes that arrived, each counted once.
    pub transferred_bytes: u64,
    /// Those, in bits, by the length of its life, bit/s.
    pub throughput_bps: f64,
    /// Counts of its packets, by the ledger of their fates.
    #[serde(flatten)]
    pub counts: FlowCounts,
    /// Packets that arrived and carried nothing new.
    pub duplicate_packets: u64,
    /// Longest time without new data around a handoff of a shim, seconds; nothing without one.
    pub interruption_s: Option<f64>,
    /// How it ended.
    #[serde(flatten)]
    pub end: FlowEnd,
    /// New bytes that arrived, by second of simulated time.
    pub received_bytes_by_second: Vec<u64>,
}

/// Flows, handovers and handoffs of a run.
pub(crate) struct Report {
    pub flows: Vec<FlowMetrics>,
    pub handovers: Vec<HandoverRecord>,
    pub handoffs: Vec<HandoffMetrics>,
    /// New bytes that arrived at each address, of the SCTP flow that carried most.
    pub bytes_by_address: Vec<(Ipv6Addr, u64)>,
}

/// What there is to report at the end of a run. Nodes are named by `names`.
pub(crate) fn report(connections: &mut Connections, names: &[String], end: Instant) -> Report {
    connections.finish(end);
    let c = &*connections;
    let ends = ends(&c.ledger, c.flows(), end);
    let handovers = records(c, &ends, names, end);
    let counts = c.ledger.counts();
    let all = c.ledger.flows().zip(c.flows()).zip(counts).zip(ends);
    let flows = (0..)
        .zip(all)
        .map(|(id, (((key, data), counts), own))| FlowMetrics {
            id,
            counts,
            ..flow(c, key, data, own, names, end)
        });
    let handoffs = (0u32..).zip(c.shims().all());
    let handoffs = handoffs.map(|(number, h)| HandoffMetrics {
        parts: c.vertical.parts(number as usize, h.done().map(|(at, _)| at)),
        ..handoff(h, number, c.flows(), names)
    });
    let sctp = c.ledger.flows().zip(c.flows());
    let sctp = sctp.filter(|(key, _)| key.transport == Transport::Sctp);
    let most = sctp.map(|(_, data)| data).max_by_key(|data| data.new_bytes());
    Report {
        flows: flows.collect(),
        handovers,
        handoffs: handoffs.collect(),
        bytes_by_address: most.map(Data::bytes_by_address).unwrap_or_default(),
    }
}

fn handoff(h: &Handoff, number: u32, flows: &[Data], names: &[String]) -> HandoffMetrics {
    let gap = |f: &&Data| f.gap_around(number, h.node);
    let concerned = flows.iter().filter(|f| gap(f).is_some());
    let most = concerned.max_by_key(|f| f.new_bytes());
    HandoffMetrics {
        host: name(names, Some(h.node)),
        begin_s: seconds(h.begin),
        end_s: h.done().map(|(at, _)| seconds(at)),
        handoff_delay_s: h.done().map(|(_, delay)| delay.as_secs_f64()),
        from: h.from,
        to: h.to,
        failed: h.failed.clone(),
        interruption_s: most.as_ref().and_then(gap).map(Duration::as_secs_f64),
        parts: None,
    }
}

fn flow(
    c: &Connections,
    key: &FlowKey,
    data: &Data,
    own: FlowEnd,
    names: &[String],
    end: Instant,
) -> FlowMetrics {
    let over = matches!(own.state, FlowState::Closed | FlowState::Idle);
    let until = data.last_new().filter(|_| over).unwrap_or(end);
    let lasted = until.since(data.begin()).as_secs_f64();
    let shims = (0u32..).zip(c.shims().all());
    let longest = shims.filter_map(|(n, h)| data.gap_around(n, h.node)).max();
    FlowMetrics {
        id: 0,
        from: name(names, Some(key.sender)),
        to: name(names, data.receiver()),
        transport: key.transport,
        source_port: key.source_port,
        destination_port: key.destination_port,
        begin_s: seconds(data.begin()),
        end_s: seconds(until),
        transferred_bytes: data.new_bytes(),
        throughput_bps: data.new_bytes() as f64 * 8.0 / lasted.max(1e-9),
        counts: FlowCounts::default(),
        duplicate_packets: data.duplicates(),
        interruption_s: longest.map(Duration::as_secs_f64),
        end: own,
        received_bytes_by_second: data.bins().to_vec(),
    }
}

fn name(names: &[String], node: Option<u32>) -> String {
    let own = node.and_then(|n| names.get(n as usize));
    own.cloned().unwrap_or_default()
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}
