//! Mobility header (RFC 6275 section 6.1): the messages of Mobile IPv6, with their options in [`option`].
//!
//! Two options carry a code over the header's bytes. A header that was parsed keeps those bytes as they came, because
//! another implementation may pad otherwise than this crate does; one that was not parsed is taken at its emission. For
//! headers emitted by this crate the two are the same.

pub mod option;

pub use option::{AUTHENTICATOR_LEN, AuthenticationSubtype, MessageAuthentication, MobilityOption};

use crate::ParseError;
use crate::checksum::PseudoHeader;
use crate::ipv6::NO_NEXT_HEADER;
use crate::reader::Reader;
use crate::writer::{length_u8, set};
use bytes::{BufMut, Bytes};
use core::net::Ipv6Addr;
use option::{emit_options, options_end};

/// Protocol number (RFC 6275 section 6.1.1).
pub const NEXT_HEADER: u8 = 135;

/// A mobility header: a message and its options.
#[derive(Clone, Debug)]
pub struct MobilityHeader {
    /// The message.
    pub message: MobilityMessage,
    /// Mobility options; padding is not kept.
    pub options: Vec<MobilityOption>,
    /// The header that it was parsed from.
    received: Option<Bytes>,
}

/// Equal are headers that say the same, wherever they come from.
impl PartialEq for MobilityHeader {
    fn eq(&self, other: &Self) -> bool {
        (&self.message, &self.options) == (&other.message, &other.options)
    }
}

impl Eq for MobilityHeader {}

impl MobilityHeader {
    /// A message with options.
    #[must_use]
    pub const fn new(message: MobilityMessage, options: Vec<MobilityOption>) -> Self {
        Self {
            message,
            options,
            received: None,
        }
    }

    /// Parses a mobility header. What follows it is ignored, as it is behind "no next header" (RFC 8200 section 4.7).
    ///
    /// ```text
    /// | Payload Proto |  Header Len   |   MH Type     |   Reserved    |
    /// |           Checksum            |  Message Data ...
    /// ```
    ///
    /// # Errors
    /// If it is truncated or shorter than its message (RFC 6275 section 9.2), its payload protocol is not 59, or its
    /// checksum is wrong.
    pub fn parse(bytes: &Bytes, pseudo_header: &PseudoHeader) -> Result<Self, ParseError> {
        let mut reader = Reader::new(bytes, "mobility header");
        let payload_proto = reader.u8()?;
        let len = 8 * (usize::from(reader.u8()?) + 1);
        let mut reader = Reader::new(bytes, "mobility header").take(len, "mobility header")?;
        let header = bytes.slice(..len);
        if pseudo_header.checksum(NEXT_HEADER, &header) != 0 {
            return Err(ParseError::BadChecksum("mobility header"));
        }
        if payload_proto != NO_NEXT_HEADER {
            return Err(ParseError::BadValue("mobility header's payload protocol"));
        }
        reader.skip(2)?;
        let mh_type = reader.u8()?;
        reader.skip(3)?;
        let message = MobilityMessage::parse(mh_type, &mut reader)?;
        Ok(Self {
            message,
            options: MobilityOption::parse_all(reader)?,
            received: Some(header),
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends: a multiple of 8.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        options_end(&self.options, HEADER_LEN + self.message.buffer_len()).next_multiple_of(8)
    }

    /// Appends the header with its checksum. One of more than 2048 bytes cannot be represented.
    pub fn emit(&self, pseudo_header: &PseudoHeader, out: &mut Vec<u8>) {
        let start = out.len();
        self.emit_without_checksum(out);
        let checksum = pseudo_header.checksum(NEXT_HEADER, out.get(start..).unwrap_or_default());
        set(out, start + 4, &checksum.to_be_bytes());
    }

    /// The option that [`MobilityOption::BindingAuthorizationData`] carries, if it is the last one, as it must be
    /// (RFC 6275 section 6.2.7).
    #[must_use]
    pub fn authenticator(&self) -> Option<&Bytes> {
        match self.options.last() {
            Some(MobilityOption::BindingAuthorizationData(authenticator)) => Some(authenticator),
            _ => None,
        }
    }

    /// The bytes of the header that the Binding Authorization Data option covers (RFC 6275 section 6.2.7: "MH Data"):
    /// all but the authenticator itself, with a checksum of zero. Nothing if the option is missing, or something, be it
    /// padding, follows it.
    #[must_use]
    pub fn authorized_bytes(&self) -> Option<Vec<u8>> {
        let authenticator = self.authenticator()?;
        let (mut bytes, options) = self.bytes_without_checksum();
        let (at, end) = last_option(&bytes, options, option::BINDING_AUTHORIZATION_DATA)?;
        let covered = at + 2;
        if end != bytes.len() || end - covered != authenticator.len() {
            return None;
        }
        bytes.truncate(covered);
        Some(bytes)
    }

    /// The mobility message authentication option (RFC 4285 section 5), if it is the last one, as it must be where it
    /// is the only one of its kind (section 5.1).
    #[must_use]
    pub fn message_authentication(&self) -> Option<&MessageAuthentication> {
        match self.options.last() {
            Some(MobilityOption::MessageAuthentication(option)) => Some(option),
            _ => None,
        }
    }

    /// The bytes of the header that the mobility message authentication option covers (RFC 4285 section 5.1: "MH
    /// Data"): up to its SPI, this included, with a checksum of zero.
    #[must_use]
    pub fn authenticated_bytes(&self) -> Option<Vec<u8>> {
        self.message_authentication()?;
        let (mut bytes, options) = self.bytes_without_checksum();
        let (at, _) = last_option(&bytes, options, option::MESSAGE_AUTHENTICATION)?;
        // type, length, subtype, SPI
        bytes.truncate(at + 7);
        Some(bytes)
    }

    /// Puts `code` into the last option, an authenticator of either kind. Whatever bytes the header came from, it no
    /// longer stands for them.
    pub fn authenticate(&mut self, code: Bytes) {
        self.received = None;
        match self.options.last_mut() {
            Some(MobilityOption::BindingAuthorizationData(authenticator)) => *authenticator = code,
            Some(MobilityOption::MessageAuthentication(option)) => option.data = code,
            _ => {}
        }
    }

    /// The header's bytes with a checksum of zero, and where its options begin.
    fn bytes_without_checksum(&self) -> (Vec<u8>, usize) {
        let options = HEADER_LEN + self.message.buffer_len();
        let mut bytes = match &self.received {
            Some(received) => received.to_vec(),
            None => {
                let mut out = Vec::with_capacity(self.buffer_len());
                self.emit_without_checksum(&mut out);
                out
            }
        };
        set(&mut bytes, 4, &[0, 0]);
        (bytes, options)
    }

    fn emit_without_checksum(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let len = length_u8(self.buffer_len() / 8 - 1);
        out.put_slice(&[NO_NEXT_HEADER, len, self.message.mh_type(), 0, 0, 0]);
        self.message.emit(out);
        emit_options(&self.options, start, out);
    }
}

/// A message of the mobility header (RFC 6275 sections 6.1.2 to 6.1.9).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MobilityMessage {
    /// Binding Refresh Request (0).
    BindingRefreshRequest,
    /// Home Test Init (1).
    HomeTestInit {
        /// Home init cookie.
        cookie: u64,
    },
    /// Care-of Test Init (2).
    CareOfTestInit {
        /// Care-of init cookie.
        cookie: u64,
    },
    /// Home Test (3).
    HomeTest(Test),
    /// Care-of Test (4).
    CareOfTest(Test),
    /// Binding Update (5).
    BindingUpdate(BindingUpdate),
    /// Binding Acknowledgement (6).
    BindingAcknowledgement(BindingAcknowledgement),
    /// Binding Error (7).
    BindingError {
        /// Status: see [`binding_error`].
        status: u8,
        /// The home address that was in the Home Address destination option, or the unspecified address.
        home_address: Ipv6Addr,
    },
    /// A message this crate does not know, with what follows the checksum.
    Unknown {
        /// MH type.
        mh_type: u8,
        /// Message data, options included.
        data: Bytes,
    },
}

/// Home Test and Care-of Test (RFC 6275 sections 6.1.5 and 6.1.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Test {
    /// Index of the nonce that the token was made with.
    pub nonce_index: u16,
    /// The cookie of the message that this answers.
    pub cookie: u64,
    /// Home or care-of keygen token.
    pub keygen_token: u64,
}

/// Binding Update (RFC 6275 section 6.1.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BindingUpdate {
    /// Sequence number.
    pub sequence: u16,
    /// A: an acknowledgement is asked for.
    pub acknowledge: bool,
    /// H: the receiver is asked to be the home agent.
    pub home_registration: bool,
    /// L: the home address has the interface identifier of the mobile node's link-local address.
    pub link_local_compatible: bool,
    /// K: the protocol of the keys survives movements.
    pub key_management: bool,
    /// Lifetime in units of 4 seconds; zero deletes the binding.
    pub lifetime: u16,
}

/// Binding Acknowledgement (RFC 6275 section 6.1.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BindingAcknowledgement {
    /// Status: below 128 accepted; see [`binding_status`].
    pub status: u8,
    /// K: the protocol of the keys survives movements.
    pub key_management: bool,
    /// Sequence number of the Binding Update, or the last valid one if the status says that it was out of window.
    pub sequence: u16,
    /// Lifetime granted, in units of 4 seconds.
    pub lifetime: u16,
}

/// Status codes of the Binding Acknowledgement (RFC 6275 section 6.1.8, RFC 4285 section 7).
pub mod binding_status {
    /// Binding Update accepted.
    pub const ACCEPTED: u8 = 0;
    /// Accepted, but prefix discovery is necessary.
    pub const PREFIX_DISCOVERY_NECESSARY: u8 = 1;
    /// Reason unspecified.
    pub const UNSPECIFIED: u8 = 128;
    /// Administratively prohibited.
    pub const PROHIBITED: u8 = 129;
    /// Insufficient resources.
    pub const INSUFFICIENT_RESOURCES: u8 = 130;
    /// Home registration not supported.
    pub const HOME_REGISTRATION_NOT_SUPPORTED: u8 = 131;
    /// Not home subnet.
    pub const NOT_HOME_SUBNET: u8 = 132;
    /// Not home agent for this mobile node.
    pub const NOT_HOME_AGENT: u8 = 133;
    /// Duplicate address detection failed.
    pub const DAD_FAILED: u8 = 134;
    /// Sequence number out of window.
    pub const SEQUENCE_OUT_OF_WINDOW: u8 = 135;
    /// Expired home nonce index.
    pub const EXPIRED_HOME_NONCE: u8 = 136;
    /// Expired care-of nonce index.
    pub const EXPIRED_CARE_OF_NONCE: u8 = 137;
    /// Expired nonces.
    pub const EXPIRED_NONCES: u8 = 138;
    /// Registration type change disallowed.
    pub const REGISTRATION_TYPE_CHANGE: u8 = 139;
    /// Invalid care-of address.
    pub const INVALID_CARE_OF_ADDRESS: u8 = 174;
    /// MIPV6-ID-MISMATCH: the timestamp is not close enough, or not newer than the last (RFC 4285).
    pub const ID_MISMATCH: u8 = 144;
    /// MIPV6-MESG-ID-REQD: a timestamp is wanted (RFC 4285).
    pub const MESSAGE_ID_REQUIRED: u8 = 145;
}

/// Status codes of the Binding Error (RFC 6275 section 6.1.9).
pub mod binding_error {
    /// There is no binding for the address in a Home Address destination option.
    pub const UNKNOWN_BINDING: u8 = 1;
    /// MH type not recognised.
    pub const UNRECOGNIZED_MH_TYPE: u8 = 2;
}

impl MobilityMessage {
    /// MH type.
    #[must_use]
    pub const fn mh_type(&self) -> u8 {
        match self {
            Self::BindingRefreshRequest => BINDING_REFRESH_REQUEST,
            Self::HomeTestInit { .. } => HOME_TEST_INIT,
            Self::CareOfTestInit { .. } => CARE_OF_TEST_INIT,
            Self::HomeTest(_) => HOME_TEST,
            Self::CareOfTest(_) => CARE_OF_TEST,
            Self::BindingUpdate(_) => BINDING_UPDATE,
            Self::BindingAcknowledgement(_) => BINDING_ACKNOWLEDGEMENT,
            Self::BindingError { .. } => BINDING_ERROR,
            Self::Unknown { mh_type, .. } => *mh_type,
        }
    }

    /// Parses what lies between the checksum and the options.
    fn parse(mh_type: u8, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(match mh_type {
            BINDING_REFRESH_REQUEST => {
                reader.skip(2)?;
                Self::BindingRefreshRequest
            }
            HOME_TEST_INIT | CARE_OF_TEST_INIT => {
                reader.skip(2)?;
                let cookie = reader.array().map(u64::from_be_bytes)?;
                if mh_type == HOME_TEST_INIT {
                    Self::HomeTestInit { cookie }
                } else {
                    Self::CareOfTestInit { cookie }
                }
            }
            HOME_TEST => Self::HomeTest(Test::parse(reader)?),
            CARE_OF_TEST => Self::CareOfTest(Test::parse(reader)?),
            BINDING_UPDATE => {
                let sequence = reader.u16()?;
                let flags = reader.u16()?;
                Self::BindingUpdate(BindingUpdate {
                    sequence,
                    acknowledge: flags & 0x8000 != 0,
                    home_registration: flags & 0x4000 != 0,
                    link_local_compatible: flags & 0x2000 != 0,
                    key_management: flags & 0x1000 != 0,
                    lifetime: reader.u16()?,
                })
            }
            BINDING_ACKNOWLEDGEMENT => {
                let status = reader.u8()?;
                let flags = reader.u8()?;
                Self::BindingAcknowledgement(BindingAcknowledgement {
                    status,
                    key_management: flags & 0x80 != 0,
                    sequence: reader.u16()?,
                    lifetime: reader.u16()?,
                })
            }
            BINDING_ERROR => {
                let status = reader.u8()?;
                reader.skip(1)?;
                Self::BindingError {
                    status,
                    home_address: reader.ipv6()?,
                }
            }
            _ => Self::Unknown {
                mh_type,
                data: reader.rest(),
            },
        })
    }

    fn buffer_len(&self) -> usize {
        match self {
            Self::BindingRefreshRequest => 2,
            Self::HomeTestInit { .. } | Self::CareOfTestInit { .. } => 10,
            Self::HomeTest(_) | Self::CareOfTest(_) => 18,
            Self::BindingUpdate(_) | Self::BindingAcknowledgement(_) => 6,
            Self::BindingError { .. } => 18,
            Self::Unknown { data, .. } => data.len(),
        }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::BindingRefreshRequest => out.put_u16(0),
            Self::HomeTestInit { cookie } | Self::CareOfTestInit { cookie } => {
                out.put_u16(0);
                out.put_u64(*cookie);
            }
            Self::HomeTest(test) | Self::CareOfTest(test) => {
                out.put_u16(test.nonce_index);
                out.put_u64(test.cookie);
                out.put_u64(test.keygen_token);
            }
            Self::BindingUpdate(update) => {
                out.put_u16(update.sequence);
                out.put_u16(
                    u16::from(update.acknowledge) << 15
                        | u16::from(update.home_registration) << 14
                        | u16::from(update.link_local_compatible) << 13
                        | u16::from(update.key_management) << 12,
                );
                out.put_u16(update.lifetime);
            }
            Self::BindingAcknowledgement(ack) => {
                out.put_slice(&[ack.status, u8::from(ack.key_management) << 7]);
                out.put_u16(ack.sequence);
                out.put_u16(ack.lifetime);
            }
            Self::BindingError { status, home_address } => {
                out.put_slice(&[*status, 0]);
                out.put_slice(&home_address.octets());
            }
            Self::Unknown { data, .. } => out.put_slice(data),
        }
    }
}

impl Test {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            nonce_index: reader.u16()?,
            cookie: reader.array().map(u64::from_be_bytes)?,
            keygen_token: reader.array().map(u64::from_be_bytes)?,
        })
    }
}

/// Where the last option of the header in `bytes` begins and ends, padding passed over, if it is of type `wanted`.
fn last_option(bytes: &[u8], options: usize, wanted: u8) -> Option<(usize, usize)> {
    let mut at = options;
    let mut last = None;
    while let Some(&option_type) = bytes.get(at) {
        if option_type == option::PAD_1 {
            at += 1;
            continue;
        }
        let end = at + 2 + usize::from(*bytes.get(at + 1)?);
        if option_type != option::PAD_N {
            last = Some((option_type, at, end));
        }
        at = end;
    }
    let (option_type, at, end) = last?;
    (option_type == wanted && end <= bytes.len()).then_some((at, end))
}

/// Payload protocol, length, type, reserved and checksum, bytes.
const HEADER_LEN: usize = 6;

// MH types of RFC 6275 sections 6.1.2 to 6.1.9.
const BINDING_REFRESH_REQUEST: u8 = 0;
const HOME_TEST_INIT: u8 = 1;
const CARE_OF_TEST_INIT: u8 = 2;
const HOME_TEST: u8 = 3;
const CARE_OF_TEST: u8 = 4;
const BINDING_UPDATE: u8 = 5;
const BINDING_ACKNOWLEDGEMENT: u8 = 6;
const BINDING_ERROR: u8 = 7;
