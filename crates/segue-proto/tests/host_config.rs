//! A host that cannot be made says why in one line; one that can obeys the extension headers of what arrives.

use segue_proto::app::{self, Kind, Role};
use segue_proto::host::{Addressing, Host, HostConfig, InterfaceConfig, LocationConfig, ShimConfig};
use segue_proto::random::Stream;
use segue_proto::{Duration, Instant, InterfaceId, sctp, sigma};
use segue_wire::icmpv6::nd::LinkLayerAddress;
use segue_wire::icmpv6::{Echo, Icmpv6};
use segue_wire::ipv6::Ipv6Option;
use segue_wire::{ExtensionHeader, Ipv6Header, Packet, Payload};
use std::net::Ipv6Addr;

const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);

fn config(addresses: &[&[Ipv6Addr]]) -> HostConfig {
    HostConfig {
        name: "cn".to_owned(),
        interfaces: addresses
            .iter()
            .map(|a| InterfaceConfig {
                link_layer: LinkLayerAddress([2, 0, 0, 0, 0, 1]),
                addressing: Addressing::Static(a.to_vec()),
            })
            .collect(),
        sctp: sctp::Config::default(),
        tcp: segue_proto::tcp::Config::default(),
        port: 1,
        applications: Vec::new(),
        sigma: None,
        shim: ShimConfig::None,
        location: LocationConfig::default(),
    }
}

fn error(config: HostConfig) -> String {
    match Host::new(config, 1, Box::new(Stream::new(1, "secrets"))) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_host_needs_an_interface_with_an_address_that_can_be_one() {
    assert_eq!(error(config(&[&[ADDRESS]])), "accepted");
    assert_eq!(error(config(&[])), "host cn: expected at least one interface");
    assert_eq!(
        error(config(&[&[ADDRESS], &[]])),
        "host cn: interface 1 has no address: expected an address or a method to acquire one"
    );
    for bad in [
        Ipv6Addr::UNSPECIFIED,
        Ipv6Addr::LOCALHOST,
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
    ] {
        let message =
            format!("host cn: {bad} cannot be an interface's address: expected a unicast address, used once");
        assert_eq!(error(config(&[&[bad]])), message);
    }
    assert!(error(config(&[&[ADDRESS], &[ADDRESS]])).contains("used once"));
}

#[test]
fn applications_and_sigma_are_checked_too() {
    let listen = app::Config {
        transport: app::Transport::Sctp,
        role: Role::Listen,
        kind: Kind::Sink,
    };
    let two = HostConfig {
        applications: vec![listen.clone(), listen],
        ..config(&[&[ADDRESS]])
    };
    assert_eq!(
        error(two),
        "host cn: expected at most one application that listens to a transport"
    );
    let nobody = app::Config {
        transport: app::Transport::Sctp,
        role: Role::Connect {
            peer: Vec::new(),
            port: 1,
            start: Duration::ZERO,
        },
        kind: Kind::Sink,
    };
    let nobody = HostConfig {
        applications: vec![nobody],
        ..config(&[&[ADDRESS]])
    };
    assert_eq!(error(nobody), "host cn: peer: expected at least one address");
    let sigma = sigma::Config {
        fraction: -0.5,
        ..sigma::Config::default()
    };
    let fraction = HostConfig {
        sigma: Some(sigma),
        ..config(&[&[ADDRESS]])
    };
    assert_eq!(
        error(fraction),
        "host cn: fraction = -0.5: expected a part of the overlap from 0 to 1"
    );
}

#[test]
fn an_application_that_cannot_connect_waits_for_an_event_and_not_for_a_time() {
    // RFC 9260 section 1.3: no two associations between the same transport addresses at a time
    let connect = app::Config {
        transport: app::Transport::Sctp,
        role: Role::Connect {
            peer: vec![Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1)],
            port: 1,
            start: Duration::from_secs(1),
        },
        kind: Kind::Sink,
    };
    let two = HostConfig {
        applications: vec![connect.clone(), connect],
        ..config(&[&[ADDRESS]])
    };
    let mut host = Host::new(two, 1, Box::new(Stream::new(1, "secrets"))).expect("host");
    let start = Instant::ZERO + Duration::from_secs(1);
    assert_eq!(host.poll_timeout(), Some(start));
    host.handle_timeout(start);
    let mut inits = 0;
    while host.poll_transmit(start).is_some() {
        inits += 1;
    }
    assert_eq!(inits, 1);
    // T1-init, and nothing that is due for ever
    assert!(host.poll_timeout() > Some(start), "{:?}", host.poll_timeout());
}

#[test]
fn packets_whose_extension_headers_say_so_are_discarded() {
    // RFC 8200 sections 4.2 and 4.4
    let mut host = Host::new(config(&[&[ADDRESS]]), 1, Box::new(Stream::new(1, "secrets"))).expect("host");
    let mut is_answered = |extension: ExtensionHeader| {
        let echo = Echo {
            identifier: 1,
            sequence: 2,
            data: vec![3].into(),
        };
        let packet = Packet {
            ip: Ipv6Header {
                source: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1),
                destination: ADDRESS,
                traffic_class: 0,
                hop_limit: 64,
                flow_label: 0,
            },
            extensions: vec![extension],
            payload: Payload::Icmpv6(Icmpv6::EchoRequest(echo)),
        };
        host.handle_packet(Instant::ZERO, InterfaceId(0), packet);
        let transmit = host.poll_transmit(Instant::ZERO)?;
        match transmit.packet.payload {
            Payload::Icmpv6(Icmpv6::EchoReply(_)) => Some(None),
            Payload::Icmpv6(Icmpv6::ParameterProblem { code: 2, pointer, .. }) => Some(Some(pointer)),
            other => panic!("{other:?}"),
        }
    };
    let option = |option_type| {
        vec![Ipv6Option::Unknown {
            option_type,
            data: vec![0; 4].into(),
        }]
    };
    let routing = |segments_left| ExtensionHeader::Routing {
        routing_type: 0,
        segments_left,
        data: vec![0; 20].into(),
    };
    let router_alert = ExtensionHeader::HopByHop(vec![Ipv6Option::RouterAlert(0)]);
    let behind_padding = [option(0x1e), option(0x8b)].concat();
    for (extension, answer) in [
        (ExtensionHeader::DestinationOptions(option(0x1e)), Some(None)),
        (router_alert, Some(None)),
        (routing(0), Some(None)),
        (ExtensionHeader::DestinationOptions(option(0x5e)), None),
        (ExtensionHeader::DestinationOptions(option(0x9e)), Some(Some(42))),
        (
            ExtensionHeader::DestinationOptions(behind_padding),
            Some(Some(48)),
        ),
        (ExtensionHeader::HopByHop(option(0xde)), Some(Some(42))),
        (routing(1), None),
    ] {
        assert_eq!(is_answered(extension.clone()), answer, "{extension:?}");
    }
    assert_eq!(host.counters().not_understood, 5);
}
