//! Locator rewriting at a site border (RFC 6748 sections 2 and 7; claim I11): localised numbering, location privacy.

use bytes::Bytes;
use segue_conformance::shims::{Shims, datagram, locator, ms, nid, parameter_problem, update_in};
use segue_proto::ilnp::{ChecksumRule, Config, Handoff, LocatorMapping, Rewriter, RewriterConfig};
use segue_proto::shim::ShimEvent;
use segue_wire::ilnp::{Locator, LocatorOperation};
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, Payload};

/// Locators 1 and 3 inside are 0x101 and 0x103 outside.
fn border() -> Rewriter {
    let mapping = |n: u16| LocatorMapping {
        inside: locator(n).address(Default::default()),
        outside: locator(0x100 + n).address(Default::default()),
    };
    Rewriter::new(&RewriterConfig {
        mappings: vec![mapping(1), mapping(3)],
    })
    .expect("one to one")
}

fn behind_a_border(config: &Config) -> Shims {
    let mut shims = Shims::pair(config);
    shims.border = Some((0, border()));
    let real = locator(2).address(nid(1));
    shims.send(0, real, b"hello");
    shims.run_for(ms(50));
    let a = shims.identity(0);
    shims.send(1, a, b"hello");
    shims.run_for(ms(50));
    shims.send(0, real, b"hello");
    shims.run_for(ms(50));
    assert_eq!((shims.heard(1, 0).len(), shims.hosts[0].up.len()), (2, 1));
    shims
}

/// Section 2: the ends talk as ever, and the outside sees no inside locator, in updates neither.
#[test]
fn sessions_and_handoffs_cross_the_border() {
    for checksum in [ChecksumRule::Ipv6, ChecksumRule::Identifiers] {
        for handoff in [Handoff::Hard, Handoff::Soft] {
            let mut shims = behind_a_border(&Config {
                checksum,
                handoff,
                ..Config::default()
            });
            let (a, real) = (shims.identity(0), locator(2).address(nid(1)));
            shims.arrive(0, 1, locator(3));
            shims.run_for(ms(100));
            let to = locator(3).address(nid(0));
            assert!(
                shims.reported(0, |e| *e == ShimEvent::HandoffDone { to, delay: ms(20) }),
                "the acknowledgement is understood"
            );
            let outside = locator(0x103).address(nid(0));
            assert!(shims.reported(1, |e| *e == ShimEvent::RouteChanged { peer: a, to: outside }));
            shims.send(1, a, b"to the new locator");
            shims.send(0, real, b"from the new locator");
            shims.run_for(ms(50));
            assert_eq!((shims.heard(1, 0).len(), shims.hosts[0].up.len()), (3, 2));
            for (_, _, packet) in &shims.sent {
                let inside = [locator(1), locator(3)];
                assert!(!inside.contains(&Locator::of(packet.ip.source)), "{packet:?}");
                assert!(
                    !inside.contains(&Locator::of(packet.ip.destination)),
                    "{packet:?}"
                );
                if let Some(update) = update_in(packet) {
                    assert!(
                        update.locators.iter().all(|e| !inside.contains(&e.locator)),
                        "{update:?}"
                    );
                }
            }
            let counters = shims.border.as_ref().unwrap().1.counters();
            assert_eq!(counters.locator_updates, 2, "an update and its acknowledgement");
            assert_eq!(shims.counters(0).lu_unexpected_ack, 0);
        }
    }
}

/// A peer's own locators are its own affair, even where they are numbered as the inside is.
#[test]
fn updates_of_outside_nodes_are_left_alone() {
    let mut shims = behind_a_border(&Config::default());
    shims.arrive(1, 1, locator(4));
    shims.run_for(ms(100));
    assert!(shims.reported(1, |e| matches!(e, ShimEvent::HandoffDone { .. })));
    let real = locator(2).address(nid(1));
    shims.send(0, real, b"hello");
    assert_eq!(
        Locator::of(shims.sent.last().unwrap().2.ip.destination),
        locator(4)
    );
    let (_, ack) = shims.updates(0, LocatorOperation::Acknowledgement)[0];
    let named: Vec<_> = update_in(ack)
        .unwrap()
        .locators
        .iter()
        .map(|e| e.locator)
        .collect();
    assert_eq!(named, [locator(4), locator(2)]);
}

/// The error quotes what the outside saw; the inside host must recognise it as its own.
#[test]
fn quotations_in_errors_are_rewritten() {
    let mut shims = Shims::pair(&Config::default());
    shims.border = Some((0, border()));
    shims.hosts[1].plain = true;
    let real = locator(2).address(nid(1));
    shims.send(0, real, b"hello");
    shims.run_for(ms(50));
    assert!(shims.reported(0, |e| *e == ShimEvent::FellBack { peer: real }));
    shims.send(0, real, b"plain");
    shims.run_for(ms(50));
    let (_, packet) = &shims.hosts[1].up[0];
    assert_eq!(packet.ip.source, locator(0x101).address(nid(0)));
    // and the other way: an inside host's error about what came in
    let mut border = border();
    let inside = border.inbound(datagram(real, locator(0x101).address(nid(0)), b"hello"));
    let error = border.outbound(parameter_problem(&inside, 0));
    let Payload::Icmpv6(message) = &error.payload else {
        unreachable!()
    };
    let mut quoted = message.invoking().unwrap().to_vec();
    let outside = datagram(real, locator(0x101).address(nid(0)), b"hello").to_vec();
    quoted[46..48].copy_from_slice(&outside[46..48]);
    assert_eq!(quoted, outside, "but for the checksum");
}

/// RFC 6741 section 4.2: a checksum over identifiers is not touched; one of IPv6's is adjusted (RFC 1624).
#[test]
fn raw_checksums_are_adjusted_only_where_they_cover_locators() {
    for checksum in [ChecksumRule::Ipv6, ChecksumRule::Identifiers] {
        let mut shims = behind_a_border(&Config {
            checksum,
            ..Config::default()
        });
        let real = locator(2).address(nid(1));
        shims.border = None;
        shims.send(0, real, b"as the host sent it");
        let bytes = Bytes::from(shims.sent.last().unwrap().2.to_vec());
        let raw = Packet::parse_raw(&bytes, ChecksumState::Complete, None).expect("a packet");
        let rewritten = border().outbound(raw.clone()).to_vec();
        assert!(Packet::parse(&rewritten).is_ok(), "right");
        let same = rewritten[48..] == bytes[48..];
        assert_eq!(same, checksum == ChecksumRule::Identifiers);
    }
}

#[test]
fn packets_of_others_pass() {
    let mut border = border();
    let packet = datagram(locator(7).address(nid(0)), locator(2).address(nid(1)), b"hello");
    assert_eq!(border.outbound(packet.clone()), packet);
    assert_eq!(border.inbound(packet.clone()), packet);
    assert_eq!(border.counters(), Default::default());
}

#[test]
fn mappings_are_one_to_one() {
    let mapping = |inside: &str, outside: &str| LocatorMapping {
        inside: inside.parse().unwrap(),
        outside: outside.parse().unwrap(),
    };
    for bad in [
        vec![mapping("fd00::1", "2001:db8::")],
        vec![mapping("ff02::", "2001:db8::")],
        vec![
            mapping("fd00::", "2001:db8::"),
            mapping("fd00:0:0:1::", "2001:db8::"),
        ],
        vec![
            mapping("fd00::", "2001:db8::"),
            mapping("fd00::", "2001:db8:0:1::"),
        ],
    ] {
        let error = RewriterConfig { mappings: bad }.check().expect_err("refused");
        assert!(error.starts_with("mappings: "), "{error}");
    }
}
