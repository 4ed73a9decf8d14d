//! SCTP (RFC 9260): associations are found by their verification tags, whatever addresses they use; ASCONF (RFC 5061).

use super::Engine;
use super::packet::{Seen, ends_key, fingerprint};
use crate::analyze::decode::{Address, Skip};
use crate::analyze::flows::conn::Conn;
use crate::analyze::flows::item::{Item, Limits};
use crate::analyze::flows::key::{Key, KeyKind, Slot};
use crate::analyze::flows::paths::{Role, Sight};
use crate::analyze::flows::progress::What;
use crate::analyze::model::{Protocol, SignalKind};
use segue_wire::sctp::chunk_type::{
    ABORT, ASCONF, ASCONF_ACK, COOKIE_ECHO, DATA, HEARTBEAT, I_DATA, INIT, INIT_ACK, NR_SACK, SACK, SHUTDOWN,
    SHUTDOWN_ACK, SHUTDOWN_COMPLETE,
};
use segue_wire::sctp::parameter_type::{
    ADD_IP_ADDRESS, DELETE_IP_ADDRESS, IPV4_ADDRESS, IPV6_ADDRESS, SET_PRIMARY_ADDRESS,
};

/// Bytes of a packet by which a copy of it is known, its checksum among them.
const COMPARED: usize = 64;

/// A packet of an association.
#[derive(Clone, Copy)]
struct Packet {
    slot: Slot,
    direction: usize,
    tag: u32,
}

impl Engine {
    /// A packet from its common header on, so long on the wire.
    ///
    /// ```text
    /// | source port (2) | destination port (2) | verification tag (4) | checksum (4) | chunks ...
    /// ```
    pub(super) fn sctp(&mut self, found: &Seen<'_>, payload: &[u8], wire_len: u32) -> Result<(), Skip> {
        let &[s0, s1, d0, d1, t0, t1, t2, t3, ..] = payload.first_chunk::<12>().ok_or(Skip::CutOff)?;
        let mut found = *found;
        found.sight.ports = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        let tag = u32::from_be_bytes([t0, t1, t2, t3]);
        let chunks = payload.get(12..).unwrap_or_default();
        let first = chunks.first().copied();
        let slot = self.association(&found, tag, first == Some(INIT), chunks);
        let Some(slot) = self.restarted(slot, &found, tag, first) else {
            return Ok(());
        };
        let Some(conn) = self.table.get(slot) else {
            return Ok(());
        };
        let (source, destination) = found.pair();
        let direction = conn.tagged(tag, source, destination);
        conn.packet(direction, &found.sight);
        let what = fingerprint(payload, wire_len, COMPARED).rotate_left(17);
        if conn.is_captured_twice(
            direction,
            &found.sight,
            what ^ u64::from(found.packet.identification),
        ) {
            return Ok(());
        }
        let missing = missing(chunks, (wire_len as usize).saturating_sub(12));
        if missing > 0 {
            self.cuts.flow(slot.id, found.needed(missing));
        }
        let packet = Packet { slot, direction, tag };
        self.chunks(&found, packet, chunks)
    }

    /// The association of a packet.
    fn association(&mut self, found: &Seen<'_>, tag: u32, init: bool, chunks: &[u8]) -> Slot {
        if tag != 0
            && let Some(slot) = self.table.find(&tag_key(tag, found.sight.ports))
        {
            self.table.touch(slot);
            return slot;
        }
        let key = ends_key(KeyKind::Sctp, found);
        let mut slot = self.flow(key, Protocol::Sctp, found);
        let new_tag = chunks
            .get(4..)
            .and_then(|b| b.first_chunk())
            .map(|b| u32::from_be_bytes(*b));
        let ports = found.sight.ports;
        let other = self.table.get(slot).is_some_and(|conn| {
            let (source, destination) = found.pair();
            let direction = conn.direction(source, destination);
            init && conn.is_replaced_by_init(direction, new_tag)
        });
        if other {
            self.end(slot);
            slot = self.flow(key, Protocol::Sctp, found);
        }
        if tag != 0 {
            self.table.know(slot, tag_key(tag, ports));
        }
        slot
    }

    /// The association that a packet with this tag and first chunk is of, where the one between its ends may have been
    /// restarted; nothing if it is of one that is over, or that nobody has agreed upon.
    fn restarted(&mut self, slot: Slot, found: &Seen<'_>, tag: u32, first: Option<u8>) -> Option<Slot> {
        let conn = self.table.get(slot)?;
        if matches!(first, Some(INIT | INIT_ACK)) {
            return Some(slot);
        }
        let (source, destination) = found.pair();
        let shown = found.packet.identity.into();
        let echoes = first == Some(COOKIE_ECHO);
        // an ABORT is all that comes of an INIT that is refused (RFC 9260 section 5.2.2)
        if first != Some(ABORT)
            && let Some(next) = conn.restarted(tag, echoes, [source, destination], shown)
        {
            // what is still under way of the one before is known, too, by whatever way it comes
            let keys = [tag_keys(conn), tag_keys(&next)];
            self.end(slot);
            let slot = self.insert(next);
            self.table.know(slot, ends_key(KeyKind::Sctp, found));
            for key in keys.into_iter().flatten().flatten() {
                self.table.know(slot, key);
            }
            return Some(slot);
        }
        (!conn.is_none_of(tag, source, destination)).then_some(slot)
    }

    fn chunks(&mut self, found: &Seen<'_>, packet: Packet, mut rest: &[u8]) -> Result<(), Skip> {
        let limits = self.limits();
        while let Some(&[kind, _, l0, l1]) = rest.first_chunk() {
            let len = usize::from(u16::from_be_bytes([l0, l1]));
            if len < 4 {
                return Err(Skip::Malformed);
            }
            // a snap length may cut a chunk off behind its header
            let chunk = rest.get(..len).unwrap_or(rest);
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
            self.chunk(found, packet, kind, chunk, len, &limits)?;
        }
        Ok(())
    }

    /// A chunk of this type, so long on the wire.
    fn chunk(
        &mut self,
        found: &Seen<'_>,
        packet: Packet,
        kind: u8,
        chunk: &[u8],
        len: usize,
        limits: &Limits,
    ) -> Result<(), Skip> {
        let Packet { slot, direction, .. } = packet;
        let word = |at: usize| {
            chunk
                .get(at..)
                .and_then(|b| b.first_chunk())
                .map(|b| u32::from_be_bytes(*b))
        };
        match kind {
            DATA | I_DATA => {
                let header = if kind == DATA { 16 } else { 20 };
                let (Some(tsn), Some(bytes)) = (word(4), len.checked_sub(header)) else {
                    return Err(Skip::CutOff);
                };
                let item = Item::new(tsn, 1, bytes as u32, None);
                if let Some(conn) = self.table.get(slot) {
                    conn.data(direction, &found.sight, item, 0, limits);
                }
            }
            SACK | NR_SACK => {
                if let (Some(cumulative), Some(conn)) = (word(4), self.table.get(slot)) {
                    let (beyond, closed) = (gap_acks(kind, chunk), word(8) == Some(0));
                    conn.acknowledged(
                        direction,
                        &found.sight,
                        cumulative.wrapping_add(1),
                        beyond,
                        closed,
                    );
                }
            }
            INIT | INIT_ACK => {
                if let (Some(tag), Some(tsn)) = (word(4), word(16)) {
                    self.initiate(found, packet, tag, tsn);
                }
            }
            HEARTBEAT => {
                if let Some(conn) = self.table.get(slot) {
                    conn.probe(direction, &found.sight, What::Heartbeat);
                }
            }
            ASCONF => {
                if let Some(conn) = self.table.get(slot) {
                    conn.probe(direction, &found.sight, What::Asconf);
                }
                self.asconf(found, slot, direction, chunk);
            }
            // who says so has nothing outstanding (RFC 9260 section 9.2)
            SHUTDOWN | SHUTDOWN_ACK => {
                if let Some(conn) = self.table.get(slot) {
                    conn.closes(direction);
                }
            }
            ASCONF_ACK => {
                let kind = SignalKind::AsconfAcknowledgement;
                self.numbered_signal(found, kind, None, Some(slot), (false, word(4)));
            }
            ABORT => {
                if let Some(conn) = self.table.get(slot) {
                    conn.resets(direction, found.sight.time_ns);
                }
            }
            SHUTDOWN_COMPLETE => {
                if let Some(conn) = self.table.get(slot) {
                    conn.is_shut_down();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// INIT or INIT ACK: the tag that the other direction will carry, and the first TSN of this one.
    fn initiate(&mut self, found: &Seen<'_>, packet: Packet, tag: u32, tsn: u32) {
        let Sight { ports, time_ns, .. } = found.sight;
        let Some(conn) = self.table.get(packet.slot) else {
            return;
        };
        if conn.initiates(packet.direction, packet.tag, (tag, tsn), time_ns) {
            self.table.know(packet.slot, tag_key(tag, (ports.1, ports.0)));
        }
    }

    /// ```text
    /// | type (1) | flags (1) | length (2) | serial number (4) | address parameter | parameters ...
    /// ```
    fn asconf(&mut self, found: &Seen<'_>, slot: Slot, direction: usize, chunk: &[u8]) {
        let serial = chunk
            .get(4..)
            .and_then(|b| b.first_chunk())
            .map(|b| u32::from_be_bytes(*b));
        let mut rest = chunk.get(8..).unwrap_or_default();
        let mut first = true;
        while let Some(&[k0, k1, l0, l1]) = rest.first_chunk() {
            let len = usize::from(u16::from_be_bytes([l0, l1]));
            let Some(parameter) = rest.get(..len).filter(|_| len >= 4) else {
                return;
            };
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
            if core::mem::take(&mut first) {
                continue;
            }
            let kind = match u16::from_be_bytes([k0, k1]) {
                ADD_IP_ADDRESS => SignalKind::AsconfAdd,
                DELETE_IP_ADDRESS => SignalKind::AsconfDelete,
                SET_PRIMARY_ADDRESS => SignalKind::AsconfSetPrimary,
                _ => continue,
            };
            // | type, length | correlation id (4) | address parameter |
            let about = parameter.get(8..).and_then(address);
            self.numbered_signal(found, kind, about, Some(slot), (true, serial));
            if kind != SignalKind::AsconfAdd
                && let Some(conn) = self.table.get(slot)
            {
                conn.path_left(found.sight.time_ns);
            }
            // the one who is told sends its data there from now on
            if kind == SignalKind::AsconfSetPrimary
                && found.sight.role != Role::Sender
                && let Some(to) = about
                && let Some(conn) = self.table.get(slot)
            {
                conn.announced(1 - direction, to, &found.sight);
            }
        }
    }
}

/// Bytes that are missing, at least, of what has to be known of chunks that were so long on the wire.
fn missing(chunks: &[u8], wire_len: usize) -> usize {
    if chunks.len() >= wire_len {
        return 0;
    }
    let mut at = 0;
    while let Some(&[kind, _, l0, l1]) = chunks.get(at..).and_then(|c| c.first_chunk()) {
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        // what a chunk carries need not be there, but for what is read of it
        let read = match kind {
            DATA => 16,
            I_DATA | INIT | INIT_ACK => 20,
            SACK | NR_SACK | ASCONF | ASCONF_ACK => len,
            _ => 4,
        };
        let end = at + read.min(len);
        if len < 4 || end > chunks.len() {
            return end.saturating_sub(chunks.len()).max(1);
        }
        at += len.next_multiple_of(4);
    }
    // padding behind the last is none of a chunk
    if at + 4 > wire_len {
        0
    } else {
        (at + 4).saturating_sub(chunks.len())
    }
}

/// Gap ack blocks: how many TSNs they acknowledge, and the one behind the highest.
///
/// ```text
/// | type, flags, length (4) | cumulative TSN ack (4) | a_rwnd (4) | blocks (2) | duplicates (2) | start, end (4) ...
/// ```
fn gap_acks(kind: u8, chunk: &[u8]) -> Option<(u32, u32)> {
    let cumulative = chunk.get(4..)?.first_chunk().map(|b| u32::from_be_bytes(*b))?;
    let &[c0, c1] = chunk.get(12..)?.first_chunk()?;
    // NR-SACK counts its two kinds of blocks apart, one after the other
    let &[n0, n1] = chunk.get(14..)?.first_chunk()?;
    let more = if kind == NR_SACK {
        u16::from_be_bytes([n0, n1])
    } else {
        0
    };
    let blocks = usize::from(u16::from_be_bytes([c0, c1])) + usize::from(more);
    let from = if kind == NR_SACK { 20 } else { 16 };
    let blocks = chunk.get(from..)?.chunks_exact(4).take(blocks);
    let blocks = blocks.map(|b| {
        (
            u32::from(b[0]) << 8 | u32::from(b[1]),
            u32::from(b[2]) << 8 | u32::from(b[3]),
        )
    });
    let (count, highest) = blocks.fold((0, 0), |(count, highest), (start, end)| {
        (count + (end + 1).saturating_sub(start), end.max(highest))
    });
    (count > 0).then(|| (count, cumulative.wrapping_add(highest + 1)))
}

/// Keys of an association by the tags that are known of it.
fn tag_keys(conn: &Conn) -> [Option<Key>; 2] {
    let [x, y] = conn.parties().ports();
    let [there, back] = conn.tags();
    [(there, (x, y)), (back, (y, x))].map(|(tag, ports)| (tag != 0).then(|| tag_key(tag, ports)))
}

/// Key of the direction that carries a tag.
fn tag_key(tag: u32, ports: (u16, u16)) -> Key {
    Key {
        kind: KeyKind::SctpTag,
        a: u128::from(tag),
        b: 0,
        ports: u32::from(ports.0) << 16 | u32::from(ports.1),
    }
}

/// An address parameter (RFC 9260 sections 3.3.2.1.1 and 3.3.2.1.2).
fn address(parameter: &[u8]) -> Option<Address> {
    let &[k0, k1, _, _] = parameter.first_chunk()?;
    let value = parameter.get(4..)?;
    match u16::from_be_bytes([k0, k1]) {
        IPV4_ADDRESS => value.first_chunk().map(|b| Address::v4(*b)),
        IPV6_ADDRESS => value.first_chunk().map(|b| Address::v6(*b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_ack_blocks_are_counted_and_the_highest_is_known() {
        let chunk = |gaps: u8, more: u8, rest: &[u8]| {
            [&[3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, 9, 0, gaps, 0, more][..], rest].concat()
        };
        let blocks = [0, 2, 0, 4, 1, 0, 1, 1];
        assert_eq!(gap_acks(SACK, &chunk(0, 0, &[])), None);
        assert_eq!(gap_acks(SACK, &chunk(1, 0, &blocks)), Some((3, 0x105)));
        assert_eq!(gap_acks(SACK, &chunk(2, 0, &blocks)), Some((5, 0x202)));
        // duplicates are no blocks, those of NR-SACK are behind four more bytes
        assert_eq!(gap_acks(SACK, &chunk(1, 1, &blocks)), Some((3, 0x105)));
        let further = [&[0; 4][..], &blocks].concat();
        assert_eq!(gap_acks(NR_SACK, &chunk(1, 0, &further)), Some((3, 0x105)));
        assert_eq!(gap_acks(NR_SACK, &chunk(1, 1, &further)), Some((5, 0x202)));
        assert_eq!(gap_acks(NR_SACK, &chunk(0, 0, &further)), None);
        assert_eq!(gap_acks(SACK, &chunk(1, 0, &[0, 5, 0, 3])), None);
        assert_eq!(
            gap_acks(SACK, &chunk(2, 0, &[0, 9, 0, 9, 0, 2, 0, 2])),
            Some((2, 0x10a))
        );
        assert_eq!(gap_acks(SACK, &chunk(1, 0, &[])[..15]), None);
    }

    #[test]
    fn addresses_and_tags_are_read_as_they_are() {
        assert_eq!(
            address(&[0, 5, 0, 8, 10, 0, 0, 1]),
            Some(Address::v4([10, 0, 0, 1]))
        );
        let six = [&[0, 6, 0, 20][..], &[7; 16]].concat();
        assert_eq!(address(&six), Some(Address::v6([7; 16])));
        assert_eq!(
            (address(&six[..19]), address(&[0, 5, 0, 8, 10, 0, 0])),
            (None, None)
        );
        assert_eq!(address(&[0, 7, 0, 8, 10, 0, 0, 1]), None);
        let key = tag_key(9, (0x1234, 0x00ff));
        assert_eq!((key.a, key.b, key.ports), (9, 0, 0x1234_00ff));
        assert_eq!(tag_key(9, (1, 3)).ports, 0x1_0003);
    }
}
