//! tshark judges the chunks of RFC 3758 and RFC 6525, and NR-SACK: it names them and finds nothing malformed.

use crate::common::{assert_clean, dissections};
use segue_wire::sctp::{
    Chunk, ForwardTsn, GapAckBlock, NrSack, ReConfig, ReConfigParameter as P, ReConfigResult, Sack,
    SctpPacket,
};
use segue_wire::{Ipv6Header, Packet, Payload, ReConfigSerial, Ssn, Tsn};

fn re_config(parameters: Vec<P>) -> Chunk {
    Chunk::ReConfig(Box::new(ReConfig { parameters }))
}

/// What tshark calls the chunk or parameter, beside a chunk that has it.
fn cases() -> Vec<(&'static str, Chunk)> {
    let request = ReConfigSerial(7);
    let forward_tsn = ForwardTsn {
        new_cumulative_tsn: Tsn(99),
        skipped: vec![(1, Ssn(2)), (3, Ssn(4))],
    };
    let block = |start, end| GapAckBlock { start, end };
    let nr_sack = NrSack {
        sack: Sack {
            cumulative_tsn_ack: Tsn(99),
            a_rwnd: 65_536,
            gap_ack_blocks: [block(2, 3)].into_iter().collect(),
            duplicate_tsns: vec![Tsn(98)].into(),
            data_packets: 0,
        },
        nr_gap_ack_blocks: [block(5, 5), block(7, 9)].into_iter().collect(),
    };
    vec![
        ("FORWARD_TSN chunk", Chunk::ForwardTsn(Box::new(forward_tsn))),
        (
            "Number of nr-gap acknowledgement blocks: 2",
            Chunk::NrSack(Box::new(nr_sack)),
        ),
        (
            "Outgoing SSN reset request parameter",
            re_config(vec![P::OutgoingSsnReset {
                request,
                response: ReConfigSerial(8),
                last_assigned_tsn: Tsn(9),
                streams: vec![1, 2, 3],
            }]),
        ),
        (
            "Incoming SSN reset request parameter",
            re_config(vec![P::IncomingSsnReset {
                request,
                streams: vec![5],
            }]),
        ),
        (
            "SSN/TSN reset request parameter",
            re_config(vec![P::SsnTsnReset { request }]),
        ),
        (
            "Re-configuration response parameter",
            re_config(vec![P::Response {
                response: request,
                result: ReConfigResult::Performed,
                next_tsns: Some((Tsn(1), Tsn(2))),
            }]),
        ),
        (
            "Add outgoing streams request parameter",
            re_config(vec![P::AddOutgoingStreams {
                request,
                new_streams: 4,
            }]),
        ),
        (
            "Add incoming streams request parameter",
            re_config(vec![P::AddIncomingStreams {
                request,
                new_streams: 4,
            }]),
        ),
    ]
}

#[test]
fn tshark_names_the_chunks_and_finds_nothing_malformed() {
    let packets = cases().into_iter().map(|(_, chunk)| Packet {
        ip: Ipv6Header {
            source: "2001:db8:1::1".parse().unwrap(),
            destination: "2001:db8:2::1".parse().unwrap(),
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Sctp(SctpPacket {
            source_port: 5001,
            destination_port: 5001,
            verification_tag: 0x1234_5678,
            chunks: [chunk].into_iter().collect(),
        }),
    });
    let Some(frames) = dissections("chunks", packets, "sctp.checksum:crc-32c") else {
        return;
    };
    assert_eq!(frames.len(), cases().len());
    for (frame, (name, _)) in frames.iter().zip(cases()) {
        assert!(frame.contains(name), "{name}:\n{frame}");
        assert_clean(frame, &["Unknown"]);
        assert!(frame.contains("[Checksum Status: Good]"), "{frame}");
    }
}
