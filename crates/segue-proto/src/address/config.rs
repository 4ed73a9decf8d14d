//! How a host comes by an address.

use crate::nd;
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// A method of address acquisition. In a scenario file: a table with `method` and the method's own keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "method", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Method {
    /// Stateless autoconfiguration with duplicate address detection (RFC 4862), as real packets.
    Slaac {
        /// Constants of router discovery and of duplicate address detection.
        #[serde(default)]
        nd: nd::HostConfig,
    },
    /// DHCPv6 (RFC 8415), as real packets.
    Dhcpv6 {
        /// Constants of router discovery and of duplicate address detection.
        #[serde(default)]
        nd: nd::HostConfig,
        /// Constants of DHCPv6.
        #[serde(default)]
        client: ClientConfig,
    },
    /// The SIGMA paper's "IP address resolution latency": the address (prefix advertised by the router, interface
    /// identifier of the host) is usable exactly `resolution` after the first router advertisement heard over the
    /// link. No duplicate address detection takes place.
    Fixed {
        /// Time from the advertisement to the usable address.
        #[serde(rename = "resolution")]
        latency: Duration,
        /// Whether the host solicits an advertisement when its link comes up.
        #[serde(default)]
        solicit: bool,
        /// Valid lifetime of the address; nothing is for ever.
        #[serde(default)]
        lifetime: Option<Duration>,
        /// Whether the address is kept when the link goes down, and usable as soon as an advertisement shows that the
        /// host is back on it.
        #[serde(default)]
        retain: bool,
    },
}

/// Client side of DHCPv6 (RFC 8415 section 7.6).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ClientConfig {
    /// Ask for an address in two messages instead of four (section 5.1).
    pub rapid_commit: bool,
    /// SOL_MAX_DELAY: the first SOLICIT waits for a random time up to this.
    pub sol_max_delay: Duration,
    /// SOL_TIMEOUT.
    pub sol_timeout: Duration,
    /// SOL_MAX_RT.
    pub sol_max_rt: Duration,
    /// REQ_TIMEOUT.
    pub req_timeout: Duration,
    /// REQ_MAX_RT.
    pub req_max_rt: Duration,
    /// REQ_MAX_RC.
    pub req_max_rc: u32,
    /// REN_TIMEOUT, and REB_TIMEOUT.
    pub ren_timeout: Duration,
    /// REN_MAX_RT, and REB_MAX_RT.
    pub ren_max_rt: Duration,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            rapid_commit: false,
            sol_max_delay: Duration::from_secs(1),
            sol_timeout: Duration::from_secs(1),
            sol_max_rt: Duration::from_secs(3600),
            req_timeout: Duration::from_secs(1),
            req_max_rt: Duration::from_secs(30),
            req_max_rc: 10,
            ren_timeout: Duration::from_secs(10),
            ren_max_rt: Duration::from_secs(600),
        }
    }
}

/// Server side of DHCPv6, as an access router runs it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Time between a message and its answer: what the server does with it.
    pub reply_delay: Duration,
    /// Allow the two-message exchange.
    pub rapid_commit: bool,
    /// Preference option (section 21.8); 255 makes clients take the first offer at once.
    pub preference: Option<u8>,
    /// Preferred lifetime of the addresses handed out.
    pub preferred_lifetime: Duration,
    /// Valid lifetime of the addresses handed out.
    pub valid_lifetime: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            reply_delay: Duration::ZERO,
            rapid_commit: false,
            preference: None,
            preferred_lifetime: Duration::from_secs(604_800),
            valid_lifetime: Duration::from_secs(2_592_000),
        }
    }
}
