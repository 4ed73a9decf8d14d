//! Handoffs by their signalling: of shims, and of transports that change their addresses.

use super::ledger::{FlowKey, Transport};
use segue_capture::rows::{Row, Rows, Spill};
use segue_proto::sctp::AssociationId;
use segue_proto::shim::ShimEvent;
use segue_proto::sigma::{SigmaEvent, SigmaEventKind};
use segue_proto::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A gap in the received data belongs to a handoff if it begins no later than this after everybody was told.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// Messages of a handoff that wait for their acknowledgements, and for how long any has waited.
#[derive(Clone, Copy, Debug, Default)]
struct Exchanges {
    /// Since when the one waits that adds the address, and the one that has it used.
    adding: Option<Instant>,
    using: Option<Instant>,
    /// How long either has waited before that.
    waited: Duration,
}

impl Exchanges {
    /// What has been waited for is counted up to now.
    fn count(&mut self, now: Instant) {
        let since = match (self.adding, self.using) {
            (Some(a), Some(b)) => a.min(b),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => return,
        };
        self.waited += now.since(since);
        for waits in [&mut self.adding, &mut self.using].into_iter().flatten() {
            *waits = now;
        }
    }
}

/// An association that a host moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moving {
    /// The host's name for it.
    pub id: AssociationId,
    /// Verification tags: of packets to the host, and of packets from it.
    pub tags: Option<(u32, u32)>,
}

/// How a handoff ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The last message was acknowledged, and for so long one or other had not been.
    Done(Instant, Duration),
    /// The peer refused the address, the host took it back, or it has moved on, or the association is over.
    GivenUp(Instant),
}

/// A handoff.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handoff {
    /// The host.
    pub node: u32,
    /// When the first message left that tells of the new address.
    pub begin: Instant,
    /// How it ended, if it has.
    end: Option<End>,
    /// Address used before.
    pub from: Option<Ipv6Addr>,
    /// Address used after.
    pub to: Ipv6Addr,
    /// The peer was asked to use the new address: until then it is only one more.
    pub asked: bool,
    /// Verification tags of the association that it is of, where a host moves each by itself: of packets to the host, and of
    /// packets from it.
    pub tags: Option<(u32, u32)>,
}

impl Handoff {
    /// When the last message was acknowledged, and for how long one or other had not been (004 section 5.4; see
    /// [`segue_capture::record::HandoverRecord::handoff_delay_s`]).
    #[must_use]
    pub fn done(&self) -> Option<(Instant, Duration)> {
        match self.end? {
            End::Done(at, delay) => Some((at, delay)),
            End::GivenUp(_) => None,
        }
    }

    /// Whether a flow of the host moves with it: not that of another association.
    #[must_use]
    pub fn is_of(&self, flow: &FlowKey) -> bool {
        let Some((to_host, from_host)) = self.tags.filter(|_| flow.transport == Transport::Sctp) else {
            return true;
        };
        let tag = if flow.sender == self.node {
            from_host
        } else {
            to_host
        };
        flow.receiver == u64::from(tag)
    }

    /// When it ended, well or not.
    fn ended(&self) -> Option<Instant> {
        let (End::Done(at, _) | End::GivenUp(at)) = self.end?;
        Some(at)
    }

    /// Whether data that does not arrive from `since` to `until` is missed because of it.
    #[must_use]
    pub fn is_within(&self, since: Instant, until: Instant) -> bool {
        let settled = self.ended().map_or(Instant::MAX, |at| at + SETTLES_WITHIN);
        until >= self.begin && since <= settled
    }

    /// Whether nothing that is missed from `now` on is missed because of it.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        self.ended().is_some_and(|at| at + SETTLES_WITHIN < now)
    }
}

/// Handoffs in the order of their beginnings.
#[derive(Debug, Default)]
pub struct Handoffs {
    all: Rows<Handoff>,
    /// By number: what those that have not ended wait for.
    exchanges: BTreeMap<u32, Exchanges>,
    /// Who could not be told, with the number.
    failed: Rows<(u32, Ipv6Addr)>,
    /// The same by number, once the run is over.
    failed_by_number: BTreeMap<u32, Vec<Ipv6Addr>>,
    by_node: Vec<OfNode>,
    spill: Option<Spill>,
}

/// Numbers of the handoffs of a node.
#[derive(Debug, Default)]
pub struct OfNode {
    all: Rows<u32>,
    /// Of them, those that have not ended, and the association that each is of.
    open: Vec<(u32, Option<AssociationId>)>,
    /// The address that each association moved to last.
    in_use: BTreeMap<AssociationId, Ipv6Addr>,
}

impl OfNode {
    const NONE: &Self = &Self {
        all: Rows::new(),
        open: Vec::new(),
        in_use: BTreeMap::new(),
    };

    /// How many they are.
    #[must_use]
    #[inline]
    pub const fn count(&self) -> usize {
        self.all.len()
    }

    /// In the order of their beginnings.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.all.iter()
    }

    /// The same from place `from` on.
    pub fn from(&self, from: usize) -> impl Iterator<Item = u32> {
        (from..self.count()).filter_map(|at| self.all.get(at))
    }

    /// From the last on.
    pub fn backwards(&self) -> impl Iterator<Item = u32> {
        (0..self.count()).rev().filter_map(|at| self.all.get(at))
    }
}

impl Row for Handoff {
    const BYTES: usize = 4 + 8 + (1 + 16) + 17 + 16 + 1 + 9;

    fn put(self, to: &mut Vec<u8>) {
        self.node.put(to);
        self.begin.as_nanos().put(to);
        // how it ended: not, well after so long, or not well
        let (how, at, delay) = match self.end {
            None => (0_u8, Instant::ZERO, Duration::ZERO),
            Some(End::Done(at, delay)) => (1, at, delay),
            Some(End::GivenUp(at)) => (2, at, Duration::ZERO),
        };
        how.put(to);
        (at.as_nanos(), delay.as_nanos()).put(to);
        self.from.put(to);
        self.to.put(to);
        self.asked.put(to);
        self.tags.put(to);
    }

    fn read(from: &mut &[u8]) -> Self {
        let node = u32::read(from);
        let begin = Instant::from_nanos(u64::read(from));
        let how = u8::read(from);
        let (at, delay) = (u64::read(from), u64::read(from));
        let at = Instant::from_nanos(at);
        Self {
            node,
            begin,
            end: match how {
                0 => None,
                1 => Some(End::Done(at, Duration::from_nanos(delay))),
                _ => Some(End::GivenUp(at)),
            },
            from: Row::read(from),
            to: Row::read(from),
            asked: Row::read(from),
            tags: Row::read(from),
        }
    }
}

impl Handoffs {
    /// Leaves all but the last of them in this store.
    pub fn keep_in(&mut self, spill: &Spill) {
        self.all.keep_in(spill);
        self.failed.keep_in(spill);
        self.by_node.iter_mut().for_each(|own| own.all.keep_in(spill));
        self.spill = Some(spill.clone());
    }

    /// Has all of them in memory again: the run is over.
    pub fn recall(&mut self) {
        self.all.recall();
        self.by_node.iter_mut().for_each(|own| own.all.recall());
        for (number, peer) in self.failed.iter() {
            self.failed_by_number.entry(number).or_default().push(peer);
        }
        self.failed = Rows::default();
    }

    /// A shim reports.
    pub fn shim_event(&mut self, now: Instant, node: u32, event: &ShimEvent) {
        match *event {
            ShimEvent::HandoffBegun { from, to } => {
                // nobody waits for the one before any longer
                self.give_up(now, node, |_| true);
                let number = self.begin(now, node, from, to, None);
                self.all.update(number as usize, |handoff| handoff.asked = true);
            }
            ShimEvent::HandoffDone { to, delay } => {
                if let Some(number) = self.open(node, None, to) {
                    self.end(node, number, End::Done(now, delay));
                }
            }
            ShimEvent::HandoffFailed { peer } => {
                if let Some(number) = self.of(node).all.last() {
                    self.failed.push((number, peer));
                }
            }
            _ => {}
        }
    }

    /// A host that changes the addresses of an association reports: from the ASCONF that adds an address until the one
    /// that makes it primary is acknowledged, or one of them is refused, or the address is taken back.
    pub fn sigma_event(&mut self, node: u32, moving: Moving, event: &SigmaEvent) {
        let (now, of) = (event.time, Some(moving.id));
        match event.kind {
            SigmaEventKind::AddSent(to) if self.open(node, of, to).is_none() => {
                let number = self.begin(now, node, self.in_use(node, moving.id), to, Some(moving));
                self.exchanges.entry(number).or_default().adding = Some(now);
            }
            SigmaEventKind::AddAcknowledged(to) => {
                let open = self.open(node, of, to);
                if let Some(exchanges) = open.and_then(|number| self.exchanges.get_mut(&number)) {
                    exchanges.count(now);
                    exchanges.adding = None;
                }
            }
            SigmaEventKind::SetPrimarySent(to) | SigmaEventKind::ActivateSent(to) => {
                let from = self.in_use(node, moving.id);
                let open = self.open(node, of, to);
                let number = open.unwrap_or_else(|| self.begin(now, node, from, to, Some(moving)));
                self.all.update(number as usize, |handoff| {
                    (handoff.asked, handoff.from) = (true, from);
                });
                self.exchanges.entry(number).or_default().using.get_or_insert(now);
            }
            SigmaEventKind::SetPrimaryAcknowledged(to) | SigmaEventKind::ActivateAcknowledged(to) => {
                if let Some(number) = self.open(node, of, to) {
                    let mut exchanges = self.exchanges.remove(&number).unwrap_or_default();
                    exchanges.count(now);
                    self.end(node, number, End::Done(now, exchanges.waited));
                    self.by_node[node as usize].in_use.insert(moving.id, to);
                }
            }
            SigmaEventKind::AddRefused(to)
            | SigmaEventKind::SetPrimaryRefused(to)
            | SigmaEventKind::ActivateRefused(to)
            | SigmaEventKind::DeleteSent(to)
            | SigmaEventKind::DeleteAcknowledged(to)
            | SigmaEventKind::DeactivateSent(to) => {
                if let Some(number) = self.open(node, of, to) {
                    self.end(node, number, End::GivenUp(now));
                }
            }
            _ => {}
        }
    }

    /// An association of a node is over, or was begun anew by its peer: nothing of it will be acknowledged.
    pub fn association_gone(&mut self, now: Instant, node: u32, id: AssociationId) {
        self.give_up(now, node, |of| of == Some(id));
        if let Some(own) = self.by_node.get_mut(node as usize) {
            own.in_use.remove(&id);
        }
    }

    /// Those of a node that have not ended are given up, of which it is so by their association.
    fn give_up(&mut self, now: Instant, node: u32, is_so: impl Fn(Option<AssociationId>) -> bool) {
        for (number, of) in self.of(node).open.clone() {
            if is_so(of) {
                self.end(node, number, End::GivenUp(now));
            }
        }
    }

    /// All of them.
    #[must_use]
    pub const fn all(&self) -> &Rows<Handoff> {
        &self.all
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<Handoff> {
        self.all.get(number as usize)
    }

    /// Those who could not be told, of one of them, once the run is over.
    #[must_use]
    pub fn failed(&self, number: u32) -> &[Ipv6Addr] {
        self.failed_by_number.get(&number).map_or(&[], Vec::as_slice)
    }

    /// Numbers of those of a node.
    #[must_use]
    #[inline]
    pub fn of(&self, node: u32) -> &OfNode {
        self.by_node.get(node as usize).unwrap_or(OfNode::NONE)
    }

    /// The address that an association of a node moved to last; that of any, if this one has not moved yet.
    fn in_use(&self, node: u32, of: AssociationId) -> Option<Ipv6Addr> {
        let own = self.of(node);
        own.in_use.get(&of).copied().or_else(|| {
            let all = own.backwards().filter_map(|n| self.get(n));
            all.filter(|h| h.done().is_some()).map(|h| h.to).next()
        })
    }

    fn begin(
        &mut self,
        now: Instant,
        node: u32,
        from: Option<Ipv6Addr>,
        to: Ipv6Addr,
        moving: Option<Moving>,
    ) -> u32 {
        let at = node as usize;
        if self.by_node.len() <= at {
            self.by_node.resize_with(at + 1, || {
                let mut own = OfNode::default();
                self.spill.iter().for_each(|spill| own.all.keep_in(spill));
                own
            });
        }
        let number = self.all.len() as u32;
        self.by_node[at].all.push(number);
        self.by_node[at].open.push((number, moving.map(|m| m.id)));
        self.all.push(Handoff {
            node,
            begin: now,
            end: None,
            from,
            to,
            asked: false,
            tags: moving.and_then(|m| m.tags),
        });
        number
    }

    fn end(&mut self, node: u32, number: u32, end: End) {
        self.exchanges.remove(&number);
        self.all
            .update(number as usize, |handoff| handoff.end = Some(end));
        if let Some(own) = self.by_node.get_mut(node as usize) {
            own.open.retain(|(open, _)| *open != number);
        }
    }

    /// The number of the last one of a node, or of an association of it, to this address, while it goes on.
    fn open(&self, node: u32, of: Option<AssociationId>, to: Ipv6Addr) -> Option<u32> {
        let own = self.of(node).open.iter().rev().filter(|(_, own)| *own == of);
        let mut own = own.map(|(number, _)| *number);
        own.find(|n| self.get(*n).is_some_and(|handoff| handoff.to == to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVING: Moving = Moving {
        id: AssociationId(1),
        tags: Some((10, 20)),
    };

    #[test]
    fn each_association_has_handoffs_of_its_own_for_its_own_flows() {
        use SigmaEventKind as Kind;
        let (to, back) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let other = Moving {
            id: AssociationId(2),
            tags: Some((30, 40)),
        };
        let mut handoffs = Handoffs::default();
        for (ms, moving, kind) in [
            (100, MOVING, Kind::AddSent(to)),
            (100, other, Kind::AddSent(to)),
            (120, MOVING, Kind::AddAcknowledged(to)),
            (120, MOVING, Kind::SetPrimarySent(to)),
            (140, MOVING, Kind::SetPrimaryAcknowledged(to)),
            (300, other, Kind::AddAcknowledged(to)),
            (300, other, Kind::SetPrimarySent(to)),
            (500, other, Kind::SetPrimaryAcknowledged(to)),
            (900, MOVING, Kind::SetPrimarySent(back)),
            (900, other, Kind::SetPrimarySent(back)),
            (920, MOVING, Kind::SetPrimaryAcknowledged(back)),
        ] {
            handoffs.sigma_event(7, moving, &SigmaEvent { time: at(ms), kind });
        }
        let own: Vec<Handoff> = handoffs.all().iter().collect();
        let done = |ms, delay_ms| Some((at(ms), Duration::from_millis(delay_ms)));
        let ends: Vec<_> = own.iter().map(Handoff::done).collect();
        assert_eq!(ends, [done(140, 40), done(500, 400), done(920, 20), None]);
        assert_eq!((own[2].from, own[3].from), (Some(to), Some(to)));
        let flow = |sender, receiver, transport| FlowKey {
            transport,
            sender,
            receiver,
            source_port: 9,
            destination_port: 9,
        };
        let sctp = [(7, 20), (3, 10), (7, 40), (3, 30)];
        let of =
            |h: &Handoff| sctp.map(|(sender, receiver)| h.is_of(&flow(sender, receiver, Transport::Sctp)));
        assert_eq!(of(&own[0]), [true, true, false, false]);
        assert_eq!(of(&own[1]), [false, false, true, true]);
        assert!(own[0].is_of(&flow(7, 5, Transport::Tcp)));
        // and the second ends when its association does
        handoffs.association_gone(at(1000), 7, other.id);
        assert!(handoffs.get(3).unwrap().is_over(at(2001)) && handoffs.of(7).open.is_empty());
    }

    #[test]
    fn a_handoff_that_is_refused_or_taken_back_has_ended() {
        use SigmaEventKind as Kind;
        let to = Ipv6Addr::LOCALHOST;
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let before = [
            Kind::AddSent(to),
            Kind::SetPrimarySent(to),
            Kind::ActivateSent(to),
        ];
        for (end, begun) in [
            (Kind::AddRefused(to), 1),
            (Kind::SetPrimaryRefused(to), 2),
            (Kind::ActivateRefused(to), 3),
            (Kind::DeleteSent(to), 1),
            (Kind::DeleteAcknowledged(to), 1),
            (Kind::DeactivateSent(to), 1),
        ] {
            let mut handoffs = Handoffs::default();
            let mut happens = |s, kind| {
                let event = SigmaEvent { time: at(s), kind };
                handoffs.sigma_event(7, MOVING, &event);
            };
            for (s, kind) in (1..).zip(before).take(begun) {
                happens(s, kind);
            }
            happens(10, end);
            happens(300, Kind::AddSent(to));
            happens(301, Kind::SetPrimarySent(to));
            happens(302, Kind::SetPrimaryAcknowledged(to));
            assert_eq!(handoffs.all().len(), 2, "{end:?}: {handoffs:?}");
            let (first, second) = (handoffs.get(0).unwrap(), handoffs.get(1).unwrap());
            assert_eq!((first.begin, first.done()), (at(1), None), "{end:?}");
            assert!(first.is_within(at(11), at(20)) && !first.is_within(at(12), at(20)));
            assert!(first.is_over(at(12)) && !first.is_over(at(11)));
            // nobody had acknowledged the Add
            let delay = Duration::from_secs(2);
            assert_eq!((second.begin, second.done()), (at(300), Some((at(302), delay))));
        }
    }
    #[test]
    fn a_handoff_that_waits_for_its_decision_is_delayed_by_its_messages_alone() {
        use SigmaEventKind as Kind;
        let to = Ipv6Addr::LOCALHOST;
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let delay = |events: &[(u64, Kind)]| {
            let mut handoffs = Handoffs::default();
            for &(ms, kind) in events {
                handoffs.sigma_event(7, MOVING, &SigmaEvent { time: at(ms), kind });
            }
            handoffs.get(0).unwrap().done()
        };
        let done = |ms, delay_ms| Some((at(ms), Duration::from_millis(delay_ms)));
        let (add, added) = (Kind::AddSent(to), Kind::AddAcknowledged(to));
        let (primary, is_primary) = (Kind::SetPrimarySent(to), Kind::SetPrimaryAcknowledged(to));
        // forty seconds later it decides to move
        let waits = [(100, add), (180, added), (40_000, primary), (40_070, is_primary)];
        assert_eq!(delay(&waits), done(40_070, 150));
        let at_once = [(100, add), (180, added), (180, primary), (250, is_primary)];
        assert_eq!(delay(&at_once), done(250, 150));
        // in one chunk, and one behind the other
        let together = [(100, add), (100, primary), (180, added), (180, is_primary)];
        assert_eq!(delay(&together), done(180, 80));
        let behind = [(100, add), (120, primary), (180, added), (250, is_primary)];
        assert_eq!(delay(&behind), done(250, 150));
    }
}
