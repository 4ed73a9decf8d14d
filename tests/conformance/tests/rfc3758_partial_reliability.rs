//! RFC 3758: messages that are given up, and FORWARD-TSN.

use segue_conformance::expect;
use segue_conformance::script::chunks::{data, data_chunk, extensions, init, peer_tsn, sack, sack_with_gaps};
use segue_conformance::script::{Script, ms, quiet};
use segue_proto::sctp::{Reliability, SendOptions};
use segue_wire::sctp::{Chunk, DataChunk, ForwardTsn, Init, Parameter};
use segue_wire::{Data, Ssn};

/// A peer that knows FORWARD-TSN.
fn partial() -> Script {
    let parameters = vec![Parameter::ForwardTsnSupported, extensions(&[0xc0])];
    Script::established_with(quiet(), 1, parameters)
}

fn forward(n: u32, skipped: &[(u16, u16)]) -> Chunk {
    Chunk::ForwardTsn(Box::new(ForwardTsn {
        new_cumulative_tsn: peer_tsn(n),
        skipped: skipped.iter().map(|&(stream, ssn)| (stream, Ssn(ssn))).collect(),
    }))
}

fn send(t: &mut Script, len: usize, reliability: Reliability) {
    let options = SendOptions {
        reliability,
        ..SendOptions::default()
    };
    t.command(|a, now| a.send(now, 0, Data::Bytes(vec![1; len].into()), options))
        .expect("send");
}

#[test]
fn s3_1_the_init_says_that_forward_tsn_is_supported() {
    let mut t = Script::connecting(quiet());
    let own = expect!(t, Chunk::Init(init) => init.clone());
    assert!(own.parameters.contains(&Parameter::ForwardTsnSupported));
    let mut t = Script::listening(quiet());
    t.send_with_tag(
        0,
        [Chunk::Init(Box::new(Init {
            parameters: vec![Parameter::ForwardTsnSupported],
            ..init()
        }))],
    );
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    assert!(ack.parameters.contains(&Parameter::ForwardTsnSupported));
}

#[test]
fn s3_5_a_message_whose_lifetime_has_passed_is_not_sent_again_and_forward_tsn_says_so() {
    let mut t = partial();
    send(&mut t, 100, Reliability::Timed { lifetime: ms(500) });
    expect!(t, Chunk::Data(chunk) if chunk.tsn == t.our_tsn);
    // T3-rtx after a second: C1 to C3
    let sent = t.receive();
    assert!(sent.at == t.now && t.now.as_nanos() >= 500_000_000);
    let first = t.our_tsn;
    assert!(
        sent.chunks
            .iter()
            .any(|c| matches!(c, Chunk::ForwardTsn(f) if f.new_cumulative_tsn == first && f.skipped == [(0, Ssn(0))])),
        "{sent:?}"
    );
    assert!(sent.chunks.iter().all(|c| !matches!(c, Chunk::Data(_))));
}

#[test]
fn s3_5_c5_forward_tsn_is_repeated_until_it_is_acknowledged() {
    let mut t = partial();
    send(&mut t, 100, Reliability::Timed { lifetime: ms(500) });
    expect!(t, Chunk::Data(_));
    for _ in 0..3 {
        expect!(t, Chunk::ForwardTsn(_));
    }
    t.send([sack(t.our_tsn)]);
    t.silence(ms(60_000));
    // and data goes on after it
    send(&mut t, 10, Reliability::Full);
    expect!(t, Chunk::Data(chunk) if chunk.tsn == t.our_tsn.add(1) && chunk.ssn == Ssn(1));
}

#[test]
fn s3_5_a_peer_that_does_not_know_it_gets_everything() {
    let mut t = Script::established(quiet());
    send(&mut t, 100, Reliability::Timed { lifetime: ms(500) });
    for _ in 0..3 {
        expect!(t, Chunk::Data(chunk) if chunk.tsn == t.our_tsn);
    }
}

#[test]
fn s3_6_the_receiver_moves_its_cumulative_tsn_and_answers_at_once() {
    let mut t = partial();
    t.send([forward(2, &[(0, 2)])]);
    let now = t.now;
    t.wait(ms(300));
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(2));
    assert!(t.last.as_ref().is_some_and(|p| p.at.since(now) <= ms(200)));
    // what was given up is a duplicate if it comes after all
    t.send([data(1)]);
    assert!(t.messages.is_empty());
    t.send([data(3)]);
    assert_eq!(t.messages.len(), 1);
}

#[test]
fn s3_6_messages_behind_what_was_skipped_in_their_stream_are_delivered() {
    let mut t = partial();
    t.send([data(1), data(2)]);
    assert!(t.messages.is_empty(), "they wait for the first");
    t.send([forward(0, &[(0, 0)])]);
    assert_eq!(t.messages.len(), 2);
    t.forget();
    t.send([data(3)]);
    t.wait(ms(300));
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(3) && sack.gap_ack_blocks.is_empty());
}

#[test]
fn s3_6_parts_of_a_message_that_was_given_up_are_thrown_away() {
    let mut t = partial();
    t.send([Chunk::Data(DataChunk {
        ending: false,
        ..data_chunk(0)
    })]);
    let full = t.association().a_rwnd();
    t.send([forward(1, &[(0, 0)])]);
    assert!(t.association().a_rwnd() > full, "their bytes are free again");
    t.send([Chunk::Data(DataChunk {
        ssn: Ssn(1),
        ..data_chunk(2)
    })]);
    assert_eq!(t.messages.len(), 1);
}

#[test]
fn s3_6_a_forward_tsn_that_does_not_go_forward_changes_nothing() {
    let mut t = partial();
    t.send([data(0)]);
    t.send([data(1)]);
    t.forget();
    // the stream sequence number that it skips to would have what follows wait for ever
    t.send([forward(0, &[(0, 9)])]);
    // the SACK may have been lost: it is repeated at once, and has not gone back
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(1));
    assert_eq!(t.last.as_ref().map(|p| p.at), Some(t.now));
    t.send([data(2)]);
    assert_eq!(t.messages.len(), 3);
}

#[test]
fn s3_5_gap_ack_blocks_still_count_and_given_up_chunks_before_them_are_skipped() {
    let mut t = partial();
    send(&mut t, 100, Reliability::Timed { lifetime: ms(500) });
    send(&mut t, 100, Reliability::Full);
    t.forget();
    t.send([sack_with_gaps(t.our_tsn.previous(), 100_000, &[(2, 2)])]);
    t.wait(ms(1000));
    let sent = t.take_all();
    let first = t.our_tsn;
    // the second was received: the new cumulative TSN may stand on it
    assert!(
        sent.iter()
            .flat_map(|p| &p.chunks)
            .any(|c| matches!(c, Chunk::ForwardTsn(f) if first.at_or_before(f.new_cumulative_tsn))),
        "{sent:?}"
    );
    assert!(
        sent.iter()
            .flat_map(|p| &p.chunks)
            .all(|c| !matches!(c, Chunk::Data(_)))
    );
}
