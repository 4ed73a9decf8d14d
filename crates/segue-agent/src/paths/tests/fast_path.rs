//! What the kernel is told to carry, and when that is taken back.

use super::*;
use crate::fast_path::{Carried, Carrier, FastPath, Flow, Leaves};
use segue_proto::ilnp::{Direct, SessionKey};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// In place of the programs.
#[derive(Debug, Default)]
struct Told {
    sessions: BTreeMap<SessionKey, (Direct, u32, Leaves)>,
    flows: BTreeSet<(SessionKey, Flow)>,
    carried: Carried,
}

impl Carrier for Told {
    fn begin(&mut self, direct: &Direct, most: u32, leaves: Leaves) -> io::Result<()> {
        let before = self.sessions.insert(direct.session, (*direct, most, leaves));
        assert_eq!(before, None);
        Ok(())
    }

    fn add(&mut self, session: SessionKey, flow: Flow) -> io::Result<()> {
        assert!(self.sessions.contains_key(&session) && self.flows.insert((session, flow)));
        Ok(())
    }

    fn forget(&mut self, session: SessionKey, flow: Flow) {
        assert!(self.flows.remove(&(session, flow)));
    }

    fn end(&mut self, direct: &Direct, flows: &BTreeSet<Flow>) -> Carried {
        assert!(self.sessions.remove(&direct.session).is_some());
        for flow in flows {
            assert!(self.flows.remove(&(direct.session, *flow)));
        }
        self.carried
    }

    fn missed(&self) -> u64 {
        0
    }

    fn carried(&mut self, _: SessionKey) -> Carried {
        self.carried
    }
}

/// A session in which both ends have been heard often enough, and what host 0 has the kernel carry.
fn settled() -> (World, FastPath<Told>) {
    let mut world = World::with_session();
    for n in 0..4 {
        world.send(at(100 + n), 0, &datagram(0, 7, 9, b"there"));
        world.send(at(100 + n), 1, &datagram(1, 9, 7, b"back"));
    }
    (world, FastPath::new(Told::default()))
}

fn flow_of(packet: &Packet) -> Option<(Flow, bool)> {
    Flow::of_sent(&packet.to_vec())
}

fn leaves(interface: InterfaceId) -> Leaves {
    Leaves {
        index: 100 + u32::from(interface.0),
        next_hop: ROUTER,
    }
}

fn offer(world: &World, fast_path: &mut FastPath<Told>, now: Instant, packet: &Packet) {
    let flow = flow_of(packet).expect("a flow");
    fast_path.offer(now, &world.hosts[0], flow, |interface, _| Some(leaves(interface)));
}

#[test]
fn a_flow_is_what_neither_begins_nor_ends_something() {
    const ACK: u8 = 16;
    for (flags, goes_on) in [
        (ACK, true),
        (ACK | 8, true),
        (ACK | 1, false),
        (2, false),
        (ACK | 2, false),
        (4, false),
    ] {
        let (_, found) = flow_of(&segment(0, flags, &[], 5)).unwrap();
        assert_eq!(found, goes_on, "{flags}");
    }
    let (sent, _) = flow_of(&segment(0, ACK, &[], 5)).unwrap();
    let whole = Flow {
        peer: identity(1),
        protocol: 6,
        own_port: 7,
        peers_port: 9,
    };
    assert_eq!(sent, whole);
    // the same flow, as the peer's packets have it
    assert_eq!(Flow::of_received(&segment(1, ACK, &[], 5)), Some((whole, true)));
    assert_eq!(Flow::of_received(&segment(1, 2, &[], 5)), Some((whole, false)));
    let echo = Icmpv6::EchoRequest(segue_wire::icmpv6::Echo {
        identifier: 1,
        sequence: 1,
        data: Bytes::new(),
    });
    assert_eq!(flow_of(&icmp(identity(0), identity(1), echo)), None);
    assert_eq!(Flow::of_sent(&[0x60; 42]), None);
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
    let mut elsewhere = FastPath::new(Told::default());
    elsewhere.offer(
        at(202),
        &world.hosts[0],
        flow_of(&datagram(0, 7, 9, b"there")).unwrap(),
        |_, _| None,
    );
    assert!(elsewhere.carrier_mut().sessions.is_empty());
    // of no session yet
    offer(&world, &mut fast_path, at(202), &datagram(0, 8, 9, b"there"));
    assert_eq!(fast_path.carrier_mut().flows.len(), 1);
}

#[test]
fn a_flow_that_ends_or_begins_is_not_carried_until_it_goes_on() {
    const ACK: u8 = 16;
    let (mut world, mut fast_path) = settled();
    world.send(at(150), 0, &segment(0, 2, &[], 0));
    world.send(at(151), 1, &segment(1, 2 | ACK, &[], 0));
    for (flags, carried) in [(ACK, 1), (1 | ACK, 0), (ACK, 1), (2, 0)] {
        offer(&world, &mut fast_path, at(200), &segment(0, flags, &[], 5));
        assert_eq!(fast_path.carrier_mut().flows.len(), carried, "{flags}");
    }
    assert_eq!(fast_path.carrier_mut().sessions.len(), 1);
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
    fast_path.carrier_mut().carried.received = 1;
    fast_path.check(at(221), &mut world.hosts[0]);
    assert_eq!(fast_path.carrier_mut().sessions.len(), 1);
    assert_eq!(fast_path.poll_timeout(), Some(at(1221)));
    fast_path.look(at(1221), &mut world.hosts[0]);
    assert_eq!(fast_path.carrier_mut().sessions.len(), 1);
    fast_path.look(at(2221), &mut world.hosts[0]);
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
    let mut fast_path = FastPath::new(Told::default());
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
