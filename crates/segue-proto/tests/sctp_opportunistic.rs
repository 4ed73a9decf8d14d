//! Opportunistic retransmission, step by step: nothing that A sends arrives, and its SACKs are made by hand.

use crate::common::*;
use crate::sctp_multipath::{MESSAGE, bulk, config, path, path_of};
use segue_proto::InterfaceId;
use segue_proto::sctp::multipath::{RtxPolicy, SchedulerKind};
use segue_proto::sctp::{Config, MultipathConfig, SendOptions};
use segue_wire::sctp::{Chunk, DataChunk, GapAckBlock, Sack};
use segue_wire::{Ssn, Tsn};
use std::collections::BTreeSet;

/// What is outstanding, and where it went first.
struct Blocked {
    net: Net,
    /// The cumulative TSN ack.
    base: Tsn,
    sent: Vec<(Tsn, u16)>,
    acked: BTreeSet<u32>,
}

fn settings(multipath: MultipathConfig) -> Config {
    Config {
        max_burst: None,
        // no T3-rtx unless it is waited for
        rto_min: ms(10_000),
        hb_interval: Some(ms(1000)),
        ..config(MultipathConfig {
            opportunistic: true,
            ..multipath
        })
    }
}

/// SRTT of path 1 is near 20 ms and that of path 2 near 200 ms; cwnd of both is what it was at the start. Of `messages`
/// messages as many are outstanding as the peer's window lets go, which is `window`.
fn blocked(config: Config, window: u32, messages: u64) -> Blocked {
    let mut net = Net::established(config, [1, 2]);
    net.run_for(ms(1000));
    net.rule = Box::new(|d| vec![ms([10, 100][usize::from(path_of(d)) - 1])]);
    // heartbeats tell the round trips
    net.run_for(ms(200_000));
    bulk(&mut net, 1);
    net.send(B, 0, synthetic(0, 4));
    net.run_for(ms(1000));
    let srtt = [1, 2].map(|n| path(&net, n).srtt.expect("measured"));
    assert!(srtt[0] < ms(50) && srtt[1] > ms(150), "{srtt:?}");
    let base = last_tsn_of(&net, A);
    net.rule = Box::new(|_| vec![]);
    let mut blocked = Blocked {
        net,
        base,
        sent: Vec::new(),
        acked: BTreeSet::new(),
    };
    blocked.sack(window, 1);
    let before = blocked.net.log.len();
    blocked.net.command(A, |a, now| {
        for i in 0..messages {
            let data = synthetic(i * u64::from(MESSAGE), MESSAGE);
            a.send(now, 0, data, SendOptions::default()).expect("sent");
        }
    });
    let log = &blocked.net.log[before..];
    let sent = log.iter().flat_map(|d| d.data().map(|c| (c.tsn, path_of(d))));
    blocked.sent = sent.collect();
    blocked
}

fn last_tsn_of(net: &Net, host: usize) -> Tsn {
    let own = net.log.iter().filter(|d| d.from == host);
    own.flat_map(Departure::data).last().expect("DATA").tsn
}

impl Blocked {
    /// Injects a SACK over path 1 for `packets` packets of all that is acked.
    fn sack(&mut self, a_rwnd: u32, packets: u8) {
        let sack = self.sack_chunk(a_rwnd, packets);
        let packet = self.net.forge(A, address(B, 1), [sack]);
        self.net.inject(A, packet);
        self.net.association(A).check_invariants().expect("A");
    }

    fn sack_chunk(&self, a_rwnd: u32, packets: u8) -> Chunk {
        let cumulative = (1..).take_while(|n| self.acked.contains(n)).count() as u32;
        let rest = self.acked.iter().filter(|n| **n > cumulative);
        let blocks = rest.map(|n| GapAckBlock {
            start: (n - cumulative) as u16,
            end: (n - cumulative) as u16,
        });
        Chunk::Sack(Sack {
            cumulative_tsn_ack: self.base.add(cumulative),
            a_rwnd,
            gap_ack_blocks: blocks.collect(),
            duplicate_tsns: Box::default(),
            data_packets: packets,
        })
    }

    fn ack(&mut self, tsn: Tsn) {
        self.acked.insert(tsn.distance_from(self.base));
    }

    /// TSNs that went to path `n` at first, in order.
    fn on(&self, n: u16) -> Vec<Tsn> {
        self.sent.iter().filter(|s| s.1 == n).map(|s| s.0).collect()
    }

    /// User bytes that are not acked: with this for a_rwnd the window is closed.
    fn outstanding(&self) -> u32 {
        (self.sent.len() - self.acked.len()) as u32 * MESSAGE
    }

    /// Acks all of path 1, and what of path 2 comes before it; the window stays closed. Gives the chunk that holds it up, which
    /// went to path 2.
    fn free_path_1(&mut self) -> Tsn {
        for tsn in self.on(1) {
            self.ack(tsn);
        }
        self.sack(self.outstanding(), 1);
        self.on(2)[0]
    }

    fn rescheduled(&self) -> u64 {
        self.net.association(A).counters().multipath.chunks_rescheduled
    }
}

#[test]
fn the_fastest_path_with_room_helps_out_whosever_turn_it_is() {
    use SchedulerKind as K;
    for scheduler in [
        K::RoundRobin,
        K::Turns,
        K::FillFirst,
        K::LowestRtt,
        K::LargestCwnd,
    ] {
        for messages in [6, 7] {
            let config = settings(MultipathConfig {
                scheduler,
                ..MultipathConfig::default()
            });
            let mut blocked = blocked(config, messages as u32 * MESSAGE, messages);
            let case = (scheduler, blocked.sent.clone());
            assert_eq!(blocked.sent.len() as u64, messages, "{case:?}");
            let held_up = blocked.free_path_1();
            for n in [1, 2] {
                let path = path(&blocked.net, n);
                // by turns neither window is full
                let has_room = n == 1 || scheduler == K::RoundRobin;
                assert!(!has_room || path.flightsize < path.cwnd, "{case:?}: {path:?}");
            }
            // something waits for the window
            bulk(&mut blocked.net, 1);
            let went = blocked.net.transmissions_of(A, held_up);
            assert_eq!(went.len(), 2, "{case:?}");
            assert_eq!(went[1].1, address(B, 1), "{case:?}");
            assert_eq!(blocked.rescheduled(), 1, "{case:?}");
        }
    }
}

#[test]
fn a_sack_that_is_owed_does_not_lead_the_chunk_back_to_its_path() {
    let config = settings(MultipathConfig {
        rtx_policy: RtxPolicy::Same,
        ..MultipathConfig::default()
    });
    let mut blocked = blocked(config, 6 * MESSAGE, 6);
    let held_up = blocked.free_path_1();
    // the data of B that asks for a SACK at once came over path 2: that is where the SACK goes, alone
    let data = DataChunk {
        tsn: last_tsn_of(&blocked.net, B).next(),
        stream_id: 0,
        ssn: Ssn(1),
        payload_protocol_id: 0,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: true,
        data: synthetic(0, 100),
    };
    let id = blocked.net.ids[A].expect("up");
    let now = blocked.net.now;
    let packet = blocked.net.forge(A, address(B, 2), [Chunk::Data(data)]);
    blocked.net.ends[A].handle_packet(now, InterfaceId(1), packet);
    let more = synthetic(0, MESSAGE);
    let association = blocked.net.ends[A].association_mut(id).expect("up");
    association
        .send(now, 0, more, SendOptions::default())
        .expect("sent");
    let before = blocked.net.log.len();
    blocked.net.drain();
    let left = &blocked.net.log[before..];
    assert_eq!(names(left[0].sctp()), ["SACK"]);
    assert_eq!(path_of(&left[0]), 2);
    let went = blocked.net.transmissions_of(A, held_up);
    let to: Vec<_> = went.iter().map(|t| t.1).collect();
    assert_eq!(to, [address(B, 2), address(B, 1)]);
}

#[test]
fn what_was_moved_is_not_moved_back_when_the_round_trips_cross() {
    let config = settings(MultipathConfig {
        rtx_policy: RtxPolicy::Same,
        pf: false,
        ..MultipathConfig::default()
    });
    let mut blocked = blocked(config, 6 * MESSAGE, 6);
    // what path 1 sent first is timed, and stays under way
    let (first, second) = (blocked.on(1), blocked.on(2));
    let held_up = second[0];
    for tsn in &first[1..] {
        blocked.ack(*tsn);
    }
    let timed = first[0];
    assert!(held_up.before(timed), "{:?}", blocked.sent);
    blocked.sack(blocked.outstanding(), 1);
    bulk(&mut blocked.net, 1);
    assert_eq!(blocked.rescheduled(), 1);
    // a round trip of 5 s: path 2 is the faster one now
    blocked.net.run_for(ms(5000));
    blocked.ack(timed);
    for tsn in &second[1..] {
        blocked.ack(*tsn);
    }
    blocked.sack(blocked.outstanding(), 1);
    let srtt = [1, 2].map(|n| path(&blocked.net, n).srtt);
    assert!(srtt[0] > srtt[1], "{srtt:?}");
    let to = |net: &Net| -> Vec<_> {
        let all = net.transmissions_of(A, held_up).into_iter();
        all.map(|t| t.1).collect()
    };
    assert_eq!(to(&blocked.net), [address(B, 2), address(B, 1)]);
    assert_eq!(blocked.rescheduled(), 1);
    // lost there as well: the next retransmission may be moved in its turn
    blocked.net.run_for(ms(12_000));
    assert_eq!(blocked.net.association(A).counters().t3_expiries, 1);
    let [one, two] = [1, 2].map(|n| address(B, n));
    assert_eq!(to(&blocked.net), [two, one, one, two]);
    assert_eq!(blocked.rescheduled(), 2);
}

#[test]
fn beside_a_move_a_fast_retransmission_still_waits_for_room_on_a_path_that_lost_nothing() {
    let mut settings = settings(MultipathConfig {
        rtx_policy: RtxPolicy::LossRate,
        ..MultipathConfig::default()
    });
    settings.rto_min = ms(1000);
    let mut blocked = blocked(settings, 1_000_000, 14);
    // both windows are full
    let (first, second) = (blocked.on(1), blocked.on(2));
    assert_eq!((first.len(), second.len()), (5, 5));
    // all of path 1 has arrived but for its first chunk, and one SACK says so for three packets
    let lost = first[0];
    for tsn in first.iter().filter(|t| **t != lost) {
        blocked.ack(*tsn);
    }
    let held_up = second[0];
    assert!(held_up.before(lost));
    let before = blocked.net.log.len();
    blocked.sack(blocked.outstanding() - MESSAGE, 3);
    let counters = blocked.net.association(A).counters();
    assert_eq!(counters.multipath.chunks_rescheduled, 1);
    let left = blocked.net.log[before..].iter();
    let went: Vec<_> = left.flat_map(|d| d.data().map(|c| (c.tsn, path_of(d)))).collect();
    // the place that is path 1's may be used there; path 2 has no room for the other
    assert_eq!(went, [(held_up, 1)], "{lost:?}");
    assert!(path(&blocked.net, 2).flightsize >= path(&blocked.net, 2).cwnd);
}
