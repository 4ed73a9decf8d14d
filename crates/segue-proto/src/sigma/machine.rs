//! The state machine of the mobile host.

use super::config::{Config, Delete, WhenMissed};
use super::event::{Command, MissReason, SigmaEvent, SigmaEventKind};
use super::policy::{Decision, HandoverPolicy};
use crate::contract::{CellId, InterfaceId, LinkEvent, LocalAddress};
use crate::sctp::AddressRequest;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// SIGMA on a mobile host, for one association.
///
/// In: `handle_*`. Out: `poll_command` and `poll_event`, until both return `None`, then `poll_timeout`.
#[derive(Debug)]
pub struct Sigma {
    config: Config,
    policy: Box<dyn HandoverPolicy>,
    radios: SmallVec<[Radio; 2]>,
    known: SmallVec<[Known; 4]>,
    established: bool,
    /// The address that the association is routed over.
    serving: Option<Ipv6Addr>,
    /// Set Primary Address that the peer has not answered.
    primary: Option<Primary>,
    /// Cell that was decided for while its address was not ready.
    missed: Option<CellId>,
    /// When the route moves to the address of `primary` without an answer.
    route_timer: Option<Instant>,
    delete_timer: Option<Instant>,
    /// T4-RTO of the ASCONF sent last.
    t4_rto: Duration,
    commands: VecDeque<Command>,
    events: VecDeque<SigmaEvent>,
}

#[derive(Debug)]
struct Radio {
    interface: InterfaceId,
    /// Cell connected to or being attached to.
    cell: Option<CellId>,
    up: bool,
}

/// An address that the host has, or that the peer knows.
#[derive(Clone, Copy, Debug)]
struct Known {
    local: LocalAddress,
    /// The host can send from it and receive at it.
    usable: bool,
    /// To be deleted.
    obsolete: bool,
    membership: Membership,
}

/// What an address is to the association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Membership {
    /// No part of it.
    Absent,
    /// Deleted although it could still be used: added again only when it is decided for.
    Retired,
    /// Add IP Address is unanswered.
    Adding,
    /// Part of it.
    Member,
    /// The peer does not want it.
    Refused,
    /// Delete IP Address is unanswered.
    Deleting,
}

#[derive(Clone, Copy, Debug)]
struct Primary {
    address: Ipv6Addr,
    /// The route moved with it.
    routed: bool,
}

impl Sigma {
    /// A mobile host whose `radios` look for cells. There is no association yet.
    #[must_use]
    pub fn new(config: Config, radios: &[InterfaceId]) -> Self {
        let policy = config.policy();
        Self::with_policy(config, radios, policy)
    }

    /// The same with a policy of one's own; `config.policy` is ignored.
    #[must_use]
    pub fn with_policy(config: Config, radios: &[InterfaceId], policy: Box<dyn HandoverPolicy>) -> Self {
        Self {
            config,
            policy,
            radios: radios
                .iter()
                .map(|&interface| Radio {
                    interface,
                    cell: None,
                    up: false,
                })
                .collect(),
            known: SmallVec::new(),
            established: false,
            serving: None,
            primary: None,
            missed: None,
            route_timer: None,
            delete_timer: None,
            t4_rto: Duration::from_secs(1),
            commands: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The address that the association is routed over.
    #[must_use]
    pub fn serving(&self) -> Option<Ipv6Addr> {
        self.serving
    }

    /// The association was established with these addresses and is routed over `route`.
    pub fn handle_established(
        &mut self,
        now: Instant,
        addresses: impl IntoIterator<Item = LocalAddress>,
        route: Ipv6Addr,
    ) {
        self.established = true;
        self.serving = Some(route);
        for local in addresses {
            let index = self.know(local);
            self.known[index].membership = Membership::Member;
        }
        for index in 0..self.known.len() {
            if self.known[index].usable && self.known[index].membership == Membership::Absent {
                self.add(now, index);
            }
        }
        self.delete_obsolete(now);
    }

    /// The association is gone.
    pub fn handle_closed(&mut self, _now: Instant) {
        self.established = false;
        self.serving = None;
        self.primary = None;
        self.missed = None;
        self.route_timer = None;
        self.delete_timer = None;
        self.known.retain(|k| k.usable);
        for known in &mut self.known {
            known.membership = Membership::Absent;
        }
    }

    /// Takes a link event.
    pub fn handle_link(&mut self, now: Instant, event: &LinkEvent) {
        let serving = self.serving_cell();
        match *event {
            LinkEvent::Beacon {
                interface,
                cell,
                signal_dbm,
            } => {
                self.on_beacon(now, interface, cell, signal_dbm);
            }
            LinkEvent::Up { interface, cell } => {
                if let Some(radio) = self.radio_mut(interface) {
                    radio.cell = Some(cell);
                    radio.up = true;
                    self.tell(now, SigmaEventKind::LinkUp { interface, cell });
                }
            }
            LinkEvent::Down { interface, cell } => self.on_down(now, interface, cell),
            LinkEvent::GoingDown { .. } | LinkEvent::Overlap { .. } => {}
        }
        if let Some(serving) = serving {
            let decision = self.policy.on_link_event(now, event, serving);
            self.decide(now, decision);
        }
    }

    /// Step 1 is over: the host has a usable address.
    pub fn handle_address_ready(&mut self, now: Instant, local: LocalAddress) {
        self.tell(now, SigmaEventKind::Obtained(local));
        let index = self.know(local);
        let known = &mut self.known[index];
        known.usable = true;
        known.obsolete = false;
        match known.membership {
            Membership::Absent | Membership::Retired => self.add(now, index),
            Membership::Member => self.on_ready(now, local),
            Membership::Adding | Membership::Refused | Membership::Deleting => {}
        }
    }

    /// The host can no longer use an address.
    pub fn handle_address_lost(&mut self, now: Instant, address: Ipv6Addr) {
        let Some(index) = self.index_of(address) else {
            return;
        };
        if !self.known[index].usable {
            return;
        }
        self.known[index].usable = false;
        self.known[index].obsolete = true;
        self.on_unusable(now);
    }

    /// The peer answered a request, or SCTP did not take it.
    pub fn handle_answer(&mut self, now: Instant, request: AddressRequest, granted: bool) {
        match request {
            AddressRequest::Add(address) => self.on_add_answered(now, address, granted),
            AddressRequest::SetPrimary(address) => self.on_primary_answered(now, address, granted),
            AddressRequest::Delete(address) => self.on_delete_answered(now, address, granted),
            AddressRequest::Deactivate(_) | AddressRequest::Activate(_) => {}
        }
    }

    /// What T4-RTO is for the ASCONF that SCTP sent, or queued, on the last command.
    pub fn handle_asconf_sent(&mut self, now: Instant, t4_rto: Duration) {
        self.t4_rto = t4_rto;
        if self.route_timer.is_some() {
            self.route_timer = Some(now + t4_rto);
        }
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.route_timer.take_if(|at| *at <= now).is_some()
            && let Some(Primary {
                address,
                routed: false,
            }) = self.primary
        {
            self.primary = Some(Primary {
                address,
                routed: true,
            });
            self.reroute(now, address);
        }
        if self.delete_timer.take_if(|at| *at <= now).is_some() {
            let serving = self.serving;
            for known in &mut self.known {
                known.obsolete |= Some(known.local.address) != serving;
            }
            self.delete_obsolete(now);
        }
        if self.policy.poll_timeout().is_some_and(|at| at <= now) {
            let candidates = self.candidates();
            let decision = self.policy.on_timeout(now, &candidates);
            if self.serving_cell().is_some() {
                self.decide(now, decision);
            }
        }
    }

    /// When `handle_timeout` must be called next. Poll after `poll_command` has returned `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.route_timer, self.delete_timer, self.policy.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next command. Poll until `None` after every other call; they are to be carried out in order.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// The next entry of the trail. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<SigmaEvent> {
        self.events.pop_front()
    }

    /// Step 1 begins when an idle radio hears a cell that no other radio is in.
    fn on_beacon(&mut self, now: Instant, interface: InterfaceId, cell: CellId, signal_dbm: f64) {
        let too_weak = self.config.attach_threshold.is_some_and(|t| signal_dbm < t.dbm());
        if too_weak || self.radios.iter().any(|r| r.cell == Some(cell)) {
            return;
        }
        let Some(radio) = self.radio_mut(interface).filter(|r| r.cell.is_none()) else {
            return;
        };
        radio.cell = Some(cell);
        self.tell(now, SigmaEventKind::ObtainStarted { interface, cell });
        self.commands.push_back(Command::StartAttach { interface, cell });
    }

    fn on_down(&mut self, now: Instant, interface: InterfaceId, cell: CellId) {
        let Some(radio) = self.radio_mut(interface).filter(|r| r.cell == Some(cell)) else {
            return;
        };
        radio.cell = None;
        radio.up = false;
        self.tell(now, SigmaEventKind::LinkDown { interface, cell });
        for known in self.known.iter_mut().filter(|k| k.local.interface == interface) {
            known.usable = false;
            known.obsolete = true;
        }
        if self.missed == Some(cell) {
            self.missed = None;
        }
        self.on_unusable(now);
    }

    /// An address cannot be used any more: forgets, deletes or leaves it.
    fn on_unusable(&mut self, now: Instant) {
        self.known.retain(|k| {
            k.usable
                || !matches!(
                    k.membership,
                    Membership::Absent | Membership::Retired | Membership::Refused
                )
        });
        if let Some(Primary {
            address,
            routed: false,
        }) = self.primary
            && !self.is_usable(address)
        {
            self.primary = None;
            self.route_timer = None;
        }
        if self.established && !self.serving.is_some_and(|a| self.is_usable(a)) {
            self.leave_dead_link(now);
        }
        self.delete_obsolete(now);
    }

    /// The link that the association is routed over is gone.
    fn leave_dead_link(&mut self, now: Instant) {
        if let Some(Primary { routed: false, .. }) = self.primary {
            // Set Primary Address went over the old route; its retransmission takes the new one.
            self.route_timer.get_or_insert(now + self.t4_rto);
        } else if let Some(address) = self.ready_address() {
            let repaired_by_t4 =
                self.missed.is_some() && self.config.when_missed == WhenMissed::RetransmittedAsconf;
            if repaired_by_t4 {
                self.route_timer = Some(now + self.t4_rto);
                self.set_primary(now, address, false);
            } else {
                self.switch(now, address);
            }
        } else if let Some(adding) = self
            .known
            .iter()
            .find(|k| k.usable && k.membership == Membership::Adding)
        {
            // RFC 5061 section 5.3, F1: the ASCONF that adds an address may be sent from it.
            self.commands.push_back(Command::SetRoute {
                address: adding.local.address,
            });
        }
    }

    /// Step 2.
    fn add(&mut self, now: Instant, index: usize) {
        if !self.established {
            return;
        }
        let local = self.known[index].local;
        self.known[index].membership = Membership::Adding;
        self.tell(now, SigmaEventKind::AddSent(local.address));
        self.commands.push_back(Command::AddAddress(local));
        if !self.serving.is_some_and(|a| self.is_usable(a)) {
            self.commands.push_back(Command::SetRoute {
                address: local.address,
            });
        } else if self.missed.is_some() && self.missed == self.cell_of(local.interface) {
            self.queue_primary(now, local.address);
        }
    }

    fn on_add_answered(&mut self, now: Instant, address: Ipv6Addr, granted: bool) {
        let Some(index) = self.index_of(address) else {
            return;
        };
        if self.known[index].membership != Membership::Adding {
            return;
        }
        let local = self.known[index].local;
        if !granted {
            self.known[index].membership = Membership::Refused;
            self.tell(now, SigmaEventKind::AddRefused(address));
            if self.primary.take_if(|p| p.address == address).is_some() {
                // Set Primary Address was queued behind it: whatever comes of that, there is no going there.
                self.route_timer = None;
            }
            if self.serving == Some(address) {
                // It was routed over for the sake of its own ASCONF. SCTP falls back to an address that it has.
                let member = self.known.iter().find(|k| k.membership == Membership::Member);
                self.serving = member.map(|k| k.local.address).or(self.serving);
            }
            self.on_unusable(now);
            return;
        }
        self.known[index].membership = Membership::Member;
        self.tell(now, SigmaEventKind::AddAcknowledged(address));
        if self.known[index].usable {
            self.on_ready(now, local);
        } else {
            self.delete_obsolete(now);
        }
    }

    /// The peer knows an address that the host can use.
    fn on_ready(&mut self, now: Instant, local: LocalAddress) {
        if self.serving == Some(local.address) {
            return;
        }
        let Some(serving) = self
            .serving_cell()
            .filter(|_| self.serving.is_some_and(|a| self.is_usable(a)))
        else {
            if self.established && self.primary.is_none_or(|p| p.routed) {
                self.switch(now, local.address);
            }
            return;
        };
        let Some(cell) = self.cell_of(local.interface) else {
            return;
        };
        if self.missed == Some(cell) {
            if self.config.when_missed == WhenMissed::WhenReady {
                self.switch(now, local.address);
            }
            return;
        }
        let decision = self.policy.on_ready(now, cell, serving);
        self.decide(now, decision);
    }

    fn decide(&mut self, now: Instant, decision: Option<Decision>) {
        let Some(from) = self.serving_cell() else { return };
        match decision {
            Some(Decision::Go(to)) if to != from => self.go(now, from, to),
            Some(Decision::Retract(to)) if self.missed == Some(to) => {
                self.missed = None;
                self.tell(now, SigmaEventKind::Retracted { to });
            }
            _ => {}
        }
    }

    /// Step 3 is due: takes it, or misses it.
    fn go(&mut self, now: Instant, from: CellId, to: CellId) {
        if self.primary.is_some_and(|p| !p.routed) {
            return;
        }
        let again = self.missed == Some(to);
        let state = self.state_of(to);
        if let Ok(address) = state {
            let waits_for_something_else = matches!(
                self.config.when_missed,
                WhenMissed::LinkLoss | WhenMissed::QueuedAsconf | WhenMissed::RetransmittedAsconf
            );
            if again && waits_for_something_else {
                return;
            }
            self.tell(now, SigmaEventKind::DecisionPoint { from, to });
            self.switch(now, address);
            return;
        }
        let Err(reason) = state else { return };
        if again {
            return;
        }
        self.missed = Some(to);
        self.tell(now, SigmaEventKind::DecisionPoint { from, to });
        self.tell(now, SigmaEventKind::Missed { to, reason });
        let target = self
            .known
            .iter()
            .position(|k| k.usable && self.cell_of(k.local.interface) == Some(to));
        let Some(index) = target else { return };
        match self.known[index].membership {
            Membership::Retired => self.add(now, index),
            Membership::Adding => self.queue_primary(now, self.known[index].local.address),
            _ => {}
        }
    }

    /// Step 3 behind an unanswered step 2, if configured so.
    fn queue_primary(&mut self, now: Instant, address: Ipv6Addr) {
        if self.config.when_missed == WhenMissed::QueuedAsconf && self.primary.is_none() {
            self.set_primary(now, address, false);
        }
    }

    /// Step 3, both halves, and step 4. The route first, so that the ASCONF takes it too.
    fn switch(&mut self, now: Instant, address: Ipv6Addr) {
        self.reroute(now, address);
        self.set_primary(now, address, true);
    }

    fn set_primary(&mut self, now: Instant, address: Ipv6Addr, routed: bool) {
        self.primary = Some(Primary { address, routed });
        self.delete_timer = None;
        self.commands.push_back(Command::SetPrimary { address });
        self.tell(now, SigmaEventKind::SetPrimarySent(address));
    }

    fn reroute(&mut self, now: Instant, address: Ipv6Addr) {
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

    fn on_primary_answered(&mut self, now: Instant, address: Ipv6Addr, granted: bool) {
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
        if granted && self.config.delete != Delete::OnLinkDown {
            self.delete_timer = Some(now + self.config.delete_delay);
        }
        self.delete_obsolete(now);
    }

    /// Step 5, once step 3 is over and there is a link to speak over.
    fn delete_obsolete(&mut self, now: Instant) {
        let speaks = self
            .known
            .iter()
            .any(|k| Some(k.local.address) == self.serving && k.usable && k.membership == Membership::Member);
        let held_back = self.config.delete == Delete::AfterDelay && self.delete_timer.is_some();
        if !self.established || self.primary.is_some() || !speaks || held_back {
            return;
        }
        for index in 0..self.known.len() {
            let known = &mut self.known[index];
            let address = known.local.address;
            if known.obsolete && known.membership == Membership::Member && self.serving != Some(address) {
                known.membership = Membership::Deleting;
                self.commands.push_back(Command::DeleteAddress { address });
                self.tell(now, SigmaEventKind::DeleteSent(address));
            }
        }
    }

    fn on_delete_answered(&mut self, now: Instant, address: Ipv6Addr, granted: bool) {
        let Some(index) = self.index_of(address) else {
            return;
        };
        if self.known[index].membership != Membership::Deleting {
            return;
        }
        let known = &mut self.known[index];
        if granted {
            known.membership = if known.obsolete {
                Membership::Retired
            } else {
                Membership::Absent
            };
            self.tell(now, SigmaEventKind::DeleteAcknowledged(address));
        } else {
            // Not asked again before the next reason to.
            known.membership = Membership::Member;
            known.obsolete = false;
            self.tell(now, SigmaEventKind::DeleteRefused(address));
        }
        let Known {
            local,
            usable,
            membership,
            ..
        } = self.known[index];
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

    /// The ready address in `cell`, or what it lacks.
    fn state_of(&self, cell: CellId) -> Result<Ipv6Addr, MissReason> {
        let Some(radio) = self.radios.iter().find(|r| r.cell == Some(cell) && r.up) else {
            return Err(MissReason::LinkNotUp);
        };
        let mut reason = MissReason::NoAddress;
        for known in self
            .known
            .iter()
            .filter(|k| k.usable && k.local.interface == radio.interface)
        {
            match known.membership {
                Membership::Member => return Ok(known.local.address),
                Membership::Refused => reason = MissReason::Refused,
                _ => reason = MissReason::NotAcknowledged,
            }
        }
        Err(reason)
    }

    /// An address that the association can be switched to.
    fn ready_address(&self) -> Option<Ipv6Addr> {
        let ready = self.known.iter().find(|k| {
            k.usable && k.membership == Membership::Member && Some(k.local.address) != self.serving
        });
        ready.map(|k| k.local.address)
    }

    /// The cells other than the serving one, ready ones first.
    fn candidates(&self) -> SmallVec<[CellId; 4]> {
        let serving = self.serving_cell();
        let mut cells: SmallVec<[CellId; 4]> = self
            .radios
            .iter()
            .filter_map(|r| r.cell)
            .filter(|c| Some(*c) != serving)
            .collect();
        cells.sort_by_key(|c| self.state_of(*c).is_err());
        cells
    }

    /// Cell of the radio that the association is routed over, if it is connected.
    fn serving_cell(&self) -> Option<CellId> {
        let known = &self.known[self.index_of(self.serving?)?];
        self.cell_of(known.local.interface)
    }

    fn cell_of(&self, interface: InterfaceId) -> Option<CellId> {
        self.radios.iter().find(|r| r.interface == interface)?.cell
    }

    fn radio_mut(&mut self, interface: InterfaceId) -> Option<&mut Radio> {
        self.radios.iter_mut().find(|r| r.interface == interface)
    }

    fn index_of(&self, address: Ipv6Addr) -> Option<usize> {
        self.known.iter().position(|k| k.local.address == address)
    }

    fn is_usable(&self, address: Ipv6Addr) -> bool {
        self.known.iter().any(|k| k.local.address == address && k.usable)
    }

    /// The index of an address, which becomes known if it was not; one on a wire is usable from the start.
    fn know(&mut self, local: LocalAddress) -> usize {
        if let Some(index) = self.index_of(local.address) {
            return index;
        }
        let usable = !self.radios.iter().any(|r| r.interface == local.interface);
        self.known.push(Known {
            local,
            usable,
            obsolete: !usable,
            membership: Membership::Absent,
        });
        self.known.len() - 1
    }

    fn tell(&mut self, time: Instant, kind: SigmaEventKind) {
        self.events.push_back(SigmaEvent { time, kind });
    }
}
