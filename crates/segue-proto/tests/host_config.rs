//! A host that cannot be made says why in one line.

use segue_proto::app::{self, Kind, Role};
use segue_proto::host::{Addressing, Host, HostConfig, InterfaceConfig, ShimConfig};
use segue_proto::random::Stream;
use segue_proto::{Duration, sctp, sigma};
use segue_wire::icmpv6::nd::LinkLayerAddress;
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
        port: 1,
        applications: Vec::new(),
        sigma: None,
        shim: ShimConfig::None,
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
        role: Role::Listen,
        kind: Kind::Sink,
    };
    let two = HostConfig {
        applications: vec![listen.clone(), listen],
        ..config(&[&[ADDRESS]])
    };
    assert_eq!(
        error(two),
        "host cn: expected at most one application that listens"
    );
    let nobody = app::Config {
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
