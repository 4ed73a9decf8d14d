//! Which associations a packet may be for, without looking at the others: what anybody can send must not cost work that
//! grows with their number.

use crate::sctp::AssociationId;
use crate::sctp::association::Association;
use crate::sctp::handshake::{Identity, TieTags};
use core::net::Ipv6Addr;
use core::ops::RangeInclusive;
use smallvec::SmallVec;
use std::collections::BTreeSet;

const FIRST: AssociationId = AssociationId(0);
const LAST: AssociationId = AssociationId(u64::MAX);

/// The associations that have not ended, by all that a packet may name one by.
#[derive(Clone, Default)]
pub(super) struct Index {
    /// By an address of the peer and its port; those where the address is confirmed come first.
    by_address: BTreeSet<(Ipv6Addr, u16, Unconfirmed, AssociationId)>,
    by_local_tag: BTreeSet<(u32, AssociationId)>,
    /// The same of most that have a tag to themselves, for nearly every packet.
    sole: SoleTags,
    /// By the peer's tag and port, and each of its addresses: a peer chooses its tag, and may have chosen the same for
    /// many associations.
    by_peer_tag: BTreeSet<(u32, u16, Ipv6Addr, AssociationId)>,
    by_tie_tags: BTreeSet<(TieTags, AssociationId)>,
    /// By an address that the peer may send from although it has it no more, and its port.
    by_former: BTreeSet<(Ipv6Addr, u16, AssociationId)>,
}

type Unconfirmed = bool;

/// What an association is listed under.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Keys {
    identity: Identity,
    addresses: SmallVec<[(Ipv6Addr, Unconfirmed); 2]>,
    former: Vec<Ipv6Addr>,
}

impl Keys {
    /// `None` for one that has ended.
    fn of(association: &Association) -> Option<Self> {
        (!association.is_closed()).then(|| Self {
            identity: *association.identity(),
            addresses: association.peer_addresses().collect(),
            former: association.former_addresses().collect(),
        })
    }

    /// Whether they are those of `association`, which has not ended.
    fn are_of(&self, association: &Association) -> bool {
        self.identity == *association.identity()
            && self.addresses.iter().copied().eq(association.peer_addresses())
            && self.former.iter().copied().eq(association.former_addresses())
    }
}

impl Index {
    /// Lists an association under what it has now; `listed` is what it was listed under, and is brought up to date.
    pub(super) fn update(
        &mut self,
        id: AssociationId,
        listed: &mut Option<Box<Keys>>,
        association: &Association,
    ) {
        let current = match listed {
            Some(keys) => !association.is_closed() && keys.are_of(association),
            None => association.is_closed(),
        };
        if !current {
            self.relist(id, listed, Keys::of(association));
        }
    }

    fn relist(&mut self, id: AssociationId, listed: &mut Option<Box<Keys>>, keys: Option<Keys>) {
        if let Some(old) = listed.take() {
            let peer_port = old.identity.peer_port();
            self.by_local_tag.remove(&(old.identity.local_tag(), id));
            self.sole.forget(old.identity.local_tag());
            if let Some(tags) = old.identity.tie_tags() {
                self.by_tie_tags.remove(&(tags, id));
            }
            for (address, unconfirmed) in old.addresses {
                self.by_address.remove(&(address, peer_port, unconfirmed, id));
                if let Some(tag) = old.identity.peer_tag() {
                    self.by_peer_tag.remove(&(tag, peer_port, address, id));
                }
            }
            for address in old.former {
                self.by_former.remove(&(address, peer_port, id));
            }
        }
        if let Some(new) = keys {
            let peer_port = new.identity.peer_port();
            self.by_local_tag.insert((new.identity.local_tag(), id));
            self.sole.note(new.identity.local_tag(), &self.by_local_tag);
            if let Some(tags) = new.identity.tie_tags() {
                self.by_tie_tags.insert((tags, id));
            }
            for &(address, unconfirmed) in &new.addresses {
                self.by_address.insert((address, peer_port, unconfirmed, id));
                if let Some(tag) = new.identity.peer_tag() {
                    self.by_peer_tag.insert((tag, peer_port, address, id));
                }
            }
            for &address in &new.former {
                self.by_former.insert((address, peer_port, id));
            }
            *listed = Some(Box::new(new));
        }
    }

    /// Those whose peer has `address` and sends from `port`; first those where the address is confirmed.
    pub(super) fn at(&self, address: Ipv6Addr, port: u16) -> impl Iterator<Item = AssociationId> + '_ {
        let range = (address, port, false, FIRST)..=(address, port, true, LAST);
        self.by_address.range(range).map(|k| k.3)
    }

    /// Those of them where the address is confirmed.
    pub(super) fn confirmed_at(
        &self,
        address: Ipv6Addr,
        port: u16,
    ) -> impl Iterator<Item = AssociationId> + '_ {
        let range = (address, port, false, FIRST)..=(address, port, false, LAST);
        self.by_address.range(range).map(|k| k.3)
    }

    /// Those whose peer has `address`, whatever its port: each once for each of the ports.
    pub(super) fn towards(&self, address: Ipv6Addr) -> impl Iterator<Item = AssociationId> + '_ {
        let range = (address, 0, false, FIRST)..=(address, u16::MAX, true, LAST);
        self.by_address.range(range).map(|k| k.3)
    }

    /// Those that have `tag` as their own: one, but for chance.
    pub(super) fn with_local_tag(&self, tag: u32) -> impl Iterator<Item = AssociationId> + '_ {
        let sole = self.sole.get(tag);
        let all = sole.is_none().then(|| self.by_local_tag.range(with_tag(tag)));
        sole.into_iter().chain(all.into_iter().flatten().map(|k| k.1))
    }

    /// Those whose peer has `tag`, sends from `port` and has `address`.
    pub(super) fn with_peer_tag_at(
        &self,
        tag: u32,
        port: u16,
        address: Ipv6Addr,
    ) -> impl Iterator<Item = AssociationId> + '_ {
        let range = (tag, port, address, FIRST)..=(tag, port, address, LAST);
        self.by_peer_tag.range(range).map(|k| k.3)
    }

    /// Those whose peer has `tag` and sends from `port`: once for each of its addresses.
    pub(super) fn with_peer_tag(&self, tag: u32, port: u16) -> impl Iterator<Item = AssociationId> + '_ {
        let last = Ipv6Addr::from(u128::MAX);
        let range = (tag, port, Ipv6Addr::UNSPECIFIED, FIRST)..=(tag, port, last, LAST);
        self.by_peer_tag.range(range).map(|k| k.3)
    }

    /// Those that have given out `tie_tags`.
    pub(super) fn with_tie_tags(&self, tie_tags: TieTags) -> impl Iterator<Item = AssociationId> + '_ {
        let range = (tie_tags, FIRST)..=(tie_tags, LAST);
        self.by_tie_tags.range(range).map(|k| k.1)
    }

    /// Whether a peer that sends from `port` may do so from `address` in good faith although it does not have it: it had, or
    /// may believe that it has.
    pub(super) fn is_former(&self, address: Ipv6Addr, port: u16) -> bool {
        let range = (address, port, FIRST)..=(address, port, LAST);
        self.by_former.range(range).next().is_some()
    }

    /// Whether `associations`, which are all there are, are listed under what they have, and nothing else is.
    pub(super) fn is_of<'a>(
        &self,
        associations: impl Iterator<Item = (AssociationId, &'a Association)>,
    ) -> bool {
        let mut anew = Self::default();
        for (id, association) in associations {
            anew.relist(id, &mut None, Keys::of(association));
        }
        anew.by_address == self.by_address
            && anew.by_local_tag == self.by_local_tag
            && anew.by_peer_tag == self.by_peer_tag
            && anew.by_tie_tags == self.by_tie_tags
            && anew.by_former == self.by_former
    }
}

/// The one association that has a tag, by the tag's low bits or beside that: our tags are random, so that nobody can have many
/// fall into one place. Of three that do the last is there; what is not is in the tree.
#[derive(Clone, Default)]
struct SoleTags {
    /// A power of two of them, or none.
    places: Vec<Option<(u32, AssociationId)>>,
}

impl SoleTags {
    #[inline]
    fn get(&self, tag: u32) -> Option<AssociationId> {
        let place = self.place(tag);
        let known = |place: usize| {
            let (known, id) = (*self.places.get(place)?)?;
            (known == tag).then_some(id)
        };
        known(place).or_else(|| known(place ^ 1))
    }

    /// The associations with a tag are not those that they were.
    fn forget(&mut self, tag: u32) {
        let first = self.place(tag) & !1;
        for known in self.places.iter_mut().skip(first).take(2) {
            *known = known.filter(|(other, _)| *other != tag);
        }
    }

    /// `all` have one more with this tag.
    fn note(&mut self, tag: u32, all: &BTreeSet<(u32, AssociationId)>) {
        if self.places.len() < 2 * all.len() {
            self.places = vec![None; (4 * all.len()).next_power_of_two()];
            for (tag, _) in all {
                self.note(*tag, all);
            }
        }
        self.forget(tag);
        let mut with_it = all.range(with_tag(tag));
        if let (Some(sole), None) = (with_it.next(), with_it.next()) {
            let place = self.place(tag);
            let beside = self.places[place].is_some() && self.places[place ^ 1].is_none();
            self.places[place ^ usize::from(beside)] = Some(*sole);
        }
    }

    #[inline]
    fn place(&self, tag: u32) -> usize {
        tag as usize & self.places.len().wrapping_sub(1)
    }
}

fn with_tag(tag: u32) -> RangeInclusive<(u32, AssociationId)> {
    (tag, FIRST)..=(tag, LAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sctp::association::tests::up;
    use crate::sctp::outbox::Outbox;
    use crate::sctp::testing::{address, destination};
    use crate::sctp::{Config, PathState};
    use rand_chacha::ChaCha8Rng;
    use rand_core::{RngCore, SeedableRng};

    fn ids(found: impl Iterator<Item = AssociationId>) -> Vec<u64> {
        found.map(|id| id.0).collect()
    }

    fn identity(peer_port: u16, local_tag: u32, peer_tag: u32) -> Identity {
        Identity::new(1, peer_port, local_tag).with_peer_tag(peer_tag)
    }

    /// State of the second destination.
    fn set_state(a: &mut Association, state: PathState) {
        a.peer_mut().destination_mut(destination(1)).set_state(state);
    }

    #[test]
    fn all_that_have_a_tag_are_found_by_it_and_none_that_had() {
        let mut index = Index::default();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        // few tags, so that some have it to themselves and others share it, and others yet have the same low bits
        let mut tag = || (rng.next_u32() % 40) << (rng.next_u32() % 2 * 20);
        let mut all: Vec<_> = (0..60).map(|_| (up(Config::default(), 1), None)).collect();
        for round in 0..600_u64 {
            let id = round % 60;
            let (a, listed) = &mut all[id as usize];
            *a.identity_mut() = identity(2, tag(), 7);
            index.update(AssociationId(id), listed, a);
            let wanted = tag();
            let with_it = (0..)
                .zip(&all)
                .filter(|(_, (a, listed))| listed.is_some() && a.own_verification_tag() == wanted);
            let with_it: Vec<u64> = with_it.map(|(id, _)| id).collect();
            assert_eq!(ids(index.with_local_tag(wanted)), with_it);
        }
    }

    #[test]
    fn an_association_is_found_by_what_it_has_now() {
        let mut index = Index::default();
        let mut all = [7, 8].map(|peer_tag| {
            let mut a = up(Config::default(), 2);
            *a.identity_mut() = identity(2, 3, peer_tag);
            (a, None)
        });
        // the first has one address that is not confirmed
        set_state(&mut all[0].0, PathState::Unconfirmed);
        for (id, (a, listed)) in (0..).zip(&mut all) {
            index.update(AssociationId(id), listed, a);
        }
        assert_eq!(ids(index.at(address(0), 2)), [0, 1]);
        assert_eq!(ids(index.at(address(1), 2)), [1, 0], "confirmed first");
        assert_eq!(ids(index.confirmed_at(address(1), 2)), [1]);
        assert_eq!(ids(index.at(address(0), 3)), [0_u64; 0]);
        assert_eq!(ids(index.towards(address(1))), [1, 0]);
        assert_eq!(ids(index.with_local_tag(3)), [0, 1]);
        assert_eq!(ids(index.with_local_tag(4)), [0_u64; 0]);
        assert_eq!(ids(index.with_peer_tag(7, 2)), [0, 0], "by each address");
        assert_eq!(ids(index.with_peer_tag_at(8, 2, address(1))), [1]);
        assert_eq!(ids(index.with_peer_tag_at(8, 1, address(1))), [0_u64; 0]);
        assert_eq!(ids(index.with_tie_tags((0, 0))), [0_u64; 0], "there are none");
        // everything changes, one thing after the other
        type Change = fn(&mut Association);
        let changes: [Change; 7] = [
            |a| *a.identity_mut() = a.identity().with_peer_tag(9),
            |a| *a.identity_mut() = identity(2, 5, 9),
            |a| *a.identity_mut() = identity(6, 5, 9),
            |a| _ = a.identity_mut().make_tie_tags(&mut ChaCha8Rng::seed_from_u64(1)),
            |a| set_state(a, PathState::Active),
            |a| {
                a.peer_mut()
                    .remove(destination(0), &Config::default(), &mut Outbox::default());
            },
            |a| a.peer_mut().note_not_taken(address(9)),
        ];
        for change in changes {
            let (a, listed) = &mut all[0];
            change(a);
            index.update(AssociationId(0), listed, a);
            let now = (0..).map(AssociationId).zip(all.iter().map(|x| &x.0));
            assert!(index.is_of(now));
        }
        assert_eq!(ids(index.with_peer_tag_at(9, 6, address(1))), [0]);
        let tie_tags = all[0].0.identity().tie_tags().expect("they were made");
        assert_eq!(ids(index.with_tie_tags(tie_tags)), [0]);
        assert_eq!(ids(index.towards(address(0))), [1]);
        assert!(index.is_former(address(9), 6));
        assert!(!index.is_former(address(9), 2) && !index.is_former(address(8), 6));
        let (a, listed) = &mut all[0];
        assert!(a.phase_mut().close());
        index.update(AssociationId(0), listed, a);
        assert!(listed.is_none());
        assert!(!index.is_former(address(9), 6));
        assert!(index.is_of([(AssociationId(1), &all[1].0)].into_iter()));
        assert!(!index.is_of(core::iter::empty()));
    }
}
