//! What is said of a population: of all hosts that an entry with `count` stands for, and of all that move.

use super::distribution::{Distribution, fairness};
use super::{HostMetrics, Sample, interruption_by, outages_of};
use crate::recorder::FlowMetrics;
use crate::recorder::networks::{Networks, Roaming};
use crate::scenario::model::ScenarioFile;
use segue_capture::record::{FlowState, HandoverRecord};
use segue_proto::Instant;
use serde::Serialize;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// A population of hosts.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PopulationMetrics {
    /// Its name: `population` of its hosts. "mobile hosts" are all that move, of whatever population.
    pub name: String,
    /// Hosts.
    pub hosts: u64,
    /// Of them, those that move.
    pub mobile_hosts: u64,
    /// Flows that they send or receive.
    pub flows: u64,
    /// Of them, those that never came back.
    pub dead_flows: u64,
    /// Interruptions by handovers of these hosts, of each flow's, and outages of their flows that no handover accounts for,
    /// seconds.
    pub interruption_s: Option<Distribution>,
    /// Handover latencies, of each flow's, seconds (000 section VI-A).
    pub handover_latency_s: Option<Distribution>,
    /// Throughputs of those that have a flow, as [`HostMetrics`] has them, bit/s.
    pub goodput_bps: Option<Distribution>,
    /// Jain's index of these (Jain, Chiu and Hawe 1984, DEC TR-301, equation 1): 1 if all have the same.
    pub fairness: Option<f64>,
    /// Handovers that were completed, each counted once, whatever flows the host has: see
    /// [`crate::recorder::networks::Networks`].
    pub handovers: u64,
    /// Those, by the number of hosts that move and by the minutes of the run.
    pub handovers_per_host_and_minute: f64,
    /// Of them, those back to the source cell within the minimum time of stay (3GPP TR 36.839 section 5.2.2, definition 5).
    pub ping_pongs: u64,
    /// Ping-pongs by completed handovers (definition 6 there); nothing without handovers.
    pub ping_pong_rate: Option<f64>,
    /// Share of the run for which each of those that move had no path: was out of reach of the network that it had a link to,
    /// or had no link or no address.
    pub without_path_share: Option<Distribution>,
}

/// What populations are made from.
pub(crate) struct Source<'a> {
    pub file: &'a ScenarioFile,
    pub handovers: &'a [HandoverRecord],
    pub flows: &'a [FlowMetrics],
    pub hosts: &'a [HostMetrics],
    pub mobile: &'a BTreeSet<&'a str>,
    pub networks: &'a Networks,
    pub end: Instant,
}

const MOBILE_HOSTS: &str = "mobile hosts";

/// A population, by the numbers of its hosts.
struct Members {
    name: String,
    hosts: Vec<u32>,
}

/// What was gathered of one.
#[derive(Default)]
struct Gathered {
    interruptions: Vec<Sample>,
    latencies: Vec<f64>,
    goodputs: Vec<f64>,
    flows: u64,
    dead_flows: u64,
}

/// Every population, in the order of their first hosts, and then all hosts that move, if they are several and no population
/// is just these.
pub(crate) fn populations(source: &Source<'_>) -> Vec<PopulationMetrics> {
    let all = members(source);
    if all.is_empty() {
        return Vec::new();
    }
    // of each host, those that it is of
    let mut of: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); source.file.host.len()];
    for (number, members) in all.iter().enumerate() {
        for &host in &members.hosts {
            of[host as usize].push(number);
        }
    }
    let named = |name: &str| {
        source
            .file
            .host
            .number(name)
            .map_or(&[][..], |host| &of[host][..])
    };
    let mut gathered: Vec<Gathered> = all.iter().map(|_| Gathered::default()).collect();
    for handover in source.handovers {
        for &number in named(&handover.host) {
            gathered[number].interruptions.extend(interruption_by(handover));
            gathered[number].latencies.extend(handover.latency_s);
        }
    }
    for flow in source.flows {
        let ends = named(&flow.from).iter().chain(named(&flow.to));
        for number in ends.copied().collect::<BTreeSet<usize>>() {
            let own = &mut gathered[number];
            own.flows += 1;
            own.dead_flows += u64::from(flow.end.state == FlowState::Dead);
            own.interruptions.extend(outages_of(flow, source.mobile));
        }
    }
    for host in source.hosts.iter().filter(|host| host.flows > 0) {
        for &number in named(&host.host) {
            gathered[number].goodputs.push(host.throughput_bps);
        }
    }
    let each = all.into_iter().zip(gathered);
    each.map(|(members, gathered)| metrics(source, members, gathered))
        .collect()
}

fn members(source: &Source<'_>) -> Vec<Members> {
    let mut all: Vec<Members> = Vec::new();
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for (host, entry) in (0..).zip(source.file.host.iter()) {
        let Some(name) = &entry.population else { continue };
        let number = *numbers.entry(name).or_insert(all.len());
        if number == all.len() {
            all.push(Members {
                name: name.clone(),
                hosts: Vec::new(),
            });
        }
        all[number].hosts.push(host);
    }
    let moves = |host: &u32| {
        source
            .mobile
            .contains(source.file.host[*host as usize].name.as_str())
    };
    let mobile: Vec<u32> = (0..source.file.host.len() as u32).filter(moves).collect();
    if mobile.len() > 1 && !all.iter().any(|members| members.hosts == mobile) {
        all.push(Members {
            name: MOBILE_HOSTS.to_owned(),
            hosts: mobile,
        });
    }
    all
}

fn metrics(source: &Source<'_>, members: Members, gathered: Gathered) -> PopulationMetrics {
    let run = source.end.since(Instant::ZERO).as_secs_f64();
    let roaming = members
        .hosts
        .iter()
        .filter_map(|host| source.networks.roaming(*host, source.end));
    let roaming: Vec<Roaming> = roaming.collect();
    let mobile_hosts = roaming.len() as u64;
    let handovers: u64 = roaming.iter().map(|r| r.handovers).sum();
    let ping_pongs: u64 = roaming.iter().map(|r| r.ping_pongs).sum();
    let host_minutes = mobile_hosts as f64 * run / 60.0;
    let known = |value: f64| (value, false);
    PopulationMetrics {
        name: members.name,
        hosts: members.hosts.len() as u64,
        mobile_hosts,
        flows: gathered.flows,
        dead_flows: gathered.dead_flows,
        interruption_s: Distribution::of(gathered.interruptions.iter().map(|s| (s.value, s.censored))),
        handover_latency_s: Distribution::of(gathered.latencies.into_iter().map(known)),
        fairness: fairness(&gathered.goodputs),
        goodput_bps: Distribution::of(gathered.goodputs.into_iter().map(known)),
        handovers,
        handovers_per_host_and_minute: if host_minutes > 0.0 {
            handovers as f64 / host_minutes
        } else {
            0.0
        },
        ping_pongs,
        ping_pong_rate: (handovers > 0).then(|| ping_pongs as f64 / handovers as f64),
        without_path_share: Distribution::of(
            roaming.iter().map(|r| known(r.without_path.as_secs_f64() / run)),
        ),
    }
}
