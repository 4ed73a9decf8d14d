//! Packets as a script writes them.

use super::ast::{Body, Checksum, Direction, Icmp, IpField, Packet, Payload, Sctp, Tcp, TcpOption};
use super::layout::{Class, Field, Item, Layout, Shape, Value};
use super::tables::{ADDRESS_TYPES, table};
use core::fmt::{Display, Formatter, Result};

impl Display for Packet {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self.direction {
            Direction::In => "<",
            Direction::Out => ">",
        })?;
        for outer in &self.outer {
            write!(f, " {outer}:")?;
        }
        if !self.ip.is_empty() {
            write!(f, " [{}]", List(&self.ip, ", "))?;
        }
        if let Some((from, to)) = self.addresses {
            write!(f, " {from} > {to}")?;
        }
        if let Some((from, to)) = self.ports {
            write!(f, " {from} > {to}")?;
        }
        match &self.payload {
            Payload::Sctp(sctp) => write!(f, " {sctp}"),
            Payload::Tcp(tcp) => write!(f, " {tcp}"),
            Payload::Udp(length) => write!(f, " udp ({length})"),
            Payload::UdpLite(length, covered) => write!(f, " udplite ({length}, {covered})"),
            Payload::Icmp(icmp) => write!(f, " {icmp}"),
        }
    }
}

impl Display for IpField {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.name)?;
        self.value.iter().try_for_each(|value| write!(f, " {value}"))
    }
}

impl Display for Sctp {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut words = Vec::new();
        match self.checksum {
            Checksum::Right => {}
            Checksum::Bad => words.push("bad_crc32c".to_owned()),
            Checksum::Zero => words.push("zero_checksum".to_owned()),
        }
        words.extend(self.tag.map(|tag| format!("tag={tag}")));
        f.write_str("sctp")?;
        if !words.is_empty() {
            write!(f, "({})", List(&words, ", "))?;
        }
        match &self.body {
            Body::Chunks(chunks) => write!(f, ": {}", List(chunks, "; ")),
            Body::Bytes(bytes) => write!(f, ": {}", Bytes(bytes)),
        }
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}[", self.layout.name)?;
        let mut first = true;
        for (field, value) in self.pairs().filter(|(_, v)| **v != Value::Absent) {
            if !core::mem::take(&mut first) {
                f.write_str(", ")?;
            }
            if !field.name.is_empty() {
                let name = field.name.split('|').next().unwrap_or_default();
                write!(f, "{name}=")?;
            }
            write_value(f, self.layout, field, value)?;
        }
        f.write_str("]")
    }
}

fn write_value(f: &mut Formatter<'_>, layout: &Layout, field: &Field, value: &Value) -> Result {
    match (value, field.shape) {
        (Value::Any, _) => f.write_str("..."),
        (Value::Absent, _) => Ok(()),
        (Value::Number(number), Shape::Flags(letters)) => write_flags(f, *number, letters),
        (Value::Number(number), Shape::Type) => write_type(f, layout.class, *number),
        (Value::Number(number), _) => write!(f, "{number}"),
        (Value::Bytes(bytes), _) => Bytes(bytes).fmt(f),
        (Value::Text(text), _) => write!(f, "\"{text}\""),
        (Value::Address(address), _) => address.fmt(f),
        (Value::Numbers(numbers), shape) => {
            f.write_str("[")?;
            for (i, number) in numbers.iter().enumerate() {
                f.write_str(if i > 0 { ", " } else { "" })?;
                let address = ADDRESS_TYPES.iter().find(|(_, n)| n == number);
                match (shape, address) {
                    (Shape::ChunkTypes, _) => write_type(f, Class::Chunk, *number)?,
                    (Shape::AddressTypes, Some((name, _))) => f.write_str(name)?,
                    _ => write!(f, "{number}")?,
                }
            }
            f.write_str("]")
        }
        (Value::Groups(groups), shape) => {
            let blocks: Vec<_> = groups
                .iter()
                .map(|group| match shape {
                    Shape::Blocks => List(group, ":").to_string(),
                    _ => format!("{{{}}}", List(group, ",")),
                })
                .collect();
            write!(f, "[{}]", List(&blocks, ", "))
        }
        (Value::Items(items), Shape::Parameters | Shape::Causes) if !field.name.is_empty() => {
            write!(f, "[{}]", List(items, ", "))
        }
        (Value::Items(items), _) => List(items, ", ").fmt(f),
    }
}

/// Letters where every bit has one, a number otherwise.
fn write_flags(f: &mut Formatter<'_>, flags: u64, letters: &[(char, u8)]) -> Result {
    let lettered: u64 = letters.iter().map(|(_, bit)| u64::from(*bit)).sum();
    if flags == 0 || flags & !lettered != 0 {
        return write!(f, "{}", Hexadecimal(flags));
    }
    letters
        .iter()
        .filter(|(_, bit)| flags & u64::from(*bit) != 0)
        .try_for_each(|(letter, _)| write!(f, "{letter}"))
}

fn write_type(f: &mut Formatter<'_>, class: Class, number: u64) -> Result {
    let named = table(class)
        .iter()
        .find(|l| class == Class::Chunk && l.number.map(u64::from) == Some(number));
    match named {
        Some(layout) => f.write_str(layout.name),
        None => write!(f, "{number:#04x}"),
    }
}

/// Zero as it is, anything else to base 16.
struct Hexadecimal(u64);

impl Display for Hexadecimal {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            0 => f.write_str("0"),
            number => write!(f, "{number:#04x}"),
        }
    }
}

impl Display for Tcp {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(if self.flags.is_empty() { "-" } else { &self.flags })?;
        match self.sequence {
            Some(s) => {
                let mark = if s.absolute { "!" } else { "" };
                write!(f, " {}:{}({}){mark}", s.start, s.end, self.length)?;
            }
            None => write!(f, " ...({})", self.length)?,
        }
        self.ack.iter().try_for_each(|ack| write!(f, " ack {ack}"))?;
        self.window.iter().try_for_each(|win| write!(f, " win {win}"))?;
        self.urgent.iter().try_for_each(|urg| write!(f, " urg {urg}"))?;
        match &self.options {
            None => f.write_str(" <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => write!(f, " <{}>", List(options, ",")),
        }
    }
}

impl Display for TcpOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Nop => f.write_str("nop"),
            Self::Eol => f.write_str("eol"),
            Self::Mss(mss) => write!(f, "mss {mss}"),
            Self::WindowScale(scale) => write!(f, "wscale {scale}"),
            Self::SackPermitted => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks
                    .iter()
                    .try_for_each(|(start, end)| write!(f, " {start}:{end}"))
            }
            Self::Timestamps {
                value,
                echo,
                absolute,
            } => {
                let mark = if *absolute { "!" } else { "" };
                match value {
                    Some(value) => write!(f, "TS val {value} ecr {echo}{mark}"),
                    None => write!(f, "TS val ... ecr {echo}{mark}"),
                }
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl Display for Icmp {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "icmp {}", self.kind)?;
        self.code.iter().try_for_each(|code| write!(f, " {code}"))?;
        self.mtu.iter().try_for_each(|mtu| write!(f, " mtu {mtu}"))?;
        self.id.iter().try_for_each(|id| write!(f, " id {id}"))?;
        self.quoted.iter().try_for_each(|quoted| write!(f, " [{quoted}]"))
    }
}

struct Bytes<'a>(&'a [u8]);

impl Display for Bytes<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let bytes: Vec<_> = self.0.iter().map(|byte| format!("{byte:#04x}")).collect();
        write!(f, "[{}]", List(&bytes, ", "))
    }
}

/// Things with something between them.
struct List<'a, T>(&'a [T], &'static str);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (i, one) in self.0.iter().enumerate() {
            f.write_str(if i > 0 { self.1 } else { "" })?;
            one.fmt(f)?;
        }
        Ok(())
    }
}
