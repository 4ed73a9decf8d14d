//! Link layers, tunnels and extension headers.

use super::*;

fn datagram() -> Vec<u8> {
    ipv6(v6(1, 1), v6(2, 2), 17, &udp((1000, 2000), &[7; 50]))
}

/// The only flow of one frame of a link type.
fn flow(link: u16, frame: Vec<u8>) -> Flow {
    let mut analysis = analysed(&[pcap(link, false, true, &[(MS, frame)])]);
    assert_eq!(analysis.flows.len(), 1, "{:?}", analysis.captures);
    analysis.flows.remove(0)
}

fn ends(flow: &Flow) -> (String, String, u64) {
    (
        flow.a.address.to_string(),
        flow.b.address.to_string(),
        flow.forward.data_bytes,
    )
}

#[test]
fn a_packet_is_found_on_every_link() {
    let expected = ("2001:db8:0:1::1".to_owned(), "2001:db8:0:2::2".to_owned(), 50);
    let packet = datagram();
    let with = |header: &[u8]| [header, &packet].concat();
    let macs = [2u8; 12];
    let vlan = [&macs[..], &[0x81, 0, 0, 7, 0x86, 0xdd]].concat();
    let qinq = [&macs[..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x86, 0xdd]].concat();
    let pppoe = [&macs[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 100, 0, 0x57]].concat();
    let sll = [&[0, 4, 0, 1, 0, 6][..], &[9; 8], &[0x86, 0xdd]].concat();
    let sll2 = [&[0x86, 0xdd, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6][..], &[9; 8]].concat();
    let sll2_vlan = [
        &[0x81, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6][..],
        &[9; 8],
        &[0, 5, 0x86, 0xdd],
    ]
    .concat();
    // the stack's bottom is the second label
    let stack = [&macs[..], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]].concat();
    let pseudowire = [
        &macs[..],
        &[0x88, 0x48, 0, 2, 1, 64, 0, 0, 0, 0],
        &macs,
        &[0x86, 0xdd],
    ]
    .concat();
    let snap = [&macs[..], &[0, 106, 0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd]].concat();
    let snap_vlan = [
        &macs[..],
        &[0x81, 0, 0, 7, 0, 106, 0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd],
    ]
    .concat();
    let llc = [&macs[..], &[0, 101, 6, 6, 3]].concat();
    let sll_snap = [
        &[0, 4, 0, 1, 0, 6][..],
        &[9; 8],
        &[0, 4, 0xaa, 0xaa, 3, 0, 0, 0xf8, 0x86, 0xdd],
    ]
    .concat();
    let sll2_mpls = [
        &[0x88, 0x47, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6][..],
        &[9; 8],
        &[0, 2, 1, 64],
    ]
    .concat();
    let ppp_mpls = [
        &macs[..],
        &[0x88, 0x64, 0x11, 0, 0, 1, 0, 100, 2, 0x81, 0, 2, 1, 64],
    ]
    .concat();
    for (link, frame) in [
        (1, with(&stack)),
        (1, with(&pseudowire)),
        (1, with(&snap)),
        (1, with(&snap_vlan)),
        (1, with(&llc)),
        (113, with(&sll_snap)),
        (276, with(&sll2_mpls)),
        (1, with(&ppp_mpls)),
        (219, with(&[0, 2, 1, 64])),
        (1, ethernet(&packet)),
        (1, with(&vlan)),
        (1, with(&qinq)),
        (1, with(&pppoe)),
        (113, with(&sll)),
        (276, with(&sll2)),
        (276, with(&sll2_vlan)),
        (0, with(&[30, 0, 0, 0])),
        (0, with(&[0, 0, 0, 24])),
        (108, with(&[0, 0, 0, 10])),
        (12, packet.clone()),
        (14, packet.clone()),
        (101, packet.clone()),
        (229, packet.clone()),
    ] {
        assert_eq!(ends(&flow(link, frame)), expected, "link type {link}");
    }
    let old = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, 1, &udp((1, 2), &[0; 9]));
    assert_eq!(flow(228, old).a.address.to_string(), "10.0.0.1");
}

#[test]
fn cooked_captures_say_which_way_a_packet_went() {
    let cooked = |direction: u8| {
        [
            &[0, direction, 0, 1, 0, 6][..],
            &[9; 8],
            &[0x86, 0xdd],
            &datagram(),
        ]
        .concat()
    };
    assert_eq!(flow(113, cooked(4)).forward.vantage, Vantage::Sender);
    assert_eq!(flow(113, cooked(0)).forward.vantage, Vantage::Receiver);
    assert_eq!(flow(113, cooked(3)).forward.vantage, Vantage::Unknown);
}

#[test]
fn tunnels_and_mobility_headers_show_who_the_ends_are() {
    let (home, care_of, agent, peer) = (v6(1, 1), v6(3, 9), v6(1, 99), v6(2, 2));
    let data = udp((1000, 2000), &[7; 50]);
    let plain = ipv6(home, peer, 17, &data);
    let tunnel = ipv6(care_of, agent, 41, &plain);
    // home address option behind two bytes of padding
    let option = [&[17, 2, 1, 2, 0, 0, 0xc9, 16][..], &home].concat();
    let optimised = ipv6(care_of, peer, 60, &[&option[..], &data].concat());
    let routing = [&[17, 2, 2, 1, 0, 0, 0, 0][..], &home].concat();
    let back = ipv6(
        peer,
        care_of,
        43,
        &[&routing[..], &udp((2000, 1000), &[7; 50])].concat(),
    );
    let file = raw(&[(MS, plain), (2 * MS, tunnel), (3 * MS, optimised), (4 * MS, back)]);
    let analysis = analysed(&[file]);
    assert_eq!(analysis.flows.len(), 1, "{:#?}", analysis.flows);
    let flow = &analysis.flows[0];
    assert_eq!((flow.forward.data_packets, flow.reverse.data_packets), (3, 1));
    assert_eq!(flow.mobility, Mobility::Mip6Ro);
    assert_eq!(flow.paths.len(), 4);
    assert!(flow.paths[1].tunnelled && flow.paths[1].source == core::net::IpAddr::from(care_of));
}

#[test]
fn other_tunnels_are_looked_into() {
    let inner = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, 1, &udp((1, 2), &[0; 9]));
    let ipip = ipv4([192, 0, 2, 1], [192, 0, 2, 2], 4, 1, &inner);
    let gre = ipv4(
        [192, 0, 2, 1],
        [192, 0, 2, 2],
        47,
        1,
        &[&[0x20, 0, 8, 0, 0, 0, 0, 5][..], &inner].concat(),
    );
    let four_in_six = ipv6(v6(1, 1), v6(2, 2), 4, &inner);
    for packet in [ipip, gre, four_in_six] {
        assert_eq!(flow(101, packet).a.address.to_string(), "10.0.0.1");
    }
    let nested = (0..6).fold(inner, |p, _| ipv4([1, 1, 1, 1], [2, 2, 2, 2], 4, 1, &p));
    let analysis = analysed(&[raw(&[(1, nested)])]);
    assert_eq!(analysis.captures[0].counts["nested-too-deep"], 1);
}

#[test]
fn fragments_count_by_their_first_and_what_is_cut_off_is_counted() {
    let data = udp((1000, 2000), &[7; 1000]);
    let fragment = |offset: u16, more: u16, part: &[u8]| {
        let header = [&[17, 0][..], &(offset << 3 | more).to_be_bytes(), &[0, 0, 0, 1]].concat();
        ipv6(v6(1, 1), v6(2, 2), 44, &[&header[..], part].concat())
    };
    let mut old = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, 1, &[0; 64]);
    old[6..8].copy_from_slice(&[0x20, 0x08]);
    let file = raw(&[
        (1, fragment(0, 1, &data[..512])),
        (2, fragment(64, 0, &data[512..])),
        (3, old),
        (4, datagram()[..30].to_vec()),
        (5, ipv6(v6(1, 1), v6(2, 2), 6, &[0; 12])),
        (6, vec![0x50; 40]),
        (7, ipv6(v6(1, 1), v6(2, 2), 50, &[0; 40])),
        (8, Vec::new()),
    ]);
    let analysis = analysed(&[file]);
    let counts = &analysis.captures[0].counts;
    let count = |name: &str| counts.get(name).copied().unwrap_or_default();
    // as long as it was before it was cut
    let bytes: Vec<_> = analysis.flows.iter().map(|f| f.forward.data_bytes).collect();
    assert_eq!(bytes, [1000]);
    assert_eq!((count("first-fragments"), count("later-fragments")), (1, 2));
    assert_eq!(
        (count("headers-cut-off"), count("malformed"), count("encrypted")),
        (3, 1, 1)
    );
    let arp = [&[0u8; 12][..], &[8, 6], &[0; 28]].concat();
    let analysis = analysed(&[pcap(1, false, true, &[(1, arp)])]);
    assert_eq!(analysis.captures[0].counts["not-ip"], 1);
    let analysis = analysed(&[pcap(147, false, true, &[(1, datagram())])]);
    assert_eq!(analysis.captures[0].counts["unknown-link-type"], 1);
}

#[test]
fn a_snap_length_leaves_lengths_as_they_were() {
    let whole = ipv6(
        v6(1, 1),
        v6(2, 2),
        6,
        &tcp((1, 2), 1, 1, 16, &timestamps(1, 1), 1400),
    );
    let mut file = section(false);
    file.extend(interface(false, 101, 96, &[(9, &[9])]));
    file.extend(enhanced(false, 0, 1, &whole[..96], whole.len()));
    let analysis = analysed(&[file]);
    assert_eq!(analysis.flows[0].forward.data_bytes, 1400);
    assert_eq!(analysis.captures[0].truncated_packets, 1);
    assert_eq!(analysis.captures[0].wire_bytes, whole.len() as u64);
}

#[test]
fn the_length_of_an_ipv4_packet_is_its_headers_if_it_has_one() {
    let packet = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 6, 1, &tcp((1, 2), 5, 0, 16, &[], 3));
    // Ethernet pads it to 60 bytes
    let mut padded = ethernet(&packet);
    padded.resize(60, 0);
    assert_eq!(flow(1, padded).forward.data_bytes, 3);
    // segmentation is left to the network card: no length, and it is longer than what has room in one
    let mut large = ethernet(&packet);
    large[16..18].fill(0);
    large.resize(14 + 40 + 5000, 0);
    assert_eq!(flow(1, large).forward.data_bytes, 5000);
}

#[test]
fn a_segment_in_fragments_is_whole_once_all_of_them_came() {
    // 3000 bytes in three fragments each, of IPv4 and of IPv6
    let segment = |n: u32| tcp((1000, 2000), n * 3000, 1, 16, &timestamps(n, 0), 3000);
    let four = |n: u32, from: usize, to: usize, more: bool| {
        let mut packet = ipv4(
            [10, 0, 0, 1],
            [10, 0, 0, 2],
            6,
            n as u16 + 1,
            &segment(n)[from..to],
        );
        packet[6..8].copy_from_slice(&((u16::from(more) << 13) | (from as u16 / 8)).to_be_bytes());
        packet
    };
    let six = |n: u32, from: usize, to: usize, more: bool| {
        let offset = from as u16 | u16::from(more);
        let header = [&[6, 0][..], &offset.to_be_bytes(), &n.to_be_bytes()].concat();
        ipv6(
            v6(1, 1),
            v6(2, 2),
            44,
            &[&header[..], &segment(n)[from..to]].concat(),
        )
    };
    let of = |fragment: &dyn Fn(u32, usize, usize, bool) -> Vec<u8>, lost: Option<usize>| {
        let cuts = [(0, 1200), (1200, 2400), (2400, 3032)];
        let packets = (0..10u32).flat_map(|n| {
            let kept = cuts
                .iter()
                .enumerate()
                .filter(move |(m, _)| n != 5 || Some(*m) != lost);
            kept.map(move |(m, cut)| {
                (
                    u64::from(n) * 10 * MS + m as u64,
                    fragment(n, cut.0, cut.1, m < 2),
                )
            })
        });
        let analysis = analysed(&[raw(&packets.collect::<Vec<_>>())]);
        assert_eq!(analysis.flows.len(), 1);
        let way = &analysis.flows[0].forward;
        (way.data_bytes, way.useful_bytes, way.retransmissions)
    };
    for fragment in [&four as &dyn Fn(u32, usize, usize, bool) -> Vec<u8>, &six] {
        assert_eq!(of(fragment, None), (30_000, 30_000, 0));
        assert_eq!(of(fragment, Some(1)), (28_800, 28_800, 0));
        // nobody knows where the others belong
        assert_eq!(of(fragment, Some(0)), (27_000, 27_000, 0));
    }
}
