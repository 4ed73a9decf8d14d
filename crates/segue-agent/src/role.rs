//! What each role wants of the machine, and what it shows of itself.

use crate::kernel::{Route, Table};
use crate::status::{BindingStatus, CorrespondentStatus, RegistrationStatus, SessionStatus};
use anyhow::{Context as _, anyhow, bail};
use segue_agent::config::{Machine, Prefix, RoleConfig};
use segue_agent::fixed::Fixed;
use segue_agent::locators::{Locators, Networks};
use segue_agent::names::config::NamesConfig;
use segue_agent::names::{Names, Own};
use segue_agent::paths::Carriage;
use segue_agent::stack::{Role, Stack};
use segue_live::{OsSecrets, Select};
use segue_proto::Instant;
use segue_proto::ilnp::{Ilnp, Mode};
use segue_proto::mip6::{BindingCache, EXTENSION_OVERHEAD, HomeAgent, MobileNode, TUNNEL_OVERHEAD};
use segue_proto::random::SecretRng;
use segue_proto::shim::Shim as _;
use segue_wire::ilnp::{Locator, Nid};
use segue_wire::ilnp_udp::LONGER_BY;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// A role, before anything is set up for it.
pub(crate) struct Setup {
    /// What the agent is.
    pub stack: Stack,
    /// Its name, as the file has it.
    pub name: &'static str,
    /// Where it has addresses of its own.
    pub locators: Locators,
    /// The key of the file that says which identifier they have.
    pub identifier_key: &'static str,
    /// Bytes by which packets grow on their way down.
    pub overhead: u32,
    /// What the kernel sends to the device.
    pub destinations: Destinations,
    /// Names, of an ILNPv6 host.
    pub names: Option<Names>,
}

/// What the kernel sends to the device.
pub(crate) enum Destinations {
    /// Packets to identities, which have this prefix.
    Identities(Ipv6Addr),
    /// Packets from the home address; and those for which it is chosen while the home agent knows where the node is.
    Home(Ipv6Addr, Vec<Prefix>),
    /// Packets to home addresses while they are bound.
    Bound,
}

impl Setup {
    /// # Errors
    /// One line, if something is wrong with the file or the machine.
    pub fn new(machine: &Machine, role: RoleConfig, names: Option<&NamesConfig>) -> anyhow::Result<Self> {
        let secrets = || -> anyhow::Result<Box<dyn SecretRng>> {
            let secrets = OsSecrets::new().context("randomness of the operating system")?;
            Ok(Box::new(secrets))
        };
        let interfaces = machine.interfaces.len();
        match role {
            RoleConfig::Ilnp(config) => {
                let (nid, prefix) = (config.nid, config.identity_prefix.address(Nid(0)));
                let own = Own {
                    nid,
                    identity_prefix: config.identity_prefix,
                };
                let names = Names::new(names, own, &config.peers, [secrets()?, secrets()?]);
                let names = names.map_err(|message| anyhow!("{message}"))?;
                let shim = Ilnp::new(*config, secrets()?).map_err(|message| anyhow!("ilnp.{message}"))?;
                Ok(Self {
                    name: "ilnp",
                    overhead: shim.overhead(Ipv6Addr::UNSPECIFIED) + LONGER_BY as u32,
                    locators: Locators::new(nid, Networks::All, interfaces),
                    identifier_key: "ilnp.nid",
                    destinations: Destinations::Identities(prefix),
                    stack: {
                        let mut stack = Stack::new(Role::Ilnp(Box::new(shim)));
                        if machine.udp_port != 0 {
                            stack.carry_in_udp(machine.udp_port);
                        }
                        stack
                    },
                    names: Some(names),
                })
            }
            RoleConfig::MobileNode(config) => {
                let home = config.home_address;
                let nid = machine.identifier.unwrap_or_else(|| Nid::of(home));
                let networks = Networks::Except(Locator::of(home));
                let everywhere = vec![Prefix {
                    address: Ipv6Addr::UNSPECIFIED,
                    length: 0,
                }];
                let destinations = machine.destinations.clone().unwrap_or(everywhere);
                let shim = MobileNode::new(*config, secrets()?);
                Ok(Self {
                    name: "mobile-node",
                    overhead: shim.overhead(Ipv6Addr::UNSPECIFIED),
                    locators: Locators::new(nid, networks, interfaces),
                    identifier_key: "agent.identifier",
                    destinations: Destinations::Home(home, destinations),
                    stack: Stack::new(Role::MobileNode(Box::new(shim))),
                    names: None,
                })
            }
            RoleConfig::Fixed {
                home_agent,
                correspondent,
            } => {
                let (name, overhead) = match (&home_agent, &correspondent) {
                    (Some(_), Some(_)) => ("home-agent,correspondent", TUNNEL_OVERHEAD),
                    (Some(_), None) => ("home-agent", TUNNEL_OVERHEAD),
                    _ => ("correspondent", EXTENSION_OVERHEAD),
                };
                if home_agent.is_some() && !forwards() {
                    bail!(
                        "home-agent: net.ipv6.conf.all.forwarding is 0: expected 1, since the kernel forwards what comes out of tunnels"
                    );
                }
                let address = home_agent.as_ref().map(|h| h.address);
                let (nid, networks) = address.map_or((Nid(0), Networks::None), |address| {
                    (Nid::of(address), Networks::Only(Locator::of(address)))
                });
                let home_agent = home_agent.map(|config| HomeAgent::new(*config));
                let fixed = Fixed::new(home_agent, correspondent.map(|config| *config), secrets()?);
                Ok(Self {
                    name,
                    overhead,
                    locators: Locators::new(nid, networks, interfaces),
                    identifier_key: "home-agent.address",
                    destinations: Destinations::Bound,
                    stack: Stack::new(Role::Fixed(Box::new(fixed))),
                    names: None,
                })
            }
        }
    }
}

impl Destinations {
    /// The home address, which has rules of routing.
    pub fn home_address(&self) -> Option<Ipv6Addr> {
        match self {
            Self::Home(address, _) => Some(*address),
            _ => None,
        }
    }

    /// The routes to the device that there are to be now.
    pub fn routes(&self, role: &Role) -> BTreeSet<Route> {
        let to = |table, prefix, length| Route {
            table,
            prefix,
            length,
        };
        match (self, role) {
            (Self::Identities(prefix), _) => [to(Table::Main, *prefix, 64)].into(),
            (Self::Home(_, destinations), Role::MobileNode(shim)) => {
                let chosen = destinations.iter().filter(|_| shim.registered().is_some());
                let chosen = chosen.map(|d| to(Table::Chosen, d.address, d.length));
                chosen
                    .chain([to(Table::From, Ipv6Addr::UNSPECIFIED, 0)])
                    .collect()
            }
            (_, Role::Fixed(fixed)) => {
                let bound = fixed.bindings().map(|b| b.home_address);
                bound.map(|address| to(Table::Main, address, 128)).collect()
            }
            _ => BTreeSet::new(),
        }
    }
}

/// Whether this machine is a router; it is believed to be where that cannot be read.
fn forwards() -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "the agent looks at the machine that it is on"
    )]
    let said = std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding");
    said.map_or(true, |text| text.trim() != "0")
}

/// Which packets that arrive are the agent's, if its addresses have this identifier.
pub(crate) fn selected(role: &Role, identifier: Nid) -> Vec<Select> {
    match role {
        Role::Ilnp(_) | Role::MobileNode(_) => vec![Select::Identifier(identifier.0)],
        Role::Fixed(fixed) => {
            let home = fixed.home_agent_address().map(Select::Address);
            let own = fixed.correspondent_addresses().map(Select::Mobility);
            home.into_iter().chain(own).collect()
        }
    }
}

/// What a role shows of an address of the agent's: its state, as the role has it.
pub(crate) fn state_of_address(role: &Role, interface: usize, address: Ipv6Addr) -> Option<String> {
    match role {
        Role::Ilnp(shim) => {
            let known = shim
                .locators()
                .find(|l| usize::from(l.interface.0) == interface && l.locator == Locator::of(address));
            known.map(|l| format!("{:?}", l.state).to_lowercase())
        }
        Role::MobileNode(shim) if shim.care_of_address() == Some(address) => Some("active".to_owned()),
        Role::MobileNode(shim) => shim.is_assigned(address).then(|| "valid".to_owned()),
        Role::Fixed(_) => Some("active".to_owned()),
    }
}

/// What a role shows of itself.
#[derive(Default)]
pub(crate) struct Shown {
    pub sessions: Vec<SessionStatus>,
    pub registration: Option<RegistrationStatus>,
    pub correspondents: Vec<CorrespondentStatus>,
    pub bindings: Vec<BindingStatus>,
}

/// What a role shows of itself.
pub(crate) fn show(stack: &Stack, now: Instant) -> Shown {
    match stack.role() {
        Role::Ilnp(shim) => Shown {
            sessions: sessions(stack, shim),
            ..Shown::default()
        },
        Role::MobileNode(shim) => Shown {
            registration: Some(RegistrationStatus {
                home_address: shim.identity(),
                home_agent: shim.home_agent(),
                care_of_address: shim.care_of_address(),
                acknowledged: shim.registered(),
                lifetime_s: shim
                    .registered_until()
                    .map(|until| until.since(now).as_secs_f64()),
            }),
            correspondents: shim
                .correspondents()
                .map(|(address, optimized)| CorrespondentStatus { address, optimized })
                .collect(),
            bindings: bindings_of(shim.binding_cache(), shim.identity(), now),
            ..Shown::default()
        },
        Role::Fixed(fixed) => Shown {
            bindings: fixed
                .bindings()
                .map(|b| BindingStatus {
                    home_address: b.home_address,
                    care_of_address: b.care_of_address,
                    lifetime_s: b.expires.since(now).as_secs_f64(),
                    at: b.at,
                })
                .collect(),
            ..Shown::default()
        },
    }
}

fn bindings_of(cache: &BindingCache, at: Ipv6Addr, now: Instant) -> Vec<BindingStatus> {
    let all = cache.iter().map(|(home_address, binding)| BindingStatus {
        home_address,
        care_of_address: binding.care_of_address,
        lifetime_s: binding.expires.since(now).as_secs_f64(),
        at,
    });
    all.collect()
}

fn sessions(stack: &Stack, shim: &Ilnp) -> Vec<SessionStatus> {
    let all = shim.correspondents().map(|peer| SessionStatus {
        peer: peer.identity(),
        mode: match peer.mode() {
            Mode::Unresolved => "unresolved",
            Mode::Probing => "probing",
            Mode::Ilnp => "ilnp",
            Mode::Plain { .. } => "plain",
        }
        .to_owned(),
        called: peer.is_called(),
        locators: peer
            .locators()
            .iter()
            .filter(|l| !l.withdrawn)
            .map(|l| l.locator.to_string())
            .collect(),
        nonce_in: stack
            .carriage_of(peer.nid(), peer.locators().iter().map(|l| l.locator))
            .map(|carriage| {
                match carriage {
                    Carriage::Option => "option",
                    Carriage::Udp => "udp",
                }
                .to_owned()
            }),
    });
    all.collect()
}
