//! Identifiers of associations, and what is asked for once one has been given something.

use super::*;
use crate::sctp::Config;
use crate::sctp::association::tests::{begun, up};
use crate::sctp::testing::ms;

/// An identifier that came again would be looked for among those before it.
#[test]
fn identifiers_go_on_after_four_thousand_million_associations() {
    let mut associations = Associations {
        next_id: u64::from(u32::MAX),
        ..Associations::default()
    };
    let first = associations.insert(begun(&Config::default(), 1));
    let second = associations.insert(up(Config::default(), 1));
    assert!(first < second);
    assert_eq!(associations.slot_of(first), Some(0));
    assert_eq!(associations.slot_of(second), Some(1));
    let is_up = |id| associations.get(id).map(Association::is_established);
    assert_eq!((is_up(first), is_up(second)), (Some(false), Some(true)));
}

/// What is gone is not taken for what has come in its place.
#[test]
fn an_identifier_outlives_its_association_and_means_no_other() {
    let mut associations = Associations::default();
    let all = [0; 3].map(|_| associations.insert(up(Config::default(), 1)));
    associations.last = 1;
    let gone = all[1];
    associations.command(gone, |a| a.close(Event::Closed));
    while associations.poll_event().is_some() {}
    associations.reap();
    assert_eq!(associations.len(), 2);
    assert!(associations.get(gone).is_none() && associations.lend(gone).is_none());
    assert_eq!(associations.command(gone, |_| ()), None);
    assert_eq!(associations.slot_of(all[2]), Some(1));
    assert!(associations.get(all[2]).is_some());
    associations.list_touched();
    assert!(associations.index_is_complete());
}

/// What nobody has asked for yet is asked for, however often the association was given something before.
#[test]
fn what_is_given_between_two_looks_is_told_and_timed_whatever_was_given_before() {
    let config = Config {
        quick_sacks: 0,
        ..Config::default()
    };
    let mut associations = Associations::default();
    let all = [0; 2].map(|_| associations.insert(up(config.clone(), 1)));
    let at_rest = |associations: &mut Associations| {
        let mut packet = Packet::EMPTY;
        while associations.poll_transmit_into(ms(0), &mut packet).is_some() {}
        assert_eq!(associations.poll_event(), None);
        assert!(!associations.may_transmit() && !associations.has_events());
    };
    at_rest(&mut associations);
    for (id, arrival) in all.into_iter().zip([ms(5), ms(0)]) {
        // it has something to tell, and then something to send as well, before anybody has asked; and the other way round
        associations.give(id, |_| ());
        assert!(!associations.may_transmit() && !associations.has_events());
        let tell = |a: &mut Association| a.tell(Event::SendersDry);
        let send = |a: &mut Association| [ms(0); 2].map(|at| a.owe_sack(at));
        associations.give(id, tell);
        assert!(!associations.may_transmit() && associations.has_events());
        associations.give(id, send);
        assert!(associations.may_transmit());
        assert_eq!(associations.poll_event(), Some((id, Event::SendersDry)));
        at_rest(&mut associations);
        associations.give(id, send);
        assert!(associations.may_transmit() && !associations.has_events());
        associations.give(id, tell);
        assert_eq!(associations.poll_event(), Some((id, Event::SendersDry)));
        at_rest(&mut associations);
        // the timers were asked for, and then there is an earlier one
        associations.command(id, |_| ());
        assert_ne!(associations.poll_timeout(), Some(arrival + config.sack_delay));
        associations.command(id, |a| a.owe_sack(arrival));
        assert_eq!(associations.poll_timeout(), Some(arrival + config.sack_delay));
        at_rest(&mut associations);
    }
}
