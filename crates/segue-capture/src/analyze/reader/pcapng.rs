//! pcapng files (draft-ietf-opsawg-pcapng): sections of either byte order, interfaces with their own resolution and offset
//! of time, enhanced, simple and obsolete packet blocks. Other blocks are passed over.

use super::window::{Located, MAX_INTERFACES, MAX_RECORD, Resolution, Step, Stop, Window, u16_at, u32_at};
use crate::analyze::decode::LinkType;
use crate::analyze::model::CaptureInterface;
use crate::pcapng::Direction;

/// Type of the section header block, the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const OPT_END: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const EPB_FLAGS: u16 = 2;

/// State of a pcapng file.
#[derive(Debug, Default)]
pub(super) struct Pcapng {
    big_endian: bool,
    /// Of the interfaces of this section, the first among those of the file.
    section_base: usize,
    clocks: Vec<Clock>,
    /// Of a block that is passed over, what is left of it.
    unread: u64,
    /// Of the packet before: simple packets have none of their own.
    last_time_ns: u64,
}

/// How an interface counts time.
#[derive(Clone, Copy, Debug)]
struct Clock {
    resolution: Resolution,
    offset_s: i64,
    snap_length: u32,
}

impl Pcapng {
    /// Reads a block.
    ///
    /// ```text
    /// | block type (4) | total length (4) | body ... | total length (4) |
    /// ```
    pub(super) fn step(
        &mut self,
        window: &mut Window,
        interfaces: &mut Vec<CaptureInterface>,
    ) -> Result<Step, Stop> {
        if self.unread > 0 {
            return self.pass_over(window);
        }
        window.want(12)?;
        if window.available() == 0 {
            return Ok(Step::End);
        }
        let Some(head) = window.peek(0, 12) else {
            return Err("the file ends within the header of a block".into());
        };
        if head[..4] == SECTION_HEADER {
            self.big_endian = match head[8..12] {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => return Err("the byte-order magic of a section is wrong".into()),
            };
        }
        let big = self.big_endian;
        let field = |at| u32_at(head, at, big).unwrap_or_default();
        let (block_type, total) = (field(0), field(4));
        let is_section = head[..4] == SECTION_HEADER;
        if total < 12 || !total.is_multiple_of(4) {
            return Err(format!("a block is said to have {total} bytes").into());
        }
        let known = is_section
            || matches!(
                block_type,
                INTERFACE_DESCRIPTION | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET
            );
        let len = total as usize;
        if !known {
            self.unread = u64::from(total);
            return self.pass_over(window);
        }
        if len > MAX_RECORD {
            return Err(format!("a block is said to have {total} bytes").into());
        }
        window.want(len)?;
        let Some(block) = window.peek(0, len) else {
            return Err("the file ends within a block".into());
        };
        if u32_at(block, len - 4, big) != Some(total) {
            return Err("the two lengths of a block disagree".into());
        }
        let body = &block[8..len - 4];
        if is_section {
            self.section_base = interfaces.len();
            if u16_at(body, 4, big) != Some(1) {
                return Err("the section is of a version that is not known".into());
            }
            window.skip(len);
            return Ok(Step::Other);
        }
        if block_type == INTERFACE_DESCRIPTION {
            if interfaces.len() >= MAX_INTERFACES {
                return Err(format!("there are more than {MAX_INTERFACES} interfaces").into());
            }
            let (interface, clock) = interface(body, big).ok_or("an interface description is too short")?;
            interfaces.push(interface);
            self.clocks.push(clock);
            window.skip(len);
            return Ok(Step::Other);
        }
        let mut found = self.packet(block_type, body)?;
        let start = window.skip(len) + 8;
        found.start += start;
        found.end += start;
        Ok(Step::Packet(found))
    }

    /// Passes over the rest of a block that says nothing of packets.
    fn pass_over(&mut self, window: &mut Window) -> Result<Step, Stop> {
        match window.pass_over(&mut self.unread)? {
            true => Ok(Step::Other),
            false => Err("the file ends within a block".into()),
        }
    }

    /// A packet block's packet, its place counted from the beginning of the body.
    fn packet(&mut self, block_type: u32, body: &[u8]) -> Result<Located, String> {
        let big = self.big_endian;
        let short = || "a packet block is too short".to_owned();
        let field = |at| u32_at(body, at, big).ok_or_else(short);
        let (number, units, captured, wire_len, start) = match block_type {
            SIMPLE_PACKET => {
                let wire_len = field(0)?;
                (0, None, u32::MAX, wire_len, 4)
            }
            OBSOLETE_PACKET => {
                let number = u32::from(u16_at(body, 0, big).ok_or_else(short)?);
                let units = u64::from(field(4)?) << 32 | u64::from(field(8)?);
                (number, Some(units), field(12)?, field(16)?, 20)
            }
            _ => {
                let units = u64::from(field(4)?) << 32 | u64::from(field(8)?);
                (field(0)?, Some(units), field(12)?, field(16)?, 20)
            }
        };
        let interface = self.section_base.saturating_add(number as usize);
        let clock = self.clocks.get(interface).copied();
        let clock =
            clock.ok_or_else(|| format!("a packet is of interface {number}, which was not described"))?;
        let captured = if block_type == SIMPLE_PACKET {
            let snapped = if clock.snap_length == 0 {
                u32::MAX
            } else {
                clock.snap_length
            };
            wire_len.min(snapped).min(body.len().saturating_sub(start) as u32)
        } else {
            captured
        };
        let end = start + captured as usize;
        if end > body.len() {
            return Err("a packet is longer than its block".to_owned());
        }
        let time_ns = units.map_or(self.last_time_ns, |u| {
            clock.resolution.nanoseconds(u, clock.offset_s)
        });
        self.last_time_ns = time_ns;
        let options = body.get(end.next_multiple_of(4)..).unwrap_or_default();
        let flags = if block_type == ENHANCED_PACKET && !options.is_empty() {
            option(options, EPB_FLAGS, big).and_then(|v| u32_at(v, 0, big))
        } else {
            None
        };
        let direction = match flags.map(|f| f & 3) {
            Some(1) => Some(Direction::Inbound),
            Some(2) => Some(Direction::Outbound),
            _ => None,
        };
        Ok(Located {
            interface: interface as u32,
            time_ns,
            direction,
            start,
            end,
            wire_len: wire_len.max(captured),
        })
    }
}

/// An interface description block.
///
/// ```text
/// | link type (2) | reserved (2) | snap length (4) | options ...
/// ```
fn interface(body: &[u8], big: bool) -> Option<(CaptureInterface, Clock)> {
    let link_type = u16_at(body, 0, big)?;
    let snap_length = u32_at(body, 4, big)?;
    let options = body.get(8..)?;
    let name = option(options, IF_NAME, big).map(|n| {
        let text = String::from_utf8_lossy(n.get(..n.len().min(256)).unwrap_or_default());
        text.trim_end_matches('\0').to_owned()
    });
    let resolution = match option(options, IF_TSRESOL, big).and_then(|v| v.first()) {
        None => Resolution::MICROSECONDS,
        Some(&power) if power & 0x80 == 0 => match power {
            0..=9 => Resolution::Nanoseconds(10u64.pow(9 - u32::from(power))),
            _ => Resolution::PerSecond(10u64.saturating_pow(u32::from(power))),
        },
        Some(&power) => Resolution::PerSecond(1u64.checked_shl(u32::from(power & 0x7f)).unwrap_or(u64::MAX)),
    };
    let offset = option(options, IF_TSOFFSET, big).and_then(|v| v.first_chunk::<8>());
    let offset_s = offset.map_or(0, |b| {
        if big {
            i64::from_be_bytes(*b)
        } else {
            i64::from_le_bytes(*b)
        }
    });
    let clock = Clock {
        resolution,
        offset_s,
        snap_length,
    };
    let interface = CaptureInterface {
        name,
        link_type,
        link: LinkType::of(link_type).name(),
        snap_length,
        packets: 0,
    };
    Some((interface, clock))
}

/// Value of the first option of a code; options that are cut off count as none.
fn option(mut options: &[u8], wanted: u16, big: bool) -> Option<&[u8]> {
    loop {
        let code = u16_at(options, 0, big)?;
        let len = usize::from(u16_at(options, 2, big)?);
        if code == OPT_END {
            return None;
        }
        let value = options.get(4..4 + len)?;
        if code == wanted {
            return Some(value);
        }
        options = options.get(4 + len.next_multiple_of(4)..)?;
    }
}
