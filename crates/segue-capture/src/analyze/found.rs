//! The signalling of a handover: which messages belong to it, and what they say of its parts and of who moved.

use super::decode::Address;
use super::heard::Heard;
use super::model::{Handover, SignalKind};
use crate::record::{Layer, Parts};

/// Signalling is looked for this long before the last data over the old path, nanoseconds.
const SIGNALS_BEFORE_NS: u64 = 5_000_000_000;

/// Signals that are listed with a handover.
const MAX_LISTED: usize = 64;

/// A handover with what is needed to find its signalling.
pub(super) struct Found {
    pub handover: Handover,
    pub last_old_ns: u64,
    pub first_new_ns: u64,
    /// Addresses of the new path that the old one did not have.
    pub new_addresses: Vec<Address>,
    /// Source and destination of the old path, and of the new one.
    pub old: (Address, Address),
    pub new: (Address, Address),
    /// Who sends, and who receives.
    pub identities: [Address; 2],
}

impl Found {
    /// [`Flow::id`].
    pub(super) fn flow(&self) -> u64 {
        self.handover.record.flow.unwrap_or_default()
    }

    /// It is the sender (0) or the receiver (1) that moved.
    pub(super) fn moves(&mut self, end: usize) {
        let of = |pair: (Address, Address)| if end == 0 { pair.0 } else { pair.1 };
        let record = &mut self.handover.record;
        record.host = self.identities[end & 1].ip().to_string();
        record.from = Some(of(self.old).ip());
        record.to = Some(of(self.new).ip());
    }

    /// Looks for the signalling of a handover among all signals, in order of time; none before `since_ns` belongs to it.
    pub(super) fn signalling(&mut self, signals: &[Heard], since_ns: u64, start_ns: u64) {
        let begin_ns = self.last_old_ns.saturating_sub(SIGNALS_BEFORE_NS).max(since_ns);
        let end_ns = self.first_new_ns.max(self.last_old_ns) + 1_000_000_000;
        let first = signals.partition_point(|s| s.time_ns < begin_ns);
        let after = signals.partition_point(|s| s.time_ns <= end_ns);
        let between = || (first..).zip(signals.get(first..after).unwrap_or_default());
        let concerning = between().filter(|(_, s)| self.concerns(s)).map(|(n, _)| n as u32);
        self.handover.signals = concerning.take(MAX_LISTED).collect();
        let in_vain = self.handover.record.censored;
        // an address may be added to an association long before it is used
        let early = signals.partition_point(|s| s.time_ns < since_ns);
        let tells = |s: &&Heard| {
            let adds = matches!(s.kind, SignalKind::AsconfAdd | SignalKind::AsconfSetPrimary);
            (adds || s.time_ns >= begin_ns) && self.tells(s) && self.concerns(s)
        };
        let telling = signals.get(early..after).unwrap_or_default().iter().filter(tells);
        let Some(registration) = telling
            .clone()
            .next()
            .filter(|s| in_vain || s.time_ns <= self.first_new_ns)
        else {
            return;
        };
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
        if both && (speaks == self.new.1 || self.identities[1] == speaks || told == self.new.0) {
            self.moves(1);
        }
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
        let record = &mut self.handover.record;
        if record.layer == Some(Layer::Network) {
            record.parts = Some(Parts {
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
        }
        record.begin_s = Some(span(start_ns, registered_ns));
        record.end_s = end_ns.map(|end| span(start_ns, end));
        record.handoff_delay_s = waits.map(|w| together_ns(w) as f64 / 1e9);
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

    /// When data first took the new path.
    pub(super) const fn first_new_ns(&self) -> u64 {
        self.first_new_ns
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
