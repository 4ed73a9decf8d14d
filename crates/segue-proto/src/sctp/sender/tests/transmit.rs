//! What is sent next.

use super::super::plan::Plan;
use super::*;
use crate::sctp::MultipathConfig;

/// Whether cwnd of the first path lets a packet go, after what idle RTOs have done to it.
fn has_window_after_idle(a: &mut Rig, now: Instant) -> bool {
    a.strategy(now, |_, lent| lent.has_window_after_idle(FIRST))
}

#[test]
fn a_window_takes_less_than_it_is_large_and_decays_while_nothing_is_out() {
    let mut a = Rig::new(Config::default(), 1);
    a.peer.path_mut(FIRST).set_cwnd(25_000);
    a.peer.note_sent(ms(0), FIRST);
    assert!(has_window_after_idle(&mut a, ms(1000)));
    assert_eq!(a.peer[FIRST].cwnd(), 12_500);
    a.send_on(ms(4000), FIRST, 1000);
    assert!(has_window_after_idle(&mut a, ms(90_000)));
    assert_eq!(
        (a.peer[FIRST].cwnd(), a.sender.flight.size_on(FIRST)),
        (12_500, 1016)
    );
    a.peer.path_mut(FIRST).set_cwnd(1017);
    assert!(has_window_after_idle(&mut a, ms(90_000)) && a.view().has_window(FIRST));
    a.peer.path_mut(FIRST).set_cwnd(1016);
    assert!(!has_window_after_idle(&mut a, ms(90_000)) && !a.view().has_window(FIRST));
}

#[test]
fn nothing_moves_to_a_faster_path_before_a_sack_or_a_forward_tsn_that_is_due() {
    for (sack_is_due, forward_tsn_is_due) in [(false, false), (true, false), (false, true)] {
        let opportunistic = MultipathConfig {
            opportunistic: true,
            ..MultipathConfig::default()
        };
        let mut a = Rig::cmt(opportunistic, 2);
        for (path, rtt) in [(FIRST, 200), (SECOND, 20)] {
            a.peer.path_mut(path).measure(Duration::from_millis(rtt));
            a.peer.path_mut(path).set_cwnd(40_000);
            a.send_on(ms(0), path, 1000);
        }
        let data = Data::Synthetic { offset: 0, len: 1000 };
        a.sender.queue.push(ms(0), 0, data, SendOptions::default());
        a.sender.flight.advertise(0);
        if forward_tsn_is_due {
            a.sender.abandoned.advance(ms(0), Tsn(1), |_| Duration::ZERO);
        }
        let (sender, mut cx) = a.sending(ms(50));
        let plan = sender.plan(&mut cx, true, sack_is_due);
        let moves = Plan::Retransmit {
            tsn: Tsn(1),
            path: SECOND,
            forced: true,
        };
        let expected = (!sack_is_due && !forward_tsn_is_due).then_some(moves);
        assert_eq!(plan, expected, "{sack_is_due} {forward_tsn_is_due}");
    }
}
