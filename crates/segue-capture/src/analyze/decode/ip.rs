//! IPv4 (RFC 791), IPv6 with its extension headers (RFC 8200), tunnels of either in either (RFC 2003, 2473, 4213), and what
//! mobility puts into them: Home Address option and type 2 routing header (RFC 6275 sections 6.3 and 6.4), nonce option
//! (RFC 6744).

use super::packet::{Address, Decoded, Marks, Skip};
use crate::pcapng::Direction;

/// Tunnels in tunnels.
const MAX_DEPTH: usize = 4;

/// Extension headers in a packet.
const MAX_EXTENSIONS: usize = 16;

const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const ESP: u8 = 50;
const HOME_ADDRESS_OPTION: u8 = 0xc9;
const NONCE_OPTION: u8 = 0x8b;

/// Reads an IP packet and what is tunnelled in it. `wire_len` bounds its length where its header does not say.
pub(super) fn decode(
    packet: &[u8],
    wire_len: u32,
    direction: Option<Direction>,
) -> Result<Decoded<'_>, Skip> {
    let first = whole_or_first(one(packet, wire_len)?)?;
    let mut decoded = Decoded { direction, ..first };
    for _ in 0..MAX_DEPTH {
        let (skip, inside) = match decoded.protocol {
            IPV4_IN_IP | IPV6_IN_IP => (0, true),
            GRE => match gre(decoded.payload) {
                Some(len) => (len, true),
                None => (0, false),
            },
            ESP => return Err(Skip::Encrypted),
            _ => (0, false),
        };
        if !inside {
            return Ok(decoded);
        }
        if decoded.fragment {
            return Err(Skip::Fragment);
        }
        let payload = decoded.payload.get(skip..).ok_or(Skip::CutOff)?;
        let inner = one(payload, decoded.payload_len.saturating_sub(skip as u32))?;
        let inner = whole_or_first(inner)?;
        decoded = Decoded {
            outer: first.outer,
            direction,
            marks: Marks {
                tunnelled: true,
                route_optimised: inner.marks.route_optimised || decoded.marks.route_optimised,
                ilnp: inner.marks.ilnp,
            },
            ..inner
        };
    }
    Err(Skip::TooDeep)
}

/// A fragment other than the first, by its own header.
pub(super) fn later_fragment(
    packet: &[u8],
    wire_len: u32,
    direction: Option<Direction>,
) -> Option<Decoded<'_>> {
    let decoded = one(packet, wire_len).ok().filter(|d| d.offset > 0)?;
    Some(Decoded { direction, ..decoded })
}

/// What another fragment carries says nothing of itself.
const fn whole_or_first(packet: Decoded<'_>) -> Result<Decoded<'_>, Skip> {
    if packet.offset > 0 {
        Err(Skip::Fragment)
    } else {
        Ok(packet)
    }
}

/// Source and destination of a packet's first header.
pub(super) fn outer(packet: &[u8]) -> Option<(Address, Address)> {
    let four = |at: usize| packet.get(at..)?.first_chunk().map(|b| Address::v4(*b));
    let sixteen = |at: usize| packet.get(at..)?.first_chunk().map(|b| Address::v6(*b));
    match packet.first()? >> 4 {
        4 => Some((four(12)?, four(16)?)),
        6 => Some((sixteen(8)?, sixteen(24)?)),
        _ => None,
    }
}

/// Length of a GRE header (RFC 2784, 2890) before an IP packet.
fn gre(payload: &[u8]) -> Option<usize> {
    let &[flags, version, p0, p1] = payload.first_chunk()?;
    let optional = [0x80, 0x20, 0x10].iter().filter(|&&bit| flags & bit != 0).count();
    let is_ip = matches!([p0, p1], [0x08, 0x00] | [0x86, 0xdd]);
    (version & 7 == 0 && is_ip).then_some(4 + 4 * optional)
}

fn one(packet: &[u8], wire_len: u32) -> Result<Decoded<'_>, Skip> {
    match packet.first().map(|b| b >> 4) {
        Some(4) => ipv4(packet, wire_len),
        Some(6) => ipv6(packet, wire_len),
        Some(_) => Err(Skip::Malformed),
        None => Err(Skip::CutOff),
    }
}

fn ipv4(packet: &[u8], wire_len: u32) -> Result<Decoded<'_>, Skip> {
    let header: &[u8; 20] = packet.first_chunk().ok_or(Skip::CutOff)?;
    let header_len = usize::from(header[0] & 15) * 4;
    let total = u32::from(u16::from_be_bytes([header[2], header[3]]));
    // zero in captures of hosts that leave segmentation to their network cards
    let total = if total == 0 { wire_len } else { total };
    if header_len < 20 || total < header_len as u32 {
        return Err(Skip::Malformed);
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    let (source, destination) = (Address::v4([s0, s1, s2, s3]), Address::v4([d0, d1, d2, d3]));
    let end = packet.len().min(total as usize);
    let payload = packet.get(header_len..end).ok_or(Skip::CutOff)?;
    Ok(Decoded {
        outer: (source, destination),
        inner: (source, destination),
        identity: (source, destination),
        marks: Marks::default(),
        protocol: header[9],
        payload,
        payload_len: total - header_len as u32,
        identification: u16::from_be_bytes([header[4], header[5]]),
        direction: None,
        device: 0,
        fragment: fragment & 0x2000 != 0,
        offset: u32::from(fragment & 0x1fff) * 8,
        fragments: None,
    })
}

fn ipv6(packet: &[u8], wire_len: u32) -> Result<Decoded<'_>, Skip> {
    let header: &[u8; 40] = packet.first_chunk().ok_or(Skip::CutOff)?;
    let payload_len = u32::from(u16::from_be_bytes([header[4], header[5]]));
    // zero with a jumbogram, or where segmentation is left to the network card
    let payload_len = if payload_len == 0 && header[6] != 59 {
        wire_len.saturating_sub(40)
    } else {
        payload_len
    };
    let address = |at: usize| {
        let bytes = header.get(at..at + 16).and_then(|b| b.first_chunk());
        bytes.map(|b| Address::v6(*b)).ok_or(Skip::CutOff)
    };
    let (source, destination) = (address(8)?, address(24)?);
    let end = packet.len().min(40 + payload_len as usize);
    let payload = packet.get(40..end).ok_or(Skip::CutOff)?;
    let mut headers = Headers {
        next: header[6],
        rest: payload,
        rest_len: payload_len,
        home_of_source: None,
        home_of_destination: None,
        nonce: false,
        fragment: None,
    };
    if is_extension(headers.next) {
        headers.pass()?;
    }
    Ok(Decoded {
        outer: (source, destination),
        inner: (source, destination),
        identity: (
            headers.home_of_source.unwrap_or(source),
            headers.home_of_destination.unwrap_or(destination),
        ),
        marks: Marks {
            tunnelled: false,
            route_optimised: headers.home_of_source.is_some() || headers.home_of_destination.is_some(),
            ilnp: headers.nonce,
        },
        protocol: headers.next,
        payload: headers.rest,
        payload_len: headers.rest_len,
        identification: 0,
        direction: None,
        device: 0,
        fragment: headers.fragment.is_some_and(|f| f.more),
        offset: headers.fragment.map_or(0, |f| f.offset),
        fragments: headers.fragment.map(|f| f.identification),
    })
}

const fn is_extension(next_header: u8) -> bool {
    matches!(next_header, 0 | 43 | 44 | 51 | 60)
}

/// The headers of a packet behind its first, as far as they have been passed over.
struct Headers<'a> {
    /// What the rest begins with.
    next: u8,
    rest: &'a [u8],
    /// So long on the wire.
    rest_len: u32,
    /// Home addresses, where they are others than those of the header.
    home_of_source: Option<Address>,
    home_of_destination: Option<Address>,
    /// There was a nonce option.
    nonce: bool,
    fragment: Option<FragmentHeader>,
}

/// Of an IPv6 packet in fragments.
#[derive(Clone, Copy)]
struct FragmentHeader {
    identification: u32,
    /// In bytes.
    offset: u32,
    more: bool,
}

impl Headers<'_> {
    /// Passes over the extension headers and takes from them what mobility needs.
    #[cold]
    fn pass(&mut self) -> Result<(), Skip> {
        for _ in 0..MAX_EXTENSIONS {
            let kind = self.next;
            if !is_extension(kind) {
                return Ok(());
            }
            let &[next, units, ..] = self.rest.first_chunk::<8>().ok_or(Skip::CutOff)?;
            let len = match kind {
                44 => 8,
                // the authentication header counts in units of 4 (RFC 4302 section 2.2)
                51 => (usize::from(units) + 2) * 4,
                _ => (usize::from(units) + 1) * 8,
            };
            let header = self.rest.get(..len).ok_or(Skip::CutOff)?;
            match kind {
                44 => self.fragment = Some(fragment(header)?),
                60 => self.options(header.get(2..).unwrap_or_default()),
                43 => self.routing(header),
                _ => {}
            }
            self.next = next;
            self.rest = self.rest.get(len..).ok_or(Skip::CutOff)?;
            self.rest_len = self.rest_len.checked_sub(len as u32).ok_or(Skip::Malformed)?;
            // what follows in the first fragment only
            if self.fragment.is_some_and(|f| f.offset > 0) {
                return Ok(());
            }
        }
        Err(Skip::TooDeep)
    }

    /// Destination options: type, length, data.
    fn options(&mut self, mut rest: &[u8]) {
        while let Some((&kind, after)) = rest.split_first() {
            if kind == 0 {
                rest = after;
                continue;
            }
            let Some((&len, after)) = after.split_first() else {
                return;
            };
            let Some((data, after)) = after.split_at_checked(usize::from(len)) else {
                return;
            };
            match kind {
                HOME_ADDRESS_OPTION => {
                    if let Some(home) = data.first_chunk::<16>() {
                        self.home_of_source = Some(Address::v6(*home));
                    }
                }
                NONCE_OPTION => self.nonce = true,
                _ => {}
            }
            rest = after;
        }
    }

    /// A type 2 routing header carries the home address of the receiver.
    fn routing(&mut self, header: &[u8]) {
        if header.get(2) == Some(&2)
            && header.get(3) == Some(&1)
            && let Some(home) = header.get(8..).and_then(|b| b.first_chunk::<16>())
        {
            self.home_of_destination = Some(Address::v6(*home));
        }
    }
}

fn fragment(header: &[u8]) -> Result<FragmentHeader, Skip> {
    let &[_, _, o0, o1, a, b, c, d] = header.first_chunk::<8>().ok_or(Skip::CutOff)?;
    let offset = u16::from_be_bytes([o0, o1]);
    Ok(FragmentHeader {
        identification: u32::from_be_bytes([a, b, c, d]),
        offset: u32::from(offset & 0xfff8),
        more: offset & 1 != 0,
    })
}
