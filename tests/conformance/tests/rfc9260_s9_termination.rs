//! RFC 9260 section 9: how associations end.

use segue_conformance::expect;
use segue_conformance::script::chunks::{PEER_TAG, abort, data, data_of, init, peer_tsn, sack};
use segue_conformance::script::{Script, ms, ours, peer, quiet};
use segue_proto::sctp::{Config, Event, SendError, SendOptions};
use segue_wire::Data;
use segue_wire::sctp::{Chunk, ErrorCause};

/// The endpoint's user has closed, and its SHUTDOWN is out.
fn shutdown_sent() -> Script {
    let mut t = Script::established(quiet());
    t.command(|a, now| a.shutdown(now));
    expect!(t, Chunk::Shutdown { .. });
    t
}

/// The peer has closed, and the endpoint's SHUTDOWN ACK is out.
fn shutdown_ack_sent() -> Script {
    let mut t = Script::established(quiet());
    let cumulative_tsn_ack = t.our_tsn.previous();
    t.send([Chunk::Shutdown { cumulative_tsn_ack }]);
    expect!(t, Chunk::ShutdownAck);
    t
}

#[test]
fn s9_1_an_abort_carries_the_peers_tag_and_the_reason_and_ends_everything() {
    let mut t = Script::established(quiet());
    t.user_sends(100);
    t.forget();
    t.command(|a, now| a.abort(now, "enough".into()));
    let causes = expect!(t, Chunk::Abort { reflected_tag: false, causes } => causes.clone());
    assert_eq!(causes, [ErrorCause::UserInitiatedAbort("enough".into())]);
    assert_eq!(t.last.as_ref().map(|p| p.tag), Some(PEER_TAG));
    t.silence(ms(60_000));
}

#[test]
fn s9_1_an_abort_is_not_answered() {
    let mut t = Script::established(quiet());
    t.user_sends(100);
    t.forget();
    t.send([abort(false)]);
    t.silence(ms(60_000));
    t.expect_event(&Event::Aborted { causes: vec![] });
}

#[test]
fn s9_2_shutdown_waits_until_everything_is_acknowledged_and_takes_no_new_data() {
    let mut t = Script::established(quiet());
    t.user_sends(100);
    expect!(t, Chunk::Data(_));
    t.command(|a, now| a.shutdown(now));
    let refused = t.command(|a, now| a.send(now, 0, Data::Bytes("x".into()), SendOptions::default()));
    assert_eq!(refused, Err(SendError::Closing));
    // not acknowledged: it is sent again, and no SHUTDOWN yet
    expect!(t, Chunk::Data(_));
    t.send([sack(t.our_tsn)]);
    expect!(t, Chunk::Shutdown { cumulative_tsn_ack } if *cumulative_tsn_ack == peer_tsn(0).previous());
}

#[test]
fn s9_2_t2_repeats_the_shutdown_with_the_rto_doubling_and_says_what_has_come_meanwhile() {
    let mut t = shutdown_sent();
    let first = t.now;
    for seconds in [1, 3, 7] {
        expect!(t, Chunk::Shutdown { .. });
        assert_eq!(t.last.as_ref().map(|p| p.at), Some(first + ms(1000 * seconds)));
    }
    t.send([data(0)]);
    expect!(t, Chunk::Shutdown { cumulative_tsn_ack } if *cumulative_tsn_ack == peer_tsn(0));
    expect!(t, Chunk::Shutdown { cumulative_tsn_ack } if *cumulative_tsn_ack == peer_tsn(0));
    assert_eq!(t.last.as_ref().map(|p| p.at), Some(first + ms(1000 * (7 + 8))));
}

#[test]
fn s9_2_data_received_after_the_shutdown_is_acknowledged_at_once_by_a_shutdown_and_t2_begins_anew() {
    let mut t = shutdown_sent();
    t.wait(ms(600));
    t.send([data(0)]);
    expect!(t, Chunk::Shutdown { cumulative_tsn_ack } if *cumulative_tsn_ack == peer_tsn(0));
    assert_eq!(t.messages.len(), 1);
    t.silence(ms(999));
    expect!(t, Chunk::Shutdown { .. });
}

#[test]
fn s9_2_the_receiver_of_a_shutdown_sends_what_it_has_before_shutdown_ack() {
    let mut t = Script::established(quiet());
    t.user_sends(100);
    expect!(t, Chunk::Data(_));
    let cumulative_tsn_ack = t.our_tsn.previous();
    t.send([Chunk::Shutdown { cumulative_tsn_ack }]);
    // unacknowledged data is retransmitted, new data refused
    let refused = t.command(|a, now| a.send(now, 0, Data::Bytes("x".into()), SendOptions::default()));
    assert_eq!(refused, Err(SendError::Closing));
    expect!(t, Chunk::Data(chunk) if chunk.tsn == t.our_tsn);
    t.send([Chunk::Shutdown {
        cumulative_tsn_ack: t.our_tsn,
    }]);
    expect!(t, Chunk::ShutdownAck);
}

#[test]
fn s9_2_data_is_discarded_once_a_shutdown_was_received() {
    let mut t = shutdown_ack_sent();
    t.send([data(0)]);
    assert!(t.messages.is_empty());
    assert!(t.association().counters().refused.unexpected >= 1);
}

#[test]
fn s9_2_shutdown_ack_is_repeated_until_shutdown_complete() {
    let mut t = shutdown_ack_sent();
    expect!(t, Chunk::ShutdownAck);
    expect!(t, Chunk::ShutdownAck);
    t.send([Chunk::ShutdownComplete { reflected_tag: false }]);
    t.expect_event(&Event::Closed);
    t.silence(ms(60_000));
}

#[test]
fn s9_2_shutdown_ack_is_answered_with_shutdown_complete_and_the_association_is_gone() {
    let mut t = shutdown_sent();
    t.send([Chunk::ShutdownAck]);
    expect!(t, Chunk::ShutdownComplete { reflected_tag: false });
    t.expect_event(&Event::Closed);
    // section 8.4 rule 5: its repetition finds nothing, and is answered all the same, with the tag reflected
    t.send([Chunk::ShutdownAck]);
    expect!(t, Chunk::ShutdownComplete { reflected_tag: true });
    assert_eq!(t.last.as_ref().map(|p| p.tag), Some(t.our_tag));
}

#[test]
fn s9_2_both_ends_may_shut_down_at_once() {
    let mut t = shutdown_sent();
    let cumulative_tsn_ack = t.our_tsn.previous();
    t.send([Chunk::Shutdown { cumulative_tsn_ack }]);
    expect!(t, Chunk::ShutdownAck);
    t.send([Chunk::ShutdownAck]);
    expect!(t, Chunk::ShutdownComplete { reflected_tag: false });
    t.expect_event(&Event::Closed);
}

#[test]
fn s9_2_a_shutdown_that_nobody_answers_ends_the_association() {
    let config = Config {
        association_max_retrans: 3,
        ..quiet()
    };
    let mut t = Script::established(config);
    t.command(|a, now| a.shutdown(now));
    t.wait(ms(120_000));
    t.expect_event(&Event::Lost);
    let mut shutdowns = t.take_all();
    assert_eq!(shutdowns.pop().map(|p| p.chunks), Some(vec![abort(false)]));
    assert_eq!(shutdowns.len(), 4, "the first and Association.Max.Retrans more");
}

#[test]
fn s9_2_the_guard_timer_is_that_of_the_sender_of_the_shutdown() {
    // five times RTO.Max is less than Association.Max.Retrans timeouts take
    let config = || Config {
        rto_initial: ms(100),
        rto_min: ms(100),
        rto_max: ms(800),
        ..quiet()
    };
    let count = |t: &mut Script, is: fn(&Chunk) -> bool| {
        t.wait(ms(60_000));
        t.take_all().iter().filter(|p| p.chunks.iter().any(is)).count()
    };
    let mut t = Script::established(config());
    let cumulative_tsn_ack = t.our_tsn.previous();
    t.send([Chunk::Shutdown { cumulative_tsn_ack }]);
    let shutdown_acks = count(&mut t, |c| matches!(c, Chunk::ShutdownAck));
    assert_eq!(shutdown_acks, 11, "the first and Association.Max.Retrans more");
    t.expect_event(&Event::Lost);
    let mut t = Script::established(config());
    t.command(|a, now| a.shutdown(now));
    let shutdowns = count(&mut t, |c| matches!(c, Chunk::Shutdown { .. }));
    assert!(
        shutdowns < 11,
        "T5-shutdown-guard has ended it before: {shutdowns}"
    );
}

#[test]
fn s8_3_heartbeats_end_with_the_first_shutdown_or_shutdown_ack() {
    let config = || Config {
        hb_interval: Some(ms(500)),
        ..Config::default()
    };
    let heartbeats = |mut t: Script| {
        t.wait(ms(30_000));
        let sent = t.take_all();
        assert!(sent.len() > 2, "T2-shutdown runs");
        let is_heartbeat = |c: &Chunk| matches!(c, Chunk::Heartbeat(_));
        sent.iter().filter(|p| p.chunks.iter().any(is_heartbeat)).count()
    };
    let mut t = Script::established(config());
    t.command(|a, now| a.shutdown(now));
    assert_eq!(heartbeats(t), 0, "SHUTDOWN-SENT");
    let mut t = Script::established(config());
    let cumulative_tsn_ack = t.our_tsn.previous();
    t.send([Chunk::Shutdown { cumulative_tsn_ack }]);
    assert_eq!(heartbeats(t), 0, "SHUTDOWN-ACK-SENT");
    assert!(heartbeats(Script::established(config())) > 0, "ESTABLISHED");
}

#[test]
fn s9_2_a_sack_goes_with_the_shutdown_only_if_it_says_more() {
    // a gap
    let mut t = shutdown_sent();
    t.send([data(1)]);
    expect!(t, Chunk::Sack(sack), Chunk::Shutdown { .. } if sack.gap_ack_blocks.len() == 1);
    // a duplicate
    let mut t = shutdown_sent();
    t.send([data(0)]);
    expect!(t, Chunk::Shutdown { .. });
    t.send([data(0)]);
    expect!(t, Chunk::Sack(sack), Chunk::Shutdown { .. } if sack.duplicate_tsns.len() == 1);
    // a window of which the peer knows of less than half
    let mut t = Script::established(Config {
        receive_buffer: 4000,
        ..quiet()
    });
    t.command(|a, now| a.shutdown(now));
    expect!(t, Chunk::Shutdown { .. });
    t.send([data_of(0, 1000)]);
    expect!(t, Chunk::Shutdown { .. });
    t.send([data_of(1, 1400)]);
    expect!(t, Chunk::Sack(sack), Chunk::Shutdown { .. } if sack.a_rwnd == 4000 - 1400);
    t.send([data_of(2, 500)]);
    expect!(t, Chunk::Shutdown { .. });
}

#[test]
fn s9_2_shutdown_complete_is_ignored_in_other_states() {
    let mut t = Script::established(quiet());
    t.send([Chunk::ShutdownComplete { reflected_tag: false }]);
    t.silence(ms(1000));
    assert!(t.association().is_established());
    assert_eq!(t.association().counters().refused.unexpected, 1);
    let mut t = shutdown_sent();
    t.send([Chunk::ShutdownComplete { reflected_tag: false }]);
    assert!(t.is_alive());
}

#[test]
fn s9_2_an_init_from_a_peer_that_missed_shutdown_complete_is_answered_with_shutdown_ack() {
    let mut t = shutdown_ack_sent();
    t.send_with_tag(0, [Chunk::Init(Box::new(init()))]);
    expect!(t, Chunk::ShutdownAck);
    assert_eq!(t.end.associations().count(), 1);
}

#[test]
fn s9_2_a_shutdown_that_acknowledges_what_was_never_sent_is_refused() {
    let mut t = Script::established(quiet());
    t.send([Chunk::Shutdown {
        cumulative_tsn_ack: t.our_tsn.add(5),
    }]);
    t.silence(ms(1000));
    assert!(t.association().is_established());
    assert_eq!(t.association().counters().refused.impossible_acks, 1);
}

#[test]
fn s6_4_shutdown_complete_goes_to_where_the_shutdown_ack_came_from() {
    let parameters = vec![segue_wire::sctp::Parameter::Ipv6Address(peer(2))];
    let mut t = Script::established_with(quiet(), 1, parameters);
    t.forget();
    t.command(|a, now| a.shutdown(now));
    expect!(t, Chunk::Shutdown { .. });
    t.send_from(peer(2), [Chunk::ShutdownAck]);
    expect!(t, Chunk::ShutdownComplete { .. });
    let last = t.last.as_ref().expect("packet");
    assert_eq!((last.source, last.destination), (ours(1), peer(2)));
}
