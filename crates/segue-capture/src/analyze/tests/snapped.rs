//! Captures that a snap length cut: what is said of them is what is said of the whole ones, or it is said that it is not known.

use super::*;

/// A pcap file with packets cut to `snap` bytes.
fn cut(file: &[u8], snap: usize) -> Vec<u8> {
    let big = file[0] == 0xa1;
    let mut out = file[..24].to_vec();
    let mut at = 24;
    while let Some(header) = file.get(at..at + 16) {
        let len: [u8; 4] = *header[8..].first_chunk().unwrap();
        let len = if big {
            u32::from_be_bytes(len)
        } else {
            u32::from_le_bytes(len)
        } as usize;
        let kept = len.min(snap) as u32;
        out.extend(&header[..8]);
        out.extend(if big {
            kept.to_be_bytes()
        } else {
            kept.to_le_bytes()
        });
        out.extend(&header[12..]);
        out.extend(&file[at + 16..at + 16 + kept as usize]);
        at += 16 + len;
    }
    out
}

/// A download with timestamps, of which a segment is lost, acknowledged selectively and sent again.
fn lossy_packets() -> Vec<(u64, Vec<u8>)> {
    let (client, server) = (v6(1, 1), v6(2, 1));
    let mut packets = Vec::new();
    let mut at = |ms: u64, source, destination, segment: &[u8]| {
        packets.push((ms * MS, ethernet(&ipv6(source, destination, 6, segment))));
    };
    at(
        0,
        client,
        server,
        &tcp((40_000, 443), 99, 0, 2, &timestamps(1, 0), 0),
    );
    at(
        1,
        server,
        client,
        &tcp((443, 40_000), 999, 100, 18, &timestamps(1, 1), 0),
    );
    for n in 0..200u32 {
        let ms = u64::from(n) * 10 + 10;
        let seq = 1000 + n * 1000;
        if n != 100 {
            let segment = tcp((443, 40_000), seq, 100, 16, &timestamps(ms as u32, 1), 1000);
            at(ms, server, client, &segment);
        }
        let missing = 1000 + 100 * 1000;
        let mut options = timestamps(1, ms as u32);
        if (101..120).contains(&n) {
            options.extend([1, 1, 5, 10]);
            options.extend((missing + 1000u32).to_be_bytes());
            options.extend((seq + 1000).to_be_bytes());
            at(
                ms + 1,
                client,
                server,
                &tcp((40_000, 443), 100, missing, 16, &options, 0),
            );
        } else if n != 100 {
            at(
                ms + 1,
                client,
                server,
                &tcp((40_000, 443), 100, seq + 1000, 16, &options, 0),
            );
        }
        if n == 119 {
            let again = tcp(
                (443, 40_000),
                missing,
                100,
                16,
                &timestamps(ms as u32 + 2, 1),
                1000,
            );
            at(ms + 2, server, client, &again);
        }
    }
    packets
}

/// All that is said of a flow and of what happened to it, without numbers of other things.
fn said(analysis: &Analysis, flow: &Flow) -> String {
    let flow_only = Flow {
        id: 0,
        parent: None,
        ..flow.clone()
    };
    let of = |h: &&Handover| h.record.flow == Some(flow.id);
    let handovers: Vec<Handover> = analysis
        .handovers
        .iter()
        .filter(of)
        .map(|h| {
            let mut h = h.clone();
            h.record.flow = None;
            h.signals.clear();
            // what an advertisement told that was cut off is not known
            if let Some(parts) = &mut h.record.parts {
                (parts.t_d_s, parts.t_c_s, parts.t_n_s) = (None, None, None);
            }
            h
        })
        .collect();
    let pauses = analysis.interruptions.iter().filter(|i| i.flow == flow.id);
    let pauses: Vec<_> = pauses.map(|i| Interruption { flow: 0, ..i.clone() }).collect();
    format!("{flow_only:?} {handovers:?} {pauses:?}")
}

/// Compares with the whole; how many flows are the same, and how many are said to be unknown.
fn compare(whole: &Analysis, cut: &Analysis, case: &str) -> (usize, usize) {
    let ends = |a: &Endpoint, b: &Endpoint| (*a.min(b), *a.max(b));
    let all: Vec<String> = whole.flows.iter().map(|f| said(whole, f)).collect();
    for flow in &cut.flows {
        let said = said(cut, flow);
        assert!(all.contains(&said), "{case}: {said}\n\nand not one of {all:#?}");
    }
    let headerless = cut
        .captures
        .iter()
        .any(|c| c.counts.contains_key("headers-cut-off"));
    let unknown: Vec<_> = cut.cut_flows.iter().map(|f| ends(&f.a, &f.b)).collect();
    for flow in &whole.flows {
        let known = cut.flows.iter().any(|f| said(cut, f) == said(whole, flow));
        // a connection of MPTCP is known by its subflows
        let own = unknown.contains(&ends(&flow.a, &flow.b))
            || (flow.protocol == Protocol::Mptcp && !unknown.is_empty());
        assert!(known || own || headerless, "{case}: nothing of {flow:?}");
    }
    assert_eq!(
        cut.warnings.iter().any(|w| w.kind == WarningKind::HeadersCutOff),
        !unknown.is_empty(),
        "{case}"
    );
    (cut.flows.len(), unknown.len())
}

#[test]
fn numbers_of_cut_captures_are_those_of_whole_ones_or_absent() {
    let mut totals = Vec::new();
    let mut files = transports::everything();
    files.retain(|file| file[0] == 0xa1 || file[0] == 0x4d);
    files.push(pcap(1, false, false, &lossy_packets()));
    for (number, file) in files.iter().enumerate() {
        let whole = analysed(core::slice::from_ref(file));
        let (mut same, mut unknown) = (0, 0);
        for snap in (20..=200).chain([256, 400, 1000, 2000]) {
            let analysis = analysed(&[cut(file, snap)]);
            let found = compare(&whole, &analysis, &format!("capture {number} cut to {snap}"));
            (same, unknown) = (same + found.0, unknown + found.1);
            if snap >= 1000 {
                assert_eq!(found, (whole.flows.len(), 0), "capture {number} cut to {snap}");
            }
        }
        totals.push((same, unknown));
    }
    // headers are cut in some, and in none all the time
    assert_eq!(totals.len(), 7);
    assert!(totals.iter().all(|t| t.0 > 4), "{totals:?}");
    assert!(totals.iter().filter(|t| t.1 > 0).count() > 3, "{totals:?}");
}

#[test]
fn a_selective_acknowledgement_that_is_cut_off_takes_nothing_away() {
    // 14 of Ethernet, 40 of IPv6, 20 of TCP, 12 of timestamps, 12 of a block
    let file = pcap(1, false, false, &lossy_packets());
    let whole = analysed(core::slice::from_ref(&file));
    assert_eq!(whole.flows[0].reverse.retransmissions, 1);
    for snap in [86, 96, 97, 98] {
        let analysis = analysed(&[cut(&file, snap)]);
        assert_eq!(compare(&whole, &analysis, "sack"), (1, 0), "{snap}");
    }
    // without its timestamp, it is not known what a segment is
    let analysis = analysed(&[cut(&file, 85)]);
    assert_eq!((analysis.flows.len(), analysis.cut_flows.len()), (0, 1));
    let cut_flow = &analysis.cut_flows[0];
    assert_eq!((cut_flow.protocol, cut_flow.needed_bytes), (Protocol::Tcp, 98));
    assert_eq!(
        analysis.warnings[0].text,
        "nothing can be said of a flow, because the snap length cut off headers: at least 98 bytes of each packet are needed"
    );
}

#[test]
fn two_captures_may_be_cut_to_different_lengths() {
    // datagrams that differ from one another only behind their first 20 bytes are not told apart by them
    let mut word = 7u32;
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for n in 0..400u64 {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let mut data = vec![9; 300];
        data[..4].copy_from_slice(&word.to_be_bytes());
        let up = n % 4 == 0;
        let (source, destination) = if up {
            (v6(1, 1), v6(2, 1))
        } else {
            (v6(2, 1), v6(1, 1))
        };
        let ports = if up { (5000, 6000) } else { (6000, 5000) };
        let frame = ethernet(&ipv6(source, destination, 17, &udp(ports, &data)));
        let (here, there) = if up {
            (n * 10, n * 10 + 4)
        } else {
            (n * 10 + 4, n * 10)
        };
        // every tenth is lost
        if n % 10 != 9 || !up {
            near.push((1_000_000 + here * MS, frame.clone()));
        }
        if n % 10 != 9 || up {
            far.push((1_000_000 + there * MS, frame));
        }
    }
    near.sort_by_key(|p| p.0);
    far.sort_by_key(|p| p.0);
    let (near, far) = (pcap(1, false, true, &near), pcap(1, false, true, &far));
    let whole = analysed(&[near.clone(), far.clone()]);
    assert!(whole.clock_offset.is_some());
    let counts = |a: &Analysis| [a.flows[0].forward.ends, a.flows[0].reverse.ends];
    assert!(counts(&whole).iter().all(Option::is_some), "{:#?}", whole.flows);
    for (first, second) in [(96, 2000), (2000, 96), (96, 120), (82, 96), (128, 128)] {
        let analysis = analysed(&[cut(&near, first), cut(&far, second)]);
        assert_eq!(analysis.clock_offset, whole.clock_offset, "{first} {second}");
        assert_eq!(counts(&analysis), counts(&whole), "{first} {second}");
    }
    // too little to tell them apart: that is said, and nothing of losses
    let analysis = analysed(&[cut(&near, 70), cut(&far, 2000)]);
    assert_eq!(analysis.warnings[0].kind, WarningKind::NothingInCommon);
    assert!(
        analysis
            .flows
            .iter()
            .all(|f| f.forward.ends.is_none() && f.reverse.ends.is_none())
    );
}
