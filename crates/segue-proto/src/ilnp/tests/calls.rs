//! Calls to locators that a hard handoff has given up, or gives up later.

use super::*;
use crate::shim::Inbound;
use segue_wire::ilnp::{LocatorOperation, LocatorUpdate};

/// A packet of the peer's at its locator 2 to a locator of ours.
fn from_peer(mut packet: Packet, to: u64) -> Packet {
    (packet.ip.source, packet.ip.destination) = (locator(2).address(PEER), locator(to).address(OWN));
    nonce::insert(&mut packet, Nonce::Bits32([0, 0, 0, 99]), PseudoRule::Ipv6);
    packet
}

fn hard(at_first: &[u64]) -> Ilnp {
    let mut config = Config::new(OWN);
    config.handoff = Handoff::Hard;
    let mut shim = Ilnp::new(config, Box::new(crate::random::Stream::new(5, "shim"))).unwrap();
    for n in at_first {
        shim.handle_address(at(0), &AddressEvent::Ready(own(*n)));
    }
    shim
}

#[test]
fn a_call_is_answered_from_a_withdrawn_locator_only_if_it_came_there() {
    let peer = Config::new(OWN).identity_prefix.address(PEER);
    for (before, after, from, taken) in [
        (&[1][..], &[][..], 1, true),
        (&[1, 3], &[], 1, true),
        // given up once the call was there
        (&[1], &[3], 3, false),
    ] {
        let mut shim = hard(before);
        let call = shim.inbound(at(1), InterfaceId(0), from_peer(tcp(5, 80, TcpFlags::SYN), 1));
        assert!(matches!(call, Inbound::Up(_)), "{before:?} {after:?}");
        for n in after {
            shim.handle_address(at(2), &AddressEvent::Ready(own(*n)));
        }
        let mut answer = tcp(80, 5, TcpFlags::SYN | TcpFlags::ACK);
        (answer.ip.source, answer.ip.destination) = (shim.identity(), peer);
        let sent = shim.outbound(at(3), answer).expect("an answer");
        assert_eq!(sent.packet.ip.source, own(from).address, "{before:?} {after:?}");
        let next = shim.inbound(at(4), InterfaceId(0), from_peer(tcp(5, 80, TcpFlags::ACK), 1));
        assert_eq!(matches!(next, Inbound::Up(_)), taken, "{before:?} {after:?}");
        assert_eq!(shim.counted().stale_locator, u64::from(!taken));
    }
}

#[test]
fn at_a_withdrawn_locator_only_a_call_begins_a_session() {
    let echo = |kind| raw(58, vec![kind, 0, 0, 0, 0, 1, 0, 1]);
    let update = Payload::Icmpv6(Icmpv6::LocatorUpdate(LocatorUpdate {
        operation: LocatorOperation::Advertisement,
        locators: Vec::new(),
    }));
    for (it, begins) in [
        (tcp(5, 80, TcpFlags::SYN), true),
        (tcp(5, 80, TcpFlags::SYN | TcpFlags::ACK), false),
        (tcp(5, 80, TcpFlags::ACK), false),
        (raw(132, vec![1; 12]), false),
        (echo(128), true),
        (echo(129), false),
        (packet(update), false),
        // nothing tells the first datagram from others
        (raw(17, vec![1; 20]), true),
    ] {
        let what = format!("{:?}", it.payload);
        let mut shim = hard(&[1, 3]);
        let taken = shim.inbound(at(1), InterfaceId(0), from_peer(it, 1));
        assert_eq!(matches!(taken, Inbound::Up(_)), begins, "{what}");
        assert_eq!(shim.correspondents().count(), usize::from(begins), "{what}");
        assert_eq!(shim.counted().stale_locator, u64::from(!begins), "{what}");
    }
    // what this host has called answers at the locator that it called from
    let mut shim = hard(&[1]);
    let peer = Config::new(OWN).identity_prefix.address(PEER);
    let datagram = |from, to| raw(17, [[0, from, 0, to], [0; 4]].concat());
    let mut call = datagram(80, 5);
    (call.ip.source, call.ip.destination) = (shim.identity(), peer);
    assert!(shim.outbound(at(0), call).is_none(), "it is looked up first");
    shim.handle_address(at(1), &AddressEvent::Ready(own(3)));
    let answer = datagram(5, 80);
    let taken = shim.inbound(at(2), InterfaceId(0), from_peer(answer, 1));
    assert!(matches!(taken, Inbound::Taken));
    assert_eq!(shim.counted().stale_locator, 1);
}

#[test]
fn who_has_only_called_is_not_probed_and_makes_no_network_silent() {
    let mut config = Config::new(OWN);
    config.detect_silence = true;
    let attempts = config.lu_attempts;
    let mut shim = Ilnp::new(config, Box::new(crate::random::Stream::new(5, "shim"))).unwrap();
    for n in [1, 3] {
        shim.handle_address(at(0), &AddressEvent::Ready(own(n)));
    }
    let peer = Config::new(OWN).identity_prefix.address(PEER);
    let call = shim.inbound(at(1), InterfaceId(0), from_peer(tcp(5, 80, TcpFlags::SYN), 3));
    assert!(matches!(call, Inbound::Up(_)));
    let mut answer = tcp(80, 5, TcpFlags::SYN | TcpFlags::ACK);
    (answer.ip.source, answer.ip.destination) = (shim.identity(), peer);
    shim.outbound(at(1), answer).expect("an answer");
    for ms in 1000..30_000 {
        shim.handle_timeout(Instant::ZERO + Duration::from_millis(ms));
    }
    let counted = shim.counted();
    assert_eq!((counted.probes_sent, counted.locators_silent), (0, 0));
    // that it has two locators it tells whoever has called
    assert!(counted.lu_sent <= u64::from(attempts));
}

#[test]
fn a_peer_that_is_started_again_answers_a_repeated_call_with_another_nonce() {
    let mut config = Config::new(OWN);
    config.peers = vec![PeerConfig {
        nid: PEER,
        locators: vec![locator(2)],
        name: None,
    }];
    let mut shim = Ilnp::new(config, Box::new(crate::random::Stream::new(5, "shim"))).unwrap();
    shim.handle_address(at(0), &AddressEvent::Ready(own(1)));
    let (own_identity, peer) = (shim.identity(), Config::new(OWN).identity_prefix.address(PEER));
    let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
    let nonce_of = |shim: &mut Ilnp, now, from, flags| {
        let mut packet = tcp(from, 80, flags);
        (packet.ip.source, packet.ip.destination) = (own_identity, peer);
        let sent = shim.outbound(now, packet).expect("its locator is known");
        sent.packet.ilnp_nonce().expect("a nonce").0
    };
    let answer = |shim: &mut Ilnp, now, to, flags, number| {
        let mut packet = tcp(80, to, flags);
        (packet.ip.source, packet.ip.destination) = (locator(2).address(PEER), own(1).address);
        nonce::insert(&mut packet, Nonce::Bits32([0, 0, 0, number]), PseudoRule::Ipv6);
        matches!(shim.inbound(now, InterfaceId(0), packet), Inbound::Up(_))
    };
    const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
    let nonce = nonce_of(&mut shim, ms(0), 5, TcpFlags::SYN);
    assert!(answer(&mut shim, ms(10), 5, SYN_ACK, 7));
    // the peer is started again: what it says now has another nonce, and may be anybody's
    nonce_of(&mut shim, ms(60_000), 6, TcpFlags::SYN);
    assert!(!answer(&mut shim, ms(60_010), 6, SYN_ACK, 8));
    nonce_of(&mut shim, ms(60_200), 6, TcpFlags::SYN);
    assert!(!answer(&mut shim, ms(60_210), 6, SYN_ACK, 8));
    // but for an answer, and in the flow of the call that is repeated in vain
    assert_eq!(nonce_of(&mut shim, ms(61_200), 6, TcpFlags::SYN), nonce);
    assert!(!answer(&mut shim, ms(61_210), 6, TcpFlags::ACK, 8));
    assert!(!answer(&mut shim, ms(61_210), 5, SYN_ACK, 8));
    assert_eq!((shim.counted().called_anew, shim.counted().wrong_nonce), (0, 4));
    assert!(answer(&mut shim, ms(61_210), 6, SYN_ACK, 8));
    // it is the session of calls from then on, and what was begun in the other is not its
    nonce_of(&mut shim, ms(62_000), 7, TcpFlags::SYN);
    assert!(answer(&mut shim, ms(62_010), 7, SYN_ACK, 8));
    assert!(!answer(&mut shim, ms(62_010), 5, TcpFlags::ACK, 8));
    assert!(answer(&mut shim, ms(62_010), 5, TcpFlags::ACK, 7));
    assert_eq!(
        (shim.counted().called_anew, shim.correspondents().count()),
        (1, 2)
    );
    // one that was only out of reach answers with the nonce that it has
    for later in [63_000, 64_000, 66_000, 70_000] {
        assert_eq!(nonce_of(&mut shim, ms(later), 8, TcpFlags::SYN), nonce);
    }
    assert!(answer(&mut shim, ms(70_010), 8, SYN_ACK, 8));
    // once it has, there is nothing to be said with another
    assert!(!answer(&mut shim, ms(70_020), 8, SYN_ACK, 9));
    assert_eq!(
        (shim.counted().called_anew, shim.correspondents().count()),
        (1, 2)
    );
}
