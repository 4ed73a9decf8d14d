//! How flows end, at each place where they may be captured.

use super::*;
use crate::record::FlowState;

const ACK: u8 = 16;
const FIN: u8 = 1;
const RST: u8 = 4;

/// What happens to a download of a segment every 10 ms whose link dies at one second.
#[derive(Clone, Copy)]
pub(super) enum At {
    /// Sender's side.
    Sender,
    Receiver,
}

const SERVER: (u16, u16) = (2, 2);
const CLIENT: (u16, u16) = (1, 1);

pub(super) fn from_server(seq: u32, flags: u8, data: usize) -> Vec<u8> {
    let segment = tcp((80, 5000), seq, 900, flags, &[], data);
    ipv6(v6(SERVER.0, SERVER.1), v6(CLIENT.0, CLIENT.1), 6, &segment)
}

pub(super) fn from_client(seq: u32, ack: u32, flags: u8) -> Vec<u8> {
    let segment = tcp((5000, 80), seq, ack, flags, &[], 0);
    ipv6(v6(CLIENT.0, CLIENT.1), v6(SERVER.0, SERVER.1), 6, &segment)
}

/// A hundred segments of 100 bytes, 10 ms one way; of the last three nothing arrives. Then the retransmissions, at these times
/// in milliseconds.
pub(super) fn download(place: At, retransmissions: &[u64]) -> Vec<(u64, Vec<u8>)> {
    let mut packets = Vec::new();
    for n in 0..100u32 {
        let sent_ms = u64::from(n) * 10;
        let arrives = n < 97;
        let (data_ms, ack_ms) = match place {
            At::Sender => (sent_ms, sent_ms + 20),
            At::Receiver => (sent_ms + 10, sent_ms + 10),
        };
        if arrives || matches!(place, At::Sender) {
            packets.push((data_ms * MS, from_server(n * 100, ACK, 100)));
        }
        if arrives {
            packets.push((ack_ms * MS + 1, from_client(900, n * 100 + 100, ACK)));
        }
    }
    if matches!(place, At::Sender) {
        packets.extend(
            retransmissions
                .iter()
                .map(|ms| (ms * MS, from_server(9700, ACK, 100))),
        );
    }
    packets.sort_by_key(|p| p.0);
    packets
}

/// Something else that goes on until so many seconds.
pub(super) fn until(seconds: u64, mut packets: Vec<(u64, Vec<u8>)>) -> Vec<(u64, Vec<u8>)> {
    let other = ipv6(v6(7, 7), v6(8, 8), 17, &udp((1, 2), &[0; 9]));
    packets.push((seconds * 1000 * MS, other));
    packets
}

/// As captured on the host with this address, so that each packet says which way it went.
pub(super) fn cooked(host: [u8; 16], packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let frame = |(t, p): &(u64, Vec<u8>)| {
        let kind = if p[8..24] == host { 4 } else { 0 };
        (
            *t,
            [&[0, kind, 0, 1, 0, 6][..], &[9; 8], &[0x86, 0xdd], p].concat(),
        )
    };
    pcap(113, false, true, &packets.iter().map(frame).collect::<Vec<_>>())
}

pub(super) const BACKED_OFF: [u64; 5] = [1300, 1900, 3100, 5500, 10_300];

pub(super) fn first_end(captures: &[Vec<u8>]) -> (Flow, Analysis) {
    let mut analysis = analysed(captures);
    (analysis.flows.remove(0), analysis)
}

pub(super) fn near(left: Option<f64>, right: f64) {
    let left = left.unwrap_or(f64::NAN);
    assert!((left - right).abs() < 1e-6, "{left} s instead of {right} s");
}

#[test]
fn at_the_sender_a_link_that_died_is_an_outage_to_the_end() {
    let packets = until(600, download(At::Sender, &BACKED_OFF));
    for capture in [raw(&packets), cooked(v6(2, 2), &packets)] {
        let (flow, analysis) = first_end(&[capture]);
        let end = &flow.forward.end;
        assert_eq!((end.state, flow.end.state), (FlowState::Dead, FlowState::Dead));
        // what came before the last acknowledgement arrived before that
        near(end.dead_since_s, 0.980_000_001);
        near(Some(end.longest_gap_s), 600.0 - 0.980_000_001);
        assert!(end.censored && flow.end.censored);
        // the two segments under way, and five retransmissions; one left before the acknowledgement came
        assert_eq!(flow.forward.attempts, 1 + 5, "{:#?}", end.last_packets);
        let told = end.last_packets.join("\n");
        for words in [
            "acknowledged all before 9700",
            "100 bytes at 9700 again",
            "10.300000 s",
        ] {
            assert!(told.contains(words), "{told}");
        }
        // it stands first, before a longer pause of others
        let first = &analysis.interruptions[0];
        assert!(
            first.censored && (first.begin_s - 0.980_000_001).abs() < 1e-6,
            "{first:?}"
        );
        assert!(analysis.handovers.is_empty());
        // throughput is over the whole life, the silence included
        let expected = 10_000.0 * 8.0 / 600.0;
        assert!(
            (flow.forward.throughput_bps - expected).abs() < 1e-6,
            "{}",
            flow.forward.throughput_bps
        );
    }
}

#[test]
fn a_capture_that_ends_before_the_sender_gives_up_cannot_tell() {
    let packets = download(At::Sender, &[1300, 1900]);
    let (flow, analysis) = first_end(&[raw(&packets)]);
    assert_eq!(flow.forward.end.state, FlowState::Active);
    assert!(!flow.forward.end.censored && analysis.interruptions.iter().all(|i| !i.censored));
    // exactly a second of attempts is not longer than a second
    let (flow, _) = first_end(&[raw(&download(At::Sender, &[1990]))]);
    assert_eq!(flow.forward.end.state, FlowState::Active);
    let (flow, _) = first_end(&[raw(&download(At::Sender, &[1991]))]);
    assert_eq!(flow.forward.end.state, FlowState::Dead);
    // it goes on trying if it was tried a second before the end, and nobody knows if it was longer ago
    for (last, state) in [
        (2_900_000_000, FlowState::Active),
        (2_900_000_001, FlowState::Unknown),
    ] {
        let mut packets = packets.clone();
        packets.push((last, ipv6(v6(7, 7), v6(8, 8), 17, &udp((1, 2), &[0; 9]))));
        assert_eq!(first_end(&[raw(&packets)]).0.forward.end.state, state);
    }
}

#[test]
fn what_arrived_within_the_last_second_is_active() {
    // at the sender, of what was acknowledged last; at the receiver, of what arrived, and then it knows no more
    for (place, host, last_ns, after) in [
        (At::Sender, v6(2, 2), 980_000_001, FlowState::Idle),
        (At::Receiver, v6(1, 1), 970_000_000, FlowState::Unknown),
    ] {
        let at = |later_ns: u64| {
            let mut packets = download(place, &[]);
            // but for the three segments of which nothing arrives
            packets.retain(|(_, p)| p[8..24] == v6(1, 1) || p[44..48] < 9700u32.to_be_bytes()[..]);
            let other = ipv6(v6(7, 7), v6(8, 8), 17, &udp((1, 2), &[0; 9]));
            packets.push((last_ns + later_ns, other));
            first_end(&[cooked(host, &packets)]).0.forward.end.state
        };
        let states = (at(1_000_000_000), at(1_000_000_001));
        assert_eq!(states, (FlowState::Active, after));
    }
}

#[test]
fn what_its_rto_explains_is_no_death() {
    // acknowledgements come 3 s after the data: an RTO is longer than that
    let mut packets: Vec<_> = (0..100u32)
        .map(|n| (u64::from(n) * 100 * MS, from_server(n * 100, ACK, 100)))
        .collect();
    packets.extend((0..60u32).map(|n| {
        let at = (u64::from(n) * 100 + 3000) * MS + 1;
        (at, from_client(900, n * 100 + 100, ACK))
    }));
    packets.sort_by_key(|p| p.0);
    packets.push((11_500 * MS, from_server(6000, ACK, 100)));
    let (flow, _) = first_end(&[raw(&packets)]);
    assert_eq!(flow.forward.end.state, FlowState::Active);
    assert_eq!(flow.forward.end.outages, []);
    packets.push((17_000 * MS, from_server(6000, ACK, 100)));
    let (flow, _) = first_end(&[raw(&packets)]);
    assert_eq!(flow.forward.end.state, FlowState::Dead);
}

#[test]
fn the_receiver_alone_cannot_tell_and_both_together_know_when_the_last_byte_came() {
    let there = until(600, download(At::Sender, &BACKED_OFF));
    let here = download(At::Receiver, &[]);
    let (sender, receiver) = (cooked(v6(2, 2), &there), cooked(v6(1, 1), &here));
    let (flow, analysis) = first_end(&[cooked(v6(1, 1), &until(600, here))]);
    assert_eq!(flow.forward.vantage, Vantage::Receiver);
    assert_eq!(flow.forward.end.state, FlowState::Unknown);
    assert!(analysis.interruptions.is_empty(), "{:?}", analysis.interruptions);
    for captures in [[receiver.clone(), sender.clone()], [sender, receiver]] {
        let (flow, analysis) = first_end(&captures);
        let end = &flow.forward.end;
        assert_eq!(
            (flow.forward.vantage, end.state),
            (Vantage::Both, FlowState::Dead)
        );
        near(end.dead_since_s, 0.97);
        near(Some(end.longest_gap_s), analysis.duration_s - 0.97);
        assert!(end.censored);
    }
}

#[test]
fn a_receiver_whose_own_keepalives_are_not_answered_knows() {
    let mut here = download(At::Receiver, &[]);
    here.extend([20, 30, 40].map(|s| (s * 1000 * MS, from_client(899, 9700, ACK))));
    let (flow, analysis) = first_end(&[cooked(v6(1, 1), &here)]);
    assert_eq!(flow.forward.end.state, FlowState::Dead);
    near(flow.forward.end.dead_since_s, 0.96);
    assert_eq!(flow.forward.attempts, 3);
    assert!(analysis.interruptions[0].censored);
    // answered, they show that it lives
    let mut answered = Vec::new();
    for packet in here {
        let at = packet.0;
        answered.push(packet);
        if at > 10_000 * MS {
            answered.push((at + MS, from_server(9700, ACK, 0)));
        }
    }
    let (flow, _) = first_end(&[cooked(v6(1, 1), &answered)]);
    assert_eq!(flow.forward.end.state, FlowState::Unknown);
    assert_eq!(flow.reverse.end.state, FlowState::Idle);
}

#[test]
fn what_was_acknowledged_is_idle_and_what_was_ended_is_closed() {
    let mut packets = download(At::Sender, &[]);
    packets.push((1100 * MS, from_client(900, 10_000, ACK)));
    let (flow, _) = first_end(&[raw(&until(600, packets.clone()))]);
    assert_eq!(
        (flow.forward.end.state, flow.end.state),
        (FlowState::Idle, FlowState::Idle)
    );
    assert!(!flow.end.censored && flow.end.dead_since_s.is_none());
    // to the last new byte, not to the last packet
    let expected = 10_000.0 * 8.0 / 0.99;
    assert!((flow.forward.throughput_bps - expected).abs() < 1e-6);
    // keepalives that are answered change nothing, and those that are not do
    let keepalive = from_server(9999, ACK, 0);
    let answer = from_client(900, 10_000, ACK);
    let mut kept = packets.clone();
    for n in 1..5u64 {
        kept.push((n * 10_000 * MS, keepalive.clone()));
        kept.push((n * 10_000 * MS + MS, answer.clone()));
    }
    assert_eq!(first_end(&[raw(&kept)]).0.forward.end.state, FlowState::Idle);
    kept.extend((5..7u64).map(|n| (n * 10_000 * MS, keepalive.clone())));
    let (flow, _) = first_end(&[raw(&kept)]);
    assert_eq!(
        (flow.forward.end.state, flow.forward.attempts),
        (FlowState::Dead, 2)
    );
    near(flow.forward.end.dead_since_s, 1.1);
    // FIN of this end, again and again: its data has arrived
    let mut ended = packets.clone();
    ended.extend([2, 3, 5].map(|s| (s * 1000 * MS, from_server(10_000, FIN | ACK, 0))));
    assert_eq!(first_end(&[raw(&ended)]).0.forward.end.state, FlowState::Closed);
    packets.push((1200 * MS, from_client(900, 10_000, RST | ACK)));
    assert_eq!(first_end(&[raw(&packets)]).0.forward.end.state, FlowState::Closed);
}

#[test]
fn a_sender_that_gives_up_has_not_closed_and_a_receiver_that_refuses_has() {
    let mut packets = download(At::Sender, &BACKED_OFF);
    packets.push((12_000 * MS, from_server(10_000, RST | ACK, 0)));
    let (flow, _) = first_end(&[raw(&until(600, packets.clone()))]);
    assert_eq!(flow.forward.end.state, FlowState::Dead);
    // nobody tried after that
    near(Some(flow.forward.end.longest_gap_s), 12.0 - 0.980_000_001);
    packets.pop();
    packets.push((12_000 * MS, from_client(900, 0, RST)));
    let (flow, _) = first_end(&[raw(&until(600, packets))]);
    assert_eq!(flow.forward.end.state, FlowState::Closed);
}

#[test]
fn a_receiver_that_wants_nothing_is_alive() {
    let mut packets = download(At::Sender, &[1200]);
    let closed = |ack| {
        let mut segment = tcp((5000, 80), 900, ack, ACK, &[], 0);
        segment[14..16].fill(0);
        ipv6(v6(1, 1), v6(2, 2), 6, &segment)
    };
    for n in 2..20u64 {
        packets.push((n * 1000 * MS, from_server(9700, ACK, 1)));
        packets.push((n * 1000 * MS + MS, closed(9700)));
    }
    let (flow, _) = first_end(&[raw(&packets)]);
    assert_eq!(flow.forward.end.state, FlowState::Unknown);
}

#[test]
fn selective_acknowledgements_are_progress() {
    let mut packets = download(At::Sender, &BACKED_OFF);
    // 97 is lost again and again, what comes behind it arrives one by one
    for (n, ms) in (0..).zip([1500, 2500, 3500, 4500, 6000, 10_500]) {
        packets.push((ms * MS, from_server(10_000 + n * 100, ACK, 100)));
        let edge = (10_100 + n * 100).to_be_bytes();
        let option = [&[1, 1, 5, 10][..], &9800u32.to_be_bytes(), &edge].concat();
        let segment = tcp((5000, 80), 900, 9700, ACK, &option, 0);
        packets.push((ms * MS + MS, ipv6(v6(1, 1), v6(2, 2), 6, &segment)));
    }
    packets.sort_by_key(|p| p.0);
    let state = |packets: &[(u64, Vec<u8>)]| first_end(&[raw(packets)]).0.forward.end.state;
    assert_eq!(state(&packets), FlowState::Active);
    assert_eq!(state(&until(600, packets)), FlowState::Unknown);
}

#[test]
fn data_that_nobody_was_ever_seen_to_acknowledge_tells_nothing() {
    let packets: Vec<_> = (0..1000u32)
        .map(|n| (u64::from(n) * 10 * MS, from_server(n * 100, ACK, 100)))
        .collect();
    assert_eq!(
        first_end(&[raw(&packets)]).0.forward.end.state,
        FlowState::Unknown
    );
}

pub(super) fn association(packets: &[(u64, bool, Vec<u8>)]) -> Vec<(u64, Vec<u8>)> {
    let packet = |(ms, forward, chunk): &(u64, bool, Vec<u8>)| {
        let (source, destination, ports, tag) = if *forward {
            (v6(1, 1), v6(2, 2), [0u8, 5, 0, 6], [1u8; 4])
        } else {
            (v6(2, 2), v6(1, 1), [0, 6, 0, 5], [2; 4])
        };
        let sctp = [&ports[..], &tag, &[0; 4], chunk].concat();
        (ms * MS, ipv6(source, destination, 132, &sctp))
    };
    packets.iter().map(packet).collect()
}

pub(super) fn chunk(kind: u8, words: &[u32], data: usize) -> Vec<u8> {
    let len = 4 + 4 * words.len() + data;
    let mut out = vec![kind, 3];
    out.extend((len as u16).to_be_bytes());
    out.extend(words.iter().flat_map(|w| w.to_be_bytes()));
    out.resize(len.next_multiple_of(4), 7);
    out
}

/// DATA and a SACK of each, every 100 ms for a second.
pub(super) fn acknowledged_data() -> Vec<(u64, bool, Vec<u8>)> {
    (0..10u32)
        .flat_map(|n| {
            let ms = u64::from(n) * 100;
            [
                (ms, true, chunk(0, &[1000 + n, 0, 0], 100)),
                (ms + 20, false, chunk(3, &[1000 + n, 5000, 0], 0)),
            ]
        })
        .collect()
}

#[test]
fn heartbeats_without_an_answer_show_a_dead_association() {
    let alive = acknowledged_data();
    let state = |more: &[(u64, bool, Vec<u8>)]| {
        let all = [&alive[..], more].concat();
        let (flow, _) = first_end(&[raw(&until(100, association(&all)))]);
        (flow.forward.end.state, flow.forward.attempts)
    };
    assert_eq!(state(&[]), (FlowState::Idle, 0));
    let heartbeat = |ms| (ms, true, chunk(4, &[0x0001_0008, 5], 0));
    assert_eq!(
        state(&[heartbeat(31_000), heartbeat(33_000)]),
        (FlowState::Dead, 2)
    );
    let answer = (33_020, false, chunk(5, &[0x0001_0008, 5], 0));
    assert_eq!(
        state(&[heartbeat(31_000), heartbeat(33_000), answer]),
        (FlowState::Idle, 0)
    );
    // data, and then ABORT because nothing came back
    let lost = |ms| (ms, true, chunk(0, &[1010, 0, 0], 100));
    let gives_up = [lost(2000), lost(3000), lost(5000), (7000, true, chunk(6, &[], 0))];
    assert_eq!(state(&gives_up), (FlowState::Dead, 3));
    assert_eq!(state(&gives_up[..2]), (FlowState::Unknown, 0));
    let refused = [
        lost(2000),
        lost(3000),
        lost(5000),
        (7000, false, chunk(6, &[], 0)),
    ];
    assert_eq!(state(&refused), (FlowState::Closed, 0));
    assert_eq!(state(&[(2000, true, chunk(7, &[0], 0))]), (FlowState::Closed, 0));
    // gap reports are progress
    let gap = |ms, end: u32| {
        (
            ms,
            false,
            chunk(3, &[1009, 5000, 0x0001_0000, 0x0002_0000 | end], 0),
        )
    };
    let mut holes = vec![lost(2000)];
    for n in 0..4u32 {
        let ms = 2100 + u64::from(n) * 1000;
        holes.push((ms, true, chunk(0, &[1011 + n, 0, 0], 100)));
        holes.push((ms + 20, false, gap(ms, 2 + n).2));
        holes.push(lost(ms + 500));
    }
    assert_eq!(state(&holes).0, FlowState::Unknown);
}

#[test]
fn a_flow_that_died_with_a_move_has_a_handover_that_is_a_lower_bound() {
    // the sender goes over to another address of its peer, where nobody is
    let mut packets = association(&acknowledged_data());
    let (index, elsewhere) = (packets.len(), v6(3, 9));
    packets.extend(association(
        &[1500u64, 2500, 4500, 8500].map(|ms| (ms, true, chunk(0, &[1010, 0, 0], 100))),
    ));
    for (at, packet) in &mut packets[index..] {
        if *at >= 2500 * MS {
            packet[24..40].copy_from_slice(&elsewhere);
        }
    }
    for host in [None, Some(v6(1, 1))] {
        let all = until(100, packets.clone());
        let capture = host.map_or_else(|| raw(&all), |host| cooked(host, &all));
        let (flow, analysis) = first_end(&[capture]);
        assert_eq!(flow.forward.end.state, FlowState::Dead);
        let [handover] = &analysis.handovers[..] else {
            panic!("{:#?}", analysis.handovers);
        };
        let record = &handover.record;
        assert!(record.censored);
        assert_eq!(record.latency_s, None);
        near(Some(record.time), 2.5);
        near(record.interruption_s, 100.0 - 0.92);
        assert_eq!((record.to, record.flow), (Some(elsewhere.into()), Some(flow.id)));
        assert_eq!(record.host, core::net::Ipv6Addr::from(v6(2, 2)).to_string());
        assert!(flow.paths.iter().any(|p| p.id == handover.to_path));
        // it is that, and not a pause beside it
        assert!(analysis.interruptions.iter().all(|i| !i.censored));
    }
}

#[test]
fn of_datagrams_an_answer_that_was_usual_is_missed() {
    let there = |n: u8| ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, 0, &udp((7, 9), &[n; 100]));
    let back = |n: u8| ipv4([10, 0, 0, 2], [10, 0, 0, 1], 17, 0, &udp((9, 7), &[n; 100]));
    let state = |answered: u64, then: u64| {
        let mut packets = Vec::new();
        for n in 0..answered + then {
            packets.push((n * 500 * MS, there(n as u8)));
            if n < answered {
                packets.push((n * 500 * MS + 10 * MS, back(n as u8)));
            }
        }
        let (flow, _) = first_end(&[raw(&packets)]);
        (flow.forward.end.state, flow.forward.end.dead_since_s)
    };
    assert_eq!(state(10, 0).0, FlowState::Active);
    assert_eq!(state(10, 3).0, FlowState::Unknown);
    assert_eq!(state(10, 5), (FlowState::Dead, Some(4.51)));
    // nobody knows whether somebody answers who hardly ever did
    assert_eq!(state(2, 50).0, FlowState::Unknown);
    assert_eq!(state(0, 50).0, FlowState::Unknown);
}

#[test]
fn a_wireguard_peer_that_asks_for_keys_in_vain_is_dead() {
    let message = |kind: u8, len: usize| {
        let mut out = vec![kind, 0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0];
        out.resize(len, 0);
        out
    };
    let there = |data: &[u8]| ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, 0, &udp((7, 51820), data));
    let back = |data: &[u8]| ipv4([10, 0, 0, 2], [10, 0, 0, 1], 17, 0, &udp((51820, 7), data));
    let data = |n: u64| {
        let mut out = vec![4, 0, 0, 0, 8, 0, 0, 0];
        out.extend(n.to_le_bytes());
        out.resize(160, 3);
        out
    };
    let mut packets = vec![(0, there(&message(1, 148))), (10 * MS, back(&message(2, 92)))];
    packets.extend((0..100).map(|n| ((n * 100 + 20) * MS, there(&data(n)))));
    // ten seconds of data one way need no answer
    assert_eq!(
        first_end(&[raw(&packets)]).0.forward.end.state,
        FlowState::Unknown
    );
    packets.push((15_000 * MS, there(&message(1, 148))));
    packets.push((20_000 * MS, there(&message(1, 148))));
    let (flow, _) = first_end(&[raw(&packets)]);
    assert_eq!(flow.forward.end.state, FlowState::Dead);
    near(flow.forward.end.dead_since_s, 0.01);
}

#[test]
fn two_captures_of_one_host_are_said_to_be_that() {
    let packets = until(600, download(At::Sender, &BACKED_OFF));
    let short: Vec<_> = packets[..60].to_vec();
    for captures in [
        [raw(&packets), raw(&short)],
        [cooked(v6(2, 2), &short), cooked(v6(2, 2), &packets)],
    ] {
        let (flow, analysis) = first_end(&captures);
        let kinds: Vec<_> = analysis.warnings.iter().map(|w| w.kind).collect();
        assert_eq!(kinds, [WarningKind::SameEnd]);
        assert_eq!(flow.forward.ends, None);
        // counted once
        assert_eq!(flow.forward.data_packets, 105);
    }
    let here = download(At::Receiver, &[]);
    let both = analysed(&[raw(&here), raw(&packets)]);
    assert!(both.warnings.is_empty(), "{:?}", both.warnings);
    assert!(both.flows[0].forward.ends.is_some());
}

#[test]
fn times_that_go_back_are_said_and_make_no_length_negative() {
    let mut packets = download(At::Sender, &[]);
    packets[0].0 = 4_294_967_295_000 * MS;
    let analysis = analysed(&[raw(&packets)]);
    let capture = &analysis.captures[0];
    assert!(capture.first_time_ns < capture.last_time_ns, "{capture:?}");
    assert_eq!(capture.time_went_back, 1);
    let kinds: Vec<_> = analysis.warnings.iter().map(|w| w.kind).collect();
    assert_eq!(kinds, [WarningKind::TimeWentBack]);
    // interfaces are written a little out of order
    let mut packets = download(At::Sender, &[]);
    packets[0].0 = 900 * MS;
    assert!(analysed(&[raw(&packets)]).warnings.is_empty());
}

#[test]
fn a_tag_is_of_an_association_between_its_ports() {
    let mut packets = association(&acknowledged_data());
    for (at, packet) in association(&acknowledged_data()) {
        // the same tags between other addresses and ports
        let mut other = packet;
        other[23] ^= 0x40;
        other[39] ^= 0x40;
        other[40..44].iter_mut().for_each(|b| *b |= 0x80);
        packets.push((at + 1, other));
    }
    packets.sort_by_key(|p| p.0);
    let analysis = analysed(&[raw(&packets)]);
    let bytes: Vec<_> = analysis.flows.iter().map(|f| f.forward.useful_bytes).collect();
    assert_eq!(bytes, [1000, 1000]);
}
