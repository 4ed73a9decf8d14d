//! How long a transfer took, and by which way it came.

use crate::build;
use crate::network::{Network, Node};
use crate::recorder::FlowMetrics;
use crate::scenario::model::ScenarioFile;
use core::net::Ipv6Addr;
use segue_proto::{Duration, Instant};
use std::collections::BTreeMap;

/// When the first application with a size begins to send: when its first data leaves, where that is followed, or else when it
/// starts.
pub(crate) fn begin(s: &ScenarioFile, flows: &[FlowMetrics]) -> Option<Duration> {
    let application = s.application.iter().find(|a| a.size.is_some())?;
    let own = |f: &&FlowMetrics| f.from == application.from && f.to == application.to;
    let sent = flows.iter().find(own).map(|f| Duration::from_secs_f64(f.begin_s));
    Some(sent.unwrap_or(application.start))
}

/// From `begin` to the arrival of the last byte of the first application with a size, seconds; nothing if it did not all
/// arrive.
pub(crate) fn time_s(s: &ScenarioFile, network: &Network, begin: Option<Duration>) -> Option<f64> {
    let application = s.application.iter().find(|a| a.size.is_some())?;
    let size = application.size?.bytes();
    let number = s.host.number(&application.to)?;
    let Node::Host(receiver) = network.nodes.get(number)? else {
        return None;
    };
    let whole = receiver
        .host
        .applications()
        .find(|stats| stats.bytes_received == size)?;
    Some(whole.last_received?.since(Instant::ZERO + begin?).as_secs_f64())
}

/// Of a transfer that has begun and whose last byte did not arrive: from `begin` to the end of the run, seconds. The kernel's
/// programs do not say what arrived.
pub(crate) fn unfinished_s(
    s: &ScenarioFile,
    network: &Network,
    begin: Option<Duration>,
    time_s: Option<f64>,
) -> Option<f64> {
    let sized = s.application.iter().find(|a| a.size.is_some())?;
    let is_told = network.kernels.is_none() && time_s.is_none() && s.host.number(&sized.to).is_some();
    let begun = Instant::ZERO + begin.filter(|_| is_told)?;
    (begun < network.end).then(|| network.end.since(begun).as_secs_f64())
}

/// Bytes by address, under the name of the link that has it.
pub(crate) fn by_link(s: &ScenarioFile, by_address: &[(Ipv6Addr, u64)]) -> BTreeMap<String, u64> {
    let named = |address: Ipv6Addr| {
        let link = build::link_of(s, address).and_then(|l| s.link[l].name.clone());
        link.unwrap_or_else(|| address.to_string())
    };
    by_address.iter().map(|&(a, bytes)| (named(a), bytes)).collect()
}
