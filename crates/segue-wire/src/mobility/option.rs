//! Mobility options (RFC 6275 section 6.2, RFC 4283, RFC 4285).

use crate::ParseError;
use crate::reader::Reader;
use crate::writer::length_u8;
use bytes::{BufMut, Bytes};
use core::net::Ipv6Addr;

/// Length of an authenticator, bytes: 96 bits (RFC 6275 section 6.2.7, RFC 4285 section 5.1).
pub const AUTHENTICATOR_LEN: usize = 12;

/// An option of a mobility header. Options of unexpected length are kept as unknown ones, which are ignored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MobilityOption {
    /// Binding Refresh Advice (2): when the home agent would like a refresh, in units of 4 seconds.
    BindingRefreshAdvice(u16),
    /// Alternate Care-of Address (3).
    AlternateCareOfAddress(Ipv6Addr),
    /// Nonce Indices (4).
    NonceIndices {
        /// Index of the home nonce.
        home: u16,
        /// Index of the care-of nonce.
        care_of: u16,
    },
    /// Binding Authorization Data (5): the authenticator, of [`AUTHENTICATOR_LEN`] bytes. The last option.
    BindingAuthorizationData(Bytes),
    /// Mobile Node Identifier (8, RFC 4283).
    MobileNodeIdentifier {
        /// Subtype: 1 is a network access identifier.
        subtype: u8,
        /// The identifier.
        identifier: Bytes,
    },
    /// Mobility Message Authentication (9, RFC 4285). The last option.
    MessageAuthentication(MessageAuthentication),
    /// Mobility Message Replay Protection (10, RFC 4285): a timestamp in the format of NTP, seconds since 1900 in the
    /// upper 32 bits.
    ReplayProtection(u64),
    /// An option this crate does not know, with its data.
    Unknown {
        /// Option type.
        option_type: u8,
        /// Option data.
        data: Bytes,
    },
}

/// What the mobility message authentication option says (RFC 4285 section 5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageAuthentication {
    /// Between whom.
    pub subtype: AuthenticationSubtype,
    /// Mobility security parameter index; those up to 255 are reserved.
    pub spi: u32,
    /// Authentication data, of [`AUTHENTICATOR_LEN`] bytes between mobile node and home agent.
    pub data: Bytes,
}

/// Subtype of the mobility message authentication option (RFC 4285 sections 5.1 and 5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuthenticationSubtype {
    /// Mobile node and home agent (1).
    MnHa,
    /// Mobile node and its home AAA server (2).
    MnAaa,
    /// Any other.
    Other(u8),
}

impl AuthenticationSubtype {
    /// The subtype's number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::MnHa => 1,
            Self::MnAaa => 2,
            Self::Other(number) => number,
        }
    }

    const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::MnHa,
            2 => Self::MnAaa,
            other => Self::Other(other),
        }
    }
}

impl MobilityOption {
    /// Option type.
    #[must_use]
    pub const fn option_type(&self) -> u8 {
        match self {
            Self::BindingRefreshAdvice(_) => BINDING_REFRESH_ADVICE,
            Self::AlternateCareOfAddress(_) => ALTERNATE_CARE_OF_ADDRESS,
            Self::NonceIndices { .. } => NONCE_INDICES,
            Self::BindingAuthorizationData(_) => BINDING_AUTHORIZATION_DATA,
            Self::MobileNodeIdentifier { .. } => MOBILE_NODE_IDENTIFIER,
            Self::MessageAuthentication(_) => MESSAGE_AUTHENTICATION,
            Self::ReplayProtection(_) => REPLAY_PROTECTION,
            Self::Unknown { option_type, .. } => *option_type,
        }
    }

    /// An empty Binding Authorization Data option, to be filled in by
    /// [`MobilityHeader::authenticate`](super::MobilityHeader::authenticate).
    #[must_use]
    pub const fn blank_authorization() -> Self {
        Self::BindingAuthorizationData(Bytes::from_static(&[0; AUTHENTICATOR_LEN]))
    }

    /// An empty mobility message authentication option between mobile node and home agent, to be filled in by
    /// [`MobilityHeader::authenticate`](super::MobilityHeader::authenticate).
    #[must_use]
    pub const fn blank_authentication(spi: u32) -> Self {
        Self::MessageAuthentication(MessageAuthentication {
            subtype: AuthenticationSubtype::MnHa,
            spi,
            data: Bytes::from_static(&[0; AUTHENTICATOR_LEN]),
        })
    }

    /// Parses the options that fill `reader`.
    pub(super) fn parse_all(mut reader: Reader<'_>) -> Result<Vec<Self>, ParseError> {
        let mut options = Vec::new();
        while !reader.is_empty() {
            let option_type = reader.u8()?;
            if option_type == PAD_1 {
                continue;
            }
            let len = usize::from(reader.u8()?);
            if option_type == PAD_N {
                reader.skip(len)?;
                continue;
            }
            let mut body = reader.take(len, "mobility option")?;
            options.push(Self::parse(option_type, &mut body)?);
        }
        Ok(options)
    }

    fn parse(option_type: u8, body: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(match (option_type, body.remaining()) {
            (BINDING_REFRESH_ADVICE, 2) => Self::BindingRefreshAdvice(body.u16()?),
            (ALTERNATE_CARE_OF_ADDRESS, 16) => Self::AlternateCareOfAddress(body.ipv6()?),
            (NONCE_INDICES, 4) => Self::NonceIndices {
                home: body.u16()?,
                care_of: body.u16()?,
            },
            (BINDING_AUTHORIZATION_DATA, _) => Self::BindingAuthorizationData(body.rest()),
            (MOBILE_NODE_IDENTIFIER, 1..) => Self::MobileNodeIdentifier {
                subtype: body.u8()?,
                identifier: body.rest(),
            },
            (MESSAGE_AUTHENTICATION, 5..) => Self::MessageAuthentication(MessageAuthentication {
                subtype: AuthenticationSubtype::from_number(body.u8()?),
                spi: body.u32()?,
                data: body.rest(),
            }),
            (REPLAY_PROTECTION, 8) => Self::ReplayProtection(body.array().map(u64::from_be_bytes)?),
            _ => Self::Unknown {
                option_type,
                data: body.rest(),
            },
        })
    }

    /// Length of the option's data, bytes.
    fn data_len(&self) -> usize {
        match self {
            Self::BindingRefreshAdvice(_) => 2,
            Self::AlternateCareOfAddress(_) => 16,
            Self::NonceIndices { .. } => 4,
            Self::BindingAuthorizationData(authenticator) => authenticator.len(),
            Self::MobileNodeIdentifier { identifier, .. } => 1 + identifier.len(),
            Self::MessageAuthentication(option) => 5 + option.data.len(),
            Self::ReplayProtection(_) => 8,
            Self::Unknown { data, .. } => data.len(),
        }
    }

    /// The first place from `at` on, counted from the start of the header, at which the option may begin: its alignment
    /// is xn+y.
    const fn aligned(&self, at: usize) -> usize {
        let (x, y) = match self {
            Self::BindingRefreshAdvice(_) | Self::NonceIndices { .. } => (2, 0),
            Self::AlternateCareOfAddress(_) => (8, 6),
            Self::BindingAuthorizationData(_) | Self::ReplayProtection(_) => (8, 2),
            Self::MessageAuthentication(_) => (4, 1),
            Self::MobileNodeIdentifier { .. } | Self::Unknown { .. } => (1, 0),
        };
        at + (x + y - at % x) % x
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_slice(&[self.option_type(), length_u8(self.data_len())]);
        match self {
            Self::BindingRefreshAdvice(interval) => out.put_u16(*interval),
            Self::AlternateCareOfAddress(address) => out.put_slice(&address.octets()),
            Self::NonceIndices { home, care_of } => {
                out.put_u16(*home);
                out.put_u16(*care_of);
            }
            Self::BindingAuthorizationData(authenticator) => out.put_slice(authenticator),
            Self::MobileNodeIdentifier { subtype, identifier } => {
                out.put_u8(*subtype);
                out.put_slice(identifier);
            }
            Self::MessageAuthentication(option) => {
                out.put_u8(option.subtype.number());
                out.put_u32(option.spi);
                out.put_slice(&option.data);
            }
            Self::ReplayProtection(timestamp) => out.put_u64(*timestamp),
            Self::Unknown { data, .. } => out.put_slice(data),
        }
    }
}

/// Where options that follow `at` end, padding between them included and padding after them not.
pub(super) fn options_end(options: &[MobilityOption], at: usize) -> usize {
    options
        .iter()
        .fold(at, |at, option| option.aligned(at) + 2 + option.data_len())
}

/// Appends options to the header that begins at `start`, and pads it to a multiple of 8 bytes.
pub(super) fn emit_options(options: &[MobilityOption], start: usize, out: &mut Vec<u8>) {
    for option in options {
        let at = out.len() - start;
        emit_padding(option.aligned(at) - at, out);
        option.emit(out);
    }
    let at = out.len() - start;
    emit_padding(at.next_multiple_of(8) - at, out);
}

/// Appends `len` bytes of padding, fewer than 8: Pad1 or PadN.
fn emit_padding(len: usize, out: &mut Vec<u8>) {
    match len {
        0 => {}
        1 => out.put_u8(PAD_1),
        _ => {
            out.put_slice(&[PAD_N, length_u8(len - 2)]);
            out.put_bytes(0, len - 2);
        }
    }
}

// Option types of RFC 6275 section 6.2, RFC 4283 section 3 and RFC 4285 sections 5 and 6.
pub(super) const PAD_1: u8 = 0;
pub(super) const PAD_N: u8 = 1;
const BINDING_REFRESH_ADVICE: u8 = 2;
const ALTERNATE_CARE_OF_ADDRESS: u8 = 3;
const NONCE_INDICES: u8 = 4;
pub(super) const BINDING_AUTHORIZATION_DATA: u8 = 5;
const MOBILE_NODE_IDENTIFIER: u8 = 8;
pub(super) const MESSAGE_AUTHENTICATION: u8 = 9;
const REPLAY_PROTECTION: u8 = 10;
