//! Which name an identity was learnt from: where its node is, is asked there again.
//!
//! An identity belongs to one name. Two names with one identifier would be one node to applications: who has a name of his own could give it
//! the identifier of another node, and have what is meant for that come to himself. So the second name is no node's as long as
//! the first is known, and what there is of it is plain IPv6.

use segue_proto::location::{Name, PreferredLocator};
use segue_proto::{Duration, Instant};
use segue_wire::ilnp::Locator;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Identities.
const MOST: usize = 4096;
/// Applications go on using an address for some time after they have asked for it.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Who has said of an identity where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The agent's file.
    File,
    /// Servers.
    Dns,
}

/// An identity of which somebody has said where it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Learnt {
    /// Its name; the file may have none.
    pub name: Option<Name>,
    /// Who says so.
    pub source: Source,
    /// Where it was when somebody last asked, the best first.
    pub locators: Vec<PreferredLocator>,
    /// Where it may be, by the file.
    places: Vec<Locator>,
    /// Until when it may be at its locators without asking again, for whoever asks first.
    fresh_until: Option<Instant>,
    /// When it is forgotten, if nothing goes there.
    until: Instant,
}

/// The identity is that of another name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Taken;

/// Identities and their names.
#[derive(Debug, Default)]
pub(super) struct Directory {
    known: BTreeMap<Ipv6Addr, Learnt>,
}

impl Directory {
    /// The file has an identity, perhaps with a name.
    pub fn add(&mut self, identity: Ipv6Addr, name: Option<Name>, places: &[Locator]) {
        let learnt = Learnt {
            name,
            source: Source::File,
            locators: places.iter().map(|place| (*place, 10)).collect(),
            places: places.to_vec(),
            fresh_until: None,
            until: Instant::ZERO,
        };
        self.known.insert(identity, learnt);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv6Addr, &Learnt)> {
        self.known.iter().map(|(identity, learnt)| (*identity, learnt))
    }

    /// What is known of an identity.
    pub fn find(&self, identity: Ipv6Addr) -> Option<&Learnt> {
        self.known.get(&identity)
    }

    /// The identity of a name of the file.
    pub fn of_file(&self, name: &Name) -> impl Iterator<Item = Ipv6Addr> {
        let of_name = |(_, learnt): &(Ipv6Addr, &Learnt)| {
            learnt.source == Source::File && learnt.name.as_ref() == Some(name)
        };
        self.iter().filter(of_name).map(|(identity, _)| identity)
    }

    /// Whether an identity may be a name's.
    pub fn may_be(&self, now: Instant, identity: Ipv6Addr, name: &Name) -> Result<(), Taken> {
        let is_other = |learnt: &&Learnt| learnt.name.as_ref().is_some_and(|other| other != name);
        let other = self.known.get(&identity).filter(is_other);
        let lives = other.is_some_and(|learnt| learnt.source == Source::File || learnt.until > now);
        if lives { Err(Taken) } else { Ok(()) }
    }

    /// Where an identity may be, by the file.
    pub fn places(&self, identity: Ipv6Addr) -> &[Locator] {
        self.known.get(&identity).map_or(&[], |learnt| &learnt.places)
    }

    /// A name has said that it is at these locators for so many seconds.
    pub fn learn(
        &mut self,
        now: Instant,
        identity: Ipv6Addr,
        name: &Name,
        locators: &[PreferredLocator],
        ttl: u32,
    ) {
        let fresh_until = now + Duration::from_secs(ttl.into());
        if let Some(known) = self.known.get_mut(&identity)
            && known.source == Source::File
        {
            known.name.get_or_insert_with(|| name.clone());
            known.locators = locators.to_vec();
            known.fresh_until = Some(fresh_until);
            return;
        }
        if self.known.len() >= MOST && !self.known.contains_key(&identity) {
            let learnt = self.known.iter().filter(|(_, l)| l.source == Source::Dns);
            let first = learnt.min_by_key(|(_, l)| l.until).map(|(identity, _)| *identity);
            if let Some(first) = first {
                self.known.remove(&first);
            }
        }
        let learnt = Learnt {
            name: Some(name.clone()),
            source: Source::Dns,
            locators: locators.to_vec(),
            places: Vec::new(),
            fresh_until: Some(fresh_until),
            until: fresh_until + REMEMBERED,
        };
        self.known.insert(identity, learnt);
    }

    /// Somebody has asked where an identity is, and it is there.
    pub fn note(&mut self, identity: Ipv6Addr, locators: &[PreferredLocator]) {
        if let Some(known) = self.known.get_mut(&identity) {
            known.locators = locators.to_vec();
        }
    }

    /// An application was given the identity once more.
    pub fn extend(&mut self, now: Instant, identity: Ipv6Addr) {
        if let Some(known) = self.known.get_mut(&identity) {
            known.until = known.until.max(now + REMEMBERED);
        }
    }

    /// Where an identity is, if somebody has just said so, and nobody has asked since: a second question is by somebody who did
    /// not get there.
    pub fn take_fresh(&mut self, now: Instant, identity: Ipv6Addr) -> Option<Vec<PreferredLocator>> {
        let known = self.known.get_mut(&identity)?;
        let until = known.fresh_until.take()?;
        (until > now).then(|| known.locators.clone())
    }

    /// Forgets identities that nobody has asked for, and nothing goes to, for long.
    pub fn forget(&mut self, now: Instant, in_use: impl Fn(Ipv6Addr) -> bool) {
        for (identity, known) in &mut self.known {
            if in_use(*identity) {
                known.until = known.until.max(now + REMEMBERED);
            }
        }
        self.known
            .retain(|_, known| known.source == Source::File || known.until > now);
    }
}
