//! Who is where: first contact, recovery, what is forgotten, ephemeral identifiers.

use super::*;

/// First contact, where the locators of the peer are in the configuration.
#[test]
fn configured_peers_are_called_without_a_look_up() {
    let config = Config {
        peers: vec![PeerConfig {
            nid: nid(1),
            locators: vec![locator(2)],
            name: None,
        }],
        ..Config::default()
    };
    let mut shims = Shims::new([config, Config::default()]);
    shims.arrive(0, 0, locator(1));
    shims.arrive(1, 0, locator(2));
    let b = shims.identity(1);
    shims.send(0, b, b"hello");
    shims.run_for(ms(50));
    assert_eq!(shims.heard(1, 0), ["hello"]);
    assert_eq!(shims.counters(0).look_ups, 0);
}

/// First contact by the directory (RFC 6742): packets wait for the answer, as many as may.
#[test]
fn packets_wait_for_the_directory() {
    let mut shims = Shims::pair(&Config {
        max_held: 3,
        ..Config::default()
    });
    let b = shims.identity(1);
    for _ in 0..5 {
        shims.send(0, b, b"hello");
    }
    assert!(shims.sent.is_empty());
    assert!(shims.reported(0, |e| *e == ShimEvent::LookUp { peer: b }));
    shims.run_for(ms(100));
    assert_eq!(shims.heard(1, 0).len(), 3);
    assert_eq!(
        (shims.counters(0).no_remote_locator, shims.counters(0).look_ups),
        (2, 1)
    );
    // somebody that the directory does not know
    let nobody = Config::default().identity_prefix.address(Nid(77));
    shims.send(0, nobody, b"hello");
    shims.run_for(ms(100));
    assert_eq!(shims.counters(0).not_found, 1);
}

/// RFC 6744 section 4: who called knows no nonce yet, and takes answers from where it called alone. A host with several
/// locators answers from there, and tells of the others.
#[test]
fn an_answer_comes_from_where_the_call_went() {
    for nonce_in in [NonceIn::Every, NonceIn::SessionStartAndSignalling] {
        let config = Config {
            nonce_in,
            ..Config::default()
        };
        let mut shims = Shims::pair(&config);
        shims.arrive(1, 1, locator(4));
        shims.directory = false;
        let (a, real) = (shims.identity(0), locator(2).address(nid(1)));
        for _ in 0..3 {
            shims.send(0, real, b"are you there?");
        }
        shims.run_for(ms(50));
        let answers = |shims: &Shims| -> Vec<Locator> {
            let data = |p: &Packet| matches!(p.payload, Payload::Udp(_));
            let sent = shims.sent.iter().filter(|(_, by, p)| *by == 1 && data(p));
            sent.map(|(_, _, p)| Locator::of(p.ip.source)).collect()
        };
        for _ in 0..2 {
            shims.send(1, a, b"yes");
            shims.send(1, a, b"here");
            shims.run_for(ms(50));
            shims.send(0, real, b"good");
            shims.run_for(ms(50));
        }
        assert_eq!(answers(&shims), [locator(2); 4]);
        shims.send(1, a, b"here now");
        shims.run_for(ms(50));
        assert_eq!(answers(&shims)[4], locator(4));
        assert_eq!(shims.hosts[0].up.len(), 5, "{nonce_in:?}");
        assert_eq!(shims.counters(0).wrong_locator, 0);
        shims.send(0, real, b"fine");
        let to = shims.sent.last().unwrap().2.ip.destination;
        assert_eq!(Locator::of(to), locator(4));
    }
}

/// First contact at a real address, which stays the peer's identity for this host's transports.
#[test]
fn a_peer_called_at_its_address_keeps_it_as_its_identity() {
    let mut shims = Shims::pair(&Config::default());
    let (a, real) = (shims.identity(0), locator(2).address(nid(1)));
    shims.send(0, real, b"hello");
    shims.run_for(ms(50));
    assert_eq!(shims.heard(1, 0), ["hello"]);
    shims.send(1, a, b"back");
    shims.run_for(ms(50));
    shims.arrive(1, 1, locator(5));
    shims.run_for(ms(50));
    shims.send(1, a, b"back from elsewhere");
    shims.send(0, real, b"to elsewhere");
    shims.run_for(ms(50));
    assert_eq!(
        shims.sent.last().unwrap().2.ip.destination,
        locator(5).address(nid(1))
    );
    let sources: Vec<_> = shims.hosts[0].up.iter().map(|(_, p)| p.ip.source).collect();
    assert_eq!(sources, [real, real]);
    // by another name it would be two peers with one nonce
    let by_prefix = shims.identity(1);
    shims.send(0, by_prefix, b"second");
    assert_eq!(shims.counters(0).second_identity, 1);
}

/// Section 5.2: what is not used is forgotten.
#[test]
fn idle_correspondents_are_forgotten() {
    let mut shims = talking(&Config {
        idle_timeout: ms(60_000),
        ..Config::default()
    });
    let b = shims.identity(1);
    shims.run_for(ms(50_000));
    shims.send(0, b, b"still there");
    shims.run_for(ms(50_000));
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 1);
    shims.run_for(ms(60_000));
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 0);
}

#[test]
fn the_cache_is_bounded() {
    let mut shims = Shims::pair(&Config {
        max_correspondents: 10,
        ..Config::default()
    });
    shims.greet();
    for n in 0..100 {
        let packet = datagram(
            locator(9).address(Nid(1000 + n)),
            locator(1).address(nid(0)),
            b"hello",
        );
        let nonce = segue_wire::ilnp::Nonce::Bits32([n as u8; 4]);
        shims.inject(segue_conformance::shims::with_nonce(packet, nonce));
    }
    shims.run_for(ms(50));
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 10);
    assert_eq!(shims.counters(0).forgotten, 91);
}

/// RFC 6740 section 6.2: a peer that is silent may have moved while we did not look.
#[test]
fn a_silent_peer_is_looked_up() {
    let mut shims = talking(&Config::default());
    let b = shims.identity(1);
    // the peer moves, and its update is lost for as long as it tries
    shims.fate = Box::new(|_, p| {
        let update = segue_conformance::shims::update_in(p).is_some();
        if update { Fate::Lost } else { Fate::Arrives }
    });
    shims.arrive(1, 1, locator(4));
    shims.leave(1, 0, locator(2));
    for _ in 0..40 {
        shims.send(0, b, b"hello");
        shims.run_for(ms(250));
    }
    assert!(shims.reported(0, |e| *e == ShimEvent::LookUp { peer: b }));
    assert!(shims.reported(0, |e| *e
        == ShimEvent::RouteChanged {
            peer: b,
            to: locator(4).address(nid(1))
        }));
    assert!(!shims.heard(1, 0).is_empty());
}

/// RFC 6740 section 10.2 (claim I11): each peer sees another identifier; the transports at this host see one identity; and
/// handoffs work.
#[test]
fn ephemeral_identifiers_keep_peers_from_comparing_notes() {
    let ephemeral = Config {
        identifiers: Identifiers::Ephemeral,
        handoff: Handoff::Soft,
        ..Config::default()
    };
    let mut shims = Shims::new([ephemeral, Config::default(), Config::default()]);
    for host in 0..3 {
        shims.arrive(host, 0, locator(host as u16 + 1));
    }
    let own = shims.identity(0);
    let mut seen = Vec::new();
    for host in [1, 2] {
        let peer = shims.identity(host);
        shims.send(0, peer, b"hello");
        shims.run_for(ms(100));
        let caller = shims.hosts[host].up[0].1.ip.source;
        shims.send(host, caller, b"who are you?");
        shims.run_for(ms(100));
        let (_, answer) = shims.hosts[0].up.pop().expect("an answer");
        assert_eq!((answer.ip.source, answer.ip.destination), (peer, own));
        seen.push(caller);
    }
    assert_ne!(seen[0], seen[1]);
    assert!(!seen.contains(&own));
    shims.sent.clear();
    shims.arrive(0, 1, locator(7));
    shims.run_for(ms(200));
    assert!(shims.reported(0, |e| matches!(e, ShimEvent::HandoffDone { .. })));
    for (n, host) in [1, 2].into_iter().enumerate() {
        shims.send(host, seen[n], b"where are you?");
        shims.run_for(ms(100));
        let to = shims.sent.last().unwrap().2.ip.destination;
        assert_eq!((Locator::of(to), Nid::of(to)), (locator(7), Nid::of(seen[n])));
        assert_eq!(shims.hosts[0].up.pop().unwrap().1.ip.destination, own);
        assert_eq!(
            shims.hosts[host].shim.correspondents().next().unwrap().mode(),
            Mode::Ilnp
        );
    }
    // nothing on the wire names the host
    assert!(
        shims
            .sent
            .iter()
            .all(|(_, _, p)| Nid::of(p.ip.source) != nid(0) && Nid::of(p.ip.destination) != nid(0))
    );
}
