//! pcap files (draft-ietf-opsawg-pcap), in both byte orders, with micro- and nanoseconds.

use super::window::{Located, MAX_RECORD, Resolution, Step, Stop, Window, u32_at};
use crate::analyze::decode::LinkType;
use crate::analyze::model::CaptureInterface;

/// Length of the file header.
pub(super) const FILE_HEADER: usize = 24;

/// What the magic number says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    big_endian: bool,
    nanoseconds: bool,
    /// Kuznetzov's: 8 bytes more in a record's header.
    modified: bool,
}

impl Variant {
    /// The variant that a file with these first bytes is of.
    pub(super) fn of(magic: [u8; 4]) -> Option<Self> {
        let of = |value: u32| match value {
            0xa1b2_c3d4 => Some((false, false)),
            0xa1b2_3c4d => Some((true, false)),
            0xa1b2_cd34 => Some((false, true)),
            _ => None,
        };
        let little = of(u32::from_le_bytes(magic)).map(|v| (v, false));
        let ((nanoseconds, modified), big_endian) =
            little.or_else(|| of(u32::from_be_bytes(magic)).map(|v| (v, true)))?;
        Some(Self {
            big_endian,
            nanoseconds,
            modified,
        })
    }
}

/// State of a pcap file: there is none beyond its header.
#[derive(Debug)]
pub(super) struct Pcap {
    variant: Variant,
    resolution: Resolution,
}

impl Pcap {
    /// Of a file with this header; and its interface.
    pub(super) fn new(variant: Variant, header: &[u8]) -> (Self, CaptureInterface) {
        let big = variant.big_endian;
        // the upper half of the field says whether there is a frame check sequence
        let link_type = u32_at(header, 20, big).map_or(0, |v| v as u16);
        let interface = CaptureInterface {
            name: None,
            link_type,
            link: LinkType::of(link_type).name(),
            snap_length: u32_at(header, 16, big).unwrap_or_default(),
            packets: 0,
        };
        let resolution = if variant.nanoseconds {
            Resolution::Nanoseconds(1)
        } else {
            Resolution::MICROSECONDS
        };
        (Self { variant, resolution }, interface)
    }

    /// Reads a record.
    ///
    /// ```text
    /// | seconds (4) | fraction (4) | captured length (4) | length on the wire (4) |
    /// ```
    pub(super) fn step(&mut self, window: &mut Window) -> Result<Step, Stop> {
        let header_len = if self.variant.modified { 24 } else { 16 };
        window.want(header_len)?;
        if window.available() == 0 {
            return Ok(Step::End);
        }
        let big = self.variant.big_endian;
        let fields = window.peek(0, header_len).and_then(|header| {
            let field = |at| u32_at(header, at, big);
            Some((field(0)?, field(4)?, field(8)?, field(12)?))
        });
        let Some((seconds, fraction, captured, wire_len)) = fields else {
            return Err("the file ends within the header of a packet".into());
        };
        let len = captured as usize;
        if len > MAX_RECORD {
            return Err(format!("a packet is said to have {captured} bytes").into());
        }
        window.want(header_len + len)?;
        if window.available() < header_len + len {
            return Err("the file ends within a packet".into());
        }
        let start = window.skip(header_len + len) + header_len;
        let fraction = self.resolution.nanoseconds(u64::from(fraction), 0);
        Ok(Step::Packet(Located {
            interface: 0,
            time_ns: u64::from(seconds) * 1_000_000_000 + fraction,
            direction: None,
            start,
            end: start + len,
            wire_len: wire_len.max(captured),
        }))
    }
}
