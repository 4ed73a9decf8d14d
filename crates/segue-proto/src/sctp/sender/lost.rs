//! What is under way is given up on: by cause, what that does to the flight, to the peer's window, and to our own.
//!
//! | cause | peer's window | cwnd | fast recovery | goes again |
//! |---|---|---|---|---|
//! | missing reports | given back | cut once an episode | begins | one packet whatever cwnd says |
//! | timeout | given back | one segment; ssthresh halved | ends | one packet whatever cwnd says |
//! | the path is gone | given back | as it was | ends, if the address was ours | as cwnd allows; one packet at once, with others in use |
//! | too big | given back | as it was | goes on | as cwnd allows |
//! | rescheduled | given back | that of its path halved, once a round trip | goes on | at once, on the faster path |
//! | a probe is refused | given back | as it was | goes on | as cwnd allows |
//! | abandoned | given back | as it was | goes on | never |
//!
//! The second column is here; the third is [`losses`](super::losses), [`timeout`](super::timeout) and the strategy's; the
//! fourth is where the cause is found.

use super::chunk::{Cause, Sent};
use super::credit::Credit;
use super::flight::{Flight, Left};
use crate::sctp::ids::PathId;
use crate::time::{Duration, Instant};
use segue_wire::Tsn;

/// Everything outstanding for which `which` holds is to be sent again.
pub(in crate::sctp) fn lose(
    flight: &mut Flight,
    credit: &mut Credit,
    cause: Cause,
    which: impl FnMut(&Sent) -> bool,
) -> Left {
    let left = flight.lose(cause, which);
    credit.give_back(left.bytes());
    left
}

/// One chunk is to be sent again, if it is outstanding; returns whether it was, and the path that it was on.
pub(in crate::sctp) fn lose_one(
    flight: &mut Flight,
    credit: &mut Credit,
    cause: Cause,
    tsn: Tsn,
) -> Option<Option<PathId>> {
    let (path, len) = flight.lose_one(cause, tsn)?;
    credit.give_back(len);
    Some(path)
}

/// T3-rtx of a path expired: see [`Flight::expire`].
pub(super) fn expire(
    flight: &mut Flight,
    credit: &mut Credit,
    now: Instant,
    path: PathId,
    (spared, rto): (Instant, Duration),
) -> (Left, u32) {
    let (left, chunks) = flight.expire(now, path, spared, rto);
    credit.give_back(left.bytes());
    (left, chunks)
}

/// One chunk is never sent again.
pub(super) fn abandon(flight: &mut Flight, credit: &mut Credit, tsn: Tsn) {
    if let Some(len) = flight.abandon(tsn) {
        credit.give_back(len);
    }
}
