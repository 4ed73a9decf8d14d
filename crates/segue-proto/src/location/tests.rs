//! A client and a server that talk to each other, and what becomes of messages that are not as they should be.

mod attacks;
mod exchange;
mod locators;
mod server;
mod signatures;

use super::message::{DnsMessage, Edns, Header, Question, Rdata, Record};
use super::tsig::{Algorithm, Key, Signing};
use super::*;
use crate::random::Stream;
use crate::time::{Duration, Instant};
use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use segue_wire::ilnp::{Locator, Nid};

const UNIX: u64 = 1_800_000_000;
const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x53);
const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const CELL_1: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
const CELL_2: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);

fn name(text: &str) -> Name {
    parse_name(text).expect("a name")
}

fn key() -> Key {
    Key::new(name("mh-key"), Algorithm::HmacSha256, vec![7; 32])
}

fn zone_config() -> ZoneConfig {
    ZoneConfig::new(name("loc.example"), vec![SERVER]).expect("a zone")
}

fn server_config() -> ServerConfig {
    let grants = vec![Grant {
        name: name("mh.loc.example"),
        below: false,
    }];
    ServerConfig {
        unix_at_zero: UNIX,
        ..ServerConfig::new(vec![zone_config()], vec![KeyConfig { key: key(), grants }])
    }
}

fn client_config() -> ClientConfig {
    ClientConfig {
        record: Some((name("loc.example"), name("mh.loc.example"))),
        key: Some(key()),
        unix_at_zero: UNIX,
        ..ClientConfig::new(vec![(SERVER, PORT)])
    }
}

fn client(config: ClientConfig) -> Client {
    Client::new(config, Box::new(Stream::new(1, "client"))).expect("a client")
}

fn server(config: ServerConfig) -> Server {
    Server::new(config).expect("a server")
}

/// A server that goes on from rows.
fn restored(config: ServerConfig, rows: impl IntoIterator<Item = Row>) -> Result<Server, RestoreError> {
    let kept = rows.into_iter().filter_map(|row| Some(Ok((row.key, row.value?))));
    Server::restored(config, kept)
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// What a server says to one message.
fn ask(server: &mut Server, now: Instant, data: &[u8]) -> Option<Bytes> {
    let datagram = Datagram {
        peer: HOST,
        peer_port: 50_000,
        local_port: PORT,
        data: Bytes::copy_from_slice(data),
    };
    server.handle_message(now, Transport::Udp, &datagram);
    let answer = server.poll_answer().map(|a| a.datagram.data);
    assert_eq!(server.poll_answer(), None);
    answer
}

/// The same over TCP.
fn ask_tcp(server: &mut Server, now: Instant, data: &[u8]) -> Option<Bytes> {
    let datagram = Datagram {
        peer: HOST,
        peer_port: 50_000,
        local_port: PORT,
        data: Bytes::copy_from_slice(data),
    };
    server.handle_message(now, Transport::Tcp(0), &datagram);
    server.poll_answer().map(|a| a.datagram.data)
}

/// The answer on its way back.
fn back(asked: &Datagram, data: Bytes) -> Datagram {
    Datagram {
        data,
        ..asked.clone()
    }
}

/// Carries everything both ways until there is nothing more, and returns the client's events.
fn exchange(client: &mut Client, server: &mut Server, now: Instant) -> Vec<ClientEvent> {
    while let Some(datagram) = client.poll_transmit() {
        if let Some(answer) = ask(server, now, &datagram.data) {
            client.handle_datagram(now, &back(&datagram, answer));
        }
    }
    core::iter::from_fn(|| client.poll_event()).collect()
}

fn resolved(events: &[ClientEvent]) -> Vec<Ipv6Addr> {
    match events {
        [ClientEvent::Resolved { addresses, .. }] => addresses.clone(),
        other => panic!("expected an address: {other:?}"),
    }
}

/// An update of `mh.loc.example` with these sections, signed with `key` at `unix`.
fn update(key: &Key, unix: u64, prerequisites: Vec<Record>, updates: Vec<Record>) -> Vec<u8> {
    let message = DnsMessage {
        questions: vec![Question {
            name: name("loc.example"),
            rtype: Rtype::SOA,
            class: Class::IN,
        }],
        answer: prerequisites,
        authority: updates,
        ..DnsMessage::new(Header::request(77, Opcode::UPDATE))
    };
    signed(message, key, unix)
}

fn signed(message: DnsMessage, key: &Key, unix: u64) -> Vec<u8> {
    let mut bytes = message.emit(65_535).expect("a message");
    let signing = Signing {
        request_mac: None,
        time_signed: unix,
        fudge: tsig::FUDGE,
        error: 0,
        other: &[],
    };
    tsig::sign(&mut bytes, key, &signing);
    bytes
}

fn record(at: &str, class: Class, rtype: Rtype, ttl: u32, rdata: &[u8]) -> Record {
    Record {
        name: name(at),
        rtype,
        class,
        ttl,
        rdata: Rdata::opaque(rdata.to_vec()),
    }
}

fn aaaa(address: Ipv6Addr) -> Record {
    record("mh.loc.example", Class::IN, Rtype::AAAA, 5, &address.octets())
}

fn query(qname: &str, rtype: Rtype) -> Vec<u8> {
    let mut message = DnsMessage::new(Header::request(5, Opcode::QUERY));
    message.questions.push(Question {
        name: name(qname),
        rtype,
        class: Class::IN,
    });
    message.emit(512).expect("a message")
}

fn parse(bytes: &Bytes) -> DnsMessage {
    DnsMessage::parse(bytes)
        .expect("an answer that can be read")
        .message
}

fn rcode(server: &mut Server, now: Instant, data: &[u8]) -> Rcode {
    parse(&ask(server, now, data).expect("an answer")).header.rcode
}

/// A server that has the record of the mobile host.
fn server_with_record() -> Server {
    let mut s = server(server_config());
    let mut c = client(client_config());
    c.update(at(0), CELL_1);
    let events = exchange(&mut c, &mut s, at(0));
    assert!(matches!(
        events[..],
        [ClientEvent::Updated {
            address: Some(CELL_1),
            ..
        }]
    ));
    s
}
