//! What a host is made of.

use super::LocationConfig;
use crate::address::Method;
use crate::{app, ilnp, mip6, sctp, sigma, tcp};
use core::net::Ipv6Addr;
use segue_wire::icmpv6::nd::LinkLayerAddress;

/// Configuration of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct HostConfig {
    /// Name: also names its random streams.
    pub name: String,
    /// Interfaces, numbered from 0 in this order.
    pub interfaces: Vec<InterfaceConfig>,
    /// SCTP.
    pub sctp: sctp::Config,
    /// TCP, where an application uses it.
    pub tcp: tcp::Config,
    /// Local port of SCTP, and of TCP and UDP where they listen.
    pub port: u16,
    /// Applications. At most one of them listens to each transport.
    pub applications: Vec<app::Config>,
    /// Mobility by SIGMA; nothing for a host that does not move, or moves without help.
    pub sigma: Option<sigma::Config>,
    /// The shim between IPv6 and the transport.
    pub shim: ShimConfig,
    /// Location management.
    pub location: LocationConfig,
}

/// Configuration of an interface.
#[derive(Clone, PartialEq, Debug)]
pub struct InterfaceConfig {
    /// Link-layer address: the interface identifier is formed from it.
    pub link_layer: LinkLayerAddress,
    /// How it comes by its addresses.
    pub addressing: Addressing,
}

/// How an interface comes by its addresses.
#[derive(Clone, PartialEq, Debug)]
pub enum Addressing {
    /// A wire that is always up, and these addresses.
    Static(Vec<Ipv6Addr>),
    /// A wire that comes and goes ([`LinkEvent`](crate::LinkEvent)), and these addresses while it is up.
    WhileUp(Vec<Ipv6Addr>),
    /// Whenever its link comes up.
    Acquire(Method),
}

/// The mobility shim under an unchanged transport: packets pass it between the transport and the interfaces in both
/// directions.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum ShimConfig {
    /// Packets pass as they are.
    #[default]
    None,
    /// A mobile node of Mobile IPv6, which is also a correspondent of others.
    MobileIpv6(Box<mip6::MobileNodeConfig>),
    /// A correspondent of Mobile IPv6 that does not move.
    MobileIpv6Correspondent(Box<mip6::CorrespondentConfig>),
    /// ILNPv6. All interfaces that acquire addresses form them with its node identifier.
    Ilnp(Box<ilnp::Config>),
}

impl ShimConfig {
    /// What is wrong with this configuration, if anything.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::None => Ok(()),
            Self::MobileIpv6(config) => config.check(),
            Self::MobileIpv6Correspondent(config) => config.check(),
            Self::Ilnp(config) => config.check(),
        }
    }
}

/// Why a host cannot be made from its configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostError {
    /// There is no interface.
    #[error("host {0}: expected at least one interface")]
    NoInterface(String),
    /// An interface without acquisition has no address either.
    #[error(
        "host {host}: interface {interface} has no address: expected an address or a method to acquire one"
    )]
    NoAddress {
        /// Host.
        host: String,
        /// Number of the interface.
        interface: usize,
    },
    /// An address that no interface can have.
    #[error("host {host}: {address} cannot be an interface's address: expected a unicast address, used once")]
    BadAddress {
        /// Host.
        host: String,
        /// The address.
        address: Ipv6Addr,
    },
    /// More than one application listens.
    #[error("host {0}: expected at most one application that listens to a transport")]
    TwoListeners(String),
    /// A part's own check failed.
    #[error("host {host}: {message}")]
    Part {
        /// Host.
        host: String,
        /// What the part said.
        message: String,
    },
}

impl HostConfig {
    /// What is wrong with this configuration, if anything.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn check(&self) -> Result<(), HostError> {
        let host = || self.name.clone();
        if self.interfaces.is_empty() {
            return Err(HostError::NoInterface(host()));
        }
        let part = |message| HostError::Part {
            host: host(),
            message,
        };
        if self.interfaces.len() > usize::from(u8::MAX) {
            return Err(part(format!(
                "{} interfaces: expected at most 255",
                self.interfaces.len()
            )));
        }
        let mut seen: Vec<Ipv6Addr> = Vec::new();
        for (number, interface) in self.interfaces.iter().enumerate() {
            let (Addressing::Static(addresses) | Addressing::WhileUp(addresses)) = &interface.addressing
            else {
                continue;
            };
            if addresses.is_empty() {
                return Err(HostError::NoAddress {
                    host: host(),
                    interface: number,
                });
            }
            for &address in addresses {
                let unfit = address.is_unspecified() || address.is_multicast() || address.is_loopback();
                if unfit || seen.contains(&address) {
                    return Err(HostError::BadAddress {
                        host: host(),
                        address,
                    });
                }
                seen.push(address);
            }
        }
        self.shim.check().map_err(part)?;
        for application in &self.applications {
            application.check().map_err(part)?;
            let by_name = matches!(application.role, app::Role::ConnectByName { .. });
            if by_name && self.location.client.is_none() {
                return Err(part(
                    "an application connects by name: expected a location client".to_owned(),
                ));
            }
        }
        for transport in [app::Transport::Sctp, app::Transport::Tcp, app::Transport::Udp] {
            let listens = |a: &&app::Config| a.role == app::Role::Listen && a.transport == transport;
            if self.applications.iter().filter(listens).count() > 1 {
                return Err(HostError::TwoListeners(host()));
            }
        }
        self.sigma
            .as_ref()
            .map_or(Ok(()), |sigma| sigma.check().map_err(part))
    }
}
