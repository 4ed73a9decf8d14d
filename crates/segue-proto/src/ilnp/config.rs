//! What can be set on the shim.

use crate::time::Duration;
use core::net::Ipv6Addr;
use segue_wire::PseudoRule;
use segue_wire::ilnp::{Locator, LocatorUpdate, Nid};
use serde::{Deserialize, Serialize};

/// Configuration of [`Ilnp`](super::Ilnp).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Node identifier of this host, as `"0:0:0:1"`. All of its interfaces form their addresses with it.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "text::schema"))]
    pub nid: Nid,
    /// The prefix of identities, as `"fd53:6567:7565:1"`: an address of it with a node identifier is what transports see of a
    /// node, wherever that is. It is never on the wire. A unique local prefix (RFC 4193) will do; hosts need not agree.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "text::schema"))]
    pub identity_prefix: Locator,
    /// What a new locator does to those there are.
    pub handoff: Handoff,
    /// What makes a new locator the one in use.
    pub trigger: Trigger,
    /// How packets are shared among locators of the same preference, at either end (RFC 6740 section 5.2).
    pub sharing: Sharing,
    /// Preferences of this host's locators by interface, when `handoff = "multihomed"`: lower is better, those of the
    /// same value share. 10 where there is none.
    pub preferences: Vec<u16>,
    /// Length of the nonces that this host chooses (RFC 6744 section 2).
    pub nonce: NonceLength,
    /// Which packets carry the nonce.
    pub nonce_in: NonceIn,
    /// The checksum of TCP and UDP on the wire, unless the peer's packets show that it uses the other rule.
    pub checksum: ChecksumRule,
    /// Identifiers that this host uses on the wire (RFC 6740 section 10.2).
    pub identifiers: Identifiers,
    /// Ephemeral identifiers for which addresses are kept ready for sessions to come.
    pub ephemeral_pool: u32,
    /// Peers whose locators are known beforehand.
    pub peers: Vec<PeerConfig>,
    /// A locator whose router has not been heard for so long is stale, and another is used if there is one: MIPv6's and
    /// ILNPv6's false handoffs (004 section 5.3) come from too short a time. Nothing waits for the address's lifetime.
    pub locator_timeout: Option<Duration>,
    /// Whether the way to peers is probed while packets are sent to them, and another locator used if there is one when nothing gets through
    /// the network of the one in use although it is up: by updates that say what the last one did.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub detect_silence: bool,
    /// Whether ICMPv6 errors that this host sends quote a packet as it was on the wire (RFC 4443 section 2.4 c), with locators and the
    /// peer's nonce, and those that the peer sends are read so. Without it they quote what transports see, which is good only
    /// between hosts that share an identity prefix, and no firewall on the way knows the packet again.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub translate_errors: bool,
    /// Lifetime of this host's locators in updates, whole seconds up to 65535 (RFC 6743 section 2). They are told again
    /// when three quarters of it are over.
    pub locator_lifetime: Duration,
    /// Time until an unanswered update is sent again; doubled each time. RFC 6743 leaves it open; this is what Mobile
    /// IPv6 has for binding updates (RFC 6275 section 12), for comparison.
    pub lu_timeout: Duration,
    /// Greatest time between retransmissions.
    pub lu_max_timeout: Duration,
    /// Times that an update is sent before it is given up.
    pub lu_attempts: u32,
    /// An update that repeats, byte for byte, one which another has superseded is a replay, or late, and refused if the peer
    /// was heard where it is less than this ago, or has been there for less. The message has no sequence number (RFC 6743
    /// section 2); those of this implementation never repeat, and a host of another that is really back is believed when
    /// it tells again.
    pub replay_guard: Duration,
    /// Most bytes that go, in each `active_time`, to locators of a peer that only its updates have named: neither was it heard
    /// from there, nor has the directory, the configuration or a call named them. Beyond that, the directory is asked. RFC
    /// 6743 has no such check, and nothing means none. A host that moves is heard from where it is now with the update
    /// already, and loses nothing by it. What goes to a peer with such a locator counts in full, wherever it is shared to.
    pub unconfirmed_bytes: Option<u32>,
    /// Unanswered transmissions of an update after which the directory is asked where the peer is (RFC 6740 section 6.2).
    pub look_up_after: u32,
    /// Packets sent without hearing from the peer after which the directory is asked, if `silent_time` has passed too.
    pub silent_packets: u32,
    /// See `silent_packets`.
    pub silent_time: Duration,
    /// Unanswered packets with a nonce after which a peer that was called at an address is taken for one that speaks only IPv6,
    /// if `fallback_time` has passed too (RFC 6741 section 10). While plain IPv6 is not answered either, packets go in both
    /// forms by turns. Of a peer that is called by its identity, or is one of `peers`, silence says nothing. Nothing never
    /// falls back for want of answers.
    pub fallback_after: Option<u32>,
    /// See `fallback_after`.
    pub fallback_time: Duration,
    /// What is known of a peer is forgotten after so long without a packet to it or from it (RFC 6741 section 5.2), and after five minutes at
    /// most if it never answered, or called and did not carry on. Half a day is more than a night's sleep, and than TCP waits
    /// before it asks whether the other end of a silent connection is there (two hours, RFC 9293 section 3.8.4): what a
    /// session is forgotten for before that is room.
    pub idle_timeout: Duration,
    /// Time for which a peer's locator counts as active after its last use (RFC 6741 section 5).
    pub active_time: Duration,
    /// Most peers in the cache.
    pub max_correspondents: u32,
    /// Most packets that wait for a look-up, for each peer.
    pub max_held: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nid: Nid(0),
            identity_prefix: Locator(0xfd53_6567_7565_0001),
            handoff: Handoff::default(),
            trigger: Trigger::default(),
            sharing: Sharing::default(),
            preferences: Vec::new(),
            nonce: NonceLength::default(),
            nonce_in: NonceIn::default(),
            checksum: ChecksumRule::default(),
            identifiers: Identifiers::default(),
            ephemeral_pool: 2,
            peers: Vec::new(),
            locator_timeout: None,
            detect_silence: false,
            translate_errors: false,
            locator_lifetime: Duration::from_secs(3600),
            lu_timeout: Duration::from_secs(1),
            lu_max_timeout: Duration::from_secs(32),
            lu_attempts: 7,
            replay_guard: Duration::from_secs(1),
            unconfirmed_bytes: None,
            look_up_after: 3,
            silent_packets: 8,
            silent_time: Duration::from_secs(3),
            fallback_after: Some(3),
            fallback_time: Duration::from_secs(2),
            idle_timeout: Duration::from_secs(43_200),
            active_time: Duration::from_secs(30),
            max_correspondents: 4096,
            max_held: 16,
        }
    }
}

/// What a new locator does to those there are (004 section 2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Handoff {
    /// Hard: they are dropped at once. What still arrives for them is dropped too.
    Hard,
    /// Soft: they are good for receiving until they are lost, with a worse preference.
    #[default]
    Soft,
    /// It joins them: several are in use at a time (RFC 6740 section 5.1).
    Multihomed,
}

/// What makes a new locator the one in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// That its address is ready: the implementation of 004 hands off when it sees the new router.
    #[default]
    NewLocator,
    /// That the one in use is lost, as with Mobile IPv6.
    Lost,
}

/// How packets are shared among locators of the same preference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// The newest of them takes all.
    #[default]
    None,
    /// By protocol and ports, so that a flow keeps its order.
    PerFlow,
    /// In turn.
    PerPacket,
}

/// Length of a nonce (RFC 6744 section 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NonceLength {
    /// 32 bits, 8 bytes in a packet.
    #[default]
    #[serde(rename = "32-bit")]
    Bits32,
    /// 96 bits, 16 bytes in a packet.
    #[serde(rename = "96-bit")]
    Bits96,
}

/// Which packets carry the nonce.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NonceIn {
    /// Every packet, as the implementation of 004 has it.
    #[default]
    Every,
    /// The first packets of a session until both ends have the other's, locator updates, and everything while an update
    /// is not acknowledged: the least that RFC 6744 section 4 asks for. Without a nonce, a packet is a session's if it
    /// is between locators that both ends know.
    SessionStartAndSignalling,
}

/// The checksum of TCP and UDP on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ChecksumRule {
    /// IPv6's (draft-bhatti-ilnp-tcp-udp-checksums-00): what every other tool takes for right.
    #[default]
    Ipv6,
    /// Over identifiers alone (RFC 6741 section 4.2).
    Identifiers,
}

impl From<ChecksumRule> for PseudoRule {
    fn from(rule: ChecksumRule) -> Self {
        match rule {
            ChecksumRule::Ipv6 => Self::Ipv6,
            ChecksumRule::Identifiers => Self::Identifiers,
        }
    }
}

/// Identifiers that a host uses on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Identifiers {
    /// Its node identifier.
    #[default]
    Stable,
    /// A new one for every peer that it calls, so that peers cannot tell that they talk to the same host. Transports at
    /// this host go on seeing its one identity; to the peer, the ephemeral identifier is the host's identity.
    Ephemeral,
}

/// A peer whose locators are known beforehand.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PeerConfig {
    /// Its node identifier.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "text::schema"))]
    pub nid: Nid,
    /// Its locators, as `"2001:db8:1:1"`, with equal preference.
    #[serde(with = "text_list")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "text_list::schema"))]
    pub locators: Vec<Locator>,
    /// Its name, for applications of a real host: the agent's resolver answers it. Nothing else reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Config {
    /// A host with this node identifier, and the defaults.
    #[must_use]
    pub fn new(nid: Nid) -> Self {
        Self {
            nid,
            ..Self::default()
        }
    }

    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let positive = |key: &str, duration: Duration| {
            if duration.is_zero() {
                return Err(format!("{key}: expected a duration above zero"));
            }
            Ok(())
        };
        if self.nid == Nid(0) {
            return Err("nid: expected a node identifier such as \"0:0:0:1\", not zero".to_owned());
        }
        if !self.identity_prefix.is_routable() {
            return Err("identity_prefix: expected a unicast prefix such as \"fd53:6567:7565:1\"".to_owned());
        }
        positive("lu_timeout", self.lu_timeout)?;
        positive("idle_timeout", self.idle_timeout)?;
        if let Some(timeout) = self.locator_timeout {
            positive("locator_timeout", timeout)?;
        }
        if self.lu_max_timeout < self.lu_timeout {
            return Err("lu_max_timeout: expected at least lu_timeout".to_owned());
        }
        let lifetime = self.locator_lifetime.as_nanos();
        if lifetime < 1_000_000_000
            || !lifetime.is_multiple_of(1_000_000_000)
            || lifetime > 65_535_000_000_000
        {
            return Err("locator_lifetime: expected whole seconds from 1 s to 65535 s".to_owned());
        }
        for (key, value) in [
            ("lu_attempts", self.lu_attempts),
            ("look_up_after", self.look_up_after),
            ("silent_packets", self.silent_packets),
            ("fallback_after", self.fallback_after.unwrap_or(1)),
            ("max_correspondents", self.max_correspondents),
        ] {
            if value == 0 {
                return Err(format!("{key}: expected at least 1"));
            }
        }
        if self.ephemeral_pool == 0 && self.identifiers == Identifiers::Ephemeral {
            return Err("ephemeral_pool: expected at least 1 with ephemeral identifiers".to_owned());
        }
        for peer in &self.peers {
            if peer.nid == Nid(0) || peer.nid == self.nid {
                return Err(format!(
                    "peers: nid {}: expected another node's identifier",
                    peer.nid
                ));
            }
            if peer.locators.is_empty() || peer.locators.len() > LocatorUpdate::MAX_LOCATORS {
                return Err(format!("peers: {}: expected 1 to 255 locators", peer.nid));
            }
            if let Some(bad) = peer.locators.iter().find(|l| !l.is_routable()) {
                return Err(format!("peers: {}: {bad} is not a unicast prefix", peer.nid));
            }
            if peer.locators.contains(&self.identity_prefix) {
                return Err(format!(
                    "peers: {}: expected locators, not the identity prefix {}",
                    peer.nid, self.identity_prefix
                ));
            }
        }
        Ok(())
    }

    /// Whether the node with this identity is known to speak ILNPv6: an identity of the prefix is given by names and
    /// configuration to nobody else.
    pub(super) fn knows_to_speak_ilnp(&self, identity: Ipv6Addr) -> bool {
        let nid = Nid::of(identity);
        Locator::of(identity) == self.identity_prefix || self.peers.iter().any(|p| p.nid == nid)
    }

    /// Bytes by which packets grow that carry this host's nonce.
    pub(super) fn nonce_overhead(&self) -> u32 {
        match self.nonce {
            NonceLength::Bits32 => 8,
            NonceLength::Bits96 => 16,
        }
    }
}

/// Identifiers and locators as text.
mod text {
    use core::fmt::Display;
    use core::str::FromStr;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) const EXPECTED: &str = "four groups of hexadecimal digits such as \"2001:db8:0:1\"";

    #[cfg(feature = "schema")]
    pub(super) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){3}$",
            "x-quantity": "four groups of hexadecimal digits",
        })
    }

    pub(super) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|_| D::Error::custom(format!("`{text}`: expected {EXPECTED}")))
    }
}

/// A list of locators as text.
mod text_list {
    use super::{Locator, text};
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    #[cfg(feature = "schema")]
    pub(super) fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "array", "items": text::schema(generator) })
    }

    pub(super) fn serialize<S: Serializer>(list: &[Locator], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(list.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Locator>, D::Error> {
        let list = Vec::<String>::deserialize(deserializer)?;
        list.iter()
            .map(|item| {
                item.parse()
                    .map_err(|_| D::Error::custom(format!("`{item}`: expected {}", text::EXPECTED)))
            })
            .collect()
    }
}
