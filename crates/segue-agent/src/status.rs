//! What an agent says of itself, as values: JSON for programs, a table for people.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};
use std::net::{Ipv6Addr, SocketAddr};

/// Everything that `status` shows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    /// What the agent is: "ilnp", "mobile-node", "home-agent", "correspondent", or the last two with a comma.
    pub role: String,
    /// What applications see of this host, where the agent gives them an address: an identity, or a home address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Ipv6Addr>,
    /// TUN device that carries it, or what the kernel hands over.
    pub device: String,
    /// Seconds since the agent began.
    pub running_s: f64,
    pub interfaces: Vec<InterfaceStatus>,
    pub sessions: Vec<SessionStatus>,
    /// A mobile node's registration with its home agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<RegistrationStatus>,
    /// Those that a mobile node has sent packets to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub correspondents: Vec<CorrespondentStatus>,
    /// What mobile nodes have left here: with the home agent, with a correspondent, or with a mobile node as one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<BindingStatus>,
    /// Prefixes of networks of this host's that were found to drop destination options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks_without_options: Vec<String>,
    /// Where applications ask for names, what is known of them, and what is published of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<NamesStatus>,
    /// The last ones, the newest at the end.
    pub handovers: Vec<HandoverStatus>,
    /// By part and name, those that are not zero.
    pub counters: BTreeMap<String, BTreeMap<String, u64>>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct InterfaceStatus {
    pub name: String,
    /// Whether the machine has it.
    pub is_there: bool,
    /// Whether it is up and has a carrier.
    pub is_up: bool,
    /// Whether packets leave by it.
    pub in_use: bool,
    pub locators: Vec<LocatorStatus>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct LocatorStatus {
    pub locator: String,
    /// The address that the kernel holds for it.
    pub address: Ipv6Addr,
    /// As RFC 6741 section 5.1 has them; "pending" until duplicate address detection is over and the link up.
    pub state: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SessionStatus {
    /// The peer as applications see it.
    pub peer: Ipv6Addr,
    /// "unresolved", "probing", "ilnp" or "plain".
    pub mode: String,
    /// Whether this host called.
    pub called: bool,
    /// The peer's locators, but for those it has withdrawn.
    pub locators: Vec<String>,
    /// "option" or "udp": where the nonce is in what comes from the peer; nothing as long as nothing has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce_in: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct RegistrationStatus {
    pub home_address: Ipv6Addr,
    pub home_agent: Ipv6Addr,
    /// The care-of address in use.
    pub care_of_address: Option<Ipv6Addr>,
    /// The care-of address that the home agent has acknowledged last, while that is true.
    pub acknowledged: Option<Ipv6Addr>,
    /// Seconds for which it is.
    pub lifetime_s: Option<f64>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CorrespondentStatus {
    pub address: Ipv6Addr,
    /// Whether packets to it take the direct way, and not the home agent's tunnel.
    pub optimized: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct BindingStatus {
    pub home_address: Ipv6Addr,
    pub care_of_address: Ipv6Addr,
    pub lifetime_s: f64,
    /// The address here that it was made with.
    pub at: Ipv6Addr,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct NamesStatus {
    /// Where applications ask.
    pub listen: Vec<SocketAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedStatus>,
    pub known: Vec<KnownStatus>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct PublishedStatus {
    pub name: String,
    pub locators: Vec<String>,
    /// AAAA records beside them.
    pub addresses: Vec<Ipv6Addr>,
    /// "nothing yet", "under way", "published", or what is wrong.
    pub state: String,
    /// How long the last update took, where it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_s: Option<f64>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct KnownStatus {
    pub identity: Ipv6Addr,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// "file" or "dns".
    pub source: String,
    /// Where it was when somebody last asked, the best first.
    pub locators: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct HandoverStatus {
    /// Nanoseconds since the Unix epoch when the first peer was told.
    pub time_unix_ns: u64,
    pub from: Option<Ipv6Addr>,
    pub to: Ipv6Addr,
    /// Until every peer had acknowledged; nothing while one has not.
    pub delay_s: Option<f64>,
    /// Peers that could not be told.
    pub failed: Vec<Ipv6Addr>,
}

impl Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (role, device, seconds) = (&self.role, &self.device, self.running_s);
        match &self.registration {
            Some(registration) => write!(f, "{registration}, {device}")?,
            None => match self.identity {
                Some(identity) => write!(f, "identity {identity} on {device}")?,
                None => write!(f, "{role} on {device}")?,
            },
        }
        writeln!(f, ", running for {seconds:.0} s")?;
        let interfaces = self.interfaces.iter().flat_map(|i| {
            let state = match (i.is_there, i.is_up, i.in_use) {
                (false, ..) => "not there",
                (_, false, _) => "down",
                (.., true) => "in use",
                _ => "up",
            };
            let row = |locator: &str, told: &str| [&i.name, state, locator, told].map(str::to_owned);
            let mut rows: Vec<_> = i.locators.iter().map(|l| row(&l.locator, &l.state)).collect();
            if rows.is_empty() {
                rows.push(row("-", "-"));
            }
            rows
        });
        table(f, ["interface", "", "locator", "state"], interfaces.collect())?;
        let sessions = self.sessions.iter().map(|s| {
            let who = if s.called { "this host" } else { "the peer" };
            [
                s.peer.to_string(),
                s.mode.clone(),
                who.to_owned(),
                s.nonce_in.clone().unwrap_or_else(|| "-".to_owned()),
                s.locators.join(" "),
            ]
        });
        table(
            f,
            ["session with", "mode", "begun by", "nonce in", "peer's locators"],
            sessions.collect(),
        )?;
        if !self.networks_without_options.is_empty() {
            let networks = self.networks_without_options.join(" ");
            writeln!(f, "networks that drop destination options: {networks}")?;
        }
        let ways = self.correspondents.iter().map(|c| {
            let way = if c.optimized {
                "direct"
            } else {
                "by the home agent"
            };
            [c.address.to_string(), way.to_owned()]
        });
        table(f, ["correspondent", "way"], ways.collect())?;
        let bindings = self.bindings.iter().map(|b| {
            [
                b.home_address.to_string(),
                b.care_of_address.to_string(),
                format!("{:.0} s", b.lifetime_s),
                b.at.to_string(),
            ]
        });
        table(f, ["bound", "to", "for", "at"], bindings.collect())?;
        if let Some(names) = &self.names {
            write!(f, "{names}")?;
        }
        let handovers = self.handovers.iter().rev().map(|h| {
            let delay = h
                .delay_s
                .map_or_else(|| "under way".to_owned(), |s| format!("{:.1} ms", 1e3 * s));
            let from = h.from.map_or_else(|| "-".to_owned(), |a| a.to_string());
            let failed: Vec<String> = h.failed.iter().map(Ipv6Addr::to_string).collect();
            [from, h.to.to_string(), delay, failed.join(" ")]
        });
        table(
            f,
            ["handover from", "to", "told within", "not told"],
            handovers.collect(),
        )?;
        for (part, counts) in &self.counters {
            let counts: Vec<String> = counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
            writeln!(f, "{part}: {}", counts.join(", "))?;
        }
        Ok(())
    }
}

impl Display for NamesStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let published = self.published.iter().map(|p| {
            let addresses = p.addresses.iter().map(ToString::to_string);
            let places: Vec<String> = p.locators.iter().cloned().chain(addresses).collect();
            let state = match p.took_s {
                Some(seconds) => format!("{}, within {:.1} ms", p.state, 1e3 * seconds),
                None => p.state.clone(),
            };
            [p.name.clone(), places.join(" "), state]
        });
        table(f, ["published", "at", ""], published.collect())?;
        let known = self.known.iter().filter_map(|k| {
            let name = k.name.clone()?;
            Some([
                name,
                k.identity.to_string(),
                k.source.clone(),
                k.locators.join(" "),
            ])
        });
        table(f, ["name", "identity", "from", "locators"], known.collect())
    }
}

impl Display for RegistrationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "home address {}, home agent {}: ",
            self.home_address, self.home_agent
        )?;
        match (self.care_of_address, self.acknowledged, self.lifetime_s) {
            (Some(own), Some(known), Some(seconds)) if own == known => {
                write!(f, "bound to {own} for {seconds:.0} s")
            }
            (Some(own), ..) => write!(f, "{own} is not acknowledged"),
            (None, ..) => write!(f, "no care-of address"),
        }
    }
}

/// Columns as wide as what is in them. Nothing if there are no rows.
fn table<const N: usize>(f: &mut fmt::Formatter<'_>, head: [&str; N], rows: Vec<[String; N]>) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let mut all = vec![head.map(str::to_owned)];
    all.extend(rows);
    let width = |column: usize| all.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in &all {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            write!(line, "{cell:width$}  ")?;
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_columns_under_each_other() {
        let status = Status {
            role: "ilnp".to_owned(),
            registration: None,
            correspondents: Vec::new(),
            bindings: Vec::new(),
            identity: Some(Ipv6Addr::LOCALHOST),
            device: "segue0".to_owned(),
            running_s: 12.4,
            interfaces: vec![
                InterfaceStatus {
                    name: "wlan0".to_owned(),
                    is_there: true,
                    is_up: true,
                    in_use: true,
                    locators: vec![LocatorStatus {
                        locator: "2001:db8:0:1".to_owned(),
                        address: Ipv6Addr::LOCALHOST,
                        state: "active".to_owned(),
                    }],
                },
                InterfaceStatus {
                    name: "eth0".to_owned(),
                    is_there: false,
                    is_up: false,
                    in_use: false,
                    locators: Vec::new(),
                },
            ],
            sessions: Vec::new(),
            networks_without_options: Vec::new(),
            names: Some(NamesStatus {
                listen: Vec::new(),
                published: Some(PublishedStatus {
                    name: "mh.example".to_owned(),
                    locators: vec!["2001:db8:0:1".to_owned()],
                    addresses: vec![Ipv6Addr::LOCALHOST],
                    state: "published".to_owned(),
                    took_s: Some(0.0021),
                }),
                known: vec![KnownStatus {
                    identity: Ipv6Addr::LOCALHOST,
                    name: Some("server.example".to_owned()),
                    source: "dns".to_owned(),
                    locators: vec!["2001:db8:0:2".to_owned(), "2001:db8:0:3".to_owned()],
                }],
            }),
            handovers: vec![HandoverStatus {
                time_unix_ns: 1,
                from: None,
                to: Ipv6Addr::LOCALHOST,
                delay_s: Some(0.0123),
                failed: Vec::new(),
            }],
            counters: [("stack".to_owned(), [("sent".to_owned(), 3)].into_iter().collect())]
                .into_iter()
                .collect(),
        };
        let expected = "\
identity ::1 on segue0, running for 12 s
interface             locator       state
wlan0      in use     2001:db8:0:1  active
eth0       not there  -             -
published   at
mh.example  2001:db8:0:1 ::1  published, within 2.1 ms
name            identity  from  locators
server.example  ::1       dns   2001:db8:0:2 2001:db8:0:3
handover from  to   told within  not told
-              ::1  12.3 ms
stack: sent 3
";
        assert_eq!(status.to_string(), expected);
        let json = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&json).unwrap(), status);
    }
}
