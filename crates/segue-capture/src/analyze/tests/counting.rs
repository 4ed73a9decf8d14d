//! Counters and times of one direction, exactly.

use super::flows::conn::Conn;
use super::flows::datagrams::Datagrams;
use super::flows::item::Item;
use super::flows::key::{Key, KeyKind};
use super::flows::progress::{Attempts, Progress, What};
use super::flows::rates::{RateRing, RoundTrips};
use super::flows::sequence::{BASE, Sequence};
use super::flows::table::Table;
use super::flows::view::View;
use super::model::{Protocol, SegmentMark};
use super::pieces::*;

fn conn(protocol: Protocol) -> Box<Conn> {
    conn_since(protocol, 5)
}

#[test]
fn bins_leave_the_window_one_by_one() {
    // 20 bins of 100 ns
    let at = |adds: &[(u64, u64)]| {
        let mut ring = RateRing::default();
        adds.iter()
            .for_each(|(time, bytes)| ring.add(*time, *bytes, 2000));
        ring.lately(2000).bytes
    };
    assert_eq!(at(&[(100, 5), (199, 6), (2000, 1)]), 12);
    assert_eq!(at(&[(100, 5), (2099, 1)]), 6);
    assert_eq!(at(&[(100, 5), (2100, 1)]), 1);
    assert_eq!(at(&[(100, 5), (200, 6), (2100, 1)]), 7);
    // late, within the window and beyond it
    assert_eq!(at(&[(2000, 1), (100, 5)]), 6);
    assert_eq!(at(&[(2000, 1), (99, 5)]), 1);
    assert_eq!(at(&[(2000, 1), (1900, 5), (1950, 3)]), 9);
    // they cover what there is of the newest, and all of the nineteen before
    let covers = |times: &[u64], window_ns| {
        let mut ring = RateRing::default();
        times.iter().for_each(|time| ring.add(*time, 1, window_ns));
        ring.lately(window_ns).ns
    };
    assert_eq!([2000, 2001, 2099].map(|t| covers(&[t], 2000)), [1900, 1901, 1999]);
    assert_eq!((covers(&[2050, 2020], 2000), covers(&[], 2000)), (1950, 0));
    assert_eq!((covers(&[50], 2000), covers(&[23], 5)), (50, 19));
    // a window shorter than it has bins
    let mut ring = RateRing::default();
    ring.add(3, 8, 5);
    ring.add(22, 1, 5);
    assert_eq!(ring.lately(5).bytes, 9);
    ring.add(23, 1, 5);
    assert_eq!(ring.lately(5).bytes, 2);
}

#[test]
fn round_trips_have_a_median_and_a_spread() {
    let mut trips = RoundTrips::default();
    assert_eq!((trips.count(), trips.spread()), (0, None));
    for (ns, median) in [(4 * S, 4.0), (S, 2.5), (7 * S, 4.0), (5 * S, 4.5)] {
        trips.add(ns);
        assert_eq!(trips.median_s(), Some(median));
    }
    let spread = trips.spread().unwrap();
    assert_eq!((spread.min, spread.max, spread.count), (1.0, 7.0, 4));
    let mut trips = RoundTrips::default();
    trips.add(800);
    assert_eq!(trips.rto_ns(), 800 + 4 * 400);
    trips.add(1600);
    // variation 400 - 100 + 200, smoothed 800 - 100 + 200
    assert_eq!(trips.rto_ns(), 900 + 4 * 500);
    // the oldest of sixteen is forgotten
    let mut trips = RoundTrips::default();
    for n in 1..=17 {
        trips.add(n * S);
    }
    assert_eq!(trips.median_s(), Some(9.5));
    assert_eq!(trips.spread().unwrap().min, 1.0);
}

#[test]
fn attempts_of_two_kinds_are_from_the_first_to_the_last() {
    let of = |count, first_ns, last_ns| Attempts {
        count,
        first_ns,
        last_ns,
    };
    let shown = |a: Attempts| (a.count, a.first_ns, a.last_ns, a.span_ns());
    assert_eq!(shown(of(2, 5, 9).and(of(3, 4, 8))), (5, 4, 9, 5));
    assert_eq!(shown(of(2, 3, 7).and(of(1, 4, 12))), (3, 3, 12, 9));
    assert_eq!(shown(of(0, 0, 0).and(of(3, 4, 8))), (3, 4, 8, 4));
    assert_eq!(shown(of(2, 5, 9).and(of(0, 0, 0))), (2, 5, 9, 4));
}

fn counts(p: &Progress) -> (u32, u32) {
    (p.data().count, p.probes_alone().count)
}

#[test]
fn attempts_are_counted_until_something_new_is_acknowledged() {
    let mut p = Progress::default();
    assert!(!p.is_outstanding());
    p.sends(10, 0, &item(100, 100), u64::MAX);
    assert!(p.is_outstanding());
    p.sends(20, 0, &item(100, 100), 0);
    p.sends(35, 0, &item(200, 50), 0);
    assert_eq!(
        (p.sent(), counts(&p), p.data().span_ns()),
        (Some(250), (3, 0), 25)
    );
    let whats: Vec<_> = p
        .notes()
        .map(|n| (n.time_ns, n.what, n.number, n.bytes))
        .collect();
    assert_eq!(
        whats,
        [
            (10, What::Data, 100, 100),
            (20, What::Again, 100, 100),
            (35, What::Data, 200, 50)
        ]
    );
    p.acknowledged(40, 200, None, false);
    assert_eq!(
        (p.acked(), p.last_ns(), counts(&p)),
        (Some(200), Some(40), (0, 0))
    );
    assert!(p.is_outstanding());
    // the same again is no news, even of a window that is closed: that ends the attempts alone
    p.sends(50, 0, &item(200, 50), 0);
    p.acknowledged(55, 200, None, false);
    assert_eq!((p.last_ns(), counts(&p)), (Some(40), (1, 0)));
    p.acknowledged(56, 200, None, true);
    assert_eq!((p.last_ns(), counts(&p)), (Some(40), (0, 0)));
    p.acknowledged(60, 250, None, false);
    assert!(!p.is_outstanding());
    let whats: Vec<_> = p.notes().map(|n| (n.time_ns, n.what, n.number)).collect();
    assert_eq!(whats, [(35, What::Data, 200), (60, What::Acknowledged, 250)]);
    // earlier ones come late
    p.acknowledged(61, 249, None, false);
    assert_eq!((p.acked(), p.last_ns()), (Some(250), Some(60)));
    p.acknowledged(62, 251, None, false);
    assert_eq!(p.acked(), Some(251));
}

#[test]
fn what_is_acknowledged_beyond_a_gap_is_progress_once() {
    let mut p = Progress::default();
    p.acknowledged(1, 100, None, false);
    let mut beyond = |now, block| {
        p.sends(now, 0, &item(now as u32 * 1000, 10), 0);
        p.acknowledged(now, 100, Some(block), false);
        p.last_ns()
    };
    assert_eq!(beyond(2, (200, 300)), Some(2));
    assert_eq!(beyond(3, (200, 300)), Some(2));
    assert_eq!(beyond(4, (200, 301)), Some(4));
    // of what all was acknowledged up to: none
    assert_eq!(beyond(5, (50, 100)), Some(4));
    assert_eq!(beyond(6, (50, 101)), Some(6));
}

#[test]
fn a_byte_of_what_was_acknowledged_is_a_keepalive() {
    let with = |seq, bytes| {
        let mut p = Progress::default();
        p.sends(1, 0, &item(100, 100), 0);
        p.acknowledged(2, 200, None, false);
        p.sends(3, 0, &item(seq, bytes), 0);
        let last = p.notes().last().map(|n| n.what);
        (counts(&p), last)
    };
    assert_eq!(with(199, 1), ((0, 1), Some(What::Keepalive)));
    assert_eq!(with(198, 2), ((1, 0), Some(What::Again)));
    assert_eq!(with(198, 1), ((1, 0), Some(What::Again)));
    assert_eq!(with(200, 1), ((1, 0), Some(What::Data)));
}

#[test]
fn a_path_that_was_quiet_and_is_tried_after_the_last_progress_is_the_one_moved_to() {
    let tried = |quiet_ns, path| {
        let mut p = Progress::default();
        p.sends(1, 3, &item(0, 10), 0);
        p.acknowledged(2, 10, None, false);
        p.sends(5, 3, &item(10, 10), u64::MAX);
        p.sends(7, path, &item(10, 10), quiet_ns);
        p.sends(9, path, &item(10, 10), quiet_ns);
        p.move_tried()
    };
    assert_eq!(tried(S, 4), Some((3, 4, 7)));
    assert_eq!(tried(S - 1, 4), None);
    assert_eq!(tried(S, 3), None);
    let mut p = Progress::default();
    p.probes(5, 1, What::Asconf, 0);
    p.probes(8, 2, What::Heartbeat, S);
    assert_eq!(
        (counts(&p), p.probes_alone().span_ns(), p.move_tried()),
        ((0, 2), 3, Some((1, 2, 8)))
    );
    p.advances(9, What::Arrived, 77);
    assert_eq!((counts(&p), p.move_tried(), p.last_ns()), ((0, 0), None, Some(9)));
    // time does not go back
    p.advances(4, What::Arrived, 78);
    assert_eq!(p.last_ns(), Some(9));
}

#[test]
fn whoever_is_heard_of_answers_where_nothing_else_can_be_known() {
    let mut p = Progress::default();
    p.hears(5, true);
    assert_eq!((p.heard_ns(), p.answers().0, p.last_ns()), (Some(5), 0, Some(5)));
    p.sends(10, 0, &item(0, 9), 0);
    p.sends(30, 0, &item(1, 9), 0);
    p.probes(45, 0, What::Handshake, 0);
    p.hears(50, true);
    assert_eq!((p.answers(), counts(&p)), ((1, 35), (0, 0)));
    p.sends(60, 0, &item(2, 9), 0);
    p.hears(61, true);
    assert_eq!((p.answers(), p.last_ns()), ((2, 35), Some(61)));
    // of a protocol that acknowledges, it answers probes alone
    p.probes(70, 0, What::Heartbeat, 0);
    p.sends(71, 0, &item(3, 9), 0);
    p.hears(72, false);
    assert_eq!(
        (p.answers().0, counts(&p), p.last_ns(), p.heard_ns()),
        (2, (1, 0), Some(61), Some(72))
    );
}

#[test]
fn sequence_numbers_wrap_and_a_first_one_may_be_announced() {
    let mut s = Sequence::default();
    assert_eq!(s.end(), None);
    s.begin(u32::MAX);
    s.begin(7);
    assert_eq!(
        (s.end(), s.offset(u32::MAX), s.offset(1)),
        (Some(u32::MAX), BASE, BASE + 2)
    );
    assert_eq!(s.offset(u32::MAX - 3), BASE - 3);
    let noted = s.note(0, 4);
    assert_eq!(
        (noted.offset, noted.new, noted.mark),
        (BASE + 1, 4, SegmentMark::Ahead)
    );
    assert_eq!(s.end(), Some(4));
    let noted = s.note(u32::MAX, 1);
    assert_eq!((noted.new, noted.mark), (1, SegmentMark::Fills));
    assert_eq!(s.note(4, 2).mark, SegmentMark::New);
    assert_eq!(s.note(5, 2).new, 1);
    // neighbours join
    for (seq, span, new, mark) in [
        (20, 5, 5, SegmentMark::Ahead),
        (10, 5, 5, SegmentMark::Fills),
        (15, 5, 5, SegmentMark::Fills),
        (9, 17, 2, SegmentMark::Fills),
        (7, 2, 2, SegmentMark::Fills),
        (26, 1, 1, SegmentMark::New),
    ] {
        let noted = s.note(seq, span);
        assert_eq!((noted.new, noted.mark), (new, mark), "{seq}");
    }
}

#[test]
fn a_view_counts_what_is_new_again_and_late() {
    let mut view = View::default();
    let stamped = |seq, stamp| Item::new(seq, 100, 100, Some(stamp));
    for (ms, seq, stamp) in [
        (0, 0, 1),
        (10, 100, 2),
        (20, 300, 4),
        (25, 200, 3),
        (30, 300, 9),
        (140, 500, 10),
        (150, 400, 11),
    ] {
        view.data(ms * MS, 0, stamped(seq, stamp), &SETTINGS);
    }
    let (seen, moves) = view.clone().finish(S);
    let tally = seen.tally;
    assert_eq!(
        (tally.data_packets, tally.data_bytes, tally.useful_bytes),
        (7, 700, 600)
    );
    // 300 twice; 200 was overtaken, 400 sent again
    assert_eq!(
        (tally.duplicates, tally.out_of_order, tally.retransmissions),
        (1, 2, 2)
    );
    assert_eq!(
        (seen.first_data_ns, seen.last_data_ns, seen.last_new_ns),
        (0, 150 * MS, 150 * MS)
    );
    assert_eq!(
        (seen.longest_gap_ns, tally.switches, seen.lately.bytes),
        ((25 * MS, 140 * MS), 0, 300)
    );
    assert!(moves.moved.is_empty());
    let gaps = &seen.gaps;
    assert_eq!(gaps.len(), 1);
    assert_eq!(
        (gaps[0].begin_ns, gaps[0].duration_ns, gaps[0].repaired),
        (25 * MS, 115 * MS, false)
    );
    // half of it is new
    view.data(160 * MS, 0, Item::new(550, 100, 1000, None), &SETTINGS);
    assert_eq!(view.tally().useful_bytes, 1100);
}

#[test]
fn the_longest_pauses_are_kept() {
    let mut view = View::default();
    let pauses = [60, 50, 49, 70, 80, 90, 100, 110, 120, 130, 55, 60];
    let mut at = 0;
    for n in 0..4 {
        view.data(0, 0, item(n, 1), &SETTINGS);
    }
    for (n, pause) in (4..).zip(pauses) {
        at += pause * MS;
        view.data(at, 0, item(n, 1), &SETTINGS);
    }
    let (seen, _) = view.finish(S);
    let mut kept: Vec<_> = seen.gaps.iter().map(|g| g.duration_ns / MS).collect();
    kept.sort_unstable();
    assert_eq!(kept, [60, 70, 80, 90, 100, 110, 120, 130]);
}

#[test]
fn round_trips_are_of_what_was_not_sent_again() {
    let mut view = View::default();
    view.data(10, 0, item(0, 100), &SETTINGS);
    assert_eq!(view.acknowledged(20, 99), None);
    assert_eq!(view.acknowledged(30, 100), Some(10));
    assert_eq!(view.acknowledged(31, 100), None);
    let trips = view.clone().finish(S).0.round_trips.expect("one");
    assert_eq!((trips.count, trips.median), (1, 20e-9));
    view.data(40, 0, item(100, 100), &SETTINGS);
    view.data(45, 0, item(200, 100), &SETTINGS);
    assert_eq!(view.acknowledged(50, 300), Some(40));
    view.data(60, 0, item(300, 100), &SETTINGS);
    view.data(70, 0, item(300, 100), &SETTINGS);
    assert_eq!(view.acknowledged(80, 400), None);
}

fn table_of(count: u16) -> (Table, Vec<super::flows::key::Slot>) {
    let mut table = Table::of(1000);
    let slots = (0..count).map(|_| table.insert(conn(Protocol::Tcp))).collect();
    (table, slots)
}

#[test]
fn the_table_knows_who_was_silent_longest() {
    let (mut table, slots) = table_of(3);
    assert_eq!((table.live(), table.total()), (3, 3));
    assert_eq!(
        slots.iter().map(|s| (s.index, s.id)).collect::<Vec<_>>(),
        [(0, 0), (1, 1), (2, 2)]
    );
    table.touch(slots[0]);
    table.touch(slots[0]);
    assert_eq!(table.oldest(), Some(slots[1]));
    table.touch(slots[2]);
    table.touch(slots[1]);
    let mut order = Vec::new();
    while let Some(oldest) = table.oldest() {
        order.push(oldest.id);
        assert!(table.remove(oldest).is_some() && table.remove(oldest).is_none());
    }
    assert_eq!((order, table.live(), table.total()), (vec![0, 2, 1], 0, 3));
    // a place is used again, and the slot of who had it is no longer valid
    let next = table.insert(conn(Protocol::Tcp));
    assert_eq!((next.id, next.index), (3, 1));
    assert!(table.get(slots[1]).is_none() && table.get(next).is_some());
}

#[test]
fn a_flow_is_known_by_its_keys_until_it_ends() {
    let (mut table, slots) = table_of(2);
    let key = |port| Key::of_ends(KeyKind::Tcp, end(1, port), end(2, 2));
    assert!(table.know(slots[0], key(1)) && table.know(slots[0], key(1)));
    assert_eq!((table.find(&key(1)), table.find(&key(2))), (Some(slots[0]), None));
    // another takes it over, and keeps it when the first ends
    assert!(table.know(slots[1], key(1)));
    assert_eq!(table.find(&key(1)), Some(slots[1]));
    table.remove(slots[0]);
    assert_eq!(table.find(&key(1)), Some(slots[1]));
    assert!(!table.know(slots[0], key(3)));
    for port in 2..=64 {
        assert!(table.know(slots[1], key(port)));
    }
    assert!(!table.know(slots[1], key(65)) && table.know(slots[1], key(64)));
    assert_eq!(table.find(&key(65)), None);
    table.remove(slots[1]);
    assert_eq!((table.find(&key(1)), table.find(&key(64))), (None, None));
    // the order of the ends says nothing, their ports and what the key is of do
    let (x, y) = (end(1, 1), end(2, 2));
    assert_eq!(Key::of_ends(KeyKind::Tcp, x, y), Key::of_ends(KeyKind::Tcp, y, x));
    assert_eq!(Key::of_ends(KeyKind::Tcp, x, y).ports, 0x1_0002);
    assert_ne!(Key::of_ends(KeyKind::Tcp, x, y), Key::of_ends(KeyKind::Udp, x, y));
}

#[test]
fn datagrams_are_known_by_what_they_carry() {
    let mut under_way = Datagrams::default();
    assert_eq!([7, 8, 7].map(|what| under_way.sent(what, 4096)), [0, 1, 2]);
    assert_eq!(
        [7, 7, 7, 8, 9].map(|what| under_way.received(what)),
        [Some(0), Some(2), None, Some(1), None]
    );
    // the newest 4096 that have not arrived are remembered, and found wherever they are among them
    let mut under_way = Datagrams::default();
    for what in 0..4097 {
        under_way.sent(what, 4096);
    }
    assert_eq!(
        [0, 1, 4096, 2048, 2047].map(|what| under_way.received(what)),
        [None, Some(1), Some(4096), Some(2048), Some(2047)]
    );
    // fewer once there is less room
    assert_eq!(under_way.sent(9000, 3), 4097);
    let kept = [4094, 4095, 9000].map(|what| under_way.received(what));
    assert_eq!(kept, [Some(4094), Some(4095), Some(4097)]);
    assert_eq!(under_way.received(4093), None);
}

#[test]
fn what_came_before_is_forgotten_with_its_content() {
    // the same again and again: what made room is found no more
    let mut under_way = Datagrams::default();
    for _ in 0..10 {
        under_way.sent(7, 4);
    }
    let found: Vec<_> = core::iter::from_fn(|| under_way.received(7)).collect();
    assert_eq!(found, [6, 7, 8, 9]);
}
