//! Runs a scenario.

use crate::build;
use crate::network::{Network, Node};
use crate::output::{Metrics, RunOptions, RunOutput, Spread};
use crate::recorder::FlowMetrics;
use crate::recorder::ledger::FlowCounts;
use crate::recorder::report::report;
use crate::scenario::Scenario;
use crate::scenario::schemes::Scheme;
use crate::{theory, transfer};
use segue_proto::sctp::MultipathCounters;
use std::sync::atomic::AtomicBool;

/// Why a scenario that was read cannot be run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunError {
    /// A host cannot be made from its configuration.
    #[error(transparent)]
    Host(#[from] segue_proto::host::HostError),
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Runs a scenario to its end.
///
/// # Errors
/// [`RunError::Host`].
///
/// ```
/// let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bench/bulk.toml")).unwrap();
/// let scenario = segue_sim::Scenario::from_toml(&text, "bulk.toml", &[("duration".into(), "1 s".into())]).unwrap();
/// let output = segue_sim::run(&scenario, segue_sim::RunOptions::default()).unwrap();
/// assert!(output.metrics.throughput_bps > 1e6);
/// ```
pub fn run(scenario: &Scenario, options: RunOptions) -> Result<RunOutput, RunError> {
    run_until(scenario, options, None)
}

/// Runs a scenario to its end, or until `cancel` is set.
///
/// # Errors
/// [`RunError`].
pub fn run_with_cancel(
    scenario: &Scenario,
    options: RunOptions,
    cancel: &AtomicBool,
) -> Result<RunOutput, RunError> {
    run_until(scenario, options, Some(cancel))
}

fn run_until(
    scenario: &Scenario,
    options: RunOptions,
    cancel: Option<&AtomicBool>,
) -> Result<RunOutput, RunError> {
    let seed = options.seed.unwrap_or(scenario.file().seed);
    let mut network = build::network(scenario, seed, &options)?;
    if !network.run(cancel) {
        return Err(RunError::Cancelled);
    }
    Ok(conclude(scenario, seed, network))
}

fn conclude(scenario: &Scenario, seed: u64, mut network: Network) -> RunOutput {
    let duration_s = scenario.file().duration.as_secs_f64();
    let (mut delivered_bytes, mut corrupt_messages, mut timeouts) = (0, 0, 0);
    let (mut rwnd_blocked_ns, mut sacks_sent) = (0, 0);
    let mut multipath = MultipathCounters::default();
    for node in &network.nodes {
        let Node::Host(node) = node else { continue };
        for stats in (0..).map_while(|index| node.host.application(index)) {
            delivered_bytes += stats.bytes_received;
            corrupt_messages += stats.messages_corrupt;
        }
        let sctp = node.host.endpoint().association_totals();
        timeouts += sctp.t3_expiries;
        rwnd_blocked_ns += sctp.rwnd_blocked_ns;
        sacks_sent += sctp.sacks_sent;
        multipath.add(&sctp.multipath);
        let connections = node.host.tcp().into_iter().flat_map(|t| t.connections());
        timeouts += connections.map(|(_, c)| c.counters().timeouts).sum::<u64>();
    }
    let (event_log_hash, events, packet_hops) = network.recorder.totals();
    let signalling = core::mem::take(&mut network.recorder.signalling);
    let names: Vec<String> = scenario.node_names();
    let tcp = network.recorder.tcp_totals();
    let file = scenario.file();
    let (handoffs, tcp_flows) = report(&mut network.recorder.connections, &names, network.end);
    let of_all = |count: fn(&FlowCounts) -> u64| tcp_flows.iter().map(|f| count(&f.counts)).sum::<u64>();
    let fast_retransmits = of_all(|c| c.fast_retransmissions);
    let spurious_fast_retransmits = of_all(|c| c.spurious_fast_retransmissions);
    let begin = transfer::begin(file, &tcp_flows);
    let transfer_time_s = transfer::time_s(file, &network, begin);
    let (flows, trace, captures) = network.recorder.finish();
    let measured = flows.finish();
    let bytes_per_path = transfer::by_link(file, &measured.bytes_by_path);
    let concurrent = file.scheme == Scheme::Cmt;
    let handovers = measured.handovers;
    let mut totals = measured.totals;
    totals.packets_sent += tcp.packets_sent;
    totals.packets_retransmitted += tcp.packets_retransmitted;
    totals.lost_to_handover += tcp.lost_to_handover;
    totals.lost_to_queue += tcp.lost_to_queue;
    totals.lost_otherwise += tcp.lost_otherwise;
    totals.duplicate_packets += tcp.duplicate_packets;
    let metrics = Metrics {
        scenario: scenario.name().to_owned(),
        seed,
        duration_s,
        handover_latency_s: Spread::of(handovers.iter().map(|h| h.latency_s)),
        interruption_s: Spread::of(handovers.iter().map(|h| h.interruption_s)),
        handovers,
        longest_gap_s: longest_gap_s(totals.longest_gap_ns, &tcp_flows),
        loss_rate: totals.handover_loss_rate(),
        throughput_bps: delivered_bytes as f64 * 8.0 / duration_s,
        delivered_bytes,
        corrupt_messages,
        packets_sent: totals.packets_sent,
        packets_retransmitted: totals.packets_retransmitted,
        packets_lost_to_handover: totals.lost_to_handover,
        packets_lost_to_queue: totals.lost_to_queue,
        packets_lost_otherwise: totals.lost_otherwise,
        duplicate_packets: totals.duplicate_packets,
        timeouts,
        transfer_time_s,
        theory_s: begin.and_then(|begin| theory::transfer_time_s(file, begin)),
        fast_retransmits,
        spurious_fast_retransmits,
        rbuf_blocked_s: rwnd_blocked_ns as f64 / 1e9,
        bytes_per_path,
        sacks_sent,
        multipath: concurrent.then(|| multipath.into()),
        handoffs,
        flows: tcp_flows,
        signalling,
        warnings: Vec::new(),
        event_log_hash,
        events,
        packet_hops,
    };
    RunOutput {
        metrics,
        trace,
        captures,
        scenario_toml: scenario.to_toml(),
    }
}

/// Of the flow that carried most: SCTP's, or else TCP's.
fn longest_gap_s(sctp_ns: u64, tcp_flows: &[FlowMetrics]) -> f64 {
    let tcp = tcp_flows.iter().max_by_key(|f| f.transferred_bytes);
    match tcp {
        Some(flow) if sctp_ns == 0 => flow.longest_gap_s,
        _ => sctp_ns as f64 / 1e9,
    }
}
