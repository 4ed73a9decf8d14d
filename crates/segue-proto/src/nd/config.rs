//! Protocol constants of RFC 4861 section 10 and RFC 4862 section 5.1, and what can be set.

use crate::time::Duration;
use core::net::Ipv6Addr;
use serde::{Deserialize, Serialize};

/// Lifetime field that means for ever (RFC 4861 section 4.6.2).
pub const INFINITE_LIFETIME_S: u32 = u32::MAX;

/// Host variables (RFC 4861 section 6.3.2, RFC 4862 section 5.1).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HostConfig {
    /// MAX_RTR_SOLICITATIONS; 0 sends none.
    pub max_rtr_solicitations: u32,
    /// RTR_SOLICITATION_INTERVAL.
    pub rtr_solicitation_interval: Duration,
    /// MAX_RTR_SOLICITATION_DELAY: the first solicitation, and the first neighbour solicitation of duplicate address
    /// detection, wait for a random time up to this.
    pub max_rtr_solicitation_delay: Duration,
    /// DupAddrDetectTransmits; 0 uses addresses without asking.
    pub dup_addr_detect_transmits: u32,
    /// RetransTimer, unless a router advertises another.
    pub retrans_timer: Duration,
    /// Use addresses while duplicate address detection still runs (RFC 4429).
    pub optimistic: bool,
    /// Keep addresses when the link goes down, and use them again without duplicate address detection if the interface
    /// comes back to their link while they are valid.
    pub retain: bool,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            max_rtr_solicitations: 3,
            rtr_solicitation_interval: Duration::from_secs(4),
            max_rtr_solicitation_delay: Duration::from_secs(1),
            dup_addr_detect_transmits: 1,
            retrans_timer: Duration::from_secs(1),
            optimistic: false,
            retain: false,
        }
    }
}

/// A prefix that a router advertises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AdvertisedPrefix {
    /// Prefix.
    pub prefix: Ipv6Addr,
    /// Leading bits that count.
    pub prefix_length: u8,
    /// AdvOnLinkFlag.
    #[serde(default = "yes")]
    pub on_link: bool,
    /// AdvAutonomousFlag.
    #[serde(default = "yes")]
    pub autonomous: bool,
    /// AdvValidLifetime; nothing is for ever.
    #[serde(default = "valid")]
    pub valid_lifetime: Option<Duration>,
    /// AdvPreferredLifetime; nothing is for ever.
    #[serde(default = "preferred")]
    pub preferred_lifetime: Option<Duration>,
}

impl AdvertisedPrefix {
    /// A /64 with the default lifetimes of RFC 4861 section 6.2.1 (30 and 7 days), on link and autonomous.
    #[must_use]
    pub fn new(prefix: Ipv6Addr) -> Self {
        Self {
            prefix,
            prefix_length: 64,
            on_link: true,
            autonomous: true,
            valid_lifetime: valid(),
            preferred_lifetime: preferred(),
        }
    }
}

fn yes() -> bool {
    true
}
fn valid() -> Option<Duration> {
    Some(Duration::from_secs(2_592_000))
}
fn preferred() -> Option<Duration> {
    Some(Duration::from_secs(604_800))
}

/// Router variables (RFC 4861 section 6.2.1). Mobile IPv6 lets the intervals be as short as 30 and 70 ms (RFC 6275
/// section 7.5).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RouterConfig {
    /// MinRtrAdvInterval.
    pub min_rtr_adv_interval: Duration,
    /// MaxRtrAdvInterval.
    pub max_rtr_adv_interval: Duration,
    /// Initial advertisements that come at most `max_initial_rtr_advert_interval` apart
    /// (MAX_INITIAL_RTR_ADVERTISEMENTS).
    pub max_initial_rtr_advertisements: u32,
    /// MAX_INITIAL_RTR_ADVERT_INTERVAL.
    pub max_initial_rtr_advert_interval: Duration,
    /// MAX_RA_DELAY_TIME: an answer to a solicitation waits for a random time up to this.
    pub max_ra_delay_time: Duration,
    /// MIN_DELAY_BETWEEN_RAS: multicast advertisements come at least this far apart.
    pub min_delay_between_ras: Duration,
    /// Answer a solicitation to the host alone (a MAY of RFC 4861 section 6.2.6), without `min_delay_between_ras`.
    pub unicast_solicited: bool,
    /// AdvManagedFlag: addresses come from DHCPv6.
    pub managed: bool,
    /// AdvCurHopLimit.
    pub cur_hop_limit: u8,
    /// AdvDefaultLifetime.
    pub default_lifetime: Duration,
    /// AdvRetransTimer; nothing for unspecified.
    pub retrans_timer: Option<Duration>,
    /// AdvLinkMTU, bytes; nothing sends no MTU option.
    pub link_mtu: Option<u32>,
    /// AdvPrefixList.
    pub prefixes: Vec<AdvertisedPrefix>,
    /// Say how often advertisements come (RFC 6275 section 7.3), so that mobile nodes notice when they do not.
    pub advertise_interval: bool,
    /// The router is a home agent (RFC 6275 sections 7.1 and 7.4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home_agent: Option<AdvertisedHomeAgent>,
}

/// What a router advertises of itself as a home agent (RFC 6275 section 7.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AdvertisedHomeAgent {
    /// HomeAgentPreference: more is better.
    pub preference: i16,
    /// HomeAgentLifetime; nothing is the router lifetime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Duration>,
    /// The router's address, which its prefix's option then says in full (the R flag, section 7.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv6Addr>,
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self {
            min_rtr_adv_interval: Duration::from_secs(200),
            max_rtr_adv_interval: Duration::from_secs(600),
            max_initial_rtr_advertisements: 3,
            max_initial_rtr_advert_interval: Duration::from_secs(16),
            max_ra_delay_time: Duration::from_millis(500),
            min_delay_between_ras: Duration::from_secs(3),
            unicast_solicited: false,
            managed: false,
            cur_hop_limit: 64,
            default_lifetime: Duration::from_secs(1800),
            retrans_timer: None,
            link_mtu: None,
            prefixes: Vec::new(),
            advertise_interval: false,
            home_agent: None,
        }
    }
}

impl RouterConfig {
    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check(&self) -> Result<(), String> {
        if self.max_rtr_adv_interval.is_zero() {
            return Err("max_rtr_adv_interval: expected a duration above zero".to_owned());
        }
        if self.min_rtr_adv_interval > self.max_rtr_adv_interval {
            return Err("min_rtr_adv_interval: expected at most max_rtr_adv_interval".to_owned());
        }
        if self.default_lifetime > Duration::from_secs(9000) {
            return Err("default_lifetime: expected at most 9000 s (RFC 4861 section 6.2.1)".to_owned());
        }
        match self.prefixes.iter().find(|p| p.prefix_length > 128) {
            Some(p) => Err(format!("prefix_length = {}: expected 0 to 128", p.prefix_length)),
            None => Ok(()),
        }
    }
}
