//! Nonces: how they are chosen, put into packets, and taken out (RFC 6744).
//!
//! There is one for each direction of a session. A host chooses its own at the first packet to or from a peer and
//! learns the peer's from the first packet that has one; from then on no other will do. There is no more negotiation
//! than that: whoever answers with a nonce speaks ILNPv6.

use super::config::NonceLength;
use crate::random::SecretRng;
use segue_wire::ilnp::Nonce;
use segue_wire::ipv6::Ipv6Option;
use segue_wire::{ExtensionHeader, Packet, PseudoRule};

/// A new nonce, that nobody can guess (RFC 6744 section 2, RFC 4086).
pub(super) fn choose(length: NonceLength, secrets: &mut dyn SecretRng) -> Nonce {
    match length {
        NonceLength::Bits32 => {
            let mut bytes = [0; 4];
            secrets.fill(&mut bytes);
            Nonce::Bits32(bytes)
        }
        NonceLength::Bits96 => {
            let mut bytes = [0; 12];
            secrets.fill(&mut bytes);
            Nonce::Bits96(bytes)
        }
    }
}

/// Puts the option into a header of its own, behind a hop-by-hop header and in front of all else: in front of a fragment
/// header, too, if a host should fragment the packet later, it stays behind it.
pub(super) fn insert(packet: &mut Packet, nonce: Nonce, rule: PseudoRule) {
    insert_into(&mut packet.extensions, nonce, rule);
}

/// The same for the extension headers of a packet.
pub(super) fn insert_into(extensions: &mut Vec<ExtensionHeader>, nonce: Nonce, rule: PseudoRule) {
    let at = usize::from(matches!(extensions.first(), Some(ExtensionHeader::HopByHop(_))));
    let option = Ipv6Option::IlnpNonce { nonce, rule };
    extensions.insert(at, ExtensionHeader::DestinationOptions(vec![option]));
}

/// What was in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// No nonce.
    None,
    /// One, and the rule of the checksum.
    One(Nonce, PseudoRule),
    /// More than one: no host sends that.
    Several,
}

/// Takes the nonce out of a packet, and its header if there is nothing else in it.
pub(super) fn take(packet: &mut Packet) -> Taken {
    if packet.extensions.is_empty() {
        return Taken::None;
    }
    if let [ExtensionHeader::DestinationOptions(options)] = &packet.extensions[..]
        && let [Ipv6Option::IlnpNonce { nonce, rule }] = options[..]
    {
        packet.extensions = Vec::new();
        return Taken::One(nonce, rule);
    }
    let mut taken = Taken::None;
    packet.extensions.retain_mut(|extension| {
        let ExtensionHeader::DestinationOptions(options) = extension else {
            return true;
        };
        let before = options.len();
        options.retain(|option| {
            let Ipv6Option::IlnpNonce { nonce, rule } = option else {
                return true;
            };
            taken = match taken {
                Taken::None => Taken::One(*nonce, *rule),
                _ => Taken::Several,
            };
            false
        });
        before == options.len() || !options.is_empty()
    });
    taken
}
