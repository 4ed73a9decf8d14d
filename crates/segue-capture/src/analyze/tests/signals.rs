//! What messages are taken for, and which association a packet is of.

use super::*;

fn signals(packets: &[(u64, Vec<u8>)]) -> Vec<(SignalKind, Option<String>)> {
    let shown = |s: &Signal| (s.kind, s.about.map(|a| a.to_string()));
    analysed(&[raw(packets)]).signals.iter().map(shown).collect()
}

#[test]
fn messages_of_the_mobility_header_are_about_the_mobile_node() {
    let (mobile, other) = ("2001:db8:0:1::1", "2001:db8:0:2::2");
    for (kind, expected) in [
        (0, None),
        (1, Some((SignalKind::HomeTestInit, mobile))),
        (2, Some((SignalKind::CareOfTestInit, mobile))),
        (3, Some((SignalKind::HomeTest, other))),
        (4, Some((SignalKind::CareOfTest, other))),
        (5, Some((SignalKind::BindingUpdate, mobile))),
        (6, Some((SignalKind::BindingAcknowledgement, other))),
        (7, Some((SignalKind::BindingError, other))),
        (8, None),
    ] {
        let packet = ipv6(v6(1, 1), v6(2, 2), 135, &[59, 1, kind, 0, 0, 0, 0, 0]);
        let expected: Vec<_> = expected
            .map(|(k, a)| (k, Some(a.to_owned())))
            .into_iter()
            .collect();
        assert_eq!(signals(&[(1, packet)]), expected, "{kind}");
    }
}

#[test]
fn messages_of_icmpv6_by_their_types() {
    let icmp = |source, data: &[u8]| vec![(1, ipv6(source, v6(2, 2), 58, data))];
    let locators = |operation: u8, lifetimes: [u8; 2]| {
        let mut data = vec![156, 0, 0, 0, 2, operation, 0, 0];
        for (locator, lifetime) in [v6(7, 0), v6(8, 0)].iter().zip(lifetimes) {
            data.extend(&locator[..8]);
            data.extend([0, 1, 0, lifetime]);
        }
        signals(&icmp(v6(1, 1), &data))
    };
    let about = |kind, address: &str| vec![(kind, Some(address.to_owned()))];
    assert_eq!(
        locators(1, [9, 9]),
        about(SignalKind::LocatorUpdate, "2001:db8:0:7::")
    );
    assert_eq!(
        locators(1, [0, 9]),
        about(SignalKind::LocatorUpdate, "2001:db8:0:8::")
    );
    assert_eq!(
        locators(2, [9, 9]),
        about(SignalKind::LocatorUpdateAcknowledgement, "2001:db8:0:7::")
    );
    assert_eq!(locators(1, [0, 0]), [(SignalKind::LocatorUpdate, None)]);
    assert_eq!(
        signals(&icmp(v6(1, 1), &[133, 0, 0, 0])),
        [(SignalKind::RouterSolicitation, None)]
    );
    assert_eq!(
        signals(&icmp(v6(1, 1), &[134, 0, 0, 0])),
        [(SignalKind::RouterAdvertisement, None)]
    );
    let solicitation = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &v6(3, 9)].concat();
    let probe = about(SignalKind::DuplicateAddressDetection, "2001:db8:0:3::9");
    assert_eq!(signals(&icmp([0; 16], &solicitation)), probe);
    assert_eq!(signals(&icmp(v6(1, 1), &solicitation)), []);
    assert_eq!(signals(&icmp(v6(1, 1), &[128, 0, 0, 0])), []);
}

#[test]
fn packets_are_counted_by_their_protocols() {
    let packet = |protocol: u8, payload: &[u8]| ipv6(v6(1, 1), v6(2, 2), protocol, payload);
    let chunk = sctp((1, 2), 5, &[4, 0, 0, 4]);
    let mut packets = Vec::new();
    for (protocol, payload, times) in [
        (6u8, tcp((1, 2), 1, 1, 16, &[], 1), 1),
        (17, udp((1, 2), &[0; 9]), 2),
        (132, chunk, 3),
        (58, vec![128, 0, 0, 0], 4),
        (135, vec![59, 1, 8, 0], 5),
        (89, vec![0; 9], 6),
    ] {
        for _ in 0..times {
            packets.push((packets.len() as u64, packet(protocol, &payload)));
        }
    }
    let analysis = analysed(&[raw(&packets)]);
    let counts = &analysis.captures[0].counts;
    let of = [
        "tcp",
        "udp",
        "sctp",
        "icmpv6",
        "mobility-header",
        "other-protocols",
    ]
    .map(|name| counts[name]);
    assert_eq!((of, counts.len()), ([1, 2, 3, 4, 5, 6], 6));
}

fn sctp(ports: (u16, u16), tag: u32, chunk: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend(tag.to_be_bytes());
    out.extend([0; 4]);
    out.extend(chunk);
    out
}

fn init(kind: u8, tag: u8, tsn: u8) -> Vec<u8> {
    vec![kind, 0, 0, 20, 0, 0, 0, tag, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, tsn]
}

fn data(tsn: u8) -> Vec<u8> {
    let mut chunk = vec![0, 3, 0, 26, 0, 0, 0, tsn];
    chunk.resize(28, 0);
    chunk
}

/// Packets from one end and the other, with their tags.
fn association(packets: &[(bool, u32, Vec<u8>)]) -> Vec<u64> {
    let packet = |(n, (back, tag, chunk)): (usize, &(bool, u32, Vec<u8>))| {
        let (source, destination, ports) = if *back {
            (v6(2, 2), v6(1, 1), (20, 10))
        } else {
            (v6(1, 1), v6(2, 2), (10, 20))
        };
        (
            n as u64 * MS,
            ipv6(source, destination, 132, &sctp(ports, *tag, chunk)),
        )
    };
    let packets: Vec<_> = packets.iter().enumerate().map(packet).collect();
    analysed(&[raw(&packets)])
        .flows
        .iter()
        .map(|f| f.forward.useful_bytes)
        .collect()
}

#[test]
fn an_init_says_the_first_number_and_begins_another_association_after_the_end_of_one() {
    let begun = [(false, 0, init(1, 7, 100)), (true, 7, init(2, 9, 200))];
    let with = |more: &[(bool, u32, Vec<u8>)]| association(&[&begun[..], more].concat());
    // what was overtaken by the first packet seen is new
    assert_eq!(with(&[(false, 9, data(105)), (false, 9, data(100))]), [20]);
    let abort = vec![6, 0, 0, 4];
    let (again, other) = ((false, 0, init(1, 7, 100)), (false, 0, init(1, 8, 50)));
    let first = (false, 9, data(100));
    assert_eq!(
        with(&[first.clone(), (false, 9, abort.clone()), other.clone()]).len(),
        2
    );
    assert_eq!(with(&[first.clone(), (false, 9, abort.clone()), again]).len(), 1);
    assert_eq!(with(&[first.clone(), other]).len(), 1);
    // the same chunk of an association that is over
    assert_eq!(with(&[first, (false, 9, abort), (false, 0, data(101))]).len(), 1);
}

#[test]
fn an_option_without_length_ends_an_advertisement() {
    let advertisement = [&[134, 0, 0, 0][..], &[0; 12], &[1, 0, 64, 0], &[0; 28]].concat();
    let packet = ipv6(v6(1, 1), v6(2, 2), 58, &advertisement);
    assert_eq!(signals(&[(1, packet)]), [(SignalKind::RouterAdvertisement, None)]);
}

#[test]
fn the_direction_of_a_packet_follows_from_its_tag() {
    let packet = |n: u64, ends: [u16; 2], back: bool, tag: u32| {
        let ports = if back { (20, 10) } else { (10, 20) };
        let chunk = sctp(ports, tag, &data(n as u8));
        (
            n * MS,
            ipv6(v6(ends[0], ends[0]), v6(ends[1], ends[1]), 132, &chunk),
        )
    };
    let bytes = |packets: &[(u64, Vec<u8>)]| {
        let analysis = analysed(&[raw(packets)]);
        let both = |f: &Flow| (f.forward.data_bytes, f.reverse.data_bytes);
        analysis.flows.iter().map(both).collect::<Vec<_>>()
    };
    // both ends are elsewhere in the third and the fourth
    let apart = [
        packet(1, [1, 2], false, 7),
        packet(2, [2, 1], true, 9),
        packet(3, [5, 4], true, 9),
        packet(4, [6, 8], true, 9),
    ];
    assert_eq!(bytes(&apart), [(10, 30)]);
}

#[test]
fn where_both_ends_chose_one_tag_the_addresses_tell_the_direction() {
    let begun = [(false, 0, init(1, 7, 100)), (true, 7, init(2, 7, 200))];
    let sent = [(false, 7, data(100)), (true, 7, data(200)), (true, 7, data(201))];
    assert_eq!(association(&[&begun[..], &sent].concat()), [10]);
}
