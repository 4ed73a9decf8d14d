//! SCTP packets (RFC 9260), one file per chunk group; ASCONF by RFC 5061.

pub mod asconf;
pub mod cause;
pub mod data;
pub mod init;
pub mod parameter;
pub mod sack;

pub use asconf::{Asconf, AsconfAck, AsconfParameter, AsconfResponse};
pub use cause::ErrorCause;
pub use data::DataChunk;
pub use init::Init;
pub use parameter::Parameter;
pub use sack::{GapAckBlock, Sack};

use crate::Tsn;
use bytes::Bytes;
use smallvec::SmallVec;

/// An SCTP packet: common header (RFC 9260 section 3.1) and chunks. The CRC32c is worked out on emission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SctpPacket {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Verification tag.
    pub verification_tag: u32,
    /// Chunks in order. One fits without allocation: most packets carry a DATA or a SACK.
    pub chunks: SmallVec<[Chunk; 1]>,
}

/// A chunk (RFC 9260 section 3.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chunk {
    /// DATA (0).
    Data(DataChunk),
    /// SACK (3).
    Sack(Sack),
    /// INIT (1).
    Init(Box<Init>),
    /// INIT ACK (2).
    InitAck(Box<Init>),
    /// HEARTBEAT (4): opaque heartbeat information of the sender.
    Heartbeat(Bytes),
    /// HEARTBEAT ACK (5): the information echoed.
    HeartbeatAck(Bytes),
    /// ABORT (6).
    Abort {
        /// T bit: the verification tag is reflected.
        reflected_tag: bool,
        /// Causes.
        causes: Vec<ErrorCause>,
    },
    /// SHUTDOWN (7).
    Shutdown {
        /// Cumulative TSN ack.
        cumulative_tsn_ack: Tsn,
    },
    /// SHUTDOWN ACK (8).
    ShutdownAck,
    /// ERROR (9).
    Error(Vec<ErrorCause>),
    /// COOKIE ECHO (10).
    CookieEcho(Bytes),
    /// COOKIE ACK (11).
    CookieAck,
    /// ECNE (12): lowest TSN of the packet that was marked.
    Ecne(Tsn),
    /// CWR (13): lowest TSN of the ECNE answered.
    Cwr(Tsn),
    /// SHUTDOWN COMPLETE (14).
    ShutdownComplete {
        /// T bit: the verification tag is reflected.
        reflected_tag: bool,
    },
    /// ASCONF (0xC1, RFC 5061 section 4.1.1).
    Asconf(Box<Asconf>),
    /// ASCONF-ACK (0x80, RFC 5061 section 4.1.2).
    AsconfAck(Box<AsconfAck>),
    /// A chunk of another type, kept whole; what to do with it lies in its two highest bits (RFC 9260 section 3.2).
    Unknown {
        /// Chunk type.
        chunk_type: u8,
        /// Chunk flags.
        flags: u8,
        /// Chunk value.
        value: Bytes,
    },
}
