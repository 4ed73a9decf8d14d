//! TCP segments that the Linux kernel (6.x) sent over its loopback interface, their checksums completed as a network
//! interface would; and option lists that nobody should send.

use super::{hex, hex_bytes, pseudo_header};
use crate::tcp::{HEADER_LEN, SackBlock, TcpFlags, TcpOptions, TcpSegment, Timestamps};
use crate::{Data, Packet, ParseError, Payload, SeqNumber};
use bytes::Bytes;

const SYN: &str = "60003c34002806400000000000000000000000000000000100000000000000000000000000000001
    ca40b553a550a8c400000000a002ffc458dd00000204ffc40402080adbad4bf1000000000103030a";
const SYN_ACK: &str = "60000b26002806400000000000000000000000000000000100000000000000000000000000000001
    b553ca402ea5b244a550a8c5a012ffb8056100000204ffc40402080a3e1d3470dbad4bf10103030a";
const DATA: &str = "60003c34002b06400000000000000000000000000000000100000000000000000000000000000001
    ca40b553a550a8c52ea5b24580180040a9d800000101080adbad4bf23e1d347068656c6c6f207365677565";

fn segment(dump: &str) -> TcpSegment {
    let packet = Packet::parse(&hex(dump)).expect("a packet");
    assert_eq!(packet.to_vec(), hex(dump), "Linux's layout of options is ours");
    match packet.payload {
        Payload::Tcp(segment) => segment,
        other => panic!("{other:?}"),
    }
}

#[test]
fn linux_syn_and_syn_ack() {
    let syn = segment(SYN);
    assert_eq!((syn.source_port, syn.destination_port), (51_776, 46_419));
    assert_eq!((syn.flags, syn.seq_len()), (TcpFlags::SYN, 1));
    assert_eq!((syn.seq, syn.ack), (SeqNumber(0xa550_a8c4), SeqNumber(0)));
    assert_eq!(syn.options.mss(), Some(65_476));
    assert_eq!(syn.options.window_scale(), Some(10));
    assert!(syn.options.sack_permitted());
    let answer = segment(SYN_ACK);
    assert_eq!(answer.flags, TcpFlags::SYN | TcpFlags::ACK);
    assert_eq!(answer.ack, syn.seq.next());
    let timestamps = answer.options.timestamps.unwrap();
    assert_eq!(timestamps.echo, syn.options.timestamps.unwrap().value);
}

#[test]
fn linux_data() {
    let data = segment(DATA);
    assert_eq!(data.flags, TcpFlags::PSH | TcpFlags::ACK);
    assert_eq!(data.data, Data::Bytes(Bytes::from_static(b"hello segue")));
    assert_eq!((data.window, data.seq_len()), (64, 11));
    let timestamps = Timestamps {
        value: 0xdbad_4bf2,
        echo: 0x3e1d_3470,
    };
    assert_eq!(data.options, TcpOptions::with_timestamps(Some(timestamps)));
}

/// A header of zeros with these options, its checksum right.
fn with_options(options: &str) -> Result<TcpOptions, ParseError> {
    let options = hex(options);
    let mut bytes = vec![0; HEADER_LEN];
    bytes[12] = (((HEADER_LEN + options.len()) / 4) << 4) as u8;
    bytes.extend(options);
    let checksum = pseudo_header().checksum(6, &bytes);
    bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
    TcpSegment::parse(&Bytes::from(bytes), &pseudo_header()).map(|s| s.options)
}

#[test]
fn sack_blocks_lie_behind_two_no_operations() {
    let options = with_options("0101050a 00000001 00000002").unwrap();
    let block = SackBlock {
        left: SeqNumber(1),
        right: SeqNumber(2),
    };
    assert_eq!(options.sack_blocks(), [block]);
    let mut out = Vec::new();
    options.emit(&mut out);
    assert_eq!(out, hex("0101050a 00000001 00000002"));
}

#[test]
fn options_behind_the_end_of_the_list_do_not_count() {
    assert_eq!(with_options("00020402"), Ok(TcpOptions::default()));
    assert_eq!(with_options("01010100"), Ok(TcpOptions::default()));
}

#[test]
fn illegal_option_lengths_are_refused() {
    // RFC 9293 section 3.1, MUST-7
    assert_eq!(with_options("02000000"), Err(ParseError::BadLength("TCP option")));
    assert_eq!(with_options("02010000"), Err(ParseError::BadLength("TCP option")));
    assert_eq!(
        with_options("0101010206000000"),
        Err(ParseError::Truncated("TCP options"))
    );
    assert_eq!(
        with_options("01010102"),
        Err(ParseError::Truncated("TCP options"))
    );
}

#[test]
fn a_known_option_of_another_length_is_kept_as_it_is() {
    let options = with_options("02050102 03000000").unwrap();
    assert_eq!(options.mss(), None);
    assert_eq!(options.unknown()[0].data, hex_bytes("010203"));
}

#[test]
fn a_list_that_alignment_would_make_too_long_goes_out_without() {
    // MSS, SACK permitted and a SACK of four blocks: 40 bytes, and 44 with NOPs
    let blocks = "00000001 00000002 00000003 00000004 00000005 00000006 00000007 00000008";
    let options = with_options(&format!("020405a0 0402 0522 {blocks}")).unwrap();
    assert_eq!((options.sack_blocks().len(), options.buffer_len()), (4, 40));
    let mut out = Vec::new();
    options.emit(&mut out);
    let again = with_options(&out.iter().map(|b| format!("{b:02x}")).collect::<String>());
    assert_eq!(again, Ok(options));
}

#[test]
fn impossible_data_offsets_and_wrong_checksums_are_refused() {
    let mut bytes = vec![0; HEADER_LEN];
    for (offset, error) in [
        (4 << 4, ParseError::BadLength("TCP data offset")),
        (6 << 4, ParseError::Truncated("TCP")),
        (5 << 4, ParseError::BadChecksum("TCP")),
    ] {
        bytes[12] = offset;
        let parsed = TcpSegment::parse(&Bytes::copy_from_slice(&bytes), &pseudo_header());
        assert_eq!(parsed, Err(error));
    }
}
