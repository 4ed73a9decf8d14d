//! Where a peer says that it is, and whether it is there: RFC 6743 asks for no check, `unconfirmed_bytes` bounds what is sent
//! before there is one.

use super::{talking, update_of};
use segue_conformance::shims::{Shims, datagram, locator, ms, nid, with_nonce};
use segue_proto::Duration;
use segue_proto::ilnp::{Config, Handoff};
use segue_wire::ilnp::Locator;

/// Where the victim is.
const VICTIM: u16 = 66;
/// 1048 bytes on the wire with headers, 1056 with the nonce.
static DATA: [u8; 1000] = [7; 1000];

fn limited(bytes: u32) -> Shims {
    let config = Config {
        unconfirmed_bytes: Some(bytes),
        ..Config::default()
    };
    let mut shims = Shims::pair(&config);
    shims.greet();
    shims.sent.clear();
    shims
}

/// Packets that host 1 has sent to `at`.
fn sent_to(shims: &Shims, at: Locator) -> usize {
    let to = |packet: &segue_wire::Packet| Locator::of(packet.ip.destination) == at;
    shims.sent.iter().filter(|(_, by, p)| *by == 1 && to(p)).count()
}

fn send_ten(shims: &mut Shims) {
    let a = shims.identity(0);
    for _ in 0..10 {
        shims.send(1, a, &DATA);
        shims.run_for(ms(10));
    }
}

/// Host 0 says that it is at the victim's, by an update from where it is.
fn lies(shims: &mut Shims) {
    let update = update_of(shims, &[(VICTIM, 600)]);
    shims.inject(update);
    shims.run_for(ms(50));
    shims.sent.clear();
}

#[test]
fn without_a_limit_everything_goes_where_an_update_says() {
    let mut shims = talking(Handoff::Soft);
    lies(&mut shims);
    send_ten(&mut shims);
    assert_eq!(sent_to(&shims, locator(VICTIM)), 10);
}

#[test]
fn what_goes_to_a_locator_from_which_nothing_was_heard_is_bounded() {
    let mut shims = limited(3000);
    shims.directory = false;
    lies(&mut shims);
    send_ten(&mut shims);
    assert_eq!(sent_to(&shims, locator(VICTIM)), 2);
    assert_eq!(shims.counters(1).unconfirmed_locator, 8);
    // a further update does not begin anew
    lies(&mut shims);
    send_ten(&mut shims);
    assert_eq!(sent_to(&shims, locator(VICTIM)), 0);
    // time does
    shims.run_for(Duration::from_secs(30));
    lies(&mut shims);
    send_ten(&mut shims);
    assert!(sent_to(&shims, locator(VICTIM)) <= 2);
    // and what shows that it is true takes the limit away
    let nonce = shims.nonce_of_next(0);
    let here = datagram(
        locator(VICTIM).address(nid(0)),
        locator(2).address(nid(1)),
        b"here I am",
    );
    lies(&mut shims);
    shims.inject(with_nonce(here, nonce));
    shims.run_for(ms(50));
    send_ten(&mut shims);
    assert_eq!(sent_to(&shims, locator(VICTIM)), 10);
}

/// When the limit is reached the directory is asked, and believed.
#[test]
fn the_directory_says_where_a_peer_is_that_is_not_where_it_says() {
    let mut shims = limited(3000);
    lies(&mut shims);
    send_ten(&mut shims);
    assert_eq!(sent_to(&shims, locator(VICTIM)), 2);
    assert_eq!(shims.counters(1).look_ups, 1);
    assert_eq!(
        shims.counters(1).unconfirmed_locator,
        2,
        "until the answer is there"
    );
    assert_eq!(sent_to(&shims, locator(1)), 6);
}

/// Who moves tells of it from where he is now: nothing is held back, by however low a limit.
#[test]
fn a_host_that_moves_loses_nothing_by_the_limit() {
    for handoff in [Handoff::Soft, Handoff::Hard] {
        let config = Config {
            handoff,
            unconfirmed_bytes: Some(0),
            ..Config::default()
        };
        let mut shims = Shims::pair(&config);
        shims.greet();
        let before = shims.heard(0, 1).len();
        shims.arrive(0, 1, locator(3));
        shims.run_for(ms(15));
        send_ten(&mut shims);
        shims.run_for(ms(50));
        assert_eq!(shims.heard(0, 1).len(), before + 10);
        assert_eq!(shims.counters(1).unconfirmed_locator, 0);
        assert_eq!(sent_to(&shims, locator(3)), 10 + 1, "with the acknowledgement");
    }
}
