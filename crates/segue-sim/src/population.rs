//! What is said of all handovers, of each host, and of populations: made from the table of handovers and the table of flows,
//! and, of populations, from the networks that their hosts were in.

mod distribution;
mod groups;

use crate::recorder::FlowMetrics;
use segue_capture::record::{FlowState, HandoverRecord};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

pub use distribution::Distribution;
use distribution::Ordered;
pub use groups::PopulationMetrics;
pub(crate) use groups::{Source, populations};

/// Which of a set of values was the greatest.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Worst {
    /// The host.
    pub host: String,
    /// Number of the flow.
    pub flow: Option<u64>,
    /// When, seconds of simulated time.
    pub time: f64,
}

/// Distribution of a set of values, in their unit.
///
/// Of a lower bound only that is known that the value is no less. The value at a place among the sorted ones is so itself a
/// lower bound if it is as great as the least of those bounds, or greater: what stands before that one stays there, and the
/// rest may move. A median between two values is one if the greater of them is.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// 95th percentile: the smallest value that at least 95 % of them do not exceed.
    pub p95: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// How many.
    pub count: u64,
    /// How many of them are lower bounds.
    pub censored: u64,
    /// Whether `median` is a lower bound.
    pub median_censored: bool,
    /// Whether `p95` is.
    pub p95_censored: bool,
    /// Whether `min` is.
    pub min_censored: bool,
    /// Whether `max` is.
    pub max_censored: bool,
    /// Which is the largest.
    pub worst: Worst,
}

/// A value, of whom, and whether it is a lower bound.
pub(crate) struct Sample {
    pub value: f64,
    pub censored: bool,
    pub of: Worst,
}

impl Spread {
    pub(crate) fn of(samples: impl IntoIterator<Item = Sample>) -> Option<Self> {
        let samples: Vec<Sample> = samples.into_iter().collect();
        // of equals the first is the worst
        let worst = samples
            .iter()
            .max_by(|a, b| a.value.total_cmp(&b.value).then(b.of.time.total_cmp(&a.of.time)))?;
        let ordered = Ordered::of(samples.iter().map(|s| (s.value, s.censored)));
        Some(Self {
            median: ordered.median(),
            median_censored: ordered.median_is_bound(),
            p95: ordered.percentile(95),
            p95_censored: ordered.is_bound(ordered.percentile(95)),
            min_censored: ordered.is_bound(ordered.percentile(0)),
            max_censored: ordered.is_bound(ordered.percentile(100)),
            min: ordered.percentile(0),
            max: ordered.percentile(100),
            count: ordered.count(),
            censored: ordered.bounds(),
            worst: worst.of.clone(),
        })
    }
}

/// One host of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HostMetrics {
    /// Its name.
    pub host: String,
    /// Flows that it sends or receives.
    pub flows: u64,
    /// Of them, those that never came back.
    pub dead_flows: u64,
    /// Handovers that it made, a flow's each.
    pub handovers: u64,
    /// Interruptions by them, and outages of its flows that no handover accounts for, seconds.
    pub interruption_s: Option<Spread>,
    /// Longest time without new data of any flow of its, seconds.
    pub longest_gap_s: f64,
    /// Bytes that arrived in its flows, each counted once.
    pub delivered_bytes: u64,
    /// Those, in bits, by the time from their first data to the end of the last of them, bit/s.
    pub throughput_bps: f64,
}

/// Latencies of all handovers that have one.
pub(crate) fn latency(handovers: &[HandoverRecord]) -> Option<Spread> {
    let sample = |h: &HandoverRecord| {
        Some(Sample {
            value: h.latency_s?,
            censored: false,
            of: worst(h),
        })
    };
    Spread::of(handovers.iter().filter_map(sample))
}

/// Interruptions by handovers, and outages that none of them accounts for. An outage is that of the flow's end in `mobile`.
pub(crate) fn interruption<'a>(
    handovers: impl IntoIterator<Item = &'a HandoverRecord>,
    flows: impl IntoIterator<Item = &'a FlowMetrics>,
    mobile: &BTreeSet<&str>,
) -> Option<Spread> {
    let moved = handovers.into_iter().filter_map(interruption_by);
    let went_without = flows.into_iter().flat_map(|flow| outages_of(flow, mobile));
    Spread::of(moved.chain(went_without))
}

/// The interruption by a handover, if it is known.
fn interruption_by(handover: &HandoverRecord) -> Option<Sample> {
    Some(Sample {
        value: handover.interruption_s?,
        censored: handover.censored,
        of: worst(handover),
    })
}

/// The outages of a flow that no handover accounts for.
fn outages_of(flow: &FlowMetrics, mobile: &BTreeSet<&str>) -> impl Iterator<Item = Sample> {
    let host = if flow.to.is_empty() || mobile.contains(flow.from.as_str()) {
        &flow.from
    } else {
        &flow.to
    };
    flow.end.outages.iter().map(move |outage| Sample {
        value: outage.duration_s,
        censored: outage.censored,
        of: Worst {
            host: host.clone(),
            flow: Some(flow.id),
            time: outage.since_s,
        },
    })
}

/// The longest time without new data, of any flow, seconds.
pub(crate) fn longest_gap_s<'a>(flows: impl IntoIterator<Item = &'a FlowMetrics>) -> f64 {
    flows.into_iter().map(|f| f.end.longest_gap_s).fold(0.0, f64::max)
}

/// Bits that arrived, by the time from the first data of any of these flows to the end of the last, bit/s.
pub(crate) fn throughput_bps<'a>(flows: impl IntoIterator<Item = &'a FlowMetrics>) -> f64 {
    let (mut begin_s, mut end_s, mut bytes) = (f64::INFINITY, f64::NEG_INFINITY, 0);
    for flow in flows {
        // an application that was never served has begun nothing, though it waits to the end
        if flow.counts.packets_sent > 0 {
            begin_s = begin_s.min(flow.begin_s);
        }
        end_s = end_s.max(flow.end_s);
        bytes += flow.transferred_bytes;
    }
    if end_s > begin_s {
        bytes as f64 * 8.0 / (end_s - begin_s)
    } else {
        0.0
    }
}

/// Every host that has a flow or moved, in the order of `names`.
pub(crate) fn hosts(
    names: &[String],
    handovers: &[HandoverRecord],
    flows: &[FlowMetrics],
    mobile: &BTreeSet<&str>,
) -> Vec<HostMetrics> {
    let mut all: BTreeMap<&str, (Vec<&FlowMetrics>, Vec<&HandoverRecord>)> = BTreeMap::new();
    for flow in flows {
        all.entry(&flow.from).or_default().0.push(flow);
        if flow.to != flow.from {
            all.entry(&flow.to).or_default().0.push(flow);
        }
    }
    for handover in handovers {
        all.entry(&handover.host).or_default().1.push(handover);
    }
    let host = |name: &String| {
        let (flows, handovers) = all.get(name.as_str())?;
        Some(HostMetrics {
            host: name.clone(),
            flows: flows.len() as u64,
            dead_flows: flows.iter().filter(|f| f.end.state == FlowState::Dead).count() as u64,
            handovers: handovers.len() as u64,
            interruption_s: interruption(handovers.iter().copied(), flows.iter().copied(), mobile),
            longest_gap_s: longest_gap_s(flows.iter().copied()),
            delivered_bytes: flows.iter().map(|f| f.transferred_bytes).sum(),
            throughput_bps: throughput_bps(flows.iter().copied()),
        })
    };
    names.iter().filter_map(host).collect()
}

fn worst(h: &HandoverRecord) -> Worst {
    Worst {
        host: h.host.clone(),
        flow: h.flow,
        time: h.time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        Spread::of(values.into_iter().enumerate().map(|(n, value)| Sample {
            value,
            censored: value > 90.0,
            of: Worst {
                host: format!("host {n}"),
                flow: Some(n as u64),
                time: n as f64,
            },
        }))
    }

    #[test]
    fn a_spread_is_of_values_that_were_seen() {
        assert_eq!(samples([]), None);
        let one = samples([3.0]).unwrap();
        assert_eq!((one.median, one.p95, one.min, one.max), (3.0, 3.0, 3.0, 3.0));
        let hundred = samples((1..=100).rev().map(f64::from)).unwrap();
        assert_eq!((hundred.median, hundred.p95), (50.5, 95.0));
        assert_eq!((hundred.count, hundred.censored), (100, 10));
        assert_eq!((hundred.max, hundred.worst.flow), (100.0, Some(0)));
        let few = samples([4.0, 1.0, 4.0]).unwrap();
        assert_eq!((few.p95, few.worst.time), (4.0, 0.0));
    }
}
