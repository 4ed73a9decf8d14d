//! The state machine of TCP by scripted segments: RFC 9293 section 3.10.7, RFC 5961, RFC 7323.

use crate::common::tcp_script::{ACK, FIN, IRS, OWN_PORT, RST, SYN, Script, ms, plain};
use segue_proto::tcp::{Config, Event, NagleRule, State};
use segue_proto::{Duration, Instant};
use segue_wire::tcp::{SackBlock, TcpFlags, TcpOptions, Timestamps};
use segue_wire::{Data, SeqNumber};

const PSH: TcpFlags = TcpFlags::PSH;

// --- segments for no connection: section 3.10.7.1 ---

#[test]
fn a_segment_for_nobody_is_answered_by_a_reset_at_its_acknowledgment() {
    let mut s = Script::listening(plain());
    s.own_port = 81;
    s.give(s.segment(ACK, 7, 100, 3));
    let reset = s.only();
    assert_eq!((reset.flags, reset.seq), (RST, SeqNumber(100)));
    assert_eq!((reset.source_port, s.endpoint.counters().resets_sent), (81, 1));
}

#[test]
fn a_segment_for_nobody_without_ack_is_answered_by_a_reset_that_acknowledges_it() {
    let mut s = Script::listening(plain());
    s.own_port = 81;
    s.give(s.segment(SYN, 0, 0, 3));
    let reset = s.only();
    assert_eq!((reset.flags, reset.seq), (RST | ACK, SeqNumber(0)));
    assert_eq!(reset.ack, SeqNumber(IRS + 4), "SYN and three bytes");
}

#[test]
fn a_reset_for_nobody_is_dropped() {
    let mut s = Script::listening(plain());
    s.give(s.segment(RST, 0, 0, 0));
    assert_eq!(s.sent(), []);
    assert_eq!(s.endpoint.counters().stray_resets, 1);
}

// --- LISTEN: section 3.10.7.2 ---

#[test]
fn listen_answers_an_acknowledgment_by_a_reset_and_drops_what_is_no_syn() {
    let mut s = Script::listening(plain());
    s.give(s.segment(ACK, 0, 77, 0));
    assert_eq!(s.only().flags, RST);
    s.give(s.segment(FIN, 0, 0, 0));
    assert_eq!(s.sent(), []);
    assert_eq!(s.endpoint.counters().not_syn, 1);
}

#[test]
fn a_syn_that_comes_again_is_answered_again_and_a_reset_ends_it_silently() {
    let mut s = Script::listening(plain());
    s.give(s.segment(SYN, 0, 0, 0));
    let answer = s.only();
    s.iss = answer.seq.0;
    assert_eq!(s.exchange(s.segment(SYN, 0, 0, 0)), (SYN | ACK, 0, 1));
    // section 3.10.7.4, second: back to LISTEN
    s.give(s.segment(RST, 1, 0, 0));
    assert_eq!((s.sent(), s.events.len()), (vec![], 0));
    assert_eq!(s.endpoint.connections().count(), 1, "until it is next called");
    s.give(s.segment(RST, 1, 0, 0));
    assert_eq!(s.endpoint.connections().count(), 0);
}

#[test]
fn a_syn_ack_is_retransmitted_and_given_up() {
    let mut s = Script::listening(Config {
        max_syn_retransmits: 3,
        ..plain()
    });
    s.give(s.segment(SYN, 0, 0, 0));
    assert_eq!(s.only().flags, SYN | ACK);
    let sent = s.wait(Duration::from_secs(60));
    assert_eq!(sent.iter().filter(|t| t.flags == SYN | ACK).count(), 3);
    assert_eq!(s.events, []);
}

#[test]
fn in_syn_received_an_acknowledgment_of_something_else_is_answered_by_a_reset() {
    // section 3.10.7.4, fifth
    let mut s = Script::listening(plain());
    s.give(s.segment(SYN, 0, 0, 0));
    s.iss = s.only().seq.0;
    s.give(s.segment(ACK, 1, 9, 0));
    let reset = s.only();
    assert_eq!((reset.flags, reset.seq.0), (RST, s.iss + 9));
    assert_eq!(s.state(), State::SynReceived);
}

// --- SYN-SENT: section 3.10.7.3 ---

#[test]
fn a_connection_opens_and_its_options_are_agreed_on() {
    let (mut s, syn) = Script::connecting(Config::default());
    assert_eq!((syn.flags, syn.options.mss()), (SYN, Some(1440)));
    assert!(syn.options.sack_permitted() && syn.options.timestamps.is_some());
    assert_eq!(syn.options.window_scale(), Some(6), "3 MiB in 16 bits");
    let mut answer = s.segment(SYN | ACK, 0, 1, 0);
    answer.options.set_mss(1000);
    assert_eq!(s.exchange(answer), (ACK, 1, 1));
    assert_eq!(
        (s.state(), &s.events[..]),
        (State::Established, &[Event::Connected][..])
    );
    assert_eq!(
        s.connection().snapshot().mss,
        1000,
        "no timestamps were agreed on"
    );
    assert_eq!(
        s.connection().snapshot().srtt,
        Some(ms(0).max(Duration::from_micros(1)))
    );
}

#[test]
fn in_syn_sent_a_bad_acknowledgment_is_answered_by_a_reset() {
    let (mut s, _) = Script::connecting(plain());
    s.give(s.segment(SYN | ACK, 0, 2, 0));
    let reset = s.only();
    assert_eq!((reset.flags, reset.seq.0), (RST, s.iss.wrapping_add(2)));
    s.give(s.segment(RST | ACK, 0, 2, 0));
    assert_eq!((s.sent(), s.state()), (vec![], State::SynSent));
}

#[test]
fn in_syn_sent_a_reset_counts_only_if_it_acknowledges_the_syn() {
    let (mut s, _) = Script::connecting(plain());
    s.give(s.segment(RST, 0, 0, 0));
    assert_eq!(s.state(), State::SynSent);
    s.give(s.segment(RST | ACK, 0, 1, 0));
    assert_eq!(s.events, [Event::Refused]);
}

#[test]
fn both_ends_may_open_at_once() {
    // section 3.5, figure 7
    let (mut s, _) = Script::connecting(plain());
    assert_eq!(s.exchange(s.segment(SYN, 0, 0, 0)), (SYN | ACK, 0, 1));
    assert_eq!(s.state(), State::SynReceived);
    s.give(s.segment(SYN | ACK, 0, 1, 0));
    assert_eq!(
        (s.state(), &s.events[..]),
        (State::Established, &[Event::Connected][..])
    );
}

#[test]
fn a_syn_without_answer_is_retransmitted_with_doubled_timeouts_and_given_up() {
    let (mut s, _) = Script::connecting(Config {
        max_syn_retransmits: 4,
        ..plain()
    });
    let begin = s.now;
    let mut times = Vec::new();
    for _ in 0..4 {
        let at = s.endpoint.poll_timeout().unwrap();
        assert_eq!(s.wait(at - s.now)[0].flags, SYN);
        times.push((at - begin).as_millis() / 1000);
    }
    assert_eq!(times, [1, 3, 7, 15]);
    s.wait(Duration::from_secs(100));
    assert_eq!(s.events, [Event::TimedOut]);
}

// --- the window: section 3.10.7.4, first ---

#[test]
fn what_is_outside_the_window_is_acknowledged_and_dropped() {
    let mut s = Script::accepted(plain());
    assert_eq!(s.exchange(s.segment(ACK, 60_001, 1, 10)), (ACK, 1, 1));
    assert_eq!(s.connection().counters().refused.outside_window, 1);
    assert_eq!(s.events, []);
}

/// Three segments of a thousand bytes are on their way to a peer that may send from 1 up to 60,001.
fn sending() -> Script {
    let mut s = Script::accepted(plain());
    s.write(0, 3000);
    assert_eq!(s.sent().len(), 3);
    s
}

#[test]
fn what_is_outside_the_window_acknowledges_nothing_and_says_nothing_of_the_peers_window() {
    let mut s = sending();
    // "If an incoming segment is not acceptable, an acknowledgment should be sent in reply ... drop the unacceptable segment"
    for at in [60_002, 1_000_000_000, 0] {
        assert_eq!(s.exchange(s.segment(ACK, at, 1001, 0)).0, ACK);
        assert_eq!(s.connection().snapshot().flightsize, 3000, "{at}");
    }
    // the peer's own has the last word
    s.window = 1500;
    s.give(s.segment(ACK, 1, 1001, 0));
    assert_eq!(s.connection().snapshot().flightsize, 2000);
    s.write(3000, 1000);
    assert_eq!(s.sent(), [], "more than its window is on its way");
}

#[test]
fn a_peer_that_has_filled_the_window_acknowledges_from_its_right_edge() {
    let mut s = sending();
    s.give(s.segment(ACK, 60_001, 2001, 0));
    assert_eq!(s.connection().snapshot().flightsize, 1000);
}

#[test]
fn a_closed_window_takes_acknowledgements_from_its_edge() {
    let mut s = Script::accepted(Config {
        receive_buffer: 1000,
        ..plain()
    });
    s.write(0, 500);
    assert_eq!(s.sent().len(), 1);
    s.give(s.segment(ACK, 1, 1, 1000));
    assert_eq!(s.wait(ms(40)).pop().unwrap().window, 0);
    // a byte that there is no room for
    s.give(s.segment(ACK, 1001, 501, 1));
    assert_eq!(s.connection().snapshot().flightsize, 0);
}

#[test]
fn a_segment_that_reaches_beyond_the_window_is_cut() {
    let mut s = Script::accepted(Config {
        receive_buffer: 3000,
        ..plain()
    });
    s.give(s.segment(ACK, 1, 1, 1000));
    s.give(s.segment(ACK, 1001, 1, 2500));
    let last = s.wait(ms(40)).pop().unwrap();
    assert_eq!(s.numbers(&last).2, 3001);
    assert_eq!(last.window, 0);
}

#[test]
fn data_is_put_in_order() {
    let mut s = Script::accepted(plain());
    assert_eq!(
        s.exchange(s.segment(ACK, 101, 1, 100)),
        (ACK, 1, 1),
        "at once: RFC 5681 section 4.2"
    );
    assert_eq!(
        s.exchange(s.segment(ACK, 1, 1, 100)),
        (ACK, 1, 201),
        "fills the gap"
    );
    let data = s.command(|c| c.recv()).unwrap();
    assert!(data.is_synthetic_at(0) && data.len() == 100 || data.len() == 200);
}

#[test]
fn acknowledgements_are_delayed_until_the_second_full_segment_or_a_while() {
    // RFC 9293 section 3.8.6.3, RFC 5681 section 4.2
    let mut s = Script::accepted(plain());
    s.give(s.segment(ACK, 1, 1, 1000));
    assert_eq!(s.sent(), []);
    assert_eq!(s.exchange(s.segment(ACK, 1001, 1, 1000)), (ACK, 1, 2001));
    s.give(s.segment(ACK, 2001, 1, 10));
    assert_eq!(s.wait(ms(39)), []);
    let late = s.wait(ms(1));
    assert_eq!(s.numbers(&late[0]), (ACK, 1, 2011));
}

// --- RST and SYN: RFC 5961 ---

#[test]
fn a_reset_must_be_exactly_where_the_next_segment_would_be() {
    // RFC 5961 section 3.2
    let mut s = Script::accepted(plain());
    assert_eq!(s.exchange(s.segment(RST, 2, 1, 0)), (ACK, 1, 1), "a challenge");
    assert_eq!(s.state(), State::Established);
    s.give(s.segment(RST, 60_002, 1, 0));
    assert_eq!(s.sent(), [], "outside the window: nothing");
    s.give(s.segment(RST, 1, 1, 0));
    assert_eq!(s.events, [Event::Reset]);
}

#[test]
fn a_syn_within_a_connection_is_challenged() {
    // RFC 5961 section 4.2
    let mut s = Script::accepted(plain());
    assert_eq!(s.exchange(s.segment(SYN, 500, 1, 0)), (ACK, 1, 1));
    assert_eq!(s.exchange(s.segment(SYN, 0x7000_0000, 1, 0)), (ACK, 1, 1));
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.connection().counters().refused.unexpected_syns, 2);
}

#[test]
fn challenges_are_limited() {
    // RFC 5961 section 7
    let mut s = Script::accepted(Config {
        challenge_acks: 3,
        ..plain()
    });
    for _ in 0..10 {
        s.give(s.segment(SYN, 500, 1, 0));
    }
    for _ in 0..10 {
        s.give(s.segment(SYN, 500, 1, 0));
        s.sent();
    }
    assert_eq!(s.connection().counters().challenge_acks, 3);
    s.wait(Duration::from_secs(1));
    assert_eq!(s.exchange(s.segment(SYN, 500, 1, 0)).0, ACK);
}

#[test]
fn acknowledgments_that_cannot_be_are_challenged() {
    // RFC 5961 section 5.2
    let mut s = Script::accepted(plain());
    s.write(0, 500);
    assert_eq!(s.sent().len(), 1);
    assert_eq!(
        s.exchange(s.segment(ACK, 1, 502, 100)),
        (ACK, 501, 1),
        "not yet sent; data dropped"
    );
    let older_than_any_window = 1u32.wrapping_sub(60_001);
    assert_eq!(
        s.exchange(s.segment(ACK, 1, older_than_any_window, 100)),
        (ACK, 501, 1)
    );
    assert_eq!(s.connection().counters().refused.impossible_acks, 2);
    s.give(s.segment(ACK, 1, 501, 0));
    assert_eq!(s.events, [Event::SendersDry]);
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut s = Script::accepted(plain());
    s.give(s.segment(TcpFlags::default(), 1, 1, 100));
    assert_eq!(s.sent(), []);
    assert_eq!(s.connection().counters().refused.no_ack, 1);
}

// --- timestamps: RFC 7323 ---

fn stamped(value: u32, echo: u32) -> Option<Timestamps> {
    Some(Timestamps { value, echo })
}

fn with_timestamps() -> Script {
    let mut options = TcpOptions::with_timestamps(stamped(1000, 0));
    options.set_mss(1000);
    let config = Config {
        timestamps: true,
        ..plain()
    };
    Script::accepted_with(config, options)
}

#[test]
fn paws_refuses_what_is_older_than_what_was_seen() {
    // RFC 7323 section 5.3
    let mut s = with_timestamps();
    s.timestamps = stamped(2000, 0);
    s.give(s.segment(ACK, 1, 1, 1000));
    s.timestamps = stamped(1999, 0);
    assert_eq!(s.exchange(s.segment(ACK, 1001, 1, 1000)), (ACK, 1, 1001));
    assert_eq!(s.connection().counters().refused.old_timestamp, 1);
    s.timestamps = stamped(2000, 0);
    s.give(s.segment(ACK, 1001, 1, 1000));
    let later = s.wait(ms(40));
    assert_eq!(
        s.numbers(&later[0]),
        (ACK, 1, 2001),
        "as old as what was seen: good"
    );
}

#[test]
fn once_agreed_on_timestamps_are_on_every_segment_but_resets() {
    // RFC 7323 section 3.2
    let mut s = with_timestamps();
    s.timestamps = None;
    s.give(s.segment(ACK, 1, 1, 1000));
    assert_eq!(s.sent(), []);
    assert_eq!(s.connection().counters().refused.no_timestamp, 1);
    s.give(s.segment(RST, 1, 1, 0));
    assert_eq!(s.events, [Event::Reset]);
}

#[test]
fn the_timestamp_echoed_is_that_of_the_segment_that_advanced_the_window() {
    // RFC 7323 section 4.3: example with a gap
    let mut s = with_timestamps();
    s.timestamps = stamped(1001, 0);
    s.give(s.segment(ACK, 1, 1, 500));
    s.timestamps = stamped(1003, 0);
    s.give(s.segment(ACK, 1001, 1, 500));
    assert_eq!(
        s.only().options.timestamps.unwrap().echo,
        1001,
        "beyond a gap: the former one"
    );
    s.timestamps = stamped(1002, 0);
    s.give(s.segment(ACK, 501, 1, 500));
    assert_eq!(s.only().options.timestamps.unwrap().echo, 1002, "fills the gap");
}

// --- closing ---

#[test]
fn the_peer_closes_first() {
    let mut s = Script::accepted(plain());
    assert_eq!(s.exchange(s.segment(FIN | ACK, 1, 1, 0)), (ACK, 1, 2));
    assert_eq!(
        (s.state(), &s.events[..]),
        (State::CloseWait, &[Event::PeerClosed][..])
    );
    s.write(0, 100);
    assert_eq!(s.only().flags, ACK | PSH);
    s.give(s.segment(ACK, 2, 101, 0));
    s.command(|c| c.close());
    let fin = s.only();
    assert_eq!(s.numbers(&fin), (FIN | ACK, 101, 2));
    assert_eq!(s.state(), State::LastAck);
    s.give(s.segment(ACK, 2, 102, 0));
    assert_eq!(s.events.last(), Some(&Event::Closed));
    s.give(s.segment(ACK, 2, 102, 0));
    assert_eq!(s.endpoint.connections().count(), 0);
}

#[test]
fn this_end_closes_first_and_waits_in_time_wait() {
    let mut s = Script::accepted(plain());
    s.command(|c| c.close());
    assert_eq!(s.state(), State::FinWait1);
    let fin = s.only();
    assert_eq!(s.numbers(&fin), (FIN | ACK, 1, 1));
    s.give(s.segment(ACK, 1, 2, 0));
    assert_eq!(s.state(), State::FinWait2);
    // data may still come
    s.give(s.segment(ACK, 1, 2, 10));
    assert!(s.events.contains(&Event::Readable));
    s.command(|c| c.recv());
    assert_eq!(s.exchange(s.segment(FIN | ACK, 11, 2, 0)), (ACK, 2, 12));
    assert_eq!(
        (s.state(), s.events.last()),
        (State::TimeWait, Some(&Event::Closed))
    );
    // the FIN again: acknowledged, and the wait begins anew
    s.wait(Duration::from_secs(50));
    assert_eq!(s.exchange(s.segment(FIN | ACK, 11, 2, 0)), (ACK, 2, 12));
    s.wait(Duration::from_secs(50));
    assert_eq!(s.state(), State::TimeWait);
    s.wait(Duration::from_secs(11));
    s.give(s.segment(ACK, 12, 2, 0));
    assert_eq!(s.only().flags, RST, "there is no connection any more");
    assert_eq!(s.events.iter().filter(|e| e.is_end()).count(), 1);
}

#[test]
fn both_ends_close_at_once() {
    // section 3.6, figure 13
    let mut s = Script::accepted(plain());
    s.command(|c| c.close());
    assert_eq!(s.only().flags, FIN | ACK);
    assert_eq!(s.exchange(s.segment(FIN | ACK, 1, 1, 0)), (ACK, 2, 2));
    assert_eq!(s.state(), State::Closing);
    s.give(s.segment(ACK, 2, 2, 0));
    assert_eq!(
        (s.state(), s.events.last()),
        (State::TimeWait, Some(&Event::Closed))
    );
}

#[test]
fn a_fin_that_acknowledges_ours_leads_to_time_wait_at_once() {
    let mut s = Script::accepted(plain());
    s.command(|c| c.close());
    s.sent();
    assert_eq!(s.exchange(s.segment(FIN | ACK, 1, 2, 0)), (ACK, 2, 2));
    assert_eq!(s.state(), State::TimeWait);
}

#[test]
fn a_fin_before_its_data_waits_for_it() {
    let mut s = Script::accepted(plain());
    assert_eq!(s.exchange(s.segment(FIN | ACK, 101, 1, 0)), (ACK, 1, 1));
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.exchange(s.segment(ACK, 1, 1, 100)), (ACK, 1, 102));
    assert_eq!(s.events, [Event::Readable, Event::PeerClosed]);
    // nothing can come behind it
    s.give(s.segment(ACK, 102, 1, 5));
    assert_eq!(s.connection().counters().refused.data_after_close, 1);
}

#[test]
fn a_fin_is_retransmitted() {
    let mut s = Script::accepted(plain());
    s.command(|c| c.close());
    s.sent();
    let again = s.wait(ms(1500));
    assert!(
        again.iter().any(|t| s.numbers(t) == (FIN | ACK, 1, 1)),
        "{again:?}"
    );
}

#[test]
fn a_new_syn_may_take_the_place_of_a_connection_in_time_wait() {
    // section 3.6.1, MAY-2
    let mut s = Script::accepted(plain());
    s.command(|c| c.close());
    s.sent();
    s.give(s.segment(FIN | ACK, 1, 2, 0));
    s.sent();
    assert_eq!(s.state(), State::TimeWait);
    assert_eq!(
        s.exchange(s.segment(SYN, 1, 0, 0)).0,
        ACK,
        "not a higher number: a challenge"
    );
    s.wait(Duration::from_secs(1));
    s.give(s.segment(SYN, 70_000, 0, 0));
    assert_eq!(s.only().flags, SYN | ACK);
}

#[test]
fn abort_resets_the_peer() {
    let mut s = Script::accepted(plain());
    s.write(0, 100);
    s.sent();
    s.command(|c| c.abort());
    let reset = s.only();
    assert_eq!(s.numbers(&reset), (RST | ACK, 101, 1));
    assert_eq!(s.events, [Event::Aborted]);
}

#[test]
fn nothing_can_be_sent_after_close() {
    let mut s = Script::accepted(plain());
    s.command(|c| c.close());
    let data = Data::Synthetic { offset: 0, len: 1 };
    assert!(s.command(|c| c.send(&data)).is_err());
}

#[test]
fn a_peer_that_falls_silent_is_given_up_after_r2() {
    // section 3.8.3
    let mut s = Script::accepted(Config {
        max_retransmits: 5,
        ..plain()
    });
    s.write(0, 100);
    s.sent();
    let sent = s.wait(Duration::from_secs(600));
    assert_eq!(sent.len(), 5);
    assert_eq!(s.events, [Event::TimedOut]);
}

// --- initial sequence numbers: RFC 6528 ---

#[test]
fn initial_sequence_numbers_go_up_with_time_and_differ_by_pair() {
    let mut s = Script::listening(plain());
    let iss = |s: &mut Script, port: u16| {
        let mut syn = s.segment(SYN, 0, 0, 0);
        syn.source_port = port;
        s.give(syn);
        let iss = s.only().seq.0;
        let mut reset = s.segment(RST, 1, 0, 0);
        reset.source_port = port;
        s.give(reset);
        iss
    };
    let first = iss(&mut s, 4000);
    let other = iss(&mut s, 4001);
    s.wait(Duration::from_secs(4));
    let later = iss(&mut s, 4000);
    assert_eq!(later.wrapping_sub(first), 1_000_000, "a step each 4 microseconds");
    assert!(other.wrapping_sub(first) > 1_000_000);
    assert!(s.now > Instant::ZERO && OWN_PORT == 80);
}

// --- the sender's side of windows ---

#[test]
fn window_scaling_applies_to_all_but_syns() {
    // RFC 7323 section 2.2
    let mut options = TcpOptions::default();
    options.set_mss(1000);
    options.set_window_scale(3);
    let config = Config {
        window_scaling: true,
        receive_buffer: 400_000,
        ..plain()
    };
    let mut s = Script::accepted_with(config, options);
    assert_eq!(s.connection().snapshot().snd_wnd, 60_000 << 3);
    s.give(s.segment(ACK, 1, 1, 1000));
    s.give(s.segment(ACK, 1001, 1, 1000));
    // 398,000 bytes in units of 8
    assert_eq!(u32::from(s.only().window), 398_000 / 8);
}

#[test]
fn nagle_holds_back_small_segments_while_data_is_outstanding() {
    // section 3.7.4
    let mut s = Script::accepted(Config {
        nagle: true,
        ..plain()
    });
    s.write(0, 10);
    assert_eq!(s.only().data.len(), 10);
    s.write(10, 10);
    s.write(20, 10);
    assert_eq!(s.sent(), []);
    s.give(s.segment(ACK, 1, 11, 0));
    assert_eq!(s.only().data.len(), 20);
}

#[test]
fn by_minshalls_rule_only_a_small_segment_holds_back_the_next() {
    // draft-minshall-nagle-01 section 2; segments of 1000 bytes
    for (nagle_rule, first) in [
        (NagleRule::Minshall, vec![1000, 500]),
        (NagleRule::Rfc9293, vec![1000]),
    ] {
        let mut s = Script::accepted(Config {
            nagle: true,
            nagle_rule,
            ..plain()
        });
        s.write(0, 1500);
        let lengths: Vec<usize> = s.sent().iter().map(|segment| segment.data.len()).collect();
        assert_eq!(lengths, first, "{nagle_rule:?}");
        s.write(1500, 10);
        assert_eq!(s.sent(), [], "{nagle_rule:?}");
        let rest = if nagle_rule == NagleRule::Minshall {
            10
        } else {
            510
        };
        s.give(s.segment(ACK, 1, 1 + first.iter().sum::<usize>() as u32, 0));
        assert_eq!(s.only().data.len(), rest, "{nagle_rule:?}");
    }
}

#[test]
fn a_sender_does_not_fill_silly_windows() {
    // section 3.8.6.2.1
    let mut s = Script::accepted(plain());
    s.window = 1100;
    s.give(s.segment(ACK, 1, 1, 0));
    s.write(0, 5000);
    assert_eq!(s.only().data.len(), 1000, "not the hundred bytes as well");
    s.window = 400;
    s.give(s.segment(ACK, 1, 1001, 0));
    assert_eq!(s.sent(), []);
    // the override timeout
    let probe = s.wait(Duration::from_secs(2));
    assert_eq!(probe[0].data.len(), 400);
}

#[test]
fn a_receiver_opens_its_window_by_segments_not_by_bytes() {
    // section 3.8.6.2.2
    let mut s = Script::accepted(Config {
        receive_buffer: 4000,
        ..plain()
    });
    for n in 0..4 {
        s.give(s.segment(ACK, 1 + 1000 * n, 1, 1000));
    }
    let closed = s.sent().pop().unwrap();
    assert_eq!((s.numbers(&closed).2, closed.window), (4001, 0));
    // in order it is one piece: reading it frees all
    while s.command(|c| c.recv()).is_some() {}
    let update = s.only();
    assert_eq!((s.numbers(&update).2, update.window), (4001, 4000));
}

#[test]
fn a_connection_takes_the_path_mtu_from_its_own_packets_only() {
    let mut s = Script::accepted(plain());
    s.write(0, 3000);
    s.sent();
    assert!(!s.packet_too_big(5000, 1280), "not outstanding");
    assert!(s.packet_too_big(1, 1280));
}

/// Ten segments of 1440 bytes are on their way, to a peer that takes SACK.
fn sending_long_segments() -> Script {
    let mut options = TcpOptions::default();
    options.set_mss(1440);
    options.set_sack_permitted();
    let config = Config {
        sack: true,
        ..plain()
    };
    let mut s = Script::accepted_with(config, options);
    s.write(0, 40_000);
    let sent = s.sent();
    assert!(sent.len() >= 4 && sent.iter().all(|one| one.data.len() == 1440));
    s
}

#[test]
fn the_path_mtu_is_never_raised_by_a_packet_that_was_too_big() {
    // RFC 8201 section 4
    let mut s = sending_long_segments();
    assert!(s.packet_too_big(1, 1300));
    s.sent();
    assert!(
        s.packet_too_big(1, 1400),
        "from a path that was left, or another branch"
    );
    s.give(s.segment(ACK, 1, 4321, 0));
    let sent = s.sent();
    assert!(
        !sent.is_empty() && sent.iter().all(|one| one.data.len() <= 1240),
        "{sent:?}"
    );
}

#[test]
fn what_the_path_could_not_carry_says_nothing_of_congestion() {
    // RFC 1191 section 6.4; RFC 8201 section 5.4
    let mut s = sending_long_segments();
    let before = s.connection().snapshot();
    assert!(s.packet_too_big(1, 1300));
    assert_eq!(s.sent()[0].data.len(), 1240, "sent again, in shorter segments");
    // the third of those arrives before the first, and all was sent twice
    let mut gap = s.segment(ACK, 1, 1, 0);
    gap.options.set_sack_blocks(&[SackBlock {
        left: SeqNumber(s.iss.wrapping_add(2881)),
        right: SeqNumber(s.iss.wrapping_add(4121)),
    }]);
    s.give(gap);
    let after = s.connection().snapshot();
    assert_eq!(s.connection().counters().recovery.fast_recoveries, 0);
    assert!(
        after.cwnd >= before.cwnd && after.ssthresh == before.ssthresh,
        "{after:?}"
    );
    // a timeout then does
    s.wait(Duration::from_secs(2));
    assert!(s.connection().snapshot().ssthresh < before.cwnd);
}

#[test]
fn data_that_is_sent_while_the_peers_is_late_brings_no_acknowledgements_that_nothing_asked_for() {
    // RFC 5681 section 4.2; without SACK the peer would count them as duplicates
    let mut s = Script::accepted(plain());
    s.write(0, 30_000);
    assert!(s.sent().len() >= 4);
    let answer = s.exchange(s.segment(ACK, 101, 1, 100));
    assert_eq!((answer.0, answer.2), (ACK, 1), "of what came out of order");
    s.give(s.segment(ACK, 201, 2001, 0));
    let sent = s.sent();
    assert!(
        !sent.is_empty() && sent.iter().all(|one| !one.data.is_empty()),
        "{sent:?}"
    );
}
