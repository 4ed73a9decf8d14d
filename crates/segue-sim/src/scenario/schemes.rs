//! How hosts keep their connections while they move.

use schemars::JsonSchema;
use segue_proto::Duration;
use segue_proto::mip6::{CorrespondentConfig, HomeAgentConfig, MobileNodeConfig};
use serde::{Deserialize, Serialize};

/// The mobility scheme of a scenario: what mobile hosts do, and what their peers and routers do for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// SIGMA: the transport knows several addresses, and a mobile host changes them (SCTP with RFC 5061).
    #[default]
    Sigma,
    /// Nothing: a connection lives as long as its addresses.
    None,
    /// SCTP with one path that is never left: what a download over the faster link alone takes.
    Single,
    /// SCTP whose sender leaves a path only when it fails: a second address is added, and never made primary.
    Failover,
    /// mSCTP: the second address becomes primary just before the first link is lost.
    MsctpBest,
    /// mSCTP: the second address becomes primary as soon as it is added, in the same ASCONF.
    MsctpWorst,
    /// mSCTP with concurrent multipath transfer while there are two paths (`[cmt]`).
    Cmt,
    /// Mobile IPv6 with bidirectional tunnelling (RFC 6275).
    Mip6,
    /// Mobile IPv6 with route optimisation (RFC 6275).
    Mip6Ro,
    /// ILNPv6 (RFC 6741), leaving the old locator when there is a new one.
    IlnpHard,
    /// ILNPv6, still taking what arrives at the old locator while there is one.
    IlnpSoft,
    /// ILNPv6 with all locators in use at once, shared as `ilnp.sharing` and `ilnp.preferences` say.
    IlnpMultihomed,
    /// The kernel's Multipath TCP (RFC 8684): a subflow from each network, tried until its timers give it up. The lab alone.
    Mptcp,
    /// The same, whose path manager deletes the endpoint of a network that goes.
    MptcpDelete,
    /// A WireGuard tunnel from the host that moves, whose peer answers wherever it was last heard from. The lab alone.
    Wireguard,
    /// A program over QUIC whose client migrates (RFC 9000 section 9). The lab alone.
    Quic,
}

impl Scheme {
    /// Whether transports see an identity, and a shim below them does the rest.
    #[must_use]
    pub const fn has_shim(self) -> bool {
        self.is_mip6() || self.is_ilnp()
    }

    /// Whether a mobile host changes the addresses of its association (RFC 5061), or leaves that to the peer's timeouts.
    #[must_use]
    pub const fn changes_addresses(self) -> bool {
        matches!(self, Self::Sigma) || self.is_multihomed()
    }

    /// Whether it is one of the schemes of the paper on mSCTP-CMT.
    #[must_use]
    pub const fn is_multihomed(self) -> bool {
        matches!(
            self,
            Self::Single | Self::Failover | Self::MsctpBest | Self::MsctpWorst | Self::Cmt
        )
    }

    /// Whether it is the kernel's or a program's, of which there is no model: it works with real hosts alone.
    #[must_use]
    pub const fn is_of_others(self) -> bool {
        matches!(
            self,
            Self::Mptcp | Self::MptcpDelete | Self::Wireguard | Self::Quic
        )
    }

    /// Whether it is Mobile IPv6.
    #[must_use]
    pub const fn is_mip6(self) -> bool {
        matches!(self, Self::Mip6 | Self::Mip6Ro)
    }

    /// Whether it is ILNPv6.
    #[must_use]
    pub const fn is_ilnp(self) -> bool {
        matches!(self, Self::IlnpHard | Self::IlnpSoft | Self::IlnpMultihomed)
    }
}

/// `[mip6]`: a table for each part. Addresses, keys and route optimisation are not to be set: they follow from the rest
/// of the scenario.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mip6Section {
    /// Every mobile host.
    pub mobile_node: MobileNodeConfig,
    /// The access router of every home network.
    pub home_agent: HomeAgentConfig,
    /// Every host that does not move.
    pub correspondent: CorrespondentConfig,
}

/// `[directory]`: how long the directory takes that ILNPv6 asks where a peer is (names with NID and L64 records, RFC
/// 6742).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DirectorySection {
    /// From sending an update to its effect.
    pub update: Duration,
    /// From asking to the answer.
    pub look_up: Duration,
}

impl Default for DirectorySection {
    fn default() -> Self {
        Self {
            update: Duration::from_millis(50),
            look_up: Duration::from_millis(50),
        }
    }
}

/// A message that a host forges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Forged {
    /// ILNPv6: another host is where the forger is.
    LocatorUpdate,
    /// Mobile IPv6: another host's care-of address is the forger's.
    BindingUpdate,
}

/// The nonce of a forged locator update, which the forger does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ForgedNonce {
    /// It guesses one.
    #[default]
    Wrong,
    /// It leaves it out.
    Missing,
}
