use super::*;
use crate::contract::{InterfaceId, LocalAddress};
use crate::nd::{AdvertisedPrefix, HostConfig, RouterConfig, RouterNd, form_address};
use crate::random::Stream;
use crate::time::{Duration, Instant};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::nd::NeighborAdvertisement;

mod messages;
mod readdressing;

const IF: InterfaceId = InterfaceId(1);
const MAC: LinkLayerAddress = LinkLayerAddress([0x02, 0, 0, 0, 0, 0x11]);
const ROUTER: LinkLayerAddress = LinkLayerAddress([0x02, 0, 0, 0, 0, 0x22]);
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 0);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// An interface and its access router, joined by a wire without delay that can lose packets.
struct Link {
    host: Acquisition,
    router: RouterNd,
    server: Dhcpv6Server,
    now: Instant,
    log: Vec<(Instant, String)>,
}

impl Link {
    /// The router advertises every 100 ms. The link comes up at zero.
    fn new(method: &Method, server: ServerConfig) -> Self {
        let config = RouterConfig {
            min_rtr_adv_interval: ms(100),
            max_rtr_adv_interval: ms(100),
            managed: matches!(method, Method::Dhcpv6 { .. }),
            prefixes: vec![AdvertisedPrefix {
                autonomous: !matches!(method, Method::Dhcpv6 { .. }),
                ..AdvertisedPrefix::new(PREFIX)
            }],
            ..RouterConfig::default()
        };
        let stream = Stream::new(7, "address test");
        let mut host = Acquisition::new(IF, MAC, method, &stream);
        host.handle_link_up(at(0));
        Self {
            host,
            router: RouterNd::new(at(0), InterfaceId(0), ROUTER, config, stream),
            server: Dhcpv6Server::new(InterfaceId(0), ROUTER, PREFIX, server),
            now: at(0),
            log: Vec::new(),
        }
    }

    /// Runs until `end`; `lost` says which packets are lost. Events and DHCPv6 messages are logged.
    fn run(&mut self, end: Instant, mut lost: impl FnMut(&Packet) -> bool) {
        loop {
            let now = self.now;
            let mut quiet = true;
            while let Some(t) = self.host.poll_transmit(now) {
                quiet = false;
                self.note(&t.packet);
                if !lost(&t.packet) {
                    self.router.handle_packet(now, &t.packet);
                    self.server.handle_packet(now, &t.packet);
                }
            }
            while let Some(t) = self
                .router
                .poll_transmit(now)
                .or_else(|| self.server.poll_transmit(now))
            {
                quiet = false;
                self.note(&t.packet);
                if !lost(&t.packet) {
                    self.host.handle_packet(now, &t.packet);
                }
            }
            while let Some(event) = self.host.poll_event() {
                let text = match event {
                    AddressEvent::Ready(l) => format!("ready {}", l.address),
                    AddressEvent::Lost(l) => format!("lost {}", l.address),
                    AddressEvent::Expired(l) => format!("expired {}", l.address),
                    AddressEvent::Refused(l) => format!("refused {}", l.address),
                    AddressEvent::Deprecated(l) => format!("deprecated {}", l.address),
                    AddressEvent::RouterHeard { .. } => continue,
                };
                self.log.push((now, text));
            }
            if !quiet {
                continue;
            }
            let timers = [
                self.host.poll_timeout(),
                self.router.poll_timeout(),
                self.server.poll_timeout(),
            ];
            let next = timers
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(Instant::MAX)
                .max(now);
            if next > end {
                return;
            }
            self.now = next;
            self.host.handle_timeout(next);
            self.router.handle_timeout(next);
            self.server.handle_timeout(next);
        }
    }

    fn note(&mut self, packet: &Packet) {
        let message = message_to(packet, SERVER).or_else(|| message_to(packet, CLIENT));
        if let Some(message) = message {
            self.log.push((self.now, format!("{:?}", message.message_type)));
        }
    }

    fn words(&self) -> Vec<&str> {
        self.log.iter().map(|l| l.1.as_str()).collect()
    }
}

const SERVER: u16 = segue_wire::dhcpv6::SERVER_PORT;
const CLIENT: u16 = segue_wire::dhcpv6::CLIENT_PORT;

fn prompt_nd(dup_addr_detect_transmits: u32) -> HostConfig {
    HostConfig {
        dup_addr_detect_transmits,
        max_rtr_solicitation_delay: Duration::ZERO,
        ..HostConfig::default()
    }
}

fn dhcpv6(rapid_commit: bool) -> Method {
    let client = ClientConfig {
        rapid_commit,
        sol_max_delay: Duration::ZERO,
        ..ClientConfig::default()
    };
    Method::Dhcpv6 {
        nd: prompt_nd(0),
        client,
    }
}

fn nothing_lost(_: &Packet) -> bool {
    false
}

#[test]
fn fixed_is_ready_exactly_the_latency_after_the_first_advertisement() {
    let method = Method::Fixed {
        latency: ms(500),
        solicit: false,
        lifetime: None,
        retain: false,
    };
    let mut link = Link::new(&method, ServerConfig::default());
    link.run(at(3000), |packet| {
        assert_eq!(
            packet.ip.source,
            crate::nd::link_local(ROUTER),
            "the host sends nothing"
        );
        false
    });
    assert_eq!(
        link.log,
        [(at(600), format!("ready {}", form_address(PREFIX, MAC)))]
    );
}

#[test]
fn fixed_counts_from_the_advertisement_that_was_heard() {
    let method = Method::Fixed {
        latency: ms(500),
        solicit: false,
        lifetime: None,
        retain: false,
    };
    let mut link = Link::new(&method, ServerConfig::default());
    let mut advertisements = 0;
    link.run(at(3000), |_| {
        advertisements += 1;
        advertisements <= 2
    });
    assert_eq!(link.log[0].0, at(800));
}

#[test]
fn fixed_is_cut_short_by_the_loss_of_the_link() {
    let method = Method::Fixed {
        latency: ms(500),
        solicit: false,
        lifetime: None,
        retain: false,
    };
    let mut link = Link::new(&method, ServerConfig::default());
    link.run(at(400), nothing_lost);
    link.host.handle_link_down(at(400));
    link.run(at(900), nothing_lost);
    assert_eq!(link.words(), Vec::<&str>::new());
    link.host.handle_link_up(at(950));
    link.run(at(3000), nothing_lost);
    assert_eq!(link.log[0].0, at(1500));
}

#[test]
fn slaac_takes_an_advertisement_and_one_second_of_detection() {
    let mut nd = prompt_nd(1);
    nd.max_rtr_solicitations = 0;
    let mut link = Link::new(&Method::Slaac { nd }, ServerConfig::default());
    link.run(at(3000), nothing_lost);
    assert_eq!(
        link.log,
        [(at(1100), format!("ready {}", form_address(PREFIX, MAC)))]
    );
}

/// Somebody else says that an address is its own.
fn defence(address: Ipv6Addr) -> Packet {
    let advertisement = NeighborAdvertisement {
        target: address,
        router: false,
        solicited: false,
        override_flag: true,
        options: Vec::new(),
    };
    Packet {
        ip: Ipv6Header {
            source: address,
            destination: crate::nd::ALL_NODES,
            traffic_class: 0,
            hop_limit: 255,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Icmpv6(Icmpv6::NeighborAdvertisement(advertisement)),
    }
}

#[test]
fn slaac_refuses_a_taken_address() {
    let mut link = Link::new(&Method::Slaac { nd: prompt_nd(1) }, ServerConfig::default());
    link.run(at(500), nothing_lost);
    let address = form_address(PREFIX, MAC);
    link.host.handle_packet(at(500), &defence(address));
    assert!(!link.host.owns(address));
    assert_eq!(
        link.host
            .poll_event()
            .filter(|e| !matches!(e, AddressEvent::RouterHeard { .. })),
        Some(AddressEvent::Refused(LocalAddress {
            interface: IF,
            address
        }))
    );
}

#[test]
fn dhcpv6_asks_in_four_messages() {
    let mut link = Link::new(
        &dhcpv6(false),
        ServerConfig {
            preference: Some(255),
            ..ServerConfig::default()
        },
    );
    link.run(at(3000), nothing_lost);
    assert_eq!(
        link.words(),
        [
            "Solicit",
            "Advertise",
            "Request",
            "Reply",
            "ready 2001:db8:3::1000"
        ]
    );
    assert_eq!(link.log[4].0, at(100), "no timer was waited for");
}

#[test]
fn dhcpv6_collects_offers_for_one_timeout_unless_one_is_preferred() {
    let mut link = Link::new(&dhcpv6(false), ServerConfig::default());
    link.run(at(3000), nothing_lost);
    assert_eq!(
        link.words(),
        [
            "Solicit",
            "Advertise",
            "Request",
            "Reply",
            "ready 2001:db8:3::1000"
        ]
    );
    let waited = link.log[2].0 - link.log[0].0;
    assert!(waited > ms(1000) && waited <= ms(1101), "{waited}");
}

#[test]
fn dhcpv6_with_rapid_commit_asks_in_two_messages_and_waits_for_the_server() {
    let server = ServerConfig {
        rapid_commit: true,
        reply_delay: ms(300),
        ..ServerConfig::default()
    };
    let mut link = Link::new(&dhcpv6(true), server);
    link.run(at(3000), nothing_lost);
    assert_eq!(link.words(), ["Solicit", "Reply", "ready 2001:db8:3::1000"]);
    assert_eq!(link.log[2].0, at(400));
}

#[test]
fn dhcpv6_retransmits_with_a_growing_timeout() {
    let mut link = Link::new(
        &dhcpv6(false),
        ServerConfig {
            preference: Some(255),
            ..ServerConfig::default()
        },
    );
    let mut solicits = 0;
    link.run(at(20_000), |packet| {
        let solicit = message_to(packet, SERVER)
            .is_some_and(|m| m.message_type == segue_wire::dhcpv6::MessageType::Solicit);
        solicits += u32::from(solicit);
        solicit && solicits <= 3
    });
    assert_eq!(
        link.words()[..5],
        ["Solicit", "Solicit", "Solicit", "Solicit", "Advertise"]
    );
    let gap = |i: usize| (link.log[i + 1].0 - link.log[i].0).as_millis();
    assert!((1000..=1100).contains(&gap(0)), "{}", gap(0));
    assert!((1900..=2310).contains(&gap(1)), "{}", gap(1));
    assert!((3600..=4850).contains(&gap(2)), "{}", gap(2));
    assert_eq!(*link.words().last().unwrap(), "ready 2001:db8:3::1000");
}

#[test]
fn dhcpv6_gives_up_a_server_that_does_not_answer_requests() {
    let mut link = Link::new(
        &dhcpv6(false),
        ServerConfig {
            preference: Some(255),
            ..ServerConfig::default()
        },
    );
    let mut requests = 0;
    link.run(at(400_000), |packet| {
        let request = message_to(packet, SERVER)
            .is_some_and(|m| m.message_type == segue_wire::dhcpv6::MessageType::Request);
        requests += u32::from(request);
        request && requests <= 10
    });
    assert_eq!(requests, 11);
    assert_eq!(link.words().iter().filter(|w| **w == "Solicit").count(), 2);
}

#[test]
fn dhcpv6_declines_an_address_that_is_taken_and_gets_another() {
    let mut method = dhcpv6(false);
    let Method::Dhcpv6 { nd, .. } = &mut method else {
        unreachable!()
    };
    nd.dup_addr_detect_transmits = 1;
    let mut link = Link::new(
        &method,
        ServerConfig {
            preference: Some(255),
            ..ServerConfig::default()
        },
    );
    let taken: Ipv6Addr = "2001:db8:3::1000".parse().unwrap();
    link.run(at(1200), nothing_lost);
    link.host.handle_packet(at(1200), &defence(taken));
    link.run(at(9000), nothing_lost);
    assert_eq!(
        link.words()[4..],
        [
            "Decline",
            "Reply",
            "refused 2001:db8:3::1000",
            "Solicit",
            "Advertise",
            "Request",
            "Reply",
            "ready 2001:db8:3::1001"
        ]
    );
}

#[test]
fn dhcpv6_keeps_its_lease_when_another_address_of_the_interface_is_taken() {
    let mut method = dhcpv6(true);
    let Method::Dhcpv6 { nd, .. } = &mut method else {
        unreachable!()
    };
    nd.dup_addr_detect_transmits = 1;
    let server = ServerConfig {
        rapid_commit: true,
        ..ServerConfig::default()
    };
    let mut link = Link::new(&method, server);
    link.run(at(5000), nothing_lost);
    assert_eq!(*link.words().last().unwrap(), "ready 2001:db8:3::1000");
    let other: Ipv6Addr = "2001:db8:3::77".parse().unwrap();
    link.log.clear();
    link.now = at(5000);
    link.host.add_address(at(5000), other);
    link.run(at(5100), nothing_lost);
    link.host.handle_packet(at(5100), &defence(other));
    link.run(at(9000), nothing_lost);
    assert_eq!(link.words(), [format!("refused {other}")]);
}

#[test]
fn dhcpv6_has_nothing_to_speak_from_when_its_link_local_address_is_taken() {
    // RFC 4862 section 5.4.5; the address is in use before its detection has ended by RFC 4429
    let mut method = dhcpv6(true);
    let Method::Dhcpv6 { nd, .. } = &mut method else {
        unreachable!()
    };
    (nd.dup_addr_detect_transmits, nd.optimistic) = (1, true);
    let server = ServerConfig {
        rapid_commit: true,
        ..ServerConfig::default()
    };
    let mut link = Link::new(&method, server);
    link.run(at(500), nothing_lost);
    assert_eq!(*link.words().last().unwrap(), "ready 2001:db8:3::1000");
    link.log.clear();
    let own = crate::nd::link_local(MAC);
    link.host.handle_packet(at(500), &defence(own));
    link.run(at(9000), nothing_lost);
    assert_eq!(
        link.words(),
        [format!("refused {own}"), "lost 2001:db8:3::1000".to_owned()]
    );
}

#[test]
fn dhcpv6_waits_for_a_router_that_says_addresses_are_managed() {
    let mut link = Link::new(
        &dhcpv6(false),
        ServerConfig {
            preference: Some(255),
            ..ServerConfig::default()
        },
    );
    link.run(at(9000), |packet| {
        packet.ip.source == crate::nd::link_local(ROUTER)
    });
    assert_eq!(link.words(), Vec::<&str>::new());
}

#[test]
fn answers_for_other_clients_and_garbage_are_ignored() {
    let mut link = Link::new(&dhcpv6(false), ServerConfig::default());
    link.run(at(150), nothing_lost);
    let forged = Dhcpv6Message {
        message_type: segue_wire::dhcpv6::MessageType::Reply,
        transaction_id: 0,
        options: Vec::new(),
    };
    let packet = udp_packet((PREFIX, SERVER), (crate::nd::link_local(MAC), CLIENT), &forged);
    link.host.handle_packet(at(150), &packet);
    let mut garbage = packet;
    let Payload::Udp(udp) = &mut garbage.payload else {
        unreachable!()
    };
    udp.data = Data::Bytes(Bytes::from_static(&[7, 1]));
    link.host.handle_packet(at(150), &garbage);
    link.server.handle_packet(at(150), &garbage);
    link.run(at(3000), nothing_lost);
    assert_eq!(*link.words().last().unwrap(), "ready 2001:db8:3::1000");
}

#[test]
fn methods_are_read_from_tables() {
    use serde::Deserialize;
    use serde::de::value::{Error, MapDeserializer};
    let read = |entries: &[(&'static str, &'static str)]| {
        Method::deserialize(MapDeserializer::<_, Error>::new(entries.iter().copied()))
    };
    assert_eq!(
        read(&[("method", "fixed"), ("resolution", "500 ms")]),
        Ok(Method::Fixed {
            latency: ms(500),
            solicit: false,
            lifetime: None,
            retain: false,
        })
    );
    assert_eq!(
        read(&[("method", "slaac")]),
        Ok(Method::Slaac {
            nd: HostConfig::default()
        })
    );
    assert!(read(&[("method", "fixed"), ("resolutoin", "1 s")]).is_err());
    assert!(
        read(&[("method", "pigeon")])
            .unwrap_err()
            .to_string()
            .contains("pigeon")
    );
}

/// Comes up, goes down at 4 s and comes up again at `back`.
fn away_until(method: &Method, server: ServerConfig, back: u64) -> Link {
    let mut link = Link::new(method, server);
    link.run(at(4000), nothing_lost);
    link.now = at(4000);
    link.host.handle_link_down(at(4000));
    link.run(at(back), |_| true);
    link.now = at(back);
    link.log.clear();
    link.host.handle_link_up(at(back));
    link
}

#[test]
fn a_retained_address_is_usable_as_soon_as_its_prefix_is_advertised_again() {
    let nd = HostConfig {
        retain: true,
        ..prompt_nd(1)
    };
    let fixed = Method::Fixed {
        latency: ms(500),
        solicit: false,
        lifetime: None,
        retain: true,
    };
    let address = form_address(PREFIX, MAC);
    for method in [Method::Slaac { nd }, fixed] {
        let mut link = away_until(&method, ServerConfig::default(), 10_050);
        let mut detection = 0;
        link.run(at(12_000), |p| {
            detection += u32::from(matches!(&p.payload, Payload::Icmpv6(Icmpv6::NeighborSolicitation(ns)) if ns.target == address));
            false
        });
        assert_eq!(link.log, [(at(10_100), format!("ready {address}"))], "{method:?}");
        assert_eq!(detection, 0, "{method:?}");
    }
}

#[test]
fn a_retained_address_expires_while_its_link_is_away() {
    let method = Method::Fixed {
        latency: ms(500),
        solicit: false,
        lifetime: Some(Duration::from_secs(6)),
        retain: true,
    };
    let address = form_address(PREFIX, MAC);
    let mut link = Link::new(&method, ServerConfig::default());
    link.run(at(4000), nothing_lost);
    link.now = at(4000);
    link.host.handle_link_down(at(4000));
    link.run(at(9000), |_| true);
    let last = &link.log[link.log.len() - 1];
    // advertised at 100 ms, usable from 600 ms on
    assert_eq!(*last, (at(6600), format!("expired {address}")));
    // back after that it is obtained anew
    link.now = at(9050);
    link.host.handle_link_up(at(9050));
    link.log.clear();
    link.run(at(10_000), nothing_lost);
    assert_eq!(link.log, [(at(9600), format!("ready {address}"))]);
}

#[test]
fn a_lease_is_renewed_at_t1_and_outlives_its_first_lifetime() {
    let server = ServerConfig {
        preferred_lifetime: Duration::from_secs(100),
        valid_lifetime: Duration::from_secs(160),
        ..ServerConfig::default()
    };
    let mut link = Link::new(&dhcpv6(true), server);
    link.run(at(400_000), nothing_lost);
    let renewed: Vec<_> = link.log.iter().filter(|l| l.1 == "Renew").map(|l| l.0).collect();
    assert_eq!(renewed.len(), 7, "every 50 s");
    assert!(
        !link
            .words()
            .iter()
            .any(|w| w.starts_with("lost") || w.starts_with("deprecated"))
    );
}

#[test]
fn a_lease_that_nobody_renews_is_rebound_then_lost_and_asked_for_anew() {
    let server = ServerConfig {
        preferred_lifetime: Duration::from_secs(100),
        valid_lifetime: Duration::from_secs(160),
        ..ServerConfig::default()
    };
    let mut link = Link::new(&dhcpv6(false), server);
    link.run(at(20_000), nothing_lost);
    let leased = link.log.last().unwrap().0;
    link.log.clear();
    link.run(at(200_000), |p| {
        message_to(p, SERVER).is_some() || message_to(p, CLIENT).is_some()
    });
    let first = |word: &str| link.log.iter().find(|l| l.1.starts_with(word)).map(|l| l.0);
    let (renew, rebind) = (first("Renew").unwrap(), first("Rebind").unwrap());
    let after = |s| leased + Duration::from_secs(s);
    assert_eq!((renew, rebind), (after(50), after(80)), "T1 and T2");
    assert!(first("deprecated").is_some());
    let lost = first("lost").unwrap();
    assert!(lost >= at(160_000) && lost < at(164_000), "{lost:?}");
    assert_eq!(first("expired"), Some(lost));
    assert!(first("Solicit").unwrap() >= lost);
    link.run(at(600_000), nothing_lost);
    assert!(link.words().last().unwrap().starts_with("ready") || link.words().contains(&"Reply"));
}
