//! tshark judges the packets of Mobile IPv6: it names them, finds nothing malformed, and the checksums of what they carry
//! right (it does not look at those of mobility headers).

use crate::common::{assert_clean, dissections};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::nd::{NdOption, RouterAdvertisement};
use segue_wire::mobility::{
    BindingAcknowledgement, BindingUpdate, MobilityHeader, MobilityMessage as M, MobilityOption as O, Test,
};
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, ExtensionHeader, Ipv6Header, Packet, Payload};
use std::net::Ipv6Addr;

const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 9);
const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 7);

fn packet(source: Ipv6Addr, destination: Ipv6Addr, payload: Payload) -> Packet {
    Packet {
        ip: Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload,
    }
}

fn mobility(message: M, options: Vec<O>) -> Packet {
    packet(
        CARE_OF,
        PEER,
        Payload::Mobility(Box::new(MobilityHeader::new(message, options))),
    )
}

fn datagram(source: Ipv6Addr, destination: Ipv6Addr) -> Packet {
    let datagram = UdpDatagram {
        source_port: 1000,
        destination_port: 2000,
        data: Data::Bytes(vec![1, 2, 3].into()),
    };
    packet(source, destination, Payload::Udp(datagram))
}

/// What tshark says of the packet, beside the packet.
fn cases() -> Vec<(Vec<&'static str>, Packet)> {
    let test = Test {
        nonce_index: 1,
        cookie: 2,
        keygen_token: 3,
    };
    let update = |home_registration| {
        M::BindingUpdate(BindingUpdate {
            sequence: 7,
            acknowledge: true,
            home_registration,
            link_local_compatible: false,
            key_management: false,
            lifetime: 100,
        })
    };
    let acknowledgement = M::BindingAcknowledgement(BindingAcknowledgement {
        sequence: 7,
        lifetime: 100,
        ..BindingAcknowledgement::default()
    });
    let mut with_home_address = mobility(
        update(false),
        vec![O::NonceIndices { home: 3, care_of: 4 }, O::blank_authorization()],
    );
    with_home_address.extensions = vec![ExtensionHeader::home_address(HOME)];
    let mut with_routing_header = mobility(
        acknowledgement,
        vec![
            O::BindingRefreshAdvice(5),
            O::ReplayProtection(6 << 32),
            O::blank_authentication(256),
        ],
    );
    with_routing_header.ip = packet(PEER, CARE_OF, Payload::NoNextHeader).ip;
    with_routing_header.extensions = vec![ExtensionHeader::type_2_routing(HOME)];
    let mut both_ways = datagram(CARE_OF, Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 9));
    both_ways.extensions = vec![
        ExtensionHeader::type_2_routing(PEER),
        ExtensionHeader::home_address(HOME),
    ];
    let tunnel = packet(CARE_OF, PEER, Payload::Ipv6(Box::new(datagram(HOME, PEER))));
    let advertisement = RouterAdvertisement {
        home_agent: true,
        router_lifetime_s: 1800,
        options: vec![
            NdOption::AdvertisementInterval(70),
            NdOption::HomeAgentInformation {
                preference: 1,
                lifetime_s: 1800,
            },
        ],
        ..RouterAdvertisement::default()
    };
    let mut advertisement = packet(
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        Payload::Icmpv6(Icmpv6::RouterAdvertisement(advertisement)),
    );
    advertisement.ip.hop_limit = 255;
    vec![
        (
            vec!["Binding Refresh Request"],
            mobility(M::BindingRefreshRequest, vec![]),
        ),
        (
            vec!["Home Test Init"],
            mobility(M::HomeTestInit { cookie: 1 }, vec![]),
        ),
        (
            vec!["Care-of Test Init"],
            mobility(M::CareOfTestInit { cookie: 1 }, vec![]),
        ),
        (vec!["Home Test"], mobility(M::HomeTest(test), vec![])),
        (vec!["Care-of Test"], mobility(M::CareOfTest(test), vec![])),
        (
            vec![
                "Binding Update",
                "Nonce Indices",
                "Authorization Data",
                "Home Address: 2001:db8:1::9",
            ],
            with_home_address,
        ),
        (
            vec![
                "Binding Update",
                "Home Registration (H) flag: Home Registration",
                "Alternate Care-of Address",
                "Mobile Node Identifier",
            ],
            mobility(
                update(true),
                vec![
                    O::AlternateCareOfAddress(CARE_OF),
                    O::MobileNodeIdentifier {
                        subtype: 1,
                        identifier: b"mn@example.net".as_slice().into(),
                    },
                    O::blank_authentication(256),
                ],
            ),
        ),
        (
            vec!["Binding Acknowledgement", "Refresh", "Type 2", "2001:db8:1::9"],
            with_routing_header,
        ),
        (
            vec!["Binding Error", "2001:db8:1::9"],
            mobility(
                M::BindingError {
                    status: 1,
                    home_address: HOME,
                },
                vec![],
            ),
        ),
        (
            vec!["Type 2", "Home Address: 2001:db8:1::9", "Checksum Status: Good"],
            both_ways,
        ),
        (vec!["Next Header: IPv6 (41)", "Checksum Status: Good"], tunnel),
        (
            vec!["Advertisement Interval", "Home Agent Information"],
            advertisement,
        ),
    ]
}

#[test]
fn tshark_names_the_packets_and_finds_nothing_malformed() {
    let packets = cases().into_iter().map(|(_, packet)| packet);
    let Some(frames) = dissections("mobility", packets, "udp.check_checksum:TRUE") else {
        return;
    };
    assert_eq!(frames.len(), cases().len());
    for (frame, (names, _)) in frames.iter().zip(cases()) {
        for name in &names {
            assert!(frame.contains(name), "{name}:\n{frame}");
        }
        assert_clean(frame, &["Bad", "incorrect"]);
    }
}
