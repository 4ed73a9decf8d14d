//! Chunks, parameters and causes from bytes and to bytes, by their layouts.
//!
//! What an endpoint gets is made here and not by `segue_wire`, since scripts send what no sender may; and what it sends is read
//! here, so that the two agree on the bytes and not on a common mistake.

use crate::drill::layout::{Class, Field, Item, Layout, Shape, Value};
use crate::drill::stack::Refusal;
use crate::drill::tables::{by_number, table};
use bytes::BufMut;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Type and length, with the flags of a chunk.
const HEADER_LEN: usize = 4;
const IPV4_ADDRESS: u16 = 5;
const IPV6_ADDRESS: u16 = 6;

/// What is added to a script's numbers for the real ones: of those that count from the initial TSN of who sends a chunk, and
/// of who receives it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Offsets {
    /// Of who sends.
    pub own: u32,
    /// Of who receives.
    pub peer: u32,
}

/// What stands for `...` in a packet that is to be made.
pub trait Fill {
    /// The bytes of a field of `layout`; `length` of them, if the script says how many.
    fn bytes(&mut self, layout: &Layout, length: Option<usize>) -> Option<Vec<u8>>;
}

/// The items that fill `bytes`, or `None` if their lengths do not fit. Items that `like` has as generic ones (`CHUNK`,
/// `PARAMETER`, `CAUSE`) are read as such.
pub fn decode(class: Class, bytes: &[u8], offsets: Offsets, like: &[Item]) -> Option<Vec<Item>> {
    let mut reader = Reader(bytes);
    let mut items = Vec::new();
    while !reader.0.is_empty() {
        let head = reader.take(HEADER_LEN)?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let value = reader.take(length.checked_sub(HEADER_LEN)?)?;
        let padding = length.next_multiple_of(4) - length;
        reader.take(padding.min(reader.0.len()))?;
        let (number, flags) = match class {
            Class::Chunk => (u16::from(head[0]), head[1]),
            _ => (u16::from_be_bytes([head[0], head[1]]), 0),
        };
        let generic = &table(class)[0];
        let like = like.get(items.len());
        let layout = if like.is_some_and(|item| item.layout == generic) {
            generic
        } else {
            by_number(class, number)
        };
        let raw = Raw {
            number,
            flags,
            length,
            value,
        };
        let values = decode_values(layout, raw, offsets, like);
        items.push(match values {
            Some(values) => Item { layout, values },
            None => Item {
                layout: generic,
                values: decode_values(generic, raw, offsets, None)?,
            },
        });
    }
    Some(items)
}

/// Type, flags, length and value of an item.
#[derive(Clone, Copy)]
struct Raw<'a> {
    number: u16,
    flags: u8,
    length: usize,
    value: &'a [u8],
}

fn decode_values(layout: &Layout, raw: Raw<'_>, offsets: Offsets, like: Option<&Item>) -> Option<Vec<Value>> {
    let mut reader = Reader(raw.value);
    let mut counts = Vec::new();
    let mut values = Vec::new();
    for field in layout.fields {
        if field.optional && reader.0.is_empty() {
            values.push(Value::Absent);
            continue;
        }
        if is_counted(field) && counts.is_empty() {
            counts = reader.counts(layout)?;
        }
        let like = match like.and_then(|item| item.values.get(values.len())) {
            Some(Value::Items(items)) => &items[..],
            _ => &[],
        };
        let items = |class, bytes| Some(Value::Items(decode(class, bytes, offsets, like)?));
        let value = match field.shape {
            Shape::Type => Value::Number(raw.number.into()),
            Shape::Flags(_) => Value::Number(raw.flags.into()),
            Shape::Length => Value::Number(raw.length as u64),
            Shape::Number(bytes) => Value::Number(reader.number(bytes)?),
            Shape::Tag => Value::Number(reader.number(4)?),
            Shape::OwnTsn => Value::Number(reader.tsn(offsets.own)?),
            Shape::PeerTsn => Value::Number(reader.tsn(offsets.peer)?),
            Shape::Reserved(bytes) => {
                reader.number(bytes)?;
                continue;
            }
            Shape::UserData => {
                reader.rest();
                continue;
            }
            Shape::Bytes => Value::Bytes(reader.rest().to_vec()),
            Shape::Text => Value::Text(String::from_utf8_lossy(reader.rest()).into_owned()),
            Shape::Numbers(bytes) => Value::Numbers(reader.numbers(bytes)?),
            Shape::AddressTypes => Value::Numbers(reader.numbers(2)?),
            Shape::ChunkTypes => Value::Numbers(reader.numbers(1)?),
            Shape::CountedNumbers => {
                let count = reader.number(4)?;
                let numbers = reader.numbers(2)?;
                (count == numbers.len() as u64).then_some(Value::Numbers(numbers))?
            }
            Shape::Blocks => {
                let count = counts.pop()?;
                Value::Groups((0..count).map(|_| reader.group(&[2, 2])).collect::<Option<_>>()?)
            }
            Shape::Duplicates => {
                let count = counts.pop()?;
                let tsns = (0..count).map(|_| reader.tsn(offsets.peer));
                Value::Numbers(tsns.collect::<Option<_>>()?)
            }
            Shape::Groups(widths) => {
                let mut groups = Vec::new();
                while !reader.0.is_empty() {
                    groups.push(reader.group(widths)?);
                }
                Value::Groups(groups)
            }
            Shape::Ipv4 => Value::Address(Ipv4Addr::from(reader.array::<4>()?).into()),
            Shape::Ipv6 => Value::Address(Ipv6Addr::from(reader.array::<16>()?).into()),
            Shape::AddressParameter => match (reader.number(2)? as u16, reader.number(2)?) {
                (IPV4_ADDRESS, 8) => Value::Address(Ipv4Addr::from(reader.array::<4>()?).into()),
                (IPV6_ADDRESS, 20) => Value::Address(Ipv6Addr::from(reader.array::<16>()?).into()),
                _ => return None,
            },
            Shape::Parameters => items(Class::Parameter, reader.rest())?,
            Shape::Causes => items(Class::Cause, reader.rest())?,
            Shape::Parameter => items(Class::Parameter, reader.rest())?,
            Shape::Chunk => items(Class::Chunk, reader.rest())?,
        };
        values.push(value);
    }
    reader.0.is_empty().then_some(values)
}

/// The bytes of items, each padded to a multiple of four; the last one only if it is a chunk.
///
/// # Errors
/// If a value is left open that nothing stands for.
pub fn encode(items: &[Item], offsets: Offsets, fill: &mut dyn Fill) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::new();
    for item in items {
        out.resize(out.len().next_multiple_of(4), 0);
        encode_item(item, offsets, fill, &mut out)?;
    }
    if items.iter().any(|item| item.layout.class == Class::Chunk) {
        out.resize(out.len().next_multiple_of(4), 0);
    }
    Ok(out)
}

fn encode_item(item: &Item, offsets: Offsets, fill: &mut dyn Fill, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let layout = item.layout;
    let mut number = layout.number;
    let (mut flags, mut length) = (0, None);
    let mut body = Vec::new();
    let mut counts_at = None;
    let mut visible = item.values.iter();
    for field in layout.fields {
        if is_counted(field) && counts_at.is_none() {
            counts_at = Some(body.len());
            body.resize(body.len() + 2 * (counted(layout).next_multiple_of(2)), 0);
        }
        match field.shape {
            Shape::Reserved(bytes) => body.put_bytes(0, bytes.into()),
            Shape::UserData => {
                let length: usize = length.ok_or_else(|| open(layout, "len"))?;
                let len = length.saturating_sub(HEADER_LEN + body.len());
                body.put_bytes(b'd', len);
            }
            _ => match (field.shape, visible.next().unwrap_or(&Value::Absent)) {
                (Shape::Type, Value::Number(n)) => number = Some(*n as u16),
                (Shape::Flags(_), Value::Number(n)) => flags = *n as u8,
                (Shape::Length, Value::Number(n)) => length = Some(*n as usize),
                (Shape::Flags(_) | Shape::Length, Value::Any) | (_, Value::Absent) => {}
                (Shape::Bytes, Value::Any) => {
                    let wanted = length.map(|l| l.saturating_sub(HEADER_LEN + body.len()));
                    let bytes = fill.bytes(layout, wanted);
                    body.extend(bytes.ok_or_else(|| open(layout, field.name))?);
                }
                (_, Value::Any) => return Err(open(layout, field.name)),
                (Shape::Blocks | Shape::Duplicates, value) => {
                    let count = match value {
                        Value::Groups(groups) => groups.len(),
                        Value::Numbers(numbers) => numbers.len(),
                        _ => 0,
                    };
                    let at = counts_at.unwrap_or_default();
                    body[at..at + 2].copy_from_slice(&(count as u16).to_be_bytes());
                    counts_at = Some(at + 2);
                    encode_value(field.shape, value, offsets, fill, &mut body)?;
                }
                (shape, value) => encode_value(shape, value, offsets, fill, &mut body)?,
            },
        }
    }
    let number = number.ok_or_else(|| open(layout, "type"))?;
    match layout.class {
        Class::Chunk => out.put_slice(&[number as u8, flags]),
        _ => out.put_u16(number),
    }
    out.put_u16(length.unwrap_or(HEADER_LEN + body.len()) as u16);
    out.extend(body);
    Ok(())
}

fn encode_value(
    shape: Shape,
    value: &Value,
    offsets: Offsets,
    fill: &mut dyn Fill,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let put = |out: &mut Vec<u8>, number: u64, bytes: u8| out.put_uint(number, bytes.into());
    match (shape, value) {
        (Shape::Number(bytes), Value::Number(n)) => put(out, *n, bytes),
        (Shape::Tag, Value::Number(n)) => put(out, *n, 4),
        (Shape::OwnTsn, Value::Number(n)) => out.put_u32((*n as u32).wrapping_add(offsets.own)),
        (Shape::PeerTsn, Value::Number(n)) => out.put_u32((*n as u32).wrapping_add(offsets.peer)),
        (_, Value::Bytes(bytes)) => out.put_slice(bytes),
        (_, Value::Text(text)) => out.put_slice(text.as_bytes()),
        (Shape::CountedNumbers, Value::Numbers(numbers)) => {
            out.put_u32(numbers.len() as u32);
            numbers.iter().for_each(|n| put(out, *n, 2));
        }
        (Shape::Duplicates, Value::Numbers(numbers)) => numbers
            .iter()
            .for_each(|n| out.put_u32((*n as u32).wrapping_add(offsets.peer))),
        (Shape::Numbers(bytes), Value::Numbers(numbers)) => numbers.iter().for_each(|n| put(out, *n, bytes)),
        (Shape::AddressTypes, Value::Numbers(numbers)) => numbers.iter().for_each(|n| put(out, *n, 2)),
        (Shape::ChunkTypes, Value::Numbers(numbers)) => numbers.iter().for_each(|n| put(out, *n, 1)),
        (Shape::Blocks, Value::Groups(groups)) => groups.iter().flatten().for_each(|n| put(out, *n, 2)),
        (Shape::Groups(widths), Value::Groups(groups)) => groups
            .iter()
            .flat_map(|group| group.iter().zip(widths))
            .for_each(|(n, width)| put(out, *n, *width)),
        (Shape::AddressParameter, Value::Address(address)) => {
            let (number, len) = match address {
                IpAddr::V4(_) => (IPV4_ADDRESS, 8),
                IpAddr::V6(_) => (IPV6_ADDRESS, 20),
            };
            out.put_u16(number);
            out.put_u16(len);
            put_address(out, *address);
        }
        (_, Value::Address(address)) => put_address(out, *address),
        (_, Value::Items(items)) => {
            out.extend(encode(items, offsets, fill)?);
        }
        (shape, value) => unreachable!("the parser gives {shape:?} no {value:?}"),
    }
    Ok(())
}

fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => out.put_slice(&address.octets()),
        IpAddr::V6(address) => out.put_slice(&address.octets()),
    }
}

fn open(layout: &Layout, field: &str) -> Refusal {
    Refusal(format!(
        "`{field}=...` of {} in a packet that is to be made",
        layout.name
    ))
}

const fn is_counted(field: &Field) -> bool {
    matches!(field.shape, Shape::Blocks | Shape::Duplicates)
}

fn counted(layout: &Layout) -> usize {
    layout.fields.iter().filter(|f| is_counted(f)).count()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self, bytes: u8) -> Option<u64> {
        let bytes = self.take(bytes.into())?;
        Some(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    fn tsn(&mut self, offset: u32) -> Option<u64> {
        let tsn = self.number(4)? as u32;
        Some(tsn.wrapping_sub(offset).into())
    }

    fn numbers(&mut self, bytes: u8) -> Option<Vec<u64>> {
        let mut numbers = Vec::new();
        while !self.0.is_empty() {
            numbers.push(self.number(bytes)?);
        }
        Some(numbers)
    }

    fn group(&mut self, widths: &[u8]) -> Option<Vec<u64>> {
        widths.iter().map(|width| self.number(*width)).collect()
    }

    /// The counts of a layout's lists, the first one last.
    fn counts(&mut self, layout: &Layout) -> Option<Vec<u64>> {
        let lists = counted(layout);
        let mut counts = Vec::new();
        for _ in 0..lists {
            counts.push(self.number(2)?);
        }
        self.take(2 * (lists % 2))?;
        counts.reverse();
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drill::ast::{Action, Body, Payload};
    use crate::drill::parse::parse;
    use bytes::Bytes;
    use segue_wire::sctp::SctpPacket;

    struct Nothing;
    impl Fill for Nothing {
        fn bytes(&mut self, _: &Layout, length: Option<usize>) -> Option<Vec<u8>> {
            length.map(|length| vec![0; length])
        }
    }

    fn items(chunks: &str) -> Vec<Item> {
        let script = parse("t.pkt", &format!("+0 < sctp: {chunks}"), &[]).unwrap();
        match &script.events[0].action {
            Action::Packet(packet) => match &packet.payload {
                Payload::Sctp(sctp) => match &sctp.body {
                    Body::Chunks(chunks) => chunks.clone(),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    const CHUNKS: &[&str] = &[
        "DATA[flgs=UBE, len=21, tsn=7, sid=1, ssn=2, ppid=3]",
        "SACK[flgs=0, cum_tsn=7, a_rwnd=9, gaps=[2:3, 5:5], dups=[1, 2, 3]]",
        "NR_SACK[flgs=0, cum_tsn=7, a_rwnd=9, gaps=[2:3], nr_gaps=[5:6, 8:9], dups=[4]]",
        "INIT[flgs=0, tag=1, a_rwnd=2, os=3, is=4, tsn=5, IPV6_ADDRESS[addr=2001:db8::1], \
         SUPPORTED_ADDRESS_TYPES[types=[IPv6, IPv4]], COOKIE_PRESERVATIVE[incr=7], HOSTNAME_ADDRESS[addr=\"a.b\"], \
         SUPPORTED_EXTENSIONS[types=[ASCONF, RECONFIG]], PARAMETER[type=0xc0cc, len=5, val=[0x01]]]",
        "ABORT[flgs=T, MISSING_MANDATORY_PARAMETER[types=[7, 8]], STALE_COOKIE_ERROR[staleness=4]]",
        "ERROR[flgs=0, UNRECOGNIZED_CHUNK_TYPE[chk=CHUNK[type=0xef, flgs=0, len=5, val=[0x01]]]]",
        "ABORT[flgs=0, UNRESOLVABLE_ADDRESS[param=HOSTNAME_ADDRESS[addr=\"a.b\"]]]",
        "SHUTDOWN[flgs=0, cum_tsn=9]; COOKIE_ACK[flgs=0]; SHUTDOWN_COMPLETE[flgs=T]",
        "ASCONF[flgs=0, sn=3, addr=2001:db8::1, ADD_IP_ADDRESS[id=1, addr=2001:db8::2], \
         DELETE_IP_ADDRESS[id=2, addr=2001:db8::3]]",
        "RECONFIG[flgs=0, OUTGOING_SSN_RESET[req_sn=1, resp_sn=2, last_tsn=3, sids=[4, 5]]]",
        "FORWARD_TSN[cum_tsn=3, ids=[{1,2}]]",
        "HEARTBEAT[flgs=0, HEARTBEAT_INFORMATION[len=9, val=[0x01, 0x02, 0x03, 0x04, 0x05]]]; COOKIE_ECHO[flgs=0, len=5, val=[0x07]]",
    ];

    #[test]
    fn what_is_made_is_what_is_read() {
        for text in CHUNKS {
            let offsets = Offsets {
                own: 1000,
                peer: u32::MAX,
            };
            let sent = items(text);
            let bytes = encode(&sent, offsets, &mut Nothing).unwrap();
            assert_eq!(bytes.len() % 4, 0, "{text}");
            assert_eq!(decode(Class::Chunk, &bytes, offsets, &[]), Some(sent), "{text}");
        }
    }

    /// The machines' own reader and writer, which were tested on captured packets, have the same bytes.
    #[test]
    fn bytes_are_those_of_the_wire_format() {
        for text in CHUNKS {
            let chunks = encode(&items(text), Offsets::default(), &mut Nothing).unwrap();
            let mut packet = [vec![0; 12], chunks].concat();
            let crc = segue_wire::checksum::sctp_crc32c(&packet);
            packet[8..12].copy_from_slice(&crc);
            let read = SctpPacket::parse(&Bytes::from(packet.clone())).expect(text);
            let mut again = Vec::new();
            read.emit(&mut again);
            assert_eq!(again, packet, "{text}");
        }
    }

    #[test]
    fn a_generic_item_is_read_as_the_script_has_it() {
        let like =
            items("ERROR[flgs=0, UNRECOGNIZED_PARAMETERS[params=[PARAMETER[type=0xc000, len=4, val=[]]]]]");
        let bytes = encode(&like, Offsets::default(), &mut Nothing).unwrap();
        assert_eq!(
            decode(Class::Chunk, &bytes, Offsets::default(), &like),
            Some(like)
        );
        let own = decode(Class::Chunk, &bytes, Offsets::default(), &[]).unwrap();
        assert_eq!(
            own[0].to_string(),
            "ERROR[flgs=0, UNRECOGNIZED_PARAMETERS[params=[FORWARD_TSN_SUPPORTED[]]]]"
        );
    }

    #[test]
    fn an_item_that_does_not_fit_its_layout_is_a_generic_one() {
        let short = decode(Class::Chunk, &[7, 0, 0, 6, 1, 2], Offsets::default(), &[]).unwrap();
        assert_eq!(
            short[0].to_string(),
            "CHUNK[type=SHUTDOWN, flgs=0, len=6, val=[0x01, 0x02]]"
        );
        assert_eq!(
            decode(Class::Chunk, &[7, 0, 0, 9, 1, 2], Offsets::default(), &[]),
            None
        );
        assert_eq!(decode(Class::Chunk, &[7, 0, 0, 3], Offsets::default(), &[]), None);
    }
}
