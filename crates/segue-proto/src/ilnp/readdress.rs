//! Other addresses for a packet, with what hangs on them.

use super::nonce;
use core::net::Ipv6Addr;
use segue_wire::ilnp::Nonce;
use segue_wire::{Packet, Payload, PseudoRule};

/// Gives a packet other addresses and a nonce or none; a raw payload's checksum follows.
pub(super) fn readdress(
    packet: &mut Packet,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    nonce: Option<(Nonce, PseudoRule)>,
) {
    let old = matches!(packet.payload, Payload::Raw(_)).then(|| packet.pseudo_header());
    packet.ip.source = source;
    packet.ip.destination = destination;
    if let Some((nonce, rule)) = nonce {
        // what has no such checksum is under IPv6's rule, as it is when parsed
        let rule = if packet.has_pseudo_rule() {
            rule
        } else {
            PseudoRule::Ipv6
        };
        nonce::insert(packet, nonce, rule);
    }
    if let Some(old) = old {
        let new = packet.pseudo_header();
        if let Payload::Raw(raw) = &mut packet.payload {
            raw.adjust(&old, &new);
        }
    }
}
