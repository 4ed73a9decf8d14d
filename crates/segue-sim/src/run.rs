//! Runs a scenario.

use crate::build;
use crate::network::{Network, Node};
use crate::output::{Metrics, RunOptions, RunOutput};
use crate::recorder::FlowMetrics;
use crate::recorder::report::{Report, report};
use crate::scenario::Scenario;
use crate::scenario::events::Happening;
use crate::scenario::schemes::Scheme;
use crate::sink::{Memory, Sink, SinkError};
use crate::{population, quality, realtime, theory, transfer, warnings};
use segue_proto::app::Transport;
use segue_proto::sctp::MultipathCounters;
use std::sync::atomic::AtomicBool;

/// Why a scenario that was read cannot be run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunError {
    /// A host cannot be made from its configuration.
    #[error(transparent)]
    Host(#[from] segue_proto::host::HostError),
    /// Its scheme is the kernel's or a program's.
    #[error(
        "{scenario}: scheme: {scheme} is of the kernel or of a program, and has no model: expected `segue lab run`, or another scheme"
    )]
    NoModel {
        /// Name of the scenario.
        scenario: String,
        /// Its scheme, as scenarios have it.
        scheme: String,
    },
    /// Its scheme is SCTP's, and its applications are all over TCP, which only proxies in the lab carry over it.
    #[error(
        "{scenario}: scheme: {scheme} carries TCP in `segue lab run` alone: expected an [[application]] with transport = \"sctp\""
    )]
    NoProxy {
        /// Name of the scenario.
        scenario: String,
        /// Its scheme, as scenarios have it.
        scheme: String,
    },
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// What it records could not be taken.
    #[error(transparent)]
    Sink(#[from] SinkError),
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
    let mut memory = Memory::default();
    let output = run_into(scenario, options, cancel, &mut memory)?;
    Ok(RunOutput {
        trace: memory.trace,
        captures: memory.captures,
        ..output
    })
}

/// Runs a scenario to its end, or until `cancel` is set. Tables and captures go to `sink` meanwhile; the output has none.
///
/// # Errors
/// [`RunError`].
pub fn run_into(
    scenario: &Scenario,
    options: RunOptions,
    cancel: Option<&AtomicBool>,
    sink: &mut dyn Sink,
) -> Result<RunOutput, RunError> {
    check_model(scenario)?;
    let seed = options.seed.unwrap_or(scenario.file().seed);
    let mut network = build::network(scenario, seed, &options)?;
    network.run(cancel, sink)?;
    Ok(conclude(scenario, seed, network)?)
}

/// Whether there is a model of what a scenario asks for: some is of real hosts alone.
///
/// # Errors
/// [`RunError::NoModel`], [`RunError::NoProxy`].
pub fn check_model(scenario: &Scenario) -> Result<(), RunError> {
    let file = scenario.file();
    let (name, scheme) = (scenario.name().to_owned(), file.scheme);
    let named = || toml::Value::try_from(scheme).map_or_else(|_| String::new(), |v| v.to_string());
    if scheme.is_of_others() {
        return Err(RunError::NoModel {
            scenario: name,
            scheme: named(),
        });
    }
    let over_sctp = file.application.iter().any(|a| a.transport == Transport::Sctp);
    if scheme == Scheme::Cmt && !over_sctp && !file.application.is_empty() {
        return Err(RunError::NoProxy {
            scenario: name,
            scheme: named(),
        });
    }
    Ok(())
}

pub(crate) fn conclude(scenario: &Scenario, seed: u64, mut network: Network) -> Result<RunOutput, SinkError> {
    network.recorder.connections.recall()?;
    let duration_s = scenario.file().duration.as_secs_f64();
    let (mut corrupt_messages, mut timeouts) = (0, 0);
    let (mut rwnd_blocked_ns, mut sacks_sent) = (0, 0);
    let mut multipath = MultipathCounters::default();
    for node in &network.nodes {
        let Node::Host(node) = node else { continue };
        for stats in (0..).map_while(|index| node.host.application(index)) {
            corrupt_messages += stats.messages_corrupt;
        }
        let sctp = node.host.endpoint().association_totals();
        timeouts += sctp.t3_expiries;
        rwnd_blocked_ns += sctp.rwnd_blocked_ns;
        sacks_sent += sctp.sacks_sent;
        multipath.add(&sctp.multipath);
        let connections = node.host.tcp().into_iter().flat_map(|t| t.connections());
        timeouts += connections
            .map(|(_, c)| c.counters().recovery.timeouts)
            .sum::<u64>();
    }
    let (event_log_hash, events, packet_hops) = network.recorder.totals();
    let signalling = core::mem::take(&mut network.recorder.signalling);
    let names: Vec<String> = scenario.node_names();
    let loads = network.loads(&names);
    let file = scenario.file();
    let Report {
        mut flows,
        carried,
        mut handovers,
        handoffs,
        bytes_by_address,
    } = {
        let applications = build::flows_of(file, &network);
        report(
            &mut network.recorder.connections,
            &applications,
            &names,
            network.end,
        )
    };
    let beside = if network.kernels.is_some() {
        realtime::beside(&flows)
    } else {
        Vec::new()
    };
    handovers.retain(|h| h.flow.is_none_or(|flow| !beside.contains(&flow)));
    for flow in flows.iter_mut().filter(|flow| beside.contains(&flow.id)) {
        flow.around_events = None;
    }
    let applications = quality::of_applications(file, &network, &carried, &flows, &handovers);
    let waited_for = |f: &&FlowMetrics| !beside.contains(&f.id);
    let mobile = file.mobile.iter().map(|m| m.host.as_str()).collect();
    let hosts = population::hosts(&names, &handovers, &flows, &mobile);
    let populations = population::populations(&population::Source {
        file,
        handovers: &handovers,
        flows: &flows,
        hosts: &hosts,
        mobile: &mobile,
        networks: network.recorder.networks(),
        end: network.end,
    });
    let of_all = |count: fn(&FlowMetrics) -> u64| flows.iter().map(count).sum::<u64>();
    let begin = transfer::begin(file, &flows);
    let transfer_time_s = transfer::time_s(file, &network, begin);
    let unfinished_transfer_s = transfer::unfinished_s(file, &network, begin, transfer_time_s);
    let warnings = warnings::of_run(scenario, &network);
    let concurrent = file.scheme == Scheme::Cmt;
    let packets_sent = of_all(|f| f.counts.packets_sent);
    let lost_to_handover = of_all(|f| f.counts.lost_to_handover);
    let metrics = Metrics {
        scenario: scenario.name().to_owned(),
        seed,
        duration_s,
        handover_latency_s: population::latency(&handovers),
        interruption_s: population::interruption(&handovers, &flows, &mobile),
        longest_gap_s: population::longest_gap_s(flows.iter().filter(waited_for)),
        loss_rate: lost_to_handover as f64 / packets_sent.max(1) as f64,
        throughput_bps: population::throughput_bps(&flows),
        delivered_bytes: of_all(|f| f.transferred_bytes),
        corrupt_messages,
        packets_sent,
        packets_retransmitted: of_all(|f| f.counts.retransmissions),
        packets_lost_to_handover: lost_to_handover,
        packets_lost_to_queue: of_all(|f| f.counts.lost_to_queue),
        packets_lost_otherwise: of_all(|f| f.counts.lost_otherwise),
        duplicate_packets: of_all(|f| f.duplicate_packets),
        timeouts,
        transfer_time_s,
        unfinished_transfer_s,
        theory_s: begin.and_then(|begin| theory::transfer_time_s(file, begin)),
        fast_retransmits: of_all(|f| f.counts.fast_retransmissions),
        spurious_fast_retransmits: of_all(|f| f.counts.spurious_fast_retransmissions),
        rbuf_blocked_s: rwnd_blocked_ns as f64 / 1e9,
        bytes_per_path: transfer::by_link(file, &bytes_by_address),
        sacks_sent,
        multipath: concurrent.then(|| multipath.into()),
        hosts,
        populations,
        handovers,
        handoffs,
        flows,
        applications,
        scenario_events: file.happenings.iter().map(Happening::report).collect(),
        signalling,
        loads,
        warnings,
        event_log_hash,
        events,
        packet_hops,
    };
    Ok(RunOutput {
        metrics,
        trace: None,
        captures: Vec::new(),
        scenario_toml: scenario.to_toml(),
    })
}

#[cfg(test)]
mod tests;
