//! Bytes of FORWARD TSN, RE-CONFIG and NR-SACK chunks written down from the diagrams of RFC 3758, RFC 6525 and
//! draft-natarajan-tsvwg-sctp-nrsack.

use super::{hex, hex_bytes};
use crate::reader::Reader;
use crate::sctp::{
    Chunk, ForwardTsn, GapAckBlock, NrSack, ReConfig, ReConfigParameter, ReConfigResult, Sack,
    UnrecognizedAction,
};
use crate::{ParseError, ReConfigSerial, Ssn, Tsn};
use ReConfigParameter as P;

fn parse(dump: &str) -> Result<Chunk, ParseError> {
    Chunk::parse(&mut Reader::new(&hex_bytes(dump), "SCTP chunk"))
}

/// The chunk is what the bytes parse to, and the other way round.
fn check(chunk: Chunk, dump: &str) {
    let mut out = Vec::new();
    chunk.emit(&mut out);
    assert_eq!(out, hex(dump));
    assert_eq!(out.len(), chunk.buffer_len());
    assert_eq!(parse(dump), Ok(chunk));
}

fn check_parameters(parameters: impl Into<Vec<P>>, dump: &str) {
    let parameters = parameters.into();
    check(Chunk::ReConfig(Box::new(ReConfig { parameters })), dump);
}

#[test]
fn forward_tsn() {
    let chunk = |skipped: &[(u16, Ssn)]| {
        Chunk::ForwardTsn(Box::new(ForwardTsn {
            new_cumulative_tsn: Tsn(0xdead_beef),
            skipped: skipped.to_vec(),
        }))
    };
    check(chunk(&[]), "c0 00 0008 deadbeef");
    check(
        chunk(&[(1, Ssn(2)), (0xffff, Ssn(0xfffe))]),
        "c0 00 0010 deadbeef 0001 0002 ffff fffe",
    );
    // half a stream
    assert!(parse("c0 00 000a deadbeef 0001").is_err());
    assert!(parse("c0 00 0006 dead 0000").is_err());
}

fn nr_sack(renegable: &[(u16, u16)], non_renegable: &[(u16, u16)], duplicates: &[u32]) -> NrSack {
    let blocks = |list: &[(u16, u16)]| {
        list.iter()
            .map(|&(start, end)| GapAckBlock { start, end })
            .collect()
    };
    NrSack {
        sack: Sack {
            cumulative_tsn_ack: Tsn(0xdead_beef),
            a_rwnd: 0x0001_0000,
            gap_ack_blocks: blocks(renegable),
            duplicate_tsns: duplicates.iter().map(|&tsn| Tsn(tsn)).collect(),
            data_packets: 0,
        },
        nr_gap_ack_blocks: blocks(non_renegable),
    }
}

#[test]
fn nr_sack_has_renegable_blocks_before_the_others() {
    let chunk = |r: &[(u16, u16)], nr: &[(u16, u16)], duplicates: &[u32]| {
        Chunk::NrSack(Box::new(nr_sack(r, nr, duplicates)))
    };
    check(
        chunk(&[], &[], &[]),
        "10 00 0014 deadbeef 00010000 0000 0000 0000 0000",
    );
    check(
        chunk(&[(2, 3)], &[(5, 5), (7, 0x1234)], &[0xdead_beee]),
        "10 00 0024 deadbeef 00010000 0001 0002 0001 0000 0002 0003 0005 0005 0007 1234 deadbeee",
    );
    // the reserved field means nothing
    assert!(parse("10 00 0014 deadbeef 00010000 0000 0000 0000 ffff").is_ok());
    // a block less, and one more, than the counts say
    assert!(parse("10 00 0014 deadbeef 00010000 0000 0001 0000 0000").is_err());
    assert!(parse("10 00 0018 deadbeef 00010000 0000 0000 0000 0000 0001 0002").is_err());
    assert!(parse("10 00 0012 deadbeef 00010000 0000 0000 0000 0000").is_err());
}

#[test]
fn blocks_of_an_nr_sack_together_are_those_of_a_sack() {
    let all = |r: &[(u16, u16)], nr: &[(u16, u16)]| -> Vec<(u16, u16)> {
        let blocks = nr_sack(r, nr, &[]).all_gap_ack_blocks();
        blocks.iter().map(|b| (b.start, b.end)).collect()
    };
    assert_eq!(
        all(&[(2, 3), (9, 9)], &[(4, 5), (7, 7)]),
        [(2, 5), (7, 7), (9, 9)]
    );
    assert_eq!(all(&[(2, 6)], &[(3, 4), (6, 8)]), [(2, 8)]);
    assert_eq!(all(&[(0xfffe, 0xffff)], &[(0xffff, 0xffff)]), [(0xfffe, 0xffff)]);
    // what no SACK may report stays for the association to refuse
    assert_eq!(all(&[(5, 4)], &[(0, 9)]), [(0, 9), (5, 4)]);
    assert_eq!(all(&[], &[]), []);
}

#[test]
fn who_does_not_know_them_skips_forward_tsn_with_a_report_and_re_config_without() {
    // RFC 3758 section 3.2 and RFC 6525 section 3.1: the two highest bits
    let forward_tsn = parse("c0 00 0008 deadbeef").unwrap().unrecognized_action();
    assert_eq!(forward_tsn, UnrecognizedAction::SkipAndReport);
    let re_config = parse("82 00 0004").unwrap().unrecognized_action();
    assert_eq!(re_config, UnrecognizedAction::Skip);
    // an NR-SACK that was not agreed on stops the packet, silently
    let nr_sack = parse("10 00 0014 deadbeef 00010000 0000 0000 0000 0000");
    assert_eq!(nr_sack.unwrap().unrecognized_action(), UnrecognizedAction::Stop);
}

#[test]
fn outgoing_and_incoming_ssn_reset_in_one_chunk() {
    check_parameters(
        [
            P::OutgoingSsnReset {
                request: ReConfigSerial(0x0102_0304),
                response: ReConfigSerial(0x0506_0708),
                last_assigned_tsn: Tsn(0x1112_1314),
                streams: vec![7],
            },
            P::IncomingSsnReset {
                request: ReConfigSerial(0x0102_0305),
                streams: vec![1, 2, 3],
            },
        ],
        // the odd stream is padded; the padding of the last one is the chunk's
        "82 00 0026
         000d 0012 01020304 05060708 11121314 0007 0000
         000e 000e 01020305 0001 0002 0003 0000",
    );
}

#[test]
fn a_reset_of_all_streams_lists_none() {
    check_parameters(
        [P::IncomingSsnReset {
            request: ReConfigSerial(9),
            streams: vec![],
        }],
        "82 00 000c 000e 0008 00000009",
    );
}

#[test]
fn ssn_tsn_reset_and_its_response() {
    check_parameters(
        [P::SsnTsnReset {
            request: ReConfigSerial(9),
        }],
        "82 00 000c 000f 0008 00000009",
    );
    check_parameters(
        [P::Response {
            response: ReConfigSerial(9),
            result: ReConfigResult::Performed,
            next_tsns: Some((Tsn(0xa), Tsn(0x8000_0001))),
        }],
        "82 00 0018 0010 0014 00000009 00000001 0000000a 80000001",
    );
}

#[test]
fn every_result_has_its_value() {
    for (value, result) in [
        (0, ReConfigResult::NothingToDo),
        (1, ReConfigResult::Performed),
        (2, ReConfigResult::Denied),
        (3, ReConfigResult::WrongSsn),
        (4, ReConfigResult::RequestInProgress),
        (5, ReConfigResult::BadSequenceNumber),
        (6, ReConfigResult::InProgress),
        (7, ReConfigResult::Other(7)),
    ] {
        check_parameters(
            [P::Response {
                response: ReConfigSerial(9),
                result,
                next_tsns: None,
            }],
            &format!("82 00 0010 0010 000c 00000009 0000000{value}"),
        );
    }
}

#[test]
fn added_streams() {
    check_parameters(
        [
            P::AddOutgoingStreams {
                request: ReConfigSerial(9),
                new_streams: 0x1234,
            },
            P::AddIncomingStreams {
                request: ReConfigSerial(10),
                new_streams: 2,
            },
        ],
        "82 00 001c 0011 000c 00000009 1234 0000 0012 000c 0000000a 0002 0000",
    );
    // a reserved field that is not zero is not looked at, one that is missing makes the parameter malformed
    assert!(parse("82 00 0010 0011 000c 00000009 1234 ffff").is_ok());
    assert!(parse("82 00 000e 0011 000a 00000009 1234").is_err());
}

#[test]
fn parameters_with_a_length_they_cannot_have_are_refused() {
    for dump in [
        "82 00 000f 000d 000b 01020304 050607 00",
        "82 00 0015 000d 0011 01020304 05060708 11121314 00 000000",
        "82 00 0010 000f 000c 00000009 00000000",
        "82 00 0014 0010 0010 00000009 00000001 0000000a",
    ] {
        assert!(parse(dump).is_err(), "{dump}");
    }
}
