//! See `segue_conformance::fuzz::tcp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| segue_conformance::fuzz::tcp(bytes));
