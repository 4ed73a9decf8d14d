//! The retransmission timer (RFC 6298), and what is found needless afterwards (RFC 5682, RFC 3708).

use crate::common::tcp_script::{ACK, SYN, Script, ms};
use crate::common::tcp_sender::*;
use segue_proto::Duration;
use segue_proto::tcp::{Config, State};
use segue_wire::tcp::{TcpOptions, Timestamps};

#[test]
fn timeouts_double_and_the_first_segment_goes_alone() {
    let mut s = ten(standard());
    for (number, timeout) in [RTO, 2 * RTO, 4 * RTO].into_iter().enumerate() {
        assert_eq!(wait(&mut s, ms(timeout - 1)), NONE);
        assert_eq!(wait(&mut s, ms(1)), [(1, 1000)]);
        assert_eq!(s.connection().counters().recovery.timeouts, number as u64 + 1);
        let snapshot = s.connection().snapshot();
        assert_eq!(
            (snapshot.cwnd, snapshot.ssthresh),
            (1000, 5000),
            "ssthresh is cut once"
        );
    }
    // slow start: what the peer does not acknowledge was lost
    assert_eq!(ack(&mut s, 1001, &[]), [(1001, 1000), (2001, 1000)]);
    assert_eq!(
        s.connection().snapshot().rto,
        ms(8 * RTO),
        "a retransmission measures nothing (section 5, after rule 5.7)"
    );
    assert_eq!(
        ack(&mut s, 3001, &[]),
        [(3001, 1000), (4001, 1000), (5001, 1000), (6001, 1000)]
    );
    // all of it, and then news
    ack(&mut s, 10_001, &[]);
    assert_eq!(write(&mut s, 10_000, 1000), [(10_001, 1000)]);
    s.now += ms(RTT);
    ack(&mut s, 11_001, &[]);
    assert!(
        s.connection().snapshot().rto <= ms(RTO),
        "and the back-off is over"
    );
}

#[test]
fn a_duplicate_acknowledgement_between_two_timeouts_does_not_have_ssthresh_cut_again() {
    // RFC 5681 section 3.1: it is held constant where the segment had been sent again by the timer
    let mut s = ten(standard());
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    s.now += ms(RTT);
    ack(&mut s, 1, &[]);
    assert_eq!(wait(&mut s, ms(2 * RTO - RTT)), [(1, 1000)]);
    assert_eq!(s.connection().snapshot().ssthresh, 5000);
}

#[test]
fn the_timer_begins_anew_with_every_acknowledgement_of_new_data() {
    // RFC 6298 section 5.3
    let mut s = ten(standard());
    s.now += ms(RTO - 1);
    ack(&mut s, 1, &[]);
    assert_eq!(wait(&mut s, ms(1)), [(1, 1000)], "a duplicate is none");
    let mut s = ten(standard());
    s.now += ms(RTT);
    ack(&mut s, 1001, &[]);
    let rto = s.connection().snapshot().rto;
    assert_eq!(wait(&mut s, rto - ms(1)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(1001, 1000)]);
    // section 5.2: none runs when all is acknowledged
    s.now += ms(1);
    ack(&mut s, 10_001, &[]);
    assert_eq!(wait(&mut s, Duration::from_secs(30)), NONE);
}

#[test]
fn what_was_sent_twice_is_not_measured_unless_its_timestamp_tells() {
    // RFC 6298 section 3, Karn's algorithm; RFC 7323 section 4
    let mut s = sender(standard());
    write(&mut s, 0, 1000);
    wait(&mut s, ms(RTO));
    s.now += ms(20);
    ack(&mut s, 1001, &[]);
    assert_eq!(s.connection().snapshot().srtt, Some(ms(RTT)));
    let stamps = |value, echo| Some(Timestamps { value, echo });
    let config = Config {
        timestamps: true,
        ..standard()
    };
    let mut s = sender_with(config, TcpOptions::with_timestamps(stamps(9, 0)));
    s.write(0, 500);
    assert_eq!(s.sent().len(), 1);
    let again = s.wait(s.connection().snapshot().rto);
    let echo = again[0].options.timestamps.expect("on every segment").value;
    s.timestamps = stamps(10, echo);
    s.now += ms(20);
    let before = s.connection().snapshot().srtt.expect("of the handshake");
    ack(&mut s, 501, &[]);
    assert_eq!(
        s.connection().snapshot().srtt,
        Some(before - before / 8 + ms(20) / 8)
    );
}

#[test]
fn after_a_syn_that_was_sent_again_the_timeout_begins_at_3_s() {
    // RFC 6298 section 5, rule 5.7: without timestamps nothing says which of them was acknowledged
    let mut s = Script::listening(standard());
    s.give(s.segment(SYN, 0, 0, 0));
    s.iss = s.only().seq.0;
    assert_eq!(s.wait(ms(1000)).len(), 1);
    s.give(s.segment(ACK, 1, 1, 0));
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.connection().snapshot().rto, ms(3000));
}

fn with_frto() -> Config {
    Config {
        frto: true,
        undo: true,
        ..standard()
    }
}

#[test]
fn after_a_timeout_new_data_is_sent_first_and_its_fate_tells_whether_it_was_spurious() {
    // RFC 5682 section 3.1, steps 2b and 3b
    let mut s = ten(with_frto());
    s.write(10_000, 10_000);
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    assert_eq!(ack(&mut s, 2001, &[])[..2], [(10_001, 1000), (11_001, 1000)]);
    ack(&mut s, 3001, &[]);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.recovery.spurious_timeouts, counters.recovery.undone),
        (1, 1)
    );
    assert_eq!(counters.recovery.retransmissions, 1);
    assert!(s.connection().snapshot().cwnd >= 10_000);
}

#[test]
fn a_duplicate_after_the_new_data_says_that_the_timeout_was_right() {
    // RFC 5682 section 3.1, step 3a
    let mut s = ten(with_frto());
    s.write(10_000, 10_000);
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    let new = ack(&mut s, 1001, &[]);
    assert_eq!(new[..2], [(10_001, 1000), (11_001, 1000)]);
    let again = ack(&mut s, 1001, &[(10_001, 11_001)]);
    assert_eq!(again.first(), Some(&(1001, 1000)));
    let counters = s.connection().counters();
    assert_eq!(
        (counters.recovery.spurious_timeouts, counters.recovery.undone),
        (0, 0)
    );
    assert_eq!(s.connection().snapshot().ssthresh, 5000);
}

#[test]
fn a_recovery_whose_retransmissions_all_arrived_twice_is_taken_back() {
    // RFC 3708
    for (duplicates, undone) in [(1, 1), (0, 0)] {
        let mut s = ten(Config {
            undo: true,
            ..standard()
        });
        assert_eq!(ack(&mut s, 1, &[(1001, 4001)]), [(1, 1000)]);
        ack(&mut s, 4001, &[]);
        for _ in 0..duplicates {
            ack(&mut s, 4001, &[(1, 1001)]);
        }
        ack(&mut s, 10_001, &[]);
        assert_eq!(s.connection().counters().recovery.undone, undone);
        let snapshot = s.connection().snapshot();
        assert_eq!(snapshot.cwnd >= 10_000, undone == 1, "{snapshot:?}");
    }
}
