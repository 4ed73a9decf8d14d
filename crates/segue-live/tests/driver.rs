//! Two drivers on the loopback interface, over UDP: no privileges needed.
#![allow(clippy::disallowed_methods, reason = "peers that are only a socket")]

use bytes::Bytes;
use segue_live::{Capture, Driver, DriverConfig, DriverError, DriverEvent, Transport};
use segue_proto::sctp::{AssociationId, Config, Event, SendError, SendOptions, Unreachable};
use segue_proto::{Duration, Instant};
use segue_wire::Data;
use std::net::{Ipv6Addr, UdpSocket};

const PORT: u16 = 5001;

/// Everything here takes milliseconds; a machine that is busy with other things gets this long.
const PATIENCE: Duration = Duration::from_secs(30);

fn driver(remote_port: u16) -> Driver {
    Driver::new(DriverConfig {
        sctp: Config {
            rto_initial: Duration::from_millis(200),
            rto_min: Duration::from_millis(100),
            ..Config::default()
        },
        port: PORT,
        transport: Transport::Udp {
            local_port: 0,
            remote_port,
        },
        addresses: vec![Ipv6Addr::LOCALHOST],
        ..DriverConfig::default()
    })
    .unwrap()
}

struct Pair {
    ends: [Driver; 2],
    ids: [Option<AssociationId>; 2],
    events: [Vec<Event>; 2],
    deadline: Instant,
}

impl Pair {
    fn connecting() -> Self {
        let mut server = driver(9);
        server.listen();
        let mut client = driver(server.udp_port().unwrap());
        let id = client.connect(&[Ipv6Addr::LOCALHOST], PORT).unwrap();
        let deadline = client.now() + PATIENCE;
        Self {
            ends: [client, server],
            ids: [Some(id), None],
            events: [Vec::new(), Vec::new()],
            deadline,
        }
    }

    /// Lets both ends work until `done`.
    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            for end in 0..2 {
                let driver = &mut self.ends[end];
                assert!(driver.now() < self.deadline, "{:?}", self.events);
                let soon = driver.now() + Duration::from_millis(1);
                driver.turn(Some(soon), &[]).unwrap();
                while let Some(event) = driver.poll_event() {
                    if let DriverEvent::Association(id, event) = event {
                        self.ids[end] = Some(id);
                        self.events[end].push(event);
                    }
                }
            }
        }
    }

    fn has(&self, end: usize, event: &Event) -> bool {
        self.events[end].contains(event)
    }

    fn up() -> Self {
        let mut pair = Self::connecting();
        pair.until(|p| p.has(0, &Event::Connected) && p.has(1, &Event::Connected));
        pair
    }

    fn received(&mut self, end: usize) -> Vec<Data> {
        let Some(id) = self.ids[end] else {
            return Vec::new();
        };
        let Some(association) = self.ends[end].association_mut(id) else {
            return Vec::new();
        };
        core::iter::from_fn(|| association.recv())
            .flat_map(|m| m.parts)
            .collect()
    }
}

#[test]
fn megabytes_arrive_in_order_and_the_association_is_shut_down() {
    let mut pair = Pair::up();
    let total = 3_000_000_u64;
    let (mut given, mut taken) = (0_u64, 0_u64);
    pair.until(|p| {
        let now = p.ends[0].now();
        let sender = p.ends[0].association_mut(p.ids[0].unwrap()).unwrap();
        while given < total {
            let data = Data::Synthetic {
                offset: given,
                len: 1000,
            };
            match sender.send(now, 0, data, SendOptions::default()) {
                Ok(()) => given += 1000,
                Err(SendError::BufferFull) => break,
                Err(other) => panic!("{other}"),
            }
        }
        for data in p.received(1) {
            assert!(data.is_synthetic_at(taken), "at {taken}");
            taken += data.len() as u64;
        }
        taken == total
    });
    let now = pair.ends[0].now();
    pair.ends[0]
        .association_mut(pair.ids[0].unwrap())
        .unwrap()
        .shutdown(now);
    pair.until(|p| p.has(0, &Event::Closed) && p.has(1, &Event::Closed));
    assert_eq!(pair.ends[1].counters().malformed, 0);
}

#[test]
fn messages_go_both_ways_and_the_round_trip_is_that_of_the_loopback() {
    let mut pair = Pair::up();
    for end in 0..2 {
        let now = pair.ends[end].now();
        let id = pair.ids[end].unwrap();
        let association = pair.ends[end].association_mut(id).unwrap();
        let text = Bytes::from(format!("from {end}"));
        association
            .send(now, 0, Data::Bytes(text), SendOptions::default())
            .unwrap();
    }
    let mut got = [Vec::new(), Vec::new()];
    pair.until(|p| {
        for (end, got) in got.iter_mut().enumerate() {
            got.extend(p.received(end));
        }
        got.iter().all(|g| !g.is_empty())
    });
    assert_eq!(got[0], [Data::Bytes("from 1".into())]);
    assert_eq!(got[1], [Data::Bytes("from 0".into())]);
    let path = pair.ends[0]
        .association(pair.ids[0].unwrap())
        .unwrap()
        .paths()
        .next()
        .unwrap();
    assert_eq!(
        (path.source, path.destination),
        (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
    );
}

#[test]
fn a_peer_that_is_not_there_is_given_up_in_real_time() {
    // it has the port, and says nothing
    let silent = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let mut client = Driver::new(DriverConfig {
        sctp: Config {
            rto_initial: Duration::from_millis(20),
            rto_min: Duration::from_millis(20),
            rto_max: Duration::from_millis(40),
            max_init_retransmits: 3,
            ..Config::default()
        },
        transport: Transport::Udp {
            local_port: 0,
            remote_port: port,
        },
        addresses: vec![Ipv6Addr::LOCALHOST],
        ..DriverConfig::default()
    })
    .unwrap();
    let start = client.now();
    let id = client.connect(&[Ipv6Addr::LOCALHOST], PORT).unwrap();
    loop {
        client.turn(Some(start + PATIENCE), &[]).unwrap();
        if let Some(event) = client.poll_event() {
            assert_eq!(event, DriverEvent::Association(id, Event::Lost));
            break;
        }
        assert!(client.now() < start + PATIENCE);
    }
    // 20, 40, 40 and 40 ms
    let waited = client.now() - start;
    assert!(waited >= Duration::from_millis(140), "{waited}");
}

#[test]
fn a_port_that_nobody_listens_at_is_given_up_at_once() {
    // a port that was free a moment ago
    let port = driver(9).udp_port().unwrap();
    let mut client = Driver::new(DriverConfig {
        transport: Transport::Udp {
            local_port: 0,
            remote_port: port,
        },
        addresses: vec![Ipv6Addr::LOCALHOST],
        ..DriverConfig::default()
    })
    .unwrap();
    let start = client.now();
    let id = client.connect(&[Ipv6Addr::LOCALHOST], PORT).unwrap();
    let mut events = Vec::new();
    while events.len() < 2 {
        client.turn(Some(start + PATIENCE), &[]).unwrap();
        events.extend(std::iter::from_fn(|| client.poll_event()));
        assert!(client.now() < start + PATIENCE, "{events:?}");
    }
    let unreachable = Event::Unreachable {
        address: Ipv6Addr::LOCALHOST,
        reason: Unreachable::Port,
    };
    let aborted = Event::Aborted { causes: Vec::new() };
    assert_eq!(
        events,
        [unreachable, aborted].map(|event| DriverEvent::Association(id, event))
    );
    // long before the INIT would be sent again
    assert!(client.now() - start < Duration::from_millis(900));
}

#[test]
fn a_turn_waits_as_long_as_it_was_told_to_and_no_longer() {
    let mut driver = driver(9);
    let start = driver.now();
    driver.turn(Some(start + Duration::from_millis(30)), &[]).unwrap();
    let waited = driver.now() - start;
    assert!(waited >= Duration::from_millis(30), "{waited}");
    assert!(waited < PATIENCE, "{waited}");
}

#[test]
fn what_is_in_the_way_is_said_in_one_line() {
    let first = driver(9);
    let config = |transport, addresses| DriverConfig {
        transport,
        addresses,
        ..DriverConfig::default()
    };
    let taken = Transport::Udp {
        local_port: first.udp_port().unwrap(),
        remote_port: 9,
    };
    let error = Driver::new(config(taken, vec![])).err().unwrap();
    assert!(matches!(error, DriverError::PortInUse(_)), "{error}");
    let free = Transport::Udp {
        local_port: 0,
        remote_port: 9,
    };
    let elsewhere: Ipv6Addr = "2001:db8:ffff::1".parse().unwrap();
    let error = Driver::new(config(free, vec![elsewhere])).err().unwrap();
    let text = error.to_string();
    assert!(
        text.starts_with("2001:db8:ffff::1 is not a usable address of this host: it has "),
        "{text}"
    );
    assert!(text.contains("::1") && !text.contains('\n'), "{text}");
}

/// A disk with room for so many bytes.
struct Disk(usize);

impl std::io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left = self.0.checked_sub(bytes.len());
        self.0 = left.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::StorageFull))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_that_cannot_be_written_says_why_whatever_else_fails() {
    let mut driver = driver(9);
    let capture = Capture::new(Box::new(Disk(300)), driver.clock()).unwrap();
    driver.set_capture(capture);
    // no socket of IPv6 alone sends to an address of IPv4
    driver
        .connect(&["::ffff:192.0.2.1".parse().unwrap()], PORT)
        .unwrap();
    let deadline = driver.now() + PATIENCE;
    while driver.counters().send_failures < 2 {
        assert!(driver.now() < deadline, "{:?}", driver.counters());
        driver.turn(Some(deadline), &[]).unwrap();
    }
    let failure = driver.last_failure().expect("packets that were not sent");
    assert_ne!(failure.kind(), std::io::ErrorKind::StorageFull);
    let why = driver
        .take_capture()
        .expect("a capture")
        .err()
        .expect("a failure");
    assert_eq!(why.kind(), std::io::ErrorKind::StorageFull);
    assert!(driver.take_capture().is_none());
}
