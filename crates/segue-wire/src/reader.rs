//! A checked cursor over bytes.

use crate::ParseError;
use bytes::Bytes;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A cursor that can only fail with [`ParseError::Truncated`], naming the structure being read.
///
/// What it hands out as [`Bytes`] shares the storage it reads from.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    storage: &'a Bytes,
    rest: &'a [u8],
    context: &'static str,
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `storage`; `context` names the structure in errors.
    #[must_use]
    pub fn new(storage: &'a Bytes, context: &'static str) -> Self {
        Self {
            storage,
            rest: storage,
            context,
        }
    }

    /// The same position, under another name.
    #[must_use]
    pub const fn named(self, context: &'static str) -> Self {
        Self { context, ..self }
    }

    /// The name of the structure being read.
    #[must_use]
    pub const fn context(&self) -> &'static str {
        self.context
    }

    /// Number of bytes not yet read.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything has been read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes not yet read, without reading them.
    #[must_use]
    pub const fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] if fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(ParseError::Truncated(self.context))?;
        self.rest = rest;
        Ok(*head)
    }

    /// Reads a byte.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] if none is left.
    pub fn u8(&mut self) -> Result<u8, ParseError> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads two bytes in network order.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] if fewer are left.
    pub fn u16(&mut self) -> Result<u16, ParseError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads four bytes in network order.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] if fewer are left.
    pub fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads an IPv4 address.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] if fewer than 4 bytes are left.
    pub fn ipv4(&mut self) -> Result<Ipv4Addr, ParseError> {
        self.array::<4>().map(Ipv4Addr::from)
    }

    /// Reads an IPv6 address.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] if fewer than 16 bytes are left.
    pub fn ipv6(&mut self) -> Result<Ipv6Addr, ParseError> {
        self.array::<16>().map(Ipv6Addr::from)
    }

    /// Passes over `n` bytes.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] if fewer are left.
    pub fn skip(&mut self, n: usize) -> Result<(), ParseError> {
        self.slice(n).map(|_| ())
    }

    /// Passes over `n` bytes, or over what is left if that is less: for padding a sender may have left off.
    pub fn skip_at_most(&mut self, n: usize) {
        self.rest = self.rest.get(n..).unwrap_or_default();
    }

    /// Reads `n` bytes, sharing storage.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] if fewer are left.
    pub fn bytes(&mut self, n: usize) -> Result<Bytes, ParseError> {
        self.slice(n).map(|s| self.storage.slice_ref(s))
    }

    /// Reads everything that is left, sharing storage.
    pub fn rest(&mut self) -> Bytes {
        self.storage.slice_ref(core::mem::take(&mut self.rest))
    }

    /// Splits off a cursor over the next `n` bytes, under another name.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], under this cursor's name, if fewer are left.
    pub fn take(&mut self, n: usize, context: &'static str) -> Result<Self, ParseError> {
        let rest = self.slice(n)?;
        Ok(Self {
            storage: self.storage,
            rest,
            context,
        })
    }

    /// Checks that everything has been read.
    ///
    /// # Errors
    /// [`ParseError::BadLength`] if something is left.
    pub const fn finish(&self) -> Result<(), ParseError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(ParseError::BadLength(self.context))
        }
    }

    fn slice(&mut self, n: usize) -> Result<&'a [u8], ParseError> {
        let (head, rest) = self
            .rest
            .split_at_checked(n)
            .ok_or(ParseError::Truncated(self.context))?;
        self.rest = rest;
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_past_the_end_names_the_structure_and_reads_nothing() {
        let storage = Bytes::from_static(&[1, 2, 3]);
        let mut reader = Reader::new(&storage, "thing");
        assert_eq!(reader.u32(), Err(ParseError::Truncated("thing")));
        assert_eq!(reader.u16(), Ok(0x0102));
        assert_eq!(reader.finish(), Err(ParseError::BadLength("thing")));
        assert_eq!(reader.rest(), Bytes::from_static(&[3]));
        assert_eq!(reader.finish(), Ok(()));
        assert!(reader.rest().is_empty());
    }

    #[test]
    fn bytes_share_storage() {
        let storage = Bytes::from(vec![1, 2, 3, 4]);
        let mut inner = Reader::new(&storage, "outer").take(3, "inner").unwrap();
        inner.skip(1).unwrap();
        let tail = inner.bytes(2).unwrap();
        assert_eq!(tail.as_ptr(), storage[1..].as_ptr());
        assert_eq!(inner.u8(), Err(ParseError::Truncated("inner")));
    }
}
