//! All flows and handoffs while a run goes: the ledger, what receivers got when and by which way, and who told whom of a
//! new address.

use super::flow::{Data, Paths, Way};
use super::handoffs::{Handoffs, Moving};
use super::ledger::{Entries, FlowKey, Ledger, PacketFate, Segment, Transport};
use super::pauses::Gap;
use crate::sink::SinkError;
use segue_capture::handover::LossCause;
use segue_capture::rows::Spill;
use segue_proto::Instant;
use segue_proto::sctp::AssociationId;
use segue_proto::shim::ShimEvent;
use segue_proto::sigma::SigmaEvent;
use segue_wire::Packet;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// What tells the paths of a run's flows apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mobility {
    /// The transport's sender chooses by addresses.
    #[default]
    Transport,
    /// The same, and SCTP takes all paths at once.
    Concurrent,
    /// A shim below the transport.
    Shim,
}

/// All flows and all handoffs of a run.
#[derive(Debug, Default)]
pub struct Connections {
    /// The fates of packets.
    pub ledger: Ledger,
    /// The parts of handoffs.
    pub vertical: super::vertical::Vertical,
    mobility: Mobility,
    mobile: Vec<u32>,
    /// By their numbers in the ledger.
    flows: Vec<Data>,
    shims: Handoffs,
    transports: Handoffs,
    /// When something happens that the scenario has.
    events: Arc<[Gap]>,
    spill: Option<Spill>,
}

impl Connections {
    /// Those of a run in which these nodes move.
    #[must_use]
    pub fn new(mobile: Vec<u32>, mobility: Mobility) -> Self {
        Self {
            mobile,
            mobility,
            ..Self::default()
        }
    }

    /// Those of a run in which something happens then.
    #[must_use]
    pub fn around(self, events: Vec<Gap>) -> Self {
        Self {
            events: events.into(),
            ..self
        }
    }

    /// Leaves what the result has a row of in this store, once it is over.
    pub fn keep_in(&mut self, spill: &Spill) {
        self.ledger.keep_in(spill);
        self.vertical.keep_in(spill);
        self.shims.keep_in(spill);
        self.transports.keep_in(spill);
        self.flows.iter_mut().for_each(|flow| flow.keep_in(spill));
        self.spill = Some(spill.clone());
    }

    /// Has all of it in memory again: the run is over.
    ///
    /// # Errors
    /// That the store failed, and rows may be missing.
    pub fn recall(&mut self) -> Result<(), SinkError> {
        self.ledger.recall();
        self.vertical.recall();
        self.shims.recall();
        self.transports.recall();
        self.flows.iter_mut().for_each(Data::recall);
        self.check_store()
    }

    /// Whether the store has all that it was given.
    ///
    /// # Errors
    /// That it failed, and why.
    pub fn check_store(&self) -> Result<(), SinkError> {
        match self.spill.as_ref().and_then(Spill::failure) {
            Some(why) => Err(SinkError(why.to_owned())),
            None => Ok(()),
        }
    }

    /// A host sends a segment with data, and has had some to send since `busy_since`, if that is known. Gives the number of its
    /// entry.
    #[inline]
    pub fn sent(&mut self, now: Instant, way: &Way, segment: &Segment, busy_since: Option<Instant>) -> u32 {
        if self.ledger.is_full() {
            self.forget(now);
        }
        let (id, number) = self.ledger.sent(now, segment);
        if self.flows.len() <= number {
            self.begin(&segment.flow);
        }
        if let Some(entry) = self.ledger.entry(id) {
            self.flows[number].sent(now, id, entry, way, busy_since);
        }
        id
    }

    /// What the ledger forgets, nobody asks how it left.
    #[cold]
    fn forget(&mut self, now: Instant) {
        self.ledger.forget(now);
        let (aged, recent) = self.ledger.aged();
        let mut kept = vec![Vec::new(); self.flows.len()];
        for (id, entry) in aged {
            kept[entry.flow as usize].push(*id);
        }
        for (flow, kept) in self.flows.iter_mut().zip(&kept) {
            flow.forget_left(kept, recent);
        }
        // of datagrams nothing is sent again, so that only what is known can still arrive
        let mut first = vec![None; self.flows.len()];
        for (_, entry) in self.ledger.entries() {
            let first = &mut first[entry.flow as usize];
            *first = Some(first.map_or(entry.offset, |known: u64| known.min(entry.offset)));
        }
        let flows = self.ledger.flows().zip(&mut self.flows).zip(first);
        for ((key, flow), first) in flows {
            if let (Transport::Udp, Some(first)) = (key.transport, first) {
                flow.forget_holes(first);
            }
        }
    }

    /// Something is sent in a flow for the first time.
    #[cold]
    fn begin(&mut self, key: &FlowKey) {
        let paths = match (self.mobility, key.transport) {
            (Mobility::Shim, _) | (_, Transport::Tcp | Transport::Udp) => Paths::Network,
            (Mobility::Transport, Transport::Sctp) => Paths::Transport,
            (Mobility::Concurrent, Transport::Sctp) => Paths::Concurrent,
        };
        let moves = self.mobile.contains(&key.sender);
        let mut flow = Data::new(key.sender, moves, paths).around(&self.events);
        self.spill.iter().for_each(|spill| flow.keep_in(spill));
        self.flows.push(flow);
    }

    /// What a packet carries was handed to the transport at `node`, or refused there.
    #[inline]
    pub fn arrived(&mut self, now: Instant, node: u32, way: &Way, entries: Entries, taken: bool) {
        if !taken {
            return self.ledger.met(entries, PacketFate::Stale);
        }
        for id in entries.iter() {
            self.one_arrived(now, node, way, id);
        }
    }

    /// Apart from the loop, of which there is mostly one round.
    #[inline(never)]
    fn one_arrived(&mut self, now: Instant, node: u32, way: &Way, id: u32) {
        let Some(entry) = self.ledger.delivered(id) else {
            return;
        };
        let length = u64::from(self.ledger.length_of(&entry));
        let flow = &mut self.flows[entry.flow as usize];
        flow.received_at(node);
        self.vertical
            .data(now, node, way.interface, u32::from(entry.bytes));
        flow.arrived(now, id, &entry, length, way, &self.shims);
    }

    /// A packet goes no further. `first`: nothing of what it carries was lost before.
    pub fn lost(&mut self, now: Instant, packet: &Packet, entries: Entries, fate: PacketFate, first: bool) {
        self.ledger.met(entries, fate);
        let cause = fate.loss().unwrap_or(LossCause::Other);
        if let Some(id) = entries.iter().next()
            && first
            && let Some(entry) = self.ledger.entry(id)
        {
            let chunks = entries.iter().count() as u32;
            self.flows[entry.flow as usize].lost(now, packet, cause, chunks);
        }
    }

    /// A host made another path its primary, in the association whose packets have this verification tag.
    pub fn primary_changed(&mut self, node: u32, tag: u32, path: Ipv6Addr) {
        if let Some(number) = self.ledger.number_of_tag(node, tag) {
            self.flows[number].primary_changed(path);
        }
    }

    /// A host says that it will send no more in this flow.
    pub fn closing(&mut self, flow: &FlowKey) {
        if let Some(number) = self.ledger.number_of(flow) {
            self.flows[number].close();
        }
    }

    /// A shim reports.
    pub fn shim_event(&mut self, now: Instant, node: u32, event: &ShimEvent) {
        match *event {
            ShimEvent::HandoffBegun { to, .. } => self.vertical.handoff_begun(now, node, to),
            ShimEvent::RouteChanged { to, .. } => self.vertical.told(now, to),
            ShimEvent::HandoffDone { to, .. } => self.vertical.done(to),
            _ => {}
        }
        self.shims.shim_event(now, node, event);
    }

    /// A host that changes the addresses of an association reports.
    pub fn sigma_event(&mut self, node: u32, moving: Moving, event: &SigmaEvent) {
        self.transports.sigma_event(node, moving, event);
    }

    /// An association of a host is over, or was begun anew by its peer.
    pub fn association_gone(&mut self, now: Instant, node: u32, id: AssociationId) {
        self.transports.association_gone(now, node, id);
    }

    /// Ends the observation. Of what `is_over`, by the number of the flow, nothing more was to come, and a handoff after its
    /// last data interrupts nothing.
    pub fn finish(&mut self, end: Instant, is_over: impl Fn(usize) -> bool) {
        for (number, flow) in self.flows.iter_mut().enumerate() {
            if flow.last_new().is_some() && flow.is_awaited() && !is_over(number) {
                flow.note_gaps(&self.shims, end);
            }
        }
    }

    /// Handoffs of shims.
    #[must_use]
    pub const fn shims(&self) -> &Handoffs {
        &self.shims
    }

    /// Handoffs of transports.
    #[must_use]
    pub const fn transports(&self) -> &Handoffs {
        &self.transports
    }

    /// The flows, by their numbers in the ledger.
    #[must_use]
    pub fn flows(&self) -> &[Data] {
        &self.flows
    }

    /// What tells paths apart.
    #[must_use]
    pub const fn mobility(&self) -> Mobility {
        self.mobility
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::{Duration, InterfaceId};

    const FLOW: FlowKey = FlowKey {
        transport: Transport::Tcp,
        sender: 0,
        receiver: 1,
        source_port: 1,
        destination_port: 2,
    };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Sends the next 100 bytes of the flow, which arrive at node 5 at once.
    fn packets() -> impl FnMut(&mut Connections, u64) {
        let way = Way::of(&Packet::EMPTY, InterfaceId(0));
        let mut seq = 0;
        move |c, ms| {
            let segment = Segment {
                flow: FLOW,
                seq,
                length: 100,
                bytes: 100,
            };
            seq += 100;
            let mut entries = Entries::NONE;
            entries.add(c.sent(at(ms), &way, &segment, None));
            c.arrived(at(ms), 5, &way, entries, true);
        }
    }

    #[test]
    fn a_handoff_that_another_took_over_from_has_no_gap_of_later() {
        let mut c = Connections::new(Vec::new(), Mobility::Shim);
        let mut packet = packets();
        let (first, to) = (Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST);
        packet(&mut c, 400);
        c.shim_event(
            at(500),
            5,
            &ShimEvent::HandoffBegun {
                from: None,
                to: first,
            },
        );
        c.shim_event(at(600), 5, &ShimEvent::HandoffBegun { from: None, to });
        let delay = Duration::from_millis(100);
        c.shim_event(at(700), 5, &ShimEvent::HandoffDone { to, delay });
        for ms in [900, 1300, 1700, 2000, 60_000, 65_000] {
            packet(&mut c, ms);
        }
        c.finish(at(66_000), |_| false);
        let gaps = [0, 1].map(|n| c.flows()[0].gap_around(n, 5));
        assert_eq!(gaps, [Some(Duration::from_millis(500)); 2]);
        assert_eq!(c.shims().get(0).unwrap().done(), None);
    }

    #[test]
    fn the_interruption_of_a_handoff_is_the_longest_gap_around_it() {
        let mut c = Connections::new(Vec::new(), Mobility::Shim);
        let mut packet = packets();
        let to = Ipv6Addr::LOCALHOST;
        for ms in [0, 400, 410] {
            packet(&mut c, ms);
        }
        c.shim_event(at(500), 5, &ShimEvent::HandoffBegun { from: None, to });
        c.shim_event(at(700), 9, &ShimEvent::HandoffBegun { from: None, to });
        let delay = Duration::from_millis(300);
        c.shim_event(at(800), 5, &ShimEvent::HandoffDone { to, delay });
        for ms in [900, 1000, 1900, 5000] {
            packet(&mut c, ms);
        }
        c.finish(at(6000), |_| false);
        // 410 to 900 and 1000 to 1900 touch it, 1900 to 5000 comes too late; the handoff of node 9 is none of ours
        let flow = &c.flows()[0];
        let interruptions = [0, 1].map(|n| flow.gap_around(n, c.shims().get(n).unwrap().node));
        assert_eq!(interruptions, [Some(Duration::from_millis(900)), None]);
        assert_eq!(flow.bins(), [400, 200, 0, 0, 0, 100]);
        assert_eq!(c.shims().get(0).unwrap().done(), Some((at(800), delay)));
    }

    /// What a flow of TCP measures of messages that arrive 10 ms after they are sent, those at `lost` not: the longest gap, the
    /// interruption by a handoff from 3 to 4 s, and since when it is silent at 20 s. A message is sent at a time, and was
    /// there since then.
    fn silences(messages: &[(u64, u64)], lost: &[u64]) -> (u64, u64, u64) {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let way = Way::of(&Packet::EMPTY, InterfaceId(0));
        let to = Ipv6Addr::LOCALHOST;
        let mut c = Connections::new(Vec::new(), Mobility::Shim);
        let mut under_way = std::collections::VecDeque::new();
        let mut signalled = false;
        for (number, &(since, ms)) in (0..).zip(messages.iter().chain([&(u64::MAX, u64::MAX)])) {
            while let Some((arrival, entries)) = under_way.front().copied().filter(|(at, _)| *at <= ms) {
                under_way.pop_front();
                c.arrived(at(arrival), 5, &way, entries, true);
            }
            if ms > 3000 && !core::mem::replace(&mut signalled, true) {
                c.shim_event(at(3000), 5, &ShimEvent::HandoffBegun { from: None, to });
                let delay = Duration::from_secs(1);
                c.shim_event(at(4000), 5, &ShimEvent::HandoffDone { to, delay });
            }
            if ms == u64::MAX {
                break;
            }
            let segment = Segment {
                flow: FLOW,
                seq: 100 * number,
                length: 100,
                bytes: 100,
            };
            let mut entries = Entries::NONE;
            entries.add(c.sent(at(ms), &way, &segment, Some(at(since))));
            if !lost.contains(&ms) {
                under_way.push_back((ms + 10, entries));
            }
        }
        c.finish(at(20_000), |_| false);
        let flow = &c.flows()[0];
        let ms = |duration: Duration| duration.as_nanos() / 1_000_000;
        let longest = flow.pauses().longest().map_or(0, |gap| ms(gap.lasted()));
        let around = flow.gap_around(0, 5).unwrap();
        (
            longest,
            ms(around),
            ms(flow.silent_since(at(20_000)).since(Instant::ZERO)),
        )
    }

    #[test]
    fn while_an_application_has_nothing_to_send_its_flow_is_not_silent() {
        // nothing to send from 1 to 8 s, and after that
        let reads = [(0, 0), (1000, 1000), (8000, 8000), (8000, 8020)];
        assert_eq!(silences(&reads, &[]), (20, 0, 8030));
        // it had something, and could not send it until 8 s
        let waits = [(0, 0), (1000, 1000), (3500, 8000), (3500, 8020)];
        assert_eq!(silences(&waits, &[]), (4510, 4510, 8030));
        // the first message of several is lost, and its sender goes on
        let lost = [(0, 0), (1000, 1000), (3500, 3500), (8000, 8000), (8020, 8020)];
        assert_eq!(silences(&lost, &[3500]), (4510, 4510, 8030));
        // it was under way already when the one before it arrived
        let after = [(0, 0), (1000, 1000), (1005, 1005), (8000, 8000)];
        assert_eq!(silences(&after, &[1005]), (7000, 7000, 8010));
        // the last are lost, long after the handoff
        assert_eq!(silences(&reads, &[8000, 8020]), (10, 0, 8000));
    }

    /// A sender that moves every second to the other of two addresses. What is under way all the time was sent to the second.
    #[test]
    fn how_packets_left_is_known_of_those_that_are_not_forgotten() {
        let key = FlowKey {
            transport: Transport::Udp,
            sender: 0,
            receiver: 1,
            source_port: 1,
            destination_port: 2,
        };
        let to = |number: u64| Ipv6Addr::from(u128::from(number % 2 + 1));
        let mut c = Connections::new(Vec::new(), Mobility::Shim);
        let mut under_way = None;
        for number in 0..40_000_u64 {
            let second = number / 100;
            let mut packet = Packet::EMPTY;
            packet.ip.destination = to(second);
            let segment = Segment {
                flow: key,
                seq: 10 * number as u32,
                length: 10,
                bytes: 10,
            };
            let now = Instant::ZERO + Duration::from_millis(10 * number);
            let way = Way::of(&packet, InterfaceId(0));
            let mut entries = Entries::NONE;
            let id = c.sent(now, &way, &segment, Some(now));
            entries.add(id);
            if number == 150 {
                under_way = Some(id);
            } else {
                c.arrived(now, 5, &way, entries, true);
            }
        }
        let flow = &c.flows()[0];
        let (kept, known) = (c.ledger.entries().count(), flow.ways_left());
        assert!((1000..10_000).contains(&kept), "{kept}");
        assert!(known <= kept / 100 + 4, "{known} of 400, {kept} packets");
        assert_eq!(under_way.and_then(|id| flow.destination_of(id)), Some(to(1)));
        for (id, _) in c.ledger.entries() {
            assert_eq!(flow.destination_of(id), Some(to(u64::from(id) / 100)), "{id}");
        }
    }
}
