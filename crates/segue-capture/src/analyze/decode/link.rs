//! Link layers.

use super::packet::Skip;
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
    /// An MPLS label stack.
    Mpls,
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
            219 => Self::Mpls,
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
            Self::Mpls => Some("mpls"),
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
    /// Number of the host's interface, where the header has it; else zero, which is none's.
    pub device: u32,
}

/// Tags before a packet that are passed over.
const MAX_TAGS: usize = 4;

/// Labels of a stack.
const MAX_LABELS: usize = 16;

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
            let [p0, p1, _, _, i0, i1, i2, i3, ..] = *header;
            let network = behind(frame, u16::from_be_bytes([p0, p1]), 20, direction)?;
            Ok(Network {
                device: u32::from_be_bytes([i0, i1, i2, i3]),
                ..network
            })
        }
        LinkType::Mpls => labelled(frame, 0, None),
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

/// The packet behind a type at `offset`.
fn tagged(frame: &[u8], offset: usize, direction: Option<Direction>) -> Result<Network<'_>, Skip> {
    let kind = frame
        .get(offset..)
        .and_then(|t| t.first_chunk())
        .ok_or(Skip::CutOff)?;
    behind(frame, u16::from_be_bytes(*kind), offset + 2, direction)
}

/// The packet behind a type and what follows it at `offset`: VLAN tags (802.1Q, 802.1ad), PPPoE (RFC 2516), an MPLS label stack
/// (RFC 3032), LLC with or without SNAP (802.2; RFC 1042) in the place of a type.
fn behind(
    frame: &[u8],
    mut kind: u16,
    mut offset: usize,
    direction: Option<Direction>,
) -> Result<Network<'_>, Skip> {
    for _ in 0..MAX_TAGS {
        let next = match kind {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return at(frame, offset, direction),
            // | TCI (2) | type (2) |
            0x8100 | 0x88a8 | 0x9100 => offset + 2,
            0x8847 | 0x8848 => return labelled(frame, offset, direction),
            // session: | version, type, code, session, length (6) | PPP protocol (2) |
            0x8864 => {
                let ppp = frame.get(offset + 6..offset + 8).ok_or(Skip::CutOff)?;
                return match *ppp {
                    [0x00, 0x21 | 0x57] => at(frame, offset + 8, direction),
                    [0x02, 0x81 | 0x83] => labelled(frame, offset + 8, direction),
                    _ => Err(Skip::NotIp),
                };
            }
            // a length: | DSAP (1) | SSAP (1) | control (1) | with SNAP: organisation (3) | type (2) |
            0..=1500 => {
                let llc: &[u8; 3] = frame
                    .get(offset..)
                    .and_then(|l| l.first_chunk())
                    .ok_or(Skip::CutOff)?;
                match llc {
                    [0xaa, 0xaa, 3] => {
                        let organisation = frame.get(offset + 3..offset + 6).ok_or(Skip::CutOff)?;
                        // of the type's own, and bridged (RFC 1042, 802.1H)
                        if !matches!(organisation, [0, 0, 0] | [0, 0, 0xf8]) {
                            return Err(Skip::NotIp);
                        }
                        offset + 6
                    }
                    [6, 6, 3] => return at(frame, offset + 3, direction),
                    _ => return Err(Skip::NotIp),
                }
            }
            _ => return Err(Skip::NotIp),
        };
        let bytes = frame
            .get(next..)
            .and_then(|t| t.first_chunk())
            .ok_or(Skip::CutOff)?;
        kind = u16::from_be_bytes(*bytes);
        offset = next + 2;
    }
    Err(Skip::NotIp)
}

/// The packet behind a label stack: `| label (20 bits) | class (3) | bottom of the stack (1) | TTL (8) | ...`. What it is, its first
/// bits say; zero begins the control word of a pseudowire (RFC 4385), behind which is an Ethernet frame (RFC 4448).
fn labelled(frame: &[u8], mut offset: usize, direction: Option<Direction>) -> Result<Network<'_>, Skip> {
    for _ in 0..MAX_LABELS {
        let entry: &[u8; 4] = frame
            .get(offset..)
            .and_then(|e| e.first_chunk())
            .ok_or(Skip::CutOff)?;
        offset += 4;
        if entry[2] & 1 == 0 {
            continue;
        }
        return match frame.get(offset).ok_or(Skip::CutOff)? >> 4 {
            4 | 6 => at(frame, offset, direction),
            0 => match frame.get(offset + 16..offset + 18).ok_or(Skip::CutOff)? {
                [0x08, 0x00] | [0x86, 0xdd] => at(frame, offset + 18, direction),
                _ => Err(Skip::NotIp),
            },
            _ => Err(Skip::NotIp),
        };
    }
    Err(Skip::TooDeep)
}

fn at(frame: &[u8], offset: usize, direction: Option<Direction>) -> Result<Network<'_>, Skip> {
    Ok(Network {
        packet: frame.get(offset..).ok_or(Skip::CutOff)?,
        header_len: offset,
        direction,
        device: 0,
    })
}
