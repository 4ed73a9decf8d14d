//! Schemes of others: what keeps connections alive is the kernel's or a program's, and its hosts are set up for it.
//!
//! | scheme | who has it | what is set up, and by whom it is kept |
//! |---|---|---|
//! | `mptcp`, `mptcp-delete` | kernel | endpoints of each host ([`mptcp`]): [`HostScheme`], in its `Host` |
//! | `wireguard` | wireguard-go or boringtun-cli | a tunnel between the ends of each application ([`wireguard`]): [`Tunnels`], for the length of a run |
//! | `quic` | aioquic | programs in the place of our own ([`quic`]), which find a new address by themselves |
//!
//! What is set up in a namespace goes with it.

mod mptcp;
mod quic;
mod wireguard;

pub(super) use wireguard::{Hello, Pair, Tunnels};

use super::host::device;
use mptcp::Endpoints;
use segue_proto::app::Transport;
use segue_proto::contract::LocalAddress;
use segue_sim::scenario::Scenario;
use segue_sim::scenario::model::ApplicationEntry;
use segue_sim::scenario::schemes::Scheme;
use std::net::Ipv6Addr;
use wireguard::TunnelEnd;

/// Schemes of others, as far as the lab has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Others {
    /// The kernel's Multipath TCP.
    Mptcp {
        /// Whether the path manager deletes the endpoint of a network that goes.
        deletes: bool,
    },
    /// A WireGuard tunnel.
    Wireguard,
    /// Programs over QUIC whose clients migrate.
    Quic,
}

impl Others {
    /// That of a scenario, if it is one.
    pub(super) fn of(scenario: &Scenario) -> Option<Self> {
        match scenario.file().scheme {
            Scheme::Mptcp => Some(Self::Mptcp { deletes: false }),
            Scheme::MptcpDelete => Some(Self::Mptcp { deletes: true }),
            Scheme::Wireguard => Some(Self::Wireguard),
            Scheme::Quic => Some(Self::Quic),
            _ => None,
        }
    }

    /// What it takes that is not there: the key of the scenario, and what was expected.
    pub(super) fn missing(self, scenario: &Scenario) -> Option<(String, String)> {
        let other = |(number, a): (usize, &ApplicationEntry)| {
            (a.transport == Transport::Sctp).then(|| format!("application[{number}].transport"))
        };
        if let Some(key) = scenario.file().application.iter().enumerate().find_map(other) {
            return Some((
                key,
                "the scheme is not for SCTP: expected \"tcp\" or \"udp\"".to_owned(),
            ));
        }
        match self {
            Self::Mptcp { .. } => mptcp::missing(scenario),
            Self::Wireguard => wireguard::missing().map(|why| ("scheme".to_owned(), why)),
            Self::Quic => quic::missing(scenario),
        }
    }

    /// Why it leaves an application out, if it does.
    pub(super) fn leaves_out(self, a: &ApplicationEntry) -> Option<&'static str> {
        match self {
            Self::Mptcp { .. } => (a.transport == Transport::Udp).then_some("MPTCP does not carry UDP"),
            Self::Wireguard | Self::Quic => None,
        }
    }

    /// A program of somebody's, made to use it.
    pub(super) fn wrapped(self, command: Vec<String>) -> Vec<String> {
        match self {
            Self::Mptcp { .. } => mptcp::wrapped(command),
            Self::Wireguard | Self::Quic => command,
        }
    }

    /// The program of a built-in application, and what it is told before its part, if it is not the one over the kernel's
    /// sockets.
    pub(super) fn program(self) -> Option<Vec<String>> {
        match self {
            Self::Mptcp { .. } | Self::Wireguard => None,
            Self::Quic => Some(quic::program()),
        }
    }

    /// What our own programs are told.
    pub(super) fn words(self, a: &ApplicationEntry) -> Option<&'static str> {
        match self {
            Self::Mptcp { .. } => (a.transport == Transport::Tcp).then_some("--mptcp"),
            Self::Wireguard | Self::Quic => None,
        }
    }

    /// The address that programs have for a host, if it is not the one that it has in the network.
    pub(super) fn address(self, host: u32) -> Option<Ipv6Addr> {
        match self {
            Self::Mptcp { .. } | Self::Quic => None,
            Self::Wireguard => Some(wireguard::inner(host)),
        }
    }
}

/// Whether a program is on the path.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// What a scheme of others has at one host as addresses come and go.
#[derive(Debug)]
pub(super) enum HostScheme {
    Mptcp(Endpoints),
    /// The end of a tunnel that runs as a program. The host is as plain ones are: an address goes with its network.
    Tunnel(TunnelEnd),
    /// Nothing: it is as plain ones are, and an address goes with its network.
    Plain,
}

impl HostScheme {
    /// `mtu`: of the host's own interfaces.
    pub(super) fn new(others: Others, host: u32, mtu: u32, congestion_control: &str) -> Self {
        match others {
            Others::Mptcp { deletes } => Self::Mptcp(Endpoints::new(deletes)),
            Others::Wireguard => Self::Tunnel(TunnelEnd::new(host, mtu, congestion_control)),
            Others::Quic => Self::Plain,
        }
    }

    /// Lines for ip(8) when the host is made.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Mptcp(_) => Endpoints::limits(),
            Self::Tunnel(_) | Self::Plain => Vec::new(),
        }
    }

    /// Lines for ip(8) as an address can be used, after it is there.
    pub(super) fn address_is_ready(&mut self, local: LocalAddress) -> String {
        match self {
            Self::Mptcp(endpoints) => endpoints.add(local.address, &device(local.interface.0)),
            Self::Plain => format!("rule del from {}\n", local.address),
            // the address of a socket is chosen for each packet: none is to be sent where its network has gone
            Self::Tunnel(end) => format!("rule del from {}\n{}", local.address, end.begin()),
        }
    }

    /// Who is to hear of the end of a tunnel here once there is an address.
    pub(super) fn begin_tunnel_by(&mut self, hellos: Vec<Hello>) {
        if let Self::Tunnel(end) = self {
            end.begin_by(hellos);
        }
    }

    /// Whether an address that is lost is the kernel's no longer: otherwise it stays, since what has begun with it is to go on
    /// trying, as it does when a link is lost that the kernel has no news of.
    pub(super) fn forgets_lost_addresses(&self) -> bool {
        matches!(self, Self::Tunnel(_) | Self::Plain)
    }

    /// Lines for ip(8) as one can no longer be, before its routes go.
    pub(super) fn address_is_lost(&mut self, local: LocalAddress) -> String {
        match self {
            Self::Mptcp(endpoints) => endpoints.remove(local.address),
            Self::Tunnel(_) | Self::Plain => String::new(),
        }
    }
}
