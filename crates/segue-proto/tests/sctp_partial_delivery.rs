//! Messages delivered in pieces (RFC 6458 sections 6.1.7 and 8.1.21), and what small chunks cost their receiver.

use crate::common::*;
use segue_proto::Duration;
use segue_proto::sctp::{Config, Event, Message, Reliability, SendOptions};
use segue_wire::sctp::{Chunk, DataChunk};
use segue_wire::{Data, Ssn};

fn config(receive_buffer: u32, partial_delivery_point: Option<u32>) -> Config {
    Config {
        receive_buffer,
        partial_delivery_point,
        ..Config::default()
    }
}

fn len(message: &Message) -> usize {
    message.parts.iter().map(Data::len).sum()
}

/// Whether pieces are the bytes of one message that begins at `offset`, all of `total`.
fn make_up(pieces: &[&Message], offset: u64, total: usize) -> bool {
    let mut at = offset;
    let parts = pieces.iter().flat_map(|p| &p.parts);
    let intact = parts.fold(true, |ok, part| {
        let fits = part.is_synthetic_at(at);
        at += part.len() as u64;
        ok && fits
    });
    let (firsts, lasts) = (
        pieces.iter().position(|p| p.first),
        pieces.iter().position(|p| p.last),
    );
    intact
        && at - offset == total as u64
        && (firsts, lasts) == (Some(0), Some(pieces.len() - 1))
        && pieces.iter().filter(|p| p.first || p.last).count() == 2.min(pieces.len())
}

#[test]
fn a_message_longer_than_the_receive_buffer_comes_in_pieces() {
    let mut net = Net::established(config(20_000, None), [1, 1]);
    net.send(A, 3, synthetic(0, 200_000));
    net.send(A, 3, synthetic(200_000, 100));
    net.run_for(Duration::from_secs(60));
    let messages: Vec<&Message> = net.messages[B].iter().collect();
    let (pieces, rest) = messages.split_at(messages.len() - 1);
    assert!(pieces.len() > 2);
    assert!(make_up(pieces, 0, 200_000));
    assert!(rest[0].is_complete() && make_up(rest, 200_000, 100));
    assert!(net.association(A).is_sender_dry());
    assert_eq!(net.association(B).a_rwnd(), 20_000);
}

#[test]
fn a_message_below_the_point_comes_whole_and_one_above_it_in_pieces_from_there() {
    for (total, point, pieces) in [
        (9_000, 10_000, false),
        (30_000, 10_000, true),
        (30_000, 40_000, false),
    ] {
        let mut net = Net::established(config(100_000, Some(point)), [1, 1]);
        net.send(A, 0, synthetic(0, total));
        net.run_for(ms(3000));
        let messages: Vec<&Message> = net.messages[B].iter().collect();
        assert!(make_up(&messages, 0, total as usize));
        assert_eq!(messages.len() > 1, pieces);
        if pieces {
            assert!(len(messages[0]) >= point as usize && len(messages[0]) < point as usize + 1500);
        }
    }
}

#[test]
fn whole_messages_of_other_streams_come_between_the_pieces_and_its_own_stream_waits() {
    let mut net = Net::established(config(100_000, Some(10_000)), [1, 1]);
    // one fragment is late by some hundred milliseconds
    let mut lost = false;
    net.rule = Box::new(move |d| {
        let late = |c: &DataChunk| matches!(c.data, Data::Synthetic { offset, .. } if (20_000..21_500).contains(&offset));
        if d.from == A && !lost && d.data().any(late) {
            lost = true;
            return Vec::new();
        }
        vec![ms(10)]
    });
    net.send(A, 0, synthetic(0, 30_000));
    net.send(A, 0, synthetic(30_000, 10));
    net.send(A, 1, synthetic(90_000, 10));
    net.run_for(ms(5000));
    let streams: Vec<u16> = net.messages[B].iter().map(|m| m.stream_id).collect();
    let other = streams.iter().position(|&s| s == 1).unwrap();
    assert!(other > 0 && other < streams.len() - 2, "{streams:?}");
    let own: Vec<&Message> = net.messages[B].iter().filter(|m| m.stream_id == 0).collect();
    let (pieces, rest) = own.split_at(own.len() - 1);
    assert!(make_up(pieces, 0, 30_000) && make_up(rest, 30_000, 10));
}

#[test]
fn only_the_next_message_of_its_stream_is_delivered_in_pieces() {
    let mut net = Net::established(config(100_000, Some(5_000)), [1, 1]);
    let mut lost = 0;
    net.rule = Box::new(move |d| {
        let first = |c: &DataChunk| c.data.len() == 77;
        if d.from == A && lost < 2 && d.data().any(first) {
            lost += 1;
            return Vec::new();
        }
        vec![ms(10)]
    });
    net.send(A, 0, synthetic(0, 77));
    net.send(A, 0, synthetic(77, 20_000));
    net.run_for(Duration::from_secs(20));
    let messages: Vec<&Message> = net.messages[B].iter().collect();
    assert!(make_up(&messages[..1], 0, 77));
    assert!(make_up(&messages[1..], 77, 20_000));
}

#[test]
fn a_message_given_up_amid_its_delivery_is_told_of() {
    // RFC 3758 section 3.6, last but one paragraph
    let mut net = Net::established(config(100_000, Some(5_000)), [1, 1]);
    net.rule = Box::new(|d| {
        let lost = |c: &DataChunk| matches!(c.data, Data::Synthetic { offset, .. } if (20_000..21_500).contains(&offset));
        if d.from == A && d.data().any(lost) {
            Vec::new()
        } else {
            vec![ms(10)]
        }
    });
    let options = SendOptions {
        reliability: Reliability::Retransmissions { limit: 1 },
        ..SendOptions::default()
    };
    net.command(A, |a, now| a.send(now, 2, synthetic(0, 30_000), options))
        .unwrap();
    net.send(A, 2, synthetic(50_000, 10));
    net.run_for(Duration::from_secs(30));
    assert!(net.has_event(B, &Event::PartialDeliveryAborted(2)));
    let messages: Vec<&Message> = net.messages[B].iter().collect();
    let (last, pieces) = messages.split_last().unwrap();
    assert!(make_up(&[last], 50_000, 10));
    assert!(pieces[0].first && pieces.iter().all(|p| !p.last));
    assert_eq!(net.association(B).a_rwnd(), 100_000);
}

#[test]
fn with_partial_delivery_off_a_message_that_does_not_fit_aborts_the_association() {
    let mut net = Net::established(config(20_000, Some(u32::MAX)), [1, 1]);
    net.send(A, 0, synthetic(0, 100_000));
    net.run_for(Duration::from_secs(60));
    assert!(
        matches!(net.events[B].last(), Some((_, Event::Aborted { .. }))),
        "{:?}",
        net.events[B]
    );
}

#[test]
fn a_reader_who_takes_nothing_closes_the_window_and_gets_the_rest_later() {
    let mut net = Net::established(config(20_000, None), [1, 1]);
    net.reading[B] = false;
    net.send(A, 0, synthetic(0, 100_000));
    net.run_for(Duration::from_secs(30));
    assert!(net.association(B).is_established());
    assert!(net.association(B).a_rwnd() < 1500);
    net.reading[B] = true;
    net.run_for(Duration::from_secs(200));
    let messages: Vec<&Message> = net.messages[B].iter().collect();
    assert!(make_up(&messages, 0, 100_000));
}

#[test]
fn many_small_chunks_use_up_the_window_before_they_use_up_memory() {
    // one byte each, with gaps between, so that nothing can be joined or delivered
    let buffer = 65_536;
    let mut net = Net::established(config(buffer, None), [1, 1]);
    net.tag_of(B);
    let first = net.log.iter().flat_map(|d| d.data()).map(|c| c.tsn).next();
    net.send(A, 0, synthetic(0, 1));
    let tsn = first
        .or(net.log.iter().flat_map(|d| d.data()).map(|c| c.tsn).next())
        .unwrap();
    net.run_for(ms(500));
    let base = net.association(B).counters().data_chunks_received;
    for i in 0..3_000_u32 {
        let chunk = Chunk::Data(DataChunk {
            tsn: tsn.add(10 + 2 * i),
            stream_id: 1,
            ssn: Ssn(1 + i as u16),
            payload_protocol_id: 0,
            unordered: false,
            beginning: i % 2 == 0,
            ending: i % 3 == 0,
            immediate: false,
            data: synthetic(u64::from(i), 1),
        });
        let packet = net.forge(B, address(A, 1), [chunk]);
        net.inject(B, packet);
    }
    let taken = net.association(B).counters().data_chunks_received - base;
    // 128 bytes a chunk: the buffer's worth for free, another on the window
    assert!((900..1100).contains(&taken), "{taken}");
    assert_eq!(net.association(B).a_rwnd(), 0);
    assert!(net.association(B).counters().refused.beyond_window > 1900);
    // what is next in order is always taken
    assert!(net.association(B).is_established());
}

#[test]
fn chunks_of_ordinary_size_are_charged_their_bytes_only() {
    let mut net = Net::established(config(65_536, None), [1, 1]);
    net.reading[B] = false;
    for i in 0..300 {
        net.send(A, 0, synthetic(i * 200, 200));
    }
    net.run_for(ms(3000));
    assert_eq!(net.association(B).counters().data_chunks_received, 300);
    assert_eq!(net.association(B).a_rwnd(), 65_536 - 60_000);
}
