//! Errors about packets that took the direct way (RFC 6275 sections 6.3 and 6.4): they quote a care-of address and the header that
//! says whose it is, and transports know home addresses.

use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ipv6::{HEADER_LEN, Ipv6Option};
use segue_wire::reader::Reader;
use segue_wire::{ExtensionHeader, Ipv6Header};

/// An error about a packet with a Home Address option, a type 2 routing header, or both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DirectError {
    /// Source and destination of the packet on the wire.
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    /// What the Home Address option says (section 6.3).
    pub home_address: Option<Ipv6Addr>,
    /// Where the routing header leads (section 6.4).
    pub routed_to: Option<Ipv6Addr>,
    /// The packet as its transport sent it, as far as it is quoted.
    original: Bytes,
}

impl DirectError {
    /// Reads an error. `None` if it is about another packet, or does not quote enough.
    pub fn parse(error: &Icmpv6) -> Option<Self> {
        let quoted = error.invoking()?;
        let mut reader = Reader::new(quoted, "invoking packet");
        let (mut ip, payload_length, mut next_header) = Ipv6Header::parse(&mut reader).ok()?;
        let (source, destination) = (ip.source, ip.destination);
        let (mut home_address, mut routed_to) = (None, None);
        let mut extensions = Vec::new();
        let mut removed = 0;
        // both come before a fragment header (sections 6.3 and 6.4), behind which there may be only data
        while ExtensionHeader::is_known(next_header) {
            let (mut extension, following) = ExtensionHeader::parse(next_header, &mut reader).ok()?;
            next_header = following;
            let behind = matches!(extension, ExtensionHeader::Fragment { offset: 1.., .. });
            let before = extension.buffer_len();
            let mut gone = false;
            if let Some(address) = extension.type_2_home_address() {
                routed_to = Some(address);
                gone = true;
            } else if let ExtensionHeader::DestinationOptions(options) = &mut extension {
                let all = options.len();
                options.retain(|option| {
                    if let Ipv6Option::HomeAddress(address) = option {
                        home_address = Some(*address);
                    }
                    !matches!(option, Ipv6Option::HomeAddress(_))
                });
                gone = options.is_empty() && all > 0;
            }
            if gone {
                removed += before;
            } else {
                removed += before - extension.buffer_len();
                extensions.push(extension);
            }
            if behind {
                break;
            }
        }
        if home_address.is_none() && routed_to.is_none() {
            return None;
        }
        ip.source = home_address.unwrap_or(source);
        ip.destination = routed_to.unwrap_or(destination);
        let rest = reader.rest();
        let types = extensions.iter().map(ExtensionHeader::header_type);
        let mut types = types.chain([next_header]);
        let mut following = || types.next().unwrap_or(next_header);
        let mut original = Vec::with_capacity(HEADER_LEN + rest.len());
        let payload_length = usize::from(payload_length).saturating_sub(removed) as u16;
        ip.emit(payload_length, following(), &mut original);
        for extension in &extensions {
            extension.emit(following(), &mut original);
        }
        original.extend_from_slice(&rest);
        Some(Self {
            source,
            destination,
            home_address,
            routed_to,
            original: original.into(),
        })
    }

    /// The error, for the transport. A path MTU in it stays what it is: who hands it over knows by how much packets grow.
    pub fn for_transport(self, mut error: Icmpv6) -> Icmpv6 {
        match &mut error {
            Icmpv6::DestinationUnreachable { invoking, .. }
            | Icmpv6::PacketTooBig { invoking, .. }
            | Icmpv6::TimeExceeded { invoking, .. }
            | Icmpv6::ParameterProblem { invoking, .. } => *invoking = self.original,
            _ => {}
        }
        error
    }
}
