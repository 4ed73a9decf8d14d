//! What an ICMPv6 error quotes of the packet that caused it.

use super::{address, pseudo_header};
use crate::icmpv6::Icmpv6;
use crate::icmpv6::invoking::{Invoking, InvokingSctp, MIN_MTU};
use crate::sctp::{Chunk, DataChunk, Init, SctpPacket};
use crate::{Data, ExtensionHeader, Ipv6Header, Packet, Payload, Ssn, Tsn};
use bytes::Bytes;

fn sctp(tag: u32, chunk: Chunk) -> SctpPacket {
    SctpPacket {
        source_port: 5000,
        destination_port: 5001,
        verification_tag: tag,
        chunks: [chunk].into_iter().collect(),
    }
}

fn packet(payload: Payload) -> Packet {
    Packet {
        ip: Ipv6Header {
            source: address("2001:db8::1"),
            destination: address("2001:db8::2"),
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload,
    }
}

fn data(len: u32) -> Chunk {
    Chunk::Data(DataChunk {
        tsn: Tsn(1),
        stream_id: 0,
        ssn: Ssn(0),
        payload_protocol_id: 0,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: false,
        data: Data::Synthetic { offset: 0, len },
    })
}

fn init() -> Chunk {
    Chunk::Init(Box::new(Init {
        initiate_tag: 0xabcd_ef01,
        a_rwnd: 1500,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(1),
        parameters: Vec::new(),
    }))
}

#[test]
fn a_quote_fills_the_least_mtu_and_says_whose_packet_it_was() {
    let quoted = Icmpv6::quote(&packet(Payload::Sctp(sctp(77, data(1400)))));
    let error = Icmpv6::PacketTooBig {
        mtu: 1400,
        invoking: quoted.clone(),
    };
    assert_eq!(packet(Payload::Icmpv6(error.clone())).buffer_len(), MIN_MTU);
    let mut bytes = Vec::new();
    error.emit(&pseudo_header(), &mut bytes);
    let parsed = Icmpv6::parse(&bytes.into(), &pseudo_header()).unwrap();
    let invoking = Invoking::parse(parsed.invoking().unwrap()).unwrap();
    assert_eq!(invoking.destination, address("2001:db8::2"));
    assert_eq!(
        invoking.sctp().unwrap(),
        InvokingSctp {
            source_port: 5000,
            destination_port: 5001,
            verification_tag: 77,
            initiate_tag: None,
            udp_ports: None
        }
    );
}

#[test]
fn an_init_is_known_by_its_initiate_tag_if_that_was_quoted() {
    let whole = packet(Payload::Sctp(sctp(0, init()))).to_vec();
    let read = |len: usize| {
        Invoking::parse(&Bytes::copy_from_slice(&whole[..len]))
            .ok()
            .and_then(|i| i.sctp().ok())
    };
    assert_eq!(read(40 + 20).unwrap().initiate_tag, Some(0xabcd_ef01));
    assert_eq!(read(40 + 19).unwrap().initiate_tag, None);
    assert_eq!(read(40 + 8).unwrap().verification_tag, 0);
    for len in 0..40 + 8 {
        assert_eq!(read(len), None, "{len} bytes");
    }
}

#[test]
fn sctp_in_udp_and_behind_a_first_fragment_header_is_found_and_behind_a_later_one_not() {
    let encapsulated = Payload::SctpOverUdp {
        source_port: 9899,
        destination_port: 9900,
        packet: sctp(5, data(4)),
    };
    let quoted = Icmpv6::quote(&packet(encapsulated));
    let read = Invoking::parse(&quoted).unwrap().sctp().unwrap();
    assert_eq!((read.udp_ports, read.verification_tag), (Some((9899, 9900)), 5));
    for (offset, found) in [(0, true), (8, false)] {
        let mut fragment = packet(Payload::Sctp(sctp(5, data(4))));
        fragment.extensions.push(ExtensionHeader::Fragment {
            offset,
            more: true,
            identification: 1,
        });
        assert_eq!(Invoking::parse(&Icmpv6::quote(&fragment)).is_ok(), found);
    }
}

#[test]
fn no_error_is_sent_about_an_error_or_a_group() {
    let fine = packet(Payload::Sctp(sctp(1, data(4))));
    assert!(Icmpv6::may_report(&fine));
    let error = Icmpv6::TimeExceeded {
        code: 0,
        invoking: Icmpv6::quote(&fine),
    };
    assert!(!Icmpv6::may_report(&packet(Payload::Icmpv6(error))));
    let mut group = fine.clone();
    group.ip.destination = address("ff02::1");
    assert!(!Icmpv6::may_report(&group));
    let mut nobody = fine;
    nobody.ip.source = address("::");
    assert!(!Icmpv6::may_report(&nobody));
}
