//! The I bit (RFC 7053): who sets it, and what it does.

use crate::common::*;
use segue_proto::sctp::{Config, SackImmediately, SendOptions};
use segue_wire::sctp::Chunk;

fn config(sack_immediately: SackImmediately) -> Config {
    Config {
        sack_immediately,
        ..Config::default()
    }
}

/// The I bits of all DATA that `host` sent.
fn i_bits(net: &Net, host: usize) -> Vec<bool> {
    net.log
        .iter()
        .filter(|d| d.from == host)
        .flat_map(|d| d.data().map(|c| c.immediate))
        .collect()
}

/// When the first SACK of `host` left.
fn first_sack(net: &Net, host: usize) -> segue_proto::Instant {
    net.log
        .iter()
        .find(|d| d.from == host && d.sctp().chunks.iter().any(|c| matches!(c, Chunk::Sack(_))))
        .map(|d| d.at)
        .expect("a SACK")
}

#[test]
fn the_last_chunk_of_a_message_asks_for_its_sack_if_the_user_does() {
    for (mode, asks) in [
        (SackImmediately::Never, false),
        (SackImmediately::OnRequest, true),
        (SackImmediately::WhenBlocked, true),
    ] {
        let mut net = Net::established(config(mode), [1, 1]);
        let options = SendOptions {
            sack_immediately: true,
            ..SendOptions::default()
        };
        let start = net.now;
        net.command(A, |a, now| a.send(now, 0, synthetic(0, 2000), options))
            .unwrap();
        net.run_for(ms(10));
        assert_eq!(i_bits(&net, A), [false, asks], "{mode:?}");
        // two packets are acknowledged at once whatever the bit says, one is not
        net.run_for(ms(500));
        net.log.clear();
        let start = start.max(net.now);
        net.command(A, |a, now| a.send(now, 0, synthetic(0, 20), options))
            .unwrap();
        net.run_for(ms(500));
        let delay = first_sack(&net, B).since(start);
        assert_eq!(delay, if asks { ms(10) } else { ms(210) }, "{mode:?}");
    }
}

#[test]
fn a_retransmission_keeps_the_bit() {
    let mut net = Net::established(Config::default(), [1, 1]);
    let mut lost = false;
    net.rule = Box::new(move |d| {
        if d.from == A && d.data().next().is_some() && !lost {
            lost = true;
            return Vec::new();
        }
        vec![ms(10)]
    });
    let options = SendOptions {
        sack_immediately: true,
        ..SendOptions::default()
    };
    net.command(A, |a, now| a.send(now, 0, synthetic(0, 20), options))
        .unwrap();
    net.run_for(ms(3000));
    assert_eq!(i_bits(&net, A), [true, true]);
}

#[test]
fn a_chunk_that_fills_cwnd_while_more_waits_asks_for_its_sack_where_configured() {
    for (mode, expected) in [
        (SackImmediately::OnRequest, vec![false; 4]),
        (SackImmediately::WhenBlocked, vec![false, false, false, true]),
    ] {
        let mut net = Net::established(config(mode), [1, 1]);
        // one message, so that everything waits when the first chunk goes: initial cwnd is four chunks' worth
        net.send(A, 0, synthetic(0, 6 * 1432));
        assert_eq!(i_bits(&net, A), expected, "{mode:?}");
    }
}

#[test]
fn the_last_chunk_that_fills_cwnd_does_not_ask_as_nothing_waits_for_the_answer() {
    let mut net = Net::established(config(SackImmediately::WhenBlocked), [1, 1]);
    net.command(A, |a, now| {
        a.send(now, 0, synthetic(0, 4 * 1432), SendOptions::default())
    })
    .unwrap();
    assert_eq!(i_bits(&net, A), [false; 4]);
}

#[test]
fn a_window_probe_asks_for_its_sack_and_so_do_its_retransmissions() {
    let small = Config {
        receive_buffer: 3000,
        ..config(SackImmediately::WhenBlocked)
    };
    let mut net = Net::established(small, [1, 1]);
    net.reading[B] = false;
    for i in 0..4 {
        net.send(A, 0, synthetic(i * 1400, 1400));
    }
    net.run_for(ms(100));
    net.log.clear();
    net.run_for(ms(8000));
    let probes = i_bits(&net, A);
    assert!(probes.len() >= 2, "{probes:?}");
    assert!(probes.iter().all(|&i| i), "{probes:?}");
}
