//! Rules at their boundaries.

use super::dead::{acknowledged_data, association, first_end};
use super::flows::ends::{AtEnd, Ends, Listens};
use super::flows::moved::Moved;
use super::flows::mover::{Arrival, Mover};
use super::flows::progress::Progress;
use super::flows::rates::Lately;
use super::transports::mip6_packets;
use super::*;

const S: u64 = 1_000_000_000;

fn arrival(time_ns: u64, path: u16, seq: u32) -> Arrival {
    Arrival {
        time_ns,
        path,
        seq,
        useful: 1,
        bytes: 1,
        out_of_order: false,
        last_data_ns: time_ns.saturating_sub(1),
        last_new_ns: time_ns.saturating_sub(1),
    }
}

#[test]
fn handovers_beyond_four_thousand_are_counted_by_their_packets() {
    let mut m = Mover::new(0, 0, 0);
    for n in 1..=4100u32 {
        for second in 0..2 {
            let time_ns = u64::from(2 * n + second) * S;
            m.arrived(arrival(time_ns, (n % 2) as u16, 2 * n + second), S, || {
                (Lately::default(), None)
            });
        }
    }
    // the last that is followed goes to path 0; the 4097th and the 4099th go to the other
    assert_eq!(m.dropped(), 4);
    assert_eq!(m.finish(S).moved.len(), 4096);
}

/// A path in between carries what is sent again, and nothing of its own. What was lost was sent before it.
#[test]
fn a_handover_begins_with_the_last_data_over_the_old_path() {
    let mut m = Mover::new(0, 0, 0);
    m.sent(S, 0, 1);
    m.arrived(arrival(S, 0, 1), S, || (Lately::default(), None));
    m.sent(S + 1, 0, 2);
    m.sent(S + 2, 0, 3);
    let again = Arrival {
        last_data_ns: S,
        ..arrival(3 * S, 1, 2)
    };
    m.arrived(again, S, || (Lately::default(), None));
    for n in 0..2 {
        m.sent(6 * S, 2, 4 + n);
        let data = Arrival {
            last_data_ns: 3 * S,
            ..arrival(7 * S + u64::from(n), 2, 4 + n)
        };
        m.arrived(data, S, || (Lately::default(), None));
    }
    assert_eq!(m.last_settled(), Some((S, 7 * S)));
    let moved = &m.finish(S).moved[0];
    assert_eq!((moved.from, moved.to, moved.last_old_ns), (0, 2, S));
}

/// Data over these paths in turn, a packet every millisecond, so many times.
fn in_turn(m: &mut Mover, since_ns: u64, paths: &[u16], times: u64) {
    for n in 0..times {
        let at = since_ns + n * MS;
        let path = paths[n as usize % paths.len()];
        // two packets each, so that a path is settled on
        let seq = (at / MS) as u32 * 2;
        m.arrived(arrival(at, path, seq), S, || (Lately::default(), None));
        m.arrived(arrival(at + 1, path, seq + 1), S, || (Lately::default(), None));
    }
}

#[test]
fn a_path_that_joins_others_in_use_is_one_of_them() {
    let mut m = Mover::new(0, 0, 0);
    in_turn(&mut m, S, &[0, 1], 100);
    in_turn(&mut m, 2 * S, &[0, 1, 2], 99);
    in_turn(&mut m, 3 * S, &[0, 1], 2000);
    let found = m.finish(S);
    let lost: Vec<_> = found.moved.iter().map(|m| (m.from, m.last_old_ns)).collect();
    assert_eq!(lost, [(2, 2 * S + 98 * MS + 1)]);
    assert_eq!(found.in_use.len(), 2);
}

#[test]
fn sixteen_paths_at_once_are_followed() {
    let mut m = Mover::new(0, 0, 0);
    let paths: Vec<u16> = (0..20).collect();
    in_turn(&mut m, S, &paths[..2], 100);
    in_turn(&mut m, 2 * S, &paths, 200);
    assert_eq!(m.finish(S).in_use.len(), 16);
}

#[test]
fn packets_that_make_room_before_they_arrived_are_counted() {
    let mut e = Ends::new(Listens::default());
    for n in 0..5u32 {
        let packet = AtEnd {
            time_ns: u64::from(n),
            seq: n * 10,
            span: 10,
            stamp: None,
        };
        e.sent(packet, 0, 2);
    }
    assert_eq!(e.evicted(), 3);
}

#[test]
fn resolutions_of_time_may_be_powers_of_two() {
    let packet = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, 0, &udp((7, 9), &[0; 9]));
    for (power, second) in [
        (0x80 | 10, 1024),
        (0x80 | 20, 1 << 20),
        (0x80, 1),
        (3, 1000),
        (9, S),
    ] {
        let mut file = section(true);
        file.extend(interface(true, 101, 0, &[(9, &[power])]));
        for n in [5, 7] {
            file.extend(enhanced(true, 0, n * second, &packet, packet.len()));
        }
        let found = analysed(&[file]);
        assert_eq!((found.start_time_ns, found.duration_s), (5 * S, 2.0), "{power}");
    }
}

#[test]
fn who_keeps_a_flow_alive_follows_from_what_is_seen_of_it() {
    let of = |packets: &[(u64, Vec<u8>)]| first_end(&[raw(packets)]).0.mobility;
    // one path each way is no mobility
    assert_eq!(of(&association(&acknowledged_data())), Mobility::None);
    let segment = ipv6(v6(2, 2), v6(1, 1), 6, &tcp((2, 1), 0, 1, 16, &[], 100));
    assert_eq!(of(&[(1, segment)]), Mobility::None);
    let mut moved = association(&acknowledged_data());
    let (_, last) = moved
        .iter_mut()
        .rfind(|(_, p)| p[8..24] == v6(1, 1))
        .expect("data");
    last[24..40].copy_from_slice(&v6(3, 9));
    assert_eq!(of(&moved), Mobility::Transport);
    let tunnelled: Vec<_> = mip6_packets()
        .into_iter()
        .filter(|(_, p)| p[6] == 6 || p[6] == 41)
        .collect();
    assert_eq!(of(&tunnelled), Mobility::Mip6);
}

#[test]
fn of_two_directions_that_ended_alike_the_one_with_the_longer_pause_is_worse() {
    for (back_ms, longest) in [(200, 0.3), (700, 0.7)] {
        let mut packets = Vec::new();
        let segment = |back: bool, seq: u32| {
            if back {
                ipv6(v6(1, 1), v6(2, 2), 6, &tcp((1, 2), seq, 0, 0, &[], 100))
            } else {
                ipv6(v6(2, 2), v6(1, 1), 6, &tcp((2, 1), seq, 0, 0, &[], 100))
            }
        };
        for (ms, back, seq) in [
            (0, false, 0),
            (300, false, 100),
            (301, true, 0),
            (301 + back_ms, true, 100),
        ] {
            packets.push((ms * MS, segment(back, seq)));
        }
        let (flow, _) = first_end(&[raw(&packets)]);
        assert_eq!(flow.forward.end.state, flow.reverse.end.state);
        assert!((flow.end.longest_gap_s - longest).abs() < 1e-9, "{:?}", flow.end);
    }
}

#[test]
fn equal_bins_are_at_full_speed_at_once_however_their_mean_is_rounded() {
    let mut above = 0;
    for bytes in 1..2000u64 {
        let mut bins = ThroughputBins::default();
        for n in 0..=9u64 {
            bins.add(n * (BIN_NS + 1), bytes);
        }
        let each = bins.bins()[0].throughput_bps;
        let sum: f64 = bins.bins().iter().map(|b| b.throughput_bps).sum();
        above += u32::from(sum / bins.bins().len() as f64 > each);
        let found = bins.adaptation_time().expect("nine bins");
        assert_eq!(found.adaptation_time_s, 0.0, "{bytes}");
    }
    assert!(above > 10, "the mean is hardly ever above them");
}

#[test]
fn a_handover_accounts_for_the_outage_that_touches_it() {
    let left = |since_ns, until_ns, by_arrivals| {
        let mut p = Progress::default();
        p.note_outage(Some(since_ns), until_ns);
        // last by the old path at 10, first by the new one at 12, and nothing for 7
        let m = Moved {
            interruption_ns: 7,
            ..Moved::in_vain(0, 1, 12, 10, 12)
        };
        let mut outages = p.outages().clone();
        outages.account_for(&m, by_arrivals);
        outages.unaccounted().count()
    };
    // by acknowledgements: what ended when the old path was used last, and began when the new one was used first
    assert_eq!((left(5, 10, false), left(5, 11, false)), (1, 0));
    assert_eq!((left(12, 20, false), left(13, 20, false)), (0, 1));
    // by arrivals: what is as long as the interruption
    assert_eq!((left(10, 17, true), left(10, 18, true)), (0, 1));
}
