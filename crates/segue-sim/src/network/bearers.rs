//! Cells without a shared channel: every station has a link of its own to the access router, as in cellular networks and
//! at a switch. Beacons are heard at once and take nothing of it.

use super::{LinkEnd, Network};
use crate::link::{Link, LinkConfig, Silence};
use crate::link_trace::LinkTrace;
use crate::mobility::Point;
use crate::recorder::DropCause;
use crate::store::PacketRef;
use segue_proto::random::Stream;
use segue_proto::{CellId, Duration, InterfaceId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a station has to itself in a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bearer {
    pub cell: u32,
    pub attachment: u32,
}

/// What the links of a cell's bearers are like, in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    pub config: LinkConfig,
    pub jitter_hold: Option<Duration>,
    /// How long it takes, and how long it holds.
    pub set_up: (Duration, Duration),
    pub silences: Vec<Silence>,
    pub trace: Option<Arc<LinkTrace>>,
    /// All bearers of the cell share its rate.
    pub is_shared: bool,
}

impl Direction {
    fn link(&self, index: usize, stream: Stream) -> Link {
        let link = Link::new(index as u32, self.config.clone(), stream);
        let link = if self.is_shared {
            link.sent_by_others()
        } else {
            link
        };
        link.with_jitter_held(self.jitter_hold)
            .with_set_up(self.set_up.0, self.set_up.1)
            .with_silences(self.silences.clone())
            .with_trace(self.trace.clone())
    }
}

/// All of them: each is made when something is first sent over it, since of a crowd in a town most are never used. Bearer n has links
/// `first_link` + 2n, to the host, and the one behind it, from the host.
#[derive(Debug)]
pub(crate) struct Bearers {
    first_link: u32,
    /// Of each cell, down and up; nothing where it is a shared channel.
    cells: Vec<Option<[Direction; 2]>>,
    seed: u64,
    bearers: Vec<Bearer>,
    /// Their numbers, by cell and attachment.
    numbers: BTreeMap<(u32, u32), u32>,
}

impl Bearers {
    /// Bearers whose links begin at `first_link`.
    pub fn new(first_link: u32, cells: Vec<Option<[Direction; 2]>>, seed: u64) -> Self {
        Self {
            first_link,
            cells,
            seed,
            bearers: Vec::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// The bearer that `link` is a direction of.
    #[inline]
    pub fn of_link(&self, link: u32) -> Option<Bearer> {
        let at = link.checked_sub(self.first_link)? / 2;
        self.bearers.get(at as usize).copied()
    }

    /// All links, wires and then bearers in the order of cells, and of attachments in each.
    pub fn links_in_order(&self) -> impl Iterator<Item = u32> + '_ {
        let down = self.numbers.values().map(|number| self.first_link + 2 * number);
        (0..self.first_link).chain(down.flat_map(|down| [down, down + 1]))
    }

    /// The link to the host, of the bearer that an attachment has used in a cell.
    fn down(&self, cell: u32, attachment: u32) -> Option<u32> {
        let number = self.numbers.get(&(cell, attachment))?;
        Some(self.first_link + 2 * number)
    }
}

impl Network {
    /// The link to the host, of the bearer that an attachment has in a cell, if it can have one.
    fn bearer(&mut self, cell: u32, attachment: u32) -> Option<u32> {
        self.bearers
            .down(cell, attachment)
            .or_else(|| self.make_bearer(cell, attachment))
    }

    #[inline(never)]
    fn make_bearer(&mut self, cell: u32, attachment: u32) -> Option<u32> {
        let (a, c) = (&self.attachments[attachment as usize], &self.cells[cell as usize]);
        if !a.hears(c) {
            return None;
        }
        let directions = self.bearers.cells[cell as usize].as_ref()?;
        let ends = [
            ("down", a.node, a.interface),
            ("up", c.router, InterfaceId::default()),
        ];
        let down = self.links.len() as u32;
        for (direction, (name, node, interface)) in directions.iter().zip(ends) {
            let name = format!("bearer of attachment {attachment} in cell {cell}/{name}");
            let stream = Stream::new(self.bearers.seed, &name);
            self.links.push(direction.link(self.links.len(), stream));
            self.link_ends.push(LinkEnd { node, interface });
        }
        let number = self.bearers.bearers.len() as u32;
        self.bearers.numbers.insert((cell, attachment), number);
        self.bearers.bearers.push(Bearer { cell, attachment });
        let mover = self.attachments[attachment as usize].mover;
        let at = self.movers[mover as usize].way.position(self.now);
        self.measure_bearer(cell, down, at);
        Some(down)
    }

    /// A radio in a cell is at this place: where a bearer's rate is by distance, it follows.
    pub fn measure_radio(&mut self, cell: u32, attachment: u32, at: Point) {
        if self.has_rates_by_place(cell)
            && let Some(down) = self.bearers.down(cell, attachment)
        {
            self.measure_bearer(cell, down, at);
        }
    }

    /// Puts a packet on a direction of a bearer, down or up, or drops it.
    fn send_on_bearer(&mut self, cell: u32, down: u32, way: u32, packet: PacketRef) {
        self.send_on_link(down + way, packet);
        self.offer_to_cell(cell, way, down + way);
    }

    /// A radio sends a packet up its bearer.
    pub fn send_up_bearer(&mut self, attachment: u32, cell: u32, packet: PacketRef) {
        match self.bearer(cell, attachment) {
            Some(down) => self.send_on_bearer(cell, down, 1, packet),
            None => {
                let node = self.attachments[attachment as usize].node;
                self.drop_packet(packet, node, DropCause::NoLink);
            }
        }
    }

    /// An access router sends a packet into a cell with bearers: to everybody, or to one attachment.
    pub fn send_down_bearers(&mut self, cell: u32, packet: PacketRef, to: Option<u32>) {
        let Some(to) = to else {
            let reached = self.cells[cell as usize].reached_by.iter();
            let radios = reached.flat_map(|mover| self.movers[*mover as usize].radios.clone());
            let mut radios: Vec<u32> = radios.collect();
            radios.sort_unstable();
            for attachment in radios {
                if self.reaches(cell, attachment)
                    && let Some(down) = self.bearer(cell, attachment)
                {
                    let copy = self.store.duplicate(packet);
                    self.send_on_bearer(cell, down, 0, copy);
                }
            }
            self.store.take(packet);
            return;
        };
        let reaches = self.reaches(cell, to);
        match reaches.then(|| self.bearer(cell, to)).flatten() {
            Some(down) => self.send_on_bearer(cell, down, 0, packet),
            None => {
                let router = self.cells[cell as usize].router;
                self.drop_packet(packet, router, DropCause::OutOfReach);
            }
        }
    }

    /// A packet has crossed a link: whether there is somebody to take it, if the link is a bearer. What came up has left its
    /// radio, and goes on; what comes down needs a radio that is still there.
    pub fn take_from_bearer(&mut self, link: u32, packet: PacketRef) -> bool {
        let Some(bearer) = self.bearers.of_link(link) else {
            return true;
        };
        let up = (link - self.bearers.first_link) % 2 == 1;
        if up {
            let source = self.store.get(packet).packet.ip.source;
            if self.reaches(bearer.cell, bearer.attachment) {
                self.glean_neighbor(bearer.cell, source, bearer.attachment);
            }
            return true;
        }
        self.reaches(bearer.cell, bearer.attachment)
    }

    /// A radio lost its link: what it had still to send up its bearers is lost. A cell whose bearers share it has what was for it
    /// forgotten, too: it would take the time of others.
    pub fn flush_bearers(&mut self, attachment: u32) {
        for cell in 0..self.cells.len() as u32 {
            let Some(down) = self.bearers.down(cell, attachment) else {
                continue;
            };
            let up = down as usize + 1;
            let node = self.attachments[attachment as usize].node;
            for packet in self.links[up].abandon(self.now, &mut self.scheduler) {
                self.drop_packet(packet, node, DropCause::NoLink);
            }
            if self.is_shared(cell) {
                let router = self.cells[cell as usize].router;
                for packet in self.links[down as usize].abandon(self.now, &mut self.scheduler) {
                    self.drop_packet(packet, router, DropCause::OutOfReach);
                }
                self.withdraw_from_cell(cell, down);
            }
        }
    }

    fn reaches(&self, cell: u32, attachment: u32) -> bool {
        let a = &self.attachments[attachment as usize];
        self.cells[cell as usize].is_reached_by(a.mover)
            && a.layer2.attached_cell() == Some(CellId(cell as u16))
    }
}

#[cfg(test)]
mod tests {
    use crate::network::Node;
    use crate::sink::Memory;
    use crate::{RunOptions, Scenario, build};

    const CITY: &str = include_str!("../../../../scenarios/populations/city.toml");
    const FILE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/populations/city.toml"
    );

    #[test]
    fn a_bearer_is_made_when_something_is_first_sent_over_it() {
        let scenario =
            Scenario::from_toml(CITY, FILE, &[("duration".to_owned(), "20 s".to_owned())]).unwrap();
        let mut network = build::network(&scenario, 1, &RunOptions::default()).unwrap();
        let wires = network.links.len();
        assert_eq!(wires as u32, network.bearers.first_link);
        network.run(None, &mut Memory::default()).unwrap();
        let bearers = &network.bearers;
        // forty people with a radio each in use, and a few who went on to a second cell; not nine cells for eighty radios
        let made = bearers.bearers.len();
        assert!((40..120).contains(&made), "{made}");
        assert_eq!(network.links.len(), wires + 2 * made);
        assert_eq!(network.links.len(), network.link_ends.len());
        for (number, bearer) in bearers.bearers.iter().enumerate() {
            let down = wires + 2 * number;
            assert_eq!(bearers.down(bearer.cell, bearer.attachment), Some(down as u32));
            let [to_host, from_host] = [down, down + 1].map(|link| network.link_ends[link].node);
            assert_eq!(to_host, network.attachments[bearer.attachment as usize].node);
            assert_eq!(from_host, network.cells[bearer.cell as usize].router);
            assert!(matches!(network.nodes[to_host as usize], Node::Host(_)));
        }
        let in_order: Vec<u32> = bearers.links_in_order().collect();
        let mut sorted = in_order.clone();
        sorted.sort_unstable();
        assert_ne!(
            in_order, sorted,
            "cells are used in another order than that of the file"
        );
        assert!(sorted.iter().copied().eq(0..network.links.len() as u32));
    }
}
