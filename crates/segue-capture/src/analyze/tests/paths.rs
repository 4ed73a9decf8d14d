//! What a flow makes of its packets, paths and ends, exactly.

use super::decode::Marks;
use super::endings;
use super::flows::conn::Conn;
use super::flows::ends::{AtEnd, Ends, Listens};
use super::flows::item::{Item, Limits};
use super::flows::moved::Moved;
use super::flows::mover::{Arrival, Mover};
use super::flows::paths::{Role, Sight};
use super::flows::progress::What;
use super::flows::rates::Lately;
use super::flows::shares::{Choice, Moves};
use super::flows::view::View;
use super::model::Protocol;
use super::pieces::*;
use crate::record::FlowState;

fn conn(protocol: Protocol) -> Box<Conn> {
    conn_since(protocol, 0)
}

fn sight(time_ns: u64, role: Role) -> Sight {
    Sight {
        time_ns,
        capture: 0,
        interface: 0,
        device: 0,
        role,
        outer: (end(1, 0).0, end(2, 0).0),
        ports: (10, 20),
        marks: Marks::default(),
        fragments: None,
        taken: true,
        both: false,
    }
}

fn limits() -> Limits {
    Limits {
        settings: SETTINGS,
        copies: 100,
        listens: [Listens::default(); 2],
    }
}

#[test]
fn the_direction_of_a_packet_follows_from_either_end() {
    let c = conn(Protocol::Tcp);
    let (a, b, x, y) = (end(1, 10), end(2, 20), end(3, 30), end(4, 40));
    for (pair, expected) in [
        ((a, b), 0),
        ((b, a), 1),
        ((a, x), 0),
        ((x, b), 0),
        ((b, x), 1),
        ((x, a), 1),
        ((x, y), 0),
    ] {
        assert_eq!(c.direction(pair.0, pair.1), expected);
    }
    // an end that has moved, to a pair of which neither was known
    let moved = |source, destination| {
        let mut c = conn(Protocol::Tcp);
        (
            c.moves_one_end(source, destination),
            c.direction(x, y),
            c.direction(y, x),
        )
    };
    assert_eq!(moved(x, a), (true, 1, 0));
    assert_eq!(moved(x, b), (true, 0, 1));
    assert_eq!(moved(b, x), (true, 0, 1));
    assert_eq!(moved(x, y), (false, 0, 0));
}

/// Packets on more paths than are told apart.
fn beyond(c: &Conn) -> u64 {
    c.beyond_limits()[5].1
}

#[test]
fn sixty_four_paths_are_told_apart() {
    let mut c = conn(Protocol::Tcp);
    let by = |n: u32| Sight {
        interface: n,
        ..sight(u64::from(n), Role::Somewhere)
    };
    let numbers: Vec<u16> = (0..66).map(|n| c.path(0, &by(n))).collect();
    assert_eq!(numbers[..64], (0..64).collect::<Vec<u16>>());
    assert_eq!((numbers[64], numbers[65], beyond(&c)), (63, 63, 2));
    assert_eq!((c.path(0, &by(5)), beyond(&c)), (5, 2));
    let paths = c.finish(S, S).0.paths;
    assert_eq!(
        (
            paths.len(),
            paths[5].first_ns,
            paths[5].last_ns,
            paths[5].way.direction
        ),
        (64, 5, 5, 0)
    );
}

#[test]
fn a_path_to_an_address_is_from_where_the_last_was() {
    let mut c = conn(Protocol::Sctp);
    assert_eq!(c.path(0, &sight(1, Role::Somewhere)), 0);
    let to = end(9, 0).0;
    let back = Sight {
        outer: (end(2, 0).0, end(1, 0).0),
        ports: (20, 10),
        ..sight(2, Role::Somewhere)
    };
    c.announced(0, to, &back);
    let way = *c.paths().way(1).expect("a second path");
    assert_eq!((way.outer, way.ports), ((end(1, 0).0, to), (10, 20)));
    // which is not the one used last
    c.announced(0, end(8, 0).0, &back);
    assert_eq!(
        c.paths().way(2).map(|way| way.outer),
        Some((end(1, 0).0, end(8, 0).0))
    );
    // of a direction that sent nothing yet: from where the message went
    let mut c = conn(Protocol::Sctp);
    c.announced(0, to, &back);
    let way = *c.paths().way(0).expect("a first path");
    assert_eq!((way.outer, way.ports), ((end(1, 0).0, to), (10, 20)));
}

#[test]
fn a_copy_on_another_interface_within_a_millisecond_is_captured_twice() {
    let counted = |stamp, identification, interface, later_ns| {
        let mut c = conn(Protocol::Tcp);
        let data = Item { stamp, ..item(0, 10) };
        assert!(c.data(0, &sight(5, Role::Somewhere), data, identification, &limits()));
        let second = Sight {
            interface,
            ..sight(5 + later_ns, Role::Somewhere)
        };
        let counts = c.data(0, &second, data, identification, &limits());
        let twice = c
            .beyond_limits()
            .into_iter()
            .find(|l| l.0 == "packets-captured-twice");
        assert_eq!(twice.map(|l| l.1), Some(u64::from(!counts)));
        counts
    };
    assert!(!counted(Some(1), 0, 1, MS - 1));
    assert!(!counted(None, 7, 1, 0));
    assert!(counted(Some(1), 0, 1, MS));
    // the same interface: sent again; and what nothing tells apart
    assert!(counted(Some(1), 0, 0, 10));
    assert!(counted(None, 0, 1, 10));
    // the last packet and eight before it are remembered
    let counts = |copy_of: u32| {
        let mut c = conn(Protocol::Tcp);
        let by = |interface| Sight {
            interface,
            ..sight(5, Role::Somewhere)
        };
        c.path(0, &by(1));
        let data = |n| Item {
            stamp: Some(n),
            ..item(n * 10, 10)
        };
        for n in 1..=10 {
            c.data(0, &by(0), data(n), 0, &limits());
        }
        c.data(0, &by(1), data(copy_of), 0, &limits())
    };
    assert_eq!(
        [1, 2, 3, 9, 10, 11].map(counts),
        [true, false, false, false, false, true]
    );
}

#[test]
fn counters_of_wireguard_go_on_behind_those_of_the_key_before() {
    let mut c = conn(Protocol::Wireguard);
    let seqs = [(7, 0), (7, 1), (9, 0), (9, 5), (9, 3), (11, 0), (11, 1)];
    let seqs = seqs.map(|(index, counter)| c.wireguard_seq(0, index, counter));
    assert_eq!(seqs, [0, 1, 2, 7, 5, 8, 9]);
    // late ones of the key before have theirs, and those of one that was long before new ones
    let seqs = [(9, 4), (11, 2), (9, 5), (7, 1)].map(|(index, counter)| c.wireguard_seq(0, index, counter));
    assert_eq!(seqs, [6, 10, 7, 12]);
    // so have those that the first one of a key has overtaken
    let seqs = [(13, 2), (13, 0), (7, 0), (13, 1)].map(|(index, counter)| c.wireguard_seq(0, index, counter));
    assert_eq!(seqs, [15, 13, 11, 14]);
    // but none of a key of which the capture has no beginning
    assert_eq!(
        [10_000, 10_001].map(|counter| c.wireguard_seq(0, 15, counter)),
        [16, 17]
    );
    // a capture that begins in the middle of a key, in the other direction
    assert_eq!([100, 101].map(|counter| c.wireguard_seq(1, 7, counter)), [0, 1]);
}

#[test]
fn the_newest_64_times_that_a_path_was_left_are_remembered() {
    let mut c = conn(Protocol::Sctp);
    for time in 1..=65 {
        c.path_left(time);
        c.path_left(time);
    }
    assert_eq!(c.told_ns(), (2..=65).collect::<Vec<u64>>());
}

#[test]
fn who_chooses_the_path() {
    for (protocol, acknowledged, choice) in [
        (Protocol::Tcp, true, Choice::Network),
        (Protocol::Mptcp, true, Choice::Several),
        (Protocol::Sctp, true, Choice::One),
        (Protocol::Quic, false, Choice::One),
        (Protocol::Udp, false, Choice::Network),
        (Protocol::Wireguard, false, Choice::Network),
    ] {
        let c = conn(protocol);
        assert_eq!((c.is_acknowledged(), c.choice()), (acknowledged, choice));
        for mark in 0..3 {
            let mut c = conn(protocol);
            let marks = Marks {
                tunnelled: mark == 0,
                route_optimised: mark == 1,
                ilnp: mark == 2,
            };
            let marked = Sight {
                marks,
                ..sight(0, Role::Somewhere)
            };
            c.packet(0, &marked);
            let expected = if protocol == Protocol::Quic {
                Choice::One
            } else {
                Choice::Network
            };
            assert_eq!((c.choice(), c.path_is_the_senders()), (expected, false));
        }
    }
}

#[test]
fn the_echo_of_a_timestamp_gives_the_receivers_round_trip() {
    let measured = |echo| {
        let mut c = conn(Protocol::Tcp);
        c.data(0, &sight(1, Role::Receiver), item(0, 10), 0, &limits());
        c.timestamps(1, &sight(100, Role::Sender), 50, 0);
        c.timestamps(1, &sight(150, Role::Sender), 51, 0);
        c.timestamps(0, &sight(300, Role::Receiver), 0, echo);
        c.timestamps(0, &sight(400, Role::Receiver), 0, 50);
        let (_, [observed, _]) = c.finish(S, S);
        observed.rtt.map(|rtt| rtt.median)
    };
    assert_eq!(measured(50), Some(200e-9));
    assert_eq!((measured(49), measured(51)), (Some(300e-9), None));
}

#[test]
fn what_a_sender_does_is_seen_where_it_is() {
    for (role, probes, acked) in [
        (Role::Somewhere, 1, Some(7)),
        (Role::Sender, 1, None),
        (Role::Receiver, 0, Some(7)),
    ] {
        let mut c = conn(Protocol::Sctp);
        c.packet(0, &sight(4, role));
        c.probe(0, &sight(5, role), What::Heartbeat);
        assert_eq!(c.half(0).progress().probes_alone().count, probes);
        assert_eq!(c.acknowledged(0, &sight(6, role), 7, None, false), None);
        assert_eq!(c.half(1).progress().acked(), acked);
        let heard = (role != Role::Sender).then_some(4);
        assert_eq!(c.half(1).progress().heard_ns(), heard);
        assert_eq!(
            (c.half(0).has_left(), c.heard_ns().1),
            (role != Role::Receiver, 4)
        );
        let (_, [observed, _]) = c.finish(S, S);
        assert_eq!(
            (observed.place, observed.packets, observed.certain),
            (role.place(), 1, role != Role::Somewhere)
        );
    }
    let mut c = conn(Protocol::Tcp);
    c.data(0, &sight(10, Role::Sender), item(0, 100), 0, &limits());
    assert_eq!(
        c.acknowledged(1, &sight(20, Role::Receiver), 100, None, false),
        Some(10)
    );
    assert_eq!(c.finish(S, S).0.paths[0].data, [(1, 100), (0, 0)]);
}

#[test]
fn a_handover_has_what_was_around_it() {
    let mut view = View::default();
    let arrivals = (0..10)
        .map(|n| (n * 10, 0))
        .chain((0..200).map(|n| (200 + n * 10, 1)));
    for (n, (ms, path)) in (0..).zip(arrivals) {
        view.data(ms * MS, path, item(n * 100, 100), &SETTINGS);
    }
    assert_eq!(view.tally().switches, 1);
    let (_, moves) = view.finish(S);
    assert_eq!((moves.moved.len(), moves.changes, moves.in_use.len()), (1, 0, 0));
    let m = &moves.moved[0];
    assert_eq!(
        (m.from, m.to, m.last_old_ns, m.first_new_ns),
        (0, 1, 90 * MS, 200 * MS)
    );
    assert_eq!((m.interruption_ns, m.settling_gap_ns), (110 * MS, 110 * MS));
    // details are kept from the fourth packet on
    let around = m.around;
    assert_eq!(
        (around.before.bytes, around.bytes_after, around.after_ns),
        (700, 10_000, S)
    );
    assert_eq!(
        (
            m.packets_over,
            around.out_of_order,
            around.rtt_before_s,
            around.rtt_after_s
        ),
        (200, 0, None, None)
    );
    assert!(m.adaptation.is_some() && !m.in_vain && !m.received);
}

#[test]
fn a_message_is_of_the_move_that_is_no_further_than_a_second() {
    let at = |from, to, seconds: u64| Moved::in_vain(from, to, seconds * S, seconds * S, seconds * S);
    let kept = |told_ns: &[u64]| {
        let moves = Moves {
            moved: vec![at(0, 1, 10), at(1, 0, 20)],
            ..Moves::default()
        };
        let moves = moves.judged(Choice::Several, told_ns, 20 * S);
        let times: Vec<_> = moves.moved.iter().map(|m| m.first_new_ns / S).collect();
        (times, moves.changes)
    };
    assert_eq!(kept(&[9 * S]), (vec![10, 20], 0));
    assert_eq!(kept(&[9 * S - 1]), (vec![], 2));
    assert_eq!(kept(&[10 * S]), (vec![10, 20], 0));
    assert_eq!(kept(&[11 * S]), (vec![10, 20], 0));
    assert_eq!(kept(&[11 * S + 1]), (vec![], 2));
    assert_eq!(kept(&[19 * S]), (vec![20], 1));
    let noted = |choice, handovers: u64, switches, changes| {
        let moves = Moves {
            moved: (0..handovers).map(|n| at(0, 1, n)).collect(),
            changes,
            ..Moves::default()
        };
        moves.with_switches(choice, switches).changes
    };
    assert_eq!(
        (noted(Choice::One, 0, 32, 0), noted(Choice::One, 0, 33, 0)),
        (0, 33)
    );
    assert_eq!(
        (noted(Choice::Several, 1, 64, 0), noted(Choice::Several, 1, 65, 0)),
        (0, 64)
    );
    assert_eq!(
        (noted(Choice::Network, 0, 99, 0), noted(Choice::One, 0, 99, 3)),
        (0, 3)
    );
}

fn at(time_ns: u64, seq: u32, span: u32) -> AtEnd {
    AtEnd {
        time_ns,
        seq,
        span,
        stamp: None,
    }
}

#[test]
fn a_capture_of_a_part_misses_what_is_outside() {
    let mut ends = Ends::new(Listens {
        since_ns: 100,
        until_ns: 200,
        begin_ns: 0,
        end_ns: 300,
    });
    assert_eq!(
        [99, 100, 200, 201].map(|ns| ends.may_miss(ns)),
        [true, false, false, true]
    );
    ends.sent(at(110, 0, 10), 0, 100);
    ends.received(at(115, 0, 10), 0, true);
    assert_eq!(ends.longest_ns(), 5);
    assert_eq!([195, 196].map(|ns| ends.may_miss(ns)), [false, true]);
    assert_eq!([205, 206].map(|ns| ends.ends_early(ns)), [false, true]);
    ends.hears(205);
    assert!(!ends.ends_early(206));
    ends.hears(206);
    ends.hears(201);
    assert!(ends.ends_early(206));
}

#[test]
fn what_became_of_a_packet_is_known_after_the_longest_that_one_took() {
    let mut ends = Ends::default();
    ends.sent(at(0, 0, 100), 0, 100);
    ends.received(at(4, 0, 100), 0, true);
    ends.sent(at(6, 100, 100), 0, 100);
    let fate = |end_ns| {
        let (counts, _) = ends.clone().finish(end_ns);
        (counts.lost_packets, counts.in_flight_packets)
    };
    assert_eq!((fate(10), fate(11)), ((0, 1), (1, 0)));
    // in another cut: what has not arrived comes first
    let mut ends = Ends::default();
    ends.sent(at(0, 0, 100), 0, 100);
    ends.sent(at(0, 100, 100), 0, 100);
    ends.received(at(1, 0, 100), 0, true);
    ends.received(at(1, 50, 100), 0, true);
    let (counts, _) = ends.finish(1);
    assert_eq!(
        (
            counts.in_flight_packets,
            counts.lost_packets,
            counts.unmatched_packets
        ),
        (0, 0, 0)
    );
}

#[test]
fn copies_are_followed_for_thirty_seconds_where_there_are_many() {
    let unmatched = |later_ns, arrives: u32| {
        let mut ends = Ends::default();
        for n in 0..1025 {
            ends.sent(at(0, n * 10, 10), 0, 2000);
        }
        ends.sent(at(later_ns, 10_250, 10), 0, 2000);
        ends.received(at(later_ns, arrives * 10, 10), 0, true);
        assert_eq!(ends.evicted(), 0);
        ends.finish(later_ns).0.unmatched_packets
    };
    assert_eq!(
        (
            unmatched(30 * S, 0),
            unmatched(30 * S + 1, 0),
            unmatched(30 * S + 1, 1)
        ),
        (0, 1, 0)
    );
    // a segment that is sent again and again stays known
    let mut ends = Ends::default();
    ends.sent(at(0, 0, 10), 0, 64);
    ends.received(at(0, 0, 10), 0, true);
    for n in 1..5000 {
        ends.sent(at(u64::from(n), n * 10, 10), 0, 64);
        ends.sent(at(u64::from(n), 0, 10), 0, 64);
    }
    let (counts, _) = ends.finish(5000);
    assert_eq!(
        (counts.retransmissions, counts.spurious_retransmissions),
        (4999, 4999)
    );
}

/// A flow whose data was answered, and what is sent then, at these times.
fn tried(protocol: Protocol, answered: u32, times: &[u64]) -> Box<Conn> {
    let mut c = conn(protocol);
    for n in 0..answered {
        c.packet(0, &sight(u64::from(n), Role::Somewhere));
        c.data(0, &sight(u64::from(n), Role::Somewhere), item(n, 1), 0, &limits());
        c.packet(1, &sight(u64::from(n), Role::Somewhere));
        c.acknowledged(1, &sight(u64::from(n), Role::Somewhere), n + 1, None, false);
    }
    for time in times {
        c.data(
            0,
            &sight(*time, Role::Somewhere),
            item(answered, 100),
            0,
            &limits(),
        );
    }
    c
}

#[test]
fn a_direction_is_dead_once_it_was_tried_for_longer_than_it_may_be() {
    let state = |protocol, answered, span_ns| {
        let c = tried(protocol, answered, &[S, S + span_ns]);
        endings::of(&c, 50 * S)[0].state
    };
    let (dead, unknown) = (FlowState::Dead, FlowState::Unknown);
    for protocol in [Protocol::Tcp, Protocol::Mptcp, Protocol::Sctp] {
        assert_eq!(
            (state(protocol, 1, S), state(protocol, 1, S + 1)),
            (unknown, dead)
        );
    }
    assert_eq!(
        (state(Protocol::Quic, 1, S), state(Protocol::Quic, 1, S + 1)),
        (unknown, dead)
    );
    assert_eq!(
        (state(Protocol::Udp, 4, S), state(Protocol::Udp, 4, S + 1)),
        (unknown, dead)
    );
    assert_eq!(state(Protocol::Udp, 3, 40 * S), unknown);
    let wireguard = |span_ns| state(Protocol::Wireguard, 1, span_ns);
    assert_eq!((wireguard(15 * S), wireguard(15 * S + 1)), (unknown, dead));
    let c = tried(Protocol::Tcp, 1, &[S, S + 5, 3 * S]);
    let ending = &endings::of(&c, 50 * S)[0];
    assert_eq!(
        (ending.silent_ns, ending.attempts, ending.tried_ns),
        (Some((0, 50 * S)), 3, (S, 3 * S))
    );
    let told: Vec<_> = ending.last_packets.iter().map(|p| p.1.as_str()).collect();
    assert_eq!(
        told,
        [
            "1 bytes at 0, 2001:db8:0:1::1 to 2001:db8:0:1::2",
            "2001:db8:0:1::2 acknowledged all before 1",
            "100 bytes at 1, 2001:db8:0:1::1 to 2001:db8:0:1::2",
            "100 bytes at 1 again, 2001:db8:0:1::1 to 2001:db8:0:1::2",
            "100 bytes at 1 again, 2001:db8:0:1::1 to 2001:db8:0:1::2",
        ]
    );
}

#[test]
fn what_was_acknowledged_is_idle_or_closed() {
    let state = |closed: [bool; 2], reset_by: Option<usize>, times: &[u64]| {
        let mut c = tried(Protocol::Tcp, 1, times);
        (0..2).filter(|d| closed[*d]).for_each(|d| c.closes(d));
        reset_by.into_iter().for_each(|end| c.resets(end, 0));
        endings::of(&c, 50 * S)[0].state
    };
    assert_eq!(state([false; 2], None, &[]), FlowState::Idle);
    assert_eq!(state([true, false], None, &[]), FlowState::Closed);
    assert_eq!(state([false, true], None, &[]), FlowState::Idle);
    assert_eq!(state([true, false], None, &[S]), FlowState::Unknown);
    assert_eq!(state([true; 2], None, &[S]), FlowState::Closed);
    // who gives up has not closed, who was refused has
    assert_eq!(state([true; 2], Some(0), &[S, 3 * S]), FlowState::Dead);
    assert_eq!(state([true; 2], Some(1), &[S, 3 * S]), FlowState::Closed);
}

#[test]
fn round_trips_after_a_handover_are_of_what_was_sent_after_it() {
    let mut m = Mover::new(0, 0, 0);
    for n in 1..4u64 {
        let arrival = Arrival {
            time_ns: S + n,
            path: 1,
            seq: n as u32,
            useful: 1,
            bytes: 1,
            out_of_order: false,
            last_data_ns: 0,
            last_new_ns: 0,
        };
        m.arrived(arrival, S, || (Lately::default(), None));
    }
    m.round_trip(S, 900 * MS);
    m.round_trip(S + 1, 40 * MS);
    m.round_trip(S + 9, 60 * MS);
    let found = m.finish(S);
    assert_eq!(found.moved.len(), 1);
    assert_eq!(found.moved[0].around.rtt_after_s, Some(0.05));
}
