//! TCP, and what MPTCP puts into it.

use super::Engine;
use super::packet::{Seen, ends_key};
use crate::analyze::decode::{Skip, Tcp, flag};
use crate::analyze::flows::item::Item;
use crate::analyze::flows::key::{KeyKind, Slot};
use crate::analyze::flows::paths::Role;
use crate::analyze::model::Protocol;

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
        Ok(())
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
