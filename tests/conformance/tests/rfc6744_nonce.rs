//! The nonce (RFC 6744), and what becomes of peers that do not know it (RFC 6741 section 10).

use segue_conformance::shims::{
    Fate, Shims, datagram, header, locator, ms, nid, parameter_problem, with_nonce,
};
use segue_proto::Instant;
use segue_proto::ilnp::{Config, Handoff, Mode, NonceIn, NonceLength};
use segue_proto::shim::{Shim, ShimEvent};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::Nonce;
use segue_wire::{Packet, Payload};

fn talking(config: &Config) -> Shims {
    let mut shims = Shims::pair(config);
    shims.greet();
    for host in &mut shims.hosts {
        host.up.clear();
    }
    shims.sent.clear();
    shims
}

/// Section 2: 32 bits and 8 bytes, or 96 bits and 16 bytes, in every packet; one nonce for each direction.
#[test]
fn every_packet_carries_its_senders_nonce() {
    for (nonce, bits, overhead) in [(NonceLength::Bits32, 32, 8), (NonceLength::Bits96, 96, 16)] {
        let mut shims = talking(&Config {
            nonce,
            ..Config::default()
        });
        let (a, b) = (shims.identity(0), shims.identity(1));
        assert_eq!(shims.hosts[0].shim.overhead(b), overhead);
        for _ in 0..5 {
            shims.send(0, b, b"there");
            shims.send(1, a, b"back");
        }
        shims.run_for(ms(100));
        assert_eq!((shims.heard(1, 0).len(), shims.heard(0, 1).len()), (5, 5));
        let mut nonces = [Vec::new(), Vec::new()];
        for (_, host, packet) in &shims.sent {
            let (nonce, _) = packet.ilnp_nonce().expect("a nonce");
            assert_eq!(8 * nonce.as_bytes().len(), bits);
            let bare = datagram(a, b, if *host == 0 { b"there" } else { b"back" });
            assert_eq!(packet.buffer_len() - bare.buffer_len(), overhead as usize);
            nonces[*host].push(nonce);
        }
        for nonces in &mut nonces {
            nonces.dedup();
            assert_eq!(nonces.len(), 1);
        }
        assert_ne!(nonces[0], nonces[1]);
    }
}

/// Section 4: the first packets in both directions, and those while an update is not acknowledged.
#[test]
fn nonces_at_the_start_and_in_signalling_only() {
    let config = Config {
        nonce_in: NonceIn::SessionStartAndSignalling,
        ..Config::default()
    };
    let mut shims = talking(&config);
    let (a, b) = (shims.identity(0), shims.identity(1));
    let exchange = |shims: &mut Shims| {
        shims.sent.clear();
        for _ in 0..3 {
            shims.send(0, b, b"there");
            shims.send(1, a, b"back");
            shims.run_for(ms(50));
        }
        shims
            .sent
            .iter()
            .filter(|(_, _, p)| p.ilnp_nonce().is_some())
            .count()
    };
    exchange(&mut shims);
    assert_eq!(exchange(&mut shims), 0, "both know the other's nonce");
    shims.arrive(0, 1, locator(3));
    shims.send(0, b, b"with the update");
    assert!(shims.sent.last().unwrap().2.ilnp_nonce().is_some());
    shims.run_for(ms(100));
    assert_eq!(exchange(&mut shims), 0);
    assert_eq!((shims.heard(1, 0).len(), shims.heard(0, 1).len()), (10, 9));
    // those without a nonce are counted as well: two greetings were before
    assert_eq!(shims.counters(0).ilnp_received, 9 + 1);
    assert_eq!(shims.counters(1).ilnp_received, 10 + 2);
    // without a nonce, only between locators that both ends know
    let up = shims.hosts[1].up.len();
    shims.inject(datagram(
        locator(66).address(nid(0)),
        locator(2).address(nid(1)),
        b"forged",
    ));
    shims.run_for(ms(50));
    assert_eq!(shims.heard(1, 0).len(), 10);
    let (_, packet) = &shims.hosts[1].up[up];
    assert_eq!(
        packet.ip.source,
        locator(66).address(nid(0)),
        "it passes as plain IPv6"
    );
}

/// Section 7 (claim I10).
#[test]
fn wrong_nonces_are_dropped_and_counted() {
    let mut shims = talking(&Config::default());
    let packet = || datagram(locator(1).address(nid(0)), locator(2).address(nid(1)), b"forged");
    shims.inject(with_nonce(packet(), Nonce::Bits32([1, 2, 3, 4])));
    let right = shims.nonce_of_next(0);
    let Nonce::Bits32(bytes) = right else {
        unreachable!()
    };
    let mut longer = [0; 12];
    longer[..4].copy_from_slice(&bytes);
    shims.inject(with_nonce(packet(), Nonce::Bits96(longer)));
    shims.inject(with_nonce(with_nonce(packet(), right), right));
    shims.run_for(ms(50));
    let counters = shims.counters(1);
    assert_eq!((counters.wrong_nonce, counters.several_nonces), (2, 1));
    assert!(shims.hosts[1].up.is_empty());
}

/// Without a nonce it is plain IPv6, which cannot reach what is bound to identities.
#[test]
fn packets_without_a_nonce_are_plain_ipv6_and_not_the_sessions() {
    let mut shims = talking(&Config::default());
    let (a, b) = (shims.identity(0), shims.identity(1));
    let plain = datagram(locator(1).address(nid(0)), locator(2).address(nid(1)), b"plain");
    shims.inject(plain.clone());
    shims.run_for(ms(50));
    assert_eq!(shims.hosts[1].up.pop().map(|(_, p)| p), Some(plain));
    // a host may have real addresses for identities: then it would be taken for the session's
    let shim = &mut shims.hosts[1].shim;
    let inbound = shim.inbound(shims.now, Default::default(), datagram(a, b, b"forged"));
    assert_eq!(inbound, segue_proto::shim::Inbound::Taken);
    assert_eq!(shim.counted().missing_nonce, 1);
    // flows that began as plain IPv6 stay that
    let own = locator(1).address(nid(0));
    shims.send_packet(0, datagram(own, locator(2).address(nid(1)), b"plain"));
    let sent = &shims.sent.last().unwrap().2;
    assert_eq!((sent.ip.source, sent.ilnp_nonce()), (own, None));
}

/// A host whose peer, 1, knows nothing of ILNP and has a real address.
fn beside_plain() -> (Shims, core::net::Ipv6Addr) {
    let mut shims = Shims::pair(&Config::default());
    shims.hosts[1].plain = true;
    let peer = locator(2).address(nid(1));
    (shims, peer)
}

/// RFC 6741 section 10 (claim I9): the peer's kernel answers the option with a parameter problem.
#[test]
fn a_parameter_problem_makes_it_plain_ipv6() {
    let (mut shims, peer) = beside_plain();
    let (a, real) = (shims.identity(0), locator(1).address(nid(0)));
    shims.send(0, peer, b"first");
    shims.run_for(ms(50));
    assert!(shims.reported(0, |e| *e == ShimEvent::FellBack { peer }));
    assert_eq!(shims.hosts[0].shim.overhead(peer), 0);
    shims.send(0, peer, b"second");
    shims.run_for(ms(50));
    let (_, packet) = shims.hosts[1].up.pop().expect("plain IPv6");
    assert_eq!((packet.ip.source, packet.ip.destination), (real, peer));
    assert_eq!(packet.ilnp_nonce(), None);
    shims.inject(datagram(peer, real, b"answer"));
    shims.run_for(ms(50));
    let (_, packet) = shims.hosts[0].up.pop().expect("an answer");
    assert_eq!(
        (packet.ip.source, packet.ip.destination),
        (peer, a),
        "transports see what they sent to"
    );
    // it stays plain, and between the same addresses, whatever new locator there is
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(5000));
    shims.send(0, peer, b"third");
    assert_eq!(shims.sent.last().unwrap().2.ip.source, real);
    shims.leave(0, 0, locator(1));
    shims.send(0, peer, b"fourth");
    assert_eq!(shims.sent.last().unwrap().2.ip.source, locator(3).address(nid(0)));
    assert_eq!(shims.counters(0).lu_sent, 0);
}

/// The error must quote our addresses and our nonce, and point at it.
#[test]
fn forged_parameter_problems_change_nothing() {
    let mut shims = Shims::pair(&Config {
        fallback_after: None,
        ..Config::default()
    });
    let peer = locator(2).address(nid(1));
    shims.fate = Box::new(|_, packet| {
        if packet.ip.source == locator(2).address(nid(1)) {
            Fate::Arrives
        } else {
            Fate::Lost
        }
    });
    shims.send(0, peer, b"first");
    let sent = shims.sent[0].2.clone();
    let (nonce, _) = sent.ilnp_nonce().unwrap();
    let bare = datagram(sent.ip.source, sent.ip.destination, b"first");
    let guess = with_nonce(bare.clone(), Nonce::Bits32([9; 4]));
    let mut elsewhere = sent.clone();
    elsewhere.ip.destination = locator(7).address(nid(1));
    let mut not_ours = sent.clone();
    not_ours.ip.source = locator(7).address(nid(0));
    let pointless = parameter_problem(&sent, 40);
    let mut other_code = parameter_problem(&sent, 42);
    let Payload::Icmpv6(Icmpv6::ParameterProblem { code, .. }) = &mut other_code.payload else {
        unreachable!()
    };
    *code = 1;
    for problem in [
        parameter_problem(&guess, 42),
        parameter_problem(&bare, 42),
        parameter_problem(&elsewhere, 42),
        parameter_problem(&not_ours, 42),
        pointless,
        other_code,
    ] {
        let mut problem = problem;
        problem.ip = header(peer, sent.ip.source);
        shims.inject(problem);
    }
    shims.run_for(ms(100));
    assert_eq!(shims.counters(0).fallbacks, 0);
    assert_eq!(shims.counters(0).icmp_not_ours, 3);
    shims.inject(parameter_problem(&with_nonce(bare, nonce), 42));
    shims.run_for(ms(100));
    assert_eq!(shims.counters(0).fallbacks, 1, "the proof that the test can fail");
}

/// Whoever has answered with a nonce knows it, whatever somebody on the way says.
#[test]
fn a_peer_that_has_spoken_ilnp_does_not_fall_back() {
    let mut shims = talking(&Config::default());
    let b = shims.identity(1);
    shims.send(0, b, b"quoted");
    let sent = shims.sent.last().unwrap().2.clone();
    shims.run_for(ms(50));
    shims.inject(parameter_problem(&sent, 42));
    shims.run_for(ms(50));
    assert_eq!(
        (shims.counters(0).fallbacks, shims.counters(0).fallback_refused),
        (0, 1)
    );
}

/// A filter on the way may drop the option without a word: then unanswered packets say it.
#[test]
fn unanswered_packets_make_it_plain_ipv6() {
    let (mut shims, peer) = beside_plain();
    shims.fate = Box::new(|_, packet| {
        if packet.ilnp_nonce().is_some() {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    let mut plain = Vec::new();
    // the times of a SYN with an RTO of 1 s
    for at in [0, 1000, 3000, 7000] {
        let now = shims.now;
        shims.run_for((Instant::ZERO + ms(at)).since(now));
        shims.send(0, peer, b"SYN");
        plain.push(shims.sent.last().unwrap().2.ilnp_nonce().is_none());
    }
    assert_eq!(plain, [false, false, false, true]);
    shims.run_for(ms(50));
    assert_eq!(shims.hosts[1].up.len(), 1);
    // a peer that has answered is not given up for being silent
    let mut shims = talking(&Config::default());
    let b = shims.identity(1);
    for _ in 0..20 {
        shims.send(0, b, b"into the void");
        shims.run_for(ms(1000));
    }
    assert_eq!(shims.counters(0).fallbacks, 0);
}

/// Forged packets with a nonce must not turn a plain session into another.
#[test]
fn a_nonce_from_a_plain_peer_is_dropped() {
    let (mut shims, peer) = beside_plain();
    shims.send(0, peer, b"first");
    shims.run_for(ms(50));
    let real = locator(1).address(nid(0));
    shims.inject(with_nonce(datagram(peer, real, b"forged"), Nonce::Bits32([5; 4])));
    shims.run_for(ms(50));
    assert_eq!(shims.counters(0).unexpected_nonce, 1);
    assert!(shims.hosts[0].up.is_empty());
    assert!(matches!(
        shims.hosts[0].shim.correspondents().next().unwrap().mode(),
        Mode::Plain { .. }
    ));
}

/// Other errors about packets of a session reach the transport with the addresses that it knows.
#[test]
fn icmp_errors_are_translated_to_identities() {
    let mut shims = talking(&Config {
        handoff: Handoff::Soft,
        ..Config::default()
    });
    let (a, b) = (shims.identity(0), shims.identity(1));
    shims.send(0, b, b"too big");
    let sent = shims.sent.last().unwrap().2.clone();
    let router = "2001:db8:ffff::1".parse().unwrap();
    let error = |packet: &Packet| Packet {
        ip: header(router, sent.ip.source),
        extensions: Vec::new(),
        payload: Payload::Icmpv6(Icmpv6::PacketTooBig {
            mtu: 1400,
            invoking: Icmpv6::quote(packet),
        }),
    };
    shims.inject(error(&sent));
    shims.run_for(ms(50));
    let (_, packet) = shims.hosts[0].up.pop().expect("the error");
    assert_eq!((packet.ip.source, packet.ip.destination), (router, a));
    let Payload::Icmpv6(Icmpv6::PacketTooBig { mtu: 1400, invoking }) = packet.payload else {
        panic!()
    };
    let quoted = Packet::parse(&invoking).expect("all of it was quoted");
    assert_eq!(
        quoted,
        datagram(a, b, b"too big"),
        "as the transport sent it, its checksum included"
    );
    let forged = with_nonce(
        datagram(sent.ip.source, sent.ip.destination, b"too big"),
        Nonce::Bits32([0; 4]),
    );
    shims.inject(error(&forged));
    shims.run_for(ms(50));
    assert!(shims.hosts[0].up.is_empty());
    assert_eq!(shims.counters(0).icmp_not_ours, 1);
}
