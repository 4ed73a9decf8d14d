use super::*;

const SEGMENT: u32 = 1000;

fn path(id: u8, cwnd_segments: u32, srtt_ms: u64, has_room: bool) -> Candidate {
    Candidate {
        id,
        cwnd: cwnd_segments * SEGMENT,
        flightsize: if has_room { 0 } else { cwnd_segments * SEGMENT },
        segment: SEGMENT,
        srtt: Duration::from_millis(srtt_ms),
        rttvar: Duration::from_millis(0),
        has_room,
    }
}

fn backlog(unsent: u64, peer_rwnd: u32) -> Backlog {
    Backlog {
        now: Instant::ZERO,
        unsent,
        peer_rwnd,
        outstanding: 0,
        was_blocked: false,
    }
}

const PLENTY: u32 = 1_000_000;

fn chosen(kind: SchedulerKind, paths: &[Candidate]) -> Option<u8> {
    let mut scheduler = kind.begin();
    let at = scheduler.choose(paths, &backlog(u64::from(PLENTY), PLENTY))?;
    Some(paths[at].id)
}

#[test]
fn no_scheduler_takes_a_path_without_room() {
    use SchedulerKind as K;
    let one_free = [path(0, 10, 10, false), path(3, 10, 100, true)];
    for kind in [
        K::FillFirst,
        K::RoundRobin,
        K::Turns,
        K::LowestRtt,
        K::LargestCwnd,
        K::Blest,
        K::Ecf,
    ] {
        assert_eq!(chosen(kind, &one_free), Some(3), "{kind:?}");
        assert_eq!(chosen(kind, &[path(0, 10, 10, false)]), None, "{kind:?}");
        assert_eq!(chosen(kind, &[]), None, "{kind:?}");
    }
}

/// A packet that the scheduler chooses a path for, and that is sent.
fn send(scheduler: &mut dyn Scheduler, paths: &[Candidate], now: Instant) -> Option<usize> {
    let plenty = Backlog {
        now,
        ..backlog(100_000, PLENTY)
    };
    let chosen = scheduler.choose(paths, &plenty)?;
    scheduler.on_sent(now, paths[chosen].id);
    Some(chosen)
}

#[test]
fn fill_first_fills_a_window_before_it_turns_to_the_next() {
    let mut s = FillFirst::default();
    let mut send = |paths: &[Candidate]| send(&mut s, paths, Instant::ZERO);
    let both = [path(0, 10, 10, true), path(1, 10, 100, true)];
    assert_eq!(send(&both), Some(0));
    assert_eq!(send(&both), Some(0));
    let second = [path(0, 10, 10, false), path(1, 10, 100, true)];
    assert_eq!(send(&second), Some(1));
    assert_eq!(send(&both), Some(1));
    let first = [path(0, 10, 10, true), path(1, 10, 100, false)];
    assert_eq!(send(&first), Some(0));
}

#[test]
fn round_robin_takes_turns_and_passes_over_the_full() {
    let mut s = RoundRobin::default();
    let mut send = |paths: &[Candidate]| send(&mut s, paths, Instant::ZERO);
    let all = [
        path(0, 10, 10, true),
        path(2, 10, 10, true),
        path(5, 10, 10, true),
    ];
    let turns: Vec<_> = (0..4).map(|_| send(&all)).collect();
    assert_eq!(turns, [Some(0), Some(1), Some(2), Some(0)]);
    let without = [all[0], path(2, 10, 10, false), all[2]];
    assert_eq!(send(&without), Some(2));
}

#[test]
fn a_choice_that_came_to_nothing_has_used_up_no_turn() {
    let both = [path(0, 10, 10, true), path(1, 10, 100, true)];
    let plenty = backlog(100_000, PLENTY);
    for kind in [SchedulerKind::RoundRobin, SchedulerKind::Turns] {
        let mut s = kind.begin();
        assert_eq!(send(&mut *s, &both, Instant::ZERO), Some(0), "{kind:?}");
        let later = Backlog {
            now: Instant::ZERO + Duration::from_millis(1),
            ..plenty
        };
        for _ in 0..3 {
            assert_eq!(s.choose(&both, &later), Some(1), "{kind:?}");
        }
    }
}

#[test]
fn a_turn_goes_on_as_long_as_the_time_is_the_same_and_the_window_has_room() {
    let mut s = Turns::default();
    let both = [path(0, 10, 10, true), path(1, 10, 100, true)];
    let second = [path(0, 10, 10, false), path(1, 10, 100, true)];
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    assert_eq!(send(&mut s, &both, at(0)), Some(0));
    assert_eq!(send(&mut s, &both, at(0)), Some(0));
    assert_eq!(send(&mut s, &second, at(0)), Some(1));
    assert_eq!(send(&mut s, &both, at(0)), Some(1));
    assert_eq!(send(&mut s, &both, at(5)), Some(0));
    // the other one's turn, but its window is full
    assert_eq!(send(&mut s, &[both[0], path(1, 10, 100, false)], at(9)), Some(0));
}

#[test]
fn lowest_rtt_and_largest_cwnd_differ_where_the_slow_path_is_wide() {
    let paths = [path(0, 10, 20, true), path(1, 40, 200, true)];
    assert_eq!(chosen(SchedulerKind::LowestRtt, &paths), Some(0));
    assert_eq!(chosen(SchedulerKind::LargestCwnd, &paths), Some(1));
    // room counts, not the window itself
    let used = [
        paths[0],
        Candidate {
            flightsize: 35 * SEGMENT,
            ..paths[1]
        },
    ];
    assert_eq!(chosen(SchedulerKind::LargestCwnd, &used), Some(0));
    let equal = [path(0, 10, 20, true), path(1, 10, 20, true)];
    assert_eq!(chosen(SchedulerKind::LowestRtt, &equal), Some(0));
    assert_eq!(chosen(SchedulerKind::LargestCwnd, &equal), Some(0));
}

#[test]
fn blest_leaves_the_slow_path_alone_where_it_would_block_the_fast_one() {
    // ten round trips of the fast path fit one of the slow: 10 x (10 + 4.5) segments go meanwhile
    let paths = [path(0, 10, 20, false), path(1, 10, 200, true)];
    let mut s = Blest {
        adjusted: Some(Instant::ZERO),
        ..Blest::default()
    };
    assert_eq!(s.choose(&paths, &backlog(1 << 20, 147 * SEGMENT)), Some(1));
    assert_eq!(s.choose(&paths, &backlog(1 << 20, 145 * SEGMENT)), None);
    // what is outstanding is part of the window
    let window = Backlog {
        outstanding: 100_000,
        ..backlog(1 << 20, 47 * SEGMENT)
    };
    assert_eq!(s.choose(&paths, &window), Some(1));
}

#[test]
fn blest_grows_more_careful_while_the_window_blocks() {
    let paths = [path(0, 10, 20, false), path(1, 10, 200, true)];
    let mut s = Blest::default();
    let mut window = backlog(1 << 20, PLENTY);
    for round in 0..1000_u64 {
        window.now = Instant::ZERO + Duration::from_millis(200 * round);
        window.was_blocked = true;
        s.choose(&paths, &window);
    }
    assert!((s.lambda - 2.0).abs() < 1e-9, "{}", s.lambda);
    for round in 1000..3000_u64 {
        window.now = Instant::ZERO + Duration::from_millis(200 * round);
        window.was_blocked = false;
        s.choose(&paths, &window);
    }
    assert!((s.lambda - 0.5).abs() < 1e-9, "{}", s.lambda);
}

#[test]
fn ecf_waits_for_the_fast_path_to_finish_what_is_left() {
    // 5 segments left: the fast path needs 1.5 round trips of 20 ms, the slow one has 200 ms to begin with
    let paths = [path(0, 10, 20, false), path(1, 2, 200, true)];
    let mut s = Ecf::default();
    assert_eq!(s.choose(&paths, &backlog(5 * u64::from(SEGMENT), PLENTY)), None);
    assert!(s.waiting);
    // much is left: both are needed
    assert_eq!(
        s.choose(&paths, &backlog(500 * u64::from(SEGMENT), PLENTY)),
        Some(1)
    );
    assert!(!s.waiting);
    // the window lets little of it go
    assert_eq!(
        s.choose(&paths, &backlog(500 * u64::from(SEGMENT), 5 * SEGMENT)),
        None
    );
    // so little that the slow path takes it at once
    let wide = [path(0, 10, 100, false), path(1, 100, 120, true)];
    assert_eq!(
        Ecf::default().choose(&wide, &backlog(u64::from(SEGMENT), PLENTY)),
        Some(1)
    );
}

#[test]
fn ecf_hesitates_to_change_its_mind() {
    // 100 + 10 x n ms against 200 ms: beyond 10 segments the slow path is taken, when waiting beyond 15
    let paths = [path(0, 10, 100, false), path(1, 2, 200, true)];
    let left = |segments: u64| backlog(segments * u64::from(SEGMENT), PLENTY);
    let mut s = Ecf::default();
    assert_eq!(s.choose(&paths, &left(12)), Some(1));
    assert_eq!(s.choose(&paths, &left(9)), None);
    assert_eq!(s.choose(&paths, &left(12)), None);
    assert_eq!(s.choose(&paths, &left(16)), Some(1));
    assert_eq!(s.choose(&paths, &left(12)), Some(1));
}

#[test]
fn ecf_compares_to_the_millisecond() {
    // powers of two: exact. The fast path needs (1 + left / 8) x 125 ms, the slow one left / 2 x 250 ms
    let with = |rttvar: [u64; 2], left: u64| {
        let mut paths = [path(0, 8, 125, false), path(1, 2, 250, true)];
        for (path, ms) in paths.iter_mut().zip(rttvar) {
            path.rttvar = Duration::from_millis(ms);
        }
        Ecf::default().choose(&paths, &backlog(left * u64::from(SEGMENT), PLENTY))
    };
    assert_eq!(with([0, 0], 2), None, "250 ms are two of its round trips");
    assert_eq!(with([0, 1], 2), Some(1));
    assert_eq!(with([0, 0], 7), None);
    assert_eq!(with([0, 0], 8), Some(1), "the slow path is as good");
    assert_eq!(with([1, 0], 8), None);
    assert_eq!(with([0, 1], 8), None);
    // a tenth of its window takes the slow path 12 ms
    let like = [path(0, 10, 100, false), path(1, 10, 120, true)];
    assert_eq!(
        Ecf::default().choose(&like, &backlog(u64::from(SEGMENT), PLENTY)),
        Some(1)
    );
}

#[test]
fn blest_adjusts_once_per_round_trip_of_the_slower_path() {
    let paths = [path(0, 10, 20, false), path(1, 10, 200, true)];
    let mut s = Blest::default();
    for (ms, was_blocked, lambda) in [
        (0, true, 1.01),
        (199, false, 1.01),
        (200, false, 1.0),
        (399, true, 1.0),
        (400, false, 1.01),
        (600, false, 1.0),
    ] {
        let window = Backlog {
            now: Instant::ZERO + Duration::from_millis(ms),
            was_blocked,
            ..backlog(1 << 20, PLENTY)
        };
        s.choose(&paths, &window);
        assert!((s.lambda - lambda).abs() < 1e-9, "{ms}: {}", s.lambda);
    }
}
