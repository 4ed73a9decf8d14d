//! TCP segments (RFC 9293 section 3.1).

mod options;

pub use options::{MAX_SACK_BLOCKS, SackBlock, TcpOptions, Timestamps, UnknownOption};

use crate::checksum::PseudoHeader;
use crate::payload::Data;
use crate::reader::Reader;
use crate::writer::set;
use crate::{ParseError, SeqNumber};
use bytes::{BufMut, Bytes};
use core::fmt;
use core::ops::BitOr;

/// Protocol number (RFC 9293 section 3.1).
pub const NEXT_HEADER: u8 = 6;

/// Length of the header without options, bytes.
pub const HEADER_LEN: usize = 20;

/// A TCP segment.
///
/// ```text
/// |          Source Port          |       Destination Port        |
/// |                        Sequence Number                        |
/// |                    Acknowledgment Number                      |
/// |  Data |Rsrvd|C|E|U|A|P|R|S|F|             Window              |
/// | Offset|     |W|C|R|C|S|S|Y|I|                               |
/// |           Checksum            |         Urgent Pointer        |
/// |                           [Options]                           |
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpSegment {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first data byte, or of SYN.
    pub seq: SeqNumber,
    /// Acknowledgment number: means something if the ACK flag is set.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// Window, not scaled.
    pub window: u16,
    /// Options; the urgent pointer is kept with those that are rare.
    pub options: TcpOptions,
    /// User data.
    pub data: Data,
}

impl TcpSegment {
    /// Parses a segment. The data shares the storage of `bytes`; reserved bits are ignored (RFC 9293 section 3.1).
    ///
    /// # Errors
    /// If it is truncated, its data offset or the length of an option is impossible (section 3.1, MUST-7), or its
    /// checksum is wrong.
    pub fn parse(bytes: &Bytes, pseudo_header: &PseudoHeader) -> Result<Self, ParseError> {
        let mut reader = Reader::new(bytes, "TCP");
        let source_port = reader.u16()?;
        let destination_port = reader.u16()?;
        let seq = SeqNumber(reader.u32()?);
        let ack = SeqNumber(reader.u32()?);
        let [offset, flags] = reader.array()?;
        let window = reader.u16()?;
        reader.skip(2)?;
        let urgent = reader.u16()?;
        let options_len = (usize::from(offset >> 4) * 4)
            .checked_sub(HEADER_LEN)
            .ok_or(ParseError::BadLength("TCP data offset"))?;
        let mut options = TcpOptions::parse(reader.take(options_len, "TCP options")?)?;
        if pseudo_header.checksum(NEXT_HEADER, bytes) != 0 {
            return Err(ParseError::BadChecksum("TCP"));
        }
        options.set_urgent(urgent);
        Ok(Self {
            source_port,
            destination_port,
            seq,
            ack,
            flags: TcpFlags(flags),
            window,
            options,
            data: Data::Bytes(reader.rest()),
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        HEADER_LEN + self.options.buffer_len() + self.data.len()
    }

    /// Appends the segment with its checksum.
    pub fn emit(&self, pseudo_header: &PseudoHeader, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u16(self.source_port);
        out.put_u16(self.destination_port);
        out.put_u32(self.seq.0);
        out.put_u32(self.ack.0);
        out.put_u8(0);
        out.put_u8(self.flags.0);
        out.put_u16(self.window);
        out.put_u16(0);
        out.put_u16(self.options.urgent());
        self.options.emit(out);
        let words = (out.len() - start) / 4;
        self.data.emit(out);
        set(out, start + 12, &[(words as u8) << 4]);
        let checksum = pseudo_header.checksum(NEXT_HEADER, out.get(start..).unwrap_or_default());
        set(out, start + 16, &checksum.to_be_bytes());
    }

    /// Length in sequence space: data, and one each for SYN and FIN (RFC 9293 section 3.4).
    #[must_use]
    pub fn seq_len(&self) -> u32 {
        self.data.len() as u32
            + u32::from(self.flags.contains(TcpFlags::SYN))
            + u32::from(self.flags.contains(TcpFlags::FIN))
    }
}

/// Control bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN-Echo (RFC 3168 section 6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168 section 6.1).
    pub const CWR: Self = Self(0x80);

    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether any of `flags` is set.
    #[must_use]
    pub const fn intersects(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }
}

impl BitOr for TcpFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (bit, name) in ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"]
            .iter()
            .enumerate()
        {
            if self.0 >> bit & 1 != 0 {
                write!(f, "{separator}{name}")?;
                separator = "|";
            }
        }
        if self.0 == 0 { f.write_str("0") } else { Ok(()) }
    }
}
