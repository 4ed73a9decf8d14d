//! What comes to a node that others depend on (a home agent, the location manager), second by second, and the processor that
//! works it off where the scenario gives the node one.

use crate::recorder::{Signal, signal_of};
use crate::scenario::model::ProcessingSection;
use crate::store::PacketRef;
use segue_proto::units::QueueLimit;
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::Packet;
use serde::Serialize;
use std::collections::VecDeque;

/// What a node is to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadedAs {
    /// The home agent of hosts that move (RFC 6275).
    HomeAgent,
    /// The location manager, or name server (RFC 2136).
    LocationManager,
    /// A host or router that takes time for packets.
    Node,
}

/// What came to a node within one second.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct SecondOfLoad {
    /// Messages by which it learns where somebody is: Binding Updates, Locator Updates, dynamic updates, ASCONF.
    pub updates: u32,
    /// Packets of signalling of mobility, updates included, in tunnels too.
    pub signalling: u32,
    /// All packets for it, or that it is to send on as a home agent.
    pub packets: u32,
    /// Their bytes, IPv6 headers and tunnels included.
    pub bytes: u64,
    /// Share of the second for which its processor was busy, 0 to 1; zero where processing takes no time.
    pub busy: f64,
}

/// What a node had to do for others.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NodeLoad {
    /// Its name.
    pub node: String,
    /// What it is to others.
    pub role: LoadedAs,
    /// Updates over the whole run.
    pub updates: u64,
    /// Packets of signalling, updates included.
    pub signalling: u64,
    /// All packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that found its queue full.
    pub dropped: u64,
    /// Longest time from the arrival of a packet until it was worked off, seconds.
    pub longest_stay_s: f64,
    /// Second by second, from the beginning of the run.
    pub by_second: Vec<SecondOfLoad>,
}

/// The load of a node while a run goes.
#[derive(Debug)]
pub(crate) struct Load {
    role: LoadedAs,
    seconds: Vec<SecondOfLoad>,
    processor: Option<Processor>,
    dropped: u64,
    longest_stay: Duration,
}

/// A processor with a queue in front: one packet at a time, in the order of arrival.
#[derive(Debug)]
struct Processor {
    takes: ProcessingSection,
    /// The first is being worked on.
    queue: VecDeque<Job>,
    waiting_bytes: u64,
}

/// A packet that waits for a processor.
#[derive(Clone, Copy, Debug)]
struct Job {
    packet: PacketRef,
    interface: InterfaceId,
    arrived: Instant,
    takes: Duration,
    length: u32,
}

/// What becomes of a packet that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// It is taken at once: processing takes no time here.
    Now,
    /// It waits; others are before it.
    Waits,
    /// It is worked on from now on, and has been then.
    Until(Instant),
    /// There is no room for it.
    Full,
}

impl Load {
    /// Nothing yet; `processing` where it takes time.
    pub fn new(role: LoadedAs, processing: Option<&ProcessingSection>) -> Self {
        Self {
            role,
            seconds: Vec::new(),
            processor: processing.map(|takes| Processor {
                takes: takes.clone(),
                queue: VecDeque::new(),
                waiting_bytes: 0,
            }),
            dropped: 0,
            longest_stay: Duration::ZERO,
        }
    }

    /// A packet of `length` bytes has arrived.
    pub fn arrives(
        &mut self,
        now: Instant,
        packet: (PacketRef, InterfaceId),
        content: &Packet,
        length: u32,
    ) -> Admission {
        let signal = signal_of(content);
        let second = self.second(now);
        second.updates += u32::from(signal == Some(Signal::Update));
        second.signalling += u32::from(signal.is_some());
        second.packets += 1;
        second.bytes += u64::from(length);
        let Some(processor) = &mut self.processor else {
            return Admission::Now;
        };
        let takes = match signal {
            Some(Signal::Update) => processor.takes.update,
            _ => processor.takes.packet,
        };
        let job = Job {
            packet: packet.0,
            interface: packet.1,
            arrived: now,
            takes,
            length,
        };
        if !processor.has_room(length) {
            self.dropped += 1;
            return Admission::Full;
        }
        processor.queue.push_back(job);
        if processor.queue.len() > 1 {
            processor.waiting_bytes += u64::from(length);
            return Admission::Waits;
        }
        Admission::Until(self.work(now, takes))
    }

    /// The packet at the head has been worked off: it is taken out. What comes of the next one, if there is one.
    pub fn worked_off(&mut self, now: Instant) -> Option<(PacketRef, InterfaceId, Option<Instant>)> {
        let processor = self.processor.as_mut()?;
        let done = processor.queue.pop_front()?;
        self.longest_stay = self.longest_stay.max(now - done.arrived);
        let next = processor.queue.front().copied();
        if let Some(next) = next {
            processor.waiting_bytes -= u64::from(next.length);
        }
        let until = next.map(|next| self.work(now, next.takes));
        Some((done.packet, done.interface, until))
    }

    /// What it came to in a run that ends then.
    pub fn report(&self, node: String, end: Instant) -> NodeLoad {
        let sum = |count: fn(&SecondOfLoad) -> u64| self.seconds.iter().map(count).sum();
        // what is being worked on at the end goes on after it
        let whole = end.as_nanos().div_ceil(SECOND_NS) as usize;
        NodeLoad {
            node,
            role: self.role,
            updates: sum(|s| u64::from(s.updates)),
            signalling: sum(|s| u64::from(s.signalling)),
            packets: sum(|s| u64::from(s.packets)),
            bytes: sum(|s| s.bytes),
            dropped: self.dropped,
            longest_stay_s: self.longest_stay.as_secs_f64(),
            by_second: self.seconds.iter().take(whole).copied().collect(),
        }
    }

    /// The processor is busy for so long from now on. Until when.
    fn work(&mut self, now: Instant, takes: Duration) -> Instant {
        let until = now + takes;
        let mut from = now;
        while from < until {
            let end = (Instant::ZERO + Duration::from_secs(from.as_nanos() / SECOND_NS + 1)).min(until);
            self.second(from).busy += (end - from).as_secs_f64();
            from = end;
        }
        until
    }

    fn second(&mut self, now: Instant) -> &mut SecondOfLoad {
        let number = (now.as_nanos() / SECOND_NS) as usize;
        if self.seconds.len() <= number {
            self.seconds.resize(number + 1, SecondOfLoad::default());
        }
        &mut self.seconds[number]
    }
}

impl Processor {
    /// Whether a packet may wait: the one that is worked on is not in the queue.
    fn has_room(&self, length: u32) -> bool {
        if self.queue.is_empty() {
            return true;
        }
        match self.takes.queue {
            QueueLimit::Packets(most) => (self.queue.len() as u64) <= most.count(),
            QueueLimit::Bytes(most) => self.waiting_bytes + u64::from(length) <= most.bytes(),
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::units::{Bytes, Packets};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn load(queue: QueueLimit) -> Load {
        let takes = ProcessingSection {
            packet: Duration::from_millis(400),
            update: Duration::from_millis(900),
            queue,
        };
        Load::new(LoadedAs::Node, Some(&takes))
    }

    fn arrives(load: &mut Load, ms: u64, number: u32) -> Admission {
        load.arrives(at(ms), (PacketRef(number), InterfaceId(0)), &Packet::EMPTY, 100)
    }

    #[test]
    fn packets_are_worked_off_one_after_the_other_and_what_finds_the_queue_full_is_dropped() {
        let mut load = load(QueueLimit::Packets(Packets::new(1)));
        assert_eq!(arrives(&mut load, 700, 1), Admission::Until(at(1100)));
        assert_eq!(arrives(&mut load, 800, 2), Admission::Waits);
        assert_eq!(arrives(&mut load, 900, 3), Admission::Full);
        let first = (PacketRef(1), InterfaceId(0), Some(at(1500)));
        assert_eq!(load.worked_off(at(1100)), Some(first));
        assert_eq!(arrives(&mut load, 1200, 4), Admission::Waits);
        let second = (PacketRef(2), InterfaceId(0), Some(at(1900)));
        assert_eq!(load.worked_off(at(1500)), Some(second));
        assert_eq!(
            load.worked_off(at(1900)),
            Some((PacketRef(4), InterfaceId(0), None))
        );
        assert_eq!(arrives(&mut load, 3000, 5), Admission::Until(at(3400)));
        let report = load.report("n".to_owned(), at(3300));
        assert_eq!((report.packets, report.dropped, report.bytes), (5, 1, 500));
        assert_eq!(report.longest_stay_s, 0.7);
        let packets: Vec<u32> = report.by_second.iter().map(|s| s.packets).collect();
        assert_eq!(packets, [3, 1, 0, 1]);
        // 700 to 1900 ms without a pause, and 3000 to 3400
        let busy: Vec<f64> = report.by_second.iter().map(|s| (s.busy * 10.0).round()).collect();
        assert_eq!(busy, [3.0, 9.0, 0.0, 4.0]);
    }

    #[test]
    fn a_queue_of_bytes_holds_so_many_beside_the_packet_that_is_worked_on() {
        let mut load = load(QueueLimit::Bytes(Bytes::new(250)));
        assert_eq!(arrives(&mut load, 0, 1), Admission::Until(at(400)));
        assert_eq!(arrives(&mut load, 0, 2), Admission::Waits);
        assert_eq!(arrives(&mut load, 0, 3), Admission::Waits);
        assert_eq!(arrives(&mut load, 0, 4), Admission::Full);
        load.worked_off(at(400));
        assert_eq!(arrives(&mut load, 400, 5), Admission::Waits);
    }

    #[test]
    fn where_nothing_takes_time_everything_is_taken_at_once_and_counted() {
        let mut load = Load::new(LoadedAs::HomeAgent, None);
        assert_eq!(arrives(&mut load, 10, 1), Admission::Now);
        assert_eq!(load.worked_off(at(20)), None);
        assert_eq!(load.report(String::new(), at(1000)).packets, 1);
    }
}
