//! ILNPv6 on the wire: RFC 6743 (locator update), RFC 6744 (nonce), RFC 6741 section 4.2 (checksums). Each dump is as
//! tshark 4 dissects it: "ILNP Nonce", "Locator Update", checksum correct.

use super::{address, hex, hex_bytes};
use crate::checksum::{PseudoHeader, PseudoRule};
use crate::icmpv6::Icmpv6;
use crate::ilnp::{Locator, LocatorEntry, LocatorOperation, LocatorUpdate, Nonce};
use crate::ipv6::{Ipv6Option, OptionAction};
use crate::raw::{ChecksumState, RawPayload};
use crate::reader::Reader;
use crate::udp::UdpDatagram;
use crate::{Data, ExtensionHeader, Ipv6Header, Packet, ParseError, Payload};
use bytes::Bytes;

/// A locator update with a nonce: IPv6 header, destination options (8 bytes), ICMPv6 (32 bytes).
const LOCATOR_UPDATE: &str = "
    60000000 0028 3c 40 20010db8000000010000000000000001 20010db8000000020000000000000002
    3a00 8b04 01020304
    9c00 aa1b 02 01 0000
    20010db800000003 000a 003c
    20010db800000004 0014 003d";

fn locator_update() -> Packet {
    let entry = |locator, preference, lifetime_s| LocatorEntry {
        locator: Locator(locator),
        preference,
        lifetime_s,
    };
    Packet {
        ip: header(),
        extensions: vec![nonce_header(Nonce::Bits32([1, 2, 3, 4]), PseudoRule::Ipv6)],
        payload: Payload::Icmpv6(Icmpv6::LocatorUpdate(LocatorUpdate {
            operation: LocatorOperation::Advertisement,
            locators: vec![
                entry(0x2001_0db8_0000_0003, 10, 60),
                entry(0x2001_0db8_0000_0004, 20, 61),
            ],
        })),
    }
}

fn header() -> Ipv6Header {
    Ipv6Header {
        source: address("2001:db8:0:1::1"),
        destination: address("2001:db8:0:2::2"),
        traffic_class: 0,
        hop_limit: 64,
        flow_label: 0,
    }
}

fn nonce_header(nonce: Nonce, rule: PseudoRule) -> ExtensionHeader {
    ExtensionHeader::DestinationOptions(vec![Ipv6Option::IlnpNonce { nonce, rule }])
}

fn udp(rule: PseudoRule) -> Packet {
    Packet {
        ip: header(),
        extensions: vec![nonce_header(Nonce::Bits96(*b"twelve bytes"), rule)],
        payload: Payload::Udp(UdpDatagram {
            source_port: 1,
            destination_port: 2,
            data: Data::Bytes(Bytes::from_static(b"odd")),
        }),
    }
}

#[test]
fn locator_update_of_rfc_6743_section_2() {
    let bytes = hex(LOCATOR_UPDATE);
    assert_eq!(Packet::parse(&bytes), Ok(locator_update()));
    assert_eq!(locator_update().to_vec(), bytes);
    let mut headers = Vec::new();
    locator_update().emit_headers(&mut headers);
    // the fixed header and the destination options with the nonce
    assert_eq!(headers, bytes[..48]);
    let mut reserved = locator_update().to_vec();
    reserved[54..56].copy_from_slice(&[0xff, 0xff]);
    reserved[50..52].copy_from_slice(&[0xaa, 0x1b]);
    assert_eq!(
        Packet::parse(&reserved),
        Ok(locator_update()),
        "the reserved field is ignored"
    );
}

#[test]
fn malformed_locator_updates_are_refused() {
    let pseudo = locator_update().pseudo_header();
    let parse = |dump: &str| {
        let mut bytes = hex(dump);
        let sum = pseudo.checksum(58, &bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        Icmpv6::parse(&bytes.into(), &pseudo)
    };
    let good = "9c00 0000 01 02 0000 20010db800000003 000a 003c";
    assert!(matches!(
        parse(good),
        Ok(Icmpv6::LocatorUpdate(LocatorUpdate {
            operation: LocatorOperation::Acknowledgement,
            ..
        }))
    ));
    for (dump, error) in [
        (
            "9c00 0000 00 01 0000",
            ParseError::BadValue("locator update without locators"),
        ),
        (
            "9c01 0000 01 01 0000 20010db800000003 000a 003c",
            ParseError::BadValue("locator update code"),
        ),
        (
            "9c00 0000 01 03 0000 20010db800000003 000a 003c",
            ParseError::BadValue("locator update operation"),
        ),
        (
            "9c00 0000 02 01 0000 20010db800000003 000a 003c",
            ParseError::Truncated("locator update"),
        ),
        (
            "9c00 0000 01 01 0000 20010db800000003 000a 003c 00",
            ParseError::BadLength("locator update"),
        ),
        ("9c00 0000 01", ParseError::Truncated("locator update")),
    ] {
        assert_eq!(parse(dump), Err(error), "{dump}");
    }
}

/// RFC 6744 section 2: 4 or 12 bytes; the header that has nothing else takes 8 or 16.
#[test]
fn nonce_option_fills_its_header() {
    for (nonce, dump) in [
        (Nonce::Bits32([0xde, 0xad, 0xbe, 0xef]), "3b00 8b04 deadbeef"),
        (Nonce::Bits96([7; 12]), "3b01 8b0c 070707070707070707070707"),
    ] {
        let header = nonce_header(nonce, PseudoRule::Ipv6);
        let mut out = Vec::new();
        header.emit(59, &mut out);
        assert_eq!(out, hex(dump));
        assert_eq!((header.buffer_len(), nonce.header_len()), (out.len(), out.len()));
    }
    let ExtensionHeader::DestinationOptions(options) = nonce_header(Nonce::Bits32([0; 4]), PseudoRule::Ipv6)
    else {
        unreachable!()
    };
    assert_eq!(options[0].action(), OptionAction::DiscardAndReport);
}

#[test]
fn nonce_of_another_length_is_an_unknown_option() {
    for (len, dump) in [
        (0_u8, "3b00 8b00 0000 0000"),
        (3, "3b00 8b03 010203 00"),
        (8, "3b01 8b08 0102030405060708 0102 0000"),
    ] {
        let bytes = hex_bytes(dump);
        let (header, _) = ExtensionHeader::parse(60, &mut Reader::new(&bytes, "header")).expect("a header");
        let ExtensionHeader::DestinationOptions(options) = header else {
            unreachable!()
        };
        assert!(
            matches!(&options[..], [Ipv6Option::Unknown { option_type: 0x8b, data }] if data.len() == usize::from(len)),
            "{options:?}"
        );
    }
}

/// RFC 6741 section 4.2, and the 2026 draft: both parse, each is noted, each is emitted as it came.
#[test]
fn transport_checksums_of_both_rules_are_verified_and_kept() {
    for rule in [PseudoRule::Ipv6, PseudoRule::Identifiers] {
        let packet = udp(rule);
        let bytes = packet.to_vec();
        let pseudo = match rule {
            PseudoRule::Ipv6 => PseudoHeader {
                source: header().source,
                destination: header().destination,
            },
            PseudoRule::Identifiers => PseudoHeader {
                source: address("::1"),
                destination: address("::2"),
            },
        };
        assert_eq!(pseudo.checksum(17, &bytes[56..]), 0, "{rule:?}");
        let parsed = Packet::parse(&bytes).expect("a packet");
        assert_eq!(parsed, packet);
        assert_eq!(parsed.ilnp_nonce().map(|n| n.1), Some(rule));
        assert_eq!(parsed.to_vec(), bytes);
        let mut wrong = bytes;
        wrong[58] ^= 1;
        assert_eq!(Packet::parse(&wrong), Err(ParseError::BadChecksum("UDP")));
    }
}

#[test]
fn without_a_nonce_only_the_rule_of_ipv6_holds() {
    let mut bytes = udp(PseudoRule::Identifiers).to_vec();
    bytes.drain(40..56);
    bytes[4..6].copy_from_slice(&11_u16.to_be_bytes());
    bytes[6] = 17;
    assert_eq!(Packet::parse(&bytes), Err(ParseError::BadChecksum("UDP")));
}

/// RFC 6741 section 4.3: ICMPv6 is always under IPv6's.
#[test]
fn icmpv6_does_not_follow_the_rule_of_identifiers() {
    let mut packet = locator_update();
    packet.extensions = vec![nonce_header(Nonce::Bits32([1, 2, 3, 4]), PseudoRule::Identifiers)];
    assert_eq!(packet.to_vec(), hex(LOCATOR_UPDATE));
}

/// A locator that changes on the way leaves a checksum over identifiers alone, and an IPv6 one wrong.
#[test]
fn rewritten_locators_are_no_matter_to_checksums_over_identifiers() {
    for (rule, right) in [(PseudoRule::Ipv6, false), (PseudoRule::Identifiers, true)] {
        let mut bytes = udp(rule).to_vec();
        bytes[8..16].copy_from_slice(&hex("20010db800000077"));
        assert_eq!(Packet::parse(&bytes).is_ok(), right, "{rule:?}");
    }
}

fn raw(rule: PseudoRule, checksum: ChecksumState) -> Packet {
    Packet::parse_raw(&Bytes::from(udp(rule).to_vec()), checksum, None).expect("a packet")
}

#[test]
fn raw_packets_note_the_rule_and_keep_their_bytes() {
    for rule in [PseudoRule::Ipv6, PseudoRule::Identifiers] {
        let packet = raw(rule, ChecksumState::Complete);
        assert_eq!(packet.ilnp_nonce().map(|n| n.1), Some(rule));
        assert_eq!(packet.to_vec(), udp(rule).to_vec());
        let mut wrong = udp(rule).to_vec();
        wrong[58] ^= 1;
        assert_eq!(
            Packet::parse_raw(&wrong.into(), ChecksumState::Complete, None),
            Err(ParseError::BadChecksum("transport"))
        );
    }
    // ICMPv6 is what a shim reads
    let update = Packet::parse_raw(&hex_bytes(LOCATOR_UPDATE), ChecksumState::Complete, None);
    assert_eq!(update, Ok(locator_update()));
}

#[test]
fn raw_checksums_are_adjusted_in_every_state() {
    let old = udp(PseudoRule::Ipv6).pseudo_header();
    let new = PseudoHeader {
        source: address("fd00::9"),
        destination: address("2001:db8:99::2"),
    };
    for to in [new, new.under(PseudoRule::Identifiers)] {
        for state in [
            ChecksumState::Complete,
            ChecksumState::Verified,
            ChecksumState::Partial,
        ] {
            let Payload::Raw(mut raw) = raw(PseudoRule::Ipv6, ChecksumState::Complete).payload else {
                unreachable!()
            };
            let mut expected = raw.bytes.to_vec();
            expected[6..8].fill(0);
            let sum = to.checksum(17, &expected);
            expected[6..8].copy_from_slice(&sum.to_be_bytes());
            if state == ChecksumState::Partial {
                let mut partial = raw.bytes.to_vec();
                let sum = old.partial_sum(17, partial.len());
                partial[6..8].copy_from_slice(&sum.to_be_bytes());
                raw.bytes = partial.into();
            }
            raw.checksum = state;
            raw.adjust(&old, &to);
            assert_eq!(raw.rule(&to), Some(PseudoRule::Ipv6), "{state:?}");
            raw.complete(&to);
            assert_eq!(raw.bytes, expected, "{state:?}");
        }
    }
}

#[test]
fn udp_without_a_checksum_stays_without_one() {
    let mut raw = RawPayload {
        next_header: 17,
        bytes: hex_bytes("0001 0002 0008 0000"),
        checksum: ChecksumState::Complete,
        segment_size: None,
    };
    let before = raw.clone();
    let old = udp(PseudoRule::Ipv6).pseudo_header();
    raw.adjust(&old, &old.under(PseudoRule::Identifiers));
    assert_eq!(raw, before);
    assert_eq!(raw.rule(&old), None);
}

/// A super-packet of three segments: sequence numbers, PSH and FIN on the last, CWR on the first, right checksums.
#[test]
fn super_packets_are_cut_into_segments() {
    let mut bytes = hex("0001 0050 fffffffc 00000001 5099 0100 0000 0000");
    bytes.extend(0..250_u8);
    let pseudo = udp(PseudoRule::Ipv6).pseudo_header();
    let raw = RawPayload {
        next_header: 6,
        bytes: bytes.into(),
        checksum: ChecksumState::Partial,
        segment_size: Some(100),
    };
    let segments = raw.segments(&pseudo).expect("segments");
    let told: Vec<_> = segments
        .iter()
        .map(|s| (s.bytes[4..8].to_vec(), s.bytes[13], s.bytes.len() - 20))
        .collect();
    assert_eq!(
        told,
        [
            (hex("fffffffc"), 0x90, 100),
            (hex("00000060"), 0x10, 100),
            (hex("000000c4"), 0x19, 50)
        ]
    );
    let mut data = Vec::new();
    for segment in &segments {
        assert_eq!(pseudo.checksum(6, &segment.bytes), 0);
        data.extend_from_slice(&segment.bytes[20..]);
    }
    assert!(data.iter().copied().eq(0..250));
    let cut = RawPayload {
        bytes: raw.bytes.slice(..19),
        ..raw
    };
    assert_eq!(cut.segments(&pseudo), Err(ParseError::Truncated("super-packet")));
}
