//! The machines of Mobile IPv6 against somebody who is on no path: whatever mobility headers, tunnels and options arrive at
//! whatever moment, nothing panics, no timer stands still, no binding changes but by the mobile node's own doing, and no
//! packet of its goes astray.

use crate::mip6::*;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::checksum::PseudoHeader;
use segue_wire::mobility::{self, MobilityHeader};
use segue_wire::{ExtensionHeader, MAX_TUNNEL_DEPTH, Packet, Payload};

/// Reads the bytes as what the attacker sends, and when, and what the mobile node does meanwhile.
///
/// # Panics
/// If a binding leads elsewhere than to an address of the mobile node, or a packet is lost.
pub fn mobile_ipv6(mut bytes: &[u8]) {
    let mut net = Net::ordinary();
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(5));
    let mut steps = 0;
    while let Some((&operation, rest)) = bytes.split_first() {
        bytes = rest;
        steps += 1;
        if steps > 200 {
            break;
        }
        match operation % 8 {
            0 => net.run(ms(u64::from(operation))),
            1 => move_on(&mut net, operation),
            _ => {
                let len = bytes.len().min(usize::from(operation >> 1));
                let (forged, rest) = bytes.split_at(len);
                bytes = rest;
                if let Some(packet) = forge(operation, forged) {
                    net.inject(packet);
                }
            }
        }
        check(&net);
    }
    // what is left is a network that works
    net.hand_over(MN, 1, 2, CARE_OF_2);
    net.run(secs(60));
    check(&net);
    for host in [MN, CN] {
        net.hosts[host].received.clear();
    }
    net.send(MN, CORRESPONDENT, b"out");
    net.send(CN, HOME, b"in");
    net.run(secs(1));
    let heard = |host: usize, from: Ipv6Addr| {
        net.hosts[host]
            .received
            .iter()
            .any(|p| p.ip.source == from && matches!(p.payload, Payload::Udp(_)))
    };
    assert!(heard(CN, HOME), "the correspondent hears the mobile node");
    assert!(
        heard(MN, CORRESPONDENT),
        "the mobile node hears the correspondent"
    );
}

/// The mobile node's own doing.
fn move_on(net: &mut Net, operation: u8) {
    match operation >> 3 & 3 {
        0 => net.hand_over(MN, 1, 2, CARE_OF_2),
        1 => net.hand_over(MN, 2, 1, CARE_OF),
        2 => net.send(MN, CORRESPONDENT, b"out"),
        _ => net.send(CN, HOME, b"in"),
    }
}

/// A packet of the attacker: from any address, a mobility header with a right checksum.
fn forge(operation: u8, bytes: &[u8]) -> Option<Packet> {
    let addresses = [
        HOME,
        HOME_AGENT,
        CORRESPONDENT,
        CARE_OF,
        CARE_OF_2,
        address(66, 6),
    ];
    let (&choice, bytes) = bytes.split_first()?;
    let pick = |n: u8| addresses[usize::from(n) % addresses.len()];
    let (source, destination) = (pick(choice), pick(choice / 6));
    let mut packet = datagram(source, destination, b"forged");
    if operation & 0x10 != 0 {
        let mut header = bytes.to_vec();
        header.resize(header.len().next_multiple_of(8).clamp(8, 64), 0);
        header[0] = 59;
        header[1] = (header.len() / 8 - 1) as u8;
        let pseudo_header = PseudoHeader { source, destination };
        header[4..6].fill(0);
        let checksum = pseudo_header.checksum(mobility::NEXT_HEADER, &header);
        header[4..6].copy_from_slice(&checksum.to_be_bytes());
        let header = MobilityHeader::parse(&Bytes::from(header), &pseudo_header).ok()?;
        packet.payload = Payload::Mobility(Box::new(header));
    }
    if operation & 0x20 != 0 {
        packet
            .extensions
            .push(ExtensionHeader::type_2_routing(pick(choice / 36)));
    }
    if operation & 0x40 != 0 {
        packet
            .extensions
            .push(ExtensionHeader::home_address(pick(choice / 36 + 1)));
    }
    let tunnels = if operation & 0x80 != 0 { choice % 4 } else { 0 };
    for n in 0..usize::from(tunnels).min(MAX_TUNNEL_DEPTH) {
        let outer = datagram(address(66, 6), pick(choice / 7 + n as u8), b"");
        packet = Packet {
            payload: Payload::Ipv6(Box::new(packet)),
            ..outer
        };
    }
    Some(packet)
}

/// Bindings lead to the mobile node. Off the path nobody makes one.
fn check(net: &Net) {
    let own = [CARE_OF, CARE_OF_2];
    for (home, binding) in net.agents[0].binding_cache().iter() {
        assert!(
            home == HOME && own.contains(&binding.care_of_address),
            "{binding:?}"
        );
    }
    for (home, binding) in net.correspondent(CN).binding_cache().iter() {
        assert!(
            home == HOME && own.contains(&binding.care_of_address),
            "{binding:?}"
        );
    }
    assert_eq!(net.mobile(MN).binding_cache().iter().count(), 0);
}
