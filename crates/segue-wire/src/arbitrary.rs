//! Generators of valid values for property tests; with the feature `arbitrary`, for those of other crates too.
//!
//! Everything generated is canonical: parsing what is emitted gives the same value. So data is never synthetic,
//! `Unknown` never has a type that is known, and what is padded has its full length.

use crate::checksum::{PseudoHeader, PseudoRule};
use crate::dhcpv6::{Dhcpv6Message, Dhcpv6Option, IaAddress, IaNa, MessageType};
use crate::icmpv6::nd::{
    LinkLayerAddress, NdOption, NeighborAdvertisement, NeighborSolicitation, PrefixInformation,
    RouterAdvertisement, RouterSolicitation,
};
use crate::icmpv6::{Echo, Icmpv6};
use crate::ilnp::{Locator, LocatorEntry, LocatorOperation, LocatorUpdate, Nonce};
use crate::ipv6::{ILNP_NONCE, Ipv6Option};
use crate::mobility::{
    AuthenticationSubtype, BindingAcknowledgement, BindingUpdate, MessageAuthentication, MobilityHeader,
    MobilityMessage, MobilityOption, Test,
};
use crate::packet::{MAX_TUNNEL_DEPTH, has_rule, set_rule};
use crate::sctp::{
    Asconf, AsconfAck, AsconfParameter, AsconfResponse, Auth, Chunk, DataChunk, ErrorCause, ForwardTsn,
    GapAckBlock, Init, NrSack, Parameter, ReConfig, ReConfigParameter, ReConfigResult, Sack, SctpPacket,
};
use crate::tcp::{SackBlock, TcpFlags, TcpOptions, TcpSegment, Timestamps};
use crate::udp::{SCTP_TUNNELING_PORT, UdpDatagram};
use crate::{
    AsconfSerial, Data, ExtensionHeader, Ipv6Header, Packet, Payload, ReConfigSerial, SeqNumber, Ssn, Tsn,
};
use bytes::Bytes;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::Range;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

/// Packets of every kind, extension headers and fragments included.
pub fn packet() -> impl Strategy<Value = Packet> {
    let whole = (ipv6_header(), extension_headers(), payload());
    let fragment = (
        ipv6_header(),
        extension_headers(),
        incomplete_fragment(),
        any::<u8>(),
        bytes(0..200),
    )
        .prop_map(|(ip, mut extensions, fragment, next_header, bytes)| {
            extensions.push(fragment);
            (ip, extensions, Payload::Unknown { next_header, bytes })
        });
    let packet = prop_oneof![4 => whole, 1 => fragment].prop_map(|(ip, extensions, payload)| Packet {
        ip,
        extensions,
        payload,
    });
    (packet, any::<bool>()).prop_map(|(packet, identifiers)| with_rule(packet, identifiers))
}

/// Has the checksum follow the rule of RFC 6741, if it is one that can and would tell the difference.
fn with_rule(mut packet: Packet, identifiers: bool) -> Packet {
    let whole = packet.pseudo_header();
    let len = packet.payload.buffer_len();
    let sum = |pseudo: PseudoHeader| pseudo.partial_sum(packet.payload.next_header(), len) % 0xffff;
    let typed = !matches!(packet.payload, Payload::Unknown { .. });
    let differs = sum(whole) != sum(whole.under(PseudoRule::Identifiers));
    if identifiers && typed && differs && has_rule(packet.payload.next_header()) {
        set_rule(&mut packet.extensions, PseudoRule::Identifiers);
    }
    packet
}

/// Packets without extension headers whose payload has a checksum.
pub fn checked_packet() -> impl Strategy<Value = Packet> {
    let payload = prop_oneof![
        sctp_packet().prop_map(Payload::Sctp),
        icmpv6().prop_map(Payload::Icmpv6),
        sctp_over_udp(),
        udp().prop_map(Payload::Udp),
        tcp().prop_map(Payload::Tcp),
        mobility_header().prop_map(|header| Payload::Mobility(Box::new(header))),
    ];
    (ipv6_header(), payload).prop_map(|(ip, payload)| Packet {
        ip,
        extensions: Vec::new(),
        payload,
    })
}

/// Fixed headers (RFC 8200 section 3).
pub fn ipv6_header() -> impl Strategy<Value = Ipv6Header> {
    (address(), address(), any::<u8>(), any::<u8>(), 0..1_u32 << 20).prop_map(
        |(source, destination, traffic_class, hop_limit, flow_label)| Ipv6Header {
            source,
            destination,
            traffic_class,
            hop_limit,
            flow_label,
        },
    )
}

/// Chains of extension headers behind which a payload can be parsed (RFC 8200 section 4.1).
pub fn extension_headers() -> impl Strategy<Value = Vec<ExtensionHeader>> {
    let hop_by_hop = vec(ipv6_options().prop_map(ExtensionHeader::HopByHop), 0..2);
    (hop_by_hop, vec(extension_header(), 0..3)).prop_map(|(mut first, rest)| {
        first.extend(rest);
        first
    })
}

/// Extension headers that may stand anywhere and leave the payload whole.
pub fn extension_header() -> impl Strategy<Value = ExtensionHeader> {
    prop_oneof![
        ipv6_options().prop_map(ExtensionHeader::DestinationOptions),
        (any::<u8>(), any::<u8>(), 0..5_usize).prop_flat_map(|(routing_type, segments_left, units)| {
            let len = 4 + 8 * units;
            bytes(len..len + 1).prop_map(move |data| ExtensionHeader::Routing {
                routing_type,
                segments_left,
                data,
            })
        }),
        any::<u32>().prop_map(|identification| ExtensionHeader::Fragment {
            offset: 0,
            more: false,
            identification
        }),
    ]
}

/// Fragment headers of incomplete fragments (RFC 8200 section 4.5).
pub fn incomplete_fragment() -> impl Strategy<Value = ExtensionHeader> {
    (0..1_u16 << 13, any::<bool>(), any::<u32>()).prop_map(|(offset, more, identification)| {
        ExtensionHeader::Fragment {
            offset,
            more: more || offset == 0,
            identification,
        }
    })
}

/// Options of a header (RFC 8200 section 4.2).
pub fn ipv6_options() -> impl Strategy<Value = Vec<Ipv6Option>> {
    let unknown = any::<u8>().prop_filter("known option", |t| {
        !matches!(*t, 0 | 1 | 5 | ILNP_NONCE | 0xc2 | 0xc9)
    });
    let option = prop_oneof![
        1 => any::<u16>().prop_map(Ipv6Option::RouterAlert),
        1 => address().prop_map(Ipv6Option::HomeAddress),
        2 => nonce().prop_map(|nonce| Ipv6Option::IlnpNonce { nonce, rule: PseudoRule::Ipv6 }),
        2 => (unknown, bytes(0..40)).prop_map(|(option_type, data)| Ipv6Option::Unknown { option_type, data }),
    ];
    vec(option, 0..4)
}

/// Nonces (RFC 6744 section 2).
pub fn nonce() -> impl Strategy<Value = Nonce> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(Nonce::Bits32),
        any::<[u8; 12]>().prop_map(Nonce::Bits96)
    ]
}

/// Locator updates (RFC 6743 section 2).
pub fn locator_update() -> impl Strategy<Value = LocatorUpdate> {
    let entry = (any::<u64>(), any::<u16>(), any::<u16>()).prop_map(|(locator, preference, lifetime_s)| {
        LocatorEntry {
            locator: Locator(locator),
            preference,
            lifetime_s,
        }
    });
    let operation = prop_oneof![
        Just(LocatorOperation::Advertisement),
        Just(LocatorOperation::Acknowledgement)
    ];
    (operation, vec(entry, 1..5)).prop_map(|(operation, locators)| LocatorUpdate { operation, locators })
}

/// Upper-layer payloads of every kind.
pub fn payload() -> impl Strategy<Value = Payload> {
    let unknown = any::<u8>().prop_filter("known protocol", |n| {
        !matches!(n, 0 | 6 | 17 | 41 | 43 | 44 | 58 | 59 | 60 | 132 | 135)
    });
    prop_oneof![
        4 => sctp_packet().prop_map(Payload::Sctp),
        4 => icmpv6().prop_map(Payload::Icmpv6),
        2 => sctp_over_udp(),
        2 => udp().prop_map(Payload::Udp),
        2 => tcp().prop_map(Payload::Tcp),
        2 => mobility_header().prop_map(|header| Payload::Mobility(Box::new(header))),
        1 => inner_packet().prop_map(|packet| Payload::Ipv6(Box::new(packet))),
        1 => Just(Payload::NoNextHeader),
        1 => (unknown, bytes(0..100)).prop_map(|(next_header, bytes)| Payload::Unknown { next_header, bytes }),
    ]
}

/// A packet in a packet: UDP or a mobility header behind a few extension headers, or in yet another.
fn inner_packet() -> impl Strategy<Value = Packet> {
    let payload = prop_oneof![
        udp().prop_map(Payload::Udp),
        mobility_header().prop_map(|header| Payload::Mobility(Box::new(header))),
    ];
    let innermost =
        (ipv6_header(), extension_headers(), payload).prop_map(|(ip, extensions, payload)| Packet {
            ip,
            extensions,
            payload,
        });
    (innermost, vec(ipv6_header(), 0..MAX_TUNNEL_DEPTH)).prop_map(|(innermost, tunnels)| {
        tunnels.into_iter().fold(innermost, |inner, ip| Packet {
            ip,
            extensions: Vec::new(),
            payload: Payload::Ipv6(Box::new(inner)),
        })
    })
}

/// Mobility headers of every type (RFC 6275 section 6.1).
pub fn mobility_header() -> impl Strategy<Value = MobilityHeader> {
    let test = || {
        (any::<u16>(), any::<[u64; 2]>()).prop_map(|(nonce_index, [cookie, keygen_token])| Test {
            nonce_index,
            cookie,
            keygen_token,
        })
    };
    let update = (any::<[u16; 2]>(), any::<[bool; 4]>()).prop_map(
        |(
            [sequence, lifetime],
            [
                acknowledge,
                home_registration,
                link_local_compatible,
                key_management,
            ],
        )| {
            MobilityMessage::BindingUpdate(BindingUpdate {
                sequence,
                acknowledge,
                home_registration,
                link_local_compatible,
                key_management,
                lifetime,
            })
        },
    );
    let acknowledgement = (any::<u8>(), any::<bool>(), any::<[u16; 2]>()).prop_map(
        |(status, key_management, [sequence, lifetime])| {
            MobilityMessage::BindingAcknowledgement(BindingAcknowledgement {
                status,
                key_management,
                sequence,
                lifetime,
            })
        },
    );
    let message = prop_oneof![
        Just(MobilityMessage::BindingRefreshRequest),
        any::<u64>().prop_map(|cookie| MobilityMessage::HomeTestInit { cookie }),
        any::<u64>().prop_map(|cookie| MobilityMessage::CareOfTestInit { cookie }),
        test().prop_map(MobilityMessage::HomeTest),
        test().prop_map(MobilityMessage::CareOfTest),
        update,
        acknowledgement,
        (any::<u8>(), address())
            .prop_map(|(status, home_address)| MobilityMessage::BindingError { status, home_address }),
    ];
    let known =
        (message, mobility_options()).prop_map(|(message, options)| MobilityHeader::new(message, options));
    let unknown = (8..=255_u8, 0..5_usize)
        .prop_flat_map(|(mh_type, units)| {
            let len = 2 + 8 * units;
            (Just(mh_type), bytes(len..len + 1))
        })
        .prop_map(|(mh_type, data)| {
            MobilityHeader::new(MobilityMessage::Unknown { mh_type, data }, Vec::new())
        });
    prop_oneof![8 => known, 1 => unknown]
}

/// Options of a mobility header (RFC 6275 section 6.2, RFC 4283, RFC 4285).
pub fn mobility_options() -> impl Strategy<Value = Vec<MobilityOption>> {
    let unknown = any::<u8>().prop_filter("known option", |t| !matches!(t, 0..=5 | 8..=10));
    let subtype = prop_oneof![
        Just(AuthenticationSubtype::MnHa),
        Just(AuthenticationSubtype::MnAaa),
        (3..=255_u8).prop_map(AuthenticationSubtype::Other),
    ];
    let option = prop_oneof![
        any::<u16>().prop_map(MobilityOption::BindingRefreshAdvice),
        address().prop_map(MobilityOption::AlternateCareOfAddress),
        any::<[u16; 2]>().prop_map(|[home, care_of]| MobilityOption::NonceIndices { home, care_of }),
        bytes(0..20).prop_map(MobilityOption::BindingAuthorizationData),
        (any::<u8>(), bytes(0..20))
            .prop_map(|(subtype, identifier)| MobilityOption::MobileNodeIdentifier { subtype, identifier }),
        (subtype, any::<u32>(), bytes(0..20)).prop_map(|(subtype, spi, data)| {
            MobilityOption::MessageAuthentication(MessageAuthentication { subtype, spi, data })
        }),
        any::<u64>().prop_map(MobilityOption::ReplayProtection),
        (unknown, bytes(0..20)).prop_map(|(option_type, data)| MobilityOption::Unknown { option_type, data }),
    ];
    vec(option, 0..5)
}

/// SCTP in UDP (RFC 6951), with the IANA port on one side.
pub fn sctp_over_udp() -> impl Strategy<Value = Payload> {
    (any::<u16>(), any::<bool>(), sctp_packet()).prop_map(|(port, to_server, packet)| {
        let (source_port, destination_port) = if to_server {
            (port, SCTP_TUNNELING_PORT)
        } else {
            (SCTP_TUNNELING_PORT, port)
        };
        Payload::SctpOverUdp {
            source_port,
            destination_port,
            packet,
        }
    })
}

/// UDP datagrams (RFC 768) that are not SCTP in UDP.
pub fn udp() -> impl Strategy<Value = UdpDatagram> {
    let port = || any::<u16>().prop_filter("SCTP in UDP", |port| *port != SCTP_TUNNELING_PORT);
    (port(), port(), bytes(0..200)).prop_map(|(source_port, destination_port, data)| UdpDatagram {
        source_port,
        destination_port,
        data: Data::Bytes(data),
    })
}

/// TCP segments (RFC 9293 section 3.1) with any options that there is room for.
pub fn tcp() -> impl Strategy<Value = TcpSegment> {
    let numbers = (any::<[u16; 4]>(), any::<[u32; 2]>(), any::<u8>());
    (numbers, tcp_options(), bytes(0..200)).prop_map(
        |(([source_port, destination_port, window, urgent], [seq, ack], flags), mut options, data)| {
            options.set_urgent(urgent);
            TcpSegment {
                source_port,
                destination_port,
                seq: SeqNumber(seq),
                ack: SeqNumber(ack),
                flags: TcpFlags(flags),
                window,
                options,
                data: Data::Bytes(data),
            }
        },
    )
}

/// Options of a TCP header, in no more than 40 bytes.
pub fn tcp_options() -> impl Strategy<Value = TcpOptions> {
    let timestamps = proptest::option::of(any::<[u32; 2]>());
    let rare = (
        proptest::option::of(any::<u16>()),
        proptest::option::of(any::<u8>()),
        any::<bool>(),
        vec(any::<[u32; 2]>(), 0..5),
        vec((any::<u8>(), bytes(0..20)), 0..3),
    );
    (timestamps, rare).prop_map(|(timestamps, (mss, scale, permitted, blocks, unknown))| {
        let mut left = 40;
        let mut take = |len: usize| {
            let fits = len <= left;
            left -= if fits { len } else { 0 };
            fits
        };
        let timestamps = timestamps.filter(|_| take(10));
        let mut options =
            TcpOptions::with_timestamps(timestamps.map(|[value, echo]| Timestamps { value, echo }));
        if let Some(mss) = mss.filter(|_| take(4)) {
            options.set_mss(mss);
        }
        if let Some(scale) = scale.filter(|_| take(3)) {
            options.set_window_scale(scale);
        }
        if permitted && take(2) {
            options.set_sack_permitted();
        }
        if !blocks.is_empty() && take(2 + 8 * blocks.len()) {
            let [left, right] = [0, 1].map(|i| blocks.iter().map(move |b| SeqNumber(b[i])));
            let blocks: Vec<SackBlock> = left
                .zip(right)
                .map(|(left, right)| SackBlock { left, right })
                .collect();
            options.set_sack_blocks(&blocks);
        }
        for (kind, data) in unknown {
            let known = matches!(kind, 0 | 1)
                || matches!(
                    (kind, data.len()),
                    (2, 2) | (3, 1) | (4, 0) | (5, 8 | 16) | (8, 8)
                );
            if !known && take(2 + data.len()) {
                options.add_unknown(kind, data);
            }
        }
        options
    })
}

/// ICMPv6 messages of every type (RFC 4443, RFC 4861).
pub fn icmpv6() -> impl Strategy<Value = Icmpv6> {
    let echo = || {
        (any::<u16>(), any::<u16>(), bytes(0..100)).prop_map(|(identifier, sequence, data)| Echo {
            identifier,
            sequence,
            data,
        })
    };
    let unknown = any::<u8>().prop_filter(
        "known type",
        |t| !matches!(t, 1..=4 | 128 | 129 | 133..=136 | 156),
    );
    prop_oneof![
        (any::<u8>(), bytes(0..100))
            .prop_map(|(code, invoking)| Icmpv6::DestinationUnreachable { code, invoking }),
        (any::<u32>(), bytes(0..100)).prop_map(|(mtu, invoking)| Icmpv6::PacketTooBig { mtu, invoking }),
        (any::<u8>(), bytes(0..100)).prop_map(|(code, invoking)| Icmpv6::TimeExceeded { code, invoking }),
        (any::<u8>(), any::<u32>(), bytes(0..100)).prop_map(|(code, pointer, invoking)| {
            Icmpv6::ParameterProblem {
                code,
                pointer,
                invoking,
            }
        }),
        echo().prop_map(Icmpv6::EchoRequest),
        echo().prop_map(Icmpv6::EchoReply),
        nd_options().prop_map(|options| Icmpv6::RouterSolicitation(RouterSolicitation { options })),
        router_advertisement().prop_map(Icmpv6::RouterAdvertisement),
        (address(), nd_options()).prop_map(|(target, options)| Icmpv6::NeighborSolicitation(
            NeighborSolicitation { target, options }
        )),
        (address(), any::<[bool; 3]>(), nd_options()).prop_map(
            |(target, [router, solicited, override_flag], options)| Icmpv6::NeighborAdvertisement(
                NeighborAdvertisement {
                    target,
                    router,
                    solicited,
                    override_flag,
                    options
                }
            )
        ),
        locator_update().prop_map(Icmpv6::LocatorUpdate),
        (unknown, any::<u8>(), bytes(0..100)).prop_map(|(message_type, code, body)| Icmpv6::Unknown {
            message_type,
            code,
            body
        }),
    ]
}

/// Router advertisements (RFC 4861 section 4.2).
pub fn router_advertisement() -> impl Strategy<Value = RouterAdvertisement> {
    (
        any::<u8>(),
        any::<[bool; 3]>(),
        any::<u16>(),
        any::<[u32; 2]>(),
        nd_options(),
    )
        .prop_map(
            |(
                cur_hop_limit,
                [managed, other, home_agent],
                router_lifetime_s,
                [reachable_time_ms, retrans_timer_ms],
                options,
            )| {
                RouterAdvertisement {
                    cur_hop_limit,
                    managed,
                    other,
                    home_agent,
                    router_lifetime_s,
                    reachable_time_ms,
                    retrans_timer_ms,
                    options,
                }
            },
        )
}

/// Options of a neighbour discovery message (RFC 4861 section 4.6).
pub fn nd_options() -> impl Strategy<Value = Vec<NdOption>> {
    let link_layer_address = || any::<[u8; 6]>().prop_map(LinkLayerAddress);
    let padded_bytes = || (1..4_usize).prop_flat_map(|units| bytes(8 * units - 2..8 * units - 1));
    let prefix = (address(), 0..=128_u8, any::<[bool; 3]>(), any::<[u32; 2]>()).prop_map(
        |(
            prefix,
            prefix_length,
            [on_link, autonomous, router_address],
            [valid_lifetime_s, preferred_lifetime_s],
        )| {
            PrefixInformation {
                prefix,
                prefix_length,
                on_link,
                autonomous,
                router_address,
                valid_lifetime_s,
                preferred_lifetime_s,
            }
        },
    );
    let unknown = any::<u8>().prop_filter("known option", |t| !matches!(t, 1..=3 | 5 | 7 | 8 | 14));
    let option = prop_oneof![
        link_layer_address().prop_map(NdOption::SourceLinkLayerAddress),
        link_layer_address().prop_map(NdOption::TargetLinkLayerAddress),
        prefix.prop_map(NdOption::PrefixInformation),
        any::<u32>().prop_map(NdOption::Mtu),
        any::<u32>().prop_map(NdOption::AdvertisementInterval),
        (any::<i16>(), any::<u16>()).prop_map(|(preference, lifetime_s)| NdOption::HomeAgentInformation {
            preference,
            lifetime_s
        }),
        padded_bytes().prop_map(NdOption::Nonce),
        (unknown, padded_bytes()).prop_map(|(option_type, data)| NdOption::Unknown { option_type, data }),
    ];
    vec(option, 0..4)
}

/// DHCPv6 messages (RFC 8415).
pub fn dhcpv6() -> impl Strategy<Value = Dhcpv6Message> {
    let message_type = (1..=9_u8).prop_filter_map("client-server type", MessageType::from_number);
    let address =
        (address(), any::<[u32; 2]>()).prop_map(|(address, [preferred_lifetime_s, valid_lifetime_s])| {
            IaAddress {
                address,
                preferred_lifetime_s,
                valid_lifetime_s,
            }
        });
    let ia_na = (any::<[u32; 3]>(), vec(address, 0..3)).prop_map(|([iaid, t1_s, t2_s], addresses)| IaNa {
        iaid,
        t1_s,
        t2_s,
        addresses,
    });
    let unknown = any::<u16>().prop_filter("known option", |code| !matches!(code, 1..=3 | 8 | 13 | 14));
    let option = prop_oneof![
        bytes(0..20).prop_map(Dhcpv6Option::ClientIdentifier),
        bytes(0..20).prop_map(Dhcpv6Option::ServerIdentifier),
        ia_na.prop_map(Dhcpv6Option::IaNa),
        any::<u16>().prop_map(Dhcpv6Option::ElapsedTime),
        Just(Dhcpv6Option::RapidCommit),
        (any::<u16>(), bytes(0..20)).prop_map(|(code, message)| Dhcpv6Option::StatusCode { code, message }),
        (unknown, bytes(0..20)).prop_map(|(code, data)| Dhcpv6Option::Unknown { code, data }),
    ];
    (message_type, 0..1_u32 << 24, vec(option, 0..5)).prop_map(|(message_type, transaction_id, options)| {
        Dhcpv6Message {
            message_type,
            transaction_id,
            options,
        }
    })
}

/// SCTP packets (RFC 9260), with no regard for what may be bundled.
pub fn sctp_packet() -> impl Strategy<Value = SctpPacket> {
    (any::<u16>(), any::<u16>(), any::<u32>(), vec(chunk(), 0..4)).prop_map(
        |(source_port, destination_port, verification_tag, chunks)| SctpPacket {
            source_port,
            destination_port,
            verification_tag,
            chunks: chunks.into(),
        },
    )
}

/// Chunks of every type (RFC 9260 section 3.3, RFC 4895 section 5, RFC 5061 section 4.1).
pub fn chunk() -> impl Strategy<Value = Chunk> {
    let control = prop_oneof![
        bytes(0..50).prop_map(Chunk::Heartbeat),
        bytes(0..50).prop_map(Chunk::HeartbeatAck),
        tsn().prop_map(|cumulative_tsn_ack| Chunk::Shutdown { cumulative_tsn_ack }),
        Just(Chunk::ShutdownAck),
        bytes(0..50).prop_map(Chunk::CookieEcho),
        Just(Chunk::CookieAck),
        tsn().prop_map(Chunk::Ecne),
        tsn().prop_map(Chunk::Cwr),
        any::<bool>().prop_map(|reflected_tag| Chunk::ShutdownComplete { reflected_tag }),
    ];
    let unknown = any::<u8>().prop_filter("known type", |t| {
        !matches!(t, 0..=16 | 0x80 | 0x82 | 0x84 | 0xc0 | 0xc1)
    });
    prop_oneof![
        3 => data_chunk().prop_map(Chunk::Data),
        2 => sack().prop_map(Chunk::Sack),
        2 => nr_sack().prop_map(|nr_sack| Chunk::NrSack(Box::new(nr_sack))),
        2 => init().prop_map(|init| Chunk::Init(Box::new(init))),
        1 => init().prop_map(|init| Chunk::InitAck(Box::new(init))),
        1 => (any::<bool>(), error_causes())
            .prop_map(|(reflected_tag, causes)| Chunk::Abort { reflected_tag, causes }),
        1 => error_causes().prop_map(Chunk::Error),
        2 => auth().prop_map(|auth| Chunk::Auth(Box::new(auth))),
        2 => asconf().prop_map(|asconf| Chunk::Asconf(Box::new(asconf))),
        2 => asconf_ack().prop_map(|ack| Chunk::AsconfAck(Box::new(ack))),
        2 => re_config().prop_map(|re_config| Chunk::ReConfig(Box::new(re_config))),
        2 => forward_tsn().prop_map(|forward_tsn| Chunk::ForwardTsn(Box::new(forward_tsn))),
        4 => control,
        1 => (unknown, any::<u8>(), bytes(0..50))
            .prop_map(|(chunk_type, flags, value)| Chunk::Unknown { chunk_type, flags, value }),
    ]
}

/// AUTH chunks, HMACs of any length among them (RFC 4895 section 5.1).
pub fn auth() -> impl Strategy<Value = Auth> {
    (any::<[u16; 2]>(), bytes(0..40))
        .prop_map(|([shared_key_id, hmac_id], hmac)| Auth::new(shared_key_id, hmac_id, hmac))
}

/// FORWARD TSN chunks (RFC 3758 section 3.2).
pub fn forward_tsn() -> impl Strategy<Value = ForwardTsn> {
    (tsn(), vec((any::<u16>(), any::<u16>().prop_map(Ssn)), 0..5)).prop_map(
        |(new_cumulative_tsn, skipped)| ForwardTsn {
            new_cumulative_tsn,
            skipped,
        },
    )
}

/// RE-CONFIG chunks (RFC 6525 section 3).
pub fn re_config() -> impl Strategy<Value = ReConfig> {
    vec(re_config_parameter(), 0..3).prop_map(|parameters| ReConfig { parameters })
}

/// Parameters of RE-CONFIG (RFC 6525 section 4).
pub fn re_config_parameter() -> impl Strategy<Value = ReConfigParameter> {
    let serial = || any::<u32>().prop_map(ReConfigSerial);
    let streams = || vec(any::<u16>(), 0..5);
    let unknown = any::<u16>().prop_filter("known type", |t| !(13..=18).contains(t));
    prop_oneof![
        (serial(), serial(), tsn(), streams()).prop_map(|(request, response, last_assigned_tsn, streams)| {
            ReConfigParameter::OutgoingSsnReset {
                request,
                response,
                last_assigned_tsn,
                streams,
            }
        }),
        (serial(), streams())
            .prop_map(|(request, streams)| ReConfigParameter::IncomingSsnReset { request, streams }),
        serial().prop_map(|request| ReConfigParameter::SsnTsnReset { request }),
        (serial(), any::<u32>(), proptest::option::of((tsn(), tsn()))).prop_map(
            |(response, result, next_tsns)| ReConfigParameter::Response {
                response,
                result: ReConfigResult::from_value(result % 9),
                next_tsns,
            }
        ),
        (serial(), any::<u16>()).prop_map(|(request, new_streams)| ReConfigParameter::AddOutgoingStreams {
            request,
            new_streams
        }),
        (serial(), any::<u16>()).prop_map(|(request, new_streams)| ReConfigParameter::AddIncomingStreams {
            request,
            new_streams
        }),
        (unknown, bytes(0..20)).prop_map(|(parameter_type, value)| ReConfigParameter::Unknown {
            parameter_type,
            value
        }),
    ]
}

/// DATA chunks, empty ones among them (RFC 9260 section 3.3.1).
pub fn data_chunk() -> impl Strategy<Value = DataChunk> {
    (
        tsn(),
        any::<[u16; 2]>(),
        any::<u32>(),
        any::<[bool; 4]>(),
        bytes(0..100),
    )
        .prop_map(
            |(
                tsn,
                [stream_id, ssn],
                payload_protocol_id,
                [unordered, beginning, ending, immediate],
                data,
            )| DataChunk {
                tsn,
                stream_id,
                ssn: Ssn(ssn),
                payload_protocol_id,
                unordered,
                beginning,
                ending,
                immediate,
                data: Data::Bytes(data),
            },
        )
}

/// SACK chunks, whose gap ack blocks need make no sense (RFC 9260 section 3.3.4).
pub fn sack() -> impl Strategy<Value = Sack> {
    let block = any::<[u16; 2]>().prop_map(|[start, end]| GapAckBlock { start, end });
    (
        tsn(),
        any::<u32>(),
        vec(block, 0..8),
        vec(tsn(), 0..5),
        0..=Sack::MOST_DATA_PACKETS,
    )
        .prop_map(
            |(cumulative_tsn_ack, a_rwnd, blocks, duplicate_tsns, data_packets)| Sack {
                cumulative_tsn_ack,
                a_rwnd,
                gap_ack_blocks: blocks.into(),
                duplicate_tsns: duplicate_tsns.into(),
                data_packets,
            },
        )
}

/// NR-SACK chunks (draft-natarajan-tsvwg-sctp-nrsack section 4), with blocks of any kind.
pub fn nr_sack() -> impl Strategy<Value = NrSack> {
    let block = any::<[u16; 2]>().prop_map(|[start, end]| GapAckBlock { start, end });
    (sack(), vec(block, 0..8)).prop_map(|(sack, blocks)| NrSack {
        // only a SACK says it
        sack: Sack {
            data_packets: 0,
            ..sack
        },
        nr_gap_ack_blocks: blocks.into(),
    })
}

/// INIT or INIT ACK chunks (RFC 9260 sections 3.3.2 and 3.3.3).
pub fn init() -> impl Strategy<Value = Init> {
    (
        any::<[u32; 2]>(),
        any::<[u16; 2]>(),
        tsn(),
        vec(parameter(), 0..6),
    )
        .prop_map(
            |([initiate_tag, a_rwnd], [outbound_streams, inbound_streams], initial_tsn, parameters)| Init {
                initiate_tag,
                a_rwnd,
                outbound_streams,
                inbound_streams,
                initial_tsn,
                parameters,
            },
        )
}

/// Parameters of INIT and INIT ACK (RFC 9260 section 3.3.2.1, RFC 5061 section 4.2).
pub fn parameter() -> impl Strategy<Value = Parameter> {
    let unknown = any::<u16>().prop_filter("known type", |t| {
        !matches!(
            t,
            1 | 5..=9 | 11 | 12 | 0x8000 | 0x8002..=0x8004 | 0x8008 | 0xc000 | 0xc004 | 0xc006
        )
    });
    prop_oneof![
        bytes(0..20).prop_map(Parameter::HeartbeatInfo),
        any::<[u8; 4]>().prop_map(|octets| Parameter::Ipv4Address(Ipv4Addr::from(octets))),
        address().prop_map(Parameter::Ipv6Address),
        bytes(0..100).prop_map(Parameter::StateCookie),
        bytes(0..20).prop_map(Parameter::UnrecognizedParameter),
        any::<u32>().prop_map(Parameter::CookiePreservative),
        bytes(0..20).prop_map(Parameter::HostNameAddress),
        vec(any::<u16>(), 0..4).prop_map(Parameter::SupportedAddressTypes),
        Just(Parameter::EcnCapable),
        bytes(0..40).prop_map(Parameter::Random),
        bytes(0..6).prop_map(Parameter::Chunks),
        vec(any::<u16>(), 0..4).prop_map(Parameter::HmacAlgo),
        bytes(0..6).prop_map(Parameter::SupportedExtensions),
        Just(Parameter::ForwardTsnSupported),
        any::<u32>().prop_map(Parameter::AdaptationLayerIndication),
        (any::<u32>(), address()).prop_map(|(correlation_id, address)| Parameter::SetPrimaryAddress {
            correlation_id,
            address
        }),
        (unknown, bytes(0..20)).prop_map(|(parameter_type, value)| Parameter::Unknown {
            parameter_type,
            value
        }),
    ]
}

/// ASCONF chunks (RFC 5061 section 4.1.1).
pub fn asconf() -> impl Strategy<Value = Asconf> {
    (any::<u32>(), address(), vec(asconf_parameter(), 0..4)).prop_map(
        |(serial_number, address, parameters)| Asconf {
            serial_number: AsconfSerial(serial_number),
            address,
            parameters,
        },
    )
}

/// Requests of an ASCONF (RFC 5061 section 4.2).
pub fn asconf_parameter() -> impl Strategy<Value = AsconfParameter> {
    let unknown = any::<u16>().prop_filter("known type", |t| !matches!(t, 0xc001 | 0xc002 | 0xc004));
    prop_oneof![
        (any::<u32>(), address()).prop_map(|(correlation_id, address)| AsconfParameter::AddIpAddress {
            correlation_id,
            address
        }),
        (any::<u32>(), address()).prop_map(|(correlation_id, address)| AsconfParameter::DeleteIpAddress {
            correlation_id,
            address
        }),
        (any::<u32>(), address()).prop_map(|(correlation_id, address)| AsconfParameter::SetPrimaryAddress {
            correlation_id,
            address
        }),
        (unknown, any::<u32>(), bytes(0..20)).prop_map(|(parameter_type, correlation_id, value)| {
            AsconfParameter::Unknown {
                parameter_type,
                correlation_id,
                value,
            }
        }),
    ]
}

/// ASCONF-ACK chunks (RFC 5061 section 4.1.2).
pub fn asconf_ack() -> impl Strategy<Value = AsconfAck> {
    let response = prop_oneof![
        any::<u32>().prop_map(|correlation_id| AsconfResponse::SuccessIndication { correlation_id }),
        (any::<u32>(), error_causes()).prop_map(|(correlation_id, causes)| {
            AsconfResponse::ErrorCauseIndication {
                correlation_id,
                causes,
            }
        }),
    ];
    (any::<u32>(), vec(response, 0..4)).prop_map(|(serial_number, responses)| AsconfAck {
        serial_number: AsconfSerial(serial_number),
        responses,
    })
}

/// Error causes (RFC 9260 section 3.3.10, RFC 5061 section 4.3).
pub fn error_causes() -> impl Strategy<Value = Vec<ErrorCause>> {
    let unknown = any::<u16>().prop_filter(
        "known code",
        |code| !matches!(code, 1..=13 | 0x00a0..=0x00a4 | 0x0105),
    );
    let fixed = prop_oneof![
        any::<u16>().prop_map(ErrorCause::InvalidStreamIdentifier),
        vec(any::<u16>(), 0..4).prop_map(ErrorCause::MissingMandatoryParameter),
        any::<u32>().prop_map(ErrorCause::StaleCookie),
        Just(ErrorCause::OutOfResource),
        Just(ErrorCause::InvalidMandatoryParameter),
        tsn().prop_map(ErrorCause::NoUserData),
        Just(ErrorCause::CookieReceivedWhileShuttingDown),
        Just(ErrorCause::IllegalAsconfAck),
        any::<u16>().prop_map(ErrorCause::UnsupportedHmacIdentifier),
    ];
    let with_bytes = prop_oneof![
        Just(ErrorCause::UnresolvableAddress as fn(Bytes) -> ErrorCause),
        Just(ErrorCause::UnrecognizedChunkType as _),
        Just(ErrorCause::UnrecognizedParameters as _),
        Just(ErrorCause::RestartWithNewAddresses as _),
        Just(ErrorCause::UserInitiatedAbort as _),
        Just(ErrorCause::ProtocolViolation as _),
        Just(ErrorCause::DeleteLastRemainingAddress as _),
        Just(ErrorCause::OperationRefusedResourceShortage as _),
        Just(ErrorCause::DeleteSourceAddress as _),
        Just(ErrorCause::RequestRefusedNoAuthorization as _),
    ];
    let cause = prop_oneof![
        4 => fixed,
        4 => (with_bytes, bytes(0..30)).prop_map(|(cause, value)| cause(value)),
        1 => (unknown, bytes(0..30)).prop_map(|(code, value)| ErrorCause::Unknown { code, value }),
    ];
    vec(cause, 0..4)
}

/// Bytes of a length in `len`.
pub fn bytes(len: Range<usize>) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), len).prop_map(Bytes::from)
}

/// Addresses, some of them of kinds that matter.
pub fn address() -> impl Strategy<Value = Ipv6Addr> {
    prop_oneof![
        6 => any::<u128>().prop_map(Ipv6Addr::from_bits),
        1 => Just(Ipv6Addr::UNSPECIFIED),
        1 => any::<u64>().prop_map(|id| Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(id))),
        1 => any::<[u8; 4]>().prop_map(|octets| Ipv4Addr::from(octets).to_ipv6_mapped()),
    ]
}

fn tsn() -> impl Strategy<Value = Tsn> {
    any::<u32>().prop_map(Tsn)
}
