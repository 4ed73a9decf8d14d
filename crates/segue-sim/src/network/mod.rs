//! The network at work: nodes, links and cells, and the loop that moves packets and time.

pub(crate) mod bearers;
pub(crate) mod cells;
pub(crate) mod directory;
pub(crate) mod errors;
pub(crate) mod forgeries;
pub(crate) mod ground;
mod home_agents;
pub(crate) mod hosts;
pub(crate) mod kernels;
pub(crate) mod link_script;
pub(crate) mod neighbors;
mod priority;
mod processing;
pub(crate) mod readdressing;
pub(crate) mod routers;
pub(crate) mod routes;
pub(crate) mod sharing;
pub(crate) mod walks;

use crate::link::{Fate, Link};
use crate::radio::Channel;
use crate::recorder::{DropCause, Recorder};
use crate::run::RunError;
use crate::scenario::model::Wire;
use crate::scheduler::{Event, Scheduler};
use crate::sink::Sink;
use crate::store::{PacketRef, PacketStore};
use crate::warnings::Notes;
use cells::{Attachment, Cell, Place};
use core::hint::cold_path;
use core::ops::Range;
use ground::Ground;
use hosts::HostNode;
use routers::RouterNode;
use segue_proto::random::Stream;
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::Packet;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use walks::Way;

/// A node of the network.
pub(crate) enum Node {
    /// A host.
    Host(Box<HostNode>),
    /// A router.
    Router(Box<RouterNode>),
}

/// A host that moves.
pub(crate) struct Mover {
    pub node: u32,
    pub way: Way,
    /// Its radios, by their numbers among [`Network::attachments`].
    pub radios: Range<u32>,
}

/// Where a link ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkEnd {
    /// Node.
    pub node: u32,
    /// Its interface, if it is a host.
    pub interface: InterfaceId,
}

/// A whole network and its state.
pub(crate) struct Network {
    pub now: Instant,
    pub end: Instant,
    pub wire: Wire,
    pub scheduler: Scheduler,
    pub store: PacketStore,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    pub link_ends: Vec<LinkEnd>,
    pub channels: Vec<Channel>,
    /// Who a channel's stations are.
    pub stations: cells::Stations,
    pub cells: Vec<Cell>,
    pub neighbors: neighbors::Neighbors,
    pub attachments: Vec<Attachment>,
    /// Links that stations have to themselves.
    pub bearers: bearers::Bearers,
    /// Of each cell, what they share, if they do.
    pub shared_cells: Vec<Option<sharing::SharedCell>>,
    /// The hosts that move.
    pub movers: Vec<Mover>,
    /// Those on ways that are known from the beginning, in order.
    pub places: Vec<Place>,
    /// The cells, to those whose way is drawn.
    pub ground: Ground,
    pub directory: directory::Directory,
    pub forgeries: Vec<forgeries::Forgery>,
    /// When links go down and come up, in order.
    pub link_script: Vec<link_script::Change>,
    /// When prefixes of cells and addresses of hosts change, in order.
    pub readdressing: Vec<readdressing::Readdressing>,
    /// Signalling goes before data in every queue.
    pub signalling_priority: bool,
    pub sample_period: Option<Duration>,
    pub corruption: Stream,
    pub recorder: Recorder,
    /// Where TCP and UDP are, if not in the hosts: the network then lives by a real clock.
    pub kernels: Option<Box<kernels::Kernels>>,
    /// By the number of an application whose transport is a kernel's: the port that its connection is opened from.
    pub opened_from: BTreeMap<usize, u16>,
    /// What there may be to warn of.
    pub notes: Notes,
    /// Memory of the radio's outcomes, kept to be used again.
    pub outcomes: Vec<crate::radio::Outcome>,
    /// Memory of an emitted packet, kept to be used again.
    pub bytes: Vec<u8>,
}

/// Events between two looks at the cancel flag and at what waits for the sink.
const CANCEL_INTERVAL: u32 = 4096;

impl Network {
    /// Runs to the end. What is recorded goes to `sink` meanwhile.
    pub fn run(&mut self, cancel: Option<&AtomicBool>, sink: &mut dyn Sink) -> Result<(), RunError> {
        let mut countdown = CANCEL_INTERVAL;
        loop {
            // nearly every event
            if let Some((now, link)) = self.scheduler.pop_arrival_until(self.end) {
                self.go_on_to(now);
                self.link_arrival(link);
            } else if let Some((now, event)) = self.scheduler.pop_other_until(self.end) {
                self.go_on_to(now);
                self.dispatch(event);
            } else {
                break;
            }
            countdown -= 1;
            if countdown == 0 {
                cold_path();
                countdown = CANCEL_INTERVAL;
                if cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
                    return Err(RunError::Cancelled);
                }
                self.recorder.give(sink, false)?;
            }
        }
        self.now = self.end;
        self.recorder.give(sink, true)?;
        Ok(())
    }

    #[inline]
    fn go_on_to(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time never goes back");
        self.now = now;
    }

    /// A part of the loop, since nearly every event is one.
    #[inline(always)]
    fn link_arrival(&mut self, link: u32) {
        let arrival = self.links[link as usize].on_arrival(&mut self.scheduler);
        self.arrive_by_link(link, arrival.packet, arrival.fate);
    }

    #[inline(never)]
    fn dispatch(&mut self, event: Event) {
        match event {
            Event::LinkArrival(_) => unreachable!("the loop sees to them"),
            Event::LooseArrival { link, packet, fate } => self.arrive_by_link(link, PacketRef(packet), fate),
            Event::LinkDeparture { link, generation } => {
                let store = &mut self.store;
                let copy = |packet| store.duplicate(packet);
                self.links[link as usize].on_departure(self.now, generation, &mut self.scheduler, copy);
            }
            Event::NodeTimer { node, generation } => self.node_timer(node, generation),
            Event::Channel { channel, generation } => self.channel_event(channel, generation),
            Event::CellTurn {
                direction,
                generation,
            } => self.cell_turn(direction, generation),
            Event::Beacon(cell) => self.beacon_due(cell),
            Event::AttachmentTimer {
                attachment,
                generation,
            } => self.attachment_timer(attachment, generation),
            Event::Waypoint(place) => self.place_reached(place as usize),
            Event::Walk(mover) => self.walk(mover),
            Event::PositionSample => self.sample_position(),
            Event::Directory => self.directory_due(),
            Event::Processed(node) => self.processed(node),
            Event::LinkScript(number) => self.link_script_due(number as usize),
            Event::Readdressing(number) => self.readdressing_due(number as usize),
            Event::Forgery(number) => self.forgery_due(number),
            Event::Start(node) => self.start_node(node),
        }
    }

    /// Puts a packet on a link, or drops it.
    #[inline(always)]
    pub fn send_on_link(&mut self, link: u32, packet: PacketRef) {
        let length = self.store.get(packet).length;
        self.send_bytes_on_link(link, packet, length);
    }

    /// The same for a packet whose length is at hand.
    #[inline(always)]
    fn send_bytes_on_link(&mut self, link: u32, packet: PacketRef, length: u32) {
        let urgent = self.is_urgent(packet);
        let wire = &mut self.links[link as usize];
        if wire.is_down() || wire.mtu().is_some_and(|mtu| length > mtu) {
            return self.refuse_to_send(link, packet, length);
        }
        let store = &mut self.store;
        let copy = || store.duplicate(packet);
        if !wire.enqueue_as(self.now, packet, length, urgent, &mut self.scheduler, copy) {
            self.drop_before_link(link, packet, DropCause::QueueFull);
        }
    }

    /// A link takes no packet, or none so long.
    #[cold]
    fn refuse_to_send(&mut self, link: u32, packet: PacketRef, length: u32) {
        match self.links[link as usize].mtu() {
            Some(mtu) if length > mtu => {
                let node = self.link_ends[link as usize ^ 1].node;
                self.drop_too_big(packet, node, mtu);
            }
            _ => self.drop_before_link(link, packet, DropCause::LinkDown),
        }
    }

    /// The drop is the business of the node that was to send: the other end of this link's other half.
    #[cold]
    fn drop_before_link(&mut self, link: u32, packet: PacketRef, cause: DropCause) {
        let node = self.link_ends[link as usize ^ 1].node;
        self.drop_packet(packet, node, cause);
    }

    #[inline(always)]
    fn arrive_by_link(&mut self, link: u32, packet: PacketRef, fate: Fate) {
        // nearly every packet: as it was sent, and by a wire
        if fate != Fate::Arrives || self.bearers.of_link(link).is_some() {
            cold_path();
            return self.arrive_otherwise(link, packet, fate);
        }
        let end = self.link_ends[link as usize];
        self.cross_hop(packet, end.node, end.interface);
    }

    #[inline(never)]
    fn arrive_otherwise(&mut self, link: u32, packet: PacketRef, fate: Fate) {
        let end = self.link_ends[link as usize];
        match fate {
            Fate::Lost => return self.drop_packet(packet, end.node, DropCause::RandomLoss),
            Fate::Corrupted => self.corrupt(packet),
            Fate::Arrives | Fate::Repeated => {}
        }
        if !self.take_from_bearer(link, packet) {
            return self.drop_packet(packet, end.node, DropCause::OutOfReach);
        }
        self.deliver(packet, end.node, end.interface);
    }

    /// A packet has crossed a hop to `node`: through the wire, then to whoever the node is.
    #[inline(never)]
    pub fn deliver(&mut self, packet: PacketRef, node: u32, interface: InterfaceId) {
        self.cross_hop(packet, node, interface);
    }

    /// [`Self::deliver`] as a part of its caller: a hop over a link is one function from the arrival to the next link's
    /// queue, since what it does is little more than calls of its parts would cost.
    #[inline(always)]
    fn cross_hop(&mut self, packet: PacketRef, node: u32, interface: InterfaceId) {
        if self.wire == Wire::Exact {
            self.through_bytes(packet);
        }
        let stored = self.store.get_mut(packet);
        self.recorder.hop(self.now, node, stored);
        if stored.corrupted {
            return self.drop_packet(packet, node, DropCause::Corrupted);
        }
        let Node::Router(router) = &self.nodes[node as usize] else {
            return self.give_to_host(packet, node, interface);
        };
        // nearly every packet just goes on over the next link
        let ip = &mut stored.packet.ip;
        match router.plain_link(ip.destination) {
            Some(link) if ip.hop_limit > 1 => {
                ip.hop_limit -= 1;
                let length = stored.length;
                self.send_bytes_on_link(link, packet, length);
            }
            _ => {
                cold_path();
                self.forward(packet, node);
            }
        }
    }

    /// Takes a packet out of the network for good.
    #[cold]
    pub fn drop_packet(&mut self, packet: PacketRef, node: u32, cause: DropCause) {
        let stored = self.store.take(packet);
        self.recorder.dropped(self.now, node, &stored, cause);
    }

    #[cold]
    fn corrupt(&mut self, packet: PacketRef) {
        self.store.get_mut(packet).corrupted = true;
    }

    /// Emits the packet with real checksums, parses it, and goes on with what was parsed. A corrupted packet has one
    /// bit flipped behind its IPv6 header, and what must then refuse it is the parser.
    ///
    /// # Panics
    /// If an intact packet does not parse, or a corrupted one does: a bug of the wire formats.
    #[cold]
    fn through_bytes(&mut self, packet: PacketRef) {
        let mut bytes = core::mem::take(&mut self.bytes);
        bytes.clear();
        let stored = self.store.get_mut(packet);
        stored.packet.emit(&mut bytes);
        assert_eq!(
            bytes.len(),
            stored.length as usize,
            "emitted length of {:?}",
            stored.packet
        );
        if stored.corrupted {
            let bit = 320 + self.corruption.below((bytes.len() as u64 - 40) * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(
                Packet::parse(&bytes).is_err(),
                "bit {bit} flipped and nobody noticed: {:?}",
                stored.packet
            );
        } else {
            let parsed = Packet::parse(&bytes);
            stored.packet = parsed.unwrap_or_else(|e| panic!("{e}: {:?}", stored.packet));
        }
        self.bytes = bytes;
    }

    fn node_timer(&mut self, node: u32, generation: u32) {
        let timer = match &mut self.nodes[node as usize] {
            Node::Host(host) => &mut host.timer,
            Node::Router(router) => &mut router.timer,
        };
        if timer.fired(generation) {
            self.start_node(node);
        }
    }

    /// Gives the node the time: its timer is due, or the run begins.
    fn start_node(&mut self, node: u32) {
        match &self.nodes[node as usize] {
            Node::Host(_) => self.host_timeout(node),
            Node::Router(_) => self.router_timeout(node),
        }
    }

    fn sample_position(&mut self) {
        let Some(period) = self.sample_period else { return };
        for mover in &self.movers {
            let at = mover.way.position(self.now);
            if let Some(tables) = self.recorder.tables() {
                tables.position(self.now, mover.node, at.x, at.y);
            }
        }
        self.scheduler.at(self.now + period, Event::PositionSample);
    }
}

/// A machine's one timer in the scheduler. It is left alone while it fires too early rather than moved with every
/// packet: a machine that is asked too early does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LazyTimer {
    armed: Option<Instant>,
    generation: u32,
}

impl LazyTimer {
    /// Makes sure that an event comes no later than `wanted`; `event` makes it from its generation.
    pub fn arm(
        &mut self,
        wanted: Option<Instant>,
        now: Instant,
        scheduler: &mut Scheduler,
        event: impl FnOnce(u32) -> Event,
    ) {
        let Some(wanted) = wanted else { return };
        let wanted = wanted.max(now);
        if self.armed.is_some_and(|armed| armed <= wanted) || wanted == Instant::MAX {
            return;
        }
        self.armed = Some(wanted);
        self.generation = self.generation.wrapping_add(1);
        scheduler.at(wanted, event(self.generation));
    }

    /// The event of `generation` fired: whether it is the armed one, which is spent by this.
    pub fn fired(&mut self, generation: u32) -> bool {
        if generation != self.generation {
            return false;
        }
        self.armed = None;
        true
    }
}
