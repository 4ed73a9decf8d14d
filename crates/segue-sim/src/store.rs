//! Packets under way. A packet is put in once, when a host sends it, and taken out where it is delivered or dropped;
//! in between, links pass its number.

use crate::recorder::ledger::Entries;
use segue_wire::{Packet, Payload};

/// Number of a stored packet, reused after it has left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PacketRef(pub u32);

/// A stored packet.
#[derive(Debug)]
pub struct Stored {
    /// The packet.
    pub packet: Packet,
    /// Number of the packet within the run, never reused.
    pub id: u64,
    /// IPv6 packet length, bytes.
    pub length: u32,
    /// Bits were flipped on the way: its receiver will refuse it.
    pub corrupted: bool,
    /// Its entries in the ledger of packet fates.
    pub entries: Entries,
    /// It is still under way: what has been removed lies there until its slot is used again, which saves moving it out.
    under_way: bool,
}

/// The store.
#[derive(Debug, Default)]
pub struct PacketStore {
    slots: Vec<Stored>,
    free: Vec<u32>,
    next_id: u64,
}

impl PacketStore {
    /// Puts a packet in, giving it the next number of the run.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketRef {
        let id = self.next_id;
        self.next_id += 1;
        let length = packet.buffer_len() as u32;
        let Some(index) = self.free.pop() else {
            return self.place(Stored {
                packet,
                id,
                length,
                corrupted: false,
                entries: Entries::NONE,
                under_way: true,
            });
        };
        // field by field, since packets are large: this is the one place that they are moved to
        let slot = &mut self.slots[index as usize];
        slot.packet = packet;
        (slot.id, slot.length) = (id, length);
        (slot.corrupted, slot.entries, slot.under_way) = (false, Entries::NONE, true);
        PacketRef(index)
    }

    /// Puts in another copy of a stored packet, under the same number.
    pub fn duplicate(&mut self, of: PacketRef) -> PacketRef {
        let original = self.get(of);
        let copy = Stored {
            packet: original.packet.clone(),
            ..*original
        };
        self.place(copy)
    }

    fn place(&mut self, stored: Stored) -> PacketRef {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = stored;
            PacketRef(index)
        } else {
            self.slots.push(stored);
            PacketRef(self.slots.len() as u32 - 1)
        }
    }

    /// A stored packet.
    #[must_use]
    pub fn get(&self, at: PacketRef) -> &Stored {
        let stored = &self.slots[at.0 as usize];
        debug_assert!(stored.under_way, "packet is stored");
        stored
    }

    /// A stored packet, to be changed.
    pub fn get_mut(&mut self, at: PacketRef) -> &mut Stored {
        let stored = &mut self.slots[at.0 as usize];
        debug_assert!(stored.under_way, "packet is stored");
        stored
    }

    /// Puts another packet in the place of a stored one, which it goes on as: a router has put it into a tunnel, or taken
    /// it out of one.
    pub fn replace(&mut self, at: PacketRef, packet: Packet) {
        let stored = self.get_mut(at);
        stored.length = packet.buffer_len() as u32;
        stored.packet = packet;
    }

    /// Takes a packet out.
    pub fn take(&mut self, at: PacketRef) -> Stored {
        let slot = self.get_mut(at);
        let gone = Stored {
            packet: Packet {
                ip: slot.packet.ip,
                extensions: Vec::new(),
                payload: Payload::NoNextHeader,
            },
            under_way: false,
            ..*slot
        };
        let stored = core::mem::replace(slot, gone);
        self.free.push(at.0);
        stored
    }

    /// Removes a packet that nobody needs any more.
    pub fn remove(&mut self, at: PacketRef) {
        self.get_mut(at).under_way = false;
        self.free.push(at.0);
    }

    /// Packets in the store now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no packet is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
