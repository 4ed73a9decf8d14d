//! RFC 6741 section 10: who is spoken to in plain IPv6, and for how long.

use super::*;
use crate::shim::Inbound;

const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);

/// Where the peer is, and what it is called by there.
fn real() -> Ipv6Addr {
    locator(2).address(PEER)
}

fn identity() -> Ipv6Addr {
    Config::new(OWN).identity_prefix.address(PEER)
}

fn host(peers: Vec<PeerConfig>) -> Ilnp {
    let mut config = Config::new(OWN);
    config.peers = peers;
    let mut shim = Ilnp::new(config, Box::new(crate::random::Stream::new(5, "shim"))).unwrap();
    shim.handle_address(at(0), &AddressEvent::Ready(own(1)));
    shim
}

fn known() -> Vec<PeerConfig> {
    vec![PeerConfig {
        nid: PEER,
        locators: vec![locator(2)],
        name: None,
    }]
}

/// Whether what a transport sends from `port` to `peer` carries the nonce.
fn carries_nonce(shim: &mut Ilnp, s: u64, peer: Ipv6Addr, port: u16, flags: TcpFlags) -> bool {
    let mut packet = tcp(port, 80, flags);
    (packet.ip.source, packet.ip.destination) = (shim.identity(), peer);
    let sent = shim.outbound(at(s), packet).expect("its locator is known");
    sent.packet.ilnp_nonce().is_some()
}

/// Whether a packet from a locator of the peer's to `port` is taken, with a nonce or without, as one from `peer`.
fn is_heard(shim: &mut Ilnp, s: u64, (from, nonce): (u64, Option<u8>), port: u16, peer: Ipv6Addr) -> bool {
    let mut packet = tcp(80, port, SYN_ACK);
    (packet.ip.source, packet.ip.destination) = (locator(from).address(PEER), own(1).address);
    if let Some(number) = nonce {
        nonce::insert(&mut packet, Nonce::Bits32([0, 0, 0, number]), PseudoRule::Ipv6);
    }
    match shim.inbound(at(s), InterfaceId(0), packet) {
        Inbound::Up(up) => (up.ip.source, up.ip.destination) == (peer, shim.identity()),
        _ => false,
    }
}

#[test]
fn a_peer_that_is_known_to_speak_ilnp_is_not_taken_for_another_because_it_is_silent() {
    for peer in [identity(), real()] {
        let mut shim = host(known());
        for s in [0, 1, 3, 7, 15, 31, 63] {
            assert!(
                carries_nonce(&mut shim, s, peer, 5, TcpFlags::SYN),
                "{peer} after {s} s"
            );
        }
        assert_eq!(shim.counted().fallbacks, 0);
        assert!(is_heard(&mut shim, 63, (2, Some(7)), 5, peer));
        assert!(carries_nonce(&mut shim, 64, peer, 5, TcpFlags::ACK));
    }
}

#[test]
fn while_plain_ipv6_is_not_answered_either_the_nonce_is_tried_by_turns() {
    let mut shim = host(Vec::new());
    // as TCP repeats a SYN
    let sent = [0, 1, 3, 7, 15, 31, 63].map(|s| carries_nonce(&mut shim, s, real(), 5, TcpFlags::SYN));
    assert_eq!(sent, [true, true, true, false, true, false, true]);
    // a stream that nobody hears: one packet of those of two seconds
    let before = shim.counted().ilnp_sent;
    for ms in 64_000..84_000 {
        let mut packet = raw(17, vec![0, 5, 0, 80, 0, 8, 0, 0]);
        (packet.ip.source, packet.ip.destination) = (shim.identity(), real());
        shim.outbound(Instant::ZERO + Duration::from_millis(ms), packet);
    }
    assert_eq!(shim.counted().ilnp_sent - before, 10);
    assert_eq!(shim.counted().fallbacks, 1);
    // the way to it is there again: with a nonce, in the flow of the call, from where that went
    assert!(!is_heard(&mut shim, 85, (66, Some(8)), 5, real()));
    assert!(is_heard(&mut shim, 85, (2, Some(7)), 5, real()));
    assert!(!is_heard(&mut shim, 85, (2, Some(8)), 5, real()));
    assert!(carries_nonce(&mut shim, 86, real(), 5, TcpFlags::ACK));
    assert!(carries_nonce(&mut shim, 86, real(), 6, TcpFlags::SYN));
    assert_eq!(
        shim.correspondents().map(|c| c.mode()).collect::<Vec<_>>(),
        [Mode::Ilnp]
    );
}

/// A host whose call from port 5 was answered in plain IPv6 after 7 s.
fn in_plain_ipv6() -> Ilnp {
    let mut shim = host(Vec::new());
    for s in [0, 1, 3, 7] {
        carries_nonce(&mut shim, s, real(), 5, TcpFlags::SYN);
    }
    assert!(is_heard(&mut shim, 7, (2, None), 5, real()));
    shim
}

#[test]
fn what_is_answered_in_plain_ipv6_stays_that_and_calls_try_the_nonce_now_and_then() {
    let mut shim = in_plain_ipv6();
    for s in (7..600).step_by(10) {
        assert!(!carries_nonce(&mut shim, s, real(), 5, TcpFlags::ACK));
        assert!(!carries_nonce(&mut shim, s, real(), 6, TcpFlags::SYN));
    }
    assert!(!is_heard(&mut shim, 600, (2, Some(7)), 5, real()));
    // after ten minutes, one call, and nothing of what there is
    assert!(!carries_nonce(&mut shim, 607, real(), 5, TcpFlags::ACK));
    assert!(!carries_nonce(&mut shim, 607, real(), 6, TcpFlags::SYN));
    assert!(carries_nonce(&mut shim, 607, real(), 7, TcpFlags::SYN));
    assert!(!is_heard(&mut shim, 607, (2, Some(7)), 5, real()));
    assert!(is_heard(&mut shim, 607, (2, Some(7)), 7, real()));
    // both go on beside each other, and new ones with the nonce
    for s in [608, 700] {
        assert!(carries_nonce(&mut shim, s, real(), 7, TcpFlags::ACK));
        assert!(carries_nonce(&mut shim, s, real(), 8, TcpFlags::SYN));
        assert!(!carries_nonce(&mut shim, s, real(), 5, TcpFlags::ACK));
        assert!(is_heard(&mut shim, s, (2, None), 5, real()));
        assert!(is_heard(&mut shim, s, (2, Some(7)), 7, real()));
    }
    assert_eq!(shim.correspondents().count(), 2);
}

#[test]
fn a_call_that_tries_the_nonce_in_vain_goes_on_in_plain_ipv6() {
    let mut shim = in_plain_ipv6();
    for round in 0..20 {
        let s = 300 + round * 100;
        assert!(!carries_nonce(&mut shim, s, real(), 5, TcpFlags::ACK));
        let port = 100 + round as u16;
        let tries = carries_nonce(&mut shim, s, real(), port, TcpFlags::SYN);
        // ten minutes after the last: at 700, 1300 and 1900 s
        assert_eq!(tries, [700, 1300, 1900].contains(&s), "{s}");
        carries_nonce(&mut shim, s + 1, real(), port, TcpFlags::SYN);
        assert!(!carries_nonce(&mut shim, s + 3, real(), port, TcpFlags::SYN));
        assert!(is_heard(&mut shim, s + 3, (2, None), port, real()));
        assert_eq!(shim.correspondents().count(), 1);
    }
    assert_eq!(shim.counted().fallbacks, 4);
}
