//! ICMPv6 errors: what is taken, from whom, and what comes of it (RFC 9260 section 10).

use crate::common::*;
use segue_proto::sctp::{Config, Event, PathState, Unreachable};
use segue_proto::{Duration, Instant};
use segue_wire::Packet;
use segue_wire::icmpv6::Icmpv6;

/// The last packet that A sent, for which `which` holds.
fn last(net: &Net, which: impl Fn(&Departure) -> bool) -> Packet {
    net.log
        .iter()
        .rev()
        .find(|d| d.from == A && which(d))
        .expect("a packet")
        .packet
        .clone()
}

/// A network on which A has just sent data; the log holds it.
fn sending(addresses: [u16; 2], config: Config) -> Net {
    let mut net = Net::established(config, addresses);
    net.send(A, 0, synthetic(0, 100));
    net
}

fn no_route(about: &Packet) -> Icmpv6 {
    Icmpv6::DestinationUnreachable {
        code: 0,
        invoking: Icmpv6::quote(about),
    }
}

fn protocol_unreachable(about: &Packet) -> Icmpv6 {
    Icmpv6::ParameterProblem {
        code: 1,
        pointer: 6,
        invoking: Icmpv6::quote(about),
    }
}

fn give(net: &mut Net, error: &Icmpv6) {
    let now = net.now;
    net.ends[A].handle_icmp(now, error);
    net.drain();
}

/// (taken, ignored, invalid)
fn counted(net: &Net) -> (u64, u64, u64) {
    let icmp = net.ends[A].counters().icmp;
    (icmp.taken, icmp.ignored, icmp.invalid)
}

#[test]
fn an_error_must_quote_what_only_those_on_the_path_know() {
    // ICMP5 and ICMP6
    let mut net = sending([1, 1], Config::default());
    let genuine = last(&net, |d| d.data().next().is_some());
    let sctp = |change: &dyn Fn(&mut segue_wire::sctp::SctpPacket)| {
        let mut packet = genuine.clone();
        let segue_wire::Payload::Sctp(sctp) = &mut packet.payload else {
            unreachable!()
        };
        change(sctp);
        packet
    };
    let mut elsewhere = genuine.clone();
    elsewhere.ip.destination = address(B, 9);
    for forged in [
        sctp(&|s| s.verification_tag ^= 1),
        // the INIT exception needs the initiate tag
        sctp(&|s| s.verification_tag = 0),
        sctp(&|s| s.source_port += 1),
        sctp(&|s| s.destination_port += 1),
        elsewhere,
    ] {
        give(&mut net, &protocol_unreachable(&forged));
    }
    let mut short = genuine.to_vec();
    short.truncate(40 + 7);
    give(
        &mut net,
        &Icmpv6::ParameterProblem {
            code: 1,
            pointer: 6,
            invoking: short.into(),
        },
    );
    assert_eq!(counted(&net), (0, 0, 6));
    assert!(net.association(A).is_established());
    // eight bytes behind the IPv6 header are enough
    let mut enough = genuine.to_vec();
    enough.truncate(40 + 8);
    give(
        &mut net,
        &Icmpv6::ParameterProblem {
            code: 1,
            pointer: 6,
            invoking: enough.into(),
        },
    );
    assert_eq!(counted(&net), (1, 0, 6));
    assert!(net.has_event(A, &Event::Aborted { causes: vec![] }));
}

#[test]
fn a_host_without_sctp_ends_the_attempt_by_an_error_about_the_init() {
    // ICMP8
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    net.rule = Box::new(|_| vec![]);
    net.connect();
    let init = last(&net, |d| names(d.sctp()) == ["INIT"]);
    let mut other = init.clone();
    if let segue_wire::Payload::Sctp(sctp) = &mut other.payload
        && let segue_wire::sctp::Chunk::Init(init) = &mut sctp.chunks[0]
    {
        init.initiate_tag ^= 1;
    }
    give(&mut net, &protocol_unreachable(&other));
    assert_eq!(counted(&net), (0, 0, 1));
    give(&mut net, &protocol_unreachable(&init));
    assert!(net.has_event(A, &Event::Aborted { causes: vec![] }));
    assert_eq!(net.ends[A].poll_timeout(), None);
}

#[test]
fn an_error_about_the_init_comes_too_late_once_the_peer_has_answered() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    net.connect();
    let init = last(&net, |d| names(d.sctp()) == ["INIT"]);
    net.run_for(ms(500));
    give(&mut net, &protocol_unreachable(&init));
    assert_eq!(counted(&net), (0, 1, 0));
    assert!(net.association(A).is_established());
}

#[test]
fn port_unreachable_time_exceeded_and_other_parameter_problems_are_ignored() {
    // ICMP2 to ICMP4
    let mut net = sending([1, 1], Config::default());
    let genuine = last(&net, |d| d.data().next().is_some());
    let invoking = Icmpv6::quote(&genuine);
    for error in [
        Icmpv6::DestinationUnreachable {
            code: 4,
            invoking: invoking.clone(),
        },
        Icmpv6::TimeExceeded {
            code: 0,
            invoking: invoking.clone(),
        },
        Icmpv6::ParameterProblem {
            code: 0,
            pointer: 4,
            invoking,
        },
    ] {
        give(&mut net, &error);
    }
    assert_eq!(counted(&net), (0, 3, 0));
    assert_eq!(net.association(A).paths().next().expect("path").error_count, 0);
}

#[test]
fn unreachable_counts_once_per_rto_against_the_path_and_never_against_the_association() {
    // ICMP9
    let config = Config {
        path_max_retrans: 2,
        association_max_retrans: 2,
        hb_interval: None,
        ..Config::default()
    };
    let mut net = sending([1, 2], config);
    net.run_for(Duration::from_secs(5));
    net.rule = Box::new(|_| vec![]);
    net.send(A, 0, synthetic(100, 100));
    let about = last(&net, |d| d.data().next().is_some());
    let destination = about.ip.destination;
    net.events[A].clear();
    let errors = |net: &Net| {
        net.association(A)
            .paths()
            .find(|p| p.destination == destination)
            .map(|p| (p.error_count, p.state))
            .expect("path")
    };
    for _ in 0..10 {
        give(&mut net, &no_route(&about));
    }
    assert_eq!(errors(&net), (1, PathState::Active));
    assert_eq!(
        net.events[A].iter().map(|e| e.1.clone()).collect::<Vec<_>>(),
        [Event::Unreachable {
            address: destination,
            reason: Unreachable::NoRoute
        }]
    );
    // reports go on while the clock does, but nothing is sent
    let start = net.now;
    for second in 1..=3u64 {
        net.now = start + Duration::from_secs(2 * second);
        let now: Instant = net.now;
        net.ends[A].handle_icmp(now, &no_route(&about));
    }
    assert_eq!(errors(&net), (4, PathState::Inactive));
    assert!(!net.association(A).is_closed());
}
