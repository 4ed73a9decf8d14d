//! Bytes of Mobile IPv6 written down from the diagrams of RFC 6275 section 6 and 7, RFC 4285 and RFC 2473.

use super::{address, hex, hex_bytes, pseudo_header};
use crate::icmpv6::nd::NdOption;
use crate::ipv6::{Ipv6Option, OptionAction};
use crate::mobility::{
    BindingAcknowledgement, BindingUpdate, MobilityHeader, MobilityMessage, MobilityOption, Test,
};
use crate::reader::Reader;
use crate::udp::UdpDatagram;
use crate::{Data, ExtensionHeader, Ipv6Header, MAX_TUNNEL_DEPTH, Packet, ParseError, Payload};
use bytes::Bytes;

fn header(source: &str, destination: &str) -> Ipv6Header {
    Ipv6Header {
        source: address(source),
        destination: address(destination),
        traffic_class: 0,
        hop_limit: 64,
        flow_label: 0,
    }
}

/// Emits `mobility` and compares with `dump`, whose checksum field is given as zero.
fn check(mobility: &MobilityHeader, dump: &str) {
    let mut expected = hex(dump);
    let checksum = pseudo_header().checksum(135, &expected);
    expected[4..6].copy_from_slice(&checksum.to_be_bytes());
    let mut out = Vec::new();
    mobility.emit(&pseudo_header(), &mut out);
    assert_eq!(out, expected, "{mobility:?}");
    assert_eq!(mobility.buffer_len(), expected.len());
    let parsed = MobilityHeader::parse(&Bytes::from(expected), &pseudo_header());
    assert_eq!(parsed.as_ref(), Ok(mobility));
}

fn bare(message: MobilityMessage) -> MobilityHeader {
    MobilityHeader::new(message, Vec::new())
}

#[test]
fn messages_without_options() {
    check(
        &bare(MobilityMessage::BindingRefreshRequest),
        "3b00 0000 0000 0000",
    );
    let cookie = 0x0102_0304_0506_0708;
    check(
        &bare(MobilityMessage::HomeTestInit { cookie }),
        "3b01 0100 0000 0000 0102030405060708",
    );
    check(
        &bare(MobilityMessage::CareOfTestInit { cookie }),
        "3b01 0200 0000 0000 0102030405060708",
    );
    let test = Test {
        nonce_index: 0xabcd,
        cookie,
        keygen_token: 0x1112_1314_1516_1718,
    };
    check(
        &bare(MobilityMessage::HomeTest(test)),
        "3b02 0300 0000 abcd 0102030405060708 1112131415161718",
    );
    check(
        &bare(MobilityMessage::CareOfTest(test)),
        "3b02 0400 0000 abcd 0102030405060708 1112131415161718",
    );
    check(
        &bare(MobilityMessage::BindingError {
            status: 1,
            home_address: address("2001:db8::9"),
        }),
        "3b02 0700 0000 0100 20010db8000000000000000000000009",
    );
    check(
        &bare(MobilityMessage::Unknown {
            mh_type: 11,
            data: hex_bytes("0102 030405060708090a"),
        }),
        "3b01 0b00 0000 0102 030405060708090a",
    );
}

/// Worked out in Python from section 6.1.1: the 16-bit words of both addresses, the length (16), the protocol (135) and the
/// header summed up, carries added, complemented.
#[test]
fn checksum_by_another_program() {
    let mut out = Vec::new();
    let cookie = 0x0102_0304_0506_0708;
    bare(MobilityMessage::HomeTestInit { cookie }).emit(&pseudo_header(), &mut out);
    assert_eq!(out, hex("3b01 0100 57dc 0000 0102030405060708"));
}

/// RFC 6275 sections 6.1.7, 6.2.5 and 6.2.7: flags, then options at their alignments, the authenticator last and nothing
/// behind it.
#[test]
fn binding_update_with_nonce_indices_and_authenticator() {
    let update = BindingUpdate {
        sequence: 0x1234,
        acknowledge: true,
        lifetime: 105,
        ..BindingUpdate::default()
    };
    let mut mobility = MobilityHeader::new(
        MobilityMessage::BindingUpdate(update),
        vec![
            MobilityOption::NonceIndices { home: 3, care_of: 4 },
            MobilityOption::blank_authorization(),
        ],
    );
    let covered = "3b03 0500 0000 1234 8000 0069 0404 0003 0004 050c";
    check(&mobility, &format!("{covered} 000000000000000000000000"));
    assert_eq!(mobility.authorized_bytes(), Some(hex(covered)));
    mobility.authenticate(Bytes::from_static(b"authenticat!"));
    assert_eq!(
        mobility.authenticator().map(|a| &a[..]),
        Some(&b"authenticat!"[..])
    );
    assert_eq!(mobility.authorized_bytes(), Some(hex(covered)));
}

/// RFC 6275 section 6.2.5: an Alternate Care-of Address begins at 8n+6; RFC 4285: authentication at 4n+1, a timestamp at
/// 8n+2. What the authentication covers ends with the SPI.
#[test]
fn home_registration_with_authentication_option() {
    let update = BindingUpdate {
        sequence: 1,
        acknowledge: true,
        home_registration: true,
        link_local_compatible: true,
        key_management: false,
        lifetime: 0x0e10,
    };
    let mobility = MobilityHeader::new(
        MobilityMessage::BindingUpdate(update),
        vec![
            MobilityOption::AlternateCareOfAddress(address("2001:db8:2::5")),
            MobilityOption::ReplayProtection(0x0102_0304_0506_0708),
            MobilityOption::blank_authentication(0x100),
        ],
    );
    let covered = "3b07 0500 0000 0001 e000 0e10 0100 0310 20010db8000200000000000000000005 0100
        0a08 0102030405060708 00 0911 01 00000100";
    check(&mobility, &format!("{covered} 000000000000000000000000"));
    assert_eq!(mobility.authenticated_bytes(), Some(hex(covered)));
    assert_eq!(mobility.authorized_bytes(), None);
}

#[test]
fn binding_acknowledgement_with_refresh_advice() {
    let ack = BindingAcknowledgement {
        status: 135,
        key_management: true,
        sequence: 7,
        lifetime: 9,
    };
    check(
        &MobilityHeader::new(
            MobilityMessage::BindingAcknowledgement(ack),
            vec![MobilityOption::BindingRefreshAdvice(0x0203)],
        ),
        "3b01 0600 0000 8780 0007 0009 0202 0203",
    );
}

/// Padding of another implementation: what the codes cover are the bytes as they came.
#[test]
fn authenticated_bytes_are_those_that_came() {
    // a padding with content, where this crate would have none
    let mut bytes = hex("3b03 0500 0000 1234 8000 0069 0104 ffffffff 050c");
    bytes.resize(32, 0x77);
    let covered = bytes[..20].to_vec();
    let checksum = pseudo_header().checksum(135, &bytes);
    bytes[4..6].copy_from_slice(&checksum.to_be_bytes());
    let parsed = MobilityHeader::parse(&Bytes::from(bytes), &pseudo_header()).unwrap();
    assert_eq!(parsed.authorized_bytes(), Some(covered));
}

/// RFC 6275 section 6.2.7: the authenticator is the last option without trailing padding.
#[test]
fn an_authenticator_that_something_follows_authorizes_nothing() {
    let update = MobilityMessage::BindingUpdate(BindingUpdate::default());
    let authorization = MobilityOption::blank_authorization;
    let followed = MobilityHeader::new(
        update.clone(),
        vec![
            authorization(),
            MobilityOption::NonceIndices { home: 0, care_of: 0 },
        ],
    );
    assert_eq!(followed.authenticator(), None);
    assert_eq!(followed.authorized_bytes(), None);
    let short = MobilityOption::BindingAuthorizationData(Bytes::from_static(&[0; 11]));
    assert_eq!(MobilityHeader::new(update, vec![short]).authorized_bytes(), None);
}

#[test]
fn malformed_mobility_headers_are_refused() {
    let parse = |dump: &str| {
        let mut bytes = hex(dump);
        let len = bytes.len().min(8 * (usize::from(bytes[1]) + 1));
        let checksum = pseudo_header().checksum(135, &bytes[..len]);
        bytes[4..6].copy_from_slice(&checksum.to_be_bytes());
        MobilityHeader::parse(&Bytes::from(bytes), &pseudo_header())
    };
    assert_eq!(
        parse("0600 0000 0000 0000"),
        Err(ParseError::BadValue("mobility header's payload protocol"))
    );
    // a Binding Error of 8 bytes (section 9.2: not shorter than its type)
    assert_eq!(
        parse("3b00 0700 0000 0000"),
        Err(ParseError::Truncated("mobility header"))
    );
    // longer than the packet
    assert_eq!(
        parse("3b01 0000 0000 0000"),
        Err(ParseError::Truncated("mobility header"))
    );
    // an option longer than the header
    assert_eq!(
        parse("3b01 0500 0000 0000 0000 0000 0404 0000"),
        Err(ParseError::Truncated("mobility header"))
    );
    // an option of the wrong length is ignored
    let odd = parse("3b01 0600 0000 0000 0000 0000 0401 0100").unwrap();
    assert!(matches!(
        odd.options[..],
        [MobilityOption::Unknown { option_type: 4, .. }]
    ));
    // what follows the header is ignored
    assert_eq!(
        parse("3b00 0000 0000 0000 0102030405060708"),
        Ok(bare(MobilityMessage::BindingRefreshRequest))
    );
    let bad = MobilityHeader::parse(&hex_bytes("3b00 0000 0001 0000"), &pseudo_header());
    assert_eq!(bad, Err(ParseError::BadChecksum("mobility header")));
}

/// RFC 6275 section 6.3: type 201, length 16, alignment 8n+6.
#[test]
fn home_address_option() {
    let option = ExtensionHeader::home_address(address("2001:db8:1::9"));
    let mut out = Vec::new();
    option.emit(59, &mut out);
    assert_eq!(out, hex("3b02 0102 0000 c910 20010db8000100000000000000000009"));
    assert_eq!(option.buffer_len(), 24);
    let bytes = Bytes::from(out);
    let parsed = ExtensionHeader::parse(60, &mut Reader::new(&bytes, "option"));
    assert_eq!(parsed, Ok((option, 59)));
    let short = hex_bytes("3b00 c902 0000 0000");
    assert_eq!(
        ExtensionHeader::parse(60, &mut Reader::new(&short, "option")),
        Err(ParseError::BadLength("home address option"))
    );
    let action = Ipv6Option::HomeAddress(address("::")).action();
    assert_eq!(action, OptionAction::DiscardAndReportUnlessMulticast);
}

/// RFC 6275 section 6.4: length 2, one segment.
#[test]
fn type_2_routing_header() {
    let home = address("2001:db8:1::9");
    let routing = ExtensionHeader::type_2_routing(home);
    let mut out = Vec::new();
    routing.emit(59, &mut out);
    assert_eq!(out, hex("3b02 0201 0000 0000 20010db8000100000000000000000009"));
    assert_eq!(routing.type_2_home_address(), Some(home));
    let used_up = ExtensionHeader::Routing {
        routing_type: 2,
        segments_left: 0,
        data: hex_bytes("00000000 20010db8000100000000000000000009"),
    };
    assert_eq!(used_up.type_2_home_address(), None);
    let two = ExtensionHeader::Routing {
        routing_type: 2,
        segments_left: 1,
        data: Bytes::from(vec![0; 36]),
    };
    assert_eq!(two.type_2_home_address(), None);
}

/// RFC 6275 sections 6.1.1, 11.3.1 and 9.3.2: checksums are those of home addresses, so that taking the option and the
/// routing header off leaves a packet whose checksum is right.
#[test]
fn checksums_are_those_of_the_home_addresses() {
    let datagram = || {
        Payload::Udp(UdpDatagram {
            source_port: 1,
            destination_port: 2,
            data: Data::Bytes(Bytes::from_static(b"data")),
        })
    };
    let plain = Packet {
        ip: header("2001:db8:1::9", "2001:db8:7::7"),
        extensions: vec![],
        payload: datagram(),
    };
    let routed = Packet {
        ip: header("2001:db8:2::5", "2001:db8:3::6"),
        extensions: vec![
            ExtensionHeader::type_2_routing(address("2001:db8:7::7")),
            ExtensionHeader::home_address(address("2001:db8:1::9")),
        ],
        payload: datagram(),
    };
    let (plain, routed_bytes) = (plain.to_vec(), routed.to_vec());
    assert_eq!(plain[40..], routed_bytes[40 + 24 + 24..]);
    assert_eq!(Packet::parse(&routed_bytes).as_ref(), Ok(&routed));
    assert_eq!(routed.home_address(), Some(address("2001:db8:1::9")));
}

/// RFC 2473 section 3: next header 41; as deep as the default encapsulation limit (section 6.7).
#[test]
fn ipv6_in_ipv6() {
    let innermost = Packet {
        ip: header("2001:db8:1::9", "2001:db8:7::7"),
        extensions: vec![],
        payload: Payload::NoNextHeader,
    };
    let wrap = |inner| Packet {
        ip: header("2001:db8:2::5", "2001:db8:1::1"),
        extensions: vec![],
        payload: Payload::Ipv6(Box::new(inner)),
    };
    let once = wrap(innermost.clone());
    let bytes = once.to_vec();
    assert_eq!(bytes[6], 41);
    assert_eq!(bytes[40..], innermost.to_vec());
    assert_eq!(Packet::parse(&bytes).as_ref(), Ok(&once));
    let deep = (0..MAX_TUNNEL_DEPTH).fold(innermost.clone(), |inner, _| wrap(inner));
    assert_eq!(Packet::parse(&deep.to_vec()).as_ref(), Ok(&deep));
    let mut too_deep = Packet::parse(&wrap(deep.clone()).to_vec()).unwrap();
    for _ in 0..MAX_TUNNEL_DEPTH {
        too_deep = match too_deep.payload {
            Payload::Ipv6(inner) => *inner,
            other => panic!("{other:?}"),
        };
    }
    assert!(matches!(
        too_deep.payload,
        Payload::Unknown { next_header: 41, .. }
    ));
    // a broken packet in a sound one is a broken packet
    let mut broken = bytes;
    broken[40] = 0x40;
    assert_eq!(Packet::parse(&broken), Err(ParseError::BadValue("IPv6 version")));
}

/// RFC 6275 section 7.4.
#[test]
fn home_agent_information_option() {
    let option = NdOption::HomeAgentInformation {
        preference: -2,
        lifetime_s: 1800,
    };
    let mut out = Vec::new();
    option.emit(&mut out);
    assert_eq!(out, hex("0801 0000 fffe 0708"));
    let bytes = Bytes::from(out);
    assert_eq!(NdOption::parse(&mut Reader::new(&bytes, "option")), Ok(option));
}
