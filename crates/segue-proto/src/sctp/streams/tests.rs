//! The requests of both ends by themselves.

use super::*;
use crate::sctp::StreamRefused;
use crate::sctp::slots::Id;
use crate::time::Duration;
use answers::{Numbers, Standing, Verdict};
use requests::{Answered, Expired, NextRequest, When};
use segue_wire::sctp::ReConfigResult::{
    BadSequenceNumber, Denied, InProgress, NothingToDo, Other, Performed, RequestInProgress, WrongSsn,
};

const FROM: Ipv6Addr = Ipv6Addr::LOCALHOST;

/// Our first TSN is 10, the peer's 100.
fn begun() -> StreamChanges {
    let mut changes = StreamChanges::new(Tsn(10));
    changes.begin(Tsn(100));
    changes
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Begins the request that is next, and gives its parameter.
fn send(changes: &mut StreamChanges) -> ReConfigParameter {
    assert!(changes.next_request().is_some());
    changes.begin_request(Tsn(55), Id::first_at(0));
    let mut chunk = changes
        .transmit(Id::first_at(0), at(1000))
        .expect("it is outstanding");
    assert_eq!(chunk.parameters.len(), 1);
    chunk.parameters.remove(0)
}

fn peer_asks(changes: &mut StreamChanges, request: &ReConfigParameter) -> Verdict {
    let serial = request.request().expect("a request");
    assert_eq!(changes.on_request(serial), Standing::New);
    changes.judge(request, &NUMBERS)
}

const NUMBERS: Numbers = Numbers {
    established: true,
    inbound_streams: 4,
    max_inbound_streams: 6,
    outbound_streams: 3,
    cumulative_tsn_ack: Tsn(200),
};

fn response(serial: u32, result: ReConfigResult, next_tsns: Option<(Tsn, Tsn)>) -> ReConfigParameter {
    ReConfigParameter::Response {
        response: ReConfigSerial(serial),
        result,
        next_tsns,
    }
}

fn outgoing(serial: u32, answers: u32, last: u32, streams: &[u16]) -> ReConfigParameter {
    ReConfigParameter::OutgoingSsnReset {
        request: ReConfigSerial(serial),
        response: ReConfigSerial(answers),
        last_assigned_tsn: Tsn(last),
        streams: streams.to_vec(),
    }
}

fn incoming(serial: u32, streams: &[u16]) -> ReConfigParameter {
    ReConfigParameter::IncomingSsnReset {
        request: ReConfigSerial(serial),
        streams: streams.to_vec(),
    }
}

fn association(serial: u32) -> ReConfigParameter {
    ReConfigParameter::SsnTsnReset {
        request: ReConfigSerial(serial),
    }
}

#[test]
fn one_request_is_outstanding_at_a_time() {
    let mut changes = begun();
    assert!(!changes.is_busy() && changes.next_request().is_none());
    changes.ask(StreamRequest::AddOutgoing(2), None);
    changes.ask(StreamRequest::AddIncoming(3), None);
    let request = ReConfigSerial(10);
    let new_streams = 2;
    assert_eq!(
        send(&mut changes),
        ReConfigParameter::AddOutgoingStreams { request, new_streams }
    );
    assert!(changes.is_busy() && !changes.awaits_transfer());
    assert_eq!(changes.next_request(), None);
    // again, elsewhere
    assert!(changes.transmit(Id::first_at(3), at(2000)).is_some());
    assert_eq!(changes.t_reconfig(), Some(at(2000)));
    assert_eq!(changes.on_response(ReConfigSerial(9), Performed), None);
    let answered = changes.on_response(request, Performed).expect("awaited");
    assert_eq!(
        (answered.destination, answered.outcome),
        (Id::first_at(3), Some(Ok(())))
    );
    assert_eq!(changes.settle(), Some(StreamRequest::AddOutgoing(2)));
    assert_eq!((changes.settle(), changes.t_reconfig()), (None, None));
    assert_eq!(changes.on_response(request, Performed), None, "it came twice");
    let request = ReConfigSerial(11);
    let new_streams = 3;
    assert_eq!(
        send(&mut changes),
        ReConfigParameter::AddIncomingStreams { request, new_streams }
    );
    changes.end();
    assert!(!changes.is_busy() && changes.t_reconfig().is_none());
}

#[test]
fn messages_of_a_stream_that_is_to_be_reset_are_held_back_once() {
    let mut changes = begun();
    changes.ask(StreamRequest::ResetOutgoing(vec![1, 2]), None);
    let (hold, when) = (Some(&[1, 2][..]), When::NotAmid(&[1, 2]));
    assert_eq!(changes.next_request(), Some(NextRequest { hold, when }));
    let when = When::NotAmid(&[1, 2]);
    assert_eq!(changes.next_request(), Some(NextRequest { hold: None, when }));
    assert!(changes.is_busy() && changes.t_reconfig().is_none());
    // the peer's last request had the number 99, which is that before its first
    assert_eq!(send(&mut changes), outgoing(10, 99, 55, &[1, 2]));
    changes.settle();
    // on the peer's wish
    changes.ask(StreamRequest::ResetOutgoing(Vec::new()), Some(ReConfigSerial(70)));
    assert_eq!(send(&mut changes), outgoing(11, 70, 55, &[]));
    changes.settle();
    changes.ask(StreamRequest::ResetAssociation, None);
    let (hold, when) = (Some(&[][..]), When::AllAcknowledged);
    assert_eq!(changes.next_request(), Some(NextRequest { hold, when }));
    assert!(!changes.requests.resets_association(), "not yet");
    assert_eq!(send(&mut changes), association(12));
    assert!(changes.requests.resets_association());
}

#[test]
fn silence_is_an_error_unless_the_peer_is_at_it() {
    let mut changes = begun();
    assert_eq!(changes.on_t_reconfig(), None);
    changes.ask(StreamRequest::ResetIncoming(vec![1]), None);
    assert_eq!(send(&mut changes), incoming(10, &[1]));
    let expired = |is_error| {
        Some(Expired {
            destination: Id::first_at(0),
            is_error,
        })
    };
    assert_eq!(changes.on_t_reconfig(), expired(true));
    let answered = changes.on_response(ReConfigSerial(10), InProgress);
    let at_it = Answered {
        destination: Id::first_at(0),
        outcome: None,
    };
    assert_eq!(answered, Some(at_it));
    assert_eq!(changes.on_t_reconfig(), expired(false));
    // without an address to send from no timer runs
    changes.suspend();
    assert_eq!(changes.t_reconfig(), None);
    assert!(changes.transmit(Id::first_at(0), at(5)).is_some());
    assert_eq!(changes.t_reconfig(), Some(at(5)));
}

#[test]
fn results_that_a_peer_may_answer_with() {
    for (result, outcome) in [
        (NothingToDo, Some(Ok(()))),
        (Performed, Some(Ok(()))),
        (Denied, Some(Err(StreamRefused::Denied))),
        (RequestInProgress, Some(Err(StreamRefused::Busy))),
        (WrongSsn, Some(Err(StreamRefused::Error))),
        (BadSequenceNumber, Some(Err(StreamRefused::Error))),
        (Other(9), Some(Err(StreamRefused::Error))),
        (InProgress, None),
    ] {
        let mut changes = begun();
        changes.ask(StreamRequest::AddIncoming(1), None);
        send(&mut changes);
        let answered = changes.on_response(ReConfigSerial(10), result).expect("awaited");
        assert_eq!(answered.outcome, outcome, "{result:?}");
    }
}

#[test]
fn the_last_two_answers_are_repeated_and_anything_else_is_out_of_sequence() {
    let mut changes = begun();
    let bad = |serial| Standing::Answered(response(serial, BadSequenceNumber, None));
    assert_eq!(changes.on_request(ReConfigSerial(101)), bad(101));
    assert_eq!(changes.on_request(ReConfigSerial(99)), bad(99));
    for (serial, result) in [(100, Performed), (101, Denied), (102, WrongSsn)] {
        assert_eq!(changes.on_request(ReConfigSerial(serial)), Standing::New);
        let answer = response(serial, result, None);
        assert_eq!(changes.answer(ReConfigSerial(serial), result), answer);
        let again = changes.on_request(ReConfigSerial(serial));
        assert_eq!(again, Standing::Answered(answer));
    }
    let kept = [100, 101, 102].map(|serial| changes.on_request(ReConfigSerial(serial)) != bad(serial));
    assert_eq!(kept, [false, true, true]);
    // of a peer of which nothing was heard no request is the next
    let mut silent = StreamChanges::new(Tsn(10));
    assert_eq!(silent.on_request(ReConfigSerial(0)), bad(0));
}

#[test]
fn requests_are_judged_by_what_there_is() {
    let add_outgoing = |new_streams| ReConfigParameter::AddOutgoingStreams {
        request: ReConfigSerial(100),
        new_streams,
    };
    let add_incoming = |new_streams| ReConfigParameter::AddIncomingStreams {
        request: ReConfigSerial(100),
        new_streams,
    };
    let reset = |streams: &[u16]| Verdict::ResetIncoming {
        streams: streams.to_vec(),
        settles: false,
    };
    let defer = Verdict::Defer {
        last_assigned_tsn: Tsn(201),
        streams: Vec::new(),
        settles: false,
    };
    let add = Verdict::AddIncoming { new_streams: 2 };
    let ask_reset = Verdict::Ask(StreamRequest::ResetOutgoing(vec![2]));
    let ask_add = Verdict::Ask(StreamRequest::AddOutgoing(9));
    // what is asked; the verdict; that while the association is about to end; that while a request of ours waits
    for (request, verdict, ending, busy) in [
        (outgoing(100, 9, 200, &[3]), reset(&[3]), None, None),
        (outgoing(100, 9, 201, &[]), defer, None, None),
        (outgoing(100, 9, 200, &[4]), Verdict::Refuse(WrongSsn), None, None),
        (
            incoming(100, &[2]),
            ask_reset,
            Some(Denied),
            Some(RequestInProgress),
        ),
        (incoming(100, &[3]), Verdict::Refuse(WrongSsn), None, None),
        (
            association(100),
            Verdict::ResetAssociation,
            Some(Denied),
            Some(RequestInProgress),
        ),
        (add_outgoing(2), add, None, None),
        (add_outgoing(3), Verdict::Refuse(Denied), None, None),
        (add_outgoing(u16::MAX), Verdict::Refuse(Denied), None, None),
        (add_incoming(9), ask_add, Some(Denied), Some(RequestInProgress)),
        (
            add_incoming(u16::MAX),
            Verdict::Refuse(Denied),
            None,
            Some(RequestInProgress),
        ),
    ] {
        let mut changes = begun();
        assert_eq!(changes.judge(&request, &NUMBERS), verdict, "{request:?}");
        let closing = Numbers {
            established: false,
            ..NUMBERS
        };
        let expected = ending.map(Verdict::Refuse);
        let judged = changes.judge(&request, &closing);
        assert!(judged == *expected.as_ref().unwrap_or(&verdict), "{request:?}");
        changes.ask(StreamRequest::AddIncoming(1), None);
        let expected = busy.map(Verdict::Refuse);
        let judged = changes.judge(&request, &NUMBERS);
        assert!(judged == *expected.as_ref().unwrap_or(&verdict), "{request:?}");
    }
}

#[test]
fn a_reset_that_answers_our_request_settles_it() {
    let mut changes = begun();
    changes.ask(StreamRequest::ResetIncoming(vec![1]), None);
    send(&mut changes);
    for (answers, last, settled) in [(10, 200, true), (9, 200, false), (10, 300, true)] {
        let verdict = changes.judge(&outgoing(100, answers, last, &[1]), &NUMBERS);
        let (Verdict::ResetIncoming { settles, .. } | Verdict::Defer { settles, .. }) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(settles, settled);
    }
}

#[test]
fn a_deferred_reset_is_carried_out_when_the_data_before_it_has_come() {
    let mut changes = begun();
    let request = outgoing(100, 9, 205, &[1]);
    assert!(matches!(peer_asks(&mut changes, &request), Verdict::Defer { .. }));
    changes.defer_reset(ReConfigSerial(100), FROM, Tsn(205), vec![1]);
    let in_progress = response(100, InProgress, None);
    assert_eq!(changes.answer(ReConfigSerial(100), InProgress), in_progress);
    assert!(changes.awaits_transfer() && changes.is_busy());
    // meanwhile nothing else of that kind, and ours that would reset the association waits
    for other in [outgoing(101, 9, 200, &[1]), association(101)] {
        let busy = Verdict::Refuse(RequestInProgress);
        assert_eq!(changes.judge(&other, &NUMBERS), busy);
    }
    assert_eq!(changes.take_deferred_reset(Tsn(204)), None);
    let done = response(100, Performed, None);
    let reset = changes.take_deferred_reset(Tsn(205));
    assert_eq!(reset, Some((vec![1], done.clone(), FROM)));
    assert_eq!(changes.take_deferred_reset(Tsn(206)), None);
    assert!(!changes.awaits_transfer());
    // the peer asks again, and is told that it was done
    let again = changes.on_request(ReConfigSerial(100));
    assert_eq!(again, Standing::Answered(done));
}

#[test]
fn a_reset_of_the_association_lets_no_request_of_ours_go_before_it() {
    let mut changes = begun();
    assert_eq!(
        peer_asks(&mut changes, &association(100)),
        Verdict::ResetAssociation
    );
    changes.defer_association_reset(ReConfigSerial(100), FROM);
    let awaited = Some((ReConfigSerial(100), FROM));
    assert_eq!(changes.deferred_association_reset(), awaited);
    assert_eq!(changes.take_deferred_reset(Tsn(999)), None);
    changes.ask(StreamRequest::AddOutgoing(1), None);
    assert_eq!(changes.next_request(), None);
    let tsns = (Tsn(56), Tsn(300));
    let done = response(100, Performed, Some(tsns));
    assert_eq!(changes.association_was_reset(ReConfigSerial(100), tsns), done);
    assert_eq!(changes.deferred_association_reset(), None);
    // the answer with the TSNs is the one that counts
    assert_eq!(changes.answer(ReConfigSerial(100), Performed), done);
    assert!(changes.next_request().is_some());
}
