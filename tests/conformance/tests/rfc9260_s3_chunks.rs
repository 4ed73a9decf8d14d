//! RFC 9260 section 3: what packets, chunks and parameters look like, and what becomes of those that do not.

use segue_conformance::expect;
use segue_conformance::script::chunks::{data, init, peer_tsn};
use segue_conformance::script::{Script, ms, quiet};
use segue_proto::sctp::Event;
use segue_wire::Data;
use segue_wire::sctp::{Chunk, ErrorCause, Init, Parameter, Sack};

/// An unknown chunk of `chunk_type` as bytes: six bytes long, so that it is padded.
fn unknown(chunk_type: u8) -> Vec<u8> {
    vec![chunk_type, 0x5c, 0, 6, 0xab, 0xcd, 0, 0]
}

/// A DATA chunk with TSN `n` of the peer and these flags, as bytes.
fn data_bytes(n: u32, flags: u8) -> Vec<u8> {
    let mut out = vec![0, flags, 0, 20];
    out.extend(peer_tsn(n).0.to_be_bytes());
    out.extend([0, 0]);
    out.extend((n as u16).to_be_bytes());
    out.extend([0; 4]);
    out.extend(b"data");
    out
}

/// The answer to an INIT with these parameters.
fn init_ack_for(parameters: Vec<Parameter>) -> Box<Init> {
    let mut t = Script::listening(quiet());
    let init = Init { parameters, ..init() };
    t.send_with_tag(0, [Chunk::Init(Box::new(init))]);
    expect!(t, Chunk::InitAck(ack) => ack.clone())
}

fn unknown_parameter(parameter_type: u16) -> Parameter {
    Parameter::Unknown {
        parameter_type,
        value: b"abc"[..].into(),
    }
}

#[test]
fn s3_2_a_chunk_whose_length_is_less_than_its_header_or_more_than_the_packet_is_no_packet() {
    let mut t = Script::established(quiet());
    for malformed in [
        &[0xff, 0, 0, 3][..],
        &[0xff, 0, 0, 0],
        &[0xff, 0, 0, 9, 1, 2, 3, 4],
        &[3, 0, 0, 8, 0, 0, 0, 0],
    ] {
        assert!(!t.send_bytes(malformed), "{malformed:?}");
    }
    // nor is anything before it looked at
    let mut bytes = data_bytes(0, 3);
    bytes.extend([0xff, 0, 0, 3]);
    assert!(!t.send_bytes(&bytes));
    t.silence(ms(1000));
}

#[test]
fn s3_2_padding_is_up_to_three_bytes_and_ignored_whatever_it_holds() {
    let mut t = Script::established(quiet());
    let mut bytes = unknown(0xbf);
    bytes[6..].copy_from_slice(&[0xff, 0xff]);
    bytes.extend(data_bytes(0, 3));
    assert!(t.send_bytes(&bytes));
    t.wait(ms(300));
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(0));
}

#[test]
fn s3_2_the_two_highest_bits_of_an_unknown_chunk_type_say_stop_or_skip_and_report() {
    for (chunk_type, goes_on, reports) in [
        (0x3f, false, false),
        (0x7f, false, true),
        (0xbf, true, false),
        (0xff, true, true),
    ] {
        let mut t = Script::established(quiet());
        let mut bytes = unknown(chunk_type);
        bytes.extend(data_bytes(0, 3));
        assert!(t.send_bytes(&bytes));
        t.wait(ms(300));
        // section 6.10: report and acknowledgement in one packet
        let mut chunks = Vec::new();
        if reports {
            // the cause holds the whole chunk, without its padding
            let whole = unknown(chunk_type)[..6].to_vec();
            chunks.push(Chunk::Error(vec![ErrorCause::UnrecognizedChunkType(
                whole.into(),
            )]));
        }
        let mut came: Vec<_> = t.take_all().into_iter().flat_map(|p| p.chunks).collect();
        if goes_on {
            let last = came.pop();
            assert!(matches!(last, Some(Chunk::Sack(_))), "{chunk_type:#x}: {last:?}");
        }
        assert_eq!(came, chunks, "{chunk_type:#x}");
        assert_eq!(t.messages.len(), usize::from(goes_on));
        assert_eq!(t.association().counters().refused.unknown, 1);
    }
}

#[test]
fn s3_2_1_unknown_parameters_are_reported_in_the_init_ack_if_their_type_asks_for_it() {
    for (parameter_type, reports) in [(0x3fff, false), (0x7fff, true), (0xbfff, false), (0xffff, true)] {
        let ack = init_ack_for(vec![unknown_parameter(parameter_type)]);
        let reported = ack.parameters.iter().find_map(|p| match p {
            Parameter::UnrecognizedParameter(whole) => Some(whole.clone()),
            _ => None,
        });
        let [high, low] = parameter_type.to_be_bytes();
        let whole = vec![high, low, 0, 7, b'a', b'b', b'c'];
        assert_eq!(
            reported.map(|r| r.to_vec()),
            reports.then_some(whole),
            "{parameter_type:#x}"
        );
    }
}

#[test]
fn s3_3_1_reserved_flags_of_data_are_ignored() {
    let mut t = Script::established(quiet());
    assert!(t.send_bytes(&data_bytes(0, 0xf0 | 3)));
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(0));
    assert!(t.send_bytes(&data_bytes(1, 3)));
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(1));
    assert_eq!(t.messages.len(), 2);
}

#[test]
fn s3_3_1_payload_protocol_identifier_stream_and_bytes_reach_the_user_as_they_came() {
    let mut t = Script::established(quiet());
    t.send([data(0)]);
    let message = t.messages.pop_front().expect("message");
    assert_eq!((message.stream_id, message.payload_protocol_id), (0, 0));
    assert_eq!(message.parts[..], [Data::Bytes("data".into())]);
}

#[test]
fn s3_3_2_an_init_with_initiate_tag_0_is_discarded_without_an_answer() {
    let mut t = Script::listening(quiet());
    t.send_with_tag(
        0,
        [Chunk::Init(Box::new(Init {
            initiate_tag: 0,
            ..init()
        }))],
    );
    t.silence(ms(1000));
    assert_eq!(t.end.counters().refused.bad_init, 1);
}

#[test]
fn s3_3_2_an_init_without_streams_or_with_a_window_below_1500_is_aborted_with_its_own_tag() {
    for bad in [
        Init {
            outbound_streams: 0,
            ..init()
        },
        Init {
            inbound_streams: 0,
            ..init()
        },
        Init {
            a_rwnd: 1499,
            ..init()
        },
    ] {
        let mut t = Script::listening(quiet());
        t.send_with_tag(0, [Chunk::Init(Box::new(bad))]);
        expect!(
            t,
            Chunk::Abort {
                reflected_tag: false,
                ..
            }
        );
        assert_eq!(t.last.as_ref().map(|p| p.tag), Some(init().initiate_tag));
        assert_eq!(t.end.associations().count(), 0);
    }
}

#[test]
fn s3_3_3_an_init_ack_with_initiate_tag_0_ends_the_attempt() {
    let mut t = Script::connecting(quiet());
    let tag = expect!(t, Chunk::Init(init) => init.initiate_tag);
    t.our_tag = tag;
    let ack = Init {
        initiate_tag: 0,
        parameters: vec![Parameter::StateCookie("cookie".into())],
        ..init()
    };
    t.send([Chunk::InitAck(Box::new(ack))]);
    assert!(!t.is_alive());
    assert!(t.events.iter().any(|e| matches!(e, Event::Aborted { .. })));
}

#[test]
fn s3_3_3_an_init_ack_without_a_cookie_is_answered_with_missing_mandatory_parameter() {
    let mut t = Script::connecting(quiet());
    let tag = expect!(t, Chunk::Init(init) => init.initiate_tag);
    t.our_tag = tag;
    t.send([Chunk::InitAck(Box::new(init()))]);
    let causes = expect!(t, Chunk::Abort { causes, .. } => causes.clone());
    assert_eq!(causes, [ErrorCause::MissingMandatoryParameter(vec![7])]);
}

#[test]
fn s3_3_4_a_sack_reports_gaps_as_offsets_from_the_cumulative_tsn_ack_and_duplicates_by_tsn() {
    let mut t = Script::established(quiet());
    t.send([data(0)]);
    t.wait(ms(300));
    expect!(t, Chunk::Sack(_));
    t.send([data(2), data(3)]);
    expect!(t, Chunk::Sack(_));
    t.send([data(6), data(2), data(0)]);
    let sack = expect!(t, Chunk::Sack(sack) => sack.clone());
    let blocks: Vec<_> = sack.gap_ack_blocks.iter().map(|b| (b.start, b.end)).collect();
    assert_eq!(sack.cumulative_tsn_ack, peer_tsn(0));
    assert_eq!(blocks, [(2, 3), (6, 6)]);
    assert_eq!(*sack.duplicate_tsns, [peer_tsn(2), peer_tsn(0)]);
    // told once
    t.send([data(1)]);
    expect!(t, Chunk::Sack(Sack { duplicate_tsns, cumulative_tsn_ack, .. })
        if duplicate_tsns.is_empty() && *cumulative_tsn_ack == peer_tsn(3));
}

#[test]
fn s3_3_5_heartbeat_information_comes_back_as_it_was() {
    let mut t = Script::established(quiet());
    for info in [&b""[..], b"x", b"opaque information, of a length that is padded"] {
        t.send([Chunk::Heartbeat(info.into())]);
        expect!(t, Chunk::HeartbeatAck(back) if back == info);
    }
}

#[test]
fn s3_3_7_causes_of_an_abort_reach_the_user() {
    let mut t = Script::established(quiet());
    let causes = vec![ErrorCause::UserInitiatedAbort("why".into())];
    t.send([Chunk::Abort {
        reflected_tag: false,
        causes: causes.clone(),
    }]);
    t.expect_event(&Event::Aborted { causes });
    t.silence(ms(1000));
}

#[test]
fn s3_3_10_an_error_that_is_not_fatal_changes_nothing() {
    let mut t = Script::established(quiet());
    t.send([Chunk::Error(vec![
        ErrorCause::InvalidStreamIdentifier(7),
        ErrorCause::UnrecognizedParameters(b"\xff\xff\0\x04"[..].into()),
    ])]);
    t.silence(ms(1000));
    assert!(t.association().is_established());
    assert!(t.events.is_empty());
}

#[test]
fn s3_3_14_shutdown_complete_with_data_beside_it_is_no_packet_to_act_on() {
    // section 6.10: it is never bundled
    let mut t = Script::established(quiet());
    t.send([Chunk::ShutdownComplete { reflected_tag: false }, data(0)]);
    t.silence(ms(1000));
    assert_eq!(t.end.counters().refused.malformed, 1);
    assert_eq!(t.association().outstanding_bytes(), 0);
}
