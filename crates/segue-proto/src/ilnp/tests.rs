//! The rules that need no network. What hosts do together is in `tests/conformance/tests/rfc674*.rs`.

mod calls;
mod fallback;
mod quiet;

use super::config::{Handoff, PeerConfig, Trigger};
use super::correspondent::Correspondent;
use super::flow::{Flow, is_answer, is_call};
use super::local::LocalLocators;
use super::nonce::{self, Taken};
use super::outbox::Outbox;
use super::parties::Parties;
use super::session_key::SessionKey;
use super::sessions::Ilcc;
use super::*;
use crate::address::AddressEvent;
use crate::contract::{InterfaceId, LocalAddress};
use crate::shim::Shim;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, LocatorEntry, Nid, Nonce};
use segue_wire::ipv6::Ipv6Option;
use segue_wire::raw::{ChecksumState, RawPayload};
use segue_wire::tcp::{TcpFlags, TcpOptions, TcpSegment};
use segue_wire::{Data, ExtensionHeader, Ipv6Header, Packet, Payload, PseudoRule, SeqNumber};

const OWN: Nid = Nid(1);
const PEER: Nid = Nid(2);

fn at(s: u64) -> Instant {
    Instant::ZERO + s_(s)
}

fn s_(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn locator(n: u64) -> Locator {
    Locator(0x2001_0db8_0000_0000 + n)
}

fn own(n: u64) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(n as u8),
        address: locator(n).address(OWN),
    }
}

// --- settings ---

#[test]
fn settings_name_the_key_that_is_wrong() {
    let said = |change: fn(&mut Config)| {
        let mut config = Config::new(OWN);
        change(&mut config);
        config
            .check()
            .map_err(|text| text.split([':', ' ']).next().unwrap().to_owned())
    };
    let peer = |nid, locators: Vec<Locator>| PeerConfig {
        nid,
        locators,
        name: None,
    };
    let wrong = |key: &str| Err(key.to_owned());
    assert_eq!(said(|_| {}), Ok(()));
    assert_eq!(said(|c| c.nid = Nid(0)), wrong("nid"));
    assert_eq!(
        said(|c| c.identity_prefix = Locator(0xfe80 << 48)),
        wrong("identity_prefix")
    );
    assert_eq!(said(|c| c.lu_timeout = Duration::ZERO), wrong("lu_timeout"));
    assert_eq!(said(|c| c.idle_timeout = Duration::ZERO), wrong("idle_timeout"));
    assert_eq!(
        said(|c| c.locator_timeout = Some(Duration::ZERO)),
        wrong("locator_timeout")
    );
    assert_eq!(said(|c| c.locator_timeout = Some(s_(1))), Ok(()));
    assert_eq!(
        said(|c| c.lu_max_timeout = Duration::from_millis(999)),
        wrong("lu_max_timeout")
    );
    assert_eq!(said(|c| c.lu_max_timeout = s_(1)), Ok(()));
    // RFC 6743 section 3: 16 bits of seconds
    for (lifetime, good) in [
        (0, false),
        (999, false),
        (1000, true),
        (1500, false),
        (65_535_000, true),
        (65_536_000, false),
    ] {
        let mut config = Config::new(OWN);
        config.locator_lifetime = Duration::from_millis(lifetime);
        assert_eq!(config.check().is_ok(), good, "{lifetime} ms");
    }
    assert_eq!(said(|c| c.lu_attempts = 0), wrong("lu_attempts"));
    assert_eq!(said(|c| c.look_up_after = 0), wrong("look_up_after"));
    assert_eq!(said(|c| c.silent_packets = 0), wrong("silent_packets"));
    assert_eq!(said(|c| c.fallback_after = Some(0)), wrong("fallback_after"));
    assert_eq!(said(|c| c.fallback_after = None), Ok(()));
    assert_eq!(said(|c| c.max_correspondents = 0), wrong("max_correspondents"));
    assert_eq!(said(|c| c.ephemeral_pool = 0), Ok(()));
    let both: fn(&mut Config) = |c| (c.ephemeral_pool, c.identifiers) = (0, Identifiers::Ephemeral);
    assert_eq!(said(both), wrong("ephemeral_pool"));
    for (peer, good) in [
        (peer(PEER, vec![locator(1)]), true),
        (peer(PEER, vec![locator(1); 255]), true),
        (peer(PEER, vec![locator(1); 256]), false),
        (peer(PEER, vec![]), false),
        (peer(OWN, vec![locator(1)]), false),
        (peer(Nid(0), vec![locator(1)]), false),
        (peer(PEER, vec![locator(1), Locator(0)]), false),
        (
            peer(PEER, vec![locator(1), Config::new(OWN).identity_prefix]),
            false,
        ),
    ] {
        let mut config = Config::new(OWN);
        config.peers = vec![peer];
        assert_eq!(config.check().is_ok(), good, "{:?}", config.peers);
    }
}

// --- our own locators: RFC 6741 section 5 ---

fn states(locators: &LocalLocators) -> Vec<(u64, LocatorState, u16)> {
    let all = locators.all();
    all.map(|l| (l.locator.0 & 0xff, l.state, l.preference)).collect()
}

fn configured(handoff: Handoff, trigger: Trigger) -> Config {
    Config {
        handoff,
        trigger,
        ..Config::new(OWN)
    }
}

#[test]
fn the_newest_locator_is_used_and_what_becomes_of_the_others_is_the_handoff_s_choice() {
    use LocatorState::{Active, Valid, Withdrawn};
    for (handoff, trigger, expected) in [
        (
            Handoff::Soft,
            Trigger::NewLocator,
            [(1, Valid, 20), (2, Active, 10)],
        ),
        (
            Handoff::Hard,
            Trigger::NewLocator,
            [(1, Withdrawn, 20), (2, Active, 10)],
        ),
        (Handoff::Soft, Trigger::Lost, [(1, Active, 10), (2, Valid, 20)]),
        (
            Handoff::Multihomed,
            Trigger::NewLocator,
            [(1, Active, 10), (2, Active, 10)],
        ),
    ] {
        let config = configured(handoff, trigger);
        let mut locators = LocalLocators::default();
        assert!(locators.ready(at(0), own(1), &[OWN], &config));
        assert_eq!(states(&locators), [(1, Active, 10)]);
        assert!(locators.ready(at(1), own(2), &[OWN], &config));
        assert_eq!(states(&locators), expected, "{handoff:?} {trigger:?}");
        assert!(!locators.ready(at(2), own(2), &[OWN], &config), "known");
        // whatever is left is used
        locators.lost(
            expected.iter().find(|e| e.1 == Active).map(|e| own(e.0)).unwrap(),
            &config,
        );
        let left = states(&locators);
        assert_eq!((left.len(), left[0].1, left[0].2), (1, Active, 10));
    }
}

/// Two prefixes of one network, of which the first is not to be used any more.
#[test]
fn a_locator_whose_prefix_is_deprecated_is_left_for_another_and_not_told() {
    use LocatorState::{Active, Aged};
    for trigger in [Trigger::NewLocator, Trigger::Lost] {
        let config = configured(Handoff::Soft, trigger);
        let mut locators = LocalLocators::default();
        let new = LocalAddress {
            interface: own(1).interface,
            ..own(2)
        };
        locators.ready(at(0), own(1), &[OWN], &config);
        locators.deprecated(own(1), &config);
        assert_eq!(states(&locators), [(1, Active, 10)], "there is no other");
        locators.ready(at(1), new, &[OWN], &config);
        assert_eq!(states(&locators), [(1, Aged, 20), (2, Active, 10)]);
        assert_eq!(locators.advertised(OWN).to_vec(), [(locator(2), 10)]);
        // its router is heard, and says the same again
        locators.heard(at(2), own(1).interface, &config);
        assert_eq!(states(&locators), [(1, Aged, 20), (2, Active, 10)]);
    }
}

/// Who decides for itself, as an agent does, says which interface is to be used.
#[test]
fn an_interface_that_the_host_prefers_is_used_until_it_is_lost() {
    use LocatorState::{Active, Valid};
    let config = configured(Handoff::Soft, Trigger::Lost);
    let mut locators = LocalLocators::default();
    for n in [1, 2, 3] {
        locators.ready(at(n), own(n), &[OWN], &config);
    }
    assert_eq!(states(&locators)[0], (1, Active, 10));
    locators.prefer(own(2).interface, &config);
    assert_eq!(
        states(&locators),
        [(1, Valid, 20), (2, Active, 10), (3, Valid, 20)]
    );
    // one that comes later changes nothing
    locators.ready(at(4), own(4), &[OWN], &config);
    assert_eq!(states(&locators)[1], (2, Active, 10));
    // one through whose network nothing got is tried again when it is asked for
    locators.silent(at(5), locator(2), own(2).interface, &config);
    assert_ne!(states(&locators)[1], (2, Active, 10));
    locators.prefer(own(2).interface, &config);
    assert_eq!(states(&locators)[1], (2, Active, 10));
    // an interface without a locator leaves things as they are
    locators.prefer(InterfaceId(9), &config);
    assert_eq!(states(&locators).iter().filter(|l| l.1 == Active).count(), 1);
}

#[test]
fn preferences_are_those_of_the_interfaces() {
    let config = Config {
        preferences: vec![7, 30, 5],
        ..configured(Handoff::Multihomed, Trigger::NewLocator)
    };
    let mut locators = LocalLocators::default();
    for n in 1..=3 {
        locators.ready(at(n), own(n), &[OWN], &config);
    }
    // the third interface has none
    let preferences: Vec<u16> = locators.all().map(|l| l.preference).collect();
    assert_eq!(preferences, [30, 5, 10]);
    // RFC 6743 section 3: the lowest value is the best
    assert_eq!(locators.in_use(OWN).to_vec(), [(locator(2), InterfaceId(2))]);
    let told: Vec<_> = locators.advertised(OWN).to_vec();
    assert_eq!(told, [(locator(2), 5), (locator(3), 10), (locator(1), 30)]);
    assert!(locators.in_use(PEER).is_empty() && locators.advertised(PEER).is_empty());
}

#[test]
fn addresses_with_other_identifiers_or_without_a_routable_prefix_are_no_locators() {
    let config = Config::new(OWN);
    let mut locators = LocalLocators::default();
    let link_local = LocalAddress {
        interface: InterfaceId(3),
        address: Locator(0xfe80 << 48).address(OWN),
    };
    let other = LocalAddress {
        interface: InterfaceId(4),
        address: locator(4).address(PEER),
    };
    for local in [link_local, other, other] {
        assert!(!locators.ready(at(0), local, &[OWN], &config));
    }
    assert!(locators.all().next().is_none());
    assert_eq!(locators.interface_of(other.address), Some(InterfaceId(4)));
    locators.lost(other, &config);
    assert_eq!(locators.interface_of(other.address), None);
    assert_eq!(locators.interface_of(link_local.address), Some(InterfaceId(3)));
}

#[test]
fn a_locator_whose_router_is_silent_ages_and_is_as_new_when_it_is_heard_again() {
    use LocatorState::{Active, Aged, Valid};
    let config = Config {
        locator_timeout: Some(s_(10)),
        ..configured(Handoff::Soft, Trigger::NewLocator)
    };
    let mut locators = LocalLocators::default();
    locators.ready(at(0), own(1), &[OWN], &config);
    locators.ready(at(4), own(2), &[OWN], &config);
    assert_eq!(locators.starves_at(&config), Some(at(10)));
    assert!(!locators.heard(at(6), InterfaceId(1), &config), "it was not away");
    assert_eq!(locators.starves_at(&config), Some(at(14)));
    assert_eq!(
        locators.starve(Instant::ZERO + Duration::from_millis(13_999), &config),
        0
    );
    assert_eq!(locators.starve(at(14), &config), 1);
    assert_eq!(states(&locators), [(1, Active, 10), (2, Aged, 20)]);
    assert_eq!(
        locators.advertised(OWN).to_vec(),
        [(locator(1), 10)],
        "what is aged is not told"
    );
    assert_eq!(locators.starve(at(15), &config), 0, "once");
    assert_eq!(locators.starves_at(&config), Some(at(16)));
    assert!(locators.heard(at(15), InterfaceId(2), &config));
    assert_eq!(states(&locators), [(1, Valid, 20), (2, Active, 10)]);
    // where all are silent the newest is still used
    assert_eq!(locators.starve(at(60), &config), 2);
    assert_eq!(states(&locators), [(1, Aged, 20), (2, Active, 10)]);
    let never = Config::new(OWN);
    assert_eq!(
        (locators.starve(at(90), &never), locators.starves_at(&never)),
        (0, None)
    );
}

#[test]
fn an_identifier_that_is_given_up_takes_its_addresses_with_it() {
    let config = Config::new(OWN);
    let second = Nid(9);
    let mut locators = LocalLocators::default();
    locators.ready(at(0), own(1), &[OWN, second], &config);
    let before = locators.generation();
    let local = LocalAddress {
        interface: InterfaceId(1),
        address: locator(1).address(second),
    };
    assert!(
        !locators.ready(at(0), local, &[OWN, second], &config),
        "the locator is known"
    );
    assert_ne!(
        locators.generation(),
        before,
        "and what goes through it is decided anew"
    );
    assert!(locators.of(local.address).is_some());
    assert_eq!(locators.retire(second), [local]);
    assert!(locators.of(local.address).is_none() && locators.of(own(1).address).is_some());
    assert_eq!(locators.retire(second), []);
}

// --- those of others: RFC 6741 section 5.2, RFC 6743 ---

#[test]
fn the_states_of_a_peer_s_locator_are_those_of_rfc_6741() {
    use LocatorState::{Active, Aged, Expired, Valid, Withdrawn};
    let found = RemoteLocator::found(locator(1));
    let cases = [
        (false, None, None, Valid),
        (false, Some(101), Some(71), Active),
        (false, Some(101), Some(70), Valid),
        (false, Some(100), Some(71), Expired),
        (false, Some(100), Some(70), Aged),
        (true, None, Some(71), Aged),
        (true, None, Some(70), Withdrawn),
        (true, Some(100), None, Withdrawn),
    ];
    for (withdrawn, until, used, expected) in cases {
        let it = RemoteLocator {
            withdrawn,
            until: until.map(at),
            used: used.map(at),
            ..found
        };
        assert_eq!(
            it.state(at(100), s_(30)),
            expected,
            "{withdrawn} {until:?} {used:?}"
        );
    }
}

fn correspondent() -> Correspondent {
    session(SessionKey::new(PEER, 1), false, at(0))
}

/// A session with a peer that this host called or that called, which is used first `now`.
fn session(key: SessionKey, called: bool, now: Instant) -> Correspondent {
    let parties = Parties {
        called,
        identity: Config::new(OWN).identity_prefix.address(key.nid()),
        nid: key.nid(),
        local_nid: OWN,
    };
    Correspondent::new(key, parties, Nonce::Bits32([0; 4]), now)
}

fn entry(n: u64, preference: u16, lifetime_s: u16) -> LocatorEntry {
    LocatorEntry {
        locator: locator(n),
        preference,
        lifetime_s,
    }
}

#[test]
fn the_best_locators_are_those_of_the_lowest_preference_whose_time_is_not_over() {
    let config = Config::new(OWN);
    let mut peer = correspondent();
    assert!(peer.best(at(0)).is_empty());
    let told = [
        entry(1, 10, 5),
        entry(2, 10, 9),
        entry(3, 20, 100),
        entry(4, 1, 0),
    ];
    peer.replace(at(0), &config, &told);
    assert_eq!(
        peer.best(at(4)).to_vec(),
        [locator(1), locator(2)],
        "a lifetime of zero withdraws"
    );
    assert_eq!(peer.best(at(5)).to_vec(), [locator(2)]);
    assert_eq!(peer.best(at(9)).to_vec(), [locator(3)]);
    assert_eq!(
        peer.best(at(100)).to_vec(),
        [locator(1), locator(2)],
        "all are over: as good as any"
    );
}

#[test]
fn a_locator_that_is_no_longer_told_is_known_while_it_was_lately_used() {
    let config = Config::new(OWN);
    let mut peer = correspondent();
    peer.replace(at(0), &config, &[entry(1, 10, 900), entry(2, 10, 900)]);
    assert!(peer.is_unconfirmed(locator(1)));
    peer.was_heard_at(at(10), locator(1));
    assert!(!peer.is_unconfirmed(locator(1)));
    peer.replace(at(20), &config, &[entry(3, 10, 900)]);
    assert_eq!(peer.best(at(20)).to_vec(), [locator(3)]);
    assert!(peer.knows(locator(1), at(39), s_(30)) && !peer.is_at(locator(1)));
    assert!(!peer.knows(locator(1), at(40), s_(30)), "30 s after it was used");
    assert!(!peer.knows(locator(2), at(20), s_(30)), "never used");
    // told again, it is what it was
    peer.replace(at(21), &config, &[entry(1, 10, 900)]);
    assert!(peer.is_at(locator(1)) && !peer.is_unconfirmed(locator(1)));
    // and what a look-up found needs no confirming
    peer.replace_by_found(at(22), &config, &[(locator(5), 7)]);
    assert!(!peer.is_unconfirmed(locator(5)));
    assert_eq!(peer.best(at(1_000_000)).to_vec(), [locator(5)], "for ever");
}

#[test]
fn of_too_many_locators_the_best_are_kept() {
    let config = Config::new(OWN);
    let mut peer = correspondent();
    let told: Vec<_> = (0..200).map(|n| entry(n, 1000 - n as u16, 900)).collect();
    peer.replace(at(0), &config, &told);
    assert_eq!(peer.locators().len(), 64);
    assert_eq!(peer.best(at(0)).to_vec(), [locator(199)]);
    peer.was_heard_at(at(1), locator(199));
    peer.replace(at(2), &config, &told[..64]);
    assert_eq!(peer.locators().len(), 64);
    assert!(
        !peer.knows(locator(199), at(2), s_(30)),
        "what is withdrawn goes first"
    );
}

#[test]
fn an_unconfirmed_locator_gets_so_many_bytes_a_period() {
    let mut peer = correspondent();
    assert!(peer.spend(at(0), 600, 1000, s_(1)));
    assert!(
        !peer.spend(at(0), 401, 1000, s_(1)),
        "and what may not go is not counted"
    );
    assert!(peer.spend(at(0), 400, 1000, s_(1)));
    assert!(!peer.spend(Instant::ZERO + Duration::from_millis(999), 1, 1000, s_(1)));
    assert!(peer.spend(at(1), 1000, 1000, s_(1)));
    assert!(!peer.spend(at(1), 1, 1000, s_(1)));
}

#[test]
fn silence_is_counted_from_the_first_packet_without_answer() {
    let mut peer = correspondent();
    peer.was_sent_to(at(1));
    peer.was_sent_to(at(2));
    let contact = peer.contact();
    assert!(contact.has_unheard(2) && !contact.has_unheard(3));
    assert!(contact.is_silent(at(11), 2, s_(10)) && !contact.is_silent(at(10), 2, s_(10)));
    peer.was_heard(at(3));
    peer.was_sent_to(at(7));
    let contact = peer.contact();
    assert!(contact.has_unheard(1) && !contact.has_unheard(2));
    assert!(contact.is_silent(at(17), 1, s_(10)) && !contact.is_silent(at(16), 1, s_(10)));
    assert_eq!((contact.heard(), contact.used()), (1, at(7)));
    assert!(!contact.carries_on(), "one packet");
    peer.was_heard(at(8));
    assert!(peer.contact().carries_on());
}

// --- flows ---

fn packet(payload: Payload) -> Packet {
    Packet {
        ip: Ipv6Header {
            source: Ipv6Addr::LOCALHOST,
            destination: Ipv6Addr::LOCALHOST,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload,
    }
}

fn tcp(from: u16, to: u16, flags: TcpFlags) -> Packet {
    packet(Payload::Tcp(TcpSegment {
        source_port: from,
        destination_port: to,
        seq: SeqNumber(1),
        ack: SeqNumber(2),
        flags,
        window: 3,
        options: TcpOptions::default(),
        data: Data::Synthetic { offset: 0, len: 0 },
    }))
}

fn raw(next_header: u8, bytes: Vec<u8>) -> Packet {
    packet(Payload::Raw(RawPayload {
        next_header,
        bytes: bytes.into(),
        checksum: ChecksumState::Complete,
        segment_size: None,
    }))
}

/// The header of an IPv6 packet of ours and the beginning of what it carried.
fn quotation(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next_header, 64];
    bytes.extend(Ipv6Addr::LOCALHOST.octets());
    bytes.extend(Ipv6Addr::LOCALHOST.octets());
    bytes.extend(payload);
    bytes
}

const PORTS: [u8; 8] = [0x0f, 0xa0, 0x00, 0x50, 0, 0, 0, 0];

#[test]
fn what_goes_down_and_what_comes_up_are_of_one_flow() {
    let down = Flow::down(&tcp(4000, 80, TcpFlags::ACK));
    assert_eq!(down, Flow::up(&tcp(80, 4000, TcpFlags::ACK)));
    assert_ne!(down, Flow::up(&tcp(4000, 80, TcpFlags::ACK)));
    assert_ne!(down, Flow::down(&tcp(4000, 81, TcpFlags::ACK)));
    assert_ne!(down.hash(), Flow::down(&tcp(80, 4000, TcpFlags::ACK)).hash());
    // of a kernel's transport, which brings bytes
    let mut bytes = PORTS.to_vec();
    bytes.resize(20, 0);
    assert_eq!(Flow::down(&raw(6, bytes.clone())), down);
    assert_ne!(Flow::down(&raw(17, bytes)), down, "another protocol");
    // an error that comes up quotes what went down (RFC 4443 section 3), and the other way round
    let invoking = Bytes::from(quotation(6, &PORTS));
    let error = packet(Payload::Icmpv6(Icmpv6::DestinationUnreachable {
        code: 0,
        invoking: invoking.clone(),
    }));
    assert_eq!(Flow::up(&error), down);
    let mut as_bytes = vec![1, 0, 0, 0, 0, 0, 0, 0];
    as_bytes.extend(&invoking);
    assert_eq!(Flow::up(&raw(58, as_bytes)), down);
    // our own error quotes what came up
    assert_eq!(Flow::down(&error), Flow::up(&tcp(4000, 80, TcpFlags::ACK)));
    // an echo has its identifier at either end
    let echo = |kind| raw(58, vec![kind, 0, 0, 0, 0x12, 0x34, 0, 1]);
    assert_eq!(Flow::down(&echo(128)), Flow::up(&echo(129)));
    assert_ne!(
        Flow::down(&echo(128)),
        Flow::down(&raw(58, vec![128, 0, 0, 0, 0x12, 0x35, 0, 1]))
    );
}

#[test]
fn what_calls_and_what_answers_a_call() {
    let both = |packet: &Packet| (is_call(packet), is_answer(packet));
    let raw_tcp = |flags: u8| {
        let mut bytes = PORTS.to_vec();
        bytes.resize(20, 0);
        bytes[13] = flags;
        raw(6, bytes)
    };
    let raw_sctp = |chunk: u8| {
        let mut bytes = PORTS.to_vec();
        bytes.extend([0, 0, 0, 0, chunk, 0, 0, 4]);
        raw(132, bytes)
    };
    let echo = |kind| raw(58, vec![kind, 0, 0, 0, 0, 1, 0, 1]);
    for (packet, expected) in [
        (tcp(1, 2, TcpFlags::SYN), (true, false)),
        (tcp(1, 2, TcpFlags::SYN | TcpFlags::ACK), (false, true)),
        (tcp(1, 2, TcpFlags::ACK), (false, false)),
        (tcp(1, 2, TcpFlags::RST | TcpFlags::ACK), (false, true)),
        (raw_tcp(0x02), (true, false)),
        (raw_tcp(0x12), (false, true)),
        (raw_tcp(0x10), (false, false)),
        (raw_tcp(0x14), (false, true)),
        (raw(6, vec![0; 13]), (false, false)),
        (raw_sctp(1), (true, false)),
        (raw_sctp(2), (false, true)),
        (raw_sctp(10), (false, false)),
        (raw(132, vec![1; 12]), (false, false)),
        (echo(128), (true, false)),
        (echo(129), (false, true)),
        (echo(135), (false, false)),
        (echo(127), (false, true)),
        (echo(1), (false, true)),
        (raw(17, vec![1; 20]), (false, false)),
    ] {
        assert_eq!(both(&packet), expected, "{:?}", packet.payload);
    }
}

// --- the cache: RFC 6741 section 5 ---

fn flow(port: u16) -> Flow {
    Flow::down(&tcp(port, 80, TcpFlags::ACK))
}

#[test]
fn of_very_many_flows_of_a_session_the_one_unused_longest_is_forgotten() {
    let mut cache = Ilcc::default();
    let key = cache.insert(PEER, |key| session(key, false, at(0)));
    for n in 0..256 {
        cache.claim(key, flow(n), at(u64::from(n)));
    }
    let known = |cache: &Ilcc, n| cache.owner(PEER, flow(n)) == Some(key);
    assert!((0..256).all(|n| known(&cache, n)));
    // the first is used again, so that the second is the oldest
    assert_eq!(cache.use_flow(at(500), key, flow(0)), Ok(()));
    cache.claim(key, flow(256), at(501));
    assert!(known(&cache, 0) && !known(&cache, 1) && known(&cache, 2) && known(&cache, 256));
    // one that is known takes nobody's place
    cache.claim(key, flow(256), at(502));
    assert!(known(&cache, 2));
    // another session of the node has its own flows, and may not take these
    let other = cache.insert(PEER, |key| session(key, false, at(0)));
    assert_eq!(cache.use_flow(at(503), other, flow(2)), Err(key));
    assert_eq!(cache.use_flow(at(503), other, flow(900)), Ok(()));
    assert!(known(&cache, 3), "room is made by who needs it");
}

#[test]
fn a_full_cache_forgets_first_what_is_worth_least() {
    let mut cache = Ilcc::default();
    let out = &mut Outbox::default();
    let mut add = |n: u64, called: bool, since: u64, changes: &mut dyn FnMut(&mut Correspondent)| {
        cache.insert(Nid(10 + n), |key| {
            let mut session = session(key, called, at(since));
            changes(&mut session);
            session
        });
    };
    add(0, true, 2, &mut |c| c.look_up(at(2), out));
    add(1, true, 2, &mut |_| {});
    add(2, false, 2, &mut |c| {
        [(); 2].iter().for_each(|()| c.was_heard(at(2)))
    });
    add(3, false, 2, &mut |c| {
        c.was_heard(at(2));
        c.was_sent_to(at(2));
    });
    add(4, false, 2, &mut |c| c.was_heard(at(2)));
    add(5, false, 1, &mut |_| {});
    assert_eq!(cache.len(), 6);
    let left = |cache: &Ilcc| cache.iter().map(|c| c.nid().0 - 10).collect::<Vec<_>>();
    for expected in [
        &[0, 1, 2, 3, 4][..],
        &[0, 1, 2, 3],
        &[0, 1, 2],
        &[0, 1],
        &[0],
        &[],
    ] {
        assert!(cache.forget_oldest().is_some());
        assert_eq!(left(&cache), expected);
        assert_eq!(cache.len(), expected.len());
    }
    assert!(cache.forget_oldest().is_none());
}

#[test]
fn an_identifier_has_eight_sessions_that_nobody_called() {
    let mut cache = Ilcc::default();
    for n in 0..8 {
        assert!(cache.forget_one_of(PEER).is_none(), "{n} are there");
        cache.insert(PEER, |key| session(key, false, at(n)));
        cache.insert(PEER, |key| session(key, true, at(0)));
    }
    assert!(cache.forget_one_of(OWN).is_none());
    assert!(cache.forget_one_of(PEER).is_some());
    assert_eq!(cache.len(), 15);
    assert!(
        cache.iter().all(|c| c.is_called() || c.contact().used() > at(0)),
        "the oldest"
    );
    assert!(cache.forget_one_of(PEER).is_none());
}

#[test]
fn sessions_that_were_not_used_go_with_their_flows() {
    let mut cache = Ilcc::default();
    let mut keys = Vec::new();
    for n in 1..=3 {
        let key = cache.insert(PEER, |key| session(key, false, at(n)));
        let added = cache.by_key_mut(key).unwrap();
        assert!(added.hold(tcp(1, 2, TcpFlags::SYN), 1));
        cache.claim(key, flow(n as u16), at(n));
        keys.push(key);
    }
    let gone = cache.forget_idle(at(2), Duration::ZERO);
    assert_eq!(gone.iter().map(|f| f.held).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(cache.len(), 1);
    assert_eq!(
        [1, 2, 3].map(|n| cache.owner(PEER, flow(n))),
        [None, None, Some(keys[2])]
    );
    cache.forget_idle(at(3), Duration::ZERO);
    assert_eq!((cache.len(), cache.of_nid(PEER).len()), (0, 0));
}

#[test]
fn a_pool_of_identifiers_is_as_large_as_it_was_set_to() {
    let mut config = Config::new(OWN);
    (config.identifiers, config.ephemeral_pool) = (Identifiers::Ephemeral, 3);
    let shim = Ilnp::new(config.clone(), Box::new(crate::random::Stream::new(5, "pool"))).unwrap();
    let nids = shim.nids();
    assert_eq!(nids.len(), 1 + 3);
    // RFC 6741 section 2.1: local, and no group
    assert!(nids[1..].iter().all(|nid| nid.0 >> 56 & 3 == 0 && nid.0 != 0));
    config.identifiers = Identifiers::Stable;
    let shim = Ilnp::new(config, Box::new(crate::random::Stream::new(5, "pool"))).unwrap();
    assert_eq!(shim.nids().to_vec(), [OWN]);
}

// --- nonces: RFC 6744 ---

#[test]
fn a_nonce_goes_behind_hop_by_hop_options_and_is_taken_out_without_a_trace() {
    let mut secrets = crate::random::Stream::new(1, "nonce");
    assert!(matches!(nonce::choose(NonceLength::Bits32, &mut secrets), Nonce::Bits32(b) if b != [0; 4]));
    assert!(matches!(nonce::choose(NonceLength::Bits96, &mut secrets), Nonce::Bits96(b) if b != [0; 12]));
    let ours = Nonce::Bits32([1, 2, 3, 4]);
    let plain = tcp(1, 2, TcpFlags::ACK);
    for before in [
        vec![],
        vec![ExtensionHeader::HopByHop(Vec::new())],
        vec![ExtensionHeader::DestinationOptions(vec![
            Ipv6Option::HomeAddress(Ipv6Addr::LOCALHOST),
        ])],
    ] {
        let mut packet = plain.clone();
        packet.extensions.clone_from(&before);
        nonce::insert(&mut packet, ours, PseudoRule::Ipv6);
        assert_eq!(packet.extensions.len(), before.len() + 1);
        let behind = usize::from(matches!(before[..], [ExtensionHeader::HopByHop(_)]));
        assert!(matches!(
            packet.extensions[behind],
            ExtensionHeader::DestinationOptions(_)
        ));
        let mut twice = packet.clone();
        assert_eq!(nonce::take(&mut packet), Taken::One(ours, PseudoRule::Ipv6));
        assert_eq!(packet.extensions, before);
        assert_eq!(nonce::take(&mut packet), Taken::None);
        nonce::insert(&mut twice, ours, PseudoRule::Ipv6);
        assert_eq!(nonce::take(&mut twice), Taken::Several);
        assert_eq!(twice.extensions, before);
    }
    let mut config = Config::new(OWN);
    assert_eq!(config.nonce_overhead(), 8);
    config.nonce = NonceLength::Bits96;
    assert_eq!(config.nonce_overhead(), 16);
}

// --- the machine ---

fn shim() -> Ilnp {
    let secrets = Box::new(crate::random::Stream::new(5, "shim"));
    Ilnp::new(Config::new(OWN), secrets).unwrap()
}

#[test]
fn what_is_found_under_another_identifier_is_counted_and_left_out() {
    let mut shim = shim();
    let peer = Config::new(OWN).identity_prefix.address(PEER);
    let found = [
        locator(1).address(PEER),
        locator(2).address(Nid(77)),
        locator(3).address(OWN),
    ];
    shim.handle_found(at(0), peer, &found);
    assert_eq!(shim.counted().bad_look_up, 2);
    // nobody asked
    assert_eq!(shim.correspondents().count(), 0);
}

#[test]
fn what_is_for_the_link_or_for_many_has_no_session() {
    let mut shim = shim();
    let link_local: Ipv6Addr = "fe80::1".parse().unwrap();
    let group: Ipv6Addr = "ff02::fb".parse().unwrap();
    let to = |shim: &Ilnp, destination| {
        let mut it = tcp(1, 2, TcpFlags::SYN);
        (it.ip.source, it.ip.destination) = (shim.identity(), destination);
        it
    };
    for destination in [link_local, group, Ipv6Addr::LOCALHOST] {
        let it = to(&shim, destination);
        assert!(shim.outbound(at(0), it).is_none());
    }
    assert_eq!(shim.counted().no_local_locator, 3);
    shim.handle_address(at(0), &AddressEvent::Ready(own(1)));
    for destination in [link_local, group, Ipv6Addr::LOCALHOST] {
        let it = to(&shim, destination);
        let sent = shim.outbound(at(0), it).expect("a packet");
        assert_eq!(
            (sent.packet.ip.source, sent.packet.ip.destination),
            (own(1).address, destination)
        );
        assert!(sent.packet.extensions.is_empty());
    }
    assert_eq!(shim.correspondents().count(), 0);
    // to a node, there is one
    let peer = to(&shim, Config::new(OWN).identity_prefix.address(PEER));
    assert!(shim.outbound(at(0), peer).is_none(), "it is looked up first");
    assert_eq!(shim.correspondents().count(), 1);
}
