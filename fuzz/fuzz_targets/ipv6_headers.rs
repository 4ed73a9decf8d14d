//! The fixed header, and a chain of extension headers of which the first byte chooses the first.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use segue_wire::reader::Reader;
use segue_wire::{ExtensionHeader, Ipv6Header};

fuzz_target!(|bytes: &[u8]| {
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
});
