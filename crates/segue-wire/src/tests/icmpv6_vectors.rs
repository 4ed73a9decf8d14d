//! Bytes of ICMPv6 messages written down from the RFCs' diagrams, and what makes neighbour discovery valid.

use super::{address, hex, pseudo_header};
use crate::checksum::PseudoHeader;
use crate::icmpv6::nd::{
    LinkLayerAddress, NdOption, NeighborAdvertisement, NeighborSolicitation, PrefixInformation,
    RouterAdvertisement, RouterSolicitation, is_solicited_node_multicast, solicited_node_multicast,
};
use crate::icmpv6::{Echo, Icmpv6};
use crate::{ExtensionHeader, Ipv6Header, Packet, ParseError, Payload};
use bytes::Bytes;
use core::net::Ipv6Addr;

const MAC: LinkLayerAddress = LinkLayerAddress([2, 0, 0, 0, 0, 1]);

/// Parses a message whose checksum field, zero in the dump, is filled in.
fn parse(dump: &str) -> Result<Icmpv6, ParseError> {
    Icmpv6::parse(&with_checksum(dump), &pseudo_header())
}

fn with_checksum(dump: &str) -> Bytes {
    let mut bytes = hex(dump);
    let sum = pseudo_header().checksum(58, &bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    Bytes::from(bytes)
}

/// The message is what the bytes parse to, and the other way round.
fn check(message: &Icmpv6, dump: &str) {
    assert_eq!(parse(dump).as_ref(), Ok(message));
    let mut out = Vec::new();
    message.emit(&pseudo_header(), &mut out);
    assert_eq!(out, with_checksum(dump));
    assert_eq!(message.buffer_len(), out.len());
}

#[test]
fn errors() {
    let invoking = Bytes::from_static(&[0x60, 0, 0, 0]);
    check(
        &Icmpv6::DestinationUnreachable {
            code: 4,
            invoking: invoking.clone(),
        },
        "01 04 0000 00000000 60000000",
    );
    check(
        &Icmpv6::PacketTooBig {
            mtu: 1400,
            invoking: invoking.clone(),
        },
        "02 00 0000 00000578 60000000",
    );
    check(
        &Icmpv6::TimeExceeded {
            code: 1,
            invoking: invoking.clone(),
        },
        "03 01 0000 00000000 60000000",
    );
    check(
        &Icmpv6::ParameterProblem {
            code: 2,
            pointer: 42,
            invoking,
        },
        "04 02 0000 0000002a 60000000",
    );
    assert!(parse("01 04 0000 00000000").unwrap().is_error());
    assert!(!parse("80 00 0000 00000000").unwrap().is_error());
    assert_eq!(parse("02 00 0000 0000"), Err(ParseError::Truncated("ICMPv6")));
    assert_eq!(parse("01 04 0000"), Err(ParseError::Truncated("ICMPv6")));
}

/// The checksum, too, is worked out by hand: addresses 5b77 + length c + protocol 3a + 8000 + 1234 + 1 + 6869 + 2100
/// = 1775b, folded 775c, hence 88a3.
#[test]
fn echo() {
    let echo = Echo {
        identifier: 0x1234,
        sequence: 1,
        data: Bytes::from_static(b"hi!\0"),
    };
    check(
        &Icmpv6::EchoRequest(echo.clone()),
        "80 00 0000 1234 0001 68692100",
    );
    let mut out = Vec::new();
    Icmpv6::EchoRequest(echo.clone()).emit(&pseudo_header(), &mut out);
    assert_eq!(out, hex("80 00 88a3 1234 0001 68692100"));
    check(&Icmpv6::EchoReply(echo), "81 00 0000 1234 0001 68692100");
    let other = PseudoHeader {
        source: address("2001:db8::2"),
        ..pseudo_header()
    };
    assert_eq!(
        Icmpv6::parse(&Bytes::from(out), &other),
        Err(ParseError::BadChecksum("ICMPv6"))
    );
}

#[test]
fn router_solicitation() {
    check(
        &Icmpv6::RouterSolicitation(RouterSolicitation {
            options: vec![NdOption::SourceLinkLayerAddress(MAC)],
        }),
        "85 00 0000 00000000 01 01 020000000001",
    );
}

#[test]
fn router_advertisement_with_every_option() {
    let prefix = PrefixInformation {
        prefix: address("2001:db8:1::"),
        prefix_length: 64,
        on_link: true,
        autonomous: true,
        router_address: true,
        valid_lifetime_s: 86400,
        preferred_lifetime_s: u32::MAX,
    };
    let advertisement = RouterAdvertisement {
        cur_hop_limit: 64,
        managed: true,
        other: false,
        home_agent: true,
        router_lifetime_s: 1800,
        reachable_time_ms: 30_000,
        retrans_timer_ms: 1000,
        options: vec![
            NdOption::SourceLinkLayerAddress(MAC),
            NdOption::Mtu(1500),
            NdOption::PrefixInformation(prefix),
            NdOption::AdvertisementInterval(50),
            NdOption::Nonce(Bytes::from_static(&[9; 6])),
            // Route information (RFC 4191), not known here.
            NdOption::Unknown {
                option_type: 24,
                data: Bytes::from_static(&[0; 6]),
            },
        ],
    };
    check(
        &Icmpv6::RouterAdvertisement(advertisement),
        "86 00 0000 40 a0 0708 00007530 000003e8
         01 01 020000000001
         05 01 0000 000005dc
         03 04 40 e0 00015180 ffffffff 00000000 20010db8000100000000000000000000
         07 01 0000 00000032
         0e 01 090909090909
         18 01 000000000000",
    );
}

#[test]
fn neighbour_solicitation_and_advertisement() {
    let target = address("fe80::1");
    check(
        &Icmpv6::NeighborSolicitation(NeighborSolicitation {
            target,
            options: vec![],
        }),
        "87 00 0000 00000000 fe800000000000000000000000000001",
    );
    let advertisement = NeighborAdvertisement {
        target,
        router: true,
        solicited: false,
        override_flag: true,
        options: vec![NdOption::TargetLinkLayerAddress(MAC)],
    };
    check(
        &Icmpv6::NeighborAdvertisement(advertisement),
        "88 00 0000 a0000000 fe800000000000000000000000000001 02 01 020000000001",
    );
}

#[test]
fn neighbour_discovery_that_parsing_refuses() {
    // RFC 4861 sections 6.1 and 7.1: code, length, options of length zero.
    assert_eq!(
        parse("85 01 0000 00000000"),
        Err(ParseError::BadValue("neighbour discovery code"))
    );
    assert_eq!(
        parse("85 00 0000 0000"),
        Err(ParseError::Truncated("router solicitation"))
    );
    assert_eq!(
        parse("86 00 0000 40000000 00000000 000000"),
        Err(ParseError::Truncated("router advertisement"))
    );
    assert_eq!(
        parse("87 00 0000 00000000 fe80"),
        Err(ParseError::Truncated("neighbour solicitation"))
    );
    assert_eq!(
        parse("88 00 0000 00000000 fe80"),
        Err(ParseError::Truncated("neighbour advertisement"))
    );
    let zero = parse("85 00 0000 00000000 01 00 020000000001");
    assert_eq!(zero, Err(ParseError::BadLength("neighbour discovery option")));
    let cut = parse("85 00 0000 00000000 01 02 020000000001");
    assert_eq!(cut, Err(ParseError::Truncated("router solicitation")));
}

#[test]
fn known_options_of_a_wrong_length_are_kept_as_unknown() {
    let options = |dump: &str| match parse(dump) {
        Ok(Icmpv6::RouterSolicitation(message)) => message.options,
        other => panic!("{other:?}"),
    };
    let long = options("85 00 0000 00000000 01 02 0200000000010000000000000000");
    assert!(matches!(&long[..], [NdOption::Unknown { option_type: 1, data }] if data.len() == 14));
    // A prefix of 129 bits.
    let prefix = options(
        "85 00 0000 00000000 03 04 81 c0 00000001 00000001 00000000 20010db8000100000000000000000000",
    );
    assert!(matches!(&prefix[..], [NdOption::Unknown { option_type: 3, data }] if data.len() == 30));
}

#[test]
fn unknown_messages_are_kept_whole() {
    // Duplicate address request (RFC 6775).
    let body = Bytes::from_static(&[1, 2, 3, 4, 5]);
    check(
        &Icmpv6::Unknown {
            message_type: 157,
            code: 7,
            body,
        },
        "9d 07 0000 0102030405",
    );
}

#[test]
fn solicited_node_addresses() {
    let solicited = solicited_node_multicast(address("4037::1:800:200e:8c6c"));
    // The example of RFC 4291 section 2.7.1.
    assert_eq!(solicited, address("ff02::1:ff0e:8c6c"));
    assert!(is_solicited_node_multicast(solicited));
    assert!(!is_solicited_node_multicast(address("ff02::1")));
}

mod validity {
    use super::*;

    const UNSPECIFIED: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

    fn packet(source: Ipv6Addr, destination: Ipv6Addr, message: Icmpv6) -> Packet {
        let ip = Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: 255,
            flow_label: 0,
        };
        Packet {
            ip,
            extensions: vec![],
            payload: Payload::Icmpv6(message),
        }
    }

    fn solicitation(target: &str, options: Vec<NdOption>) -> Icmpv6 {
        Icmpv6::NeighborSolicitation(NeighborSolicitation {
            target: address(target),
            options,
        })
    }

    fn advertisement(target: &str, solicited: bool) -> Icmpv6 {
        Icmpv6::NeighborAdvertisement(NeighborAdvertisement {
            target: address(target),
            router: false,
            solicited,
            override_flag: true,
            options: vec![],
        })
    }

    #[test]
    fn a_packet_that_a_router_forwarded_or_that_was_fragmented_is_invalid() {
        let good = packet(
            address("fe80::1"),
            address("fe80::2"),
            solicitation("fe80::2", vec![]),
        );
        assert!(good.nd_is_valid());
        let mut forwarded = good.clone();
        forwarded.ip.hop_limit = 254;
        assert!(!forwarded.nd_is_valid());
        let mut fragmented = good;
        fragmented.extensions.push(ExtensionHeader::Fragment {
            offset: 0,
            more: false,
            identification: 1,
        });
        assert!(!fragmented.nd_is_valid());
    }

    #[test]
    fn router_solicitation_of_the_unspecified_address_has_no_source_link_layer_address() {
        let rs = |source, options| {
            packet(
                source,
                address("ff02::2"),
                Icmpv6::RouterSolicitation(RouterSolicitation { options }),
            )
            .nd_is_valid()
        };
        let source_option = || vec![NdOption::SourceLinkLayerAddress(MAC)];
        assert!(rs(UNSPECIFIED, vec![]));
        assert!(!rs(UNSPECIFIED, source_option()));
        assert!(rs(address("fe80::1"), source_option()));
        // One of an unusual length is one, too.
        assert!(!rs(
            UNSPECIFIED,
            vec![NdOption::Unknown {
                option_type: 1,
                data: Bytes::from_static(&[0; 14])
            }]
        ));
    }

    #[test]
    fn router_advertisement_comes_from_a_link_local_address() {
        let ra = |source| {
            packet(
                source,
                address("ff02::1"),
                Icmpv6::RouterAdvertisement(RouterAdvertisement::default()),
            )
            .nd_is_valid()
        };
        assert!(ra(address("fe80::1")));
        assert!(!ra(address("2001:db8::1")));
        assert!(!ra(UNSPECIFIED));
    }

    #[test]
    fn neighbour_solicitation_for_duplicate_address_detection() {
        let group = address("ff02::1:ff00:2");
        assert!(packet(UNSPECIFIED, group, solicitation("fe80::2", vec![])).nd_is_valid());
        assert!(!packet(UNSPECIFIED, address("fe80::2"), solicitation("fe80::2", vec![])).nd_is_valid());
        let with_option = solicitation("fe80::2", vec![NdOption::SourceLinkLayerAddress(MAC)]);
        assert!(!packet(UNSPECIFIED, group, with_option).nd_is_valid());
        assert!(!packet(address("fe80::1"), group, solicitation("ff02::1", vec![])).nd_is_valid());
    }

    #[test]
    fn neighbour_advertisement_to_a_group_is_not_solicited() {
        let (source, all, one) = (address("fe80::2"), address("ff02::1"), address("fe80::1"));
        assert!(packet(source, all, advertisement("fe80::2", false)).nd_is_valid());
        assert!(!packet(source, all, advertisement("fe80::2", true)).nd_is_valid());
        assert!(packet(source, one, advertisement("fe80::2", true)).nd_is_valid());
        assert!(!packet(source, one, advertisement("ff02::2", true)).nd_is_valid());
    }

    #[test]
    fn other_packets_are_no_neighbour_discovery() {
        let echo = Icmpv6::EchoRequest(Echo {
            identifier: 1,
            sequence: 1,
            data: Bytes::new(),
        });
        assert!(!packet(address("fe80::1"), address("fe80::2"), echo).nd_is_valid());
    }
}
