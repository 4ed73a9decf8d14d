//! Saturated stations of a radio channel, against Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination
//! Function", JSAC 18(3), 2000.

use segue_proto::random::Stream;
use segue_proto::units::BitRate;
use segue_proto::{Duration, Instant};
use segue_sim::radio::{Channel, ChannelConfig, Frame, Outcome, StationId};
use segue_sim::scheduler::{Event, Scheduler};
use segue_sim::store::PacketRef;

/// Payload of a packet: 8184 bits (table II).
const PAYLOAD_BYTES: u32 = 1023;
const FRAME: Frame = Frame::Unicast {
    to: StationId(0),
    packet: PacketRef(0),
    length: PAYLOAD_BYTES,
    urgent: false,
};

/// The parameters of table II, with these windows, and as many attempts as it takes.
fn config(cw_min: u32, cw_max: u32) -> ChannelConfig {
    let rate = BitRate::from_bits_per_second(1_000_000);
    ChannelConfig {
        rate,
        basic_rate: rate,
        slot: Duration::from_micros(50),
        sifs: Duration::from_micros(28),
        difs: Duration::from_micros(128),
        preamble: Duration::from_micros(128),
        overhead_bytes: 34,
        ack_bytes: 14,
        cw_min,
        cw_max,
        attempts: u32::MAX,
        ..ChannelConfig::default()
    }
}

/// Share of the time in which payload is sent that arrives, over 400 s of `n` stations that always have something to send.
fn simulated(n: u32, config: &ChannelConfig) -> f64 {
    let mut channel = Channel::new(0, config.clone(), Stream::new(1, "saturation"));
    let mut scheduler = Scheduler::default();
    for station in 1..=n {
        for _ in 0..3 {
            channel.enqueue(Instant::ZERO, StationId(station), FRAME, &mut scheduler);
        }
    }
    let end = Instant::ZERO + Duration::from_secs(400);
    let (mut arrived, mut outcomes) = (0_u64, Vec::new());
    while let Some((now, event)) = scheduler.pop_until(end) {
        if let Event::Channel { generation, .. } = event {
            channel.handle_event(now, generation, &mut scheduler, |_, _| true, &mut outcomes);
        }
        for outcome in outcomes.drain(..) {
            if let Outcome::Sent(from, _) = outcome {
                arrived += 1;
                channel.enqueue(now, from, FRAME, &mut scheduler);
            }
        }
    }
    let payload = config.rate.time_for(u64::from(PAYLOAD_BYTES)).as_secs_f64();
    arrived as f64 * payload / end.since(Instant::ZERO).as_secs_f64()
}

/// The same by equations 7, 9, 10, 11 and 13, where a collision takes as long as a success: its stations wait for the
/// acknowledgement that does not come.
fn by_the_model(n: u32, config: &ChannelConfig, air_time: Duration) -> f64 {
    let w = f64::from(config.cw_min + 1);
    let m = (f64::from(config.cw_max + 1) / w).log2();
    let collides = |tau: f64| 1.0 - (1.0 - tau).powi(n as i32 - 1);
    let transmits = |p: f64| {
        let q = 1.0 - 2.0 * p;
        2.0 * q / (q * (w + 1.0) + p * w * (1.0 - (2.0 * p).powf(m)))
    };
    // the one falls and the other rises
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let tau = f64::midpoint(low, high);
        // 0/0 at p = 1/2, which no step meets
        if transmits(collides(tau)) > tau {
            low = tau;
        } else {
            high = tau;
        }
    }
    let tau = f64::midpoint(low, high);
    let some = 1.0 - (1.0 - tau).powi(n as i32);
    let one = f64::from(n) * tau * (1.0 - tau).powi(n as i32 - 1);
    let busy = (air_time + config.difs).as_secs_f64();
    let payload = config.rate.time_for(u64::from(PAYLOAD_BYTES)).as_secs_f64();
    one * payload / ((1.0 - some) * config.slot.as_secs_f64() + some * busy)
}

#[test]
fn saturation_throughput_is_that_of_bianchis_model() {
    // m = 3 and 5 stages above a window of 32, 3 above 128: figure 6
    for (cw_min, cw_max) in [(31, 255), (31, 1023), (127, 1023)] {
        let config = config(cw_min, cw_max);
        let air_time = Channel::new(0, config.clone(), Stream::new(1, "")).air_time(&FRAME);
        for n in [1, 2, 5, 10, 20, 50] {
            let (ours, theirs) = (simulated(n, &config), by_the_model(n, &config, air_time));
            let off = ours / theirs - 1.0;
            // the model counts a busy slot down as an idle one, which stations do not
            assert!(
                off.abs() < 0.02,
                "{cw_min} to {cw_max}, {n} stations: {ours} and {theirs}"
            );
        }
    }
}
