//! ILNP engineering (RFC 6741, RFC 6740 sections 4 to 6): the cache, locators of both ends, checksums, first contact,
//! recovery, ephemeral identifiers.

use bytes::Bytes;
use segue_conformance::shims::{Fate, Shims, datagram, header, locator, ms, nid};
use segue_proto::address::AddressEvent;
use segue_proto::contract::{InterfaceId, LocalAddress};
use segue_proto::ilnp::{
    ChecksumRule, Config, Handoff, Identifiers, LocatorState, Mode, PeerConfig, Sharing, Trigger,
};
use segue_proto::shim::{Shim, ShimEvent};
use segue_wire::ilnp::{Locator, LocatorOperation, Nid};
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, Payload, PseudoRule, RawPayload};
use std::collections::BTreeMap;

fn talking(config: &Config) -> Shims {
    let mut shims = Shims::pair(config);
    shims.greet();
    for host in &mut shims.hosts {
        host.up.clear();
    }
    shims.sent.clear();
    shims
}

/// Section 4.1: what transports see does not change, whatever the locators are.
#[test]
fn transports_see_identities_only() {
    let mut shims = talking(&Config::default());
    let b = shims.identity(1);
    assert_eq!(b.to_string(), "fd53:6567:7565:1:200:ff:fe00:2");
    for n in 3..8 {
        shims.arrive(0, n as u8, locator(n));
        shims.send(0, b, b"hello");
        shims.run_for(ms(50));
    }
    assert_eq!(shims.heard(1, 0).len(), 5);
    let data = |(_, by, p): &&(_, usize, Packet)| *by == 0 && matches!(p.payload, Payload::Udp(_));
    let sent = shims.sent.iter().filter(data);
    let sources: Vec<_> = sent.map(|(_, _, p)| Locator::of(p.ip.source)).collect();
    assert_eq!(sources, (3..8).map(locator).collect::<Vec<_>>());
}

/// Section 4.2 and draft-bhatti-ilnp-tcp-udp-checksums: packets on the wire follow the rule, and a peer that uses the other
/// is answered in kind.
#[test]
fn checksums_follow_the_rule_and_then_the_peer() {
    let rules = [ChecksumRule::Ipv6, ChecksumRule::Identifiers];
    for (own, others) in rules
        .into_iter()
        .flat_map(|a| rules.into_iter().map(move |b| (a, b)))
    {
        let config = |checksum| Config {
            checksum,
            ..Config::default()
        };
        let mut shims = Shims::new([config(own), config(others)]);
        shims.arrive(0, 0, locator(1));
        shims.arrive(1, 0, locator(2));
        shims.greet();
        let noted: Vec<_> = shims
            .sent
            .iter()
            .map(|(_, _, p)| p.ilnp_nonce().unwrap().1)
            .collect();
        assert_eq!(
            noted,
            vec![PseudoRule::from(own); noted.len()],
            "who began decides"
        );
        assert_eq!((shims.heard(0, 1).len(), shims.heard(1, 0).len()), (1, 2));
        for (_, _, packet) in &shims.sent {
            let bytes = packet.to_vec();
            let pseudo = segue_wire::checksum::PseudoHeader {
                source: packet.ip.source,
                destination: packet.ip.destination,
            };
            assert_eq!(pseudo.under(own.into()).checksum(17, &bytes[48..]), 0);
        }
    }
}

/// Under a kernel's transport: the checksum that the kernel put over identities is right on the wire by either rule, and
/// right again when the packet comes up.
#[test]
fn checksums_of_raw_payloads_are_adjusted_both_ways() {
    for (rule, state) in [ChecksumRule::Ipv6, ChecksumRule::Identifiers]
        .into_iter()
        .flat_map(|rule| [ChecksumState::Complete, ChecksumState::Partial].map(|state| (rule, state)))
    {
        let mut shims = talking(&Config {
            checksum: rule,
            ..Config::default()
        });
        let (a, b) = (shims.identity(0), shims.identity(1));
        // a TCP segment of Linux: SYN, with options
        let mut bytes = vec![
            0x9c, 0x40, 0x14, 0x51, 1, 2, 3, 4, 0, 0, 0, 0, 0x60, 2, 0xfa, 0xf0, 0, 0, 0, 0, 2, 4, 5, 0xa0,
        ];
        let pseudo = segue_wire::checksum::PseudoHeader {
            source: a,
            destination: b,
        };
        let sum = match state {
            ChecksumState::Partial => pseudo.partial_sum(6, bytes.len()),
            _ => pseudo.checksum(6, &bytes),
        };
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        let raw = RawPayload {
            next_header: 6,
            bytes: bytes.into(),
            checksum: state,
            segment_size: None,
        };
        let packet = Packet {
            ip: header(a, b),
            extensions: Vec::new(),
            payload: Payload::Raw(raw),
        };
        let now = shims.now;
        let out = shims.hosts[0].shim.outbound(now, packet).expect("a way");
        let wire = Bytes::from(out.packet.to_vec());
        let arrived = Packet::parse_raw(&wire, ChecksumState::Complete, None).expect("right by one rule");
        assert_eq!(arrived.ilnp_nonce().map(|n| n.1), Some(rule.into()));
        let inbound = shims.hosts[1].shim.inbound(now, InterfaceId(0), arrived);
        let segue_proto::shim::Inbound::Up(up) = inbound else {
            panic!("{inbound:?}")
        };
        let Payload::Raw(raw) = &up.payload else { panic!() };
        assert_eq!((up.ip.source, up.ip.destination), (a, b));
        assert_eq!(pseudo.checksum(6, &raw.bytes), 0, "{rule:?} {state:?}");
    }
}

/// First contact, where the locators of the peer are in the configuration.
#[test]
fn configured_peers_are_called_without_a_look_up() {
    let config = Config {
        peers: vec![PeerConfig {
            nid: nid(1),
            locators: vec![locator(2)],
        }],
        ..Config::default()
    };
    let mut shims = Shims::new([config, Config::default()]);
    shims.arrive(0, 0, locator(1));
    shims.arrive(1, 0, locator(2));
    let b = shims.identity(1);
    shims.send(0, b, b"hello");
    shims.run_for(ms(50));
    assert_eq!(shims.heard(1, 0), ["hello"]);
    assert_eq!(shims.counters(0).look_ups, 0);
}

/// First contact by the directory (RFC 6742): packets wait for the answer, as many as may.
#[test]
fn packets_wait_for_the_directory() {
    let mut shims = Shims::pair(&Config {
        max_held: 3,
        ..Config::default()
    });
    let b = shims.identity(1);
    for _ in 0..5 {
        shims.send(0, b, b"hello");
    }
    assert!(shims.sent.is_empty());
    assert!(shims.reported(0, |e| *e == ShimEvent::LookUp { peer: b }));
    shims.run_for(ms(100));
    assert_eq!(shims.heard(1, 0).len(), 3);
    assert_eq!(
        (shims.counters(0).no_remote_locator, shims.counters(0).look_ups),
        (2, 1)
    );
    // somebody that the directory does not know
    let nobody = Config::default().identity_prefix.address(Nid(77));
    shims.send(0, nobody, b"hello");
    shims.run_for(ms(100));
    assert_eq!(shims.counters(0).not_found, 1);
}

/// First contact at a real address, which stays the peer's identity for this host's transports.
#[test]
fn a_peer_called_at_its_address_keeps_it_as_its_identity() {
    let mut shims = Shims::pair(&Config::default());
    let (a, real) = (shims.identity(0), locator(2).address(nid(1)));
    shims.send(0, real, b"hello");
    shims.run_for(ms(50));
    assert_eq!(shims.heard(1, 0), ["hello"]);
    shims.send(1, a, b"back");
    shims.run_for(ms(50));
    shims.arrive(1, 1, locator(5));
    shims.run_for(ms(50));
    shims.send(1, a, b"back from elsewhere");
    shims.send(0, real, b"to elsewhere");
    shims.run_for(ms(50));
    assert_eq!(
        shims.sent.last().unwrap().2.ip.destination,
        locator(5).address(nid(1))
    );
    let sources: Vec<_> = shims.hosts[0].up.iter().map(|(_, p)| p.ip.source).collect();
    assert_eq!(sources, [real, real]);
    // by another name it would be two peers with one nonce
    let by_prefix = shims.identity(1);
    shims.send(0, by_prefix, b"second");
    assert_eq!(shims.counters(0).second_identity, 1);
}

/// RFC 6740 section 5.2 (claim I12): several locators at each end carry one flow, packet by packet.
#[test]
fn one_flow_over_every_pair_of_locators() {
    let config = Config {
        handoff: Handoff::Multihomed,
        sharing: Sharing::PerPacket,
        ..Config::default()
    };
    let mut shims = talking(&config);
    let (a, b) = (shims.identity(0), shims.identity(1));
    shims.arrive(0, 1, locator(3));
    shims.arrive(1, 1, locator(4));
    shims.arrive(1, 2, locator(5));
    shims.run_for(ms(100));
    shims.sent.clear();
    for _ in 0..60 {
        shims.send(0, b, b"there");
        shims.send(1, a, b"back");
    }
    shims.run_for(ms(100));
    assert_eq!((shims.heard(1, 0).len(), shims.heard(0, 1).len()), (60, 60));
    let mut pairs: BTreeMap<_, u32> = BTreeMap::new();
    for (_, by, packet) in &shims.sent {
        *pairs
            .entry((
                *by,
                Locator::of(packet.ip.source),
                Locator::of(packet.ip.destination),
            ))
            .or_default() += 1;
    }
    assert_eq!(pairs.len(), 12, "two by three, both ways");
    assert!(pairs.values().all(|n| *n == 10), "{pairs:?}");
}

/// Per flow: the packets of each keep their way, and flows do not all take the same.
#[test]
fn flows_are_shared_out_whole() {
    let config = Config {
        handoff: Handoff::Multihomed,
        sharing: Sharing::PerFlow,
        ..Config::default()
    };
    let mut shims = talking(&config);
    let b = shims.identity(1);
    shims.arrive(0, 1, locator(3));
    shims.arrive(1, 1, locator(4));
    shims.run_for(ms(100));
    shims.sent.clear();
    for n in 0..320_u16 {
        let mut packet = datagram(shims.identity(0), b, b"hello");
        let Payload::Udp(udp) = &mut packet.payload else {
            unreachable!()
        };
        udp.source_port = 5000 + n % 32;
        shims.send_packet(0, packet);
    }
    let mut ways: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for (_, _, packet) in &shims.sent {
        let Payload::Udp(udp) = &packet.payload else {
            continue;
        };
        ways.entry(udp.source_port)
            .or_default()
            .push((packet.ip.source, packet.ip.destination));
    }
    let mut used = Vec::new();
    for way in ways.values_mut() {
        way.dedup();
        assert_eq!(way.len(), 1);
        used.push(way[0]);
    }
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), 4);
}

/// draft-bhatti-ilnp-preference: lower is better, and the next best takes over when the best is gone.
#[test]
fn the_best_preference_is_used_at_both_ends() {
    let config = Config {
        handoff: Handoff::Multihomed,
        sharing: Sharing::PerPacket,
        preferences: vec![20, 10, 30],
        ..Config::default()
    };
    let mut shims = talking(&config);
    let a = shims.identity(0);
    for (interface, at) in [(1, 3), (2, 4)] {
        shims.arrive(0, interface, locator(at));
    }
    shims.run_for(ms(100));
    let to = |shims: &mut Shims| {
        shims.send(1, a, b"hello");
        shims.run_for(ms(50));
        Locator::of(
            shims
                .sent
                .iter()
                .rev()
                .find(|(_, by, _)| *by == 1)
                .unwrap()
                .2
                .ip
                .destination,
        )
    };
    assert_eq!([to(&mut shims), to(&mut shims)], [locator(3); 2]);
    shims.leave(0, 1, locator(3));
    shims.run_for(ms(100));
    assert_eq!([to(&mut shims), to(&mut shims)], [locator(1); 2]);
    shims.leave(0, 0, locator(1));
    shims.run_for(ms(100));
    assert_eq!([to(&mut shims), to(&mut shims)], [locator(4); 2]);
    assert_eq!(shims.heard(0, 1).len(), 6);
}

/// Section 5.1: valid, active when used, aged when the lifetime is over, expired when it is used then for want of another.
#[test]
fn remote_locators_age() {
    let mut shims = talking(&Config {
        locator_lifetime: ms(20_000),
        active_time: ms(5000),
        idle_timeout: ms(600_000),
        ..Config::default()
    });
    let a = shims.identity(0);
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(50));
    let state = |shims: &Shims, n: u16| {
        let peer = shims.hosts[1].shim.correspondents().next().unwrap();
        let l = peer.locators.iter().find(|l| l.locator == locator(n))?;
        Some(l.state(shims.now, ms(5000)))
    };
    assert_eq!(
        (state(&shims, 1), state(&shims, 3)),
        (Some(LocatorState::Active), Some(LocatorState::Valid))
    );
    shims.send(1, a, b"hello");
    assert_eq!(state(&shims, 3), Some(LocatorState::Active));
    shims.run_for(ms(6000));
    assert_eq!(state(&shims, 1), Some(LocatorState::Valid));
    // the host is gone without a word
    shims.fate = Box::new(|_, _| Fate::Lost);
    shims.run_for(ms(30_000));
    assert_eq!(state(&shims, 3), Some(LocatorState::Aged));
    shims.send(1, a, b"hello?");
    assert_eq!(
        Locator::of(shims.sent.last().unwrap().2.ip.destination),
        locator(3)
    );
    assert_eq!(
        state(&shims, 3),
        Some(LocatorState::Expired),
        "in use, beyond its expiration, without another"
    );
}

/// Section 5.2: what is not used is forgotten.
#[test]
fn idle_correspondents_are_forgotten() {
    let mut shims = talking(&Config {
        idle_timeout: ms(60_000),
        ..Config::default()
    });
    let b = shims.identity(1);
    shims.run_for(ms(50_000));
    shims.send(0, b, b"still there");
    shims.run_for(ms(50_000));
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 1);
    shims.run_for(ms(60_000));
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 0);
}

#[test]
fn the_cache_is_bounded() {
    let mut shims = Shims::pair(&Config {
        max_correspondents: 10,
        ..Config::default()
    });
    shims.greet();
    for n in 0..100 {
        let packet = datagram(
            locator(9).address(Nid(1000 + n)),
            locator(1).address(nid(0)),
            b"hello",
        );
        let nonce = segue_wire::ilnp::Nonce::Bits32([n as u8; 4]);
        shims.inject(segue_conformance::shims::with_nonce(packet, nonce));
    }
    shims.run_for(ms(50));
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 10);
    assert_eq!(shims.counters(0).forgotten, 91);
}

/// 004 section 5.3 (claim I14): a router that is not heard for too long makes a false handoff, and being heard, another.
#[test]
fn a_silent_router_makes_a_false_handoff() {
    for timeout in [None, Some(ms(3000))] {
        let mut shims = talking(&Config {
            locator_timeout: timeout,
            ..Config::default()
        });
        let heard = |shims: &mut Shims, interface: u8| {
            let router = "fe80::1".parse().unwrap();
            shims.address(
                0,
                &AddressEvent::RouterHeard {
                    interface: InterfaceId(interface),
                    router,
                },
            );
        };
        shims.arrive(0, 1, locator(3));
        shims.run_for(ms(100));
        // interface 0 is heard every second, interface 1 not
        for _ in 0..5 {
            shims.run_for(ms(1000));
            heard(&mut shims, 0);
        }
        let in_use = |shims: &Shims| {
            let all = shims.hosts[0].shim.locators();
            all.iter()
                .find(|l| l.state == LocatorState::Active)
                .unwrap()
                .locator
        };
        let false_handoff = timeout.is_some();
        assert_eq!(in_use(&shims), locator(if false_handoff { 1 } else { 3 }));
        assert_eq!(shims.counters(0).locators_stale, u64::from(false_handoff));
        heard(&mut shims, 1);
        assert_eq!(in_use(&shims), locator(3));
        shims.run_for(ms(100));
        assert_eq!(shims.counters(0).handoffs, if false_handoff { 3 } else { 1 });
    }
}

/// Whatever its router does, the only locator there is stays in use.
#[test]
fn the_last_locator_is_used_however_stale() {
    let mut shims = talking(&Config {
        locator_timeout: Some(ms(1000)),
        ..Config::default()
    });
    let b = shims.identity(1);
    shims.run_for(ms(10_000));
    shims.send(0, b, b"hello");
    shims.run_for(ms(50));
    assert_eq!(shims.heard(1, 0), ["hello"]);
    assert_eq!(shims.counters(0).handoffs, 0);
}

/// 004 section 6.1.1: a host that stays on the better link as long as it can.
#[test]
fn a_new_locator_may_wait_until_the_old_one_is_lost() {
    let mut shims = talking(&Config {
        trigger: Trigger::Lost,
        handoff: Handoff::Hard,
        ..Config::default()
    });
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(1000));
    assert_eq!(shims.counters(0).handoffs, 0);
    shims.leave(0, 0, locator(1));
    shims.run_for(ms(100));
    assert!(shims.reported(
        0,
        |e| matches!(e, ShimEvent::HandoffDone { delay, .. } if *delay == ms(20))
    ));
    let (_, update) = shims.updates(0, LocatorOperation::Advertisement)[0];
    assert_eq!(Locator::of(update.ip.source), locator(3));
}

/// RFC 6740 section 6.2: a peer that is silent may have moved while we did not look.
#[test]
fn a_silent_peer_is_looked_up() {
    let mut shims = talking(&Config::default());
    let b = shims.identity(1);
    // the peer moves, and its update is lost for as long as it tries
    shims.fate = Box::new(|_, p| {
        let update = segue_conformance::shims::update_in(p).is_some();
        if update { Fate::Lost } else { Fate::Arrives }
    });
    shims.arrive(1, 1, locator(4));
    shims.leave(1, 0, locator(2));
    for _ in 0..40 {
        shims.send(0, b, b"hello");
        shims.run_for(ms(250));
    }
    assert!(shims.reported(0, |e| *e == ShimEvent::LookUp { peer: b }));
    assert!(shims.reported(0, |e| *e
        == ShimEvent::RouteChanged {
            peer: b,
            to: locator(4).address(nid(1))
        }));
    assert!(!shims.heard(1, 0).is_empty());
}

/// RFC 6740 section 10.2 (claim I11): each peer sees another identifier; the transports at this host see one identity; and
/// handoffs work.
#[test]
fn ephemeral_identifiers_keep_peers_from_comparing_notes() {
    let ephemeral = Config {
        identifiers: Identifiers::Ephemeral,
        handoff: Handoff::Soft,
        ..Config::default()
    };
    let mut shims = Shims::new([ephemeral, Config::default(), Config::default()]);
    for host in 0..3 {
        shims.arrive(host, 0, locator(host as u16 + 1));
    }
    let own = shims.identity(0);
    let mut seen = Vec::new();
    for host in [1, 2] {
        let peer = shims.identity(host);
        shims.send(0, peer, b"hello");
        shims.run_for(ms(100));
        let caller = shims.hosts[host].up[0].1.ip.source;
        shims.send(host, caller, b"who are you?");
        shims.run_for(ms(100));
        let (_, answer) = shims.hosts[0].up.pop().expect("an answer");
        assert_eq!((answer.ip.source, answer.ip.destination), (peer, own));
        seen.push(caller);
    }
    assert_ne!(seen[0], seen[1]);
    assert!(!seen.contains(&own));
    shims.sent.clear();
    shims.arrive(0, 1, locator(7));
    shims.run_for(ms(200));
    assert!(shims.reported(0, |e| matches!(e, ShimEvent::HandoffDone { .. })));
    for (n, host) in [1, 2].into_iter().enumerate() {
        shims.send(host, seen[n], b"where are you?");
        shims.run_for(ms(100));
        let to = shims.sent.last().unwrap().2.ip.destination;
        assert_eq!((Locator::of(to), Nid::of(to)), (locator(7), Nid::of(seen[n])));
        assert_eq!(shims.hosts[0].up.pop().unwrap().1.ip.destination, own);
        assert_eq!(
            shims.hosts[host].shim.correspondents().next().unwrap().mode,
            Mode::Ilnp
        );
    }
    // nothing on the wire names the host
    assert!(
        shims
            .sent
            .iter()
            .all(|(_, _, p)| Nid::of(p.ip.source) != nid(0) && Nid::of(p.ip.destination) != nid(0))
    );
}

/// What is not this host's identity passes as it is, over the interface of its address.
#[test]
fn other_addresses_are_none_of_the_shims_business() {
    let mut shims = talking(&Config::default());
    let address = "2001:db8:0:8::8".parse().unwrap();
    shims.address(
        0,
        &AddressEvent::Ready(LocalAddress {
            interface: InterfaceId(3),
            address,
        }),
    );
    let now = shims.now;
    let packet = datagram(address, "2001:db8::9".parse().unwrap(), b"hello");
    let transmit = shims.hosts[0].shim.outbound(now, packet.clone()).expect("a way");
    assert_eq!((transmit.interface, transmit.packet), (InterfaceId(3), packet));
}

/// A host without a locator, or without one yet, says so by counting.
#[test]
fn without_a_locator_nothing_is_sent() {
    let mut shims = talking(&Config::default());
    let b = shims.identity(1);
    shims.leave(0, 0, locator(1));
    shims.send(0, b, b"hello");
    assert!(shims.sent.is_empty());
    assert_eq!(shims.counters(0).no_local_locator, 1);
    shims.arrive(0, 0, locator(1));
    shims.send(0, b, b"hello");
    shims.run_for(ms(50));
    assert_eq!(shims.heard(1, 0), ["hello"]);
}

#[test]
fn configurations_that_cannot_be_are_refused() {
    let good = Config::new(Nid(1));
    assert_eq!(good.check(), Ok(()));
    let peer = |nid, locators| PeerConfig { nid, locators };
    let bad = [
        ("nid", Config::default()),
        (
            "identity_prefix",
            Config {
                identity_prefix: Locator(0),
                ..good.clone()
            },
        ),
        (
            "lu_timeout",
            Config {
                lu_timeout: ms(0),
                ..good.clone()
            },
        ),
        (
            "lu_max_timeout",
            Config {
                lu_max_timeout: ms(1),
                ..good.clone()
            },
        ),
        (
            "locator_lifetime",
            Config {
                locator_lifetime: ms(1500),
                ..good.clone()
            },
        ),
        (
            "lu_attempts",
            Config {
                lu_attempts: 0,
                ..good.clone()
            },
        ),
        (
            "fallback_after",
            Config {
                fallback_after: Some(0),
                ..good.clone()
            },
        ),
        (
            "locator_timeout",
            Config {
                locator_timeout: Some(ms(0)),
                ..good.clone()
            },
        ),
        (
            "peers",
            Config {
                peers: vec![peer(Nid(1), vec![locator(1)])],
                ..good.clone()
            },
        ),
        (
            "peers",
            Config {
                peers: vec![peer(Nid(2), vec![])],
                ..good.clone()
            },
        ),
        (
            "peers",
            Config {
                peers: vec![peer(Nid(2), vec![Locator(0xff02 << 48)])],
                ..good.clone()
            },
        ),
        (
            "ephemeral_pool",
            Config {
                ephemeral_pool: 0,
                identifiers: Identifiers::Ephemeral,
                ..good
            },
        ),
    ];
    for (key, config) in bad {
        let error = config.check().expect_err(key);
        assert!(error.starts_with(&format!("{key}: ")), "{error}");
    }
}
