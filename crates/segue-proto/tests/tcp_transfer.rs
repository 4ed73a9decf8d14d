//! TCP between two endpoints: every byte once and in order, whatever the network does, and both ends close.

use crate::common::tcp::{A, B, Fate, World, ms};
use segue_proto::congestion::Algorithm;
use segue_proto::random::Stream;
use segue_proto::tcp::{Config, Event, LossDetection, Profile, Reduction, State};
use segue_proto::{Duration, Instant};

const PROFILES: [Profile; 3] = [Profile::Modern, Profile::Linux39, Profile::Linux24];

#[test]
fn a_transfer_over_a_good_path_loses_and_repeats_nothing() {
    for profile in PROFILES {
        let mut w = World::new(&Config::new(profile));
        w.rate = Some(100_000_000);
        w.to_send[A] = 1_000_000;
        w.connect();
        w.run();
        assert_eq!(w.received[B], 1_000_000, "{profile:?}");
        assert_eq!(w.events[A].last(), Some(&Event::Closed));
        assert_eq!(w.events[B].last(), Some(&Event::Closed));
        assert!(w.seen.iter().all(|s| s.fate == Fate::Arrives));
        let sent: u64 = w
            .seen
            .iter()
            .filter(|s| s.from == A)
            .map(|s| u64::from(s.len))
            .sum();
        assert_eq!(sent, 1_000_000, "{profile:?}: nothing twice");
    }
}

#[test]
fn both_ends_may_send_at_once() {
    let mut w = World::new(&Config::default());
    w.rate = Some(50_000_000);
    w.to_send = [500_000, 700_000];
    w.connect();
    w.run();
    assert_eq!(w.received, [700_000, 500_000]);
    assert!(w.events.iter().all(|e| e.last() == Some(&Event::Closed)));
}

#[test]
fn one_lost_segment_is_retransmitted_once_within_two_round_trips() {
    for profile in PROFILES {
        let mut w = World::new(&Config::new(profile));
        w.rate = Some(10_000_000);
        w.to_send[A] = 500_000;
        let mut count = 0;
        w.filter = Box::new(move |from, s| {
            count += u32::from(from == A && !s.data.is_empty());
            if from == A && !s.data.is_empty() && count == 60 {
                Fate::Lost
            } else {
                Fate::Arrives
            }
        });
        w.connect();
        w.run();
        assert_eq!(w.received[B], 500_000);
        let lost = w.seen.iter().find(|s| s.fate == Fate::Lost).unwrap().clone();
        let again: Vec<_> = w
            .seen
            .iter()
            .filter(|s| s.from == A && s.seq == lost.seq && s.len > 0)
            .collect();
        assert_eq!(again.len(), 2, "{profile:?}");
        let wait = again[1].at.since(lost.at);
        assert!(wait < ms(200), "{profile:?}: {wait}");
    }
}

fn ordeal(seed: u64, config: &Config) {
    let mut w = World::new(config);
    let mut random = Stream::new(seed, "ordeal");
    let loss = random.uniform() * 0.15;
    let (twice, late) = (random.uniform() * 0.1, random.uniform() * 0.3);
    w.rate = Some(2_000_000 + random.below(20_000_000));
    w.delay = ms(1 + random.below(60));
    w.queue_packets = 5 + random.below(60) as usize;
    w.to_send = [100_000 + random.below(200_000), random.below(50_000)];
    let expected = w.to_send;
    w.record = false;
    w.filter = Box::new(move |_, _| {
        if random.chance(loss) {
            Fate::Lost
        } else if random.chance(twice) {
            Fate::Twice
        } else if random.chance(late) {
            Fate::Late(Duration::from_micros(random.below(40_000)))
        } else {
            Fate::Arrives
        }
    });
    w.connect();
    w.run();
    let state = || {
        format!(
            "seed {seed}: {:?}\n{:?}\n{:?}",
            w.events,
            w.ends[A].connections().collect::<Vec<_>>(),
            w.ends[B].connections().collect::<Vec<_>>()
        )
    };
    assert_eq!(w.received, [expected[1], expected[0]], "{}", state());
    for end in [A, B] {
        let last = w.events[end].last();
        assert_eq!(last, Some(&Event::Closed), "seed {seed} end {end}");
    }
}

#[test]
fn two_hundred_seeds_of_loss_duplication_and_reordering_deliver_every_byte() {
    let algorithms = [
        Algorithm::Reno,
        Algorithm::Cubic,
        Algorithm::Hybla,
        Algorithm::Veno,
    ];
    for seed in 0..200 {
        let mut config = Config::new(PROFILES[seed as usize % 3]);
        config.congestion_control = algorithms[seed as usize / 3 % 4];
        config.receive_buffer = 200_000;
        // an end that is through waits for the other one as long as it takes
        config.fin_wait_2 = Duration::from_secs(3600);
        match seed % 7 {
            0 => config.sack = false,
            1 => config.timestamps = false,
            2 => config.window_scaling = false,
            3 => {
                config.loss_detection = LossDetection::Rfc6675;
                config.reduction = Reduction::Immediate;
            }
            4 => config.limited_transmit = false,
            _ => {}
        }
        ordeal(seed, &config);
    }
}

#[test]
fn a_window_limited_flow_carries_a_window_per_round_trip() {
    let config = Config::default().with_window_clamp(320 * 1024);
    let mut w = World::new(&config);
    w.delay = ms(100);
    w.rate = Some(1_000_000_000);
    w.to_send[A] = u64::MAX / 2;
    w.record = false;
    w.connect();
    w.run_until(Instant::ZERO + Duration::from_secs(5));
    let before = w.received[B];
    w.run_until(Instant::ZERO + Duration::from_secs(15));
    let rate = (w.received[B] - before) as f64 / 10.0;
    let expected = f64::from(320 * 1024) / 0.2;
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate} {expected}");
}

#[test]
fn a_closed_window_is_probed_and_opens_again() {
    let config = Config {
        receive_buffer: 20_000,
        ..Config::default()
    };
    let mut w = World::new(&config);
    w.to_send[A] = 100_000;
    w.reads[B] = false;
    w.connect();
    w.run_for(Duration::from_secs(30));
    assert!(w.connection(B).counters().data_bytes_received <= 20_000);
    assert!(w.connection(A).counters().recovery.window_probes >= 3);
    assert_eq!(w.connection(A).counters().recovery.timeouts, 0);
    assert_eq!(w.connection(A).state(), State::FinWait1);
    w.reads[B] = true;
    w.read(B);
    w.run();
    assert_eq!(w.received[B], 100_000);
    assert_eq!(w.events[A].last(), Some(&Event::Closed));
}
