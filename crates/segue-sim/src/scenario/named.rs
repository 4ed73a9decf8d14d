//! Lists whose entries are found by name.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// What has a name that others call it by. It does not change.
pub trait Name {
    /// That.
    fn name(&self) -> &str;
}

/// Entries in the order of the file. Of two with the same name the first is found.
#[derive(Clone, PartialEq, Debug)]
pub struct Named<T> {
    all: Vec<T>,
    numbers: BTreeMap<String, usize>,
}

impl<T: Name> Named<T> {
    /// The number of the one with this name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// The one with this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&T> {
        self.number(name).map(|number| &self.all[number])
    }

    /// Whether the one with this number has its name from nobody before it.
    pub(super) fn is_first(&self, number: usize) -> bool {
        self.all
            .get(number)
            .is_some_and(|one| self.number(one.name()) == Some(number))
    }
}

impl<T: Name> From<Vec<T>> for Named<T> {
    fn from(all: Vec<T>) -> Self {
        let mut numbers = BTreeMap::new();
        for (number, one) in all.iter().enumerate() {
            numbers.entry(one.name().to_owned()).or_insert(number);
        }
        Self { all, numbers }
    }
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            numbers: BTreeMap::new(),
        }
    }
}

impl<T> Deref for Named<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.all
    }
}

/// Whoever changes an entry leaves its name alone.
impl<T> DerefMut for Named<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.all
    }
}

impl<'a, T> IntoIterator for &'a Named<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}

impl<'de, T: Name + Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}
