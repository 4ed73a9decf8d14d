//! Shapes of SCTP's chunks, parameters and error causes, as tables.
//!
//! One table (`tables`) says of each what it is called, its number, and its fields in order. Parsing a script, writing a
//! packet as a script would, bytes from a script and back, and comparing the two all follow the table, so that another chunk
//! is a row.

use core::net::IpAddr;

/// What a layout is the layout of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A chunk (RFC 9260 section 3.2).
    Chunk,
    /// A parameter (RFC 9260 section 3.2.1).
    Parameter,
    /// An error cause (RFC 9260 section 3.3.10).
    Cause,
}

/// The layout of a chunk, a parameter or a cause.
#[derive(PartialEq, Eq, Debug)]
pub struct Layout {
    /// Of what.
    pub class: Class,
    /// Name in scripts.
    pub name: &'static str,
    /// Type or code; `None` of a generic one, whose first field it is.
    pub number: Option<u16>,
    /// Fields, as they follow each other both in a script and, type, flags and length aside, in bytes.
    pub fields: &'static [Field],
}

/// A field.
#[derive(PartialEq, Eq, Debug)]
pub struct Field {
    /// Name in scripts; empty where the value stands alone.
    pub name: &'static str,
    /// Its shape.
    pub shape: Shape,
    /// Whether it may be left out, with all that follow.
    pub optional: bool,
}

/// The shape of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Type or code of a generic layout.
    Type,
    /// Chunk flags, with letters for some.
    Flags(&'static [(char, u8)]),
    /// The length that the header has.
    Length,
    /// A number of so many bytes.
    Number(u8),
    /// Zeros of so many bytes, which scripts do not mention.
    Reserved(u8),
    /// An initiate tag.
    Tag,
    /// A TSN, or a number that starts as one, of who sends this chunk.
    OwnTsn,
    /// One of who receives this chunk.
    PeerTsn,
    /// Bytes up to the end.
    Bytes,
    /// User data up to the end, which scripts do not mention.
    UserData,
    /// Text up to the end.
    Text,
    /// Numbers of so many bytes up to the end.
    Numbers(u8),
    /// Numbers of 16 bits, a count of 32 bits before them.
    CountedNumbers,
    /// Gap ack blocks; the counts of all lists of the chunk come before the first of them.
    Blocks,
    /// TSNs of who receives this chunk, counted likewise.
    Duplicates,
    /// Groups of numbers of so many bytes, up to the end.
    Groups(&'static [u8]),
    /// Address types by name.
    AddressTypes,
    /// Chunk types by name.
    ChunkTypes,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// An address as a parameter of either type.
    AddressParameter,
    /// Parameters up to the end.
    Parameters,
    /// Causes up to the end.
    Causes,
    /// One parameter.
    Parameter,
    /// One chunk.
    Chunk,
}

impl Shape {
    /// Whether scripts leave it out.
    #[must_use]
    pub const fn is_hidden(self) -> bool {
        matches!(self, Self::Reserved(_) | Self::UserData)
    }
}

/// A chunk, a parameter or a cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// Its layout.
    pub layout: &'static Layout,
    /// A value for each field of the layout that is not hidden.
    pub values: Vec<Value>,
}

/// The value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// `...`: any.
    Any,
    /// Left out.
    Absent,
    /// A number.
    Number(u64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A text.
    Text(String),
    /// Numbers.
    Numbers(Vec<u64>),
    /// Groups of numbers; a gap ack block is one of two.
    Groups(Vec<Vec<u64>>),
    /// An address.
    Address(IpAddr),
    /// Chunks, parameters or causes.
    Items(Vec<Item>),
}

impl Layout {
    /// The fields that scripts mention.
    pub fn visible(&self) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().filter(|f| !f.shape.is_hidden())
    }
}

impl Item {
    /// The value of the field with this name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.pairs().find(|(f, _)| f.name == name).map(|(_, v)| v)
    }

    /// The number in the field with this name, if there is one.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Fields with their values.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static Field, &Value)> {
        self.layout.visible().zip(&self.values)
    }
}
