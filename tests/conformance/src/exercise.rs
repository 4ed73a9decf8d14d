//! Seeds for what no ordeal has: partial reliability, stream reconfiguration, authenticated data, NR-SACK, path MTU
//! discovery over ways that carry less, users that abort, and hosts that restart. Nothing is asked of them but that no
//! invariant breaks, which [`World`] sees to: they are there for their [`Transcript`]s.

use crate::ordeal::{self, Adverse};
use crate::transcript::Transcript;
use crate::world::{A, B, PORT, World, address, local};
use segue_proto::random::Stream;
use segue_proto::sctp::{AuthConfig, Config, Endpoint, PmtuDiscovery, Reliability, SendOptions, SharedKey};
use segue_proto::{Duration, Instant};
use segue_wire::Data;

/// How many there are.
pub const SEEDS: u64 = 400;
/// Streams that messages are sent on.
const STREAMS: u64 = 6;
/// Types of the chunks that may have to be authenticated: DATA, SACK and RE-CONFIG.
const AUTHENTICATED: [u8; 3] = [0, 3, 130];

/// Plays a seed, and writes what was sent to `transcript`.
///
/// # Panics
/// If an endpoint breaks one of its invariants.
#[must_use]
pub fn play(seed: u64, transcript: Transcript) -> Transcript {
    let mut random = Stream::new(seed, "exercise");
    let secured = random.chance(0.5);
    let configs = [
        config(seed, &mut random, secured),
        config(seed, &mut random, secured),
    ];
    let addresses = [1 + random.below(2) as u16, 1 + random.below(3) as u16];
    let carries = [None, Some(1280), Some(1400)][random.below(3) as usize];
    let network = Adverse::drawn(seed, &mut random, carries);
    let mut world = World::new(configs.clone(), addresses, network, seed);
    world.transcript = Some(transcript);
    world.connect();
    let end = Instant::ZERO + Duration::from_millis(5000 + random.below(25_000));
    let (mut offset, mut lives) = (0, 1);
    while world.now < end {
        let pause = Duration::from_millis(1 + random.below(400));
        world.run_until(world.now + pause);
        for host in [A, B] {
            world.messages[host].clear();
            world.events[host].clear();
        }
        match random.below(40) {
            0..2 => reset(&mut world, &mut random),
            2 => {
                // the host has forgotten everything, and calls again from the same port
                lives += 1;
                world.ends[A] = Endpoint::new(
                    configs[A].clone(),
                    PORT,
                    Box::new(Stream::new(seed, &format!("secrets a {lives}"))),
                );
                for n in 1..=addresses[A] {
                    world.ends[A].add_local_address(local(A, n));
                }
                world.ids[A] = None;
                world.connect();
            }
            3 => {
                let host = random.below(2) as usize;
                world.command(host, |a, now| a.abort(now, "enough".into()));
            }
            4 => {
                let host = random.below(2) as usize;
                world.command(host, |a, now| a.shutdown(now));
            }
            5..8 if world.ids[A]
                .and_then(|id| world.ends[A].association(id))
                .is_none() =>
            {
                world.connect()
            }
            8..10 => {
                let host = random.below(2) as usize;
                world.reading[host] = !world.reading[host];
                world.drain();
            }
            10..14 => {
                let to = address(B, 1 + random.below(u64::from(addresses[B])) as u16);
                world.command(A, |a, now| a.set_primary_path(now, to).is_ok());
            }
            _ => send(&mut world, &mut random, &mut offset),
        }
    }
    world.network.calm();
    world.reading = [true; 2];
    world.drain();
    world.run_until(end + Duration::from_secs(60));
    world.transcript.take().unwrap_or_default()
}

/// A user sends a few messages, each as reliable as it likes.
fn send(world: &mut World<Adverse>, random: &mut Stream, offset: &mut u64) {
    let host = random.below(2) as usize;
    for _ in 0..=random.below(12) {
        let longest = if random.chance(0.1) { 20_000 } else { 1500 };
        let len = 1 + random.below(longest) as u32;
        let data = Data::Synthetic { offset: *offset, len };
        *offset += u64::from(len);
        let reliability = match random.below(5) {
            0 => Reliability::Timed {
                lifetime: Duration::from_millis(random.below(800)),
            },
            1 => Reliability::Retransmissions {
                limit: random.below(3) as u32,
            },
            2 => Reliability::Priority {
                priority: random.below(4) as u32,
            },
            _ => Reliability::Full,
        };
        let options = SendOptions {
            unordered: random.chance(0.2),
            reliability,
            sack_immediately: random.chance(0.1),
            ..SendOptions::default()
        };
        let stream = random.below(STREAMS) as u16;
        world.command(host, |a, now| a.send(now, stream, data, options).is_ok());
    }
}

/// A user has streams begin anew, or adds some.
fn reset(world: &mut World<Adverse>, random: &mut Stream) {
    let host = random.below(2) as usize;
    let streams: Vec<u16> = (0..random.below(3))
        .map(|_| random.below(STREAMS) as u16)
        .collect();
    let what = random.below(4);
    world.command(host, |a, now| match what {
        0 => a.reset_streams(now, &streams).is_ok(),
        1 => a.reset_incoming_streams(now, &streams).is_ok(),
        2 => a.add_streams(now, 1, 1).is_ok(),
        _ => a.reset_association(now).is_ok(),
    });
}

/// A configuration of the ordeals, and what they do not have.
fn config(seed: u64, random: &mut Stream, secured: bool) -> Config {
    let mut config = ordeal::config(random);
    if random.chance(0.5) {
        config.multipath = Some(ordeal::multipath(&mut Stream::new(
            seed,
            "multipath of an exercise",
        )));
    }
    config.partial_reliability = random.chance(0.9);
    config.stream_reconfiguration = random.chance(0.9);
    config.pmtu_discovery = [
        PmtuDiscovery::None,
        PmtuDiscovery::PacketTooBig,
        PmtuDiscovery::Probing,
    ][random.below(3) as usize];
    if secured {
        config.auth = AuthConfig {
            required_chunks: AUTHENTICATED.into_iter().filter(|_| random.chance(0.5)).collect(),
            shared_keys: vec![SharedKey {
                id: 1,
                key: b"known to both".as_slice().into(),
            }],
            active_key: 1,
            ..AuthConfig::default()
        };
    }
    config
}
