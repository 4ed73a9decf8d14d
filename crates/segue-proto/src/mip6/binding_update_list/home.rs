//! The home registration.

use super::pace::UpdateRate;
use super::update::{Due, PendingUpdate, Registered};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;

/// What the home agent was told.
#[derive(Debug, Default)]
pub(in crate::mip6) struct HomeEntry {
    /// Of the last Binding Update sent.
    sequence: u16,
    /// What the home agent acknowledged last.
    registered: Option<Registered>,
    /// A Binding Update that has not been acknowledged.
    pending: Option<PendingUpdate>,
    /// Binding Updates in a row that were refused for what another could do better.
    refusals: u32,
    updates: UpdateRate,
}

/// The update is to be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mip6) struct Again {
    /// It had been sent before.
    pub retransmits: bool,
    /// It is to be reported that no answer comes.
    pub report: bool,
}

impl HomeEntry {
    /// What the home agent acknowledged last.
    pub fn registered(&self) -> Option<&Registered> {
        self.registered.as_ref()
    }

    /// A Binding Update that has not been acknowledged.
    pub fn pending(&self) -> Option<&PendingUpdate> {
        self.pending.as_ref()
    }

    /// Of the last Binding Update sent.
    pub fn sequence(&self) -> u16 {
        self.sequence
    }

    /// Whether the home agent knows that the node is at `address`, or is being told. Before the first binding it knows of
    /// home.
    pub fn knows(&self, address: Ipv6Addr, is_home: bool) -> bool {
        match (&self.pending, &self.registered) {
            (Some(pending), _) => pending.care_of_address() == address,
            (None, Some(registered)) => registered.care_of_address() == address,
            (None, None) => is_home,
        }
    }

    /// A handoff begins.
    pub fn on_handoff(&mut self) {
        self.refusals = 0;
    }

    /// A Binding Update is sent.
    pub fn begin(&mut self, now: Instant, care_of_address: Ipv6Addr, lifetime: u16, timeout: Duration) {
        self.sequence = self.sequence.wrapping_add(1);
        self.pending = Some(PendingUpdate::new(
            now,
            care_of_address,
            lifetime,
            self.sequence,
            timeout,
        ));
    }

    /// The update that is to be sent now; `None` if there is none.
    ///
    /// # Errors
    /// If there were too many within a second, and it is put off.
    pub fn send(&mut self, now: Instant) -> Result<Option<PendingUpdate>, Instant> {
        let Some(pending) = &mut self.pending else {
            return Ok(None);
        };
        self.updates
            .send(now)
            .inspect_err(|until| pending.postpone(*until))?;
        Ok(Some(*pending))
    }

    /// Section 11.8: the update again, if it is due, with a new sequence number, at the slowest pace for ever.
    pub fn take_retransmission(&mut self, now: Instant, max: Duration) -> Option<Again> {
        let pending = self.pending.as_mut()?;
        if !pending.retransmission().is_due(now) {
            return None;
        }
        let retransmits = pending.again(now, max);
        let report = pending.retransmission().is_slowest(max) && pending.report();
        self.sequence = self.sequence.wrapping_add(1);
        Some(Again { retransmits, report })
    }

    /// What is to be done about the binding.
    pub fn take_due(&mut self, now: Instant) -> Due {
        let due = self.registered.as_mut().map_or(Due::Nothing, |r| r.take_due(now));
        if due == Due::Expired {
            self.registered = None;
        }
        due
    }

    /// Whether the binding is to be refreshed, and nothing is under way that would.
    pub fn is_refresh_due(&self, now: Instant) -> bool {
        self.pending.is_none() && self.registered.is_some_and(|r| r.is_to_be_refreshed(now))
    }

    /// The home agent has had a later sequence number than ours.
    pub fn adopt_sequence(&mut self, theirs: u16) {
        debug_assert!(self.pending.is_some(), "it answers an update");
        self.sequence = theirs;
    }

    /// Nothing comes of the update.
    pub fn stop(&mut self) {
        self.pending = None;
    }

    /// The binding is there, or gone.
    pub fn on_acknowledged(&mut self, registered: Option<Registered>) {
        self.pending = None;
        self.refusals = 0;
        self.registered = registered;
    }

    /// The update was refused, with what the next one needs. Whether that is to go out at once; otherwise it does at the pace
    /// of retransmissions.
    pub fn on_refused(&mut self) -> bool {
        self.refusals += 1;
        if self.refusals > 1 {
            self.renumber();
        }
        self.refusals == 1
    }

    /// The update was refused for a reason that may pass: it goes out again after so long. Whether that is to be reported.
    pub fn on_refused_for_now(&mut self, now: Instant, after: Duration) -> bool {
        if let Some(pending) = &mut self.pending {
            pending.put_off(now, after);
        }
        self.renumber();
        self.pending.as_mut().is_some_and(PendingUpdate::report)
    }

    /// The transmission to come has the number behind this one.
    fn renumber(&mut self) {
        if let Some(pending) = &mut self.pending {
            self.sequence = self.sequence.wrapping_add(1);
            pending.renumber(self.sequence);
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let pending = self.pending.map(|p| p.retransmission().next());
        let registered = self.registered.map(|r| r.poll_timeout());
        [pending, registered].into_iter().flatten().min()
    }
}
