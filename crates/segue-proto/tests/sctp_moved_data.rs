//! The sender after a move: where its data goes, and acknowledgements of what was in flight on the path that was left come in while its data is
//! under way on another (RFC 9260 section 7.2.4, RFC 5061 section 5.3). The SACKs are made by hand; those of B are lost.

use crate::common::*;
use core::net::Ipv6Addr;
use segue_proto::Instant;
use segue_proto::sctp::{Config, PathSnapshot};
use segue_wire::Tsn;
use segue_wire::sctp::{Chunk, GapAckBlock, Sack};

const MESSAGE: u32 = 1000;

/// A has chunks out to B's address 1, of which the first was lost, when B deletes that address: what is not acknowledged
/// goes out again to address 2, whose round trip is 20 ms.
struct Moved {
    net: Net,
    /// The cumulative TSN ack.
    base: Tsn,
    begins: Instant,
}

fn before_the_move(flight: u64) -> Moved {
    before_the_move_to(flight, 2)
}

/// With so many chunks sent to address 2 before. Heartbeats have gone there.
fn before_the_move_to(flight: u64, chunks_before: u64) -> Moved {
    let mut net = Net::established(
        Config {
            max_burst: None,
            initial_cwnd: Some(10),
            ..Config::default()
        },
        [1, 2],
    );
    net.run_for(ms(1000));
    // data tells the shortest round trip of path 2
    let primary = |net: &mut Net, n| {
        net.command(A, |a, now| a.set_primary_path(now, address(B, n)))
            .expect("an address of B");
    };
    primary(&mut net, 2);
    for _ in 0..chunks_before {
        net.send(A, 0, synthetic(0, MESSAGE));
    }
    net.run_for(ms(500));
    primary(&mut net, 1);
    // that there is a last one
    net.send(A, 0, synthetic(0, MESSAGE));
    net.run_for(ms(500));
    let base = net.log.iter().flat_map(Departure::data).last().expect("DATA").tsn;
    net.rule = Box::new(|d| {
        let sacks = d.from == B && names(d.sctp()).contains(&"SACK");
        if d.data().next().is_some() || sacks {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    for i in 0..flight {
        net.send(A, 0, synthetic(i * u64::from(MESSAGE), MESSAGE));
    }
    let begins = net.now;
    Moved { net, base, begins }
}

impl Moved {
    fn delete_address_1(&mut self) {
        let net = &mut self.net;
        net.command(B, |b, now| b.set_route(now, address(B, 2)))
            .expect("an address of B");
        net.command(B, |b, now| b.delete_address(now, address(B, 1)))
            .expect("one of two");
        net.run_for(ms(10));
    }

    /// A SACK from B's address 2, its cumulative TSN ack and blocks as offsets from the first.
    fn sack(&mut self, cumulative: u32, blocks: &[(u16, u16)]) {
        self.sack_from(2, cumulative, blocks);
    }

    /// The same from another of B's addresses.
    fn sack_from(&mut self, from: u16, cumulative: u32, blocks: &[(u16, u16)]) {
        let sack = Chunk::Sack(Sack {
            cumulative_tsn_ack: self.base.add(cumulative),
            a_rwnd: 1_000_000,
            gap_ack_blocks: blocks
                .iter()
                .map(|&(start, end)| GapAckBlock { start, end })
                .collect(),
            duplicate_tsns: Box::default(),
            data_packets: 0,
        });
        let packet = self.net.forge(A, address(B, from), [sack]);
        self.net.inject(A, packet);
        self.net
            .association(A)
            .check_invariants()
            .expect("the books balance");
    }

    /// What A has sent: ms since the first chunk, B's address, numbers of chunks.
    fn sent(&self) -> Vec<(u64, u16, Vec<u32>)> {
        let own = self.net.log.iter().filter(|d| d.from == A && d.at >= self.begins);
        own.filter(|d| d.data().next().is_some())
            .map(|d| {
                let numbers = d.data().map(|c| c.tsn.distance_from(self.base)).collect();
                let to = d.packet.ip.destination;
                let n = u16::from(to == address(B, 1)) + 2 * u16::from(to == address(B, 2));
                (d.at.since(self.begins).as_millis(), n, numbers)
            })
            .collect()
    }

    fn path(&self, address: Ipv6Addr) -> PathSnapshot {
        let mut paths = self.net.association(A).paths();
        paths.find(|p| p.destination == address).expect("a path")
    }
}

#[test]
fn what_was_in_flight_before_a_move_says_nothing_of_what_was_sent_after_it() {
    let mut moved = before_the_move(5);
    moved.delete_address_1();
    let old: Vec<_> = (1..=5).map(|n| (0, 1, vec![n])).collect();
    let new: Vec<_> = (1..=5).map(|n| (10, 2, vec![n])).collect();
    assert_eq!(moved.sent(), [old, new].concat());
    let cwnd = moved.path(address(B, 2)).cwnd;
    // 2, 3 and 4 had arrived at address 1; that of 1 is on its way
    moved.net.run_for(ms(5));
    for last in 2..=4 {
        moved.sack(0, &[(2, last)]);
    }
    assert_eq!(
        moved.sent().len(),
        10,
        "nothing goes out a third time: {:?}",
        moved.sent()
    );
    assert_eq!(moved.path(address(B, 2)).cwnd, cwnd);
    // what was sent later does: 1 is lost there as well
    for n in 0..3 {
        moved.net.send(A, 0, synthetic(n * u64::from(MESSAGE), MESSAGE));
    }
    moved.net.run_for(ms(20));
    for last in 6..=8 {
        assert_eq!(moved.sent().len(), 13);
        moved.sack(0, &[(2, last)]);
    }
    assert_eq!(moved.sent()[13..], [(35, 2, vec![1])]);
    assert!(moved.path(address(B, 2)).cwnd < cwnd);
}

#[test]
fn the_round_trip_of_heartbeats_tells_which_transmission_is_acknowledged_where_no_data_has() {
    for (later, expected) in [(ms(5), 10), (ms(20), 11)] {
        let mut moved = before_the_move_to(5, 0);
        moved.delete_address_1();
        moved.net.run_for(later);
        // 1 is lost there as well
        for last in 2..=4 {
            assert_eq!(moved.sent().len(), 10);
            moved.sack(0, &[(2, last)]);
        }
        assert_eq!(moved.sent().len(), expected, "{later:?}");
    }
}

#[test]
fn a_sack_that_another_overtook_takes_nothing_back_before_a_move_or_after_it() {
    for delete_after in 0..=2 {
        let mut moved = before_the_move(5);
        // the second of these left B first
        for (n, last) in [5, 3].into_iter().enumerate() {
            if n == delete_after {
                moved.delete_address_1();
            }
            moved.sack(0, &[(2, last)]);
            let outstanding = moved.net.association(A).outstanding_bytes();
            assert_eq!(outstanding, MESSAGE, "{delete_after}: after SACK {n}");
        }
        if delete_after == 2 {
            moved.delete_address_1();
        }
        let again: Vec<_> = moved.sent().split_off(5).into_iter().flat_map(|s| s.2).collect();
        let before_the_first = delete_after == 0;
        let expected: &[u32] = if before_the_first { &[1, 2, 3, 4, 5] } else { &[1] };
        assert_eq!(again, expected, "the receiver has the rest");
        moved.sack(3, &[]);
        let outstanding = moved.net.association(A).outstanding_bytes();
        assert_eq!(outstanding, 2 * MESSAGE, "newer than both: it takes 4 and 5 back");
    }
}

/// The data that A sends from now on arrives nowhere, and neither do SACKs.
fn lose_data(net: &mut Net) -> Instant {
    net.rule = Box::new(|d| {
        let sack = names(d.sctp()).contains(&"SACK");
        if sack || d.data().next().is_some() {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    net.now
}

/// Between which addresses A has sent data since.
fn ways(net: &Net, since: Instant) -> Vec<(Ipv6Addr, Ipv6Addr)> {
    let own = net.log.iter().filter(|d| d.from == A && d.at >= since);
    let data = own.filter(|d| d.data().next().is_some());
    data.map(|d| (d.packet.ip.source, d.packet.ip.destination))
        .collect()
}

#[test]
fn what_was_in_flight_from_an_address_of_ours_that_goes_follows_the_new_data_and_not_another_destination() {
    let mut net = Net::established(Config::default(), [2, 2]);
    net.run_for(ms(1000));
    let begins = lose_data(&mut net);
    for i in 0..3 {
        net.send(A, 0, synthetic(i * u64::from(MESSAGE), MESSAGE));
    }
    net.command(A, |a, now| a.local_address_removed(now, address(A, 1)));
    net.run_for(ms(10));
    // the address that is gone was ours: nothing is known against the primary path's destination
    let [old, new] = [1, 2].map(|own| vec![(address(A, own), address(B, 1)); 3]);
    assert_eq!(ways(&net, begins), [old, new].concat());
}

#[test]
fn an_address_that_goes_and_comes_back_makes_no_answer_of_what_was_in_flight_before() {
    let mut net = Net::established(Config::default(), [1, 1]);
    net.run_for(ms(1000));
    let begins = lose_data(&mut net);
    for i in 0..4 {
        net.send(A, 0, synthetic(i * u64::from(MESSAGE), MESSAGE));
    }
    let first = net
        .log
        .iter()
        .filter(|d| d.at >= begins)
        .flat_map(Departure::data)
        .next();
    let base = first.expect("DATA").tsn.previous();
    let only = net.association(A).route();
    net.command(A, |a, now| a.local_address_removed(now, only.address));
    net.command(A, |a, now| a.local_address_added(now, only));
    net.run_for(ms(5));
    let sent = ways(&net, begins).len();
    let mut moved = Moved { net, base, begins };
    // 2, 3 and 4 had arrived, and so had 1, of which the SACK does not know
    for last in 2..=4 {
        moved.sack_from(1, 0, &[(2, last)]);
    }
    assert_eq!(
        moved.sent().len(),
        sent,
        "nothing goes out once more: {:?}",
        moved.sent()
    );
}

#[test]
fn a_sack_that_was_overtaken_takes_nothing_back_where_the_only_address_went_and_came_back() {
    let config = Config {
        initial_cwnd: Some(10),
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.run_for(ms(1000));
    let begins = lose_data(&mut net);
    for i in 0..5 {
        net.send(A, 0, synthetic(i * u64::from(MESSAGE), MESSAGE));
    }
    net.run_for(ms(300));
    let tsns = net
        .log
        .iter()
        .filter(|d| d.at >= begins)
        .flat_map(Departure::data);
    let base = tsns.map(|data| data.tsn.0).min().expect("DATA").wrapping_sub(1);
    let mut moved = Moved {
        net,
        base: Tsn(base),
        begins,
    };
    // 1 is lost
    moved.sack_from(1, 0, &[(2, 5)]);
    let only = moved.net.association(A).route();
    moved
        .net
        .command(A, |a, now| a.local_address_removed(now, only.address));
    moved.net.command(A, |a, now| a.local_address_added(now, only));
    moved.net.run_for(ms(5));
    let sent = moved.sent();
    assert_eq!(sent.last().map(|s| s.2.as_slice()), Some(&[1][..]), "{sent:?}");
    // this one left before
    moved.sack_from(1, 0, &[(2, 4)]);
    assert_eq!(moved.sent(), sent, "5 has arrived");
}
