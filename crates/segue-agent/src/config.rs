//! The agent's file.

use segue_proto::Duration;
use segue_proto::ilnp::{Config as Shim, Identifiers, Trigger};
use serde::Deserialize;
use std::path::PathBuf;

/// The file: what concerns the machine, and a table for each role.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The machine.
    pub agent: Machine,
    /// The host's side of ILNPv6: the keys of [`segue_proto::ilnp::Config`], where `detect_silence` is on unless the file says
    /// otherwise, and `trigger` is the agent's.
    pub ilnp: Shim,
}

/// What the agent uses of the machine, and when it moves.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Ethernet interfaces (Wi-Fi included) by name, the one to use first where there is a choice. One that is not there yet is
    /// waited for.
    pub interfaces: Vec<String>,
    /// TUN device that carries the identity.
    #[serde(default = "device")]
    pub device: String,
    /// Control socket. Who may write to it may use it: it is made for its owner alone.
    #[serde(default = "socket")]
    pub socket: PathBuf,
    /// Who the agent is once everything is set up, by name; who started it if there is none. It keeps two capabilities,
    /// `CAP_NET_ADMIN` and `CAP_NET_RAW`, whoever it is.
    #[serde(default)]
    pub user: Option<String>,
    /// For how long a better interface must have been usable before it is moved to.
    #[serde(default = "hold_down")]
    pub hold_down: Duration,
}

fn device() -> String {
    "segue0".to_owned()
}

fn socket() -> PathBuf {
    DEFAULT_SOCKET.into()
}

fn hold_down() -> Duration {
    Duration::from_secs(2)
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
        let mut config: Self = toml::from_str(text).map_err(|error| of_toml(text, &error))?;
        config.check()?;
        config.ilnp.trigger = Trigger::Lost;
        // a machine is in networks that nobody has tried
        let given: toml::Table = toml::from_str(text).map_err(|error| of_toml(text, &error))?;
        let of_shim = given.get("ilnp").and_then(toml::Value::as_table);
        config.ilnp.detect_silence |= of_shim.is_some_and(|keys| !keys.contains_key("detect_silence"));
        Ok(config)
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
        self.ilnp.check().map_err(|message| format!("ilnp.{message}"))?;
        if self.ilnp.trigger != Trigger::default() {
            return Err(
                "ilnp.trigger: expected none: agent.interfaces and agent.hold_down say when to move"
                    .to_owned(),
            );
        }
        if self.ilnp.identifiers != Identifiers::Stable {
            return Err("ilnp.identifiers: expected \"stable\": the agent has no ephemeral ones".to_owned());
        }
        Ok(())
    }
}

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

    #[test]
    fn the_least_that_a_file_must_say() {
        let config = Config::parse(LEAST).unwrap();
        assert_eq!(config.agent.device, "segue0");
        assert_eq!(config.agent.hold_down, Duration::from_secs(2));
        // the agent decides when it moves
        assert_eq!(config.ilnp.trigger, Trigger::Lost);
        assert!(config.ilnp.detect_silence);
        let off = Config::parse(&format!("{LEAST}detect_silence = false\n")).unwrap();
        assert!(!off.ilnp.detect_silence);
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
        assert!(more("handoff = \"soon\"").starts_with("line 5: unknown variant `soon`"));
    }
}
