//! What a sender does when its peer comes back to a network that it remembers (Cottingham and Vidales, section 7; careful
//! resume).

use crate::common::tcp::{A, B, Fate, World, address, ms};
use segue_proto::Duration;
use segue_proto::tcp::{Config, Profile, Remedy, Snapshot};

/// A near network, and one that is far and slow: prefixes.
const NEAR: u64 = 0x2001_0db8_0000_0001;
const FAR: u64 = 0x2001_0db8_0000_0002;

const NEAR_DELAY: Duration = Duration::from_millis(5);
const FAR_DELAY: Duration = Duration::from_millis(400);

const NEAR_RATE: Option<u64> = Some(100_000_000);
const FAR_RATE: Option<u64> = Some(1_000_000);

fn config(remedy: Remedy) -> Config {
    Config {
        remedy,
        ..Config::new(Profile::Linux24)
    }
}

fn injection(rtt_margin: f64) -> Remedy {
    Remedy {
        rtt_injection: true,
        rtt_margin,
        ..Remedy::default()
    }
}

fn careful() -> Remedy {
    Remedy {
        careful_resume: true,
        ..Remedy::default()
    }
}

/// A long transfer whose receiver is in the far network for 20 s, and then in the near one for 5 s.
fn after_far_and_near(remedy: Remedy) -> World {
    let mut w = World::new(&config(remedy));
    w.to_send[A] = 1 << 30;
    (w.rate, w.delay) = (FAR_RATE, FAR_DELAY);
    w.connect();
    moved(&mut w, FAR);
    w.run_for(Duration::from_secs(20));
    (w.rate, w.delay) = (NEAR_RATE, NEAR_DELAY);
    moved(&mut w, NEAR);
    w.run_for(Duration::from_secs(5));
    w
}

fn moved(w: &mut World, prefix: u64) {
    let now = w.now;
    w.ends[A].network_changed(now, address(B), prefix);
    w.drain();
}

fn back_to_far(w: &mut World) {
    (w.rate, w.delay) = (FAR_RATE, FAR_DELAY);
    moved(w, FAR);
}

fn sender(w: &World) -> Snapshot {
    w.connection(A).snapshot()
}

fn timeouts(w: &World) -> u64 {
    w.connection(A).counters().recovery.timeouts
}

#[test]
fn without_a_remedy_a_move_means_nothing() {
    let mut w = after_far_and_near(Remedy::default());
    assert_eq!(w.ends[A].remembered(FAR), None);
    let before = sender(&w);
    back_to_far(&mut w);
    assert_eq!(sender(&w), before);
    assert!(before.rto < ms(600), "{}", before.rto);
}

#[test]
fn a_network_is_remembered_when_its_peer_leaves_it() {
    let w = after_far_and_near(injection(0.0));
    let far = w.ends[A].remembered(FAR).expect("it was left");
    let round_trip = FAR_DELAY * 2;
    // a segment takes 12 ms
    assert!(
        (round_trip..round_trip + ms(30)).contains(&far.shortest),
        "{}",
        far.shortest
    );
    // a window of 64 kB waits half a second for its turn
    assert!(far.srtt >= far.shortest && far.srtt < ms(1600), "{}", far.srtt);
    let carries = 1_000_000 / 8 * far.shortest.as_millis() / 1000;
    let capacity = u64::from(far.capacity.expect("a round without loss"));
    assert!(
        (carries / 2..=carries).contains(&capacity),
        "{capacity} of {carries}"
    );
    assert_eq!(w.ends[A].remembered(NEAR), None, "the peer is still there");
}

#[test]
fn the_injected_round_trip_keeps_the_timer_from_expiring() {
    for (remedy, needless) in [(Remedy::default(), true), (injection(0.1), false)] {
        let mut w = after_far_and_near(remedy);
        let before = timeouts(&w);
        back_to_far(&mut w);
        if !needless {
            let far = w.ends[A].remembered(FAR).expect("it was left");
            let (srtt, rto) = (sender(&w).srtt.expect("measured"), sender(&w).rto);
            assert!(srtt.abs_diff(far.srtt + far.srtt / 10) < ms(2), "{srtt}");
            assert!(rto.abs_diff(srtt + far.variation) < ms(2), "{rto}");
        }
        w.run_for(Duration::from_secs(10));
        assert_eq!(timeouts(&w) > before, needless, "{} of {before}", timeouts(&w));
    }
}

#[test]
fn what_is_not_known_is_left_alone() {
    let mut w = after_far_and_near(Remedy {
        rtt_injection: true,
        ..careful()
    });
    let before = sender(&w);
    // the network that the peer is in, one that nobody has seen, and another peer's move
    moved(&mut w, NEAR);
    assert_eq!(sender(&w), before);
    moved(&mut w, 77);
    assert_eq!(sender(&w), before);
    let now = w.now;
    w.ends[A].network_changed(now, address(A), FAR);
    assert_eq!(sender(&w), before);
    assert!(w.ends[A].remembered(NEAR).is_some(), "it was left for the third");
}

/// Back to the far network, or to one at this distance that passes for it. What was under way is lost, and its first
/// retransmission; the second is under way.
fn hard_handover(w: &mut World, delay: Duration) {
    w.filter = Box::new(|from, _| if from == A { Fate::Lost } else { Fate::Arrives });
    w.run_for(NEAR_DELAY * 4);
    (w.rate, w.delay) = (FAR_RATE, delay);
    moved(w, FAR);
    wait_for_timeout(w);
    w.filter = Box::new(|_, _| Fate::Arrives);
    wait_for_timeout(w);
    assert_eq!(sender(w).cwnd, sender(w).mss);
}

fn wait_for_timeout(w: &mut World) {
    let before = timeouts(w);
    while timeouts(w) == before {
        w.run_for(ms(1));
    }
}

fn wait_for_acknowledgement(w: &mut World) {
    let before = sender(w).cwnd;
    while sender(w).cwnd == before {
        w.run_for(ms(1));
    }
}

#[test]
fn careful_resume_goes_to_half_of_what_the_network_carried_and_no_further_than_an_initial_window() {
    let mut w = after_far_and_near(careful());
    let known = w.ends[A].remembered(FAR).expect("it was left");
    let capacity = known.capacity.expect("a round without loss");
    let before = sender(&w);
    assert!(before.cwnd > 10 * before.mss);
    moved(&mut w, FAR);
    assert_eq!(sender(&w).ssthresh, capacity);
    assert_eq!(sender(&w).cwnd, 10 * before.mss);
    moved(&mut w, NEAR);
    hard_handover(&mut w, FAR_DELAY);
    wait_for_acknowledgement(&mut w);
    let jump = (capacity / 2).min(10 * before.mss);
    assert_eq!(sender(&w).cwnd, jump);
}

#[test]
fn a_network_that_is_nearer_than_it_was_is_another() {
    for (delay, segments) in [(FAR_DELAY, 10), (ms(500), 10), (ms(100), 2)] {
        let mut w = after_far_and_near(careful());
        hard_handover(&mut w, delay);
        wait_for_acknowledgement(&mut w);
        assert_eq!(sender(&w).cwnd / sender(&w).mss, segments, "{delay}");
    }
}

#[test]
fn a_jump_that_loses_retreats_to_half_of_what_arrived() {
    let mut w = after_far_and_near(careful());
    hard_handover(&mut w, FAR_DELAY);
    // what is sent on credit is lost
    w.filter = Box::new(|from, _| if from == A { Fate::Lost } else { Fate::Arrives });
    wait_for_acknowledgement(&mut w);
    assert_eq!(sender(&w).cwnd, 10 * sender(&w).mss);
    wait_for_timeout(&mut w);
    w.filter = Box::new(|_, _| Fate::Arrives);
    wait_for_timeout(&mut w);
    wait_for_acknowledgement(&mut w);
    let retreated = sender(&w);
    assert_eq!(
        retreated.ssthresh,
        2 * retreated.mss,
        "half of four segments, the least"
    );
}

#[test]
fn acknowledgements_that_were_sent_before_the_move_do_not_say_how_far_the_network_is() {
    // soft: everything arrives, but acknowledgements of what was sent to the near network come the long way
    let mut w = after_far_and_near(careful());
    back_to_far(&mut w);
    let before = timeouts(&w);
    w.run_for(Duration::from_secs(3));
    assert_eq!(
        timeouts(&w),
        before,
        "what is under way has as long as in the far network"
    );
    let far = w.ends[A].remembered(FAR).expect("it was left");
    w.delay = NEAR_DELAY;
    moved(&mut w, NEAR);
    let again = w.ends[A].remembered(FAR).expect("it was left again");
    assert!(again.shortest >= FAR_DELAY * 2, "{}", again.shortest);
    assert!(
        again.shortest.abs_diff(far.shortest) < ms(100),
        "{}",
        again.shortest
    );
}
