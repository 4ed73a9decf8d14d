//! UDP, and what goes over it and survives a change of address: QUIC (RFC 9000), WireGuard, SCTP (RFC 6951).

use super::Engine;
use super::packet::{Seen, ends_key, fingerprint};
use crate::analyze::decode::{self, Decoded, Skip};
use crate::analyze::flows::item::Item;
use crate::analyze::flows::key::{Key, KeyKind, Slot};
use crate::analyze::flows::progress::What;
use crate::analyze::model::{Protocol, SignalKind};

/// Port of SCTP over UDP (RFC 6951 section 5.1).
const SCTP_PORT: u16 = 9899;

/// What a datagram says of the flow that it is of.
enum Content<'a> {
    /// QUIC with a long header: connection IDs of the destination and of the source.
    QuicLong {
        destination_id: &'a [u8],
        source_id: &'a [u8],
    },
    /// May be QUIC with a short header.
    QuicShort,
    /// WireGuard: index of the receiver, index of the sender, counter.
    Wireguard {
        receiver: Option<u32>,
        sender: Option<u32>,
        counter: Option<u64>,
    },
    Other,
}

impl Engine {
    pub(super) fn udp(&mut self, found: &Seen<'_>) -> Result<(), Skip> {
        let (source_port, destination_port, data, data_len) = decode::udp(&found.packet)?;
        let mut found = *found;
        found.sight.ports = (source_port, destination_port);
        // without what other fragments carry
        let in_packet = data_len.min(found.packet.payload_len.saturating_sub(8));
        if (source_port == SCTP_PORT || destination_port == SCTP_PORT) && data_len >= 16 {
            return self.sctp(&found, data, in_packet);
        }
        let key = ends_key(KeyKind::Udp, &found);
        let content = content(data, data_len);
        let known = self.table.find(&key);
        let slot = match known.filter(|&slot| !self.is_of_another(slot, &content)) {
            Some(slot) => {
                self.table.touch(slot);
                slot
            }
            None => match self.moved(&found, &content, data) {
                Some((slot, kind)) => {
                    self.table.know(slot, key);
                    self.table.touch(slot);
                    self.signal(&found, kind, None, Some(slot));
                    slot
                }
                None => self.new_flow(key, Protocol::Udp, &found),
            },
        };
        let missing = self.missing(data, in_packet);
        if missing > 0 {
            self.cuts.flow(slot.id, found.needed(missing));
        }
        self.datagram(&found, slot, &content, data, data_len);
        Ok(())
    }

    /// Bytes that are missing, at least, to tell of which flow a datagram is that was so long on the wire.
    fn missing(&self, data: &[u8], data_len: u32) -> usize {
        if data.len() >= data_len as usize {
            return 0;
        }
        let needed = match data {
            [] => 1,
            // of WireGuard: indexes and a counter
            [1..=4, rest @ ..] if rest.iter().take(3).all(|byte| *byte == 0) => 16,
            // of QUIC: a version, and two connection IDs of so many bytes (RFC 9000 section 17.2)
            [0xc0..=0xff, ..] => match quic_ids_end(data) {
                Ok(end) => end,
                Err(needed) => needed,
            },
            [0x40..=0x7f, ..] => 1 + self.quic_id_lengths.iter().copied().max().map_or(0, usize::from),
            _ => 0,
        };
        needed.min(data_len as usize).saturating_sub(data.len())
    }

    /// Whether the index of a datagram is another flow's than that of its ends. So it is where a peer had sent nothing
    /// before it moved: its first packet from the new endpoint began a flow, and the answer tells whose it is.
    fn is_of_another(&self, slot: Slot, content: &Content<'_>) -> bool {
        match content {
            Content::Wireguard {
                receiver: Some(index),
                counter: Some(_),
                ..
            } => self
                .table
                .find(&wireguard_key(*index))
                .is_some_and(|owner| owner != slot),
            _ => false,
        }
    }

    /// The flow that a datagram between unknown ends continues, by what identifies it at the receiver.
    fn moved(&mut self, found: &Seen<'_>, content: &Content<'_>, data: &[u8]) -> Option<(Slot, SignalKind)> {
        let (slot, kind) = match content {
            Content::Wireguard {
                receiver: Some(index),
                ..
            } => (
                self.table.find(&wireguard_key(*index))?,
                SignalKind::WireguardNewEndpoint,
            ),
            Content::QuicLong { destination_id, .. } => (
                self.table.find(&quic_key(destination_id)?)?,
                SignalKind::QuicNewPath,
            ),
            Content::QuicShort => {
                let lengths = self.quic_id_lengths;
                let slot = lengths.iter().filter(|&&len| len > 0).find_map(|&len| {
                    let id = data.get(1..=usize::from(len))?;
                    self.table.find(&quic_key(id)?)
                })?;
                (slot, SignalKind::QuicNewPath)
            }
            _ => return None,
        };
        let (source, destination) = found.pair();
        let moves = self.table.get(slot)?.moves_one_end(source, destination);
        moves.then_some((slot, kind))
    }

    fn datagram(&mut self, found: &Seen<'_>, slot: Slot, content: &Content<'_>, data: &[u8], data_len: u32) {
        let limits = self.limits();
        let compared = self.places.both_have().saturating_sub(8).min(COMPARED);
        let Some(conn) = self.table.get(slot) else {
            return;
        };
        let (source, destination) = found.pair();
        let direction = conn.direction(source, destination);
        conn.packet(direction, &found.sight);
        if conn.is_captured_twice(
            direction,
            &found.sight,
            datagram_copy(&found.packet, data, data_len),
        ) {
            return;
        }
        let mut learnt: [Option<Key>; 2] = [None; 2];
        let mut id_length = 0;
        match content {
            Content::QuicLong {
                destination_id,
                source_id,
            } if conn.turns_out(Protocol::Quic) => {
                // what an end calls itself, packets to it carry
                learnt = [quic_key(source_id), quic_key(destination_id)];
                id_length = source_id.len() as u8;
            }
            Content::Wireguard { receiver, sender, .. } if conn.turns_out(Protocol::Wireguard) => {
                learnt = [receiver.map(wireguard_key), sender.map(wireguard_key)];
            }
            _ => {}
        }
        // nobody is asked for keys who need not answer (WireGuard, section 6.4)
        if let Content::Wireguard { receiver: None, .. } = content
            && conn.protocol() == Protocol::Wireguard
        {
            conn.probe(direction, &found.sight, What::Handshake);
        }
        let counted = match content {
            Content::Wireguard {
                receiver: Some(index),
                counter: Some(counter),
                ..
            } if conn.protocol() == Protocol::Wireguard => {
                let seq = conn.wireguard_seq(direction, *index, *counter);
                // a keepalive is an empty packet with its authenticator
                Some((seq, data_len.saturating_sub(32)))
            }
            _ if conn.protocol() == Protocol::Wireguard => None,
            _ => {
                let seen = conn.data_packets(direction, found.sight.role);
                Some((seen as u32, data_len))
            }
        };
        if let Some((seq, bytes)) = counted {
            let mut item = Item::new(seq, 1, bytes, None);
            if found.sight.both && conn.protocol() != Protocol::Wireguard {
                // nothing in a datagram says which one it is: it goes by what it carries
                let there = data.len() >= compared.min(data_len as usize);
                let what = fingerprint(data, data_len, compared);
                item.number = if there {
                    conn.number_of_datagram(direction, found.sight.role, what, &limits)
                } else {
                    None
                };
            }
            conn.data(direction, &found.sight, item, 0, &limits);
        }
        for key in learnt.into_iter().flatten() {
            self.table.know(slot, key);
        }
        self.note_id_length(id_length);
    }

    /// Connection IDs of QUIC may be so long.
    fn note_id_length(&mut self, id_length: u8) {
        if id_length > 0 && !self.quic_id_lengths.contains(&id_length) {
            let free = self.quic_id_lengths.iter_mut().find(|l| **l == 0);
            if let Some(free) = free {
                *free = id_length;
            }
        }
    }
}

/// Bytes of a datagram by which it is known again, where both captures have them.
const COMPARED: usize = 64;

/// What copies of a datagram have in common that one host captures: beside what it begins with, its checksum and identification.
fn datagram_copy(packet: &Decoded<'_>, data: &[u8], data_len: u32) -> u64 {
    let checksum = packet.payload.get(6..8).and_then(|c| c.first_chunk());
    let checksum = u16::from_be_bytes(checksum.copied().unwrap_or_default());
    let of_packet = u64::from(packet.identification) << 16 | u64::from(checksum);
    fingerprint(data, data_len, COMPARED).rotate_left(17) ^ of_packet
}

fn content(data: &[u8], data_len: u32) -> Content<'_> {
    wireguard(data, data_len)
        .or_else(|| quic_long(data))
        .unwrap_or(match data.first() {
            Some(first) if first & 0xc0 == 0x40 => Content::QuicShort,
            _ => Content::Other,
        })
}

/// ```text
/// | type (1) | 0 (3) | 1: sender (4) ... ; 2: sender (4) | receiver (4) ... ; 3: receiver (4) ... ;
///                      4: receiver (4) | counter (8) | packet, padded to 16 bytes, and its authenticator (16) |
/// ```
fn wireguard(data: &[u8], data_len: u32) -> Option<Content<'_>> {
    let &[kind, 0, 0, 0, a, b, c, d, ..] = data.first_chunk::<8>()? else {
        return None;
    };
    let first = u32::from_le_bytes([a, b, c, d]);
    let second = || {
        data.get(8..)
            .and_then(|x| x.first_chunk())
            .map(|x| u32::from_le_bytes(*x))
    };
    let of = |receiver, sender, counter| {
        Some(Content::Wireguard {
            receiver,
            sender,
            counter,
        })
    };
    match (kind, data_len) {
        (1, 148) => of(None, Some(first), None),
        (2, 92) => of(second(), Some(first), None),
        (3, 64) => of(Some(first), None, None),
        (4, 32..) if data_len.is_multiple_of(16) => {
            let counter = data
                .get(8..)
                .and_then(|x| x.first_chunk())
                .map(|x| u64::from_le_bytes(*x))?;
            // nobody sends that many packets under one key
            if counter >> 48 != 0 {
                return None;
            }
            of(Some(first), None, Some(counter))
        }
        _ => None,
    }
}

/// A long header (RFC 8999 section 5.1) of a version that is known.
///
/// ```text
/// | 1 1 ... (1) | version (4) | length (1) | destination ID | length (1) | source ID |
/// ```
fn quic_long(data: &[u8]) -> Option<Content<'_>> {
    let &[first, v0, v1, v2, v3, len] = data.first_chunk()?;
    let version = u32::from_be_bytes([v0, v1, v2, v3]);
    if first & 0xc0 != 0xc0 || !is_quic_version(version) || len > 20 {
        return None;
    }
    let destination_id = data.get(6..6 + usize::from(len))?;
    let rest = data.get(6 + usize::from(len)..)?;
    let (&len, rest) = rest.split_first()?;
    let source_id = rest.get(..usize::from(len)).filter(|_| len <= 20)?;
    Some(Content::QuicLong {
        destination_id,
        source_id,
    })
}

/// Where the connection IDs of a long header end; as far as it has to be there to know, if it is not. Zero for what is none.
fn quic_ids_end(data: &[u8]) -> Result<usize, usize> {
    let Some(head) = data.first_chunk::<6>() else {
        return Err(6);
    };
    let [_, v0, v1, v2, v3, len] = *head;
    if !is_quic_version(u32::from_be_bytes([v0, v1, v2, v3])) || len > 20 {
        return Ok(0);
    }
    let source_at = 6 + usize::from(len);
    let source_len = data.get(source_at).ok_or(source_at + 1)?;
    Ok(source_at + 1 + usize::from(*source_len))
}

/// Versions of QUIC that are known: 1 and 2 (RFC 9000, RFC 9369) and drafts.
const fn is_quic_version(version: u32) -> bool {
    matches!(version, 1 | 0x6b33_43cf) || version >> 8 == 0x00ff_0000
}

/// Connection IDs shorter than this are too likely to be met by chance.
const SHORTEST_ID: usize = 4;

fn quic_key(id: &[u8]) -> Option<Key> {
    if !(SHORTEST_ID..=20).contains(&id.len()) {
        return None;
    }
    let mut bytes = [0; 32];
    bytes.get_mut(..id.len())?.copy_from_slice(id);
    let (low, high) = bytes.split_at(16);
    Some(Key {
        kind: KeyKind::QuicId,
        a: u128::from_be_bytes(*low.first_chunk()?),
        b: u128::from_be_bytes(*high.first_chunk()?),
        ports: id.len() as u32,
    })
}

fn wireguard_key(index: u32) -> Key {
    Key {
        kind: KeyKind::WireguardIndex,
        a: u128::from(index),
        b: 0,
        ports: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of WireGuard: receiver, sender, counter.
    fn indexes(kind: u8, len: u32, counter_top: u8) -> Option<(Option<u32>, Option<u32>, Option<u64>)> {
        let data = [kind, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0, counter_top, 0, 9];
        match wireguard(&data, len)? {
            Content::Wireguard {
                receiver,
                sender,
                counter,
            } => Some((receiver, sender, counter)),
            _ => None,
        }
    }

    #[test]
    fn messages_of_wireguard_are_known_by_type_and_length() {
        assert_eq!(indexes(1, 148, 0), Some((None, Some(1), None)));
        assert_eq!(indexes(2, 92, 0), Some((Some(0x102), Some(1), None)));
        assert_eq!(indexes(3, 64, 0), Some((Some(1), None, None)));
        for len in [32, 48, 1456] {
            assert_eq!(indexes(4, len, 0), Some((Some(1), None, Some(0x102))));
        }
        for (kind, len) in [
            (1, 147),
            (2, 148),
            (3, 92),
            (4, 16),
            (4, 33),
            (4, 31),
            (0, 32),
            (5, 64),
        ] {
            assert_eq!(indexes(kind, len, 0), None, "{kind} {len}");
        }
        assert_eq!(indexes(4, 32, 1), None);
        for at in 1..4 {
            let mut data = [3, 0, 0, 0, 1, 0, 0, 0];
            assert!(wireguard(&data, 64).is_some());
            data[at] = 1;
            assert!(wireguard(&data, 64).is_none());
        }
        assert!(wireguard(&[3, 0, 0, 0, 1, 0, 0], 64).is_none());
    }

    #[test]
    fn long_headers_of_quic_are_of_known_versions() {
        let long = |first: u8, version: u32, destination: usize, source: usize| {
            let mut data = vec![first];
            data.extend(version.to_be_bytes());
            data.push(destination as u8);
            data.resize(6 + destination, 5);
            data.push(source as u8);
            data.resize(7 + destination + source, 6);
            match quic_long(&data)? {
                Content::QuicLong {
                    destination_id,
                    source_id,
                } => Some((destination_id.to_vec(), source_id.to_vec())),
                _ => None,
            }
        };
        let ids = |a: usize, b: usize| Some((vec![5; a], vec![6; b]));
        for version in [1, 0x6b33_43cf, 0xff00_0000, 0xff00_001d] {
            assert_eq!(long(0xc0, version, 8, 4), ids(8, 4));
        }
        for version in [0, 2, 0xff01_0000, 0xfe00_0000] {
            assert_eq!(long(0xc0, version, 8, 4), None);
        }
        assert_eq!(long(0xff, 1, 20, 20), ids(20, 20));
        assert_eq!((long(0xc0, 1, 21, 4), long(0xc0, 1, 4, 21)), (None, None));
        assert_eq!((long(0x80, 1, 8, 4), long(0x40, 1, 8, 4)), (None, None));
        assert!(matches!(content(&[0x40, 1], 2), Content::QuicShort));
        assert!(matches!(content(&[0x7f], 1), Content::QuicShort));
        assert!(matches!(content(&[0x80], 1), Content::Other));
        assert!(matches!(content(&[0x3f], 1), Content::Other));
        assert!(matches!(content(&[], 0), Content::Other));
    }

    #[test]
    fn connection_ids_of_4_to_20_bytes_are_keys() {
        assert!(quic_key(&[1; 3]).is_none() && quic_key(&[1; 21]).is_none());
        let key = quic_key(&[1; 4]).unwrap();
        assert_eq!((key.a, key.b, key.ports), (0x0101_0101 << 96, 0, 4));
        let key = quic_key(&[1; 20]).unwrap();
        assert_eq!((key.b, key.ports), (0x0101_0101 << 96, 20));
        assert_eq!(wireguard_key(7).a, 7);
    }

    #[test]
    fn a_datagram_is_compared_by_its_length_and_its_first_64_bytes() {
        let data = [3; 80];
        let known = fingerprint(&data, 80, COMPARED);
        assert_ne!(known, fingerprint(&data, 81, COMPARED));
        let mut seen = std::collections::BTreeSet::from([known]);
        for bit in 0..80 * 8 {
            let mut other = data;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                seen.insert(fingerprint(&other, 80, COMPARED)),
                bit / 8 < 64,
                "bit {bit}"
            );
        }
    }
}
