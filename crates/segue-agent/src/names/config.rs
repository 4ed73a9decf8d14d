//! `[names]` of the agent's file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use segue_proto::Duration;
use segue_proto::location::tsig::{Algorithm, Key};
use segue_proto::location::{ClientConfig, Name, PORT, parse_name};
use serde::{Deserialize, Deserializer, de};
use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// `[names]`: where applications ask, who is asked for what the agent does not know, and what is published of this host.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamesConfig {
    /// Loopback addresses and ports where applications ask, over UDP and TCP.
    #[serde(default = "listen")]
    pub listen: Vec<SocketAddr>,
    /// Resolvers that are asked, in this order: as `"2001:db8::53"`, `"[2001:db8::53]:5353"` or `"192.0.2.53"`. Without one,
    /// only names of the file are answered.
    #[serde(default)]
    pub upstream: Vec<Server>,
    /// What is published of this host, if anything.
    #[serde(default)]
    pub publish: Option<Publish>,
}

/// The name of this host, which the agent keeps at its locators by dynamic update (RFC 2136).
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// The name.
    #[serde(deserialize_with = "name")]
    pub name: Name,
    /// The zone that it is in: what is behind its first dot if the file says nothing.
    #[serde(default, deserialize_with = "optional_name")]
    pub zone: Option<Name>,
    /// The primary server of the zone.
    pub server: Server,
    /// Signs the updates (RFC 8945).
    pub key: TsigKey,
    /// Time to live of the records, whole seconds: for so long others may go on looking where the host was.
    #[serde(default = "ttl")]
    pub ttl: Duration,
    /// Whether the kernel's own addresses are published too, as AAAA records, for those who do not speak ILNP.
    #[serde(default)]
    pub addresses: bool,
}

/// A server and its port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Server {
    /// Its address; that of IPv4 is written IPv4-mapped (RFC 4291 section 2.5.5.2).
    pub address: Ipv6Addr,
    /// Its port.
    pub port: u16,
}

/// A key that may change the host's records.
#[derive(Clone, PartialEq, Debug)]
pub struct TsigKey(pub Key);

/// The port where applications look for a resolver on this machine.
fn listen() -> Vec<SocketAddr> {
    vec![(Ipv6Addr::LOCALHOST, PORT).into()]
}

fn ttl() -> Duration {
    Duration::from_secs(5)
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    parse_name(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

fn optional_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Name>, D::Error> {
    name(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for Server {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let with_port = text.parse::<SocketAddr>();
        let found = with_port.or_else(|_| text.parse::<IpAddr>().map(|address| (address, PORT).into()));
        let found: SocketAddr = found.map_err(|_| {
            de::Error::custom(format!(
                "`{text}`: expected an address with or without a port, such as \"2001:db8::53\" or \"[2001:db8::53]:53\""
            ))
        })?;
        Ok(Self::of(found))
    }
}

impl Server {
    /// From an address of a socket.
    #[must_use]
    pub fn of(at: SocketAddr) -> Self {
        let address = match at.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        Self {
            address,
            port: at.port(),
        }
    }

    /// As the address of a socket: of IPv4 where it is mapped.
    #[must_use]
    pub fn socket_address(self) -> SocketAddr {
        match self.address.to_ipv4_mapped() {
            Some(address) => (address, self.port).into(),
            None => (self.address, self.port).into(),
        }
    }
}

impl Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket_address().fmt(f)
    }
}

/// `key = { name = "...", secret = "..." }`, as it is in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyText {
    name: String,
    #[serde(default)]
    algorithm: Option<String>,
    secret: String,
}

impl<'de> Deserialize<'de> for TsigKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = KeyText::deserialize(deserializer)?;
        let name = parse_name(&text.name).map_err(de::Error::custom)?;
        let algorithm = match &text.algorithm {
            None => Algorithm::default(),
            Some(named) => Algorithm::from_name(named).ok_or_else(|| {
                de::Error::custom(format!(
                    "key.algorithm: `{named}`: expected hmac-sha256, hmac-sha384 or hmac-sha512"
                ))
            })?,
        };
        let secret = STANDARD.decode(&text.secret).ok();
        let secret = secret.filter(|s| s.len() >= LEAST_SECRET).ok_or_else(|| {
            de::Error::custom(format!(
                "key.secret: expected base64 of {LEAST_SECRET} bytes or more, as tsig-keygen writes it"
            ))
        })?;
        Ok(Self(Key::new(name, algorithm, secret)))
    }
}

impl NamesConfig {
    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check(&self) -> Result<(), String> {
        if self.listen.is_empty() || self.listen.len() > MOST_LISTENERS {
            return Err(format!(
                "listen: expected 1 to {MOST_LISTENERS} loopback addresses"
            ));
        }
        if let Some(open) = self.listen.iter().find(|at| !at.ip().is_loopback()) {
            return Err(format!(
                "listen: {open}: expected a loopback address such as \"[::1]:53\": the agent is no resolver for others"
            ));
        }
        if self.upstream.len() > MOST_SERVERS {
            return Err(format!("upstream: expected at most {MOST_SERVERS} servers"));
        }
        if let Some(own) = self
            .upstream
            .iter()
            .find(|s| self.listen.contains(&s.socket_address()))
        {
            return Err(format!(
                "upstream: {own}: expected another server than the agent itself"
            ));
        }
        if let Some(publish) = &self.publish {
            publish
                .client()
                .check()
                .map_err(|error| format!("publish.{error}"))?;
            let ttl = publish.ttl.as_nanos();
            if ttl < 1_000_000_000 || !ttl.is_multiple_of(1_000_000_000) {
                return Err("publish.ttl: expected whole seconds, 1 s at least".to_owned());
            }
        }
        Ok(())
    }
}

impl Publish {
    /// The zone of the name.
    #[must_use]
    pub fn zone(&self) -> Name {
        let parent = || self.name.parent().unwrap_or_else(Name::root_bytes);
        self.zone.clone().unwrap_or_else(parent)
    }

    /// The client that updates the name.
    #[must_use]
    pub fn client(&self) -> ClientConfig {
        ClientConfig {
            record: Some((self.zone(), self.name.clone())),
            key: Some(self.key.0.clone()),
            ttl: self.ttl,
            retry_initial: RETRY_INITIAL,
            retry_max: RETRY_MAX,
            ..ClientConfig::new(vec![(self.server.address, self.server.port)])
        }
    }
}

/// Places to listen at.
const MOST_LISTENERS: usize = 8;
/// Servers that are asked.
const MOST_SERVERS: usize = 8;
/// Least length of a secret, bytes: half of what RFC 8945 section 8 recommends for HMAC-SHA-256.
const LEAST_SECRET: usize = 16;
/// Who has just moved may have no route yet: the first update is soon sent again.
const RETRY_INITIAL: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(8);

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "key = { name = \"mh-key\", secret = \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\" }";

    fn read(text: &str) -> Result<NamesConfig, String> {
        let config: NamesConfig = toml::from_str(text).map_err(|e| e.message().to_owned())?;
        config.check()?;
        Ok(config)
    }

    fn publish(more: &str) -> String {
        format!("[publish]\nname = \"mh.example.org\"\nserver = \"2001:db8::53\"\n{KEY}\n{more}\n")
    }

    #[test]
    fn what_a_file_may_leave_out() {
        let config = read("").unwrap();
        assert_eq!(config.listen, ["[::1]:53".parse().unwrap()]);
        assert_eq!((config.upstream.len(), config.publish), (0, None));
        let config = read(&format!(
            "upstream = [\"192.0.2.1\", \"[2001:db8::1]:5353\"]\n{}",
            publish("")
        ));
        let config = config.unwrap();
        let shown: Vec<String> = config.upstream.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["192.0.2.1:53", "[2001:db8::1]:5353"]);
        let publish = config.publish.unwrap();
        assert_eq!(publish.zone().to_string(), "example.org");
        assert_eq!(publish.ttl, Duration::from_secs(5));
        assert_eq!(publish.client().servers, [("2001:db8::53".parse().unwrap(), 53)]);
        // a key is not for logs
        assert!(!format!("{publish:?}").contains("48, 49"), "{publish:?}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |text: &str| read(text).unwrap_err();
        assert!(
            said("listen = [\"[2001:db8::1]:53\"]")
                .starts_with("listen: [2001:db8::1]:53: expected a loopback")
        );
        assert!(said("listen = []").starts_with("listen: expected 1 to 8"));
        assert!(said("upstream = [\"::1\"]").starts_with("upstream: [::1]:53: expected another server"));
        assert!(said("upstream = [\"dns\"]").starts_with("`dns`: expected an address"));
        assert!(said(&publish("ttl = \"1500 ms\"")).starts_with("publish.ttl: expected whole seconds"));
        assert!(said(&publish("ttl = \"0 s\"")).starts_with("publish.ttl: expected whole seconds"));
        assert!(
            said(&publish("zone = \"example.com\""))
                .contains("mh.example.org is not in the zone example.com")
        );
        assert!(
            said(&publish("").replace("mh-key\"", "mh-key\", algorithm = \"hmac-md5\"")).contains("hmac-md5")
        );
        assert!(
            said(&publish("").replace("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "MDEy"))
                .contains("secret")
        );
        assert!(said(&publish("").replace("mh.example.org", "a name")).contains("expected a domain name"));
    }
}
