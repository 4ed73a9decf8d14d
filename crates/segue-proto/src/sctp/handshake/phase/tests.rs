//! What an association keeps in each state, and how long.

use super::*;
use crate::sctp::testing::ms;

const GUARD: Duration = Duration::from_millis(70);

fn to(place: u8) -> DestinationId {
    DestinationId::first_at(place)
}

fn established() -> Phase {
    let mut phase = Phase::new(to(0));
    phase.establish();
    phase
}

fn cookie_echoed() -> Phase {
    let mut phase = Phase::new(to(0));
    phase.on_init_ack(Some(to(2)), Bytes::from_static(b"cookie"), Vec::new());
    phase
}

fn shutdown_sent() -> Phase {
    let mut phase = established();
    assert!(phase.begin_shutdown());
    let chunk = phase.on_all_acknowledged(ms(0), GUARD);
    assert_eq!(chunk, Some(ShutdownChunk::Shutdown));
    phase
}

fn init(cookie_preservative: Option<u32>, destination: u8) -> Option<(OpeningChunk, DestinationId)> {
    Some((OpeningChunk::Init { cookie_preservative }, to(destination)))
}

#[test]
fn an_opening_is_retried_elsewhere_and_given_up_after_max_init_retransmits() {
    let mut phase = Phase::new(to(0));
    assert_eq!((phase.state(), phase.next_timer()), (State::CookieWait, None));
    assert_eq!(phase.opening_chunk(), init(None, 0));
    phase.opening_chunk_sent(ms(0), ms(30));
    assert_eq!(
        (phase.due(ms(29)), phase.due(ms(30))),
        (None, Some(PhaseTimer::T1))
    );
    assert_eq!(phase.on_t1(2, Some(to(1))), Retry::Again);
    assert_eq!(phase.opening_chunk(), init(None, 1));
    assert_eq!(phase.on_t1(2, None), Retry::Again);
    assert_eq!(phase.opening_chunk(), init(None, 1), "there is no other");
    assert_eq!(phase.on_t1(2, Some(to(0))), Retry::GiveUp);
    // the COOKIE ECHO has as many again, to where the INIT ACK came from
    phase.on_init_ack(Some(to(2)), Bytes::from_static(b"cookie"), Vec::new());
    assert_eq!(phase.state(), State::CookieEchoed);
    let echo = OpeningChunk::CookieEcho {
        cookie: Bytes::from_static(b"cookie"),
        errors: Vec::new(),
    };
    assert_eq!(phase.opening_chunk(), Some((echo, to(2))));
    for retry in [Retry::Again, Retry::Again, Retry::GiveUp] {
        assert_eq!(phase.on_t1(2, None), retry);
    }
}

#[test]
fn a_stale_cookie_asks_for_the_round_trip_and_what_was_missing_up_to_a_second() {
    // RFC 9260 section 5.2.6
    for (staleness_us, increment_ms) in [(0, 41), (7000, 48), (5_000_000, 1040)] {
        let mut phase = cookie_echoed();
        phase.opening_chunk_sent(ms(100), ms(500));
        assert_eq!(
            phase.on_stale_cookie(ms(140), staleness_us, 1),
            Some(Retry::Again)
        );
        assert_eq!(phase.state(), State::CookieWait);
        assert_eq!(phase.opening_chunk(), init(Some(increment_ms), 2));
        // nothing is echoed: there is no cookie that could be stale
        assert_eq!(phase.on_stale_cookie(ms(141), staleness_us, 1), None);
        phase.on_init_ack(None, Bytes::from_static(b"another"), Vec::new());
        assert_eq!(
            phase.on_stale_cookie(ms(200), staleness_us, 1),
            Some(Retry::GiveUp)
        );
    }
    assert_eq!(established().on_stale_cookie(ms(0), 0, 1), None);
}

#[test]
fn what_the_opening_had_ends_with_it() {
    let mut phase = cookie_echoed();
    phase.opening_chunk_sent(ms(0), ms(30));
    phase.begin_again();
    assert_eq!(
        (phase.state(), phase.opening_chunk()),
        (State::CookieWait, init(None, 2))
    );
    assert_eq!(phase.next_timer(), Some(ms(30)));
    phase.stop_timers();
    assert_eq!(phase.next_timer(), None);
    phase.opening_chunk_sent(ms(1), ms(31));
    phase.establish();
    assert_eq!((phase.state(), phase.next_timer()), (State::Established, None));
    assert_eq!((phase.opening_chunk(), phase.due(ms(99))), (None, None));
}

#[test]
fn the_sender_of_the_shutdown_has_a_guard_and_keeps_it_where_both_send_one() {
    let mut phase = shutdown_sent();
    assert_eq!(phase.next_timer(), Some(ms(70)));
    phase.shutdown_chunk_sent(ms(30));
    assert_eq!(phase.next_timer(), Some(ms(30)));
    assert_eq!(phase.on_shutdown(false), OnShutdown::Crosses);
    assert_eq!(phase.shutdown_chunk(), Some(ShutdownChunk::ShutdownAck));
    phase.shutdown_chunk_sent(ms(90));
    assert_eq!(
        (phase.state(), phase.next_timer()),
        (State::ShutdownAckSent, Some(ms(70)))
    );
    assert_eq!(phase.due(ms(30)), None);
    assert_eq!(phase.due(ms(95)), Some(PhaseTimer::T5ShutdownGuard));
    // no packet can leave: the guard goes on
    phase.stop_timers();
    assert_eq!(phase.next_timer(), Some(ms(70)));
    assert!(phase.close() && !phase.close());
    assert_eq!((phase.state(), phase.next_timer()), (State::Closed, None));
}

#[test]
fn who_answers_a_shutdown_has_t2_alone() {
    for asked in [false, true] {
        let mut phase = established();
        assert!(phase.begin_shutdown());
        let mut phase = if asked { phase } else { established() };
        assert_eq!(phase.on_shutdown(false), OnShutdown::Impossible);
        assert_eq!(phase.on_shutdown(true), OnShutdown::Acknowledges);
        assert_eq!(
            (phase.state(), phase.shutdown_chunk()),
            (State::ShutdownReceived, None)
        );
        assert!(!phase.begin_shutdown());
        let chunk = phase.on_all_acknowledged(ms(0), GUARD);
        assert_eq!(chunk, Some(ShutdownChunk::ShutdownAck));
        assert_eq!(phase.on_all_acknowledged(ms(0), GUARD), None);
        phase.shutdown_chunk_sent(ms(80));
        assert_eq!(
            (phase.due(ms(79)), phase.due(ms(80))),
            (None, Some(PhaseTimer::T2Shutdown))
        );
        assert_eq!(phase.on_shutdown(true), OnShutdown::Repeats);
        phase.stop_timers();
        assert_eq!(phase.next_timer(), None);
    }
    assert_eq!(Phase::new(to(0)).on_shutdown(true), OnShutdown::Unexpected);
}
