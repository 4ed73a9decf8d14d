//! RFC 6740 section 9 and RFC 6744 section 7: what gets round the nonce, which is nothing; what whoever forges an identifier
//! gets, which is answers to what he says himself; and every packet that is dropped is counted by its reason.

mod forged_identifier;
mod full_cache;

use segue_conformance::shims::{Shims, datagram, locator, ms, nid, parameter_problem, with_nonce};
use segue_proto::Duration;
use segue_proto::ilnp::{Config, Identifiers};
use segue_proto::shim::{Inbound, Shim};
use segue_wire::Packet;
use segue_wire::ilnp::{Locator, Nonce};

const GUESS: Nonce = Nonce::Bits32([1, 2, 3, 4]);

fn talking() -> Shims {
    let mut shims = Shims::pair(&Config::default());
    shims.greet();
    for host in &mut shims.hosts {
        host.up.clear();
    }
    shims
}

fn count(shims: &Shims, host: usize, name: &str) -> u64 {
    let counters = shims.hosts[host].shim.counters();
    counters.iter().find(|c| c.0 == name).map_or(0, |c| c.1)
}

/// Transports take an error for theirs that quotes identities. Those are never on the wire: the shim translates what it
/// has found to be the session's, and nobody else may.
#[test]
fn an_error_that_quotes_identities_is_forged() {
    let mut shims = talking();
    let (a, b) = (shims.identity(0), shims.identity(1));
    for (nonce, pointer) in [(None, 6), (Some(GUESS), 42)] {
        let quoted = match nonce {
            None => datagram(a, b, b"quoted"),
            Some(nonce) => with_nonce(datagram(a, b, b"quoted"), nonce),
        };
        let mut forged = parameter_problem(&quoted, pointer);
        forged.ip.source = locator(66).address(nid(66));
        forged.ip.destination = locator(1).address(nid(0));
        shims.inject(forged);
        shims.run_for(ms(50));
    }
    assert!(shims.hosts[0].up.is_empty(), "{:?}", shims.hosts[0].up);
    assert_eq!(count(&shims, 0, "icmp_not_ours"), 2);
    // nor about a peer that this host has never heard of
    let quoted = datagram(a, Locator(0xfd53_6567_7565_0001).address(nid(7)), b"quoted");
    let mut forged = parameter_problem(&quoted, 6);
    forged.ip.destination = locator(1).address(nid(0));
    shims.inject(forged);
    shims.run_for(ms(50));
    assert!(shims.hosts[0].up.is_empty(), "{:?}", shims.hosts[0].up);
}

/// A packet for the identity itself, from the same link, is not the session's, with a nonce as little as without.
#[test]
fn a_nonce_does_not_open_the_way_to_the_identity() {
    let mut shims = talking();
    let (a, b) = (shims.identity(0), shims.identity(1));
    let now = shims.now;
    for nonce in [GUESS, shims.nonce_of(0)] {
        let forged = with_nonce(datagram(a, b, b"forged"), nonce);
        let inbound = shims.hosts[1].shim.inbound(now, Default::default(), forged);
        assert_eq!(inbound, Inbound::Taken);
    }
    assert_eq!(count(&shims, 1, "identity_on_wire"), 2);
}

/// First packets that cannot be answered: of an identifier of ours, of none, from nowhere.
#[test]
fn first_packets_from_impossible_addresses_are_counted() {
    let mut shims = talking();
    let to = locator(2).address(nid(1));
    let from = [
        locator(66).address(nid(1)),
        locator(66).address(segue_wire::ilnp::Nid(0)),
        Locator(0xfe80 << 48).address(nid(66)),
        // and an identity is never on the wire
        shims.hosts[0].shim.identity(),
    ];
    for source in from {
        shims.inject(with_nonce(datagram(source, to, b"forged"), GUESS));
    }
    shims.run_for(ms(50));
    assert!(shims.hosts[1].up.is_empty());
    assert_eq!(count(&shims, 1, "bad_source"), 4);
    assert_eq!(shims.hosts[1].shim.correspondents().count(), 1);
}

/// A peer that is called under an ephemeral identifier is known by that; what says that it is the same node, for the stable
/// one, is dropped, and costs nobody his place in the cache.
#[test]
fn a_second_session_of_an_identity_is_refused_and_forgets_nobody() {
    let caller = Config {
        identifiers: Identifiers::Ephemeral,
        max_correspondents: 2,
        ..Config::default()
    };
    let mut shims = Shims::new([caller, Config::default(), Config::default()]);
    for host in 0..3 {
        shims.arrive(host, 0, locator(host as u16 + 1));
    }
    for host in [2, 1] {
        let peer = shims.identity(host);
        shims.send(0, peer, b"hello");
        shims.run_for(ms(100));
    }
    let before: Vec<_> = shims.hosts[0]
        .shim
        .correspondents()
        .map(|c| c.identity())
        .collect();
    assert_eq!(before.len(), 2);
    let again = datagram(locator(2).address(nid(1)), locator(1).address(nid(0)), b"again");
    shims.inject(with_nonce(again, GUESS));
    shims.run_for(ms(50));
    let after: Vec<_> = shims.hosts[0]
        .shim
        .correspondents()
        .map(|c| c.identity())
        .collect();
    assert_eq!(after, before);
    assert_eq!(count(&shims, 0, "forgotten"), 0);
    assert_eq!(count(&shims, 0, "second_session"), 1);
    assert!(shims.hosts[0].up.is_empty());
}

/// A peer that speaks only IPv6 answers each of the first packets with an error; one is enough, the others are counted.
#[test]
fn errors_of_before_a_fallback_are_counted() {
    let mut shims = Shims::pair(&Config::default());
    shims.hosts[1].plain = true;
    let b = shims.identity(1);
    for _ in 0..3 {
        shims.send(0, b, b"hello?");
    }
    shims.run_for(ms(100));
    assert_eq!(count(&shims, 0, "fallbacks"), 1);
    assert_eq!(count(&shims, 0, "icmp_not_ours"), 2);
}

/// What waits for a look-up that is never answered goes when its peer is forgotten, and is counted then.
#[test]
fn packets_that_waited_in_vain_are_counted() {
    let mut shims = Shims::pair(&Config::default());
    shims.directory = false;
    let nobody: Packet = datagram(
        shims.identity(0),
        Locator::of(shims.identity(0)).address(nid(9)),
        b"anybody?",
    );
    for _ in 0..3 {
        shims.send_packet(0, nobody.clone());
    }
    shims.run_for(Duration::from_secs(400));
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 0);
    assert_eq!(count(&shims, 0, "not_found"), 3);
}

/// First packets cost nothing to forge: of those that nobody has answered, none takes the place of a session.
#[test]
fn first_packets_of_strangers_do_not_drive_out_a_session() {
    let config = Config {
        max_correspondents: 4,
        ..Config::default()
    };
    let mut shims = Shims::pair(&config);
    shims.greet();
    let a = shims.identity(0);
    for n in 0..20 {
        let stranger = locator(66).address(nid(100 + n));
        let first = datagram(stranger, locator(2).address(nid(1)), b"forged");
        shims.inject(with_nonce(first, GUESS));
        shims.run_for(ms(50));
    }
    let shim = &shims.hosts[1].shim;
    assert_eq!(shim.correspondents().count(), 4);
    assert!(shim.correspondents().any(|c| c.identity() == a));
    assert_eq!(count(&shims, 1, "forgotten"), 17);
    // and its nonce is still the one
    let known = shims.heard(1, 0).len();
    shims.send(0, shims.identity(1), b"still here");
    shims.run_for(ms(50));
    assert_eq!(shims.heard(1, 0).len(), known + 1);
}

/// Nor do those that are answered, as an echo request is, take the place of a call.
#[test]
fn answers_to_strangers_do_not_drive_out_a_call() {
    let config = Config {
        max_correspondents: 4,
        ..Config::default()
    };
    let mut shims = Shims::pair(&config);
    shims.greet();
    let (a, b) = (shims.identity(0), shims.identity(1));
    for n in 0..20 {
        let first = datagram(
            locator(66).address(nid(100 + n)),
            locator(1).address(nid(0)),
            b"anybody?",
        );
        shims.inject(with_nonce(first, GUESS));
        shims.run_for(ms(50));
        let stranger = Locator::of(a).address(nid(100 + n));
        shims.send_packet(0, datagram(a, stranger, b"yes"));
        shims.run_for(ms(50));
    }
    let shim = &shims.hosts[0].shim;
    assert_eq!(shim.correspondents().count(), 4);
    assert!(shim.correspondents().any(|c| c.identity() == b && c.is_called()));
    assert_eq!(count(&shims, 0, "forgotten"), 17);
    // and both still know each other's nonce
    for (from, to, peer) in [(0, 1, b), (1, 0, a)] {
        let known = shims.heard(to, from).len();
        shims.send(from, peer, b"still here");
        shims.run_for(ms(50));
        assert_eq!(shims.heard(to, from).len(), known + 1);
    }
}
