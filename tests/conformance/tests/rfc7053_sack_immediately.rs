//! RFC 7053 and RFC 9260 section 3.3.1: the I bit of DATA.

use segue_conformance::expect;
use segue_conformance::script::chunks::{data, data_chunk, peer_tsn};
use segue_conformance::script::{Script, ms, quiet};
use segue_proto::sctp::{Config, SackImmediately, SendOptions};
use segue_wire::Data;
use segue_wire::sctp::{Chunk, DataChunk};

fn asking() -> SendOptions {
    SendOptions {
        sack_immediately: true,
        ..SendOptions::default()
    }
}

#[test]
fn s5_2_a_receiver_acknowledges_data_with_the_i_bit_without_delay() {
    let mut t = Script::established(quiet());
    t.send([Chunk::Data(DataChunk {
        immediate: true,
        ..data_chunk(0)
    })]);
    let now = t.now;
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(0));
    assert_eq!(t.last.as_ref().map(|p| p.at), Some(now));
    // and data without it with delay
    t.send([data(1)]);
    t.silence(ms(199));
}

#[test]
fn s4_the_user_may_ask_for_it_and_the_last_fragment_carries_it() {
    let mut t = Script::established(quiet());
    t.command(|a, now| a.send(now, 0, Data::Bytes(vec![1; 3000].into()), asking()))
        .expect("send");
    let bits: Vec<_> = t
        .take_all()
        .iter()
        .flat_map(|p| p.chunks.clone())
        .filter_map(|c| match c {
            Chunk::Data(chunk) => Some((chunk.ending, chunk.immediate)),
            _ => None,
        })
        .collect();
    assert_eq!(bits, [(false, false), (false, false), (true, true)]);
}

#[test]
fn s5_1_the_last_data_before_a_shutdown_carries_it() {
    let mut t = Script::established(quiet());
    t.command(|a, now| {
        a.send(now, 0, Data::Bytes("last".into()), SendOptions::default())
            .expect("send");
        a.shutdown(now);
    });
    expect!(t, Chunk::Data(chunk) if chunk.immediate);
}

#[test]
fn s4_it_can_be_switched_off() {
    let mut t = Script::established(Config {
        sack_immediately: SackImmediately::Never,
        ..quiet()
    });
    t.command(|a, now| a.send(now, 0, Data::Bytes("x".into()), asking()))
        .expect("send");
    expect!(t, Chunk::Data(chunk) if !chunk.immediate);
}
