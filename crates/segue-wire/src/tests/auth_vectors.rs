//! Bytes of AUTH chunks and of the parameters that negotiate them, written down from the diagrams of RFC 4895.

use super::{hex, hex_bytes};
use crate::arbitrary;
use crate::checksum::sctp_crc32c;
use crate::reader::Reader;
use crate::sctp::{Auth, Chunk, Init, Parameter, SctpPacket};
use crate::{ParseError, Tsn};
use bytes::Bytes;
use proptest::prelude::*;

/// The packet that `dump` is but for its CRC32c, which is put right.
fn parse_packet(dump: &str) -> Result<SctpPacket, ParseError> {
    let mut bytes = hex(dump);
    let crc = sctp_crc32c(&bytes);
    bytes[8..12].copy_from_slice(&crc);
    SctpPacket::parse(&Bytes::from(bytes))
}

fn auth_of(packet: &SctpPacket) -> (&Auth, &[Chunk]) {
    packet
        .chunks
        .iter()
        .enumerate()
        .find_map(|(i, chunk)| match chunk {
            Chunk::Auth(auth) => Some((&**auth, &packet.chunks[i + 1..])),
            _ => None,
        })
        .expect("no AUTH")
}

#[test]
fn auth_chunk() {
    let auth = Auth::new(0x0102, 3, Bytes::from_static(&[0xaa; 5]));
    let chunk = Chunk::Auth(Box::new(auth));
    let dump = "0f 00 000d 0102 0003 aaaaaaaaaa 000000";
    let mut out = Vec::new();
    chunk.emit(&mut out);
    assert_eq!(out, hex(dump));
    assert_eq!(chunk.buffer_len(), out.len());
    assert_eq!(
        Chunk::parse(&mut Reader::new(&hex_bytes(dump), "chunk")),
        Ok(chunk)
    );
    // section 5.1: shared key identifier and HMAC identifier are there, whatever the HMAC
    for (dump, length) in [("0f 00 0006 0102", false), ("0f 00 0008 0102 0003", true)] {
        let parsed = Chunk::parse(&mut Reader::new(&hex_bytes(dump), "chunk"));
        assert_eq!(parsed.is_ok(), length, "{dump}");
    }
}

#[test]
fn parameters_that_negotiate_authentication() {
    let init = Init {
        initiate_tag: 1,
        a_rwnd: 0x0001_0000,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(2),
        parameters: vec![
            Parameter::Random(Bytes::from_static(&[0x5a; 32])),
            Parameter::Chunks(Bytes::from_static(&[0xc1, 0x80, 0x00])),
            Parameter::HmacAlgo(vec![3, 1]),
        ],
    };
    let dump = "01 00 0048 00000001 00010000 0001 0001 00000002
        8002 0024 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a
        8003 0007 c18000 00
        8004 0008 0003 0001";
    let chunk = Chunk::Init(Box::new(init));
    let mut out = Vec::new();
    chunk.emit(&mut out);
    assert_eq!(out, hex(dump));
    assert_eq!(
        Chunk::parse(&mut Reader::new(&hex_bytes(dump), "chunk")),
        Ok(chunk)
    );
}

/// Section 6.2, figure 6: the HMAC field zero, and padding as it came, which the sender need not have made zero.
#[test]
fn the_hmac_covers_the_bytes_that_came() {
    // the HEARTBEAT's padding is not zero, and its chunk flags are 7
    let before = "0b59 0b5a 01020304 00000000 0b 00 0004";
    let auth = "0f 00 000d 0000 0001";
    let (hmac, zero) = ("1122334455 000000", "0000000000 000000");
    let after = "04 07 0009 0001 0005 aa eebbcc";
    let packet = parse_packet(&format!("{before} {auth} {hmac} {after}")).unwrap();
    assert_eq!(packet.chunks.len(), 3);
    let (chunk, following) = auth_of(&packet);
    assert_eq!(
        chunk.authenticated_bytes(following),
        hex(&format!("{auth} {zero} {after}"))
    );
    // what is emitted is canonical, so another AUTH chunk with the same HMAC covers other bytes
    let typed = Auth::new(chunk.shared_key_id, chunk.hmac_id, chunk.hmac.clone());
    assert_eq!(
        typed.authenticated_bytes(following),
        hex(&format!("{auth} {zero} 04 00 0009 0001 0005 aa 000000"))
    );
    assert_eq!(&typed, chunk);
}

#[test]
fn no_more_than_one_auth_in_a_packet() {
    let auth = || Chunk::Auth(Box::new(Auth::new(0, 1, Bytes::from_static(&[0; 20]))));
    let packet = |chunks: Vec<Chunk>| SctpPacket {
        source_port: 1,
        destination_port: 2,
        verification_tag: 3,
        chunks: chunks.into(),
    };
    assert!(packet(vec![auth(), Chunk::CookieAck]).bundling_is_valid());
    assert!(!packet(vec![auth(), Chunk::CookieAck, auth()]).bundling_is_valid());
}

proptest! {
    /// A packet that was emitted here covers the same bytes typed and parsed: a simulated hop may do either.
    #[test]
    fn typed_and_parsed_packets_cover_the_same(
        auth in arbitrary::auth(),
        before in proptest::collection::vec(arbitrary::chunk(), 0..2),
        after in proptest::collection::vec(arbitrary::chunk(), 0..3),
    ) {
        let unauthenticated = |c: &Chunk| !matches!(c, Chunk::Auth(_));
        prop_assume!(before.iter().chain(&after).all(unauthenticated));
        let mut chunks = before;
        chunks.push(Chunk::Auth(Box::new(auth)));
        chunks.extend(after);
        let packet = SctpPacket {
            source_port: 1,
            destination_port: 2,
            verification_tag: 3,
            chunks: chunks.into(),
        };
        let mut out = Vec::new();
        packet.emit(&mut out);
        let parsed = SctpPacket::parse(&Bytes::from(out)).unwrap();
        prop_assert_eq!(&parsed, &packet);
        let (typed, typed_following) = auth_of(&packet);
        let (received, received_following) = auth_of(&parsed);
        prop_assert_eq!(
            typed.authenticated_bytes(typed_following),
            received.authenticated_bytes(received_following)
        );
    }
}
