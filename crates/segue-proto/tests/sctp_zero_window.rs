//! A receiver that does not read: its window closes, is probed, and opens again (RFC 9260 sections 6.1 rule A, 6.2).

use crate::common::*;
use segue_proto::Duration;
use segue_proto::sctp::{Config, Event, MultipathConfig, PathState};
use segue_wire::sctp::Chunk;

const MESSAGES: u64 = 40;

/// Ends on which a receiver with a small buffer has been filled up and does not read.
fn closed(config: Config) -> Net {
    let receiver = Config {
        receive_buffer: 10_000,
        ..config.clone()
    };
    let mut net = Net::new([config, receiver], [1, 1], ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    net.reading[B] = false;
    for n in 0..MESSAGES {
        net.send(A, 0, synthetic(1000 * n, 1000));
    }
    net.run_for(Duration::from_secs(3));
    assert_eq!(net.association(A).peer_rwnd(), 0);
    net
}

/// What A has sent, in seconds since the log began, of packets with DATA.
fn probes(net: &Net) -> Vec<f64> {
    net.log
        .iter()
        .filter(|d| d.from == A && d.data().next().is_some())
        .map(|d| d.at.since(segue_proto::Instant::ZERO).as_nanos() as f64 / 1e9)
        .collect()
}

fn read_all(net: &mut Net) {
    net.reading[B] = true;
    net.drain();
}

#[test]
fn a_receiver_that_stays_closed_for_an_hour_is_probed_ever_less_often_and_keeps_its_association() {
    let config = Config {
        path_max_retrans: 2,
        association_max_retrans: 3,
        // a heartbeat's round trip would reset the RTO, and with it the interval
        hb_interval: None,
        ..Config::default()
    };
    let mut net = closed(config);
    net.log.clear();
    net.events = [Vec::new(), Vec::new()];
    net.run_for(Duration::from_secs(3600));
    assert!(net.association(A).is_established());
    let path = net.association(A).paths().next().expect("path");
    assert_eq!((path.state, path.error_count), (PathState::Active, 0));
    assert!(
        !net.events[A]
            .iter()
            .any(|(_, e)| matches!(e, Event::PathStateChanged { .. }))
    );
    let at = probes(&net);
    // one chunk at a time, at RTO.Max in the end
    assert!(net.log.iter().all(|d| d.from == B || d.data().count() <= 1));
    let gaps: Vec<f64> = at.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.windows(2).all(|g| g[1] >= 0.99 * g[0]), "{gaps:?}");
    assert!((59.0..61.0).contains(gaps.last().expect("gaps")), "{gaps:?}");
    assert!(at.len() < 75, "{} probes", at.len());
    // every probe is answered at once, and says that there is no room
    let sacks = net
        .log
        .iter()
        .filter(|d| d.from == B)
        .flat_map(|d| d.sctp().chunks.iter())
        .filter(|c| matches!(c, Chunk::Sack(sack) if sack.a_rwnd == 0))
        .count();
    assert_eq!(sacks, at.len());
    // and all goes on as soon as it reads
    let reads_at = net.now;
    read_all(&mut net);
    net.run_for(Duration::from_secs(1));
    assert_eq!(
        net.messages[B].len() as u64,
        MESSAGES,
        "a second after {reads_at:?}"
    );
    assert!(net.association(A).is_sender_dry());
}

#[test]
fn the_congestion_window_survives_a_closed_receive_window() {
    let mut net = closed(Config::default());
    let before = net.association(A).paths().next().expect("path");
    net.run_for(Duration::from_secs(120));
    let after = net.association(A).paths().next().expect("path");
    assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, before.ssthresh));
}

#[test]
fn a_receiver_that_falls_silent_behind_its_closed_window_is_lost() {
    let config = Config {
        association_max_retrans: 3,
        hb_interval: None,
        ..Config::default()
    };
    let mut net = closed(config);
    net.run_for(Duration::from_secs(60));
    net.rule = Box::new(|d| if d.from == B { vec![] } else { vec![ms(10)] });
    net.run_for(Duration::from_secs(600));
    assert!(net.has_event(A, &Event::Lost));
}

#[test]
fn a_lost_window_update_is_made_good_by_the_next_probe() {
    let mut net = closed(Config::default());
    net.run_for(Duration::from_secs(20));
    net.rule = Box::new(|_| vec![]);
    read_all(&mut net);
    net.rule = Box::new(|_| vec![ms(10)]);
    net.run_for(Duration::from_secs(61));
    assert_eq!(net.messages[B].len() as u64, MESSAGES);
}

#[test]
fn a_receiver_says_nothing_of_a_few_bytes_of_room() {
    // section 6.2: the silly window syndrome is avoided (RFC 1122 section 4.2.3.3)
    let mut net = closed(Config::default());
    let id = net.ids[B].expect("association");
    net.log.clear();
    let held = 10_000 / 1000;
    for taken in 1..=held {
        let now = net.now;
        let association = net.ends[B].association_mut(id).expect("association");
        assert!(association.recv().is_some());
        let update = net.ends[B].poll_transmit(now);
        let window = match update.map(|t| t.packet.payload) {
            Some(segue_wire::Payload::Sctp(sctp)) => match &sctp.chunks[0] {
                Chunk::Sack(sack) => sack.a_rwnd,
                other => panic!("{other:?}"),
            },
            _ => 0,
        };
        // two segments, or half the buffer
        assert!(window == 0 || window >= 3000, "{window} after {taken} messages");
        if window > 0 {
            return;
        }
    }
    panic!("never told");
}

#[test]
fn a_probe_that_finds_room_is_taken() {
    // the update said nothing of the room for one message, and the probe uses it
    let mut net = closed(Config::default());
    let id = net.ids[B].expect("association");
    let association = net.ends[B].association_mut(id).expect("association");
    assert!(association.recv().is_some());
    net.drain();
    net.run_for(Duration::from_secs(61));
    let taken = net.association(B).counters().data_chunks_received;
    assert_eq!(taken, 10 + 1);
}

/// Packets with DATA that A sends are `late` if they are the first, `early` if they are the last of `packets`, and otherwise on
/// time.
fn first_last_and_last_first(net: &mut Net, packets: usize) {
    let mut seen = 0;
    net.rule = Box::new(move |d| {
        if d.from == A && d.data().next().is_some() {
            seen += 1;
            return vec![match seen {
                1 => ms(60),
                n if n == packets => ms(10),
                _ => ms(30),
            }];
        }
        vec![ms(10)]
    });
}

/// Every message has come, whole and in order, and both ends are up.
fn all_have_come(net: &mut Net, messages: u32, len: u32) {
    let ends = |host: usize| {
        let over = |e: &Event| matches!(e, Event::Aborted { .. } | Event::Lost | Event::Closed);
        net.events[host].iter().any(|(_, e)| over(e))
    };
    assert!(!ends(A) && !ends(B), "{:?}", net.events);
    assert_eq!(net.messages[B].len(), messages as usize);
    for (n, message) in (0_u64..).zip(&net.messages[B]) {
        let mut at = n * u64::from(len);
        for part in &message.parts {
            assert!(part.is_synthetic_at(at), "message {n}: {part:?}");
            at += part.len() as u64;
        }
        assert_eq!(at, (n + 1) * u64::from(len));
    }
    net.check_invariants();
}

#[test]
fn a_peer_of_very_small_messages_that_keeps_within_the_window_is_not_aborted() {
    let concurrent = |nr_sack| {
        let multipath = MultipathConfig {
            nr_sack,
            ..MultipathConfig::default()
        };
        Some(multipath)
    };
    for (receive_buffer, len, packets, multipath) in [
        (4096, 20, 6, None),
        (131_072, 20, 190, None),
        (131_072, 20, 190, concurrent(false)),
        (131_072, 20, 190, concurrent(true)),
        (131_072, 40, 190, None),
        (131_072, 1, 190, None),
        (131_072, 100, 95, None),
    ] {
        let config = Config {
            receive_buffer,
            initial_cwnd: Some(400),
            max_burst: None,
            multipath,
            ..Config::default()
        };
        let mut net = Net::established(config, [1, 1]);
        first_last_and_last_first(&mut net, packets);
        let messages = (receive_buffer / len).min(20_000);
        for n in 0..messages {
            net.send(A, 0, synthetic(u64::from(n * len), len));
        }
        net.run_for(Duration::from_secs(300));
        all_have_come(&mut net, messages, len);
    }
}

#[test]
fn a_long_message_in_very_small_fragments_that_fits_the_window_is_not_refused() {
    for partial_delivery_point in [Some(u32::MAX), None] {
        let config = Config {
            max_chunk_data: Some(20),
            partial_delivery_point,
            initial_cwnd: Some(400),
            max_burst: None,
            ..Config::default()
        };
        let mut net = Net::established(config, [1, 1]);
        net.send(A, 0, synthetic(0, 100_000));
        net.run_for(Duration::from_secs(300));
        let came: usize = net.messages[B]
            .iter()
            .flat_map(|m| &m.parts)
            .map(segue_wire::Data::len)
            .sum();
        assert_eq!(came, 100_000, "{partial_delivery_point:?}: {:?}", net.events);
        let whole = net.messages[B].len() == 1;
        assert_eq!(whole, partial_delivery_point.is_some());
    }
}
