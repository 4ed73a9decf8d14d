//! One direction of a flow while it lives.

use crate::analyze::flows::datagrams::Datagrams;
use crate::analyze::flows::ends::{AtEnd, Ends};
use crate::analyze::flows::finished::{AtBoth, Observed};
use crate::analyze::flows::item::{Item, Limits};
use crate::analyze::flows::moved::Moved;
use crate::analyze::flows::paths::{Role, Sight};
use crate::analyze::flows::progress::{Progress, What};
use crate::analyze::flows::shares::Choice;
use crate::analyze::flows::twice::CapturedTwice;
use crate::analyze::flows::view::View;
use crate::record::DEAD_AFTER_NS;

/// One direction.
#[derive(Clone, Debug, Default)]
pub(in crate::analyze) struct Half {
    /// By [`Role::place`].
    at: [Option<Box<View>>; 2],
    /// The account of both ends, where both are seen.
    ends: Option<Box<Ends>>,
    packets: [u64; 2],
    progress: Progress,
    /// Since when nothing new has arrived, though the sender has heard of earlier data since then.
    unended_ns: Option<u64>,
    /// First sequence number of data, from the handshake.
    first_seq: Option<u32>,
    /// A timestamp whose echo is waited for, and when it was sent.
    echo: Option<(u32, u64)>,
    /// Datagrams that left the sender, where the receiver is captured too.
    datagrams: Option<Box<Datagrams>>,
    /// Role that is certain: of packets captured so.
    certain: [bool; 2],
    twice: CapturedTwice,
}

/// An item of data on its way into its direction.
#[derive(Clone, Copy)]
pub(super) struct Arriving {
    pub item: Item,
    /// Number of its path, which had carried no data for so long.
    pub path: u16,
    pub quiet_ns: u64,
    /// Where the direction would be dead: since when nothing new got anywhere.
    pub silent_ns: Option<u64>,
    /// The sender chooses the path, which looks the same at both ends.
    pub path_is_the_senders: bool,
}

impl Half {
    /// A packet of this direction.
    pub(super) const fn packet(&mut self, role: Role) {
        self.packets[role.place()] += 1;
        match role {
            Role::Sender => self.certain[0] = true,
            Role::Receiver => self.certain[1] = true,
            Role::Somewhere => {}
        }
    }

    /// The sender hears of its receiver; with `silent_ns`, after attempts that had gone unanswered from then on. It `answers`
    /// if that is all that can be known of what arrived.
    pub(super) fn hears(&mut self, now_ns: u64, answers: bool, silent_ns: Option<u64>) {
        self.progress.hears(now_ns, answers);
        self.hears_again(silent_ns, now_ns);
    }

    /// And so do both ends: it was captured where it was heard.
    pub(super) fn hears_at_its_end(&mut self, now_ns: u64) {
        if let Some(ends) = &mut self.ends {
            ends.hears(now_ns);
        }
    }

    /// The sender hears of what arrived, after attempts that had gone unanswered from `silent_ns` on. Where arrivals are seen,
    /// it is only the next of them that ends an outage.
    fn hears_again(&mut self, silent_ns: Option<u64>, now_ns: u64) {
        if silent_ns.is_none() {
            return;
        }
        if self.arrivals().is_some() && self.ends.as_ref().is_some_and(|e| !e.ends_early(now_ns)) {
            self.unended_ns = self.unended_ns.or(silent_ns);
        } else {
            self.progress.note_outage(silent_ns, now_ns);
        }
    }

    /// The first sequence number of its data will be this one.
    pub(super) const fn begin(&mut self, seq: u32) {
        self.first_seq = Some(seq);
    }

    /// Paths turn out to be the network's and not the sender's.
    pub(super) fn forget_sent(&mut self) {
        if let Some(view) = &mut self.at[1] {
            view.forget_sent();
        }
    }

    /// Whether an item was captured a moment ago by another path of those that the flow has, which are `several` or one.
    pub(super) fn is_captured_twice(
        &mut self,
        sight: &Sight,
        item: &Item,
        identification: u16,
        path: u16,
        several: bool,
    ) -> bool {
        self.twice.notes(sight, item, identification, path, several)
    }

    /// The same of a packet that is known by what it carries.
    pub(super) fn is_packet_captured_twice(
        &mut self,
        sight: &Sight,
        what: u64,
        the_senders: bool,
        several: bool,
    ) -> bool {
        self.twice.notes_packet(sight, what, the_senders, several)
    }

    /// The account of both ends, where both are seen: an item leaves or arrives by a way.
    pub(super) fn account(&mut self, sight: &Sight, item: &Item, way: u16, limits: &Limits) {
        let receivers = match sight.role {
            Role::Receiver => sight.capture & 1,
            _ => 1 - (sight.capture & 1),
        };
        let listens = limits.listens[usize::from(receivers)];
        let ends = self.ends.get_or_insert_with(|| Box::new(Ends::new(listens)));
        if let Some(begin) = self.first_seq {
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

    /// An item of data is seen.
    pub(super) fn data(&mut self, sight: &Sight, arriving: &Arriving, limits: &Limits) {
        if !sight.taken && sight.role == Role::Receiver {
            return;
        }
        let Arriving { item, path, .. } = *arriving;
        let place = sight.role.place();
        if arriving.path_is_the_senders && sight.both && sight.role == Role::Sender {
            let view = self.at[1].get_or_insert_default();
            view.sent(sight.time_ns, path, item.seq);
        }
        let view = self.at[place].get_or_insert_default();
        if let Some(begin) = self.first_seq {
            view.begin(begin);
        }
        let useful_before = view.tally().useful_bytes;
        let settled = view.data(sight.time_ns, path, item, &limits.settings);
        if place == 0 {
            self.progress.sends(sight.time_ns, path, &item, arriving.quiet_ns);
        } else if view.tally().useful_bytes > useful_before || item.bytes == 0 {
            self.progress.advances(sight.time_ns, What::Arrived, item.seq);
            let silent_ns = self.unended_ns.take().or(arriving.silent_ns);
            self.progress.note_outage(silent_ns, sight.time_ns);
        }
        if settled
            && let Some(ends) = &mut self.ends
            && place == 1
            && let Some((begin_ns, first_new_ns)) = view.last_settled()
        {
            let window_ns = limits.settings.window_ns;
            let around = ends.count_around(begin_ns.saturating_sub(window_ns), first_new_ns + window_ns);
            view.counted_as(around);
        }
    }

    /// Its data is acknowledged up to `ack`; with `silent_ns`, after attempts that had gone unanswered from then on. Gives
    /// when what was timed was sent, if something was.
    pub(super) fn acknowledged(
        &mut self,
        now_ns: u64,
        ack: u32,
        beyond: Option<(u32, u32)>,
        closed_window: bool,
        silent_ns: Option<u64>,
    ) -> Option<u64> {
        if self.progress.acknowledged(now_ns, ack, beyond, closed_window) {
            self.hears_again(silent_ns, now_ns);
        }
        let [sent, received] = &mut self.at;
        let sent_ns = sent.as_mut()?.acknowledged(now_ns, ack)?;
        if let Some(received) = received {
            received.round_trip(sent_ns, now_ns.saturating_sub(sent_ns));
        }
        Some(sent_ns)
    }

    /// A message that has to be answered leaves by a path that had carried no data for so long.
    pub(super) fn probe(&mut self, now_ns: u64, path: u16, what: What, quiet_ns: u64) {
        self.progress.probes(now_ns, path, what, quiet_ns);
    }

    /// A round trip of its data.
    pub(super) fn round_trip(&mut self, sent_ns: u64, ns: u64) {
        for view in self.at.iter_mut().flatten() {
            view.round_trip(sent_ns, ns);
        }
    }

    /// A timestamp leaves.
    pub(super) fn stamped(&mut self, value: u32, now_ns: u64) {
        self.echo.get_or_insert((value, now_ns));
    }

    /// The echo of a timestamp reaches the sender of it. Gives what was waited for: that timestamp, and when it left.
    pub(super) fn echoed(&mut self, echo: u32) -> Option<(u32, u64)> {
        self.echo
            .take_if(|(value, _)| (echo.wrapping_sub(*value) as i32) >= 0)
    }

    /// A round trip that its receiver measured, where nothing is seen of what its sender does.
    pub(super) fn round_trip_of_receiver(&mut self, sent_ns: u64, ns: u64) {
        if let [None, Some(view)] = &mut self.at {
            view.round_trip(sent_ns, ns);
        }
    }

    /// The sender is told to use a path from now on; `at_both` if that is seen at both ends.
    pub(super) fn announced(&mut self, path: u16, at_both: bool) {
        let views = &mut self.at[..=usize::from(at_both)];
        views.iter_mut().flatten().for_each(|view| view.announced(path));
    }

    /// Number of a datagram in the account of both ends, by what it carries; nothing if it is not known to have left.
    /// At most as many are remembered as packets are.
    pub(super) fn number_of_datagram(&mut self, role: Role, what: u64, limits: &Limits) -> Option<u32> {
        let datagrams = self.datagrams.get_or_insert_default();
        match role {
            Role::Receiver => datagrams.received(what),
            _ => Some(datagrams.sent(what, limits.copies)),
        }
    }

    /// Whether its first sequence number is another, if that is known.
    pub(super) fn begins_otherwise(&self, seq: u32) -> Option<bool> {
        self.first_seq.map(|first| first != seq)
    }

    pub(in crate::analyze) const fn progress(&self) -> &Progress {
        &self.progress
    }

    pub(super) fn ends(&self) -> Option<&Ends> {
        self.ends.as_deref()
    }

    /// Whether packets were seen before they reached their receiver.
    pub(in crate::analyze) const fn has_left(&self) -> bool {
        self.packets[0] > 0
    }

    pub(super) fn has_data(&self) -> bool {
        self.at.iter().flatten().any(|v| v.has_data())
    }

    /// Packets with data at a place.
    pub(super) fn data_packets(&self, place: usize) -> u64 {
        self.at[place].as_ref().map_or(0, |v| v.tally().data_packets)
    }

    /// Data as it left, or was on its way, if any was seen.
    pub(in crate::analyze) fn departures(&self) -> Option<&View> {
        self.at[0].as_deref().filter(|v| v.has_data())
    }

    /// Data as it arrived, if any was seen.
    pub(in crate::analyze) fn arrivals(&self) -> Option<&View> {
        self.at[1].as_deref().filter(|v| v.has_data())
    }

    /// Whether the receiver is seen to have all that is known to be sent, acknowledged or not.
    pub(in crate::analyze) fn has_arrived_whole(&self) -> bool {
        self.arrivals()
            .is_some_and(|v| v.has_all_before(self.progress.sent()))
    }

    /// Attempts are in vain after this.
    pub(in crate::analyze) fn patience_ns(&self) -> u64 {
        let [sent, received] = self.at.each_ref().map(|v| v.as_ref().and_then(|v| v.rto_ns()));
        let rto_ns = sent.or(received).unwrap_or(DEAD_AFTER_NS);
        DEAD_AFTER_NS.max(rto_ns)
    }

    /// What was not followed: gaps, packets settled early, handovers, outages, packets captured twice.
    pub(super) fn beyond_limits(&self) -> [u64; 5] {
        let views = || self.at.iter().flatten();
        [
            views().map(|v| u64::from(v.gaps_given_up())).sum(),
            self.ends.as_ref().map_or(0, |e| e.evicted()),
            views().map(|v| v.handovers_dropped()).sum(),
            self.progress.outages().beyond(),
            self.twice.count(),
        ]
    }

    /// The end of the observation, up to `end_ns`, of a direction whose paths are chosen so; `told_ns` are the times at which
    /// one was said to be left.
    pub(super) fn finish(self, choice: Choice, told_ns: &[u64], window_ns: u64, end_ns: u64) -> Observed {
        let ends = self.ends.filter(|e| e.is_matched());
        let outages = self.progress.outages().clone();
        let [sent, received] = self.at;
        let has_arrived = received.as_ref().is_some_and(|v| v.has_data());
        let place = usize::from(has_arrived || (self.packets[0] == 0 && self.packets[1] > 0));
        let (view, sender) = if place == 0 {
            (sent, None)
        } else {
            (received, sent)
        };
        let (seen, moves) = view.map(|v| *v).unwrap_or_default().finish(window_ns);
        let sender = sender.map(|v| v.finish(window_ns));
        let moves = moves
            .judged(choice, told_ns, seen.last_data_ns)
            .with_switches(choice, seen.tally.switches);
        let mut senders = Vec::new();
        // handovers that show at the sender while the receiver's capture had not begun or had ended, and are not among those
        // that it shows
        if let (Some(ends), Some((_, sent))) = (&ends, &sender) {
            let same = |m: &Moved, k: &Moved| m.first_new_ns.abs_diff(k.first_new_ns) <= ends.longest_ns();
            let beyond =
                |m: &&Moved| ends.may_miss(m.first_new_ns) && !moves.moved.iter().any(|k| same(m, k));
            senders.extend(sent.moved.iter().filter(beyond).cloned());
        }
        let at_both = ends.map(|e| e.finish(end_ns));
        Observed {
            place,
            certain: self.certain[place],
            packets: self.packets[place],
            rtt: sender
                .as_ref()
                .and_then(|(s, _)| s.round_trips)
                .or(seen.round_trips),
            first_sent_ns: sender.as_ref().map_or(0, |(s, _)| s.first_data_ns),
            seen,
            moves,
            senders,
            at_both: at_both.map(|(counts, around)| AtBoth { counts, around }),
            outages,
        }
    }
}
