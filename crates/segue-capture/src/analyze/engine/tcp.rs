//! TCP, and what MPTCP puts into it.

use super::Engine;
use super::fragments::{Begun, Whole};
use super::packet::{Seen, ends_key};
use crate::analyze::decode::{self, Skip, Tcp, flag};
use crate::analyze::flows::item::Item;
use crate::analyze::flows::key::{KeyKind, Slot};
use crate::analyze::flows::paths::Role;
use crate::analyze::model::Protocol;
use crate::analyze::reader::Record;

impl Engine {
    pub(super) fn tcp(&mut self, found: &Seen<'_>) -> Result<(), Skip> {
        let tcp = Tcp::parse(&found.packet)?;
        let mut found = *found;
        found.sight.ports = (tcp.source_port, tcp.destination_port);
        let key = ends_key(KeyKind::Tcp, &found);
        let slot = self.flow(key, Protocol::Tcp, &found);
        let syn = tcp.flags & flag::SYN != 0;
        let slot = if syn && self.is_another(slot, &found, &tcp) {
            self.end(slot);
            self.flow(key, Protocol::Tcp, &found)
        } else {
            slot
        };
        if tcp.cut > 0 {
            self.options_cut_off(&found, slot, &tcp);
        }
        let limits = self.limits();
        let Some(conn) = self.table.get(slot) else {
            return Ok(());
        };
        let sight = &found.sight;
        let (source, destination) = found.pair();
        let direction = conn.direction(source, destination);
        conn.packet(direction, sight);
        if syn {
            conn.begins(direction, tcp.seq.wrapping_add(1));
        }
        let mut item = None;
        if tcp.data_len > 0 {
            let seq = if syn { tcp.seq.wrapping_add(1) } else { tcp.seq };
            let data = Item::new(seq, tcp.data_len, tcp.data_len, tcp.timestamps.map(|t| t.0));
            if conn.data(direction, sight, data, found.packet.identification, &limits) {
                item = Some(data);
            }
        }
        if let Some((value, echo)) = tcp.timestamps {
            conn.timestamps(direction, sight, value, echo);
        }
        let mut timed = None;
        if tcp.flags & flag::ACK != 0 {
            let beyond = if tcp.has_more_options() { tcp.sack() } else { None };
            timed = conn.acknowledged(direction, sight, tcp.ack, beyond, tcp.window == 0);
        }
        if tcp.data_len == 0
            && tcp.flags & (flag::SYN | flag::FIN | flag::RST) == 0
            && sight.role != Role::Receiver
        {
            conn.may_keep_alive(direction, sight, tcp.seq);
        }
        if tcp.flags & flag::FIN != 0 {
            conn.closes(direction);
        }
        if tcp.flags & flag::RST != 0 {
            conn.resets(direction, found.sight.time_ns);
        }
        if conn.subflow().is_some() || tcp.has_more_options() {
            self.mptcp(&found, slot, direction, &tcp, item, timed);
            if tcp.flags & flag::RST != 0 {
                self.path_left(&found, slot);
            }
        }
        if found.packet.fragment {
            self.segment_begins(&found, slot, direction, &tcp);
        }
        Ok(())
    }

    /// The first fragment of a segment: where the others belong is known now.
    #[cold]
    fn segment_begins(&mut self, found: &Seen<'_>, slot: Slot, direction: usize, tcp: &Tcp<'_>) {
        let header_len = found.packet.payload_len.saturating_sub(tcp.data_len);
        let syn = u32::from(tcp.flags & flag::SYN != 0);
        let begun = Begun {
            slot,
            direction,
            ports: found.sight.ports,
            seq: tcp.seq.wrapping_add(syn).wrapping_sub(header_len),
            stamp: tcp.timestamps.map(|t| t.0),
        };
        let whole = Whole::of(found.sight.capture, &found.packet);
        self.fragments.begin(whole, found.sight.time_ns, begun);
    }

    /// A fragment other than the first: of a segment whose first one was seen, it has data. Nothing else of it is known.
    #[cold]
    pub(super) fn later_fragment(&mut self, capture: u8, time_ns: u64, record: &Record<'_>) {
        let Some(packet) = decode::later_fragment(record.link, record.bytes, record.wire_len) else {
            return;
        };
        let Some(begun) = self.fragments.find(Whole::of(capture, &packet), time_ns) else {
            return;
        };
        if packet.protocol != decode::TCP || packet.payload_len == 0 {
            return;
        }
        let mut found = self.place(capture, time_ns, record, packet);
        found.sight.ports = begun.ports;
        let limits = self.limits();
        if let Some(conn) = self.table.get(begun.slot) {
            conn.packet(begun.direction, &found.sight);
            let seq = begun.seq.wrapping_add(packet.offset);
            let data = Item::new(seq, packet.payload_len, packet.payload_len, begun.stamp);
            conn.data(
                begun.direction,
                &found.sight,
                data,
                packet.identification,
                &limits,
            );
        }
    }

    /// The end of the options was not captured. What is behind the timestamps of an established connection that is none of MPTCP are
    /// selective acknowledgements.
    #[cold]
    fn options_cut_off(&mut self, found: &Seen<'_>, slot: Slot, tcp: &Tcp<'_>) {
        let needed_bytes = found.needed(tcp.cut);
        let Some(conn) = self.table.get(slot) else {
            return;
        };
        let acknowledges = tcp.flags & flag::SYN == 0 && tcp.timestamps.is_some() && conn.subflow().is_none();
        let parent = conn.parent();
        if acknowledges {
            return self.cuts.acknowledgement(slot.id, needed_bytes);
        }
        self.cuts.flow(slot.id, needed_bytes);
        if let Some(connection) = parent {
            self.cuts.flow(connection.id, needed_bytes);
        }
    }

    /// Whether a SYN begins another connection between the same ends.
    fn is_another(&mut self, slot: Slot, found: &Seen<'_>, tcp: &Tcp<'_>) -> bool {
        let Some(conn) = self.table.get(slot) else {
            return false;
        };
        let (source, destination) = found.pair();
        let direction = conn.direction(source, destination);
        tcp.flags & flag::ACK == 0 && conn.is_replaced_by_syn(direction, tcp.seq.wrapping_add(1))
    }
}
