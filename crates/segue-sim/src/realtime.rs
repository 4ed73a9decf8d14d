//! A scenario in real time, under the kernels of real hosts: its links, cells, routers, home agents and shims, its address
//! acquisition and layer 2 are what they are in a run; TCP and UDP are whoever's packets come in.
//!
//! ```text
//!   kernel of a host        handle_kernel() | poll_delivery(), poll_change()
//!   ------------------------------------------------------------------------
//!   shim, addresses, layer 2, links, routers                 poll_timeout()
//! ```
//!
//! It does no I/O and reads no clock: its driver hands in the time, counted from the beginning of the run. A driver that is
//! late delivers late, but neither departures nor the arrivals behind are moved by it. What is recorded of senders and
//! receivers has the times at which it really happened, and comes out as of any run.

use crate::build;
pub use crate::network::kernels::{Delivery, KernelChange};
use crate::network::{Network, Node};
use crate::output::{RunOptions, RunOutput};
use crate::recorder::FlowMetrics;
use crate::run::{RunError, conclude};
use crate::scenario::Scenario;
use crate::scenario::model::{ApplicationEntry, ScenarioFile};
use crate::sink::{Sink, SinkError};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_capture::rows::Spill;
use segue_proto::contract::LocalAddress;
use segue_proto::host::DriverNotice;
use segue_proto::sctp::{Association, AssociationId};
use segue_proto::tcp::WindowClamp;
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, ParseError, Payload, mobility};
use std::collections::BTreeMap;

/// The network of a scenario under kernels.
pub struct Realtime<'a> {
    scenario: &'a Scenario,
    seed: u64,
    network: Network,
    /// What holds the kernels to the scenario's greatest window.
    clamp: Option<WindowClamp>,
}

/// A host, as its kernel is to be set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelHost {
    /// Number.
    pub number: u32,
    /// Name.
    pub name: String,
    /// The one address that its transports have, under a shim.
    pub identity: Option<Ipv6Addr>,
    /// Addresses that it has from the beginning.
    pub addresses: Vec<LocalAddress>,
    /// Number of its interfaces.
    pub interfaces: u8,
    /// Longest packet of the kernel's that goes over every way: what a shim adds is taken off.
    pub mtu: u32,
}

/// Who runs an application, and how its ends find each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelApplication {
    /// Number of the host that connects.
    pub client: u32,
    /// Number of the host that is connected to.
    pub server: u32,
    /// Address of the latter.
    pub peer: Ipv6Addr,
    /// Whether data goes from the client to the server.
    pub client_sends: bool,
}

impl<'a> Realtime<'a> {
    /// The network at time zero.
    ///
    /// # Errors
    /// [`RunError::Host`].
    pub fn new(scenario: &'a Scenario, seed: u64, options: &RunOptions) -> Result<Self, RunError> {
        let network = build::network_of(scenario, seed, options, true)?;
        Ok(Self {
            scenario,
            seed,
            network,
            clamp: clamp_of(scenario.file()),
        })
    }

    /// Leaves what the result has a row of in this store, once it can no longer change: memory does not grow with the run. If
    /// the store fails, [`give`](Self::give) and [`finish`](Self::finish) say so.
    pub fn keep_rows_in(&mut self, spill: &Spill) {
        self.network.recorder.connections.keep_in(spill);
    }

    /// The hosts.
    #[must_use]
    pub fn hosts(&self) -> Vec<KernelHost> {
        let s = self.scenario.file();
        let mtu = crate::scenario::tcp::config(s).mtu;
        (0..)
            .zip(&s.host)
            .map(|(number, entry)| {
                let mut host = KernelHost {
                    number,
                    name: entry.name.clone(),
                    identity: None,
                    addresses: Vec::new(),
                    interfaces: 0,
                    mtu,
                };
                let Node::Host(node) = &self.network.nodes[number as usize] else {
                    return host;
                };
                host.interfaces = node.ports.len() as u8;
                host.addresses = node.host.addresses().collect();
                if let Some(shim) = node.host.shim() {
                    host.identity = Some(shim.identity());
                    let peers = s.host.iter().filter(|h| h.name != entry.name);
                    let peers = peers.filter_map(|peer| address_of(s, &peer.name));
                    host.mtu -= peers.map(|peer| shim.overhead(peer)).max().unwrap_or_default();
                }
                host
            })
            .collect()
    }

    /// How the ends of an application of the scenario find each other; nothing if the one that is connected to has no
    /// address that stays.
    #[must_use]
    pub fn application(&self, entry: &ApplicationEntry) -> Option<KernelApplication> {
        let s = self.scenario.file();
        let number = |name: &str| s.host.number(name).map(|n| n as u32);
        let client = build::opener(s, entry);
        let server = build::server(s, entry);
        Some(KernelApplication {
            client: number(client)?,
            server: number(server)?,
            peer: address_of(s, server)?,
            client_sends: *client == entry.from,
        })
    }

    /// The connection of an application of the scenario is that which is opened from this port.
    pub fn opened_from(&mut self, application: usize, port: u16) {
        self.network.opened_from.insert(application, port);
    }

    /// Takes a packet that the kernel of a host sends over one of its interfaces.
    ///
    /// # Errors
    /// If it is not IPv6.
    pub fn handle_kernel(
        &mut self,
        now: Instant,
        host: u32,
        interface: InterfaceId,
        bytes: &Bytes,
    ) -> Result<(), ParseError> {
        self.handle_timeout(now);
        let mut packet = Packet::parse_raw(bytes, ChecksumState::Complete, None)?;
        // shims read it, and only a program has it
        if matches!(&packet.payload, Payload::Raw(raw) if raw.next_header == mobility::NEXT_HEADER) {
            packet = Packet::parse_bytes(bytes.clone())?;
        }
        if let Some(clamp) = &mut self.clamp {
            clamp.handle_packet(&mut packet);
        }
        self.network.send_from_kernel(host, interface, packet);
        Ok(())
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.network.advance_to(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.network.next_time()
    }

    /// The next packet for a kernel. Poll until `None` after every other call.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.network.kernels.as_mut()?.poll_delivery()
    }

    /// How late a packet was that went to a transport of ours, not a kernel's. Poll until `None` after every other call.
    pub fn poll_lateness(&mut self) -> Option<Duration> {
        self.network.kernels.as_mut()?.poll_lateness()
    }

    /// The next change that a kernel is to know of, with the number of its host. Poll until `None` after every other call.
    pub fn poll_change(&mut self) -> Option<(u32, KernelChange)> {
        self.network.kernels.as_mut()?.poll_change()
    }

    /// What the shims of hosts and the home agents of routers have counted, drops by their reason among it: by the name of
    /// the node.
    #[must_use]
    pub fn counters(&self) -> BTreeMap<String, BTreeMap<&'static str, u64>> {
        let names = self.scenario.node_names();
        let of = |node: &Node| match node {
            Node::Host(host) => Some(host.host.shim()?.counters()),
            Node::Router(router) => Some(router.home_agent.as_ref()?.counters()),
        };
        let all = names.into_iter().zip(&self.network.nodes);
        all.filter_map(|(name, node)| Some((name, of(node)?.into_iter().collect())))
            .collect()
    }

    /// What happened to an association that carries connections, with the number of its host. Poll until `None` after every
    /// other call.
    pub fn poll_notice(&mut self) -> Option<(u32, AssociationId, DriverNotice)> {
        self.network.kernels.as_mut()?.poll_notice()
    }

    /// Sends and receives on an association that carries connections, with the time of the network; nothing if there is no
    /// such association.
    pub fn command_association<R>(
        &mut self,
        now: Instant,
        host: u32,
        id: AssociationId,
        act: impl FnOnce(Instant, &mut Association) -> R,
    ) -> Option<R> {
        self.handle_timeout(now);
        self.network.command_association(host, id, act)
    }

    /// Gives `sink` what has been recorded, where that is much.
    ///
    /// # Errors
    /// That the run has to end, and why.
    pub fn give(&mut self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        self.network.recorder.give(sink, false)
    }

    /// Ends the run at `now`: what it came to, as of a run of the simulator.
    ///
    /// # Errors
    /// [`RunError::Sink`].
    pub fn finish(mut self, now: Instant, sink: &mut dyn Sink) -> Result<RunOutput, RunError> {
        self.handle_timeout(now);
        self.network.end = self.network.end.min(now);
        self.network.recorder.give(sink, true)?;
        Ok(conclude(self.scenario, self.seed, self.network)?)
    }
}

/// No kernel offers a greater window than the scenario says: a proxy at each host lowers it. Buffers of kernels are of memory,
/// of which a segment takes more than its data, by how much differs between them.
fn clamp_of(s: &ScenarioFile) -> Option<WindowClamp> {
    let limit = s.tcp.window_clamp.or(s.tcp.receive_buffer)?;
    Some(WindowClamp::for_all(limit.bytes() as u32))
}

/// The flows that are beside others between the same hosts, to or from the same port: of several connections of a program the
/// one that carried most is its data, and the rest says when to begin and to end, over TCP beside datagrams as well. They wait for the program, and a handover
/// does not interrupt them.
pub(crate) fn beside(flows: &[FlowMetrics]) -> Vec<u64> {
    let served = |f: &FlowMetrics| f.destination_port.min(f.source_port);
    let ends = |f: &FlowMetrics| {
        let (a, b) = (f.from.clone(), f.to.clone());
        if a < b { (a, b) } else { (b, a) }
    };
    let is_beside = |f: &&FlowMetrics| {
        flows.iter().any(|other| {
            let more = other.transferred_bytes > f.transferred_bytes;
            let other_connection = (other.source_port, other.destination_port)
                != (f.source_port, f.destination_port)
                && (other.source_port, other.destination_port) != (f.destination_port, f.source_port);
            more && other_connection && served(other) == served(f) && ends(other) == ends(f)
        })
    };
    flows.iter().filter(is_beside).map(|f| f.id).collect()
}

/// The address that others have for a host: its identity, or that of its first wire that stays.
fn address_of(s: &ScenarioFile, host: &str) -> Option<Ipv6Addr> {
    build::shim_identity(s, host).or_else(|| build::address_that_stays(s, host))
}

#[cfg(test)]
mod datagrams;
#[cfg(test)]
mod tests;
