//! What somebody has to know who carries packets of a session himself, past the machine, while nothing changes; and what the
//! machine has to know of it afterwards.

use super::Ilnp;
use crate::contract::InterfaceId;
use crate::ilnp::config::{ChecksumRule, NonceIn};
use crate::ilnp::flow::Flow;
use crate::ilnp::mode::Mode;
use crate::ilnp::session_key::SessionKey;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::PseudoRule;
use segue_wire::ilnp::{Locator, Nonce};

/// How packets of TCP and UDP of a session go, either way, for as long as [`Ilnp::direct_of`] says the same. Checksums follow IPv6's
/// rule, and every packet has a nonce alone in its destination options. What begins or ends something is for the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Direct {
    /// Which session.
    pub session: SessionKey,
    /// What transports call the peer.
    pub peer: Ipv6Addr,
    /// Where packets to it leave.
    pub interface: InterfaceId,
    /// This host's address on the wire, of packets either way.
    pub here: Ipv6Addr,
    /// The peer's.
    pub there: Ipv6Addr,
    /// In packets to the peer.
    pub nonce: Nonce,
    /// In packets from it.
    pub peers_nonce: Nonce,
}

impl Ilnp {
    /// The same of the session to which a flow with `peer` belongs, by protocol, this host's port and the peer's. Nothing if there is
    /// something to think about.
    #[must_use]
    pub fn direct(
        &self,
        now: Instant,
        peer: Ipv6Addr,
        (protocol, own, other): (u8, u16, u16),
    ) -> Option<Direct> {
        let flow = Flow::of_ports(protocol, own, other);
        self.direct_of(now, self.ilcc.owner_of(peer, flow)?)
    }

    /// The same of a session.
    #[must_use]
    pub fn direct_of(&self, now: Instant, session: SessionKey) -> Option<Direct> {
        let config = &self.config;
        let peer = self.ilcc.by_key(session)?;
        let plain_checksums =
            config.checksum == ChecksumRule::Ipv6 && peer.rule() != Some(PseudoRule::Identifiers);
        let settled =
            peer.mode() == Mode::Ilnp && peer.called_at().is_none() && !peer.telling().has_given_up();
        if config.nonce_in != NonceIn::Every || !plain_checksums || !settled {
            return None;
        }
        let way = peer.way_again(now, self.local.generation(), config.silent_packets)?;
        Some(Direct {
            session,
            peer: peer.identity(),
            interface: way.interface,
            here: way.source,
            there: way.destination,
            nonce: peer.local_nonce(),
            peers_nonce: peer.remote_nonce()?,
        })
    }

    /// Packets of a session were carried past the machine since the last call, to the peer or from it.
    pub fn note_carried(&mut self, now: Instant, direct: &Direct, heard: bool, sent: bool) {
        let Some(peer) = self.ilcc.by_key_mut(direct.session) else {
            return;
        };
        if sent {
            peer.was_sent_past(now, Locator::of(direct.there));
        }
        if heard {
            peer.was_heard_at(now, Locator::of(direct.there));
        }
        let watched = peer.watched_until();
        self.note_timeout_of(watched);
    }
}
