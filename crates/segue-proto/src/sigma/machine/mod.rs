//! The state machine of the mobile host: what it hears, and what it does about it. `exchange` is what it asks of the peer, `places` what it
//! knows of cells and addresses.

mod exchange;
mod places;

use super::config::{Config, WhenMissed};
use super::event::{Command, SigmaEvent, SigmaEventKind};
use super::known::{Known, Membership, Radio};
use super::policy::{Decision, HandoverPolicy};
use crate::contract::{CellId, InterfaceId, LinkEvent, LocalAddress};
use crate::sctp::AddressRequest;
use crate::sctp::PathState;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Step 3 that was asked for.
#[derive(Clone, Copy, Debug)]
struct Primary {
    address: Ipv6Addr,
    /// The route moved with it.
    routed: bool,
}

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
    /// The peer knows how to deactivate addresses.
    can_deactivate: bool,
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
            radios: radios.iter().map(|&interface| Radio::new(interface)).collect(),
            known: SmallVec::new(),
            established: false,
            can_deactivate: false,
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

    /// One for another association of the same host, which is not established yet: it knows what this one knows of links and
    /// addresses.
    #[must_use]
    pub fn for_another(&self) -> Self {
        let mut other = Self {
            config: self.config.clone(),
            policy: self.policy.for_another(),
            radios: self.radios.clone(),
            known: self.known.clone(),
            commands: VecDeque::new(),
            events: VecDeque::new(),
            ..*self
        };
        other.forget_association();
        other.can_deactivate = false;
        other
    }

    /// The address that the association is routed over.
    #[must_use]
    pub fn serving(&self) -> Option<Ipv6Addr> {
        self.serving
    }

    /// Whether the peer knows how to deactivate addresses; until told it does not.
    pub fn set_can_deactivate(&mut self, can_deactivate: bool) {
        self.can_deactivate = can_deactivate;
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
            self.known[index].on_added();
        }
        for index in 0..self.known.len() {
            if self.known[index].is_usable() && self.known[index].membership() == Membership::Absent {
                self.add(now, index);
            }
        }
        self.delete_obsolete(now);
    }

    /// The association is gone.
    pub fn handle_closed(&mut self, _now: Instant) {
        self.forget_association();
    }

    fn forget_association(&mut self) {
        self.established = false;
        self.serving = None;
        self.primary = None;
        self.missed = None;
        self.route_timer = None;
        self.delete_timer = None;
        self.known.retain(|k| k.is_usable());
        for known in &mut self.known {
            known.on_closed();
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
                if let Some(number) = self.number_of(interface) {
                    self.radios[number].on_up(cell);
                    self.tell(now, SigmaEventKind::LinkUp { interface, cell });
                }
            }
            LinkEvent::Down { interface, cell } => self.on_down(now, interface, cell),
            LinkEvent::GoingDown { .. } | LinkEvent::Overlap { .. } | LinkEvent::Planned { .. } => {}
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
        if self.known[index].on_ready(local) {
            self.commands.push_back(Command::AddressBack(local));
        }
        match self.known[index].membership() {
            Membership::Absent | Membership::Retired => self.add(now, index),
            Membership::Member => {
                if self.serving != Some(local.address) {
                    self.tell(now, SigmaEventKind::Reused(local.address));
                }
                self.on_ready(now, local);
            }
            Membership::Adding | Membership::Refused | Membership::Deleting => {}
        }
    }

    /// The host can no longer use an address.
    pub fn handle_address_lost(&mut self, now: Instant, address: Ipv6Addr) {
        let Some(index) = self.index_of(address) else {
            return;
        };
        if !self.known[index].is_usable() {
            return;
        }
        self.known[index].on_lost();
        self.on_unusable(now);
    }

    /// An address is not to be used where there is another (RFC 4862 section 5.5.4), as after its network was renumbered: the
    /// association is switched to another as soon as there is one, be it of the same cell, and this one is deleted.
    pub fn handle_address_deprecated(&mut self, now: Instant, address: Ipv6Addr) {
        // a host that leaves everything to the peer's timeouts goes on with what it has
        let Some(index) = self.index_of(address).filter(|_| self.policy.leaves_lost_links()) else {
            return;
        };
        self.known[index].on_deprecated();
        let switches = self.primary.is_some_and(|p| !p.routed);
        if self.established
            && self.serving == Some(address)
            && !switches
            && let Some(other) = self.ready_address().filter(|a| self.is_preferred(*a))
        {
            self.switch(now, other);
        }
        self.delete_obsolete(now);
    }

    /// An address is no longer the host's, on whatever link: its valid lifetime is over. It is deleted even where
    /// addresses are otherwise deactivated.
    pub fn handle_address_expired(&mut self, now: Instant, address: Ipv6Addr) {
        let Some(index) = self.index_of(address) else {
            return;
        };
        self.known[index].on_expired();
        self.on_unusable(now);
    }

    /// The peer answered a request, or SCTP did not take it.
    pub fn handle_answer(&mut self, now: Instant, request: AddressRequest, granted: bool) {
        match request {
            AddressRequest::Add(address) => self.on_add_answered(now, address, granted),
            AddressRequest::SetPrimary(address) => self.on_primary_answered(now, address, granted),
            AddressRequest::Delete(address) => self.on_delete_answered(now, address, granted),
            AddressRequest::Deactivate(address) => self.on_deactivate_answered(now, address, granted),
            AddressRequest::Activate(address) => self.on_activate_answered(now, address, granted),
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
            self.known.iter_mut().for_each(Known::on_delete_timer);
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
        if too_weak || self.radios.iter().any(|r| r.cell() == Some(cell)) {
            return;
        }
        let number = self.number_of(interface);
        if !number.is_some_and(|number| self.radios[number].attach(cell)) {
            return;
        }
        self.tell(now, SigmaEventKind::ObtainStarted { interface, cell });
        self.commands.push_back(Command::StartAttach { interface, cell });
    }

    fn on_down(&mut self, now: Instant, interface: InterfaceId, cell: CellId) {
        let number = self.number_of(interface);
        if !number.is_some_and(|number| self.radios[number].on_down(cell)) {
            return;
        }
        self.tell(now, SigmaEventKind::LinkDown { interface, cell });
        for known in self.known.iter_mut().filter(|k| k.local().interface == interface) {
            known.on_lost();
        }
        if self.missed == Some(cell) {
            self.missed = None;
        }
        self.on_unusable(now);
    }

    /// An address cannot be used any more: forgets, deletes or leaves it.
    fn on_unusable(&mut self, now: Instant) {
        self.known.retain(|k| !k.is_forgotten());
        if let Some(Primary {
            address,
            routed: false,
        }) = self.primary
            && !self.is_usable(address)
        {
            self.primary = None;
            self.route_timer = None;
        }
        let leaves = self.policy.leaves_lost_links();
        if leaves && self.established && !self.serving.is_some_and(|a| self.is_usable(a)) {
            self.leave_dead_link(now);
        }
        self.give_up_addresses();
        if leaves {
            self.delete_obsolete(now);
        }
    }

    /// Tells SCTP which addresses no interface has any more: what was under way from there is to leave from elsewhere at
    /// once, and without any address the association stands still. The policies that emulate a host which goes on
    /// routing over the dead link do so as long as there is another to come.
    fn give_up_addresses(&mut self) {
        let emulates = matches!(
            self.config.when_missed,
            WhenMissed::QueuedAsconf | WhenMissed::RetransmittedAsconf
        );
        let other = self.known.iter().any(Known::is_usable);
        for known in &mut self.known {
            let address = known.address();
            let routed_on = emulates && other && self.serving == Some(address);
            if !routed_on && self.established && known.take_gone() {
                self.commands.push_back(Command::AddressGone { address });
            }
        }
    }

    /// The path to the peer changed its state. If it has failed, what went over it is not acknowledged, and goes from another
    /// address.
    pub fn handle_path_state(&mut self, now: Instant, state: PathState) {
        let failed = matches!(state, PathState::PotentiallyFailed | PathState::Inactive);
        let switches = self.primary.is_some_and(|p| !p.routed);
        if failed
            && self.config.leave_failed_paths
            && self.established
            && !switches
            && let Some(address) = self.ready_address()
        {
            self.switch(now, address);
        }
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
                self.ask_for(now, address, false);
            } else {
                self.switch(now, address);
            }
        } else if let Some(adding) = self
            .known
            .iter()
            .find(|k| k.is_usable() && k.membership() == Membership::Adding)
        {
            // RFC 5061 section 5.3, F1: the ASCONF that adds an address may be sent from it.
            self.commands.push_back(Command::SetRoute {
                address: adding.address(),
            });
        }
    }

    /// The peer knows an address that the host can use.
    fn on_ready(&mut self, now: Instant, local: LocalAddress) {
        let asked = self.primary.is_some_and(|p| p.address == local.address);
        if self.serving == Some(local.address) || asked {
            return;
        }
        let Some(serving) = self
            .serving_cell()
            .filter(|_| self.serving.is_some_and(|a| self.is_preferred(a)))
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
            .position(|k| k.is_usable() && self.cell_of(k.local().interface) == Some(to));
        let Some(index) = target else { return };
        match self.known[index].membership() {
            Membership::Retired => self.add(now, index),
            Membership::Adding => self.queue_primary(now, self.known[index].address()),
            _ => {}
        }
    }

    fn tell(&mut self, time: Instant, kind: SigmaEventKind) {
        self.events.push_back(SigmaEvent { time, kind });
    }
}
