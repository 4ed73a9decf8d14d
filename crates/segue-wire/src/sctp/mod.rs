//! SCTP packets (RFC 9260), one file per chunk group; ASCONF by RFC 5061, AUTH by RFC 4895.

pub mod action;
pub mod asconf;
pub mod auth;
pub mod cause;
pub mod chunk_type;
pub mod data;
pub mod forward_tsn;
pub mod init;
pub mod nr_sack;
pub mod parameter;
pub mod parameter_type;
pub mod re_config;
pub mod sack;
mod tlv;

pub use action::UnrecognizedAction;
pub use asconf::{Asconf, AsconfAck, AsconfParameter, AsconfResponse};
pub use auth::Auth;
pub use cause::ErrorCause;
pub use data::DataChunk;
pub use forward_tsn::ForwardTsn;
pub use init::Init;
pub use nr_sack::NrSack;
pub use parameter::Parameter;
pub use re_config::{ReConfig, ReConfigParameter, ReConfigResult};
pub use sack::{GapAckBlock, Sack};

use crate::checksum::sctp_crc32c;
use crate::reader::Reader;
use crate::writer::{length_u16, pad, set};
use crate::{ParseError, Tsn};
use bytes::{BufMut, Bytes};
use chunk_type::{
    ABORT, ASCONF, ASCONF_ACK, AUTH, COOKIE_ACK, COOKIE_ECHO, CWR, DATA, ECNE, ERROR, FORWARD_TSN, HEARTBEAT,
    HEARTBEAT_ACK, INIT, INIT_ACK, NR_SACK, PAD, RE_CONFIG, SACK, SHUTDOWN, SHUTDOWN_ACK, SHUTDOWN_COMPLETE,
};
use parameter_type::HEARTBEAT_INFO;
use smallvec::SmallVec;
use tlv::{TLV_HEADER_LEN, emit_list, emit_tlv, list_len, padded, parse_list, parse_tlv};

/// Protocol number (RFC 9260 section 3).
pub const NEXT_HEADER: u8 = 132;
/// Length of the common header, bytes (RFC 9260 section 3.1).
pub const COMMON_HEADER_LEN: usize = 12;

/// An SCTP packet: common header (RFC 9260 section 3.1) and chunks. The CRC32c is worked out on emission.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
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

impl SctpPacket {
    /// Parses a packet; user data, cookies and the like share the storage of `bytes`.
    ///
    /// The padding of the last chunk may be missing. A packet without chunks is left to its receiver to ignore.
    ///
    /// # Errors
    /// If the packet is truncated, its CRC32c is wrong, or a chunk or something in it is malformed; the error then
    /// names the chunk, or the parameter or cause in it.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        let mut reader = Reader::new(bytes, "SCTP common header");
        let source_port = reader.u16()?;
        let destination_port = reader.u16()?;
        let verification_tag = reader.u32()?;
        if reader.array::<4>()? != sctp_crc32c(bytes) {
            return Err(ParseError::BadChecksum("SCTP"));
        }
        let mut reader = reader.named("SCTP chunk");
        let mut chunks = SmallVec::new();
        while !reader.is_empty() {
            chunks.push(Chunk::parse(&mut reader)?);
        }
        Ok(Self {
            source_port,
            destination_port,
            verification_tag,
            chunks,
        })
    }

    /// Exact number of bytes that [`emit`](Self::emit) appends. Cheap: nothing is allocated or emitted.
    #[must_use]
    #[inline]
    pub fn buffer_len(&self) -> usize {
        COMMON_HEADER_LEN + self.chunks.iter().map(Chunk::buffer_len).sum::<usize>()
    }

    /// Appends the packet with its CRC32c.
    ///
    /// ```text
    /// |     Source Port Number        |     Destination Port Number   |
    /// |                      Verification Tag                         |
    /// |                           Checksum                            |
    /// |                          Chunks ...                           |
    /// ```
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u16(self.source_port);
        out.put_u16(self.destination_port);
        out.put_u32(self.verification_tag);
        out.put_u32(0);
        for chunk in &self.chunks {
            chunk.emit(out);
        }
        let crc = sctp_crc32c(out.get(start..).unwrap_or_default());
        set(out, start + 8, &crc);
    }

    /// Whether no chunk shares the packet that must not: INIT, INIT ACK and SHUTDOWN COMPLETE are never bundled (RFC
    /// 9260 section 6.10), and there is no more than one AUTH (RFC 4895 section 5.1). A receiver discards the packet
    /// otherwise.
    #[must_use]
    pub fn bundling_is_valid(&self) -> bool {
        let alone = |chunk: &Chunk| {
            matches!(
                chunk,
                Chunk::Init(_) | Chunk::InitAck(_) | Chunk::ShutdownComplete { .. }
            )
        };
        let auths = || self.chunks.iter().filter(|c| matches!(c, Chunk::Auth(_)));
        self.chunks.len() <= 1 || !(self.chunks.iter().any(alone) || auths().nth(1).is_some())
    }
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
    /// AUTH (15, RFC 4895 section 5.1).
    Auth(Box<Auth>),
    /// ASCONF (0xC1, RFC 5061 section 4.1.1).
    Asconf(Box<Asconf>),
    /// ASCONF-ACK (0x80, RFC 5061 section 4.1.2).
    AsconfAck(Box<AsconfAck>),
    /// PAD (0x84, RFC 4820 section 3): bytes that mean nothing.
    Pad(Bytes),
    /// RE-CONFIG (0x82, RFC 6525 section 3).
    ReConfig(Box<ReConfig>),
    /// FORWARD TSN (0xC0, RFC 3758 section 3.2).
    ForwardTsn(Box<ForwardTsn>),
    /// NR-SACK (16, draft-natarajan-tsvwg-sctp-nrsack section 4).
    NrSack(Box<NrSack>),
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

impl Chunk {
    /// Chunk type.
    #[must_use]
    pub const fn chunk_type(&self) -> u8 {
        match self {
            Self::Data(_) => DATA,
            Self::Init(_) => INIT,
            Self::InitAck(_) => INIT_ACK,
            Self::Sack(_) => SACK,
            Self::Heartbeat(_) => HEARTBEAT,
            Self::HeartbeatAck(_) => HEARTBEAT_ACK,
            Self::Abort { .. } => ABORT,
            Self::Shutdown { .. } => SHUTDOWN,
            Self::ShutdownAck => SHUTDOWN_ACK,
            Self::Error(_) => ERROR,
            Self::CookieEcho(_) => COOKIE_ECHO,
            Self::CookieAck => COOKIE_ACK,
            Self::Ecne(_) => ECNE,
            Self::Cwr(_) => CWR,
            Self::ShutdownComplete { .. } => SHUTDOWN_COMPLETE,
            Self::Auth(_) => AUTH,
            Self::AsconfAck(_) => ASCONF_ACK,
            Self::Pad(_) => PAD,
            Self::Asconf(_) => ASCONF,
            Self::ReConfig(_) => RE_CONFIG,
            Self::ForwardTsn(_) => FORWARD_TSN,
            Self::NrSack(_) => NR_SACK,
            Self::Unknown { chunk_type, .. } => *chunk_type,
        }
    }

    /// Chunk flags.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        match self {
            Self::Data(data) => data.flags(),
            Self::Abort {
                reflected_tag: true, ..
            }
            | Self::ShutdownComplete { reflected_tag: true } => REFLECTED_TAG,
            Self::Sack(sack) => sack.flags(),
            Self::NrSack(nr_sack) => nr_sack.sack.flags(),
            Self::Unknown { flags, .. } => *flags,
            _ => 0,
        }
    }

    /// What who does not recognise the chunk must do (RFC 9260 section 3.2).
    #[must_use]
    pub const fn unrecognized_action(&self) -> UnrecognizedAction {
        UnrecognizedAction::of_chunk_type(self.chunk_type())
    }

    /// Parses a chunk and passes over its padding, which may be missing at the end.
    ///
    /// ```text
    /// |   Chunk Type  |  Chunk Flags  |         Chunk Length          |
    /// |  Chunk Value, Length - 4 bytes, then padding to a multiple of 4 bytes  |
    /// ```
    ///
    /// # Errors
    /// If it is truncated, or it or something in it has a length it cannot have.
    pub fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let whole = *reader;
        let [chunk_type, flags] = reader.array()?;
        let length = usize::from(reader.u16()?);
        let value_len = length
            .checked_sub(TLV_HEADER_LEN)
            .ok_or(ParseError::BadLength(reader.context()))?;
        let mut value = reader.take(value_len, chunk_type::name(chunk_type))?;
        reader.skip_at_most(padded(length) - length);
        let reflected_tag = flags & REFLECTED_TAG != 0;
        Ok(match chunk_type {
            DATA => Self::Data(DataChunk::parse(flags, value)?),
            INIT => Self::Init(Box::new(Init::parse(value)?)),
            INIT_ACK => Self::InitAck(Box::new(Init::parse(value)?)),
            SACK => Self::Sack(Sack::parse(flags, value)?),
            HEARTBEAT => Self::Heartbeat(parse_heartbeat_info(value)?),
            HEARTBEAT_ACK => Self::HeartbeatAck(parse_heartbeat_info(value)?),
            ABORT => Self::Abort {
                reflected_tag,
                causes: parse_list(value.named("ABORT cause"))?,
            },
            SHUTDOWN => Self::Shutdown {
                cumulative_tsn_ack: parse_tsn(value)?,
            },
            SHUTDOWN_ACK => empty(value, Self::ShutdownAck)?,
            ERROR => Self::Error(parse_list(value.named("ERROR cause"))?),
            COOKIE_ECHO => Self::CookieEcho(value.rest()),
            PAD => Self::Pad(value.rest()),
            COOKIE_ACK => empty(value, Self::CookieAck)?,
            ECNE => Self::Ecne(parse_tsn(value)?),
            CWR => Self::Cwr(parse_tsn(value)?),
            SHUTDOWN_COMPLETE => empty(value, Self::ShutdownComplete { reflected_tag })?,
            AUTH => Self::Auth(Box::new(Auth::parse(value, whole)?)),
            ASCONF_ACK => Self::AsconfAck(Box::new(AsconfAck::parse(value)?)),
            ASCONF => Self::Asconf(Box::new(Asconf::parse(value)?)),
            RE_CONFIG => Self::ReConfig(Box::new(ReConfig::parse(value)?)),
            FORWARD_TSN => Self::ForwardTsn(Box::new(ForwardTsn::parse(value)?)),
            NR_SACK => Self::NrSack(Box::new(NrSack::parse(flags, value)?)),
            _ => Self::Unknown {
                chunk_type,
                flags,
                value: value.rest(),
            },
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends: a multiple of 4.
    #[must_use]
    #[inline]
    pub fn buffer_len(&self) -> usize {
        // nearly all are one of these
        padded(
            TLV_HEADER_LEN
                + match self {
                    Self::Data(data) => data.buffer_len(),
                    Self::Sack(sack) => sack.buffer_len(),
                    _ => self.value_len(),
                },
        )
    }

    /// Appends the chunk, padded to a multiple of 4 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_slice(&[self.chunk_type(), self.flags()]);
        out.put_u16(length_u16(TLV_HEADER_LEN + self.value_len()));
        match self {
            Self::Data(data) => data.emit(out),
            Self::Init(init) | Self::InitAck(init) => init.emit(out),
            Self::Sack(sack) => sack.emit(out),
            Self::Heartbeat(info) | Self::HeartbeatAck(info) => {
                emit_tlv(HEARTBEAT_INFO, out, |out| out.put_slice(info));
            }
            Self::Abort { causes, .. } | Self::Error(causes) => emit_list(causes, out),
            Self::Shutdown {
                cumulative_tsn_ack: tsn,
            }
            | Self::Ecne(tsn)
            | Self::Cwr(tsn) => out.put_u32(tsn.0),
            Self::ShutdownAck | Self::CookieAck | Self::ShutdownComplete { .. } => {}
            Self::CookieEcho(bytes) | Self::Pad(bytes) | Self::Unknown { value: bytes, .. } => {
                out.put_slice(bytes);
            }
            Self::Auth(auth) => auth.emit(out),
            Self::AsconfAck(ack) => ack.emit(out),
            Self::Asconf(asconf) => asconf.emit(out),
            Self::ReConfig(re_config) => re_config.emit(out),
            Self::ForwardTsn(forward_tsn) => forward_tsn.emit(out),
            Self::NrSack(nr_sack) => nr_sack.emit(out),
        }
        pad(out, start, 4);
    }

    /// Length of the chunk's value without padding.
    fn value_len(&self) -> usize {
        match self {
            Self::Data(data) => data.buffer_len(),
            Self::Init(init) | Self::InitAck(init) => init.buffer_len(),
            Self::Sack(sack) => sack.buffer_len(),
            Self::Heartbeat(info) | Self::HeartbeatAck(info) => TLV_HEADER_LEN + info.len(),
            Self::Abort { causes, .. } | Self::Error(causes) => list_len(causes),
            Self::Shutdown { .. } | Self::Ecne(_) | Self::Cwr(_) => 4,
            Self::ShutdownAck | Self::CookieAck | Self::ShutdownComplete { .. } => 0,
            Self::CookieEcho(bytes) | Self::Pad(bytes) | Self::Unknown { value: bytes, .. } => bytes.len(),
            Self::Auth(auth) => auth.buffer_len(),
            Self::AsconfAck(ack) => ack.buffer_len(),
            Self::Asconf(asconf) => asconf.buffer_len(),
            Self::ReConfig(re_config) => re_config.buffer_len(),
            Self::ForwardTsn(forward_tsn) => forward_tsn.buffer_len(),
            Self::NrSack(nr_sack) => nr_sack.buffer_len(),
        }
    }
}

/// T bit of ABORT and SHUTDOWN COMPLETE (RFC 9260 sections 3.3.7 and 3.3.13).
const REFLECTED_TAG: u8 = 1;

/// Reads the heartbeat information, the only parameter of HEARTBEAT and HEARTBEAT ACK (RFC 9260 section 3.3.5); any
/// that follow are passed over.
fn parse_heartbeat_info(mut value: Reader<'_>) -> Result<Bytes, ParseError> {
    let (parameter_type, mut info) = parse_tlv(&mut value)?;
    if parameter_type != HEARTBEAT_INFO {
        return Err(ParseError::BadValue(value.context()));
    }
    Ok(info.rest())
}

/// Reads the TSN that is a chunk's whole value.
fn parse_tsn(mut value: Reader<'_>) -> Result<Tsn, ParseError> {
    let tsn = Tsn(value.u32()?);
    value.finish()?;
    Ok(tsn)
}

/// `chunk`, provided that it has no value.
fn empty(value: Reader<'_>, chunk: Chunk) -> Result<Chunk, ParseError> {
    value.finish()?;
    Ok(chunk)
}
