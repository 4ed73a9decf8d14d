//! Two captures of which one is of a part of the time.

use super::*;

const ACK: u8 = 16;

/// How many packets of data are sent, 10 ms apart, each 20 ms under way; every tenth is lost.
const SENT: u32 = 1000;

/// When the parts begin or end, on the clock of the receiver.
const CUT_NS: u64 = 4000 * MS;

/// The clock of the sender is ahead.
const AHEAD_NS: u64 = 5000 * MS;

/// The captures of the receiver and of the sender, of what `keeps` says of their times on the receiver's clock.
/// From packet `alive` on the way is dead.
fn captures(keeps: [&dyn Fn(u64) -> bool; 2], alive: u32) -> [Vec<u8>; 2] {
    let (mn, cn) = (v6(1, 1), v6(2, 2));
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for n in 0..SENT {
        let stamp = timestamps(n, n);
        let data = ipv6(cn, mn, 6, &tcp((2, 1), n * 100, n, ACK, &stamp, 100));
        let answer = ipv6(mn, cn, 6, &tcp((1, 2), n, n * 100 + 100, ACK, &stamp, 0));
        let sent_ns = u64::from(n) * 10 * MS;
        there.push((sent_ns, data.clone()));
        if n % 10 != 3 && n < alive {
            here.push((sent_ns + 20 * MS, data));
            here.push((sent_ns + 20 * MS, answer.clone()));
            there.push((sent_ns + 40 * MS, answer));
        }
    }
    there.sort_by_key(|p| p.0);
    here.retain(|p| keeps[0](p.0));
    there.retain(|p| keeps[1](p.0));
    there.iter_mut().for_each(|p| p.0 += AHEAD_NS);
    [raw(&here), raw(&there)]
}

/// Packets sent, lost, in flight, unmatched; the same whichever capture comes first.
fn fates(keeps: [&dyn Fn(u64) -> bool; 2]) -> (u64, u64, u64, u64) {
    fates_of(captures(keeps, SENT))
}

fn fates_of([here, there]: [Vec<u8>; 2]) -> (u64, u64, u64, u64) {
    let [one, other] = [[here.clone(), there.clone()], [there, here]].map(|files| {
        let analysis = analysed(&files);
        let flow = &analysis.flows[0];
        let ends = flow.forward.ends.or(flow.reverse.ends).expect("both ends");
        (
            ends.packets_sent,
            ends.lost_packets,
            ends.in_flight_packets,
            ends.unmatched_packets,
        )
    });
    assert_eq!(one, other, "in the other order");
    one
}

const ALL: &dyn Fn(u64) -> bool = &|_| true;
const EARLY: &dyn Fn(u64) -> bool = &|ns| ns <= CUT_NS;
const LATE: &dyn Fn(u64) -> bool = &|ns| ns >= CUT_NS;

#[test]
fn captures_of_the_whole_time_have_nothing_unmatched() {
    assert_eq!(fates([ALL, ALL]), (1000, 100, 0, 0));
}

#[test]
fn what_was_sent_after_the_receivers_capture_is_unmatched() {
    // 398 came last; 399 and 400 were under way, and of 3, 13, to 393 it is known that they did not come
    assert_eq!(fates([EARLY, ALL]), (1000, 40, 2, 599));
}

#[test]
fn what_was_sent_before_the_receivers_capture_is_unmatched() {
    // 398 came first
    assert_eq!(fates([LATE, ALL]), (1000, 60, 0, 398));
}

#[test]
fn what_came_after_the_senders_capture_is_unmatched() {
    // up to 400 are known to be sent, and 60 of those after were lost
    assert_eq!(fates([ALL, EARLY]), (401, 40, 0, 539));
}

#[test]
fn what_came_before_the_senders_capture_is_unmatched() {
    assert_eq!(fates([ALL, LATE]), (600, 60, 0, 360));
}

#[test]
fn where_the_sender_hears_nothing_either_it_is_the_way_that_is_dead() {
    // 400 and what follows, but for the three that were under way when the sender's capture ended
    assert_eq!(fates_of(captures([ALL, ALL], 400)), (1000, 40 + 597, 3, 0));
}

#[test]
fn a_capture_of_the_middle_is_short_at_both_ends() {
    let middle: &dyn Fn(u64) -> bool = &|ns| (CUT_NS..=2 * CUT_NS).contains(&ns);
    // 398 to 798 arrive, but for 403, 413, to 793; 799 and 800 were under way
    assert_eq!(fates([middle, ALL]), (1000, 40, 2, 398 + 199));
}
