//! How bindings of correspondents end, or do not.

use super::*;

/// Sections 11.5.5 and 5.2.5: back home the correspondent is told too; the home keygen token alone makes the key.
#[test]
fn s11_5_5_back_home_correspondents_delete_their_bindings() {
    let mut net = optimized(|_| {});
    net.take_events(CN);
    net.hand_over(MN, 1, 0, HOME);
    net.run(secs(1));
    assert!(net.correspondent(CN).binding_cache().get(HOME).is_none());
    assert_eq!(net.take_events(CN), [routed(HOME, HOME)]);
    let (_, from, to, update) = net
        .signalling()
        .into_iter()
        .rev()
        .find(|s| is_update_to(&s.3, false))
        .expect("Binding Update");
    assert_eq!((from, to), (HOME, CORRESPONDENT));
    assert!(matches!(update.message, MobilityMessage::BindingUpdate(u) if u.lifetime == 0));
    assert!(!net.mobile(MN).is_optimized(CORRESPONDENT));
    net.sent.clear();
    net.send(CN, HOME, b"in");
    net.send(MN, CORRESPONDENT, b"out");
    net.run(secs(1));
    assert!(net.sent.iter().all(|(_, p)| p.extensions.is_empty()));
    assert_eq!(net.take_received(MN).len(), 1);
    assert_eq!(net.take_received(CN), [(HOME, CORRESPONDENT, b"out".to_vec())]);
}

/// Section 9.5.3, 9.1: a binding ends with its lifetime, and packets to the mobile node go to its home address again.
#[test]
fn s9_1_a_binding_that_is_not_refreshed_ends() {
    let mut net = optimized(|_| {});
    // not talked to: nothing is refreshed
    net.run(secs(425));
    assert!(net.correspondent(CN).binding_cache().get(HOME).is_none());
    assert_eq!(net.counts(CN).bindings_expired, 1);
    assert!(!net.mobile(MN).is_optimized(CORRESPONDENT));
    let events = net.take_events(MN);
    assert_eq!(events.last(), Some(&routed(CORRESPONDENT, HOME_AGENT)));
    net.send(CN, HOME, b"in");
    net.run(secs(1));
    assert_eq!(net.take_received(MN).len(), 1, "by the home agent");
    assert_eq!(net.counts(MN).tunnelled_in, 1);
}

/// A binding in use is refreshed by the mobile node before it ends, without a gap.
#[test]
fn s11_7_2_a_binding_in_use_is_refreshed() {
    let mut net = optimized(|_| {});
    net.take_events(MN);
    for _ in 0..100 {
        net.send(MN, CORRESPONDENT, b"tick");
        net.send(CN, HOME, b"tock");
        net.run(secs(10));
    }
    assert_eq!(net.take_received(MN).len(), 100);
    assert_eq!(net.take_received(CN).len(), 100);
    assert_eq!(net.take_events(MN), [], "no gap, no handoff");
    assert_eq!(net.counts(MN).optimized_out, 100);
    assert!(net.counts(CN).bindings_accepted > 2);
}

/// Section 9.5.5: the correspondent asks for a refresh of what it uses, and section 11.7.4: it gets one.
#[test]
fn s9_5_5_a_correspondent_asks_for_a_refresh() {
    let mut net = optimized(|_| {});
    // only the correspondent talks; the mobile node thinks nothing of it
    for _ in 0..80 {
        net.run(secs(5));
        net.send(CN, HOME, b"tock");
    }
    assert_eq!(net.counts(CN).refresh_requests_sent, 1);
    assert_eq!(net.counts(CN).bindings_accepted, 2);
    net.run(secs(30));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    assert_eq!(net.counts(CN).bindings_expired, 0);
}

/// Sections 9.5.1 and 9.5.4: a Binding Update with a nonce that is no longer valid is refused by status 136 to 138, and the
/// mobile node starts over.
#[test]
fn s9_5_1_an_expired_nonce_is_refused_and_new_tests_follow() {
    let mut config = correspondent_config();
    config.nonce_lifetime = secs(40);
    let mut net = Net::of(
        mobile_config(HOME, HOME_AGENT),
        config,
        agent_config(HOME_AGENT, HOME),
    );
    net.attach(MN, 0, HOME);
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(50));
    net.sent.clear();
    net.hand_over(MN, 1, 2, CARE_OF_2);
    net.run(secs(1));
    assert_eq!(net.counts(CN).expired_nonce, 1);
    let refused = net.signalling().into_iter().any(|(_, _, _, h)| {
        matches!(h.message, MobilityMessage::BindingAcknowledgement(a)
            if a.status == binding_status::EXPIRED_HOME_NONCE)
            && h.authenticator().is_none()
    });
    assert!(refused);
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
}

/// Section 9.5.5: a refresh is asked for three times at equal intervals before the binding ends, and not at all where that is
/// not wanted.
#[test]
fn s9_5_5_a_refresh_is_asked_for_three_times_at_most() {
    for (before, asked) in [(30, &[-30, -20, -10][..]), (0, &[])] {
        let mut config = correspondent_config();
        config.refresh_before = secs(before);
        let mut net = Net::of(
            mobile_config(HOME, HOME_AGENT),
            config,
            agent_config(HOME_AGENT, HOME),
        );
        net.attach(MN, 0, HOME);
        net.send(MN, CORRESPONDENT, b"hello");
        net.run(secs(1));
        net.hand_over(MN, 0, 1, CARE_OF);
        net.run(secs(1));
        let expires = net
            .correspondent(CN)
            .binding_cache()
            .get(HOME)
            .expect("a binding")
            .expires;
        // the mobile node is gone, and the correspondent does not know
        net.detach(MN, 1);
        net.sent.clear();
        while net.now < expires + secs(5) {
            net.send(CN, HOME, b"tock");
            net.run(segue_proto::Duration::from_millis(500));
        }
        let mut times: Vec<i64> = net
            .signalling()
            .iter()
            .filter(|(_, from, _, header)| {
                *from == CORRESPONDENT && matches!(header.message, MobilityMessage::BindingRefreshRequest)
            })
            .map(|(at, ..)| (at.as_nanos() as i64 - expires.as_nanos() as i64).div_euclid(1_000_000_000))
            .collect();
        // on its way it is seen again in the home agent's tunnel
        times.dedup();
        assert_eq!(times.len(), asked.len(), "{times:?}");
        assert!(
            times.iter().zip(asked).all(|(at, due)| (*at - due).abs() <= 1),
            "{times:?}"
        );
        assert_eq!(net.counts(CN).refresh_requests_sent, asked.len() as u64);
        assert_eq!(net.counts(CN).bindings_expired, 1);
    }
}
