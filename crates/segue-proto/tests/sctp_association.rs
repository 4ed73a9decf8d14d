//! Setting up, exchanging data and tearing down, as packet traces.

use crate::common::*;
use segue_proto::sctp::{Config, Event, Profile, SendError, SendOptions};
use segue_wire::Data;
use segue_wire::sctp::{Chunk, ErrorCause};

#[test]
fn four_way_handshake_data_and_shutdown() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    net.connect();
    net.run_for(ms(100));
    assert_eq!(
        net.trace(),
        ["A INIT", "B INIT-ACK", "A COOKIE-ECHO", "B COOKIE-ACK"]
    );
    assert!(net.has_event(A, &Event::Connected) && net.has_event(B, &Event::Connected));
    net.log.clear();
    net.send(A, 3, Data::Bytes("hello".into()));
    net.run_for(ms(300));
    net.send(A, 3, Data::Bytes("again".into()));
    net.run_for(ms(300));
    assert_eq!(net.trace(), ["A DATA", "B SACK", "A DATA", "B SACK"]);
    let [first, second] = [0, 2].map(|i| net.log[i + 1].at - net.log[i].at);
    assert_eq!(first, ms(10), "the first DATA is acknowledged at once");
    assert_eq!(second, ms(210), "any other SACK is delayed by 200 ms");
    assert_eq!(net.messages[B][0].stream_id, 3);
    assert_eq!(net.messages[B][0].parts[..], [Data::Bytes("hello".into())]);
    assert!(net.has_event(A, &Event::SendersDry));
    net.log.clear();
    net.command(A, |a, now| a.shutdown(now));
    net.run_for(ms(100));
    assert_eq!(
        net.trace(),
        ["A SHUTDOWN", "B SHUTDOWN-ACK", "A SHUTDOWN-COMPLETE"]
    );
    assert!(net.has_event(A, &Event::Closed) && net.has_event(B, &Event::Closed));
    assert_eq!(net.command_after_close(), None);
}

impl Net {
    fn command_after_close(&mut self) -> Option<()> {
        let now = self.now;
        self.ends[A].handle_timeout(now);
        self.ends[A].association(self.ids[A]?).map(|_| ())
    }
}

#[test]
fn the_first_packets_are_acknowledged_one_by_one_as_configured() {
    // RFC 9260 section 5.1: one, at least; but none by ns-2's agent
    for (quick_sacks, expected) in [(0, [210, 210]), (1, [10, 210]), (2, [10, 10])] {
        let config = Config {
            quick_sacks,
            ..Config::default()
        };
        let mut net = Net::established(config, [1, 1]);
        let delays = [0, 1].map(|i| {
            net.log.clear();
            net.send(A, 0, synthetic(i * 100, 100));
            net.run_for(ms(400));
            assert_eq!(net.trace(), ["A DATA", "B SACK"]);
            net.log[1].at - net.log[0].at
        });
        assert_eq!(delays, expected.map(ms), "{quick_sacks}");
    }
}

#[test]
fn every_second_packet_is_acknowledged_at_once() {
    // RFC 9260 section 6.2
    let mut net = Net::established(Config::default(), [1, 1]);
    let chunk = net.association(A).max_message_in_one_chunk();
    assert_eq!(chunk, 1500 - 40 - 12 - 16);
    for i in 0..3 {
        net.send(A, 0, synthetic(u64::from(i * chunk), chunk));
    }
    net.run_for(ms(100));
    // the first has a SACK of its own (section 5.1)
    assert_eq!(net.trace(), ["A DATA", "A DATA", "A DATA", "B SACK", "B SACK"]);
}

fn count(net: &Net, line: &str) -> usize {
    net.trace().iter().filter(|t| *t == line).count()
}

#[test]
fn init_is_retransmitted_with_doubling_until_max_init_retransmits() {
    // RFC 9260 section 5.1 (T1-init) and 6.3.3
    let config = Config {
        max_init_retransmits: 3,
        ..Config::default()
    };
    let mut net = Net::symmetric(config, [1, 1], 1);
    net.rule = Box::new(|_| vec![]);
    net.connect();
    net.run_until(at(100.0));
    let times: Vec<_> = net.log.iter().map(|d| d.at.as_secs_f64()).collect();
    assert_eq!(times, [0.0, 1.0, 3.0, 7.0]);
    assert_eq!(net.events[A], [(at(15.0), Event::Lost)]);
}

#[test]
fn duplicate_cookie_echo_is_answered_and_changes_nothing() {
    // RFC 9260 section 5.2.4, row D
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    net.rule = Box::new(|d| {
        if names(d.sctp()) == ["COOKIE-ECHO"] {
            vec![ms(10), ms(50)]
        } else {
            vec![ms(10)]
        }
    });
    net.connect();
    net.run_until(at(0.2));
    assert_eq!(count(&net, "B COOKIE-ACK"), 2);
    assert_eq!(
        net.events[B].iter().filter(|e| e.1 == Event::Connected).count(),
        1
    );
    net.send(A, 0, synthetic(0, 10));
    net.run_until(at(1.0));
    assert_eq!(net.messages[B].len(), 1);
}

#[test]
fn stale_cookie_is_reported_and_a_fresh_one_with_a_longer_life_is_asked_for() {
    // RFC 9260 section 5.2.6
    let config = Config {
        valid_cookie_life: ms(50),
        ..Config::default()
    };
    let mut net = Net::symmetric(config, [1, 1], 1);
    let mut first = true;
    net.rule = Box::new(move |d| {
        let late = names(d.sctp()) == ["COOKIE-ECHO"] && core::mem::take(&mut first);
        vec![if late { ms(90) } else { ms(10) }]
    });
    net.connect();
    net.run_until(at(0.9));
    assert_eq!(
        net.trace(),
        [
            "A INIT",
            "B INIT-ACK",
            "A COOKIE-ECHO",
            "B ERROR",
            "A INIT",
            "B INIT-ACK",
            "A COOKIE-ECHO",
            "B COOKIE-ACK"
        ]
    );
    // the cookie was made at 10 ms, came back at 110 ms and lived 50 ms
    assert_eq!(
        net.log[3].sctp().chunks[0],
        Chunk::Error(vec![ErrorCause::StaleCookie(50_000)])
    );
    assert!(net.association(A).is_established());
}

#[test]
fn a_forged_cookie_makes_no_association() {
    let mut net = Net::established(Config::default(), [1, 1]);
    let packet = net.forge(B, address(A, 7), [Chunk::CookieEcho(vec![0; 200].into())]);
    let refused = net.ends[B].counters().refused.forged_cookies;
    net.inject(B, packet);
    assert_eq!(net.ends[B].counters().refused.forged_cookies, refused + 1);
    assert_eq!(net.ends[B].associations().count(), 1);
}

#[test]
fn both_ends_may_open_at_once() {
    // RFC 9260 section 5.2.1 and 5.2.4, row B
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    let now = net.now;
    net.ids[B] = net.ends[B].connect(now, &[address(A, 1)], PORT);
    net.connect();
    net.run_until(at(3.0));
    assert!(net.association(A).is_established() && net.association(B).is_established());
    net.send(A, 0, synthetic(0, 10));
    net.send(B, 0, synthetic(0, 10));
    net.run_until(at(4.0));
    assert_eq!((net.messages[A].len(), net.messages[B].len()), (1, 1));
    assert_eq!(
        net.ends[A].associations().count() + net.ends[B].associations().count(),
        2
    );
}

#[test]
fn out_of_the_blue_packets_are_answered_by_rule() {
    // RFC 9260 section 8.4
    let mut net = Net::established(Config::default(), [1, 1]);
    let stranger = address(A, 9);
    let cases = [
        (vec![Chunk::CookieAck], None),
        (
            vec![Chunk::Abort {
                reflected_tag: false,
                causes: vec![],
            }],
            None,
        ),
        (vec![Chunk::ShutdownComplete { reflected_tag: false }], None),
        (vec![Chunk::Error(vec![ErrorCause::StaleCookie(1)])], None),
        (
            vec![Chunk::ShutdownAck],
            Some(Chunk::ShutdownComplete { reflected_tag: true }),
        ),
        (
            vec![Chunk::Heartbeat("x".into())],
            Some(Chunk::Abort {
                reflected_tag: true,
                causes: vec![],
            }),
        ),
    ];
    for (chunks, answer) in cases {
        // of no association here: one that is known by its tag is not out of the blue
        let tag = 0x0bad_0bad;
        let packet = net.forge_with_tag(B, stranger, tag, chunks);
        net.log.clear();
        net.inject(B, packet);
        match answer {
            None => assert!(net.log.is_empty()),
            Some(chunk) => {
                assert_eq!(net.log[0].sctp().chunks[..], [chunk]);
                assert_eq!(
                    (
                        net.log[0].sctp().verification_tag,
                        net.log[0].packet.ip.destination
                    ),
                    (tag, stranger)
                );
            }
        }
        net.send(A, 0, synthetic(0, 4));
    }
    assert_eq!(net.ends[B].counters().out_of_the_blue, 6);
}

#[test]
fn init_to_an_endpoint_that_does_not_listen_is_aborted() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    net.ids[B] = net.ends[B].connect(at(0.0), &[address(A, 1)], PORT);
    net.drain();
    net.run_until(at(0.1));
    assert_eq!(net.trace(), ["B INIT", "A ABORT"]);
    assert!(matches!(net.events[B][0].1, Event::Aborted { .. }));
}

#[test]
fn wrong_verification_tags_are_refused() {
    // RFC 9260 section 8.5
    let mut net = Net::established(Config::default(), [1, 1]);
    for chunk in [
        Chunk::Abort {
            reflected_tag: false,
            causes: vec![],
        },
        Chunk::Abort {
            reflected_tag: true,
            causes: vec![],
        },
        Chunk::ShutdownAck,
        Chunk::CookieAck,
    ] {
        let mut packet = net.forge(B, address(A, 1), [chunk]);
        if let segue_wire::Payload::Sctp(sctp) = &mut packet.payload {
            sctp.verification_tag ^= 0x5555;
        }
        net.inject(B, packet);
    }
    assert!(net.association(B).is_established());
    assert_eq!(net.association(B).counters().refused.bad_tag, 4);
}

#[test]
fn abort_tells_the_peer_why() {
    let mut net = Net::established(Config::default(), [1, 1]);
    net.command(A, |a, now| a.abort(now, "enough".into()));
    net.run_for(ms(50));
    let causes = vec![ErrorCause::UserInitiatedAbort("enough".into())];
    assert!(net.has_event(
        A,
        &Event::Aborted {
            causes: causes.clone()
        }
    ));
    assert!(net.has_event(B, &Event::Aborted { causes }));
}

#[test]
fn shutdown_waits_for_outstanding_data_in_both_directions_and_survives_loss() {
    for seed in 0..50 {
        let mut net = Net::established(Config::default(), [1, 1]);
        let mut random = segue_proto::random::Stream::new(seed, "loss");
        net.rule = Box::new(move |_| if random.chance(0.2) { vec![] } else { vec![ms(10)] });
        for i in 0..20 {
            net.send(A, 0, synthetic(i, 1000));
            net.send(B, 0, synthetic(i, 1000));
        }
        net.command(A, |a, now| a.shutdown(now));
        assert_eq!(
            net.command(A, |a, now| a.send(
                now,
                0,
                synthetic(0, 1),
                SendOptions::default()
            )),
            Err(SendError::Closing)
        );
        net.run_for(segue_proto::Duration::from_secs(900));
        assert_eq!(
            (net.messages[A].len(), net.messages[B].len()),
            (20, 20),
            "seed {seed}"
        );
        assert!(
            net.has_event(A, &Event::Closed) && net.has_event(B, &Event::Closed),
            "seed {seed}"
        );
    }
}

/// The transmissions of the first TSN of eight, lost once, and whether T3 had to help.
fn lose_the_first_of_eight(profile: Profile) -> (u32, Net) {
    let config = Config {
        max_burst: None,
        sack_frequency: 1,
        ..Config::new(profile)
    };
    let mut net = Net::established(config, [1, 1]);
    // open the window: 20 chunks, all acknowledged
    for i in 0..20 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(segue_proto::Duration::from_secs(1));
    net.log.clear();
    let mut lost = false;
    net.rule = Box::new(move |d| {
        if d.from == A && d.data().next().is_some() && !core::mem::replace(&mut lost, true) {
            return vec![];
        }
        vec![ms(10)]
    });
    for i in 0..8 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(ms(500));
    let first = net.log[0].data().next().unwrap().tsn;
    let second = net.transmissions_of(A, first)[1].0;
    let sacks_before = net
        .log
        .iter()
        .filter(|d| d.from == B && d.at + ms(10) <= second)
        .count() as u32;
    (sacks_before, net)
}

#[test]
fn fast_retransmit_after_three_missing_reports_and_in_rfc2960_after_four() {
    // RFC 9260 section 7.2.4. All eight leave at once, so the SACKs arrive at one instant: the counters tell.
    for profile in [Profile::Rfc2960, Profile::Rfc4960, Profile::Rfc9260] {
        let (sacks, net) = lose_the_first_of_eight(profile);
        let counters = net.association(A).counters();
        assert_eq!(
            (counters.fast_retransmits, counters.t3_expiries),
            (1, 0),
            "{profile:?}"
        );
        assert!(sacks >= 3);
        assert_eq!(net.messages[B].len(), 28);
    }
    for (profile, reports) in [
        (Profile::Rfc2960, 4),
        (Profile::Rfc4960, 3),
        (Profile::Rfc9260, 3),
    ] {
        let config = Config {
            max_burst: None,
            sack_frequency: 1,
            ..Config::new(profile)
        };
        let mut net = Net::established(config, [1, 1]);
        net.rule = Box::new(|_| vec![]);
        for i in 0..3 {
            net.send(A, 0, synthetic(i * 1000, 1000));
        }
        let first = net.log[0].data().next().unwrap().tsn;
        // reports of one more TSN each would need more in flight: the same SACK counts in RFC 2960, and since HTNA only
        // one that acknowledges something new
        let mut needed = 0;
        for end in [2, 2, 3, 3, 3, 3] {
            needed += 1;
            let sack = segue_wire::sctp::Sack {
                cumulative_tsn_ack: first.previous(),
                a_rwnd: 100_000,
                gap_ack_blocks: smallvec::smallvec![segue_wire::sctp::GapAckBlock { start: 2, end }],
                duplicate_tsns: Box::default(),
                data_packets: 0,
            };
            let packet = net.forge(A, address(B, 1), [Chunk::Sack(sack)]);
            net.inject(A, packet);
            if net.transmissions_of(A, first).len() == 2 {
                break;
            }
        }
        let retransmitted = net.transmissions_of(A, first).len() == 2;
        if reports == 4 {
            assert!(retransmitted && needed == 4, "{profile:?}: {needed}");
        } else {
            assert!(
                !retransmitted,
                "{profile:?}: only two SACKs acknowledged something new"
            );
        }
    }
}

#[test]
fn fast_recovery_cuts_the_window_once_per_episode_and_rfc2960_does_not_know_it() {
    let cwnd_after_two_losses = |profile| {
        let config = Config {
            max_burst: None,
            sack_frequency: 1,
            ..Config::new(profile)
        };
        let mut net = Net::established(config, [1, 1]);
        for i in 0..60 {
            net.send(A, 0, synthetic(i * 1000, 1000));
        }
        net.run_for(segue_proto::Duration::from_secs(2));
        let mut n = 0;
        net.rule = Box::new(move |d| {
            if d.from == A && d.data().next().is_some() {
                n += 1;
                if n == 1 || n == 6 {
                    return vec![];
                }
            }
            vec![ms(10)]
        });
        for i in 0..14 {
            net.send(A, 0, synthetic(i * 1000, 1000));
        }
        // after what being idle has done to it
        let before = net.association(A).paths().next().unwrap().cwnd;
        assert!(before > 14 * 1016);
        net.run_for(ms(15));
        net.run_for(ms(10));
        assert_eq!(net.association(A).counters().t3_expiries, 0);
        (before, net.association(A).paths().next().unwrap().ssthresh)
    };
    let (before, after) = cwnd_after_two_losses(Profile::Rfc4960);
    assert_eq!(after, before / 2);
    let (before, after) = cwnd_after_two_losses(Profile::Rfc2960);
    assert_eq!(after, before / 4);
}

#[test]
fn a_closed_window_is_probed_and_reopens_when_the_reader_reads() {
    // RFC 9260 section 6.1 rule A, 6.2
    let config = Config {
        receive_buffer: 8000,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.reading[B] = false;
    for i in 0..20 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(segue_proto::Duration::from_secs(30));
    assert!(net.association(B).a_rwnd() < 1000);
    let held = net.association(A).send_space();
    let probes = net.association(A).counters().t3_expiries;
    assert!(probes >= 2, "the window is probed");
    net.run_for(segue_proto::Duration::from_secs(600));
    assert!(
        net.association(A).is_established(),
        "probes that are answered are no errors"
    );
    assert_eq!(net.association(A).paths().next().unwrap().error_count, 0);
    assert_eq!(net.association(A).send_space(), held);
    net.log.clear();
    net.reading[B] = true;
    net.drain();
    assert_eq!(net.trace(), ["B SACK"], "the window update");
    net.run_for(segue_proto::Duration::from_secs(70));
    assert_eq!(net.messages[B].len(), 20);
}

#[test]
fn small_messages_are_bundled_when_they_wait() {
    // RFC 9260 section 6.10
    let mut net = Net::established(Config::default(), [1, 1]);
    let id = net.ids[A].unwrap();
    for i in 0..100 {
        let now = net.now;
        net.ends[A]
            .association_mut(id)
            .unwrap()
            .send(now, 0, synthetic(i * 50, 50), SendOptions::default())
            .unwrap();
    }
    net.drain();
    net.run_for(segue_proto::Duration::from_secs(2));
    let packets: Vec<_> = net.log.iter().filter(|d| d.from == A).collect();
    assert_eq!(packets[0].data().count(), 1448 / (16 + 52));
    assert!(packets.iter().all(|d| d.packet.buffer_len() <= 1500));
    assert_eq!(net.messages[B].len(), 100);
}

#[test]
fn a_sack_owed_travels_with_data() {
    let mut net = Net::established(Config::default(), [1, 1]);
    net.send(A, 0, synthetic(0, 100));
    net.run_for(ms(50));
    net.send(A, 0, synthetic(100, 100));
    net.run_for(ms(50));
    net.send(B, 0, synthetic(0, 100));
    // the first is acknowledged at once
    assert_eq!(net.trace(), ["A DATA", "B SACK", "A DATA", "B SACK DATA"]);
}

#[test]
fn data_on_a_stream_that_was_not_negotiated_is_acknowledged_and_reported() {
    // RFC 9260 section 6.5
    let config = Config {
        max_inbound_streams: 3,
        outbound_streams: 10,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    assert_eq!(net.association(A).outbound_streams(), 3);
    assert_eq!(
        net.command(A, |a, now| a.send(
            now,
            3,
            synthetic(0, 1),
            SendOptions::default()
        )),
        Err(SendError::NoSuchStream)
    );
    net.send(A, 0, synthetic(0, 4));
    let mut chunk = net.log[0].data().next().unwrap().clone();
    chunk.tsn = chunk.tsn.next();
    chunk.stream_id = 9;
    net.run_for(ms(300));
    let packet = net.forge(B, address(A, 1), [Chunk::Data(chunk)]);
    net.log.clear();
    net.inject(B, packet);
    assert_eq!(
        net.log[0].sctp().chunks[..],
        [Chunk::Error(vec![ErrorCause::InvalidStreamIdentifier(9)])]
    );
    assert_eq!(net.messages[B].len(), 1);
}

#[test]
fn a_refused_send_is_followed_by_writable_when_there_is_room() {
    let config = Config {
        send_buffer: 10_000,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    for i in 0..10 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    let refused = net.command(A, |a, now| {
        a.send(now, 0, synthetic(0, 1000), SendOptions::default())
    });
    assert_eq!(refused, Err(SendError::BufferFull));
    assert_eq!(net.association(A).send_space(), 0);
    assert_eq!(
        net.command(A, |a, now| a.send(
            now,
            0,
            synthetic(0, 10_001),
            SendOptions::default()
        )),
        Err(SendError::TooLong)
    );
    net.run_for(segue_proto::Duration::from_secs(1));
    assert_eq!(net.events[A].iter().filter(|e| e.1 == Event::Writable).count(), 1);
    assert_eq!(net.association(A).send_space(), 10_000);
}

#[test]
fn no_more_than_max_burst_packets_leave_at_one_opportunity() {
    // RFC 9260 section 6.1 rule D: a SACK that opens the window by a lot
    for (max_burst, expected) in [(Some(4), 4), (Some(2), 2), (None, 10)] {
        let config = Config {
            max_burst,
            ..Config::default()
        };
        let mut net = Net::established(config, [1, 1]);
        for i in 0..200 {
            net.send(A, 0, synthetic(i * 1000, 1000));
        }
        net.run_for(segue_proto::Duration::from_secs(20));
        net.log.clear();
        let id = net.ids[A].unwrap();
        for i in 0..10 {
            let now = net.now;
            net.ends[A]
                .association_mut(id)
                .unwrap()
                .send(now, 0, synthetic(i, 1400), SendOptions::default())
                .unwrap();
        }
        net.drain();
        let allowed = net.association(A).paths().next().unwrap().cwnd.div_ceil(1416) as usize;
        assert_eq!(net.log.len(), expected.min(allowed));
    }
}

#[test]
fn an_idle_window_decays_before_it_is_used_again() {
    // RFC 9260 section 7.2.1
    let mut net = Net::established(Config::default(), [1, 1]);
    for i in 0..150 {
        net.send(A, 0, synthetic(i * 1400, 1400));
    }
    net.run_for(ms(900));
    let before = net.association(A).paths().next().unwrap().cwnd;
    assert!(before > 16_000);
    net.run_for(segue_proto::Duration::from_secs(60));
    net.send(A, 0, synthetic(0, 10));
    let after = net.association(A).paths().next().unwrap();
    assert_eq!((after.cwnd, after.ssthresh), (4 * 1448, before));
}

#[test]
fn a_shutdown_that_nobody_answers_ends_in_loss_of_the_association() {
    let mut net = Net::established(Config::default(), [1, 1]);
    net.rule = Box::new(|_| vec![]);
    net.command(A, |a, now| a.shutdown(now));
    net.run_for(segue_proto::Duration::from_secs(1000));
    let ends: Vec<_> = net.events[A]
        .iter()
        .filter(|e| matches!(e.1, Event::Lost | Event::Aborted { .. } | Event::Closed))
        .collect();
    assert_eq!(ends.len(), 1);
    assert!(net.ends[A].poll_timeout().is_none());
}

#[test]
fn packets_to_another_port_and_other_payloads_are_ignored() {
    let mut net = Net::established(Config::default(), [1, 1]);
    let mut packet = net.forge(B, address(A, 1), [Chunk::Heartbeat("x".into())]);
    net.log.clear();
    if let segue_wire::Payload::Sctp(sctp) = &mut packet.payload {
        sctp.destination_port = 1;
    }
    net.inject(B, packet.clone());
    packet.payload = segue_wire::Payload::NoNextHeader;
    net.inject(B, packet);
    assert!(net.log.is_empty());
}

/// The chunks that B answers an INIT with this parameter with.
fn answer_to_init_with(parameter: segue_wire::sctp::Parameter) -> Vec<Chunk> {
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    net.connect();
    let mut packet = net.log[0].packet.clone();
    net.run_until(at(0.5));
    if let segue_wire::Payload::Sctp(sctp) = &mut packet.payload
        && let Chunk::Init(init) = &mut sctp.chunks[0]
    {
        init.parameters.push(parameter);
        sctp.source_port = 77;
    }
    net.log.clear();
    net.inject(B, packet);
    net.log[0].sctp().chunks.to_vec()
}

#[test]
fn unknown_init_parameters_are_reported_in_the_init_ack_and_host_names_refused() {
    use segue_wire::sctp::Parameter;
    let unknown = Parameter::Unknown {
        parameter_type: 0xc042,
        value: "abcd".into(),
    };
    let chunks = answer_to_init_with(unknown);
    let Chunk::InitAck(ack) = &chunks[0] else {
        panic!("{chunks:?}")
    };
    let whole = bytes::Bytes::from_static(b"\xc0\x42\x00\x08abcd");
    assert!(ack.parameters.contains(&Parameter::UnrecognizedParameter(whole)));
    let chunks = answer_to_init_with(Parameter::HostNameAddress("x".into()));
    assert!(
        matches!(&chunks[0], Chunk::Abort { causes, .. } if matches!(causes[..], [ErrorCause::UnresolvableAddress(_)]))
    );
}

#[test]
fn a_sack_that_newly_acknowledges_only_what_lies_before_a_hole_is_no_report_of_it() {
    // HTNA, RFC 9260 section 7.2.4: 1, 4 and 7 of eight are missing; the last is reported missing once only
    let config = Config {
        max_burst: None,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.rule = Box::new(|_| vec![]);
    for i in 0..8 {
        net.send(A, 0, synthetic(i * 100, 100));
    }
    let first = net.log[0].data().next().unwrap().tsn;
    let seventh = first.add(6);
    for (acked, blocks) in [
        (0, vec![(2, 3), (5, 6), (8, 8)]),
        (3, vec![(2, 3), (5, 5)]),
        (6, vec![(2, 2)]),
    ] {
        let sack = segue_wire::sctp::Sack {
            cumulative_tsn_ack: first.previous().add(acked),
            a_rwnd: 100_000,
            gap_ack_blocks: blocks
                .into_iter()
                .map(|(start, end)| segue_wire::sctp::GapAckBlock { start, end })
                .collect(),
            duplicate_tsns: Box::default(),
            data_packets: 0,
        };
        let packet = net.forge(A, address(B, 1), [Chunk::Sack(sack)]);
        net.inject(A, packet);
    }
    assert_eq!(net.transmissions_of(A, seventh).len(), 1);
    assert_eq!(net.association(A).outstanding_bytes(), 100);
}

#[test]
fn an_unknown_chunk_stops_or_is_skipped_and_is_reported_by_its_type_bits() {
    // RFC 9260 section 3.2
    for (chunk_type, goes_on, reported) in [
        (0x3f, false, false),
        (0x7f, false, true),
        (0xbf, true, false),
        (0xff, true, true),
    ] {
        let mut net = Net::established(Config::default(), [1, 1]);
        let unknown = Chunk::Unknown {
            chunk_type,
            flags: 3,
            value: "abcd".into(),
        };
        let packet = net.forge(B, address(A, 1), [unknown, Chunk::Heartbeat("x".into())]);
        net.log.clear();
        net.inject(B, packet);
        let mut expected = Vec::new();
        if reported {
            let whole = [&[chunk_type, 3, 0, 8][..], b"abcd"].concat();
            expected.push(Chunk::Error(vec![ErrorCause::UnrecognizedChunkType(
                whole.into(),
            )]));
        }
        if goes_on {
            expected.push(Chunk::HeartbeatAck("x".into()));
        }
        let sent: Vec<_> = net
            .log
            .iter()
            .flat_map(|d| d.sctp().chunks.to_vec())
            .filter(|c| !matches!(c, Chunk::Sack(_)))
            .collect();
        assert_eq!(sent, expected, "{chunk_type:#x}");
    }
}

#[test]
fn shutdown_complete_goes_to_where_the_shutdown_ack_came_from() {
    // RFC 9260 section 6.4; the address that data last came from may be gone
    let mut net = Net::established(Config::default(), [1, 2]);
    net.send(B, 0, synthetic(0, 100));
    net.run_for(ms(50));
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    net.command(A, |a, now| a.shutdown(now));
    net.run_for(ms(500));
    let complete = net
        .log
        .iter()
        .find(|d| names(d.sctp()) == ["SHUTDOWN-COMPLETE"])
        .expect("SHUTDOWN COMPLETE");
    assert_eq!(complete.packet.ip.destination, address(B, 2));
    assert!(net.has_event(A, &Event::Closed) && net.has_event(B, &Event::Closed));
}

#[test]
fn two_endpoints_never_have_more_than_one_association() {
    // RFC 9260 section 1.3
    let mut net = Net::established(Config::default(), [1, 2]);
    let now = net.now;
    for (host, peer) in [(A, address(B, 1)), (B, address(A, 1))] {
        assert_eq!(net.ends[host].connect(now, &[peer], PORT), None);
    }
    assert!(
        net.ends[A].connect(now, &[address(B, 1)], PORT + 1).is_some(),
        "another endpoint"
    );
    // an association that is over is no obstacle
    net.command(A, |a, now| a.abort(now, "over".into()));
    net.drain();
    let now = net.now;
    assert!(net.ends[A].connect(now, &[address(B, 1)], PORT).is_some());
}
