//! What emission needs beyond appending: lengths and checksums filled in later, and padding.
//!
//! Emission cannot fail. A value too long for its length field gets the largest length that the field can hold, and a
//! receiver then refuses the packet; nothing that was parsed is too long.

/// `len` as the value of a 16-bit length field.
pub(crate) fn length_u16(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

/// `len` as the value of an 8-bit length field.
pub(crate) fn length_u8(len: usize) -> u8 {
    u8::try_from(len).unwrap_or(u8::MAX)
}

/// Overwrites `value.len()` bytes from `at` on.
pub(crate) fn set(out: &mut [u8], at: usize, value: &[u8]) {
    if let Some(slot) = out.get_mut(at..).and_then(|tail| tail.get_mut(..value.len())) {
        slot.copy_from_slice(value);
    }
}

/// Appends zeros until what begins at `start` is a multiple of `alignment` bytes long.
pub(crate) fn pad(out: &mut Vec<u8>, start: usize, alignment: usize) {
    let len = (out.len() - start).next_multiple_of(alignment);
    out.resize(start + len, 0);
}
