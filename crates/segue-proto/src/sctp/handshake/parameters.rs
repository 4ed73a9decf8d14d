//! What INIT and INIT ACK say: those of the peer, read and judged, and our own.

use super::cookie::Cookie;
use super::extensions::{self, PeerExtensions};
use crate::contract::LocalAddress;
use crate::sctp::Config;
use crate::sctp::auth::{self, Random};
use crate::sctp::ids::MAX_DESTINATIONS;
use crate::sctp::lengths::PACKET_HEADERS;
use crate::sctp::local::address_rules::may_be_of_peer;
use crate::sctp::peer::MOST_NOT_TAKEN;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use segue_wire::sctp::parameter_type::{IPV6_ADDRESS, STATE_COOKIE};
use segue_wire::sctp::{ErrorCause, Init, Parameter, UnrecognizedAction};

/// What the parameters of a peer's INIT or INIT ACK say.
#[derive(Debug, Default)]
pub(in crate::sctp) struct PeerParameters {
    pub addresses: Vec<Ipv6Addr>,
    /// Those that are not taken, as far as they are kept.
    pub not_taken: Vec<Ipv6Addr>,
    pub cookie: Option<Bytes>,
    /// Those that negotiate extensions.
    pub extensions: Vec<Parameter>,
    pub preservative_ms: u32,
    /// Parameters to be reported, whole (section 3.2.1).
    pub unrecognized: Vec<Bytes>,
    /// A host name, whole: the peer must be refused (section 5.1.2).
    pub host_name: Option<Bytes>,
}

impl PeerParameters {
    pub(in crate::sctp) fn read(parameters: &[Parameter]) -> Self {
        let mut out = Self::default();
        for parameter in parameters {
            match parameter {
                Parameter::Ipv6Address(address) => {
                    let usable = !address.is_multicast() && !address.is_unspecified();
                    let room = out.addresses.len() < MAX_DESTINATIONS;
                    if room && usable && !out.addresses.contains(address) {
                        out.addresses.push(*address);
                    } else if usable && !room {
                        note_not_taken(&mut out.not_taken, *address);
                    }
                }
                Parameter::StateCookie(cookie) => out.cookie = Some(cookie.clone()),
                Parameter::CookiePreservative(increment) => out.preservative_ms = *increment,
                Parameter::HostNameAddress(_) => out.host_name = Some(whole(parameter)),
                Parameter::Unknown { parameter_type, .. } => {
                    let action = UnrecognizedAction::of_parameter_type(*parameter_type);
                    if action.reports() {
                        out.unrecognized.push(whole(parameter));
                    }
                    if action.stops() {
                        break;
                    }
                }
                _ if PeerExtensions::concerns(parameter) => out.extensions.push(parameter.clone()),
                _ => {}
            }
        }
        out
    }

    /// Without addresses that cannot be those of a peer at `from`; and how many they were.
    pub(in crate::sctp) fn without_impossible(
        mut self,
        from: Ipv6Addr,
        own: impl Fn(Ipv6Addr) -> bool,
    ) -> (Self, u64) {
        let may_be = |&address: &Ipv6Addr| may_be_of_peer(address, from, &own);
        let (possible, impossible): (Vec<_>, Vec<_>) = self.addresses.into_iter().partition(may_be);
        self.addresses = possible;
        for &address in &impossible {
            note_not_taken(&mut self.not_taken, address);
        }
        (self, impossible.len() as u64)
    }
}

/// Adds an address that a peer has named to those that are not taken, if there is room.
pub(in crate::sctp) fn note_not_taken(not_taken: &mut Vec<Ipv6Addr>, address: Ipv6Addr) {
    if not_taken.len() < MOST_NOT_TAKEN && !not_taken.contains(&address) {
        not_taken.push(address);
    }
}

/// A parameter's bytes, as an error cause quotes them.
fn whole(parameter: &Parameter) -> Bytes {
    let mut out = Vec::with_capacity(parameter.buffer_len());
    parameter.emit(&mut out);
    out.into()
}

/// Parameters that every INIT and INIT ACK of ours carries.
fn own_parameters(config: &Config, local: &[LocalAddress], random: Option<&Random>) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    // a single address is that of the packet
    if local.len() > 1 {
        parameters.extend(local.iter().map(|l| Parameter::Ipv6Address(l.address)));
    }
    parameters.extend(extensions::offered(config, random));
    parameters
}

/// Least a_rwnd of an INIT or INIT ACK, bytes (sections 3.3.2 and 3.3.3).
const MIN_INITIAL_RWND: u32 = 1500;

/// Whether an INIT with these parameters may be acted on.
///
/// # Errors
/// Why its sender is refused.
pub(in crate::sctp) fn check_init(
    config: &Config,
    init: &Init,
    peer: &PeerParameters,
) -> Result<(), ErrorCause> {
    check_mandatory(init, peer)?;
    auth::refusal(config, &peer.extensions).map_or(Ok(()), Err)
}

/// The cookie of an INIT ACK with these parameters, if it may be acted on.
///
/// # Errors
/// Why its sender is refused.
pub(in crate::sctp) fn check_init_ack(
    config: &Config,
    init_ack: &Init,
    peer: &PeerParameters,
) -> Result<Bytes, ErrorCause> {
    check_mandatory(init_ack, peer)?;
    let missing = || ErrorCause::MissingMandatoryParameter(vec![STATE_COOKIE]);
    let cookie = peer.cookie.clone().ok_or_else(missing)?;
    auth::refusal(config, &peer.extensions).map_or(Ok(cookie), Err)
}

/// What is fatal in an INIT or INIT ACK (sections 3.3.2 and 3.3.3), and a host name (section 5.1.2).
fn check_mandatory(init: &Init, peer: &PeerParameters) -> Result<(), ErrorCause> {
    let acceptable = init.initiate_tag != 0
        && init.outbound_streams != 0
        && init.inbound_streams != 0
        && init.a_rwnd >= MIN_INITIAL_RWND;
    if !acceptable {
        return Err(ErrorCause::InvalidMandatoryParameter);
    }
    let name = peer.host_name.clone();
    name.map_or(Ok(()), |name| Err(ErrorCause::UnresolvableAddress(name)))
}

/// Our INIT.
pub(in crate::sctp) fn init(
    config: &Config,
    local: &[LocalAddress],
    random: Option<&Random>,
    tag_and_tsn: (u32, Tsn),
    cookie_preservative: Option<u32>,
) -> Init {
    let mut parameters = own_parameters(config, local, random);
    // of an INIT alone (section 3.3.2): the answer keeps to them
    parameters.push(Parameter::SupportedAddressTypes(vec![IPV6_ADDRESS]));
    parameters.extend(cookie_preservative.map(Parameter::CookiePreservative));
    Init {
        initiate_tag: tag_and_tsn.0,
        a_rwnd: config.receive_buffer,
        outbound_streams: config.outbound_streams,
        inbound_streams: config.max_inbound_streams,
        initial_tsn: tag_and_tsn.1,
        parameters,
    }
}

/// Builds the INIT ACK that answers an INIT, around a sealed cookie. As many unrecognised parameters are reported as
/// fit one packet: whoever sent the INIT has proven nothing yet, and is not to be answered with more.
pub(in crate::sctp) fn init_ack(
    config: &Config,
    local: &[LocalAddress],
    cookie: &Cookie,
    sealed: Bytes,
    unrecognized: Vec<Bytes>,
) -> Init {
    let sealed = Parameter::StateCookie(sealed);
    let parameters = own_parameters(config, local, cookie.local_random.as_ref());
    let mut init_ack = Init {
        initiate_tag: cookie.local_tag,
        a_rwnd: config.receive_buffer,
        // no more than the peer takes: as many as there will be
        outbound_streams: cookie.streams.outbound,
        inbound_streams: config.max_inbound_streams,
        initial_tsn: cookie.local_initial_tsn,
        parameters,
    };
    let chunk_header = 4;
    let used = PACKET_HEADERS as usize
        + chunk_header
        + init_ack.buffer_len().next_multiple_of(4)
        + sealed.buffer_len().next_multiple_of(4);
    let mut room = (config.mtu as usize).saturating_sub(used);
    for parameter in unrecognized.into_iter().map(Parameter::UnrecognizedParameter) {
        let len = parameter.buffer_len().next_multiple_of(4);
        if len > room {
            break;
        }
        room -= len;
        init_ack.parameters.push(parameter);
    }
    init_ack.parameters.push(sealed);
    init_ack
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(parameter_type: u16) -> Parameter {
        Parameter::Unknown {
            parameter_type,
            value: Bytes::from_static(b"abc"),
        }
    }

    #[test]
    fn the_high_bits_of_an_unknown_parameter_say_whether_to_stop_and_whether_to_report() {
        // RFC 9260 section 3.2.1
        let address = Parameter::Ipv6Address(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
        for (parameter_type, stops, reports) in [
            (0x0042, true, false),
            (0x4042, true, true),
            (0x8042, false, false),
            (0xc042, false, true),
        ] {
            let read = PeerParameters::read(&[unknown(parameter_type), address.clone()]);
            assert_eq!(read.addresses.is_empty(), stops, "{parameter_type:#x}");
            assert_eq!(
                read.unrecognized.len(),
                usize::from(reports),
                "{parameter_type:#x}"
            );
        }
        let read = PeerParameters::read(&[unknown(0xc042)]);
        assert_eq!(read.unrecognized[0][..], [0xc0, 0x42, 0, 7, b'a', b'b', b'c']);
    }

    #[test]
    fn a_host_name_is_noticed() {
        let name = [Parameter::HostNameAddress(Bytes::from_static(b"x.example\0"))];
        assert!(PeerParameters::read(&name).host_name.is_some());
    }

    #[test]
    fn multicast_unspecified_and_repeated_addresses_are_not_taken() {
        let good = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let multicast = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        let parameters = [multicast, Ipv6Addr::UNSPECIFIED, good, good].map(Parameter::Ipv6Address);
        assert_eq!(PeerParameters::read(&parameters).addresses, [good]);
    }
}
