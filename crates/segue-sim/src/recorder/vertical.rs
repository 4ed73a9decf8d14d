//! The parts of a handoff as Cottingham and Vidales split it ("Is Latency the Real Enemy in Next Generation Networks?",
//! section 4): detection, configuration, registration, adaptation.

use segue_capture::analyze::ThroughputBins;
use segue_capture::record::Parts;
use segue_capture::rows::{Row, Rows, Spill};
use segue_proto::contract::LocalAddress;
use segue_proto::{Duration, Instant, InterfaceId};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The parts of one handoff. T_n = t_d + t_c + t_r (equation 1).
///
/// The network layer's part begins when the old network goes out of reach; in a soft handoff, when the new one comes into
/// reach, since nothing is missed before. It ends when everybody has the new address. What follows until the first data
/// packet arrives, over the new interface and whichever way, is no part of the equations: half a round trip, and above all the
/// wait for the sender's retransmission timer. There t_a begins.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct HandoffParts {
    /// Whether the old network was still in reach when others were told of the new address.
    pub soft: bool,
    /// When T_n begins, seconds of simulated time.
    pub since_s: f64,
    /// Detection: until the router advertisement from which the new address was formed, or, if the address was there
    /// before, until the decision to use it.
    pub t_d_s: f64,
    /// Configuration: from there to the first message that tells of the new address.
    pub t_c_s: f64,
    /// Registration (equation 4: return routability and binding update): from there until the last correspondent had the
    /// new address; without correspondents that are told, until the home agent's acknowledgement. Nothing if it did not
    /// end.
    pub t_r_s: Option<f64>,
    /// T_n.
    pub t_n_s: Option<f64>,
    /// From T_n's begin to the first data packet over the new interface; nothing if none arrived.
    pub first_data_s: Option<f64>,
    /// Adaptation time, by section 5: see [`segue_capture::analyze::adaptation_time`]. Nothing if too little arrived before
    /// the next handoff.
    pub t_a_s: Option<f64>,
    /// Mean throughput of the new interface, by the same method: the threshold of t_a, bit/s.
    pub threshold_bps: Option<f64>,
}

/// What is known of the hosts that move, and of their handoffs.
#[derive(Debug, Default)]
pub struct Vertical {
    hosts: BTreeMap<u32, HostState>,
    handoffs: Rows<Watched>,
    /// By node: its last handoff.
    last: Vec<Option<Last>>,
    /// By the address used after: the number of the last handoff, until everybody has acknowledged it.
    last_to: BTreeMap<Ipv6Addr, u32>,
}

impl From<HandoffParts> for Parts {
    fn from(p: HandoffParts) -> Self {
        Self {
            soft: Some(p.soft),
            since_s: p.since_s,
            t_d_s: Some(p.t_d_s),
            t_c_s: Some(p.t_c_s),
            t_r_s: p.t_r_s,
            t_n_s: p.t_n_s,
            first_data_s: p.first_data_s,
            t_a_s: p.t_a_s,
            threshold_bps: p.threshold_bps,
        }
    }
}

/// A host: when networks came and went, and what its interfaces heard.
#[derive(Debug, Default)]
struct HostState {
    /// When cells last came into reach, and went out of it.
    entered: Vec<(u32, Instant)>,
    left: Vec<(u32, Instant)>,
    /// The interface in use, once it is known.
    in_use: Option<InterfaceId>,
    interfaces: Vec<InterfaceState>,
    /// Begin of the last handoff.
    last_begin: Option<Instant>,
}

#[derive(Debug, Default)]
struct InterfaceState {
    interface: InterfaceId,
    /// The cell that it is, or was last, attached to.
    cell: Option<u32>,
    /// First router advertisement since the link came up.
    heard: Option<Instant>,
    /// When an address was last ready, and that address.
    ready: Option<(Instant, Ipv6Addr)>,
}

/// A handoff. What data shows of the last one of a host is in [`Last`], since there is much of it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Watched {
    node: u32,
    soft: bool,
    since: Instant,
    detected: Instant,
    begin: Instant,
    told: Option<Instant>,
    /// Of all but the last of a host: what it came to.
    first_data: Option<Instant>,
    adaptation: Option<Adaptation>,
}

impl Row for Watched {
    const BYTES: usize = 4 + 1 + 3 * 8 + 2 * 9 + 17;

    fn put(self, to: &mut Vec<u8>) {
        self.node.put(to);
        self.soft.put(to);
        for at in [self.since, self.detected, self.begin] {
            at.as_nanos().put(to);
        }
        for at in [self.told, self.first_data] {
            at.map(Instant::as_nanos).put(to);
        }
        self.adaptation.map(|a| (a.t_a_s, a.threshold_bps)).put(to);
    }

    fn read(from: &mut &[u8]) -> Self {
        let at = |from: &mut &[u8]| Instant::from_nanos(u64::read(from));
        let at_if = |from: &mut &[u8]| Option::<u64>::read(from).map(Instant::from_nanos);
        Self {
            node: Row::read(from),
            soft: Row::read(from),
            since: at(from),
            detected: at(from),
            begin: at(from),
            told: at_if(from),
            first_data: at_if(from),
            adaptation: Option::read(from).map(|(t_a_s, threshold_bps)| Adaptation { t_a_s, threshold_bps }),
        }
    }
}

/// Adaptation time and its threshold, as in [`HandoffParts`].
#[derive(Clone, Copy, PartialEq, Debug)]
struct Adaptation {
    t_a_s: f64,
    threshold_bps: f64,
}

/// The last handoff of a host.
#[derive(Debug)]
struct Last {
    number: u32,
    interface: Option<InterfaceId>,
    first_data: Option<Instant>,
    /// What arrives over the new interface.
    bins: ThroughputBins,
}

impl Last {
    fn adaptation(&self) -> Option<Adaptation> {
        self.bins.adaptation_time().map(|a| Adaptation {
            t_a_s: a.adaptation_time_s,
            threshold_bps: a.threshold_bps,
        })
    }
}

impl Vertical {
    /// Leaves all but the last handoffs in this store.
    pub fn keep_in(&mut self, spill: &Spill) {
        self.handoffs.keep_in(spill);
    }

    /// Has all of them in memory again: the run is over.
    pub fn recall(&mut self) {
        self.handoffs.recall();
    }

    fn host(&mut self, node: u32) -> &mut HostState {
        self.hosts.entry(node).or_default()
    }

    /// A cell comes into the reach of a host.
    pub fn entered(&mut self, now: Instant, node: u32, cell: u32) {
        note(&mut self.host(node).entered, cell, now);
    }

    /// A cell goes out of its reach.
    pub fn left(&mut self, now: Instant, node: u32, cell: u32) {
        note(&mut self.host(node).left, cell, now);
    }

    /// A link of a host comes up: what its interface heard before was another link's.
    pub fn link_up(&mut self, node: u32, interface: InterfaceId, cell: u32) {
        let state = self.host(node).interface(interface);
        (state.heard, state.cell) = (None, Some(cell));
    }

    /// A host hears a router.
    pub fn advertisement(&mut self, now: Instant, node: u32, interface: InterfaceId) {
        self.host(node).interface(interface).heard.get_or_insert(now);
    }

    /// An address of a host can be used.
    pub fn address_ready(&mut self, now: Instant, node: u32, local: LocalAddress) {
        self.host(node).interface(local.interface).ready = Some((now, local.address));
    }

    /// A host begins to tell others of its new address.
    pub fn handoff_begun(&mut self, now: Instant, node: u32, to: Ipv6Addr) {
        let host = self.hosts.entry(node).or_default();
        let previous = host.last_begin.replace(now).unwrap_or_default();
        let own = |i: &&InterfaceState| i.ready.is_some_and(|(_, address)| address == to);
        let interface = host.interfaces.iter().find(own);
        let cell_of = |id: InterfaceId| host.interfaces.iter().find(|i| i.interface == id)?.cell;
        let old = match host.in_use {
            Some(in_use) => cell_of(in_use),
            // before the first handoff the host is at home, on the one interface that it has had
            None => host.left.iter().max_by_key(|(_, at)| *at).map(|(cell, _)| *cell),
        };
        let left = old
            .and_then(|cell| last(&host.left, cell))
            .filter(|at| *at > previous);
        let entered = interface.and_then(|i| last(&host.entered, i.cell?));
        let since = left.or(entered).unwrap_or(now);
        // an address that was there before waited for the decision
        let detected = match interface {
            Some(InterfaceState {
                heard: Some(heard),
                ready: Some((ready, _)),
                ..
            }) if *ready == now => (*heard).max(since),
            _ => now,
        };
        let interface = interface.map(|i| i.interface);
        let watched = Watched {
            node,
            soft: left.is_none(),
            since,
            detected,
            begin: now,
            told: None,
            first_data: None,
            adaptation: None,
        };
        host.in_use = interface.or(host.in_use);
        let number = self.handoffs.len() as u32;
        if self.last.len() <= node as usize {
            self.last.resize_with(node as usize + 1, || None);
        }
        let last = Last {
            number,
            interface,
            first_data: None,
            bins: ThroughputBins::default(),
        };
        if let Some(before) = self.last[node as usize].replace(last) {
            self.handoffs.update(before.number as usize, |handoff| {
                (handoff.first_data, handoff.adaptation) = (before.first_data, before.adaptation());
            });
        }
        self.last_to.insert(to, number);
        self.handoffs.push(watched);
    }

    /// Somebody sends to a host's new address from now on.
    pub fn told(&mut self, now: Instant, to: Ipv6Addr) {
        if let Some(number) = self.last_to.get(&to) {
            self.handoffs
                .update(*number as usize, |handoff| handoff.told = Some(now));
        }
    }

    /// Everybody who was to be told has acknowledged it: who sends to that address from then on was told of no move.
    pub fn done(&mut self, to: Ipv6Addr) {
        self.last_to.remove(&to);
    }

    /// Data arrives at a host.
    pub fn data(&mut self, now: Instant, node: u32, interface: InterfaceId, bytes: u32) {
        let Some(Some(last)) = self.last.get_mut(node as usize) else {
            return;
        };
        core::hint::cold_path();
        if last.interface != Some(interface) {
            return;
        }
        last.first_data.get_or_insert(now);
        last.bins.add(now.as_nanos(), u64::from(bytes));
    }

    /// The parts of handoff `number`, as they were reported by [`handoff_begun`](Self::handoff_begun); everybody had
    /// acknowledged at `done`.
    #[must_use]
    pub fn parts(&self, number: usize, done: Option<Instant>) -> Option<HandoffParts> {
        let h = self.handoffs.get(number)?;
        let seconds = |d: Duration| d.as_secs_f64();
        let registered = h.told.or(done);
        let last = self.last.get(h.node as usize).and_then(Option::as_ref);
        let (first_data, adaptation) = match last.filter(|last| last.number as usize == number) {
            Some(last) => (last.first_data, last.adaptation()),
            None => (h.first_data, h.adaptation),
        };
        Some(HandoffParts {
            soft: h.soft,
            since_s: h.since.as_nanos() as f64 / 1e9,
            t_d_s: seconds(h.detected.since(h.since)),
            t_c_s: seconds(h.begin.since(h.detected)),
            t_r_s: registered.map(|at| seconds(at.since(h.begin))),
            t_n_s: registered.map(|at| seconds(at.since(h.since))),
            first_data_s: first_data.map(|at| seconds(at.since(h.since))),
            t_a_s: adaptation.map(|a| a.t_a_s),
            threshold_bps: adaptation.map(|a| a.threshold_bps),
        })
    }
}

impl HostState {
    fn interface(&mut self, interface: InterfaceId) -> &mut InterfaceState {
        let at = self.interfaces.iter().position(|i| i.interface == interface);
        let at = at.unwrap_or_else(|| {
            self.interfaces.push(InterfaceState {
                interface,
                ..InterfaceState::default()
            });
            self.interfaces.len() - 1
        });
        &mut self.interfaces[at]
    }
}

fn note(list: &mut Vec<(u32, Instant)>, cell: u32, now: Instant) {
    match list.iter_mut().find(|(c, _)| *c == cell) {
        Some((_, at)) => *at = now,
        None => list.push((cell, now)),
    }
}

fn last(list: &[(u32, Instant)], cell: u32) -> Option<Instant> {
    list.iter().find(|(c, _)| *c == cell).map(|(_, at)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    const OLD: InterfaceId = InterfaceId(0);
    const NEW: InterfaceId = InterfaceId(1);

    fn address(last: u16) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, last, 0, 0, 0, 0, 1)
    }

    fn ready(v: &mut Vertical, ms: u64, interface: InterfaceId) {
        let local = LocalAddress {
            interface,
            address: address(u16::from(interface.0)),
        };
        v.address_ready(at(ms), 3, local);
    }

    #[test]
    fn a_hard_handoff_is_split_where_the_advertisement_comes_and_where_the_update_goes() {
        let mut v = Vertical::default();
        v.entered(at(0), 3, 0);
        v.link_up(3, OLD, 0);
        v.advertisement(at(10), 3, OLD);
        ready(&mut v, 10, OLD);
        v.handoff_begun(at(10), 3, address(0));
        v.left(at(1000), 3, 0);
        v.entered(at(1000), 3, 1);
        v.link_up(3, NEW, 1);
        v.advertisement(at(1700), 3, NEW);
        v.advertisement(at(1800), 3, NEW);
        ready(&mut v, 1900, NEW);
        v.handoff_begun(at(1900), 3, address(1));
        v.told(at(2600), address(1));
        v.told(at(2650), address(7));
        // a correspondent that begins to talk to the host when it is over
        v.done(address(1));
        v.told(at(9000), address(1));
        // what still comes over the old interface is not the new one's
        v.data(at(2000), 3, OLD, 500);
        for n in 0..40 {
            v.data(at(3000 + 50 * n), 3, NEW, if n < 10 { 100 } else { 1000 });
        }
        let parts = v.parts(1, None).unwrap();
        assert!(!parts.soft);
        assert_eq!((parts.since_s, parts.t_d_s, parts.t_c_s), (1.0, 0.7, 0.2));
        assert_eq!((parts.t_r_s, parts.t_n_s), (Some(0.7), Some(1.6)));
        assert_eq!(parts.first_data_s, Some(2.0));
        let packets = (0..40).map(|n| (3_000_000_000 + 50_000_000 * n, if n < 10 { 100 } else { 1000 }));
        let expected = segue_capture::analyze::adaptation_time(packets).unwrap();
        assert_eq!(parts.t_a_s, Some(expected.adaptation_time_s));
        assert!(expected.adaptation_time_s > 0.4);
        assert_eq!(v.parts(2, None), None);
    }

    #[test]
    fn an_address_that_was_there_waits_for_the_decision() {
        let mut v = Vertical::default();
        v.entered(at(0), 3, 1);
        v.link_up(3, NEW, 1);
        v.advertisement(at(10), 3, NEW);
        ready(&mut v, 10, NEW);
        v.left(at(1000), 3, 0);
        v.handoff_begun(at(1600), 3, address(1));
        let parts = v.parts(0, Some(at(1900))).unwrap();
        assert_eq!((parts.t_d_s, parts.t_c_s, parts.t_r_s), (0.6, 0.0, Some(0.3)));
        assert_eq!((parts.first_data_s, parts.t_a_s), (None, None));
    }

    #[test]
    fn a_soft_handoff_begins_when_the_new_network_is_in_reach() {
        let mut v = Vertical::default();
        v.link_up(3, OLD, 0);
        v.advertisement(at(10), 3, OLD);
        ready(&mut v, 10, OLD);
        v.handoff_begun(at(10), 3, address(0));
        // another cell than the one in use
        v.left(at(400), 3, 1);
        v.entered(at(500), 3, 1);
        v.link_up(3, NEW, 1);
        v.advertisement(at(800), 3, NEW);
        ready(&mut v, 800, NEW);
        v.handoff_begun(at(800), 3, address(1));
        let parts = v.parts(1, None).unwrap();
        assert!(parts.soft);
        assert_eq!((parts.since_s, parts.t_d_s, parts.t_c_s), (0.5, 0.3, 0.0));
    }
}
