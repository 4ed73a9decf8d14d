//! Bytes of SCTP packets and chunks written down from the diagrams of RFC 9260 and RFC 5061.

use super::{address, hex, hex_bytes};
use crate::checksum::sctp_crc32c;
use crate::reader::Reader;
use crate::sctp::{
    Asconf, AsconfAck, AsconfParameter, AsconfResponse, Chunk, DataChunk, ErrorCause, GapAckBlock, Init,
    Parameter, Sack, SctpPacket, UnrecognizedAction,
};
use crate::{AsconfSerial, Data, ParseError, Ssn, Tsn};
use bytes::Bytes;

fn parse(dump: &str) -> Result<Chunk, ParseError> {
    let bytes = hex_bytes(dump);
    let mut reader = Reader::new(&bytes, "SCTP chunk");
    let chunk = Chunk::parse(&mut reader)?;
    assert!(reader.is_empty(), "bytes left over");
    Ok(chunk)
}

fn emit(chunk: &Chunk) -> Vec<u8> {
    let mut out = Vec::new();
    chunk.emit(&mut out);
    assert_eq!(out.len(), chunk.buffer_len());
    out
}

/// The chunk is what the bytes parse to, and the other way round.
fn check(chunk: &Chunk, dump: &str) {
    assert_eq!(parse(dump).as_ref(), Ok(chunk));
    assert_eq!(emit(chunk), hex(dump));
}

/// As [`check`] for a whole packet, whose CRC32c was worked out bit by bit by another program.
fn check_packet(packet: &SctpPacket, dump: &str) {
    assert_eq!(SctpPacket::parse(&hex_bytes(dump)).as_ref(), Ok(packet));
    let mut out = Vec::new();
    packet.emit(&mut out);
    assert_eq!(out, hex(dump));
    assert_eq!(packet.buffer_len(), out.len());
}

fn init() -> Init {
    Init {
        initiate_tag: 0x1122_3344,
        a_rwnd: 0x0001_fffe,
        outbound_streams: 10,
        inbound_streams: 2000,
        initial_tsn: Tsn(0xdead_beef),
        parameters: vec![
            Parameter::Ipv6Address(address("2001:db8::1")),
            Parameter::SupportedAddressTypes(vec![6]),
            Parameter::EcnCapable,
            Parameter::SupportedExtensions(Bytes::from_static(&[0xc1, 0x80])),
            Parameter::AdaptationLayerIndication(1),
        ],
    }
}

fn packet(verification_tag: u32, chunks: impl IntoIterator<Item = Chunk>) -> SctpPacket {
    SctpPacket {
        source_port: 2905,
        destination_port: 2906,
        verification_tag,
        chunks: chunks.into_iter().collect(),
    }
}

#[test]
fn init_packet() {
    check_packet(
        &packet(0, [Chunk::Init(Box::new(init()))]),
        "0b59 0b5a 00000000 21dd3d78
         01 00 0044 11223344 0001fffe 000a 07d0 deadbeef
         0006 0014 20010db8000000000000000000000001
         000c 0006 0006 0000
         8000 0004
         8008 0006 c180 0000
         c006 0008 00000001",
    );
}

#[test]
fn asconf_packet() {
    let new = address("2001:db8:2::2");
    let asconf = Asconf {
        serial_number: AsconfSerial(7),
        address: address("2001:db8::1"),
        parameters: vec![
            AsconfParameter::AddIpAddress {
                correlation_id: 1,
                address: new,
            },
            // Delete 192.0.2.1: of a type that can only be answered with an error here.
            AsconfParameter::Unknown {
                parameter_type: 0xc002,
                correlation_id: 2,
                value: hex_bytes("0005 0008 c0000201"),
            },
            AsconfParameter::SetPrimaryAddress {
                correlation_id: 3,
                address: new,
            },
        ],
    };
    check_packet(
        &packet(0x0102_0304, [Chunk::Asconf(Box::new(asconf))]),
        "0b59 0b5a 01020304 1b72d207
         c1 00 0064 00000007
         0006 0014 20010db8000000000000000000000001
         c001 001c 00000001 0006 0014 20010db8000200000000000000000002
         c002 0010 00000002 0005 0008 c0000201
         c004 001c 00000003 0006 0014 20010db8000200000000000000000002",
    );
}

#[test]
fn wrong_crc_is_refused() {
    let mut out = Vec::new();
    packet(1, [Chunk::CookieAck]).emit(&mut out);
    assert!(SctpPacket::parse(&Bytes::from(out.clone())).is_ok());
    out[8..12].reverse();
    assert_eq!(
        SctpPacket::parse(&Bytes::from(out)),
        Err(ParseError::BadChecksum("SCTP"))
    );
    assert_eq!(
        SctpPacket::parse(&hex_bytes("0001 0002 00000000 0000")),
        Err(ParseError::Truncated("SCTP common header"))
    );
}

#[test]
fn data_with_every_flag() {
    let data = |flags: [bool; 4], bytes: &'static [u8]| {
        let [immediate, unordered, beginning, ending] = flags;
        Chunk::Data(DataChunk {
            tsn: Tsn(1),
            stream_id: 2,
            ssn: Ssn(3),
            payload_protocol_id: 4,
            unordered,
            beginning,
            ending,
            immediate,
            data: Data::Bytes(Bytes::from_static(bytes)),
        })
    };
    check(
        &data([false, false, true, true], b"hello"),
        "00 03 0015 00000001 0002 0003 00000004 68656c6c6f 000000",
    );
    check(
        &data([true, false, false, false], b"four"),
        "00 08 0014 00000001 0002 0003 00000004 666f7572",
    );
    check(
        &data([false, true, false, false], b"1"),
        "00 04 0011 00000001 0002 0003 00000004 31000000",
    );
    // Without user data: for the association to answer (RFC 9260 section 3.3.10.9).
    check(
        &data([false, false, true, true], b""),
        "00 03 0010 00000001 0002 0003 00000004",
    );
    // Reserved flags are ignored.
    assert_eq!(
        parse("00 f3 0010 00000001 0002 0003 00000004"),
        Ok(data([false, false, true, true], b""))
    );
    assert_eq!(
        parse("00 03 000f 00000001 0002 0003 000000 00"),
        Err(ParseError::Truncated("DATA"))
    );
}

#[test]
fn sack_is_kept_as_it_came() {
    let sack = Sack {
        cumulative_tsn_ack: Tsn(100),
        a_rwnd: 65536,
        // The second block ends before it starts.
        gap_ack_blocks: [GapAckBlock { start: 2, end: 3 }, GapAckBlock { start: 9, end: 5 }]
            .into_iter()
            .collect(),
        duplicate_tsns: [Tsn(99)].into(),
        data_packets: 0,
    };
    check(
        &Chunk::Sack(sack.clone()),
        "03 00 001c 00000064 00010000 0002 0001 0002 0003 0009 0005 00000063",
    );
    let for_two = Sack {
        data_packets: 2,
        ..sack
    };
    check(
        &Chunk::Sack(for_two),
        "03 80 001c 00000064 00010000 0002 0001 0002 0003 0009 0005 00000063",
    );
    // One block more, or less, than there is room for.
    let more = parse("03 00 0014 00000064 00010000 0002 0000 0002 0003");
    assert_eq!(more, Err(ParseError::BadLength("SACK")));
    let less = parse("03 00 0014 00000064 00010000 0000 0000 0002 0003");
    assert_eq!(less, Err(ParseError::BadLength("SACK")));
}

#[test]
fn init_ack_with_a_cookie_and_an_unrecognized_parameter() {
    let init_ack = Init {
        parameters: vec![
            Parameter::StateCookie(Bytes::from_static(b"cookie")),
            Parameter::UnrecognizedParameter(hex_bytes("c00a 0005 ff")),
            Parameter::Ipv4Address([192, 0, 2, 1].into()),
            Parameter::ForwardTsnSupported,
            Parameter::HostNameAddress(Bytes::from_static(b"a\0")),
        ],
        ..init()
    };
    check(
        &Chunk::InitAck(Box::new(init_ack)),
        "02 00 003e 11223344 0001fffe 000a 07d0 deadbeef
         0007 000a 636f6f6b6965 0000
         0008 0009 c00a0005ff 000000
         0005 0008 c0000201
         c000 0004
         000b 0006 6100 0000",
    );
}

/// RFC 9260 section 3.2: the chunk length does not count the last parameter's padding, but a receiver accepts it if
/// it does; and the padding at a packet's end may be missing.
#[test]
fn padding_of_the_last_parameter_may_be_counted_or_missing() {
    let fixed = "11223344 0001fffe 000a 07d0 deadbeef";
    let cookie = Parameter::StateCookie(Bytes::from_static(b"c"));
    let expected = Ok(Chunk::Init(Box::new(Init {
        parameters: vec![cookie],
        ..init()
    })));
    assert_eq!(
        parse(&format!("01 00 0019 {fixed} 0007 0005 63 000000")),
        expected
    );
    assert_eq!(
        parse(&format!("01 00 001c {fixed} 0007 0005 63 000000")),
        expected
    );
    assert_eq!(parse(&format!("01 00 0019 {fixed} 0007 0005 63")), expected);
}

#[test]
fn errors_name_what_is_malformed() {
    let init = |parameters: &str, len| {
        parse(&format!(
            "01 00 {len} 11223344 0001fffe 000a 07d0 deadbeef {parameters}"
        ))
    };
    assert_eq!(parse("01 00 0008 11223344"), Err(ParseError::Truncated("INIT")));
    assert_eq!(
        init("0006 0008 20010db8", "001c"),
        Err(ParseError::Truncated("IPv6 address parameter"))
    );
    assert_eq!(
        init("0005 000c c0000201 00000000", "0020"),
        Err(ParseError::BadLength("IPv4 address parameter"))
    );
    assert_eq!(
        init("000c 0005 00 000000", "001c"),
        Err(ParseError::Truncated("supported address types parameter"))
    );
    assert_eq!(
        init("8000 0008 00000000", "001c"),
        Err(ParseError::BadLength("ECN capable parameter"))
    );
    assert_eq!(init("0007 0003", "0018"), Err(ParseError::BadLength("INIT")));
    assert_eq!(init("0007 0030", "0018"), Err(ParseError::Truncated("INIT")));
    assert_eq!(parse("03 00 0003"), Err(ParseError::BadLength("SCTP chunk")));
    assert_eq!(
        parse("03 00 0020 00000000"),
        Err(ParseError::Truncated("SCTP chunk"))
    );
    assert_eq!(
        parse("07 00 000c 00000001 00000000"),
        Err(ParseError::BadLength("SHUTDOWN"))
    );
    assert_eq!(
        parse("0b 00 0008 00000001"),
        Err(ParseError::BadLength("COOKIE ACK"))
    );
    assert_eq!(
        parse("04 00 0008 0002 0004"),
        Err(ParseError::BadValue("HEARTBEAT"))
    );
    assert_eq!(
        parse("06 00 0008 000c 0003"),
        Err(ParseError::BadLength("ABORT cause"))
    );
    assert_eq!(
        parse("c1 00 0010 00000007 000b 0008 61000000"),
        Err(ParseError::BadValue("ASCONF address parameter"))
    );
    assert_eq!(
        parse("c1 00 000c 00000007 0006 0014"),
        Err(ParseError::Truncated("ASCONF address parameter"))
    );
    assert_eq!(
        parse("c1 00 0018 00000007 0005 0008 c0000201 c001 0008 00000001"),
        Err(ParseError::Truncated("ASCONF parameter"))
    );
    assert_eq!(
        parse("80 00 0010 00000007 c005 0006 0000 0000"),
        Err(ParseError::Truncated("ASCONF-ACK parameter"))
    );
}

#[test]
fn small_chunks() {
    check(
        &Chunk::Heartbeat(Bytes::from_static(b"now")),
        "04 00 000b 0001 0007 6e6f77 00",
    );
    check(
        &Chunk::HeartbeatAck(Bytes::from_static(b"now")),
        "05 00 000b 0001 0007 6e6f77 00",
    );
    check(
        &Chunk::Shutdown {
            cumulative_tsn_ack: Tsn(5),
        },
        "07 00 0008 00000005",
    );
    check(&Chunk::ShutdownAck, "08 00 0004");
    check(
        &Chunk::CookieEcho(Bytes::from_static(b"cookie")),
        "0a 00 000a 636f6f6b6965 0000",
    );
    check(&Chunk::CookieAck, "0b 00 0004");
    check(&Chunk::Ecne(Tsn(6)), "0c 00 0008 00000006");
    check(&Chunk::Cwr(Tsn(7)), "0d 00 0008 00000007");
    check(&Chunk::ShutdownComplete { reflected_tag: false }, "0e 00 0004");
    check(&Chunk::ShutdownComplete { reflected_tag: true }, "0e 01 0004");
    let unknown = Chunk::Unknown {
        chunk_type: 0xfe,
        flags: 0x5a,
        value: Bytes::from_static(&[1]),
    };
    check(&unknown, "fe 5a 0005 01 000000");
}

#[test]
fn error_with_every_cause() {
    use ErrorCause as C;
    let one = || Bytes::from_static(&[0xaa]);
    check(
        &Chunk::Error(vec![
            C::InvalidStreamIdentifier(9),
            C::MissingMandatoryParameter(vec![7, 6, 5]),
            C::StaleCookie(1000),
            C::OutOfResource,
            C::UnresolvableAddress(one()),
            C::UnrecognizedChunkType(one()),
            C::InvalidMandatoryParameter,
            C::UnrecognizedParameters(one()),
            C::NoUserData(Tsn(17)),
            C::CookieReceivedWhileShuttingDown,
            C::RestartWithNewAddresses(one()),
            C::UserInitiatedAbort(one()),
            C::ProtocolViolation(one()),
            C::DeleteLastRemainingAddress(one()),
            C::OperationRefusedResourceShortage(one()),
            C::DeleteSourceAddress(one()),
            C::IllegalAsconfAck,
            C::RequestRefusedNoAuthorization(one()),
            C::UnsupportedHmacIdentifier(2),
            C::Unknown {
                code: 0x7777,
                value: one(),
            },
        ]),
        "09 00 0099
         0001 0008 0009 0000
         0002 000e 00000003 0007 0006 0005 0000
         0003 0008 000003e8
         0004 0004
         0005 0005 aa 000000
         0006 0005 aa 000000
         0007 0004
         0008 0005 aa 000000
         0009 0008 00000011
         000a 0004
         000b 0005 aa 000000
         000c 0005 aa 000000
         000d 0005 aa 000000
         00a0 0005 aa 000000
         00a1 0005 aa 000000
         00a2 0005 aa 000000
         00a3 0004
         00a4 0005 aa 000000
         0105 0006 0002 0000
         7777 0005 aa 000000",
    );
}

#[test]
fn malformed_cause_does_not_undo_an_abort() {
    let abort = |code, value| Chunk::Abort {
        reflected_tag: true,
        causes: vec![ErrorCause::Unknown { code, value }],
    };
    check(
        &abort(3, Bytes::from_static(&[1, 2])),
        "06 01 000a 0003 0006 0102 0000",
    );
    check(
        &abort(4, Bytes::from_static(&[1, 2, 3, 4])),
        "06 01 000c 0004 0008 01020304",
    );
    // A count of parameters that is not theirs.
    check(
        &abort(2, hex_bytes("00000002 0007")),
        "06 01 000e 0002 000a 00000002 0007 0000",
    );
    check(
        &Chunk::Abort {
            reflected_tag: false,
            causes: vec![],
        },
        "06 00 0004",
    );
}

#[test]
fn asconf_ack() {
    let ack = AsconfAck {
        serial_number: AsconfSerial(7),
        responses: vec![
            AsconfResponse::SuccessIndication { correlation_id: 1 },
            AsconfResponse::ErrorCauseIndication {
                correlation_id: 2,
                causes: vec![ErrorCause::UnresolvableAddress(hex_bytes("0005 0008 c0000201"))],
            },
        ],
    };
    check(
        &Chunk::AsconfAck(Box::new(ack.clone())),
        "80 00 0024 00000007
         c005 0008 00000001
         c003 0014 00000002 0005 000c 00050008c0000201",
    );
    check(
        &Chunk::AsconfAck(Box::new(AsconfAck {
            responses: vec![],
            ..ack.clone()
        })),
        "80 00 0008 00000007",
    );
    // An unknown response is passed over, or stops the reading, as its type says.
    let success = "c005 0008 00000001";
    let one = AsconfAck {
        responses: ack.responses[..1].to_vec(),
        ..ack
    };
    assert_eq!(
        parse(&format!("80 00 0014 00000007 c0ff 0004 {success}")),
        Ok(Chunk::AsconfAck(Box::new(one.clone())))
    );
    assert_eq!(
        parse(&format!("80 00 0014 00000007 40ff 0004 {success}")),
        Ok(Chunk::AsconfAck(Box::new(AsconfAck {
            responses: vec![],
            ..one
        })))
    );
}

#[test]
fn ipv4_address_that_an_asconf_is_looked_up_by_is_a_mapped_one() {
    let asconf = Asconf {
        serial_number: AsconfSerial(1),
        address: address("::ffff:192.0.2.1"),
        parameters: vec![AsconfParameter::Unknown {
            parameter_type: 0xc0aa,
            correlation_id: 9,
            value: Bytes::new(),
        }],
    };
    check(
        &Chunk::Asconf(Box::new(asconf)),
        "c1 00 0018 00000001 0005 0008 c0000201 c0aa 0008 00000009",
    );
}

#[test]
fn set_primary_address_of_an_ipv4_address_in_an_init_is_unknown() {
    let bytes = hex_bytes("c004 0010 00000000 0005 0008 c0000201");
    let parameter = Parameter::parse(&mut Reader::new(&bytes, "")).unwrap();
    assert_eq!(
        parameter,
        Parameter::Unknown {
            parameter_type: 0xc004,
            value: bytes.slice(4..)
        }
    );
}

#[test]
fn what_to_do_with_the_unrecognised_is_in_the_two_highest_bits() {
    let chunk = |chunk_type| {
        Chunk::Unknown {
            chunk_type,
            flags: 0,
            value: Bytes::new(),
        }
        .unrecognized_action()
    };
    assert_eq!(chunk(0x3f), UnrecognizedAction::Stop);
    assert_eq!(chunk(0x40), UnrecognizedAction::StopAndReport);
    assert_eq!(chunk(0x81), UnrecognizedAction::Skip);
    assert_eq!(chunk(0xc0), UnrecognizedAction::SkipAndReport);
    let parameter = |parameter_type| {
        Parameter::Unknown {
            parameter_type,
            value: Bytes::new(),
        }
        .unrecognized_action()
    };
    assert_eq!(parameter(0x3fff), UnrecognizedAction::Stop);
    assert_eq!(parameter(0x4000), UnrecognizedAction::StopAndReport);
    assert_eq!(parameter(0x8001), UnrecognizedAction::Skip);
    assert_eq!(parameter(0xc0aa), UnrecognizedAction::SkipAndReport);
    assert!(parameter(0x4000).stops() && parameter(0x4000).reports());
    assert!(!parameter(0x8001).stops() && !parameter(0x8001).reports());
}

#[test]
fn init_init_ack_and_shutdown_complete_are_not_bundled() {
    let init = Chunk::Init(Box::new(init()));
    assert!(packet(0, [init.clone()]).bundling_is_valid());
    assert!(!packet(0, [init, Chunk::CookieAck]).bundling_is_valid());
    assert!(
        !packet(
            0,
            [Chunk::CookieAck, Chunk::ShutdownComplete { reflected_tag: false }]
        )
        .bundling_is_valid()
    );
    assert!(packet(0, [Chunk::CookieAck, Chunk::ShutdownAck]).bundling_is_valid());
}

#[test]
fn chunks_follow_one_another_and_none_is_allowed() {
    let two = packet(9, [Chunk::CookieEcho(Bytes::from_static(b"c")), Chunk::CookieAck]);
    let mut out = Vec::new();
    two.emit(&mut out);
    assert_eq!(out[12..], hex("0a 00 0005 63000000 0b 00 0004"));
    assert_eq!(SctpPacket::parse(&Bytes::from(out.clone())), Ok(two));
    out.truncate(12);
    let crc = sctp_crc32c(&out);
    out[8..].copy_from_slice(&crc);
    assert_eq!(SctpPacket::parse(&Bytes::from(out)), Ok(packet(9, [])));
}
