//! Packets that are under way in fragments. The data in them is one packet's: it is sent with the first fragment, and
//! arrives when the receiver has put all of them together.

use super::ledger::Entries;
use super::segments::innermost;
use segue_wire::{ExtensionHeader, Packet};
use std::collections::VecDeque;

/// Packets that are remembered: more than queues hold.
const REMEMBERED: usize = 4096;

/// A packet that was sent in fragments.
#[derive(Debug)]
pub(super) struct Whole {
    identification: u32,
    /// As it was.
    pub packet: Packet,
    /// Its entries in the ledger.
    pub entries: Entries,
    /// A fragment of it was dropped.
    pub lost: bool,
}

/// Packets that were sent in fragments, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Wholes(VecDeque<Whole>);

impl Wholes {
    pub(super) fn add(&mut self, identification: u32, packet: Packet, entries: Entries) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Whole {
            identification,
            packet,
            entries,
            lost: false,
        });
    }

    /// The packet of fragments with this identification.
    pub(super) fn find(&mut self, identification: u32) -> Option<&mut Whole> {
        self.0
            .iter_mut()
            .rev()
            .find(|whole| whole.identification == identification)
    }
}

/// Identification and offset of the fragment that a packet is, in tunnels too (RFC 8200 section 4.5). The first
/// identification of a host is random, so it tells hosts apart as well.
#[inline]
pub(crate) fn fragment_of(packet: &Packet) -> Option<(u32, u16)> {
    match innermost(packet).extensions.last()? {
        ExtensionHeader::Fragment {
            identification,
            offset,
            ..
        } => Some((*identification, *offset)),
        _ => None,
    }
}
