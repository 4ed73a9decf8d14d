//! A flow while it lives: its two directions, and the paths that their packets take.

mod association;
mod half;
mod silence;

pub(in crate::analyze) use half::Half;

use crate::analyze::decode::{Address, Marks};
use crate::analyze::flows::closing::Closing;
use crate::analyze::flows::counters::KeyCounters;
use crate::analyze::flows::finished::{Finished, Observed};
use crate::analyze::flows::item::{Item, Limits};
use crate::analyze::flows::key::Slot;
use crate::analyze::flows::mptcp::Subflow;
use crate::analyze::flows::parties::{End, Parties};
use crate::analyze::flows::paths::{Paths, Role, Sight, Way};
use crate::analyze::flows::progress::What;
use crate::analyze::flows::shares::Choice;
use crate::analyze::flows::tags::Tags;
use crate::analyze::model::Protocol;
use crate::record::DEAD_AFTER_NS;
use half::Arriving;

/// Messages that are remembered that a path is left.
const MAX_TOLD: usize = 64;

/// A flow.
#[derive(Clone, Debug)]
pub(in crate::analyze) struct Conn {
    protocol: Protocol,
    parties: Parties,
    begin_ns: u64,
    last_ns: u64,
    marks: Marks,
    halves: [Half; 2],
    paths: Paths,
    closing: Closing,
    /// Of SCTP.
    tags: Tags,
    /// Of WireGuard, by direction.
    counters: [KeyCounters; 2],
    /// Of MPTCP.
    subflow: Option<Box<Subflow>>,
    /// Subflows that live, where this is an MPTCP connection.
    subflows: u32,
    /// When somebody said that a path was left.
    told_ns: Vec<u64>,
}

impl Conn {
    /// One that begins now.
    pub(in crate::analyze) fn new(protocol: Protocol, parties: Parties, now_ns: u64) -> Box<Self> {
        Box::new(Self {
            protocol,
            parties,
            begin_ns: now_ns,
            last_ns: now_ns,
            marks: Marks::default(),
            halves: [Half::default(), Half::default()],
            paths: Paths::default(),
            closing: Closing::default(),
            tags: Tags::default(),
            counters: [KeyCounters::default(); 2],
            subflow: None,
            subflows: 0,
            told_ns: Vec::new(),
        })
    }

    /// The MPTCP connection that this is the first subflow of.
    pub(in crate::analyze) fn connection(&self, now_ns: u64) -> Box<Self> {
        let mut connection = Self::new(Protocol::Mptcp, self.parties.of_another_flow(), now_ns);
        connection.subflows = 1;
        connection
    }

    /// Direction of a packet between these ends: 0 from the one that sent the first packet, 1 from the other.
    pub(in crate::analyze) fn direction(&self, source: End, destination: End) -> usize {
        self.parties.direction(source, destination)
    }

    /// A packet of this flow went between these, which are no known pair. Whether one end of it can have moved there.
    pub(in crate::analyze) fn moves_one_end(&mut self, source: End, destination: End) -> bool {
        self.parties.move_one(source, destination)
    }

    /// The first sequence number of data of this direction.
    pub(in crate::analyze) const fn begins(&mut self, direction: usize, seq: u32) {
        self.halves[direction].begin(seq);
    }

    /// Whether a SYN of this direction, with this first sequence number of data, begins another connection between the same
    /// ends.
    pub(in crate::analyze) fn is_replaced_by_syn(&self, direction: usize, first: u32) -> bool {
        match self.halves[direction].begins_otherwise(first) {
            Some(otherwise) => otherwise && (self.has_data() || self.closing.has_begun()),
            // what had begun before it was captured, and has been closed since
            None => self.closing.has_begun(),
        }
    }

    /// What is said over UDP tells that it is of this protocol. Whether that can be: what it is, it remains.
    pub(in crate::analyze) fn turns_out(&mut self, protocol: Protocol) -> bool {
        if self.protocol == Protocol::Udp {
            self.protocol = protocol;
        }
        self.protocol == protocol
    }

    pub(in crate::analyze) const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// A packet of this direction: 0 from the end that sent the first packet, 1 from the other.
    pub(in crate::analyze) fn packet(&mut self, direction: usize, sight: &Sight) {
        self.last_ns = self.last_ns.max(sight.time_ns);
        let senders = self.path_is_the_senders();
        self.marks = self.marks.and(sight.marks);
        if senders && !self.path_is_the_senders() {
            self.halves.iter_mut().for_each(Half::forget_sent);
        }
        self.halves[direction].packet(sight.role);
        if sight.role != Role::Sender {
            let answers = !self.is_acknowledged();
            let silent_ns = if answers {
                self.silent_ns(1 - direction, sight.time_ns)
            } else {
                None
            };
            self.halves[1 - direction].hears(sight.time_ns, answers, silent_ns);
        }
        if sight.role == Role::Receiver {
            self.halves[1 - direction].hears_at_its_end(sight.time_ns);
        }
    }

    /// Whether acknowledgements can be seen.
    pub(in crate::analyze) const fn is_acknowledged(&self) -> bool {
        self.protocol.is_acknowledged()
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

    /// Number of the path that a packet takes.
    pub(in crate::analyze) fn path(&mut self, direction: usize, sight: &Sight) -> u16 {
        let way = Way::of(direction, sight, self.path_is_the_senders());
        self.paths.take(way, sight)
    }

    /// Whether a packet of this direction, which is known by what it carries, was captured on another interface a moment ago,
    /// or outside of a tunnel.
    pub(in crate::analyze) fn is_captured_twice(
        &mut self,
        direction: usize,
        sight: &Sight,
        what: u64,
    ) -> bool {
        let the_senders = self.path_is_the_senders();
        let several = self.paths.are_several();
        self.halves[direction].is_packet_captured_twice(sight, what, the_senders, several)
    }

    /// An item of data of this direction; its packet has an identification, or none that tells copies apart. Gives whether it
    /// counts.
    pub(in crate::analyze) fn data(
        &mut self,
        direction: usize,
        sight: &Sight,
        item: Item,
        identification: u16,
        limits: &Limits,
    ) -> bool {
        let path = self.path(direction, sight);
        let path_is_the_senders = self.path_is_the_senders();
        let half = &mut self.halves[direction];
        if (item.stamp.is_some() || identification != 0)
            && !path_is_the_senders
            && half.is_captured_twice(sight, &item, identification, path, self.paths.are_several())
        {
            return false;
        }
        let quiet_ns = self.paths.carry(path, sight, item.bytes);
        let silent_ns = if sight.role == Role::Receiver {
            self.silent_ns(direction, sight.time_ns)
        } else {
            None
        };
        let half = &mut self.halves[direction];
        if sight.both {
            // what leaves by one pair of addresses goes one way, whatever else tells paths apart
            let way = self.paths.between(direction, sight).unwrap_or(path);
            half.account(sight, &item, way, limits);
        }
        let arriving = Arriving {
            item,
            path,
            quiet_ns,
            silent_ns,
            path_is_the_senders,
        };
        half.data(sight, &arriving, limits);
        true
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
        self.halves[1 - direction].acknowledged(sight.time_ns, ack, beyond, closed_window, silent_ns)
    }

    /// Since when nothing new of this direction has got anywhere, if its sender has tried for so long that it would be dead if
    /// it ended now.
    fn silent_ns(&self, direction: usize, now_ns: u64) -> Option<u64> {
        if self.halves[direction].progress().tried_ns() <= DEAD_AFTER_NS {
            return None;
        }
        self.dead_since(direction, now_ns)
    }

    /// Since when nothing new has got to the receiver, if the direction is dead, or would be if it ended at `end_ns`.
    pub(in crate::analyze) fn dead_since(&self, direction: usize, end_ns: u64) -> Option<u64> {
        let since_ns = silence::dead_since(self.protocol, &self.halves[direction], end_ns);
        since_ns.filter(|_| self.has_data())
    }

    fn has_data(&self) -> bool {
        self.halves.iter().any(Half::has_data)
    }

    /// Packets with data of a direction that were seen at a place.
    pub(in crate::analyze) fn data_packets(&self, direction: usize, role: Role) -> u64 {
        self.halves[direction].data_packets(role.place())
    }

    /// Number of a datagram in the account of both ends, by what it carries; nothing if it is not known to have left.
    pub(in crate::analyze) fn number_of_datagram(
        &mut self,
        direction: usize,
        role: Role,
        what: u64,
        limits: &Limits,
    ) -> Option<u32> {
        self.halves[direction].number_of_datagram(role, what, limits)
    }

    /// A segment of this direction without data repeats what was acknowledged: a keepalive or window probe (RFC 9293 sections
    /// 3.8.4 and 3.8.6.1).
    pub(in crate::analyze) fn may_keep_alive(&mut self, direction: usize, sight: &Sight, seq: u32) {
        if self.halves[direction].progress().acked() == Some(seq.wrapping_add(1)) {
            self.probe(direction, sight, What::Keepalive);
        }
    }

    /// A message of this direction that has to be answered.
    pub(in crate::analyze) fn probe(&mut self, direction: usize, sight: &Sight, what: What) {
        if sight.role != Role::Receiver {
            let way = Way::of(direction, sight, self.path_is_the_senders());
            let path = self.paths.number(way, sight);
            // those go by every path, always
            let quiet_ns = if what == What::Heartbeat {
                0
            } else {
                self.paths.quiet_ns(path, sight.time_ns)
            };
            self.halves[direction].probe(sight.time_ns, path, what, quiet_ns);
        }
    }

    /// A round trip of data of a direction, measured on one of the subflows.
    pub(in crate::analyze) fn round_trip(&mut self, direction: usize, sent_ns: u64, ns: u64) {
        self.halves[direction].round_trip(sent_ns, ns);
    }

    /// Timestamps of a packet: at the place of a receiver, the echo of what it sent gives the round trip.
    pub(in crate::analyze) fn timestamps(&mut self, direction: usize, sight: &Sight, value: u32, echo: u32) {
        match sight.role {
            Role::Sender => self.halves[direction].stamped(value, sight.time_ns),
            Role::Receiver => {
                if let Some((value, sent_ns)) = self.halves[1 - direction].echoed(echo)
                    && echo == value
                {
                    let ns = sight.time_ns.saturating_sub(sent_ns);
                    self.halves[direction].round_trip_of_receiver(sent_ns, ns);
                }
            }
            Role::Somewhere => {}
        }
    }

    /// The sender of a direction is told to use the path to this address from now on, from the source used last.
    pub(in crate::analyze) fn announced(&mut self, direction: usize, to: Address, sight: &Sight) {
        let path = self.path_to(direction, to, sight);
        self.halves[direction].announced(path, sight.both);
    }

    fn path_to(&mut self, direction: usize, to: Address, sight: &Sight) -> u16 {
        let (source, ports) = match self.paths.last_way(direction) {
            Some(way) => (way.outer.0, way.ports),
            None => (sight.outer.1, (sight.ports.1, sight.ports.0)),
        };
        let there = Sight {
            outer: (source, to),
            ports,
            marks: Marks::default(),
            ..*sight
        };
        let way = Way::of(direction, &there, self.path_is_the_senders());
        self.paths.number(way, &there)
    }

    /// Sequence number of a WireGuard packet: counters begin anew with every key.
    pub(in crate::analyze) fn wireguard_seq(&mut self, direction: usize, index: u32, counter: u64) -> u32 {
        self.counters[direction].seq(index, counter)
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

    /// The newest times at which somebody said that a path was left.
    #[cfg(test)]
    pub(in crate::analyze) fn told_ns(&self) -> &[u64] {
        &self.told_ns
    }

    /// FIN, or SHUTDOWN of SCTP: who sends in this direction has no more.
    pub(in crate::analyze) const fn closes(&mut self, direction: usize) {
        self.closing.close(direction);
    }

    /// SHUTDOWN COMPLETE of SCTP.
    pub(in crate::analyze) const fn is_shut_down(&mut self) {
        self.closing.complete();
    }

    /// RST, or ABORT of SCTP.
    pub(in crate::analyze) fn resets(&mut self, direction: usize, now_ns: u64) {
        self.closing.reset(direction, now_ns);
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

    /// What this is to MPTCP, if it is a subflow.
    pub(in crate::analyze) fn subflow(&self) -> Option<&Subflow> {
        self.subflow.as_deref()
    }

    /// The MPTCP connection that this is a subflow of.
    pub(in crate::analyze) fn parent(&self) -> Option<Slot> {
        self.subflow()?.connection()
    }

    /// A segment of this direction has an option of MPTCP; a SYN with its sequence number.
    pub(in crate::analyze) fn speaks_mptcp(&mut self, direction: usize, syn: Option<u32>) {
        let subflow = self.subflow.get_or_insert_default();
        if let Some(seq) = syn {
            subflow.syn(direction, seq);
        }
    }

    /// A mapping arrived on a segment that begins with `seq`; `ssn` counts from the SYN.
    pub(in crate::analyze) fn maps(
        &mut self,
        direction: usize,
        seq: u32,
        dsn: u64,
        (ssn, len): (u32, u16),
        fin: bool,
    ) {
        if let Some(subflow) = &mut self.subflow {
            subflow.map(direction, seq, dsn, ssn, len, fin);
        }
    }

    /// It is the first subflow of this connection.
    pub(in crate::analyze) fn begins_connection(&mut self, connection: Slot) {
        if let Some(subflow) = &mut self.subflow {
            subflow.begins(connection);
        }
    }

    /// It is a further subflow of this connection, the other way round or not. Whether that is new.
    pub(in crate::analyze) fn joins_connection(&mut self, connection: Slot, reversed: bool) -> bool {
        let subflow = self.subflow.as_mut();
        subflow.is_some_and(|subflow| subflow.joins(connection, reversed))
    }

    /// A further subflow of this connection is asked for between these addresses. Whether it is the first end that is asked.
    pub(in crate::analyze) fn is_joined_between(&mut self, asks: Address, asked: Address) -> bool {
        self.parties.join(asks, asked)
    }

    /// A further subflow of this connection begins.
    pub(in crate::analyze) const fn subflow_begins(&mut self) {
        self.subflows += 1;
    }

    /// A subflow of this connection has ended. Whether it was the last.
    pub(in crate::analyze) const fn subflow_ends(&mut self) -> bool {
        self.subflows = self.subflows.saturating_sub(1);
        self.subflows == 0
    }

    /// One direction.
    pub(in crate::analyze) const fn half(&self, direction: usize) -> &Half {
        &self.halves[direction]
    }

    /// How it was closed, as far as it was.
    pub(in crate::analyze) const fn closing(&self) -> Closing {
        self.closing
    }

    /// The ways that its packets take.
    pub(in crate::analyze) const fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Its ends.
    pub(in crate::analyze) const fn parties(&self) -> &Parties {
        &self.parties
    }

    /// When it was first heard of, and when last.
    pub(in crate::analyze) const fn heard_ns(&self) -> (u64, u64) {
        (self.begin_ns, self.last_ns)
    }

    /// What was not followed, by the name of its limit.
    pub(in crate::analyze) fn beyond_limits(&self) -> [(&'static str, u64); 6] {
        let [one, other] = self.halves.each_ref().map(Half::beyond_limits);
        let of = |number: usize| one[number] + other[number];
        [
            ("gaps-given-up", of(0)),
            ("packets-settled-early", of(1)),
            ("handovers-beyond-limit", of(2)),
            ("outages-beyond-limit", of(3)),
            ("packets-captured-twice", of(4)),
            ("packets-on-paths-beyond-limit", self.paths.beyond()),
        ]
    }

    /// The end of the observation, up to `end_ns`.
    pub(in crate::analyze) fn finish(self, window_ns: u64, end_ns: u64) -> (Finished, [Observed; 2]) {
        let choice = self.choice();
        let finished = Finished {
            protocol: self.protocol,
            marks: self.marks,
            path_is_the_senders: self.path_is_the_senders(),
            shown: self.parties.shown(),
            ports: self.parties.ports(),
            is_v4: self.parties.are_v4(),
            parent: self.parent().map(|p| p.id),
            begin_ns: self.begin_ns,
            last_ns: self.last_ns,
            paths: self.paths.finish(),
        };
        let told_ns = &self.told_ns;
        let observed = self
            .halves
            .map(|half| half.finish(choice, told_ns, window_ns, end_ns));
        (finished, observed)
    }
}
