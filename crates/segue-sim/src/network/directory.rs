//! The directory that shims ask where a peer is and tell where they are: names of the DNS, NID and L64 records, as an
//! oracle with delays. Its messages are what claim S10 and `segue-location` are about; here it is the time that counts.

use super::{Network, Node};
use crate::scheduler::Event;
use core::net::Ipv6Addr;
use segue_proto::shim::ShimEvent;
use segue_proto::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The directory and what is on its way to it and from it.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    update_delay: Duration,
    look_up_delay: Duration,
    /// Where hosts are, by identifier.
    entries: BTreeMap<u64, Vec<Ipv6Addr>>,
    /// Updates and questions, each in the order of its time.
    updates: VecDeque<(Instant, (u64, Vec<Ipv6Addr>))>,
    questions: VecDeque<(Instant, (u32, Ipv6Addr))>,
}

impl Directory {
    /// An empty one: an update takes effect `update_delay` after it was sent, a question is answered after
    /// `look_up_delay`.
    pub fn new(update_delay: Duration, look_up_delay: Duration) -> Self {
        Self {
            update_delay,
            look_up_delay,
            ..Self::default()
        }
    }
}

/// The first of a queue, if its time has come.
fn due<T>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<T> {
    queue.front().filter(|(at, _)| *at <= now)?;
    queue.pop_front().map(|(_, what)| what)
}

/// The lower half of an identity.
fn identifier(address: Ipv6Addr) -> u64 {
    u128::from(address) as u64
}

impl Network {
    /// A shim wants something of the directory.
    pub fn ask_directory(&mut self, node: u32, event: &ShimEvent) {
        let now = self.now;
        let at = match *event {
            ShimEvent::UpdateDirectory => {
                let Node::Host(host) = &self.nodes[node as usize] else {
                    return;
                };
                let Some(shim) = host.host.shim() else { return };
                let at = now + self.directory.update_delay;
                let entry = (identifier(shim.identity()), shim.locations());
                self.directory.updates.push_back((at, entry));
                at
            }
            ShimEvent::LookUp { peer } => {
                let at = now + self.directory.look_up_delay;
                self.directory.questions.push_back((at, (node, peer)));
                at
            }
            _ => return,
        };
        self.scheduler.at(at, Event::Directory);
    }

    /// An update takes effect, or an answer arrives.
    pub fn directory_due(&mut self) {
        let now = self.now;
        while let Some((name, addresses)) = due(&mut self.directory.updates, now) {
            self.directory.entries.insert(name, addresses);
        }
        while let Some((node, peer)) = due(&mut self.directory.questions, now) {
            let found = self.directory.entries.get(&identifier(peer)).cloned();
            // whoever asks by an identifier wants addresses with it
            self.give_found(node, peer, &found.unwrap_or_default());
        }
    }
}
