//! Bytes of IPv6 headers, extension headers, UDP and DHCPv6 written down from the RFCs' diagrams.

use super::{address, hex, hex_bytes, pseudo_header};
use crate::dhcpv6::{Dhcpv6Message, Dhcpv6Option, IaAddress, IaNa, MessageType};
use crate::ipv6::{Ipv6Option, OptionAction};
use crate::sctp::{Chunk, SctpPacket};
use crate::udp::UdpDatagram;
use crate::{Data, ExtensionHeader, Ipv6Header, Packet, ParseError, Payload};
use bytes::Bytes;
use smallvec::SmallVec;

fn header() -> Ipv6Header {
    Ipv6Header {
        source: address("2001:db8::1"),
        destination: address("2001:db8:2::2"),
        traffic_class: 0xab,
        hop_limit: 64,
        flow_label: 0xcdef0,
    }
}

/// A packet of bytes with the header above.
fn packet_bytes(next_header: &str, body: &str) -> Vec<u8> {
    let body = hex(body);
    let mut out = hex("6abcdef0");
    out.extend((body.len() as u16).to_be_bytes());
    out.extend(hex(next_header));
    out.extend(hex(
        "40 20010db8000000000000000000000001 20010db8000200000000000000000002",
    ));
    out.extend(body);
    out
}

fn check(packet: &Packet, bytes: &[u8]) {
    assert_eq!(Packet::parse(bytes).as_ref(), Ok(packet));
    assert_eq!(packet.to_vec(), bytes);
    assert_eq!(packet.buffer_len(), bytes.len());
}

#[test]
fn fixed_header() {
    let packet = Packet {
        ip: header(),
        extensions: vec![],
        payload: Payload::NoNextHeader,
    };
    check(&packet, &packet_bytes("3b", ""));
    let mut version_4 = packet.to_vec();
    version_4[0] = 0x4a;
    assert_eq!(
        Packet::parse(&version_4),
        Err(ParseError::BadValue("IPv6 version"))
    );
}

#[test]
fn options_are_padded_to_8_bytes_and_padding_is_not_kept() {
    let alert = Ipv6Option::RouterAlert(0);
    let odd = Ipv6Option::Unknown {
        option_type: 0x1e,
        data: Bytes::from_static(&[7]),
    };
    let none = |extensions| Packet {
        ip: header(),
        extensions,
        payload: Payload::NoNextHeader,
    };
    check(
        &none(vec![ExtensionHeader::HopByHop(vec![alert.clone()])]),
        &packet_bytes("00", "3b00 05020000 0100"),
    );
    // An odd option first: router alert is aligned to 2 bytes (RFC 2711 section 2.1).
    check(
        &none(vec![ExtensionHeader::HopByHop(vec![odd.clone(), alert.clone()])]),
        &packet_bytes("00", "3b01 1e0107 00 05020000 010400000000"),
    );
    check(
        &none(vec![ExtensionHeader::DestinationOptions(vec![])]),
        &packet_bytes("3c", "3b00 010400000000"),
    );
    // Pad1 and a PadN in odd places are passed over.
    let padded = packet_bytes("00", "3b01 00 05020000 00 1e0107 010300ff00");
    assert_eq!(
        Packet::parse(&padded).unwrap().extensions,
        [ExtensionHeader::HopByHop(vec![alert, odd])]
    );
}

#[test]
fn option_action_is_in_the_two_highest_bits() {
    let action = |option_type| {
        Ipv6Option::Unknown {
            option_type,
            data: Bytes::new(),
        }
        .action()
    };
    assert_eq!(action(0x1e), OptionAction::Skip);
    assert_eq!(action(0x5e), OptionAction::Discard);
    assert_eq!(action(0x8b), OptionAction::DiscardAndReport);
    assert_eq!(action(0xde), OptionAction::DiscardAndReportUnlessMulticast);
    assert_eq!(Ipv6Option::RouterAlert(0).action(), OptionAction::Skip);
}

#[test]
fn malformed_options_are_refused() {
    let parse = |body| Packet::parse(&packet_bytes("00", body));
    assert_eq!(
        parse("3b00 1e05 00000000"),
        Err(ParseError::Truncated("hop-by-hop options"))
    );
    assert_eq!(
        parse("3b00 0504 00000000"),
        Err(ParseError::BadLength("router alert option"))
    );
    assert_eq!(
        parse("3b01 1e04 00000000"),
        Err(ParseError::Truncated("hop-by-hop options"))
    );
}

#[test]
fn jumbograms_are_refused() {
    let jumbo = packet_bytes("00", "3b00 c204 00010000");
    assert_eq!(Packet::parse(&jumbo), Err(ParseError::BadValue("jumbogram")));
    let mut zero_length = jumbo;
    zero_length[4..6].fill(0);
    assert_eq!(
        Packet::parse(&zero_length),
        Err(ParseError::BadLength("jumbogram"))
    );
}

#[test]
fn routing_header_of_type_2_leads_the_checksum_to_the_home_address() {
    let home = address("2001:db8:99::9");
    let mut data = vec![0; 4];
    data.extend(home.octets());
    let routing = ExtensionHeader::Routing {
        routing_type: 2,
        segments_left: 1,
        data: data.into(),
    };
    let datagram = UdpDatagram {
        source_port: 1,
        destination_port: 2,
        data: Data::Bytes(Bytes::from_static(b"x")),
    };
    let packet = Packet {
        ip: header(),
        extensions: vec![routing],
        payload: Payload::Udp(datagram),
    };
    assert_eq!(packet.final_destination(), home);
    let bytes = packet.to_vec();
    assert_eq!(
        bytes[40..64],
        hex("11020201 00000000 20010db8009900000000000000000009")
    );
    assert_eq!(Packet::parse(&bytes).as_ref(), Ok(&packet));
    // The receiver swaps the addresses and has no segments left; the checksum still holds (RFC 8200 section 8.1).
    let mut received = bytes;
    received[24..40].copy_from_slice(&home.octets());
    received[48..64].copy_from_slice(&header().destination.octets());
    received[43] = 0;
    assert!(Packet::parse(&received).is_ok());
}

#[test]
fn payload_behind_an_incomplete_fragment_is_kept_as_it_is() {
    let fragment = |offset, more| ExtensionHeader::Fragment {
        offset,
        more,
        identification: 0x0102_0304,
    };
    let packet = |extension, payload| Packet {
        ip: header(),
        extensions: vec![extension],
        payload,
    };
    let unknown = |body| Payload::Unknown {
        next_header: 58,
        bytes: hex_bytes(body),
    };
    // Offset 185 units, the last; and the first of more. 58 is ICMPv6, but this is no whole message.
    check(
        &packet(fragment(185, false), unknown("8000")),
        &packet_bytes("2c", "3a00 05c8 01020304 8000"),
    );
    check(
        &packet(fragment(0, true), unknown("8000000000010001")),
        &packet_bytes("2c", "3a00 0001 01020304 8000000000010001"),
    );
    // Offset zero and nothing more: the message is whole (RFC 6946), so its checksum counts.
    let atomic = packet_bytes("2c", "3a00 0000 01020304 8000000000010001");
    assert_eq!(Packet::parse(&atomic), Err(ParseError::BadChecksum("ICMPv6")));
}

#[test]
fn hop_by_hop_header_that_is_not_first_is_no_extension_header() {
    let packet = Packet::parse(&packet_bytes("3c", "0000 010400000000 3b00 010400000000")).unwrap();
    assert_eq!(packet.extensions, [ExtensionHeader::DestinationOptions(vec![])]);
    assert_eq!(
        packet.payload,
        Payload::Unknown {
            next_header: 0,
            bytes: hex_bytes("3b00 010400000000")
        }
    );
}

/// Sum: addresses 2001+0db8+1 + 2001+0db8+2+2 = 5b77, length 9, protocol 11, ports 0222+0223, length 9, data 6100:
/// 5b77 + 9 + 11 + 445 + 9 + 6100 = c0df, hence 3f20... each in hexadecimal.
#[test]
fn udp_datagram() {
    let datagram = UdpDatagram {
        source_port: 546,
        destination_port: 547,
        data: Data::Bytes(Bytes::from_static(b"a")),
    };
    let bytes = hex_bytes("0222 0223 0009 3f20 61");
    let mut out = Vec::new();
    datagram.emit(&pseudo_header(), &mut out);
    assert_eq!(out, bytes);
    assert_eq!(UdpDatagram::parse(&bytes, &pseudo_header()), Ok(datagram.clone()));
    // Surplus behind the UDP length is not the datagram's.
    assert_eq!(
        UdpDatagram::parse(&hex_bytes("0222 0223 0009 3f20 61 ffff"), &pseudo_header()),
        Ok(datagram)
    );
}

/// RFC 6951 section 5.3: what is SCTP without UDP is the datagram's data, and its CRC32c is that of the SCTP packet.
#[test]
fn sctp_in_udp_is_told_by_the_iana_port_on_either_side() {
    let sctp = SctpPacket {
        source_port: 5000,
        destination_port: 5001,
        verification_tag: 7,
        chunks: SmallVec::from_buf([Chunk::CookieAck]),
    };
    let mut plain = Vec::new();
    sctp.emit(&mut plain);
    for (source_port, destination_port, is_sctp) in [
        (9899, 40_000, true),
        (40_000, 9899, true),
        (40_000, 40_001, false),
    ] {
        let payload = Payload::SctpOverUdp {
            source_port,
            destination_port,
            packet: sctp.clone(),
        };
        let mut bytes = Vec::new();
        payload.emit(&pseudo_header(), &mut bytes);
        assert_eq!(payload.buffer_len(), bytes.len());
        assert_eq!(bytes[8..], plain);
        assert_eq!(pseudo_header().checksum(17, &bytes), 0);
        let parsed = Payload::parse(17, Bytes::from(bytes.clone()), &pseudo_header()).unwrap();
        if is_sctp {
            assert_eq!(parsed, payload);
            assert_eq!(parsed.sctp(), Some(&sctp));
            bytes[20] ^= 1;
            assert!(Payload::parse(17, Bytes::from(bytes), &pseudo_header()).is_err());
        } else {
            assert!(matches!(parsed, Payload::Udp(_)) && parsed.sctp().is_none());
        }
    }
}

#[test]
fn bad_udp_datagrams_are_refused() {
    let parse = |dump| UdpDatagram::parse(&hex_bytes(dump), &pseudo_header());
    // RFC 8200 section 8.1: over IPv6 the checksum is not optional.
    assert_eq!(
        parse("0222 0223 0009 0000 61"),
        Err(ParseError::BadChecksum("UDP"))
    );
    assert_eq!(
        parse("0222 0223 0009 3f21 61"),
        Err(ParseError::BadChecksum("UDP"))
    );
    assert_eq!(parse("0222 0223 0007 3f20 61"), Err(ParseError::BadLength("UDP")));
    assert_eq!(parse("0222 0223 0000 3f20 61"), Err(ParseError::BadLength("UDP")));
    assert_eq!(parse("0222 0223 000a 3f20 61"), Err(ParseError::Truncated("UDP")));
    assert_eq!(parse("0222 0223 0009"), Err(ParseError::Truncated("UDP")));
}

#[test]
fn udp_checksum_that_comes_out_as_zero_is_sent_as_all_ones() {
    // Data that brings the sum of the datagram above, without its own data, to ffff.
    let datagram = |data: [u8; 2]| UdpDatagram {
        source_port: 546,
        destination_port: 547,
        data: Data::Bytes(Bytes::copy_from_slice(&data)),
    };
    let mut out = Vec::new();
    datagram([0, 0]).emit(&pseudo_header(), &mut out);
    let missing = [out[6], out[7]];
    out.clear();
    datagram(missing).emit(&pseudo_header(), &mut out);
    assert_eq!(out[6..8], [0xff, 0xff]);
    assert_eq!(
        UdpDatagram::parse(&Bytes::from(out), &pseudo_header()),
        Ok(datagram(missing))
    );
}

#[test]
fn dhcpv6_solicit_and_reply() {
    let solicit = Dhcpv6Message {
        message_type: MessageType::Solicit,
        transaction_id: 0x10_0874,
        options: vec![
            // DUID-LL (RFC 8415 section 11.4), Ethernet.
            Dhcpv6Option::ClientIdentifier(hex_bytes("0003 0001 020000000001")),
            Dhcpv6Option::RapidCommit,
            Dhcpv6Option::ElapsedTime(100),
            Dhcpv6Option::IaNa(IaNa {
                iaid: 1,
                t1_s: 0,
                t2_s: 0,
                addresses: vec![],
            }),
            // Option request: DNS servers.
            Dhcpv6Option::Unknown {
                code: 6,
                data: hex_bytes("0017"),
            },
        ],
    };
    let bytes = hex_bytes(
        "01 100874
         0001 000a 00030001020000000001
         000e 0000
         0008 0002 0064
         0003 000c 00000001 00000000 00000000
         0006 0002 0017",
    );
    assert_eq!(Dhcpv6Message::parse(&bytes), Ok(solicit.clone()));
    assert_eq!(solicit.to_bytes(), bytes);
    let ia_address = IaAddress {
        address: address("2001:db8:2::1234"),
        preferred_lifetime_s: 3600,
        valid_lifetime_s: 7200,
    };
    let reply = Dhcpv6Message {
        message_type: MessageType::Reply,
        transaction_id: 0x10_0874,
        options: vec![
            Dhcpv6Option::ServerIdentifier(hex_bytes("0003 0001 020000000002")),
            Dhcpv6Option::StatusCode {
                code: 0,
                message: Bytes::from_static(b"ok"),
            },
            Dhcpv6Option::IaNa(IaNa {
                iaid: 1,
                t1_s: 1800,
                t2_s: 2880,
                addresses: vec![ia_address],
            }),
        ],
    };
    let bytes = hex_bytes(
        "07 100874
         0002 000a 00030001020000000002
         000d 0004 0000 6f6b
         0003 0028 00000001 00000708 00000b40
             0005 0018 20010db8000200000000000000001234 00000e10 00001c20",
    );
    assert_eq!(Dhcpv6Message::parse(&bytes), Ok(reply.clone()));
    assert_eq!(reply.to_bytes(), bytes);
}

#[test]
fn bad_dhcpv6_messages_are_refused() {
    let parse = |dump| Dhcpv6Message::parse(&hex_bytes(dump));
    assert_eq!(
        parse("0c 000000"),
        Err(ParseError::BadValue("DHCPv6 message type"))
    );
    assert_eq!(parse("01 0000"), Err(ParseError::Truncated("DHCPv6")));
    assert_eq!(
        parse("01 000001 0001 0004 0000"),
        Err(ParseError::Truncated("DHCPv6"))
    );
    assert_eq!(
        parse("01 000001 000e 0001 00"),
        Err(ParseError::BadLength("DHCPv6 option"))
    );
    assert_eq!(
        parse("01 000001 0008 0001 00"),
        Err(ParseError::Truncated("DHCPv6 option"))
    );
    // A status code in an IA_NA and an option in an address are passed over, but must fit.
    let in_ia = "01 000001 0003 0012 00000001 00000000 00000000 000d 0002 0002";
    assert!(parse(in_ia).is_ok());
    let too_long = "01 000001 0003 0012 00000001 00000000 00000000 000d 0003 0002";
    assert_eq!(parse(too_long), Err(ParseError::Truncated("DHCPv6 option")));
}
