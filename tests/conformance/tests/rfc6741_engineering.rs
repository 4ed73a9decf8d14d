//! ILNP engineering (RFC 6741, RFC 6740 sections 4 to 6): the cache, locators of both ends, checksums, first contact,
//! recovery, ephemeral identifiers.

mod checksums;
mod configuration;
mod first_contact;

use bytes::Bytes;
use segue_conformance::shims::{Fate, Shims, datagram, header, locator, ms, nid};
use segue_proto::address::AddressEvent;
use segue_proto::contract::{InterfaceId, LocalAddress};
use segue_proto::ilnp::{
    ChecksumRule, Config, Handoff, Identifiers, LocatorState, Mode, NonceIn, PeerConfig, Sharing, Trigger,
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
        let l = peer.locators().iter().find(|l| l.locator == locator(n))?;
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
            let mut all = shims.hosts[0].shim.locators();
            all.find(|l| l.state == LocatorState::Active).unwrap().locator
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
