//! Packets of a script to bytes, and packets of the endpoint held against a script.

use super::codec::encode;
use super::numbers::chunks;
use super::{SctpStack, addresses, compare};
use crate::drill::ast::{Body, Checksum, Direction, Packet, Payload, Sctp};
use crate::drill::layout::{Item, Value};
use crate::drill::stack::{Comparison, Refusal, Sent};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_proto::Instant;
use segue_proto::contract::InterfaceId;
use segue_wire::checksum::sctp_crc32c;
use segue_wire::sctp::{Chunk, NEXT_HEADER, SctpPacket};

const IPV6_HEADER: usize = 40;
const COMMON_HEADER: usize = 12;
const REFLECTED: u64 = 1;
/// Bytes that are written out.
const READABLE: usize = 16;

impl SctpStack {
    pub(super) fn inject_packet(&mut self, now: Instant, packet: &Packet) -> Result<(), Refusal> {
        let sctp = sctp_of(packet)?;
        let (from, to) = match packet.addresses {
            Some((from, to)) => (addresses::to_ipv6(from)?, addresses::to_ipv6(to)?),
            None => (self.remote[0], self.local[0]),
        };
        self.numbers.set_source(from);
        let (source_port, destination_port) = packet.ports.unwrap_or((self.ports.1, self.ports.0));
        let mut items = match &sctp.body {
            Body::Chunks(items) => items.clone(),
            Body::Bytes(_) => Vec::new(),
        };
        self.family.map(&mut items)?;
        let tag = self.injected_tag(sctp, &items);
        let body = match &sctp.body {
            Body::Bytes(bytes) => bytes.clone(),
            Body::Chunks(_) => self.body(&items)?,
        };
        let mut bytes = Vec::new();
        bytes.extend(source_port.to_be_bytes());
        bytes.extend(destination_port.to_be_bytes());
        bytes.extend(tag.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        let mut crc = sctp_crc32c(&bytes);
        match sctp.checksum {
            Checksum::Right => {}
            Checksum::Bad => crc[0] ^= 1,
            Checksum::Zero => crc = [0; 4],
        }
        bytes[8..COMMON_HEADER].copy_from_slice(&crc);
        self.numbers.note_injected(tag, &items, &bytes);
        let interface = self.local.iter().position(|l| *l == to).unwrap_or_default();
        // what does not parse, no driver hands on
        if let Ok(packet) = segue_wire::Packet::parse(&ipv6(from, to, &bytes)) {
            self.end.handle_packet(now, InterfaceId(interface as u8), packet);
        }
        Ok(())
    }

    /// Chunks to bytes; an AUTH chunk without its HMAC gets it from what follows.
    fn body(&mut self, items: &[Item]) -> Result<Vec<u8>, Refusal> {
        let offsets = self.numbers.inbound();
        let Some(at) = items.iter().position(|item| item.layout.name == "AUTH") else {
            return encode(items, offsets, &mut self.numbers);
        };
        let (before, rest) = items.split_at(at);
        let mut bytes = encode(before, offsets, &mut self.numbers)?;
        let (Some(key), Some(hmac_id)) = (rest[0].number("key"), rest[0].number("hmac_id")) else {
            return Refusal::new("an AUTH without key and hmac_id");
        };
        let auth = self.numbers.auth(key);
        let auth = auth.ok_or_else(|| Refusal("AUTH before both ends have offered it".to_owned()))?;
        let covered = encode(&rest[1..], offsets, &mut self.numbers)?;
        let covered = typed(&covered)
            .ok_or_else(|| Refusal("AUTH of chunks that no endpoint could read".to_owned()))?;
        match rest[0].value("val") {
            Some(Value::Any) => {
                for chunk in auth.sign_with(key as u16, hmac_id as u16, covered) {
                    chunk.emit(&mut bytes);
                }
            }
            _ => bytes.extend(encode(rest, offsets, &mut self.numbers)?),
        }
        Ok(bytes)
    }

    /// The verification tag of an injected packet: what the script says, or what belongs there (RFC 9260 section 8.5).
    fn injected_tag(&self, sctp: &Sctp, items: &[Item]) -> u32 {
        let reflected = items.first().is_some_and(reflects);
        match sctp.tag {
            // of the peer, whose numbers are the script's
            Some(tag) if reflected => tag,
            Some(tag) => self.numbers.real_tag(tag),
            None if items.iter().any(|item| item.layout.name == "INIT") => 0,
            None if reflected => self.numbers.peer_tags().last().copied().unwrap_or(0),
            None => self.numbers.tag(),
        }
    }

    pub(super) fn compare_packet(&mut self, due: &Packet, sent: &Sent) -> Result<Comparison, Refusal> {
        let sctp = sctp_of(due)?;
        if sctp.checksum != Checksum::Right {
            return Refusal::new("a packet of the endpoint without its CRC32c");
        }
        let differs = |difference: String| Ok(Comparison::Differs(difference));
        let Some(came) = Headers::read(&sent.bytes) else {
            return differs("no SCTP packet with a right CRC32c".to_owned());
        };
        if let Some((from, to)) = due.addresses {
            let named = (addresses::to_ipv6(from)?, addresses::to_ipv6(to)?);
            if named.0 != came.from {
                return differs(format!(
                    "from {}, not {from}",
                    self.family.shown(came.from.into())
                ));
            }
            if named.1 != came.to {
                return differs(format!("to {}, not {to}", self.family.shown(came.to.into())));
            }
        } else if !self.local.contains(&came.from) || !self.remote.contains(&came.to) {
            return differs("from or to an address that no line names".to_owned());
        }
        let ports = due.ports.unwrap_or(self.ports);
        if ports != came.ports {
            let ((a, b), (c, d)) = (came.ports, ports);
            return differs(format!("ports are {a} > {b}, not {c} > {d}"));
        }
        let mut items = match &sctp.body {
            Body::Bytes(bytes) if bytes[..] == came.sctp[COMMON_HEADER..] => return Ok(Comparison::Same),
            Body::Bytes(_) => return differs("other bytes".to_owned()),
            Body::Chunks(items) => items.clone(),
        };
        self.family.map(&mut items)?;
        let offsets = self.numbers.outbound();
        let Some(raw) = chunks(came.sctp, offsets, &items) else {
            return differs("chunks whose lengths do not fit".to_owned());
        };
        self.learn(&items, came.sctp);
        let Some(mut chunks) = chunks(came.sctp, self.numbers.outbound(), &items) else {
            return differs("chunks whose lengths do not fit".to_owned());
        };
        self.to_script_tags(&mut chunks);
        if let Comparison::Differs(difference) = compare::items(&items, &chunks) {
            return differs(difference);
        }
        if let Some(difference) = self.wrong_tag(sctp, &raw, came.tag) {
            return differs(difference);
        }
        Ok(self.wrong_hmac(&chunks, came.sctp))
    }

    /// An INIT or INIT ACK says the endpoint's tag and TSN.
    fn learn(&mut self, due: &[Item], sctp: &[u8]) {
        let real = chunks(sctp, super::codec::Offsets::default(), due);
        for (due, came) in due.iter().zip(real.unwrap_or_default()) {
            if due.layout == came.layout
                && ["INIT", "INIT_ACK"].contains(&came.layout.name)
                && let (Some(tag), Some(tsn)) = (came.number("tag"), came.number("tsn"))
            {
                self.numbers.learn(due, tag as u32, tsn as u32);
            }
        }
    }

    fn to_script_tags(&self, chunks: &mut [Item]) {
        for chunk in chunks {
            let fields: Vec<_> = chunk.layout.visible().collect();
            for (field, value) in fields.iter().zip(&mut chunk.values) {
                if field.name == "tag"
                    && let Value::Number(tag) = value
                {
                    *tag = self.numbers.script_tag(*tag as u32).into();
                }
            }
        }
    }

    /// What is wrong with a packet's verification tag, if anything (RFC 9260 section 8.5).
    fn wrong_tag(&self, due: &Sctp, chunks: &[Item], came: u32) -> Option<String> {
        let first = chunks.first()?;
        let fits = match (due.tag, first.layout.name) {
            (Some(tag), _) if reflects(first) => self.numbers.real_tag(tag) == came,
            (Some(tag), _) => tag == came,
            (None, "INIT") => came == 0,
            (None, _) if reflects(first) => came == self.numbers.injected_tag(),
            (None, "INIT_ACK") => self.numbers.peer_tags().last() == Some(&came),
            (None, _) => self.numbers.peer_tags().contains(&came),
        };
        let shown = self.numbers.script_tag(came);
        (!fits).then(|| match due.tag {
            Some(tag) => format!("the verification tag is {shown}, not {tag}"),
            None => format!("the verification tag is {shown}, which is not the peer's"),
        })
    }

    /// AUTH must cover what follows it, whatever the script says of its HMAC.
    fn wrong_hmac(&self, items: &[Item], sctp: &[u8]) -> Comparison {
        let Some(at) = items.iter().position(|item| item.layout.name == "AUTH") else {
            return Comparison::Same;
        };
        let covers = || {
            let auth = self.numbers.auth(items[at].number("key")?)?;
            let chunks = typed(&sctp[COMMON_HEADER..])?;
            Some(auth.covers(&chunks[at..]))
        };
        match covers() {
            Some(true) => Comparison::Same,
            _ => Comparison::Differs("AUTH: its HMAC is not that of the chunks behind it".to_owned()),
        }
    }

    pub(super) fn describe_packet(&self, sent: &Sent) -> String {
        let Some(came) = Headers::read(&sent.bytes) else {
            return "a packet that is not SCTP".to_owned();
        };
        let chunks = chunks(came.sctp, self.numbers.outbound(), &[]);
        let body = match chunks {
            Some(mut chunks) => {
                self.to_script_tags(&mut chunks);
                self.family.map_back(&mut chunks);
                shorten(&mut chunks);
                Body::Chunks(chunks)
            }
            None => Body::Bytes(came.sctp[COMMON_HEADER..].to_vec()),
        };
        let usual = (came.from, came.to) == (self.local[0], self.remote[0]);
        let addresses = [came.from, came.to].map(|a| self.family.shown(a.into()));
        let reflects = matches!(&body, Body::Chunks(chunks) if chunks.first().is_some_and(reflects));
        let expected = match &body {
            Body::Chunks(chunks) if chunks.first().is_some_and(|c| c.layout.name == "INIT") => came.tag == 0,
            _ if reflects => came.tag == self.numbers.injected_tag(),
            _ => self.numbers.peer_tags().contains(&came.tag),
        };
        Packet {
            direction: Direction::Out,
            outer: Vec::new(),
            ip: Vec::new(),
            addresses: (!usual).then_some((addresses[0], addresses[1])),
            ports: (came.ports != self.ports).then_some(came.ports),
            in_udp: None,
            payload: Payload::Sctp(Sctp {
                checksum: Checksum::Right,
                tag: (!expected).then(|| self.numbers.script_tag(came.tag)),
                body,
            }),
        }
        .to_string()
    }
}

/// The SCTP packet of a line that says nothing that the endpoint has not.
fn sctp_of(packet: &Packet) -> Result<&Sctp, Refusal> {
    if let Some(outer) = packet.outer.first() {
        return Refusal::new(format!("a packet in {outer}"));
    }
    if let Some(field) = packet.ip.first() {
        return Refusal::new(format!("{} in the IP header", field.name));
    }
    if packet.in_udp.is_some() {
        return Refusal::new("SCTP in UDP");
    }
    match &packet.payload {
        Payload::Sctp(sctp) => Ok(sctp),
        Payload::Icmp(_) => Refusal::new("an ICMP message of IPv4 to SCTP"),
        _ => Refusal::new("a packet of another protocol to SCTP"),
    }
}

/// Whether a chunk has the T bit, by which the verification tag is reflected.
fn reflects(item: &Item) -> bool {
    ["ABORT", "SHUTDOWN_COMPLETE"].contains(&item.layout.name)
        && item.number("flgs").is_some_and(|f| f & REFLECTED != 0)
}

/// Cookies and the like say nothing to who reads: `...` stands for them.
fn shorten(items: &mut [Item]) {
    for value in items.iter_mut().flat_map(|item| &mut item.values) {
        match value {
            Value::Bytes(bytes) if bytes.len() > READABLE => *value = Value::Any,
            Value::Items(items) => shorten(items),
            _ => {}
        }
    }
}

/// Chunks for what only the typed ones can do.
fn typed(chunks: &[u8]) -> Option<Vec<Chunk>> {
    let mut packet = [&[0; COMMON_HEADER], chunks].concat();
    let crc = sctp_crc32c(&packet);
    packet[8..COMMON_HEADER].copy_from_slice(&crc);
    let packet = SctpPacket::parse(&Bytes::from(packet)).ok()?;
    Some(packet.chunks.into_vec())
}

/// An IPv6 packet of SCTP.
fn ipv6(from: Ipv6Addr, to: Ipv6Addr, sctp: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((sctp.len() as u16).to_be_bytes());
    bytes.extend([NEXT_HEADER, 64]);
    bytes.extend(from.octets());
    bytes.extend(to.octets());
    bytes.extend(sctp);
    bytes
}

/// Headers of a packet of the endpoint.
struct Headers<'a> {
    from: Ipv6Addr,
    to: Ipv6Addr,
    ports: (u16, u16),
    tag: u32,
    /// From the common header on.
    sctp: &'a [u8],
}

impl<'a> Headers<'a> {
    /// `None` if it is not SCTP right behind IPv6, or its CRC32c is wrong.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (ip, sctp) = bytes.split_at_checked(IPV6_HEADER)?;
        let at = |i: usize| -> Option<[u8; 2]> { sctp.get(i..i + 2)?.try_into().ok() };
        let crc: [u8; 4] = sctp.get(8..COMMON_HEADER)?.try_into().ok()?;
        if ip[6] != NEXT_HEADER || crc != sctp_crc32c(sctp) {
            return None;
        }
        let address = |i: usize| -> Option<[u8; 16]> { ip.get(i..i + 16)?.try_into().ok() };
        Some(Self {
            from: address(8)?.into(),
            to: address(24)?.into(),
            ports: (u16::from_be_bytes(at(0)?), u16::from_be_bytes(at(2)?)),
            tag: u32::from_be_bytes(sctp.get(4..8)?.try_into().ok()?),
            sctp,
        })
    }
}
