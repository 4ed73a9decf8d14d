//! Whatever the network does, every byte arrives once and in order.

use crate::common::*;
use segue_proto::random::Stream;
use segue_proto::sctp::{Config, Event, Profile, SendError, SendOptions};
use segue_proto::{Duration, Instant};
use segue_wire::{Data, Payload};
use std::collections::VecDeque;

const STREAMS: u16 = 4;

/// A message to send; `index` counts within the stream, ordered and unordered apart.
#[derive(Clone, Debug)]
struct Planned {
    stream: u16,
    index: u32,
    unordered: bool,
    len: u32,
}

impl Planned {
    fn offset(&self) -> u64 {
        u64::from(self.unordered) << 60 | u64::from(self.stream) << 48 | u64::from(self.index) << 24
    }
}

/// 100 to 300 kB of messages of 1 byte to 10 kB.
fn plan(random: &mut Stream) -> VecDeque<Planned> {
    let total = 100_000 + random.below(200_000);
    let mut next = [[0u32; 2]; STREAMS as usize];
    let mut out = VecDeque::new();
    let mut bytes = 0;
    while bytes < total {
        let stream = random.below(u64::from(STREAMS)) as u16;
        let unordered = random.chance(0.1);
        let len = if random.chance(0.3) {
            1 + random.below(10_000)
        } else {
            1 + random.below(1500)
        };
        let index = &mut next[usize::from(stream)][usize::from(unordered)];
        out.push_back(Planned {
            stream,
            index: *index,
            unordered,
            len: len as u32,
        });
        *index += 1;
        bytes += len;
    }
    out
}

/// Sends what fits the buffer.
fn feed(net: &mut Net, pending: &mut VecDeque<Planned>) {
    while let Some(m) = pending.front().cloned() {
        let data = synthetic(m.offset(), m.len);
        match net.command(A, |a, now| {
            a.send(
                now,
                m.stream,
                data,
                SendOptions {
                    unordered: m.unordered,
                    payload_protocol_id: m.index,
                    ..SendOptions::default()
                },
            )
        }) {
            Ok(()) => pending.pop_front(),
            Err(SendError::BufferFull) => return,
            Err(e) => panic!("{e}"),
        };
    }
}

fn check(net: &Net, planned: &VecDeque<Planned>, seed: u64) {
    let received = &net.messages[B];
    assert_eq!(
        received.len(),
        planned.len(),
        "seed {seed}: messages lost or doubled"
    );
    for stream in 0..STREAMS {
        let sent: Vec<_> = planned
            .iter()
            .filter(|m| m.stream == stream && !m.unordered)
            .collect();
        let got: Vec<_> = received
            .iter()
            .filter(|m| m.stream_id == stream && !m.unordered)
            .collect();
        assert_eq!(sent.len(), got.len(), "seed {seed} stream {stream}");
        for (sent, got) in sent.iter().zip(got) {
            assert_eq!(
                sent.index, got.payload_protocol_id,
                "seed {seed} stream {stream}: order"
            );
            check_bytes(sent, &got.parts, seed);
        }
    }
    let mut unordered: Vec<_> = received.iter().filter(|m| m.unordered).collect();
    unordered.sort_by_key(|m| (m.stream_id, m.payload_protocol_id));
    let mut sent: Vec<_> = planned.iter().filter(|m| m.unordered).collect();
    sent.sort_by_key(|m| (m.stream, m.index));
    assert_eq!(sent.len(), unordered.len(), "seed {seed}");
    for (sent, got) in sent.iter().zip(unordered) {
        assert_eq!(
            (sent.stream, sent.index),
            (got.stream_id, got.payload_protocol_id),
            "seed {seed}"
        );
        check_bytes(sent, &got.parts, seed);
    }
}

fn check_bytes(sent: &Planned, parts: &[Data], seed: u64) {
    let mut offset = sent.offset();
    for part in parts {
        assert!(
            part.is_synthetic_at(offset),
            "seed {seed}: {sent:?} holds wrong bytes"
        );
        offset += part.len() as u64;
    }
    assert_eq!(
        offset - sent.offset(),
        u64::from(sent.len),
        "seed {seed}: {sent:?}"
    );
}

/// Losses, duplicates and reordering, each drawn per packet; 1 in 50 packets has a bit flipped.
fn hostile(net: &mut Net, seed: u64) {
    let mut random = Stream::new(seed, "network");
    let loss = 0.05 * random.uniform();
    net.rule = Box::new(move |_| {
        let mut fate = Vec::new();
        if !random.chance(loss) {
            fate.push(ms(10 + random.below(20)));
            if random.chance(0.03) {
                fate.push(ms(10 + random.below(60)));
            }
        }
        fate
    });
    let mut random = Stream::new(seed, "corruption");
    net.corrupt = Some(Box::new(move |bytes| {
        if random.chance(0.02) {
            let bit = random.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }));
    net.keep_log = false;
}

fn config_of(seed: u64) -> Config {
    let profile = [Profile::Rfc2960, Profile::Rfc4960, Profile::Rfc9260][seed as usize % 3];
    Config {
        receive_buffer: if seed.is_multiple_of(5) { 20_000 } else { 131_072 },
        send_buffer: 60_000,
        mtu: if seed.is_multiple_of(2) { 1280 } else { 1500 },
        ..Config::new(profile)
    }
}

fn run_to_end(net: &mut Net, pending: &mut VecDeque<Planned>, end: Instant, mut also: impl FnMut(&mut Net)) {
    while net.step(end) {
        feed(net, pending);
        also(net);
        if pending.is_empty() && net.association(A).is_sender_dry() {
            return;
        }
        for host in [A, B] {
            if let Some(e) = net.events[host]
                .iter()
                .find(|e| matches!(e.1, Event::Lost | Event::Aborted { .. }))
            {
                panic!("host {host} at {:?}: {:?}", e.0, e.1);
            }
        }
    }
}

#[test]
fn two_hundred_seeds_with_loss_duplication_reordering_and_corruption_deliver_every_byte_once_and_in_order() {
    let mut unparsed = 0;
    for seed in 0..200 {
        let mut net = Net::symmetric(config_of(seed), [1, 1], seed);
        hostile(&mut net, seed);
        net.connect();
        let planned = plan(&mut Stream::new(seed, "messages"));
        let mut pending = planned.clone();
        feed(&mut net, &mut pending);
        run_to_end(&mut net, &mut pending, at(4000.0), |_| {});
        assert!(
            pending.is_empty() && net.association(A).is_sender_dry(),
            "seed {seed}: not finished"
        );
        check(&net, &planned, seed);
        unparsed += net.unparsed;
    }
    assert!(unparsed > 100, "only {unparsed} packets were corrupted");
}

/// The sender's peer B moves: it adds an address, makes it primary, sends from it, and deletes the old one, over and
/// over, under the same network; what is sent to an address that B has left is lost.
#[test]
fn two_hundred_seeds_with_handovers_deliver_every_byte_once_and_in_order() {
    let mut moves = 0;
    for seed in 0..200 {
        let mut net = Net::symmetric(config_of(seed), [1, 1], seed);
        hostile(&mut net, seed);
        let mut network = core::mem::replace(&mut net.rule, Box::new(|_| Vec::new()));
        let present = std::rc::Rc::new(std::cell::RefCell::new((address(B, 1), address(B, 1))));
        let reach = present.clone();
        net.rule = Box::new(move |d| {
            let fate = network(d);
            let moving = if d.from == A {
                d.packet.ip.destination
            } else {
                d.packet.ip.source
            };
            let reach = reach.borrow();
            if moving == reach.0 || moving == reach.1 {
                fate
            } else {
                Vec::new()
            }
        });
        net.connect();
        let planned = plan(&mut Stream::new(seed, "messages"));
        let mut pending = planned.clone();
        let (mut current, mut next_change, mut step) = (1u16, at(0.1), 0);
        run_to_end(&mut net, &mut pending, at(6000.0), |net| {
            if net.now < next_change || net.ids[B].is_none() || net.association(B).asconf_outstanding() {
                return;
            }
            if !net.association(B).is_established() {
                return;
            }
            let (old, new) = (current, current + 1);
            match step {
                0 => {
                    present.borrow_mut().1 = address(B, new);
                    net.owned[B].push(address(B, new));
                    net.command(B, |b, now| b.add_address(now, local(B, new)))
                        .unwrap();
                }
                1 => {
                    net.command(B, |b, now| b.set_route(now, address(B, new)))
                        .unwrap();
                    net.command(B, |b, now| b.request_set_primary(now, address(B, new)))
                        .unwrap();
                }
                2 => present.borrow_mut().0 = address(B, new),
                _ => {
                    net.command(B, |b, now| b.delete_address(now, address(B, old)))
                        .unwrap();
                    current = new;
                    moves += 1;
                }
            }
            step = (step + 1) % 4;
            next_change = net.now + Duration::from_millis(60);
        });
        assert!(
            pending.is_empty() && net.association(A).is_sender_dry(),
            "seed {seed}: not finished"
        );
        check(&net, &planned, seed);
    }
    assert!(moves > 200, "only {moves} handovers");
}

#[test]
fn handshake_succeeds_under_heavy_loss() {
    for seed in 0..100 {
        let mut net = Net::symmetric(Config::default(), [1, 1], seed);
        let mut random = Stream::new(seed, "network");
        net.rule = Box::new(move |_| if random.chance(0.2) { vec![] } else { vec![ms(10)] });
        net.connect();
        net.run_until(at(600.0));
        for host in [A, B] {
            let trace: Vec<_> = net.log.iter().map(|d| d.at).zip(net.trace()).collect();
            assert!(net.has_event(host, &Event::Connected), "seed {seed}: {trace:?}");
        }
    }
}

/// The network at 100 Mbit/s without loss keeps every message whole; a control for the hostile runs above.
#[test]
fn a_quiet_network_retransmits_nothing() {
    let mut net = Net::established(Config::default(), [1, 1]);
    let planned = plan(&mut Stream::new(7, "messages"));
    let mut pending = planned.clone();
    feed(&mut net, &mut pending);
    run_to_end(&mut net, &mut pending, at(100.0), |_| {});
    check(&net, &planned, 7);
    assert_eq!(net.association(A).counters().data_chunks_retransmitted, 0);
    assert_eq!(net.association(B).counters().duplicate_data_chunks, 0);
    assert!(
        net.log
            .iter()
            .all(|d| matches!(d.packet.payload, Payload::Sctp(_)) && d.packet.buffer_len() <= 1500)
    );
}
