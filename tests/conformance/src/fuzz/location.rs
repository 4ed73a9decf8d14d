//! DNS messages and journal entries, through the location manager's client and server.

use bytes::Bytes;
use segue_proto::Instant;
use segue_proto::location::tsig::{Algorithm, FUDGE, Key, Signing, sign};
use segue_proto::location::{
    Client, ClientConfig, Datagram, Grant, KeyConfig, Name, RestoreError, Row, Server, ServerConfig,
    Transport, ZoneConfig, parse_name,
};
use segue_proto::random::Stream;
use std::net::Ipv6Addr;

const UNIX: u64 = 1_800_000_000;

/// The first byte says what the others are: a message to the server, one that its key holder has signed, an answer to
/// the client, or a row that is kept. Whatever the server has become, its rows make the same server again.
pub fn location(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    let mut server = server();
    match kind % 4 {
        0 => {
            let before: Vec<Row> = server.rows().collect();
            ask(&mut server, bytes.to_vec(), Sender::Unknown);
            assert!(server.rows().eq(before), "nobody without a key changes anything");
        }
        1 if bytes.len() >= 12 => {
            let mut message = bytes.to_vec();
            let signing = Signing {
                request_mac: None,
                time_signed: UNIX,
                fudge: FUDGE,
                error: 0,
                other: &[],
            };
            sign(&mut message, &key(), &signing);
            ask(&mut server, message.clone(), Sender::KeyHolder);
            // The retransmission changes nothing.
            let before: Vec<Row> = server.rows().collect();
            ask(&mut server, message, Sender::KeyHolder);
            assert!(server.rows().eq(before));
        }
        2 => answer(bytes),
        _ => restore(bytes),
    }
    let rows = server.rows().filter_map(|r| Some((r.key, r.value?)));
    let kept = rows.map(Ok::<_, RestoreError>);
    let again = Server::restored(config(), kept).expect("the rows of a server");
    assert!(again.rows().eq(server.rows()));
}

/// A row whose key ends where its first byte says.
fn restore(bytes: &[u8]) {
    let Some((len, rest)) = bytes.split_first() else {
        return;
    };
    let (key, value) = rest.split_at(usize::from(*len).min(rest.len()));
    let mut rows: Vec<_> = server().rows().filter_map(|r| Some((r.key, r.value?))).collect();
    rows.push((key.to_vec(), value.to_vec()));
    let kept = rows.into_iter().map(Ok::<_, RestoreError>);
    if let Ok(server) = Server::restored(config(), kept) {
        let rows = server.rows().filter_map(|r| Some((r.key, r.value?)));
        let kept = rows.map(Ok::<_, RestoreError>);
        let again = Server::restored(config(), kept).expect("the rows of a server");
        assert!(again.rows().eq(server.rows()));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Unknown,
    KeyHolder,
}

fn name(text: &str) -> Name {
    parse_name(text).expect("a name")
}

fn key() -> Key {
    Key::new(name("k"), Algorithm::HmacSha256, vec![7; 32])
}

fn server() -> Server {
    Server::new(config()).expect("a server")
}

fn config() -> ServerConfig {
    let zone = ZoneConfig::new(name("l.e"), vec![Ipv6Addr::LOCALHOST]).expect("a zone");
    let grants = vec![Grant {
        name: name("l.e"),
        below: true,
    }];
    let config = ServerConfig::new(vec![zone], vec![KeyConfig { key: key(), grants }]);
    ServerConfig {
        unix_at_zero: UNIX,
        ..config
    }
}

fn ask(server: &mut Server, message: Vec<u8>, sender: Sender) {
    let asked = message.len();
    let datagram = Datagram {
        peer: Ipv6Addr::LOCALHOST,
        peer_port: 50_000,
        local_port: 53,
        data: message.into(),
    };
    let answered = server.handle_message(Instant::ZERO, Transport::Udp, &datagram);
    let answer = server.poll_answer();
    assert_eq!(answer.is_some(), answered);
    let Some(answer) = answer else { return };
    let data = answer.datagram.data;
    // A signature may come on top of what a requestor without EDNS takes, and no more.
    assert!((12..=1232 + 256).contains(&data.len()), "{} bytes", data.len());
    // Only what is kept, or the SOA that says that there is nothing, is longer than the question.
    let records = u16::from_be_bytes([data[6], data[7]]) + u16::from_be_bytes([data[8], data[9]]);
    if sender == Sender::Unknown && records == 0 {
        assert!(data.len() <= asked, "{} bytes to {asked}", data.len());
    }
}

/// As the answer to a look-up and to an update, with the right id.
fn answer(bytes: &[u8]) {
    let config = ClientConfig {
        record: Some((name("l.e"), name("m.l.e"))),
        cache: true,
        ..ClientConfig::new(vec![(Ipv6Addr::LOCALHOST, 53)])
    };
    for signed in [None, Some(key())] {
        let config = ClientConfig {
            key: signed,
            ..config.clone()
        };
        let mut client = Client::new(config, Box::new(Stream::new(1, "fuzz"))).expect("a client");
        client.look_up(Instant::ZERO, &name("m.l.e"));
        client.update(Instant::ZERO, Ipv6Addr::LOCALHOST);
        while let Some(asked) = client.poll_transmit() {
            let mut data = bytes.to_vec();
            for (to, from) in data.iter_mut().zip(&asked.data[..2]) {
                *to = *from;
            }
            client.handle_datagram(
                Instant::ZERO,
                &Datagram {
                    data: Bytes::from(data),
                    ..asked
                },
            );
            while client.poll_event().is_some() {}
        }
        client.handle_timeout(Instant::ZERO);
    }
}
