//! ICMPv6 messages. The checksum is put right first, or hardly anything would get past it.
#![no_main]

use bytes::Bytes;
use core::net::Ipv6Addr;
use libfuzzer_sys::fuzz_target;
use segue_wire::checksum::PseudoHeader;
use segue_wire::icmpv6::{Icmpv6, NEXT_HEADER};

fuzz_target!(|bytes: &[u8]| {
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
});
