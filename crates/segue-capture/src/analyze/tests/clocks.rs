//! Captures of both ends: their clocks, and packets that are matched.

use super::*;

const ACK: u8 = 16;

#[test]
fn clocks_are_compared_by_what_both_captures_have() {
    // 20 ms one way, the other clock 5 s ahead; a packet of ten is lost
    let (mn, cn) = (v6(1, 1), v6(2, 2));
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for n in 0..300u32 {
        let data = ipv6(cn, mn, 6, &tcp((2, 1), n * 100, n, ACK, &timestamps(n, n), 100));
        let answer = ipv6(
            mn,
            cn,
            6,
            &tcp((1, 2), n, n * 100 + 100, ACK, &timestamps(n, n), 0),
        );
        let sent = u64::from(n) * 50 * MS;
        there.push((sent + 5000 * MS, data.clone()));
        if n % 10 != 3 {
            here.push((sent + 20 * MS, data));
            here.push((sent + 20 * MS + 1, answer.clone()));
            there.push((sent + 40 * MS + 5000 * MS, answer));
        }
    }
    there.sort_by_key(|p| p.0);
    let analysis = analysed(&[raw(&here), raw(&there)]);
    let offset = analysis.clock_offset.expect("there are packets in both");
    assert!((offset.offset_s - 5.0).abs() < 1e-6, "{offset:?}");
    assert!((offset.uncertainty_s.expect("both ways") - 0.02).abs() < 1e-6);
    assert_eq!((offset.drift_ppm, offset.matched_packets), (None, 540));
    let flow = &analysis.flows[0];
    let counts = if flow.forward.data_packets > 0 {
        &flow.forward
    } else {
        &flow.reverse
    };
    assert_eq!(counts.vantage, Vantage::Both);
    let ends = counts.ends.expect("both");
    assert_eq!(
        (ends.packets_sent, ends.lost_packets, ends.unmatched_packets),
        (300, 30, 0)
    );
    assert!((counts.rtt_s.expect("answered").median - 0.04).abs() < 1e-6);
}

#[test]
fn a_clock_that_drifts_is_followed() {
    let (mn, cn) = (v6(1, 1), v6(2, 2));
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for n in 0..1000u32 {
        let data = ipv6(cn, mn, 6, &tcp((2, 1), n * 100, n, ACK, &timestamps(n, n), 100));
        let answer = ipv6(
            mn,
            cn,
            6,
            &tcp((1, 2), n, n * 100 + 100, ACK, &timestamps(n, n), 0),
        );
        let drifted = |t: u64| t + t / 10_000 + 1000 * MS;
        let sent = u64::from(n) * 100 * MS;
        there.push((drifted(sent), data.clone()));
        here.push((sent + MS / 10, data));
        here.push((sent + MS / 10 + 1, answer.clone()));
        there.push((drifted(sent + MS / 5), answer));
    }
    let analysis = analysed(&[raw(&here), raw(&there)]);
    let offset = analysis.clock_offset.expect("packets in both");
    assert!(
        (offset.drift_ppm.expect("it drifts") - 100.0).abs() < 2.0,
        "{offset:?}"
    );
    let ends = analysis.flows[0]
        .forward
        .ends
        .or(analysis.flows[0].reverse.ends)
        .expect("both ends");
    assert_eq!((ends.lost_packets, ends.unmatched_packets), (0, 0), "{ends:?}");
}

#[test]
fn datagrams_are_matched_by_what_they_carry() {
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for n in 0..300u32 {
        let to = if n < 150 { [10, 0, 0, 1] } else { [10, 0, 9, 1] };
        let data = [&n.to_be_bytes()[..], &[3; 96]].concat();
        let datagram = |ports| ipv4([192, 0, 2, 1], to, 17, 0, &udp(ports, &data));
        let sent = u64::from(n) * 10 * MS;
        there.push((sent, datagram((53, 54))));
        // every tenth is lost, and one overtakes another
        if n % 10 != 3 {
            here.push((sent + if n == 50 { 31 } else { 20 } * MS, datagram((53, 54))));
        }
    }
    here.sort_by_key(|p| p.0);
    // both captures say which way packets went
    let cooked = |kind: u8, packets: &[(u64, Vec<u8>)]| {
        let frame =
            |(t, p): &(u64, Vec<u8>)| (*t, [&[0, kind, 0, 1, 0, 6][..], &[9; 8], &[8, 0], p].concat());
        pcap(113, false, true, &packets.iter().map(frame).collect::<Vec<_>>())
    };
    let analysis = analysed(&[cooked(0, &here), cooked(4, &there)]);
    // addresses of UDP are all that is known of it: a change of them is another flow
    assert_eq!(analysis.flows.len(), 2);
    let ends: Vec<_> = analysis.flows.iter().filter_map(|f| f.forward.ends).collect();
    let sums = ends.iter().fold((0, 0, 0, 0), |s, e| {
        (
            s.0 + e.packets_sent,
            s.1 + e.lost_packets,
            s.2 + e.reordered_packets,
            s.3 + e.unmatched_packets,
        )
    });
    assert_eq!(sums, (300, 30, 1, 0));
    assert_eq!(analysis.flows[0].forward.data_packets, 135);
    assert_eq!(analysis.clock_offset.and_then(|o| o.uncertainty_s), None);
}
