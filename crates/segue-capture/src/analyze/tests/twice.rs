//! Packets that one host captures more than once: on a bond and on the interface that it sends by, on a bridge and its ports.

use super::*;

/// Where a packet is captured: on which interface, and how many microseconds after it was sent.
type Sights<'a> = &'a [(u32, u64)];

/// Linux cooked (v2), of all interfaces of a host: each packet came (0) or left (4).
fn any(packets: &[(u64, u8, Vec<u8>)], sights: Sights<'_>) -> Vec<u8> {
    let mut frames = Vec::new();
    for (at, kind, packet) in packets {
        for (device, later_us) in sights {
            let header = [
                &ether_type(packet)[..],
                &[0, 0],
                &device.to_be_bytes(),
                &[0, 1, *kind, 6],
                &[9; 8],
            ];
            frames.push((at + later_us * 1000, [&header.concat()[..], packet].concat()));
        }
    }
    pcap(276, false, true, &frames)
}

/// The same as pcapng of several interfaces.
fn interfaces(packets: &[(u64, u8, Vec<u8>)], sights: Sights<'_>) -> Vec<u8> {
    let mut file = section(false);
    for name in [b"eth0", b"eth1", b"bond"] {
        file.extend(interface(false, 101, 0, &[(9, &[9]), (2, name)]));
    }
    for (at, _, packet) in packets {
        for (device, later_us) in sights {
            file.extend(enhanced(
                false,
                *device,
                at + later_us * 1000,
                packet,
                packet.len(),
            ));
        }
    }
    file
}

const ONCE: Sights<'_> = &[(2, 0)];
const TWICE: Sights<'_> = &[(2, 0), (1, 20)];

/// One end's packets and the other's, 10 ms apart, of so many each.
fn talk(packet: impl Fn(u32, bool) -> Vec<u8>) -> Vec<(u64, u8, Vec<u8>)> {
    let one = |n: u32| {
        let at = |back: u64| (u64::from(n) * 10 + back * 3) * MS;
        [(at(0), 4, packet(n, false)), (at(1), 0, packet(n, true))]
    };
    (0..100).flat_map(one).collect()
}

fn between(back: bool, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let (x, y) = (v6(1, 1), v6(2, 2));
    let (source, destination) = if back { (y, x) } else { (x, y) };
    ipv6(source, destination, protocol, payload)
}

fn tcp_packet(n: u32, back: bool) -> Vec<u8> {
    let ports = if back { (80, 40) } else { (40, 80) };
    between(back, 6, &tcp(ports, n * 100, 1, 16, &timestamps(n + 1, 0), 100))
}

fn datagram(n: u32, back: bool) -> Vec<u8> {
    let ports = if back { (80, 40) } else { (40, 80) };
    // QUIC would look so
    between(
        back,
        17,
        &udp(ports, &[&[0x40][..], &n.to_be_bytes(), &[3; 95]].concat()),
    )
}

/// The same over IPv4, where packets have a number.
fn numbered(n: u32, back: bool) -> Vec<u8> {
    let datagram = &datagram(n, back)[40..];
    let (x, y) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (source, destination) = if back { (y, x) } else { (x, y) };
    ipv4(source, destination, 17, n as u16 + 1, datagram)
}

/// Twelve chunks in each packet.
fn sctp_packet(n: u32, back: bool) -> Vec<u8> {
    let (ports, tag) = if back {
        ([0, 6, 0, 5], [2; 4])
    } else {
        ([0, 5, 0, 6], [1; 4])
    };
    let chunks = (0..12).flat_map(|m| dead::chunk(0, &[n * 12 + m, 0, 0], 20));
    let chunks: Vec<u8> = chunks.collect();
    between(back, 132, &[&ports[..], &tag, &[0; 4], &chunks].concat())
}

/// Of the only flow: packets with data, those that repeat something, paths that carried data; of all, those captured twice.
fn counted(capture: Vec<u8>) -> (u64, u64, usize, u64) {
    let analysis = analysed(&[capture]);
    assert_eq!(analysis.flows.len(), 1, "{:#?}", analysis.flows);
    assert!(analysis.handovers.is_empty(), "{:#?}", analysis.handovers);
    let flow = &analysis.flows[0];
    let twice = analysis.limits.get("packets-captured-twice").copied();
    (
        flow.forward.data_packets + flow.reverse.data_packets,
        flow.forward.duplicate_packets + flow.reverse.duplicate_packets,
        flow.paths.len(),
        twice.unwrap_or_default(),
    )
}

#[test]
fn a_packet_that_several_interfaces_show_counts_once() {
    for (packet, items) in [
        (tcp_packet as fn(u32, bool) -> Vec<u8>, 1),
        (datagram, 1),
        (numbered, 1),
        (sctp_packet, 12),
    ] {
        let packets = talk(packet);
        // SCTP is told apart packet by packet
        let twice = 200;
        for capture in [any, interfaces] {
            assert_eq!(counted(capture(&packets, ONCE)), (200 * items, 0, 2, 0));
            assert_eq!(counted(capture(&packets, TWICE)), (200 * items, 0, 2, twice));
            let one_way: Vec<_> = packets.iter().filter(|p| p.1 == 4).cloned().collect();
            assert_eq!(counted(capture(&one_way, TWICE)), (100 * items, 0, 1, twice / 2));
            let thrice = &[(2, 0), (1, 20), (0, 30)];
            assert_eq!(counted(capture(&packets, thrice)), (200 * items, 0, 2, 2 * twice));
        }
    }
}

#[test]
fn a_packet_that_comes_again_is_no_copy() {
    // by the same interface, or after a while by another
    for again in [&[(2, 0), (2, 20)][..], &[(2, 0), (1, 1500)]] {
        for capture in [any, interfaces] {
            let analysis = analysed(&[capture(&talk(datagram), again)]);
            let flow = &analysis.flows[0];
            assert_eq!((flow.forward.data_packets, flow.reverse.data_packets), (200, 200));
            assert!(analysis.limits.is_empty());
        }
    }
    for capture in [any, interfaces] {
        let (items, repeats, _, twice) = counted(capture(&talk(sctp_packet), &[(2, 0), (2, 20)]));
        assert_eq!((items, repeats, twice), (4800, 2400, 0));
        // one that the network has twice, with a copy of each
        let each = &[(2, 0), (1, 10), (2, 20), (1, 30)];
        let (items, repeats, _, twice) = counted(capture(&talk(sctp_packet), each));
        assert_eq!((items, repeats, twice), (4800, 2400, 400));
    }
    // another with the same beginning: its checksum differs, or its identification
    let mut packets = Vec::new();
    for n in 0..100u32 {
        let mut one = udp((40, 80), &[0x40; 100]);
        let mut other = one.clone();
        one[6..8].copy_from_slice(&[1, n as u8]);
        other[6..8].copy_from_slice(&[2, n as u8]);
        packets.push((u64::from(n) * 10 * MS, 4, between(false, 17, &one)));
        packets.push((u64::from(n) * 10 * MS + 1, 4, between(false, 17, &other)));
    }
    assert_eq!(counted(any(&packets, TWICE)), (200, 0, 1, 200));
}

#[test]
fn a_packet_that_passes_a_host_is_seen_to_come_and_to_go() {
    // which are two things to know of it: neither is a copy of the other
    let came = talk(datagram).into_iter().filter(|p| p.1 == 4);
    let packets: Vec<_> = came
        .flat_map(|(at, _, p)| [(at, 0, p.clone()), (at + 20_000, 4, p)])
        .collect();
    let analysis = analysed(&[any(&packets, ONCE)]);
    let way = &analysis.flows[0].forward;
    assert_eq!(
        (way.data_packets, way.vantage, way.packets),
        (100, Vantage::Receiver, 100)
    );
}

#[test]
fn where_a_host_captures_all_interfaces_a_change_of_them_is_a_handover() {
    let packets: Vec<_> = talk(tcp_packet);
    let (before, after) = packets.split_at(100);
    let mut capture = any(before, &[(3, 0)]);
    capture.extend(&any(after, &[(5, 0)])[24..]);
    let analysis = analysed(&[capture]);
    let kinds: Vec<_> = analysis.handovers.iter().map(|h| h.kind).collect();
    assert_eq!(kinds, [HandoverKind::Interface; 2]);
    let mut names: Vec<_> = analysis.flows[0]
        .paths
        .iter()
        .map(|p| p.interface.clone())
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(
        names,
        [Some("interface 3".to_owned()), Some("interface 5".to_owned())]
    );
}

#[test]
fn an_association_that_tries_another_path_at_once_is_captured_once_each() {
    let packets = talk(sctp_packet);
    let elsewhere = |(at, kind, p): &(u64, u8, Vec<u8>)| {
        let mut p = p.clone();
        p[if *kind == 4 { 13 } else { 29 }] ^= 8;
        (at + 100_000, *kind, p)
    };
    let both: Vec<_> = packets.iter().flat_map(|p| [p.clone(), elsewhere(p)]).collect();
    let analysis = analysed(&[any(&both, TWICE)]);
    let flow = &analysis.flows[0];
    let way = &flow.forward;
    assert_eq!((way.data_packets, way.duplicate_packets), (2400, 1200));
    assert_eq!(analysis.limits["packets-captured-twice"], 400);
}

#[test]
fn two_captures_of_all_interfaces_have_no_losses_of_their_own() {
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for (n, (at, kind, packet)) in talk(datagram).into_iter().enumerate() {
        let (from, to) = if kind == 4 {
            (&mut here, &mut there)
        } else {
            (&mut there, &mut here)
        };
        from.push((at, 4, packet.clone()));
        // one is lost
        if n != 20 {
            to.push((at + 2 * MS, 0, packet));
        }
    }
    let [here, there] = [here, there].map(|packets| any(&packets, TWICE));
    let analysis = analysed(&[here, there]);
    let [flow] = &analysis.flows[..] else {
        panic!("{:#?}", analysis.flows);
    };
    let ends = [flow.forward.ends, flow.reverse.ends].map(|e| e.expect("both ends"));
    let fates = ends.map(|e| (e.packets_sent, e.lost_packets, e.unmatched_packets));
    assert_eq!(fates, [(100, 1, 0), (100, 0, 0)]);
}
