//! RFC 9260 section 7: congestion control.

use segue_conformance::expect;
use segue_conformance::script::chunks::{sack, sack_with_gaps};
use segue_conformance::script::{Script, Sent, ms, quiet};
use segue_proto::sctp::{Config, PathSnapshot};
use segue_wire::Tsn;
use segue_wire::sctp::Chunk;

/// User bytes of a DATA chunk that fills a packet, the chunk itself, and PMDCS.
const FULL: usize = 1432;
const CHUNK: u32 = 1448;

/// An association whose window is the only limit.
fn unbridled() -> Script {
    Script::established(Config {
        max_burst: None,
        ..quiet()
    })
}

fn path(t: &Script) -> PathSnapshot {
    t.association().paths().next().expect("path")
}

fn tsns(packets: &[Sent]) -> Vec<Tsn> {
    packets
        .iter()
        .flat_map(|p| &p.chunks)
        .filter_map(|c| match c {
            Chunk::Data(chunk) => Some(chunk.tsn),
            _ => None,
        })
        .collect()
}

/// The user has sent `n` full chunks, and what the window let go is taken off.
fn sending(n: usize) -> (Script, u32) {
    let mut t = unbridled();
    for _ in 0..n {
        t.user_sends(FULL);
    }
    let out = tsns(&t.take_all()).len() as u32;
    (t, out)
}

#[test]
fn s7_2_1_the_initial_window_is_4404_bytes_at_an_mtu_of_1500() {
    // min(4 PMDCS, max(2 PMDCS, 4404)); a packet more may pass it by less than its own size (section 6.1 rule B)
    let (t, out) = sending(20);
    assert!((4344..=4404).contains(&path(&t).cwnd), "{}", path(&t).cwnd);
    assert!(path(&t).flightsize < path(&t).cwnd + CHUNK);
    assert_eq!(out, 4);
}

#[test]
fn s7_2_1_slow_start_adds_what_was_acknowledged_but_no_more_than_one_packet_a_sack() {
    let (mut t, _) = sending(20);
    let before = path(&t).cwnd;
    t.send([sack(t.our_tsn)]);
    let one = path(&t).cwnd;
    assert!(one > before && one - before <= CHUNK + 4, "{before} {one}");
    t.send([sack(t.our_tsn.add(3))]);
    let two = path(&t).cwnd;
    assert!(two > one && two - one <= CHUNK + 4, "{one} {two}");
}

#[test]
fn s7_2_1_a_window_that_is_not_used_does_not_grow() {
    let mut t = unbridled();
    let before = path(&t).cwnd;
    for n in 0..5 {
        t.user_sends(100);
        t.send([sack(t.our_tsn.add(n))]);
    }
    assert_eq!(path(&t).cwnd, before);
}

#[test]
fn s7_2_1_a_sack_that_does_not_advance_the_cumulative_tsn_ack_opens_nothing() {
    let (mut t, _) = sending(20);
    let before = path(&t).cwnd;
    t.send([sack_with_gaps(t.our_tsn.previous(), 100_000, &[(2, 2)])]);
    assert_eq!(path(&t).cwnd, before);
}

#[test]
fn s7_2_1_after_a_timeout_ssthresh_is_half_the_window_and_at_least_four_packets_and_cwnd_is_one() {
    // section 7.2.3
    let (mut t, _) = sending(4);
    t.wait(ms(1000));
    let path = path(&t);
    assert!(
        (4 * 1444..=4 * 1500).contains(&path.ssthresh),
        "{}",
        path.ssthresh
    );
    assert!((1444..=1500).contains(&path.cwnd), "{}", path.cwnd);
}

#[test]
fn s7_2_2_in_congestion_avoidance_a_window_of_acknowledgements_adds_one_packet() {
    let (mut t, _) = sending(60);
    t.wait(ms(1000));
    t.forget();
    // slow start up to ssthresh, then on
    let mut acknowledged = 0;
    while path(&t).cwnd <= path(&t).ssthresh {
        acknowledged += 1;
        t.send([sack(t.our_tsn.add(acknowledged - 1))]);
    }
    let before = path(&t).cwnd;
    let mut bytes = 0;
    while path(&t).cwnd == before {
        t.send([sack(t.our_tsn.add(acknowledged))]);
        acknowledged += 1;
        bytes += CHUNK;
    }
    assert!(
        bytes + CHUNK >= before && bytes <= before + 2 * CHUNK,
        "{bytes} of {before}"
    );
    assert!((1444..=1500).contains(&(path(&t).cwnd - before)));
}

#[test]
fn s7_2_4_three_missing_reports_make_a_fast_retransmission_that_cuts_the_window_once() {
    let (mut t, out) = sending(4);
    assert_eq!(out, 4);
    let lost = t.our_tsn;
    for n in 2..=3 {
        t.send([sack_with_gaps(lost.previous(), 100_000, &[(2, n)])]);
        assert!(t.take_all().is_empty(), "after {} reports", n - 1);
    }
    t.send([sack_with_gaps(lost.previous(), 100_000, &[(2, 4)])]);
    assert_eq!(tsns(&t.take_all()), [lost]);
    let after = path(&t);
    assert_eq!(after.cwnd, after.ssthresh);
    assert!(
        (4 * 1444..=4 * 1500).contains(&after.ssthresh),
        "the floor of four packets"
    );
    assert_eq!(t.association().counters().fast_retransmits, 1);
    // it is not retransmitted so a second time
    for _ in 0..6 {
        t.send([sack_with_gaps(lost.previous(), 100_000, &[(2, 4)])]);
    }
    assert!(tsns(&t.take_all()).is_empty());
    assert_eq!(path(&t).cwnd, after.cwnd);
}

#[test]
fn s7_2_4_only_what_lies_before_the_highest_newly_acknowledged_tsn_counts_as_missing() {
    // HTNA: a SACK that newly acknowledges TSN 1 says nothing of TSN 2
    let (mut t, _) = sending(4);
    let first = t.our_tsn;
    t.send([sack_with_gaps(first.previous(), 100_000, &[(4, 4)])]);
    for _ in 0..5 {
        t.send([sack_with_gaps(first.previous(), 100_000, &[(4, 4)])]);
    }
    assert!(t.take_all().is_empty());
    assert_eq!(t.association().counters().fast_retransmits, 0);
}

#[test]
fn s7_2_4_t3_starts_anew_when_the_earliest_chunk_is_fast_retransmitted() {
    let (mut t, _) = sending(4);
    t.wait(ms(600));
    for n in 2..=4 {
        t.send([sack_with_gaps(t.our_tsn.previous(), 100_000, &[(2, n)])]);
    }
    t.forget();
    t.silence(ms(999));
    expect!(t, Chunk::Data(chunk) if chunk.tsn == t.our_tsn);
    assert_eq!(t.association().counters().t3_expiries, 1);
}

#[test]
fn s7_2_1_an_idle_window_decays() {
    let (mut t, _) = sending(40);
    let mut acknowledged = 0;
    while acknowledged < 40 {
        acknowledged += 2;
        t.send([sack(t.our_tsn.add(acknowledged - 1))]);
    }
    t.forget();
    let busy = path(&t).cwnd;
    t.wait(ms(60_000));
    t.user_sends(10);
    let idle = path(&t).cwnd;
    assert!(idle < busy, "{idle} {busy}");
    assert!(idle >= 4344);
}
