//! SCTP packets: chunks, parameters and causes by their layouts.

use super::{Parsed, Parser};
use crate::drill::ast::{Body, Checksum, Sctp};
use crate::drill::layout::{Class, Field, Item, Layout, Shape, Value};
use crate::drill::lexer::Kind;
use crate::drill::tables::{ADDRESS_TYPES, by_name};

impl Parser<'_> {
    /// `sctp(bad_crc32c, tag=1)`; what follows the colon is left.
    pub(super) fn sctp_header(&mut self) -> Parsed<Sctp> {
        self.expect("sctp")?;
        let mut sctp = Sctp {
            checksum: Checksum::Right,
            tag: None,
            body: Body::Chunks(Vec::new()),
        };
        if self.take("(") {
            self.list(")", |p| {
                if p.take("bad_crc32c") {
                    sctp.checksum = Checksum::Bad;
                } else if p.take("zero_checksum") {
                    sctp.checksum = Checksum::Zero;
                } else if p.take("tag") {
                    p.expect("=")?;
                    sctp.tag = Some(p.u32("a verification tag")?);
                } else {
                    return Err(p.error("`bad_crc32c`, `zero_checksum` or `tag=`"));
                }
                Ok(())
            })?;
        }
        Ok(sctp)
    }

    pub(super) fn sctp_body(&mut self) -> Parsed<Body> {
        if self.take("[") {
            return Ok(Body::Bytes(self.list("]", Self::byte)?));
        }
        let mut chunks = Vec::new();
        if self.is_kind(Kind::Name) {
            chunks.push(self.item(Class::Chunk)?);
            while self.take(";") {
                chunks.push(self.item(Class::Chunk)?);
            }
        }
        Ok(Body::Chunks(chunks))
    }

    fn byte(&mut self) -> Parsed<u8> {
        Ok(self.number(255, "a byte")? as u8)
    }

    fn item(&mut self, class: Class) -> Parsed<Item> {
        let expected = match class {
            Class::Chunk => "the name of a chunk",
            Class::Parameter => "the name of a parameter",
            Class::Cause => "the name of an error cause",
        };
        let layout = self
            .peek()
            .and_then(|t| by_name(class, t.text))
            .ok_or_else(|| self.error(expected))?;
        self.next += 1;
        self.expect("[")?;
        let values = self.values(layout)?;
        Ok(Item { layout, values })
    }

    /// The values of a layout's fields, and the bracket behind them.
    fn values(&mut self, layout: &'static Layout) -> Parsed<Vec<Value>> {
        let fields: Vec<_> = layout.visible().collect();
        let all_at_once = fields.first().is_some_and(|f| !f.optional)
            && self.is_kind(Kind::Ellipsis)
            && self.peek_second().is_some_and(|t| t.text == "]");
        if all_at_once {
            self.next += 2;
            return Ok(vec![Value::Any; fields.len()]);
        }
        let mut values = Vec::new();
        for (i, field) in fields.iter().enumerate() {
            if field.optional && self.is("]") {
                values.push(Value::Absent);
                continue;
            }
            if i > 0 && !self.take(",") {
                let or_end = if field.optional { " or `]`" } else { "" };
                return Err(self.error(&format!("`,`{or_end}")));
            }
            values.push(self.field(layout, field)?);
        }
        self.expect("]")?;
        Ok(values)
    }

    fn field(&mut self, layout: &Layout, field: &Field) -> Parsed<Value> {
        if !field.name.is_empty() {
            if !field.name.split('|').any(|name| self.is(name)) {
                let name = field.name.replace('|', "=` or `");
                return Err(self.error(&format!("`{name}=`")));
            }
            self.next += 1;
            self.expect("=")?;
        }
        if self.take_kind(Kind::Ellipsis).is_some() {
            return Ok(Value::Any);
        }
        match (field.shape, field.name.is_empty()) {
            // a list without a name ends where its layout does
            (Shape::Parameters, true) => self.rest(Class::Parameter),
            (Shape::Causes, true) => self.rest(Class::Cause),
            (shape, _) => self.value(layout, shape),
        }
    }

    fn rest(&mut self, class: Class) -> Parsed<Value> {
        let mut items = vec![self.item(class)?];
        while self.take(",") {
            items.push(self.item(class)?);
        }
        Ok(Value::Items(items))
    }

    fn value(&mut self, layout: &Layout, shape: Shape) -> Parsed<Value> {
        const U16: u64 = u16::MAX as u64;
        const U32: u64 = u32::MAX as u64;
        Ok(match shape {
            Shape::Type => Value::Number(self.item_type(layout.class)?),
            Shape::Flags(letters) => Value::Number(self.flags(letters)?),
            Shape::Length => Value::Number(self.number(U16, "a length, or `...`")?),
            Shape::Number(bytes) => Value::Number(self.number(largest(bytes), "a number, or `...`")?),
            Shape::Tag => Value::Number(self.number(U32, "a tag, or `...`")?),
            Shape::OwnTsn | Shape::PeerTsn => Value::Number(self.number(U32, "a TSN, or `...`")?),
            Shape::Bytes => {
                self.expect("[")?;
                if self.any_list() {
                    return Ok(Value::Any);
                }
                Value::Bytes(self.list("]", Self::byte)?)
            }
            Shape::Text => {
                let text = self.take_kind(Kind::Text);
                Value::Text(
                    text.ok_or_else(|| self.error("a text, or `...`"))?
                        .inner()
                        .to_owned(),
                )
            }
            Shape::Numbers(bytes) => self.numbers(|p| p.number(largest(bytes), "a number"))?,
            Shape::CountedNumbers => self.numbers(|p| p.number(U16, "a parameter type"))?,
            Shape::Duplicates => self.numbers(|p| p.number(U32, "a TSN"))?,
            Shape::AddressTypes => self.numbers(Self::address_type)?,
            Shape::ChunkTypes => self.numbers(|p| p.item_type(Class::Chunk))?,
            Shape::Blocks => {
                self.expect("[")?;
                if self.any_list() {
                    return Ok(Value::Any);
                }
                Value::Groups(self.list("]", |p| {
                    let start = p.number(U16, "the start of a gap ack block")?;
                    p.expect(":")?;
                    Ok(vec![start, p.number(U16, "the end of a gap ack block")?])
                })?)
            }
            Shape::Groups(widths) => {
                self.expect("[")?;
                if self.any_list() {
                    return Ok(Value::Any);
                }
                Value::Groups(self.list("]", |p| {
                    p.expect("{")?;
                    let mut group = Vec::new();
                    for (i, width) in widths.iter().enumerate() {
                        if i > 0 {
                            p.expect(",")?;
                        }
                        group.push(p.number(largest(*width), "a number")?);
                    }
                    p.expect("}")?;
                    Ok(group)
                })?)
            }
            Shape::Ipv4 | Shape::Ipv6 | Shape::AddressParameter => {
                let fits = |kind| match shape {
                    Shape::Ipv4 => kind == Kind::Ipv4,
                    Shape::Ipv6 => kind == Kind::Ipv6,
                    _ => matches!(kind, Kind::Ipv4 | Kind::Ipv6),
                };
                let address = self
                    .peek()
                    .filter(|t| fits(t.kind))
                    .and_then(|t| t.text.parse().ok());
                let address = address.ok_or_else(|| self.error("an address of this type, or `...`"))?;
                self.next += 1;
                Value::Address(address)
            }
            Shape::Parameters | Shape::Causes => {
                let class = if shape == Shape::Causes {
                    Class::Cause
                } else {
                    Class::Parameter
                };
                self.expect("[")?;
                Value::Items(self.list("]", |p| p.item(class))?)
            }
            Shape::Parameter => Value::Items(vec![self.item(Class::Parameter)?]),
            Shape::Chunk => Value::Items(vec![self.item(Class::Chunk)?]),
            Shape::Reserved(_) | Shape::UserData => Value::Absent,
        })
    }

    /// `...]`, behind a bracket that was taken.
    fn any_list(&mut self) -> bool {
        let any = self.is_kind(Kind::Ellipsis) && self.peek_second().is_some_and(|t| t.text == "]");
        self.next += if any { 2 } else { 0 };
        any
    }

    fn numbers(&mut self, one: impl FnMut(&mut Self) -> Parsed<u64>) -> Parsed<Value> {
        self.expect("[")?;
        if self.any_list() {
            return Ok(Value::Any);
        }
        Ok(Value::Numbers(self.list("]", one)?))
    }

    /// A type or code by number, or a chunk type by name.
    fn item_type(&mut self, class: Class) -> Parsed<u64> {
        let by_name = self
            .peek()
            .filter(|_| class == Class::Chunk)
            .and_then(|t| by_name(class, t.text)?.number);
        if let Some(number) = by_name {
            self.next += 1;
            return Ok(number.into());
        }
        let most = if class == Class::Chunk { 255 } else { 65535 };
        self.number(most, "a type, by number or name, or `...`")
    }

    fn address_type(&mut self) -> Parsed<u64> {
        let named = ADDRESS_TYPES.iter().find(|(name, _)| self.is(name));
        match named {
            Some((_, number)) => {
                self.next += 1;
                Ok(*number)
            }
            None => self.number(65535, "an address type"),
        }
    }

    /// Flags as a number, or as letters.
    fn flags(&mut self, letters: &[(char, u8)]) -> Parsed<u64> {
        let known: String = letters.iter().map(|(letter, _)| *letter).collect();
        let Some(token) = self.take_kind(Kind::Name) else {
            return self.number(255, "flags, or `...`");
        };
        let mut flags = 0;
        for letter in token.text.chars() {
            match letters.iter().find(|(l, _)| *l == letter) {
                Some((_, bit)) if flags & u64::from(*bit) == 0 => flags |= u64::from(*bit),
                _ => {
                    self.next -= 1;
                    return Err(self.error(&format!("flags: a number, or letters of `{known}`, each once")));
                }
            }
        }
        Ok(flags)
    }
}

/// The largest number of so many bytes.
const fn largest(bytes: u8) -> u64 {
    (1 << (8 * bytes as u64)) - 1
}
