//! The earliest of many tickets of which one changes at a time.

use super::Ticket;

/// A ticket for each of a number of contestants, and whose is the earliest: a tournament tree. A change is one path from
/// leaf to root, of a comparison each.
#[derive(Debug)]
pub(super) struct Tournament {
    /// The earliest entry below each node; nodes 2n and 2n + 1 are rivals. First come the contestants' own, then those of a
    /// round after the other, so that the winner of nodes 2n and 2n + 1 is node `places + n`. The last has no rival and no
    /// place here: it is [`Self::first`].
    nodes: Vec<Entry>,
    /// How many contestants there is room for: a power of two.
    places: usize,
    first: Entry,
}

/// A ticket with its contestant's number in the bits that a ticket leaves free.
type Entry = u128;

impl Default for Tournament {
    fn default() -> Self {
        Self::with_room_for(2)
    }
}

impl Tournament {
    fn with_room_for(contestants: usize) -> Self {
        assert!(
            contestants <= 1 << Ticket::FREE_BITS,
            "more links than a ticket can name"
        );
        let places = contestants.next_power_of_two();
        Self {
            nodes: vec![Ticket::NEVER.key(); 2 * (places - 1)],
            places,
            first: Ticket::NEVER.key(),
        }
    }

    /// Gives `contestant` another ticket.
    #[inline]
    pub fn set(&mut self, contestant: u32, ticket: Ticket) {
        if contestant as usize >= self.places {
            self.grow(contestant);
        }
        let mut node = contestant as usize;
        let mut earliest = ticket.key() | Entry::from(contestant);
        while let Some(own) = self.nodes.get_mut(node) {
            *own = earliest;
            let rival = self.nodes[node ^ 1];
            // guessed well, since links take turns: a choice without a branch waits for every level before, and takes longer
            if rival < earliest {
                earliest = rival;
            }
            node = self.places + node / 2;
        }
        self.first = earliest;
    }

    /// Who has the earliest ticket, and which; somebody with [`Ticket::NEVER`] if nobody has one.
    #[inline]
    pub fn first(&self) -> (u32, Ticket) {
        let first = self.first;
        ((first & CONTESTANT) as u32, Ticket::of_key(first & !CONTESTANT))
    }

    #[cold]
    fn grow(&mut self, contestant: u32) {
        let larger = Self::with_room_for(contestant as usize + 1);
        let former = core::mem::replace(self, larger);
        let own = &former.nodes[..former.places];
        for (contestant, entry) in (0..).zip(own) {
            self.set(contestant, Ticket::of_key(entry & !CONTESTANT));
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
