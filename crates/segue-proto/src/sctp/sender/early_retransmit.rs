//! How many reports make a chunk lost: fast retransmit (RFC 9260 section 7.2.4) and early retransmit (RFC 5827).
//!
//! A loss near the end of what there is to send is reported by no more chunks than follow it. With fewer than three, fast
//! retransmit never comes, and T3-rtx takes a round trip and its variance, behind a full queue seconds. Where less than four
//! segments are outstanding and no other can follow, and all of them have been acknowledged by gap ack blocks but one, early
//! retransmit takes that one for lost at its first report (RFC 5827 section 3.2, for connections that have SACK). How often the
//! others were reported says nothing: one SACK may be for several of them, and a SACK that is repeated is for none.
//!
//! The RFC counts packets, of which one has arrived when all its chunks have. Where all chunks but one have arrived, all
//! packets have but one, and there are no more packets than chunks.

use super::flight::Flight;
use crate::sctp::{Config, Profile};

/// From so many outstanding chunks on fast retransmit is left to itself (RFC 5827 section 3.2).
const ENOUGH: usize = 4;

/// Missing reports that mark a chunk for fast retransmit, when a SACK with this `a_rwnd` has been applied. `next_len`: user
/// bytes of the next new chunk.
pub(super) fn missing_report_threshold(
    flight: &Flight,
    config: &Config,
    a_rwnd: u32,
    next_len: impl FnOnce() -> Option<u32>,
) -> u8 {
    let usual = if config.profile == Profile::Rfc2960 { 4 } else { 3 };
    let early = config.early_retransmit
        && flight.len() < ENOUGH
        && all_arrived_but_one(flight)
        && !more_may_follow(flight, a_rwnd, next_len());
    if early { 1 } else { usual }
}

fn all_arrived_but_one(flight: &Flight) -> bool {
    let mut others = flight.iter().filter(|(_, s)| !s.is_gap_acked());
    others.next().is_some() && others.next().is_none()
}

/// Whether there is new data that the peer has room for (condition 3.b).
fn more_may_follow(flight: &Flight, a_rwnd: u32, next_len: Option<u32>) -> bool {
    let room = a_rwnd.saturating_sub(flight.outstanding_bytes());
    next_len.is_some_and(|len| len <= room)
}

#[cfg(test)]
mod tests {
    use super::super::tests::rig::Rig;
    use super::*;
    use crate::sctp::SendOptions;
    use crate::sctp::testing::{FIRST, ms};
    use segue_wire::{Data, Tsn};

    #[test]
    fn early_retransmit_takes_one_report_where_all_have_arrived_but_one_of_three() {
        let config = Config {
            early_retransmit: true,
            ..Config::default()
        };
        let flight = |config: &Config, chunks: u32, arrived: u32| {
            let mut a = Rig::new(config.clone(), 1);
            for _ in 0..chunks {
                a.send_on(ms(0), FIRST, 1000);
            }
            for tsn in 2..2 + arrived {
                a.sender.flight_mut().acknowledge(Tsn(tsn));
            }
            a
        };
        let threshold = |a: &Rig, a_rwnd| {
            let next_len = || a.sender.queue.next_len(a.peer.sizes().max_data());
            missing_report_threshold(a.sender.flight(), &a.config, a_rwnd, next_len)
        };
        assert_eq!(threshold(&flight(&config, 3, 2), 9000), 1);
        assert_eq!(threshold(&flight(&config, 3, 1), 9000), 3);
        assert_eq!(threshold(&flight(&config, 4, 3), 9000), 3);
        assert_eq!(threshold(&flight(&Config::default(), 3, 2), 9000), 3);
        let old = Config::new(Profile::Rfc2960);
        assert_eq!(threshold(&flight(&old, 3, 2), 9000), 4);
        // what may still be sent will be reported behind it
        let mut a = flight(&config, 3, 2);
        let data = Data::Synthetic { offset: 0, len: 500 };
        a.sender.queue.push(ms(0), 0, data, SendOptions::default());
        assert_eq!(threshold(&a, 1500), 3);
        assert_eq!(threshold(&a, 1499), 1);
    }
}
