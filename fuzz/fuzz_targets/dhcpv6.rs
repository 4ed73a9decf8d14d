//! DHCPv6 messages.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use segue_wire::dhcpv6::Dhcpv6Message;

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = Dhcpv6Message::parse(&Bytes::copy_from_slice(bytes)) else {
        return;
    };
    let out = message.to_bytes();
    assert_eq!(out.len(), message.buffer_len());
    assert_eq!(Dhcpv6Message::parse(&out), Ok(message));
});
