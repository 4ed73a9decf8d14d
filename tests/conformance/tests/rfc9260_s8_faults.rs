//! RFC 9260 section 8: failures of peers and paths, packets out of the blue, and verification tags.

use segue_conformance::expect;
use segue_conformance::script::chunks::{abort, data, sack};
use segue_conformance::script::{Script, ms, ours, peer, quiet};
use segue_proto::sctp::{Config, Event, PathState};
use segue_proto::{Duration, Instant};
use segue_wire::sctp::{Chunk, ErrorCause, Parameter};

/// An association with a peer of two confirmed addresses.
fn two_paths(config: Config) -> Script {
    let mut t = Script::established_with(config, 1, vec![Parameter::Ipv6Address(peer(2))]);
    let info = expect!(t, Chunk::Heartbeat(info) => info.clone());
    t.send_from(peer(2), [Chunk::HeartbeatAck(info)]);
    t.events.clear();
    t
}

fn state_of(t: &Script, n: u16) -> Option<PathState> {
    t.association()
        .paths()
        .find(|p| p.destination == peer(n))
        .map(|p| p.state)
}

#[test]
fn s8_1_the_peer_is_unreachable_when_errors_pass_association_max_retrans() {
    let mut t = Script::established(Config {
        association_max_retrans: 4,
        ..quiet()
    });
    t.user_sends(10);
    t.wait(ms(120_000));
    t.expect_event(&Event::Lost);
    // the first transmission and one more for each error that is forgiven, and an ABORT for a peer that hears after all
    let mut sent = t.take_all();
    let last = sent.pop().map(|p| p.chunks);
    assert_eq!(last, Some(vec![abort(false)]));
    assert_eq!(sent.len(), 5);
}

#[test]
fn s8_1_an_acknowledgement_clears_the_count() {
    let mut t = Script::established(Config {
        association_max_retrans: 4,
        ..quiet()
    });
    // two errors each time: six would be too many
    for n in 0..3 {
        t.user_sends(10);
        for _ in 0..3 {
            expect!(t, Chunk::Data(_));
        }
        t.send([sack(t.our_tsn.add(n))]);
    }
    assert_eq!(t.association().counters().t3_expiries, 6);
    assert!(t.association().is_established());
}

#[test]
fn s8_2_an_address_is_inactive_when_its_errors_pass_path_max_retrans() {
    let mut t = two_paths(Config {
        path_max_retrans: 2,
        ..quiet()
    });
    t.user_sends(10);
    // retransmissions alternate: errors of the first address at 1 s and later
    while state_of(&t, 1) == Some(PathState::Active) {
        expect!(t, Chunk::Data(_));
        if t.last.as_ref().map(|p| p.destination) == Some(peer(2)) {
            t.send_from(
                peer(2),
                [sack(
                    t.our_tsn.add(t.association().counters().t3_expiries as u32 - 1),
                )],
            );
            t.user_sends(10);
        }
    }
    t.expect_event(&Event::PathStateChanged {
        address: peer(1),
        state: PathState::Inactive,
    });
    assert_eq!(t.association().counters().t3_expiries, 3);
    // section 6.4: new data goes to the other address
    t.forget();
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(2)));
}

#[test]
fn s8_3_an_idle_address_gets_a_heartbeat_every_rto_and_interval_give_or_take_half_an_rto() {
    let mut t = Script::established(Config {
        hb_interval: Some(Duration::from_secs(10)),
        ..quiet()
    });
    let mut last = Instant::ZERO;
    for _ in 0..10 {
        let info = expect!(t, Chunk::Heartbeat(info) => info.clone());
        let since = t.now.since(last);
        assert!(since >= ms(10_500) && since <= ms(11_500), "{since:?}");
        last = t.now;
        t.send([Chunk::HeartbeatAck(info)]);
    }
}

#[test]
fn s8_3_a_heartbeat_that_is_not_answered_within_an_rto_is_an_error_and_one_that_is_clears_them() {
    let mut t = Script::established(Config {
        hb_interval: Some(Duration::from_secs(10)),
        ..quiet()
    });
    let errors = |t: &Script| t.association().paths().next().expect("path").error_count;
    expect!(t, Chunk::Heartbeat(_));
    t.wait(ms(1000));
    assert_eq!(errors(&t), 1);
    let info = expect!(t, Chunk::Heartbeat(info) => info.clone());
    t.send([Chunk::HeartbeatAck(info)]);
    assert_eq!(errors(&t), 0);
}

#[test]
fn s8_4_packets_out_of_the_blue_are_answered_by_rule() {
    let cases = [
        // rules 2, 6 and 7: nothing
        (vec![abort(false)], None),
        (vec![abort(true)], None),
        (vec![Chunk::ShutdownComplete { reflected_tag: false }], None),
        (vec![Chunk::CookieAck], None),
        (vec![Chunk::Error(vec![ErrorCause::StaleCookie(1)])], None),
        (vec![data(0), abort(false)], None),
        // rule 5
        (
            vec![Chunk::ShutdownAck],
            Some(Chunk::ShutdownComplete { reflected_tag: true }),
        ),
        // rule 8
        (vec![data(0)], Some(abort(true))),
        (vec![Chunk::Heartbeat("x".into())], Some(abort(true))),
        (vec![sack(segue_wire::Tsn(5))], Some(abort(true))),
    ];
    for (chunks, answer) in cases {
        let mut t = Script::listening(quiet());
        t.send_with_tag(0x1234_5678, chunks);
        match answer {
            None => t.silence(ms(1000)),
            Some(chunk) => {
                expect!(t, answered if *answered == chunk);
                let last = t.last.clone().expect("packet");
                assert_eq!(
                    (last.tag, last.source, last.destination),
                    (0x1234_5678, ours(1), peer(1))
                );
            }
        }
        assert_eq!(t.end.counters().out_of_the_blue, 1);
    }
}

#[test]
fn s8_4_rule_1_what_does_not_come_from_one_host_is_discarded() {
    let mut t = Script::listening(quiet());
    for from in ["ff02::1", "::"] {
        let sctp = segue_wire::sctp::SctpPacket {
            source_port: 5000,
            destination_port: 5000,
            verification_tag: 1,
            chunks: [data(0)].into_iter().collect(),
        };
        t.send_sctp(from.parse().expect("address"), ours(1), sctp);
    }
    t.silence(ms(1000));
    assert_eq!(t.end.counters().refused.not_unicast, 2);
}

#[test]
fn s8_5_a_packet_with_a_wrong_tag_is_discarded() {
    let mut t = Script::established(quiet());
    for tag in [
        0,
        t.our_tag ^ 1,
        t.our_tag.wrapping_add(1),
        segue_conformance::script::peer_tag(),
    ] {
        t.send_with_tag(tag, [data(0)]);
    }
    t.silence(ms(1000));
    assert!(t.messages.is_empty());
    assert_eq!(t.association().counters().refused.bad_tag, 4);
}

#[test]
fn s8_5_1_a_an_init_with_a_tag_is_discarded() {
    let mut t = Script::listening(quiet());
    let init = segue_conformance::script::chunks::init();
    t.send_with_tag(1, [Chunk::Init(Box::new(init))]);
    t.silence(ms(1000));
    assert_eq!(t.end.counters().refused.bad_init_tag, 1);
}

#[test]
fn s8_5_1_b_an_abort_is_taken_with_our_tag_or_with_the_t_bit_and_the_peers() {
    let peers = segue_conformance::script::peer_tag();
    for (ours_is_used, reflected, ends) in [
        (true, false, true),
        (false, true, true),
        (true, true, false),
        (false, false, false),
    ] {
        let mut t = Script::established(quiet());
        let tag = if ours_is_used { t.our_tag } else { peers };
        t.send_with_tag(tag, [abort(reflected)]);
        assert_eq!(!t.is_alive(), ends, "our tag {ours_is_used}, T bit {reflected}");
    }
}

#[test]
fn s8_5_1_c_shutdown_complete_likewise() {
    let peers = segue_conformance::script::peer_tag();
    for (ours_is_used, reflected, ends) in [
        (true, false, true),
        (false, true, true),
        (true, true, false),
        (false, false, false),
    ] {
        let mut t = Script::established(quiet());
        let cumulative_tsn_ack = t.our_tsn.previous();
        t.send([Chunk::Shutdown { cumulative_tsn_ack }]);
        expect!(t, Chunk::ShutdownAck);
        let tag = if ours_is_used { t.our_tag } else { peers };
        t.send_with_tag(
            tag,
            [Chunk::ShutdownComplete {
                reflected_tag: reflected,
            }],
        );
        assert_eq!(!t.is_alive(), ends, "our tag {ours_is_used}, T bit {reflected}");
    }
}

#[test]
fn s8_5_1_e_a_shutdown_ack_in_the_handshake_is_out_of_the_blue() {
    let mut t = Script::connecting(quiet());
    expect!(t, Chunk::Init(_));
    t.send_with_tag(99, [Chunk::ShutdownAck]);
    expect!(t, Chunk::ShutdownComplete { reflected_tag: true });
    assert_eq!(t.last.as_ref().map(|p| p.tag), Some(99));
    assert!(t.is_alive());
}
