//! What fuzzing found, and a few good inputs for every target, through the bodies of the targets: a fault that was mended
//! stays mended, without a nightly compiler.

use segue_conformance::fuzz::TARGETS;
use segue_proto::random::Stream;
use std::path::Path;

/// The folder `fuzz/` of the repository.
fn fuzz_folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz"))
}

#[test]
fn every_seed_passes_its_target() {
    for target in TARGETS {
        let mut seeds: Vec<_> = std::fs::read_dir(fuzz_folder().join("seeds").join(target.name))
            .unwrap_or_else(|e| panic!("seeds of {}: {e}", target.name))
            .map(|entry| entry.expect("entry").path())
            .collect();
        seeds.sort();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for path in seeds {
            #[expect(clippy::disallowed_methods, reason = "the seeds are files")]
            let bytes = std::fs::read(&path).expect("seed");
            let outcome = std::panic::catch_unwind(|| (target.body)(&bytes));
            assert!(outcome.is_ok(), "{} fails {}", path.display(), target.name);
        }
    }
}

#[test]
fn every_target_of_the_fuzzer_is_listed_and_the_other_way_round() {
    let mut files: Vec<_> = std::fs::read_dir(fuzz_folder().join("fuzz_targets"))
        .expect("fuzz_targets")
        .map(|entry| entry.expect("entry").path())
        .map(|path| path.file_stem().expect("name").to_string_lossy().into_owned())
        .collect();
    files.sort();
    let names: Vec<_> = TARGETS.iter().map(|t| t.name).collect();
    assert_eq!(files, names);
}

/// Plays `count` associations on random bytes, changed by `change`.
fn play(count: u32, name: &str, change: fn(u8) -> u8) {
    let mut random = Stream::new(1, name);
    for n in 0..count {
        let len = 16 + random.below(500);
        let bytes: Vec<u8> = (0..len).map(|_| change(random.next_u64() as u8)).collect();
        let outcome = std::panic::catch_unwind(|| segue_conformance::fuzz::association(&bytes));
        assert!(outcome.is_ok(), "input {n}: {bytes:?}");
    }
}

/// A short run without coverage: the association target must get far on bytes that nobody chose.
#[test]
fn random_bytes_play_associations() {
    play(2000, "bytes", |byte| byte);
}

/// A short run without coverage of two ILNPv6 shims.
#[test]
fn random_bytes_play_shims() {
    let mut random = Stream::new(1, "shims");
    for n in 0..300 {
        let len = 16 + random.below(600);
        let bytes: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        let outcome = std::panic::catch_unwind(|| segue_conformance::fuzz::ilnp(&bytes));
        assert!(outcome.is_ok(), "input {n}: {bytes:?}");
    }
}

/// The same without an attacker, so that everything must be delivered, or failure be reported.
#[test]
fn random_bytes_play_honest_associations() {
    play(2000, "honest", |byte| {
        let (host, operation) = (byte & 0x80, byte & 0x1f);
        host | if operation > 21 { operation - 22 } else { operation }
    });
}

/// An attacker that is on no path, on bytes that nobody chose.
#[test]
fn random_bytes_move_nobodys_bindings() {
    let mut random = Stream::new(1, "mobile ipv6");
    for n in 0..100 {
        let len = 100 + random.below(3000);
        let bytes: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        let outcome = std::panic::catch_unwind(|| segue_conformance::fuzz::mobile_ipv6(&bytes));
        assert!(outcome.is_ok(), "input {n}: {bytes:?}");
    }
}
