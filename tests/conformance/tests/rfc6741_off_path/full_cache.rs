//! RFC 6741 section 5: what goes when the cache is full.

use super::forged_identifier::segment;
use super::{GUESS, count};
use segue_conformance::shims::{Shims, datagram, locator, ms, nid, with_nonce};
use segue_proto::ilnp::{Config, Trigger};
use segue_wire::Packet;
use segue_wire::ilnp::{Locator, LocatorOperation, Nid};
use segue_wire::tcp::TcpFlags;

const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);

fn small(max_correspondents: u32) -> Config {
    Config {
        max_correspondents,
        ..Config::default()
    }
}

/// The first packet of a stranger to host `to`, which is at locator `to` + 1.
fn first_packet(stranger: usize, to: usize) -> Packet {
    let source = locator(66).address(nid(stranger));
    let destination = locator(to as u16 + 1).address(nid(to));
    with_nonce(datagram(source, destination, b"anybody?"), GUESS)
}

/// Whoever makes up an identifier is answered, and says no more: a session that has carried on is worth more, however long it
/// has been silent.
#[test]
fn answers_to_strangers_do_not_drive_out_a_session_that_a_peer_began() {
    let mut shims = Shims::pair(&small(4));
    shims.greet();
    let (a, b) = (shims.identity(0), shims.identity(1));
    shims.run_for(ms(10_000));
    for n in 0..20 {
        shims.inject(first_packet(100 + n, 1));
        shims.run_for(ms(50));
        let stranger = Locator::of(b).address(nid(100 + n));
        shims.send_packet(1, datagram(b, stranger, b"yes"));
        shims.run_for(ms(50));
    }
    let shim = &shims.hosts[1].shim;
    assert_eq!(shim.correspondents().count(), 4);
    assert!(shim.correspondents().any(|c| c.identity() == a && !c.is_called()));
    // and both ends go on with the nonces that they have
    for (from, to, peer) in [(1, 0, a), (0, 1, b)] {
        let known = shims.heard(to, from).len();
        shims.send(from, peer, b"still here");
        shims.run_for(ms(50));
        assert_eq!(shims.heard(to, from).len(), known + 1);
    }
}

/// Nothing can be heard of a peer whose locators are still being looked up: that does not make its session the one to go.
#[test]
fn a_call_that_waits_for_its_look_up_stays() {
    let mut shims = Shims::pair(&small(2));
    shims.greet();
    shims.directory = false;
    let a = shims.identity(0);
    let waiting = Locator::of(a).address(nid(9));
    shims.send(0, waiting, b"anybody?");
    shims.run_for(ms(1000));
    shims.inject(first_packet(100, 0));
    shims.run_for(ms(50));
    let shim = &shims.hosts[0].shim;
    assert_eq!(shim.correspondents().count(), 2);
    assert!(shim.correspondents().any(|c| c.identity() == waiting));
    assert_eq!(count(&shims, 0, "not_found"), 0, "what waits is still there");
    // strangers take the place of strangers
    shims.inject(first_packet(101, 0));
    shims.run_for(ms(50));
    let shim = &shims.hosts[0].shim;
    assert!(shim.correspondents().any(|c| c.identity() == waiting));
}

/// A SYN with ACK for a session that had to go is no call: whoever has that identity in truth has not asked for it.
#[test]
fn an_answer_to_a_session_that_is_gone_begins_no_other() {
    let mut shims = Shims::pair(&small(1));
    let (a, b) = (shims.identity(0), shims.identity(1));
    let syn = |n: usize| {
        let source = locator(66).address(nid(n));
        let packet = segment(source, locator(1).address(nid(0)), TcpFlags::SYN);
        with_nonce(packet, GUESS)
    };
    shims.inject(syn(1));
    shims.run_for(ms(50));
    shims.inject(syn(100));
    shims.run_for(ms(50));
    assert_eq!(count(&shims, 0, "forgotten"), 1);
    let sent = shims.sent.len();
    shims.send_packet(0, segment(a, b, SYN_ACK));
    shims.run_for(ms(100));
    assert_eq!(shims.sent.len(), sent);
    assert_eq!(count(&shims, 0, "no_session"), 1);
    assert_eq!(count(&shims, 0, "look_ups"), 0);
    let shim = &shims.hosts[0].shim;
    assert!(shim.correspondents().all(|c| c.nid() == nid(100)));
    // what may begin something is a call as ever
    shims.send_packet(0, segment(a, b, TcpFlags::SYN));
    shims.run_for(ms(100));
    assert!(
        shims.hosts[0]
            .shim
            .correspondents()
            .any(|c| c.identity() == b && c.is_called())
    );
}

/// Nor is a reset, which the kernel has for every SYN to a port that nobody listens at.
#[test]
fn a_reset_of_a_session_that_is_gone_begins_no_other() {
    let mut shims = Shims::pair(&small(4));
    let (a, b) = (shims.identity(0), shims.identity(1));
    shims.send_packet(0, segment(a, b, TcpFlags(TcpFlags::RST.0 | TcpFlags::ACK.0)));
    shims.run_for(ms(100));
    assert_eq!(count(&shims, 0, "no_session"), 1);
    assert_eq!(count(&shims, 0, "look_ups"), 0);
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 0);
}

/// RFC 6743 section 2: an update goes again and again. Who has sent one packet is not told of a locator beside the one in use.
#[test]
fn a_stranger_is_told_of_more_locators_only_when_he_carries_on() {
    let mut shims = Shims::pair(&Config {
        trigger: Trigger::Lost,
        ..small(4096)
    });
    shims.run_for(ms(100));
    let b = shims.identity(1);
    for n in [100, 101, 101] {
        shims.inject(first_packet(n, 1));
        shims.run_for(ms(50));
        let stranger = Locator::of(b).address(nid(n));
        shims.send_packet(1, datagram(b, stranger, b"yes"));
        shims.run_for(ms(50));
    }
    shims.arrive(1, 1, locator(7));
    shims.run_for(ms(10_000));
    let told = shims.updates(1, LocatorOperation::Advertisement);
    assert!(!told.is_empty());
    assert!(
        told.iter()
            .all(|(_, update)| Nid::of(update.ip.destination) == nid(101))
    );
}

/// Every timer and every handoff looks at all sessions: of those with somebody who was heard once there are 256.
#[test]
fn of_strangers_the_last_256_are_known() {
    let mut shims = Shims::pair(&small(4096));
    shims.greet();
    for n in 0..600 {
        shims.inject(first_packet(100 + n, 1));
        shims.run_for(ms(1));
    }
    shims.run_for(ms(50));
    let shim = &shims.hosts[1].shim;
    assert_eq!(shim.correspondents().count(), 1 + 256);
    assert_eq!(count(&shims, 1, "forgotten"), 600 - 256);
    assert!(shim.correspondents().any(|c| c.nid() == nid(699)));
    assert!(shim.correspondents().any(|c| c.nid() == nid(0)));
}
