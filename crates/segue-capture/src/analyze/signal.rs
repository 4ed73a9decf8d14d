//! Messages of signalling, as they are reported.

use core::net::IpAddr;
use serde::Serialize;

/// What a message of mobility signalling is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignalKind {
    /// Router Solicitation (RFC 4861).
    RouterSolicitation,
    /// Router Advertisement (RFC 4861).
    RouterAdvertisement,
    /// Neighbour Solicitation from the unspecified address: duplicate address detection (RFC 4862).
    DuplicateAddressDetection,
    /// Binding Update (RFC 6275).
    BindingUpdate,
    /// Binding Acknowledgement.
    BindingAcknowledgement,
    /// Home Test Init.
    HomeTestInit,
    /// Care-of Test Init.
    CareOfTestInit,
    /// Home Test.
    HomeTest,
    /// Care-of Test.
    CareOfTest,
    /// Binding Error.
    BindingError,
    /// Locator Update (RFC 6743).
    LocatorUpdate,
    /// Its acknowledgement.
    LocatorUpdateAcknowledgement,
    /// ASCONF that adds an address (RFC 5061).
    AsconfAdd,
    /// ASCONF that deletes an address.
    AsconfDelete,
    /// ASCONF that names the primary address.
    AsconfSetPrimary,
    /// ASCONF-ACK.
    AsconfAcknowledgement,
    /// MP_JOIN on a SYN (RFC 8684).
    MptcpJoin,
    /// ADD_ADDR.
    MptcpAddAddress,
    /// REMOVE_ADDR.
    MptcpRemoveAddress,
    /// MP_PRIO.
    MptcpPriority,
    /// A known QUIC connection ID on a new pair of addresses.
    QuicNewPath,
    /// A known WireGuard index from a new endpoint.
    WireguardNewEndpoint,
}

/// A message of mobility signalling. One that both captures have is here twice, once as sent and once as received.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Signal {
    /// When, seconds.
    pub time_s: f64,
    /// Index of the capture.
    pub capture: u8,
    /// Interface of the capture.
    pub interface: u32,
    /// What.
    pub kind: SignalKind,
    /// From (outermost header).
    pub source: IpAddr,
    /// To.
    pub destination: IpAddr,
    /// The address it is about: home address, locator's prefix, the address in an ASCONF.
    pub about: Option<IpAddr>,
    /// The flow, where it belongs to one.
    pub flow: Option<u64>,
}
