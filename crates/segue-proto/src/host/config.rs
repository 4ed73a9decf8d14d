//! What a host is made of.

use crate::address::Method;
use crate::{app, sctp, sigma};
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
    /// Local SCTP port.
    pub port: u16,
    /// Applications. At most one of them listens.
    pub applications: Vec<app::Config>,
    /// Mobility by SIGMA; nothing for a host that does not move, or moves without help.
    pub sigma: Option<sigma::Config>,
    /// The shim between IPv6 and the transport.
    pub shim: ShimConfig,
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
    /// Whenever its link comes up.
    Acquire(Method),
}

/// The mobility shim under an unchanged transport. `mip6` and `ilnp` will be its other variants: packets pass it
/// between the transport and the interfaces in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ShimConfig {
    /// Packets pass as they are.
    #[default]
    None,
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
    #[error("host {0}: expected at most one application that listens")]
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
