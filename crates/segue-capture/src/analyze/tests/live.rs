//! Captures that are analysed while they are made.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn input(bytes: &[u8]) -> Input {
    Input::Bytes("capture 0".to_owned(), bytes.into())
}

#[test]
fn a_live_analysis_ends_with_the_result_of_any_other() {
    for capture in &transports::everything() {
        let mut last = None;
        let watch = Arc::new(Watch::default());
        let live = analyze_live(&input(capture), &Options::default(), &watch, |glance| {
            last = Some(glance.clone());
        });
        let expected = analysed(core::slice::from_ref(capture));
        assert_eq!(live.unwrap(), expected);
        assert!(last.is_some_and(|g| g.packets >= 1));
    }
}

/// What a look at a capture that ends here shows.
fn glance(capture: &[u8]) -> Glance {
    let options = Options::default();
    let reader = Reader::open(&input(capture)).unwrap();
    let common = Common::default();
    let stream = Stream::new(reader, String::new(), 0, common.clocks);
    let mut run = Run::new(vec![stream], common, &options);
    while run.step() != reader::Next::End {}
    run.glance().unwrap()
}

#[test]
fn a_look_shows_what_the_result_would_say() {
    let mut moved = 0;
    for capture in &transports::everything() {
        let (glance, result) = (glance(capture), analysed(core::slice::from_ref(capture)));
        assert_eq!(glance.handovers, result.handovers.len() as u64);
        assert_eq!(glance.flows_total, result.flows_total);
        assert_eq!(glance.packets, result.captures[0].packets);
        assert_eq!(glance.time_s, result.duration_s);
        let whole: Vec<_> = result.flows.iter().filter(|f| f.parent.is_none()).collect();
        assert!(whole.len() <= 16, "all are shown");
        assert_eq!(glance.flows.iter().map(|g| &g.flow).collect::<Vec<_>>(), whole);
        let last = result
            .handovers
            .iter()
            .max_by_key(|h| (h.record.time * 1e9) as u64);
        assert_eq!(glance.last_handover.is_some(), last.is_some());
        if let (Some(shown), Some(last)) = (&glance.last_handover, last) {
            moved += 1;
            assert_eq!(shown.record.time, last.record.time);
            assert_eq!(shown.record.interruption_s, last.record.interruption_s);
            assert_eq!(
                glance.flows.iter().map(|g| g.handovers).sum::<u64>(),
                glance.handovers
            );
        }
    }
    assert!(moved > 3, "{moved}");
}

#[test]
fn the_flows_that_matter_most_are_shown() {
    let datagram = |port: u16, n: u16, len: usize| {
        ipv4(
            [10, 0, 0, 1],
            [10, 0, 0, 2],
            17,
            n,
            &udp((port, 2000), &vec![7; len]),
        )
    };
    let mut packets = Vec::new();
    for port in 1..=500u16 {
        packets.push((u64::from(port) * MS, datagram(port, port, usize::from(port))));
    }
    let glance = glance(&raw(&packets));
    let ports: Vec<_> = glance.flows.iter().map(|g| g.flow.a.port).collect();
    assert_eq!(ports, (485..=500).collect::<Vec<_>>());
    assert_eq!((glance.flows_total, glance.handovers), (500, 0));
    assert_eq!(glance.flows[0].silent_s, 0.015);
}

#[test]
fn what_is_ended_is_a_result_and_not_a_partial_one() {
    let datagram = |n: u16| ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, n, &udp((1, 2000), &[7; 99]));
    let packets: Vec<_> = (0..50_000).map(|n| (n * MS, datagram(n as u16))).collect();
    let file = raw(&packets);
    let watch = Arc::new(Watch::default());
    let looks = AtomicU64::new(0);
    let analysis = analyze_live(&input(&file), &Options::default(), &watch, |_| {
        looks.fetch_add(1, Ordering::Relaxed);
        watch.end();
    });
    let capture = &analysis.unwrap().captures[0];
    assert!(looks.load(Ordering::Relaxed) > 0);
    // what was read by then is analysed
    assert!(
        capture.packets >= 1 && capture.packets < 50_000,
        "{}",
        capture.packets
    );
    assert_eq!(capture.partial, None);
}
