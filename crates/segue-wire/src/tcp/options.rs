//! Options of a TCP header (RFC 9293 section 3.2, RFC 7323, RFC 2018).

use crate::reader::Reader;
use crate::{ParseError, SeqNumber};
use bytes::Bytes;

/// SACK blocks that 40 bytes of options have room for (RFC 2018 section 3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// Options of a segment.
///
/// Timestamps are stored in place, since every segment of an established connection has them; whatever else there is,
/// on SYNs and on acknowledgements of data with holes, is behind one pointer. So a simulated hop moves few bytes.
///
/// Emission lays them out as Linux does: words of 4 bytes, padded by NOPs in front of each option. Where that would
/// need more than the 40 bytes that there are, it does without padding.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Timestamps (RFC 7323 section 3.2).
    pub timestamps: Option<Timestamps>,
    /// `None` if it would be empty, so that equal options compare equal.
    rare: Option<Box<Rare>>,
}

/// The Timestamps option (RFC 7323 section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the timestamp echoed; means something if the ACK flag is set.
    pub echo: u32,
}

/// A block of a SACK option (RFC 2018 section 3): the bytes from `left` to before `right`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First sequence number.
    pub left: SeqNumber,
    /// Sequence number behind the last.
    pub right: SeqNumber,
}

/// An option that this crate does not know, or a known one with a length that is not its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownOption {
    /// Kind.
    pub kind: u8,
    /// Data, without kind and length.
    pub data: Bytes,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Rare {
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: bool,
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    block_count: u8,
    unknown: Vec<UnknownOption>,
    urgent: u16,
}

impl TcpOptions {
    /// With these timestamps and nothing else.
    #[must_use]
    pub const fn with_timestamps(timestamps: Option<Timestamps>) -> Self {
        Self {
            timestamps,
            rare: None,
        }
    }

    /// Maximum segment size (RFC 9293 section 3.7.1).
    #[must_use]
    pub fn mss(&self) -> Option<u16> {
        self.rare.as_ref().and_then(|r| r.mss)
    }

    /// Shift count of the Window Scale option (RFC 7323 section 2.2), as sent: more than 14 is used as 14.
    #[must_use]
    pub fn window_scale(&self) -> Option<u8> {
        self.rare.as_ref().and_then(|r| r.window_scale)
    }

    /// Whether SACK is permitted (RFC 2018 section 2).
    #[must_use]
    pub fn sack_permitted(&self) -> bool {
        self.rare.as_ref().is_some_and(|r| r.sack_permitted)
    }

    /// Blocks of a SACK option; the first may be a duplicate's (RFC 2883).
    #[must_use]
    pub fn sack_blocks(&self) -> &[SackBlock] {
        self.rare.as_ref().map_or(&[], |r| {
            r.blocks.get(..usize::from(r.block_count)).unwrap_or_default()
        })
    }

    /// Options that are not known.
    #[must_use]
    pub fn unknown(&self) -> &[UnknownOption] {
        self.rare.as_ref().map_or(&[], |r| &r.unknown)
    }

    /// The urgent pointer. It is a field of the header, but so rare that it has its place here.
    #[must_use]
    pub fn urgent(&self) -> u16 {
        self.rare.as_ref().map_or(0, |r| r.urgent)
    }

    /// Sets the urgent pointer.
    pub fn set_urgent(&mut self, urgent: u16) {
        if urgent != 0 || self.rare.is_some() {
            self.rare().urgent = urgent;
            self.drop_if_empty();
        }
    }

    /// Sets the maximum segment size.
    pub fn set_mss(&mut self, mss: u16) {
        self.rare().mss = Some(mss);
    }

    /// Sets the shift count of the window scale.
    pub fn set_window_scale(&mut self, shift: u8) {
        self.rare().window_scale = Some(shift);
    }

    /// Permits SACK.
    pub fn set_sack_permitted(&mut self) {
        self.rare().sack_permitted = true;
    }

    /// Sets the SACK blocks: the first four. None takes the option away.
    pub fn set_sack_blocks(&mut self, blocks: &[SackBlock]) {
        if blocks.is_empty() && self.rare.is_none() {
            return;
        }
        let rare = self.rare();
        rare.blocks = [SackBlock::default(); MAX_SACK_BLOCKS];
        rare.block_count = 0;
        for (to, from) in rare.blocks.iter_mut().zip(blocks) {
            *to = *from;
            rare.block_count += 1;
        }
        self.drop_if_empty();
    }

    /// Adds an option that is not known.
    pub fn add_unknown(&mut self, kind: u8, data: Bytes) {
        self.rare().unknown.push(UnknownOption { kind, data });
    }

    /// Parses the options that fill `reader`, padding included. Of an option that comes twice the last one counts.
    ///
    /// # Errors
    /// If the length of an option is less than 2, or reaches beyond the header (RFC 9293 section 3.1, MUST-7).
    pub(super) fn parse(mut reader: Reader<'_>) -> Result<Self, ParseError> {
        let mut options = Self::default();
        while !reader.is_empty() {
            let kind = reader.u8()?;
            match kind {
                END => break,
                NO_OPERATION => continue,
                _ => {}
            }
            let len = usize::from(reader.u8()?)
                .checked_sub(2)
                .ok_or(ParseError::BadLength("TCP option"))?;
            let mut body = reader.take(len, "TCP option")?;
            match (kind, len) {
                (TIMESTAMPS, 8) => {
                    options.timestamps = Some(Timestamps {
                        value: body.u32()?,
                        echo: body.u32()?,
                    });
                }
                (MSS, 2) => options.set_mss(body.u16()?),
                (WINDOW_SCALE, 1) => options.set_window_scale(body.u8()?),
                (SACK_PERMITTED, 0) => options.set_sack_permitted(),
                (SACK, 8 | 16 | 24 | 32) => {
                    let mut blocks = [SackBlock::default(); MAX_SACK_BLOCKS];
                    let count = len / 8;
                    for block in blocks.iter_mut().take(count) {
                        block.left = SeqNumber(body.u32()?);
                        block.right = SeqNumber(body.u32()?);
                    }
                    options.set_sack_blocks(blocks.get(..count).unwrap_or_default());
                }
                _ => options.add_unknown(kind, body.rest()),
            }
        }
        Ok(options)
    }

    /// Number of bytes that `emit` appends: a multiple of 4.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        match (&self.rare, self.timestamps) {
            (None, None) => 0,
            (None, Some(_)) => 12,
            (Some(rare), _) => self.laid_out(rare).len,
        }
    }

    /// Appends the options. What 40 bytes have no room for is left off.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        if let Some(rare) = &self.rare {
            let layout = self.laid_out(rare);
            out.extend_from_slice(layout.bytes.get(..layout.len).unwrap_or_default());
        } else if let Some(t) = self.timestamps {
            out.extend_from_slice(&[NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10]);
            out.extend_from_slice(&t.value.to_be_bytes());
            out.extend_from_slice(&t.echo.to_be_bytes());
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn drop_if_empty(&mut self) {
        if self.rare.as_deref() == Some(&Rare::default()) {
            self.rare = None;
        }
    }

    fn laid_out(&self, rare: &Rare) -> Layout {
        let aligned = Layout::of(self.timestamps, rare, true);
        if aligned.complete {
            aligned
        } else {
            Layout::of(self.timestamps, rare, false)
        }
    }
}

/// Emitted options.
struct Layout {
    bytes: [u8; MAX_LEN],
    len: usize,
    complete: bool,
}

impl Layout {
    fn of(timestamps: Option<Timestamps>, rare: &Rare, aligned: bool) -> Self {
        let mut layout = Self {
            bytes: [0; MAX_LEN],
            len: 0,
            complete: true,
        };
        let padding = |n: usize| {
            [NO_OPERATION; 2]
                .get(..n * usize::from(aligned))
                .unwrap_or_default()
        };
        if let Some(mss) = rare.mss {
            layout.put(&[&[MSS, 4], &mss.to_be_bytes()]);
        }
        match timestamps {
            Some(t) => {
                let body: [&[u8]; 3] = [&[TIMESTAMPS, 10], &t.value.to_be_bytes(), &t.echo.to_be_bytes()];
                // where both are sent, SACK Permitted is the padding
                if rare.sack_permitted {
                    layout.put(&[&[SACK_PERMITTED, 2]]);
                } else {
                    layout.put(&[padding(2)]);
                }
                layout.put(&body);
            }
            None if rare.sack_permitted => layout.put(&[padding(2), &[SACK_PERMITTED, 2]]),
            None => {}
        }
        if let Some(shift) = rare.window_scale {
            layout.put(&[padding(1), &[WINDOW_SCALE, 3, shift]]);
        }
        let count = usize::from(rare.block_count);
        if count > 0 {
            let mut option = [0; 2 + 8 * MAX_SACK_BLOCKS];
            let len = 2 + 8 * count;
            let (head, body) = option.split_at_mut(2);
            head.copy_from_slice(&[SACK, len as u8]);
            for (to, block) in body.as_chunks_mut::<8>().0.iter_mut().zip(&rare.blocks) {
                let (left, right) = to.split_at_mut(4);
                left.copy_from_slice(&block.left.0.to_be_bytes());
                right.copy_from_slice(&block.right.0.to_be_bytes());
            }
            layout.put(&[padding(2), option.get(..len).unwrap_or_default()]);
        }
        for option in &rare.unknown {
            // more than 40 bytes have no room anyway
            let len = option.data.len().min(MAX_LEN) as u8 + 2;
            layout.put(&[&[option.kind, len], &option.data]);
        }
        // the rest of the word is End of Option List
        layout.len = layout.len.next_multiple_of(4);
        layout
    }

    /// Appends `parts` if there is room for all of them.
    fn put(&mut self, parts: &[&[u8]]) {
        let len = parts.iter().map(|p| p.len()).sum::<usize>();
        let Some(mut room) = self.bytes.get_mut(self.len..).filter(|room| room.len() >= len) else {
            self.complete = false;
            return;
        };
        for part in parts {
            let (to, rest) = room.split_at_mut(part.len());
            to.copy_from_slice(part);
            room = rest;
        }
        self.len += len;
    }
}

/// Room for options (RFC 9293 section 3.1: the data offset has four bits).
const MAX_LEN: usize = 40;
/// End of Option List.
const END: u8 = 0;
/// No-Operation.
const NO_OPERATION: u8 = 1;
/// Maximum Segment Size.
const MSS: u8 = 2;
/// Window Scale.
const WINDOW_SCALE: u8 = 3;
/// SACK Permitted.
const SACK_PERMITTED: u8 = 4;
/// SACK.
const SACK: u8 = 5;
/// Timestamps.
const TIMESTAMPS: u8 = 8;
