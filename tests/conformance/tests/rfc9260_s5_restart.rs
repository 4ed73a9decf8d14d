//! RFC 9260 section 5.2.4: a COOKIE ECHO where an association exists, row by row of table 12.

use segue_conformance::expect;
use segue_conformance::script::chunks::{PEER_TAG, data, init, peer_tsn};
use segue_conformance::script::{Script, ms, peer, quiet};
use segue_proto::sctp::{Association, Event};
use segue_wire::Tsn;
use segue_wire::sctp::{Chunk, ErrorCause, Init, Parameter};

/// Tag and initial TSN of the peer after it has lost its memory.
const NEW_TAG: u32 = 0x5e9e_0002;
const NEW_TSN: Tsn = Tsn(7000);

fn cookie_of(ack: &Init) -> bytes::Bytes {
    ack.parameters
        .iter()
        .find_map(|p| match p {
            Parameter::StateCookie(cookie) => Some(cookie.clone()),
            _ => None,
        })
        .expect("state cookie")
}

/// The peer begins again with these parameters; gives the INIT ACK.
fn begin_again(t: &mut Script, parameters: Vec<Parameter>) -> Box<Init> {
    t.send_with_tag(
        0,
        [Chunk::Init(Box::new(Init {
            initiate_tag: NEW_TAG,
            initial_tsn: NEW_TSN,
            parameters,
            ..init()
        }))],
    );
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    assert_eq!(t.last.as_ref().map(|p| p.tag), Some(NEW_TAG));
    ack
}

#[test]
fn row_a_a_peer_that_restarts_takes_the_place_of_its_former_self() {
    let mut t = Script::established(quiet());
    t.send([data(0), data(1)]);
    t.user_sends(10);
    t.forget();
    let ack = begin_again(&mut t, Vec::new());
    // 5.2.2: a new tag, so that nothing of before is taken for what comes after
    assert_ne!(ack.initiate_tag, t.our_tag);
    let former_tag = core::mem::replace(&mut t.our_tag, ack.initiate_tag);
    t.send([Chunk::CookieEcho(cookie_of(&ack))]);
    expect!(t, Chunk::CookieAck);
    assert_eq!(t.last.as_ref().map(|p| p.tag), Some(NEW_TAG));
    assert!(
        t.events.iter().any(|e| matches!(e, Event::Restarted(_))),
        "{:?}",
        t.events
    );
    assert_eq!(t.end.associations().count(), 1);
    // TSNs are those of the new INIT, and the old tag is nobody's
    t.send_with_tag(former_tag, [data(2)]);
    t.send([Chunk::Data(segue_wire::sctp::DataChunk {
        tsn: NEW_TSN,
        ..segue_conformance::script::chunks::data_chunk(0)
    })]);
    assert_eq!(t.messages.len(), 3);
    assert_eq!(t.association().outstanding_bytes(), 0);
    assert_eq!(t.end.counters().restarts, 1);
}

#[test]
fn a_restart_may_not_add_addresses() {
    // section 5.2.2
    let mut t = Script::established(quiet());
    t.send_with_tag(
        0,
        [Chunk::Init(Box::new(Init {
            initiate_tag: NEW_TAG,
            parameters: vec![Parameter::Ipv6Address(peer(2))],
            ..init()
        }))],
    );
    let causes = expect!(t, Chunk::Abort { reflected_tag: false, causes } => causes.clone());
    assert!(matches!(causes[..], [ErrorCause::RestartWithNewAddresses(_)]));
    assert_eq!(t.last.as_ref().map(|p| p.tag), Some(NEW_TAG));
    assert!(t.association().is_established());
    assert_eq!(t.end.counters().refused.new_addresses, 1);
}

#[test]
fn row_b_both_ends_opened_at_once() {
    let mut t = Script::connecting(quiet());
    let own = expect!(t, Chunk::Init(init) => init.clone());
    t.our_tag = own.initiate_tag;
    t.send_with_tag(0, [Chunk::Init(Box::new(init()))]);
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    t.send([Chunk::CookieEcho(cookie_of(&ack))]);
    expect!(t, Chunk::CookieAck);
    t.expect_event(&Event::Connected);
    t.send([data(0)]);
    assert_eq!(t.messages.len(), 1);
    assert_eq!(t.end.associations().count(), 1);
}

/// Section 1.3. The peer's second address has not been confirmed when the user connects to it.
#[test]
fn a_second_association_with_a_peer_ends_when_its_init_ack_shows_whose_it_is() {
    let listed = || vec![Parameter::Ipv6Address(peer(2))];
    for (what, tag, parameters) in [
        (
            "by the address of the first",
            77,
            vec![Parameter::Ipv6Address(peer(1))],
        ),
        ("by the tag of the first", init().initiate_tag, vec![]),
    ] {
        let mut t = Script::listening(quiet());
        t.shake_hands(listed());
        t.forget();
        let second = t
            .end
            .connect(t.now, &[peer(2)], 5000)
            .expect("nothing speaks against it yet");
        t.command(|_, _| ());
        let tag_of_second = expect!(t, Chunk::Init(init) => init.initiate_tag);
        let mut ack = Init {
            initiate_tag: tag,
            parameters,
            ..init()
        };
        ack.parameters.push(Parameter::StateCookie("cookie".into()));
        let first = t.our_tag;
        t.our_tag = tag_of_second;
        t.send_from(peer(2), [Chunk::InitAck(Box::new(ack))]);
        assert!(t.take_all().is_empty(), "{what}");
        assert_eq!(t.end.counters().refused.second_associations, 1, "{what}");
        assert!(
            t.end.association(second).is_none_or(Association::is_closed),
            "{what}"
        );
        t.our_tag = first;
        t.send([data(0)]);
        assert_eq!(t.messages.len(), 1, "{what}");
    }
}

/// An address that somebody has claimed and not proven does not keep this end from the one whose it is.
#[test]
fn an_association_with_who_has_an_address_that_another_claims_goes_on() {
    let mut t = Script::listening(quiet());
    t.shake_hands(vec![Parameter::Ipv6Address(peer(2))]);
    t.forget();
    t.end
        .connect(t.now, &[peer(2)], 5000)
        .expect("the address is not proven");
    t.command(|_, _| ());
    t.our_tag = expect!(t, Chunk::Init(init) => init.initiate_tag);
    let ack = Init {
        initiate_tag: 77,
        parameters: vec![Parameter::StateCookie("cookie".into())],
        ..init()
    };
    t.send_from(peer(2), [Chunk::InitAck(Box::new(ack))]);
    expect!(t, Chunk::CookieEcho(_));
    assert_eq!(t.end.counters().refused.total(), 0);
}

#[test]
fn row_c_a_cookie_that_comes_late_is_discarded() {
    // the peer's INIT was answered before this end opened itself: other tags, and no tie-tags
    let mut t = Script::listening(quiet());
    t.send_with_tag(0, [Chunk::Init(Box::new(init()))]);
    let late = expect!(t, Chunk::InitAck(ack) => ack.clone());
    t.id = t.end.connect(t.now, &[peer(1)], 5000);
    t.command(|_, _| ());
    let own = expect!(t, Chunk::Init(init) => init.clone());
    t.our_tag = own.initiate_tag;
    t.send([Chunk::InitAck(Box::new(Init {
        parameters: vec![Parameter::StateCookie("cookie".into())],
        ..init()
    }))]);
    expect!(t, Chunk::CookieEcho(_));
    t.send_with_tag(late.initiate_tag, [Chunk::CookieEcho(cookie_of(&late))]);
    assert!(t.take_all().is_empty());
    assert_eq!(t.end.counters().refused.unexpected_cookies, 1);
    t.send([Chunk::CookieAck]);
    t.expect_event(&Event::Connected);
    assert_eq!(t.end.associations().count(), 1);
}

#[test]
fn row_d_the_cookie_of_this_association_is_answered_again() {
    let mut t = Script::listening(quiet());
    t.send_with_tag(0, [Chunk::Init(Box::new(init()))]);
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    t.our_tag = ack.initiate_tag;
    for _ in 0..3 {
        t.send([Chunk::CookieEcho(cookie_of(&ack))]);
        expect!(t, Chunk::CookieAck);
        assert_eq!(t.last.as_ref().map(|p| p.tag), Some(PEER_TAG));
    }
    t.send([data(0), data(1)]);
    assert_eq!(t.messages.len(), 2);
    t.wait(ms(300));
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(1));
}

#[test]
fn action_a_in_shutdown_ack_sent_completes_the_shutdown_first() {
    let mut t = Script::established(quiet());
    // the cookie is made while the association is up
    let ack = begin_again(&mut t, Vec::new());
    let cumulative_tsn_ack = t.our_tsn.previous();
    t.send([Chunk::Shutdown { cumulative_tsn_ack }]);
    expect!(t, Chunk::ShutdownAck);
    t.send_with_tag(ack.initiate_tag, [Chunk::CookieEcho(cookie_of(&ack))]);
    expect!(t, Chunk::ShutdownAck, Chunk::Error(causes)
        if causes == &[ErrorCause::CookieReceivedWhileShuttingDown]);
    assert_eq!(t.end.counters().restarts, 0);
}
