//! The nonce in UDP: where it is spoken, and where not.

use super::*;
use segue_proto::ilnp::{Mode, NonceLength};
use segue_wire::icmpv6::Echo;

#[test]
fn both_know_after_the_first_packets_that_the_other_understands_udp() {
    let mut world = World::new();
    for ms in [0, 10, 20, 30] {
        world.send(at(ms), 0, &datagram(0, 7, 9, b"to"));
        world.send(at(ms), 1, &datagram(1, 9, 7, b"fro"));
    }
    let empty: Vec<usize> = world
        .sent
        .iter()
        .filter(|(_, p)| is_empty_datagram(p))
        .map(|(n, _)| *n)
        .collect();
    // who has called asks, and is answered, once
    assert_eq!(empty, [0, 1]);
    assert_eq!(world.forms(0), [Carriage::Option; 4]);
    for host in 0..2 {
        assert_eq!(world.count(host, "udp_received"), 1);
        assert_eq!(world.count(host, "networks_without_options"), 0);
    }
    // and nothing of it has come to a kernel
    assert_eq!(world.given.each_ref().map(Vec::len), [4, 4]);
}

#[test]
fn a_session_begins_through_a_network_that_drops_options() {
    let mut world = World::new();
    world.network.no_options_at = Some(1);
    let syn = segment(0, 2, &[2, 4, 5, 0x78], 0);
    world.send(at(0), 0, &syn);
    assert_eq!(world.forms(0), [Carriage::Option]);
    // as TCP repeats it
    world.send(at(1000), 0, &syn);
    assert_eq!(world.forms(0), [Carriage::Udp, Carriage::Option]);
    assert_eq!(world.given[1].len(), 1);
    assert!(is_right(&world.given[1][0]));
    world.send(at(1001), 1, &segment(1, 0x12, &[2, 4, 5, 0x78], 0));
    assert_eq!(world.forms(1), [Carriage::Udp]);
    assert!(is_right(&world.given[0][0]));
    world.send(at(1002), 0, &segment(0, 0x10, &[], 100));
    assert_eq!(world.forms(0), [Carriage::Udp]);
    let Role::Ilnp(shim) = world.hosts[0].role() else {
        panic!("ILNP")
    };
    assert!(shim.correspondents().all(|c| c.mode() == Mode::Ilnp));
    assert_eq!(
        world.hosts[0]
            .networks_without_options(at(1002))
            .collect::<Vec<_>>(),
        [locator(1)]
    );
    assert_eq!(
        world.hosts[0].carriage_of(NIDS[1], [locator(3)].into_iter()),
        Some(Carriage::Udp)
    );
    // whoever has been called does not take its own network for one that drops them
    assert_eq!(world.hosts[1].networks_without_options(at(1002)).count(), 0);
    // super-packets are cut up, with the right checksums
    world.given[1].clear();
    world.send_as(at(1003), 0, &segment(0, 0x10, &[], 2500), Some(1000));
    assert_eq!(world.given[1].len(), 3);
    assert!(world.given[1].iter().all(is_right));
    // it is known of the network for an hour
    assert_eq!(world.hosts[0].networks_without_options(at(3_601_000)).count(), 1);
    assert_eq!(world.hosts[0].networks_without_options(at(3_610_000)).count(), 0);
}

#[test]
fn a_session_moves_into_such_a_network_and_out_of_it() {
    let mut world = World::with_session();
    world.network.no_options_at = Some(2);
    for (n, ms, form) in [
        (2, 1000, Carriage::Udp),
        (1, 2000, Carriage::Option),
        (2, 3000, Carriage::Udp),
    ] {
        world.hosts[0].prefer(at(ms), InterfaceId(n));
        world.settle(at(ms));
        world.sent.clear();
        world.given = [Vec::new(), Vec::new()];
        world.send(at(ms + 10), 0, &datagram(0, 7, 9, b"to"));
        assert_eq!(world.forms(0), [form]);
        world.send(at(ms + 10), 1, &datagram(1, 9, 7, b"fro"));
        assert_eq!(world.forms(1), [form]);
        assert_eq!(world.given.each_ref().map(Vec::len), [1, 1], "at {n}");
        assert_eq!(world.count(0, "lu_retransmitted"), 0);
    }
    // an error about what was in UDP is one about what the kernel sent
    world.network.mtu = Some(1400);
    world.given[0].clear();
    world.send(at(4000), 0, &datagram(0, 7, 9, &[5; 1440 - 48]));
    assert_eq!(
        error_of(&world.given[0][0]),
        (identity(0), identity(1), 1440, Some(1360))
    );
}

/// A session whose host 0 has moved to where options are dropped, and that goes on in UDP.
fn in_udp() -> World {
    let mut world = World::with_session();
    world.network.no_options_at = Some(2);
    world.hosts[0].prefer(at(1000), InterfaceId(2));
    world.settle(at(1000));
    world.sent.clear();
    world.send(at(1010), 0, &datagram(0, 7, 9, b"to"));
    world.send(at(1010), 1, &datagram(1, 9, 7, b"fro"));
    assert_eq!(world.forms(0), [Carriage::Udp]);
    world.given = [Vec::new(), Vec::new()];
    world.sent.clear();
    world
}

#[test]
fn of_what_is_too_big_in_udp_the_kernel_is_told_as_it_sent_it() {
    // RFC 8201 section 4: the second is not sent, and the answer is about an identity's packet, not about one of the port's
    let mut world = in_udp();
    world.network.mtu = Some(1400);
    let big = datagram(0, 7, 9, &[5; 1440 - 48]);
    for n in 0..2 {
        world.sent.clear();
        world.send(at(2000 + n), 0, &big);
        let told = world.given[0].pop().expect("an error");
        assert_eq!(error_of(&told), (identity(0), identity(1), 1440, Some(1360)));
    }
    assert_eq!(world.sent.len(), 0);
    assert_eq!(world.count(0, "too_big"), 1);
    world.send(at(2010), 0, &datagram(0, 7, 9, &[5; 1360 - 48]));
    assert_eq!(world.sent[0].1.buffer_len(), 1376);
    assert_eq!(world.given[1].len(), 1);
}

#[test]
fn fragments_go_in_udp_each_with_its_nonce() {
    // RFC 8200 section 5: the kernel may not make it smaller
    let mut world = in_udp();
    world.network.mtu = Some(1280);
    let least = datagram(0, 7, 9, &[6; 1280 - 48]);
    world.send(at(2000), 0, &least);
    assert_eq!(error_of(&world.given[0][0]).3, Some(1280));
    world.sent.clear();
    world.send(at(2010), 0, &least);
    let lengths: Vec<usize> = world.sent.iter().map(|(_, p)| p.buffer_len()).collect();
    assert_eq!(lengths, [1280, 40 + 16 + 8 + 24]);
    for (_, packet) in &world.sent {
        let Payload::Udp(datagram) = &packet.payload else {
            panic!("UDP: {packet:?}")
        };
        let segue_wire::Data::Bytes(data) = &datagram.data else {
            panic!("bytes")
        };
        assert_eq!(NonceInUdp::parse(data).unwrap().next_header, 44);
    }
    assert_eq!(together(&world.given[1]), least);
    assert_eq!(world.count(0, "fragmented"), 1);
    // so does a super-packet in each of its segments
    world.given[1].clear();
    world.send_as(at(2020), 0, &segment(0, 0x10, &[], 3 * 1220), Some(1220));
    assert_eq!(world.given[1].len(), 6);
    for two in world.given[1].chunks(2) {
        assert!(matches!(together(two).payload, Payload::Tcp(_)));
    }
}

#[test]
fn the_segment_size_of_a_syn_in_udp_leaves_room_for_it() {
    // RFC 9293 section 3.7.1
    let mut world = in_udp();
    world.hosts[0].set_mtu(InterfaceId(2), 1280);
    world.send(at(2000), 0, &segment(0, 2, &[2, 4, 5, 0x78], 0));
    assert_eq!(world.forms(0), [Carriage::Udp]);
    let [syn] = &world.given[1][..] else {
        panic!("a SYN")
    };
    assert!(is_right(syn));
    let Payload::Raw(raw) = &syn.payload else {
        panic!("TCP in bytes")
    };
    assert_eq!(raw.bytes[22..24], (1280u16 - 8 - 8 - 60).to_be_bytes());
    assert_eq!(world.count(0, "mss_clamped"), 1);
}

#[test]
fn strangers_get_nothing_out_of_the_port() {
    let mut world = World::with_session();
    world.send(at(100), 0, &datagram(0, 7, 9, b"to"));
    let (_, sent) = world.sent.pop().unwrap();
    world.given = [Vec::new(), Vec::new()];
    let ip = sent.ip;
    let with = |nonce: Nonce, next_header: u8| {
        let mut carried = NonceInUdp::of(&sent).unwrap();
        (carried.nonce, carried.next_header) = (nonce, next_header);
        carried.packet(ip, DEFAULT_PORT)
    };
    let nonce = Nonce::Bits32([1, 2, 3, 4]);
    // an empty one, and a packet of the session's flow with another nonce
    world.arrive(at(200), 1, &with(nonce, 59));
    world.arrive(at(200), 1, &with(nonce, 17));
    // no format at all
    let mut bad = with(nonce, 59);
    let Payload::Udp(datagram) = &mut bad.payload else {
        panic!("UDP")
    };
    datagram.data = segue_wire::Data::Bytes(Bytes::from_static(b"\x02\x3b\x04\x00...."));
    world.arrive(at(200), 1, &bad);
    world.settle(at(200));
    assert_eq!(world.sent.len(), 0);
    assert_eq!(world.given[1], []);
    assert_eq!(world.count(1, "udp_of_no_session"), 2);
    assert_eq!(world.count(1, "udp_malformed"), 1);
    assert_eq!(world.count(1, "wrong_nonce"), 1);
}

#[test]
fn a_peer_where_nobody_listens_is_left_alone() {
    let mut world = World::new();
    world.network.no_options_at = Some(1);
    let syn = segment(0, 2, &[2, 4, 5, 0x78], 0);
    world.send(at(0), 0, &syn);
    // this one knows nothing of the format: its kernel answers for the port
    world.hosts[1] = World::new().hosts.into_iter().nth(1).unwrap();
    world.hosts[0].handle_kernel(at(500), syn.to_vec().into(), ChecksumState::Complete, None);
    let sent: Vec<Packet> = core::iter::from_fn(|| world.hosts[0].poll_wire())
        .map(|t| t.packet)
        .collect();
    let in_udp = sent.iter().find(|p| p.ilnp_nonce().is_none()).unwrap();
    let refusal = |quoted: Bytes| {
        let there = in_udp.ip.destination;
        let error = Icmpv6::DestinationUnreachable {
            code: 4,
            invoking: quoted,
        };
        icmp(there, in_udp.ip.source, error)
    };
    // from somebody who has not seen the nonce it counts for nothing
    let mut forged = in_udp.to_vec();
    forged[55] ^= 1;
    world.arrive(at(510), 0, &refusal(forged.into()));
    assert_eq!(world.count(0, "udp_refused"), 0);
    world.arrive(at(520), 0, &refusal(Icmpv6::quote(in_udp)));
    assert_eq!(world.count(0, "udp_refused"), 1);
    world.settle(at(520));
    world.sent.clear();
    world.send(at(1000), 0, &syn);
    assert_eq!(world.forms(0), [Carriage::Option]);
    // the kernel has heard nothing of all that
    assert_eq!(world.given[0], []);
}

#[test]
fn without_a_peer_that_answers_only_so_much_is_tried() {
    let mut world = World::new();
    world.network.no_options_at = Some(1);
    // drops everything that is in UDP as well
    let echo = Icmpv6::EchoRequest(Echo {
        identifier: 1,
        sequence: 1,
        data: Bytes::new(),
    });
    for n in 0..50 {
        let packet = icmp(identity(0), identity(1), echo.clone());
        world.hosts[0].handle_kernel(at(100 * n), packet.to_vec().into(), ChecksumState::Complete, None);
    }
    let sent: Vec<Packet> = core::iter::from_fn(|| world.hosts[0].poll_wire())
        .map(|t| t.packet)
        .collect();
    let in_udp = sent.iter().filter(|p| matches!(p.payload, Payload::Udp(_)));
    assert_eq!(in_udp.count(), 4);
}

#[test]
fn a_network_is_known_to_drop_options_only_where_one_was_sent() {
    let mut world = World::with_session();
    world.send(at(100), 0, &datagram(0, 7, 9, b"to"));
    world.send(at(100), 1, &datagram(1, 9, 7, b"fro"));
    let (_, fro) = world.sent.pop().unwrap();
    let (_, to) = world.sent.pop().unwrap();
    let Role::Ilnp(shim) = world.hosts[0].role() else {
        panic!("ILNP")
    };
    let mut carriages = Carriages::new(DEFAULT_PORT);
    // the peer is at one locator, and half an hour later at another
    for (minute, peer_at, forms) in [(0, 3, (true, false)), (30, 4, (false, true))] {
        let now = at(minute * 60_000);
        let peer = locator(peer_at).address(NIDS[1]);
        let (mut to, mut fro) = (to.clone(), fro.clone());
        (to.ip.destination, fro.ip.source) = (peer, peer);
        // with a checksum over these addresses
        fro.payload = datagram(1, 9, 7, b"fro").payload;
        let sent = Transmit {
            interface: InterfaceId(1),
            packet: to,
        };
        assert_eq!(carriages.choose(now, &sent), forms);
        let answer = carriages.in_udp(&fro).unwrap().to_vec().into();
        let answer = Packet::parse_raw(&answer, ChecksumState::Complete, None).unwrap();
        let (_, heard) = carriages.arrived(now, answer);
        carriages.settle(now, heard.unwrap(), shim);
        let there = [locator(peer_at)].into_iter();
        assert_eq!(carriages.carriage_of(NIDS[1], there), Some(Carriage::Udp));
        assert_eq!(carriages.networks(now).collect::<Vec<_>>(), [locator(1)]);
    }
    // what came in UDP alone because nothing else was sent has made it no younger
    assert_eq!(carriages.networks(at(59 * 60_000)).count(), 1);
    assert_eq!(carriages.networks(at(61 * 60_000)).count(), 0);
}

#[test]
fn datagrams_that_a_kernel_has_joined_are_taken_one_by_one() {
    // as virtio has it: one header, what follows at equal distances, and a checksum that is to be finished in each
    let mut world = in_udp();
    for n in 0..3 {
        world.send(at(2000), 0, &datagram(0, 7, 9 + n, &[n as u8; 100]));
    }
    let sent: Vec<Packet> = world.sent.drain(..).map(|(_, packet)| packet).collect();
    let expected = core::mem::take(&mut world.given[1]);
    assert_eq!(expected.len(), 3);
    let mut joined = sent[0].to_vec();
    let size = joined.len() - 48;
    for packet in &sent[1..] {
        joined.extend_from_slice(&packet.to_vec()[48..]);
    }
    let length = (joined.len() as u16 - 40).to_be_bytes();
    joined[4..6].copy_from_slice(&length);
    joined[44..46].copy_from_slice(&length);
    world.hosts[1].handle_wire(
        at(2001),
        InterfaceId(3),
        joined.into(),
        ChecksumState::Partial,
        Some(size as u16),
    );
    world.settle(at(2001));
    let given: Vec<Vec<u8>> = world.given[1].iter().map(Packet::to_vec).collect();
    assert_eq!(given, expected.iter().map(Packet::to_vec).collect::<Vec<_>>());
}

#[test]
fn an_error_in_udp_with_the_longer_nonces_is_no_longer_than_one_may_be() {
    // RFC 4443 section 2.4 (c)
    let mut world = World::of(|config| config.nonce = NonceLength::Bits96);
    world.network.no_options_at = Some(1);
    for ms in [0, 1000, 2000] {
        world.send(at(ms), 0, &datagram(0, 7, 9, &[5; 1400]));
        world.send(at(ms + 1), 1, &datagram(1, 9, 7, b"fro"));
    }
    let seen = world.given[1].pop().expect("a datagram");
    let error = Icmpv6::DestinationUnreachable {
        code: 4,
        invoking: Icmpv6::quote(&seen),
    };
    world.sent.clear();
    world.given[0].clear();
    world.send(at(2100), 1, &icmp(identity(1), identity(0), error));
    assert_eq!(world.sent[0].1.buffer_len(), 1280);
    assert_eq!(world.forms(1), [Carriage::Udp]);
    assert_eq!(
        error_of(&world.given[0][0]),
        (identity(0), identity(1), 1448, None)
    );
}
