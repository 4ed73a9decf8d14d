//! See `segue_conformance::fuzz::dhcpv6`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| segue_conformance::fuzz::dhcpv6(bytes));
