//! See `segue_conformance::fuzz::ipv6_headers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| segue_conformance::fuzz::ipv6_headers(bytes));
