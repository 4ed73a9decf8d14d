//! See `segue_conformance::fuzz::sctp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| segue_conformance::fuzz::sctp(bytes));
