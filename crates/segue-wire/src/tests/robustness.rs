//! Nothing that a peer sends can do harm: no panic, and no corruption that a checksum covers goes unnoticed.

use super::pseudo_header;
use crate::checksum::sctp_crc32c;
use crate::dhcpv6::Dhcpv6Message;
use crate::icmpv6::Icmpv6;
use crate::ipv6::{DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ROUTING};
use crate::raw::ChecksumState;
use crate::reader::Reader;
use crate::sctp::{Chunk, Parameter, SctpPacket};
use crate::tcp::TcpSegment;
use crate::udp::UdpDatagram;
use crate::{ExtensionHeader, Packet, Payload, arbitrary};
use bytes::Bytes;
use proptest::prelude::*;

/// Gives `bytes` to every parser; what parses is emitted and must parse to the same value.
fn parse_as_everything(bytes: &Bytes) {
    let pseudo = pseudo_header();
    if let Ok(packet) = Packet::parse_bytes(bytes.clone()) {
        let out = packet.to_vec();
        assert_eq!(out.len(), packet.buffer_len());
        assert_eq!(Packet::parse(&out).as_ref(), Ok(&packet));
        let _ = packet.nd_is_valid();
    }
    parse_raw(bytes);
    if let Ok(chunk) = Chunk::parse(&mut Reader::new(bytes, "chunk")) {
        let mut out = Vec::new();
        chunk.emit(&mut out);
        assert_eq!(out.len(), chunk.buffer_len());
        assert_eq!(
            Chunk::parse(&mut Reader::new(&Bytes::from(out), "chunk")),
            Ok(chunk)
        );
    }
    for header_type in [HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION_OPTIONS] {
        if let Ok((header, next_header)) =
            ExtensionHeader::parse(header_type, &mut Reader::new(bytes, "header"))
        {
            let mut out = Vec::new();
            header.emit(next_header, &mut out);
            assert_eq!(out.len(), header.buffer_len());
            let again = ExtensionHeader::parse(header_type, &mut Reader::new(&Bytes::from(out), "header"));
            assert_eq!(again, Ok((header, next_header)));
        }
    }
    if let Ok(message) = Dhcpv6Message::parse(bytes) {
        assert_eq!(Dhcpv6Message::parse(&message.to_bytes()), Ok(message));
    }
    let _ = Parameter::parse(&mut Reader::new(bytes, "parameter"));
    let _ = SctpPacket::parse(bytes);
    let _ = Icmpv6::parse(bytes, &pseudo);
    let _ = UdpDatagram::parse(bytes, &pseudo);
    let _ = TcpSegment::parse(bytes, &pseudo);
}

/// As a driver under a kernel's transport does; a raw packet that was parsed is emitted as it came.
fn parse_raw(bytes: &Bytes) {
    for checksum in [
        ChecksumState::Complete,
        ChecksumState::Partial,
        ChecksumState::Verified,
    ] {
        for segment_size in [None, Some(0), Some(7)] {
            let Ok(packet) = Packet::parse_raw(bytes, checksum, segment_size) else {
                continue;
            };
            let pseudo = packet.pseudo_header();
            if let Payload::Raw(raw) = &packet.payload {
                let _ = raw.segments(&pseudo);
                let mut raw = raw.clone();
                raw.adjust(&pseudo, &pseudo_header());
                assert_eq!(raw.bytes.len(), packet.payload.buffer_len());
            }
            let out = packet.to_vec();
            assert_eq!(out.len(), packet.buffer_len());
            if checksum == ChecksumState::Complete && segment_size.is_none() {
                let again = Packet::parse_raw(&out.into(), checksum, segment_size);
                assert_eq!(again, Ok(packet));
            }
        }
    }
}

/// Puts right checksums into a packet of bytes without extension headers, so that what lies behind them is reached.
fn repair_checksum(bytes: &mut [u8]) {
    let Some((header, payload)) = bytes.split_first_chunk_mut::<40>() else {
        return;
    };
    let mut pseudo = pseudo_header();
    pseudo.source = <[u8; 16]>::try_from(&header[8..24]).unwrap().into();
    pseudo.destination = <[u8; 16]>::try_from(&header[24..]).unwrap().into();
    match header[6] {
        132 if payload.len() >= 12 => {
            let crc = sctp_crc32c(payload);
            payload[8..12].copy_from_slice(&crc);
        }
        58 if payload.len() >= 4 => {
            payload[2..4].fill(0);
            let sum = pseudo.checksum(58, payload);
            payload[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        6 if payload.len() >= 20 => {
            payload[16..18].fill(0);
            let sum = pseudo.checksum(6, payload);
            payload[16..18].copy_from_slice(&sum.to_be_bytes());
        }
        135 if payload.len() >= 8 => {
            let len = payload.len().min(8 * (usize::from(payload[1]) + 1));
            payload[0] = 59;
            payload[4..6].fill(0);
            let sum = pseudo.checksum(135, &payload[..len]);
            payload[4..6].copy_from_slice(&sum.to_be_bytes());
        }
        17 if payload.len() >= 8 => {
            payload[6..8].fill(0);
            let sum = pseudo.checksum(17, payload).max(1);
            payload[6..8].copy_from_slice(&sum.to_be_bytes());
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_never_panic(bytes in arbitrary::bytes(0..300)) {
        parse_as_everything(&bytes);
    }

    /// As above, from the fixed header on: a well-formed one with a random next header.
    #[test]
    fn random_bytes_behind_a_header_never_panic(
        ip in arbitrary::ipv6_header(),
        next_header in prop::sample::select(vec![0_u8, 6, 17, 41, 43, 44, 58, 60, 132, 135]),
        body in arbitrary::bytes(0..200),
    ) {
        let mut out = Vec::new();
        ip.emit(body.len() as u16, next_header, &mut out);
        out.extend_from_slice(&body);
        repair_checksum(&mut out);
        parse_as_everything(&Bytes::from(out));
    }

    #[test]
    fn mutated_packets_never_panic(
        packet in arbitrary::packet(),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<Option<prop::sample::Index>>(),
        repair: bool,
    ) {
        let mut out = packet.to_vec();
        for (at, value) in mutations {
            let at = at.index(out.len());
            out[at] = value;
        }
        if let Some(cut) = cut {
            out.truncate(cut.index(out.len()));
        }
        if repair {
            repair_checksum(&mut out);
        }
        parse_as_everything(&Bytes::from(out));
    }

    #[test]
    fn mutated_dhcpv6_messages_never_panic(
        message in arbitrary::dhcpv6(),
        at in any::<prop::sample::Index>(),
        value: u8,
    ) {
        let mut out = message.to_bytes().to_vec();
        let at = at.index(out.len());
        out[at] = value;
        parse_as_everything(&Bytes::from(out));
    }
}

proptest! {
    #[test]
    fn every_single_bit_error_behind_the_header_is_caught(packet in arbitrary::checked_packet()) {
        let mut out = packet.to_vec();
        for bit in 8 * 40..8 * out.len() {
            // A UDP length that became shorter takes bytes out of the sum that may make up for the difference.
            if matches!(packet.payload, Payload::Udp(_)) && (8 * 44..8 * 46).contains(&bit) {
                continue;
            }
            // So does a mobility header's length.
            if matches!(packet.payload, Payload::Mobility(_)) && bit / 8 == 41 {
                continue;
            }
            out[bit / 8] ^= 0x80 >> (bit % 8);
            prop_assert!(Packet::parse(&out).is_err(), "bit {} of byte {}", bit % 8, bit / 8);
            out[bit / 8] ^= 0x80 >> (bit % 8);
        }
        prop_assert_eq!(Packet::parse(&out), Ok(packet));
    }
}
