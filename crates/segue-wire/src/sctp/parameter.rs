//! Variable-length parameters of INIT and INIT ACK (RFC 9260 sections 3.3.2.1 and 3.3.3.1, RFC 4895 section 3,
//! RFC 5061 section 4.2).

use crate::ParseError;
use crate::reader::Reader;
use crate::sctp::UnrecognizedAction;
use crate::sctp::asconf::{ADDRESS_TLV_LEN, emit_address, parse_ipv6_address};
use crate::sctp::parameter_type::{
    ADAPTATION_LAYER_INDICATION, ADDRESS_DEACTIVATION_SUPPORTED, CHUNKS, COOKIE_PRESERVATIVE, ECN_CAPABLE,
    FORWARD_TSN_SUPPORTED, HEARTBEAT_INFO, HMAC_ALGO, HOST_NAME_ADDRESS, IPV4_ADDRESS, IPV6_ADDRESS, PADDING,
    RANDOM, SET_PRIMARY_ADDRESS, STATE_COOKIE, SUPPORTED_ADDRESS_TYPES, SUPPORTED_EXTENSIONS,
    UNRECOGNIZED_PARAMETER,
};
use crate::sctp::tlv::{TLV_HEADER_LEN, emit_list, emit_tlv, parse_list, parse_tlv, tlv};
use bytes::{BufMut, Bytes};
use core::net::{Ipv4Addr, Ipv6Addr};

/// A parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// Heartbeat info (1).
    HeartbeatInfo(Bytes),
    /// IPv4 address (5).
    Ipv4Address(Ipv4Addr),
    /// IPv6 address (6).
    Ipv6Address(Ipv6Addr),
    /// State cookie (7).
    StateCookie(Bytes),
    /// Unrecognized parameter (8): the parameter that was not understood, whole.
    UnrecognizedParameter(Bytes),
    /// Cookie preservative (9): suggested increment of the cookie's life, milliseconds.
    CookiePreservative(u32),
    /// Host name address (11), deprecated: kept so that its receiver can refuse it.
    HostNameAddress(Bytes),
    /// Supported address types (12): IANA parameter types, 5 for IPv4 and 6 for IPv6.
    SupportedAddressTypes(Vec<u16>),
    /// ECN capable (0x8000).
    EcnCapable,
    /// RANDOM (0x8002, RFC 4895 section 3.1): a random number, of 32 bytes if it is right.
    Random(Bytes),
    /// CHUNKS (0x8003, RFC 4895 section 3.2): chunk types that the peer must authenticate.
    Chunks(Bytes),
    /// HMAC-ALGO (0x8004, RFC 4895 section 3.3): HMAC identifiers that the peer may use, by preference.
    HmacAlgo(Vec<u16>),
    /// Padding (0x8005, RFC 4820 section 4): bytes that mean nothing.
    Padding(Bytes),
    /// Supported extensions (0x8008, RFC 5061 section 4.2.7): chunk types.
    SupportedExtensions(Bytes),
    /// Forward TSN supported (0xC000, RFC 3758).
    ForwardTsnSupported,
    /// Adaptation layer indication (0xC006, RFC 5061 section 4.2.6).
    AdaptationLayerIndication(u32),
    /// Set primary address (0xC004, RFC 5061 section 4.2.4); its correlation id has no meaning in INIT.
    SetPrimaryAddress {
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// Address to be made primary.
        address: Ipv6Addr,
    },
    /// Address deactivation supported (0xBF01), private.
    AddressDeactivationSupported,
    /// Any other parameter; what to do with it lies in its two highest bits (RFC 9260 section 3.2.1).
    Unknown {
        /// Parameter type.
        parameter_type: u16,
        /// Parameter value.
        value: Bytes,
    },
}

impl Parameter {
    /// Reads the parameters that fill `bytes`, each but the last padded to a multiple of 4 bytes.
    ///
    /// # Errors
    /// If one is truncated or malformed.
    pub fn parse_list(bytes: &Bytes) -> Result<Vec<Self>, ParseError> {
        parse_list(Reader::new(bytes, "parameter"))
    }

    /// Appends `parameters`, each but the last padded to a multiple of 4 bytes.
    pub fn emit_list(parameters: &[Self], out: &mut Vec<u8>) {
        emit_list(parameters, out);
    }

    /// Parameter type.
    #[must_use]
    pub const fn parameter_type(&self) -> u16 {
        match self {
            Self::HeartbeatInfo(_) => HEARTBEAT_INFO,
            Self::Ipv4Address(_) => IPV4_ADDRESS,
            Self::Ipv6Address(_) => IPV6_ADDRESS,
            Self::StateCookie(_) => STATE_COOKIE,
            Self::UnrecognizedParameter(_) => UNRECOGNIZED_PARAMETER,
            Self::CookiePreservative(_) => COOKIE_PRESERVATIVE,
            Self::HostNameAddress(_) => HOST_NAME_ADDRESS,
            Self::SupportedAddressTypes(_) => SUPPORTED_ADDRESS_TYPES,
            Self::EcnCapable => ECN_CAPABLE,
            Self::Random(_) => RANDOM,
            Self::Chunks(_) => CHUNKS,
            Self::HmacAlgo(_) => HMAC_ALGO,
            Self::Padding(_) => PADDING,
            Self::SupportedExtensions(_) => SUPPORTED_EXTENSIONS,
            Self::ForwardTsnSupported => FORWARD_TSN_SUPPORTED,
            Self::AdaptationLayerIndication(_) => ADAPTATION_LAYER_INDICATION,
            Self::SetPrimaryAddress { .. } => SET_PRIMARY_ADDRESS,
            Self::AddressDeactivationSupported => ADDRESS_DEACTIVATION_SUPPORTED,
            Self::Unknown { parameter_type, .. } => *parameter_type,
        }
    }

    /// What who does not recognise the parameter must do (RFC 9260 section 3.2.1).
    #[must_use]
    pub const fn unrecognized_action(&self) -> UnrecognizedAction {
        UnrecognizedAction::of_parameter_type(self.parameter_type())
    }

    /// Parses a parameter and passes over its padding.
    ///
    /// A set primary address of another address type than IPv6 becomes [`Parameter::Unknown`].
    ///
    /// # Errors
    /// If it is truncated or has a length it cannot have.
    pub fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (parameter_type, value) = parse_tlv(reader)?;
        let mut value = value.named(name(parameter_type));
        let parameter = match parameter_type {
            HEARTBEAT_INFO => Self::HeartbeatInfo(value.rest()),
            IPV4_ADDRESS => Self::Ipv4Address(value.ipv4()?),
            IPV6_ADDRESS => Self::Ipv6Address(value.ipv6()?),
            STATE_COOKIE => Self::StateCookie(value.rest()),
            UNRECOGNIZED_PARAMETER => Self::UnrecognizedParameter(value.rest()),
            COOKIE_PRESERVATIVE => Self::CookiePreservative(value.u32()?),
            HOST_NAME_ADDRESS => Self::HostNameAddress(value.rest()),
            SUPPORTED_ADDRESS_TYPES => Self::SupportedAddressTypes(parse_u16s(&mut value)?),
            ECN_CAPABLE => Self::EcnCapable,
            RANDOM => Self::Random(value.rest()),
            CHUNKS => Self::Chunks(value.rest()),
            HMAC_ALGO => Self::HmacAlgo(parse_u16s(&mut value)?),
            PADDING => Self::Padding(value.rest()),
            SUPPORTED_EXTENSIONS => Self::SupportedExtensions(value.rest()),
            FORWARD_TSN_SUPPORTED => Self::ForwardTsnSupported,
            ADAPTATION_LAYER_INDICATION => Self::AdaptationLayerIndication(value.u32()?),
            SET_PRIMARY_ADDRESS => {
                let mut whole = value;
                let correlation_id = value.u32()?;
                match parse_ipv6_address(&mut value)? {
                    Some(address) => Self::SetPrimaryAddress {
                        correlation_id,
                        address,
                    },
                    None => Self::Unknown {
                        parameter_type,
                        value: whole.rest(),
                    },
                }
            }
            ADDRESS_DEACTIVATION_SUPPORTED => {
                let mut whole = value;
                if value.rest() == ADDRESS_DEACTIVATION_VERSION[..] {
                    Self::AddressDeactivationSupported
                } else {
                    Self::Unknown {
                        parameter_type,
                        value: whole.rest(),
                    }
                }
            }
            _ => Self::Unknown {
                parameter_type,
                value: value.rest(),
            },
        };
        value.finish()?;
        Ok(parameter)
    }

    /// Length without padding, the value of the length field.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        TLV_HEADER_LEN
            + match self {
                Self::HeartbeatInfo(bytes)
                | Self::StateCookie(bytes)
                | Self::UnrecognizedParameter(bytes)
                | Self::HostNameAddress(bytes)
                | Self::Random(bytes)
                | Self::Chunks(bytes)
                | Self::Padding(bytes)
                | Self::SupportedExtensions(bytes)
                | Self::Unknown { value: bytes, .. } => bytes.len(),
                Self::Ipv4Address(_) | Self::CookiePreservative(_) | Self::AdaptationLayerIndication(_) => 4,
                Self::Ipv6Address(_) => 16,
                Self::SupportedAddressTypes(list) | Self::HmacAlgo(list) => 2 * list.len(),
                Self::EcnCapable | Self::ForwardTsnSupported => 0,
                Self::AddressDeactivationSupported => ADDRESS_DEACTIVATION_VERSION.len(),
                Self::SetPrimaryAddress { .. } => 4 + ADDRESS_TLV_LEN,
            }
    }

    /// Appends the parameter without padding: as it stands whole in an error cause or an unrecognized parameter.
    pub fn emit(&self, out: &mut Vec<u8>) {
        emit_tlv(self.parameter_type(), out, |out| match self {
            Self::HeartbeatInfo(bytes)
            | Self::StateCookie(bytes)
            | Self::UnrecognizedParameter(bytes)
            | Self::HostNameAddress(bytes)
            | Self::Random(bytes)
            | Self::Chunks(bytes)
            | Self::Padding(bytes)
            | Self::SupportedExtensions(bytes)
            | Self::Unknown { value: bytes, .. } => out.put_slice(bytes),
            Self::Ipv4Address(address) => out.put_slice(&address.octets()),
            Self::Ipv6Address(address) => out.put_slice(&address.octets()),
            Self::CookiePreservative(value) | Self::AdaptationLayerIndication(value) => out.put_u32(*value),
            Self::SupportedAddressTypes(list) | Self::HmacAlgo(list) => {
                list.iter().for_each(|number| out.put_u16(*number));
            }
            Self::EcnCapable | Self::ForwardTsnSupported => {}
            Self::AddressDeactivationSupported => out.put_slice(&ADDRESS_DEACTIVATION_VERSION),
            Self::SetPrimaryAddress {
                correlation_id,
                address,
            } => {
                out.put_u32(*correlation_id);
                emit_address(*address, out);
            }
        });
    }
}

tlv!(Parameter);

/// Tells our private parameter from what somebody else may use its number for.
const ADDRESS_DEACTIVATION_VERSION: [u8; 4] = *b"Seg\x01";

/// Reads the 16-bit numbers that fill `value`.
fn parse_u16s(value: &mut Reader<'_>) -> Result<Vec<u16>, ParseError> {
    let mut list = Vec::with_capacity(value.remaining() / 2);
    while !value.is_empty() {
        list.push(value.u16()?);
    }
    Ok(list)
}

/// What errors call a parameter.
const fn name(parameter_type: u16) -> &'static str {
    match parameter_type {
        IPV4_ADDRESS => "IPv4 address parameter",
        IPV6_ADDRESS => "IPv6 address parameter",
        COOKIE_PRESERVATIVE => "cookie preservative parameter",
        SUPPORTED_ADDRESS_TYPES => "supported address types parameter",
        HMAC_ALGO => "HMAC-ALGO parameter",
        ECN_CAPABLE => "ECN capable parameter",
        FORWARD_TSN_SUPPORTED => "forward TSN supported parameter",
        ADAPTATION_LAYER_INDICATION => "adaptation layer indication parameter",
        SET_PRIMARY_ADDRESS => "set primary address parameter",
        _ => "parameter",
    }
}
