//! What a receiver reports, when a connection is over for it, and what it counts.

use crate::common::tcp_script::{ACK, OWN, PEER, SYN, Script};
use crate::common::tcp_sender::*;
use segue_proto::Duration;
use segue_proto::tcp::{Config, Event, SendError, State};
use segue_wire::Data;
use segue_wire::tcp::{TcpOptions, Timestamps};
use std::net::Ipv6Addr;

#[test]
fn blocks_beyond_gaps_are_reported_the_latest_first() {
    // RFC 2018 section 4; timestamps leave room for three
    for (timestamps, most) in [(false, 4), (true, 3)] {
        let stamps = timestamps.then_some(Timestamps { value: 1, echo: 0 });
        let config = Config {
            timestamps,
            ..standard()
        };
        let mut s = sender_with(config, TcpOptions::with_timestamps(stamps));
        let mut expected: Vec<(u32, u32)> = Vec::new();
        let blocks = |s: &mut Script, seq: u32, len: u32| -> Vec<(u32, u32)> {
            s.give(s.segment(ACK, seq, 1, len));
            let irs = crate::common::tcp_script::IRS;
            let answer = s.only();
            let found = answer.options.sack_blocks().iter();
            found.map(|b| (b.left.0 - irs, b.right.0 - irs)).collect()
        };
        for at in [2001, 6001, 4001, 10_001, 8001] {
            expected.insert(0, (at, at + 1000));
            expected.truncate(most);
            assert_eq!(blocks(&mut s, at, 1000), expected);
        }
        // RFC 2883 section 4: a duplicate first, and the block that it is in
        let twice = blocks(&mut s, 4001, 1000);
        assert_eq!(twice[..2], [(4001, 5001), (4001, 5001)]);
        assert_eq!(twice.len(), most);
        // it is reported once
        assert_eq!(blocks(&mut s, 12_001, 1000)[0], (12_001, 13_001));
        assert_eq!(blocks(&mut s, 1, 1000)[0], (12_001, 13_001));
        // of what is acknowledged already
        assert_eq!(blocks(&mut s, 1, 1000)[0], (1, 1001));
    }
}

#[test]
fn time_wait_begins_anew_with_the_peer_s_fin() {
    // RFC 9293 section 3.10.7.4, eighth
    let fin = segue_wire::tcp::TcpFlags::FIN;
    let mut s = sender(standard());
    s.command(|c| c.close());
    assert_eq!(s.sent().len(), 1);
    s.give(s.segment(ACK, 1, 2, 0));
    assert_eq!(s.state(), State::FinWait2);
    s.wait(Duration::from_secs(59));
    s.give(s.segment(ACK, 1, 2, 10));
    s.wait(Duration::from_secs(59));
    assert_eq!(s.state(), State::FinWait2, "data is a sign of life");
    s.give(s.segment(ACK | fin, 11, 2, 0));
    assert_eq!(s.only().ack.0.wrapping_sub(crate::common::tcp_script::IRS), 12);
    assert_eq!(s.state(), State::TimeWait);
    s.wait(Duration::from_secs(40));
    s.give(s.segment(ACK | fin, 11, 2, 0));
    assert_eq!(s.sent().len(), 1, "the acknowledgement was lost");
    s.wait(Duration::from_secs(59));
    assert_eq!(s.state(), State::TimeWait);
    s.wait(Duration::from_secs(1));
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn a_peer_that_never_closes_is_not_waited_for_in_fin_wait_2() {
    let mut s = sender(standard());
    s.command(|c| c.close());
    s.sent();
    s.give(s.segment(ACK, 1, 2, 0));
    s.wait(Duration::from_secs(60));
    assert_eq!(s.events.last(), Some(&Event::TimedOut));
}

#[test]
fn a_timestamp_may_be_older_after_24_days() {
    // RFC 7323 section 5.5
    let stamps = |value| Some(Timestamps { value, echo: 0 });
    for (days, taken) in [(23, 0), (25, 100)] {
        let config = Config {
            timestamps: true,
            ..standard()
        };
        let mut s = sender_with(config, TcpOptions::with_timestamps(stamps(1 << 31)));
        s.now += Duration::from_secs(days * 86_400);
        s.timestamps = stamps(1000);
        s.give(s.segment(ACK, 1, 1, 100));
        assert_eq!(
            s.connection().counters().data_bytes_received,
            taken,
            "{days} days"
        );
    }
}

#[test]
fn segments_between_what_cannot_be_two_ends_are_counted_and_not_answered() {
    // RFC 9293 section 3.9.2.3 and MUST-57: not from or to a multicast address; nor without ports
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    for (from, to) in [(group, OWN), (Ipv6Addr::UNSPECIFIED, OWN), (PEER, group)] {
        let mut s = Script::listening(standard());
        let syn = s.segment(SYN, 0, 0, 0);
        s.give_between(from, to, syn);
        assert!(s.sent().is_empty());
        assert_eq!(s.endpoint.counters().not_unicast, 1);
    }
    for (source, destination) in [(0, 80), (4000, 0)] {
        let mut s = Script::listening(standard());
        let mut syn = s.segment(SYN, 0, 0, 0);
        (syn.source_port, syn.destination_port) = (source, destination);
        s.give(syn);
        assert!(s.sent().is_empty());
        assert_eq!(s.endpoint.counters().port_zero, 1);
    }
    let mut s = Script::listening(standard());
    for n in 1..=2 {
        s.give(s.segment(ACK, 5, 5, 0));
        assert_eq!(s.sent().len(), 1);
        assert_eq!(s.endpoint.counters().resets_sent, n);
        s.give(s.segment(segue_wire::tcp::TcpFlags::RST, 5, 5, 0));
        assert!(s.sent().is_empty());
        assert_eq!(s.endpoint.counters().stray_resets, n);
    }
}

#[test]
fn a_duplicate_of_the_last_segment_sent_is_one() {
    // RFC 2883 section 4: within the block that follows it
    let mut s = ten(standard());
    ack(&mut s, 1, &[(9001, 10_001), (8001, 10_001)]);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.recovery.dsacks_received, counters.refused.total()),
        (1, 0)
    );
}

#[test]
fn an_old_segment_is_a_duplicate_only_if_there_is_something_in_it() {
    let mut s = sender(standard());
    s.give(s.segment(ACK, 1, 1, 100));
    s.give(s.segment(ACK, 50, 1, 0));
    assert_eq!(s.sent().len(), 1);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.duplicate_segments, counters.refused.outside_window),
        (0, 1)
    );
    s.give(s.segment(ACK, 50, 1, 51));
    assert_eq!(s.sent().len(), 1);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.duplicate_segments, counters.refused.outside_window),
        (1, 1)
    );
}

#[test]
fn nothing_is_taken_behind_a_close_however_early_it_came() {
    // RFC 9293 section 3.10.4, SYN-SENT and SYN-RECEIVED: the FIN goes behind what is queued
    let (mut s, syn) = Script::connecting(standard());
    let data = Data::Synthetic { offset: 0, len: 10 };
    assert_eq!(s.command(|c| c.send(&data)), Ok(10));
    // both ends open at once
    let mut theirs = s.segment(SYN, 0, 0, 0);
    theirs.options.set_mss(1000);
    s.give(theirs);
    s.sent();
    assert_eq!(s.state(), State::SynReceived);
    s.command(|c| c.close());
    assert_eq!(s.command(|c| c.send(&data)), Err(SendError::Closing));
    assert_eq!(s.command(|c| c.send_all(data.clone())), Err(SendError::Closing));
    assert_eq!(syn.data.len(), 0);
    s.give(s.segment(ACK, 1, 1, 0));
    let sent = s.sent();
    assert_eq!(shown(&s, &sent), [(1, 10)]);
    assert!(sent[0].flags.contains(segue_wire::tcp::TcpFlags::FIN));
}
