//! Hosts with ILNPv6 under SCTP: found by the directory, and beside hosts that know nothing of it.

use segue_proto::app::{self, AppEvent, Kind, Role, Transport};
use segue_proto::host::{
    Addressing, Host, HostConfig, HostEvent, InterfaceConfig, LocationConfig, ShimConfig,
};
use segue_proto::ilnp;
use segue_proto::location::tsig::{Algorithm, Key};
use segue_proto::location::{
    ClientConfig, Grant, Identity, KeyConfig, Name, PORT, ServerConfig, ZoneConfig, parse_name,
};
use segue_proto::random::Stream;
use segue_proto::shim::ShimEvent;
use segue_proto::units::Bytes;
use segue_proto::{Duration, Instant, InterfaceId, sctp, tcp};
use segue_wire::Packet;
use segue_wire::icmpv6::nd::LinkLayerAddress;
use segue_wire::ilnp::{Locator, Nid};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

const PREFIX: u64 = 0xfd53_6567_7565_0001;
const DELAY: Duration = Duration::from_millis(5);

fn locator(n: u16) -> Locator {
    Locator(0x2001_0db8_0000_0000 | u64::from(n))
}

fn nid(n: usize) -> Nid {
    Nid(0x0200_00ff_fe00_0001 + n as u64)
}

fn identity(n: usize) -> Ipv6Addr {
    Locator(PREFIX).address(nid(n))
}

fn zone() -> Name {
    parse_name("loc.example").expect("a name")
}

fn key() -> Key {
    Key::new(
        parse_name("key").expect("a name"),
        Algorithm::HmacSha256,
        vec![7; 32],
    )
}

/// Host `n` at locator `n`.
fn host(n: usize) -> HostConfig {
    HostConfig {
        name: format!("host{n}"),
        interfaces: vec![InterfaceConfig {
            link_layer: LinkLayerAddress([2, 0, 0, 0, 0, n as u8]),
            addressing: Addressing::Static(vec![locator(n as u16).address(nid(n))]),
        }],
        sctp: sctp::Config::default(),
        tcp: tcp::Config::default(),
        port: 1000,
        applications: Vec::new(),
        sigma: None,
        shim: ShimConfig::None,
        location: LocationConfig::default(),
    }
}

fn with_ilnp(n: usize) -> HostConfig {
    HostConfig {
        shim: ShimConfig::Ilnp(Box::new(ilnp::Config {
            identity_prefix: Locator(PREFIX),
            ..ilnp::Config::new(nid(n))
        })),
        ..host(n)
    }
}

fn bulk_to(peer: Ipv6Addr, transport: Transport) -> Vec<app::Config> {
    vec![app::Config {
        transport,
        role: Role::Connect {
            peer: vec![peer],
            port: 1000,
            start: Duration::from_millis(100),
        },
        kind: Kind::Bulk {
            total: Some(Bytes::new(100_000)),
            message: None,
        },
    }]
}

fn sink(transport: Transport) -> Vec<app::Config> {
    vec![app::Config {
        transport,
        role: Role::Listen,
        kind: Kind::Sink,
    }]
}

struct Net {
    now: Instant,
    hosts: Vec<Host>,
    on_the_way: BTreeMap<(Instant, u64), Packet>,
    sequence: u64,
    events: Vec<(usize, HostEvent)>,
}

impl Net {
    fn new(configs: Vec<HostConfig>) -> Self {
        let hosts = configs.into_iter().enumerate().map(|(n, config)| {
            let secrets = Box::new(Stream::new(1, &format!("secrets {n}")));
            Host::new(config, 1, secrets).expect("a host")
        });
        let mut net = Self {
            now: Instant::ZERO,
            hosts: hosts.collect(),
            on_the_way: BTreeMap::new(),
            sequence: 0,
            events: Vec::new(),
        };
        for n in 0..net.hosts.len() {
            net.hosts[n].handle_timeout(Instant::ZERO);
            net.drain(n);
        }
        net
    }

    fn drain(&mut self, n: usize) {
        while let Some(transmit) = self.hosts[n].poll_transmit(self.now) {
            let bytes = transmit.packet.to_vec();
            assert_eq!(
                Locator::of(transmit.packet.ip.source),
                locator(n as u16),
                "no identity is on the wire"
            );
            let packet = Packet::parse(&bytes).expect("a packet");
            self.sequence += 1;
            self.on_the_way.insert((self.now + DELAY, self.sequence), packet);
        }
        while let Some(event) = self.hosts[n].poll_event() {
            self.events.push((n, event));
        }
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let packet = self.on_the_way.keys().next().map(|k| k.0);
            let timers = self.hosts.iter_mut().filter_map(Host::poll_timeout);
            let Some(next) = timers.chain(packet).min().filter(|at| *at <= until) else {
                break;
            };
            self.now = next.max(self.now);
            while let Some(entry) = self.on_the_way.first_entry().filter(|e| e.key().0 <= next) {
                let packet = entry.remove();
                let to = Locator::of(packet.ip.destination);
                if let Some(n) = (0..self.hosts.len()).find(|n| locator(*n as u16) == to) {
                    self.hosts[n].handle_packet(self.now, InterfaceId(0), packet);
                    self.drain(n);
                }
            }
            for n in 0..self.hosts.len() {
                if self.hosts[n].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.hosts[n].handle_timeout(self.now);
                    self.drain(n);
                }
            }
        }
        self.now = until;
    }

    fn completed(&self, n: usize) -> bool {
        let done = |event: &HostEvent| {
            matches!(
                event,
                HostEvent::App {
                    event: AppEvent::TransferComplete { bytes: 100_000 },
                    ..
                }
            )
        };
        self.events.iter().any(|(own, event)| *own == n && done(event))
    }

    fn count(&self, n: usize, name: &str) -> u64 {
        let counters = self.hosts[n].shim().expect("a shim").counters();
        counters.iter().find(|c| c.0 == name).expect("a counter").1
    }
}

/// A node publishes its locators (RFC 6742) by dynamic update, and is called at its identity by one that looks it up.
#[test]
fn a_peer_is_found_by_the_directory() {
    for transport in [Transport::Sctp, Transport::Tcp] {
        let server = ServerConfig::new(
            vec![ZoneConfig::new(zone(), vec![locator(2).address(nid(2))]).expect("a zone")],
            vec![KeyConfig {
                key: key(),
                grants: vec![Grant {
                    name: zone(),
                    below: true,
                }],
            }],
        );
        let client = |n: usize| LocationConfig {
            client: Some(ClientConfig {
                record: Some((
                    zone(),
                    Identity::HomeAddress(identity(n)).name(&zone()).expect("a name"),
                )),
                key: Some(key()),
                ..ClientConfig::new(vec![(locator(2).address(nid(2)), PORT)])
            }),
            directory: Some(zone()),
            ..LocationConfig::default()
        };
        let mut net = Net::new(vec![
            HostConfig {
                applications: bulk_to(identity(1), transport),
                location: client(0),
                ..with_ilnp(0)
            },
            HostConfig {
                applications: sink(transport),
                location: client(1),
                ..with_ilnp(1)
            },
            HostConfig {
                location: LocationConfig {
                    server: Some(server),
                    ..LocationConfig::default()
                },
                ..host(2)
            },
        ]);
        net.run_for(Duration::from_secs(10));
        assert!(net.completed(0));
        assert_eq!(net.count(0, "look_ups"), 1);
        assert_eq!(net.count(1, "look_ups"), 0, "who is called knows where from");
        assert!(net.count(1, "ilnp_received") > 70);
        assert_eq!(
            net.hosts[1].application(0).expect("the sink").bytes_received,
            100_000
        );
    }
}

/// A host with ILNPv6 calls one that has never heard of it, which reports the option (RFC 8200 section 4.2; RFC 6741
/// section 10).
#[test]
fn a_peer_without_ilnp_is_talked_to_in_plain_ipv6() {
    for transport in [Transport::Sctp, Transport::Tcp] {
        let real = locator(1).address(nid(1));
        let mut net = Net::new(vec![
            HostConfig {
                applications: bulk_to(real, transport),
                ..with_ilnp(0)
            },
            HostConfig {
                applications: sink(transport),
                ..host(1)
            },
        ]);
        net.run_for(Duration::from_secs(20));
        let fell_back = (0, HostEvent::Shim(ShimEvent::FellBack { peer: real }));
        assert!(net.events.contains(&fell_back));
        assert!(net.completed(0));
        assert_eq!(net.count(0, "ilnp_sent"), 1);
        assert_eq!(net.hosts[1].counters().not_understood, 1);
    }
}

/// And the other way: it is called by one, in plain IPv6, which stays that.
#[test]
fn a_caller_without_ilnp_is_answered_in_plain_ipv6() {
    for transport in [Transport::Sctp, Transport::Tcp] {
        let real = locator(1).address(nid(1));
        let mut net = Net::new(vec![
            HostConfig {
                applications: bulk_to(real, transport),
                ..host(0)
            },
            HostConfig {
                applications: sink(transport),
                ..with_ilnp(1)
            },
        ]);
        net.run_for(Duration::from_secs(20));
        assert!(net.completed(0));
        assert_eq!(net.count(1, "ilnp_received"), 0);
    }
}

#[test]
fn what_is_wrong_with_the_shim_is_said() {
    let config = HostConfig {
        shim: ShimConfig::Ilnp(Box::default()),
        ..host(0)
    };
    let error = Host::new(config, 1, Box::new(Stream::new(1, "secrets")))
        .err()
        .expect("refused");
    assert_eq!(
        error.to_string(),
        "host host0: nid: expected a node identifier such as \"0:0:0:1\", not zero"
    );
}
