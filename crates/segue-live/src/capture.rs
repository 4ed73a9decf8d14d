//! What a driver sends and receives, as a pcapng file.

use segue_capture::pcapng::{CaptureInterface, Direction, PcapngWriter};
use segue_proto::{Instant, InterfaceId};
use segue_wire::checksum::PseudoHeader;
use segue_wire::{Ipv6Header, Packet, sctp, udp};
use std::io::{self, Write};
use std::net::Ipv6Addr;

use crate::Clock;

/// Writes packets with the time of the calendar clock.
///
/// The kernel takes the IPv6 header off what it hands over; it is written with the addresses and ports that the packet
/// came with, hop limit 64 and no traffic class or flow label.
pub struct Capture {
    writer: PcapngWriter<Box<dyn Write>>,
    clock: Clock,
    interfaces: Vec<(InterfaceId, CaptureInterface)>,
    bytes: Vec<u8>,
}

impl Capture {
    /// Starts a file.
    ///
    /// # Errors
    /// As `out` has them.
    pub fn new(out: Box<dyn Write>, clock: Clock) -> io::Result<Self> {
        Ok(Self {
            writer: PcapngWriter::new(out, "segue sctp")?,
            clock,
            interfaces: Vec::new(),
            bytes: Vec::new(),
        })
    }

    /// Writes a packet that is being sent.
    ///
    /// # Errors
    /// As the output has them.
    pub fn sent(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        name: &str,
        packet: &Packet,
    ) -> io::Result<()> {
        let time = self.clock.unix_ns(now);
        let interface = self.interface(interface, name)?;
        self.writer.packet(interface, time, Direction::Outbound, packet)
    }

    /// Writes the bytes of an SCTP packet received from `from` at `to`, in UDP between `udp_ports` (the sender's first) or
    /// not.
    ///
    /// # Errors
    /// As the output has them.
    #[expect(clippy::too_many_arguments, reason = "what the kernel says of a packet")]
    pub fn received(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        name: &str,
        from: Ipv6Addr,
        to: Ipv6Addr,
        udp_ports: Option<(u16, u16)>,
        sctp: &[u8],
    ) -> io::Result<()> {
        let time = self.clock.unix_ns(now);
        let interface = self.interface(interface, name)?;
        let ip = Ipv6Header {
            source: from,
            destination: to,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        };
        let mut bytes = core::mem::take(&mut self.bytes);
        bytes.clear();
        match udp_ports {
            None => {
                ip.emit(length(sctp.len()), sctp::NEXT_HEADER, &mut bytes);
                bytes.extend(sctp);
            }
            Some((source_port, destination_port)) => {
                let len = length(udp::HEADER_LEN + sctp.len());
                ip.emit(len, udp::NEXT_HEADER, &mut bytes);
                let start = bytes.len();
                for half in [source_port, destination_port, len, 0] {
                    bytes.extend(half.to_be_bytes());
                }
                bytes.extend(sctp);
                let pseudo = PseudoHeader {
                    source: from,
                    destination: to,
                };
                // a sum of zero is sent as all ones (RFC 768)
                let checksum = match pseudo.checksum(udp::NEXT_HEADER, &bytes[start..]) {
                    0 => 0xffff,
                    checksum => checksum,
                };
                bytes[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
            }
        }
        let result = self
            .writer
            .packet_bytes(interface, time, Direction::Inbound, &bytes);
        self.bytes = bytes;
        result
    }

    /// Ends the file.
    ///
    /// # Errors
    /// As the output has them.
    pub fn finish(self) -> io::Result<()> {
        self.writer.finish()?.flush()
    }

    fn interface(&mut self, id: InterfaceId, name: &str) -> io::Result<CaptureInterface> {
        if let Some((_, interface)) = self.interfaces.iter().find(|(own, _)| *own == id) {
            return Ok(*interface);
        }
        let interface = self.writer.interface(name, "")?;
        self.interfaces.push((id, interface));
        Ok(interface)
    }
}

fn length(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}
