//! What packets and chunks are called in tables and counts.

use super::ledger::Transport;
use super::segments::KernelSegment;
use segue_proto::location::PORT as DNS_PORT;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{LocatorOperation, LocatorUpdate};
use segue_wire::mobility::MobilityMessage;
use segue_wire::sctp::{AsconfParameter, Chunk};
use segue_wire::tcp::{TcpFlags, TcpSegment};
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Packet, Payload, RawPayload, udp};

/// Signalling of mobility, by what it does to a node that it comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// It says where somebody is.
    Update,
    /// Anything else.
    Other,
}

/// Whether a packet is signalling of mobility, in a tunnel too, and of what sort. What is in a tunnel updates nobody on the
/// way.
pub fn signal_of(packet: &Packet) -> Option<Signal> {
    let name = signalling(packet)?;
    let updates =
        matches!(name, "BU" | "LU" | "DNS-UPDATE") || (name.starts_with("ASCONF") && name != "ASCONF-ACK");
    let tunnelled = matches!(packet.payload, Payload::Ipv6(_));
    Some(if updates && !tunnelled {
        Signal::Update
    } else {
        Signal::Other
    })
}

/// The name of signalling of mobility, in tunnels too: address configuration, ASCONF, and what Mobile IPv6 and ILNPv6
/// and the location manager say. `None` for everything else.
pub(super) fn signalling(packet: &Packet) -> Option<&'static str> {
    match &packet.payload {
        Payload::Icmpv6(message) => match icmp(message) {
            "ECHO-REQUEST" | "ECHO-REPLY" | "UNREACHABLE" | "PARAMETER-PROBLEM" | "ICMPV6" => None,
            name => Some(name),
        },
        Payload::Mobility(header) => Some(mobility(&header.message)),
        Payload::Udp(datagram) => match udp(datagram) {
            "UDP" | "DATA" => None,
            name => Some(name),
        },
        Payload::Sctp(sctp) | Payload::SctpOverUdp { packet: sctp, .. } => {
            let mut names = sctp.chunks.iter().map(|c| chunk(c).0);
            names.find(|n| n.starts_with("ASCONF"))
        }
        Payload::Ipv6(inner) => signalling(inner),
        _ => None,
    }
}

/// Messages of the mobility header by the abbreviations of RFC 6275.
pub(super) fn mobility(message: &MobilityMessage) -> &'static str {
    match message {
        MobilityMessage::BindingRefreshRequest => "BRR",
        MobilityMessage::HomeTestInit { .. } => "HOTI",
        MobilityMessage::CareOfTestInit { .. } => "COTI",
        MobilityMessage::HomeTest(_) => "HOT",
        MobilityMessage::CareOfTest(_) => "COT",
        MobilityMessage::BindingUpdate(_) => "BU",
        MobilityMessage::BindingAcknowledgement(_) => "BA",
        MobilityMessage::BindingError { .. } => "BE",
        MobilityMessage::Unknown { .. } => "MH",
    }
}

/// A chunk, with the TSN that it is about.
pub(super) fn chunk(of: &Chunk) -> (&'static str, Option<u32>) {
    let name = match of {
        Chunk::Data(d) => return ("DATA", Some(d.tsn.0)),
        Chunk::Sack(s) => return ("SACK", Some(s.cumulative_tsn_ack.0)),
        Chunk::NrSack(s) => return ("NR-SACK", Some(s.sack.cumulative_tsn_ack.0)),
        Chunk::Asconf(a) => asconf(&a.parameters),
        Chunk::Init(_) => "INIT",
        Chunk::InitAck(_) => "INIT-ACK",
        Chunk::Heartbeat(_) => "HEARTBEAT",
        Chunk::HeartbeatAck(_) => "HEARTBEAT-ACK",
        Chunk::Abort { .. } => "ABORT",
        Chunk::Shutdown { .. } => "SHUTDOWN",
        Chunk::ShutdownAck => "SHUTDOWN-ACK",
        Chunk::Error(_) => "ERROR",
        Chunk::CookieEcho(_) => "COOKIE-ECHO",
        Chunk::CookieAck => "COOKIE-ACK",
        Chunk::Ecne(_) => "ECNE",
        Chunk::Cwr(_) => "CWR",
        Chunk::ShutdownComplete { .. } => "SHUTDOWN-COMPLETE",
        Chunk::Auth(_) => "AUTH",
        Chunk::AsconfAck(_) => "ASCONF-ACK",
        Chunk::Pad(_) => "PAD",
        Chunk::ReConfig(_) => "RE-CONFIG",
        Chunk::ForwardTsn(_) => "FORWARD-TSN",
        Chunk::Unknown { .. } => "UNKNOWN",
    };
    (name, None)
}

/// An ASCONF by its requests; those that no policy of ours bundles share a name.
fn asconf(requests: &[AsconfParameter]) -> &'static str {
    use AsconfParameter as P;
    match requests {
        [P::AddIpAddress { .. }] => "ASCONF-ADD",
        [P::DeleteIpAddress { .. }] => "ASCONF-DELETE",
        [P::SetPrimaryAddress { .. }] => "ASCONF-SET-PRIMARY",
        [P::DeactivateAddress { .. }] => "ASCONF-DEACTIVATE",
        [P::ActivateAddress { .. }] => "ASCONF-ACTIVATE",
        [P::AddIpAddress { .. }, P::SetPrimaryAddress { .. }] => "ASCONF-ADD+SET-PRIMARY",
        [P::ActivateAddress { .. }, P::SetPrimaryAddress { .. }] => "ASCONF-ACTIVATE+SET-PRIMARY",
        [P::SetPrimaryAddress { .. }, P::DeleteIpAddress { .. }] => "ASCONF-SET-PRIMARY+DELETE",
        [P::SetPrimaryAddress { .. }, P::DeactivateAddress { .. }] => "ASCONF-SET-PRIMARY+DEACTIVATE",
        [P::AddIpAddress { .. }, P::DeleteIpAddress { .. }] => "ASCONF-ADD+DELETE",
        [
            P::AddIpAddress { .. },
            P::SetPrimaryAddress { .. },
            P::DeleteIpAddress { .. },
        ] => "ASCONF-ADD+SET-PRIMARY+DELETE",
        [
            P::AddIpAddress { .. },
            P::SetPrimaryAddress { .. },
            P::DeactivateAddress { .. },
        ] => "ASCONF-ADD+SET-PRIMARY+DEACTIVATE",
        [] => "ASCONF",
        [..] => "ASCONF-BUNDLE",
    }
}

/// DNS messages by opcode and direction (RFC 1035 section 4.1.1), what carries an application's data as such, and others
/// by their protocol.
pub(super) fn udp(datagram: &UdpDatagram) -> &'static str {
    let flags = match &datagram.data {
        Data::Bytes(bytes) => bytes.get(2).copied(),
        Data::Synthetic { .. } => None,
    };
    let dns = datagram.source_port == DNS_PORT || datagram.destination_port == DNS_PORT;
    match flags.filter(|_| dns).map(|f| (f >> 3 & 15, f & 0x80 != 0)) {
        Some((0, false)) => "DNS-QUERY",
        Some((0, true)) => "DNS-ANSWER",
        Some((5, false)) => "DNS-UPDATE",
        Some((5, true)) => "DNS-UPDATE-ANSWER",
        _ if datagram.data.synthetic_offset().is_some() && !datagram.data.is_empty() => "DATA",
        _ => "UDP",
    }
}

/// TCP segments by what is most important about them, with the sequence number of data, or else the acknowledgment.
pub(super) fn tcp(segment: &TcpSegment) -> (&'static str, Option<u32>) {
    by_flags(
        segment.flags,
        !segment.data.is_empty(),
        segment.seq.0,
        segment.ack.0,
    )
}

/// The same of a packet of a kernel, and its datagrams as ours: what carries an application's data as such.
pub(super) fn kernel(raw: &RawPayload) -> (&'static str, Option<u32>) {
    match KernelSegment::of(raw) {
        Some(s) if s.transport == Transport::Udp => (if s.length > 0 { "DATA" } else { "UDP" }, s.seq),
        Some(s) => by_flags(s.flags, s.length > 0, s.seq.unwrap_or_default(), s.ack),
        None if raw.next_header == udp::NEXT_HEADER => ("UDP", None),
        None => ("OTHER", None),
    }
}

fn by_flags(flags: TcpFlags, has_data: bool, seq: u32, ack: u32) -> (&'static str, Option<u32>) {
    let acks = flags.contains(TcpFlags::ACK);
    match () {
        () if flags.contains(TcpFlags::RST) => ("RST", None),
        () if flags.contains(TcpFlags::SYN) => (if acks { "SYN-ACK" } else { "SYN" }, Some(seq)),
        () if has_data => ("DATA", Some(seq)),
        () if flags.contains(TcpFlags::FIN) => ("FIN", Some(seq)),
        () => ("ACK", acks.then_some(ack)),
    }
}

/// ICMPv6 messages.
pub(super) fn icmp(message: &Icmpv6) -> &'static str {
    match message {
        Icmpv6::RouterSolicitation(_) => "RS",
        Icmpv6::RouterAdvertisement(_) => "RA",
        Icmpv6::NeighborSolicitation(_) => "NS",
        Icmpv6::NeighborAdvertisement(_) => "NA",
        Icmpv6::LocatorUpdate(LocatorUpdate {
            operation: LocatorOperation::Advertisement,
            ..
        }) => "LU",
        Icmpv6::LocatorUpdate(_) => "LU-ACK",
        Icmpv6::ParameterProblem { .. } => "PARAMETER-PROBLEM",
        Icmpv6::EchoRequest(_) => "ECHO-REQUEST",
        Icmpv6::EchoReply(_) => "ECHO-REPLY",
        Icmpv6::DestinationUnreachable { .. } => "UNREACHABLE",
        _ => "ICMPV6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asconf_is_called_by_all_that_it_asks_for() {
        let address = core::net::Ipv6Addr::LOCALHOST;
        let correlation_id = 1;
        let add = AsconfParameter::AddIpAddress {
            correlation_id,
            address,
        };
        let primary = AsconfParameter::SetPrimaryAddress {
            correlation_id,
            address,
        };
        let delete = AsconfParameter::DeleteIpAddress {
            correlation_id,
            address,
        };
        for (requests, name) in [
            (vec![], "ASCONF"),
            (vec![add.clone()], "ASCONF-ADD"),
            (vec![add.clone(), primary.clone()], "ASCONF-ADD+SET-PRIMARY"),
            (vec![primary.clone(), delete.clone()], "ASCONF-SET-PRIMARY+DELETE"),
            (vec![delete, primary, add], "ASCONF-BUNDLE"),
        ] {
            assert_eq!(asconf(&requests), name);
        }
    }
}
