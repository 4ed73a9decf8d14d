//! Who the two ends of a flow are, and which addresses are known to be whose.

use crate::analyze::decode::Address;

/// An address and a port.
pub(in super::super) type End = (Address, u16);

/// Further addresses of a flow that are remembered.
const MAX_ALIASES: usize = 64;

/// The two ends, by number: 0 sent the first packet.
#[derive(Clone, Debug)]
pub(in super::super) struct Parties {
    first: [End; 2],
    /// Their addresses as first seen: identities may be identifiers alone.
    shown: [Address; 2],
    /// Further addresses, and whose they are.
    aliases: Vec<(End, usize)>,
}

impl Parties {
    /// The ends of a first packet.
    pub(in super::super) const fn new(first: [End; 2], shown: [Address; 2]) -> Self {
        Self {
            first,
            shown,
            aliases: Vec::new(),
        }
    }

    /// The same ends at the same addresses, of which nothing more is known.
    pub(super) const fn of_another_flow(&self) -> Self {
        Self::new(self.first, self.shown)
    }

    /// Their addresses as first seen.
    pub(in super::super) const fn shown(&self) -> [Address; 2] {
        self.shown
    }

    /// Their ports.
    pub(in super::super) const fn ports(&self) -> [u16; 2] {
        [self.first[0].1, self.first[1].1]
    }

    /// Whether the flow is one of IPv4, or of identities that look so.
    pub(in super::super) const fn are_v4(&self) -> bool {
        self.first[0].0.is_v4()
    }

    /// Direction of a packet between these: 0 from the first end, 1 from the other.
    pub(super) fn direction(&self, source: End, destination: End) -> usize {
        let [a, b] = self.first;
        if source == a || destination == b {
            return 0;
        }
        if source == b || destination == a {
            return 1;
        }
        self.whose_alias(source)
            .or_else(|| self.whose_alias(destination).map(|whose| 1 - whose))
            .unwrap_or_default()
    }

    fn whose_alias(&self, end: End) -> Option<usize> {
        let found = self.aliases.iter().find(|(known, _)| *known == end);
        found.map(|(_, whose)| *whose)
    }

    /// A packet of this direction went between these: addresses that are new are its ends', as long as there is room.
    pub(super) fn learn(&mut self, direction: usize, source: End, destination: End) {
        for (end, whose) in [(source, direction), (destination, 1 - direction)] {
            let known = self.first.contains(&end) || self.whose_alias(end).is_some();
            if !known && self.aliases.len() < MAX_ALIASES {
                self.aliases.push((end, whose));
            }
        }
    }

    /// A packet of this flow went between these, which are no known pair: one end is where it was, and the other is the one
    /// that moved. Whether that is so; what was learnt first makes room.
    pub(super) fn move_one(&mut self, source: End, destination: End) -> bool {
        let is = |end: End, whose: usize| self.first[whose] == end || self.aliases.contains(&(end, whose));
        let (end, whose) = if is(destination, 1) {
            (source, 0)
        } else if is(destination, 0) {
            (source, 1)
        } else if is(source, 0) {
            (destination, 1)
        } else if is(source, 1) {
            (destination, 0)
        } else {
            return false;
        };
        if self.aliases.len() >= MAX_ALIASES {
            self.aliases.remove(0);
        }
        self.aliases.push((end, whose));
        true
    }

    /// A subflow joins between these addresses, from the first to the second. Whether the first end is the one who is asked:
    /// the ends of a connection are told apart by who is asked on one of their addresses.
    pub(super) fn join(&mut self, asks: Address, asked: Address) -> bool {
        let [a, b] = self.first.map(|end| end.0);
        let known = |end: Address| self.aliases.iter().find(|((known, _), _)| *known == end);
        let asks_a = asked == a
            || asks == b
            || known(asked).is_some_and(|(_, whose)| *whose == 0)
            || known(asks).is_some_and(|(_, whose)| *whose == 1);
        for (end, whose) in [(asks, usize::from(asks_a)), (asked, usize::from(!asks_a))] {
            let listed = end == a || end == b || self.aliases.iter().any(|((known, _), _)| *known == end);
            if !listed && self.aliases.len() < MAX_ALIASES {
                self.aliases.push(((end, 0), whose));
            }
        }
        asks_a
    }
}
