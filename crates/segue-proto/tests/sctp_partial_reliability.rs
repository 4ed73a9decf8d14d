//! Partial reliability: FORWARD TSN (RFC 3758) and its policies (RFC 3758 section 4.1, RFC 7496).

use crate::common::*;
use segue_proto::Duration;
use segue_proto::sctp::{Config, Event, Reliability, SendError, SendOptions};
use segue_wire::sctp::{Chunk, DataChunk, ForwardTsn};
use segue_wire::{Data, Ssn, Tsn};

fn with(reliability: Reliability) -> SendOptions {
    SendOptions {
        reliability,
        ..SendOptions::default()
    }
}

fn timed(lifetime_ms: u64) -> SendOptions {
    with(Reliability::Timed {
        lifetime: ms(lifetime_ms),
    })
}

fn retransmissions(limit: u32) -> SendOptions {
    with(Reliability::Retransmissions { limit })
}

fn priority(priority: u32) -> SendOptions {
    with(Reliability::Priority { priority })
}

fn send(net: &mut Net, stream: u16, offset: u64, len: u32, options: SendOptions) -> Result<(), SendError> {
    net.command(A, |a, now| a.send(now, stream, synthetic(offset, len), options))
}

fn forward_tsns(net: &Net) -> Vec<ForwardTsn> {
    let chunks = net.log.iter().flat_map(|d| d.sctp().chunks.iter());
    chunks
        .filter_map(|c| match c {
            Chunk::ForwardTsn(f) => Some((**f).clone()),
            _ => None,
        })
        .collect()
}

/// Offsets of the messages that B received, checked to be whole.
fn received(net: &Net) -> Vec<u64> {
    net.messages[B]
        .iter()
        .map(|m| match m.parts.first() {
            Some(&Data::Synthetic { offset, .. }) => offset,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn abandoned(net: &Net) -> Vec<(u16, bool)> {
    net.events[A]
        .iter()
        .filter_map(|(_, e)| match e {
            Event::MessageAbandoned { stream_id, sent, .. } => Some((*stream_id, *sent)),
            _ => None,
        })
        .collect()
}

/// Loses every packet whose DATA `lost` picks; nothing else.
fn lose(net: &mut Net, mut lost: impl FnMut(&DataChunk) -> bool + 'static) {
    net.rule = Box::new(move |d| {
        if d.from == A && d.data().any(&mut lost) {
            Vec::new()
        } else {
            vec![ms(10)]
        }
    });
}

fn starts_at(chunk: &DataChunk, wanted: u64) -> bool {
    matches!(chunk.data, Data::Synthetic { offset, .. } if offset == wanted)
}

#[test]
fn a_message_that_may_not_be_retransmitted_is_skipped_and_its_stream_goes_on() {
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, |c| starts_at(c, 1000));
    for i in 0..5 {
        send(&mut net, 3, i * 1000, 1000, retransmissions(0)).unwrap();
    }
    net.run_for(ms(3000));
    assert_eq!(received(&net), [0, 2000, 3000, 4000]);
    assert_eq!(abandoned(&net), [(3, true)]);
    let forward = forward_tsns(&net);
    assert_eq!(forward.len(), 1);
    assert_eq!(forward[0].skipped, [(3, Ssn(1))]);
    assert!(net.association(A).is_sender_dry());
    let counters = net.association(A).counters();
    assert_eq!(counters.data_chunks_retransmitted, 0);
    assert_eq!(
        (counters.messages_abandoned_sent, counters.forward_tsns_sent),
        (1, 1)
    );
    assert_eq!(net.association(B).counters().forward_tsns_received, 1);
}

#[test]
fn the_limit_counts_retransmissions() {
    for limit in 0..4 {
        let mut net = Net::established(Config::default(), [1, 1]);
        lose(&mut net, |c| starts_at(c, 0));
        send(&mut net, 0, 0, 1000, retransmissions(limit)).unwrap();
        send(&mut net, 0, 1000, 1000, SendOptions::default()).unwrap();
        net.run_for(Duration::from_secs(60));
        let sent = net
            .log
            .iter()
            .filter(|d| d.data().any(|c| starts_at(c, 0)))
            .count();
        assert_eq!(sent, 1 + limit as usize);
        assert_eq!(received(&net), [1000]);
        assert!(net.association(A).is_sender_dry());
    }
}

#[test]
fn a_timed_message_is_neither_sent_nor_sent_again_after_its_lifetime() {
    // the first transmission is lost; at the timeout, after RTO.Min of 1 s, 500 ms have passed and 5 s have not
    for (lifetime, transmissions) in [(500, 1), (5000, 2)] {
        let mut net = Net::established(Config::default(), [1, 1]);
        let mut left = 1;
        lose(&mut net, move |_| {
            left -= 1;
            left >= 0
        });
        send(&mut net, 0, 0, 1000, timed(lifetime)).unwrap();
        net.run_for(ms(5000));
        let sent = net.log.iter().filter(|d| d.data().next().is_some()).count();
        assert_eq!(sent, transmissions);
        assert_eq!(received(&net).len(), transmissions - 1);
        assert!(net.association(A).is_sender_dry());
    }
}

#[test]
fn a_timed_message_that_never_got_its_turn_leaves_without_a_tsn_or_an_ssn() {
    let mut net = Net::established(Config::default(), [1, 1]);
    // cwnd is full for a while: nothing is answered
    net.rule = Box::new(|_| vec![ms(400)]);
    for i in 0..8 {
        send(&mut net, 0, i * 1400, 1400, SendOptions::default()).unwrap();
    }
    send(&mut net, 0, 100_000, 1400, timed(300)).unwrap();
    send(&mut net, 0, 200_000, 1400, SendOptions::default()).unwrap();
    net.run_for(ms(20_000));
    assert_eq!(abandoned(&net), [(0, false)]);
    assert_eq!(forward_tsns(&net), []);
    let expected: Vec<u64> = (0..8).map(|i| i * 1400).chain([200_000]).collect();
    assert_eq!(received(&net), expected);
    assert_eq!(net.association(A).counters().messages_abandoned_unsent, 1);
}

#[test]
fn an_abandoned_fragment_takes_its_whole_message_with_it() {
    // RFC 3758 section 3.5 rule A3
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, |c| starts_at(c, 1432));
    send(&mut net, 0, 0, 3 * 1432, retransmissions(0)).unwrap();
    send(&mut net, 1, 90_000, 100, SendOptions::default()).unwrap();
    net.run_for(ms(5000));
    assert_eq!(received(&net), [90_000]);
    assert_eq!(abandoned(&net), [(0, true)]);
    assert_eq!(
        net.association(B).a_rwnd(),
        Config::default().receive_buffer,
        "the parts are gone"
    );
    assert!(net.association(A).is_sender_dry());
}

#[test]
fn a_message_abandoned_amid_its_transmission_is_ended_by_a_tsn_that_is_never_sent() {
    let mut net = Net::established(Config::default(), [1, 1]);
    net.rule = Box::new(|_| vec![ms(200)]);
    // 40 chunks with an initial cwnd of four: the lifetime ends amid them, with everything sent acknowledged in turn
    send(&mut net, 0, 0, 40 * 1432, timed(900)).unwrap();
    send(&mut net, 0, 500_000, 100, SendOptions::default()).unwrap();
    net.run_for(ms(20_000));
    assert_eq!(abandoned(&net), [(0, true)]);
    assert_eq!(received(&net), [500_000]);
    assert_eq!(net.association(B).a_rwnd(), Config::default().receive_buffer);
    assert!(net.association(A).is_sender_dry());
    let last_sent = net
        .log
        .iter()
        .filter(|d| d.from == A)
        .flat_map(|d| d.data())
        .map(|c| c.tsn);
    let tsns: Vec<Tsn> = last_sent.collect();
    assert_eq!(
        tsns[tsns.len() - 1].distance_from(tsns[tsns.len() - 2]),
        2,
        "one TSN was never sent"
    );
}

#[test]
fn unordered_messages_are_skipped_without_a_stream() {
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, |c| starts_at(c, 0));
    let options = SendOptions {
        unordered: true,
        ..retransmissions(0)
    };
    send(&mut net, 4, 0, 100, options).unwrap();
    net.run_for(ms(3000));
    assert_eq!(forward_tsns(&net)[0].skipped, []);
    assert!(net.association(A).is_sender_dry());
}

#[test]
fn only_the_highest_ssn_of_each_stream_is_named() {
    // RFC 3758 section 3.5 rule C4
    let mut net = Net::established(Config::default(), [1, 1]);
    net.rule = Box::new(|d| {
        let lost = d.from == A && d.data().next().is_some();
        if lost { Vec::new() } else { vec![ms(10)] }
    });
    for i in 0..6 {
        send(&mut net, (i % 2) as u16, i * 100, 100, retransmissions(0)).unwrap();
    }
    net.run_for(ms(3000));
    let forward = forward_tsns(&net);
    assert_eq!(forward.last().unwrap().skipped, [(0, Ssn(2)), (1, Ssn(2))]);
    assert!(net.association(A).is_sender_dry());
}

#[test]
fn a_lost_forward_tsn_is_sent_again_and_an_out_of_date_one_is_answered() {
    // rules C5 and A5, and section 3.6
    let mut net = Net::established(Config::default(), [1, 1]);
    let mut forwards = 0;
    let mut sacks_lost = 0;
    net.rule = Box::new(move |d| {
        let data = d.from == A && d.data().next().is_some();
        let forward = d.sctp().chunks.iter().any(|c| matches!(c, Chunk::ForwardTsn(_)));
        if forward {
            forwards += 1;
        }
        // the first FORWARD TSN is lost, and the SACK that answers the second
        let sack = d.from == B && forwards == 2 && sacks_lost == 0;
        if sack {
            sacks_lost += 1;
        }
        if data || (forward && forwards == 1) || sack {
            Vec::new()
        } else {
            vec![ms(10)]
        }
    });
    send(&mut net, 0, 0, 100, retransmissions(0)).unwrap();
    net.run_for(Duration::from_secs(20));
    assert_eq!(forward_tsns(&net).len(), 3);
    assert!(net.association(A).is_sender_dry());
    let last = net.log.iter().rfind(|d| d.from == A).unwrap().at;
    let answer = net.log.iter().find(|d| d.from == B && d.at > last).unwrap().at;
    assert_eq!(
        answer.since(last),
        ms(10),
        "an out-of-date FORWARD TSN is answered at once"
    );
    assert_eq!(net.association(A).paths().next().unwrap().error_count, 0);
}

#[test]
fn an_unanswered_forward_tsn_finds_out_that_the_peer_is_gone() {
    let config = Config {
        association_max_retrans: 3,
        hb_interval: None,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.rule = Box::new(|_| Vec::new());
    send(&mut net, 0, 0, 100, retransmissions(0)).unwrap();
    net.run_for(Duration::from_secs(100));
    assert!(net.has_event(A, &Event::Lost));
}

#[test]
fn a_forward_tsn_travels_with_data() {
    // rule F2
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, |c| starts_at(c, 0));
    send(&mut net, 0, 0, 1400, retransmissions(0)).unwrap();
    for i in 1..30 {
        send(&mut net, 0, i * 1400, 200, SendOptions::default()).unwrap();
    }
    net.run_for(ms(3000));
    let first = net
        .log
        .iter()
        .find(|d| d.sctp().chunks.iter().any(|c| matches!(c, Chunk::ForwardTsn(_))))
        .unwrap();
    assert!(first.data().next().is_some(), "{:?}", names(first.sctp()));
    assert_eq!(received(&net).len(), 29);
}

#[test]
fn without_the_peers_support_what_was_sent_is_delivered_after_all() {
    let old = Config {
        partial_reliability: false,
        ..Config::default()
    };
    for configs in [[Config::default(), old.clone()], [old, Config::default()]] {
        let mut net = Net::new(configs, [1, 1], ms(10), 1);
        net.connect();
        net.run_for(ms(500));
        let mut left = 1;
        lose(&mut net, move |_| {
            left -= 1;
            left >= 0
        });
        send(&mut net, 0, 0, 100, retransmissions(0)).unwrap();
        net.run_for(ms(5000));
        assert_eq!(received(&net), [0]);
        assert_eq!(abandoned(&net), []);
        assert_eq!(forward_tsns(&net), []);
        // and a FORWARD TSN that comes all the same is a chunk of an unknown type, to be reported
        let tag_from = address(A, 1);
        let chunk = Chunk::ForwardTsn(Box::new(ForwardTsn {
            new_cumulative_tsn: Tsn(0),
            skipped: vec![],
        }));
        let packet = net.forge(B, tag_from, [chunk]);
        net.log.clear();
        net.inject(B, packet);
        assert_eq!(net.trace(), ["B ERROR"]);
        assert_eq!(net.association(B).counters().refused.unknown, 1);
    }
}

#[test]
fn a_message_of_low_priority_makes_room_for_one_of_higher_priority() {
    // RFC 7496 section 3.2
    let config = Config {
        send_buffer: 10_000,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.rule = Box::new(|_| Vec::new());
    // three go out at once, the others wait
    for i in 0..10 {
        send(&mut net, 0, i * 1000, 1000, priority(if i == 6 { 9 } else { 5 })).unwrap();
    }
    send(&mut net, 1, 50_000, 1000, priority(5)).unwrap();
    net.rule = Box::new(|_| vec![ms(10)]);
    net.run_for(Duration::from_secs(10));
    let expected: Vec<u64> = (0..10)
        .filter(|i| *i != 6)
        .map(|i| i * 1000)
        .chain([50_000])
        .collect();
    let mut all = received(&net);
    all.sort_unstable();
    assert_eq!(all, expected);
    assert_eq!(abandoned(&net), [(0, false)]);
}

#[test]
fn equal_or_higher_priorities_make_no_room_and_reliable_messages_take_all() {
    let config = Config {
        send_buffer: 10_000,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.rule = Box::new(|_| Vec::new());
    for i in 0..10 {
        send(&mut net, 0, i * 1000, 1000, priority(5)).unwrap();
    }
    assert_eq!(
        send(&mut net, 0, 0, 1000, priority(5)),
        Err(SendError::BufferFull)
    );
    assert_eq!(
        send(&mut net, 0, 0, 1000, priority(6)),
        Err(SendError::BufferFull)
    );
    assert_eq!(abandoned(&net), []);
    // all of it, what was sent included
    send(&mut net, 1, 70_000, 10_000, SendOptions::default()).unwrap();
    assert_eq!(abandoned(&net).len(), 10);
    assert!(abandoned(&net).iter().any(|a| a.1) && abandoned(&net).iter().any(|a| !a.1));
    net.rule = Box::new(|_| vec![ms(10)]);
    net.run_for(Duration::from_secs(20));
    assert_eq!(received(&net), [70_000]);
    assert!(net.association(A).is_sender_dry());
}

/// What has arrived in whole is no longer anybody's to abandon, though it takes room until it is acknowledged in order.
#[test]
fn a_message_that_has_arrived_makes_no_room() {
    let config = Config {
        send_buffer: 10_000,
        ..Config::default()
    };
    let mut net = Net::established(config.clone(), [1, 1]);
    lose(&mut net, |chunk| starts_at(chunk, 0));
    send(&mut net, 0, 0, 1000, SendOptions::default()).unwrap();
    send(&mut net, 1, 1000, 1000, priority(5)).unwrap();
    send(&mut net, 1, 2000, 1000, priority(5)).unwrap();
    net.run_for(ms(300));
    assert_eq!(received(&net), [1000, 2000]);
    for i in 3..10 {
        send(&mut net, 2, i * 1000, 1000, SendOptions::default()).unwrap();
    }
    assert_eq!(
        send(&mut net, 2, 90_000, 1000, SendOptions::default()),
        Err(SendError::BufferFull)
    );
    assert_eq!(abandoned(&net), []);
    // one of which a part is still under way may go, with the part that has arrived
    let mut net = Net::established(config, [1, 1]);
    lose(&mut net, |chunk| starts_at(chunk, 0));
    send(&mut net, 1, 0, 4000, priority(5)).unwrap();
    net.run_for(ms(300));
    send(&mut net, 2, 90_000, 10_000, SendOptions::default()).unwrap();
    assert_eq!(abandoned(&net), [(1, true)]);
}

#[test]
fn expired_messages_free_the_send_buffer_for_a_new_one() {
    let config = Config {
        send_buffer: 10_000,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.rule = Box::new(|_| Vec::new());
    for i in 0..10 {
        send(&mut net, 0, i * 1000, 1000, timed(100)).unwrap();
    }
    assert_eq!(send(&mut net, 0, 0, 1000, timed(100)), Err(SendError::BufferFull));
    net.run_for(ms(150));
    send(&mut net, 0, 0, 1000, timed(100)).unwrap();
}

#[test]
fn a_shutdown_does_not_wait_for_what_is_too_late() {
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, |_| true);
    for i in 0..20 {
        send(&mut net, 0, i * 1000, 1000, timed(200)).unwrap();
    }
    net.command(A, |a, now| a.shutdown(now));
    net.run_for(ms(5000));
    assert!(net.has_event(A, &Event::Closed));
    assert!(net.has_event(B, &Event::Closed));
    assert_eq!(abandoned(&net).len(), 20);
}

#[test]
fn abandoned_data_opens_no_window() {
    // rule A2: neither cwnd nor partial_bytes_acked
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, |_| true);
    for i in 0..20 {
        send(&mut net, 0, i * 1000, 1000, timed(200)).unwrap();
    }
    net.run_for(ms(5000));
    assert!(net.association(A).is_sender_dry());
    let path = net.association(A).paths().next().unwrap();
    assert_eq!((path.cwnd, path.flightsize), (1448, 0), "as the timeout left it");
    assert_eq!(net.association(A).outstanding_bytes(), 0);
}

#[test]
fn under_random_loss_reliable_messages_all_come_in_order_amid_abandoned_ones() {
    for seed in 0..20_u64 {
        let mut net = Net::symmetric(Config::default(), [1, 2], seed);
        net.keep_log = false;
        net.connect();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        net.rule = Box::new(move |_| match random() % 10 {
            0 | 1 => Vec::new(),
            2 => vec![ms(10), ms(35)],
            n => vec![ms(5 + 3 * n)],
        });
        let mut reliable = Vec::new();
        for i in 0..300_u64 {
            let options = match (i * 7 + seed) % 5 {
                0 => timed(150),
                1 => retransmissions((i % 3) as u32),
                2 => SendOptions {
                    unordered: true,
                    ..retransmissions(0)
                },
                _ => {
                    reliable.push((i % 3, i * 10_000));
                    SendOptions::default()
                }
            };
            let len = if i % 11 == 0 { 6000 } else { 700 };
            send(&mut net, (i % 3) as u16, i * 10_000, len, options).unwrap_or_else(|e| {
                assert_eq!(e, SendError::BufferFull);
                reliable.retain(|r| r.1 != i * 10_000);
            });
            net.run_for(ms(4));
        }
        net.run_for(Duration::from_secs(300));
        assert!(net.association(A).is_sender_dry(), "seed {seed}");
        assert_eq!(
            net.association(B).a_rwnd(),
            Config::default().receive_buffer,
            "seed {seed}"
        );
        for stream in 0..3 {
            let expected: Vec<u64> = reliable.iter().filter(|r| r.0 == stream).map(|r| r.1).collect();
            let came: Vec<u64> = net.messages[B]
                .iter()
                .filter(|m| u64::from(m.stream_id) == stream)
                .map(|m| match m.parts[0] {
                    Data::Synthetic { offset, .. } => offset,
                    Data::Bytes(_) => unreachable!(),
                })
                .filter(|o| reliable.iter().any(|r| r.1 == *o))
                .collect();
            assert_eq!(came, expected, "seed {seed}, stream {stream}");
        }
        for m in &net.messages[B] {
            let Data::Synthetic { offset, .. } = m.parts[0] else {
                unreachable!()
            };
            let len: usize = m.parts.iter().map(Data::len).sum();
            let expected = if (offset / 10_000) % 11 == 0 { 6000 } else { 700 };
            assert_eq!(len, expected, "a message is whole or not there");
        }
    }
}
