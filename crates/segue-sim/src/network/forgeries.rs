//! Forged signalling: a host that is not on the path says where another one is.

use super::Network;
use crate::scenario::model::ForgeryEntry;
use crate::scenario::schemes::{Forged, ForgedNonce};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_proto::InterfaceId;
use segue_proto::random::{SecretRng as _, Stream};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, LocatorEntry, LocatorOperation, LocatorUpdate, Nonce};
use segue_wire::ipv6::Ipv6Option;
use segue_wire::mobility::{BindingUpdate, MobilityHeader, MobilityMessage, MobilityOption};
use segue_wire::{ExtensionHeader, Ipv6Header, Packet, Payload, PseudoRule};

/// A message that is to be forged.
#[derive(Clone, Debug)]
pub(crate) struct Forgery {
    /// The host that forges it.
    pub node: u32,
    packet: Packet,
}

/// What the message is made of: the addresses of those that are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parties {
    /// The forger's own address.
    pub forger: Ipv6Addr,
    /// Whom it tells.
    pub victim: Ipv6Addr,
    /// Where the host that it speaks of is, or what it is known by.
    pub about: Ipv6Addr,
}

impl Forgery {
    /// The message of a scenario. What the forger has to guess, it draws from `stream`.
    pub fn new(node: u32, entry: &ForgeryEntry, parties: Parties, stream: &mut Stream) -> Self {
        let packet = match entry.message {
            Forged::LocatorUpdate => locator_update(entry.nonce, parties, stream),
            Forged::BindingUpdate => binding_update(parties, stream),
        };
        Self { node, packet }
    }
}

impl Network {
    /// A forged message goes out.
    pub fn forgery_due(&mut self, number: u32) {
        let Some(forgery) = self.forgeries.get(number as usize) else {
            return;
        };
        *self.store.vacancy() = forgery.packet.clone();
        self.send_from_host(forgery.node, InterfaceId::default().into());
    }
}

/// "The host with this identifier is at my locator": RFC 6743 section 2, the nonce missing or guessed.
fn locator_update(nonce: ForgedNonce, parties: Parties, stream: &mut Stream) -> Packet {
    let update = LocatorUpdate {
        operation: LocatorOperation::Advertisement,
        locators: vec![LocatorEntry {
            locator: Locator::of(parties.forger),
            preference: 0,
            lifetime_s: 3600,
        }],
    };
    let mut guess = [0; 4];
    stream.fill(&mut guess);
    let option = Ipv6Option::IlnpNonce {
        nonce: Nonce::Bits32(guess),
        rule: PseudoRule::Ipv6,
    };
    Packet {
        ip: header(parties.about, parties.victim),
        extensions: match nonce {
            ForgedNonce::Missing => Vec::new(),
            ForgedNonce::Wrong => vec![ExtensionHeader::DestinationOptions(vec![option])],
        },
        payload: Payload::Icmpv6(Icmpv6::LocatorUpdate(update)),
    }
}

/// "The host with this home address is at mine": RFC 6275 section 6.1.7, the authenticator guessed.
fn binding_update(parties: Parties, stream: &mut Stream) -> Packet {
    let mut guess = [0; 12];
    stream.fill(&mut guess);
    let update = BindingUpdate {
        sequence: stream.secret_u32() as u16,
        acknowledge: true,
        lifetime: 100,
        ..BindingUpdate::default()
    };
    let options = vec![
        MobilityOption::NonceIndices { home: 0, care_of: 0 },
        MobilityOption::BindingAuthorizationData(Bytes::copy_from_slice(&guess)),
    ];
    let message = MobilityHeader::new(MobilityMessage::BindingUpdate(update), options);
    Packet {
        ip: header(parties.forger, parties.victim),
        extensions: vec![ExtensionHeader::DestinationOptions(vec![
            Ipv6Option::HomeAddress(parties.about),
        ])],
        payload: Payload::Mobility(Box::new(message)),
    }
}

fn header(source: Ipv6Addr, destination: Ipv6Addr) -> Ipv6Header {
    Ipv6Header {
        source,
        destination,
        traffic_class: 0,
        hop_limit: 64,
        flow_label: 0,
    }
}
