//! Binding Acknowledgements (RFC 6275 sections 9.5.4 and 10.3.1), of home agents and correspondents alike.

use super::mobility_packet;
use core::net::Ipv6Addr;
use segue_wire::mobility::{BindingAcknowledgement, MobilityHeader, MobilityMessage};
use segue_wire::{ExtensionHeader, Packet};

/// How a Binding Update is to be acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    /// Who answers.
    pub(super) own: Ipv6Addr,
    /// Source of the Binding Update.
    pub(super) source: Ipv6Addr,
    pub(super) home_address: Ipv6Addr,
    /// What authenticators cover, besides the message.
    pub(super) covered: Ipv6Addr,
    pub(super) sequence: u16,
}

impl Reply {
    /// The message, without options.
    pub(super) fn header(&self, status: u8, lifetime: u16) -> MobilityHeader {
        let message = MobilityMessage::BindingAcknowledgement(BindingAcknowledgement {
            status,
            key_management: false,
            sequence: self.sequence,
            lifetime,
        });
        MobilityHeader::new(message, Vec::new())
    }

    /// Its way: to the source of the Binding Update, by a type 2 routing header if that is not the home address.
    pub(super) fn packet(&self, header: MobilityHeader) -> Packet {
        let mut packet = mobility_packet(self.own, self.source, header);
        if self.source != self.home_address {
            packet
                .extensions
                .push(ExtensionHeader::type_2_routing(self.home_address));
        }
        packet
    }
}
