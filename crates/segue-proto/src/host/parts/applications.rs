//! The applications of a host: found by what they are connected by and by when they are due, so that a server of many peers does
//! not look at all of them for one.

use crate::app::{self, Application, Transport};
use crate::earliest::Earliest;
use crate::location::{LookupId, Name};
use crate::random::Stream;
use crate::sctp::AssociationId;
use crate::tcp::ConnectionId;
use crate::time::Instant;
use crate::udp::SocketId;
use core::net::Ipv6Addr;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// An application, and how far it is.
pub(in crate::host) struct Running {
    application: Application,
    transport: Transport,
    connection: Connecting,
    /// Made for a connection that the listening application accepted.
    accepted: bool,
}

/// How far an application's connection is.
pub(in crate::host) enum Connecting {
    /// Connects at this time.
    At {
        start: Instant,
        peer: Vec<Ipv6Addr>,
        port: u16,
    },
    /// Looks a peer up at this time, and connects to what is found.
    AtName {
        start: Instant,
        name: Name,
        port: u16,
        looking_up: Option<LookupId>,
    },
    /// Waits for a peer.
    Listening,
    /// Has a connection.
    With(Connected),
    /// Had one.
    Over,
}

/// What an application is connected by, established or on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::host) enum Connected {
    Sctp(AssociationId),
    Tcp(ConnectionId),
    Udp(SocketId),
}

impl Running {
    pub fn application(&self) -> &Application {
        &self.application
    }

    pub fn transport(&self) -> Transport {
        self.transport
    }

    pub fn connection(&self) -> &Connecting {
        &self.connection
    }
}

/// All of them: the configured ones first, in their order, then those of further connections of the listening ones.
pub(in crate::host) struct Applications {
    /// The host's seed and name, from which each has a stream of its own.
    seed: u64,
    host: String,
    all: Vec<Running>,
    by_connection: BTreeMap<Connected, usize>,
    /// Numbers of most of them, by the low bits of their connections' names: those come one after the other.
    hints: Vec<usize>,
    /// When each has something to do.
    due: Earliest,
    /// Those that have yet to connect.
    to_connect: BTreeSet<usize>,
    /// Those that were made for a connection, which is over.
    to_serve_again: BTreeSet<usize>,
}

impl Applications {
    /// None yet, on the host of that name.
    pub fn new(seed: u64, host: &str) -> Self {
        Self {
            seed,
            host: host.to_owned(),
            all: Vec::new(),
            by_connection: BTreeMap::new(),
            hints: Vec::new(),
            due: Earliest::default(),
            to_connect: BTreeSet::new(),
            to_serve_again: BTreeSet::new(),
        }
    }

    /// One more. Gives its number.
    pub fn push(
        &mut self,
        kind: &app::Kind,
        transport: Transport,
        connection: Connecting,
        accepted: bool,
    ) -> usize {
        let number = self.all.len();
        let random = || Stream::new(self.seed, &format!("host {} application {number}", self.host));
        self.all.push(Running {
            application: Application::new(kind, random),
            transport,
            connection: Connecting::Over,
            accepted,
        });
        self.connect(number, connection);
        self.work(number, |_| ());
        number
    }

    pub fn get(&self, number: usize) -> Option<&Running> {
        self.all.get(number)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Running> {
        self.all.iter()
    }

    /// The one that has this connection.
    #[inline]
    pub fn of(&self, connection: Connected) -> Option<usize> {
        let hint = self.hints.get(self.hint_place(connection)).copied();
        match hint {
            Some(number) if self.connected(number) == Some(connection) => Some(number),
            _ => self.by_connection.get(&connection).copied(),
        }
    }

    #[inline]
    fn hint_place(&self, connection: Connected) -> usize {
        let name = match connection {
            Connected::Sctp(id) => id.0,
            Connected::Tcp(id) => id.0,
            // its name is its own: those are looked for in the tree
            Connected::Udp(_) => 0,
        };
        name as usize & self.hints.len().wrapping_sub(1)
    }

    /// This is the number of the one with this connection.
    fn note(&mut self, connection: Connected, number: usize) {
        self.by_connection.insert(connection, number);
        if self.hints.len() < self.by_connection.len() {
            self.hints = vec![0; (2 * self.by_connection.len()).next_power_of_two()];
            let places = self.by_connection.iter();
            let places: Vec<_> = places.map(|(c, number)| (self.hint_place(*c), *number)).collect();
            for (place, number) in places {
                self.hints[place] = number;
            }
        }
        let place = self.hint_place(connection);
        self.hints[place] = number;
    }

    /// What it is connected by.
    #[inline]
    pub fn connected(&self, number: usize) -> Option<Connected> {
        match self.all.get(number)?.connection {
            Connecting::With(connected) => Some(connected),
            _ => None,
        }
    }

    /// From now on its connection is this far.
    pub fn connect(&mut self, number: usize, connection: Connecting) {
        let accepted = self.all[number].accepted;
        if let Some(before) = self.connected(number) {
            self.by_connection.remove(&before);
        }
        self.to_connect.remove(&number);
        self.to_serve_again.remove(&number);
        match connection {
            Connecting::With(connected) => {
                self.note(connected, number);
            }
            Connecting::At { .. } | Connecting::AtName { .. } => {
                self.to_connect.insert(number);
            }
            Connecting::Over if accepted => {
                self.to_serve_again.insert(number);
            }
            Connecting::Over | Connecting::Listening => {}
        }
        self.all[number].connection = connection;
    }

    /// Of one that looks its peer up: what it is looking up, and when it begins to.
    pub fn look_up(&mut self, number: usize, id: Option<LookupId>, at: Option<Instant>) {
        if let Connecting::AtName {
            start, looking_up, ..
        } = &mut self.all[number].connection
        {
            *looking_up = id;
            *start = at.unwrap_or(*start);
        }
    }

    /// Those that have yet to connect, in their order.
    pub fn to_connect(&self) -> SmallVec<[usize; 4]> {
        self.to_connect.iter().copied().collect()
    }

    /// When the first of those connects that have yet to, and had not tried by `tried`.
    pub fn next_start(&self, tried: Option<Instant>) -> Option<Instant> {
        let starts = self
            .to_connect
            .iter()
            .filter_map(|&number| match &self.all[number].connection {
                Connecting::At { start, .. }
                | Connecting::AtName {
                    start,
                    looking_up: None,
                    ..
                } if tried.is_none_or(|tried| *start > tried) => Some(*start),
                _ => None,
            });
        starts.min()
    }

    /// One over `transport` whose connection is over, and that was made for it: it can serve another.
    pub fn to_serve_again(&self, transport: Transport) -> Option<usize> {
        let over = |number: &&usize| self.all[**number].transport == transport;
        self.to_serve_again.iter().find(over).copied()
    }

    /// Has an application do something.
    #[inline]
    pub fn work<R>(&mut self, number: usize, act: impl FnOnce(&mut Application) -> R) -> R {
        let running = &mut self.all[number];
        let done = act(&mut running.application);
        self.due.set(number, running.application.poll_timeout());
        done
    }

    /// When the first of them is due.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.first()
    }

    /// Those that are due, by their numbers.
    pub fn due(&self, now: Instant) -> SmallVec<[usize; 4]> {
        self.due.due(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{BitRate, Bytes};

    fn sender() -> app::Kind {
        app::Kind::ConstantRate {
            rate: BitRate::from_bits_per_second(8_000),
            message: Bytes::new(1000),
            total: None,
        }
    }

    #[test]
    fn an_application_is_found_by_its_connection_while_it_has_it() {
        let mut all = Applications::new(1, "host");
        let listens = all.push(&app::Kind::Sink, Transport::Tcp, Connecting::Listening, false);
        let with = |id| Connecting::With(Connected::Tcp(ConnectionId(id)));
        let further = all.push(&app::Kind::Sink, Transport::Tcp, with(7), true);
        all.connect(listens, with(6));
        assert_eq!(all.of(Connected::Tcp(ConnectionId(6))), Some(listens));
        assert_eq!(all.of(Connected::Sctp(AssociationId(6))), None);
        assert_eq!(all.connected(further), Some(Connected::Tcp(ConnectionId(7))));
        for number in [listens, further] {
            all.connect(number, Connecting::Over);
        }
        assert_eq!(all.of(Connected::Tcp(ConnectionId(7))), None);
        assert_eq!(
            all.to_serve_again(Transport::Tcp),
            Some(further),
            "not the configured one"
        );
        assert_eq!(all.to_serve_again(Transport::Sctp), None);
        all.connect(further, with(8));
        assert_eq!(all.to_serve_again(Transport::Tcp), None);
    }

    #[test]
    fn of_many_each_is_found_by_its_connection_alone() {
        let mut all = Applications::new(1, "h");
        let name = |n: usize| match n % 2 {
            0 => Connected::Sctp(AssociationId(n as u64 * 5)),
            _ => Connected::Tcp(ConnectionId(n as u64 * 64)),
        };
        for n in 0..40 {
            let with = Connecting::With(name(n));
            assert_eq!(all.push(&app::Kind::Sink, Transport::Sctp, with, true), n);
        }
        assert!((0..40).all(|n| all.of(name(n)) == Some(n)));
        all.connect(7, Connecting::With(name(101)));
        all.connect(8, Connecting::Over);
        assert_eq!([7, 8, 101].map(|n| all.of(name(n))), [None, None, Some(7)]);
        let others = (0..40).filter(|n| ![7, 8].contains(n));
        assert!(others.into_iter().all(|n| all.of(name(n)) == Some(n)));
    }

    #[test]
    fn those_that_connect_later_are_listed_until_they_do() {
        let mut all = Applications::new(1, "host");
        let at = |s| Connecting::At {
            start: Instant::from_nanos(s),
            peer: Vec::new(),
            port: 9,
        };
        all.push(&sender(), Transport::Udp, at(20), false);
        all.push(&sender(), Transport::Udp, at(10), false);
        assert_eq!(all.next_start(None), Some(Instant::from_nanos(10)));
        assert_eq!(
            all.next_start(Some(Instant::from_nanos(10))),
            Some(Instant::from_nanos(20))
        );
        all.connect(1, Connecting::Over);
        assert_eq!(all.to_connect()[..], [0]);
        assert_eq!(all.next_start(None), Some(Instant::from_nanos(20)));
    }
}
