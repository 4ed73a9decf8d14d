//! What the location server costs: `cargo bench -p segue-location`, or with `-- DIRECTORY` on another disk.
//!
//! - time per packet, of each kind, with 1,000 hosts and with 100,000 of them (a name and a key each);
//! - updates made durable in a second, by how many wait for one sync;
//! - starting again with a million hosts.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and tells what it has seen"
)]

use segue_location::store::Store;
use segue_proto::Instant;
use segue_proto::location::tsig::{Algorithm, Key};
use segue_proto::location::{
    Client, ClientConfig, Datagram, Grant, KeyConfig, Name, Server, ServerConfig, Transport, ZoneConfig,
    parse_name,
};
use segue_proto::random::Stream;
use std::hint::black_box;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::time;

const UNIX: u64 = 1_800_000_000;

fn main() {
    let directory = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let directory = directory.map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    packets();
    commits(&directory);
    restart(&directory, 1_000_000);
}

fn name(text: &str) -> Name {
    parse_name(text).expect("a name")
}

fn host(n: u32) -> String {
    format!("mh{n}.loc.example")
}

fn key(n: u32) -> Key {
    Key::new(name(&format!("key{n}")), Algorithm::HmacSha256, vec![7; 32])
}

/// Each host has a key of its own, and one has all of them.
fn config(hosts: u32, journal: bool) -> ServerConfig {
    let zone = ZoneConfig::new(name("loc.example"), vec![]).expect("a zone");
    let of = |key, at: &str, below| KeyConfig {
        key,
        grants: vec![Grant {
            name: name(at),
            below,
        }],
    };
    let mut keys: Vec<_> = (0..hosts).map(|n| of(key(n), &host(n), false)).collect();
    keys.push(of(
        Key::new(name("all"), Algorithm::HmacSha256, vec![7; 32]),
        "loc.example",
        true,
    ));
    ServerConfig {
        journal,
        unix_at_zero: UNIX,
        ..ServerConfig::new(vec![zone], keys)
    }
}

fn client(key: Option<Key>, of: &str) -> Client {
    let config = ClientConfig {
        record: Some((name("loc.example"), name(of))),
        key,
        unix_at_zero: UNIX,
        ..ClientConfig::new(vec![(Ipv6Addr::LOCALHOST, 53)])
    };
    Client::new(config, Box::new(Stream::new(1, of))).expect("a client")
}

fn update(key: Key, of: &str, second: u64) -> Datagram {
    let mut client = client(Some(key), of);
    client.update(
        Instant::from_nanos(second * 1_000_000_000),
        Ipv6Addr::from_bits(u128::from(second) << 64),
    );
    client.poll_transmit().expect("an update")
}

fn question(of: &str) -> Datagram {
    let mut client = client(None, of);
    client.look_up(Instant::ZERO, &name(of));
    client.poll_transmit().expect("a question")
}

fn take(server: &mut Server, datagram: &Datagram, second: u64) {
    server.handle_message(
        Instant::from_nanos(second * 1_000_000_000),
        Transport::Udp,
        datagram,
    );
}

/// A server in which every host has its address.
fn filled(hosts: u32, config: ServerConfig) -> Server {
    let mut server = Server::new(config).expect("a server");
    for n in 0..hosts {
        // a key has so many updates in a second
        let second = u64::from(n / 4000);
        let all = Key::new(name("all"), Algorithm::HmacSha256, vec![7; 32]);
        take(&mut server, &update(all, &host(n), second), second);
        assert!(server.poll_answer().is_some());
    }
    assert_eq!(server.counters().updates, u64::from(hosts));
    server
}

/// A kind of packet, and the `n`th of it to a server of so many hosts.
type Kind<'a> = (&'a str, &'a dyn Fn(u32, u32) -> Datagram);

fn packets() {
    const OF_A_KIND: u32 = 2000;
    println!(
        "{:<32}{:>14}{:>16}",
        "microseconds per packet", "1,000 hosts", "100,000 hosts"
    );
    let deep = format!("{}loc.example", "a.".repeat(115));
    let kinds: [Kind<'_>; 6] = [
        ("question", &|n, hosts| question(&host(n * 7919 % hosts))),
        ("question for nobody", &|n, _| {
            question(&format!("x{n}.loc.example"))
        }),
        ("question of 117 labels", &|_, _| question(&deep)),
        ("update", &|n, hosts| {
            update(key(n % hosts), &host(n % hosts), 50 + u64::from(n / hosts))
        }),
        ("update with an unknown key", &|n, hosts| {
            update(key(hosts + n), &host(n % hosts), 50)
        }),
        ("update with a wrong key", &|n, hosts| {
            let wrong = Key::new(
                name(&format!("key{}", n % hosts)),
                Algorithm::HmacSha256,
                vec![8; 32],
            );
            update(wrong, &host(n % hosts), 50)
        }),
    ];
    let sizes = [1000, 100_000];
    let mut servers = sizes.map(|hosts| filled(hosts, config(hosts, false)));
    for (what, make) in kinds {
        let [few, many] = [0, 1].map(|i| {
            let packets: Vec<_> = (0..OF_A_KIND).map(|n| make(n, sizes[i])).collect();
            let begun = time::Instant::now();
            for packet in &packets {
                take(&mut servers[i], packet, 50);
                black_box(servers[i].poll_answer());
            }
            begun.elapsed().as_secs_f64() * 1e6 / f64::from(OF_A_KIND)
        });
        println!("{what:<32}{few:>14.1}{many:>16.1}");
    }
}

fn fresh(directory: &Path) -> PathBuf {
    let path = directory.join(format!("bench-location-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn commits(directory: &Path) {
    let path = fresh(directory);
    let (store, mut server) = Store::open(&path, config(0, true)).expect("opened");
    let mut n = 0;
    for waiting in [1, 16, 256] {
        let begun = time::Instant::now();
        let (mut updates, mut spent) = (0, time::Duration::ZERO);
        while begun.elapsed() < time::Duration::from_secs(3) {
            let packets: Vec<_> = (0..waiting)
                .map(|_| {
                    n += 1;
                    let all = Key::new(name("all"), Algorithm::HmacSha256, vec![7; 32]);
                    (
                        u64::from(n / 4000),
                        update(all, &host(n % 100_000), u64::from(n / 4000)),
                    )
                })
                .collect();
            let at = time::Instant::now();
            for (second, packet) in &packets {
                take(&mut server, packet, *second);
            }
            let entries: Vec<_> = std::iter::from_fn(|| server.poll_journal()).collect();
            store.write(&entries).expect("written");
            server.handle_durable(entries.last().expect("changes").number);
            while server.poll_answer().is_some() {}
            spent += at.elapsed();
            updates += waiting;
        }
        let rate = f64::from(updates) / spent.as_secs_f64();
        println!("{waiting:>4} updates with one sync: {rate:.0} updates/s");
    }
    drop(store);
    let _ = std::fs::remove_dir_all(&path);
}

fn restart(directory: &Path, hosts: u32) {
    let path = fresh(directory);
    let (store, mut server) = Store::open(&path, config(0, true)).expect("opened");
    for n in 0..hosts {
        let second = u64::from(n / 4000);
        let all = Key::new(name("all"), Algorithm::HmacSha256, vec![7; 32]);
        take(&mut server, &update(all, &host(n), second), second);
        if n % 10_000 == 9999 || n + 1 == hosts {
            let entries: Vec<_> = std::iter::from_fn(|| server.poll_journal()).collect();
            store.write(&entries).expect("written");
            server.handle_durable(entries.last().expect("changes").number);
            while server.poll_answer().is_some() {}
        }
    }
    drop((store, server));
    let bytes = std::fs::metadata(path.join("zones.redb")).map_or(0, |m| m.len());
    let begun = time::Instant::now();
    let (store, server) = Store::open(&path, config(0, true)).expect("opened");
    let took = begun.elapsed().as_secs_f64();
    println!(
        "start with {hosts} hosts ({} MB): {took:.2} s; serial {:?}",
        bytes >> 20,
        server.serial(&name("loc.example"))
    );
    drop(store);
    let _ = std::fs::remove_dir_all(&path);
}
