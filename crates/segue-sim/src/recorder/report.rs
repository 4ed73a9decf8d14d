//! What a run reports of its handoffs and connections.

use super::connections::{Connections, FlowReport, Handoff};
use super::ledger::{FlowCounts, Transport};
use super::vertical::HandoffParts;
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

/// One direction of a TCP connection; of an SCTP association, where the mobility scheme is a shim.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowMetrics {
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
    /// Bytes that arrived, each counted once.
    pub transferred_bytes: u64,
    /// Those, in bits, by the time from the first data to the end of the run, bit/s.
    pub throughput_bps: f64,
    /// Counts of its packets, by the ledger of their fates.
    #[serde(flatten)]
    pub counts: FlowCounts,
    /// Longest time without new data around a handoff, seconds; nothing without one.
    pub interruption_s: Option<f64>,
    /// Longest time between two arrivals of new data, handoff or not, seconds.
    pub longest_gap_s: f64,
    /// New bytes that arrived, by second of simulated time.
    pub received_bytes_by_second: Vec<u64>,
}

/// Handoffs and flows at the end of a run. Nodes are named by `names`.
pub(crate) fn report(
    connections: &mut Connections,
    names: &[String],
    end: Instant,
) -> (Vec<HandoffMetrics>, Vec<FlowMetrics>) {
    let reports = connections.finish(end);
    let handoffs = connections.handoffs().iter().enumerate();
    let handoffs = handoffs
        .map(|(number, h)| HandoffMetrics {
            parts: connections.vertical.parts(number, h.done.map(|(at, _)| at)),
            ..handoff(h, number, &reports, names)
        })
        .collect();
    let flows = reports.into_iter().map(|r| flow(r, names, end)).collect();
    (handoffs, flows)
}

fn handoff(h: &Handoff, number: usize, flows: &[FlowReport], names: &[String]) -> HandoffMetrics {
    let gap = |f: &FlowReport| f.interruptions.get(number).copied().flatten();
    let concerned = flows.iter().filter(|f| gap(f).is_some());
    let most = concerned.max_by_key(|f| f.transferred_bytes);
    HandoffMetrics {
        host: name(names, Some(h.node)),
        begin_s: seconds(h.begin),
        end_s: h.done.map(|(at, _)| seconds(at)),
        handoff_delay_s: h.done.map(|(_, delay)| delay.as_secs_f64()),
        from: h.from,
        to: h.to,
        failed: h.failed.clone(),
        interruption_s: most.and_then(gap).map(Duration::as_secs_f64),
        parts: None,
    }
}

fn flow(f: FlowReport, names: &[String], end: Instant) -> FlowMetrics {
    let lasted = end.since(f.begin).as_secs_f64();
    let longest = f.interruptions.iter().copied().flatten().max();
    FlowMetrics {
        from: name(names, Some(f.key.sender)),
        to: name(names, f.receiver),
        transport: f.key.transport,
        source_port: f.key.source_port,
        destination_port: f.key.destination_port,
        begin_s: seconds(f.begin),
        transferred_bytes: f.transferred_bytes,
        throughput_bps: f.transferred_bytes as f64 * 8.0 / lasted.max(1e-9),
        counts: f.counts,
        interruption_s: longest.map(Duration::as_secs_f64),
        longest_gap_s: f.longest_gap.as_secs_f64(),
        received_bytes_by_second: f.bins,
    }
}

fn name(names: &[String], node: Option<u32>) -> String {
    let own = node.and_then(|n| names.get(n as usize));
    own.cloned().unwrap_or_default()
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}
