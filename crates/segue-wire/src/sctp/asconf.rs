//! ASCONF and ASCONF-ACK chunks (RFC 5061 section 4.1) and their parameters (section 4.2).

use crate::AsconfSerial;
use crate::sctp::ErrorCause;
use bytes::Bytes;
use core::net::Ipv6Addr;

/// ASCONF (0xC1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asconf {
    /// Serial number.
    pub serial_number: AsconfSerial,
    /// Address parameter: some address of the sender that is part of the association, for look-up.
    pub address: Ipv6Addr,
    /// Requests, in the order in which they are to be worked off.
    pub parameters: Vec<AsconfParameter>,
}

/// ASCONF-ACK (0x80).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsconfAck {
    /// Serial number of the ASCONF answered.
    pub serial_number: AsconfSerial,
    /// Responses; a request without one succeeded.
    pub responses: Vec<AsconfResponse>,
}

/// A request of an ASCONF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AsconfParameter {
    /// Add IP address (0xC001).
    AddIpAddress {
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// Address; unspecified stands for the packet's source.
        address: Ipv6Addr,
    },
    /// Delete IP address (0xC002).
    DeleteIpAddress {
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// Address; unspecified stands for all but the packet's source.
        address: Ipv6Addr,
    },
    /// Set primary address (0xC004).
    SetPrimaryAddress {
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// Address; unspecified stands for the packet's source.
        address: Ipv6Addr,
    },
    /// Any other request.
    Unknown {
        /// Parameter type.
        parameter_type: u16,
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// The rest of the value.
        value: Bytes,
    },
}

/// A response of an ASCONF-ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AsconfResponse {
    /// Success indication (0xC005).
    SuccessIndication {
        /// Correlation id of the request.
        correlation_id: u32,
    },
    /// Error cause indication (0xC003).
    ErrorCauseIndication {
        /// Correlation id of the request.
        correlation_id: u32,
        /// Causes.
        causes: Vec<ErrorCause>,
    },
}
