//! What a server keeps, after every way of being interrupted.

use redb::StorageBackend;
use segue_location::store::{Store, Table, builder};
use segue_proto::Instant;
use segue_proto::location::tsig::{Algorithm, Key};
use segue_proto::location::{
    Client, ClientConfig, Datagram, Grant, JournalEntry, KeyConfig, Row, Server, ServerConfig, Transport,
    ZoneConfig, parse_name,
};
use segue_proto::random::Stream;
use std::fs;
use std::io::{Error, ErrorKind};
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

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

fn config() -> ServerConfig {
    let zone = parse_name("loc.example").expect("a name");
    let grants = vec![Grant {
        name: zone.clone(),
        below: true,
    }];
    let zone = ZoneConfig::new(zone, vec![]).expect("a zone");
    let config = ServerConfig::new(vec![zone], vec![KeyConfig { key: key(), grants }]);
    ServerConfig {
        journal: true,
        ..config
    }
}

/// Has the server take the `n`th update; what is to be written.
fn update(server: &mut Server, n: u16) -> JournalEntry {
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
    entry
}

fn rows(server: &Server) -> Vec<Row> {
    server.rows().collect()
}

/// Why the directory is not opened.
fn refusal(directory: &Path) -> String {
    Store::open(directory, config())
        .err()
        .map(|e| format!("{e:#}"))
        .unwrap_or_default()
}

/// What was done to a disk.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Length(u64),
    Sync,
    /// Not the disk's: so many updates have been acknowledged.
    Acknowledged(usize),
}

/// A disk that remembers what was done to it.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<(Vec<u8>, Vec<Step>)>>);

impl Disk {
    fn holding(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new((bytes, Vec::new()))))
    }

    fn note(&self, step: Step) {
        self.0.lock().expect("a lock").1.push(step);
    }

    fn steps(&self) -> Vec<Step> {
        self.0.lock().expect("a lock").1.clone()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.0.lock().expect("a lock").0.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let disk = self.0.lock().expect("a lock");
        let from = disk.0.get(offset as usize..).and_then(|b| b.get(..out.len()));
        out.copy_from_slice(from.ok_or(Error::from(ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let mut disk = self.0.lock().expect("a lock");
        apply(&mut disk.0, &Step::Length(len));
        disk.1.push(Step::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.note(Step::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut disk = self.0.lock().expect("a lock");
        let step = Step::Write(offset, data.to_vec());
        apply(&mut disk.0, &step);
        disk.1.push(step);
        Ok(())
    }
}

fn apply(bytes: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Write(offset, data) => {
            let end = *offset as usize + data.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset as usize..end].copy_from_slice(data);
        }
        Step::Length(len) => bytes.resize(*len as usize, 0),
        Step::Sync | Step::Acknowledged(_) => {}
    }
}

/// What of `steps`, none of which was synced, a disk has when the power fails: any sectors of 512 bytes.
fn lose_some(steps: &[Step], random: &mut Stream) -> Vec<Step> {
    let mut kept = Vec::new();
    for step in steps {
        match step {
            Step::Write(offset, data) => {
                for (n, sector) in data.chunks(512).enumerate() {
                    if random.below(2) == 0 {
                        kept.push(Step::Write(offset + 512 * n as u64, sector.to_vec()));
                    }
                }
            }
            other => kept.push(other.clone()),
        }
    }
    kept
}

/// Whenever the power fails, and whatever the disk has then of what was not synced: every update that was acknowledged is
/// there, and none in part.
#[test]
fn what_was_acknowledged_survives_a_power_failure_at_every_step() {
    let disk = Disk::default();
    let table = Table::new(builder().create_with_backend(disk.clone()).expect("a table"));
    let mut server = table.server(config()).expect("a server");
    let mut states = vec![rows(&server)];
    disk.note(Step::Acknowledged(0));
    for n in 1..=12 {
        let before = disk.steps().len();
        let entry = update(&mut server, n);
        table.write(&[entry]).expect("written");
        let syncs = disk.steps()[before..]
            .iter()
            .filter(|s| matches!(s, Step::Sync))
            .count();
        assert_eq!(syncs, 1, "of update {n}");
        states.push(rows(&server));
        disk.note(Step::Acknowledged(usize::from(n)));
    }
    let steps = disk.steps();
    let begun = steps
        .iter()
        .position(|s| matches!(s, Step::Acknowledged(0)))
        .expect("there");
    let mut random = Stream::new(1, "power");
    let mut partial = 0;
    for end in begun + 1..=steps.len() {
        let synced = steps[..end]
            .iter()
            .rposition(|s| matches!(s, Step::Sync))
            .expect("a sync");
        let acknowledged = steps[..end].iter().rev().find_map(|s| match s {
            Step::Acknowledged(n) => Some(*n),
            _ => None,
        });
        let acknowledged = acknowledged.expect("from the beginning");
        let mut durable = Vec::new();
        steps[..=synced].iter().for_each(|s| apply(&mut durable, s));
        let waiting = &steps[synced + 1..end];
        let variants = [
            vec![],
            waiting.to_vec(),
            lose_some(waiting, &mut random),
            lose_some(waiting, &mut random),
        ];
        for variant in variants {
            let mut bytes = durable.clone();
            variant.iter().for_each(|s| apply(&mut bytes, s));
            let database = builder()
                .create_with_backend(Disk::holding(bytes))
                .expect("opened");
            let again = rows(&Table::new(database).server(config()).expect("a server"));
            let is = states
                .iter()
                .position(|s| *s == again)
                .expect("a state that there was");
            assert!(
                (acknowledged..=acknowledged + 1).contains(&is),
                "{is} after step {end}, {acknowledged} acknowledged"
            );
            partial += usize::from(is > acknowledged);
        }
    }
    assert!(
        partial > 0,
        "some were there before they were acknowledged: the steps are not all alike"
    );
}

#[test]
fn all_that_wait_are_written_with_one_sync() {
    let disk = Disk::default();
    let table = Table::new(builder().create_with_backend(disk.clone()).expect("a table"));
    let mut server = table.server(config()).expect("a server");
    let entries: Vec<_> = (1..=100).map(|n| update(&mut server, n)).collect();
    let before = disk.steps().len();
    table.write(&entries).expect("written");
    let syncs = disk.steps()[before..]
        .iter()
        .filter(|s| matches!(s, Step::Sync))
        .count();
    assert_eq!(syncs, 1);
    drop(table);
    let bytes = disk.0.lock().expect("a lock").0.clone();
    let again = Table::new(
        builder()
            .create_with_backend(Disk::holding(bytes))
            .expect("opened"),
    );
    assert_eq!(rows(&again.server(config()).expect("a server")), rows(&server));
}

#[test]
fn a_server_that_is_started_again_goes_on() {
    let directory = directory("again");
    for n in 1..=6 {
        let (store, mut server) = Store::open(&directory, config()).expect("opened");
        assert_eq!(
            server.serial(&parse_name("loc.example").expect("a name")),
            Some(u32::from(n))
        );
        let entry = update(&mut server, n);
        store.write(&[entry]).expect("written");
    }
}

#[test]
fn a_file_that_is_no_table_is_refused_and_left_as_it_is() {
    let directory = directory("foreign");
    drop(Store::open(&directory, config()).expect("opened"));
    let path = directory.join("zones.redb");
    for foreign in [&b"x"[..], b"-----BEGIN CERTIFICATE-----\n", &[0xff; 5000]] {
        write(&path, foreign);
        let error = refusal(&directory);
        assert!(
            error.contains("zones.redb: not a table of a location server"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1);
        assert_eq!(read(&path), foreign, "left as it was");
    }
}

/// Whatever damages a table: it is refused, or nothing that was acknowledged has changed.
#[test]
fn a_damaged_table_is_refused() {
    let directory = directory("damaged");
    let (store, mut server) = Store::open(&directory, config()).expect("opened");
    for n in 1..=12 {
        let entry = update(&mut server, n);
        store.write(&[entry]).expect("written");
    }
    drop(store);
    let path = directory.join("zones.redb");
    let whole = read(&path);
    let mh = whole
        .windows(4)
        .enumerate()
        .filter(|(_, w)| w == b"\x03mh1")
        .map(|(at, _)| at);
    let mut refused = 0;
    for at in mh.chain((0..whole.len()).step_by(4099)) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        write(&path, &damaged);
        match Store::open(&directory, config()) {
            Ok((_, again)) => assert_eq!(rows(&again), rows(&server), "byte {at}"),
            Err(e) => {
                assert!(format!("{e:#}").contains("zones.redb"), "{e:#}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}

#[test]
fn an_interrupted_beginning_is_begun_again() {
    let directory = directory("begun");
    fs::create_dir_all(&directory).expect("a directory");
    write(&directory.join("zones.new"), b"redb and no more");
    assert!(Store::open(&directory, config()).is_ok());
}

#[test]
fn zones_of_before_the_first_release_are_not_begun_anew() {
    for old in ["journal.0", "snapshot"] {
        let directory = directory(old);
        fs::create_dir_all(&directory).expect("a directory");
        write(&directory.join(old), b"");
        let error = refusal(&directory);
        assert!(error.contains("before the first release"), "{error}");
        assert!(!directory.join("zones.redb").exists());
    }
}

#[test]
fn two_servers_cannot_use_one_directory() {
    let directory = directory("lock");
    let first = Store::open(&directory, config()).expect("opened");
    assert!(refusal(&directory).contains("another server is using it"));
    drop(first);
    assert!(Store::open(&directory, config()).is_ok());
}

#[expect(clippy::disallowed_methods, reason = "the tests of a driver's files")]
fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("read")
}

#[expect(clippy::disallowed_methods, reason = "the tests of a driver's files")]
fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("written");
}
