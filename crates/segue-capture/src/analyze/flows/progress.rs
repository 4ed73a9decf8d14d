//! Whether what a direction sends gets anywhere: its sender's attempts since something last got there.
//!
//! *Progress* is a new byte that arrives where the receiver is captured, or an acknowledgement of new bytes that reaches the
//! sender; of protocols whose acknowledgements are encrypted or do not exist, anything that the sender hears of its
//! receiver. *Attempts* are what the sender sends meanwhile: data, repeated or not, and probes that nobody answers (keepalives
//! and window probes of TCP, HEARTBEAT and ASCONF of SCTP, handshake initiations of WireGuard). All in constant memory.

use super::item::Item;
use super::moved::{Moved, SILENT_NS};

/// A packet to be told of, if it is among the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Note {
    pub time_ns: u64,
    pub what: What,
    /// Sequence number, or what was acknowledged.
    pub number: u32,
    pub bytes: u32,
    pub path: u16,
}

/// What a packet was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum What {
    /// Data, for the first time.
    Data,
    /// Data again.
    Again,
    /// A keepalive or window probe.
    Keepalive,
    /// HEARTBEAT.
    Heartbeat,
    /// ASCONF.
    Asconf,
    /// A handshake initiation of WireGuard.
    Handshake,
    /// New data acknowledged.
    Acknowledged,
    /// New data, at its receiver.
    Arrived,
    /// Anything from the receiver.
    Heard,
}

/// Attempts of one kind since the last progress.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Attempts {
    pub count: u32,
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Attempts {
    /// And one more.
    fn and_at(self, now_ns: u64) -> Self {
        Self {
            count: self.count.saturating_add(1),
            first_ns: if self.count == 0 { now_ns } else { self.first_ns },
            last_ns: if self.count == 0 {
                now_ns
            } else {
                self.last_ns.max(now_ns)
            },
        }
    }

    /// From the first to the last.
    pub(in super::super) const fn span_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }

    /// Both kinds.
    pub(in super::super) fn and(self, other: Self) -> Self {
        match (self.count, other.count) {
            (_, 0) => self,
            (0, _) => other,
            _ => Self {
                count: self.count.saturating_add(other.count),
                first_ns: self.first_ns.min(other.first_ns),
                last_ns: self.last_ns.max(other.last_ns),
            },
        }
    }
}

/// One direction's.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Progress {
    /// When there last was some.
    last_ns: Option<u64>,
    /// When the sender last heard anything of the receiver.
    heard_ns: Option<u64>,
    data: Attempts,
    probes: Attempts,
    /// All before this was acknowledged, as far as the sender knows.
    acked: Option<u32>,
    /// End of what was sent.
    sent: Option<u32>,
    /// What was acknowledged beyond, last.
    beyond: (u32, u32),
    /// Path of the last attempt before the last progress.
    path: Option<u16>,
    /// The last path since that had not been used for a while, and when it was first tried.
    tried: Option<(u16, u64)>,
    /// Times that attempts were answered, and the longest that took; of what is answered by whatever is heard.
    answers: u32,
    longest_answer_ns: u64,
    /// The last attempt before the last progress, and what showed that.
    before: [Option<Note>; 2],
    /// The first two attempts since, and the last.
    first: [Option<Note>; 2],
    last: Option<Note>,
    outages: Outages,
}

/// Outages kept of one direction.
pub(in super::super) const MAX_OUTAGES: usize = 64;

/// A time without progress that ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    since_ns: u64,
    until_ns: u64,
    /// A handover is what it was.
    accounted: bool,
}

impl Ended {
    const fn length_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.since_ns)
    }
}

/// The longest outages that ended.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Outages {
    kept: Vec<Ended>,
    /// Shorter ones.
    beyond: u64,
}

impl Outages {
    #[cold]
    fn note(&mut self, since_ns: u64, until_ns: u64) {
        let new = Ended {
            since_ns,
            until_ns,
            accounted: false,
        };
        if self.kept.len() < MAX_OUTAGES {
            return self.kept.push(new);
        }
        self.beyond += 1;
        if let Some(shortest) = self.kept.iter_mut().min_by_key(|o| o.length_ns())
            && shortest.length_ns() < new.length_ns()
        {
            *shortest = new;
        }
    }

    /// Takes away what a handover accounts for. By arrivals that is its interruption, or of several that are as long, the next
    /// to it; by acknowledgements, what there was of it between the two paths.
    pub(in super::super) fn account_for(&mut self, m: &Moved, by_arrivals: bool) {
        if by_arrivals {
            let as_long = self
                .kept
                .iter_mut()
                .filter(|o| o.length_ns() == m.interruption_ns);
            if let Some(its) = as_long.min_by_key(|o| o.until_ns.abs_diff(m.first_new_ns)) {
                its.accounted = true;
            }
            return;
        }
        let (from, to) = (
            m.last_old_ns.min(m.first_new_ns),
            m.last_old_ns.max(m.first_new_ns),
        );
        for o in self.kept.iter_mut() {
            o.accounted |= o.since_ns <= to && o.until_ns > from;
        }
    }

    /// Those that were too many to be kept.
    pub(super) const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Begin and end of the longest.
    pub(in super::super) fn longest(&self) -> Option<(u64, u64)> {
        let longest = self.kept.iter().max_by_key(|o| o.length_ns())?;
        Some((longest.since_ns, longest.until_ns))
    }

    /// Begin and end of those that no handover accounts for.
    pub(in super::super) fn unaccounted(&self) -> impl Iterator<Item = (u64, u64)> {
        let those = self.kept.iter().filter(|o| !o.accounted);
        those.map(|o| (o.since_ns, o.until_ns))
    }
}

impl Progress {
    /// An item of data leaves. `quiet_ns` is how long its path had carried none.
    pub(in super::super) fn sends(&mut self, now_ns: u64, path: u16, item: &Item, quiet_ns: u64) {
        let end = item.seq.wrapping_add(item.span);
        let is_new = self.sent.is_none_or(|sent| end.wrapping_sub(sent) as i32 > 0);
        if is_new {
            self.sent = Some(end);
        }
        // a keepalive with a byte of what was acknowledged
        let keeps = !is_new && item.bytes <= 1 && self.acked == Some(end);
        let what = match (is_new, keeps) {
            (_, true) => What::Keepalive,
            (true, _) => What::Data,
            (false, _) => What::Again,
        };
        if keeps {
            self.probes = self.probes.and_at(now_ns);
        } else {
            self.data = self.data.and_at(now_ns);
        }
        self.note(Note {
            time_ns: now_ns,
            what,
            number: item.seq,
            bytes: item.bytes,
            path,
        });
        self.tries(now_ns, path, quiet_ns);
    }

    /// A probe leaves that has to be answered.
    pub(in super::super) fn probes(&mut self, now_ns: u64, path: u16, what: What, quiet_ns: u64) {
        self.probes = self.probes.and_at(now_ns);
        self.note(Note {
            time_ns: now_ns,
            what,
            number: 0,
            bytes: 0,
            path,
        });
        self.tries(now_ns, path, quiet_ns);
    }

    fn tries(&mut self, now_ns: u64, path: u16, quiet_ns: u64) {
        if self.path.is_some_and(|p| p != path)
            && self.tried.is_none_or(|(p, _)| p != path)
            && quiet_ns >= SILENT_NS
        {
            self.tried = Some((path, now_ns));
        }
        if self.path.is_none() {
            self.path = Some(path);
        }
    }

    fn note(&mut self, note: Note) {
        if let Some(free) = self.first.iter_mut().find(|n| n.is_none()) {
            *free = Some(note);
        }
        self.last = Some(note);
    }

    /// Attempts since the last progress.
    pub(in super::super) fn attempts(&self) -> Attempts {
        self.data.and(self.probes)
    }

    /// Those that were data.
    pub(in super::super) const fn data(&self) -> Attempts {
        self.data
    }

    /// Those that were probes.
    pub(in super::super) const fn probes_alone(&self) -> Attempts {
        self.probes
    }

    /// From the first attempt to the last, if there was data among them.
    pub(super) fn tried_ns(&self) -> u64 {
        if self.data.count > 0 {
            self.attempts().span_ns()
        } else {
            0
        }
    }

    /// When there last was some.
    pub(in super::super) const fn last_ns(&self) -> Option<u64> {
        self.last_ns
    }

    /// When the sender last heard anything of the receiver.
    pub(in super::super) const fn heard_ns(&self) -> Option<u64> {
        self.heard_ns
    }

    /// All before this was acknowledged, as far as the sender knows.
    pub(in super::super) const fn acked(&self) -> Option<u32> {
        self.acked
    }

    /// End of what was sent.
    pub(in super::super) const fn sent(&self) -> Option<u32> {
        self.sent
    }

    /// Of what is answered by whatever is heard: how often attempts were, and the longest that took.
    pub(in super::super) const fn answers(&self) -> (u32, u64) {
        (self.answers, self.longest_answer_ns)
    }

    /// Times without progress that ended.
    pub(in super::super) const fn outages(&self) -> &Outages {
        &self.outages
    }

    /// Something arrived, or is known to have.
    pub(in super::super) fn advances(&mut self, now_ns: u64, what: What, number: u32) {
        self.last_ns = Some(self.last_ns.map_or(now_ns, |last| last.max(now_ns)));
        if let Some(last) = self.last.take() {
            self.path = Some(last.path);
            self.before[0] = Some(last);
            self.tried = None;
            self.first = [None; 2];
        }
        self.before[1] = Some(Note {
            time_ns: now_ns,
            what,
            number,
            bytes: 0,
            path: 0,
        });
        self.data = Attempts::default();
        self.probes = Attempts::default();
    }

    /// With `silent_ns`, there was progress after attempts that had gone unanswered from then on.
    pub(in super::super) fn note_outage(&mut self, silent_ns: Option<u64>, now_ns: u64) {
        if let Some(since_ns) = silent_ns {
            self.outages.note(since_ns, now_ns);
        }
    }

    /// The sender hears of the receiver; `answers` if that is all that can be known of what arrived.
    pub(in super::super) fn hears(&mut self, now_ns: u64, answers: bool) {
        self.heard_ns = Some(now_ns);
        if answers {
            let all = self.attempts();
            if all.count > 0 {
                self.answers = self.answers.saturating_add(1);
                self.longest_answer_ns = self.longest_answer_ns.max(all.span_ns());
            }
            self.advances(now_ns, What::Heard, 0);
        } else if self.probes.count > 0 {
            self.probes = Attempts::default();
            if self.data.count == 0 {
                self.last = None;
                self.first = [None; 2];
            }
        }
    }

    /// An acknowledgement reaches the sender: of all before `ack`, of something beyond, of nothing new because the
    /// receiver's window is closed. Gives whether it is progress.
    pub(in super::super) fn acknowledged(
        &mut self,
        now_ns: u64,
        ack: u32,
        beyond: Option<(u32, u32)>,
        closed_window: bool,
    ) -> bool {
        let is_new = self.acked.is_none_or(|known| ack.wrapping_sub(known) as i32 > 0);
        let more = beyond.filter(|b| *b != self.beyond && (b.1.wrapping_sub(ack) as i32) > 0);
        if is_new {
            self.acked = Some(ack);
        }
        if let Some(more) = more {
            self.beyond = more;
        }
        if is_new || more.is_some() {
            self.advances(now_ns, What::Acknowledged, ack);
        } else if closed_window {
            // it lives, and does not want more
            self.data = Attempts::default();
            self.probes = Attempts::default();
            self.last = None;
            self.first = [None; 2];
        }
        is_new || more.is_some()
    }

    /// Whether something was sent that is not acknowledged.
    pub(in super::super) fn is_outstanding(&self) -> bool {
        match (self.sent, self.acked) {
            (Some(sent), Some(acked)) => sent.wrapping_sub(acked) as i32 > 0,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// The path that data was on, and the one that it was then tried over.
    pub(in super::super) fn move_tried(&self) -> Option<(u16, u16, u64)> {
        let (to, at_ns) = self.tried?;
        Some((self.path?, to, at_ns))
    }

    /// The last packets before the attempts, the first of these, and the last.
    pub(in super::super) fn notes(&self) -> impl Iterator<Item = Note> {
        let last = self.last.filter(|l| !self.first.contains(&Some(*l)));
        self.before.into_iter().chain(self.first).chain([last]).flatten()
    }
}
