//! Steps 2, 3 and 5: what is asked of the peer, and what comes of it.

use super::{Primary, Sigma};
use crate::sctp::AddressChange;
use crate::sigma::config::{Delete, WhenMissed};
use crate::sigma::event::{Changes, Command, SigmaEventKind};
use crate::sigma::known::{Known, Membership};
use crate::time::Instant;
use core::net::Ipv6Addr;

impl Sigma {
    /// Whether it has nothing to ask for, and nothing to tell.
    #[cfg(feature = "host")]
    pub(crate) fn is_drained(&self) -> bool {
        self.commands.is_empty() && self.events.is_empty()
    }

    /// Step 2; with it step 3 if they are to go together, and step 5 if nothing else works.
    pub(super) fn add(&mut self, now: Instant, index: usize) {
        if !self.established {
            return;
        }
        let local = self.known[index].local();
        let address = local.address;
        let stranded = !self.serving.is_some_and(|a| self.is_preferred(a));
        let cell = self.cell_of(local.interface);
        let wanted = self.missed.is_some() && self.missed == cell;
        self.known[index].add();
        self.tell(now, SigmaEventKind::AddSent(address));
        let decided = stranded || (wanted && self.config.when_missed == WhenMissed::WhenReady);
        if self.config.bundle.add_and_primary()
            && self.primary.is_none()
            && (decided || self.policy.goes_at_once())
        {
            let mut changes = Changes::default();
            changes.push(AddressChange::Add(local));
            changes.push(AddressChange::SetPrimary(address));
            self.tell(now, SigmaEventKind::SetPrimarySent(address));
            self.primary = Some(Primary {
                address,
                routed: stranded,
            });
            self.delete_timer = None;
            if stranded && self.config.bundle.primary_and_delete() {
                self.bundle_step_5(now, address, self.serving, &mut changes);
            }
            self.commands.push_back(Command::Change(changes));
            if stranded {
                self.reroute(now, address);
            }
            return;
        }
        self.commands.push_back(Command::AddAddress(local));
        if stranded {
            self.commands.push_back(Command::SetRoute { address });
        } else if wanted {
            self.queue_primary(now, address);
        }
    }

    pub(super) fn on_add_answered(&mut self, now: Instant, address: Ipv6Addr, granted: bool) {
        let Some(index) = self.index_of(address) else {
            return;
        };
        if self.known[index].membership() != Membership::Adding {
            return;
        }
        let local = self.known[index].local();
        if !granted {
            self.known[index].on_refused();
            self.tell(now, SigmaEventKind::AddRefused(address));
            if self.primary.take_if(|p| p.address == address).is_some() {
                // Set Primary Address was queued behind it: whatever comes of that, there is no going there.
                self.route_timer = None;
            }
            if self.serving == Some(address) {
                // It was routed over for the sake of its own ASCONF. SCTP falls back to an address that it has.
                let member = self.known.iter().find(|k| k.is_member());
                self.serving = member.map(Known::address).or(self.serving);
            }
            self.on_unusable(now);
            return;
        }
        self.known[index].on_added();
        self.tell(now, SigmaEventKind::AddAcknowledged(address));
        if self.known[index].is_usable() {
            self.on_ready(now, local);
        } else {
            self.delete_obsolete(now);
        }
    }

    /// Step 3 behind an unanswered step 2, if configured so.
    pub(super) fn queue_primary(&mut self, now: Instant, address: Ipv6Addr) {
        if self.config.when_missed == WhenMissed::QueuedAsconf && self.primary.is_none() {
            self.ask_for(now, address, false);
        }
    }

    /// Step 3, both halves, and step 4. The route first, so that the ASCONF takes it too.
    pub(super) fn switch(&mut self, now: Instant, address: Ipv6Addr) {
        let former = self.serving;
        self.reroute(now, address);
        self.ask_primary(now, address, true, former);
    }

    pub(super) fn ask_for(&mut self, now: Instant, address: Ipv6Addr, routed: bool) {
        self.ask_primary(now, address, routed, None);
    }

    /// Asks for step 3; `former` is the address that is left behind, for step 5 in the same ASCONF.
    fn ask_primary(&mut self, now: Instant, address: Ipv6Addr, routed: bool, former: Option<Ipv6Addr>) {
        self.primary = Some(Primary { address, routed });
        self.delete_timer = None;
        let mut changes = Changes::default();
        if let Some(index) = self.index_of(address)
            && self.known[index].activate()
        {
            self.tell(now, SigmaEventKind::ActivateSent(address));
            changes.push(AddressChange::Activate(address));
        }
        self.tell(now, SigmaEventKind::SetPrimarySent(address));
        changes.push(AddressChange::SetPrimary(address));
        if routed && self.config.bundle.primary_and_delete() {
            self.bundle_step_5(now, address, former, &mut changes);
        }
        self.commands.push_back(if changes.len() == 1 {
            Command::SetPrimary { address }
        } else {
            Command::Change(changes)
        });
    }

    /// Step 5 of the address that is left behind, and of those obsolete, in the ASCONF of step 3.
    fn bundle_step_5(
        &mut self,
        now: Instant,
        serving: Ipv6Addr,
        former: Option<Ipv6Addr>,
        changes: &mut Changes,
    ) {
        for index in 0..self.known.len() {
            let known = &mut self.known[index];
            let address = known.address();
            let left_behind = known.is_to_be_deleted() || former == Some(address);
            if !known.is_member() || address == serving || !left_behind {
                continue;
            }
            if changes.is_full() {
                return;
            }
            known.leave_behind();
            if let Some(change) = self.step_5(now, index) {
                changes.push(change);
            }
        }
    }

    /// Deletes or deactivates an obsolete member, if that is still to be done.
    fn step_5(&mut self, now: Instant, index: usize) -> Option<AddressChange> {
        let gently = self.config.delete == Delete::Deactivate && self.can_deactivate;
        let known = &mut self.known[index];
        let address = known.address();
        if gently && !known.is_expired() {
            if !known.deactivate() {
                return None;
            }
            self.tell(now, SigmaEventKind::DeactivateSent(address));
            return Some(AddressChange::Deactivate(address));
        }
        known.delete();
        self.tell(now, SigmaEventKind::DeleteSent(address));
        Some(AddressChange::Delete(address))
    }

    pub(super) fn reroute(&mut self, now: Instant, address: Ipv6Addr) {
        self.serving = Some(address);
        self.missed = None;
        self.route_timer = None;
        self.commands.push_back(Command::SetRoute { address });
        self.tell(now, SigmaEventKind::RouteChanged(address));
        self.commands.push_back(Command::UpdateLocation { address });
        self.tell(now, SigmaEventKind::LocationUpdated(address));
        if let Some(cell) = self.serving_cell() {
            self.policy.on_switched(now, cell);
        }
    }

    pub(super) fn on_primary_answered(&mut self, now: Instant, address: Ipv6Addr, granted: bool) {
        let kind = if granted {
            SigmaEventKind::SetPrimaryAcknowledged(address)
        } else {
            SigmaEventKind::SetPrimaryRefused(address)
        };
        self.tell(now, kind);
        let Some(primary) = self.primary.take_if(|p| p.address == address) else {
            return;
        };
        self.route_timer = None;
        if !primary.routed {
            if granted {
                self.reroute(now, address);
            } else if !self.serving.is_some_and(|a| self.is_usable(a)) {
                self.leave_dead_link(now);
            }
        }
        if granted && matches!(self.config.delete, Delete::AfterSwitch | Delete::AfterDelay) {
            self.delete_timer = Some(now + self.config.delete_delay);
            let serving = self.serving;
            self.known.iter_mut().for_each(|known| known.on_switched(serving));
        }
        self.delete_obsolete(now);
    }

    /// Step 5, once step 3 is over and there is a link to speak over.
    pub(super) fn delete_obsolete(&mut self, now: Instant) {
        let speaks = self
            .known
            .iter()
            .any(|k| Some(k.address()) == self.serving && k.is_usable() && k.is_member());
        let held_back = self.config.delete == Delete::AfterDelay && self.delete_timer.is_some();
        if !self.established || self.primary.is_some() || !speaks || held_back {
            return;
        }
        self.limit_deactivated();
        for index in 0..self.known.len() {
            let known = &self.known[index];
            let address = known.address();
            if !known.is_to_be_deleted() || self.serving == Some(address) {
                continue;
            }
            match self.step_5(now, index) {
                Some(AddressChange::Deactivate(address)) => {
                    self.commands.push_back(Command::DeactivateAddress { address });
                }
                Some(_) => self.commands.push_back(Command::DeleteAddress { address }),
                None => {}
            }
        }
    }

    /// The peer keeps some deactivated addresses, not all that the host ever had: the oldest are given up.
    fn limit_deactivated(&mut self) {
        let count = self.known.iter().filter(|k| k.is_kept()).count();
        let too_many = count.saturating_sub(self.config.deactivated_limit as usize);
        for known in self.known.iter_mut().filter(|k| k.is_kept()).take(too_many) {
            known.give_up();
        }
    }

    pub(super) fn on_deactivate_answered(&mut self, now: Instant, address: Ipv6Addr, granted: bool) {
        if granted {
            self.tell(now, SigmaEventKind::DeactivateAcknowledged(address));
            return;
        }
        self.tell(now, SigmaEventKind::DeactivateRefused(address));
        if let Some(index) = self.index_of(address) {
            self.known[index].on_deactivation_refused();
        }
    }

    pub(super) fn on_activate_answered(&mut self, now: Instant, address: Ipv6Addr, granted: bool) {
        let kind = if granted {
            SigmaEventKind::ActivateAcknowledged(address)
        } else {
            SigmaEventKind::ActivateRefused(address)
        };
        self.tell(now, kind);
    }

    pub(super) fn on_delete_answered(&mut self, now: Instant, address: Ipv6Addr, granted: bool) {
        let Some(index) = self.index_of(address) else {
            return;
        };
        if self.known[index].membership() != Membership::Deleting {
            return;
        }
        let known = &mut self.known[index];
        if granted {
            known.on_deleted();
            self.tell(now, SigmaEventKind::DeleteAcknowledged(address));
        } else {
            known.on_delete_refused();
            self.tell(now, SigmaEventKind::DeleteRefused(address));
        }
        let known = self.known[index];
        let (local, usable, membership) = (known.local(), known.is_usable(), known.membership());
        if !granted && usable {
            // The host came back to this address, and it was never gone for the peer.
            self.on_ready(now, local);
        } else if granted && !usable {
            self.known.remove(index);
        } else if membership == Membership::Absent {
            // The host came back to this address while it was being deleted.
            self.add(now, index);
        }
    }
}
