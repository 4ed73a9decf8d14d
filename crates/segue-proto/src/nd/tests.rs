use super::*;
use crate::contract::InterfaceId;
use crate::random::Stream;
use crate::time::{Duration, Instant};
use segue_wire::icmpv6::nd::{
    NdOption, NeighborAdvertisement, NeighborSolicitation, PrefixInformation, RouterAdvertisement,
};

mod edges;

const MAC: LinkLayerAddress = LinkLayerAddress([0x02, 0, 0, 0, 0, 0x11]);
const OTHER: LinkLayerAddress = LinkLayerAddress([0x02, 0, 0, 0, 0, 0x22]);
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// No random delays, so that times can be told.
fn prompt() -> HostConfig {
    HostConfig {
        max_rtr_solicitation_delay: Duration::ZERO,
        ..HostConfig::default()
    }
}

fn host(config: HostConfig) -> HostNd {
    HostNd::new(InterfaceId(0), MAC, config, true, Stream::new(1, "nd"))
}

fn router(config: RouterConfig) -> RouterNd {
    RouterNd::new(at(0), InterfaceId(0), OTHER, config, Stream::new(1, "router"))
}

fn advertised(valid_s: u32, preferred_s: u32) -> Packet {
    let prefix = PrefixInformation {
        prefix: PREFIX,
        prefix_length: 64,
        on_link: true,
        autonomous: true,
        router_address: false,
        valid_lifetime_s: valid_s,
        preferred_lifetime_s: preferred_s,
    };
    let ra = RouterAdvertisement {
        router_lifetime_s: 1800,
        options: vec![NdOption::PrefixInformation(prefix)],
        ..RouterAdvertisement::default()
    };
    nd_packet(link_local(OTHER), ALL_NODES, Icmpv6::RouterAdvertisement(ra))
}

fn sent(nd: &mut HostNd) -> Vec<Packet> {
    core::iter::from_fn(|| nd.poll_transmit(at(0)))
        .map(|t| t.packet)
        .collect()
}

fn events(nd: &mut HostNd) -> Vec<NdEvent> {
    core::iter::from_fn(|| nd.poll_event())
        .filter(|e| !matches!(e, NdEvent::RouterAdvertised { .. }))
        .collect()
}

/// Runs all timers up to `end`; what was sent, with times.
fn run(nd: &mut HostNd, end: Instant) -> Vec<(Instant, Packet)> {
    let mut all: Vec<_> = sent(nd).into_iter().map(|p| (at(0), p)).collect();
    while let Some(time) = nd.poll_timeout().filter(|t| *t <= end) {
        nd.handle_timeout(time);
        all.extend(sent(nd).into_iter().map(|p| (time, p)));
    }
    all
}

fn is_probe_for(packet: &Packet, target: Ipv6Addr) -> bool {
    packet.ip.source.is_unspecified()
        && packet.ip.destination == solicited_node(target)
        && matches!(&packet.payload, Payload::Icmpv6(Icmpv6::NeighborSolicitation(ns)) if ns.target == target)
}

fn probe(target: Ipv6Addr) -> Packet {
    let ns = NeighborSolicitation {
        target,
        options: Vec::new(),
    };
    nd_packet(
        Ipv6Addr::UNSPECIFIED,
        solicited_node(target),
        Icmpv6::NeighborSolicitation(ns),
    )
}

#[test]
fn identifiers_and_multicast_groups_are_those_of_rfc_4291() {
    let mac = LinkLayerAddress([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
    assert_eq!(
        link_local(mac),
        "fe80::3656:78ff:fe9a:bcde".parse::<Ipv6Addr>().unwrap()
    );
    let address: Ipv6Addr = "4037::01:800:200e:8c6c".parse().unwrap();
    assert_eq!(
        solicited_node(address),
        "ff02::1:ff0e:8c6c".parse::<Ipv6Addr>().unwrap()
    );
}

#[test]
fn an_address_is_ready_one_retrans_timer_after_its_probe() {
    let mut nd = host(prompt());
    nd.handle_link_up(at(0));
    let own = link_local(MAC);
    let first = run(&mut nd, at(999));
    assert!(is_probe_for(&first[1].1, own), "{first:?}");
    assert!(
        matches!(&first[0].1.payload, Payload::Icmpv6(Icmpv6::RouterSolicitation(rs)) if rs.options.is_empty())
    );
    assert_eq!(first[0].1.ip.source, Ipv6Addr::UNSPECIFIED);
    assert_eq!(first.len(), 2);
    assert_eq!(events(&mut nd), []);
    run(&mut nd, at(1000));
    assert_eq!(events(&mut nd), [NdEvent::AddressReady(own)]);

    nd.handle_packet(at(2000), &advertised(3600, 1800));
    let global = form_address(PREFIX, MAC);
    assert!(is_probe_for(&sent(&mut nd)[0], global));
    run(&mut nd, at(2999));
    assert_eq!(events(&mut nd), []);
    run(&mut nd, at(3000));
    assert_eq!(events(&mut nd), [NdEvent::AddressReady(global)]);
}

#[test]
fn each_configured_probe_is_sent() {
    let mut nd = host(HostConfig {
        dup_addr_detect_transmits: 3,
        max_rtr_solicitations: 0,
        ..prompt()
    });
    nd.handle_link_up(at(0));
    let times: Vec<_> = run(&mut nd, at(10_000)).into_iter().map(|p| p.0).collect();
    assert_eq!(times, [at(0), at(1000), at(2000)]);
    assert_eq!(events(&mut nd), [NdEvent::AddressReady(link_local(MAC))]);
}

#[test]
fn routers_are_solicited_three_times_four_seconds_apart_until_one_answers() {
    let count = |packets: &[(Instant, Packet)]| {
        packets
            .iter()
            .filter(|p| matches!(p.1.payload, Payload::Icmpv6(Icmpv6::RouterSolicitation(_))))
            .map(|p| p.0)
            .collect::<Vec<_>>()
    };
    let mut nd = host(prompt());
    nd.handle_link_up(at(0));
    assert_eq!(count(&run(&mut nd, at(60_000))), [at(0), at(4000), at(8000)]);

    let mut nd = host(prompt());
    nd.handle_link_up(at(0));
    let mut all = run(&mut nd, at(4500));
    nd.handle_packet(at(4500), &advertised(3600, 1800));
    assert_eq!(nd.default_routers().collect::<Vec<_>>(), [link_local(OTHER)]);
    all.extend(run(&mut nd, at(60_000)));
    assert_eq!(count(&all), [at(0), at(4000)]);
}

#[test]
fn the_first_messages_are_delayed_at_random() {
    let mut delays = Vec::new();
    for seed in 0..50 {
        let mut nd = HostNd::new(
            InterfaceId(0),
            MAC,
            HostConfig::default(),
            true,
            Stream::new(seed, "nd"),
        );
        nd.handle_link_up(at(0));
        delays.push(nd.poll_timeout().unwrap());
    }
    assert!(delays.iter().all(|d| *d < at(1000)));
    assert!(delays.iter().any(|d| *d < at(200)) && delays.iter().any(|d| *d > at(400)));
}

#[test]
fn an_address_that_another_node_defends_is_refused() {
    let mut nd = host(HostConfig {
        max_rtr_solicitations: 0,
        ..prompt()
    });
    nd.handle_link_up(at(0));
    run(&mut nd, at(1000));
    events(&mut nd);
    let global = form_address(PREFIX, MAC);
    nd.handle_packet(at(2000), &advertised(3600, 1800));
    let defence = Icmpv6::NeighborAdvertisement(NeighborAdvertisement {
        target: global,
        router: false,
        solicited: false,
        override_flag: true,
        options: Vec::new(),
    });
    nd.handle_packet(at(2010), &nd_packet(global, ALL_NODES, defence));
    assert_eq!(events(&mut nd), [NdEvent::AddressRefused(global)]);
    run(&mut nd, at(9000));
    assert_eq!(events(&mut nd), []);
    assert_eq!(nd.link_local(), Some(link_local(MAC)));
}

#[test]
fn two_nodes_probing_for_one_link_local_address_both_give_up() {
    let mut nd = host(prompt());
    nd.handle_link_up(at(0));
    sent(&mut nd);
    nd.handle_packet(at(10), &probe(link_local(MAC)));
    assert_eq!(events(&mut nd), [NdEvent::AddressRefused(link_local(MAC))]);
    nd.handle_packet(at(20), &advertised(3600, 1800));
    assert_eq!(run(&mut nd, at(20_000)), [], "the interface is disabled");
}

#[test]
fn our_own_probe_looped_back_is_no_collision() {
    let mut nd = host(HostConfig {
        max_rtr_solicitations: 0,
        ..prompt()
    });
    nd.handle_link_up(at(0));
    let own = sent(&mut nd).pop().unwrap();
    nd.handle_packet(at(1), &own);
    run(&mut nd, at(1000));
    assert_eq!(events(&mut nd), [NdEvent::AddressReady(link_local(MAC))]);
}

#[test]
fn a_ready_address_is_defended_and_resolved() {
    let mut nd = host(HostConfig {
        dup_addr_detect_transmits: 0,
        max_rtr_solicitations: 0,
        ..prompt()
    });
    nd.handle_link_up(at(0));
    let own = link_local(MAC);
    nd.handle_packet(at(1), &probe(own));
    let mut asked = probe(own);
    asked.ip.source = link_local(OTHER);
    nd.handle_packet(at(2), &asked);
    let answers: Vec<_> = sent(&mut nd)
        .into_iter()
        .map(|p| match p.payload {
            Payload::Icmpv6(Icmpv6::NeighborAdvertisement(na)) => {
                (p.ip.destination, na.solicited, na.override_flag)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        answers,
        [(ALL_NODES, false, true), (link_local(OTHER), true, true)]
    );
    assert_eq!(nd.counters().duplicates, 0);
}

#[test]
fn an_optimistic_address_is_used_while_probing_but_does_not_override() {
    let mut nd = host(HostConfig {
        optimistic: true,
        max_rtr_solicitations: 0,
        ..prompt()
    });
    nd.handle_link_up(at(0));
    let own = link_local(MAC);
    assert_eq!(events(&mut nd), [NdEvent::AddressReady(own)]);
    assert!(is_probe_for(&sent(&mut nd)[0], own));
    let mut asked = probe(own);
    asked.ip.source = link_local(OTHER);
    nd.handle_packet(at(2), &asked);
    let Payload::Icmpv6(Icmpv6::NeighborAdvertisement(na)) = sent(&mut nd).pop().unwrap().payload else {
        panic!()
    };
    assert!(!na.override_flag);
    run(&mut nd, at(1000));
    assert_eq!(events(&mut nd), []);
    assert_eq!(
        nd.addresses().collect::<Vec<_>>(),
        [(own, AddressState::Preferred)]
    );
}

#[test]
fn lifetimes_deprecate_and_remove_an_address() {
    let mut nd = host(HostConfig {
        dup_addr_detect_transmits: 0,
        ..prompt()
    });
    nd.handle_link_up(at(0));
    nd.handle_packet(at(0), &advertised(20, 10));
    let global = form_address(PREFIX, MAC);
    events(&mut nd);
    run(&mut nd, at(9_999));
    assert_eq!(events(&mut nd), []);
    run(&mut nd, at(10_000));
    assert_eq!(events(&mut nd), [NdEvent::AddressDeprecated(global)]);
    nd.handle_packet(at(12_000), &advertised(20, 10));
    assert!(nd.addresses().any(|a| a == (global, AddressState::Preferred)));
    run(&mut nd, at(32_000));
    assert_eq!(
        events(&mut nd),
        [
            NdEvent::AddressReady(global),
            NdEvent::AddressDeprecated(global),
            NdEvent::AddressLost(global),
            NdEvent::AddressExpired(global)
        ]
    );
}

#[test]
fn an_advertisement_cannot_shorten_a_long_lifetime_below_two_hours() {
    let mut nd = host(HostConfig {
        dup_addr_detect_transmits: 0,
        ..prompt()
    });
    nd.handle_link_up(at(0));
    nd.handle_packet(at(0), &advertised(86_400, 86_400));
    nd.handle_packet(at(1000), &advertised(1, 1));
    events(&mut nd);
    run(&mut nd, at(7_200_999));
    assert_eq!(
        events(&mut nd),
        [NdEvent::AddressDeprecated(form_address(PREFIX, MAC))]
    );
    run(&mut nd, at(7_201_000));
    let address = form_address(PREFIX, MAC);
    assert_eq!(
        events(&mut nd),
        [NdEvent::AddressLost(address), NdEvent::AddressExpired(address)]
    );
}

#[test]
fn a_flood_of_advertisements_makes_no_more_than_a_few_addresses_and_routers() {
    let mut nd = host(prompt());
    nd.handle_link_up(at(0));
    for n in 0..200u16 {
        let mut packet = advertised(86_400, 3600);
        packet.ip.source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, n);
        if let Payload::Icmpv6(Icmpv6::RouterAdvertisement(ra)) = &mut packet.payload
            && let Some(NdOption::PrefixInformation(prefix)) = ra.options.first_mut()
        {
            prefix.prefix = Ipv6Addr::new(0x2001, 0xdb8, 2, n, 0, 0, 0, 0);
        }
        nd.handle_packet(at(10), &packet);
    }
    assert_eq!(nd.addresses().count(), 16);
    assert_eq!(nd.default_routers().count(), 16);
}

#[test]
fn losing_the_link_loses_its_addresses() {
    let mut nd = host(HostConfig {
        dup_addr_detect_transmits: 0,
        ..prompt()
    });
    nd.handle_link_up(at(0));
    nd.handle_packet(at(0), &advertised(3600, 1800));
    events(&mut nd);
    nd.handle_link_down(at(5));
    assert_eq!(
        events(&mut nd),
        [
            NdEvent::AddressLost(link_local(MAC)),
            NdEvent::AddressLost(form_address(PREFIX, MAC))
        ]
    );
    assert_eq!(nd.poll_timeout(), None);
    assert_eq!(nd.default_routers().count(), 0);
}

#[test]
fn messages_that_rfc_4861_calls_invalid_are_counted_and_ignored() {
    let mut nd = host(HostConfig {
        dup_addr_detect_transmits: 0,
        max_rtr_solicitations: 0,
        ..prompt()
    });
    nd.handle_link_up(at(0));
    events(&mut nd);
    let mut routed = advertised(3600, 1800);
    routed.ip.hop_limit = 254;
    let mut global_source = advertised(3600, 1800);
    global_source.ip.source = PREFIX;
    let mut wrong_group = probe(link_local(MAC));
    wrong_group.ip.destination = ALL_NODES;
    let multicast_target = probe(ALL_NODES);
    for packet in [routed, global_source, wrong_group, multicast_target] {
        nd.handle_packet(at(1), &packet);
    }
    assert_eq!(nd.counters().invalid, 4);
    assert_eq!(events(&mut nd), []);
    assert_eq!(sent(&mut nd), []);
}

#[test]
fn a_router_too_ignores_a_probe_that_names_its_sender() {
    // RFC 4861 section 7.1.1
    let mut nd = router(RouterConfig::default());
    let mut packet = probe(link_local(OTHER));
    if let Payload::Icmpv6(Icmpv6::NeighborSolicitation(ns)) = &mut packet.payload {
        ns.options.push(NdOption::SourceLinkLayerAddress(MAC));
    }
    nd.handle_packet(at(1), &packet);
    assert_eq!(nd.invalid(), 1);
    assert!(nd.poll_transmit(at(1)).is_none());
    nd.handle_packet(at(1), &probe(link_local(OTHER)));
    assert!(nd.poll_transmit(at(1)).is_some());
}

#[test]
fn a_router_advertises_within_its_interval_and_first_more_often() {
    let mut nd = router(RouterConfig {
        prefixes: vec![AdvertisedPrefix::new(PREFIX)],
        ..RouterConfig::default()
    });
    let mut times = Vec::new();
    for _ in 0..20 {
        let time = nd.poll_timeout().unwrap();
        nd.handle_timeout(time);
        while let Some(t) = nd.poll_transmit(time) {
            assert_eq!(t.packet.ip.destination, ALL_NODES);
            times.push(time);
        }
    }
    assert_eq!(times.len(), 20);
    for pair in times[..3].windows(2) {
        assert_eq!(pair[1] - pair[0], Duration::from_secs(16));
    }
    for pair in times[3..].windows(2) {
        let gap = pair[1] - pair[0];
        assert!(
            (Duration::from_secs(200)..=Duration::from_secs(600)).contains(&gap),
            "{gap}"
        );
    }
}

#[test]
fn a_solicitation_is_answered_within_half_a_second_but_not_right_after_another_answer() {
    let mut nd = router(RouterConfig::default());
    let solicitation = nd_packet(
        Ipv6Addr::UNSPECIFIED,
        ALL_ROUTERS,
        Icmpv6::RouterSolicitation(Default::default()),
    );
    nd.handle_packet(at(1000), &solicitation);
    let first = nd.poll_timeout().unwrap();
    assert!((at(1000)..=at(1500)).contains(&first), "{first}");
    nd.handle_timeout(first);
    assert!(nd.poll_transmit(first).is_some());
    // section 6.2.6: MIN_DELAY_BETWEEN_RAS plus the random value after the previous one
    nd.handle_packet(first, &solicitation);
    let second = nd.poll_timeout().unwrap();
    let soonest = first + Duration::from_secs(3);
    assert!(
        second > soonest && second <= soonest + Duration::from_millis(500),
        "{second}"
    );
}

#[test]
fn a_host_is_answered_alone_when_the_router_is_set_so() {
    let config = RouterConfig {
        unicast_solicited: true,
        max_ra_delay_time: Duration::ZERO,
        ..RouterConfig::default()
    };
    let mut nd = router(config);
    let solicitation = nd_packet(
        link_local(MAC),
        ALL_ROUTERS,
        Icmpv6::RouterSolicitation(Default::default()),
    );
    nd.handle_packet(at(1000), &solicitation);
    assert_eq!(
        nd.poll_transmit(at(1000)).unwrap().packet.ip.destination,
        link_local(MAC)
    );
    assert!(nd.poll_transmit(at(1000)).is_none());
}

#[test]
fn host_and_router_agree_on_an_address() {
    let mut r = router(RouterConfig {
        prefixes: vec![AdvertisedPrefix::new(PREFIX)],
        ..RouterConfig::default()
    });
    let mut h = host(prompt());
    h.handle_link_up(at(0));
    let mut now = at(0);
    while now < at(5000) {
        while let Some(t) = h.poll_transmit(now) {
            r.handle_packet(now, &t.packet);
        }
        while let Some(t) = r.poll_transmit(now) {
            h.handle_packet(now, &t.packet);
        }
        now = h
            .poll_timeout()
            .into_iter()
            .chain(r.poll_timeout())
            .min()
            .unwrap();
        h.handle_timeout(now);
        r.handle_timeout(now);
    }
    assert!(events(&mut h).contains(&NdEvent::AddressReady(form_address(PREFIX, MAC))));
    assert!(h.default_routers().eq([link_local(OTHER)]));
}

/// RFC 6275 sections 7.1 to 7.4: what a home agent's advertisement says besides.
#[test]
fn a_home_agent_advertises_its_address_interval_and_preference() {
    let address: Ipv6Addr = "2001:db8:1::1".parse().expect("address");
    let prefix: Ipv6Addr = "2001:db8:1::".parse().expect("prefix");
    let other: Ipv6Addr = "2001:db8:2::".parse().expect("prefix");
    let mut nd = router(RouterConfig {
        prefixes: vec![AdvertisedPrefix::new(prefix), AdvertisedPrefix::new(other)],
        max_rtr_adv_interval: Duration::from_millis(70),
        min_rtr_adv_interval: Duration::from_millis(30),
        advertise_interval: true,
        home_agent: Some(AdvertisedHomeAgent {
            preference: 3,
            lifetime: None,
            address: Some(address),
        }),
        ..RouterConfig::default()
    });
    nd.handle_timeout(at(20_000));
    let packet = nd.poll_transmit(at(20_000)).expect("advertisement").packet;
    let Payload::Icmpv6(Icmpv6::RouterAdvertisement(ra)) = packet.payload else {
        panic!("{packet:?}")
    };
    assert!(ra.home_agent);
    assert!(ra.options.contains(&NdOption::AdvertisementInterval(70)));
    assert!(ra.options.contains(&NdOption::HomeAgentInformation {
        preference: 3,
        lifetime_s: 1800
    }));
    let prefixes: Vec<_> = ra
        .options
        .iter()
        .filter_map(|o| match o {
            NdOption::PrefixInformation(p) => Some((p.prefix, p.router_address)),
            _ => None,
        })
        .collect();
    assert_eq!(prefixes, [(address, true), (other, false)]);
}
