//! Chunk types (RFC 9260 section 3.2): the only place where they are numbers.

/// DATA.
pub const DATA: u8 = 0;
/// INIT.
pub const INIT: u8 = 1;
/// INIT ACK.
pub const INIT_ACK: u8 = 2;
/// SACK.
pub const SACK: u8 = 3;
/// HEARTBEAT.
pub const HEARTBEAT: u8 = 4;
/// HEARTBEAT ACK.
pub const HEARTBEAT_ACK: u8 = 5;
/// ABORT.
pub const ABORT: u8 = 6;
/// SHUTDOWN.
pub const SHUTDOWN: u8 = 7;
/// SHUTDOWN ACK.
pub const SHUTDOWN_ACK: u8 = 8;
/// ERROR.
pub const ERROR: u8 = 9;
/// COOKIE ECHO.
pub const COOKIE_ECHO: u8 = 10;
/// COOKIE ACK.
pub const COOKIE_ACK: u8 = 11;
/// ECNE.
pub const ECNE: u8 = 12;
/// CWR.
pub const CWR: u8 = 13;
/// SHUTDOWN COMPLETE.
pub const SHUTDOWN_COMPLETE: u8 = 14;
/// AUTH (RFC 4895 section 5).
pub const AUTH: u8 = 15;
/// NR-SACK (draft-natarajan-tsvwg-sctp-nrsack section 3).
pub const NR_SACK: u8 = 16;
/// I-DATA (RFC 8260 section 2.1): read from captures alone.
pub const I_DATA: u8 = 64;
/// ASCONF-ACK (RFC 5061 section 4.1).
pub const ASCONF_ACK: u8 = 0x80;
/// RE-CONFIG (RFC 6525 section 3.1).
pub const RE_CONFIG: u8 = 0x82;
/// PAD (RFC 4820 section 3).
pub const PAD: u8 = 0x84;
/// FORWARD TSN (RFC 3758 section 3.2).
pub const FORWARD_TSN: u8 = 0xc0;
/// ASCONF (RFC 5061 section 4.1).
pub const ASCONF: u8 = 0xc1;

/// What errors call a chunk of this type.
pub(super) const fn name(chunk_type: u8) -> &'static str {
    match chunk_type {
        DATA => "DATA",
        INIT => "INIT",
        INIT_ACK => "INIT ACK",
        SACK => "SACK",
        HEARTBEAT => "HEARTBEAT",
        HEARTBEAT_ACK => "HEARTBEAT ACK",
        ABORT => "ABORT",
        SHUTDOWN => "SHUTDOWN",
        SHUTDOWN_ACK => "SHUTDOWN ACK",
        ERROR => "ERROR",
        COOKIE_ECHO => "COOKIE ECHO",
        COOKIE_ACK => "COOKIE ACK",
        ECNE => "ECNE",
        CWR => "CWR",
        SHUTDOWN_COMPLETE => "SHUTDOWN COMPLETE",
        AUTH => "AUTH",
        ASCONF_ACK => "ASCONF-ACK",
        PAD => "PAD",
        ASCONF => "ASCONF",
        RE_CONFIG => "RE-CONFIG",
        FORWARD_TSN => "FORWARD TSN",
        NR_SACK => "NR-SACK",
        _ => "SCTP chunk",
    }
}
