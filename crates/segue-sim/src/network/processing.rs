//! Packets that wait for a node that takes time for them.

use super::{Network, Node};
use crate::load::{Admission, Load, NodeLoad};
use crate::recorder::DropCause;
use crate::scheduler::Event;
use crate::store::PacketRef;
use segue_proto::InterfaceId;

impl Network {
    /// A packet has come to a node whose load is of interest. Whether the node takes it now; if not, it waits, or there was no
    /// room for it.
    #[cold]
    pub(super) fn admits(&mut self, packet: PacketRef, node: u32, interface: InterfaceId) -> bool {
        let now = self.now;
        let stored = self.store.get(packet);
        let Some(load) = load_of(&mut self.nodes[node as usize]) else {
            return true;
        };
        match load.arrives(now, (packet, interface), &stored.packet, stored.length) {
            Admission::Now => true,
            Admission::Waits => false,
            Admission::Until(at) => {
                self.scheduler.at(at, Event::Processed(node));
                false
            }
            Admission::Full => {
                self.drop_packet(packet, node, DropCause::Overload);
                false
            }
        }
    }

    /// A node has worked off a packet: it takes it.
    pub(super) fn processed(&mut self, node: u32) {
        let Some(load) = load_of(&mut self.nodes[node as usize]) else {
            return;
        };
        let Some((packet, interface, next)) = load.worked_off(self.now) else {
            return;
        };
        if let Some(at) = next {
            self.scheduler.at(at, Event::Processed(node));
        }
        match &self.nodes[node as usize] {
            Node::Host(_) => self.host_takes(packet, node, interface),
            Node::Router(_) => self.home_agent_takes(packet, node),
        }
    }

    /// What came to the nodes whose load is of interest.
    pub(crate) fn loads(&self, names: &[String]) -> Vec<NodeLoad> {
        let loads = self.nodes.iter().zip(names).filter_map(|(node, name)| {
            let load = match node {
                Node::Host(host) => host.load.as_deref(),
                Node::Router(router) => router.load.as_deref(),
            };
            Some(load?.report(name.clone(), self.end))
        });
        loads.collect()
    }
}

fn load_of(node: &mut Node) -> Option<&mut Load> {
    match node {
        Node::Host(host) => host.load.as_deref_mut(),
        Node::Router(router) => router.load.as_deref_mut(),
    }
}
