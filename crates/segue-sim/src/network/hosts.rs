//! Hosts in the network: the protocol machines of `segue-proto`, drained after every mutation.

use super::{LazyTimer, Network, Node};
use crate::load::Load;
use crate::recorder::flow::Way;
use crate::recorder::fragments::fragment_of;
use crate::recorder::handoffs::Moving;
use crate::recorder::{DropCause, FragmentTaken};
use crate::scheduler::Event;
use crate::store::PacketRef;
use core::hint::cold_path;
use core::net::Ipv6Addr;
use segue_proto::host::{Host, HostEvent};
use segue_proto::sctp::{Association, Event as SctpEvent, PathSnapshot, PathState};
use segue_proto::{Departure, Duration, Instant, InterfaceId, LinkEvent};

/// A host and what it is connected by.
pub(crate) struct HostNode {
    pub host: Host,
    pub ports: Vec<HostPort>,
    pub timer: LazyTimer,
    /// Sends data: its windows are worth tracing.
    pub sends_data: bool,
    /// What its kernel sends goes out as it is.
    pub spoofs: bool,
    /// What comes to it, if that is of interest or takes time.
    pub load: Option<Box<Load>>,
}

/// What an interface is connected by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostPort {
    /// A wire: the link to send on.
    Wire(u32),
    /// A radio: its attachment.
    Radio(u32),
}

impl Network {
    fn host(&mut self, node: u32) -> &mut HostNode {
        match &mut self.nodes[node as usize] {
            Node::Host(host) => host,
            Node::Router(_) => unreachable!("node {node} is a router"),
        }
    }

    /// The packet has arrived at its host.
    #[inline(never)]
    pub fn give_to_host(&mut self, packet: PacketRef, node: u32, interface: InterfaceId) {
        let Node::Host(host) = &mut self.nodes[node as usize] else {
            unreachable!("node {node} is a router")
        };
        if host.load.is_some() {
            cold_path();
            if !self.admits(packet, node, interface) {
                return;
            }
        }
        self.host_takes(packet, node, interface);
    }

    /// The host takes a packet, which may have waited.
    pub(super) fn host_takes(&mut self, packet: PacketRef, node: u32, interface: InterfaceId) {
        let now = self.now;
        let seen = self.seen_at();
        let stored = self.store.get_mut(packet);
        self.recorder
            .received(seen, node, interface, stored.id, stored.length, &stored.packet);
        let Node::Host(host) = &mut self.nodes[node as usize] else {
            unreachable!("node {node} is a router")
        };
        if let Some((identification, _)) = fragment_of(&stored.packet) {
            cold_path();
            self.give_fragment(packet, node, interface, identification);
            return;
        }
        if let Some(kernels) = &mut self.kernels
            && stored.packet.payload.sctp().is_some()
        {
            cold_path();
            kernels.took_own();
        }
        let way = (!stored.entries.is_none()).then(|| Way::of(&stored.packet, interface));
        host.host
            .handle_packet_in_place(now, interface, &mut stored.packet);
        if let Some(way) = way {
            let taken = host.host.took_packet();
            self.recorder
                .connections
                .arrived(seen, node, &way, stored.entries, taken);
        }
        self.store.remove(packet);
        self.service_host(node);
    }

    /// When what happens now is seen by a host: at its time, but for a driver in real time that is late.
    #[inline]
    fn seen_at(&self) -> Instant {
        match &self.kernels {
            None => self.now,
            Some(kernels) => kernels.really(self.now),
        }
    }

    #[inline(never)]
    fn give_fragment(&mut self, packet: PacketRef, node: u32, interface: InterfaceId, identification: u32) {
        let now = self.now;
        let Node::Host(host) = &mut self.nodes[node as usize] else {
            unreachable!("node {node} is a router")
        };
        let host = &mut host.host;
        let before = host.counters();
        let stored = self.store.get_mut(packet);
        let way = Way::of(&stored.packet, interface);
        host.handle_packet_in_place(now, interface, &mut stored.packet);
        let after = host.counters();
        let taken = if after.reassembled > before.reassembled {
            FragmentTaken::Last {
                taken: host.took_packet(),
            }
        } else if after.not_for_us > before.not_for_us {
            FragmentTaken::Stale
        } else {
            FragmentTaken::Waits
        };
        self.recorder
            .fragment_received(now, node, way, identification, taken);
        self.store.remove(packet);
        self.service_host(node);
    }

    /// Something happened on a host's link.
    pub fn give_link_event(&mut self, node: u32, event: LinkEvent) {
        let now = self.now;
        self.host(node).host.handle_link(now, event);
        self.service_host(node);
    }

    /// An interface of a host is to have other addresses than it has.
    pub fn replace_addresses(
        &mut self,
        node: u32,
        interface: InterfaceId,
        identifier: [u8; 8],
        keep: Option<Duration>,
    ) {
        let now = self.now;
        self.host(node)
            .host
            .replace_addresses(now, interface, identifier, keep);
        self.service_host(node);
    }

    /// The directory's answer to a host's shim.
    pub fn give_found(&mut self, node: u32, peer: Ipv6Addr, addresses: &[Ipv6Addr]) {
        let now = self.now;
        self.host(node).host.handle_found(now, peer, addresses);
        self.service_host(node);
    }

    /// A host's timer is due, or the host starts.
    pub fn host_timeout(&mut self, node: u32) {
        let now = self.now;
        self.host(node).host.handle_timeout(now);
        self.service_host(node);
    }

    /// Drains the host: packets, events, then its timer.
    pub(super) fn service_host(&mut self, node: u32) {
        let now = self.now;
        loop {
            let Node::Host(host) = &mut self.nodes[node as usize] else {
                return;
            };
            let host = &mut host.host;
            if let Some(departure) = host.poll_transmit_into(now, self.store.vacancy()) {
                self.send_from_host(node, departure);
                continue;
            }
            let Some(event) = host.poll_event() else {
                break;
            };
            cold_path();
            self.host_event(node, event);
        }
        if self.kernels.is_some() {
            cold_path();
            self.collect_for_kernel(node);
        }
        if self.recorder.tables().is_some() {
            cold_path();
            self.trace_windows(node);
        }
        let Node::Host(host) = &mut self.nodes[node as usize] else {
            return;
        };
        let wanted = host.host.poll_timeout();
        host.timer
            .arm(wanted, now, &mut self.scheduler, |generation| Event::NodeTimer {
                node,
                generation,
            });
    }

    /// A host sends the packet that it has written to the store's vacancy.
    #[inline]
    pub fn send_from_host(&mut self, node: u32, departure: Departure) {
        let packet = self.store.insert_written();
        let stored = self.store.get_mut(packet);
        let fragment = fragment_of(&stored.packet);
        if let Some((identification, 0)) = fragment
            && let Node::Host(host) = &self.nodes[node as usize]
            && let Some(whole) = host.host.fragmented_packet(identification)
        {
            cold_path();
            self.recorder
                .fragmented(self.now, node, departure, identification, whole);
        }
        stored.entries = self
            .recorder
            .sent(self.now, node, departure, stored, fragment.map(|f| f.0));
        let source = self.store.get(packet).packet.ip.source;
        let host = self.host(node);
        if host.host.has_expired(source) && !host.spoofs {
            cold_path();
            return self.drop_packet(packet, node, DropCause::NoLink);
        }
        match host.ports[usize::from(departure.interface.0)] {
            HostPort::Wire(link) => self.send_on_link(link, packet),
            HostPort::Radio(attachment) => {
                cold_path();
                self.send_from_station(attachment, packet);
            }
        }
    }

    #[inline(never)]
    fn host_event(&mut self, node: u32, event: HostEvent) {
        if let HostEvent::SigmaOf(id, event) = &event {
            let association = self.host(node).host.endpoint().association(*id);
            let tags =
                association.and_then(|own| Some((own.own_verification_tag(), own.peer_verification_tag()?)));
            return self
                .recorder
                .association_moves(node, Moving { id: *id, tags }, event);
        }
        self.recorder.host_event(self.now, node, &event);
        self.tell_kernel_of(node, &event);
        match event {
            HostEvent::Sctp(id, SctpEvent::PrimaryChanged(path)) => {
                let association = self.host(node).host.endpoint().association(id);
                if let Some(tag) = association.and_then(Association::peer_verification_tag) {
                    self.recorder.connections.primary_changed(node, tag, path);
                }
            }
            HostEvent::Attach { interface, cell } => {
                if let HostPort::Radio(attachment) = self.host(node).ports[interface.0 as usize] {
                    self.attach(attachment, cell);
                }
            }
            HostEvent::AddressReady(local) => self.learn_neighbor(node, local, true),
            HostEvent::AddressLost(local) => self.learn_neighbor(node, local, false),
            HostEvent::Shim(event) => {
                self.notes.shim_event(self.now, node, &event);
                self.ask_directory(node, &event);
            }
            _ => {}
        }
    }

    #[inline(never)]
    fn trace_windows(&mut self, node: u32) {
        let Node::Host(host) = &self.nodes[node as usize] else {
            return;
        };
        if !host.sends_data {
            return;
        }
        let Some(tables) = self.recorder.tables() else {
            return;
        };
        for (_, association) in host.host.endpoint().associations() {
            let Some(peer_tag) = association.peer_verification_tag() else {
                continue;
            };
            for path in association.paths() {
                tables.association_window(self.now, node, peer_tag, &path);
            }
        }
        for (_, connection) in host.host.tcp().into_iter().flat_map(|t| t.connections()) {
            let s = connection.snapshot();
            let path = PathSnapshot {
                source: connection.local().address,
                destination: connection.remote().0,
                primary: true,
                state: PathState::Active,
                cwnd: s.cwnd,
                ssthresh: s.ssthresh,
                flightsize: s.flightsize,
                srtt: s.srtt,
                rto: s.rto,
                error_count: 0,
            };
            tables.connection_window(
                self.now,
                node,
                [connection.local_port(), connection.remote().1],
                &path,
            );
        }
    }
}
