//! Whole packets. What parses is emitted, is as long as foretold, and parses to the same packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use segue_wire::Packet;

fuzz_target!(|bytes: &[u8]| {
    let Ok(packet) = Packet::parse(bytes) else { return };
    let _ = packet.nd_is_valid();
    let out = packet.to_vec();
    assert_eq!(out.len(), packet.buffer_len());
    // Padding that the sender left off may make the packet too long, but only a packet of nearly that size.
    if bytes.len() < 60_000 {
        assert_eq!(Packet::parse(&out), Ok(packet));
    }
});
