//! Packets of pcap and pcapng files, as a stream through one buffer: no packet is copied or allocated for.
//!
//! A record that cannot be read ends the stream, and [`Reader::partial`] says where and why. Lengths in a file are claims:
//! none is taken to allocate more than [`MAX_RECORD`] bytes.

mod pcap;
mod pcapng;

use super::decode::LinkType;
use super::input::Error;
use super::model::{CaptureInterface, Partial};
use crate::pcapng::Direction;
use std::io::{ErrorKind, Read};

/// Most bytes that a record may take: beyond it, a length field is taken to be damaged. Packets of captures with segment
/// offload are up to 512 kB.
pub(super) const MAX_RECORD: usize = 16 << 20;

/// Read at a time.
const CHUNK: usize = 1 << 20;

/// Interfaces that a file may describe.
const MAX_INTERFACES: usize = 4096;

/// A packet, borrowed from the reader's buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    /// Index into [`Reader::interfaces`].
    pub interface: u32,
    pub link: LinkType,
    /// Since 1970, on the capture's clock.
    pub time_ns: u64,
    pub direction: Option<Direction>,
    /// As captured.
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub wire_len: u32,
}

/// Where a packet lies in the buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Located {
    interface: u32,
    time_ns: u64,
    direction: Option<Direction>,
    start: usize,
    end: usize,
    wire_len: u32,
}

#[derive(Debug)]
enum Format {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// What a format's reader found next.
enum Step {
    Packet(Located),
    /// Something that is no packet; the buffer is past it.
    Other,
    End,
}

/// Reads one capture.
pub(super) struct Reader {
    window: Window,
    format: Format,
    interfaces: Vec<CaptureInterface>,
    links: Vec<LinkType>,
    found: Located,
    partial: Option<Partial>,
}

impl Reader {
    /// Begins to read: `name` is for errors.
    pub(super) fn open(source: Box<dyn Read + Send>, name: &str) -> Result<Self, Error> {
        let mut window = Window::new(source);
        let io = |reason: String| Error::Io {
            file: name.to_owned(),
            reason,
        };
        window.want(4).map_err(io)?;
        if window.available() == 0 {
            return Err(Error::Empty {
                file: name.to_owned(),
            });
        }
        let not = |what: String| Error::NotACapture {
            file: name.to_owned(),
            what,
        };
        let Some(magic) = window.peek(0, 4).and_then(|b| b.try_into().ok()) else {
            return Err(not(format!("the file has {} bytes", window.available())));
        };
        let magic: [u8; 4] = magic;
        let mut interfaces = Vec::new();
        let format = if magic == pcapng::SECTION_HEADER {
            Format::Pcapng(pcapng::Pcapng::default())
        } else if let Some(variant) = pcap::Variant::of(magic) {
            window.want(pcap::FILE_HEADER).map_err(io)?;
            let header = window.peek(0, pcap::FILE_HEADER);
            let header = header.ok_or_else(|| not("the file ends within its header".to_owned()))?;
            let (pcap, interface) = pcap::Pcap::new(variant, header);
            interfaces.push(interface);
            window.skip(pcap::FILE_HEADER);
            Format::Pcap(pcap)
        } else {
            return Err(not(describe(magic)));
        };
        let links = interfaces.iter().map(|i| LinkType::of(i.link_type)).collect();
        let mut reader = Self {
            window,
            format,
            interfaces,
            links,
            found: Located::default(),
            partial: None,
        };
        reader.check_first_block(name)?;
        Ok(reader)
    }

    /// A pcapng file whose section header cannot be read is none.
    fn check_first_block(&mut self, name: &str) -> Result<(), Error> {
        if let Format::Pcapng(pcapng) = &mut self.format
            && let Err(reason) = pcapng.step(&mut self.window, &mut self.interfaces)
        {
            return Err(Error::NotACapture {
                file: name.to_owned(),
                what: format!("its section header cannot be read ({reason})"),
            });
        }
        Ok(())
    }

    /// "pcap" or "pcapng".
    pub(super) const fn format(&self) -> &'static str {
        match self.format {
            Format::Pcap(_) => "pcap",
            Format::Pcapng(_) => "pcapng",
        }
    }

    pub(super) fn interfaces(&self) -> &[CaptureInterface] {
        &self.interfaces
    }

    /// Where and why the stream ended before the file did.
    pub(super) const fn partial(&self) -> Option<&Partial> {
        self.partial.as_ref()
    }

    /// Goes on to the next packet; its time, nothing at the end.
    pub(super) fn advance(&mut self) -> Option<u64> {
        if self.partial.is_some() {
            return None;
        }
        loop {
            let offset = self.window.offset();
            let step = match &mut self.format {
                Format::Pcap(pcap) => pcap.step(&mut self.window),
                Format::Pcapng(pcapng) => pcapng.step(&mut self.window, &mut self.interfaces),
            };
            match step {
                Ok(Step::Packet(found)) => {
                    self.found = found;
                    while let Some(interface) = self.interfaces.get(self.links.len()) {
                        self.links.push(LinkType::of(interface.link_type));
                    }
                    if let Some(interface) = self.interfaces.get_mut(found.interface as usize) {
                        interface.packets += 1;
                    }
                    return Some(found.time_ns);
                }
                Ok(Step::Other) => {}
                Ok(Step::End) => return None,
                Err(reason) => {
                    self.partial = Some(Partial { offset, reason });
                    return None;
                }
            }
        }
    }

    /// The packet that [`advance`](Self::advance) went to.
    pub(super) fn record(&self) -> Record<'_> {
        let found = &self.found;
        let link = self.links.get(found.interface as usize).copied();
        Record {
            interface: found.interface,
            link: link.unwrap_or(LinkType::Unknown),
            time_ns: found.time_ns,
            direction: found.direction,
            bytes: self.window.taken(found.start, found.end),
            wire_len: found.wire_len,
        }
    }
}

fn describe(magic: [u8; 4]) -> String {
    match magic {
        [0x1f, 0x8b, ..] => "the file is compressed (gzip)".to_owned(),
        [0x28, 0xb5, 0x2f, 0xfd] => "the file is compressed (zstd)".to_owned(),
        [0x42, 0x5a, 0x68, _] => "the file is compressed (bzip2)".to_owned(),
        [0xfd, 0x37, 0x7a, 0x58] => "the file is compressed (xz)".to_owned(),
        [0x04, 0x22, 0x4d, 0x18] => "the file is compressed (lz4)".to_owned(),
        [a, b, c, d] => format!("it begins with {a:02x} {b:02x} {c:02x} {d:02x}"),
    }
}

/// A stretch of the file in memory.
struct Window {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Unread bytes are `buffer[begin..end]`.
    begin: usize,
    end: usize,
    /// Of `begin` in the file.
    offset: u64,
    at_end: bool,
    /// The source failed: what was read before is worth having.
    failed: Option<String>,
}

impl Window {
    fn new(source: Box<dyn Read + Send>) -> Self {
        Self {
            source,
            buffer: vec![0; CHUNK],
            begin: 0,
            end: 0,
            offset: 0,
            at_end: false,
            failed: None,
        }
    }

    const fn offset(&self) -> u64 {
        self.offset
    }

    const fn available(&self) -> usize {
        self.end - self.begin
    }

    /// Tries to have `len` unread bytes in memory; there are fewer only where the file ends.
    fn want(&mut self, len: usize) -> Result<(), String> {
        if self.available() >= len {
            return Ok(());
        }
        self.fill(len)
    }

    #[cold]
    fn fill(&mut self, len: usize) -> Result<(), String> {
        if self.begin > 0 {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        if len > self.buffer.len() {
            self.buffer.resize(len.next_multiple_of(CHUNK), 0);
        }
        while self.end < len && !self.at_end {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.end += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.at_end = true;
                    self.failed = Some(super::input::words(&error));
                }
            }
        }
        match self.failed.take() {
            Some(reason) if self.available() < len => Err(reason),
            _ => Ok(()),
        }
    }

    /// Unread bytes, if they are in memory.
    fn peek(&self, at: usize, len: usize) -> Option<&[u8]> {
        let start = self.begin.checked_add(at)?;
        let end = start.checked_add(len)?;
        if end > self.end {
            None
        } else {
            self.buffer.get(start..end)
        }
    }

    /// Takes bytes that are in memory; gives where they begin.
    fn skip(&mut self, len: usize) -> usize {
        let start = self.begin;
        let len = len.min(self.available());
        self.begin += len;
        self.offset += len as u64;
        start
    }

    /// Passes over bytes that need not fit into memory.
    fn pass_over(&mut self, mut len: u64) -> Result<bool, String> {
        loop {
            let step = (self.available() as u64).min(len) as usize;
            self.skip(step);
            len -= step as u64;
            if len == 0 {
                return Ok(true);
            }
            self.want(1)?;
            if self.available() == 0 {
                return Ok(false);
            }
        }
    }

    /// Bytes taken before, as long as nothing was read since.
    fn taken(&self, start: usize, end: usize) -> &[u8] {
        self.buffer.get(start..end).unwrap_or_default()
    }
}

/// No time is later, in nanoseconds: the year 2262. So the difference of any two has room in 64 bits with a sign, and
/// their sum, or that of one and a window, without.
pub(super) const LATEST_NS: u64 = i64::MAX as u64;

/// Time in nanoseconds of a count of units, and of what a second has of them.
#[derive(Clone, Copy, Debug)]
enum Resolution {
    /// A unit is so many nanoseconds.
    Nanoseconds(u64),
    /// A second has so many units, 10^n or 2^n.
    PerSecond(u64),
}

impl Resolution {
    const MICROSECONDS: Self = Self::Nanoseconds(1000);

    fn nanoseconds(self, units: u64, offset_s: i64) -> u64 {
        let since = match self {
            Self::Nanoseconds(each) => units.checked_mul(each),
            Self::PerSecond(per_second) => {
                let wide = u128::from(units) * 1_000_000_000 / u128::from(per_second.max(1));
                u64::try_from(wide).ok()
            }
        };
        let offset = offset_s.saturating_mul(1_000_000_000);
        let time = since.unwrap_or(u64::MAX).saturating_add_signed(offset);
        time.min(LATEST_NS)
    }
}

fn u16_at(bytes: &[u8], at: usize, big: bool) -> Option<u16> {
    let b = bytes.get(at..)?.first_chunk()?;
    Some(if big {
        u16::from_be_bytes(*b)
    } else {
        u16::from_le_bytes(*b)
    })
}

fn u32_at(bytes: &[u8], at: usize, big: bool) -> Option<u32> {
    let b = bytes.get(at..)?.first_chunk()?;
    Some(if big {
        u32::from_be_bytes(*b)
    } else {
        u32::from_le_bytes(*b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_time_are_nanoseconds_with_an_offset() {
        assert_eq!(Resolution::MICROSECONDS.nanoseconds(7, 0), 7000);
        assert_eq!(Resolution::Nanoseconds(1).nanoseconds(7, 2), 2_000_000_007);
        assert_eq!(
            Resolution::Nanoseconds(1000).nanoseconds(3_000_000, -1),
            2_000_000_000
        );
        assert_eq!(Resolution::Nanoseconds(1).nanoseconds(7, -1), 0);
        assert_eq!(Resolution::PerSecond(1024).nanoseconds(512, 0), 500_000_000);
        assert_eq!(
            Resolution::PerSecond(1 << 40).nanoseconds(3 << 40, 1),
            4_000_000_000
        );
        assert_eq!(Resolution::PerSecond(0).nanoseconds(2, 0), 2_000_000_000);
        for late in [Resolution::Nanoseconds(1000), Resolution::PerSecond(1)] {
            assert_eq!(late.nanoseconds(u64::MAX, 0), LATEST_NS);
        }
        assert_eq!(Resolution::Nanoseconds(1).nanoseconds(1, i64::MAX), LATEST_NS);
    }

    #[test]
    fn numbers_are_read_in_either_byte_order() {
        let bytes = [1, 2, 3, 4, 5];
        assert_eq!(
            (u16_at(&bytes, 1, true), u16_at(&bytes, 1, false)),
            (Some(0x203), Some(0x302))
        );
        assert_eq!(u32_at(&bytes, 1, true), Some(0x0203_0405));
        assert_eq!(u32_at(&bytes, 1, false), Some(0x0504_0302));
        assert_eq!((u16_at(&bytes, 4, true), u32_at(&bytes, 2, true)), (None, None));
    }
}
