//! A flow while it lives: its two directions, and the paths that their packets take.

mod ways;

use crate::analyze::decode::{Address, Marks};
use crate::analyze::flows::datagrams::Datagrams;
use crate::analyze::flows::ends::{AtEnd, Ends, Listens};
use crate::analyze::flows::item::{Item, Settings};
use crate::analyze::flows::key::{Key, Slot};
use crate::analyze::flows::mptcp::Subflow;
use crate::analyze::flows::paths::{PathState, Role, Sight};
use crate::analyze::flows::progress::{Progress, What};
use crate::analyze::flows::shares::Choice;
use crate::analyze::flows::view::View;
use crate::analyze::model::Protocol;
use crate::record::DEAD_AFTER_NS;
use std::collections::VecDeque;

/// Messages that are remembered that a path is left.
const MAX_TOLD: usize = 64;

/// One direction.
#[derive(Clone, Debug, Default)]
pub(in crate::analyze) struct Half {
    /// By [`Role::place`].
    pub at: [Option<Box<View>>; 2],
    pub ends: Option<Box<Ends>>,
    pub packets: [u64; 2],
    pub progress: Progress,
    /// Since when nothing new has arrived, though the sender has heard of earlier data since then.
    unended_ns: Option<u64>,
    /// First sequence number of data, from the handshake.
    pub begin: Option<u32>,
    /// A timestamp whose echo is waited for, and when it was sent.
    pub echo: Option<(u32, u64)>,
    /// Datagrams that left the sender, where the receiver is captured too.
    pub datagrams: Option<Box<Datagrams>>,
    /// Role that is certain: of packets captured so.
    pub certain: [bool; 2],
    /// Number of the path of the last packet, by place.
    last_path: [u16; 2],
    /// The last packet, and those before it where there are several paths: what, when, path.
    last_packet: (u64, u64, u16),
    recent: VecDeque<(u64, u64, u16)>,
}

impl Half {
    /// Whether the receiver is seen to have all that is known to be sent, acknowledged or not.
    pub(in crate::analyze) fn has_arrived_whole(&self) -> bool {
        let received = self.at[1].as_ref().filter(|v| v.data_packets > 0);
        received.is_some_and(|v| v.sequence.is_whole() && v.sequence.end() == self.progress.sent)
    }

    /// The sender hears of what arrived, after attempts that had gone unanswered from `silent_ns` on. Where arrivals are seen,
    /// it is only the next of them that ends an outage.
    fn hears_again(&mut self, silent_ns: Option<u64>, now_ns: u64) {
        if silent_ns.is_none() {
            return;
        }
        let arrives = self.at[1].as_ref().is_some_and(|v| v.data_packets > 0);
        if arrives && self.ends.as_ref().is_some_and(|e| !e.ends_early(now_ns)) {
            self.unended_ns = self.unended_ns.or(silent_ns);
        } else {
            self.progress.note_outage(silent_ns, now_ns);
        }
    }
}

/// A flow.
#[derive(Clone, Debug)]
pub(in crate::analyze) struct Conn {
    /// Given by the table.
    pub id: u64,
    pub protocol: Protocol,
    /// The end that sent the first packet.
    pub a: (Address, u16),
    pub b: (Address, u16),
    /// Their addresses as first seen: identities may be identifiers alone.
    pub shown: (Address, Address),
    /// Further addresses, and whose they are.
    pub aliases: Vec<((Address, u16), usize)>,
    /// Verification tags of SCTP that packets of each direction carry.
    pub tags: [u32; 2],
    pub begin_ns: u64,
    pub last_ns: u64,
    pub marks: Marks,
    pub halves: [Half; 2],
    pub paths: Vec<PathState>,
    pub keys: Vec<Key>,
    /// Of MPTCP.
    pub subflow: Option<Box<Subflow>>,
    /// Subflows that live, where this is an MPTCP connection.
    pub subflows: u32,
    /// FIN in each direction, or RST in any: what comes next with a SYN is another connection.
    pub closed: [bool; 2],
    /// Which end said RST or ABORT, first, and when.
    pub reset: Option<(usize, u64)>,
    /// Of WireGuard, by direction: the index of the keys in use, the sequence number of their counter's zero, and the
    /// first sequence number that is free.
    counters: [(u32, u32, u32); 2],
    /// When somebody said that a path was left.
    pub told_ns: Vec<u64>,
    /// Packets captured twice, not counted.
    pub captured_twice: u64,
    /// Packets on more paths than are told apart.
    pub paths_beyond: u64,
}

impl Conn {
    pub(in crate::analyze) fn new(
        protocol: Protocol,
        a: (Address, u16),
        b: (Address, u16),
        now_ns: u64,
    ) -> Box<Self> {
        Box::new(Self {
            id: 0,
            protocol,
            a,
            b,
            shown: (a.0, b.0),
            aliases: Vec::new(),
            tags: [0; 2],
            begin_ns: now_ns,
            last_ns: now_ns,
            marks: Marks::default(),
            halves: [Half::default(), Half::default()],
            paths: Vec::new(),
            keys: Vec::new(),
            subflow: None,
            subflows: 0,
            closed: [false; 2],
            reset: None,
            counters: [(0, 0, 0); 2],
            told_ns: Vec::new(),
            captured_twice: 0,
            paths_beyond: 0,
        })
    }

    /// Direction of a packet between these ends: 0 from `a`, 1 from `b`.
    pub(in crate::analyze) fn direction(&self, source: (Address, u16), destination: (Address, u16)) -> usize {
        if source == self.a || destination == self.b {
            return 0;
        }
        if source == self.b || destination == self.a {
            return 1;
        }
        let whose = |end: (Address, u16)| {
            self.aliases
                .iter()
                .find(|(known, _)| *known == end)
                .map(|(_, w)| *w)
        };
        whose(source)
            .or_else(|| whose(destination).map(|w| 1 - w))
            .unwrap_or_default()
    }

    /// A packet of this direction: 0 from `a`, 1 from `b`.
    pub(in crate::analyze) fn packet(&mut self, direction: usize, sight: &Sight) {
        self.last_ns = self.last_ns.max(sight.time_ns);
        let senders = self.path_is_the_senders();
        self.marks.tunnelled |= sight.marks.tunnelled;
        self.marks.route_optimised |= sight.marks.route_optimised;
        self.marks.ilnp |= sight.marks.ilnp;
        if senders && !self.path_is_the_senders() {
            let views = self.halves.iter_mut().filter_map(|h| h.at[1].as_mut());
            views.for_each(|view| view.forget_sent());
        }
        let half = &mut self.halves[direction];
        half.packets[sight.role.place()] += 1;
        match sight.role {
            Role::Sender => half.certain[0] = true,
            Role::Receiver => half.certain[1] = true,
            Role::Somewhere => {}
        }
        if sight.role != Role::Sender {
            let answers = !self.is_acknowledged();
            let silent_ns = if answers {
                self.silent_ns(1 - direction, sight.time_ns)
            } else {
                None
            };
            let half = &mut self.halves[1 - direction];
            half.progress.hears(sight.time_ns, answers);
            half.hears_again(silent_ns, sight.time_ns);
        }
        if sight.role == Role::Receiver
            && let Some(ends) = &mut self.halves[1 - direction].ends
        {
            ends.hears(sight.time_ns);
        }
    }

    /// Whether acknowledgements can be seen.
    pub(in crate::analyze) const fn is_acknowledged(&self) -> bool {
        matches!(self.protocol, Protocol::Tcp | Protocol::Mptcp | Protocol::Sctp)
    }

    /// Whether the transport's sender chooses the path, so that it looks the same at both ends: not where the network layer
    /// sees to mobility.
    pub(in crate::analyze) const fn path_is_the_senders(&self) -> bool {
        let Marks {
            tunnelled,
            route_optimised,
            ilnp,
        } = self.marks;
        matches!(self.protocol, Protocol::Sctp | Protocol::Mptcp) && !tunnelled && !route_optimised && !ilnp
    }

    /// An item of data of this direction. Gives whether it counts.
    pub(in crate::analyze) fn data(
        &mut self,
        direction: usize,
        sight: &Sight,
        item: Item,
        identification: u16,
        limits: &Limits,
    ) -> bool {
        let path = self.path(direction, sight);
        if self.is_captured_twice(direction, sight, path, item, identification) {
            self.captured_twice += 1;
            return false;
        }
        let senders = self.path_is_the_senders();
        let place = sight.role.place();
        let mut quiet_ns = u64::MAX;
        if let Some(state) = self.paths.get_mut(usize::from(path)) {
            state.data_packets[place] += 1;
            state.data_bytes[place] += u64::from(item.bytes);
            if let Some(last_ns) = state.last_data_ns.replace(sight.time_ns) {
                quiet_ns = sight.time_ns.saturating_sub(last_ns);
            }
        }
        let silent_ns = if place == 1 {
            self.silent_ns(direction, sight.time_ns)
        } else {
            None
        };
        if sight.both {
            self.account(direction, sight, item, path, limits);
        }
        let half = &mut self.halves[direction];
        if !sight.taken && sight.role == Role::Receiver {
            return true;
        }
        if senders && sight.both && sight.role == Role::Sender {
            let view = half.at[1].get_or_insert_default();
            view.mover().sent(sight.time_ns, path, item.seq);
        }
        let view = half.at[place].get_or_insert_default();
        if let Some(begin) = half.begin {
            view.sequence.begin(begin);
        }
        view.packets = half.packets[place];
        let useful_before = view.useful_bytes;
        let settled = view.data(sight.time_ns, path, item, &limits.settings);
        if place == 0 {
            half.progress.sends(sight.time_ns, path, &item, quiet_ns);
        } else if view.useful_bytes > useful_before || item.bytes == 0 {
            half.progress.advances(sight.time_ns, What::Arrived, item.seq);
            let silent_ns = half.unended_ns.take().or(silent_ns);
            half.progress.note_outage(silent_ns, sight.time_ns);
        }
        if settled
            && let Some(ends) = &mut half.ends
            && place == 1
            && let Some((begin_ns, first_new_ns, number)) = view.mover().last_settled()
        {
            let window_ns = limits.settings.window_ns;
            let around = ends.count_around(begin_ns.saturating_sub(window_ns), first_new_ns + window_ns);
            *number = Some(around);
        }
        true
    }

    /// The account of both ends, where both are seen.
    fn account(&mut self, direction: usize, sight: &Sight, item: Item, path: u16, limits: &Limits) {
        // what leaves by one pair of addresses goes one way, whatever else tells paths apart
        let goes =
            |p: &PathState| p.direction == direction && p.outer == sight.outer && p.ports == sight.ports;
        let way = self.paths.iter().position(goes).map_or(path, |n| n as u16);
        let half = &mut self.halves[direction];
        let receivers = match sight.role {
            Role::Receiver => sight.capture & 1,
            _ => 1 - (sight.capture & 1),
        };
        let listens = limits.listens[usize::from(receivers)];
        let ends = half.ends.get_or_insert_with(|| Box::new(Ends::new(listens)));
        if let Some(begin) = half.begin {
            ends.begin(begin);
        }
        let at = |number: u32| AtEnd {
            time_ns: sight.time_ns,
            seq: number,
            span: item.span,
            stamp: item.stamp.or(sight.fragments),
        };
        match (item.number, sight.role) {
            (Some(number), Role::Receiver) => ends.received(at(number), way, sight.taken),
            (Some(number), _) => ends.sent(at(number), way, limits.copies),
            (None, _) => ends.unmatched(),
        }
    }

    /// Data of the other direction than `direction` is acknowledged up to `ack` by a packet of this one. Gives when what
    /// was timed was sent, if something was.
    pub(in crate::analyze) fn acknowledged(
        &mut self,
        direction: usize,
        sight: &Sight,
        ack: u32,
        beyond: Option<(u32, u32)>,
        closed_window: bool,
    ) -> Option<u64> {
        if sight.role == Role::Sender {
            return None;
        }
        let silent_ns = self.silent_ns(1 - direction, sight.time_ns);
        let half = &mut self.halves[1 - direction];
        if half
            .progress
            .acknowledged(sight.time_ns, ack, beyond, closed_window)
        {
            half.hears_again(silent_ns, sight.time_ns);
        }
        let [sent, received] = &mut self.halves[1 - direction].at;
        let sent_ns = sent.as_mut()?.acknowledged(sight.time_ns, ack)?;
        if let Some(received) = received {
            received.round_trip(sent_ns, sight.time_ns.saturating_sub(sent_ns));
        }
        Some(sent_ns)
    }

    /// Since when nothing new of this direction has got anywhere, if its sender has tried for so long that it would be dead if
    /// it ended now.
    fn silent_ns(&self, direction: usize, now_ns: u64) -> Option<u64> {
        if self.halves[direction].progress.tried_ns() <= DEAD_AFTER_NS {
            return None;
        }
        self.dead_since(direction, now_ns)
    }

    /// A message of this direction that has to be answered.
    pub(in crate::analyze) fn probe(&mut self, direction: usize, sight: &Sight, what: What) {
        if sight.role != Role::Receiver {
            let last = self.halves[direction].last_path[sight.role.place()];
            let path = self.path(direction, sight);
            self.halves[direction].last_path[sight.role.place()] = last;
            let used_ns = self.paths.get(usize::from(path)).and_then(|p| p.last_data_ns);
            // those go by every path, always
            let quiet_ns = if what == What::Heartbeat {
                0
            } else {
                used_ns.map_or(u64::MAX, |last_ns| sight.time_ns.saturating_sub(last_ns))
            };
            let progress = &mut self.halves[direction].progress;
            progress.probes(sight.time_ns, path, what, quiet_ns);
        }
    }

    /// A round trip of data of a direction, measured on one of the subflows.
    pub(in crate::analyze) fn round_trip(&mut self, direction: usize, sent_ns: u64, ns: u64) {
        for view in self.halves[direction].at.iter_mut().flatten() {
            view.round_trip(sent_ns, ns);
        }
    }

    /// Timestamps of a packet: at the place of a receiver, the echo of what it sent gives the round trip.
    pub(in crate::analyze) fn timestamps(&mut self, direction: usize, sight: &Sight, value: u32, echo: u32) {
        match sight.role {
            Role::Sender => {
                self.halves[direction].echo.get_or_insert((value, sight.time_ns));
            }
            Role::Receiver => {
                let waited = &mut self.halves[1 - direction].echo;
                if let Some((value, sent_ns)) = *waited
                    && (echo.wrapping_sub(value) as i32) >= 0
                {
                    *waited = None;
                    let half = &mut self.halves[direction];
                    if half.at[0].is_none()
                        && echo == value
                        && let Some(view) = &mut half.at[1]
                    {
                        view.round_trip(sent_ns, sight.time_ns.saturating_sub(sent_ns));
                    }
                }
            }
            Role::Somewhere => {}
        }
    }

    /// Sequence number of a WireGuard packet: counters begin anew with every key.
    pub(in crate::analyze) fn wireguard_seq(&mut self, direction: usize, index: u32, counter: u64) -> u32 {
        let (known, base, free) = &mut self.counters[direction];
        if *known != index {
            *known = index;
            *base = free.wrapping_sub(counter as u32);
        }
        let seq = base.wrapping_add(counter as u32);
        let after = seq.wrapping_add(1);
        if after.wrapping_sub(*free) as i32 > 0 {
            *free = after;
        }
        seq
    }

    /// Somebody says that a path is left; the newest of these are remembered.
    pub(in crate::analyze) fn path_left(&mut self, time_ns: u64) {
        if self.told_ns.last() != Some(&time_ns) {
            if self.told_ns.len() >= MAX_TOLD {
                self.told_ns.remove(0);
            }
            self.told_ns.push(time_ns);
        }
    }

    /// Who chooses the paths of data.
    pub(in crate::analyze) const fn choice(&self) -> Choice {
        match self.protocol {
            Protocol::Mptcp if self.path_is_the_senders() => Choice::Several,
            Protocol::Sctp if self.path_is_the_senders() => Choice::One,
            Protocol::Quic => Choice::One,
            _ => Choice::Network,
        }
    }

    /// The MPTCP connection that this is a subflow of.
    pub(in crate::analyze) fn parent(&self) -> Option<Slot> {
        self.subflow.as_ref().and_then(|s| s.parent)
    }
}

/// What an engine allows its flows.
#[derive(Clone, Copy, Debug)]
pub(in crate::analyze) struct Limits {
    pub settings: Settings,
    /// Copies of one direction that may be followed at a time.
    pub copies: usize,
    /// When each capture has packets.
    pub listens: [Listens; 2],
}
