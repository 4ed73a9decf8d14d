//! What to do about an unrecognised chunk or parameter (RFC 9260 sections 3.2 and 3.2.1).

/// What the two highest bits of a chunk or parameter type demand of who does not recognise it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnrecognizedAction {
    /// 00. Chunk: discard the packet. Parameter: process no further parameters of the chunk.
    Stop,
    /// 01: as `Stop`, and report. Chunk: in an ERROR chunk, "unrecognized chunk type". Parameter: as
    /// [`SkipAndReport`](Self::SkipAndReport).
    StopAndReport,
    /// 10: skip it and go on.
    Skip,
    /// 11: skip it, go on, and report. A chunk, and a parameter of another chunk than INIT, in an ERROR chunk; a
    /// parameter of an INIT as an "unrecognized parameter" of the INIT ACK.
    SkipAndReport,
}

impl UnrecognizedAction {
    /// The action that a chunk type demands (RFC 9260 section 3.2).
    #[must_use]
    pub const fn of_chunk_type(chunk_type: u8) -> Self {
        match chunk_type >> 6 {
            0 => Self::Stop,
            1 => Self::StopAndReport,
            2 => Self::Skip,
            _ => Self::SkipAndReport,
        }
    }

    /// The action that a parameter type demands (RFC 9260 section 3.2.1).
    #[must_use]
    pub const fn of_parameter_type(parameter_type: u16) -> Self {
        Self::of_chunk_type((parameter_type >> 8) as u8)
    }

    /// Whether processing stops here.
    #[must_use]
    pub const fn stops(self) -> bool {
        matches!(self, Self::Stop | Self::StopAndReport)
    }

    /// Whether the peer is told.
    #[must_use]
    pub const fn reports(self) -> bool {
        matches!(self, Self::StopAndReport | Self::SkipAndReport)
    }
}
