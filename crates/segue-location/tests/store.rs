//! The journal after every way of being interrupted.

use segue_location::store::{Cut, Store};
use segue_proto::Instant;
use segue_proto::location::tsig::{Algorithm, Key};
use segue_proto::location::{
    Client, ClientConfig, Datagram, Grant, KeyConfig, Server, ServerConfig, Transport, ZoneConfig, parse_name,
};
use segue_proto::random::Stream;
use std::fs;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("store-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

fn key() -> Key {
    Key::new(
        parse_name("mh-key").expect("a name"),
        Algorithm::HmacSha256,
        vec![7; 32],
    )
}

fn server() -> Server {
    let zone = parse_name("loc.example").expect("a name");
    let grants = vec![Grant {
        name: zone.clone(),
        below: true,
    }];
    let zone = ZoneConfig::new(zone, vec![]).expect("a zone");
    let config = ServerConfig::new(vec![zone], vec![KeyConfig { key: key(), grants }]);
    Server::new(ServerConfig {
        journal: true,
        ..config
    })
    .expect("a server")
}

/// Has the server take the `n`th update; what is to be journaled.
fn update(server: &mut Server, n: u16) -> Vec<u8> {
    let name = |t: &str| parse_name(t).expect("a name");
    let config = ClientConfig {
        record: Some((name("loc.example"), name(&format!("mh{}.loc.example", n % 5)))),
        key: Some(key()),
        unix_at_zero: u64::from(n),
        ..ClientConfig::new(vec![(Ipv6Addr::LOCALHOST, 53)])
    };
    let now = Instant::from_nanos(1_000_000_000 * u64::from(n));
    let mut client = Client::new(config, Box::new(Stream::new(u64::from(n), "client"))).expect("a client");
    client.update(Instant::ZERO, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n));
    let asked: Datagram = client.poll_transmit().expect("an update");
    assert!(server.handle_message(now, Transport::Udp, &asked));
    let entry = server.poll_journal().expect("a change");
    server.handle_durable(entry.number);
    let answer = server.poll_answer().expect("an answer").datagram.data;
    assert_eq!(answer[3] & 15, 0, "the update was taken");
    entry.bytes
}

/// States of a server after each of `count` updates, the first of them after none.
fn states(store: &mut Store, server: &mut Server, count: u16) -> Vec<Vec<Vec<u8>>> {
    let mut states = vec![server.snapshot()];
    for n in 1..=count {
        let entry = update(server, n);
        store.append(&[entry]).expect("appended");
        states.push(server.snapshot());
        store.compact_if_due(server).expect("compacted");
    }
    states
}

fn reopened(directory: &Path) -> anyhow::Result<Server> {
    let mut server = server();
    Store::open(directory, &mut server)?;
    Ok(server)
}

fn cut_at_opening(directory: &Path) -> Option<Cut> {
    let store = Store::open(directory, &mut server()).expect("opened");
    store.cut().cloned()
}

/// Why the directory is not opened.
fn refusal(directory: &Path) -> String {
    reopened(directory)
        .err()
        .map(|e| format!("{e:#}"))
        .unwrap_or_default()
}

#[test]
fn a_torn_last_record_costs_that_record_only() {
    let directory = directory("torn");
    let mut first = server();
    let mut store = Store::open(&directory, &mut first).expect("opened");
    let states = states(&mut store, &mut first, 3);
    drop(store);
    let journal = directory.join("journal.0");
    let whole = read(&journal);
    let ends: Vec<usize> = frame_ends(&whole);
    assert_eq!(ends.len(), 3);
    for len in 0..=whole.len() {
        for garbage in [&b""[..], &[0xff; 40][..]] {
            let torn = [&whole[..len], garbage].concat();
            write(&journal, &torn);
            let kept = ends.iter().filter(|end| **end <= len).count();
            // without the whole magic of a record, nothing says that other bytes are a record's
            if len < 4 && !garbage.is_empty() {
                continue;
            }
            let good = ends[..kept].last().copied().unwrap_or(0);
            let cut = (good < torn.len()).then(|| Cut {
                file: journal.clone(),
                bytes: (torn.len() - good) as u64,
            });
            assert_eq!(cut_at_opening(&directory), cut, "cut at {len}");
            write(&journal, &torn);
            assert_eq!(
                reopened(&directory).expect("opened").snapshot(),
                states[kept],
                "cut at {len}"
            );
            // The tear is gone: what is written next is not lost behind it.
            assert_eq!(read(&journal).len(), good);
        }
    }
    // Every bit of the last record is covered.
    for at in ends[1]..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        write(&journal, &damaged);
        assert_eq!(
            reopened(&directory).expect("opened").snapshot(),
            states[2],
            "damaged at {at}"
        );
    }
}

#[test]
fn a_file_that_is_no_journal_is_refused_and_left_as_it_is() {
    let directory = directory("foreign");
    drop(reopened(&directory).expect("opened"));
    let journal = directory.join("journal.0");
    for foreign in [&b"x"[..], b"-----BEGIN CERTIFICATE-----\n", b"SgLx", &[0xff; 100]] {
        write(&journal, foreign);
        let error = refusal(&directory);
        assert!(
            error.contains("journal.0: not a journal of a location server: expected a record"),
            "{error}"
        );
        assert_eq!(read(&journal), foreign, "left as it was");
    }
    // what a first record that was not finished can leave is none of them
    for torn in [&b"S"[..], b"SgLf", &[0; 100]] {
        write(&journal, torn);
        let cut = cut_at_opening(&directory).expect("cut");
        assert_eq!(cut.bytes, torn.len() as u64);
        let text = cut.to_string();
        assert!(
            text.contains("journal.0: cut ") && text.contains("of an incomplete last record"),
            "{text}"
        );
        assert!(read(&journal).is_empty());
        assert_eq!(cut_at_opening(&directory), None);
    }
}

#[test]
fn half_of_a_state_is_refused() {
    let directory = directory("half");
    let mut first = server();
    let store = Store::open(&directory, &mut first).expect("opened");
    let mut store = store.compact_from(1);
    states(&mut store, &mut first, 2);
    drop(store);
    let [journal, snapshot] = ["journal.1", "snapshot"].map(|n| directory.join(n));
    let (records, zones) = (read(&journal), read(&snapshot));
    fs::remove_file(&journal).expect("removed");
    let error = refusal(&directory);
    assert!(
        error.contains("journal.1: missing: expected the journal"),
        "{error}"
    );
    write(&journal, &records);
    fs::remove_file(&snapshot).expect("removed");
    let error = refusal(&directory);
    assert!(
        error.contains("snapshot: missing: expected the snapshot"),
        "{error}"
    );
    write(&snapshot, &zones);
    assert_eq!(reopened(&directory).expect("opened").snapshot(), first.snapshot());
}

#[test]
fn damage_before_whole_records_is_no_tear_and_is_reported() {
    let directory = directory("damaged");
    let mut first = server();
    let mut store = Store::open(&directory, &mut first).expect("opened");
    states(&mut store, &mut first, 3);
    drop(store);
    let journal = directory.join("journal.0");
    let whole = read(&journal);
    for at in [0, 5, 13, 17, 40] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        write(&journal, &damaged);
        let error = refusal(&directory);
        assert!(error.contains("damaged at byte 0"), "{error}");
        assert_eq!(read(&journal), damaged, "left as it was");
    }
}

#[test]
fn compaction_keeps_the_state_wherever_it_is_interrupted() {
    let directory = directory("compact");
    let mut first = server();
    let store = Store::open(&directory, &mut first).expect("opened");
    let mut store = store.compact_from(900);
    let states = states(&mut store, &mut first, 12);
    drop(store);
    let names: Vec<String> = names(&directory);
    assert!(names.contains(&"snapshot".to_owned()), "{names:?}");
    assert_eq!(
        names.iter().filter(|n| n.starts_with("journal.")).count(),
        1,
        "{names:?}"
    );
    assert_eq!(reopened(&directory).expect("opened").snapshot(), states[12]);
    // Interrupted before the rename: the new journal and an unfinished snapshot are there, and mean nothing.
    let generation: u64 = names
        .iter()
        .find_map(|n| n.strip_prefix("journal.")?.parse().ok())
        .expect("a journal");
    write(&directory.join(format!("journal.{}", generation + 1)), b"");
    write(&directory.join("snapshot.new"), b"SegueLM1 and no more");
    assert_eq!(reopened(&directory).expect("opened").snapshot(), states[12]);
    // A snapshot is whole or it is damaged.
    let snapshot = directory.join("snapshot");
    let whole = read(&snapshot);
    write(&snapshot, &whole[..whole.len() - 1]);
    assert!(reopened(&directory).is_err());
}

#[test]
fn two_servers_cannot_use_one_directory() {
    let directory = directory("lock");
    let mut first = server();
    let store = Store::open(&directory, &mut first).expect("opened");
    let error = reopened(&directory)
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default();
    assert!(error.contains("another server is using it"), "{error}");
    drop(store);
    assert!(reopened(&directory).is_ok());
}

/// Ends of the frames: 20 bytes of header, the length at its byte 12.
fn frame_ends(bytes: &[u8]) -> Vec<usize> {
    let (mut at, mut ends) = (0, Vec::new());
    while at < bytes.len() {
        let len = u32::from_be_bytes(*bytes[at + 12..].first_chunk().expect("a header"));
        at += 20 + len as usize;
        ends.push(at);
    }
    ends
}

#[expect(clippy::disallowed_methods, reason = "the tests of a driver's files")]
fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("read")
}

#[expect(clippy::disallowed_methods, reason = "the tests of a driver's files")]
fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("written");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect()
}
