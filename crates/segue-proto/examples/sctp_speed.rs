//! Processor time of two SCTP endpoints back to back, over an in-memory pipe of 100 Mbit/s and 20 ms.
//!
//! `cargo run --release -p segue-proto --example sctp_speed`
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a measurement needs a clock and a place to print to"
)]

use segue_proto::contract::LocalAddress;
use segue_proto::random::Stream;
use segue_proto::sctp::{Association, AssociationId, Config, Endpoint, Event, Message, SendOptions};
use segue_proto::{Duration, Instant, InterfaceId, Transmit};
use segue_wire::{Data, Packet};
use std::collections::VecDeque;

const PACKETS: u64 = 500_000;
const RATE_BPS: u64 = 100_000_000;
const DELAY: Duration = Duration::from_millis(20);

struct Pipe {
    queue: VecDeque<(Instant, Packet)>,
    free_at: Instant,
}

// kept apart for a profile to tell them from the pipe

#[inline(never)]
fn poll_transmit(end: &mut Endpoint, now: Instant) -> Option<Transmit> {
    end.poll_transmit(now)
}

#[inline(never)]
fn handle_packet(end: &mut Endpoint, now: Instant, packet: Packet) {
    end.handle_packet(now, InterfaceId(0), packet);
}

#[inline(never)]
fn send(association: &mut Association, now: Instant, data: Data) {
    association
        .send(now, 0, data, SendOptions::default())
        .expect("send");
}

#[inline(never)]
fn recv(association: &mut Association) -> Option<Message> {
    association.recv()
}

fn main() {
    let loss_every = std::env::args().nth(1).and_then(|a| a.parse::<u64>().ok());
    let config = Config {
        receive_buffer: 1_000_000,
        send_buffer: 2_000_000,
        ..Config::default()
    };
    let mut ends = ["a", "b"].map(|n| Endpoint::new(config.clone(), 1, Box::new(Stream::new(1, n))));
    let addresses = ["2001:db8::1", "2001:db8::2"].map(|a| a.parse().expect("address"));
    for (end, &address) in ends.iter_mut().zip(&addresses) {
        end.add_local_address(LocalAddress {
            interface: InterfaceId(0),
            address,
        });
    }
    ends[1].listen();
    let mut pipes = [0, 1].map(|_| Pipe {
        queue: VecDeque::new(),
        free_at: Instant::ZERO,
    });
    let mut now = Instant::ZERO;
    let id = ends[0].connect(now, &addresses[1..], 1).expect("connect");
    while let Some(transmit) = ends[0].poll_transmit(now) {
        pipes[0].queue.push_back((now + DELAY, transmit.packet));
    }
    let mut peer: Option<AssociationId> = None;
    let (mut offset, mut received, mut packets, mut sent_packets) = (0u64, 0u64, 0u64, 0u64);
    let start = std::time::Instant::now();
    let mut transmit_time = std::time::Duration::ZERO;
    while packets < PACKETS {
        // the network
        let mut next = Instant::MAX;
        for (pipe, end) in pipes.iter().zip(&mut ends) {
            if let Some((at, _)) = pipe.queue.front() {
                next = next.min(*at);
            }
            if let Some(at) = end.poll_timeout() {
                next = next.min(at);
            }
        }
        assert!(next != Instant::MAX, "nothing left to do");
        now = now.max(next);
        for side in [0, 1] {
            if pipes[1 - side].queue.front().is_some_and(|p| p.0 <= now) {
                let (_, packet) = pipes[1 - side].queue.pop_front().expect("packet");
                packets += u64::from(side == 1);
                handle_packet(&mut ends[side], now, packet);
            } else if ends[side].poll_timeout().is_some_and(|at| at <= now) {
                ends[side].handle_timeout(now);
            } else {
                continue;
            }
            let mut writable = side == 0;
            while let Some((id, event)) = ends[side].poll_event() {
                if side == 1 && event == Event::Connected {
                    peer = Some(id);
                }
                writable |= side == 0 && event == Event::Writable;
                if side == 1
                    && event == Event::Readable
                    && let Some(association) = ends[1].association_mut(id)
                {
                    while let Some(message) = recv(association) {
                        received += message.parts.iter().map(|p| p.len() as u64).sum::<u64>();
                    }
                }
            }
            if writable && let Some(association) = ends[0].association_mut(id) {
                let len = association.max_message_in_one_chunk();
                while association.send_space() >= len as usize {
                    let data = Data::Synthetic { offset, len };
                    send(association, now, data);
                    offset += u64::from(len);
                }
            }
            let before = loss_every.map(|_| std::time::Instant::now());
            while let Some(transmit) = poll_transmit(&mut ends[side], now) {
                let pipe = &mut pipes[side];
                let bytes: u64 = if side == 0 { 1500 } else { 68 };
                let at = pipe.free_at.max(now) + Duration::from_nanos(bytes * 8 * 1_000_000_000 / RATE_BPS);
                sent_packets += 1;
                if loss_every.is_some_and(|n| side == 0 && sent_packets % n == 0) {
                    continue;
                }
                pipe.free_at = at;
                pipe.queue.push_back((at + DELAY, transmit.packet));
            }
            if let Some(before) = before {
                transmit_time += before.elapsed();
            }
        }
    }
    let wall = start.elapsed();
    let a = ends[0].association(id).expect("association");
    let b = peer.and_then(|id| ends[1].association(id)).expect("association");
    println!(
        "{packets} data packets, {} SACKs, {received} bytes in {:.3} s of simulated time: {:.3} s, {:.0} ns per data packet, both ends and pipe",
        b.counters().sacks_sent,
        now.as_secs_f64(),
        wall.as_secs_f64(),
        wall.as_nanos() as f64 / packets as f64,
    );
    println!(
        "retransmitted {}, T3 {}",
        a.counters().data_chunks_retransmitted,
        a.counters().t3_expiries
    );
}
