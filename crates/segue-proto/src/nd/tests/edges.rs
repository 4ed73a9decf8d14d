//! The fields of an advertisement one by one, and the limits of what a router may be set to.

use super::*;

/// No detection of duplicates.
fn certain() -> HostConfig {
    HostConfig {
        dup_addr_detect_transmits: 0,
        ..prompt()
    }
}

fn up(config: HostConfig) -> HostNd {
    let mut nd = host(config);
    nd.handle_link_up(at(0));
    nd
}

fn changed(mut packet: Packet, change: impl FnOnce(&mut RouterAdvertisement)) -> Packet {
    if let Payload::Icmpv6(Icmpv6::RouterAdvertisement(ra)) = &mut packet.payload {
        change(ra);
    }
    packet
}

fn with_prefix(change: impl FnOnce(&mut PrefixInformation)) -> Packet {
    changed(advertised(100, 50), |ra| {
        if let Some(NdOption::PrefixInformation(prefix)) = ra.options.first_mut() {
            change(prefix);
        }
    })
}

fn global(nd: &HostNd) -> Vec<Ipv6Addr> {
    let all = nd.addresses().map(|a| a.0);
    all.filter(|a| !a.is_unicast_link_local()).collect()
}

#[test]
fn only_prefixes_for_autoconfiguration_make_addresses() {
    // RFC 4862 section 5.5.3 a to d
    let refused: [fn(&mut PrefixInformation); 6] = [
        |p| p.autonomous = false,
        |p| p.prefix = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0),
        |p| p.prefix = Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 0),
        |p| p.preferred_lifetime_s = 101,
        |p| p.prefix_length = 63,
        |p| (p.valid_lifetime_s, p.preferred_lifetime_s) = (0, 0),
    ];
    for (number, change) in refused.into_iter().enumerate() {
        let mut nd = up(certain());
        nd.handle_packet(at(0), &with_prefix(change));
        assert!(global(&nd).is_empty(), "case {number}");
    }
    let mut nd = up(certain());
    nd.handle_packet(at(0), &with_prefix(|p| p.preferred_lifetime_s = 100));
    assert_eq!(global(&nd), [form_address(PREFIX, MAC)]);
}

#[test]
fn what_a_router_says_of_the_link_is_taken_unless_it_says_nothing() {
    // RFC 4861 section 6.3.4: zero means unspecified; an MTU below IPv6's least is none (RFC 8200 section 5)
    let mut nd = up(certain());
    assert_eq!((nd.cur_hop_limit(), nd.link_mtu()), (64, None));
    let says = |hops, mtu| {
        changed(advertised(100, 50), move |ra| {
            ra.cur_hop_limit = hops;
            ra.options.push(NdOption::Mtu(mtu));
        })
    };
    nd.handle_packet(at(0), &says(0, 1279));
    assert_eq!((nd.cur_hop_limit(), nd.link_mtu()), (64, None));
    nd.handle_packet(at(0), &says(9, 1280));
    assert_eq!((nd.cur_hop_limit(), nd.link_mtu()), (9, Some(1280)));
    nd.handle_packet(at(0), &says(0, 0));
    assert_eq!((nd.cur_hop_limit(), nd.link_mtu()), (9, Some(1280)));
}

#[test]
fn the_retransmission_timer_of_a_router_is_that_of_duplicate_detection() {
    for (told, ready) in [(0, 1000), (250, 250)] {
        let mut nd = up(prompt());
        run(&mut nd, at(2000));
        events(&mut nd);
        nd.handle_packet(
            at(2000),
            &changed(advertised(100, 50), |ra| ra.retrans_timer_ms = told),
        );
        run(&mut nd, at(2000 + ready - 1));
        assert_eq!(events(&mut nd), []);
        run(&mut nd, at(2000 + ready));
        assert_eq!(
            events(&mut nd),
            [NdEvent::AddressReady(form_address(PREFIX, MAC))]
        );
    }
}

#[test]
fn a_router_is_a_default_router_for_as_long_as_it_says() {
    // RFC 4861 sections 6.3.4 and 6.3.5
    let mut nd = up(certain());
    let for_s = |seconds| changed(advertised(100_000, 50), move |ra| ra.router_lifetime_s = seconds);
    nd.handle_packet(at(0), &for_s(10));
    run(&mut nd, at(9_999));
    assert_eq!(nd.default_routers().collect::<Vec<_>>(), [link_local(OTHER)]);
    nd.handle_packet(at(9_999), &for_s(5));
    run(&mut nd, at(14_998));
    assert_eq!(nd.default_routers().count(), 1);
    run(&mut nd, at(14_999));
    assert_eq!(nd.default_routers().count(), 0);
    nd.handle_packet(at(15_000), &for_s(10));
    nd.handle_packet(at(15_001), &for_s(0));
    assert_eq!(nd.default_routers().count(), 0, "at once");
    nd.handle_packet(at(15_002), &for_s(0));
    assert_eq!(nd.default_routers().count(), 0, "and none is made of it");
}

#[test]
fn one_that_is_no_default_router_does_not_end_the_soliciting() {
    // RFC 4861 section 6.3.7
    for (lifetime, solicitations) in [(0, 3), (1, 1)] {
        let mut nd = up(certain());
        let first = run(&mut nd, at(0)).len();
        nd.handle_packet(
            at(1),
            &changed(advertised(100, 50), |ra| ra.router_lifetime_s = lifetime),
        );
        assert_eq!(first + run(&mut nd, at(60_000)).len(), solicitations);
    }
}

#[test]
fn detection_is_delayed_after_a_multicast_advertisement_only() {
    // RFC 4862 section 5.4.2: all hosts on the link hear it at once
    for (destination, delayed) in [(ALL_NODES, true), (link_local(MAC), false)] {
        let mut nd = up(HostConfig::default());
        run(&mut nd, at(3000));
        let mut packet = advertised(100_000, 50_000);
        packet.ip.destination = destination;
        nd.handle_packet(at(3000), &packet);
        let probes = sent(&mut nd);
        assert_eq!(probes.is_empty(), delayed);
        let later = run(&mut nd, at(4000));
        assert_eq!(later.len() + probes.len(), 1);
    }
}

#[test]
fn a_lifetime_may_grow_at_will_and_shrink_to_two_hours() {
    // RFC 4862 section 5.5.3 e
    let hour = 3600;
    for (first, then, expires) in [
        (hour, hour + 1, hour + 1),
        (hour, hour - 1, hour),
        (hour, 2 * hour + 1, 2 * hour + 1),
        (3 * hour, 2 * hour, 2 * hour),
        (3 * hour, 2 * hour + 1, 2 * hour + 1),
        (3 * hour, 1, 2 * hour),
        (2 * hour, hour, 2 * hour),
        (INFINITE_LIFETIME_S, 1, 2 * hour),
        (1, 2, 2),
    ] {
        let mut nd = up(certain());
        nd.handle_packet(at(0), &advertised(first, 1));
        nd.handle_packet(at(0), &advertised(then, 1));
        run(&mut nd, at(u64::from(expires) * 1000 - 1));
        assert_eq!(global(&nd).len(), 1, "{first} {then}");
        run(&mut nd, at(u64::from(expires) * 1000));
        assert!(global(&nd).is_empty(), "{first} {then}");
    }
    let mut nd = up(certain());
    nd.handle_packet(at(0), &advertised(10, 10));
    nd.handle_packet(at(0), &advertised(INFINITE_LIFETIME_S, INFINITE_LIFETIME_S));
    run(&mut nd, at(1_000_000_000));
    assert_eq!(global(&nd).len(), 1);
}

#[test]
fn an_interface_that_is_down_or_disabled_takes_nothing() {
    let mut nd = host(certain());
    nd.handle_packet(at(0), &advertised(100, 50));
    nd.add_address(at(0), PREFIX, None, None, false);
    assert_eq!(nd.addresses().count(), 0);
    nd.handle_link_up(at(0));
    nd.handle_link_up(at(0));
    assert_eq!(run(&mut nd, at(0)).len(), 1, "up once");
    nd.handle_link_down(at(1));
    assert_eq!(nd.poll_timeout(), None);
    nd.handle_packet(at(2), &advertised(100, 50));
    assert_eq!(nd.addresses().count(), 0);
}

#[test]
fn an_address_given_by_hand_is_used_and_taken_away_as_told() {
    let mut nd = up(certain());
    events(&mut nd);
    let own = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 1);
    nd.add_address(
        at(0),
        own,
        Some(Duration::from_secs(1)),
        Some(Duration::from_secs(2)),
        false,
    );
    nd.add_address(at(0), own, None, None, false);
    assert_eq!(events(&mut nd), [NdEvent::AddressReady(own)], "once");
    nd.extend_address(
        at(0),
        own,
        Some(Duration::from_secs(5)),
        Some(Duration::from_secs(6)),
    );
    run(&mut nd, at(4999));
    assert_eq!(events(&mut nd), []);
    run(&mut nd, at(5000));
    assert_eq!(events(&mut nd), [NdEvent::AddressDeprecated(own)]);
    nd.remove_address(own);
    nd.remove_address(own);
    assert_eq!(events(&mut nd), [NdEvent::AddressLost(own)]);
}

// --- the router's side ---

fn steady(min_s: u64, max_s: u64) -> RouterConfig {
    RouterConfig {
        min_rtr_adv_interval: Duration::from_secs(min_s),
        max_rtr_adv_interval: Duration::from_secs(max_s),
        ..RouterConfig::default()
    }
}

#[test]
fn a_router_s_settings_have_the_limits_of_rfc_4861() {
    let refused = |change: fn(&mut RouterConfig)| {
        let mut config = RouterConfig::default();
        assert_eq!(config.check(), Ok(()));
        change(&mut config);
        config
            .check()
            .map_err(|e| e.split([':', ' ']).next().unwrap().to_owned())
    };
    let expected = |key: &str| Err(key.to_owned());
    assert_eq!(
        refused(|c| (c.min_rtr_adv_interval, c.max_rtr_adv_interval) = (Duration::ZERO, Duration::ZERO)),
        expected("max_rtr_adv_interval")
    );
    assert_eq!(
        refused(|c| c.min_rtr_adv_interval = Duration::from_secs(601)),
        expected("min_rtr_adv_interval")
    );
    assert_eq!(
        refused(|c| c.min_rtr_adv_interval = Duration::from_secs(600)),
        Ok(())
    );
    // section 6.2.1
    assert_eq!(
        refused(|c| c.default_lifetime = Duration::from_secs(9001)),
        expected("default_lifetime")
    );
    assert_eq!(
        refused(|c| c.default_lifetime = Duration::from_secs(9000)),
        Ok(())
    );
    let longest = |length| AdvertisedPrefix {
        prefix_length: length,
        ..AdvertisedPrefix::new(PREFIX)
    };
    let mut config = RouterConfig {
        prefixes: vec![longest(128)],
        ..RouterConfig::default()
    };
    assert_eq!(config.check(), Ok(()));
    config.prefixes.push(longest(129));
    assert!(config.check().is_err());
}

#[test]
fn an_advertisement_says_what_the_router_was_set_to() {
    let mut nd = router(RouterConfig {
        cur_hop_limit: 77,
        managed: true,
        default_lifetime: Duration::from_millis(90_999),
        retrans_timer: Some(Duration::from_millis(123)),
        link_mtu: Some(1400),
        prefixes: vec![AdvertisedPrefix {
            valid_lifetime: None,
            preferred_lifetime: Some(Duration::from_millis(5999)),
            on_link: false,
            ..AdvertisedPrefix::new(PREFIX)
        }],
        ..steady(10, 10)
    });
    nd.handle_timeout(at(10_000));
    let packet = nd.poll_transmit(at(10_000)).unwrap().packet;
    assert!(packet.nd_is_valid());
    assert_eq!(
        (packet.ip.source, packet.ip.destination),
        (link_local(OTHER), ALL_NODES)
    );
    let Payload::Icmpv6(Icmpv6::RouterAdvertisement(ra)) = packet.payload else {
        panic!("an advertisement")
    };
    assert_eq!(
        (ra.cur_hop_limit, ra.managed, ra.router_lifetime_s),
        (77, true, 90)
    );
    assert_eq!(ra.retrans_timer_ms, 123);
    let prefix = PrefixInformation {
        prefix: PREFIX,
        prefix_length: 64,
        on_link: false,
        autonomous: true,
        router_address: false,
        valid_lifetime_s: INFINITE_LIFETIME_S,
        preferred_lifetime_s: 5,
    };
    assert_eq!(
        ra.options,
        [
            NdOption::SourceLinkLayerAddress(OTHER),
            NdOption::Mtu(1400),
            NdOption::PrefixInformation(prefix)
        ]
    );
}

#[test]
fn hosts_that_solicit_again_are_answered_once_and_when_it_is_time() {
    let mut nd = router(RouterConfig {
        unicast_solicited: true,
        ..RouterConfig::default()
    });
    let from = |source| {
        nd_packet(
            source,
            ALL_ROUTERS,
            Icmpv6::RouterSolicitation(Default::default()),
        )
    };
    let (first, second) = (link_local(MAC), link_local(OTHER));
    for source in [first, first, second] {
        nd.handle_packet(at(1000), &from(source));
    }
    let mut answered = Vec::new();
    for time in 1000..=1500 {
        nd.handle_timeout(at(time));
        while let Some(transmit) = nd.poll_transmit(at(time)) {
            answered.push(transmit.packet.ip.destination);
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, [first, second]);
    // a host without an address cannot be answered alone
    nd.handle_packet(at(2000), &from(Ipv6Addr::UNSPECIFIED));
    let time = nd.poll_timeout().unwrap();
    assert!(time <= at(2500));
    nd.handle_timeout(time);
    assert_eq!(nd.poll_transmit(time).unwrap().packet.ip.destination, ALL_NODES);
}

#[test]
fn a_solicitation_never_puts_an_advertisement_off() {
    let mut nd = router(RouterConfig {
        max_initial_rtr_advertisements: 0,
        max_ra_delay_time: Duration::ZERO,
        ..steady(4, 4)
    });
    nd.handle_timeout(at(4000));
    while nd.poll_transmit(at(4000)).is_some() {}
    let solicitation = nd_packet(
        Ipv6Addr::UNSPECIFIED,
        ALL_ROUTERS,
        Icmpv6::RouterSolicitation(Default::default()),
    );
    nd.handle_packet(at(4500), &solicitation);
    assert_eq!(nd.poll_timeout(), Some(at(7000)), "MIN_DELAY_BETWEEN_RAS");
    nd.handle_packet(at(6999), &solicitation);
    assert_eq!(nd.poll_timeout(), Some(at(7000)));
    nd.handle_packet(at(7000), &solicitation);
    assert!(nd.poll_transmit(at(7000)).is_some());
}

#[test]
fn an_interval_goes_on_from_its_own_time_unless_it_was_missed_altogether() {
    let mut nd = router(RouterConfig {
        max_initial_rtr_advertisements: 0,
        ..steady(10, 10)
    });
    assert_eq!(nd.poll_timeout(), Some(at(10_000)));
    nd.handle_timeout(at(10_300));
    assert_eq!(nd.poll_timeout(), Some(at(20_000)));
    nd.handle_timeout(at(45_000));
    assert_eq!(nd.poll_timeout(), Some(at(55_000)));
}

#[test]
fn a_router_answers_for_its_own_addresses_alone() {
    // RFC 4861 section 7.2.4
    let mut nd = router(RouterConfig::default());
    let added = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
    let asks = |target, source: Ipv6Addr| {
        let ns = NeighborSolicitation {
            target,
            options: Vec::new(),
        };
        nd_packet(source, solicited_node(target), Icmpv6::NeighborSolicitation(ns))
    };
    nd.handle_packet(at(1), &asks(added, link_local(MAC)));
    assert!(nd.poll_transmit(at(1)).is_none());
    nd.add_address(added);
    for (source, destination, solicited) in [
        (link_local(MAC), link_local(MAC), true),
        (Ipv6Addr::UNSPECIFIED, ALL_NODES, false),
    ] {
        nd.handle_packet(at(1), &asks(added, source));
        let answer = nd.poll_transmit(at(1)).unwrap().packet;
        assert_eq!((answer.ip.source, answer.ip.destination), (added, destination));
        let Payload::Icmpv6(Icmpv6::NeighborAdvertisement(na)) = answer.payload else {
            panic!("an advertisement")
        };
        assert_eq!(
            (na.target, na.router, na.solicited, na.override_flag),
            (added, true, solicited, true)
        );
        assert_eq!(na.options, [NdOption::TargetLinkLayerAddress(OTHER)]);
    }
}
