//! Packets of pcap and pcapng files, as a stream through one buffer: no packet is copied or allocated for.
//!
//! A record that cannot be read ends the stream, and [`Reader::partial`] says where and why. Lengths in a file are claims:
//! none is taken to allocate more than `MAX_RECORD` bytes.

mod pcap;
mod pcapng;
mod window;

pub(super) use window::{Bytes, LATEST_NS};

use super::ahead::Ahead;
use super::decode::LinkType;
use super::input::{Error, Input};
use super::model::{CaptureInterface, Partial};
use super::source::{Source, words};
use super::unpack::Unpacked;
use super::watch::Watch;
use crate::pcapng::Direction;
use std::sync::Arc;
use window::{Located, Step, Stop, Window};

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

#[derive(Debug)]
enum Format {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// A packet of this time.
    Packet(u64),
    /// Nothing for now, where the capture is read while it is made.
    Pending,
    End,
}

/// Reads one capture.
pub(super) struct Reader {
    window: Window,
    format: Format,
    interfaces: Vec<CaptureInterface>,
    /// Of each interface: how its packets are read, and how many there were.
    links: Vec<(LinkType, u64)>,
    found: Located,
    partial: Option<Partial>,
    /// Why it is not to be read at all.
    refused: Option<String>,
}

impl Reader {
    /// Begins to read a capture, compressed or not.
    pub(super) fn open(input: &Input) -> Result<Self, Error> {
        let name = input.name();
        let mut source = Unpacked::new(input.open()?);
        let is_packed = source.is_packed().map_err(|error| Error::Io {
            file: name.clone(),
            reason: words(&error),
        })?;
        let source: Source = Box::new(source);
        let bytes = if is_packed {
            Bytes::Ahead(Ahead::new(source))
        } else {
            Bytes::Here(source)
        };
        Self::begin(bytes, &name)
    }

    /// The same of a capture that is still being made, as long as the watch does not end it: waits for its header.
    pub(super) fn open_live(input: &Input, watch: &Arc<Watch>) -> Result<Self, Error> {
        let source = Unpacked::new(input.open()?);
        let ahead = Ahead::live(Box::new(source), Arc::clone(watch));
        Self::begin(Bytes::Ahead(ahead), &input.name())
    }

    /// Reads the beginning: `name` is for errors.
    pub(super) fn begin(bytes: Bytes, name: &str) -> Result<Self, Error> {
        let mut window = Window::new(bytes);
        let io = |reason: String| Error::Io {
            file: name.to_owned(),
            reason,
        };
        patiently(|| window.want(4)).map_err(io)?;
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
            patiently(|| window.want(pcap::FILE_HEADER)).map_err(io)?;
            let header = window.peek(0, pcap::FILE_HEADER);
            let header = header.ok_or_else(|| not("the file ends within its header".to_owned()))?;
            let (pcap, interface) = pcap::Pcap::new(variant, header);
            interfaces.push(interface);
            window.skip(pcap::FILE_HEADER);
            Format::Pcap(pcap)
        } else {
            return Err(not(describe(magic)));
        };
        let links = interfaces
            .iter()
            .map(|i| (LinkType::of(i.link_type), 0))
            .collect();
        let mut reader = Self {
            window,
            format,
            interfaces,
            links,
            found: Located::default(),
            partial: None,
            refused: None,
        };
        reader.check_first_block(name)?;
        Ok(reader)
    }

    /// A pcapng file whose section header cannot be read is none.
    fn check_first_block(&mut self, name: &str) -> Result<(), Error> {
        if let Format::Pcapng(pcapng) = &mut self.format
            && let Err(reason) = patiently(|| pcapng.step(&mut self.window, &mut self.interfaces))
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

    /// Its interfaces, with the packets read of each.
    pub(super) fn interfaces(&self) -> Vec<CaptureInterface> {
        let packets = self.links.iter().map(|link| link.1).chain(core::iter::repeat(0));
        let counted = self.interfaces.iter().zip(packets);
        let counted = counted.map(|(described, packets)| CaptureInterface {
            packets,
            ..described.clone()
        });
        counted.collect()
    }

    /// The name of one, if the file says so.
    pub(super) fn interface_name(&self, number: u32) -> Option<String> {
        self.interfaces.get(number as usize)?.name.clone()
    }

    /// Where and why the stream ended before the file did.
    pub(super) const fn partial(&self) -> Option<&Partial> {
        self.partial.as_ref()
    }

    /// Why there is to be no result, although something was read.
    pub(super) const fn refused(&self) -> Option<&String> {
        self.refused.as_ref()
    }

    /// Goes on to the next packet.
    pub(super) fn advance(&mut self) -> Next {
        if self.partial.is_some() || self.refused.is_some() {
            return Next::End;
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
                        self.links.push((LinkType::of(interface.link_type), 0));
                    }
                    if let Some((_, packets)) = self.links.get_mut(found.interface as usize) {
                        *packets += 1;
                    }
                    return Next::Packet(found.time_ns);
                }
                Ok(Step::Other) => {}
                Ok(Step::End) => return Next::End,
                Err(Stop::Pending) => return Next::Pending,
                Err(Stop::Broken(reason)) => {
                    self.partial = Some(Partial { offset, reason });
                    return Next::End;
                }
                Err(Stop::Refused(reason)) => {
                    self.refused = Some(reason);
                    return Next::End;
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
            link: link.map_or(LinkType::Unknown, |link| link.0),
            time_ns: found.time_ns,
            direction: found.direction,
            bytes: self.window.taken(found.start, found.end),
            wire_len: found.wire_len,
        }
    }
}

/// Asks until there is an answer.
fn patiently<T>(mut ask: impl FnMut() -> Result<T, Stop>) -> Result<T, String> {
    loop {
        match ask() {
            Ok(found) => return Ok(found),
            Err(Stop::Pending) => {}
            Err(Stop::Broken(reason) | Stop::Refused(reason)) => return Err(reason),
        }
    }
}

fn describe(magic: [u8; 4]) -> String {
    match magic {
        [0x1f, 0x8b, ..] => "it is compressed twice (gzip)".to_owned(),
        [0x28, 0xb5, 0x2f, 0xfd] => "it is compressed twice (zstd)".to_owned(),
        [0x42, 0x5a, 0x68, _] => "the file is compressed (bzip2)".to_owned(),
        [0xfd, 0x37, 0x7a, 0x58] => "the file is compressed (xz)".to_owned(),
        [0x04, 0x22, 0x4d, 0x18] => "the file is compressed (lz4)".to_owned(),
        [a, b, c, d] => format!("it begins with {a:02x} {b:02x} {c:02x} {d:02x}"),
    }
}
