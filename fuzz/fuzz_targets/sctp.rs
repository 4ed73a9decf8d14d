//! SCTP packets. The CRC32c is put right first, or hardly anything would get past it.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use segue_wire::checksum::sctp_crc32c;
use segue_wire::sctp::{Chunk, SctpPacket};

fuzz_target!(|bytes: &[u8]| {
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
});
