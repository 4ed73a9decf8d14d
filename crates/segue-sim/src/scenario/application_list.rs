//! The applications of a scenario, found by the hosts that they are on.

use super::model::ApplicationEntry;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::Deref;

/// Applications in the order of the file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Applications {
    all: Vec<ApplicationEntry>,
    /// Of each host, the numbers of those that it has a part in.
    by_host: BTreeMap<String, Vec<usize>>,
}

impl Applications {
    /// Those that `host` has a part in, with their numbers, in order.
    pub fn of(&self, host: &str) -> impl Iterator<Item = (usize, &ApplicationEntry)> {
        let numbers = self.by_host.get(host).map_or(&[][..], |numbers| numbers);
        numbers.iter().map(|&number| (number, &self.all[number]))
    }
}

impl From<Vec<ApplicationEntry>> for Applications {
    fn from(all: Vec<ApplicationEntry>) -> Self {
        let mut by_host: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (number, one) in all.iter().enumerate() {
            by_host.entry(one.from.clone()).or_default().push(number);
            if one.to != one.from {
                by_host.entry(one.to.clone()).or_default().push(number);
            }
        }
        Self { all, by_host }
    }
}

impl Deref for Applications {
    type Target = [ApplicationEntry];

    fn deref(&self) -> &[ApplicationEntry] {
        &self.all
    }
}

impl<'a> IntoIterator for &'a Applications {
    type Item = &'a ApplicationEntry;
    type IntoIter = std::slice::Iter<'a, ApplicationEntry>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl Serialize for Applications {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Applications {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}
