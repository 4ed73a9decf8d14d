//! ICMPv6 errors that the kernel keeps with the socket (`IPV6_RECVERR`), as the messages that they were.

use bytes::Bytes;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::{Ipv6Header, sctp, udp};
use std::net::Ipv6Addr;

/// What the kernel says of an ICMPv6 error about a packet of this socket's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice<'a> {
    pub message_type: u8,
    pub code: u8,
    /// MTU or pointer.
    pub info: u32,
    /// Addresses of the packet that the error is about.
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    /// Its UDP ports, if it went in UDP.
    pub udp_ports: Option<(u16, u16)>,
    /// What the message quotes of it behind the IPv6 or UDP header.
    pub quoted: &'a [u8],
}

impl Notice<'_> {
    /// The message, with the headers put back that the kernel took off the packet it quotes. `None` if it is no error that
    /// RFC 4443 defines.
    pub(crate) fn message(&self) -> Option<Icmpv6> {
        let invoking = self.invoking();
        Some(match self.message_type {
            1 => Icmpv6::DestinationUnreachable {
                code: self.code,
                invoking,
            },
            2 => Icmpv6::PacketTooBig {
                mtu: self.info,
                invoking,
            },
            3 => Icmpv6::TimeExceeded {
                code: self.code,
                invoking,
            },
            4 => Icmpv6::ParameterProblem {
                code: self.code,
                pointer: self.info,
                invoking,
            },
            _ => return None,
        })
    }

    fn invoking(&self) -> Bytes {
        let ip = Ipv6Header {
            source: self.source,
            destination: self.destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        };
        let mut bytes = Vec::with_capacity(48 + self.quoted.len());
        match self.udp_ports {
            None => ip.emit(length(self.quoted.len()), sctp::NEXT_HEADER, &mut bytes),
            Some((source_port, destination_port)) => {
                let len = length(udp::HEADER_LEN + self.quoted.len());
                ip.emit(len, udp::NEXT_HEADER, &mut bytes);
                // the checksum is lost, and nobody can check it on a part of a packet
                for half in [source_port, destination_port, len, 0] {
                    bytes.extend(half.to_be_bytes());
                }
            }
        }
        bytes.extend(self.quoted);
        bytes.into()
    }
}

fn length(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_wire::Data;
    use segue_wire::Packet;
    use segue_wire::Payload;
    use segue_wire::sctp::{Chunk, SctpPacket};

    fn sctp_bytes() -> (SctpPacket, Vec<u8>) {
        let packet = SctpPacket {
            source_port: 1,
            destination_port: 2,
            verification_tag: 3,
            chunks: [Chunk::CookieAck].into_iter().collect(),
        };
        let mut bytes = Vec::new();
        packet.emit(&mut bytes);
        (packet, bytes)
    }

    fn notice(message_type: u8, udp_ports: Option<(u16, u16)>, quoted: &[u8]) -> Notice<'_> {
        Notice {
            message_type,
            code: 1,
            info: 1280,
            source: Ipv6Addr::LOCALHOST,
            destination: "2001:db8::1".parse().unwrap(),
            udp_ports,
            quoted,
        }
    }

    #[test]
    fn the_quoted_packet_is_whole_again() {
        let (packet, bytes) = sctp_bytes();
        let Some(Icmpv6::PacketTooBig { mtu: 1280, invoking }) = notice(2, None, &bytes).message() else {
            panic!("not packet too big");
        };
        let parsed = Packet::parse_bytes(invoking).unwrap();
        assert_eq!(parsed.payload, Payload::Sctp(packet));
        assert_eq!(parsed.ip.destination, "2001:db8::1".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn the_udp_header_is_put_back() {
        let (_, bytes) = sctp_bytes();
        let message = notice(1, Some((40_000, 9899)), &bytes).message();
        let Some(Icmpv6::DestinationUnreachable { code: 1, invoking }) = message else {
            panic!("not unreachable");
        };
        assert_eq!(invoking[6], 17);
        let expected = [40_000_u16, 9899, 8 + bytes.len() as u16, 0]
            .map(u16::to_be_bytes)
            .concat();
        assert_eq!(invoking[40..48], expected);
        assert_eq!(Data::Bytes(invoking.slice(48..)), Data::Bytes(bytes.into()));
    }

    #[test]
    fn what_is_no_error_is_nothing() {
        assert!(notice(128, None, &[]).message().is_none());
    }
}
