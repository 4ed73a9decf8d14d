//! Windows of a sender: closed ones, unused ones, and room in its buffer.

use crate::common::tcp_script::{ACK, SYN, Script, ms};
use crate::common::tcp_sender::*;
use segue_proto::Duration;
use segue_proto::tcp::{Config, Event, SendError, Snapshot, State};
use segue_wire::Data;

#[test]
fn a_closed_window_is_probed_ever_less_often_and_for_as_long_as_the_peer_answers() {
    // RFC 9293 section 3.8.6.1
    let mut s = sender(standard());
    s.window = 2000;
    ack(&mut s, 1, &[]);
    assert_eq!(write(&mut s, 0, 5000), [(1, 1000), (1001, 1000)]);
    s.window = 0;
    assert_eq!(ack(&mut s, 2001, &[]), NONE);
    let rto = s.connection().snapshot().rto;
    for n in 0..5 {
        let interval = rto * (1 << n);
        assert_eq!(wait(&mut s, interval - ms(1)), NONE, "probe {n}");
        assert_eq!(wait(&mut s, ms(1)), [(2001, 1)], "probe {n}");
        assert_eq!(ack(&mut s, 2001, &[]), NONE);
    }
    for _ in 0..20 {
        assert_eq!(wait(&mut s, Duration::from_secs(120)).len().min(1), 1);
        assert_eq!(ack(&mut s, 2001, &[]), NONE);
    }
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.connection().counters().recovery.timeouts, 0);
    // it opens: the octet was not taken
    s.window = 5000;
    assert_eq!(ack(&mut s, 2001, &[])[0], (2001, 1));
}

#[test]
fn a_closed_window_of_a_peer_that_is_gone_ends_the_connection() {
    let mut s = sender(standard());
    s.window = 1000;
    ack(&mut s, 1, &[]);
    write(&mut s, 0, 5000);
    s.window = 0;
    ack(&mut s, 1001, &[]);
    let probes = wait(&mut s, Duration::from_secs(3600));
    assert_eq!(probes.len(), 15, "MAX retransmissions");
    assert_eq!(s.events.last(), Some(&Event::TimedOut));
}

#[test]
fn a_peer_that_shrinks_its_window_to_nothing_keeps_the_connection_while_it_answers() {
    // RFC 9293 section 3.8.6
    let mut s = sender(Config {
        max_retransmits: 3,
        ..standard()
    });
    write(&mut s, 0, 1000);
    s.window = 0;
    for _ in 0..10 {
        let at = s.endpoint.poll_timeout().unwrap();
        let left = at - s.now;
        let again = wait(&mut s, left);
        assert_eq!(again[0].0, 1);
        ack(&mut s, 1, &[]);
    }
    assert_eq!(s.events.last(), None);
    // and no longer
    wait(&mut s, Duration::from_secs(3600));
    assert_eq!(s.events.last(), Some(&Event::TimedOut));
}

#[test]
fn an_octet_that_was_taken_is_not_sent_again_when_the_window_opens() {
    let mut s = sender(standard());
    s.window = 1000;
    ack(&mut s, 1, &[]);
    write(&mut s, 0, 5000);
    s.window = 0;
    ack(&mut s, 1001, &[]);
    let rto = s.connection().snapshot().rto;
    assert_eq!(wait(&mut s, rto), [(1001, 1)]);
    s.window = 5000;
    assert_eq!(ack(&mut s, 1002, &[])[0], (1002, 1000));
    assert_eq!(s.connection().counters().recovery.retransmissions, 0);
}

#[test]
fn a_segment_older_than_the_last_one_does_not_change_the_window() {
    // RFC 9293 section 3.10.7.4: SND.WL1 and SND.WL2
    let mut s = ten(standard());
    s.give(s.segment(ACK, 1, 1001, 100));
    s.give(s.segment(ACK, 101, 1001, 100));
    s.sent();
    assert_eq!(s.connection().snapshot().snd_wnd, 60_000);
    s.window = 10;
    s.give(s.segment(ACK, 1, 2001, 100));
    assert_eq!(
        s.connection().snapshot().snd_wnd,
        60_000,
        "an old sequence number"
    );
    s.sent();
    s.give(s.segment(ACK, 201, 2001, 0));
    assert_eq!(s.connection().snapshot().snd_wnd, 10);
    s.window = 50_000;
    s.give(s.segment(ACK, 201, 1001, 0));
    assert_eq!(s.connection().snapshot().snd_wnd, 10, "an old acknowledgement");
    s.give(s.segment(ACK, 201, 2001, 0));
    assert_eq!(s.connection().snapshot().snd_wnd, 50_000);
}

#[test]
fn an_application_that_does_not_use_its_window_loses_half_of_what_it_does_not_use() {
    // RFC 2861 section 3.2: once per RTO, cwnd = (cwnd + W) / 2, where W is no less than the initial window
    let mut s = sender(standard());
    let mut offset = 0;
    for n in [10, 20, 40] {
        assert_eq!(write(&mut s, offset, 1000 * n).len(), n as usize);
        offset += u64::from(1000 * n);
        s.now += ms(RTT);
        ack(&mut s, offset as u32 + 1, &[]);
    }
    let full = s.connection().snapshot();
    assert_eq!(full.cwnd, 80_000);
    let after = after_little_use(&mut s, &mut offset);
    assert_eq!((after.cwnd, after.ssthresh), (45_000, u32::MAX));
}

#[test]
fn ssthresh_remembers_three_quarters_of_the_window_that_was_not_used() {
    // RFC 2861 section 3.2
    let mut s = ten(standard());
    ack(&mut s, 1, &[(1001, 4001)]);
    s.now += ms(RTT);
    ack(&mut s, 10_001, &[]);
    let mut offset = 10_000;
    while s.connection().snapshot().cwnd < 12_000 {
        let cwnd = s.connection().snapshot().cwnd;
        write(&mut s, offset, cwnd);
        offset += u64::from(cwnd);
        s.now += ms(RTT);
        ack(&mut s, offset as u32 + 1, &[]);
    }
    let full = s.connection().snapshot();
    assert_eq!(full.ssthresh, 5000);
    let after = after_little_use(&mut s, &mut offset);
    assert_eq!(
        (after.cwnd, after.ssthresh),
        ((full.cwnd + 10_000) / 2, full.cwnd / 4 * 3)
    );
}

/// A segment every 50 ms, so that it is never idle for an RTO, which would be another rule; until the window has not been
/// used for one.
fn after_little_use(s: &mut Script, offset: &mut u64) -> Snapshot {
    let full = s.connection().snapshot().cwnd;
    let mut waited = ms(0);
    loop {
        s.now += ms(50);
        waited += ms(50);
        let rto = s.connection().snapshot().rto;
        write(s, *offset, 1000);
        let snapshot = s.connection().snapshot();
        if waited >= rto {
            assert!(waited >= ms(200), "RTO.Min");
            return snapshot;
        }
        assert_eq!(snapshot.cwnd, full, "after {waited}");
        *offset += 1000;
        ack(s, *offset as u32 + 1, &[]);
    }
}

#[test]
fn reordering_that_was_seen_raises_the_threshold_to_its_distance() {
    // RFC 6675 section 4's DupThresh, adapted as Linux does (tcp_check_sack_reordering; `fackets_out - reord` before 4.15):
    // what the segment that was late and the highest span, both counted
    let mut s = ten(standard());
    assert_eq!(s.connection().snapshot().reordering, 3);
    ack(&mut s, 1, &[(6001, 7001)]);
    ack(&mut s, 1, &[(1001, 2001), (6001, 7001)]);
    assert_eq!(s.connection().snapshot().reordering, 6, "late, and reported");
    let mut s = ten(standard());
    ack(&mut s, 1, &[(6001, 7001)]);
    ack(&mut s, 1001, &[(6001, 7001)]);
    assert_eq!(s.connection().snapshot().reordering, 7, "late, and acknowledged");
}

#[test]
fn a_syn_that_was_lost_twice_leaves_one_segment_to_begin_with() {
    for (lost, segments) in [(0, 10), (1, 10), (2, 1)] {
        let mut s = Script::listening(standard());
        let mut syn = s.segment(SYN, 0, 0, 0);
        syn.options.set_mss(1000);
        s.give(syn);
        s.iss = s.only().seq.0;
        for n in 0..lost {
            assert_eq!(s.wait(Duration::from_secs(1 << n)).len(), 1);
        }
        s.give(s.segment(ACK, 1, 1, 0));
        assert_eq!(write(&mut s, 0, 20_000).len(), segments, "{lost} lost");
    }
}

#[test]
fn the_user_is_told_of_room_when_a_third_of_the_buffer_is_free_and_of_the_end() {
    let mut s = sender(Config {
        send_buffer: 6000,
        ..standard()
    });
    let data = |len| Data::Synthetic { offset: 0, len };
    assert_eq!(s.command(|c| c.send(&data(9000))), Ok(6000));
    assert_eq!(s.command(|c| c.send(&data(1))), Err(SendError::BufferFull));
    assert_eq!(s.command(|c| c.send(&data(0))), Ok(0));
    assert_eq!(s.sent().len(), 6);
    ack(&mut s, 1001, &[]);
    assert_eq!(s.events, []);
    ack(&mut s, 2001, &[]);
    assert_eq!(s.events, [Event::Writable]);
    ack(&mut s, 5001, &[]);
    assert_eq!(
        s.events,
        [Event::Writable],
        "it was told, and has written nothing"
    );
    ack(&mut s, 6001, &[]);
    assert_eq!(s.events, [Event::Writable, Event::SendersDry]);
    // all or nothing, but for what is longer than the buffer, which goes when it is empty
    assert_eq!(s.command(|c| c.send_all(data(7000))), Ok(()));
    assert_eq!(s.command(|c| c.send_all(data(1))), Err(SendError::BufferFull));
    assert_eq!(s.command(|c| c.send_room()), 0);
}
