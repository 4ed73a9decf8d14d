//! What can be set on Mobile IPv6, with the protocol constants of RFC 6275 section 12 and the variables of section 13.

use crate::time::Duration;
use crate::units::Bytes;
use core::fmt;
use core::net::Ipv6Addr;
use serde::{Deserialize, Serialize};

/// INITIAL_BINDACK_TIMEOUT (RFC 6275 section 12).
pub const INITIAL_BINDACK_TIMEOUT: Duration = Duration::from_secs(1);
/// InitialBindackTimeoutFirstReg (RFC 6275 section 13).
pub const INITIAL_BINDACK_TIMEOUT_FIRST_REG: Duration = Duration::from_millis(1500);
/// MAX_BINDACK_TIMEOUT (RFC 6275 section 12).
pub const MAX_BINDACK_TIMEOUT: Duration = Duration::from_secs(32);
/// MAX_DELETE_BCE_TIMEOUT (RFC 6275 section 12).
pub const MAX_DELETE_BCE_TIMEOUT: Duration = Duration::from_secs(10);
/// MAX_NONCE_LIFETIME (RFC 6275 section 12).
pub const MAX_NONCE_LIFETIME: Duration = Duration::from_secs(240);
/// MAX_TOKEN_LIFETIME (RFC 6275 section 12).
pub const MAX_TOKEN_LIFETIME: Duration = Duration::from_secs(210);
/// MAX_RR_BINDING_LIFETIME (RFC 6275 section 12).
pub const MAX_RR_BINDING_LIFETIME: Duration = Duration::from_secs(420);
/// Unit of the lifetimes of bindings (RFC 6275 section 6.1.7).
pub const LIFETIME_UNIT: Duration = Duration::from_secs(4);

/// What makes a mobile node hand off. Whatever is set, it takes the first address that it gets when it has none, and
/// moves to an interface that it prefers as soon as that has an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HandoffPolicy {
    /// When layer 2 reports the loss of the link in use, or its address is gone: Phoomikiattisak and Bhatti's "when the
    /// MN moves out of the previous network completely" (section 6.1).
    #[default]
    OnLinkLoss,
    /// When `lost_advertisements` router advertisements in a row did not come (RFC 6275 section 11.5.1); layer 2 is not
    /// listened to. MIPL's rule. On a link whose router does not say how often it advertises, nor `advertisement_interval`
    /// does, as `on-link-loss`.
    OnLostAdvertisements,
    /// As soon as there is an address from another router: eager. Also when the link in use is lost.
    OnNewRouter,
}

/// When correspondents are told of a new care-of address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Registration {
    /// When the home agent has acknowledged: the tests of return routability go by the tunnel, which it drops until then
    /// (RFC 6275 sections 11.6.1 and 11.7.2).
    #[default]
    AfterHome,
    /// At once, behind the Binding Update to the home agent: on a way that keeps packets in order, and with a home agent that
    /// takes no time, the tunnel is there when the first test comes through it (Cottingham and Vidales, section 4: "can be
    /// done simultaneously").
    Simultaneous,
}

/// What protects a home registration from replay (RFC 4285 section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReplayProtection {
    /// The sequence number of the Binding Update. The home agent keeps the last one beyond the binding's end.
    #[default]
    Sequence,
    /// A timestamp besides.
    Timestamp,
}

/// A mobility security association between mobile node and home agent (RFC 4285 section 5.1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SecurityAssociation {
    /// Mobility security parameter index, 256 or more.
    pub spi: u32,
    /// The shared key: the bytes of this text, 16 or more.
    pub key: String,
    /// Replay protection.
    #[serde(default)]
    pub replay_protection: ReplayProtection,
}

impl SecurityAssociation {
    /// An association whose sequence numbers protect from replay.
    #[must_use]
    pub fn new(spi: u32, key: &str) -> Self {
        Self {
            spi,
            key: key.to_owned(),
            replay_protection: ReplayProtection::Sequence,
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.spi < 256 {
            return Err(format!(
                "spi = {}: expected 256 or more, since those below are reserved (RFC 4285)",
                self.spi
            ));
        }
        if self.key.len() < 16 {
            return Err("key: expected 16 bytes or more (RFC 4285)".to_owned());
        }
        Ok(())
    }
}

/// The key stays out of logs.
impl fmt::Debug for SecurityAssociation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecurityAssociation")
            .field("spi", &self.spi)
            .field("replay_protection", &self.replay_protection)
            .finish_non_exhaustive()
    }
}

/// Configuration of a mobile node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MobileNodeConfig {
    /// Home address: the identity. Its first 64 bits are the home subnet prefix.
    pub home_address: Ipv6Addr,
    /// Address of the home agent.
    pub home_agent: Ipv6Addr,
    /// Authenticates home registrations.
    pub security: SecurityAssociation,
    /// Whether correspondents are told of the care-of address (section 11.7.2). Without, everything goes through the home
    /// agent.
    pub route_optimization: bool,
    /// What makes the node hand off.
    pub handoff: HandoffPolicy,
    /// `on-lost-advertisements`: this many in a row.
    pub lost_advertisements: u32,
    /// `on-lost-advertisements`: how often routers advertise that do not say so themselves (section 7.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advertisement_interval: Option<Duration>,
    /// Interfaces by their numbers, the preferred one first; those not named come last and are equal.
    pub interface_preference: Vec<u8>,
    /// Whether the way to where packets go is probed while they do, and another address used if there is one when nothing gets
    /// through the network of the one in use although it is up: by echo requests, which correspondents and the home
    /// agent have to answer.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub detect_silence: bool,
    /// When correspondents are told.
    #[serde(skip_serializing_if = "is_after_home")]
    pub registration: Registration,
    /// Lifetime asked for at the home agent.
    pub home_lifetime: Duration,
    /// Lifetime asked for at correspondents; at most 420 s are granted.
    pub correspondent_lifetime: Duration,
    /// First retransmission of a Binding Update, Home Test Init or Care-of Test Init.
    pub initial_bindack_timeout: Duration,
    /// The same for a registration that makes the home agent detect duplicates first.
    pub initial_bindack_timeout_first_reg: Duration,
    /// Longest time between retransmissions, each twice as long as the one before.
    pub max_bindack_timeout: Duration,
    /// Transmissions to a correspondent after which it is given up for `retry_after`, and reached through the home
    /// agent. The RFC lets them go on for ever; home registrations do.
    pub correspondent_attempts: u32,
    /// When a correspondent that was given up is tried again.
    pub retry_after: Duration,
    /// Whether correspondents are asked to acknowledge (a MAY of section 11.7.2).
    pub acknowledge_correspondents: bool,
    /// Use a home keygen token again while it is valid (section 5.2.5).
    pub reuse_home_keygen_token: bool,
    /// The node as a correspondent of other mobile nodes. Its `address` is the home address.
    pub correspondent: CorrespondentConfig,
}

fn is_after_home(registration: &Registration) -> bool {
    *registration == Registration::AfterHome
}

impl Default for MobileNodeConfig {
    fn default() -> Self {
        Self {
            home_address: Ipv6Addr::UNSPECIFIED,
            home_agent: Ipv6Addr::UNSPECIFIED,
            security: SecurityAssociation::new(256, ""),
            route_optimization: true,
            handoff: HandoffPolicy::default(),
            lost_advertisements: 2,
            advertisement_interval: None,
            interface_preference: Vec::new(),
            detect_silence: false,
            registration: Registration::default(),
            home_lifetime: Duration::from_secs(3600),
            correspondent_lifetime: MAX_RR_BINDING_LIFETIME,
            initial_bindack_timeout: INITIAL_BINDACK_TIMEOUT,
            initial_bindack_timeout_first_reg: INITIAL_BINDACK_TIMEOUT_FIRST_REG,
            max_bindack_timeout: MAX_BINDACK_TIMEOUT,
            correspondent_attempts: 4,
            retry_after: Duration::from_secs(60),
            acknowledge_correspondents: true,
            reuse_home_keygen_token: true,
            correspondent: CorrespondentConfig::default(),
        }
    }
}

impl MobileNodeConfig {
    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check(&self) -> Result<(), String> {
        check_unicast("home_address", self.home_address)?;
        check_unicast("home_agent", self.home_agent)?;
        self.security.check()?;
        if self.home_address == self.home_agent {
            return Err("home_agent: expected another address than home_address".to_owned());
        }
        if self.lost_advertisements == 0 {
            return Err("lost_advertisements: expected 1 or more".to_owned());
        }
        if self.correspondent_attempts == 0 {
            return Err("correspondent_attempts: expected 1 or more".to_owned());
        }
        for (key, value, least) in [
            ("home_lifetime", self.home_lifetime, LIFETIME_UNIT),
            (
                "correspondent_lifetime",
                self.correspondent_lifetime,
                LIFETIME_UNIT,
            ),
            (
                "initial_bindack_timeout",
                self.initial_bindack_timeout,
                Duration::from_millis(1),
            ),
            (
                "initial_bindack_timeout_first_reg",
                self.initial_bindack_timeout_first_reg,
                Duration::from_millis(1),
            ),
            (
                "max_bindack_timeout",
                self.max_bindack_timeout,
                self.initial_bindack_timeout,
            ),
        ] {
            if value < least {
                return Err(format!("{key} = {value}: expected at least {least}"));
            }
        }
        if self.advertisement_interval.is_some_and(|i| i.is_zero()) {
            return Err("advertisement_interval: expected a duration above zero".to_owned());
        }
        self.correspondent.check_limits()
    }
}

/// Configuration of a correspondent node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CorrespondentConfig {
    /// Address of the node: the identity. A mobile node puts its home address here itself.
    pub address: Ipv6Addr,
    /// Whether it takes part in route optimisation at all. If not, it keeps no bindings and answers no tests.
    pub route_optimization: bool,
    /// Most bindings kept.
    pub max_bindings: u32,
    /// Longest lifetime granted.
    pub max_lifetime: Duration,
    /// How long a nonce may be used.
    pub nonce_lifetime: Duration,
    /// How often a new nonce is made, if tokens are asked for.
    pub nonce_interval: Duration,
    /// A binding in use is asked to be refreshed this long before it ends (section 9.5.5); zero never asks.
    pub refresh_before: Duration,
    /// At most one Binding Error in this time (section 9.3.3 has them limited as ICMPv6 errors are).
    pub binding_error_interval: Duration,
    /// Whether ICMPv6 errors about packets that took the direct way are given to transports, with the addresses that these know. A mobile
    /// node does so with errors about its own.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub translate_errors: bool,
}

impl Default for CorrespondentConfig {
    fn default() -> Self {
        Self {
            address: Ipv6Addr::UNSPECIFIED,
            route_optimization: true,
            max_bindings: 1024,
            max_lifetime: MAX_RR_BINDING_LIFETIME,
            nonce_lifetime: MAX_NONCE_LIFETIME,
            nonce_interval: Duration::from_secs(30),
            refresh_before: Duration::from_secs(30),
            binding_error_interval: Duration::from_millis(100),
            translate_errors: false,
        }
    }
}

impl CorrespondentConfig {
    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check(&self) -> Result<(), String> {
        check_unicast("address", self.address)?;
        self.check_limits()
    }

    fn check_limits(&self) -> Result<(), String> {
        if self.max_lifetime > MAX_RR_BINDING_LIFETIME {
            return Err(format!(
                "max_lifetime = {}: expected at most {MAX_RR_BINDING_LIFETIME}",
                self.max_lifetime
            ));
        }
        if self.nonce_lifetime > MAX_NONCE_LIFETIME {
            return Err(format!(
                "nonce_lifetime = {}: expected at most {MAX_NONCE_LIFETIME}",
                self.nonce_lifetime
            ));
        }
        if self.nonce_interval.is_zero() || self.nonce_interval > self.nonce_lifetime {
            return Err(format!(
                "nonce_interval = {}: expected above zero and at most nonce_lifetime",
                self.nonce_interval
            ));
        }
        Ok(())
    }
}

/// A mobile node that a home agent serves.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ServedNode {
    /// Its home address.
    pub home_address: Ipv6Addr,
    /// Authenticates its registrations.
    pub security: SecurityAssociation,
}

/// Configuration of a home agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HomeAgentConfig {
    /// Its address. Its first 64 bits are the home subnet prefix.
    pub address: Ipv6Addr,
    /// The mobile nodes that it serves.
    pub mobile_nodes: Vec<ServedNode>,
    /// Longest lifetime granted.
    pub max_lifetime: Duration,
    /// Time between a Binding Update and its effect and acknowledgement: what the machine needs to work it off.
    pub home_agent_delay: Duration,
    /// The same time besides for a registration that makes a new binding, as the home agent first makes sure that nobody
    /// on the home link has the address (section 10.3.1, RFC 4862 section 5.4: one solicitation, 1 s). This is the second
    /// or so that Phoomikiattisak and Bhatti saw in their testbed (section 6.1.4), where the one handoff of a run is from
    /// home.
    pub duplicate_address_detection: Duration,
    /// How far timestamps may be off (RFC 4285 section 6: 7 s by default, more than 3 s).
    pub timestamp_window: Duration,
    /// Tells mobile nodes to refresh after this part of the lifetime granted, nothing leaves it to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_advice: Option<Duration>,
    /// Largest packet that the way to the mobile nodes takes. A packet that does not fit its tunnel is answered by a
    /// Packet Too Big (RFC 2473 section 7.1).
    pub path_mtu: Bytes,
}

impl Default for HomeAgentConfig {
    fn default() -> Self {
        Self {
            address: Ipv6Addr::UNSPECIFIED,
            mobile_nodes: Vec::new(),
            max_lifetime: Duration::from_secs(86_400),
            home_agent_delay: Duration::ZERO,
            duplicate_address_detection: Duration::from_secs(1),
            timestamp_window: Duration::from_secs(7),
            refresh_advice: None,
            path_mtu: Bytes::new(1500),
        }
    }
}

impl HomeAgentConfig {
    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check(&self) -> Result<(), String> {
        check_unicast("address", self.address)?;
        for (n, node) in self.mobile_nodes.iter().enumerate() {
            let key = |e| format!("mobile_nodes[{n}].{e}");
            check_unicast("home_address", node.home_address).map_err(key)?;
            node.security.check().map_err(key)?;
            if prefix(node.home_address) != prefix(self.address) {
                return Err(format!(
                    "mobile_nodes[{n}].home_address = {}: expected an address of the home agent's /64",
                    node.home_address
                ));
            }
            if self.mobile_nodes[..n]
                .iter()
                .any(|other| other.home_address == node.home_address)
            {
                return Err(format!(
                    "mobile_nodes[{n}].home_address = {}: expected each address once",
                    node.home_address
                ));
            }
        }
        self.check_limits()
    }

    /// As [`Self::check`], without addresses and mobile nodes: what can be said before those are known.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check_limits(&self) -> Result<(), String> {
        if self.max_lifetime < LIFETIME_UNIT {
            return Err(format!(
                "max_lifetime = {}: expected at least {LIFETIME_UNIT}",
                self.max_lifetime
            ));
        }
        if self.path_mtu.bytes() < 1280 {
            return Err("path_mtu: expected at least 1280 bytes".to_owned());
        }
        Ok(())
    }
}

/// The first 64 bits of an address.
pub(super) fn prefix(address: Ipv6Addr) -> u64 {
    (address.to_bits() >> 64) as u64
}

/// Whether a mobile node or its correspondents can have the address: unicast and routable (section 9.3.1).
pub(super) fn is_routable_unicast(address: Ipv6Addr) -> bool {
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.is_unicast_link_local())
}

fn check_unicast(key: &str, address: Ipv6Addr) -> Result<(), String> {
    if is_routable_unicast(address) {
        Ok(())
    } else {
        Err(format!("{key} = {address}: expected a routable unicast address"))
    }
}
