//! Where a domain name stands among others.

use super::Name;

/// The labels of a name from the root on, each with its length before it, in lower case (RFC 4343): what is below a name
/// begins with it, so that it follows it in order, and two of them are compared byte by byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place(Box<[u8]>);

impl Place {
    /// That of `name`.
    pub fn of(name: &Name) -> Self {
        let wire = name.as_slice();
        let mut ends = Vec::new();
        let mut at = 0;
        while let Some(&len) = wire.get(at).filter(|len| **len > 0) {
            let end = at + 1 + usize::from(len);
            ends.push((at, end));
            at = end;
        }
        let labels = ends.iter().rev().filter_map(|(from, to)| wire.get(*from..*to));
        Self(labels.flatten().map(u8::to_ascii_lowercase).collect())
    }

    /// Whether this is `other` or below it.
    pub fn is_in(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Those from `top` down to this, both included; none if this is not in `top`.
    pub fn way_from(&self, top: &Self) -> impl Iterator<Item = Self> {
        let mut next = self.is_in(top).then_some(top.0.len());
        core::iter::from_fn(move || {
            let end = next?;
            next = self.0.get(end).map(|len| end + 1 + usize::from(*len));
            Some(Self(self.0.get(..end)?.into()))
        })
    }

    /// As bytes: of at most 255, as names are.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// From [`Self::as_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        #[cfg(test)]
        COMPARED.with(|n| n.set(n.get() + 1));
        self.0.cmp(&other.0)
    }
}

#[cfg(test)]
std::thread_local! {
    static COMPARED: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Comparisons of this thread since it last asked.
#[cfg(test)]
pub fn compared() -> u64 {
    COMPARED.with(|n| n.replace(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::parse_name;

    fn place(text: &str) -> Place {
        Place::of(&parse_name(text).expect("a name"))
    }

    #[test]
    fn what_is_below_a_name_follows_it() {
        let mut all = [
            "example",
            "b.example",
            "a.b.example",
            "aa.b.EXAMPLE",
            "bb.example",
            "c.example",
        ]
        .map(place);
        all.sort();
        let below: Vec<bool> = all.iter().map(|p| p.is_in(&place("b.example"))).collect();
        let first = below.iter().position(|b| *b).expect("the name itself");
        assert_eq!(all[first], place("B.example"));
        assert!(below[first..first + 3].iter().all(|b| *b));
        assert_eq!(below.iter().filter(|b| **b).count(), 3);
    }

    #[test]
    fn the_way_down_begins_at_the_top() {
        let way: Vec<Place> = place("x.mh.loc.example")
            .way_from(&place("loc.example"))
            .collect();
        assert_eq!(
            way,
            ["loc.example", "mh.loc.example", "x.mh.loc.example"].map(place)
        );
        assert_eq!(place("loc.example").way_from(&place("mh.loc.example")).count(), 0);
    }
}
