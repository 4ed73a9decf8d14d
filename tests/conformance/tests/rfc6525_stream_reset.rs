//! RFC 6525: streams and TSNs that begin anew.

use segue_conformance::expect;
use segue_conformance::script::chunks::{data, data_chunk, extensions, init, peer_tsn, sack};
use segue_conformance::script::{Script, ms, peer, quiet};
use segue_proto::sctp::{Config, Event, SendOptions};
use segue_wire::sctp::{
    Chunk, DataChunk, ForwardTsn, Parameter, ReConfig, ReConfigParameter as P, ReConfigResult,
};
use segue_wire::{Data, ReConfigSerial, Ssn};

/// A peer that knows RE-CONFIG.
fn resettable() -> Script {
    Script::established_with(quiet(), 1, vec![extensions(&[0x82])])
}

/// The peer's request number `n`: the first has its initial TSN (section 4.1).
fn serial(n: u32) -> ReConfigSerial {
    ReConfigSerial(init().initial_tsn.0).add(n)
}

fn ask(t: &mut Script, parameter: P) -> (ReConfigSerial, ReConfigResult) {
    t.send([Chunk::ReConfig(Box::new(ReConfig {
        parameters: vec![parameter],
    }))]);
    result_of(t)
}

/// The answer that is sent next, SACKs passed over.
fn result_of(t: &mut Script) -> (ReConfigSerial, ReConfigResult) {
    loop {
        let sent = t.receive();
        let found = sent.chunks.iter().find_map(|c| match c {
            Chunk::ReConfig(r) => r.parameters.iter().find_map(|p| match p {
                P::Response { response, result, .. } => Some((*response, *result)),
                _ => None,
            }),
            _ => None,
        });
        if let Some(found) = found {
            return found;
        }
    }
}

fn outgoing(t: &Script, n: u32, last: u32, streams: Vec<u16>) -> P {
    P::OutgoingSsnReset {
        request: serial(n),
        response: ReConfigSerial(t.our_tsn.0).previous(),
        last_assigned_tsn: peer_tsn(0).add(last).previous(),
        streams,
    }
}

#[test]
fn s5_2_2_an_outgoing_reset_lets_the_streams_begin_at_0() {
    let mut t = resettable();
    t.send([data(0), data(1)]);
    let reset = outgoing(&t, 0, 2, vec![0]);
    assert_eq!(ask(&mut t, reset), (serial(0), ReConfigResult::Performed));
    t.expect_event(&Event::IncomingStreamsReset(vec![0]));
    t.send([Chunk::Data(DataChunk {
        ssn: Ssn(0),
        ..data_chunk(2)
    })]);
    assert_eq!(t.messages.len(), 3);
}

#[test]
fn s5_2_2_e2_a_reset_waits_for_the_tsns_before_it() {
    let mut t = resettable();
    let reset = outgoing(&t, 0, 1, vec![0]);
    assert_eq!(ask(&mut t, reset.clone()).1, ReConfigResult::InProgress);
    // what comes behind it waits, what is before it goes first
    t.send([Chunk::Data(DataChunk {
        ssn: Ssn(0),
        payload_protocol_id: 99,
        ..data_chunk(1)
    })]);
    assert!(t.messages.is_empty());
    t.send([data(0)]);
    let ids: Vec<_> = t.messages.iter().map(|m| m.payload_protocol_id).collect();
    assert_eq!(ids, [0, 99]);
    t.forget();
    assert_eq!(ask(&mut t, reset).1, ReConfigResult::Performed);
}

#[test]
fn s5_2_a_request_out_of_sequence_is_refused_and_one_repeated_is_answered_again() {
    let mut t = resettable();
    let reset = outgoing(&t, 0, 0, vec![0]);
    let first = ask(&mut t, reset.clone());
    assert_eq!(ask(&mut t, reset), first);
    let far = outgoing(&t, 5, 0, vec![0]);
    assert_eq!(ask(&mut t, far), (serial(5), ReConfigResult::BadSequenceNumber));
}

#[test]
fn s5_2_2_e3_streams_that_do_not_exist_are_a_wrong_stream_number() {
    let mut t = resettable();
    let reset = outgoing(&t, 0, 0, vec![4000]);
    assert_eq!(ask(&mut t, reset).1, ReConfigResult::WrongSsn);
}

#[test]
fn s5_1_2_our_reset_is_sent_when_everything_before_it_is_acknowledged_or_names_the_last_tsn() {
    let mut t = resettable();
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    t.command(|a, now| a.reset_streams(now, &[0])).expect("reset");
    t.send([sack(t.our_tsn)]);
    let (first, last) = (t.our_tsn, t.our_tsn);
    let request = loop {
        let sent = t.receive();
        if let Some(Chunk::ReConfig(r)) = sent.chunks.first() {
            break r.parameters[0].clone();
        }
    };
    let P::OutgoingSsnReset {
        request,
        last_assigned_tsn,
        streams,
        ..
    } = request
    else {
        panic!("{request:?}")
    };
    assert_eq!(
        (request.0, last_assigned_tsn, &streams[..]),
        (first.0, last, &[0][..])
    );
    t.send([Chunk::ReConfig(Box::new(ReConfig {
        parameters: vec![P::Response {
            response: request,
            result: ReConfigResult::Performed,
            next_tsns: None,
        }],
    }))]);
    t.forget();
    t.command(|a, now| a.send(now, 0, Data::Bytes("x".into()), SendOptions::default()))
        .expect("send");
    expect!(t, Chunk::Data(chunk) if chunk.ssn == Ssn(0) && chunk.tsn == t.our_tsn.add(1));
}

#[test]
fn s5_1_a_request_is_repeated_until_it_is_answered() {
    let mut t = resettable();
    t.command(|a, now| a.reset_streams(now, &[0])).expect("reset");
    let first = expect!(t, Chunk::ReConfig(r) => r.clone());
    for _ in 0..3 {
        expect!(t, Chunk::ReConfig(r) if *r == first);
    }
}

#[test]
fn s3_1_a_peer_that_does_not_know_re_config_is_not_asked() {
    let mut t = Script::established(quiet());
    assert!(t.command(|a, now| a.reset_streams(now, &[0])).is_err());
    t.silence(ms(1000));
}

#[test]
fn s5_1_4_a_peer_may_send_more_than_the_buffer_holds_before_it_resets_the_association() {
    // what it had queued goes first (Linux does so); the answer that tells where the new numbers begin comes last
    const MESSAGES: u32 = 10;
    for (before, reset_at) in [(0, 0), (0, 4), (0, MESSAGES), (2, 2), (2, 7), (2, MESSAGES)] {
        let config = Config {
            receive_buffer: 3000,
            ..quiet()
        };
        let mut t = Script::established_with(config, 1, vec![extensions(&[0x82])]);
        let number = |n: u32| if n < reset_at { n } else { n - reset_at };
        let message = |n: u32| {
            Chunk::Data(DataChunk {
                ssn: Ssn(number(n) as u16),
                data: Data::Bytes(vec![0; 1000].into()),
                ..data_chunk(n)
            })
        };
        for n in 0..before {
            t.send([message(n)]);
        }
        t.forget();
        t.command(|a, now| a.reset_association(now)).expect("a reset");
        let Chunk::ReConfig(asked) = t.receive().chunks.remove(0) else {
            panic!("no request")
        };
        let response = asked.parameters[0].request().expect("a request");
        for n in before..MESSAGES {
            // the first may find the window closed
            t.send([message(n)]);
            t.send([message(n)]);
            assert!(t.is_alive(), "{:?}", t.events);
        }
        let next_tsns = Some((peer_tsn(reset_at), t.our_tsn.add(1 << 31)));
        t.send([Chunk::ReConfig(Box::new(ReConfig {
            parameters: vec![P::Response {
                response,
                result: ReConfigResult::Performed,
                next_tsns,
            }],
        }))]);
        // and again what found it closed for want of that
        for n in before..MESSAGES + 2 {
            t.send([message(n)]);
        }
        let ids: Vec<_> = t.messages.iter().map(|m| m.payload_protocol_id).collect();
        assert_eq!(ids, (0..MESSAGES + 2).collect::<Vec<_>>(), "{before}, {reset_at}");
    }
}

/// A peer that knows RE-CONFIG and FORWARD TSN, asked for a reset of the association: the request. The user's buffer is of
/// `receive_buffer` bytes.
fn asked_to_reset(receive_buffer: u32) -> (Script, ReConfigSerial) {
    let config = Config {
        receive_buffer,
        ..quiet()
    };
    let parameters = vec![Parameter::ForwardTsnSupported, extensions(&[0x82, 0xc0])];
    let mut t = Script::established_with(config, 1, parameters);
    t.command(|a, now| a.reset_association(now)).expect("a reset");
    let Chunk::ReConfig(asked) = t.receive().chunks.remove(0) else {
        panic!("no request")
    };
    let response = asked.parameters[0].request().expect("a request");
    (t, response)
}

fn answer(t: &mut Script, response: ReConfigSerial, next_tsn: Option<u32>) {
    let next_tsns = next_tsn.map(|n| (peer_tsn(n), t.our_tsn.add(1 << 31)));
    let result = match next_tsns {
        Some(_) => ReConfigResult::Performed,
        None => ReConfigResult::Denied,
    };
    t.send([Chunk::ReConfig(Box::new(ReConfig {
        parameters: vec![P::Response {
            response,
            result,
            next_tsns,
        }],
    }))]);
}

/// Message `n` of stream 0, of `len` bytes, where the stream sequence numbers begin again with message `reset_at`; and the FORWARD
/// TSN of a peer that has given it up.
fn message(n: u32, len: usize, reset_at: u32) -> (Chunk, Chunk) {
    let ssn = Ssn(if n < reset_at { n } else { n - reset_at } as u16);
    let data = DataChunk {
        ssn,
        data: Data::Bytes(vec![0; len].into()),
        ..data_chunk(n)
    };
    let forward = ForwardTsn {
        new_cumulative_tsn: peer_tsn(n),
        skipped: vec![(0, ssn)],
    };
    (Chunk::Data(data), Chunk::ForwardTsn(Box::new(forward)))
}

#[test]
fn s5_1_4_what_is_given_up_before_the_answer_is_passed_over_on_its_side_of_the_reset() {
    // RFC 3758 section 3.6; the second message is given up, the others are reliable
    for (reset_at, next_tsn) in [(0, Some(0)), (2, Some(2)), (3, Some(3)), (u32::MAX, None)] {
        let (mut t, response) = asked_to_reset(100_000);
        for n in [0, 1, 2] {
            let (data, forward) = message(n, 100, reset_at);
            t.send([if n == 1 { forward } else { data }]);
        }
        assert!(t.messages.is_empty(), "what came waits for the answer");
        answer(&mut t, response, next_tsn);
        t.send([message(3, 100, reset_at).0]);
        let ids: Vec<_> = t.messages.iter().map(|m| m.payload_protocol_id).collect();
        assert_eq!(ids, [0, 2, 3], "{reset_at}");
        assert_eq!(t.association().a_rwnd(), 100_000);
    }
}

#[test]
fn s5_1_4_a_peer_may_give_up_some_of_more_than_the_buffer_holds_before_it_resets_the_association() {
    const MESSAGES: u32 = 10;
    const GIVEN_UP: u32 = 1;
    for reset_at in [0, 1, 2, 4, MESSAGES] {
        let (mut t, response) = asked_to_reset(3000);
        for n in 0..MESSAGES {
            let (data, forward) = message(n, 1000, reset_at);
            // the first may find the window closed
            for _ in 0..2 {
                t.send([if n == GIVEN_UP {
                    forward.clone()
                } else {
                    data.clone()
                }]);
            }
            assert!(t.is_alive(), "{:?}", t.events);
        }
        answer(&mut t, response, Some(reset_at));
        // and again what it found closed for want of that
        for n in GIVEN_UP + 1..MESSAGES + 2 {
            t.send([message(n, 1000, reset_at).0]);
        }
        let ids: Vec<_> = t.messages.iter().map(|m| m.payload_protocol_id).collect();
        let reliable = (0..MESSAGES + 2).filter(|&n| n != GIVEN_UP);
        assert_eq!(ids, reliable.collect::<Vec<_>>(), "{reset_at}");
    }
}

#[test]
fn s5_2_a_request_from_an_address_not_confirmed_yet_is_answered_to_one_that_is() {
    // RFC 9260 section 5.4: nothing but heartbeats and their answers may go there
    for deferred in [false, true] {
        let parameters = vec![extensions(&[0x82]), Parameter::Ipv6Address(peer(2))];
        let mut t = Script::established_with(quiet(), 1, parameters);
        let nonce = expect!(t, Chunk::Heartbeat(info) => info.clone());
        t.forget();
        let reset = outgoing(&t, 0, u32::from(deferred), vec![0]);
        let request = Chunk::ReConfig(Box::new(ReConfig {
            parameters: vec![reset],
        }));
        t.send_from(peer(2), [request.clone()]);
        let first = if deferred {
            ReConfigResult::InProgress
        } else {
            ReConfigResult::Performed
        };
        assert_eq!(result_of(&mut t), (serial(0), first));
        assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(1)));
        if deferred {
            t.send([data(0)]);
            assert_eq!(result_of(&mut t), (serial(0), ReConfigResult::Performed));
            assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(1)));
        }
        // and there, once it is
        t.send_from(peer(2), [Chunk::HeartbeatAck(nonce)]);
        t.forget();
        t.send_from(peer(2), [request]);
        assert_eq!(result_of(&mut t), (serial(0), ReConfigResult::Performed));
        assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(2)));
    }
}
