//! Requests, answers and replacement by themselves.

use super::deactivation::Refusal;
use super::*;
use crate::InterfaceId;
use crate::sctp::AsconfResult;
use crate::sctp::slots::Id;
use crate::time::Duration;
use AddressRequest::{Activate, Add, Deactivate, Delete, SetPrimary};
use bytes::Bytes;
use segue_wire::sctp::{AsconfParameter, AsconfResponse, Chunk};

fn a(index: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, index, 0, 0, 0, 0, 1)
}

fn source(index: u16) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(0),
        address: a(index),
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Our first TSN is 10, the peer's 100.
fn begun() -> Asconf {
    let mut asconf = Asconf::new(Tsn(10));
    asconf.begin(Tsn(100));
    asconf
}

/// Asks, and sends what waits.
fn send(asconf: &mut Asconf, requests: &[AddressRequest]) -> AsconfChunk {
    asconf.ask(requests);
    assert!(asconf.begin_request(1500, a(1), Id::first_at(0)));
    asconf
        .transmit(source(1), Id::first_at(0), at(1000))
        .expect("it is outstanding")
}

fn ack(serial: u32, responses: Vec<AsconfResponse>) -> AsconfAck {
    AsconfAck {
        serial_number: AsconfSerial(serial),
        responses,
    }
}

fn success(correlation_id: u32) -> AsconfResponse {
    AsconfResponse::SuccessIndication { correlation_id }
}

fn error(correlation_id: u32, causes: Vec<ErrorCause>) -> AsconfResponse {
    AsconfResponse::ErrorCauseIndication {
        correlation_id,
        causes,
    }
}

/// Outcomes of an ASCONF, in order.
fn settled(acknowledged: Acknowledged) -> Vec<(AddressRequest, Result<(), Vec<ErrorCause>>)> {
    let Acknowledged::Settled { settled, .. } = acknowledged else {
        panic!("{acknowledged:?}");
    };
    settled
        .results
        .into_iter()
        .map(|r| (r.request, r.outcome))
        .collect()
}

fn refused() -> ErrorCause {
    ErrorCause::UnsupportedHmacIdentifier(9)
}

#[test]
fn one_asconf_is_outstanding_and_what_waits_goes_into_the_next() {
    let mut asconf = begun();
    assert!(!asconf.is_busy() && !asconf.begin_request(1500, a(1), Id::first_at(0)));
    let first = send(&mut asconf, &[Add(a(2)), SetPrimary(a(2))]);
    assert_eq!((first.serial_number, first.address), (AsconfSerial(10), a(1)));
    let ids: Vec<_> = first
        .parameters
        .iter()
        .map(AsconfParameter::correlation_id)
        .collect();
    assert_eq!(ids, [1, 2]);
    asconf.ask(&[Delete(a(1))]);
    assert!(
        !asconf.begin_request(1500, a(1), Id::first_at(0)),
        "the first is unanswered"
    );
    // again, elsewhere
    assert_eq!(asconf.transmit(source(2), Id::first_at(3), at(2000)), Some(first));
    assert_eq!(
        (asconf.destination(), asconf.t4_rto()),
        (Some(Id::first_at(3)), Some(at(2000)))
    );
    let answered = asconf.on_ack(&ack(10, Vec::new()));
    let Acknowledged::Settled { destination, .. } = answered else {
        panic!("{answered:?}");
    };
    assert_eq!(destination, Id::first_at(3));
    assert_eq!(
        settled(answered),
        [(Add(a(2)), Ok(())), (SetPrimary(a(2)), Ok(()))]
    );
    assert!(asconf.is_busy() && asconf.t4_rto().is_none());
    assert!(asconf.begin_request(1500, a(2), Id::first_at(0)));
    let second = asconf
        .transmit(source(2), Id::first_at(0), at(9000))
        .expect("it is outstanding");
    assert_eq!(second.serial_number, AsconfSerial(11));
    assert_eq!(second.parameters[0].correlation_id(), 3);
    asconf.end();
    assert!(!asconf.is_busy() && asconf.transmit(source(2), Id::first_at(0), at(9)).is_none());
}

#[test]
fn an_asconf_is_no_longer_than_a_packet() {
    // 120 bytes beside the requests, 28 for each
    for (mtu, fit) in [(100, 1), (148, 1), (175, 1), (176, 2), (1500, 5)] {
        let mut asconf = begun();
        asconf.ask(&[2, 3, 4, 5, 6].map(|i| Add(a(i))));
        assert!(asconf.begin_request(mtu, a(1), Id::first_at(0)));
        let chunk = asconf
            .transmit(source(1), Id::first_at(0), at(1))
            .expect("it is outstanding");
        assert_eq!(chunk.parameters.len(), fit, "{mtu}");
    }
}

#[test]
fn what_is_not_named_succeeded_unless_something_before_it_failed() {
    let requests = [Add(a(2)), SetPrimary(a(2)), Delete(a(1))];
    let failed = || Err(vec![refused()]);
    for (responses, outcomes) in [
        (vec![], [Ok(()), Ok(()), Ok(())]),
        (
            vec![error(2, vec![refused()])],
            [Ok(()), failed(), Err(Vec::new())],
        ),
        (
            vec![error(1, vec![refused()]), success(3)],
            [failed(), Err(Vec::new()), Ok(())],
        ),
        (vec![error(9, vec![refused()])], [Ok(()), Ok(()), Ok(())]),
    ] {
        let mut asconf = begun();
        send(&mut asconf, &requests);
        let settled = settled(asconf.on_ack(&ack(10, responses)));
        let expected: Vec<_> = requests.into_iter().zip(outcomes).collect();
        assert_eq!(settled, expected);
    }
}

#[test]
fn an_answer_to_something_never_asked_is_told_from_one_that_comes_again() {
    let mut asconf = begun();
    assert_eq!(asconf.on_ack(&ack(9, Vec::new())), Acknowledged::Again);
    assert_eq!(asconf.on_ack(&ack(10, Vec::new())), Acknowledged::NeverAsked);
    send(&mut asconf, &[Add(a(2))]);
    assert_eq!(asconf.on_ack(&ack(11, Vec::new())), Acknowledged::NeverAsked);
    assert!(asconf.is_busy());
    settled(asconf.on_ack(&ack(10, Vec::new())));
    assert_eq!(asconf.on_ack(&ack(10, Vec::new())), Acknowledged::Again);
}

#[test]
fn a_request_that_the_peer_does_not_understand_is_not_made_again() {
    // RFC 5061 section 5.3, F3
    let kinds = [
        &[Add(a(2)), Delete(a(1))] as &[_],
        &[SetPrimary(a(1))],
        &[Deactivate(a(1)), Activate(a(1))],
    ];
    let not_understood = ErrorCause::UnrecognizedParameters(Bytes::from_static(&[0xc0, 4, 0, 4]));
    for (cause, again) in [(not_understood, false), (refused(), true)] {
        for (i, kind) in kinds.iter().enumerate() {
            for &request in *kind {
                let mut asconf = begun();
                send(&mut asconf, &[request]);
                assert!(asconf.is_busy() && asconf.t4_rto().is_some());
                asconf.on_ack(&ack(10, vec![error(1, vec![cause.clone()])]));
                assert!(!asconf.is_busy() && asconf.t4_rto().is_none());
                for (j, others) in kinds.iter().enumerate() {
                    for &other in *others {
                        let possible = asconf.check(other).is_ok();
                        assert_eq!(possible, i != j || again, "{other:?} after {request:?}");
                    }
                }
                assert_eq!(asconf.peer_understands_deactivation(), i != 2 || again);
                assert!(asconf.peer_understands_asconf());
            }
        }
    }
}

#[test]
fn a_peer_that_does_not_know_asconf_has_to_quote_ours() {
    let mut asconf = begun();
    let chunk = send(&mut asconf, &[Add(a(2))]);
    asconf.ask(&[Delete(a(1))]);
    let mut whole = Vec::new();
    Chunk::Asconf(Box::new(chunk)).emit(&mut whole);
    let mut other = whole.clone();
    other[7] ^= 1;
    let cause = ErrorCause::UnrecognizedChunkType(Bytes::new());
    for wrong in [&whole[..7], &other, &[]] {
        assert_eq!(asconf.on_unknown(&cause, wrong), None);
        assert!(asconf.peer_understands_asconf());
    }
    // the end of it may be missing; what waits fails with it
    let settled = asconf.on_unknown(&cause, &whole[..8]).expect("it is quoted");
    let failed = |request| AsconfResult {
        request,
        outcome: Err(vec![cause.clone()]),
    };
    let results = [Add(a(2)), Delete(a(1))].map(failed);
    assert_eq!(
        (settled.serial, settled.results.to_vec()),
        (AsconfSerial(10), results.to_vec())
    );
    assert!(!asconf.is_busy() && !asconf.peer_understands_asconf());
    assert_eq!(asconf.on_unknown(&cause, &whole), None);
}

#[test]
fn an_addition_that_was_not_sent_yet_is_taken_back() {
    let mut asconf = begun();
    send(&mut asconf, &[Add(a(2))]);
    assert_eq!(asconf.withdraw_add(a(2)), None, "it was sent");
    asconf.ask(&[Add(a(3)), SetPrimary(a(3)), Delete(a(1))]);
    assert_eq!(asconf.withdraw_add(a(1)), None, "it is to be deleted");
    let withdrawn = asconf.withdraw_add(a(3)).expect("it waits");
    let failed = |request| AsconfResult {
        request,
        outcome: Err(Vec::new()),
    };
    let results = [Add(a(3)), SetPrimary(a(3))].map(failed);
    assert_eq!(
        (withdrawn.serial, withdrawn.results.to_vec()),
        (AsconfSerial(11), results.to_vec())
    );
    settled(asconf.on_ack(&ack(10, Vec::new())));
    assert!(asconf.begin_request(1500, a(1), Id::first_at(0)));
    let chunk = asconf
        .transmit(source(1), Id::first_at(0), at(1))
        .expect("it is outstanding");
    assert_eq!(chunk.parameters, [Delete(a(1)).parameter(2)]);
}

#[test]
fn an_asconf_whose_answer_cannot_come_goes_out_again() {
    let mut asconf = begun();
    assert!(!asconf.cannot_be_answered(|_| false), "there is none");
    asconf.ask(&[Add(a(2))]);
    assert!(asconf.begin_request(1500, a(1), Id::first_at(0)));
    assert!(asconf.cannot_be_answered(|_| true), "it could not leave yet");
    asconf.transmit(source(1), Id::first_at(0), at(1000));
    assert!(!asconf.cannot_be_answered(|s| s == source(1)));
    assert!(asconf.cannot_be_answered(|s| s != source(1)));
    asconf.suspend();
    assert!(asconf.cannot_be_answered(|_| true) && asconf.t4_rto().is_none());
}

#[test]
fn an_answer_that_seems_lost_is_asked_for_once() {
    let mut asconf = begun();
    asconf.ask(&[Add(a(2))]);
    assert!(asconf.begin_request(1500, a(1), Id::first_at(0)));
    assert_eq!(asconf.awaited_for(a(2)), None, "it has not left");
    asconf.transmit(source(2), Id::first_at(0), at(1000));
    assert_eq!(asconf.awaited_for(a(1)), None);
    let serial = AsconfSerial(10);
    assert_eq!(asconf.awaited_for(a(2)), Some(serial));
    assert!(!asconf.hasten(serial.next()));
    assert!(asconf.hasten(serial));
    asconf.transmit(source(2), Id::first_at(0), at(1000));
    assert_eq!(asconf.awaited_for(a(2)), None);
    settled(asconf.on_ack(&ack(10, Vec::new())));
    assert!(!asconf.hasten(serial), "it was answered");
}

#[test]
fn the_peers_asconfs_are_worked_off_in_order_and_each_once() {
    let mut asconf = begun();
    let on = |asconf: &mut Asconf, serial| asconf.on_asconf(AsconfSerial(serial));
    asconf.begin_packet();
    assert_eq!(on(&mut asconf, 101), Asked::OutOfOrder);
    assert_eq!(on(&mut asconf, 99), Asked::OutOfOrder);
    // five in one packet, of which four answers are kept
    asconf.begin_packet();
    for serial in 100..105 {
        assert_eq!(on(&mut asconf, serial), Asked::New, "{serial}");
        asconf.answer(&ack(serial, Vec::new()));
    }
    assert_eq!(on(&mut asconf, 100), Asked::OutOfOrder);
    for serial in 101..105 {
        assert_eq!(
            on(&mut asconf, serial),
            Asked::Again(ack(serial, Vec::new())),
            "{serial}"
        );
    }
    // a packet that begins with a new one says that the peer has the answers so far (E1); one that does not says nothing
    asconf.begin_packet();
    assert_eq!(on(&mut asconf, 104), Asked::Again(ack(104, Vec::new())));
    assert_eq!(on(&mut asconf, 105), Asked::New);
    asconf.answer(&ack(105, Vec::new()));
    assert_eq!(on(&mut asconf, 102), Asked::Again(ack(102, Vec::new())));
    asconf.begin_packet();
    assert_eq!(on(&mut asconf, 106), Asked::New);
    asconf.answer(&ack(106, Vec::new()));
    assert_eq!(on(&mut asconf, 105), Asked::OutOfOrder);
    // the peer began anew
    asconf.begin(Tsn(7));
    assert_eq!(on(&mut asconf, 106), Asked::OutOfOrder);
    assert_eq!(on(&mut asconf, 7), Asked::New);
    // of a peer of which nothing was heard none is the next
    assert_eq!(on(&mut Asconf::new(Tsn(10)), 1), Asked::OutOfOrder);
}

#[test]
fn an_error_ends_an_asconf_and_names_what_was_done_before() {
    let parameters = [5, 6, 7].map(|id| Add(a(id as u16)).parameter(id));
    assert_eq!(responses(&parameters, |_| Ok(())), []);
    let mut worked_off = Vec::new();
    let responses = responses(&parameters, |p| {
        worked_off.push(p.correlation_id());
        if p.correlation_id() == 6 {
            return Err(refused());
        }
        Ok(())
    });
    assert_eq!(worked_off, [5, 6]);
    assert_eq!(responses, [success(5), error(6, vec![refused()])]);
}

#[test]
fn a_refusal_quotes_the_request() {
    let parameter = Deactivate(a(2)).parameter(1);
    let quoted = quote(&parameter);
    assert_eq!(quoted.len(), parameter.buffer_len());
    for (refusal, cause) in [
        (Refusal::Unknown, ErrorCause::UnresolvableAddress(quoted.clone())),
        (Refusal::Source, ErrorCause::DeleteSourceAddress(quoted.clone())),
        (
            Refusal::Last,
            ErrorCause::DeleteLastRemainingAddress(quoted.clone()),
        ),
    ] {
        assert_eq!(refusal.cause(&parameter), cause);
    }
}

#[test]
fn addresses_that_were_replaced_wait_for_data_in_order_or_for_their_time() {
    let mut asconf = begun();
    assert!(!asconf.may_delete_replaced(Tsn(200), false));
    asconf.await_data(Some(Tsn(100)), at(5000));
    assert_eq!(asconf.replacement_due(), Some(at(5000)));
    assert!(!asconf.may_delete_replaced(Tsn(100), false), "nothing came since");
    assert!(
        !asconf.may_delete_replaced(Tsn(101), true),
        "something is missing"
    );
    assert!(asconf.may_delete_replaced(Tsn(101), false));
    asconf.end_replacement();
    assert_eq!(asconf.replacement_due(), None);
    asconf.await_data(Some(Tsn(100)), at(5000));
    asconf.end();
    assert_eq!(asconf.replacement_due(), None);
}
