//! Cells without a shared channel: every station has a link of its own to the access router, as in cellular networks and
//! at a switch. Beacons are heard at once and take nothing of it.

use super::Network;
use crate::recorder::DropCause;
use crate::store::PacketRef;
use segue_proto::CellId;

/// What a station has to itself in a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bearer {
    pub cell: u32,
    pub attachment: u32,
}

/// All of them, in the order of cells, and of attachments in each. Bearer n has links `first_link` + 2n, to the host, and the one behind it, from the host.
#[derive(Debug)]
pub(crate) struct Bearers {
    first_link: u32,
    bearers: Vec<Bearer>,
}

impl Bearers {
    /// Bearers whose links begin at `first_link`.
    pub fn new(first_link: u32, bearers: Vec<Bearer>) -> Self {
        Self { first_link, bearers }
    }

    /// The bearer that `link` is a direction of.
    #[inline]
    pub fn of_link(&self, link: u32) -> Option<Bearer> {
        let at = link.checked_sub(self.first_link)? / 2;
        self.bearers.get(at as usize).copied()
    }

    /// The link to the host, of the bearer that an attachment has in a cell.
    fn down(&self, cell: u32, attachment: u32) -> Option<u32> {
        let key = |b: &Bearer| (b.cell, b.attachment);
        let at = self.bearers.binary_search_by_key(&(cell, attachment), key).ok()?;
        Some(self.first_link + 2 * at as u32)
    }
}

impl Network {
    /// A radio sends a packet up its bearer.
    pub fn send_up_bearer(&mut self, attachment: u32, cell: u32, packet: PacketRef) {
        match self.bearers.down(cell, attachment) {
            Some(down) => self.send_on_link(down + 1, packet),
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
                    && let Some(down) = self.bearers.down(cell, attachment)
                {
                    let copy = self.store.duplicate(packet);
                    self.send_on_link(down, copy);
                }
            }
            self.store.take(packet);
            return;
        };
        match self.bearers.down(cell, to) {
            Some(down) if self.reaches(cell, to) => self.send_on_link(down, packet),
            _ => {
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

    /// A radio lost its link: what it had still to send up its bearers is lost.
    pub fn flush_bearers(&mut self, attachment: u32) {
        for cell in 0..self.cells.len() as u32 {
            let Some(down) = self.bearers.down(cell, attachment) else {
                continue;
            };
            let up = down as usize + 1;
            let node = self.attachments[attachment as usize].node;
            for packet in self.links[up].abandon(self.now) {
                self.drop_packet(packet, node, DropCause::NoLink);
            }
        }
    }

    fn reaches(&self, cell: u32, attachment: u32) -> bool {
        let a = &self.attachments[attachment as usize];
        self.cells[cell as usize].is_reached_by(a.mover)
            && a.layer2.attached_cell() == Some(CellId(cell as u16))
    }
}
