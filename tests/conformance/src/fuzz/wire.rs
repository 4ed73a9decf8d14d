//! Parsers of `segue-wire`: what parses is emitted, is as long as foretold, and parses to the same value.

use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::checksum::{PseudoHeader, sctp_crc32c};
use segue_wire::dhcpv6::Dhcpv6Message;
use segue_wire::icmpv6::{Icmpv6, NEXT_HEADER};
use segue_wire::mobility::{self, MobilityHeader};
use segue_wire::reader::Reader;
use segue_wire::sctp::{Chunk, SctpPacket};
use segue_wire::tcp::{self, TcpSegment};
use segue_wire::{ExtensionHeader, Ipv6Header, Packet};

/// Whole packets.
///
/// # Panics
/// If the packet does not survive the round trip.
pub fn packet(bytes: &[u8]) {
    let Ok(packet) = Packet::parse(bytes) else { return };
    let _ = packet.nd_is_valid();
    let out = packet.to_vec();
    assert_eq!(out.len(), packet.buffer_len());
    // Padding that the sender left off may make the packet too long, but only a packet of nearly that size.
    if bytes.len() < 60_000 {
        assert_eq!(Packet::parse(&out), Ok(packet));
    }
}

/// SCTP packets. The CRC32c is put right first, or hardly anything would get past it.
///
/// # Panics
/// If the packet does not survive the round trip.
pub fn sctp(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= 12 {
        let crc = sctp_crc32c(&bytes);
        bytes[8..12].copy_from_slice(&crc);
    }
    let Ok(packet) = SctpPacket::parse(&Bytes::from(bytes)) else {
        return;
    };
    let _ = packet.bundling_is_valid();
    for (i, chunk) in packet.chunks.iter().enumerate() {
        if let Chunk::Auth(auth) = chunk {
            let covered = auth.authenticated_bytes(&packet.chunks[i + 1..]);
            assert!(covered.len() >= 8 + auth.hmac.len());
        }
    }
    let mut out = Vec::new();
    packet.emit(&mut out);
    assert_eq!(out.len(), packet.buffer_len());
    assert_eq!(SctpPacket::parse(&Bytes::from(out)), Ok(packet));
}

/// ICMPv6 messages. The checksum is put right first, or hardly anything would get past it.
///
/// # Panics
/// If the message does not survive the round trip.
pub fn icmpv6(bytes: &[u8]) {
    let pseudo_header = PseudoHeader {
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::LOCALHOST,
    };
    let mut bytes = bytes.to_vec();
    if bytes.len() >= 4 {
        bytes[2..4].fill(0);
        let checksum = pseudo_header.checksum(NEXT_HEADER, &bytes);
        bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
    let Ok(message) = Icmpv6::parse(&Bytes::from(bytes), &pseudo_header) else {
        return;
    };
    let mut out = Vec::new();
    message.emit(&pseudo_header, &mut out);
    assert_eq!(out.len(), message.buffer_len());
    assert_eq!(Icmpv6::parse(&Bytes::from(out), &pseudo_header), Ok(message));
}

/// Mobility headers. Payload protocol and checksum are put right first, or hardly anything would get past them.
///
/// # Panics
/// If the header does not survive the round trip, or its codes do not cover what they should.
pub fn mobility(bytes: &[u8]) {
    let pseudo_header = PseudoHeader {
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::LOCALHOST,
    };
    let mut bytes = bytes.to_vec();
    if bytes.len() >= 8 {
        let len = bytes.len().min(8 * (usize::from(bytes[1]) + 1));
        bytes[0] = 59;
        bytes[4..6].fill(0);
        let checksum = pseudo_header.checksum(mobility::NEXT_HEADER, &bytes[..len]);
        bytes[4..6].copy_from_slice(&checksum.to_be_bytes());
    }
    let Ok(mut header) = MobilityHeader::parse(&Bytes::from(bytes), &pseudo_header) else {
        return;
    };
    let (authorized, authenticated) = (header.authorized_bytes(), header.authenticated_bytes());
    assert!(
        authorized.is_none() || authenticated.is_none(),
        "two last options"
    );
    assert!(authorized.is_none() || header.authenticator().is_some());
    assert!(authenticated.is_none_or(|covered| covered.len() >= 7 && covered[4..6] == [0, 0]));
    let mut out = Vec::new();
    header.emit(&pseudo_header, &mut out);
    assert_eq!(out.len(), header.buffer_len());
    // Aligning options may make the header too long for its length field, but only one of nearly that size.
    if out.len() <= 2048 {
        assert_eq!(
            MobilityHeader::parse(&Bytes::from(out), &pseudo_header).as_ref(),
            Ok(&header)
        );
    }
    header.authenticate(Bytes::from_static(&[0; 12]));
    assert_eq!(
        header.authenticator().is_some(),
        header.authorized_bytes().is_some()
    );
}

/// TCP segments. The checksum is put right first, or hardly anything would get past it.
///
/// # Panics
/// If the segment does not survive the round trip.
pub fn tcp(bytes: &[u8]) {
    let pseudo_header = PseudoHeader {
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::LOCALHOST,
    };
    let mut bytes = bytes.to_vec();
    if bytes.len() >= tcp::HEADER_LEN {
        bytes[16..18].fill(0);
        let checksum = pseudo_header.checksum(tcp::NEXT_HEADER, &bytes);
        bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
    }
    let Ok(segment) = TcpSegment::parse(&Bytes::from(bytes), &pseudo_header) else {
        return;
    };
    let mut out = Vec::new();
    segment.emit(&pseudo_header, &mut out);
    assert_eq!(out.len(), segment.buffer_len());
    assert_eq!(TcpSegment::parse(&Bytes::from(out), &pseudo_header), Ok(segment));
}

/// DHCPv6 messages.
///
/// # Panics
/// If the message does not survive the round trip.
pub fn dhcpv6(bytes: &[u8]) {
    let Ok(message) = Dhcpv6Message::parse(&Bytes::copy_from_slice(bytes)) else {
        return;
    };
    let out = message.to_bytes();
    assert_eq!(out.len(), message.buffer_len());
    assert_eq!(Dhcpv6Message::parse(&out), Ok(message));
}

/// The fixed header, and a chain of extension headers of which the first byte chooses the first.
///
/// # Panics
/// If a header does not survive the round trip.
pub fn ipv6_headers(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Ok((header, payload_length, next_header)) = Ipv6Header::parse(&mut Reader::new(&bytes, "IPv6")) {
        let mut out = Vec::new();
        header.emit(payload_length, next_header, &mut out);
        assert_eq!(out, bytes[..40]);
    }
    let mut reader = Reader::new(&bytes, "chain");
    let Ok(mut header_type) = reader.u8() else { return };
    while let Ok((header, next_header)) = ExtensionHeader::parse(header_type, &mut reader) {
        let mut out = Vec::new();
        header.emit(next_header, &mut out);
        assert_eq!(out.len(), header.buffer_len());
        // Aligning options may make the header too long for its length field, but only one of nearly that size.
        if out.len() <= 2048 {
            let out = Bytes::from(out);
            let again = ExtensionHeader::parse(header_type, &mut Reader::new(&out, "again"));
            assert_eq!(again, Ok((header, next_header)));
        }
        header_type = next_header;
    }
}
