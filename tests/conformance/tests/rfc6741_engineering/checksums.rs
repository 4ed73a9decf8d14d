//! The checksums of transports (RFC 6741 section 4.2).

use super::*;

/// Section 4.2 and draft-bhatti-ilnp-tcp-udp-checksums: packets on the wire follow the rule, and a peer that uses the other
/// is answered in kind.
#[test]
fn checksums_follow_the_rule_and_then_the_peer() {
    let rules = [ChecksumRule::Ipv6, ChecksumRule::Identifiers];
    for (own, others) in rules
        .into_iter()
        .flat_map(|a| rules.into_iter().map(move |b| (a, b)))
    {
        let config = |checksum| Config {
            checksum,
            ..Config::default()
        };
        let mut shims = Shims::new([config(own), config(others)]);
        shims.arrive(0, 0, locator(1));
        shims.arrive(1, 0, locator(2));
        shims.greet();
        let noted: Vec<_> = shims
            .sent
            .iter()
            .map(|(_, _, p)| p.ilnp_nonce().unwrap().1)
            .collect();
        assert_eq!(
            noted,
            vec![PseudoRule::from(own); noted.len()],
            "who began decides"
        );
        assert_eq!((shims.heard(0, 1).len(), shims.heard(1, 0).len()), (1, 2));
        for (_, _, packet) in &shims.sent {
            let bytes = packet.to_vec();
            let pseudo = segue_wire::checksum::PseudoHeader {
                source: packet.ip.source,
                destination: packet.ip.destination,
            };
            assert_eq!(pseudo.under(own.into()).checksum(17, &bytes[48..]), 0);
        }
    }
}

/// Under a kernel's transport: the checksum that the kernel put over identities is right on the wire by either rule, and
/// right again when the packet comes up.
#[test]
fn checksums_of_raw_payloads_are_adjusted_both_ways() {
    for (rule, state) in [ChecksumRule::Ipv6, ChecksumRule::Identifiers]
        .into_iter()
        .flat_map(|rule| [ChecksumState::Complete, ChecksumState::Partial].map(|state| (rule, state)))
    {
        let mut shims = talking(&Config {
            checksum: rule,
            ..Config::default()
        });
        let (a, b) = (shims.identity(0), shims.identity(1));
        // a TCP segment of Linux: SYN, with options
        let mut bytes = vec![
            0x9c, 0x40, 0x14, 0x51, 1, 2, 3, 4, 0, 0, 0, 0, 0x60, 2, 0xfa, 0xf0, 0, 0, 0, 0, 2, 4, 5, 0xa0,
        ];
        let pseudo = segue_wire::checksum::PseudoHeader {
            source: a,
            destination: b,
        };
        let sum = match state {
            ChecksumState::Partial => pseudo.partial_sum(6, bytes.len()),
            _ => pseudo.checksum(6, &bytes),
        };
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        let raw = RawPayload {
            next_header: 6,
            bytes: bytes.into(),
            checksum: state,
            segment_size: None,
        };
        let packet = Packet {
            ip: header(a, b),
            extensions: Vec::new(),
            payload: Payload::Raw(raw),
        };
        let now = shims.now;
        let out = shims.hosts[0].shim.outbound(now, packet).expect("a way");
        let wire = Bytes::from(out.packet.to_vec());
        let arrived = Packet::parse_raw(&wire, ChecksumState::Complete, None).expect("right by one rule");
        assert_eq!(arrived.ilnp_nonce().map(|n| n.1), Some(rule.into()));
        let inbound = shims.hosts[1].shim.inbound(now, InterfaceId(0), arrived);
        let segue_proto::shim::Inbound::Up(up) = inbound else {
            panic!("{inbound:?}")
        };
        let Payload::Raw(raw) = &up.payload else { panic!() };
        assert_eq!((up.ip.source, up.ip.destination), (a, b));
        assert_eq!(pseudo.checksum(6, &raw.bytes), 0, "{rule:?} {state:?}");
    }
}
