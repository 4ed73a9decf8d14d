//! Hosts whose TCP and UDP are a kernel's, and the clock they live by: the network is then driven by real time.

use super::{Network, Node};
use crate::recorder::DropCause;
use crate::scheduler::Event;
use segue_proto::contract::LocalAddress;
use segue_proto::host::{DriverNotice, HostEvent};
use segue_proto::sctp::{Association, AssociationId};
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::Packet;
use std::collections::VecDeque;

/// A packet for the kernel of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct Delivery {
    /// Number of the host.
    pub host: u32,
    /// Interface that it came over.
    pub interface: InterfaceId,
    /// When it was due: a driver that is late knows by how much.
    pub due: Instant,
    /// The packet.
    pub packet: Packet,
}

/// What the kernel of a host is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelChange {
    /// An address can be used from now on.
    AddressReady(LocalAddress),
    /// An address can no longer be used.
    AddressLost(LocalAddress),
    /// An address is for what already uses it.
    AddressDeprecated(LocalAddress),
}

/// What waits for the kernels of hosts.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    deliveries: VecDeque<Delivery>,
    changes: VecDeque<(u32, KernelChange)>,
    notices: VecDeque<(u32, AssociationId, DriverNotice)>,
    /// How late the driver is with what is being done: what receivers get, they get so much later than it was due.
    late: Duration,
    /// How late packets were that went to transports of ours.
    own: Vec<Duration>,
}

impl Kernels {
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    pub fn poll_change(&mut self) -> Option<(u32, KernelChange)> {
        self.changes.pop_front()
    }

    pub fn poll_notice(&mut self) -> Option<(u32, AssociationId, DriverNotice)> {
        self.notices.pop_front()
    }

    pub fn poll_lateness(&mut self) -> Option<Duration> {
        self.own.pop()
    }

    pub fn took_own(&mut self) {
        self.own.push(self.late);
    }

    /// When that which is due at `due` really reaches its host.
    pub fn really(&self, due: Instant) -> Instant {
        due + self.late
    }
}

impl Network {
    /// When something is due next.
    pub fn next_time(&mut self) -> Option<Instant> {
        self.scheduler.next_time()
    }

    /// Does everything that is due at `now` or was before, each at its own time.
    pub fn advance_to(&mut self, now: Instant) {
        while let Some((at, event)) = self.scheduler.pop_until(now) {
            self.go_on_to(at);
            if let Some(kernels) = &mut self.kernels {
                kernels.late = now.since(at);
            }
            match event {
                Event::LinkArrival(link) => self.link_arrival(link),
                event => self.dispatch(event),
            }
        }
        if let Some(kernels) = &mut self.kernels {
            kernels.late = Duration::ZERO;
        }
        self.go_on_to(now.max(self.now));
    }

    /// The kernel of a host sends a packet over an interface. Everything that was due before is to be done.
    ///
    /// An attacker's goes out as it is. From an address that is gone it goes nowhere, as a packet of a simulated host does: it was sent, and is lost.
    pub fn send_from_kernel(&mut self, node: u32, interface: InterfaceId, packet: Packet) {
        let now = self.now;
        let Node::Host(host) = &mut self.nodes[node as usize] else {
            return;
        };
        if host.spoofs {
            *self.store.vacancy() = packet;
            self.send_from_host(node, interface.into());
            return;
        }
        if let Some(refused) = host.host.send_from_kernel(now, interface, packet) {
            let refused = self.store.insert(refused);
            let stored = self.store.get_mut(refused);
            stored.entries = self.recorder.sent(now, node, interface.into(), stored, None);
            self.drop_packet(refused, node, DropCause::NoLink);
            return;
        }
        self.service_host(node);
    }

    /// What a host has for its kernel waits for the driver.
    #[cold]
    pub(super) fn collect_for_kernel(&mut self, node: u32) {
        let (Node::Host(host), Some(kernels)) = (&mut self.nodes[node as usize], &mut self.kernels) else {
            return;
        };
        while let Some((interface, packet)) = host.host.poll_kernel() {
            kernels.deliveries.push_back(Delivery {
                host: node,
                interface,
                due: self.now,
                packet,
            });
        }
        while let Some((id, notice)) = host.host.poll_driver() {
            let notice = (node, id, notice);
            if !kernels.notices.contains(&notice) {
                kernels.notices.push_back(notice);
            }
        }
    }

    /// Whoever drives the network sends and receives on an association of its own.
    pub fn command_association<R>(
        &mut self,
        node: u32,
        id: AssociationId,
        act: impl FnOnce(Instant, &mut Association) -> R,
    ) -> Option<R> {
        let now = self.now;
        let Node::Host(host) = &mut self.nodes[node as usize] else {
            return None;
        };
        let result = host
            .host
            .command_association(now, id, |association| act(now, association));
        self.service_host(node);
        result
    }

    /// A host reports what its kernel is to know.
    pub(super) fn tell_kernel_of(&mut self, node: u32, event: &HostEvent) {
        let change = match *event {
            HostEvent::AddressReady(local) => KernelChange::AddressReady(local),
            HostEvent::AddressLost(local) => KernelChange::AddressLost(local),
            HostEvent::AddressDeprecated(local) => KernelChange::AddressDeprecated(local),
            _ => return,
        };
        self.tell_kernel(node, change);
    }

    fn tell_kernel(&mut self, node: u32, change: KernelChange) {
        if let Some(kernels) = &mut self.kernels {
            kernels.changes.push_back((node, change));
        }
    }
}
