//! The proxies of the hosts: sockets of the kernel on one side, associations of the network on the other, and
//! [`segue_lab::proxy`] between them.
//!
//! The host whose programs connect has the address of the other on its loopback device, and a listening socket there for each
//! application. The other's proxy connects to the servers, in their namespace.

use super::carrier::{Carrier, keep_most};
use super::host::Host;
use super::plan::server_port;
use crate::app::Reads;
use anyhow::Context as _;
use nix::poll::PollFlags;
use segue_lab::proxy::{Counters, Role};
use segue_live::Namespace;
use segue_proto::Instant;
use segue_proto::host::DriverNotice;
use segue_proto::sctp::AssociationId;
use segue_sim::carried::is_carried;
use segue_sim::realtime::Realtime;
use segue_sim::scenario::Scenario;
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd};

/// The proxies of all hosts that have one.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    /// By the number of the host.
    ends: BTreeMap<u32, End>,
}

/// The proxy of a host.
#[derive(Debug)]
struct End {
    role: Role,
    namespace: Namespace,
    /// Address of the host with the servers.
    server: Ipv6Addr,
    /// With their ports.
    listeners: Vec<(u16, TcpListener)>,
    carriers: BTreeMap<AssociationId, Carrier>,
    /// Of associations that have ended.
    counters: Counters,
    given: BTreeMap<u16, Reads>,
}

/// What a descriptor is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Listener {
        host: u32,
        number: usize,
    },
    Socket {
        host: u32,
        association: AssociationId,
        stream: u16,
    },
}

impl Proxies {
    /// For the applications of the scenario whose connections an association carries. Programs find them there.
    pub(super) fn make(scenario: &Scenario, network: &Realtime<'_>, hosts: &[Host]) -> anyhow::Result<Self> {
        let mut proxies = Self::default();
        let s = scenario.file();
        for (number, a) in s.application.iter().enumerate().filter(|(_, a)| is_carried(s, a)) {
            let Some(ends) = network.application(a) else {
                continue;
            };
            let port = server_port(number);
            let namespace = |host: u32| hosts[host as usize].namespace().clone();
            let end = |role: Role, host: u32| End {
                role,
                namespace: namespace(host),
                server: ends.peer,
                listeners: Vec::new(),
                carriers: BTreeMap::new(),
                counters: Counters::default(),
                given: BTreeMap::new(),
            };
            let server = proxies.ends.entry(ends.server);
            let server = server.or_insert_with(|| end(Role::Accepts(Vec::new()), ends.server));
            if let Role::Accepts(ports) = &mut server.role {
                ports.push(port);
            }
            let client = proxies.ends.entry(ends.client);
            let client = client.or_insert_with(|| end(Role::Opens, ends.client));
            if client.listeners.is_empty() {
                hosts[ends.client as usize].stand_in_for(ends.peer)?;
            }
            let listener = namespace(ends.client)
                .within(|| TcpListener::bind((ends.peer, port)))
                .with_context(|| format!("proxy of application[{number}]: port {port}"))?;
            listener.set_nonblocking(true)?;
            client.listeners.push((port, listener));
        }
        Ok(proxies)
    }

    /// What came to what: by the number of the host.
    pub(super) fn counters(&self) -> impl Iterator<Item = (u32, Counters)> {
        self.ends.iter().map(|(host, end)| (*host, end.counters()))
    }

    /// What the programs of each host were given, by the number of the host and the port of the connection.
    pub(super) fn into_given(self) -> BTreeMap<(u32, u16), Reads> {
        let mut all = BTreeMap::new();
        for (host, mut end) in self.ends {
            for carrier in end.carriers.into_values() {
                for (port, reads) in carrier.into_given() {
                    keep_most(&mut end.given, port, reads);
                }
            }
            all.extend(end.given.into_iter().map(|(port, reads)| ((host, port), reads)));
        }
        all
    }

    /// The descriptors that there is something to be done with, and for what they are waited for.
    pub(super) fn wanted(&self) -> Vec<(Place, BorrowedFd<'_>, PollFlags)> {
        let mut wanted = Vec::new();
        for (&host, end) in &self.ends {
            if end.carriers.values().any(Carrier::can_accept) {
                let listeners = end.listeners.iter().enumerate();
                wanted.extend(listeners.map(|(number, (_, listener))| {
                    (
                        Place::Listener { host, number },
                        listener.as_fd(),
                        PollFlags::POLLIN,
                    )
                }));
            }
            for (&association, carrier) in &end.carriers {
                wanted.extend(carrier.wanted().map(|(stream, socket, flags)| {
                    let place = Place::Socket {
                        host,
                        association,
                        stream,
                    };
                    (place, socket, flags)
                }));
            }
        }
        wanted
    }

    /// A descriptor is ready.
    pub(super) fn handle_ready(&mut self, place: Place) {
        match place {
            Place::Listener { host, number } => {
                if let Some(end) = self.ends.get_mut(&host) {
                    end.accept(number);
                }
            }
            Place::Socket {
                host,
                association,
                stream,
            } => {
                let end = self.ends.get_mut(&host);
                if let Some(carrier) = end.and_then(|end| end.carriers.get_mut(&association)) {
                    carrier.handle_ready(stream);
                }
            }
        }
    }

    /// Moves what there is between sockets and associations.
    pub(super) fn work(&mut self, network: &mut Realtime<'_>, now: Instant) {
        while let Some((host, id, notice)) = network.poll_notice() {
            if let Some(end) = self.ends.get_mut(&host) {
                end.handle_notice(now, id, notice);
            }
        }
        for (&host, end) in &mut self.ends {
            let (namespace, server) = (&end.namespace, end.server);
            for (&id, carrier) in end.carriers.iter_mut().filter(|(_, carrier)| carrier.is_due()) {
                network.command_association(now, host, id, |_, association| carrier.receive(association));
                carrier.work_sockets(now, namespace, server);
                network.command_association(now, host, id, |now, association| carrier.send(now, association));
                carrier.work_sockets(now, namespace, server);
            }
        }
    }
}

impl End {
    fn handle_notice(&mut self, now: Instant, id: AssociationId, notice: DriverNotice) {
        match notice {
            DriverNotice::Opened => {
                self.carriers.insert(id, Carrier::new(self.role.clone()));
            }
            DriverNotice::Ready => {}
            DriverNotice::Restarted => {
                if let Some(carrier) = self.carriers.get_mut(&id) {
                    carrier.lose_all();
                }
            }
            DriverNotice::Gone => {
                if let Some(mut carrier) = self.carriers.remove(&id) {
                    carrier.lose_all();
                    carrier.work_sockets(now, &self.namespace, self.server);
                    self.counters = self.counters + carrier.counters();
                    for (port, reads) in carrier.into_given() {
                        keep_most(&mut self.given, port, reads);
                    }
                }
            }
        }
        if let Some(carrier) = self.carriers.get_mut(&id) {
            carrier.look();
        }
    }

    /// Takes a connection of a program's.
    fn accept(&mut self, number: usize) {
        let Some(carrier) = self.carriers.values_mut().find(|carrier| carrier.can_accept()) else {
            return;
        };
        let (port, listener) = &self.listeners[number];
        // who has gone again is nobody's loss
        if let Ok((socket, _)) = listener.accept() {
            carrier.accept(*port, socket);
        }
    }

    fn counters(&self) -> Counters {
        let now = self.carriers.values().map(Carrier::counters);
        now.fold(self.counters, |all, one| all + one)
    }
}
