//! Moves data between two SCTP endpoints in one process and says what it cost, as JSON.
//!
//! `segue-in-memory STACK DELAY_MS LOSS_PERCENT BYTES`: the stack is `segue`, `dcsctp` or `sctp-proto`, the delay that of each
//! way. There are no sockets and no threads. Packets are bytes, and time is virtual: a packet that is sent arrives after
//! the delay, unless it is one of those that are lost, which a seeded generator chooses in both directions. An end is given one
//! packet at a time and then asked for what it has to send, as a driver does whose packets come one by one.

mod allocations;
mod dcsctp_end;
mod sctp_proto_end;
mod segue_end;

use bytes::Bytes;
use nix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::process::ExitCode;

/// Bytes of a message, which is one DATA chunk.
const MESSAGE: usize = 1_200;
/// Bytes of the largest packet, SCTP's common header included: what IPv6 of 1,280 bytes and UDP leave.
const PACKET: usize = 1_232;
/// Receive buffer: the window that is offered.
const RECEIVE_BUFFER: u32 = 1 << 20;
/// What an end may have accepted and not sent, or not got acknowledged, as it counts that itself.
const SEND_BUFFER: usize = 2_000_000;

/// Of the two directions: which packets are lost.
const SEEDS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];

/// One end of an association.
trait End {
    /// Begins the association.
    fn connect(&mut self, now: u64);
    /// Whether messages may be sent.
    fn is_connected(&self) -> bool;
    /// Whether another message fits the send buffer.
    fn has_room(&mut self) -> bool;
    /// Takes a message.
    fn send(&mut self, now: u64, message: Vec<u8>);
    /// Gives away all messages that have come.
    fn receive(&mut self, take: &mut dyn FnMut(&[u8]));
    /// Takes a packet.
    fn handle(&mut self, now: u64, packet: Bytes);
    /// Gives away all packets that are to be sent.
    fn transmit(&mut self, now: u64, put: &mut dyn FnMut(Bytes));
    /// When its timer runs out.
    fn timeout(&mut self) -> Option<u64>;
    /// The timer has run out.
    fn handle_timeout(&mut self, now: u64);
}

/// One direction: every packet takes the same time, and some are lost.
struct Wire {
    delay: u64,
    loss_percent: u64,
    random: u64,
    packets: VecDeque<(u64, Bytes)>,
    sent: u64,
}

impl Wire {
    fn new(delay: u64, loss_percent: u64, seed: u64) -> Self {
        Self {
            delay,
            loss_percent,
            random: seed,
            packets: VecDeque::new(),
            sent: 0,
        }
    }

    fn put(&mut self, now: u64, packet: Bytes) {
        assert!(packet.len() <= PACKET, "a packet of {} bytes", packet.len());
        self.sent += 1;
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if self.random % 100 >= self.loss_percent {
            self.packets.push_back((now + self.delay, packet));
        }
    }

    fn next(&self) -> Option<u64> {
        self.packets.front().map(|(at, _)| *at)
    }

    fn take(&mut self, now: u64) -> Option<Bytes> {
        if self.next()? > now {
            return None;
        }
        self.packets.pop_front().map(|(_, packet)| packet)
    }
}

/// Message `number`: its number, and zeros.
fn message(number: u64) -> Vec<u8> {
    let mut message = vec![0; MESSAGE];
    message[..8].copy_from_slice(&number.to_le_bytes());
    message
}

/// Moves `messages` from the first end to the second; gives the time that passed and the packets that were sent.
fn run(ends: &mut [Box<dyn End>; 2], wires: &mut [Wire; 2], messages: u64) -> (u64, u64) {
    let (mut now, mut sent, mut received) = (0, 0, 0);
    ends[0].connect(now);
    loop {
        if ends[0].is_connected() {
            while sent < messages && ends[0].has_room() {
                ends[0].send(now, message(sent));
                sent += 1;
            }
        }
        for (end, wire) in ends.iter_mut().zip(wires.iter_mut()) {
            end.transmit(now, &mut |packet| wire.put(now, packet));
        }
        if received == messages {
            return (now, wires[0].sent + wires[1].sent);
        }
        let arrivals = wires.iter().filter_map(Wire::next).min();
        let timeouts = ends.iter_mut().filter_map(|end| end.timeout()).min();
        now = arrivals
            .into_iter()
            .chain(timeouts)
            .min()
            .expect("something to happen")
            .max(now);
        for side in 0..2 {
            if let Some(packet) = wires[side].take(now) {
                ends[1 - side].handle(now, packet);
            }
            if ends[side].timeout().is_some_and(|at| at <= now) {
                ends[side].handle_timeout(now);
            }
        }
        ends[1].receive(&mut |message| {
            assert_eq!(message.len(), MESSAGE, "message {received}");
            assert_eq!(message[..8], u64::to_le_bytes(received), "message {received}");
            received += 1;
        });
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has it");
    time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
}

fn ends(stack: &str) -> Option<[Box<dyn End>; 2]> {
    match stack {
        "segue" => Some(segue_end::pair()),
        "dcsctp" => Some(dcsctp_end::pair()),
        "sctp-proto" => Some(sctp_proto_end::pair()),
        _ => None,
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<f64> = arguments.iter().skip(1).filter_map(|a| a.parse().ok()).collect();
    let (Some(mut ends), &[delay_ms, loss_percent, bytes]) =
        (arguments.first().and_then(|stack| ends(stack)), &numbers[..])
    else {
        eprintln!("usage: segue-in-memory segue|dcsctp|sctp-proto DELAY_MS LOSS_PERCENT BYTES");
        return ExitCode::from(2);
    };
    let delay = (delay_ms * 1e6) as u64;
    let mut wires = SEEDS.map(|seed| Wire::new(delay, loss_percent as u64, seed));
    let messages = (bytes / MESSAGE as f64).ceil() as u64;
    let before = allocations::begin();
    let begun = cpu_seconds();
    let (virtual_ns, packets) = run(&mut ends, &mut wires, messages);
    let cpu_s = cpu_seconds() - begun;
    let (count, peak) = allocations::since(before);
    println!(
        "{{\"stack\": \"{}\", \"bytes\": {}, \"cpu_s\": {cpu_s}, \"allocations\": {count}, \"peak_bytes\": {peak}, \
         \"virtual_s\": {}, \"packets\": {packets}}}",
        arguments[0],
        messages * MESSAGE as u64,
        virtual_ns as f64 / 1e9,
    );
    ExitCode::SUCCESS
}
