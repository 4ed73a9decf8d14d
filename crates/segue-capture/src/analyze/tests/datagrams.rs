//! Datagrams between two captures, which go by what they carry.

use super::*;

/// IPv4 packets, of which those from 10.0.0.0/8 go back, that are sent 1 ms apart, and are under way for so long: the captures of the receiver, which has those of which
/// `arrives` says so, and of the sender.
fn both_ends(packets: &[Vec<u8>], delay_ms: u64, arrives: impl Fn(usize) -> bool) -> [Vec<u8>; 2] {
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for (n, packet) in packets.iter().enumerate() {
        let sent_ns = (n as u64 + 1) * MS;
        let (from, to) = if packet[12] == 10 {
            (&mut here, &mut there)
        } else {
            (&mut there, &mut here)
        };
        from.push((sent_ns, 4, packet.clone()));
        if arrives(n) {
            to.push((sent_ns + delay_ms * MS, 0, packet.clone()));
        }
    }
    [here, there].map(|mut packets| {
        packets.sort_by_key(|p| p.0);
        let cooked = |(at, kind, p): (u64, u8, Vec<u8>)| {
            (
                at,
                [&[0, kind, 0, 1, 0, 6][..], &[9; 8], &ether_type(&p), &p].concat(),
            )
        };
        pcap(
            113,
            false,
            true,
            &packets.into_iter().map(cooked).collect::<Vec<_>>(),
        )
    })
}

/// So many datagrams, each with a number of its own.
fn numbered(count: u32) -> Vec<Vec<u8>> {
    let one = |n: u32| {
        let data = [&[0][..], &n.to_be_bytes(), &[3; 95]].concat();
        ipv4([192, 0, 2, 1], [10, 0, 0, 1], 17, 0, &udp((53, 54), &data))
    };
    (0..count).map(one).collect()
}

/// Of the only flow's direction that carries most.
fn counted(captures: &[Vec<u8>]) -> EndCounts {
    let analysis = analysed(captures);
    assert_eq!(analysis.flows.len(), 1, "{:#?}", analysis.flows);
    let flow = &analysis.flows[0];
    let ends = [flow.forward.ends, flow.reverse.ends];
    let most = ends.into_iter().flatten().max_by_key(|e| e.packets_sent);
    most.expect("both ends")
}

fn fates(captures: &[Vec<u8>]) -> [u64; 4] {
    let ends = counted(captures);
    [
        ends.packets_sent,
        ends.lost_packets,
        ends.in_flight_packets,
        ends.unmatched_packets,
    ]
}

#[test]
fn datagrams_are_matched_again_after_an_outage_of_any_length() {
    for lost in [1000, 1500, 6000] {
        let arrives = |n: usize| !(1000..1000 + lost).contains(&n) && n != 8500;
        let captures = both_ends(&numbered(9000), 20, arrives);
        assert_eq!(fates(&captures), [9000, lost as u64 + 1, 0, 0], "{lost} in a row");
    }
}

#[test]
fn a_receivers_capture_that_begins_late_is_matched_from_then_on() {
    for late in [500, 3000, 6000] {
        let captures = both_ends(&numbered(9000), 20, |n| n >= late && n % 100 != 50);
        let lost = (9000 - late as u64) / 100;
        assert_eq!(fates(&captures), [9000, lost, 0, late as u64], "{late} before it");
    }
}

#[test]
fn thousands_of_datagrams_may_be_under_way_at_a_time() {
    let mut packets = numbered(18_000);
    // every fiftieth is one of the other way, without which a delay is the clocks'
    for packet in packets.iter_mut().step_by(50) {
        for n in 0..4 {
            packet.swap(12 + n, 16 + n);
        }
        for n in 0..2 {
            packet.swap(20 + n, 22 + n);
        }
    }
    let captures = both_ends(&packets, 6000, |n| n % 100 != 51);
    assert_eq!(fates(&captures), [17_640, 180, 0, 0]);
}

#[test]
fn a_datagram_that_a_router_cuts_is_the_one_that_was_sent() {
    let whole = numbered(200);
    let first = |packet: &Vec<u8>| {
        let mut packet = packet[..20 + 88].to_vec();
        packet[2..4].copy_from_slice(&108u16.to_be_bytes());
        packet[6] = 0x20;
        packet
    };
    // only every other one, so that the clocks can be compared by the others
    let cut = |(n, packet): (usize, &Vec<u8>)| if n % 2 == 0 { first(packet) } else { packet.clone() };
    let cut: Vec<_> = whole.iter().enumerate().map(cut).collect();
    let arrives = |n: usize| n % 20 != 7 && n % 20 != 14;
    let [_, there] = both_ends(&whole, 20, arrives);
    let [here, _] = both_ends(&cut, 20, arrives);
    assert_eq!(fates(&[here.clone(), there]), [200, 20, 0, 0]);
    let flow = &analysed(&[here]).flows[0];
    assert_eq!(
        (flow.forward.data_packets, flow.forward.useful_bytes),
        (180, 18_000)
    );
}

/// Data of WireGuard from 192.0.2.1, with new keys every thousand packets, each answered.
fn wireguard(count: u32) -> Vec<Vec<u8>> {
    let one = |n: u32| {
        let mut data = vec![4, 0, 0, 0];
        data.extend((1 + n / 1000).to_le_bytes());
        data.extend(u64::from(n % 1000).to_le_bytes());
        data.resize(16 + 128 + 16, n as u8);
        ipv4(
            [192, 0, 2, 1],
            [10, 0, 0, 1],
            17,
            0,
            &udp((51_820, 51_820), &data),
        )
    };
    let answer = {
        let mut data = vec![4, 0, 0, 0, 9, 9, 0, 0];
        data.resize(32, 0);
        move |n: u32| {
            let mut data = data.clone();
            data[8..12].copy_from_slice(&n.to_le_bytes());
            ipv4(
                [10, 0, 0, 1],
                [192, 0, 2, 1],
                17,
                0,
                &udp((51_820, 51_820), &data),
            )
        }
    };
    (0..count).flat_map(|n| [one(n), answer(n)]).collect()
}

#[test]
fn packets_of_a_key_that_are_under_way_when_the_next_comes_are_not_lost() {
    // some of either key are under way at a time, and some are lost
    let captures = both_ends(&wireguard(3500), 50, |n| n % 200 != 70);
    let analysis = analysed(&captures);
    let [flow] = &analysis.flows[..] else {
        panic!("{:#?}", analysis.flows);
    };
    assert_eq!(flow.protocol, Protocol::Wireguard);
    let fates = |way: &DirectionReport| {
        let ends = way.ends.expect("both ends");
        (
            ends.packets_sent,
            ends.lost_packets,
            ends.unmatched_packets,
            ends.retransmissions,
            way.useful_bytes,
        )
    };
    assert_eq!(fates(&flow.forward), (3500, 35, 0, 0, 3465 * 128));
}
