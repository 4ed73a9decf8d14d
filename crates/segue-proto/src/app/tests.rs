use super::*;
use crate::random::Stream;
use crate::units::{BitRate, Bytes};
use bytes::Bytes as Buffer;
use segue_wire::Data;
use std::collections::VecDeque;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A connection with a send buffer of so many messages.
#[derive(Default)]
struct Pipe {
    room: usize,
    sent: VecDeque<(Instant, Data)>,
    arrived: VecDeque<Data>,
    /// Of what has arrived, so many are pieces of messages that go on.
    unfinished: usize,
    closed: bool,
}

impl Connection for Pipe {
    fn send(&mut self, now: Instant, data: Data) -> Result<(), SendRefused> {
        if self.closed {
            return Err(SendRefused::Closed);
        }
        if self.room == 0 {
            return Err(SendRefused::Full);
        }
        self.room -= 1;
        self.sent.push_back((now, data));
        Ok(())
    }
    fn max_message(&self) -> u32 {
        1000
    }
    fn recv(&mut self, take: impl FnOnce(&[Data], bool)) -> bool {
        let Some(data) = self.arrived.pop_front() else {
            return false;
        };
        let last = self.unfinished == 0;
        self.unfinished -= usize::from(!last);
        take(&[data], last);
        true
    }
    fn close(&mut self, _now: Instant) {
        self.closed = true;
    }
}

fn application(kind: &Kind) -> Application {
    Application::new(kind, || Stream::new(1, "application"))
}

fn synthetic(offset: u64, len: u32) -> Data {
    Data::Synthetic { offset, len }
}

fn events(app: &mut Application) -> Vec<AppEvent> {
    core::iter::from_fn(|| app.poll_event()).collect()
}

#[test]
fn bulk_fills_the_buffer_and_goes_on_where_it_stopped() {
    let mut pipe = Pipe {
        room: 2,
        ..Pipe::default()
    };
    let mut app = application(&Kind::Bulk {
        total: Some(Bytes::new(2500)),
        message: None,
    });
    app.on_connected(at(0), &mut pipe);
    assert_eq!(
        pipe.sent,
        [(at(0), synthetic(0, 1000)), (at(0), synthetic(1000, 1000))]
    );
    app.on_dry(at(1), &mut pipe);
    assert_eq!(events(&mut app), [AppEvent::Connected]);
    pipe.room = 9;
    app.on_writable(at(2), &mut pipe);
    assert_eq!(pipe.sent[2], (at(2), synthetic(2000, 500)));
    assert!(!pipe.closed);
    app.on_dry(at(3), &mut pipe);
    app.on_dry(at(3), &mut pipe);
    assert_eq!(events(&mut app), [AppEvent::TransferComplete { bytes: 2500 }]);
    assert!(pipe.closed);
    app.on_closed(at(4));
    assert_eq!(events(&mut app), [AppEvent::Disconnected]);
}

#[test]
fn bulk_without_end_never_completes() {
    let mut pipe = Pipe {
        room: 3,
        ..Pipe::default()
    };
    let mut app = application(&Kind::Bulk {
        total: None,
        message: Some(Bytes::new(100)),
    });
    app.on_connected(at(0), &mut pipe);
    app.on_dry(at(1), &mut pipe);
    assert_eq!(app.stats().bytes_sent, 300);
    assert_eq!(events(&mut app), [AppEvent::Connected]);
}

#[test]
fn a_message_that_comes_in_pieces_is_one_message() {
    let mut pipe = Pipe {
        unfinished: 2,
        ..Pipe::default()
    };
    let mut app = application(&Kind::Sink);
    app.on_connected(at(0), &mut pipe);
    // the second piece is wrong, and the end comes later
    pipe.arrived.extend([synthetic(0, 1000), synthetic(7, 1000)]);
    app.on_readable(at(5), &mut pipe);
    let stats = app.stats();
    assert_eq!((stats.messages_received, stats.bytes_received), (0, 2000));
    pipe.arrived.extend([synthetic(2000, 10), synthetic(2010, 10)]);
    app.on_readable(at(6), &mut pipe);
    let stats = app.stats();
    assert_eq!((stats.messages_received, stats.messages_corrupt), (2, 1));
    assert_eq!(stats.bytes_received, 2020);
}

#[test]
fn sink_counts_and_checks_every_byte() {
    let mut pipe = Pipe::default();
    let mut app = application(&Kind::Sink);
    app.on_connected(at(0), &mut pipe);
    let mut real = Vec::new();
    synthetic(1000, 50).emit(&mut real);
    pipe.arrived
        .extend([synthetic(0, 1000), Data::Bytes(Buffer::from(real))]);
    app.on_readable(at(5), &mut pipe);
    assert_eq!(app.stats().messages_corrupt, 0);
    pipe.arrived.push_back(synthetic(1051, 10));
    app.on_readable(at(9), &mut pipe);
    let stats = app.stats();
    assert_eq!(
        (
            stats.bytes_received,
            stats.messages_received,
            stats.messages_corrupt
        ),
        (1060, 3, 1)
    );
    assert_eq!(
        (stats.first_received, stats.last_received),
        (Some(at(5)), Some(at(9)))
    );
    assert_eq!(events(&mut app), [AppEvent::Connected, AppEvent::FirstByte]);
}

#[test]
fn constant_rate_keeps_its_pace_and_skips_when_there_is_no_room() {
    let kind = Kind::ConstantRate {
        rate: BitRate::from_bits_per_second(80_000),
        message: Bytes::new(100),
        total: Some(Bytes::new(400)),
    };
    let mut pipe = Pipe {
        room: 2,
        ..Pipe::default()
    };
    let mut app = application(&kind);
    app.on_connected(at(7), &mut pipe);
    for ms in [17, 27, 37] {
        assert_eq!(app.poll_timeout(), Some(at(ms)));
        app.on_timeout(at(ms), &mut pipe);
    }
    assert_eq!(app.stats().messages_skipped, 2);
    pipe.room = 9;
    app.on_timeout(at(47), &mut pipe);
    app.on_timeout(at(57), &mut pipe);
    assert_eq!(app.poll_timeout(), None);
    let times: Vec<_> = pipe.sent.iter().map(|s| s.0).collect();
    assert_eq!(times, [at(7), at(17), at(47), at(57)]);
    app.on_dry(at(60), &mut pipe);
    assert!(events(&mut app).contains(&AppEvent::TransferComplete { bytes: 400 }));
}

#[test]
fn client_and_server_exchange_requests_and_responses() {
    let mut client = application(&Kind::RequestClient {
        request: Bytes::new(300),
        response: Bytes::new(2500),
        think: Duration::from_millis(10),
        count: Some(2),
    });
    let mut server = application(&Kind::RequestServer {
        request: Bytes::new(300),
        response: Bytes::new(2500),
    });
    let mut near = Pipe {
        room: 100,
        ..Pipe::default()
    };
    let mut far = Pipe {
        room: 100,
        ..Pipe::default()
    };
    client.on_connected(at(0), &mut near);
    server.on_connected(at(0), &mut far);
    for ms in [0, 20] {
        client.on_timeout(at(ms), &mut near);
        far.arrived.extend(near.sent.drain(..).map(|s| s.1));
        server.on_readable(at(ms + 3), &mut far);
        near.arrived.extend(far.sent.drain(..).map(|s| s.1));
        client.on_readable(at(ms + 6), &mut near);
        assert_eq!(client.poll_timeout(), (ms == 0).then_some(at(16)));
    }
    let stats = client.stats();
    assert_eq!(
        (stats.responses, stats.response_time),
        (2, Duration::from_millis(12))
    );
    assert_eq!(
        (
            stats.bytes_received,
            stats.messages_received,
            stats.messages_corrupt
        ),
        (5000, 6, 0)
    );
    assert!(near.closed);
    let latency = Duration::from_millis(6);
    assert_eq!(
        events(&mut client),
        [
            AppEvent::Connected,
            AppEvent::FirstByte,
            AppEvent::ResponseReceived { latency },
            AppEvent::ResponseReceived { latency },
            AppEvent::TransferComplete { bytes: 600 }
        ]
    );
}

#[test]
fn kinds_are_read_from_tables_and_checked() {
    use serde::Deserialize;
    use serde::de::value::{Error, MapDeserializer};
    let read = |entries: &[(&'static str, &'static str)]| {
        Kind::deserialize(MapDeserializer::<_, Error>::new(entries.iter().copied()))
    };
    assert_eq!(
        read(&[("kind", "bulk")]),
        Ok(Kind::Bulk {
            total: None,
            message: None
        })
    );
    assert_eq!(
        read(&[("kind", "bulk"), ("total", "1 MB")]),
        Ok(Kind::Bulk {
            total: Some(Bytes::new(1_000_000)),
            message: None
        })
    );
    assert!(read(&[("kind", "bulk"), ("totl", "1 MB")]).is_err());
    let kind = read(&[
        ("kind", "constant-rate"),
        ("rate", "0 bit/s"),
        ("message", "100 B"),
    ])
    .unwrap();
    let config = Config {
        transport: Transport::Sctp,
        role: Role::Listen,
        kind,
    };
    assert_eq!(config.check().unwrap_err(), "rate: expected more than zero");
}

#[test]
fn what_would_never_send_anything_is_refused_over_every_transport() {
    let voice = |talk, pause| {
        Kind::Voice(VoiceConfig {
            codec: Codec::G711,
            pauses: Some((Duration::from_millis(talk), Duration::from_millis(pause))),
            lifetime: None,
        })
    };
    let on_off = |on, off| {
        Kind::OnOff(OnOffConfig {
            rate: BitRate::from_bits_per_second(8000),
            message: Bytes::new(100),
            on,
            off,
        })
    };
    let exponential = |ms| Holding::Exponential {
        mean: Duration::from_millis(ms),
    };
    let pareto = |shape| Holding::Pareto {
        mean: Duration::from_secs(1),
        shape,
    };
    let cases = [
        (voice(0, 0), Err("pauses: expected more than zero")),
        (voice(1000, 0), Err("pauses: expected more than zero")),
        (voice(1000, 1000), Ok(())),
        (
            on_off(exponential(0), exponential(0)),
            Err("on: expected more than zero"),
        ),
        (on_off(exponential(1), exponential(0)), Ok(())),
        (
            on_off(pareto(1.0), pareto(1.5)),
            Err("shape: expected more than 1"),
        ),
        (
            on_off(pareto(1.5), pareto(0.5)),
            Err("shape: expected more than 1"),
        ),
        (
            on_off(pareto(f64::NAN), pareto(1.5)),
            Err("shape: expected more than 1"),
        ),
        (on_off(pareto(1.5), pareto(1.5)), Ok(())),
    ];
    for (kind, expected) in cases {
        for transport in [Transport::Sctp, Transport::Udp] {
            let config = Config {
                transport,
                role: Role::Listen,
                kind: kind.clone(),
            };
            assert_eq!(config.check(), expected.map_err(str::to_owned), "{kind:?}");
        }
    }
}

#[test]
fn a_restart_of_the_peer_begins_everything_anew() {
    let mut pipe = Pipe {
        room: 2,
        ..Pipe::default()
    };
    let mut app = application(&Kind::Bulk {
        total: Some(Bytes::new(2500)),
        message: None,
    });
    app.on_connected(at(0), &mut pipe);
    pipe.room = 9;
    pipe.sent.clear();
    app.on_restarted(at(5), &mut pipe);
    let offsets: Vec<_> = pipe.sent.iter().map(|s| s.1.clone()).collect();
    assert_eq!(
        offsets,
        [synthetic(0, 1000), synthetic(1000, 1000), synthetic(2000, 500)]
    );
    app.on_dry(at(6), &mut pipe);
    assert_eq!(
        events(&mut app),
        [
            AppEvent::Connected,
            AppEvent::Disconnected,
            AppEvent::Connected,
            AppEvent::TransferComplete { bytes: 2500 }
        ]
    );
    assert_eq!(app.stats().bytes_sent, 4500);

    let mut sink = application(&Kind::Sink);
    sink.on_connected(at(0), &mut pipe);
    for instance in 0..2 {
        pipe.arrived.push_back(synthetic(0, 100));
        sink.on_readable(at(instance), &mut pipe);
        sink.on_restarted(at(instance), &mut pipe);
    }
    assert_eq!(
        (sink.stats().bytes_received, sink.stats().messages_corrupt),
        (200, 0)
    );
}
