//! Handover metrics: the same code for simulated and captured packets.

use core::net::Ipv6Addr;
use serde::Serialize;

/// One handover, as the data shows it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Handover {
    /// When the first data segment arrived over the new path, seconds.
    pub time: f64,
    /// Address of the old path.
    pub from: Ipv6Addr,
    /// Address of the new path.
    pub to: Ipv6Addr,
    /// Last data segment received over the old path to the first received over the new one, seconds (000 section
    /// VI-A). Negative if the old path was still draining when the new one began.
    pub latency_s: f64,
    /// Longest gap in received data around the handover, seconds.
    pub interruption_s: f64,
    /// Data packets lost to this handover.
    pub lost_packets: u64,
}
