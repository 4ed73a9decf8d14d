//! Packets under way. A packet is put in once, when a host sends it, and taken out where it is delivered or dropped;
//! in between, links pass its number.

use crate::recorder::ledger::Entries;
use segue_wire::Packet;

/// Number of a stored packet, reused after it has left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PacketRef(pub u32);

/// A stored packet. On cache lines of its own: what a hop looks at lies on one of them.
#[derive(Debug)]
#[repr(align(64))]
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
    pub fn insert(&mut self, packet: Packet) -> PacketRef {
        *self.vacancy() = packet;
        self.insert_written()
    }

    /// The place of the packet that is put in next, for it to be written there: packets are large, and this is where they
    /// stay. What is in it is of no use.
    #[inline]
    pub fn vacancy(&mut self) -> &mut Packet {
        let index = match self.free.last() {
            Some(&index) => index,
            None => self.make_room(),
        };
        &mut self.slots[index as usize].packet
    }

    /// Puts in the packet that was written to the [`vacancy`](Self::vacancy), giving it the next number of the run.
    ///
    /// # Panics
    /// If nobody has asked for one.
    #[inline]
    pub fn insert_written(&mut self) -> PacketRef {
        let index = self.free.pop().expect("a packet was written");
        let slot = &mut self.slots[index as usize];
        (slot.id, slot.length) = (self.next_id, slot.packet.buffer_len() as u32);
        (slot.corrupted, slot.entries, slot.under_way) = (false, Entries::NONE, true);
        self.next_id += 1;
        PacketRef(index)
    }

    /// Makes an empty place.
    #[cold]
    fn make_room(&mut self) -> u32 {
        let index = self.slots.len() as u32;
        self.slots.push(Stored {
            packet: Packet::EMPTY,
            id: 0,
            length: 0,
            corrupted: false,
            entries: Entries::NONE,
            under_way: false,
        });
        self.free.push(index);
        index
    }

    /// Puts in another copy of a stored packet, under the same number.
    pub fn duplicate(&mut self, of: PacketRef) -> PacketRef {
        let original = self.get(of);
        let copy = Stored {
            packet: original.packet.clone(),
            ..*original
        };
        let index = self.free.pop().unwrap_or_else(|| {
            let index = self.make_room();
            self.free.pop();
            index
        });
        self.slots[index as usize] = copy;
        PacketRef(index)
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
            packet: Packet::EMPTY,
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
