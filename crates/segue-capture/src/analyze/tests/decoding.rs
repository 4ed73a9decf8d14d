//! Headers, field by field.

use super::decode::{self, Address, Decoded, LinkType, MptcpOption, Skip, Tcp, mptcp_options};
use super::*;
use crate::pcapng::Direction;

fn raw_ip(packet: &[u8]) -> Result<Decoded<'_>, Skip> {
    decode::decode(LinkType::Raw, packet, packet.len() as u32)
}

fn skipped(link: LinkType, frame: &[u8]) -> Option<Skip> {
    decode::decode(link, frame, frame.len() as u32).err()
}

fn six(next: u8, payload: &[u8]) -> Vec<u8> {
    ipv6(v6(1, 1), v6(2, 2), next, payload)
}

fn four(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4([10, 0, 0, 1], [10, 0, 0, 2], protocol, 0x1234, payload)
}

#[test]
fn addresses_have_two_halves_and_two_kinds() {
    let six = Address::v6(v6(1, 7));
    assert_eq!((six.locator(), six.nid()), (0x2001_0db8_0000_0001, 7));
    assert!(!six.is_v4());
    let four = Address::v4([192, 0, 2, 5]);
    assert!(four.is_v4());
    assert_eq!(four.0, 0xffff_c000_0205);
    assert_eq!(four.ip().to_string(), "192.0.2.5");
    assert!(!Address(0xffff_c000_0205 | 1 << 50).is_v4());
}

#[test]
fn the_fields_of_an_ipv4_header() {
    let packet = four(17, &[7; 30]);
    let d = raw_ip(&packet).unwrap();
    let ends = (Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2]));
    assert_eq!((d.outer, d.inner, d.identity), (ends, ends, ends));
    assert_eq!((d.protocol, d.identification), (17, 0x1234));
    assert_eq!((d.payload_len, d.payload), (30, &[7u8; 30][..]));
    assert!(!d.fragment && d.fragments.is_none() && d.direction.is_none());
    assert_eq!(d.marks, decode::Marks::default());
    // options lengthen the header
    let mut options = packet.clone();
    options[0] = 0x46;
    assert_eq!(raw_ip(&options).unwrap().payload_len, 26);
    // what the link layer added is not the packet's
    let mut padded = packet.clone();
    padded.extend([0; 9]);
    assert_eq!(raw_ip(&padded).unwrap().payload.len(), 30);
    // what the snap length took off is
    let d = decode::decode(LinkType::Raw, &packet[..25], 50).unwrap();
    assert_eq!((d.payload.len(), d.payload_len), (5, 30));
    // no length: that of the frame
    let mut large = packet.clone();
    large[2..4].fill(0);
    let d = decode::decode(LinkType::Raw, &large, 5000).unwrap();
    assert_eq!((d.payload.len(), d.payload_len), (30, 4980));
}

#[test]
fn an_ipv4_header_that_contradicts_itself_is_malformed() {
    let packet = four(17, &[7; 30]);
    let with = |at: usize, value: u8| {
        let mut damaged = packet.clone();
        damaged[at] = value;
        raw_ip(&damaged).map(|d| (d.payload_len, d.fragment))
    };
    assert_eq!(with(0, 0x44), Err(Skip::Malformed));
    assert_eq!(with(0, 0x45), Ok((30, false)));
    assert_eq!(with(3, 19), Err(Skip::Malformed));
    assert_eq!(with(3, 20), Ok((0, false)));
    assert_eq!(with(3, 21), Ok((1, false)));
    assert_eq!(with(0, 0x35), Err(Skip::Malformed));
    assert_eq!(with(0, 0x75), Err(Skip::Malformed));
    // don't fragment, more fragments, an offset in each byte
    assert_eq!(with(6, 0x40), Ok((30, false)));
    assert_eq!(with(6, 0x20), Ok((30, true)));
    assert_eq!(with(6, 0x01), Err(Skip::Fragment));
    assert_eq!(with(6, 0x10), Err(Skip::Fragment));
    assert_eq!(with(7, 0x01), Err(Skip::Fragment));
    assert_eq!(skipped(LinkType::Raw, &packet[..19]), Some(Skip::CutOff));
    assert_eq!(skipped(LinkType::Raw, &packet[..20]), None);
    assert_eq!(skipped(LinkType::Raw, &[]), Some(Skip::CutOff));
}

#[test]
fn the_fields_of_an_ipv6_header() {
    let packet = six(17, &[7; 30]);
    let d = raw_ip(&packet).unwrap();
    let ends = (Address::v6(v6(1, 1)), Address::v6(v6(2, 2)));
    assert_eq!((d.outer, d.inner, d.identity), (ends, ends, ends));
    assert_eq!((d.protocol, d.payload_len, d.payload.len()), (17, 30, 30));
    assert_eq!((d.identification, d.fragment, d.fragments), (0, false, None));
    let mut padded = packet.clone();
    padded.extend([0; 9]);
    assert_eq!(raw_ip(&padded).unwrap().payload.len(), 30);
    let mut large = packet.clone();
    large[4..6].fill(0);
    let d = decode::decode(LinkType::Raw, &large, 5000).unwrap();
    assert_eq!((d.payload.len(), d.payload_len), (30, 4960));
    // no next header: it has none
    large[6] = 59;
    assert_eq!(raw_ip(&large).unwrap().payload_len, 0);
    assert_eq!(skipped(LinkType::Raw, &packet[..39]), Some(Skip::CutOff));
    assert_eq!(skipped(LinkType::Raw, &packet[..40]), None);
}

#[test]
fn extension_headers_are_as_long_as_they_say() {
    let rest = [5u8; 40];
    // hop-by-hop, routing and destination options in units of 8 behind the first, authentication of 4 behind two
    for (kind, units, len) in [
        (0u8, 0u8, 8usize),
        (0, 2, 24),
        (43, 1, 16),
        (60, 1, 16),
        (51, 1, 12),
        (51, 4, 24),
    ] {
        let mut header = vec![17, units];
        header.resize(len, 0);
        let packet = six(kind, &[&header[..], &rest].concat());
        let d = raw_ip(&packet).unwrap();
        assert_eq!(
            (d.protocol, d.payload_len, d.payload),
            (17, 40, &rest[..]),
            "{kind}"
        );
        assert!(!d.marks.route_optimised && !d.marks.ilnp && !d.marks.tunnelled);
    }
    let chain = |count: usize| {
        let mut headers = Vec::new();
        for n in 0..count {
            headers.extend([if n + 1 == count { 17 } else { 60 }, 0, 1, 4, 0, 0, 0, 0]);
        }
        headers.extend(rest);
        skipped(LinkType::Raw, &six(60, &headers))
    };
    assert_eq!((chain(15), chain(16)), (None, Some(Skip::TooDeep)));
    assert_eq!(
        skipped(LinkType::Raw, &six(60, &[17, 0, 1, 4, 0, 0, 0])),
        Some(Skip::CutOff)
    );
    assert_eq!(
        skipped(LinkType::Raw, &six(60, &[17, 1, 1, 4, 0, 0, 0, 0])),
        Some(Skip::CutOff)
    );
}

#[test]
fn a_fragment_header_says_which_fragment_it_is() {
    let with = |offset: u16| {
        let mut header = vec![17, 0];
        header.extend(offset.to_be_bytes());
        header.extend([1, 2, 3, 4]);
        header.extend([9; 16]);
        raw_ip(&six(44, &header)).map(|d| (d.fragment, d.fragments, d.payload_len))
    };
    assert_eq!(with(0), Ok((false, Some(0x0102_0304), 16)));
    assert_eq!(with(1), Ok((true, Some(0x0102_0304), 16)));
    // reserved bits
    assert_eq!(with(6), Ok((false, Some(0x0102_0304), 16)));
    assert_eq!(with(8), Err(Skip::Fragment));
    assert_eq!(with(0x8000), Err(Skip::Fragment));
}

#[test]
fn options_of_mobility_are_found_among_others() {
    let home = v6(9, 9);
    let identity = |options: &[u8]| {
        let mut header = vec![17, 0];
        header.extend(options);
        let units = header.len().div_ceil(8) - 1;
        header[1] = units as u8;
        header.resize((units + 1) * 8, 0);
        header.extend([1; 8]);
        let packet = six(60, &header);
        let d = raw_ip(&packet).unwrap();
        (
            d.identity.0 == Address::v6(home),
            d.marks.route_optimised,
            d.marks.ilnp,
        )
    };
    let address = [&[0xc9, 16][..], &home].concat();
    assert_eq!(identity(&address), (true, true, false));
    assert_eq!(
        identity(&[&[0, 0, 1, 2, 5, 5][..], &address].concat()),
        (true, true, false)
    );
    assert_eq!(identity(&[0x8b, 4, 1, 2, 3, 4]), (false, false, true));
    assert_eq!(identity(&[&[0x8b, 0][..], &address].concat()), (true, true, true));
    // too short, of another kind, and one that says that it is longer than its header
    assert_eq!(
        identity(&[&[0xc9, 15][..], &home[..15]].concat()),
        (false, false, false)
    );
    assert_eq!(
        identity(&[&[0xca, 16][..], &home].concat()),
        (false, false, false)
    );
    assert_eq!(identity(&[1, 200, 0x8b, 0]), (false, false, false));
    assert_eq!(identity(&[0, 0, 0, 0, 0, 1]), (false, false, false));
}

#[test]
fn a_type_2_routing_header_carries_the_receivers_home_address() {
    let home = v6(9, 9);
    let identity = |kind: u8, left: u8| {
        let header = [&[17, 2, kind, left, 0, 0, 0, 0][..], &home, &[1; 8]].concat();
        let packet = six(43, &header);
        let d = raw_ip(&packet).unwrap();
        assert_eq!(d.identity.0, Address::v6(v6(1, 1)));
        assert_eq!(d.outer.1, Address::v6(v6(2, 2)));
        (d.identity.1 == Address::v6(home), d.marks.route_optimised)
    };
    assert_eq!(identity(2, 1), (true, true));
    assert_eq!(identity(0, 1), (false, false));
    assert_eq!(identity(3, 1), (false, false));
    assert_eq!(identity(2, 0), (false, false));
    assert_eq!(identity(2, 2), (false, false));
}

#[test]
fn a_tunnel_keeps_the_outer_addresses_and_shows_the_inner_ends() {
    let inner = four(17, &[7; 30]);
    let gre = |flags: u8, version: u8, kind: [u8; 2], words: usize| {
        let mut header = vec![flags, version, kind[0], kind[1]];
        header.resize(4 + 4 * words, 0);
        header.extend(&inner);
        six(47, &header)
    };
    for packet in [
        six(4, &inner),
        gre(0, 0, [8, 0], 0),
        gre(0x80, 0, [8, 0], 1),
        gre(0x20, 0, [8, 0], 1),
        gre(0x10, 0, [8, 0], 1),
        gre(0xb0, 0, [8, 0], 3),
        gre(0x4f, 0xf8, [8, 0], 0),
    ] {
        let d = raw_ip(&packet).unwrap();
        assert_eq!(d.outer, (Address::v6(v6(1, 1)), Address::v6(v6(2, 2))));
        assert_eq!(d.inner, (Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2])));
        assert_eq!((d.protocol, d.payload_len, d.identification), (17, 30, 0x1234));
        assert!(d.marks.tunnelled && !d.marks.route_optimised && !d.marks.ilnp);
    }
    // PPTP's version, and what is no IP, are not looked into
    for packet in [
        gre(0, 1, [8, 0], 0),
        gre(0, 0, [8, 6], 0),
        gre(0, 0, [0x65, 0x58], 0),
    ] {
        let d = raw_ip(&packet).unwrap();
        assert_eq!((d.protocol, d.marks.tunnelled), (47, false));
    }
    let sixth = gre(0, 0, [0x86, 0xdd], 0);
    assert_eq!(raw_ip(&sixth).map(|d| d.protocol), Ok(17));
    // an inner packet without a length has that of the tunnel's, less the header between
    let mut large = gre(0x80, 0, [8, 0], 1);
    large[40 + 8 + 2..40 + 8 + 4].fill(0);
    assert_eq!(raw_ip(&large).unwrap().payload_len, 30);
    let nested = |depth: usize| {
        let packet = (0..depth).fold(inner.clone(), |p, _| six(4, &p));
        raw_ip(&packet).map(|d| d.protocol)
    };
    assert_eq!((nested(3), nested(4)), (Ok(17), Err(Skip::TooDeep)));
    assert_eq!(
        raw_ip(&six(50, &[0; 20])).map(|d| d.protocol),
        Err(Skip::Encrypted)
    );
    let mut part = four(4, &inner);
    part[6] = 0x20;
    assert_eq!(raw_ip(&part).map(|d| d.protocol), Err(Skip::Fragment));
    // route optimisation outside stays known
    let option = [&[4, 2, 1, 2, 0, 0, 0xc9, 16][..], &v6(9, 9), &inner].concat();
    assert!(raw_ip(&six(60, &option)).unwrap().marks.route_optimised);
}

#[test]
fn link_types_by_number_and_name() {
    for (number, name) in [
        (0, Some("loopback")),
        (108, Some("loopback")),
        (1, Some("ethernet")),
        (12, Some("raw-ip")),
        (14, Some("raw-ip")),
        (101, Some("raw-ip")),
        (228, Some("raw-ip")),
        (229, Some("raw-ip")),
        (113, Some("linux-cooked")),
        (219, Some("mpls")),
        (276, Some("linux-cooked-v2")),
        (2, None),
        (13, None),
        (102, None),
        (227, None),
        (230, None),
    ] {
        assert_eq!(LinkType::of(number).name(), name, "{number}");
    }
    let names = Skip::ALL.map(Skip::name);
    assert_eq!(
        names,
        [
            "not-ip",
            "unknown-link-type",
            "headers-cut-off",
            "malformed",
            "later-fragments",
            "nested-too-deep",
            "encrypted"
        ]
    );
    for (index, skip) in Skip::ALL.into_iter().enumerate() {
        assert_eq!(skip as usize, index);
    }
}

#[test]
fn the_family_of_a_loopback_frame_is_in_either_byte_order() {
    let packet = four(17, &[7; 30]);
    let with = |family: [u8; 4]| skipped(LinkType::Loopback, &[&family[..], &packet].concat());
    for family in [2, 10, 24, 28, 30] {
        assert_eq!(with([family, 0, 0, 0]), None);
        assert_eq!(with([0, 0, 0, family]), None);
    }
    for family in [0, 1, 3, 9, 11, 23, 25, 29, 31] {
        assert_eq!(with([0, 0, 0, family]), Some(Skip::NotIp));
    }
    assert_eq!(skipped(LinkType::Loopback, &[2, 0, 0]), Some(Skip::CutOff));
    assert_eq!(skipped(LinkType::Unknown, &packet), Some(Skip::UnknownLink));
}

/// A packet without a length: what is left of the frame shows how long the link header was taken to be.
fn large() -> Vec<u8> {
    let mut packet = four(17, &[7; 30]);
    packet[2..4].fill(0);
    packet
}

fn left(link: LinkType, header: &[u8]) -> Result<(u32, Option<Direction>), Skip> {
    let frame = [header, &large()].concat();
    decode::decode(link, &frame, frame.len() as u32).map(|d| (d.payload_len, d.direction))
}

#[test]
fn tags_and_labels_are_passed_over_and_counted() {
    let macs = [2u8; 12];
    let eth = |header: &[u8]| left(LinkType::Ethernet, &[&macs[..], header].concat());
    let whole = Ok((30, None));
    let tags = |count: usize, kind: [u8; 2]| {
        let mut header: Vec<u8> = (0..count).flat_map(|_| [kind[0], kind[1], 0, 7]).collect();
        header.extend([8, 0]);
        eth(&header)
    };
    for kind in [[0x81, 0], [0x88, 0xa8], [0x91, 0]] {
        assert_eq!((tags(1, kind), tags(3, kind)), (whole, whole));
        assert_eq!(tags(4, kind), Err(Skip::NotIp));
    }
    for (kind, found) in [
        ([0x88, 0x47], whole),
        ([0x88, 0x48], whole),
        ([0x88, 0x46], Err(Skip::NotIp)),
        ([0x88, 0xe5], Err(Skip::NotIp)),
        ([0x08, 0x06], Err(Skip::NotIp)),
    ] {
        assert_eq!(eth(&[kind[0], kind[1], 0, 2, 1, 64]), found);
    }
    for (protocol, found) in [
        ([0x00, 0x21], whole),
        ([0x00, 0x57], whole),
        ([0x00, 0x22], Err(Skip::NotIp)),
        ([0xc0, 0x21], Err(Skip::NotIp)),
    ] {
        assert_eq!(
            eth(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 50, protocol[0], protocol[1]]),
            found
        );
    }
    for protocol in [0x81, 0x83] {
        assert_eq!(
            eth(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 50, 2, protocol, 0, 2, 1, 64]),
            whole
        );
    }
    // a length up to 1500, behind which are LLC and SNAP
    for (length, found) in [([5, 0xdc], whole), ([5, 0xdd], Err(Skip::NotIp)), ([0, 0], whole)] {
        assert_eq!(eth(&[length[0], length[1], 6, 6, 3]), found);
        assert_eq!(eth(&[length[0], length[1], 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]), found);
    }
    assert_eq!(eth(&[0, 60, 0xaa, 0xaa, 3, 0, 0, 0xf8, 8, 0]), whole);
    assert_eq!(eth(&[0, 60, 0xaa, 0xaa, 3, 0, 0, 0xf9, 8, 0]), Err(Skip::NotIp));
    assert_eq!(eth(&[0, 60, 0xaa, 0xaa, 2, 0, 0, 0, 8, 0]), Err(Skip::NotIp));
    assert_eq!(eth(&[0, 60, 0x42, 0x42, 3]), Err(Skip::NotIp));
    let labels = |count: usize| {
        let mut header = [0, 1, 0, 64].repeat(count - 1);
        header.extend([0, 2, 1, 64]);
        left(LinkType::Mpls, &header)
    };
    assert_eq!(
        (labels(1), labels(16), labels(17)),
        (whole, whole, Err(Skip::TooDeep))
    );
    // a pseudowire, and one of something else
    let wire = |kind: [u8; 2]| {
        left(
            LinkType::Mpls,
            &[&[0, 2, 1, 64, 0, 0, 0, 0][..], &macs, &kind].concat(),
        )
    };
    assert_eq!((wire([8, 0]), wire([8, 6])), (whole, Err(Skip::NotIp)));
    assert_eq!(left(LinkType::Mpls, &[0, 2, 1, 64, 0x10]), Err(Skip::NotIp));
    assert_eq!(skipped(LinkType::Ethernet, &macs), Some(Skip::CutOff));
    assert_eq!(skipped(LinkType::Mpls, &[0, 2, 1]), Some(Skip::CutOff));
    assert_eq!(skipped(LinkType::Mpls, &[0, 2, 1, 64]), Some(Skip::CutOff));
}

#[test]
fn cooked_headers_are_of_16_and_20_bytes_and_say_the_direction() {
    for (kind, direction) in [
        (0u8, Some(Direction::Inbound)),
        (1, Some(Direction::Inbound)),
        (2, Some(Direction::Inbound)),
        (3, None),
        (4, Some(Direction::Outbound)),
        (5, None),
    ] {
        let one = [&[0, kind, 0, 1, 0, 6][..], &[9; 8], &[8, 0]].concat();
        let two = [&[8, 0, 0, 0, 0, 0, 0, 3, 0, 1, kind, 6][..], &[9; 8]].concat();
        assert_eq!(left(LinkType::LinuxSll, &one), Ok((30, direction)));
        assert_eq!(left(LinkType::LinuxSll2, &two), Ok((30, direction)));
    }
    // version 2 says by which of the host's interfaces, too
    let device = |link, header: &[u8]| {
        let frame = [header, &four(17, &[0; 8])].concat();
        decode::decode(link, &frame, frame.len() as u32).map(|d| d.device)
    };
    let one = [&[0, 0, 0, 1, 0, 6][..], &[9; 8], &[8, 0]].concat();
    let two = [&[8, 0, 0, 0, 1, 2, 3, 4, 0, 1, 0, 6][..], &[9; 8]].concat();
    assert_eq!(device(LinkType::LinuxSll, &one), Ok(0));
    assert_eq!(device(LinkType::LinuxSll2, &two), Ok(0x0102_0304));
    assert_eq!(skipped(LinkType::LinuxSll, &[0; 15]), Some(Skip::CutOff));
    assert_eq!(skipped(LinkType::LinuxSll2, &[0; 19]), Some(Skip::CutOff));
}

#[test]
fn a_udp_datagram_is_as_long_as_its_header_or_what_holds_it_says() {
    let read = |length: u16, data: usize| {
        let mut datagram = udp((1000, 2000), &vec![3; data]);
        datagram[4..6].copy_from_slice(&length.to_be_bytes());
        let packet = six(17, &datagram);
        let d = raw_ip(&packet).unwrap();
        decode::udp(&d).map(|(s, t, data, len)| (s, t, data.len(), len))
    };
    assert_eq!(read(58, 50), Ok((1000, 2000, 50, 50)));
    assert_eq!(read(40, 50), Ok((1000, 2000, 32, 32)));
    assert_eq!(read(0, 50), Ok((1000, 2000, 50, 50)));
    assert_eq!(read(90, 50), Ok((1000, 2000, 50, 50)));
    assert_eq!(read(8, 50), Ok((1000, 2000, 0, 0)));
    assert_eq!(read(7, 50), Err(Skip::Malformed));
    // a first fragment: the header is the whole datagram's
    let fragment = |length: u16, more: u8| {
        let mut datagram = udp((1000, 2000), &[3; 40]);
        datagram[4..6].copy_from_slice(&length.to_be_bytes());
        let packet = six(44, &[&[17, 0, 0, more, 0, 0, 0, 1][..], &datagram].concat());
        let d = raw_ip(&packet).unwrap();
        decode::udp(&d).map(|(_, _, data, len)| (data.len(), len))
    };
    assert_eq!(
        (fragment(4008, 1), fragment(4008, 0)),
        (Ok((40, 4000)), Ok((40, 40)))
    );
    assert_eq!(
        (fragment(0, 1), fragment(7, 1)),
        (Ok((40, 40)), Err(Skip::Malformed))
    );
    let packet = six(17, &[0; 7]);
    assert_eq!(decode::udp(&raw_ip(&packet).unwrap()).err(), Some(Skip::CutOff));
}

fn segment(options: &[u8], data: usize) -> Vec<u8> {
    six(6, &tcp((80, 5000), 0x0102_0304, 0x0506_0708, 0x12, options, data))
}

#[test]
fn the_fields_of_a_tcp_header() {
    let packet = segment(&timestamps(0x1111_2222, 0x3333_4444), 9);
    let d = raw_ip(&packet).unwrap();
    let t = Tcp::parse(&d).unwrap();
    assert_eq!((t.source_port, t.destination_port), (80, 5000));
    assert_eq!(
        (t.seq, t.ack, t.flags, t.window),
        (0x0102_0304, 0x0506_0708, 0x12, 256)
    );
    assert_eq!((t.data_len, t.options.len()), (9, 12));
    assert_eq!(t.timestamps, Some((0x1111_2222, 0x3333_4444)));
    assert!(!t.has_more_options());
    let shown = |options: &[u8]| {
        let packet = segment(options, 0);
        let d = raw_ip(&packet).unwrap();
        let t = Tcp::parse(&d).unwrap();
        (t.timestamps, t.sack(), t.has_more_options())
    };
    assert_eq!(shown(&[]), (None, None, false));
    let odd = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(shown(&odd), (Some((1, 2)), None, true));
    assert_eq!(
        shown(&[&[2, 4, 5, 0xb4][..], &odd].concat()),
        (Some((1, 2)), None, true)
    );
    // the end of the list, a length of nothing, one beyond the header
    assert_eq!(shown(&[&[0][..], &odd].concat()), (None, None, true));
    assert_eq!(shown(&[&[9, 1][..], &odd].concat()), (None, None, true));
    assert_eq!(shown(&[&[9, 2][..], &odd].concat()), (Some((1, 2)), None, true));
    assert_eq!(shown(&[&[9, 200][..], &odd].concat()), (None, None, true));
    let sack = [1, 1, 5, 18, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0];
    assert_eq!(shown(&sack), (None, Some((0x100, 0x200)), true));
    // the header's length is in words, from five on
    let mut short = segment(&[], 9);
    for (words, found) in [
        (4, Err(Skip::Malformed)),
        (5, Ok(9)),
        (7, Ok(1)),
        (8, Err(Skip::Malformed)),
    ] {
        short[40 + 12] = words << 4;
        let parsed = Tcp::parse(&raw_ip(&short).unwrap()).map(|t| t.data_len);
        assert_eq!(parsed, found, "{words}");
    }
    let cut = six(6, &[0; 19]);
    assert_eq!(Tcp::parse(&raw_ip(&cut).unwrap()).err(), Some(Skip::CutOff));
}

/// The only option of MPTCP with this data.
fn option(data: &[u8], syn: bool, ack: bool) -> Option<MptcpOption> {
    let bytes = [&[1, 30, data.len() as u8 + 2][..], data].concat();
    let mut options = mptcp_options(&bytes, syn, ack);
    let first = options.next();
    assert!(options.next().is_none());
    first
}

#[test]
fn the_options_of_mptcp_by_their_subtypes() {
    let (one, two) = (1u64.to_be_bytes(), 2u64.to_be_bytes());
    let keys = [&[0x01, 0x81][..], &one, &two].concat();
    let capable = |sender_key, receiver_key| {
        Some(MptcpOption::Capable {
            version: 1,
            sender_key,
            receiver_key,
        })
    };
    assert_eq!(option(&keys, false, true), capable(Some(1), Some(2)));
    assert_eq!(option(&keys, true, true), capable(Some(1), None));
    assert_eq!(option(&keys[..10], false, true), capable(Some(1), None));
    assert_eq!(option(&keys[..2], true, false), capable(None, None));
    let join = |first: u8| [first, 3, 0, 0, 1, 2, 9, 9, 9, 9];
    let token = |backup| Some(MptcpOption::JoinSyn { token: 0x102, backup });
    assert_eq!(option(&join(0x10), true, false), token(false));
    assert_eq!(option(&join(0x11), true, false), token(true));
    assert_eq!(option(&join(0x11), true, true), Some(MptcpOption::JoinOther));
    assert_eq!(option(&join(0x11), false, true), Some(MptcpOption::JoinOther));
    assert_eq!(option(&join(0x11), false, false), Some(MptcpOption::JoinOther));
    for (first, expected) in [
        (0x30, MptcpOption::AddAddress { echo: false }),
        (0x31, MptcpOption::AddAddress { echo: true }),
        (0x40, MptcpOption::RemoveAddress),
        (0x50, MptcpOption::Priority { backup: false }),
        (0x51, MptcpOption::Priority { backup: true }),
        (0x60, MptcpOption::Ends),
        (0x70, MptcpOption::Ends),
        (0x80, MptcpOption::Ends),
        (0x90, MptcpOption::Other),
        (0xf0, MptcpOption::Other),
    ] {
        assert_eq!(option(&[first, 0], false, true), Some(expected));
    }
}

#[test]
fn a_data_sequence_signal_has_what_its_flags_say() {
    let dss = |flags: u8, fields: &[u8]| option(&[&[0x20, flags][..], fields].concat(), false, true);
    let ack = |ack| Some(MptcpOption::DataAck { ack });
    assert_eq!(dss(0, &[]), ack(None));
    assert_eq!(dss(2, &[]), ack(None));
    assert_eq!(dss(1, &[0, 0, 0, 7]), ack(Some(7)));
    assert_eq!(dss(3, &[0, 0, 0, 1, 0, 0, 0, 7]), ack(Some(7)));
    assert_eq!(dss(3, &[0, 0, 0, 1]), ack(None));
    let mapping = |dsn, wide, fin, ack| {
        Some(MptcpOption::Mapping {
            dsn,
            wide,
            ssn: 5,
            len: 6,
            fin,
            ack,
        })
    };
    assert_eq!(
        dss(4, &[0, 0, 0, 9, 0, 0, 0, 5, 0, 6]),
        mapping(9, false, false, None)
    );
    let wide = [0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 5, 0, 6];
    assert_eq!(dss(12, &wide), mapping(0x1_0000_0009, true, false, None));
    assert_eq!(dss(28, &wide), mapping(0x1_0000_0009, true, true, None));
    let short = [0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 5, 0, 6];
    assert_eq!(dss(5, &short), mapping(9, false, false, Some(8)));
    assert_eq!(
        dss(15, &[&[0, 0, 0, 3, 0, 0, 0, 8][..], &wide].concat()),
        mapping(0x1_0000_0009, true, false, Some(8))
    );
    assert_eq!(dss(4, &[0, 0, 0, 9, 0, 0, 0, 5, 0]), None);
}
