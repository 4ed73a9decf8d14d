//! The agent's file.

use crate::names::config::NamesConfig;
use crate::networks::NetworkConfig;
use segue_proto::Duration;
use segue_proto::ilnp::{Config as Ilnp, Identifiers, Trigger};
use segue_proto::location::parse_name;
use segue_proto::mip6::{CorrespondentConfig, HomeAgentConfig, MobileNodeConfig};
use segue_wire::ilnp::Nid;
use serde::{Deserialize, Deserializer, de};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// What a file says: what concerns the machine, and what the agent is there.
#[derive(Clone, Debug)]
pub struct Config {
    /// The machine.
    pub agent: Machine,
    /// What the agent is.
    pub role: RoleConfig,
    /// `[names]`: resolver, directory, and what is published of an ILNPv6 host.
    pub names: Option<Box<NamesConfig>>,
    /// What is known of networks: `[[network]]`, in the order of the file.
    pub networks: Vec<NetworkConfig>,
}

/// What the agent is: a table of the file for each. The keys are those of scenarios, without what the agent does by itself.
#[derive(Clone, Debug)]
pub enum RoleConfig {
    /// `[ilnp]`: a host that speaks ILNPv6. `detect_silence` is on unless the file says otherwise.
    Ilnp(Box<Ilnp>),
    /// `[mobile-node]`: a mobile node of Mobile IPv6. `detect_silence` is on and `home_lifetime` two minutes unless the file says
    /// otherwise.
    MobileNode(Box<MobileNodeConfig>),
    /// `[home-agent]` and `[correspondent]`, one of them or both: a machine that stays.
    Fixed {
        /// The home agent. Nobody but it has addresses of the home network: it looks for no duplicates unless the file says so.
        home_agent: Option<Box<HomeAgentConfig>>,
        /// The correspondent. Without an address, it is one at every global address of the kernel's on its interfaces.
        correspondent: Option<Box<CorrespondentConfig>>,
    },
}

/// The file as it stands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Whole {
    agent: Machine,
    ilnp: Option<Box<Ilnp>>,
    mobile_node: Option<Box<MobileNodeConfig>>,
    home_agent: Option<Box<HomeAgentConfig>>,
    correspondent: Option<Box<CorrespondentConfig>>,
    names: Option<Box<NamesConfig>>,
    #[serde(default)]
    network: Vec<NetworkConfig>,
}

/// Destinations that are reached from the home address: a prefix, as `"2001:db8::/32"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// Its address, with zeros behind its bits.
    pub address: Ipv6Addr,
    /// Its bits.
    pub length: u8,
}

impl Prefix {
    /// Whether an address has it.
    #[must_use]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        let differing = self.address.to_bits() ^ address.to_bits();
        differing.leading_zeros() >= u32::from(self.length)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || de::Error::custom(format!("`{text}`: expected a prefix such as \"2001:db8::/32\""));
        let (address, length) = text.split_once('/').ok_or_else(wrong)?;
        let address: Ipv6Addr = address.parse().map_err(|_| wrong())?;
        let length: u8 = length.parse().map_err(|_| wrong())?;
        let behind = u128::MAX.checked_shr(length.into()).unwrap_or_default();
        if length > 128 || address.to_bits() & behind != 0 {
            return Err(wrong());
        }
        Ok(Self { address, length })
    }
}

/// What the agent uses of the machine, and when it moves.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Ethernet interfaces (Wi-Fi included) by name, the one to use first where there is a choice. One that is not there yet is
    /// waited for.
    pub interfaces: Vec<String>,
    /// TUN device that carries the identity or the home address, or what a home agent or correspondent has the kernel hand over.
    #[serde(default = "device")]
    pub device: String,
    /// Control socket. Who may write to it may use it: it is made for its owner alone.
    #[serde(default = "socket")]
    pub socket: PathBuf,
    /// Who the agent is once everything is set up, by name; who started it if there is none. It keeps two capabilities,
    /// `CAP_NET_ADMIN` and `CAP_NET_RAW`, whoever it is.
    #[serde(default)]
    pub user: Option<String>,
    /// Whether the agent confines itself to the system calls that it needs, once it is set up.
    #[serde(default = "seccomp")]
    pub seccomp: bool,
    /// The ILNP host's: whether the kernel may carry what needs no thought, where it can.
    #[serde(default = "fast_path")]
    pub fast_path: bool,
    /// Where numbers for Prometheus are served: an address and port of this machine's loopback, as `"[::1]:9477"`, or the path of
    /// a socket. Nowhere if there is none.
    #[serde(default)]
    pub metrics: Option<MetricsAt>,
    /// For how long a better interface must have been usable before it is moved to.
    #[serde(default = "hold_down")]
    pub hold_down: Duration,
    /// The ILNP host's: port of UDP in which nonces travel where networks drop destination options; 0 for never.
    #[serde(default = "udp_port")]
    pub udp_port: u16,
    /// The mobile node's: interface identifier of its care-of addresses, as `"2aa:0:0:1"`; that of the home address if there is
    /// none.
    #[serde(default, deserialize_with = "identifier")]
    pub identifier: Option<Nid>,
    /// The mobile node's: where applications that do not say where they call from call from the home address. All the world if
    /// there is none.
    #[serde(default)]
    pub destinations: Option<Vec<Prefix>>,
}

/// Where numbers are served, to this machine alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetricsAt {
    /// An address of the loopback, and a port.
    Loopback(SocketAddr),
    /// A socket of the file system.
    Path(PathBuf),
}

impl MetricsAt {
    /// The socket, if it is one of the file system.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Loopback(_) => None,
            Self::Path(path) => Some(path),
        }
    }
}

impl<'de> Deserialize<'de> for MetricsAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.starts_with('/') {
            return Ok(Self::Path(text.into()));
        }
        match text.parse::<SocketAddr>() {
            Ok(at) if at.ip().is_loopback() && at.port() != 0 => Ok(Self::Loopback(at)),
            _ => Err(de::Error::custom(format!(
                "`{text}`: expected a loopback address and port such as \"[::1]:9477\", or the whole path of a socket such as \"/run/segue/metrics.sock\""
            ))),
        }
    }
}

fn identifier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nid>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || de::Error::custom(format!("`{text}`: expected an identifier such as \"2aa:0:0:1\""));
    text.parse().map(Some).map_err(|_| wrong())
}

fn device() -> String {
    "segue0".to_owned()
}

fn socket() -> PathBuf {
    DEFAULT_SOCKET.into()
}

const fn fast_path() -> bool {
    true
}

const fn seccomp() -> bool {
    true
}

fn hold_down() -> Duration {
    Duration::from_secs(2)
}

fn udp_port() -> u16 {
    segue_wire::ilnp_udp::DEFAULT_PORT
}

/// Where `status` and `handover` look for an agent.
pub const DEFAULT_SOCKET: &str = "/run/segue-agent.sock";

/// Longest name of an interface (`IFNAMSIZ` without its end).
const LONGEST_NAME: usize = 15;

/// Numbers of interfaces are of eight bits.
const MOST_INTERFACES: usize = 64;

impl Config {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let whole: Whole = toml::from_str(text).map_err(|error| of_toml(text, &error))?;
        let given: toml::Table = toml::from_str(text).map_err(|error| of_toml(text, &error))?;
        let says = |table: &str, key: &str| {
            let keys = given.get(table).and_then(toml::Value::as_table);
            keys.is_some_and(|keys| keys.contains_key(key))
        };
        let role = whole.role(&says)?;
        let config = Self {
            agent: whole.agent,
            role,
            names: whole.names,
            networks: whole.network,
        };
        config.check()?;
        Ok(config)
    }

    /// Whether the file has a key in it, which others are not to read.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        let publishes = self.names.as_ref().is_some_and(|names| names.publish.is_some());
        match &self.role {
            RoleConfig::Ilnp(_) => publishes,
            RoleConfig::MobileNode(_) => true,
            RoleConfig::Fixed { home_agent, .. } => home_agent.is_some(),
        }
    }

    fn check(&self) -> Result<(), String> {
        let Machine {
            interfaces, device, ..
        } = &self.agent;
        if interfaces.is_empty() || interfaces.len() > MOST_INTERFACES {
            return Err(format!(
                "agent.interfaces: expected 1 to {MOST_INTERFACES} names such as [\"wlan0\", \"eth0\"]"
            ));
        }
        for name in interfaces.iter().chain([device]) {
            let allowed = |c: char| c.is_ascii_graphic() && c != '/';
            if name.is_empty()
                || name.len() > LONGEST_NAME
                || !name.chars().all(allowed)
                || name.starts_with('.')
            {
                return Err(format!(
                    "agent: `{name}` is no name of an interface: expected 1 to {LONGEST_NAME} visible ASCII characters"
                ));
            }
        }
        for (number, name) in interfaces.iter().enumerate() {
            if interfaces[..number].contains(name) || name == device {
                return Err(format!(
                    "agent.interfaces: {name} is there twice: expected each once"
                ));
            }
        }
        for (number, network) in self.networks.iter().enumerate() {
            let place = number + 1;
            network
                .check(interfaces)
                .map_err(|message| format!("network {place}, {message}"))?;
            // connections of such a machine pass the agent one way at most
            if network.window.is_some() && matches!(self.role, RoleConfig::Fixed { .. }) {
                return Err(format!(
                    "network {place}, window: expected only beside [ilnp] or [mobile-node]"
                ));
            }
        }
        let moves = matches!(self.role, RoleConfig::MobileNode(_));
        let of_mobile_node = [
            ("identifier", self.agent.identifier.is_some()),
            ("destinations", self.agent.destinations.is_some()),
        ];
        if let Some((key, _)) = of_mobile_node.iter().find(|(_, given)| *given && !moves) {
            return Err(format!("agent.{key}: expected only beside [mobile-node]"));
        }
        if self.agent.identifier == Some(Nid(0)) {
            return Err("agent.identifier: expected one that is not zero".to_owned());
        }
        self.check_names()
    }

    fn check_names(&self) -> Result<(), String> {
        let RoleConfig::Ilnp(ilnp) = &self.role else {
            return match self.names {
                Some(_) => Err("[names]: expected only beside [ilnp]".to_owned()),
                None => Ok(()),
            };
        };
        for name in ilnp.peers.iter().filter_map(|peer| peer.name.as_deref()) {
            parse_name(name).map_err(|error| format!("ilnp.peers.name: {error}"))?;
        }
        if let Some(names) = &self.names {
            names.check().map_err(|message| format!("names.{message}"))?;
        }
        Ok(())
    }
}

impl Whole {
    /// What the agent is, by the tables that there are. `says` tells whether the file says something of a key of a table.
    fn role(&self, says: &impl Fn(&str, &str) -> bool) -> Result<RoleConfig, String> {
        let tables = [
            ("ilnp", self.ilnp.is_some()),
            ("mobile-node", self.mobile_node.is_some()),
            ("home-agent", self.home_agent.is_some()),
            ("correspondent", self.correspondent.is_some()),
        ];
        let there: Vec<&str> = tables.iter().filter(|t| t.1).map(|t| t.0).collect();
        if there.len() > 1 && (self.ilnp.is_some() || self.mobile_node.is_some()) {
            let reason = if self.mobile_node.is_some() && self.correspondent.is_some() {
                ": a mobile node is a correspondent too, by mobile-node.correspondent"
            } else {
                ""
            };
            return Err(format!(
                "[{}] beside [{}]: expected one of [ilnp] and [mobile-node] alone, or [home-agent] and [correspondent]{reason}",
                there[1], there[0]
            ));
        }
        if let Some(ilnp) = &self.ilnp {
            let mut ilnp = ilnp.clone();
            ilnp.check().map_err(|message| format!("ilnp.{message}"))?;
            if ilnp.trigger != Trigger::default() {
                return Err(
                    "ilnp.trigger: expected none: agent.interfaces and agent.hold_down say when to move"
                        .to_owned(),
                );
            }
            if ilnp.identifiers != Identifiers::Stable {
                return Err(
                    "ilnp.identifiers: expected \"stable\": the agent has no ephemeral ones".to_owned(),
                );
            }
            ilnp.trigger = Trigger::Lost;
            // a machine is in networks that nobody has tried
            ilnp.detect_silence |= !says("ilnp", "detect_silence");
            // nor has a peer shown that he is where he says
            if !says("ilnp", "unconfirmed_bytes") {
                ilnp.unconfirmed_bytes = Some(UNCONFIRMED_BYTES);
            }
            // and its kernel knows of errors only what is on the device
            ilnp.translate_errors |= !says("ilnp", "translate_errors");
            if self.names.is_some() && !says("ilnp", "look_up_after") {
                ilnp.look_up_after = LOOK_UP_AFTER;
            }
            return Ok(RoleConfig::Ilnp(ilnp));
        }
        if let Some(node) = &self.mobile_node {
            let mut node = node.clone();
            node.check().map_err(|message| format!("mobile-node.{message}"))?;
            if let Some(key) = OF_THE_AGENT.iter().find(|key| says("mobile-node", key)) {
                return Err(format!(
                    "mobile-node.{key}: expected none: agent.interfaces and agent.hold_down say when to move"
                ));
            }
            node.detect_silence |= !says("mobile-node", "detect_silence");
            node.correspondent.translate_errors = true;
            if !says("mobile-node", "home_lifetime") {
                node.home_lifetime = HOME_LIFETIME;
            }
            return Ok(RoleConfig::MobileNode(node));
        }
        let mut home_agent = self.home_agent.clone();
        if let Some(agent) = &mut home_agent {
            agent.check().map_err(|message| format!("home-agent.{message}"))?;
            if !says("home-agent", "duplicate_address_detection") {
                agent.duplicate_address_detection = Duration::ZERO;
            }
        }
        if let Some(correspondent) = &self.correspondent {
            let mut checked = correspondent.clone();
            if checked.address.is_unspecified() {
                // whatever address it will be
                checked.address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
            }
            checked
                .check()
                .map_err(|message| format!("correspondent.{message}"))?;
        } else if home_agent.is_none() {
            return Err(
                "expected a table for a role: [ilnp], [mobile-node], [home-agent] or [correspondent]"
                    .to_owned(),
            );
        }
        let mut correspondent = self.correspondent.clone();
        if let Some(correspondent) = &mut correspondent {
            correspondent.translate_errors |= !says("correspondent", "translate_errors");
        }
        Ok(RoleConfig::Fixed {
            home_agent,
            correspondent,
        })
    }
}

/// A home agent that was restarted has no binding until the next refresh, at three quarters of this; one that is gone leaves the
/// home address chosen for so long.
const HOME_LIFETIME: Duration = Duration::from_secs(120);
/// What goes to a locator that an update has named and that nothing was heard from: less than a second of a video, and more than a
/// host that moves is waited for.
const UNCONFIRMED_BYTES: u32 = 256 << 10;

/// Who has names asks them after one update without an answer: the peer may have moved at the same moment, and a question costs
/// little.
const LOOK_UP_AFTER: u32 = 1;

/// Keys of a mobile node that the agent sets by itself.
const OF_THE_AGENT: [&str; 4] = [
    "handoff",
    "lost_advertisements",
    "advertisement_interval",
    "interface_preference",
];

/// What the parser has to say, in one line with the place.
fn of_toml(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(1, |span| {
        1 + text[..span.start.min(text.len())].matches('\n').count()
    });
    format!(
        "line {line}: {}",
        error.message().lines().collect::<Vec<_>>().join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "[agent]\ninterfaces = [\"eth0\", \"wlan0\"]\n[ilnp]\nnid = \"0:0:0:1\"\n";

    const HOME: &str = "home_address = \"2001:db8:f::7\"\nhome_agent = \"2001:db8:f::a\"\n\
        security = { spi = 256, key = \"0123456789abcdef\" }\n";

    fn mobile(agent: &str, more: &str) -> Result<Config, String> {
        Config::parse(&format!(
            "[agent]\ninterfaces = [\"eth0\"]\n{agent}\n[mobile-node]\n{HOME}{more}\n"
        ))
    }

    fn fixed(tables: &str) -> Result<Config, String> {
        Config::parse(&format!("[agent]\ninterfaces = [\"eth0\"]\n{tables}\n"))
    }

    #[test]
    fn the_least_that_a_file_must_say() {
        let ilnp = |text: &str| match Config::parse(text).unwrap() {
            Config {
                agent,
                role: RoleConfig::Ilnp(ilnp),
                ..
            } => (agent, ilnp),
            other => panic!("{other:?}"),
        };
        let (agent, shim) = ilnp(LEAST);
        assert_eq!(agent.device, "segue0");
        assert_eq!(agent.hold_down, Duration::from_secs(2));
        // the agent decides when it moves
        assert_eq!(shim.trigger, Trigger::Lost);
        assert!(shim.detect_silence);
        assert_eq!(shim.unconfirmed_bytes, Some(UNCONFIRMED_BYTES));
        assert!(agent.seccomp);
        let (_, off) = ilnp(&format!(
            "{LEAST}detect_silence = false\nunconfirmed_bytes = 1000\n"
        ));
        assert!(!off.detect_silence);
        assert_eq!(off.unconfirmed_bytes, Some(1000));
    }

    #[test]
    fn names_are_of_an_ilnp_host_and_a_key_is_a_secret() {
        let with = |more: &str| Config::parse(&format!("{LEAST}{more}\n"));
        assert!(!with("[names]").unwrap().has_secret());
        let look_up_after = |file: &str| match Config::parse(file).unwrap().role {
            RoleConfig::Ilnp(ilnp) => ilnp.look_up_after,
            other => panic!("{other:?}"),
        };
        assert_eq!(look_up_after(&format!("{LEAST}[names]\n")), LOOK_UP_AFTER);
        assert_eq!(look_up_after(&format!("{LEAST}look_up_after = 2\n[names]\n")), 2);
        assert_eq!(look_up_after(LEAST), 3);
        let publish = "[names.publish]\nname = \"mh.example\"\nserver = \"2001:db8::53\"\n\
            key = { name = \"mh\", secret = \"MDEyMzQ1Njc4OWFiY2RlZg==\" }";
        assert!(with(publish).unwrap().has_secret());
        let peer = |name: &str| {
            with(&format!(
                "[[ilnp.peers]]\nnid = \"0:0:0:2\"\nlocators = [\"2001:db8:0:1\"]\nname = \"{name}\""
            ))
        };
        assert!(peer("server.example").is_ok());
        let said = peer("a name").unwrap_err();
        assert!(
            said.starts_with("ilnp.peers.name: `a name`: expected a domain name"),
            "{said}"
        );
        let said = with("[names]\nlisten = [\"[::]:53\"]").unwrap_err();
        assert!(
            said.starts_with("names.listen: [::]:53: expected a loopback"),
            "{said}"
        );
        let said = fixed("[correspondent]\n[names]").unwrap_err();
        assert_eq!(said, "[names]: expected only beside [ilnp]");
    }

    #[test]
    fn a_mobile_node_has_a_key_and_destinations() {
        let config = mobile(
            "identifier = \"2aa:0:0:7\"\ndestinations = [\"2001:db8::/32\", \"::/0\"]",
            "",
        )
        .unwrap();
        assert!(config.has_secret());
        assert_eq!(config.agent.identifier, Some(Nid(0x02aa_0000_0000_0007)));
        let lengths = config.agent.destinations.unwrap();
        assert_eq!(lengths.iter().map(|p| p.length).collect::<Vec<_>>(), [32, 0]);
        let RoleConfig::MobileNode(node) = config.role else {
            panic!("a mobile node")
        };
        assert!(node.detect_silence);
        assert_eq!(node.home_lifetime, HOME_LIFETIME);
        let own = mobile("", "home_lifetime = \"1 h\"\ndetect_silence = false").unwrap();
        let RoleConfig::MobileNode(node) = own.role else {
            panic!("a mobile node")
        };
        assert!(!node.detect_silence);
        assert_eq!(node.home_lifetime, Duration::from_secs(3600));
        let said = |agent: &str, more: &str| mobile(agent, more).unwrap_err();
        assert!(said("", "handoff = \"on-new-router\"").starts_with("mobile-node.handoff: expected none"));
        assert!(
            said("", "lost_advertisements = 2").starts_with("mobile-node.lost_advertisements: expected none")
        );
        assert!(
            said("destinations = [\"2001:db8::1/32\"]", "").contains("`2001:db8::1/32`: expected a prefix")
        );
        assert!(said("destinations = [\"::/129\"]", "").contains("`::/129`: expected a prefix"));
        assert!(said("identifier = \"seven\"", "").contains("`seven`: expected an identifier"));
        assert!(said("identifier = \"0:0:0:0\"", "").starts_with("agent.identifier: expected one"));
        let short = fixed(&format!("[mobile-node]\n{}", HOME.replace("9abcdef", "")));
        assert_eq!(
            short.unwrap_err(),
            "mobile-node.key: expected 16 bytes or more (RFC 4285)"
        );
    }

    #[test]
    fn a_machine_that_stays_is_one_or_both() {
        const AGENT: &str = "[home-agent]\naddress = \"2001:db8:f::a\"\n";
        let config = fixed(AGENT).unwrap();
        assert!(config.has_secret());
        let RoleConfig::Fixed {
            home_agent: Some(agent),
            correspondent: None,
        } = config.role
        else {
            panic!("a home agent alone")
        };
        assert!(agent.duplicate_address_detection.is_zero());
        let config = fixed(&format!(
            "{AGENT}duplicate_address_detection = \"1 s\"\n[correspondent]"
        ))
        .unwrap();
        assert!(matches!(
            config.role,
            RoleConfig::Fixed { home_agent: Some(agent), correspondent: Some(_) }
                if agent.duplicate_address_detection == Duration::from_secs(1)
        ));
        assert!(!fixed("[correspondent]").unwrap().has_secret());
        let said = |tables: &str| fixed(tables).unwrap_err();
        assert!(said("").starts_with("expected a table for a role"));
        assert!(said("[home-agent]").starts_with("home-agent.address = ::: expected a routable"));
        assert!(said("[correspondent]\nmax_lifetime = \"1 h\"").starts_with("correspondent.max_lifetime"));
        assert!(said("[correspondent]\nlifetime = 1").starts_with("line 4: unknown field `lifetime`"));
        let both = said(&format!("[mobile-node]\n{HOME}[correspondent]\n"));
        assert!(
            both.starts_with("[correspondent] beside [mobile-node]: expected one of"),
            "{both}"
        );
        assert!(both.ends_with("by mobile-node.correspondent"), "{both}");
        let both = said(&format!("[ilnp]\nnid = \"0:0:0:1\"\n{AGENT}"));
        assert!(
            both.starts_with("[home-agent] beside [ilnp]: expected one of"),
            "{both}"
        );
        let alone = Config::parse(&format!(
            "[agent]\ninterfaces = [\"eth0\"]\ndestinations = []\n{AGENT}"
        ));
        assert_eq!(
            alone.unwrap_err(),
            "agent.destinations: expected only beside [mobile-node]"
        );
    }

    #[test]
    fn numbers_are_served_to_this_machine_alone() {
        let with = |at: &str| {
            let text = LEAST.replace("[ilnp]", &format!("metrics = \"{at}\"\n[ilnp]"));
            Config::parse(&text).map(|config| config.agent.metrics)
        };
        let address = MetricsAt::Loopback("[::1]:9477".parse().unwrap());
        assert_eq!(with("[::1]:9477"), Ok(Some(address)));
        assert_eq!(
            with("/run/x.sock"),
            Ok(Some(MetricsAt::Path("/run/x.sock".into())))
        );
        for wrong in [
            "[::]:9477",
            "192.0.2.1:9477",
            "[::1]:0",
            "9477",
            "localhost:9477",
            "",
        ] {
            let said = with(wrong).unwrap_err();
            assert!(said.contains("expected a loopback address and port"), "{said}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |text: &str| Config::parse(text).unwrap_err();
        let with = |from: &str, to: &str| said(&LEAST.replace(from, to));
        assert!(with("[\"eth0\", \"wlan0\"]", "[]").starts_with("agent.interfaces: expected 1 to 64"));
        assert!(with("wlan0", "eth0").starts_with("agent.interfaces: eth0 is there twice"));
        assert!(with("wlan0", "segue0").starts_with("agent.interfaces: segue0 is there twice"));
        assert!(with("wlan0", "a/b").starts_with("agent: `a/b` is no name"));
        assert!(with("wlan0", "sixteen-letters!").starts_with("agent: `sixteen-letters!` is no name"));
        assert!(with("0:0:0:1", "0:0:0:0").starts_with("ilnp.nid: expected a node identifier"));
        assert!(with("nid", "mid").starts_with("line 4: unknown field `mid`"));
        assert!(said("").contains("missing field `agent`"));
        let more = |line: &str| said(&format!("{LEAST}{line}\n"));
        assert!(more("identifiers = \"ephemeral\"").starts_with("ilnp.identifiers: expected \"stable\""));
        assert!(more("trigger = \"lost\"").starts_with("ilnp.trigger: expected none"));
        let network =
            more("[[network]]\ninterface = \"eth0\"\n[[network]]\ninterface = \"eth0\"\nwindow = 1");
        assert!(
            network.starts_with("network 2, window: expected bytes"),
            "{network}"
        );
        assert!(more("handoff = \"soon\"").starts_with("line 5: unknown variant `soon`"));
    }

    #[test]
    fn a_window_is_of_machines_whose_connections_pass_the_agent() {
        let network = "[[network]]\ninterface = \"eth0\"\nwindow = 20000\n";
        let refused = fixed(&format!("[correspondent]\n{network}")).unwrap_err();
        assert_eq!(
            refused,
            "network 1, window: expected only beside [ilnp] or [mobile-node]"
        );
        assert!(Config::parse(&format!("{LEAST}{network}")).is_ok());
    }
}
