//! Packets: what stands before the transport, and TCP, UDP and ICMP.

use super::{Parsed, Parser};
use crate::drill::ast::{Direction, Icmp, IpField, Packet, Payload, Sequence, Tcp, TcpOption};
use crate::drill::lexer::Kind;
use core::net::IpAddr;

impl Parser<'_> {
    pub(super) fn packet(&mut self) -> Parsed<Packet> {
        let direction = if self.take("<") {
            Direction::In
        } else {
            self.expect(">")?;
            Direction::Out
        };
        let mut outer = Vec::new();
        while ["ipv4", "ipv6", "gre", "mpls"].iter().any(|name| self.is(name)) {
            outer.push(self.text_up_to(":")?);
        }
        let mut ip = self.ip_fields()?;
        let addresses = if self.is_kind(Kind::Ipv4) || self.is_kind(Kind::Ipv6) {
            let from = self.address()?;
            self.expect(">")?;
            Some((from, self.address()?))
        } else {
            None
        };
        if ip.is_empty() {
            ip = self.ip_fields()?;
        }
        let ports = self.ports()?;
        let (ports, payload) = match self.peek().map(|t| t.text) {
            Some("sctp") => (ports, Payload::Sctp(self.sctp_header()?)),
            Some("udp" | "udplite") => {
                let lite = self.advance().text == "udplite";
                let ports = if ports.is_some() { ports } else { self.ports()? };
                self.expect("(")?;
                let length = self.u32("the bytes of the datagram")?;
                let payload = if lite {
                    self.expect(",")?;
                    Payload::UdpLite(length, self.u32("the bytes that the checksum covers")?)
                } else {
                    Payload::Udp(length)
                };
                self.expect(")")?;
                (ports, payload)
            }
            Some("icmp") => (ports, Payload::Icmp(self.icmp()?)),
            _ => (ports, Payload::Tcp(self.tcp()?)),
        };
        let in_udp = self.in_udp()?;
        let payload = match payload {
            Payload::Sctp(mut sctp) => {
                self.expect(":")?;
                sctp.body = self.sctp_body()?;
                Payload::Sctp(sctp)
            }
            other => other,
        };
        Ok(Packet {
            direction,
            outer,
            ip,
            addresses,
            ports,
            in_udp,
            payload,
        })
    }

    fn address(&mut self) -> Parsed<IpAddr> {
        let address = self.peek().and_then(|t| t.text.parse().ok());
        let address = address.ok_or_else(|| self.error("an IP address"))?;
        self.next += 1;
        Ok(address)
    }

    /// `(ttl 64, ect0)` or the same between square brackets.
    fn ip_fields(&mut self) -> Parsed<Vec<IpField>> {
        let end = match self.peek().map(|t| t.text) {
            Some("(") => ")",
            Some("[") => "]",
            _ => return Ok(Vec::new()),
        };
        self.next += 1;
        self.list(end, |p| {
            let name = p.name("something of an IP header, such as `ttl`, `tos` or `ect0`")?;
            let value = p
                .peek()
                .filter(|t| matches!(t.kind, Kind::Name | Kind::Integer | Kind::Hexadecimal))
                .map(|t| t.text.to_owned());
            p.next += usize::from(value.is_some());
            Ok(IpField {
                name: name.to_owned(),
                value,
            })
        })
    }

    fn ports(&mut self) -> Parsed<Option<(u16, u16)>> {
        let named = self.is_kind(Kind::Integer) && self.peek_second().is_some_and(|t| t.text == ">");
        if !named {
            return Ok(None);
        }
        let from = self.u16("a port")?;
        self.expect(">")?;
        Ok(Some((from, self.u16("a port")?)))
    }

    fn in_udp(&mut self) -> Parsed<Option<(u16, u16)>> {
        if !self.take("/") {
            return Ok(None);
        }
        self.expect("udp")?;
        self.expect("(")?;
        let ports = self.ports()?;
        let ports = ports.ok_or_else(|| self.error("two ports, `>` between them"))?;
        self.expect(")")?;
        Ok(Some(ports))
    }

    fn tcp(&mut self) -> Parsed<Tcp> {
        let flags = self.tcp_flags()?;
        let (sequence, length) = self.tcp_sequence()?;
        let mut tcp = Tcp {
            flags,
            sequence,
            length,
            ack: None,
            window: None,
            urgent: None,
            options: Some(Vec::new()),
        };
        if self.take("ack") {
            tcp.ack = Some(self.u32("an acknowledgement number")?);
        }
        if self.take("win") {
            tcp.window = Some(self.u16("a window")?);
        }
        if self.take("urg") {
            tcp.urgent = Some(self.u16("an urgent pointer")?);
        }
        if self.take("<") {
            tcp.options = if self.take_kind(Kind::Ellipsis).is_some() {
                self.expect(">")?;
                None
            } else {
                Some(self.list(">", Self::tcp_option)?)
            };
        }
        if self.is("[") {
            return Err(self.error("the end of the segment: the payload of a RST is not understood"));
        }
        Ok(tcp)
    }

    fn tcp_flags(&mut self) -> Parsed<String> {
        const EXPECTED: &str = "TCP flags, `sctp`, `udp` or `icmp`";
        let mut flags = String::new();
        if self.take("-") {
            return Ok(flags);
        }
        while let Some(token) = self.peek() {
            let part = match token.kind {
                Kind::Name => token.text,
                Kind::Sign if token.text == "." => ".",
                // an acknowledgement with a digit for ACE
                Kind::Decimal if token.text.starts_with('.') => token.text,
                _ => break,
            };
            flags.push_str(part);
            self.next += 1;
            if !part.chars().all(|c| "FSRPUEWAC.01234567".contains(c)) {
                self.next -= 1;
                return Err(self.error(EXPECTED));
            }
        }
        if flags.is_empty() {
            return Err(self.error(EXPECTED));
        }
        Ok(flags)
    }

    fn tcp_sequence(&mut self) -> Parsed<(Option<Sequence>, u32)> {
        let range = if self.take_kind(Kind::Ellipsis).is_some() {
            None
        } else {
            let start = self.u32("a sequence number, or `...`")?;
            self.expect(":")?;
            Some((start, self.u32("the sequence number behind the last")?))
        };
        self.expect("(")?;
        let length = self.u32("the bytes of the segment")?;
        if range.is_some_and(|(start, end)| end.wrapping_sub(start) != length) {
            self.next -= 1;
            return Err(self.error("the difference of the two sequence numbers"));
        }
        self.expect(")")?;
        let absolute = range.is_some() && self.take("!");
        let sequence = range.map(|(start, end)| Sequence { start, end, absolute });
        Ok((sequence, length))
    }

    fn tcp_option(&mut self) -> Parsed<TcpOption> {
        let first = self.next;
        let name = self.peek().ok_or_else(|| self.error("a TCP option"))?.text;
        self.next += 1;
        Ok(match name {
            "nop" => TcpOption::Nop,
            "eol" => TcpOption::Eol,
            "sackOK" => TcpOption::SackPermitted,
            "mss" => TcpOption::Mss(self.u16("a segment size")?),
            "wscale" => TcpOption::WindowScale(self.number(255, "a window scale")? as u8),
            "sack" => {
                let mut blocks = Vec::new();
                while self.is_kind(Kind::Integer) || blocks.is_empty() {
                    let start = self.u32("a block of sequence numbers")?;
                    self.expect(":")?;
                    blocks.push((start, self.u32("the end of the block")?));
                }
                TcpOption::Sack(blocks)
            }
            "TS" => {
                self.expect("val")?;
                let value = if self.take_kind(Kind::Ellipsis).is_some() {
                    None
                } else {
                    Some(self.u32("a timestamp, or `...`")?)
                };
                self.expect("ecr")?;
                TcpOption::Timestamps {
                    value,
                    echo: self.u32("a timestamp")?,
                    absolute: self.take("!"),
                }
            }
            _ if known_option(name) || self.next == first + 1 && self.is(">") => {
                while !(self.is(",") || self.is(">")) {
                    if self.peek().is_none() {
                        return Err(self.error("`,` or `>`"));
                    }
                    self.next += 1;
                }
                let text = &self.source[self.tokens[first].start..self.tokens[self.next - 1].end()];
                TcpOption::Other(text.to_owned())
            }
            _ => {
                self.next = first;
                return Err(self.error("a TCP option"));
            }
        })
    }

    fn icmp(&mut self) -> Parsed<Icmp> {
        self.expect("icmp")?;
        let mut icmp = Icmp {
            kind: self.name("a type of ICMP message")?.to_owned(),
            code: None,
            mtu: None,
            id: None,
            quoted: None,
        };
        loop {
            if self.take("mtu") {
                icmp.mtu = Some(self.u32("an MTU")?);
            } else if self.take("id") {
                icmp.id = Some(self.u32("an identifier")?);
            } else if self.take("[") {
                icmp.quoted = Some(self.text_up_to("]")?);
            } else if let Some(code) = self.take_kind(Kind::Name) {
                icmp.code = Some(code.text.to_owned());
            } else {
                return Ok(icmp);
            }
        }
    }
}

/// Whether packetdrill has an option of this name that no machine of ours has.
fn known_option(name: &str) -> bool {
    let known = ["md5", "FO", "AccECN0", "AccECN1"];
    known.contains(&name) || name.starts_with("exp-") || name.starts_with("EXP-") || name.starts_with("gen-")
}
