//! Seeds for streams that begin anew while messages are given up (RFC 6525 and RFC 3758 together): two hosts send each other
//! messages, some of which may be given up, over a network that loses and reorders; either has its streams, the peer's, or the
//! whole association reset now and then, and does not read for a while. Each message comes at most once, whole, and in its
//! turn within its stream, whatever was reset in between; when the network has become calm, all have come that are reliable; and
//! then nothing is left of the others.

use crate::ordeal::{self, Adverse};
use crate::transcript::Transcript;
use crate::world::{A, B, World, address};
use segue_proto::random::Stream;
use segue_proto::sctp::{Config, Event, Message, Reliability, SendOptions, StreamRequest};
use segue_proto::{Duration, Instant};
use segue_wire::Data;
use std::collections::BTreeMap;

/// How many there are.
pub const SEEDS: u64 = 100;
/// Streams that messages are sent on.
const STREAMS: u64 = 4;
/// Virtual time after which a calm network must have delivered everything.
const PATIENCE: Duration = Duration::from_secs(600);

/// How a seed went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Messages delivered.
    pub messages: usize,
    /// Messages of which some was sent and that were given up.
    pub given_up: usize,
    /// Associations that were reset.
    pub association_resets: usize,
    /// Requests for streams to be reset that were granted.
    pub stream_resets: usize,
}

/// Plays a seed.
///
/// # Errors
/// What went wrong, in words.
///
/// # Panics
/// If an endpoint breaks one of its invariants.
pub fn run(seed: u64) -> Result<Report, String> {
    Renewal::new(seed).play()
}

/// Plays a seed, whatever comes of it, and writes what was sent to `transcript`.
///
/// # Panics
/// If an endpoint breaks one of its invariants.
#[must_use]
pub fn transcribe(seed: u64, transcript: Transcript) -> Transcript {
    let mut renewal = Renewal::new(seed);
    renewal.world.transcript = Some(transcript);
    // what went wrong is for the tests to say
    let _ = renewal.play();
    renewal.world.transcript.take().unwrap_or_default()
}

/// What a host has sent, by payload protocol identifiers that count up, and what of it came out.
#[derive(Default)]
struct Book {
    sent: Vec<Sent>,
    /// The last ordered message of each stream that came out.
    last: BTreeMap<u16, u32>,
    /// Reliable messages that have not come out.
    awaited: usize,
    received: usize,
}

struct Sent {
    stream_id: u16,
    unordered: bool,
    len: u32,
    reliable: bool,
    /// Bytes that came out, once any did.
    came: Option<u32>,
}

impl Book {
    fn receive(&mut self, message: &Message) -> Result<(), String> {
        let id = message.payload_protocol_id;
        let Some(sent) = self.sent.get_mut(id as usize) else {
            return Err(format!("message {id} was never sent"));
        };
        if (sent.stream_id, sent.unordered) != (message.stream_id, message.unordered) {
            return Err(format!("message {id} came on another stream or in another order"));
        }
        if message.first != sent.came.is_none() {
            return Err(format!(
                "message {id} began twice, or goes on without having begun"
            ));
        }
        if message.first
            && !message.unordered
            && let Some(last) = self.last.insert(message.stream_id, id)
            && last > id
        {
            let stream_id = message.stream_id;
            return Err(format!("message {id} of stream {stream_id} came behind {last}"));
        }
        let mut at = sent.came.unwrap_or_default();
        for part in &message.parts {
            if !part.is_synthetic_at(offset(id) + u64::from(at)) {
                return Err(format!("message {id} holds wrong bytes"));
            }
            at += part.len() as u32;
        }
        sent.came = Some(at);
        if message.last {
            if at != sent.len {
                return Err(format!("message {id} is not of {} bytes", sent.len));
            }
            self.awaited -= usize::from(sent.reliable);
            self.received += 1;
        }
        Ok(())
    }
}

/// Where a message's bytes begin in the synthetic sequence: no two messages of a host share any.
fn offset(id: u32) -> u64 {
    u64::from(id) << 24
}

struct Renewal {
    world: World<Adverse>,
    random: Stream,
    configs: [Config; 2],
    /// By the sending host.
    books: [Book; 2],
    addresses: u16,
    report: Report,
}

impl Renewal {
    fn new(seed: u64) -> Self {
        let mut random = Stream::new(seed, "renewal");
        let configs = [config(seed, &mut random), config(seed, &mut random)];
        let addresses = [1 + random.below(2) as u16, 1 + random.below(2) as u16];
        let network = Adverse::drawn(seed, &mut random, None);
        Self {
            world: World::new(configs.clone(), addresses, network, seed),
            random,
            configs,
            books: Default::default(),
            addresses: addresses[B],
            report: Report::default(),
        }
    }

    fn play(&mut self) -> Result<Report, String> {
        self.world.connect();
        let end = Instant::ZERO + Duration::from_millis(10_000 + self.random.below(30_000));
        while self.world.now < end {
            let pause = Duration::from_millis(1 + self.random.below(300));
            self.world.run_until(self.world.now + pause);
            self.look()?;
            match self.random.below(20) {
                0..3 => self.reset(),
                3..5 => {
                    let host = self.random.below(2) as usize;
                    self.world.reading[host] = !self.world.reading[host];
                    self.world.drain();
                }
                5 => {
                    let to = address(B, 1 + self.random.below(u64::from(self.addresses)) as u16);
                    self.world
                        .command(A, |a, now| a.set_primary_path(now, to).is_ok());
                }
                _ => self.send(),
            }
        }
        self.world.network.calm();
        self.world.reading = [true; 2];
        self.world.drain();
        let patience = self.world.now + PATIENCE;
        while !self.is_quiet() {
            self.look()?;
            if !self.world.step(patience) {
                return Err(self.what_is_left());
            }
        }
        self.look()?;
        self.report.messages = self.books.iter().map(|book| book.received).sum();
        Ok(self.report)
    }

    /// Everything reliable has come, and nothing is held of anything else.
    fn is_quiet(&self) -> bool {
        let held_nothing = |host: usize| {
            self.world.association(host).is_some_and(|association| {
                association.is_sender_dry() && association.a_rwnd() == self.configs[host].receive_buffer
            })
        };
        self.books.iter().all(|book| book.awaited == 0) && held_nothing(A) && held_nothing(B)
    }

    fn what_is_left(&self) -> String {
        let [a, b] = self.books.each_ref().map(|book| {
            let sent = book.sent.iter().enumerate();
            let missing = sent.filter(|(_, s)| s.reliable && s.came.is_none_or(|came| came < s.len));
            missing.map(|(id, _)| id).take(5).collect::<Vec<_>>()
        });
        let [window_a, window_b] = [A, B].map(|host| {
            self.world
                .association(host)
                .map(|association| association.a_rwnd())
        });
        format!(
            "{PATIENCE:?} after the network became calm messages {a:?} of host {A} and {b:?} of host {B} are missing, and the \
             windows are {window_a:?} and {window_b:?}"
        )
    }

    /// Looks at what the two ends have told and delivered.
    fn look(&mut self) -> Result<(), String> {
        for host in [A, B] {
            while let Some(message) = self.world.messages[host].pop_front() {
                let book = &mut self.books[1 - host];
                book.receive(&message)
                    .map_err(|what| format!("host {host} at {:?}: {what}", self.world.now))?;
            }
            while let Some(event) = self.world.events[host].pop_front() {
                match event {
                    Event::MessageAbandoned { sent, .. } => self.report.given_up += usize::from(sent),
                    Event::StreamRequestAnswered {
                        request,
                        outcome: Ok(()),
                    } => match request {
                        StreamRequest::ResetAssociation => self.report.association_resets += 1,
                        _ => self.report.stream_resets += 1,
                    },
                    Event::Lost | Event::Closed | Event::Aborted { .. } => {
                        return Err(format!("host {host} at {:?}: {event:?}", self.world.now));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// A user sends a few messages, each as reliable as it likes; now and then many that are very small.
    fn send(&mut self) {
        let host = self.random.below(2) as usize;
        let small = self.random.chance(0.1);
        let count = 1 + self.random.below(if small { 300 } else { 12 });
        for _ in 0..count {
            let longest = match self.random.below(10) {
                _ if small => 40,
                0 => 20_000,
                _ => 1500,
            };
            let len = 1 + self.random.below(longest) as u32;
            let reliability = match self.random.below(6) {
                0 => Reliability::Timed {
                    lifetime: Duration::from_millis(self.random.below(800)),
                },
                1 | 2 => Reliability::Retransmissions {
                    limit: self.random.below(2) as u32,
                },
                3 => Reliability::Priority {
                    priority: self.random.below(4) as u32,
                },
                _ => Reliability::Full,
            };
            let stream_id = self.random.below(STREAMS) as u16;
            let unordered = self.random.chance(0.2);
            let id = self.books[host].sent.len() as u32;
            let options = SendOptions {
                unordered,
                payload_protocol_id: id,
                reliability,
                ..SendOptions::default()
            };
            let data = Data::Synthetic {
                offset: offset(id),
                len,
            };
            let sent = self
                .world
                .command(host, |a, now| a.send(now, stream_id, data, options).is_ok());
            if sent == Some(true) {
                let reliable = reliability == Reliability::Full;
                let book = &mut self.books[host];
                book.awaited += usize::from(reliable);
                book.sent.push(Sent {
                    stream_id,
                    unordered,
                    len,
                    reliable,
                    came: None,
                });
            }
        }
    }

    /// A user has streams begin anew, those of one direction or all of both.
    fn reset(&mut self) {
        let host = self.random.below(2) as usize;
        let streams: Vec<u16> = (0..self.random.below(3))
            .map(|_| self.random.below(STREAMS) as u16)
            .collect();
        let what = self.random.below(4);
        self.world.command(host, |a, now| match what {
            0 => a.reset_streams(now, &streams).is_ok(),
            1 => a.reset_incoming_streams(now, &streams).is_ok(),
            _ => a.reset_association(now).is_ok(),
        });
    }
}

/// A configuration of the ordeals, with data on all paths at once in every second.
fn config(seed: u64, random: &mut Stream) -> Config {
    let mut config = ordeal::config(random);
    if random.chance(0.5) {
        config.multipath = Some(ordeal::multipath(&mut Stream::new(
            seed,
            "multipath of a renewal",
        )));
    }
    config.partial_delivery_point = [None, Some(u32::MAX), Some(4000)][random.below(3) as usize];
    config
}
