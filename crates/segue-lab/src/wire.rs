//! Both directions of an emulated link, as a machine: packets and the time in, packets and a deadline out.

use segue_proto::random::Stream;
use segue_proto::{Duration, Instant};
use segue_sim::link::{Fate, Link, LinkConfig};
use segue_sim::scheduler::{Event, Scheduler};
use segue_sim::store::PacketRef;

/// An end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The first.
    A,
    /// The second.
    B,
}

impl End {
    /// The end that a packet from here arrives at.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// A packet that has crossed the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival<P> {
    /// When it was due. A driver that is late knows by how much.
    pub at: Instant,
    /// Where it arrives.
    pub end: End,
    /// The packet.
    pub packet: P,
    /// Whether bits of it are to be flipped: the link does not know how.
    pub corrupted: bool,
}

/// Packets of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WireCounters {
    /// Packets offered.
    pub offered: u64,
    /// Bytes of them.
    pub offered_bytes: u64,
    /// Refused: the queue was full, the packet too long, or the link cut.
    pub refused: u64,
    /// Lost on the way.
    pub lost: u64,
    /// Arrived, copies included.
    pub arrived: u64,
    /// Bytes of them.
    pub arrived_bytes: u64,
}

/// A link that carries packets of type `P`.
///
/// The contract is that of every machine: after [`offer`](Self::offer), or when the [deadline](Self::poll_timeout) is
/// reached, [`poll_arrival`](Self::poll_arrival) until it gives `None`. A driver that is late delivers late, but neither
/// departures nor the arrivals behind are moved by it.
#[derive(Debug)]
pub struct Wire<P> {
    /// From A to B, and back.
    directions: [Link; 2],
    scheduler: Scheduler,
    /// Packets under way, by number.
    packets: Vec<Option<(P, u32)>>,
    free: Vec<u32>,
    counters: [WireCounters; 2],
    cut: bool,
}

impl<P: Clone> Wire<P> {
    /// An idle link; `there` is what happens to packets from A to B and `back` to those from B to A.
    #[must_use]
    pub fn new(there: LinkConfig, back: LinkConfig, seed: u64) -> Self {
        Self {
            directions: [
                Link::new(0, there, Stream::new(seed, "wire a to b")),
                Link::new(1, back, Stream::new(seed, "wire b to a")),
            ],
            scheduler: Scheduler::default(),
            packets: Vec::new(),
            free: Vec::new(),
            counters: [WireCounters::default(); 2],
            cut: false,
        }
    }

    /// Sends a packet of `length` bytes from an end; `false` if the link does not take it.
    pub fn offer(&mut self, now: Instant, from: End, packet: P, length: u32) -> bool {
        let direction = from as usize;
        let counters = &mut self.counters[direction];
        counters.offered += 1;
        counters.offered_bytes += u64::from(length);
        let link = &mut self.directions[direction];
        if self.cut || link.mtu().is_some_and(|mtu| length > mtu) {
            counters.refused += 1;
            return false;
        }
        let number = store(&mut self.packets, &mut self.free, (packet, length));
        let (packets, free) = (&mut self.packets, &mut self.free);
        let duplicate = || duplicate(packets, free, number);
        let taken = link.enqueue(now, number, length, &mut self.scheduler, duplicate);
        if !taken {
            self.take(number);
            self.counters[direction].refused += 1;
        }
        taken
    }

    /// The next packet that has arrived by `now`.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Arrival<P>> {
        while let Some((at, event)) = self.scheduler.pop_until(now) {
            let (direction, number, fate) = match event {
                Event::LinkArrival(link) => {
                    let arrival = self.directions[link as usize].on_arrival(&mut self.scheduler);
                    (link as usize, arrival.packet, arrival.fate)
                }
                Event::LooseArrival { link, packet, fate } => (link as usize, PacketRef(packet), fate),
                Event::LinkDeparture { link, generation } => {
                    let (packets, free) = (&mut self.packets, &mut self.free);
                    self.directions[link as usize].on_departure(at, generation, &mut self.scheduler, |of| {
                        duplicate(packets, free, of)
                    });
                    continue;
                }
                // nothing else is ever queued here
                _ => continue,
            };
            let (packet, length) = self.take(number);
            let counters = &mut self.counters[direction];
            if fate == Fate::Lost || self.cut {
                counters.lost += 1;
                continue;
            }
            counters.arrived += 1;
            counters.arrived_bytes += u64::from(length);
            let end = if direction == 0 { End::B } else { End::A };
            return Some(Arrival {
                at,
                end,
                packet,
                corrupted: fate == Fate::Corrupted,
            });
        }
        None
    }

    /// When [`poll_arrival`](Self::poll_arrival) has something to do next.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.scheduler.next_time()
    }

    /// Cuts the link, or mends it. What is under way while it is cut is lost.
    pub const fn set_cut(&mut self, cut: bool) {
        self.cut = cut;
    }

    /// What became of the packets that were sent from `end`.
    #[must_use]
    pub const fn counters(&self, end: End) -> WireCounters {
        self.counters[end as usize]
    }

    fn take(&mut self, number: PacketRef) -> (P, u32) {
        self.free.push(number.0);
        let slot = self.packets.get_mut(number.0 as usize).and_then(Option::take);
        slot.expect("a packet on the link is stored")
    }
}

fn store<P>(packets: &mut Vec<Option<(P, u32)>>, free: &mut Vec<u32>, packet: (P, u32)) -> PacketRef {
    if let Some(number) = free.pop() {
        packets[number as usize] = Some(packet);
        return PacketRef(number);
    }
    packets.push(Some(packet));
    PacketRef(packets.len() as u32 - 1)
}

fn duplicate<P: Clone>(packets: &mut Vec<Option<(P, u32)>>, free: &mut Vec<u32>, of: PacketRef) -> PacketRef {
    let copy = packets.get(of.0 as usize).cloned().flatten();
    store(packets, free, copy.expect("a packet on the link is stored"))
}

/// A link that does nothing to packets but delay them (and keep them a nanosecond each): without limit of rate or queue.
#[must_use]
pub fn ideal(delay: Duration) -> LinkConfig {
    use segue_proto::units::{BitRate, Packets, QueueLimit};
    use segue_sim::link::Service;
    use segue_sim::loss::LossModel;
    LinkConfig {
        rate: BitRate::from_bits_per_second(u64::MAX),
        delay,
        queue: QueueLimit::Packets(Packets::new(u64::MAX)),
        loss: LossModel::None,
        jitter: Duration::ZERO,
        reorder: false,
        duplicate: 0.0,
        corrupt: 0.0,
        service: Service::Fifo,
        mtu: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::units::{BitRate, Packets, QueueLimit};
    use segue_sim::link::Service;
    use segue_sim::loss::LossModel;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn arrivals(wire: &mut Wire<u32>, until: Instant) -> Vec<(Instant, End, u32)> {
        std::iter::from_fn(|| wire.poll_arrival(until))
            .map(|a| (a.at, a.end, a.packet))
            .collect()
    }

    #[test]
    fn each_direction_has_its_rate_and_both_are_delayed() {
        let slow = LinkConfig {
            rate: BitRate::from_bits_per_second(1_000_000),
            ..ideal(Duration::from_millis(20))
        };
        let mut wire = Wire::new(slow, ideal(Duration::from_millis(5)), 1);
        for n in 0..3 {
            assert!(wire.offer(at(0), End::A, n, 1250));
        }
        assert!(wire.offer(at(1), End::B, 9, 1250));
        let due = at(6) + Duration::from_nanos(1);
        assert_eq!(wire.poll_timeout(), Some(due));
        assert_eq!(arrivals(&mut wire, at(6)), []);
        // late by four milliseconds, and nothing behind is moved by it
        assert_eq!(arrivals(&mut wire, at(10)), [(due, End::A, 9)]);
        let there = arrivals(&mut wire, at(1000));
        assert_eq!(
            there,
            [(at(30), End::B, 0), (at(40), End::B, 1), (at(50), End::B, 2)]
        );
        assert_eq!(wire.poll_timeout(), None);
        assert_eq!(wire.counters(End::A).arrived_bytes, 3750);
    }

    #[test]
    fn every_packet_is_accounted_for_and_its_place_used_again() {
        for (service, reorder) in [
            (Service::Fifo, false),
            (Service::Fifo, true),
            (Service::HeadOfLine, true),
        ] {
            let config = LinkConfig {
                rate: BitRate::from_bits_per_second(10_000_000),
                queue: QueueLimit::Packets(Packets::new(5)),
                loss: LossModel::Bernoulli { probability: 0.1 },
                jitter: Duration::from_millis(3),
                reorder,
                duplicate: 0.1,
                service,
                ..ideal(Duration::from_millis(10))
            };
            let mut wire = Wire::new(config, ideal(Duration::ZERO), 7);
            let mut seen = Vec::new();
            for n in 0..2000u32 {
                let now = at(u64::from(n));
                seen.extend(arrivals(&mut wire, now));
                wire.offer(now, End::A, n, 1250);
            }
            seen.extend(arrivals(&mut wire, Instant::MAX));
            let counters = wire.counters(End::A);
            assert_eq!(counters.offered, 2000);
            assert_eq!(counters.arrived, seen.len() as u64);
            let mut numbers: Vec<u32> = seen.iter().map(|s| s.2).collect();
            assert_eq!(numbers.is_sorted(), !reorder, "{service:?}");
            numbers.sort_unstable();
            numbers.dedup();
            let copies = counters.arrived - numbers.len() as u64;
            assert!(copies > 50, "{copies} packets arrived twice");
            assert!(counters.lost > 100);
            assert!(wire.packets.len() < 100, "{} places", wire.packets.len());
        }
    }

    #[test]
    fn a_link_that_is_cut_loses_what_is_under_way() {
        let mut wire = Wire::new(ideal(Duration::from_millis(10)), ideal(Duration::ZERO), 1);
        assert!(wire.offer(at(0), End::A, 1, 100));
        wire.set_cut(true);
        assert!(!wire.offer(at(1), End::A, 2, 100));
        assert_eq!(arrivals(&mut wire, at(20)), []);
        wire.set_cut(false);
        assert!(wire.offer(at(21), End::A, 3, 100));
        assert_eq!(
            arrivals(&mut wire, at(40)),
            [(at(31) + Duration::from_nanos(1), End::B, 3)]
        );
        let counters = wire.counters(End::A);
        assert_eq!((counters.refused, counters.lost, counters.arrived), (1, 1, 1));
    }
}
