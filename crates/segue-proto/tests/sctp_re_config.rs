//! Streams are reset and added (RFC 6525).

use crate::common::*;
use segue_proto::Duration;
use segue_proto::sctp::{
    Config, Event, Reliability, SendError, SendOptions, StreamError, StreamRefused, StreamRequest,
};
use segue_wire::sctp::{Chunk, ReConfig, ReConfigParameter as P, ReConfigResult};
use segue_wire::{Data, ReConfigSerial, Ssn, Tsn};

fn established() -> Net {
    Net::established(Config::default(), [1, 1])
}

/// RE-CONFIG parameters in the order in which they left, with their sender.
fn parameters(net: &Net) -> Vec<(usize, P)> {
    let packets = net.log.iter();
    packets
        .flat_map(|d| d.sctp().chunks.iter().map(move |c| (d.from, c)))
        .filter_map(|(from, c)| match c {
            Chunk::ReConfig(r) => Some((from, r.parameters.clone())),
            _ => None,
        })
        .flat_map(|(from, list)| list.into_iter().map(move |p| (from, p)))
        .collect()
}

fn results(net: &Net, from: usize) -> Vec<ReConfigResult> {
    parameters(net)
        .into_iter()
        .filter_map(|(f, p)| match p {
            P::Response { result, .. } if f == from => Some(result),
            _ => None,
        })
        .collect()
}

/// Stream and SSN of all DATA that `host` sent.
fn numbers(net: &Net, host: usize) -> Vec<(u16, u16)> {
    let sent = net.log.iter().filter(|d| d.from == host);
    sent.flat_map(|d| d.data().map(|c| (c.stream_id, c.ssn.0)))
        .collect()
}

fn offsets(net: &Net, host: usize) -> Vec<u64> {
    net.messages[host]
        .iter()
        .map(|m| match m.parts[0] {
            Data::Synthetic { offset, .. } => offset,
            Data::Bytes(_) => unreachable!(),
        })
        .collect()
}

fn answered(net: &Net, host: usize) -> Vec<(StreamRequest, Result<(), StreamRefused>)> {
    net.events[host]
        .iter()
        .filter_map(|(_, e)| match e {
            Event::StreamRequestAnswered { request, outcome } => Some((request.clone(), *outcome)),
            _ => None,
        })
        .collect()
}

fn forge(net: &mut Net, parameters: Vec<P>) {
    let packet = net.forge(
        B,
        address(A, 1),
        [Chunk::ReConfig(Box::new(ReConfig { parameters }))],
    );
    net.inject(B, packet);
}

/// The sequence number that A's next request has, from one that it sends.
fn next_serial(net: &mut Net) -> ReConfigSerial {
    net.command(A, |a, now| a.add_streams(now, 1, 0)).unwrap();
    net.run_for(ms(100));
    let serial = parameters(net).iter().find_map(|(_, p)| p.request()).unwrap();
    net.log.clear();
    net.events = [Vec::new(), Vec::new()];
    serial.next()
}

#[test]
fn an_outgoing_reset_begins_the_named_streams_at_zero_and_no_others() {
    let mut net = established();
    for i in 0..6 {
        net.send(A, (i % 3) as u16, synthetic(i * 100, 100));
    }
    net.run_for(ms(100));
    net.log.clear();
    net.command(A, |a, now| a.reset_streams(now, &[0, 2])).unwrap();
    // what is sent meanwhile on a stream that is reset waits, on another it does not
    for i in 6..9 {
        net.send(A, (i % 3) as u16, synthetic(i * 100, 100));
    }
    assert_eq!(numbers(&net, A), [(1, 2)]);
    net.run_for(ms(500));
    assert_eq!(numbers(&net, A), [(1, 2), (0, 0), (2, 0)]);
    let mut all = offsets(&net, B);
    all.sort_unstable();
    assert_eq!(all, (0..9).map(|i| i * 100).collect::<Vec<_>>());
    assert_eq!(
        answered(&net, A),
        [(StreamRequest::ResetOutgoing(vec![0, 2]), Ok(()))]
    );
    assert!(net.has_event(B, &Event::IncomingStreamsReset(vec![0, 2])));
    assert_eq!(results(&net, B), [ReConfigResult::Performed]);
    assert!(net.association(A).is_sender_dry());
}

#[test]
fn a_reset_of_all_streams_names_none() {
    let mut net = established();
    net.send(A, 5, synthetic(0, 100));
    net.run_for(ms(100));
    net.command(A, |a, now| a.reset_streams(now, &[])).unwrap();
    net.run_for(ms(100));
    net.log.clear();
    net.send(A, 5, synthetic(100, 100));
    assert_eq!(numbers(&net, A), [(5, 0)]);
    net.run_for(ms(100));
    assert_eq!(offsets(&net, B), [0, 100]);
    assert!(net.has_event(B, &Event::IncomingStreamsReset(vec![])));
}

#[test]
fn a_request_that_overtakes_data_is_deferred_until_the_data_is_there() {
    // RFC 6525 section 5.2.2 E2
    let mut net = established();
    net.rule = Box::new(|d| vec![if d.data().next().is_some() { ms(80) } else { ms(10) }]);
    net.send(A, 0, synthetic(0, 100));
    net.send(A, 0, synthetic(100, 100));
    net.command(A, |a, now| a.reset_streams(now, &[0])).unwrap();
    net.send(A, 0, synthetic(200, 100));
    net.run_for(ms(500));
    assert_eq!(
        results(&net, B),
        [ReConfigResult::InProgress, ReConfigResult::Performed]
    );
    assert_eq!(offsets(&net, B), [0, 100, 200]);
    assert_eq!(numbers(&net, A), [(0, 0), (0, 1), (0, 0)]);
    assert_eq!(answered(&net, A).len(), 1);
}

#[test]
fn data_sent_after_a_deferred_reset_waits_for_it() {
    // a peer that sends on at once, before it has its answer
    let mut net = established();
    let serial = next_serial(&mut net);
    net.send(A, 0, synthetic(0, 100));
    net.run_for(ms(50));
    let tsn = net.log.iter().flat_map(|d| d.data()).next().unwrap().tsn;
    net.messages = [Vec::new(), Vec::new()];
    let data = |tsn, ssn, offset| {
        Chunk::Data(segue_wire::sctp::DataChunk {
            tsn,
            stream_id: 0,
            ssn: Ssn(ssn),
            payload_protocol_id: 0,
            unordered: false,
            beginning: true,
            ending: true,
            immediate: false,
            data: synthetic(offset, 10),
        })
    };
    forge(
        &mut net,
        vec![P::OutgoingSsnReset {
            request: serial,
            response: ReConfigSerial(0),
            last_assigned_tsn: tsn.add(2),
            streams: vec![0],
        }],
    );
    // SSN 0 and 1 are of the new count; 2 is of the old one
    for (step, ssn, offset) in [(4, 1, 40), (3, 0, 30), (2, 2, 20)] {
        let packet = net.forge(B, address(A, 1), [data(tsn.add(step), ssn, offset)]);
        net.inject(B, packet);
    }
    assert_eq!(offsets(&net, B), [0_u64; 0]);
    let packet = net.forge(B, address(A, 1), [data(tsn.add(1), 1, 10)]);
    net.inject(B, packet);
    assert_eq!(offsets(&net, B), [10, 20, 30, 40]);
    assert_eq!(net.association(B).a_rwnd(), Config::default().receive_buffer);
}

#[test]
fn a_long_message_is_finished_before_its_stream_is_reset() {
    let mut net = established();
    net.send(A, 0, synthetic(0, 40_000));
    net.command(A, |a, now| a.reset_streams(now, &[0])).unwrap();
    net.send(A, 0, synthetic(90_000, 10));
    net.run_for(ms(2000));
    assert_eq!(offsets(&net, B), [0, 90_000]);
    assert_eq!(*numbers(&net, A).last().unwrap(), (0, 0));
    assert_eq!(answered(&net, A).len(), 1);
}

#[test]
fn an_incoming_reset_has_the_peer_reset_its_streams() {
    let mut net = established();
    net.send(B, 1, synthetic(0, 100));
    net.run_for(ms(100));
    net.log.clear();
    net.command(A, |a, now| a.reset_incoming_streams(now, &[1]))
        .unwrap();
    net.run_for(ms(200));
    net.send(B, 1, synthetic(100, 100));
    net.run_for(ms(100));
    assert_eq!(numbers(&net, B), [(1, 0)]);
    assert_eq!(offsets(&net, A), [0, 100]);
    assert_eq!(
        answered(&net, A),
        [(StreamRequest::ResetIncoming(vec![1]), Ok(()))]
    );
    assert_eq!(
        answered(&net, B),
        [(StreamRequest::ResetOutgoing(vec![1]), Ok(()))]
    );
    assert!(net.has_event(A, &Event::IncomingStreamsReset(vec![1])));
    // section 5.1.2: the peer's request names the one that it answers
    let requests: Vec<_> = parameters(&net)
        .into_iter()
        .filter(|p| p.1.request().is_some())
        .collect();
    let P::OutgoingSsnReset { response, .. } = &requests[1].1 else {
        panic!("{requests:?}");
    };
    assert_eq!(Some(*response), requests[0].1.request());
}

#[test]
fn lost_requests_and_responses_are_made_good_by_t_reconfig() {
    for lost in 1..6 {
        let mut net = established();
        let mut count = 0;
        net.rule = Box::new(move |d| {
            let ours = d.sctp().chunks.iter().any(|c| matches!(c, Chunk::ReConfig(_)));
            count += u32::from(ours);
            if ours && count <= lost {
                Vec::new()
            } else {
                vec![ms(10)]
            }
        });
        net.send(A, 0, synthetic(0, 100));
        net.command(A, |a, now| a.reset_streams(now, &[0])).unwrap();
        net.send(A, 0, synthetic(100, 100));
        net.run_for(Duration::from_secs(100));
        assert_eq!(offsets(&net, B), [0, 100]);
        assert_eq!(answered(&net, A).len(), 1);
        let requests: Vec<_> = parameters(&net)
            .into_iter()
            .filter_map(|(_, p)| p.request())
            .collect();
        assert!(
            requests.windows(2).all(|w| w[0] == w[1]),
            "the same request again"
        );
        let resets = net.events[B]
            .iter()
            .filter(|e| matches!(e.1, Event::IncomingStreamsReset(_)));
        assert_eq!(resets.count(), 1, "carried out once");
        assert_eq!(net.association(A).paths().next().unwrap().error_count, 0);
    }
}

#[test]
fn a_peer_that_never_answers_is_lost() {
    let mut net = Net::established(
        Config {
            association_max_retrans: 3,
            hb_interval: None,
            ..Config::default()
        },
        [1, 1],
    );
    net.rule = Box::new(|_| Vec::new());
    net.command(A, |a, now| a.add_streams(now, 1, 0)).unwrap();
    net.run_for(Duration::from_secs(100));
    assert!(net.has_event(A, &Event::Lost));
}

#[test]
fn a_reset_of_the_association_begins_tsns_and_all_streams_anew() {
    // RFC 6525 sections 5.1.4 and 5.2.4
    let mut net = established();
    for i in 0..10 {
        net.send(A, 1, synthetic(i * 100, 100));
        net.send(B, 2, synthetic(i * 100, 100));
    }
    net.command(A, |a, now| a.reset_association(now)).unwrap();
    // both ends go on sending
    for i in 10..20 {
        net.send(A, 1, synthetic(i * 100, 100));
        net.send(B, 2, synthetic(i * 100, 100));
    }
    net.run_for(ms(2000));
    assert_eq!(answered(&net, A), [(StreamRequest::ResetAssociation, Ok(()))]);
    assert!(net.has_event(B, &Event::AssociationReset));
    let in_order: Vec<u64> = (0..20).map(|i| i * 100).collect();
    assert_eq!(offsets(&net, A), in_order);
    assert_eq!(offsets(&net, B), in_order);
    assert!(net.association(A).is_sender_dry() && net.association(B).is_sender_dry());
    // the receiver of the request moved the requester's TSNs by half the number space
    let tsns: Vec<Tsn> = net
        .log
        .iter()
        .filter(|d| d.from == A)
        .flat_map(|d| d.data().map(|c| c.tsn))
        .collect();
    assert_eq!(tsns[10].distance_from(tsns[9]), (1 << 31) + 1);
    assert_eq!(numbers(&net, A)[10], (1, 0));
    for host in [A, B] {
        net.send(host, 1, synthetic(5000, 100));
        net.send(host, 2, synthetic(6000, 100));
    }
    net.run_for(ms(500));
    assert_eq!(offsets(&net, A)[20..], [5000, 6000]);
    assert_eq!(offsets(&net, B)[20..], [5000, 6000]);
}

#[test]
fn a_reset_of_the_association_waits_for_a_message_that_is_longer_than_the_buffer() {
    let config = Config {
        receive_buffer: 20_000,
        ..Config::default()
    };
    for before in 0..2 {
        let mut net = Net::established(config.clone(), [1, 1]);
        for i in 0..before {
            net.send(B, 0, synthetic(i * 100, 100));
        }
        net.send(B, 0, synthetic(1000, 100_000));
        net.run_for(ms(25));
        net.command(A, |a, now| a.reset_association(now)).unwrap();
        net.send(B, 0, synthetic(200_000, 100));
        net.run_for(Duration::from_secs(20));
        assert_eq!(answered(&net, A), [(StreamRequest::ResetAssociation, Ok(()))]);
        let bytes: usize = net.messages[A].iter().flat_map(|m| &m.parts).map(Data::len).sum();
        assert_eq!(bytes, 100 * before as usize + 100_000 + 100);
        assert_eq!(offsets(&net, A).last(), Some(&200_000));
        assert_eq!(numbers(&net, B).last(), Some(&(0, 0)));
        assert_eq!(net.association(A).a_rwnd(), config.receive_buffer);
    }
}

#[test]
fn resets_of_the_association_from_both_ends_at_once_are_refused_and_nothing_is_lost() {
    let mut net = established();
    net.command(A, |a, now| a.reset_association(now)).unwrap();
    net.command(B, |b, now| b.reset_association(now)).unwrap();
    for host in [A, B] {
        for i in 0..5 {
            net.send(host, 0, synthetic(i * 100, 100));
        }
    }
    net.run_for(ms(2000));
    for host in [A, B] {
        let refused = Err(StreamRefused::Busy);
        assert_eq!(answered(&net, host), [(StreamRequest::ResetAssociation, refused)]);
        assert_eq!(offsets(&net, host), [0, 100, 200, 300, 400]);
    }
}

#[test]
fn outgoing_resets_from_both_ends_at_once_are_independent() {
    let mut net = established();
    for host in [A, B] {
        net.send(host, 0, synthetic(0, 100));
        net.command(host, |a, now| a.reset_streams(now, &[0])).unwrap();
        net.send(host, 0, synthetic(100, 100));
    }
    net.run_for(ms(1000));
    for host in [A, B] {
        assert_eq!(
            answered(&net, host),
            [(StreamRequest::ResetOutgoing(vec![0]), Ok(()))]
        );
        assert_eq!(offsets(&net, host), [0, 100]);
    }
}

#[test]
fn streams_are_added_in_both_directions() {
    let mut net = established();
    let refused = net.command(A, |a, now| a.send(now, 10, synthetic(0, 10), Default::default()));
    assert_eq!(refused, Err(SendError::NoSuchStream));
    net.command(A, |a, now| a.add_streams(now, 5, 7)).unwrap();
    net.run_for(ms(500));
    assert_eq!(net.association(A).outbound_streams(), 15);
    assert_eq!(net.association(B).outbound_streams(), 17);
    assert!(net.has_event(B, &Event::IncomingStreamsAdded(5)));
    assert!(net.has_event(A, &Event::IncomingStreamsAdded(7)));
    net.send(A, 14, synthetic(0, 10));
    net.send(B, 16, synthetic(0, 10));
    net.run_for(ms(500));
    assert_eq!((net.messages[A].len(), net.messages[B].len()), (1, 1));
}

#[test]
fn more_streams_than_the_peer_takes_are_denied() {
    let config = Config {
        max_inbound_streams: 12,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.command(A, |a, now| a.add_streams(now, 3, 0)).unwrap();
    net.run_for(ms(500));
    let denied = Err(StreamRefused::Denied);
    assert_eq!(answered(&net, A), [(StreamRequest::AddOutgoing(3), denied)]);
    assert_eq!(net.association(A).outbound_streams(), 10);
    let most = net.command(A, |a, now| a.add_streams(now, u16::MAX, 0));
    assert_eq!(most, Err(StreamError::TooMany));
}

#[test]
fn what_cannot_be_asked_is_refused_at_once() {
    let off = Config {
        stream_reconfiguration: false,
        ..Config::default()
    };
    for configs in [[Config::default(), off.clone()], [off, Config::default()]] {
        let mut net = Net::new(configs, [1, 1], ms(10), 1);
        net.connect();
        let early = net.command(A, |a, now| a.reset_streams(now, &[]));
        assert_eq!(early, Err(StreamError::NotPossible), "not yet established");
        net.run_for(ms(500));
        let refused = net.command(A, |a, now| a.reset_streams(now, &[]));
        assert_eq!(refused, Err(StreamError::NotPossible));
        net.log.clear();
        forge(
            &mut net,
            vec![P::SsnTsnReset {
                request: ReConfigSerial(0),
            }],
        );
        // 0x82: skipped without a report
        assert!(parameters(&net).is_empty());
        assert_eq!(net.association(B).counters().refused.unknown, 1);
    }
    let mut net = established();
    let refused = net.command(A, |a, now| a.reset_streams(now, &[10]));
    assert_eq!(refused, Err(StreamError::NoSuchStream));
}

#[test]
fn requests_out_of_turn_change_nothing() {
    let mut net = established();
    let serial = next_serial(&mut net);
    for (wrong, expected) in [
        (serial.add(1), ReConfigResult::BadSequenceNumber),
        (serial.sub(5), ReConfigResult::BadSequenceNumber),
        // the last one again: the same answer again
        (serial.sub(1), ReConfigResult::Performed),
    ] {
        net.log.clear();
        forge(&mut net, vec![P::SsnTsnReset { request: wrong }]);
        assert_eq!(results(&net, B), [expected]);
    }
    assert_eq!(net.events[B], []);
    net.log.clear();
    let unknown_stream = P::OutgoingSsnReset {
        request: serial,
        response: ReConfigSerial(0),
        last_assigned_tsn: Tsn(0),
        streams: vec![400],
    };
    forge(&mut net, vec![unknown_stream]);
    assert_eq!(results(&net, B), [ReConfigResult::WrongSsn]);
    let three = vec![
        P::SsnTsnReset {
            request: serial.next()
        };
        3
    ];
    net.log.clear();
    forge(&mut net, three);
    assert!(parameters(&net).is_empty());
    assert_eq!(net.association(B).counters().refused.unexpected, 1);
}

#[test]
fn a_response_that_nobody_awaits_changes_nothing() {
    let mut net = established();
    let next = next_serial(&mut net);
    for response in [next, next.sub(1), next.add(7)] {
        forge(
            &mut net,
            vec![P::Response {
                response,
                result: ReConfigResult::Performed,
                next_tsns: Some((Tsn(1), Tsn(2))),
            }],
        );
    }
    assert_eq!(net.events[B], []);
    net.run_for(ms(500));
    net.messages = [Vec::new(), Vec::new()];
    net.send(A, 0, synthetic(0, 10));
    net.send(B, 0, synthetic(0, 10));
    net.run_for(ms(500));
    assert_eq!((net.messages[A].len(), net.messages[B].len()), (1, 1));
}

#[test]
fn resets_amid_a_stream_of_messages_under_loss_keep_every_message_in_order() {
    // who asks for a reset of the association keeps what arrives until the answer comes: all that the peer has queued has
    // to fit the receive buffer
    let config = Config {
        receive_buffer: 1_000_000,
        ..Config::default()
    };
    for seed in 0..20_u64 {
        let mut net = Net::symmetric(config.clone(), [1, 1], seed);
        net.keep_log = false;
        net.connect();
        net.run_for(ms(3000));
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        net.rule = Box::new(move |_| match random() % 12 {
            0 => Vec::new(),
            1 => vec![ms(10), ms(35)],
            n => vec![ms(5 + 3 * n)],
        });
        for i in 0..200_u64 {
            for host in [A, B] {
                net.send(host, (i % 3) as u16, synthetic(i * 1000, 900));
            }
            let _ = match (i + seed) % 40 {
                7 => net.command(A, |a, now| a.reset_streams(now, &[0, 1])),
                15 => net.command(B, |b, now| b.reset_incoming_streams(now, &[])),
                23 => net.command(B, |b, now| b.reset_association(now)),
                31 => net.command(A, |a, now| a.add_streams(now, 1, 1)),
                _ => Ok(()),
            };
            net.run_for(ms(20));
        }
        net.run_for(Duration::from_secs(200));
        for host in [A, B] {
            assert!(net.association(host).is_sender_dry(), "seed {seed}");
            for stream in 0..3 {
                let came: Vec<u64> = net.messages[host]
                    .iter()
                    .zip(offsets(&net, host))
                    .filter(|(m, _)| u64::from(m.stream_id) == stream)
                    .map(|(_, o)| o)
                    .collect();
                let sent: Vec<u64> = (0..200).filter(|i| i % 3 == stream).map(|i| i * 1000).collect();
                assert_eq!(came, sent, "seed {seed}, host {host}, stream {stream}");
            }
        }
    }
}

/// What may be lost and is not sent again.
const UNRELIABLE: SendOptions = SendOptions {
    unordered: false,
    payload_protocol_id: 0,
    reliability: Reliability::Retransmissions { limit: 0 },
    sack_immediately: false,
};

/// Ends of which B's requests take long, and A's messages that begin at one of these places in the synthetic sequence are lost.
fn with_slow_requests(lost: &'static [u64]) -> Net {
    let mut net = established();
    net.rule = Box::new(move |d| {
        let asks = d.sctp().chunks.iter().any(|c| matches!(c, Chunk::ReConfig(_)));
        let is_lost = |offset: u64| d.data().any(|c| c.data.is_synthetic_at(offset));
        match d.from {
            A if lost.iter().any(|&offset| is_lost(offset)) => Vec::new(),
            B if asks => vec![ms(200)],
            _ => vec![ms(10)],
        }
    });
    net
}

/// Both are up, the reset that B asked for is done, and B holds nothing.
fn is_reset_and_empty(net: &mut Net) {
    assert_eq!(answered(net, B), [(StreamRequest::ResetAssociation, Ok(()))]);
    assert!(net.association(A).is_sender_dry());
    let buffer = Config::default().receive_buffer;
    assert_eq!(
        net.association(B).a_rwnd(),
        buffer,
        "bytes that nobody can take are held"
    );
    net.check_invariants();
}

#[test]
fn a_message_given_up_while_chunks_wait_for_a_reset_is_passed_over_in_its_turn() {
    // RFC 3758 section 3.6 within RFC 6525 section 5.2.4
    let mut net = with_slow_requests(&[1000]);
    net.command(B, |b, now| b.reset_association(now)).unwrap();
    net.send(A, 0, synthetic(0, 1000));
    net.command(A, |a, now| a.send(now, 0, synthetic(1000, 1000), UNRELIABLE))
        .unwrap();
    net.send(A, 0, synthetic(2000, 1000));
    net.run_for(Duration::from_secs(20));
    assert_eq!(offsets(&net, B), [0, 2000]);
    net.send(A, 0, synthetic(3000, 1000));
    net.run_for(Duration::from_secs(1));
    assert_eq!(offsets(&net, B), [0, 2000, 3000]);
    assert_eq!(numbers(&net, A).last(), Some(&(0, 0)));
    is_reset_and_empty(&mut net);
}

#[test]
fn fragments_that_wait_for_a_reset_go_with_their_message_when_it_is_given_up() {
    let mut net = with_slow_requests(&[2864]);
    net.command(B, |b, now| b.reset_association(now)).unwrap();
    net.command(A, |a, now| a.send(now, 0, synthetic(0, 4000), UNRELIABLE))
        .unwrap();
    let last = net.log.iter().flat_map(Departure::data).last().unwrap();
    assert!(last.ending && last.data.is_synthetic_at(2864));
    net.send(A, 0, synthetic(5000, 1000));
    net.run_for(Duration::from_secs(20));
    assert_eq!(offsets(&net, B), [5000]);
    is_reset_and_empty(&mut net);
}

#[test]
fn a_message_on_both_sides_of_where_chunks_wait_for_a_reset_is_not_given_up_with_another() {
    let mut net = with_slow_requests(&[5000]);
    let options = SendOptions {
        unordered: true,
        ..SendOptions::default()
    };
    // its first fragment has come when the reset is asked for, the second has not
    let mut slow = core::mem::replace(&mut net.rule, Box::new(|_| Vec::new()));
    net.rule = Box::new(move |d| match d.data().next() {
        Some(c) if c.ending && c.data.is_synthetic_at(1432) => vec![ms(60)],
        _ => slow(d),
    });
    net.command(A, |a, now| a.send(now, 0, synthetic(0, 2000), options))
        .unwrap();
    net.run_for(ms(30));
    net.command(B, |b, now| b.reset_association(now)).unwrap();
    net.command(A, |a, now| a.send(now, 0, synthetic(5000, 1000), UNRELIABLE))
        .unwrap();
    net.run_for(Duration::from_secs(20));
    assert_eq!(offsets(&net, B), [0]);
    assert_eq!(
        net.messages[B][0].parts.iter().map(Data::len).sum::<usize>(),
        2000
    );
    is_reset_and_empty(&mut net);
}

#[test]
fn a_request_from_an_address_that_is_not_confirmed_is_answered_all_the_same() {
    // B's heartbeats to A's second address are lost: it is never confirmed
    let mut net = Net::symmetric(Config::default(), [2, 1], 1);
    net.rule = Box::new(|d| {
        let probes = d.from == B && d.packet.ip.destination == address(A, 2);
        if probes { Vec::new() } else { vec![ms(10)] }
    });
    net.connect();
    net.run_for(ms(500));
    net.log.clear();
    net.command(A, |a, now| a.set_route(now, address(A, 2))).unwrap();
    net.command(A, |a, now| a.reset_association(now)).unwrap();
    net.run_for(ms(100));
    assert_eq!(answered(&net, A), [(StreamRequest::ResetAssociation, Ok(()))]);
    let answer = |d: &&Departure| d.from == B && names(d.sctp()).contains(&"RE-CONFIG");
    let to: Vec<_> = net
        .log
        .iter()
        .filter(answer)
        .map(|d| d.packet.ip.destination)
        .collect();
    assert_eq!(to, [address(A, 1)]);
}

/// A gives up a message of stream 1 that was sent before its reset, and so long after the request one of stream 2; then, after
/// the other time, stream 1 goes on. `lost` is what of B's does not arrive.
fn given_up_around_a_reset(lost: impl Fn(&Departure) -> bool + 'static, waits: [Duration; 2]) -> Net {
    let mut net = established();
    net.rule = Box::new(move |d| {
        let is_given_up = |offset| d.data().any(|c| c.data.is_synthetic_at(offset));
        let lost = match d.from {
            A => is_given_up(3000) || is_given_up(9000),
            _ => lost(d),
        };
        if lost { vec![] } else { vec![ms(10)] }
    });
    for n in 0..3 {
        net.send(A, 1, synthetic(n * 1000, 1000));
    }
    net.command(A, |a, now| a.send(now, 1, synthetic(3000, 1000), UNRELIABLE))
        .unwrap();
    net.run_for(ms(300));
    net.command(A, |a, now| a.reset_streams(now, &[1])).unwrap();
    net.run_for(waits[0]);
    net.command(A, |a, now| a.send(now, 2, synthetic(9000, 1000), UNRELIABLE))
        .unwrap();
    net.run_for(waits[1]);
    net.send(A, 1, synthetic(4000, 1000));
    net.run_for(Duration::from_secs(10));
    assert_eq!(offsets(&net, B), [0, 1000, 2000, 4000]);
    net
}

/// The answer to the request is lost, and so are the SACKs: what is given up meanwhile says nothing of the stream's new order.
#[test]
fn what_is_given_up_before_the_answer_is_there_does_not_move_a_stream_that_has_begun_again() {
    let (from, until) = (at(1.2), at(3.68));
    given_up_around_a_reset(
        move |d| d.at >= from && d.at < until,
        [ms(900), Duration::from_secs(10)],
    );
}

/// The answer to the request arrives, but the SACK is late or lost: the peer's order of the stream is the new one already.
#[test]
fn what_was_given_up_before_a_stream_began_again_does_not_move_it_while_the_sack_is_missing() {
    let (from, until) = (at(1.0), at(4.9));
    let is_sack = |d: &Departure| names(d.sctp()).contains(&"SACK");
    let net = given_up_around_a_reset(
        move |d| d.at >= from && d.at < until && is_sack(d),
        [ms(1500), Duration::from_secs(2)],
    );
    assert_eq!(
        answered(&net, A),
        [(StreamRequest::ResetOutgoing(vec![1]), Ok(()))]
    );
    let told: Vec<_> = net
        .log
        .iter()
        .filter(|d| d.from == A && d.at > at(1.9))
        .flat_map(|d| &d.sctp().chunks)
        .filter_map(|c| match c {
            Chunk::ForwardTsn(f) => Some(f.skipped.clone()),
            _ => None,
        })
        .collect();
    assert!(told.contains(&vec![(2, Ssn(0))]), "{told:?}");
}

/// A FORWARD TSN that was late by a reset of the association is as far ahead of the new TSNs as it is behind them.
#[test]
fn a_forward_tsn_from_before_the_association_was_reset_changes_nothing() {
    let mut net = established();
    net.send(A, 0, synthetic(0, 100));
    net.run_for(ms(300));
    let tsn = net.log.iter().flat_map(|d| d.data()).next().unwrap().tsn;
    net.command(A, |a, now| a.reset_association(now)).unwrap();
    net.run_for(ms(300));
    for late in [tsn.previous(), tsn, tsn.next()] {
        let forward = Chunk::ForwardTsn(Box::new(segue_wire::sctp::ForwardTsn {
            new_cumulative_tsn: late,
            skipped: vec![(0, Ssn(7))],
        }));
        let packet = net.forge(B, address(A, 1), [forward]);
        net.inject(B, packet);
    }
    net.send(A, 0, synthetic(100, 100));
    net.run_for(Duration::from_secs(2));
    assert_eq!(offsets(&net, B), [0, 100]);
    assert!(net.association(A).is_sender_dry());
}
