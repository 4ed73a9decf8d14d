//! What leaves an association but for data and its acknowledgements: packets of control chunks, events, and counts.

use crate::contract::LocalAddress;
use crate::sctp::{Counters, Event};
use core::net::Ipv6Addr;
use segue_wire::sctp::Chunk;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// A packet of control chunks waiting to be sent.
#[derive(Debug)]
pub(in crate::sctp) struct ControlPacket {
    /// Source; where the destination is sent to from if none.
    pub source: Option<LocalAddress>,
    pub destination: Ipv6Addr,
    /// Verification tag; the peer's if none.
    pub tag: Option<u32>,
    pub chunks: SmallVec<[Chunk; 1]>,
}

impl ControlPacket {
    /// With the peer's tag, from where the destination is sent to from.
    pub(in crate::sctp) const fn new(destination: Ipv6Addr, chunks: SmallVec<[Chunk; 1]>) -> Self {
        Self {
            source: None,
            destination,
            tag: None,
            chunks,
        }
    }

    /// One of a single chunk.
    pub(in crate::sctp) fn of(destination: Ipv6Addr, chunk: Chunk) -> Self {
        Self::new(destination, SmallVec::from_buf([chunk]))
    }

    /// The same from `source`.
    pub(in crate::sctp) fn sent_from(self, source: LocalAddress) -> Self {
        Self {
            source: Some(source),
            ..self
        }
    }

    /// The same with this verification tag: of who has no association with this end, or none yet.
    pub(in crate::sctp) fn with_tag(self, tag: u32) -> Self {
        Self {
            tag: Some(tag),
            ..self
        }
    }
}

/// Packets and events in the order in which they leave, and what was counted.
#[derive(Debug, Default)]
pub(in crate::sctp) struct Outbox {
    packets: VecDeque<ControlPacket>,
    events: VecDeque<Event>,
    /// A plain value: whoever acts counts what it does.
    pub counters: Counters,
}

impl Outbox {
    /// Tells the user.
    pub(in crate::sctp) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(in crate::sctp) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(in crate::sctp) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Drops events that the user does not want.
    pub(in crate::sctp) fn forget_events(&mut self) {
        self.events.clear();
    }

    /// Goes on where another left off: behind what it has not told, and counting on.
    pub(in crate::sctp) fn follow(&mut self, former: Self) {
        let own = core::mem::replace(&mut self.events, former.events);
        self.events.extend(own);
        self.counters = former.counters;
    }

    /// Tells of something else where `event` waits to be told.
    pub(in crate::sctp) fn tell_instead(&mut self, event: &Event, other: Event) {
        if let Some(waiting) = self.events.iter_mut().find(|e| *e == event) {
            *waiting = other;
        }
    }

    /// Queues a packet behind all others.
    pub(in crate::sctp) fn send(&mut self, packet: ControlPacket) {
        self.packets.push_back(packet);
    }

    /// Queues a packet before all others.
    pub(in crate::sctp) fn send_first(&mut self, packet: ControlPacket) {
        self.packets.push_front(packet);
    }

    /// Queues a packet behind the first `behind` of them.
    pub(in crate::sctp) fn send_behind(&mut self, behind: usize, packet: ControlPacket) {
        self.packets.insert(behind.min(self.packets.len()), packet);
    }

    /// How many packets wait.
    pub(in crate::sctp) fn waiting(&self) -> usize {
        self.packets.len()
    }

    /// The packets that wait.
    pub(in crate::sctp) fn packets(&self) -> std::collections::vec_deque::Iter<'_, ControlPacket> {
        self.packets.iter()
    }

    pub(in crate::sctp) fn next_packet(&mut self) -> Option<ControlPacket> {
        self.packets.pop_front()
    }

    /// Takes back the packet queued last.
    pub(in crate::sctp) fn take_back(&mut self) {
        self.packets.pop_back();
    }

    /// Drops the packets for which `keep`, which is given their places too, does not hold.
    pub(in crate::sctp) fn retain_packets(&mut self, mut keep: impl FnMut(usize, &ControlPacket) -> bool) {
        let mut place = 0..;
        self.packets
            .retain(|packet| keep(place.next().unwrap_or(usize::MAX), packet));
    }

    /// Takes the first packet for which `which` holds.
    pub(in crate::sctp) fn take_packet(
        &mut self,
        which: impl FnMut(&ControlPacket) -> bool,
    ) -> Option<ControlPacket> {
        let place = self.packets.iter().position(which)?;
        self.packets.remove(place)
    }

    /// Whether nothing is left to be sent or told.
    pub(in crate::sctp) fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.events.is_empty()
    }
}
