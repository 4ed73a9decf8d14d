//! How the parts of a host pass events to each other.

use super::event::HostEvent;
use super::notice::Notice;
use super::parts::movers::Movers;
use super::{Connected, Connecting, DriverNotice, Host};
use crate::app;
use crate::sctp::{AddressChange, Association, AssociationId, Event};
use crate::sigma::{Command, Sigma};
use crate::time::{Duration, Instant};
use smallvec::SmallVec;

/// Rounds in which the parts must come to rest. A handover takes two or three.
const MAX_ROUNDS: usize = 64;

impl Host {
    /// Passes events and commands between the parts until there are none. Whether there were any.
    #[inline(always)]
    pub(super) fn settle(&mut self, now: Instant) -> bool {
        // asked for after every packet, and mostly there is nothing
        !self.is_at_rest() && self.settle_parts(now)
    }

    #[inline(never)]
    fn settle_parts(&mut self, now: Instant) -> bool {
        if self.dirty || self.shim.is_some() {
            return self.settle_all(now);
        }
        // most often there is data to be read, and nobody else is concerned
        let mut moved = self.endpoint.has_events() && self.settle_sctp(now);
        if self.tcp.is_some() {
            moved |= self.settle_tcp(now);
        }
        if self.udp.is_some() {
            moved |= self.settle_udp(now);
        }
        (!self.is_at_rest() && self.settle_all(now)) || moved
    }

    /// Events of associations. Whether there were any.
    #[inline(always)]
    fn settle_sctp(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some((id, event)) = self.endpoint.poll_event() {
            moved = true;
            self.on_sctp(now, id, event);
        }
        moved
    }

    /// Whether no part has anything for another. Nothing is known of a shim without asking it.
    #[inline]
    fn is_at_rest(&self) -> bool {
        let tcp = || self.tcp.as_ref().is_some_and(|t| t.has_events());
        let udp = || self.udp.as_ref().is_some_and(|u| u.has_events());
        !self.dirty && self.shim.is_none() && !self.endpoint.has_events() && !tcp() && !udp()
    }

    #[inline(never)]
    fn settle_all(&mut self, now: Instant) -> bool {
        let mut any = false;
        for _ in 0..MAX_ROUNDS {
            let mut moved = self.settle_sctp(now);
            moved |= self.settle_tcp(now);
            moved |= self.settle_udp(now);
            moved |= self.settle_shim(now);
            if self.dirty {
                self.dirty = false;
                moved |= self.settle_slow(now);
                self.update_slow_timeout(Some(now));
            }
            if !moved {
                return any;
            }
            any = true;
        }
        debug_assert!(false, "the parts of a host do not come to rest");
        self.counters.restless += 1;
        any
    }

    /// One round of everything but SCTP's own events.
    #[inline(never)]
    fn settle_slow(&mut self, now: Instant) -> bool {
        let mut moved = false;
        for index in 0..self.interfaces.len() {
            while let Some(event) = self.interfaces.poll_event(index) {
                moved = true;
                self.on_address(now, event);
            }
            while let Some(transmit) = self.interfaces.poll_transmit(index, now) {
                self.transmits.push_back(transmit);
            }
        }
        while let Some((id, command)) = self.sigma.as_mut().and_then(Movers::poll_command) {
            moved = true;
            self.carry_out(now, id, command);
        }
        while let Some((id, event)) = self.sigma.as_mut().and_then(Movers::poll_event) {
            self.events.push_back(HostEvent::Sigma(event));
            self.events.extend(id.map(|id| HostEvent::SigmaOf(id, event)));
        }
        while let Some((id, event)) = self.sigma.as_mut().and_then(Movers::poll_event_of_others) {
            self.events.push_back(HostEvent::SigmaOf(id, event));
        }
        moved |= self.connect_what_is_due(now);
        moved |= self.settle_location(now);
        self.dirty |= moved;
        moved
    }

    /// When the slow parts are due next. Connections that were to begin by `tried` could not yet: what they want will come
    /// as an event, an address or the end of another association with the peer, and no time brings it.
    pub(super) fn update_slow_timeout(&mut self, tried: Option<Instant>) {
        let acquisitions = self.interfaces.poll_timeout();
        let starts = self.applications.next_start(tried).into_iter();
        let driven = self.driver_opens(tried);
        let sigma = self.sigma.as_ref().and_then(Movers::poll_timeout);
        let location = self.location.poll_timeout();
        self.slow_timeout = starts
            .chain(driven)
            .chain(acquisitions)
            .chain(sigma)
            .chain(location)
            .min();
    }

    /// Tells an application what its connection has come to, if it has one.
    pub(super) fn notify(&mut self, now: Instant, index: usize, notice: Notice) {
        let Some(connected) = self.applications.connected(index) else {
            return;
        };
        let (endpoint, tcp, udp) = (&mut self.endpoint, &mut self.tcp, &mut self.udp);
        self.applications.work(index, |application| match connected {
            Connected::Sctp(id) => {
                endpoint.command(id, |association| notice.give(now, application, association));
            }
            Connected::Tcp(id) => {
                if let Some(tcp) = tcp {
                    tcp.command(id, |connection| notice.give(now, application, connection));
                }
            }
            Connected::Udp(id) => {
                if let Some(udp) = udp {
                    udp.command(id, |socket| notice.give(now, application, socket));
                }
            }
        });
        self.tell_of_application(index);
    }

    #[inline]
    pub(super) fn tell_of_application(&mut self, index: usize) {
        let running = self.applications.get(index);
        if running.is_some_and(|running| running.application().has_events()) {
            self.tell_all_of_application(index);
        }
    }

    #[cold]
    fn tell_all_of_application(&mut self, index: usize) {
        while let Some(event) = self
            .applications
            .work(index, |application| application.poll_event())
        {
            self.events.push_back(HostEvent::App {
                application: index,
                event,
            });
        }
    }

    fn application_of(&self, id: AssociationId) -> Option<usize> {
        self.applications.of(Connected::Sctp(id))
    }

    #[inline]
    fn on_sctp(&mut self, now: Instant, id: AssociationId, event: Event) {
        let (Event::Readable | Event::Writable | Event::SendersDry) = event else {
            return self.on_change_of_sctp(now, id, event);
        };
        if let Some(index) = self.application_of(id) {
            let notice = match event {
                Event::Readable => Notice::Readable,
                Event::Writable => Notice::Writable,
                _ => Notice::Dry,
            };
            self.notify(now, index, notice);
        } else {
            self.with_driven(|driven| driven.note(id, DriverNotice::Ready));
        }
    }

    /// An event of an association that is not about its data.
    #[cold]
    fn on_change_of_sctp(&mut self, now: Instant, id: AssociationId, event: Event) {
        match (&event, &mut self.sigma) {
            (Event::Connected, _) => self.on_connected(now, id),
            (Event::AsconfAnswered { results, .. }, Some(movers)) => {
                self.dirty |= movers.tell(id, |sigma| {
                    for result in results {
                        sigma.handle_answer(now, result.request, result.outcome.is_ok());
                    }
                });
            }
            (Event::PathStateChanged { state, .. }, Some(movers)) => {
                self.dirty |= movers.tell(id, |sigma| sigma.handle_path_state(now, *state));
            }
            (Event::Restarted(_), _) => self.on_restarted(now, id),
            (Event::Closed | Event::Lost | Event::Aborted { .. }, _) => self.on_gone(now, id),
            _ => {}
        }
        self.events.push_back(HostEvent::Sctp(id, event));
    }

    #[inline(never)]
    fn on_connected(&mut self, now: Instant, id: AssociationId) {
        let index = match self.application_of(id) {
            Some(index) => Some(index),
            None => self.accept(id),
        };
        let is_driven = index.is_none() && self.with_driven(|driven| driven.opened(id)) == Some(true);
        if let (Some(movers), Some(association)) = (&mut self.sigma, self.endpoint.association(id)) {
            self.dirty = true;
            movers.begin(id, |sigma| establish(now, sigma, association));
        }
        match index {
            Some(index) => self.notify(now, index, Notice::Connected),
            None if is_driven => {}
            None => {
                self.counters.without_application += 1;
                if let Some(association) = self.endpoint.association_mut(id) {
                    association.abort(now, "nobody listens".into());
                }
            }
        }
    }

    /// The peer restarted: the application and SIGMA begin anew.
    #[inline(never)]
    fn on_restarted(&mut self, now: Instant, id: AssociationId) {
        if let (Some(movers), Some(association)) = (&mut self.sigma, self.endpoint.association(id)) {
            self.dirty |= movers.tell(id, |sigma| {
                sigma.handle_closed(now);
                establish(now, sigma, association);
            });
        }
        if let Some(index) = self.application_of(id) {
            self.notify(now, index, Notice::Restarted);
        }
        self.with_driven(|driven| driven.note(id, DriverNotice::Restarted));
    }

    /// The listening application takes the association: its first one itself, for the others there are new ones.
    fn accept(&mut self, id: AssociationId) -> Option<usize> {
        self.accept_for(self.listener.clone(), Connected::Sctp(id))
    }

    pub(super) fn accept_for(
        &mut self,
        listener: Option<(usize, app::Kind)>,
        connected: Connected,
    ) -> Option<usize> {
        let (number, kind) = listener?;
        let connection = Connecting::With(connected);
        let first = self.applications.get(number)?;
        let transport = first.transport();
        if matches!(first.connection(), Connecting::Listening) {
            self.applications.connect(number, connection);
            return Some(number);
        }
        // one whose connection is over serves again, so that a server's memory does not grow with its past
        if let Some(index) = self.applications.to_serve_again(transport) {
            self.applications
                .work(index, |application| application.begin_anew());
            self.applications.connect(index, connection);
            return Some(index);
        }
        Some(self.applications.push(&kind, transport, connection, true))
    }

    #[inline(never)]
    fn on_gone(&mut self, now: Instant, id: AssociationId) {
        if let Some(index) = self.application_of(id) {
            // What arrived before the end is still there to be read.
            self.notify(now, index, Notice::Readable);
            self.applications.connect(index, Connecting::Over);
            self.applications
                .work(index, |application| application.on_closed(now));
            self.tell_of_application(index);
        }
        self.dirty |= self.with_driven(|driven| driven.gone(now, id)).is_some();
        // nobody will ask for what is left
        self.endpoint.forget(id);
        if let Some(movers) = &mut self.sigma {
            self.dirty |= movers.end(now, id);
        }
    }

    fn connect_what_is_due(&mut self, now: Instant) -> bool {
        let mut moved = self.open_for_driver(now);
        for index in self.applications.to_connect() {
            let Some(running) = self.applications.get(index) else {
                continue;
            };
            let Connecting::At { start, peer, port } = running.connection() else {
                continue;
            };
            if *start <= now
                && running.transport() != app::Transport::Sctp
                && let (Some(&peer), port) = (peer.first(), *port)
            {
                moved |= self.connect_one(now, index, peer, port);
            }
        }
        for index in self.applications.to_connect() {
            let Some(running) = self.applications.get(index) else {
                continue;
            };
            let Connecting::At { start, peer, port } = running.connection() else {
                continue;
            };
            if *start > now || running.transport() != app::Transport::Sctp {
                continue;
            }
            if let Some(id) = self.endpoint.connect(now, peer, *port) {
                self.applications
                    .connect(index, Connecting::With(Connected::Sctp(id)));
                moved = true;
            }
        }
        for index in self.applications.to_connect() {
            let due = matches!(
                self.applications.get(index).map(|running| running.connection()),
                Some(Connecting::AtName { start, looking_up: None, .. }) if *start <= now
            );
            if due && !self.addresses.is_empty() {
                let id = self.look_up(now, index);
                moved |= id.is_some();
                self.applications.look_up(index, id, None);
            }
        }
        moved
    }

    /// Carries out a command of SIGMA, about association `id` if it is about one.
    fn carry_out(&mut self, now: Instant, id: Option<AssociationId>, command: Command) {
        let association = id.and_then(|id| self.endpoint.association_mut(id));
        let one = |change| SmallVec::<[AddressChange; 4]>::from_slice(&[change]);
        let changes = match command {
            Command::StartAttach { interface, cell } => {
                self.events.push_back(HostEvent::Attach { interface, cell });
                return;
            }
            Command::UpdateLocation { address } => {
                self.events.push_back(HostEvent::UpdateLocation(address));
                self.tell_location(now, address);
                return;
            }
            Command::SetRoute { address } => {
                let taken = association.is_some_and(|a| a.set_route(now, address).is_ok());
                self.counters.commands_refused += u64::from(!taken);
                return;
            }
            Command::AddressGone { address } => {
                if let Some(association) = association {
                    association.local_address_removed(now, address);
                }
                return;
            }
            Command::AddressBack(local) => {
                if let Some(association) = association {
                    association.local_address_added(now, local);
                }
                return;
            }
            Command::AddAddress(local) => one(AddressChange::Add(local)),
            Command::SetPrimary { address } => one(AddressChange::SetPrimary(address)),
            Command::DeleteAddress { address } => one(AddressChange::Delete(address)),
            Command::DeactivateAddress { address } => one(AddressChange::Deactivate(address)),
            Command::Change(changes) => changes.iter().collect(),
        };
        let taken = association.is_some_and(|a| a.change_addresses(now, &changes).is_ok());
        let t4_rto = self.t4_rto(id);
        self.counters.commands_refused += u64::from(!taken);
        let (Some(movers), Some(id)) = (&mut self.sigma, id) else {
            return;
        };
        movers.tell(id, |sigma| {
            if taken {
                sigma.handle_asconf_sent(now, t4_rto);
                return;
            }
            for change in &changes {
                sigma.handle_answer(now, change.request(), false);
            }
        });
    }

    /// T4-RTO of an ASCONF sent now: the RTO of the path it takes (RFC 5061 section 5.1, A4).
    fn t4_rto(&self, id: Option<AssociationId>) -> Duration {
        id.and_then(|id| self.endpoint.association(id))
            .and_then(|association| association.paths().find(|p| p.primary).map(|p| p.rto))
            .unwrap_or(Duration::from_secs(1))
    }
}

/// Tells SIGMA of its association, which is established, or has begun anew.
fn establish(now: Instant, sigma: &mut Sigma, association: &Association) {
    sigma.set_can_deactivate(association.can_deactivate());
    sigma.handle_established(now, association.local_addresses(), association.route().address);
}
