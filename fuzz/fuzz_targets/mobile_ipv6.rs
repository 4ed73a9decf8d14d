//! See `segue_conformance::fuzz::mobile_ipv6`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| segue_conformance::fuzz::mobile_ipv6(bytes));
