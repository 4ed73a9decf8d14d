//! Times without new data that ended, and what held the data up.

use super::dead::*;
use super::*;
use crate::record::{FlowState, Outage};

const ACK: u8 = 16;

/// A download whose link is down from one second on, with these retransmissions (milliseconds), until the last of them is
/// acknowledged after 20 ms; then ten more segments.
fn healed(retransmissions: &[u64]) -> Vec<(u64, Vec<u8>)> {
    let mut packets = download(At::Sender, retransmissions);
    let back_ms = retransmissions[retransmissions.len() - 1];
    packets.push(((back_ms + 20) * MS, from_client(900, 10_000, ACK)));
    for n in 0..10u32 {
        let ms = back_ms + 21 + u64::from(n) * 10;
        packets.push((ms * MS, from_server(10_000 + n * 100, ACK, 100)));
        packets.push(((ms + 20) * MS, from_client(900, 10_100 + n * 100, ACK)));
    }
    packets.sort_by_key(|p| p.0);
    packets
}

fn only(outages: &[Outage]) -> Outage {
    let [outage] = outages else {
        panic!("{outages:?}");
    };
    *outage
}

#[test]
fn an_outage_that_healed_is_told_at_the_sender_and_by_both_ends() {
    let there = healed(&BACKED_OFF);
    // at the receiver the last of them arrives after 10 ms
    let mut here = download(At::Receiver, &[]);
    here.push((10_310 * MS, from_server(9700, ACK, 100)));
    here.push((10_310 * MS + 1, from_client(900, 10_000, ACK)));
    for n in 0..10u32 {
        let ms = 10_331 + u64::from(n) * 10;
        here.push((ms * MS, from_server(10_000 + n * 100, ACK, 100)));
        here.push((ms * MS + 1, from_client(900, 10_100 + n * 100, ACK)));
    }
    for (captures, since_s, until_s) in [
        // from one acknowledgement to the next
        (vec![raw(&there)], 0.980_000_001, 10.32),
        (vec![cooked(v6(2, 2), &there)], 0.980_000_001, 10.32),
        // from one arrival to the next
        (
            vec![cooked(v6(1, 1), &here), cooked(v6(2, 2), &there)],
            0.97,
            10.31,
        ),
    ] {
        let (flow, analysis) = first_end(&captures);
        let end = &flow.forward.end;
        assert_eq!(end.state, FlowState::Active);
        let outage = only(&end.outages);
        near(Some(outage.since_s), since_s);
        near(Some(outage.duration_s), until_s - since_s);
        assert!(!outage.censored && !end.censored && end.silence_s.is_none());
        near(Some(end.longest_gap_s), until_s - since_s);
        near(end.longest_gap_at_s, since_s);
        assert_eq!((&flow.end, &flow.reverse.end.outages), (end, &vec![]));
        assert!(analysis.limits.is_empty());
    }
    // at the receiver alone nothing tells that anything was to come
    let (flow, _) = first_end(&[cooked(v6(1, 1), &here)]);
    assert_eq!(flow.forward.end.outages, []);
    near(flow.forward.end.longest_gap_at_s, 0.96);
}

#[test]
fn where_arrivals_are_seen_it_is_one_of_them_that_ends_an_outage() {
    // the acknowledgement of what arrived last is lost, and comes again 100 ms before anything new arrives
    let mut there = healed(&BACKED_OFF);
    let mut here = download(At::Receiver, &[]);
    there.retain(|(at, p)| *at != 980 * MS + 1 || p[8..24] != v6(1, 1));
    let again = from_client(900, 9700, ACK);
    here.push((10_190 * MS, again.clone()));
    there.push((10_200 * MS, again));
    here.push((10_310 * MS, from_server(9700, ACK, 100)));
    here.push((10_310 * MS + 1, from_client(900, 10_000, ACK)));
    there.sort_by_key(|p| p.0);
    let (flow, _) = first_end(&[cooked(v6(1, 1), &here), cooked(v6(2, 2), &there)]);
    let outage = only(&flow.forward.end.outages);
    near(Some(outage.since_s), 0.97);
    near(Some(outage.duration_s), 10.31 - 0.97);
    // the sender alone knows when it was told
    let (flow, _) = first_end(&[cooked(v6(2, 2), &there)]);
    let outage = only(&flow.forward.end.outages);
    near(Some(outage.since_s + outage.duration_s), 10.2);
}

#[test]
fn attempts_make_an_outage_that_would_make_a_flow_dead() {
    let found = |retransmissions: &[u64]| {
        let (flow, _) = first_end(&[raw(&healed(retransmissions))]);
        flow.forward.end.outages.len()
    };
    // the first attempt without an answer left at 990 ms: a second is not longer than a second
    assert_eq!((found(&[1300, 1990]), found(&[1300, 1991])), (0, 1));
    // an application that had nothing to send for ten seconds
    let mut packets = healed(&[1300]);
    packets.push((12_000 * MS, from_server(11_000, ACK, 100)));
    packets.push((12_020 * MS, from_client(900, 11_100, ACK)));
    let (flow, _) = first_end(&[raw(&packets)]);
    assert_eq!(flow.forward.end.outages, []);
    near(flow.forward.end.longest_gap_at_s, 1.411);
    // one round trip of a slow path is shorter than its RTO
    let slow = |trips: u64| {
        let mut packets = Vec::new();
        for n in 0..40u32 {
            let sent_ms = u64::from(n) * 100;
            packets.push((sent_ms * MS, from_server(n * 100, ACK, 100)));
            packets.push(((sent_ms + trips) * MS, from_client(900, n * 100 + 100, ACK)));
        }
        packets.sort_by_key(|p| p.0);
        let (flow, _) = first_end(&[raw(&packets)]);
        flow.forward.end.outages.len()
    };
    assert_eq!((slow(900), slow(2500)), (0, 0));
}

#[test]
fn a_dead_flow_has_its_silence_apart_from_its_outages() {
    // out from 0.98 s to 10.32 s, and dead from 10.431 s on
    let mut packets = healed(&BACKED_OFF);
    packets.extend([10_500u64, 11_000, 12_000].map(|ms| (ms * MS, from_server(11_000, ACK, 100))));
    for (seconds, longest_at, censored) in [(15, 0.980_000_001, false), (600, 10.431, true)] {
        let (flow, analysis) = first_end(&[raw(&until(seconds, packets.clone()))]);
        let end = &flow.forward.end;
        let silence = seconds as f64 - 10.431;
        assert_eq!((end.state, end.censored), (FlowState::Dead, censored));
        near(end.dead_since_s, 10.431);
        near(end.silence_s, silence);
        near(end.longest_gap_at_s, longest_at);
        near(Some(end.longest_gap_s), silence.max(10.32 - 0.980_000_001));
        let told: Vec<_> = end.outages.iter().map(|o| o.censored).collect();
        assert_eq!(told, [false, true]);
        near(Some(end.outages[1].since_s), 10.431);
        near(Some(end.outages[1].duration_s), silence);
        // and the list of pauses has both lengths
        let pauses = analysis.interruptions.iter().filter(|i| i.flow == flow.id);
        let censored: Vec<_> = pauses.filter(|i| i.censored).collect();
        assert_eq!((censored.len(), censored[0].retransmissions), (1, 3));
        near(Some(censored[0].duration_s), silence);
    }
}

#[test]
fn what_a_receiver_refused_in_the_end_was_an_outage_until_then() {
    let mut packets = download(At::Sender, &BACKED_OFF);
    packets.push((12_000 * MS, from_client(900, 0, 4)));
    let (flow, _) = first_end(&[raw(&until(600, packets))]);
    let end = &flow.forward.end;
    assert_eq!((end.state, end.silence_s), (FlowState::Closed, None));
    let outage = only(&end.outages);
    near(Some(outage.since_s), 0.980_000_001);
    near(Some(outage.duration_s), 12.0 - 0.980_000_001);
    assert!(outage.censored);
}

/// DATA whose answers stop at one second, tried again over another address of the peer from `elsewhere_ms` on, until it is
/// acknowledged at six seconds; or never.
fn moved(elsewhere_ms: u64, comes_back: bool) -> Vec<(u64, Vec<u8>)> {
    let mut chunks = acknowledged_data();
    for ms in [1500u64, 2500, 4500, 5900] {
        chunks.push((ms, true, chunk(0, &[1010, 0, 0], 100)));
    }
    if comes_back {
        chunks.push((6000, false, chunk(3, &[1010, 5000, 0], 0)));
        for n in 0..5u32 {
            let ms = 6001 + u64::from(n) * 100;
            chunks.push((ms, true, chunk(0, &[1011 + n, 0, 0], 100)));
            chunks.push((ms + 20, false, chunk(3, &[1011 + n, 5000, 0], 0)));
        }
    }
    let mut packets = association(&chunks);
    for (at, packet) in &mut packets {
        if *at >= elsewhere_ms * MS && packet[8..24] == v6(1, 1) {
            packet[24..40].copy_from_slice(&v6(3, 9));
        }
    }
    packets
}

#[test]
fn what_a_handover_accounts_for_is_no_outage_beside_it() {
    // none, then with the move in it, then with a move long after
    for (elsewhere_ms, handovers, outages) in [(60_000, 0, 1), (2500, 1, 0), (6201, 1, 1)] {
        let (flow, analysis) = first_end(&[raw(&moved(elsewhere_ms, true))]);
        assert_eq!(analysis.handovers.len(), handovers, "{elsewhere_ms}");
        let found = &flow.forward.end.outages;
        assert_eq!(found.len(), outages, "{elsewhere_ms}: {found:?}");
        near(Some(flow.forward.end.longest_gap_s), 6.0 - 0.92);
    }
    // the silence of a flow that died with its move is the handover's
    for (elsewhere_ms, handovers, outages) in [(60_000, 0, 1), (2500, 1, 0)] {
        let packets = until(100, moved(elsewhere_ms, false));
        let (flow, analysis) = first_end(&[raw(&packets)]);
        assert_eq!(analysis.handovers.len(), handovers);
        let end = &flow.forward.end;
        assert_eq!((end.state, end.outages.len()), (FlowState::Dead, outages));
        near(end.silence_s, 100.0 - 0.92);
    }
}

#[test]
fn the_longest_of_many_outages_are_kept_and_the_others_counted() {
    // 70 of 3 s, but for the twentieth of 2 s and the last of 8 s
    let mut packets = Vec::new();
    let mut ms = 0;
    for n in 0..70u32 {
        let out_ms = match n {
            19 => 2000,
            69 => 8000,
            _ => 3000,
        };
        packets.push((ms * MS, from_server(n * 100, ACK, 100)));
        packets.push(((ms + 10) * MS, from_client(900, n * 100 + 100, ACK)));
        packets.push(((ms + 20) * MS, from_server(n * 100 + 100, ACK, 100)));
        packets.push(((ms + out_ms - 10) * MS, from_server(n * 100 + 100, ACK, 100)));
        ms += out_ms;
    }
    packets.push((ms * MS, from_client(900, 7100, ACK)));
    let (flow, analysis) = first_end(&[raw(&packets)]);
    let outages = &flow.forward.end.outages;
    assert_eq!(outages.len(), 64);
    assert_eq!(analysis.limits["outages-beyond-limit"], 6);
    assert!(outages.is_sorted_by(|a, b| a.since_s < b.since_s));
    near(Some(outages[63].duration_s), 7.99);
    assert!(outages.iter().all(|o| o.duration_s > 2.0));
}

#[test]
fn a_pause_full_of_retransmissions_is_the_networks_wherever_it_was_captured() {
    let first = |packets: &[(u64, Vec<u8>)]| {
        let (_, analysis) = first_end(&[raw(packets)]);
        let i = &analysis.interruptions[0];
        (i.retransmissions, i.ended_by_retransmission, i.censored)
    };
    // five times again, and new data ends it
    assert_eq!(first(&healed(&BACKED_OFF)), (5, false, false));
    assert_eq!(first(&healed(&[1300])), (1, false, false));
    // a tail that is repeated too early, and then nothing to send: more than the half of it is the application's
    let idle = |again_ms: u64, bytes: usize| {
        let mut packets = Vec::new();
        for (ms, seq, len) in [
            (0, 0, 100),
            (10, 100, 100),
            (again_ms, 200 - bytes as u32, bytes),
            (4010, 200, 100),
        ] {
            packets.push((ms * MS, from_server(seq, ACK, len)));
            packets.push(((ms + 5) * MS, from_client(900, seq + len as u32, ACK)));
        }
        first(&packets).0
    };
    assert_eq!((idle(2010, 100), idle(2009, 100)), (1, 0));
    // a keepalive repeats a byte
    assert_eq!((idle(3000, 1), idle(3000, 2)), (0, 1));
    // at the receiver, what comes again without being new
    let mut here = download(At::Receiver, &[]);
    here.truncate(20);
    for ms in [400u64, 900] {
        here.push((ms * MS, from_server(900, ACK, 100)));
        here.push((ms * MS + 1, from_client(900, 1000, ACK)));
    }
    here.push((1000 * MS, from_server(1000, ACK, 100)));
    assert_eq!(first(&here), (2, false, false));
}
