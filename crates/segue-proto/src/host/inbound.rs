//! Packets that a host takes, and what it says to those with an option that it does not know (RFC 8200 section 4.2): how a
//! mobile node learns that its peer speaks only IPv6.

use super::Host;
use super::parts::fragments::Outcome;
use super::parts::kernel::Kernel;
use crate::contract::{InterfaceId, Transmit};
use crate::time::Instant;
use core::hint::cold_path;
use segue_wire::fragment::Fragment;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ipv6::{DESTINATION_OPTIONS, HEADER_LEN, HOP_BY_HOP, OptionAction};
use segue_wire::{ExtensionHeader, Ipv6Header, Packet, Payload};

/// Unrecognized IPv6 option encountered (RFC 4443 section 3.4).
const UNRECOGNIZED_OPTION: u8 = 2;

impl Host {
    /// Takes a packet that arrived over `interface`.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, mut packet: Packet) {
        self.handle_packet_in_place(now, interface, &mut packet);
    }

    /// The same for a packet where it lies, which saves moving it. What is left of it is of no use.
    pub fn handle_packet_in_place(&mut self, now: Instant, interface: InterfaceId, packet: &mut Packet) {
        // what stands in front of a fragment header comes first (RFC 8200 section 4.1): it may be the shim's
        if !packet.extensions.is_empty()
            && !names_home_address(packet)
            && let Some(fragment) = Fragment::of(packet)
        {
            cold_path();
            self.passed_up = None;
            self.handle_fragment(now, interface, fragment);
            return;
        }
        self.passed_up = None;
        if !self.up(now, interface, packet) {
            self.settle(now);
            return;
        }
        if self.shim.is_some()
            && let Some(fragment) = Fragment::of(packet)
        {
            cold_path();
            // it was in a tunnel, or behind what the shim took off
            self.handle_fragment(now, interface, fragment);
            self.settle(now);
            return;
        }
        self.passed_up = Some(self.counters.not_for_us);
        if self.kernel.is_some() && Kernel::takes(packet) {
            cold_path();
            self.give_to_kernel(interface, packet);
            self.settle(now);
            return;
        }
        if packet.extensions.iter().any(forbids_processing) {
            cold_path();
            self.counters.not_understood += 1;
            self.report_option(interface, packet);
            return;
        }
        match &packet.payload {
            Payload::Sctp(_) | Payload::SctpOverUdp { .. } => {
                if !self.has_address(packet.ip.destination) {
                    cold_path();
                    self.counters.not_for_us += 1;
                    return;
                }
                self.endpoint.handle_packet_in_place(now, interface, packet);
            }
            Payload::Tcp(_) => self.handle_tcp(now, interface, packet),
            _ => self.handle_message(now, interface, packet),
        }
        self.settle(now);
    }

    /// Takes a packet that is no transport's.
    #[inline(never)]
    fn handle_message(&mut self, now: Instant, interface: InterfaceId, packet: &Packet) {
        match &packet.payload {
            Payload::Icmpv6(Icmpv6::EchoRequest(_)) => self.answer_echo(now, interface, packet),
            Payload::Udp(datagram)
                if self.has_address(packet.ip.destination)
                    && self.location.handle_datagram(
                        now,
                        packet.ip.destination,
                        packet.ip.source,
                        datagram,
                    ) =>
            {
                self.dirty = true;
            }
            Payload::Udp(datagram) if self.handle_udp(now, interface, packet, datagram) => {}
            Payload::Icmpv6(message) if message.is_error() => {
                if !self.has_address(packet.ip.destination) {
                    self.counters.not_for_us += 1;
                    return;
                }
                self.endpoint.handle_icmp(now, message);
                if let Some(tcp) = &mut self.tcp {
                    tcp.handle_icmp(message);
                }
            }
            Payload::Icmpv6(_) | Payload::Udp(_) => {
                if self.interfaces.handle_packet(now, interface, packet) {
                    self.dirty = true;
                } else {
                    self.counters.not_understood += 1;
                }
            }
            _ => self.counters.not_understood += 1,
        }
    }

    #[inline(never)]
    fn handle_fragment(&mut self, now: Instant, interface: InterfaceId, fragment: Fragment) {
        if !self.has_address(fragment.ip.destination) {
            self.counters.not_for_us += 1;
            return;
        }
        match self.reassembler.take(now, fragment) {
            Outcome::Whole(packet) => {
                self.counters.reassembled += 1;
                self.handle_packet(now, interface, *packet);
            }
            Outcome::Waits => {}
            Outcome::Bad => self.counters.not_understood += 1,
        }
    }

    /// RFC 4443 section 4.2.
    fn answer_echo(&mut self, now: Instant, interface: InterfaceId, packet: &Packet) {
        let own = packet.ip.destination;
        let ours = self.has_address(own) || self.acquisition(interface).is_some_and(|a| a.owns(own));
        let Payload::Icmpv6(Icmpv6::EchoRequest(echo)) = &packet.payload else {
            return;
        };
        if !ours || packet.ip.source.is_unspecified() || packet.ip.source.is_multicast() {
            self.counters.not_for_us += 1;
            return;
        }
        let ip = Ipv6Header {
            source: own,
            destination: packet.ip.source,
            hop_limit: 64,
            ..packet.ip
        };
        let reply = Packet {
            ip,
            extensions: Vec::new(),
            payload: Payload::Icmpv6(Icmpv6::EchoReply(echo.clone())),
        };
        self.send_down(now, interface, reply);
    }

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

/// Whether a packet has a home address of Mobile IPv6 among its extension headers: a type 2 routing header that leads on,
/// or a Home Address option.
fn names_home_address(packet: &Packet) -> bool {
    !packet.extensions.is_empty()
        && (packet.home_address().is_some()
            || packet
                .extensions
                .iter()
                .any(|e| e.type_2_home_address().is_some()))
}

/// Whether a packet with this header is to be discarded: an unknown option whose type says so (RFC 8200 section 4.2),
/// a routing header that leads on from here (section 4.4). It is not reported to the sender.
fn forbids_processing(extension: &ExtensionHeader) -> bool {
    match extension {
        ExtensionHeader::HopByHop(options) | ExtensionHeader::DestinationOptions(options) => {
            options.iter().any(|o| o.action() != OptionAction::Skip)
        }
        ExtensionHeader::Routing { segments_left, .. } => *segments_left > 0,
        ExtensionHeader::Fragment { .. } => false,
    }
}
