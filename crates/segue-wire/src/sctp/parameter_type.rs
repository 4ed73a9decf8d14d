//! Parameter types: those of INIT, INIT ACK and HEARTBEAT (RFC 9260 sections 3.3.2.1, 3.3.3.1 and 3.3.5), of ASCONF (RFC 5061
//! section 4.2) and of RE-CONFIG (RFC 6525 section 4). The only place where they are numbers.

/// Heartbeat info.
pub const HEARTBEAT_INFO: u16 = 1;
/// IPv4 address.
pub const IPV4_ADDRESS: u16 = 5;
/// IPv6 address.
pub const IPV6_ADDRESS: u16 = 6;
/// State cookie.
pub const STATE_COOKIE: u16 = 7;
/// Unrecognized parameter.
pub const UNRECOGNIZED_PARAMETER: u16 = 8;
/// Cookie preservative.
pub const COOKIE_PRESERVATIVE: u16 = 9;
/// Host name address, deprecated.
pub const HOST_NAME_ADDRESS: u16 = 11;
/// Supported address types.
pub const SUPPORTED_ADDRESS_TYPES: u16 = 12;
/// Outgoing SSN reset request (RFC 6525 section 4.1).
pub const OUTGOING_SSN_RESET: u16 = 13;
/// Incoming SSN reset request (RFC 6525 section 4.2).
pub const INCOMING_SSN_RESET: u16 = 14;
/// SSN/TSN reset request (RFC 6525 section 4.3).
pub const SSN_TSN_RESET: u16 = 15;
/// Re-configuration response (RFC 6525 section 4.4).
pub const RE_CONFIG_RESPONSE: u16 = 16;
/// Add outgoing streams request (RFC 6525 section 4.5).
pub const ADD_OUTGOING_STREAMS: u16 = 17;
/// Add incoming streams request (RFC 6525 section 4.6).
pub const ADD_INCOMING_STREAMS: u16 = 18;
/// ECN capable.
pub const ECN_CAPABLE: u16 = 0x8000;
/// RANDOM (RFC 4895 section 3.1).
pub const RANDOM: u16 = 0x8002;
/// CHUNKS (RFC 4895 section 3.2).
pub const CHUNKS: u16 = 0x8003;
/// HMAC-ALGO (RFC 4895 section 3.3).
pub const HMAC_ALGO: u16 = 0x8004;
/// Padding (RFC 4820 section 4).
pub const PADDING: u16 = 0x8005;
/// Supported extensions (RFC 5061 section 4.2.7).
pub const SUPPORTED_EXTENSIONS: u16 = 0x8008;
/// Address deactivation supported. Private: not assigned by IANA, skipped without a report by who does not know it (RFC 9260
/// section 3.2.1).
pub const ADDRESS_DEACTIVATION_SUPPORTED: u16 = 0xbf01;
/// Forward TSN supported (RFC 3758 section 3.1).
pub const FORWARD_TSN_SUPPORTED: u16 = 0xc000;
/// Add IP address (RFC 5061 section 4.2.1).
pub const ADD_IP_ADDRESS: u16 = 0xc001;
/// Delete IP address (RFC 5061 section 4.2.2).
pub const DELETE_IP_ADDRESS: u16 = 0xc002;
/// Error cause indication (RFC 5061 section 4.2.3).
pub const ERROR_CAUSE_INDICATION: u16 = 0xc003;
/// Set primary IP address (RFC 5061 section 4.2.4).
pub const SET_PRIMARY_ADDRESS: u16 = 0xc004;
/// Success indication (RFC 5061 section 4.2.5).
pub const SUCCESS_INDICATION: u16 = 0xc005;
/// Adaptation layer indication (RFC 5061 section 4.2.6).
pub const ADAPTATION_LAYER_INDICATION: u16 = 0xc006;
/// Deactivate address. Private: who does not know it skips and reports it (RFC 9260 section 3.2.1).
pub const DEACTIVATE_ADDRESS: u16 = 0xff01;
/// Activate address. Private, like [`DEACTIVATE_ADDRESS`].
pub const ACTIVATE_ADDRESS: u16 = 0xff02;
