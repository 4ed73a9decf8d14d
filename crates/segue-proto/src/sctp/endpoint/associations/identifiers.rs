//! Identifiers of associations.

use super::*;
use crate::sctp::Config;
use crate::sctp::association::tests::{begun, up};

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
