//! How long a transfer took, and by which way it came.

use crate::build;
use crate::network::{Network, Node};
use crate::scenario::model::ScenarioFile;
use core::net::Ipv6Addr;
use segue_proto::Instant;
use std::collections::BTreeMap;

/// From the start of the first application with a size to the arrival of its last byte, seconds; nothing if it did not all
/// arrive.
pub(crate) fn time_s(s: &ScenarioFile, network: &Network) -> Option<f64> {
    let application = s.application.iter().find(|a| a.size.is_some())?;
    let size = application.size?.bytes();
    let number = s.host.iter().position(|h| h.name == application.to)?;
    let Node::Host(receiver) = network.nodes.get(number)? else {
        return None;
    };
    let whole = receiver
        .host
        .applications()
        .find(|stats| stats.bytes_received == size)?;
    let begin = Instant::ZERO + application.start;
    Some(whole.last_received?.since(begin).as_secs_f64())
}

/// Bytes by address, under the name of the link that has it.
pub(crate) fn by_link(s: &ScenarioFile, by_address: &[(Ipv6Addr, u64)]) -> BTreeMap<String, u64> {
    let named = |address: Ipv6Addr| {
        let link = build::link_of(s, address).and_then(|l| s.link[l].name.clone());
        link.unwrap_or_else(|| address.to_string())
    };
    by_address.iter().map(|&(a, bytes)| (named(a), bytes)).collect()
}
