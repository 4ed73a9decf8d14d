//! Cells, the radios attached to them, and the places of the trajectory where reach changes.

use super::hosts::HostPort;
use super::{LazyTimer, Network, Node};
use crate::mobility::Point;
use crate::radio::{Frame, Outcome, StationId};
use crate::recorder::DropCause;
use crate::scenario::technology::Technology;
use crate::scheduler::Event;
use crate::store::PacketRef;
use core::net::Ipv6Addr;
use segue_proto::contract::LocalAddress;
use segue_proto::l2::{L2Event, Layer2, State};
use segue_proto::{CellId, Duration, Instant, InterfaceId, LinkEvent};
use smallvec::SmallVec;

/// A radio cell.
pub(crate) struct Cell {
    pub router: u32,
    /// Its radio channel; nothing where stations have bearers.
    pub medium: Option<Medium>,
    pub technology: Option<Technology>,
    pub position: Point,
    pub radius: f64,
    pub beacon_period: Duration,
    pub beacon_length: u32,
    /// The moving hosts within reach, by their numbers among [`Network::movers`], lowest first.
    pub reached_by: SmallVec<[u32; 4]>,
}

/// A cell's place on a radio channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medium {
    pub channel: u32,
    /// The access point.
    pub station: StationId,
}

impl Cell {
    pub fn is_reached_by(&self, mover: u32) -> bool {
        self.reached_by.binary_search(&mover).is_ok()
    }

    fn enter(&mut self, mover: u32) {
        if let Err(at) = self.reached_by.binary_search(&mover) {
            self.reached_by.insert(at, mover);
        }
    }

    fn leave(&mut self, mover: u32) {
        if let Ok(at) = self.reached_by.binary_search(&mover) {
            self.reached_by.remove(at);
        }
    }
}

/// A radio interface of a mobile host.
pub(crate) struct Attachment {
    pub node: u32,
    /// Number of the host among those that move.
    pub mover: u32,
    pub interface: InterfaceId,
    /// Of the cells that it hears; nothing for all.
    pub technology: Option<Technology>,
    pub layer2: Layer2,
    pub timer: LazyTimer,
}

/// Whose station it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// The access point of a cell.
    Cell(u32),
    /// An attachment.
    Attachment(u32),
}

/// Who the stations of channels are: the access points of the cells that share one, in the order of the file, then every radio, by
/// its number.
#[derive(Debug)]
pub(crate) struct Stations {
    /// Of each channel, its cells.
    cells: Vec<Vec<u32>>,
}

impl Stations {
    /// Of so many channels, without a cell.
    pub fn of_channels(channels: usize) -> Self {
        Self {
            cells: vec![Vec::new(); channels],
        }
    }

    /// One more cell on a channel.
    pub fn add_cell(&mut self, channel: u32, cell: u32) -> StationId {
        let cells = &mut self.cells[channel as usize];
        cells.push(cell);
        StationId(cells.len() as u32 - 1)
    }

    /// The station of a radio on a channel.
    pub fn of_attachment(&self, channel: u32, attachment: u32) -> StationId {
        StationId(self.cells[channel as usize].len() as u32 + attachment)
    }

    fn owner(&self, channel: u32, station: StationId) -> Owner {
        let cells = &self.cells[channel as usize];
        match cells.get(station.0 as usize) {
            Some(&cell) => Owner::Cell(cell),
            None => Owner::Attachment(station.0 - cells.len() as u32),
        }
    }
}

/// A moment of the trajectory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Place {
    pub time: Instant,
    /// Whose way it is on.
    pub mover: u32,
    pub kind: PlaceKind,
}

/// What happens there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum PlaceKind {
    /// The host enters the reach of a cell.
    Enters(u32),
    /// The host leaves it.
    Leaves(u32),
    /// The host will leave it after this time.
    WillLeave(u32, Duration),
    /// The host has come this far across the overlap of two cells.
    Overlap { from: u32, to: u32, fraction: f64 },
    /// The host is told the plan: one cell serves in the place of the other after this time.
    Planned {
        from: u32,
        to: u32,
        /// Of the cell's link.
        prefix: Ipv6Addr,
        after: Duration,
    },
}

impl PlaceKind {
    /// Entering comes before leaving at the same moment: cells that touch leave no gap.
    pub fn order(self) -> u8 {
        match self {
            Self::Enters(_) => 0,
            Self::WillLeave(..) | Self::Overlap { .. } | Self::Planned { .. } => 1,
            Self::Leaves(_) => 2,
        }
    }

    /// The cell that it is about.
    pub fn cell(self) -> u32 {
        match self {
            Self::Enters(cell) | Self::Leaves(cell) | Self::WillLeave(cell, _) => cell,
            Self::Overlap { to, .. } | Self::Planned { to, .. } => to,
        }
    }
}

/// Signal at the border of a cell, dBm: the sensitivity of a receiver.
const SENSITIVITY_DBM: f64 = -82.0;
/// Path-loss exponent of the log-distance model.
const PATH_LOSS_EXPONENT: f64 = 3.0;

/// Received signal by the log-distance path-loss model (Rappaport 2002, section 4.9), fixed so that it is the
/// receiver's sensitivity at the border of the cell. Distances below 1 m count as 1 m.
pub(crate) fn signal_dbm(distance: f64, radius: f64) -> f64 {
    SENSITIVITY_DBM + signal_above_border_db(distance, radius)
}

/// By how much the signal is above that at the border of the cell, dB.
pub(crate) fn signal_above_border_db(distance: f64, radius: f64) -> f64 {
    10.0 * PATH_LOSS_EXPONENT * libm::log10(radius / distance.max(1.0))
}

impl Network {
    /// A cell's beacon is due: its access point queues it, and the next one is planned.
    pub fn beacon_due(&mut self, cell: u32) {
        let c = &self.cells[cell as usize];
        let frame = Frame::Beacon {
            cell: cell as u16,
            length: c.beacon_length,
        };
        self.scheduler.at(self.now + c.beacon_period, Event::Beacon(cell));
        match c.medium {
            Some(Medium { channel, station }) => {
                self.channels[channel as usize].enqueue(self.now, station, frame, &mut self.scheduler);
            }
            None => self.beacon_heard(cell),
        }
    }

    /// A radio channel's transmission begins or ends.
    pub fn channel_event(&mut self, channel: u32, generation: u32) {
        let mut outcomes = core::mem::take(&mut self.outcomes);
        let (cells, attachments) = (&self.cells, &self.attachments);
        let owner = |station| self.stations.owner(channel, station);
        let in_reach = |from: StationId, to: StationId| match (owner(from), owner(to)) {
            (Owner::Cell(cell), Owner::Attachment(attachment)) => {
                let a = &attachments[attachment as usize];
                cells[cell as usize].is_reached_by(a.mover) && a.is_attached_to(cell)
            }
            (Owner::Attachment(attachment), Owner::Cell(cell)) => {
                cells[cell as usize].is_reached_by(attachments[attachment as usize].mover)
            }
            _ => false,
        };
        self.channels[channel as usize].handle_event(
            self.now,
            generation,
            &mut self.scheduler,
            in_reach,
            &mut outcomes,
        );
        for outcome in outcomes.drain(..) {
            self.frame_done(channel, outcome);
        }
        self.outcomes = outcomes;
    }

    fn frame_done(&mut self, channel: u32, outcome: Outcome) {
        let owner = |network: &Self, station| network.stations.owner(channel, station);
        let (from, frame, lost) = match outcome {
            Outcome::Sent(from, frame) => (from, frame, None),
            Outcome::OutOfReach(from, frame) => (from, frame, Some(DropCause::OutOfReach)),
            Outcome::Collided(from, frame) => (from, frame, Some(DropCause::Collision)),
        };
        let from = owner(self, from);
        match (frame, lost) {
            (Frame::Beacon { cell, .. }, None) => self.beacon_heard(u32::from(cell)),
            (Frame::Beacon { .. }, Some(_)) => {}
            (Frame::Unicast { packet, .. } | Frame::Broadcast { packet, .. }, Some(cause)) => {
                let node = self.owner_node(from);
                self.drop_packet(packet, node, cause);
            }
            (Frame::Unicast { to, packet, .. }, None) => match owner(self, to) {
                Owner::Cell(cell) => {
                    if let Owner::Attachment(attachment) = from {
                        let source = self.store.get(packet).packet.ip.source;
                        self.glean_neighbor(cell, source, attachment);
                    }
                    let router = self.cells[cell as usize].router;
                    self.deliver(packet, router, InterfaceId::default());
                }
                Owner::Attachment(attachment) => self.deliver_to_attachment(packet, attachment),
            },
            (Frame::Broadcast { packet, .. }, None) => {
                let Owner::Cell(cell) = from else {
                    unreachable!("stations send to their access point")
                };
                let reached = self.cells[cell as usize].reached_by.iter();
                let radios = reached.flat_map(|mover| self.movers[*mover as usize].radios.clone());
                let mut radios: Vec<u32> = radios.collect();
                radios.sort_unstable();
                for attachment in radios {
                    if self.attachments[attachment as usize].is_attached_to(cell) {
                        let copy = self.store.duplicate(packet);
                        self.deliver_to_attachment(copy, attachment);
                    }
                }
                self.store.take(packet);
            }
        }
    }

    fn owner_node(&self, owner: Owner) -> u32 {
        match owner {
            Owner::Cell(cell) => self.cells[cell as usize].router,
            Owner::Attachment(attachment) => self.attachments[attachment as usize].node,
        }
    }

    fn deliver_to_attachment(&mut self, packet: PacketRef, attachment: u32) {
        let Attachment { node, interface, .. } = self.attachments[attachment as usize];
        self.deliver(packet, node, interface);
    }

    /// A beacon is heard by every host in the cell's reach: by the radio that is engaged with the cell, or by every idle
    /// one. A radio that is engaged elsewhere is on another channel.
    fn beacon_heard(&mut self, cell: u32) {
        let mut next = 0;
        while let Some(&mover) = self.cells[cell as usize].reached_by.get(next) {
            self.beacon_heard_by(cell, mover);
            next += 1;
        }
    }

    fn beacon_heard_by(&mut self, cell: u32, mover: u32) {
        let at = self.movers[mover as usize].way.position(self.now);
        let c = &self.cells[cell as usize];
        let signal = signal_dbm(at.distance(c.position), c.radius);
        let radios = self.movers[mover as usize].radios.clone();
        let engaged = radios
            .clone()
            .find(|&a| self.attachments[a as usize].is_engaged_with(cell));
        for attachment in radios {
            let a = &self.attachments[attachment as usize];
            let hears = engaged.map_or(matches!(a.layer2.state(), State::Detached), |e| e == attachment);
            if hears && a.hears(&self.cells[cell as usize]) {
                self.measure_radio(cell, attachment, at);
                self.attachments[attachment as usize].layer2.handle_beacon(
                    self.now,
                    CellId(cell as u16),
                    signal,
                );
                self.service_attachment(attachment);
            }
        }
    }

    /// The host wants this radio attached to a cell.
    pub fn attach(&mut self, attachment: u32, cell: CellId) {
        self.attachments[attachment as usize]
            .layer2
            .attach(self.now, cell);
        self.service_attachment(attachment);
    }

    /// A radio's timer is due.
    pub fn attachment_timer(&mut self, attachment: u32, generation: u32) {
        let a = &mut self.attachments[attachment as usize];
        if a.timer.fired(generation) {
            a.layer2.handle_timeout(self.now);
            self.service_attachment(attachment);
        }
    }

    /// Drains a radio's layer-2 machine: its events to the host, then its timer.
    fn service_attachment(&mut self, attachment: u32) {
        let index = attachment as usize;
        let node = self.attachments[index].node;
        while let Some(event) = self.attachments[index].layer2.poll_event() {
            self.recorder.link_event(self.now, node, &event);
            if let L2Event::Link(event) = event {
                if matches!(event, LinkEvent::Down { .. }) {
                    self.flush_station(attachment);
                    self.flush_bearers(attachment);
                }
                self.give_link_event(node, event);
            }
        }
        let a = &mut self.attachments[index];
        let wanted = a.layer2.poll_timeout();
        let event = |generation| Event::AttachmentTimer {
            attachment,
            generation,
        };
        a.timer.arm(wanted, self.now, &mut self.scheduler, event);
    }

    /// The station of a radio that lost its link has nobody to send to.
    fn flush_station(&mut self, attachment: u32) {
        let node = self.attachments[attachment as usize].node;
        for channel in 0..self.channels.len() {
            let station = self.stations.of_attachment(channel as u32, attachment);
            for frame in self.channels[channel].flush(station, &mut self.scheduler) {
                if let Frame::Unicast { packet, .. } | Frame::Broadcast { packet, .. } = frame {
                    self.drop_packet(packet, node, DropCause::NoLink);
                }
            }
        }
    }

    /// A radio interface sends a packet to the access point that it is attached to.
    pub fn send_from_station(&mut self, attachment: u32, packet: PacketRef) {
        let a = &self.attachments[attachment as usize];
        let node = a.node;
        let Some(cell) = a.layer2.attached_cell() else {
            return self.drop_packet(packet, node, DropCause::NoLink);
        };
        let Some(medium) = self.cells[cell.0 as usize].medium else {
            return self.send_up_bearer(attachment, u32::from(cell.0), packet);
        };
        let channel = medium.channel as usize;
        let (to, from) = (
            medium.station,
            self.stations.of_attachment(medium.channel, attachment),
        );
        let frame = Frame::Unicast {
            to,
            packet,
            length: self.store.get(packet).length,
            urgent: self.is_urgent(packet),
        };
        let taken = self.channels[channel].enqueue(self.now, from, frame, &mut self.scheduler);
        self.notes.count_on_channel(medium.channel, taken);
        if !taken {
            self.drop_packet(packet, node, DropCause::QueueFull);
        }
    }

    /// An access router sends a packet into its cell.
    pub fn send_into_cell(&mut self, cell: u32, packet: PacketRef) {
        let c = &self.cells[cell as usize];
        let (router, medium) = (c.router, c.medium);
        let stored = self.store.get(packet);
        let (destination, length) = (stored.packet.ip.destination, stored.length);
        let urgent = self.is_urgent(packet);
        if destination.is_multicast() {
            let Some(Medium { channel, station }) = medium else {
                return self.send_down_bearers(cell, packet, None);
            };
            let channel = channel as usize;
            let frame = Frame::Broadcast {
                packet,
                length,
                urgent,
            };
            if !self.channels[channel].enqueue(self.now, station, frame, &mut self.scheduler) {
                self.drop_packet(packet, router, DropCause::QueueFull);
            }
            return;
        }
        let Some(attachment) = self.neighbors.find(cell, destination) else {
            return self.drop_packet(packet, router, DropCause::NoNeighbor);
        };
        let Some(Medium { channel, station }) = medium else {
            return self.send_down_bearers(cell, packet, Some(attachment));
        };
        let channel = channel as usize;
        let a = &self.attachments[attachment as usize];
        let gone = !c.is_reached_by(a.mover) || !a.is_attached_to(cell);
        let frame = Frame::Unicast {
            to: self.stations.of_attachment(channel as u32, attachment),
            packet,
            length,
            urgent,
        };
        let number = channel as u32;
        let taken = self.channels[channel].enqueue(self.now, station, frame, &mut self.scheduler);
        if !gone {
            self.notes.count_on_channel(number, taken);
        }
        if !taken {
            let cause = if gone {
                DropCause::QueueFullOutOfReach
            } else {
                DropCause::QueueFull
            };
            self.drop_packet(packet, router, cause);
        }
    }

    /// An address of a host became usable, or ceased to be: the access router's neighbour cache follows.
    pub fn learn_neighbor(&mut self, node: u32, local: LocalAddress, usable: bool) {
        let Some(attachment) = self.radio_of(node, local.interface) else {
            return;
        };
        self.neighbors.forget(local.address);
        let cell = self.attachments[attachment as usize].layer2.attached_cell();
        if let (true, Some(cell)) = (usable, cell) {
            self.neighbors.learn(u32::from(cell.0), local.address, attachment);
        }
    }

    /// The radio that an interface of a host is.
    fn radio_of(&self, node: u32, interface: InterfaceId) -> Option<u32> {
        let Node::Host(host) = &self.nodes[node as usize] else {
            return None;
        };
        match host.ports.get(usize::from(interface.0))? {
            HostPort::Radio(attachment) => Some(*attachment),
            HostPort::Wire(_) => None,
        }
    }

    pub fn glean_neighbor(&mut self, cell: u32, source: Ipv6Addr, attachment: u32) {
        if source.is_unicast_link_local() {
            self.neighbors.learn(cell, source, attachment);
        }
    }

    /// A mobile host reaches the next place of its way.
    pub fn place_reached(&mut self, index: usize) {
        let place = self.places[index];
        if let Some(next) = self.places.get(index + 1) {
            self.scheduler.at(next.time, Event::Waypoint(index as u32 + 1));
        }
        self.reach_place(place.mover, place.kind);
    }

    /// A mobile host is at a place.
    pub(super) fn reach_place(&mut self, mover: u32, place: PlaceKind) {
        let node = self.movers[mover as usize].node;
        self.recorder.place(self.now, node, place);
        match place {
            PlaceKind::Enters(cell) => self.cells[cell as usize].enter(mover),
            PlaceKind::Leaves(cell) => {
                self.cells[cell as usize].leave(mover);
                for attachment in self.movers[mover as usize].radios.clone() {
                    let a = &mut self.attachments[attachment as usize];
                    a.layer2.handle_out_of_reach(self.now, CellId(cell as u16));
                    self.service_attachment(attachment);
                }
            }
            PlaceKind::WillLeave(cell, after) => {
                let radios = self.movers[mover as usize].radios.clone();
                let mut own = radios.map(|a| &self.attachments[a as usize]);
                let attached = own.find(|a| a.is_attached_to(cell));
                if let Some(interface) = attached.map(|a| a.interface) {
                    let cell = CellId(cell as u16);
                    self.give_link_event(
                        node,
                        LinkEvent::GoingDown {
                            interface,
                            cell,
                            after,
                        },
                    );
                }
            }
            PlaceKind::Overlap { from, to, fraction } => {
                let (from, to) = (CellId(from as u16), CellId(to as u16));
                self.give_link_event(node, LinkEvent::Overlap { from, to, fraction });
            }
            PlaceKind::Planned {
                from,
                to,
                prefix,
                after,
            } => {
                let [from, to] = [from, to].map(|cell| CellId(cell as u16));
                let event = LinkEvent::Planned {
                    from,
                    to,
                    prefix,
                    after,
                };
                self.give_link_event(node, event);
            }
        }
    }
}

impl Attachment {
    /// Whether it hears the beacons of a cell.
    pub fn hears(&self, cell: &Cell) -> bool {
        self.technology.is_none() || self.technology == cell.technology
    }

    /// Packets can pass between this radio and the cell, as far as the radio knows.
    fn is_attached_to(&self, cell: u32) -> bool {
        self.layer2.attached_cell() == Some(CellId(cell as u16))
    }

    /// It is attached to the cell, or about to be.
    fn is_engaged_with(&self, cell: u32) -> bool {
        let cell = CellId(cell as u16);
        match self.layer2.state() {
            State::Detached => false,
            State::Attaching { cell: c, .. } | State::Attached { cell: c } => c == cell,
        }
    }
}
