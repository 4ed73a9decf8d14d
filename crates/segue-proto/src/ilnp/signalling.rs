//! What is sent to tell peers where this host is (RFC 6743).

use super::config::Config;
use super::correspondent::Correspondent;
use super::handover::Handover;
use super::local::LocalLocators;
use super::mode::Mode;
use super::nonce;
use super::outbox::Outbox;
use crate::contract::Transmit;
use crate::shim::ShimEvent;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{LocatorOperation, LocatorUpdate};
use segue_wire::{Ipv6Header, Packet, Payload, PseudoRule};

/// Tells `peer`, if there is anything new for it. Gives the handoff that this begins.
pub(super) fn tell(
    now: Instant,
    peer: &mut Correspondent,
    local: &LocalLocators,
    config: &Config,
    out: &mut Outbox,
    under_way: Option<Handover>,
) -> Option<Handover> {
    let speaks = matches!(peer.mode(), Mode::Ilnp | Mode::Probing);
    if !speaks || !peer.contact().is_contacted() {
        return None;
    }
    let advertised = local.advertised(peer.local_nid());
    let (best, preference) = advertised.first().copied()?;
    let telling = peer.telling();
    if !telling.is_due(&advertised, peer.contact().is_quiet(now)) {
        return None;
    }
    let handoff = telling.is_handoff(&advertised, preference);
    // who called and was not heard again may have forged his address, to which an update would go seven times
    let stranger = !peer.is_called() && !peer.contact().carries_on();
    if (peer.mode() == Mode::Probing || stranger) && !handoff {
        return None;
    }
    let mut begun = None;
    if handoff && !under_way.is_some_and(|h| h.is_to(best)) {
        let from = telling.told().first();
        let from = from.map(|told| told.0.address(peer.local_nid()));
        let to = best.address(peer.local_nid());
        begun = Some(Handover::begin(now, to));
        out.counters.handoffs += 1;
        out.tell(ShimEvent::HandoffBegun { from, to });
    }
    peer.tell(now, advertised, handoff, config);
    send(now, peer, local, out);
    begun
}

/// Tells `peer` again what it was told.
pub(super) fn tell_again(
    now: Instant,
    peer: &mut Correspondent,
    local: &LocalLocators,
    config: &Config,
    out: &mut Outbox,
) {
    peer.tell_again(now, config);
    send(now, peer, local, out);
}

/// Begins anew with the update under way: the peer is somewhere else.
pub(super) fn send_anew(
    now: Instant,
    peer: &mut Correspondent,
    local: &LocalLocators,
    config: &Config,
    out: &mut Outbox,
) {
    peer.restart_update(config);
    send(now, peer, local, out);
}

/// Sends the update under way, if there is one.
pub(super) fn send(now: Instant, peer: &mut Correspondent, local: &LocalLocators, out: &mut Outbox) {
    let Some(attempt) = peer.attempt_update(now) else {
        return;
    };
    let Some(to) = attempt.to else { return };
    let message = LocatorUpdate {
        operation: LocatorOperation::Advertisement,
        locators: attempt.entries,
    };
    if signal(peer, local, to.address(peer.nid()), message, out) {
        out.counters.lu_sent += 1;
        out.counters.lu_retransmitted += u64::from(attempt.again);
        peer.on_update_sent(to);
    }
}

/// Sends the last update once more, to see whether anything gets through; one that says it for the first time if there was
/// none.
pub(super) fn probe(
    now: Instant,
    peer: &mut Correspondent,
    local: &LocalLocators,
    config: &Config,
    out: &mut Outbox,
) {
    let Some(locators) = peer.telling().probe().map(<[_]>::to_vec) else {
        tell_again(now, peer, local, config, out);
        return;
    };
    let Some(to) = peer.best(now).first().copied() else {
        return;
    };
    let message = LocatorUpdate {
        operation: LocatorOperation::Advertisement,
        locators,
    };
    if signal(peer, local, to.address(peer.nid()), message, out) {
        out.counters.probes_sent += 1;
    }
}

/// Sends a message of ours, from the locator in use. Whether there is one.
pub(super) fn signal(
    peer: &Correspondent,
    local: &LocalLocators,
    destination: Ipv6Addr,
    message: LocatorUpdate,
    out: &mut Outbox,
) -> bool {
    let Some((locator, interface)) = local.in_use(peer.local_nid()).first().copied() else {
        out.counters.no_local_locator += 1;
        return false;
    };
    let mut packet = Packet {
        ip: Ipv6Header {
            source: locator.address(peer.local_nid()),
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Icmpv6(Icmpv6::LocatorUpdate(message)),
    };
    nonce::insert(&mut packet, peer.local_nonce(), PseudoRule::Ipv6);
    out.counters.signalling_packets_sent += 1;
    out.counters.signalling_bytes_sent += packet.buffer_len() as u64;
    out.send(Transmit { interface, packet });
    true
}
