//! pcapng files (draft-ietf-opsawg-pcapng), little-endian.
//!
//! One section with one interface per simulated interface, link type raw IPv6, nanosecond stamps, and the direction of
//! each packet. The bytes are those that [`segue_wire::Packet::emit`] makes, checksums included. No file is opened
//! here: the writer fills any [`Write`].

mod reader;

pub use reader::{CapturedPacket, PcapngFile, ReadError};

use segue_wire::Packet;
use std::io::{self, Write};

/// Link type of raw IPv6 packets (LINKTYPE_IPV6).
pub const LINKTYPE_IPV6: u16 = 229;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
/// Stamps count units of 10^-9 s.
const TSRESOL_NANOSECONDS: u8 = 9;

/// Whether the interface's owner received a packet or sent it (bits 0 and 1 of epb_flags).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// An interface of the section, in the order of [`PcapngWriter::interface`] calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CaptureInterface(pub u32);

/// Writes one section. Every block is written whole, with one call of [`Write::write_all`].
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    interfaces: u32,
    /// Block under construction, reused.
    block: Vec<u8>,
    /// Packet bytes, reused.
    packet: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a section; `comment` says where the packets come from (scenario, seed).
    ///
    /// # Errors
    /// As `out` has them.
    pub fn new(out: W, comment: &str) -> io::Result<Self> {
        let mut writer = Self {
            out,
            interfaces: 0,
            block: Vec::new(),
            packet: Vec::new(),
        };
        writer.begin(SECTION_HEADER);
        writer.block.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        writer.block.extend(1u16.to_le_bytes());
        writer.block.extend(0u16.to_le_bytes());
        // Section length: not stated.
        writer.block.extend(u64::MAX.to_le_bytes());
        if !comment.is_empty() {
            writer.option(OPT_COMMENT, comment.as_bytes());
        }
        writer.option(
            SHB_USERAPPL,
            concat!("segue ", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        writer.option(OPT_END, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Describes an interface; packets of it may follow.
    ///
    /// # Errors
    /// As the output has them.
    pub fn interface(&mut self, name: &str, description: &str) -> io::Result<CaptureInterface> {
        self.begin(INTERFACE_DESCRIPTION);
        self.block.extend(LINKTYPE_IPV6.to_le_bytes());
        self.block.extend(0u16.to_le_bytes());
        // Snap length: none.
        self.block.extend(0u32.to_le_bytes());
        self.option(IF_NAME, name.as_bytes());
        if !description.is_empty() {
            self.option(IF_DESCRIPTION, description.as_bytes());
        }
        self.option(IF_TSRESOL, &[TSRESOL_NANOSECONDS]);
        self.option(OPT_END, &[]);
        self.end()?;
        self.interfaces += 1;
        Ok(CaptureInterface(self.interfaces - 1))
    }

    /// Writes a typed packet, emitted with real checksums.
    ///
    /// # Errors
    /// As the output has them.
    pub fn packet(
        &mut self,
        interface: CaptureInterface,
        time_ns: u64,
        direction: Direction,
        packet: &Packet,
    ) -> io::Result<()> {
        let mut bytes = core::mem::take(&mut self.packet);
        bytes.clear();
        packet.emit(&mut bytes);
        let result = self.packet_bytes(interface, time_ns, direction, &bytes);
        self.packet = bytes;
        result
    }

    /// Writes a packet that is already bytes, from the IPv6 header on.
    ///
    /// # Errors
    /// As the output has them.
    ///
    /// # Panics
    /// If the interface is of another writer.
    pub fn packet_bytes(
        &mut self,
        interface: CaptureInterface,
        time_ns: u64,
        direction: Direction,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.cut_packet(interface, time_ns, direction, bytes, bytes.len() as u32)
    }

    /// Writes the first bytes of a packet that had so many, from the IPv6 header on.
    ///
    /// # Errors
    /// As the output has them.
    ///
    /// # Panics
    /// If the interface is of another writer.
    pub fn cut_packet(
        &mut self,
        interface: CaptureInterface,
        time_ns: u64,
        direction: Direction,
        bytes: &[u8],
        original_length: u32,
    ) -> io::Result<()> {
        assert!(interface.0 < self.interfaces, "interface was not described");
        self.begin(ENHANCED_PACKET);
        self.block.extend(interface.0.to_le_bytes());
        self.block.extend(((time_ns >> 32) as u32).to_le_bytes());
        self.block.extend((time_ns as u32).to_le_bytes());
        self.block.extend((bytes.len() as u32).to_le_bytes());
        self.block.extend(original_length.to_le_bytes());
        self.block.extend(bytes);
        self.pad();
        let flags: u32 = match direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        self.option(EPB_FLAGS, &flags.to_le_bytes());
        self.option(OPT_END, &[]);
        self.end()
    }

    /// What has been written, so that it can be taken from memory meanwhile.
    pub fn output_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends the section and gives the output back.
    ///
    /// # Errors
    /// As the output has them.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, block_type: u32) {
        self.block.clear();
        self.block.extend(block_type.to_le_bytes());
        // Total length, known at the end.
        self.block.extend([0; 4]);
    }

    fn end(&mut self) -> io::Result<()> {
        let total = (self.block.len() as u32 + 4).to_le_bytes();
        self.block.extend(total);
        self.block[4..8].copy_from_slice(&total);
        self.out.write_all(&self.block)
    }

    /// Options are short texts of ours; one that is too long for its length field is cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.block.len().next_multiple_of(4);
        self.block.resize(padded, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_wire::sctp::{Chunk, SctpPacket};
    use segue_wire::{Ipv6Header, Payload};

    fn sample() -> Vec<u8> {
        let mut writer = PcapngWriter::new(Vec::new(), "scenario sigma, seed 1").unwrap();
        let eth = writer.interface("cn.eth0", "").unwrap();
        let wlan = writer.interface("mh.wlan0", "cell ar1").unwrap();
        writer
            .packet_bytes(eth, 1, Direction::Outbound, &[0x60, 1, 2])
            .unwrap();
        writer
            .packet_bytes(wlan, 0x1_2345_6789_abcd, Direction::Inbound, &[0x60; 40])
            .unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let file = PcapngFile::parse(&sample()).unwrap();
        assert_eq!(file.interfaces, ["cn.eth0", "mh.wlan0"]);
        assert_eq!(
            file.packets,
            [
                CapturedPacket {
                    interface: 0,
                    time_ns: 1,
                    direction: Some(Direction::Outbound),
                    bytes: vec![0x60, 1, 2],
                },
                CapturedPacket {
                    interface: 1,
                    time_ns: 0x1_2345_6789_abcd,
                    direction: Some(Direction::Inbound),
                    bytes: vec![0x60; 40],
                },
            ]
        );
    }

    #[test]
    fn typed_packet_is_written_with_checksums_that_parse_again() {
        let packet = Packet {
            ip: Ipv6Header {
                source: "2001:db8:1::1".parse().unwrap(),
                destination: "2001:db8:2::1".parse().unwrap(),
                traffic_class: 0,
                hop_limit: 64,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload: Payload::Sctp(SctpPacket {
                source_port: 5001,
                destination_port: 5001,
                verification_tag: 0x1234_5678,
                chunks: [Chunk::CookieAck].into_iter().collect(),
            }),
        };
        let mut writer = PcapngWriter::new(Vec::new(), "").unwrap();
        let eth = writer.interface("cn.eth0", "").unwrap();
        writer.packet(eth, 7, Direction::Outbound, &packet).unwrap();
        let file = PcapngFile::parse(&writer.finish().unwrap()).unwrap();
        assert_eq!(Packet::parse(&file.packets[0].bytes).unwrap(), packet);
    }

    #[test]
    fn section_header_has_the_bytes_of_the_draft() {
        let bytes = sample();
        assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
        assert_eq!(
            bytes[8..24],
            [
                0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255
            ]
        );
        let total = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        assert_eq!(total % 4, 0);
        assert_eq!(bytes[total - 4..total], bytes[4..8]);
    }

    #[test]
    fn every_truncation_is_an_error_or_a_shorter_file() {
        let bytes = sample();
        let whole = PcapngFile::parse(&bytes).unwrap().packets.len();
        for end in 0..bytes.len() {
            if let Ok(file) = PcapngFile::parse(&bytes[..end]) {
                assert!(file.packets.len() < whole, "cut at {end}");
            }
        }
    }
}
