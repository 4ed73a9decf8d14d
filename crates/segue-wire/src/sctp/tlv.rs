//! Type, length, value: the shape of parameters, error causes and ASCONF requests (RFC 9260 section 3.2.1).
//!
//! ```text
//! |             Type              |            Length             |
//! |  Value, Length - 4 bytes, then 0 to 3 bytes of padding that Length does not count  |
//! ```
//!
//! In a list every value but the last is padded within the length of what contains it; the last one's padding is the
//! padding of the container (section 3.2).

use crate::ParseError;
use crate::reader::Reader;
use crate::writer::{length_u16, pad, set};
use bytes::BufMut;

/// Type and length, bytes.
pub(super) const TLV_HEADER_LEN: usize = 4;

/// `len` with its padding.
pub(super) const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// Reads a type and a value under the reader's name, and passes over the padding, which may be missing at the end.
pub(super) fn parse_tlv<'a>(reader: &mut Reader<'a>) -> Result<(u16, Reader<'a>), ParseError> {
    let tlv_type = reader.u16()?;
    let length = usize::from(reader.u16()?);
    let value_len = length
        .checked_sub(TLV_HEADER_LEN)
        .ok_or(ParseError::BadLength(reader.context()))?;
    let value = reader.take(value_len, reader.context())?;
    reader.skip_at_most(padded(length) - length);
    Ok((tlv_type, value))
}

/// Appends type, length and the value that `emit_value` appends, without padding.
pub(super) fn emit_tlv(tlv_type: u16, out: &mut Vec<u8>, emit_value: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.put_u16(tlv_type);
    out.put_u16(0);
    emit_value(out);
    let length = length_u16(out.len() - start);
    set(out, start + 2, &length.to_be_bytes());
}

/// Something that is emitted as a type, a length and a value, without padding.
pub(super) trait Tlv: Sized {
    /// Reads one and its padding.
    fn parse_tlv(reader: &mut Reader<'_>) -> Result<Self, ParseError>;
    /// Number of bytes that `emit_tlv` appends.
    fn tlv_len(&self) -> usize;
    /// Appends type, length and value.
    fn emit_tlv(&self, out: &mut Vec<u8>);
}

/// Parses what fills `reader`.
pub(super) fn parse_list<T: Tlv>(mut reader: Reader<'_>) -> Result<Vec<T>, ParseError> {
    let mut list = Vec::new();
    while !reader.is_empty() {
        list.push(T::parse_tlv(&mut reader)?);
    }
    Ok(list)
}

/// Length of a list without its last value's padding.
pub(super) fn list_len<T: Tlv>(list: &[T]) -> usize {
    list.iter().fold(0, |len, tlv| padded(len) + tlv.tlv_len())
}

/// Appends a list without its last value's padding.
pub(super) fn emit_list<T: Tlv>(list: &[T], out: &mut Vec<u8>) {
    let start = out.len();
    for tlv in list {
        pad(out, start, 4);
        tlv.emit_tlv(out);
    }
}

/// Implements [`Tlv`] by the type's own methods.
macro_rules! tlv {
    ($type:ty) => {
        impl crate::sctp::tlv::Tlv for $type {
            fn parse_tlv(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
                Self::parse(reader)
            }
            fn tlv_len(&self) -> usize {
                self.buffer_len()
            }
            fn emit_tlv(&self, out: &mut Vec<u8>) {
                self.emit(out);
            }
        }
    };
}
pub(super) use tlv;
