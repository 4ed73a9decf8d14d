//! What the kernel is told to carry, and when that is taken back.

use super::*;
use crate::fast_path::{Carried, Carrier, FastPath, Flow, Leaves, Seen, Step};
use segue_proto::ilnp::{Direct, SessionKey};
use std::collections::BTreeMap;
use std::io;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// In place of the programs.
#[derive(Debug)]
struct Told {
    sessions: BTreeMap<SessionKey, (Direct, u32, Leaves)>,
    flows: BTreeMap<Flow, SessionKey>,
    carried: Carried,
    packets: BTreeMap<Flow, u64>,
    drained: Vec<(u32, Instant)>,
    forgiven: u32,
}

impl Told {
    fn new() -> Self {
        Self {
            sessions: BTreeMap::new(),
            flows: BTreeMap::new(),
            carried: Carried::NONE,
            packets: BTreeMap::new(),
            drained: Vec::new(),
            forgiven: 0,
        }
    }
}

impl Carrier for Told {
    fn begin(&mut self, direct: &Direct, path_mtu: u32, leaves: Leaves) -> io::Result<()> {
        let before = self.sessions.insert(direct.session, (*direct, path_mtu, leaves));
        assert_eq!(before, None);
        Ok(())
    }

    fn add(&mut self, _: Instant, session: SessionKey, flow: Flow) -> io::Result<()> {
        assert!(self.sessions.contains_key(&session));
        assert_eq!(self.flows.insert(flow, session), None);
        Ok(())
    }

    fn forget(&mut self, session: SessionKey, flow: Flow) {
        assert_eq!(self.flows.remove(&flow), Some(session));
    }

    fn end(&mut self, direct: &Direct) -> Carried {
        assert!(self.sessions.remove(&direct.session).is_some());
        assert!(!self.flows.values().any(|session| *session == direct.session));
        self.carried
    }

    fn carried(&self, _: SessionKey) -> Carried {
        self.carried
    }

    fn packets(&self, flow: Flow) -> u64 {
        self.packets.get(&flow).copied().unwrap_or_default()
    }

    fn drained(&mut self, index: u32, at: Instant) {
        self.drained.push((index, at));
    }

    fn lost(&self) -> u64 {
        0
    }

    fn forgive(&mut self) {
        self.forgiven += 1;
    }
}

/// A session in which both ends have been heard often enough, and what host 0 has the kernel carry.
fn settled() -> (World, FastPath<Told>) {
    settled_with(|_| {})
}

fn settled_with(configure: impl Fn(&mut Config)) -> (World, FastPath<Told>) {
    let mut world = World::of(configure);
    for n in 0..8 {
        world.send(at(100 + n), 0, &datagram(0, 7, 9, b"there"));
        world.send(at(100 + n), 1, &datagram(1, 9, 7, b"back"));
    }
    (world, FastPath::new(Told::new()))
}

fn seen(packet: &Packet) -> Option<Seen> {
    Seen::sent(&packet.to_vec())
}

fn leaves(interface: InterfaceId) -> Leaves {
    Leaves {
        index: 100 + u32::from(interface.0),
        next_hop: ROUTER,
    }
}

fn offer(world: &World, fast_path: &mut FastPath<Told>, now: Instant, packet: &Packet) {
    let seen = seen(packet).expect("a flow");
    fast_path.offer(now, &world.hosts[0], seen, |interface, _| Some(leaves(interface)));
}

#[test]
fn a_flow_is_what_neither_begins_nor_ends_something() {
    for (flags, step) in [
        (ACK, Step::GoesOn),
        (ACK | 8, Step::GoesOn),
        (ACK | FIN, Step::Ends),
        (SYN, Step::Begins),
        (ACK | SYN, Step::Begins),
        (RST, Step::Ends),
        (RST | SYN, Step::Ends),
    ] {
        assert_eq!(seen(&segment(0, flags, &[], 5)).unwrap().step, step, "{flags}");
    }
    let whole = Seen {
        flow: Flow {
            peer: identity(1),
            protocol: 6,
            own_port: 7,
            peers_port: 9,
        },
        step: Step::GoesOn,
    };
    assert_eq!(seen(&segment(0, ACK, &[], 5)), Some(whole));
    // the same flow, as the peer's packets have it
    assert_eq!(Seen::received(&segment(1, ACK, &[], 5)), Some(whole));
    let begins = Step::Begins;
    assert_eq!(
        Seen::received(&segment(1, SYN, &[], 5)),
        Some(Seen {
            step: begins,
            ..whole
        })
    );
    let echo = Icmpv6::EchoRequest(segue_wire::icmpv6::Echo {
        identifier: 1,
        sequence: 1,
        data: Bytes::new(),
    });
    assert_eq!(seen(&icmp(identity(0), identity(1), echo)), None);
    assert_eq!(Seen::sent(&[0x60; 42]), None);
}

#[test]
fn what_is_settled_is_carried_as_it_goes_and_others_flows_are_not() {
    let (world, mut fast_path) = settled();
    offer(&world, &mut fast_path, at(200), &datagram(0, 7, 9, b"there"));
    offer(&world, &mut fast_path, at(201), &datagram(0, 7, 9, b"there"));
    let (direct, most, leaving) = *fast_path.carrier_mut().sessions.values().next().unwrap();
    assert_eq!((direct.peer, direct.interface), (identity(1), InterfaceId(1)));
    assert_eq!(leaving, leaves(InterfaceId(1)));
    assert_eq!(
        (direct.here, direct.there),
        (locator(1).address(NIDS[0]), locator(3).address(NIDS[1]))
    );
    assert_eq!(most, 1500);
    assert_ne!(direct.nonce, direct.peers_nonce);
    assert_eq!(fast_path.carrier_mut().flows.len(), 1);
    // where nobody knows the next hop
    let mut elsewhere = FastPath::new(Told::new());
    elsewhere.offer(
        at(202),
        &world.hosts[0],
        seen(&datagram(0, 7, 9, b"there")).unwrap(),
        |_, _| None,
    );
    assert!(elsewhere.carrier_mut().sessions.is_empty());
    // of no session yet
    offer(&world, &mut fast_path, at(202), &datagram(0, 8, 9, b"there"));
    assert_eq!(fast_path.carrier_mut().flows.len(), 1);
}

#[test]
fn a_connection_that_is_closed_is_not_carried_until_another_begins() {
    let (mut world, mut fast_path) = settled();
    world.send(at(150), 0, &segment(0, SYN, &[], 0));
    world.send(at(151), 1, &segment(1, SYN | ACK, &[], 0));
    // the last acknowledgement is one of the connection that has ended
    for (flags, carried) in [
        (SYN, 0),
        (ACK, 1),
        (FIN | ACK, 0),
        (ACK, 0),
        (SYN, 0),
        (ACK, 1),
        (RST, 0),
        (ACK, 0),
    ] {
        offer(&world, &mut fast_path, at(200), &segment(0, flags, &[], 5));
        assert_eq!(fast_path.carrier_mut().flows.len(), carried, "{flags}");
    }
    assert_eq!(fast_path.carrier_mut().sessions.len(), 1);
}

#[test]
fn a_flow_that_is_idle_makes_room_and_one_that_is_not_is_in_use() {
    let (mut world, mut fast_path) = settled();
    for own_port in [7, 8] {
        world.send(at(150), 0, &datagram(0, own_port, 9, b"there"));
        offer(
            &world,
            &mut fast_path,
            at(200),
            &datagram(0, own_port, 9, b"there"),
        );
    }
    let [busy, _] = [7, 8].map(|own_port| seen(&datagram(0, own_port, 9, b"there")).unwrap().flow);
    assert_eq!(fast_path.carrier_mut().flows.len(), 2);
    for n in 1..=3 {
        fast_path.carrier_mut().packets.insert(busy, n);
        fast_path.look(at(200 + 1000 * n), &mut world.hosts[0]);
    }
    let left: Vec<Flow> = fast_path.carrier_mut().flows.keys().copied().collect();
    assert_eq!(left, [busy]);
}

#[test]
fn what_leaves_elsewhere_is_taken_back_and_what_does_not_goes_on() {
    let (mut world, mut fast_path) = settled();
    offer(&world, &mut fast_path, at(200), &datagram(0, 7, 9, b"there"));
    fast_path.check_ways(at(201), &mut world.hosts[0], |interface, _| {
        Some(leaves(interface))
    });
    assert_eq!(fast_path.carrier_mut().sessions.len(), 1);
    fast_path.check_ways(at(202), &mut world.hosts[0], |interface, _| {
        Some(Leaves {
            next_hop: locator(3).address(NIDS[1]),
            ..leaves(interface)
        })
    });
    assert!(fast_path.carrier_mut().sessions.is_empty());
}

#[test]
fn what_is_sent_and_not_answered_is_probed_for_as_if_it_had_been_seen() {
    // sent after the peer was last heard, or answered; the agent hears of both forty milliseconds later
    for (heard, probed) in [(1300, true), (1303, false)] {
        let (mut world, mut fast_path) = settled_with(|c| c.detect_silence = true);
        offer(&world, &mut fast_path, at(200), &datagram(0, 7, 9, b"there"));
        // a probe from before is answered
        world.hosts[0].handle_timeout(at(1295));
        world.settle(at(1295));
        let carried = &mut fast_path.carrier_mut().carried;
        (carried.received, carried.heard) = (5, at(heard));
        (carried.sent, carried.first_sent) = (6, at(1302));
        fast_path.look(at(1340), &mut world.hosts[0]);
        assert_eq!(fast_path.poll_timeout(), Some(at(1380)));
        assert_eq!(world.hosts[0].poll_timeout(), Some(at(1342)));
        world.hosts[0].handle_timeout(at(1342));
        assert_eq!(world.hosts[0].poll_wire().is_some(), probed, "{heard}");
    }
}

#[test]
fn it_is_told_when_nothing_is_left_to_read_while_there_is_something() {
    let (world, mut fast_path) = settled();
    fast_path.drained(7, at(100));
    offer(&world, &mut fast_path, at(200), &datagram(0, 7, 9, b"there"));
    fast_path.drained(7, at(201));
    assert_eq!(fast_path.carrier_mut().drained, [(7, at(201))]);
}

#[test]
fn a_session_that_moves_is_taken_back_and_carried_the_new_way() {
    let (mut world, mut fast_path) = settled();
    let there = datagram(0, 7, 9, b"there");
    offer(&world, &mut fast_path, at(200), &there);
    fast_path.check(at(201), &mut world.hosts[0]);
    assert_eq!(fast_path.carrier_mut().sessions.len(), 1);
    world.hosts[0].prefer(at(300), InterfaceId(2));
    fast_path.check(at(300), &mut world.hosts[0]);
    assert!(fast_path.carrier_mut().sessions.is_empty());
    assert!(fast_path.carrier_mut().flows.is_empty());
    world.settle(at(300));
    world.send(at(310), 0, &there);
    world.send(at(311), 1, &datagram(1, 9, 7, b"back"));
    offer(&world, &mut fast_path, at(312), &there);
    let (direct, ..) = *fast_path.carrier_mut().sessions.values().next().unwrap();
    assert_eq!(
        (direct.here, direct.interface),
        (locator(2).address(NIDS[0]), InterfaceId(2))
    );
}

#[test]
fn what_was_carried_counts_as_heard_and_sent_and_what_is_idle_is_taken_back() {
    let (mut world, mut fast_path) = settled();
    let there = datagram(0, 7, 9, b"there");
    offer(&world, &mut fast_path, at(200), &there);
    // more of them without an answer than a session bears, had nothing been heard past the agent
    for n in 0..20 {
        world.hosts[0].handle_kernel(at(200 + n), there.to_vec().into(), ChecksumState::Complete, None);
        while world.hosts[0].poll_wire().is_some() {}
    }
    let carried = &mut fast_path.carrier_mut().carried;
    (carried.received, carried.heard) = (1, at(221));
    fast_path.check(at(221), &mut world.hosts[0]);
    assert_eq!(fast_path.carrier_mut().sessions.len(), 1);
    assert_eq!(fast_path.poll_timeout(), Some(at(261)));
    fast_path.look(at(261), &mut world.hosts[0]);
    assert_eq!(fast_path.poll_timeout(), Some(at(301)));
    fast_path.look(at(1261), &mut world.hosts[0]);
    assert_eq!(fast_path.poll_timeout(), Some(at(2261)));
    assert_eq!(fast_path.carrier_mut().sessions.len(), 1);
    fast_path.look(at(2261), &mut world.hosts[0]);
    assert!(fast_path.carrier_mut().sessions.is_empty());
    assert_eq!(fast_path.poll_timeout(), None);
    let counted: BTreeMap<_, _> = fast_path.counters().into_iter().collect();
    assert_eq!(
        (
            counted["received"],
            counted["sessions_begun"],
            counted["flows_now"]
        ),
        (1, 1, 0)
    );
}

#[test]
fn what_has_to_be_seen_is_not_carried() {
    // the nonce travels in UDP
    let mut world = World::new();
    world.network.no_options_at = Some(1);
    for n in 0..40 {
        world.send(at(100 * n), 0, &datagram(0, 7, 9, b"there"));
        world.send(at(100 * n + 1), 1, &datagram(1, 9, 7, b"back"));
    }
    let mut fast_path = FastPath::new(Told::new());
    offer(&world, &mut fast_path, at(4000), &datagram(0, 7, 9, b"there"));
    assert!(fast_path.carrier_mut().sessions.is_empty());
    // checksums by the other rule; nonces not in every packet
    let as_usual: fn(&mut Config) = |_| {};
    let by_identifiers: fn(&mut Config) = |c| c.checksum = segue_proto::ilnp::ChecksumRule::Identifiers;
    let seldom: fn(&mut Config) = |c| c.nonce_in = segue_proto::ilnp::NonceIn::SessionStartAndSignalling;
    for (configure, carried) in [(as_usual, 1), (by_identifiers, 0), (seldom, 0)] {
        let mut world = World::of(configure);
        for n in 0..4 {
            world.send(at(n), 0, &datagram(0, 7, 9, b"there"));
            world.send(at(n), 1, &datagram(1, 9, 7, b"back"));
        }
        offer(&world, &mut fast_path, at(10), &datagram(0, 7, 9, b"there"));
        assert_eq!(fast_path.carrier_mut().sessions.len(), carried);
        fast_path.end_all(at(11), &mut world.hosts[0]);
    }
}
