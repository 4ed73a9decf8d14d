//! Fragments of a kernel's datagrams (RFC 8200 section 4.5): each goes its own way, with its own nonce, and the kernel at the other
//! end puts them together. Only the first has ports; the others are of the same flow.

use super::flow::Flow;
use segue_wire::ilnp::Nid;
use segue_wire::{ExtensionHeader, Packet};
use std::collections::VecDeque;

/// The flows of datagrams whose fragments were seen last, in either direction.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    down: VecDeque<(Datagram, Flow)>,
    up: VecDeque<(Datagram, Flow)>,
}

/// Which datagram a fragment belongs to: of which peer and of which of this host's identifiers, with its identification.
type Datagram = (Nid, Nid, u32);

impl Fragments {
    /// The flow of a packet on its way down, a fragment or not.
    #[inline]
    pub fn down(&mut self, packet: &Packet) -> Flow {
        if packet.extensions.is_empty() {
            return Flow::down(packet);
        }
        let ip = &packet.ip;
        let parties = (Nid::of(ip.destination), Nid::of(ip.source));
        find(&mut self.down, packet, parties, Flow::down)
    }

    /// The flow of a packet on its way up, whose nonce has been taken out.
    #[inline]
    pub fn up(&mut self, packet: &Packet) -> Flow {
        if packet.extensions.is_empty() {
            return Flow::up(packet);
        }
        let ip = &packet.ip;
        let parties = (Nid::of(ip.source), Nid::of(ip.destination));
        find(&mut self.up, packet, parties, Flow::up)
    }
}

fn find(
    seen: &mut VecDeque<(Datagram, Flow)>,
    packet: &Packet,
    (peer, own): (Nid, Nid),
    flow_of: fn(&Packet) -> Flow,
) -> Flow {
    let Some(ExtensionHeader::Fragment {
        offset,
        more,
        identification,
    }) = packet.extensions.last()
    else {
        return flow_of(packet);
    };
    let datagram = (peer, own, *identification);
    if *offset > 0 {
        // one that has overtaken its first is of no flow that has ports
        let known = seen.iter().rev().find(|(d, _)| *d == datagram);
        return known.map_or_else(|| flow_of(packet), |(_, flow)| *flow);
    }
    let flow = flow_of(packet);
    if *more {
        seen.retain(|(d, _)| *d != datagram);
        if seen.len() >= REMEMBERED {
            seen.pop_front();
        }
        seen.push_back((datagram, flow));
    }
    flow
}

/// Datagrams of which fragments are on their way at a time.
const REMEMBERED: usize = 64;
