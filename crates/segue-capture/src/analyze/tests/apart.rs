//! Two captures that are of different things.

use super::dead::*;
use super::*;
use crate::record::FlowState;

/// A download of another phone that has the same addresses and ports, a second later, with other numbers.
fn another(packets: &[(u64, Vec<u8>)]) -> Vec<(u64, Vec<u8>)> {
    let other = |(at, p): &(u64, Vec<u8>)| {
        let mut p = p.clone();
        // sequence number and acknowledgement
        p[44] ^= 0x40;
        p[48] ^= 0x40;
        (at + 1_000_000_000, p)
    };
    packets.iter().map(other).collect()
}

#[test]
fn two_phones_with_the_same_addresses_are_not_the_ends_of_one_flow() {
    let (one, other) = (download(At::Sender, &[]), another(&download(At::Receiver, &[])));
    let alone = [
        first_end(&[cooked(v6(2, 2), &one)]).0.forward,
        first_end(&[cooked(v6(1, 1), &other)]).0.forward,
    ];
    for captures in [
        [cooked(v6(2, 2), &one), cooked(v6(1, 1), &other)],
        [cooked(v6(1, 1), &other), cooked(v6(2, 2), &one)],
    ] {
        let analysis = analysed(&captures);
        let kinds: Vec<_> = analysis.warnings.iter().map(|w| w.kind).collect();
        assert_eq!(kinds, [WarningKind::NothingInCommon]);
        let mut flows: Vec<_> = analysis.flows.iter().map(|f| (f.id, &f.forward)).collect();
        assert_eq!((flows.len(), analysis.flows_total), (2, 2));
        assert_ne!(flows[0].0, flows[1].0);
        flows.sort_by_key(|(_, way)| way.vantage != Vantage::Sender);
        for ((_, way), alone) in flows.iter().zip(&alone) {
            assert_eq!(way.ends, None);
            let counts = |d: &DirectionReport| (d.vantage, d.packets, d.useful_bytes, d.duplicate_packets);
            assert_eq!(counts(way), counts(alone));
        }
        let counted: Vec<_> = analysis.captures.iter().map(|c| c.counts["tcp"]).collect();
        assert_eq!(counted.iter().sum::<u64>(), (one.len() + other.len()) as u64);
        assert!(counted.iter().all(|n| *n > 0));
    }
}

#[test]
fn what_each_capture_has_is_numbered_by_itself() {
    let died = || {
        let mut packets = association(&acknowledged_data());
        let tried = [1500u64, 2500, 4500, 8500].map(|ms| (ms, true, chunk(0, &[1010, 0, 0], 100)));
        packets.extend(association(&tried));
        for (at, packet) in &mut packets {
            // another pair of ports and tags
            packet[40..48].iter_mut().for_each(|b| *b ^= 16);
            if *at >= 2500 * MS && packet[8..24] == v6(1, 1) {
                packet[24..40].copy_from_slice(&v6(3, 9));
            }
        }
        packets
    };
    let first = download(At::Sender, &BACKED_OFF);
    let analysis = analysed(&[raw(&until(50, first)), raw(&died())]);
    // a download and something else; an association that died with a move
    assert_eq!(analysis.flows_total, 3);
    let [handover] = &analysis.handovers[..] else {
        panic!("{:#?}", analysis.handovers);
    };
    let of = |id: Option<u64>| {
        analysis
            .flows
            .iter()
            .find(|f| Some(f.id) == id)
            .expect("reported")
    };
    assert_eq!(of(handover.record.flow).protocol, Protocol::Sctp);
    assert_eq!(of(handover.record.flow).forward.end.state, FlowState::Dead);
    let dead: Vec<_> = analysis.interruptions.iter().filter(|i| i.censored).collect();
    assert_eq!(dead.len(), 1);
    assert_eq!(of(Some(dead[0].flow)).protocol, Protocol::Tcp);
    let mut ids: Vec<_> = analysis.flows.iter().map(|f| f.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[test]
fn what_many_hosts_are_sent_makes_no_two_ends() {
    let announced = |n: u16| {
        let group = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfb];
        ipv6(v6(9, 9), group, 17, &udp((5353, 5353), &n.to_be_bytes()))
    };
    let with = |mut packets: Vec<(u64, Vec<u8>)>| {
        packets.extend((0..20).map(|n| (u64::from(n) * 20 * MS, announced(n))));
        packets.sort_by_key(|p| p.0);
        raw(&packets)
    };
    let one = download(At::Sender, &[]);
    let other = another(&one);
    let analysis = analysed(&[with(one), with(other)]);
    assert_eq!(analysis.clock_offset, None);
    let kinds: Vec<_> = analysis.warnings.iter().map(|w| w.kind).collect();
    assert_eq!(kinds, [WarningKind::NothingInCommon]);
}

#[test]
fn counts_and_limits_are_of_both() {
    let mixed = |host: u16| {
        let packet = |protocol: u8, payload: &[u8]| ipv6(v6(host, 1), v6(host, 2), protocol, payload);
        let mut packets = Vec::new();
        for (protocol, payload, times) in [
            (6u8, tcp((1, 2), u32::from(host), 1, 16, &[], 1), 1),
            (17, udp((1, 2), &[host as u8; 9]), 2),
            (
                132,
                vec![0, 1, 0, 2, 0, 0, 0, host as u8, 0, 0, 0, 0, 4, 0, 0, 4],
                3,
            ),
            (58, vec![128, 0, 0, 0], 4),
            (135, vec![59, 1, 8, 0], 5),
            (89, vec![0; 9], 6),
            // a first fragment, and a header that is cut off
            (
                44,
                [&[17, 0, 0, 1, 0, 0, 0, 9][..], &udp((3, 4), &[host as u8; 9])].concat(),
                7,
            ),
            (6, vec![host as u8; 3], 8),
        ] {
            for _ in 0..times {
                packets.push((packets.len() as u64 * MS, packet(protocol, &payload)));
            }
        }
        packets
    };
    let options = Options {
        max_live_flows: 2,
        ..Options::default()
    };
    let captures = [raw(&mixed(1)), raw(&mixed(2))];
    let both = analysed_with(&captures, &options);
    let kinds: Vec<_> = both.warnings.iter().map(|w| w.kind).collect();
    assert_eq!(kinds, [WarningKind::NothingInCommon]);
    // each has half the room for flows
    let half = Options {
        max_live_flows: 1,
        ..Options::default()
    };
    let alone = captures.map(|c| analysed_with(&[c], &half));
    for (capture, alone) in both.captures.iter().zip(&alone) {
        assert_eq!(capture.counts, alone.captures[0].counts);
        assert_eq!(capture.counts.len(), 8, "{:?}", capture.counts);
    }
    let evicted: u64 = alone.iter().map(|a| a.flows_evicted).sum();
    assert!(evicted > alone[0].flows_evicted && alone[0].flows_evicted > 1);
    assert_eq!(both.flows_evicted, evicted);
    assert_eq!(both.flows_total, alone.iter().map(|a| a.flows_total).sum::<u64>());
}
