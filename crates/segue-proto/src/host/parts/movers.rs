//! SIGMA on a host: a machine for each of its associations.
//!
//! All of them hear the same of links and addresses, and each moves its own association as if there were no other. What is the
//! host's and not an association's, to attach to a cell and to tell the location manager, is asked for by the first; the trail
//! of the host's handovers is the first one's too, and each association has one of its own. If the first one's association ends, the
//! next is the first. If the first has no address that can be used and another has, the location manager is told of that.

use crate::contract::LinkEvent;
use crate::sctp::AssociationId;
use crate::sigma::{Command, Sigma, SigmaEvent};
use crate::time::Instant;
use core::net::Ipv6Addr;

/// Those of a host. There is always one, which has no association at first.
#[derive(Debug)]
pub(in crate::host) struct Movers {
    first: Sigma,
    association: Option<AssociationId>,
    others: Vec<(AssociationId, Sigma)>,
    /// What the location manager was told of last.
    told: Option<Ipv6Addr>,
    /// Another is the first since.
    changed: bool,
}

impl Movers {
    pub fn new(first: Sigma) -> Self {
        Self {
            first,
            association: None,
            others: Vec::new(),
            told: None,
            changed: false,
        }
    }

    /// The first of them.
    pub fn first(&self) -> &Sigma {
        &self.first
    }

    /// Whether any has an association.
    pub fn have_association(&self) -> bool {
        self.association.is_some()
    }

    /// Tells that of an association something; whether there is one.
    pub fn tell(&mut self, id: AssociationId, what: impl FnOnce(&mut Sigma)) -> bool {
        let other = self.others.iter_mut().find(|(of, _)| *of == id);
        match other {
            Some((_, sigma)) => what(sigma),
            None if self.association == Some(id) => what(&mut self.first),
            None => return false,
        }
        true
    }

    /// Tells every one of them something.
    pub fn tell_all(&mut self, mut what: impl FnMut(&mut Sigma)) {
        what(&mut self.first);
        for (_, sigma) in &mut self.others {
            what(sigma);
        }
    }

    /// All of them hear a beacon. Whether anything comes of it: there is something to be asked for or told, or a timer is
    /// another.
    pub fn hear_beacon(&mut self, now: Instant, beacon: &LinkEvent) -> bool {
        let mut matters = false;
        self.tell_all(|sigma| {
            let before = sigma.poll_timeout();
            sigma.handle_link(now, beacon);
            matters |= !sigma.is_drained() || sigma.poll_timeout() != before;
        });
        matters
    }

    /// An association has just been established: there is one for it, which is told something.
    pub fn begin(&mut self, id: AssociationId, what: impl FnOnce(&mut Sigma)) {
        if self.association.is_none() {
            self.association = Some(id);
        } else {
            self.others.push((id, self.first.for_another()));
        }
        self.tell(id, what);
    }

    /// An association is gone. Whether one of them had it.
    pub fn end(&mut self, now: Instant, id: AssociationId) -> bool {
        if self.association != Some(id) {
            let before = self.others.len();
            self.others.retain(|(of, _)| *of != id);
            return self.others.len() < before;
        }
        if self.others.is_empty() {
            self.association = None;
            self.first.handle_closed(now);
        } else {
            let (id, next) = self.others.remove(0);
            (self.association, self.first) = (Some(id), next);
            self.changed = true;
        }
        true
    }

    /// The next command, and the association that it is about, if it is about one.
    pub fn poll_command(&mut self) -> Option<(Option<AssociationId>, Command)> {
        if let Some(command) = self.first.poll_command() {
            if let Command::UpdateLocation { address } = command {
                self.told = Some(address);
                self.changed = false;
            }
            return Some((self.association, command));
        }
        for (id, sigma) in &mut self.others {
            while let Some(command) = sigma.poll_command() {
                if !matches!(
                    command,
                    Command::StartAttach { .. } | Command::UpdateLocation { .. }
                ) {
                    return Some((Some(*id), command));
                }
            }
        }
        let address = self.reached_elsewhere()?;
        (self.told, self.changed) = (Some(address), false);
        Some((None, Command::UpdateLocation { address }))
    }

    /// Where the host can be reached, if the location manager was told otherwise and the first will not tell it.
    fn reached_elsewhere(&self) -> Option<Ipv6Addr> {
        // told by the one that was the first, or not at all
        self.told?;
        if self.first.can_be_reached() && !self.changed {
            return None;
        }
        let others = self.others.iter().map(|(_, sigma)| sigma);
        let mut all = core::iter::once(&self.first).chain(others);
        let serving = all.find(|sigma| sigma.can_be_reached())?.serving();
        serving.filter(|address| self.told != Some(*address))
    }

    /// The next entry of the first one's trail, with its association if there is one.
    pub fn poll_event(&mut self) -> Option<(Option<AssociationId>, SigmaEvent)> {
        Some((self.association, self.first.poll_event()?))
    }

    /// The next entry of the trail of any other.
    pub fn poll_event_of_others(&mut self) -> Option<(AssociationId, SigmaEvent)> {
        let mut others = self.others.iter_mut();
        others.find_map(|(id, sigma)| Some((*id, sigma.poll_event()?)))
    }

    /// When the first of their timers expires.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let others = self.others.iter().map(|(_, sigma)| sigma);
        let all = core::iter::once(&self.first).chain(others);
        all.filter_map(Sigma::poll_timeout).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{CellId, InterfaceId, LinkEvent, LocalAddress};
    use crate::sctp::AddressRequest;
    use crate::sigma::{Config, Policy, SigmaEventKind};

    const NOW: Instant = Instant::ZERO;
    const IDS: [AssociationId; 3] = [AssociationId(1), AssociationId(2), AssociationId(3)];

    fn local(interface: u8) -> LocalAddress {
        let address = Ipv6Addr::new(0x2001, 0xdb8, u16::from(interface) + 2, 0, 0, 0, 0, 1);
        let interface = InterfaceId(interface);
        LocalAddress { interface, address }
    }

    #[test]
    fn a_beacon_matters_where_a_radio_is_to_attach_to_its_cell() {
        let radios = [InterfaceId(0), InterfaceId(1)];
        let mut movers = Movers::new(Sigma::new(Config::default(), &radios));
        let beacon = |cell| LinkEvent::Beacon {
            interface: InterfaceId(1),
            cell: CellId(cell),
            signal_dbm: -50.0,
        };
        assert!(movers.hear_beacon(NOW, &beacon(3)));
        assert!(movers.poll_command().is_some());
        while movers.poll_event().is_some() {}
        assert!(!movers.hear_beacon(NOW, &beacon(3)), "it is attaching there");
        assert!(!movers.hear_beacon(NOW, &beacon(4)), "that radio is busy");
    }

    fn hear(movers: &mut Movers, interface: u8) {
        let (interface, cell) = (InterfaceId(interface), CellId(u16::from(interface)));
        let signal_dbm = -50.0;
        movers.tell_all(|sigma| {
            sigma.handle_link(
                NOW,
                &LinkEvent::Beacon {
                    interface,
                    cell,
                    signal_dbm,
                },
            );
        });
    }

    fn obtain(movers: &mut Movers, interface: u8) {
        let (there, cell) = (InterfaceId(interface), CellId(u16::from(interface)));
        movers.tell_all(|sigma| {
            sigma.handle_link(
                NOW,
                &LinkEvent::Up {
                    interface: there,
                    cell,
                },
            );
            sigma.handle_address_ready(NOW, local(interface));
        });
    }

    fn commands(movers: &mut Movers) -> Vec<(Option<AssociationId>, Command)> {
        core::iter::from_fn(|| movers.poll_command()).collect()
    }

    /// Two associations over the first interface; the second came when the first had the addresses of both.
    fn two() -> Movers {
        let config = Config {
            policy: Policy::FirstReady,
            ..Config::default()
        };
        let radios = [InterfaceId(0), InterfaceId(1)];
        let mut movers = Movers::new(Sigma::new(config, &radios));
        hear(&mut movers, 0);
        obtain(&mut movers, 0);
        assert!(!movers.have_association());
        for id in [IDS[0], IDS[1]] {
            movers.begin(id, |sigma| {
                sigma.handle_established(NOW, [local(0)], local(0).address);
            });
        }
        let attach = Command::StartAttach {
            interface: InterfaceId(0),
            cell: CellId(0),
        };
        assert_eq!(commands(&mut movers), [(Some(IDS[0]), attach)]);
        movers
    }

    #[test]
    fn each_moves_its_association_and_the_host_attaches_once() {
        let mut movers = two();
        hear(&mut movers, 1);
        obtain(&mut movers, 1);
        let asked = commands(&mut movers);
        let attach = Command::StartAttach {
            interface: InterfaceId(1),
            cell: CellId(1),
        };
        assert_eq!(asked.iter().filter(|(_, command)| *command == attach).count(), 1);
        let about = |id| {
            asked
                .iter()
                .filter(move |(of, command)| *of == Some(id) && *command != attach)
        };
        let first: Vec<Command> = about(IDS[0]).map(|(_, command)| *command).collect();
        assert_eq!(first, [Command::AddAddress(local(1))]);
        assert!(about(IDS[1]).map(|(_, command)| *command).eq(first));
        // the trail is of one, and each has its own
        let is_added = |event: &SigmaEvent| matches!(event.kind, SigmaEventKind::AddSent(_));
        let trail = core::iter::from_fn(|| movers.poll_event());
        let added: Vec<_> = trail.filter(|(_, event)| is_added(event)).collect();
        let [(Some(first), sent)] = added[..] else {
            panic!("{added:?}")
        };
        assert_eq!(first, IDS[0]);
        let others = core::iter::from_fn(|| movers.poll_event_of_others());
        let added: Vec<_> = others.filter(|(_, event)| is_added(event)).collect();
        assert_eq!(added, [(IDS[1], sent)]);
    }

    #[test]
    fn one_that_comes_later_knows_the_addresses_that_there_are() {
        let mut movers = two();
        hear(&mut movers, 1);
        obtain(&mut movers, 1);
        commands(&mut movers);
        movers.begin(IDS[2], |sigma| {
            sigma.handle_established(NOW, [local(0)], local(0).address);
        });
        assert_eq!(
            commands(&mut movers),
            [(Some(IDS[2]), Command::AddAddress(local(1)))]
        );
    }

    /// Everything that is asked of the peers of these is granted, until nothing is asked. What the host is asked for.
    fn grant(movers: &mut Movers, granting: &[AssociationId]) -> Vec<Command> {
        let mut of_host = Vec::new();
        while let Some((id, command)) = movers.poll_command() {
            let request = match command {
                Command::AddAddress(local) => AddressRequest::Add(local.address),
                Command::SetPrimary { address } => AddressRequest::SetPrimary(address),
                Command::UpdateLocation { .. } => {
                    of_host.push(command);
                    continue;
                }
                _ => continue,
            };
            let granted = id.is_some_and(|id| granting.contains(&id));
            movers.tell(id.unwrap(), |sigma| sigma.handle_answer(NOW, request, granted));
        }
        of_host
    }

    #[test]
    fn the_location_manager_knows_where_one_of_them_is_reached() {
        let moved = Command::UpdateLocation {
            address: local(1).address,
        };
        // both move, and the first tells
        let mut movers = two();
        hear(&mut movers, 1);
        obtain(&mut movers, 1);
        assert_eq!(grant(&mut movers, &IDS), [moved]);
        // the peer of the first refuses, and the address that it stays at is lost
        let mut movers = two();
        movers.told = Some(local(0).address);
        hear(&mut movers, 1);
        obtain(&mut movers, 1);
        assert_eq!(grant(&mut movers, &IDS[1..]), []);
        movers.tell_all(|sigma| sigma.handle_address_lost(NOW, local(0).address));
        assert_eq!(grant(&mut movers, &IDS[1..]), [moved]);
        assert_eq!(grant(&mut movers, &IDS[1..]), []);
        // the same, and its association ends
        let mut movers = two();
        movers.told = Some(local(0).address);
        hear(&mut movers, 1);
        obtain(&mut movers, 1);
        assert_eq!(grant(&mut movers, &IDS[1..]), []);
        movers.end(NOW, IDS[0]);
        assert_eq!(grant(&mut movers, &IDS[1..]), [moved]);
    }

    #[test]
    fn if_the_first_ends_the_next_is_the_first() {
        let mut movers = two();
        assert!(movers.end(NOW, IDS[0]));
        assert!(!movers.end(NOW, IDS[0]));
        assert!(!movers.tell(IDS[0], |_| panic!("it is gone")));
        assert_eq!(movers.first().serving(), Some(local(0).address));
        hear(&mut movers, 1);
        let attach = Command::StartAttach {
            interface: InterfaceId(1),
            cell: CellId(1),
        };
        assert_eq!(commands(&mut movers), [(Some(IDS[1]), attach)]);
        // the last that ends leaves one without, which goes on looking for cells
        assert!(movers.end(NOW, IDS[1]));
        assert!(!movers.have_association());
        assert_eq!(movers.first().serving(), None);
    }
}
