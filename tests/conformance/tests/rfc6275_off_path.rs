//! RFC 6275 sections 5.1, 5.2 and 15, and RFC 4285: what somebody who is on no path can do, which is nothing. Every forged
//! or replayed message changes no binding and no way of a packet, is answered only where the RFC asks for it, and
//! is counted by its reason.

mod answers;
mod others;
mod registrations;

use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_conformance::mip6::*;
use segue_proto::mip6::{BindingManagementKey, Counters, mn_ha_code};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::mobility::{
    BindingAcknowledgement, BindingUpdate, MobilityHeader, MobilityMessage, MobilityOption, Test,
    binding_error, binding_status,
};
use segue_wire::{ExtensionHeader, Packet, Payload};

/// Where the attacker would like the packets to go.
const EVIL: Ipv6Addr = address(66, 6);

fn packet(source: Ipv6Addr, destination: Ipv6Addr, header: MobilityHeader) -> Packet {
    Packet {
        payload: Payload::Mobility(Box::new(header)),
        ..datagram(source, destination, b"")
    }
}

fn with_home_address(mut packet: Packet, home: Ipv6Addr) -> Packet {
    packet.extensions.push(ExtensionHeader::home_address(home));
    packet
}

fn update(sequence: u16, home_registration: bool, lifetime: u16) -> MobilityMessage {
    MobilityMessage::BindingUpdate(BindingUpdate {
        sequence,
        acknowledge: true,
        home_registration,
        lifetime,
        ..BindingUpdate::default()
    })
}

/// Talking, away, and on the direct way.
fn optimized() -> Net {
    let mut net = Net::ordinary();
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(5));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    net.take_received(CN);
    net.take_events(MN);
    net.take_events(CN);
    net.sent.clear();
    net
}

/// Nothing that matters has changed, and packets arrive by the ways that they took.
fn assert_unmoved(net: &mut Net) {
    net.run(secs(1));
    assert_eq!(
        net.agents[0].binding_cache().get(HOME).map(|b| b.care_of_address),
        Some(CARE_OF)
    );
    assert_eq!(net.agents[0].binding_cache().iter().count(), 1);
    let bindings: Vec<_> = net
        .correspondent(CN)
        .binding_cache()
        .iter()
        .map(|(home, b)| (home, b.care_of_address))
        .collect();
    assert_eq!(bindings, [(HOME, CARE_OF)]);
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF));
    assert_eq!(net.take_events(MN), []);
    assert_eq!(net.take_events(CN), []);
    net.sent.clear();
    net.send(CN, HOME, b"in");
    net.send(MN, CORRESPONDENT, b"out");
    net.run(ms(100));
    assert_eq!(net.take_received(MN), [(CORRESPONDENT, HOME, b"in".to_vec())]);
    assert_eq!(net.take_received(CN), [(HOME, CORRESPONDENT, b"out".to_vec())]);
    assert_eq!(net.sent.len(), 2, "the direct way");
}

/// One message more was dropped for `reason` by `count`, and `answers` packets were sent because of it.
fn drops(
    net: &mut Net,
    forged: Packet,
    reason: impl Fn(&Counters) -> u64,
    count: impl Fn(&Net) -> Counters,
    answers: usize,
) {
    let (before, sent) = (reason(&count(net)), net.sent.len());
    net.inject(forged.clone());
    assert_eq!(
        reason(&count(net)),
        before + 1,
        "{forged:?} {:?}",
        count(net).list()
    );
    assert_eq!(net.sent.len(), sent + answers, "answers to {forged:?}");
}

fn agent(net: &Net) -> Counters {
    net.agents[0].counts()
}

fn correspondent(net: &Net) -> Counters {
    net.counts(CN)
}

fn mobile(net: &Net) -> Counters {
    net.counts(MN)
}

trait Overheard {
    /// The Binding Update that [`optimized`] brings about, and its nonce indices: the seeds are the same.
    fn ordinary_update() -> (Packet, MobilityOption);
}

impl Overheard for Net {
    fn ordinary_update() -> (Packet, MobilityOption) {
        let mut net = Net::ordinary();
        net.send(MN, CORRESPONDENT, b"hello");
        net.hand_over(MN, 0, 1, CARE_OF);
        net.run(secs(5));
        let update = net
            .last_sent(|m| matches!(m, MobilityMessage::BindingUpdate(u) if !u.home_registration))
            .expect("Binding Update");
        let Payload::Mobility(header) = &update.payload else {
            unreachable!()
        };
        let indices = header.options[0].clone();
        (update, indices)
    }
}
