//! Which changes of path are handovers, where a sender chooses among paths that it has: the others are changes of share.
//!
//! A path is *left* when the sender or its host says so (REMOVE_ADDR, MP_PRIO, MP_FAIL, RST of a subflow; ASCONF that deletes
//! an address or names the primary one), or when it carries nothing until the end. A path that data comes back to was not
//! left, but for two cases: of SCTP and QUIC, which use one path at a time, if it was away from it for a second; of MPTCP, which
//! may use several, if for [`STAY_NS`] another carried data all the time, [`STAY_PACKETS`] a second or more.

use super::moved::{Moved, SILENT_NS};

/// A stay of MPTCP on one path alone.
const STAY_NS: u64 = 10_000_000_000;

/// Packets a second that make a stay of what could be a pause.
const STAY_PACKETS: u64 = 10;

/// Changes of path from packet to packet that one handover may show, with what was under way and what is sent again.
const SWITCHES: u64 = 32;

/// A message that a path is left and the data that shows it are no further apart than this.
const TOLD_NS: u64 = 1_000_000_000;

/// Who chooses the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Choice {
    /// Not the sender: the network layer below, or nobody.
    Network,
    /// The sender, one path at a time.
    One,
    /// The sender, and as many as it likes.
    Several,
}

/// What a detector of handovers found in one direction.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Moves {
    pub moved: Vec<Moved>,
    /// Paths that were in use at once at the end.
    pub in_use: Vec<u16>,
    /// Changes of share.
    pub changes: u64,
}

impl Moves {
    /// Paths that take turns packet by packet never settle on one: where data changed paths far more often than with
    /// handovers, while the old path drains, they are in use at once.
    pub(in super::super) fn with_switches(self, choice: Choice, switches: u64) -> Self {
        let handovers = self.moved.len() as u64;
        let at_once = choice != Choice::Network && self.changes == 0 && switches > (handovers + 1) * SWITCHES;
        Self {
            changes: if at_once {
                switches - handovers
            } else {
                self.changes
            },
            ..self
        }
    }

    /// The move that a message is of: the first after it whose old path was used until not long before, or else the last
    /// before it, if that was not long before.
    fn told(&self, told_ns: u64) -> Option<usize> {
        let follows =
            |m: &Moved| m.first_new_ns >= told_ns && m.last_old_ns.saturating_sub(TOLD_NS) <= told_ns;
        let precedes = |m: &Moved| m.first_new_ns < told_ns && told_ns - m.first_new_ns <= TOLD_NS;
        let after = self.moved.iter().position(follows);
        after.or_else(|| self.moved.iter().rposition(precedes))
    }

    /// Without the handovers that are none: `told_ns` are the times at which a path was said to be left, `last_ns` the last
    /// data.
    pub(in super::super) fn judged(self, choice: Choice, told_ns: &[u64], last_ns: u64) -> Self {
        if choice == Choice::Network {
            return self;
        }
        let mut kept = Vec::with_capacity(self.moved.len());
        let mut changes = self.changes;
        for (number, m) in self.moved.iter().enumerate() {
            let told = told_ns.iter().any(|t| self.told(*t) == Some(number));
            let later = self.moved.get(number + 1..).unwrap_or_default();
            let back = later.iter().find(|l| l.to == m.from || l.from == m.from);
            let left = told
                || match back {
                    Some(back) => {
                        let away_ns = back.first_new_ns.saturating_sub(m.last_old_ns);
                        match choice {
                            Choice::Several => {
                                let stay_ns = back.first_new_ns.saturating_sub(m.first_new_ns);
                                let lively = m.packets_over >= stay_ns / 1_000_000_000 * STAY_PACKETS;
                                stay_ns >= STAY_NS && lively
                            }
                            Choice::One | Choice::Network => away_ns >= SILENT_NS,
                        }
                    }
                    None if self.in_use.contains(&m.from) => false,
                    // a flow that used one path and then another has moved, however early the capture ends
                    None => changes == 0 || last_ns.saturating_sub(m.last_old_ns) >= SILENT_NS,
                };
            if left {
                kept.push(m.clone());
            } else {
                changes += 1;
            }
        }
        Self {
            moved: kept,
            in_use: self.in_use,
            changes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// From one path to the other at a time, in seconds, after which so many packets went over it.
    fn at(from: u16, to: u16, seconds: u64, packets_over: u64) -> Moved {
        Moved {
            in_vain: false,
            packets_over,
            ..Moved::in_vain(from, to, seconds * S, seconds * S, seconds * S)
        }
    }

    fn judged(moved: &[Moved], choice: Choice, told_ns: &[u64], last: u64) -> (Vec<u64>, u64) {
        let moves = Moves {
            moved: moved.to_vec(),
            ..Moves::default()
        };
        let moves = moves.judged(choice, told_ns, last * S);
        let times = moves.moved.iter().map(|m| m.first_new_ns / S).collect();
        (times, moves.changes)
    }

    #[test]
    fn a_path_that_data_comes_back_to_was_not_left() {
        let turns = [at(0, 1, 2, 9), at(1, 0, 4, 9), at(0, 1, 7, 9), at(1, 0, 10, 9)];
        assert_eq!(judged(&turns, Choice::Several, &[], 10), (vec![], 4));
        // the last stays, and the one before it follows a message
        assert_eq!(judged(&turns, Choice::Several, &[7 * S], 12), (vec![7, 10], 2));
        assert_eq!(judged(&turns, Choice::Network, &[], 10), (vec![2, 4, 7, 10], 0));
        assert_eq!(judged(&turns, Choice::One, &[], 12), (vec![2, 4, 7, 10], 0));
    }

    #[test]
    fn a_bulk_transfer_that_stays_on_each_path_moves() {
        // 10 s each, and then 9 s, which are too few
        let stays = [
            at(0, 1, 10, 5000),
            at(1, 0, 20, 5000),
            at(0, 1, 29, 5000),
            at(1, 0, 31, 9),
        ];
        assert_eq!(judged(&stays, Choice::Several, &[], 40), (vec![10, 31], 2));
        let pauses = [at(0, 1, 10, 20), at(1, 0, 20, 20), at(0, 1, 30, 20)];
        assert_eq!(judged(&pauses, Choice::Several, &[], 40), (vec![30], 2));
    }

    #[test]
    fn the_only_move_is_one_however_early_the_capture_ends() {
        assert_eq!(
            judged(&[at(0, 1, 10, 2)], Choice::Several, &[], 10),
            (vec![10], 0)
        );
        // quick turns of SCTP are none
        let quick = [at(0, 1, 10, 2), at(1, 0, 10, 2)];
        assert_eq!(judged(&quick, Choice::One, &[], 10), (vec![], 2));
    }
}
