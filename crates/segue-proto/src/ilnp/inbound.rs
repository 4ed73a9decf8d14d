//! The way up: locators and identifiers become identities, if the nonce is right.

use super::config::NonceIn;
use super::ilcc::{Mode, RemoteLocator};
use super::local::LocatorState;
use super::machine::Ilnp;
use super::nonce::{self, Taken};
use crate::shim::Inbound;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::checksum::PseudoHeader;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, Nid, Nonce};
use segue_wire::{Packet, Payload, PseudoRule};

impl Ilnp {
    /// Takes a packet that arrived.
    pub(super) fn take_in(&mut self, now: Instant, mut packet: Packet) -> Inbound {
        let (source, destination) = (packet.ip.source, packet.ip.destination);
        if packet.ilnp_nonce().is_some() {
            let Some(state) = self.local.of(destination).map(|l| l.state) else {
                if destination == self.identity {
                    self.out.counters.identity_on_wire += 1;
                    return Inbound::Taken;
                }
                return Inbound::Up(packet);
            };
            let old = sum_of_raw(&packet);
            match nonce::take(&mut packet) {
                Taken::One(nonce, rule) => {
                    return self.take_with_nonce(now, packet, state, nonce, rule, old);
                }
                _ => self.out.counters.several_nonces += 1,
            }
            return Inbound::Taken;
        }
        match &packet.payload {
            Payload::Icmpv6(Icmpv6::LocatorUpdate(_)) => {
                self.out.counters.lu_missing_nonce += 1;
                return Inbound::Taken;
            }
            Payload::Icmpv6(message) if message.is_error() => return self.take_error(now, packet),
            _ => {}
        }
        let identity = self
            .ilcc
            .identity_of(Nid::of(source), Nid::of(destination))
            .or_else(|| self.ilcc.by_identity(source).map(|c| c.identity));
        match identity {
            Some(identity) => self.take_without_nonce(now, packet, identity),
            None => Inbound::Up(packet),
        }
    }

    /// A packet whose nonce has been taken out; its checksum is over `old`.
    fn take_with_nonce(
        &mut self,
        now: Instant,
        mut packet: Packet,
        state: LocatorState,
        nonce: Nonce,
        rule: PseudoRule,
        old: Option<PseudoHeader>,
    ) -> Inbound {
        let (source, destination) = (packet.ip.source, packet.ip.destination);
        let (nid, local_nid) = (Nid::of(source), Nid::of(destination));
        let update = matches!(&packet.payload, Payload::Icmpv6(Icmpv6::LocatorUpdate(_)));
        let known = self.ilcc.identity_of(nid, local_nid);
        if state == LocatorState::Expired {
            self.out.counters.stale_locator += 1;
            let session = known.and_then(|identity| self.ilcc.by_identity(identity));
            if let Some(peer) = session
                .filter(|c| c.remote_nonce == Some(nonce))
                .map(|c| c.identity)
            {
                self.tell_again(now, peer);
                self.find_timeout();
            }
            return Inbound::Taken;
        }
        let identity = match known {
            Some(identity) => identity,
            None if update => {
                self.out.counters.lu_unknown_correspondent += 1;
                return Inbound::Taken;
            }
            None => match self.answer(now, source, local_nid) {
                Some(identity) => identity,
                None => return Inbound::Taken,
            },
        };
        let Some(peer) = self.ilcc.by_identity_mut(identity) else {
            return Inbound::Taken;
        };
        let counters = &mut self.out.counters;
        match (peer.mode, peer.remote_nonce) {
            (Mode::Plain { .. }, _) => {
                counters.unexpected_nonce += 1;
                return Inbound::Taken;
            }
            (_, Some(known)) if known != nonce => {
                if update {
                    counters.lu_wrong_nonce += 1;
                } else {
                    counters.wrong_nonce += 1;
                }
                return Inbound::Taken;
            }
            // A session begins with data: nobody has to be told who has said nothing yet.
            (_, None) if update => {
                counters.lu_unknown_correspondent += 1;
                return Inbound::Taken;
            }
            _ => {}
        }
        peer.remote_nonce = Some(nonce);
        if let Payload::Icmpv6(Icmpv6::LocatorUpdate(message)) = packet.payload {
            self.on_locator_update(now, identity, source, message);
            self.find_timeout();
            return Inbound::Taken;
        }
        let new = peer.mode != Mode::Ilnp;
        let tell = new || peer.gave_up;
        if new && peer.locators.iter().all(|l| l.withdrawn) {
            peer.locators.push(RemoteLocator::found(Locator::of(source)));
        }
        peer.mode = Mode::Ilnp;
        peer.was_heard(now);
        peer.mark(now, Locator::of(source));
        if packet.has_pseudo_rule() {
            peer.rule = Some(rule);
        }
        let held = core::mem::take(&mut peer.held);
        self.out.counters.ilnp_received += 1;
        if tell {
            self.tell_peer(now, identity);
            self.find_timeout();
        }
        for packet in held {
            if let Some(transmit) = self.send_out(now, packet) {
                self.out.transmits.push_back(transmit);
            }
        }
        self.give_identities(&mut packet, identity, old);
        Inbound::Up(packet)
    }

    /// A packet without a nonce, of a node that is known as `identity`.
    fn take_without_nonce(&mut self, now: Instant, mut packet: Packet, identity: Ipv6Addr) -> Inbound {
        let (source, destination) = (packet.ip.source, packet.ip.destination);
        let own = self.identity;
        let Some(peer) = self.ilcc.by_identity_mut(identity) else {
            return Inbound::Up(packet);
        };
        let old = sum_of_raw(&packet);
        match peer.mode {
            Mode::Plain { local, remote } if (remote, local) == (source, destination) => {
                peer.was_heard(now);
                self.out.counters.plain_received += 1;
                self.give_identities(&mut packet, identity, old);
                Inbound::Up(packet)
            }
            Mode::Ilnp if self.config.nonce_in == NonceIn::SessionStartAndSignalling => {
                let known = peer.knows(Locator::of(source), now, self.config.active_time);
                let state = self.local.of(destination).map(|l| l.state);
                match state {
                    Some(LocatorState::Expired) if known => {
                        self.out.counters.stale_locator += 1;
                        Inbound::Taken
                    }
                    Some(_) if known => {
                        peer.was_heard(now);
                        peer.mark(now, Locator::of(source));
                        self.out.counters.ilnp_received += 1;
                        self.give_identities(&mut packet, identity, old);
                        Inbound::Up(packet)
                    }
                    _ => self.up_unless_confused(packet, identity, own),
                }
            }
            _ => self.up_unless_confused(packet, identity, own),
        }
    }

    /// Plain IPv6 passes, unless a transport would take it for the session's.
    fn up_unless_confused(&mut self, packet: Packet, identity: Ipv6Addr, own: Ipv6Addr) -> Inbound {
        if packet.ip.source == identity && packet.ip.destination == own {
            self.out.counters.missing_nonce += 1;
            return Inbound::Taken;
        }
        Inbound::Up(packet)
    }

    /// A correspondent for a first packet from a node at `source`.
    fn answer(&mut self, now: Instant, source: Ipv6Addr, local_nid: Nid) -> Option<Ipv6Addr> {
        let nid = Nid::of(source);
        let locator = Locator::of(source);
        if !locator.is_routable() || nid == Nid(0) || self.nids().contains(&nid) {
            self.out.counters.bad_source += 1;
            return None;
        }
        let identity = self.config.identity_prefix.address(nid);
        if self.ilcc.by_identity(identity).is_some() {
            self.out.counters.second_session += 1;
            return None;
        }
        let peer = self.add(now, identity, nid, local_nid)?;
        peer.locators.push(RemoteLocator::found(locator));
        peer.mode = Mode::Probing;
        peer.route = Some(locator);
        Some(identity)
    }

    /// Has a packet come from the peer's identity to this host's. Its checksum is over `old`.
    fn give_identities(&self, packet: &mut Packet, identity: Ipv6Addr, old: Option<PseudoHeader>) {
        packet.ip.source = identity;
        packet.ip.destination = self.identity;
        if let Some(old) = old {
            let new = packet.pseudo_header();
            if let Payload::Raw(raw) = &mut packet.payload {
                raw.adjust(&old, &new);
            }
        }
    }
}

/// What the checksum of a raw payload is over; that of others is worked out when they are emitted.
fn sum_of_raw(packet: &Packet) -> Option<PseudoHeader> {
    matches!(packet.payload, Payload::Raw(_)).then(|| packet.pseudo_header())
}
