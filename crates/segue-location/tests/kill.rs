//! A server that is killed again and again while updates come in: what it has acknowledged is there afterwards.

mod common;

use common::{Killed, write};
use segue_location::ask::ask;
use segue_location::config::read_key;
use segue_proto::Duration;
use segue_proto::location::{ClientConfig, ClientEvent, parse_name};
use std::io::{BufRead as _, BufReader};
use std::net::Ipv6Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time;

const ROUNDS: u32 = 12;

/// Names that are updated at the same time.
const WRITERS: u16 = 3;

#[test]
fn no_acknowledged_update_is_lost_to_sigkill() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kill-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let mut file =
        String::from("listen = [\"127.0.0.1:0\"]\ndirectory = \"state\"\n[[zone]]\nname = \"loc.example\"\n");
    for writer in 0..WRITERS {
        let secret = [
            "QUFBQUFBQUFBQUFBQUFBQUFBQUE=",
            "QkJCQkJCQkJCQkJCQkJCQkJCQkI=",
            "Q0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0M=",
        ][usize::from(writer)];
        let key = format!("key k{writer} {{ algorithm hmac-sha256; secret \"{secret}\"; }};\n");
        write(&directory.join(format!("{writer}.key")), &key);
        file += &format!("[[key]]\nfile = \"{writer}.key\"\nnames = [\"mh{writer}.loc.example\"]\n");
    }
    let config = directory.join("location.toml");
    write(&config, &file);

    let acknowledged: Vec<AtomicU32> = (0..WRITERS).map(|_| AtomicU32::new(0)).collect();
    let sent: Vec<AtomicU32> = (0..WRITERS).map(|_| AtomicU32::new(0)).collect();
    for round in 0..ROUNDS {
        let (server, port) = start(&config);
        for writer in 0..WRITERS {
            let (least, most) = (load(&acknowledged, writer), load(&sent, writer));
            let found = look_up(port, writer);
            assert!(
                (least..=most).contains(&found),
                "round {round}: {found} is not of {least}..={most}"
            );
        }
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (acknowledged, sent, stop, directory) = (&acknowledged, &sent, &stop, &directory);
                scope.spawn(move || {
                    let key = directory.join(format!("{writer}.key"));
                    while !stop.load(Ordering::Relaxed) {
                        let next = load(sent, writer) + 1;
                        sent[usize::from(writer)].store(next, Ordering::SeqCst);
                        if update(port, writer, &key, next) {
                            acknowledged[usize::from(writer)].store(next, Ordering::SeqCst);
                        }
                    }
                });
            }
            pause(20 + u64::from(round * 37 % 150));
            drop(server);
            stop.store(true, Ordering::Relaxed);
        });
    }
    let total: u32 = (0..WRITERS).map(|w| load(&acknowledged, w)).sum();
    assert!(
        total >= ROUNDS,
        "{total} updates were acknowledged: too few to say anything"
    );
    let _ = std::fs::remove_dir_all(&directory);
}

fn start(config: &Path) -> (Killed, u16) {
    let child = Command::new(env!("CARGO_BIN_EXE_segue-location"))
        .args(["serve", "--config"])
        .arg(config)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut child = Killed(child);
    let mut line = String::new();
    let output = child.0.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    let port = line.trim().rsplit(':').next().and_then(|p| p.parse().ok());
    (child, port.unwrap_or_else(|| panic!("no port in {line:?}")))
}

fn client(port: u16, attempts: u32) -> ClientConfig {
    ClientConfig {
        attempts: Some(attempts),
        retry_initial: Duration::from_millis(300),
        ..ClientConfig::new(vec![(Ipv6Addr::from_bits(0xffff_7f00_0001), port)])
    }
}

/// Whether the update was acknowledged.
fn update(port: u16, writer: u16, key: &Path, number: u32) -> bool {
    let name = |text: &str| parse_name(text).expect("a name");
    let config = ClientConfig {
        record: Some((name("loc.example"), name(&format!("mh{writer}.loc.example")))),
        key: Some(read_key(key).expect("a key")),
        ..client(port, 1)
    };
    let address = Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number));
    matches!(
        ask(config, 0, |client, now| client.update(now, address)),
        Ok(ClientEvent::Updated { .. })
    )
}

/// Number of the update that the server has; 0 for none.
fn look_up(port: u16, writer: u16) -> u32 {
    let name = parse_name(&format!("mh{writer}.loc.example")).expect("a name");
    match ask(client(port, 5), 0, |client, now| {
        client.look_up(now, &name);
    }) {
        Ok(ClientEvent::Resolved { addresses, .. }) => addresses[0].to_bits() as u32,
        Ok(ClientEvent::LookupFailed { .. }) => 0,
        other => panic!("no answer: {other:?}"),
    }
}

fn load(numbers: &[AtomicU32], writer: u16) -> u32 {
    numbers[usize::from(writer)].load(Ordering::SeqCst)
}

fn pause(milliseconds: u64) {
    #[expect(clippy::disallowed_methods, reason = "the server is killed after some time")]
    thread::sleep(time::Duration::from_millis(milliseconds));
}
