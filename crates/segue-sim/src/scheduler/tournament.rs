//! The earliest of many tickets of which one changes at a time.

use super::Ticket;
use core::hint::select_unpredictable;

/// A ticket for each of a number of contestants, and whose is the earliest: a tournament tree. A change is one path from
/// leaf to root, of a comparison each, and none of them is a branch that the processor has to guess, as those of a heap
/// are.
#[derive(Debug)]
pub(super) struct Tournament {
    /// The earliest entry below each node. Node 1 is the root, 2n and 2n + 1 are the children of n, and the last half are
    /// the contestants' own.
    earliest: Vec<Entry>,
}

/// A ticket with its contestant's number in the bits that a ticket leaves free.
type Entry = u128;

impl Default for Tournament {
    fn default() -> Self {
        Self::with_room_for(1)
    }
}

impl Tournament {
    fn with_room_for(contestants: usize) -> Self {
        assert!(
            contestants <= 1 << Ticket::FREE_BITS,
            "more links than a ticket can name"
        );
        let nodes = 2 * contestants.next_power_of_two();
        Self {
            earliest: vec![Ticket::NEVER.0; nodes],
        }
    }

    /// Gives `contestant` another ticket.
    #[inline]
    pub fn set(&mut self, contestant: u32, ticket: Ticket) {
        let mut node = self.earliest.len() / 2 + contestant as usize;
        if node >= self.earliest.len() {
            self.grow(contestant);
            node = self.earliest.len() / 2 + contestant as usize;
        }
        let mut earliest = ticket.0 | Entry::from(contestant);
        self.earliest[node] = earliest;
        while node > 1 {
            let rival = self.earliest[node ^ 1];
            earliest = select_unpredictable(rival < earliest, rival, earliest);
            node /= 2;
            self.earliest[node] = earliest;
        }
    }

    /// Who has the earliest ticket, and which; somebody with [`Ticket::NEVER`] if nobody has one.
    #[inline]
    pub fn first(&self) -> (u32, Ticket) {
        let first = self.earliest[1];
        ((first & CONTESTANT) as u32, Ticket(first & !CONTESTANT))
    }

    #[cold]
    fn grow(&mut self, contestant: u32) {
        let larger = Self::with_room_for(contestant as usize + 1);
        let former = core::mem::replace(self, larger).earliest;
        for (contestant, entry) in (0..).zip(&former[former.len() / 2..]) {
            self.set(contestant, Ticket(entry & !CONTESTANT));
        }
    }
}

const CONTESTANT: Entry = (1 << Ticket::FREE_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::random::Stream;

    #[test]
    fn the_first_is_the_earliest_whatever_changes() {
        let mut random = Stream::new(3, "tournament");
        let mut tournament = Tournament::default();
        let mut tickets = [Ticket::NEVER; 21];
        for n in 0..5000_u64 {
            let who = random.below(1 + (n / 100).min(20)) as usize;
            tickets[who] = if random.chance(0.2) {
                Ticket::NEVER
            } else {
                Ticket::new(segue_proto::Instant::from_nanos(random.below(50)), n)
            };
            tournament.set(who as u32, tickets[who]);
            let (first, ticket) = tournament.first();
            assert_eq!(Some(&ticket), tickets.iter().min());
            assert_eq!(ticket, tickets[first as usize]);
        }
    }
}
