//! The signalling of a handover: which messages belong to it, and what they say of its parts and of who moved.

use super::decode::Address;
use super::flows::moved::Moved;
use super::flows::paths::Way;
use super::heard::Heard;
use super::model::{Direction, Handover, SignalKind};
use crate::record::{HandoverRecord, Layer, Parts};

/// Signalling is looked for this long before the last data over the old path, nanoseconds.
const SIGNALS_BEFORE_NS: u64 = 5_000_000_000;

/// Signals that are listed with a handover.
const MAX_LISTED: usize = 64;

/// A handover with what is needed to find its signalling.
#[derive(Clone)]
pub(super) struct Found {
    /// As far as it is known without that.
    handover: Handover,
    /// Who moved, as far as that is known without it: the sender (0) or the receiver (1).
    moved: usize,
    last_old_ns: u64,
    first_new_ns: u64,
    /// Addresses of the new path that the old one did not have.
    new_addresses: Vec<Address>,
    /// Source and destination of the old path, and of the new one.
    old: (Address, Address),
    new: (Address, Address),
    /// Who sends, and who receives.
    identities: [Address; 2],
}

/// What the signalling of a handover says of it.
struct Signalled {
    /// Who moved.
    moved: usize,
    parts: Option<Parts>,
    begin_s: f64,
    end_s: Option<f64>,
    handoff_delay_s: Option<f64>,
}

impl Found {
    /// A handover from one path to the other, of data between these identities.
    pub(super) fn new(
        handover: Handover,
        m: &Moved,
        (from, to): (&Way, &Way),
        identities: [Address; 2],
    ) -> Self {
        let new = [to.outer.0, to.outer.1];
        let is_new = |a: &Address| *a != from.outer.0 && *a != from.outer.1;
        Self {
            handover,
            // without a change of address, the host is the one whose interfaces were captured
            moved: usize::from(from.outer.0 == to.outer.0 && (from.outer.1 != to.outer.1 || m.received)),
            last_old_ns: m.last_old_ns,
            first_new_ns: m.first_new_ns,
            new_addresses: new.into_iter().filter(is_new).collect(),
            old: from.outer,
            new: to.outer,
            identities,
        }
    }

    /// [`Flow::id`].
    pub(super) fn flow(&self) -> u64 {
        self.handover.record.flow.unwrap_or_default()
    }

    /// Which direction's data moved.
    pub(super) const fn direction(&self) -> Direction {
        self.handover.direction
    }

    /// When data first took the new path.
    pub(super) const fn first_new_ns(&self) -> u64 {
        self.first_new_ns
    }

    /// The same where flows are numbered from `first` on.
    pub(super) fn numbered_from(self, first: u64) -> Self {
        let record = HandoverRecord {
            flow: self.handover.record.flow.map(|n| n + first),
            ..self.handover.record
        };
        Self {
            handover: Handover {
                record,
                ..self.handover
            },
            ..self
        }
    }

    /// With its signalling, which is among these signals, in order of time; none before `since_ns` belongs to it.
    pub(super) fn finish(self, signals: &[Heard], since_ns: u64, start_ns: u64) -> Handover {
        let within = self.within(signals, since_ns);
        let between = within
            .clone()
            .zip(signals.get(within.clone()).unwrap_or_default());
        let concerning = between.filter(|(_, s)| self.concerns(s)).map(|(n, _)| n as u32);
        let listed: Vec<u32> = concerning.take(MAX_LISTED).collect();
        let signalled = self.signalled(signals, since_ns, start_ns);
        let moved = signalled.as_ref().map_or(self.moved, |s| s.moved);
        let of = |pair: (Address, Address)| if moved == 0 { pair.0 } else { pair.1 };
        let record = self.handover.record;
        Handover {
            record: HandoverRecord {
                host: self.identities[moved & 1].ip().to_string(),
                from: Some(of(self.old).ip()),
                to: Some(of(self.new).ip()),
                parts: signalled.as_ref().and_then(|s| s.parts).or(record.parts),
                begin_s: signalled.as_ref().map(|s| s.begin_s),
                end_s: signalled.as_ref().and_then(|s| s.end_s),
                handoff_delay_s: signalled.as_ref().and_then(|s| s.handoff_delay_s),
                ..record
            },
            signals: listed,
            ..self.handover
        }
    }

    /// When signals may belong to it, from the first time to the last.
    fn times_ns(&self, since_ns: u64) -> (u64, u64) {
        (
            self.last_old_ns.saturating_sub(SIGNALS_BEFORE_NS).max(since_ns),
            self.first_new_ns.max(self.last_old_ns) + 1_000_000_000,
        )
    }

    /// Numbers of the signals of that time.
    fn within(&self, signals: &[Heard], since_ns: u64) -> core::ops::Range<usize> {
        let (begin_ns, end_ns) = self.times_ns(since_ns);
        let first = signals.partition_point(|s| s.time_ns < begin_ns);
        first..signals.partition_point(|s| s.time_ns <= end_ns)
    }

    fn signalled(&self, signals: &[Heard], since_ns: u64, start_ns: u64) -> Option<Signalled> {
        let (begin_ns, _) = self.times_ns(since_ns);
        let after = self.within(signals, since_ns).end;
        let in_vain = self.handover.record.censored;
        // an address may be added to an association long before it is used
        let early = signals.partition_point(|s| s.time_ns < since_ns);
        let tells = |s: &&Heard| {
            let adds = matches!(s.kind, SignalKind::AsconfAdd | SignalKind::AsconfSetPrimary);
            (adds || s.time_ns >= begin_ns) && self.tells(s) && self.concerns(s)
        };
        let telling = signals.get(early..after).unwrap_or_default().iter().filter(tells);
        let registration = telling
            .clone()
            .next()
            .filter(|s| in_vain || s.time_ns <= self.first_new_ns)?;
        let advertises = |s: &&Heard| {
            s.kind == SignalKind::RouterAdvertisement
                && s.capture == registration.capture
                && s.time_ns <= registration.time_ns
                && s.about
                    .is_some_and(|p| self.new_addresses.iter().any(|a| a.locator() == p.locator()))
        };
        // the first of all, after the old path fell silent: of what was known before, nothing tells when it was decided to use it
        let heard = signals.get(..after).unwrap_or_default();
        let advertisement = heard
            .iter()
            .find(advertises)
            .filter(|s| s.time_ns >= self.last_old_ns);
        let later = signals.get(early..).unwrap_or_default();
        let waits = self.waits(registration.capture, telling.clone(), later);
        // an address that nobody was asked to use is only one more
        let asked = registration.kind != SignalKind::AsconfAdd
            || telling.clone().any(|s| s.kind == SignalKind::AsconfSetPrimary);
        let waits = waits.filter(|w| asked && !w.is_empty());
        // where both addresses differ, the end that says so is the one that moved
        let both = self.old.0 != self.new.0 && self.old.1 != self.new.1;
        let (speaks, told) = (registration.outer.0, registration.outer.1);
        let receiver = both && (speaks == self.new.1 || self.identities[1] == speaks || told == self.new.0);
        let end_ns = waits.iter().flatten().map(|w| w.1).max();
        let span = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
        let since_ns = self.last_old_ns;
        let registered_ns = registration.time_ns;
        // until the last who was told has said so, or at the latest data comes
        let done_ns = match (end_ns, in_vain) {
            (Some(end), true) => Some(end),
            (Some(end), false) => Some(end.min(self.first_new_ns)),
            (None, false) => Some(self.first_new_ns),
            (None, true) => None,
        };
        let t_d_s = advertisement.map(|a| span(since_ns, a.time_ns));
        let t_c_s = advertisement.map(|a| span(a.time_ns, registered_ns));
        let t_r_s = done_ns.map(|done| span(registered_ns, done));
        let record = &self.handover.record;
        let parts = (record.layer == Some(Layer::Network)).then(|| Parts {
            since_s: span(start_ns, since_ns),
            t_d_s,
            t_c_s,
            t_r_s,
            t_n_s: done_ns
                .filter(|_| t_d_s.is_some())
                .map(|done| span(since_ns, done)),
            first_data_s: record.latency_s,
            ..record.parts.unwrap_or_default()
        });
        Some(Signalled {
            moved: if receiver { 1 } else { self.moved },
            parts,
            begin_s: span(start_ns, registered_ns),
            end_s: end_ns.map(|end| span(start_ns, end)),
            handoff_delay_s: waits.map(|w| together_ns(w) as f64 / 1e9),
        })
    }

    /// From when to when each of those who were told was waited for, if all have answered. Those who tell are `telling`, in this
    /// capture; the answers are among what came `later`.
    fn waits<'a>(
        &self,
        capture: u8,
        telling: impl Iterator<Item = &'a Heard>,
        later: &[Heard],
    ) -> Option<Vec<(u64, u64)>> {
        let answers = later
            .iter()
            .filter(|a| a.capture == capture && a.is_answer() && self.concerns(a));
        let answers: Vec<&Heard> = answers.take(4 * MAX_LISTED).collect();
        telling
            .filter(|s| s.capture == capture && s.asks)
            .take(MAX_LISTED)
            .map(|s| Some((s.time_ns, answers.iter().find(|a| a.answers(s))?.time_ns)))
            .collect()
    }

    /// Whether it is the moving host that tells of its new address.
    fn tells(&self, s: &Heard) -> bool {
        !s.inbound
            && match s.kind {
                SignalKind::BindingUpdate
                | SignalKind::CareOfTestInit
                | SignalKind::HomeTestInit
                | SignalKind::LocatorUpdate
                | SignalKind::MptcpJoin => true,
                SignalKind::AsconfAdd | SignalKind::AsconfSetPrimary => {
                    // none in particular is the one that the message comes from
                    let address = s.about.filter(|a| !a.ip().is_unspecified()).unwrap_or(s.outer.0);
                    self.new_addresses.contains(&address)
                }
                _ => false,
            }
    }

    /// Whether a signal is about the flow, or about an address of the new path.
    fn concerns(&self, s: &Heard) -> bool {
        if let Some(flow) = s.flow {
            return flow == self.flow();
        }
        let own = |a: Address| self.identities.contains(&a) || self.new_addresses.contains(&a);
        match s.kind {
            SignalKind::LocatorUpdate | SignalKind::LocatorUpdateAcknowledgement => self
                .identities
                .iter()
                .any(|i| i.nid() == s.outer.0.nid() || i.nid() == s.outer.1.nid()),
            SignalKind::RouterAdvertisement => s
                .about
                .is_some_and(|p| self.new_addresses.iter().any(|a| a.locator() == p.locator())),
            SignalKind::RouterSolicitation => false,
            _ => s.about.is_some_and(own),
        }
    }
}

/// For how long at least one of these went on.
fn together_ns(mut waits: Vec<(u64, u64)>) -> u64 {
    waits.sort_unstable();
    let mut until_ns = 0;
    let mut sum_ns = 0;
    for (from, to) in waits {
        sum_ns += to.saturating_sub(from.max(until_ns));
        until_ns = until_ns.max(to);
    }
    sum_ns
}
