//! Subflows find their connection (RFC 8684 section 3).

use super::Engine;
use super::early_join::UNKNOWN;
use super::packet::Seen;
use crate::analyze::decode::{Address, MptcpOption, Tcp, flag, mptcp_options};
use crate::analyze::flows::item::Item;
use crate::analyze::flows::key::Slot;
use crate::analyze::flows::mptcp::{token, token_key};
use crate::analyze::model::SignalKind;

impl Engine {
    /// The options of a segment, the data that they map, and when the data was sent that the segment acknowledges.
    pub(super) fn mptcp(
        &mut self,
        found: &Seen<'_>,
        slot: Slot,
        direction: usize,
        tcp: &Tcp<'_>,
        item: Option<Item>,
        timed: Option<u64>,
    ) {
        let (syn, ack) = (tcp.flags & flag::SYN != 0, tcp.flags & flag::ACK != 0);
        let mut data_ack = None;
        for option in mptcp_options(tcp.options, syn, ack) {
            if let MptcpOption::Mapping { ack, .. } | MptcpOption::DataAck { ack } = option {
                data_ack = data_ack.or(ack);
            }
            self.mptcp_option(found, slot, direction, tcp, option);
        }
        let Some(conn) = self.table.get(slot) else {
            return;
        };
        let Some(subflow) = conn.subflow() else {
            return;
        };
        let Some((parent, whole)) = subflow.whole(direction) else {
            return;
        };
        let mapped = item.and_then(|data| Some((subflow.dsn(direction, data.seq)?, data)));
        let unmapped = item.is_some() && mapped.is_none();
        let limits = self.limits();
        self.table.touch(parent);
        if let Some(connection) = self.table.get(parent) {
            connection.packet(whole, &found.sight);
            if let Some(ack) = data_ack {
                connection.acknowledged(whole, &found.sight, ack, None, false);
            }
            if let Some(sent_ns) = timed {
                let ns = found.sight.time_ns.saturating_sub(sent_ns);
                connection.round_trip(1 - whole, sent_ns, ns);
            }
            if let Some((dsn, data)) = mapped {
                let data = Item::new(dsn, data.span, data.bytes, data.stamp);
                connection.data(whole, &found.sight, data, 0, &limits);
            }
        }
        if unmapped {
            self.limit("mptcp-data-without-mapping");
        }
    }

    fn mptcp_option(
        &mut self,
        found: &Seen<'_>,
        slot: Slot,
        direction: usize,
        tcp: &Tcp<'_>,
        option: MptcpOption,
    ) {
        let Some(conn) = self.table.get(slot) else {
            return;
        };
        let syn = (tcp.flags & flag::SYN != 0).then_some(tcp.seq);
        conn.speaks_mptcp(direction, syn);
        match option {
            MptcpOption::Capable {
                version,
                sender_key,
                receiver_key,
            } => {
                self.capable(found, slot);
                for key in [sender_key, receiver_key].into_iter().flatten() {
                    self.learn(slot, token(key, version));
                }
            }
            MptcpOption::JoinSyn { token, .. } => {
                self.join(slot, token, found.ends);
                self.mptcp_signal(found, SignalKind::MptcpJoin, slot);
            }
            MptcpOption::Mapping {
                dsn, ssn, len, fin, ..
            } => conn.maps(direction, tcp.seq, dsn, (ssn, len), fin),
            MptcpOption::AddAddress { echo: false } => {
                self.mptcp_signal(found, SignalKind::MptcpAddAddress, slot)
            }
            MptcpOption::RemoveAddress => {
                self.path_left(found, slot);
                self.mptcp_signal(found, SignalKind::MptcpRemoveAddress, slot);
            }
            MptcpOption::Priority { backup } => {
                if backup {
                    self.path_left(found, slot);
                }
                self.mptcp_signal(found, SignalKind::MptcpPriority, slot);
            }
            MptcpOption::Ends => self.path_left(found, slot),
            MptcpOption::JoinOther
            | MptcpOption::DataAck { .. }
            | MptcpOption::AddAddress { echo: true }
            | MptcpOption::Other => {}
        }
    }

    /// A subflow, or an address, is left.
    pub(super) fn path_left(&mut self, found: &Seen<'_>, slot: Slot) {
        if let Some(parent) = self.table.get(slot).and_then(|c| c.parent())
            && let Some(connection) = self.table.get(parent)
        {
            connection.path_left(found.sight.time_ns);
        }
    }

    /// Signalling of a subflow is its connection's.
    fn mptcp_signal(&mut self, found: &Seen<'_>, kind: SignalKind, slot: Slot) {
        let parent = self.table.get(slot).and_then(|c| c.parent());
        self.signal(found, kind, None, Some(parent.unwrap_or(slot)));
    }

    /// The first subflow of a connection.
    fn capable(&mut self, found: &Seen<'_>, slot: Slot) {
        let Some(conn) = self.table.get(slot) else {
            return;
        };
        if conn.parent().is_some() {
            return;
        }
        let connection = conn.connection(found.sight.time_ns);
        let parent = self.insert(connection);
        if let Some(conn) = self.table.get(slot) {
            conn.begins_connection(parent);
        }
    }

    /// A token of the connection that a subflow is of.
    fn learn(&mut self, slot: Slot, token: u32) {
        let Some(parent) = self.table.get(slot).and_then(|c| c.parent()) else {
            return;
        };
        // a connection of too many keys does not learn it
        if !self.table.know(parent, token_key(token)) {
            return;
        }
        for (early, ends) in self.early_joins.take(token) {
            self.join(early, token, ends);
        }
    }

    /// A further subflow between these two: the token is that of the one who is asked.
    fn join(&mut self, slot: Slot, token: u32, ends: (Address, Address)) {
        let Some(parent) = self.table.find(&token_key(token)) else {
            if self.early_joins.add(slot, token, ends) {
                self.limit(UNKNOWN);
            }
            return;
        };
        let Some(connection) = self.table.get(parent) else {
            return;
        };
        // the token is that of the one who is asked
        let asks_first = connection.is_joined_between(ends.0, ends.1);
        let Some(subflow) = self.table.get(slot) else {
            return;
        };
        if subflow.joins_connection(parent, asks_first)
            && let Some(connection) = self.table.get(parent)
        {
            connection.subflow_begins();
        }
    }
}
