//! What a host says to packets with an option that it does not know (RFC 8200 section 4.2): how a mobile node learns that
//! its peer speaks only IPv6.

use super::Host;
use crate::contract::{InterfaceId, Transmit};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ipv6::{DESTINATION_OPTIONS, HEADER_LEN, HOP_BY_HOP, OptionAction};
use segue_wire::{ExtensionHeader, Ipv6Header, Packet, Payload};

/// Unrecognized IPv6 option encountered (RFC 4443 section 3.4).
const UNRECOGNIZED_OPTION: u8 = 2;

impl Host {
    /// Reports the first option of `packet` whose type asks for it, if this host is who it was sent to.
    pub(super) fn report_option(&mut self, interface: InterfaceId, packet: &Packet) {
        let own = packet.ip.destination;
        let Some(pointer) = position_of_reportable(packet) else {
            return;
        };
        if !self.has_address(own) || !Icmpv6::may_report(packet) {
            return;
        }
        self.transmits.push_back(Transmit {
            interface,
            packet: Packet {
                ip: Ipv6Header {
                    source: own,
                    destination: packet.ip.source,
                    traffic_class: 0,
                    hop_limit: 64,
                    flow_label: 0,
                },
                extensions: Vec::new(),
                payload: Payload::Icmpv6(Icmpv6::ParameterProblem {
                    code: UNRECOGNIZED_OPTION,
                    pointer,
                    invoking: Icmpv6::quote(packet),
                }),
            },
        });
    }
}

/// Where the first option is in the packet that says to discard it and report.
fn position_of_reportable(packet: &Packet) -> Option<u32> {
    let reports = |action| {
        matches!(
            action,
            OptionAction::DiscardAndReport | OptionAction::DiscardAndReportUnlessMulticast
        )
    };
    let mut start = HEADER_LEN;
    for extension in &packet.extensions {
        if let ExtensionHeader::HopByHop(options) | ExtensionHeader::DestinationOptions(options) = extension
            && let Some(first) = options.iter().find(|o| o.action() != OptionAction::Skip)
        {
            // the first that forbids processing decides
            return reports(first.action())
                .then(|| position_in(extension, first.option_type()))
                .flatten()
                .map(|at| (start + at) as u32);
        }
        start += extension.buffer_len();
    }
    None
}

/// Where the first option of this type begins in its header.
fn position_in(header: &ExtensionHeader, option_type: u8) -> Option<usize> {
    const PAD_1: u8 = 0;
    debug_assert!(matches!(header.header_type(), HOP_BY_HOP | DESTINATION_OPTIONS));
    let mut bytes = Vec::with_capacity(header.buffer_len());
    header.emit(0, &mut bytes);
    let mut at = 2;
    loop {
        match *bytes.get(at)? {
            found if found == option_type => return Some(at),
            PAD_1 => at += 1,
            _ => at += 2 + usize::from(*bytes.get(at + 1)?),
        }
    }
}
