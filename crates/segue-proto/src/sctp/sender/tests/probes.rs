//! Probes of a window that is closed.

use super::super::sack::SackOutcome;
use super::super::transmit::Packing;
use super::*;
use segue_wire::sctp::{Chunk, Sack};
use smallvec::SmallVec;

/// A SACK tells of the peer's window, and perhaps of something that arrived.
fn told(a: &mut Rig, cumulative: u32, a_rwnd: u32) {
    let sack = Sack {
        cumulative_tsn_ack: Tsn(cumulative),
        a_rwnd,
        gap_ack_blocks: Default::default(),
        duplicate_tsns: Vec::new().into(),
        data_packets: 0,
    };
    assert_eq!(a.sack(ms(10), &sack), Ok(SackOutcome::Taken));
}

#[test]
fn a_probe_that_was_refused_goes_out_again_when_the_window_opens() {
    let mut a = Rig::new(Config::default(), 2);
    let tsn = a.send_on(ms(0), FIRST, 500);
    a.sender.credit.on_probe_sent(tsn);
    assert!(!a.sender.probe_was_answered(FIRST));
    told(&mut a, 0, 0);
    assert!(a.sender.probe_was_answered(FIRST) && !a.sender.probe_was_answered(SECOND));
    told(&mut a, 0, 499);
    assert_eq!(a.sender.flight.marked(), 0);
    told(&mut a, 0, 500);
    assert_eq!(a.sender.flight.marked(), 1);
    assert_eq!(
        (a.sender.flight.size_on(FIRST), a.sender.flight.t3_rtx(FIRST)),
        (0, None)
    );
    assert_eq!((a.sender.credit.probe(), a.sender.peer_rwnd()), (None, 500));
    // a first answer that has room says only that it is on its way
    let mut a = Rig::new(Config::default(), 1);
    let tsn = a.send_on(ms(0), FIRST, 500);
    a.sender.credit.on_probe_sent(tsn);
    told(&mut a, 0, 500);
    assert_eq!(
        (a.sender.flight.marked(), a.sender.credit.probe()),
        (0, Some(tsn))
    );
    // and one that acknowledges it, that it was taken
    told(&mut a, 1, 500);
    assert_eq!(a.sender.credit.probe(), None);
}

#[test]
fn t3_rtx_of_an_answered_probe_blames_nobody() {
    let mut a = Rig::new(Config::default(), 1);
    a.peer.path_mut(FIRST).set_cwnd(9000);
    let tsn = a.send_on(ms(0), FIRST, 500);
    a.sender.credit.on_probe_sent(tsn);
    told(&mut a, 0, 0);
    assert_eq!(a.on_t3(ms(1000)), None);
    assert_eq!(a.peer[FIRST].cwnd(), 9000);
    assert_eq!(a.peer[FIRST].rto(), Duration::from_secs(2));
    assert_eq!(a.sender.flight.marked(), 1);
    a.sender.force_retransmission();
    assert_eq!(go_again(&mut a, ms(1000)), 1);
    assert_eq!(
        a.sender.credit.answered_probe(),
        None,
        "the next answer is to that"
    );
}

/// A packet of retransmissions goes out; how many chunks it has.
fn go_again(a: &mut Rig, now: Instant) -> usize {
    let (sender, mut cx) = a.sending(now);
    sender.open_burst(cx.config, cx.peer);
    let plan = sender.plan(&mut cx, true, false).expect("it is marked");
    let packing = Packing {
        room: 1448,
        closing: false,
        peer_tag: 0,
    };
    let mut chunks: SmallVec<[Chunk; 1]> = SmallVec::new();
    sender.bundle(&mut cx, plan, packing, &mut chunks);
    chunks.len()
}

#[test]
fn an_answered_probe_that_went_again_because_its_path_is_gone_waits_for_another_answer() {
    let mut a = Rig::new(Config::default(), 2);
    let tsn = a.send_on(ms(0), FIRST, 500);
    a.sender.credit.on_probe_sent(tsn);
    // the window is open, and the probe may be on its way
    told(&mut a, 0, 100_000);
    assert_eq!(a.sender.credit.answered_probe(), Some(tsn));
    a.sender.leave_paths(&[FIRST], &mut a.out.counters.multipath);
    assert_eq!(a.sender.flight.marked(), 1);
    assert_eq!(go_again(&mut a, ms(20)), 1);
    // as may the copy be now
    told(&mut a, 0, 100_000);
    assert_eq!((a.sender.flight.marked(), a.sender.flight.counts().1), (0, 1));
}
