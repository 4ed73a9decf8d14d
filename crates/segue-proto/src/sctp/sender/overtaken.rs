//! SACKs that another one has overtaken (RFC 9260 section 6.2.1 rule i; paper 003, section III-A, second problem).
//!
//! The receiver's SACKs go back over the paths that the data came by, and one may overtake another. One with a lower cumulative
//! TSN ack is old. With an equal one, first comes one with more gap ack blocks, then one with fewer: by section 6.2.1 the
//! second means that the receiver reneged, and what it leaves out would be outstanding again. Here it is taken for what it
//! is: a receiver only adds to what it holds, so a SACK whose blocks lie within the ones known, with the same cumulative TSN
//! ack, is an old one. It changes nothing, its window included. A receiver that really reneged is believed as soon as its
//! cumulative TSN ack moves, which it does before the chunk in question is next; that SACK is newer than all before it. Where
//! there has never been another path nothing is to be doubted, and the RFC's reading holds.

use super::flight::Flight;
use super::gaps::Change;
use crate::sctp::peer::Peer;
use crate::sctp::{Config, MultipathCounters};
use segue_wire::Tsn;

/// Whether a SACK with this cumulative TSN ack, whose blocks change this, was overtaken, and is to change nothing.
#[inline]
pub(super) fn is_overtaken(
    flight: &Flight,
    peer: &Peer,
    config: &Config,
    (cumulative, change): (Tsn, &Change),
    counters: &mut MultipathCounters,
) -> bool {
    let is_doubtful = cumulative == flight.cumulative_tsn_ack() && !flight.reported().is_empty();
    if !is_doubtful || peer.has_had_one_path() {
        return false;
    }
    let stale = !change.is_none() && change.newly().is_empty();
    let Some(multipath) = config.multipath else {
        return stale;
    };
    counters.stale_sacks += u64::from(stale);
    stale && multipath.ignore_stale_sacks
}

#[cfg(test)]
mod tests {
    use super::super::gaps::tests::blocks as blocks_of;
    use super::super::tests::rig::Rig;
    use super::*;
    use crate::sctp::MultipathConfig;

    fn is_overtaken_by(a: &mut Rig, cumulative: u32, blocks: &[(u32, u32)]) -> bool {
        let change = a
            .sender
            .flight()
            .reported()
            .change(Tsn(cumulative), &blocks_of(blocks));
        is_overtaken(
            a.sender.flight(),
            &a.peer,
            &a.config,
            (Tsn(cumulative), &change),
            &mut a.out.counters.multipath,
        )
    }

    #[test]
    fn a_sack_with_fewer_blocks_and_the_same_cumulative_ack_was_overtaken() {
        let with = |ignore, destinations| {
            let multipath = MultipathConfig {
                ignore_stale_sacks: ignore,
                ..MultipathConfig::default()
            };
            let mut a = Rig::cmt(multipath, destinations);
            let blocks = blocks_of(&[(3, 4), (6, 6)]);
            let change = a.sender.flight().reported().change(Tsn(0), &blocks);
            a.sender.flight_mut().blocks_are_applied(Tsn(0), &blocks, &change);
            a
        };
        let mut a = with(true, 2);
        for (cumulative, blocks, stale) in [
            (0, &[(3, 4)][..], true),
            (0, &[(4, 4), (6, 6)], true),
            (0, &[], true),
            (0, &[(3, 4), (6, 6)], false),
            (0, &[(3, 5)], false),
            (1, &[(2, 3)], false),
        ] {
            let overtaken = is_overtaken_by(&mut a, cumulative, blocks);
            assert_eq!(overtaken, stale, "{cumulative} {blocks:?}");
        }
        assert_eq!(a.out.counters.multipath.stale_sacks, 3);
        // counted, and believed
        let mut a = with(false, 2);
        assert!(!is_overtaken_by(&mut a, 0, &[(3, 4)]));
        assert_eq!(a.out.counters.multipath.stale_sacks, 1);
        // on one path nothing overtakes
        assert!(!is_overtaken_by(&mut with(true, 1), 0, &[(3, 4)]));
        // nor where nothing was reported
        let mut a = Rig::cmt(MultipathConfig::default(), 2);
        assert!(!is_overtaken_by(&mut a, 0, &[]));
    }
}
