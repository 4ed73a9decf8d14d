//! What flows and handovers are called in a report.

use super::decode::Address;
use super::flows::finished::Finished;
use super::flows::paths::Way;
use super::model::{Direction, HandoverKind, Mobility, Protocol};
use crate::record::Layer;

/// The layer that moves a flow so.
pub(super) const fn layer(kind: HandoverKind) -> Option<Layer> {
    match kind {
        HandoverKind::Address => None,
        HandoverKind::Interface => Some(Layer::Link),
        HandoverKind::CareOfAddress | HandoverKind::Locator => Some(Layer::Network),
        HandoverKind::SctpPath
        | HandoverKind::MptcpSubflow
        | HandoverKind::QuicPath
        | HandoverKind::WireguardEndpoint => Some(Layer::Transport),
    }
}

pub(super) const fn direction_of(number: usize) -> Direction {
    if number == 0 {
        Direction::Forward
    } else {
        Direction::Reverse
    }
}

/// Bits by second; zero where no time passed.
pub(super) fn rate(bytes: u64, ns: u64) -> f64 {
    if ns == 0 {
        0.0
    } else {
        bytes as f64 * 8.0 / (ns as f64 / 1e9)
    }
}

pub(super) fn mobility(flow: &Finished) -> Mobility {
    let marks = flow.marks;
    match flow.protocol {
        _ if marks.ilnp => Mobility::Ilnp,
        _ if marks.route_optimised => Mobility::Mip6Ro,
        _ if marks.tunnelled && !flow.is_v4 => Mobility::Mip6,
        Protocol::Mptcp | Protocol::Sctp | Protocol::Quic | Protocol::Wireguard
            if (0..2).any(|d| flow.paths.iter().filter(|p| p.way.direction == d).count() > 1) =>
        {
            Mobility::Transport
        }
        _ => Mobility::None,
    }
}

pub(super) fn kind(flow: &Finished, from: &Way, to: &Way) -> HandoverKind {
    let moved = |x: Address, y: Address| x != y && x.nid() == y.nid();
    match flow.protocol {
        Protocol::Sctp if flow.path_is_the_senders => HandoverKind::SctpPath,
        Protocol::Mptcp => HandoverKind::MptcpSubflow,
        Protocol::Quic => HandoverKind::QuicPath,
        Protocol::Wireguard => HandoverKind::WireguardEndpoint,
        Protocol::Tcp | Protocol::Udp | Protocol::Sctp
            if from.outer == to.outer && from.tunnelled == to.tunnelled =>
        {
            HandoverKind::Interface
        }
        Protocol::Tcp | Protocol::Udp | Protocol::Sctp
            if flow.marks.ilnp && (moved(from.outer.0, to.outer.0) || moved(from.outer.1, to.outer.1)) =>
        {
            HandoverKind::Locator
        }
        Protocol::Tcp | Protocol::Udp | Protocol::Sctp
            if flow.marks.tunnelled || flow.marks.route_optimised =>
        {
            HandoverKind::CareOfAddress
        }
        Protocol::Tcp | Protocol::Udp | Protocol::Sctp => HandoverKind::Address,
    }
}

pub(super) fn describe(path: &Way) -> String {
    let tunnel = if path.tunnelled { " in a tunnel" } else { "" };
    format!("{} to {}{tunnel}", path.outer.0.ip(), path.outer.1.ip())
}
