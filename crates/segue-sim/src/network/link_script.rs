//! Links that go down and come up at times that the scenario gives.

use super::Network;
use crate::recorder::DropCause;
use crate::scheduler::Event;
use segue_proto::l2::L2Event;
use segue_proto::{CellId, Duration, Instant, LinkEvent};

/// What happens to a wired link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Change {
    pub time: Instant,
    /// Number of the wired link.
    pub link: u32,
    pub kind: ChangeKind,
    /// What its hosts call it: the first number that no cell has, and the link's own.
    pub segment: u16,
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum ChangeKind {
    /// Its hosts are told that it will go down.
    WillGoDown(Duration),
    Down,
    Up,
}

impl Network {
    /// The first change is scheduled; each schedules the next.
    pub fn start_link_script(&mut self) {
        if let Some(first) = self.link_script.first() {
            self.scheduler.at(first.time, Event::LinkScript(0));
        }
    }

    /// The next change is due.
    pub fn link_script_due(&mut self, number: usize) {
        let change = self.link_script[number];
        if let Some(next) = self.link_script.get(number + 1) {
            self.scheduler.at(next.time, Event::LinkScript(number as u32 + 1));
        }
        let directions = [2 * change.link, 2 * change.link + 1];
        for direction in directions {
            let link = &mut self.links[direction as usize];
            match change.kind {
                ChangeKind::WillGoDown(_) => {}
                ChangeKind::Up => link.come_up(),
                ChangeKind::Down => {
                    let node = self.link_ends[direction as usize ^ 1].node;
                    for packet in link.go_down(self.now, &mut self.scheduler) {
                        self.drop_packet(packet, node, DropCause::LinkDown);
                    }
                }
            }
        }
        let cell = CellId(change.segment);
        for direction in directions {
            let end = self.link_ends[direction as usize];
            if !matches!(self.nodes[end.node as usize], super::Node::Host(_)) {
                continue;
            }
            let interface = end.interface;
            let event = match change.kind {
                ChangeKind::WillGoDown(after) => LinkEvent::GoingDown {
                    interface,
                    cell,
                    after,
                },
                ChangeKind::Down => LinkEvent::Down { interface, cell },
                ChangeKind::Up => LinkEvent::Up { interface, cell },
            };
            self.recorder
                .link_event(self.now, end.node, &L2Event::Link(event));
            self.give_link_event(end.node, event);
        }
    }
}
