//! Packets of somebody else's stack, as the machines of Mobile IPv6 want them: mobility headers and tunnels understood, and
//! super-packets cut up where they go into a tunnel, since no device cuts up what is in one.

use segue_wire::ipv6::IPV6_IN_IPV6;
use segue_wire::mobility::{MobilityHeader, NEXT_HEADER};
use segue_wire::{MAX_TUNNEL_DEPTH, Packet, ParseError, Payload};

/// Parses the mobility header of a packet, or what is in its tunnel: through so many tunnels.
///
/// # Errors
/// If one of them is truncated or malformed, or a checksum wrong.
pub(crate) fn understand(mut packet: Packet, tunnels: usize) -> Result<Packet, ParseError> {
    let pseudo = packet.pseudo_header();
    let Payload::Raw(raw) = &mut packet.payload else {
        return Ok(packet);
    };
    match raw.next_header {
        NEXT_HEADER => {
            raw.complete(&pseudo);
            let header = MobilityHeader::parse(&raw.bytes, &pseudo)?;
            packet.payload = Payload::Mobility(Box::new(header));
        }
        IPV6_IN_IPV6 if tunnels > 0 => {
            let inner = Packet::parse_raw(&raw.bytes, raw.checksum, raw.segment_size)?;
            packet.payload = Payload::Ipv6(Box::new(understand(inner, tunnels - 1)?));
        }
        _ => {}
    }
    Ok(packet)
}

/// What is in all the tunnels that a packet is in.
pub(crate) fn innermost(packet: &mut Packet) -> &mut Packet {
    if !matches!(packet.payload, Payload::Ipv6(_)) {
        return packet;
    }
    let Payload::Ipv6(inner) = &mut packet.payload else {
        unreachable!("it is one")
    };
    innermost(inner)
}

/// Through all tunnels that a packet may be in.
pub(crate) const ALL: usize = MAX_TUNNEL_DEPTH;

/// A packet as often as it takes: a super-packet in its segments, with their checksums, in the tunnels that it is in. Nothing of one
/// whose header is not whole.
pub(crate) fn cut(packet: Packet) -> Vec<Packet> {
    match &packet.payload {
        Payload::Raw(raw) if raw.segment_size.is_some() => {
            let segments = raw.segments(&packet.pseudo_header()).unwrap_or_default();
            let with = |segment| Packet {
                payload: Payload::Raw(segment),
                ..packet.clone()
            };
            segments.into_iter().map(with).collect()
        }
        Payload::Ipv6(inner) if has_super_packet(inner) => {
            let inside = cut((**inner).clone()).into_iter();
            let with = |inner| Packet {
                payload: Payload::Ipv6(Box::new(inner)),
                ..packet.clone()
            };
            inside.map(with).collect()
        }
        _ => vec![packet],
    }
}

fn has_super_packet(packet: &Packet) -> bool {
    match &packet.payload {
        Payload::Raw(raw) => raw.segment_size.is_some(),
        Payload::Ipv6(inner) => has_super_packet(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use segue_wire::ilnp::Nonce;
    use segue_wire::ipv6::Ipv6Option;
    use segue_wire::mobility::MobilityMessage;
    use segue_wire::raw::{ChecksumState, RawPayload};
    use segue_wire::{ExtensionHeader, Ipv6Header, PseudoRule};
    use std::net::Ipv6Addr;

    const HERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 1);
    const THERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 2);

    fn packet(payload: Payload) -> Packet {
        Packet {
            ip: Ipv6Header {
                source: HERE,
                destination: THERE,
                traffic_class: 0,
                hop_limit: 64,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload,
        }
    }

    fn tunnelled(inner: Packet) -> Packet {
        packet(Payload::Ipv6(Box::new(inner)))
    }

    fn raw(packet: &Packet) -> Packet {
        Packet::parse_raw(&Bytes::from(packet.to_vec()), ChecksumState::Complete, None).unwrap()
    }

    #[test]
    fn mobility_headers_and_tunnels_are_understood_to_the_depth_asked_for() {
        let test = MobilityMessage::HomeTestInit { cookie: 7 };
        let init = packet(Payload::Mobility(Box::new(MobilityHeader::new(test, Vec::new()))));
        assert_eq!(understand(raw(&init), 0), Ok(init.clone()));
        let inside = tunnelled(init.clone());
        assert_eq!(understand(raw(&inside), ALL), Ok(inside.clone()));
        let Payload::Raw(left) = understand(raw(&inside), 0).unwrap().payload else {
            panic!("it was not to be looked into")
        };
        assert_eq!(left.bytes[..], init.to_vec());
        let mut wrong = inside.to_vec();
        *wrong.last_mut().unwrap() ^= 1;
        let wrong = Packet::parse_raw(&wrong.into(), ChecksumState::Complete, None).unwrap();
        assert_eq!(
            understand(wrong, ALL),
            Err(ParseError::BadChecksum("mobility header"))
        );
    }

    /// What a card joined as a list has the first datagram's checksum, and is cut up as any other super-packet.
    #[test]
    fn a_list_of_datagrams_is_a_super_packet() {
        let nonce = ExtensionHeader::DestinationOptions(vec![Ipv6Option::IlnpNonce {
            nonce: Nonce::Bits32([1, 2, 3, 4]),
            rule: PseudoRule::Ipv6,
        }]);
        for extensions in [Vec::new(), vec![nonce]] {
            let datagrams = RawPayload {
                next_header: 17,
                bytes: [&[0, 7, 0, 9, 1, 2, 0xab, 0xcd], &[5; 250][..]].concat().into(),
                checksum: ChecksumState::Complete,
                segment_size: None,
            };
            let mut list = packet(Payload::Raw(datagrams));
            list.extensions = extensions;
            let bytes = Bytes::from(list.to_vec());
            let list = Packet::parse_raw(&bytes, ChecksumState::Complete, Some(100)).unwrap();
            let Payload::Raw(super_packet) = &list.payload else {
                panic!("a super-packet")
            };
            assert_eq!(super_packet.checksum, ChecksumState::Partial);
            let cuts = cut(list);
            assert_eq!(cuts.len(), 3);
            for one in cuts {
                let Packet {
                    payload: Payload::Raw(cut),
                    ..
                } = raw(&one)
                else {
                    panic!("a datagram")
                };
                assert_eq!(one.pseudo_header().checksum(17, &cut.bytes), 0);
            }
        }
    }

    #[test]
    fn a_super_packet_goes_through_a_tunnel_in_segments() {
        let mut header = vec![0; 20];
        header[12] = 0x50;
        let data: Vec<u8> = (0..250u8).collect();
        let bytes = [header, data.clone()].concat();
        let whole = |segment_size| {
            packet(Payload::Raw(RawPayload {
                next_header: 6,
                bytes: bytes.clone().into(),
                checksum: ChecksumState::Partial,
                segment_size,
            }))
        };
        let cuts = cut(tunnelled(whole(Some(100))));
        let lengths: Vec<usize> = cuts.iter().map(Packet::buffer_len).collect();
        assert_eq!(lengths, [200, 200, 150]);
        let mut again = Vec::new();
        for one in cuts {
            // each is whole, with a checksum that is right
            let Payload::Ipv6(inner) = Packet::parse(&one.to_vec()).unwrap().payload else {
                panic!("a tunnel")
            };
            let Payload::Tcp(segment) = inner.payload else {
                panic!("TCP")
            };
            let segue_wire::Data::Bytes(bytes) = segment.data else {
                panic!("bytes")
            };
            again.extend_from_slice(&bytes);
        }
        assert_eq!(again, data);
        assert_eq!(cut(tunnelled(whole(None))), [tunnelled(whole(None))]);
    }
}
