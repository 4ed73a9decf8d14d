//! Associations that are the driver's: it sends and receives on them itself, in the place of an application.

use crate::sctp::AssociationId;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use std::collections::VecDeque;

/// How long after an association has ended the next is opened.
const AGAIN: Duration = Duration::from_secs(1);

/// How a driver comes by associations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DriverRole {
    /// It takes those that peers open.
    Listen,
    /// It opens one as soon as there is an address to open it from, and another one second after that has ended.
    Connect {
        /// Addresses of the peer.
        peer: Vec<Ipv6Addr>,
        /// Port of the peer.
        port: u16,
    },
}

/// What a driver is told of an association of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriverNotice {
    /// It is established.
    Opened,
    /// There may be messages to be received, or room for others to be sent.
    Ready,
    /// The peer began anew: nothing of what was exchanged before is continued.
    Restarted,
    /// It has ended.
    Gone,
}

/// The associations of a driver.
#[derive(Debug)]
pub(in crate::host) struct Driven {
    role: DriverRole,
    associations: Vec<AssociationId>,
    /// When one is to be opened; nothing while there is one.
    opens: Option<Instant>,
    /// At most one of each association says that it is ready.
    notices: VecDeque<(AssociationId, DriverNotice)>,
}

impl Driven {
    pub fn new(role: DriverRole) -> Self {
        Self {
            opens: matches!(role, DriverRole::Connect { .. }).then_some(Instant::ZERO),
            role,
            associations: Vec::new(),
            notices: VecDeque::new(),
        }
    }

    /// Whether it takes what nobody else does.
    pub fn listens(&self) -> bool {
        self.role == DriverRole::Listen
    }

    /// The peer that an association is to be opened with by now.
    pub fn peer_due(&self, now: Instant) -> Option<(&[Ipv6Addr], u16)> {
        match &self.role {
            DriverRole::Connect { peer, port } if self.opens.is_some_and(|at| at <= now) => {
                Some((peer, *port))
            }
            _ => None,
        }
    }

    /// When one is to be opened.
    pub fn opens(&self) -> Option<Instant> {
        self.opens
    }

    /// This one is on its way.
    pub fn opening(&mut self, id: AssociationId) {
        self.opens = None;
        self.associations.push(id);
    }

    /// An association is established. Whether it is the driver's.
    pub fn opened(&mut self, id: AssociationId) -> bool {
        if !self.associations.contains(&id) {
            if !self.listens() {
                return false;
            }
            self.associations.push(id);
        }
        self.note(id, DriverNotice::Opened);
        true
    }

    /// Something happened to an association, which may be another's.
    pub fn note(&mut self, id: AssociationId, notice: DriverNotice) {
        let is_told = notice == DriverNotice::Ready && self.notices.contains(&(id, notice));
        if self.associations.contains(&id) && !is_told {
            self.notices.push_back((id, notice));
        }
    }

    /// An association has ended, which may be another's.
    pub fn gone(&mut self, now: Instant, id: AssociationId) {
        self.note(id, DriverNotice::Gone);
        let before = self.associations.len();
        self.associations.retain(|own| *own != id);
        if self.associations.len() < before && !self.listens() {
            self.opens = Some(now + AGAIN);
        }
    }

    pub fn poll(&mut self) -> Option<(AssociationId, DriverNotice)> {
        self.notices.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_association_that_ended_is_opened_again_after_a_second() {
        let mut driven = Driven::new(DriverRole::Connect {
            peer: vec![Ipv6Addr::LOCALHOST],
            port: 9,
        });
        assert_eq!(
            driven.peer_due(Instant::ZERO),
            Some((&[Ipv6Addr::LOCALHOST][..], 9))
        );
        driven.opening(AssociationId(1));
        assert_eq!(driven.peer_due(Instant::MAX), None);
        assert!(driven.opened(AssociationId(1)));
        driven.note(AssociationId(1), DriverNotice::Ready);
        driven.note(AssociationId(1), DriverNotice::Ready);
        driven.note(AssociationId(2), DriverNotice::Ready);
        let ended = Instant::ZERO + Duration::from_secs(5);
        driven.gone(ended, AssociationId(2));
        assert_eq!(driven.opens(), None, "it was another's");
        driven.gone(ended, AssociationId(1));
        assert_eq!(driven.opens(), Some(ended + AGAIN));
        let told: Vec<_> = core::iter::from_fn(|| driven.poll()).collect();
        assert_eq!(
            told,
            [DriverNotice::Opened, DriverNotice::Ready, DriverNotice::Gone].map(|n| (AssociationId(1), n))
        );
    }

    #[test]
    fn who_does_not_listen_takes_no_association_of_a_peer() {
        let mut driven = Driven::new(DriverRole::Connect {
            peer: vec![Ipv6Addr::LOCALHOST],
            port: 9,
        });
        assert!(!driven.opened(AssociationId(7)));
        assert!(Driven::new(DriverRole::Listen).opened(AssociationId(7)));
    }
}
