//! Link layers.

use super::Skip;
use crate::pcapng::Direction;

/// A link layer that a capture can be of (LINKTYPE_*, www.tcpdump.org/linktypes.html).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkType {
    /// Ethernet.
    Ethernet,
    /// A 4-byte protocol family in the byte order of the capturing host, or of the network (LOOP).
    Loopback,
    /// IP, the version told by its first bits.
    Raw,
    /// Linux cooked capture.
    LinuxSll,
    /// Linux cooked capture, version 2.
    LinuxSll2,
    /// Anything else.
    Unknown,
}

impl LinkType {
    /// By number. LINKTYPE_RAW is 101; 12 and 14 are what DLT_RAW is on some systems.
    pub(crate) const fn of(number: u16) -> Self {
        match number {
            1 => Self::Ethernet,
            0 | 108 => Self::Loopback,
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            113 => Self::LinuxSll,
            276 => Self::LinuxSll2,
            _ => Self::Unknown,
        }
    }

    /// Name in reports.
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Ethernet => Some("ethernet"),
            Self::Loopback => Some("loopback"),
            Self::Raw => Some("raw-ip"),
            Self::LinuxSll => Some("linux-cooked"),
            Self::LinuxSll2 => Some("linux-cooked-v2"),
            Self::Unknown => None,
        }
    }
}

/// A packet of the network layer in a frame.
pub(super) struct Network<'a> {
    pub packet: &'a [u8],
    /// Bytes before it.
    pub header_len: usize,
    pub direction: Option<Direction>,
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

pub(super) fn network(link: LinkType, frame: &[u8]) -> Result<Network<'_>, Skip> {
    match link {
        LinkType::Ethernet => ethernet(frame),
        LinkType::Raw => at(frame, 0, None),
        LinkType::Loopback => {
            let family: &[u8; 4] = frame.first_chunk().ok_or(Skip::CutOff)?;
            // AF_INET is 2 everywhere; AF_INET6 is 10, 24, 28 or 30. Whatever the byte order, one byte has it.
            let number = family.iter().copied().max().unwrap_or_default();
            match number {
                2 | 10 | 24 | 28 | 30 => at(frame, 4, None),
                _ => Err(Skip::NotIp),
            }
        }
        // | packet type (2) | ARPHRD (2) | address length (2) | address (8) | protocol (2) |
        LinkType::LinuxSll => {
            let header: &[u8; 16] = frame.first_chunk().ok_or(Skip::CutOff)?;
            let direction = sll_direction(u16::from_be_bytes([header[0], header[1]]));
            tagged(frame, 14, direction)
        }
        // | protocol (2) | reserved (2) | interface (4) | ARPHRD (2) | packet type (1) | address length (1) | address (8) |
        LinkType::LinuxSll2 => {
            let header: &[u8; 20] = frame.first_chunk().ok_or(Skip::CutOff)?;
            let direction = sll_direction(u16::from(header[10]));
            match u16::from_be_bytes([header[0], header[1]]) {
                ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => at(frame, 20, direction),
                // the tag is where the packet begins: | TCI (2) | type (2) |
                0x8100 | 0x88a8 | 0x9100 => tagged(frame, 22, direction),
                _ => Err(Skip::NotIp),
            }
        }
        LinkType::Unknown => Err(Skip::UnknownLink),
    }
}

/// Packet types: 0 to us, 1 broadcast, 2 multicast, 3 to somebody else, 4 from us.
const fn sll_direction(packet_type: u16) -> Option<Direction> {
    match packet_type {
        0..=2 => Some(Direction::Inbound),
        4 => Some(Direction::Outbound),
        _ => None,
    }
}

fn ethernet(frame: &[u8]) -> Result<Network<'_>, Skip> {
    // the usual case first
    if let Some(&[hi, lo]) = frame.get(12..14).and_then(|t| t.first_chunk())
        && matches!([hi, lo], [0x08, 0x00] | [0x86, 0xdd])
    {
        return at(frame, 14, None);
    }
    tagged(frame, 12, None)
}

/// The packet behind a type at `offset`, and behind VLAN tags (802.1Q, 802.1ad) and PPPoE.
fn tagged(frame: &[u8], mut offset: usize, direction: Option<Direction>) -> Result<Network<'_>, Skip> {
    for _ in 0..4 {
        let kind: &[u8; 2] = frame
            .get(offset..)
            .and_then(|t| t.first_chunk())
            .ok_or(Skip::CutOff)?;
        offset += 2;
        match u16::from_be_bytes(*kind) {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return at(frame, offset, direction),
            0x8100 | 0x88a8 | 0x9100 => offset += 2,
            // PPPoE session: | version, type, code, session, length (6) | PPP protocol (2) |
            0x8864 => {
                let ppp = frame.get(offset + 6..offset + 8).ok_or(Skip::CutOff)?;
                return match *ppp {
                    [0x00, 0x21 | 0x57] => at(frame, offset + 8, direction),
                    _ => Err(Skip::NotIp),
                };
            }
            _ => return Err(Skip::NotIp),
        }
    }
    Err(Skip::NotIp)
}

fn at(frame: &[u8], offset: usize, direction: Option<Direction>) -> Result<Network<'_>, Skip> {
    Ok(Network {
        packet: frame.get(offset..).ok_or(Skip::CutOff)?,
        header_len: offset,
        direction,
    })
}
