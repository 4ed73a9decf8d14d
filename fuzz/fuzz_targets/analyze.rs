//! See `segue_conformance::fuzz::analyze`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| segue_conformance::fuzz::analyze(bytes));
