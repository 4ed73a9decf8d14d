//! DNS messages of the location manager, at a server and at a client.

use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_proto::location::tsig::{Algorithm, Key, Signing, sign};
use segue_proto::location::{
    Client, ClientConfig, Datagram, Grant, KeyConfig, Name, PORT, Server, ServerConfig, Transport,
    ZoneConfig, parse_name,
};
use segue_proto::random::Stream;
use segue_proto::{Duration, Instant};

/// Answers to one message, and questions about one name, at most.
const MOST: usize = 64;

/// The first byte says who takes the rest: a server over UDP or TCP, a server behind a good signature, a server that reads
/// its journal, or a client that has asked.
///
/// # Panics
/// If a server answers more than once, answers what cannot be an answer, or loses what it has told its journal; if a
/// client does not come to rest.
pub fn dns(bytes: &[u8]) {
    let Some((&how, rest)) = bytes.split_first() else {
        return;
    };
    match how % 5 {
        0 => serve(Bytes::copy_from_slice(rest), Transport::Udp),
        1 => serve(Bytes::copy_from_slice(rest), Transport::Tcp(1)),
        2 => {
            let mut message = rest.to_vec();
            if message.len() >= 12 {
                let signing = Signing {
                    time_signed: 0,
                    fudge: 300,
                    request_mac: None,
                    error: 0,
                    other: &[],
                };
                sign(&mut message, &key(), &signing);
            }
            serve(message.into(), Transport::Tcp(1));
        }
        3 => {
            let _ = server().replay(rest);
        }
        _ => ask(rest),
    }
}

fn name(text: &str) -> Name {
    parse_name(text).expect("a name")
}

fn key() -> Key {
    Key::new(
        name("k.example"),
        Algorithm::HmacSha256,
        b"a secret of 32 bytes, or so it is".to_vec(),
    )
}

fn server() -> Server {
    let zone = ZoneConfig::new(name("example"), vec![Ipv6Addr::LOCALHOST]).expect("a zone");
    let keys = vec![KeyConfig {
        key: key(),
        grants: vec![Grant {
            name: name("example"),
            below: true,
        }],
    }];
    let config = ServerConfig {
        journal: true,
        ..ServerConfig::new(vec![zone], keys)
    };
    Server::new(config).expect("a server")
}

fn datagram(data: Bytes, local_port: u16) -> Datagram {
    Datagram {
        peer: Ipv6Addr::LOCALHOST,
        peer_port: PORT,
        local_port,
        data,
    }
}

fn serve(data: Bytes, transport: Transport) {
    let mut server = server();
    let id = data.get(..2).map(Bytes::copy_from_slice);
    let taken = server.handle_message(Instant::ZERO, transport, &datagram(data, PORT));
    let mut again = self::server();
    while let Some(entry) = server.poll_journal() {
        again.replay(&entry.bytes).expect("an entry that it wrote itself");
        server.handle_durable(entry.number);
    }
    let mut answers = 0;
    while let Some(answer) = server.poll_answer() {
        answers += 1;
        let data = answer.datagram.data;
        assert_eq!(data.get(..2), id.as_deref(), "the answer's ID");
        assert!(data[2] & 0x80 != 0, "an answer says that it is one");
    }
    assert_eq!(answers, usize::from(taken));
    assert_eq!(
        server.snapshot(),
        again.snapshot(),
        "the journal holds everything"
    );
}

fn ask(answer: &[u8]) {
    let mut config = ClientConfig::new(vec![(Ipv6Addr::LOCALHOST, PORT)]);
    config.record = Some((name("example"), name("mh.example")));
    config.attempts = Some(3);
    let Ok(mut client) = Client::new(config, Box::new(Stream::new(1, "client"))) else {
        return;
    };
    let mut now = Instant::ZERO;
    client.look_up(now, &name("cn.example"));
    client.update(now, Ipv6Addr::LOCALHOST);
    for _ in 0..MOST {
        while let Some(question) = client.poll_transmit() {
            // the bytes, as an answer to this question
            let mut data = answer.to_vec();
            for (to, from) in data.iter_mut().zip(question.data.iter().take(2)) {
                *to = *from;
            }
            if let Some(flags) = data.get_mut(2) {
                *flags |= 0x80;
            }
            client.handle_datagram(now, &datagram(data.into(), question.local_port));
        }
        while client.poll_event().is_some() {}
        let Some(next) = client.poll_timeout() else { return };
        assert!(next > now || now == Instant::ZERO, "a timer stands still");
        now = next.max(now + Duration::from_nanos(1));
        client.handle_timeout(now);
    }
}
