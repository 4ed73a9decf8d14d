//! RFC 9260 section 6: user data, its acknowledgement, retransmission, order, fragments and bundling.

use segue_conformance::expect;
use segue_conformance::script::chunks::{
    data, data_chunk, data_of, extensions, peer_tsn, sack, sack_with_gaps,
};
use segue_conformance::script::{Script, Sent, ms, peer, quiet};
use segue_proto::Duration;
use segue_proto::sctp::{Config, SendOptions};
use segue_wire::sctp::{Chunk, DataChunk, ErrorCause, Parameter};
use segue_wire::{Data, Ssn};

/// The DATA chunks among packets.
fn data_in(packets: &[Sent]) -> Vec<DataChunk> {
    packets
        .iter()
        .flat_map(|p| &p.chunks)
        .filter_map(|c| match c {
            Chunk::Data(chunk) => Some(chunk.clone()),
            _ => None,
        })
        .collect()
}

/// An association whose user sends without Max.Burst.
fn unbridled() -> Script {
    Script::established(Config {
        max_burst: None,
        ..quiet()
    })
}

#[test]
fn s6_1_a_no_data_goes_into_a_window_that_has_no_room_for_it() {
    let mut t = unbridled();
    t.user_sends(100);
    expect!(t, Chunk::Data(_));
    t.send([sack_with_gaps(t.our_tsn, 1000, &[])]);
    t.user_sends(600);
    t.user_sends(600);
    expect!(t, Chunk::Data(_));
    t.silence(ms(500));
    t.send([sack_with_gaps(t.our_tsn.add(1), 1000, &[])]);
    expect!(t, Chunk::Data(_));
}

#[test]
fn s6_1_a_a_closed_window_is_probed_by_one_chunk_and_an_answered_probe_is_no_error() {
    let mut t = unbridled();
    t.user_sends(100);
    expect!(t, Chunk::Data(_));
    t.send([sack_with_gaps(t.our_tsn, 0, &[])]);
    for _ in 0..3 {
        t.user_sends(100);
    }
    // one probe, not before an RTO has passed
    t.silence(ms(900));
    expect!(t, Chunk::Data(probe) if probe.tsn == t.our_tsn.add(1));
    // answered and not taken, again and again: more often than Association.Max.Retrans forgives
    for _ in 0..15 {
        t.send([sack_with_gaps(t.our_tsn, 0, &[])]);
        expect!(t, Chunk::Data(probe) if probe.tsn == t.our_tsn.add(1));
    }
    t.send([sack_with_gaps(t.our_tsn.add(1), 5000, &[])]);
    assert_eq!(data_in(&t.take_all()).len(), 2);
    assert!(t.association().is_established());
}

#[test]
fn s6_1_c_marked_chunks_go_before_new_ones() {
    let mut t = unbridled();
    for _ in 0..4 {
        t.user_sends(1400);
    }
    t.forget();
    t.wait(ms(1000));
    let resent = data_in(&t.take_all()).len() as u32;
    assert!(resent < 4);
    t.user_sends(50);
    t.send([sack(t.our_tsn.add(resent - 1))]);
    t.send([sack(t.our_tsn.add(3))]);
    let after: Vec<_> = data_in(&t.take_all()).iter().map(|c| c.tsn).collect();
    let expected: Vec<_> = (resent..=4).map(|n| t.our_tsn.add(n)).collect();
    assert_eq!(after, expected);
}

#[test]
fn s6_1_d_no_more_than_max_burst_packets_at_once() {
    let mut t = Script::established(quiet());
    for n in 0..4 {
        t.user_sends(1400);
        t.forget();
        t.send([sack(t.our_tsn.add(n))]);
    }
    t.forget();
    for _ in 0..20 {
        t.user_sends(1400);
    }
    t.forget();
    // everything is acknowledged at once: cwnd would allow more than four packets
    t.send([sack_with_gaps(t.our_tsn.add(7), 100_000, &[])]);
    assert!(t.association().paths().next().expect("path").cwnd > 4 * 1452);
    assert_eq!(t.take_all().len(), 4);
}

#[test]
fn s6_2_every_second_packet_is_acknowledged_at_once_and_any_other_within_200_ms() {
    // but for the first of the association: section 5.1
    let mut t = Script::established(quiet());
    t.send([data(0)]);
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(0));
    assert_eq!(t.last.as_ref().map(|p| p.at), Some(t.now));
    t.send([data(1)]);
    t.silence(ms(199));
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(1));
    t.send([data(2)]);
    t.send([data(3)]);
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(3));
    assert_eq!(t.last.as_ref().map(|p| p.at), Some(t.now));
    t.silence(ms(1000));
}

#[test]
fn s6_2_duplicates_alone_are_acknowledged_at_once() {
    let mut t = Script::established(quiet());
    t.send([data(0)]);
    t.send([data(1)]);
    expect!(t, Chunk::Sack(_));
    t.send([data(0)]);
    expect!(t, Chunk::Sack(sack) if *sack.duplicate_tsns == [peer_tsn(0)]);
    assert_eq!(t.messages.len(), 2);
    assert_eq!(t.association().counters().duplicate_data_chunks, 1);
}

#[test]
fn s6_2_a_gap_and_its_filling_are_acknowledged_at_once() {
    // section 6.7
    let mut t = Script::established(quiet());
    t.send([data(1)]);
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(0).previous() && sack.gap_ack_blocks.len() == 1);
    t.send([data(0)]);
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(1) && sack.gap_ack_blocks.is_empty());
}

#[test]
fn s6_2_the_i_bit_asks_for_a_sack_without_delay() {
    let mut t = Script::established(quiet());
    t.send([Chunk::Data(DataChunk {
        immediate: true,
        ..data_chunk(0)
    })]);
    expect!(t, Chunk::Sack(_));
    assert_eq!(t.last.as_ref().map(|p| p.at), Some(t.now));
}

#[test]
fn s6_2_empty_data_aborts_with_no_user_data() {
    let mut t = Script::established(quiet());
    t.send([Chunk::Data(DataChunk {
        data: Data::Bytes(Default::default()),
        ..data_chunk(0)
    })]);
    let causes = expect!(t, Chunk::Abort { causes, .. } => causes.clone());
    assert_eq!(causes, [ErrorCause::NoUserData(peer_tsn(0))]);
}

#[test]
fn s6_2_with_the_window_closed_new_data_is_dropped_and_the_sack_says_so_and_reading_opens_it() {
    let mut t = Script::established(Config {
        receive_buffer: 4000,
        ..quiet()
    });
    t.reading = false;
    for n in 0..4 {
        t.send([data_of(n, 1000)]);
    }
    t.forget();
    t.send([data_of(4, 1000)]);
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(3) && sack.a_rwnd == 0);
    assert_eq!(t.association().counters().refused.beyond_window, 1);
    let taken = t.command(|a, _| core::iter::from_fn(|| a.recv()).count());
    assert_eq!(taken, 4);
    expect!(t, Chunk::Sack(sack) if sack.a_rwnd == 4000);
}

#[test]
fn s6_2_1_a_sack_older_than_the_last_is_dropped() {
    let mut t = unbridled();
    for _ in 0..3 {
        t.user_sends(1000);
    }
    t.forget();
    t.send([sack(t.our_tsn.add(1))]);
    let before = t.association().outstanding_bytes();
    t.send([sack_with_gaps(t.our_tsn, 1, &[])]);
    assert_eq!(t.association().outstanding_bytes(), before);
    assert!(t.association().peer_rwnd() > 1000);
}

#[test]
fn s6_2_1_rwnd_is_what_the_sack_offers_less_what_is_outstanding() {
    let mut t = unbridled();
    for _ in 0..3 {
        t.user_sends(1000);
    }
    t.send([sack_with_gaps(t.our_tsn, 10_000, &[(2, 2)])]);
    // 1: acknowledged, 3: by a gap ack block
    assert_eq!(t.association().outstanding_bytes(), 1000);
    assert_eq!(t.association().peer_rwnd(), 9000);
}

#[test]
fn s6_2_1_a_chunk_that_the_receiver_takes_back_is_outstanding_again_and_timed() {
    let mut t = unbridled();
    t.user_sends(1000);
    t.user_sends(1000);
    t.forget();
    t.send([sack_with_gaps(t.our_tsn.previous(), 10_000, &[(2, 2)])]);
    assert_eq!(t.association().outstanding_bytes(), 1000);
    t.send([sack_with_gaps(t.our_tsn.previous(), 10_000, &[])]);
    assert_eq!(t.association().outstanding_bytes(), 2000);
    // section 6.3.2 R4
    t.send([sack(t.our_tsn)]);
    t.forget();
    expect!(t, Chunk::Data(chunk) if chunk.tsn == t.our_tsn.add(1));
}

#[test]
fn s6_2_1_acknowledging_what_was_never_sent_changes_nothing() {
    let mut t = unbridled();
    t.user_sends(1000);
    t.forget();
    t.send([sack(t.our_tsn.add(10))]);
    t.send([sack_with_gaps(t.our_tsn.previous(), 10_000, &[(2, 9)])]);
    t.send([sack_with_gaps(t.our_tsn.previous(), 10_000, &[(1, 1), (1, 1)])]);
    assert_eq!(t.association().outstanding_bytes(), 1000);
    assert_eq!(t.association().counters().refused.impossible_acks, 3);
}

#[test]
fn s6_3_1_the_rto_follows_the_round_trip_and_stays_between_its_bounds() {
    let mut t = Script::established(Config {
        rto_min: ms(10),
        ..quiet()
    });
    // C1: RTO.Initial until there is a measurement
    assert_eq!(t.association().paths().next().expect("path").rto, ms(1000));
    // C2: srtt = R, rttvar = R/2, RTO = srtt + 4 rttvar
    t.user_sends(10);
    t.wait(ms(100));
    t.send([sack(t.our_tsn)]);
    let path = t.association().paths().next().expect("path");
    assert_eq!((path.srtt, path.rto), (Some(ms(100)), ms(300)));
    // C3: rttvar = 3/4 50 + 1/4 |100 - 200|, srtt = 7/8 100 + 1/8 200
    t.user_sends(10);
    t.wait(ms(200));
    t.send([sack(t.our_tsn.add(1))]);
    let path = t.association().paths().next().expect("path");
    let (srtt, rto) = (
        Duration::from_micros(112_500),
        Duration::from_micros(112_500 + 4 * 62_500),
    );
    assert_eq!((path.srtt, path.rto), (Some(srtt), rto));
}

#[test]
fn s6_3_1_c5_a_retransmitted_chunk_measures_nothing() {
    let mut t = Script::established(quiet());
    t.user_sends(10);
    t.wait(ms(1100));
    t.send([sack(t.our_tsn)]);
    assert_eq!(t.association().paths().next().expect("path").srtt, None);
}

#[test]
fn s6_3_3_t3_rtx_doubles_the_rto_up_to_rto_max() {
    let mut t = Script::established(Config {
        rto_max: ms(5000),
        ..quiet()
    });
    t.user_sends(10);
    let start = t.now;
    expect!(t, Chunk::Data(_));
    for at in [1, 3, 7, 12, 17] {
        expect!(t, Chunk::Data(_));
        assert_eq!(t.last.as_ref().map(|p| p.at), Some(start + ms(1000 * at)));
    }
}

#[test]
fn s6_3_3_e3_as_many_of_the_earliest_chunks_as_fit_one_packet_are_sent_again_at_once() {
    let mut t = unbridled();
    for _ in 0..7 {
        t.user_sends(600);
    }
    t.forget();
    t.wait(ms(1000));
    let packets = t.take_all();
    let tsns: Vec<_> = data_in(&packets[..1]).iter().map(|c| c.tsn).collect();
    assert_eq!(tsns, [t.our_tsn, t.our_tsn.add(1)]);
    // section 7.2.3: cwnd is one packet; by section 6.1 rule B what is in flight may pass it by less than one more
    let path = t.association().paths().next().expect("path");
    assert!(path.cwnd <= 1500 && path.flightsize < 2 * path.cwnd, "{path:?}");
    assert!(data_in(&packets).len() < 7);
}

#[test]
fn s6_4_a_sack_goes_to_where_the_data_came_from() {
    let parameters = vec![Parameter::Ipv6Address(peer(2)), extensions(&[])];
    let mut t = Script::established_with(quiet(), 1, parameters);
    t.forget();
    t.send_from(peer(2), [data(0)]);
    t.send_from(peer(2), [data(1)]);
    expect!(t, Chunk::Sack(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(2)));
}

#[test]
fn s6_4_1_a_timed_out_chunk_goes_to_another_active_address() {
    let mut t = Script::established_with(quiet(), 1, vec![Parameter::Ipv6Address(peer(2))]);
    let heartbeat = expect!(t, Chunk::Heartbeat(info) => info.clone());
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(2)));
    t.send_from(peer(2), [Chunk::HeartbeatAck(heartbeat)]);
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(1)));
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(2)));
}

#[test]
fn s6_5_data_on_a_stream_that_does_not_exist_is_acknowledged_reported_and_dropped() {
    let mut t = Script::established(quiet());
    t.send([Chunk::Data(DataChunk {
        stream_id: 8,
        ..data_chunk(0)
    })]);
    // section 6.10: in one packet
    expect!(t, Chunk::Error(causes), Chunk::Sack(sack)
        if causes == &[ErrorCause::InvalidStreamIdentifier(8)] && sack.cumulative_tsn_ack == peer_tsn(0));
    assert!(t.messages.is_empty());
    assert_eq!(t.association().counters().refused.bad_stream, 1);
}

#[test]
fn s6_5_stream_sequence_numbers_begin_with_0_in_every_stream_and_ignore_unordered_messages() {
    let mut t = unbridled();
    for (stream, unordered) in [(0, false), (1, false), (0, true), (0, false)] {
        let options = SendOptions {
            unordered,
            ..SendOptions::default()
        };
        t.command(|a, now| a.send(now, stream, Data::Bytes("x".into()), options))
            .expect("send");
    }
    let chunks = data_in(&t.take_all());
    let seen: Vec<_> = chunks.iter().map(|c| (c.stream_id, c.ssn, c.unordered)).collect();
    assert_eq!(seen[0], (0, Ssn(0), false));
    assert_eq!(seen[1], (1, Ssn(0), false));
    assert!(seen[2].2);
    assert_eq!(seen[3], (0, Ssn(1), false));
}

#[test]
fn s6_6_order_holds_within_a_stream_and_not_between_streams() {
    let mut t = Script::established(quiet());
    let on = |n: u32, stream_id: u16, ssn: u16| {
        Chunk::Data(DataChunk {
            stream_id,
            ssn: Ssn(ssn),
            ..data_chunk(n)
        })
    };
    // the first message of stream 0 is missing
    t.send([on(1, 0, 1), on(2, 1, 0)]);
    assert_eq!(t.messages.iter().map(|m| m.stream_id).collect::<Vec<_>>(), [1]);
    t.send([on(0, 0, 0)]);
    let ids: Vec<_> = t.messages.iter().map(|m| m.payload_protocol_id).collect();
    assert_eq!(ids, [2, 0, 1]);
}

#[test]
fn s6_6_unordered_data_waits_for_nothing() {
    let mut t = Script::established(quiet());
    t.send([Chunk::Data(DataChunk {
        unordered: true,
        ..data_chunk(3)
    })]);
    assert_eq!(t.messages.len(), 1);
}

#[test]
fn s6_6_sequence_numbers_wrap() {
    let mut t = Script::established(quiet());
    let at = |n: u32| {
        Chunk::Data(DataChunk {
            ssn: Ssn(n as u16),
            ..data_chunk(n)
        })
    };
    for n in 0..65_540 {
        t.send([at(n)]);
        t.forget();
    }
    assert_eq!(t.messages.len(), 65_540);
}

#[test]
fn s6_9_fragments_are_b_middle_e_with_consecutive_tsns_and_one_stream_sequence_number() {
    let mut t = unbridled();
    t.user_sends(3500);
    let chunks = data_in(&t.take_all());
    let flags: Vec<_> = chunks.iter().map(|c| (c.beginning, c.ending)).collect();
    assert_eq!(flags, [(true, false), (false, false), (false, true)]);
    assert!(
        chunks
            .windows(2)
            .all(|w| w[1].tsn == w[0].tsn.next() && w[1].ssn == w[0].ssn)
    );
    assert_eq!(chunks.iter().map(|c| c.data.len()).sum::<usize>(), 3500);
}

#[test]
fn s6_9_a_message_is_delivered_only_when_all_its_fragments_are_there() {
    let mut t = Script::established(quiet());
    let fragment = |n: u32, beginning: bool, ending: bool| {
        Chunk::Data(DataChunk {
            beginning,
            ending,
            ssn: Ssn(0),
            ..data_chunk(n)
        })
    };
    t.send([fragment(2, false, true)]);
    t.send([fragment(0, true, false)]);
    assert!(t.messages.is_empty());
    t.send([fragment(1, false, false)]);
    let message = t.messages.pop_front().expect("message");
    assert_eq!(message.parts.iter().map(Data::len).sum::<usize>(), 12);
}

#[test]
fn s6_10_control_chunks_go_before_data_and_packets_keep_to_the_mtu() {
    let mut t = unbridled();
    t.send([data(0)]);
    for _ in 0..30 {
        t.user_sends(300);
    }
    let mut packets = t.take_all();
    let mut n = 0;
    while n < 20 {
        t.send([sack(t.our_tsn.add(n))]);
        packets.extend(t.take_all());
        n += 5;
    }
    assert!(packets.iter().any(|p| p.chunks.len() > 2));
    for packet in &packets {
        assert!(packet.len <= 1500, "{} bytes", packet.len);
        let first_data = packet.chunks.iter().position(|c| matches!(c, Chunk::Data(_)));
        let sack = packet.chunks.iter().position(|c| matches!(c, Chunk::Sack(_)));
        assert!(sack.is_none() || first_data.is_none() || sack < first_data);
    }
    assert!(
        packets
            .iter()
            .any(|p| p.chunks.iter().any(|c| matches!(c, Chunk::Sack(_)))),
        "the SACK that was owed travels with data"
    );
}

#[test]
fn s6_8_a_wrong_checksum_is_no_packet() {
    let t = Script::established(quiet());
    let mut bytes = Vec::new();
    segue_wire::sctp::SctpPacket {
        source_port: 5000,
        destination_port: 5000,
        verification_tag: t.our_tag,
        chunks: [data(0)].into_iter().collect(),
    }
    .emit(&mut bytes);
    assert!(segue_wire::sctp::SctpPacket::parse(&bytes.clone().into()).is_ok());
    bytes[8] ^= 1;
    assert!(segue_wire::sctp::SctpPacket::parse(&bytes.into()).is_err());
}

#[test]
fn s6_9_a_message_longer_than_the_receive_buffer_comes_in_pieces_if_the_user_takes_them() {
    let mut t = Script::established(Config {
        receive_buffer: 2000,
        ..quiet()
    });
    for n in 0..6 {
        t.send([Chunk::Data(DataChunk {
            beginning: n == 0,
            ending: n == 5,
            ssn: Ssn(0),
            data: Data::Bytes(vec![n as u8; 1000].into()),
            ..data_chunk(n)
        })]);
    }
    assert!(t.association().is_established());
    let parts: Vec<_> = t.messages.iter().flat_map(|m| m.parts.clone()).collect();
    let expected: Vec<_> = (0..6).map(|n| Data::Bytes(vec![n; 1000].into())).collect();
    assert_eq!(parts, expected);
    assert!(t.messages.len() > 1 && t.messages[0].first && !t.messages[0].last);
    assert!(t.messages.iter().last().is_some_and(|m| m.last && !m.first));
}
