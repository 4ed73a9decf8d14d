//! Flows of every kind, moved by every means.

use super::*;
use crate::record::Layer;
use flows::mptcp::token;

const ACK: u8 = 16;
const SYN: u8 = 2;

/// One capture of each kind of flow, for those who damage captures.
pub(super) fn everything() -> Vec<Vec<u8>> {
    vec![
        raw(&mptcp_packets()),
        raw(&quic_packets()),
        raw(&wireguard_packets()),
        raw(&sctp_packets()),
        raw(&ilnp_packets()),
        pcap(1, true, false, &framed(&mip6_packets())),
        pcapng(&mip6_packets()),
        pcapng(&sctp_packets()),
    ]
}

fn framed(packets: &[(u64, Vec<u8>)]) -> Vec<(u64, Vec<u8>)> {
    packets.iter().map(|(t, p)| (*t, ethernet(p))).collect()
}

fn pcapng(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = section(true);
    file.extend(interface(true, 1, 0, &[(2, b"eth0"), (9, &[9])]));
    file.extend(interface(true, 101, 0, &[]));
    for (time, packet) in packets {
        let frame = ethernet(packet);
        file.extend(enhanced(true, 0, *time, &frame, frame.len()));
    }
    file
}

/// Data every 10 ms from 0, over the second path from 1.05 s on.
fn moves(packet: impl Fn(u32, bool) -> Vec<u8>) -> Vec<(u64, Vec<u8>)> {
    let first = (0..100).map(|n| (u64::from(n) * 10 * MS, packet(n, false)));
    let second = (100..200).map(|n| (u64::from(n) * 10 * MS + 50 * MS, packet(n, true)));
    first.chain(second).collect()
}

/// The only handover, which all of [`moves`] have.
fn moved(analysis: &Analysis, kind: HandoverKind) -> &Handover {
    assert_eq!(analysis.handovers.len(), 1, "{:#?}", analysis.handovers);
    let handover = &analysis.handovers[0];
    assert_eq!(handover.kind, kind);
    let record = &handover.record;
    assert!(
        (record.latency_s.expect("it came back") - 0.06).abs() < 1e-9,
        "{handover:#?}"
    );
    assert!((record.interruption_s.expect("of a flow") - 0.06).abs() < 1e-9);
    assert!(!record.censored);
    // a hundred packets in 0.99 s, and as many in 0.99 s
    assert!(handover.around.throughput_before_bps > 0.0);
    let ratio = handover.around.throughput_before_bps / handover.around.throughput_after_bps;
    assert!((ratio - 1.0).abs() < 0.05, "{handover:#?}");
    assert!(analysis.interruptions.is_empty(), "{:?}", analysis.interruptions);
    handover
}

pub(super) fn mip6_packets() -> Vec<(u64, Vec<u8>)> {
    let (home, agent, peer) = (v6(1, 1), v6(1, 99), v6(2, 2));
    let segment = |n: u32| tcp((2000, 1000), n * 100, 1, ACK, &timestamps(n, 0), 100);
    let mut packets = moves(|n, there| {
        let plain = ipv6(peer, home, 6, &segment(n));
        if there {
            ipv6(agent, v6(3, 9), 41, &plain)
        } else {
            plain
        }
    });
    let advertisement = [
        &[134, 0, 0, 0, 64, 0, 0, 0][..],
        &[0; 8],
        &[3, 4, 64, 0],
        &[0; 12],
        &v6(3, 0),
    ]
    .concat();
    let detection = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &v6(3, 9)].concat();
    let home_option = [&[135, 2, 1, 2, 0, 0, 0xc9, 16][..], &home].concat();
    let update = ipv6(
        v6(3, 9),
        agent,
        60,
        &[
            &home_option[..],
            &[59, 1, 5, 0, 0, 0, 0, 1, 0xc0, 0, 0, 9, 0, 0, 0, 0],
        ]
        .concat(),
    );
    let routing = [&[135, 2, 2, 1, 0, 0, 0, 0][..], &home].concat();
    let answer = ipv6(
        agent,
        v6(3, 9),
        43,
        &[&routing[..], &[59, 1, 6, 0, 0, 0, 0, 0, 0, 1, 0, 9, 0, 0, 0, 0]].concat(),
    );
    packets.push((1000 * MS, ipv6(v6(3, 99), [0xff; 16], 58, &advertisement)));
    packets.push((1010 * MS, ipv6([0; 16], [0xff; 16], 58, &detection)));
    packets.push((1030 * MS, update));
    packets.push((1045 * MS, answer));
    packets.sort_by_key(|p| p.0);
    packets
}

#[test]
fn mobile_ipv6_shows_the_parts_of_its_latency() {
    // cooked, so that the capture says what the host sent
    let outbound = |p: &[u8]| p[8..24] == v6(3, 9) || p[8..24] == [0; 16];
    let frames: Vec<_> = mip6_packets()
        .iter()
        .map(|(t, p)| {
            let kind = if outbound(p) { 4 } else { 0 };
            (
                *t,
                [&[0, kind, 0, 1, 0, 6][..], &[9; 8], &[0x86, 0xdd], p].concat(),
            )
        })
        .collect();
    let analysis = analysed(&[pcap(113, false, true, &frames)]);
    let handover = moved(&analysis, HandoverKind::CareOfAddress);
    let record = &handover.record;
    let network = record.parts.expect("its signalling is there");
    // registered when that is acknowledged, 5 ms before the data
    let parts = [
        (network.t_d_s, 0.01),
        (network.t_c_s, 0.03),
        (network.t_r_s, 0.015),
        (network.t_n_s, 0.055),
        (network.first_data_s, 0.06),
        (Some(network.since_s), 0.99),
        (record.handoff_delay_s, 0.015),
        (record.begin_s, 1.03),
        (record.end_s, 1.045),
    ];
    for (part, expected) in parts {
        assert!((part.expect("known") - expected).abs() < 1e-9, "{record:?}");
    }
    // the host that moved is known by its home address
    assert_eq!(record.host, "2001:db8:0:1::1");
    assert_eq!(record.from, Some(core::net::IpAddr::from(v6(1, 1))));
    assert_eq!(record.to, Some(core::net::IpAddr::from(v6(3, 9))));
    assert_eq!(record.layer, Some(Layer::Network));
    let listed: Vec<_> = handover
        .signals
        .iter()
        .map(|n| analysis.signals[*n as usize].kind)
        .collect();
    assert_eq!(
        listed,
        [
            SignalKind::RouterAdvertisement,
            SignalKind::DuplicateAddressDetection,
            SignalKind::BindingUpdate,
            SignalKind::BindingAcknowledgement
        ]
    );
}

fn ilnp_packets() -> Vec<(u64, Vec<u8>)> {
    let nonce = [6, 0, 0x8b, 4, 1, 2, 3, 4];
    let (peer, old, new) = (v6(2, 2), v6(1, 1), v6(3, 1));
    moves(|n, there| {
        let segment = tcp((2000, 1000), n * 100, 1, ACK, &timestamps(n, 0), 100);
        let to = if there { new } else { old };
        // the nonce comes with the first packets only
        if n < 3 {
            ipv6(peer, to, 60, &[&nonce[..], &segment].concat())
        } else {
            ipv6(peer, to, 6, &segment)
        }
    })
}

#[test]
fn an_ilnp_flow_goes_by_its_identifiers() {
    let analysis = analysed(&[raw(&ilnp_packets())]);
    moved(&analysis, HandoverKind::Locator);
    assert_eq!(analysis.flows.len(), 1);
    assert_eq!(analysis.flows[0].mobility, Mobility::Ilnp);
    assert_eq!(analysis.flows[0].b.address, core::net::IpAddr::from(v6(1, 1)));
}

#[test]
fn a_change_of_interface_alone_is_a_handover_and_a_copy_of_each_packet_is_none() {
    let packet = |n: u32| {
        ipv4(
            [10, 0, 0, 1],
            [10, 0, 0, 2],
            6,
            n as u16 + 1,
            &tcp((1, 2), n * 10, 1, ACK, &timestamps(n, 0), 10),
        )
    };
    let mut file = section(false);
    file.extend(interface(false, 101, 0, &[(9, &[9]), (2, b"wlan0")]));
    file.extend(interface(false, 101, 0, &[(9, &[9]), (2, b"eth0")]));
    let mut twice = file.clone();
    for n in 0..200u32 {
        let time = u64::from(n) * 10 * MS + if n < 100 { 0 } else { 50 * MS };
        file.extend(enhanced(
            false,
            u32::from(n >= 100),
            time,
            &packet(n),
            packet(n).len(),
        ));
        for interface in 0..2 {
            twice.extend(enhanced(
                false,
                interface,
                time + u64::from(interface) * 1000,
                &packet(n),
                packet(n).len(),
            ));
        }
    }
    let analysis = analysed(&[file]);
    moved(&analysis, HandoverKind::Interface);
    let names: Vec<_> = analysis.flows[0]
        .paths
        .iter()
        .map(|p| p.interface.as_deref())
        .collect();
    assert_eq!(names, [Some("wlan0"), Some("eth0")]);
    let analysis = analysed(&[twice]);
    assert!(analysis.handovers.is_empty(), "{:#?}", analysis.handovers);
    assert_eq!(analysis.limits["packets-captured-twice"], 200);
    assert_eq!(analysis.flows[0].forward.data_packets, 200);
}

fn chunk(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind, flags];
    out.extend((4 + body.len() as u16).to_be_bytes());
    out.extend(body);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn sctp(ports: (u16, u16), tag: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend(tag.to_be_bytes());
    out.extend([0; 4]);
    out.extend(chunks.concat());
    out
}

fn sctp_packets() -> Vec<(u64, Vec<u8>)> {
    let (peer, old, new) = (v6(2, 2), v6(1, 1), v6(3, 1));
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_be_bytes()).collect() };
    let data = |n: u32| chunk(0, 3, &[&words(&[1000 + n, 0, 0])[..], &[7; 100]].concat());
    let mut packets = moves(|n, there| {
        ipv6(
            peer,
            if there { new } else { old },
            132,
            &sctp((5, 6), 0xaaaa, &[data(n)]),
        )
    });
    for packet in &mut packets {
        packet.0 += 100 * MS;
    }
    let address = [&[0, 6, 0, 20][..], &new].concat();
    let add = [&[0xc0, 1, 0, 28][..], &words(&[1]), &address].concat();
    let primary = [&[0xc0, 4, 0, 28][..], &words(&[2]), &address].concat();
    let asconf = chunk(0xc1, 0, &[&words(&[7])[..], &address, &add, &primary].concat());
    packets.push((
        1,
        ipv6(
            old,
            peer,
            132,
            &sctp((6, 5), 0, &[chunk(1, 0, &words(&[0xaaaa, 1000, 0x10001, 5000]))]),
        ),
    ));
    packets.push((
        2,
        ipv6(
            peer,
            old,
            132,
            &sctp(
                (5, 6),
                0xaaaa,
                &[chunk(2, 0, &words(&[0xbbbb, 1000, 0x10001, 1000]))],
            ),
        ),
    ));
    packets.push((1140 * MS, ipv6(new, peer, 132, &sctp((6, 5), 0xbbbb, &[asconf]))));
    packets.push((
        1145 * MS,
        ipv6(
            peer,
            new,
            132,
            &sctp((5, 6), 0xaaaa, &[chunk(0x80, 0, &words(&[7]))]),
        ),
    ));
    for n in 0..200 {
        let sack = chunk(3, 0, &words(&[1000 + n, 1000, 0]));
        let (from, later) = if n < 100 { (old, 0) } else { (new, 50) };
        packets.push((
            (u64::from(n) * 10 + later + 120) * MS,
            ipv6(from, peer, 132, &sctp((6, 5), 0xbbbb, &[sack])),
        ));
    }
    packets.sort_by_key(|p| p.0);
    packets
}

#[test]
fn an_association_stays_one_over_its_addresses() {
    let analysis = analysed(&[raw(&sctp_packets())]);
    moved(&analysis, HandoverKind::SctpPath);
    assert_eq!(analysis.flows.len(), 1);
    let flow = &analysis.flows[0];
    assert_eq!(
        (
            flow.protocol,
            flow.reverse.data_packets,
            flow.reverse.useful_bytes
        ),
        (Protocol::Sctp, 200, 20_000)
    );
    let rtt = flow.reverse.rtt_s.expect("acknowledged");
    assert!((rtt.median - 0.02).abs() < 1e-9, "{rtt:?}");
    let kinds: Vec<_> = analysis.signals.iter().map(|s| s.kind).collect();
    let expected = [
        SignalKind::AsconfAdd,
        SignalKind::AsconfSetPrimary,
        SignalKind::AsconfAcknowledgement,
    ];
    assert_eq!(kinds, expected);
}

fn mptcp_packets() -> Vec<(u64, Vec<u8>)> {
    let (client, server) = (0x1111_2222_3333_4444u64, 0x5555_6666_7777_8888u64);
    let capable = |keys: &[u64]| {
        let mut option = vec![30, 4 + 8 * keys.len() as u8, 1, 0x81];
        option.extend(keys.iter().flat_map(|k| k.to_be_bytes()));
        option
    };
    let (first, second, peer) = ([10, 0, 0, 1], [10, 0, 9, 1], [192, 0, 2, 1]);
    let mut packets = moves(|n, there| {
        let (to, port, isn) = if there {
            (second, 41, 70_000)
        } else {
            (first, 40, 50_000)
        };
        let before = if there { 100 } else { 0 };
        // a mapping for every second packet covers two of them
        let ssn = 1 + (n - before) / 2 * 200;
        let mut option = vec![30, 20, 0x20, 0x0c];
        option.extend((5_000_000_000u64 + u64::from(n / 2 * 200)).to_be_bytes());
        option.extend(ssn.to_be_bytes());
        option.extend([0, 200, 0, 0]);
        let option = if n % 2 == 0 { option } else { Vec::new() };
        let seq = isn + 1 + (n - before) * 100;
        ipv4(
            peer,
            to,
            6,
            n as u16 + 1,
            &tcp((443, port), seq, 1, ACK, &option, 100),
        )
    });
    for packet in &mut packets {
        packet.0 += 100 * MS;
    }
    packets.push((
        1,
        ipv4(first, peer, 6, 1, &tcp((40, 443), 900, 0, SYN, &capable(&[]), 0)),
    ));
    packets.push((
        2,
        ipv4(
            peer,
            first,
            6,
            1,
            &tcp((443, 40), 50_000, 901, SYN | ACK, &capable(&[server]), 0),
        ),
    ));
    packets.push((
        3,
        ipv4(
            first,
            peer,
            6,
            2,
            &tcp((40, 443), 901, 50_001, ACK, &capable(&[client, server]), 0),
        ),
    ));
    let mut join = vec![30, 12, 0x10, 1];
    join.extend(token(server, 1).to_be_bytes());
    join.extend([1, 2, 3, 4]);
    packets.push((
        1120 * MS,
        ipv4(second, peer, 6, 1, &tcp((41, 443), 800, 0, SYN, &join, 0)),
    ));
    packets.push((
        1125 * MS,
        ipv4(
            peer,
            second,
            6,
            1,
            &tcp((443, 41), 70_000, 801, SYN | ACK, &[30, 4, 0x10, 1], 0),
        ),
    ));
    packets.push((
        1126 * MS,
        ipv4(
            second,
            peer,
            6,
            2,
            &tcp((41, 443), 801, 1, ACK, &[30, 4, 0x40, 1], 0),
        ),
    ));
    packets.sort_by_key(|p| p.0);
    packets
}

#[test]
fn subflows_are_one_connection() {
    let analysis = analysed(&[raw(&mptcp_packets())]);
    assert!(analysis.limits.is_empty(), "{:?}", analysis.limits);
    let handover = moved(&analysis, HandoverKind::MptcpSubflow);
    let connection = analysis
        .flows
        .iter()
        .find(|f| f.protocol == Protocol::Mptcp)
        .expect("a connection");
    assert_eq!(
        (
            handover.record.flow.expect("one"),
            connection.reverse.useful_bytes
        ),
        (connection.id, 20_000)
    );
    let subflows: Vec<_> = analysis
        .flows
        .iter()
        .filter(|f| f.parent == Some(connection.id))
        .collect();
    assert_eq!(subflows.len(), 2);
    assert!(subflows.iter().all(|f| f.reverse.useful_bytes == 10_000));
    let kinds: Vec<_> = analysis.signals.iter().map(|s| s.kind).collect();
    assert_eq!(kinds, [SignalKind::MptcpJoin, SignalKind::MptcpRemoveAddress]);
}

/// Captures of several interfaces are not always in the order of time.
#[test]
fn a_subflow_that_is_captured_before_its_connection_finds_it() {
    let mut packets = mptcp_packets();
    let join = packets
        .iter()
        .position(|p| p.0 == 1120 * MS)
        .expect("the SYN of the subflow");
    let mut join = packets.remove(join);
    join.0 = 4;
    packets.insert(0, join);
    let analysis = analysed(&[raw(&packets)]);
    assert!(analysis.limits.is_empty(), "{:?}", analysis.limits);
    let handover = moved(&analysis, HandoverKind::MptcpSubflow);
    let flow = analysis.flows.iter().find(|f| Some(f.id) == handover.record.flow);
    assert_eq!(flow.expect("its flow").reverse.useful_bytes, 20_000);

    // without the connection's beginning it stays unknown
    packets.retain(|p| p.0 > 3);
    let analysis = analysed(&[raw(&packets)]);
    assert_eq!(analysis.limits["mptcp-joins-of-unknown-connections"], 1);
}

#[test]
fn an_early_subflow_of_a_connection_with_too_many_keys_stays_unknown() {
    let (first, second, peer) = ([10, 0, 0, 1], [10, 0, 9, 1], [192, 0, 2, 1]);
    let its_key = 0x5555_6666_7777_8888u64;
    let mut join = vec![30, 12, 0x10, 1];
    join.extend(token(its_key, 1).to_be_bytes());
    join.extend([1, 2, 3, 4]);
    let mut packets = vec![(
        0,
        ipv4(second, peer, 6, 1, &tcp((41, 443), 800, 0, SYN, &join, 0)),
    )];
    let mut keys: Vec<[u64; 2]> = (0..40u64).map(|n| [2 * n, 2 * n + 1]).collect();
    keys.push([its_key, 99]);
    for (n, keys) in (1..).zip(keys) {
        let mut option = vec![30, 20, 1, 0x81];
        option.extend(keys.iter().flat_map(|k| k.to_be_bytes()));
        packets.push((
            n,
            ipv4(first, peer, 6, 2, &tcp((40, 443), 901, 1, ACK, &option, 0)),
        ));
    }
    let analysis = analysed(&[raw(&packets)]);
    assert_eq!(analysis.limits["mptcp-joins-of-unknown-connections"], 1);
}

fn quic_packets() -> Vec<(u64, Vec<u8>)> {
    let (old, new, server) = ([10, 0, 0, 1], [10, 0, 9, 1], [192, 0, 2, 1]);
    let long = |destination: &[u8], source: &[u8]| {
        let mut out = vec![0xc3, 0, 0, 0, 1, destination.len() as u8];
        out.extend(destination);
        out.push(source.len() as u8);
        out.extend(source);
        out.resize(1200, 0);
        out
    };
    let short = |n: u32| [&[0x41][..], &[9; 8], &n.to_be_bytes(), &[0; 100]].concat();
    let mut packets = moves(|n, there| {
        let source = if there { (new, 6000) } else { (old, 5000) };
        ipv4(source.0, server, 17, n as u16, &udp((source.1, 443), &short(n)))
    });
    for packet in &mut packets {
        packet.0 += 100 * MS;
    }
    packets.push((
        0,
        ipv4(old, server, 17, 1, &udp((5000, 443), &long(&[1; 8], &[]))),
    ));
    packets.push((
        1,
        ipv4(server, old, 17, 1, &udp((443, 5000), &long(&[], &[9; 8]))),
    ));
    packets.push((
        1130 * MS,
        ipv4(
            server,
            new,
            17,
            1,
            &udp((443, 6000), &[&[0x41][..], &[0; 60]].concat()),
        ),
    ));
    packets.sort_by_key(|p| p.0);
    packets
}

#[test]
fn quic_migrates_under_its_connection_id() {
    // the server answers on the new path before the client's data is there: that is nobody's flow yet
    let mut packets = quic_packets();
    packets.retain(|p| p.0 != 1130 * MS);
    packets.push((
        1300 * MS,
        ipv4(
            [192, 0, 2, 1],
            [10, 0, 9, 1],
            17,
            1,
            &udp((443, 6000), &[0x41; 60]),
        ),
    ));
    packets.sort_by_key(|p| p.0);
    let analysis = analysed(&[raw(&packets)]);
    let flow = &analysis.flows[0];
    assert_eq!((analysis.flows.len(), flow.protocol), (1, Protocol::Quic));
    let forward: Vec<_> = analysis
        .handovers
        .iter()
        .filter(|h| h.direction == Direction::Forward)
        .collect();
    assert_eq!(forward.len(), 1, "{:#?}", analysis.handovers);
    assert_eq!(forward[0].kind, HandoverKind::QuicPath);
    assert!((forward[0].record.latency_s.expect("it came back") - 0.06).abs() < 1e-9);
    assert_eq!(analysis.signals[0].kind, SignalKind::QuicNewPath);
}

fn wireguard_packets() -> Vec<(u64, Vec<u8>)> {
    let (old, new, server) = ([10, 0, 0, 1], [10, 0, 9, 1], [192, 0, 2, 1]);
    let handshake = |kind: u8, words: &[u32], len: usize| {
        let mut out = vec![kind, 0, 0, 0];
        out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        out.resize(len, 1);
        out
    };
    let data = |index: u32, counter: u64| {
        let mut out = vec![4, 0, 0, 0];
        out.extend(index.to_le_bytes());
        out.extend(counter.to_le_bytes());
        out.resize(16 + 128 + 16, 7);
        out
    };
    let mut packets = moves(|n, there| {
        let source = if there { (new, 6000) } else { (old, 5000) };
        // new keys half way before the move
        let (index, counter) = if n < 50 { (22, n) } else { (24, n - 50) };
        ipv4(
            source.0,
            server,
            17,
            n as u16,
            &udp((source.1, 51820), &data(index, u64::from(counter))),
        )
    });
    for packet in &mut packets {
        packet.0 += 100 * MS;
    }
    packets.push((
        0,
        ipv4(old, server, 17, 1, &udp((5000, 51820), &handshake(1, &[11], 148))),
    ));
    packets.push((
        1,
        ipv4(
            server,
            old,
            17,
            1,
            &udp((51820, 5000), &handshake(2, &[22, 11], 92)),
        ),
    ));
    packets.push((
        595 * MS,
        ipv4(old, server, 17, 1, &udp((5000, 51820), &handshake(1, &[13], 148))),
    ));
    packets.push((
        596 * MS,
        ipv4(
            server,
            old,
            17,
            1,
            &udp((51820, 5000), &handshake(2, &[24, 13], 92)),
        ),
    ));
    packets.sort_by_key(|p| p.0);
    packets
}

#[test]
fn a_wireguard_peer_roams() {
    let analysis = analysed(&[raw(&wireguard_packets())]);
    moved(&analysis, HandoverKind::WireguardEndpoint);
    let flow = &analysis.flows[0];
    assert_eq!((analysis.flows.len(), flow.protocol), (1, Protocol::Wireguard));
    assert_eq!(
        (flow.forward.data_packets, flow.forward.useful_bytes),
        (200, 200 * 128)
    );
    assert_eq!(flow.forward.duplicate_packets, 0);
    assert_eq!(analysis.signals[0].kind, SignalKind::WireguardNewEndpoint);
}

#[test]
fn throughput_before_a_handover_does_not_depend_on_when_that_is() {
    // 1000 bytes every millisecond for five seconds and so many milliseconds
    for more in [3, 20, 50, 97] {
        let last = 5000 + more;
        let packet = |n: u32| {
            let to = if n > last { v6(3, 1) } else { v6(1, 1) };
            let nonce = [6, 0, 0x8b, 4, 1, 2, 3, 4];
            let segment = tcp((2000, 1000), n * 1000, 1, ACK, &timestamps(n, 0), 1000);
            (
                u64::from(n) * MS,
                ipv6(v6(2, 2), to, 60, &[&nonce[..], &segment].concat()),
            )
        };
        let analysis = analysed(&[raw(&(0..last + 3000).map(packet).collect::<Vec<_>>())]);
        let [handover] = &analysis.handovers[..] else {
            panic!("{:#?}", analysis.handovers);
        };
        let before_bps = handover.around.throughput_before_bps;
        assert!(
            (before_bps / 8e6 - 1.0).abs() < 0.002,
            "{before_bps} after {more} ms"
        );
    }
}
